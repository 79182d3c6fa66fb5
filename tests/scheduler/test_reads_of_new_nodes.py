"""Functions that build the nodes that they read: linear work, however deep it goes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType

import pytest

import reactgrad as rg


def calls(work: Callable[[], object]) -> int:
    """Calls of Python functions, in all threads."""
    count = 0

    def event(frame: FrameType, kind: str, argument: object) -> None:
        nonlocal count
        count += kind == "call"

    threading.setprofile(event)
    sys.setprofile(event)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count


def level(x: rg.Var, below: Callable[[], rg.Var]) -> rg.Var:
    return rg.lift(lambda value: value + below().value)(x)


def built_before(x: rg.Var, levels: int) -> rg.Var:
    node = x
    for _ in range(levels):
        node = level(x, lambda node=node: node)
    return node


def built_inside(x: rg.Var, levels: int) -> rg.Var:
    return level(x, lambda: built_inside(x, levels - 1)) if levels else x


def cost(build: Callable[[rg.Var, int], rg.Var], levels: int) -> int:
    x = rg.Graph().input(1.0)

    def work() -> None:
        node = build(x, levels)
        assert node.value == levels + 1.0

    return calls(work)


@pytest.mark.slow
def test_nodes_that_are_built_where_they_are_read_cost_little_more_than_others() -> None:
    assert cost(built_inside, 1_000) <= 2 * cost(built_before, 1_000)


@pytest.mark.slow
def test_the_work_grows_with_the_levels_and_no_faster() -> None:
    assert cost(built_inside, 4_000) <= 4.1 * cost(built_inside, 1_000)


@pytest.mark.parametrize("executor", [None, rg.Threads(2)])
def test_all_levels_follow_a_change(executor: rg.Threads | None) -> None:
    g = rg.Graph()
    x = g.input(1.0)
    node = built_inside(x, 200)
    for value in (1.0, 2.0, 3.0):
        x.set(value)
        g.forward(node, executor=executor)
        assert node.value == 201 * value
        g.check_invariants()


@pytest.mark.slow
def test_nodes_built_afterwards_are_above_all_others() -> None:
    """Ranks of nodes that were moved up stay below those of new nodes, also in forks."""
    g = rg.Graph()
    x = g.input(1.0)
    node = built_inside(x, 3_000)
    node.value
    for graph in (g.fork(), g):
        total = graph[node] + graph[x] * 2.0
        assert total.value == 3003.0
        graph.check_invariants()
    x.set(2.0)
    assert total.value == 6006.0
    g.check_invariants()
