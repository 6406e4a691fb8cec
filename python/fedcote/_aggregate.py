"""Averages of updates: arrays of any dtype and shape, read where they lie."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy

from . import _fedcote

_SUMS: dict[np.dtype, Any] = {
    np.dtype(np.float32): _fedcote.weighted_sum_f32,
    np.dtype(np.float64): _fedcote.weighted_sum_f64,
}


def view(data: bytes) -> np.ndarray:
    """The array in the bytes of an ``.npy`` file, without a copy; a ``ValueError`` if it is none."""
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as problem:
        # Headers are Python expressions: what a client wrote there can fail in any way, and the
        # message may hold an address in memory.
        raise ValueError(f"damaged array ({type(problem).__name__})") from None
    try:
        return _content(data, stream.tell(), shape, fortran, dtype)
    except ValueError:
        raise
    except Exception as problem:  # shapes beyond any number
        raise ValueError(f"damaged array ({type(problem).__name__})") from None


def _content(
    data: bytes, begin: int, shape: tuple[int, ...], fortran: bool, dtype: np.dtype
) -> np.ndarray:
    if dtype.hasobject or dtype.kind not in "biufc":
        raise ValueError(f"arrays of dtype {dtype} cannot be averaged")
    count = int(np.prod(shape, dtype=np.int64))
    flat = np.frombuffer(data, dtype, count, begin)
    return flat.reshape(shape, order="F" if fortran else "C")


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as the bytes of an ``.npy`` file, copied once."""
    array = np.asarray(array, order="C")
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, npy.header_data_from_array_1_0(array))
    return b"".join((stream.getvalue(), array.reshape(-1).view(np.uint8).data))


def average(arrays: Sequence[np.ndarray], weights: Sequence[float]) -> tuple[np.ndarray, bool]:
    """The mean of arrays of one shape with the given weights, and whether all of it is finite.

    Sums are made in float64 (or the widest type given). The result has the arrays' dtype:
    whole numbers are rounded, truth values decided by majority.

    >>> average([np.float32([1, 2]), np.float32([5, 6])], [3, 1])
    (array([2., 3.], dtype=float32), True)
    >>> average([np.int64([1, 10]), np.int64([2, 20])], [1, 3])
    (array([ 2, 18]), True)
    """
    shares = (np.asarray(weights, dtype=np.float64) / np.sum(weights)).tolist()
    return weighted_sum(arrays, shares, np.result_type(*arrays))


def weighted_sum(
    arrays: Sequence[np.ndarray], factors: Sequence[float], dtype: np.dtype
) -> tuple[np.ndarray, bool]:
    """The sum of arrays of one shape times factors, and whether all of it is finite.

    >>> weighted_sum([np.float16([1, 2]), np.float32([4, 6])], [1.0, 0.5], np.dtype(np.float16))
    (array([3., 5.], dtype=float16), True)
    """
    if dtype in _SUMS and all(array.flags.c_contiguous for array in arrays):
        out = np.empty(arrays[0].shape, dtype)
        flat = [_flat(array, dtype) for array in arrays]
        return out, _SUMS[dtype](flat, list(factors), out.reshape(-1))
    total = np.zeros(arrays[0].shape, np.result_type(*arrays, np.float64))
    with np.errstate(invalid="ignore", over="ignore"):  # noticed below
        for array, factor in zip(arrays, factors, strict=True):
            total += array * np.float64(factor)
        finite = bool(np.isfinite(total).all())
        if dtype.kind == "b":
            return total >= 0.5, finite
        if dtype.kind in "iu":
            return _whole(total, dtype), finite
        total = total.astype(dtype)
        return total, bool(np.isfinite(total).all())


def _whole(total: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounded to whole numbers; what is out of range becomes the end of the range."""
    limits = np.iinfo(dtype)
    whole = np.asarray(np.rint(total).astype(dtype))
    whole[np.asarray(total >= float(limits.max))] = limits.max
    whole[np.asarray(total <= float(limits.min))] = limits.min
    return whole


def _flat(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    array = array.reshape(-1)
    if array.dtype == dtype and array.flags.aligned:
        return array
    return np.array(array, dtype)
