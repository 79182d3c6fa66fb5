"""The verbs of a graph that explain and save it. Each imports its work when it is called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reactgrad.core._arguments import own_slot
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.graph._var import Var
from reactgrad.reading._run import Run

if TYPE_CHECKING:
    from reactgrad.explain._event import Event
    from reactgrad.explain._record import Recording
    from reactgrad.explain._snapshot import Snapshot
    from reactgrad.explain._stats import Stats
    from reactgrad.explain._why import Why


class Questions(Core[Var]):
    """The part of ``Graph`` that answers questions and changes nothing."""

    def why(self, var: Var | str) -> Why:
        """Explain why a node is clean or stale, ran, was cut off, failed, or has no gradient.

        Runs nothing. While ``events`` is on, the answer also has the line of every set and edit, and
        all versions exactly.

        Parameters
        ----------
        var : Var or str
            A node of this graph, or its name.

        Returns
        -------
        Why

        Raises
        ------
        DTypeError, GraphError
            If `var` is no node of this graph.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> a = x * 2.0
        >>> b = a + 1.0
        >>> a.name, b.name = "a", "b"
        >>> _ = b.value
        >>> x.set(2.0)
        >>> print(g.why(b))
        b is stale (version 1):
          x was set: version 1 -> 2
            x -> a -> b
        (g.events = True, before a change, keeps the line that made it)
        """
        from reactgrad.explain._search import explain

        return explain(self, handle(self, own_slot(self, var, "why")))

    def record(self, *, snapshots: bool = False) -> Recording:
        """Record every run of a ``with`` block, node by node.

        Outside of such blocks nothing is recorded, and recording costs nothing.

        Parameters
        ----------
        snapshots : bool
            True to keep also a snapshot of the whole graph after each run, for ``export_html``.

        Returns
        -------
        Recording
            With ``runs``, ``calls``, ``table()``, ``str()`` and ``to_chrome_trace(path)``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0)) + 1.0
        >>> with g.record() as log:
        ...     _ = y.value
        >>> [call.op for call in log.calls], len(log.runs)
        (['tanh', 'add'], 1)
        """
        from reactgrad.explain._record import Recording

        return Recording(self, snapshots)

    def stats(self) -> Stats:
        """Return figures of the graph: size, memory, and totals over all its runs.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> y = x.sum()
        >>> _ = y.value
        >>> print(g.stats())
        nodes      2 (1 of them leaves), 1 edges
        values     24 B
        runs       1: ran 1, cut off 0, rebuilt 0, failed 0
        plans      0 cached, 0 hits, 1 misses
        observers  0
        """
        from reactgrad.explain._stats import take_stats  # imported late: few programs ask

        return take_stats(self)

    @property
    def events(self) -> tuple[Event, ...] | None:
        """The log of what happened to the graph, in order; ``None`` unless it was switched on.

        ``g.events = True`` begins the log, ``g.events = 500`` also limits it to the latest 500 events
        (10,000 by default), ``g.events = False`` ends and drops it. While off, it costs nothing.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = x + 1.0
        >>> y.name = "y"
        >>> g.events = True
        >>> x.set(2.0)
        >>> _ = y.value
        >>> [(event.kind, event.node, event.after) for event in g.events]
        [('set', 'x', 2), ('run', 'y', 0), ('ran', 'y', 1)]
        """
        if self._events is None:
            return None
        from reactgrad.explain._event_log import events_of

        return events_of(self)

    @events.setter
    def events(self, on: bool | int) -> None:
        from reactgrad.explain._event_log import switch_events

        switch_events(self, on)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, from which ``rg.load`` makes it again.

        Topology, names, values, versions, staleness, and frozen, pinned, detached and kept marks are
        saved. Not saved are ``.grad``, stored errors, hooks, and gradients that nothing holds. Gradients
        that are held come back as the ops that compute them: they follow values, but not edits of the
        nodes that they belong to; after such an edit call ``rg.grad`` again. Values of computed nodes
        that have no form in a file are computed again when they are read. The file is replaced as a
        whole: after an error or a crash either the old or the new one is there.

        Parameters
        ----------
        path : str or path-like
            The file, in the safetensors format.

        Raises
        ------
        SaveError
            If a node calls a function that has no name to be found by (a lambda, a local function,
            a partial, a bound method), or a leaf holds an object that has no form in a file.
        OSError
            If the file cannot be written; the old one then stays.
        MissingExtraError
            If the package safetensors is not installed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.lift(lambda a: a + 1.0)(g.input(1.0))
        >>> g.save("graph.safetensors")  # doctest: +SKIP
        Traceback (most recent call last):
        SaveError: node 'lambda_2', function 'lambda', cannot be saved: it is a lambda, which ...
        """
        from reactgrad.io._save import save

        save(self, path)

    def to_bytes(self, cloudpickle: bool = False) -> bytes:
        """Return the graph as bytes, from which ``rg.from_bytes`` makes it again in another process.

        They hold what a file holds, see ``save``, and need no package.

        Parameters
        ----------
        cloudpickle : bool
            Whether lambdas, closures and other functions without a name are written as code. The
            receiver has to allow that.

        Raises
        ------
        SaveError
            If a node calls a function that has no name to be found by, or a leaf holds an object that
            has no form.
        MissingExtraError
            If the package cloudpickle is needed, and not installed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0], name="x")
        >>> total = x.sum()
        >>> total.name = "total"
        >>> h = rg.from_bytes(g.to_bytes())
        >>> h["total"].value
        np.float64(3.0)
        >>> y = rg.lift(lambda a: a + 1.0)(x)
        >>> g.to_bytes()
        Traceback (most recent call last):
        reactgrad.SaveError: node 'lambda_3', function 'lambda', cannot be saved: it is a lambda, ...
        """
        from reactgrad.io._bytes import to_bytes

        return to_bytes(self, cloudpickle)

    def snapshot(self, run: Run | None = None, *, values: bool = False) -> Snapshot:
        """Return the graph as it is now, as plain data: nodes, edges, states, versions, times.

        Runs nothing. The snapshot holds no node and no value, and never changes. All pictures are drawn
        from snapshots.

        Parameters
        ----------
        run : Run, optional
            The run whose outcome each node shows; by default the last one.
        values : bool
            True to store each clean node's value, too, as a short text.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> before = g.snapshot()
        >>> y.value
        np.float64(0.7615941559557649)
        >>> before.nodes[1].state, g.snapshot().nodes[1].state, g.snapshot().nodes[1].outcome
        ('stale', 'clean', 'ran')
        """
        from reactgrad.explain._snapshot import snapshot

        return snapshot(self, None if run is None else run._run, values)
