"""The explanation of a node's state: what changed, from which version to which, and by which line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from reactgrad.core._display import display
from reactgrad.explain._no_gradient import NoGradient

Verdict = Literal["unset", "pinned", "failed", "stale", "cut_off", "ran", "clean"]
CauseKind = Literal[
    "set",
    "touch",
    "pin",
    "unpin",
    "edit",
    "rollback",
    "mode",
    "redraw",
    "new",
    "retry",
    "failed",
    "unset",
    "ran",
    "unknown",
]

# The longest lists in an explanation; the rest is counted.
MOST_CHANGES = 24
MOST_CAUSES = 12
# Of a longer path only so many nodes at each end are shown.
ENDS = 5


@dataclass(frozen=True, slots=True)
class Change:
    """An operand that differs from what its node was computed from.

    Attributes
    ----------
    node, parent : str
        Names of the node and of its operand.
    before : int or None
        The operand's version that the node was computed from; ``None`` if that is not known any
        more, which ``g.events`` prevents.
    after : int or None
        The operand's version that counts now; ``None``: it is stale itself.
    raised : bool
        True if the operand has raised, so that its error counts.
    """

    node: str
    parent: str
    before: int | None
    after: int | None
    raised: bool = field(default=False, repr=False)

    def __str__(self) -> str:
        if self.raised:
            return f"{self.node} depends on {self.parent}, which raised"
        if self.after is None:
            return f"{self.node} depends on {self.parent}, which is stale"
        return f"{self.node} depends on {self.parent}: {versions_text(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class Cause:
    """The place where a change began.

    Attributes
    ----------
    kind : str
        The change of the node: ``"set"``, ``"touch"``, ``"pin"``, ``"unpin"``, ``"edit"``, ``"rollback"``;
        ``"mode"`` of the switch between training and evaluation, ``"redraw"`` of the key of a draw; or its state:
        ``"new"``, ``"unset"``, ``"failed"``; ``"retry"``: it had raised and ran again; ``"ran"``:
        another read computed it since;
        ``"unknown"``: a change of the node itself, or of an operand that an earlier read
        has found; only ``g.events`` keeps which.
    node : str
        Its name.
    before, after : int or None
        Its versions, where a change of version is the cause and they are known.
    line : str or None
        The user's line that did it, if ``g.events`` was on.
    error : str
        The error of a failed node, as text.
    path : tuple of str
        Names of the nodes on one shortest way of the change, from this node to the explained one; of a
        long way those at both ends, with ``"..."`` between them.
    """

    kind: CauseKind
    node: str
    before: int | None = None
    after: int | None = None
    line: str | None = None
    error: str = ""
    path: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        text = {
            "set": "was set",
            "touch": "was touched",
            "pin": "was pinned",
            "unpin": "was unpinned",
            "edit": "was edited",
            "rollback": "was given back by a transaction that failed",
            "mode": "was switched, by g.train() or g.eval()",
            "redraw": "got other random numbers, by a touch of its draw or by g.reseed",
            "new": "is new: it had never been computed",
            "retry": "had raised and was run again",
            "failed": f"raised {self.error}",
            "unset": "has no value yet",
            "ran": "was computed by another read since",
            "unknown": (
                "ran because it was touched, edited or unpinned, or because an earlier read had "
                "computed an operand anew; g.events = True, before a change, keeps which"
            ),
        }[self.kind]
        text = f"{self.node} {text}"
        if self.after is not None:
            text += f": {versions_text(self.before, self.after)}"
        return text + (f" ({self.line})" if self.line is not None else "")


@dataclass(frozen=True, slots=True, repr=False)
class Why:
    """The result of ``Graph.why``; ``str(why)`` puts it into words.

    Attributes
    ----------
    node : str
        Name of the node.
    verdict : str
        The first of these that holds: ``"unset"`` (an input without value), ``"pinned"``, ``"failed"``
        (it raised, and its operands are as they were), ``"stale"``, ``"cut_off"`` or ``"ran"`` (in
        the last run), ``"clean"``.
    version : int
        Its value version.
    last_run : str or None
        ``"ran"``, ``"cut_off"``, ``"skipped"``, ``"rebuilt"`` or ``"failed"`` in the last run;
        ``None`` if that did not reach it.
    computed_from : tuple of (str, int)
        Names and versions of the operands that the value was computed from.
    changes : tuple of Change
        The reason why it is stale, or ran: operands that changed, nearest to the node first.
    causes : tuple of Cause
        All places where these changes began, nearest to the node first, each with its path.
    more : int
        The number of changes and causes that are left out.
    error : str
        The error that it raised, as text, if it failed.
    gradient : NoGradient or None
        The reason why it has no gradient.
    logged : bool
        True if ``g.events`` was on, so that lines and exact versions are known.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = rg.exp(x)
    >>> y.name = "y"
    >>> _ = y.value
    >>> x.set(2.0)
    >>> why = g.why(y)
    >>> why.verdict, why.changes
    ('stale', (Change(node='y', parent='x', before=1, after=2),))
    >>> why.causes[0].kind, why.causes[0].node
    ('set', 'x')
    """

    node: str
    verdict: Verdict
    version: int
    last_run: str | None = None
    computed_from: tuple[tuple[str, int], ...] = ()
    changes: tuple[Change, ...] = ()
    causes: tuple[Cause, ...] = ()
    more: int = 0
    error: str = ""
    gradient: NoGradient | None = None
    logged: bool = False
    _operands: int = 0
    _more_causes: int = 0
    _again: bool = False  # for an error that tells nothing about the operands

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self._headline()]
        for cause in self.causes:
            lines.append(f"  {cause}")
            if len(cause.path) > 1:
                lines.append(f"    {' -> '.join(cause.path)}")
        if not self.causes:
            lines += [f"  {change}" for change in self.changes]
        if self._more_causes:
            lines.append(f"  (and {self._more_causes} more causes)")
        if not self.logged and any(c.kind in ("set", "edit", "unknown") for c in self.causes):
            lines.append("(g.events = True, before a change, keeps the line that made it)")
        if self.gradient is not None and self._tells_gradient():
            lines.append(str(self.gradient))
        return "\n".join(lines)

    def _tells_gradient(self) -> bool:
        assert self.gradient is not None
        reason = self.gradient.reason
        return reason not in ("const", "no_param") or bool(self.gradient.blocks)

    def _headline(self) -> str:
        """Return the first line: the verdict with the node's version."""
        version = f"version {self.version}"
        if self.verdict == "unset":
            return f"{self.node} is unset: give it a value with set"
        if self.verdict == "pinned":
            return f"{self.node} is pinned at {version}: its operands do not matter until unpin()"
        if self.verdict == "failed":
            if self._again:
                return f"{self.node} failed: {self.error}; the next read runs it again"
            return (
                f"{self.node} failed: {self.error}; raised again at every read until an operand "
                "changes, or g.forward(..., retry=True)"
            )
        if self.verdict == "stale":
            return (
                f"{self.node} is stale ({version}):"
                if self.version
                else (f"{self.node} is stale (no value yet):")
            )
        if self.verdict == "cut_off":
            return f"{self.node} ran in the last run and was cut off: its cutoff kept {version}"
        if self.verdict == "ran":
            return (
                f"{self.node} ran in the last run: {versions_text(self.version - 1, self.version)}"
            )
        text = f"{self.node} is clean at {version}"
        if self.computed_from:
            shown = ", ".join(f"{name} (version {n})" for name, n in self.computed_from)
            more = self._operands - len(self.computed_from)
            text += f": computed from {shown}{f' and {more} more' if more else ''}"
            text += ", which are still at these versions"
        if self.last_run == "skipped":
            text += "; the last run checked it and found nothing changed"
        if self.last_run == "rebuilt":
            text += "; its released value was computed again in the last run"
        return text

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return display(self)


def versions_text(before: int | None, after: int) -> str:
    """Return a change of version as text, such as ``version 1 -> 2``."""
    return f"now version {after}" if before is None else f"version {before} -> {after}"
