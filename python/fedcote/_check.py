"""Turning what users pass into what the Rust half takes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np


def count(name: str, value: Any) -> int:
    """A number of draws; its range is checked by the library, except for what no u64 holds."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: must be a whole number, is {value!r}") from None
    if not 0 <= number < 2**63:
        raise ValueError(f"{name}: must be from 1 to 1000000000, is {number}")
    return number


def seed(value: Any) -> int:
    """A seed: any number of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"seed: must be a whole number, is {value!r}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"seed: must be from 0 to 2^64 - 1, is {number}")
    return number


def vector(name: str, values: Any) -> np.ndarray:
    """A contiguous one-dimensional array of float64."""
    return _array(name, values, 1)


def matrix(name: str, values: Any) -> np.ndarray:
    """A contiguous two-dimensional array of float64."""
    return _array(name, values, 2)


def _array(name: str, values: Any, dimensions: int) -> np.ndarray:
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        rows = "numbers" if dimensions == 1 else "rows of numbers, all of one length"
        raise ValueError(f"{name}: must be {rows}") from None
    if array.ndim != dimensions or np.ndim(values) != dimensions:
        raise ValueError(f"{name}: must have {dimensions} dimension(s), has {np.ndim(values)}")
    return array
