"""Reads that run stale nodes, and the gradients that have to follow before or after a run."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from functools import partial

from reactgrad._errors import Cancelled, OutdatedRuleError, UnsetError
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._held import collect, held
from reactgrad.core._twins import following
from reactgrad.reading._blocks import blocks_due, open_blocks, surrounded
from reactgrad.reading._joint_run import OneRead
from reactgrad.reading._limits import _check_cancelled
from reactgrad.scheduler import Later, Repeat, is_stray
from reactgrad.scheduler import Run as RawRun
from reactgrad.values._quiet import as_before, be_quiet, error_state


def refresh(
    graph: Core,
    slots: tuple[int, ...],
    retry: bool = False,
    budgeted: bool = False,
    repeat: Repeat | None = None,
) -> RawRun:
    """Bring these nodes up to date.

    `budgeted` is true where a memory budget already surrounds the read. `repeat` remembers the plan of a read of these
    nodes that is made again and again.
    """
    if (policy := graph._host.policy) is not None and not budgeted:
        return policy.read_within(slots, partial(refresh, graph, slots, retry, True))
    if (rounds := graph._rounds) is not None and not (graph._computing or rounds.under_way):
        return rounds.read(graph, slots, partial(refresh, graph, slots, retry, budgeted))
    # The outermost read of an observed graph holds observers back until its end.
    if graph._observed and not graph._observers.held:
        with held(graph):
            return refresh(graph, slots, retry=retry)
    # An empty set in nearly all reads: one truth test.
    if open_blocks and not graph._computing and (blocks := blocks_due(graph)):
        with surrounded(graph, blocks):
            return refresh(graph, slots, retry=retry)
    programs = graph._programs
    read = programs.read
    # Gradients do not change while one of them is being built: see `Program.follow_below`.
    if programs.observing and not (graph._computing or programs.under_way):
        if read is None or not read.ready:
            return _follow_and_read(graph, slots, retry)
        read.ready = False
    # NumPy's floating-point warnings are off while kernels run, and as before afterwards.
    before = error_state()
    try:
        try:
            be_quiet()
            if graph._lineage:
                run = following(graph, partial(graph._scheduler.refresh, slots, retry))
            else:
                run = graph._scheduler.refresh(slots, retry, repeat)
        finally:
            as_before(before)
    except BaseException as error:
        # First and without a call: the stack may be full. Such an error is not the end of a run.
        lock = graph._lock
        usual, lock.acquire = lock.acquire, lock.mending
        stray = is_stray(error)
        as_before(before)  # again: the error may have come where it was made so
        if not stray:
            lock.acquire = usual
        if graph._computing and (stray or issubclass(type(error), Cancelled)):
            graph._scheduler.break_read(error)
        if (stray or issubclass(type(error), Later)) and graph._observed:
            collect(graph, graph._scheduler.last_run)
        raise
    if graph._observed:
        collect(graph, run)
    if read is not None and not graph._computing:
        read.note(run)
    failure = graph._scheduler.error_of(slots, run) if run.failed else None
    outdated = run.failed and any(type(error) is OutdatedRuleError for error in run.failed.values())
    # Afterwards the failed node may have another error to raise.
    if outdated and follow_rules(graph):
        del failure
        with OneRead(graph, run) if read is None else nullcontext(read) as whole:
            try:
                refresh(graph, slots, retry=retry)
            except Exception:
                whole.joined()
                raise
            return whole.joined()
    if graph._transient and not graph._computing:
        from reactgrad.memory._transient_run import take_refusal

        failure = take_refusal(graph._host, failure)
    try:
        if graph._scheduler.cancelled:
            _check_cancelled(graph, slots)
        if failure is not None:
            raise failure
        return run
    finally:
        del failure  # its traceback holds this frame


def _follow_and_read(graph: Core, slots: tuple[int, ...], retry: bool) -> RawRun:
    """Read gradients that may first have to follow shapes that only values show."""
    with OneRead(graph) as read:
        _follow_values(graph, graph._scheduler.truly_stale(slots))
        read.ready = True
        try:
            refresh(graph, slots, retry)
            if retry and _follow_values(graph, graph._scheduler.topology.ancestors(slots)):
                refresh(graph, slots)  # nodes that had failed before show their shapes only now
        except Exception:
            read.joined()
            raise
        return read.joined()


def _follow_values(graph: Core, slots: Collection[int]) -> bool:
    """Update gradients among these nodes whose shapes only values show.

    Return whether any were updated.
    """
    owners = graph._host.owners
    numbers = {owners[slot] for slot in slots if slot in owners}
    followed = False
    for program in graph._programs.in_order() if numbers else ():
        if program.number in numbers:
            followed |= program.follow_values(slots)
    return followed


def follow_rules(graph: Core) -> bool:
    """Build gradients again whose rules saw something that no longer holds.

    Return whether there were any.
    """
    programs = graph._programs
    if graph._computing or programs.under_way:
        return False
    if programs.waiting and graph._subgraphs is not None:
        with graph._subgraphs.fed(graph):
            return _follow_outdated(graph)
    return _follow_outdated(graph)


def _follow_outdated(graph: Core) -> bool:
    """Build outdated gradients again, in one change. Return whether any could be built."""
    programs = graph._programs
    # First the gradients that these are built on: after that some of these may be right again.
    before = [program for program in programs.in_order() if program.outdated()]
    for program in before:
        program.follow_below()
    followed = any(not program.outdated() for program in before)
    outdated = [(program, program.outdated()) for program in programs.in_order()]
    waiting = [slot for _, slots in outdated for slot, waits in slots.items() if waits]
    unset: set[int] = set()
    # Before the change, inside of which nothing runs: run the functions that rules wait for.
    for slot in dict.fromkeys(waiting):
        try:
            refresh(graph, (slot,))
        except UnsetError:  # the rule waits on
            unset.add(slot)
    programs.following = True
    try:
        with Change(graph) as change:
            for program, slots in outdated:
                if slots.keys() - unset:
                    change.update(program, slots.keys() - unset, ())
            change.follow()
    finally:
        programs.following = False
    programs.waiting = bool(unset)
    return followed or any(
        slots.keys() - unset and not program.broken for program, slots in outdated
    )
