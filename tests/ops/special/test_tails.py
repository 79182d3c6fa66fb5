"""Values and first and second derivatives of special functions over their whole range, in ulps.

The oracle is mpmath. Bounds are a little above what was measured. Points at which a derivative is nearly 0 beside its
largest terms are left out: there the error is one of these terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import reactgrad as rg

Function = Callable[[Any], Any]


def cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def pdf(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def sigma(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def bend(x: Any) -> Any:
    return sigma(x) * sigma(-x)


def mish_parts(x: Any) -> tuple[Any, Any, Any]:
    e = mp.exp(x)
    q = e * (e + 2) + 2
    slope = 4 * e * (e + 1) / q / q
    return e * (e + 2) / q, slope, slope * ((1 + 2 * e) / (1 + e) - 4 * e * (e + 1) / q)


def twice_u(x: Any) -> tuple[Any, Any, Any]:
    k, c = mp.sqrt(8 / mp.pi), mp.mpf("0.044715")
    return k * (x + c * x**3), k * (1 + 3 * c * x * x), 6 * k * c * x


def gelu_tanh_slope(x: Any) -> Any:
    u, first, _ = twice_u(x)
    return sigma(u) + x * bend(u) * first


def gelu_tanh_bend(x: Any) -> Any:
    u, first, second = twice_u(x)
    return bend(u) * (2 * first + x * (second - first**2 * mp.tanh(u / 2)))


def quantile(p: Any) -> Any:
    """Newton's iteration on the logarithm of the smaller tail, from the value that is tested."""
    lower = p < mp.mpf(1) / 2
    q = p if lower else 1 - p
    z = -abs(mp.mpf(float(rg.ndtri(float(p)).value)))
    for _ in range(6):
        z = z - (mp.log(cdf(z)) - mp.log(q)) * cdf(z) / pdf(z)
    return z if lower else -z


def inverse(x: Any) -> Any:
    return quantile((1 + x) / 2) / mp.sqrt(2)


def inverse_slope(x: Any) -> Any:
    return mp.sqrt(mp.pi) / 2 * mp.exp(inverse(x) ** 2)


def hazard(x: Any) -> Any:
    return pdf(x) / cdf(x)


def scaled(order: int) -> Function:
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


def signed(low: float, high: float) -> Any:
    """Return numbers of both signs, of which half have any exponent."""
    rng = np.random.default_rng(3)
    small = np.exp(rng.uniform(-30.0, np.log(high), 12))
    return np.concatenate([rng.uniform(low, high, 24), small, -small if low < 0 else []])


def near_one() -> Any:
    rng = np.random.default_rng(4)
    return np.concatenate([rng.uniform(-1, 1, 12), 1 - np.exp(rng.uniform(-35.0, 0.0, 12))])


def probabilities() -> Any:
    rng = np.random.default_rng(5)
    far = np.exp(-rng.uniform(0.0, 300.0, 12))
    return np.concatenate([rng.random(12), far, 1 - np.exp(-rng.uniform(0.0, 35.0, 8))])


# name: op; value, first and second derivative of mpmath; points; bounds of the three in ulps.
TABLE: dict[str, tuple[Function, tuple[Function, ...], Any, tuple[float, ...]]] = {
    "silu": (
        rg.silu,
        (lambda x: x * sigma(x), lambda x: sigma(x) + x * bend(x), lambda x: bend(x) * (2 - x * mp.tanh(x / 2))),
        signed(-600, 600),
        (3, 6, 8),
    ),
    "mish": (
        rg.mish,
        (
            lambda x: x * mish_parts(x)[0],
            lambda x: mish_parts(x)[0] + x * mish_parts(x)[1],
            lambda x: 2 * mish_parts(x)[1] + x * mish_parts(x)[2],
        ),
        signed(-300, 300),
        (4, 8, 12),
    ),
    "gelu": (
        rg.gelu,
        (lambda x: x * cdf(x), lambda x: cdf(x) + x * pdf(x), lambda x: pdf(x) * (2 - x * x)),
        signed(-36, 36),
        (20, 20, 20),
    ),
    "gelu tanh": (
        lambda x: rg.gelu(x, approximate="tanh"),
        (lambda x: x * sigma(twice_u(x)[0]), gelu_tanh_slope, gelu_tanh_bend),
        signed(-19, 19),
        (4, 8, 12),
    ),
    "softplus": (
        rg.softplus,
        (lambda x: mp.log1p(mp.exp(x)), sigma, bend),
        signed(-600, 600),
        (3, 4, 6),
    ),
    "log_sigmoid": (
        rg.log_sigmoid,
        (lambda x: -mp.log1p(mp.exp(-x)), lambda x: sigma(-x), lambda x: -bend(x)),
        signed(-600, 600),
        (3, 4, 6),
    ),
    "tanhshrink": (
        rg.tanhshrink,
        (
            lambda x: x - mp.tanh(x),
            lambda x: mp.tanh(x) ** 2,
            lambda x: 2 * mp.tanh(x) / mp.cosh(x) ** 2,
        ),
        signed(-30, 30),
        (4, 4, 8),
    ),
    "softsign": (
        rg.softsign,
        (
            lambda x: x / (1 + abs(x)),
            lambda x: 1 / (1 + abs(x)) ** 2,
            lambda x: -2 * mp.sign(x) / (1 + abs(x)) ** 3,
        ),
        signed(-1e6, 1e6),
        (2, 3, 5),
    ),
    "logit": (
        rg.logit,
        (
            lambda x: mp.log(x / (1 - x)),
            lambda x: 1 / x / (1 - x),
            lambda x: (2 * x - 1) / x**2 / (1 - x) ** 2,
        ),
        np.concatenate([np.random.default_rng(6).random(16), [1e-100, 1 - 1e-15, 0.5 + 1e-9]]),
        (3, 3, 40),
    ),
    "rsqrt": (
        rg.rsqrt,
        (lambda x: 1 / mp.sqrt(x), lambda x: -1 / mp.sqrt(x) / x / 2, lambda x: mp.mpf(3) / 4 / mp.sqrt(x) / x**2),
        np.exp(np.linspace(-200, 200, 20)),
        (2, 3, 6),
    ),
    "gammaln": (
        rg.gammaln,
        (mp.loggamma, mp.digamma, lambda x: mp.polygamma(1, x)),
        np.concatenate([np.linspace(0.01, 14, 40), np.exp(np.linspace(-100, 100, 20)), [1 + 1e-9, 2 - 1e-9]]),
        (4, 6, 6),
    ),
    "i0": (
        rg.i0,
        (
            lambda x: mp.besseli(0, x),
            lambda x: mp.besseli(1, x),
            lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,
        ),
        signed(-600, 600),
        (8, 8, 8),
    ),
    "i0e": (
        rg.i0e,
        (
            scaled(0),
            lambda x: mp.sign(x) * (mp.besseli(1, abs(x)) - mp.besseli(0, x)) * mp.exp(-abs(x)),
            lambda x: (2 * mp.besseli(0, x) - 2 * mp.besseli(1, abs(x)) - mp.besseli(1, x) / x) * mp.exp(-abs(x)),
        ),
        signed(-600, 600),
        (8, 12, 16),
    ),
    "ndtri": (
        rg.ndtri,
        (quantile, lambda p: 1 / pdf(quantile(p)), lambda p: quantile(p) / pdf(quantile(p)) ** 2),
        probabilities(),
        (6, 8, 20),
    ),
    "erfinv": (
        rg.erfinv,
        (inverse, inverse_slope, lambda x: 2 * inverse(x) * inverse_slope(x) ** 2),
        near_one(),
        (6, 12, 24),
    ),
    "log_ndtr": (
        rg.log_ndtr,
        (
            lambda x: mp.log(cdf(x)) if x < 0 else mp.log1p(-cdf(-x)),
            hazard,
            lambda x: -hazard(x) * (x + hazard(x)),
        ),
        np.concatenate([signed(-90, 30), [-8.0, -7.0, -2.5, -1.0]]),
        (10, 8, 25),
    ),
    "arctanh": (
        rg.arctanh,
        (mp.atanh, lambda x: 1 / (1 - x) / (1 + x), lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2),
        near_one(),
        (2, 3, 6),
    ),
    "arcsinh": (
        rg.arcsinh,
        (mp.asinh, lambda x: 1 / mp.hypot(x, 1), lambda x: -x / mp.hypot(x, 1) ** 3),
        signed(-1e90, 1e90),
        (2, 3, 6),
    ),
    "arccosh": (
        rg.arccosh,
        (
            mp.acosh,
            lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),
            lambda x: -x / mp.sqrt((x - 1) * (x + 1)) ** 3,
        ),
        1 + np.exp(np.linspace(-34, 180, 30)),
        (2, 4, 8),
    ),
    "cbrt": (
        rg.cbrt,
        (
            lambda x: mp.sign(x) * mp.cbrt(abs(x)),
            lambda x: 1 / mp.cbrt(abs(x)) ** 2 / 3,
            lambda x: mp.sign(x) * -2 / mp.cbrt(abs(x)) ** 5 / 9,
        ),
        signed(-1e100, 1e100),
        (2, 4, 8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_ulps(name: str) -> None:
    op, oracles, points, bounds = TABLE[name]
    leaf = rg.Graph().param(points)
    y = op(leaf)
    first = rg.grad(y.sum(), leaf)
    ones = np.ones(points.shape)
    nodes = [
        (y,),
        (first, rg.jvp(y, leaf, ones)),
        (rg.grad(first.sum(), leaf), rg.jvp(first, leaf, ones)),
    ]
    with mp.workdps(60):
        for several, oracle, bound in zip(nodes, oracles, bounds, strict=True):
            exact = [oracle(mp.mpf(float(x))) for x in points]
            for node in several:
                for x, found, wanted in zip(points, node.value, exact, strict=True):
                    size = abs(float(wanted))
                    if 1e-290 < size < np.inf:
                        ulps = abs(mp.mpf(float(found)) - wanted) / mp.mpf(float(np.spacing(size)))
                        assert ulps <= bound, (float(x), float(found), float(wanted), float(ulps))


def ulps(found: Any, wanted: Any) -> float:
    """Return the largest error of float64 numbers in ulps."""
    pairs = zip(found, wanted, strict=True)
    return max(
        float(abs(mp.mpf(float(one)) - w) / mp.mpf(float(np.spacing(abs(float(w))))))
        for one, w in pairs
    )


def test_slopes_of_the_beta_function_do_not_cancel() -> None:
    rng = np.random.default_rng(8)
    a, b = np.exp(rng.uniform(-20, 25, 40)), np.exp(rng.uniform(-20, 25, 40))
    g = rg.Graph()
    x, y = g.param(a), g.param(b)
    value = rg.betaln(x, y)
    with mp.workdps(60):
        pairs = [
            (mp.mpf(float(one)), mp.mpf(float(other))) for one, other in zip(a, b, strict=True)
        ]
        exact = [
            mp.loggamma(one) + mp.loggamma(other) - mp.loggamma(one + other) for one, other in pairs
        ]
        slopes = [mp.digamma(one) - mp.digamma(one + other) for one, other in pairs]
        assert ulps(value.value, exact) < 16
        assert ulps(rg.grad(value.sum(), x).value, slopes) < 6


def test_polygamma_of_all_orders() -> None:
    rng = np.random.default_rng(9)
    points = np.concatenate([rng.uniform(0.01, 15, 20), np.exp(rng.uniform(-20, 20, 20))])
    x = rg.Graph().input(points)
    with mp.workdps(40):
        for n in range(5):
            exact = [mp.polygamma(n, mp.mpf(float(one))) for one in points]
            assert ulps(rg.polygamma(n, x).value, exact) < (6 if n else 8)


@pytest.mark.parametrize("order", range(4))
def test_derivatives_of_sinc(order: int) -> None:
    points = np.array([1e-9, 1e-3, 0.3, 0.99, 1.01, 2.3, 17.8, -0.45, -5.1])
    leaf = rg.Graph().param(points)
    node = rg.sinc(leaf)
    for _ in range(order):
        node = rg.grad(node.sum(), leaf)
    with mp.workdps(60):
        exact = [
            mp.diff(lambda x: mp.sin(mp.pi * x) / (mp.pi * x), mp.mpf(float(one)), order)
            for one in points
        ]
        np.testing.assert_allclose(
            node.value, [float(one) for one in exact], rtol=1e-14, atol=1e-15
        )


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_of_float32_keeps_digits_in_its_tail(approximate: str) -> None:
    points = np.linspace(-12.5, 6.0, 300).astype("f4")
    found = rg.gelu(rg.Graph().input(points), approximate=approximate).value
    with mp.workdps(40):
        for x, one in zip(points, found, strict=True):
            wide = mp.mpf(float(x))
            wanted = wide * (cdf(wide) if approximate == "none" else sigma(twice_u(wide)[0]))
            if abs(wanted) > 1e-36:
                assert abs(float(one) / float(wanted) - 1.0) < 16 * 2.0**-24, (
                    x,
                    one,
                    float(wanted),
                )
