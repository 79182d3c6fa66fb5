"""Triangles of matrices, and the indices of their elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._calls import MOST_OF_C, whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, read_dtype, spec
from reactgrad.backend.array_api import _triangle as _standard
from reactgrad.backend.numpy import _triangle
from reactgrad.backend.numpy._places_of_shape import triangle
from reactgrad.nodes._handle import Handle, apply, current_graph
from reactgrad.nodes._op import LINEAR, Attrs, Infer, Op
from reactgrad.ops._lengths import TRIANGLE

add_kernels(_triangle.register, _standard.register)


def _triangular(name: str) -> Infer:
    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,) = specs
        if not one.shape:
            raise ShapeError(f"{name} of {one!r}: it needs an axis, or more.")
        # A vector is every row of a square matrix, as in NumPy.
        shape = one.shape if len(one.shape) > 1 else one.shape * 2
        return spec(shape, one.dtype, one.device)

    return infer


TRIL: Final = Op(
    "tril", _triangular("tril"), (lambda g, ans, x, k: tril(g, k),), (LINEAR,), broadcasts=True
)
TRIU: Final = Op(
    "triu", _triangular("triu"), (lambda g, ans, x, k: triu(g, k),), (LINEAR,), broadcasts=True
)


def tril(m: Any, k: int = 0) -> Any:
    """Return matrices with 0 above a diagonal.

    Parameters
    ----------
    m : Var or array_like
        Shape (..., m, n); or (n,), which is each row of a square matrix.
    k : int
        The distance of the last diagonal that stays from the main one, positive above it.

    Returns
    -------
    Var
        Of the dtype of `m`.

    Raises
    ------
    ShapeError
        If `m` has no axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.tril([[1.0, 2.0], [3.0, 4.0]])
    >>> y.value
    array([[1., 0.],
           [3., 4.]])
    """
    return apply(TRIL, (m,), (whole("tril", "k", k, most=MOST_OF_C),))


def triu(m: Any, k: int = 0) -> Any:
    """Return matrices with 0 below a diagonal.

    Parameters
    ----------
    m : Var or array_like
        Shape (..., m, n); or (n,), which is each row of a square matrix.
    k : int
        The distance of the first diagonal that stays from the main one, positive above it.

    Returns
    -------
    Var
        Of the dtype of `m`.

    Raises
    ------
    ShapeError
        If `m` has no axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.triu([[1.0, 2.0], [3.0, 4.0]])
    >>> y.value
    array([[1., 2.],
           [0., 4.]])
    """
    return apply(TRIU, (m,), (whole("triu", "k", k, most=MOST_OF_C),))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Return a constant matrix with 1 on and below a diagonal, and 0 above it.

    Parameters
    ----------
    N : int
        The number of rows.
    M : int, optional
        The number of columns; by default that of rows.
    k : int
        The distance of the diagonal from the main one, positive above it.
    dtype : dtype_like
        The dtype.

    Returns
    -------
    Var
        Shape (N, M).

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.tri(2, 3)
    >>> y.value
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    return current_graph().const(np.tri(N, M, k, read_dtype("tri", dtype)))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """Return the indices of the lower triangle of a matrix, as arrays of rows and columns.

    Parameters
    ----------
    arr : Var or array_like
        Shape (m, n). Only its shape counts.
    k : int
        The distance of the last diagonal from the main one, positive above it.

    Returns
    -------
    tuple of Var, or of ndarray for a matrix that is none
        To index a matrix with: ``x[rg.tril_indices_from(x)]``.

    Raises
    ------
    ShapeError
        If `arr` has another number of axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.tril_indices_from([[1.0, 2.0], [3.0, 4.0]])[0]
    array([0, 1, 1])
    """
    return _from("tril_indices_from", arr, k, False)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """Return the indices of the upper triangle of a matrix, as arrays of rows and columns.

    Parameters
    ----------
    arr : Var or array_like
        Shape (m, n). Only its shape counts.
    k : int
        The distance of the first diagonal from the main one, positive above it.

    Returns
    -------
    tuple of Var, or of ndarray for a matrix that is none
        To index a matrix with: ``x[rg.triu_indices_from(x)]``.

    Raises
    ------
    ShapeError
        If `arr` has another number of axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.triu_indices_from([[1.0, 2.0], [3.0, 4.0]])[0]
    array([0, 0, 1])
    """
    return _from("triu_indices_from", arr, k, True)


def _from(name: str, arr: Any, k: int, upper: bool) -> tuple[Any, Any]:
    k = whole(name, "k", k, most=MOST_OF_C)
    if not isinstance(arr, Handle):
        shape = np.shape(arr)
        if len(shape) != 2:
            raise ShapeError(f"{name} of shape {shape}: it needs a matrix.")
        rows, columns = triangle(shape[0], shape[1], k, upper)
        return rows, columns
    both: Any = apply(TRIANGLE, (arr,), (k, upper))
    return both[0], both[1]
