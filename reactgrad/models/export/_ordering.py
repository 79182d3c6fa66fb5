"""Order, extremes with places, running results and statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.models.export._node import Node, writes
from reactgrad.models.export._reductions import reduced


@writes("argmax", "argmin")
def _argmax(n: Node) -> str:
    axis, keepdims = n.attrs[:2]
    op = "ArgMax" if n.op == "argmax" else "ArgMin"
    if axis is None:
        flat = n.emit("Reshape", n[0], n.ints([-1]))
        found = n.emit(op, flat, axis=0, keepdims=0, out="i8")
        return n.emit("Reshape", found, n.ints([1] * n.rank())) if keepdims else found
    return n.emit(op, n[0], axis=n.axes(axis)[0], keepdims=int(keepdims), out="i8")


@writes("all", "any")
def _all(n: Node) -> str:
    axis, keepdims = n.attrs[:2]
    op = "ReduceMin" if n.op == "all" else "ReduceMax"
    found = reduced(n, op, n.cast(n.x(0, bool), "i4"), n.axes(axis), keepdims)
    return n.cast(found, bool)


@writes("count_nonzero", "count_numbers")
def _count(n: Node) -> str:
    axis, keepdims = n.attrs[:2]
    if n.op == "count_numbers":
        many = n.emit("Not", n.emit("IsNaN", n[0], out=bool))
    else:
        many = n.x(0, bool)
    return n.cast(reduced(n, "ReduceSum", n.cast(many, "i8"), n.axes(axis), keepdims), n.dtype)


@writes("var", "std")
def _var(n: Node) -> str:
    axis, keepdims, ddof = n.attrs
    axes, x = n.axes(axis), n.x(0, n.dtype)
    apart = n.emit("Sub", x, reduced(n, "ReduceMean", x, axes, True))
    total = reduced(n, "ReduceSum", n.emit("Mul", apart, apart), axes, keepdims)
    count = float(np.prod([n.shape_of(0)[i] for i in axes]))
    found = n.emit("Div", total, n.const(count - ddof, n.dtype))
    return n.emit("Sqrt", found) if n.op == "std" else found


@writes("length")
def _length(n: Node) -> str:
    axes = n.axes(n.attrs[0])
    return n.const(int(np.prod([n.shape_of(0)[i] for i in axes])), n.dtype)


@writes("norm")
def _norm(n: Node) -> str:
    p, axis, keepdims = n.attrs[:3]
    axes, size = n.axes(axis), n.emit("Abs", n.x(0, n.dtype))
    if p in (np.inf, -np.inf):
        return reduced(n, "ReduceMax" if p > 0 else "ReduceMin", size, axes, keepdims)
    if p in (1, 2):
        return reduced(n, f"ReduceL{int(p)}", size, axes, keepdims)
    total = reduced(n, "ReduceSum", n.emit("Pow", size, n.const(p, n.dtype)), axes, keepdims)
    return n.emit("Pow", total, n.const(1.0 / p, n.dtype))


@writes("logsumexp")
def _logsumexp(n: Node) -> str:
    axis, keepdims = n.attrs[:2]
    axes, x = n.axes(axis), n.x(0, n.dtype)
    top = reduced(n, "ReduceMax", x, axes, True)
    zero = n.const(0, n.dtype)
    top = n.emit("Where", n.emit("IsInf", top, out=bool), zero, top, of=1)
    total = reduced(n, "ReduceSum", n.emit("Exp", n.emit("Sub", x, top)), axes, True)
    found = n.emit("Add", n.emit("Log", total), top)
    return found if keepdims or not axes else n.emit("Squeeze", found, n.ints(axes))


@writes("cumsum")
def _cumsum(n: Node) -> str:
    axis, reverse = n.attrs
    return n.emit("CumSum", n.x(0, n.dtype), n.const(n.axes(axis)[0], "i8"), reverse=int(reverse))


@writes("sort", "argsort", "topk")
def _sort(n: Node) -> str:
    if n.op == "topk":
        k, axis, largest = n.attrs[:3]
    else:
        axis, largest = n.attrs[0], bool(n.attrs[2])
        k = n.shape_of(0)[n.axes(axis)[0]]
    dtypes = (n.dtype_of(0), "i8")
    values, places = n.emit(
        "TopK", n[0], n.ints([k]), axis=n.axes(axis)[0], largest=int(largest), sorted=1, out=dtypes
    )
    return values if n.op == "sort" else places


@writes("choose")
def _choose(n: Node) -> str:
    if n.attrs[0] != "raise":
        n.refuse(f"with mode={n.attrs[0]}")
    numbers, found = n.x(0, "i8"), n.x(1, n.dtype)
    for i in range(2, len(n)):
        here = n.emit("Equal", numbers, n.const(i - 1, "i8"), out=bool)
        found = n.emit("Where", here, n.x(i, n.dtype), found, of=1)
    return n.emit("Expand", found, n.ints(n.shape))


@writes("searchsorted", "digitize")
def _searchsorted(n: Node) -> str:
    if n.op == "digitize" or n.attrs[0] not in ("left", "right"):
        n.refuse(f"with {n.attrs}")
    dtype: Any = n.promoted(0, 1)
    row, x = n.x(0, dtype), n.emit("Unsqueeze", n.x(1, dtype), n.ints([n.rank(1)]))
    below = n.emit("Less" if n.attrs[0] == "left" else "LessOrEqual", row, x, out=bool)
    return n.emit("ReduceSum", n.cast(below, "i8"), n.ints([n.rank(1)]), keepdims=0)
