"""Selection for a running federation."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from . import _check, _fedcote
from ._select import Selection, choices

#: What names a client. Text and whole numbers survive saving.
ClientId = Hashable

_VERSION = 1


class Selector:
    """Chooses clients round after round, and learns who fails.

    Works with any framework: tell it what you know about clients, ask it whom to ask, tell it
    who answered.

    Parameters
    ----------
    seed
        Same seed, same observations: same draws.
    estimator
        How failure probabilities are learnt: ``"beta"`` (forgets round by round), ``"window"``,
        ``"exponential"``; or with parameters, as ``{"kind": "beta", "retention": 0.9}``.
    aim
        ``"appearance"`` for a server that averages what arrives, ``"freshness"`` for one that
        remembers everyone's latest update and averages all of them by the weights
        ``solution().target``; see :func:`fedcote.select`.
    draws, uploads
        How clients are drawn and uploads are sent; see :func:`fedcote.appearance`. By default
        draws are independent, for freshness systematic, and a client drawn several times uploads
        once, with its number of draws as weight.
    method, threshold, coverage, kappa, efficiency, k_apx
        See :func:`fedcote.select`. When everyone fails more often than the threshold, nobody is
        left out.

    Clients that have not told their labels are taken to hold the average of the others'.

    >>> import fedcote
    >>> selector = fedcote.Selector(seed=1)
    >>> selector.set_labels("phone", [100, 0])
    >>> selector.set_labels("tablet", [0, 100])
    >>> drawn = selector.select(["phone", "tablet"], 4)
    >>> sum(count for _, count in drawn)
    4
    >>> for client, _ in drawn:
    ...     selector.observe(client, arrived=client == "tablet")
    >>> selector.failure("phone") > selector.failure("tablet")
    True
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        estimator: str | Mapping[str, Any] = "beta",
        aim: str = "appearance",
        draws: str | None = None,
        uploads: str = "per-client",
        method: str = "exact",
        threshold: float = 0.85,
        coverage: bool = True,
        kappa: float = 1000.0,
        efficiency: float = 0.0,
        k_apx: int | None = None,
    ) -> None:
        if draws is None:
            draws = "systematic" if aim == "freshness" else "independent"
        self._choices = choices(
            method, kappa, efficiency, k_apx, threshold, coverage, draws, uploads, aim
        )
        if not isinstance(estimator, str):
            estimator = json.dumps(dict(estimator))
        self._core = _fedcote.Core(_check.seed(seed), estimator, self._choices)
        self._numbers: dict[ClientId, int] = {}
        self._ids: list[ClientId] = []
        self._ranks = np.empty(0, dtype=np.uint32)
        self._by_rank = np.empty(0, dtype=np.uint32)
        self._members: set[int] | None = None
        self._available: tuple[list[ClientId], np.ndarray] | None = None

    @property
    def clients(self) -> list[ClientId]:
        """All clients that were ever named."""
        return list(self._ids)

    @property
    def round(self) -> int:
        """How many rounds have begun."""
        return self._core.round()

    def set_labels(self, client: ClientId, counts: Any) -> None:
        """Says how many samples of each label a client holds."""
        counts = _check.vector(f"client {client!r}: labels", counts)
        self.set_all_labels([client], counts[np.newaxis])

    def set_all_labels(self, clients: Iterable[ClientId], counts: Any) -> None:
        """As :meth:`set_labels` for many clients at once, one row each."""
        clients = list(clients)
        counts = _check.matrix("labels", counts)
        if len(counts) != len(clients):
            raise ValueError(f"labels: expected {len(clients)} rows, found {len(counts)}")
        right = np.isfinite(counts) & (counts >= 0)
        right &= (counts == 0) | ((counts >= 1e-9) & (counts <= 2**53))
        if not right.all():
            row, label = np.argwhere(~right)[0]
            raise ValueError(
                f"client {clients[row]!r}: labels [{label}] must be 0 or from 1e-9 to 2^53, "
                f"is {counts[row, label]}"
            )
        self._core.set_labels(self._number(clients), counts)

    def set_failure(self, client: ClientId, failure: float | None) -> None:
        """Gives a client's failure probability, in place of the estimate; ``None`` takes it back."""
        if failure is not None and not 0.0 <= failure <= 1.0:
            raise ValueError(
                f"client {client!r}: failure must be a probability from 0 to 1, is {failure}"
            )
        self._core.set_failure(int(self._number([client])[0]), failure)

    def observe(self, client: ClientId, arrived: bool) -> None:
        """Says whether a client's upload arrived in the current round."""
        self._core.observe(int(self._number([client])[0]), bool(arrived))

    def failure(self, client: ClientId) -> float:
        """A client's failure probability: as given, or as estimated by now."""
        return float(self.failures([client])[0])

    def failures(self, clients: Iterable[ClientId] | None = None) -> np.ndarray:
        """Failure probabilities of the clients, by default of all."""
        return self._core.failures(self._number(self._ids if clients is None else list(clients)))

    def select(
        self,
        available: Iterable[ClientId] | None,
        selected: int,
        *,
        again: bool = False,
        remembered: Iterable[ClientId] = (),
    ) -> list[tuple[ClientId, int]]:
        """Draws clients for the next round.

        Parameters
        ----------
        available
            Who can be asked, in any order; ``None`` for all clients ever named. Unknown clients
            are fine: they have no labels and no history yet.
        selected
            Draws, K.
        again
            Draw once more in the same round, when nothing arrived.
        remembered
            Clients that count in the average whether they are available or not: those
            whose latest update the server remembers.

        Returns
        -------
        list
            Distinct clients, each with how often it was drawn: its weight in the average.
        """
        selected = _check.count("selected", selected)
        available = list(self._ids if available is None else available)
        if not available:
            raise ValueError("clients: there must be at least one client")
        remembered = list(remembered)
        numbers = self._in_order(available + remembered)
        present = np.ones(len(numbers), dtype=bool)
        if remembered:
            present = np.isin(numbers, self._number(available))
        drawn, counts = self._core.select(numbers, present, selected, again)
        self._members = None
        ids = map(self._ids.__getitem__, drawn.tolist())
        return list(zip(ids, counts.tolist(), strict=True))

    def solution(self) -> Selection | None:
        """The probabilities that the latest :meth:`select` drew from, and what they lead to."""
        found = self._core.solution()
        if found is None:
            return None
        clients = self._core.selected_from().tolist()
        found["warnings"] = tuple(found["warnings"])
        return Selection(ids=tuple(str(self._ids[client]) for client in clients), **found)

    def label_divergence(self, arrived: Mapping[Any, float]) -> float:
        """χ² between the labels of an aggregate of these clients, with these weights, and all labels.

        All labels are those of the clients named in the latest :meth:`select`.
        """
        if self._members is None:
            found = self._core.selected_from()
            if found is None:
                raise ValueError("label_divergence: call select first")
            self._members = set(found.tolist())
        numbers = [self._numbers.get(client, -1) for client in arrived]
        for client, number in zip(arrived, numbers, strict=True):
            if number not in self._members:
                raise ValueError(f"label_divergence: {client!r} was not available")
        return self._core.label_divergence(numbers, [float(w) for w in arrived.values()])

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as data that JSON can hold."""
        for client in self._ids:
            if type(client) not in (str, int):
                raise ValueError(
                    f"state: client {client!r} must be named by text or a whole number"
                )
        core = json.loads(self._core.state())
        # The options as this class takes them.
        del core["options"]
        return {
            "version": _VERSION,
            "round": core.pop("round"),
            "attempt": core.pop("attempt"),
            "ids": list(self._ids),
            "core": {**core, "choices": dict(self._choices)},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`, seed and options included."""
        try:
            version = state["version"]
            if version != _VERSION:
                raise ValueError(f"state: version {version!r} is unknown, expected {_VERSION}")
            saved = {**state["core"], "round": state["round"], "attempt": state["attempt"]}
            ids, chosen = list(state["ids"]), dict(saved["choices"])
            core = _fedcote.Core.restored(json.dumps(saved), chosen)
        except (KeyError, TypeError) as problem:
            raise ValueError(f"state: {problem!r} is missing or wrong") from None
        if len(ids) != len(core) or len(set(ids)) != len(ids):
            raise ValueError("state: the numbers of clients disagree")
        self._core, self._choices = core, chosen
        self._ids, self._numbers = ids, {client: number for number, client in enumerate(ids)}
        self._ranks = np.empty(0, dtype=np.uint32)
        self._members = self._available = None

    def _number(self, clients: list[ClientId]) -> np.ndarray:
        """The clients' numbers; newcomers get one."""
        numbers = self._numbers
        try:
            return np.fromiter(map(numbers.__getitem__, clients), np.uint32, len(clients))
        except KeyError:
            for client in clients:
                if client not in numbers:
                    numbers[client] = len(self._ids)
                    self._ids.append(client)
            self._core.grow(len(self._ids))
            return np.fromiter(map(numbers.__getitem__, clients), np.uint32, len(clients))

    def _in_order(self, available: list[ClientId]) -> np.ndarray:
        """The numbers of these clients, each once, in the order of their names.

        So draws depend on who is there, and not on who came first.
        """
        if self._available is None or self._available[0] != available:
            numbers = self._number(available)
            self._rank()
            self._available = available, self._by_rank[np.unique(self._ranks[numbers])]
        return self._available[1]

    def _rank(self) -> None:
        """Keeps the clients in the order of their names."""
        if len(self._ranks) == len(self._ids):
            return
        ids = self._ids
        order = sorted(range(len(ids)), key=lambda number: (str(ids[number]), repr(ids[number])))
        self._by_rank = np.array(order, dtype=np.uint32)
        self._ranks = np.empty_like(self._by_rank)
        self._ranks[self._by_rank] = np.arange(len(ids), dtype=np.uint32)
