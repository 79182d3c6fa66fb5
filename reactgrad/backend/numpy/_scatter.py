"""Elements taken by their numbers, and contributions added at them.

NumPy adds at places named by one flat array of integers five to ten times faster than at places named by
several, so places are counted through here. Short floats are added up in float64, in memory only for those
rows that get something: a look-up in a large table costs one array of zeros and not several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._parts import check_numbers, no_element, numbers_in
from reactgrad.backend.numpy._sums import WIDER

Array = np.ndarray[Any, Any]

# So few numbers NumPy checks by itself in less time than two reductions take.
FEW = 64


def bind_gather(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
    """Return the call that takes the elements at an index with operands."""
    x, *indices = inputs
    (index,) = attrs
    if (
        out is not None
        and not _masked(indices)
        and x.flags.c_contiguous
        and x.dtype == out.dtype
        and out.size
    ):
        if index.row is not None:
            numbers, mode = index.numbers(indices)
            return partial(_take, x, numbers, index.row % x.ndim, mode, out)
        if index.along is not None:
            at: Any = positions(x.shape, index, indices)
            return partial(_take_flat, x.reshape(-1), at, out.reshape(-1))
    return partial(_gather, x, indices, out, index)


def bind_getitem(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
    """Return the call that takes the elements at an index without operands, whose numbers are known to fit."""
    (x,), (index,) = inputs, attrs
    if index.basic:
        return partial(
            np.copyto, out, x[index.parts if Ellipsis in index.parts else (*index.parts, ...)]
        )
    if index.row is not None and x.flags.c_contiguous and x.dtype == out.dtype and out.size:
        numbers, _ = index.numbers(())
        numbers = numbers.astype(np.intp, copy=False)
        return partial(np.take, x, numbers, index.row % x.ndim, out, "wrap")
    return partial(_gather, x, (), out, index)


def _take(x: Array, numbers: Array, axis: int, mode: str, out: Array) -> None:
    if mode == "raise" and numbers.size > FEW:
        check_numbers(numbers, x.shape, axis)
        mode = "wrap"  # now the same, and without NumPy's copy of `out`
    numbers = numbers.astype(np.intp, copy=False)
    try:
        np.take(x, numbers, axis, out, mode)  # type: ignore[call-overload]
    except IndexError:
        check_numbers(numbers, x.shape, axis)
        raise no_element(numbers.flat[0], x.shape, axis) from None


def _take_flat(x: Array, at: Callable[[], Array], out: Array) -> None:
    np.take(x, at().reshape(-1), None, out, "wrap")


def _gather(x: Array, indices: Sequence[Array], out: Array | None, index: Any) -> Array | None:
    try:
        found = x[index.filled([None, *indices], x.shape)]
    except IndexingError:
        raise
    except IndexError as error:
        raise IndexingError(f"index {index!r} of a value of shape {x.shape}: {error}.") from None
    if out is None:
        return found
    out[...] = found
    return None


def positions(
    shape: Sequence[int], index: Any, indices: Sequence[Array]
) -> Callable[[], Array] | None:
    """Return a call for the flat places of the elements of an index, or ``None`` where this has no such call.

    Parameters
    ----------
    shape
        That of the value.
    indices
        The operands of the index.
    """
    if _masked(indices) or (index.row is None and index.along is None):
        return None
    numbers, mode = index.numbers(indices)
    ndim = len(shape)
    if index.row is not None:
        axis = index.row % ndim
        behind = prod(shape[axis + 1 :])
        first = np.arange(prod(shape[:axis])) * (shape[axis] * behind)
        grid = first.reshape(-1, *[1] * (numbers.ndim + 1)) + np.arange(behind)
        wanted: tuple[int, ...] = (*numbers.shape, 1)
    else:
        axis = index.along.axis % numbers.ndim
        behind = prod(shape[axis + 1 :])
        lengths = [
            *(numbers.shape if index.along.short else shape[: numbers.ndim]),
            *shape[numbers.ndim :],
        ]
        lengths[axis] = 1
        grid = np.zeros((), np.intp)
        for i, n in enumerate(lengths):
            step = np.arange(n) * prod(shape[i + 1 :])
            grid = grid + step.reshape(-1, *[1] * (ndim - 1 - i))
        wanted = (*numbers.shape, *[1] * (ndim - numbers.ndim))
    grid = grid.astype(np.intp, copy=False)

    def at() -> Array:
        found = numbers_in(numbers, mode, shape, axis)
        if mode == "raise" and found.size and found.min() < 0:
            found = np.where(found < 0, found + shape[axis], found)
        return grid + found.reshape(wanted) * behind

    return at


def adder(
    x: Any, index: Any, indices: Sequence[Any], shape: Sequence[int]
) -> Callable[[Any], None]:
    """Return a call that adds `x` to a value at an index, as often as it names a place.

    It takes the value, in one piece, which may have a wider dtype.
    """
    at = positions(shape, index, indices)
    whole = _part_shape(shape, index, indices)
    once = index.along is None and all(one.dtype.kind == "b" for one in index.arrays(indices))

    def add(target: Any) -> None:
        if once:  # a mask names no place twice
            target[index.filled([None, *indices], shape)] += x
            return
        if at is None:
            key = index.filled([None, *indices], shape)
            np.add.at(target, key, x.astype(target.dtype, copy=False))
            return
        flat = at()
        part = flat.shape if whole is None else whole
        values = np.broadcast_to(x, part).astype(target.dtype, copy=False)
        np.add.at(target.reshape(-1), flat.reshape(-1), values.reshape(-1))

    return add


def _part_shape(
    shape: Sequence[int], index: Any, indices: Sequence[Array]
) -> tuple[int, ...] | None:
    """Return the shape of a part whose places are counted here; ``None`` for that of the places."""
    if index.row is None:
        return None
    axis, numbers = index.row % len(shape), index.numbers(indices)[0]
    return (*shape[:axis], *numbers.shape, *shape[axis + 1 :])


def _masked(indices: Sequence[Any]) -> bool:
    return any(one.dtype.kind == "b" for one in indices)


def bind_rows(
    terms: Sequence[tuple[Any, Any, Sequence[Any]]], out: Any
) -> Callable[[], None] | None:
    """Return the call that adds up short floats that are all rows along one axis of zeros.

    Return ``None`` where another way is needed, or is as fast. Each term has its rows, its index and
    the operands of that.
    """
    wide = WIDER.get(out.dtype.char)
    axes = {
        None if index is None or index.row is None else index.row % out.ndim
        for _, index, _ in terms
    }
    if wide is None or len(axes) != 1 or None in axes or not out.size:
        return None
    axis: int = axes.pop()  # type: ignore[assignment]
    if sum(x.size for x, _, _ in terms) * 4 > out.size:
        return None
    before, length, behind = prod(out.shape[:axis]), out.shape[axis], prod(out.shape[axis + 1 :])
    result = out.reshape(before, length, behind)

    def in_range(numbers: Array, mode: str) -> Array:
        return numbers_in(numbers, mode, out.shape, axis).reshape(-1)

    def add() -> None:
        out.fill(0)
        numbers = np.concatenate([in_range(*index.numbers(indices)) for _, index, indices in terms])
        if not numbers.size:
            return
        rows, place = np.unique(
            np.where(numbers < 0, numbers + length, numbers), return_inverse=True
        )
        values = np.concatenate(
            [x.astype(wide).reshape(before, -1, behind) for x, _, _ in terms], axis=1
        )
        total = np.zeros((before, rows.size, behind), wide)
        first = np.arange(before).reshape(-1, 1, 1) * (rows.size * behind)
        flat = first + place.reshape(1, -1, 1) * behind + np.arange(behind)
        np.add.at(total.reshape(-1), flat.reshape(-1), values.reshape(-1))
        result[:, rows] = total

    return add
