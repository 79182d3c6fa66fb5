"""Threads that help the calling one, and wait in between.

The cost of waking a thread decides how small the work may be that is shared. So a job is only an entry in
a ``SimpleQueue`` and one lock, which takes some 30 us less than a future.
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
    """Work for a helper thread, unless the caller ends the job before a helper takes it."""

    __slots__ = ("_ended", "_error", "_owner", "_work", "_working")

    def __init__(self, work: Callable[[], object]) -> None:
        self._error: BaseException | None = None
        self._work: Callable[[], object] | None = work
        self._owner: dict[str, str] = {}
        self._ended = False
        self._working = allocate_lock()
        self._working.acquire()  # released at the end of the work, so `end` waits by acquiring it

    def run(self) -> None:
        """Do the work, in a helper thread, unless the caller has ended the job."""
        if self._belongs_to(_HELPER) and self._work is not None:
            try:
                self._work()
            except BaseException as error:
                self._error = error
            finally:
                self._work = None
                self._ended = True  # before the release: whoever gets the lock finds it set
                self._working.release()

    def give_up(self, error: BaseException) -> None:
        """End the job with this error, in the helper thread, wherever `run` has come to."""
        if self._owner.get("of") is _HELPER:
            self._error, self._work = error, None
            self._ended = True
            if self._working.locked():
                self._working.release()

    def end(self) -> None:
        """Cancel the job if no helper has taken it, or else wait until its work is done.

        After an interrupt it has to be called again.
        """
        if self._belongs_to(_CALLER):
            # The job stays in the queue until a helper takes it, and must not keep arrays alive so long.
            self._work = None
            self._ended = True
        if not self._ended:
            self._working.acquire()
            self._ended = True  # also where an error has kept the helper from saying so

    def take_error(self) -> BaseException | None:
        """Return the error that the work raised, or ``None``, and forget it.

        The error's traceback refers to the job: a job that kept it would be a cycle of references.
        """
        error, self._error = self._error, None
        return error

    def _belongs_to(self, who: str) -> bool:
        """Claim the job for `who`. Return whether it is theirs: the first claim counts."""
        # `setdefault` is one atomic step, and gives the same answer if an interrupt makes it repeat.
        return self._owner.setdefault("of", who) is who


_queue: SimpleQueue[Job] = SimpleQueue()
_helpers: list[Thread] = []


def start(work: Callable[[], object], count: int, started: list[Job]) -> None:
    """Queue `work` for `count` helpers, each in a copy of the caller's context.

    Each job is added to `started` before it is queued, so that the caller knows all of them, even if
    this call is interrupted.
    """
    helpers = _helpers
    if not all(map(Thread.is_alive, helpers)):  # an error between two jobs has ended one
        helpers[:] = [one for one in helpers if one.is_alive()]
    while len(helpers) < count:
        thread = Thread(target=_help, args=(_queue,), name=f"reactgrad_{len(helpers)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the interpreter is shutting down
            break
        helpers.append(thread)
    for _ in range(min(count, len(helpers))):
        context = copy_context()
        started.append(Job(lambda run=context.run: run(work)))
        _queue.put(started[-1])


def _help(queue: SimpleQueue[Job]) -> None:
    while True:
        job = queue.get()
        try:
            job.run()
        except BaseException as error:  # between two steps of `run`: memory has run out
            job.give_up(error)
        del job


def _forget() -> None:
    """Begin with no threads in a forked process, which has none of its parent's."""
    global _queue
    _queue = SimpleQueue()
    _helpers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
