"""`simulate`: the same as the command, with frames, and Ctrl-C that works."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import fedcote

SMALL = {"rounds": 4, "seeds": [1, 2], "schemes": ["fedavg", "fedcote"], "evaluate_every": 2}


def test_rounds_and_summary():
    found = fedcote.simulate("quickstart", SMALL)
    rounds = found.rounds
    assert len(rounds["round"]) == 2 * 2 * 4
    assert set(rounds["scheme"]) == {"fedavg", "fedcote"} and set(rounds["seed"]) == {1, 2}
    assert (rounds["arrived"] <= rounds["selected"]).all() and (rounds["attempts"] >= 1).all()
    evaluated = ~np.isnan(rounds["test_accuracy"])
    assert set(rounds["round"][evaluated]) >= {2, 4}
    for scheme in found.summary["schemes"]:
        last = (rounds["scheme"] == scheme["name"]) & (rounds["round"] == 4)
        mean = rounds["test_accuracy"][last].mean()
        assert scheme["test_accuracy"]["mean"] == pytest.approx(mean)


def test_threads_change_nothing_and_a_folder_is_kept(tmp_path):
    one = fedcote.simulate("quickstart", SMALL, threads=1, out=tmp_path / "run")
    two = fedcote.simulate("quickstart", SMALL, threads=2)
    for name, column in one.rounds.items():
        np.testing.assert_array_equal(column, two.rounds[name])
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["rounds"] == 4
    with pytest.raises(ValueError, match="has runs already"):
        fedcote.simulate("quickstart", SMALL, out=tmp_path / "run")
    again = fedcote.simulate("quickstart", SMALL, out=tmp_path / "run", resume=True)
    np.testing.assert_array_equal(again.rounds["test_accuracy"], one.rounds["test_accuracy"])


def test_scenarios_as_dictionaries():
    scenario = {
        "rounds": 2, "clients": 4, "selected": 2, "seeds": [1], "schemes": ["fedavg"],
        "evaluate_every": 2, "data": {"set": "synthetic"}, "model": {"kind": "softmax"},
        "network": {"kind": "fixed", "failure": np.array([0.1, 0.2, 0.3, 0.4])},
    }  # fmt: skip
    found = fedcote.simulate(scenario)
    assert found.rounds["round"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="colour"):
        fedcote.simulate({**scenario, "colour": "blue"})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library, monkeypatch):
    pytest.importorskip(library)
    other = {"pandas": "polars", "polars": "pandas"}[library]
    monkeypatch.setitem(sys.modules, other, None)
    frame = fedcote.simulate("quickstart", {**SMALL, "rounds": 1}).frame()
    assert type(frame).__module__.startswith(library) and len(frame) == 4


def test_wrong_scenarios_are_refused():
    with pytest.raises(ValueError):
        fedcote.simulate("no-such-preset")
    with pytest.raises(ValueError, match="rounds"):
        fedcote.simulate("quickstart", {"rounds": -1})
    for threads in (10**6, -1):  # regression: a million threads never returned
        with pytest.raises(ValueError, match="threads: must be from 0 to 1024"):
            fedcote.simulate("quickstart", {"rounds": 1}, threads=threads)


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot send SIGINT to a process")
def test_ctrl_c_interrupts(tmp_path):
    # Whoever runs the tests in the background may have SIGINT ignored, and children inherit that.
    script = f"""
import signal
import fedcote
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    fedcote.simulate("quickstart", {{"rounds": 1000000}}, out={str(tmp_path / "run")!r})
except KeyboardInterrupt:
    raise SystemExit(42)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    while not list(tmp_path.glob("run/*/*/metrics.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) == 42


DIVERGES = {
    "rounds": 6, "clients": 4, "selected": 2, "seeds": [1, 2], "schemes": ["fedavg"],
    "evaluate_every": 1, "data": {"set": "synthetic"}, "model": {"kind": "mlp"},
    "network": {"kind": "perfect"}, "training": {"rate": 1e30},
}  # fmt: skip


def test_a_run_that_diverges_ends_early():
    """Regression: its last line, which names no round, was a KeyError."""
    found = fedcote.simulate(DIVERGES)
    (scheme,) = found.summary["schemes"]
    assert scheme["diverged"] == 2
    assert len(found.rounds["round"]) == sum(at - 1 for at in scheme["diverged_at"])
    assert all(column.dtype != object for column in found.rounds.values())


def test_what_else_is_in_the_folder_is_not_told(tmp_path):
    """Regression: every folder was taken for a run of this comparison."""
    begun = fedcote.simulate("quickstart", {**SMALL, "rounds": 1}, out=tmp_path)
    (tmp_path / "fedavg" / "notes").mkdir()
    again = fedcote.simulate("quickstart", {**SMALL, "rounds": 1}, out=tmp_path, resume=True)
    assert again.rounds["seed"].tolist() == begun.rounds["seed"].tolist()
    other = {**SMALL, "rounds": 1, "seeds": [2], "schemes": ["fedavg"]}
    with pytest.raises(ValueError, match="has a run of `.*` with seed 1, which this scenario does"):
        fedcote.simulate("quickstart", other, out=tmp_path, resume=True)


def test_null_is_not_a_number(tmp_path):
    """Regression: a divergence that is null made a column of objects."""
    run = tmp_path / "fedavg" / "7"
    run.mkdir(parents=True)
    line = {
        "round": 1, "selected": [[0, 2]], "arrived": [], "attempts": 1,
        "label_divergence_wanted": None, "test_accuracy": 0.5,
    }  # fmt: skip
    (run / "metrics.jsonl").write_text(json.dumps(line) + "\n" + '{"diverged_at": 2}\n')
    found = fedcote._simulate._rounds(tmp_path, [("fedavg", 7)])
    assert np.isnan(found["label_divergence_wanted"]).all() and found["test_accuracy"] == [0.5]
    assert found["round"].tolist() == [1] and found["seed"].tolist() == [7]
    assert found["scheme"].tolist() == ["fedavg"] and found["selected"].tolist() == [2]


def test_what_a_task_reports_has_columns_of_its_own(tmp_path):
    run = tmp_path / "mine" / "1"
    run.mkdir(parents=True)
    line = {"round": 1, "selected": [[0, 1]], "arrived": [[0, 1]], "attempts": 1}
    scored = {**line, "round": 2, "scores": {"f1": 0.5, "round": 9.0, "auc": None}}
    (run / "metrics.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(scored) + "\n")
    found = fedcote._simulate._rounds(tmp_path, [("mine", 1)])
    np.testing.assert_array_equal(found["f1"], [np.nan, 0.5])
    assert found["round"].tolist() == [1, 2] and "auc" not in found


def test_damaged_metrics_are_named_by_file_and_line(tmp_path):
    run = tmp_path / "mine" / "1"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text('{"round": oops}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl:1: expected value"):
        fedcote._simulate._rounds(tmp_path, [("mine", 1)])
    with pytest.raises(ValueError, match="no rounds"):
        fedcote._simulate._rounds(tmp_path, [("mine", 2)])


def test_rounds_have_their_costs():
    changes = {"rounds": 3, "seeds": [1], "schemes": ["fedavg", "scaffold"], "evaluate_every": 1}
    changes |= {"data.set": "synthetic", "data.samples": 400, "target_accuracy": 0.01}
    found = fedcote.simulate("quickstart", changes)
    rounds = found.rounds
    for name in ("seconds", "bytes_up", "bytes_down", "joules"):
        assert (rounds[name] > 0).all(), name
    fedavg, scaffold = found.summary["schemes"]
    assert fedavg["rounds_to"]["mean"] == 1 and fedavg["seconds_to"]["mean"] == rounds["seconds"][0]
    # The same uploads, with a control variate each.
    first = [rounds["bytes_up"][at] for at in (1, 4)]
    assert first[1] == 2 * first[0]
