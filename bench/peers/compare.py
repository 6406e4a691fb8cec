"""The comparison behind `cargo xtask bench peers`: every side in turn on one thread, several times.

    python compare.py FEDCOTE FOLDER NAME=PYTHON…

FEDCOTE is the program, FOLDER a place for files, and each NAME=PYTHON an interpreter that has the side NAME, whose
script is with_NAME.py. Prints tables in Markdown. FEDCOTE_REPEATS says how often, each time with another seed, instead
of three times.
"""

import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
REPEATS = int(os.environ.get("FEDCOTE_REPEATS", "3"))
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: What the sides are called in the tables.
NAMES = {
    "fedcote": "FedCote, PyTorch task",
    "pytorch": "PyTorch loop",
    "flower": "Flower, in process",
    "fedlab": "FedLab",
    "pfl": "pfl-research",
}

#: Name, scenario, what the scripts need of it beyond the failure probabilities.
SETTINGS = [
    (
        "softmax regression on MNIST, 1,000 clients, 10 a round, 100 rounds",
        HERE / "flute.toml",
        {"rounds": 100, "clients": 1000, "selected": 10, "evaluate_every": 10, "local_steps": 6, "batch": 10,
         "rate": 0.03, "hidden": [], "split": "shards"},
    ),
    (
        "MLP on MNIST, 20 clients of two labels, 10 a round, 500 rounds, failing uploads",
        HERE / "paper.toml",
        {"rounds": 500, "clients": 20, "selected": 10, "evaluate_every": 10, "local_steps": 5, "batch": 128,
         "rate": 0.05, "hidden": [30], "split": "label-pairs"},
    ),
]  # fmt: skip


def measure(command):
    """Standard output, seconds of processor, seconds on the clock, peak megabytes."""
    words = [str(word) for word in command]
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=told, env=ONE_THREAD)
        text = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        clock = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            told.seek(0)
            sys.exit(f"{words} ended with {child.returncode}\n{told.read()[-4000:]}")
    processor = usage.ru_utime + usage.ru_stime
    return text, processor, clock, usage.ru_maxrss / 1e3


def lines(*paths):
    """Lines of code: without blanks, comments and documentation."""
    count = 0
    for path in paths:
        text = path.read_text()
        stripped = [line.strip() for line in text.splitlines()]
        code = {at for at, line in enumerate(stripped, 1) if line and not line.startswith("#")}
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    code -= set(range(node.lineno, node.end_lineno + 1))
        count += len(code)
    return count


def runs(program, folder, images, sides, scenario, numbers, seed):
    """Name, files of code, version of each side, and its run: accuracy, costs, seconds without imports."""
    network = measure([program, "network", scenario, "--seed", seed, "--json"])[0]
    failure = [client["failure"] for client in json.loads(network)["clients"]]
    setting = folder / "setting.json"
    setting.write_text(json.dumps({**numbers, "failure": failure, "scenario": str(scenario)}))
    run = [program, "run", scenario, "--seeds", seed, "--threads", 1, "--json"]
    text, *cost = measure([*run, "--out", folder / f"run-{time.time_ns()}"])
    result = json.loads(text)
    accuracy = result["schemes"][0]["tail_accuracy"]["mean"]
    yield "**FedCote**", [scenario], result["version"], (accuracy, *cost, cost[1])
    for side, python in sides.items():
        script = HERE / f"with_{side}.py"
        text, *cost = measure([python, script, setting, images, seed])
        result = json.loads(text.strip().splitlines()[-1])
        code = [script, scenario if side == "fedcote" else HERE / "task.py"]
        yield NAMES[side], code, result["version"], (result["accuracy"], *cost, result["seconds"])


def main():
    program, folder, *pythons = sys.argv[1:]
    sides = dict(one.split("=", 1) for one in pythons)
    folder = Path(folder)
    images = folder / "mnist"
    export = [program, "data", "export", "mnist", "--into", images, "--force"]
    subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
    for name, scenario, numbers in SETTINGS:
        print(f"{name} …", file=sys.stderr)
        size, versions, found = {}, {}, {}
        for seed in range(1, REPEATS + 1):
            given = (program, folder, images, sides, scenario, numbers, seed)
            for title, code, version, run in runs(*given):
                size[title], versions[title] = lines(*code), version
                found.setdefault(title, []).append(run)
                said = f"{100 * run[0]:.2f} %, {run[1]:.2f} s of processor, {run[2]:.2f} s"
                print(f"{title}, seed {seed}: {said}", file=sys.stderr)
        table(name, size, found, versions)


def table(name, size, found, versions):
    print(f"\n## {name}\n")
    print(f"One thread; best of {REPEATS} in turn; accuracy is mean ± deviation over the seeds.")
    print(f"{'; '.join(f'{side}: {version}' for side, version in versions.items())}.\n")
    print(
        "| | s of processor | times ours | s on the clock | times ours | without imports | peak MB "
        "| lines | accuracy % |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    ours = None
    for side, runs in found.items():
        accuracy, processor, clock, memory, inner = zip(*runs, strict=True)
        times = [min(processor), min(clock)]
        ratios = (
            ["", ""] if ours is None else [f"{a / b:.1f}" for a, b in zip(times, ours, strict=True)]
        )
        ours = ours or times
        mean = 100 * statistics.mean(accuracy)
        deviation = f" ± {100 * statistics.stdev(accuracy):.2f}" if REPEATS > 1 else ""
        print(
            f"| {side} | {times[0]:.2f} | {ratios[0]} | {times[1]:.2f} | {ratios[1]} | {min(inner):.2f} "
            f"| {max(memory):,.0f} | {size[side]} | {mean:.2f}{deviation} |",
            flush=True,
        )
    print("\nAccuracy % by seed:")
    for side, runs in found.items():
        print(f"{side}: {', '.join(f'{100 * run[0]:.2f}' for run in runs)}", flush=True)


main()
