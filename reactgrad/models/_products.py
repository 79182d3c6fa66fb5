"""Matrix products."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.models._call import Call, converts


@converts("MatMul")
def _matmul(call: Call) -> Any:
    return rg.matmul(*call.all())


@converts("Gemm")
def _gemm(call: Call) -> Any:
    a, b = call[0], call[1]
    a = rg.transpose(a) if call.attr("transA", 0) else a
    b = rg.transpose(b) if call.attr("transB", 0) else b
    x = rg.matmul(a, b)
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    x = x if alpha == 1.0 else x * alpha
    if not call.has(2):
        return x
    return x + (call[2] if beta == 1.0 else call[2] * beta)


@converts("Einsum")
def _einsum(call: Call) -> Any:
    return rg.einsum(call.attr("equation"), *call.all())


@converts("Det")
def _det(call: Call) -> Any:
    return rg.linalg.det(call[0])
