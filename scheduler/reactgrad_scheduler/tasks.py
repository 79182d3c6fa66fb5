"""Blocks that belong to the task that opened them, although other tasks of its thread may go on meanwhile.

The lock of a graph is held by a thread. With ``asyncio``, and with generators, several tasks take turns in
one thread: while one of them waits inside of a block (``await`` in a transaction), others could come
through the lock that the block holds. An owner of a block knows its task: that of ``asyncio`` if one runs,
and in any case code with the context variables that the block was opened with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident

from reactgrad_scheduler.errors import BlockError

# The owners of the blocks that the running code, or code that it was called by, has opened.
_open: ContextVar[tuple[Owner, ...]] = ContextVar("reactgrad_blocks_of_task", default=())


class Owner:
    """The task that has opened a block.

    Attributes
    ----------
    thread : int
        The thread that holds the lock for the block.
    void : bool
        True once another task has come in, and the block was broken off.
    """

    __slots__ = ("_break_off", "_task", "thread", "void")

    def __init__(self, break_off: Callable[[], None] | None = None) -> None:
        self._break_off = break_off
        self._task = _running_task()
        self.thread = get_ident()
        self.void = False
        _open.set((*_open.get(), self))

    @property
    def guards(self) -> bool:
        """True if no other task may use the graph while the block is open."""
        return self._break_off is not None

    def close(self) -> None:
        """Note that the block has ended."""
        _open.set(tuple([one for one in _open.get() if one is not self]))

    def is_here(self) -> bool:
        """Return whether the running code belongs to the block."""
        return self in _open.get() and (self._task is None or self._task is _running_task())

    def admits(self) -> bool:
        """Return whether the running code, in the thread of the block, may use the graph."""
        return not self.void if self.is_here() else self.void or self._break_off is None

    def meet(self) -> None:
        """Break the block off for another task that wants to use the graph.

        Raises
        ------
        BlockError
            In the task of the block, if that has happened.
        """
        if self.admits():
            return
        if self.void:
            raise broken_off()
        self.void = True
        assert self._break_off is not None
        self._break_off()

    def is_awaiting(self) -> bool:
        """Return whether the running code, in another thread, was called by a task in the block."""
        return self._task is not None and self in _open.get()


def _running_task() -> object:
    """Return the task of ``asyncio`` that runs in this thread, ``None`` if none does."""
    asyncio = sys.modules.get("asyncio")  # not loaded unless it is used
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


def broken_off() -> BlockError:
    """Return the error for a transaction that another task has come into."""
    return BlockError(
        "another task used the graph while a transaction of this task was open, at an `await` or a yield inside "
        "of it. So the transaction was broken off, and nothing of it was kept; the other task's changes "
        "stay. Await before the block or after it, and open the block for the changes alone."
    )


def refused_thread() -> BlockError:
    """Return the error for a thread that was called from a block, and waits for its end."""
    return BlockError(
        "this thread was called by a task inside a block (a transaction, or a block of edits), which holds "
        "the graph until it ends: if the task awaits the thread, both would wait for ever. Call the "
        "thread before the block or after it, or pass it values in place of Vars."
    )
