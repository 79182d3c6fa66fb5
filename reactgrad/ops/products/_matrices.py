"""Functions of ``numpy.linalg`` that NumPy has twice, with another signature there."""

from __future__ import annotations

from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.ops import _matmul
from reactgrad.ops.products import _cross, _diagonal, _dot
from reactgrad.ops.products._operands import variables


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : Var or array_like
        Shapes that broadcast, with an axis of length 3.
    axis : int
        The axis of the vectors.

    Returns
    -------
    Var
        In the broadcast shape.

    Raises
    ------
    ShapeError
        If the vectors have another length.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    >>> y.value
    array([0., 0., 1.])
    """
    x1, x2 = variables(x1, x2)
    axis = whole("linalg.cross", "axis", axis)
    for x in (x1, x2):
        if x.ndim and -x.ndim <= axis < x.ndim and x.shape[axis] not in (3, None):
            raise ShapeError(
                f"linalg.cross of vectors with {x.shape[axis]} elements: they have three. rg.cross takes two, too."
            )
    return _cross.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a diagonal of each matrix; see ``rg.diagonal``.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n).
    offset : int
        The distance from the main diagonal, positive above it.

    Returns
    -------
    Var
        A view: the leading axes, and one along the diagonal.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.diagonal([[1.0, 2.0], [3.0, 4.0]])
    >>> y.value
    array([1., 4.])
    """
    return _diagonal.diagonal(x, offset, -2, -1)


def matmul(x1: Any, x2: Any, /) -> Any:
    """Return the matrix product; see ``rg.matmul``."""
    return _matmul.matmul(x1, x2)


def matrix_transpose(x: Any, /) -> Any:
    """Return each matrix with rows and columns exchanged; see ``rg.matrix_transpose``."""
    return _dot.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Any:
    """Return all products of an element of one vector and one of another; see ``rg.outer``.

    Raises
    ------
    ShapeError
        If an operand is no vector.
    """
    x1, x2 = variables(x1, x2)
    for x in (x1, x2):
        if x.ndim != 1:
            raise ShapeError(
                f"linalg.outer of a value with {x.ndim} axes: it takes two vectors. rg.outer flattens first."
            )
    return _dot.outer(x1, x2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Return the sum of products over pairs of axes; see ``rg.tensordot``."""
    return _dot.tensordot(x1, x2, axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sum of a diagonal of each matrix; see ``rg.trace``.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n).
    offset : int
        The distance from the main diagonal, positive above it.
    dtype : dtype_like, optional
        The dtype in which to sum.

    Returns
    -------
    Var
        The leading axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.trace([[1.0, 2.0], [3.0, 4.0]])
    >>> y.item()
    5.0
    """
    return _diagonal.trace(x, offset, -2, -1, dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the sums of products along an axis; see ``rg.vecdot``."""
    return _dot.vecdot(x1, x2, axis=axis)
