"""Kernels of sliding windows, and of the sum of their elements at their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

from numpy.lib.stride_tricks import sliding_window_view

from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER
from reactgrad.backend.numpy._views import copied


def register(xp: Any, kind: str) -> None:
    """Register the kernels of a namespace whose functions take ``out`` as NumPy's do."""

    def bind_sum(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (g,), (window, axes) = inputs, attrs
        places = prod([g.shape[axis] for axis in axes])
        by_place = len(set(axes)) == len(axes) and places < prod(window)
        pairs = window_keys(g.shape, window, axes) if by_place else sum_keys(g.shape, window, axes)
        wide = WIDER.get(out.dtype.char) if out.dtype.char == "e" or len(pairs) > ALONE else None
        total = out if wide is None else xp.empty(out.shape, wide)
        # Of one place of the window, the axes that it slides along come last, in their order.
        seen = xp.moveaxis(total, axes, range(-len(axes), 0)) if by_place and axes else total
        steps: list[Callable[[], object]] = [partial(total.fill, 0)]
        for target, source in pairs:
            part = seen[target]
            steps.append(partial(xp.add, part, g[source], part))
        if wide is not None:
            steps.append(partial(xp.copyto, out, total, "same_kind"))
        return InTurn(*steps)

    register_kernel("windows", kind, copied(xp, sliding_window_view))
    register_binder("window_sum", kind, bind_sum)


def sum_keys(
    shape: Sequence[int], window: Sequence[int], axes: Sequence[int]
) -> list[tuple[Any, Any]]:
    """Return the indices of parts of the sum, and of the elements of all windows that are added to them.

    There is one pair for each place in the window.
    """
    ndim = len(shape) - len(window)
    found = []
    for place in product(*map(range, window)):
        start = [0] * ndim
        for at, axis in zip(place, axes, strict=True):
            start[axis] += at
        target = [
            slice(start[i], start[i] + shape[i]) if i in axes else slice(None) for i in range(ndim)
        ]
        found.append((tuple(target), (Ellipsis, *place)))
    return found


def window_keys(
    shape: Sequence[int], window: Sequence[int], axes: Sequence[int]
) -> list[tuple[Any, Any]]:
    """Return the same, with one pair for each place of the window, for a sum whose `axes` come last."""
    found = []
    for place in product(*[range(shape[axis]) for axis in axes]):
        source: list[Any] = [slice(None)] * len(shape)
        for at, axis in zip(place, axes, strict=True):
            source[axis] = at
        target = [slice(at, at + size) for at, size in zip(place, window, strict=True)]
        found.append(((Ellipsis, *target), tuple(source)))
    return found
