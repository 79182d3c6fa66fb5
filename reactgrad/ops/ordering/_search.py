"""Places in sorted values: searchsorted and digitize."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._pick import agree
from reactgrad.ops._shapes import common_device
from reactgrad.ops.ordering._sort import INTP
from reactgrad.ops.ordering._take import numbers_of
from reactgrad.scheduler import safe_repr


def _one_row(name: str, what: str, one: Spec) -> None:
    if len(one.shape) != 1:
        raise ShapeError(f"{name}: {what} has one axis, and is {one!r}.")


def _infer_searchsorted(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    rows, wanted, *sorters = specs
    for one in (rows, *sorters):
        if not one.shape or len(one.shape) not in (1, len(wanted.shape)):
            raise ShapeError(
                f"searchsorted: the sorted array and the sorter have one axis, or as many as {wanted!r} has, one row for "
                f"each of its rows; not {one!r}."
            )
        if len(one.shape) > 1 and not agree(one.shape[:-1], wanted.shape[:-1]):
            raise ShapeError(f"searchsorted: {one!r} has not one row for each row of {wanted!r}.")
    return spec(wanted.shape, INTP, common_device("searchsorted", specs))


def common_dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    """Return the dtype in which operands are compared; a Python number has its own, as where NumPy compares."""
    return (np.result_type(*[one.dtype for one in specs]),) * len(specs)


def _search_dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (*common_dtypes(specs[:2]), *[INTP] * (len(specs) - 2))


def _no_gradient(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> Any:
    return lambda i, g: None


SEARCHSORTED = Op(
    "searchsorted",
    _infer_searchsorted,
    variadic=_no_gradient,
    variadic_jvp=_no_gradient,
    loop_dtypes=_search_dtypes,
)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return where elements would be inserted into a sorted array to keep its order.

    Parameters
    ----------
    a : Var or array_like
        One axis, in ascending order, or in that which `sorter` gives; or, as in PyTorch, one row for each row along the
        last axis of `v`.
    v : Var or array_like
        Any shape.
    side : {"left", "right"}
        Whether an element goes before or behind those equal to it.
    sorter : Var or array_like of int, optional
        Indices that sort `a`, as ``argsort`` gives them.

    Returns
    -------
    Var
        Integers in the shape of `v`; no gradient.

    Raises
    ------
    ShapeError
        If the axes of `a` do not fit.
    DTypeError
        If there is no such side.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.searchsorted([1.0, 2.0, 3.0], [2.0, 2.5])
    >>> y.value
    array([1, 2])
    """
    if side not in ("left", "right"):
        raise ParameterError(f'searchsorted: side={safe_repr(side)} is neither "left" nor "right".')
    more = () if sorter is None else (numbers_of("searchsorted", sorter),)
    return apply(SEARCHSORTED, (a, v, *more), (side,))


def _infer_digitize(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, bins = specs
    _one_row("digitize", "the array of bins", bins)
    for one in specs:
        if one.dtype.kind == "c":
            raise DTypeError(f"digitize of {one!r}: complex numbers have no order.")
    return spec(x.shape, INTP, common_device("digitize", specs))


DIGITIZE = Op("digitize", _infer_digitize, (None, None), (None, None), loop_dtypes=common_dtypes)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return for each element the number of the bin in which it lies.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    bins : Var or array_like
        The edges: one axis, ascending or descending.
    right : bool
        Whether a bin includes its right edge, and not its left one.

    Returns
    -------
    Var
        Integers in the shape of `x`: 0 before the first edge, ``len(bins)`` behind the last; no gradient.

    Raises
    ------
    ShapeError
        If `bins` has not one axis.
    ValueError
        If the edges are neither ascending nor descending, when it is computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.digitize([0.5, 1.5, 9.0], [1.0, 2.0])
    >>> y.value
    array([0, 1, 2])
    """
    return apply(DIGITIZE, (x, bins), (bool(right),))
