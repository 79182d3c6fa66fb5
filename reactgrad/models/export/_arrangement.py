"""Arrays put together, repeated, turned and cut into windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.models.export._layout import reshaped, sliced
from reactgrad.models.export._node import Node, writes

END = np.iinfo("i8").max
START = np.iinfo("i8").min


@writes("flip")
def _flip(n: Node) -> str:
    axes = n.axes(n.attrs[0])
    rows = ([END] * len(axes), [START] * len(axes), axes, [-1] * len(axes))
    return n.emit("Slice", n[0], *map(n.ints, rows)) if axes else n[0]


@writes("roll")
def _roll(n: Node) -> str:
    shifts, axes = n.attrs
    x, shape = n[0], n.shape_of(0)
    if axes is None:
        n.refuse("of all axes at once")
    for shift, axis in zip(shifts, n.axes(axes), strict=True):
        cut = -shift % (shape[axis] or 1)
        parts = sliced(n, x, axis, cut, None), sliced(n, x, axis, 0, cut)
        x = n.emit("Concat", *parts, axis=axis)
    return x


@writes("tile")
def _tile(n: Node) -> str:
    reps, x = n.attrs[0], n[0]
    reps = (reps,) if isinstance(reps, int) else reps
    rank = n.rank()
    if rank < len(reps):
        x = n.emit("Unsqueeze", x, n.ints(list(range(len(reps) - rank))))
    return n.emit("Tile", x, n.ints([*[1] * (rank - len(reps)), *reps]))


@writes("repeat")
def _repeat(n: Node) -> str:
    times, axis = n.attrs
    if not isinstance(times, int) or axis is None:
        n.refuse("by several numbers")
    at = n.axes(axis)[0]
    x = n.emit("Unsqueeze", n[0], n.ints([at + 1]))
    reps = [1] * (n.rank() + 1)
    reps[at + 1] = times
    return reshaped(n, n.emit("Tile", x, n.ints(reps)), n.shape)


@writes("pad")
def _pad(n: Node) -> str:
    widths, mode, odd, constants = n.attrs
    if mode not in ("constant", "empty", "reflect", "edge", "wrap") or (odd and mode == "reflect"):
        n.refuse(f"by {mode}")
    values = {one for pair in constants for one in pair}
    if len(values) > 1:
        n.refuse("by several constants")
    pads = n.ints([a for a, _ in widths] + [b for _, b in widths])
    value = [n.const(values.pop(), n.dtype)] if values else []
    return n.emit(
        "Pad", n.x(0, n.dtype), pads, *value, mode="constant" if mode == "empty" else mode
    )


@writes("pad_back")
def _pad_back(n: Node) -> str:
    widths, mode = n.attrs[:2]
    if mode not in ("constant", "empty"):
        n.refuse(f"by {mode}")
    ends = [a + m for (a, _), m in zip(widths, n.shape, strict=True)]
    return n.emit("Slice", n.x(0, n.dtype), n.ints([a for a, _ in widths]), n.ints(ends))


@writes("tril", "triu")
def _triangle(n: Node) -> str:
    return n.emit("Trilu", n[0], n.const(n.attrs[0], "i8"), upper=int(n.op == "triu"))


@writes("regroup")
def _regroup(n: Node) -> str:
    return reshaped(n, n[0], n.shape)


@writes("diagonal")
def _diagonal(n: Node) -> str:
    offset, first, second, _ = n.attrs
    a, b = n.axes((first, second))
    rest = [i for i in range(n.rank()) if i not in (a, b)]
    x = n.emit("Transpose", n[0], perm=[*rest, a, b])
    rows, columns = n.shape_of(0)[a], n.shape_of(0)[b]
    count = n.shape[-1]
    places = (np.arange(count) + max(-offset, 0)) * columns + np.arange(count) + max(offset, 0)
    x = reshaped(n, x, [*(n.shape_of(0)[i] for i in rest), rows * columns])
    return n.emit("Gather", x, n.const(places), axis=len(rest))


@writes("place_diagonal")
def _place_diagonal(n: Node) -> str:
    _, offset, first, second, _ = n.attrs
    if (first % len(n.shape), second % len(n.shape)) != (len(n.shape) - 2, len(n.shape) - 1):
        n.refuse("along other axes than the last two")
    count, rows, columns = n.shape_of(0)[-1], n.shape[-2], n.shape[-1]
    mask = np.zeros((count, rows * columns), n.dtype)
    k = np.arange(count)
    mask[k, (k + max(-offset, 0)) * columns + k + max(offset, 0)] = 1
    return reshaped(n, n.emit("MatMul", n[0], n.const(mask)), n.shape)


@writes("windows")
def _windows(n: Node) -> str:
    sizes, axes = n.attrs
    x, axes = n[0], n.axes(axes)
    for size, axis in zip(sizes, axes, strict=True):
        length = n.shape_of(0)[axis] - size + 1
        x = n.emit("Gather", x, n.const(np.arange(length)[:, None] + np.arange(size)), axis=axis)
        ndim = n.rank() + axes.index(axis) + 1
        order = [*(i for i in range(ndim) if i != axis + 1), axis + 1]
        x = n.emit("Transpose", x, perm=order)
    return x


@writes("block")
def _block(n: Node) -> str:
    def joined(layout: Any, depth: int) -> str:
        if isinstance(layout, int):
            return n.x(layout, n.dtype)
        parts = [joined(one, depth - 1) for one in layout]
        return parts[0] if len(parts) == 1 else n.emit("Concat", *parts, axis=len(n.shape) - depth)

    layout, depth = n.attrs[0], 0
    one = layout
    while not isinstance(one, int):
        one, depth = one[0], depth + 1
    if any(len(n.shape_of(i)) != len(n.shape) for i in range(len(n))):
        n.refuse("of parts with different numbers of axes")
    return joined(layout, depth)


@writes("kron")
def _kron(n: Node) -> str:
    a, b = n.shape_of(0), n.shape_of(1)
    if len(a) != len(b):
        n.refuse("of different numbers of axes")
    x = reshaped(n, n.x(0, n.dtype), [m for n_ in a for m in (n_, 1)])
    y = reshaped(n, n.x(1, n.dtype), [m for n_ in b for m in (1, n_)])
    return reshaped(n, n.emit("Mul", x, y), n.shape)


@writes("cross")
def _cross(n: Node) -> str:
    if n.shape[-1:] != (3,):
        n.refuse("of vectors of two elements")
    a, b = n.all(n.dtype)
    axis = len(n.shape) - 1

    def turned(x: str, order: tuple[int, ...]) -> str:
        return n.emit("Gather", x, n.const(np.array(order)), axis=axis)

    first = n.emit("Mul", turned(a, (1, 2, 0)), turned(b, (2, 0, 1)))
    return n.emit("Sub", first, n.emit("Mul", turned(a, (2, 0, 1)), turned(b, (1, 2, 0))))


@writes("broadcast_beside", "spread_along")
def _repeated(n: Node) -> str:
    return n.emit("Expand", n[0], n.ints(n.shape))


@writes("det")
def _det(n: Node) -> str:
    return n.emit("Det", n.x(0, n.dtype))


@writes("polyval")
def _polyval(n: Node) -> str:
    x, found = n.x(1, n.dtype), ""
    if n.rank(0) != 1:
        n.refuse("of several polynomials")
    for i in range(n.shape_of(0)[0]):
        c = n.emit("Gather", n.x(0, n.dtype), n.const(i, "i8"), axis=0)
        found = (
            n.emit("Add", n.emit("Mul", found, x), c)
            if found
            else n.emit("Add", n.emit("Mul", x, n.const(0, n.dtype)), c)
        )
    return found
