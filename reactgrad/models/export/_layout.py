"""Elements in another order or shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad.models.export._node import Node, writes


def reshaped(n: Node, name: str, shape: Sequence[Any]) -> str:
    """Return a value in another shape; one length may be unknown."""
    lengths = [-1 if one is None else one for one in shape]
    if lengths.count(-1) > 1:
        n.refuse("to a shape with several unknown lengths")
    if 0 in lengths:
        return n.emit("Reshape", name, n.ints(lengths), allowzero=1)
    return n.emit("Reshape", name, n.ints(lengths))


@writes("reshape")
def _reshape(n: Node) -> str:
    return reshaped(n, n[0], n.attrs[0])


@writes("reshape_like")
def _reshape_like(n: Node) -> str:
    return n.emit("Reshape", n[0], shape_of(n, 1))


def shape_of(n: Node, i: int) -> str:
    """Return the shape of an operand as a row of integers."""
    shape = n.shape_of(i)
    if None not in shape:
        return n.ints(shape)  # type: ignore[arg-type]
    return n.emit("Shape", n[i], out="i8")


@writes("transpose")
def _transpose(n: Node) -> str:
    axes = n.attrs[0]
    order = range(n.rank())[::-1] if axes is None else n.axes(axes)
    return n.emit("Transpose", n[0], perm=list(order)) if n.rank() > 1 else n[0]


@writes("broadcast_to")
def _broadcast_to(n: Node) -> str:
    shape = n.attrs[0]
    if None in shape:
        n.refuse("to an unknown length")
    return n.emit("Expand", n[0], n.ints(shape))


@writes("broadcast_like")
def _broadcast_like(n: Node) -> str:
    return n.emit("Expand", n[0], shape_of(n, 1))


@writes("expand_dims")
def _expand_dims(n: Node) -> str:
    axes = n.axes(n.attrs[0], n.rank() + len(n.attrs[0]))
    return n.emit("Unsqueeze", n[0], n.ints(sorted(axes))) if axes else n[0]


@writes("squeeze")
def _squeeze(n: Node) -> str:
    axis = n.attrs[0]
    axes = [i for i, m in enumerate(n.shape_of(0)) if m == 1] if axis is None else n.axes(axis)
    return n.emit("Squeeze", n[0], n.ints(sorted(axes))) if axes else n[0]


@writes("alias", "to_device", "detach", "scale_grad", "with_lengths", "row_numbers")
def _itself(n: Node) -> str:
    return n.x(0, n.dtype)


@writes("concatenate")
def _concatenate(n: Node) -> str:
    return n.emit("Concat", *n.all(n.dtype), axis=n.axes(n.attrs[0])[0])


@writes("stack")
def _stack(n: Node) -> str:
    axis = n.axes(n.attrs[0], n.rank() + 1)[0]
    parts = [n.emit("Unsqueeze", one, n.ints([axis])) for one in n.all(n.dtype)]
    return n.emit("Concat", *parts, axis=axis)


def sliced(n: Node, name: str, axis: int, start: int, stop: int | None, step: int = 1) -> str:
    """Return a part of a value along one axis; ``None`` stands for the end in the direction of the step."""
    if stop is None:
        stop = np.iinfo("i8").max if step > 0 else np.iinfo("i8").min
    rows = (n.ints([m]) for m in (start, stop, axis, step))
    return n.emit("Slice", name, *rows)


@writes("split", "array_split")
def _split(n: Node) -> str:
    cuts, axis, part = n.attrs
    at = n.axes(axis)[0]
    if isinstance(cuts, int):
        length = n.shape_of(0)[at]
        if length is None:
            n.refuse("of an unknown length into equal parts")
        sizes = np.diff([0, *np.cumsum([len(p) for p in np.array_split(np.arange(length), cuts)])])
        ends = [0, *np.cumsum(sizes).tolist()]
        return sliced(n, n[0], at, ends[part], ends[part + 1])
    ends = [0, *cuts, None] if part == 0 or len(cuts) == 1 else [*cuts, None]
    index = part if len(cuts) == 1 else 0
    if part == 0:
        return sliced(n, n[0], at, 0, cuts[0] if cuts else None)
    return sliced(n, n[0], at, ends[index] or 0, ends[index + 1])


@writes("unbind")
def _unbind(n: Node) -> str:
    axis, _, part = n.attrs
    return n.emit("Gather", n[0], n.const(part, "i8"), axis=n.axes(axis)[0])
