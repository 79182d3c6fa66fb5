"""Errors of short floats do not grow with the length, and large values do not leave the dtype on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# Each call is made on nodes, and by NumPy on float64.
CALLS: dict[str, tuple[Callable[[Any, int], Any], Callable[[Any, int], Any]]] = {
    "cumsum": (rg.cumsum, np.cumsum),
    "logsumexp": (rg.logsumexp, np.logaddexp.reduce),
    "logcumsumexp": (rg.logcumsumexp, np.logaddexp.accumulate),
    "mean where": (lambda x, axis: rg.mean(x, axis, where=x > 0), np.mean),
    "nanmean": (rg.nanmean, np.mean),
    "norm": (lambda x, axis: rg.norm(x, axis=axis), lambda a, axis: np.linalg.norm(a, axis=axis)),
    "norm 3": (lambda x, axis: rg.norm(x, 3, axis), lambda a, axis: np.linalg.norm(a, 3, axis)),
    "trapezoid": (
        lambda x, axis: rg.trapezoid(x, axis=axis),
        lambda a, axis: np.trapezoid(a, axis=axis),
    ),
    "var": (lambda x, axis: rg.var(x + 100, axis), lambda a, axis: np.var(a + 100, axis)),
    "nanstd": (lambda x, axis: rg.nanstd(x + 100, axis), lambda a, axis: np.std(a + 100, axis)),
    "cumprod": (
        lambda x, axis: rg.cumprod(1 + x / 512, axis),
        lambda a, axis: np.cumprod(1 + a / 512, axis),
    ),
}
SHAPES = [((20000,), 0), ((3000, 7), 0), ((7, 3000), 1)]


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", CALLS)
def test_float32_is_within_a_few_ulps(name: str, shape: tuple[int, ...], axis: int) -> None:
    ours, numpys = CALLS[name]
    # Multiples of 2**-10, so that sums with 100 and 1 are exact.
    a = np.random.default_rng(0).integers(1, 1024, shape) / np.float32(1024)
    found = ours(rg.Graph().input(a.astype("f4")), axis).value
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, numpys(a.astype("f8"), axis), rtol=5e-7)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize(
    "name", ["cumsum", "logsumexp", "logcumsumexp", "nanmean", "norm", "norm 3"]
)
def test_float16_is_rounded_once(name: str, shape: tuple[int, ...], axis: int) -> None:
    ours, numpys = CALLS[name]
    a = (np.random.default_rng(0).integers(1, 64, shape) / 64).astype("f2")
    found = ours(rg.Graph().input(a), axis).value
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, numpys(a.astype("f8"), axis), rtol=5.1e-4)


def test_half_floats_do_not_overflow_on_the_way() -> None:
    a = np.full(1000, 300.0, "f2")
    a[::2] = -300.0
    x = rg.Graph().input(a)
    assert rg.std(x).value == 300.0  # the squares are 90,000
    assert rg.nanstd(x).value == 300.0
    assert rg.norm(x).value == np.float16(300 * np.sqrt(1000))
    assert rg.nanmean(abs(x)).value == 300.0  # the sum is 300,000
    np.testing.assert_allclose(rg.grad(rg.std(x), x).value, a / np.float16(300) / 1000, rtol=1e-3)


def test_logarithm_of_a_sum_that_is_nearly_1() -> None:
    """log(1 + exp(-40)) is exp(-40), of which adding 1 leaves nothing."""
    x = rg.Graph().input([0.0, -40.0])
    np.testing.assert_allclose(rg.logsumexp(x).value, np.exp(-40.0), rtol=1e-15)


@pytest.mark.parametrize("length", [5, 200, 300, 4000, 5001])
@pytest.mark.parametrize("width", [1, 3, 400])
def test_gradients_of_running_products_by_every_way(length: int, width: int) -> None:
    """Short rows, long rows and many columns have kernels of their own; with zeros and without."""
    rng = np.random.default_rng(0)
    a = 1 + rng.standard_normal((length, width)) / length
    a[length // 2] = a[-1] = 0.0
    g = rng.standard_normal((length, width))
    x = rg.Graph().param(a)
    found = rg.grad((rg.cumprod(x, 0) * g).sum(), x).value
    # By the definition: the sum over all products behind an element, from the last one on.
    before = np.concatenate([np.ones((1, width)), np.cumprod(a, 0)[:-1]])
    behind = np.zeros((length + 1, width))
    for i in reversed(range(length)):
        behind[i] = g[i] + (a[i + 1] * behind[i + 1] if i + 1 < length else 0.0)
    np.testing.assert_allclose(found, before * behind[:-1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("length", [100, 4000, 30000])
def test_what_is_not_finite_stays_where_a_gradient_arrives(length: int) -> None:
    """A NaN, an infinity and a product beyond the dtype far behind leave the first slopes alone."""
    a = np.ones(length)
    a[1], a[-1], a[-2] = 0.0, np.nan, np.inf
    x = rg.Graph().param(a)
    slopes = rg.grad(rg.cumprod(x)[: length // 2].sum(), x).value
    np.testing.assert_array_equal(slopes[:3], [1.0, length // 2 - 1, 0.0])
    np.testing.assert_array_equal(slopes[2:], 0.0)


@pytest.mark.parametrize("length", [100, 4000])
def test_a_product_of_a_part_may_leave_the_dtype(length: int) -> None:
    """Ten factors of 1e60 do, and not together with those around them."""
    a = np.ones(length)
    a[20:25] = a[35:40] = 1e-60
    a[25:35] = 1e60
    x = rg.Graph().param(a)
    slopes = rg.grad(rg.cumprod(x)[-1], x).value
    np.testing.assert_allclose(slopes * a, 1.0, rtol=1e-11)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4", "?"])
@pytest.mark.parametrize(
    "shape", [(20000,), (3, 9000), (200, 100), (2, 90, 600), (3000, 7), (70, 600)]
)
def test_running_sums_by_every_way(shape: tuple[int, ...], dtype: str) -> None:
    """Rows, columns, few of them and many: NumPy's bits, or those of a sum in float64."""
    rng = np.random.default_rng(0)
    a = (rng.integers(-8, 9, shape) / (16.0 if dtype == "f2" else 4.0)).astype(dtype)
    for axis in range(a.ndim):
        x = rg.Graph().param(a) if dtype[0] == "f" else rg.Graph().input(a)
        y = rg.cumsum(x, axis)
        wide = np.cumsum(a, axis, dtype="f8" if dtype[0] == "f" else None)
        np.testing.assert_array_equal(y.value, wide.astype(y.dtype))
        np.testing.assert_array_equal(rg.cummax(x, axis).value, np.maximum.accumulate(a, axis))
        if dtype[0] == "f":
            slopes = rg.grad((y * a).sum(), x).value
            back = np.flip(np.cumsum(np.flip(a, axis), axis, dtype="f8"), axis)
            np.testing.assert_array_equal(slopes, back.astype(dtype))
