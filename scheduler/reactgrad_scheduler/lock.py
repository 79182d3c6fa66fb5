"""The lock of a graph, lent out while the thread that holds it runs code of the user.

One thread at a time works on the tables. A Python function that is being computed, or an observer
that is being called, may wait for other threads that read the same graph (rule E14), and these must
not wait for it in turn.
So whoever calls code of the user *opens a gate* first, and closes it afterwards:

- Through a gate come in, one at a time, the thread that opened it (the function reads by itself) and
  threads that it may wait for. What they read counts as read by the function.
- ``close`` waits until whoever is inside has left, so nothing happens behind the back of the owner.
- Somebody inside may compute functions, too, and open the next gate.

Neither threads nor pools know who waits for them. A thread belongs to a function if it has its context
variables (``asyncio.to_thread``, ``contextvars.copy_context``), or if the function is seen to wait in
``Thread.join`` for it. It may belong to one if somebody waits for the future that it computes, or if the
lock is not free for a long time (``GRACE``): then it comes in, too, and what it reads counts as read by
every function that is under way. One parent too many costs a run and no more, until the function has run
again; one too few would be an old value. To change the
graph, or to read what waits for a function, such a thread goes out again until the lock is free; if
that is not soon (``PATIENCE``), and somebody waits for what it does, it raises instead of waiting for
ever.

Where several threads compute together, a *crew*, each has a *lane*: the nodes that it computes inside
of each other, and their gates. Still one thread at a time works on the tables, with its lane in place;
but whoever opens a gate gives up the lock meanwhile, so that functions and kernels run side by side.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from inspect import currentframe
from itertools import count
from threading import RLock, Thread, get_ident
from time import monotonic, sleep
from types import FrameType, TracebackType
from typing import Any, Protocol
from weakref import WeakMethod

from reactgrad_scheduler.errors import Later

# Seconds between two looks at what the thread inside is doing: at first, and at most.
FIRST_LOOK, LAST_LOOK = 0.001, 0.05

# Seconds that a thread waits for the lock before it is taken for one that a function waits for.
GRACE = 1.0

# Seconds that a thread gives a function to end that may be waiting for it.
PATIENCE = 5.0

# The innermost gate that was open where the code that runs was called.
_number: ContextVar[int] = ContextVar("reactgrad_gate", default=0)
_set_number, _reset_number = _number.set, _number.reset
_numbers = count(1)

_JOIN = Thread.join.__code__
_walking = RLock()  # over frames of other threads


class Gate:
    """The way in while `owner` runs code of the user.

    Attributes
    ----------
    owner : int
        The thread that opened it.
    level : int
        How many nodes were being computed then: the last of them called the code of the user; 0: it
        is no node that calls it.
    sure : bool
        Whether the code of the user surely waits for who is inside: then a read of what is being
        computed is a cycle.
    number : int
        Of this opening, never given again.
    void : int
        If who is inside has to leave, and nothing it computes counts: the number of the gate that
        must be closed before it comes back. Else 0.
    lock
        Held while somebody is inside.
    inside, depth
        The thread inside and how many nested calls it has made, or ``None`` and 0.
    lane
        Where a crew computes: what was left when the gate was opened. Else ``None``.
    """

    __slots__ = (
        "before",
        "depth",
        "held",
        "inside",
        "lane",
        "level",
        "lock",
        "number",
        "owner",
        "sure",
        "void",
    )

    def __init__(self) -> None:
        self.void = self.number = 0
        self.owner = self.level = 0
        self.sure = True
        # Re-entrant: an interrupted wait may have got it, and waits again.
        self.lock = RLock()
        self.inside: int | None = None
        self.depth = 0
        self.lane: Lane | None = None
        self.held: Any = None  # how often the lock was held that was given up for it


class Lane:
    """The nodes that one thread of a crew computes inside of each other, and their gates.

    While its thread works on the tables they are those of the scheduler and of the lock; here they
    wait meanwhile.
    """

    __slots__ = ("awaits", "computing", "gates", "retried")

    def __init__(self, computing: list[int], retried: int) -> None:
        self.computing = computing
        self.gates: list[Gate] = []
        self.retried = retried
        self.awaits: object = None  # what its thread waits for, if it waits for other lanes


class Lanes(Protocol):
    """Threads that compute together, as the lock sees them.

    Attributes
    ----------
    lanes : dict
        By thread. Two threads of one lane never run at the same time.
    inside : Lane or None
        The one that is in place: its thread holds the lock. ``None`` where nobody holds it.
    """

    lanes: dict[int, Lane]
    inside: Lane | None

    def enter(self, lane: Lane) -> None:
        """Put a lane in place, as the thread that holds the lock."""
        ...

    def leave(self) -> Lane:
        """Take the lane away that is in place; the lock is given up next."""
        ...

    def needed_by(self, target: int | None) -> list[Lane]:
        """Lanes with nodes under way that `target` needs, as the thread that holds the lock."""
        ...

    def others(self) -> list[int]:
        """Nodes under way in lanes that are not in place."""
        ...


class GraphLock:
    """A re-entrant lock with gates; used as ``with lock:``.

    Attributes
    ----------
    acquire, release
        As of a plain lock, without regard to gates.
    gates : list of Gate
        Of the calls under way, innermost last. Never empty while a crew computes and nobody is inside.
    crew : Lanes or None
        Who computes together, if several threads do.
    raw
        The plain lock. ``Condition(raw)`` waits for a change of the tables.

    Parameters
    ----------
    admit
        Method (kept weakly) that is asked, with the gate held, before another thread than its owner
        comes in: ``admit(target, level, certain)``, whether the node at `level` may wait for a
        thread that wants to read `target`; those up to the level `certain` surely do.
    """

    __slots__ = (
        "_admit",
        "_spare",
        "acquire",
        "crew",
        "gates",
        "give_up",
        "raw",
        "release",
        "take_back",
    )

    def __init__(self, admit: Callable[[int | None, int, int], bool]) -> None:
        raw: Any = RLock()
        self.raw = raw
        self.acquire, self.release = raw.acquire, raw.release
        # All calls of one thread at once, as ``threading.Condition`` does.
        self.give_up, self.take_back = raw._release_save, raw._acquire_restore
        self.crew: Lanes | None = None
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
        """Let in those for whom the code of the user waits that is called next.

        By the node at `level`; by nobody who is computed, at 0.
        """
        spare = self._spare
        gate = spare.pop() if spare else Gate()
        gate.owner = get_ident()
        gate.level = level
        gate.sure = True
        gate.number = number = next(_numbers)
        gate.before = _set_number(number)
        self.gates.append(gate)
        if self.crew is not None:
            gate.lane = self.crew.leave()
            gate.held = self.give_up()
        return gate

    def close(self, gate: Gate) -> None:
        """The code of the user has ended: wait until whoever came in has left.

        Raises
        ------
        Later
            If what was computed does not count.
        """
        interrupted = None
        if not gate.lock.acquire(False):
            interrupted = finish(gate.lock.acquire)
        lane = gate.lane
        if lane is not None:
            gate.lane = None
            assert self.crew is not None
            self.take_back(gate.held)
            self.crew.enter(lane)
        if self.gates[-1] is not gate:  # an interrupt has left those inside of it open
            self.abandon(self.gates.index(gate) + 1)
        _reset_number(gate.before)
        self.gates.pop()
        gate.lock.release()
        if not gate.depth:  # else this thread holds it still: an interrupt came before it had left
            self._spare.append(gate)
        if interrupted is not None:
            raise interrupted
        if self.gates:
            self.check_void()

    def abandon(self, kept: int) -> None:
        """Forget all gates but the first so many: an interrupt has left them open, or half closed."""
        while len(self.gates) > kept:
            gate = self.gates.pop()
            if gate.lane is not None and self.crew is not None:
                self.take_back(gate.held)
                self.crew.enter(gate.lane)
            with suppress(RuntimeError):  # it was reset
                _reset_number(gate.before)

    def elsewhere(self, level: int, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Do `work`, which must not raise, on the fresh stack of a thread of its own.

        The context variables come along. `stop` is called if the wait for it is interrupted.
        """
        gate = self.open(level)
        gate.owner = 0  # who waits here runs no code of the user and does not come in

        def come_in() -> None:
            me, crew = get_ident(), self.crew
            self._take(gate, me)
            if crew is not None:
                assert gate.lane is not None
                self.acquire()
                crew.lanes[me] = gate.lane
                crew.enter(gate.lane)
            try:
                work()
            finally:
                self.leave_gate()
                if crew is not None:
                    del crew.lanes[me]
                    self.release()

        thread = Thread(target=copy_context().run, args=(come_in,), daemon=True)
        thread.start()
        interrupted = finish(thread.join, stop)
        self.close(gate)
        if interrupted is not None:
            raise interrupted

    def is_held_here(self) -> bool:
        """Whether the thread that is inside holds the lock itself, and did not come through a gate."""
        return not self.gates or self.gates[0].owner == get_ident()

    # --- coming and going --------------------------------------------------------------------

    def enter_again(self, target: int | None = None) -> None:
        """Enter as the thread that holds the lock, while there are gates."""
        crew = self.crew
        if crew is not None and crew.inside is None:  # it only got hold of what was given up
            if get_ident() in crew.lanes:
                self._resume(crew, crew.lanes[get_ident()])
            else:
                self.release()
                self.visit(target)
            return
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

    def _resume(self, crew: Lanes, lane: Lane) -> None:
        """Come out of the code of the user that this thread of a crew runs; it holds the lock once."""
        me = get_ident()
        gate = next(gate for gate in reversed(lane.gates) if gate.owner == me)
        if not gate.lock.acquire(blocking=False):
            self.release()  # who is inside of the gate needs it to leave
            gate.lock.acquire()
            self.acquire()
        gate.inside, gate.depth = me, 1
        crew.enter(lane)

    def knock(self) -> Gate | None:
        """The innermost gate, with its lock held, if this thread opened it and nobody is inside."""
        try:
            gate = self.gates[-1]
        except IndexError:
            return None
        if gate.owner != get_ident() or not gate.lock.acquire(False):
            return None
        if gate.inside is None and self.gates[-1] is gate:
            return gate
        gate.lock.release()
        return None

    def leave_gate(self) -> bool:
        """Undo one enter through a gate; whether this thread holds the lock itself, too."""
        gate = self.gates[-1]
        holder = self.is_held_here()
        gate.depth -= 1
        if not gate.depth:
            gate.inside = None
            gate.void = 0
            gate.sure = True
            gate.lock.release()
            if self.crew is not None:
                self.crew.leave()
        return holder or self.crew is not None

    def visit(self, target: int | None) -> None:
        """Enter as a thread that does not hold the lock: through a gate, or when it is free."""
        crew = self.crew
        if crew is not None and get_ident() in crew.lanes:
            self.acquire()
            self._resume(crew, crew.lanes[get_ident()])
            return
        if crew is None and self.gates and self._come_back():
            return
        look, since = FIRST_LOOK, monotonic()
        while not self._is_free(look):
            look = min(2 * look, LAST_LOOK)
            if self.crew is not None:
                if self._join(target, monotonic() - since):
                    return
                continue
            gate = self._innermost()
            if gate is None or not gate.lock.acquire(blocking=False):
                continue
            try:
                # While a crew computes, its gates are for ``_join``, which holds the lock.
                if gate is self._innermost() and self.crew is None:
                    sure = self._welcome(target, monotonic() - since)
                    if sure is not None:
                        gate.sure = sure
                        gate.inside, gate.depth = get_ident(), 1
                        return
            finally:
                if gate.inside != get_ident():
                    gate.lock.release()

    def _is_free(self, timeout: float) -> bool:
        """Whether the lock was got within so many seconds, and not only from a crew that goes on."""
        if not self.acquire(timeout=timeout):
            return False
        if self.crew is None:
            return True
        self.release()
        sleep(FIRST_LOOK)
        return False

    def _join(self, target: int | None, waited: float) -> bool:
        """Enter as a thread for which a function of a crew may wait; ``False``: not now."""
        awaited, number = is_awaited(), _number.get()
        with self.raw:
            crew = self.crew
            if crew is None:
                return False
            lanes = [*dict.fromkeys(crew.lanes.values())]
            own = [
                lane
                for lane in lanes
                if lane.gates
                and (lane.gates[-1].number == number or is_joined_by(lane.gates[-1].owner))
            ]
            if own:
                lanes, sure = own, True
            elif awaited or waited > GRACE:
                needed = crew.needed_by(target)
                if needed and not (awaited and waited > PATIENCE):
                    return False  # finished soon, if nobody there waits for this thread
                lanes, sure = needed or lanes, bool(needed)
            else:
                return False
            for lane in lanes:
                gate = lane.gates[-1] if lane.gates else None
                if gate is None or gate.lane is not lane or not gate.lock.acquire(blocking=False):
                    continue
                self.acquire()
                gate.sure = sure
                gate.inside, gate.depth = get_ident(), 1
                crew.enter(lane)
                return True
        return False

    def _innermost(self) -> Gate | None:
        try:
            return self.gates[-1]
        except IndexError:
            return None

    def _welcome(self, target: int | None, waited: float) -> bool | None:
        """Whether it is sure that this thread belongs here; ``None``: it may not come in now."""
        admit = self._admit()
        if admit is None:
            return None
        last, awaited = self.gates[-1], is_awaited()
        if (
            last.number == _number.get()
            or is_joined_by(last.owner)
            or (awaited and waited > PATIENCE)
        ):
            sure = True
        elif awaited or waited > GRACE:
            sure = False
        else:
            return None
        return sure if admit(target, last.level, last.level if sure else 0) else None

    def wait_after(self, later: Later) -> None:
        """Wait as a thread that came in too early, until it may try again.

        Raises
        ------
        Later
            If that is for the code that called this thread to do.
        """
        me, end = get_ident(), monotonic() + PATIENCE
        while self._is_open(
            later.void
        ):  # if what goes on there waits for this thread, it must know
            if monotonic() > end or any(gate.owner == me for gate in self._all_gates()):
                raise later
            sleep(FIRST_LOOK)
        while self._is_open(later.until) and not (monotonic() > end and is_awaited()):
            sleep(FIRST_LOOK)

    def go_outside(self) -> bool:
        """Wait, as a thread of which it is not certain that it belongs here, until the lock is free.

        ``False``, with nothing changed: it does belong here, or seems to.
        """
        gate, me = self.gates[-1], get_ident()
        if gate.inside != me or gate.sure:
            return False
        calls, end = gate.depth, monotonic() + PATIENCE
        lane = None if self.crew is None else self.crew.inside
        gate.depth = 1
        self.leave_gate()
        held = None if lane is None else self.give_up()
        while not self._is_free(LAST_LOOK):
            if monotonic() <= end or not is_awaited():
                continue
            if lane is None and self._innermost() is gate:
                self._take(gate, me)
                gate.depth = calls
                return False
            if lane is not None and lane.gates[-1:] == [gate]:
                self._take(gate, me)
                gate.depth = calls
                self.take_back(held)
                assert self.crew is not None
                self.crew.enter(lane)
                return False
        for _ in range(calls - 1):
            self.acquire()
        return True

    def _all_gates(self) -> list[Gate]:
        """Of the calls under way, in all lanes."""
        if self.crew is None:
            return self.gates
        lanes = dict.fromkeys([*self.crew.lanes.values()])
        return [gate for lane in lanes for gate in lane.gates]

    def _is_open(self, number: int) -> bool:
        return any(gate.number == number for gate in self._all_gates())

    def levels(self, level: int) -> list[int]:
        """The levels whose nodes may be reading now, where `level` is the innermost one."""
        last = self.gates[-1] if self.gates else None
        if last is None or last.level < level or last.sure:
            return [level]
        return [gate.level for gate in self.gates if gate.level]

    def refuse(self, level: int) -> None:
        """Raise ``Later`` if it is not certain that the node at `level` waits for who is inside."""
        until = next((gate.number for gate in self.gates if gate.level >= level), 0)
        for gate in self.gates:
            if level <= gate.level and not gate.sure:
                gate.void = until
        self.check_void()

    def check_void(self) -> None:
        """Raise ``Later`` if that was raised in a thread that helped with what has just ended."""
        for gate in self.gates:
            if gate.void:
                raise Later(0 if gate is self.gates[-1] else self.gates[-1].number, gate.void)


def finish(
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


def is_joined_by(waiter: int) -> bool:
    """Whether that thread waits in ``Thread.join`` for the calling one, or for one that waits for it."""
    if sys.version_info >= (3, 12):
        return _is_joined_by(waiter)
    # Frames get their objects when they are asked for. If the garbage collector runs then, as it does there
    # until 3.11, other threads may go on meanwhile and leave the very frames that are walked: a crash.
    with _walking:
        collects = gc.isenabled()
        try:
            gc.disable()
            return _is_joined_by(waiter)
        finally:
            if collects:
                gc.enable()


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
    """Whether somebody waits for a future that the calling thread computes."""
    frame: FrameType | None = currentframe()
    while frame is not None:
        item = frame.f_locals.get("self")
        if (
            type(item).__module__ == "concurrent.futures.thread"
        ):  # what a pool calls the function of
            future = vars(item).get("future")
            waiting = getattr(getattr(future, "_condition", None), "_waiters", ())
            return bool(waiting or getattr(future, "_waiters", ()))
        frame = frame.f_back
    return False
