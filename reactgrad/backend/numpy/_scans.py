"""Kernels of running sums, products and extrema, and of linear recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER

Call = Callable[[], object]

# So many elements of a short dtype are added up at once in the long one: what the caches hold.
PIECE: Final = 8192
# So many columns are accumulated row by row, which costs less than NumPy's loop along each of them.
WIDTH: Final = 512
# Up to this length one row of a recurrence is computed as Python numbers, which is faster than arrays of one.
SHORT: Final = 256
# Up to this length a recurrence with results that are not finite is computed once more, element by element.
MENDED: Final = 20000

NAMES: Final = (
    *("cumsum", "cumprod", "cummax", "cummin"),
    *("logcumsumexp", "running_place", "shifted", "led"),
    *("recurrence", "chosen_along", "added_along"),
)


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace that mirrors NumPy."""

    def along(array: Any, axis: int, reverse: bool) -> Any:
        """Return a view whose first axis is the one to go along, in the order to go."""
        view = xp.moveaxis(array, axis, 0)
        return view[::-1] if reverse else view

    def backwards(array: Any, axis: int, reverse: bool) -> Any:
        return xp.flip(array, axis) if reverse else array

    def accumulate(
        ufunc: Any, wide: Any, inputs: Sequence[Any], out: Any, axis: int, reverse: bool
    ) -> Call:
        """Return the call that accumulates, in the dtype `wide`, into `out`."""
        x, out = (backwards(one, axis, reverse) for one in (inputs[0], out))
        wide_rows = xp is np and math.prod(out.shape[axis % out.ndim + 1 :]) >= WIDTH
        if wide == out.dtype and wide_rows and out.size:
            return partial(_down, ufunc, np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0))
        if wide == out.dtype:
            return partial(ufunc.accumulate, x, axis, wide, out)
        scratch = xp.empty(out.shape, wide)
        return InTurn(
            partial(ufunc.accumulate, x, axis, wide, scratch),
            partial(xp.copyto, out, scratch, "same_kind"),
        )

    def careful(ufunc: Any) -> Callable[..., Call]:
        """Return the binder of a running sum or product whose errors in short dtypes must not add up."""

        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            axis, reverse = attrs
            char, length = out.dtype.char, out.shape[axis]
            care = char == "e" or (char in WIDER and length > ALONE)
            (x,) = inputs
            if care and xp is np and out.size > PIECE and _in_one_piece(x) and _in_one_piece(out):
                return partial(_in_strips, ufunc, x, out, axis, reverse, WIDER[char])
            wide = WIDER[char] if care else out.dtype
            return accumulate(ufunc, wide, inputs, out, axis, reverse)

        return bind

    def extremum(ufunc: Any) -> Callable[..., Call]:
        def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
            return accumulate(ufunc, out.dtype, inputs, out, attrs[0], False)

        return bind

    def bind_logcumsumexp(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        wide = np.dtype("f8") if out.dtype.char in "ef" else out.dtype
        return accumulate(xp.logaddexp, wide, inputs, out, attrs[0], False)

    def bind_running_place(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, best = inputs
        axis = attrs[0] % x.ndim
        places = xp.arange(x.shape[axis]).reshape([-1] + [1] * (x.ndim - 1 - axis))

        def find() -> None:
            reached = xp.logical_or(xp.equal(x, best), xp.not_equal(x, x))
            xp.copyto(out, places)
            out[~reached] = 0
            xp.maximum.accumulate(out, axis, None, out)

        return find

    def bind_shifted(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        axis, fill, reverse = attrs
        x, out = along(inputs[0], axis, reverse), along(out, axis, reverse)
        number = xp.asarray(fill).astype(out.dtype)
        return InTurn(partial(xp.copyto, out[1:], x[:-1]), partial(xp.copyto, out[:1], number))

    def bind_led(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        axis, fill = attrs
        x, out = along(inputs[0], axis, False), along(out, axis, False)
        number = xp.asarray(fill).astype(out.dtype)
        return InTurn(partial(xp.copyto, out[1:], x), partial(xp.copyto, out[:1], number))

    def bind_recurrence(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        axis, reverse = attrs
        a, b, result = (along(one, axis, reverse) for one in (*inputs, out))
        wide = np.dtype("f4") if out.dtype.char == "e" else out.dtype
        length = out.shape[axis]
        if not out.size:
            return out.view
        width = out.size // length
        if width == 1 and length <= SHORT and wide.kind == "f" and xp is np:
            return partial(_as_numbers, a.reshape(-1), b.reshape(-1), result.reshape(-1))
        if width * 16 < length:
            run = _in_chunks
        else:
            run = _row_by_row

        def recur() -> None:
            first, second = (xp.ascontiguousarray(one.astype(wide, copy=False)) for one in (a, b))
            found = run(xp, first, second, xp.multiply if xp is np else _zero_wins(xp))
            # Perhaps of 0 times infinity, or a product has left the dtype.
            if xp is np and not np.isfinite(found).all():
                again = _row_by_row if length <= MENDED else run
                found = again(xp, first, second, _zero_wins(xp))
            xp.copyto(result, found, "same_kind")

        return recur

    def bind_add_along(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        g, numbers, _ = inputs
        (axis,) = attrs
        wide = WIDER.get(out.dtype.char, out.dtype)

        def add() -> None:
            total = xp.zeros(out.shape, wide)
            key = list(xp.ogrid[tuple(slice(n) for n in numbers.shape)])
            key[axis] = numbers
            xp.add.at(total, tuple(key), g.astype(wide))
            xp.copyto(out, total, "same_kind")

        return add

    def bind_along(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, numbers = inputs
        (axis,) = attrs

        def take() -> None:
            out[...] = xp.take_along_axis(x, numbers, axis)

        return take

    binders = (
        *(careful(xp.add), careful(xp.multiply), extremum(xp.maximum), extremum(xp.minimum)),
        *(bind_logcumsumexp, bind_running_place, bind_shifted, bind_led),
        *(bind_recurrence, bind_along, bind_add_along),
    )
    for name, binder in zip(NAMES, binders, strict=True):
        register_binder(name, kind, binder)


def _in_one_piece(x: Any) -> bool:
    return x.flags.c_contiguous


def _in_strips(ufunc: Any, x: Any, out: Any, axis: int, reverse: bool, wide: Any) -> None:
    """Accumulate a short dtype in a longer one, a part at a time that the caches hold."""
    at = axis % x.ndim
    length, width = x.shape[at], math.prod(x.shape[at + 1 :])
    columns, result = (one.reshape(-1, length, width) for one in (x, out))
    if reverse:
        columns, result = columns[:, ::-1], result[:, ::-1]
    if width >= WIDTH:
        for part, target in zip(columns, result, strict=True):
            _by_rows(ufunc, part, target, np.empty(width, wide))
        return
    together = PIECE // (length * width)
    if together > 1:
        scratch = np.empty((together, length, width), wide)
        for start in range(0, len(columns), together):
            part = columns[start : start + together]
            found = scratch[: len(part)]
            ufunc.accumulate(part, 1, wide, found)
            np.copyto(result[start : start + together], found, "same_kind")
        return
    scratch = np.empty((max(1, PIECE // width), width), wide)
    for part, target in zip(columns, result, strict=True):
        _in_pieces(ufunc, part, target, scratch)


def _down(ufunc: Any, x: Any, out: Any) -> None:
    """Accumulate many columns at once, row by row: the bits of ``accumulate``."""
    np.copyto(out[0], x[0])
    for before, row, target in zip(out[:-1], x[1:], out[1:], strict=True):
        ufunc(before, row, out=target)


def _by_rows(ufunc: Any, x: Any, out: Any, total: Any) -> None:
    """Do the same in the longer dtype of `total`."""
    first = True
    for row, target in zip(x, out, strict=True):
        if first:
            np.copyto(total, row)
            first = False
        else:
            ufunc(total, row, total)
        np.copyto(target, total, "same_kind")


def _in_pieces(ufunc: Any, x: Any, out: Any, scratch: Any) -> None:
    """Accumulate a few long columns, a piece at a time: the bits of one long piece."""
    total: Any = None
    for start in range(0, len(x), len(scratch)):
        part = x[start : start + len(scratch)]
        found = scratch[: len(part)]
        np.copyto(found, part)
        if start:
            ufunc(total, found[0], found[0])
        ufunc.accumulate(found, 0, scratch.dtype, found)
        total = found[-1].copy()
        np.copyto(out[start : start + len(scratch)], found, "same_kind")


def _zero_wins(xp: Any) -> Callable[[Any, Any, Any], None]:
    """Return a product that is 0 where a factor is 0, even if the other one is infinite or NaN."""

    def multiply(a: Any, b: Any, out: Any) -> None:
        xp.multiply(a, b, out)
        xp.copyto(out, 0, where=xp.isnan(out) & ((a == 0) | (b == 0)))

    return multiply


def _as_numbers(a: Any, b: Any, out: Any) -> None:
    """Compute one row as Python numbers."""
    found, before = [], 0.0
    for factor, term in zip(a.tolist(), b.tolist(), strict=True):
        before = (factor * before if before and factor else 0.0) + term
        found.append(before)
    out[...] = found


def _row_by_row(xp: Any, a: Any, b: Any, multiply: Any) -> Any:
    out = xp.empty_like(b)
    before, first = None, True
    for factor, term, row in zip(a[:, None], b[:, None], out[:, None], strict=True):
        if first:
            row[...] = term
            first = False
        else:
            multiply(factor, before, row)
            xp.add(row, term, row)
        before = row
    return out


def _in_chunks(xp: Any, a: Any, b: Any, multiply: Any) -> Any:
    """Compute long columns: first all chunks of them side by side, from 0, and then what each is given.

    A chunk is about as long as there are chunks, so that the number of calls grows with the root of the length.
    """
    length, rest = b.shape[0], b.shape[1:]
    each = max(1, int(length**0.5))
    count, left = divmod(length, each)
    whole = count * each
    shape = (count, each, *rest)
    factors = xp.moveaxis(a[:whole].reshape(shape), 1, 0)
    terms = xp.moveaxis(b[:whole].reshape(shape), 1, 0)
    local = _row_by_row(xp, factors, terms, multiply)
    products = factors.copy()
    for before, row in pairwise(products):
        multiply(row.copy(), before, row)
    ends = _row_by_row(xp, products[-1], local[-1], multiply)  # the value at the end of each chunk
    given = xp.empty_like(products[:, 1:])
    multiply(products[:, 1:], ends[:-1], given)
    xp.add(local[:, 1:], given, local[:, 1:])
    out = xp.empty_like(b)
    out[:whole] = xp.moveaxis(local, 0, 1).reshape(whole, *rest)
    if left:
        first = b[whole:].copy()
        carried = xp.empty_like(first[0:1])
        multiply(a[whole : whole + 1], out[whole - 1 : whole], carried)
        first[0:1] += carried
        out[whole:] = _row_by_row(xp, a[whole:], first, multiply)
    return out
