"""Functions that know Vars of a graph, computed in a fork of it."""

from __future__ import annotations

import gc
import time
import weakref

import pytest

import reactgrad as rg


def test_a_function_reads_the_twins_of_what_it_knows_in_forks_of_forks() -> None:
    g = rg.Graph()
    x, z = g.input(1), g.input(10)
    double = rg.lift(lambda value: 2 * value)(z)
    y = rg.lift(lambda value: value + double.value)(x)
    assert y.value == 21
    first = g.fork()
    second = first.fork()
    first[z].set(20)
    second[z].set(30)
    assert (second[y].value, first[y].value, y.value) == (61, 41, 21)
    assert second[y].parents == [second[x], second[double]]
    z.set(100)
    assert not first[y].is_stale
    assert (first[y].value, y.value) == (41, 201)
    for graph in (g, first, second):
        graph.check_invariants()
        assert not graph._followed


def test_what_a_fork_changed_away_is_not_read_there_any_more() -> None:
    g = rg.Graph()
    x, a, b = g.input(True), g.input(1), g.input(2)
    y = rg.lift(lambda first: (a if first else b).value)(x)
    assert y.value == 1
    with g.whatif({x: False}) as w:
        run = w.forward(w[y])
        assert (w[y].value, run.ran) == (2, [w[y]])
        assert w[y].parents == [w[x], w[b]]
    assert y.parents == [x, a]


def test_a_node_made_after_the_fork_has_no_twin_to_be_read() -> None:
    g = rg.Graph()
    box: list[rg.Var] = []
    x = g.input(1)
    y = rg.lift(lambda value: value + sum(one.value for one in box))(x)
    assert y.value == 1
    h = g.fork()
    box.append(g.input(5))
    h[x].set(2)
    with pytest.raises(rg.GraphError, match="has no twin in this graph"):
        h[y].value
    x.set(3)
    assert y.value == 8


def test_values_of_other_graphs_are_read_as_they_are() -> None:
    other = rg.Graph().input(7)
    g = rg.Graph()
    x = g.input(1)
    y = rg.lift(lambda value: value + other.value)(x)
    h = g.fork()
    h[x].set(2)
    assert (y.value, h[y].value) == (8, 9)


def test_a_what_if_is_open_once_at_a_time(g: rg.Graph) -> None:
    x = g.input(1.0)
    whatif = g.whatif({x: 2.0})
    with whatif as w:
        with pytest.raises(rg.GraphError, match="open already"), whatif:
            pass
        assert w[x].value == 2.0
    with whatif as w:
        assert w[x].value == 2.0


@pytest.mark.parametrize("changes", [[1], 3.0, "x"])
def test_what_a_what_if_changes_is_a_mapping(g: rg.Graph, changes: object) -> None:
    with pytest.raises(rg.DTypeError, match=r"g\.whatif\(.*new values are one mapping"):
        g.whatif(changes)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_fork_that_several_threads_compute_is_let_go_afterwards() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    slow = [rg.lift(lambda v, i=i: (time.sleep(0.01), v + i)[1])(x) for i in range(4)]
    readers = [rg.lift(lambda v, one=one: v + one.value)(x) for one in slow]
    fork = g.fork()
    fork[x].set(10.0)
    found = fork.forward(*[fork[one] for one in readers], executor=rg.Threads(4))
    assert len(found.ran) == 8
    assert [fork[one].value for one in readers] == [20.0, 21.0, 22.0, 23.0]
    assert not g._followed
    alive = weakref.ref(fork)
    del fork, found
    gc.collect()
    assert alive() is None
