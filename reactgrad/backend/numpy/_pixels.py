"""Kernels that move pixels: patches as columns and back, and channels that become space.

An axis that is split in two is a view, in any array: so all of them write into the result itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._columns import Window, steps
from reactgrad.backend.numpy._in_turn import InTurn

Call = Callable[[], object]
Place = tuple[Any, ...]

NAMES = ("unfold", "fold", "fold_like", "pixel_shuffle", "pixel_unshuffle")


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace that mirrors NumPy."""

    def bind_unfold(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), window = inputs, Window(*attrs)
        patches = out.reshape(_split(x.shape, window))
        calls: list[Call] = []
        if any(map(any, window.pads)):
            calls.append(partial(out.fill, 0))
        for at, pixels in _places(x.shape, window):
            calls.append(partial(xp.copyto, patches[at], x[pixels]))
        return InTurn(*calls)

    def bind_fold(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        window = Window(*attrs[-4:])
        patches = inputs[0].reshape(_split(out.shape, window))
        dtype = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
        total = out if out.dtype == dtype else xp.empty(out.shape, dtype)
        calls: list[Call] = [partial(total.fill, 0)]
        for at, pixels in _places(out.shape, window):
            place = total[pixels]
            calls.append(partial(xp.add, place, patches[at], place))
        if total is not out:
            calls.append(partial(xp.copyto, out, total, "same_kind"))
        return InTurn(*calls)

    def bind_shuffle(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (r,) = inputs, attrs
        *lead, channels, h, w = x.shape
        within = x.reshape(*lead, channels // (r * r), r, r, h, w)
        return partial(xp.copyto, _pixels(out, r), _interleaved(within, (3, 1, 4, 2)))

    def bind_unshuffle(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (x,), (r,) = inputs, attrs
        *lead, channels, h, w = x.shape
        within = out.reshape(*lead, channels, r, r, h // r, w // r)
        return partial(xp.copyto, within, _interleaved(_pixels(x, r), (2, 4, 1, 3)))

    register_binder("unfold", kind, bind_unfold)
    register_binder("fold", kind, bind_fold)
    register_binder("fold_like", kind, bind_fold)
    register_binder("pixel_shuffle", kind, bind_shuffle)
    register_binder("pixel_unshuffle", kind, bind_unshuffle)


def _lengths(shape: tuple[int, ...], window: Window) -> tuple[int, ...]:
    return tuple(
        [
            (n + sum(pad) - d * (k - 1) - 1) // s + 1
            for n, k, s, pad, d in zip(shape[2:], *window, strict=True)
        ]
    )


def _split(shape: tuple[int, ...], window: Window) -> tuple[int, ...]:
    return (*shape[:2], *window.kernel, *_lengths(shape, window))


def _places(shape: tuple[int, ...], window: Window) -> Iterator[tuple[Place, Place]]:
    """Yield for each place of the kernel where its elements lie in the patches, and in the images."""
    lengths = _lengths(shape, window)
    for place in product(*map(range, window.kernel)):
        sides = [
            steps(k * d - pad[0], s, n, m)
            for k, n, m, (s, pad, d) in zip(
                place, shape[2:], lengths, zip(*window[1:], strict=True), strict=True
            )
        ]
        every = (slice(None), slice(None))
        yield (*every, *place, *[one[0] for one in sides]), (*every, *[one[1] for one in sides])


def _pixels(x: Any, r: int) -> Any:
    """Return images with each axis of space split in two, the second one of length `r`."""
    *lead, h, w = x.shape
    return x.reshape(*lead, h // r, r, w // r, r)


def _interleaved(x: Any, order: tuple[int, ...]) -> Any:
    """Return `x` with its last four axes in another order."""
    lead = x.ndim - 5
    return x.transpose(*range(lead + 1), *[lead + i for i in order])
