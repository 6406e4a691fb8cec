"""The comparison behind `cargo xtask bench peers`: every side in turn on one thread, several times.

    python compare.py FEDCOTE FOLDER NAME=PYTHON…

FEDCOTE is the program, FOLDER a place for files, and each NAME=PYTHON an interpreter that has the peer NAME, whose
script is with_NAME.py. Prints tables in Markdown. FEDCOTE_REPEATS says how often instead of three times.
"""

import ast
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
REPEATS = int(os.environ.get("FEDCOTE_REPEATS", "3"))
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

#: Name, scenario, what the peers need of it beyond the failure probabilities.
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
    """Standard output, seconds on the clock, seconds of processor, peak megabytes."""
    begun = time.perf_counter()
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env=ONE_THREAD)
    text = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command} ended with {child.returncode}\n{text[-2000:]}")
    cost = time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3
    print(f"{Path(command[0]).parents[1].name} {command[1]}: {cost[0]:.1f} s, {cost[1]:.1f} s of processor", file=sys.stderr)
    return text, *cost


def lines(path):
    """Lines of code: without blanks, comments and documentation."""
    text = path.read_text()
    code = {at for at, line in enumerate(text.splitlines(), 1) if line.strip() and not line.strip().startswith("#")}
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                code -= set(range(node.lineno, node.end_lineno + 1))
    return len(code)


def main():
    program, folder, *pythons = sys.argv[1:]
    peers = dict(one.split("=", 1) for one in pythons)
    folder = Path(folder)
    images = folder / "mnist"
    subprocess.run([program, "data", "export", "mnist", "--into", images], check=True, stdout=subprocess.DEVNULL)
    for name, scenario, numbers in SETTINGS:
        print(f"{name} …", file=sys.stderr)
        found = {}
        for seed in range(1, REPEATS + 1):
            network = measure([program, "network", scenario, "--seed", seed, "--json"])[0]
            failure = [client["failure"] for client in json.loads(network)["clients"]]
            setting = folder / "setting.json"
            setting.write_text(json.dumps({**numbers, "failure": failure}))
            out = folder / f"run-{time.time_ns()}"
            text, *cost = measure(
                [program, "run", scenario, "--seeds", seed, "--threads", 1, "--json", "--out", out]
            )
            accuracy = json.loads(text)["schemes"][0]["tail_accuracy"]["mean"]
            version = json.loads(text)["version"]
            found.setdefault(f"FedCote {version}", []).append((accuracy, *cost, cost[0]))
            for peer, python in peers.items():
                script = HERE / f"with_{peer}.py"
                text, *cost = measure([python, script, setting, images, seed])
                result = json.loads(text.strip().splitlines()[-1])
                found.setdefault(f"{peer} {result['version']}", []).append(
                    (result["accuracy"], *cost, result["seconds"])
                )
        table(name, scenario, found)


def table(name, scenario, found):
    print(f"\n{name}; one thread, best of {REPEATS} in turn, accuracy over {REPEATS} seeds\n")
    print("| | seconds | times ours | of processor | times ours | without imports | peak MB | lines | accuracy % |")
    print("|---|---|---|---|---|---|---|---|---|")
    best = None
    for side, runs in found.items():
        accuracy, wall, processor, memory, inner = zip(*runs)
        best = best or (min(wall), min(processor))
        script = HERE / f"with_{side.split()[0]}.py"
        size = lines(script) + lines(HERE / "task.py") if script.exists() else lines(scenario)
        accuracy = [100 * one for one in accuracy]
        print(
            f"| {side} | {min(wall):.2f} | {min(wall) / best[0]:.1f} | {min(processor):.2f} "
            f"| {min(processor) / best[1]:.1f} | {min(inner):.2f} | {max(memory):.0f} | {size} "
            f"| {statistics.mean(accuracy):.2f} ± {statistics.stdev(accuracy) if REPEATS > 1 else 0:.2f} |",
            flush=True,
        )


main()
