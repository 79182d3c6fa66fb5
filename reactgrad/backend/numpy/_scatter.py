"""Elements taken by their numbers, and contributions added at them.

NumPy adds at places named by one flat array of integers five to ten times faster than at places named by
several, so places are counted through here. Short floats are added up in float64, in memory only for those
rows that get something: a look-up in a large table costs one array of zeros and not several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._parts import check_numbers, no_element, numbers_in
from reactgrad.backend.numpy._sums import WIDER
from reactgrad.scheduler import safe_repr

Array = np.ndarray[Any, Any]

# So few numbers NumPy checks by itself in less time than two reductions take.
FEW = 64
# Of places, not more are kept from one run to the next: 8 MiB.
MOST_KEPT = 1 << 20


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
        if (
            index.along is not None
        ):  # NumPy itself is as fast for several arrays, but not for a grid of them
            at = _along(x.shape, index.along, indices[0])
            return partial(_take_flat, x.reshape(-1), at.flat, out.reshape(-1))
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
        raise IndexingError(
            f"index {safe_repr(index)} of a value of shape {x.shape}: {error}."
        ) from None
    if out is None:
        return found
    out[...] = found
    return None


class Places(NamedTuple):
    """The shape of the part at an index, and a call for the flat place of each of its elements.

    The places broadcast to the part, with the axes behind the indexed ones as one.
    """

    shape: tuple[int, ...]
    flat: Callable[[], Array]


def places(shape: Sequence[int], index: Any, indices: Sequence[Array]) -> Places | None:
    """Return the places of the part at an index, or ``None`` where they are not counted through here.

    Parameters
    ----------
    shape
        That of the value.
    indices
        The operands of the index.
    """
    if _masked(indices):
        return None
    if index.row is not None:
        return _of_rows(shape, index.row % len(shape), *index.numbers(indices))
    if index.along is not None:
        return _along(shape, index.along, indices[0])
    return _of_several(shape, index, indices) if index.first else None


def _counted(numbers: Array, mode: str, shape: Sequence[int], axis: int) -> Array:
    """Return `numbers` as indices of an axis that are not negative."""
    found = numbers_in(numbers, mode, shape, axis)
    if mode == "raise" and found.size and found.min() < 0:
        found = np.where(found < 0, found + shape[axis], found)
    return found


def _memory(shape: tuple[int, ...]) -> Array | None:
    """Return memory that a call may use again and again, since the system gives new memory slowly."""
    return np.empty(shape, np.intp) if prod(shape) <= MOST_KEPT else None


def _of_rows(shape: Sequence[int], axis: int, numbers: Array, mode: str) -> Places:
    behind = prod(shape[axis + 1 :])
    first = np.arange(prod(shape[:axis])) * (shape[axis] * behind)
    grid = first.reshape(-1, *[1] * (numbers.ndim + 1)) + np.arange(behind)
    steps = _memory((*numbers.shape, 1))
    total = _memory(np.broadcast_shapes(grid.shape, (*numbers.shape, 1)))

    def flat() -> Array:
        found = _counted(numbers, mode, shape, axis)[..., None]
        return np.add(grid, np.multiply(found, behind, out=steps), out=total)

    return Places((*shape[:axis], *numbers.shape, *shape[axis + 1 :]), flat)


def _along(shape: Sequence[int], how: Any, numbers: Array) -> Places:
    ndim, axis = len(shape), how.axis % numbers.ndim
    lengths = [*(numbers.shape if how.short else shape[: numbers.ndim]), *shape[numbers.ndim :]]
    lengths[axis] = 1
    grid = np.zeros((), np.intp)
    for i, n in enumerate(lengths):
        step = np.arange(n) * prod(shape[i + 1 :])
        grid = grid + step.reshape(-1, *[1] * (ndim - 1 - i))
    wanted, behind = (*numbers.shape, *[1] * (ndim - numbers.ndim)), prod(shape[axis + 1 :])
    part = np.broadcast_shapes(grid.shape, wanted)
    steps, total = _memory(wanted), _memory(part)

    def flat() -> Array:
        found = _counted(numbers, how.mode, shape, axis).reshape(wanted)
        return np.add(grid, np.multiply(found, behind, out=steps), out=total)

    return Places(part, flat)


def _of_several(shape: Sequence[int], index: Any, indices: Sequence[Array]) -> Places:
    rest = shape[index.first :]
    terms: list[tuple[Array, str, int, Array | None]] = []
    for axis, part in enumerate(index.parts[: index.first]):
        operand = hasattr(part, "number")
        numbers = indices[part.number - 1] if operand else np.asarray(part)
        terms.append((numbers, part.mode if operand else "raise", axis, _memory(numbers.shape)))
    before = np.broadcast_shapes(*[one.shape for one, *_ in terms])
    sums, grid = _memory(before), np.arange(prod(rest))
    total = _memory((*before, grid.size))

    def flat() -> Array:
        found: Any = 0
        for numbers, mode, axis, steps in terms:
            each = _counted(numbers, mode, shape, axis)
            found = np.add(found, np.multiply(each, prod(shape[axis + 1 :]), out=steps), out=sums)
        return found if grid.size == 1 else np.add(found[..., None], grid, out=total)

    return Places((*before, *rest), flat)


def adder(
    x: Any, index: Any, indices: Sequence[Any], shape: Sequence[int]
) -> Callable[[Any], None]:
    """Return a call that adds `x` to a value at an index, as often as it names a place.

    It takes the value, in one piece, which may have a wider dtype.
    """
    at = places(shape, index, indices)
    once = index.along is None and all(one.dtype.kind == "b" for one in index.arrays(indices))

    def add(target: Any) -> None:
        if once:  # a mask names no place twice
            target[index.filled([None, *indices], shape)] += x
        elif at is None:
            key = index.filled([None, *indices], shape)
            np.add.at(target, key, x.astype(target.dtype, copy=False))
        else:
            values = np.broadcast_to(x, at.shape).astype(target.dtype, copy=False)
            np.add.at(target.reshape(-1), at.flat().reshape(-1), values.reshape(-1))

    return add


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
        parts = [x.reshape(before, -1, behind) for x, _, _ in terms]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        numbers = np.where(numbers < 0, numbers + length, numbers)
        order = numbers.argsort(kind="stable")
        ordered = numbers[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        counts = np.diff(starts, append=numbers.size)
        alone = counts == 1
        # A row that nothing else is added to has its own bits in any dtype.
        single = starts[alone]
        result[:, ordered[single]] = values[:, order[single]]
        if single.size == numbers.size:
            return
        many = np.flatnonzero(~alone)
        members = order[np.repeat(~alone, counts)]
        place = np.repeat(np.arange(many.size), counts[many])
        total = np.zeros((before, many.size, behind), wide)
        first = np.arange(before).reshape(-1, 1, 1) * (many.size * behind)
        flat = first + place.reshape(1, -1, 1) * behind + np.arange(behind)
        np.add.at(total.reshape(-1), flat.reshape(-1), values[:, members].astype(wide).reshape(-1))
        result[:, ordered[starts[many]]] = total

    return add
