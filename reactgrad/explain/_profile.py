"""Time and memory that a block took, by op or by node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ContextDecorator, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Self, get_args
from weakref import WeakKeyDictionary

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import GraphError, ParameterError
from reactgrad.core._core import Core
from reactgrad.explain._calls import Seen
from reactgrad.explain._record import Watcher
from reactgrad.explain._stats import bytes_text
from reactgrad.explain._trace_file import write_trace
from reactgrad.reading._blocks import Block, close_block, is_open
from reactgrad.scheduler import block, safe_repr, unwatch, watch

By = Literal["op", "node"]
SortBy = Literal["self_seconds", "seconds", "bytes", "calls", "name"]


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One op, or one node, in a profile.

    Attributes
    ----------
    name, op : str
        Of a node its name and its op; of an op twice its name.
    calls : int
        The number of times that it was called.
    seconds, self_seconds : float
        With and without the nodes that were called inside: a Python function may read others.
    share : float
        Its part of the self seconds of all, from 0 to 1.
    bytes : int
        Memory of the arrays that it computed, added up over all calls; views have none.
    """

    name: str
    op: str
    calls: int
    seconds: float
    self_seconds: float
    share: float
    bytes: int


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """Rows of a profile in an order; its text is a table for a terminal.

    Attributes
    ----------
    rows : tuple of ProfileRow
    by : str
        ``"op"`` or ``"node"``.
    """

    rows: tuple[ProfileRow, ...]
    by: By

    def __str__(self) -> str:
        calls = sum(row.calls for row in self.rows)
        spent = sum(row.self_seconds for row in self.rows)
        head = (self.by, "calls", "self ms", "share", "total ms", "us a call", "bytes")
        lines = [head] + [
            (
                row.name if row.name == row.op else f"{row.name} ({row.op})",
                f"{row.calls:,}",
                f"{row.self_seconds * 1e3:.3f}",
                f"{row.share:.1%}",
                f"{row.seconds * 1e3:.3f}",
                f"{row.seconds / row.calls * 1e6:.2f}",
                bytes_text(row.bytes),
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        texts = [f"{calls:,} nodes called, {spent * 1e3:.3f} ms"]
        for name, *numbers in lines:
            cells = [text.rjust(width) for text, width in zip(numbers, widths[1:], strict=True)]
            texts.append("  ".join([name.ljust(widths[0]), *cells]))
        return "\n".join(texts)


class Profile(OwnAttributes, ContextDecorator):
    """The result of ``rg.profile``: what ran inside of its blocks, by op and by node.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> y = rg.tanh(g.input(1.0))
    >>> with rg.profile() as prof:
    ...     _ = y.value
    >>> [(row.name, row.op, row.calls) for row in prof.table(by="node").rows]
    [('y', 'tanh', 1)]
    """

    def __init__(self) -> None:
        self._seen = Seen()
        # Weak keys: a profile keeps no graph alive.
        self._watchers: WeakKeyDictionary[Core, Watcher] = WeakKeyDictionary()
        self._numbers = count()  # numbers for graphs
        self._block: _Profiling | None = None

    def __enter__(self) -> Self:
        if self._block is not None:
            raise GraphError("this profile is under way already; rg.profile() makes another one.")
        self._block = _Profiling(self)
        self._block.open()
        return self

    def __exit__(self, *exc: object) -> None:
        close_block()
        self._block = None

    def _recreate_cm(self) -> Any:
        # A decorated function that calls itself is inside of the block already.
        return nullcontext() if self._block is not None and is_open(self._block) else self

    def _watcher(self, graph: Core) -> Watcher:
        watcher = self._watchers.get(graph)
        if watcher is None:
            watcher = self._watchers[graph] = Watcher(graph, self._seen, next(self._numbers))
        return watcher

    @property
    def rows(self) -> tuple[ProfileRow, ...]:
        """The rows by op, those that took longest first."""
        return self.table().rows

    def table(self, by: By = "op", sort: SortBy = "self_seconds") -> ProfileTable:
        """Return what ran, added up.

        Parameters
        ----------
        by : "op" or "node"
            The meaning of a row. Nodes of different graphs are different rows.
        sort : "self_seconds", "seconds", "bytes", "calls" or "name"
            Largest first; names in their order.

        Returns
        -------
        ProfileTable
            Its ``rows`` are immutable, its ``str`` is for a terminal.

        Raises
        ------
        DTypeError
            For another `by` or `sort`.
        """
        for what, given, known in (("by", by, get_args(By)), ("sort", sort, get_args(SortBy))):
            if given not in known:
                raise ParameterError(
                    f"profile.table({what}={safe_repr(given):.60}): one of {', '.join(map(repr, known))}."
                )
        with self._seen.lock:
            calls, spans = tuple(self._seen.calls), tuple(self._seen.spans)
        sums: dict[tuple[int, str, str], tuple[int, float, float, int]] = {}
        for call in calls:
            key = (0, call.op, call.op)
            if by == "node":
                key = (spans[call.run].graph, call.node, call.op)
            times, seconds, own, size = sums.get(key, (0, 0.0, 0.0, 0))
            sums[key] = (
                times + 1,
                seconds + call.seconds,
                own + call.self_seconds,
                size + call.bytes,
            )
        spent = sum(own for _, _, own, _ in sums.values())
        rows = [
            ProfileRow(name, op, times, seconds, own, own / spent if spent else 0.0, size)
            for (_, name, op), (times, seconds, own, size) in sums.items()
        ]
        rows.sort(key=lambda row: row.name)
        if sort != "name":
            rows.sort(key=lambda row: getattr(row, sort), reverse=True)
        return ProfileTable(tuple(rows), by)

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace that https://ui.perfetto.dev opens; see ``Recording.to_chrome_trace``."""
        write_trace(path, self._seen)

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        state = "" if self._block is None else ", under way"
        return (
            f"<Profile: {len(self._seen.spans)} runs, {len(self._seen.calls)} nodes called{state}>"
        )


def profile() -> Profile:
    """Add up what nodes run, how long they take and what memory they compute, by op or by node.

    A context manager and a decorator, for the runs that this thread makes inside, of all graphs,
    forward and backward alike; each profile is of one thread at a time. What is clean does not run,
    so it has no row. May be entered again, and then goes on; keeps no graph alive. ``Graph.record``
    has the single calls of one graph, from all threads.

    Returns
    -------
    Profile
        ``profile.rows``, ``profile.table(by="node", sort="bytes")``, ``print(profile)``.

    Notes
    -----
    Unlike those of ``torch.profiler.profile``, the rows of a backward are those of its ops, such as
    ``multiply``: gradients are nodes like others. By node they are told apart.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> y = rg.tanh(rg.tanh(x)).sum()
    >>> with rg.profile() as prof:
    ...     for value in ([1.0, 2.0], [3.0, 4.0]):
    ...         x.set(value)
    ...         _ = y.value
    >>> [(row.name, row.calls, row.bytes) for row in prof.table(sort="calls").rows]
    [('tanh', 4, 64), ('sum', 2, 16)]

    As a decorator it adds up all calls:

    >>> prof = rg.profile()
    >>> @prof
    ... def step(value):
    ...     x.set(value)
    ...     return y.value
    >>> _ = step([5.0, 6.0]), step([7.0, 8.0])
    >>> [(row.name, row.calls) for row in prof.table(sort="calls").rows]
    [('tanh', 4), ('sum', 2)]
    """
    return Profile()


class _Profiling(Block):
    """One entered block: it listens to the scheduler while a run is under way."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._profile = profile

    @block
    def around(self, graph: Core) -> Iterator[None]:
        watcher = self._profile._watcher(graph)
        watch(graph._scheduler, watcher)
        try:
            yield
        finally:
            unwatch(graph._scheduler, watcher)
