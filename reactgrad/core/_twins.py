"""Twins: the node of a fork that stands for a node of its origin, also while a function of the fork runs."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from reactgrad._errors import GraphError
from reactgrad.core._handles import handle

if TYPE_CHECKING:
    from reactgrad.core._core import Core, V
    from reactgrad.nodes._handle import Handle


_T = TypeVar("_T")


def twin_of(graph: Core[V], var: Handle) -> V:
    """The node of a fork that corresponds to a node of the graph it was forked from."""
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
        f"{var.name!r} has no twin in this graph: it was made after the fork, was removed here, or "
        "belongs to a graph that this one was not forked from."
    )


# The fork that this thread or task is computing, whose functions may know Vars of its origins.
_computed: ContextVar[Core | None] = ContextVar("reactgrad_computed_fork", default=None)


def following(fork: Core, compute: Callable[[], _T]) -> _T:
    """Compute a fork: where a function reads a node of an origin, it means the twin of that node."""
    # What an interrupt finds half done, in whatever line, is undone: so all is noted before it is done.
    before, mark = _computed.get(), object()
    origins = [graph for origin, _ in fork._lineage if (graph := origin()) is not None]
    try:
        for graph in origins:
            graph._followed[mark] = fork
        _computed.set(fork)
        return compute()
    finally:
        _computed.set(before)  # first: what it says is what counts
        for graph in origins:
            graph._followed.pop(mark, None)


def computed_fork(graph: Core) -> Core | None:
    """The fork of `graph` that the calling thread computes, if it does."""
    fork = _computed.get()
    return fork if fork is not None and fork in [*graph._followed.values()] else None
