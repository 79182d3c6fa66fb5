"""What is built of several ops follows another shape, and values whose shape shows only when they have run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

CALLS: dict[str, Callable[[Any], Any]] = {
    "average": lambda x: rg.average(x, 1, returned=True)[1],
    "corrcoef": rg.corrcoef,
    "cov": rg.cov,
    "cumprod": rg.cumprod,
    "cumulative_sum": lambda x: rg.cumulative_sum(x, axis=1, include_initial=True),
    "diff": lambda x: rg.diff(x, prepend=0.0, append=1.0),
    "ediff1d": lambda x: rg.ediff1d(x, to_end=[1.0]),
    "gradient": lambda x: rg.gradient(x, axis=0),
    "histogram": lambda x: rg.histogram(x, [-2.0, 0.0, 2.0], density=True)[0],
    "logsumexp": lambda x: rg.logsumexp(x, 0),
    "max initial": lambda x: rg.max(x, 0, initial=0.5),
    "mean where": lambda x: rg.mean(x, 1, where=x > 0),
    "median": lambda x: rg.median(x, 1),
    "nanmean": lambda x: rg.nanmean(x, 0),
    "nanstd": lambda x: rg.nanstd(x, 0),
    "norm": lambda x: rg.norm(x, 3, 1),
    "prod": lambda x: rg.prod(x, (0, 1)),
    "std": lambda x: rg.std(x, 1, ddof=1),
    "sum where": lambda x: rg.sum(x, 1, where=x > 0),
    "trapezoid": rg.trapezoid,
    "unwrap": rg.unwrap,
    "var where": lambda x: rg.var(x, 0, where=x > -9, ddof=1),
}
FIRST, SECOND = (
    np.random.default_rng(i).standard_normal(s) for i, s in enumerate([(3, 4), (5, 6)])
)


def fresh(call: Any, a: Any) -> tuple[Any, Any]:
    x = rg.Graph().param(a)
    y = call(x)
    return y.value, rg.grad((y * y).sum(), x, allow_unused=True)


@pytest.mark.parametrize("name", CALLS)
def test_another_shape_is_followed(name: str) -> None:
    g = rg.Graph()
    x = g.param(FIRST)
    y = CALLS[name](x)
    slope = rg.grad((y * y).sum(), x, allow_unused=True)
    for a in (FIRST, SECOND, FIRST):
        x.set(a)
        value, wanted = fresh(CALLS[name], a)
        np.testing.assert_array_equal(y.value, value)
        if wanted is not None:
            np.testing.assert_array_equal(slope.value, wanted.value)


@pytest.mark.parametrize("name", CALLS)
def test_the_shape_of_a_function_is_followed(name: str) -> None:
    g = rg.Graph()
    x = g.param(FIRST)
    y = CALLS[name](rg.lift(np.negative, vjp=lambda g, ans, x: (-g,))(x))
    slope = rg.grad((y * y).sum(), x, allow_unused=True)
    for a in (FIRST, SECOND):
        x.set(a)
        value, wanted = fresh(CALLS[name], -a)
        np.testing.assert_allclose(y.value, value, rtol=1e-13)
        if wanted is not None:
            np.testing.assert_allclose(slope.value, -wanted.value, rtol=1e-12)


def test_a_last_axis_stays_the_last_one() -> None:
    x = rg.Graph().input(FIRST)
    nodes = rg.diff(x), rg.trapezoid(x), rg.cumsum(x, -1)
    a = np.random.default_rng(2).standard_normal((2, 3, 4))
    x.set(a)
    for y, wanted in zip(nodes, (np.diff(a), np.trapezoid(a), np.cumsum(a, -1)), strict=True):
        np.testing.assert_allclose(y.value, wanted, rtol=1e-13)


REDUCTIONS = (
    *("prod", "std", "var", "ptp", "median", "logsumexp", "sum", "mean", "max", "min"),
    *("nansum", "nanmean", "nanprod", "nanmax", "nanmin", "nanstd", "nanvar", "nanmedian"),
)
COUNTS = ("all", "any", "count_nonzero", "argmax", "argmin", "nanargmax", "nanargmin")


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_an_axis_is_kept_where_a_number_becomes_an_array(name: str, axis: int) -> None:
    """Of a number the first and the last axis are none, as in NumPy; of the array that follows they are."""

    def build(first: Any) -> tuple[rg.Var, dict[str, rg.Var]]:
        x = rg.Graph().param(first)
        y = getattr(rg, name)(x, axis=axis)
        slope = rg.grad((y * y).sum(), x)
        return x, {"value": y, "slope": slope, "curve": rg.grad(slope.sum(), x, allow_unused=True)}

    x, nodes = build(2.0)
    np.testing.assert_allclose(
        nodes["value"].value, 0.0 if name[-3:] in ("std", "var", "ptp") else 2.0
    )
    for a in (FIRST, 2.0, SECOND):
        x.set(a)
        for key, wanted in build(a)[1].items():
            if wanted is not None:
                np.testing.assert_allclose(nodes[key].value, wanted.value, rtol=1e-13, err_msg=key)
        y = nodes["value"]
        if isinstance(a, np.ndarray) and hasattr(np, name):
            np.testing.assert_allclose(y.value, getattr(np, name)(a, axis=axis), rtol=1e-13)
            assert rg.jvp(y, [x], [np.ones_like(a)]).shape == y.shape


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", COUNTS)
def test_what_is_found_along_an_axis_follows_a_number_that_becomes_an_array(
    name: str, axis: int, keepdims: bool
) -> None:
    x = rg.Graph().input(2.0)
    y = getattr(rg, name)(x, axis=axis, keepdims=keepdims)
    for a in (np.float64(2.0), FIRST, np.float64(0.0), SECOND):
        x.set(a)
        wanted = getattr(np, name)(a, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(y.value, wanted)
        assert np.shape(y.value) == wanted.shape


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_the_first_axis_of_a_number_is_none_in_jacobians_and_hessians_too(
    name: str, axis: int
) -> None:
    def build(axis: int | None) -> list[Any]:
        x = rg.Graph().param(2.0)
        y = getattr(rg, name)(rg.sin(x), axis=axis)
        z = y * y
        return [rg.jacobian(rg.stack([z, z * y]), x).value, rg.hessian(z, x).value]

    for found, wanted in zip(build(axis), build(None), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    "name",
    ["cumsum", "cumprod", "nancumsum", "nancumprod", "logcumsumexp", "cumulative_sum"],
)
def test_a_scan_goes_along_its_axis_where_a_number_becomes_an_array(name: str, axis: int) -> None:
    def build(first: Any) -> tuple[rg.Var, rg.Var, rg.Var]:
        x = rg.Graph().param(first)
        y = getattr(rg, name)(x, axis=axis)
        return x, y, rg.grad((y * y).sum(), x)

    x, y, slope = build(2.0)
    for a in (2.0, FIRST, np.float64(-0.5), SECOND):
        x.set(a)
        _, wanted, gradient = build(a)
        np.testing.assert_array_equal(y.value, wanted.value)
        np.testing.assert_allclose(slope.value, gradient.value, rtol=1e-13)
        assert y.shape == (np.shape(a) or (1,))
        if hasattr(np, name):
            np.testing.assert_allclose(y.value, getattr(np, name)(np.atleast_1d(a), axis=axis))
