"""News that a graph has changed, and what its latest runs did, for a page that shows it live.

It costs nothing without a follower: a follower is one more listener of the scheduler, as a
recording is. It keeps no node, no value, and only the latest runs.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

from reactgrad.core._core import Core
from reactgrad.explain._snapshot import RunSnapshot, numbers, snapshot_of_run
from reactgrad.scheduler import Run, Stopwatch, unwatch, watch

MOST_RUNS = 200
EDITS = frozenset(("new", "edit", "rollback", "dropped", "pin", "unpin"))


class Follower:
    """Gets news of everything that happens to one graph until it is closed.

    Parameters
    ----------
    graph
        The graph; not kept alive.
    changed
        Called after each change and each run, with true if nodes or edges may have changed, in the
        thread that made it and with the graph's lock held: it may do no more than wake another
        thread.
    """

    def __init__(self, graph: Core, changed: Callable[[bool], None]) -> None:
        self._graph = weakref.ref(graph)
        self._changed = changed
        self._runs: deque[RunSnapshot] = deque(maxlen=MOST_RUNS)
        with graph._lock:
            watch(graph._scheduler, self)

    def take(self) -> list[RunSnapshot]:
        """Return the latest runs since the last call, oldest first."""
        runs: list[RunSnapshot] = []
        while self._runs:
            runs.append(self._runs.popleft())
        return runs

    def close(self) -> None:
        """Get no news any more."""
        graph = self._graph()
        if graph is not None:
            with graph._lock:
                unwatch(graph._scheduler, self)

    # --- as a listener ---------------------------------------------------------------------------

    def happened(self, kind: object, slot: int, before: int, after: int) -> None:
        """Report that a node was set, touched, edited, made or dropped."""
        self._changed(kind in EDITS)

    def ran(self, run: Run, stopwatch: Stopwatch) -> None:
        """Record a read that has ended, and report it."""
        graph = self._graph()
        if graph is None:
            return
        times = [(step.slot, step.ended - step.began) for step in stopwatch.steps]
        record = snapshot_of_run(graph, run, times)
        self._runs.append(record)
        number, ended = numbers(graph), {*record.ran}
        calls = [call for call in times if number(call[0]) in ended]
        graph._measured.add(calls, graph._scheduler.topology.serial)
        self._changed(False)
