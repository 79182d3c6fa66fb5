"""Waits of threads for each other, and waits that no interrupt ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from inspect import currentframe
from threading import RLock, Thread, get_ident
from types import FrameType

from reactgrad_scheduler.collector import CollectorPause

_JOIN = Thread.join.__code__
_walking = RLock()  # held while frames of other threads are walked

if hasattr(
    os, "register_at_fork"
):  # so that no child finds it held by a thread that it does not have
    os.register_at_fork(
        before=_walking.acquire,
        after_in_parent=_walking.release,
        after_in_child=_walking.release,
    )


def finish(
    wait: Callable[[], object], stop: Callable[[], None] | None = None
) -> BaseException | None:
    """Wait to the end, whatever signals come meanwhile. Return what their handlers raised first, if any."""
    interrupted: BaseException | None = None
    while True:
        try:
            wait()
            return interrupted
        except BaseException as error:  # KeyboardInterrupt, or another error of a signal handler
            if interrupted is None:
                interrupted = error
            if stop is not None:
                stop()


def is_joined_by(waiter: int) -> bool:
    """Return whether a thread waits in ``Thread.join`` for the calling one, directly or by others."""
    if sys.version_info >= (3, 12):
        return _is_joined_by(waiter)
    # Frame objects are made when they are asked for. Up to Python 3.11 the garbage collector may run then,
    # so that other threads go on and leave the very frames that are walked, which crashes: pause it.
    with _walking, CollectorPause():
        return _is_joined_by(waiter)


def _is_joined_by(waiter: int) -> bool:
    me, frames = get_ident(), sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    for _ in range(len(frames)):
        frame = frames.get(waiter)
        while frame is not None and frame.f_code is not _JOIN:
            frame = frame.f_back
        if frame is None:
            return False
        waiter = frame.f_locals["self"].ident
        if waiter == me:
            return True
    return False


def is_awaited() -> bool:
    """Return whether some thread waits for a future that the calling thread computes."""
    frame: FrameType | None = currentframe()
    while frame is not None:
        item = frame.f_locals.get("self")
        # The work item of a thread pool.
        if type(item).__module__ == "concurrent.futures.thread":
            future = vars(item).get("future")
            waiting = getattr(getattr(future, "_condition", None), "_waiters", ())
            return bool(waiting or getattr(future, "_waiters", ()))
        frame = frame.f_back
    return False
