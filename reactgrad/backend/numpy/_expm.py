"""The matrix exponential and its derivatives: scaling and squaring with Padé approximants.

Higham, "The scaling and squaring method for the matrix exponential revisited" (2005); derivatives by the
same recurrences, as in Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix
exponential" (2009). An array of 2**k matrices stands for a matrix and its derivatives along
k directions: the one at index i for those directions whose bit is set in i.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_kernel
from reactgrad.backend.numpy._solve import host

NAMES: Final = ("expm",)

# Of each degree: the largest norm (of a matrix in double, in single precision) for which it is exact enough.
_LARGEST: Final = {
    "d": {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1}
    | {9: 2.097847961257068, 13: 5.371920351148152},
    "f": {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660},
}
# Derivatives need smaller ones: table 6.1 of Al-Mohy and Higham has at least 0.72 of these.
_WITH_DIRECTIONS: Final = 0.72


@cache
def _coefficients(degree: int) -> list[float]:
    """Return those of the numerator, of which the last is 1; all are integers."""
    top = math.factorial(2 * degree) // math.factorial(degree)
    return [
        float(
            top
            * math.comb(degree, j)
            * math.factorial(2 * degree - j)
            // math.factorial(2 * degree)
        )
        for j in range(degree + 1)
    ]


def _times(a: Any, b: Any) -> Any:
    """Return the product of two matrices with their derivatives."""
    if len(a) == 1:
        return a @ b
    out = a[0] @ b
    for i in range(1, len(a)):
        part = i
        while part:
            out[i] += a[part] @ b[i ^ part]
            part = (part - 1) & i
    return out


def _divided(xp: Any, a: Any, b: Any) -> Any:
    """Return ``a**-1 @ b`` of two matrices with their derivatives."""
    if len(a) == 1:
        return xp.linalg.solve(a, b)
    out = xp.empty_like(b)
    for i in range(len(a)):
        right, part = b[i], i
        while part:
            right = right - a[part] @ out[i ^ part]
            part = (part - 1) & i
        out[i] = xp.linalg.solve(a[0], right)
    return out


def _approximant(xp: Any, a: Any, degree: int) -> Any:
    c = _coefficients(degree)
    one = xp.eye(a.shape[-1], dtype=a.dtype)
    if len(a) > 1:
        one = xp.where(xp.arange(len(a))[:, None, None, None] == 0, one, 0).astype(a.dtype)
    a2 = _times(a, a)
    if degree == 13:
        a4 = _times(a2, a2)
        a6 = _times(a4, a2)
        odd = _times(a6, c[13] * a6 + c[11] * a4 + c[9] * a2)
        odd = odd + c[7] * a6 + c[5] * a4 + c[3] * a2 + c[1] * one
        even = _times(a6, c[12] * a6 + c[10] * a4 + c[8] * a2)
        even = even + c[6] * a6 + c[4] * a4 + c[2] * a2 + c[0] * one
    else:
        power, odd, even = a2, c[1] * one + c[3] * a2, c[0] * one + c[2] * a2
        for j in range(4, degree, 2):
            power = _times(power, a2)
            odd, even = odd + c[j + 1] * power, even + c[j] * power
    odd = _times(a, odd)
    return _divided(xp, even - odd, even + odd)


def exponential(xp: Any, a: Any) -> Any:
    """Return the exponentials of matrices with their derivatives; of shape (2**k, count, n, n)."""
    largest = _LARGEST["f" if a.dtype.char in "fF" else "d"]
    norm = xp.abs(a[0]).sum(-2).max(-1)
    if len(a) > 1:
        norm = norm / _WITH_DIRECTIONS
    norm = host(norm)
    degrees = np.searchsorted([*largest.values()][:-1], norm)
    some = set(degrees.tolist())
    if len(some) == 1:
        return _scaled(xp, a, norm, *[*largest.items()][some.pop()])
    out = xp.empty_like(a)
    for one in some:
        here = degrees == one
        at = xp.asarray(np.flatnonzero(here))
        out[:, at] = _scaled(xp, a[:, at], norm[here], *[*largest.items()][one])
    return out


def _scaled(xp: Any, a: Any, norm: Any, degree: int, bound: float) -> Any:
    """Return exponentials by one degree, of matrices halved until their norms are below the bound."""
    ratio = norm / bound
    ratio = np.where(np.isfinite(ratio) & (ratio > 1), ratio, 1)
    halvings = np.ceil(np.log2(ratio)).astype(int)
    most = int(halvings.max())
    if most:
        scale = np.ldexp(np.ones(len(halvings)), -halvings)[:, None, None]
        a = a * xp.asarray(scale.astype(np.dtype(a.dtype.char.lower())))
    found = _approximant(xp, a, degree)
    for turn in range(most):
        more = halvings > turn
        if more.all():
            found = _times(found, found)
        else:
            at = xp.asarray(np.flatnonzero(more))
            found[:, at] = _times(found[:, at], found[:, at])
    return found


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def expm(a: Any, *rest: Any) -> None:
        *directions, out = rest
        if not out.size:
            return
        n, k = a.shape[-1], len(directions)
        given = xp.zeros((2**k, out[..., 0, 0].size, n, n), out.dtype)
        given[0] = xp.broadcast_to(a, out.shape).reshape(given.shape[1:])
        for i, one in enumerate(directions):
            given[2**i] = xp.broadcast_to(one, out.shape).reshape(given.shape[1:])
        out[...] = exponential(xp, given)[-1].reshape(out.shape)

    register_kernel("expm", kind, expm)
