"""Sums of short floats that stay accurate along any axis.

NumPy sums the innermost axis in pairs, and all other axes row by row: then the rounding errors of
float32 grow with the number of rows, and half floats stop growing at 2048. Here many rows are added
up by chunks of few rows, and the sums of the chunks in float64. What NumPy sums accurately, it sums
here, too, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import groupby, pairwise
from math import prod
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from reactgrad.backend.numpy._in_turn import InTurn

# So many float32 numbers of one sign, added one by one, are within 1e-6 of their sum; half as many within 5e-7.
ALONE: Final = 64
CHUNK: Final = 32

# Shorter rows are joined to rows of so many elements: NumPy starts a loop for each row.
WIDE: Final = 256

# On so short rows a sum in float64 costs no more than one in float32; so few rows need no float64.
NARROW, FEW = 16, 512

# Up to so many real numbers NumPy adds one by one along any axis.
SHORT: Final = 7

# In these dtypes such sums are added up.
WIDER: Final = {"e": np.dtype("f8"), "f": np.dtype("f8"), "F": np.dtype("c16")}

# `Any`, because NumPy's stubs take the arguments by keyword only.
_reduce: Any = np.add.reduce


@lru_cache(4096)
def axes_of(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return the axes that a reduction with this `axis` reduces, none of them negative."""
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


@lru_cache(4096)
def axes_to(
    shape: tuple[int, ...], result: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes over which a sum gives `result`, and its shape with them kept at length 1.

    Examples
    --------
    >>> axes_to((4, 3, 8), (1, 8))
    ((0, 1), (1, 1, 8))
    """
    new = len(shape) - len(result)
    stretched = [new + i for i, n in enumerate(result) if n == 1 != shape[new + i]]
    return (*range(new), *stretched), (1,) * new + result


def sum_step(x: Any, axis: Any, out: Any) -> Callable[[], object] | None:
    """Return the call that sums `x` into `out` with care, or ``None`` where NumPy's own sum will do.

    `axis` is an integer, several, or ``None`` for all; `out` may keep the axes at length 1, or lack them.
    """
    if x.dtype.char not in WIDER:
        return None
    axes = axes_of(axis, x.ndim)
    if not _needs_care(x, axes):
        return None
    kept = out.reshape([1 if i in axes else n for i, n in enumerate(x.shape)])
    return _bound(x, axes, kept) or partial(_sums, x, axes, kept)


def is_short(x: Any, axis: Any, out: Any) -> bool:
    """Return whether `x` is summed over many rows of two to seven elements, see ``slices_step``."""
    if out.size < FEW or x.dtype.char not in "fd" or x.dtype != out.dtype:
        return False
    axes = axes_of(axis, x.ndim)
    if len(axes) != 1:
        return False
    (at,) = axes
    return 2 <= x.shape[at] <= SHORT and prod(x.shape[at + 1 :]) < NARROW


def slices_step(x: Any, axis: Any, out: Any) -> Callable[[], object] | None:
    """Return the calls that sum many rows of two to seven elements, or ``None`` for another sum.

    NumPy starts a loop for each such row. It adds their elements one by one to 0: the same bits come from adding
    all first elements to 0, all second ones to these, and so on, five to ten times faster.
    """
    if not is_short(x, axis, out):
        return None
    (at,) = axes_of(axis, x.ndim)
    first, *rest = [x[(*[slice(None)] * at, i)] for i in range(x.shape[at])]
    result = out.reshape(first.shape)
    zero = np.zeros((), x.dtype)
    return InTurn(
        partial(np.add, first, zero, result),
        *[partial(np.add, result, one, result) for one in rest],
    )


def _bound(x: Any, axes: tuple[int, ...], out: Any) -> Callable[[], object] | None:
    """Return the calls for an array of few columns or few rows, bound to scratch memory, or ``None``."""
    first, last = min(axes), max(axes) + 1
    if last - first != len(axes) or not x.flags.c_contiguous or x.dtype != out.dtype:
        return None
    many, length, width = prod(x.shape[:first]), prod(x.shape[first:last]), prod(x.shape[last:])
    columns, result = x.reshape(many, length, width), out.reshape(many, width)
    if x.dtype.char == "e" or (width < NARROW and length <= 4 * FEW):
        total = np.empty(result.shape, WIDER[x.dtype.char])
        return InTurn(
            partial(_reduce, columns, 1, total.dtype, total),
            partial(np.copyto, result, total, "same_kind"),
        )
    if length > FEW:
        return None
    each = CHUNK // 2
    count, rest = divmod(length, each)
    sums = np.empty((many, -(-length // each), width), x.dtype)
    chunks = columns[:, : count * each].reshape(many, count, each, width)
    calls = [partial(_reduce, chunks, 2, None, sums[:, :count])]
    if rest:
        calls.append(partial(_reduce, columns[:, count * each :], 1, None, sums[:, count]))
    return InTurn(*calls, partial(_reduce, sums, 1, None, result))


def sum_into(x: Any, axes: tuple[int, ...], out: Any) -> None:
    """Sum `x` over `axes`, not negative, into `out`, which keeps them at length 1."""
    if _needs_care(x, axes):
        _sums(x, axes, out)
    else:
        _reduce(x, axes, None, out, True)


def _needs_care(x: Any, axes: tuple[int, ...]) -> bool:
    return x.dtype.char in WIDER and _rows_added(x.dtype.char, x.shape, x.strides, axes)


@lru_cache(4096)
def _rows_added(
    char: str, shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> bool:
    """Return whether NumPy would add so many rows one by one that errors could be seen."""
    if 0 in shape:
        return False
    summed = [i for i in axes if shape[i] > 1]
    if prod([shape[i] for i in summed]) <= (1 if char == "e" else ALONE):
        return False
    kept = [strides[i] for i, n in enumerate(shape) if n > 1 and i not in axes]
    # In pairs NumPy sums what is one row in memory, inside of all kept axes.
    inner = sorted([(strides[i], shape[i]) for i in summed])
    joined = all(one[0] * one[1] == other[0] for one, other in pairwise(inner))
    return not joined or inner[0][0] <= 0 or any(step < inner[-1][0] for step in kept)


def _sums(x: Any, axes: tuple[int, ...], out: Any) -> None:
    order = sorted(range(x.ndim), key=lambda i: -x.strides[i])  # as it lies in memory
    ordered, summed = x.transpose(order), [i in axes for i in order]
    result = out.transpose(order)
    wide = WIDER[x.dtype.char]
    if x.dtype.char == "e" or not ordered.flags.c_contiguous or out.dtype != x.dtype:
        total = _reduce(x, axes, wide, None, True)
        np.copyto(out, total, casting="same_kind")
        return
    # Axes side by side that are summed, or kept, together; without those of length 1.
    groups = [
        (both, prod([n for n, _ in group]))
        for both, group in groupby(
            [(n, s) for n, s in zip(ordered.shape, summed, strict=True) if n > 1],
            key=lambda one: one[1],
        )
    ]
    values = ordered.reshape([n for _, n in groups])
    while groups:
        both, length = groups.pop()
        if not both:
            continue
        lead, rest = values.shape[: len(groups)], values.shape[len(groups) + 1 :]
        width = prod(rest)
        columns = values.reshape(prod(lead), length, width)
        values = (_in_pairs if width == 1 else _by_chunks)(columns, wide)
        values = values.reshape(*lead, *rest)
    np.copyto(result, values.reshape(result.shape), casting="same_kind")


def _in_pairs(x: Any, wide: Any) -> Any:
    return _reduce(x, 1)


def _by_chunks(x: Any, wide: Any) -> Any:
    """Return the sums over the middle one of three axes."""
    many, length, width = x.shape
    beside = max(1, WIDE // width)  # rows that are taken as one
    each = CHUNK * beside
    whole = length - length % each
    total = _reduce(x[:, whole:], 1, wide)
    if whole:
        chunks = x[:, :whole].reshape(many, whole // each, CHUNK, beside * width)
        sums = _reduce(_reduce(chunks, 2), 1, wide)
        total += _reduce(sums.reshape(many, beside, width), 1)
    return total
