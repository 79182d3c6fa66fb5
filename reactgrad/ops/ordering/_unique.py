"""Distinct elements: unique in all its forms.

The places of what is unique come from one op, in one array of three rows, as long as there are elements: the first
place of each distinct one, and -1 behind them; how many there are of each, and 0; for each element which of them it
is. The parts are nodes of their own. The values are taken at the first places, so that their gradient goes there.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _sets
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._index import Placed, accumulate
from reactgrad.ops._layout import RESHAPE_LIKE, like_shape, reshape, spread
from reactgrad.ops._operand import nodes_of
from reactgrad.ops._places import rows_at
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops.ordering._take import take

add_kernels(_sets.register, on_host(_sets.NAMES))


def _by_value(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    if attrs[0] is not None:
        normal_axis("unique", attrs[0], len(specs[0].shape))


def _infer_places(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), axis = specs, attrs[0]
    if axis is None:
        length = prod(one.shape) if one.known else None  # type: ignore[arg-type]
    else:
        length = one.shape[normal_axis("unique", axis, len(one.shape))]
    return spec((3, length), np.dtype(np.intp), one.device)


def _rows(x: Any, axis: int | None) -> tuple[Any, int]:
    return (reshape(x, -1), 0) if axis is None else (x, axis)


def _unique_rule(g: Any, ans: Any, x: Any, axis: int | None, equal_nan: bool) -> Any:
    rows, at = _rows(x, axis)
    found = x._graph._host.specs[x._slot]
    zero = np.zeros((), np.float64 if found is None else found.dtype)
    zeros = spread(g._graph.const(zero), rows)
    first = apply(PART, (apply(PLACES, (x,), (axis, equal_nan)),), ("index",))
    total = accumulate([zeros, Placed(g, rows_at(at), first)], None)
    return like_shape(total, x) if axis is None else total


def _unique_jvp(t: Any, ans: Any, x: Any, axis: int | None, equal_nan: bool) -> Any:
    first = apply(PART, (apply(PLACES, (x,), (axis, equal_nan)),), ("index",))
    return take(t, first, axis)


UNIQUE = Op("unique", _by_value, (_unique_rule,), (_unique_jvp,))
PLACES = Op("unique_places", _infer_places, (None,), (None,))
PART = Op("unique_part", lambda specs, attrs: None, (None,), (None,))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Return the distinct elements, or the distinct rows along an axis, in ascending order.

    Parameters
    ----------
    ar : Var or array_like
        Any shape.
    return_index, return_inverse, return_counts : bool
        Whether the first place of each distinct element, for each element which of them it is, and how many
        there are of each are wanted, too.
    axis : int, optional
        The axis of the rows; by default the elements of the flattened array.
    equal_nan : bool
        Whether all NaN count as one element.
    sorted : bool
        They are always in ascending order.

    Returns
    -------
    Var or tuple of Var
        Their length shows only when they have been computed. The gradient of a distinct element goes to its first
        occurrence; the integers have none.

    Raises
    ------
    AxisError
        If there is no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.param([3.0, 1.0, 3.0])
    >>> values, counts = rg.unique(x, return_counts=True)
    >>> values.value, counts.value
    (array([1., 3.]), array([1, 2]))
    >>> rg.grad(values.sum(), x).value
    array([1., 1., 0.])
    """
    (ar,) = nodes_of(ar)
    wanted = [
        name
        for name, asked in (
            ("index", return_index),
            ("inverse", return_inverse),
            ("counts", return_counts),
        )
        if asked
    ]
    if not wanted:
        return apply(UNIQUE, (ar,), (axis, bool(equal_nan)))
    places = apply(PLACES, (ar,), (axis, bool(equal_nan)))
    first = apply(PART, (places,), ("index",))
    found = {"index": first}
    if return_counts:
        found["counts"] = apply(PART, (places,), ("counts",))
    if return_inverse:
        inverse = places[2]
        found["inverse"] = apply(RESHAPE_LIKE, (inverse, ar)) if axis is None else inverse
    rows, at = _rows(ar, axis)
    return (take(rows, first, at), *[found[name] for name in wanted])


class UniqueAll(NamedTuple):
    """Distinct elements, their first places, each element's number among them, and how many of each there are."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Distinct elements, and how many of each there are."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Distinct elements, and each element's number among them."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any, /) -> UniqueAll:
    """Return the distinct elements with all that ``unique`` knows of them; each NaN is distinct.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    UniqueAll
        ``values``, ``indices``, ``inverse_indices`` and ``counts``, each a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     found = rg.unique_all([2, 1, 2])
    >>> found.values.value, found.counts.value
    (array([1, 2]), array([1, 2]))
    """
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any, /) -> UniqueCounts:
    """Return the distinct elements and how many of each there are; each NaN is distinct.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    UniqueCounts
        ``values`` and ``counts``, each a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     found = rg.unique_counts([2, 1, 2])
    >>> found.counts.value
    array([1, 2])
    """
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Return the distinct elements and each element's number among them; each NaN is distinct.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    UniqueInverse
        ``values`` and ``inverse_indices``, each a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     found = rg.unique_inverse([2, 1, 2])
    >>> found.inverse_indices.value
    array([1, 0, 1])
    """
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any, /) -> Any:
    """Return the distinct elements in ascending order; each NaN is distinct.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    Var
        One axis, of a length that shows only when it has been computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.unique_values([2, 1, 2])
    >>> y.value
    array([1, 2])
    """
    return unique(x, equal_nan=False)
