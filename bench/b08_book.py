"""B8: a book of 10,000 options on 500 underlyings; one quote moves, its value and Greeks are read.

Deltas and vegas of every underlying, and one rho. Sums over underlyings are trees of additions, so
that one quote reaches few nodes. The book has been open for a while: each quote has moved before.
The cost of a first and a second move, for which no plan is cached yet, is a row of its own. Values
that a step has changed are handed out; the others stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b07_options import call_value, call_value_permuted

# After this number of moves of a quote its plan is cached.
MOVES = 3


class Terms:
    """The options of a book, and the market that it starts from; a row an underlying."""

    def __init__(self, setting: Setting, underlyings: int = 500) -> None:
        self.underlyings = setting.size(underlyings, 6 if underlyings == 500 else 40)
        self.each = 20
        if setting.permuted:
            self.underlyings, self.each = self.underlyings * 20 // 21, 21
        rng = np.random.default_rng(11)
        shape = (self.underlyings, self.each)
        self.spots = rng.uniform(50, 150, self.underlyings)
        self.volatilities = rng.uniform(0.15, 0.6, self.underlyings)
        self.rate = 0.03
        self.strikes = self.spots[:, None] * rng.uniform(0.8, 1.2, shape)
        self.years = rng.uniform(0.2, 2.0, shape)
        self.quantities = rng.integers(1, 100, shape).astype(float)
        self.formula: Callable[..., Any] = call_value_permuted if setting.permuted else call_value

    def draw(self, rng: np.random.Generator) -> tuple[int, float]:
        """Draw an underlying, and its new quote."""
        u = int(rng.integers(self.underlyings))
        return u, float(self.spots[u] * rng.uniform(0.95, 1.05))


def summed(nodes: Sequence[Any]) -> Any:
    """Return the sum as a tree, in which each node reaches the top in few steps."""
    while len(nodes) > 1:
        pairs = [a + b for a, b in zip(nodes[::2], nodes[1::2])]
        nodes = pairs + list(nodes[len(pairs) * 2 :])
    return nodes[0]


class Ours:
    """The book as a graph with live Greeks."""

    def __init__(self, terms: Terms, jit: bool = False) -> None:
        g = self.graph = rg.Graph(jit=jit)
        self.quotes = [g.input(spot) for spot in terms.spots.tolist()]
        volatilities = [g.input(v) for v in terms.volatilities.tolist()]
        rate = g.input(terms.rate)
        positions = []
        for u, (spot, volatility) in enumerate(zip(self.quotes, volatilities)):
            strikes, years = g.const(terms.strikes[u]), g.const(terms.years[u])
            value = terms.formula(spot, strikes, years, volatility, rate, rg, rg.norm_cdf)
            positions.append((g.const(terms.quantities[u]) * value).sum())
        self.value = summed(positions)
        greeks = rg.grad(self.value, [*self.quotes, *volatilities, rate])
        self.wanted = [self.value, *greeks]
        self.present = terms.spots.tolist()

    def one_quote(self, moves: int = MOVES) -> Step:
        """Return the step, after each quote has moved `moves` times."""
        quotes, wanted, forward = self.quotes, self.wanted, self.graph.forward
        deltas, vegas = wanted[1 : len(quotes) + 1], wanted[len(quotes) + 1 : -1]
        value, rho = wanted[0], wanted[-1]

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            quotes[u].set(quote)
            forward(*wanted)
            moved = [one.value for one in (value, deltas[u], vegas[u], rho)]
            return wanted, moved

        for _ in range(moves):
            for u, quote in enumerate(self.present):
                step((u, quote))
        return step

    def all_quotes(self) -> Step:
        """Return a step with the same result that sets all quotes."""
        wanted, forward, change = self.wanted, self.graph.forward, self.graph.set

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            self.present[u] = quote
            change(dict(zip(self.quotes, self.present)))
            forward(*wanted)
            moved = [one.value for one in wanted]
            return wanted, moved

        return step


def timed(step: Step) -> Step:
    """Return the same step, but returning the seconds that it takes."""

    def reporting(move: Any) -> float:
        began = perf_counter()
        step(move)
        return perf_counter() - began

    return reporting


def first_moves(terms: Terms, book: Callable[[], Ours]) -> Step:
    """Return a step in which a quote moves for the first or second time.

    Each is timed; books are opened as needed.
    """
    left: list[int] = []
    step: Step | None = None

    def reporting(move: tuple[int, float]) -> float:
        nonlocal step
        if step is None or not left:
            step = timed(book().one_quote(0))
            left.extend([*range(terms.underlyings)] * 2)
        u, quote = move
        other = left.pop()
        return step((other, quote / terms.spots[u] * terms.spots[other]))

    return reporting


def values(found: Any) -> Any:
    """Return the wanted values as an array."""
    wanted, _ = found
    return np.array([one.value for one in wanted])


class Torch:
    """The market as leaves, the terms as tensors."""

    def __init__(self, terms: Terms) -> None:
        self.torch = load("torch")
        self.terms = terms
        self.spots = self.torch.tensor(terms.spots, requires_grad=True)
        self.volatilities = self.torch.tensor(terms.volatilities, requires_grad=True)
        self.rate = self.torch.tensor(terms.rate, dtype=self.torch.float64, requires_grad=True)
        self.strikes, self.years, self.quantities = (
            self.torch.from_numpy(array) for array in (terms.strikes, terms.years, terms.quantities)
        )

    def _value(self, spot: Any, strikes: Any, years: Any, volatility: Any) -> Any:
        torch = self.torch
        cdf = torch.special.ndtr
        return self.terms.formula(spot, strikes, years, volatility, self.rate, torch, cdf)

    def as_one(self) -> Step:
        torch, leaves = self.torch, [self.spots, self.volatilities, self.rate]

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            with torch.no_grad():
                self.spots[u] = quote
            found = self._value(
                self.spots[:, None], self.strikes, self.years, self.volatilities[:, None]
            )
            total = (self.quantities * found).sum()
            return total, torch.autograd.grad(total, leaves)

        return step

    def per_underlying(self) -> Step:
        torch = self.torch
        spots = [spot.detach().clone().requires_grad_() for spot in self.spots]
        volatilities = [v.detach().clone().requires_grad_() for v in self.volatilities]
        leaves = [*spots, *volatilities, self.rate]
        rows = list(zip(self.strikes, self.years, self.quantities))

        def step(move: tuple[int, float]) -> Any:
            u, quote = move
            with torch.no_grad():
                spots[u].fill_(quote)
            total = torch.stack(
                [
                    (quantities * self._value(spot, strikes, years, volatility)).sum()
                    for spot, volatility, (strikes, years, quantities) in zip(
                        spots, volatilities, rows
                    )
                ]
            ).sum()
            return total, torch.autograd.grad(total, leaves)

        return step


def in_order(found: Any) -> Any:
    """Return PyTorch's total and gradients as one array."""
    total, gradients = found
    return np.concatenate([np.atleast_1d(one.detach().numpy()) for one in (total, *gradients)])


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    terms = Terms(setting)

    def torch_side(name: str, build: Callable[[], Step]) -> Side:
        return Side(name, build, show=in_order, needs="torch", apart=True)

    moves = f"{terms.underlyings * terms.each:,} options, one of {terms.underlyings} quotes moves"
    found: list[Case] = []
    for jit in (False, True):

        def book(jit: bool = jit) -> Ours:
            return Ours(terms, jit)

        needs = "numba" if jit else None
        one_quote = Side(
            "reactgrad", lambda book=book: book().one_quote(), show=values, needs=needs
        )
        all_quotes = Side(
            "itself, all quotes", lambda book=book: book().all_quotes(), show=values, needs=needs
        )
        first = Side(
            "reactgrad", lambda book=book: first_moves(terms, book), needs=needs, reports=True
        )
        known = Side(
            "known quotes", lambda book=book: timed(book().one_quote()), needs=needs, reports=True
        )
        per_underlying = torch_side("PyTorch per underlying", lambda: Torch(terms).per_underlying())
        as_one = torch_side("PyTorch as one tensor", lambda: Torch(terms).as_one())
        found.append(
            Contest(
                f"jit: {moves}" if jit else moves,
                terms.draw,
                one_quote,
                (
                    Peer(all_quotes, faster(150.0)),
                    Peer(per_underlying, faster(1000.0)),
                    Peer(as_one, faster(12.0)),
                ),
                rtol=1e-8,
            )
        )
        found.append(
            Contest(
                f"{found[-1].name} for the first or second time",
                terms.draw,
                first,
                (Peer(known),),
                alike=False,
            )
        )
    return found


WORKLOAD = Workload("B8", "book", cases)


def test_b08(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
