"""The book as a reactgrad graph: leaves that may be set, a value, and live Greeks."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

import reactgrad as rg

from ._market import SIGNS, Leaf, Market, Terms

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Book:
    """A book of options whose value and Greeks follow its leaves.

    One set of nodes covers all strikes of an underlying and expiry; what underlyings or expiries
    have in common (discount factors, the root of the time) is a node that they share.

    Parameters
    ----------
    terms : Terms
        The options.
    market : Market
        The numbers that the leaves start from.

    Attributes
    ----------
    graph : rg.Graph
        Owns every node below.
    leaves : dict of Leaf to rg.Var
        Spots, volatilities, quantities and the rate.
    value : rg.Var, shape ()
        Value of all positions.
    deltas, vegas : list of rg.Var, shape ()
        Derivative of the value by each spot; by a parallel shift of each underlying's volatilities.
    expiry_vegas : list of list of rg.Var, shape ()
        Derivative by the volatility of each underlying and expiry.
    rho : rg.Var, shape ()
        Derivative by the rate.
    gamma : rg.Var, shape ()
        Second derivative by the spot of the first underlying: the gradient of a gradient.
    value_nodes : int
        The number of nodes before gradients were added.
    """

    def __init__(self, terms: Terms, market: Market) -> None:
        graph = rg.Graph()
        leaves: dict[Leaf, rg.Var] = {}
        for leaf in market.leaves():
            make = graph.input if leaf.field == "quantities" else graph.param
            leaves[leaf] = make(market.at(leaf), name=_name(terms, leaf))

        rate = leaves[Leaf("rate", ())]
        signs = graph.const(SIGNS)
        years = [graph.const(t) for t in terms.years]
        root_years = [rg.sqrt(t) for t in years]
        growths = [rate * t for t in years]
        discounts = [rg.exp(-growth) for growth in growths]

        underlyings, expiries = range(len(terms.symbols)), range(len(years))
        spots = [leaves[Leaf("spots", (u,))] for u in underlyings]
        volatilities = [
            [leaves[Leaf("volatilities", (u, e))] for e in expiries] for u in underlyings
        ]
        values = [
            rg.stack(
                [
                    position_value(
                        spot=spots[u],
                        strikes=graph.const(terms.strikes[u, e]),
                        deviation=volatilities[u][e] * root_years[e],
                        growth=growths[e],
                        discount=discounts[e],
                        signs=signs,
                        quantities=leaves[Leaf("quantities", (u, e))],
                    )
                    for e in expiries
                ]
            ).sum()
            for u in underlyings
        ]
        self.value = rg.stack(values).sum()
        self.value_nodes = len(graph)

        # All in one call: each call walks from the value to the nodes it asks for.
        greeks = iter(rg.grad(self.value, [rate, *spots, *chain.from_iterable(volatilities)]))
        self.rho = next(greeks)
        self.deltas = [next(greeks) for _ in spots]
        self.expiry_vegas = [[next(greeks) for _ in row] for row in volatilities]
        self.vegas = [rg.stack(row).sum() for row in self.expiry_vegas]
        self.gamma = rg.grad(self.deltas[0], spots[0])
        self.graph, self.leaves = graph, leaves

    def read(self) -> rg.Run:
        """Bring the value and every Greek up to date; return what that ran."""
        return self.graph.forward(self.value, *self.deltas, *self.vegas, self.rho, self.gamma)

    def settings(self, market: Market) -> dict[rg.Var, NDArray[np.float64]]:
        """Return what every leaf has in `market`, as ``graph.set`` takes it."""
        return {var: market.at(leaf) for leaf, var in self.leaves.items()}

    def results(self) -> NDArray[np.float64]:
        """Return the value and every Greek (each expiry's vega too) as one array."""
        greeks = [*self.deltas, *self.vegas, self.rho, self.gamma]
        rows = [var for row in self.expiry_vegas for var in row]
        return np.array([float(var.value) for var in (self.value, *greeks, *rows)])


def position_value(
    *,
    spot: rg.Var,
    strikes: rg.Var,
    deviation: rg.Var,
    growth: rg.Var,
    discount: rg.Var,
    signs: rg.Var,
    quantities: rg.Var,
) -> rg.Var:
    """Build the Black-Scholes value of all positions of one underlying and expiry.

    Parameters
    ----------
    spot : rg.Var, shape ()
        Price of the underlying.
    strikes : rg.Var, shape (k,)
        Strikes.
    deviation : rg.Var, shape ()
        Volatility times the root of the time to expiry.
    growth : rg.Var, shape ()
        Rate times the time to expiry.
    discount : rg.Var, shape ()
        ``exp(-growth)``.
    signs : rg.Var, shape (2, 1)
        1 for calls, -1 for puts.
    quantities : rg.Var, shape (2, k)
        Calls and puts held at each strike.

    Returns
    -------
    rg.Var, shape ()
        Nothing is computed yet.
    """
    d1 = (rg.log(spot / strikes) + growth) / deviation + 0.5 * deviation
    d2 = d1 - deviation
    # A put is a call with its signs turned; N(-d) instead of 1 - N(d) keeps the digits in the tail.
    received = spot * rg.norm_cdf(signs * d1)
    paid = strikes * discount * rg.norm_cdf(signs * d2)
    return (quantities * (signs * (received - paid))).sum()


def _name(terms: Terms, leaf: Leaf) -> str:
    """Name a leaf as a trader would: ``volatility MSFT 3m``."""
    if leaf.field == "rate":
        return "rate"
    noun = {"spots": "spot", "volatilities": "volatility", "quantities": "quantities"}[leaf.field]
    u, *expiry = leaf.index
    months = "".join(f" {round(12 * terms.years[e])}m" for e in expiry)
    return f"{noun} {terms.symbols[u]}{months}"
