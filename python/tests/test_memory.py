"""What a server remembers of clients, against formulas in NumPy; no Flower needed."""

import numpy as np
import pytest

from fedcote._memory import Memory

DTYPES = ["f4", "f8", "f2", "c8", "i8", "i4", "u1", "?", "g"]


def array(generator, dtype, shape):
    if dtype == "?":
        return generator.random(shape) < 0.5
    return np.asarray(generator.uniform(0, 100, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (5000,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_steps_of_any_kind_of_number(dtype, shape, order):
    generator = np.random.default_rng(1)
    memory, latest, wide = Memory(10), {}, "c16" if dtype == "c8" else "f8"
    for round_, name in enumerate(["a", "b", "c", "a"], start=1):
        sent = {"x": np.asarray(array(generator, dtype, shape), order=order)}
        returned = {"x": np.asarray(array(generator, dtype, shape), order=order)}
        memory.remember(name, returned, sent, round_)
        latest[name] = returned["x"].astype(wide) - sent["x"].astype(wide)
    model = array(generator, dtype, shape)
    stepped, shares = memory.step({"x": model}, {"a": 0.5, "b": 0.1, "c": 0.0, "new": 0.4})
    assert shares == pytest.approx({"a": 5 / 6, "b": 1 / 6})  # c is left out, new not heard of
    wanted = model.astype(wide) + (5 * latest["a"] + latest["b"]) / 6
    found = stepped["x"]
    assert found.dtype == model.dtype and found.shape == shape
    if dtype == "?":
        np.testing.assert_array_equal(found, wanted >= 0.5)
    elif model.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # Differences of bytes are kept in float32, which may round a half to the other side.
        np.testing.assert_allclose(found, np.clip(np.rint(wanted), limits.min, limits.max), atol=1)
    else:
        rtol, atol = (1e-2, 0.1) if dtype == "f2" else (1e-5, 1e-4)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def test_the_order_of_arrival_does_not_change_the_rounding():
    generator = np.random.default_rng(1)
    zero, one, other = {"x": np.zeros(100, np.float32)}, Memory(1), Memory(1)
    updates = {name: {"x": generator.normal(size=100).astype("f4")} for name in "abcdef"}
    for memory, order in ((one, "abcdef"), (other, "fdbeca")):
        for name in order:
            memory.remember(name, updates[name], zero, 1)
    weights = dict(zip("abcdef", generator.random(6), strict=True))
    np.testing.assert_array_equal(
        one.step(zero, weights)[0]["x"],
        other.step(zero, dict(reversed(weights.items())))[0]["x"],
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_does_not_enter(bad):
    memory, zero = Memory(1), {"x": np.zeros(3, np.float32), "y": np.zeros(3, np.float32)}
    good = {"x": np.ones(3, np.float32), "y": np.ones(3, np.float32)}
    memory.remember("a", good, zero, 1)
    with pytest.raises(ValueError, match="update is not finite: y"):
        memory.remember("a", {**good, "y": np.float32([0, bad, 0])}, zero, 2)
    np.testing.assert_array_equal(memory.updates["a"]["y"], 1)  # the older one stays, whole
    assert memory.rounds == {"a": 1}
    top = np.full(3, np.finfo(np.float32).max)
    with pytest.raises(ValueError, match="update is not finite: x"):  # only the difference is not
        memory.remember("b", {"x": top, "y": top}, {"x": -top, "y": top}, 2)
    assert list(memory.updates) == ["a"]


def test_a_step_that_is_not_finite_is_none():
    memory, top = Memory(1), np.full(3, np.finfo(np.float32).max)
    memory.remember("a", {"x": top}, {"x": np.zeros(3, np.float32)}, 1)
    assert memory.step({"x": top}, {"a": 1.0}) == (None, {"a": 1.0})
    assert memory.step({"x": top}, {"a": 0.0, "b": 1.0}) == (None, {})


def test_who_stays_away_is_forgotten_in_time():
    memory, one = Memory(forget_after=3), {"x": np.ones(2, np.float32)}
    for name in "ab":
        memory.remember(name, one, {"x": np.zeros(2, np.float32)}, 1)
    assert memory.bytes == 2 * 2 * 4
    for round_ in (2, 3, 4):
        memory.meet({"b", "new"}, round_)
    assert set(memory.updates) == {"a", "b"}
    memory.meet({"b"}, 5)
    assert set(memory.updates) == set(memory.rounds) == set(memory.seen) == {"b"}
    assert memory.rounds == {"b": 1} and memory.seen == {"b": 5} and memory.bytes == 8


def test_restored():
    memory, one = Memory(3), {"x": np.ones(2, np.float32)}
    memory.remember("a", one, {"x": np.zeros(2, np.float32)}, 4)
    again = Memory(3)
    again.restore(memory.state(), memory.updates)
    assert (again.rounds, again.seen) == (memory.rounds, memory.seen) == ({"a": 4}, {"a": 4})
    with pytest.raises(ValueError, match="disagree"):
        again.restore(memory.state(), {})
    with pytest.raises(ValueError, match="forget_after"):
        Memory(0)
