"""Sets of leaves that lie side by side: a few copies and one event, however many leaves there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from reactgrad.change._set import set_many, take_back
from reactgrad.core._held import announce
from reactgrad.core._notes import UNDO
from reactgrad.scheduler import Leaves
from reactgrad.values._side_by_side import SideBySide

if TYPE_CHECKING:
    from reactgrad.core._core import Core


class Written(NamedTuple):
    """New values of leaves that lie side by side.

    Attributes
    ----------
    block : SideBySide
        The leaves.
    values : numpy.ndarray
        As ``block.array``; where leaves are not written, with their present values.
    which : Sequence of int
        The numbers of the leaves in the block that are written.
    leaves : Leaves
        Their slots.
    runs : Sequence of (int, int)
        The elements that are written.
    exchange : bool
        Whether the leaves move to `values`, which spares a copy; all of them are written then.
    """

    block: SideBySide
    values: Any
    which: Sequence[int]
    leaves: Leaves
    runs: Sequence[tuple[int, int]]
    exchange: bool


class Owner(Protocol):
    """An object whose state changes with the leaves: both go back if a transaction fails."""

    def memento(self) -> Callable[[], object]:
        """Return a function, a reference to this object, that gives the state its present value."""
        ...


def set_side_by_side(
    graph: Core,
    parts: Sequence[Written],
    then: Callable[[], object],
    owner: Owner,
) -> list[Any]:
    """Set the leaves of several blocks together, and call `then`: all of that, or nothing.

    An interrupt between the first write and the end is raised when all has been written. The caller holds
    the lock, and the values are finite numbers of the leaves' dtype.

    Parameters
    ----------
    then : callable
        A function that cannot fail, and may be called twice.
    owner : Owner
        The object whose state `then` changes.

    Returns
    -------
    list
        For each block the memory that its leaves have left for its ``values``, if nobody else sees it.

    Raises
    ------
    BusyError
        If a node of the graph is being computed.
    """
    host, scheduler = graph._host, graph._scheduler
    cut = (
        any(one in host.cutoffs for part in parts for one in part.leaves.slots)
        if host.cutoffs
        else False
    )
    if scheduler.notes or scheduler.computing or graph._observers.calling is not None or cut:
        key = (UNDO, id(owner))  # the note keeps the owner alive
        if scheduler.notes.wants(key):
            scheduler.notes.note(key, owner.memento())
        set_many(graph, _pairs(parts))
        then()
        return [None] * len(parts)
    left: list[Any] = [None] * len(parts)
    try:
        # Marks before values: readers without the lock must see too much stale, never too little.
        for i, part in enumerate(parts):
            if part.exchange and part.block.lies_in(host) and not host.lent_out(part.leaves.slots):
                left[i] = part.block.array
            scheduler.changed_again(part.leaves)
            host.overwrite(part.leaves.slots)
        for block, values, _, _, runs, exchange in parts:
            # Also where a caller holds the present memory of some leaf, and keeps it.
            if exchange or not block.lies_in(host):
                block.move(host, values)
                continue
            array = block.array
            for start, end in runs:
                np.copyto(array[start:end], values[start:end])
        then()
    except BaseException:  # without a call, see `Host.finish_writes`
        pairs = _pairs(parts)
        host.cut_slots = [slot for slot, _ in pairs]
        host.cut_values = [value for _, value in pairs]
        graph._lock.acquire = graph._lock.mending
        take_back(host, host.cut_slots)
        then()
        raise
    if graph._observed:
        announce(graph, [slot for part in parts for slot in part.leaves.slots])
    return left


def _pairs(parts: Collection[Written]) -> list[tuple[int, Any]]:
    """Return the slots that are written, each with its new value in the shape of the leaf."""
    found: list[tuple[int, Any]] = []
    for block, values, which, _, _, _ in parts:
        views = block.views(values)
        found += [(block.slots[i], views[i]) for i in which]
    return found
