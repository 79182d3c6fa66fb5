"""LU factors: of any matrices, and of one matrix, kept for all systems that have it.

NumPy factorises and solves in one call and keeps nothing. Where SciPy is installed, its LAPACK does
the two apart; elsewhere the factors stay empty and NumPy solves each system from the matrix. Both eliminate with
partial pivoting, and the backward error of a solution has the same bound (Higham, "Accuracy and
Stability of Numerical Algorithms", 9.3), so the solutions may differ in bits within it.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from reactgrad._errors import LinAlgError
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.numpy._solve import INSTEAD, explained, fill

NAMES: Final = (
    "lu",
    "lu_factor",
    "lu_solve",
)


@cache
def _lapack() -> Any:
    try:
        from scipy.linalg import lapack
    except ImportError:
        return None
    return lapack


def _routine(name: str, dtype: Any) -> Any:
    return getattr(_lapack(), {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + name)


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def lu_factor(a: Any, out: Any, dtype: str) -> None:
        n = a.shape[0]
        if xp is not np or _lapack() is None or not n:
            return
        # LAPACK stores by columns: it gets the transpose, which is factorised where it lies.
        space = out[: n * n].reshape(n, n)
        space[...] = a
        lu, pivots, info = _routine("getrf", out.dtype)(space.T, overwrite_a=True)
        if info > 0:
            raise LinAlgError(f"solve: Singular matrix.{INSTEAD['solve']}")
        if lu.base is not out and not np.may_share_memory(lu, out):
            space[...] = lu.T
        out[n * n :] = pivots

    def lu_solve(packed: Any, a: Any, b: Any, out: Any, transposed: bool) -> None:
        n = a.shape[0]
        if xp is not np or _lapack() is None or not out.size:
            matrix = a.T if transposed else a
            out[...] = explained("solve", lambda a, b: xp.linalg.solve(a, b), matrix, b)
            return
        lu = packed[: n * n].reshape(n, n).T
        pivots = packed[n * n :].real.astype(np.int32)
        if lu.dtype != out.dtype:
            lu = lu.astype(out.dtype)
        out[...] = _routine("getrs", out.dtype)(lu, pivots, b, trans=not transposed)[0]

    def lu(a: Any, out: Any) -> None:
        if xp is np and _lapack() is not None and a.size:
            from scipy.linalg import lu as decomposed

            fill(out, decomposed(a, check_finite=False))
            return
        both, rows = _eliminated(xp, a.astype(out.dtype))
        m, n = a.shape[-2:]
        k = min(m, n)
        one = xp.eye(m, dtype=out.dtype)
        lower = xp.tril(both[..., :k], -1) + one[:, :k]
        fill(out, (one[rows].swapaxes(-1, -2), lower, xp.triu(both[..., :k, :])))

    register_kernel("lu", kind, lu)
    register_kernel("lu_factor", kind, lu_factor)
    register_kernel("lu_solve", kind, lu_solve)


def _eliminated(xp: Any, a: Any) -> tuple[Any, Any]:
    """Return the factors of matrices, one over the other, and the rows in their order."""
    m, n = a.shape[-2:]
    rows = xp.broadcast_to(xp.arange(m), a.shape[:-1]).copy()
    for j in range(min(m, n)):
        place = xp.abs(a[..., j:, j]).argmax(-1)[..., None] + j
        swapped = xp.where(xp.arange(m) == place, j, xp.arange(m))
        swapped[..., j : j + 1] = place
        a = xp.take_along_axis(a, swapped[..., None], -2)
        rows = xp.take_along_axis(rows, swapped, -1)
        pivot = a[..., j : j + 1, j]
        a[..., j + 1 :, j] /= xp.where(pivot == 0, 1, pivot)
        a[..., j + 1 :, j + 1 :] -= a[..., j + 1 :, j, None] * a[..., j, None, j + 1 :]
    return a, rows
