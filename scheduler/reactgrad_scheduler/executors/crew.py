"""Independent nodes of a plan computed at the same time, by several threads.

The threads of one run are a ``Crew``. Among the nodes whose operands are settled, each thread takes the
one that begins the longest way to the end, and runs it as ``serial`` does. One thread at a time works on
the tables. A thread that calls a long kernel, or user code, gives up the lock meanwhile (see ``lock``).
The record of the run, and the choice of the first error, follow the order of the plan, not that of time.

A thread goes on as long as there is anything to take. Another one is called in only when a thread begins
a long step and leaves free nodes behind. So cheap nodes are not passed between threads.

A function that reads a node helps to compute what the node needs (``Request``), inside of its own lane,
and waits for nodes that are under way in other lanes. Lanes that wait for each other are a cycle of reads,
which the last of them finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextvars import copy_context
from heapq import heappop, heappush
from threading import Condition, Thread, get_ident
from time import perf_counter

from reactgrad_scheduler.executors import costs, serial
from reactgrad_scheduler.executors.straight import NOT_BEGUN, Straight
from reactgrad_scheduler.gates import Gate, Lane
from reactgrad_scheduler.plan import Step
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN, FAILED, MAYBE, STALE
from reactgrad_scheduler.tables import UNKNOWN
from reactgrad_scheduler.waits import finish

# A free node that no thread has taken for so many seconds is worth another thread: a step takes longer
# than expected.
LOOK = 0.005


class Request:
    """Nodes that are waited for: those of the whole run, or those that a function has read.

    Attributes
    ----------
    left
        Nodes that are not done.
    ready
        Nodes that may be taken, most urgent first, and some that were taken since.
    """

    __slots__ = ("left", "ready", "run", "targets")

    def __init__(self, targets: Sequence[int], left: set[int], run: Run) -> None:
        self.targets = targets
        self.left = left
        self.run = run
        self.ready: list[tuple[float, int]] = []


class Crew:
    """The threads of one run, and the nodes that they still have to compute.

    A node is *open* from when it is planned until it is done: settled, or left as it is because the run
    was cancelled or marks were erased. It is *free* when no open node has to be done before it.

    Attributes
    ----------
    open
        For each open node, the number of other open ones that must be done before.
    doubts
        For each node that waits for a former read: the nodes that this read needs.
    trail
        For each node, its reads in order; they decide the order of nodes in the record.
    """

    def __init__(self, scheduler: Reads, slots: Sequence[int], size: int) -> None:
        self.scheduler = scheduler
        self.lock = scheduler.lock
        self.size = size
        self.lanes: dict[int, Lane] = {}
        self.inside: Lane | None = None
        self.threads: list[Thread] = []
        self.open: dict[int, int] = {}
        self.trail: dict[int, list[int]] = {}
        self.doubts: dict[int, set[int]] = {}
        self.interrupted: BaseException | None = None
        self._slots = slots
        self._door = Gate()  # stands for all gates while no lane is in place
        self._followers: dict[int, list[int]] = {}
        self._free: set[int] = set()
        self._forced: set[int] = set()
        self._asked: dict[int, set[int]] = {}
        self._costs: dict[int, float] = {}
        self._urgency: dict[int, float] = {}
        self._context = copy_context()
        self._retried = scheduler.retried
        self._first_error = scheduler.error_count + 1
        self._all = Request((), set(), Run())
        self._requests = [self._all]
        self.run = self._all.run
        self._straight: Straight | None = None  # set while the plan runs as tasks
        self._waiting = 0  # threads with nothing to take
        self._more = Condition(self.lock.raw)  # wakes these
        self._done = Condition(self.lock.raw)  # wakes functions that wait for other lanes
        self._over = Condition(self.lock.raw)  # wakes the thread that began the run

    # --- the thread that reads -----------------------------------------------------------------

    def begin_checked(self) -> None:
        """Prepare ``go`` to compare versions, and to write down each node as it ends."""
        self._plan(self._slots, self._all)

    def begin_straight(self, straight: Straight) -> None:
        """Prepare ``go`` to run the tasks of a certain plan; the tables are written only if it ends early."""
        self._straight = straight
        self.scheduler.frames.append(straight)

    def go(self) -> None:
        """Compute all nodes, and wait for it. The lock is held before and after, not meanwhile.

        Steps under way end, and are written down, even if the wait is interrupted.
        """
        scheduler, lock = self.scheduler, self.lock
        gates = lock.gates
        cancelled = scheduler.cancelled
        scheduler.crew = lock.crew = self
        self._stay_outside()
        held = lock.give_up()
        try:
            interrupted = finish(self._wait, self._stop)
        finally:
            lock.take_back(held)
            lock.gates = gates
            scheduler.computing.clear()
            scheduler.retried = self._retried
            scheduler.crew = lock.crew = None
        if self.interrupted is not None:
            interrupted, self.interrupted = self.interrupted, None
        straight, run = self._straight, self.run
        if straight is not None:
            if not straight.undone and interrupted is None:
                scheduler.frames.clear()
                return
            straight.suspend()
        scheduler.frames.clear()
        self._put_in_order(run)
        if interrupted is not None:
            scheduler.cancelled = cancelled
            run.seal(scheduler.topology.serial)
            run.raised.clear()
            scheduler.last_run = run
            try:
                raise interrupted
            finally:
                del interrupted  # its traceback holds this frame

    def _stop(self) -> None:
        self.scheduler.cancel()

    def _wait(self) -> None:
        with self.lock.raw:
            if not self.threads:
                self._call_in()
            while self.lanes or (self._is_left() and not self.scheduler.cancelled):
                self._over.wait(LOOK)
                if self.scheduler.cancelled:
                    self._more.notify_all()
                    self._done.notify_all()
                elif self._is_any_free():
                    # One that an error has ended before it took part is no more.
                    self.threads = [one for one in self.threads if one.is_alive()]
                    self._call_in()
        for thread in self.threads:
            if thread.ident is not None:  # else its start was interrupted
                thread.join()

    def _is_left(self) -> bool:
        return bool(self.open or (self._straight is not None and self._straight.undone))

    def _is_any_free(self) -> bool:
        return bool(self._free or (self._straight is not None and self._straight.ready))

    # --- lanes ---------------------------------------------------------------------------------

    def enter(self, lane: Lane) -> None:
        """Put a lane in place; the calling thread holds the lock."""
        scheduler = self.scheduler
        self.lock.gates = lane.gates
        scheduler.computing[:] = lane.computing
        scheduler.retried = lane.retried
        self.inside = lane  # last, as ``_come_back`` looks at it

    def leave(self) -> Lane:
        """Take away the lane that is in place, and return it."""
        lane, scheduler = self.inside, self.scheduler
        assert lane is not None
        lane.computing = scheduler.computing[:]
        lane.retried = scheduler.retried
        self._stay_outside()
        return lane

    def _come_back(self, lane: Lane, gates: int) -> None:
        """Have the lock, once, and this lane in place with its first ``gates``, wherever an error has come."""
        lock = self.lock
        if lock.raw._is_owned():
            lock.give_up()
        lock.raw.acquire()
        if self.inside is not lane or lock.gates is not lane.gates:
            self.enter(lane)
        for gate in lane.gates[gates:]:
            gate.lane = None
        lock.abandon(gates)

    def _stay_outside(self) -> None:
        # Neither list is ever empty: without the lock, they must show that a run is under way.
        self.inside = None
        self.lock.gates = [self._door]
        self.scheduler.computing[:] = [UNKNOWN]

    def needed_by(self, target: int | None) -> list[Lane]:
        """Return the lanes with nodes under way that ``target`` needs."""
        if target is None:
            return []
        self.scheduler.attend()
        mark = self.scheduler.staleness.mark
        needed = self.scheduler.topology.ancestors([target], lambda slot: mark[slot])
        return [
            lane
            for lane in dict.fromkeys(self.lanes.values())
            if not needed.isdisjoint(lane.computing)
        ]

    def others(self) -> list[int]:
        """Return the nodes under way in lanes that are not in place."""
        lanes = dict.fromkeys(self.lanes.values())
        return [
            slot
            for lane in lanes
            if lane is not self.inside
            for slot in lane.computing
            if slot != UNKNOWN
        ]

    # --- threads -------------------------------------------------------------------------------

    def _call_in(self) -> None:
        """Make one more thread take free nodes, if there is one."""
        if self._waiting:
            self._waiting -= 1
            self._more.notify()
        elif len(self.threads) < self.size:
            thread = Thread(target=self._context.copy().run, args=(self._serve,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        try:
            self.lock.raw.acquire()
            lane = self.lanes[get_ident()] = Lane([UNKNOWN], self._retried)
            self.enter(lane)
            if self._straight is not None:
                self._work_straight(self._straight)
            self._work(self._all)
            self._end()
        except BaseException as error:
            if self.interrupted is None:
                self.interrupted = error
            self.scheduler.cancel()
            self._end()

    def _end(self) -> None:
        """End the part of the calling thread, wherever it was, and even if that has begun before."""
        raw = self.lock.raw
        if not raw._is_owned():
            raw.acquire()
        lane = self.lanes.get(get_ident())
        if lane is not None and self.inside is lane:
            self.leave()
        self._stay_outside()
        self.lanes.pop(get_ident(), None)
        self._more.notify_all()
        self._done.notify_all()
        self._over.notify_all()
        self.lock.give_up()

    def _work(self, request: Request) -> None:
        """Take and compute nodes until the request is met or the run is cancelled."""
        scheduler = self.scheduler
        while not scheduler.cancelled and (self.open if request is self._all else request.left):
            slot = self._take(request)
            if slot is not None:
                self._advance(slot, request.run)
            elif request is self._all:
                self._waiting += 1
                self._pause(self._more)
            elif not self._untie(request):
                lane = self.inside
                assert lane is not None
                lane.awaits = request
                self._pause(self._done)
                lane.awaits = None

    def _work_straight(self, straight: Straight) -> None:
        """Take and run tasks until all are done or the plan is suspended."""
        while straight is self._straight and straight.undone and not self.scheduler.cancelled:
            number = straight.take()
            if number is None:
                self._waiting += 1
                self._pause(self._more)
            else:
                self._run_task(straight, number)
                if not straight.undone:
                    self._more.notify_all()

    def _run_task(self, straight: Straight, number: int) -> None:
        """Call the steps of a task, as ``serial.run_certain`` does."""
        scheduler, lock, lane = self.scheduler, self.lock, self.inside
        assert lane is not None
        task = straight.tasks[number]
        frame = straight.start(lane, task)
        given = scheduler.host.give(task.slots[0]) if task.long and task.lends else None
        if task.long and straight.ready:
            self._call_in()
        computing = scheduler.computing
        computing.append(UNKNOWN)
        if scheduler.cancelled:
            frame.stop()  # a cancel from another thread may have come before this frame was listed
        gates = len(lock.gates)
        gate = lock.open(len(computing)) if task.long or task.lends else None
        began = ended = perf_counter()
        try:
            try:
                for step in frame.steps:
                    step()
                ended = perf_counter()
            finally:
                del given
                if gate is not None:
                    lock.close(gate)
                if scheduler.broken:
                    scheduler.raise_broken(computing[-1])
            if frame.position is None and frame.stopping is not None and frame.stopped:
                straight.suspend()
        except BaseException as error:
            self._come_back(lane, gates)
            if frame.position is None:
                straight.suspend()
            del straight.running[lane]
            if frame.position == NOT_BEGUN:  # it came before the first step: no node has failed
                raise
            slot = computing[-1]
            serial.interrupt(scheduler, straight.plan, error, self.run)
            self._close(slot)
            return
        del straight.running[lane]
        slot = computing.pop()
        if frame.position is None:
            straight.end(number, ended - began)
        elif frame.position != NOT_BEGUN:
            scheduler.adopt_reads(slot)
            serial.commit(scheduler, slot)
            self.run.absorb(scheduler.inner.pop(slot, ()))
            self.run.ran.append(slot)
            self._close(slot)

    def take_over(self, done: Sequence[int], left: Sequence[int], under_way: Sequence[int]) -> None:
        """Run the nodes ``left`` checked, after ``done`` have run; some of them are under way."""
        self._straight = None
        self.run.ran += done
        self._plan(left, self._all)
        self._free.difference_update(under_way)
        self._waiting = 0
        self._more.notify_all()

    def _pause(self, change: Condition) -> None:
        lane = self.leave()
        try:
            change.wait()
        finally:
            self.enter(lane)

    def _take(self, request: Request) -> int | None:
        """Take the most urgent free node of a request, which is no longer free; ``None`` if there is none."""
        ready, free = request.ready, self._free
        while ready:
            slot = heappop(ready)[1]
            if slot in free:
                free.remove(slot)
                return slot
        return None

    # --- nodes ---------------------------------------------------------------------------------

    def _plan(self, slots: Sequence[int], request: Request) -> None:
        """Open those of these nodes that are not open, for a request. They are in topological order."""
        scheduler, opened = self.scheduler, self.open
        new = [slot for slot in slots if slot not in opened]
        seconds = costs.expected(scheduler, new)
        self._costs |= seconds
        for slot, tail in costs.longest_ways(scheduler, new, seconds).items():
            self._urgency[slot] = -tail
        for slot in new:
            opened[slot] = 0
            self._follow(slot, self._sources(slot))
        self._want(slots, request)
        for slot in new:
            if not opened[slot]:
                self._set_free(slot)

    def _want(self, slots: Iterable[int], request: Request) -> None:
        """Make a request wait for those of these nodes that are open, and for nodes that these wait for."""
        if request is self._all:
            return
        stack = [*slots]
        while stack:
            slot = stack.pop()
            if slot in self.open and slot not in request.left:
                request.left.add(slot)
                stack += self.doubts.get(slot, ())
                if slot in self._free:
                    heappush(request.ready, (self._urgency[slot], slot))

    def _sources(self, slot: int) -> Collection[int]:
        """Return the nodes that must be settled before it is this node's turn."""
        scheduler = self.scheduler
        if slot in scheduler.dynamic and scheduler.error(slot) is not None:
            return scheduler.topology.parents[slot]  # its reads decide if the error still holds
        return scheduler.operands(slot)

    def _follow(self, slot: int, sources: Iterable[int]) -> None:
        """Make a node wait for those of ``sources`` that are open."""
        for source in dict.fromkeys(sources):
            if source in self.open and source != slot:
                self._followers.setdefault(source, []).append(slot)
                self.open[slot] += 1

    def _set_free(self, slot: int) -> None:
        self._free.add(slot)
        for request in self._requests:
            if request is self._all or slot in request.left:
                heappush(request.ready, (self._urgency[slot], slot))

    def _close(self, slot: int) -> None:
        """Note that a node is done, and free nodes that waited for it alone."""
        opened = self.open
        del opened[slot]
        self._asked.pop(slot, None)
        self._forced.discard(slot)
        for request in self._requests:
            request.left.discard(slot)
        for follower in self._followers.pop(slot, ()):
            opened[follower] -= 1
            if not opened[follower]:
                self.doubts.pop(follower, None)
                self._set_free(follower)
        self._done.notify_all()
        if not opened:
            self._more.notify_all()

    def _advance(self, slot: int, run: Run) -> None:
        """Compute a node whose turn has come, if it has to run; as in ``serial.run_checked``."""
        scheduler = self.scheduler
        mark, put = scheduler.staleness.mark, scheduler.staleness.put
        if mark[slot] != CLEAN:
            standing = STALE if slot in self._forced else scheduler.standing(slot)
            if standing == MAYBE and slot in scheduler.dynamic:
                read = scheduler.doubtful_read(slot)
                asked = self._asked.setdefault(slot, set())
                if read is not None and read not in asked:
                    asked.add(read)
                    self._postpone(slot, read, scheduler.stale_ancestors([read]))
                    return
            if standing == CLEAN:
                put(slot, CLEAN)
                run.skipped.append(slot)
            elif standing == FAILED:
                put(slot, FAILED)
                _note_failure(scheduler, slot, run)
            elif standing == STALE:
                serial.run_node(scheduler, slot, run)
        self._close(slot)

    def _postpone(self, slot: int, read: int, needed: Sequence[int]) -> None:
        """Make a node wait for a former read of its own, which may have changed."""
        self.trail.setdefault(slot, []).append(read)
        self.doubts[slot] = set(needed)
        for request in self._requests:
            if request is self._all or slot in request.left:
                self._plan(needed, request)
        self._follow(slot, needed)
        if not self.open[slot]:
            self._set_free(slot)

    def call(self, slot: int, step: Step | None) -> object:
        """Call the step of a node. If it is long or user code, other threads work meanwhile."""
        scheduler, lock = self.scheduler, self.lock
        lent = scheduler.host.lends(slot)
        long = self._costs.get(slot, costs.UNKNOWN_SECONDS) >= costs.LONG
        if step is None or not (lent or long):
            return None if step is None else step()
        given = scheduler.host.give(slot) if lent else None
        if long and self._free:
            self._call_in()
        lane, gates = self.inside, len(lock.gates)
        assert lane is not None
        try:
            gate = lock.open(len(scheduler.computing))
            began = ended = perf_counter()
            try:
                outcome = step()
                ended = perf_counter()
                return outcome
            finally:
                del given
                lock.close(gate)
                if ended > began:
                    scheduler.seconds[slot] = ended - began
        except BaseException:
            self._come_back(lane, gates)
            raise

    # --- reads of functions ----------------------------------------------------------------------

    def read(self, targets: Sequence[int], slots: Sequence[int], run: Run) -> Run:
        """Compute these nodes for the function under way in the lane that is in place."""
        scheduler = self.scheduler
        began = perf_counter()
        self.trail.setdefault(scheduler.computing[-1], []).extend(targets)
        request = Request(targets, set(), run)
        self._requests.append(request)
        try:
            self._plan(slots, request)
            self._work(request)
        finally:
            self._requests.remove(request)
        for slot in slots:
            _note_failure(scheduler, slot, run)
        run.seconds = perf_counter() - began
        return run

    def depend(self, slot: int) -> None:
        """Note that the function under way reads ``slot``, or a thread that it may wait for does."""
        scheduler, gates = self.scheduler, self.lock.gates
        self.trail.setdefault(scheduler.computing[-1], []).append(slot)
        if gates and not gates[-1].sure:  # any of the nodes under way may be the reader
            for reader in self.others():
                scheduler.reads.setdefault(reader, {})[slot] = None

    def await_rebuild(self, slot: int) -> None:
        """Wait until no other lane is computing the released value of ``slot`` again."""
        while slot in self.scheduler.dropped and slot in self.others():
            self._pause(self._done)

    def _untie(self, request: Request) -> bool:
        """Resolve a wait for nodes that wait for this lane. Return whether there was such a circle.

        Raises
        ------
        CycleError
            If all of the circle is reads of functions.
        """
        scheduler, here = self.scheduler, self.inside
        assert here is not None
        own = set(scheduler.computing)
        lanes = {
            slot: lane
            for lane in dict.fromkeys(self.lanes.values())
            if lane is not here
            for slot in lane.computing
            if slot != UNKNOWN
        }
        came: dict[int, int] = dict.fromkeys(request.left, UNKNOWN)
        stack = [*came]
        while stack:
            slot = stack.pop()
            if slot in own:
                return self._break(slot, came, lanes, request)
            lane = lanes.get(slot)
            if lane is None:
                needs = [*self._sources(slot), *self.doubts.get(slot, ())]
            elif isinstance(lane.awaits, Request):
                needs = [*lane.awaits.left]
            else:
                continue
            for other in needs:
                if other not in came and other in self.open:
                    came[other] = slot
                    stack.append(other)
        return False

    def _break(
        self, end: int, came: dict[int, int], lanes: dict[int, Lane], request: Request
    ) -> bool:
        """Break the circle at a node in doubt, or refuse the read; ``end`` is the node under way here."""
        scheduler = self.scheduler
        way = [end]
        while came[way[-1]] != UNKNOWN:
            way.append(came[way[-1]])
        way.reverse()
        for slot in way:
            if slot in self.doubts:  # that read would be refused now, so the node runs
                del self.doubts[slot]
                self._forced.add(slot)
                self.open[slot] = 0
                for followers in self._followers.values():
                    while slot in followers:
                        followers.remove(slot)
                self._set_free(slot)
                return True
        chain: list[int] = []
        for slot in way[:-1]:
            if slot in lanes:
                computing = lanes[slot].computing
                chain += computing[computing.index(slot) :]
        chain += scheduler.computing[scheduler.computing.index(end) :]
        scheduler.refuse(chain, tuple(request.targets), end)
        return True

    # --- the record ------------------------------------------------------------------------------

    def _put_in_order(self, run: Run) -> None:
        """Put the record into the order in which one thread would have run the nodes."""
        place = {slot: i for i, slot in enumerate(self._order(run))}
        for slots in (run.ran, run.cut_off, run.skipped, run.rebuilt):
            slots.sort(key=place.__getitem__)
        run.failed = {slot: run.failed[slot] for slot in sorted(run.failed, key=place.__getitem__)}
        self._number_errors(run)

    def _order(self, run: Run) -> list[int]:
        """Return all nodes of the run in the order in which ``serial`` would have come to them."""
        scheduler = self.scheduler
        sources, sort = self._sources, scheduler.topology.sort
        mark = scheduler.staleness.mark
        again = set(run.rebuilt)
        met = {*run.ran, *run.skipped, *run.failed, *again}
        order: dict[int, None] = {}
        asked = {slot: iter(targets) for slot, targets in self.trail.items()}
        if again:
            for slot in met:
                parents = [one for one in scheduler.operands(slot) if one in again]
                asked[slot] = iter([*parents, *self.trail.get(slot, ())])
        todo = [slot for slot in reversed(self._slots) if slot in met]
        entered: set[int] = set()
        while todo:
            slot = todo.pop()
            if slot in order:
                continue
            target = next(asked.get(slot, iter(())), None)
            if target is None:
                order[slot] = None
                continue
            entered.add(slot)
            todo.append(slot)
            # The walk passes failed nodes that did not run, since an operand failed: no list has them.
            reached = {one for one in (target,) if one in met or mark[one] == FAILED}
            stack = [*reached]
            while stack:
                found = [
                    one
                    for one in sources(stack.pop())
                    if one not in reached and (one in met or mark[one] == FAILED)
                ]
                reached.update(found)
                stack += found
            todo.extend(reversed(sort(reached.intersection(met).difference(order, entered))))
        for slot in sort(met.difference(order)):
            order[slot] = None
        return [*order]

    def _number_errors(self, run: Run) -> None:
        """Number the errors of this run in its order: a read raises the one with the lowest number."""
        scheduler, first = self.scheduler, self._first_error
        new = [
            stored
            for slot in run.failed
            if (stored := scheduler.errors.get(slot)) is not None and stored.number >= first
        ]
        number = dict(
            zip([one.number for one in new], sorted(one.number for one in new), strict=True)
        )
        if all(old == now for old, now in number.items()):
            return

        def renumbered(seen: tuple[int, ...]) -> tuple[int, ...]:
            return tuple([-number.get(-one, -one) for one in seen])

        for stored in new:
            stored.number = number[stored.number]
        for slot in {*run.ran, *run.failed}:
            record = scheduler.versions.record[slot]
            if record and min(record) < 0:
                scheduler.versions.record[slot] = renumbered(record)
            if slot in scheduler.errors:
                scheduler.errors[slot].versions = renumbered(scheduler.errors[slot].versions)
        run.raised = {number.get(old, old): error for old, error in run.raised.items()}


def _note_failure(scheduler: Reads, slot: int, run: Run) -> None:
    """Enter a failed node's own error into a run."""
    own = scheduler.errors.get(slot)
    if (
        own is not None
        and scheduler.staleness.mark[slot] == FAILED
        and own is scheduler.raises[slot]
    ):
        run.failed[slot] = own.error
