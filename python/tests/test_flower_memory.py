"""The strategy with memory, on a Grid without processes, against formulas in NumPy."""

import json

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402

from fedcote import select  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

LABELS = oracles.instance()[0]
NAMES = [str(client) for client in range(6)]
FAILURE = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8])
MEMORY = dict(aggregation="memory", selected=4, seed=3, fraction_evaluate=0.0)


class Learning(FakeGrid):
    """Clients whose updates depend on the model, on who they are, and on the round."""

    def learn(self, model, client, round_):
        goal = np.float32([client, -client, round_ / 10, 1])
        return model + np.float32(0.3) * (goal - model)


class Oracle:
    """The same in float64: w ← w + Σ β_i u_i / Σ β_i over those heard of."""

    def __init__(self, weights):
        self.weights, self.model, self.latest = weights, np.zeros(4), {}

    def play(self, arrived, round_):
        for name in arrived:
            client = int(name)
            goal = np.array([client, -client, round_ / 10, 1])
            self.latest[name] = 0.3 * (goal - self.model)
        weights = {name: self.weights[int(name)] for name in self.latest}
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items()}
        for name, share in self.shares.items():
            self.model = self.model + share * self.latest[name]

    def divergence(self, labels=LABELS):
        shares = labels / labels.sum(axis=1, keepdims=True)
        mix = sum(share * shares[int(name)] for name, share in self.shares.items())
        return oracles.chi_square(mix, labels.sum(axis=0) / labels.sum())


def strategy_with(known=FAILURE, **options):
    strategy = FedCote(**{**MEMORY, **options})
    for name, failure in zip(NAMES, known, strict=True):
        strategy.selector.set_failure(name, failure)
    return strategy


def faults(seed=5):
    generator = np.random.default_rng(seed)
    return lambda name, round_: 2 if generator.random() < FAILURE[int(name)] else None


def train(strategy, grid, rounds, each=lambda round_: None):
    """The model after every round; ``each`` is called after each, and before the first."""
    models = {}

    def evaluate(round_, arrays):
        models[round_] = arrays["w"].numpy().copy()
        each(round_)

    result = strategy.start(grid, initial(), rounds, timeout=30, evaluate_fn=evaluate)
    return models, result


def test_rounds_are_those_of_the_formulas():
    strategy, grid = strategy_with(), Learning(LABELS, faults())
    models, result = train(strategy, grid, 40)
    # Nobody is left out, so that the target is everyone's share of the data.
    oracle = Oracle(LABELS.sum(axis=1) / LABELS.sum())
    quiet = 0
    for report in strategy.history:
        if report["arrived"]:
            oracle.play(report["arrived"], report["round"])
            assert report["label_divergence_realised"] == pytest.approx(
                oracle.divergence(), abs=1e-12
            )
        quiet += len(report["arrived"]) < len(oracle.latest)
        np.testing.assert_allclose(models[report["round"]], oracle.model, rtol=2e-5, atol=2e-5)
        assert report["remembered"] == len(oracle.latest)
        assert report["memory_bytes"] == len(oracle.latest) * (4 * 4 + 8)
        assert report["label_divergence"] < 1e-12
    assert len(oracle.latest) == 6 and quiet > 30  # most were remembered in most rounds
    assert result.arrays["steps"].numpy() == 5 and result.arrays["steps"].numpy().dtype == np.int64
    metrics = result.train_metrics_clientapp[40]
    assert metrics["fedcote-remembered"] == 6 and metrics["fedcote-memory-bytes"] == 144
    wanted = oracle.weights / np.sqrt(1 - FAILURE)
    found = strategy.selector.solution()
    np.testing.assert_allclose(found.selection, wanted / wanted.sum(), rtol=1e-9)
    strategy.summary()


def test_who_is_left_out_loses_its_say_and_gets_it_back():
    strategy, grid = strategy_with(known=np.zeros(6)), Learning(LABELS)
    left_out = {4: 0.97, 8: 0.0}  # client 2, after these rounds

    def each(round_):
        if round_ in left_out:
            strategy.selector.set_failure("2", left_out[round_])

    models, _ = train(strategy, grid, 12, each)
    everyone = LABELS.sum(axis=1) / LABELS.sum()
    failure = np.zeros(6)
    failure[2] = 0.97
    others = select(LABELS, failure, 4).target
    assert others[2] == 0.0
    oracle = Oracle(everyone)
    for report in strategy.history:
        assert "2" not in report["drawn"] or not 4 < report["round"] <= 8
        oracle.weights = others if 4 < report["round"] <= 8 else everyone
        oracle.play(report["arrived"], report["round"])
        np.testing.assert_allclose(models[report["round"]], oracle.model, rtol=2e-5, atol=2e-5)
    assert "2" in oracle.latest


def test_clients_join_and_leave():
    """Who is away keeps its say, until it has been away for long."""
    strategy = strategy_with(known=np.zeros(6), selected=12, forget_after=3)
    grid = Learning(LABELS)
    nodes = dict(zip(NAMES, grid.nodes, strict=True))
    grid.present -= {nodes["4"], nodes["5"]}
    present = {3: ("join", "4"), 5: ("leave", "0"), 11: ("join", "0"), 12: ("leave", "1"), 14: ("join", "1")}  # fmt: skip

    def each(round_):
        if round_ in present:
            what, name = present[round_]
            (grid.present.add if what == "join" else grid.present.discard)(nodes[name])

    models, _ = train(strategy, grid, 16, each)
    oracle, heard = Oracle(np.zeros(6)), {}
    for report in strategy.history:
        round_ = report["round"]
        if round_ == 5 + 3 + 1:  # client 0 was there in round 5, and may be away for three more
            del oracle.latest["0"]
        everyone = {*"0123"} | ({"4"} if round_ > 3 else set())
        if 8 < round_ <= 11:
            everyone -= {"0"}
        counts = np.array([LABELS[int(name)].sum() * (name in everyone) for name in NAMES])
        oracle.weights = counts / counts.sum()
        oracle.play(report["arrived"], round_)
        np.testing.assert_allclose(models[round_], oracle.model, rtol=2e-5, atol=2e-5)
        assert report["remembered"] == len(oracle.latest)
        heard[round_] = set(oracle.latest)
        assert not {"5"} & report["drawn"].keys()
        assert "0" not in report["drawn"] or not 5 < round_ <= 11
    assert "0" in heard[8] and "0" not in heard[9] and "0" in heard[16]
    assert "1" in heard[13] and "4" in heard[16]  # client 1 was away for two rounds only


BAD = ["nan", "infinite", "shape", "dtype", "text", "huge-float64", oracles.DAMAGED["minus"]]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_updates_do_not_enter_memory(bad):
    strategy = strategy_with(known=np.zeros(6), selected=12)
    grid = Learning(LABELS, lambda name, round_: bad if name == "3" and round_ > 2 else None)
    models, _ = train(strategy, grid, 6)
    oracle = Oracle(LABELS.sum(axis=1) / LABELS.sum())
    for report in strategy.history:
        assert "3" in report["drawn"]
        assert ("3" in report["arrived"]) == (report["round"] <= 2)
        oracle.play(report["arrived"], report["round"])
        np.testing.assert_allclose(models[report["round"]], oracle.model, rtol=2e-5, atol=2e-5)
    assert strategy.memory.rounds["3"] == 2


def test_what_is_remembered_is_clipped():
    strategy = strategy_with(known=np.zeros(6), clip=0.5, selected=12)
    train(strategy, FakeGrid(LABELS), 3)
    for update in strategy.memory.updates.values():
        assert np.linalg.norm(update["w"]) == pytest.approx(0.5, rel=1e-6)
        assert update["steps"] == 0


def test_a_model_that_would_not_be_finite_is_not_taken():
    """Without a bound huge updates pass; when they add up to infinity, memory is emptied."""
    strategy = strategy_with(known=np.zeros(6), max_attempts=1, selected=12)
    grid = FakeGrid(LABELS, lambda name, round_: None if int(name) == round_ - 1 else 2)
    grid.learn = lambda model, client, round_: np.full(4, 3e38, np.float32)
    models, _ = train(strategy, grid, 3)
    assert all(np.isfinite(model).all() for model in models.values())
    first, second, third = strategy.history
    assert first["arrived"] == ["0"] and not second["arrived"] and third["arrived"] == ["2"]
    assert second["remembered"] == 0 and second["label_divergence_realised"] is None
    assert second["failed"]["1"] == "the model would not be finite"


def test_nobody_with_a_say_arrives():
    """Only a client that the threshold leaves out is there: it is asked, and the others step on."""
    known = [0.97, 0, 0, 0, 0, 0]
    strategy = strategy_with(known, selected=12, forget_after=2, min_available_nodes=1)
    grid = Learning(LABELS)

    def each(round_):
        if round_ == 1:
            grid.present.intersection_update(grid.nodes[:1])

    models, _ = train(strategy, grid, 5, each)
    first, *later = strategy.history
    assert "0" not in first["drawn"] and len(first["arrived"]) > 2
    assert all(list(report["drawn"]) == ["0"] for report in later)
    # The others are remembered for two rounds, and have all the say; then client 0 is all there is.
    oracle = Oracle(select(LABELS, known, 12).target)
    for report in strategy.history:
        if report["round"] == 2:  # clients that are neither here nor remembered do not count
            here = [0, *sorted(int(name) for name in first["arrived"])]
            oracle.weights = np.zeros(6)
            oracle.weights[here] = select(LABELS[here], np.array(known)[here], 12).target
            assert oracle.weights[0] == 0.0
        if report["round"] == 4:
            oracle.latest, oracle.weights = {}, [1.0, 0, 0, 0, 0, 0]
        oracle.play(report["arrived"], report["round"])
        np.testing.assert_allclose(models[report["round"]], oracle.model, rtol=2e-5, atol=2e-5)
    assert strategy.history[-1]["remembered"] == 1


def trouble(name, round_):
    return 2 if (int(name) + round_) % 3 == 0 else None


def test_a_restart_changes_nothing(tmp_path):
    options = dict(MEMORY, forget_after=2)

    def away(grid):
        return lambda round_: grid.present.discard(grid.nodes[1]) if round_ == 2 else None

    grid = Learning(LABELS, trouble)
    whole = FedCote(**options)
    straight, result = train(whole, grid, 9, away(grid))

    file = tmp_path / "state.json"
    grid = Learning(LABELS, trouble)
    first = FedCote(**options, state_file=file)
    train(first, grid, 3, away(grid))
    saved = json.loads(file.read_text())
    assert set(saved["updates"]) == set(first.memory.updates) and saved["memory"]["seen"]
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert set(files) == {"state.json", "state.json.round-3.npz", *saved["updates"].values()}

    second = FedCote(**options, state_file=file)
    train(second, grid, 4)
    # Updates that stayed are not written again, those that went are gone.
    later = json.loads(file.read_text())
    kept = set(saved["updates"].values()) & set(later["updates"].values())
    assert kept and all((tmp_path / name).stat().st_mtime_ns == files[name] for name in kept)
    assert {path.name for path in tmp_path.iterdir()} == {
        "state.json", "state.json.round-4.npz", *later["updates"].values(),
    }  # fmt: skip

    third = FedCote(**options, state_file=file)
    models, again = train(third, grid, 9)
    assert third.history == whole.history
    np.testing.assert_array_equal(again.arrays["w"].numpy(), result.arrays["w"].numpy())
    for round_ in range(4, 10):
        np.testing.assert_array_equal(models[round_], straight[round_])
    assert third.memory.bytes == whole.memory.bytes

    with pytest.raises(ValueError, match="saved with aggregation 'memory', this is 'mean'"):
        train(FedCote(**{**options, "aggregation": "mean"}, state_file=file), grid, 9)


def test_a_server_that_dies_in_a_round_repeats_it(tmp_path):
    class Killed(Exception):
        pass

    def dies(name, round_):
        if round_ == 3:
            raise Killed
        return trouble(name, round_)

    whole = FedCote(**MEMORY)
    straight, _ = train(whole, Learning(LABELS, trouble), 5)
    file = tmp_path / "state.json"
    with pytest.raises(Killed):
        train(FedCote(**MEMORY, state_file=file), Learning(LABELS, dies), 5)
    second = FedCote(**MEMORY, state_file=file)
    models, _ = train(second, Learning(LABELS, trouble), 5)
    assert second.history == whole.history
    np.testing.assert_array_equal(models[5], straight[5])


def test_damaged_updates_are_refused_by_name(tmp_path):
    file = tmp_path / "state.json"
    train(FedCote(**MEMORY, state_file=file), Learning(LABELS), 1)
    update = tmp_path / next(iter(json.loads(file.read_text())["updates"].values()))
    good = update.read_bytes()
    for damaged in (b"", good[: len(good) // 2], good[:40] + b"?" + good[41:] + b"!" * 9):
        update.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"state\.json\.update-\w+\.round-1\.npz: is no state"):
            train(FedCote(**MEMORY, state_file=file), Learning(LABELS), 2)
    np.savez(update, **{"array-0": np.zeros(5, np.float32), "array-1": np.zeros(())})
    with pytest.raises(ValueError, match=r"state\.json: holds another model"):
        train(FedCote(**MEMORY, state_file=file), Learning(LABELS), 2)
    update.unlink()
    with pytest.raises(ValueError, match="which does not exist"):
        train(FedCote(**MEMORY, state_file=file), Learning(LABELS), 2)


def test_a_new_start_forgets():
    strategy = strategy_with(known=np.zeros(6))
    train(strategy, Learning(LABELS), 3)
    assert strategy.memory.updates
    train(strategy, Learning(LABELS), 0)
    assert strategy.memory.updates == {}


def test_options():
    for wrong, match in [
        (dict(aggregation="median"), "aggregation: expected one of mean, memory, control"),
        (dict(aggregation="mean", aim="freshness"), 'aim: "freshness" is for a server'),
        (dict(forget_after=0), "forget_after: must be at least 1"),
        (dict(aim="speed"), "aim: must be one of appearance, freshness"),
    ]:
        with pytest.raises(ValueError, match=match):
            FedCote(**{**MEMORY, **wrong})
    choices = lambda **options: FedCote(**options).selector.state()["core"]["choices"]  # noqa: E731
    for options, aim, draws, threshold in [
        (dict(), "appearance", "independent", 0.85),
        (dict(threshold=0.9), "appearance", "independent", 0.9),
        (dict(aggregation="memory"), "freshness", "systematic", 0.95),
        (dict(aggregation="memory", aim="appearance"), "appearance", "systematic", 0.95),
        (dict(aggregation="memory", draws="independent"), "freshness", "independent", 0.95),
    ]:
        found = choices(**options)
        assert (found["aim"], found["draws"], found["threshold"]) == (aim, draws, threshold)
