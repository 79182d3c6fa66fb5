"""Numbers in equal steps: arange, linspace, logspace, geomspace."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import Handle, current_graph, stacked
from reactgrad.ops._astype import astype
from reactgrad.ops._elementwise import floor, log10, power
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._lengths import with_axes
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops.arrangement._grids import broadcast_arrays
from reactgrad.ops.arrangement._join import concat
from reactgrad.ops.arrangement._order import moveaxis


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: str | None = None
) -> Any:
    """Return a constant row of numbers in equal steps, in the current graph.

    Parameters
    ----------
    start, stop, step : number
        As in NumPy: ``arange(stop)``, ``arange(start, stop, step)``; `stop` itself is not among them.
    dtype : dtype_like, optional
        Its dtype; by default that of the numbers.
    device : str, optional
        Its device; by default that of the graph.

    Returns
    -------
    Var

    Raises
    ------
    ImplicitValueError
        If one of them is a live Var: the length would depend on its value, and the constant would not.
    DTypeError
        If `dtype` has no kernels.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.arange(1.0, 2.0, 0.25)
    >>> x.value
    array([1.  , 1.25, 1.5 , 1.75])
    """
    given: list[Any] = [one.item() if _is_constant(one) else one for one in (start, stop, step)]
    kind = None if dtype is None else read_dtype("arange", dtype)
    if stop is None:
        given = [0, given[0], given[2]]
    found: Any = np.arange(given[0], given[1], 1 if step is None else given[2], dtype=kind)
    return current_graph().const(found, device=device)


def _is_constant(one: Any) -> bool:
    if isinstance(one, Handle):
        float(one)  # type: ignore[arg-type]  # raises for a Var that may change, and says what to write
    return isinstance(one, Handle)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """Return `num` numbers in equal steps from `start` to `stop`.

    Parameters
    ----------
    start, stop : number, Var or array_like
        The ends. With a Var among them the result is a node that follows them; gradients pass.
    num : int
        How many numbers.
    endpoint : bool
        Whether `stop` is the last of them.
    retstep : bool
        Whether to return the step, too.
    dtype : dtype_like, optional
        Its dtype; by default a float one. Integers are rounded down.
    axis : int
        The place of the new axis where the ends are arrays.
    device : str, optional
        The device of a constant; by default that of the graph.

    Returns
    -------
    Var, or a tuple of Vars with the step

    Raises
    ------
    ShapeError
        If `num` is negative.
    DTypeError
        If `num` is no integer, or `dtype` has no kernels.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> low = g.input(0.0)
    >>> rg.linspace(low, 1.0, 5).value
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    start, stop, num = stacked(start), stacked(stop), _count("linspace", num)
    kind = None if dtype is None else read_dtype("linspace", dtype)
    if not isinstance(start, Handle) and not isinstance(stop, Handle):
        made_of: Any = np.linspace  # NumPy's types know no arrays of both kinds
        found, step = made_of(start, stop, num, endpoint, True, kind, axis)
        const = current_graph().const
        made = const(found, device=device)
        return (made, const(step, device=device)) if retstep else made
    start, stop = _float(start, stop), _float(stop, start)
    steps = num - 1 if endpoint else num
    delta = with_axes("linspace", stop - start)
    step = delta / steps if steps else delta * np.nan
    # The last one is `stop` itself, and not what the rounded steps lead to.
    last = endpoint and num > 1
    counted = np.arange(num - 1 if last else num, dtype=delta.dtype)
    numbers = delta._graph.const(counted.reshape(-1, *[1] * delta.ndim), device=delta.device)
    row = (step if steps else delta) * numbers + start
    if last:
        row = concat([row, _last(stop, start, delta.dtype)])
    row = moveaxis(row, 0, normal_axis("linspace", axis, row.ndim))
    if kind is not None:
        row = astype(floor(row) if kind.kind in "iu" else row, kind)
    return (row, step) if retstep else row


def _float(one: Any, other: Any) -> Any:
    one = node(one, other)
    return one * 1.0 if one.dtype.kind in "iub" else one


def _last(stop: Any, start: Any, dtype: Any) -> Any:
    """Return the last number, as a part of the result: in the shape to which both ends broadcast."""
    return expand_dims(in_dtype(broadcast_arrays(stop, start)[0], dtype), 0)


def _count(name: str, num: Any) -> int:
    return whole(name, "num", num, 0)


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """Return `num` powers of `base` whose exponents go in equal steps from `start` to `stop`.

    Parameters
    ----------
    start, stop : number, Var or array_like
        The first and the last exponent; see `linspace`, also for the other arguments and the errors.
    num : int
        How many numbers.
    endpoint : bool
        Whether the power of `stop` is the last of them.
    base : number, Var or array_like
        The base.
    dtype : dtype_like, optional
        Its dtype; by default a float one.
    axis : int
        The place of the new axis where the ends are arrays.
    device : str, optional
        The device of a constant; by default that of the graph.

    Returns
    -------
    Var

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.logspace(0, 3, 4)
    >>> x.value
    array([   1.,   10.,  100., 1000.])
    """
    start, stop, base = stacked(start), stacked(stop), stacked(base)
    kind = None if dtype is None else read_dtype("logspace", dtype)
    if not any(isinstance(one, Handle) for one in (start, stop, base)):
        found = np.logspace(start, stop, _count("logspace", num), endpoint, base, kind, axis)
        return current_graph().const(found, device=device)
    if np.ndim(base):  # bases of their own along the other axes, as in NumPy
        start = node(start, stop, base) + 0.0 * node(base, start, stop)
        base = node(base, start)
        row = power(base, linspace(start, stop, num, endpoint))
        row = moveaxis(row, 0, normal_axis("logspace", axis, row.ndim))
    else:
        if isinstance(base, Handle) and not isinstance(start, Handle):
            start = node(start, base)
        row = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return row if kind is None else astype(row, kind)


def geomspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: str | None = None,
) -> Any:
    """Return `num` numbers from `start` to `stop`, each the same multiple of the one before.

    Parameters
    ----------
    start, stop : number, Var or array_like
        The first and the last number, both of one sign; see `linspace`, also for the other arguments and the
        errors.
    num : int
        How many numbers.
    endpoint : bool
        Whether `stop` is the last of them.
    dtype : dtype_like, optional
        Its dtype; by default a float one.
    axis : int
        The place of the new axis where the ends are arrays.
    device : str, optional
        The device of a constant; by default that of the graph.

    Returns
    -------
    Var

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.geomspace(1, 8, 4)
    >>> x.value
    array([1., 2., 4., 8.])
    """
    start, stop, num = stacked(start), stacked(stop), _count("geomspace", num)
    kind = None if dtype is None else read_dtype("geomspace", dtype)
    if not isinstance(start, Handle) and not isinstance(stop, Handle):
        found = np.geomspace(start, stop, num, endpoint, kind, axis)
        return current_graph().const(found, device=device)
    start, stop = _float(start, stop), _float(stop, start)
    ratio = log10(stop / start)
    row = power(10.0, linspace(0.0 * ratio, ratio, num, endpoint)) * start
    last = endpoint and num > 1
    if last:
        row = concat([row[:-1], _last(stop, start, ratio.dtype)])
    row = moveaxis(row, 0, normal_axis("geomspace", axis, row.ndim))
    return row if kind is None else astype(row, kind)
