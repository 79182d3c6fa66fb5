"""B24: dirty rows. One row of a large array moves; its value, and the value and all Greeks, are read.

A book of options as one tensor, a row an underlying with 20 options; and a table of 8 columns through 30
elementwise ops and a sum. The peers compute everything; so do we, beside it, after a set of the whole leaf.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b08_book import Terms, Torch


class Book:
    """The book as a graph of one tensor."""

    def __init__(self, terms: Terms, *, greeks: bool) -> None:
        g = self.graph = rg.Graph()
        self.spots = terms.spots[:, None].copy()
        self.spot = g.param(self.spots)
        volatility, rate = g.param(terms.volatilities[:, None]), g.param(terms.rate)
        strikes, years, quantities = map(g.const, (terms.strikes, terms.years, terms.quantities))
        found = terms.formula(self.spot, strikes, years, volatility, rate, rg, rg.norm_cdf)
        self.total = (quantities * found).sum()
        leaves = [self.spot, volatility, rate]
        self.wanted = [self.total, *(rg.grad(self.total, leaves) if greeks else ())]

    def in_part(self) -> Step:
        spot, wanted, forward = self.spot, self.wanted, self.graph.forward

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            spot.set_at(u, quote)
            forward(*wanted)
            return wanted, wanted[0].value

        return step

    def whole(self) -> Step:
        spot, spots, wanted, forward = self.spot, self.spots, self.wanted, self.graph.forward

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            spots[u] = quote
            spot.set(spots)
            forward(*wanted)
            return wanted, wanted[0].value

        return step


def in_order(found: Any) -> Any:
    """Return the wanted values as one array."""
    wanted, _ = found
    return np.concatenate([np.ravel(one.value) for one in wanted])


class TorchBook(Torch):
    """The same in PyTorch."""

    def step(self, *, greeks: bool) -> Step:
        if greeks:
            return self.as_one()
        torch = self.torch

        def value(move: tuple[int, float]) -> Any:
            u, quote = move
            with torch.no_grad():
                self.spots[u] = quote
                found = self._value(
                    self.spots[:, None], self.strikes, self.years, self.volatilities[:, None]
                )
                return (self.quantities * found).sum(), ()

        return value


def shown(found: Any) -> Any:
    """Return PyTorch's total and gradients as one array."""
    total, gradients = found
    return np.concatenate([np.ravel(one.detach().numpy()) for one in (total, *gradients)])


class Table:
    """A table through thirty elementwise ops and a sum."""

    def __init__(self, setting: Setting) -> None:
        self.rows = setting.size(1_000_000, 400)
        self.columns = 7 if setting.permuted else 8
        self.start = np.random.default_rng(5).normal(size=(self.rows, self.columns))

    def draw(self, rng: np.random.Generator) -> tuple[int, np.ndarray]:
        """Draw a row, and its new elements."""
        return int(rng.integers(self.rows)), rng.normal(size=self.columns)

    def formula(self, x: Any, xp: Any) -> Any:
        """Return the sum after thirty ops."""
        for i in range(10):
            x = xp.tanh(x * (1.0 + 0.01 * i)) + 0.1
        return x.sum()

    def ours(self, *, part: bool) -> Step:
        g = rg.Graph()
        x, table = g.input(self.start), self.start.copy()
        y = self.formula(x, rg)
        _ = y.value

        def in_part(move: tuple[int, np.ndarray]) -> Any:
            x.set_at(move[0], move[1])
            return y.value

        def whole(move: tuple[int, np.ndarray]) -> Any:
            table[move[0]] = move[1]
            x.set(table)
            return y.value

        return in_part if part else whole

    def in_torch(self) -> Step:
        torch = load("torch")
        x = torch.from_numpy(self.start.copy())

        def step(move: tuple[int, np.ndarray]) -> Any:
            x[move[0]] = torch.from_numpy(move[1])
            return self.formula(x, torch)

        return step


def _book(setting: Setting, underlyings: int, goal: float) -> list[Case]:
    found: list[Case] = []
    for greeks in (False, True):
        terms = Terms(setting, underlyings)
        what = "value + all Greeks" if greeks else "value"

        def book(terms: Terms = terms, greeks: bool = greeks) -> Book:
            return Book(terms, greeks=greeks)

        ours = Side("reactgrad", lambda book=book: book().in_part(), show=in_order)
        whole = Side("itself, whole", lambda book=book: book().whole(), show=in_order)
        torch = Side(
            "PyTorch",
            lambda terms=terms, greeks=greeks: TorchBook(terms).step(greeks=greeks),
            show=shown,
            needs="torch",
            apart=True,
        )
        name = f"{what}, {terms.underlyings * terms.each:,} options, 20 move"
        peers = (Peer(torch, faster(goal)), Peer(whole, None))
        found.append(Contest(name, terms.draw, ours, peers, rtol=1e-8, atol=1e-6))
    return found


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    table = Table(setting)
    torch = Side("PyTorch", table.in_torch, show=float, needs="torch", apart=True)
    ours = Side("reactgrad", lambda: table.ours(part=True), show=float)
    whole = Side("itself, whole", lambda: table.ours(part=False), show=float)
    name = f"one row of {table.rows:,} x {table.columns}, 30 ops and a sum"
    return [
        *_book(setting, 500, 30.0),
        *_book(setting, 50_000, 1000.0),
        Contest(
            name, table.draw, ours, (Peer(torch, faster(1000.0)), Peer(whole, None)), rtol=1e-8
        ),
    ]


WORKLOAD = Workload("B24", "dirty rows", cases)


def test_b24(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
