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
from collections.abc import Callable, Iterator
from contextvars import copy_context
from inspect import currentframe
from threading import RLock, Thread, current_thread, get_ident
from time import monotonic
from types import FrameType, TracebackType
from weakref import WeakMethod

from reactgrad_scheduler.errors import Later

# Seconds between two looks at what the thread inside is doing: at first, and at most.
FIRST_LOOK, LAST_LOOK = 0.001, 0.05

# Seconds after which a reader is let in where the owner waits for threads, unknown which ones; and
# where another thread is being waited for that may itself wait for this one (a pool that is full).
GRACE, STUCK = 0.05, 2.0

# Modules in which a thread stands that waits for another one.
WAITING = frozenset(("threading", "concurrent", "queue", "selectors", "asyncio"))


class Gate:
    """The way in while `owner` runs code of the user.

    Attributes
    ----------
    owner : int
        The thread that opened it.
    level : int
        How many nodes were being computed then: the last of them called the code of the user.
    reads_for : int
        The level whose node gets what is read now: `level`, but for a visitor that another one,
        further out, waits for.
    certain : int
        The level up to which nodes surely wait for who is inside: what they read there is a cycle.
    void : bool
        Whether who is inside has to leave and come back later; nothing it computes counts then.
    lock
        Held while somebody is inside.
    inside, depth
        The thread inside and how many nested calls it has made, or ``None`` and 0.
    """

    __slots__ = ("certain", "depth", "inside", "level", "lock", "owner", "reads_for", "void")

    def __init__(self) -> None:
        self.void = False
        self.owner = self.level = self.reads_for = self.certain = 0
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
        Method (kept weakly) that is asked, with the gate held, before another thread than its owner
        comes in: ``admit(target, level, certain)``, whether the node at `level` may wait for a
        thread that wants to read `target`; those up to the level `certain` surely do.
    """

    __slots__ = ("_admit", "_spare", "acquire", "gates", "release")

    def __init__(self, admit: Callable[[int | None, int, int], bool]) -> None:
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

    def open(self, level: int) -> Gate:
        """Let in those for whom the code of the user waits that the node at `level` calls next."""
        gate = self._spare.pop() if self._spare else Gate()
        gate.owner = get_ident()
        gate.level = gate.reads_for = gate.certain = level
        self.gates.append(gate)
        return gate

    def close(self, gate: Gate) -> None:
        """The code of the user has ended: wait until whoever came in has left.

        Raises
        ------
        Later
            If what was computed does not count.
        """
        interrupted = None
        if not gate.lock.acquire(blocking=False):
            interrupted = _finish(gate.lock.acquire)
        last = self.gates.pop()
        assert last is gate, "gates close innermost first"
        gate.lock.release()
        self._spare.append(gate)
        if interrupted is not None:
            raise interrupted
        if self.gates:
            self.check_void()

    def elsewhere(self, level: int, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Do `work`, which must not raise, on the fresh stack of a thread of its own.

        The context variables come along. `stop` is called if the wait for it is interrupted.
        """
        gate = self.open(level)
        gate.owner = 0  # who waits here runs no code of the user and does not come in

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
            gate.void = False
            gate.reads_for = gate.certain = gate.level
            gate.lock.release()
        return holder

    def visit(self, target: int | None, *, patient: bool = False) -> None:
        """Enter as a thread that does not hold the lock: through a gate, or when it is free.

        `patient`: not before it is certain that somebody waits for this thread.
        """
        if self.gates and self._come_back():
            return
        look, since = FIRST_LOOK, monotonic()
        while not self.acquire(timeout=look):
            look = min(2 * look, LAST_LOOK)
            gate = self._innermost()
            if gate is None or not gate.lock.acquire(blocking=False):
                continue
            try:
                if gate is self._innermost():
                    waited = 0.0 if patient else monotonic() - since
                    levels = self._welcome(target, waited)
                    if levels is not None:
                        gate.reads_for, gate.certain = levels
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

    def _welcome(self, target: int | None, waited: float) -> tuple[int, int] | None:
        """The levels for which this thread may come in, as ``Gate`` has them; ``None``: not now.

        Threads that one function waits for come in one after the other: one may need what another
        one has begun. Only where all stand still, the next one comes in nevertheless.
        """
        admit = self._admit()
        if admit is None:
            return None
        level, last = self._level_of_mine(), self.gates[-1]
        if level == last.level:
            return (level, level) if admit(target, level, level) else None
        if target is None or waited < (STUCK if level else GRACE) or not is_waiting(last.owner):
            return None
        reads_for = level or last.level
        return (reads_for, level) if admit(target, reads_for, level) else None

    def _level_of_mine(self) -> int:
        """The innermost level whose code of the user waits for this thread; 0: none."""
        owners: set[int] = set()
        for gate in reversed(self.gates):
            if gate.owner not in owners and waits_for_me(gate.owner):
                return gate.level
            owners.add(gate.owner)  # further out it waits for what it called itself
        return 0

    def refuse(self, level: int) -> None:
        """Raise ``Later`` if it is not certain that the node at `level` waits for who is inside."""
        for gate in self.gates:
            if gate.certain < level <= gate.level:
                gate.void = True
                raise Later

    def check_void(self) -> None:
        """Raise ``Later`` if that was raised in a thread that helped with what has just ended."""
        if any(gate.void for gate in self.gates):
            raise Later


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


# --- who waits for whom ----------------------------------------------------------------------------
# Neither threads nor futures know who waits for them; the innermost frame of a thread that waits
# does. No other frame of another thread is looked at: it may go on meanwhile.


def is_waiting(thread: int) -> bool:
    """Whether a thread stands where threads wait for each other."""
    frame = _innermost_frame(thread)
    name: str = "" if frame is None else frame.f_globals.get("__name__", "")
    return name.partition(".")[0] in WAITING


def waits_for_me(thread: int) -> bool:
    """Whether a thread waits for the end of the calling one, or for a future that it computes."""
    frame = _innermost_frame(thread)
    awaited = None if frame is None else frame.f_locals.get("self")
    if awaited is None:
        return False
    return awaited is current_thread() or any(awaited is one for one in _awaited_of_mine())


def _innermost_frame(thread: int) -> FrameType | None:
    return sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]


def _awaited_of_mine() -> Iterator[object]:
    """What threads wait on for the futures that this thread computes."""
    frame: FrameType | None = currentframe()
    while frame is not None:
        item = frame.f_locals.get("self")
        if (
            type(item).__module__ == "concurrent.futures.thread"
        ):  # what a pool calls the function of
            future = vars(item).get("future")
            yield getattr(future, "_condition", None)
            for waiter in list(getattr(future, "_waiters", ())):  # of `wait` and `as_completed`
                yield getattr(getattr(waiter, "event", None), "_cond", None)
        frame = frame.f_back
