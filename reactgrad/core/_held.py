"""Blocks that postpone the calls of observers to their end, and events that are noted for them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from reactgrad.core._observer import detach
from reactgrad.core._observer_errors import conclude
from reactgrad.scheduler import Run as RawRun
from reactgrad.scheduler import is_interrupt

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def collect(graph: Core, run: RawRun) -> None:
    """Note which observed nodes a run gave new values, failed to compute or made clean."""
    observers, scheduler = graph._observers, graph._scheduler
    observers.ran = True
    hits = observers.of["changed"].keys() & run.serials.keys()
    if hits:
        if len(run.ran) < len(run.serials):
            hits.intersection_update(run.ran)
        if run.cut_off:
            hits.difference_update(run.cut_off)
        observers.note(hits)
    if observers.of["error"]:
        observers.failed.update(run.failed)
    if observers.of["stale"] and observers.calling is not None:
        _arm(graph, run)
    if observers.of["stale"] and (run.cut_off or run.failed):
        # Children of these may have become clean although they did not run and no mark moved.
        topology, staleness = scheduler.topology, scheduler.staleness
        below = {child for slot in (*run.cut_off, *run.failed) for child in topology.children[slot]}
        reached = topology.descendants(below, staleness.mark.__getitem__)
        staleness.moved.update(observers.of["stale"].keys() & reached)


def _arm(graph: Core, run: RawRun) -> None:
    """Note that nodes were settled by a read of an observer, which may make them stale again."""
    table = graph._observers.of["stale"]
    slots = table.keys() & run.serials.keys()
    for slot in slots - graph._scheduler.unsettled_among(slots):
        for observer in table[slot]:
            observer.armed = True


def announce(graph: Core, slots: Iterable[int] = ()) -> None:
    """Note a change that no run made; these nodes have new values by it.

    Outside of a block of ``held``, call the observers of staleness at once.
    """
    if not graph._observed:
        return
    observers = graph._observers
    observers.note(slots)
    observers.stirred = True
    if observers.of["stale"] and not observers.held:
        with held(graph):
            pass


def removed(graph: Core, slot: int) -> None:
    """Cancel the observers of a node that was removed for good; call those of its removal.

    The slot of the node must not be free yet.

    Raises
    ------
    ExceptionGroup
        What observers raised.
    """
    observers = graph._observers
    with held(graph):
        for observer in observers.at(slot):
            detach(graph, observer)
            if observer.kind == "removed":
                observers.gone.append(observer)


class held:
    """A block at whose end the observers of a graph are called, and not before; holds the lock.

    Blocks nest; the outermost one calls.
    """

    __slots__ = ("__weakref__", "_before", "_graph")

    def __init__(self, graph: Core) -> None:
        self._graph = graph

    def __enter__(self) -> Self:
        self._graph._lock.__enter__()
        self._before = self._graph._observers.held
        self._graph._observers.held = self._before + 1
        return self

    def end_early(self) -> None:
        """Hold observers back no longer, although the block has not ended."""
        self._graph._observers.held = self._before
        self._before = sys.maxsize

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        endless = None
        try:
            # If it is less, a block around this one has ended first, and has counted down already.
            if self._graph._observers.held > self._before:
                self._graph._observers.held = self._before
            if error is None or not is_interrupt(error):
                problems: list[Exception] = []
                endless = self._graph._deliver(problems)
                if problems or endless is not None:
                    conclude(problems, endless, cast("Exception | None", error))
        finally:  # also where an interrupt came before the lines above
            del endless  # its traceback holds this frame
            if self._graph._observers.held > self._before:
                self._graph._observers.held = self._before
            self._graph._lock.__exit__(kind, error, trace)
