"""Eigenvalues and eigenvectors of square matrices, always complex.

The rules are those of Boeddeker et al., "On the computation of complex-valued gradients with application
to statistically optimum beamforming" (2017), 4.77: vectors have length 1, and no gradient passes
their phases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend import Spec, spec
from reactgrad.linalg._eigh import gap
from reactgrad.linalg._matrices import (
    adjoint,
    column,
    conjugate,
    float_dtype,
    identity_like,
    row,
    square_shape,
)
from reactgrad.linalg._parts import Piece, packed_op, part_op
from reactgrad.linalg._solve import solve
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._complex import real
from reactgrad.ops._layout import swap_last
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of square matrices.

    Attributes
    ----------
    eigenvalues : Var
        Complex, in LAPACK's order, of shape (..., n).
    eigenvectors : Var
        The columns, complex, of length 1, of shape (..., n, n).
    """

    eigenvalues: Any
    eigenvectors: Any


def _complex_dtype(name: str, dtype: Any) -> Any:
    return np.result_type(float_dtype(name, dtype), np.complex64)


def _layout(shape: Any) -> tuple[Piece, ...]:
    n = shape[-1] if shape[-2] is None else shape[-2]
    return Piece((n,)), Piece((n, n))


def _check(specs: tuple[Spec, ...], attrs: Attrs) -> Any:
    return square_shape("eig", specs[0])[0], _complex_dtype("eig", specs[0].dtype)


def _spread(v: Any, g: Any) -> Any:
    """Return the gradient by the matrix, given that by its eigenvalues."""
    turned = swap_last(v)
    return solve(turned, column(g) * turned)


def _drift(v: Any, t: Any) -> Any:
    """Return the tangents of eigenvalues."""
    return sum(solve(v, t) * swap_last(v), -1)


def _vectors(packed: Any, a: Any) -> Any:
    return apply(VECTORS, (packed, a))


def _vectors_rule(g: Any, ans: Any, packed: Any, a: Any) -> Any:
    w, back = apply(VALUES, (packed, a)), adjoint(ans)
    inner = back @ conjugate(g)
    along = row(sum(real(inner * identity_like(inner)), -2))
    free = conjugate(inner - (back @ ans) * along)
    return conjugate(solve(back, conjugate(gap(free, w, 0)) @ back))


def _vectors_jvp(t: Any, ans: Any, packed: Any, a: Any) -> Any:
    w = apply(VALUES, (packed, a))
    moved = ans @ gap(solve(ans, t @ ans), w, 0)
    along = sum(real(conjugate(ans) * moved), -2)
    return moved - ans * row(along)


EIG = packed_op("eig", _check, _layout)
VALUES = part_op(
    "eig_values",
    _layout,
    0,
    (lambda g, ans, packed, a: _spread(_vectors(packed, a), g),),
    (lambda t, ans, packed, a: _drift(_vectors(packed, a), t),),
)
VECTORS = part_op("eig_vectors", _layout, 1, (_vectors_rule,), (_vectors_jvp,))


def _infer_values(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    batch, n = square_shape("eigvals", one)
    return spec((*batch, n), _complex_dtype("eigvals", one.dtype), one.device)


EIGVALS = Op(
    "eigvals",
    _infer_values,
    (lambda g, ans, a: _spread(_vectors(apply(EIG, (a,)), a), g),),
    (lambda t, ans, a: _drift(_vectors(apply(EIG, (a,)), a), t),),
)


def eig(a: Any) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n).

    Returns
    -------
    EigResult
        ``eigenvalues`` and ``eigenvectors`` in columns, from one decomposition. Both are always complex, since a
        dtype cannot depend on values: NumPy returns real numbers where none has an imaginary part.
        Gradients of vectors exist where the eigenvalues are distinct, those of values wherever there are n
        independent vectors. That of vectors whose values are equal up to rounding is NaN; where a
        matrix has less vectors, reading a gradient raises, or gives large numbers without meaning. No
        gradient passes the lengths and phases of vectors.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w, v = rg.linalg.eig([[0.0, -1.0], [1.0, 0.0]])
    >>> w.value
    array([0.+1.j, 0.-1.j])
    """
    a = node(a)
    packed = apply(EIG, (a,))
    return EigResult(apply(VALUES, (packed, a)), apply(VECTORS, (packed, a)))


def eigvals(a: Any) -> Any:
    """Return the eigenvalues of square matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n).

    Returns
    -------
    Var
        Shape (..., n), complex, see ``eig``.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     w = rg.linalg.eigvals([[0.0, -1.0], [1.0, 0.0]])
    >>> w.value
    array([0.+1.j, 0.-1.j])
    """
    return apply(EIGVALS, (a,))
