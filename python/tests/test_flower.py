"""The strategy on a Grid without processes."""

import json
import math

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402
from flwr.serverapp.strategy import FedAvg  # noqa: E402

from fedcote.flower import FedCote  # noqa: E402

LABELS = oracles.instance()[0]
FEW = dict(selected=4, seed=3, fraction_evaluate=0.0)


def train(strategy, grid, rounds=5, **options):
    return strategy.start(grid, initial(), num_rounds=rounds, timeout=30, **options)


def drawn(strategy):
    return [report["drawn"] for report in strategy.history]


def test_a_round_averages_by_draws():
    strategy, grid = FedCote(**FEW), FakeGrid(LABELS)
    result = train(strategy, grid, rounds=1)
    counts = strategy.history[0]["drawn"]
    assert sum(counts.values()) == 4
    assert sorted(name for _, name in grid.asked) == sorted(counts)  # one message per client
    mean = sum((1 + int(name)) * count for name, count in counts.items()) / 4
    np.testing.assert_allclose(result.arrays["w"].numpy(), np.full(4, mean), rtol=1e-6)
    steps = result.arrays["steps"].numpy()
    assert steps == 5 and steps.dtype == np.int64 and steps.shape == ()
    metrics = result.train_metrics_clientapp[1]
    assert metrics["fedcote-arrived"] == metrics["fedcote-drawn"] == len(counts)
    assert metrics["fedcote-attempts"] == 1
    shares = LABELS / LABELS.sum(axis=1, keepdims=True)
    mix = sum(shares[int(name)] * count / 4 for name, count in counts.items())
    wanted = oracles.chi_square(mix, LABELS.sum(axis=0) / LABELS.sum())
    assert metrics["fedcote-label-divergence-realised"] == pytest.approx(wanted)
    examples = {name: 10 * (int(name) + 1) for name in counts}
    loss = sum(int(n) * e for n, e in examples.items()) / sum(examples.values())
    assert metrics["loss"] == pytest.approx(loss)


def test_it_is_a_drop_in_for_fedavg():
    options = dict(
        fraction_train=0.5, fraction_evaluate=0.0, min_train_nodes=2, min_available_nodes=3,
        weighted_by_key="num-examples", arrayrecord_key="arrays", configrecord_key="config",
    )  # fmt: skip
    strategy = FedCote(**options)
    assert isinstance(strategy, FedAvg)
    for name, value in options.items():
        assert getattr(strategy, name) == value or name == "min_evaluate_nodes"
    result = train(strategy, FakeGrid(LABELS), rounds=2)
    assert sum(strategy.history[0]["drawn"].values()) == 3  # half of six
    assert set(result.train_metrics_clientapp) == {1, 2}
    strategy.summary()


BLAME = {"0": 2, "1": "silent", "2": "nan", "3": 5, "4": "shape"}


def test_the_right_clients_are_blamed():
    strategy = FedCote(**{**FEW, "selected": 12})
    grid = FakeGrid(LABELS, lambda name, round: BLAME.get(name))
    result = train(strategy, grid, rounds=6)
    failed = {}
    for report in strategy.history:
        assert set(report["arrived"]) <= {"5"}
        failed |= report["failed"]
    assert failed["0"] == "error 2: as ordered"
    assert failed["1"] == "no reply in time"
    assert failed["2"] == "update is not finite: w"
    assert failed["3"] == "error 5: as ordered"
    assert failed["4"] == "malformed update: w has shape (3,), not (4,)"
    failures = dict(zip(strategy.selector.clients, strategy.selector.failures(), strict=True))
    assert failures["5"] < 0.3
    assert all(failures[name] > 0.6 for name in "01234")
    assert np.isfinite(result.arrays["w"].numpy()).all()
    assert (result.arrays["w"].numpy() >= 6).all()


HOSTILE = {"0": "infinite", "1": "dtype", "2": "text", "3": "huge", "4": "huge-float64"}


def test_hostile_updates_are_rejected_and_count_as_failures():
    strategy = FedCote(**{**FEW, "selected": 12}, max_norm=100.0)
    result = train(strategy, FakeGrid(LABELS, lambda name, round: HOSTILE.get(name)), rounds=6)
    failed = {}
    for report in strategy.history:
        assert set(report["arrived"]) <= {"5"}
        failed |= report["failed"]
    assert failed["0"] == "update is not finite: w"
    assert failed["1"] == "malformed update: w has dtype complex64, not float32"
    assert failed["2"].startswith("malformed update: ")
    assert failed["3"].startswith("update is too long: its norm is ")
    assert failed["3"].endswith(", the bound is 100")
    assert failed["4"] == "update is not finite: w"  # too large for the model's float32
    assert np.isfinite(result.arrays["w"].numpy()).all()
    assert result.arrays["w"].numpy().dtype == np.float32
    believed = {name: strategy.selector.failure(name) for name in "012345"}
    assert min(believed[name] for name in HOSTILE) > believed["5"]


@pytest.mark.parametrize("name", oracles.DAMAGED)
def test_one_malformed_upload_does_not_stop_the_federation(name):
    """Regression: what a header of an array can raise beyond ValueError left aggregate_train."""
    strategy = FedCote(**{**FEW, "selected": 12})
    damaged = oracles.DAMAGED[name]
    result = train(strategy, FakeGrid(LABELS, lambda client, _: damaged if client == "3" else None))
    for report in strategy.history:
        assert "3" not in report["arrived"] and report["arrived"]
    reasons = {report["failed"].get("3", "malformed update: ") for report in strategy.history}
    assert all(reason.startswith("malformed update: ") for reason in reasons), reasons
    assert strategy.selector.failure("3") > 0.5
    assert np.isfinite(result.arrays["w"].numpy()).all()


def test_metrics_that_do_not_fit_together_are_left_out():
    """Regression: one client's metrics of another kind left aggregate_train as an error."""
    strategy = FedCote(**{**FEW, "selected": 12})
    grid = FakeGrid(LABELS, lambda name, round: "metrics" if name == "3" else None)
    result = train(strategy, grid, rounds=2)
    assert all("3" in report["arrived"] for report in strategy.history)
    assert result.train_metrics_clientapp[1]["fedcote-arrived"] > 0


def test_an_update_is_scaled_down_to_the_clip():
    """A client's honest update is 1 + its number in each of four places: of norm 2 + 2 · number."""
    strategy, grid = FedCote(**FEW, clip=6.0), FakeGrid(LABELS)
    result = train(strategy, grid, rounds=1)
    counts = strategy.history[0]["drawn"]
    mean = sum(min(1 + int(name), 3.0) * count for name, count in counts.items()) / 4
    np.testing.assert_allclose(result.arrays["w"].numpy(), np.full(4, mean), rtol=1e-6)
    assert result.arrays["steps"].numpy() == 5  # whole numbers are no part of the norm
    huge = FakeGrid(LABELS, lambda name, round: "huge")
    result = train(FedCote(**FEW, clip=6.0), huge, rounds=3)
    assert np.linalg.norm(result.arrays["w"].numpy()) == pytest.approx(18.0)


def test_without_a_bound_a_huge_update_passes():
    """What is not defended by default, as the documentation says."""
    result = train(FedCote(**FEW), FakeGrid(LABELS, lambda name, round: "huge"), rounds=1)
    assert np.abs(result.arrays["w"].numpy()).max() > 1e29


def test_errors_of_the_app_do_not_blame_the_client():
    strategy = FedCote(**FEW, max_attempts=1)
    train(strategy, FakeGrid(LABELS, lambda name, round: 7), rounds=3)
    assert (strategy.selector.failures() == 0.5).all()
    assert all(report["failed"] and not report["arrived"] for report in strategy.history)
    strict = FedCote(**FEW, max_attempts=1, ignored_errors=())
    train(strict, FakeGrid(LABELS, lambda name, round: 7), rounds=3)
    assert (strict.selector.failures() >= 0.5).all() and strict.selector.failures().max() > 0.5


def test_an_empty_round_is_drawn_again_but_not_for_ever():
    calls = []

    def behave(name, round):
        calls.append(round)
        return None if round == 1 and len(calls) > 6 else 2

    strategy = FedCote(**FEW, max_attempts=3)
    result = train(strategy, FakeGrid(LABELS, behave), rounds=2)
    first, second = strategy.history
    assert 1 < first["attempts"] <= 3 and first["arrived"]
    assert second["attempts"] == 3 and not second["arrived"]
    assert second["label_divergence_realised"] is None
    metrics = result.train_metrics_clientapp[2]
    assert metrics["fedcote-arrived"] == 0 and metrics["fedcote-attempts"] == 3
    assert (result.arrays["w"].numpy() > 0).all()  # the model of round 1 stays


def test_nothing_ever_arrives():
    result = train(FedCote(**FEW), FakeGrid(LABELS, lambda name, round: 2), rounds=2)
    assert (result.arrays["w"].numpy() == 0).all()


def test_newcomers_are_asked_once_and_the_mute_a_few_times():
    strategy, grid = FedCote(**FEW), FakeGrid(LABELS)
    grid.mute = {"3"}
    late = grid.nodes[5]
    grid.present.discard(late)
    train(strategy, grid, rounds=1)
    assert sorted(grid.queries) == list("01234")
    grid.present.add(late)
    train(strategy, grid, rounds=6)
    assert grid.queries.count("5") == 1 and grid.queries.count("0") == 1
    assert grid.queries.count("3") == 3
    assert f"node-{grid.nodes[3]}" in strategy.selector.clients


def test_names_outlive_nodes():
    strategy = FedCote(**FEW, threshold=0.99, estimator={"kind": "beta", "retention": 1.0})
    names = [f"phone-{client}" for client in range(6)]
    behave = lambda name, round: 2 if name == "phone-2" else None  # noqa: E731
    train(strategy, FakeGrid(LABELS, behave, names), rounds=10)
    before = strategy.selector.failure("phone-2")
    moved = FakeGrid(LABELS, behave, names, nodes=[100 + client for client in range(6)])
    train(strategy, moved, rounds=10)
    assert set(strategy.selector.clients) == set(names)
    assert strategy.selector.failure("phone-2") > before > 0.6


def trouble(name, round):
    return 2 if (int(name) + round) % 3 == 0 else None


def test_a_restart_changes_nothing(tmp_path):
    whole = FedCote(**FEW)
    straight = train(whole, FakeGrid(LABELS, trouble), rounds=8)

    file = tmp_path / "state.json"
    first = FedCote(**FEW, state_file=file)
    train(first, FakeGrid(LABELS, trouble), rounds=3)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "state.json", "state.json.round-3.npz",
    ]  # fmt: skip
    second = FedCote(**FEW, state_file=file)
    evaluated = []
    grid = FakeGrid(LABELS, trouble)
    result = train(second, grid, rounds=8, evaluate_fn=lambda r, arrays: evaluated.append(r))
    assert drawn(second) == drawn(whole)
    np.testing.assert_array_equal(result.arrays["w"].numpy(), straight.arrays["w"].numpy())
    assert grid.queries == []  # names and labels were in the file
    assert set(result.train_metrics_clientapp) == set(range(4, 9))
    assert evaluated == [3, 4, 5, 6, 7, 8]
    assert second.history == whole.history

    third = FedCote(**FEW, state_file=file)  # all is done already
    again = train(third, FakeGrid(LABELS, trouble), rounds=8)
    np.testing.assert_array_equal(again.arrays["w"].numpy(), straight.arrays["w"].numpy())
    with pytest.raises(ValueError, match="was saved with seed 3, this is 4"):
        train(FedCote(**{**FEW, "seed": 4}, state_file=file), FakeGrid(LABELS))


def test_a_server_that_dies_in_a_round_repeats_it(tmp_path):
    class Killed(Exception):
        pass

    def dies(name, round):
        if round == 3:
            raise Killed
        return trouble(name, round)

    whole = FedCote(**FEW)
    train(whole, FakeGrid(LABELS, trouble), rounds=5)
    file = tmp_path / "deep" / "state.json"
    with pytest.raises(Killed):
        train(FedCote(**FEW, state_file=file), FakeGrid(LABELS, dies), rounds=5)
    second = FedCote(**FEW, state_file=file)
    train(second, FakeGrid(LABELS, trouble), rounds=5)
    assert second.history == whole.history


def test_damaged_state_files_are_refused_by_name(tmp_path):
    file = tmp_path / "state.json"
    for text in ["", "{}", "[]", '{"arrays": "nowhere.npz", "array_names": []}']:
        file.write_text(text)
        with pytest.raises(ValueError, match=r"state\.json: "):
            train(FedCote(**FEW, state_file=file), FakeGrid(LABELS))
    file.unlink()
    train(FedCote(**FEW, state_file=file), FakeGrid(LABELS), rounds=1)
    # Regression: a damaged file of arrays was a traceback of zipfile.
    arrays = tmp_path / "state.json.round-1.npz"
    good = arrays.read_bytes()
    for damaged in (b"", b"PK", good[:-30], good[:200] + b"????" + good[204:], b"no archive"):
        arrays.write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"state\.json\.round-1\.npz: is no state of a federation, or"
        ):
            train(FedCote(**FEW, state_file=file), FakeGrid(LABELS))
    np.save(arrays.with_suffix(".npy"), np.zeros(3))
    arrays.with_suffix(".npy").replace(arrays)
    with pytest.raises(
        ValueError, match=r"state\.json\.round-1\.npz: is no state of a federation, or"
    ):
        train(FedCote(**FEW, state_file=file), FakeGrid(LABELS))
    arrays.write_bytes(good)
    state = json.loads(file.read_text())
    del state["selector"]["ids"], state["checksum"]
    file.write_text(json.dumps(state))
    with pytest.raises(ValueError, match="state: "):
        train(FedCote(**FEW, state_file=file), FakeGrid(LABELS))


def test_metrics_that_clients_forget_are_left_out():
    strategy, grid = FedCote(**FEW, weighted_by_key="absent"), FakeGrid(LABELS)
    metrics = train(strategy, grid, rounds=1).train_metrics_clientapp[1]
    assert set(metrics) == {
        "fedcote-drawn", "fedcote-arrived", "fedcote-attempts", "fedcote-label-divergence",
        "fedcote-label-divergence-realised",
    }  # fmt: skip


def test_wrong_options_are_refused():
    for wrong in [
        dict(selected=0), dict(max_attempts=0), dict(estimator="?"), dict(threshold=2),
        dict(clip=0.0), dict(clip=float("nan")), dict(max_norm=-1.0),
    ]:  # fmt: skip
        with pytest.raises(ValueError):
            train(FedCote(**wrong, fraction_evaluate=0.0), FakeGrid(LABELS))


def test_failing_clients_still_appear_by_their_share():
    """The point of it all: with failures, FedCote's average weighs clients by their data."""
    generator = np.random.default_rng(5)
    failure = dict(zip("012345", [0.0, 0.1, 0.3, 0.5, 0.6, 0.7], strict=True))
    strategy = FedCote(selected=5, seed=1, fraction_evaluate=0.0, max_attempts=20)
    for name, value in failure.items():
        strategy.selector.set_failure(name, value)
    grid = FakeGrid(LABELS, lambda name, round: 2 if generator.random() < failure[name] else None)
    rounds = 800
    train(strategy, grid, rounds=rounds)
    share = np.zeros((rounds, 6))
    for row, report in zip(share, strategy.history, strict=True):
        for name in report["arrived"]:
            row[int(name)] = report["drawn"][name]
    share /= share.sum(axis=1, keepdims=True)
    error = share.std(axis=0) / np.sqrt(rounds)
    weights = LABELS.sum(axis=1) / LABELS.sum()
    assert (np.abs(share.mean(axis=0) - weights) < 5 * error).all()


class Measured(FedCote):
    """Margins of links in dB, and failed transmissions, are told before replies are judged."""

    def __init__(self, told, **options):
        super().__init__(**FEW, **options)
        self.told = told

    def aggregate_train(self, server_round, replies):
        self.told(self, server_round)
        return super().aggregate_train(server_round, replies)


def test_margins_of_links_tell_failures_sooner_than_uploads():
    deviation, rounds = 4.0, 10
    means = np.array([8.0, 5.0, 2.0, 0.0, -2.0, -4.0])
    truth = np.array([0.5 * math.erfc(mean / deviation / 2**0.5) for mean in means])
    errors = {"signal": 0.0, "beta": 0.0}
    for seed in range(4):
        margins = np.random.default_rng(seed).normal(means, deviation, size=(rounds + 1, 6))

        def behave(name, round_, margins=margins):
            return None if margins[round_, int(name)] > 0 else "silent"

        def everyone(strategy, round_, margins=margins):
            for client in range(6):
                strategy.observe_signal(str(client), margins[round_, client])

        for estimator, told in (("signal", everyone), ("beta", lambda *_: None)):
            strategy = Measured(told, estimator=estimator)
            train(strategy, FakeGrid(LABELS, behave), rounds=rounds)
            found = strategy.selector.failures(list("012345"))
            errors[estimator] += np.abs(found - truth).mean() / 4
    # 0.07 and 0.16
    assert 2 * errors["signal"] < errors["beta"]


def test_transmissions_tell_failures_sooner_than_uploads():
    # A transmission fails with 0.5, an upload when all four do: 1/16, seen within thirty rounds.
    rng = np.random.default_rng(6)
    lost = rng.random((31, 6, 4)) < 0.5
    failed = np.where(lost.all(axis=2), 4, (~lost).argmax(axis=2))

    def told(strategy, round_):
        for name in strategy.selector.clients:
            times = int(failed[round_, int(name)])
            strategy.observe_transmissions(name, times, times < 4)

    strategy = Measured(told, estimator={"kind": "retransmissions", "retransmissions": 3})
    behave = lambda name, round_: None if failed[round_, int(name)] < 4 else "silent"  # noqa: E731
    train(strategy, FakeGrid(LABELS, behave), rounds=30)
    assert np.abs(strategy.selector.failures(list("012345")) - 1 / 16).max() < 0.05
