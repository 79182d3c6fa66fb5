"""Norms, ranks and condition numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad._errors import MatrixShapeError, ParameterError
from reactgrad.backend import Spec, spec
from reactgrad.linalg._solve import inverse
from reactgrad.linalg._svd import SVDVALS, svdvals
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import equal, isnan, logical_and, logical_not, not_equal
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import Axis, axis_of
from reactgrad.ops._shapes import common_device
from reactgrad.ops._where import where
from reactgrad.ops.reductions import any, norm
from reactgrad.ops.reductions._norm import of_vectors

MATRIX = (-2, -1)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return norms of matrices in the last two axes; the gradient at 0 is 0.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n).
    keepdims : bool
        Whether these axes stay, with length 1.
    ord : {"fro", "nuc"}, 1, -1, 2, -2, inf or -inf
        As in ``norm``.

    Returns
    -------
    Var
        Shape (...), real.

    Raises
    ------
    ShapeError
        If there is no such norm.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord="nuc")
    >>> y.value
    np.float64(7.0)
    """
    return norm(x, ord, MATRIX, keepdims)


@deferred
def vector_norm(x: Any, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return norms of vectors; the gradient at 0 is 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axis : int, tuple of int or None
        The axes whose elements make one vector; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    ord : float
        As in ``norm``.

    Returns
    -------
    Var
        Real.

    Raises
    ------
    ShapeError
        If `ord` is no number.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.vector_norm([[3.0, 0.0], [0.0, 4.0]])
    >>> y.value
    np.float64(5.0)
    """
    x = node(x)
    if x.dtype.kind not in "fc":
        x = in_dtype(x, float)
    return of_vectors(x, ord, axis_of(axis), bool(keepdims))


def _infer_rank(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape[:-1], np.dtype(np.int64), common_device("matrix_rank", specs))


def _loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    a, s, tol = specs
    return a.dtype, s.dtype, s.dtype if tol.weak else tol.dtype


RANK = Op("matrix_rank", _infer_rank, (None,) * 3, (None,) * 3, loop_dtypes=_loop)


@deferred
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Return the ranks of matrices: how many singular values are not small. Has no gradient.

    Parameters
    ----------
    A : Var or array_like
        Shape (..., m, n). Of what has less axes: 0 if all elements are 0, else 1.
    tol : float or array_like, optional
        What counts as small.
    hermitian : bool
        Whether `A` is known to be Hermitian, which is faster.
    rtol : float or array_like, optional
        What counts as small, in units of the largest singular value; by default max(m, n) times the
        precision of the dtype.

    Returns
    -------
    Var
        Shape (...), of integers.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge.
    DTypeError
        For half floats, or `tol` and `rtol` at once.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    >>> y.value
    np.int64(1)
    """
    if tol is not None and rtol is not None:
        raise ParameterError("matrix_rank: give tol or rtol, not both.")
    a = node(A, tol, rtol)
    if a.ndim < 2:
        return astype(any(not_equal(a, 0)), int)
    how = "auto" if tol is None and rtol is None else "tol" if rtol is None else "rtol"
    given = {"auto": 0.0, "tol": tol, "rtol": rtol}[how]
    return apply(RANK, (a, apply(SVDVALS, (a,), (bool(hermitian),)), given), (how,))


@deferred
def cond(x: Any, p: Any = None) -> Any:
    """Return the condition numbers of matrices: their norm times that of their inverse.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n); square for other norms than 2 and -2.
    p : optional
        The norm: ``None`` for 2, or as in ``norm``.

    Returns
    -------
    Var
        Shape (...), real; infinite for singular matrices.

    Raises
    ------
    LinAlgError
        When read, if the iteration does not converge; at once (``ShapeError``, too) for no elements or other
        shapes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.cond([[2.0, 0.0], [0.0, 4.0]])
    >>> y.value
    np.float64(2.0)
    """
    x = node(x)
    if 0 in x.shape[-2:]:
        raise MatrixShapeError(f"cond of shape {x.shape}: it is not defined without elements.")
    if p is None or p in (2, -2):
        s = svdvals(x)
        large, small = s[..., 0], s[..., -1]
        ratio = small / large if p == -2 else large / small
        return where(equal(large, 0), math.inf, ratio)
    size = matrix_norm(x, ord=p)
    product = size * matrix_norm(inverse(x), ord=p)
    return where(logical_and(isnan(product), logical_not(isnan(size))), math.inf, product)
