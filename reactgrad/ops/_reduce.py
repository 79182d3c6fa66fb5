"""Reductions: sum, mean, max, min; and the sum that reverses broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Never

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad._habits import unknown_keyword
from reactgrad.backend import Spec, has_kernel, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._elementwise import ELEMENTWISE, equal, maximum, minimum
from reactgrad.ops._layout import known_shape, spread
from reactgrad.ops._operand import in_dtype, node, stretched
from reactgrad.ops._shapes import normal_axes, size_of
from reactgrad.ops._where import where as choose
from reactgrad.scheduler import safe_repr

Axis = int | tuple[int, ...] | None


def reduced_axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a reduction: of a number the first and the last one are none, as in NumPy."""
    return () if not ndim and axis in (0, -1) else normal_axes(name, axis, ndim)


def axis_in_rule(x: Any, axis: Axis) -> Axis:
    """Return the axis for what a rule builds of the operand, which may have none: see ``reduced_axes``."""
    return None if known_shape(x) == () else axis


def _reduced(name: str, one: Spec, attrs: Attrs) -> tuple[int | None, ...]:
    axis, keepdims = attrs[:2]
    axes = reduced_axes(name, axis, len(one.shape))
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(one.shape))
    return tuple(n for i, n in enumerate(one.shape) if i not in axes)


def reduction(name: str, dtype_of: Callable[[Any], Any], *, identity: bool) -> Any:
    """Return the shape rule of an op with the attributes (axis, keepdims, ...).

    Parameters
    ----------
    dtype_of
        Returns the dtype of the result from that of the operand.
    identity
        Whether there is a result without elements.
    """

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        one = specs[0]
        if not identity:
            axes = reduced_axes(name, attrs[0], len(one.shape))
            if any(one.shape[i] == 0 for i in axes):
                raise ShapeError(
                    f"{name} over an axis of length 0 of {one!r} has no value; there is no "
                    "element to choose."
                )
        return spec(_reduced(name, one, attrs), dtype_of(one.dtype), one.device)

    return infer


def sum_dtype(dtype: Any) -> Any:
    """Return the dtype in which NumPy adds up elements of this one."""
    return np.add.reduce(np.zeros(0, dtype)).dtype


def _mean_dtype(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def put_back(g: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    """Return `g` with the reduced axes put back as axes of length 1."""
    if keepdims or g.ndim == x.ndim:
        return g
    axes = normal_axes("sum", axis, x.ndim)
    if len(axes) == x.ndim:
        return g  # a number broadcasts by itself
    return g[tuple(None if i in axes else slice(None) for i in range(x.ndim))]


def _sum_rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    return spread(put_back(g, x, axis, keepdims), x)


def counting(dtype: Any) -> Any:
    """Return the dtype in which elements are counted: half floats end at 65504."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _mean_rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    own, wide = g.dtype, counting(g.dtype)
    g = in_dtype(g, wide)
    if known_shape(x) is None:  # the count as a node, since it is known only when `x` has run
        ones = spread(g._graph.const(np.ones((), wide)), x)
        g = g / sum(ones, axis, keepdims=keepdims)
    else:
        count = size_of([x.shape[i] for i in reduced_axes("mean", axis, x.ndim)])  # type: ignore[arg-type]
        g = g / float(count or 1)
    return spread(put_back(in_dtype(g, own), x, axis, keepdims), x)


def _shares(dtype: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the derivative of the largest or smallest element by each element; ties share it."""
    chosen = astype(equal(x, put_back(ans, x, axis, keepdims)), counting(dtype))
    return chosen / sum(chosen, axis, keepdims=True)


def _extremum_rule(g: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    return in_dtype(
        put_back(g, x, axis, keepdims) * _shares(g.dtype, ans, x, axis, keepdims), g.dtype
    )


def _extremum_jvp(t: Any, ans: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    shares = _shares(t.dtype, ans, x, axis, keepdims)
    return in_dtype(sum(t * shares, axis, keepdims=keepdims), t.dtype)


# fmt: off
SUM  = Op("sum",  reduction("sum",  sum_dtype,           identity=True),  (_sum_rule,),      (LINEAR,))
MEAN = Op("mean", reduction("mean", _mean_dtype,          identity=True),  (_mean_rule,),     (LINEAR,))
MAX  = Op("max",  reduction("max",  lambda dtype: dtype,  identity=False), (_extremum_rule,), (_extremum_jvp,))
MIN  = Op("min",  reduction("min",  lambda dtype: dtype,  identity=False), (_extremum_rule,), (_extremum_jvp,))
# fmt: on


def attrs_of(axis: Any, keepdims: Any) -> Attrs:
    """Return the attributes of a reduction: the axis as written, since a number may become an array."""
    return (axis_of(axis), keepdims if type(keepdims) is bool else _truth(keepdims))


def _truth(keepdims: Any) -> bool:
    """Return ``keepdims`` as a boolean; refuse what is meant for another argument, as a dtype."""
    if isinstance(keepdims, np.bool_ | int):
        return bool(keepdims)
    raise ParameterError(
        f"keepdims={safe_repr(keepdims):.60}: it is true or false. A dtype is given by name, dtype=..."
    )


def axis_of(axis: Any) -> Axis:
    """Return an axis argument as an int, a tuple of ints or ``None``, so that attributes compare.

    Raises
    ------
    DTypeError
        If it is none of these.
    """
    if isinstance(axis, list | tuple):
        return tuple(axis_of(one) for one in axis)  # type: ignore[misc]
    if axis is True or axis is False:
        raise ParameterError(
            f"axis={axis}: an axis is an integer, or several in a tuple; keepdims={axis} is another argument."
        )
    if axis is None or isinstance(axis, int):
        return axis
    try:
        return int(axis.__index__())
    except DTypeError:  # a Var: its text says what to write
        raise
    except (AttributeError, TypeError):
        raise ParameterError(
            f"axis={safe_repr(axis):.60}: an axis is an integer, or several in a tuple."
        ) from None


def started(y: Any, initial: Any) -> Any:
    """Return the number with which a reduction begins, in the dtype of its result `y`."""
    return in_dtype(node(initial, y), y.dtype)


def _mean_where(x: Any, axis: Axis, keepdims: bool, where: Any) -> Any:
    own = _mean_dtype(x.dtype)
    wide = counting(own)
    mask = stretched(in_dtype(node(where, x), bool), x)
    total = sum(choose(mask, in_dtype(x, wide), 0), axis, keepdims=keepdims)
    return in_dtype(total / sum(in_dtype(mask, wide), axis, keepdims=keepdims), own)


def extremum_from(
    op: Op, larger: Any, x: Any, axis: Axis, keepdims: bool, initial: Any, where: Any
) -> Any:
    """Return the extremum of chosen elements and of a number with which the reduction begins.

    Parameters
    ----------
    larger
        Returns the extremum of two values.
    """
    if initial is None and where is True:
        return apply(op, (x,), attrs_of(axis, keepdims))
    if initial is None:
        raise ShapeError(
            f"{op.name} with where= needs initial=, its value where no element is chosen, as "
            f"rg.{op.name}(x, axis, where=mask, initial={'-' if larger is maximum else ''}np.inf)."
        )
    x = node(x, where, initial)
    start = in_dtype(node(initial, x), x.dtype)
    if where is not True:
        x = choose(where, x, start)
    attrs = attrs_of(axis, keepdims)
    axes = reduced_axes(op.name, attrs[0], x.ndim)
    if 0 in [x.shape[i] for i in axes]:  # the sum of no elements has the right shape
        return in_dtype(choose(True, start, apply(SUM, (x,), attrs)), x.dtype)
    return larger(apply(op, (x,), attrs), start)


def sum(
    x: Any,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dtype: Any = None,
    initial: Any = None,
    where: Any = True,
    **unknown: Never,
) -> Any:
    """Return the sum over axes.

    Parameters
    ----------
    x : Var or array_like
        Any shape; booleans and integers sum as integers.
    axis : int, tuple of int or None
        The axes to sum over; ``None`` for all.
    keepdims : bool
        Whether the summed axes stay, with length 1.
    dtype : dtype, optional
        In which to add up, and of the result.
    initial : Var or array_like, optional
        A number that is added to the sum.
    where : Var or array_like
        Booleans that broadcast with `x`: the elements that count.

    Returns
    -------
    Var
        Shape () for ``axis=None`` without `keepdims`.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    >>> y.value
    array([4., 6.])
    """
    if unknown:
        raise unknown_keyword("rg.sum", unknown, ("axis", "keepdims", "dtype", "initial", "where"))
    if dtype is None and initial is None and where is True:
        return apply(SUM, (x,), attrs_of(axis, keepdims))
    x = in_dtype(node(x, where, initial), dtype)
    if where is not True:
        x = choose(where, x, 0)
    y = in_dtype(apply(SUM, (x,), attrs_of(axis, keepdims)), dtype)
    return y if initial is None else y + started(y, initial)


def mean(
    x: Any,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    dtype: Any = None,
    where: Any = True,
    **unknown: Never,
) -> Any:
    """Return the arithmetic mean over axes.

    Parameters
    ----------
    x : Var or array_like
        Any shape; integers give float64.
    axis : int, tuple of int or None
        The axes to average over; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    dtype : dtype, optional
        In which to add up, and of the result.
    where : Var or array_like
        Booleans that broadcast with `x`: the elements that count.

    Returns
    -------
    Var
        NaN where there are no elements.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.mean([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> y.value
    array([1.5, 3.5])
    """
    if unknown:
        raise unknown_keyword("rg.mean", unknown, ("axis", "keepdims", "dtype", "where"))
    if dtype is not None:
        x = in_dtype(node(x, where), dtype)
    if where is not True:
        return in_dtype(_mean_where(node(x, where), axis, keepdims, where), dtype)
    return in_dtype(apply(MEAN, (x,), attrs_of(axis, keepdims)), dtype)


def max(
    x: Any,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    **unknown: Never,
) -> Any:
    """Return the largest element over axes; equal largest ones share the gradient evenly.

    Parameters
    ----------
    x : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.

    initial : Var or array_like, optional
        A lower bound of the result, which is the result where there are no elements.
    where : Var or array_like
        Booleans that broadcast with `x`: the elements that count. Needs `initial`.

    Returns
    -------
    Var
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        If there is no element to choose.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.max([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> y.value
    array([2., 4.])
    """
    if unknown:
        raise unknown_keyword("rg.max", unknown, ("axis", "keepdims", "initial", "where"))
    if initial is None and where is True:
        return apply(MAX, (x,), attrs_of(axis, keepdims))
    return extremum_from(MAX, maximum, x, axis, keepdims, initial, where)


def min(
    x: Any,
    /,
    axis: Axis = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    **unknown: Never,
) -> Any:
    """Return the smallest element over axes; equal smallest ones share the gradient evenly.

    Parameters
    ----------
    x : Var or array_like
        Any shape without an axis of length 0 among those reduced.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.

    initial : Var or array_like, optional
        A upper bound of the result, which is the result where there are no elements.
    where : Var or array_like
        Booleans that broadcast with `x`: the elements that count. Needs `initial`.

    Returns
    -------
    Var
        Of the dtype of `x`.

    Raises
    ------
    ShapeError
        If there is no element to choose.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.min([[1.0, 2.0], [3.0, 4.0]], axis=1)
    >>> y.value
    array([1., 3.])
    """
    if unknown:
        raise unknown_keyword("rg.min", unknown, ("axis", "keepdims", "initial", "where"))
    if initial is None and where is True:
        return apply(MIN, (x,), attrs_of(axis, keepdims))
    return extremum_from(MIN, minimum, x, axis, keepdims, initial, where)


# --- back to the shape before broadcasting -----------------------------------------------------


def _infer_sum_to(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(attrs[0], specs[0].dtype, specs[0].device)


def _view_sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a view if only axes of length 1 are removed, so that nothing is summed; else ``None``."""
    return x.reshape(shape) if x.size == math.prod(shape) else None


SUM_TO = Op(
    "sum_to",
    _infer_sum_to,
    (lambda g, ans, x, shape: spread(g, x),),
    (LINEAR,),
    view=_view_sum_to,
    view_of_all=True,
)


def _infer_sum_like(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, like = specs
    # If the value turns out to hold integers or booleans, the gradient is zero, in the dtype of `x`.
    return spec(like.shape, like.dtype if like.differentiable else x.dtype, x.device)


# For results of Python functions, whose spec is not known before they run: the second operand only
# gives shape and dtype.
SUM_LIKE = Op(
    "sum_like", _infer_sum_like, (lambda g, ans, x, like: spread(g, x), None), (LINEAR, None)
)


# The sum of a product of two arrays of one shape, as an array of shape `attrs[0]`, which has one element.
VDOT = Op(
    "vdot",
    _infer_sum_to,
    (lambda g, ans, x, y, shape: g * y, lambda g, ans, x, y, shape: g * x),
    (LINEAR, LINEAR),
)

# With more elements BLAS divides the sum among threads, and its bits would depend on their number.
# In float32 the rounding errors of BLAS, which keeps few partial sums, would be seen earlier.
MOST_DOTTED: Final = {"d": 8192, "f": 2048}


def sum_to(x: Any, like: Any) -> Any:
    """Return `x` summed to the shape of `like`: over the axes that broadcasting added or stretched."""
    shape = known_shape(like)
    if shape is None:
        return apply(SUM_LIKE, (x, like))
    return x if known_shape(x) == shape else apply(SUM_TO, (x,), (shape,))


def sum_of_product(x: Any, like: Any) -> Any:
    """Return ``sum_to(x, like)``; if `x` is a product, computed from its factors in one step.

    The caller must have made `x` for this sum alone: if `x` were used elsewhere, an edit could give
    it other operands, and the sum would not follow.
    """
    shape = known_shape(like)
    one = shape is not None and all(n == 1 for n in shape)
    factors = _factors(x) if one else None
    return sum_to(x, like) if factors is None else apply(VDOT, factors, (shape,))


def _factors(x: Any) -> tuple[Any, Any] | None:
    """Return the operands of `x` if it is a product whose sum one kernel can compute; else ``None``."""
    host, slot = x._graph._host, x._slot
    found = host.specs[slot]
    product = host.ops[slot] is ELEMENTWISE["multiply"] and slot not in host.closed
    if not product or found is None or not found.known or not has_kernel("vdot", found.kind):
        return None
    first, second = x._graph._scheduler.topology.parents[slot]
    alike = host.specs[first] is host.specs[second] is found and found.dtype.char in MOST_DOTTED
    if not alike or not 1 < math.prod(found.shape) <= MOST_DOTTED[found.dtype.char]:
        return None
    return x._graph._handle(first), x._graph._handle(second)
