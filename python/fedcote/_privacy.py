"""Differential privacy of the released model with respect to all updates of one client.

What is released in a round is w + η(Σ γ_i u_i + noise), with updates u_i no longer than ``clip`` and
shares γ_i that do not depend on any update: they follow from who was drawn and who arrived. With
Δ = clip · max γ_i, taking all updates of a client for zero moves the sum by Δ at most, replacing
them by others by 2Δ. The noise is Gaussian, of standard deviation z Δ in every coordinate with the
noise multiplier z: a release is 1/z-Gaussian differentially private (Dong et al. 2022), and n of
them √n/z. No amplification by sampling is claimed, since draws are not uniform.

For the shares to be independent of the updates, an update that is not finite, or malformed, counts
as an update of zero instead of being rejected; arrays of whole numbers are not released at all.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._fedcote import gaussian_epsilon
from ._memory import Arrays


def clipped(arrays: Arrays, model: Arrays, clip: float) -> Arrays | None:
    """An update in float64, no longer than ``clip``; ``None`` if it is not finite."""
    update = {}
    largest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for key, array in model.items():
            if array.dtype.kind in "fc":
                wide = np.result_type(array.dtype, np.float64)
                update[key] = arrays[key].astype(wide) - array
                largest = max(largest, float(np.abs(update[key]).max(initial=0.0)))
                if not np.isfinite(update[key]).all():
                    return None
    if largest == 0.0:
        return update
    # Divided by the largest number first: squares of numbers that are finite stay finite.
    norm = largest * math.sqrt(
        sum(float(np.sum(np.square(np.abs(array / largest)))) for array in update.values())
    )
    # The margin is for rounding, here and where updates are remembered in single precision.
    factor = min(1.0, clip * (1.0 - 1e-6) / norm)
    return {key: array * factor for key, array in update.items()}


def zeros(model: Arrays) -> Arrays:
    """An update that changes nothing."""
    return {
        key: np.zeros(array.shape, np.result_type(array.dtype, np.float64))
        for key, array in model.items()
        if array.dtype.kind in "fc"
    }


class Privacy:
    """Bounded shares, and noise by the sensitivity that they lead to.

    Parameters
    ----------
    noise_multiplier
        z, the noise's standard deviation over the sensitivity Δ.
    clip
        The Euclidean norm that an update may have.
    max_share
        The share that one client may have at most; the rest of a larger one is left out. Default:
        twice an equal share.
    """

    def __init__(self, noise_multiplier: float, clip: float, max_share: float | None) -> None:
        if not 0.0 < noise_multiplier < math.inf:
            raise ValueError(f"noise_multiplier: must be a positive number, is {noise_multiplier}")
        if max_share is not None and not 0.0 < max_share <= 1.0:
            raise ValueError(f"max_share: must be above 0 and at most 1, is {max_share}")
        self.noise_multiplier = noise_multiplier
        self.clip = clip
        self.max_share = max_share
        #: Σ (γ_i / max γ)² over all releases, by client: z² times its μ².
        self.spent: dict[str, float] = {}
        # From the operating system: noise that can be drawn again is no noise.
        self.generator = np.random.default_rng(secrets.randbits(128))

    def bounded(self, shares: Mapping[str, float], equal: int) -> dict[str, float]:
        """Shares of at most ``max_share``, by default of 2 / ``equal``."""
        bound = min(1.0, 2.0 / max(1, equal)) if self.max_share is None else self.max_share
        return {name: min(share, bound) for name, share in shares.items()}

    def sensitivity(self, shares: Mapping[str, float]) -> float:
        """By how much one client's updates can move the mean, compared with updates of zero."""
        return self.clip * max(shares.values())

    def release(self, model: Arrays, updates: Mapping[str, Arrays], shares: Mapping[str, float],
                rate: float = 1.0) -> Arrays | None:  # fmt: skip
        """The model, stepped by the noisy mean; ``None``, and nothing spent, if it is not finite."""
        deviation = self.noise_multiplier * self.sensitivity(shares)
        released = {}
        for key, array in model.items():
            if array.dtype.kind not in "fc":
                released[key] = array
                continue
            total = np.zeros(array.shape, np.result_type(array.dtype, np.float64))
            for name, share in shares.items():
                total += share * updates[name][key]
            total += deviation * self._noise(total)
            with np.errstate(over="ignore", invalid="ignore"):
                released[key] = np.asarray(array + rate * total).astype(array.dtype)
            if not np.isfinite(released[key]).all():
                return None
        largest = max(shares.values())
        for name, share in shares.items():
            self.spent[name] = self.spent.get(name, 0.0) + (share / largest) ** 2
        return released

    def _noise(self, like: np.ndarray) -> np.ndarray:
        noise = self.generator.standard_normal(like.shape)
        if like.dtype.kind == "c":
            return noise + 1j * self.generator.standard_normal(like.shape)
        return noise

    def epsilon(self, delta: float = 1e-5) -> float:
        """ε so far, for the client that it is largest for; 0 before the first release."""
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta: must be above 0 and below 1, is {delta}")
        mu = math.sqrt(max(self.spent.values(), default=0.0)) / self.noise_multiplier
        return gaussian_epsilon(mu, delta)

    def state(self) -> dict[str, Any]:
        """What was spent, and the settings, as data that JSON can hold."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "clip": self.clip,
            "spent": dict(self.spent),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved :meth:`state`."""
        for part in ("noise_multiplier", "clip"):
            if state[part] != getattr(self, part):
                raise ValueError(
                    f"state: was saved with {part} {state[part]}, this is {getattr(self, part)}; "
                    "use the same, or start again from nothing"
                )
        self.spent = {str(name): float(spent) for name, spent in state["spent"].items()}
