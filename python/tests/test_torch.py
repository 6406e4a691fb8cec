"""`fedcote.torch.Task`: against arithmetic in NumPy, one by one against all at once, odd models and data."""

import logging
import pickle
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from numpy_task import NumpyTask  # noqa: E402
from test_task import BASE, SCHEMES, tensors  # noqa: E402
from torch import nn  # noqa: E402

import fedcote.torch  # noqa: E402
from fedcote import Job  # noqa: E402

CLASSES, FEATURES = 3, 4


def samples(count=60, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, FEATURES)), generator.integers(CLASSES, size=count)


def linear():
    return nn.Linear(FEATURES, CLASSES)


def mlp():
    return nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def normalised():
    return nn.Sequential(
        nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES)
    )


def convolutional():
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Flatten(), nn.Linear(16, CLASSES),
    )  # fmt: skip


def dropping():
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.Dropout(0.5), nn.Linear(64, CLASSES))


class Branching(nn.Module):
    """What vmap cannot do: the way through depends on the data."""

    def __init__(self):
        super().__init__()
        self.layer = linear()

    def forward(self, inputs):
        outputs = self.layer(inputs)
        return outputs if outputs.sum() > 0 else 2 * outputs


def make(model=linear, **options):
    options = {"clients": 4, "device": "cpu", **options}
    return fedcote.torch.Task(model, samples(), samples(30, 1), **options)


def job(client=0, start=None, correction=None, **changes):
    given = {"round": 1, "seed": 11 + client, "steps": 5, "batch": 8, "rate": 0.1, **changes}
    return Job(
        client=client, correction=correction, anchor=start or {}, key=bytes([client]) * 32, **given
    )


def noise(model, seed):
    generator = np.random.default_rng(seed)
    return {
        name: generator.normal(size=one.shape).astype(np.float32) for name, one in model.items()
    }


def same(one, two, tolerance=0.0):
    assert list(one) == list(two)
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=0, atol=tolerance, err_msg=name)


def by_hand(task, model, job, momentum, weight_decay):
    """Softmax regression in NumPy, in float64."""
    inputs, targets = samples()
    own = task._local.samples[job.client]
    weights = {name: np.float64(one) for name, one in model.items()}
    speed = {name: 0.0 for name in model}
    for rows in job.batches(len(own)):
        x, y = inputs[own[rows]], targets[own[rows]]
        scores = np.exp(x @ weights["weight"].T + weights["bias"])
        error = (scores / scores.sum(1, keepdims=True) - np.eye(CLASSES)[y]) / len(x)
        slope = {"weight": error.T @ x, "bias": error.sum(0)}
        for name in weights:
            pulled = slope[name] + job.proximal * (weights[name] - job.anchor[name])
            speed[name] = momentum * speed[name] + pulled + weight_decay * weights[name]
            weights[name] = weights[name] - job.rate * (speed[name] + job.correction[name])
    return weights


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_a_client_trains_as_by_hand(momentum, weight_decay):
    task = make(momentum=momentum, weight_decay=weight_decay)
    model = task.initial(1)
    asked = job(1, noise(model, 1), noise(model, 2), proximal=0.3)
    expected = by_hand(task, model, asked, momentum, weight_decay)
    same(task.train(model, asked), expected, 1e-5)


@pytest.mark.parametrize("model", [linear, mlp, normalised, convolutional])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_all_at_once_is_one_by_one(model, momentum):
    one, many = (make(model, batched=batched, momentum=momentum) for batched in (False, True))
    start = one.initial(1)
    corrections = [noise(start, 1), None, noise(start, 2), noise(start, 3)]
    jobs = [job(at, start, corrections[at], proximal=0.2) for at in range(4)]
    # Client 3 makes fewer steps: it cannot go with the others.
    jobs[3] = job(3, start, corrections[3], proximal=0.2, steps=2)
    for looped, batched in zip(
        one.train_many(start, jobs), many.train_many(start, jobs), strict=True
    ):
        same(looped, batched, 2e-5)


def test_clients_of_few_samples_are_grouped():
    lists = [range(0, 5), range(5, 25), range(25, 60), range(0, 3)]
    tasks = [make(mlp, partition=lists, clients=None, batched=batched) for batched in (False, True)]
    start = tasks[0].initial(1)
    jobs = [job(at) for at in range(4)]
    for looped, batched in zip(*(task.train_many(start, jobs) for task in tasks), strict=True):
        same(looped, batched, 1e-5)


def test_auto_falls_back_where_batching_is_impossible(caplog):
    with caplog.at_level(logging.INFO, logger="fedcote"):
        automatic = make(Branching)
        automatic._batched = "auto"  # as on a GPU
        start = automatic.initial(1)
        jobs = [job(at) for at in range(3)]
        found = automatic.train_many(start, jobs)
    assert "one by one" in caplog.text
    alone = make(Branching, batched=False)
    for batched, looped in zip(found, alone.train_many(start, jobs), strict=True):
        same(batched, looped)
    with pytest.raises(RuntimeError):
        make(Branching, batched=True).train_many(start, jobs)


@pytest.mark.parametrize("model", [mlp, dropping, normalised])
def test_on_a_cpu_clients_train_one_by_one_so_that_bits_are_those_of_other_machines(model):
    assert not make(model).batched and make(model, batched=True).batched
    assert make(model, device="meta").batched
    start, jobs = make(model).initial(1), [job(at) for at in range(4)]
    for together, worker in zip(
        make(model).train_many(start, jobs),
        [make(model).train(start, one) for one in reversed(jobs)][::-1],
        strict=True,
    ):
        same(together, worker)


def test_workers_refuse_a_task_that_trains_all_at_once():
    with pytest.raises(ValueError, match="batched=False"):
        fedcote.simulate(task=make(mlp, batched=True), on="ray", workers=2)


def test_errors_of_the_model_are_raised_with_batching_too():
    class Wrong(nn.Linear):
        def forward(self, inputs):
            raise KeyError("mine")

    for batched in ("auto", True):
        task = make(lambda: Wrong(FEATURES, CLASSES))
        task._batched = batched  # "auto" as on a GPU
        with pytest.raises(KeyError, match="mine"):
            task.train_many(task.initial(1), [job(0), job(1)])


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("model", [dropping, normalised])
def test_bits_depend_on_the_arguments_alone(model, batched):
    task = make(model, batched=batched)
    start = task.initial(3)
    jobs = [job(at) for at in range(3)]
    first = task.train_many(start, jobs)
    # Other work in between, other generators, another number of threads.
    task.evaluate(first[0])
    task.train(first[1], job(2, seed=99))
    torch.manual_seed(5)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        again = make(model, batched=batched).train_many(start, jobs)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    for one, two in zip(first, again, strict=True):
        same(one, two)
    # The seed of a job decides on dropout.
    assert model is not dropping or any(
        not np.array_equal(first[0][name], one)
        for name, one in task.train_many(start, [job(0, seed=12), *jobs[1:]])[0].items()
    )


def test_generators_of_the_process_are_left_alone():
    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    expected = torch.rand(3).tolist(), random.random(), np.random.rand()
    torch.manual_seed(5), random.seed(5), np.random.seed(5)
    task = make(dropping)
    task.train(task.initial(1), job())
    assert (torch.rand(3).tolist(), random.random(), np.random.rand()) == expected


def test_the_seed_decides_the_initial_model_and_a_module_keeps_its_own():
    task = make()
    same(task.initial(1), task.initial(1))
    assert not np.array_equal(task.initial(1)["weight"], task.initial(2)["weight"])
    module = linear()
    task = make(module)
    same(task.initial(1), {name: one.detach() for name, one in module.named_parameters()})
    before = module.weight.detach().clone()
    task.train(task.initial(1), job())
    assert torch.equal(module.weight, before)


def test_results_stay_when_training_goes_on():
    task = make(normalised)
    start = task.initial(1)
    first = task.train(start, job(0))
    kept = {name: one.copy() for name, one in first.items()}
    task.train(first, job(1))
    task.evaluate(start)
    same(first, kept)


def test_running_statistics_are_exchanged_and_counters_are_not():
    task = make(normalised)
    start = task.initial(1)
    assert {"1.running_mean", "1.running_var"} < set(start) and "1.num_batches_tracked" not in start
    after = task.train(start, job(steps=1, batch=1000))
    own = task._local.samples[0]
    inputs = samples()[0][own] @ start["0.weight"].T.astype(float) + start["0.bias"]
    np.testing.assert_allclose(after["1.running_mean"], 0.1 * inputs.mean(0), atol=1e-6)
    np.testing.assert_allclose(after["1.running_var"], 0.9 + 0.1 * inputs.var(0, ddof=1), atol=1e-6)
    # They decide on evaluation.
    shifted = {**after, "1.running_mean": after["1.running_mean"] + 1}
    assert task.evaluate(shifted)["loss"] != task.evaluate(after)["loss"]


def test_a_cumulative_average_starts_anew_in_every_training():
    def model():
        return nn.Sequential(nn.BatchNorm1d(FEATURES, momentum=None), linear())

    task = make(model)
    start = task.initial(1)
    same(task.train(start, job()), task.train(start, job()))


def test_buffers_get_the_corrections_of_all_steps():
    """The server takes a correction out of what arrives: it must be in the buffers, too."""
    task = make(normalised)
    start = task.initial(1)
    correction = {name: np.zeros_like(one) for name, one in start.items()}
    plain = task.train(start, job(0, start, correction))
    correction["1.running_mean"] += 0.25
    corrected = task.train(start, job(0, start, correction))
    expected = plain["1.running_mean"] - 5 * 0.1 * 0.25
    np.testing.assert_allclose(corrected["1.running_mean"], expected, atol=1e-6)
    same({**corrected, "1.running_mean": plain["1.running_mean"]}, plain)


def test_a_variance_below_zero_is_zero():
    task = make(normalised)
    model = dict(task.initial(1))
    model["1.running_var"] = model["1.running_var"] - 2
    assert np.isfinite(task.evaluate(model)["loss"])
    assert (model["1.running_var"] < 0).all()
    for batched in (False, True):
        after = make(normalised, batched=batched).train_many(model, [job(0), job(1)])
        assert all((one["1.running_var"] > 0).all() for one in after)


def test_frozen_tied_unused_and_double_parameters():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(FEATURES, FEATURES, dtype=torch.float64)
            self.second = nn.Linear(FEATURES, FEATURES, dtype=torch.float64)
            self.second.weight = self.first.weight
            self.last = nn.Linear(FEATURES, CLASSES)
            self.last.weight.requires_grad_(False)
            self.unused = nn.Parameter(torch.ones(2))
            self.register_buffer("constant", torch.tensor(2.0), persistent=False)

        def forward(self, inputs):
            hidden = self.second(self.first(inputs.double()))
            return self.last(hidden.float()) * self.constant

    found = []
    for batched in (False, True):
        task = make(Odd, batched=batched, weight_decay=0.1)
        start = task.initial(1)
        assert set(start) == {
            "first.weight", "first.bias", "second.bias", "last.weight", "last.bias", "unused",
        }  # fmt: skip
        assert all(one.dtype == np.float32 for one in start.values())
        after = task.train_many(start, [job(0), job(1)])
        assert np.array_equal(after[0]["last.weight"], start["last.weight"])
        assert not np.array_equal(after[0]["first.weight"], start["first.weight"])
        np.testing.assert_allclose(after[0]["unused"], 0.99**5, rtol=1e-6)
        found.append(after[1])
    same(*found, 1e-6)


def test_scores_are_means_over_all_samples():
    inputs, targets = samples(30, 1)
    task = make(
        evaluation_batch=7, metrics={"top2": lambda o, t: _top(o, t, 2), "half": lambda o, t: 0.5}
    )
    model = task.initial(1)
    scores = inputs @ model["weight"].T.astype(float) + model["bias"]
    found = task.evaluate(model)
    log = np.log(np.exp(scores).sum(1)) - scores[np.arange(30), targets]
    assert list(found) == ["top2", "half", "loss"] and found["half"] == 0.5
    assert found["loss"] == pytest.approx(log.mean(), abs=1e-6)
    ranks = np.argsort(-scores, axis=1)[:, :2]
    assert found["top2"] == pytest.approx((ranks == targets[:, None]).any(1).mean())
    right = (scores.argmax(1) == targets).mean()
    assert make().evaluate(model)["accuracy"] == pytest.approx(right)
    own = task._local.samples[2]
    inputs, targets = samples()[0][own], samples()[1][own]
    scores = inputs @ model["weight"].T.astype(float) + model["bias"]
    log = np.log(np.exp(scores).sum(1)) - scores[np.arange(len(own)), targets]
    assert task.loss(model, 2) == pytest.approx(log.mean(), abs=1e-6)
    # 4 of 15 samples, evenly spaced.
    assert len(own) == 15
    assert make(loss_samples=4).loss(model, 2) == pytest.approx(log[[0, 3, 7, 11]].mean(), abs=1e-6)
    assert make(loss_samples=99).loss(model, 2) == pytest.approx(log.mean(), abs=1e-6)


def _top(outputs, targets, count):
    return (outputs.topk(count).indices == targets[:, None]).any(1).float().mean()


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("preload", [True, False])
def test_nothing_is_made_on_another_device(batched, preload, monkeypatch):
    """On the device `meta`, every tensor that is created elsewhere is an error."""
    weighted = nn.CrossEntropyLoss(weight=torch.ones(CLASSES))
    task = make(normalised, device="meta", preload=preload, loss=weighted, momentum=0.5)
    start = make(normalised).initial(1)
    jobs = [job(at, start, noise(start, at), proximal=0.1) for at in range(2)]
    if batched:
        found = task._local.together(start, jobs)
    else:
        found = task._local.one(start, jobs[0])
    assert all(one.device.type == "meta" for one in found.values())
    inputs, targets = task._test.batch(np.arange(5))
    assert task._local.loss(task._local.module(inputs), targets).device.type == "meta"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": None}, "clients: missing"),
        ({"clients": 0}, "clients: must be"),
        ({"clients": 61}, "partition: client"),
        ({"partition": "dirichlet", "concentration": 0.0}, "concentration: must be above 0"),
        ({"concentration": 0.5}, 'concentration: belongs to partition = "dirichlet"'),
        ({"partition": "fair"}, "partition: unknown variant `fair`"),
        ({"partition": [[0, 1], []], "clients": None}, "partition: client 1: expected positions"),
        ({"partition": [[0, 60]], "clients": None}, "partition: client 0: positions must be from 0 to 59"),
        ({"partition": [[0], [1]], "clients": 3}, "partition: has 2 lists for 3 clients"),
        ({"partition": [[0], [1]], "clients": 2, "unbalance": 0.3}, "partition: lists of samples have no"),
        ({"labels": [0, 1]}, "labels: not one class.*of length 60"),
        ({"labels": [-1] * 60}, "labels: classes must be from 0"),
        ({"momentum": -1.0}, "momentum: must be at least 0"),
        ({"threads": 0}, "threads: must be at least 1"),
        ({"batched": "never"}, 'batched: must be "auto", True or False'),
        ({"model": 3}, "model: expected a class or function"),
        ({"model": dict}, "model: made dict"),
        ({"model": lambda: nn.LazyLinear(2)}, "model: `weight` has no shape yet"),
    ],
)  # fmt: skip
def test_refusals(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(**options)


def test_the_identity_tells_tasks_apart():
    known = {
        make(**options).metadata()
        for options in ({}, {"momentum": 0.5}, {"seed": 2}, {"clients": 5})
    }
    assert len(known) == 4 and make().metadata() in known and make(mlp).metadata() not in known


def test_a_task_pickles():
    task = pickle.loads(pickle.dumps(make(mlp)))
    start = task.initial(1)
    same(task.train(start, job()), make(mlp).train(start, job()))


class Dense(nn.Module):
    """The built-in perceptron's layout of parameters."""

    def __init__(self, start):
        super().__init__()
        for name, array in start.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(torch.tensor(array)))

    def forward(self, inputs):
        hidden = torch.relu(inputs @ self.layer1_weight + self.layer1_bias)
        return hidden @ self.layer2_weight + self.layer2_bias


@pytest.mark.parametrize("batched", [True, False])
def test_every_scheme_learns_what_it_does_with_numpy(batched, tmp_path):
    generator = np.random.default_rng(5)
    shapes = {"layer1.weight": (36, 7), "layer1.bias": 7, "layer2.weight": (7, 5), "layer2.bias": 5}
    start = {n: 0.3 * generator.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    oracle = NumpyTask([client % 5 for client in range(BASE["clients"])], start)
    oracle.parts = fedcote.partition(oracle.targets, BASE["clients"], "dirichlet", seed=3)
    oracle.labels = [np.bincount(oracle.targets[part], minlength=5) for part in oracle.parts]
    task = fedcote.torch.Task(
        Dense(start), (oracle.inputs, oracle.targets), (oracle.test, oracle.test_labels),
        partition=oracle.parts, batched=batched, device="cpu",
    )  # fmt: skip
    wanted = fedcote.simulate(BASE, task=oracle, out=tmp_path / "numpy")
    found = fedcote.simulate(BASE, task=task, out=tmp_path / "torch")
    for scheme in SCHEMES:
        ours = tensors(tmp_path / "torch" / scheme / "3/model.safetensors")
        for name, array in tensors(tmp_path / "numpy" / scheme / "3/model.safetensors").items():
            np.testing.assert_allclose(
                ours[name.replace(".", "_")], array, atol=2e-5, err_msg=scheme
            )
    for name in ("test_accuracy", "test_loss", "train_loss"):
        np.testing.assert_allclose(found.rounds[name], wanted.rounds[name], atol=2e-5)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("model", [dropping, normalised])
def test_an_interrupted_run_goes_on_to_the_bit(model, batched, tmp_path):
    schemes = ["fedavg", "fedprox", "scaffold", "fedcote-memory", "fedcote-control"]
    scenario = {
        "rounds": 7, "clients": 4, "selected": 3, "seeds": [1], "schemes": schemes, "checkpoint_every": 2,
        "training": {"local_steps": [2, 3], "batch": 8, "rate": 0.1},
        "network": {"kind": "fixed", "failure": [0.1, 0.2, 0.3, 0.4]},
    }  # fmt: skip
    fedcote.simulate(scenario, task=make(model, batched=batched), out=tmp_path / "whole")
    fails = make(model, batched=batched)
    called = "train_many" if batched else "train"
    trained = getattr(fails, called)

    def train(given, jobs):
        if (jobs[0] if batched else jobs).round == 5:
            raise KeyError("stop")
        return trained(given, jobs)

    setattr(fails, called, train)
    with pytest.raises(fedcote.TaskError):
        fedcote.simulate(scenario, task=fails, out=tmp_path / "parts")
    for other in ({"momentum": 0.5}, {"batched": not batched}):
        with pytest.raises(ValueError):  # another task
            task = make(model, **{"batched": batched, **other})
            fedcote.simulate(scenario, task=task, out=tmp_path / "parts", resume=True)
    task = make(model, batched=batched)
    fedcote.simulate(scenario, task=task, out=tmp_path / "parts", resume=True)
    for scheme in schemes:
        one, two = (
            (tmp_path / part / scheme / "1/model.safetensors").read_bytes()
            for part in ("whole", "parts")
        )
        assert one == two, scheme
