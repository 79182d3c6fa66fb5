"""Twins: the node of a fork that stands for a node of its origin, also inside of running functions."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from reactgrad._errors import GraphError
from reactgrad.core._core import Core, V
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import Handle

_T = TypeVar("_T")


def twin_of(graph: Core[V], var: Handle) -> V:
    """Return the node of a fork that corresponds to a node of its origin.

    Raises
    ------
    GraphError
        If the fork has no such node.
    """
    if var._graph is graph:
        return var  # type: ignore[return-value]
    serial = var._graph._scheduler.topology.serial[var._slot]
    for origin, limit in graph._lineage:
        if origin() is var._graph and serial <= limit:
            with graph._lock:
                present = graph._scheduler.topology.serial[var._slot] == serial
                if present and var._slot not in graph._host.removed:
                    return handle(graph, var._slot)
    raise GraphError(
        f"{var.label!r} has no twin in this graph: it was made after the fork, was removed here, or "
        "belongs to a graph that this one was not forked from."
    )


# The fork that this thread or task is computing. Its functions may hold Vars of its origins.
_computed: ContextVar[Core | None] = ContextVar("reactgrad_computed_fork", default=None)


def following(fork: Core, compute: Callable[[], _T]) -> _T:
    """Call ``compute``; what functions read from an origin meanwhile is read from its twin in the fork."""
    # An error may come between any two lines. All that is needed to undo the two changes is ready before the first
    # one, each may be undone without having been made, and either undone is enough: `computed_fork` asks for both.
    before, mark = _computed.get(), object()
    origins = [graph for origin, _ in fork._lineage if (graph := origin()) is not None]
    try:
        try:
            for graph in origins:
                graph._followed[mark] = fork
            _computed.set(fork)
            return compute()
        finally:
            _computed.set(before)
    finally:
        for graph in origins:
            graph._followed.pop(mark, None)


def computed_fork(graph: Core) -> Core | None:
    """Return the fork of ``graph`` that the calling thread computes, ``None`` if it computes none."""
    fork = _computed.get()
    # Other threads may write the dict meanwhile: the list is made in one step.
    return fork if fork is not None and fork in [*graph._followed.values()] else None
