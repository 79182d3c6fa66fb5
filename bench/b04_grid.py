"""B4: a grid of Python functions; one input changes, all outputs are read.

Node (l, i) is a function of (l - 1, i - 1), (l - 1, i), (l - 1, i + 1), round the edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load

# After so many sets of an input the plan for it is there.
SETS = 3


def mixed(a: float, b: float, c: float) -> float:
    return 0.25 * a + 0.5 * b - 0.125 * c


def mixed_otherwise(a: float, b: float, c: float) -> float:
    return 0.5 * c - a * 0.125 - 0.25 * b


class Grid:
    """Its shape, and what its nodes compute."""

    def __init__(self, side: int, setting: Setting) -> None:
        layers = setting.size(side, 4)
        self.width = layers + layers // 5 if setting.permuted else layers
        self.layers = layers
        self.function = mixed_otherwise if setting.permuted else mixed

    @property
    def stale(self) -> int:
        """How many nodes one input reaches."""
        return sum(min(2 * layer + 1, self.width) for layer in range(1, self.layers + 1))

    def around(self, i: int) -> tuple[int, int, int]:
        return (i - 1) % self.width, i, (i + 1) % self.width

    def draw_one(self, rng: np.random.Generator) -> tuple[int, float]:
        """Always the same input, another value."""
        return self.width // 3, float(rng.normal())

    def draw_any(self, rng: np.random.Generator) -> tuple[int, float]:
        return int(rng.integers(self.width)), float(rng.normal())

    def ours(self, cutoff: str | None = None, *, sets: int = 0) -> Step:
        """The step, after each input was set so often."""
        g = rg.Graph()
        inputs = row = [g.input(float(i)) for i in range(self.width)]
        node = rg.lift(self.function, cutoff=cutoff)
        for _ in range(self.layers):
            row = [node(*[row[k] for k in self.around(i)]) for i in range(self.width)]
        outputs, forward = row, g.forward

        def step(change: tuple[int, float]) -> list[float]:
            i, value = change
            inputs[i].set(value)
            forward(*outputs)
            return [output.value for output in outputs]

        for _ in range(sets):
            for i in range(self.width):
                step((i, 1.0))
        return step

    def in_reaktiv(self) -> Step:
        reaktiv = load("reaktiv")
        function = self.function
        inputs = row = [reaktiv.Signal(float(i)) for i in range(self.width)]
        for _ in range(self.layers):
            row = [
                reaktiv.Computed(lambda a=a, b=b, c=c: function(a(), b(), c()))
                for a, b, c in ([row[k] for k in self.around(i)] for i in range(self.width))
            ]
        outputs = row

        def step(change: tuple[int, float]) -> list[float]:
            i, value = change
            inputs[i].set(value)
            return [output() for output in outputs]

        return step

    def in_loman(self) -> Step:
        loman = load("loman")
        sheet = loman.Computation()
        for i in range(self.width):
            sheet.add_node(f"n0_{i}", value=float(i))
        for layer in range(1, self.layers + 1):
            for i in range(self.width):
                args = [f"n{layer - 1}_{k}" for k in self.around(i)]
                sheet.add_node(f"n{layer}_{i}", self.function, args=args)
        outputs = [f"n{self.layers}_{i}" for i in range(self.width)]
        sheet.compute(outputs)

        def step(change: tuple[int, float]) -> list[float]:
            i, value = change
            sheet.insert(f"n0_{i}", value)
            sheet.compute(outputs)
            return sheet.value(outputs)

        return step


def cases(setting: Setting) -> list[Case]:
    large, small = Grid(100, setting), Grid(20, setting)

    def reaktiv(goal: float) -> Peer:
        return Peer(Side("reaktiv", large.in_reaktiv, needs="reaktiv"), faster(goal))

    def contest(
        grid: Grid, ours: Side, peer: Peer, how: str = "", *, wander: bool = False
    ) -> Contest:
        return Contest(
            f"{grid.layers} × {grid.width}{how}",
            grid.draw_any if wander else grid.draw_one,
            ours,
            (peer,),
            unit="stale node",
            per=grid.stale,
        )

    return [
        contest(large, Side("reactgrad", large.ours), reaktiv(60.0)),
        contest(
            large,
            Side("reactgrad", lambda: large.ours("equal")),
            reaktiv(30.0),
            ", a cutoff on every node",
        ),
        contest(
            small,
            Side("reactgrad", small.ours),
            Peer(Side("loman", small.in_loman, needs="loman"), faster(2000.0)),
        ),
        contest(
            large,
            Side("reactgrad", lambda: large.ours(sets=SETS)),
            Peer(Side("reaktiv", large.in_reaktiv, needs="reaktiv")),
            ", another input each time",
            wander=True,
        ),
    ]


WORKLOAD = Workload("B4", "reactive grid", cases)


def test_b04(benchmark: Any, race: Any) -> None:
    race(benchmark)
