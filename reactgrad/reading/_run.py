"""Runs and plans as users see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from reactgrad import scheduler
from reactgrad.core._core import Core
from reactgrad.core._display import display
from reactgrad.core._handles import living
from reactgrad.core._var_list import VarList
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import Ranges


class Run:
    """The record of one read: the nodes that ran, were cut off, skipped, rebuilt, or failed.

    Attributes are Vars in the order in which it happened. Nodes dropped since are left out, for a
    run keeps no node alive.

    Attributes
    ----------
    ran : VarList
        Nodes that were computed.
    cut_off : VarList
        Those of ``ran`` whose cutoff kept the old value.
    skipped : VarList
        Nodes that were planned but turned out to be clean.
    rebuilt : VarList
        Nodes whose released value was computed again, at an unchanged version.
    failed : VarList
        Nodes that raised, now or before with the same parents.
    errors : tuple of Exception
        What ``failed`` raised, position by position.
    rows : dict
        Of nodes that were computed in part: the ranges of their rows that were computed.
    seconds : float
        Duration of the run.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = x + 1.0
    >>> y.name = "y"
    >>> g.forward(y).ran
    [y]
    """

    __slots__ = ("_graph", "_next", "_rows", "_run", "_seconds")

    def __init__(self, graph: Core, run: scheduler.Run) -> None:
        self._graph = graph
        self._run = run
        self._next = graph._scheduler.topology.next_serial
        self._rows = run.rows
        self._seconds = run.seconds

    def _vars(self, slots: Iterable[int]) -> VarList[Any]:
        return VarList(living(self._graph, slots, self._run.serials, self._next))

    @property
    def ran(self) -> VarList[Any]:
        """Nodes that were computed, in order."""
        return self._vars(self._run.ran)

    @property
    def rows(self) -> dict[Any, Ranges]:
        """By node: the ranges of rows that were computed, for nodes that were not computed as a whole.

        See ``Var.set_at``.
        """
        return {node: self._rows[node._slot] for node in self._vars(self._rows)}

    @property
    def cut_off(self) -> VarList[Any]:
        """Nodes that were computed and kept their old value."""
        return self._vars(self._run.cut_off)

    @property
    def skipped(self) -> VarList[Any]:
        """Nodes that were planned but turned out to be clean."""
        return self._vars(self._run.skipped)

    @property
    def rebuilt(self) -> VarList[Any]:
        """Nodes whose released value was computed again."""
        return self._vars(self._run.rebuilt)

    @property
    def failed(self) -> VarList[Any]:
        """Nodes that raised."""
        return self._vars(self._run.failed)

    @property
    def errors(self) -> tuple[Exception, ...]:
        """The errors of the failed nodes, in the same order."""
        return tuple(self._run.errors)

    @property
    def seconds(self) -> float:
        """Duration of the run."""
        return self._seconds

    def __repr__(self) -> str:
        run = self._run
        parts = [f"ran {len(run.ran)}"]
        for word, slots in (
            ("cut off", run.cut_off),
            ("skipped", run.skipped),
            ("rebuilt", run.rebuilt),
            ("failed", run.failed),
        ):
            if slots:
                parts.append(f"{len(slots)} {word}")
        return f"<Run: {', '.join(parts)}, {self._seconds * 1e3:.3g} ms>"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return display(self)


class Running:
    """A run under way, as other threads see it; see ``Graph.running``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> stop = rg.lift(lambda x: g.running.cancel())
    >>> y = rg.lift(lambda none: 1)(stop(g.input(0)))
    >>> g.forward(y)
    Traceback (most recent call last):
    reactgrad...Cancelled: the run was cancelled, or its time was up, with 1 nodes still to run; ...
    """

    __slots__ = ("_scheduler", "_turn")

    def __init__(self, owner: scheduler.Scheduler) -> None:
        self._scheduler = owner
        self._turn = owner.turn

    def cancel(self) -> None:
        """Stop the run before its next node, if it is still under way.

        A later run is never stopped.
        """
        self._scheduler.cancel(self._turn)

    @property
    def active(self) -> bool:
        """True while the run is under way."""
        return bool(self._scheduler.computing) and self._scheduler.turn == self._turn

    def __repr__(self) -> str:
        return f"<run number {self._turn}, {'under way' if self.active else 'ended'}>"


class Plan:
    """The nodes that a read would run, found without running anything.

    Attributes
    ----------
    nodes : VarList
        The stale nodes in topological order. A cutoff may spare some of them.
    unset : VarList
        Inputs without a value that the read needs. What is computed from one of them is not among the nodes, since
        it cannot run: the read raises ``UnsetError``.
    cost : float or None
        Estimated seconds: the mean times of the nodes that ``Graph.record`` has measured, added
        up. ``None`` if it has measured none of them.
    unknown : int
        How many of the nodes were never measured, so that `cost` leaves them out.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = rg.tanh(x * 2.0)
    >>> len(g.plan(y))
    2
    """

    __slots__ = ("cost", "nodes", "unknown", "unset")

    def __init__(
        self,
        nodes: Sequence[Handle],
        times: Sequence[float | None],
        unset: Sequence[Handle] = (),
    ) -> None:
        self.nodes = VarList(nodes)
        self.unset = VarList(unset)
        known = [seconds for seconds in times if seconds is not None]
        self.cost: float | None = sum(known, 0.0) if known or not nodes else None
        self.unknown = len(nodes) - len(known)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Handle]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        """Return whether this very node would run."""
        return node in self.nodes

    @overload
    def __getitem__(self, index: int) -> Handle: ...
    @overload
    def __getitem__(self, index: slice) -> VarList[Handle]: ...
    def __getitem__(self, index: int | slice) -> Handle | VarList[Handle]:
        return self.nodes[index]

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f", about {self.cost * 1e3:.3g} ms"
        if cost and self.unknown:
            cost += f" and {self.unknown} never measured"
        missing = f"; {self.unset!r} without a value" if len(self.unset) else ""
        return f"<Plan: {len(self)} to run{cost}: {self.nodes!r}{missing}>"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return display(self)
