"""Selection for a running federation."""

from __future__ import annotations

import enum
import heapq
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, overload

import numpy as np

from . import _check, _fedcote
from ._distinct import distinct
from ._select import Aim, Draws, Method, Selection, Uploads, choices

#: What names a client. Text and whole numbers survive saving.
ClientId: TypeAlias = Hashable

#: The caller's own names for clients: who is drawn is named as it was given.
Client = TypeVar("Client", bound=Hashable)

#: How failure probabilities are learnt.
Estimator: TypeAlias = Literal["beta", "window", "exponential", "signal", "retransmissions"]

_VERSION = 1

#: The largest number of labels: solving takes memory of its square.
MAX_CLASSES = 4096


class _Gone(enum.Enum):
    """Stands where a client was that is forgotten."""

    GONE = enum.auto()


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
        ``"exponential"``, ``"signal"`` (from margins, see :meth:`observe_signal`),
        ``"retransmissions"`` (see :meth:`observe_transmissions`); or with parameters, as
        ``{"kind": "beta", "retention": 0.9}``.
    aim
        ``"appearance"`` for a server that averages what arrives, ``"freshness"`` for one that
        remembers everyone's latest update and averages all of them by the weights
        ``solution().target``; see :func:`fedcote.select`.
    draws, uploads
        How clients are drawn and uploads are sent; see :func:`fedcote.appearance`. By default
        draws are independent, for freshness systematic, and a client drawn several times uploads
        once, with its number of draws as weight.
    groups
        Clients that fail together, behind an access point, relay or cell: how often each group is
        down, ``{"ap": 0.2}``; :meth:`set_group` says who is in it.
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
        estimator: Estimator | Mapping[str, Any] = "beta",
        aim: Aim = "appearance",
        draws: Draws | None = None,
        uploads: Uploads = "per-client",
        groups: Mapping[Any, float] | None = None,
        method: Method = "exact",
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
        wanted = estimator if isinstance(estimator, str) else json.dumps(dict(estimator))
        self._seed = _check.seed(seed)
        self._core = _fedcote.Core(self._seed, wanted, self._choices)
        self._groups: list[Any] = []
        self._down: list[float] = []
        self.set_groups(groups or {})
        self._numbers: dict[ClientId, int] = {}
        self._ids: list[ClientId] = []
        #: Numbers of forgotten clients, a heap: a restored selector gives them in the same order.
        self._free: list[int] = []
        self._ranks = np.empty(0, dtype=np.uint32)
        self._by_rank = np.empty(0, dtype=np.uint32)
        self._members: set[int] | None = None
        self._available: tuple[list[ClientId], np.ndarray] | None = None
        self._classes = 0
        self._attempt = 0
        self._heard = False

    def __repr__(self) -> str:
        aim, clients = self._choices["aim"], len(self._numbers)
        return (
            f"<Selector for {aim}: {clients} clients, {self._classes} labels, round {self.round}>"
        )

    @property
    def clients(self) -> list[Any]:
        """All clients that were ever named, and not forgotten."""
        return [client for client in self._ids if client is not _Gone.GONE]

    @property
    def classes(self) -> int:
        """The number of labels; 0 as long as nobody has told any."""
        return self._classes

    @property
    def groups(self) -> dict[Any, float]:
        """How often each group of clients that fail together is down."""
        return dict(zip(self._groups, self._down, strict=True))

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
        if not 1 <= counts.shape[1] <= MAX_CLASSES:
            raise ValueError(
                f"labels: there must be from 1 to {MAX_CLASSES} classes, found {counts.shape[1]}"
            )
        if self._classes and counts.shape[1] != self._classes and clients:
            raise ValueError(
                f"client {clients[0]!r}: labels must be {self._classes} numbers, as of the other "
                f"clients, found {counts.shape[1]}"
            )
        self._core.set_labels(self._number(clients), counts)
        if clients:
            self._classes = counts.shape[1]

    def set_failure(self, client: ClientId, failure: float | None) -> None:
        """Gives a client's failure probability, in place of the estimate; ``None`` takes it back."""
        if failure is not None and not 0.0 <= failure <= 1.0:
            raise ValueError(
                f"client {client!r}: failure must be a probability from 0 to 1, is {failure}"
            )
        self._core.set_failure(int(self._number([client])[0]), failure)

    def set_groups(self, groups: Mapping[Any, float]) -> None:
        """Says how often each group of clients that fail together is down; other groups stay as they are.

        It is part of the failure probabilities of its clients, which are those that are observed:
        for whatever reason.
        """
        for name, failure in groups.items():
            if not 0.0 <= failure <= 1.0:
                raise ValueError(
                    f"groups: {name!r} must be down with a probability from 0 to 1, is {failure}"
                )
        known = self.groups | {name: float(failure) for name, failure in groups.items()}
        self._groups, self._down = list(known), list(known.values())
        self._core.set_groups(self._down)

    def set_group(self, client: ClientId, group: Any) -> None:
        """Says which group a client is in; ``None`` for none."""
        if group is not None and group not in self._groups:
            known = ", ".join(map(str, self._groups)) or "none"
            raise ValueError(f"client {client!r}: group {group!r} is unknown; groups has {known}")
        place = None if group is None else self._groups.index(group)
        self._core.set_group(int(self._number([client])[0]), place)

    def observe(self, client: ClientId, arrived: bool) -> None:
        """Says whether a client's upload arrived in the current round."""
        self._core.observe(int(self._number([client])[0]), bool(arrived))
        self._heard |= bool(arrived)

    def observe_many(self, arrived: Mapping[Any, bool]) -> None:
        """As :meth:`observe` for many clients at once: whether the upload of each arrived."""
        for client, one in arrived.items():
            self.observe(client, one)

    def forget(self, client: ClientId) -> None:
        """Forgets a client: its labels, its history, its name. It may come back as a new one."""
        if client not in self._numbers:
            raise ValueError(f"forget: client {client!r} is unknown")
        number = self._numbers.pop(client)
        self._ids[number] = _Gone.GONE
        heapq.heappush(self._free, number)
        self._core.forget(number)
        self._ranks = np.empty(0, dtype=np.uint32)
        self._members = self._available = None

    def observe_signal(self, client: ClientId, margin_db: float) -> None:
        """Says by how many decibels the capacity of a client's link exceeded what its upload needs.

        Pilots or channel state show it, whether or not the upload arrives; tell it before
        :meth:`observe`, and after :meth:`select`. Pilots of clients that were not asked count, too:
        with them everybody's link is known after a few rounds. They show links only: devices that
        break and clients that are late are learnt from uploads. For ``estimator="signal"``.
        """
        self._core.observe_signal(int(self._number([client])[0]), float(margin_db))

    def observe_transmissions(self, client: ClientId, failed: int, arrived: bool) -> None:
        """Says how many transmissions of an upload failed and whether a last one got through.

        Tell it before :meth:`observe`. For ``estimator={"kind": "retransmissions",
        "retransmissions": M}``.
        """
        self._core.observe_transmissions(int(self._number([client])[0]), int(failed), bool(arrived))

    def failure(self, client: ClientId) -> float:
        """A client's failure probability: as given, or as estimated by now."""
        return float(self.failures([client])[0])

    def failures(self, clients: Iterable[ClientId] | None = None) -> np.ndarray:
        """Failure probabilities of the clients, by default of all."""
        return self._core.failures(self._number(self.clients if clients is None else list(clients)))

    @overload
    def select(
        self,
        available: Iterable[Client],
        selected: int,
        *,
        again: bool = False,
        remembered: Iterable[ClientId] = (),
        distinct: bool = False,
    ) -> list[tuple[Client, int]]: ...

    @overload
    def select(
        self,
        available: None,
        selected: int,
        *,
        again: bool = False,
        remembered: Iterable[ClientId] = (),
        distinct: bool = False,
    ) -> list[tuple[Any, int]]: ...

    def select(
        self,
        available: Iterable[Any] | None,
        selected: int,
        *,
        again: bool = False,
        remembered: Iterable[ClientId] = (),
        distinct: bool = False,
    ) -> list[tuple[Any, int]]:
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
        distinct
            Draw nobody twice: ``selected`` different clients, or all if there are fewer, each
            once. A client whose probability would be above one draw is always among them. For a
            server that remembers, which weighs by :meth:`weights`; where draws are weights, as in
            a plain mean, those who hold much data count too little then.

        Returns
        -------
        list
            Distinct clients, each with how often it was drawn: its weight in the average.
        """
        selected = _check.count("selected", selected)
        available = list(self.clients if available is None else available)
        if not available:
            raise ValueError("clients: there must be at least one client")
        remembered = list(remembered)
        numbers = self._in_order(available + remembered)
        present = np.ones(len(numbers), dtype=bool)
        if remembered:
            present = np.isin(numbers, self._number(available))
        began = self._core.round() > 0
        drawn, counts = self._core.select(numbers, present, selected, again)
        self._attempt = self._attempt + 1 if again and began else 0
        self._members, self._heard = None, False
        if distinct:
            drawn = self._distinct(selected)
            counts = np.ones(len(drawn), dtype=np.uint32)
        ids = map(self._ids.__getitem__, drawn.tolist())
        return list(zip(ids, counts.tolist(), strict=True))

    def _distinct(self, selected: int) -> np.ndarray:
        """As many different clients, by the probabilities of the latest selection."""
        found, clients = self._core.solution(), self._core.selected_from()
        if found is None or clients is None:  # never after a selection
            raise ValueError("select: there is no selection")
        key = [self._seed, self._core.round(), self._attempt]
        places = distinct(found["selection"], selected, np.random.default_rng(key))
        drawn: np.ndarray = clients[places]
        return drawn

    @overload
    def attempts(
        self, available: Iterable[Client], selected: int, most: int = 3, **options: Any
    ) -> Iterator[list[tuple[Client, int]]]: ...

    @overload
    def attempts(
        self, available: None, selected: int, most: int = 3, **options: Any
    ) -> Iterator[list[tuple[Any, int]]]: ...

    def attempts(
        self, available: Iterable[Any] | None, selected: int, most: int = 3, **options: Any
    ) -> Iterator[list[tuple[Any, int]]]:
        """Draws for a round, and again as long as nothing arrives, at most ``most`` times.

        Observe who arrived before the next turn of the loop::

            for drawn in selector.attempts(clients, 10):
                updates = ask(drawn)
                selector.observe_many({client: client in updates for client, _ in drawn})
        """
        available = self.clients if available is None else list(available)
        for attempt in range(most):
            yield self.select(available, selected, again=attempt > 0, **options)
            if self._heard:
                return

    def weights(self) -> dict[Any, float]:
        """The weights that the latest :meth:`select` aims at, by client; they sum to one.

        A server that remembers everyone's latest update averages by them; see
        :class:`fedcote.Memory`.
        """
        found, clients = self._core.solution(), self._core.selected_from()
        if found is None or clients is None:
            raise ValueError("weights: call select first")
        ids = map(self._ids.__getitem__, clients.tolist())
        return dict(zip(ids, found["target"].tolist(), strict=True))

    def solution(self) -> Selection | None:
        """The probabilities that the latest :meth:`select` drew from, and what they lead to."""
        found, clients = self._core.solution(), self._core.selected_from()
        if found is None or clients is None:
            return None
        found["warnings"] = tuple(found["warnings"])
        return Selection(ids=tuple(str(self._ids[client]) for client in clients.tolist()), **found)

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
        for client in self._numbers:
            if type(client) not in (str, int):
                raise ValueError(
                    f"state: client {client!r} must be named by text or a whole number"
                )
        for group in self._groups:
            if type(group) not in (str, int):
                raise ValueError(f"state: group {group!r} must be named by text or a whole number")
        core = json.loads(self._core.state())
        # The options as this class takes them.
        del core["options"]
        return {
            "version": _VERSION,
            "round": core.pop("round"),
            "attempt": core.pop("attempt"),
            "ids": [None if client is _Gone.GONE else client for client in self._ids],
            "core": {**core, "choices": dict(self._choices)},
            **({"groups": list(self._groups)} if self._groups else {}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`, seed and options included."""
        try:
            version = state["version"]
            if version != _VERSION:
                raise ValueError(f"state: version {version!r} is unknown, expected {_VERSION}")
            saved = {**state["core"], "round": state["round"], "attempt": state["attempt"]}
            chosen = dict(saved["choices"])
            ids = [_Gone.GONE if client is None else client for client in state["ids"]]
            core = _fedcote.Core.restored(json.dumps(saved), chosen)
            seed, classes, attempt = saved["seed"], saved["classes"], saved["attempt"]
            groups, down = list(state.get("groups", [])), list(saved.get("groups", []))
        except (KeyError, TypeError) as problem:
            raise ValueError(f"state: {problem!r} is missing or wrong") from None
        numbers = {client: number for number, client in enumerate(ids) if client is not _Gone.GONE}
        if len(ids) != len(core) or len(numbers) + ids.count(_Gone.GONE) != len(ids):
            raise ValueError("state: the numbers of clients disagree")
        named = all(type(group) in (str, int) for group in groups)
        if not named or len(set(groups)) != len(groups) or len(groups) != len(down):
            raise ValueError("state: the groups are damaged")
        self._groups, self._down = groups, down
        self._core, self._choices = core, chosen
        self._seed, self._classes, self._attempt = int(seed), int(classes), int(attempt)
        self._ids, self._numbers = ids, numbers
        self._free = [number for number, client in enumerate(ids) if client is _Gone.GONE]
        self._ranks = np.empty(0, dtype=np.uint32)
        self._members = self._available = None
        self._heard = False

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles; the latest solution is worked out by the next :meth:`select`."""
        return {**self.__dict__, "_core": self._core.state(), "_members": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        core = _fedcote.Core.restored(state["_core"], state["_choices"])
        self.__dict__.update(state, _core=core)

    def _number(self, clients: list[ClientId]) -> np.ndarray:
        """The clients' numbers; newcomers get one."""
        numbers = self._numbers
        try:
            return np.fromiter(map(numbers.__getitem__, clients), np.uint32, len(clients))
        except KeyError:
            # Numbers of forgotten clients first, or those who come once each would fill the memory.
            for client in clients:
                if client not in numbers:
                    if not self._free:
                        self._free.append(len(self._ids))
                        self._ids.append(client)
                    numbers[client] = heapq.heappop(self._free)
                    self._ids[numbers[client]] = client
            self._ranks = np.empty(0, dtype=np.uint32)
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
