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
from ._optimizer import ServerOptimizer
from ._privacy import Privacy, clipped, zeros
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
    #: How many clients are connected.
    clients: int = 0
    #: The standard deviation of the noise in the model's step.
    noise: float = 0.0
    #: Whose update was taken for zero, and why, where rejecting it would disclose something.
    zeroed: dict[str, str] = field(default_factory=dict)

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
    scaled: np.ndarray = (model + (array.astype(wide) - model) * factor).astype(array.dtype)
    return scaled


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
    privacy: Privacy | None = None,
    optimizer: ServerOptimizer | None = None,
) -> ArrayRecord | None:
    """The model after a round: the average of what arrived, or a step by what is remembered.

    ``None`` leaves the model as it is. The outcomes say whose update was rejected.
    """
    model = {key: view(array.data) for key, array in current.arrays.items()}
    base, found = model, None
    if privacy is not None:
        found = _private(updates, model, current, privacy, memory, round_)
    else:
        views, starts = _views(updates, model, current, bounds)
        if memory is None:
            found = _mean(views, current)
        else:
            lengths = {name: _length(updates[name]) for name in views}
            base, found = _remember(views, starts, lengths, model, current, memory, round_)
    if found and optimizer is not None:
        if base is not model:
            optimizer.clear()  # back to an older model
        found = optimizer.step(base, found)
        if found is None:
            _blame_nobody(current)
    return record(found) if found else None


def _views(
    updates: dict[str, RecordDict], model: Arrays, current: Round, bounds: Bounds
) -> tuple[dict[str, Arrays], dict[str, Arrays]]:
    """The arrays of each update within the bounds, and where each update starts."""
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
    return views, starts


def _private(
    updates: dict[str, RecordDict],
    model: Arrays,
    current: Round,
    privacy: Privacy,
    memory: Memory | None,
    round_: int,
) -> Arrays | None:
    """The model, stepped by a mean with noise. No update has a say in who takes part."""
    found: dict[str, Arrays] = {}
    for name in updates:
        try:
            problem = check_update(updates[name], current.arrays)
            if problem is not None:
                raise ValueError(problem)
            arrays = _read(next(iter(updates[name].array_records.values())), model)
            update = clipped(arrays, model, privacy.clip)
            if update is None:
                raise ValueError("update is not finite")
            found[name] = update
        except ValueError as problem:
            current.zeroed[name] = str(problem)
            found[name] = zeros(model)
    if not found:
        return None
    held, rate = found, 1.0
    if memory is None:
        total = sum(current.drawn[name] for name in found)
        shares = {name: current.drawn[name] / total for name in current.drawn if name in found}
    else:
        for name, update in found.items():
            memory.put(name, {**_whole_zeros(model), **update}, model, round_)
        held, rate = memory.updates, memory.server_rate
        shares = memory.shares(current.target)
    if not shares:
        return None
    equal = min(sum(current.drawn.values()), current.clients)
    current.shares = privacy.bounded(shares, equal)
    current.noise = privacy.noise_multiplier * privacy.sensitivity(current.shares)
    released = privacy.release(model, held, current.shares, rate)
    if released is None:
        _blame_nobody(current)
    return released


def _whole_zeros(model: Arrays) -> Arrays:
    return {
        key: np.zeros(array.shape, np.result_type(array.dtype, np.float32))
        for key, array in model.items()
        if array.dtype.kind not in "fc"
    }


def _blame_nobody(current: Round) -> None:
    """Updates are finite, but huge. Whose fault it is cannot be told."""
    current.shares = {}
    for name in current.arrived():
        current.outcomes[name] = Outcome(False, "the model would not be finite", counts=False)


def _remember(
    views: dict[str, Arrays],
    starts: dict[str, Arrays],
    lengths: dict[str, float],
    model: Arrays,
    current: Round,
    memory: Memory,
    round_: int,
) -> tuple[Arrays, Arrays | None]:
    """Remembers what arrived, and steps by all that is remembered: from which model, and to which."""
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
        return model, None
    stepped, current.shares = memory.step(calm or model, current.target)
    if stepped is None and current.shares:
        memory.forget()
        _blame_nobody(current)
    return calm or model, calm if stepped is None else stepped


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
