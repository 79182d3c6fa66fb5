"""B33: many what-if points of one model. Each has another quote and another volatility; prices are read, and Greeks.

An option as a graph of numbers. The peer rebuilds the model for each point, as a loop without forks does; beside it
stands ours with a fork alone, and with all points as one more axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster

Points = tuple[np.ndarray, np.ndarray]


class Option:
    """A call as a graph."""

    def __init__(self, strike: float, spot: float = 100.0, vol: float = 0.2) -> None:
        g = self.graph = rg.Graph()
        self.spot, self.vol = g.input(spot, name="spot"), g.input(vol, name="vol")
        self.rate, years = g.input(0.02, name="rate"), g.input(1.0, name="years")
        spread = self.vol * rg.sqrt(years)
        d1 = (rg.log(self.spot / strike) + (self.rate + self.vol * self.vol / 2.0) * years) / spread
        paid = strike * rg.exp(-self.rate * years) * rg.norm_cdf(d1 - spread)
        self.price = self.spot * rg.norm_cdf(d1) - paid


def _scenarios(strike: float, *, greeks: bool, batch: bool) -> Step:
    option = Option(strike)
    wanted = [option.spot, option.vol, option.rate] if greeks else False

    def step(points: Points) -> Any:
        values = {option.spot: points[0], option.vol: points[1]}
        found = rg.scenarios(
            option.price, values, product=False, gradients=wanted, batch=batch, progress=False
        )
        slopes = [found.grad(option.price, x) for x in wanted or ()]
        return [found[option.price], *slopes]

    return step


def _rebuilt(strike: float, *, greeks: bool) -> Step:
    def step(points: Points) -> Any:
        rows = []
        for spot, vol in zip(points[0].tolist(), points[1].tolist(), strict=True):
            option = Option(strike, spot, vol)
            row = [option.price]
            if greeks:
                row += rg.grad(option.price, [option.spot, option.vol, option.rate])
            option.graph.forward(*row)
            rows.append([one.value for one in row])
        return list(np.array(rows).T)

    return step


def _side(name: str, build: Callable[..., Step], *arguments: Any, **options: Any) -> Side:
    return Side(name, lambda: build(*arguments, **options))


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    n = setting.size(1000, 5)
    strike = 110.0 if setting.permuted else 95.0

    def draw(rng: np.random.Generator) -> Points:
        return rng.uniform(70.0, 130.0, n), rng.uniform(0.1, 0.4, n)

    found: list[Case] = []
    for greeks in (False, True):
        rebuilt = _side("rebuilt for each point", _rebuilt, strike, greeks=greeks)
        what = "value + Greeks" if greeks else "value"
        for how, batch in (("one fork", False), ("one axis", True)):
            ours = _side("reactgrad", _scenarios, strike, greeks=greeks, batch=batch)
            peers = (Peer(rebuilt, faster(20.0)),)
            name = f"{what}, {n:,} points, {how}"
            found.append(
                Contest(name, draw, ours, peers, unit="point", per=n, rtol=1e-9, atol=1e-11)
            )
    return found


WORKLOAD = Workload("B33", "what-if", cases)


def test_b33(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
