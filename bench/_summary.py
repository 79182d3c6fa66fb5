"""What a table comes to: how many goals are met, which are missed and by how much, what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from bench._table import PERMUTED, Line, cells, wrapped


def summary(
    found: Sequence[Line], variants: Sequence[Line], *, quick: bool, seconds: float
) -> list[str]:
    """Return the last lines of a table, at most 100 columns wide.

    Parameters
    ----------
    found
        The lines of the table.
    variants
        Those of permuted variants.
    quick
        True for small sizes, whose figures are not judged.
    seconds
        The time that all of it took.
    """
    judged = [line for line in found if line.met is not None]
    missed = [line for line in judged if not line.met]
    cases = len({(line.number, line.case) for line in found if line.ours is not None})
    lines = ["", f"{_some(cases, 'case')} in {_minutes(seconds)}"]
    if judged:
        lines.append(f"{len(judged) - len(missed)} of {len(judged)} goals met")
        lines += [text for line in missed for text in wrapped(f"     missed: {_miss(line)}")]
    elif quick:
        lines.append("no goal is judged at small sizes")
    absent = dict.fromkeys(line.peer_name for line in found if "not installed" in line.note)
    if absent:
        told = f"not installed, so not measured: {', '.join(absent)} (pip install .[bench])"
        lines += wrapped(told)
    factors = [line.permuted for line in variants if line.permuted is not None and line.verdict]
    if factors:
        within = sum(factor <= PERMUTED for factor in factors)
        lines.append(
            f"{within} of {len(factors)} permuted variants within {PERMUTED}\u00d7 of their figures"
        )
    return lines


def _miss(line: Line) -> str:
    number, case, ours, _, peer, ratio, goal, _ = cells(line)
    beside = f" beside {peer}" if peer else ""
    return f"{number} {case}: {ratio or ours}{beside}, goal {goal}"


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
