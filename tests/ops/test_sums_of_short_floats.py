"""Sums of float16, float32 and complex64 are accurate along any axis, at any length, in any layout."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SHAPES = [(16000, 2), (70000,), (65, 5), (7, 500, 3), (300, 7, 9), (4, 100, 3, 50), (1, 4000, 1, 3)]


def layouts(shape: tuple[int, ...], dtype: str) -> list[Any]:
    tenths = np.full(shape, 0.1, dtype)
    random = np.random.default_rng(0).random(shape).astype(dtype)
    return [
        tenths,
        random,
        np.asfortranarray(random),
        np.repeat(random, 2, -1)[..., ::2],
        random[::-1],
        np.broadcast_to(random[:1], shape),
    ]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_sums_and_means_are_exact_but_for_roundings(shape: tuple[int, ...], dtype: str) -> None:
    bound = 5e-4 if dtype == "float16" else 1e-6
    wide = "complex128" if dtype == "complex64" else "float64"
    x = rg.Graph().input(np.zeros(shape, dtype))
    sums = {
        axes: (rg.sum(x, axes), rg.mean(x, axes))
        for count in range(1, len(shape) + 1)
        for axes in combinations(range(len(shape)), count)
    }
    for values in layouts(shape, dtype):
        x.set(values)
        for axes, (total, mean) in sums.items():
            exact = values.astype(wide).sum(axes)
            for found, right in ((total, exact), (mean, exact / (values.size / exact.size))):
                fits = abs(right) < (6e4 if dtype == "float16" else np.inf)
                error = abs(np.where(fits, found.value, right) - right) / abs(right)
                assert error.max() <= bound, (axes, values.strides)


@pytest.mark.parametrize(("dtype", "rows"), [("float16", 5000), ("float32", 16000)])
def test_gradients_of_a_bias_add_up(dtype: str, rows: int) -> None:
    g = rg.Graph()
    bias = g.param(np.zeros(3, dtype))
    weights = g.const(np.full((rows, 3), 1.0 if dtype == "float16" else 0.1, dtype))
    ones = g.const(np.ones((rows, 3), dtype))
    by_broadcasting = rg.grad((weights * (ones + bias)).sum(), bias).value
    by_repeating = rg.grad((weights * bias[np.arange(3) + np.zeros((rows, 1), int)]).sum(), bias)
    by_linear = rg.grad((weights * rg.linear(ones, np.zeros((3, 3), dtype), bias)).sum(), bias)
    right = weights.value.astype("f8").sum(0)
    for found in (by_broadcasting, by_repeating.value, by_linear.value):
        np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.slow
def test_gradients_of_many_parts_add_up_in_half_precision() -> None:
    g = rg.Graph()
    x = g.param(np.ones(2, "f2"))
    total = rg.stack([x[i % 2] for i in range(5000)]).sum()
    assert rg.grad(total, x).value.tolist() == [2500.0, 2500.0]


def test_gradients_of_a_mean_and_of_a_maximum_count_beyond_half_precision() -> None:
    g = rg.Graph()
    x = g.param(np.ones(70000, "f2"))
    for y in (x.mean(), x.max(), x.min(), g.input(shape=(None,), dtype="f2")):
        if y.shape == (None,):
            y.set(np.ones(70000, "f2"))
            x, y = y, y.mean()
        for found in (rg.grad(y, x).value, rg.jacobian(y, x).value):
            assert set(found.tolist()) == {float(np.float16(1 / 70000))}
        assert rg.jvp(y, x, np.ones(70000, "f2")).value == pytest.approx(1.0, rel=1e-3)


def test_normalised_columns_of_many_rows() -> None:
    x = rg.Graph().input(np.full((16000, 2), 0.1, "f4"))
    np.testing.assert_allclose(rg.softmax(x, 0).value, 1 / 16000, rtol=1e-6)
    np.testing.assert_allclose(rg.log_softmax(x, 0).value, -np.log(16000), rtol=1e-6)


def test_products_of_half_floats_are_computed_in_float32() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape).astype("f2") for shape in ((40, 3000), (3000, 30)))
    g = rg.Graph()
    x, y = g.input(a), g.input(b)
    exact = a.astype(float) @ b.astype(float)
    for node, wanted in (
        (x @ y, exact),
        (rg.einsum("ij,jk->ki", x, y), exact.T),
        (x[0] @ y[:, 0], exact[0, 0]),
        (rg.linear(x, y, 1.0), exact + 1.0),
    ):
        assert node.dtype == np.float16
        np.testing.assert_allclose(node.value, wanted.astype("f2"), rtol=1e-3)


@pytest.mark.whole  # a block that ends within a row adds up in another order
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_many_rows_of_few_elements_have_numpys_bits(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape, axis in (
        ((700, 2), 1),
        ((700, 7), -1),
        ((700, 8), 1),
        ((40, 30, 3, 5), 2),
        ((3, 700), 0),
        ((300, 700, 4), 2),
        ((4, 300, 2, 200), 2),
    ):
        a = (rng.standard_normal(shape) * 1e3).astype(dtype)
        a[..., 0] = -0.0
        g = rg.Graph()
        x = g.input(a)
        for keepdims in (False, True):
            wanted = np.add.reduce(a, axis, keepdims=keepdims)
            found = rg.sum(x, axis, keepdims=keepdims).value
            assert found.tobytes() == wanted.tobytes(), (shape, axis)
        turned = np.asfortranarray(a)
        assert rg.sum(g.input(turned), axis).value.tobytes() == rg.sum(x, axis).value.tobytes()


@pytest.mark.parametrize("shape", [(0, 3, 1000), (3, 1000, 0), (0, 2, 7, 2, 7), (2000, 0)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_of_nothing_are_zeros(shape: tuple[int, ...], dtype: str) -> None:
    x = rg.Graph().param(np.zeros(shape, dtype))
    for count in range(1, len(shape) + 1):
        for axes in combinations(range(len(shape)), count):
            y = rg.sum(x, axes)
            np.testing.assert_array_equal(y.value, np.zeros(shape, dtype).sum(axes))
            assert rg.grad(y.sum(), x).value.shape == shape
