"""A small book whose functions workers can import."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import reactgrad as rg

FATAL = "REACTGRAD_TEST_FATAL"


def payoff(spot: Any, strike: Any) -> Any:
    return np.maximum(spot - strike, 0.0)


def slow(value: Any) -> Any:
    time.sleep(0.05)
    return value


def fatal(value: Any) -> Any:
    """Kill the process that computes 13, the first one only."""
    path = os.environ.get(FATAL)
    if value == 13.0 and path and not os.path.exists(path):
        with open(path, "w") as file:
            file.write("dead")
        os._exit(1)
    return value


def book(count: int = 4) -> tuple[rg.Graph, list[Any], Any, list[Any]]:
    g = rg.Graph()
    rate = g.input(0.02, name="rate")
    spots = [g.input(100.0 + i, name=f"spot{i}") for i in range(count)]
    strikes = np.linspace(80.0, 120.0, 50)
    values = []
    for spot in spots:
        paid = rg.lift(payoff, shape=(50,), vjp=payoff_vjp)(spot, strikes)
        values.append((paid * rg.exp(-rate)).sum())
    total = values[0]
    for one in values[1:]:
        total = total + one
    total.name = "total"
    return g, spots, total, values


def payoff_vjp(g: Any, ans: Any, spot: Any, strike: Any) -> Any:
    return (g * (ans > 0.0)).sum(), None
