"""Determinants, and their signs and logarithms.

The derivative of a determinant by the matrix holds its cofactors, also where the matrix is singular:
there they are products of singular values (Stewart, 1998).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactgrad.backend import Spec, spec
from reactgrad.linalg._matrices import (
    alike,
    first_alike,
    float_dtype,
    identity_like,
    is_complex,
    real_part,
    square_shape,
)
from reactgrad.linalg._parts import Piece, packed_op, part_op
from reactgrad.linalg._solve import inverse
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._chain import times
from reactgrad.ops._complex import imag, real
from reactgrad.ops._layout import swap_last
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum

MATRIX = (-2, -1)


class SlogdetResult(NamedTuple):
    """The signs and logarithms of determinants.

    Attributes
    ----------
    sign : Var
        -1, 0 or 1; complex numbers of length 1, or 0, for complex matrices.
    logabsdet : Var
        The natural logarithm of the absolute value; minus infinity for singular matrices.
    """

    sign: Any
    logabsdet: Any


def _infer_det(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    batch, _ = square_shape("det", one)
    return spec(batch, float_dtype("det", one.dtype), one.device)


def _each(g: Any) -> Any:
    """Return a number of each matrix as a factor of its elements."""
    return g[..., None, None]


def _third(g: Any, ans: Any, t: Any, a: Any) -> Any:
    """Return the third derivative of the determinant along two directions, for a regular matrix."""
    b = inverse(a)
    bt, bg = b @ t, b @ g
    first, second = _trace(bt), _trace(bg)
    both = first * second - _trace(bt @ bg)
    rest = (bt @ bg + bg @ bt - bt * second - bg * first) @ b
    return _each(det(a)) * swap_last(both * b + rest)


def _trace(x: Any) -> Any:
    return _each(sum(x * identity_like(x), MATRIX))


# The second derivative of the determinant is a symmetric form: one rule for both modes.
_SLOPE_RULES = (lambda g, ans, t, a: apply(COFACTOR_SLOPE, (g, a)), _third)
COFACTOR_SLOPE = Op("cofactor_slope", first_alike, _SLOPE_RULES, (LINEAR, _third))

_RULES = (lambda g, ans, a: apply(COFACTOR_SLOPE, (g, a)),)
COFACTOR = Op("cofactor", alike("det"), _RULES, _RULES)

DET = Op(
    "det",
    _infer_det,
    (lambda g, ans, a: times(_each(g), apply(COFACTOR, (a,))),),
    (lambda t, ans, a: sum(times(t, apply(COFACTOR, (a,))), MATRIX),),
)


def det(a: Any) -> Any:
    """Return the determinants of matrices.

    The gradient is right at singular matrices, too, to second order; third derivatives need regular ones.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n).

    Returns
    -------
    Var
        Shape (...); integers give float64.

    Raises
    ------
    LinAlgError
        If `a` holds no square matrices; a ``ShapeError``, too.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.det([[1.0, 2.0], [3.0, 5.0]])
    >>> round(y.item(), 12)
    -1.0
    """
    return apply(DET, (a,))


def _layout(shape: Any) -> tuple[Piece, ...]:
    return Piece(()), Piece((), True)


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return square_shape("slogdet", specs[0])[0], float_dtype("slogdet", specs[0].dtype)


def _log_rule(g: Any, ans: Any, packed: Any, a: Any) -> Any:
    return times(_each(g), swap_last(inverse(a)))


def _log_jvp(t: Any, ans: Any, packed: Any, a: Any) -> Any:
    return real_part(sum(times(t, swap_last(inverse(a))), MATRIX))


def _sign_rule(g: Any, ans: Any, packed: Any, a: Any) -> Any:
    if not is_complex(a):
        return None
    return times(_each(real(g * ans * 1j) * -1j), swap_last(inverse(a)))


def _sign_jvp(t: Any, ans: Any, packed: Any, a: Any) -> Any:
    if not is_complex(a):
        return None
    return ans * imag(sum(times(t, swap_last(inverse(a))), MATRIX)) * 1j


SLOGDET = packed_op("slogdet", _check, _layout)
SIGN = part_op("slogdet_sign", _layout, 0, (_sign_rule,), (_sign_jvp,))
LOGABSDET = part_op("slogdet_log", _layout, 1, (_log_rule,), (_log_jvp,))


def slogdet(a: Any) -> SlogdetResult:
    """Return the signs and the logarithms of the absolute values of determinants.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n).

    Returns
    -------
    SlogdetResult
        ``sign`` and ``logabsdet``, each of shape (...), from one factorisation. The gradient of
        ``logabsdet`` at a singular matrix is NaN, and 0 where no gradient arrives.

    Raises
    ------
    LinAlgError
        If `a` holds no square matrices; a ``ShapeError``, too.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     sign, logabsdet = rg.linalg.slogdet([[0.0, 1.0], [1.0, 0.0]])
    >>> sign.value, logabsdet.value
    (np.float64(-1.0), np.float64(0.0))
    """
    a = node(a)
    packed = apply(SLOGDET, (a,))
    return SlogdetResult(apply(SIGN, (packed, a)), apply(LOGABSDET, (packed, a)))
