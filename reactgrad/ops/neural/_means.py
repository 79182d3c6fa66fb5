"""Means of windows and of equal parts of images."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.ops._deferred import deferred
from reactgrad.ops._reduce import mean
from reactgrad.ops.neural._pooling import parts, windows
from reactgrad.ops.neural._resampling import resample
from reactgrad.ops.neural._space import with_samples, without_samples


def _avg_pool(
    axes: int, x: Any, kernel: Any, stride: Any, padding: Any, ceil: Any, include: Any, divisor: Any
) -> Any:
    name = f"avg_pool{axes}d"
    x, added = with_samples(name, x, axes)
    kind = "sum" if divisor is not None else "padded" if include else "inside"
    y = resample(x, windows(name, kind, axes, kernel, stride, padding, 1, ceil))
    if divisor is not None:
        if isinstance(divisor, bool) or not hasattr(divisor, "__index__") or divisor == 0:
            raise ParameterError(
                f"{name}: divisor_override={divisor!r:.60}; it is an integer other than 0."
            )
        y = y / float(divisor)
    return without_samples(y, added)


@deferred
def avg_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """Return the mean of each window along one axis; see ``avg_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    kernel_size, stride, padding : int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether zeros of the padding count.

    Returns
    -------
    Var
        Shape (N, C, windows); integers give float64.

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        If the window is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.avg_pool1d([[[1.0, 3.0, 2.0, 5.0]]], 2)
    >>> y.value
    array([[[2. , 3.5]]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@deferred
def avg_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Return the mean of each window over two axes of space. Arguments are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    kernel_size, stride, padding : int or tuple of int
        The window; one number for both axes, or one for each. By default the stride is the window's length.
    ceil_mode : bool
        Whether a last window may reach beyond the end; what lies beyond the padding never counts.
    count_include_pad : bool
        Whether zeros of the padding count.
    divisor_override : int, optional
        A number to divide the sums by, in place of the number of elements.

    Returns
    -------
    Var
        Shape (N, C, windows along H, windows along W); integers give float64. Half floats are added up in
        float32, and more than 64 elements of an axis in float64.

    Raises
    ------
    ShapeError
        If no window finds place, or the padding is more than half of the window.
    DTypeError
        If the window is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.avg_pool2d([[[[1.0, 3.0], [2.0, 0.0]]]], 2)
    >>> y.value
    array([[[[1.5]]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@deferred
def avg_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Return the mean of each window over three axes; see ``avg_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    kernel_size, stride, padding : int or tuple of int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether zeros of the padding count.
    divisor_override : int, optional
        A number to divide the sums by.

    Returns
    -------
    Var
        Shape (N, C, and the windows along each axis).

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        If the window is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.avg_pool3d([[[[[1.0, 3.0], [2.0, 0.0]]]]], (1, 2, 2))
    >>> y.value
    array([[[[[1.5]]]]])
    """
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_mean(name: str, axes: int, x: Any, output_size: Any) -> Any:
    """Return the mean of each part of images (N, C, ...) or (C, ...) that are cut into equal parts."""
    x, added = with_samples(name, x, axes)
    rules = parts(name, "parts", axes, output_size)
    if all(rule is not None and rule[1] == 1 for rule in rules):
        y = mean(x, tuple(range(2, 2 + axes)), keepdims=True)
    else:
        y = resample(x, tuple([None if rule is None else (*rule, None) for rule in rules]))
    return without_samples(y, added)


@deferred
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """Return the mean of each of `output_size` equal parts; see ``adaptive_avg_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    output_size : int
        The number of parts.

    Returns
    -------
    Var
        Shape (N, C, output_size).

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_avg_pool1d([[[1.0, 3.0, 2.0, 5.0]]], 2)
    >>> y.value
    array([[[2. , 3.5]]])
    """
    return adaptive_mean("adaptive_avg_pool1d", 1, input, output_size)


@deferred
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Any:
    """Return the mean of each part of images that are cut into equal parts.

    Part i of m of an axis of length n goes from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``: parts
    overlap by one where m does not divide n. So in PyTorch.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    output_size : int or tuple of int or None
        The number of parts along each axis; ``None`` for as many as there are elements.

    Returns
    -------
    Var
        Shape ``(N, C, *output_size)``.

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_avg_pool2d([[[[1.0, 3.0, 2.0], [2.0, 0.0, 5.0]]]], (1, 3))
    >>> y.value
    array([[[[1.5, 1.5, 3.5]]]])
    """
    return adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)


@deferred
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Any:
    """Return the mean of each part along three axes; see ``adaptive_avg_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    output_size : int or tuple of int or None
        The number of parts along each axis.

    Returns
    -------
    Var
        Shape ``(N, C, *output_size)``.

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_avg_pool3d([[[[[1.0, 3.0], [2.0, 0.0]]]]], 1)
    >>> y.value
    array([[[[[1.5]]]]])
    """
    return adaptive_mean("adaptive_avg_pool3d", 3, input, output_size)
