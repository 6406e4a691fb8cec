"""`Selector`: draws, estimates, saving."""

import json

import numpy as np
import oracles
import pytest

import fedcote


def federation(seed=0, **options):
    labels, _ = oracles.instance()
    selector = fedcote.Selector(seed, **options)
    selector.set_all_labels("abcdef", labels)
    return selector, labels


def play(selector, rounds, failure, generator):
    """Some rounds of a federation; what was drawn in each."""
    drawn = []
    for _ in range(rounds):
        drawn.append(selector.select(None, 5))
        for client, _ in drawn[-1]:
            selector.observe(client, generator.random() >= failure["abcdef".index(client)])
    return drawn


@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_draws_follow_the_selection(draws):
    selector, labels = federation(draws=draws)
    failure = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8])
    for client, value in zip("abcdef", failure, strict=True):
        selector.set_failure(client, value)
    rounds, counts = 4000, np.zeros(6)
    for _ in range(rounds):
        for client, count in selector.select("fedcba", 3):
            counts["abcdef".index(client)] += count
    found = selector.solution()
    same = fedcote.select(labels, failure, 3, uploads="per-client", draws=draws)
    np.testing.assert_array_equal(found.selection, same.selection)
    assert counts.sum() == 3 * rounds
    error = np.sqrt(found.selection / (3 * rounds))
    assert (np.abs(counts / (3 * rounds) - found.selection) < 5 * error).all()


def test_whoever_fails_is_found_out_and_drawn_more():
    selector, _ = federation(threshold=1.0, estimator={"kind": "beta", "retention": 1.0})
    failure = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.75])
    play(selector, 200, failure, np.random.default_rng(1))
    np.testing.assert_allclose(selector.failures(), failure, atol=0.15)
    drawn_for = selector.solution().selection / selector.solution().weights
    assert drawn_for[5] > 1.5 * drawn_for[0]


@pytest.mark.parametrize("estimator", ["beta", "window", "exponential"])
def test_a_restored_selector_goes_on_as_if_nothing_had_happened(estimator):
    failure = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.75])
    selector, _ = federation(7, estimator=estimator)
    play(selector, 20, failure, np.random.default_rng(1))
    saved = json.loads(json.dumps(selector.state()))
    restored = fedcote.Selector()
    restored.restore(saved)
    later = play(selector, 30, failure, np.random.default_rng(2))
    assert play(restored, 30, failure, np.random.default_rng(2)) == later
    np.testing.assert_array_equal(restored.failures(), selector.failures())
    assert restored.state() == selector.state()


def test_draws_depend_on_the_seed_and_not_on_the_order_of_arrival():
    labels, _ = oracles.instance()
    one, other, third = fedcote.Selector(1), fedcote.Selector(1), fedcote.Selector(2)
    for selector, order in [(one, range(6)), (other, reversed(range(6))), (third, range(6))]:
        for client in order:
            selector.set_labels("abcdef"[client], labels[client])
    series = [
        [selector.select(ids, 4) for _ in range(10)]
        for selector, ids in [(one, "abcdef"), (other, "fedcba"), (third, "abcdef")]
    ]
    assert series[0] == series[1] != series[2]


def test_drawing_again_differs_and_leaves_the_next_round_alone():
    (one, _), (other, _) = federation(1), federation(1)
    first, second = one.select(None, 4), one.select(None, 4, again=True)
    assert first != second and one.round == 1
    assert other.select(None, 4) == first
    assert one.select(None, 4) == other.select(None, 4)


def test_clients_come_and_go():
    selector, labels = federation()
    selector.select("abc", 2)
    drawn = selector.select([*"bcd", 42, "new"], 50)  # two that nobody knows
    assert {client for client, _ in drawn} == {*"bcd", 42, "new"}
    assert selector.clients == [*"abcdef", 42, "new"]
    found = selector.solution()
    known = labels[1:4].sum(axis=1)
    share = dict(zip(found.ids, found.weights, strict=True))
    assert (
        share["42"]
        == share["new"]
        == pytest.approx(known.mean() / (known.sum() + 2 * known.mean()))
    )
    assert selector.failure("new") == 0.5


def test_without_any_labels_all_are_alike():
    selector = fedcote.Selector()
    selector.set_failure("a", 0.5)
    selector.select("ab", 4)
    np.testing.assert_allclose(selector.solution().appearance, 0.5, atol=1e-10)


def test_realised_divergence():
    selector, labels = federation()
    selector.select(None, 3)
    mix = (labels / labels.sum(axis=1, keepdims=True))[[0, 2]].T @ [0.75, 0.25]
    wanted = oracles.chi_square(mix, labels.sum(axis=0) / labels.sum())
    assert selector.label_divergence({"a": 3, "c": 1}) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ValueError, match="'z' was not available"):
        selector.label_divergence({"z": 1})


def test_wrong_use_is_refused():
    selector, _ = federation()
    for wrong in (
        lambda: selector.select([], 3),
        lambda: selector.select(None, 0),
        lambda: selector.set_labels("a", [1, 2]),
        lambda: selector.set_labels("a", [1, 2, 3, -4]),
        lambda: selector.set_labels("a", [1, 2, 3, np.nan]),
        lambda: selector.set_failure("a", 1.1),
        lambda: fedcote.Selector(-1),
        lambda: fedcote.Selector(estimator="kalman"),
        lambda: fedcote.Selector(estimator={"kind": "beta", "retention": 2.0}),
        lambda: fedcote.Selector(draws="wild"),
        lambda: selector.restore({}),
        lambda: selector.restore({**selector.state(), "ids": ["a"]}),
        lambda: selector.restore({**selector.state(), "version": 9}),
    ):
        with pytest.raises(ValueError):
            wrong()
    assert len(selector.select(None, 3)) > 0


def test_a_hundred_thousand_clients():
    clients, classes = 100_000, 10
    generator = np.random.default_rng(1)
    selector = fedcote.Selector(1)
    labels = generator.integers(1, 50, (clients, classes))
    ids = list(range(clients))
    selector.set_all_labels(ids, labels)
    drawn = selector.select(ids, 1000)
    assert sum(count for _, count in drawn) == 1000
    assert any("closed" in text or "exact model" in text for text in selector.solution().warnings)


def test_nobody_within_the_threshold_leaves_nobody_out():
    """Regression: `select` raised and the federation ended, where the simulator goes on."""
    selector, labels = federation(coverage=False)
    failure = np.array([0.9, 0.95, 0.99, 0.9, 0.97, 0.92])
    for client, value in zip("abcdef", failure, strict=True):
        selector.set_failure(client, value)
    with pytest.raises(ValueError):
        fedcote.select(labels, failure, 5, coverage=False)
    assert sum(count for _, count in selector.select(None, 5)) == 5
    wanted = fedcote.select(labels, failure, 5, threshold=1.0, uploads="per-client", coverage=False)
    np.testing.assert_array_equal(selector.solution().selection, wanted.selection)


def test_a_selection_that_fails_changes_nothing():
    """Regression: the round was counted, and estimates forgot, though nothing had been drawn."""
    failure = np.array([0.0, 0.2, 0.4, 0.6, 0.7, 0.75])
    (selector, _), (other, _) = federation(1), federation(1)
    play(selector, 5, failure, np.random.default_rng(1))
    play(other, 5, failure, np.random.default_rng(1))
    for client in "abcdef":
        selector.set_failure(client, 1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="arrive"):
            selector.select(None, 5)
    for client in "abcdef":
        selector.set_failure(client, None)
    assert selector.round == 5 and selector.state() == other.state()
    assert selector.select(None, 5) == other.select(None, 5)


def test_systematic_draws_are_the_default_with_memory_only():
    """Without memory they were measured to be no better: docs/beyond.md."""
    drawn = lambda **options: federation(**options)[0].state()["core"]["choices"]["draws"]  # noqa: E731
    assert drawn() == "independent" and drawn(aim="freshness") == "systematic"
    assert drawn(aim="freshness", draws="independent") == "independent"


def fresh(**options):
    selector, labels = federation(aim="freshness", **options)
    failure = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
    for client, value in zip("abcdef", failure, strict=True):
        selector.set_failure(client, value)
    return selector, labels, failure


@pytest.mark.parametrize("draws", ["independent", "systematic"])
def test_freshness(draws):
    """s ∝ β / √(1 − ε), and draws that follow it; with nobody left out β is the share of data."""
    selector, labels, failure = fresh(draws=draws, threshold=1.0)
    weights = labels.sum(axis=1) / labels.sum()
    wanted = weights / np.sqrt(1 - failure)
    wanted /= wanted.sum()
    rounds, counts = 4000, np.zeros(6)
    for _ in range(rounds):
        for client, count in selector.select(None, 3):
            counts["abcdef".index(client)] += count
    found = selector.solution()
    np.testing.assert_allclose(found.selection, wanted, rtol=1e-9)
    np.testing.assert_allclose(found.target, weights, rtol=1e-9)
    np.testing.assert_array_equal(found.appearance, found.target)
    assert found.label_divergence < 1e-15 and found.weight_divergence < 1e-15
    assert found.expected_arrivals == pytest.approx(3 * (wanted * (1 - failure)).sum())
    error = np.sqrt(wanted / (3 * rounds))
    assert (np.abs(counts / (3 * rounds) - wanted) < 5 * error).all()
    same = fedcote.select(labels, failure, 3, aim="freshness", threshold=1.0)
    np.testing.assert_array_equal(same.selection, found.selection)


def test_freshness_leaves_out_whom_the_threshold_does():
    selector, labels, failure = fresh()
    selector.select(None, 3)
    found = selector.solution()
    target = fedcote.select(labels, failure, 3).target
    assert target[5] == found.selection[5] == 0.0
    np.testing.assert_array_equal(found.target, target)
    wanted = target / np.sqrt(1 - failure)
    np.testing.assert_allclose(found.selection, wanted / wanted.sum(), rtol=1e-12)


@pytest.mark.parametrize("aim", ["freshness", "appearance"])
def test_who_is_remembered_has_a_weight_and_is_not_drawn(aim):
    selector, labels, failure = fresh()
    if aim == "appearance":
        selector, _ = federation(aim=aim)
        for client, value in zip("abcdef", failure, strict=True):
            selector.set_failure(client, value)
    selector.select(None, 3)
    everyone = selector.solution()
    for _ in range(20):
        drawn = selector.select("abf", 3, remembered="cdeb")
        assert {client for client, _ in drawn} <= {"a", "b"}
    found = selector.solution()
    np.testing.assert_array_equal(found.target, everyone.target)
    part = everyone.selection * [1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(found.selection, part / part.sum(), rtol=1e-12)
    # When only such are there as have no say, they are drawn all the same.
    assert selector.select("f", 3, remembered="abcde") == [("f", 3)]
