"""The closed forms that the demo checks the engine against are themselves right."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from reactgrad.demo._closed_form import ClosedForm, closed_form, norm_cdf
from reactgrad.demo._market import CALL, PUT, Leaf, Market, Terms


def _single(
    kind: int, spot: float, strike: float, vol: float, rate: float, years: float
) -> ClosedForm:
    """Value one option."""
    quantities = np.zeros((1, 1, 2, 1))
    quantities[0, 0, kind, 0] = 1.0
    terms = Terms(("A",), np.array([years]), np.array([[[strike]]]))
    market = Market(np.array([spot]), np.array([[vol]]), np.asarray(rate), quantities)
    return closed_form(terms, market)


def test_textbook_example() -> None:
    # J. Hull, Options, Futures, and Other Derivatives: S=42, K=40, r=10 %, 20 %, half a year.
    assert _single(CALL, 42, 40, 0.2, 0.1, 0.5).value == pytest.approx(4.76, abs=0.005)
    assert _single(PUT, 42, 40, 0.2, 0.1, 0.5).value == pytest.approx(0.81, abs=0.005)


@pytest.mark.parametrize("strike", [60.0, 100.0, 170.0, 400.0])
def test_put_call_parity(strike: float) -> None:
    call = _single(CALL, 100, strike, 0.3, 0.03, 1.5)
    put = _single(PUT, 100, strike, 0.3, 0.03, 1.5)
    forward = 100 - strike * math.exp(-0.03 * 1.5)
    assert call.value - put.value == pytest.approx(forward, rel=1e-13)
    assert call.deltas[0] - put.deltas[0] == pytest.approx(1.0, rel=1e-14)
    assert call.gammas[0] == put.gammas[0]
    assert call.vegas[0, 0] == put.vegas[0, 0]


@pytest.mark.parametrize("kind", [CALL, PUT])
@pytest.mark.parametrize("strike", [50.0, 95.0, 150.0])
def test_every_greek_against_derivatives_in_many_digits(kind: int, strike: float) -> None:
    spot, vol, rate, years = 100.0, 0.25, 0.04, 0.75
    sign = 1 if kind == CALL else -1

    def value(s: mpmath.mpf, v: mpmath.mpf, r: mpmath.mpf) -> mpmath.mpf:
        deviation = v * mpmath.sqrt(years)
        d1 = (mpmath.log(s / strike) + r * years) / deviation + deviation / 2
        paid = strike * mpmath.exp(-r * years) * mpmath.ncdf(sign * (d1 - deviation))
        return sign * (s * mpmath.ncdf(sign * d1) - paid)

    with mpmath.workdps(40):
        at = (spot, vol, rate)
        exact = [
            mpmath.diff(value, at, order) for order in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 0, 0)]
        ]
        exact = [float(number) for number in [value(*map(mpmath.mpf, at)), *exact]]
    found = _single(kind, spot, strike, vol, rate, years)
    live = [found.value, found.deltas[0], found.vegas[0, 0], found.rho, found.gammas[0]]
    assert live == pytest.approx(exact, rel=1e-11)


def test_a_book_is_the_sum_of_its_positions() -> None:
    rng = np.random.default_rng(3)
    terms = Terms(("A", "B"), np.array([0.25, 1.0, 2.0]), rng.uniform(50, 150, (2, 3, 4)))
    market = Market(
        rng.uniform(80, 120, 2),
        rng.uniform(0.1, 0.5, (2, 3)),
        np.asarray(0.02),
        rng.integers(-5, 6, (2, 3, 2, 4)).astype(float),
    )
    whole = closed_form(terms, market)
    parts = dict.fromkeys(("value", "rho"), 0.0)
    deltas, vegas = np.zeros(2), np.zeros((2, 3))
    for (u, e, kind, k), held in np.ndenumerate(market.quantities):
        one = _single(
            kind,
            float(market.spots[u]),
            float(terms.strikes[u, e, k]),
            float(market.volatilities[u, e]),
            0.02,
            float(terms.years[e]),
        )
        parts["value"] += held * one.value
        parts["rho"] += held * one.rho
        deltas[u] += held * one.deltas[0]
        vegas[u, e] += held * one.vegas[0, 0]
    assert whole.value == pytest.approx(parts["value"], rel=1e-12)
    assert whole.rho == pytest.approx(parts["rho"], rel=1e-12)
    np.testing.assert_allclose(whole.deltas, deltas, rtol=1e-12)
    np.testing.assert_allclose(whole.vegas, vegas, rtol=1e-12)


def test_norm_cdf_keeps_its_digits_in_the_tail() -> None:
    points = np.array([-37.0, -20.0, -8.0, -1.0, 0.0, 1.0, 8.0])
    with mpmath.workdps(40):
        exact = [float(mpmath.ncdf(mpmath.mpf(x))) for x in points]
    # 1e-13: exp(-x**2/2) magnifies the rounding of x/sqrt(2) by x**2
    np.testing.assert_allclose(norm_cdf(points), exact, rtol=4e-13)


def test_a_change_of_the_market_is_a_copy() -> None:
    market = Market(np.array([1.0]), np.array([[0.2]]), np.asarray(0.03), np.ones((1, 1, 2, 1)))
    leaf = Leaf("spots", (0,))
    changed = market.with_value(leaf, 2.0)
    assert (market.at(leaf), changed.at(leaf)) == (1.0, 2.0)
    assert changed == replace(market, spots=changed.spots)
    assert market.scaled(2.0).rate == 0.06
