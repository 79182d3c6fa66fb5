"""Graphs as networkx graphs and back: all attributes, the same state, and it goes on alike."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import MultiDiGraphMatcher

import reactgrad as rg
from reactgrad.io._capture import capture
from tests.io.files import assert_same_state, same, same_definition
from tests.io.test_random_graphs import CODES, wear
from tests.laws.random_program import Code, Program


def node_match(a: dict[str, Any], b: dict[str, Any]) -> bool:
    if "name" in a:  # what has a name is kept where it has come back
        a, b = ({word: x for word, x in one.items() if word != "kept"} for one in (a, b))
    if a.keys() != b.keys():
        return False
    mine, its = a["definition"], b["definition"]
    if type(mine) is not type(its) or not same_definition(mine, its):
        return False
    return all(same(a[word], b[word]) for word in a if word != "definition")


def assert_isomorphic(a: nx.MultiDiGraph, b: nx.MultiDiGraph) -> None:
    def edge_match(x: Any, y: Any) -> bool:
        return sorted(map(sorted, map(dict.items, x.values()))) == sorted(
            map(sorted, map(dict.items, y.values()))
        )

    assert MultiDiGraphMatcher(a, b, node_match, edge_match).is_isomorphic()
    assert a.graph == b.graph
    # Called alike, too.
    assert set(a.edges) == set(b.edges)
    assert all(node_match(a.nodes[one], b.nodes[one]) for one in a)


@pytest.mark.parametrize("cutoffs", [False, True], ids=["plain", "cutoffs"])
@pytest.mark.parametrize("lifted", [False, True], ids=["arrays", "functions"])
@given(
    nodes=st.lists(CODES, min_size=2, max_size=20),
    actions=st.lists(CODES, max_size=10),
    worn=CODES,
)
def test_random_graphs_come_back_with_everything(
    cutoffs: bool, lifted: bool, nodes: list[int], actions: list[int], worn: int
) -> None:
    program = Program(nodes, cutoffs=cutoffs, lifted=lifted, compare=False)
    for number in actions:
        program.play(number)
    wear(program, Code(worn))
    there = rg.to_networkx(program.graph)
    assert nx.is_directed_acyclic_graph(there)
    back = rg.from_networkx(there)
    back.check_invariants()
    assert_same_state(capture(program.graph), capture(back))
    assert_isomorphic(there, rg.to_networkx(back))


def test_isomorphism_sees_every_attribute() -> None:
    """The check above can fail: each attribute, changed, is found."""
    g = rg.Graph()
    x, w = g.input([1.0, 2.0], name="x"), g.param(2.0, name="w")
    y = rg.tanh(x * w.detach()) + w
    y.cutoff, y.name = "equal", "y"
    w.freeze()
    _ = y.value
    there = rg.to_networkx(g)
    assert_isomorphic(there, rg.to_networkx(rg.from_networkx(there)))
    for one, row in there.nodes(data=True):
        for word in row:
            other = rg.to_networkx(g)
            del other.nodes[one][word]
            with pytest.raises(AssertionError):
                assert_isomorphic(there, other)
    for a, b, key in there.edges:
        for word in there.edges[a, b, key]:
            other = rg.to_networkx(g)
            other.edges[a, b, key][word] = 7
            with pytest.raises(AssertionError):
                assert_isomorphic(there, other)


def test_what_comes_back_is_as_stale_as_it_was_and_goes_on() -> None:
    g = rg.Graph()
    x, z = g.input([1.0, 2.0], name="x"), g.input([3.0, 4.0], name="z")
    a, b = rg.tanh(x), rg.exp(z)
    c = a * b
    a.name, b.name, c.name = "a", "b", "c"
    _ = c.value
    x.set([0.5, 0.5])
    h = rg.from_networkx(rg.to_networkx(g))
    assert [var.name for var in h.forward("c").ran] == ["a", "c"]
    np.testing.assert_array_equal(h["c"].value, c.value)
    assert h["c"].value_version == c.value_version == 2
    h["z"].set([0.0, 0.0])
    assert [var.name for var in h.forward("c").ran] == ["b", "c"]


def small(**of_y: Any) -> nx.DiGraph:
    n = nx.DiGraph()
    n.add_node("x", op="input", value=[1.0, 2.0])
    n.add_node("w", op="param", value=3.0)
    n.add_node("y", **{"op": "multiply", **of_y})
    n.add_edge("x", "y", position=0)
    n.add_edge("w", "y", position=1)
    return n


def test_a_graph_written_by_hand() -> None:
    g = rg.from_networkx(small())
    assert (g["y"].shape, g["y"].is_stale, g["y"].parents) == ((2,), True, [g["x"], g["w"]])
    np.testing.assert_array_equal(g["y"].value, [3.0, 6.0])
    np.testing.assert_array_equal(rg.grad(g["y"].sum(), g["w"]).value, 3.0)
    n = small(op="twice")
    n.remove_edge("w", "y")
    np.testing.assert_array_equal(
        rg.from_networkx(n, {"twice": lambda v: v * 2.0})["y"].value, [2.0, 4.0]
    )
    n.nodes["y"].update(op="concatenate", attrs=(0,))
    np.testing.assert_array_equal(rg.from_networkx(n)["y"].value, [1.0, 2.0])


def test_mistakes_are_explained() -> None:
    n = small()
    n.add_edge("y", "x")
    with pytest.raises(rg.CycleError, match="x -> y -> x|y -> x -> y") as caught:
        rg.from_networkx(n)
    assert set(caught.value.path) == {"x", "y"}
    with pytest.raises(rg.GraphError, match=r"'y' has the op 'swish', which is unknown"):
        rg.from_networkx(small(op="swish"))
    n = small()
    del n.edges["w", "y"]["position"]
    with pytest.raises(rg.GraphError, match=r"operands of node 'y' .* position=0"):
        rg.from_networkx(n)
    n = small()
    del n.nodes["x"]["value"]
    with pytest.raises(rg.GraphError, match="'x' is a leaf: give it a value="):
        rg.from_networkx(n)
    n = small()
    n.nodes["x"]["value"] = [[1.0, 2.0]]
    n.nodes["w"]["value"] = [1.0, 2.0, 3.0]
    with pytest.raises(rg.ShapeError, match="multiply"):
        rg.from_networkx(n)
    n = small()
    n.nodes["w"]["value"] = 3
    with pytest.raises(rg.LoadError, match="is a param and not made of floats"):
        rg.from_networkx(n)
