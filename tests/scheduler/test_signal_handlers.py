"""What a signal handler raises is nobody's error: nothing is stored, and the next read runs."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGALRM"), reason="there are no such signals here"
)


class Late(Exception):
    """The error of a program's own alarm."""


def plain(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError("late")


def nested(signum: int, frame: FrameType | None) -> None:
    def tell() -> None:
        raise Late("late")

    tell()


def with_text(text: str, signum: int, frame: FrameType | None) -> None:
    raise Late(text)


class Alarm:
    def method(self, *args: Any) -> None:
        raise Late(self)

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        raise TimeoutError("late")


HANDLERS: dict[str, Callable[..., Any]] = {
    "function": plain,
    "calls": nested,
    "partial": partial(with_text, "late"),
    "method": Alarm().method,
    "object": Alarm(),
    "lambda": lambda *_: [].pop(),
    "once": lambda number, frame: (signal.signal(number, signal.SIG_DFL), {}["late"]),
}


@contextlib.contextmanager
def handling(handler: Callable[..., Any]) -> Iterator[None]:
    former = signal.signal(signal.SIGALRM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, former)


def alarmed(on: list[bool]) -> Callable[[Any], Any]:
    """A function during which a signal comes while `on`."""

    def function(value: Any) -> Any:
        if on[0]:
            signal.raise_signal(signal.SIGALRM)
        return value + 1.0

    return function


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
@pytest.mark.parametrize("turns", [0, 1, 5], ids=["first read", "second read", "replayed plan"])
def test_what_a_handler_raises_is_not_stored(
    g: rg.Graph, handler: Callable[..., Any], turns: int
) -> None:
    on = [False]
    x = g.input(1.0)
    before = rg.lift(lambda v: v * 2.0)(x)
    y = rg.lift(alarmed(on))(before)
    z = y + 1.0
    for i in range(turns):
        x.set(float(i))
        z.value
    x.set(10.0)
    on[0] = True
    with handling(handler), pytest.raises((TimeoutError, Late, LookupError)) as caught:
        z.value
    assert not hasattr(caught.value, "__notes__")
    assert (y.state, z.state) == ("stale", "stale")
    assert g.last_run.ran == [before]
    assert not g.last_run.failed
    g.check_invariants()
    on[0] = False
    assert g.forward(z).ran == [y, z]
    assert z.value == 22.0


def test_a_handler_that_the_function_calls_itself_is_the_function_s(g: rg.Graph) -> None:
    def function(value: float) -> float:
        plain(signal.SIGALRM, None)
        return value

    y = rg.lift(function)(g.input(1.0))
    with handling(plain):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                y.value
    assert y.state == "error"


def test_a_function_that_handles_it_goes_on(g: rg.Graph) -> None:
    def function(value: float) -> float:
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimeoutError:
            return -1.0
        return value

    y = rg.lift(function)(g.input(1.0))
    with handling(plain):
        assert y.value == -1.0


def test_a_function_that_translates_it_has_failed(g: rg.Graph) -> None:
    def function(value: float) -> float:
        try:
            signal.raise_signal(signal.SIGALRM)
        except TimeoutError as error:
            raise ValueError("too slow") from error
        return value

    y = rg.lift(function)(g.input(1.0))
    with handling(plain), pytest.raises(ValueError, match="too slow"):
        y.value
    assert y.state == "error"


def test_a_read_inside_of_a_function_is_stopped(g: rg.Graph) -> None:
    on = [True]
    x = g.input(1.0)
    inner = rg.lift(alarmed(on))(x)
    y = rg.lift(lambda v: v + inner.value)(x)
    with handling(plain), pytest.raises(TimeoutError):
        y.value
    assert (inner.state, y.state) == ("stale", "stale")
    on[0] = False
    assert y.value == 3.0
    g.check_invariants()


def test_an_alarm_in_numpy_stops_the_read_only(g: rg.Graph) -> None:
    """A handler runs where NumPy returns, at the latest."""
    x = g.input(np.eye(150))
    y = x
    for _ in range(30):
        y = y @ x
    with handling(plain):
        stopped = 0
        for delay in (1e-5, 1e-4, 1e-3):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                while True:  # until the alarm comes, in a read or between two
                    x.touch()
                    y.value
            except TimeoutError:
                stopped += 1
    assert stopped == 3
    assert y.state != "error"
    assert not g.last_run.failed
    np.testing.assert_array_equal(y.value, np.eye(150))
    g.check_invariants()


def test_observers_and_cutoffs_are_stopped_too(g: rg.Graph) -> None:
    on, out = [True], []

    def cutoff(old: float, new: float) -> bool:
        if on[0]:
            signal.raise_signal(signal.SIGALRM)
        return False

    x = g.input(1.0)
    y = rg.lift(lambda v: v * 2.0, cutoff=cutoff)(x)
    assert y.value == 2.0
    x.set(2.0)
    with handling(plain), pytest.raises(TimeoutError):
        y.value
    assert y.is_stale
    on[0] = False
    assert y.value == 4.0
    y.observe(lambda old, new: on[0] and signal.raise_signal(signal.SIGALRM))
    y.observe(lambda old, new: out.append(new))
    on[0] = True
    x.set(3.0)
    with handling(plain), pytest.raises(TimeoutError):
        y.value
    on[0] = False
    assert y.value == 6.0
    assert out == [6.0], "who was not called is called the next time"


def test_a_transaction_is_taken_back(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    with handling(plain), pytest.raises(TimeoutError), g.transaction():
        x.set(5.0)
        signal.raise_signal(signal.SIGALRM)
    assert y.value == 2.0


def test_several_threads_are_stopped(g: rg.Graph) -> None:
    """The thread that reads gets the signal while others compute."""
    import threading

    gate = threading.Event()

    def slow(value: float) -> float:
        if main:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            gate.wait(5.0)
        return value + 1.0

    main = True
    x = g.input(1.0)
    a, b = rg.lift(slow)(x), rg.lift(slow)(x)

    def open_gate(signum: int, frame: FrameType | None) -> None:
        gate.set()
        raise TimeoutError("late")

    with handling(open_gate), pytest.raises(TimeoutError):
        g.forward(a, b, executor=rg.Threads(2))
    main = False
    g.forward(a, b)
    assert (a.value, b.value) == (2.0, 2.0)
    assert not g.last_run.failed
    g.check_invariants()
