"""An error at any line that a thread of the engine runs ends the call, and the graph is as before or as after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.blocks import _jobs
from reactgrad.data import _workers
from tests.interrupts import Strike

ERRORS = [MemoryError, KeyboardInterrupt]
Model = tuple[Any, Any, Callable[[Any], Any]]  # a leaf, what is read, and its formula


def functions(checked: bool) -> Model:
    """Functions that run at the same time; checked, where one of them reads nodes."""
    g = rg.Graph(executor=rg.Threads(2))
    x = g.input(1.0)

    def times(factor: int) -> Any:
        return rg.lift(lambda v: (time.sleep(0.001), v * factor)[1])(x)

    parts = [times(factor) for factor in range(1, 5)]
    if checked:
        y = rg.lift(lambda *values: sum(values) + x.value + parts[0].value)(*parts)
        x.set(3.0)
        return x, y, lambda v: 12.0 * v
    y = rg.lift(lambda *values: sum(values))(*parts)
    for number in (2.0, 3.0, 4.0):
        x.set(number)
        assert y.value == 10.0 * number
    x.set(5.0)
    return x, y, lambda v: 10.0 * v


def blocks() -> Model:
    """A large array by blocks, whose threads are new and so can be struck."""
    for _ in _jobs._helpers:
        _jobs._queue.put(Last())  # pyright: ignore[reportArgumentType]
    for thread in _jobs._helpers:
        thread.join()
    while not _jobs._queue.empty():  # of threads that were struck
        _jobs._queue.get()
    g = rg.Graph()
    x = g.input(np.full(400_000, 0.5))
    return x, (rg.tanh(x) * 2.0 + x).sum(), lambda v: (np.tanh(v) * 2.0 + v).sum()


class Last:
    """A job that ends the thread that takes it."""

    def run(self) -> None:
        raise SystemExit

    def give_up(self, error: BaseException) -> None:
        raise error


MODELS: dict[str, Callable[[], Model]] = {
    "checked": lambda: functions(checked=True),
    "straight": lambda: functions(checked=False),
    "blocks": blocks,
}


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Arrays in blocks by two threads; threads that end by an error print nothing."""
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    before = rg.get_num_threads()
    rg.set_num_threads(2)
    yield
    rg.set_num_threads(before)


def at_many_lines(act: Callable[[int], int], least: int, most: int) -> None:
    """Strike some `most` of the lines that an act has; there are more than `least`."""
    lines = act(10**9)
    assert lines > least
    for at in range(1, lines + 1, max(1, lines // most)):
        act(at)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", MODELS)
def test_a_read_by_several_threads_ends_wherever_one_is_struck(
    name: str, error: type[BaseException]
) -> None:
    """Where a lane was left, a gate opened or closed, and a job ended, reads waited for ever."""

    def read_once(at: int) -> int:
        x, y, right = MODELS[name]()
        strike = Strike(at, error)
        with suppress(error):
            np.testing.assert_allclose(strike.during(lambda: y.value), right(x.value))
        y.graph.check_invariants()
        y.graph.forward(y, retry=True)
        np.testing.assert_allclose(y.value, right(x.value))
        x.set(x.value * 2.0)
        np.testing.assert_allclose(y.value, right(x.value))
        y.graph.check_invariants()
        return strike.lines

    at_many_lines(read_once, 20, 60)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_a_loader_ends_wherever_one_of_its_threads_is_struck(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that ended between two jobs took one of them along, and its batch was waited for for ever."""
    monkeypatch.setattr(_workers, "PATIENCE", 0.01)
    loader = rg.data.DataLoader(rg.data.ArrayDataset(np.arange(24.0)), batch_size=4, workers=2)

    def load_once(at: int) -> int:
        batches: list[Any] = []
        strike = Strike(at, error)
        with suppress(error):
            strike.during(lambda: batches.extend(batch for (batch,) in loader))
            assert len(batches) == 6
        np.testing.assert_array_equal(np.concatenate([[], *batches]), np.arange(4.0 * len(batches)))
        np.testing.assert_array_equal(
            np.concatenate([batch for (batch,) in loader]), np.arange(24.0)
        )
        return strike.lines

    at_many_lines(load_once, 100, 80)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_a_farm_ends_wherever_one_of_its_threads_is_struck(error: type[BaseException]) -> None:
    """A thread that ended between two pieces left the sweep waiting for it."""
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x * 3.0
    changes = [{x: float(number)} for number in range(6)]

    def sweep_once(at: int) -> int:
        found: list[Any] = []
        strike = Strike(at, error)
        with rg.distributed.Farm(g, 2, outputs=[y]) as farm:
            with suppress(error):
                strike.during(lambda: found.extend(farm.map(changes)))
                assert len(found) == 6
        assert found == [3.0 * number for number in range(len(found))]
        assert y.value == 3.0
        return strike.lines

    at_many_lines(sweep_once, 100, 60)
