"""LU factors: of any matrices, and of one matrix, kept for all systems that have it.

NumPy factorises and solves in one call and keeps nothing. Where SciPy is installed, its LAPACK does
the two apart; elsewhere the factors are zeros and NumPy solves each system from the matrix. Both eliminate with
partial pivoting, and the backward error of a solution has the same bound (Higham, "Accuracy and
Stability of Numerical Algorithms", 9.3), so the solutions may differ in bits within it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from reactgrad._errors import LinAlgError
from reactgrad.backend._registry import register_binder, register_kernel
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


def _routine(name: str, out: Any) -> Any:
    return getattr(_lapack(), {"f": "s", "d": "d", "F": "c", "D": "z"}[out.dtype.char] + name)


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def bind_factor(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        (a,) = inputs
        n = a.shape[0]
        if xp is not np or _lapack() is None or not n:
            return partial(out.fill, 0)
        # LAPACK stores by columns: it gets the transpose, which is factorised where it lies.
        space, pivots, factorise = out[: n * n].reshape(n, n), out[n * n :], _routine("getrf", out)
        turned = space.T

        def factor() -> None:
            space[...] = a
            found, order, info = factorise(turned, overwrite_a=True)
            if info > 0:
                raise LinAlgError(f"solve: Singular matrix.{INSTEAD['solve']}")
            if found is not turned:
                turned[...] = found
            pivots[...] = order

        return factor

    def bind_solve(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        (packed, a, b), (transposed,) = inputs, attrs
        n = a.shape[0]
        if xp is not np or _lapack() is None or not out.size:
            matrix = a.T if transposed else a

            def solve_anew() -> None:
                out[...] = explained("solve", lambda a, b: xp.linalg.solve(a, b), matrix, b)

            return solve_anew
        factors, pivots, substitute = (
            packed[: n * n].reshape(n, n).T,
            packed[n * n :].real,
            _routine("getrs", out),
        )

        def solve() -> None:
            lu = factors.astype(out.dtype, copy=False)
            out[...] = substitute(lu, pivots.astype(np.int32), b, trans=not transposed)[0]

        return solve

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
    register_binder("lu_factor", kind, bind_factor)
    register_binder("lu_solve", kind, bind_solve)


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
