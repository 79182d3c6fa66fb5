"""Tables of observers, and of events that they have still to receive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from reactgrad.nodes._handle import Handle

KINDS = ("changed", "stale", "error", "removed")

# Leaves with their new values. All that one ``set`` asks for is one list.
Sets = list[tuple[Handle, Any]]


class Attached(Protocol):
    """An observer, as the tables of a graph know it."""

    var: Any
    kind: str
    number: int  # grows with every observer that is attached
    last: Any
    armed: bool

    @property
    def active(self) -> bool:
        """True until the observer is cancelled or its node is removed."""
        ...

    def call(self, *arguments: Any) -> None:
        """Call the callback; add the node's name to what it raises."""
        ...

    def blame(self, error: Exception) -> None:
        """Add a note to ``error`` that names the observed node."""
        ...


Calls = list[tuple[Attached, tuple[Any, ...]]]


class Observers:
    """The observers of one graph, and the events that they have still to receive.

    Attributes
    ----------
    of
        The observers by kind and slot, in order of attachment.
    observed
        For each node the number of its observers of any kind but ``"removed"``; ``stabilize`` brings
        these nodes up to date. While it is empty, no change of the graph does any work for observers.
    news
        Nodes with a new value, each with a number: observers with smaller numbers have still to
        receive it.
    failed
        Nodes that raised in a run, or were found to have raised before.
    gone
        Observers of kind ``"removed"`` whose node was removed.
    ran
        True if a run has ended whose events observers have not received yet.
    queue
        Sets that the observer being called has asked for, to be made when it has returned.
    calls
        Calls that the round under way has still to make, in reverse order. Calls that an interrupted
        round left here are made before any others.
    calling
        The observer that is being called.
    held
        The number of open blocks of ``held``: observers are called when the last one ends.
    stirred
        True if anything was changed since the present pass of ``stabilize`` began.
    """

    __slots__ = (
        "_count",
        "_next",
        "calling",
        "calls",
        "failed",
        "gone",
        "held",
        "news",
        "observed",
        "of",
        "queue",
        "ran",
        "stirred",
    )

    def __init__(self) -> None:
        self._count = 0
        self._next = 0
        self.of: dict[str, dict[int, dict[Attached, None]]] = {kind: {} for kind in KINDS}
        self.observed: dict[int, int] = {}
        self.news: dict[int, int] = {}
        self.failed: set[int] = set()
        self.gone: list[Attached] = []
        self.ran = False
        self.queue: list[tuple[Attached, Sets]] = []
        self.calls: Calls = []
        self.calling: Attached | None = None
        self.held = 0
        self.stirred = False

    def __len__(self) -> int:
        return self._count

    def has(self, observer: Attached) -> bool:
        """Return whether an observer is attached."""
        return observer in self.of[observer.kind].get(observer.var._slot, ())

    def at(self, slot: int) -> list[Attached]:
        """Return the observers of a node, of any kind."""
        return [observer for kind in KINDS for observer in self.of[kind].get(slot, ())]

    def note(self, slots: Iterable[int]) -> None:
        """Note that these nodes have new values."""
        told, news, number = self.of["changed"], self.news, self._next
        for slot in slots:
            if slot in told:
                news[slot] = number

    def add(self, observer: Attached) -> None:
        """Enter a new observer into the tables, and number it."""
        slot = observer.var._slot
        observer.number = self._next
        self._next += 1
        self._count += 1
        self.of[observer.kind].setdefault(slot, {})[observer] = None
        if observer.kind != "removed":
            self.observed[slot] = self.observed.get(slot, 0) + 1

    def discard(self, observer: Attached) -> None:
        """Take an observer out of the tables."""
        slot, table = observer.var._slot, self.of[observer.kind]
        del table[slot][observer]
        self._count -= 1
        if not table[slot]:
            del table[slot]
            if observer.kind == "changed":
                self.news.pop(slot, None)
        if observer.kind != "removed":
            self.observed[slot] -= 1
            if not self.observed[slot]:
                del self.observed[slot]
