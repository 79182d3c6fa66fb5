"""The places of parts of a value: indices of parts along an axis, and of contributions to a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError

Cuts = int | tuple[int, ...]  # the number of equal parts, or the indices at which to cut
Key = tuple[slice | int, ...]


def split_key(shape: Sequence[int | None], cuts: Cuts, axis: int, part: int) -> Key:
    """Return the index of one part of a split.

    Equal parts of an axis of unknown length are empty: their places are not known yet.
    """
    at = axis % len(shape)
    if isinstance(cuts, int):
        size = (shape[at] or 0) // cuts
        return (*[slice(None)] * at, slice(part * size, (part + 1) * size))
    ends = (0, *cuts, None)
    return (*[slice(None)] * at, slice(ends[part], ends[part + 1]))


def unbind_key(shape: Sequence[int | None], axis: int, count: int, part: int) -> Key:
    """Return the index of one of the `count` elements of an axis."""
    return (*[slice(None)] * (axis % len(shape)), part)


def placed(operands: Sequence[Any], places: Sequence[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield each term of an ``accumulate``, its place or ``None``, and the operands of that index."""
    start = len(places)
    for one, place in zip(operands, places, strict=False):
        end = start + (0 if place is None else place.count)
        yield one, place, operands[start:end]
        start = end


def numbers_key(numbers: np.ndarray[Any, Any], ndim: int, axis: int) -> tuple[Any, ...]:
    """Return the index of the elements with these numbers along an axis, one for each row."""
    grid = np.indices(numbers.shape, sparse=True)
    at = axis % ndim
    return (*grid[:at], numbers, *grid[at:])


def numbers_check(
    numbers: np.ndarray[Any, Any], shape: Sequence[int], axis: int
) -> Callable[[], None]:
    """Return a call that raises ``IndexingError`` if one of `numbers` is no index along an axis.

    Negative numbers are refused, too: -1 is often written for "no label", and must not count from
    the end. The call reads the array's present contents, so it may be repeated.
    """
    length = shape[axis]
    # Read as unsigned integers, negative numbers are large: one comparison finds both errors.
    unsigned = numbers.view(f"u{numbers.itemsize}")

    def check() -> None:
        # `argmax` takes a third of the time of `max`.
        if unsigned.size and unsigned.item(unsigned.argmax()) >= length:
            wrong = numbers[unsigned >= length].flat[0]
            raise IndexingError(
                f"there is no element {wrong} along axis {axis} of a value of shape {tuple(shape)}; "
                f"integers that choose there, such as labels of classes, are from 0 to {length - 1}."
            )

    return check
