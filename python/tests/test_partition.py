"""Samples for clients: the same division as in a scenario, and refusals."""

import json

import numpy as np
import pytest

import fedcote

KINDS = {
    "iid": {},
    "dirichlet": {"concentration": 0.1},
    "label-pairs": {"unbalance": 0.7},
    "one-label": {},
    "shards": {"shards_per_client": 3},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_scenario_divides_the_same_way(kind, tmp_path):
    settings = {f"data.{name}": value for name, value in KINDS[kind].items()}
    settings |= {"data.partition": kind, "rounds": 1, "seeds": [3], "schemes": ["ideal"]}
    fedcote.simulate("quickstart", {**settings, "model.hidden": [1]}, out=tmp_path)
    written = json.loads((tmp_path / "ideal/3/clients.json").read_text())
    expected = [np.multiply(client["labels"], client["weight"]) for client in written["clients"]]
    labels = fedcote.mnist().train_labels
    found = fedcote.partition(labels, 20, kind, seed=3, **KINDS[kind])
    counts = [np.bincount(labels[own], minlength=10) for own in found]
    np.testing.assert_allclose(np.divide(counts, 60_000), expected, atol=1e-12)
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(60_000))


def test_more_classes_than_a_byte_holds():
    labels = np.arange(3000) % 1000
    found = fedcote.partition(labels, 500, "label-pairs")
    assert [sorted(set(labels[own])) for own in found] == [
        [2 * at, 2 * at + 1] for at in range(500)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], 0), "clients: must be at least 1"),
        (([0, 1], 1.5), "clients: must be a whole number"),
        (([0, 1], 2, "fair"), "partition: unknown variant `fair`, expected one of `iid`"),
        (([], 1), "labels: expected one class"),
        (([0.5], 1), "labels: expected one class"),
        (([[0], [1]], 1), "labels: expected one class"),
        (([0, -1], 1), "labels: must be from 0"),
        (([0, 1], 3), "partition: client 3 would have no samples"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        fedcote.partition(*arguments)


def test_a_setting_of_another_kind_is_refused():
    with pytest.raises(ValueError, match=r'^concentration: belongs to partition = "dirichlet"'):
        fedcote.partition([0, 1], 2, concentration=0.5)
    with pytest.raises(ValueError, match="^seed: must be"):
        fedcote.partition([0, 1], 2, seed=-1)
