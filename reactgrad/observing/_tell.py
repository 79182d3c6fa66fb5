"""Calls of observers: which are due, with which arguments, and the sets that they ask for.

See ``_observe`` for the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactgrad.change._set import make_waiting_sets
from reactgrad.core._observer_errors import MAX_ROUNDS, StabilizeError
from reactgrad.core._observers import Calls
from reactgrad.reading._value import hand_out
from reactgrad.scheduler import is_interrupt

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def deliver(graph: Core, problems: list[Exception]) -> StabilizeError | None:
    """Call observers, round by round, and make their sets.

    Nothing is called while a block holds observers back, or while nodes are being computed.

    Parameters
    ----------
    problems
        Receives the errors that observers raise.

    Returns
    -------
    StabilizeError or None
        The error if the rounds would never end.
    """
    observers = graph._observers
    if observers.held or graph._computing:
        return None
    if not (observers.observed or observers.gone or observers.calls or observers):
        observers.ran = False
        return None
    observers.held += 1
    try:
        for _ in range(MAX_ROUNDS):
            if observers.queue:  # left by a callback that was interrupted
                problems += make_waiting_sets(graph)
            if not observers.calls:
                # Reversed, since calls are popped from the end.
                observers.calls = _due(graph)[::-1]
            if not observers.calls:
                return None
            _call(graph, problems)
        return endless(graph)
    finally:
        observers.held -= 1


def _call(graph: Core, problems: list[Exception]) -> None:
    """Call the observers that are due, and make the sets of each when it has returned."""
    observers, calls = graph._observers, graph._observers.calls
    gate = graph._lock.open(0)  # lets in threads that callbacks wait for
    try:
        while calls:
            # Taken from the list before the call: after an interrupt the rest is called the next
            # time.
            observer, arguments = calls.pop()
            # Otherwise another observer has cancelled it.
            if observer.active or observer.kind == "removed":
                observers.calling = observer
                try:
                    observer.call(*arguments)
                except Exception as error:
                    if is_interrupt(error):
                        raise
                    problems.append(error)
                if observers.queue:
                    with graph._lock:
                        observers.calling = None
                        problems += make_waiting_sets(graph)
    finally:
        try:
            graph._lock.close(gate)
        finally:
            observers.calling = None


def _due(graph: Core) -> Calls:
    """Return the observers to call, with their arguments."""
    observers = graph._observers
    calls: Calls = []
    if observers.gone:
        calls += [(observer, (observer.var,)) for observer in observers.gone]
        observers.gone.clear()
    if observers.ran:
        observers.ran = False
        calls += _outcomes(graph)
    if observers.of["stale"]:
        calls += _turned_stale(graph)
    return calls


def _outcomes(graph: Core) -> Calls:
    """Return calls for values and errors that are news to observers."""
    observers, scheduler = graph._observers, graph._scheduler
    calls: Calls = []
    news, failed = observers.news, observers.failed
    if not news and not failed:
        return calls
    # News of a node that is stale again wait until it is clean.
    due = news.keys() - scheduler.stale_among(news)
    if failed:
        observers.failed = set()
    errors = scheduler.blocked(failed, observers.of["error"]) if failed else {}
    slots = due.union(errors) if errors else due
    for slot in scheduler.topology.sort(slots) if len(slots) > 1 else slots:
        if slot in errors:
            error, number = errors[slot].error, errors[slot].number
            for observer in observers.of["error"][slot]:
                if observer.last != number:
                    observer.last = number
                    calls.append((observer, (error,)))
        if slot in due:
            before, new = news.pop(slot), hand_out(graph, slot)
            for observer in observers.of["changed"][slot]:
                if observer.number < before:
                    calls.append((observer, (observer.last, new)))
                    observer.last = new
    return calls


def _turned_stale(graph: Core) -> Calls:
    """Return calls for nodes that were settled at the last call of this function and are stale now."""
    observers, scheduler = graph._observers, graph._scheduler
    calls: Calls = []
    table = observers.of["stale"]
    # Pending changes become marks first.
    scheduler.staleness.flush()
    slots = scheduler.topology.sort(scheduler.staleness.moved & table.keys())
    stale = scheduler.unsettled_among(slots) if slots else set()
    scheduler.staleness.moved.clear()
    for slot in slots:
        for observer in table[slot]:
            if slot in stale and observer.armed:
                calls.append((observer, (observer.var,)))
            observer.armed = slot not in stale
    return calls


def endless(graph: Core) -> StabilizeError:
    """Return the error that names the nodes that never come to rest."""
    observers, scheduler = graph._observers, graph._scheduler
    slots = observers.news.keys() | scheduler.stale_among(observers.observed)
    names = [graph._host.label(slot) for slot in scheduler.topology.sort(slots)]
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return StabilizeError(
        f"after {MAX_ROUNDS} times of being called observers still change what is observed ({shown}). "
        "An observer that sets a node it observes, directly or through others, never ends: set only "
        "what does not lead back, or only when the value differs."
    )
