"""The options and the numbers that move, as plain arrays: the inputs of every valuation.

Both the graph and the closed forms start from a `Terms` and a `Market`; neither knows the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._prices import Stock

LEAST_OPTIONS = 10_000
RATE = 0.03
CALL, PUT = 0, 1
SIGNS = np.array([[1.0], [-1.0]])  # calls, puts: one row each

_SLICES = 120  # (underlying, expiry) pairs to aim at: thousands of nodes, built in a blink
_MOST_EXPIRIES, _LEAST_EXPIRIES, _LEAST_STRIKES = 24, 2, 5
_WIDTH = 2.0  # strikes lie within this many standard deviations of the forward


@dataclass(frozen=True)
class Terms:
    """The terms of the options, which never change.

    Attributes
    ----------
    symbols : tuple of str
        The n underlyings.
    years : ndarray, shape (e,)
        Time to each expiry in years.
    strikes : ndarray, shape (n, e, k)
        Strikes of each underlying and expiry; each has one call and one put.
    """

    symbols: tuple[str, ...]
    years: NDArray[np.float64]
    strikes: NDArray[np.float64]

    @property
    def options(self) -> int:
        """The number of options: a call and a put for each strike."""
        return 2 * self.strikes.size


class Leaf(NamedTuple):
    """The place of one leaf of the graph in the arrays of a `Market`."""

    field: Literal["spots", "volatilities", "rate", "quantities"]
    index: tuple[int, ...]


@dataclass(frozen=True)
class Market:
    """The numbers that may change; immutable, so that a story can keep every state.

    Attributes
    ----------
    spots : ndarray, shape (n,)
        Price of each underlying.
    volatilities : ndarray, shape (n, e)
        Volatility of each underlying and expiry, a year.
    rate : ndarray, shape ()
        Interest rate, continuously compounded, a year.
    quantities : ndarray, shape (n, e, 2, k)
        Options held (negative: sold) of each underlying, expiry, kind (call, put) and strike.
    """

    spots: NDArray[np.float64]
    volatilities: NDArray[np.float64]
    rate: NDArray[np.float64]
    quantities: NDArray[np.float64]

    def leaves(self) -> Iterator[Leaf]:
        """Yield the place of every leaf, in a fixed order."""
        yield Leaf("rate", ())
        for u, e in np.ndindex(self.volatilities.shape):
            if e == 0:
                yield Leaf("spots", (u,))
            yield Leaf("volatilities", (u, e))
            yield Leaf("quantities", (u, e))

    def at(self, leaf: Leaf) -> NDArray[np.float64]:
        """Return the number or row of numbers at `leaf`."""
        return np.asarray(getattr(self, leaf.field)[leaf.index])

    def with_value(self, leaf: Leaf, value: NDArray[np.float64] | float) -> Market:
        """Return a copy that differs at `leaf` only."""
        array = getattr(self, leaf.field).copy()
        array[leaf.index] = value
        return replace(self, **{leaf.field: array})

    def scaled(self, factor: float) -> Market:
        """Return a copy in which every number is `factor` times as large."""
        return Market(
            self.spots * factor,
            self.volatilities * factor,
            np.asarray(self.rate * factor),
            self.quantities * factor,
        )


def open_book(stocks: Sequence[Stock], seed: int) -> tuple[Terms, Market]:
    """Lay out a book of at least 10,000 options on `stocks`.

    Parameters
    ----------
    stocks : sequence of Stock
        One or more.
    seed : int
        Seeds the quantities; the same seed gives the same book.

    Returns
    -------
    Terms, Market
        Expiries a month apart; strikes spread around each forward by its own volatility, so that
        any stock gets options near the money.
    """
    n = len(stocks)
    expiries = min(max(math.ceil(_SLICES / n), _LEAST_EXPIRIES), _MOST_EXPIRIES)
    strikes = max(math.ceil(LEAST_OPTIONS / (2 * n * expiries)), _LEAST_STRIKES)
    years = np.arange(1, expiries + 1) / 12
    spots = np.array([stock.spot for stock in stocks], dtype=np.float64)
    volatility = np.array([stock.volatility for stock in stocks], dtype=np.float64)
    volatilities = np.repeat(volatility[:, None], expiries, axis=1)
    deviations = np.linspace(-_WIDTH, _WIDTH, strikes)
    forwards = spots[:, None, None] * np.exp(RATE * years)[:, None]
    spreads = (volatilities * np.sqrt(years))[:, :, None] * deviations
    terms = Terms(tuple(stock.symbol for stock in stocks), years, forwards * np.exp(spreads))
    shape = (n, expiries, 2, strikes)
    quantities = np.random.default_rng(seed).integers(-40, 61, size=shape).astype(np.float64)
    return terms, Market(spots, volatilities, np.asarray(RATE), quantities)
