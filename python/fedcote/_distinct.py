"""Draws in which nobody comes twice."""

from __future__ import annotations

import numpy as np


def inclusion(selection: np.ndarray, count: int) -> np.ndarray:
    """With which probability each client is among ``count`` different ones.

    Proportional to the selection, but for those for whom that would be above 1: they are always
    among them. All that can be drawn, if there are fewer.

    >>> inclusion(np.array([0.7, 0.2, 0.1]), 2).round(3)
    array([1.   , 0.667, 0.333])
    """
    possible = selection > 0
    if count >= possible.sum():
        return possible.astype(np.float64)
    sure = np.zeros(len(selection), dtype=bool)
    while True:
        rest = np.where(sure, 0.0, selection)
        shares = np.where(sure, 1.0, rest * ((count - sure.sum()) / rest.sum()))
        above = shares > 1.0
        if not above.any():
            return shares
        sure |= above


def distinct(selection: np.ndarray, count: int, generator: np.random.Generator) -> np.ndarray:
    """The places of ``count`` different clients, in order: systematic draws in random order."""
    shares = inclusion(selection, count)
    order = generator.permutation(len(shares))
    ends = np.cumsum(shares[order])
    # The last end is a whole number but for rounding.
    total = int(round(float(ends[-1])))
    ends *= total / ends[-1]
    points = generator.random() + np.arange(total)
    places = np.searchsorted(ends, points, side="right").clip(max=len(shares) - 1)
    return np.unique(order[places])
