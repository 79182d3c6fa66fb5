"""Every run of a block, node by node: the nodes that were called, when, and for how long."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import GraphError
from reactgrad.backend import storage_shape
from reactgrad.explain._calls import NodeRun, Outcome, Seen, Span
from reactgrad.explain._snapshot import snapshot
from reactgrad.explain._trace_file import write_trace
from reactgrad.reading._run import Run
from reactgrad.scheduler import Run as RawRun
from reactgrad.scheduler import Stopwatch, Timed, unwatch, watch
from reactgrad.values._columns import MISSING
from reactgrad.values._ledger import memory_of

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.core._rows import Rows
    from reactgrad.explain._snapshot import RunSnapshot, Snapshot


@dataclass(frozen=True, slots=True)
class OpTime:
    """Calls of one op and the seconds they took together."""

    op: str
    calls: int
    seconds: float


class Watcher:
    """Sees the runs of one graph, as a listener of its scheduler.

    Parameters
    ----------
    seen
        Receives what it sees.
    number
        The number of the graph among those that are seen.
    """

    __slots__ = ("_graph", "_number", "_seen")

    def __init__(self, graph: Core, seen: Seen, number: int = 0) -> None:
        self._graph = weakref.ref(graph)
        self._seen = seen
        self._number = number

    def happened(self, kind: object, slot: int, before: int, after: int) -> None:
        """Ignore sets and edits: they are for ``Graph.events``."""

    def ran(self, run: RawRun, stopwatch: Stopwatch) -> None:
        """Record a read that has ended."""
        graph, seen = self._graph(), self._seen
        if graph is not None:
            with seen.lock:
                self._add(graph, run, stopwatch, seen)

    def _add(self, graph: Core, run: RawRun, stopwatch: Stopwatch, seen: Seen) -> None:
        """Record the calls of a run, and the run as a whole."""
        host, topology = graph._host, graph._scheduler.topology
        version, measured = graph._scheduler.versions.version, graph._measured
        zero, number = seen.zero, len(seen.spans)
        cut_off, rebuilt, failed = set(run.cut_off), set(run.rebuilt), set(run.failed)
        inside = _inside(stopwatch.steps)
        for step, spent in zip(stopwatch.steps, inside, strict=True):
            slot = step.slot
            if host.ops[slot] is None:  # dropped since: only nodes of this run had read it
                continue
            outcome: Outcome = "ran"
            if slot in failed:
                outcome = "failed"
            elif slot in rebuilt:
                outcome = "rebuilt"
            elif slot in cut_off:
                outcome = "cut_off"
            elif run.serials.get(slot) != topology.serial[slot]:
                outcome = "interrupted"
            seconds = step.ended - step.began
            if outcome in ("ran", "cut_off"):
                measured.add([(slot, seconds)], topology.serial)
            seen.calls.append(
                NodeRun(
                    number,
                    host.label(slot),
                    host.ops[slot].name,
                    outcome,
                    step.began - zero,
                    seconds,
                    version[slot],
                    host.describe_value(slot),
                    tuple(map(host.describe_value, topology.parents[slot])),
                    seconds - spent,
                    _bytes(host, slot),
                )
            )
        thread = threading.current_thread()
        ident = thread.ident or 0
        seen.threads[ident] = thread.name
        title = f"run {number}: {_names(host, stopwatch.targets)}"
        began = stopwatch.began - zero
        seen.spans.append(
            Span(title, began, stopwatch.ended - stopwatch.began, ident, self._number)
        )


class _Recorder(Watcher):
    """A watcher that also keeps the runs, and with them the graph.

    It takes snapshots if it was given a first one.
    """

    __slots__ = ("run_snapshots", "runs", "snapshots")

    def __init__(self, graph: Core, seen: Seen, first: Snapshot | None) -> None:
        super().__init__(graph, seen)
        self.runs: list[Run] = []
        self.run_snapshots: list[RunSnapshot] = []
        self.snapshots: list[Snapshot] = [] if first is None else [first]

    def _add(self, graph: Core, run: RawRun, stopwatch: Stopwatch, seen: Seen) -> None:
        super()._add(graph, run, stopwatch, seen)
        self.runs.append(Run(graph, run))
        if self.snapshots:
            from reactgrad.explain._snapshot import snapshot, snapshot_of_run

            times = [(step.slot, step.ended - step.began) for step in stopwatch.steps]
            self.run_snapshots.append(snapshot_of_run(graph, run, times))
            self.snapshots.append(snapshot(graph, run, values=True))


def _bytes(host: Rows, slot: int) -> int:
    """Return the memory of the value that a node has computed, also where it was released since."""
    value, found = host.data[slot], host.specs[slot]
    if value is not MISSING:
        return 0 if slot in host._view_of else getattr(memory_of(value), "nbytes", 0)
    if found is None or not found.known or getattr(host.ops[slot], "view", None) is not None:
        return 0
    return math.prod(storage_shape(found)) * found.dtype.itemsize


def _inside(steps: Sequence[Timed]) -> list[float]:
    """Return for each call, in the order in which they ended, the seconds of the calls inside of
    it.
    """
    inside: list[float] = []
    open_calls: list[tuple[float, float]] = []  # began, seconds; not yet inside of another call
    for step in steps:
        spent = 0.0
        # A call that began later and ended before lies inside of this one.
        while open_calls and open_calls[-1][0] >= step.began:
            spent += open_calls.pop()[1]
        open_calls.append((step.began, step.ended - step.began))
        inside.append(spent)
    return inside


class Recording(OwnAttributes):
    """The result of ``Graph.record``: the runs of a ``with`` block, node by node.

    May be entered again when the block has ended, and then goes on. Recordings may be nested, and
    run in several threads: each sees every run of the graph between its own begin and end. It keeps
    the graph alive, but no node.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = rg.tanh(x) + 1.0
    >>> with g.record() as log:
    ...     run = g.forward(y)
    >>> [(call.op, call.outcome) for call in log.calls]
    [('tanh', 'ran'), ('add', 'ran')]
    >>> len(log.runs)
    1
    """

    def __init__(self, graph: Core, snapshots: bool = False) -> None:
        self._graph = graph
        self._snapshots = snapshots
        self._listening = False
        self._recorder: _Recorder | None = None

    def __enter__(self) -> Recording:
        with self._graph._lock:
            if self._listening:
                raise GraphError(
                    "this recording is under way already; g.record() makes another one."
                )
            if self._recorder is None:
                first = snapshot(self._graph, None, True) if self._snapshots else None
                self._recorder = _Recorder(self._graph, Seen(), first)
            self._listening = True
            watch(self._graph._scheduler, self._recorder)
        return self

    def __exit__(self, *exc: object) -> None:
        with self._graph._lock:
            if self._recorder is not None:
                unwatch(self._graph._scheduler, self._recorder)
            self._listening = False

    # --- what was seen -------------------------------------------------------------------------

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs in the order in which they ended.

        A read inside of a node ends before the run around it.
        """
        with self._graph._lock:
            return () if self._recorder is None else tuple(self._recorder.runs)

    @property
    def calls(self) -> tuple[NodeRun, ...]:
        """The nodes that were called, run by run."""
        with self._graph._lock:
            return () if self._recorder is None else tuple(self._recorder._seen.calls)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The graph when the recording began and after each run, if ``record(snapshots=True)``."""
        with self._graph._lock:
            return () if self._recorder is None else tuple(self._recorder.snapshots)

    @property
    def run_snapshots(self) -> tuple[RunSnapshot, ...]:
        """The record of each run, by the keys of the snapshots, if ``record(snapshots=True)``."""
        with self._graph._lock:
            return () if self._recorder is None else tuple(self._recorder.run_snapshots)

    def table(self) -> tuple[OpTime, ...]:
        """Return calls and seconds of each op, the slowest first.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(rg.tanh(g.input(1.0)))
        >>> with g.record() as log:
        ...     run = g.forward(y)
        >>> [(row.op, row.calls) for row in log.table()]
        [('tanh', 2)]
        """
        sums: dict[str, tuple[int, float]] = {}
        for call in self.calls:
            calls, seconds = sums.get(call.op, (0, 0.0))
            sums[call.op] = (calls + 1, seconds + call.seconds)
        rows = [OpTime(op, calls, seconds) for op, (calls, seconds) in sums.items()]
        return tuple(sorted(rows, key=lambda row: (-row.seconds, row.op)))

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing open.

        Each run is a slice, with a slice for each node it called inside of it. The file appears
        whole or not at all.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced.

        Raises
        ------
        OSError
            If it cannot be written; an existing file is as it was then.

        Notes
        -----
        Format: complete events ("ph": "X") of the Trace Event Format (Google, 2016); ``ts`` and
        ``dur`` in microseconds.
        """
        write_trace(path, Seen() if self._recorder is None else self._recorder._seen)

    def __str__(self) -> str:
        rows = self.table()
        width = max((len(row.op) for row in rows), default=2)
        calls, seconds = sum(row.calls for row in rows), sum(row.seconds for row in rows)
        lines = [f"{len(self.runs)} runs, {calls} nodes called, {seconds * 1e3:.3f} ms"]
        if rows:
            lines.append(f"{'op':<{width}} {'calls':>8} {'ms':>12} {'us a call':>12}")
        lines += [
            f"{row.op:<{width}} {row.calls:>8} {row.seconds * 1e3:>12.3f} "
            f"{row.seconds / row.calls * 1e6:>12.2f}"
            for row in rows
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        state = ", under way" if self._listening else ""
        return f"<Recording: {len(self.runs)} runs, {len(self.calls)} nodes called{state}>"


def _names(host: Rows, slots: tuple[int, ...], most: int = 8) -> str:
    names = [host.label(slot) for slot in slots[:most] if host.ops[slot] is not None]
    return ", ".join(names) + (f", ... {len(slots) - most} more" if len(slots) > most else "")
