"""LU decompositions with row exchanges.

The rules are those of de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
factorization" (2011), for matrices of any shape; the order of the rows counts as fixed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactgrad.backend import Spec
from reactgrad.linalg._cholesky import solve_triangular
from reactgrad.linalg._matrices import float_dtype, matrix_shape, triangle
from reactgrad.linalg._parts import Piece, least, packed_op, part_op
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import swap_last
from reactgrad.ops._operand import node


class LUResult(NamedTuple):
    """A permutation and two triangles.

    Attributes
    ----------
    P : Var
        The permutation, real, of shape (..., m, m).
    L : Var
        Lower, with ones in the diagonal, of shape (..., m, k).
    U : Var
        Upper, of shape (..., k, n).
    """

    P: Any
    L: Any
    U: Any


def _layout(shape: Any) -> tuple[Piece, ...]:
    m, n = shape[-2:]
    k = least(m, n)
    return Piece((m, m), True), Piece((m, k)), Piece((k, n))


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return matrix_shape("lu", specs[0])[0], float_dtype("lu", specs[0].dtype)


class _Parts:
    """A decomposition as rules use it: square triangles, and the rest of the longer one."""

    def __init__(self, packed: Any, a: Any) -> None:
        self.p, self.l, self.u = [apply(op, (packed, a)) for op in (P, L, U)]
        self.below = self.beside = None
        m, n = a.shape[-2:]
        self.k = k = least(m, n)
        if k is None:  # the rules are asked again once all lengths are known
            return
        if n > k:
            self.u, self.beside = self.u[..., :k], self.u[..., k:]
        if m > k:
            self.l, self.below = self.l[..., :k, :], self.l[..., k:, :]

    def back(self, inner: Any, below: Any, beside: Any) -> Any:
        """Return the gradient by the matrix, given those by ``l**-1 @ . @ u**-1`` and by the rest, which may
        be none.
        """
        left = solve_triangular(self.l, inner, "T", True, True)
        first = swap_last(solve_triangular(self.u, swap_last(left)))
        if self.below is not None:
            first = concatenate((first, self.below * 0 if below is None else below), -2)
        if self.beside is not None:
            first = concatenate((first, self.beside * 0 if beside is None else beside), -1)
        return self.p @ first


def _lower_rule(g: Any, ans: Any, packed: Any, a: Any) -> Any:
    d = _Parts(packed, a)
    if d.below is None:
        return d.back(triangle(swap_last(d.l) @ g, True, 0.0), None, None)
    g, rest = g[..., : d.k, :], g[..., d.k :, :]
    inner = triangle(swap_last(d.l) @ g, True, 0.0)
    inner = inner - triangle(swap_last(d.below) @ rest, False, 1.0)
    return d.back(inner, swap_last(solve_triangular(d.u, swap_last(rest))), None)


def _upper_rule(g: Any, ans: Any, packed: Any, a: Any) -> Any:
    d = _Parts(packed, a)
    if d.beside is None:
        return d.back(triangle(g @ swap_last(d.u), False, 1.0), None, None)
    g, rest = g[..., : d.k], g[..., d.k :]
    inner = triangle(g @ swap_last(d.u), False, 1.0)
    inner = inner - triangle(rest @ swap_last(d.beside), True, 0.0)
    return d.back(inner, None, solve_triangular(d.l, rest, "T", True, True))


def _inner(t: Any, d: _Parts) -> tuple[Any, Any]:
    """Return a tangent with its rows in order, and ``l**-1 @ t @ u**-1`` of its square part."""
    t = swap_last(d.p) @ t
    square = t[..., : d.k, : d.k]
    left = solve_triangular(d.l, square, "N", True, True)
    return t, swap_last(solve_triangular(d.u, swap_last(left), "T"))


def _lower_jvp(t: Any, ans: Any, packed: Any, a: Any) -> Any:
    d = _Parts(packed, a)
    t, inner = _inner(t, d)
    first = d.l @ triangle(inner, True, 0.0)
    if d.below is None:
        return first
    rest = swap_last(solve_triangular(d.u, swap_last(t[..., d.k :, :]), "T"))
    return concatenate((first, rest - d.below @ triangle(inner, False, 1.0)), -2)


def _upper_jvp(t: Any, ans: Any, packed: Any, a: Any) -> Any:
    d = _Parts(packed, a)
    t, inner = _inner(t, d)
    first = triangle(inner, False, 1.0) @ d.u
    if d.beside is None:
        return first
    rest = solve_triangular(d.l, t[..., d.k :], "N", True, True)
    return concatenate((first, rest - triangle(inner, True, 0.0) @ d.beside), -1)


LU = packed_op("lu", _check, _layout)
P = part_op("lu_permutation", _layout, 0, (None,), (None,))
L = part_op("lu_lower", _layout, 1, (_lower_rule,), (_lower_jvp,))
U = part_op("lu_upper", _layout, 2, (_upper_rule,), (_upper_jvp,))


def lu(a: Any) -> LUResult:
    """Return a permutation and triangles, ``a == P @ L @ U``.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., m, n).

    Returns
    -------
    LUResult
        ``P``, ``L`` and ``U``, from one decomposition. Gradients exist where the square part of
        both triangles is regular; elsewhere reading them raises. None passes ``P``.

    Raises
    ------
    LinAlgError
        Without two axes; a ``ShapeError``, too. When a gradient is read, if a triangle is singular.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     p, l, u = rg.linalg.lu([[0.0, 2.0], [4.0, 8.0]])
    >>> u.value
    array([[4., 8.],
           [0., 2.]])
    """
    a = node(a)
    packed = apply(LU, (a,))
    return LUResult(*[apply(op, (packed, a)) for op in (P, L, U)])
