"""B6: clean reads, unrelated sets and small cones, in graphs of three sizes.

Chains of ten nodes, joined by a tree of sums that is never read, so that the graph is one piece.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import Goal, at_most, within

DEPTH = 10
READS = 1000
SIZES = (100, 10_000, 1_000_000)


class Piece:
    """One graph, and two of its chains."""

    def __init__(self, nodes: int, permuted: bool) -> None:
        self.graph = rg.Graph()
        self._kept: list[Any] = []
        chains = max(2, nodes // (DEPTH + 2))  # leaf, chain, and one node of the tree
        ends = []
        for i in range(chains):
            leaf = self.graph.input(0.1 * (i % 7))
            end = _fan(leaf) if permuted else _chain(leaf)
            if i in (0, chains - 1):
                self._kept.append((leaf, end))
            ends.append(end)
        while len(ends) > 1:
            left = ends[::2][: len(ends) // 2]
            ends = [a + b for a, b in zip(left, ends[1::2])] + ends[len(left) * 2 :]
        self.total = ends[0]
        (self.leaf, self.end), (self.other, _) = self._kept
        self.graph.forward(self.total)


def _chain(x: Any) -> Any:
    for i in range(DEPTH):
        x = rg.tanh(x) if i % 2 else x * 0.5
    return x


def _fan(x: Any) -> Any:
    """Return a shape with the same number of nodes, less deep."""
    parts = [x * 0.5, rg.tanh(x), x + 1.0, rg.sin(x)]
    return rg.tanh(((parts[0] * parts[1]) + (parts[2] - parts[3])) * parts[0]) + parts[1]


class Pieces:
    """The graphs of all sizes, built on demand: building takes longer than measuring."""

    def __init__(self, permuted: bool) -> None:
        self._permuted = permuted
        self._built: dict[int, Piece] = {}

    def of(self, nodes: int) -> Piece:
        if nodes not in self._built:
            self._built[nodes] = Piece(nodes, self._permuted)
        return self._built[nodes]


def clean_reads(piece: Piece) -> Step:
    """Return a step that reads a clean node many times."""
    end = piece.end

    def step(_: Any) -> Any:
        for _ in repeat(None, READS):
            end.value
        return end.value

    return step


def unrelated_set(piece: Piece) -> Step:
    """Return a step that sets a leaf and reads a node that does not depend on it."""
    change, end = piece.other.set, piece.end

    def step(value: float) -> Any:
        change(value)
        return end.value

    return step


def own_cone(piece: Piece) -> Step:
    """Return a step that sets a leaf and reads the end of its chain."""
    change, end = piece.leaf.set, piece.end

    def step(value: float) -> Any:
        change(value)
        return end.value

    return step


def draw(rng: np.random.Generator) -> float:
    """Draw a number."""
    return float(rng.normal())


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    sizes = (100, 200, 400) if setting.small else SIZES
    pieces = Pieces(setting.permuted)
    found: list[Case] = []

    def add(name: str, make: Any, goal: Goal, per: int = 1, *, constant: bool = True) -> None:
        def side(nodes: int, called: str) -> Side:
            return Side(called, lambda: make(pieces.of(nodes)))

        found.extend(
            Contest(
                f"{name}, {nodes:,} nodes",
                draw,
                side(nodes, "reactgrad"),
                goal=goal,
                per=per,
                constant=constant,
            )
            for nodes in sizes
        )
        found.append(
            Contest(
                f"{name}, {sizes[-1]:,} nodes beside {sizes[0]:,}",
                draw,
                side(sizes[-1], "reactgrad"),
                (Peer(side(sizes[0], f"itself at {sizes[0]:,}"), at_most(1.5)),),
                per=per,
                constant=constant,
            )
        )

    add("clean read", clean_reads, within(200e-9), READS)
    add("unrelated set + read", unrelated_set, within(4e-6))
    add("set + read of a 10-node cone", own_cone, within(8e-6), constant=False)
    return found


WORKLOAD = Workload("B6", "size", cases)


def test_b06(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
