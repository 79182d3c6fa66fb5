"""Every run of a block, node by node: what was called, when, and for how long."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from reactgrad._errors import GraphError
from reactgrad._run import Run
from reactgrad.scheduler import Run as RawRun
from reactgrad.scheduler import Stopwatch, unwatch, watch

if TYPE_CHECKING:
    from reactgrad._graph import Graph
    from reactgrad._host import Host

Outcome = Literal["ran", "cut_off", "rebuilt", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One call of one node, as a recording saw it.

    Attributes
    ----------
    run : int
        Position of the run in ``log.runs``.
    node, op : str
        Names of the node and of what it computes.
    outcome : str
        ``"ran"``, ``"cut_off"``, ``"rebuilt"``, ``"failed"`` or ``"interrupted"``.
    began : float
        Seconds since the recording began.
    seconds : float
        Duration; what a Python function read while it ran is part of its own. A view takes none.
    version : int
        Value version afterwards.
    shape : str
        dtype and shape of the result, such as ``float64[2, 3]``.
    operands : tuple of str
        dtypes and shapes of the operands.
    """

    run: int
    node: str
    op: str
    outcome: Outcome
    began: float
    seconds: float
    version: int
    shape: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpTime:
    """Calls of one op and the seconds they took together."""

    op: str
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Span:
    """A run as a whole: for the trace."""

    title: str
    began: float
    seconds: float
    thread: int


class _Seen:
    """What a recording has seen, as a listener of the scheduler."""

    __slots__ = ("_graph", "_zero", "calls", "runs", "spans", "threads")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._zero = perf_counter()
        self.runs: list[Run] = []
        self.calls: list[NodeRun] = []
        self.spans: list[_Span] = []
        self.threads: dict[int, str] = {}

    def happened(self, kind: object, slot: int, before: int, after: int) -> None:
        """Sets and edits are the business of ``Graph.events``."""

    def ran(self, run: RawRun, stopwatch: Stopwatch) -> None:
        """A read ended."""
        host, topology = self._graph._host, self._graph._scheduler.topology
        version, measured = self._graph._scheduler.versions.version, self._graph._measured
        zero = self._zero
        number = len(self.runs)
        cut_off, rebuilt, failed = set(run.cut_off), set(run.rebuilt), set(run.failed)
        for step in stopwatch.steps:
            slot = step.slot
            if host.ops[slot] is None:  # dropped since: it was only read by nodes of this run
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
                measured.add(slot, topology.serial[slot], seconds)
            self.calls.append(
                NodeRun(
                    number,
                    host.name(slot),
                    host.ops[slot].name,
                    outcome,
                    step.began - zero,
                    seconds,
                    version[slot],
                    host.describe_value(slot),
                    tuple(map(host.describe_value, topology.parents[slot])),
                )
            )
        thread = threading.current_thread()
        ident = thread.ident or 0
        self.threads[ident] = thread.name
        title = f"run {number}: {_names(host, stopwatch.targets)}"
        self.spans.append(
            _Span(title, stopwatch.began - zero, stopwatch.ended - stopwatch.began, ident)
        )
        self.runs.append(Run(self._graph, run))


class Recording:
    """What ``Graph.record`` returns: the runs of a ``with`` block, node by node.

    May be entered again when the block has ended, and then goes on. Recordings may be nested, and
    run in several threads: each sees every run of the graph between its own begin and end. It
    keeps the graph alive, but no node.

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

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._listening = False
        self._seen: _Seen | None = None

    def __enter__(self) -> Recording:
        with self._graph._lock:
            if self._listening:
                raise GraphError(
                    "this recording is under way already; g.record() makes another one."
                )
            if self._seen is None:
                self._seen = _Seen(self._graph)
            self._listening = True
            watch(self._graph._scheduler, self._seen)
        return self

    def __exit__(self, *exc: object) -> None:
        with self._graph._lock:
            if self._seen is not None:
                unwatch(self._graph._scheduler, self._seen)
            self._listening = False

    # --- what was seen -------------------------------------------------------------------------

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs, in the order in which they ended; a read inside a node ends before its own."""
        with self._graph._lock:
            return () if self._seen is None else tuple(self._seen.runs)

    @property
    def calls(self) -> tuple[NodeRun, ...]:
        """The nodes that were called, run by run."""
        with self._graph._lock:
            return () if self._seen is None else tuple(self._seen.calls)

    def table(self) -> tuple[OpTime, ...]:
        """Calls and seconds of each op, the slowest first.

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
        with self._graph._lock:
            seen = self._seen or _Seen(self._graph)
            calls, spans, threads = tuple(seen.calls), tuple(seen.spans), dict(seen.threads)
        process = os.getpid()
        named: list[dict[str, Any]] = [
            _metadata("process_name", "reactgrad", process, 0),
            *[_metadata("thread_name", name, process, tid) for tid, name in threads.items()],
        ]
        slices: list[dict[str, Any]] = [
            _slice(span.title, "run", span.began, span.seconds, process, span.thread, {})
            for span in spans
        ]
        for call in calls:
            args = {
                "op": call.op,
                "outcome": call.outcome,
                "version": call.version,
                "shape": call.shape,
                "operands": list(call.operands),
                "run": call.run,
            }
            thread = spans[call.run].thread
            slices.append(
                _slice(call.node, call.op, call.began, call.seconds, process, thread, args)
            )
        # Outer slices before those inside of them, as viewers nest them.
        slices.sort(key=lambda one: (one["ts"], -one["dur"]))
        write_whole(path, json.dumps({"traceEvents": [*named, *slices], "displayTimeUnit": "ms"}))

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


class Measured:
    """How long nodes took while someone recorded them: count and sum, for ``Plan.cost``."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[int, tuple[int, int, float]] = {}  # by slot: serial, calls, seconds

    def add(self, slot: int, serial: int, seconds: float) -> None:
        """One more call of a node."""
        known = self._times.get(slot)
        if known is not None and known[0] == serial:
            self._times[slot] = (serial, known[1] + 1, known[2] + seconds)
        else:  # another node may have had this slot
            self._times[slot] = (serial, 1, seconds)

    def mean(self, slot: int, serial: int) -> float | None:
        """Mean seconds of a node; ``None`` if it was never recorded."""
        known = self._times.get(slot)
        return None if known is None or known[0] != serial else known[2] / known[1]


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file that appears whole or not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _names(host: Host, slots: tuple[int, ...], most: int = 8) -> str:
    names = [host.name(slot) for slot in slots[:most] if host.ops[slot] is not None]
    return ", ".join(names) + (f", ... {len(slots) - most} more" if len(slots) > most else "")


def _slice(
    name: str,
    kind: str,
    began: float,
    seconds: float,
    process: int,
    thread: int,
    args: dict[str, Any],
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": began * 1e6,
        "dur": seconds * 1e6,
        "pid": process,
        "tid": thread,
        "args": args,
    }


def _metadata(what: str, name: str, process: int, thread: int) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
