"""The value of one node for a caller; a stale node is computed first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reactgrad.change._set import make_waiting_sets
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.core._held import held
from reactgrad.core._observer_errors import conclude
from reactgrad.core._twins import computed_fork, twin_of
from reactgrad.reading._limits import _stop
from reactgrad.reading._refresh import refresh
from reactgrad.scheduler import Later, is_stray, note_read
from reactgrad.values._columns import MISSING
from reactgrad.values._lending import Lease


def value(graph: Core, slot: int) -> Any:
    """Return the clean value of a node to a caller outside of the run or inside of it."""
    # A function that runs for a fork may know Vars of the origin: it means the fork's nodes.
    if graph._followed:
        fork = computed_fork(graph)
        if fork is not None:
            twin: Any = twin_of(fork, handle(graph, slot))
            return twin.value
    if graph._computing:
        if slot not in graph._transient and note_read(graph._scheduler, slot):
            value = graph._handed.get(slot, MISSING)
            missing = value is MISSING or type(value) is Lease
            return hand_out(graph, slot) if missing else value
    else:
        # The fast path: the lock is free and nothing is under way, so `_value_now` has no more to
        # do.
        lock = graph._lock
        if lock.acquire(False):
            try:
                observed = graph._observed
                stale = graph._pending or graph._mark[slot] or (observed and _untold(graph))
                if not (lock.gates or graph._computing or (stale and observed)):
                    if stale:
                        refresh(graph, (slot,))
                    value = graph._handed.get(slot, MISSING)
                    missing = value is MISSING or type(value) is Lease
                    return hand_out(graph, slot) if missing else value
            except BaseException as error:
                # First and without a call: the stack may be full.
                usual, lock.acquire = lock.acquire, lock.mending
                if not is_stray(error):
                    lock.acquire = usual
                raise
            finally:
                lock.release()
    while True:
        try:
            return _value_now(graph, slot)
        except Later as later:  # another thread computes what this one needs
            graph._lock.wait_after(later)


def _untold(graph: Core) -> bool:
    """Return whether observers have still to hear of a change that is marked already.

    A question such as ``is_stale`` between a set and the next read marks what the set made stale
    (``staleness.flushed``), and calls nobody. Inside of a run this is False: the run calls the
    observers at its end.
    """
    looked = graph._observed and not graph._computing and graph._scheduler.staleness.flushed
    return bool(looked)


def _value_now(graph: Core, slot: int) -> Any:
    """Return the value of a node, computed first where it is stale, with the lock held."""
    lock = graph._lock  # as `with lock`, but a thread that has to wait says for which node
    if not lock.acquire(False):
        lock.visit(slot)
    elif lock.gates:
        lock.enter_again(slot)
    try:
        if graph._computing:
            graph._scheduler.depend(slot)
        elif graph._observers.queue:
            _after_waiting_set(graph, slot)
        if graph._pending or graph._mark[slot] or _untold(graph):
            if graph._observed and not graph._observers.held:
                with held(graph):  # observers may set what the value is computed from
                    return graph._value(slot)
            refresh(graph, (slot,))
        return hand_out(graph, slot)
    except BaseException as error:
        # First and without a call: the stack may be full.
        usual, lock.acquire = lock.acquire, lock.mending
        if not is_stray(error):
            lock.acquire = usual
        raise
    finally:
        # The same as the end of `with lock`: an open gate decides whether the lock is released.
        if not lock.gates or lock.leave_gate():
            lock.release()


def _after_waiting_set(graph: Core, slot: int) -> None:
    """Make the sets that wait for the end of a callback, if this leaf is among them."""
    if any(var._slot == slot for _, sets in graph._observers.queue for var, _ in sets):
        conclude([], *make_waiting_sets(graph))


def hand_out(graph: Core, slot: int) -> Any:
    """Return the value of a clean node, and keep it so that the next read needs no lock."""
    value = graph._host.hand_out(slot)
    if value is MISSING:
        value = clean_value(graph, slot)
    # Not overwritten: `Host.hand_out` may have stored a lease there, which must stay.
    graph._handed.setdefault(slot, value)
    return value


def clean_value(graph: Core, slot: int) -> Any:
    """Return the value of a clean node; a released value is computed again."""
    value = graph._host.hand_out(slot)
    if value is MISSING:
        refresh(graph, (slot,))
        value = graph._host.hand_out(slot)
        if value is MISSING:
            _stop(
                graph,
                f"the run was cancelled while the released value of {graph._host.label(slot)!r} was "
                "computed again. Read again to go on.",
            )
    return value


def clean_values(graph: Core, slots: Iterable[int]) -> list[Any]:
    """Return the values of clean nodes; released values are computed again."""
    hand_out = graph._host.hand_out
    return [
        clean_value(graph, slot) if (value := hand_out(slot)) is MISSING else value
        for slot in slots
    ]
