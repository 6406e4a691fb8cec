"""The strategy with corrections, on a Grid without processes, against formulas in NumPy."""

import json
import logging

import numpy as np
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid  # noqa: E402
from test_flower_memory import BAD, FAILURE, LABELS, NAMES, faults, train, trouble  # noqa: E402

from fedcote._control import Safety  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

CONTROL = dict(aggregation="control", selected=4, seed=3, fraction_evaluate=0.0)
MEMORY = dict(CONTROL, aggregation="memory")
EVERYONE = dict(CONTROL, selected=12, correction=1.0)


class Quadratic(FakeGrid):
    """Clients that descend on curvature · (w − goal)² / 2 with rate ½, and add corrections."""

    rate = 0.5
    #: Clients that do not know of corrections, and clients that confirm without adding.
    ignore, lie = (), ()

    def curvature(self, client):
        return np.float32(1 / (1 + client))

    def goal(self, client, round_):
        return np.float32([client, -client, 2, 12 * client])

    def learn(self, model, client, round_):
        model = {"w": model}
        for _ in range(self.steps):
            slope = self.curvature(client) * (model["w"] - self.goal(client, round_))
            model["w"] -= np.float32(self.rate) * slope
            if self.names[client] not in (*self.ignore, *self.lie):
                self.correction.add(model)
        if self.names[client] in self.lie:
            self.correction.confirm()
        return model["w"]


class Oracle:
    """The same in float64, in the order of the derivation: v = λ (ū − u_i), u_i = y − x − v."""

    def __init__(self, grid, weights, scale=1.0, server_rate=1.0):
        self.grid, self.weights, self.scale = grid, np.array(weights), scale
        self.server_rate, self.model, self.own, self.sent = server_rate, np.zeros(4), {}, {}

    def mean(self):
        total = sum(self.weights[int(name)] for name in self.own)
        return sum(self.weights[int(name)] * u for name, u in self.own.items()) / total

    def play(self, report):
        grid, found = self.grid, {}
        for name in report["arrived"]:
            client, corrected = int(name), name in self.own
            v = self.scale * (self.mean() - self.own[name]) if corrected else np.zeros(4)
            if name in grid.ignore:
                v = 0 * v
            y = self.model.copy()
            for _ in range(grid.steps):
                slope = float(grid.curvature(client)) * (y - grid.goal(client, report["round"]))
                y = y - grid.rate * slope + v / grid.steps
            found[name] = y - self.model - v
        self.own |= found
        if found:
            self.model = self.model + self.server_rate * self.mean()


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_two_clients_worked_by_hand():
    """F_0 = w²/2 and F_1 = (w − 12)²/4, two steps with rate ½; the minimum of F_0 + F_1 is 4.

    Round 1, w = 0: client 0 stays, u_0 = 0; client 1 goes to 3, 5.25, u_1 = 5.25; ū = 2.625.
    Round 2, w = 2.625: v_0 = 2.625, v_1 = −2.625, 1.3125 per step. Client 0 goes to 1.3125 +
    1.3125 = 2.625, and again: u_0 = 0 − 2.625. Client 1 goes to 4.96875 − 1.3125 = 3.65625, then
    5.7421875 − 1.3125 = 4.4296875: u_1 = 1.8046875 + 2.625; ū = 0.90234375.
    """
    both = [[10, 0], [0, 10]]
    grid, strategy = Quadratic(both), FedCote(**EVERYONE)
    models, _ = train(strategy, grid, 2)
    assert [models[round_][3] for round_ in range(3)] == [0, 2.625, 3.52734375]
    assert strategy.memory.updates["0"]["w"][3] == -2.625
    assert strategy.memory.updates["1"]["w"][3] == 4.4296875
    assert [(round_, name) for round_, name, _ in sorted(grid.corrections)] == [(2, "0"), (2, "1")]
    for _, name, arrays in grid.corrections:
        assert set(arrays) == {"w"}  # whole numbers are not corrected
        assert arrays["w"][3] == {"0": 2.625, "1": -2.625}[name]
    # Corrected clients end at the minimum; those with memory alone at 5.25 / 1.1875.
    models, _ = train(FedCote(**EVERYONE), Quadratic(both), 60)
    close(models[60][3], 4)
    models, _ = train(FedCote(**{**MEMORY, "selected": 12}), Quadratic(both), 60)
    close(models[60][3], 5.25 / 1.1875)


def known(strategy, failure=FAILURE):
    for name, probability in zip(NAMES, failure, strict=True):
        strategy.selector.set_failure(name, probability)
    return strategy


@pytest.mark.parametrize("ignore", [(), ("0", "3"), NAMES], ids=["all", "some", "none"])
@pytest.mark.parametrize(("scale", "server_rate"), [(1.0, 1.0), (0.5, 0.75)])
def test_rounds_are_those_of_the_formulas(ignore, scale, server_rate):
    """Also where some clients or all do not know of corrections."""
    strategy = known(FedCote(**CONTROL, correction=scale, server_rate=server_rate))
    grid = Quadratic(LABELS, faults())
    grid.ignore = ignore
    models, result = train(strategy, grid, 40)
    oracle = Oracle(grid, LABELS.sum(axis=1) / LABELS.sum(), scale, server_rate)
    for report in strategy.history:
        known_before = set(oracle.own)
        oracle.play(report)
        close(models[report["round"]], oracle.model)
        wanted = [name for name in report["arrived"] if name in known_before and name not in ignore]
        assert report["corrected"] == wanted
    for name, update in strategy.memory.updates.items():
        close(update["w"], oracle.own[name])
    metrics = result.train_metrics_clientapp[40]
    assert metrics["fedcote-corrected"] == len(strategy.history[-1]["corrected"])
    assert result.arrays["steps"].numpy() == 5
    strategy.summary()


def test_without_corrections_it_is_memory_to_the_bit():
    runs = []
    for options in (dict(aggregation="memory"), dict(correction=0.0)):
        strategy, grid = FedCote(**{**CONTROL, **options}), Quadratic(LABELS, faults())
        models, _ = train(strategy, grid, 25)
        for report in strategy.history:
            assert report.pop("corrected", []) == []
            assert report.pop("correction", 0.0) == 0.0
        runs.append((np.array(list(models.values())), strategy, grid))
    (memory, first, _), (control, second, grid) = runs
    assert memory.tobytes() == control.tobytes() and first.history == second.history
    assert grid.corrections == []
    for name, update in first.memory.updates.items():
        assert update["w"].tobytes() == second.memory.updates[name]["w"].tobytes()


def test_nothing_is_sent_where_it_would_be_zero():
    grid = Quadratic([[1, 1]])
    strategy = FedCote(**{**CONTROL, "selected": 1}, min_available_nodes=1)
    train(strategy, grid, 4)  # alone, a client is the mean
    assert grid.corrections == []
    grid = Quadratic(LABELS)
    train(FedCote(**EVERYONE), grid, 1)
    assert grid.corrections == []  # nobody was heard of


def test_a_restart_changes_nothing(tmp_path):
    options = dict(CONTROL, forget_after=2)

    def away(grid):
        return lambda round_: grid.present.discard(grid.nodes[1]) if round_ == 2 else None

    grid = Quadratic(LABELS, trouble)
    whole = FedCote(**options)
    straight, _ = train(whole, grid, 9, away(grid))
    file = tmp_path / "state.json"
    grid = Quadratic(LABELS, trouble)
    train(FedCote(**options, state_file=file), grid, 3, away(grid))
    train(FedCote(**options, state_file=file), grid, 4)
    third = FedCote(**options, state_file=file)
    models, _ = train(third, grid, 9)
    assert third.history == whole.history
    for round_ in range(4, 10):
        assert models[round_].tobytes() == straight[round_].tobytes()
    with pytest.raises(ValueError, match="saved with aggregation 'control', this is 'memory'"):
        train(FedCote(**{**options, "aggregation": "memory"}, state_file=file), grid, 9)


def test_a_server_that_dies_in_a_round_repeats_it(tmp_path):
    class Killed(Exception):
        pass

    def dies(name, round_):
        if round_ == 4 and name != "0":
            raise Killed
        return trouble(name, round_)

    whole = FedCote(**EVERYONE)
    straight, _ = train(whole, Quadratic(LABELS, trouble), 6)
    file = tmp_path / "state.json"
    with pytest.raises(Killed):
        train(FedCote(**EVERYONE, state_file=file), Quadratic(LABELS, dies), 6)
    assert json.loads(file.read_text())["round"] == 3
    second = FedCote(**EVERYONE, state_file=file)
    models, _ = train(second, Quadratic(LABELS, trouble), 6)
    assert second.history == whole.history and models[6].tobytes() == straight[6].tobytes()


def test_clients_leave_and_return():
    """Who returns in time is corrected by what is remembered of it, who was forgotten is not."""
    strategy = known(FedCote(**EVERYONE, forget_after=3), np.zeros(6))
    grid = Quadratic(LABELS)
    nodes = dict(zip(NAMES, grid.nodes, strict=True))
    moves = {2: ("leave", "0"), 4: ("join", "0"), 6: ("leave", "1"), 11: ("join", "1")}

    def each(round_):
        if round_ in moves:
            what, name = moves[round_]
            (grid.present.add if what == "join" else grid.present.discard)(nodes[name])

    models, _ = train(strategy, grid, 14, each)
    oracle = Oracle(grid, np.zeros(6))
    for report in strategy.history:
        round_ = report["round"]
        if round_ == 6 + 3 + 1:
            del oracle.own["1"]
        here = {name for name in NAMES if name != "1" or not 10 <= round_ <= 11}
        counts = np.array([LABELS[int(name)].sum() * (name in here) for name in NAMES])
        oracle.weights = counts / counts.sum()
        oracle.play(report)
        close(models[round_], oracle.model)
    told = {name: {at for at, who, _ in grid.corrections if who == name} for name in NAMES}
    asked = {name: sorted(at for at, who in grid.asked if who == name) for name in NAMES}
    assert {3, 4}.isdisjoint(asked["0"])  # away, but remembered
    assert told["0"] == set(asked["0"]) - {1}
    first, *later = [round_ for round_ in asked["1"] if round_ > 6]
    assert first > 11 and later  # away, and forgotten
    assert told["1"] == set(asked["1"]) - {1, first}


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_updates_do_not_enter(bad):
    strategy = known(FedCote(**EVERYONE), np.zeros(6))
    grid = Quadratic(LABELS, lambda name, round_: bad if name == "3" and round_ > 2 else None)
    models, _ = train(strategy, grid, 6)
    oracle = Oracle(grid, LABELS.sum(axis=1) / LABELS.sum())
    for report in strategy.history:
        assert ("3" in report["arrived"]) == (report["round"] <= 2)
        oracle.play(report)
        close(models[report["round"]], oracle.model)
    assert strategy.memory.rounds["3"] == 2


NONSENSE = [
    dict(corrected=["steps", "", "nowhere"]), dict(corrected=1), dict(corrected="w"),
    dict(corrected=[1, 2]), dict(corrected=[b"w"]), dict(corrected=[]), dict(other=1.5),
]  # fmt: skip


@pytest.mark.parametrize("said", NONSENSE, ids=str)
def test_what_clients_say_of_corrections_is_not_trusted(said):
    """Clients that do not add corrections may say of them what they like, also if none was sent."""
    strategy = known(FedCote(**EVERYONE), np.zeros(6))
    grid = Quadratic(LABELS, lambda name, round_: said if name in "24" else None)
    grid.ignore = ("2", "4")
    models, _ = train(strategy, grid, 12)
    oracle = Oracle(grid, LABELS.sum(axis=1) / LABELS.sum())
    for report in strategy.history:
        heard = set(oracle.own) - {"2", "4"}
        oracle.play(report)
        assert report["corrected"] == [name for name in report["arrived"] if name in heard]
        close(models[report["round"]], oracle.model)


def test_nothing_is_taken_away_that_was_not_sent():
    """Who confirms a correction that it was not sent changes nothing."""
    said = dict(corrected=["w", "steps"])
    runs = []
    for behave in (lambda name, round_: None, lambda name, round_: said if round_ == 1 else None):
        models, _ = train(FedCote(**EVERYONE), Quadratic(LABELS, behave), 5)
        runs.append(np.array(list(models.values())).tobytes())
    assert runs[0] == runs[1]


def test_who_ignores_corrections_is_named_once(caplog):
    grid = Quadratic(LABELS)
    grid.ignore = ("1", "4")
    with caplog.at_level(logging.WARNING, "flwr"):
        train(FedCote(**EVERYONE), grid, 4)
    warnings = [record.getMessage() for record in caplog.records]
    assert len([text for text in warnings if "count as uncorrected: 1, 4;" in text]) == 1


def test_bounds_are_for_what_the_client_did_itself():
    """Also of liars, and of those whose updates would be huge."""
    huge = lambda name, round_: "huge" if name == "1" and round_ > 3 else None  # noqa: E731
    for lie in ((), ("2",)):
        strategy = known(FedCote(**EVERYONE, clip=0.5), np.zeros(6))
        grid = Quadratic(LABELS, huge)
        grid.lie = lie
        models, _ = train(strategy, grid, 20)
        for update in strategy.memory.updates.values():
            assert np.linalg.norm(update["w"]) < 0.5 * (1 + 1e-5)
        steps = np.diff(np.array(list(models.values())), axis=0)
        assert np.linalg.norm(steps, axis=1).max() < 0.5 * (1 + 1e-5)
    strategy = known(FedCote(**EVERYONE, max_norm=1e5), np.zeros(6))
    train(strategy, Quadratic(LABELS, huge), 6)
    for report in strategy.history[3:]:
        assert report["failed"]["1"].startswith("update is too long: its norm is ")


def test_updates_too_large_to_be_corrected():
    """Without a bound huge updates pass, and corrections that would overflow are not sent."""
    grid = FakeGrid(LABELS)
    grid.learn = lambda model, client, round_: np.full(4, 3e38 if client % 2 else -3e38, np.float32)
    models, _ = train(FedCote(**EVERYONE, max_attempts=1), grid, 4)
    assert all(np.isfinite(model).all() for model in models.values())
    for *_, arrays in grid.corrections:
        assert np.isfinite(arrays["w"]).all()


def test_a_round_that_is_drawn_again_is_corrected_again():
    tried = []

    def behave(name, round_):
        tried.append(name)
        return 2 if round_ == 3 and len(tried) < 19 else None

    strategy, grid = known(FedCote(**EVERYONE), np.zeros(6)), Quadratic(LABELS, behave)
    models, _ = train(strategy, grid, 4)
    assert [report["attempts"] for report in strategy.history] == [1, 1, 2, 1]
    oracle = Oracle(grid, LABELS.sum(axis=1) / LABELS.sum())
    for report in strategy.history:
        oracle.play(report)
        close(models[report["round"]], oracle.model)


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


def test_options():
    for wrong, match in [
        (dict(correction=1.5), 'correction: must be "auto" or from 0 to 1'),
        (dict(correction="safe"), 'correction: must be "auto" or from 0 to 1'),
        (dict(correction=float("nan")), 'correction: must be "auto" or from 0 to 1'),
        (dict(server_rate=0.0), "server_rate: must be a positive number"),
        (dict(aggregation="memory", correction=0.5), 'correction: is for aggregation="control"'),
        (dict(aggregation="mean", server_rate=0.5), "server_rate: is for"),
    ]:
        with pytest.raises(ValueError, match=match):
            FedCote(**{**CONTROL, **wrong})
    choices = FedCote(aggregation="control").selector.state()["core"]["choices"]
    wanted = FedCote(aggregation="memory").selector.state()["core"]["choices"]
    assert choices == wanted
