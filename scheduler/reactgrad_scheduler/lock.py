"""The lock of a graph, which lets other threads in while its holder runs user code.

One thread at a time works on the tables. User code (a Python function that is being computed, or an
observer that is being called) may wait for other threads that read the same graph (rule E14), and these
threads must not wait for the user code in turn. So a thread *opens a gate* before it calls user code, and
closes it afterwards:

- Through a gate come in, one at a time, the thread that opened it (when the function reads by itself), and
  threads that the function may wait for. Their reads count as reads of the function.
- ``close`` waits until the thread inside has left, so that nothing changes unnoticed by the owner.
- A thread inside may compute functions, too, and open the next gate.

Neither threads nor pools know which thread waits for them. A thread belongs to a function if it has the
function's context variables (``asyncio.to_thread``, ``contextvars.copy_context``), or if the function is
seen to wait in ``Thread.join`` for it. It may belong to a function if some thread waits for the future
that it computes, or if the lock is not free for a long time (``GRACE``). Then it comes in, too, and its
reads count as reads of every function under way. One parent too many costs only a run, until the function
has run again; one too few would mean an old value. To change the graph, or to read a node that waits for a
function, such a thread goes out again until the lock is free. If that takes long (``PATIENCE``), and some
thread waits for its result, it raises instead of waiting for ever.

If several threads compute together, as a *crew*, each has a *lane*: the nodes that it computes inside of
each other, and their gates. Still one thread at a time works on the tables, with its lane in place. But a
thread that opens a gate gives up the lock meanwhile, so that functions and kernels run side by side.

While a task has a block open (``hold``), the lock looks at the task, too (see ``tasks``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from itertools import count
from threading import RLock, Thread, get_ident
from time import monotonic, sleep
from types import TracebackType
from typing import Any
from weakref import WeakMethod

from reactgrad_scheduler.errors import BusyError, Later
from reactgrad_scheduler.gates import Gate, Lane, Lanes
from reactgrad_scheduler.mending import Mending, is_stray
from reactgrad_scheduler.processes import watch_forks
from reactgrad_scheduler.tasks import Owner, broken_off, refused_thread
from reactgrad_scheduler.waits import finish, is_awaited, is_joined_by

# Seconds between two checks of what the thread inside is doing: at first, and at most.
FIRST_LOOK, LAST_LOOK = 0.001, 0.05

# After waiting so many seconds for the lock, a thread is assumed to be one that a function waits for.
GRACE = 1.0

# So many seconds a thread waits for a function to end that may be waiting for the thread.
PATIENCE = 5.0

# The number of the innermost gate that was open where the running code was called.
_number: ContextVar[int] = ContextVar("reactgrad_gate", default=0)
_set_number, _reset_number = _number.set, _number.reset
_numbers = count(1)


class GraphLock:
    """A re-entrant lock with gates, used as ``with lock:``.

    Attributes
    ----------
    acquire, release
        The methods of a plain lock, without regard to gates. After a stray error ``mending`` stands in the
        place of ``acquire``; see ``mending``.
    gates : list of Gate
        The gates of the calls under way, innermost last. Never empty while a crew computes and none of
        its threads holds the lock.
    owners : list of Owner
        The tasks that have blocks open.
    crew : Lanes or None
        The threads that compute together, if there are several.
    raw
        The plain lock. ``Condition(raw)`` waits for a change of the tables.

    Parameters
    ----------
    admit
        A method, kept weakly, that is called with the gate held before a thread other than its owner
        comes in: ``admit(target, level, certain)`` returns whether the node at ``level`` may wait for a
        thread that wants to read ``target``; nodes up to the level ``certain`` certainly do.
    """

    __slots__ = (
        "__weakref__",
        "_admit",
        "_lost",
        "_spare",
        "acquire",
        "crew",
        "gates",
        "give_up",
        "mending",
        "owners",
        "raw",
        "release",
        "take_back",
    )

    def __init__(self, admit: Callable[[int | None, int, int], bool]) -> None:
        raw: Any = RLock()
        self.raw = raw
        self.acquire, self.release = raw.acquire, raw.release
        self.mending = Mending(raw)
        # All nested calls of one thread at once, as in ``threading.Condition``.
        self.give_up, self.take_back = raw._release_save, raw._acquire_restore
        self.crew: Lanes | None = None
        self.owners: list[Owner] = []
        self.gates: list[Gate] = []
        self._spare: list[Gate] = []
        self._lost = False  # True in a forked process, if another thread held it then
        self._admit = WeakMethod(admit)
        watch_forks(self)

    def __enter__(self) -> None:
        # A free lock costs one call of C code; everything else is in methods of its own.
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
        try:
            if error is not None:
                # First and without a call: the stack may be full.
                usual, self.acquire = self.acquire, self.mending
                if not is_stray(error):
                    self.acquire = usual
        finally:
            if not self.gates or self.leave_gate():
                self.release()

    # --- forked processes ----------------------------------------------------------------------

    def forked(self) -> None:
        """Refuse all that comes, in a forked process, if another thread was at work with the tables."""
        me = get_ident()
        mine = self.raw.acquire(False)
        for gate in self.gates:
            if gate.inside not in (None, me):  # it would never leave
                gate.lock, gate.inside, gate.depth = RLock(), None, 0
                mine = False
        if mine and self.crew is None:
            self.release()
            return
        self._lost = True
        self.acquire = _never

    # --- blocks of tasks -----------------------------------------------------------------------

    def hold(self, break_off: Callable[[], None] | None = None) -> Owner:
        """Note that the running task opens a block; the thread holds the lock until ``drop``.

        ``break_off`` takes the block back before another task uses the graph; if it is missing, other
        tasks may.
        """
        owner = Owner(break_off)
        self.owners.append(owner)
        self.as_usual()
        return owner

    def drop(self, owner: Owner) -> None:
        """Note that a block ends."""
        owner.close()
        self.owners.remove(owner)
        self.as_usual()

    def forget_ended(self) -> None:
        """Drop the blocks that a stray error has ended before ``drop`` did: no thread holds the lock for them."""
        if self.crew is None and not self.gates:
            for owner in [*self.owners]:
                self.drop(owner)

    def as_usual(self, mended: bool = False) -> None:
        """Let ``acquire`` do what open blocks need; not yet after a stray error, until that is ``mended``."""
        if mended or self.acquire is not self.mending:
            self.acquire = self.usual

    @property
    def usual(self) -> Callable[..., bool]:
        """The method that acquires the lock while nothing has to be mended."""
        return self._acquire_as_task if self.owners else self.raw.acquire

    def check_owner(self) -> None:
        """Raise ``BlockError`` if a block of the running task was broken off."""
        if any(owner.void and owner.is_here() for owner in self.owners):
            raise broken_off()

    def _acquire_as_task(self, blocking: bool = True, timeout: float = -1.0) -> bool:
        """Acquire the lock, unless a block of another task must be met first (``visit``)."""
        if not self.raw.acquire(blocking, timeout):
            return False
        me = get_ident()
        for owner in self.owners:
            if owner.thread == me and not owner.admits():
                self.release()
                return False
        return True

    def _meet_owners(self) -> None:
        """Break off the blocks of other tasks in this thread; raise if that has happened to this one."""
        me = get_ident()
        for owner in [*self.owners]:
            if owner.thread == me:
                owner.meet()

    # --- gates -------------------------------------------------------------------------------

    def open(self, level: int) -> Gate:
        """Open a gate for threads that the user code called next may wait for.

        ``level`` is that of the node that calls it; 0 if no node does.
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
        """Close a gate after its user code has ended, once the thread inside has left.

        Raises
        ------
        Later
            If the result of the code does not count.
        """
        interrupted = None
        if not gate.lock.acquire(False):
            interrupted = finish(gate.lock.acquire)
        lane = gate.lane
        if lane is not None:
            gate.lane = None
            assert self.crew is not None
            if self.raw._is_owned():  # an error inside has left it held
                self.give_up()
            self.take_back(gate.held)
            self.crew.enter(lane)
        if self.gates[-1] is not gate:  # an interrupt has left gates inside of this one open
            self.abandon(self.gates.index(gate) + 1)
        _reset_number(gate.before)
        self.gates.pop()
        gate.lock.release()
        if not gate.depth:  # else an interrupt came inside, and this thread still holds its lock
            self._spare.append(gate)
        if interrupted is not None:
            try:
                raise interrupted
            finally:
                del interrupted  # its traceback holds this frame
        if self.gates:
            self.check_void()

    def abandon(self, kept: int) -> None:
        """Drop all gates but the first ``kept``: an interrupt has left them open, or half closed."""
        self._spare.clear()  # one of them may be locked still
        while len(self.gates) > kept:
            gate = self.gates.pop()
            if gate.lane is not None and self.crew is not None:
                self.take_back(gate.held)
                self.crew.enter(gate.lane)
            with suppress(RuntimeError):  # it was reset already
                _reset_number(gate.before)

    def elsewhere(self, level: int, work: Callable[[], None], stop: Callable[[], None]) -> None:
        """Do ``work``, which must not raise, in another thread, which has a fresh stack.

        The context variables are copied. ``stop`` is called if the wait for it is interrupted.
        """
        gate = self.open(level)
        gate.owner = 0  # this thread only waits: it runs no user code, and does not come in

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
            try:
                raise interrupted
            finally:
                del interrupted  # its traceback holds this frame

    def is_held_here(self) -> bool:
        """Return whether the thread inside holds the lock itself, and did not come through a gate."""
        return not self.gates or self.gates[0].owner == get_ident()

    # --- coming and going --------------------------------------------------------------------

    def enter_again(self, target: int | None = None) -> None:
        """Enter as the thread that holds the lock, while there are gates."""
        crew = self.crew
        if crew is not None and crew.inside is None:  # it only got what a lane has given up
            if get_ident() in crew.lanes:
                self._resume(crew, crew.lanes[get_ident()])
            else:
                self.release()
                self.visit(target)
            return
        if not self._come_back():  # gates left by a thread that was interrupted on its way out
            self.gates.clear()

    def _come_back(self) -> bool:
        """Enter again as a thread that is inside of a gate or owns one. Return ``False`` for others."""
        me = get_ident()
        for gate in reversed(self.gates):
            if gate.inside == me:
                gate.depth += 1
                return True
            if gate.owner == me:  # a read by the user code itself
                self._take(gate, me)
                return True
        return False

    def _take(self, gate: Gate, me: int) -> None:
        gate.lock.acquire()
        gate.inside, gate.depth = me, 1

    def _resume(self, crew: Lanes, lane: Lane) -> None:
        """Enter as a thread of a crew whose user code reads; it holds the lock once."""
        me = get_ident()
        gate = next(gate for gate in reversed(lane.gates) if gate.owner == me)
        if not gate.lock.acquire(blocking=False):
            self.release()  # the thread inside of the gate needs the lock to leave
            gate.lock.acquire()
            self.acquire()
        gate.inside, gate.depth = me, 1
        crew.enter(lane)

    def knock(self) -> Gate | None:
        """Return the innermost gate, with its lock held, if this thread opened it and none is inside."""
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
        """Undo one enter through a gate. Return whether this thread holds the lock itself, too."""
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
        """Enter as a thread that does not hold the lock: through a gate, or when the lock is free."""
        if self._lost:
            raise _lost_error()
        crew = self.crew
        if crew is not None and get_ident() in crew.lanes:
            self.acquire()
            self._resume(crew, crew.lanes[get_ident()])
            return
        if crew is None and self.gates and self._come_back():
            return
        if self.owners:
            self._meet_owners()
        look, since = FIRST_LOOK, monotonic()
        while not self._is_free(look):
            look = min(2 * look, LAST_LOOK)
            if self.crew is not None:
                if self._join(target, monotonic() - since):
                    return
                continue
            gate = self._innermost()
            late = gate is None and self.owners and monotonic() - since > GRACE
            if late and any(owner.is_awaiting() for owner in [*self.owners]):
                raise refused_thread()
            if gate is None or not gate.lock.acquire(blocking=False):
                continue
            try:
                # The gates of a crew are for ``_join``, which holds the lock.
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
        """Return whether the lock was acquired within so many seconds, and no crew has just given it up."""
        if not self.acquire(timeout=timeout):
            return False
        if self.crew is None:
            if self.acquire is self.mending:  # a stray error came while this thread waited
                self.mending.now(inside=False)
            return True
        self.release()
        sleep(FIRST_LOOK)
        return False

    def _join(self, target: int | None, waited: float) -> bool:
        """Enter as a thread that a function of a crew may wait for. Return ``False`` if not now."""
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
                    return False  # these end soon, unless one of them waits for this thread
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
        """Return whether it is certain that this thread belongs here; ``None``: it may not come in now."""
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
            If the code that called this thread has to wait instead.
        """
        me, end = get_ident(), monotonic() + PATIENCE
        # If the code behind that gate waits for this thread, the thread must raise, not wait.
        while self._is_open(later.void):
            if monotonic() > end or any(gate.owner == me for gate in self._all_gates()):
                raise later
            sleep(FIRST_LOOK)
        while self._is_open(later.until) and not (monotonic() > end and is_awaited()):
            sleep(FIRST_LOOK)

    def go_outside(self) -> bool:
        """Wait outside until the lock is free, as a thread that is not certain to belong here.

        Return ``False``, with nothing changed, if the thread belongs here, or seems to.
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
        """Return the gates of the calls under way, in all lanes."""
        if self.crew is None:
            return self.gates
        lanes = dict.fromkeys([*self.crew.lanes.values()])
        return [gate for lane in lanes for gate in lane.gates]

    def _is_open(self, number: int) -> bool:
        return any(gate.number == number for gate in self._all_gates())

    def levels(self, level: int) -> list[int]:
        """Return the levels whose nodes may be reading now; ``level`` is the innermost one."""
        last = self.gates[-1] if self.gates else None
        if last is None or last.level < level or last.sure:
            return [level]
        return [gate.level for gate in self.gates if gate.level]

    def refuse(self, level: int) -> None:
        """Raise ``Later`` if it is not certain that the node at ``level`` waits for the thread inside."""
        until = next((gate.number for gate in self.gates if gate.level >= level), 0)
        for gate in self.gates:
            if level <= gate.level and not gate.sure:
                gate.void = until
        self.check_void()

    def check_void(self) -> None:
        """Raise ``Later`` if a thread that helped with what has just ended has raised it."""
        for gate in self.gates:
            if gate.void:
                raise Later(0 if gate is self.gates[-1] else self.gates[-1].number, gate.void)


def _never(blocking: bool = True, timeout: float = -1.0) -> bool:
    """Return ``False``, as for a lock that is not free."""
    return False


def _lost_error() -> BusyError:
    """Return the error for a graph that another thread was using when the process was forked."""
    return BusyError(
        "this process was forked while another thread was using the graph. Here that thread does not exist, "
        "and what it had begun will never end, so the graph cannot be used in this process. Fork when no "
        "thread uses the graph, or start processes with "
        "multiprocessing's 'spawn' or 'forkserver', and give them the graph by pickle."
    )
