"""What a round is reported as: reasons in one line, metrics of clients that fit together."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from flwr.app import MetricRecord, RecordDict

from ._control import Control
from ._memory import Memory
from ._round import Round
from ._selector import Selector

log = logging.getLogger("flwr")

#: The longest reason that is logged and kept.
LONGEST_REASON = 200


def short(reason: str | None) -> str:
    """A reason in one line: of a traceback the last, which names the exception.

    >>> short("Traceback (most recent call last):\\n  File …\\nValueError: too long\\n")
    'ValueError: too long'
    """
    lines = [line.strip() for line in (reason or "").splitlines() if line.strip(" '\"<>")]
    line = "".join(one for one in (lines[-1] if lines else "no reason given") if one.isprintable())
    line = line.removesuffix("'>")  # Flower puts exceptions between <' and '>
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"


def _signature(content: RecordDict) -> tuple[Any, ...]:
    """What the metrics of one client are like: names, lengths, whether they are finite."""
    metrics = next(iter(content.metric_records.values()))
    shapes = []
    for key, value in metrics.items():
        numbers = value if isinstance(value, list) else [value]
        finite = all(math.isfinite(number) for number in numbers)
        shapes.append((key, len(value) if isinstance(value, list) else -1, finite))
    return tuple(sorted(shapes))


def _weight(content: RecordDict, key: str) -> float:
    """A reply's weight for metrics; zero if it has none."""
    weight = next(iter(content.metric_records.values())).get(key, 0.0)
    return float(weight) if isinstance(weight, (int, float)) and math.isfinite(weight) else 0.0


def client_metrics(
    contents: list[RecordDict],
    key: str,
    average: Callable[[list[RecordDict], str], MetricRecord],
) -> MetricRecord:
    """The metrics of clients, averaged as Flower does; what does not fit together is left out.

    Clients may report anything: those without a positive weight, and those whose metrics are not
    like those of most, do not count.
    """
    weighed = [
        content
        for content in contents
        if len(content.metric_records) == 1 and _weight(content, key) > 0
    ]
    try:
        signatures = [_signature(content) for content in weighed]
        if not weighed:
            return MetricRecord()
        usual = Counter(signatures).most_common(1)[0][0]
        alike = [content for content, one in zip(weighed, signatures, strict=True) if one == usual]
        if len(alike) < len(weighed):
            odd = len(weighed) - len(alike)
            log.warning("fedcote: metrics of %d clients are not like the others', left out", odd)
        return average(alike, key)
    except Exception as problem:
        log.warning("fedcote: metrics of clients cannot be averaged: %s", short(repr(problem)))
        return MetricRecord()


def report(
    current: Round, number: int, selector: Selector, memory: Memory | None, private: bool
) -> dict[str, Any]:
    """What happened in a round, for the history."""
    shares = current.shares
    realised = selector.label_divergence(shares) if shares else math.nan
    found: dict[str, Any] = {
        "round": number,
        "attempts": current.attempts,
        "drawn": current.drawn,
        "arrived": current.arrived(),
        "failed": current.failed,
        "label_divergence": current.wanted,
        "label_divergence_realised": None if math.isnan(realised) else realised,
    }
    if memory is not None:
        found["remembered"] = len(memory.updates)
        found["memory_bytes"] = memory.bytes
    if private:
        found["noise"] = current.noise
        found["max_share"] = max(shares.values(), default=0.0)
        found["zeroed"] = dict(current.zeroed)
    if isinstance(memory, Control):
        found["corrected"] = [name for name in current.arrived() if name in current.corrected]
        found["correction"] = current.scale
    return found


def round_metrics(found: dict[str, Any]) -> dict[str, int | float]:
    """The numbers of a round's report, under the names of metrics."""
    metrics: dict[str, int | float] = {
        "fedcote-drawn": len(found["drawn"]),
        "fedcote-arrived": len(found["arrived"]),
        "fedcote-attempts": found["attempts"],
        "fedcote-label-divergence": float(found["label_divergence"]),
    }
    if found["label_divergence_realised"] is not None:
        metrics["fedcote-label-divergence-realised"] = float(found["label_divergence_realised"])
    for key in ("remembered", "memory_bytes", "noise", "max_share", "correction"):
        if key in found:
            metrics[f"fedcote-{key.replace('_', '-')}"] = found[key]
    if "corrected" in found:
        metrics["fedcote-corrected"] = len(found["corrected"])
    return metrics
