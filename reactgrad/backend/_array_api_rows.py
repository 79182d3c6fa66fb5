"""Kernels that need whole rows, for any namespace of the array API standard; see ``_rows``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactgrad.backend._registry import register_kernel


def register_rows(xp: Any, kind: str) -> None:
    """Register kernels that are made of functions of the standard alone."""

    def total(x: Any, axis: Any) -> Any:
        return xp.sum(x, axis=axis, dtype=x.dtype, keepdims=True)

    def average(x: Any, axis: Any) -> Any:
        return xp.mean(x, axis=axis, keepdims=True)

    def softmax(x: Any, axis: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
        return e / total(e, axis)

    def softmax_grad(g: Any, y: Any, axis: Any) -> Any:
        return (g - total(g * y, axis)) * y

    def std(x: Any, axis: Any, eps: float) -> Any:
        apart = x - average(x, axis)
        return xp.sqrt(average(apart * apart, axis) + eps)

    def standardize(x: Any, axis: Any, eps: float) -> Any:
        return (x - average(x, axis)) / std(x, axis, eps)

    def standardize_grad(g: Any, y: Any, x: Any, axis: Any, eps: float) -> Any:
        return (g - average(g, axis) - y * average(g * y, axis)) / std(x, axis, eps)

    def kernel(function: Callable[..., Any], count: int) -> Callable[..., None]:
        """One of these, which gets its operands in the dtype of the result."""

        def run(*given: Any) -> None:
            operands, out, attrs = given[:count], given[count], given[count + 1 :]
            if 0 not in out.shape:
                out[...] = function(*[xp.astype(x, out.dtype) for x in operands], *attrs)

        return run

    register_kernel("softmax", kind, kernel(softmax, 1))
    register_kernel("softmax_grad", kind, kernel(softmax_grad, 2))
    register_kernel("standardize", kind, kernel(standardize, 1))
    register_kernel("standardize_grad", kind, kernel(standardize_grad, 3))
