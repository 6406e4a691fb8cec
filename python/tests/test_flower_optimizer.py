"""The server's optimisers, against Flower's own strategies."""

import numpy as np
import oracles
import pytest

pytest.importorskip("flwr")

from fake_grid import FakeGrid, initial  # noqa: E402
from flwr.app import Array, ArrayRecord  # noqa: E402
from flwr.serverapp import strategy as flower  # noqa: E402

from fedcote.flower import Adam, FedCote, Momentum, Yogi  # noqa: E402

LABELS = oracles.instance()[0]
OPTIONS = dict(selected=4, seed=3, fraction_evaluate=0.0)


class Everybody(FedCote):
    """Draws every client once, so that the aggregate is that of FedAvg with equal weights."""

    def __init__(self, **options):
        super().__init__(**options, fraction_evaluate=0.0)
        self.selector.select = self._everybody(self.selector.select)

    def _everybody(self, select):
        def chosen(nodes, selected, **options):
            select(nodes, selected, **options)
            return [(name, 1) for name in sorted(nodes)]

        return chosen


class Equal(FakeGrid):
    """Updates that change from round to round, in both directions; all weigh the same."""

    def learn(self, model, client, round_):
        generator = np.random.default_rng([client, round_])
        return model + generator.normal(size=model.shape).astype(np.float32)

    def _train(self, message, client):
        reply = super()._train(message, client)
        reply.content["metrics"]["num-examples"] = 10
        return reply


def floats():
    return ArrayRecord({"w": Array(np.linspace(-1, 1, 4).astype(np.float32))})


PAIRS = [
    (Adam(eta=0.05, beta_1=0.8, beta_2=0.95, tau=0.01),
     lambda: flower.FedAdam(eta=0.05, beta_1=0.8, beta_2=0.95, tau=0.01, fraction_evaluate=0.0)),
    ("adam", lambda: flower.FedAdam(fraction_evaluate=0.0)),
    (Yogi(eta=0.05, beta_1=0.8, beta_2=0.95, tau=0.01),
     lambda: flower.FedYogi(eta=0.05, beta_1=0.8, beta_2=0.95, tau=0.01, fraction_evaluate=0.0)),
    ("yogi", lambda: flower.FedYogi(fraction_evaluate=0.0)),
    (Momentum(eta=0.7, beta=0.6),
     lambda: flower.FedAvgM(server_learning_rate=0.7, server_momentum=0.6, fraction_evaluate=0.0)),
    ("momentum", lambda: flower.FedAvgM(server_momentum=0.9, fraction_evaluate=0.0)),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[repr(pair[0]) for pair in PAIRS])
def test_the_steps_are_those_of_flower(ours, theirs):
    found, expected = [], []
    if "omentum" in repr(ours) and not hasattr(flower, "FedAvgM"):
        pytest.skip("this version of Flower has no FedAvgM")
    for strategy, models in ((Everybody(server_optimizer=ours), found), (theirs(), expected)):
        strategy.start(
            Equal(LABELS), floats(), num_rounds=6, timeout=30,
            evaluate_fn=lambda _, arrays, models=models: models.append(arrays["w"].numpy()),
        )  # fmt: skip
    assert len(found) == 7 and (found[0] != found[1]).any()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("aggregation", ["mean", "memory", "control"])
def test_every_aggregation_takes_an_optimiser_and_resumes(aggregation, tmp_path):
    options = dict(aggregation=aggregation, server_optimizer="adam", **OPTIONS)
    behave = lambda name, round_: 2 if (int(name) + round_) % 3 == 0 else None  # noqa: E731
    whole = FedCote(**options).start(FakeGrid(LABELS, behave), initial(), num_rounds=6, timeout=30)
    plain = FedCote(aggregation=aggregation, **OPTIONS).start(
        FakeGrid(LABELS, behave), initial(), num_rounds=6, timeout=30
    )
    assert (whole.arrays["w"].numpy() != plain.arrays["w"].numpy()).all()
    file = tmp_path / "state.json"
    for rounds in (2, 4, 6):
        strategy = FedCote(**options, state_file=file)
        grid = FakeGrid(LABELS, behave)
        parts = strategy.start(grid, initial(), num_rounds=rounds, timeout=30)
    np.testing.assert_array_equal(parts.arrays["w"].numpy(), whole.arrays["w"].numpy())
    assert strategy.optimizer.steps == 6
    assert whole.arrays["steps"].numpy().dtype == np.int64
    for other in (None, "yogi", Adam(eta=0.3)):
        with pytest.raises(ValueError, match="state: was saved with"):
            FedCote(**{**options, "server_optimizer": other}, state_file=file).start(
                FakeGrid(LABELS), initial(), num_rounds=7, timeout=30
            )


def test_a_run_starts_with_fresh_moments():
    strategy = FedCote(server_optimizer="momentum", **OPTIONS)
    strategy.start(FakeGrid(LABELS), initial(), num_rounds=3, timeout=30)
    assert strategy.optimizer.steps == 3
    strategy.start(FakeGrid(LABELS), initial(), num_rounds=1, timeout=30)
    assert strategy.optimizer.steps == 1


def test_a_step_that_is_not_finite_changes_nothing():
    strategy = FedCote(server_optimizer=Momentum(eta=1e39), **OPTIONS)
    result = strategy.start(FakeGrid(LABELS), initial(), num_rounds=1, timeout=30)
    assert (result.arrays["w"].numpy() == 0).all() and strategy.optimizer.steps == 0
    assert set(strategy.history[0]["failed"].values()) == {"the model would not be finite"}


@pytest.mark.parametrize(
    "wrong",
    [dict(server_optimizer="sgd"), dict(server_optimizer="adam", server_rate=0.5, aggregation="memory")],
)  # fmt: skip
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError, match="server_optimizer|server_rate"):
        FedCote(**wrong)
    for make in (
        lambda: Adam(eta=0.0), lambda: Adam(beta_1=1.0), lambda: Yogi(tau=-1.0),
        lambda: Momentum(beta=1.5), lambda: Momentum(eta=float("nan")),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            make()


REFUSED = [
    "FedAdam",
    "FedYogi",
    "FedAvgM",
    "FedMedian",
    "Krum",
    "FedTrimmedAvg",
    "QFedAvg",
    "Bulyan",
    "FedProx",
]


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("first", [True, False])
def test_mixtures_that_cannot_work_are_refused(name, first):
    """Regression: class X(FedCote, FedAdam) never ran Adam, X(Krum, FedCote) never observed."""
    other = getattr(flower, name, None)
    if other is None:
        pytest.skip(f"this version of Flower has no {name}")
    with pytest.raises(TypeError, match="cannot be mixed"):
        type("Mixture", (FedCote, other) if first else (other, FedCote), {})


def test_mixtures_that_work_are_not_refused():
    class Logging(flower.FedAvg):
        def aggregate_train(self, server_round, replies):
            found = super().aggregate_train(server_round, replies)
            self.seen = found[1]
            return found

    class Logged(Logging, FedCote):
        pass

    strategy = Logged(**OPTIONS)
    strategy.start(FakeGrid(LABELS), initial(), num_rounds=1, timeout=30)
    assert strategy.seen["fedcote-arrived"] > 0
    assert strategy.history


@pytest.mark.parametrize("moment", ["V", "m.1", "../m", "", "calm", "update-1", "m\n"])
def test_moments_that_cannot_name_files_are_refused(moment):
    """Regression: a state with such moments was written, and could not be read again."""
    optimizer = Momentum()
    optimizer.moments = (moment,)
    with pytest.raises(ValueError, match="server_optimizer: moment .* of Momentum must be of a-z"):
        FedCote(server_optimizer=optimizer, **OPTIONS)


def test_moments_of_ones_own_are_kept(tmp_path):
    for rounds in (2, 4):
        optimizer = Momentum()
        optimizer.moments = ("my_v-2",)
        strategy = FedCote(server_optimizer=optimizer, state_file=tmp_path / "fed", **OPTIONS)
        strategy.start(FakeGrid(LABELS), initial(), num_rounds=rounds, timeout=30)
    assert optimizer.steps == 4 and set(optimizer.arrays) == {"my_v-2"}
