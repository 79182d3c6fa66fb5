"""The printed table, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import wrap
from typing import Any

from bench._goal import Goal

HEADER = ("ours", "peer", "", "ours : peer", "goal", "")
# The largest allowed ratio of a permuted variant to its figure; more means that the figure is tuned
# to its graph.
PERMUTED = 1.2

# The figures of a case stand under its name. A whole line is at most 100 wide.
WIDTH = 100
INDENT = 5
WIDTHS = (10, 10, 22, 28, 9, 8)


@dataclass(frozen=True)
class Figure:
    """A median with the quartiles around it, and the number of rounds."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, stats: Any) -> Figure:
        """Return the figure for the statistics that pytest-benchmark collects."""
        return cls(stats.median, stats.q1, stats.q3, stats.rounds)

    @classmethod
    def exact(cls, number: float) -> Figure:
        """Return the figure for a number that was counted."""
        return cls(number, number, number, 1)


@dataclass(frozen=True)
class Line:
    """One line of the table: ours beside one peer, or beside a bound."""

    number: str
    case: str
    unit: str
    seconds: bool
    ours: Figure | None = None
    peer_name: str = ""
    peer: Figure | None = None
    ratio: Figure | None = None  # ours / peer
    goal: Goal | None = None
    note: str = ""
    verdict: bool = True  # False at small sizes, where figures must not be judged
    failed: bool = False
    permuted: float | None = None  # of a permuted variant: its ratio to the figure

    @property
    def met(self) -> bool | None:
        """True if the goal is met, ``None`` where there is none or nothing to judge."""
        if self.goal is None or self.ours is None or not self.verdict:
            return None
        if self.goal.kind == "within":
            return self.goal.met(self.ours.median, None)
        if self.goal.kind == "exactly" and self.peer is not None:
            return self.goal.met(self.ours.median, self.peer.median)
        if self.ratio is None:
            return None
        return self.goal.met(self.ratio.median, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the line for JSON."""
        return asdict(self) | {"met": self.met}


def beside(line: Line, figure: Line) -> Line:
    """Return the line of a permuted variant, with its ratio to the figure that it varies."""
    factor = None
    if line.ratio is not None and figure.ratio is not None:
        factor = line.ratio.median / figure.ratio.median if figure.ratio.median else None
    elif line.ours is not None and figure.ours is not None and figure.ours.median:
        factor = line.ours.median / figure.ours.median
    over = ", TOO MUCH" if line.verdict and factor is not None and factor > PERMUTED else ""
    said = [] if factor is None else [f"permuted: {factor:.2f}× the figure above{over}"]
    note = "; ".join([*said, *([line.note] if line.note else [])])
    return replace(line, note=note, permuted=factor)


def header() -> str:
    """Return the head of the table."""
    return _row(HEADER).rstrip() + "\n" + "-" * WIDTH


def cells(line: Line) -> tuple[str, ...]:
    """Return the columns of a line."""
    met = line.met
    return (
        line.number,
        f"{line.case} [{line.unit}]" if line.unit != "step" else line.case,
        _amount(line.ours, line.seconds),
        _amount(line.peer, line.seconds),
        line.peer_name,
        _ratio(line),
        _goal(line),
        "" if met is None else "met" if met else "missed",
    )


def printed(line: Line, former: Line | None = None) -> str:
    """Return a line of the table as text, under the name of its case unless that is the former line's.

    Nothing is wider than 100 columns.
    """
    number, case, *figures = cells(line)
    lines: list[str] = []
    if former is None or (former.number, former.case) != (line.number, line.case):
        lines += wrapped(f"{number:<{INDENT - 1}} {case}")
    if any(figures[i] not in ("", "\u2013") for i in range(len(figures))):
        lines.append(_row(figures).rstrip())
    if line.note:
        lines += wrapped(" " * INDENT + line.note)
    return "\n".join(lines)


def wrapped(text: str) -> list[str]:
    """Return a text as lines of at most 100 letters; those after the first are indented."""
    inner = len(text) - len(text.lstrip())
    return wrap(
        text.strip(),
        WIDTH,
        initial_indent=" " * inner,
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )


def _row(cells: Sequence[str]) -> str:
    fitted = [
        cell if len(cell) <= width else cell[: width - 1] + "\u2026"
        for cell, width in zip(cells, WIDTHS, strict=True)
    ]
    row = " ".join(cell.ljust(width) for cell, width in zip(fitted, WIDTHS, strict=True))
    return " " * INDENT + row


def _amount(figure: Figure | None, seconds: bool) -> str:
    if figure is None:
        return "–"
    if seconds:
        return in_time(figure.median)
    whole = figure.median == int(figure.median)  # counts are shown in full
    return f"{figure.median:,.0f}" if whole else _figures(figure.median)


def in_time(seconds: float) -> str:
    """Return seconds in a readable unit.

    Examples
    --------
    >>> in_time(0.0000123), in_time(2.0)
    ('12.3 µs', '2.00 s')
    """
    for factor, unit in ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms")):
        if seconds < 999.5 * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.2f} s"


def _ratio(line: Line) -> str:
    figure = line.ratio
    if figure is None:
        return ""
    median, low, high = figure.median, figure.low, figure.high
    word = ""
    if (line.goal is None or line.goal.kind == "faster") and median not in (0, 1):
        if median > 1:
            word = " slower" if line.seconds else " more"
        else:  # as a factor by which ours is ahead
            word = " faster" if line.seconds else " fewer"
            median, low, high = 1 / median, 1 / (high or median), 1 / (low or median)
    spread = f" ({_figures(low)}–{_figures(high)})" if figure.rounds > 1 else ""
    return f"{_figures(median)}×{word}{spread}"


def _figures(number: float) -> str:
    """Return a number with three significant digits, or all before the point.

    Examples
    --------
    >>> _figures(0.98765), _figures(3556.7), _figures(12.0)
    ('0.988', '3,557', '12')
    """
    return f"{number:,.0f}" if number >= 999.5 else f"{number:.3g}"


def _goal(line: Line) -> str:
    goal = line.goal
    if goal is None:
        return ""
    if goal.kind == "within":
        return f"≤ {in_time(goal.limit) if line.seconds else format(goal.limit, ',.6g')}"
    if goal.kind == "exactly":
        return "the same"
    return f"{'≤' if goal.kind == 'at most' else '≥'} {goal.limit:g}×"
