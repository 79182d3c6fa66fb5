"""Kernels that take images at places between pixels, and their transposes and derivatives.

Along each axis of space a place has some neighbouring pixels, each with a weight that depends on the place. An op
has an *order* for each axis: how often the weights are differentiated by the place as the grid gives it. With
them one kernel computes the value, its gradient by the grid, and all further ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from reactgrad.backend._registry import register_binder

Call = Callable[[], object]

NAMES = ("grid_sample", "grid_sample_back", "grid_sample_back_like")

# The weights of the four neighbours at distance t behind the second one, as rows of a polynomial's coefficients,
# highest power first: Keys (1981), A = -0.75.
_A = -0.75
_CUBIC = np.array(
    [
        [_A, -2 * _A, _A, 0.0],
        [_A + 2, -(_A + 3), 0.0, 1.0],
        [-(_A + 2), 2 * _A + 3, -_A, 0.0],
        [-_A, _A, 0.0, 0.0],
    ]
)
_LINEAR = np.array([[-1.0, 1.0], [1.0, 0.0]])


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace that mirrors NumPy."""
    register_binder("grid_sample", kind, partial(_bind_sample, xp))
    for name in ("grid_sample_back", "grid_sample_back_like"):
        register_binder(name, kind, partial(_bind_back, xp))


def _bind_sample(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    x, grid = inputs
    if not out.size:
        return partial(out.fill, 0)

    def sample() -> None:
        dtype = _wide(out.dtype)
        n, c = x.shape[:2]
        # One more pixel of 0 is what lies outside.
        pixels = xp.zeros((n, c, prod(x.shape[2:]) + 1), dtype)
        pixels[..., :-1] = x.reshape(n, c, -1)
        total = xp.zeros((n, c, prod(out.shape[2:])), dtype)
        for places, weights in _neighbours(xp, grid, x.shape[2:], attrs, dtype):
            for i in range(n):
                total[i] += xp.take(pixels[i], places[i], axis=1) * weights[i]
        out[...] = total.reshape(out.shape)

    return sample


def _bind_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, grid = inputs[:2]
    if not (g.size and out.size):
        return partial(out.fill, 0)

    def back() -> None:
        dtype = _wide(out.dtype)
        n, c = out.shape[:2]
        size = prod(out.shape[2:])
        given = g.reshape(n, c, -1)
        total = xp.zeros((n, c * (size + 1)), dtype)
        channels = xp.arange(c).reshape(-1, 1) * (size + 1)
        for places, weights in _neighbours(xp, grid, out.shape[2:], attrs, dtype):
            for i in range(n):
                parts = (given[i] * weights[i]).astype(dtype, copy=False)
                xp.add.at(total[i], (channels + places[i]).reshape(-1), parts.reshape(-1))
        out[...] = total.reshape(n, c, -1)[..., :-1].reshape(out.shape)

    return back


def _wide(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype.char == "e" else dtype


def _neighbours(
    xp: Any, grid: Any, space: tuple[int, ...], attrs: tuple[Any, ...], dtype: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield pixel numbers and weights, each (N, places), of each neighbour; the number after all is outside."""
    mode, padding, align, orders = attrs[:4]
    axes = []
    for axis, n in enumerate(space):
        # The grid's last axis begins with the last axis of space.
        at = grid[..., len(space) - 1 - axis].reshape(grid.shape[0], -1).astype(_wide(grid.dtype))
        axes.append(_along(xp, at, n, mode, padding, align, orders[axis]))
    for each in product(*axes):
        numbers, outside, weights = 0, False, 1.0
        for (number, beyond, weight), n in zip(each, space, strict=True):
            numbers, outside, weights = numbers * n + number, outside | beyond, weights * weight
        yield xp.where(outside, prod(space), numbers), xp.asarray(weights).astype(dtype)


def _along(
    xp: Any, at: Any, n: int, mode: str, padding: str, align: bool, order: int
) -> list[tuple[Any, Any, Any]]:
    """Return number, mask of what is outside, and weight of each neighbour along one axis."""
    scale = (n - 1) / 2 if align else n / 2
    pixel = (at + 1) * at.dtype.type(scale) if align else ((at + 1) * n - 1) / 2
    slope = xp.full_like(at, scale)
    if mode != "bicubic":  # there each neighbour is moved, not the place
        pixel, moved = _padded(xp, pixel, n, padding, align)
        slope = slope * moved
    if mode == "nearest":
        weight = xp.ones_like(at) if order == 0 else xp.zeros_like(at)
        return [_pixel(xp, xp.rint(pixel), n, weight)]
    floor = xp.floor(pixel)
    t = pixel - floor
    rows, first = (_LINEAR, 0) if mode == "bilinear" else (_CUBIC, -1)
    found = []
    for i, row in enumerate(rows):
        for _ in range(order):
            row = np.polyder(row)
        weight = xp.zeros_like(t)
        for coefficient in row:
            weight = weight * t + t.dtype.type(coefficient)
        weight = weight * slope**order
        place = floor + (first + i)
        if mode == "bicubic":
            place, _ = _padded(xp, place, n, padding, align)
        found.append(_pixel(xp, place, n, weight))
    return found


def _pixel(xp: Any, place: Any, n: int, weight: Any) -> tuple[Any, Any, Any]:
    outside = ~((place >= 0) & (place < n))
    number = xp.where(outside, 0, place).astype(np.intp)
    weight = xp.where(outside, weight.dtype.type(0), weight)
    return number, outside, xp.where(xp.isnan(place), place, weight)


def _padded(xp: Any, pixel: Any, n: int, padding: str, align: bool) -> tuple[Any, Any]:
    """Return places moved into the image, and the slope of that: 1, -1, or 0 where the border holds them."""
    slope = xp.ones_like(pixel)
    if padding == "zeros":
        return pixel, slope
    if padding == "reflection":
        low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
        span = high - low
        if span == 0:
            return xp.zeros_like(pixel), xp.zeros_like(pixel)
        away = pixel - low
        slope = xp.where(away < 0, -slope, slope)
        away = xp.abs(away)
        rest = xp.fmod(away, span)
        odd = xp.floor(away / span) % 2 == 1
        slope = xp.where(odd, -slope, slope)
        pixel = xp.where(odd, span - rest, rest) + low
    slope = xp.where((pixel <= 0) | (pixel >= n - 1), xp.zeros_like(slope), slope)
    return xp.clip(pixel, 0, n - 1).astype(slope.dtype), slope
