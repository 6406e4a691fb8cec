"""Control variates that the server works out from plain uploads (SCAFFOLD's, without its state on
clients and without its second upload).

What is remembered of a client is its own update u_i: what it returned, less the model and the
correction that it was sent. The next correction is v_i = λ (ū − u_i) with ū = Σ β_i u_i / Σ β_i, in
units of updates: a client that divides it by its number of local steps and adds a part after
each of them drifts like everybody, and not towards its own labels. The server needs to know
neither rates nor numbers of steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ._aggregate import weighted_sum
from ._memory import Arrays, Memory


class Control(Memory):
    """Everyone's latest update, and the corrections that follow from them.

    >>> control = Control(forget_after=10)
    >>> for name, update in (("a", 2), ("b", 4)):
    ...     control.remember(name, {"w": np.float32([update])}, {"w": np.float32([0])}, 1)
    >>> control.corrections(["a", "new"], {"w": np.float32([1])}, {"a": 0.75, "b": 0.25})
    {'a': {'w': array([0.5], dtype=float32)}}
    """

    def __init__(
        self, forget_after: int, server_rate: float = 1.0, correction: float = 1.0
    ) -> None:
        super().__init__(forget_after, server_rate)
        if not 0.0 <= correction <= 1.0:
            raise ValueError(f"correction: must be from 0 to 1, is {correction}")
        self.correction = correction

    def corrections(
        self, names: Iterable[str], model: Arrays, weights: Mapping[str, float]
    ) -> dict[str, Arrays]:
        """What each client is to add to its local training; nothing where that would be zero.

        Arrays of whole numbers are not corrected.
        """
        known = [name for name in names if name in self.updates]
        shares = self.shares(weights)
        found: dict[str, Arrays] = {name: {} for name in known if shares and self.correction}
        for key, array in model.items():
            if array.dtype.kind not in "fc" or not found:
                continue
            dtype = self.updates[known[0]][key].dtype
            kept = [self.updates[name][key] for name in shares]
            mean, _ = weighted_sum(kept, list(shares.values()), dtype)
            for name in list(found):
                with np.errstate(invalid="ignore", over="ignore"):
                    correction = (mean - self.updates[name][key]) * dtype.type(self.correction)
                if not np.isfinite(correction).all():
                    del found[name]  # the updates are finite, but huge
                elif correction.any():
                    found[name][key] = correction
        return {name: arrays for name, arrays in found.items() if arrays}
