"""What functions do while others run: they read, wait, fail, are cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nodes._handle import current_graph
from reactgrad_scheduler import lock
from tests.scheduler.crowd import pair, plus, within_time

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


@pytest.mark.parametrize("turn", range(100))
def test_a_read_of_what_another_thread_computes_waits_for_it(
    g: rg.Graph, always: None, turn: int
) -> None:
    begun = threading.Event()
    calls: list[int] = []
    box: list[rg.Var] = []

    def slow(value: int) -> int:
        calls.append(value)
        begun.set()
        time.sleep(0.001 * (turn % 3))
        return value + 1

    def asks(value: int) -> int:
        begun.wait(20)
        return value + box[0].value

    nodes = pair(g, asks, slow)
    box.append(nodes[1])
    run = within_time(lambda: g.forward(*nodes, executor=rg.Threads(2)))
    assert [node.value for node in nodes] == [3, 2]
    assert (calls, run.ran) == ([1], [nodes[1], nodes[0]])
    assert nodes[1] in nodes[0].parents
    g.check_invariants()


@pytest.mark.parametrize("turn", range(100))
def test_functions_that_read_each_other_are_a_cycle(g: rg.Graph, always: None, turn: int) -> None:
    both = threading.Barrier(2)
    box: list[rg.Var] = []

    def asks(other: int) -> Callable[[int], int]:
        def ask(value: int) -> int:
            both.wait(20)
            time.sleep(0.0005 * (turn % 2))
            return value + box[other].value

        return ask

    first, second = pair(g, asks(3), asks(2))
    box += [first, second, plus(1)(first), plus(1)(second)]
    with pytest.raises(rg.CycleError) as caught:
        within_time(lambda: g.forward(first, second, executor=rg.Threads(2)))
    assert set(caught.value.path) == set(box)
    g.check_invariants()
    g.executor = rg.Threads(2)
    both.reset()
    with pytest.raises(rg.CycleError):
        second.value


def test_a_cycle_over_three_threads(g: rg.Graph, always: None) -> None:
    together = threading.Barrier(3)
    box: list[rg.Var] = []

    def asks(other: int) -> Callable[[int], int]:
        def ask(value: int) -> int:
            together.wait(20)
            return value + box[other].value

        return ask

    box += pair(g, asks(1), asks(2), asks(0))
    with pytest.raises(rg.CycleError) as caught:
        within_time(lambda: g.forward(*box, executor=rg.Threads(3)))
    assert set(caught.value.path) == set(box)
    g.check_invariants()


def test_chains_of_reads_nest_to_any_depth(g: rg.Graph, always: None) -> None:
    x = g.input(0)
    chain = [x]

    def above(below: rg.Var) -> rg.Var:
        with g:
            return rg.lift(lambda: below.value + 1)()

    for _ in range(300):
        chain.append(above(chain[-1]))
    side = rg.lift(lambda v: time.sleep(0.01))(x)
    for value in (0, 1):
        x.set(value)
        run = within_time(lambda: g.forward(side, chain[-1], executor=rg.Threads(3)))
        assert chain[-1].value == 300 + value
        assert run.ran == [*chain[1:], side] or run.ran == [side, *chain[1:]]
    g.check_invariants()


def test_threads_that_functions_wait_for_read_for_them(g: rg.Graph, always: None) -> None:
    """As a pool does, and threads with the variables of their context."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    x, y = g.input(1), g.input(10)
    left, right = plus(1)(x), plus(2)(y)

    def in_a_pool() -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda var: var.value, [left, right]))

    async def gather() -> list[int]:
        return await asyncio.gather(*[asyncio.to_thread(lambda v=v: v.value) for v in (left, x)])

    with g:
        pooled = rg.lift(in_a_pool)()
        awaited = rg.lift(lambda: sum(asyncio.run(gather())))()
    for value in (1, 2):
        x.set(value)
        within_time(lambda: g.forward(pooled, awaited, executor=rg.Threads(2)))
        assert (pooled.value, awaited.value) == (value + 13, 2 * value + 1)
        assert {left, right} <= set(pooled.parents)
        assert {left, x} <= set(awaited.parents)
        g.check_invariants()


def test_a_cycle_through_a_thread_of_a_pool_is_found(
    g: rg.Graph, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    box: list[rg.Var] = []

    def asks(value: int) -> int:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: box[0].value).result()

    first, aside = pair(g, asks, lambda v: v)
    box.append(plus(1)(first))
    with pytest.raises(rg.CycleError) as caught:
        within_time(lambda: g.forward(first, aside, executor=rg.Threads(2)))
    assert set(caught.value.path) == {first, box[0]}
    assert aside.value == 1
    g.check_invariants()


def test_a_plan_that_ran_straight_before_goes_on_where_a_function_begins_to_read(
    g: rg.Graph, always: None
) -> None:
    """What is under way in other threads then is written down when it ends."""
    x, y = g.input(0), g.input(100)
    begun, read = threading.Event(), threading.Event()
    other = plus(1)(y)

    def slow(value: int) -> int:
        if value == 7:
            begun.set()
            assert read.wait(20)
        return value

    def asks(value: int) -> int:
        if value != 7:
            return value
        begun.wait(20)
        total = value + other.value
        read.set()
        return total

    before = plus(1)(x)
    nodes = [rg.lift(slow)(before), rg.lift(asks)(before)]
    ends = [plus(1)(node) for node in nodes]
    g.executor = rg.Threads(2)
    for value in range(8):
        x.set(value)
        run = within_time(lambda: g.forward(*ends))
        g.check_invariants()
        if value == 6:
            assert [end.value for end in ends] == [8, 109]
            assert run.ran == [before, nodes[0], other, nodes[1], *ends]
        else:
            assert run.ran == [before, *nodes, *ends]
        assert all(node.value_version == value + 1 for node in (before, *nodes, *ends))


def test_changes_of_the_own_graph_are_refused(g: rg.Graph, always: None) -> None:
    z = g.input(0)
    nodes = pair(g, lambda v: z.set(v), lambda v: v)
    with pytest.raises(rg.BusyError):
        g.forward(*nodes, executor=rg.Threads(2))
    assert (z.value, nodes[1].value) == (0, 1)
    assert g.last_run.ran == [nodes[1]]
    g.check_invariants()


def test_other_threads_wait_with_their_changes(g: rg.Graph, always: None) -> None:
    x, other = g.input(1), g.input(0)
    begun, go_on = threading.Event(), threading.Event()
    seen: list[int] = []

    def look(value: int) -> int:
        begun.set()
        go_on.wait(0.2)
        seen.append(other.value)
        return value

    nodes = [rg.lift(look)(x), rg.lift(look)(x)]

    def change() -> None:
        begun.wait(20)
        other.set(5)
        go_on.set()

    thread = threading.Thread(target=change)
    thread.start()
    within_time(lambda: g.forward(*nodes, executor=rg.Threads(2)))
    thread.join(20)
    assert (seen, other.value) == ([0, 0], 5)
    assert all(node.is_stale for node in nodes)
    g.check_invariants()


def test_they_see_what_the_open_transaction_has_set(g: rg.Graph, always: None) -> None:
    x = g.input(1)
    nodes = [plus(1)(x), plus(2)(x)]
    g.forward(*nodes, executor=rg.Threads(2))
    with pytest.raises(ZeroDivisionError), g.transaction():
        x.set(10)
        g.forward(*nodes, executor=rg.Threads(2))
        assert [node.value for node in nodes] == [11, 12]
        1 / 0
    assert [node.value for node in nodes] == [2, 3]
    g.check_invariants()


def test_they_have_the_mode_and_the_context_of_the_reader(g: rg.Graph, always: None) -> None:
    seen: set[Any] = set()

    def look(value: int) -> int:
        with np.errstate():
            seen.add((rg.is_grad_enabled(), np.geterr()["divide"], current_graph() is g))
        return value

    nodes = pair(g, look, look)
    with g, rg.no_grad():
        g.forward(*nodes, executor=rg.Threads(2))
    assert seen == {(False, "ignore", True)}


def test_a_fork_runs_as_its_origin_does_and_reads_its_own_nodes(always: None) -> None:
    g = rg.Graph(executor=rg.Threads(2))
    x = g.input(1)
    inner = plus(1)(x)
    with g:
        nodes = [rg.lift(lambda: inner.value)(), rg.lift(lambda: inner.value + 1)()]
    fork = g.fork()
    assert repr(fork.executor) == "Threads(2)"
    fork[x].set(10)
    fork.forward(*[fork[node] for node in nodes])
    g.forward(*nodes)
    assert [fork[node].value for node in nodes] == [11, 12]
    assert [node.value for node in nodes] == [2, 3]


# --- ends before the end ----------------------------------------------------------------------------


def test_all_that_does_not_depend_on_a_failed_node_runs(g: rg.Graph, always: None) -> None:
    x = g.input(0)
    late = threading.Event()

    def first(value: int) -> int:
        late.wait(20)  # fails after the second one, and is the first error nevertheless
        raise KeyError("first")

    def second(value: int) -> int:
        try:
            raise ValueError("second")
        finally:
            late.set()

    nodes = [rg.lift(first)(x), rg.lift(second)(x), plus(5)(x)]
    behind = [plus(1)(node) for node in nodes]
    with pytest.raises(KeyError, match="first"):
        g.forward(*behind, executor=rg.Threads(3))
    assert g.last_run.failed == nodes[:2]
    assert g.last_run.ran == [nodes[2], behind[2]]
    assert behind[2].value == 6
    with pytest.raises(ValueError, match="second"):
        behind[1].value
    g.check_invariants()


@pytest.mark.parametrize("how", ["timeout", "cancel", "running"])
def test_a_cancelled_run_keeps_what_was_under_way(g: rg.Graph, always: None, how: str) -> None:
    x = g.input(1)
    under_way = threading.Barrier(3)

    def slow(value: int) -> int:
        under_way.wait(20)
        time.sleep(0.05)
        return value

    nodes = [rg.lift(slow)(x), rg.lift(slow)(x)]
    behind = [plus(1)(node) for node in nodes]

    def stop() -> None:
        under_way.wait(20)
        if how != "timeout":
            (g.running if how == "running" else g).cancel()

    thread = threading.Thread(target=stop)
    thread.start()
    timeout = 0.02 if how == "timeout" else None
    with pytest.raises(rg.Cancelled):
        within_time(lambda: g.forward(*behind, timeout=timeout, executor=rg.Threads(2)))
    thread.join(20)
    assert not any(node.is_stale for node in nodes)
    assert all(node.is_stale for node in behind)
    assert g.last_run.ran == nodes
    g.check_invariants()
    assert g.forward(*behind).ran == behind


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.001, 0.002, 0.005, 0.02] * 5)
def test_an_interrupted_reader_waits_for_what_is_under_way(
    g: rg.Graph, always: None, delay: float
) -> None:
    import signal

    x = g.input(1)

    def slow(value: int) -> int:
        time.sleep(0.002)
        return value + 1

    step = rg.lift(slow)
    chains = [x, x, x]
    for _ in range(4):
        chains = [step(node) for node in chains]

    def interrupt() -> None:
        begun.wait(20)
        time.sleep(delay)
        signal.raise_signal(signal.SIGINT)

    begun = threading.Event()
    mark = rg.lift(lambda v: (begun.set(), v)[1])(x)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                g.forward(mark, *chains, executor=rg.Threads(3))
            finally:
                # If the run was faster, the signal comes here.
                thread.join(20)
                time.sleep(0.001)
    finally:
        thread.join(20)
    g.check_invariants()
    ran = set(g.last_run.ran)
    for node in g.nodes:
        if node in ran:
            assert not node.is_stale
            assert node.value_version == 1
    assert sum(chain.value for chain in chains) == 15
    assert all(node.value_version == 1 for node in g.nodes)


def test_an_exit_that_a_function_raises_ends_the_run(g: rg.Graph, always: None) -> None:
    def leave(value: int) -> int:
        raise SystemExit(3)

    nodes = pair(g, leave, lambda v: (time.sleep(0.01), v)[1])
    with pytest.raises(SystemExit):
        g.forward(*nodes, executor=rg.Threads(2))
    g.check_invariants()
    assert nodes[1].value == 1
