"""Forks: what they cost, that nothing leaks between them, and that nothing piles up."""

from __future__ import annotations

import gc
import os
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# All of the edits and forks of the lifetime tests; else a fiftieth.
FULL = "REACTGRAD_FULL" in os.environ


def cones(nodes: int, length: int = 100) -> tuple[rg.Graph, list[Any], list[Any]]:
    """A graph of chains of so many nodes, each with an input of its own; all clean."""
    g = rg.Graph()
    inputs = [g.input(np.full(2, 0.5)) for _ in range(nodes // length)]
    outputs: list[Any] = list(inputs)
    for _ in range(length - 1):
        outputs = [rg.tanh(y) for y in outputs]
    g.forward(*outputs)
    return g, inputs, outputs


def columns(graph: Any) -> Iterator[Any]:
    """All that a graph keeps by slot, and shares with its forks."""
    scheduler, host = graph._scheduler, graph._host
    yield from (scheduler.topology.parents, scheduler.topology.children)
    yield from (scheduler.topology.rank, scheduler.topology.serial)
    yield from (scheduler.versions.version, scheduler.versions.record)
    yield from (scheduler.staleness.mark, scheduler.staleness._keys, scheduler.leaf)
    yield from (host.ops, host.attrs, host.specs, host.data, host.sites, host._steps)


def written(graph: Any) -> list[int]:
    """How many rows of each column the graph has written since it was forked."""
    return [column.written for column in columns(graph)]


# --- cost ----------------------------------------------------------------------------------------


@pytest.mark.trusting
@pytest.mark.parametrize("nodes", [1_000, 30_000])
def test_a_what_if_writes_rows_of_what_it_touches_however_large_the_graph_is(nodes: int) -> None:
    g, inputs, outputs = cones(nodes)
    before = g.last_run
    with g.whatif({inputs[3]: np.zeros(2)}) as w:
        run = w.forward(w[outputs[3]])
        assert len(run.ran) == 99
        rows = written(w)
    assert max(rows) <= 100
    assert max(written(g)) == 0, "looking at a fork writes into its origin"
    assert float(outputs[3].value[0]) != 0.0
    assert g.last_run.ran == before.ran


@pytest.mark.trusting
def test_an_edit_of_a_fork_writes_rows_of_what_it_touches() -> None:
    g, _, outputs = cones(20_000)
    h = g.fork()
    tail = h[outputs[7]]
    tail.replace_parent(0, h[outputs[8]])
    tail.value
    assert max(written(h)) <= 8
    assert len(g) == len(h)
    assert outputs[7].parents[0] is not outputs[8]


@pytest.mark.slow
@pytest.mark.trusting
def test_a_thousand_forks_take_memory_for_what_differs() -> None:
    count = 1_000 if FULL else 100
    g, inputs, outputs = cones(1_000, length=20)
    large, many, _ = cones(20_000, length=20)
    for warm in (g, large):
        warm.fork()

    def bytes_a_fork(graph: rg.Graph, count: int, use: bool) -> float:
        gc.collect()
        tracemalloc.start()
        forks = [graph.fork() for _ in range(count)]
        if use:
            for i, h in enumerate(forks):
                h[inputs[i % len(inputs)]].set(np.full(2, float(i)))
                h[outputs[i % len(inputs)]].value
        taken = tracemalloc.get_traced_memory()[0] / count
        tracemalloc.stop()
        return taken

    idle = bytes_a_fork(g, count, use=False)
    assert bytes_a_fork(large, count, use=False) < 1.1 * idle
    assert idle < 24_000
    assert bytes_a_fork(g, count, use=True) < idle + 20 * 1_500  # 20 of its 1,000 nodes ran
    del many


# --- nothing leaks -------------------------------------------------------------------------------


def test_neither_side_writes_where_the_other_one_looks() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    y = x * 2.0
    y.value
    h = g.fork()
    h[x].set([3.0, 4.0])
    assert h[y].value.tolist() == [6.0, 8.0]
    assert (x.value.tolist(), y.value.tolist()) == ([1.0, 2.0], [2.0, 4.0])
    k = g.fork()
    x.set([5.0, 6.0])
    assert y.value.tolist() == [10.0, 12.0]
    assert (h[y].value.tolist(), k[y].value.tolist()) == ([6.0, 8.0], [2.0, 4.0])
    assert (y.value_version, h[y].value_version, k[y].value_version) == (2, 2, 1)


def test_consumers_of_a_node_that_many_use_are_those_of_each_graph() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    ys = [x + float(i) for i in range(30)]
    h = g.fork()
    mine, theirs = x * 2.0, h["x"] * 3.0
    twins = {h[y] for y in ys}
    assert set(x.children) == {*ys, mine}
    assert set(h["x"].children) == {*twins, theirs}
    k = h.fork()
    theirs.replace_parent(0, h[ys[0]])
    assert set(h["x"].children) == twins
    assert set(k["x"].children) == {*(k[y] for y in ys), k[theirs]}
    for graph in (g, h, k):
        graph.check_invariants()


def test_what_a_fork_has_handed_out_outlives_it_unchanged() -> None:
    g = rg.Graph()
    x = g.input(np.ones(100_000))  # so large that callers get views
    y = x * 2.0
    y.value
    h = g.fork()
    seen, given = h[y].value, h[x].value
    del h
    gc.collect()
    for number in (5.0, 6.0):
        x.set(np.full(100_000, number))
        assert y.value[0] == 2.0 * number
        g.fork()
    assert seen[0] == 2.0
    assert given[0] == 1.0


def test_an_origin_that_is_gone_leaves_its_forks_as_they_are() -> None:
    g: Any
    g, inputs, outputs = cones(1_000)
    values = [y.value.copy() for y in outputs]
    h = g.fork()
    twins = [(h[x], h[y]) for x, y in zip(inputs, outputs, strict=True)]
    inputs[0].set(np.zeros(2))
    outputs[0].value
    gone = weakref.ref(g)
    del g, inputs, outputs
    gc.collect()
    assert gone() is None
    for (x, y), value in zip(twins, values, strict=True):
        assert np.array_equal(y.value, value)
        x.set(np.zeros(2))
        assert np.array_equal(y.value, np.zeros(2))
    h.check_invariants()


def test_functions_write_into_the_graph_that_calls_them() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.lift(lambda a: [a, a])(x)
    z = rg.lift(lambda a: len(a) * a[0], cutoff="equal")(y)
    for number in (1.0, 2.0, 3.0):  # so that plans are bound and replayed
        x.set(number)
        assert z.value == 2 * number
    h = g.fork()
    for number in (4.0, 5.0, 6.0):
        x.set(number)
        assert z.value == 2 * number
        assert h[z].value == 6.0
        assert h[y].value == [3.0, 3.0]
    h[x].set(7.0)
    assert h[z].value == 14.0
    assert (z.value, y.value) == (12.0, [6.0, 6.0])


# --- nothing piles up ----------------------------------------------------------------------------


def grown(step: Any, count: int) -> int:
    """Bytes by which more is there after so many steps than after half of them."""
    found: list[int] = []
    tracemalloc.start()
    for half in range(2):
        for i in range(count // 2):
            step(half * count // 2 + i)
        gc.collect()
        found.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return found[1] - found[0]


@pytest.mark.slow
@pytest.mark.trusting
def test_a_graph_that_is_forked_again_and_again_keeps_nothing_of_it() -> None:
    g, inputs, outputs = cones(300, length=10)

    def step(i: int) -> None:
        x, y = inputs[i % 30], outputs[i % 30]
        with g.whatif({x: np.full(2, float(i))}) as w:
            assert len(w.forward(w[y]).ran) == 9
        x.set(np.full(2, 0.1 * (i % 7)))
        y.value

    before = len(g)
    assert grown(step, 10_000 if FULL else 240) < 50_000
    assert len(g) == before
    assert max(written(g)[:-1]) <= 100  # all but the steps, which were bound once
    g.check_invariants()


@pytest.mark.slow
@pytest.mark.trusting
def test_a_lineage_of_forks_keeps_nothing_of_its_ancestors() -> None:
    first, inputs, outputs = cones(1_000, length=10)
    names = [f"x{i}" for i in range(100)]
    for x, y, name in zip(inputs, outputs, names, strict=True):
        x.name, y.name = name, f"of_{name}"
    line: list[rg.Graph] = [first.fork()]
    gone = weakref.ref(first)
    del first, inputs, outputs, x, y

    def step(i: int) -> None:
        child = line.pop().fork()
        name = names[i % 100]
        child[name].set(np.full(2, float(i)))
        child[f"of_{name}"].value
        added = child[f"of_{name}"] * child[names[i % 7]]
        added.value
        child.remove(added)
        line.append(child)

    assert grown(step, 10_000 if FULL else 200) < 200_000
    assert gone() is None
    assert len(line[0]._lineage) == 1  # its parent's, which is still there when it is forked
    assert max(written(line[0])) <= 50
    line[0].check_invariants()


def test_a_lineage_is_as_long_as_those_who_live() -> None:
    line = rg.Graph()
    x = line.input(1.0, name="x")
    line.keep(x)
    del x
    for _ in range(50):
        line = line.fork()
    gc.collect()
    line = line.fork()
    assert len(line._lineage) == 1  # the graph before, which was there when this one was made
    child = line.fork()
    assert child[line["x"]].value == 1.0
    assert child.fork()[line["x"]].value == 1.0


@pytest.mark.slow
def test_edits_keep_nothing_of_what_was() -> None:
    g, _, outputs = cones(1_000, length=10)
    gradient = rg.grad(sum(y.sum() for y in outputs), outputs[0].parents[0])
    gradient.value

    def step(i: int) -> None:
        y = outputs[i % 100]
        former = y.parents[0]
        y.replace_parent(0, rg.sin(former))
        gradient.value
        y.replace_parent(0, former)

    for i in range(100):
        step(i)
    before = len(g)
    assert grown(step, 50_000 if FULL else 500) < 100_000
    assert len(g) == before
    g.check_invariants()


def test_an_input_without_a_value_has_its_dtype_in_a_fork() -> None:
    g = rg.Graph()
    x = g.input(dtype="f4")
    y = x * 2
    h = g.fork()
    h[x].set([1, 2])
    assert h[y].value.dtype == np.float32
