"""Kernels of ops that move elements: flip, roll, tile, repeat, and axes grouped in another way.

Each writes straight into ``out``, without an array in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from reactgrad.backend._parts import Key, block_keys, flip_key
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import WIDER
from reactgrad.backend.numpy._views import copied, refilled

# NumPy's copy starts a loop for each innermost row: rows of so many elements are worth it, or so many copies of
# single ones.
LONG, OFTEN = 64, 8


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def bind_roll(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (shifts, axes) = inputs, attrs
        if axes is None:  # as one long row
            if not x.flags.c_contiguous:
                row = xp.empty(x.shape, x.dtype)
                rolled = bind_roll((row,), out, attrs)
                return InTurn(partial(xp.copyto, row, x), rolled)
            x, out, axes = x.reshape(-1), out.reshape(-1), (0,)
        moves = [(out[target], x[source]) for target, source in roll_keys(x.shape, shifts, axes)]
        if len(moves) == 1:
            return partial(xp.copyto, *moves[0])
        return InTurn(*[partial(xp.copyto, *move) for move in moves])

    def bind_tile(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (reps,) = inputs, attrs
        lengths = (1,) * (out.ndim - x.ndim) + x.shape
        reps = (1,) * (out.ndim - len(reps)) + reps
        once, often = [], []
        for rep, n in zip(reps, lengths, strict=True):
            once += [1, n]
            often += [rep, n]
        return partial(xp.copyto, out.reshape(often), x.reshape(once))

    def bind_repeat(
        inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        (x,), (repeats, axis) = inputs, attrs
        at = axis % x.ndim + 1
        often = out.reshape((*x.shape[:at], repeats, *x.shape[at:]))
        inner = prod(x.shape[at:])
        if xp is not np or inner >= LONG or (inner == 1 and repeats >= OFTEN):
            return partial(xp.copyto, often, xp.expand_dims(x, at))
        if inner == 1 and repeats == 2:
            each = [often[(*[slice(None)] * at, i)] for i in range(repeats)]
            return InTurn(*[partial(np.copyto, one, x) for one in each])
        numbers = np.repeat(np.arange(x.shape[at - 1]), repeats)
        return partial(np.take, x, numbers, at - 1, out, "wrap")

    def bind_block(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        keys = block_keys(attrs[0], [x.shape for x in inputs])
        return InTurn(*[partial(xp.copyto, out[keys[i]], x) for i, x in enumerate(inputs)])

    def beside(x: Any, *others: Any) -> None:
        xp.copyto(others[-1], x)

    def resize(x: Any, out: Any, shape: Any) -> None:
        out[...] = xp.resize(x, out.shape) if x.size else 0

    def resize_back(g: Any, x: Any, out: Any) -> None:
        row, total, wide = g.reshape(-1), xp.zeros(out.size, out.dtype), WIDER.get(out.dtype.char)
        if out.size:
            whole = len(row) - len(row) % out.size
            rows = row[:whole].reshape(-1, out.size)
            wider = rows.sum(0, dtype=wide or out.dtype)
            wider[: len(row) - whole] += row[whole:]
            total[...] = wider
        out[...] = total.reshape(out.shape)

    def repeat_numbers(counts: Any, out: Any) -> Any:
        return xp.repeat(xp.arange(len(counts)), counts)

    def trimmed(x: Any, out: Any, axis: int, ends: str) -> Any:
        others = tuple([i for i in range(x.ndim) if i != axis])
        found = (x != 0).any(others)
        so_far = xp.cumsum(found)
        kept = so_far[-1:] > 0  # nothing, where all are zero
        if "f" in ends:
            kept = kept & (so_far > 0)
        if "b" in ends:
            kept = kept & (xp.cumsum(found[::-1])[::-1] > 0)
        return xp.nonzero(kept)[0]

    register_kernel("flip", kind, copied(xp, lambda x, axes: x[flip_key(x.ndim, axes)]))
    register_binder("block", kind, bind_block)
    register_binder("roll", kind, bind_roll)
    register_binder("tile", kind, bind_tile)
    register_binder("repeat", kind, bind_repeat)
    register_kernel("repeat_numbers", kind, repeat_numbers)
    register_kernel("resize", kind, resize)
    register_kernel("resize_back", kind, resize_back)
    register_kernel("trimmed", kind, trimmed)
    register_kernel("broadcast_beside", kind, beside)
    for name in ("regroup", "at_least", "one_axis"):
        register_kernel(name, kind, partial(refilled, xp))


def roll_keys(
    shape: Sequence[int], shifts: Sequence[int], axes: Sequence[int]
) -> list[tuple[Key, Key]]:
    """Return the indices of the blocks that a roll moves: of each the new and the old place."""
    total = [0] * len(shape)
    for shift, axis in zip(shifts, axes, strict=True):
        total[axis] += shift
    choices = []
    for shift, n in zip(total, shape, strict=True):
        by = shift % n if n else 0
        whole = [(slice(None), slice(None))]
        halves = [(slice(by, None), slice(None, n - by)), (slice(None, by), slice(n - by, None))]
        choices.append(halves if by else whole)
    return [
        (tuple([new for new, _ in pairs]), tuple([old for _, old in pairs]))
        for pairs in product(*choices)
    ]
