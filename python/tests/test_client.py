"""The client's helper."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

from fedcote import _fedcote, client


def test_counts():
    labels = np.random.default_rng(1).integers(0, 7, 1000)
    assert client.counts(labels, 8) == np.bincount(labels, minlength=8).tolist()
    with pytest.raises(ValueError, match="from 0 to 2, found 3"):
        client.counts([0, 3], 3)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_noise_has_the_distribution_that_privacy_needs(epsilon):
    # P(noise = k) = (1 − a)/(1 + a) · a^|k| with a = e^−ε: neighbours differ by e^ε at most.
    draws = 40_000
    noise = np.array(client.noisy([10_000] * draws, epsilon, random.Random(5))) - 10_000
    a = np.exp(-epsilon)
    for k in range(-3, 4):
        wanted = (1 - a) / (1 + a) * a ** abs(k)
        found = (noise == k).mean()
        assert abs(found - wanted) < 5 * np.sqrt(wanted / draws), (k, found, wanted)
    assert min(client.noisy([0] * 1000, epsilon)) == 0
    with pytest.raises(ValueError, match="epsilon"):
        client.noisy([1], 0)


def test_the_noise_is_that_of_the_library():
    """Regression: floor(log) of a float, whose rounding favours some values, was a second mechanism."""
    seed = random.Random(5).randbytes(32)
    wanted = _fedcote.protect([7, 0, 100], 0.3, seed)
    assert client.noisy([7, 0, 100], 0.3, random.Random(5)) == wanted
    with pytest.raises(ValueError, match="epsilon: must be from 1e-9 to 100, is 1000"):
        client.noisy([1], 1000)


def ask(context, **options):
    pytest.importorskip("flwr")
    import fake_grid  # noqa: F401  (sets up messages outside a run)
    from flwr.app import Message, RecordDict

    message = Message(RecordDict(), 7, "query.label_histogram")
    return dict(client.label_histogram(message, context, **options).content["fedcote"])


def context(**config):
    pytest.importorskip("flwr")
    from flwr.app import RecordDict

    return SimpleNamespace(node_config=config, state=RecordDict())


def test_answers():
    node = context(**{"partition-id": 3})
    assert ask(node, labels=[0, 1, 1], classes=3) == {"labels": [1, 2, 0], "name": "3"}
    assert ask(node, histogram=np.array([4, 5]), name="x") == {"labels": [4, 5], "name": "x"}
    named = context(**{"partition-id": 3, "client-name": "phone"})
    assert ask(named, histogram=[1])["name"] == "phone"
    assert "name" not in ask(context(), histogram=[1])
    assert ask(context(**{"client-group": "ap"}), histogram=[1]) == {"labels": [1], "group": "ap"}
    assert ask(context(**{"client-group": "ap"}), histogram=[1], group="cell")["group"] == "cell"
    with pytest.raises(ValueError, match="labels and classes"):
        ask(context())


def test_noise_is_drawn_once():
    node = context()
    answers = [tuple(ask(node, histogram=[1000] * 20, epsilon=0.01)["labels"]) for _ in range(5)]
    assert len(set(answers)) == 1 and answers[0] != (1000,) * 20


def test_noise_is_drawn_once_for_all_runs_where_it_is_kept(tmp_path):
    """Regression: Flower makes a new context for every run, and a thousand runs gave the exact counts."""
    file = tmp_path / "answer.json"
    exact = [1000] * 20

    def runs(**options):
        asked = [ask(context(), histogram=exact, epsilon=0.01, **options) for _ in range(4)]
        return {tuple(answer["labels"]) for answer in asked}

    assert len(runs()) == 4  # a new draw for every run: four times the epsilon
    assert len(runs(answer_file=file)) == 1
    assert file.stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["answer.json"]
    # Who asks for more privacy than was given is told; who asks for less gets what was told before.
    with pytest.raises(ValueError, match="less private"):
        ask(context(), histogram=exact, epsilon=0.001, answer_file=file)
    for damaged in ["", "{}", '{"labels": "x", "epsilon": 1}', "[" * 100_000]:
        file.write_text(damaged)
        with pytest.raises(ValueError, match=r"answer\.json: is no answer, or damaged"):
            ask(context(), histogram=exact, epsilon=0.01, answer_file=file)
    with pytest.raises(ValueError, match="pass epsilon"):
        ask(context(), histogram=exact, answer_file=file)


def test_clients_with_the_same_answer_file_are_told(tmp_path):
    """Regression: the second client on a disk silently reported the labels of the first."""
    options = dict(epsilon=1.0, answer_file=tmp_path / "answer.json")
    told = ask(context(**{"partition-id": 1}), histogram=[1000, 0], **options)
    assert ask(context(**{"partition-id": 1}), histogram=[1000, 0], **options) == told
    assert ask(context(), name="1", histogram=[1000, 0], **options) == told
    with pytest.raises(ValueError, match=r"answer\.json: is the answer of client '1', this is '2'"):
        ask(context(**{"partition-id": 2}), histogram=[0, 1000], **options)
    # Answers of earlier versions, and of clients without names, have none.
    options["answer_file"].write_text('{"labels": [3, 4], "epsilon": 1.0}')
    assert ask(context(**{"partition-id": 2}), histogram=[1], **options)["labels"] == [
        3,
        4,
    ]
