"""Threads that help the calling one, and wait in between.

What it takes to wake one decides how small the work may be that is shared: a job is an entry in a queue
of the interpreter's own and one lock, some 30 us less than a future.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread

_HELPER, _CALLER = "helper", "caller"


class Job:
    """Something that a helper does, if one comes to it before the caller waits for it."""

    __slots__ = ("_ended", "_error", "_owner", "_work", "_working")

    def __init__(self, work: Callable[[], object]) -> None:
        self._error: BaseException | None = None
        self._work: Callable[[], object] | None = work
        self._owner: dict[str, str] = {}
        self._ended = False
        self._working = allocate_lock()
        self._working.acquire()

    def run(self) -> None:
        """Do it, unless it was called off."""
        if self._belongs_to(_HELPER) and self._work is not None:
            try:
                self._work()
            except BaseException as error:
                self._error = error
            finally:
                self._work = None
                self._ended = True
                self._working.release()

    def end(self) -> None:
        """Call it off, or wait for its end. After an interrupt: call it again."""
        if self._belongs_to(_CALLER):
            self._work = None  # until a helper comes by; what it would work on may be wanted back
            self._ended = True
        while not self._ended:
            self._working.acquire()

    def take_error(self) -> BaseException | None:
        """What it raised; once, since the error knows the job by its traceback."""
        error, self._error = self._error, None
        return error

    def _belongs_to(self, who: str) -> bool:
        """Whether it is his who asks, because he was the first; also if he asks once more."""
        return self._owner.setdefault("of", who) is who


_queue: SimpleQueue[Job] = SimpleQueue()
_count = 0


def start(work: Callable[[], object], count: int, started: list[Job]) -> None:
    """Let so many helpers do this in the context of the caller, if they come to it.

    What was started is added to `started` one by one: it is known, also if the next one cannot be.
    """
    global _count
    while _count < count:
        thread = Thread(target=_help, args=(_queue,), name=f"reactgrad_{_count}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many, or the interpreter is shutting down
            break
        _count += 1
    for _ in range(min(count, _count)):
        context = copy_context()
        started.append(Job(lambda run=context.run: run(work)))
        _queue.put(started[-1])


def _help(queue: SimpleQueue[Job]) -> None:
    while True:
        queue.get().run()


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _queue, _count
    _queue, _count = SimpleQueue(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
