"""What a server remembers of its clients: the latest update of each (MIFA, Gu et al. 2021).

The model steps by the mean of all that is remembered, whoever arrived, w ← w + η Σ β_i u_i / Σ β_i
with the server's rate η.
The weights β are those that the selection aims at, so clients that it excludes have no weight.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

import numpy as np

from . import _aggregate
from ._aggregate import weighted_sum

Arrays: TypeAlias = dict[str, np.ndarray]


def average(updates: Mapping[Any, Arrays], weights: Mapping[Any, float]) -> Arrays:
    """The mean of clients' arrays with the given weights, which need not sum to one.

    Sums are made in float64; the result has the arrays' types. A client's number of draws is its
    weight where the server averages what arrives: ``average(updates, dict(drawn))``. An error
    names a client whose arrays are not finite, or not those of the others.

    >>> average({"a": {"w": np.float32([1])}, 7: {"w": np.float32([5])}}, {"a": 3, 7: 1, "b": 2})
    {'w': array([2.], dtype=float32)}
    """
    names = [name for name in updates if weights.get(name, 0.0) > 0.0]
    if not names:
        raise ValueError("average: no client has an update and a positive weight")
    first = updates[names[0]]
    for name in names:
        shapes = {key: np.shape(array) for key, array in updates[name].items()}
        if shapes != {key: np.shape(array) for key, array in first.items()}:
            raise ValueError(f"average: the arrays of client {name!r} are not those of the others")
    shares = [float(weights[name]) for name in names]
    means = {}
    for key in first:
        arrays = [np.asarray(updates[name][key]) for name in names]
        means[key], finite = _aggregate.average(arrays, shares)
        if not finite:
            bad = [n for n, a in zip(names, arrays, strict=True) if not np.isfinite(a).all()]
            whose = f"of client {bad[0]!r} " if bad else ""
            raise ValueError(f"average: {key} {whose}is not finite")
    return means


class Memory:
    """Everyone's latest update: what a client returned, less the model that it was sent.

    An update stays until the next of the same client takes its place, or until the client has
    been away for more than ``forget_after`` rounds. Every array is kept as it was computed: a slab
    for all clients would have to be copied when it grows.

    >>> memory = Memory(forget_after=10)
    >>> memory.remember("a", {"w": np.float32([2])}, {"w": np.float32([0])}, 1)
    >>> memory.remember("b", {"w": np.float32([4])}, {"w": np.float32([0])}, 1)
    >>> memory.step({"w": np.float32([1])}, {"a": 0.75, "b": 0.25, "c": 0.5})
    ({'w': array([3.5], dtype=float32)}, {'a': 0.75, 'b': 0.25})
    """

    def __init__(self, forget_after: int = 50, server_rate: float = 1.0) -> None:
        if forget_after < 1:
            raise ValueError(f"forget_after: must be at least 1, is {forget_after}")
        if not 0.0 < server_rate < math.inf:
            raise ValueError(f"server_rate: must be a positive number, is {server_rate}")
        self.forget_after = forget_after
        self.server_rate = server_rate
        #: The updates, by client and name of the array.
        self.updates: dict[Any, Arrays] = {}
        #: The round of each update.
        self.rounds: dict[Any, int] = {}
        #: The latest round in which each client was there.
        self.seen: dict[Any, int] = {}

    @property
    def bytes(self) -> int:
        """How large all of it is."""
        return sum(array.nbytes for update in self.updates.values() for array in update.values())

    def forget(self) -> None:
        """Forgets all updates."""
        self.updates, self.rounds, self.seen = {}, {}, {}

    def clear(self) -> None:
        """Begins again from nothing."""
        self.forget()

    def meet(self, present: Collection[Any], round_: int) -> None:
        """Takes note of who is there in a round, and forgets who has been away for long."""
        for name in list(self.updates):
            if name in present:
                self.seen[name] = round_
            elif round_ - self.seen[name] > self.forget_after:
                self.drop(name)

    def remember(self, name: Any, arrays: Arrays, model: Arrays, round_: int) -> None:
        """Puts a client's update in place of its older one; an error if it is not finite."""
        update = {}
        for key, array in arrays.items():
            # Differences of whole numbers can be negative, those of half precision tiny.
            wide = np.result_type(array.dtype, np.float32)
            with np.errstate(invalid="ignore", over="ignore"):
                update[key] = np.subtract(array, model[key], dtype=wide, order="C")
            if not np.isfinite(update[key]).all():
                raise ValueError(f"update is not finite: {key}")
        self.updates[name], self.rounds[name], self.seen[name] = update, round_, round_

    def put(self, name: Any, update: Arrays, model: Arrays, round_: int) -> None:
        """As :meth:`remember`, for an update that is a difference already."""
        kept = {
            key: np.asarray(update[key]).astype(np.result_type(array.dtype, np.float32), copy=False)
            for key, array in model.items()
        }
        self.updates[name], self.rounds[name], self.seen[name] = kept, round_, round_

    def drop(self, name: Any) -> None:
        """Forgets a client."""
        for kept in (self.updates, self.rounds, self.seen):
            kept.pop(name, None)

    def shares(self, weights: Mapping[Any, float]) -> dict[Any, float]:
        """The weight of each remembered client; empty when none has a weight."""
        # By name, so that the order of arrival does not change the rounding.
        names = sorted(
            (name for name in self.updates if weights.get(name, 0.0) > 0.0),
            key=lambda name: (str(name), repr(name)),
        )
        total = float(np.sum([weights[name] for name in names]))
        return {name: weights[name] / total for name in names}

    def step(
        self, model: Arrays, weights: Mapping[Any, float]
    ) -> tuple[Arrays | None, dict[Any, float]]:
        """The model one step further, and each client's share in the step.

        ``None`` when no remembered client has a weight, or when the step is not finite.
        """
        shares = self.shares(weights)
        if not shares:
            return None, {}
        factors = [1.0, *(self.server_rate * share for share in shares.values())]
        stepped = {}
        for key, array in model.items():
            terms = [array, *(self.updates[name][key] for name in shares)]
            stepped[key], finite = weighted_sum(terms, factors, array.dtype)
            if not finite:
                return None, shares
        return stepped, shares

    def state(self) -> dict[str, Any]:
        """When each update came and each client was there, as data that JSON can hold."""
        kept = {"rounds": dict(self.rounds), "seen": dict(self.seen)}
        return {**kept, "server_rate": self.server_rate}

    def restore(self, state: Mapping[str, Any], updates: Mapping[str, Arrays]) -> None:
        """Goes on from a saved :meth:`state` and the updates themselves."""
        if state["server_rate"] != self.server_rate:
            raise ValueError(
                f"state: was saved with server_rate {state['server_rate']}, this is "
                f"{self.server_rate}; use the same, or start again from nothing"
            )
        rounds = {str(name): int(round_) for name, round_ in state["rounds"].items()}
        seen = {str(name): int(round_) for name, round_ in state["seen"].items()}
        if not rounds.keys() == seen.keys() == updates.keys():
            raise ValueError("state: the clients that are remembered disagree")
        self.updates, self.rounds, self.seen = dict(updates), rounds, seen
