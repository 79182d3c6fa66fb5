"""Reads inside of functions that are stopped: whatever a function makes of that is no value of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg
from reactgrad_scheduler.executors import costs

EXECUTORS = [None, rg.Threads(2)]


class Reader:
    """A node that reads another one, and makes -1, or an error, of whatever that raises.

    Attributes
    ----------
    stop : callable, optional
        Is called where what is read is computed; without it that is `x`.
    """

    def __init__(self, executor: Any, again: Any = None) -> None:
        g = self.g = rg.Graph(executor=executor)
        self.stop: Callable[[], object] | None = None
        self.x = g.input(0)
        self.stopping = rg.lift(self._pass_on)(self.x)
        self.read = rg.lift(lambda v: v)(self.stopping)

        def reader() -> Any:
            try:
                return self.read.value
            except BaseException:
                if again is not None:
                    raise again from None
                return -1

        with g:
            self.y = rg.lift(reader)()

    def _pass_on(self, v: int) -> int:
        if self.stop is not None:
            self.stop()
        return v

    def warm(self, reads: int) -> None:
        for i in range(reads):
            self.x.set(10 + i)
            assert self.y.value == 10 + i

    def release(self, *variables: rg.Var) -> None:
        slots = [one._slot for one in variables]
        for slot in slots:
            self.g._host.discard(slot)
        self.g._scheduler.drop(slots)

    def cancel(self) -> None:
        """From another thread, as a user would."""
        thread = threading.Thread(target=self.g.cancel)
        thread.start()
        thread.join()

    def goes_on_from(self, value: int) -> None:
        """What was stopped has left nothing behind."""
        self.stop = None
        assert self.y.is_stale
        assert self.y.value == value
        self.x.set(2)
        assert (self.y.value, self.y.parents) == (2, [self.read])
        self.g.check_invariants()


def raising(error: type[BaseException]) -> Callable[[], None]:
    def stop() -> None:
        raise error

    return stop


@pytest.mark.parametrize("again", [None, ValueError("of its own")])
@pytest.mark.parametrize("reads", [0, 1, 8])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_ends_the_run_whatever_a_function_makes_of_it(
    kind: type[BaseException], executor: Any, reads: int, again: Any
) -> None:
    one = Reader(executor, again)
    one.warm(reads)
    one.x.set(1)
    one.stop = raising(kind)
    with pytest.raises(kind):
        _ = one.y.value
    one.goes_on_from(1)


@pytest.mark.parametrize("again", [None, ValueError("of its own")])
@pytest.mark.parametrize("reads", [0, 1, 8])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_cancelled_read_leaves_its_reader_stale_whatever_that_makes_of_it(
    executor: Any, reads: int, again: Any
) -> None:
    one = Reader(executor, again)
    one.warm(reads)
    one.x.set(1)
    one.stop = one.cancel
    with pytest.raises(rg.Cancelled):
        one.g.forward(one.y)
    one.goes_on_from(1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_read_of_what_is_computed_again_is_cancelled(executor: Any) -> None:
    one = Reader(executor)
    one.warm(2)
    one.release(one.stopping, one.read)
    one.y.touch()
    one.stop = one.cancel
    with pytest.raises(rg.Cancelled):
        _ = one.y.value
    one.goes_on_from(11)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_value_that_is_computed_again_is_none_where_its_read_was_stopped(executor: Any) -> None:
    one = Reader(executor)
    first = one.read
    one.warm(1)
    one.read = rg.lift(one._pass_on)(one.x)  # it reads another one the next time
    one.release(one.y)
    one.stop = raising(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        _ = one.y.value
    one.stop = None
    assert one.y.value == 10
    assert (one.g.last_run.ran, one.g.last_run.rebuilt) == ([one.read], [one.y])
    one.read = first
    one.x.set(2)
    assert one.y.value == 2
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


def test_a_stopped_read_beside_other_threads_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that several threads run straight, in which a function reads for the first time."""
    monkeypatch.setattr(costs, "LONG", 0.0)
    stop = reading = False

    def inner(v: int) -> int:
        if stop:
            raise KeyboardInterrupt
        return v

    g = rg.Graph(executor=rg.Threads(2))
    x = g.input(0)
    read = rg.lift(inner)(x)

    def reader(v: int) -> int:
        if not reading:
            return v
        try:
            return read.value
        except BaseException:
            return -1

    last = rg.lift(lambda a, b: a)(rg.lift(reader)(x), rg.lift(lambda v: v)(x))
    for k in range(8):
        x.set(k)
        assert last.value == k
    x.set(50)
    reading = stop = True
    with pytest.raises(KeyboardInterrupt):
        _ = last.value
    stop = False
    assert last.value == 50
    g.check_invariants()
