"""Kernels of decompositions: eigenvalues, singular values, QR; and what follows from these."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend._registry import register_kernel
from reactgrad.backend.numpy import _lapack
from reactgrad.backend.numpy._solve import explained, fill

NAMES: Final = (
    "matrix_rank",
    "eigh",
    "eigvalsh",
    "eig",
    "eigvals",
    "svd",
    "svdvals",
    "qr",
    "qr_r",
    "lstsq",
    "gap",
    "pinv",
    "null",
)


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""
    linalg = xp.linalg

    def eigh(a: Any, out: Any, uplo: str) -> None:
        fill(out, explained("eigh", lambda a: linalg.eigh(a, uplo), a))

    def eigvalsh(a: Any, out: Any, uplo: str) -> None:
        out[...] = explained("eigvalsh", lambda a: linalg.eigvalsh(a, uplo), a)

    def eig(a: Any, out: Any) -> None:
        fill(out, explained("eig", lambda a: linalg.eig(a), a))

    def eigvals(a: Any, out: Any) -> None:
        out[...] = explained("eigvals", lambda a: linalg.eigvals(a), a)

    def svd(a: Any, out: Any, full: bool, hermitian: bool) -> None:
        call = of_hermitian if hermitian else lambda a: linalg.svd(a, full)
        fill(out, explained("svd", call, a))

    def svdvals(a: Any, out: Any, hermitian: bool) -> None:
        if hermitian:
            size = xp.abs(explained("svd", lambda a: linalg.eigvalsh(a), a))
            out[...] = xp.sort(size, axis=-1)[..., ::-1]
        else:
            out[...] = explained("svd", lambda a: linalg.svd(a, False, False), a)

    def of_hermitian(a: Any) -> tuple[Any, Any, Any]:
        w, v = linalg.eigh(a)
        size = xp.abs(w)
        order = xp.argsort(size, axis=-1)[..., ::-1]
        u = xp.take_along_axis(v, order[..., None, :], -1)
        sign = xp.take_along_axis(xp.copysign(xp.ones_like(w), w), order, -1)  # 0 has one, too
        vh = (u * sign[..., None, :]).swapaxes(-1, -2).conj()
        return u, xp.take_along_axis(size, order, -1), vh

    def qr(a: Any, out: Any, mode: str) -> None:
        fill(out, explained("qr", lambda a: linalg.qr(a, mode), a))

    def qr_r(a: Any, out: Any) -> None:
        out[...] = explained("qr", lambda a: linalg.qr(a, "r"), a)

    def lstsq(a: Any, b: Any, out: Any, rcond: float | None) -> None:
        x, _, rank, s = explained("lstsq", lambda a, b: linalg.lstsq(a, b, rcond), a, b)
        fill(out, (x, s, xp.asarray(rank)))

    def gap(x: Any, w: Any, out: Any, sign: int) -> None:
        """Write `x`, or ``(x + sign x^H) / 2``, over the differences of the numbers `w`, 0 on the diagonal.

        Where two of them are one number up to rounding, the quotient is NaN; it is 0 where there is nothing to
        divide.
        """
        if not out.size:
            return
        n = w.shape[-1]
        apart = w[..., None, :] - w[..., :, None]
        largest = xp.abs(w).max(-1)[..., None, None]
        apart[xp.abs(apart) <= n * xp.finfo(w.dtype).eps * largest] = xp.nan
        none = (x == 0) | xp.eye(n, dtype=bool)
        if sign:
            turned = x.swapaxes(-1, -2).conj()
            none &= (turned == 0) | xp.eye(n, dtype=bool)
            x = (x + sign * turned) * 0.5
        out[...] = xp.where(none, 0, x / apart)

    def kept(a: Any, s: Any, rcond: Any, auto: bool) -> Any:
        """Return which singular values, the largest first, count as more than 0."""
        cutoff = xp.asarray(max(a.shape[-2:]) * xp.finfo(s.dtype).eps if auto else rcond)
        return s > cutoff[..., None] * s[..., :1]

    def pinv(a: Any, u: Any, s: Any, vh: Any, rcond: Any, out: Any, auto: bool) -> None:
        large = kept(a, s, rcond, auto)
        inverse = xp.where(large, 1 / xp.where(large, s, 1), 0).astype(s.dtype)
        right = inverse[..., None] * u.swapaxes(-1, -2).conj()
        xp.matmul(vh.swapaxes(-1, -2).conj(), right, out)

    def null(
        a: Any, u: Any, s: Any, vh: Any, rcond: Any, p: Any, out: Any, auto: bool, left: bool
    ) -> None:
        """Write the projection to what `a`, or its adjoint, does not reach; exactly 0 where it reaches all."""
        large = kept(a, s, rcond, auto)
        reach = u if left else vh.swapaxes(-1, -2).conj()
        known = xp.where(large[..., None, :], reach, 0)
        rest = xp.eye(out.shape[-1], dtype=out.dtype) - known @ known.swapaxes(-1, -2).conj()
        whole = large.sum(-1) == out.shape[-1]
        out[...] = xp.where(whole[..., None, None], 0, rest)

    def matrix_rank(a: Any, s: Any, tol: Any, out: Any, how: str) -> None:
        tol = xp.asarray(max(a.shape[-2:]) * xp.finfo(s.dtype).eps if how == "auto" else tol)
        cutoff = tol[..., None]
        if how != "tol":
            cutoff = cutoff * s[..., :1]
        out[...] = (s > cutoff).sum(-1)

    register_kernel("matrix_rank", kind, matrix_rank)
    register_kernel("eigh", kind, eigh)
    register_kernel("eigvalsh", kind, eigvalsh)
    register_kernel("eig", kind, eig)
    register_kernel("eigvals", kind, eigvals)
    register_kernel("svd", kind, svd)
    register_kernel("svdvals", kind, svdvals)
    register_kernel("qr", kind, qr)
    register_kernel("qr_r", kind, qr_r)
    register_kernel("lstsq", kind, lstsq)
    register_kernel("gap", kind, gap)
    register_kernel("pinv", kind, pinv)
    register_kernel("null", kind, null)
    _lapack.register(xp, kind, "eigh", "eigvalsh", "svd", "svdvals")
