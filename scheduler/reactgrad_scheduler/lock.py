"""The lock of a graph, lent out while the thread that holds it runs code of the user.

One thread at a time works on the tables. A Python function that is being computed may wait for
other threads that read the same graph (rule E14), and these must not wait for the function in turn.
So whoever calls code of the user *opens a gate* first, and closes it afterwards:

- Through a gate come in, one at a time, the thread that opened it (the function reads by itself) and
  threads that it waits for. What they read counts as read by the function.
- ``close`` waits until whoever is inside has left, so nothing happens behind the back of the owner.
- Somebody inside may compute functions, too, and open the next gate.

Threads that nobody waits for, and whatever they want, stay outside until the lock is free.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextvars import copy_context
from inspect import currentframe
from threading import RLock, Thread, get_ident
from time import monotonic
from types import FrameType, TracebackType
from typing import cast
from weakref import WeakMethod

# Seconds between two looks at what the thread inside is doing: at first, and at most.
FIRST_LOOK, LAST_LOOK = 0.001, 0.05

# Seconds after which a reader is let in where the owner waits for threads, unknown which ones.
GRACE = 0.05

# Modules in which a thread stands that waits for another one.
WAITING = frozenset(("threading", "concurrent", "queue", "selectors", "asyncio"))


class Gate:
    """The way in while `owner` runs code of the user.

    Attributes
    ----------
    owner : int
        The thread that opened it.
    lock
        Held while somebody is inside.
    inside, depth
        The thread inside and how many nested calls it has made, or ``None`` and 0.
    """

    __slots__ = ("depth", "inside", "lock", "owner")

    def __init__(self) -> None:
        self.owner = 0
        # Re-entrant: an interrupted wait may have got it, and waits again.
        self.lock = RLock()
        self.inside: int | None = None
        self.depth = 0


class GraphLock:
    """A re-entrant lock with gates; used as ``with lock:``.

    Attributes
    ----------
    acquire, release
        As of a plain lock, without regard to gates.
    gates : list of Gate
        Of the calls under way, innermost last.

    Parameters
    ----------
    admit
        Method (kept weakly) that is asked, with the gate held, before a thread other than its owner
        comes in: whether a function is being computed that may wait for it. Its argument is what the
        thread wants to read where it is not certain that the function waits for that thread.
    """

    __slots__ = ("_admit", "_spare", "acquire", "gates", "release")

    def __init__(self, admit: Callable[[int | None], bool]) -> None:
        raw = RLock()
        self.acquire, self.release = raw.acquire, raw.release
        self.gates: list[Gate] = []
        self._spare: list[Gate] = []
        self._admit = WeakMethod(admit)

    def __enter__(self) -> None:
        if not self.acquire(False):
            self.visit(None)
        elif self.gates:
            self.enter_again()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.gates or self.leave_gate():
            self.release()

    # --- gates -------------------------------------------------------------------------------

    def open(self) -> Gate:
        """Let in those for whom the code of the user waits that is called next."""
        gate = self._spare.pop() if self._spare else Gate()
        gate.owner = get_ident()
        self.gates.append(gate)
        return gate

    def close(self, gate: Gate) -> None:
        """The code of the user has ended: wait until whoever came in has left."""
        interrupted = None
        if not gate.lock.acquire(blocking=False):
            interrupted = _finish(gate.lock.acquire)
        last = self.gates.pop()
        assert last is gate, "gates close innermost first"
        gate.lock.release()
        self._spare.append(gate)
        if interrupted is not None:
            raise interrupted

    def elsewhere(self, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Do `work`, which must not raise, on the fresh stack of a thread of its own.

        The context variables come along. `stop` is called if the wait for it is interrupted.
        """
        gate = self.open()

        def come_in() -> None:
            self._take(gate, get_ident())
            try:
                work()
            finally:
                self.leave_gate()

        thread = Thread(target=copy_context().run, args=(come_in,), daemon=True)
        thread.start()
        interrupted = _finish(thread.join, stop)
        self.close(gate)
        if interrupted is not None:
            raise interrupted

    # --- coming and going --------------------------------------------------------------------

    def enter_again(self) -> None:
        """Enter as the thread that holds the lock, while there are gates."""
        if not self._come_back():  # those were left by a thread that was interrupted on its way out
            self.gates.clear()

    def _come_back(self) -> bool:
        """Enter as a thread that is part of what goes on; ``False`` for any other."""
        me = get_ident()
        for gate in reversed(self.gates):
            if gate.inside == me:
                gate.depth += 1
                return True
            if gate.owner == me:  # out of the code of the user
                self._take(gate, me)
                return True
        return False

    def _take(self, gate: Gate, me: int) -> None:
        gate.lock.acquire()
        gate.inside, gate.depth = me, 1

    def leave_gate(self) -> bool:
        """Undo one enter through a gate; whether this thread holds the lock itself, too."""
        gate = self.gates[-1]
        holder = gate.inside == self.gates[0].owner
        gate.depth -= 1
        if not gate.depth:
            gate.inside = None
            gate.lock.release()
        return holder

    def visit(self, target: int | None) -> None:
        """Enter as a thread that does not hold the lock: through a gate, or when it is free."""
        if self.gates and self._come_back():
            return
        look, since = FIRST_LOOK, monotonic()
        while not self.acquire(timeout=look):
            look = min(2 * look, LAST_LOOK)
            gate = self._innermost()
            if gate is None or not gate.lock.acquire(blocking=False):
                continue
            try:
                patient = target is not None and monotonic() - since > GRACE
                if gate is self._innermost() and self._welcome(gate, target, patient):
                    gate.inside, gate.depth = get_ident(), 1
                    return
            finally:
                if gate.inside != get_ident():
                    gate.lock.release()

    def _innermost(self) -> Gate | None:
        try:
            return self.gates[-1]
        except IndexError:
            return None

    def _welcome(self, gate: Gate, target: int | None, patient: bool) -> bool:
        if waits_for_me(gate.owner):
            return self._ask(None)
        return patient and is_waiting(gate.owner) and self._ask(target)

    def _ask(self, target: int | None) -> bool:
        admit = self._admit()
        return admit is not None and admit(target)


def _finish(
    wait: Callable[[], object], stop: Callable[[], None] | None = None
) -> BaseException | None:
    """Wait to the end, whatever signals come in between; what they raised, if they did."""
    interrupted: BaseException | None = None
    while True:
        try:
            wait()
            return interrupted
        except BaseException as error:  # KeyboardInterrupt, or what else a handler raises
            interrupted = interrupted or error
            if stop is not None:
                stop()


def _frame_of(thread: int) -> FrameType | None:
    """The innermost frame of a thread, as debuggers get it."""
    return sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]


# --- who waits for whom ----------------------------------------------------------------------------


def is_waiting(owner: int) -> bool:
    """Whether a thread stands where threads wait for each other."""
    frame = _frame_of(owner)
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in WAITING


def waits_for_me(owner: int) -> bool:
    """Whether a thread holds a future, a pool or a thread that the calling thread works for.

    Read off the local variables of what it is running, as a debugger would: neither pools nor
    threads know who started them.
    """
    frame = _frame_of(owner)
    if frame is None:
        return False
    me = get_ident()
    mine = {id(future) for future in _futures_of_mine()}
    for value in _locals(frame):
        if isinstance(value, Thread):
            if value.ident == me:
                return True
        elif isinstance(value, Future):
            if id(cast("object", value)) in mine:
                return True
        elif isinstance(value, Executor):
            threads = getattr(value, "_threads", ())
            if any(thread.ident == me for thread in list(threads)):
                return True
    return False


def _locals(frame: FrameType | None) -> Iterator[object]:
    """Local variables of a frame and its callers up to the scheduler, with the items of lists."""
    while frame is not None and not frame.f_globals.get("__name__", "").startswith(__package__):
        for value in list(frame.f_locals.values()):
            yield value
            if isinstance(value, list | tuple | set | frozenset):
                yield from list(cast("Iterable[object]", value))
            elif isinstance(value, dict):
                for pair in list(cast("dict[object, object]", value).items()):
                    yield from pair
        frame = frame.f_back


def _futures_of_mine() -> Iterator[object]:
    """The futures that this thread computes, innermost first."""
    frame: FrameType | None = currentframe()
    while frame is not None:
        item = frame.f_locals.get("self")
        future = getattr(item, "future", None)
        if isinstance(future, Future):
            yield future
        frame = frame.f_back
