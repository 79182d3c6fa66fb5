"""Where parts of a value lie: those along an axis, as an index, and those of a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError

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


def numbers_key(numbers: np.ndarray[Any, Any], ndim: int, axis: int) -> tuple[Any, ...]:
    """The index of the elements that have these numbers along an axis, one for each row."""
    grid = np.indices(numbers.shape, sparse=True)
    at = axis % ndim
    return (*grid[:at], numbers, *grid[at:])


def numbers_check(
    numbers: np.ndarray[Any, Any], shape: Sequence[int], axis: int
) -> Callable[[], None]:
    """What raises ``IndexingError`` if one of these numbers does not count the elements along an axis.

    Negative ones do not count from the end: what gives no label is often written as -1.
    """
    length = shape[axis]
    # As unsigned integers negative ones are large, too.
    unsigned = numbers.view(f"u{numbers.itemsize}")

    def check() -> None:
        # To ask where the largest one lies takes a third of what it takes to ask for itself.
        if unsigned.size and unsigned.item(unsigned.argmax()) >= length:
            wrong = numbers[unsigned >= length].flat[0]
            raise IndexingError(
                f"there is no element {wrong} along axis {axis} of a value of shape {tuple(shape)}; "
                f"integers that choose there, such as labels of classes, are from 0 to {length - 1}."
            )

    return check
