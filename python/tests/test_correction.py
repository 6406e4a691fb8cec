"""The client's side of corrections: NumPy, PyTorch (and something that looks like it), anything."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr")

import fake_grid  # noqa: E402, F401  (sets up messages outside a run)
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict  # noqa: E402

from fedcote.client import CORRECTION, Correction  # noqa: E402

MODEL = {"weight": np.float32([[1, 2], [3, 4]]), "bias": np.float32([5, 6])}
WANTED = {"weight": np.float32([[4, 0], [-2, 8]]), "bias": np.float32([-1, 3])}


def message(model=MODEL, correction=WANTED):
    records = {"arrays": as_record(model)}
    if correction is not None:
        records[CORRECTION] = as_record(correction)
    return Message(RecordDict(records), 7, "train")


def as_record(arrays):
    if isinstance(arrays, list):
        return ArrayRecord(arrays)
    return ArrayRecord({key: fake_grid.Array(array) for key, array in arrays.items()})


def said(correction):
    """What the reply tells the server, and the records it was given."""
    content = RecordDict({"arrays": ArrayRecord([np.zeros(1)]), "metrics": MetricRecord({"n": 1})})
    reply = correction.reply(content)
    assert set(reply.content) - {"fedcote"} == {"arrays", "metrics"}
    keys = reply.content.config_records.get("fedcote", {}).get("corrected")
    return None if keys is None else list(keys)


def length(correction):
    """The length of training that the reply reports."""
    return correction.reply(RecordDict()).content.config_records.get("fedcote", {}).get("length")


@pytest.mark.parametrize("steps", [1, 3, 8])
@pytest.mark.parametrize("as_list", [False, True])
def test_numpy(steps, as_list):
    correction = Correction(message(), steps, rate=0.1)
    model = {key: array.copy() for key, array in MODEL.items()}
    arrays = list(model.values()) if as_list else model
    for _ in range(steps + 2):  # more steps than announced add nothing
        correction.add(arrays)
    for key, array in model.items():
        np.testing.assert_allclose(array, MODEL[key] + WANTED[key], rtol=1e-6)
        assert array.dtype == np.float32
    assert said(correction) == ["bias", "weight"]


def test_arrays_that_were_sent_as_a_list():
    sent = message(list(MODEL.values()), {"1": WANTED["bias"]})  # Flower calls them 0, 1, …
    correction = Correction(sent, 2, rate=0.1)
    model = [array.copy() for array in MODEL.values()]
    correction.add(model)
    correction.add(model)
    np.testing.assert_array_equal(model[0], MODEL["weight"])
    np.testing.assert_array_equal(model[1], MODEL["bias"] + WANTED["bias"])
    assert said(correction) == ["1"]


def test_a_correction_that_is_only_added_in_part_is_an_error():
    correction = Correction(message(), 3, rate=0.1)
    correction.add({key: array.copy() for key, array in MODEL.items()})
    with pytest.raises(ValueError, match="was added in 1 of 3 steps"):
        said(correction)
    correction = Correction(message(), 3)
    correction.confirm()
    with pytest.raises(ValueError, match="rate: pass the learning rate"):
        said(correction)
    with pytest.raises(ValueError, match="steps: must be at least 1"):
        Correction(message(), 0, rate=0.1)


def test_anything():
    correction = Correction(message(), 5, rate=0.1)
    assert said(correction) is None  # nothing is confirmed that nobody added
    assert set(correction.arrays) == set(WANTED)
    np.testing.assert_array_equal(correction.arrays["bias"], WANTED["bias"])
    correction.confirm()
    assert said(correction) == ["bias", "weight"]
    assert length(correction) == 5 * 0.1


def test_nothing_was_sent():
    correction = Correction(message(correction=None), 5, rate=0.1)
    model = {key: array.copy() for key, array in MODEL.items()}
    correction.add(model)
    with correction.torch(*pretended()):
        pass
    correction.confirm()
    np.testing.assert_array_equal(model["bias"], MODEL["bias"])
    assert correction.arrays == {} and said(correction) is None
    assert length(correction) == 5 * 0.1  # by which the server decides whether to send corrections
    for rate in (None, 0.0, -1.0, float("nan")):
        assert length(Correction(message(correction=None), 5, rate=rate)) is None


@pytest.mark.parametrize("taken", [0, 2, 4, 5])
def test_nothing_was_sent_to_pytorch(taken):
    """The length is that of the steps taken, of those announced; the model is as trained."""
    model, optimizer = pretended()
    correction = Correction(message(correction=None), 4)
    with correction.torch(model, optimizer):
        for _ in range(taken):
            optimizer.step()
    np.testing.assert_array_equal(model.state_dict()["bias"], MODEL["bias"] - taken / 2)
    assert optimizer.hooks == [] and said(correction) is None
    assert length(correction) == (min(taken, 4) * 0.5 or None)


class Tensor(np.ndarray):
    """As much of a tensor as the helper needs."""

    requires_grad = True

    def detach(self):
        return self

    def new_tensor(self, array):
        return np.array(array, self.dtype)

    def add_(self, term, alpha):
        self += term * self.dtype.type(alpha)


class Optimizer:
    """Steps by -1/2, and calls hooks as PyTorch does."""

    def __init__(self, parameters):
        self.parameters, self.hooks = parameters, []
        self.param_groups = [{"lr": 0.25}, {"lr": 0.5}]

    def register_step_post_hook(self, hook):
        self.hooks.append(hook)
        return SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def step(self):
        for parameter in self.parameters:
            parameter -= 0.5
        for hook in self.hooks:
            hook(self, (), {})


def pretended(**more):
    """A model with shared parameters, and its optimiser."""
    state = {key: array.copy().view(Tensor) for key, array in {**MODEL, **more}.items()}
    model = SimpleNamespace(
        state_dict=lambda: state,
        named_parameters=lambda remove_duplicate: [
            (key, tensor) for key, tensor in state.items() if "running" not in key
        ],
    )
    return model, Optimizer([state["weight"], state["bias"]])


@pytest.mark.parametrize("taken", [0, 2, 4, 5])
def test_what_looks_like_pytorch(taken):
    """Announced are four steps: with fewer or more, the whole correction is added all the same."""
    model, optimizer = pretended()
    correction = Correction(message(), 4)
    with correction.torch(model, optimizer):
        for step in range(1, taken + 1):
            optimizer.step()
            part = min(step, 4) / 4
            wanted = MODEL["bias"] - step / 2 + part * WANTED["bias"]
            np.testing.assert_allclose(model.state_dict()["bias"], wanted, rtol=1e-6)
    for key, tensor in model.state_dict().items():
        np.testing.assert_allclose(tensor, MODEL[key] - taken / 2 + WANTED[key], rtol=1e-6)
    assert optimizer.hooks == []
    assert said(correction) == ["bias", "weight"]
    assert length(correction) == 4 * 0.5


def test_training_that_fails_confirms_nothing_more():
    model, optimizer = pretended()
    correction = Correction(message(), 4)
    with pytest.raises(RuntimeError, match="out of memory"), correction.torch(model, optimizer):
        optimizer.step()
        raise RuntimeError("out of memory")
    assert optimizer.hooks == []
    with pytest.raises(ValueError, match="in 1 of 4 steps"):
        said(correction)


def test_frozen_parameters_and_buffers_are_neither_corrected_nor_confirmed():
    more = {"running_mean": np.float32([1, 1]), "frozen": np.float32([2])}
    model, optimizer = pretended(**more)
    model.state_dict()["frozen"].requires_grad = False
    everything = {**WANTED, "running_mean": np.float32([9, 9]), "frozen": np.float32([9])}
    correction = Correction(message({**MODEL, **more}, everything), 1)
    with correction.torch(model, optimizer):
        optimizer.step()
    for key, array in more.items():
        np.testing.assert_array_equal(model.state_dict()[key], array)
    assert said(correction) == ["bias", "weight"]


def test_parameters_with_two_names_are_corrected_once():
    model, optimizer = pretended(tied=MODEL["bias"])
    state = model.state_dict()
    state["tied"] = state["bias"]
    sent = message({**MODEL, "tied": MODEL["bias"]}, {**WANTED, "tied": WANTED["bias"]})
    correction = Correction(sent, 1)
    with correction.torch(model, optimizer):
        optimizer.step()
    np.testing.assert_array_equal(state["bias"], MODEL["bias"] - 0.5 + WANTED["bias"])
    assert said(correction) == ["bias", "tied", "weight"]


def test_a_list_for_pytorch_and_another_model():
    model, optimizer = pretended()
    sent = message(list(MODEL.values()), list(WANTED.values()))
    correction = Correction(sent, 1)
    with correction.torch(model, optimizer):
        optimizer.step()
    np.testing.assert_array_equal(model.state_dict()["bias"], MODEL["bias"] - 0.5 + WANTED["bias"])
    assert said(correction) == ["0", "1"]
    with (
        pytest.raises(ValueError, match="not those that were sent"),
        Correction(message({"other": MODEL["bias"]}), 1).torch(model, optimizer),
    ):
        pass


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_pytorch(kind):
    """What is added in all is the correction, whatever the optimiser; gradients see it at once."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    inputs, outputs = torch.randn(20, 3), torch.randn(20, 2)
    layers = [torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)]
    model = torch.nn.Sequential(*layers)
    start = {key: value.clone() for key, value in model.state_dict().items()}
    generator = np.random.default_rng(1)
    wanted = {
        key: generator.normal(size=tuple(value.shape)).astype("f4")
        for key, value in start.items()
        if value.dtype.is_floating_point
    }
    record = RecordDict({"arrays": ArrayRecord(model.state_dict()), CORRECTION: as_record(wanted)})
    correction = Correction(Message(record, 7, "train"), steps=3)

    def optimiser(parameters):
        if kind == "adam":
            return torch.optim.Adam(parameters, 0.01)
        return torch.optim.SGD(parameters, 0.1, momentum=0.9 if kind == "momentum" else 0.0)

    optimizer = optimiser(model.parameters())
    with correction.torch(model, optimizer):
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), outputs).backward()
            optimizer.step()
    parameters = sorted(key for key, _ in model.named_parameters())
    assert said(correction) == parameters

    # The same by hand: a step of the optimiser, then a third of the correction.
    found = {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(start)
    optimizer = optimiser(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), outputs).backward()
        optimizer.step()
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                parameter += torch.from_numpy(wanted[key] / 3)
    torch.testing.assert_close(found, dict(model.state_dict()))
