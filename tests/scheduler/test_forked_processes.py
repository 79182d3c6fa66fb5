"""Children of ``os.fork`` while threads of the parent compute: they work, or raise at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler import processes

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

REFUSED = "forked while another thread was using the graph"


def child(work: Callable[[], object]) -> str:
    """Do work in a forked process. Return what it returns, or raises, as text."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # ends a child that hangs
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text[:1000].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child hangs"
    return text


@contextmanager
def computing(read: Callable[[], object], begun: threading.Event) -> Iterator[None]:
    """A block while another thread reads."""
    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(20)
    yield
    thread.join(20)


def slow(begun: threading.Event, end: threading.Event) -> Callable[[float], float]:
    def work(value: float) -> float:
        begun.set()
        end.wait(20)
        return value + 1.0

    return work


USES: dict[str, Callable[[rg.Graph, rg.Var, rg.Var], object]] = {
    "read": lambda g, x, y: y.value,
    "set": lambda g, x, y: x.set(5.0),
    "set together": lambda g, x, y: g.set({x: 5.0}),
    "build": lambda g, x, y: x * 2.0,
    "edit": lambda g, x, y: y.replace_parent(0, x),
    "forward": lambda g, x, y: g.forward(y),
    "fork": lambda g, x, y: g.fork(),
    "a new thread": lambda g, x, y: in_a_thread(lambda: x.set(5.0)),
}


def in_a_thread(work: Callable[[], object]) -> object:
    raised: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise raised[0]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("executor", [rg.Serial(), rg.Threads(2)])
def test_a_child_raises_at_once_where_another_thread_computes(
    executor: rg.Serial | rg.Threads, use: str
) -> None:
    begun, end = threading.Event(), threading.Event()
    g = rg.Graph()
    g.executor = executor
    x, a = g.input(1.0), g.input(1.0)
    y = rg.lift(slow(begun, end))(a)
    z = rg.lift(slow(begun, end))(a) + y
    with computing(lambda: z.value, begun):
        text = child(lambda: USES[use](g, x, y))
        end.set()
    assert text.startswith("BusyError: this process was")
    assert REFUSED in text
    assert z.value == 4.0  # nothing has happened to the parent


def test_a_child_works_with_a_graph_that_no_other_thread_uses() -> None:
    begun, end = threading.Event(), threading.Event()
    g, busy = rg.Graph(), rg.Graph()
    x, w = g.input(1.0), g.param(np.ones(300_000))
    y = (w * x).sum()
    y.value
    z = rg.lift(slow(begun, end))(busy.input(1.0))

    def work() -> object:
        x.set(2.0)
        with g.transaction():
            w.set(2.0 * w.value)
        twin = g.fork()
        return [float(v.value) for v in (y, rg.grad(y, x), twin[y])]

    with computing(lambda: z.value, begun):
        text = child(work)
        end.set()
    assert text == "[1200000.0, 600000.0, 1200000.0]"
    assert y.value == 300_000.0


def test_a_child_of_the_thread_that_holds_the_graph_works() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x + 1.0
    with g.transaction():
        x.set(2.0)
        text = child(lambda: y.value)
    assert text == "3.0"
    assert y.value == 3.0


def test_what_is_told_of_forks_does_not_grow() -> None:
    g = rg.Graph()
    count = len(processes._living)
    for _ in range(100):
        rg.Graph()
        with g.whatif({}):
            pass
    assert len(processes._living) <= count + 2


def test_a_pool_of_forked_processes_works() -> None:
    if sys.platform != "linux":
        pytest.skip("processes are not forked here by default")
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(doubled, [1.0, 2.0, 3.0]) == [2.0, 4.0, 6.0]


_SHARED = rg.Graph()
_X = _SHARED.input(0.0)
_Y = _X * 2.0


def doubled(value: float) -> float:
    _X.set(value)
    return float(_Y.value)
