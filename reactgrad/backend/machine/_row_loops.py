"""Softmax and its kin by the loops of the driver: two or three passes over each row; see ``_row_loops.h``.

The binders of ``blocks._rows`` for the CPU are replaced by binders that take the loops for float32 and float64, where
there is a driver: for all layouts and sizes, with ``jit`` or without, so that a row has the same bits everywhere. What
has no loop, half floats among it, is bound as before, and differs by a few units in the last place.

An element of a loop is a *block*: the elements that lie between two steps along the axes before those that are reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from reactgrad.backend._registry import Binder, find_binder, register_binder
from reactgrad.backend.blocks import _strips
from reactgrad.backend.blocks._threads import for_each, get_num_threads
from reactgrad.backend.machine._code import row
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._loop_call import LoopCall
from reactgrad.backend.machine._loops import address_of

Attrs = tuple[Any, ...]
Call = Callable[[], object]

# In additions in the cache, as the costs of ``blocks._blockwise``.
_COST: Final = 6.0
# Columns of a wide block are shared among threads by so many.
_COLUMNS: Final = 128


class _Places(NamedTuple):
    """The order of the elements of a C-contiguous array: `outer` blocks of `length` rows of `inner` columns."""

    outer: int
    length: int
    inner: int


@lru_cache(4096)
def _places(shape: tuple[int, ...], axes: tuple[int, ...]) -> _Places | None:
    """Return where the elements lie that a kernel over these axes takes together.

    ``None`` if other axes lie between them.
    """
    long = [i for i, n in enumerate(shape) if n != 1]
    reduced = [i for i in long if i in axes]
    if not reduced:
        return _Places(prod(shape), 1, 1)
    first, last = reduced[0], reduced[-1] + 1
    if any(i not in axes for i in long if first < i < last):
        return None
    return _Places(prod(shape[:first]), prod(shape[first:last]), prod(shape[last:]))


class _OnThreads:
    """A loop over blocks that several threads share."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def __call__(self) -> None:
        for_each(_call, self._calls, get_num_threads())


def _call(one: Call) -> None:
    one()


def _loop_calls(
    loop: int, arrays: Sequence[Any], places: _Places, *, several: bool
) -> list[LoopCall]:
    """Return the calls of a loop for C-contiguous arrays, of which the last one is the result.

    An array is as large as the others, or has one row in each block.
    """
    driver = find_driver()
    outer, length, inner = places
    size = max([one.size for one in arrays])
    each, wide = outer, inner
    if several:
        each = max(1, _strips.settings.block // (length * inner))
        if outer == 1 and inner > _COLUMNS:
            wide = _COLUMNS * max(1, _strips.settings.block // (length * _COLUMNS))
    calls = []
    steps = [one.itemsize * inner * (length if one.size == size else 1) for one in arrays]
    begins = [address_of(one) for one in arrays]
    for column in range(0, inner, wide):
        block = np.array((length, inner, min(wide, inner - column)), np.int64)
        for first in range(0, outer, each):
            count = min(each, outer - first)
            addresses = [
                begin + first * step + column * one.itemsize
                for begin, step, one in zip(begins, steps, arrays, strict=True)
            ]
            code = row(loop, address_of(block), count, addresses, steps, count * steps[-1])
            # The numbers of the block are no array that a fork may have another of.
            calls.append(LoopCall(driver.play, (*arrays, (block,)), code))
    return calls


def _fits(one: Any, dtype: Any) -> bool:
    return one.dtype == dtype and one.flags.c_contiguous and one.flags.aligned


def _bind(name: str, otherwise: Binder, inputs: Sequence[Any], out: Any, attrs: Attrs) -> Call:
    loop = _loop(name, out.dtype.char) if type(out) is np.ndarray and out.size else None
    if loop is None or any(type(one) is not np.ndarray for one in inputs):
        return otherwise(inputs, out, attrs)
    reduces = name in _REDUCING
    shape = inputs[0].shape if reduces else out.shape
    if not prod(shape) or (reduces and not shape):
        return otherwise(inputs, out, attrs)
    axis = attrs[0]
    axes = tuple(range(len(shape))) if axis is None else normalize_axis_tuple(axis, len(shape))
    places = _places(shape, axes)
    fits = _fits(out, out.dtype) and all(
        one.shape == shape and _fits(one, out.dtype) for one in inputs
    )
    if places is None or not fits:
        return partial(_arranged, loop, axes, shape, reduces, inputs, out)
    return _step(loop, [*inputs, out], places)


def _step(loop: int, arrays: Sequence[Any], places: _Places) -> Call:
    size = prod(places)
    several = size >= _strips.settings.threshold and size * _COST >= _strips.settings.effort
    calls = _loop_calls(loop, arrays, places, several=several)
    return calls[0] if len(calls) == 1 else _OnThreads(calls)


def _arranged(
    loop: int,
    axes: tuple[int, ...],
    shape: tuple[int, ...],
    reduces: bool,
    inputs: Sequence[Any],
    out: Any,
) -> None:
    """Compute with copies of operands that lie otherwise, broadcast to the result, or have another dtype."""
    places, order = _places(shape, axes), tuple(range(len(shape)))
    if places is None:  # the axes that are reduced move to the end
        order = (*[i for i in order if i not in axes], *sorted(axes))
        kept = len(order) - len(axes)
        places = _places(tuple([shape[i] for i in order]), tuple(range(kept, len(order))))
        assert places is not None
    copies = [
        np.ascontiguousarray(np.broadcast_to(one, shape).transpose(order), out.dtype)
        for one in inputs
    ]
    # Results of rows have the order of the other axes, whatever was moved.
    found = np.empty(out.shape if reduces else copies[0].shape, out.dtype)
    _step(loop, [*copies, found], places)()
    out[...] = found if reduces else found.transpose(np.argsort(order))


def _loop(name: str, dtype: str) -> int | None:
    driver = find_driver()
    return None if driver is None else driver.LOOPS.get(f"{name} {dtype}")


# These have a result for each row.
_REDUCING: Final = frozenset(["logsumexp"])


def use_row_loops(names: Iterable[str]) -> None:
    """Bind these ops, which have binders, to their loops where there are some."""
    for name in names:
        register_binder(name, "cpu", partial(_bind, name, find_binder(name, "cpu")))


use_row_loops(("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"))
