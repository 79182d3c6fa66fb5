"""Kernels of polynomials, whose coefficients have the highest power first.

float16 is computed in float32; sums over elements of short floats are float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder, register_kernel

NEAR_ZERO: Final = 1e-8  # that of ``np.allclose``, by which NumPy trims a remainder


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace with NumPy's protocols; those of linear algebra for NumPy only."""

    def bind_scale(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        factors = xp.asarray(_factors(out.shape[0], *attrs).astype(out.dtype))
        return partial(np.multiply, inputs[0], factors, out)

    def leading(p: Any, out: Any) -> Any:
        counts = abs(p) > NEAR_ZERO
        counts = counts | xp.isnan(p)
        counts[-1:] = True  # the last one always
        return xp.nonzero(xp.cumsum(counts) > 0)[0]

    register_kernel("poly_leading", kind, leading)
    for function in (polyval, polyval_back, poly_extend, poly_tail):
        register_kernel(function.__name__, kind, function)
    register_binder("poly_scale", kind, bind_scale)
    if xp is np:
        register_kernel("poly_roots", kind, poly_roots)


def _wide(dtype: Any) -> Any:
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def polyval(p: Any, x: Any, out: Any) -> None:
    """Write the values at `x` by Horner's scheme."""
    dtype = _wide(out.dtype)
    total = out if dtype == out.dtype else np.empty_like(out, dtype=dtype)
    total.fill(0)
    p, x = p.astype(dtype, copy=False), x.astype(dtype, copy=False)
    for i in range(p.shape[0]):
        np.multiply(total, x, total)
        np.add(total, p[i], total)
    if total is not out:
        np.copyto(out, total, casting="same_kind")


def polyval_back(g: Any, x: Any, like: Any, out: Any) -> None:
    """Write the sums of `g` times each power of `x`."""
    dtype = np.result_type(out.dtype, np.float64)
    product, x = np.broadcast_to(g, x.shape).astype(dtype), x.astype(dtype, copy=False)
    for i in range(out.shape[0] - 1, -1, -1):
        out[i] = product.sum()
        if i:
            product *= x


def _factors(count: int, order: int) -> Any:
    """Return what `order` derivatives multiply each coefficient by; a negative order is one of integrals."""
    powers = np.arange(count - 1, -1, -1)
    found = np.ones(count)
    for i in range(abs(order)):
        found = found * (powers - i) if order > 0 else found / (powers + i + 1)
    return found


def poly_extend(p: Any, other: Any, out: Any) -> None:
    """Write the coefficients after as many zeros as the other polynomial is longer."""
    out.fill(0)
    out[out.shape[0] - p.shape[0] :] = p


def poly_tail(g: Any, like: Any, out: Any) -> None:
    """Write the last coefficients, as many as `like` has."""
    np.copyto(out, g[g.shape[0] - out.shape[0] :])


def poly_roots(p: Any, out: Any) -> None:
    """Write the roots; those that a leading coefficient of 0 takes away are NaN."""
    found = np.roots(p.astype(np.result_type(p.dtype, np.float32), copy=False))
    out.fill(np.nan)
    out[: found.shape[0]] = found
