"""Ranges of rows: which rows of a value have changed, or are to be computed."""

from __future__ import annotations

# Half-open ranges of rows, ascending, with gaps between them. `None` in place of rows: all of them.
Ranges = tuple[tuple[int, int], ...]

# How a pending leaf has changed: the number of changes, and the rows; `None` in place of both: all of it.
Change = tuple[int, Ranges]

# With more ranges than this, or more than the tenth part of its rows, a value counts as changed as a whole.
MOST_RANGES, SHARE = 16, 10


def joined(one: Ranges, other: Ranges) -> Ranges | None:
    """Return the rows of both, ``None`` if these are too many ranges."""
    if one == other or not other:
        return one
    if not one:
        return other
    found: list[tuple[int, int]] = []
    for begin, end in sorted((*one, *other)):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return tuple(found) if len(found) <= MOST_RANGES else None


def count(rows: Ranges) -> int:
    """Return the number of rows."""
    return sum([end - begin for begin, end in rows])


def well_formed(rows: Ranges) -> bool:
    """Return whether ranges ascend, with gaps between them, and are not too many."""
    ends = [-1, *[end for _, end in rows]]
    return len(rows) <= MOST_RANGES and all(
        before < begin < end for before, (begin, end) in zip(ends, rows)
    )
