"""The strategy with corrections, on a Grid without processes, against formulas in NumPy."""

import json
import logging

import numpy as np
import pytest

pytest.importorskip("flwr")

from example_grid import ExampleGrid, settings  # noqa: E402
from fake_grid import FakeGrid  # noqa: E402
from flwr.app import ArrayRecord, MetricRecord  # noqa: E402
from test_flower_memory import BAD, FAILURE, LABELS, NAMES, faults, train, trouble  # noqa: E402

import fedcote  # noqa: E402
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


def test_control_needs_fewer_rounds_than_memory():
    """Every upload fails three times out of ten; control has 8 rounds for what memory does in 12.

    In one process: with real ones each message costs seconds. It takes 7 with each of the seeds 1 to 5
    (python/bench/example.py).
    """
    from app import task  # beside `example_grid`
    from app.server import strategy_named

    config = settings() | {"failure-rates": "0.3", "local-steps": 20, "rate": 0.05}
    data = fedcote.mnist()
    best = {}
    for name, rounds in (("fedcote-memory", 12), ("fedcote-control", 8)):
        accuracies = []

        def evaluate(round_, arrays, found=accuracies):
            model = arrays.to_numpy_ndarrays()
            found.append(task.accuracy(model, data.test_images, data.test_labels))
            return MetricRecord({})

        strategy = strategy_named(name, config)
        start = ArrayRecord(task.initial_model(int(config["seed"])))
        strategy.start(ExampleGrid(5, config), start, num_rounds=rounds, evaluate_fn=evaluate)
        best[name] = max(accuracies)
        assert sum(len(report["failed"]) for report in strategy.history) > rounds / 2
    assert best["fedcote-control"] >= best["fedcote-memory"] > 0.85, best
