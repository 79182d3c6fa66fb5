"""Windows that slide along axes, and the sum that reverses them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as view_of_windows

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._arrangement import register_windows
from reactgrad.backend.numpy import _windows
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import shape_attr
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import axis_of
from reactgrad.ops._shapes import normal_axis
from reactgrad.scheduler import safe_repr

add_kernels(_windows.register, register_windows)


def _infer_windows(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (window, axes) = specs, attrs
    lengths = list(one.shape)
    for size, axis in zip(window, axes, strict=True):
        n = lengths[axis]
        if n is not None:
            if n < size:
                raise ShapeError(
                    f"sliding_window_view: a window of {size} is longer than axis {axis} of {one!r}."
                )
            lengths[axis] = n - size + 1
    return spec((*lengths, *window), one.dtype, one.device)


def _infer_sum(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (g,), (window, axes) = specs, attrs
    lengths = list(g.shape[: len(g.shape) - len(window)])
    for size, axis in zip(window, axes, strict=True):
        n = lengths[axis]
        lengths[axis] = None if n is None else n + size - 1
    return spec(tuple(lengths), g.dtype, g.device)


WINDOWS = Op(
    "windows",
    _infer_windows,
    (lambda g, ans, x, *attrs: apply(WINDOW_SUM, (g,), attrs),),
    (LINEAR,),
    view=lambda x, *attrs: view_of_windows(x, *attrs),
)

# Each element of each window, added at its place.
WINDOW_SUM = Op(
    "window_sum",
    _infer_sum,
    (lambda h, ans, g, *attrs: apply(WINDOWS, (h,), attrs),),
    (LINEAR,),
)


@deferred
def sliding_window_view(
    x: Any,
    window_shape: int | tuple[int, ...],
    axis: int | tuple[int, ...] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Any:
    """Return all windows of a shape that slide along axes of `x`.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    window_shape : int or tuple of int
        The length of the window along each of these axes.
    axis : int or tuple of int, optional
        The axes; by default all.
    subok, writeable : bool
        NumPy's; a value is an array, and never writeable.

    Returns
    -------
    Var
        Of the shape of the places of the window, then that of the window. A view: costs nothing. Its gradient
        is summed where windows overlap, in time proportional to the smaller of window and places.

    Raises
    ------
    ShapeError
        If a window is longer than its axis, or there are not as many lengths as axes.
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0, 4.0, 8.0])
    >>> rg.sliding_window_view(x, 2).mean(axis=-1).value
    array([1.5, 3. , 6. ])
    """
    if writeable:
        raise ShapeError(
            "sliding_window_view(writeable=True): a value never changes; use x.at[...].set(...)."
        )
    x = node(x)
    window = shape_attr(
        "sliding_window_view", tuple(window_shape) if np.iterable(window_shape) else window_shape
    )
    if any(size < 0 for size in window):
        raise ShapeError(
            f"sliding_window_view: a window of {safe_repr(window_shape)} has a negative length."
        )
    given: Any = tuple(range(x.ndim)) if axis is None else axis_of(axis)
    axes = given if isinstance(given, tuple) else (given,)
    if len(axes) != len(window):
        raise ShapeError(
            f"sliding_window_view: {len(window)} lengths of a window for {len(axes)} axes; give one for each."
        )
    places = tuple([normal_axis("sliding_window_view", one, x.ndim) for one in axes])
    return apply(WINDOWS, (x,), (window, places))
