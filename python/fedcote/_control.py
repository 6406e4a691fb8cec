"""Control variates that the server works out from plain uploads (SCAFFOLD's, without its state on
clients and without its second upload).

What is remembered of a client is its own update u_i: what it returned, less the model and the
correction that it was sent. The next correction is v_i = λ (ū − u_i) with ū = Σ β_i u_i / Σ β_i, in
units of updates: a client that divides it by its number of local steps and adds a part after
each of them drifts like everybody, and not towards its own labels. The server needs to know
neither rates nor numbers of steps for that.

Where local steps are too long for the curvature, as in deep networks, the correction holds a client
where its training is unstable. :class:`Safety` decides from what the server sees when corrections
begin, and when they end; before and after, the server is plain memory.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from ._aggregate import weighted_sum
from ._memory import Arrays, Memory

#: How many arrivals a median is taken over.
ARRIVALS = 40

#: Corrections begin when the median gain is below OPEN, and end when the median change is above
#: SHUT; a model is calm while the median change is at most CALM. In units of the loss (nats).
OPEN, CALM, SHUT = 0.3, 0.25, 0.5

#: More than any of these, and a number that JSON can hold.
ENOUGH = 1e300

#: The longest path Eγ that is believed.
LONGEST = 1e6


def usable(length: float) -> bool:
    """Whether a path length Eγ that a client reports can be true."""
    return 0.0 < length <= LONGEST


def squared(update: Arrays, keys: Iterable[str], other: Arrays | None = None) -> float:
    """The squared norm of some arrays of an update, or of their difference from another.

    >>> squared({"w": np.float32([3, 4])}, ["w"], {"w": np.float32([2, 2])})
    5.0
    """
    square = 0.0
    with np.errstate(over="ignore"):
        for key in sorted(keys):
            change = update[key] if other is None else update[key] - other[key]
            square += float(np.sum(np.square(np.abs(change), dtype=np.float64)))
    return min(square, ENOUGH)


class Safety:
    """Decides whether corrections are sent, from energies in units of the loss.

    The *gain* ‖u‖²/(Eγ) of an uncorrected update is to first order what a client gains on its own
    data in a round; the *change* ‖u − u'‖²/(Eγ) is how much a corrected update differs from the
    client's one before. The gate opens when the median gain of the last 40 arrivals is below 0.3,
    and shuts for good when the median change of the last 40 is above 0.5.
    """

    def __init__(self) -> None:
        #: ``"closed"`` (not yet), ``"open"`` or ``"shut"`` (no more).
        self.gate = "closed"
        #: The latest energies, oldest first.
        self.recent: list[float] = []
        #: Clients of which a corrected update arrived.
        self.since: set[str] = set()
        #: The length of each remembered update when it was last measured without a correction.
        self.norms: dict[str, float] = {}
        #: Arrivals without a usable length, as long as none had one.
        self.silent = 0

    def gained(self, square: float, length: float) -> None:
        """An uncorrected update of this squared norm arrived; who reports nonsense does not count."""
        if self.gate != "closed":
            return
        if usable(length):
            self._push(square / length)
        elif not self.recent:
            self.silent += 1

    def corrected(self, name: str, square: float, length: float) -> None:
        """A corrected update arrived that differs by this squared norm from the one before."""
        # The first correction of a client changes its update by its own effect.
        if name in self.since:
            # Nonsense must not keep corrections up.
            self._push(square / length if usable(length) else ENOUGH)
        self.since.add(name)

    def _push(self, energy: float) -> None:
        self.recent = [*self.recent, min(energy, ENOUGH)][-ARRIVALS:]

    def decide(self) -> str | None:
        """After a round's arrivals: ``"calm"`` if the model before its step is, ``"back"`` if the
        server has to go back to the last calm one.
        """
        if len(self.recent) < ARRIVALS:
            return None
        median = statistics.median(self.recent)
        if self.gate == "closed" and median < OPEN:
            self.gate, self.recent, self.since = "open", [], set()
            return "calm"
        if self.gate == "open" and median > SHUT:
            self.gate, self.recent = "shut", []
            return "back"
        return "calm" if self.gate == "open" and median <= CALM else None

    def shortening(self, name: str, norm: float) -> float:
        """What to scale a remembered update of this length by when corrections end."""
        before = self.norms.get(name, math.inf)
        return before / norm if norm > before else 1.0

    def keep(self, names: Collection[str]) -> None:
        """Forgets all clients but these."""
        self.since.intersection_update(names)
        self.norms = {name: norm for name, norm in self.norms.items() if name in names}

    def state(self) -> dict[str, Any]:
        """All of it, as data that JSON can hold."""
        return {
            "gate": self.gate,
            "recent": list(self.recent),
            "since": sorted(self.since),
            "norms": dict(self.norms),
            "silent": self.silent,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`."""
        if state["gate"] not in ("closed", "open", "shut"):
            raise ValueError(f"state: expected closed, open or shut, is {state['gate']!r}")
        self.gate = state["gate"]
        self.recent = [float(energy) for energy in state["recent"]]
        self.since = {str(name) for name in state["since"]}
        self.norms = {str(name): float(norm) for name, norm in state["norms"].items()}
        self.silent = int(state["silent"])


class Control(Memory):
    """Everyone's latest update, and the corrections that follow from them.

    >>> control = Control(forget_after=10, correction=1.0)
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

    @property
    def scale(self) -> float:
        """λ, by which corrections are multiplied."""
        if self.correction == "auto":
            return 1.0 if self.safety.gate == "open" else 0.0
        return float(self.correction)

    @property
    def bytes(self) -> int:
        """How large all of it is, the calm model included."""
        calm = {} if self.calm is None else self.calm[1]
        return super().bytes + sum(array.nbytes for array in calm.values())

    def clear(self) -> None:
        """Begins again from nothing."""
        self.safety = Safety()
        #: The last calm model while corrections are sent, and the round that began with it.
        self.calm: tuple[int, Arrays] | None = None
        super().clear()

    def forget(self) -> None:
        """Forgets all updates."""
        super().forget()
        self.safety.keep(())

    def meet(self, present: Collection[str], round_: int) -> None:
        """Takes note of who is there in a round, and forgets who has been away for long."""
        super().meet(present, round_)
        self.safety.keep(self.updates)

    def watch(
        self,
        before: Mapping[str, Arrays | None],
        corrected: Mapping[str, Collection[str]],
        lengths: Mapping[str, float],
        model: Arrays,
        round_: int,
    ) -> Arrays | None:
        """Decides after a round's arrivals whether corrections are sent, unless λ is fixed.

        ``before`` is what was remembered of those who arrived, ``corrected`` which arrays corrected
        ones say to have corrected, ``lengths`` the path lengths Eγ they report, and ``model`` what
        they were sent. Returns the calm model if the server has to go back to it.
        """
        safety = self.safety
        if self.correction != "auto" or safety.gate == "shut" or not before:
            return None
        floats = [key for key, array in model.items() if array.dtype.kind in "fc"]
        # By name, so that the order of arrival does not matter.
        for name in sorted(before):
            update, remembered, length = self.updates[name], before[name], lengths[name]
            if name not in corrected:
                square = squared(update, floats)
                safety.gained(square, length)
                safety.norms[name] = math.sqrt(square)
            elif remembered is not None:
                safety.corrected(name, squared(update, corrected[name], remembered), length)
        verdict, calm = safety.decide(), self.calm
        if verdict == "calm":
            self.calm = round_, dict(model)
        if verdict != "back" or calm is None:
            return None
        self.calm = None
        self._shorten(floats, round_)
        return calm[1]

    def _shorten(self, keys: Collection[str], round_: int) -> None:
        """Remembered updates become no longer than they were without corrections."""
        for name, update in self.updates.items():
            factor = self.safety.shortening(name, math.sqrt(squared(update, keys)))
            if factor < 1.0:
                scaled = {key: update[key] * update[key].dtype.type(factor) for key in keys}
                # As of this round: the state's files of older updates are not written again.
                self.updates[name], self.rounds[name] = {**update, **scaled}, round_

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
        """As of :class:`Memory`, and what λ is decided by, but for the calm model's arrays."""
        calm = None if self.calm is None else self.calm[0]
        return {**super().state(), "safety": self.safety.state(), "calm": calm}

    def restore(
        self,
        state: Mapping[str, Any],
        updates: Mapping[str, Arrays],
        calm: Arrays | None = None,
    ) -> None:
        """Goes on from a saved :meth:`state`, the updates themselves, and the calm model's arrays."""
        super().restore(state, updates)
        self.safety.restore(state["safety"])
        if (self.safety.gate == "open") != (calm is not None):
            raise ValueError("state: the calm model is missing, or there is one too many")
        self.calm = None if calm is None else (int(state["calm"]), dict(calm))
