"""Differential privacy: the sensitivity and the noise, measured on what the strategy releases."""

import json
import math

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402
from flwr.serverapp import strategy as flower  # noqa: E402

from fedcote._privacy import Privacy, gaussian_epsilon  # noqa: E402
from fedcote.flower import FedCote  # noqa: E402

LABELS = oracles.instance()[0]
CLIP = 0.5
OPTIONS = dict(selected=6, seed=3, fraction_evaluate=0.0, clip=CLIP, noise_multiplier=1.0)


class Silence:
    """In place of the generator: no noise, so that the sensitivity shows."""

    def standard_normal(self, shape):
        return np.zeros(shape)


def fails(name, round_):
    """Failing clients: one in three, and in round 4 all but one."""
    if round_ == 4:
        return None if name == "5" else 2
    return ["silent", None, 2, None, None, 5][(int(name) + round_) % 6] if round_ % 2 else None


def run(aggregation, behave=fails, rounds=6, noise=False, grid=FakeGrid, **options):
    strategy = FedCote(aggregation=aggregation, **{**OPTIONS, **options})
    if not noise:
        strategy.privacy.generator = Silence()
    models = []
    strategy.start(
        grid(LABELS, behave), initial(), num_rounds=rounds, timeout=30,
        evaluate_fn=lambda round_, arrays: models.append(arrays["w"].numpy().astype(np.float64)),
    )  # fmt: skip
    return strategy, models


@pytest.mark.parametrize("aggregation", ["mean", "memory"])
@pytest.mark.parametrize(
    "adversary", ["huge", "nan", "infinite", "huge-float64", "shape", "text", "empty", "away"]
)
def test_one_client_moves_a_release_no_further_than_the_sensitivity(aggregation, adversary):
    """One client's update is replaced by an adversarial one in a round; others fail as before.

    Compared in the first release that differs: later ones depend on the first through the models
    that clients are sent.
    """
    replaced_in, victim = 3, "4"

    class Away(FakeGrid):
        def learn(self, model, client, round_):
            if (client, round_) == (4, replaced_in):
                return -1e6 * super().learn(model, client, round_)
            return super().learn(model, client, round_)

    def hostile(name, round_):
        if (name, round_) == (victim, replaced_in):
            return adversary
        return fails(name, round_)

    honest, expected = run(aggregation)
    attacked, found = (
        run(aggregation, grid=Away) if adversary == "away" else run(aggregation, hostile)
    )
    report = attacked.history[replaced_in - 1]
    assert victim in report["arrived"]
    # Neither shares nor noise nor who counts as arrived tell anything of the update.
    for one, other in zip(honest.history, attacked.history, strict=True):
        assert {**one, "zeroed": {}} == {**other, "zeroed": {}}
    np.testing.assert_array_equal(expected[replaced_in - 1], found[replaced_in - 1])
    moved = np.linalg.norm(found[replaced_in] - expected[replaced_in])
    sensitivity = report["noise"] / OPTIONS["noise_multiplier"]
    assert sensitivity == pytest.approx(CLIP * report["max_share"])
    # "huge" has the direction of the honest update, and both are clipped to the same.
    assert moved > 0 or adversary == "huge"
    assert moved <= 2 * sensitivity * (1 + 1e-5)  # replaced by another one
    if adversary == "away":
        share = {name: n for name, n in report["drawn"].items() if name in report["arrived"]}
        if aggregation == "mean":
            # The bound is attained: the victim's direction is turned round.
            part = min(share[victim] / sum(share.values()), report["max_share"])
            assert moved == pytest.approx(2 * CLIP * part, rel=1e-4)
    elif adversary != "huge":
        assert victim in report["zeroed"]
        assert moved <= sensitivity * (1 + 1e-5)  # replaced by zero


def test_without_any_client_nothing_is_released_and_nothing_spent():
    strategy, models = run("mean", lambda name, round_: 2, rounds=3, noise=True)
    assert all((model == 0).all() for model in models)
    assert strategy.epsilon() == 0.0
    assert all(report["attempts"] == 3 and report["noise"] == 0.0 for report in strategy.history)


@pytest.mark.parametrize("aggregation", ["mean", "memory"])
def test_the_noise_is_as_large_as_stated(aggregation):
    """4 × 10⁴ released numbers a round, with failing clients; also where one client arrives alone."""

    class Wide(FakeGrid):
        def learn(self, model, client, round_):
            return model  # updates of zero: what is released is the noise

    from flwr.app import Array, ArrayRecord

    arrays = {"w": np.zeros(40_000, np.float64), "steps": np.array(5, np.int64)}
    start = ArrayRecord({key: Array(array) for key, array in arrays.items()})
    strategy = FedCote(
        aggregation=aggregation, **{**OPTIONS, "noise_multiplier": 0.7}, max_share=1.0
    )
    models = []
    strategy.start(
        Wide(LABELS, fails), start, num_rounds=6, timeout=30,
        evaluate_fn=lambda round_, arrays: models.append(arrays["w"].numpy()),
    )  # fmt: skip
    for before, after, report in zip(models[:-1], models[1:], strategy.history, strict=True):
        stated = 0.7 * CLIP * report["max_share"]
        assert report["noise"] == pytest.approx(stated)
        noise = after - before
        # The deviation of a sample's deviation is σ/√(2n): five of them.
        assert abs(noise.std() - stated) < 5 * stated / math.sqrt(2 * noise.size)
        assert abs(noise.mean()) < 5 * stated / math.sqrt(noise.size)
    assert len({report["noise"] for report in strategy.history}) > 1


def test_shares_are_bounded():
    for cap in (None, 0.1, 1.0):
        strategy, _ = run("mean", max_share=cap)
        bound = 2 / 6 if cap is None else cap
        shares = [report["max_share"] for report in strategy.history]
        assert max(shares) <= bound + 1e-12
        if cap == 1.0:
            assert shares[3] == 1.0  # in round 4 one client arrives alone


def test_whole_numbers_are_not_released():
    class Counting(FakeGrid):
        def _train(self, message, client):
            reply = super()._train(message, client)
            if reply is not None and not reply.has_error():
                from flwr.app import Array

                reply.content["arrays"]["steps"] = Array(np.array(1000 + client, np.int64))
            return reply

    for aggregation in ("mean", "memory"):
        strategy = FedCote(aggregation=aggregation, **OPTIONS)
        result = strategy.start(Counting(LABELS), initial(), num_rounds=2, timeout=30)
        assert result.arrays["steps"].numpy() == 5


def test_error_replies_do_not_stop_training():
    """Regression: with error replies Flower's wrapper skips the round, and the model never changes."""
    _, models = run("mean", lambda name, round_: 2 if name in "01" else None, noise=True)
    assert all((one != other).any() for one, other in zip(models, models[1:], strict=False))


def test_a_redraw_is_clipped_like_everything():
    """Regression: redraws bypassed the wrapper's clipping (clip 0.01, released step 0.27 to 0.37)."""
    strategy = FedCote(**OPTIONS, max_share=1.0)
    strategy.privacy.generator = Silence()

    def first_attempt_fails(name, round_):
        return 2 if strategy._round.attempts == 1 else "huge"

    result = strategy.start(
        FakeGrid(LABELS, first_attempt_fails), initial(), num_rounds=1, timeout=30
    )
    assert strategy.history[0]["attempts"] == 2 and strategy.history[0]["arrived"]
    assert 0 < np.linalg.norm(result.arrays["w"].numpy()) <= CLIP


def test_the_state_has_the_model_with_its_noise(tmp_path):
    """Regression: the state file held the model without the wrapper's noise."""
    file = tmp_path / "state.json"
    strategy, models = run("memory", noise=True, rounds=3, state_file=file)
    with np.load(tmp_path / "state.json.round-3.npz") as saved:
        np.testing.assert_array_equal(saved["array-0"], models[-1].astype(np.float32))
    spent = json.loads(file.read_text())["privacy"]["spent"]
    again = FedCote(aggregation="memory", **OPTIONS, state_file=file)
    again.start(FakeGrid(LABELS, fails), initial(), num_rounds=3, timeout=30)
    assert again.privacy.spent == spent == strategy.privacy.spent
    assert again.epsilon(1e-6) == strategy.epsilon(1e-6) > 0
    other = FedCote(aggregation="memory", **{**OPTIONS, "noise_multiplier": 2.0}, state_file=file)
    with pytest.raises(ValueError, match="was saved with noise_multiplier 1.0, this is 2.0"):
        other.start(FakeGrid(LABELS), initial(), num_rounds=4, timeout=30)
    none = {**OPTIONS, "noise_multiplier": None}
    with pytest.raises(ValueError, match="was saved with privacy"):
        FedCote(aggregation="memory", **none, state_file=file).start(
            FakeGrid(LABELS), initial(), num_rounds=4, timeout=30
        )


def test_epsilon_against_the_definition():
    """δ = P(L > ε) − e^ε P(L < −ε … ) by numerical integration of two shifted Gaussians."""
    for mu in (0.3, 1.0, 4.0):
        epsilon = gaussian_epsilon(mu, 1e-5)
        x = np.linspace(-40, 40, 2_000_001)
        p = np.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi)
        q = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        delta = np.sum(np.maximum(p - math.exp(epsilon) * q, 0)) * (x[1] - x[0])
        assert delta == pytest.approx(1e-5, rel=1e-3), mu
    privacy = Privacy(2.0, 1.0, None)
    model = {"w": np.zeros(3)}
    for _ in range(9):
        privacy.release(model, {"a": model, "b": model}, {"a": 0.2, "b": 0.1})
    # a was at the sensitivity nine times, b at half of it.
    assert privacy.spent == pytest.approx({"a": 9.0, "b": 9 / 4})
    assert privacy.epsilon(1e-5) == pytest.approx(gaussian_epsilon(3.0 / 2.0, 1e-5))


WRAPPERS = [
    ("DifferentialPrivacyServerSideFixedClipping", (1.0, 1.0, 4)),
    ("DifferentialPrivacyClientSideFixedClipping", (1.0, 1.0, 4)),
    ("DifferentialPrivacyServerSideAdaptiveClipping", (1.0, 100)),
    ("DifferentialPrivacyClientSideAdaptiveClipping", (1.0, 100)),
]


@pytest.mark.parametrize(("name", "arguments"), WRAPPERS)
def test_flowers_wrappers_are_refused(name, arguments):
    if not hasattr(flower, name):
        pytest.skip(f"this version of Flower has no {name}")
    wrapper = getattr(flower, name)(FedCote(selected=4, fraction_evaluate=0.0), *arguments)
    with pytest.raises(RuntimeError, match=r"FedCote\(clip=…, noise_multiplier=…\)"):
        wrapper.start(FakeGrid(LABELS), initial(), num_rounds=1, timeout=30)


def test_a_loop_of_ones_own_can_begin():
    from flwr.app import ConfigRecord

    strategy, grid = FedCote(selected=4, fraction_evaluate=0.0), FakeGrid(LABELS)
    strategy.begin(timeout=30)
    messages = strategy.configure_train(1, initial(), ConfigRecord(), grid)
    arrays, metrics = strategy.aggregate_train(1, grid.send_and_receive(messages))
    assert arrays is not None and metrics["fedcote-arrived"] > 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(noise_multiplier=1.0), "needs clip"),
        (dict(noise_multiplier=1.0, clip=1.0, max_norm=2.0), "max_norm"),
        (dict(noise_multiplier=1.0, clip=1.0, aggregation="control"), "corrections disclose"),
        (dict(noise_multiplier=0.0, clip=1.0), "positive"),
        (dict(noise_multiplier=1.0, clip=1.0, max_share=1.5), "max_share"),
        (dict(max_share=0.5), "max_share"),
    ],
)
def test_what_would_lose_the_guarantee_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        FedCote(**options)
    with pytest.raises(ValueError, match="epsilon"):
        FedCote().epsilon()
