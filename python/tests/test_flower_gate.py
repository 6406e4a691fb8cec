"""When corrections are sent: the rule that ends them where they are unstable, against formulas in NumPy."""

import json
import logging

import numpy as np
import pytest

pytest.importorskip("flwr")

from test_flower_control import CONTROL, Oracle, Quadratic, close, known  # noqa: E402
from test_flower_memory import LABELS, train, trouble  # noqa: E402

from fedcote._control import Safety  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402


class Wild(Quadratic):
    """Clients that gain little, but for rounds 16 to 19 and from 36 on, when updates change wildly.

    A goal of length r leads to an update of at most 3r/4, and Eγ is 1.
    """

    def goal(self, client, round_):
        goal = super().goal(client, round_) / 400
        return goal + np.float32(9 * (-1) ** round_ * (16 <= round_ < 20 or round_ >= 36))

    def curvature(self, client):
        return np.float32(1)


AUTO = dict(CONTROL, selected=12)


def by_the_rule(strategy, grid, models):
    """Plays a history in float64 by the rule; after which rounds corrections ended and began."""
    oracle = Oracle(grid, LABELS.sum(axis=1) / LABELS.sum())
    changes, gains, since, turns, calm = [], [], set(), [], np.zeros(4)
    for report in strategy.history:
        assert report["correction"] == oracle.scale
        before, start = dict(oracle.own), oracle.model
        oracle.play(report)
        for name in sorted(report["arrived"]):
            if name not in report["corrected"]:
                gains.append(np.sum(oracle.own[name] ** 2))
                continue
            if name in since:
                change = np.sum((oracle.own[name] - before[name]) ** 2)
                small = change <= 0.08 * np.sum(oracle.own[name] ** 2)
                changes.append(min(change, 0.3) if small else change)
            since.add(name)
        change = np.median(changes[-20:]) if len(changes) >= 20 else None
        if oracle.scale and change is not None and change > 0.5:
            turns.append(report["round"])
            oracle.scale, oracle.model, oracle.own, gains = 0.0, calm, {}, []
        elif oracle.scale and change is not None and change <= 0.25:
            calm = start
        elif not oracle.scale and len(gains) >= 40 and np.median(gains[-40:]) < 0.3:
            if len(turns) < 3:
                turns.append(report["round"])
                oracle.scale, changes, since, calm = 1.0, [], set(), oracle.model
        close(models[report["round"]], oracle.model)
    for name, update in strategy.memory.updates.items():
        close(update["w"], oracle.own[name])
    return turns


def test_corrections_begin_and_end_by_the_rule(tmp_path, caplog):
    """Corrections end, from the last calm model on, when clients are wild, and begin again once."""
    options = dict(AUTO, state_file=tmp_path / "state.json")
    strategy, grid = known(FedCote(**options), np.zeros(6)), Wild(LABELS)
    with caplog.at_level(logging.INFO, "flwr"):
        models, _ = train(strategy, grid, 54)
    ended, again, shut = by_the_rule(strategy, grid, models)
    assert 16 < ended < 20 and 22 < again < 32 and 36 < shut < 45
    corrected = {*range(2, ended + 1), *range(again + 1, shut + 1)}
    assert {round_ for round_, *_ in grid.corrections} == corrected
    assert strategy.memory.calm is None
    assert not list(tmp_path.glob("*calm*"))
    told = [text for text in caplog.messages if text.startswith("fedcote: c")]
    end = (
        "fedcote: corrected training is unstable (the updates of clients change by more than 0.5 "
        "nat from one to the next): back to the last calm model, without corrections"
    )
    begin = "fedcote: clients gain little on their own data: corrections begin again"
    assert told == [end, begin, end]
    assert strategy.memory.safety.gate == "shut"
    restarted = FedCote(**options)
    train(restarted, grid, 55)
    assert restarted.history[-1]["correction"] == 0.0


def test_the_gate_opens_and_shuts_by_hand():
    """As in the test in crates/fedcote-sim/src/aggregation/control/safety.rs, with Eγ = ½."""
    safety = Safety()
    # The first corrected update says nothing.
    safety.corrected("7", 50.0, 0.5)
    for _ in range(19):
        safety.corrected("7", 0.1, 0.5)
        assert safety.decide() is None
    safety.corrected("7", 0.1, 0.5)
    assert safety.decide() == "calm"
    # Of ten in twenty the median is (0.2 + 3)/2.
    for _ in range(9):
        safety.corrected("7", 1.5, 0.5)
        assert safety.decide() == "calm"
    safety.corrected("7", 1.5, 0.5)
    assert (safety.decide(), safety.gate) == ("back", "closed")
    # Forty arrivals of 0.9 nat, then calm ones: with twenty the median is (0.2 + 0.9)/2.
    for energy in [0.9] * 40 + [0.2] * 20:
        safety.gained(energy / 2, 0.5)
        assert (safety.decide(), safety.gate) == (None, "closed")
    safety.gained(0.1, 0.5)
    assert (safety.decide(), safety.gate) == (None, "reopened")
    # Between calm and unstable nothing is decided.
    for _ in range(21):
        safety.corrected("9", 0.2, 0.5)
        assert (safety.decide(), safety.gate) == (None, "reopened")
    for _ in range(11):
        safety.corrected("9", 0.3, 0.5)
    assert (safety.decide(), safety.gate) == ("back", "shut")
    for _ in range(100):
        safety.gained(0.05, 0.5)
        assert (safety.decide(), safety.gate) == (None, "shut")  # for good


def test_a_restart_changes_nothing_in_any_state_of_the_gate(tmp_path):
    whole = FedCote(**AUTO)
    straight, _ = train(whole, Wild(LABELS, trouble), 54)
    on = [report["correction"] for report in whole.history]
    turns = [round_ for round_ in range(1, 54) if on[round_ - 1] != on[round_]]
    assert whole.memory.safety.gate == "shut" and len(turns) == 3
    file, grid, gates = tmp_path / "state.json", Wild(LABELS, trouble), []
    # Before and after each change, and in between.
    stops = [1, 8, *(turn + shift for turn in turns for shift in (-1, 0, 1)), 54]
    for rounds in stops:
        strategy = FedCote(**AUTO, state_file=file)
        models, _ = train(strategy, grid, rounds)
        for round_, model in models.items():
            assert model.tobytes() == straight[round_].tobytes(), round_
        gates.append(strategy.memory.safety.gate)
        assert len(list(tmp_path.glob("*calm*"))) == (strategy.memory.calm is not None)
    changes = ["open"] * 3 + ["closed"] * 3 + ["reopened"] * 3 + ["shut"] * 3
    assert gates == changes
    assert strategy.history == whole.history and strategy.memory.state() == whole.memory.state()
    for name, update in whole.memory.updates.items():
        assert update["w"].tobytes() == strategy.memory.updates[name]["w"].tobytes()


def test_states_that_do_not_fit_are_refused(tmp_path):
    file = tmp_path / "state.json"
    train(FedCote(**AUTO, state_file=file), Wild(LABELS), 9)
    good = json.loads(file.read_text())
    del good["checksum"]  # early versions had none
    assert good["memory"]["safety"]["gate"] == "open"
    older = {**good["memory"], "scale": 1.0, "energies": []}
    del older["safety"]
    for wrong, match in [
        (dict(memory=older), "state: KeyError.'safety'. is missing or wrong"),
        (dict(calm=None), "state: the calm model is missing"),
        (dict(calm="state.json.calm.round-99.npz"), "names .*round-99.npz, which does not exist"),
        (dict(memory={**good["memory"], "safety": {"gate": "ajar"}}), "expected one of open, clo"),
    ]:
        file.write_text(json.dumps({**good, **wrong}))
        with pytest.raises(ValueError, match=match):
            train(FedCote(**AUTO, state_file=file), Wild(LABELS), 10)
    file.write_text(json.dumps(good))
    for other, match in [
        (dict(correction=1.0), "was saved with correction 'auto', this is 1.0; use the same"),
        (dict(server_rate=0.5), "was saved with server_rate 1.0, this is 0.5; use the same"),
    ]:
        with pytest.raises(ValueError, match=match):
            train(FedCote(**AUTO, **other, state_file=file), Wild(LABELS), 10)


def same_as_memory(behave, caplog):
    runs = []
    for options in (dict(aggregation="memory"), {}):
        strategy = known(FedCote(**{**AUTO, **options}), np.zeros(6))
        models, _ = train(strategy, Wild(LABELS, behave), 10)
        for report in strategy.history:
            assert report.pop("corrected", []) == []
            report.pop("correction", None)
        runs.append((np.array(list(models.values())).tobytes(), strategy.history))
    assert runs[0] == runs[1]
    return [text for text in caplog.messages if "no client reports" in text]


@pytest.mark.parametrize("length", [None, 1e300, float("nan"), "long", 0.0], ids=str)
def test_without_usable_lengths_it_is_memory_to_the_bit(length, caplog):
    said = dict(other=1) if length is None else dict(length=length)
    assert len(same_as_memory(lambda name, round_: said, caplog)) == 1


HOSTILE = [0.0, -1.0, 1e300, float("nan"), float("inf"), -float("inf"), 1e-300, 5e-324]


@pytest.mark.parametrize("length", HOSTILE, ids=str)
@pytest.mark.parametrize("energy", [0.1, 3.0])
def test_a_minority_decides_nothing_by_the_lengths_it_reports(length, energy):
    """Two clients of six; a length of 1e5, which is believed, makes every energy of theirs zero."""
    for said in (length, 1e5):
        safety, square, verdicts = Safety(), 0.5 * energy, set()
        for _ in range(20):
            for name in "abcd":
                safety.corrected(name, square, 0.5)
            for name in "ef":
                safety.corrected(name, square, said)
            verdicts.add(safety.decide())
        assert verdicts == ({None, "calm"} if energy < 0.3 else {None, "back"})
        safety = Safety()
        safety.gate = "closed"
        for _ in range(20):
            for _ in "abcd":
                safety.gained(square, 0.5)
            for _ in "ef":
                safety.gained(square, said)
            safety.decide()
        assert safety.gate == ("reopened" if energy < 0.3 else "closed")


def test_lengths_alone_never_open_the_gate():
    safety = Safety()
    safety.gate = "closed"
    for length in HOSTILE * 20:
        safety.gained(1e-3, length)
        assert safety.decide() is None
    # Paths of 1e-300 count, with gains that are huge, and finite.
    assert max(safety.recent) == 1e300 and json.loads(json.dumps(safety.state())) == safety.state()


def test_who_does_not_report_a_length_is_not_corrected():
    """It could not be watched; the others are."""
    said = dict(length=float("nan"))
    grid = Quadratic(LABELS, lambda name, round_: said if name in "24" else None)
    train(known(FedCote(**AUTO), np.zeros(6)), grid, 4)
    assert {name for _, name, _ in grid.corrections} == {"0", "1", "3", "5"}
