"""B10: edits of the topology, beside networkx, which checks and sorts again after each edit.

A step makes an edit and undoes it: an edge is split by a new node, then restored; an operand that
was a constant is taken from another node (an edge added), then from the constant again (the edge
removed).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import networkx
import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import Goal, at_most, faster, within

SIZES = (1_000, 10_000, 100_000)
EVERY = 4  # one node in this number has a free operand
EDITS = 2  # edits in a step
NEW = 1_000_000  # more than the number of nodes


class Edges:
    """A random DAG: node i + 1 adds two earlier ones, or one and a constant (``None``)."""

    def __init__(self, nodes: int, permuted: bool) -> None:
        pick = Random(23 if permuted else 17)
        window = 48 if permuted else 64
        self.nodes = nodes
        self.window = window
        self.swapped = permuted  # True if the constant comes first
        self.pairs: list[tuple[int, int | None]] = []
        for i in range(1, nodes):
            first = pick.randrange(max(0, i - window), i)
            free = i % EVERY == 1
            self.pairs.append((first, None if free else pick.randrange(max(0, i - window), i)))
        self.free = [i for i, (_, second) in enumerate(self.pairs, 1) if second is None]

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw a node with a free operand, anywhere, and an earlier node."""
        child = self.free[int(rng.integers(len(self.free)))]
        return child, child - 1 - int(rng.integers(min(child, self.window)))


Look = Callable[[int], object]


def unseen(child: int) -> None:
    """Do nothing between an edit and the one that undoes it."""


class Ours:
    """The DAG as a graph."""

    def __init__(self, edges: Edges) -> None:
        self.graph = rg.Graph()
        self.zero = self.graph.const(np.zeros(1))
        self.values: list[Any] = [self.graph.input(np.ones(1))]
        self.index = {self.zero: -1, self.values[0]: 0}
        for i, (first, second) in enumerate(edges.pairs, 1):
            operands = [self.values[first], self.zero if second is None else self.values[second]]
            if edges.swapped:
                operands.reverse()
            self.values.append(operands[0] + operands[1])
            self.index[self.values[i]] = i
        # The operand that edits replace.
        self.fixed, self.open = (1, 0) if edges.swapped else (0, 1)

    def split(self, look: Look = unseen) -> Step:
        values, at = self.values, self.fixed

        def step(drawn: tuple[int, int]) -> Any:
            var = values[drawn[0]]
            parent = var.parents[at]
            var.replace_parent(at, rg.tanh(parent))
            look(drawn[0])
            var.replace_parent(at, parent)
            return drawn

        return step

    def add(self, look: Look = unseen) -> Step:
        values, at, zero = self.values, self.open, self.zero

        def step(drawn: tuple[int, int]) -> Any:
            child, parent = drawn
            var = values[child]
            var.replace_parent(at, values[parent])
            look(drawn[0])
            var.replace_parent(at, zero)
            return drawn

        return step

    def add_with_adjoints(self) -> Step:
        """Return the same step while the gradient of the last node by the first is alive and was
        read.
        """
        gradient = rg.grad(self.values[-1].sum(), self.values[0])
        self.graph.forward(gradient)
        step = self.add()

        def held(drawn: tuple[int, int]) -> Any:
            assert gradient is not None
            return step(drawn)

        return held

    def added(self, child: int) -> set[int]:
        self.graph.check_invariants()
        parents = {parent for parent in self.values[child].parents if parent is not self.zero}
        known = {self.index[one] for one in parents if one in self.index}
        return known | {
            NEW + self.index[one.parents[0]] for one in parents if one not in self.index
        }


class InNetworkx:
    """The same edges; after each edit they are checked for cycles and sorted again."""

    def __init__(self, edges: Edges) -> None:
        self.graph: Any = networkx.DiGraph()
        self.graph.add_nodes_from(range(edges.nodes))
        self.first = [-1, *[first for first, _ in edges.pairs]]
        for i, pair in enumerate(edges.pairs, 1):
            self.graph.add_edges_from((parent, i) for parent in pair if parent is not None)

    def _order(self) -> list[Any]:
        return list(networkx.topological_sort(self.graph))  # raises where there is a cycle

    def split(self, look: Look = unseen) -> Step:
        graph = self.graph

        def step(drawn: tuple[int, int]) -> Any:
            child = drawn[0]
            parent = self.first[child]
            graph.remove_edge(parent, child)
            graph.add_edge(parent, "new")
            graph.add_edge("new", child)
            self._order()
            look(drawn[0])
            graph.remove_node("new")
            graph.add_edge(parent, child)
            self._order()
            return drawn

        return step

    def add(self, look: Look = unseen) -> Step:
        graph = self.graph

        def step(drawn: tuple[int, int]) -> Any:
            child, parent = drawn
            graph.add_edge(parent, child)
            self._order()
            look(drawn[0])
            if parent != self.first[child]:
                graph.remove_edge(parent, child)
            self._order()
            return drawn

        return step

    def added(self, child: int) -> set[int]:
        before = self.graph.predecessors
        return {NEW + next(before(one)) if one == "new" else one for one in before(child)}


def seen(graph: Ours | InNetworkx, how: str, drawn: tuple[int, int]) -> Any:
    """Return the nodes that an edited one adds, in the middle of the same step and after it.

    A new node counts as the one before it, plus ``NEW``.
    """
    found: list[set[int]] = []
    step = graph.split if how == "split" else graph.add
    step(lambda child: found.append(graph.added(child)))(drawn)
    found.append(graph.added(drawn[0]))
    return [sorted(one) for one in found]


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    sizes = (40, 60, 80) if setting.small else SIZES
    found: list[Case] = []

    def make(nodes: int, kind: Any, how: str, name: str) -> Side:
        made: list[Any] = []

        def build() -> Step:
            made.append(kind(Edges(nodes, setting.permuted)))
            return getattr(made[-1], how)()

        return Side(name, build, show=lambda drawn: seen(made[-1], how, drawn))

    def contest(name: str, nodes: int, how: str, *peers: Peer, goal: Goal | None = None) -> None:
        found.append(
            Contest(
                name,
                Edges(nodes, setting.permuted).draw,
                make(nodes, Ours, how, "reactgrad"),
                peers,
                goal=goal,
                unit="edit",
                per=EDITS,
            )
        )

    few, middle, many = sizes
    for how, what in (("split", "split an edge"), ("add", "add an edge, remove it")):
        for nodes in sizes:
            goal = faster(500.0) if nodes == middle else None
            peer = Peer(make(nodes, InNetworkx, how, "networkx"), goal)
            contest(f"{what}, {nodes:,} nodes", nodes, how, peer)
        # The same draws fit both graphs: those of the smaller one.
        itself = Peer(make(few, Ours, how, f"itself at {few:,}"), at_most(2.5))
        found.append(
            Contest(
                f"{what}, {many:,} nodes beside {few:,}",
                Edges(few, setting.permuted).draw,
                make(many, Ours, how, "reactgrad"),
                (itself,),
                unit="edit",
                per=EDITS,
                alike=False,
            )
        )
    for nodes in sizes:
        contest(
            f"add an edge, remove it, {nodes:,} nodes, adjoints kept",
            nodes,
            "add_with_adjoints",
            goal=within(60e-6),
        )
    return found


WORKLOAD = Workload("B10", "edits", cases)


def test_b10(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
