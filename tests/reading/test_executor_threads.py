"""Functions that wait for other threads which read the same graph (rule E14), and deep reads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import Queue
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler import lock

POOL = ThreadPoolExecutor(2)


def in_own_pool(vars: list[rg.Var]) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda var: var.value, vars))


def in_a_pool_of_the_module(vars: list[rg.Var]) -> list[Any]:
    return list(POOL.map(lambda var: var.value, vars))


def as_they_come(vars: list[rg.Var]) -> list[Any]:
    futures = {POOL.submit(lambda var=var: var.value): i for i, var in enumerate(vars)}
    found = {futures[future]: future.result() for future in as_completed(futures)}
    return [found[i] for i in range(len(vars))]


def in_threads_of_its_own(vars: list[rg.Var]) -> list[Any]:
    found: dict[int, Any] = {}

    def read(i: int) -> None:
        found[i] = vars[i].value

    threads = [threading.Thread(target=read, args=(i,)) for i in range(len(vars))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[i] for i in range(len(vars))]


def through_a_queue(vars: list[rg.Var]) -> list[Any]:
    answers: Queue[tuple[int, Any]] = Queue()

    def start(i: int) -> None:
        threading.Thread(target=lambda: answers.put((i, vars[i].value))).start()

    for i in range(len(vars)):
        start(i)
    return [value for _, value in sorted(answers.get() for _ in vars)]


def in_an_event_loop(vars: list[rg.Var]) -> list[Any]:
    async def gather() -> list[Any]:
        return await asyncio.gather(*[asyncio.to_thread(lambda v=v: v.value) for v in vars])

    return list(asyncio.run(gather()))


WAYS = [
    in_own_pool,
    in_a_pool_of_the_module,
    as_they_come,
    in_threads_of_its_own,
    through_a_queue,
    in_an_event_loop,
]


def within_time(act: Callable[[], object]) -> None:
    """Do something that, if it hangs, shall fail."""
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(act()), daemon=True)
    thread.start()
    thread.join(30.0)
    assert done, "it hangs, or has raised"


def plus(number: int) -> Callable[[rg.Var], rg.Var]:
    return rg.lift(lambda value: value + number)


@pytest.fixture
def g() -> rg.Graph:
    return rg.Graph()


@pytest.mark.slow
@pytest.mark.parametrize("read", WAYS)
def test_what_other_threads_read_for_a_function_are_its_parents(
    g: rg.Graph, read: Callable[[list[rg.Var]], list[Any]]
) -> None:
    a, b, idle = g.input(1), g.input(10), g.input(0)
    left, right = plus(1)(a), plus(2)(b)
    with g:
        total = rg.lift(lambda: sum(read([left, right])))()
    end = plus(0)(total)
    other = plus(0)(idle)
    assert end.value == 14
    assert set(total.parents) == {left, right}
    assert set(g.last_run.ran) == {left, right, total, end}
    b.set(20)
    assert end.is_stale
    run = g.forward(end, other)
    assert (end.value, run.ran.count(left)) == (24, 0)
    assert set(run.ran) == {right, total, end, other}
    idle.set(1)
    assert not end.is_stale
    g.check_invariants()


@pytest.mark.parametrize("read", [in_own_pool, in_a_pool_of_the_module])
def test_in_the_middle_of_a_replayed_plan(
    g: rg.Graph, read: Callable[[list[rg.Var]], list[Any]]
) -> None:
    """The function reads nothing at first, so that its plan is stored and runs as a bare loop."""
    x, y = g.input(0), g.input(100)
    before, aside = plus(1)(x), plus(5)(y)
    asks = rg.lift(lambda value: value + (sum(read([aside, before])) if value > 4 else 0))(before)
    after = plus(1)(asks)
    for i in range(4):
        x.set(i)
        assert after.value == i + 2
    for i in range(4, 7):
        x.set(i)
        assert after.value == (i + 1) + 105 + (i + 1) + 1
        assert g.last_run.ran.count(asks) == g.last_run.ran.count(after) == 1
        g.check_invariants()
    y.set(200)
    assert after.value == 7 + 205 + 7 + 1


def test_what_they_do_besides_reading(g: rg.Graph) -> None:
    """Other threads may also build and look; what they build belongs to nobody's mode but theirs."""
    x = g.input(2.0)

    def look(value: float) -> float:
        def inside() -> tuple[Any, ...]:
            y = (x * 3.0).sum()
            return y.value, x.value_version, y.is_stale, y.requires_grad, g.forward(y).ran

        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(inside).result()
        assert found[1:] == (1, False, False, [])
        return found[0] + value

    assert rg.lift(look)(x).value == 8.0


@pytest.mark.slow
def test_setting_the_graph_from_such_a_thread_raises(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(0)

    def change(value: int) -> int:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(z.set, value).result()
        return value

    y = rg.lift(change)(x)
    with pytest.raises(rg.BusyError):
        y.value
    assert z.value == 0


@pytest.mark.slow
def test_a_cycle_through_another_thread_is_named_and_does_not_hang(g: rg.Graph) -> None:
    x = g.input(1)
    box: list[rg.Var] = []
    y = rg.lift(lambda value: in_own_pool([box[0]])[0] + value)(x)
    z = plus(1)(y)
    box.append(z)
    with pytest.raises(rg.CycleError) as caught:
        z.value
    assert set(caught.value.path) == {y, z}
    g.check_invariants()


def test_an_error_reaches_the_function_through_its_thread(g: rg.Graph) -> None:
    x = g.input(0)
    bad = rg.lift(lambda value: 1 // value)(x)

    def guard(value: int) -> int:
        try:
            return in_own_pool([bad])[0]
        except ZeroDivisionError:
            return -1

    y = rg.lift(guard)(g.input(0))
    assert y.value == -1
    x.set(1)
    assert y.value == 1
    g.check_invariants()


@pytest.mark.slow
def test_functions_in_such_threads_wait_for_further_threads(g: rg.Graph) -> None:
    x = g.input(1)
    calls: list[int] = []

    def above(below: rg.Var, level: int) -> rg.Var:
        def read() -> int:
            calls.append(level)
            return in_own_pool([below, x])[0] + 1

        with g:
            return rg.lift(read)()

    node = plus(0)(x)
    for level in range(20):
        node = above(node, level)
    assert node.value == 21
    x.set(2)
    assert node.value == 22
    assert sorted(calls) == sorted(list(range(20)) * 2)
    g.check_invariants()


def test_threads_that_nobody_waits_for_stay_outside_until_the_run_has_ended(g: rg.Graph) -> None:
    """What they read is no business of the function that is under way, and they may set."""
    x, y = g.input(1), g.input(1)
    inside = threading.Event()

    def slow(value: int) -> int:
        inside.set()
        until = time.monotonic() + 0.2
        while time.monotonic() < until:  # busy, not waiting
            pass
        return value

    z, other = rg.lift(slow)(x), plus(1)(y)
    seen: list[Any] = []

    def outside() -> None:
        inside.wait()
        y.set(5)
        seen.append(other.value)
        seen.append(z.value)

    thread = threading.Thread(target=outside)
    thread.start()
    assert z.value == 1
    thread.join()
    assert seen == [6, 1]
    assert z.parents == [x]
    assert other.value_version == 1


@pytest.mark.slow
def test_clean_values_are_read_while_another_thread_computes(g: rg.Graph) -> None:
    x, ready, go_on = g.input(1), threading.Event(), threading.Event()
    clean = plus(1)(g.input(1))
    assert clean.value == 2

    def wait(value: int) -> int:
        ready.set()
        assert go_on.wait(10)
        return value

    y = rg.lift(wait)(x)
    with ThreadPoolExecutor(1) as pool:
        computed = pool.submit(lambda: y.value)
        assert ready.wait(10)
        assert clean.value == 2
        go_on.set()
        assert computed.result(10) == 1


# --- deep reads -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.trusting  # only for time
def test_functions_that_read_each_other_may_be_nested_to_any_depth(g: rg.Graph) -> None:
    x = g.input(0)
    calls = [0]
    chain = [x]

    def above(below: rg.Var) -> rg.Var:
        def read() -> int:
            calls[0] += 1
            return below.value + 1

        return rg.lift(read)()

    with g:
        for _ in range(3_000):
            chain.append(above(chain[-1]))
    assert chain[-1].value == 3_000
    assert calls == [3_000]
    assert len(g.last_run.ran) == 3_000
    x.set(1)
    assert chain[-1].value == 3_001
    assert calls == [6_000]
    g.check_invariants()


def test_deep_reads_keep_the_mode_of_the_thread_and_its_errors(g: rg.Graph) -> None:
    x = g.input(0)
    modes: set[bool] = set()
    chain = [x]

    def above(below: rg.Var, level: int) -> rg.Var:
        def read() -> int:
            modes.add(rg.is_grad_enabled())
            with np.errstate(all="raise"):
                if level == 250 and x.value == 1:
                    raise KeyError("deep")
            return below.value + 1

        return rg.lift(read)()

    with g:
        for level in range(300):
            chain.append(above(chain[-1], level))
    with rg.no_grad():
        assert chain[-1].value == 300
    assert modes == {False}
    x.set(1)
    with pytest.raises(KeyError):
        chain[-1].value
    x.set(2)
    assert chain[-1].value == 302
    g.check_invariants()


@pytest.mark.parametrize("wait", WAYS)
def test_an_observer_may_wait_for_threads_that_read_the_graph(
    wait: Callable[[list[rg.Var]], list[Any]], g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "GRACE", 0.05)
    x = g.input(1)
    y, z = rg.lift(lambda v: v + 1)(x), rg.lift(lambda v: v * 10)(x)
    told: list[Any] = []
    y.observe(lambda old, new: told.append((new, wait([x, z]))))
    for value in (2, 3):
        x.set(value)
        within_time(lambda: y.value)
    assert told == [(3, [2, 20]), (4, [3, 30])]
    assert not g.forward(z).ran
    g.check_invariants()


def test_what_a_thread_of_an_observer_sets_counts_as_set_by_it(g: rg.Graph) -> None:
    x, done = g.input(1), g.input(0)
    y, follower = rg.lift(lambda v: v + 1)(x), rg.lift(lambda v: v + 100)(done)
    seen: list[int] = []

    async def elsewhere(new: int) -> None:
        await asyncio.to_thread(done.set, new)
        seen.extend([follower.value, done.value])  # it waits until the leaf is read

    y.observe(lambda old, new: asyncio.run(elsewhere(new)))
    within_time(lambda: y.value)
    assert (seen, done.value) == ([100, 2], 2)


def test_other_threads_wait_with_their_changes_until_an_observer_has_ended(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may read meanwhile; what they set is there when ``set`` has returned."""
    monkeypatch.setattr(lock, "GRACE", 0.01)
    x, other = g.input(1), g.input(0)
    y = rg.lift(lambda v: v + 1)(x)
    began, read = threading.Event(), threading.Event()
    log: list[Any] = []

    def change() -> None:
        began.wait()
        log.append(("read", other.value, y.value))
        read.set()
        with g.transaction():
            other.set(5)
            log.append(("set", other.value))

    def callback(old: Any, new: Any) -> None:
        began.set()
        read.wait()
        time.sleep(0.1)  # for a set that does not wait to be seen here
        log.append(("told", other.value))

    y.observe(callback)
    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    within_time(lambda: y.value)
    within_time(thread.join)
    assert log == [("read", 0, 2), ("told", 0), ("set", 5)]
    assert other.value == 5
    g.check_invariants()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of which nobody knows who waits for them would wait for hours."""
    monkeypatch.setattr(lock, "GRACE", 1e4)
    monkeypatch.setattr(lock, "PATIENCE", 1e4)


def joined(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in a thread that the caller joins."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("depth", [1, 3])
def test_a_thread_that_a_function_joins_belongs_to_it(depth: int, g: rg.Graph) -> None:
    x, other = g.input(1), g.input(10)

    def through(work: Callable[[], Any], levels: int) -> Any:
        return work() if not levels else joined(lambda: through(work, levels - 1))

    y = rg.lift(lambda v: v + through(lambda: other.value, depth))(x)
    assert y.value == 11
    other.set(20)
    assert y.value == 21
    assert g.last_run.ran == [y]
    refused = rg.lift(lambda v: through(lambda: other.set(0), depth))(x)
    assert isinstance(refused.value, rg.BusyError)
    assert other.value == 20


@pytest.mark.usefixtures("impatient")
def test_what_a_thread_does_that_an_observer_joins_counts_as_done_by_it(g: rg.Graph) -> None:
    x, total = g.input(1), g.input(0)
    y, follower = x * 2, total + 100
    seen: list[Any] = []

    def told(old: Any, new: Any) -> None:
        joined(lambda: total.set(total.value + int(new)))
        seen.append(joined(lambda: int(follower.value)))  # it waits until the leaf is read
        seen.append(joined(lambda: total.value))

    y.observe(told)
    g.stabilize()
    x.set(5)
    g.stabilize()
    assert total.value == 12
    assert seen == [100, 2, 102, 12]
    g.check_invariants()


def test_functions_that_wait_for_one_that_waits_for_what_it_had_read_compute_that() -> None:
    """All threads are in functions that read a node which was put off before they asked for it."""
    g = rg.Graph()
    a, b, c = g.input(1.0), g.input(1.0), g.input(1.0)
    deep = rg.lift(lambda v: v)(a)

    def slowly(seconds: float, v: float) -> float:
        time.sleep(seconds)
        return v

    middle = rg.lift(lambda v: slowly(0.05, v) + deep.value)(b)  # the first that is looked at
    left = rg.lift(lambda v: slowly(0.03, v) + middle.value)(c)
    right = rg.lift(lambda v: slowly(0.03, v) + middle.value)(c)
    for turn in range(3):
        a.set(2.0 + turn)
        c.set(3.0 + turn)
        run = g.forward(middle, left, right, executor=rg.Threads(2), timeout=60.0)
        assert run.ran == [deep, middle, left, right]
        assert (left.value, right.value) == (6.0 + 2 * turn, 6.0 + 2 * turn)
    g.check_invariants()
