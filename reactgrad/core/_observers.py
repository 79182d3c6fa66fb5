"""Who observes which node, and what there is to tell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from reactgrad.nodes._handle import Handle

KINDS = ("changed", "stale", "error", "removed")

# A leaf and the value it is to get; what one ``set``, or one transaction, asks for stays together.
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
        """Whether the observer was not cancelled, nor its node removed."""
        ...

    def call(self, *arguments: Any) -> None:
        """Call the callback, and name the node in what it raises."""
        ...

    def blame(self, error: Exception) -> None:
        """Note on `error` whose doing it is."""
        ...


Calls = list[tuple[Attached, tuple[Any, ...]]]


class Observers:
    """The observers of one graph, and what they have still to be told.

    Attributes
    ----------
    of
        By kind and slot, in order of attachment.
    observed
        How many observers a node has that ``stabilize`` brings it up to date for: of any kind but
        ``"removed"``. Empty: nothing that happens to the graph looks at observers.
    news
        Nodes with a value that observers have not been told of: those with smaller numbers.
    failed
        Nodes that raised in a run, or were found to have raised before.
    gone
        Observers of kind ``"removed"`` whose node was removed.
    ran
        Whether a run ended of which observers have not been told yet.
    queue
        Sets that observers asked for, to be made when all have been called.
    calls
        Whom the round under way has still to call, and with what, the first one last; what an
        interrupted round leaves is told before anything else.
    calling
        The observer that is being called.
    held
        Who holds back the observers: they are called when the last one lets go.
    stirred
        Whether anything was changed since the present pass of ``stabilize`` began.
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
        """Whether an observer is attached."""
        return observer in self.of[observer.kind].get(observer.var._slot, ())

    def at(self, slot: int) -> list[Attached]:
        """The observers of a node, of any kind."""
        return [observer for kind in KINDS for observer in self.of[kind].get(slot, ())]

    def note(self, slots: Iterable[int]) -> None:
        """These nodes have new values."""
        told, news, number = self.of["changed"], self.news, self._next
        for slot in slots:
            if slot in told:
                news[slot] = number

    def join(self, start: int) -> None:
        """Make one of the sets that were queued from this one on: all of them, or none."""
        if len(self.queue) > start:
            observer = self.queue[start][0]
            self.queue[start:] = [
                (observer, [one for _, sets in self.queue[start:] for one in sets])
            ]

    def add(self, observer: Attached) -> None:
        """Make the entries of a new observer."""
        slot = observer.var._slot
        observer.number = self._next
        self._next += 1
        self._count += 1
        self.of[observer.kind].setdefault(slot, {})[observer] = None
        if observer.kind != "removed":
            self.observed[slot] = self.observed.get(slot, 0) + 1

    def discard(self, observer: Attached) -> None:
        """Clear the entries of an observer."""
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
