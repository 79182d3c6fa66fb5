"""Products of vectors and matrices by their NumPy names: dot, inner, outer, tensordot, kron, and relatives.

``matmul`` stands beside the base ops; all sums of products here are one op of ``_contract``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import multiply
from reactgrad.ops._layout import reshape, swap_last
from reactgrad.ops._matmul import matmul
from reactgrad.ops._shapes import normal_axes, normal_axis
from reactgrad.ops.products._contract import contract
from reactgrad.ops.products._operands import variables
from reactgrad.ops.products._subscripts import LETTERS
from reactgrad.scheduler import safe_repr


@lru_cache(maxsize=256)
def _tensordot(first: int, second: int, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    """Return the subscripts of a product that is summed over pairs of axes, and has all others."""
    names = iter(LETTERS)
    a = [next(names) for _ in range(first)]
    b = [next(names) for _ in range(second)]
    for i, j in zip(left, right, strict=True):
        b[j] = a[i]
    rest = [a[i] for i in range(first) if i not in left]
    rest += [b[i] for i in range(second) if i not in right]
    return "".join(a), "".join(b), "".join(rest)


def _summed(a: Any, b: Any, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    if a.ndim + b.ndim > len(LETTERS):
        raise ShapeError(
            f"a product of values with {a.ndim} and {b.ndim} axes has too many of them."
        )
    first, second, kept = _tensordot(a.ndim, b.ndim, left, right)
    return contract(a, b, first, second, kept, stretches=False)


@deferred
def dot(a: Any, b: Any) -> Any:
    """Return the product of vectors and matrices, as ``np.dot`` defines it for any number of axes.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    b : Var or array_like
        Any shape; its last axis but one, or its only one, is as long as the last axis of `a`.

    Returns
    -------
    Var
        The product of numbers, if one operand is a number; else of shape ``a.shape[:-1]`` and that of
        `b` without the axis that is summed. Unlike ``rg.matmul`` it takes every matrix of `a` with every one of `b`.

    Raises
    ------
    ShapeError
        If the lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.dot([[1.0, 2.0]], [3.0, 4.0])
    >>> y.value
    array([11.])
    """
    a, b = variables(a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return _summed(a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),))


@deferred
def inner(a: Any, b: Any, /) -> Any:
    """Return the sum of products over the last axes.

    Parameters
    ----------
    a, b : Var or array_like
        Last axes of one length; or a number, which multiplies.

    Returns
    -------
    Var
        Shape ``a.shape[:-1] + b.shape[:-1]``.

    Raises
    ------
    ShapeError
        If the lengths differ.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.inner([1.0, 2.0], [[3.0, 4.0], [5.0, 6.0]])
    >>> y.value
    array([11., 17.])
    """
    a, b = variables(a, b)
    if not a.ndim or not b.ndim:
        return multiply(a, b)
    return _summed(a, b, (a.ndim - 1,), (b.ndim - 1,))


@deferred
def outer(a: Any, b: Any) -> Any:
    """Return all products of an element of `a` and one of `b`.

    Parameters
    ----------
    a, b : Var or array_like
        Any shapes, of m and of n elements.

    Returns
    -------
    Var
        Shape (m, n).

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.outer([1.0, 2.0], [3.0, 4.0])
    >>> y.value
    array([[3., 4.],
           [6., 8.]])
    """
    a, b = map(_flat, variables(a, b))
    return contract(a, b, "a", "b", "ab")


def _flat(x: Any) -> Any:
    return x if x.ndim == 1 else reshape(x, -1)


@deferred
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the sum of products over pairs of axes.

    Parameters
    ----------
    a, b : Var or array_like
        Any shapes.
    axes : int or two sequences of int
        The last axes of `a` and the first ones of `b`, so many; or the axes of `a`, and those of `b`.

    Returns
    -------
    Var
        The axes of `a` that are not summed, then those of `b`.

    Raises
    ------
    ShapeError
        If the lengths of a pair differ, or there are not as many axes for `a` as for `b`.
    AxisError
        If an axis does not exist.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.tensordot([[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]])
    >>> y.item()
    10.0
    """
    a, b = variables(a, b)
    left, right = _pairs(axes, a.ndim, b.ndim)
    return _summed(a, b, left, right)


def _pairs(axes: Any, first: int, second: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if hasattr(axes, "__index__") and not isinstance(axes, Iterable):
        count = whole("tensordot", "axes", axes)
        if not 0 <= count <= min(first, second):
            raise ShapeError(
                f"tensordot over {count} axes of values with {first} and {second}: both need so many."
            )
        return tuple(range(first - count, first)), tuple(range(count))
    try:
        left, right = axes
    except (TypeError, ValueError):
        raise ParameterError(
            f"tensordot: axes={safe_repr(axes):.60}; it is a number of axes, or the axes of the first operand and "
            "those of the second: axes=([1], [0])."
        ) from None
    left = normal_axes("tensordot", _listed(left), first)
    right = normal_axes("tensordot", _listed(right), second)
    if len(left) != len(right):
        raise ShapeError(
            f"tensordot: axes={safe_repr(axes):.60} has not as many axes for one operand as for the other."
        )
    return left, right


def _listed(axes: Any) -> tuple[Any, ...]:
    return tuple(axes) if getattr(axes, "ndim", 1) and hasattr(axes, "__iter__") else (axes,)


@deferred
def vdot(a: Any, b: Any, /) -> Any:
    """Return the sum of the products of all elements, those of `a` conjugated.

    Parameters
    ----------
    a, b : Var or array_like
        Of as many elements.

    Returns
    -------
    Var
        A number.

    Raises
    ------
    ShapeError
        If they do not have as many elements.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.vdot([1j, 2.0], [1j, 1.0])
    >>> y.item()
    (3+0j)
    """
    a, b = map(_flat, variables(a, b))
    return contract(a, b, "a", "a", "", a.dtype.kind == "c", stretches=False)


@deferred
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the sums of products along an axis, the elements of `x1` conjugated.

    Parameters
    ----------
    x1, x2 : Var or array_like
        Shapes that broadcast; the axis has one length in both.
    axis : int
        The axis to sum over.

    Returns
    -------
    Var
        The shape to which the others broadcast.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    AxisError
        If the axis does not exist.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> y.value
    array([21., 43.])
    """
    x1, x2 = variables(x1, x2)
    first, second = (_with_axis("vecdot", one, axis) for one in (x1, x2))
    kept = _longer(first, second).replace("z", "")
    return contract(x1, x2, first, second, kept, x1.dtype.kind == "c", stretches=False)


def _with_axis(name: str, x: Any, axis: Any) -> str:
    """Return labels that other operands of any shape share, with ``z`` for one axis."""
    at = normal_axis(name, axis, x.ndim)
    rest = _labels(x.ndim - 1)
    return rest[:at] + "z" + rest[at:]


def _labels(count: int) -> str:
    """Return labels for axes that broadcast: counted from the last one."""
    return LETTERS[:count][::-1]


def _longer(first: str, second: str) -> str:
    return first if len(first) >= len(second) else second


@deferred
def matvec(x1: Any, x2: Any, /) -> Any:
    """Return products of matrices with vectors; leading axes broadcast.

    Parameters
    ----------
    x1 : Var or array_like
        Shape (..., m, n).
    x2 : Var or array_like
        Shape (..., n).

    Returns
    -------
    Var
        Shape (..., m).

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> y.value
    array([21., 43.])
    """
    x1, x2 = variables(x1, x2)
    _check_axes("matvec", (x1, 2), (x2, 1))
    first, second = _labels(x1.ndim - 2), _labels(x2.ndim - 1)
    kept = _longer(first, second) + "y"
    return contract(x1, x2, first + "yz", second + "z", kept, stretches=False)


@deferred
def vecmat(x1: Any, x2: Any, /) -> Any:
    """Return products of vectors, conjugated, with matrices; leading axes broadcast.

    Parameters
    ----------
    x1 : Var or array_like
        Shape (..., n).
    x2 : Var or array_like
        Shape (..., n, m).

    Returns
    -------
    Var
        Shape (..., m).

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.vecmat([1.0, 10.0], [[1.0, 2.0], [3.0, 4.0]])
    >>> y.value
    array([31., 42.])
    """
    x1, x2 = variables(x1, x2)
    _check_axes("vecmat", (x1, 1), (x2, 2))
    first, second = _labels(x1.ndim - 1), _labels(x2.ndim - 2)
    kept = _longer(first, second) + "y"
    return contract(x1, x2, first + "z", second + "zy", kept, x1.dtype.kind == "c", stretches=False)


def _check_axes(name: str, *needs: tuple[Any, int]) -> None:
    for x, count in needs:
        if x.ndim < count:
            raise ShapeError(
                f"{name} of a value of shape {x.shape}: it needs at least {count} "
                f"{'axis' if count == 1 else 'axes'}."
            )


@deferred
def matrix_transpose(x: Any, /) -> Any:
    """Return each matrix with rows and columns exchanged.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, n).

    Returns
    -------
    Var
        Shape (..., n, m); a view.

    Raises
    ------
    ShapeError
        If `x` has fewer axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.matrix_transpose([[1, 2, 3]])
    >>> y.shape
    (3, 1)
    """
    (x,) = variables(x)
    _check_axes("matrix_transpose", (x, 2))
    return swap_last(x)
