"""Values and derivatives far from 1: in tails, near 0, and where a square would leave the dtype."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Function = Callable[[Any], Any]


def slopes(f: Function, x: Any, dtype: str = "f8") -> list[Any]:
    """The derivative of an elementwise function in both modes."""
    leaf = rg.Graph().param(np.array(x, dtype))
    y = f(leaf)
    ones = np.ones(leaf.shape, dtype)
    return [rg.grad(y.sum(), leaf).value, rg.jvp(y, leaf, ones).value]


def second_slopes(f: Function, x: Any, dtype: str = "f8") -> list[Any]:
    leaf = rg.Graph().param(np.array(x, dtype))
    y, ones = f(leaf), np.ones(leaf.shape, dtype)
    first = [rg.grad(y.sum(), leaf), rg.jvp(y, leaf, ones)]
    return [
        second
        for one in first
        for second in (rg.grad(one.sum(), leaf).value, rg.jvp(one, leaf, ones).value)
    ]


FIRST: dict[str, tuple[Function, Any, str, Any]] = {
    "sigmoid": (rg.sigmoid, [40.0, -40.0], "f8", 4.248354255291589e-18),
    "tanh": (rg.tanh, [30.0, -30.0], "f8", 3.502604305078616e-26),
    "expm1": (rg.expm1, [-40.0], "f8", 4.248354255291589e-18),
    "arcsin": (rg.arcsin, [1 - 1e-10], "f8", 70710.67519510883),
    "arctan": (rg.arctan, [300.0], "f2", 1.1111e-5),
    "log10": (rg.log10, [30000.0], "f2", 1.4476e-5),
    "log2 of a subnormal": (rg.log2, [5e-324], "f8", np.inf),
    "reciprocal": (lambda x: rg.reciprocal(x) * 1e-3, [2e-2], "f2", -2.5),
    "log of reciprocal": (lambda x: rg.log(rg.reciprocal(x)), [5e-3], "f2", -200.0),
    "norm_pdf": (rg.norm_pdf, [4e4], "f2", 0.0),
    "norm_cdf": (rg.norm_cdf, [-20.0], "f8", 5.520948362159764e-88),
    "erfc": (rg.erfc, [20.0], "f8", -2.1610374743867985e-174),
    "hypot": (lambda x: rg.hypot(x, x), [6e4 / 2], "f2", 1.4142),
    "angle": (lambda x: rg.arctan2(x, 200.0), [200.0], "f2", 0.0025),
    "small angle": (lambda x: rg.arctan2(x, 1e-200), [1e-200], "f8", 5e199),
    "large angle": (lambda x: rg.arctan2(x, 1e200), [1e200], "f8", 5e-201),
    "softplus": (lambda x: rg.logaddexp(x, 0.0), [-40.0], "f8", 4.248354255291589e-18),
}


@pytest.mark.parametrize("name", FIRST)
def test_derivatives_are_as_accurate_as_values(name: str) -> None:
    f, x, dtype, right = FIRST[name]
    for found in slopes(f, x, dtype):
        tolerance = {"rtol": 2e-3, "atol": 6e-8} if dtype == "f2" else {"rtol": 1e-14}
        np.testing.assert_allclose(found, right, **tolerance)


SECOND: dict[str, tuple[Function, Any, Any]] = {
    "softplus": (lambda x: rg.logaddexp(x, 0.0), [40.0, -40.0], 4.248354255291589e-18),
    "sigmoid": (rg.sigmoid, [40.0, 1e-10], [-4.248354255291589e-18, -1.25e-11]),
    "tanh": (rg.tanh, [30.0, 1e-10], [-7.005208610157232e-26, -2e-10]),
    "arcsin": (rg.arcsin, [1e-10, 1 - 1e-10], [1e-10, 353553346704731.4]),
    "hypot": (lambda x: rg.hypot(x, 1.0), [1e8, 0.0], [1e-24, 1.0]),
    "norm_cdf": (rg.norm_cdf, [-20.0], 1.1041896724319529e-86),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_too(name: str) -> None:
    f, x, right = SECOND[name]
    for found in second_slopes(f, x):
        np.testing.assert_allclose(found, right, rtol=1e-14)


def every_half() -> Any:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return values[np.isfinite(values)]


def test_half_sigmoid_and_softplus_are_right_to_one_ulp_everywhere() -> None:
    x = every_half()
    with np.errstate(over="ignore"):
        exact = 1.0 / (1.0 + np.exp(-x.astype(np.float64)))
    spacing = np.spacing(exact.astype(np.float16)).astype(np.float64)
    leaf = rg.Graph().param(x)
    softplus = rg.grad(rg.logaddexp(leaf, 0.0), leaf, gradient=np.ones_like(x))
    for found in (rg.sigmoid(leaf), softplus):
        assert (abs(found.value.astype(np.float64) - exact) <= spacing).all()


def test_softmax_and_its_derivatives_near_a_corner() -> None:
    g = rg.Graph()
    x = g.param([37.43, 0.0])
    rest = np.exp(-37.43)
    for jacobian in (rg.jacobian(rg.softmax(x), x).value, forward_jacobian(rg.softmax, x)):
        np.testing.assert_allclose(jacobian, [[rest, -rest], [-rest, rest]], rtol=1e-15)
    for jacobian in (rg.jacobian(rg.log_softmax(x), x).value, forward_jacobian(rg.log_softmax, x)):
        np.testing.assert_allclose(jacobian, [[rest, -rest], [-1.0, 1.0]], rtol=1e-15)
    hessian = rg.hessian(rg.softmax(x)[0], x).value
    np.testing.assert_allclose(hessian, rest * np.array([[-1, 1], [1, -1]]), rtol=1e-15)
    np.testing.assert_allclose(
        rg.hessian(rg.log_softmax(x)[0], x).value, rest * np.array([[-1, 1], [1, -1]]), rtol=1e-15
    )
    # Between the corners, too: one probability is 1 - 1e-10.
    x.set([10.0 * np.log(10.0), 0.0])
    rest = 1e-10 / (1.0 + 1e-10) ** 2
    np.testing.assert_allclose(
        rg.jacobian(rg.softmax(x), x).value, rest * np.array([[1, -1], [-1, 1]]), rtol=1e-14
    )


def forward_jacobian(f: Function, x: Any) -> Any:
    return np.stack([rg.jvp(f(x), x, row).value for row in np.eye(2)], axis=1)


def test_log_softmax_near_0() -> None:
    y = rg.log_softmax(rg.Graph().input([[0.0, -40.0], [0.0, 0.0], [-40.0, 0.0]]))
    np.testing.assert_allclose(
        y.value,
        [[-4.248354255291589e-18, -40.0], [-np.log(2.0)] * 2, [-40.0, -4.248354255291589e-18]],
        rtol=1e-15,
    )


@pytest.mark.parametrize(
    ("dtype", "size"), [("f4", 1e30), ("f4", 3e38), ("f4", 1e-30), ("f8", 1e200), ("f2", 6e4)]
)
def test_layer_norm_of_any_size(dtype: str, size: float) -> None:
    g = rg.Graph()
    pattern = np.array([[1.0, -1.0, 0.25], [0.5, 0.25, -1.0]])
    rows = np.concatenate([(pattern * size).astype(dtype), pattern.astype(dtype)])
    x, plain = g.param(rows), g.param(np.tile(pattern, (2, 1)))
    y, right = rg.layer_norm(x, eps=0.0), rg.layer_norm(plain, eps=0.0)
    close = {"rtol": 2e-3 if dtype == "f2" else 2e-5}
    np.testing.assert_allclose(y.value, right.value, atol=1e-6, **close)
    if dtype != "f2":
        slope = rg.grad((y**3).sum(), x).value * np.array([[size], [size], [1.0], [1.0]])
        np.testing.assert_allclose(
            slope, rg.grad((right**3).sum(), plain).value, atol=1e-5, **close
        )
    if dtype == "f8":
        second = rg.hvp((y**3).sum() * size, x, pattern[[0, 1, 0, 1]]).value[:2] * size
        other = rg.hvp((right**3).sum(), plain, pattern[[0, 1, 0, 1]]).value[:2]
        np.testing.assert_allclose(second, other, rtol=1e-10)


def test_layer_norm_keeps_its_bits_beside_a_row_that_is_scaled() -> None:
    rows = np.random.default_rng(0).normal(size=(4, 7)).astype("f4")
    x = rg.Graph().input(rows)
    y = rg.layer_norm(x)
    before = y.value[:3]
    x.set(np.concatenate([rows[:3], rows[3:] * np.float32(1e30)]))
    assert y.value[:3].tobytes() == before.tobytes()
    np.testing.assert_allclose(
        y.value[3], rg.layer_norm(rows[3:].astype("f8"), eps=0.0).value[0], rtol=1e-5
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_the_mixed_derivative_of_an_angle_is_exact_to_ulps_beside_the_diagonal(
    dtype: str, mode: str
) -> None:
    """It is (y**2 - x**2) / (x**2 + y**2)**2. A difference of rounded quotients had half of it wrong there."""
    eps = float(np.finfo(dtype).eps)
    y = np.array([1.0, 1.0, -1.5, 2.5, 1.0 + 7 * eps])
    x = np.array([1.0 + eps, 1.0 - eps, 1.5 + 3 * eps, -2.5 + 8 * eps, 1.0])
    wanted = [
        float((Fraction(b) ** 2 - Fraction(a) ** 2) / (Fraction(a) ** 2 + Fraction(b) ** 2) ** 2)
        for a, b in zip(x, y, strict=True)
    ]
    g = rg.Graph()
    a, b = g.param(y.astype(dtype)), g.param(x.astype(dtype))
    z = rg.arctan2(a, b)
    if mode == "reverse":
        mixed = rg.grad(rg.grad(z.sum(), a).sum(), b)
    else:
        mixed = rg.jvp(rg.jvp(z, a, np.ones(5, dtype)), b, np.ones(5, dtype))
    np.testing.assert_allclose(mixed.value.astype("f8"), wanted, rtol=5 * eps)
