"""Where the parts lie into which a value is taken apart along an axis, as an index."""

from __future__ import annotations

from collections.abc import Sequence

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
