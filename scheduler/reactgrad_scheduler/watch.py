"""Hearing of all that happens to the nodes of a scheduler, at no cost while nobody listens.

A scheduler that is listened to is of another class, ``Watched``, whose methods tell the listeners
what the plain ones did. ``watch`` and ``unwatch`` change the class of the instance; one that
nobody listens to runs no instruction more than if this file did not exist.

Invariant: a ``Watched`` scheduler leaves the same values, versions, marks and runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Literal, Protocol, cast

from reactgrad_scheduler.edit import Former
from reactgrad_scheduler.executors.stopwatch import Stopwatch
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.scheduler import Scheduler
from reactgrad_scheduler.tables import UNKNOWN
from reactgrad_scheduler.versions import Leaves

# What may happen to one node; "touch": someone says that it changed; "rollback": a transaction that
# failed has given it back.
Happening = Literal["new", "set", "touch", "pin", "unpin", "edit", "rollback", "dropped"]


class Listener(Protocol):
    """Who wants to know what happens. Called with the lock held; must not change the graph."""

    def happened(self, kind: Happening, slot: int, before: int, after: int) -> None:
        """Something happened to a node, whose version went from `before` to `after`.

        A ``"new"`` node is not yet known to the host, a ``"dropped"`` one still is.
        """
        ...

    def ran(self, run: Run, stopwatch: Stopwatch) -> None:
        """A read ended, and the tables show it; reads that its nodes made are part of it."""
        ...


class Watched(Scheduler):
    """A scheduler that tells what happens."""

    listeners: tuple[Listener, ...] = ()
    _saying: Happening | None = None  # what the methods called by the present one are part of

    def _tell(self, kind: Happening, slot: int, before: int, after: int) -> None:
        for listener in self.listeners:
            listener.happened(kind, slot, before, after)

    def _act(self, kind: Happening) -> Happening:
        """What a change is, whether somebody makes it or takes it back."""
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
        """The nodes that ``release`` is about to free."""
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
            left[slot] = -1  # never again
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

    def refresh(self, targets: tuple[int, ...], retry: bool = False) -> Run:
        outer, former = self.stopwatch, self.last_run
        # What nodes were computed from is looked up before they run.
        self.versions.settle()
        stopwatch = self.stopwatch = Stopwatch(targets, retry)
        run: Run | None = None
        try:
            # By name: a node may end the watching while it runs.
            run = Scheduler.refresh(self, targets, retry)
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
    """Let `listener` hear of everything from now on."""
    if not isinstance(scheduler, Watched):
        _become(scheduler, Watched)
        assert isinstance(scheduler, Watched)
    scheduler.listeners = (*scheduler.listeners, listener)


def unwatch(scheduler: Scheduler, listener: Listener) -> None:
    """Let `listener` hear of nothing any more."""
    if isinstance(scheduler, Watched):
        scheduler.listeners = tuple(one for one in scheduler.listeners if one is not listener)
        if not scheduler.listeners:
            _become(scheduler, Scheduler)


def at_work(scheduler: Scheduler) -> list[int]:
    """Slots of the nodes that are being computed, for another thread, which does not wait for the lock.

    A moment later it may be others.
    """
    found = [slot for slot in [*scheduler.computing] if slot != UNKNOWN]
    crew = scheduler.lock.crew
    if crew is not None:
        found += crew.others()
    for frame in [*scheduler.frames][-1:]:  # nodes that no table knows
        found += frame.at_work()
    return list(dict.fromkeys(found))


def _become(scheduler: Scheduler, kind: type[Scheduler]) -> None:
    scheduler.__class__ = kind
