"""Reductions over axes, softmax and what hangs on rows."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.models.export._node import Node, writes

REDUCES: Final = {
    "sum": "ReduceSum",
    "mean": "ReduceMean",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
}


def reduced(n: Node, op: str, name: str, axes: list[int], keepdims: bool) -> str:
    """Return a reduction over axes, which may be none."""
    if not axes:
        return name
    return n.emit(op, name, n.ints(axes), keepdims=int(keepdims))


@writes("sum", "mean", "max", "min", "prod")
def _reduce(n: Node) -> str:
    axis, keepdims = n.attrs[:2]
    return reduced(n, REDUCES[n.op], n.x(0, n.dtype), n.axes(axis), keepdims)


@writes("softmax", "log_softmax")
def _softmax(n: Node) -> str:
    axes = n.axes(n.attrs[0])
    x = n.x(0, n.dtype)
    if len(axes) == 1:
        return n.emit("Softmax" if n.op == "softmax" else "LogSoftmax", x, axis=axes[0])
    apart = n.emit("Sub", x, reduced(n, "ReduceMax", x, axes, True))
    powers = n.emit("Exp", apart)
    total = reduced(n, "ReduceSum", powers, axes, True)
    if n.op == "softmax":
        return n.emit("Div", powers, total)
    return n.emit("Sub", apart, n.emit("Log", total))


def summed_to(n: Node, name: str, shape: Any, new: Any) -> str:
    """Return a value summed over the axes that broadcasting a value of the shape `new` has added or stretched."""
    first = len(shape) - len(new)
    stretched = [i for i in range(first, len(shape)) if new[i - first] == 1 and shape[i] != 1]
    name = reduced(n, "ReduceSum", name, stretched, True)
    return reduced(n, "ReduceSum", name, list(range(first)), False)


@writes("sum_to")
def _sum_to(n: Node) -> str:
    return summed_to(n, n[0], n.shape_of(0), n.attrs[0])


@writes("sum_like")
def _sum_like(n: Node) -> str:
    return summed_to(n, n.x(0, n.dtype), n.shape_of(0), n.shape_of(1))
