"""A small book of options, and the closed forms of Black and Scholes (1973) for it."""

from __future__ import annotations

import math
from typing import NamedTuple

import reactgrad as rg


class Option(NamedTuple):
    """One call as a graph."""

    graph: rg.Graph
    spot: rg.Var
    vol: rg.Var
    rate: rg.Var
    years: rg.Var
    price: rg.Var


def option(strike: float = 100.0) -> Option:
    g = rg.Graph()
    spot, vol = g.input(100.0, name="spot"), g.input(0.2, name="vol")
    rate, years = g.input(0.02, name="rate"), g.input(1.0, name="years")
    spread = vol * rg.sqrt(years)
    d1 = (rg.log(spot / strike) + (rate + vol * vol / 2.0) * years) / spread
    price = spot * rg.norm_cdf(d1) - strike * rg.exp(-rate * years) * rg.norm_cdf(d1 - spread)
    price.name = "price"
    return Option(g, spot, vol, rate, years, price)


def cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2.0)) / 2.0


def black_scholes(
    spot: float, vol: float, rate: float = 0.02, years: float = 1.0, strike: float = 100.0
) -> float:
    """Return the price of a call."""
    spread = vol * math.sqrt(years)
    d1 = (math.log(spot / strike) + (rate + vol * vol / 2.0) * years) / spread
    return spot * cdf(d1) - strike * math.exp(-rate * years) * cdf(d1 - spread)


def greeks(
    spot: float, vol: float, rate: float = 0.02, years: float = 1.0, strike: float = 100.0
) -> dict[str, float]:
    """Return the derivatives of the price of a call by its inputs."""
    root = math.sqrt(years)
    spread = vol * root
    d1 = (math.log(spot / strike) + (rate + vol * vol / 2.0) * years) / spread
    d2 = d1 - spread
    density = math.exp(-d1 * d1 / 2.0) / math.sqrt(2.0 * math.pi)
    paid = strike * math.exp(-rate * years) * cdf(d2)
    return {
        "spot": cdf(d1),
        "vol": spot * density * root,
        "rate": years * paid,
        "years": spot * density * vol / (2.0 * root) + rate * paid,
    }
