"""Singular values and vectors.

The rules are those of Townsend, "Differentiating the singular value decomposition" (2016), complex
as in Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019). The common
phase of a pair of vectors, which no function may depend on, is shared evenly by both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactgrad.backend import Spec, spec
from reactgrad.linalg._eigh import gap
from reactgrad.linalg._matrices import (
    adjoint,
    column,
    conjugate,
    float_dtype,
    identity_like,
    is_complex,
    matrix_shape,
    real_dtype,
    real_part,
    row,
)
from reactgrad.linalg._parts import Piece, least, packed_op, part_op
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import over
from reactgrad.ops._complex import imag
from reactgrad.ops._join import concatenate
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum


class SVDResult(NamedTuple):
    """Singular vectors and values.

    Attributes
    ----------
    U : Var
        Left vectors in columns, of shape (..., m, m), or (..., m, k) for the smaller length k.
    S : Var
        Singular values, descending, real, of shape (..., k).
    Vh : Var
        Conjugates of right vectors in rows, of shape (..., n, n) or (..., k, n).
    """

    U: Any
    S: Any
    Vh: Any


def _layout(shape: Any, full: bool, hermitian: bool) -> tuple[Piece, ...]:
    m, n = shape[-2:]
    k = least(m, n)
    return Piece((m, m if full else k)), Piece((k,), True), Piece((n if full else k, n))


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return matrix_shape("svd", specs[0])[0], float_dtype("svd", specs[0].dtype)


class _Parts:
    """A decomposition as rules use it: the vectors that belong to values, and those beyond."""

    def __init__(self, packed: Any, a: Any, attrs: Attrs) -> None:
        self.u, self.s, self.vh = [apply(op, (packed, a), attrs) for op in (LEFT, VALUES, RIGHT)]
        self.beyond_u = self.beyond_vh = None
        self.m, self.n = a.shape[-2:]
        # Where a length is not known yet, the rules are asked again once it is.
        if attrs[0] and self.m is not None and self.n is not None:
            if self.m > self.n:
                self.u, self.beyond_u = self.u[..., : self.n], self.u[..., self.n :]
            elif self.m < self.n:
                self.vh, self.beyond_vh = self.vh[..., : self.m, :], self.vh[..., self.m :, :]

    def all_rows(self) -> bool:
        """Return whether the left vectors are known to span all that there is."""
        return self.m is not None and self.m == least(self.m, self.n)

    def all_columns(self) -> bool:
        """Return whether the right vectors are known to span all that there is."""
        return self.n is not None and self.n == least(self.m, self.n)

    def over_both(self, x: Any, sign: int) -> Any:
        """Return ``x + sign x^H`` over the differences of squares of singular values."""
        return over(gap(x, self.s, sign) * 2.0, row(self.s) + column(self.s))

    def phase(self, x: Any) -> Any:
        """Return the imaginary part of the diagonal over the singular values, times i / 2."""
        return identity_like(x) * over(imag(x) * 0.5j, row(self.s))


def _left_rule(g: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d, g = _Parts(packed, a, attrs), conjugate(g)
    rest = None
    if d.beyond_u is not None:
        g, rest = g[..., : d.n], g[..., d.n :]
    overlap = adjoint(d.u) @ g
    middle = d.over_both(overlap, -1) * row(d.s)
    if is_complex(ans):
        middle = middle + d.phase(overlap)
    left = d.u @ middle
    if rest is not None:
        away = adjoint(d.beyond_u) @ g - adjoint(adjoint(d.u) @ rest)
        left = left + over(d.beyond_u @ away, row(d.s))
    elif not d.all_rows():
        left = left + over(g - d.u @ overlap, row(d.s))
    return conjugate(left @ d.vh)


def _right_rule(g: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d, g = _Parts(packed, a, attrs), conjugate(g)
    rest = None
    if d.beyond_vh is not None:
        g, rest = g[..., : d.m, :], g[..., d.m :, :]
    overlap = adjoint(g @ adjoint(d.vh))
    middle = d.over_both(overlap, -1) * column(d.s)
    if is_complex(ans):
        middle = middle - d.phase(overlap)
    right = middle @ d.vh
    if rest is not None:
        away = g @ adjoint(d.beyond_vh) - adjoint(rest @ adjoint(d.vh))
        right = right + over(away @ d.beyond_vh, column(d.s))
    elif not d.all_columns():
        right = right + over(g - adjoint(overlap) @ d.vh, column(d.s))
    return conjugate(d.u @ right)


def spread(u: Any, vh: Any, g: Any) -> Any:
    """Return the gradient by the matrix, given that by its singular values."""
    return (conjugate(u) * row(g)) @ conjugate(vh)


def drift(u: Any, vh: Any, t: Any) -> Any:
    """Return the tangents of singular values."""
    return real_part(sum(conjugate(u) * (t @ adjoint(vh)), -2))


def _values_rule(g: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d = _Parts(packed, a, attrs)
    return spread(d.u, d.vh, g)


def _values_jvp(t: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d = _Parts(packed, a, attrs)
    return drift(d.u, d.vh, t)


def _left_jvp(t: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d = _Parts(packed, a, attrs)
    moved = t @ adjoint(d.vh)
    inner = adjoint(d.u) @ moved
    turn = d.over_both(inner * row(d.s), 1)
    if is_complex(ans):
        turn = turn + d.phase(inner)
    if d.beyond_u is not None:
        away = over(adjoint(d.beyond_u) @ moved, row(d.s))
        first = d.u @ turn + d.beyond_u @ away
        return concatenate((first, -(d.u @ adjoint(away))), -1)
    if d.all_rows():
        return d.u @ turn
    return d.u @ turn + over(moved - d.u @ inner, row(d.s))


def _right_jvp(t: Any, ans: Any, packed: Any, a: Any, *attrs: Any) -> Any:
    d = _Parts(packed, a, attrs)
    moved = adjoint(d.u) @ t
    inner = moved @ adjoint(d.vh)
    turn = d.over_both(inner * column(d.s), 1)
    if is_complex(ans):
        turn = turn - d.phase(inner)
    turn = adjoint(turn)
    if d.beyond_vh is not None:
        away = over(moved @ adjoint(d.beyond_vh), column(d.s))
        first = turn @ d.vh + away @ d.beyond_vh
        return concatenate((first, -(adjoint(away) @ d.vh)), -2)
    if d.all_columns():
        return turn @ d.vh
    return turn @ d.vh + over(moved - inner @ d.vh, column(d.s))


SVD = packed_op("svd", _check, _layout)
LEFT = part_op("svd_left", _layout, 0, (_left_rule,), (_left_jvp,))
VALUES = part_op("svd_values", _layout, 1, (_values_rule,), (_values_jvp,))
RIGHT = part_op("svd_right", _layout, 2, (_right_rule,), (_right_jvp,))


def _infer_values(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    batch, m, n = matrix_shape("svd", one)
    return spec((*batch, least(m, n)), real_dtype(float_dtype("svd", one.dtype)), one.device)


def _alone_rule(g: Any, ans: Any, a: Any, hermitian: bool) -> Any:
    u, _, vh = thin(a, hermitian)
    return spread(u, vh, g)


def _alone_jvp(t: Any, ans: Any, a: Any, hermitian: bool) -> Any:
    u, _, vh = thin(a, hermitian)
    return drift(u, vh, t)


SVDVALS = Op("svdvals", _infer_values, (_alone_rule,), (_alone_jvp,))


def thin(a: Any, hermitian: bool = False) -> SVDResult:
    """Return the decomposition with as many vectors on each side as there are singular values."""
    return _decomposed(a, (False, hermitian))


def _decomposed(a: Any, attrs: tuple[bool, bool]) -> SVDResult:
    packed = apply(SVD, (a,), attrs)
    return SVDResult(*[apply(op, (packed, a), attrs) for op in (LEFT, VALUES, RIGHT)])


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Return singular values and vectors, ``a == U * S @ Vh``.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., m, n).
    full_matrices : bool
        Whether `U` and `Vh` are square; else they have k = min(m, n) columns and rows.
    compute_uv : bool
        Whether vectors are wanted; else the result is ``S`` alone.
    hermitian : bool
        Whether `a` is known to be Hermitian, which is faster; one triangle of it is read.

    Returns
    -------
    SVDResult or Var
        ``U``, ``S`` and ``Vh``, from one decomposition. The gradient of values is right also where they are
        equal, and at 0 it is that of PyTorch. That of vectors whose values are equal up to rounding, or 0,
        is NaN or infinite. The vectors beyond k may turn among each other: gradients are those of functions
        that do not depend on how.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) without two axes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     u, s, vh = rg.linalg.svd([[3.0, 0.0], [0.0, 4.0]])
    >>> s.value
    array([4., 3.])
    """
    if not compute_uv:
        return apply(SVDVALS, (a,), (bool(hermitian),))
    return _decomposed(node(a), (bool(full_matrices), bool(hermitian)))


def svdvals(x: Any, /) -> Any:
    """Return singular values, descending.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n).

    Returns
    -------
    Var
        Shape (..., k) for k = min(m, n), of real numbers.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) without two axes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     s = rg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
    >>> s.value
    array([4., 3.])
    """
    return apply(SVDVALS, (x,), (False,))
