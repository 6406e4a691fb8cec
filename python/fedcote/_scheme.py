"""Schemes in Python: whom to ask, what is added to gradients, what becomes of what arrived."""

from __future__ import annotations

import base64
import copy
import importlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _fedcote
from ._task import Arrays, Form, Missing, Parameters, Refused, user_code


@dataclass(frozen=True, eq=False)
class Arrival:
    """A client's model that reached the server."""

    #: The client, from 0.
    client: int
    #: How many of its uploads arrived.
    copies: int
    #: How many local steps it made.
    steps: int
    #: Its model.
    model: Arrays


@dataclass(frozen=True, eq=False)
class Round:
    """What a scheme may look at in a round."""

    #: The round, from 1.
    number: int
    #: The global model that is broadcast.
    model: Arrays
    #: The share of all samples that each client has.
    weights: NDArray[np.float64]
    #: The share of each class in the samples of each client, clients × classes.
    labels: NDArray[np.float64]
    #: The failure probability of each client, as far as the server knows it.
    failure: NDArray[np.float64]
    #: Draws per round, K.
    selected: int
    #: A number of 64 bits for random numbers, another one whenever clients are drawn again.
    seed: int
    #: The name of the stream of random numbers behind :meth:`draw`.
    key: bytes = field(default=bytes(32), repr=False)

    def random(self) -> np.random.Generator:
        """Random numbers of this round: always the same ones for the same run and round."""
        return np.random.default_rng(self.seed)

    def draw(self, probabilities: ArrayLike) -> dict[int, int]:
        """K independent draws with these probabilities: how often each client was drawn.

        With ``probabilities=round.weights`` they are the draws of ``fedavg``.
        """
        given = np.ascontiguousarray(probabilities, dtype=np.float64)
        return dict(_fedcote.draw(self.key, given, self.selected))

    def mean(
        self, arrivals: Sequence[Arrival], weights: Sequence[float] | None = None, rate: float = 1.0
    ) -> Any:
        """The global model moved by the mean change of what arrived.

        ``weights`` has a number per arrival, by default its copies; they are scaled to sum to one. ``rate`` is the
        step size on the server.
        """
        parts = [float(arrival.copies) for arrival in arrivals] if weights is None else weights
        total = sum(parts)

        def moved(start: NDArray[Any], models: list[NDArray[Any]]) -> NDArray[Any]:
            change = np.zeros_like(start)
            for share, model in zip(parts, models, strict=True):
                change += np.float32(share / total) * (model - start)
            return start + np.float32(rate) * change

        if isinstance(self.model, Mapping):
            return {
                name: moved(start, [arrival.model[name] for arrival in arrivals])  # type: ignore[call-overload]
                for name, start in self.model.items()
            }
        return [
            moved(start, [arrival.model[at] for arrival in arrivals])  # type: ignore[index]
            for at, start in enumerate(self.model)
        ]


class Scheme:
    """A scheme of your own: override any of :meth:`select`, :meth:`correct` and :meth:`aggregate`.

    What is not overridden is as in the named scheme ``base``. Every run works on a copy of the object; what it must
    remember from round to round belongs into the dictionary ``state`` (numbers, text, lists, dictionaries, NumPy
    arrays), which is saved with the run, so that an interrupted run goes on as if nothing had happened.

    >>> import fedcote
    >>> import numpy as np
    >>> class Largest(fedcote.Scheme):
    ...     def select(self, round):
    ...         return np.argsort(-round.weights)[: round.selected]
    """

    #: Its name in tables and folders; by default that of the class, as in ``my-scheme`` for ``MyScheme``.
    name: str = ""
    #: The named scheme that provides what is not overridden.
    base: ClassVar[str] = "fedavg"
    #: Parameters of its parts, as in a table ``[scheme.NAME]`` of a scenario.
    parameters: ClassVar[Mapping[str, Any]] = {}
    #: What is saved with a run.
    state: dict[str, Any]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        made = super().__new__(cls)
        made.state = {}
        return made

    def select(self, round: Round) -> Sequence[int] | Mapping[int, int] | NDArray[Any]:
        """Whom to ask: clients, one who is named twice weighs twice, or how often each."""
        raise NotImplementedError

    def correct(self, round: Round, client: int) -> Arrays | None:
        """What is added to every gradient of a client, in the form of the model; ``None`` for nothing."""
        raise NotImplementedError

    def aggregate(self, round: Round, arrivals: Sequence[Arrival]) -> Arrays:
        """The next global model. Arrivals are sorted by client; there is at least one."""
        raise NotImplementedError


class SchemeBridge:
    """A scheme of one run as the Rust half sees it."""

    def __init__(self, scheme: Scheme, parameters: Parameters, clients: int) -> None:
        self.scheme, self.clients = copy.deepcopy(scheme), clients
        names = [name for name, _, _ in parameters]
        self.form = Form(parameters, names != [str(at) for at in range(len(names))])
        kind = type(scheme)
        self.selects = kind.select is not Scheme.select
        self.corrects = kind.correct is not Scheme.correct
        self.aggregates = kind.aggregate is not Scheme.aggregate
        if not (self.selects or self.corrects or self.aggregates):
            raise Refused("overrides none of `select`, `correct` and `aggregate`")

    def round(
        self,
        number: int,
        model: NDArray[np.float32],
        weights: NDArray[np.float64],
        labels: NDArray[np.float64],
        failure: NDArray[np.float64],
        selected: int,
        seed: int,
        key: bytes,
    ) -> Round:
        labels = labels.reshape(self.clients, -1)
        given = self.form.arrays(model)
        return Round(number, given, weights, labels, failure, selected, seed, key)

    def select(self, round: Round) -> list[tuple[int, int]]:
        with user_code():
            found = self.scheme.select(round)
        try:
            if isinstance(found, Mapping):
                counts = {int(client): int(count) for client, count in found.items()}
            else:
                drawn = np.asarray(found)
                if drawn.size > 0 and drawn.dtype.kind not in "iu":
                    raise TypeError
                clients, repeats = np.unique(drawn.ravel(), return_counts=True)
                counts = dict(zip(clients.tolist(), repeats.tolist(), strict=True))
        except (TypeError, ValueError):
            raise Refused("selected something else than numbers of clients") from None
        for client, count in counts.items():
            if not 0 <= client < self.clients:
                raise Refused(f"selected client {client}; they are 0 to {self.clients - 1}")
            if not 0 < count < 2**31:
                raise Refused(f"selected client {client} {count} times")
        if not counts:
            raise Refused("selected nobody")
        self.check_state()
        return sorted(counts.items())

    def correct(self, round: Round, client: int) -> list[NDArray[np.float32]] | None:
        with user_code():
            found = self.scheme.correct(round, client)
        self.check_state()
        return None if found is None else self.form.flat(found, "gave a correction with")

    def aggregate(
        self, round: Round, arrivals: list[tuple[int, int, int, NDArray[np.float32]]]
    ) -> list[NDArray[np.float32]]:
        given = [
            Arrival(client, copies, steps, self.form.arrays(model))
            for client, copies, steps, model in arrivals
        ]
        with user_code():
            found = self.scheme.aggregate(round, given)
        self.check_state()
        return self.form.flat(found, "aggregated to")

    def check_state(self) -> None:
        _check(self.scheme.state, "state")

    def save(self) -> str:
        return json.dumps(_encoded(self.scheme.state))

    def restore(self, text: str) -> None:
        self.scheme.state = _decoded(json.loads(text))


class Schemes:
    """Schemes by name, given as objects or as ``module:Class`` in a scenario."""

    def __init__(self, given: Mapping[str, Scheme], folders: Sequence[str] = ()) -> None:
        self.given, self.folders = dict(given), [str(folder) for folder in folders]

    def bridge(self, name: str, place: str, parameters: Parameters, clients: int) -> SchemeBridge:
        scheme = self.given.get(name)
        if scheme is None:
            with user_code():
                scheme = load(place, self.folders)()
        if not isinstance(scheme, Scheme):
            raise Refused(f"is an object of type {type(scheme).__name__}, not a fedcote.Scheme")
        return SchemeBridge(scheme, parameters, clients)


def load(place: str, folders: Sequence[str]) -> Any:
    """What ``module:name`` means, the module being in one of these folders or where Python finds it."""
    module, name = place.split(":")
    for folder in reversed(folders):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.split(".")[0] and error.name != module:
            raise
        looked = " and ".join(folders) or "Python's own places"
        raise Missing(f"no module `{module}` in {looked}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise Missing(f"the module `{module}` has no `{name}`")
        found = getattr(found, part)
    return found


def settings(schemes: Sequence[str | Scheme]) -> tuple[dict[str, Any], dict[str, Scheme]]:
    """What a list of schemes changes in a scenario, and those that are objects."""
    names, changes, own = [], {}, {}
    for scheme in schemes:
        if isinstance(scheme, str):
            names.append(scheme)
            continue
        if not isinstance(scheme, Scheme):
            raise TypeError(f"schemes: expected names and fedcote.Scheme objects, is {scheme!r}")
        kind = type(scheme)
        name = scheme.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()
        names.append(name)
        own[name] = scheme
        changes[f"scheme.{name}.base"] = scheme.base
        place = f"{kind.__module__}:{kind.__qualname__}".replace(".<locals>", "")
        changes[f"scheme.{name}.python"] = place
        for key, value in scheme.parameters.items():
            changes[f"scheme.{name}.{key}"] = value
    return {"schemes": names, **changes}, own


def _check(value: Any, place: str) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise Refused(
                    f"has a key in `{place}` that is neither text nor a whole number: {key!r}"
                )
            _check(inner, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            _check(inner, f"{place}[{at}]")
    elif isinstance(value, (np.ndarray, np.generic)):
        if np.asarray(value).dtype.hasobject:
            raise Refused(f"has an array of objects in `{place}`, which cannot be saved")
    elif not (value is None or isinstance(value, (str, bool, int, float))):
        raise Refused(
            f"has an object of type {type(value).__name__} in `{place}`, which cannot be saved"
        )


def _encoded(value: Any) -> Any:
    """Plain data as JSON has it; what JSON lacks is a list that begins with its kind."""
    if isinstance(value, dict):
        return ["dict", [[key, _encoded(inner)] for key, inner in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [_encoded(inner) for inner in value]]
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return ["array", array.dtype.str, list(array.shape), data, isinstance(value, np.generic)]
    if isinstance(value, float):
        return ["float", value.hex()]
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind == "dict":
        return {key: _decoded(inner) for key, inner in rest[0]}
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "array":
        dtype, shape, data, scalar = rest
        array = np.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy()
        return array[()] if scalar else array
    items = [_decoded(inner) for inner in rest[0]]
    return tuple(items) if kind == "tuple" else items
