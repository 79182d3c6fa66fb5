"""How long observers live, what they keep alive, and what they cost."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import pytest

import reactgrad as rg
from reactgrad.core import _observers
from reactgrad.observing import _observe, _stabilize, _tell
from reactgrad.reading import _forward
from reactgrad_scheduler.staleness import Staleness
from tests.reactive.callbacks import logged
from tests.reactive.steps import inverse, plus

# --- lifetime and cost ---------------------------------------------------------------------------------


def test_forks_have_no_observers(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    log: list[object] = []
    for kind in _observers.KINDS:
        y.observe(logged(log, kind), kind=kind)
    g.stabilize()
    log.clear()
    h = g.fork()
    assert (len(h._observers), len(g._observers)) == (0, 4)
    h[x].set(5)
    assert (h[y].value, h.stabilize(), h.stats().observers) == (6, 1, 0)
    assert log == []
    x.set(3)
    assert log == [("stale", y)]


@pytest.mark.parametrize("kind", _observers.KINDS)
def test_an_observer_keeps_its_node_until_it_is_cancelled(g: rg.Graph, kind: str) -> None:
    x = g.input(1)
    observer = plus(x).observe(print, kind=kind)
    gc.collect()
    assert len(g) == 2
    observer.cancel()
    del observer
    assert len(g) == 1


def modules(task: Callable[[], object]) -> set[str]:
    """The files of the functions that a task calls."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return files


def test_where_nobody_observes_no_code_of_observers_runs() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x + 1.0
    z = y * 2.0
    y.observe(print).cancel()
    y.observe(print, kind="stale").cancel()
    y.observe(print, kind="removed")
    assert type(g._scheduler.staleness) is Staleness

    def task() -> None:
        for value in (2.0, [3.0], 4.0):
            with suppress(rg.ReactgradError):
                x.set(value)
            g.forward(z)
            assert z.value == 2.0 * (x.value + 1.0)
        y.touch()
        y.pin(3.0)
        y.unpin()

    files = modules(task)
    assert _forward.__file__ in files
    assert files.isdisjoint({_observe.__file__, _tell.__file__, _stabilize.__file__})


def calls(task: Callable[[], object]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        task()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.trusting
@pytest.mark.parametrize("kind", ["changed", "stale", "error"])
def test_reading_one_of_many_observed_nodes_looks_at_no_other(kind: str) -> None:
    def read_one(observed: int) -> int:
        g = rg.Graph()
        x = g.input(1)
        nodes = [plus(x) for _ in range(observed)]
        g.forward(*nodes)
        for node in nodes:
            node.observe(lambda *told: None, kind=kind)
        x.set(2)
        nodes[1].value  # marks them all
        return calls(lambda: nodes[0].value)

    assert read_one(300) <= read_one(3) + 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["changed", "stale", "error"])
def test_attaching_to_telling_and_dropping_from_many_nodes_is_linear_work(kind: str) -> None:
    def all_of_it(count: int) -> int:
        g = rg.Graph()
        x = g.input(1)
        nodes = [inverse(x) if kind == "error" else plus(x) for _ in range(count)]
        if kind == "stale":
            g.forward(*nodes)
        told: list[object] = []

        def task() -> None:
            handles = [node.observe(lambda *new: told.append(new), kind=kind) for node in nodes]
            x.set(0)
            g.stabilize()
            for handle in handles:
                handle.cancel()

        work = calls(task)
        assert len(told) == count
        assert not g._observers
        return work

    assert all_of_it(2_000) <= 10.5 * all_of_it(200)


@pytest.mark.parametrize("look", ["nothing", "is_stale", "value_version", "why", "stats", "plan"])
def test_looking_at_a_change_takes_no_news_away(look: str, g: rg.Graph) -> None:
    looks: dict[str, Callable[[rg.Var], object]] = {
        "nothing": lambda y: None,
        "is_stale": lambda y: y.is_stale,
        "value_version": lambda y: y.value_version,
        "why": g.why,
        "stats": lambda y: g.stats(),
        "plan": g.plan,
    }
    log: list[object] = []
    x = g.input(1)
    y = plus(x)
    x.observe(logged(log, "x"))
    y.observe(logged(log, "y"))
    g.stabilize()
    log.clear()
    x.set(9)
    looks[look](y)
    x.value
    assert log == [("x", 1, 9)]
    y.value
    y.pin(3)
    looks[look](y)
    log.clear()
    y.value
    assert log == [("y", 10, 3)]


@pytest.mark.parametrize("given_back", [False, True])
def test_what_was_read_in_a_transaction_that_failed_is_told_as_soon_as_it_is_new(
    given_back: bool, g: rg.Graph
) -> None:
    x = g.input(1)
    y = plus(x)
    y.value
    log: list[object] = []
    y.observe(logged(log, "y"))
    x.set(5)
    with suppress(KeyError), g.transaction():
        assert y.value == 6
        if given_back:
            x.set(7)
            assert y.value == 8
        raise KeyError
    assert log == ([] if given_back else [("y", 2, 6)])
    assert y.value == 6
    assert log == [("y", 2, 6)]
