"""What is learnt: a model, the clients' data, and how they train, in the user's own code."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _fedcote

#: A model: arrays by name, or a list of them. Arrays of any floating-point or integer type, of any shape, also
#: without dimensions; the simulator computes with float32.
Arrays: TypeAlias = Mapping[str, Any] | Sequence[Any]


@dataclass(frozen=True, eq=False)
class Job:
    """The local training of one client in one round: all that a scheme asks of it.

    A job pickles, so that it can be sent to another process.
    """

    #: The client, from 0.
    client: int
    #: The round, from 1.
    round: int
    #: A number of 64 bits for the client's own random numbers: the same for the same run, round and client,
    #: whatever the scheme.
    seed: int
    #: How many steps of gradient descent.
    steps: int
    #: Samples per mini-batch; a client that has fewer uses all it has.
    batch: int
    #: The step size.
    rate: float
    #: The coefficient of the proximal term: ``proximal * (weights - anchor)`` is added to the gradient of
    #: every step. 0 for most schemes.
    proximal: float = 0.0
    #: What is added to the gradient of every step (control variates), in the form of the model; ``None`` for
    #: nothing.
    correction: Arrays | None = None
    #: The global model of this round: where the proximal term pulls to, and what the client starts from unless
    #: the scheme says otherwise.
    anchor: Arrays = ()
    #: The name of the stream of random numbers behind :meth:`batches`.
    key: bytes = field(default=bytes(32), repr=False)

    def batches(self, samples: int) -> NDArray[np.int64]:
        """The mini-batches of a client with so many samples: one row per step, of positions from 0.

        They are those that the built-in tasks draw for this job: without repetition within a row, all samples
        in order if there are no more than ``batch``.

        >>> Job(client=3, round=1, seed=7, steps=2, batch=4, rate=0.1).batches(3).tolist()
        [[0, 1, 2], [0, 1, 2]]
        """
        return _fedcote.batches(self.key, self.steps, self.batch, samples)


@runtime_checkable
class Task(Protocol):
    """What a federation learns, as :func:`simulate` takes it: any object with these members.

    Three more methods are optional:

    - ``train_many(model, jobs)``: all jobs of a round at once, a sequence of models in their order; ``model`` is
      the global one. It is called instead of :meth:`train` in rounds in which all clients start from the global
      model, unless the task has an attribute ``batched`` that is false: then models are in memory one by one.
    - ``loss(model, client)``: the mean loss of a model on the data of a client, for schemes that choose clients
      by their loss, and for the column ``train_loss``.
    - ``metadata()``: text that tells this task from others. An interrupted run goes on only with the same. By
      default module and name of the class.

    Results must depend on the arguments alone: then runs repeat bit for bit, and go on after an interruption as
    if nothing had happened. Arrays that a task is given are read-only.
    """

    @property
    def labels(self) -> ArrayLike:
        """How many samples of each class each client has: clients × classes."""
        ...

    def initial(self, seed: int) -> Arrays:
        """The model that training starts from. Its names and shapes are those of all models."""
        ...

    def train(self, model: Arrays, job: Job) -> Arrays:
        """The model after a client's local training, which starts from ``model``.

        Every step is ``weights -= job.rate * (gradient + job.correction + job.proximal * (weights - job.anchor))``
        on the mini-batch of that step. A result that is not finite counts as a failed upload.
        """
        ...

    def evaluate(self, model: Arrays) -> Mapping[str, float]:
        """How good a model is, as named numbers: ``accuracy`` (from 0 to 1) and ``loss`` on the test data, which
        tables and figures know, and whatever else."""
        ...


class Refused(Exception):
    """What a task gave cannot be used; the text ends a sentence that begins with "the task"."""


class Missing(Refused):
    """What a scenario names as ``module:name`` is not there; the text says what."""


class TaskError(RuntimeError):
    """A user's task or scheme failed. ``__cause__`` is the exception that it raised, if it was one."""


#: Threads that execute a user's code.
_busy: set[int] = set()


@contextmanager
def user_code() -> Iterator[None]:
    """Around every call of a user's code."""
    thread = threading.get_ident()
    _busy.add(thread)
    try:
        yield
    finally:
        _busy.discard(thread)


def interrupt() -> None:
    """Raises ``KeyboardInterrupt`` in all threads that execute a user's code."""
    for thread in list(_busy):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
        )


#: Names, shapes and where each array starts in the flat vector.
Parameters: TypeAlias = list[tuple[str, tuple[int, ...], int]]


class Form:
    """Names and shapes of a model's arrays."""

    def __init__(self, parameters: Parameters, named: bool) -> None:
        self.parameters = [(name, tuple(shape), start) for name, shape, start in parameters]
        self.named = named
        self._names = [name for name, _, _ in self.parameters]
        # Worked out once: models cross for every training.
        self._places = [
            (slice(start, start + math.prod(shape)), shape) for _, shape, start in self.parameters
        ]

    def arrays(self, flat: NDArray[np.float32]) -> Any:
        """Views of a flat vector, by name or in order."""
        flat.flags.writeable = False
        views = [flat[place].reshape(shape) for place, shape in self._places]
        return dict(zip(self._names, views, strict=True)) if self.named else views

    def flat(self, model: Any, what: str = "returned") -> list[NDArray[np.float32]]:
        """The arrays of a model in order, contiguous and of float32; no copies if they are already."""
        if self.named:
            if not isinstance(model, Mapping):
                raise Refused(f"{what} {_kind(model)}: expected arrays by name, as of `initial`")
            given = {str(name): value for name, value in model.items()}
            if missing := [name for name in self._names if name not in given]:
                raise Refused(f"{what} no `{missing[0]}`, which `initial` has")
            if len(given) > len(self._names):
                unknown = next(name for name in given if name not in self._names)
                raise Refused(f"{what} `{unknown}`, which `initial` does not have")
            values = [given[name] for name in self._names]
        else:
            if isinstance(model, (Mapping, str)) or not hasattr(model, "__len__"):
                raise Refused(f"{what} {_kind(model)}: expected a list of arrays, as of `initial`")
            if len(model) != len(self.parameters):
                raise Refused(f"{what} {len(model)} arrays, `initial` has {len(self.parameters)}")
            values = list(model)
        out = []
        for (name, shape, _), value in zip(self.parameters, values, strict=True):
            array = _array(name, value)
            if array.shape != shape:
                raise Refused(f"{what} `{name}` of shape {array.shape}, of `initial` it is {shape}")
            out.append(np.ascontiguousarray(array, dtype=np.float32).reshape(-1))
        return out


class Bridge:
    """A task as the Rust half sees it: models are flat vectors of float32."""

    def __init__(self, task: Any, seed: int) -> None:
        for name in ("labels", "initial", "evaluate"):
            if not hasattr(task, name):
                raise Refused(f"has no `{name}`: see fedcote.Task")
        if not (hasattr(task, "train") or hasattr(task, "train_many")):
            raise Refused("has neither `train` nor `train_many`: see fedcote.Task")
        self.task, self.seed = task, seed
        self.many: Any = getattr(task, "train_many", None)
        self.loss: Any = getattr(task, "loss", None)
        with user_code():
            first = task.initial(seed)
        if not isinstance(first, (Mapping, Sequence)):
            raise Refused(
                f"gave {_kind(first)} as initial model: expected arrays by name, or a list"
            )
        named = isinstance(first, Mapping)
        names = [str(name) for name in first] if named else map(str, range(len(first)))
        values = first.values() if isinstance(first, Mapping) else first
        self.parameters: Parameters = []
        size = 0
        for name, value in zip(names, values, strict=True):
            shape = np.shape(_array(name, value))
            if 0 in shape:
                raise Refused(f"gave an initial model in which `{name}` is empty: {shape}")
            self.parameters.append((name, shape, size))
            size += int(np.prod(shape, dtype=np.int64))
        if not self.parameters:
            raise Refused("gave an initial model without parameters")
        form = Form(self.parameters, named)
        self.arrays, self.flat = form.arrays, form.flat

    def batched(self) -> bool:
        """Whether `train_many` is better than `train` for each client."""
        return bool(getattr(self.task, "batched", True)) or not hasattr(self.task, "train")

    def labels(self) -> tuple[int, NDArray[np.float64]]:
        """The number of classes, and the counts one client after the other."""
        try:
            counts = np.asarray(self.task.labels, dtype=np.float64)
        except (TypeError, ValueError):
            raise Refused("has `labels` that are not rows of numbers, all of one length") from None
        if counts.ndim != 2:
            raise Refused(f"has `labels` of {counts.ndim} dimensions: clients × classes are two")
        return counts.shape[1], np.ascontiguousarray(counts).ravel()

    def initial(self) -> list[NDArray[np.float32]]:
        with user_code():
            model = self.task.initial(self.seed)
        return self.flat(model, "gave an initial model with")

    def train(self, start: NDArray[np.float32], job: Job) -> list[NDArray[np.float32]]:
        if not hasattr(self.task, "train"):
            return self.train_many(start, [job])[0]
        with user_code():
            model = self.task.train(self.arrays(start), job)
        return self.flat(model)

    def train_many(
        self, model: NDArray[np.float32], jobs: list[Job]
    ) -> list[list[NDArray[np.float32]]]:
        with user_code():
            found = list(self.task.train_many(self.arrays(model), jobs))
        if len(found) != len(jobs):
            raise Refused(f"returned {len(found)} models of `train_many` for {len(jobs)} jobs")
        pairs = zip(found, jobs, strict=True)
        return [self.flat(model, f"for client {job.client} returned") for model, job in pairs]

    def job(
        self,
        client: int,
        round: int,
        seed: int,
        steps: int,
        batch: int,
        rate: float,
        proximal: float,
        correction: NDArray[np.float32] | None,
        anchor: NDArray[np.float32],
        key: bytes,
    ) -> Job:
        return Job(
            client, round, seed, steps, batch, rate, proximal,
            None if correction is None else self.arrays(correction), self.arrays(anchor), key,
        )  # fmt: skip

    def losses(self, model: NDArray[np.float32], clients: list[int]) -> list[float]:
        given = self.arrays(model)
        with user_code():
            found = [self.loss(given, client) for client in clients]
        return [_number("loss", loss) for loss in found]

    def evaluate(self, model: NDArray[np.float32]) -> list[tuple[str, float]]:
        with user_code():
            found = self.task.evaluate(self.arrays(model))
        if not isinstance(found, Mapping):
            raise Refused(f"returned {_kind(found)} of `evaluate`: expected numbers by name")
        return [(str(name), _number(f"evaluate: {name}", value)) for name, value in found.items()]


class Tasks:
    """One task, or one for each seed."""

    def __init__(self, make: Callable[[int], Any], identity: str | None) -> None:
        self.make, self.identity = make, identity

    def task(self, seed: int) -> Bridge:
        with user_code():
            task = self.make(seed)
        return Bridge(task, seed)


def tasks(task: Any) -> Tasks:
    """What ``simulate(task=…)`` takes: a task, or a function that makes one for a seed."""
    if not isinstance(task, type) and hasattr(task, "evaluate"):
        return Tasks(lambda seed: task, identity(task))
    if not callable(task):
        expected = "a fedcote.Task, or a function of the seed that makes one"
        raise TypeError(f"task: expected {expected}, is {_kind(task)}")
    return Tasks(task, _name(task))


def identity(task: Any) -> str:
    """What tells a task from others."""
    metadata = getattr(task, "metadata", None)
    return str(metadata()) if callable(metadata) else _name(type(task))


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{getattr(value, '__module__', type(value).__module__)}.{name}"


def _array(name: str, value: Any) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise Refused(f"gave `{name}` as {array.dtype}: expected an array of numbers")
    return array


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused(f"returned {_kind(value)} of `{name}`: expected a number") from None


def _kind(value: Any) -> str:
    return f"an object of type {type(value).__name__}"
