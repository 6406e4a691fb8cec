"""Control variates that the server works out from plain uploads (SCAFFOLD's, without its state on
clients and without its second upload).

What is remembered of a client is its own update u_i: what it returned, less the model and the
correction that it was sent. The next correction is v_i = λ (ū − u_i) with ū = Σ β_i u_i / Σ β_i, in
units of updates: a client that divides it by its number of local steps and adds a part after
each of them drifts like everybody, and not towards its own labels. The server needs to know
neither rates nor numbers of steps for that.

Where local steps are too long for the curvature, as in deep networks, the correction holds a client
where its training is unstable, and its updates change wildly from one to the next. :func:`safer`
looks for that, and ends corrections: what is left is memory.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._aggregate import weighted_sum
from ._memory import Arrays, Memory

#: How many energies are looked at, and what their median may be, in units of the loss (nats).
WINDOW, LIMIT = 40, 1.0


#: More than any limit, and a number that JSON can hold.
ENOUGH = 1e300


@dataclass(frozen=True)
class Path:
    """What a client says of its corrected training."""

    #: Which arrays it corrected.
    keys: frozenset[str]
    #: The sum of the rates of its steps, Eγ; it may say anything.
    length: float


def energy(fresh: Arrays, remembered: Arrays, path: Path) -> float:
    """How much a client's update changed from one to the next, ‖u − u'‖² / Eγ: in units of the loss.

    >>> path = Path(frozenset("w"), length=0.5)
    >>> energy({"w": np.float32([3, 4])}, {"w": np.float32([2, 2])}, path)
    10.0
    """
    if not 0.0 < path.length < math.inf:
        return ENOUGH
    square = 0.0
    with np.errstate(over="ignore"):
        for key in sorted(path.keys):
            change = np.abs(fresh[key] - remembered[key])
            square += float(np.sum(change * change, dtype=np.float64))
    return min(square / path.length, ENOUGH)


def safer(scale: float, energies: Sequence[float]) -> float:
    """λ after a round: 0 for good once the median of the latest energies is above the limit.

    >>> safer(1.0, [0.2] * 19 + [50.0] * 21), safer(1.0, [0.2] * 21 + [50.0] * 19)
    (0.0, 1.0)
    """
    unstable = len(energies) >= WINDOW and statistics.median_high(energies[-WINDOW:]) > LIMIT
    return 0.0 if unstable else scale


class Control(Memory):
    """Everyone's latest update, and the corrections that follow from them.

    >>> control = Control(forget_after=10)
    >>> for name, update in (("a", 2), ("b", 4)):
    ...     control.remember(name, {"w": np.float32([update])}, {"w": np.float32([0])}, 1)
    >>> control.corrections(["a", "new"], {"w": np.float32([1])}, {"a": 0.75, "b": 0.25})
    {'a': {'w': array([0.5], dtype=float32)}}
    """

    def __init__(
        self, forget_after: int, server_rate: float = 1.0, correction: float | str = "auto"
    ) -> None:
        super().__init__(forget_after, server_rate)
        number = isinstance(correction, (int, float)) and 0.0 <= correction <= 1.0
        if correction != "auto" and not number:
            raise ValueError(f'correction: must be "auto" or from 0 to 1, is {correction!r}')
        self.correction = correction
        self.clear()

    def clear(self) -> None:
        """Begins again from nothing."""
        super().clear()
        #: λ, by which corrections are multiplied.
        self.scale = 1.0 if self.correction == "auto" else float(self.correction)
        #: How much the updates of corrected clients changed, the latest ones.
        self.energies: list[float] = []

    def watch(self, before: Mapping[str, Arrays | None], paths: Mapping[str, Path]) -> None:
        """Decides on λ after a round, unless it is fixed.

        ``before`` is what was remembered of those who arrived, ``paths`` what corrected ones say.
        """
        if self.correction != "auto" or not self.scale:
            return
        for name, remembered in before.items():
            if remembered is not None and name in paths:
                self.energies.append(energy(self.updates[name], remembered, paths[name]))
        self.energies = self.energies[-WINDOW:]
        self.scale = safer(self.scale, self.energies)

    def corrections(
        self, names: Iterable[str], model: Arrays, weights: Mapping[str, float]
    ) -> dict[str, Arrays]:
        """What each client is to add to its local training; nothing where that would be zero.

        Arrays of whole numbers are not corrected.
        """
        known = [name for name in names if name in self.updates]
        shares = self.shares(weights)
        found: dict[str, Arrays] = {name: {} for name in known if shares and self.scale}
        for key, array in model.items():
            if array.dtype.kind not in "fc" or not found:
                continue
            dtype = self.updates[known[0]][key].dtype
            kept = [self.updates[name][key] for name in shares]
            mean, _ = weighted_sum(kept, list(shares.values()), dtype)
            for name in list(found):
                with np.errstate(invalid="ignore", over="ignore"):
                    correction = (mean - self.updates[name][key]) * dtype.type(self.scale)
                if not np.isfinite(correction).all():
                    del found[name]  # the updates are finite, but huge
                elif correction.any():
                    found[name][key] = correction
        return {name: arrays for name, arrays in found.items() if arrays}

    def state(self) -> dict[str, Any]:
        """As of :class:`Memory`, and what λ is decided by."""
        return {**super().state(), "scale": self.scale, "energies": list(self.energies)}

    def restore(self, state: Mapping[str, Any], updates: Mapping[str, Arrays]) -> None:
        """Goes on from a saved :meth:`state` and the updates themselves."""
        super().restore(state, updates)
        self.scale = float(state["scale"])
        self.energies = [float(energy) for energy in state["energies"]]
