"""Control variates that the server works out from plain uploads (SCAFFOLD's, without its state on
clients and without its second upload).

What is remembered of a client is its own update u_i: what it returned, less the model and the
correction that it was sent. The next correction is v_i = λ (ū − u_i) with ū = Σ β_i u_i / Σ β_i, in
units of updates: a client that divides it by its number of local steps and adds a part after
each of them drifts like everybody, and not towards its own labels. The server needs to know
neither rates nor numbers of steps for that.

Where local steps are too long for the curvature, as in deep networks, the correction holds a client
where its training is unstable. :class:`Safety` sees that in how much corrected updates change from one
to the next: corrections then end, and the server goes back and is plain memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from ._aggregate import weighted_sum
from ._memory import Arrays, Memory

#: How many changes, and how many gains, a median is taken over.
CHANGES, GAINS = 20, 40

#: Corrections end when the median change is above SHUT, and begin a second time when the median
#: gain is below OPEN; a model is calm while the median change is at most CALM. In units of the loss
#: (nats).
OPEN, CALM, SHUT = 0.3, 0.25, 0.5

#: A change of at most this share of the update's own squared norm does not end corrections: they
#: were right, however long they are.
SMALL = 0.08

#: What such a change counts as at most: neither calm nor unstable.
STEADY = 0.3

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

    The *change* ‖u − u'‖²/(Eγ) is how much a corrected update differs from the client's one before;
    one below 0.08 ‖u‖²/(Eγ) counts as at most 0.3. The *gain* ‖u‖²/(Eγ) of an uncorrected update is to first
    order what a client gains on its own data in a round. Corrections are sent from the beginning.
    They end when the median change of the last 20 is above 0.5, begin a second time when the median
    gain of the last 40 is below 0.3, and end for good when the change is above its bound again.
    """

    #: Corrections are sent for the first time, not at present, for the second time, no more.
    GATES = ("open", "closed", "reopened", "shut")

    def __init__(self) -> None:
        #: One of GATES.
        self.gate = "open"
        #: The latest energies, oldest first.
        self.recent: list[float] = []
        #: Clients of which a corrected update arrived since corrections began.
        self.since: set[str] = set()
        #: Clients that report a usable length: only they are corrected.
        self.told: set[str] = set()
        #: Arrivals without a usable length, as long as none had one.
        self.silent = 0

    @property
    def is_open(self) -> bool:
        """Whether corrections are sent."""
        return self.gate in ("open", "reopened")

    def reported(self, name: str, length: float) -> None:
        """An arrival reported this path length."""
        if usable(length):
            self.told.add(name)
        else:
            self.told.discard(name)
            self.silent += not self.told

    def gained(self, square: float, length: float) -> None:
        """An uncorrected update of this squared norm arrived; who reports nonsense does not count."""
        if self.gate == "closed" and usable(length):
            self._push(square / length, GAINS)

    def corrected(self, name: str, square: float, length: float) -> None:
        """A corrected update arrived that differs by this squared norm from the one before."""
        # The first correction of a client changes its update by its own effect.
        if name in self.since:
            # Nonsense must not keep corrections up.
            self._push(square / length if usable(length) else ENOUGH, CHANGES)
        self.since.add(name)

    def _push(self, energy: float, window: int) -> None:
        self.recent = [*self.recent, min(energy, ENOUGH)][-window:]

    def decide(self) -> str | None:
        """After a round's arrivals: ``"calm"`` if the model before its step is, ``"back"`` if the
        server has to go back to the last calm one.
        """
        if len(self.recent) < (CHANGES if self.is_open else GAINS):
            return None
        median = statistics.median(self.recent)
        if self.is_open and median > SHUT:
            self._turn("closed" if self.gate == "open" else "shut")
            return "back"
        if self.gate == "closed" and median < OPEN:
            self._turn("reopened")
            return None
        return "calm" if self.is_open and median <= CALM else None

    def _turn(self, gate: str) -> None:
        self.gate, self.recent, self.since = gate, [], set()

    def keep(self, names: Collection[str]) -> None:
        """Forgets all clients but these."""
        self.since.intersection_update(names)
        self.told.intersection_update(names)

    def state(self) -> dict[str, Any]:
        """All of it, as data that JSON can hold."""
        return {
            "gate": self.gate,
            "recent": list(self.recent),
            "since": sorted(self.since),
            "told": sorted(self.told),
            "silent": self.silent,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`."""
        if state["gate"] not in self.GATES:
            raise ValueError(
                f"state: expected one of {', '.join(self.GATES)}, is {state['gate']!r}"
            )
        self.gate = state["gate"]
        self.recent = [float(energy) for energy in state["recent"]]
        self.since = {str(name) for name in state["since"]}
        self.told = {str(name) for name in state["told"]}
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
            return 1.0 if self.safety.is_open else 0.0
        return float(self.correction)

    @property
    def bytes(self) -> int:
        """How large all of it is, the calm model included."""
        calm = {} if self.calm is None else self.calm[1]
        return super().bytes + sum(array.nbytes for array in calm.values())

    def clear(self) -> None:
        """Begins again from nothing."""
        self.safety = Safety()
        #: The model to go back to while corrections are sent, and the round that began with it.
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
            safety.reported(name, length)
            if name not in corrected:
                safety.gained(squared(update, floats), length)
            elif remembered is not None:
                change = squared(update, corrected[name], remembered)
                if change <= SMALL * squared(update, corrected[name]) and usable(length):
                    change = min(change, STEADY * length)
                safety.corrected(name, change, length)
        if self.calm is None and safety.is_open and safety.told:
            self.calm = round_, dict(model)
        verdict, calm = safety.decide(), self.calm
        if verdict == "calm":
            self.calm = round_, dict(model)
        if verdict != "back" or calm is None:
            return None
        # What corrected clients returned is too long where nobody is corrected.
        self.calm = None
        self.forget()
        return calm[1]

    def corrections(
        self, names: Iterable[str], model: Arrays, weights: Mapping[str, float]
    ) -> dict[str, Arrays]:
        """What each client is to add to its local training; nothing where that would be zero.

        Arrays of whole numbers are not corrected.
        """
        # Unless λ is fixed, who does not report a length cannot be watched, and is not corrected.
        told = self.updates if self.correction != "auto" else self.safety.told
        known = [name for name in names if name in self.updates and name in told]
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
        own = {"correction": self.correction, "safety": self.safety.state(), "calm": calm}
        return {**super().state(), **own}

    def restore(
        self,
        state: Mapping[str, Any],
        updates: Mapping[str, Arrays],
        calm: Arrays | None = None,
    ) -> None:
        """Goes on from a saved :meth:`state`, the updates themselves, and the calm model's arrays."""
        if state["correction"] != self.correction:
            raise ValueError(
                f"state: was saved with correction {state['correction']!r}, this is "
                f"{self.correction!r}; use the same, or start again from nothing"
            )
        super().restore(state, updates)
        self.safety.restore(state["safety"])
        if (state["calm"] is None) != (calm is None) or (calm and not self.safety.is_open):
            raise ValueError("state: the calm model is missing, or there is one too many")
        self.calm = None if calm is None else (int(state["calm"]), dict(calm))
