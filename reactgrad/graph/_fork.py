"""Copies of a graph that share all values until one side recomputes them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from reactgrad._errors import GraphError
from reactgrad.core._rows import Pin
from reactgrad.scheduler import Blank, share

if TYPE_CHECKING:
    from reactgrad.autodiff import Program
    from reactgrad.graph._graph import Graph
    from reactgrad.graph._var import Var


_T = TypeVar("_T")


def fork(graph: Graph) -> Graph:
    """A copy-on-write twin; see ``Graph.fork``."""
    with graph._lock:
        graph._tidy()
        graph._shapes.clear(graph)
        twin = type(graph).__new__(type(graph))
        twin._open(graph.seed)
        host, copy = graph._host, twin._host
        try:
            scheduler = graph._scheduler.fork(copy)
        finally:
            graph._mark = graph._scheduler.staleness.mark  # another object now
        twin._adopt(scheduler)
        host.share_with(copy)
        copy.handles = Blank(len(host.handles), None)
        host.sites, copy.sites = share(host.sites)
        copy.name_of, copy.named = host.name_of.copy(), host.named.copy()
        copy.closed = host.closed.copy()
        copy.removed = host.removed.copy()
        copy.frozen, copy.retained = host.frozen.copy(), host.retained.copy()
        copy.hooks = host.hooks.copy()
        if host.mode is not None:
            copy.keep_mode(host.mode)
        copy.spared = host.spared.copy()
        copy.patterns, copy.numbers = host.patterns.copy(), host.numbers.copy()
        copy.dtypes, copy.floats = host.dtypes.copy(), host.floats.copy()
        copy.forked_serial = scheduler.topology.next_serial - 1
        copy.pins = {
            slot: Pin([twin._handle(parent._slot) for parent in pin.parents], pin.fixed)
            for slot, pin in host.pins.items()
        }
        for slot, operands in host.branches.items():
            copy.ops[slot] = host.ops[slot].twin(twin)
            twin._link_branches(slot, operands)
        _fork_programs(graph, twin)
        twin.max_bytes = graph.max_bytes
        living = [entry for entry in graph._lineage if entry[0]() is not None]
        twin._lineage = [*living, (weakref.ref(graph), copy.forked_serial)]
        return twin


def _fork_programs(graph: Graph, twin: Graph) -> None:
    """Give the twin the gradients that were built, so that it need not build them again."""
    keys = {
        program: key
        for _, programs in graph._live_programs()
        for key, (_, program, _) in programs.items()
    }
    copies: dict[Program, Program] = {}
    twin._programs.follow_on(graph._programs)
    for program in graph._programs.in_order():
        copied = copies[program] = program.twin(twin)
        # Programs that only what they built keeps alive stand for themselves.
        entry = (next(iter(copied.seeds.values())), copied, {})
        twin._host.twin_programs.setdefault(program._output, {})[keys.get(program, copied)] = entry
    twin._programs.name_as(graph._programs, copies)
    graph._host.lend_owners(twin._host)


def twin_of(graph: Graph, var: Var) -> Var:
    """The node of a fork that corresponds to a node of the graph it was forked from."""
    if var._graph is graph:
        return var
    serial = var._graph._scheduler.topology.serial[var._slot]
    for origin, limit in graph._lineage:
        if origin() is var._graph and serial <= limit:
            with graph._lock:
                present = graph._scheduler.topology.serial[var._slot] == serial
                if present and var._slot not in graph._host.removed:
                    return graph._handle(var._slot)
    raise GraphError(
        f"{var.name!r} has no twin in this graph: it was made after the fork, was removed here, or "
        "belongs to a graph that this one was not forked from."
    )


# The fork that this thread or task is computing, whose functions may know Vars of its origins.
_computed: ContextVar[Graph | None] = ContextVar("reactgrad_computed_fork", default=None)


def following(fork: Graph, compute: Callable[[], _T]) -> _T:
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


def computed_fork(graph: Graph) -> Graph | None:
    """The fork of `graph` that the calling thread computes, if it does."""
    fork = _computed.get()
    return fork if fork is not None and fork in [*graph._followed.values()] else None


class WhatIf:
    """A fork for the length of a ``with`` block; see ``Graph.whatif``."""

    __slots__ = ("_changes", "_fork", "_graph")

    def __init__(self, graph: Graph, changes: dict[Any, Any]) -> None:
        self._graph = graph
        self._changes = changes
        self._fork: Graph | None = None

    def __enter__(self) -> Graph:
        if self._fork is not None:
            raise GraphError(
                "this g.whatif(...) is open already, and its fork belongs to the block that opened it. "
                "For another fork write g.whatif(...) again; inside the block use the one it gave."
            )
        fork = self._graph.fork()
        if self._changes:
            fork.set(
                {
                    key if isinstance(key, str) else fork[key]: value
                    for key, value in self._changes.items()
                }
            )
        self._fork = fork
        return fork

    def __exit__(self, *exc: object) -> None:
        self._fork = None

    def __getitem__(self, key: Any) -> NoReturn:
        raise GraphError(
            "g.whatif(...) is a block: write `with g.whatif({x: new}) as w:` and w[y].value inside. For "
            "a copy that stays, h = g.fork(), then h[x].set(new) and h[y].value."
        )
