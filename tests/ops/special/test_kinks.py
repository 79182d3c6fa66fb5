"""Derivatives at bends and ends of ranges, as PyTorch 2.13 has them, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Function = Callable[[Any], Any]
INF, NAN = np.inf, np.nan

# name: op, points, values, first derivatives, second derivatives; the numbers are PyTorch's, except where
# it loses digits.
TABLE: dict[str, tuple[Function, list[float], list[float], list[float], list[float]]] = {
    "hardtanh": (rg.hardtanh, [-1, 1, 0.5, NAN], [-1, 1, 0.5, NAN], [0, 0, 1, 1], [0, 0, 0, 0]),
    "relu6": (rg.relu6, [0, 6, 1, NAN], [0, 6, 1, NAN], [0, 0, 1, 1], [0, 0, 0, 0]),
    "hardsigmoid": (
        rg.hardsigmoid,
        [-3, 3, 0, NAN],
        [0, 1, 0.5, NAN],
        [0, 0, 1 / 6, 0],
        [0, 0, 0, 0],
    ),
    "hardswish": (
        rg.hardswish,
        [-3, 3, 0, -4, 4],
        [0, 3, 0, 0, 4],
        [0, 1, 0.5, 0, 1],
        [0, 0, 1 / 3, 0, 0],
    ),
    "leaky_relu": (rg.leaky_relu, [0, -1, 1], [0, -0.01, 1], [0.01, 0.01, 1], [0, 0, 0]),
    "elu": (rg.elu, [0, 1, -INF], [0, 1, -1], [1, 1, 0], [1, 0, 0]),
    "selu": (
        rg.selu,
        [0, 1],
        [0, 1.0507009873554805],
        [1.7580993408473766, 1.0507009873554805],
        [1.7580993408473766, 0],
    ),
    "celu": (lambda x: rg.celu(x, 2.0), [0, 1], [0, 1], [1, 1], [0.5, 0]),
    "softshrink": (
        rg.softshrink,
        [0.5, -0.5, 0.2, 1, NAN],
        [0, 0, 0, 0.5, NAN],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0],
    ),
    "hardshrink": (
        rg.hardshrink,
        [0.5, -0.5, 0.2, 1, NAN],
        [0, 0, 0, 1, NAN],
        [0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0],
    ),
    "threshold": (
        lambda x: rg.threshold(x, 0.5, 9.0),
        [0.5, 1, 0, NAN],
        [9, 1, 9, NAN],
        [0, 1, 0, 1],
        [0, 0, 0, 0],
    ),
    "softplus": (
        lambda x: rg.softplus(x, threshold=20.0),
        [19.9, 20.1],
        [19.900000002277924, 20.1],
        [0.9999999977220729, 1],
        [2.2779270308274677e-09, 0],
    ),
    "prelu": (lambda x: rg.prelu(x, [0.25]), [0, -1, 1], [0, -0.25, 1], [0.25, 0.25, 1], [0, 0, 0]),
    "rsqrt": (rg.rsqrt, [0, 4, -1], [INF, 0.5, NAN], [-INF, -0.0625, NAN], [INF, 0.0234375, NAN]),
    "erfinv": (
        rg.erfinv,
        [1, -1, 0],
        [INF, -INF, 0],
        [INF, INF, 0.8862269254527579],
        [INF, -INF, 0],
    ),
    "ndtri": (
        rg.ndtri,
        [0, 1, 0.5],
        [-INF, INF, 0],
        [INF, INF, 2.5066282746310002],
        [-INF, INF, 0],
    ),
    "i0": (
        rg.i0,
        [0, 1],
        [1, 1.2660658777520082],
        [0, 0.5651591039924851],
        [0.5, 0.700906773759523],
    ),
    "i1": (
        rg.i1,
        [0, 1],
        [0, 0.5651591039924851],
        [0.5, 0.700906773759523],
        [0, 0.42941143422544725],
    ),
    "gammaln": (
        rg.gammaln,
        [0, -0.5],
        [INF, 1.2655121234846454],
        [-INF, 0.03648997397857639],
        [INF, np.pi**2 / 2 + 4],
    ),
    # Where PyTorch has NaN, the limits.
    "log_sigmoid": (rg.log_sigmoid, [-INF, INF], [-INF, 0], [1, 0], [0, 0]),
    "log_ndtr": (rg.log_ndtr, [-INF, INF], [-INF, 0], [INF, 0], [-1, 0]),
    "sinc": (rg.sinc, [0, INF], [1, 0], [0, 0], [-(np.pi**2) / 3, 0]),
    "silu": (rg.silu, [-INF, INF], [0, INF], [0, 1], [0, 0]),
    "gelu": (rg.gelu, [-INF, INF], [0, INF], [0, 1], [0, 0]),
    "gelu tanh": (lambda x: rg.gelu(x, approximate="tanh"), [-INF, INF], [0, INF], [0, 1], [0, 0]),
    "mish": (rg.mish, [-INF, INF], [0, INF], [0, 1], [0, 0]),
    "softsign": (rg.softsign, [0, INF, -INF], [0, 1, -1], [1, 0, 0], [0, 0, 0]),
}


@pytest.mark.parametrize("name", TABLE)
def test_bends_and_ends(name: str) -> None:
    op, points, values, firsts, seconds = TABLE[name]
    leaf = rg.Graph().param(np.array(points, "f8"))
    y, ones = op(leaf), np.ones(len(points))
    np.testing.assert_allclose(y.value, values, rtol=1e-14)
    first = rg.grad(y.sum(), leaf)
    for one in (first, rg.jvp(y, leaf, ones)):
        np.testing.assert_allclose(one.value, firsts, rtol=1e-14)
        second = rg.grad(one.sum(), leaf, allow_unused=True)
        if second is None:  # nothing of the slope depends on the points
            assert not np.any(seconds)
            continue
        for found in (second, rg.jvp(one, leaf, ones)):
            np.testing.assert_allclose(found.value, seconds, rtol=1e-13, atol=1e-290)


def test_logit_at_its_limits_and_within_eps() -> None:
    x = rg.Graph().param([0.0, 1.0, 0.5, -1.0])
    y = rg.logit(x)
    np.testing.assert_array_equal(y.value, [-INF, INF, 0.0, NAN])
    np.testing.assert_array_equal(rg.grad(y.sum(), x).value[:3], [INF, INF, 4.0])
    x.set([0.0, 1.0, 0.1, 0.5])
    y = rg.logit(x, 0.1)
    np.testing.assert_allclose(rg.grad(y.sum(), x).value, [0.0, 0.0, 1 / 0.09, 4.0], rtol=1e-14)


def test_x_log_y_at_zero() -> None:
    g = rg.Graph()
    x, y = g.param([0.0, 0.0, 0.0, 0.0]), g.param([0.0, 1.0, NAN, -1.0])
    z = rg.xlogy(x, y)
    np.testing.assert_array_equal(z.value, [0.0, 0.0, NAN, 0.0])
    np.testing.assert_array_equal(rg.grad(z.sum(), x).value, [0.0, 0.0, NAN, 0.0])
    np.testing.assert_array_equal(rg.grad(z.sum(), y).value, [0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(rg.xlog1py(x, [-1.0, 0.0, NAN, -2.0]).value, z.value)


def test_no_gradient_arrives_none_is_passed_on() -> None:
    g = rg.Graph()
    x = g.param([0.0, 4.0])
    for op in (rg.rsqrt, rg.gammaln, rg.ndtri, rg.cbrt, rg.logit):
        y = rg.where([False, True], op(x), 0.0)
        assert rg.grad(y.sum(), x).value[0] == 0.0


@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("name", sorted(TABLE))
def test_second_derivatives_of_short_floats(name: str, dtype: str) -> None:
    op = TABLE[name][0]
    found = []
    for kind in (dtype, "f8"):
        x = rg.Graph().param(np.array([0.3, 0.7], dtype).astype(kind))
        first = rg.grad(op(x).sum(), x)
        second = rg.grad(first.sum(), x, allow_unused=True)
        if second is None:
            return
        found.append(second)
    assert found[0].dtype == np.dtype(dtype)
    rtol = 1e-2 if dtype == "f2" else 1e-5
    np.testing.assert_allclose(found[0].value, found[1].value, rtol=rtol, atol=rtol)


def test_prelu_has_a_weight_for_each_channel() -> None:
    g = rg.Graph()
    x, w = g.input(-np.ones((2, 3, 4))), g.param([0.1, 0.2, 0.3])
    y = rg.prelu(x, w)
    np.testing.assert_allclose(y.value[0, :, 0], [-0.1, -0.2, -0.3])
    np.testing.assert_allclose(rg.grad(y.sum(), w).value, [-8.0, -8.0, -8.0])
    with pytest.raises(rg.ShapeError, match="2 weights for the 3 channels"):
        rg.prelu(x, [0.1, 0.2])


def test_poles_and_negative_numbers_of_the_gamma_function() -> None:
    g = rg.Graph()
    x = g.input([0.0, -1.0, INF, -INF, -0.5])
    np.testing.assert_allclose(rg.gammaln(x).value, [INF, INF, INF, INF, 1.2655121234846454])
    np.testing.assert_allclose(rg.digamma(x).value[[0, 1, 4]], [-INF, NAN, 0.03648997397857639])
    np.testing.assert_allclose(
        rg.trigamma(x).value[[0, 1, 2, 4]], [INF, INF, 0.0, np.pi**2 / 2 + 4]
    )


def test_beta_of_large_and_of_negative_numbers() -> None:
    g = rg.Graph()
    a = g.param([1e10, 1e6, 50.0, -0.5, 1e-10])
    y = rg.betaln(a, [2.0, 1e6, 3.0, 0.75, 1e-10])
    # mpmath's
    wanted = [
        -46.0517018599809137,
        -1386300.00336292112,
        -11.1019451761739539,
        0.18077055021786331,
        23.7189981105004021,
    ]
    np.testing.assert_allclose(y.value, wanted, rtol=1e-14)
    # digamma(1e10) - digamma(1e10 + 2) = -1e-10 - 1 / (1e10 + 1)
    assert rg.grad(y.sum(), a).value[0] == pytest.approx(-1.9999999999e-10, rel=1e-14)


def test_incomplete_beta_has_no_gradient_by_its_parameters() -> None:
    g = rg.Graph()
    a, x = g.param(2.0), g.param(0.25)
    y = rg.betainc(a, 3.0, x)
    with pytest.raises(rg.GradientError, match="derivative by x only"):
        rg.grad(y, a)
    assert rg.grad(y, x).value == pytest.approx(12 * 0.25 * 0.75**2, rel=1e-14)


@pytest.mark.parametrize(("call", "words"), [
    (lambda x: rg.gelu(x, approximate="fast"), "none"),
    (lambda x: rg.softshrink(x, -1.0), "not negative"),
    (lambda x: rg.polygamma(-1, x), "integer from 0"),
    (lambda x: rg.polygamma(1.5, x), "integer from 0"),
    (lambda x: rg.round(x, 1.5), "integer"),
    (lambda x: rg.silu(rg.astype(x, complex)), "real numbers only"),
])  # fmt: skip
def test_refusals_say_why(call: Any, words: str) -> None:
    with pytest.raises(rg.DTypeError, match=words):
        call(rg.Graph().input([1.0, 2.0]))


def test_bits_do_not_depend_on_blocks_or_layout() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal(200_000) * 3.0
    g = rg.Graph()
    x, part, backwards = g.input(a), g.input(a[:5].copy()), g.input(a[::-1].copy())
    for op in (rg.gammaln, rg.gelu, rg.i0e, rg.log_ndtr, rg.digamma, rg.silu, rg.sinc):
        y = op(x).value
        np.testing.assert_array_equal(op(part).value, y[:5])
        np.testing.assert_array_equal(op(backwards[::-1]).value, y)


@pytest.mark.parametrize(
    ("name", "at", "wanted"),
    [
        ("logaddexp2", (-np.inf, -np.inf), (0.5, 0.5)),
        ("logaddexp2", (np.inf, np.inf), (0.5, 0.5)),
    ],
)
def test_pairs_without_a_direction_have_finite_slopes_in_both_modes(
    name: str, at: Any, wanted: Any
) -> None:
    g = rg.Graph()
    x, y = map(g.param, at)
    z = getattr(rg, name)(x, y)
    reverse = [one.item() for one in rg.grad(z, (x, y))]
    forward = [rg.jvp(z, one, 1.0).item() for one in (x, y)]
    assert reverse == forward == list(wanted)
    u = 1.0 * x
    both = getattr(rg, name)(u, 1.0 * u)
    assert rg.grad(both, x).item() == rg.jvp(both, x, 1.0).item()


# mpmath's, as limits: the value, and the derivatives by both operands.
BETA_AT_POLES = {
    # a + b is a pole: a zero of the function, which it crosses with a slope
    (-2.5, 0.5): (0.0, -3.351032163829113, -3.351032163829113),
    (1.5, -2.5): (0.0, 0.8377580409572782, 0.8377580409572782),
    (-1.5, -1.5): (0.0, -33.51032163829113, -33.51032163829113),
    # a and a + b are poles, and cancel: for a whole b the function is rational in a
    (-2.0, 1.0): (-0.5, -0.25, NAN),
    (-3.0, 2.0): (1 / 6, 0.1388888888888889, NAN),
    (-3.0, 3.0): (-1 / 3, -0.6111111111111112, NAN),
    (2.0, -5.0): (0.05, NAN, 0.0225),
}


@pytest.mark.parametrize("at", BETA_AT_POLES)
def test_beta_and_its_slopes_where_gammas_have_poles(at: tuple[float, float]) -> None:
    value, by_a, by_b = BETA_AT_POLES[at]
    g = rg.Graph()
    a, b = g.input(at[0]), g.input(at[1])
    y = rg.beta(a, b)
    np.testing.assert_allclose(y.value, value, rtol=1e-14)
    for x, wanted in ((a, by_a), (b, by_b)):
        np.testing.assert_allclose(rg.grad(y, x).value, wanted, rtol=1e-13)
        np.testing.assert_allclose(rg.jvp(y, [x], [1.0]).value, wanted, rtol=1e-13)
    np.testing.assert_allclose(np.exp(rg.betaln(a, b).value), abs(value), rtol=1e-14)


def test_second_derivative_of_beta_where_poles_cancel() -> None:
    # beta(a, 1) is 1 / a
    g = rg.Graph()
    a, b = g.input([-2.0, -3.0]), g.input(1.0)
    slope = rg.grad(rg.beta(a, b).sum(), a)
    np.testing.assert_allclose(rg.grad(slope.sum(), a).value, [-1 / 4, -2 / 27], rtol=1e-13)
    logs = rg.grad(rg.betaln(a, b).sum(), a)
    np.testing.assert_allclose(logs.value, [1 / 2, 1 / 3], rtol=1e-13)
    np.testing.assert_allclose(rg.grad(logs.sum(), a).value, [1 / 4, 1 / 9], rtol=1e-13)
