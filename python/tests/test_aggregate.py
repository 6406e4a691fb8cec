"""Averages of arrays of any kind, against NumPy."""

import io

import numpy as np
import oracles
import pytest

from fedcote import _aggregate

DTYPES = ["f4", "f8", "f2", "i8", "i4", "u1", "?", "c8", "c16", ">f4", "g"]


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 3, 4), (5000,), (70, 80)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_averages(dtype, shape, order):
    generator = np.random.default_rng(1)
    arrays = [
        np.asarray(generator.uniform(0, 100, shape), order=order).astype(dtype) for _ in range(4)
    ]
    weights = [1, 3, 2, 5]
    views = [_aggregate.view(saved(array)) for array in arrays]
    for one, array in zip(views, arrays, strict=True):
        np.testing.assert_array_equal(one, array)
        assert one.dtype == array.dtype
    found, finite = _aggregate.average(views, weights)
    wanted = np.average(np.array([a.astype("c16") for a in arrays]), axis=0, weights=weights)
    assert finite and found.shape == shape and found.dtype == np.dtype(dtype).newbyteorder("=")
    kind = np.dtype(dtype).kind
    if kind == "b":
        np.testing.assert_array_equal(found, wanted.real >= 0.5)
    elif kind in "iu":
        np.testing.assert_array_equal(found, np.rint(wanted.real))
    else:
        np.testing.assert_allclose(
            found, wanted if kind == "c" else wanted.real, rtol=2e-3 if dtype == "f2" else 1e-6
        )
    np.testing.assert_array_equal(np.load(io.BytesIO(_aggregate.npy_bytes(found))), found)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_noticed(dtype, bad):
    arrays = [np.ones(10_000, dtype) for _ in range(3)]
    assert _aggregate.average(arrays, [1, 1, 1])[1]
    arrays[1][7777] = bad
    assert not _aggregate.average(arrays, [1, 1, 1])[1]


def test_the_largest_numbers_average_without_overflow():
    top = np.finfo(np.float32).max
    found, finite = _aggregate.average([np.full(3, top, np.float32)] * 7, [1] * 7)
    assert finite and (found == top).all()


def test_views_do_not_copy():
    data = saved(np.arange(1000, dtype=np.float32))
    assert not _aggregate.view(data).flags.owndata


@pytest.mark.parametrize("dtype", ["U3", "M8[s]", "S2"])
def test_what_is_no_number_is_refused(dtype):
    with pytest.raises(ValueError, match="cannot be averaged"):
        _aggregate.view(saved(np.zeros(2, dtype)))
    with pytest.raises(ValueError):
        _aggregate.view(b"no array at all")


@pytest.mark.parametrize("name", oracles.DAMAGED)
def test_every_damaged_array_is_a_value_error(name):
    """Regression: OverflowError, TokenError, RecursionError and TypeError came out as well."""
    with pytest.raises(ValueError):
        _aggregate.view(oracles.DAMAGED[name])


def test_a_damaged_header_tells_no_address():
    """Regression: the reason, which state and log keep, named an address in the server's memory."""
    data = saved(np.zeros(2, np.float32)).replace(b"(2,), ", b"(2*x,)")
    with pytest.raises(ValueError) as refused:
        _aggregate.view(data)
    assert str(refused.value) == "damaged array (ValueError)"


def test_whole_numbers_stay_in_their_range():
    """Regression: the mean of the largest 64-bit numbers is 2^63 in float64, which became -2^63."""
    top = np.iinfo(np.int64).max
    found, finite = _aggregate.average([np.full(2, top), np.full(2, top)], [1, 1])
    assert finite and (found == top).all()
    low, _ = _aggregate.weighted_sum(
        [np.uint8([1, 2]), np.float32([-9, 300])], [1.0, 1.0], np.dtype(np.uint8)
    )
    assert low.tolist() == [0, 255]


def test_sums_too_large_for_float32_are_noticed():
    top = np.full(3000, np.finfo(np.float32).max)
    assert not _aggregate.weighted_sum([top, top], [1.0, 1.0], np.dtype(np.float32))[1]
