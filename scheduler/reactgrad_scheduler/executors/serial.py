"""Plans run in the calling thread, one node after the other.

A *certain* plan runs as a bare loop over bound steps; nothing is written down until it ends, and
then only one entry in the journal. When a step raises, or reads other nodes itself, the frame is
*suspended*: what has happened is written into the tables, and the rest is run *checked*, which
compares versions before and writes them after every node.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import length_hint
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, cast

from reactgrad_scheduler.errors import Cancelled
from reactgrad_scheduler.plan import UNCHANGED, Plan, Step
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN, FAILED, MAYBE

if TYPE_CHECKING:
    from reactgrad_scheduler.scheduler import Scheduler


# Stands in the list of nodes being computed for the node that a running frame is at.
UNKNOWN = -1


@dataclass(eq=False, slots=True)
class StoredError:
    """What a node raised, and the versions of its parents it raised for."""

    error: Exception
    versions: tuple[int, ...]
    number: int  # of this error in its graph: what a node that caught it depends on


class Frame:
    """A certain plan that is being run.

    ``position`` is ``None`` while the tables know nothing of the run; after ``suspend`` it is
    the index of the node whose step is under way, and the steps after it will not be called.
    """

    __slots__ = ("_stopping", "_taken", "plan", "position", "steps")

    def __init__(self, plan: Plan, steps: Iterator[Step]) -> None:
        self.plan = plan
        self.steps = steps
        self.position: int | None = None
        self._taken = 0  # steps that `stop` took away
        self._stopping: Lock | None = None  # held while it takes them

    def stop(self) -> None:
        """Let no further step be called; from any thread: each step is taken by one of the two."""
        lock = Lock()
        with lock:
            self._stopping = lock
            self._taken += sum(1 for _ in self.steps)

    @property
    def stopped(self) -> bool:
        """Whether steps were taken away; asked when the loop over them has ended."""
        if self._stopping is None:
            return False
        with self._stopping:  # all that are to be taken are taken then
            return self._taken > 0

    @property
    def begun(self) -> int:
        """How many steps were called."""
        return len(self.plan.step_slots) - length_hint(self.steps) - self._taken

    def at(self) -> int:
        """The slot of the node under way."""
        return self.plan.slots[self._index()]

    def _index(self) -> int:
        if self.position is not None:
            return self.position
        step_slots = self.plan.step_slots
        begun = self.begun
        return self.plan.slots.index(step_slots[begun - 1]) if begun else 0

    def suspend(self, scheduler: Scheduler) -> None:
        """Write what has happened so far into the tables and stop the loop after this step."""
        index = self._index()
        scheduler.versions.settle()
        scheduler.staleness.flush()
        for slot in self.plan.slots[:index]:
            commit(scheduler, slot)
        self.position = index
        scheduler.computing[-1] = self.plan.slots[index]
        deque(self.steps, maxlen=0)


def commit(scheduler: Scheduler, slot: int) -> None:
    """Write down that `slot` was computed and changed."""
    versions = scheduler.versions
    versions.settle()
    versions.forced.discard(slot)
    versions.version[slot] += 1
    versions.record[slot] = scheduler.seen_parents(slot)
    scheduler.staleness.put(slot, CLEAN)
    scheduler.staleness.restore(slot)


def run_certain(scheduler: Scheduler, plan: Plan) -> Run | None:
    """Run all steps of `plan`; ``None`` if it went as planned and is still to be journaled."""
    scheduler.host.overwrite(plan.members)
    try:
        steps = iter(bound_steps(scheduler, plan))
    except Exception:  # a node cannot be bound: found, and noted, where it is run by itself
        scheduler.versions.settle()
        scheduler.staleness.flush()
        return run_rest(scheduler, plan, Run(), 0)
    frame = Frame(plan, steps)
    frames, computing = scheduler.frames, scheduler.computing
    frames.append(frame)
    computing.append(UNKNOWN)
    began = perf_counter()
    try:
        if scheduler.stopwatch is None:
            for step in steps:
                step()
        else:
            scheduler.stopwatch.play(scheduler, frame)
    except BaseException as error:
        if frame.position is None:
            frame.suspend(scheduler)
        assert frame.position is not None
        frames.remove(frame)
        slot = computing.pop()
        scheduler.adopt_reads(slot)
        run = Run(list(plan.slots[: frame.position]))
        run.absorb(scheduler.inner)
        if not isinstance(error, Exception):
            run.seal(scheduler.topology.serial)
            scheduler.last_run = run
            abandon(scheduler, plan.slots)
            raise
        if not isinstance(error, Cancelled):
            fail(scheduler, slot, error, run)
    else:
        frames.pop()
        if frame.position is None and frame.stopped:
            if not frame.begun:
                computing.pop()
                scheduler.versions.settle()
                scheduler.staleness.flush()
                return run_rest(scheduler, plan, Run(), 0)
            frame.suspend(scheduler)
        slot = computing.pop()
        if frame.position is None:
            plan.finished.seconds = perf_counter() - began
            return None
        scheduler.adopt_reads(slot)
        commit(scheduler, slot)
        run = Run(list(plan.slots[: frame.position]))
        run.absorb(scheduler.inner)
        run.ran.append(slot)
    run_rest(scheduler, plan, run, frame.position + 1)
    run.seconds = perf_counter() - began
    return run


def run_rest(scheduler: Scheduler, plan: Plan, run: Run, begin: int) -> Run:
    """Go on checked with a plan that cannot be run to its end as a bare loop."""
    try:
        return run_checked(scheduler, plan.slots[begin:], run=run)
    finally:
        abandon(scheduler, plan.slots)


def abandon(scheduler: Scheduler, slots: Iterable[int]) -> None:
    """Of these nodes, those that were dropped may have been bound to new storage: it holds nothing."""
    dropped = scheduler.dropped
    empty = [slot for slot in slots if slot in dropped] if dropped else []
    if empty:
        scheduler.host.release(empty)


def bound_steps(scheduler: Scheduler, plan: Plan) -> list[Step]:
    """The steps of `plan`, bound to where the values live now."""
    moves, known = scheduler.moves, plan.steps
    bind = scheduler.host.bind
    plan.steps = None  # until all of them are bound
    if known is None:
        known = list[Step]()
        step_slots: list[int] = []
        for slot in plan.slots:
            step = bind(slot)
            if step is not None:
                known.append(step)
                step_slots.append(slot)
        plan.step_slots = step_slots
        plan.moves_seen = len(moves)
    elif plan.moves_seen != len(moves):
        index = {slot: i for i, slot in enumerate(plan.step_slots)}
        children = scheduler.topology.children
        # The log may grow on the way: a view moves with its parent.
        while plan.moves_seen < len(moves):
            moved = moves[plan.moves_seen]
            plan.moves_seen += 1
            for slot in (moved, *children[moved]):
                if slot in plan.members:
                    step = bind(slot)
                    if step is not None:
                        known[index[slot]] = step
    plan.steps = known
    return known


def run_checked(
    scheduler: Scheduler, slots: Sequence[int], *, run: Run | None = None, retry: bool = False
) -> Run:
    """Run those of `slots` whose parents' versions moved, writing down each as it ends.

    `slots` are in topological order; marks, versions and records are up to date.
    """
    run = run if run is not None else Run()
    parents, mark = scheduler.topology.parents, scheduler.staleness.mark
    version, record = scheduler.versions.version, scheduler.versions.record
    put, errors, dynamic = scheduler.staleness.put, scheduler.errors, scheduler.dynamic
    forced, erasures = scheduler.versions.forced, scheduler.erasures
    asked: set[tuple[int, int]] = set()
    stopwatch = scheduler.stopwatch
    compute = run_node if stopwatch is None else stopwatch.run_node
    began = perf_counter()
    todo = list(reversed(slots))
    while todo:
        if scheduler.cancelled:
            break
        slot = todo.pop()
        if not mark[slot]:  # a node of this plan read it on the way
            continue
        sources = parents[slot]
        fixed = sources[: dynamic[slot]] if slot in dynamic else sources
        now: list[int] = []
        for parent in fixed:
            if mark[parent]:
                if scheduler.erasures != erasures and (slot, parent) not in asked:
                    # Marks were erased in the middle: it may be clean, and is not in the list.
                    asked.add((slot, parent))
                    todo.append(slot)
                    todo.extend(reversed(scheduler.stale_ancestors([parent])))
                break  # else it failed, so this one cannot run
            now.append(version[parent])
        else:
            stored = None if retry or not errors else errors.get(slot)
            known = record[slot] if stored is None else stored.versions
            same = known is not None and known[: len(fixed)] == tuple(now)
            if stored is None and slot in forced:
                same = False
            if same and known is not None and sources is not fixed:
                reads, versions = sources[len(fixed) :], known[len(fixed) :]
                asking = first_doubt(scheduler, slot, reads, versions, asked)
                if asking is not None:
                    asked.add((slot, asking))
                    todo.append(slot)
                    todo.extend(reversed(scheduler.stale_ancestors([asking])))
                    continue
                same = all(
                    scheduler.seen(parent) == old
                    for parent, old in zip(reads, versions, strict=True)
                )
            if same and stored is not None:
                put(slot, FAILED)
                if slot not in run.failed:
                    run.failed.append(slot)
                    run.errors.append(stored.error)
            elif same:
                put(slot, CLEAN)
                run.skipped.append(slot)
            else:
                compute(scheduler, slot, run)
    run.seconds = perf_counter() - began
    return run


def first_doubt(
    scheduler: Scheduler,
    slot: int,
    reads: tuple[int, ...],
    known: tuple[int, ...],
    asked: set[tuple[int, int]],
) -> int | None:
    """The first node that `slot` read and that must be made clean to see whether it changed.

    In the order in which it read them: a change before may lead it elsewhere, and what it then
    does not read again must not run.
    """
    for parent, old in zip(reads, known, strict=True):
        if scheduler.staleness.mark[parent] and (slot, parent) not in asked:
            return parent
        if scheduler.seen(parent) != old:
            return None
    return None


def run_node(scheduler: Scheduler, slot: int, run: Run) -> None:
    """Compute one node and write down what came of it."""
    host, computing, dropped = scheduler.host, scheduler.computing, scheduler.dropped
    scheduler.errors.pop(slot, None)
    computing.append(slot)
    erasures = scheduler.erasures
    try:
        if dropped:  # what it reads while it runs is rebuilt if it reads it again
            wanted = [parent for parent in scheduler.operands(slot) if parent in dropped]
            if wanted:
                rebuild(scheduler, wanted, run)
        if slot not in scheduler.staleness.cutoffs:  # those see the old value first
            host.overwrite((slot,))
        step = host.bind(slot)
        outcome = step() if step is not None else None
    except Exception as error:
        computing.pop()
        abandon(scheduler, (slot,))
        if isinstance(error, Cancelled):  # what it read was stopped: it has not failed
            scheduler.reads.pop(slot, None)
            run.absorb(scheduler.inner)
            return
        scheduler.adopt_reads(slot)
        run.absorb(scheduler.inner)
        fail(scheduler, slot, error, run)
        return
    except BaseException:
        computing.pop()
        abandon(scheduler, (slot,))
        scheduler.reads.pop(slot, None)
        run.seal(scheduler.topology.serial)
        scheduler.last_run = run
        raise
    computing.pop()
    scheduler.adopt_reads(slot)
    if scheduler.inner:
        run.absorb(scheduler.inner)
    versions = scheduler.versions
    if versions.journal:  # a read inside of it may have replayed a plan
        versions.settle()
    versions.forced.discard(slot)
    if outcome is UNCHANGED:
        run.cut_off.append(slot)
        scheduler.kept[slot] = versions.version[slot]
    else:
        versions.version[slot] += 1
    versions.record[slot] = scheduler.seen_parents(slot)
    # Where the node erased all marks while it ran, its parents are to be looked at again, too.
    scheduler.staleness.put(slot, CLEAN if scheduler.erasures == erasures else MAYBE)
    if slot in dropped:
        scheduler.staleness.restore(slot)
    run.ran.append(slot)


def rebuild(scheduler: Scheduler, slots: Iterable[int], run: Run) -> None:
    """Compute the released values of these clean nodes again, at their present versions.

    Parents first. The host may release again on the way what is still ``awaited``; then that is
    rebuilt where its turn to be read comes. It must leave what is ``locked``: what such an inner
    rebuild has still to read, so that it computes each node once and ends.
    """
    parents = scheduler.topology.parents
    order = scheduler.topology.sort(released(scheduler, slots))
    waiting = scheduler.locked if scheduler.awaited else scheduler.awaited
    uses = Counter(parent for slot in order for parent in parents[slot])
    waiting.update(uses)
    stopwatch = scheduler.stopwatch
    compute = rebuild_node if stopwatch is None else stopwatch.rebuild_node
    try:
        for slot in order:
            if scheduler.cancelled:
                raise Cancelled("the run was cancelled")
            if slot in scheduler.dropped:  # else it was needed, and rebuilt, before its turn
                compute(scheduler, slot, run)
            uses.subtract(parents[slot])
            _forget(waiting, parents[slot])
    finally:
        _forget(waiting, uses.elements())


def released(scheduler: Scheduler, slots: Iterable[int]) -> set[int]:
    """These nodes, and those of their clean ancestors without which they cannot be computed."""
    parents, dropped = scheduler.topology.parents, scheduler.dropped
    mark = scheduler.staleness.mark
    needed = set(slots)
    stack = list(needed)
    while stack:
        for parent in parents[stack.pop()]:
            # A marked one has raised, and its consumer caught that.
            if parent in dropped and parent not in needed and not mark[parent]:
                needed.add(parent)
                stack.append(parent)
    return needed


def _forget(waiting: Counter[int], slots: Iterable[int]) -> None:
    """These values were read once more."""
    for slot in slots:
        waiting[slot] -= 1
        if not waiting[slot]:
            del waiting[slot]


def rebuild_node(scheduler: Scheduler, slot: int, run: Run) -> None:
    """Compute the value of a clean node again."""
    mark, dropped = scheduler.staleness.mark, scheduler.dropped
    scheduler.computing.append(slot)
    try:
        sources = scheduler.topology.parents[slot]
        wanted = [parent for parent in sources if parent in dropped and not mark[parent]]
        if wanted:
            rebuild(scheduler, wanted, run)
        step = scheduler.host.bind(slot)
        if step is not None:
            step()
    except BaseException as error:
        abandon(scheduler, (slot,))
        if isinstance(error, Exception) and not isinstance(error, Cancelled):
            scheduler.host.explain(slot, error)
        raise
    finally:
        scheduler.computing.pop()
        scheduler.reads.pop(slot, None)  # it depends on what it depended on
        run.absorb(scheduler.inner)
    scheduler.staleness.restore(slot)
    run.rebuilt.append(slot)


def fail(
    scheduler: Scheduler, slot: int, error: Exception, run: Run, *, explained: bool = False
) -> None:
    """Note that `slot` raised: for this run, and for reads before a parent changes."""
    if not explained:
        scheduler.host.explain(slot, error)
    stored = without_frames(error)
    scheduler.error_count += 1
    versions = scheduler.seen_parents(slot)
    scheduler.errors[slot] = StoredError(stored, versions, scheduler.error_count)
    # Marked apart: a node that caught this error is clean, and a change must still reach it.
    scheduler.staleness.put(slot, FAILED)
    scheduler.staleness.renew()
    if not run.failed:
        run.raised = error
    run.failed.append(slot)
    run.errors.append(stored)


def without_frames(error: Exception) -> Exception:
    """A copy of `error`, with its causes, that keeps no frame and so no local variable alive."""
    twins: dict[int, BaseException] = {}
    stack: list[BaseException] = [error]
    while stack:
        one = stack.pop()
        if id(one) not in twins:
            twins[id(one)] = _bare(one)
            stack += [link for link in (one.__cause__, one.__context__) if link is not None]
    originals: list[BaseException] = [error]
    seen: set[int] = set()
    while originals:
        one = originals.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        twin = twins[id(one)]
        if twin is not one:
            twin.__cause__ = None if one.__cause__ is None else twins[id(one.__cause__)]
            twin.__context__ = None if one.__context__ is None else twins[id(one.__context__)]
            twin.__suppress_context__ = one.__suppress_context__
        originals += [link for link in (one.__cause__, one.__context__) if link is not None]
    twin = twins[id(error)]
    assert isinstance(twin, Exception)
    return twin


def _bare(error: BaseException) -> BaseException:
    """One exception copied without its traceback; itself where its class allows no copy."""
    try:
        twin = _faithful_copy(error)
    except Exception:
        return error
    twin.__traceback__ = None
    if hasattr(error, "__notes__"):
        twin.__notes__ = list(error.__notes__)
    return twin


def _faithful_copy(error: BaseException) -> BaseException:
    if isinstance(error, BaseExceptionGroup):
        members = [_bare(one) for one in cast("tuple[BaseException, ...]", error.exceptions)]
        return cast("BaseException", error.derive(members))  # pyright: ignore[reportUnknownMemberType]
    try:
        twin = copy.copy(error)
        if type(twin) is type(error) and str(twin) == str(error):
            return twin
    except Exception:
        pass
    # Past the class's own constructors, which may want anything.
    base = next(b for b in type(error).__mro__ if b.__module__ == "builtins")
    twin = base.__new__(type(error), *error.args)
    twin.args = error.args
    twin.__dict__.update(error.__dict__)
    return twin
