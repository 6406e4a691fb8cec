"""One round of a federation on Flower: what was sent, what came back, what it averages to."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from ._aggregate import average, npy_bytes, view
from ._control import Control
from ._memory import Arrays, Memory
from .client import RECORD


@dataclass
class Outcome:
    """What became of one client's upload."""

    arrived: bool
    reason: str
    #: Whether it says something about the client.
    counts: bool = True


@dataclass
class Round:
    """The round under way."""

    grid: Grid
    arrays: ArrayRecord
    config: ConfigRecord
    attempts: int = 0
    #: How often each client was drawn, in the latest attempt.
    drawn: dict[str, int] = field(default_factory=dict)
    sent: dict[str, Message] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    #: Who failed in any attempt, and why.
    failed: dict[str, str] = field(default_factory=dict)
    #: The label divergence that the selection leads to.
    wanted: float = 0.0
    #: The weights that the selection aims at, for a server with memory.
    target: dict[str, float] = field(default_factory=dict)
    #: What each client was asked to add to its local training, if anything.
    corrections: dict[str, ArrayRecord] = field(default_factory=dict)
    #: By what corrections were multiplied.
    scale: float = 0.0
    #: Who says to have added the correction, and which arrays of it.
    corrected: dict[str, frozenset[str]] = field(default_factory=dict)
    #: The weight of each client in the model's step.
    shares: dict[str, float] = field(default_factory=dict)

    def arrived(self) -> list[str]:
        """Whose upload arrived in the latest attempt, in the order drawn."""
        return [
            name for name in self.drawn if name in self.outcomes and self.outcomes[name].arrived
        ]


def check_update(content: RecordDict, model: ArrayRecord) -> str | None:
    """What is wrong with an update, if anything."""
    records = list(content.array_records.values())
    if len(records) != 1:
        return f"malformed update: {len(records)} array records instead of one"
    if set(records[0]) != set(model):
        return "malformed update: its arrays are not those of the model"
    for name, array in records[0].items():
        if tuple(array.shape) != tuple(model[name].shape):
            wanted = tuple(model[name].shape)
            return f"malformed update: {name} has shape {tuple(array.shape)}, not {wanted}"
    return None


@dataclass(frozen=True)
class Bounds:
    """What an update may be like at most: the norm of its difference from the model sent."""

    #: Longer ones are rejected.
    max_norm: float | None = None
    #: Longer ones are scaled down to it.
    clip: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_norm", "clip"):
            bound = getattr(self, name)
            if bound is not None and not 0 < bound < math.inf:
                raise ValueError(f"{name}: must be a positive number, is {bound}")

    def apply(self, update: Arrays, model: Arrays) -> Arrays:
        """The update within the bounds; an error says why it is rejected."""
        if self.max_norm is None and self.clip is None:
            return update
        norm = distance(update, model)
        if not all(np.isfinite(array).all() for array in update.values()):
            return update  # rejected as not finite
        bound = self.max_norm if self.max_norm is not None else math.inf
        if not norm < math.inf or norm > bound:
            raise ValueError(
                f"its norm is {norm:.4g}, the bound is {min(bound, self.clip or bound):.4g}"
            )
        if self.clip is None or norm <= self.clip:
            return update
        return {key: _towards(array, model[key], self.clip / norm) for key, array in update.items()}


def distance(update: Arrays, model: Arrays) -> float:
    """The Euclidean norm of an update, in float64; arrays of whole numbers do not count."""
    norms = []
    with np.errstate(invalid="ignore", over="ignore"):
        for key, array in update.items():
            if array.dtype.kind in "fc" and array.size:
                change = np.abs(array.astype(np.result_type(array.dtype, np.float64)) - model[key])
                # Divided by the largest first: squares of numbers that are finite stay finite.
                largest = float(change.max())
                scaled = change / largest if 0 < largest < math.inf else change
                norms.append(largest * float(np.sqrt(np.sum(scaled * scaled))))
    return math.hypot(*norms)


def _towards(array: np.ndarray, model: np.ndarray, factor: float) -> np.ndarray:
    if array.dtype.kind not in "fc":
        return array
    wide = np.result_type(array.dtype, np.float64)
    return (model + (array.astype(wide) - model) * factor).astype(array.dtype)


def _read(record: ArrayRecord, model: Arrays) -> Arrays:
    """The arrays of an update, of the model's types; an error says what is wrong with them."""
    arrays = {key: view(array.data) for key, array in record.items()}
    for key, array in arrays.items():
        wanted = model[key].dtype
        if array.shape != tuple(record[key].shape):
            raise ValueError(f"{key} is not of the shape it claims")
        if not np.can_cast(array.dtype, wanted, "same_kind"):
            raise ValueError(f"{key} has dtype {array.dtype}, not {wanted}")
        # Numbers too large for the model's type become infinite, and are rejected as such.
        with np.errstate(over="ignore"):
            arrays[key] = array.astype(wanted, copy=False)
    return arrays


def record(arrays: Arrays) -> ArrayRecord:
    """Arrays as Flower sends them, copied once."""
    return ArrayRecord(
        {
            key: Array(str(array.dtype), array.shape, "numpy.ndarray", npy_bytes(array))
            for key, array in arrays.items()
        }
    )


def _confirmed(content: RecordDict, correction: ArrayRecord | None) -> frozenset[str]:
    """Which arrays a client says to have corrected; only what was sent counts."""
    keys = content.config_records.get(RECORD, ConfigRecord()).get("corrected")
    if correction is None or not isinstance(keys, list):
        return frozenset()
    return frozenset(correction).intersection(keys)


def _length(content: RecordDict) -> float:
    """The path length Eγ that a client reports, which may be anything; NaN if it reports none."""
    length = content.config_records.get(RECORD, ConfigRecord()).get("length")
    return float(length) if isinstance(length, (int, float)) else math.nan


def _start(model: Arrays, correction: ArrayRecord, keys: Collection[str]) -> Arrays:
    """Where a client's own update starts: the model with the correction."""
    with np.errstate(over="ignore"):  # rejected as not finite
        return {
            key: array + view(correction[key].data) if key in keys else array
            for key, array in model.items()
        }


def next_model(
    updates: dict[str, RecordDict],
    current: Round,
    bounds: Bounds,
    memory: Memory | None,
    round_: int,
) -> ArrayRecord | None:
    """The model after a round: the average of what arrived, or a step by what is remembered.

    ``None`` leaves the model as it is. The outcomes say whose update was rejected.
    """
    model = {key: view(array.data) for key, array in current.arrays.items()}
    views: dict[str, Arrays] = {}
    starts: dict[str, Arrays] = {}
    for name in current.drawn:
        if name not in updates:
            continue
        content = updates[name]
        try:
            arrays = _read(next(iter(content.array_records.values())), model)
        except ValueError as problem:
            current.outcomes[name] = Outcome(False, f"malformed update: {problem}")
            continue
        starts[name] = model
        keys = _confirmed(content, current.corrections.get(name))
        if keys:
            current.corrected[name] = keys
            starts[name] = _start(model, current.corrections[name], keys)
        try:
            # The bounds are for what the client did by itself: nothing else enters the model.
            views[name] = bounds.apply(arrays, starts[name])
        except ValueError as problem:
            current.outcomes[name] = Outcome(False, f"update is too long: {problem}")
    if memory is None:
        found = _mean(views, current)
    else:
        lengths = {name: _length(updates[name]) for name in views}
        found = _remember(views, starts, lengths, model, current, memory, round_)
    return record(found) if found else None


def _remember(
    views: dict[str, Arrays],
    starts: dict[str, Arrays],
    lengths: dict[str, float],
    model: Arrays,
    current: Round,
    memory: Memory,
    round_: int,
) -> Arrays | None:
    """Remembers what arrived, and steps by all that is remembered."""
    before = {}
    for name, arrays in views.items():
        remembered = memory.updates.get(name)
        try:
            memory.remember(name, arrays, starts[name], round_)
            before[name] = remembered
        except ValueError as problem:
            current.outcomes[name] = Outcome(False, str(problem))
    calm = None
    if isinstance(memory, Control):
        calm = memory.watch(before, current.corrected, lengths, model, round_)
    if not current.arrived():
        return None
    stepped, current.shares = memory.step(calm or model, current.target)
    if stepped is None and current.shares:
        # Updates are finite, but huge. Whose fault it is cannot be told.
        memory.forget()
        current.shares = {}
        for name in current.arrived():
            current.outcomes[name] = Outcome(False, "the model would not be finite", counts=False)
    return calm if stepped is None else stepped


def _mean(views: dict[str, Arrays], current: Round) -> Arrays | None:
    """The average of what arrived, each client weighed by its draws.

    Updates that are not finite are looked for only when the average is not finite, so that the
    usual round reads every update once.
    """
    averages = _averages(views, current)
    if averages is None:
        for name in list(views):
            bad = [key for key, array in views[name].items() if not np.isfinite(array).all()]
            if bad:
                del views[name]
                current.outcomes[name] = Outcome(False, f"update is not finite: {bad[0]}")
        averages = _averages(views, current)
    current.shares = {name: float(current.drawn[name]) for name in views}
    return averages


def _averages(views: dict[str, Arrays], current: Round) -> Arrays | None:
    """The averages by key, in the model's order; ``None`` when something is not finite."""
    if not views:
        return {}
    weights = [current.drawn[name] for name in views]
    averages = {}
    for key in current.arrays:
        averages[key], finite = average([arrays[key] for arrays in views.values()], weights)
        if not finite:
            return None
    return averages
