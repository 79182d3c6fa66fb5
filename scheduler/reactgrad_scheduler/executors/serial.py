"""Plans run in the calling thread, one node after the other.

A *certain* plan runs as a bare loop over bound steps. Nothing is written down until it ends, and then only
one entry in the journal. When a step raises, or reads other nodes itself, the frame is *suspended*: what
has happened is written into the tables, and the rest is run *checked*, which compares versions before
every node and writes them after it. For reads that a plan expects, see ``reading``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from operator import call, length_hint
from threading import Lock, get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from reactgrad_scheduler.collector import CollectorPause
from reactgrad_scheduler.errors import Cancelled
from reactgrad_scheduler.exceptions import is_interrupt, without_frames
from reactgrad_scheduler.failure import FLEETING, StoredError, annotate
from reactgrad_scheduler.hot import OFTEN, Calls, Hot
from reactgrad_scheduler.plan import UNCHANGED, Plan, Reading, Step
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN, FAILED, MAYBE, STALE, UNSETTLED
from reactgrad_scheduler.tables import UNKNOWN

if TYPE_CHECKING:
    from reactgrad_scheduler.dirty import Way


class Frame:
    """A certain plan while it runs.

    ``position`` is ``None`` while the tables do not show the run. After ``suspend`` it is the index of the
    node whose step is under way, and the steps after it will not be called.
    """

    # Used if the plan has readings (see ``reading``): the reads so far of the node `slot`, the number of
    # its expected pulls that were made, the position up to which all nodes have run. `active` is true
    # while the function of the node runs, in the thread `thread`.
    slot = UNKNOWN
    active = False
    thread: int
    reading: Reading
    reads: dict[int, None]
    at: int
    done: int
    order: dict[int, int]
    left: frozenset[int]

    position: int | None = None
    ran: Sequence[int] = ()  # nodes that had run when it was suspended
    stopping: Lock | None = None  # held while `stop` takes steps away
    rest: Sequence[Any] = ()  # steps taken away that the node under way still needs
    _taken = 0  # the number of steps taken away

    def __init__(
        self,
        scheduler: Reads,
        plan: Plan,
        steps: Iterator[Any],
        level: int,
        step_slots: Sequence[int],
    ) -> None:
        self.scheduler = scheduler
        self.plan = plan
        self.steps = steps
        self.level = level  # the number of nodes being computed, this one included
        self._step_slots = step_slots  # the first slot that each step computes
        if plan.expected is not None:
            self.order, self.left = plan.expected.order, plan.expected.left

    def stop(self) -> None:
        """Let no further step be called; from any thread: the iterator gives each step to one of the two."""
        lock = Lock()
        with lock:
            self.stopping = lock
            self._take_away()

    def _take_away(self) -> None:
        """Take away all steps that were not called; steps of the node under way go into ``rest``."""
        slots = self._step_slots
        # In one line: an interrupt between the two would lose the count of steps that were called.
        self._taken += len(steps := list(self.steps))
        begun = len(slots) - self._taken
        if steps and begun:
            end = begun
            while end < len(slots) and slots[end] == slots[begun - 1]:
                end += 1
            self.rest = (*self.rest, *steps[: end - begun])

    def settle(self) -> None:
        """Wait until ``stop`` has taken the steps away."""
        assert self.stopping is not None
        with self.stopping:
            pass

    @property
    def stopped(self) -> bool:
        """True if steps were taken away. To be read after the loop over them has ended."""
        if self.stopping is None:
            return False
        with self.stopping:  # after this, no more are taken
            return self._taken > 0

    @property
    def begun(self) -> int:
        """The number of steps that were called."""
        return len(self._step_slots) - length_hint(self.steps) - self._taken

    def under_way(self) -> int:
        """Return the slot of the node whose step is under way."""
        return self._step_slots[self.begun - 1]

    def at_work(self) -> list[int]:
        """Return the same in a list, ``[]`` before the first step; may be called from any thread."""
        return [self.under_way()] if self.begun else []

    def _index(self) -> int:
        if self.position is not None:
            return self.position
        begun = self.begun
        return self.plan.slots.index(self._step_slots[begun - 1]) if begun else 0

    def suspend(self) -> None:
        """Write the progress into the tables, and stop the loop after this step.

        Also called by a thread that the function under way waits for. All remaining steps are taken away
        at once; after that it is certain at which step the loop is.
        """
        scheduler = self.scheduler
        self.active = False
        scheduler.reader = None
        self._take_away()
        slots, expected = self.plan.slots, self.plan.expected
        end = index = self._index()
        slot = slots[index]
        reading = self.plan.readings.get(slot)
        if reading is not None and expected is not None:
            end = reading.begin
            if self.slot == slot:
                end = self.done
                scheduler.reads[slot] = self.reads
            end -= expected.order[slots[0]]
        scheduler.versions.settle()
        scheduler.staleness.flush()
        self.ran = slots[:end]
        for one in self.ran:
            commit(scheduler, one)
        if self.plan.script is not None:
            self.plan.script.rescue(index)
            self.plan.steps = None
        # By level: a script may have called user code, whose nodes lie on top. And before the position, which
        # says that all is written: an error just here would be noted as that of another node.
        scheduler.computing[self.level - 1] = slot
        self.position = index

    def begin(self, slot: int, reading: Reading) -> None:
        """Note that the function of a node with expected reads is called next."""
        self.reading, self.done, self.at = reading, reading.begin, 0
        self.reads = {}
        self.thread = get_ident()
        self.slot = slot  # last: `suspend` in another thread must find the lines above done
        self.active = True
        if not self.scheduler.retried:
            self.scheduler.reader = self

    def notes(self, slot: int) -> bool:
        """Note that the function under way reads ``slot``, if that is expected and the value is there.

        Return whether it was noted; never in another thread. No lock is needed.
        """
        reads = self.reads
        if (slot not in self.reading.ready and slot not in reads) or get_ident() != self.thread:
            return False
        # If another thread has suspended the frame by now, it has taken over this dict of reads.
        reads[slot] = None
        return True

    def check(self) -> None:
        """Suspend the frame unless the function that has ended has made exactly the expected reads."""
        self.scheduler.reader = None
        reading, reads = self.reading, tuple(self.reads)
        if reads != reading.slots:
            reads = tuple([one for one in reads if one not in reading.operands])
        if reads != reading.slots or self.at != len(reading.pulls):
            with self.scheduler.lock:  # another thread may be about to do the same
                if self.position is None:
                    self.scheduler.suspend()
        self.active = False


def commit(scheduler: Reads, slot: int) -> None:
    """Note that ``slot`` was computed and changed."""
    versions = scheduler.versions
    versions.settle()
    versions.forced.discard(slot)
    versions.version[slot] += 1
    versions.record[slot] = scheduler.seen_parents(slot)
    scheduler.staleness.put(slot, scheduler.unless_doubted(slot, CLEAN))
    scheduler.staleness.restore(slot)


def run_certain(scheduler: Reads, plan: Plan, way: Way | None = None) -> Run | None:
    """Run all steps of a plan. Return ``None`` if it went as planned and must still be journaled.

    With a `way`, some nodes are computed in part.
    """
    frames, computing = scheduler.frames, scheduler.computing
    if way is not None:
        scheduler.host.overwrite_rows(plan.members, way.rows, way.read)
    elif not frames or frames[-1].position is not None:  # else the outer plan has done this
        scheduler.host.overwrite(plan.members)
    bound, step_slots = plan.fused, plan.call_slots
    if way is not None:
        bound, step_slots = _bound_in_part(scheduler, plan, way)
    elif (
        bound is None or plan.moves_seen != len(scheduler.moves) or scheduler.stopwatch is not None
    ):
        bound, step_slots = _bound_calls(scheduler, plan)
        if bound is None:
            return run_openly(scheduler, plan)
    rows = None
    if isinstance(bound, Calls) and scheduler.stopwatch is None:
        if bound.patience:
            bound.patience -= 1
            if not bound.patience:
                bound, step_slots = bound.compiled(plan.step_slots)
                plan.fused, plan.call_slots = bound, step_slots
        elif bound.pays:
            plan.heat += 1
            rows = plan.laid_out
            if rows is None and plan.heat >= OFTEN:
                if scheduler.hot is None:
                    scheduler.hot = Hot()
                rows = scheduler.hot.lay_out(plan, bound)
    steps: Iterator[Any] = iter(bound if rows is None else rows)
    computing.append(UNKNOWN)
    frame = Frame(scheduler, plan, steps, len(computing), step_slots)
    frames.append(frame)
    began = perf_counter()
    gate = scheduler.lock.open(len(computing)) if plan.lends else None
    try:
        try:
            if rows is not None:
                for _ in starmap(call, steps):
                    pass
            elif scheduler.stopwatch is None:
                for step in steps:
                    step()
            else:
                scheduler.stopwatch.play(scheduler, frame)
            if frame.stopping is not None:
                frame.settle()
            for rest in frame.rest:
                call(rest) if rows is None else call(*rest)
        finally:
            if gate is not None:
                scheduler.lock.close(gate)
            if scheduler.broken:
                scheduler.raise_broken(computing[-1])
    except BaseException as error:
        scheduler.suspend()
        assert frame.position is not None
        frames.remove(frame)
        run = Run(list(frame.ran))
        interrupt(scheduler, plan, error, run)
    else:
        if frame.stopping is not None and frame.position is None and frame.stopped:
            if not frame.begun:
                frames.pop()
                computing.pop()
                return run_openly(scheduler, plan)
            scheduler.suspend()
        frames.pop()
        slot = computing.pop()
        if frame.position is None:
            plan.finished.seconds = perf_counter() - began
            return None
        scheduler.adopt_reads(slot)
        commit(scheduler, slot)
        run = Run(list(frame.ran))
        run.absorb(scheduler.inner.pop(slot, ()))
        run.ran.append(slot)
    run_rest(scheduler, plan, run, frame.position + 1)
    run.seconds = perf_counter() - began
    return run


def _bound_calls(scheduler: Reads, plan: Plan) -> tuple[list[Step] | None, list[int]]:
    """Return the calls of a certain plan and the first slot of each; ``None`` if it must run openly."""
    if plan.readings and scheduler.stopwatch is not None:
        return None, []
    bound = plan.steps
    if bound is None and plan.fused is None and scheduler.stopwatch is None:
        found = None if plan.readings or plan.script else scheduler.host.inherited(plan)
        if found is not None:
            plan.take_calls(*found, len(scheduler.moves))
            return plan.fused, plan.call_slots
    if bound is None or plan.moves_seen != len(scheduler.moves):
        try:
            bound = bound_steps(scheduler, plan)
        except (
            Exception
        ) as error:  # a node cannot be bound: its own run will find and note the error
            if is_interrupt(error):
                raise
            return None, []  # the traceback of this block would keep bound steps alive
    # Steps of a plan with readings are not fused: reads of a node run between steps, and no step may move
    # across them. A script fuses its steps itself.
    if plan.repeats and scheduler.stopwatch is None and not plan.readings and plan.script is None:
        if plan.fused is None:
            plan.fused, plan.call_slots = scheduler.host.fuse(plan.step_slots, bound)
        return plan.fused, plan.call_slots
    return bound, plan.step_slots


def _bound_in_part(scheduler: Reads, plan: Plan, way: Way) -> tuple[list[Step], list[int]]:
    """Do what ``_bound_calls`` does, for nodes that are computed in part.

    All of them were bound before, so an error here is none of a node's: it ends the run.
    """
    moves = scheduler.moves
    if way.calls is None or way.moves_seen != len(moves):
        steps = plan.steps
        if steps is None or plan.moves_seen != len(moves):
            steps = bound_steps(scheduler, plan)
        way.calls, way.slots, way.move = scheduler.host.calls_in_part(
            plan.step_slots, steps, way.rows, way.read, way.at if way.key else ()
        )
        if way.move is not None and plan.ways is not None:
            plan.ways[way.key] = way
        way.moves_seen = len(moves)
    return way.calls, way.slots


def run_openly(scheduler: Reads, plan: Plan) -> Run:
    """Run a certain plan node by node, with the tables up to date before each node."""
    scheduler.suspend()
    scheduler.versions.settle()
    scheduler.staleness.flush()
    return run_rest(scheduler, plan, Run(), 0)


def interrupt(scheduler: Reads, plan: Plan, error: BaseException, run: Run) -> None:
    """End the step of a plan that raised: its node fails, or the whole run if the error stops it."""
    slot = scheduler.computing.pop()
    stops = is_interrupt(error)
    if not stops and not was_cancelled(scheduler, error):
        fail(scheduler, slot, cast("Exception", error), run)
        return
    scheduler.reads.pop(slot, None)
    run.absorb(scheduler.inner.pop(slot, ()))
    if stops:
        run.seal(scheduler.topology.serial)
        scheduler.last_run = run
        try:
            raise error
        finally:
            del error  # its traceback holds this frame


def run_rest(scheduler: Reads, plan: Plan, run: Run, begin: int) -> Run:
    """Run checked the rest of a plan that cannot be run to its end as a bare loop."""
    rest = plan.rest(begin)
    try:
        with scheduler.host.around(rest, ()):
            return run_checked(scheduler, rest, run=run)
    finally:
        break_off(scheduler, plan, run)


def break_off(scheduler: Reads, plan: Plan, run: Run) -> None:
    """Drop values of nodes that did not run although fused steps may have written to their memory.

    Only in a certain plan is work done ahead of a node's turn. Nodes that ran have their values, even if
    their marks were erased since; nodes that failed are like any others that failed.
    """
    scheduler.attend()
    abandon(scheduler, plan.slots)
    if plan.certain:
        mark, reached = scheduler.staleness.mark, {*run.ran, *run.failed}
        scheduler.host.spoiled([slot for slot in plan.slots if mark[slot] and slot not in reached])


def cut_short(scheduler: Reads, plan: Plan) -> None:
    """Clean up after an interrupt anywhere around the steps of a plan."""
    break_off(scheduler, plan, Run())
    distrust_values(scheduler, plan.slots)


def abandon(scheduler: Reads, slots: Iterable[int]) -> None:
    """Release those of these nodes that were dropped: bound to new storage, they hold no value yet."""
    dropped = scheduler.dropped
    empty = [slot for slot in slots if slot in dropped] if dropped else []
    if empty:
        scheduler.host.release(empty)


def bound_steps(scheduler: Reads, plan: Plan) -> list[Step]:
    """Return the steps of a plan, bound to the present storage.

    In a certain plan views have no step; in others each node has one.
    """
    moves, known = scheduler.moves, plan.steps
    spare = None if plan.certain else _follow
    bind, readings = scheduler.host.bind, plan.readings
    turns = plan.turns or plan.slots
    fused, rows, laid_out, heat = plan.fused, plan.rows, plan.laid_out, plan.heat
    plan.steps = None  # an error below must not leave steps that are bound only in part
    plan.fused = plan.rows = None
    plan.cool()
    if plan.script is not None:
        since = None if known is None else plan.moves_seen
        plan.steps, plan.step_slots = plan.script.bind(moves, since)
        plan.lends = any(map(scheduler.host.lends, plan.step_slots))
        plan.moves_seen = len(moves)  # moves that the script makes itself are followed already
        return plan.steps
    if known is None:
        with CollectorPause():
            bound, lends = scheduler.host.bind_all(turns)
            if spare is not None:
                bound = [step or spare for step in bound]
            step_slots = [slot for slot, step in zip(turns, bound) if step is not None]
            known = [step for step in bound if step is not None]
            for at, slot in enumerate(step_slots) if readings else ():
                if slot in readings:
                    known[at] = _reading(scheduler.frames, slot, readings[slot], known[at])
            plan.step_slots = step_slots
        plan.places = None
        plan.lends = lends
        plan.moves_seen = len(moves)
        plan.steps = known
        return known
    if plan.places is None:
        plan.places = {slot: i for i, slot in enumerate(plan.step_slots)}
    places = plan.places
    members = frozenset(turns) if readings else plan.members
    children = scheduler.topology.children
    changed: dict[int, None] = {}
    # The log may grow in the loop: a view moves with its parent.
    while plan.moves_seen < len(moves):
        moved = moves[plan.moves_seen]
        plan.moves_seen += 1
        for slot in (moved, *children[moved]):
            if slot in members:
                step = bind(slot) or spare
                if step is not None:
                    at = places[slot]
                    if slot in readings:
                        step = _reading(scheduler.frames, slot, readings[slot], step)
                    known[at] = step
                    changed[at] = None
    if rows is not None:
        for at in changed:
            rows[at] = (*rows[at][:4], known[at])
    if fused is not None and scheduler.host.replaced(fused, known, changed):
        plan.fused = fused
        if not changed:
            plan.laid_out, plan.heat = laid_out, heat
    plan.rows = rows
    plan.steps = known
    return known


def _reading(frames: list[Frame], slot: int, reading: Reading, step: Step) -> Step:
    """Return the step of a node with expected reads."""

    def read() -> None:
        frame = frames[-1]
        frame.begin(slot, reading)
        step()
        if frame.active:
            frame.check()

    return read


def _follow() -> None:
    """Do nothing: the step of a view, whose value follows its parent's by itself."""


def run_checked(scheduler: Reads, slots: Sequence[int], *, run: Run | None = None) -> Run:
    """Run those of these nodes whose parents' versions have changed; write each down as it ends.

    ``slots`` are in topological order; marks, versions and records must be up to date. A node with an
    unsettled parent when its turn comes is left unsettled: the run was cancelled, or marks were erased.

    A node in doubt waits for its former reads, which may be in doubt themselves. If that chain ends at a
    node under way, the first of the waiting nodes has to run: only that one is really asked for, and it
    may not read the others again.
    """
    run = run if run is not None else Run()
    mark, put = scheduler.staleness.mark, scheduler.staleness.put
    errors, dynamic = scheduler.errors, scheduler.dynamic
    asked: set[tuple[int, int]] = set()
    waiting: list[tuple[int, int]] = []  # nodes in doubt, with the length of `todo` after them
    stopwatch = scheduler.stopwatch
    compute = run_node if stopwatch is None else stopwatch.run_node
    began = perf_counter()
    todo = list(reversed(slots))
    while todo:
        if scheduler.cancelled:
            break
        slot = todo.pop()
        if waiting and waiting[-1][1] == len(todo):
            waiting.pop()
        if mark[slot] == CLEAN:  # another node of this plan has read it
            continue
        standing = scheduler.standing(slot)
        if standing == MAYBE and slot in dynamic:
            read = scheduler.doubtful_read(slot)
            if read is None or (slot, read) in asked:
                continue
            asked.add((slot, read))
            needed = scheduler.stale_ancestors([read])
            if scheduler.under_way(needed) is None:
                waiting.append((slot, len(todo)))
                todo.append(slot)
                todo.extend(reversed(needed))
                continue
            if waiting:
                slot, left = waiting[0]
                del todo[left:]
                waiting.clear()
            standing = STALE  # that read would be refused now
        if standing == CLEAN:
            put(slot, CLEAN)
            run.skipped.append(slot)
        elif standing == FAILED:
            put(slot, FAILED)
            own = errors.get(slot)
            if own is not None and own is scheduler.raises[slot]:
                run.failed[slot] = own.error
        elif standing == STALE:
            compute(scheduler, slot, run)
    run.seconds = perf_counter() - began
    return run


def run_node(scheduler: Reads, slot: int, run: Run) -> None:
    """Compute one node, and write the outcome into the tables."""
    host, computing, dropped = scheduler.host, scheduler.computing, scheduler.dropped
    if scheduler.raises or scheduler.cycles:
        scheduler.forget_failure(slot)
    computing.append(slot)
    explained = True  # an error of a rebuild has its note already
    try:
        if dropped:
            # Operands only: former reads may be stale, or may not be read again.
            wanted = [operand for operand in scheduler.operands(slot) if operand in dropped]
            if wanted:
                rebuild(scheduler, wanted, run)
        explained = False
        if slot not in scheduler.staleness.cutoffs:  # a cutoff compares with the old value first
            host.overwrite((slot,))
        step = host.bind(slot)
        try:
            if scheduler.crew is not None:
                outcome = scheduler.crew.call(slot, step)
            elif not host.lends(slot):
                outcome = step() if step is not None else None
            else:
                outcome = lent(scheduler, step)
        finally:
            if scheduler.broken:
                scheduler.raise_broken(slot)
    except BaseException as error:
        computing.pop()
        abandon(scheduler, (slot,))
        stops = is_interrupt(error)
        if not stops and not was_cancelled(scheduler, error):
            fail(scheduler, slot, cast("Exception", error), run, explained=explained)
            return
        scheduler.reads.pop(slot, None)
        run.absorb(scheduler.inner.pop(slot, ()))
        if not stops:
            return
        run.seal(scheduler.topology.serial)
        run.raised.clear()
        scheduler.last_run = run
        distrust_values(scheduler, (slot,))
        raise
    try:
        computing.pop()
        conclude(scheduler, slot, outcome, run)
    except BaseException:
        distrust_values(scheduler, (slot,))
        raise


def distrust_values(scheduler: Reads, slots: Iterable[int]) -> None:
    """Count the values of nodes with a cutoff, which were broken off, as replaced: they may be others by now.

    No version shows that. The cutoff would compare the next value with a half-written one, and could call
    it unchanged, so that consumers would keep values from before.
    """
    versions, mark = scheduler.versions, scheduler.staleness.mark
    cutoffs = scheduler.staleness.cutoffs
    doubtful = [slot for slot in slots if slot in cutoffs and mark[slot] in UNSETTLED]
    if doubtful:
        versions.settle()
    for slot in doubtful:
        if versions.version[slot]:  # a first value is a change anyway
            versions.version[slot] += 1
        versions.record[slot] = None


def conclude(scheduler: Reads, slot: int, outcome: object, run: Run) -> None:
    """Write into the tables that the step of a node has ended, and with which outcome."""
    versions = scheduler.versions
    scheduler.adopt_reads(slot)
    run.absorb(scheduler.inner.pop(slot, ()))
    if versions.journal:  # a read inside of the node may have replayed a plan
        versions.settle()
    versions.forced.discard(slot)
    if outcome is UNCHANGED and versions.version[slot]:  # the first value is always a change
        run.cut_off.append(slot)
    else:
        versions.version[slot] += 1
    versions.record[slot] = scheduler.seen_parents(slot)
    scheduler.staleness.put(slot, scheduler.unless_doubted(slot, CLEAN))
    if slot in scheduler.dropped:
        scheduler.staleness.restore(slot)
    run.ran.append(slot)


def lent(scheduler: Reads, step: Step | None) -> object:
    """Call a step that runs user code, with a gate open for threads that it waits for."""
    assert step is not None
    gate = scheduler.lock.open(len(scheduler.computing))
    try:
        return step()
    finally:
        scheduler.lock.close(gate)


def was_cancelled(scheduler: Reads, error: BaseException) -> bool:
    """Return whether a node raised only because its read was stopped, so that it has not failed."""
    return scheduler.cancelled and isinstance(error, Cancelled)


def rebuild(scheduler: Reads, slots: Iterable[int], run: Run) -> None:
    """Compute the released values of these clean nodes again, at their present versions, parents first.

    The host may release again what is still ``awaited``; it is then rebuilt when its turn to be read
    comes. The host must not release what is ``locked``: values that such an inner rebuild has still to
    read, so that it computes each node once and ends. Once a read has rebuilt much, all it awaits is
    locked, whatever the host has room for: depth n then takes n**2 rebuilds at most, not n**3.
    """
    parents, awaited, locked = scheduler.topology.parents, scheduler.awaited, scheduler.locked
    order = scheduler.topology.sort(released(scheduler, slots))
    waiting = locked if awaited or locked else awaited
    if waiting is awaited:
        scheduler.most_rebuilt = (len(run.ran) + len(order)) ** 1.5
    if len(run.rebuilt) > scheduler.most_rebuilt:
        waiting = locked
        if awaited:
            order = scheduler.topology.sort(released(scheduler, [*slots, *_gone_again(scheduler)]))
            locked.update(awaited)
            awaited.clear()
    uses = Counter(parent for slot in order for parent in parents[slot])
    waiting.update(uses)
    stopwatch = scheduler.stopwatch
    compute = rebuild_node if stopwatch is None else stopwatch.rebuild_node
    try:
        for slot in order:
            if scheduler.crew is not None:
                scheduler.crew.await_rebuild(slot)
            if scheduler.cancelled:
                raise Cancelled("the run was cancelled")
            if slot in scheduler.dropped:  # else an inner rebuild has needed it before its turn
                compute(scheduler, slot, run)
            uses.subtract(parents[slot])
            waiting = waiting or locked  # an inner rebuild may have locked them
            _forget(waiting, parents[slot])
    finally:
        _forget(waiting or locked, uses.elements())


def _gone_again(scheduler: Reads) -> list[int]:
    """Return what the rebuild around the node under way awaits, has computed, and has not any more."""
    rank, mark, dropped = scheduler.topology.rank, scheduler.staleness.mark, scheduler.dropped
    now = rank[scheduler.computing[-1]]
    return [
        one for one in scheduler.awaited if one in dropped and not mark[one] and rank[one] < now
    ]


def released(scheduler: Reads, slots: Iterable[int]) -> set[int]:
    """Return these nodes with the clean dropped ancestors that are needed to compute them."""
    parents, dropped = scheduler.topology.parents, scheduler.dropped
    mark = scheduler.staleness.mark
    needed = set(slots)
    stack = list(needed)
    while stack:
        for parent in parents[stack.pop()]:
            # A marked parent has raised, and its consumer has handled that.
            if parent in dropped and parent not in needed and not mark[parent]:
                needed.add(parent)
                stack.append(parent)
    return needed


def _forget(waiting: Counter[int], slots: Iterable[int]) -> None:
    """Count one read of each of these values."""
    for slot in slots:
        waiting[slot] -= 1
        if not waiting[slot]:
            del waiting[slot]


def rebuild_node(scheduler: Reads, slot: int, run: Run) -> None:
    """Compute the value of a clean node again."""
    mark, dropped = scheduler.staleness.mark, scheduler.dropped
    scheduler.computing.append(slot)
    explained = True  # an error of an inner rebuild has its note already
    try:
        sources = scheduler.topology.parents[slot]
        wanted = [parent for parent in sources if parent in dropped and not mark[parent]]
        if wanted:
            rebuild(scheduler, wanted, run)
        explained = False
        step = scheduler.host.bind(slot)
        try:
            if scheduler.host.lends(slot):
                lent(scheduler, step)
            elif step is not None:
                step()
        finally:
            if scheduler.broken:
                scheduler.raise_broken(slot)
    except BaseException as error:
        abandon(scheduler, (slot,))
        if not explained and not is_interrupt(error) and not was_cancelled(scheduler, error):
            annotate(cast("Exception", error), scheduler.host.explain(slot), ())
        raise
    finally:
        scheduler.computing.pop()
        scheduler.reads.pop(slot, None)  # it depends on these nodes already
        run.absorb(scheduler.inner.pop(slot, ()))
    scheduler.staleness.restore(slot)
    run.rebuilt.append(slot)


def fail(
    scheduler: Reads, slot: int, error: Exception, run: Run, *, explained: bool = False
) -> None:
    """Note that a node raised: in this run, and for reads until a parent changes."""
    scheduler.adopt_reads(slot)
    inner = scheduler.inner.pop(slot, ())
    if not explained:
        passed_on = [one for read in inner for one in read.raised.values()]
        annotate(error, scheduler.host.explain(slot), passed_on)
    run.absorb(inner)
    scheduler.versions.settle()  # a read inside of the node may have replayed a plan
    scheduler.error_count += 1
    number = scheduler.error_count
    seen = scheduler.seen_parents(slot)
    stored = StoredError(without_frames(error), seen, number, scheduler.turn)
    scheduler.errors[slot] = scheduler.raises[slot] = stored
    if issubclass(type(error), FLEETING):
        scheduler.fleeting = True
        distrust_values(scheduler, (slot,))  # it may come after the value is written
    scheduler.staleness.put(slot, scheduler.unless_doubted(slot, FAILED))
    scheduler.staleness.renew()  # marks do not show which error it is
    run.failed[slot] = stored.error
    run.raised[number] = error
