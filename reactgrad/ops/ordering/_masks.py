"""Elements at which something holds: nonzero, flatnonzero, argwhere; and what is taken or replaced there.

How many elements there are shows only when they have been computed, unless the condition is fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred_each, needs_axes
from reactgrad.ops._layout import known_shape
from reactgrad.ops._operand import flat, given, holds, known_dtype
from reactgrad.ops._where import where
from reactgrad.ops.ordering._take import take


def _by_value(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    """Return no spec: only the values show the length of the result."""


def _no_axes() -> ShapeError:
    return ShapeError(
        "nonzero of a number: it has no axes, so there are no indices. Give it one, x[None], or use "
        "rg.where(x, a, b)."
    )


FLATNONZERO = Op("flatnonzero", _by_value, (None,), (None,))
ARGWHERE = Op("argwhere", _by_value, (None,), (None,))


def _indices(a: Any) -> Any:
    raise needs_axes(
        "nonzero",
        "rg.argwhere(x) has a row for each element, rg.flatnonzero(x) takes all axes as one, and x[x != 0] is "
        "the elements.",
    )


@deferred_each(_indices)
def nonzero(a: Any) -> tuple[Any, ...]:
    """Return the indices of the elements that are not zero, one array for each axis.

    Parameters
    ----------
    a : Var or array_like
        At least one axis.

    Returns
    -------
    tuple of Var
        Integers, one Var for each axis, of a length that shows only when they have been computed; no
        gradient. ``x[rg.nonzero(x)]`` are the elements.

    Raises
    ------
    ShapeError
        If `a` has no axes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([3.0, 0.0, 4.0])
    >>> (places,) = rg.nonzero(x)
    >>> places.value
    array([0, 2])
    >>> x.set([0.0, 0.0, 1.0])
    >>> places.value
    array([2])
    """
    a = given(a)
    ndim = a.ndim
    if not ndim:
        raise _no_axes()
    if ndim == 1:
        return (apply(FLATNONZERO, (a,)),)
    places = argwhere(a)  # NumPy's nonzero also finds all indices in one array
    return tuple([places[:, axis] for axis in range(ndim)])


def flatnonzero(a: Any) -> Any:
    """Return the indices of the elements of the flattened array that are not zero.

    Parameters
    ----------
    a : Var or array_like
        Any shape.

    Returns
    -------
    Var
        Integers, of a length that shows only when they have been computed; no gradient.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.flatnonzero([[0, 7], [0, 9]])
    >>> y.value
    array([1, 3])
    """
    return apply(FLATNONZERO, (a,))


def argwhere(a: Any) -> Any:
    """Return the indices of the elements that are not zero, one row for each element.

    Parameters
    ----------
    a : Var or array_like
        Any shape.

    Returns
    -------
    Var
        Integers, of a length that shows only when they have been computed; no gradient.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.argwhere([[0, 7], [0, 9]])
    >>> y.value
    array([[0, 1],
           [1, 1]])
    """
    return apply(ARGWHERE, (a,))


def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """Return the rows along an axis for which a condition holds.

    Parameters
    ----------
    condition : Var or array_like of bool
        One axis. It may be shorter than that of `a`, and then leaves out what is behind its end.
    a : Var or array_like
        Any shape.
    axis : int, optional
        The axis; by default the elements of the flattened array are taken.

    Returns
    -------
    Var
        With as many rows as the condition holds for. Where it is a Var, their number shows only when it has been
        computed.

    Raises
    ------
    ShapeError
        If the condition has not one axis.
    IndexingError
        If it holds behind the end of the axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.compress([True, False, True], [5.0, 6.0, 7.0])
    >>> y.value
    array([5., 7.])
    """
    condition = given(condition)
    shape = known_shape(condition) if isinstance(condition, Handle) else condition.shape
    if shape is not None and len(shape) != 1:
        raise ShapeError(
            f"compress: the condition has one axis, and not the shape {shape}; x[mask] takes masks of any shape."
        )
    places = (
        apply(FLATNONZERO, (condition,))
        if isinstance(condition, Handle)
        else np.flatnonzero(condition)
    )
    return take(a, places, axis)


def extract(condition: Any, arr: Any) -> Any:
    """Return the elements of the flattened array at which a condition holds.

    Parameters
    ----------
    condition : Var or array_like of bool
        Any shape.
    arr : Var or array_like
        As many elements as the condition has.

    Returns
    -------
    Var
        One axis. Where the condition is a Var, its length shows only when it has been computed.

    Raises
    ------
    IndexingError
        If the condition holds behind the last element.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([[1.0, -2.0], [3.0, -4.0]])
    >>> rg.extract(x > 0, x).value
    array([1., 3.])
    """
    return compress(flat(condition), arr)


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """Return `x` with a value in place of the elements at which a mask holds.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    mask : Var or array_like of bool
        Any shape that broadcasts with `x`.
    value : Var or number
        The value, converted to the dtype of `x`; any shape that broadcasts with the two.

    Returns
    -------
    Var
        Of the broadcast shape, with the dtype of `x`.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.masked_fill([1.0, 2.0], [True, False], -1.0)
    >>> y.value
    array([-1.,  2.])
    """
    x = given(x)
    filled = where(mask, value, x)
    dtype = known_dtype(x)
    return filled if dtype is None or holds(filled, dtype) else astype(filled, dtype)
