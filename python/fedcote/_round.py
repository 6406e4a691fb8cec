"""One round of a federation on Flower: what was sent, what came back, what it averages to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from ._aggregate import average, npy_bytes, view


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


def average_updates(updates: dict[str, RecordDict], current: Round) -> ArrayRecord | None:
    """The average of what arrived, each client weighed by its draws.

    Updates that are not finite are rejected. They are looked for only when the average is not
    finite, so that the usual round reads every update once. The outcomes say who was rejected.
    """
    views: dict[str, dict[str, np.ndarray]] = {}
    for name, content in updates.items():
        record = next(iter(content.array_records.values()))
        try:
            views[name] = {key: view(array.data) for key, array in record.items()}
            wrong = [k for k, v in views[name].items() if v.shape != tuple(record[k].shape)]
            if wrong:
                raise ValueError(f"{wrong[0]} is not of the shape it claims")
        except ValueError as problem:
            views.pop(name, None)
            current.outcomes[name] = Outcome(False, f"malformed update: {problem}")
    averages = _averages(views, current)
    if averages is None:
        for name in list(views):
            bad = [key for key, array in views[name].items() if not np.isfinite(array).all()]
            if bad:
                del views[name]
                current.outcomes[name] = Outcome(False, f"update is not finite: {bad[0]}")
        averages = _averages(views, current)
    if not averages:
        return None
    return ArrayRecord(
        {
            key: Array(str(array.dtype), array.shape, "numpy.ndarray", npy_bytes(array))
            for key, array in averages.items()
        }
    )


def _averages(
    views: dict[str, dict[str, np.ndarray]], current: Round
) -> dict[str, np.ndarray] | None:
    """The averages by key, in the model's order; ``None`` when something is not finite."""
    names = [name for name in current.drawn if name in views]
    if not names:
        return {}
    weights = [current.drawn[name] for name in names]
    averages = {}
    for key in current.arrays:
        averages[key], finite = average([views[name][key] for name in names], weights)
        if not finite:
            return None
    return averages
