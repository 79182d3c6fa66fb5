"""Blocks whose sets and edits are made as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from weakref import ref

from reactgrad._errors import BlockError
from reactgrad.change._edits import Edits, innermost, void_inside
from reactgrad.change._remove import settle
from reactgrad.change._rollback import give_back
from reactgrad.change._set import make_waiting_sets
from reactgrad.core._core import Core
from reactgrad.core._held import held
from reactgrad.core._observer_errors import conclude
from reactgrad.core._twins import enter_followed
from reactgrad.scheduler import block


@block
def transaction(graph: Core, /) -> Iterator[None]:
    """Make the sets and edits of a block all-or-nothing.

    Reads inside see the new values; other threads see nothing before the end. An exception
    inside gives back the values of leaves, the topology, removed nodes, pins, names, cutoffs
    and what is frozen, with new versions, and is passed on. Nodes that were built inside stay,
    without the names they got there; what ``backward`` has added to ``.grad`` stays, too.
    Transactions nest.

    What was given back counts as changed: what depends on it runs again. The block belongs to its
    task, and holds the graph: if another task of the thread uses the graph at an ``await`` inside,
    all is given back before that, and the block raises. No waiting in it for threads that use the
    graph, which would be for ever, and threads that need several graphs in transactions enter them
    in the same order.

    Raises
    ------
    BlockError
        If it ends before a block that was opened inside of it, as two generators may do: all is
        given back that was done in both. If another task has used the graph meanwhile: all is given
        back that was done inside, and the other task's changes stay.
    BusyError
        Inside a node that is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> try:
    ...     with g.transaction():
    ...         x.set(2.0)
    ...         raise ValueError
    ... except ValueError:
    ...     pass
    >>> x.value
    1.0
    """
    observers = graph._observers
    lock = graph._lock
    with held(graph) as holding:
        if observers.queue:  # sets that the observer being called has asked for before
            conclude([], *make_waiting_sets(graph))
        ran = observers.ran
        # Inside a block of edits, those that are collected here go with what is set here.
        first = innermost(graph) is None  # else what is edited here goes into the block around
        collected = nullcontext() if first else Edits(graph)
        try:
            with graph._scheduler.transaction(partial(give_back, graph)), collected:
                # What is open here is of this task, or was broken off.
                inner = any(owner.guards and not owner.void for owner in lock.owners)
                owner = None if inner else lock.hold(partial(_break_off, graph, holding))
                try:
                    yield
                    lock.check_owner()
                finally:
                    if owner is not None:
                        lock.drop(owner)
                        graph._followed.pop(ref(holding), None)
                if first and innermost(graph) is not None:
                    raise BlockError.of("a transaction")
        except BaseException:
            if first:
                void_inside(graph, None)
            # What was computed in the block, from nothing that was given back, is new.
            leaf, stale = graph._scheduler.leaf, graph._scheduler.is_stale
            observers.ran = ran or any(not (leaf[slot] or stale(slot)) for slot in observers.news)
            raise
        finally:
            settle(graph)
        observers.ran = True


def _break_off(graph: Core, holding: held) -> None:
    """Take back what the open transactions have changed, before another task uses the graph."""
    graph._scheduler.notes.break_off(partial(give_back, graph))
    holding.end_early()
    enter_followed(graph, holding)  # so that the task of the block takes no fast path
