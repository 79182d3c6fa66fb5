"""Zeros, ties, kinks, infinities and NaN: the slopes that PyTorch 2.13 gives there, in both modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

INF, NAN = np.inf, np.nan
RAMP = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


def weighted(call: Any) -> Any:
    """Return the sum of results, the first one once, the second one twice, and so on."""

    def f(x: Any) -> Any:
        y = call(x)
        return (y * RAMP[: y.shape[0]]).sum()

    return f


# Name, function, point, gradient as PyTorch has it.
POINTS: list[tuple[str, Any, list[float], list[float]]] = [
    ("prod, one 0", rg.prod, [2, 0, 3, 4], [0, 24, 0, 0]),
    ("prod, two", rg.prod, [2, 0, 0, 4], [0, 0, 0, 0]),
    ("prod, three", rg.prod, [0, 0, 0, 4], [0, 0, 0, 0]),
    ("cumprod, one 0", weighted(rg.cumprod), [2, 0, 3, 4], [1, 118, 0, 0]),
    ("cumprod, two", weighted(rg.cumprod), [2, 0, 0, 4], [1, 4, 0, 0]),
    ("cumprod, three", weighted(rg.cumprod), [0, 0, 0, 4], [1, 0, 0, 0]),
    ("logsumexp, -inf", rg.logsumexp, [0, -INF, 0], [0.5, 0, 0.5]),
    ("cummax, ties", weighted(rg.cummax), [1, 3, 3, 2, 3], [1, 2, 7, 0, 5]),
    ("cummin, ties", weighted(rg.cummin), [1, 3, 3, 2, 3], [15, 0, 0, 0, 0]),
    ("cummin, ties first", weighted(rg.cummin), [2, 2, 1], [1, 2, 3]),
    ("std, constant", lambda x: rg.std(x, ddof=1), [1, 1, 1], [0, 0, 0]),
    ("std, one", rg.std, [5], [0]),
    ("var, one", rg.var, [5], [0]),
    ("var, one, of samples", lambda x: rg.var(x, ddof=1), [5], [NAN]),
    ("nanmean", rg.nanmean, [1, NAN, 3], [0.5, 0, 0.5]),
    ("nansum", rg.nansum, [1, NAN, 3], [1, 0, 1]),
    ("nanmax, ties", rg.nanmax, [3, NAN, 3], [0.5, 0, 0.5]),
    ("nanprod", rg.nanprod, [2, NAN, 3], [3, 0, 2]),
    ("nanstd, constant", rg.nanstd, [2, NAN, 2], [0, 0, 0]),
    ("max, initial ties", lambda x: rg.max(x, initial=3.0), [1, 3], [0, 0.5]),
    ("quantile, ties", lambda x: rg.quantile(x, 0.4), [1, 2, 2, 5], [0, 0.8, 0.2, 0]),
    ("nanquantile", lambda x: rg.nanquantile(x, 0.4), [1, 2, NAN, 5], [0.2, 0.8, 0, 0]),
    ("norm 1", lambda x: rg.norm(x, 1), [0, 3, -3, 1], [0, 1, -1, 1]),
    ("norm inf", lambda x: rg.norm(x, INF), [0, 3, -3, 1], [0, 0.5, -0.5, 0]),
    (
        "norm 0.5",
        lambda x: rg.norm(x, 0.5),
        [0, 3, -3, 1],
        [0, 2.577350269189626, -2.577350269189626, 4.464101615137754],
    ),
    (
        "norm 1.5",
        lambda x: rg.norm(x, 1.5),
        [0, 3, -3, 1],
        [0, 0.7697625202443363, -0.7697625202443363, 0.44442259827515235],
    ),
    (
        "norm 2",
        rg.norm,
        [0, 3, -3, 1],
        [0, 0.6882472016116852, -0.6882472016116852, 0.22941573387056174],
    ),
    (
        "norm 3",
        lambda x: rg.norm(x, 3),
        [0, 3, -3, 1],
        [0, 0.6223013117609552, -0.6223013117609552, 0.06914459019566169],
    ),
    *[
        (f"norm {p} at 0", lambda x, p=p: rg.norm(x, p), [0, 0], [0, 0])
        for p in (0.5, 1, 1.5, 2, 3, INF)
    ],
    ("trapezoid, inf at an end", rg.trapezoid, [INF, 1, 2], [0.5, 1, 0.5]),
    ("unwrap", weighted(rg.unwrap), [0, 4, 8], [1, 2, 3]),
]


@pytest.mark.parametrize(
    ("f", "point", "wanted"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS]
)
def test_slopes_in_both_modes(f: Any, point: list[float], wanted: list[float]) -> None:
    x = rg.Graph().param(np.array(point, float))
    y = f(x)
    np.testing.assert_allclose(rg.grad(y, x).value, wanted, rtol=1e-14)
    for i, slope in enumerate(wanted):
        direction = np.eye(len(point))[i]
        np.testing.assert_allclose(rg.jvp(y, [x], [direction]).value, slope, rtol=1e-14)


# Where PyTorch has NaN since it divides infinities, and a slope exists.
def test_running_logarithms_begin_with_nothing() -> None:
    x = rg.Graph().param([-INF, -INF, 1.0, 2.0])
    y = rg.logcumsumexp(x)
    np.testing.assert_array_equal(y.value[:3], [-INF, -INF, 1.0])
    np.testing.assert_allclose(
        rg.grad(y[1:].sum(), x).value, [0, 0, 1.2689414213699952, 0.7310585786300049], rtol=1e-14
    )


SECOND = [
    (rg.prod, [2, 0, 3, 4], [[0, 12, 0, 0], [12, 0, 8, 6], [0, 8, 0, 0], [0, 6, 0, 0]]),
    (rg.prod, [2, 0, 0, 4], [[0, 0, 0, 0], [0, 0, 8, 0], [0, 8, 0, 0], [0, 0, 0, 0]]),
    (
        weighted(rg.cumprod),
        [2, 0, 0, 4],
        [[0, 2, 0, 0], [2, 0, 38, 0], [0, 38, 0, 0], [0, 0, 0, 0]],
    ),
    (lambda x: rg.std(x, ddof=1), [1, 1], [[0, 0], [0, 0]]),
    (rg.norm, [0, 0], [[0, 0], [0, 0]]),  # PyTorch: NaN
]


@pytest.mark.parametrize(("f", "point", "wanted"), SECOND)
def test_second_derivatives(f: Any, point: list[float], wanted: Any) -> None:
    x = rg.Graph().param(np.array(point, float))
    np.testing.assert_array_equal(rg.hessian(f(x), x).value, wanted)


def test_third_derivative_of_a_product_of_zeros() -> None:
    x = rg.Graph().param([0.0, 0.0, 0.0, 2.0])
    (third,) = [
        rg.grad(rg.grad(rg.grad(rg.prod(x), x)[0], x)[1], x).value,
    ]
    np.testing.assert_array_equal(third, [0, 0, 2, 0])


def test_nothing_arrives_nothing_passes() -> None:
    """Where no gradient arrives none passes, though a factor is infinite or NaN."""
    x = rg.Graph().param([INF, 2.0, NAN])
    for y in (rg.cumprod(x), rg.cumsum(x), rg.logcumsumexp(x)):
        np.testing.assert_array_equal(rg.grad((y * 0.0)[:0].sum(), x).value, [0, 0, 0])
    slopes = rg.grad(rg.cumprod(x)[0], x).value
    np.testing.assert_array_equal(slopes, [1, 0, 0])


def test_all_nan_or_no_element() -> None:
    g = rg.Graph()
    x = g.input([[NAN, NAN], [1.0, NAN]])
    np.testing.assert_array_equal(rg.nanmax(x, 1).value, [NAN, 1])
    np.testing.assert_array_equal(rg.nansum(x, 1).value, [0, 1])
    np.testing.assert_array_equal(rg.nanmean(x, 1).value, [NAN, 1])
    np.testing.assert_array_equal(rg.nanvar(x, 1, ddof=1).value, [NAN, NAN])
    np.testing.assert_array_equal(rg.nanmedian(x, 1).value, [NAN, 1])
    with pytest.raises(ValueError, match="All-NaN"):
        _ = rg.nanargmax(x, 1).value
    empty = g.input(np.zeros((0, 2)))
    np.testing.assert_array_equal(rg.prod(empty, 0).value, [1, 1])
    np.testing.assert_array_equal(rg.logsumexp(empty, 0).value, [-INF, -INF])
    assert rg.var(empty, 1).value.shape == (0,)
    assert np.isnan(rg.var(empty).value)
    assert rg.all(empty).value
    assert not rg.any(empty).value
    assert rg.norm(empty).value == 0.0


def test_numbers_are_operands() -> None:
    with rg.Graph():
        assert rg.prod(3.0).value == 3.0
        assert rg.cumsum(3.0).value.tolist() == [3.0]
        assert rg.var(2).value == 0.0
        assert rg.count_nonzero(2.5).value == 1
        assert rg.all(0.5).value
        assert rg.argmax(4.0).value == 0
        assert rg.norm(-2).value == 2.0
        assert rg.cumprod([1, 2, 3]).value.tolist() == [1, 2, 6]
        assert rg.logsumexp([0, 0]).value == pytest.approx(np.log(2.0))


def test_lists_that_hold_nodes() -> None:
    g = rg.Graph()
    a, b = g.input(2.0), g.input(3.0)
    nodes = rg.prod([a, b]), rg.cumsum([a, b]), rg.median([a, 9.0, b]), rg.diff([a, b])
    assert [y.value.tolist() for y in nodes] == [6.0, [2.0, 5.0], 3.0, [1.0]]
    a.set(10.0)
    assert [y.value.tolist() for y in nodes] == [30.0, [10.0, 13.0], 9.0, [-7.0]]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: rg.cumsum(x, 0) ** 2,
        lambda x: rg.cumprod(x, 1),
        lambda x: rg.cumprod(x),
        lambda x: rg.cummax(x, -1) * x,
        lambda x: rg.logcumsumexp(x, 0),
        lambda x: rg.prod(x, -1),
        lambda x: rg.std(x, 0),
        lambda x: rg.quantile(x, 0.3, 1) ** 2,
    ],
)
def test_jacobians_have_the_columns_of_gradients(f: Any) -> None:
    x = rg.Graph().param(np.random.default_rng(0).standard_normal((2, 3)))
    y = f(x)
    whole = rg.jacobian(y, x).value
    second = rg.hessian(y.sum(), x).value
    for at in np.ndindex(y.shape):
        np.testing.assert_allclose(whole[at], rg.grad(y[at], x).value, rtol=1e-13, atol=1e-15)
    slope = rg.grad(y.sum(), x)
    for at in np.ndindex(x.shape):
        row = rg.grad(slope[at], x, allow_unused=True)
        np.testing.assert_allclose(
            second[at], 0 if row is None else row.value, rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8"])
@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "prod",
        "max",
        "min",
        "all",
        "any",
        "argmax",
        "count_nonzero",
        "ptp",
        "nansum",
        "nanmax",
        "nanmean",
        "nanvar",
    ],
)
def test_an_axis_of_a_number(name: str, dtype: str) -> None:
    a = np.array(3, dtype)
    if dtype == "i8" and name in ("nanmean", "nanvar"):
        return  # NumPy refuses these, and takes floats
    for axis in (0, -1):
        x = rg.Graph().input(a)
        found, wanted = getattr(rg, name)(x, axis, keepdims=True), getattr(np, name)(a, axis=axis)
        assert found.dtype == wanted.dtype
        assert found.value == wanted
        if found.dtype.kind == "f":
            assert rg.grad(found, x, allow_unused=True).shape == ()
    with pytest.raises(rg.AxisError):
        getattr(rg, name)(x, 1)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, 2, -2, INF, -1])
def test_norms_of_nothing(order: Any) -> None:
    for shape in ((0, 0), (0, 3), (3, 0)):
        a = np.zeros(shape)
        try:
            wanted = np.linalg.norm(a, order)
        except ValueError:
            with pytest.raises(ValueError, match="length 0"):
                _ = rg.norm(rg.Graph().input(a), order).value
        else:
            assert rg.norm(rg.Graph().input(a), order).value == wanted
