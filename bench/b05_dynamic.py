"""B5: the dynamic suite (milomg's js-reactivity-benchmark, of reactively), beside reaktiv.

A rectangle of sums of sources; a *dynamic* node leaves one source out when the first one is odd. An
iteration writes one source and reads some nodes of the last layer. As in the suite once it has
warmed up, all sources are even, and no node leaves anything out: reaktiv needs exponential time for
that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import exactly, faster
from bench._measure import DifferentOutputs
from bench._peers import load


@dataclass(frozen=True)
class Row:
    """A row of the published table; the counts run ``tried`` of its iterations."""

    width: int
    layers: int
    sources: int
    static: float
    leaves: Sequence[int]
    iterations: int
    total: float
    count: int
    tried: int
    number: Callable[[int], Any] = int
    seed: int = 0

    def dynamic(self) -> list[list[bool]]:
        """Return for each node of each layer whether it is dynamic."""
        pick = Random(self.seed)
        return [
            [pick.random() >= self.static for _ in range(self.width)] for _ in range(1, self.layers)
        ]

    def draw(self, rng: np.random.Generator) -> tuple[int, Any]:
        """Draw a source, and an even number for it, as the suite then writes."""
        return int(rng.integers(self.width)), self.number(2 * int(rng.integers(1 << 20)))


FIFTH = (1, 4)  # the two of ten leaves that the suite's generator picks
TABLE = [
    Row(10, 5, 2, 1, FIFTH, 600_000, 19199968, 3480000, 6_000),
    Row(10, 10, 6, 0.75, FIFTH, 15_000, 302310782860, 1155000, 3_000),
    Row(1000, 12, 4, 0.95, range(1000), 7_000, 29355933696000, 1463000, 1_000),
    Row(1000, 5, 25, 1, range(1000), 3_000, 1171484375000, 732000, 500),
    Row(5, 500, 3, 1, range(5), 500, 3.0239642676898464e241, 1246500, 100, float),
    Row(100, 15, 6, 0.5, range(100), 2_000, 15664996402790400, 1078000, 400),
]


class Ours:
    """The rectangle as a reactgrad graph."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.calls = 0
        self.graph = rg.Graph()
        self.inputs = above = [self.graph.input(row.number(2 * i)) for i in range(row.width)]
        add = rg.lift(summed)
        for flags in row.dynamic():
            above = [
                dropping(*reads) if flag else add(*reads)
                for reads, flag in _reads(row, above, flags)
            ]
        self.leaves = [above[i] for i in row.leaves]

    def step(self) -> Step:
        inputs, leaves, forward = self.inputs, self.leaves, self.graph.forward

        def step(change: tuple[int, Any]) -> Any:
            i, value = change
            inputs[i].set(value)
            forward(*leaves)
            return [leaf.value for leaf in leaves]

        return step

    def counted(self) -> tuple[float, float]:
        """Return the runs of nodes in ``tried`` iterations, and the published count for as many."""
        row = self.row
        step = self.step()
        for i in range(row.width):  # the state of the suite's sources after its warm-up
            self.inputs[i].set(row.number(_last(row, i)))
        self.graph.forward(*self.leaves)
        before = self.graph.stats().ran
        for i in range(row.tried):
            step((i % row.width, row.number(i + i % row.width)))
        ran = self.graph.stats().ran - before
        for i in range(row.width):
            self.inputs[i].set(row.number(_last(row, i)))
        self.graph.forward(*self.leaves)
        total = 0
        for leaf in self.leaves:
            total = leaf.value + total
        if total != row.total:
            raise DifferentOutputs(f"dynamic {row}: the sum is {total}, not {row.total}")
        return ran, row.count * row.tried / row.iterations


def _last(row: Row, i: int) -> int:
    """Return the value that the suite wrote to source i in its last iterations."""
    at = (row.iterations - 1 - i) // row.width * row.width + i
    return at + i


def _reads(row: Row, above: list[Any], flags: list[bool]) -> list[tuple[list[Any], bool]]:
    return [
        ([above[(i + k) % row.width] for k in range(row.sources)], flag)
        for i, flag in enumerate(flags)
    ]


def summed(*values: Any) -> Any:
    """Return the sum of the values."""
    return sum(values)


def dropping(first: Any, *rest: Any) -> Any:
    """Return a node that leaves one of its sources out when the first one is odd."""

    def drop(value: Any) -> Any:
        left_out = value % len(rest) if value % 2 else None
        for i, source in enumerate(rest):
            if i != left_out:
                value += source.value
        return value

    return rg.lift(drop)(first)


def in_reaktiv(row: Row) -> Step:
    """Return the step by reaktiv."""
    reaktiv = load("reaktiv")
    inputs = above = [reaktiv.Signal(row.number(2 * i)) for i in range(row.width)]

    def static(reads: list[Any]) -> Any:
        return reaktiv.Computed(lambda: sum([source() for source in reads]))

    def dynamic(first: Any, *rest: Any) -> Any:
        def drop() -> Any:
            value = first()
            left_out = value % len(rest) if value % 2 else None
            for i, source in enumerate(rest):
                if i != left_out:
                    value += source()
            return value

        return reaktiv.Computed(drop)

    for flags in row.dynamic():
        above = [
            dynamic(*reads) if flag else static(reads) for reads, flag in _reads(row, above, flags)
        ]
    leaves = [above[i] for i in row.leaves]

    def step(change: tuple[int, Any]) -> Any:
        i, value = change
        inputs[i].set(value)
        return [leaf() for leaf in leaves]

    return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for row in TABLE:
        if setting.small and row.width * row.layers > 200:
            continue
        if setting.small:
            row = replace(row, tried=10 * row.width)
        contested = row
        if setting.permuted:
            contested = replace(row, sources=row.sources + 1, seed=1)
        name = f"{contested.width} × {contested.layers}, {contested.sources} sources"
        found += [
            Contest(
                name,
                contested.draw,
                Side("reactgrad", lambda r=contested: Ours(r).step()),
                (
                    Peer(
                        Side("reaktiv", lambda r=contested: in_reaktiv(r), needs="reaktiv"),
                        faster(10.0),
                    ),
                ),
            ),
            Count(
                f"{row.width} × {row.layers}, sum as published",
                "runs of nodes",
                lambda r=row: Ours(r).counted(),
                "the suite",
                exactly(),
            ),
        ]
    return found


WORKLOAD = Workload("B5", "dynamic", cases)


def test_b05_dynamic(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
