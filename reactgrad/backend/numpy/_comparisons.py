"""Kernels of comparisons with a tolerance, and of whole arrays."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace that has NumPy's functions of these names."""

    def isclose(a: Any, b: Any, out: Any, rtol: float, atol: float, equal_nan: bool) -> None:
        out[...] = xp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)

    def allclose(a: Any, b: Any, out: Any, rtol: float, atol: float, equal_nan: bool) -> None:
        out[...] = xp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan).all()

    def array_equal(a: Any, b: Any, out: Any, equal_nan: bool) -> None:
        out[...] = xp.array_equal(a, b, equal_nan=equal_nan)

    def array_equiv(a: Any, b: Any, out: Any) -> None:
        out[...] = xp.array_equiv(a, b)

    register_kernel("isclose", kind, isclose)
    register_kernel("allclose", kind, allclose)
    register_kernel("array_equal", kind, array_equal)
    register_kernel("array_equiv", kind, array_equiv)
