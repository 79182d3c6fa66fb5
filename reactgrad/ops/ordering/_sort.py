"""Sorting: sort, argsort, lexsort and sort_complex."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.machine._stable_order import use_quick_sort
from reactgrad.backend.numpy import _ordering
from reactgrad.nodes._handle import Handle, apply, holds_handles, stacked
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._index import Placed
from reactgrad.ops._operand import flat
from reactgrad.ops._places import along
from reactgrad.ops._shapes import common_device, normal_axis, shapes_text
from reactgrad.ops._split import unbind
from reactgrad.ops.ordering._take import take_along_axis
from reactgrad.scheduler import safe_repr

add_kernels(_ordering.register, on_host(_ordering.NAMES))
use_quick_sort()

INTP = np.dtype(np.intp)
KINDS = ("quicksort", "mergesort", "heapsort", "stable")


def _infer_sort(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    normal_axis("sort", attrs[0], len(one.shape))
    return spec(one.shape, one.dtype, one.device)


def _infer_argsort(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    normal_axis("argsort", attrs[0], len(one.shape))
    return spec(one.shape, INTP, one.device)


def _sort_rule(g: Any, ans: Any, x: Any, axis: int, kind: str | None, descending: bool) -> Any:
    return Placed(g, along(axis), argsort(x, axis, descending=descending))


def _sort_jvp(t: Any, ans: Any, x: Any, axis: int, kind: str | None, descending: bool) -> Any:
    return take_along_axis(t, argsort(x, axis, descending=descending), axis)


SORT = Op("sort", _infer_sort, (_sort_rule,), (_sort_jvp,))
ARGSORT = Op("argsort", _infer_argsort, (None,), (None,))


def _kind(name: str, kind: str | None, order: Any, stable: bool | None) -> str | None:
    if order is not None:
        raise ParameterError(
            f"{name}: order={safe_repr(order)} names fields, and values here have none."
        )
    known = [one for one in KINDS if isinstance(kind, str) and one.startswith(kind or " ")]
    if kind is not None and not known:
        raise ParameterError(
            f'{name}: kind={safe_repr(kind)} is none of "quicksort", "heapsort" and "stable".'
        )
    return "stable" if stable else known[0] if known else None


def flat_or_axis(x: Any, axis: int | None, default: int = 0) -> tuple[Any, int]:
    """Return `x` flattened and its only axis, where `axis` is ``None``, else both as they are."""
    return (flat(x), default) if axis is None else (x, axis)


def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """Return the elements sorted along an axis.

    Parameters
    ----------
    a : Var or array_like
        At least one axis. NaN counts as larger than all numbers; complex numbers are sorted by their real,
        then by their imaginary parts.
    axis : int or None
        The axis; ``None`` sorts all elements as one row.
    kind : {None, "quicksort", "heapsort", "stable"}
        As in NumPy.
    order : None
        There are no fields to sort by.
    descending : bool
        Whether the largest element comes first.
    stable : bool, optional
        Whether equal elements keep their order, which shows only in the signs of zeros. In the gradient they
        always do: each element's gradient is that of the place to which a stable sort moves it.

    Returns
    -------
    Var
        Of the same shape and dtype.

    Raises
    ------
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.param([3.0, 1.0, 2.0])
    >>> y = rg.sort(x)
    >>> y.value
    array([1., 2., 3.])
    >>> rg.grad(y[0], x).value
    array([0., 1., 0.])
    """
    a, axis = flat_or_axis(a, axis)
    return apply(
        SORT,
        (a,),
        (whole("sort", "axis", axis), _kind("sort", kind, order, stable), bool(descending)),
    )


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    descending: bool = False,
    stable: bool | None = None,
) -> Any:
    """Return the indices that would sort the elements along an axis.

    Parameters
    ----------
    a : Var or array_like
        At least one axis.
    axis : int or None
        The axis; ``None`` sorts all elements as one row.
    kind : {None, "quicksort", "heapsort", "stable"}
        ``"stable"`` by default, as in the array API standard; ``np.argsort(x)`` is NumPy's quicksort.
    order : None
        There are no fields to sort by.
    descending : bool
        Whether the largest element comes first.
    stable : bool, optional
        Whether equal elements keep their order, also in descending order; by default true.

    Returns
    -------
    Var
        Integers of the same shape; no gradient.

    Raises
    ------
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.argsort([3.0, 1.0, 2.0], descending=True)
    >>> y.value
    array([0, 2, 1])
    """
    a, axis = flat_or_axis(a, axis)
    way = _kind("argsort", kind, order, kind is None if stable is None else stable)
    return apply(ARGSORT, (a,), (whole("argsort", "axis", axis), way, bool(descending)))


def numpy_argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
) -> Any:
    """Return what ``np.argsort`` does, by whose default equal elements may change places."""
    return argsort(a, axis, kind, order, stable=bool(stable))


# --- lexsort, sort_complex -----------------------------------------------------------------------


def _infer_lexsort(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    first = specs[0]
    for one in specs[1:]:
        if len(one.shape) != len(first.shape) or any(
            m != n and m is not None and n is not None
            for m, n in zip(one.shape, first.shape, strict=True)
        ):
            raise ShapeError(f"lexsort: keys have one shape, not those of {shapes_text(specs)}.")
    normal_axis(
        "lexsort", attrs[0], max(len(first.shape), 1)
    )  # one number is sorted along any axis
    return spec(first.shape, INTP, common_device("lexsort", specs))


def _no_gradient(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> Any:
    return lambda i, g: None


def _own_dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return tuple([one.dtype for one in specs])


LEXSORT = Op(
    "lexsort",
    _infer_lexsort,
    variadic=_no_gradient,
    variadic_jvp=_no_gradient,
    loop_dtypes=_own_dtypes,
    any_count=True,
)


@deferred
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return the indices that sort by several keys: by the last one, then by the one before, and so on.

    Parameters
    ----------
    keys : sequence of Var or array_like, or one of them
        Keys of one shape; the rows of an array are its keys, or its numbers if it has one axis.
    axis : int
        The axis along which they are sorted.

    Returns
    -------
    Var
        Integers; no gradient. Equal elements keep their order.

    Raises
    ------
    ShapeError
        If the keys have different shapes, or there are none.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.lexsort(([1, 5, 2], [7, 3, 3]))
    >>> y.value
    array([2, 1, 0])
    """
    if isinstance(keys, Handle):
        if not keys.ndim:  # type: ignore[attr-defined]
            raise ParameterError("lexsort takes a sequence of keys: write rg.lexsort([key]).")
        keys = unbind(keys)
    keys = [
        stacked(one) if isinstance(one, list | tuple) and holds_handles(one) else one
        for one in keys
    ]
    if not keys:
        raise ShapeError("lexsort needs at least one key.")
    return apply(LEXSORT, keys, (whole("lexsort", "axis", axis),))


@deferred
def sort_complex(a: Any) -> Any:
    """Return the elements as complex numbers, sorted along the last axis by real, then imaginary parts.

    Parameters
    ----------
    a : Var or array_like
        At least one axis.

    Returns
    -------
    Var
        Complex numbers of the same shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.sort_complex([2.0, 1.0])
    >>> y.value
    array([1.+0.j, 2.+0.j])
    """
    ordered = sort(a)
    if ordered.dtype.kind == "c":
        return ordered
    return astype(ordered, "complex64" if ordered.dtype.char in "bhBH" else "complex128")
