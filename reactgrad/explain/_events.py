"""An ordered log of what happened to a graph, written only while someone wants it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, get_args

from reactgrad._errors import DTypeError
from reactgrad.nodes._site import Site, site_text, user_site
from reactgrad.scheduler import Run, Stopwatch, Timed, unwatch, watch

if TYPE_CHECKING:
    from reactgrad.core._rows import Host
    from reactgrad.graph._graph import Graph

Kind = Literal[
    "new",
    "set",
    "touch",
    "pin",
    "unpin",
    "edit",
    "rollback",
    "dropped",
    "run",
    "ran",
    "cut_off",
    "rebuilt",
    "failed",
]
KINDS: tuple[str, ...] = get_args(Kind)

# Events kept where the caller names no limit.
LIMIT = 10_000

_WORDS = {
    "touch": "touched",
    "pin": "pinned",
    "unpin": "unpinned",
    "edit": "edited",
    "rollback": "given back by a transaction that failed",
    "run": "read",
}


@dataclass(frozen=True, slots=True)
class Moved:
    """An operand whose version differed from the one that a node had been computed from.

    Attributes
    ----------
    node : str
        Name of the operand.
    before, after : int
        Its versions at the previous and at this computation; `before` is 0 if it had raised.
    serial : int
        The number of the operand's creation, never used again.
    raised : bool
        Whether it has raised, so that this computation saw its error.
    """

    node: str
    before: int
    after: int
    serial: int = field(repr=False)
    raised: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a graph; see ``Graph.events``.

    Attributes
    ----------
    number : int
        Grows by one with every event of the graph, also with those that the limit drops.
    kind : str
        ``"new"``, ``"set"``, ``"touch"``, ``"pin"``, ``"unpin"``, ``"edit"``, ``"dropped"``,
        ``"rollback"`` (a transaction that failed has given it back); for a read ``"run"``, followed by
        ``"ran"``, ``"cut_off"``, ``"rebuilt"`` or ``"failed"`` for each node that was called, in order.
    node : str
        Name of the node at that time; of a run, the names of what was read.
    before, after : int
        Value version of the node; of a run 0.
    moved : tuple of Moved
        Of a node that was called: its operands that had changed since its previous computation.
    error : str
        Of a failed node: what it raised.
    retry : bool
        Of a run: whether nodes that had raised were to run again.
    serial : int
        The number of the node's creation, never used again; of a run 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> g.events = True
    >>> x.set(2.0)
    >>> print(g.events[0])
    1. x set: version 1 -> 2 (<doctest ...>:1: x.set(2.0))
    """

    number: int
    kind: Kind
    node: str
    before: int = 0
    after: int = 0
    moved: tuple[Moved, ...] = ()
    error: str = ""
    retry: bool = False
    serial: int = field(default=0, repr=False)
    _site: Site | None = field(default=None, repr=False, compare=False)

    @property
    def line(self) -> str | None:
        """File, line number and text of the user's line that did it; ``None`` where none did."""
        return None if self._site is None else site_text(self._site)

    def __str__(self) -> str:
        text = f"{self.number}. {self.node} {_WORDS.get(self.kind, self.kind).replace('_', ' ')}"
        if self.after != self.before:
            text += f": version {self.before} -> {self.after}"
        if self.error:
            text += f": {self.error}"
        return text + (f" ({self.line})" if self._site is not None else "")


class EventLog:
    """The latest events of one graph, as a listener of its scheduler."""

    __slots__ = ("_host", "_new", "_numbers", "entries")

    def __init__(self, host: Host, limit: int) -> None:
        # The graph itself is not referred to: it shall go when its last user lets go of it.
        self._host = host
        self.entries: deque[Event] = deque(maxlen=limit)
        self._numbers = count(1)
        self._new: list[tuple[int, int]] = []  # new nodes, with their version; named when built

    def limit(self, limit: int) -> None:
        """Keep so many events from now on."""
        if limit != self.entries.maxlen:
            self.entries = deque(self.entries, maxlen=limit)

    def snapshot(self) -> tuple[Event, ...]:
        """The events up to now."""
        self._admit()
        return tuple(self.entries)

    # --- as a listener -------------------------------------------------------------------------

    def happened(self, kind: Any, slot: int, before: int, after: int) -> None:
        """A node changed."""
        if self._new:
            self._admit()
        if kind == "new":
            self._new.append((slot, after))
        else:
            site = None if kind == "dropped" else user_site()
            self._note(kind, slot, before, after, site)

    def ran(self, run: Run, stopwatch: Stopwatch) -> None:
        """A read ended."""
        if self._new:
            self._admit()
        host, topology = self._host, self._host.scheduler.topology
        names = ", ".join(map(host.name, stopwatch.targets[:8]))
        more = len(stopwatch.targets) - 8
        names += f", ... {more} more" if more > 0 else ""
        self.entries.append(
            Event(next(self._numbers), "run", names, retry=stopwatch.retry, _site=user_site())
        )
        version = host.scheduler.versions.version
        states = dict.fromkeys(run.cut_off, "cut_off")
        states |= dict.fromkeys(run.rebuilt, "rebuilt")
        errors = dict(zip(run.failed, run.errors, strict=True))
        for step in stopwatch.steps:
            slot = step.slot
            # A node that was interrupted is in no list; one that was dropped since has no name.
            if topology.serial[slot] != run.serials.get(slot):
                continue
            now = version[slot]
            error = errors.get(slot)
            if error is not None:
                text = f"{type(error).__name__}: {error}"
                moved = self._moved(step)
                self._note("failed", slot, now, now, None, moved=moved, error=text)
                continue
            kind: Any = states.get(slot, "ran")
            before = now - 1 if kind == "ran" else now
            moved = self._moved(step)
            self._note(kind, slot, before, now, None, moved=moved)

    def _moved(self, step: Timed) -> tuple[Moved, ...]:
        if step.known is None:
            return ()
        scheduler = self._host.scheduler
        version, serial = scheduler.versions.version, scheduler.topology.serial
        return tuple(
            Moved(self._host.name(source), max(known, 0), version[source], serial[source], seen < 0)
            for source, known in dict(zip(step.sources, step.known)).items()
            if serial[source] and (seen := scheduler.seen(source)) != known
        )

    def _admit(self) -> None:
        new, self._new = self._new, []
        host = self._host
        for slot, version in new:
            self._note("new", slot, 0, version, host.sites[slot])

    def _note(
        self, kind: Any, slot: int, before: int, after: int, site: Site | None, **more: Any
    ) -> None:
        host = self._host
        serial = host.scheduler.topology.serial[slot]
        self.entries.append(
            Event(
                next(self._numbers),
                kind,
                host.name(slot),
                before,
                after,
                serial=serial,
                _site=site,
                **more,
            )
        )


def switch_events(graph: Graph, on: bool | int) -> None:
    """Begin, limit or end the log of a graph; see ``Graph.events``."""
    if not isinstance(on, int) or on < 0:
        raise DTypeError(
            f"g.events = {on!r:.60}: write True, the number of events to keep, or False."
        )
    with graph._lock:
        log = graph._events
        if not on:
            if log is not None:
                unwatch(graph._scheduler, log)
            graph._events = None
        elif log is None:
            log = EventLog(graph._host, LIMIT if on is True else on)
            watch(graph._scheduler, log)
            graph._events = log
        else:
            log.limit(LIMIT if on is True else on)


def events_of(graph: Graph) -> tuple[Event, ...] | None:
    """The log of a graph up to now; ``None`` while it is off."""
    with graph._lock:
        return None if graph._events is None else graph._events.snapshot()
