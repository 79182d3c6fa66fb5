"""Kernels that put a border around a value, and that add a border up into what it follows from.

All modes are a sequence of copies from one part of the result to another, after NumPy's (``np.pad``); the second
kernel goes through the same sequence backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import WIDER


class Move(NamedTuple):
    """A copy along one axis: ``out[target] = out[source]``, or ``2 * out[edge] - out[source]``."""

    target: slice
    source: slice
    edge: slice | None = None


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def bind_pad(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (widths, mode, odd, constants) = inputs, attrs
        centre = tuple(
            [slice(left, left + n) for (left, _), n in zip(widths, x.shape, strict=True)]
        )
        steps: list[Callable[[], object]] = []
        plain = mode in ("constant", "empty")
        if plain and not constants and x.size < out.size:
            steps.append(partial(out.fill, 0))
        steps.append(partial(xp.copyto, out[centre], x))
        for axis, ((left, right), n) in enumerate(zip(widths, x.shape, strict=True)):
            # Along this axis the border is as long as those before have made the value.
            area = out[(*[slice(None)] * (axis + 1), *centre[axis + 1 :])]
            if plain and constants:
                before, after = constants[axis]
                steps.append(partial(area[_along(axis, slice(None, left))].fill, before))
                steps.append(partial(area[_along(axis, slice(left + n, None))].fill, after))
            elif not plain and n:
                for move in moves(n, left, right, mode, odd):
                    steps += _copied(xp, area, axis, move)
        return InTurn(*steps)

    def bind_back(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (g,), (widths, mode, odd) = inputs, attrs
        centre = tuple(
            [slice(left, left + n) for (left, _), n in zip(widths, out.shape, strict=True)]
        )
        copy: Any = xp.copyto  # its types want `casting` by keyword
        if mode in ("constant", "empty") or g.size == out.size:
            return partial(xp.copyto, out, g[centre])
        total = xp.empty(g.shape, WIDER.get(out.dtype.char, out.dtype))
        steps: list[Callable[[], object]] = [partial(xp.copyto, total, g)]
        for axis in reversed(range(out.ndim)):
            area = total[(*[slice(None)] * (axis + 1), *centre[axis + 1 :])]
            left, right = widths[axis]
            plan = [*moves(out.shape[axis], left, right, mode, odd)]
            steps += [partial(_added, xp, area, axis, move) for move in reversed(plan)]
        steps.append(partial(copy, out, total[centre], "same_kind"))
        return InTurn(*steps)

    register_binder("pad", kind, bind_pad)
    register_binder("pad_back", kind, bind_back)


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * axis, part)


def _copied(xp: Any, area: Any, axis: int, move: Move) -> list[Callable[[], object]]:
    target, source = area[_along(axis, move.target)], area[_along(axis, move.source)]
    if move.edge is None:
        return [partial(xp.copyto, target, source)]
    edge = area[_along(axis, move.edge)]
    if area.dtype.kind == "b":  # NumPy counts: true where twice the edge and the element differ

        def differ() -> None:
            target[...] = 2 * edge - source

        return [differ]
    return [
        partial(xp.subtract, edge, source, target),
        partial(xp.add, target, edge, target),
    ]


def _added(xp: Any, area: Any, axis: int, move: Move) -> None:
    target, source = area[_along(axis, move.target)], area[_along(axis, move.source)]
    if move.edge is not None:
        edge = area[_along(axis, move.edge)]
        xp.add(edge, 2 * xp.add.reduce(target, axis, keepdims=True), edge)
        xp.subtract(source, target, source)
    elif source.shape == target.shape:
        xp.add(source, target, source)
    else:
        xp.add(source, xp.add.reduce(target, axis, keepdims=True), source)


def moves(n: int, left: int, right: int, mode: str, odd: bool) -> Iterator[Move]:
    """Yield the copies that fill a border of these widths beside `n` elements, in their order."""
    first, end, length = left, left + n, left + n + right
    if mode == "edge" or (mode in ("reflect", "symmetric") and n == 1):
        if left:
            yield Move(slice(0, first), slice(first, first + 1))
        if right:
            yield Move(slice(end, length), slice(end - 1, end))
        return
    beside = mode == "symmetric"  # the element at the edge is in the border, too
    while first > 0 or end < length:
        have = end - first
        if mode == "wrap":
            have = have // n * n
            before, after = first, length - end
            if before:
                count = min(have, before)
                yield Move(slice(first - count, first), slice(first + have - count, first + have))
            if after:
                count = min(have, after)
                yield Move(slice(end, end + count), slice(end - have, end - have + count))
            first, end = first - min(have, before), end + min(have, after)
            continue
        most = have // n * n if beside else (have - 1) // (n - 1) * (n - 1)
        if first > 0:
            count = min(most, first)
            low = first if beside else first + 1
            edge = slice(first, first + 1) if odd else None
            yield Move(slice(first - count, first), _reversed(low, low + count), edge)
            first -= count
        if end < length:
            count = min(most, length - end)
            high = end if beside else end - 1
            edge = slice(end - 1, end) if odd else None
            yield Move(slice(end, end + count), _reversed(high - count, high), edge)
            end += count


def _reversed(low: int, high: int) -> slice:
    return slice(high - 1, low - 1 if low else None, -1)
