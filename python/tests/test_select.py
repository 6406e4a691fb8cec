"""`appearance`, `select` and `evaluate` against enumeration, simulation and NumPy."""

import json

import numpy as np
import oracles
import pytest

import fedcote


@pytest.mark.parametrize("uploads", ["per-draw", "per-client"])
@pytest.mark.parametrize("selected", [1, 2, 3, 4])
def test_appearance_is_the_enumeration(selected, uploads):
    selection, failure = np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.4, 0.9])
    found = fedcote.appearance(selection, failure, selected, uploads=uploads)
    wanted = oracles.appearance_by_enumeration(selection, failure, selected, uploads)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_systematic_appearance_is_what_simulation_gives():
    generator = np.random.default_rng(1)
    selection = np.array([0.15, 0.35, 0.1, 0.4])
    failure = np.array([0.1, 0.6, 0.8, 0.3])
    labels = np.array([[9, 1], [8, 2], [1, 9], [2, 8]])  # already in the order of the draws
    selected, rounds = 3, 200_000
    points = (generator.random((rounds, 1)) + np.arange(selected)) / selected
    drawn = np.searchsorted(np.cumsum(selection), points, side="right").clip(0, 3)
    arrived = np.zeros_like(drawn, dtype=bool)
    while (left := ~arrived.any(axis=1)).any():
        arrived[left] = generator.random((left.sum(), selected)) >= failure[drawn[left]]
    shares = np.zeros((rounds, 4))
    np.add.at(shares, (np.arange(rounds)[:, None], drawn), arrived)
    shares /= shares.sum(axis=1, keepdims=True)
    error = shares.std(axis=0) / np.sqrt(rounds)
    found = fedcote.appearance(selection, failure, selected, draws="systematic", labels=labels)
    assert (np.abs(found - shares.mean(axis=0)) < 5 * error).all()


def test_everybody_eligible_means_everybody_appears_by_weight():
    labels, failure = oracles.instance()
    found = fedcote.select(labels, failure, 4)
    np.testing.assert_allclose(found.weights, labels.sum(axis=1) / labels.sum(), rtol=1e-14)
    np.testing.assert_allclose(found.appearance, found.weights, atol=1e-10)
    np.testing.assert_allclose(found.selection.sum(), 1.0, rtol=1e-12)
    wanted = oracles.appearance_by_enumeration(found.selection, failure, 4, "per-draw")
    np.testing.assert_allclose(found.appearance, wanted, atol=1e-11)
    assert found.optimality < 1e-9
    assert found.expected_arrivals == pytest.approx(4 * (found.selection * (1 - failure)).sum())


@pytest.mark.parametrize("uploads", ["per-draw", "per-client"])
def test_selection_with_somebody_excluded_is_a_minimum(uploads):
    labels, failure = oracles.instance()
    failure[2] = 0.95
    found = fedcote.select(labels, failure, 4, uploads=uploads, kappa=1000.0)
    assert not found.eligible[2] and found.selection[2] == 0
    shares = labels / labels.sum(axis=1, keepdims=True)
    goal = labels.sum(axis=0) / labels.sum()

    def objective(appearance):
        with np.errstate(divide="ignore"):
            labels_part = oracles.chi_square(appearance @ shares, goal)
        return 1000.0 * labels_part + oracles.chi_square(appearance, found.weights)

    best = objective(found.appearance)
    assert found.label_divergence == pytest.approx(
        oracles.chi_square(found.appearance @ shares, goal), rel=1e-6
    )
    generator = np.random.default_rng(2)
    for _ in range(200):  # no direction on the simplex of the eligible goes further down
        step = generator.normal(size=6) * found.eligible
        step -= step.sum() / 5 * found.eligible
        moved = found.appearance + 1e-4 * step
        if (moved >= 0).all():
            assert objective(moved) > best
    wanted = oracles.appearance_by_enumeration(found.selection, failure, 4, uploads)
    np.testing.assert_allclose(found.appearance, wanted, atol=1e-10)


def test_a_lost_label_comes_back_with_a_warning():
    labels, failure = [[10, 0], [0, 10]], [0.1, 0.9]
    found = fedcote.select(labels, failure, 3, ids=["near", "far"])
    assert found.eligible.all()
    assert "label 1" in found.warnings[0] and "far" in found.warnings[0]
    lost = fedcote.select(labels, failure, 3, coverage=False)
    assert lost.eligible.tolist() == [True, False]


def test_the_gradient_method_reduces_the_divergence():
    labels, failure = oracles.instance(seed=3)
    found = fedcote.select(labels, failure, 4, method="gradient")
    plain = fedcote.evaluate(labels, failure, found.weights, 4)
    assert found.method == "gradient"
    assert found.label_divergence < plain.label_divergence / 100


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    labels, failure = oracles.instance()
    columns = {"id": list("abcdef"), "failure": failure}
    columns |= {f"label_{label}": labels[:, label] for label in range(4)}
    found = fedcote.select(frames.DataFrame(columns), selected=5)
    plain = fedcote.select(labels, failure, 5)
    np.testing.assert_array_equal(found.selection, plain.selection)
    assert found.ids == tuple("abcdef") and plain.ids == tuple("123456")
    table = frames.DataFrame(found.columns())
    assert list(table.columns)[:2] == ["id", "weight"] and len(table) == 6
    again = fedcote.evaluate(frames.DataFrame(columns | {"selection": found.selection}), selected=5)
    np.testing.assert_allclose(again.appearance, found.appearance, rtol=1e-12)
    with pytest.raises(ValueError, match="label_0"):
        fedcote.select(frames.DataFrame({"failure": failure}), selected=5)


def test_the_document_is_plain_data():
    labels, failure = oracles.instance()
    document = json.loads(json.dumps(fedcote.select(labels, failure, 5).to_dict()))
    assert document["method"] == "exact" and document["selected"] == 5
    assert set(document["clients"][0]) == {
        "id", "weight", "failure", "eligible", "selection", "appearance",
    }  # fmt: skip
    assert {"label_divergence", "weight_divergence", "expected_arrivals", "optimality"} <= set(
        document
    )


REFUSALS = [
    (dict(failure=[0.1, 1.5]), 'client "2": failure must be a probability from 0 to 1, is 1.5'),
    (dict(failure=[0.1, np.nan]), 'client "2": failure must be a probability from 0 to 1, is NaN'),
    (dict(failure=[0.1]), "labels: expected 2 values, found 4"),
    (dict(labels=[[1, -1], [1, 1]]), 'client "1": labels [1] must be 0 or from 1e-9 to 2^53, is -1'),
    (dict(labels=[[0, 0], [1, 1]]), 'client "1": labels are all 0: a client needs at least one sample'),
    (dict(labels=[[1, 2], [3]]), "labels: must be rows of numbers, all of one length"),
    (dict(labels=[1, 2]), "labels: must have 2 dimension(s), has 1"),
    (dict(selected=0), "selected: must be from 1 to 1000000000, is 0"),
    (dict(selected=-3), "selected: must be from 1 to 1000000000, is -3"),
    (dict(selected=10**30), f"selected: must be from 1 to 1000000000, is {10**30}"),
    (dict(selected=2.5), "selected: must be a whole number, is 2.5"),
    (dict(ids=["a", "a"]), 'client "a": id is used twice; every client needs its own'),
    (dict(method="magic"), 'method: must be one of exact, gradient, is "magic"'),
    (dict(draws="random"), 'draws: must be one of independent, systematic, is "random"'),
    (dict(uploads="none"), 'uploads: must be one of per-draw, per-client, is "none"'),
    (dict(failure=[1.0, 1.0]), "failure: no eligible client can ever arrive"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "text"), REFUSALS, ids=[str(change) for change, _ in REFUSALS])
def test_wrong_requests_are_refused(change, text):
    request = dict(labels=[[1, 2], [3, 4]], failure=[0.1, 0.2], selected=2) | change
    with pytest.raises(ValueError) as refusal:
        fedcote.select(**request)
    assert str(refusal.value).startswith(text)


def test_wrong_selections_are_refused():
    with pytest.raises(ValueError, match="selection: must sum to 1 within 1e-6, sums to 0.9"):
        fedcote.evaluate([[1], [1]], [0, 0], [0.5, 0.4], 2)
    with pytest.raises(ValueError, match="selection: is missing"):
        fedcote.evaluate([[1], [1]], [0, 0])


def test_arrays_of_any_layout_are_taken():
    labels, failure = oracles.instance()
    found = fedcote.select(np.asfortranarray(labels), failure[::-1][::-1].astype(np.float32), 3)
    plain = fedcote.select(labels.astype(int), failure.astype(np.float32).tolist(), 3)
    np.testing.assert_array_equal(found.selection, plain.selection)


def test_clients_that_fail_together():
    labels = [[300, 0], [0, 300], [150, 150]]
    group, groups = ["ap", "ap", None], {"ap": 0.2}
    found = fedcote.select(labels, [0.1, 0.3, 0.5], 3, group=group, groups=groups)
    assert np.allclose(found.failure, [0.28, 0.44, 0.5])
    assert found.label_divergence < 1e-9
    alone = fedcote.select(labels, found.failure, 3)
    assert abs(alone.selection[2] - found.selection[2]) > 1e-3
    own = [0.1, 0.3, 0.5]
    given = fedcote.evaluate(labels, own, found.selection, 3, group=group, groups=groups)
    assert np.array_equal(given.appearance, found.appearance)
    ignored = fedcote.evaluate(labels, own, alone.selection, 3, group=group, groups=groups)
    assert ignored.weight_divergence > 1e-6

    def refused(text, **changed):
        with pytest.raises(ValueError, match=text):
            options = {"group": group, "groups": groups, **changed}
            fedcote.select(labels, [0.1, 0.3, 0.5], 3, **options)

    refused("group: client 1 is in 'ap'; groups has cell", groups={"cell": 0.1})
    refused("group: expected 3 values, found 2", group=["ap", "ap"])
    refused("group: is missing", group=None)
    refused("groups: entry 0 must be from 0 to 1, is 1.5", groups={"ap": 1.5})
