"""Where parts of a value lie: those along an axis, as an index, and those of a sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Cuts = int | tuple[int, ...]  # so many equal parts, or where to cut
Key = tuple[slice | int, ...]


def split_key(shape: Sequence[int | None], cuts: Cuts, axis: int, part: int) -> Key:
    """The index of one part of a split; an axis of unknown length has no place yet."""
    at = axis % len(shape)
    if isinstance(cuts, int):
        size = (shape[at] or 0) // cuts
        return (*[slice(None)] * at, slice(part * size, (part + 1) * size))
    ends = (0, *cuts, None)
    return (*[slice(None)] * at, slice(ends[part], ends[part + 1]))


def unbind_key(shape: Sequence[int | None], axis: int, count: int, part: int) -> Key:
    """The index of one of the `count` elements of an axis."""
    return (*[slice(None)] * (axis % len(shape)), part)


def placed(operands: Sequence[Any], places: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """What is added up, each with its place, or ``None``, and the operands of that index."""
    start = len(places)
    for one, place in zip(operands, places, strict=False):
        end = start + (0 if place is None else place.count)
        yield one, place, operands[start:end]
        start = end
