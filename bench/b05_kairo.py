"""B5: the kairo suite (by the shape in milomg's js-reactivity-benchmark), beside reaktiv.

Each suite is written in each library's own style, with effects at its end; one step writes one
value. The functions that each side calls are counted: every count must be that of the suite.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import reactgrad as rg
from bench._calls import Calls, uncounted
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import exactly, faster
from bench._peers import load


class Ours:
    """The vocabulary of the suites in reactgrad: functions get their sources as arguments."""

    def __init__(self, tally: Callable[..., Any] = uncounted) -> None:
        self.graph = rg.Graph()
        self.tally = tally
        self._observers: list[Any] = []

    def signal(self, value: Any) -> Any:
        return self.graph.input(value)

    def computed(self, function: Callable[..., Any], *sources: Any, equal: bool = False) -> Any:
        return rg.lift(self.tally(function), cutoff="equal" if equal else None)(*sources)

    def effect(self, node: Any) -> None:
        self._observers.append(node.observe(lambda old, new: None))

    def unstable(self, head: Any, double: Any, inverse: Any, reads: int) -> Any:
        def current(value: Any) -> Any:
            return sum((double if value % 2 else inverse).value for _ in range(reads))

        return rg.lift(self.tally(current))(head)

    def write(self, signal: Any, value: Any) -> None:
        signal.set(value)
        self.graph.stabilize()

    def read(self, node: Any) -> Any:
        return node.value


class Reaktiv:
    """The same vocabulary in reaktiv: functions read their sources.

    Each arity has its own function, as a user would write it, without extra calls.
    """

    def __init__(self, tally: Callable[..., Any] = uncounted) -> None:
        self._reaktiv = load("reaktiv")
        self.tally = tally
        self._effects: list[Any] = []

    def signal(self, value: Any) -> Any:
        return self._reaktiv.Signal(value)

    def computed(self, function: Callable[..., Any], *sources: Any, equal: bool = False) -> Any:
        # Its cutoff is always on, for results that are the same object, such as small integers.
        function = self.tally(function)
        if len(sources) == 1:
            (source,) = sources
            return self._reaktiv.Computed(lambda: function(source()))
        return self._reaktiv.Computed(lambda: function(*[source() for source in sources]))

    def effect(self, node: Any) -> None:
        self._effects.append(self._reaktiv.Effect(lambda: node() and None))

    def unstable(self, head: Any, double: Any, inverse: Any, reads: int) -> Any:
        def current() -> Any:
            value = head()
            return sum((double if value % 2 else inverse)() for _ in range(reads))

        return self._reaktiv.Computed(self.tally(current))

    def write(self, signal: Any, value: Any) -> None:
        signal.set(value)

    def read(self, node: Any) -> Any:
        return node()


@dataclass(frozen=True)
class Suite:
    """A shape, and the number of calls that one write makes.

    Attributes
    ----------
    build
        Builds the shape and returns (signals, the nodes to be compared).
    calls
        The number of calls of computed functions in a graph of size n, for one new value.
    """

    name: str
    build: Callable[[Any, int], tuple[list[Any], list[Any]]]
    calls: Callable[[int], int]
    size: int


def avoidable(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build a chain in which a constant near the start makes the rest unnecessary."""
    head = api.signal(0)
    first = api.computed(lambda v: v, head, equal=True)
    constant = api.computed(lambda v: 0, first, equal=True)
    chain = api.computed(lambda v: v + 1, constant, equal=True)
    for i in range(2, size):
        chain = api.computed(lambda v, i=i: v + i, chain, equal=True)
    api.effect(chain)
    return [head], [chain]


def broad(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build many short chains from one signal."""
    head = api.signal(0)
    ends = []
    for i in range(size):
        middle = api.computed(lambda v, i=i: v + i, head)
        ends.append(api.computed(lambda v: v + 1, middle))
        api.effect(ends[-1])
    return [head], ends


def deep(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build one long chain."""
    head = node = api.signal(0)
    for _ in range(size):
        node = api.computed(lambda v: v + 1, node)
    api.effect(node)
    return [head], [node]


def diamond(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build several nodes of one signal that are joined again."""
    head = api.signal(0)
    sides = [api.computed(lambda v: v + 1, head) for _ in range(size)]
    join = api.computed(lambda *values: sum(values), *sides)
    api.effect(join)
    return [head], [join]


def mux(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build a node that joins many signals, and is split again."""
    heads = [api.signal(0) for _ in range(size)]
    joined = api.computed(lambda *values: dict(enumerate(values)), *heads, equal=True)
    ends = []
    for i in range(size):
        part = api.computed(lambda found, i=i: found[i], joined, equal=True)
        ends.append(api.computed(lambda v: v + 1, part))
        api.effect(ends[-1])
    return heads, ends


def repeated(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build a node that has the same signal as an operand many times."""
    head = api.signal(0)
    node = api.computed(lambda *values: sum(values), *[head] * size)
    api.effect(node)
    return [head], [node]


def triangle(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build a chain all of whose nodes are summed."""
    head = node = api.signal(0)
    rungs = []
    for _ in range(size):
        rungs.append(node)
        node = api.computed(lambda v: v + 1, node)
    total = api.computed(lambda *values: sum(values), *rungs)
    api.effect(total)
    return [head], [total]


def unstable(api: Any, size: int) -> tuple[list[Any], list[Any]]:
    """Build a node that reads one of two others, depending on the signal."""
    head = api.signal(0)
    double = api.computed(lambda v: v * 2, head)
    inverse = api.computed(lambda v: -v, head)
    current = api.unstable(head, double, inverse, size)
    api.effect(current)
    return [head], [current]


SUITES = [
    Suite("avoidable", avoidable, lambda n: 2, 5),
    Suite("broad", broad, lambda n: 2 * n, 50),
    Suite("deep", deep, lambda n: n, 50),
    Suite("diamond", diamond, lambda n: n + 1, 5),
    Suite("mux", mux, lambda n: n + 2, 100),
    Suite("repeated", repeated, lambda n: 1, 30),
    Suite("triangle", triangle, lambda n: n, 10),
    Suite("unstable", unstable, lambda n: 2, 20),
]


def play(api: Any, suite: Suite, size: int) -> Step:
    """Build a suite and return its step."""
    signals, nodes = suite.build(api, size)
    write, read = api.write, api.read
    for signal in signals:  # so that every later value differs
        write(signal, -1)

    def step(change: tuple[float, int]) -> Any:
        at, value = change
        write(signals[int(at * len(signals))], value)
        return [read(node) for node in nodes]

    return step


def counted(suite: Suite, size: int) -> tuple[float, float]:
    """Return the calls of a hundred writes, and the number that they must make."""
    calls = Calls()
    step = play(Ours(calls), suite, size)
    step((0.0, -2))
    calls.count = 0
    for value in range(100):
        step((0.5, value))
    return calls.count, 100 * suite.calls(size)


def draw(rng: np.random.Generator) -> tuple[float, int]:
    """Draw a signal, and a new value for it."""
    return float(rng.random()), int(rng.integers(1000, 2**40))


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for suite in SUITES:
        size = min(suite.size, 5) if setting.small else suite.size
        if setting.permuted:
            size += size // 5
        found.append(
            Contest(
                suite.name,
                draw,
                Side("reactgrad", lambda s=suite, n=size: play(Ours(), s, n)),
                (
                    Peer(
                        Side(
                            "reaktiv",
                            lambda s=suite, n=size: play(Reaktiv(), s, n),
                            needs="reaktiv",
                        ),
                        faster(10.0),
                    ),
                ),
                constant=suite.build is avoidable,
            )
        )
        found.append(
            Count(
                suite.name,
                "calls of 100 writes",
                lambda s=suite, n=size: counted(s, n),
                "the suite",
                exactly(),
            )
        )
    return found


WORKLOAD = Workload("B5", "kairo", cases)


def test_b05_kairo(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
