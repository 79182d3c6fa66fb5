"""Kernels of the convolution of two series, and of its adjoint. Short floats are summed in float64.

The result at `k` is the sum of ``a[i] * b[j]`` with ``i + j == start + k``, where the mode decides the first
number and how many there are.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend._registry import register_kernel

_WIDER: Final = {"e": "f8", "f": "f8", "F": "c16"}


def extent(n: int, m: int, mode: str) -> tuple[int, int]:
    """Return the first number of a result of `n` by `m` elements, and their count."""
    few = min(n, m)
    if mode == "full":
        return 0, n + m - 1
    if mode == "valid":
        return few - 1, max(n, m) - few + 1
    # NumPy's ``correlate`` has another middle where the first series is the shorter one.
    return (few // 2 if mode == "correlated" and n < m else (few - 1) // 2), max(n, m)


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace that has NumPy's ``convolve``."""

    def wide(x: Any, out: Any) -> Any:
        return x.astype(_WIDER.get(out.dtype.char, out.dtype), copy=False)

    def convolve(a: Any, b: Any, out: Any, mode: str) -> None:
        a, b = wide(a, out), wide(b, out)
        if mode == "correlated":
            start, count = extent(a.size, b.size, mode)
            out[...] = xp.convolve(a, b, "full")[start : start + count]
        else:
            out[...] = xp.convolve(a, b, mode)

    def convolve_back(g: Any, b: Any, like: Any, out: Any, mode: str, first: bool) -> None:
        n, m = (like.size, b.size) if first else (b.size, like.size)
        start = extent(n, m, mode)[0]
        turned = wide(b, out)[::-1]
        if mode == "full":
            out[...] = xp.convolve(wide(g, out), turned, "valid")
        else:
            at = b.size - 1 - start
            out[...] = xp.convolve(wide(g, out), turned, "full")[at : at + like.size]

    register_kernel("convolve", kind, convolve)
    register_kernel("convolve_back", kind, convolve_back)
