"""Running extrema."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._shapes import common_device
from reactgrad.ops.reductions._scan import along_axis, row
from reactgrad.ops.reductions._truth import own_dtypes

# --- elements of rows, chosen by numbers ---------------------------------------------------------------


def _with_numbers(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[0].dtype, common_device("chosen_along", specs))


def _like_last(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[2].shape, specs[0].dtype, specs[0].device)


# What is chosen more than once gets the sum; the two ops are each other's adjoints.
CHOSEN = Op(
    "chosen_along",
    _with_numbers,
    (lambda g, ans, x, numbers, axis: apply(ADDED, (g, numbers, x), (axis,)), None),
    (LINEAR, None),
    loop_dtypes=own_dtypes,
)
ADDED = Op(
    "added_along",
    _like_last,
    (lambda g, ans, x, numbers, like, axis: apply(CHOSEN, (g, numbers), (axis,)), None, None),
    (LINEAR, None, None),
    loop_dtypes=own_dtypes,
)


# --- running extrema -----------------------------------------------------------------------------------

PLACE = Op(
    "running_place",
    along_axis("running_place", lambda dtype: np.dtype(np.intp)),
    loop_dtypes=own_dtypes,
)


def _rule(g: Any, ans: Any, x: Any, axis: int) -> Any:
    return apply(ADDED, (g, apply(PLACE, (x, ans), (axis,)), x), (axis,))


def _jvp(t: Any, ans: Any, x: Any, axis: int) -> Any:
    return apply(CHOSEN, (t, apply(PLACE, (x, ans), (axis,))), (axis,))


def _op(name: str) -> Op:
    def same(dtype: Any) -> Any:
        if dtype.kind == "c":
            raise DTypeError(f"{name} is not defined for complex numbers: they have no order.")
        return dtype

    return Op(name, along_axis(name, same), (_rule,), (_jvp,))


CUMMAX, CUMMIN = _op("cummax"), _op("cummin")


def cummax(a: Any, axis: int | None = None) -> Any:
    """Return the largest element so far along an axis, as ``np.maximum.accumulate`` does.

    The gradient goes to the last of equal largest elements, as in PyTorch.

    Parameters
    ----------
    a : Var or array_like
        Any shape; a real dtype.
    axis : int, optional
        By default all elements are taken as one row.

    Returns
    -------
    Var
        In the shape of `a`, or one row. NaN from the first NaN on.

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cummax([1.0, 3.0, 2.0])
    >>> y.value
    array([1., 3., 3.])
    """
    a, axis = row(a, axis)
    return apply(CUMMAX, (a,), (axis,))


def cummin(a: Any, axis: int | None = None) -> Any:
    """Return the smallest element so far along an axis, as ``np.minimum.accumulate`` does.

    The gradient goes to the last of equal smallest elements, as in PyTorch.

    Parameters
    ----------
    a : Var or array_like
        Any shape; a real dtype.
    axis : int, optional
        By default all elements are taken as one row.

    Returns
    -------
    Var
        In the shape of `a`, or one row. NaN from the first NaN on.

    Raises
    ------
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cummin([3.0, 1.0, 2.0])
    >>> y.value
    array([3., 1., 1.])
    """
    a, axis = row(a, axis)
    return apply(CUMMIN, (a,), (axis,))
