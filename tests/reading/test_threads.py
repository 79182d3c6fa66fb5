"""Threads: every outcome is that of some serial order, nothing is torn, nothing waits for ever."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import reactgrad.graph._graph
from reactgrad.reading._limits import AGAIN, within
from tests.reactive.crowd import PATIENCE, THREADS, Rollback, together

pytestmark = pytest.mark.usefixtures("impatience")  # threads change places often

# --- transactions that fail -------------------------------------------------------------------------


def test_nobody_sees_a_transaction_while_it_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x + 1.0
    assert y.value == 2.0
    found: list[float] = []
    reader = threading.Thread(target=lambda: found.append(y.value), daemon=True)
    give_back = reactgrad.change._transaction.give_back

    def meet(graph: rg.Graph, noted: Any) -> None:
        reader.start()
        reader.join(0.2)
        assert not found, "a value of inside"
        give_back(graph, noted)

    monkeypatch.setattr(reactgrad.change._transaction, "give_back", meet)
    with pytest.raises(Rollback), g.transaction():
        x.set(5.0)
        assert y.value == 6.0
        raise Rollback
    reader.join(PATIENCE)
    assert found == [2.0]


def test_a_read_that_a_failing_transaction_overtakes_sees_nothing_of_it() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x + 1.0
    inside, end = threading.Event(), threading.Event()

    def fail() -> None:
        with g.transaction():
            x.set(5.0)
            assert y.value == 6.0
            inside.set()
            assert end.wait(PATIENCE)
            raise Rollback

    def work() -> None:
        with pytest.raises(Rollback):
            fail()

    thread = threading.Thread(target=work, daemon=True)

    class Ends(list[Any]):
        """Is asked whether a transaction is open, and there is none any more."""

        def __len__(self) -> int:
            end.set()
            thread.join(PATIENCE)
            return 0

    thread.start()
    assert inside.wait(PATIENCE)
    g._noted = Ends()
    assert y.value == 2.0
    assert not thread.is_alive()


# --- nothing torn ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_set_together_is_seen_together() -> None:
    g = rg.Graph()
    a, b = g.input(0), g.input(0)
    pair = rg.lift(lambda x, y: (x, y))(a, b)
    done = threading.Event()

    def write(thread: int) -> None:
        for i in range(1_000):
            value = i * 10 + thread
            if i % 3:
                g.set({a: value, b: value})
            else:
                with g.transaction():
                    a.set(value)
                    pair.value
                    b.set(value)

    def writers() -> None:
        try:
            together(*[lambda thread=thread: write(thread) for thread in range(4)])
        finally:
            done.set()

    def read() -> int:
        reads = 0
        while not done.is_set():
            x, y = pair.value
            assert x == y
            with g.transaction():
                assert a.value == b.value
                assert pair.value == (a.value, b.value)
            reads += 1
        return reads

    _, *reads = together(writers, *[read] * 4)
    assert all(reads)
    g.check_invariants()


@pytest.mark.parametrize("size", [100, 100_000])
def test_arrays_are_never_seen_half_written_nor_changed_later(size: int) -> None:
    g = rg.Graph()
    x = g.input(np.zeros(size))
    y = (x + 1.0) * 2.0
    done = threading.Event()

    def write() -> None:
        try:
            for i in range(300):
                x.set(np.full(size, float(i)))
        finally:
            done.set()

    def read() -> int:
        held: list[tuple[Any, float]] = []
        reads = 0
        while not done.is_set() or not reads:
            for var in (x, y):
                value = var.value
                held.append((value, value[0]))
                assert (value == value[0]).all()
            reads += 1
            for value, first in held:
                assert value[0] == value[-1] == first
            del held[:-6]
        return reads

    assert all(together(write, *[read] * 5)[1:])
    assert y.value[0] == 600.0


@pytest.mark.slow
def test_expressions_are_built_and_dropped_by_all_threads() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    before = len(g)

    def build(thread: int) -> None:
        for i in range(300):
            y = x
            for k in range(5):
                y = y * 1.0 + float(thread * 10 + k)
            expected = 1.0 + sum(thread * 10 + k for k in range(5))
            assert y.value == expected
            assert len(y.parents) == 2
            if i % 50 == 0:
                len(g.nodes), repr(y), g.plan(y)
            del y

    together(*[lambda thread=thread: build(thread) for thread in range(THREADS)])
    g.check_invariants()
    assert len(g) == before


@pytest.mark.slow
def test_observers_are_attached_and_cancelled_while_others_are_called() -> None:
    g = rg.Graph()
    x = g.input(0)
    nodes = [rg.lift(lambda v, i=i: v + i)(x) for i in range(5)]
    done = threading.Event()
    calls = [0]

    def called(*arguments: object) -> None:
        calls[0] += 1

    def change() -> None:
        try:
            for i in range(500):
                x.set(i)
                g.stabilize()
        finally:
            done.set()

    def attach(thread: int) -> None:
        pick = Random(thread)
        held: list[Any] = []
        while not done.is_set():
            held.append(pick.choice(nodes).observe(called, kind=pick.choice(["changed", "stale"])))
            if len(held) > 30:
                for observer in held[::2]:
                    observer.cancel()
                del held[::2]
        for observer in held:
            observer.cancel()

    together(change, *[lambda thread=thread: attach(thread) for thread in range(6)])
    assert not g._observers
    g.check_invariants()


def test_forks_are_made_and_changed_while_the_graph_changes() -> None:
    g = rg.Graph()
    x, scale = g.input(np.zeros(50)), g.input(1.0)
    y = (x * scale + 1.0).sum()

    def change() -> None:
        for i in range(300):
            x.set(np.full(50, float(i)))
            assert y.value == 50 * (i + 1.0)

    def fork(thread: int) -> None:
        for _ in range(40):
            h = g.fork()
            now = h[x].value[0]
            assert h[y].value == 50 * (now + 1.0)
            h[scale].set(float(thread))
            assert h[y].value == 50 * (now * thread + 1.0)
            assert (h[x].value == now).all()
            h.check_invariants()

    together(change, *[lambda thread=thread: fork(thread) for thread in range(4)])
    assert (y.value, scale.value) == (50 * 300.0, 1.0)
    g.check_invariants()


def test_gradient_mode_belongs_to_a_thread() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    turn = threading.Barrier(2)

    def without() -> bool:
        with rg.no_grad():
            turn.wait(PATIENCE)
            y = w * 3.0
            turn.wait(PATIENCE)
        return y.requires_grad

    def with_() -> bool:
        turn.wait(PATIENCE)
        y = w * 3.0
        turn.wait(PATIENCE)
        return y.requires_grad

    assert together(without, with_) == [False, True]


# --- side by side ------------------------------------------------------------------------------------


def test_two_graphs_run_at_the_same_time() -> None:
    meet = threading.Barrier(2)

    def wait(v: int) -> int:
        meet.wait(PATIENCE)  # ends only if the other graph runs meanwhile
        return v + 1

    nodes = []
    for i in range(2):
        x = rg.Graph().input(i)
        nodes.append(rg.lift(wait)(x))
    assert together(*[lambda node=node: node.value for node in nodes]) == [1, 2]


def test_a_graph_is_used_while_another_one_waits_in_a_function() -> None:
    x, z = rg.Graph().input(1), rg.Graph().input(2)
    inside, free = threading.Event(), threading.Event()

    def wait(v: int) -> int:
        inside.set()
        assert free.wait(PATIENCE)
        return v

    def other() -> int:
        assert inside.wait(PATIENCE)
        z.set(5)
        found = (z + 1.0).value
        free.set()
        return found

    assert together(lambda: rg.lift(wait)(x).value, other) == [1, 6]


def test_a_function_may_read_nodes_of_another_graph() -> None:
    z = rg.Graph().input(2)
    x = rg.Graph().input(1)
    doubled = rg.lift(lambda v: v * 2)(z)
    y = rg.lift(lambda v: v + doubled.value)(x)
    assert together(*[lambda: y.value] * 4) == [5] * 4
    x.graph.check_invariants()


def test_a_function_reads_nodes_from_executor_threads() -> None:
    g = rg.Graph()
    x = g.input(1)
    other = rg.lift(lambda v: v + 10)(x)
    other.value
    with ThreadPoolExecutor(1) as pool:

        def fetch(v: int) -> int:
            future: Future[int] = pool.submit(lambda: other.value)
            return future.result(timeout=2) + v

        assert rg.lift(fetch)(x).value == 12


def test_setting_the_own_graph_from_a_function_raises_also_in_other_threads_turns() -> None:
    g = rg.Graph()
    x, z = g.input(1), g.input(0)
    bad = rg.lift(lambda v: z.set(v))(x)
    calls = [0]

    def read() -> None:
        for _ in range(100):
            with pytest.raises(rg.BusyError):
                bad.value
            calls[0] += 1

    def write() -> None:
        for i in range(100):
            z.set(i)

    together(read, read, write)
    assert (calls[0], z.value) == (200, 99)
    g.check_invariants()


# --- stopping ----------------------------------------------------------------------------------------


class Stopper:
    """A chain of which one node, when asked to, stops the run from another thread."""

    def __init__(self, g: rg.Graph, at: int, length: int = 6) -> None:
        self.graph = g
        self.armed = False
        self.x = g.input(0)
        self.chain = [self.x]
        for i in range(length):
            step = self.stopping if i == at else (lambda v: v + 1)
            self.chain.append(rg.lift(step)(self.chain[-1]))
        self.end = self.chain[-1]

    def stopping(self, v: int) -> int:
        if self.armed:
            thread = threading.Thread(target=self.graph.cancel)
            thread.start()
            thread.join(PATIENCE)
        return v + 1


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize("warm", [0, 5], ids=["first time", "planned"])
def test_cancel_stops_before_the_next_node_and_the_rest_runs_later(
    g: rg.Graph, at: int, warm: int
) -> None:
    stopper = Stopper(g, at)
    for i in range(warm):
        stopper.x.set(i)
        stopper.end.value
    stopper.x.set(100)
    stopper.armed = True
    with pytest.raises(rg.Cancelled):
        stopper.end.value
    done, left = stopper.chain[1 : at + 2], stopper.chain[at + 2 :]
    assert g.last_run.ran == done
    assert [v.state for v in stopper.chain] == ["clean"] * (at + 2) + ["stale"] * len(left)
    assert {v.value_version for v in done} == {warm + 1}
    assert {v.value_version for v in left} == {warm}
    g.check_invariants()
    stopper.armed = False
    assert g.forward(stopper.end).ran == left
    assert stopper.end.value == 106
    g.check_invariants()


def test_a_run_is_cancelled_by_itself_and_no_later_one_with_it(g: rg.Graph) -> None:
    stopper = Stopper(g, at=2)
    runs: list[rg.Running] = []

    def stop() -> None:
        run = g.running
        assert run is not None
        assert run.active
        runs.append(run)
        run.cancel()

    stopper.graph = SimpleNamespace(cancel=stop)  # type: ignore[assignment]
    stopper.armed = True
    with pytest.raises(rg.Cancelled):
        stopper.end.value
    assert g.last_run.ran == stopper.chain[1:4]
    assert g.running is None
    assert not runs[0].active
    stopper.graph = SimpleNamespace(cancel=runs[0].cancel)  # type: ignore[assignment]
    stopper.x.set(1)
    assert stopper.end.value == 7
    g.check_invariants()


def test_cancel_during_the_last_node_leaves_nothing_to_stop(g: rg.Graph) -> None:
    stopper = Stopper(g, at=5)
    stopper.armed = True
    for i in range(5):
        stopper.x.set(i)
        assert stopper.end.value == i + 6
    g.cancel()
    stopper.x.set(50)
    assert stopper.end.value == 56


def test_cancel_between_runs_does_not_stop_the_next_one(g: rg.Graph) -> None:
    stopper = Stopper(g, at=0)
    g.cancel()
    assert len(g.forward(stopper.end).ran) == 6
    g.check_invariants()


@pytest.mark.parametrize("cutoff", [None, "equal"])
def test_cancel_inside_of_what_a_function_reads_is_no_error_of_it(
    g: rg.Graph, cutoff: str | None
) -> None:
    stopper = Stopper(g, at=1)
    last = rg.lift(lambda v: v > 0, cutoff=cutoff)(stopper.end)
    with g:
        node = rg.lift(lambda: (stopper.x.value, last.value))()
    assert node.value == (0, True)
    stopper.x.set(3)
    stopper.armed = True
    with pytest.raises(rg.Cancelled):
        node.value
    assert node.state == "stale"
    g.check_invariants()
    stopper.armed = False
    assert node.value == (3, True)
    g.check_invariants()


def test_cancel_reaches_the_caller_of_stabilize_also_where_errors_are_observed(
    g: rg.Graph,
) -> None:
    stopper = Stopper(g, at=1)
    told: list[object] = []
    stopper.end.observe(lambda old, new: told.append(new))
    stopper.end.observe(told.append, kind="error")
    stopper.armed = True
    with pytest.raises(rg.Cancelled):
        g.stabilize()
    assert not told
    stopper.armed = False
    g.stabilize()
    assert told == [6]


@pytest.mark.parametrize("timeout", [0, 0.0, -1, -float("inf")])
def test_with_no_time_at_all_nothing_runs(g: rg.Graph, timeout: float) -> None:
    x = g.input(1)
    calls: list[int] = []

    def inverse(v: int) -> int:
        calls.append(v)
        return 1 // v

    y = rg.lift(inverse)(x)
    with pytest.raises(rg.Cancelled):
        g.forward(y, timeout=timeout)
    assert (y.state, calls) == ("stale", [])
    assert y.value == 1
    assert g.forward(y, timeout=timeout).ran == []
    x.set(0)
    with pytest.raises(ZeroDivisionError):
        y.value
    with pytest.raises(ZeroDivisionError):  # told, not run again
        g.forward(y, timeout=timeout)
    with pytest.raises(rg.Cancelled):
        g.forward(y, retry=True, timeout=timeout)
    assert calls == [1, 0]
    g.check_invariants()


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, np.float32(1e30), None])
def test_a_limit_beyond_all_time_is_none(g: rg.Graph, timeout: Any) -> None:
    y = g.input(1.0) + 1.0
    before = threading.active_count()
    assert g.forward(y, timeout=timeout).ran == [y]
    assert threading.active_count() == before


@pytest.mark.parametrize("timeout", ["a", float("nan"), True, [1.0], 1j])
def test_a_limit_that_is_no_number_is_refused(g: rg.Graph, timeout: Any) -> None:
    y = g.input(1.0) + 1.0
    with pytest.raises(rg.DTypeError, match="timeout=.*number of seconds"):
        g.forward(y, timeout=timeout)
    assert y.is_stale


def test_a_time_limit_stops_between_nodes(g: rg.Graph) -> None:
    x = g.input(1)
    patience = time.monotonic() + PATIENCE

    def slow(v: int) -> int:
        while not g._scheduler.cancelled and time.monotonic() < patience:
            time.sleep(0.001)
        return v

    first = rg.lift(slow)(x)
    second = rg.lift(lambda v: v + 1)(first)
    with pytest.raises(rg.Cancelled):
        g.forward(second, timeout=0.01)
    assert (first.state, second.state) == ("clean", "stale")
    assert g.last_run.ran == [first]
    g.check_invariants()
    assert g.forward(second, timeout=PATIENCE).ran == [second]
    assert second.value == 2


def test_a_time_limit_that_is_up_as_the_run_begins_counts() -> None:
    """The run may not have heard of the first call, so there are more, until its end."""
    calls: list[None] = []
    patience = time.monotonic() + PATIENCE
    with within(0.0, lambda: calls.append(None)):
        while len(calls) < 2 and time.monotonic() < patience:
            time.sleep(0.001)
    count = len(calls)
    assert count > 1
    time.sleep(3 * AGAIN)
    assert len(calls) == count


@pytest.mark.slow
def test_runs_are_cancelled_at_any_moment_and_the_graph_stays_consistent() -> None:
    g = rg.Graph()
    x = g.input(0)
    chain = [x]
    for _ in range(60):
        chain.append(rg.lift(lambda v: v + 1)(chain[-1]))
    with g:
        reader = rg.lift(lambda: chain[-1].value + x.value)()
    done = threading.Event()
    cancelled = [0]

    def run() -> None:
        try:
            for i in range(1_500):
                x.set(i)
                var, expected = (chain[-1], i + 60) if i % 3 else (reader, 2 * i + 60)
                while True:
                    try:
                        assert var.value == expected
                        break
                    except rg.Cancelled:
                        cancelled[0] += 1
                        if cancelled[0] % 10 == 0:
                            g.check_invariants()
        finally:
            done.set()

    def cancel() -> None:
        pick = Random(0)
        while not done.is_set():
            g.cancel()
            time.sleep(pick.random() * 1e-4)

    together(run, cancel)
    assert cancelled[0]
    g.check_invariants()
    assert [v.value for v in chain] == [1_499 + n for n in range(61)]


def test_a_time_limit_stops_no_later_read(g: rg.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Callable[[], None]] = []

    class Late(threading.Thread):
        """One that begins when it is told to, as on a machine that is busy."""

        def start(self) -> None:
            calls.append(self.run)

    x = g.input(0)
    quick = x + 1
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", Late)
        g.forward(quick, timeout=60.0)
    assert len(calls) == 1

    def slowly(value: int) -> int:
        calls[0]()
        return value

    end = rg.lift(slowly)(x) + 1
    assert end.value == 1
    assert not g._scheduler.cancelled


def test_a_thread_may_begin_with_an_op(g: rg.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no code of the user on its stack to say where the node was built."""
    raised: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    x = g.input([1.0, 2.0])
    begun = g._scheduler.topology.next_serial
    _thread.start_new_thread(rg.add, (x, x))
    end = time.monotonic() + PATIENCE
    while g._scheduler.topology.next_serial == begun and not raised and time.monotonic() < end:
        time.sleep(0.001)
    assert g._scheduler.topology.next_serial == begun + 1
    assert not raised
