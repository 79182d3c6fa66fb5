"""B4: a grid of Python functions; one input changes, all outputs are read.

Node (l, i) is a function of (l - 1, i - 1), (l - 1, i), (l - 1, i + 1), around the edges: a
weighted mean, so that the last layer still shows the inputs. Where cutoffs compare, it is one of
integers, in which no change is ever lost: a mean would be rounded to its former value on the way,
and fewer nodes would run than in the peer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._calls import Calls, uncounted
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import exactly, faster
from bench._peers import load

# After this number of sets of an input its plan is cached.
SETS = 3

# The range of the integers, as the masks below keep it.
RANGE = 0xFFFFFF + 1


def mixed(a: float, b: float, c: float) -> float:
    """Return a weighted mean."""
    return 0.25 * a + 0.5 * b + 0.25 * c


def mixed_otherwise(a: float, b: float, c: float) -> float:
    """Return a weighted mean in another order."""
    return 0.5 * c + a * 0.25 + 0.25 * b


def whole(a: int, b: int, c: int) -> int:
    """Return a function of integers that loses no change."""
    return (3 * a + 5 * b + 7 * c) & 0xFFFFFF


def whole_otherwise(a: int, b: int, c: int) -> int:
    """Return another such function."""
    return (c * 9 - a * 5 - 7 * b) & 0xFFFFFF


class Grid:
    """The shape of a grid and the function of its nodes.

    With `cutoff` it is one of integers, compared after each run.
    """

    def __init__(self, side: int, setting: Setting, cutoff: str | None = None) -> None:
        layers = setting.size(side, 4)
        self.width = layers + layers // 5 if setting.permuted else layers
        self.layers = layers
        self.cutoff = cutoff
        means, integers = (mixed, mixed_otherwise), (whole, whole_otherwise)
        self.function = (integers if cutoff else means)[setting.permuted]

    @property
    def stale(self) -> int:
        """The number of nodes that one input reaches."""
        return sum(min(2 * layer + 1, self.width) for layer in range(1, self.layers + 1))

    def around(self, i: int) -> tuple[int, int, int]:
        return (i - 1) % self.width, i, (i + 1) % self.width

    def start(self, i: int) -> float:
        """Return the first value of an input."""
        return i if self.cutoff else float(i)

    def draw_one(self, rng: np.random.Generator) -> tuple[int, float]:
        """Draw a new value for always the same input."""
        return self.width // 3, self.drawn(rng)

    def draw_any(self, rng: np.random.Generator) -> tuple[int, float]:
        return int(rng.integers(self.width)), self.drawn(rng)

    def drawn(self, rng: np.random.Generator) -> float:
        return int(rng.integers(RANGE)) if self.cutoff else float(rng.normal())

    def ours(self, *, sets: int = 0, count: Any = uncounted) -> Step:
        """Return the step, after each input was set `sets` times, the last time to its first value."""
        g = rg.Graph()
        inputs = row = [g.input(self.start(i)) for i in range(self.width)]
        node = rg.lift(count(self.function), cutoff=self.cutoff)
        for _ in range(self.layers):
            row = [node(*[row[k] for k in self.around(i)]) for i in range(self.width)]
        outputs, forward = row, g.forward

        def step(change: tuple[int, float]) -> list[float]:
            i, value = change
            inputs[i].set(value)
            forward(*outputs)
            return [output.value for output in outputs]

        for turn in reversed(range(sets)):
            for i in range(self.width):
                step((i, self.start(i) + turn))
        return step

    def counted(self) -> tuple[float, float]:
        """Return the calls of the function for one change, and the number of stale nodes."""
        calls, steps = Calls(), 3
        step = self.ours(count=calls)
        step((0, 0))
        calls.count, rng = 0, np.random.default_rng(6)
        for _ in range(steps):
            step(self.draw_one(rng))
        return calls.count / steps, self.stale

    def in_reaktiv(self) -> Step:
        reaktiv = load("reaktiv")
        function = self.function
        inputs = row = [reaktiv.Signal(self.start(i)) for i in range(self.width)]
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
            sheet.add_node(f"n0_{i}", value=self.start(i))
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
    """Return the cases of this workload."""
    large, small, cut = Grid(100, setting), Grid(20, setting), Grid(100, setting, "equal")

    def reaktiv(grid: Grid, goal: float | None = None) -> Peer:
        side = Side("reaktiv", grid.in_reaktiv, needs="reaktiv")
        return Peer(side, None if goal is None else faster(goal))

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
        contest(large, Side("reactgrad", large.ours), reaktiv(large, 60.0)),
        contest(cut, Side("reactgrad", cut.ours), reaktiv(cut, 30.0), ", a cutoff on every node"),
        Count(
            f"{cut.layers} × {cut.width}, a cutoff on every node",
            "calls",
            cut.counted,
            "stale nodes",
            exactly(),
        ),
        contest(
            small,
            Side("reactgrad", small.ours),
            Peer(Side("loman", small.in_loman, needs="loman"), faster(2000.0)),
        ),
        contest(
            large,
            Side("reactgrad", lambda: large.ours(sets=SETS)),
            reaktiv(large),
            ", another input each time",
            wander=True,
        ),
    ]


WORKLOAD = Workload("B4", "reactive grid", cases)


def test_b04(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
