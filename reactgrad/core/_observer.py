"""What ``Var.observe`` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactgrad.core._observers import Attached

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.nodes._handle import Handle


class Observer:
    """What ``Var.observe`` returns; keeps the node alive until it is cancelled.

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
        self._graph = graph  # a removed Var has none any more
        self._callback = callback
        self.number = 0  # grows with every observer that is attached
        self.last: Any = None  # the value, or the number of the error, that was told last
        self.armed = False  # for "stale": whether the node was clean since it was told

    def cancel(self) -> None:
        """Call this observer no more; cancelling twice does nothing."""
        with self._graph._lock:
            detach(self._graph, self)

    @property
    def active(self) -> bool:
        """Whether the observer was not cancelled, nor its node removed."""
        return self._graph._observers.has(self)

    def call(self, *arguments: Any) -> None:
        """Call the callback, and name the node in what it raises."""
        try:
            self._callback(*arguments)
        except Exception as error:
            self.blame(error)
            raise

    def blame(self, error: Exception) -> None:
        """Note on `error` whose doing it is."""
        there = self.var._graph is self._graph
        node = f"node {self.var.name!r}" if there else "a node that was removed"
        error.add_note(f"in an observer ({self.kind}) of {node}")

    def __repr__(self) -> str:
        if self.active:
            return f"<observer of {self.var.name!r}, {self.kind}>"
        return f"<observer, {self.kind} (cancelled)>"


def attach(graph: Core, observer: Attached) -> None:
    """Begin to observe."""
    observers = graph._observers
    observers.add(observer)
    graph._scheduler.staleness.heed(observers.of["stale"])


def detach(graph: Core, observer: Attached) -> None:
    """End it; twice does nothing."""
    observers = graph._observers
    if observers.has(observer):
        observers.discard(observer)
        observer.last = None
        graph._scheduler.staleness.heed(observers.of["stale"])
