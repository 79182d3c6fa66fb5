"""Reading: runs of what is stale, their ends before time, and the values that readers get."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from reactgrad._errors import Cancelled, DTypeError, OutdatedRuleError, UnsetError
from reactgrad.change._change import Change
from reactgrad.graph._fork import computed_fork, following, twin_of
from reactgrad.memory._transient_run import take_refusal
from reactgrad.observing._observe import collect
from reactgrad.observing._tell import held
from reactgrad.reading._blocks import blocks_due, open_blocks, surrounded
from reactgrad.reading._joint_run import OneRead
from reactgrad.scheduler import Later, Serial, Threads, note_read
from reactgrad.scheduler import Run as RawRun
from reactgrad.values._quiet import as_before, be_quiet, error_state
from reactgrad.values._store import MISSING, Lease
from reactgrad_scheduler.staleness import FAILED

if TYPE_CHECKING:
    from reactgrad.graph._graph import Graph


@contextmanager
def running_by(graph: Graph, executor: Serial | Threads) -> Iterator[None]:
    """Let reads of a block run in another way."""
    if graph._computing:
        read_executor(executor)
        yield
        return
    former, graph.executor = graph.executor, executor
    try:
        yield
    finally:
        graph.executor = former


@contextmanager
def within(limit: float, cancel: Callable[[], None]) -> Iterator[None]:
    """Call `cancel` if the block takes longer than so many seconds, and never when it has ended."""
    guard, ended = threading.Lock(), False

    def late() -> None:
        with guard:
            if not ended:
                cancel()

    timer = threading.Timer(limit, late)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            ended = True
        timer.cancel()


def refresh(graph: Graph, slots: tuple[int, ...], retry: bool = False) -> RawRun:
    if graph._observed and not graph._observers.held:
        with held(graph):
            return graph._refresh(slots, retry=retry)
    if open_blocks and not graph._computing and (blocks := blocks_due(graph)):
        with surrounded(graph, blocks):
            return graph._refresh(slots, retry=retry)
    programs = graph._programs
    read = programs.read
    # Nothing changes below what is being built: see `Program.follow_below`.
    if programs.observing and not (graph._computing or programs.under_way):
        if read is None or not read.ready:
            return _follow_and_read(graph, slots, retry)
        read.ready = False
    try:
        before = error_state()
        try:
            be_quiet()
            if graph._lineage:
                run = following(graph, partial(graph._scheduler.refresh, slots, retry))
            else:
                run = graph._scheduler.refresh(slots, retry)
        finally:
            as_before(before)
    except BaseException as error:
        interrupted = not isinstance(error, Exception | Later)  # in the middle
        if graph._computing:
            if interrupted or isinstance(error, Cancelled):
                graph._scheduler.break_read(error)
        elif interrupted:
            graph._scheduler.forget()  # versions tell how far it got
        if not isinstance(error, Exception) and graph._observed:
            collect(graph, graph._scheduler.last_run)
        raise
    if graph._observed:
        collect(graph, run)
    if read is not None and not graph._computing:
        read.note(run)
    failure = graph._scheduler.error_of(slots, run) if run.failed else None
    outdated = run.failed and OutdatedRuleError in map(type, run.failed.values())
    if outdated and graph._follow_rules():  # else who failed may have another error to raise by now
        del failure
        with OneRead(graph, run) if read is None else nullcontext(read) as whole:
            try:
                graph._refresh(slots, retry=retry)
            except Exception:
                whole.told()
                raise
            return whole.told()
    if graph._transient and not graph._computing:
        failure = take_refusal(graph._host, failure)
    try:
        if graph._scheduler.cancelled:
            _check_cancelled(graph, slots)
        if failure is not None:
            raise failure
        return run
    finally:
        del failure  # its traceback holds this frame


def _follow_and_read(graph: Graph, slots: tuple[int, ...], retry: bool) -> RawRun:
    """A read of gradients that may first have to follow shapes that only values show."""
    with OneRead(graph) as read:
        _follow_values(graph, graph._scheduler.truly_stale(slots))
        read.ready = True
        try:
            refresh(graph, slots, retry)
            if retry and _follow_values(graph, graph._scheduler.topology.ancestors(slots)):
                graph._refresh(slots)  # what had raised before shows its shape only now
        except Exception:
            read.told()
            raise
        return read.told()


def _follow_values(graph: Graph, slots: Collection[int]) -> bool:
    """Let gradients among these nodes follow shapes that only values show; whether one of them did."""
    owners = graph._host.owners
    numbers = {owners[slot] for slot in slots if slot in owners}
    followed = False
    for program in graph._programs.in_order() if numbers else ():
        if program.number in numbers:
            followed |= program.follow_values(slots)
    return followed


def follow_rules(graph: Graph) -> bool:
    """Build gradients anew whose rules saw what is no more so; whether there were any."""
    programs = graph._programs
    if graph._computing or programs.under_way:
        return False
    if programs.waiting and graph._subgraphs is not None:
        with graph._subgraphs.fed(graph):
            return _follow_outdated(graph)
    return _follow_outdated(graph)


def _follow_outdated(graph: Graph) -> bool:
    programs = graph._programs
    before = [program for program in programs.in_order() if program.outdated()]
    for program in before:
        program.follow_below()
    followed = any(not program.outdated() for program in before)
    outdated = [(program, program.outdated()) for program in programs.in_order()]
    waiting = [slot for _, slots in outdated for slot, waits in slots.items() if waits]
    unset: set[int] = set()
    for slot in dict.fromkeys(waiting):
        try:
            graph._refresh((slot,))
        except UnsetError:  # it goes on waiting
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


def _check_cancelled(graph: Graph, slots: Sequence[int]) -> None:
    """Raise if a cancelled run left one of these nodes stale."""
    stale = graph._scheduler.truly_stale(slots)
    if not graph._computing:
        graph._scheduler.cancelled = False
    if stale:
        raise_cancelled(graph, len(stale))


def raise_cancelled(graph: Graph, left: int) -> NoReturn:
    _stop(
        graph,
        f"the run was cancelled, or its time was up, with {left} nodes still to run; what "
        "had run is kept. Read again to go on.",
    )


def _stop(graph: Graph, message: str) -> NoReturn:
    """Raise ``Cancelled``, which ends the run whatever a function under way makes of it."""
    stopped = Cancelled(message)
    if graph._computing:
        graph._scheduler.break_read(stopped)
    else:
        graph._scheduler.cancelled = False
    raise stopped


def left_to_run(graph: Graph, slots: Sequence[int], retry: bool) -> int:
    """How many nodes a read of these would run at least; runs nothing."""
    scheduler = graph._scheduler
    left = {*scheduler.truly_stale(slots), *scheduler.dropped.intersection(slots)}
    if retry:  # also what functions handled
        ancestors = scheduler.topology.ancestors(slots)
        left.update([slot for slot in ancestors if graph._mark[slot] == FAILED])
    else:
        left = {slot for slot in left if graph._mark[slot] != FAILED}
    return len(left)


def value(graph: Graph, slot: int) -> Any:
    """The clean value of a node, for callers."""
    if graph._followed:
        fork = computed_fork(graph)
        if fork is not None:
            return twin_of(fork, graph._handle(slot)).value
    if graph._computing:
        if slot not in graph._transient and note_read(graph._scheduler, slot):
            value = graph._handed.get(slot, MISSING)
            missing = value is MISSING or type(value) is Lease
            return graph._hand_out(slot) if missing else value
    else:
        lock = graph._lock
        if lock.acquire(False):
            try:
                observed = graph._observed
                stale = graph._pending or graph._mark[slot] or (observed and _untold(graph))
                if not (lock.gates or graph._computing or (stale and observed)):
                    if stale:
                        graph._refresh((slot,))
                    value = graph._handed.get(slot, MISSING)
                    missing = value is MISSING or type(value) is Lease
                    return graph._hand_out(slot) if missing else value
            finally:
                lock.release()
    while True:
        try:
            return _value_now(graph, slot)
        except Later as later:  # another thread computes what this one needs
            graph._lock.wait_after(later)


def _untold(graph: Graph) -> bool:
    """Whether somebody looked at a change before a read could tell observers of it.

    Not inside of a run, which notes what it looks at in the same place, and tells at its end.
    """
    looked = graph._observed and not graph._computing and graph._scheduler.staleness.flushed
    return bool(looked)


def _value_now(graph: Graph, slot: int) -> Any:
    lock = graph._lock  # as `with lock`, but it says what it reads
    if not lock.acquire(False):
        lock.visit(slot)
    elif lock.gates:
        lock.enter_again(slot)
    try:
        if graph._computing:
            graph._scheduler.depend(slot)
        if graph._pending or graph._mark[slot] or _untold(graph):
            if graph._observed and not graph._observers.held:
                with held(graph):  # who may set what the value comes from
                    return graph._value(slot)
            graph._refresh((slot,))
        return graph._hand_out(slot)
    finally:
        if not lock.gates or lock.leave_gate():
            lock.release()


def hand_out(graph: Graph, slot: int) -> Any:
    """The value of a clean node, handed out without the lock the next time."""
    value = graph._host.hand_out(slot)
    if value is MISSING:
        value = graph._clean_value(slot)
    graph._handed.setdefault(slot, value)
    return value


def clean_value(graph: Graph, slot: int) -> Any:
    """The value of a clean node, computed again if it was released."""
    value = graph._host.hand_out(slot)
    if value is MISSING:
        graph._refresh((slot,))
        value = graph._host.hand_out(slot)
        if value is MISSING:
            _stop(
                graph,
                f"the run was cancelled while the released value of {graph._host.name(slot)!r} was "
                "computed again. Read again to go on.",
            )
    return value


def clean_values(graph: Graph, slots: Iterable[int]) -> list[Any]:
    """The values of clean nodes; those that were released are computed again."""
    hand_out, again = graph._host.hand_out, graph._clean_value
    return [again(slot) if (value := hand_out(slot)) is MISSING else value for slot in slots]


def read_executor(executor: Any) -> Threads | None:
    """Who runs nodes; ``None``: the thread that reads."""
    if isinstance(executor, Serial):
        return None
    if isinstance(executor, Threads):
        return executor
    raise DTypeError(
        f"executor={executor!r:.60}: write rg.Threads(n) for n threads, or rg.Serial()."
    )


def read_timeout(timeout: Any) -> float | None:
    """A time limit in seconds; ``None`` for one that no clock reaches."""
    number = isinstance(timeout, int | float | np.integer | np.floating)
    if not number or isinstance(timeout, bool) or math.isnan(timeout):
        raise DTypeError(
            f"forward(timeout={timeout!r:.60}): it is a number of seconds, or None for no limit."
        )
    return None if timeout >= threading.TIMEOUT_MAX else float(timeout)
