"""Data sets of PyTorch as the tensors of mini-batches, for :mod:`fedcote.torch`."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import TensorDataset, default_collate

#: Data of up to so many bytes are loaded once, unless it is said otherwise.
FITS = 2 << 30

#: So many samples are read twice, to see whether reading them is random.
PROBES = 64

#: So many samples are read at a time.
CHUNK = 1024

Collate = Callable[[list[Any]], Any]


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """The random numbers of PyTorch, NumPy and Python begin with this seed; afterwards they go on as before."""
    devices = [device] if device.type == "cuda" else []
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            if device.type == "cpu":
                # `torch.manual_seed` notes the caller's stack for a GPU that may come, which takes as long as a small step.
                torch.default_generator.manual_seed(seed)
            else:
                torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed % 2**32)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


class Data:
    """A map-style data set of pairs of input and target, on a device.

    It is one tensor if that fits; else samples are fetched when they are needed.
    """

    def __init__(
        self,
        name: str,
        data: Any,
        device: torch.device,
        preload: Literal["auto"] | bool,
        collate: Collate | None,
    ) -> None:
        if isinstance(data, tuple):
            if len(data) != 2:
                raise ValueError(f"{name}: a tuple must be inputs and targets, has {len(data)}")
            data = TensorDataset(_tensor(data[0]), _tensor(data[1], whole=torch.int64))
        if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            raise TypeError(f"{name}: expected a map-style data set, with __getitem__ and __len__")
        if len(data) == 0:
            raise ValueError(f"{name}: has no samples")
        self.name, self.data, self.device = name, data, device
        self.collate = collate or default_collate
        self.tensors: tuple[torch.Tensor, torch.Tensor] | None = None
        self._targets: torch.Tensor | None = None
        if preload is not False:
            wanted = preload is True or collate is None
            loaded = self._load(always=preload is True) if wanted else None
            if loaded is not None:
                self.tensors = loaded[0].to(device), loaded[1].to(device)
                self._targets = loaded[1]
            elif preload is True:
                raise ValueError(f"{name}: the samples do not make two tensors; use preload=False")

    def __len__(self) -> int:
        return len(self.data)

    def batch(self, positions: NDArray[np.int64]) -> tuple[Any, Any]:
        """Inputs and targets of these samples, in their shape: clients × samples, or samples."""
        shape = positions.shape
        if self.tensors is not None:
            index = torch.as_tensor(positions.reshape(-1), device=self.device)
            # Three times as fast as `tensor[index]`, which matters in a small step.
            inputs, targets = (tensor.index_select(0, index) for tensor in self.tensors)
        else:
            inputs, targets = self._fetch(positions.reshape(-1))

        def place(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.to(self.device)
            return tensor if len(shape) == 1 else tensor.reshape(*shape, *tensor.shape[1:])

        return _each(inputs, place), _each(targets, place)

    def labels(self) -> NDArray[np.int64]:
        """The class of each sample, read once: the data set's own list, or its targets one by one."""
        found = getattr(self.data, "targets", None)
        if found is None and self._targets is not None:
            found = self._targets.cpu()
        if found is None:
            found = [np.asarray(self.data[at][1]) for at in range(len(self))]
        return classes(found, f"{self.name}: targets", len(self))

    def _fetch(self, positions: NDArray[np.int64] | range) -> tuple[Any, Any]:
        rows = [int(at) for at in positions]
        many = getattr(self.data, "__getitems__", None)
        samples = many(rows) if many is not None else [self.data[at] for at in rows]
        batch = self.collate(samples)
        if not isinstance(batch, Sequence) or len(batch) != 2:
            raise ValueError(f"{self.name}: a sample must be a pair of input and target")
        return batch[0], batch[1]

    def _load(self, always: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """All samples as two tensors, if they can be that; unless `always`, if they fit and are not random."""
        if isinstance(self.data, TensorDataset) and len(self.data.tensors) == 2:
            return self.data.tensors[0], self.data.tensors[1]
        try:
            if not always:
                probes = np.linspace(0, len(self) - 1, min(PROBES, len(self)), dtype=np.int64)
                with seeded(0, self.device):
                    first, again = self._fetch(probes), self._fetch(probes)
                pairs = list(zip(first, again, strict=True))
                if not all(isinstance(one, torch.Tensor) for one, _ in pairs):
                    return None
                size = sum(one.nbytes for one, _ in pairs) // len(probes) * len(self)
                if size > FITS or not all(torch.equal(one, two) for one, two in pairs):
                    return None
            chunks = [
                self._fetch(range(start, min(start + CHUNK, len(self))))
                for start in range(0, len(self), CHUNK)
            ]
            inputs, targets = zip(*chunks, strict=True)
            return torch.cat(inputs), torch.cat(targets)
        except (RuntimeError, TypeError):
            # Samples of several shapes, or something else than tensors.
            return None


def classes(values: Any, name: str, length: int) -> NDArray[np.int64]:
    """A class from 0 for each sample."""
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != length or array.dtype.kind not in "iub":
        raise ValueError(
            f"{name}: not one class, a whole number, per sample; give them as labels=, of length {length}"
        )
    if int(array.min()) < 0 or int(array.max()) > 65_535:
        raise ValueError(f"{name}: classes must be from 0 to 65535")
    return array.astype(np.int64)


def _tensor(values: Any, whole: torch.dtype | None = None) -> torch.Tensor:
    """A tensor as it is; an array with the types that modules and losses take, float32 and ``whole``."""
    if isinstance(values, torch.Tensor):
        return values
    array = np.asarray(values)
    types: dict[str, torch.dtype | None] = {"f": torch.float32, "i": whole, "u": whole}
    return torch.tensor(array, dtype=types.get(array.dtype.kind))


def _each(tree: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """The same nest of dictionaries, tuples and lists with the function applied to every tensor."""
    if isinstance(tree, torch.Tensor):
        return function(tree)
    if isinstance(tree, Mapping):
        return {name: _each(part, function) for name, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(_each(part, function) for part in tree)
    return tree
