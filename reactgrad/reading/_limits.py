"""Limits of a read: its timeout, its executor, and what is raised when it ends early."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from reactgrad._errors import Cancelled, ParameterError
from reactgrad.core._core import Core
from reactgrad.scheduler import FAILED, Serial, Threads, block, safe_repr

# Seconds between two calls of `cancel`.
AGAIN = 0.05


@block
def running_by(graph: Core, executor: Serial | Threads) -> Iterator[None]:
    """Run nodes by another executor while the block is open."""
    if graph._computing:
        read_executor(executor)
        yield
        return
    scheduler = graph._scheduler
    former, scheduler.executor = scheduler.executor, read_executor(executor)
    try:
        yield
    finally:
        scheduler.executor = former


@block
def within(limit: float, cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` if the block takes longer than `limit` seconds, but never after it has ended.

    It is called again until the block ends: a run that begins at that very moment has not heard of it.
    """
    guard, ended = threading.Lock(), threading.Event()

    def watch() -> None:
        patience = limit
        while not ended.wait(patience):
            # Under the guard: a late call must not cancel a later run.
            with guard:
                if not ended.is_set():
                    cancel()
            patience = AGAIN

    threading.Thread(target=watch, name="reactgrad_limit", daemon=True).start()
    try:
        yield
    finally:
        with guard:
            ended.set()


def _check_cancelled(graph: Core, slots: Sequence[int]) -> None:
    """Raise ``Cancelled`` if a cancelled run left one of these nodes stale."""
    stale = graph._scheduler.truly_stale(slots)
    if not graph._computing:
        graph._scheduler.cancelled = False
    if stale:
        raise_cancelled(graph, len(stale))


def raise_cancelled(graph: Core, left: int) -> NoReturn:
    """Raise ``Cancelled`` with the number of nodes that are left to run."""
    _stop(
        graph,
        f"the run was cancelled, or its time was up, with {left} nodes still to run; what "
        "had run is kept. Read again to go on.",
    )


def _stop(graph: Core, message: str) -> NoReturn:
    """Raise ``Cancelled``, and end the run even if a function under way catches it."""
    stopped = Cancelled(message)
    if graph._computing:
        graph._scheduler.break_read(stopped)
    else:
        graph._scheduler.cancelled = False
    try:
        raise stopped
    finally:
        del stopped  # its traceback holds this frame


def left_to_run(graph: Core, slots: Sequence[int], retry: bool) -> int:
    """Return the least number of nodes that a read of these would run; runs nothing."""
    scheduler = graph._scheduler
    left = {*scheduler.truly_stale(slots), *scheduler.dropped.intersection(slots)}
    if retry:  # a retry also runs nodes whose errors were caught by functions
        ancestors = scheduler.topology.ancestors(slots)
        left.update([slot for slot in ancestors if graph._mark[slot] == FAILED])
    else:
        left = {slot for slot in left if graph._mark[slot] != FAILED}
    return len(left)


def read_executor(executor: Any) -> Threads | None:
    """Return the executor that was asked for; ``None`` stands for the thread that reads."""
    if isinstance(executor, Serial):
        return None
    if isinstance(executor, Threads):
        return executor
    raise ParameterError(
        f"executor={safe_repr(executor):.60}: write rg.Threads(n) for n threads, or rg.Serial()."
    )


def read_timeout(timeout: Any) -> float | None:
    """Return a time limit in seconds; ``None`` for one that no clock reaches."""
    number = isinstance(timeout, int | float | np.integer | np.floating)
    if not number or isinstance(timeout, bool) or math.isnan(timeout):
        raise ParameterError(
            f"forward(timeout={safe_repr(timeout):.60}): it is a number of seconds, or None for no limit."
        )
    return None if timeout >= threading.TIMEOUT_MAX else float(timeout)
