"""An ordered log of everything that happened to a graph, written only while it is switched on."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.core._core import Core
from reactgrad.core._rows import Rows
from reactgrad.explain._event import Event, Moved
from reactgrad.nodes._site import Site, user_site
from reactgrad.scheduler import Run, Stopwatch, Timed, error_text, safe_repr, unwatch, watch

# The number of events kept where the caller names no limit.
LIMIT = 10_000


class EventLog:
    """The latest events of one graph, as a listener of its scheduler."""

    __slots__ = ("_host", "_new", "_numbers", "entries")

    def __init__(self, host: Rows, limit: int) -> None:
        # No reference to the graph: it must be released with its last user.
        self._host = host
        self.entries: deque[Event] = deque(maxlen=limit)
        self._numbers = count(1)
        # New nodes with their version; they get their names after they are built.
        self._new: list[tuple[int, int]] = []

    def limit(self, limit: int) -> None:
        """Keep at most so many events from now on."""
        if limit != self.entries.maxlen:
            self.entries = deque(self.entries, maxlen=limit)

    def snapshot(self) -> tuple[Event, ...]:
        """Return the events up to now."""
        self._admit()
        return tuple(self.entries)

    # --- as a listener -------------------------------------------------------------------------

    def happened(self, kind: Any, slot: int, before: int, after: int) -> None:
        """Record a change of a node."""
        if self._new:
            self._admit()
        if kind == "new":
            self._new.append((slot, after))
        else:
            site = None if kind == "dropped" else user_site()
            self._note(kind, slot, before, after, site)

    def ran(self, run: Run, stopwatch: Stopwatch) -> None:
        """Record a read that has ended, and each node that it called."""
        if self._new:
            self._admit()
        host, topology = self._host, self._host.scheduler.topology
        names = ", ".join(map(host.label, stopwatch.targets[:8]))
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
                text = error_text(error)
                moved = self._moved(step)
                self._note("failed", slot, now, now, None, moved=moved, error=text)
                continue
            kind: Any = states.get(slot, "ran")
            before = now - 1 if kind == "ran" else now
            moved = self._moved(step)
            self._note(kind, slot, before, now, None, moved=moved)

    def _moved(self, step: Timed) -> tuple[Moved, ...]:
        """Return the operands that had changed since the previous computation of a node."""
        if step.known is None:
            return ()
        scheduler = self._host.scheduler
        version, serial = scheduler.versions.version, scheduler.topology.serial
        return tuple(
            Moved(
                self._host.label(source), max(known, 0), version[source], serial[source], seen < 0
            )
            for source, known in dict(zip(step.sources, step.known)).items()
            if serial[source] and (seen := scheduler.seen(source)) != known
        )

    def _admit(self) -> None:
        """Record the new nodes, now that they are built and have names."""
        new, self._new = self._new, []
        host = self._host
        for slot, version in new:
            self._note("new", slot, 0, version, host.sites[slot])

    def _note(
        self, kind: Any, slot: int, before: int, after: int, site: Site | None, **more: Any
    ) -> None:
        """Add an event of a node."""
        host = self._host
        serial = host.scheduler.topology.serial[slot]
        self.entries.append(
            Event(
                next(self._numbers),
                kind,
                host.label(slot),
                before,
                after,
                serial=serial,
                _site=site,
                **more,
            )
        )


def switch_events(graph: Core, on: bool | int) -> None:
    """Begin, limit or end the log of a graph; see ``Graph.events``."""
    if not isinstance(on, int) or on < 0:
        raise ParameterError(
            f"g.events = {safe_repr(on):.60}: write True, the number of events to keep, or False."
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


def events_of(graph: Core) -> tuple[Event, ...] | None:
    """Return the log of a graph up to now; ``None`` while it is off."""
    with graph._lock:
        return None if graph._events is None else graph._events.snapshot()
