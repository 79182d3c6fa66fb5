"""A block of edits: the graph that it leads to as if built that way, or nothing at all (rule E11)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.laws.full_state import differences, full_state
from tests.laws.random_program import Code, same_bits

CODES = st.integers(0, (1 << 48) - 1)
OPS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: rg.maximum(a, b),
    lambda a, b: a - b,
    lambda a, b: rg.arctan2(a, b),
]
LEAVES = 3

Edges = list[tuple[int, int]]  # the operands of each computed node


class Abort(Exception):
    """What ends a block."""


class Twins:
    """A graph that is edited, and what builds the same one anew."""

    def __init__(self, nodes: list[int], distrust: bool) -> None:
        self.ops: list[int] = []
        self.edges: Edges = []
        self.cutoffs: list[bool] = []
        for i, number in enumerate(nodes):
            code = Code(number)
            self.ops.append(code.pick(len(OPS)))
            self.edges.append((code.pick(LEAVES + i), code.pick(LEAVES + i)))
            self.cutoffs.append(code.pick(4) == 0)
        self.values = [np.array([1.0, -2.0, 0.5]) + i for i in range(LEAVES)]
        self.graph, self.made = self.build()
        self.graph._scheduler.distrust |= distrust
        self.output = self.made[-1].sum()
        self.gradients = [self.gradient(self.output, leaf) for leaf in self.made[:LEAVES]]

    @staticmethod
    def gradient(output: rg.Var, leaf: rg.Var) -> Any:
        return rg.grad(output, leaf, allow_unused=True)

    def network(self, edges: Edges) -> nx.MultiDiGraph:
        network = nx.MultiDiGraph()
        network.add_nodes_from(range(LEAVES + len(edges)))
        for i, pair in enumerate(edges):
            network.add_edges_from((parent, LEAVES + i) for parent in pair)
        return network

    def build(self) -> tuple[rg.Graph, list[rg.Var]]:
        """The same nodes in the same order of creation: gradients add up contributions in it."""
        graph = rg.Graph()
        made: list[Any] = [graph.param(value) for value in self.values]
        first = made[0]
        made += [OPS[op](first, first) for op in self.ops]
        with graph.edit():
            for var, (a, b) in zip(made[LEAVES:], self.edges, strict=True):
                var.rewire(made[a], made[b])
        for var, cutoff in zip(made[LEAVES:], self.cutoffs, strict=True):
            var.cutoff = "equal" if cutoff else None
        return graph, made

    def compare(self, code: Code) -> None:
        _, twins = self.build()
        for var, twin in zip(self.made, twins, strict=True):
            if code.pick(2):
                assert same_bits(var.value, twin.value)
        output = twins[-1].sum()
        for leaf, gradient in enumerate(self.gradients):
            if gradient is not None:
                wanted = self.gradient(output, twins[leaf])
                expected = np.zeros(3) if wanted is None else wanted.value
                assert same_bits(gradient.value, np.asarray(expected))
            else:  # it may depend on it by now
                self.gradients[leaf] = self.gradient(self.output, self.made[leaf])
        self.graph.check_invariants()


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    nodes=st.lists(CODES, min_size=3, max_size=12),
    batches=st.lists(st.lists(CODES, min_size=1, max_size=5), max_size=8),
)
def test_a_random_block_is_the_graph_built_anew_or_nothing(
    distrust: bool, nodes: list[int], batches: list[list[int]]
) -> None:
    twins = Twins(nodes, distrust)
    made, graph = twins.made, twins.graph
    versions = [0] * len(made)
    for batch in batches:
        wanted = list(twins.edges)
        asked: list[tuple[int, int, int]] = []
        code = Code(0)
        for number in batch:
            code = Code(number)
            node, position, parent = code.pick(len(wanted)), code.pick(2), code.pick(len(made))
            pair = [*wanted[node]]
            pair[position] = parent
            wanted[node] = (pair[0], pair[1])
            asked.append((node, position, parent))
        abort, style = code.pick(6) == 5, code.pick(4)
        network = twins.network(wanted)
        fits = nx.is_directed_acyclic_graph(network)
        before = full_state(graph)

        def play(
            asked: Any = asked, abort: bool = abort, style: int = style, before: Any = before
        ) -> None:
            with graph.transaction() if style == 3 else graph.edit():
                with graph.edit():
                    for node, position, parent in asked:
                        made[LEAVES + node].replace_parent(position, made[parent])
                    assert not differences(before, full_state(graph)), "nothing is made inside"
                if abort:
                    raise Abort

        if abort and fits:
            with pytest.raises(Abort):
                play()
            if style != 3:  # a transaction has made it, and taken it back
                assert not differences(before, full_state(graph))
        elif fits:
            play()
            twins.edges = wanted
        else:
            with pytest.raises(rg.CycleError if not (abort and style != 3) else Abort) as caught:
                play()
            if isinstance(caught.value, rg.CycleError):
                path = [next(i for i, v in enumerate(made) if v is p) for p in caught.value.path]
                assert path[0] == path[-1]
                assert all(network.has_edge(a, b) for a, b in pairwise(path))
            assert not differences(before, full_state(graph))
        if code.pick(3) == 0:
            leaf = code.pick(LEAVES)
            twins.values[leaf] = code.array((3,))
            made[leaf].set(twins.values[leaf])
        twins.compare(code)
        now = [var.value_version for var in made]
        assert all(old <= new for old, new in zip(versions, now, strict=True))
        versions = now


SHAPES = [(3,), (), (2, 3), (2,), (1,)]


@given(nodes=st.lists(CODES, min_size=3, max_size=10), batches=st.lists(CODES, max_size=8))
def test_a_block_that_does_not_fit_by_its_shapes_changes_nothing(
    nodes: list[int], batches: list[int]
) -> None:
    graph = rg.Graph()
    leaves = [np.full(shape, 0.5) + i for i, shape in enumerate(SHAPES)]
    made: list[Any] = [graph.param(leaf) for leaf in leaves]
    edges: Edges = []
    for number in nodes:
        code = Code(number)
        for _ in range(4):
            pair = code.pick(len(made)), code.pick(len(made))
            try:
                np.broadcast_shapes(made[pair[0]].shape, made[pair[1]].shape)
            except ValueError:
                continue
            made.append(made[pair[0]] * made[pair[1]])
            edges.append(pair)
            break
    if not edges:
        return
    output = made[-1].sum()
    gradients = [rg.grad(output, leaf, allow_unused=True) for leaf in made[: len(leaves)]]
    graph.forward(output, *[gradient for gradient in gradients if gradient is not None])
    for number in batches:
        code = Code(number)
        wanted = list(edges)
        asked = []
        for _ in range(1 + code.pick(3)):
            node, position = code.pick(len(edges)), code.pick(2)
            parent = code.pick(len(leaves) + node)  # acyclic in any case
            pair = [*wanted[node]]
            pair[position] = parent
            wanted[node] = (pair[0], pair[1])
            asked.append((node, position, parent))
        values: list[Any] = list(leaves)
        fits = True
        for a, b in wanted:
            try:
                values.append(values[a] * values[b])
            except ValueError:
                fits = False
                break
        before = full_state(graph)

        def play(asked: Any = asked) -> None:
            with graph.edit():
                for node, position, parent in asked:
                    made[len(leaves) + node].replace_parent(position, made[parent])

        if not fits:
            with pytest.raises(rg.ShapeError):
                play()
            assert not differences(before, full_state(graph))
            continue
        play()
        edges = wanted
        for var, value in zip(made, values, strict=True):
            assert var.shape == value.shape
            assert same_bits(np.asarray(var.value), np.asarray(value))
        twin = rg.Graph()
        twins: list[Any] = [twin.param(leaf) for leaf in leaves]
        for a, b in edges:
            twins.append(twins[a] * twins[b])
        expected = twins[-1].sum()
        for leaf, gradient in enumerate(gradients):
            if gradient is not None:
                wanted_one = rg.grad(expected, twins[leaf], allow_unused=True)
                zero = np.zeros(leaves[leaf].shape)
                value = zero if wanted_one is None else wanted_one.value
                assert gradient.shape == leaves[leaf].shape
                np.testing.assert_allclose(gradient.value, value, rtol=1e-12)
        graph.check_invariants()
