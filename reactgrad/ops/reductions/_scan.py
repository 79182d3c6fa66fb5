"""Running sums and products, and the linear recurrence that their derivatives are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _scans
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Infer, Op
from reactgrad.ops._chain import times
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import multiply
from reactgrad.ops._layout import known_shape, like_shape, reshape, share_memory
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import sum_dtype
from reactgrad.ops._shapes import broadcast, common_device, normal_axis, promote
from reactgrad.scheduler import safe_repr

add_kernels(_scans.register, on_host(_scans.NAMES))


def along_axis(name: str, dtype_of: Any = lambda dtype: dtype) -> Infer:
    """Return the shape rule of an op of one operand that goes along the axis in its first attribute."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        one = specs[0]
        normal_axis(name, attrs[0], len(one.shape))
        return spec(one.shape, dtype_of(one.dtype), one.device)

    return infer


def row(x: Any, axis: Any) -> tuple[Any, int]:
    """Return a node and the axis to go along: of all its elements in a row where `axis` is ``None``."""
    x = node(x)
    if axis is None:
        return reshape(x, -1), 0
    if (
        axis in (0, -1) and known_shape(x) == ()
    ):  # with one axis, but none more if it becomes an array
        return multiply(x, node(np.ones(1, x.dtype), x)), axis
    return x, axis


# --- elements moved by one place -----------------------------------------------------------------

SHIFTED = Op(
    "shifted",
    along_axis("shifted"),
    (lambda g, ans, x, axis, fill, reverse: shifted(g, axis, 0.0, not reverse),),
    (lambda t, ans, x, axis, fill, reverse: shifted(t, axis, 0.0, reverse),),
)


def shifted(x: Any, axis: int, fill: float, reverse: bool = False) -> Any:
    """Return each element's predecessor along an axis, or successor if `reverse`; `fill` for the one that has none."""
    return apply(SHIFTED, (x,), (axis, fill, reverse))


def _infer_led(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    one = specs[0]
    at = normal_axis("led", attrs[0], len(one.shape))
    lengths = [None if n is None else n + (i == at) for i, n in enumerate(one.shape)]
    return spec(tuple(lengths), one.dtype, one.device)


def _rest(g: Any, ans: Any, x: Any, axis: int, fill: float) -> Any:
    return g[(*[slice(None)] * (axis % ans.ndim), slice(1, None))]


LED = Op(
    "led", _infer_led, (_rest,), (lambda t, ans, x, axis, fill: apply(LED, (t,), (axis, 0.0)),)
)


# --- linear recurrence -----------------------------------------------------------------------------


def _infer_recurrence(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    shape = broadcast("recurrence", specs)
    return spec(shape, promote(specs), common_device("recurrence", specs))


def _behind(a: Any, g: Any, axis: int, reverse: bool) -> Any:
    """Return what each element of a recurrence gives to the sum of products of all results with `g`."""
    return recurrence(shifted(a, axis, 0.0, not reverse), g, axis, not reverse)


def _factor_rule(g: Any, ans: Any, a: Any, b: Any, axis: int, reverse: bool) -> Any:
    return times(_behind(a, g, axis, reverse), shifted(ans, axis, 0.0, reverse))


def _factor_jvp(t: Any, ans: Any, a: Any, b: Any, axis: int, reverse: bool) -> Any:
    return recurrence(a, times(t, shifted(ans, axis, 0.0, reverse)), axis, reverse)


# The derivative of a recurrence is a recurrence: so it can be differentiated to any order, and nothing is
# divided, so that factors of 0 need no care.
RECURRENCE = Op(
    "recurrence",
    _infer_recurrence,
    (_factor_rule, lambda g, ans, a, b, axis, reverse: _behind(a, g, axis, reverse)),
    (_factor_jvp, lambda t, ans, a, b, axis, reverse: recurrence(a, t, axis, reverse)),
)


def recurrence(a: Any, b: Any, axis: int, reverse: bool = False) -> Any:
    """Return `h` with ``h[i] = a[i] * h[i - 1] + b[i]`` along an axis, or from its end if `reverse`.

    Parameters
    ----------
    a, b : Var
        Of one shape. The first factor (the last one, if `reverse`) is not used.
    """
    return apply(RECURRENCE, (a, b), (axis, reverse))


# --- sums and products -------------------------------------------------------------------------------

CUMSUM = Op(
    "cumsum",
    along_axis("cumsum", sum_dtype),
    (lambda g, ans, x, axis, reverse: apply(CUMSUM, (g,), (axis, not reverse)),),
    (LINEAR,),
)


def _cumprod_rule(g: Any, ans: Any, x: Any, axis: int, reverse: bool) -> Any:
    return times(shifted(ans, axis, 1.0, reverse), _behind(x, g, axis, reverse))


def _cumprod_jvp(t: Any, ans: Any, x: Any, axis: int, reverse: bool) -> Any:
    return recurrence(x, times(t, shifted(ans, axis, 1.0, reverse)), axis, reverse)


CUMPROD = Op("cumprod", along_axis("cumprod", sum_dtype), (_cumprod_rule,), (_cumprod_jvp,))


def products(x: Any, axis: int, reverse: bool = False) -> Any:
    """Return the running products along an axis, or from its end if `reverse`."""
    return apply(CUMPROD, (x,), (axis, reverse))


def _running(op: Op, a: Any, axis: Any, dtype: Any) -> Any:
    if isinstance(axis, bool):  # it equals 0 or 1, and the result of that may be known
        raise ParameterError(f"{op.name}: axis must be an integer, not {safe_repr(axis)}.")
    a, axis = row(a, axis)
    return in_dtype(apply(op, (in_dtype(a, dtype),), (axis, False)), dtype)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the running sum along an axis.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis : int, optional
        By default all elements are taken as one row.
    dtype : dtype, optional
        In which to add up; by default that of `a`, and for short integers and booleans int64.

    Returns
    -------
    Var
        In the shape of `a`, or one row. Short floats are added up in float64.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cumsum([1.0, 2.0, 3.0])
    >>> y.value
    array([1., 3., 6.])
    """
    return _running(CUMSUM, a, axis, dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the running product along an axis; its gradient is exact where elements are 0, too.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis : int, optional
        By default all elements are taken as one row.
    dtype : dtype, optional
        In which to multiply; by default that of `a`, and for short integers and booleans int64.

    Returns
    -------
    Var
        In the shape of `a`, or one row.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     discount = rg.cumprod([0.9, 0.9, 0.5])
    >>> discount.value
    array([0.9  , 0.81 , 0.405])
    """
    return _running(CUMPROD, a, axis, dtype)


def _one_axis(name: str, x: Any, axis: Any) -> tuple[Any, int]:
    """Return a node and its axis to go along, which may be left out where there is one only."""
    x = node(x)
    if axis is None:
        return apply(ONE_AXIS, (x,), (name,)), 0
    if x.ndim == 0:
        x, axis = row(x, axis)
    normal_axis(name, axis, x.ndim)
    return x, axis


def _only_axis(name: str, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the shape of a row, or of a number as one."""
    if len(shape) > 1:
        raise ParameterError(
            f"{name} of a value with {len(shape)} axes: say which one, as axis=0, or take rg.{name[:3]}"
            f"{name[11:]}, which goes along all elements in a row."
        )
    return shape or (1,)


ONE_AXIS = Op(
    "one_axis",
    lambda specs, attrs: spec(
        _only_axis(attrs[0], specs[0].shape), specs[0].dtype, specs[0].device
    ),
    (lambda g, ans, x, name: like_shape(g, x),),
    (LINEAR,),
    view=lambda x, name: share_memory(x, x.reshape(_only_axis(name, x.shape))),
)


@deferred
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return the running sum along an axis, as ``cumsum``, which may begin with 0.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    axis : int, optional
        May be left out where `x` has one axis.
    dtype : dtype, optional
        In which to add up.
    include_initial : bool
        Whether 0 comes first, so that the result is longer by one.

    Returns
    -------
    Var

    Raises
    ------
    DTypeError
        If `axis` is left out and `x` has several axes.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cumulative_sum([1.0, 2.0], include_initial=True)
    >>> y.value
    array([0., 1., 3.])
    """
    x, axis = _one_axis("cumulative_sum", x, axis)
    y = cumsum(x, axis, dtype)
    return apply(LED, (y,), (axis, 0.0)) if include_initial else y


@deferred
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Return the running product along an axis, as ``cumprod``, which may begin with 1.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    axis : int, optional
        May be left out where `x` has one axis.
    dtype : dtype, optional
        In which to multiply.
    include_initial : bool
        Whether 1 comes first, so that the result is longer by one.

    Returns
    -------
    Var

    Raises
    ------
    DTypeError
        If `axis` is left out and `x` has several axes.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cumulative_prod([2.0, 3.0], include_initial=True)
    >>> y.value
    array([1., 2., 6.])
    """
    x, axis = _one_axis("cumulative_prod", x, axis)
    y = cumprod(x, axis, dtype)
    return apply(LED, (y,), (axis, 1.0)) if include_initial else y
