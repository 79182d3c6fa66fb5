"""One entry of the event log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from reactgrad.nodes._site import Site, site_text

Kind = Literal[
    "new",
    "set",
    "touch",
    "pin",
    "unpin",
    "edit",
    "rollback",
    "dropped",
    "run",
    "ran",
    "cut_off",
    "rebuilt",
    "failed",
]


KINDS: tuple[str, ...] = get_args(Kind)


_WORDS = {
    "touch": "touched",
    "pin": "pinned",
    "unpin": "unpinned",
    "edit": "edited",
    "rollback": "given back by a transaction that failed",
    "run": "read",
}


@dataclass(frozen=True, slots=True)
class Moved:
    """An operand whose version differed from the one that a node had been computed from.

    Attributes
    ----------
    node : str
        Name of the operand.
    before, after : int
        Its versions at the previous and at this computation; `before` is 0 if it had raised.
    serial : int
        The number of the operand's creation, never used again.
    raised : bool
        True if it has raised, so that this computation saw its error.
    """

    node: str
    before: int
    after: int
    serial: int = field(repr=False)
    raised: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a graph; see ``Graph.events``.

    Attributes
    ----------
    number : int
        Grows by one with every event of the graph, also with those that the limit drops.
    kind : str
        ``"new"``, ``"set"``, ``"touch"``, ``"pin"``, ``"unpin"``, ``"edit"``, ``"dropped"``,
        ``"rollback"`` (a failed transaction has restored it); for a read ``"run"``, followed by
        ``"ran"``, ``"cut_off"``, ``"rebuilt"`` or ``"failed"`` for each node that was called, in order.
    node : str
        Name of the node at that time; of a run, the names of what was read.
    before, after : int
        Value version of the node; of a run 0.
    moved : tuple of Moved
        Of a node that was called: its operands that had changed since its previous computation.
    error : str
        The error of a failed node, as text.
    retry : bool
        Of a run: true if nodes that had raised were to run again.
    serial : int
        The number of the node's creation, never used again; of a run 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> g.events = True
    >>> x.set(2.0)
    >>> print(g.events[0])
    1. x set: version 1 -> 2 (<doctest ...>:1: x.set(2.0))
    """

    number: int
    kind: Kind
    node: str
    before: int = 0
    after: int = 0
    moved: tuple[Moved, ...] = ()
    error: str = ""
    retry: bool = False
    serial: int = field(default=0, repr=False)
    _site: Site | None = field(default=None, repr=False, compare=False)

    @property
    def line(self) -> str | None:
        """The user's line that made the change, with file and number; ``None`` where no line did."""
        return None if self._site is None else site_text(self._site)

    def __str__(self) -> str:
        text = f"{self.number}. {self.node} {_WORDS.get(self.kind, self.kind).replace('_', ' ')}"
        if self.after != self.before:
            text += f": version {self.before} -> {self.after}"
        if self.error:
            text += f": {self.error}"
        return text + (f" ({self.line})" if self._site is not None else "")
