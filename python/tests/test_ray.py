"""A cluster of three nodes on this machine: same bits as without one, whatever is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fedcote

if not os.environ.get("FEDCOTE_RAY"):
    pytest.skip("the environment with Ray sets FEDCOTE_RAY", allow_module_level=True)

# Loopback only: Ray would take another address of this machine, and tell its makers how it is used. Workers that are
# started ahead cost seconds on a small machine and are of no use here.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_enable_worker_prestart"] = "0"

import ray
from ray.cluster_utils import Cluster

#: Seconds that no state is waited for longer: a busy machine takes its time.
PATIENCE = 300

#: Small enough to be quick, long enough to be interrupted; three of the schemes have a state.
SCENARIO = """
rounds = 400
clients = 8
selected = 4
seeds = [1, 2, 3]
schemes = ["fedavg", "scaffold", "fedcote-memory", "fedcote-control"]
evaluate_every = 100
checkpoint_every = 50
[data]
set = "synthetic"
samples = 400
[model]
kind = "mlp"
hidden = [16]
[training]
batch = 32
[network]
kind = "fixed"
failure = [0.1, 0.8, 0.4, 0.3, 0.6, 0.0, 0.2, 0.5]
knowledge = "estimated"
"""


class Clock:
    """Time as Ray sees it while a node starts: it gives up after thirty seconds, which a busy machine may need.

    Regression: a node that was started while other tests kept the machine busy was given up.
    """

    def __getattr__(self, name):
        return getattr(time, name)

    def monotonic(self):
        return time.monotonic() * 30 / PATIENCE


ray._private.node.time = Clock()


def add_node(cluster, wait=True):
    """A node on the loopback address only, with little memory and without a page."""
    node = cluster.add_node(
        wait=False,
        num_cpus=2,
        object_store_memory=100 << 20,
        node_ip_address="127.0.0.1",
        include_dashboard=False,
    )
    if wait:
        cluster.wait_for_nodes(timeout=PATIENCE)
    return node


@pytest.fixture(scope="module")
def cluster():
    cluster = Cluster()
    add_node(cluster)
    nodes = [add_node(cluster, wait=False) for _ in range(2)]
    cluster.wait_for_nodes(timeout=PATIENCE)
    yield cluster, nodes
    ray.shutdown()
    cluster.shutdown()


def until(condition, process):
    """Waits for a state, while a process lives."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"ended early: {process.communicate()}"
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def command(*arguments):
    return [sys.executable, "-m", "fedcote", *map(str, arguments)]


def begin(*arguments):
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rounds(out):
    """Rounds written so far, of each run that has begun."""
    return [path.read_bytes().count(b"\n") for path in out.glob("*/*/metrics.jsonl")]


def results(out):
    """All files of the runs, and how they ended without the seconds."""
    found = {}
    for path in sorted(out.glob("*/*/*")):
        name = str(path.relative_to(out))
        if path.name == "finished.json":
            ended = json.loads(path.read_bytes())
            del ended["seconds"], ended["checksums"]["finished.json"]
            found[name] = ended
        elif path.name != ".lock":
            found[name] = path.read_bytes()
    return found


def at_work(node):
    """Whether a worker of this node computes a stretch."""
    parent = node.all_processes["raylet"][0].process.pid
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) != parent:
                continue
            if (stat.parent / "cmdline").read_bytes().startswith(b"ray::stretch"):
                return True
        except (OSError, IndexError):
            continue
    return False


def test_a_node_and_the_driver_are_killed(cluster, tmp_path):
    cluster, (_, node) = cluster
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    local = begin("run", scenario, "--out", tmp_path / "local", "--json")
    there = ["--on", "ray", "--address", cluster.address, "--rounds-per-task", 20]
    out = tmp_path / "ray"
    driver = begin("run", scenario, "--out", out, *there)
    until(lambda: at_work(node), driver)
    cluster.remove_node(node, allow_graceful=False)
    before = sum(rounds(out))
    until(lambda: sum(rounds(out)) > before + 400, driver)
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=PATIENCE)
    assert not (out / "summary.json").exists() and sum(rounds(out)) < 12 * 400
    add_node(cluster)
    again = begin("run", "--resume", "--out", out, *there)
    told = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, told
    assert "resumes after round" in told[1] and "rounds in" in told[1]
    assert local.wait(PATIENCE) == 0, local.communicate()
    assert len(results(out)) == 12 * 5
    assert results(out) == results(tmp_path / "local")
    assert (out / "report.html").exists()


def test_ctrl_c_leaves_a_folder_that_continues_anywhere(cluster, tmp_path):
    cluster, _ = cluster
    settings = ["--set", 'schemes=["fedavg","fedcote-memory"]', "--seeds", "1"]
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(SCENARIO)
    out = tmp_path / "ray"
    there = ["--on", "ray", "--address", cluster.address, "--rounds-per-task", 5]
    driver = begin("run", scenario, *settings, "--out", out, *there)
    until(lambda: rounds(out) and min(rounds(out)) > 0, driver)
    driver.send_signal(signal.SIGINT)
    told = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 3 and "resume with" in told[1].splitlines()[-1], told
    assert sum(rounds(out)) < 2 * 400
    subprocess.run(command("run", "--resume", "--out", out), check=True, capture_output=True)
    local = ["run", scenario, *settings, "--out", tmp_path / "local"]
    subprocess.run(command(*local), check=True, capture_output=True)
    assert results(out) == results(tmp_path / "local")


class Task:
    """A regression whose clients train in NumPy."""

    def __init__(self, seed=0, fails_in=None):
        random = np.random.default_rng(seed)
        self.inputs = random.normal(size=(6, 30, 4))
        self.targets = self.inputs @ random.normal(size=4) + random.normal(size=(6, 1))
        self.labels = np.full((6, 2), 15)
        self.fails_in = fails_in

    def initial(self, seed):
        return {"weight": np.random.default_rng(seed).normal(size=4), "bias": np.zeros(())}

    def train(self, model, job):
        if job.round == self.fails_in:
            raise ZeroDivisionError("no such number")
        weight, bias = model["weight"].astype(np.float64), float(model["bias"])
        for batch in job.batches(30):
            inputs, targets = self.inputs[job.client][batch], self.targets[job.client][batch]
            error = inputs @ weight + bias - targets
            slope = {"weight": error @ inputs / len(batch), "bias": error.mean()}
            for name, change in slope.items():
                change = change + (0 if job.correction is None else job.correction[name])
                pull = job.proximal * (weight if name == "weight" else bias)
                change = change + pull - job.proximal * job.anchor[name]
                if name == "weight":
                    weight = weight - job.rate * change
                else:
                    bias = bias - job.rate * float(change)
        return {"weight": weight, "bias": bias}

    def evaluate(self, model):
        error = self.inputs @ model["weight"] + model["bias"] - self.targets
        return {"loss": float((error**2).mean())}


OWN = {
    "rounds": 30, "clients": 6, "selected": 3, "seeds": [1, 2], "evaluate_every": 5,
    "schemes": ["fedavg", "fedprox", "fedcote-control"], "checkpoint_every": 7,
    "training": {"rate": 0.05, "batch": 8},
    "network": {"kind": "fixed", "failure": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]},
}  # fmt: skip


@pytest.fixture
def connected(cluster):
    cluster, _ = cluster
    if not ray.is_initialized():
        ray.init(address=cluster.address, log_to_driver=False)
        # Workers do not have this file.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return cluster


def test_a_task_of_ones_own_on_actors_and_in_tasks(connected, tmp_path):
    fedcote.simulate(OWN, task=Task, out=tmp_path / "local")
    expected = results(tmp_path / "local")
    for workers in (1, 2, 3):
        out = tmp_path / str(workers)
        fedcote.simulate(OWN, task=Task, out=out, on="ray", workers=workers)
        assert results(out) == expected, workers
    fedcote.simulate(OWN, task=Task, out=tmp_path / "tasks", on="ray", rounds_per_task=4)
    assert results(tmp_path / "tasks") == expected


def test_a_task_that_raises_is_told_in_one_line(connected, tmp_path):
    failing = Task(fails_in=9)
    for options in ({"rounds_per_task": 4}, {"workers": 2}):
        out = tmp_path / "-".join(options)
        with pytest.raises(fedcote.TaskError) as raised:
            fedcote.simulate(OWN, task=failing, out=out, on="ray", **options)
        told = str(raised.value)
        assert "round 9" in told and "ZeroDivisionError: no such number" in told, told
        assert "\n" not in told
        # The rounds before are there, and go on with a task that works.
        fedcote.simulate(OWN, task=Task(), out=out, on="ray", resume=True)


def test_what_is_wrong_is_told_in_one_line_and_nothing_is_written(connected, tmp_path):
    out = tmp_path / "out"

    def refused(*arguments):
        process = begin("run", *arguments, "--out", out, "--on", "ray")
        told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2 and told[0] == "", told
        assert len(told[1].splitlines()) == 1 and not out.exists(), told
        return told[1]

    there = ["--address", connected.address]
    assert "no Ray cluster at `127.0.0.1:1`" in refused("--address", "127.0.0.1:1")
    assert "rounds" in refused("--set", "rounds=-1", *there)
    missing = refused("--set", "data.set=idx", "--set", "data.path=/nowhere", *there)
    assert "node 127.0.0.1: " in missing and "/nowhere" in missing
    assert "no node of the cluster has more than 2" in refused("--cpus-per-run", 64, *there)
    assert "cpus-per-run" in refused("--cpus-per-run", 0, *there)
    assert "no-such-preset" in refused("no-such-preset", *there)


def test_a_package_that_a_worker_does_not_have(connected, tmp_path):
    """What is found on the way there is not this package."""
    (tmp_path / "fedcote").mkdir()
    (tmp_path / "fedcote" / "__init__.py").write_text("raise ImportError('no fedcote here')")
    out = tmp_path / "out"
    script = f"""
import ray, fedcote
ray.init({connected.address!r}, runtime_env={{"env_vars": {{"PYTHONPATH": {str(tmp_path)!r}}}}}, log_to_driver=False)
try:
    fedcote.simulate("quickstart", {{"rounds": 2}}, on="ray", out={str(out)!r})
except ValueError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], text=True, stdout=subprocess.PIPE)
    assert found.stdout == "node 127.0.0.1: no fedcote here; install fedcote there\n"
    assert not list(tmp_path.glob("out/*"))


def test_the_guide(connected, tmp_path, monkeypatch):
    """Its blocks name an address, which does not matter to a process that is connected."""
    page = Path(__file__).parents[2] / "docs/guide/many-machines.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    assert len(blocks) == 2
    for code in blocks:
        monkeypatch.chdir(tmp_path)
        exec(compile(code, "block", "exec"), {"__name__": "block"})
