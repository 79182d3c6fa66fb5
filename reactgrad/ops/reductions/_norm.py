"""Norms of vectors and matrices, in all of NumPy's orders."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from reactgrad._calls import real_number
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import over, times
from reactgrad.ops._complex import conj, real
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import absolute, equal, power, sign
from reactgrad.ops._layout import expand_dims, transpose
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import (
    Axis,
    attrs_of,
    counting,
    max,
    min,
    put_back,
    reduction,
    sum,
)
from reactgrad.ops._shapes import normal_axes
from reactgrad.ops._where import where
from reactgrad.ops.reductions._deviation import real_dtype
from reactgrad.ops.reductions._truth import count_nonzero, own_dtypes
from reactgrad.scheduler import safe_repr

add_kernels(_reductions.register, on_host(_reductions.NAMES))


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return reduction("norm", real_dtype, identity=True)(specs, attrs[1:])


def _directions(ans: Any, x: Any, order: float, axis: Axis, keepdims: bool) -> Any:
    """Return the derivative of the norm by each element: at 0 it is 0, as in PyTorch."""
    wide = counting(ans.dtype)
    length = put_back(in_dtype(ans, wide), x, axis, keepdims)
    x = in_dtype(x, counting(x.dtype))
    nothing = equal(length, 0)
    if order == 2:
        return x / where(nothing, math.inf, length)
    size = absolute(x)
    here = equal(size, 0)
    share = power(where(here, 1.0, over(size, length)), order - 1.0)
    along = sign(x)  # of length 1 for complex numbers, too
    return where(here, 0.0, along * share)


def _rule(g: Any, ans: Any, x: Any, order: float, axis: Axis, keepdims: bool) -> Any:
    directions = _directions(ans, x, order, axis, keepdims)
    if directions.dtype.kind == "c":
        directions = conj(directions)
    g = put_back(in_dtype(g, counting(g.dtype)), x, axis, keepdims)
    return times(g, directions)


def _jvp(t: Any, ans: Any, x: Any, order: float, axis: Axis, keepdims: bool) -> Any:
    directions = _directions(ans, x, order, axis, keepdims)
    if directions.dtype.kind == "c":
        parts = real(times(t, conj(directions)))
    else:
        parts = times(in_dtype(t, counting(t.dtype)), directions)
    return in_dtype(sum(parts, axis, keepdims=keepdims), ans.dtype)


NORM = Op("norm", _infer, (_rule,), (_jvp,), loop_dtypes=own_dtypes)


def _largest(x: Any, axis: Any, keepdims: bool) -> Any:
    """Return the largest of sizes; 0 if there are none."""
    none = 0 in [x.shape[i] for i in normal_axes("norm", axis, x.ndim)]
    return max(x, axis, keepdims=keepdims, initial=0.0 if none else None)


def of_vectors(x: Any, order: Any, axis: Axis, keepdims: bool) -> Any:
    if order is None:
        order = 2
    if isinstance(order, str):
        raise ShapeError(
            f"norm: ord={safe_repr(order)} is a norm of matrices; name their two axes, axis=(-2, -1), or take a "
            "number for vectors."
        )
    if order == math.inf:
        return _largest(absolute(x), axis, keepdims)
    if order == -math.inf:
        return min(absolute(x), axis, keepdims=keepdims)
    if order == 0:
        return in_dtype(count_nonzero(x, axis, keepdims=keepdims), real_dtype(x.dtype))
    if order == 1:
        return sum(absolute(x), axis, keepdims=keepdims)
    return apply(NORM, (x,), (real_number("norm", "ord", order), axis, keepdims))


def of_matrices(x: Any, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    rows, columns = axes
    if order in (None, "fro", "f"):
        return apply(NORM, (x,), (2.0, axes, keepdims))
    if order in ("nuc", 2, -2):
        values = _singular_values(x, axes)
        if order == "nuc":
            found = sum(values, -1)
        else:
            found = _largest(values, -1, False) if order == 2 else min(values, -1)
        return expand_dims(found, tuple(sorted(axes))) if keepdims else found
    if order in (1, -1, math.inf, -math.inf):
        first, second = (rows, columns) if order in (1, -1) else (columns, rows)
        sums = sum(absolute(x), first, keepdims=True)
        if order > 0:
            found = _largest(sums, second, True)
        else:
            found = min(sums, second, keepdims=True)
        return (
            found
            if keepdims
            else found[tuple(0 if i in axes else slice(None) for i in range(x.ndim))]
        )
    raise ShapeError(
        f"norm: ord={safe_repr(order)} is no norm of matrices. They have 'fro', 'nuc', 1, -1, 2, -2, inf and -inf; "
        "for vectors name one axis, as axis=-1."
    )


def _singular_values(x: Any, axes: tuple[int, int]) -> Any:
    order = (*[i for i in range(x.ndim) if i not in axes], *axes)
    if order != tuple(range(x.ndim)):
        x = transpose(x, order)
    # Found by name: the package stands above this one.
    return import_module("reactgrad.linalg").svdvals(x)


@deferred
def norm(x: Any, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return a norm of vectors or matrices; its gradient at 0 is 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; integers give float64.
    ord : float, {"fro", "nuc"} or None
        Of vectors: any number; ``inf`` and ``-inf`` are the largest and smallest absolute value, 0 counts
        elements that are not 0. Of matrices: ``"fro"``, ``"nuc"``, and 1, -1, 2, -2, ``inf``, ``-inf`` as
        NumPy defines them. By default the square root of the sum of squares.
    axis : int, tuple of int or None
        One axis for vectors, two for matrices. ``None`` for all of `x`: a vector or a matrix, and any
        shape without `ord`.
    keepdims : bool
        Whether these axes stay, with length 1.

    Returns
    -------
    Var
        Real.

    Raises
    ------
    ShapeError
        If there is no such norm for so many axes.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
    >>> y.value
    array([ 5., 10.])
    """
    x = node(x)
    if x.dtype.kind not in "fc":
        x = in_dtype(x, float)
    axis, keepdims = attrs_of(axis, keepdims)
    if axis is None:
        if ord is None:
            return apply(NORM, (x,), (2.0, None, keepdims))
        axis = tuple(range(x.ndim))
    axes = normal_axes("norm", axis, x.ndim)
    if len(axes) == 1:
        return of_vectors(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return of_matrices(x, ord, (axes[0], axes[1]), keepdims)
    raise ShapeError(
        f"norm over the {len(axes)} axes {axes} of {x.ndim}: a norm is of a vector (one axis) or a matrix "
        "(two); give axis=, or leave ord= out for the root of the sum of squares of all elements."
    )
