"""Any PyTorch model and data set as a task for :func:`fedcote.simulate`.

Needs PyTorch: ``pip install 'fedcote[torch]'``. A short example::

    import fedcote.torch

    task = fedcote.torch.Task(Net, train, test, clients=20, partition="dirichlet", concentration=0.1)
    result = fedcote.simulate("quickstart", task=task)
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    import torch
except ImportError as error:
    raise ImportError("fedcote.torch needs PyTorch: pip install 'fedcote[torch]'") from error
from torch import nn

from ._data import Partition
from ._data import partition as divide
from ._task import Job
from ._torch_data import Collate, Data, classes, seeded
from ._torch_local import Arrays, Local, Score, arrays, exchanged

__all__ = ["Task", "accuracy"]

#: Generators and the number of threads belong to the process: one task computes at a time.
_LOCK = threading.RLock()


def accuracy(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The share of samples whose largest output is that of their class."""
    return (outputs.argmax(1) == targets).float().mean()


class Task:
    """A PyTorch model on clients that share a data set, for ``fedcote.simulate(task=…)``.

    Local training is SGD with the scenario's steps, batch and rate. What a scheme adds to it enters
    every step: the proximal term through the gradients; control variates too, but past the
    momentum, which would amplify them.

    The model that the federation exchanges has all parameters, and those buffers of the state
    dictionary that are floating-point numbers (running statistics of batch normalisation), which
    are averaged like parameters. Other buffers (counters) stay as ``model`` makes them.

    On a CPU results are the same for a seed, bit by bit, whatever the number of cores.

    Parameters
    ----------
    model
        Makes the module: a class, or a function without arguments. The seed of a run decides its
        parameters. A module itself is copied: then all runs start from its parameters.
    train, test
        Map-style data sets of pairs (input, target), or tuples (inputs, targets) of arrays.
    clients
        How many clients share the training data; not with a ``partition`` of your own.
    partition
        How they share it: ``"iid"``, ``"dirichlet"``, ``"label-pairs"``, ``"one-label"`` or
        ``"shards"``, as in scenario files; or for each client the positions of its samples.
    concentration, unbalance, shards_per_client, seed
        Settings of the partition, as for :func:`fedcote.partition`.
    labels
        The class of each training sample, by which clients are selected. By default the data
        set's ``targets``, or else the targets of its samples, read once.
    loss
        From outputs and targets to a mean over samples; by default the cross-entropy.
    metrics
        The same for further scores, by name; by default the accuracy. ``loss`` is always there.
        Scores are averaged over mini-batches of test samples.
    device
        ``"auto"`` for CUDA, MPS or the CPU, whichever there is first; or a device of PyTorch.
    momentum, weight_decay
        Of SGD. The momentum of a client starts at 0 in every round.
    batched
        Whether all clients of a round train in one pass, by ``torch.func.vmap``. ``"auto"``: not on a
        CPU, where it gains little and bits would depend on who trains together; else where the
        model allows it.
    preload
        Whether data are loaded once, to one tensor on the device. ``"auto"``: if they have at most
        2 GiB, and 64 samples that are read twice are the same. Say ``False`` for data that are
        random in a rarer way, such as an augmentation of one sample in a hundred.
    collate
        From a list of samples to a pair of inputs and targets, as a DataLoader's ``collate_fn``.
    evaluation_batch
        How many test samples are evaluated at a time. ``None``: all at once, for metrics that are
        not means over samples.
    loss_samples
        From how many samples of each client, evenly spaced, its training loss is computed, which is
        done for all clients with every evaluation. ``None``: from all.
    threads
        With how many threads PyTorch computes on the CPU; the bits of results depend on it.
    """

    def __init__(
        self,
        model: Callable[[], nn.Module] | nn.Module,
        train: Any,
        test: Any,
        *,
        clients: int | None = None,
        partition: Partition | Sequence[ArrayLike] = "iid",
        concentration: float | None = None,
        unbalance: float | None = None,
        shards_per_client: int | None = None,
        seed: int = 1,
        labels: ArrayLike | None = None,
        loss: Score = nn.functional.cross_entropy,
        metrics: Mapping[str, Score] | None = None,
        device: str | torch.device = "auto",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        batched: Literal["auto"] | bool = "auto",
        preload: Literal["auto"] | bool = "auto",
        collate: Collate | None = None,
        evaluation_batch: int | None = 128,
        loss_samples: int | None = None,
        threads: int = 1,
    ) -> None:
        for name, least, value in (
            ("momentum", 0, momentum),
            ("weight_decay", 0, weight_decay),
            ("evaluation_batch", 1, evaluation_batch),
            ("loss_samples", 1, loss_samples),
            ("threads", 1, threads),
        ):
            if value is not None and not least <= value < float("inf"):
                raise ValueError(f"{name}: must be at least {least}, is {value}")
        for name, choice in (("batched", batched), ("preload", preload)):
            if choice not in ("auto", True, False):
                raise ValueError(f'{name}: must be "auto", True or False, is {choice!r}')
        self.device = _device(device)
        self._make = _maker(model)
        self._metrics = dict({"accuracy": accuracy} if metrics is None else metrics)
        self._threads, self._evaluation_batch = threads, evaluation_batch
        self._loss_samples = loss_samples
        data = Data("train", train, self.device, preload, collate)
        self._test = Data("test", test, self.device, preload, collate)
        known = data.labels() if labels is None else classes(labels, "labels", len(data))
        if isinstance(partition, str):
            if clients is None:
                raise ValueError("clients: missing: how many share the training data?")
            samples = divide(
                known, clients, cast(Partition, partition), concentration=concentration, unbalance=unbalance,
                shards_per_client=shards_per_client, seed=seed,
            )  # fmt: skip
        else:
            settings = (concentration, unbalance, shards_per_client)
            if any(setting is not None for setting in settings):
                raise ValueError(
                    "partition: lists of samples have no concentration or other settings"
                )
            samples = _lists(partition, len(data), clients)
        counts = [np.bincount(known[own], minlength=int(known.max()) + 1) for own in samples]
        #: How many samples of each class each client has: clients × classes.
        self.labels = np.stack(counts)
        module = self._new(0).to(self.device)
        own_loss = loss.to(self.device) if isinstance(loss, nn.Module) else loss
        self._local = Local(module, data, samples, own_loss, momentum, weight_decay)
        self._batched = False if batched == "auto" and self.device.type == "cpu" else batched
        self._identity = {
            "model": {name: list(one.shape) for name, one in exchanged(module).items()},
            "samples": [len(data), len(self._test)],
            "division": _digest([known, *samples]),
            "loss": getattr(loss, "__qualname__", type(loss).__qualname__),
            "metrics": sorted(self._metrics),
            "momentum": momentum,
            "weight_decay": weight_decay,
            "batched": self._batched,
            "loss_samples": loss_samples,
            "threads": threads,
            "device": self.device.type,
        }

    @property
    def batched(self) -> bool:
        """Whether clients of a round train in one pass, as far as is known."""
        return bool(self._batched)

    def metadata(self) -> str:
        """What tells this task from others: shapes of the model, division of the data, options."""
        return f"fedcote.torch.Task {json.dumps(self._identity)}"

    def initial(self, seed: int) -> Arrays:
        """The model that training starts from."""
        with _LOCK:
            return arrays(exchanged(self._new(seed)))

    def train(self, model: Any, job: Job) -> Arrays:
        """The model after a client's local training."""
        with self._computing(job.seed):
            return arrays(self._local.one(model, job))

    def train_many(self, model: Any, jobs: Sequence[Job]) -> list[Arrays]:
        """The models of all clients of a round."""
        # Only clients with equally many steps, and samples per step, train together.
        groups: dict[tuple[object, ...], list[int]] = {}
        for at, job in enumerate(jobs):
            size = min(job.batch, len(self._local.samples[job.client]))
            groups.setdefault((job.steps, size, job.rate, job.proximal), []).append(at)
        done: dict[int, Arrays] = {}
        for group in groups.values():
            if self._batched and len(group) > 1:
                done.update(self._together(model, jobs, group))
        return [done[at] if at in done else self.train(model, job) for at, job in enumerate(jobs)]

    def evaluate(self, model: Any) -> dict[str, float]:
        """Metrics and loss on the test data."""
        return self._scores(model, self._test, np.arange(len(self._test)), self._metrics)

    def loss(self, model: Any, client: int) -> float:
        """The mean loss on the training data of a client."""
        own = self._local.samples[client]
        if self._loss_samples is not None and self._loss_samples < len(own):
            own = own[np.arange(self._loss_samples) * len(own) // self._loss_samples]
        return self._scores(model, self._local.data, own, {})["loss"]

    def _together(self, model: Arrays, jobs: Sequence[Job], group: list[int]) -> dict[int, Arrays]:
        chosen = [jobs[at] for at in group]
        try:
            with self._computing(chosen[0].seed):
                found = arrays(self._local.together(model, chosen))
        except Exception as error:
            if self._batched is True:
                raise
            # If it is not batching that fails, training one by one says so.
            logging.getLogger(__name__).info("clients are trained one by one: %s", error)
            self._batched = False
            return {}
        split = ({name: array[at] for name, array in found.items()} for at in range(len(group)))
        return dict(zip(group, split, strict=True))

    def _scores(
        self, model: Arrays, data: Data, samples: NDArray[Any], metrics: Mapping[str, Score]
    ) -> dict[str, float]:
        scores = {**metrics, "loss": self._local.loss}
        sums = dict.fromkeys(scores, 0.0)
        size = self._evaluation_batch or len(samples)
        module = self._local.module
        with self._computing(0), torch.no_grad():
            self._local.load(model)
            module.eval()
            for start in range(0, len(samples), size):
                chosen = samples[start : start + size]
                inputs, targets = data.batch(chosen)
                outputs = module(inputs)
                for name, score in scores.items():
                    sums[name] += float(score(outputs, targets)) * len(chosen)
        return {name: total / len(samples) for name, total in sums.items()}

    @contextlib.contextmanager
    def _computing(self, seed: int) -> Iterator[None]:
        """This task alone, with its number of threads, and random numbers that begin with the seed."""
        with _LOCK, seeded(seed, self.device), torch.enable_grad():
            before = torch.get_num_threads()
            torch.set_num_threads(self._threads)
            try:
                yield
            finally:
                torch.set_num_threads(before)

    def _new(self, seed: int) -> nn.Module:
        with seeded(seed, torch.device("cpu")):
            module = self._make()
        if not isinstance(module, nn.Module):
            raise TypeError(f"model: made {type(module).__name__}, expected a torch.nn.Module")
        for name, leaf in module.named_parameters():
            if nn.parameter.is_lazy(leaf):
                raise ValueError(f"model: `{name}` has no shape yet; give lazy modules their sizes")
            if not leaf.is_floating_point():
                raise ValueError(f"model: `{name}` is {leaf.dtype}, not floating-point numbers")
        return module


def _device(name: str | torch.device) -> torch.device:
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _maker(model: Callable[[], nn.Module] | nn.Module) -> Callable[[], nn.Module]:
    if isinstance(model, nn.Module):
        first = copy.deepcopy(model)
        return lambda: copy.deepcopy(first)
    if not callable(model):
        raise TypeError("model: expected a class or function that makes a torch.nn.Module")
    return model


def _lists(given: Sequence[ArrayLike], length: int, clients: int | None) -> list[NDArray[np.int64]]:
    """The positions of each client's samples."""
    lists = []
    for client, own in enumerate(given):
        positions = np.asarray(own)
        if positions.ndim != 1 or positions.size == 0 or positions.dtype.kind not in "iu":
            raise ValueError(
                f"partition: client {client}: expected positions of samples, at least one"
            )
        if positions.min() < 0 or positions.max() >= length:
            raise ValueError(
                f"partition: client {client}: positions must be from 0 to {length - 1}"
            )
        lists.append(positions.astype(np.int64))
    if not lists or clients not in (None, len(lists)):
        raise ValueError(f"partition: has {len(lists)} lists for {clients or 'no'} clients")
    return lists


def _digest(parts: Sequence[NDArray[Any]]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes())
    return found.hexdigest()[:16]
