"""One observer of a node, and how it is attached and cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactgrad.core._core import Core
from reactgrad.core._observers import Attached
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import add_note, is_interrupt


class Observer:
    """A callback on a node, as ``Var.observe`` returns it. Keeps the node alive until it is cancelled.

    Attributes
    ----------
    var : Var
        The observed node.
    kind : str
        ``"changed"``, ``"stale"``, ``"error"`` or ``"removed"``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(2.0)
    >>> observer = x.observe(print)
    >>> observer.cancel()
    >>> observer.active
    False
    """

    __slots__ = ("_callback", "_graph", "armed", "kind", "last", "number", "var")

    def __init__(self, graph: Core, var: Handle, kind: str, callback: Callable[..., Any]) -> None:
        self.var = var
        self.kind = kind
        self._graph = graph  # not taken from `var`: a removed Var has no graph any more
        self._callback = callback
        self.number = 0  # grows with every observer that is attached
        self.last: Any = None  # the value, or the number of the error, of the last call
        self.armed = (
            False  # for "stale": True if the node was clean, or failed, since the last call
        )

    def cancel(self) -> None:
        """Call this observer no more; cancelling twice does nothing."""
        with self._graph._lock:
            detach(self._graph, self)

    @property
    def active(self) -> bool:
        """True until the observer is cancelled or its node is removed."""
        return self._graph._observers.has(self)

    def call(self, *arguments: Any) -> None:
        """Call the callback; add the node's name to what it raises."""
        try:
            self._callback(*arguments)
        except Exception as error:
            if not is_interrupt(error):
                self.blame(error)
            raise

    def blame(self, error: Exception) -> None:
        """Add a note to ``error`` that names the observed node."""
        there = self.var._graph is self._graph
        node = f"node {self.var.label!r}" if there else "a node that was removed"
        add_note(error, f"in an observer ({self.kind}) of {node}")

    def __repr__(self) -> str:
        if self.active:
            return f"<observer of {self.var.label!r}, {self.kind}>"
        return f"<observer, {self.kind} (cancelled)>"


def attach(graph: Core, observer: Attached) -> None:
    """Begin to observe a node."""
    observers = graph._observers
    observers.add(observer)
    graph._scheduler.staleness.heed(observers.of["stale"])


def detach(graph: Core, observer: Attached) -> None:
    """Cancel an observer. Do nothing if it is cancelled already."""
    observers = graph._observers
    if observers.has(observer):
        observers.discard(observer)
        observer.last = None
        graph._scheduler.staleness.heed(observers.of["stale"])
