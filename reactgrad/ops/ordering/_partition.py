"""Partly sorted: partition, argpartition and topk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._index import Placed
from reactgrad.ops._operand import with_axis
from reactgrad.ops._places import along
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops.ordering._sort import INTP, argsort, flat_or_axis
from reactgrad.ops.ordering._take import take_along_axis
from reactgrad.scheduler import safe_repr


def _checked(name: str, one: Spec, kth: tuple[int, ...], axis: int) -> None:
    length = one.shape[normal_axis(name, axis, len(one.shape))]
    for k in () if 0 in one.shape else kth:  # as in NumPy
        if length is not None and not -length <= k < length:
            raise ShapeError(f"{name}: there is no place {k} along axis {axis} of {one!r}.")


def _infer_partition(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    _checked("partition", one, *attrs)
    return spec(one.shape, one.dtype, one.device)


def _infer_argpartition(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    _checked("argpartition", one, *attrs)
    return spec(one.shape, INTP, one.device)


# NumPy's partition and argpartition may order the elements of a part in two ways. Where each element went
# follows from the result: the i-th smallest one stands where the result has its i-th smallest one.
def _partition_rule(g: Any, ans: Any, x: Any, kth: tuple[int, ...], axis: int) -> Any:
    return Placed(take_along_axis(g, argsort(ans, axis), axis), along(axis), argsort(x, axis))


def _partition_jvp(t: Any, ans: Any, x: Any, kth: tuple[int, ...], axis: int) -> Any:
    moved = take_along_axis(t, argsort(x, axis), axis)
    return Placed(moved, along(axis), argsort(ans, axis))


PARTITION = Op("partition", _infer_partition, (_partition_rule,), (_partition_jvp,))
ARGPARTITION = Op("argpartition", _infer_argpartition, (None,), (None,))


def _places(name: str, kth: Any) -> tuple[int, ...]:
    many: Any = kth if isinstance(kth, Iterable) and not isinstance(kth, Handle) else (kth,)
    try:
        return tuple([int(k.__index__()) for k in many])
    except (AttributeError, TypeError):
        raise ParameterError(
            f"{name}: kth is an integer, or several; not {safe_repr(kth):.60}. It cannot change with a Var: "
            "rg.sort(x)[k] can."
        ) from None


def _check_kind(name: str, kind: str) -> None:
    if kind != "introselect":
        raise ParameterError(f'{name}: kind={safe_repr(kind)} is not "introselect", the only one.')


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Any:
    """Return the elements with the one at `kth` in its sorted place, smaller ones before it, others behind.

    Parameters
    ----------
    a : Var or array_like
        At least one axis.
    kth : int or sequence of int
        The places that are sorted.
    axis : int or None
        The axis; ``None`` takes all elements as one row.
    kind : {"introselect"}
        As in NumPy.

    Returns
    -------
    Var
        Of the same shape and dtype.

    Raises
    ------
    ShapeError
        If there is no such place.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.partition([7.0, 1.0, 5.0, 3.0], 0)
    >>> print(y.value[0])
    1.0
    """
    _check_kind("partition", kind)
    a, axis = flat_or_axis(a, axis)
    return apply(PARTITION, (a,), (_places("partition", kth), whole("partition", "axis", axis)))


def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Any:
    """Return the indices that would partition the elements, see ``partition``.

    Parameters
    ----------
    a : Var or array_like
        At least one axis.
    kth : int or sequence of int
        The places that are sorted.
    axis : int or None
        The axis; ``None`` takes all elements as one row.
    kind : {"introselect"}
        As in NumPy.

    Returns
    -------
    Var
        Integers of the same shape; no gradient.

    Raises
    ------
    ShapeError
        If there is no such place.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.argpartition([7.0, 1.0, 5.0, 3.0], 0)
    >>> print(y.value[0])
    1
    """
    _check_kind("argpartition", kind)
    a, axis = flat_or_axis(a, axis)
    return apply(
        ARGPARTITION, (a,), (_places("argpartition", kth), whole("argpartition", "axis", axis))
    )


# --- topk ----------------------------------------------------------------------------------------


def _infer_topk(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    k, axis = attrs[:2]
    at = normal_axis("topk", axis, len(one.shape))
    length = one.shape[at]
    if k < 0 or (length is not None and k > length):
        raise ShapeError(f"topk: there are no {k} elements along axis {axis} of {one!r}.")
    return spec((*one.shape[:at], k, *one.shape[at + 1 :]), INTP, one.device)


TOPK = Op("topk", _infer_topk, (None,), (None,))


@deferred_each(lambda *args, **options: (None, None))
def topk(
    x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    """Return the `k` largest or smallest elements along an axis, and their indices.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is a row of one element. NaN counts as larger than all numbers.
    k : int
        The number of elements.
    axis : int
        The axis.
    largest : bool
        Whether the largest ones are wanted, or the smallest.
    sorted : bool
        Whether they come in their order, the most extreme one first; else in that of `x`.

    Returns
    -------
    values, indices : Var
        With length `k` along the axis; the indices are integers without a gradient. Equal elements keep their
        order; which of them are among the `k` is not specified.

    Raises
    ------
    ShapeError
        If there are fewer than `k` elements.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> values, indices = rg.topk(g.input([3.0, 9.0, 4.0]), 2)
    >>> values.value, indices.value
    (array([9., 4.]), array([1, 2]))
    """
    count, axis = whole("topk", "k", k), whole("topk", "axis", axis)
    row = with_axis(x)
    indices = apply(TOPK, (row,), (count, axis, bool(largest), bool(sorted)))
    values = take_along_axis(row, indices, axis)
    if np.ndim(x) == 0 and count:
        return values[0], indices[0]
    return values, indices
