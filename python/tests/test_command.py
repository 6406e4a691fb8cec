"""The command inside the package: the same program, with code in Python."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

TASK = """
import numpy as np
import fedcote

class Numbers:
    def __init__(self, clients, seed, step):
        self.labels, self.step = np.eye(clients, 2) + 1, step
    def initial(self, seed):
        return {"number": np.zeros(1)}
    def train(self, model, job):
        if FAILS and job.round == 3:
            raise KeyError("no such sample")
        return {"number": model["number"] + self.step * (job.client - model["number"])}
    def evaluate(self, model):
        return {"accuracy": 0.5, "loss": float(model["number"][0])}

class Everyone(fedcote.Scheme):
    def select(self, round):
        return range(len(round.weights))

def make(clients, seed, step=0.1):
    return Numbers(clients, seed, step)

FAILS = False
"""
SCENARIO = """
rounds = 5
clients = 3
selected = 2
schemes = ["fedavg", "everyone"]
checkpoint_every = 1
network.kind = "perfect"

[task]
python = "numbers_task:make"
settings = { step = 0.5 }

[scheme.everyone]
python = "numbers_task:Everyone"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "numbers_task.py").write_text(TASK)
    (tmp_path / "mine" / "scenario.toml").write_text(SCENARIO)
    return tmp_path


def run(folder, *words, status=0, **options):
    command = [sys.executable, "-m", "fedcote", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **options)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done


def test_it_is_the_command(tmp_path):
    assert run(tmp_path, "--version").stdout.startswith("fedcote ")
    help = run(tmp_path, "--help").stdout
    assert "Usage: fedcote" in help and "serve" in help
    assert run(tmp_path, status=2).stderr.startswith("Federated learning")
    wrong = run(tmp_path, "run", "--rouns", "2", status=2).stderr
    assert wrong == "fedcote: unexpected argument `--rouns`; did you mean `--rounds`?\n"
    run(tmp_path, "run", "--rounds", "2", "--seeds", "1", "--out", "runs/two")
    summary = json.loads((tmp_path / "runs/two/summary.json").read_text())
    assert summary["rounds"] == 2 and summary["command"].startswith("fedcote run --rounds 2")
    script = os.path.join(os.path.dirname(sys.executable), "fedcote")
    if os.path.exists(script):
        done = subprocess.run([script, "--version"], capture_output=True, text=True)
        assert done.stdout.startswith("fedcote ") and done.returncode == 0


def test_tasks_and_schemes_of_a_scenario(folder):
    run(folder, "run", "mine/scenario.toml", "--out", "runs/one")
    assert (folder / "runs/one/report.html").exists()
    rounds = (folder / "runs/one/everyone/1/metrics.jsonl").read_text().splitlines()
    assert all(json.loads(line)["selected"] == [[0, 1], [1, 1], [2, 1]] for line in rounds)
    # Resumed from its own folder, from elsewhere: the module is found where it was.
    (folder / "elsewhere").mkdir()
    again = run(folder / "elsewhere", "run", "--resume", "--out", "../runs/one")
    assert "finished before" in again.stderr
    for shard in ("1/2", "2/2"):
        run(folder, "run", "mine/scenario.toml", "--out", "runs/parts", "--shard", shard)
    for name in ("fedavg", "everyone"):
        whole, parts = (
            folder / "runs" / kind / name / "1/model.safetensors" for kind in ("one", "parts")
        )
        assert whole.read_bytes() == parts.read_bytes()
    other = run(
        folder,
        "run",
        "mine/scenario.toml",
        "--set",
        "task.settings.step=0.1",
        "--resume",
        "--out",
        "runs/one",
        status=2,
    )
    assert "`task.settings.step` differs" in other.stderr


def test_exceptions_show_their_traceback_and_can_be_resumed(folder):
    module = folder / "mine" / "numbers_task.py"
    module.write_text(TASK.replace("FAILS = False", "FAILS = True"))
    failed = run(folder, "run", "mine/scenario.toml", "--out", "runs/one", status=1)
    assert "Traceback" in failed.stderr and 'raise KeyError("no such sample")' in failed.stderr
    last = failed.stderr.splitlines()[-1]
    assert last.startswith("fedcote: round 3, client ") and "the task raised KeyError" in last
    module.write_text(TASK)
    resumed = run(folder, "run", "--resume", "--out", "runs/one")
    assert "resumes after round 2" in resumed.stderr


@pytest.mark.parametrize(
    ("place", "status", "said"),
    [
        ("no_such_module:make", 2, "task.python: no module `no_such_module` in "),
        ("numbers_task:other", 2, "task.python: the module `numbers_task` has no `other`"),
        ("numbers_task", 2, 'must be "module:function"'),
        ("numbers_task:Numbers", 1, "missing 1 required positional argument: 'step'"),
    ],
)
def test_wrong_places_are_named(folder, place, status, said):
    """A module or function that is missing is a wrong request; it used to be told as failed work, status 1."""
    scenario = folder / "mine" / "scenario.toml"
    text = SCENARIO.replace("numbers_task:make", place).replace("settings = { step = 0.5 }", "")
    scenario.write_text(text)
    command = [sys.executable, "-m", "fedcote", "run", "mine/scenario.toml", "--out", "runs/one"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == status and said in done.stderr.splitlines()[-1]
    assert status == 1 or len(done.stderr.splitlines()) == 1, done.stderr
    assert not (folder / "runs/one/fedavg").exists()


def test_data_beside_a_task_is_refused(folder):
    scenario = folder / "mine" / "scenario.toml"
    scenario.write_text(SCENARIO + "\n[data]\nset = 'mnist'\n")
    assert (
        "has no effect beside [task]" in run(folder, "run", "mine/scenario.toml", status=2).stderr
    )
    printed = run(folder, "run", "quickstart", "--set", "task.python=a:b", "--print-config").stdout
    assert "[task]" in printed and "[data]" not in printed


def test_ctrl_c_ends_with_status_3_and_can_be_resumed(tmp_path):
    command = [
        sys.executable,
        "-m",
        "fedcote",
        "run",
        "--rounds",
        "1000000",
        "--seeds",
        "1",
        "--out",
        "run",
    ]
    restore = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{restore}; import os; os.execv({sys.executable!r}, {command!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    while not list(tmp_path.glob("run/*/*/metrics.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3 and "resume with: fedcote run --resume --out run" in said
    assert list(tmp_path.glob("run/*/1/checkpoint*"))
