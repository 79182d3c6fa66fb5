"""Eigenvalues and eigenvectors of Hermitian matrices.

The rules are those of Giles, "An extended collection of matrix derivative results" (2008), 3.1, with
an addition where eigenvalues are equal: see ``gap``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, spec
from reactgrad.linalg._matrices import (
    adjoint,
    column,
    conjugate,
    first_alike,
    float_dtype,
    is_complex,
    real_dtype,
    real_part,
    row,
    square_shape,
    triangle,
)
from reactgrad.linalg._parts import Piece, packed_op, part_op
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import swap_last
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum
from reactgrad.scheduler import safe_repr


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Attributes
    ----------
    eigenvalues : Var
        Ascending, of shape (..., n).
    eigenvectors : Var
        The columns, of length 1, of shape (..., n, n).
    """

    eigenvalues: Any
    eigenvectors: Any


# --- differences over gaps ---------------------------------------------------------------------


def gap(x: Any, w: Any, sign: int) -> Any:
    """Return ``(x + sign x^H) / 2``, or `x` for the sign 0, over ``w[j] - w[i]``, and 0 on the diagonal.

    Where two numbers are equal up to rounding, the result is NaN: their vectors are any two of a plane, and
    even of a function of the whole plane this rule could not tell the derivative. It is 0 where the
    elements of `x` are 0: a function of other vectors has no NaN.
    """
    return apply(GAP, (x, w), (sign,))


def _gap_rule(g: Any, ans: Any, x: Any, w: Any, sign: int) -> Any:
    slope = g * gap(ans, w, -sign)
    slope = slope if is_complex(w) else real_part(slope)
    return sum(slope, -1) - sum(slope, -2)


def _gap_jvp(t: Any, ans: Any, x: Any, w: Any, sign: int) -> Any:
    return (column(t) - row(t)) * gap(ans, w, -sign)


GAP = Op(
    "gap",
    first_alike,
    (lambda g, ans, x, w, sign: gap(g, w, -sign), _gap_rule),
    (LINEAR, _gap_jvp),
)

# --- values and vectors ------------------------------------------------------------------------


def _layout(shape: Any, uplo: str) -> tuple[Piece, ...]:
    n = shape[-1] if shape[-2] is None else shape[-2]
    return Piece((n,), True), Piece((n, n))


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return square_shape("eigh", specs[0])[0], float_dtype("eigh", specs[0].dtype)


def vectors_of(packed: Any, a: Any, uplo: str) -> Any:
    """Return the eigenvectors in a packed decomposition of `a`."""
    return apply(VECTORS, (packed, a), (uplo,))


def _of_read(g: Any, uplo: str) -> Any:
    """Return the gradient by the elements that are read, given that by all elements of a Hermitian matrix.

    What the other triangle would have counts for its mirror image. The diagonal is read as real.
    """
    lower = uplo == "L"
    return triangle(g, lower, 0.5) + triangle(adjoint(g), lower, 0.5)


def _as_read(t: Any, uplo: str) -> Any:
    """Return the Hermitian tangent of which one triangle is given."""
    half = triangle(t, uplo == "L", 0.5)
    return half + adjoint(half)


def _spread(v: Any, g: Any, uplo: str) -> Any:
    """Return the gradient by the matrix, given that by its eigenvalues."""
    return _of_read((conjugate(v) * row(g)) @ swap_last(v), uplo)


def _drift(v: Any, t: Any, uplo: str) -> Any:
    """Return the tangents of eigenvalues."""
    return real_part(sum(conjugate(v) * (_as_read(t, uplo) @ v), -2))


def _values_rule(g: Any, ans: Any, packed: Any, a: Any, uplo: str) -> Any:
    return _spread(vectors_of(packed, a, uplo), g, uplo)


def _values_jvp(t: Any, ans: Any, packed: Any, a: Any, uplo: str) -> Any:
    return _drift(vectors_of(packed, a, uplo), t, uplo)


def _vectors_rule(g: Any, ans: Any, packed: Any, a: Any, uplo: str) -> Any:
    w, back = apply(VALUES, (packed, a), (uplo,)), adjoint(ans)
    return _of_read(conjugate(ans @ gap(back @ conjugate(g), w, -1) @ back), uplo)


def _vectors_jvp(t: Any, ans: Any, packed: Any, a: Any, uplo: str) -> Any:
    w = apply(VALUES, (packed, a), (uplo,))
    return ans @ gap(adjoint(ans) @ _as_read(t, uplo) @ ans, w, 1)


EIGH = packed_op("eigh", _check, _layout)
VALUES = part_op("eigh_values", _layout, 0, (_values_rule,), (_values_jvp,))
VECTORS = part_op("eigh_vectors", _layout, 1, (_vectors_rule,), (_vectors_jvp,))


def _infer_values(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    batch, n = square_shape("eigvalsh", one)
    return spec((*batch, n), real_dtype(float_dtype("eigvalsh", one.dtype)), one.device)


def _alone_rule(g: Any, ans: Any, a: Any, uplo: str) -> Any:
    return _spread(vectors_of(apply(EIGH, (a,), (uplo,)), a, uplo), g, uplo)


def _alone_jvp(t: Any, ans: Any, a: Any, uplo: str) -> Any:
    return _drift(vectors_of(apply(EIGH, (a,), (uplo,)), a, uplo), t, uplo)


EIGVALSH = Op("eigvalsh", _infer_values, (_alone_rule,), (_alone_jvp,))


def _triangle_of(uplo: Any) -> str:
    """Return the letter of the triangle that is read."""
    letter = uplo.upper() if isinstance(uplo, str) else uplo
    if letter not in ("L", "U"):
        raise ParameterError(f"UPLO={safe_repr(uplo)}: the triangle that is read is 'L' or 'U'.")
    return letter


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Return eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n): Hermitian matrices, of which one triangle is read. So gradients and tangents are
        those of that triangle, and the gradient of the other one is 0.
    UPLO : {"L", "U"}
        The triangle that is read.

    Returns
    -------
    EighResult
        ``eigenvalues``, ascending, and ``eigenvectors`` in columns, from one decomposition. The gradient of
        values is right also where they are equal, as that of their sum or of an equal function of each. That
        of vectors whose values are equal up to rounding is NaN, and so is a second derivative of
        such values. No gradient passes the lengths and phases of vectors.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats, or another `UPLO`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w, v = rg.linalg.eigh([[1.0, 0.0], [0.0, 3.0]])
    >>> w.value
    array([1., 3.])
    """
    a, attrs = node(a), (_triangle_of(UPLO),)
    packed = apply(EIGH, (a,), attrs)
    return EighResult(apply(VALUES, (packed, a), attrs), apply(VECTORS, (packed, a), attrs))


@deferred
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues of Hermitian matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n), see ``eigh``.
    UPLO : {"L", "U"}
        The triangle that is read.

    Returns
    -------
    Var
        Shape (..., n), ascending, of real numbers.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats, or another `UPLO`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w = rg.linalg.eigvalsh([[1.0, 0.0], [0.0, 3.0]])
    >>> w.value
    array([1., 3.])
    """
    return apply(EIGVALSH, (a,), (_triangle_of(UPLO),))
