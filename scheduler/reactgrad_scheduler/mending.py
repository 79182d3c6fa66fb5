"""Repairs after errors that come at any line, made at the next use of the graph.

Memory and stack can run out in any call, and Ctrl-C can come between any two lines. Such an error is
*stray*: no line means to raise it, so it may leave a change half made. Undoing the change on the way out is
not enough, since that takes memory and stack, too, and they have just run out. So two things are prepared
before:

- ``Scheduler.unfinished`` has, for each change under way, the call that undoes it (or finishes it, where that
  is the shorter way). It is entered before the first step, and removed once the change is made. Each may be
  called again after it was cut short itself.
- When a stray error leaves the lock of the graph, ``Mending`` takes the place of its ``acquire``: one assignment,
  which needs no stack and no memory. The next use of the graph, in any thread, so finds the graph as the error
  left it, and mends it first: it makes these calls, and puts everything in doubt that follows from versions
  (rule E16). If that fails, too, the use raises, and the next one tries again.

A graph that never saw a stray error pays nothing for it but the entry of a change.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import ref

from reactgrad_scheduler.errors import Later
from reactgrad_scheduler.exceptions import is_interrupt, notes_of
from reactgrad_scheduler.failure import FLEETING, Note


def is_stray(error: BaseException) -> bool:
    """Return whether an error is of a kind that comes at any line."""
    if issubclass(type(error), Later):
        return False
    if issubclass(type(error), FLEETING):
        # A node that has raised it is named in a note, and its run went to its end.
        return not any(type(note) is Note for note in notes_of(error))
    return is_interrupt(error)


class Mendable(Protocol):
    """Tables that can be put right after a stray error."""

    lock: Any

    def was_left(self) -> bool:
        """Return whether the thread that holds the lock has left its work without releasing it."""
        ...

    def mend(self, inside: bool) -> None:
        """Put them right; not yet if it is ``inside`` of the thread's own work, which goes on."""
        ...


class Mending:
    """In the place of ``acquire`` of a lock: acquires it, and mends what it guards.

    Parameters
    ----------
    raw
        The plain lock.

    Attributes
    ----------
    of : weakref to Mendable, or None
        The owner of the tables that the lock guards.
    """

    __slots__ = ("_raw", "of")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.of: ref[Mendable] | None = None

    def __call__(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, as its ``acquire`` does. Return whether it was acquired."""
        inside = self._raw._is_owned()
        tables = None if self.of is None else self.of()
        if inside and tables is not None and tables.was_left():
            while self._raw._is_owned():
                self._raw.release()
            inside = False
        acquire = tables.lock.usual if inside and tables is not None else self._raw.acquire
        try:
            if not acquire(blocking, timeout):
                return False
            if not inside and tables is not None:
                tables.lock.forget_ended()
            self.now(inside)
            return True
        except BaseException:
            if not inside and self._raw._is_owned():
                self._raw.release()
            raise

    def now(self, inside: bool) -> None:
        """Mend with the lock held; release it if that fails. ``inside``: the thread held it before."""
        try:
            tables = None if self.of is None else self.of()
            if tables is not None:
                tables.mend(inside)
        except BaseException:
            self._raw.release()
            raise
