"""The LU factors of one matrix, kept for all systems that have it.

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
from reactgrad.backend.numpy._solve import INSTEAD, explained

NAMES: Final = (
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

    register_kernel("lu_factor", kind, lu_factor)
    register_kernel("lu_solve", kind, lu_solve)
