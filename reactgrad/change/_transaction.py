"""Blocks whose sets and edits are made as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

from reactgrad._errors import BlockError
from reactgrad.change._edit import Edits, void_inside
from reactgrad.change._remove import settle
from reactgrad.change._rollback import give_back
from reactgrad.change._set import make_waiting_sets
from reactgrad.core._core import Core
from reactgrad.core._held import held
from reactgrad.core._observer_errors import conclude
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
    thread and holds the graph: no ``await`` in it, which would let other tasks of the thread in, no
    waiting for threads that use the graph, which would be for ever, and threads that need several
    graphs in transactions enter them in the same order.

    Raises
    ------
    BlockError
        If it ends before a block that was opened inside of it, as two generators may do: all is
        given back that was done in both.
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
    with held(graph):
        if observers.queue:  # sets that the observer being called has asked for before
            conclude([], *make_waiting_sets(graph))
        ran = observers.ran
        # Inside a block of edits, those that are collected here go with what is set here.
        first = graph._edits is None  # else what is edited here goes into the block around
        collected = nullcontext() if first else Edits(graph)
        try:
            with graph._scheduler.transaction(partial(give_back, graph)), collected:
                yield
                if first and graph._edits is not None:
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
