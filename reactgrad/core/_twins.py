"""Twins: the node of a fork that stands for a node of its origin, also inside of running functions."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar
from weakref import ref

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
_computed: ContextVar[ref[Core] | None] = ContextVar("reactgrad_computed_fork", default=None)


class _Computation:
    """A computation of a fork under way; its frame holds it, and nobody else."""

    __slots__ = ("__weakref__", "fork")

    def __init__(self, fork: ref[Core]) -> None:
        self.fork = fork


def enter_followed(graph: Core, mark: object) -> None:
    """Let no read of ``graph`` take the fast path as long as ``mark`` lives, wherever an error comes."""
    followed = graph._followed
    followed[ref(mark, followed.pop)] = None


def following(fork: Core, compute: Callable[[], _T]) -> _T:
    """Call ``compute``; what functions read from an origin meanwhile is read from its twin in the fork."""
    # An error may come between any two lines. The entries go with the frame; that, or that the former fork is back,
    # is enough: `computed_fork` asks for both.
    before, found = _computed.get(), ref(fork)
    mark = _Computation(found)
    try:
        for graph in [graph for origin, _ in fork._lineage if (graph := origin()) is not None]:
            enter_followed(graph, mark)
        _computed.set(found)
        return compute()
    finally:
        _computed.set(before)
        del mark  # a traceback may hold this frame


def computed_fork(graph: Core) -> Core | None:
    """Return the fork of ``graph`` that the calling thread computes, ``None`` if it computes none."""
    found = _computed.get()
    # Other threads may write the dict meanwhile: the list is made in one step.
    entries = () if found is None else [*graph._followed]
    under_way = [one() for one in entries if isinstance(one, ref)]
    if found is None or not any(getattr(one, "fork", None) is found for one in under_way):
        return None
    return found()
