"""What the server makes of the aggregate: a step of Adam, Yogi or momentum in place of taking it over.

Δ is the aggregate less the model. The formulas are those of Flower's ``FedAdam``, ``FedYogi`` and
``FedAvgM`` (Reddi et al. 2021; Hsu et al. 2019), so settings can be carried over. Arrays of whole
numbers are taken over as they are.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._memory import Arrays
from ._state import KIND


class ServerOptimizer(ABC):
    """Steps from the model towards the aggregate; one object for one run."""

    #: The names of the moments it keeps, of a-z, 0-9, _ and -: they are parts of names of files.
    moments: tuple[str, ...] = ()

    def __init__(self, **settings: float) -> None:
        self.settings = settings
        #: How many steps it took.
        self.steps = 0
        #: Its moments by name, each with the model's arrays of floating point.
        self.arrays: dict[str, Arrays] = {}

    def clear(self) -> None:
        """Begins again from nothing."""
        self.steps, self.arrays = 0, {}

    def step(self, model: Arrays, aggregate: Arrays) -> Arrays | None:
        """The next model; ``None``, and nothing has changed, when it would not be finite."""
        stepped = dict(aggregate)
        arrays: dict[str, Arrays] = {moment: {} for moment in self.moments}
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for key, array in model.items():
                if array.dtype.kind not in "fc":
                    continue
                wide = np.result_type(array.dtype, np.float64)
                delta = aggregate[key].astype(wide) - array
                before = [self.arrays.get(moment, {}).get(key) for moment in self.moments]
                change, after = self._change(delta, before)
                # asarray: NumPy turns arrays without dimensions into scalars.
                stepped[key] = np.asarray(array + change).astype(array.dtype)
                if not all(np.isfinite(found).all() for found in (stepped[key], *after)):
                    return None
                for moment, found in zip(self.moments, after, strict=True):
                    arrays[moment][key] = np.asarray(found)
        self.steps, self.arrays = self.steps + 1, arrays
        return stepped

    @abstractmethod
    def _change(
        self, delta: np.ndarray, before: list[np.ndarray | None]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """What is added to an array, and its moments after the step."""

    def state(self) -> dict[str, Any]:
        """Everything but the moments, as data that JSON can hold."""
        return {"kind": type(self).__name__, "settings": dict(self.settings), "steps": self.steps}

    def restore(self, state: Mapping[str, Any], arrays: Mapping[str, Arrays]) -> None:
        """Goes on from a saved :meth:`state` and the moments."""
        ours = self.state()
        for part in ("kind", "settings"):
            if state[part] != ours[part]:
                raise ValueError(
                    f"state: was saved with server_optimizer {part} {state[part]}, this is "
                    f"{ours[part]}; use the same options, or start again from nothing"
                )
        if set(arrays) != (set(self.moments) if state["steps"] else set()):
            raise ValueError("state: the moments of the server's optimiser are missing")
        self.steps, self.arrays = int(state["steps"]), {name: dict(a) for name, a in arrays.items()}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{type(self).__name__}({settings})"


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name}: must be a positive number, is {value}")


def _fraction(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0.0 <= value < 1.0:
            raise ValueError(f"{name}: must be at least 0 and below 1, is {value}")


def _or_zero(moment: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    return np.zeros_like(like) if moment is None else moment


class Momentum(ServerOptimizer):
    """v ← βv + Δ, w ← w + ηv; Flower's ``FedAvgM(server_learning_rate=η, server_momentum=β)``.

    >>> optimizer = Momentum(beta=0.5)
    >>> model = optimizer.step({"w": np.float32([0])}, {"w": np.float32([1])})
    >>> optimizer.step(model, {"w": np.float32([2])})
    {'w': array([2.5], dtype=float32)}
    """

    moments = ("momentum",)

    def __init__(self, eta: float = 1.0, beta: float = 0.9) -> None:
        _positive(eta=eta)
        _fraction(beta=beta)
        super().__init__(eta=eta, beta=beta)

    def _change(
        self, delta: np.ndarray, before: list[np.ndarray | None]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        momentum = self.settings["beta"] * _or_zero(before[0], delta) + delta
        return self.settings["eta"] * momentum, [momentum]


class _Adaptive(ServerOptimizer):
    """m ← β₁m + (1 − β₁)Δ, w ← w + η_t m / (√v + τ)."""

    moments = ("first", "second")

    def __init__(self, eta: float, beta_1: float, beta_2: float, tau: float) -> None:
        _positive(eta=eta, tau=tau)
        _fraction(beta_1=beta_1, beta_2=beta_2)
        super().__init__(eta=eta, beta_1=beta_1, beta_2=beta_2, tau=tau)

    def _change(
        self, delta: np.ndarray, before: list[np.ndarray | None]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        beta_1 = self.settings["beta_1"]
        first = beta_1 * _or_zero(before[0], delta) + (1.0 - beta_1) * delta
        second = self._second(delta * delta, _or_zero(before[1], delta))
        change = self._rate() * first / (np.sqrt(second) + self.settings["tau"])
        return change, [first, second]

    @abstractmethod
    def _second(self, square: np.ndarray, before: np.ndarray) -> np.ndarray: ...

    def _rate(self) -> float:
        return self.settings["eta"]


class Adam(_Adaptive):
    """Flower's ``FedAdam``: v ← β₂v + (1 − β₂)Δ², with the bias-corrected rate η_t."""

    def __init__(
        self, eta: float = 0.1, beta_1: float = 0.9, beta_2: float = 0.99, tau: float = 1e-3
    ) -> None:
        super().__init__(eta, beta_1, beta_2, tau)

    def _second(self, square: np.ndarray, before: np.ndarray) -> np.ndarray:
        beta_2 = self.settings["beta_2"]
        return beta_2 * before + (1.0 - beta_2) * square

    def _rate(self) -> float:
        # Flower counts its first round as step 2.
        step = self.steps + 2.0
        correction = math.sqrt(1.0 - self.settings["beta_2"] ** step)
        return float(self.settings["eta"] * correction / (1.0 - self.settings["beta_1"] ** step))


class Yogi(_Adaptive):
    """Flower's ``FedYogi``: v ← v − (1 − β₂)Δ² sign(v − Δ²)."""

    def __init__(
        self, eta: float = 0.01, beta_1: float = 0.9, beta_2: float = 0.99, tau: float = 1e-3
    ) -> None:
        super().__init__(eta, beta_1, beta_2, tau)

    def _second(self, square: np.ndarray, before: np.ndarray) -> np.ndarray:
        sign: np.ndarray = np.sign(before - square)
        after: np.ndarray = before - (1.0 - self.settings["beta_2"]) * square * sign
        return after


NAMED: dict[str, type[Adam] | type[Yogi] | type[Momentum]] = {
    "adam": Adam,
    "yogi": Yogi,
    "momentum": Momentum,
}


def server_optimizer(given: str | ServerOptimizer | None) -> ServerOptimizer | None:
    """The optimiser that is meant."""
    if isinstance(given, ServerOptimizer):
        for moment in given.moments:
            if not re.fullmatch(rf"(?!calm$|update-){KIND}", moment):
                raise ValueError(
                    f"server_optimizer: moment {moment!r} of {type(given).__name__} must be of a-z, "
                    "0-9, _ and -, not be calm and not begin with update-: files are named by it"
                )
        return given
    if given is None:
        return None
    if given not in NAMED:
        raise ValueError(
            f"server_optimizer: expected one of {', '.join(NAMED)}, or an object such as "
            f"fedcote.flower.Adam(eta=0.1), is {given!r}"
        )
    return NAMED[given]()
