"""Functions of SciPy: values, first and second derivatives of both modes beside mpmath; ``scipy.special.f(Var)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import reactgrad as rg

INF, NAN = np.inf, np.nan
Function = Callable[..., Any]


def boxcox(x: Any, p: Any) -> Any:
    return mp.log(x) if p == 0 else (x**p - 1) / p


def rel_entr(x: Any, y: Any) -> Any:
    return x * mp.log(x / y)


def slope_of_boxcox(x: Any, p: Any, order: int) -> Any:
    """Return the derivative by the power, by its integral, which has no hole at 0."""
    return mp.quad(lambda t: (t ** (p - 1)) * mp.log(t) ** order, [1, x])


PLACES = [0.04, 0.3, 0.99, 1.0, 2.6, 9.7, 12.0, 60.0]
# The function, that of SciPy, mpmath's, operands before the last one, places of the last one, the most relative error.
CASES: dict[str, tuple[Function, Function, Function, tuple[float, ...], list[float], float]] = {
    "gamma": (rg.gamma, special.gamma, mp.gamma, (), [*PLACES, -0.5, -7.3, 150.5], 4e-14),
    "exprel": (
        rg.exprel,
        special.exprel,
        lambda x: mp.hyp1f1(1, 2, x),
        (),
        [-700.0, -40.0, -29.9, -3.0, -1e-9, 0.0, 1e-5, 0.7, 8.0, 29.9, 31.0, 300.0],
        1e-13,
    ),
    "entr": (rg.entr, special.entr, lambda x: -x * mp.log(x), (), PLACES, 1e-15),
    **{
        f"{name} {a}": (
            getattr(rg, name),
            getattr(special, name),
            lambda a, x, end=end: mp.gammainc(a, *(((0, x), (x, mp.inf))[end]), regularized=True),
            (a,),
            PLACES,
            2e-13,
        )
        for end, name in enumerate(("gammainc", "gammaincc"))
        for a in (0.01, 0.7, 1.0, 3.5, 11.0, 50.0)
    },
    **{
        f"{name} {order}": (
            getattr(rg, name),
            getattr(special, name),
            bessel,
            (order,),
            [0.1, 0.9, 2.5, 9.7],
            4e-13,
        )
        for name, bessel in (
            ("jv", mp.besselj),
            ("yv", mp.bessely),
            ("iv", mp.besseli),
            ("kv", mp.besselk),
        )
        for order in (0.0, 1.0, 2.5, 4.0)
    },
    "rel_entr": (rg.rel_entr, special.rel_entr, rel_entr, (0.4,), [0.1, 0.4, 0.401, 3.0], 1e-13),
}


def number(value: Any) -> float:
    return float(mp.re(value))


def near(found: Any, wanted: list[float], most: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=most, atol=1e-290)


SLOW = {
    f"{name} {order}" for name in ("yv", "kv") for order in (0.0, 1.0, 4.0)
}  # limits, for mpmath


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in CASES]
)
def test_values_and_two_derivatives_are_those_of_mpmath(name: str) -> None:
    ours, theirs, exact, before, places, most = CASES[name]
    x = rg.Graph().input(places)
    y = theirs(*before, x)
    assert y is not None
    with mp.workdps(250 if name == "gammaincc 50.0" else 40):  # a part of 1 may be 1e-135
        at = [mp.mpf(one) for one in places]
        orders = [
            [number(mp.diff(lambda t: exact(*before, t), one, n)) for one in at] if n
            else [number(exact(*before, one)) for one in at]
            for n in range(3)
        ]  # fmt: skip
    near(y.value, orders[0], most)
    near(ours(*before, x).value, orders[0], most)
    first = rg.grad(y.sum(), x)
    near(first.value, orders[1], 8 * most)
    near(rg.grad(first.sum(), x).value, orders[2], 64 * most)
    moved = rg.jvp(y, [x], [np.ones(len(places))])
    near(moved.value, orders[1], 8 * most)
    near(rg.jvp(moved, [x], [np.ones(len(places))]).value, orders[2], 64 * most)


@pytest.mark.parametrize("power", [-1.5, -1e-9, 0.0, 1e-5, 0.5, 1.0, 3.0])
def test_boxcox_by_its_power_and_by_its_number(power: float) -> None:
    places = [0.1, 0.9, 1.0, 1.5, 20.0]
    g = rg.Graph()
    x, p = g.input(places), g.input(power)
    y = special.boxcox(x, p)
    with mp.workdps(40):
        q = mp.mpf(power)
        wanted = [
            [float(slope_of_boxcox(mp.mpf(one), q, order)) for one in places] for order in range(3)
        ]
    near(y.value, wanted[0], 1e-14)
    for i in range(len(places)):
        by_power = rg.grad(y[i], p)
        near([by_power.value, rg.grad(by_power, p).value], [wanted[1][i], wanted[2][i]], 1e-13)
    tangent = rg.jvp(y, [p], [1.0])
    near(tangent.value, wanted[1], 1e-13)
    near(rg.grad(y.sum(), x).value, list(np.array(places) ** (power - 1.0)), 1e-14)
    shifted = special.boxcox1p(g.input(np.array(places) - 1.0), p)
    near(shifted.value, wanted[0], 1e-13)


def test_boxcox_at_zero_has_its_limits() -> None:
    g = rg.Graph()
    x, p = g.input(0.0), g.input(2.0)
    y = rg.boxcox(x, p)
    assert (y.value, rg.grad(y, p).value, rg.grad(y, x).value) == (-0.5, 0.25, 0.0)
    p.set(-1.0)
    assert (y.value, rg.grad(y, x).value) == (-INF, INF)


def test_ends_and_numbers_that_have_no_such_function() -> None:
    g = rg.Graph()
    a, x = [0.0, 0.0, 2.0, 2.0, -1.0, 2.0, INF, 2.0], [1.0, 0.0, 0.0, INF, 1.0, -1.0, 1.0, NAN]
    found = rg.gammainc(g.input(a), g.input(x)).value
    np.testing.assert_array_equal(found, special.gammainc(a, x))
    np.testing.assert_array_equal(rg.gammaincc(a, g.input(x)).value, special.gammaincc(a, x))
    places = [0.0, -0.0, -1.0, INF, -INF, NAN, 180.0]
    np.testing.assert_array_equal(rg.gamma(g.input(places)).value, special.gamma(places))
    u, v = [0.0, 1.0, -1.0, 0.0, NAN], [0.0, 0.0, 1.0, -1.0, 1.0]
    np.testing.assert_array_equal(special.rel_entr(g.input(u), v).value, special.rel_entr(u, v))
    np.testing.assert_array_equal(special.entr(g.input(u)).value, special.entr(u))


def test_small_probabilities_keep_their_digits() -> None:
    g = rg.Graph()
    with mp.workdps(40):
        for a, x in ((0.001, 0.9), (1e-5, 0.2), (3.0, 80.0), (1e4, 1.1e4), (1e6, 1.004e6)):
            wanted = float(mp.gammainc(a, x, mp.inf, regularized=True))
            assert rg.gammaincc(a, g.input(x)).value == pytest.approx(wanted, rel=1e-11), (a, x)


def test_of_the_order_there_is_no_derivative_and_the_error_says_so() -> None:
    g = rg.Graph()
    a, x = g.input(1.5), g.input(2.0)
    with pytest.raises(rg.GradientError, match=r"a.detach\(\)"):
        rg.grad(special.gammainc(a, x), a)
    with pytest.raises(rg.GradientError, match=r"order.detach\(\)"):
        rg.grad(special.jv(a, x), a)
    assert rg.grad(special.kv(a, x), x).value < 0


def test_names_that_mean_something_else_here_are_scipys() -> None:
    x, y = np.array([0.2, 0.5, 1.5]), np.array([0.3, 0.4, 1.5])
    g = rg.Graph()
    a, b = g.input(x), g.input(y)
    np.testing.assert_allclose(special.kl_div(a, b).value, special.kl_div(x, y), rtol=1e-13)
    n = np.array([0, 1, 3])
    for name in ("yn", "kn"):
        f = getattr(special, name)
        np.testing.assert_allclose(f(n, b).value, f(n, y), rtol=1e-14)
    for name in ("j0", "j1", "y0", "y1", "k0", "k1", "psi"):
        f = getattr(special, name)
        np.testing.assert_allclose(f(a).value, f(x), rtol=1e-13)


def test_each_function_of_scipy_that_builds_a_node_has_its_value() -> None:
    x = np.array([0.3, 0.5, 1.7, 0.9])
    count = 0
    for name in dir(special):
        f = getattr(special, name)
        if not isinstance(f, np.ufunc) or f.nin > 3:
            continue
        given = [x, x[::-1].copy(), np.array([0.1, 0.2, 0.3, 0.4])][: f.nin]
        if name in ("yn", "kn"):
            given[0] = np.array([0, 1, 2, 3])
        g = rg.Graph()
        try:
            node = f(*[g.input(one) for one in given])
        except TypeError:  # no op
            continue
        count += 1
        np.testing.assert_allclose(node.value, f(*given), rtol=1e-12, err_msg=name)
    assert count > 45


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logsumexp_with_factors(dtype: str) -> None:
    x = np.array([[1.0, 700.0, -2.0], [3.0, 0.5, 1000.0]], dtype)
    b = np.array([[1.0, 0.0, 2.0], [0.5, -0.25, 0.0]], dtype)
    g = rg.Graph()
    y, w = g.input(x), g.input(b)
    for axis in (0, 1, None):
        for keep in (False, True):
            with np.errstate(all="ignore"):
                wanted = special.logsumexp(x, axis, b, keepdims=keep)
            found = rg.logsumexp(y, axis, b=w, keepdims=keep)
            np.testing.assert_allclose(
                found.value, wanted, rtol=2e-6 if dtype == "float32" else 1e-14
            )
            assert found.dtype == x.dtype


def test_logsumexp_with_factors_has_exact_gradients() -> None:
    g = rg.Graph()
    x, b = g.input([1.0, 30.0, -2.0]), g.input([1.0, 0.0, 2.0])
    y = rg.logsumexp(x, b=b)
    with mp.workdps(30):
        total = mp.exp(1) + 2 * mp.exp(-2)
        by_x = [float(mp.exp(1) / total), 0.0, float(2 * mp.exp(-2) / total)]
        by_b = [float(mp.exp(one) / total) for one in (1, 30, -2)]
    np.testing.assert_allclose(rg.grad(y, x).value, by_x, rtol=1e-14)
    np.testing.assert_allclose(rg.grad(y, b).value, by_b, rtol=1e-14)
    rg.testing.check_grads(lambda x, b: rg.logsumexp(x, b=b), [[1.0, 0.5], [0.3, 2.0]], order=2)
