"""Arrays as sets: isin, in1d, union1d, intersect1d, setdiff1d, setxor1d.

Elements of a result come from places in the operands, which an op finds, and their gradient goes back there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._join import concatenate
from reactgrad.ops._operand import flat, known_dtype
from reactgrad.ops._shapes import common_device
from reactgrad.ops.ordering._search import common_dtypes
from reactgrad.ops.ordering._take import take
from reactgrad.ops.ordering._unique import unique
from reactgrad.scheduler import safe_repr


def _infer_isin(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[0].shape, np.dtype(bool), common_device("isin", specs))


def _by_value(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    """Return no spec: only the values show the length of the result."""


def _two(name: str) -> Op:
    return Op(name, _by_value, (None, None), (None, None), loop_dtypes=common_dtypes)


ISIN = Op("isin", _infer_isin, (None, None), (None, None), loop_dtypes=common_dtypes)
COMMON = _two("common_places")
MISSING = _two("missing_places")
SINGLE = _two("single_places")


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """Return for each element whether it is among others.

    Parameters
    ----------
    element : Var or array_like
        Any shape.
    test_elements : Var or array_like
        The others, in any shape.
    assume_unique : bool
        Whether both are known to hold each element once.
    invert : bool
        Whether the answer is true for elements that are not among them.
    kind : {None, "sort", "table"}
        The way it is found, as in NumPy.

    Returns
    -------
    Var
        Booleans in the shape of `element`; no gradient.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.isin([1, 2, 3], [3, 1])
    >>> y.value
    array([ True, False,  True])
    """
    if kind not in (None, "sort", "table"):
        raise ParameterError(f'isin: kind={safe_repr(kind)} is none of None, "sort" and "table".')
    attrs = (bool(assume_unique), bool(invert), kind)
    return apply(ISIN, (element, test_elements), attrs)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Return for each element of the flattened `ar1` whether it is in `ar2`; see ``isin``.

    Parameters
    ----------
    ar1, ar2 : Var or array_like
        Any shapes.
    assume_unique, invert : bool
        As of ``isin``.

    Returns
    -------
    Var
        Booleans with one axis; no gradient.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.in1d([[1, 2]], [2])
    >>> y.value
    array([False,  True])
    """
    return isin(flat(ar1), ar2, assume_unique, invert)


def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the distinct elements of two arrays, in ascending order.

    Parameters
    ----------
    ar1, ar2 : Var or array_like
        Any shapes.

    Returns
    -------
    Var
        One axis, of a length that shows only when it has been computed. The gradient of an element goes to its first
        occurrence.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.union1d([3, 1], [1, 2])
    >>> y.value
    array([1, 2, 3])
    """
    return unique(concatenate([flat(ar1), flat(ar2)]))


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the distinct elements that are in both of two arrays, in ascending order.

    Parameters
    ----------
    ar1, ar2 : Var or array_like
        Any shapes.
    assume_unique : bool
        Whether both are known to hold each element once.
    return_indices : bool
        Whether their first places in the flattened arrays are wanted, too.

    Returns
    -------
    Var, or tuple of three Vars
        One axis, of a length that shows only when it has been computed. The gradient of an element goes to its first
        occurrence in `ar1`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.intersect1d([3, 1, 2], [2, 3, 5])
    >>> y.value
    array([2, 3])
    """
    one, other = flat(ar1), flat(ar2)
    places = apply(COMMON, (one, other), (bool(assume_unique),))
    values = take(one, places[0])
    dtypes = known_dtype(one), known_dtype(other)
    if all(dtype is not None for dtype in dtypes) and np.result_type(*dtypes) != dtypes[0]:
        values = astype(values, np.result_type(*dtypes))
    return (values, places[0], places[1]) if return_indices else values


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the distinct elements of `ar1` that are not in `ar2`, in ascending order.

    Parameters
    ----------
    ar1, ar2 : Var or array_like
        Any shapes.
    assume_unique : bool
        Whether both are known to hold each element once; they then keep their order.

    Returns
    -------
    Var
        One axis, of a length that shows only when it has been computed. The gradient of an element goes to its first
        occurrence.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.setdiff1d([3, 1, 2], [2])
    >>> y.value
    array([1, 3])
    """
    one, other = flat(ar1), flat(ar2)
    return take(one, apply(MISSING, (one, other), (bool(assume_unique),)))


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the distinct elements that are in one of two arrays only, in ascending order.

    Parameters
    ----------
    ar1, ar2 : Var or array_like
        Any shapes.
    assume_unique : bool
        Whether both are known to hold each element once.

    Returns
    -------
    Var
        One axis, of a length that shows only when it has been computed. The gradient of an element goes to its first
        occurrence.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.setxor1d([3, 1, 2], [2, 5])
    >>> y.value
    array([1, 3, 5])
    """
    one, other = flat(ar1), flat(ar2)
    places = apply(SINGLE, (one, other), (bool(assume_unique),))
    return take(concatenate([one, other]), places)
