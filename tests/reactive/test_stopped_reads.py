"""Reads inside of functions that are stopped: whatever a function makes of that is no value of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg

EXECUTORS = [None, rg.Threads(2)]


class Reader:
    """A node that reads another one and makes -1, or an error, of whatever that raises."""

    def __init__(self, executor: Any, inner: Callable[[Any], Any], again: Any) -> None:
        g = self.g = rg.Graph(executor=executor)
        self.x = g.input(0)
        self.inner = rg.lift(inner)(self.x)
        self.runs = 0

        def reader() -> Any:
            self.runs += 1
            try:
                return self.inner.value
            except BaseException:
                if again is not None:
                    raise again from None
                return -1

        with g:
            self.y = rg.lift(reader)()

    def warm(self, reads: int) -> None:
        for i in range(reads):
            self.x.set(10 + i)
            assert self.y.value == 10 + i


@pytest.mark.parametrize("again", [None, ValueError("of its own")])
@pytest.mark.parametrize("reads", [0, 1, 8])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_ends_the_run_whatever_a_function_makes_of_it(
    kind: type[BaseException], executor: Any, reads: int, again: Any
) -> None:
    stop = False

    def inner(v: int) -> int:
        if stop:
            raise kind
        return v

    one = Reader(executor, inner, again)
    one.warm(reads)
    one.x.set(1)
    stop = True
    with pytest.raises(kind):
        _ = one.y.value
    stop = False
    assert one.y.is_stale
    assert one.y.value == 1
    one.x.set(2)
    assert (one.y.value, one.y.parents) == (2, [one.inner])
    one.g.check_invariants()


@pytest.mark.parametrize("again", [None, ValueError("of its own")])
@pytest.mark.parametrize("reads", [0, 1, 8])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_cancelled_read_leaves_its_reader_stale_whatever_that_makes_of_it(
    executor: Any, reads: int, again: Any
) -> None:
    cancelling = False

    def slow(v: int) -> int:
        if cancelling:  # from another thread, as a user would
            thread = threading.Thread(target=one.g.cancel)
            thread.start()
            thread.join()
        return v

    one = Reader(executor, slow, again)
    behind = rg.lift(lambda v: v)(one.inner)
    one.inner = behind
    one.warm(reads)
    one.x.set(1)
    cancelling = True
    with pytest.raises(rg.Cancelled):
        one.g.forward(one.y)
    cancelling = False
    assert one.y.is_stale
    assert one.y.value == 1
    one.x.set(2)
    assert (one.y.value, one.y.parents) == (2, [behind])
    one.g.check_invariants()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_value_that_is_computed_again_is_none_where_its_read_was_stopped(executor: Any) -> None:
    stop = False

    def inner(v: int) -> int:
        if stop:
            raise KeyboardInterrupt
        return v

    one = Reader(executor, inner, None)
    one.warm(1)
    slots = [one.inner._slot, one.y._slot]
    for slot in slots:
        one.g._host.discard(slot)
    one.g._scheduler.drop(slots)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        _ = one.y.value
    stop = False
    assert one.y.value == 10
    assert one.g.last_run.ran == []
    one.x.set(2)
    assert one.y.value == 2
    one.g.check_invariants()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_read_of_what_is_computed_again_is_cancelled(executor: Any) -> None:
    cancelling = False

    def slow(v: int) -> int:
        if cancelling:
            thread = threading.Thread(target=one.g.cancel)
            thread.start()
            thread.join()
        return v

    one = Reader(executor, slow, None)
    slow_one = one.inner
    one.inner = rg.lift(lambda v: v)(slow_one)
    one.warm(2)
    slots = [slow_one._slot, one.inner._slot]
    for slot in slots:
        one.g._host.discard(slot)
    one.g._scheduler.drop(slots)
    one.y.touch()
    cancelling = True
    with pytest.raises(rg.Cancelled):
        _ = one.y.value
    cancelling = False
    assert one.y.is_stale
    assert one.y.value == 11
    one.g.check_invariants()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_stopped_read_behind_a_cutoff_leaves_nothing_behind(executor: Any) -> None:
    stop = reading = False

    def inner(v: int) -> int:
        if stop:
            raise KeyboardInterrupt
        return v

    g = rg.Graph(executor=executor)
    x, z = g.input(0), g.input(7)
    tens = rg.lift(lambda v: v // 10, cutoff="equal")(x)
    read = rg.lift(inner)(z)

    def reader(v: int) -> int:
        if not reading:
            return v
        try:
            return read.value
        except BaseException:
            return -1

    y = rg.lift(reader)(tens)
    last = rg.lift(lambda v: v)(y)
    for k in range(12):
        x.set(k * 10)
        assert last.value == k
    x.set(500)
    reading = stop = True
    with pytest.raises(KeyboardInterrupt):
        _ = last.value
    stop = False
    for value in (600, 700):
        x.set(value)
        assert last.value == 7
    g.check_invariants()
