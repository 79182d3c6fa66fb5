"""Softmax and its kin have loops of their own: near exact numbers, and the same bits wherever a row stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend._registry import find_binder
from reactgrad.backend.blocks import _rows, _strips
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loop_call import LoopCall

pytestmark = pytest.mark.skipif(find_driver() is None, reason="without the driver there are none")
with rg.Graph():
    rg.logsumexp([0.0])  # the first use binds it to its loop

NAMES = ("softmax", "log_softmax", "softmax_grad", "log_softmax_grad", "logsumexp")
# Rows that are added up one by one, taken together, by pieces; columns in one tile and in several.
SHAPES = [
    ((5, 3), 1),
    ((7, 33), 1),
    ((4, 300), 1),
    ((3, 1200), 1),
    ((3, 17, 5), 1),
    ((2, 40, 150), 1),
    ((70, 9), 0),
    ((3, 4, 5), (1, 2)),
    ((3, 4, 5), (0, 2)),
    ((3, 1, 5), 1),
    ((6,), None),
]


def operands(name: str, shape: tuple[int, ...], axis: Any, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(len(shape) + shape[0])
    x = np.round(rng.standard_normal(shape) * 3000.0) / 1024  # differences are exact
    if not name.endswith("_grad"):
        return [x.astype(dtype)]
    top = x.max(axis, keepdims=True)
    y = x - top - np.log(np.exp(x - top).sum(axis, keepdims=True))
    y = np.exp(y) if name == "softmax_grad" else y
    return [rng.standard_normal(shape).astype(dtype), y.astype(dtype)]


def attrs_of(name: str, axis: Any) -> tuple[Any, ...]:
    return (axis, False) if name == "logsumexp" else (axis,)


def computed(name: str, inputs: list[Any], axis: Any, out: Any = None) -> Any:
    x = inputs[0]
    if out is None:
        like = x if name != "logsumexp" else np.any(x, axis)
        out = np.empty(np.shape(like), x.dtype)
    with np.errstate(all="ignore"):
        find_binder(name, "cpu")(inputs, out, attrs_of(name, axis))()
    return out


def exact(name: str, inputs: list[Any], axis: Any) -> Any:
    """Return the results in long doubles."""
    first, *rest = [one.astype(np.longdouble) for one in inputs]
    if name.endswith("_grad"):
        (y,) = rest
        if name == "softmax_grad":
            return y * (first - (first * y).sum(axis, keepdims=True))
        return first - np.exp(y) * first.sum(axis, keepdims=True)
    top = first.max(axis, keepdims=True)
    e = np.exp(first - top)
    total = e.sum(axis, keepdims=True)
    if name == "softmax":
        return e / total
    found = first - top - np.log(total)
    return found if name == "log_softmax" else np.squeeze(top + np.log(total), axis)


# The largest errors in units of the last place, of gradients in those of the largest number.
ULPS = {
    "softmax": 5.0,
    "log_softmax": 2.0,
    "logsumexp": 1.5,
    "softmax_grad": 8.0,
    "log_softmax_grad": 8.0,
}


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-17, reason="long doubles are no longer")
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_results_are_near_exact_ones(name: str, shape: Any, axis: Any, dtype: str) -> None:
    inputs = operands(name, shape, axis, dtype)
    right, found = exact(name, inputs, axis), computed(name, inputs, axis)
    scale = np.abs(right).max() if name.endswith("_grad") else np.abs(right)
    error = np.abs(found - right) / np.spacing(np.asarray(scale, dtype))
    assert error.max() < ULPS[name]


def test_long_rows_lose_no_digits() -> None:
    for dtype, bound in (("f4", 2.5), ("f8", 2.5)):
        x = np.round(np.random.default_rng(0).standard_normal(300_001) * 2048).astype(dtype) / 1024
        for shape, axis in (((1, x.size), 1), ((x.size, 1), 0)):
            found = computed("softmax", [x.reshape(shape)], axis).ravel()
            right = exact("softmax", [x], 0)
            assert (np.abs(found - right) / np.spacing(right.astype(dtype))).max() < bound
        x = np.tile(x[:, None], (1, 2))  # columns are added up by chunks
        found = computed("softmax", [x], 0)
        assert (np.abs(found[:, 0] - right) / np.spacing(right.astype(dtype))).max() < 4 * bound


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_row_has_the_same_bits_wherever_it_stands(
    name: str, shape: Any, axis: Any, dtype: str
) -> None:
    inputs = operands(name, shape, axis, dtype)
    whole = computed(name, inputs, axis)
    with _strips.configured(block=8, threshold=1, effort=0):
        assert np.array_equal(computed(name, inputs, axis), whole)
    odd = [
        np.frombuffer(b"\0" + one.tobytes(), dtype, one.size, 1).reshape(shape) for one in inputs
    ]
    assert np.array_equal(computed(name, odd, axis), whole)  # not aligned
    turned = [np.asfortranarray(one) for one in inputs]
    assert np.array_equal(computed(name, turned, axis, np.empty_like(whole, order="F")), whole)
    reduced = range(len(shape)) if axis is None else np.atleast_1d(axis)
    if 0 in reduced:
        return
    for rows in (slice(1, 2), slice(0, None, 2), slice(None, None, -1)):
        assert np.array_equal(computed(name, [one[rows] for one in inputs], axis), whole[rows])


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("length", [4, 40, 700])
def test_numbers_that_are_none(length: int, dtype: str) -> None:
    x = np.linspace(-3, 3, 6 * length).reshape(6, length).astype(dtype)
    x[0, 1], x[1, 1], x[2, 1] = np.nan, np.inf, -np.inf
    x[3] = -np.inf
    x[4], x[4, 2] = -1e30, 1e30
    columns = x.T.copy()
    for name in ("softmax", "log_softmax"):
        found = computed(name, [x], 1)
        assert np.isnan(found[[0, 1, 3]]).all()
        assert np.isfinite(found[[4, 5]]).all()
        assert found[2, 1] == (0.0 if name == "softmax" else -np.inf)
        assert np.isfinite(np.delete(found[2], 1)).all()
        assert found[4, 2] == (1.0 if name == "softmax" else 0.0)
        other = computed(name, [columns], 0).T
        assert np.array_equal(np.isnan(other), np.isnan(found))
        np.testing.assert_allclose(other, found, 20 * np.finfo(dtype).eps)
    for found in (computed("logsumexp", [x], 1), computed("logsumexp", [columns], 0)):
        assert np.isnan(found[0])
        assert found[1] == np.inf
        assert np.isfinite(found[2])
        assert found[3] == -np.inf
        assert found[4] == x[4, 2]
    pair = np.array([[np.nan, np.inf], [np.inf, -np.inf], [np.inf, np.inf]], dtype)
    assert np.array_equal(
        computed("logsumexp", [pair], 1), [np.nan, np.inf, np.inf], equal_nan=True
    )


def test_small_parts_stand_beside_large_ones() -> None:
    x = np.array([[0.0, -40.0], [0.0, 0.0], [-800.0, 0.0], [5.0, 5.0]])
    found = computed("log_softmax", [x], 1)
    assert found[0, 0] == -np.log1p(np.exp(-40.0))
    assert found[1].tolist() == [-np.log(2.0)] * 2
    assert found[2].tolist() == [-800.0, 0.0]
    for n in (20, 600):  # many of one size, and one that is hardly smaller
        x = np.zeros((1, n))
        x[0, 0] = -1e-9
        np.testing.assert_allclose(computed("logsumexp", [x], 1), [np.log(n) - 1e-9 / n], 1e-15)
    small = np.array([[-745.0, -730.0, 0.0]])
    assert np.array_equal(computed("softmax", [small], 1)[0, :2] > 0, [True, True])


@pytest.mark.parametrize("name", NAMES)
def test_numpy_computes_the_same(name: str) -> None:
    inputs = operands(name, (9, 37), 1, "f8")
    other = np.empty(9 if name == "logsumexp" else (9, 37))
    if name == "logsumexp":
        from scipy.special import logsumexp

        other[...] = logsumexp(inputs[0], 1)
    else:
        _rows._binder(getattr(_rows, name))(inputs, other, (1,))()
    np.testing.assert_allclose(computed(name, inputs, 1), other, 1e-13, 1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_operands_that_lie_otherwise_or_have_another_dtype(name: str) -> None:
    inputs = operands(name, (6, 11), 1, "f8")
    if name.endswith("_grad"):
        y = inputs[1]
        one = computed(name, [np.full((6, 11), 2.0), y], 1)
        for given in (np.array(2.0), np.full((6, 1), 2.0), np.full(11, 2, "i4")):
            out = np.empty((6, 11))
            find_binder(name, "cpu")([given, y], out, (1,))()
            assert np.array_equal(out, one)
    else:
        out = np.empty(6 if name == "logsumexp" else (6, 11))
        x = np.arange(66).reshape(6, 11) % 7
        find_binder(name, "cpu")([x], out, attrs_of(name, 1))()
        assert np.array_equal(out, computed(name, [x.astype("f8")], 1))
    assert computed(name, [one[:0] for one in inputs], 1).shape[0] == 0


@pytest.mark.whole
def test_a_small_step_is_an_instruction() -> None:
    x = np.zeros((3, 4))
    for name in ("softmax", "log_softmax"):
        assert type(find_binder(name, "cpu")([x], x.copy(), (1,))) is LoopCall


@pytest.mark.parametrize("function", [rg.softmax, rg.log_softmax, rg.logsumexp])
def test_values_are_the_same_with_and_without_jit_and_in_parts(function: Any) -> None:
    x = np.random.default_rng(0).standard_normal((40, 12)).astype(np.float32)
    values = []
    for jit in (None, False, 2):
        g = rg.Graph(jit=jit)
        v = g.param(np.zeros_like(x))
        y = function(v, axis=1)
        slope = rg.grad((y * y).sum(), v)
        second = rg.grad((slope * slope).sum(), v)
        for _ in range(20):  # from the sixteenth run on as a program
            g.forward(y, slope, second)
            v.set(v.value + 1.0)
        v.set(x)
        g.forward(y, slope, second)
        v.set_at(slice(7, 9), 2 * x[7:9])
        values.append((y.value, slope.value, second.value))
        fresh = rg.Graph(jit=jit).param(v.value)
        again = function(fresh, axis=1)
        assert np.array_equal(again.value, y.value)
        assert np.array_equal(rg.grad((again * again).sum(), fresh).value, slope.value)
        few = g.param(v.value[5:6])
        assert np.array_equal(function(few, axis=1).value, y.value[5:6])
        with g.whatif({v: x}) as fork:
            assert np.array_equal(fork[y].value[:7], y.value[:7])
    for a, b, c in zip(*values, strict=True):
        assert np.array_equal(a, b)
        assert np.array_equal(a, c)


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)])
@pytest.mark.parametrize("function", [rg.softmax, rg.log_softmax, rg.logsumexp])
def test_derivatives_to_second_order(function: Any, axis: Any) -> None:
    x = np.random.default_rng(5).standard_normal((4, 6))
    rg.testing.check_grads(lambda v: function(v, axis=axis), (x,), order=2)


def test_a_graph_on_unknown_lengths() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 5), dtype="f4")
    y, total = rg.softmax(x), rg.logsumexp(x, axis=1)
    for rows in (3, 0, 700, 3):
        given = np.random.default_rng(rows).standard_normal((rows, 5)).astype("f4")
        x.set(given)
        assert np.array_equal(y.value, rg.softmax(rg.Graph().input(given)).value)
        assert total.value.shape == (rows,)
