"""The places of parts of a value: indices of parts along an axis, and of contributions to a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError

Cuts = int | tuple[int, ...]  # the number of equal parts, or the indices at which to cut
Key = tuple[slice | int, ...]


def split_key(shape: Sequence[int | None], cuts: Cuts, axis: int, part: int) -> Key:
    """Return the index of one part of a split; the first parts are longer by one where equal ones leave a rest.

    Equal parts of an axis of unknown length are empty: their places are not known yet.
    """
    at = axis % len(shape)
    if isinstance(cuts, int):
        size, longer = divmod(shape[at] or 0, cuts)
        start = part * size + min(part, longer)
        return (*[slice(None)] * at, slice(start, start + size + (part < longer)))
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


def check_numbers(numbers: np.ndarray[Any, Any], shape: Sequence[int | None], axis: int) -> None:
    """Raise ``IndexingError`` unless all `numbers` are indices of an axis, from its end if negative."""
    length = shape[axis]
    assert length is not None
    if numbers.size and (numbers.max() >= length or numbers.min() < -length):
        wrong = numbers[(numbers >= length) | (numbers < -length)].flat[0]
        raise no_element(wrong, shape, axis)


def no_element(number: Any, shape: Sequence[int | None], axis: int) -> IndexingError:
    """Return the error for an integer that is no index of an axis."""
    length = shape[axis]
    there = f"indices are from {-length} to {length - 1}" if length else "it has no elements"
    return IndexingError(
        f"index {number} is out of bounds: there is no element {number} along axis {axis} of a value of "
        f"shape {tuple(shape)}; {there}."
    )


def numbers_in(
    numbers: np.ndarray[Any, Any], mode: str, shape: Sequence[int], axis: int
) -> np.ndarray[Any, Any]:
    """Return `numbers` as indices of an axis, negative ones perhaps, after a check or by wrap or clip.

    Booleans, which are a mask, stay as they are.
    """
    if numbers.dtype.kind == "b":
        return numbers
    numbers = numbers.astype(np.intp, copy=False)
    if mode == "raise" or not (numbers.size and shape[axis]):
        if isinstance(numbers, np.ndarray):  # on a device a check would wait for the host
            check_numbers(numbers, shape, axis)
        return numbers
    return numbers % shape[axis] if mode == "wrap" else numbers.clip(0, shape[axis] - 1)


def along_key(
    numbers: np.ndarray[Any, Any], how: Any, shape: Sequence[int]
) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the index of elements by their numbers along an axis; `how` is their place in an ``Index``."""
    ndim = numbers.ndim
    axis = how.axis % ndim
    numbers = numbers_in(numbers, how.mode, shape, axis)
    grid = np.indices(numbers.shape if how.short else tuple(shape[:ndim]), sparse=True)
    return (*grid[:axis], numbers, *grid[axis + 1 :])


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


def flip_key(ndim: int, axes: Sequence[int] | None) -> Key:
    """Return the index that reverses these axes, or all of them."""
    turned = range(ndim) if axes is None else [axis % ndim for axis in axes]
    return tuple([slice(None, None, -1) if i in turned else slice(None) for i in range(ndim)])


def regrouped(
    shape: Sequence[int | None], axis: int, count: int, lengths: tuple[int, ...]
) -> tuple[int | None, ...]:
    """Return a shape with `lengths`, one of which may be -1, in the place of `count` axes.

    The shape may hold lengths that are not known yet. The others must fill it; see ``regroup``.
    """
    at = axis % len(shape) if shape else 0
    group = shape[at : at + count]
    if -1 in lengths:
        size = None if None in group else prod(group)  # type: ignore[arg-type]
        fixed = prod([n for n in lengths if n != -1])
        free = None if size is None else size // fixed if fixed else 0
        new: tuple[int | None, ...] = tuple([free if n == -1 else n for n in lengths])
    else:
        new = lengths
    return (*shape[:at], *new, *shape[at + count :])


Nest = (
    int | tuple["Nest", ...]
)  # a block, by its number, or the blocks that are joined along an axis


def block_keys(nest: Nest, shapes: Sequence[Sequence[int | None]]) -> dict[int, Key]:
    """Return the index of each block of a nest in the value that they are put together to.

    The innermost ones are joined along the last axis. A length that is not known counts as 0.
    """
    keys: dict[int, Key] = {}

    def place(nest: Nest, start: list[int]) -> None:
        if isinstance(nest, int):
            ends = [at + (n or 0) for at, n in zip(start, shapes[nest], strict=True)]
            keys[nest] = tuple(map(slice, start, ends))
            return
        axis, start = -depth_of(nest), start.copy()
        for one in nest:
            place(one, start)
            start[axis] += shapes[first_of(one)][axis] or 0

    place(nest, [0] * len(shapes[0]))
    return keys


def depth_of(nest: Nest) -> int:
    """Return how often blocks are joined one way after the other."""
    return 0 if isinstance(nest, int) else 1 + depth_of(nest[0])


def first_of(nest: Nest) -> int:
    """Return the number of the first block of a nest."""
    return nest if isinstance(nest, int) else first_of(nest[0])
