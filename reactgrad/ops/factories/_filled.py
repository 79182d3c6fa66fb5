"""Values whose elements are all the same: zeros, ones, full, and the same in the shape of another value."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import Handle, current_graph, stacked
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import broadcast_to, shape_attr, spread_like
from reactgrad.ops._operand import in_dtype, node
from reactgrad.scheduler import safe_repr

Shape = int | tuple[int, ...]


def _const(name: str, graph: Any, shape: Any, number: Any, device: str | None) -> Any:
    lengths = shape_attr(name, shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"{name}({safe_repr(shape)}): a length cannot be negative.")
    return graph.const(np.broadcast_to(number, lengths), device=device)


def zeros(shape: Shape, dtype: Any = float, *, device: str | None = None) -> Any:
    """Return a constant of zeros in the current graph.

    Parameters
    ----------
    shape : int or tuple of int
        Its shape.
    dtype : dtype_like
        Its dtype.
    device : str, optional
        Its device; by default that of the graph.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If a length is negative.
    DTypeError
        If the shape is none, or `dtype` has no kernels.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.zeros((2, 3), "float32")
    >>> x.shape, x.dtype
    ((2, 3), dtype('float32'))
    """
    return _const(
        "zeros", current_graph(), shape, np.zeros((), _dtype("zeros", dtype, shape)), device
    )


def ones(shape: Shape, dtype: Any = float, *, device: str | None = None) -> Any:
    """Return a constant of ones in the current graph; arguments and errors as for `zeros`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.ones(2)
    >>> x.value
    array([1., 1.])
    """
    return _const("ones", current_graph(), shape, np.ones((), _dtype("ones", dtype, shape)), device)


def empty(shape: Shape, dtype: Any = float, *, device: str | None = None) -> Any:
    """Return what `zeros` returns: a value never shows memory that nothing has been written into.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.empty(2, int)
    >>> x.value
    array([0, 0])
    """
    return zeros(shape, _dtype("empty", dtype, shape), device=device)


def full(shape: Shape, fill_value: Any, dtype: Any = None, *, device: str | None = None) -> Any:
    """Return a value that has one number everywhere.

    Parameters
    ----------
    shape : int or tuple of int
        Its shape.
    fill_value : number, Var or array_like
        What broadcasts to the shape. With a Var the result is a node that follows it, in its graph.
    dtype : dtype_like, optional
        Its dtype; by default that of `fill_value`.
    device : str, optional
        Its device; by default that of the graph, or of the Var.

    Returns
    -------
    Var
        A constant of the current graph, or a node.

    Raises
    ------
    ShapeError
        If a length is negative, or `fill_value` does not broadcast.
    DTypeError
        If the shape is none, `dtype` has no kernels, or an integer does not fit it.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     x = rg.full(3, 7)
    ...     y = rg.full(2, 2.0 * g.input(1.5))
    >>> x.value, y.value
    (array([7, 7, 7]), array([3., 3.]))
    """
    fill_value = stacked(fill_value)
    dtype = None if dtype is None else _dtype("full", dtype)
    if isinstance(fill_value, Handle):
        return _on(device, broadcast_to(in_dtype(fill_value, dtype), shape))
    number = _filling("full", fill_value, dtype)
    try:
        return _const("full", current_graph(), shape, number, device)
    except ValueError:
        if isinstance(shape, Handle) or not number.ndim:
            raise
        raise ShapeError(
            f"full({safe_repr(shape)}): values of shape {number.shape} do not broadcast to it."
        ) from None


@deferred
def zeros_like(
    a: Any, dtype: Any = None, *, shape: Shape | None = None, device: str | None = None
) -> Any:
    """Return zeros in the shape of `a`.

    Parameters
    ----------
    a : Var or array_like
        Any shape. Of a Var the result is a node that follows its shape.
    dtype : dtype_like, optional
        Its dtype; by default that of `a`.
    shape : int or tuple of int, optional
        Another shape.
    device : str, optional
        Its device; by default that of `a`.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If a length is negative.
    DTypeError
        If `dtype` has no kernels.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(shape=(None,), dtype="float32")
    >>> y = rg.zeros_like(x)
    >>> x.set([1.0, 2.0])
    >>> y.value
    array([0., 0.], dtype=float32)
    """
    return _like("zeros_like", a, 0, dtype, shape, device)


@deferred
def ones_like(
    a: Any, dtype: Any = None, *, shape: Shape | None = None, device: str | None = None
) -> Any:
    """Return ones in the shape of `a`; arguments and errors as for `zeros_like`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([2, 3])
    >>> rg.ones_like(x).value
    array([1, 1])
    """
    return _like("ones_like", a, 1, dtype, shape, device)


@deferred
def empty_like(
    prototype: Any, dtype: Any = None, *, shape: Shape | None = None, device: str | None = None
) -> Any:
    """Return what `zeros_like` returns: a value never shows memory that nothing has been written into.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([2, 3])
    >>> rg.empty_like(x).value
    array([0, 0])
    """
    return _like("empty_like", prototype, 0, dtype, shape, device)


@deferred
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    shape: Shape | None = None,
    device: str | None = None,
) -> Any:
    """Return a value in the shape of `a` that has one number everywhere.

    Parameters
    ----------
    a : Var or array_like
        Any shape. Of a Var the result is a node that follows its shape.
    fill_value : number, Var or array_like
        What broadcasts to the shape; gradients pass to it.
    dtype : dtype_like, optional
        Its dtype; by default that of `a`.
    shape : int or tuple of int, optional
        Another shape.
    device : str, optional
        Its device; by default that of `a`.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If a length is negative.
    DTypeError
        If `dtype` has no kernels, or an integer does not fit it.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([2.0, 3.0])
    >>> rg.full_like(x, 7).value
    array([7., 7.])
    """
    return _like("full_like", a, fill_value, dtype, shape, device)


def _filling(name: str, number: Any, dtype: Any) -> Any:
    """Return what is filled in, in this dtype; a Python integer must fit it, as in NumPy."""
    if dtype is None:
        return np.asarray(number)
    try:
        return np.array(number, dtype) if type(number) is int else np.asarray(number).astype(dtype)
    except OverflowError as error:
        raise DTypeError(
            f"{name}: the number {number:.60g} does not fit into {dtype}. Write dtype='int64' or dtype='float64', or "
            "another number."
        ) from error


def _like(name: str, given: Any, number: Any, dtype: Any, shape: Any, device: str | None) -> Any:
    given, number = stacked(given), stacked(number)
    follows = isinstance(given, Handle) and shape is None
    a: Any = given if isinstance(given, Handle) else np.asarray(given)
    # The dtype of what a Python function returns shows only when it has run.
    wanted = a.dtype if dtype is None else _dtype(name, dtype)
    if not follows:
        made: Any = full(a.shape if shape is None else shape, number, wanted, device=device)
        return made
    if isinstance(number, Handle):
        one: Any = in_dtype(number, wanted)
    else:
        one = node(_filling(name, number, wanted), a)
    return _on(device, spread_like(one if one.device == a.device else one.to(a.device), a))


def _on(device: str | None, x: Any) -> Any:
    return x if device is None or device == x.device else x.to(device=device)


def _dtype(name: str, dtype: Any, shape: Any = None) -> Any:
    if type(dtype) is int and isinstance(shape, int):
        raise DTypeError(
            f"rg.{name}({shape}, {dtype}): the shape is one argument, and the second one is the dtype. Write "
            f"rg.{name}(({shape}, {dtype}))."
        )
    return read_dtype(name, np.dtype(dtype) if dtype in (float, int, bool, complex) else dtype)
