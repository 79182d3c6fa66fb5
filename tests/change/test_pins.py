"""Pins: values given to computed nodes, and what becomes of them afterwards."""

from __future__ import annotations

import pytest

import reactgrad as rg


def pair(a: int) -> tuple[int, int]:
    return a, a + 1


def test_an_output_of_a_pinned_function_cannot_be_touched(g: rg.Graph) -> None:
    first, second = rg.lift(pair, outputs=2)(g.input(1))
    function = first.parents[0]
    assert (first.value, second.value) == (1, 2)
    function.pin((8, 9))
    with pytest.raises(rg.SetError, match=f"'{function.label}' is pinned"):
        first.touch()
    assert (first.value, second.value) == (8, 9)
    first.pin(3)
    with pytest.raises(rg.SetError, match="is pinned"):
        first.touch()
    g.check_invariants()
    first.unpin()
    function.unpin()
    first.touch()
    assert (first.value, second.value) == (1, 2)
    g.check_invariants()


def test_what_is_unpinned_reads_anew(g: rg.Graph) -> None:
    """Its reads of before may have turned round meanwhile, and are no cycle."""
    turn = g.input(0)
    nodes: dict[str, rg.Var] = {}
    a = rg.lift(lambda s: nodes["b"].value if s == 0 else 1)(turn)
    b = rg.lift(lambda s: nodes["a"].value if s == 1 else 2)(turn)
    nodes.update(a=a, b=b)
    assert (a.value, b.value) == (2, 2)
    a.pin(7)
    turn.set(1)
    assert b.value == 7
    fork = g.fork()
    for graph in (g, fork):
        graph[a].unpin()
        assert (graph[a].value, graph[b].value) == (1, 1)
        graph.check_invariants()


@pytest.mark.parametrize("events", [False, True])
def test_why_a_node_runs_again_after_a_pin(events: bool, g: rg.Graph) -> None:
    g.events = events
    y = rg.lift(lambda v: v)(g.input(1))
    y.value
    y.pin(3)
    y.unpin()
    cause = "was unpinned"
    assert f"{y.label} {cause}" in str(g.why(y))
    y.value
    y.touch()
    assert f"{y.label} was touched" in str(g.why(y))
