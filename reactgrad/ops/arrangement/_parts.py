"""Parts of a value along an axis: array_split, hsplit, vsplit, dsplit, unstack, narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Cuts
from reactgrad.nodes._handle import Handle, apply
from reactgrad.ops._deferred import deferred, deferred_each, is_late, needs_axes
from reactgrad.ops._index import getitem
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops._split import (
    ARRAY_SPLIT,
    SPLIT,
    check_count,
    parts_to_cut,
    places_to_cut,
    split,
    unbind,
)


def array_split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """Return parts of `ary` along an axis, which need not have the same length.

    Parameters
    ----------
    ary : Var or array_like
        With at least one axis.
    indices_or_sections : int or sequence of int
        The number of parts, the first of which may be longer by one; or the indices at which to cut.
    axis : int
        The axis to cut.

    Returns
    -------
    list of Var
        Views: they cost nothing.

    Raises
    ------
    DTypeError
        If `indices_or_sections` is no positive integer and no sequence of integers.
    AxisError
        If `ary` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3, 4, 5])
    >>> [part.tolist() for part in rg.array_split(x, 3)]
    [[1, 2], [3, 4], [5]]
    """
    ary = node(ary)
    number = indices_or_sections
    if not isinstance(number, Handle) and hasattr(number, "__index__") and not np.ndim(number):
        count = int(number.__index__())  # type: ignore[union-attr]
        check_count("array_split", count)
        at = (
            whole("array_split", "axis", axis)
            if is_late([ary])
            else normal_axis("array_split", axis, ary.ndim)
        )
        return [apply(ARRAY_SPLIT, (ary,), (count, at, part)) for part in range(count)]
    return list(split(ary, number, axis))


def hsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Any]:
    """Return parts of `ary` along axis 1, or axis 0 where it has no other one; see `split`.

    Raises
    ------
    ShapeError
        If `ary` has no axis, or cannot be cut into so many equal parts.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> [part.tolist() for part in rg.hsplit(x, 2)]
    [[[1], [3]], [[2], [4]]]
    """
    if is_late([ary]):
        return [_column(ary, *attrs) for attrs in parts_to_cut(places_to_cut(indices_or_sections))]
    ary = _with_axes("hsplit", ary, 1)
    return list(split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0))


@deferred
def _column(ary: Any, cuts: Cuts, part: int) -> Any:
    """Return one part along axis 1, or axis 0 where there is no other one; it knows no other parts."""
    ary = _with_axes("hsplit", ary, 1)
    return apply(SPLIT, (ary,), (cuts, 1 if ary.ndim > 1 else 0, part))


def vsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Any]:
    """Return parts of `ary` along axis 0; see `split`.

    Raises
    ------
    ShapeError
        If `ary` has fewer than two axes, or cannot be cut into so many equal parts.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> [part.tolist() for part in rg.vsplit(x, 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return list(split(_with_axes("vsplit", ary, 2), indices_or_sections, 0))


def dsplit(ary: Any, indices_or_sections: int | Sequence[int]) -> list[Any]:
    """Return parts of `ary` along axis 2; see `split`.

    Raises
    ------
    ShapeError
        If `ary` has fewer than three axes, or cannot be cut into so many equal parts.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> x = rg.Graph().input(np.zeros((2, 3, 4)))
    >>> [part.shape for part in rg.dsplit(x, 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return list(split(_with_axes("dsplit", ary, 3), indices_or_sections, 2))


def _with_axes(name: str, ary: Any, count: int) -> Any:
    ary = node(ary)
    if not is_late([ary]) and ary.ndim < count:
        raise ShapeError(f"{name} needs a value with at least {count} axes, not {ary.ndim}.")
    return ary


def _elements(x: Any, /, *, axis: int = 0) -> Any:
    raise needs_axes("unstack", f"Take an element where it is used, rg.take(x, i, axis={axis}).")


@deferred_each(_elements)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Return all elements of `x` along an axis: `unbind` by the name of the array API standard.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis, of a known length.
    axis : int
        The axis that is removed.

    Returns
    -------
    tuple of Var
        Views: they cost nothing.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If the length is not known before an input is set.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([[1, 2], [3, 4]])
    >>> [part.tolist() for part in rg.unstack(x, axis=1)]
    [[1, 3], [2, 4]]
    """
    return unbind(x, axis)


@deferred
def narrow(x: Any, axis: int, start: int, length: int) -> Any:
    """Return `length` elements of `x` along an axis, from `start` on.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    axis : int
        The axis.
    start : int
        The first element; negative ones count from the end.
    length : int
        The number of elements.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    ShapeError
        If there are not so many elements.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3, 4])
    >>> rg.narrow(x, 0, 1, 2).value
    array([2, 3])
    """
    x = node(x)
    at, there = normal_axis("narrow", axis, x.ndim), None
    first, count = int(start.__index__()), int(length.__index__())
    there = x.shape[at]
    begin = first + there if first < 0 and there is not None else first
    if count < 0 or (there is not None and not 0 <= begin <= begin + count <= there):
        raise ShapeError(
            f"narrow: {count} elements from {first} on do not lie in axis {axis} of {x.label!r}, whose "
            f"length is {there}."
        )
    # From the end where `start` says so: the slice then follows another length.
    end = None if first < 0 and first + count == 0 else first + count
    return getitem(x, (*[slice(None)] * at, slice(first, end)))
