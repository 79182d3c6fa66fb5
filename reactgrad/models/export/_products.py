"""Matrix products."""

from __future__ import annotations

from reactgrad.models.export._layout import reshaped
from reactgrad.models.export._node import Node, writes


@writes("matmul")
def _matmul(n: Node) -> str:
    return n.emit("MatMul", *n.all(n.dtype))


@writes("linear")
def _linear(n: Node) -> str:
    x, w, *bias = n.all(n.dtype)
    y = n.emit("MatMul", x, w)
    return n.emit("Add", y, bias[0]) if bias else y


@writes("einsum")
def _einsum(n: Node) -> str:
    if "." in n.attrs[0] or any(
        len(set(one)) < len(one) for one in n.attrs[0].partition("->")[0].split(",")
    ):
        n.refuse(f"of {n.attrs[0]!r}")
    return n.emit("Einsum", *n.all(n.dtype), equation=n.attrs[0])


@writes("vdot")
def _vdot(n: Node) -> str:
    product = n.emit("Mul", *n.all(n.dtype))
    total = n.emit("ReduceSum", product, keepdims=0)
    return reshaped(n, total, n.attrs[0]) if n.attrs[0] else total
