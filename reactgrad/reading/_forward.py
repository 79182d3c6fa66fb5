"""Reads that users ask for by name: ``forward``, and its end before time, ``cancel``."""

from __future__ import annotations

from typing import Any

from reactgrad.core._arguments import own_slots
from reactgrad.core._core import Core, V
from reactgrad.core._handles import tidy
from reactgrad.reading._limits import left_to_run, raise_cancelled, read_timeout, running_by, within
from reactgrad.reading._refresh import refresh
from reactgrad.reading._run import Run
from reactgrad.scheduler import Serial, Threads


def forward(
    graph: Core[V],
    /,
    *targets: V | str,
    retry: bool = False,
    timeout: float | None = None,
    executor: Serial | Threads | None = None,
) -> Run:
    """Make nodes clean, running exactly their stale ancestors.

    Parameters
    ----------
    *targets : Var or str
        Nodes of this graph, or their names; none does nothing.
    retry : bool
        Whether nodes that raised run again although their parents are unchanged; also those
        whose error a function handled that the targets need.
    timeout : float, optional
        Seconds after which no further node is begun; 0 or less: none is begun at all.
    executor : Serial or Threads, optional
        How the nodes run, for this read in place of the graph's own ``executor``. A read inside
        of a function runs as the read does that the function is part of.

    Returns
    -------
    Run

    Raises
    ------
    Cancelled
        After `timeout`, or by ``cancel``; what had not run is stale, the rest is done.
    DTypeError
        If `timeout` is no number, or `executor` none.
    Exception
        The first error of a node, after all that does not depend on it has run.
        ``last_run.failed`` has all.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> a, b = x + 1.0, x + 2.0
    >>> len(g.forward(a, b).ran)
    2
    """
    limit = None if timeout is None else read_timeout(timeout)
    if executor is not None:
        face: Any = graph  # by its name: a subclass may have another one
        with graph._lock, running_by(graph, executor):
            return face.forward(*targets, retry=retry, timeout=timeout)
    with graph._lock:
        tidy(graph)
        slots = own_slots(graph, targets, "forward")
        if limit is None:
            return Run(graph, refresh(graph, slots, retry=retry))
        if limit <= 0.0:
            left = left_to_run(graph, slots, retry)
            if left:
                graph._scheduler.cancel()  # also the run that this is read in
                raise_cancelled(graph, left)
            return Run(graph, refresh(graph, slots))
        with within(limit, graph._scheduler.cancel):
            return Run(graph, refresh(graph, slots, retry=retry))


def cancel(graph: Core, /) -> None:
    """Stop the run under way before its next node; called from another thread.

    The read raises ``Cancelled``; what had run is kept, the rest is stale. Does nothing if no
    run is under way.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.Graph().cancel()
    """
    graph._scheduler.cancel()
