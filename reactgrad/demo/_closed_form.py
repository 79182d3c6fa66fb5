"""Black-Scholes value and Greeks of the book in plain NumPy, independent of the engine.

Formulas: F. Black and M. Scholes, "The Pricing of Options and Corporate Liabilities", 1973,
without dividends. The normal distribution function goes through ``math.erfc``, which keeps its
digits in the lower tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._market import SIGNS, Market, Terms

if TYPE_CHECKING:
    from numpy.typing import NDArray

_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True)
class ClosedForm:
    """Value and Greeks of a book.

    Attributes
    ----------
    value : float
        Value of all positions.
    deltas, gammas : ndarray, shape (n,)
        First and second derivative by each spot.
    vegas : ndarray, shape (n, e)
        Derivative by each volatility.
    rho : float
        Derivative by the rate.
    """

    value: float
    deltas: NDArray[np.float64]
    gammas: NDArray[np.float64]
    vegas: NDArray[np.float64]
    rho: float


def norm_cdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard normal distribution function, accurate in the lower tail too.

    Parameters
    ----------
    x : ndarray, float64
        Any shape.

    Returns
    -------
    ndarray, float64
        Same shape.

    Examples
    --------
    >>> float(norm_cdf(np.array([0.0]))[0])
    0.5
    """
    return 0.5 * np.asarray(_erfc(-x / math.sqrt(2.0)), dtype=np.float64)


def norm_pdf(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard normal density; same shape as `x`."""
    return np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def closed_form(terms: Terms, market: Market) -> ClosedForm:
    """Value a book and differentiate it by formula.

    Parameters
    ----------
    terms : Terms
        The options.
    market : Market
        The numbers that move.

    Returns
    -------
    ClosedForm
        Sums over all positions that depend on the number in question.
    """
    return _summed(_positions(terms, market))


def scale(terms: Terms, market: Market) -> ClosedForm:
    """Return what ``closed_form`` would be without a sign, so that nothing cancels.

    The digits that a sum of longs and shorts can have are those of its terms.
    """
    return _summed({name: np.abs(each) for name, each in _positions(terms, market).items()})


def _positions(terms: Terms, market: Market) -> dict[str, NDArray[np.float64]]:
    """Return the value and the Greeks of each position."""
    # axes: underlying, expiry, kind (call, put), strike
    spot = market.spots[:, None, None, None]
    years = terms.years[:, None, None]
    strike = terms.strikes[:, :, None, :]
    deviation = market.volatilities[:, :, None, None] * np.sqrt(years)
    discount = np.exp(-market.rate * years)
    d1 = (np.log(spot / strike) + market.rate * years) / deviation + 0.5 * deviation
    d2 = d1 - deviation
    first, second = norm_cdf(SIGNS * d1), norm_cdf(SIGNS * d2)
    density = norm_pdf(d1)

    value = SIGNS * (spot * first - strike * discount * second)
    delta = SIGNS * first
    gamma = density / (spot * deviation)
    vega = spot * density * np.sqrt(years)
    rho = SIGNS * strike * years * discount * second

    each = {"value": value, "delta": delta, "gamma": gamma, "vega": vega, "rho": rho}
    return {name: market.quantities * of_one for name, of_one in each.items()}


def _summed(each: dict[str, NDArray[np.float64]]) -> ClosedForm:
    return ClosedForm(
        value=float(each["value"].sum()),
        deltas=each["delta"].sum(axis=(1, 2, 3)),
        gammas=each["gamma"].sum(axis=(1, 2, 3)),
        vegas=each["vega"].sum(axis=(2, 3)),
        rho=float(each["rho"].sum()),
    )
