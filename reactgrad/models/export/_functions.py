"""Functions of one number, element by element, and activations."""

from __future__ import annotations

import math
from typing import Final

from reactgrad.models.export._node import Node, writes

# fmt: off
PLAIN: Final = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "sigmoid": "Sigmoid",
    "relu": "Relu", "floor": "Floor", "ceil": "Ceil", "rint": "Round",
}
# fmt: on


@writes(*PLAIN)
def _plain(n: Node) -> str:
    x = n.x(0, n.dtype)
    return (
        x if n.dtype.kind != "f" and n.op in ("floor", "ceil", "rint") else n.emit(PLAIN[n.op], x)
    )


@writes("exp2")
def _exp2(n: Node) -> str:
    return n.emit("Pow", n.const(2, n.dtype), n.x(0, n.dtype))


@writes("log2", "log10")
def _log_to_base(n: Node) -> str:
    base = math.log(2.0 if n.op == "log2" else 10.0)
    return n.emit("Div", n.emit("Log", n.x(0, n.dtype)), n.const(base, n.dtype))
