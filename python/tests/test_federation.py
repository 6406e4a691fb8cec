"""A real federation on loopback: SuperLink and SuperNodes as processes, with faults."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")
if not os.environ.get("FEDCOTE_REAL_FEDERATION"):
    pytest.skip("takes minutes: set FEDCOTE_REAL_FEDERATION=1", allow_module_level=True)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "flower"
sys.path.insert(0, str(EXAMPLE))

from fake_grid import FakeGrid, initial  # noqa: E402
from federation import Federation  # noqa: E402

from fedcote import Network, Selector  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

CLIENTS = 5
FAULTS = {"0": (1, "raise"), "1": (2, "nan"), "2": (3, "sleep"), "3": (3, "kill")}
ROUNDS, DIES_AFTER, TIMEOUT = 4, 2, 120.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("federation")


@pytest.fixture(scope="module")
def federation(folder):
    with Federation(CLIENTS, folder) as federation:
        yield federation


def logs(folder):
    text = (folder / "superlink.log").read_text(errors="replace")
    return text[-6000:]


def test_the_example_as_it_is(federation, folder):
    result = folder / "example.json"
    config = {
        "num-server-rounds": 2, "local-steps": 20, "rate": 0.1, "result-file": str(result), "seed": 6,
        "timeout": 600.0,
    }  # fmt: skip
    assert federation.run(EXAMPLE, config) == "finished:completed", logs(folder)
    result = json.loads(result.read_text())
    for name in ("fedavg", "fedcote-memory", "fedcote-control"):
        accuracy = result[name]["accuracy"]
        assert accuracy["2"] > accuracy["0"] + 0.1, (name, accuracy)
    # With this seed client 2 is heard in the first round and lost in the second.
    first, last = result["fedcote-control"]["history"]
    assert "2" in first["arrived"] and list(last["failed"]) == ["2"], (first, last)
    assert last["arrived"] and last["corrected"] == last["arrived"], last


def test_a_wireless_network_and_differential_privacy_under_the_example(federation, folder):
    """Uploads are lost between real processes; what arrives is clipped, and the model has noise."""
    result = folder / "private.json"
    config = {
        "strategies": "fedcote-memory", "num-server-rounds": 2, "failure-rates": "0", "wireless": True,
        "clip": 1.0, "noise-multiplier": 0.5, "timeout": 600.0, "result-file": str(result),
    }  # fmt: skip
    assert federation.run(EXAMPLE, config) == "finished:completed", logs(folder)
    history = json.loads(result.read_text())["fedcote-memory"]["history"]
    network = Network(CLIENTS, seed=1)
    for report in history:
        assert (
            report["noise"] == pytest.approx(0.5 * report["max_share"]) and report["max_share"] > 0
        )
        # Which node has which number changes from run to run; how many are lost of all does not.
        if len(report["drawn"]) == CLIENTS and report["attempts"] == 1:
            wanted = sum(network.arrives(report["round"] - 1, number) for number in range(CLIENTS))
            assert len(report["arrived"]) == wanted, report
        assert set(report["failed"].values()) <= {"error 4: the upload was lost"}, report


def faulty_app(folder):
    """The example with clients that break, and a server that dies."""
    app = folder / "app-with-faults"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).with_name("faulty.py"), app / "app")
    project = (app / "pyproject.toml").read_text()
    project = project.replace("app.client:app", "app.faulty:app")
    ours = '[tool.flwr.app.config]\nfaults = ""\ndies-after = 0'
    project = project.replace("[tool.flwr.app.config]", ours)
    (app / "pyproject.toml").write_text(project)
    server = (app / "app" / "server.py").read_text()
    died = (
        '            if server_round == int(config["dies-after"]):\n                os._exit(9)\n'
    )
    head = "        def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:\n"
    assert head in server
    (app / "app" / "server.py").write_text("import os\n" + server.replace(head, head + died))
    return app


def test_every_fault_is_survived(federation, folder):
    result, state = folder / "faults.json", folder / "state" / "state.json"
    config = {
        "strategies": "fedcote-memory", "num-server-rounds": ROUNDS, "selected": 40, "timeout": TIMEOUT,
        "failure-rates": "0", "local-steps": 20, "rate": 0.1, "state-file": str(state), "result-file": str(result),
        "faults": ",".join(f"{name}:{round_}:{fault}" for name, (round_, fault) in FAULTS.items()),
    }  # fmt: skip
    app = faulty_app(folder)
    # The server dies after a round, and is started again.
    died = lambda: state.exists() and json.loads(state.read_text())["round"] == DIES_AFTER  # noqa: E731
    status = federation.run(app, {**config, "dies-after": DIES_AFTER}, until=died)
    assert status != "finished:completed" and died() and not result.exists(), logs(folder)
    status = federation.run(app, config)
    assert status == "finished:completed", logs(folder)

    result = json.loads(result.read_text())["fedcote-memory"]
    history = result["history"]
    assert [report["round"] for report in history] == list(range(1, ROUNDS + 1))
    # The right clients are blamed, each for its own fault, and nobody else.
    # Messages live as long as replies are waited for: on a busy machine an expired one is reported as
    # error 3 before the wait ends.
    late = ("no reply in time", "error 3")
    reasons = {
        "raise": "error 2", "nan": "update is not finite", "sleep": late, "kill": (*late, "error 8"),
    }  # fmt: skip
    for name, (round_, fault) in FAULTS.items():
        failed = history[round_ - 1]["failed"]
        assert failed[name].startswith(reasons[fault]), (name, fault, failed)
    for report in history:
        for name in report["failed"]:
            assert name in FAULTS and report["round"] >= FAULTS[name][0], report
        assert "4" in report["arrived"]
        assert report["attempts"] == 1
    # Whoever was heard is remembered, across the server's death; rejected updates are not.
    heard = set()
    for report in history:
        heard |= set(report["arrived"])
        assert report["remembered"] == len(heard)
    assert heard == {str(client) for client in range(CLIENTS)}
    with np.load(state.with_name(f"state.json.round-{ROUNDS}.npz")) as model:
        parameters = sum(array.size for array in model.values())
    assert history[-1]["memory_bytes"] == CLIENTS * parameters * 4
    assert set(json.loads(state.read_text())["updates"]) == heard
    # The model improved all the same.
    accuracy = {int(round_): value for round_, value in result["accuracy"].items()}
    assert sorted(accuracy) == list(range(DIES_AFTER, ROUNDS + 1))
    assert accuracy[ROUNDS] > 0.5, accuracy

    # Had the server never died, it would have drawn the same clients: play the same faults to one
    # that does not die.
    saved = Selector()
    saved.restore(json.loads(state.read_text())["selector"])
    names = saved.clients
    labels = np.reshape(saved.state()["core"]["counts"], (len(names), -1))

    def behave(name, round_):
        reason = history[round_ - 1]["failed"].get(name)
        if reason is None:
            return None
        return "silent" if reason.startswith("no reply") else "nan" if "finite" in reason else 2

    never_died = FedCote(aggregation="memory", selected=40, seed=1, fraction_evaluate=0.0)
    grid = FakeGrid(labels, behave, names)
    never_died.start(grid, initial(), num_rounds=ROUNDS, timeout=TIMEOUT)
    drawn = [report["drawn"] for report in never_died.history]
    assert drawn == [report["drawn"] for report in history]
    np.testing.assert_array_equal(never_died.selector.failures(names), saved.failures(names))


def test_what_flower_packs_of_the_example_is_the_app(tmp_path):
    """Regression: the environment that README.md makes in the app's folder was packed too, and refused for its depth."""
    app = tmp_path / "app"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__", "env"))
    deep = app.joinpath("env", *"abcdefghijkl")
    deep.mkdir(parents=True)
    (deep / "LICENSE.md").write_text("deep")
    flwr = Path(sys.executable).with_name("flwr")
    built = subprocess.run([flwr, "build"], cwd=app, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    packed = zipfile.ZipFile(next(app.glob("*.fab"))).namelist()
    assert "app/client.py" in packed and not any(name.startswith("env") for name in packed)
