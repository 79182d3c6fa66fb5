"""Kernels of linear systems, inverses, determinants and Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from reactgrad._errors import LinAlgError
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.numpy import _lapack

NAMES: Final = (
    "solve",
    "inv",
    "det",
    "slogdet",
    "cholesky",
    "triangle",
    "identity_like",
    "solve_triangular",
    "cofactor",
    "cofactor_slope",
)

# In blocks of so many rows, a triangular system is solved by LAPACK, and between them by products.
BLOCK: Final = 64

# Above this condition number the product of determinant and inverse loses digits that the
# product of singular values keeps.
WELL_CONDITIONED: Final = {"f": 1e2, "F": 1e2, "d": 1e4, "D": 1e4}

INSTEAD: Final = {
    "solve": " Use rg.linalg.lstsq or rg.linalg.pinv where there is more than one solution or none.",
    "inv": " Use rg.linalg.pinv where a matrix may be singular.",
    "cholesky": " Its eigenvalues must all be above 0; add a small multiple of the identity if they may "
    "round to less.",
}


def explained(name: str, call: Callable[..., Any], *operands: Any) -> Any:
    """Return ``call(*operands)``; its ``LinAlgError`` becomes one that says which matrix is at fault."""
    try:
        return call(*operands)
    except np.linalg.LinAlgError as error:
        if isinstance(error, LinAlgError):
            raise
        raise LinAlgError(
            f"{name}: {str(error).rstrip('.')}{_place(call, operands[0])}.{INSTEAD.get(name, '')}"
        ) from None


def _place(call: Callable[..., Any], a: Any) -> str:
    """Return the place of the first matrix of a batch that fails alone, as words of a message."""
    if a.ndim < 3:
        return ""
    for at in np.ndindex(a.shape[:-2]):
        try:
            call(a[at]) if call.__code__.co_argcount == 1 else call(a[at], np.ones(a.shape[-1]))
        except np.linalg.LinAlgError:
            return f" (the matrix at [{', '.join(map(str, at))}] of the batch)"
    return ""


def host(x: Any) -> Any:
    """Return an array of any device in the memory of the host, where its values decide what is computed."""
    return x.get() if hasattr(x, "get") else x


def fill(out: Any, parts: Any) -> None:
    """Write several results side by side along the last axis of `out`, each in C order."""
    start = 0
    for part in parts:
        tail = part.shape[out.ndim - 1 :]
        size = prod(tail)
        out[..., start : start + size] = part.reshape((*out.shape[:-1], size))
        start += size


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""
    linalg = xp.linalg

    def solve(a: Any, b: Any, out: Any) -> None:
        out[...] = explained("solve", lambda a, b: linalg.solve(a, b), a, b)

    def inv(a: Any, out: Any, strict: bool) -> None:
        if strict:
            out[...] = explained("inv", lambda a: linalg.inv(a), a)
            return
        try:
            out[...] = linalg.inv(a)
        except np.linalg.LinAlgError:
            singular = linalg.slogdet(a)[0] == 0
            safe = xp.where(singular[..., None, None], xp.eye(a.shape[-1], dtype=out.dtype), a)
            out[...] = linalg.inv(safe)
            out[singular] = xp.nan

    def det(a: Any, out: Any) -> None:
        out[...] = linalg.det(a)

    def slogdet(a: Any, out: Any) -> None:
        out[..., 0], out[..., 1] = linalg.slogdet(a)

    def cholesky(a: Any, out: Any, upper: bool) -> None:
        if upper:  # of the upper triangle: the lower one of the transpose
            a = a.swapaxes(-1, -2).conj()
        factor = explained("cholesky", lambda a: linalg.cholesky(a), a)
        out[...] = factor.swapaxes(-1, -2).conj() if upper else factor

    def triangle(x: Any, out: Any, lower: bool, diagonal: float) -> None:
        out[...] = xp.tril(x, -1) if lower else xp.triu(x, 1)
        if diagonal:
            n = min(x.shape[-2:])
            at = xp.arange(n)
            out[..., at, at] = x[..., at, at] * xp.asarray(diagonal, dtype=out.dtype)

    def identity(x: Any, out: Any) -> None:
        out[...] = xp.eye(x.shape[-2], x.shape[-1], dtype=out.dtype)

    def solve_triangular(
        a: Any, b: Any, out: Any, lower: bool, transposed: bool, unit: bool
    ) -> None:
        vector = b.ndim == 1
        x = out[..., None] if vector else out
        x[...] = b[:, None] if vector else b
        if transposed:
            a, lower = a.swapaxes(-1, -2), not lower
        n = a.shape[-1]
        if (
            lower
        ):  # from the back it is an upper one, of which LAPACK's elimination leaves all as it is
            a, x = a[..., ::-1, ::-1], x[..., ::-1, :]
        at = xp.arange(min(n, BLOCK))
        for end in range(n, 0, -BLOCK):
            rows = slice(max(end - BLOCK, 0), end)
            right = x[..., rows, :]
            if end < n:
                right = right - a[..., rows, end:] @ x[..., end:, :]
            block = xp.triu(a[..., rows, rows])
            if unit:
                count = at[: block.shape[-1]]
                block[..., count, count] = 1
            x[..., rows, :] = explained(
                "solve_triangular", lambda a, b: linalg.solve(a, b), block, right
            )

    def cofactor(a: Any, out: Any) -> None:
        inverse, volume, bad = _regular(xp, a, out)
        out[...] = volume[..., None, None] * inverse.swapaxes(-1, -2)
        if host(bad).any():
            u, s, vh, phase = _rotations(xp, a[bad].astype(out.dtype))
            parts = (phase[..., None] * _others(xp, s))[..., None, :]
            out[bad] = (u.conj() * parts) @ vh.conj()

    def cofactor_slope(t: Any, a: Any, out: Any) -> None:
        """Write the derivative of the cofactors along t."""
        inverse, volume, bad = _regular(xp, a, out)
        turn = inverse @ t
        trace = xp.trace(turn, axis1=-2, axis2=-1)[..., None, None]
        slope = trace * inverse - turn @ inverse
        out[...] = volume[..., None, None] * slope.swapaxes(-1, -2)
        if host(bad).any():
            u, s, vh, phase = _rotations(xp, a[bad].astype(out.dtype))
            x = u.conj().swapaxes(-1, -2) @ t[bad] @ vh.conj().swapaxes(-1, -2)
            n = a.shape[-1]
            eye = xp.eye(n, dtype=bool)
            # Products of all singular values but two.
            pairs = _others(xp, xp.where(eye, 1, s[..., None, :]).astype(s.dtype))
            pairs = xp.where(eye, 0, pairs)
            own = xp.diagonal(x, axis1=-2, axis2=-1)
            w = -pairs * x.swapaxes(-1, -2)
            w = xp.where(eye, (pairs @ own[..., None]), w)
            out[bad] = phase[..., None, None] * (u.conj() @ w @ vh.conj())

    register_kernel("solve", kind, solve)
    register_kernel("inv", kind, inv)
    register_kernel("det", kind, det)
    register_kernel("slogdet", kind, slogdet)
    register_kernel("cholesky", kind, cholesky)
    register_kernel("triangle", kind, triangle)
    register_kernel("identity_like", kind, identity)
    register_kernel("solve_triangular", kind, solve_triangular)
    register_kernel("cofactor", kind, cofactor)
    register_kernel("cofactor_slope", kind, cofactor_slope)
    _lapack.register(xp, kind, "solve", "inv", "det", "slogdet", "cholesky")


def _regular(xp: Any, a: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return inverses and determinants, and which matrices are too nearly singular for these."""
    a = a.astype(out.dtype)
    volume = xp.asarray(xp.linalg.det(a))
    zero = volume == 0
    eye = xp.eye(a.shape[-1], dtype=a.dtype)
    inverse = xp.linalg.inv(xp.where(zero[..., None, None], eye, a))
    size = xp.linalg.norm(a, axis=(-2, -1)) * xp.linalg.norm(inverse, axis=(-2, -1))
    well = size < WELL_CONDITIONED[out.dtype.char] * max(a.shape[-1], 1)
    bad = zero | ~well | ~xp.isfinite(volume)
    return inverse, volume, bad & xp.isfinite(a).all((-2, -1))  # what is not finite stays so


def _rotations(xp: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Return singular vectors and values of square matrices, and the determinant of the rotations."""
    u, s, vh = explained("det", lambda a: xp.linalg.svd(a), a)
    phase = xp.linalg.det(u @ vh)
    return u, s, vh, phase if phase.dtype.kind == "c" else xp.sign(phase)


def _others(xp: Any, s: Any) -> Any:
    """Return for each element along the last axis the product of all others."""
    ones = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return before * after
