"""Forks: copies of a graph that share all values until one side recomputes them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Generic, Never, NoReturn

from reactgrad._errors import GraphError
from reactgrad.change._set import no_mapping
from reactgrad.core._core import C, Core
from reactgrad.core._definition import link_branches
from reactgrad.core._handles import handle, tidy
from reactgrad.core._live_programs import live_programs
from reactgrad.core._programs import Program
from reactgrad.core._rows import Pin
from reactgrad.memory._host import Host


def fork(graph: C, /) -> C:
    """Return a twin of this graph that shares all values until one side recomputes them.

    The fork has the same names, versions, staleness, train or eval mode, frozen, pinned and detached
    marks, gradients with their hooks, seed and memory budget; observers and ``.grad`` are not copied.
    Neither arrays nor tables are copied: both graphs share rows until they write to them, so that a
    fork costs the same in a graph of any size, and a what-if costs only what it touches. ``fork[var]``
    is the twin of a node of this graph; twins are kept as long as the fork.

    Python functions of the fork that read nodes of this graph by ``.value`` read their twins. A thread
    of a pool that such a function waits for does so too if it runs in a copy of the function's context
    (``contextvars.copy_context().run``, as ``asyncio.to_thread`` does). Otherwise it reads the nodes of
    this graph.

    Returns
    -------
    Graph

    Raises
    ------
    BusyError
        Inside a node that is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x * 2.0
    >>> h = g.fork()
    >>> h[x].set(5.0)
    >>> h[y].value, y.value
    (np.float64(10.0), np.float64(2.0))
    """
    with graph._lock:
        tidy(graph)
        graph._shapes.clear(graph)
        graph._generations.forked(graph)
        twin = type(graph).__new__(type(graph))
        host, copy = graph._host, Host(twin)
        twin._open(graph.seed, copy)
        if graph.device != "cpu":
            twin._device = graph.device
        try:
            scheduler = graph._scheduler.fork(copy)
        finally:
            # In `finally`: the tables are shared from here on, so `mark` is another object now.
            graph._mark = graph._scheduler.staleness.mark
        twin._adopt(scheduler)
        host.share_with(copy)
        if host.mode is not None:
            copy.keep_mode(host.mode)
        copy.restored_serial = host.restored_serial
        copy.forked_serial = scheduler.topology.next_serial - 1
        for slot, pin in host.pins.items():
            parents = [handle(twin, parent._slot) for parent in pin.parents]
            copy.pins[slot] = Pin(parents, pin.fixed)
        for slot, operands in host.branches.items():
            copy.ops[slot] = host.ops[slot].twin(twin)
            link_branches(twin, slot, operands)
        _fork_programs(graph, twin)
        if host.limit is not None:
            from reactgrad.memory._budget import set_limit  # imported late: few graphs have a limit

            set_limit(twin, host.limit)
        if graph._rounds is not None:
            type(graph._rounds)(twin)
        living = [entry for entry in graph._lineage if entry[0]() is not None]
        twin._lineage = [*living, (weakref.ref(graph), copy.forked_serial)]
        return twin


def _fork_programs(graph: Core, twin: Core) -> None:
    """Give the fork the gradients that were built, so that it need not build them again."""
    keys = {
        program: key
        for _, programs in live_programs(graph)
        for key, (_, program, _) in programs.items()
    }
    copies: dict[Program, Program] = {}
    twin._programs.follow_on(graph._programs)
    for program in graph._programs.in_order():
        copied = copies[program] = program.twin(twin)
        # A program without a handle of its own, kept alive by its nodes, is its own key.
        entry = (next(iter(copied.seeds.values())), copied, {})
        twin._host.twin_programs.setdefault(program._output, {})[keys.get(program, copied)] = entry
    twin._programs.name_as(graph._programs, copies)
    graph._host.lend_owners(twin._host)


class WhatIf(Generic[C]):
    """A fork for the length of a ``with`` block; see ``Graph.whatif``."""

    __slots__ = ("_changes", "_fork", "_graph")

    def __init__(self, graph: C, changes: dict[Any, Any]) -> None:
        self._graph = graph
        self._changes = changes
        self._fork: C | None = None

    def __enter__(self) -> C:
        if self._fork is not None:
            raise GraphError(
                "this g.whatif(...) is open already, and its fork belongs to the block that opened it. "
                "For another fork write g.whatif(...) again; inside the block use the one it gave."
            )
        graph: Any = self._graph
        twin = graph.fork()
        if self._changes:
            twin.set(
                {
                    key if isinstance(key, str) else twin[key]: value
                    for key, value in self._changes.items()
                }
            )
        self._fork = twin
        return twin

    def __exit__(self, *exc: object) -> None:
        self._fork = None

    def __getitem__(self, key: Any) -> NoReturn:
        raise GraphError(
            "g.whatif(...) is a block: write `with g.whatif({x: new}) as w:` and w[y].value inside. For "
            "a copy that stays, h = g.fork(), then h[x].set(new) and h[y].value."
        )


def whatif(
    graph: C, /, changes: Mapping[Any, Any] | None = None, *more: Never, **names: Never
) -> WhatIf[C]:
    """Fork the graph for the length of a block, with some leaves set.

    Parameters
    ----------
    changes : mapping from Var or name to array_like, optional
        New values of leaves in the fork.

    Returns
    -------
    context manager
        Enters with the fork.

    Raises
    ------
    DTypeError
        If ``changes`` is no mapping.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x * 2.0
    >>> with g.whatif({x: 7.0}) as w:
    ...     w[y].value
    np.float64(14.0)
    >>> x.value
    1.0
    """
    if more or names or (changes is not None and not isinstance(changes, Mapping)):
        raise no_mapping("g.whatif", changes, more, names)
    return WhatIf(graph, dict(changes or {}))
