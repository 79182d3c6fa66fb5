"""Listeners for all that happens to the nodes of a scheduler, at no cost while there are none.

A scheduler with listeners has another class, ``Watched``, whose methods call the listeners. ``watch`` and
``unwatch`` change the class of the instance, so that a scheduler without listeners runs exactly the code
that it would run if this file did not exist.

Invariant: a ``Watched`` scheduler leaves the same values, versions, marks and runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Literal, Protocol, cast

from reactgrad_scheduler.edit import Former
from reactgrad_scheduler.executors.stopwatch import Stopwatch
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.scheduler import Repeat, Scheduler
from reactgrad_scheduler.tables import UNKNOWN
from reactgrad_scheduler.versions import Leaves

# Kinds of events of a node. "touch": the user declares that it changed. "rollback": a failed transaction
# has given back its former state.
Happening = Literal["new", "set", "touch", "pin", "unpin", "edit", "rollback", "dropped"]


class Listener(Protocol):
    """The interface of a listener. It is called with the lock held, and must not change the graph."""

    def happened(self, kind: Happening, slot: int, before: int, after: int) -> None:
        """Note an event of a node whose version went from ``before`` to ``after``.

        The host does not know a ``"new"`` node yet, and still knows a ``"dropped"`` one.
        """
        ...

    def ran(self, run: Run, stopwatch: Stopwatch) -> None:
        """Note a finished read, which the tables show; reads inside of its nodes are part of it."""
        ...


class Watched(Scheduler):
    """A scheduler that calls listeners."""

    listeners: tuple[Listener, ...] = ()
    _saying: Happening | None = None  # the kind of event that the method under way is a part of

    def _tell(self, kind: Happening, slot: int, before: int, after: int) -> None:
        for listener in self.listeners:
            listener.happened(kind, slot, before, after)

    def _act(self, kind: Happening) -> Happening:
        """Return the kind of a change: the given one, or ``"rollback"`` if it is being taken back."""
        return "rollback" if self.notes.giving_back else kind

    def add(self, parents: tuple[int, ...], *, leaf: bool = False, valued: bool = False) -> int:
        slot = super().add(parents, leaf=leaf, valued=valued)
        self._tell("new", slot, 0, int(valued))
        return slot

    def release(self, slots: Iterable[int]) -> None:
        slots = list(slots)
        if not self.computing:
            for slot in self._doomed([*self.orphans, *slots]):
                version = self.version(slot)
                self._tell("dropped", slot, version, version)
        super().release(slots)

    def _doomed(self, slots: Iterable[int]) -> list[int]:
        """Return the nodes that ``release`` is about to free."""
        topology = self.topology
        left: dict[int, int] = {}  # consumers that stay
        doomed: list[int] = []
        stack = list(dict.fromkeys(slots))
        while stack:
            slot = stack.pop()
            if not topology.serial[slot]:
                continue
            if left.setdefault(slot, len(topology.children[slot])) or self.host.holds(slot):
                continue
            left[slot] = -1  # so that it is not found again
            doomed.append(slot)
            for parent in dict.fromkeys(topology.parents[slot]):
                left[parent] = left.get(parent, len(topology.children[parent])) - 1
                stack.append(parent)
        return doomed

    def changed(self, leaf: int) -> None:
        self.changed_together((leaf,))

    def changed_together(self, leaves: tuple[int, ...]) -> None:
        self.versions.settle()
        before = [self.versions.version[leaf] for leaf in leaves]
        super().changed_together(leaves)
        for leaf, version in zip(leaves, before, strict=True):
            kind = self._saying or ("set" if self.leaf[leaf] else "pin")
            self._tell(self._act(kind), leaf, version, version + 1)

    def changed_again(self, leaves: Leaves) -> None:
        self.changed_together(tuple(leaves.slots))

    def touched(self, leaf: int) -> None:
        self._saying = "touch"
        try:
            super().touched(leaf)
        finally:
            self._saying = None

    def invalidate(self, slot: int) -> None:
        super().invalidate(slot)
        version = self.versions.version[slot]
        self._tell("touch", slot, version, version)

    def commit(self, former: Former, kind: str | None = "edit") -> None:
        if kind is not None:
            for slot in former.rows:
                version = self.versions.version[slot]
                self._tell(self._act(cast("Happening", kind)), slot, version, version)
        super().commit(former, kind)

    def refresh(
        self, targets: tuple[int, ...], retry: bool = False, repeat: Repeat | None = None
    ) -> Run:
        outer, former = self.stopwatch, self.last_run
        # Versions and records from before the run: listeners compare with them.
        self.versions.settle()
        stopwatch = self.stopwatch = Stopwatch(targets, retry)
        run: Run | None = None
        try:
            # Not by `super()`: a node may change the class back while it runs.
            run = Scheduler.refresh(self, targets, retry, repeat)
            return run
        except BaseException:
            if self.last_run is not former:  # interrupted between nodes, or inside of one
                run = self.last_run
            raise
        finally:
            stopwatch.ended = perf_counter()
            self.stopwatch = outer
            if outer is not None:  # a read inside of a node belongs to the run of the node
                outer.steps += stopwatch.steps
            elif run is not None:
                self.versions.settle()
                for listener in self.listeners:
                    listener.ran(run, stopwatch)


def watch(scheduler: Scheduler, listener: Listener) -> None:
    """Call ``listener`` for every event from now on."""
    if not isinstance(scheduler, Watched):
        _become(scheduler, Watched)
        assert isinstance(scheduler, Watched)
    scheduler.listeners = (*scheduler.listeners, listener)


def unwatch(scheduler: Scheduler, listener: Listener) -> None:
    """Call ``listener`` no more."""
    if isinstance(scheduler, Watched):
        scheduler.listeners = tuple(one for one in scheduler.listeners if one is not listener)
        if not scheduler.listeners:
            _become(scheduler, Scheduler)


def at_work(scheduler: Scheduler) -> list[int]:
    """Return the slots of nodes that are being computed, for a thread that does not hold the lock.

    The answer may be out of date at once.
    """
    found = [slot for slot in [*scheduler.computing] if slot != UNKNOWN]
    crew = scheduler.lock.crew
    if crew is not None:
        found += crew.others()
    for frame in [*scheduler.frames][-1:]:  # nodes that only the frame knows
        found += frame.at_work()
    return list(dict.fromkeys(found))


def _become(scheduler: Scheduler, kind: type[Scheduler]) -> None:
    scheduler.__class__ = kind
