"""`Selector`: draws, estimates, saving."""

import copy
import json
import pickle

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


def test_clients_keep_their_own_ids():
    """Regression: solution().ids are text, so weights had to be looked up by str(client)."""
    selector = fedcote.Selector(seed=1, aim="freshness")
    ids = [7, "seven", (7, 7)]
    for client, counts in zip(ids, ([10, 0], [0, 10], [20, 20]), strict=True):
        selector.set_labels(client, counts)
    with pytest.raises(ValueError, match="call select first"):
        selector.weights()
    selector.select(ids, 2)
    weights = selector.weights()
    assert set(weights) == set(ids) and sum(weights.values()) == pytest.approx(1)
    target = dict(zip(selector.solution().ids, selector.solution().target, strict=True))
    assert {str(client): weight for client, weight in weights.items()} == target


@pytest.mark.parametrize("how", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_selectors_can_be_copied(how):
    labels = oracles.instance()[0]
    selector = fedcote.Selector(seed=2)
    ids = [("site", client) for client in range(6)]
    selector.set_all_labels(ids, labels)
    for round_ in range(5):
        for client, _ in selector.select(ids, 4):
            selector.observe(client, (client[1] + round_) % 3 > 0)
    other = how(selector)
    assert (
        repr(other) == repr(selector) == "<Selector for appearance: 6 clients, 4 labels, round 5>"
    )
    for again in (True, False, False):
        assert other.select(ids, 4, again=again) == selector.select(ids, 4, again=again)
    other.observe(ids[0], False)
    assert other.failure(ids[0]) > selector.failure(ids[0])


def test_a_forgotten_client_is_new_when_it_comes_back():
    labels = oracles.instance()[0]
    selector = fedcote.Selector(seed=2)
    selector.set_all_labels("abcdef", labels)
    for _ in range(3):
        selector.select("abcdef", 4)
        selector.observe_many({"c": False, "d": True})
    assert selector.failure("c") > 0.6 > 0.4 > selector.failure("d")
    selector.forget("c")
    assert selector.clients == list("abdef")
    with pytest.raises(ValueError, match="'c' is unknown"):
        selector.forget("c")
    # As if it had never been: the same labels of all, the same draws.
    never = fedcote.Selector(seed=2)
    never.set_all_labels("abdef", labels[[0, 1, 3, 4, 5]])
    for _ in range(3):
        never.select("abdef", 4)
        never.observe("d", True)
    assert selector.select(None, 4) == never.select(None, 4)
    np.testing.assert_array_equal(selector.solution().selection, never.solution().selection)
    restored = fedcote.Selector()
    restored.restore(json.loads(json.dumps(selector.state())))
    assert restored.clients == selector.clients
    assert restored.select(None, 4) == selector.select(None, 4)
    assert pickle.loads(pickle.dumps(selector)).clients == list("abdef")
    assert selector.failure("c") == 0.5
    assert sorted(selector.clients) == list("abcdef")


@pytest.mark.parametrize("estimator", ["beta", "window", "exponential"])
def test_clients_that_come_once_each_leave_nothing(estimator):
    """Regression: the number of a forgotten client was kept, so state and memory grew for ever."""
    selector = fedcote.Selector(seed=2, estimator=estimator)
    sizes = []
    for turn in range(60):
        guest = f"guest {turn % 7} {turn}"
        selector.set_all_labels(["a", guest], [[3, 1], [turn, 5]])
        drawn = selector.select(["a", guest], 4)
        # As of a selector that has met nobody else.
        alone = fedcote.Selector(seed=2, estimator=estimator)
        alone.set_all_labels([guest, "a"], [[turn, 5], [3, 1]])
        for _ in range(turn + 1):
            alone_drawn = alone.select([guest, "a"], 4)
        assert drawn == alone_drawn
        selector.observe(guest, False)
        selector.forget(guest)
        sizes.append(len(json.dumps(selector.state())))
    assert len(selector.state()["ids"]) == 2
    # The window holds 50 rounds.
    assert max(sizes[51:]) <= sizes[51] + 50


def test_newcomers_do_not_go_through_all_clients():
    """Regression: each looked for a free number among all clients, in quadratic time together."""

    class Unread(list):
        def __iter__(self):
            raise AssertionError("all clients are gone through")

    selector = fedcote.Selector()
    selector.set_all_labels("abcdef", np.ones((6, 2)))
    for client in "ebd":
        selector.forget(client)
    restored = fedcote.Selector()
    restored.restore(selector.state())
    for one in (selector, restored):
        one._ids = Unread(one._ids)
        for client in "vwxyz":
            one.set_labels(client, [1, 2])
        one._ids = list.copy(one._ids)
        # Free numbers first, the lowest first, restored or not: or the states would differ.
        assert one.state()["ids"] == list("avcwxfyz")
    assert restored.state() == selector.state()


def test_nothing_arrived_so_draw_again():
    selector = fedcote.Selector(seed=1)
    turns = []
    for drawn in selector.attempts(range(5), 3, most=4):
        turns.append(drawn)
        selector.observe_many({client: len(turns) == 3 for client, _ in drawn})
    assert len(turns) == 3 and selector.round == 1
    assert len(list(selector.attempts(range(5), 3, most=4))) == 4  # nobody ever arrives
    assert selector.round == 2


def test_distinct_draws():
    """Nobody twice, as many as asked for, each with the probability that it should have."""
    selector = fedcote.Selector(seed=3, aim="freshness")
    labels = np.array([[50, 5], [1, 9], [3, 3], [0, 8], [9, 1], [2, 2]])
    selector.set_all_labels("abcdef", labels)
    for client, failure in zip("abcdef", (0.1, 0.5, 0.0, 0.8, 0.3, 0.2), strict=True):
        selector.set_failure(client, failure)
    rounds = 4000
    seen = dict.fromkeys("abcdef", 0)
    for _ in range(rounds):
        drawn = selector.select("abcdef", 3, distinct=True)
        assert len(drawn) == 3 and all(count == 1 for _, count in drawn)
        for client, _ in drawn:
            seen[client] += 1
    # By hand: proportional to the selection, and 1 for whoever would have more.
    share = dict(zip("abcdef", selector.solution().selection, strict=True))
    sure = {"a"}
    assert 3 * share["a"] > 1
    rest = 2 / sum(value for client, value in share.items() if client not in sure)
    for client, times in seen.items():
        wanted = 1.0 if client in sure else rest * share[client]
        assert wanted <= 1.0
        assert abs(times / rounds - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / rounds) + 1e-12
    assert len(selector.select("abcdef", 50, distinct=True)) == 6
    again = pickle.loads(pickle.dumps(selector))
    assert again.select("abcdef", 2, distinct=True) == selector.select("abcdef", 2, distinct=True)


def test_refused_labels_leave_no_ghost():
    """Regression: a client whose labels were refused was numbered before the check; 40,000 labels
    ended the process.
    """
    selector = fedcote.Selector(seed=1)
    selector.set_labels("a", [1, 2])
    for wrong in ([1], [1, 2, 3], [], [1] * 40_000):
        with pytest.raises(ValueError, match="labels"):
            selector.set_labels("b", wrong)
    assert selector.clients == ["a"]
    with pytest.raises(ValueError, match="4096"):
        fedcote.Selector().set_labels("a", [1] * 40_000)


def test_the_average_by_draws():
    updates = {"a": {"w": np.float32([1, 2])}, "b": {"w": np.float32([5, 6])}}
    found = fedcote.average(updates, dict([("a", 3), ("b", 1), ("c", 2)]))
    np.testing.assert_array_equal(found["w"], np.float32([2, 3]))
    assert found["w"].dtype == np.float32
    with pytest.raises(ValueError, match="client 'b'"):
        fedcote.average({**updates, "b": {"w": np.float32([np.nan, 1])}}, {"a": 1, "b": 1})
    with pytest.raises(ValueError, match="client 'b' are not those"):
        fedcote.average({**updates, "b": {"w": np.float32([1])}}, {"a": 1, "b": 1})
    with pytest.raises(ValueError, match="no client"):
        fedcote.average(updates, {"c": 1})


def test_a_public_memory_with_any_ids():
    selector, memory = fedcote.Selector(seed=1, aim="freshness"), fedcote.Memory(forget_after=3)
    model = {"w": np.zeros(2, np.float32)}
    for client in range(4):
        selector.set_labels(client, [10, 10 * client])
    for round_ in range(1, 6):
        memory.meet(range(4), round_)
        for client, _ in selector.select(range(4), 3, remembered=memory.updates):
            selector.observe(client, True)
            memory.remember(client, {"w": model["w"] + np.float32(client)}, model, round_)
        stepped, shares = memory.step(model, selector.weights())
        weights = selector.weights()
        total = sum(weights[client] for client in memory.updates)
        assert shares == pytest.approx({c: weights[c] / total for c in memory.updates})
        mean = sum(share * client for client, share in shares.items())
        np.testing.assert_allclose(stepped["w"], model["w"] + mean, rtol=1e-5)
    memory.drop(0)
    assert 0 not in memory.updates


def test_signals_and_transmissions_are_for_their_estimators():
    selector, _ = federation(estimator="signal")
    selector.select(None, 5)
    for margin in [12.0, 9.0, 15.0]:
        selector.observe_signal("a", margin)
        selector.observe("a", True)
    assert selector.failure("a") < 0.1 < 0.2  # three arrivals alone say 1/5
    with pytest.raises(ValueError, match='needs estimator "retransmissions", this one is "signal"'):
        selector.observe_transmissions("a", 1, True)
    with pytest.raises(ValueError, match="must be a number of decibels"):
        selector.observe_signal("a", float("nan"))
    again = fedcote.Selector(0, estimator="signal")
    again.restore(json.loads(json.dumps(selector.state())))
    assert again.failure("a") == selector.failure("a")
    selector, _ = federation(estimator={"kind": "retransmissions", "retransmissions": 3})
    selector.select(None, 5)
    for _ in range(50):
        selector.observe_transmissions("a", 1, True)
        selector.observe("a", True)
    assert abs(selector.failure("a") - 1 / 16) < 0.03
    with pytest.raises(ValueError, match='needs estimator "signal"'):
        selector.observe_signal("a", 1.0)


@pytest.mark.parametrize("uploads", ["per-draw", "per-client"])
def test_clients_may_fail_together(uploads):
    labels, _ = oracles.instance()
    own = np.array([0.1, 0.2, 0.3, 0.0, 0.4, 0.5])
    group = ["ap", "ap", None, "cell", "cell", None]
    down = {"ap": 0.3, "cell": 0.2}
    selector, _ = federation(uploads=uploads, groups=down)
    for client, name, value in zip("abcdef", group, own, strict=True):
        selector.set_group(client, name)
        # What is observed is a failure for whatever reason.
        selector.set_failure(client, 1 - (1 - value) * (1 - down.get(name, 0.0)))
    selector.select(None, 5)
    found = selector.solution()
    same = fedcote.select(labels, own, 5, group=group, groups=down, uploads=uploads)
    np.testing.assert_allclose(found.selection, same.selection, atol=1e-9)
    assert not found.warnings
    alone = fedcote.select(labels, same.failure, 5, uploads=uploads)
    assert np.abs(alone.selection - same.selection).max() > 1e-3
    # Simulated: shares of what arrives are those of the solution.
    generator, rounds = np.random.default_rng(5), 20_000
    shares = np.zeros((rounds, 6))
    names = list(down)
    member = np.array([names.index(name) if name else 2 for name in group])
    for at in range(rounds):
        drawn = generator.multinomial(5, found.selection)
        while not shares[at].any():
            up = np.append(generator.random(2) >= [down[name] for name in names], True)
            arrives = (1 - own) * up[member]
            if uploads == "per-draw":
                shares[at] = generator.binomial(drawn, arrives)
            else:
                shares[at] = drawn * generator.binomial(1, arrives)
        shares[at] /= shares[at].sum()
    errors = (shares.mean(axis=0) - found.appearance) / (shares.std(axis=0) / np.sqrt(rounds))
    assert np.abs(errors).max() < 3

    restored = fedcote.Selector()
    restored.restore(json.loads(json.dumps(selector.state())))
    assert restored.select(None, 5) == selector.select(None, 5)
    restored.set_groups({"ap": 0.0, "relay": 0.1})  # others stay
    restored.set_group("c", "relay")
    restored.select(None, 5)
    selector.select(None, 5)
    assert (restored.solution().selection != selector.solution().selection).any()
    assert pickle.loads(pickle.dumps(restored)).state() == restored.state()
    with pytest.raises(
        ValueError, match=r"client 'a': group 'wifi' is unknown; groups has ap, cell"
    ):
        selector.set_group("a", "wifi")
    with pytest.raises(ValueError, match=r"groups: 'ap' must be down with a probability"):
        selector.set_groups({"ap": 1.5})
    for groups in (["ap"], ["ap", "ap"], [["ap"], "cell"], 7):
        with pytest.raises(ValueError, match="^state: "):
            fedcote.Selector().restore(selector.state() | {"groups": groups})
