"""Pseudo-inverses, and least squares by them.

The rules are those of Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
problems whose variables separate" (1973), at constant rank. Where a matrix has full rank, a projection
in them is exactly 0, and its rounding errors cannot grow with the condition number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reactgrad._calls import real_number
from reactgrad._errors import MatrixShapeError, ParameterError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.linalg._matrices import (
    adjoint,
    conjugate,
    float_dtype,
    is_complex,
    matrix_shape,
    nodes,
    real_dtype,
)
from reactgrad.linalg._parts import Piece, least, packed_op, part_op
from reactgrad.linalg._solve import as_columns, as_given
from reactgrad.linalg._svd import drift, spread, thin
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op, RuleOfAll
from reactgrad.ops._astype import astype
from reactgrad.ops._complex import imag, real
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import square
from reactgrad.ops._layout import spread as spread_to
from reactgrad.ops._layout import swap_last
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import broadcast

_UNSET = object()  # `rtol=None` has a meaning of its own


class LstsqResult(NamedTuple):
    """Least squares, in the order of NumPy's tuple.

    Attributes
    ----------
    x : Var
        The solution of least norm, of shape (n,) or (n, k).
    residuals : Var
        Sums of squares of ``b - a @ x``, of shape (1,) or (k,); of shape (0,) where ``m <= n``.
    rank : Var
        The number of singular values that count, an integer.
    singular_values : Var
        Those of `a`, descending.
    """

    x: Any
    residuals: Any
    rank: Any
    singular_values: Any


# --- pseudo-inverses ---------------------------------------------------------------------------


def _infer_pinv(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    _, u, _, vh, rcond, *_ = specs
    batch = broadcast("pinv", [spec(u.shape[:-2], u.dtype, u.device), rcond])
    return spec((*batch, vh.shape[-1], u.shape[-2]), u.dtype, u.device)


def _infer_null(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    p, left = specs[-1], attrs[1]
    n = p.shape[-1] if left else p.shape[-2]
    return spec((*p.shape[:-2], n, n), p.dtype, p.device)


def _loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return tuple([real_dtype(one.dtype) if one.weak else one.dtype for one in specs])


def _with_adjoint(x: Any) -> Any:
    """Return ``x + x^H``."""
    return x + adjoint(x)


def _null_rule(g: Any, ans: Any, *rest: Any) -> Any:
    *_, p, _, left = rest
    first, last = (ans, p) if left else (p, ans)
    return -(swap_last(first) @ _with_adjoint(g) @ swap_last(last))


def _null_jvp(t: Any, ans: Any, *rest: Any) -> Any:
    *_, p, _, left = rest
    return -_with_adjoint(ans @ t @ p if left else p @ t @ ans)


def _nulls(p: Any, operands: tuple[Any, ...], auto: bool) -> tuple[Any, Any]:
    """Return the projections to what `a` and its adjoint do not reach, given its pseudo-inverse."""
    left, right = [apply(NULL, (*operands, p), (auto, side)) for side in (True, False)]
    return left, right


def _pinv_rule(g: Any, ans: Any, *rest: Any) -> Any:
    *operands, auto = rest
    left, right = _nulls(ans, tuple(operands), auto)
    turned, g = adjoint(ans), swap_last(g)
    rest = left @ g @ (ans @ turned) + (turned @ ans) @ g @ right
    return conjugate(rest) - swap_last(ans @ g @ ans)


def _pinv_jvp(t: Any, ans: Any, *rest: Any) -> Any:
    *operands, auto = rest
    left, right = _nulls(ans, tuple(operands), auto)
    turned, back = adjoint(ans), adjoint(t)
    return (ans @ turned) @ back @ left + right @ back @ (turned @ ans) - ans @ t @ ans


# Operands: the matrix, its singular vectors and values, and what counts as 0. Derivatives by the
# matrix count those of the others.
NULL = Op(
    "null",
    _infer_null,
    (_null_rule, *[None] * 5),
    (_null_jvp, *[None] * 5),
    loop_dtypes=_loop,
    broadcasts=True,
)
PINV = Op(
    "pinv",
    _infer_pinv,
    (_pinv_rule, *[None] * 4),
    (_pinv_jvp, *[None] * 4),
    loop_dtypes=_loop,
    broadcasts=True,
)


def _operands(a: Any, rcond: Any, hermitian: bool) -> tuple[tuple[Any, ...], bool]:
    """Return the operands of ``PINV`` for a matrix, and whether they leave `rcond` to the kernel."""
    (a, cutoff), auto = nodes((a, 0.0 if rcond is None else rcond)), rcond is None
    return (a, *thin(a, hermitian), cutoff), auto


@deferred
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _UNSET) -> Any:
    """Return pseudo-inverses (Moore and Penrose) of matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., m, n).
    rcond : float or array_like, optional
        Singular values up to `rcond` times the largest one count as 0; by default 1e-15, as in NumPy.
    hermitian : bool
        Whether `a` is known to be Hermitian, which is faster; one triangle of it is read.
    rtol : float or array_like, optional
        Another name of `rcond`; ``None`` for max(m, n) times the precision of the dtype.

    Returns
    -------
    Var
        Shape (..., n, m). The gradient is that at constant rank: where a singular value
        crosses the cutoff, there is none.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) without two axes.
    DTypeError
        For half floats, or `rcond` and `rtol` at once.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    if rtol is not _UNSET:
        if rcond is not None:
            raise ParameterError(
                "pinv: rcond and rtol are one number by two names; give one of them."
            )
        rcond = rtol
    elif rcond is None:
        rcond = 1e-15
    operands, auto = _operands(a, rcond, bool(hermitian))
    return apply(PINV, operands, (auto,))


# --- least squares -----------------------------------------------------------------------------


def _layout(a: Any, b: Any, rcond: float | None) -> tuple[Piece, ...]:
    return Piece((a[-1], *b[1:])), Piece((least(*a),), True), Piece((), True)


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    a, b = specs
    batch, m, _ = matrix_shape("lstsq", a)
    if batch:
        raise MatrixShapeError(
            f"lstsq of {a!r}: as in NumPy it takes one matrix; use rg.linalg.pinv(a) @ b."
        )
    if len(b.shape) not in (1, 2):
        raise MatrixShapeError(f"lstsq of {a!r} and {b!r}: the right side is a vector or a matrix.")
    if m != b.shape[0] and m is not None and b.shape[0] is not None:
        raise MatrixShapeError(
            f"lstsq of {a!r} and {b!r}: the matrix has {m} rows and the right side {b.shape[0]}."
        )
    return (), float_dtype("lstsq", a.dtype, b.dtype)


def _solution_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    _, a, b = operands
    vector = b.ndim == 1
    inner, auto = _operands(a, attrs[0], False)
    p = apply(PINV, inner, (auto,))  # one decomposition serves both operands

    def rule(i: int, g: Any) -> Any:
        if i == 0:
            return None
        g = as_columns(g, vector)
        right = swap_last(p) @ g
        if i == 2:
            return as_given(right, vector)
        left, null = _nulls(p, inner, auto)
        x, over, turned = as_columns(ans, vector), as_columns(b, vector), adjoint(p)
        g = swap_last(g)
        rest = (left @ over) @ (g @ p @ turned) + (turned @ x) @ (g @ null)
        return conjugate(rest) - right @ swap_last(x)

    return rule


def _solution_tangents(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    _, a, b = operands
    vector = b.ndim == 1
    inner, auto = _operands(a, attrs[0], False)
    p = apply(PINV, inner, (auto,))

    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return None
        if i == 2:
            return p @ t
        left, null = _nulls(p, inner, auto)
        x, over, turned, back = (
            as_columns(ans, vector),
            as_columns(b, vector),
            adjoint(p),
            adjoint(t),
        )
        moved = p @ (turned @ (back @ (left @ over)) - t @ x) + null @ (back @ (turned @ x))
        return as_given(moved, vector)

    return rule


def _singular_rule(g: Any, ans: Any, packed: Any, a: Any, b: Any, rcond: Any) -> Any:
    u, _, vh = thin(a)
    return spread(u, vh, g)


def _singular_jvp(t: Any, ans: Any, packed: Any, a: Any, b: Any, rcond: Any) -> Any:
    u, _, vh = thin(a)
    return drift(u, vh, t)


LSTSQ = packed_op("lstsq", _check, _layout, operands=2)
SOLUTION = part_op(
    "lstsq_x",
    _layout,
    0,
    operands=2,
    variadic=_solution_rules,
    variadic_jvp=_solution_tangents,
)
SINGULAR = part_op("lstsq_s", _layout, 1, (_singular_rule, None), (_singular_jvp, None), operands=2)
RANK = part_op("lstsq_rank", _layout, 2, (None, None), (None, None), operands=2)


def _is_tall(shape: Any) -> bool:
    return None in shape or shape[0] > shape[1]


def _infer_residuals(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    sums, a = specs
    shape = (None,) if None in a.shape else sums.shape if _is_tall(a.shape) else (0,)
    return spec(shape, sums.dtype, sums.device)


def _view_residuals(sums: Any, shape: Any) -> Any:
    return sums[...] if _is_tall(shape) else sums[:0]


def _residuals_kernel(sums: Any, a: Any, out: Any) -> None:
    out[...] = _view_residuals(sums, a.shape)


# There are none where the equations can be solved exactly.
RESIDUALS = Op(
    "lstsq_residuals",
    _infer_residuals,
    (lambda g, ans, sums, a: g if _is_tall(a.shape) else spread_to(sum(g), sums), None),
    (LINEAR, None),
    view=_view_residuals,
)
add_kernels(
    lambda xp, kind: register_kernel("lstsq_residuals", kind, _residuals_kernel),
    on_host(("lstsq_residuals",)),
)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> LstsqResult:
    """Return the `x` that makes ``a @ x - b`` smallest, of those the shortest.

    Parameters
    ----------
    a : Var or array_like
        Shape (m, n).
    b : Var or array_like
        Shape (m,) or (m, k).
    rcond : float, optional
        Singular values up to `rcond` times the largest one count as 0; by default max(m, n) times the
        precision of the dtype, and that precision alone for -1.

    Returns
    -------
    LstsqResult
        ``x``, ``residuals``, ``rank`` and ``singular_values``. Gradients are those at constant rank, by
        the pseudo-inverse. Residuals are there at any rank, since a shape cannot depend on values:
        NumPy returns none of a matrix whose columns depend on each other.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) if the shapes do not fit.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x, residuals, rank, s = rg.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0])
    >>> x.value.round(6), residuals.value.round(6), rank.value
    (array([2.]), array([2.]), np.int32(1))
    """
    a, b = nodes((a, b))
    attrs = (None if rcond is None else real_number("lstsq", "rcond", rcond),)
    packed = apply(LSTSQ, (a, b), attrs)
    x, s, rank = [apply(op, (packed, a, b), attrs) for op in (SOLUTION, SINGULAR, RANK)]
    apart = b - a @ x
    squares = square(real(apart)) + square(imag(apart)) if is_complex(apart) else square(apart)
    residuals = apply(RESIDUALS, (sum(squares, 0, keepdims=b.ndim == 1), a))
    return LstsqResult(x, residuals, astype(rank, np.dtype(np.int32)), s)
