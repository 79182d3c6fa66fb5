"""QR decompositions.

The rules are those of Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with
application in optimum experimental design" (2010), for wide matrices those of Roberts and Roberts, "QR and
LQ decomposition matrix backpropagation algorithms" (2020).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactgrad._errors import GradientError, ParameterError
from reactgrad.backend import Spec, spec
from reactgrad.linalg._cholesky import solve_triangular
from reactgrad.linalg._matrices import (
    adjoint,
    conjugate,
    float_dtype,
    identity_like,
    is_complex,
    matrix_shape,
    triangle,
)
from reactgrad.linalg._parts import Piece, least, packed_op, part_op
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._complex import imag
from reactgrad.ops._index import Index, Placed
from reactgrad.ops._join import concatenate
from reactgrad.ops._operand import node
from reactgrad.scheduler import safe_repr


class QRResult(NamedTuple):
    """Orthonormal columns and a triangle.

    Attributes
    ----------
    Q : Var
        Shape (..., m, k), or (..., m, m) in mode ``"complete"``.
    R : Var
        Shape (..., k, n), or (..., m, n) in mode ``"complete"``.
    """

    Q: Any
    R: Any


def _layout(shape: Any, mode: str) -> tuple[Piece, ...]:
    m, n = shape[-2:]
    k = least(m, n)
    if mode == "raw":
        return Piece((n, m)), Piece((k,))
    rows = m if mode == "complete" else k
    return Piece((m, rows)), Piece((rows, n))


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return matrix_shape("qr", specs[0])[0], float_dtype("qr", specs[0].dtype)


class _Parts:
    """A decomposition as rules use it.

    The first k columns of `a` are ``q @ r``; ``beyond`` are columns of Q after them, and ``more`` columns of R
    after its square part, each ``None`` where there are none.
    """

    def __init__(self, q: Any, r: Any, a: Any) -> None:
        self.q, self.r, self.more, self.beyond = q, r, None, None
        self.m, self.n = m, n = a.shape[-2:]
        self.k = k = least(m, n)
        if k is None:  # the rules are asked again once all lengths are known
            return
        if n > k:
            self.r, self.more = r[..., :k], r[..., k:]
        if q.shape[-1] > k:
            self.q, self.beyond = q[..., :k], q[..., k:]
        if r.shape[-2] > k:
            self.r = self.r[..., :k, :]

    def divided(self, x: Any) -> Any:
        """Return ``x @ r^-H``."""
        return adjoint(solve_triangular(self.r, adjoint(x)))

    def back(self, outer: Any, inner: Any, last: Any) -> Any:
        """Return the gradient by the matrix, given those by Q outside, by the angles inside, and by columns
        beyond the square part.
        """
        upper = triangle(inner, False, 0.5)
        first = self.q @ (upper + adjoint(upper))
        first = conjugate(self.divided(first if outer is None else first + outer))
        if self.more is None:
            return first
        if last is None:
            return Placed(first, Index((Ellipsis, slice(None, self.k))))
        return concatenate((first, conjugate(last)), -1)


def _pair(packed: Any, a: Any, mode: str) -> _Parts:
    return _Parts(apply(Q, (packed, a), (mode,)), apply(R, (packed, a), (mode,)), a)


def _refuse_raw(mode: str) -> None:
    if mode == "raw":
        raise GradientError("qr: mode 'raw' has no gradient; use mode 'reduced'.")


def _q_rule(g: Any, ans: Any, packed: Any, a: Any, mode: str) -> Any:
    _refuse_raw(mode)
    d, g = _pair(packed, a, mode), conjugate(g)
    if d.beyond is not None:
        k = d.k
        g = g[..., :k] - d.beyond @ (adjoint(g[..., k:]) @ d.q)
    return d.back(g, -(adjoint(d.q) @ g), None)


def _r_gradient(g: Any, d: _Parts) -> Any:
    g = conjugate(g)
    if d.k is not None and g.shape[-2] > d.k:
        g = g[..., : d.k, :]
    if d.more is None:
        return d.back(None, g @ adjoint(d.r), None)
    g, last = g[..., : d.k], g[..., d.k :]
    moved = d.more @ adjoint(last)
    return d.back(d.q @ moved, g @ adjoint(d.r) - moved, d.q @ last)


def _r_rule(g: Any, ans: Any, packed: Any, a: Any, mode: str) -> Any:
    _refuse_raw(mode)
    return _r_gradient(g, _pair(packed, a, mode))


def _turn(t: Any, d: _Parts) -> tuple[Any, Any]:
    """Return ``t @ r^-1`` for the first columns of a tangent, and how the columns of q turn."""
    first = t if d.more is None else t[..., : d.k]
    moved = adjoint(solve_triangular(d.r, adjoint(first), "C"))
    inner = adjoint(d.q) @ moved
    lower = triangle(inner, True, 0.0)
    turn = lower - adjoint(lower)
    if is_complex(inner):
        turn = turn + identity_like(inner) * (imag(inner) * 1j)
    return moved, turn


def _q_jvp(t: Any, ans: Any, packed: Any, a: Any, mode: str) -> Any:
    _refuse_raw(mode)
    d = _pair(packed, a, mode)
    moved, turn = _turn(t, d)
    if d.beyond is not None:
        away = adjoint(d.beyond) @ moved
        first = d.q @ turn + d.beyond @ away
        return concatenate((first, -(d.q @ adjoint(away))), -1)
    if d.k is not None and d.m == d.k:
        return d.q @ turn
    return d.q @ (turn - adjoint(d.q) @ moved) + moved


def _r_tangent(t: Any, ans: Any, d: _Parts) -> Any:
    _, turn = _turn(t, d)
    r = d.r if d.more is None else concatenate((d.r, d.more), -1)
    # What lies below the diagonal is 0 but for rounding.
    top = triangle(adjoint(d.q) @ t - turn @ r, False, 1.0)
    if d.k is None or ans.shape[-2] == d.k:
        return top
    return Placed(top, Index((Ellipsis, slice(None, d.k), slice(None))))


def _r_jvp(t: Any, ans: Any, packed: Any, a: Any, mode: str) -> Any:
    _refuse_raw(mode)
    return _r_tangent(t, ans, _pair(packed, a, mode))


QR = packed_op("qr", _check, _layout)
Q = part_op("qr_q", _layout, 0, (_q_rule,), (_q_jvp,))
R = part_op("qr_triangle", _layout, 1, (_r_rule,), (_r_jvp,))


def _infer_r(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    batch, m, n = matrix_shape("qr", one)
    return spec((*batch, least(m, n), n), float_dtype("qr", one.dtype), one.device)


def _reduced(a: Any) -> _Parts:
    return _pair(apply(QR, (a,), ("reduced",)), a, "reduced")


QR_R = Op(
    "qr_r",
    _infer_r,
    (lambda g, ans, a: _r_gradient(g, _reduced(a)),),
    (lambda t, ans, a: _r_tangent(t, ans, _reduced(a)),),
)


def qr(a: Any, mode: str = "reduced") -> Any:
    """Return orthonormal columns and a triangle, ``a == Q @ R``.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., m, n).
    mode : {"reduced", "complete", "r", "raw"}
        ``"reduced"``: Q has k = min(m, n) columns; ``"complete"``: m columns; ``"r"``: only R; ``"raw"``: the
        reflectors of LAPACK, ``(h, tau)``, which have no gradient.

    Returns
    -------
    QRResult or Var or tuple of Var
        ``Q`` and ``R``, from one decomposition. Gradients exist where the first k columns of `a` are
        independent; elsewhere reading them raises. Columns of Q beyond k may turn among each other:
        gradients are those of functions that do not depend on how.

    Raises
    ------
    LinAlgError
        Without two axes; a ``ShapeError``, too. When a gradient is read, if a triangle is singular.
    DTypeError
        For half floats, or another `mode`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     q, r = rg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> abs(r).value.round(6)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ParameterError(
            f"qr: mode={safe_repr(mode)}; it is 'reduced', 'complete', 'r' or 'raw'."
        )
    if mode == "r":
        return apply(QR_R, (a,))
    a = node(a)
    packed = apply(QR, (a,), (mode,))
    both = apply(Q, (packed, a), (mode,)), apply(R, (packed, a), (mode,))
    return both if mode == "raw" else QRResult(*both)
