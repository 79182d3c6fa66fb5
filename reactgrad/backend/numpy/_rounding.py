"""Kernels of rounding, and of numbers in place of NaN and infinities."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace whose functions take ``out`` as NumPy's do."""

    def round_to(x: Any, out: Any, decimals: int) -> None:
        if out.dtype.kind in "iu":  # with `out` NumPy divides integers by tens into it, and refuses
            out[...] = xp.round(x, decimals)
        else:
            xp.round(x, decimals, out=out)

    def nan_to_num(x: Any, out: Any, nan: float, posinf: Any, neginf: Any) -> None:
        xp.copyto(out, x)
        if out.dtype.kind == "c":
            _replace(xp, out.real, nan, posinf, neginf)
            _replace(xp, out.imag, nan, posinf, neginf)
        elif out.dtype.kind == "f":
            _replace(xp, out, nan, posinf, neginf)

    register_kernel("round", kind, round_to)
    register_kernel("nan_to_num", kind, nan_to_num)


def _replace(xp: Any, out: Any, nan: float, posinf: Any, neginf: Any) -> None:
    ends = xp.finfo(out.dtype)
    high, low = (ends.max if posinf is None else posinf), (ends.min if neginf is None else neginf)
    for bad, number in ((xp.isnan(out), nan), (out == xp.inf, high), (out == -xp.inf, low)):
        xp.copyto(out, out.dtype.type(number), where=bad)
