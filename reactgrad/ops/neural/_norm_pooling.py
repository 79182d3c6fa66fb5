"""Pooling by p-norms."""

from __future__ import annotations

import math
from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import absolute, equal, power
from reactgrad.ops._where import where
from reactgrad.ops.neural._pooling import pooled, windows
from reactgrad.ops.neural._resampling import resample
from reactgrad.ops.neural._space import with_samples, without_samples
from reactgrad.scheduler import safe_repr


def _lp_pool(axes: int, x: Any, p: Any, kernel: Any, stride: Any, ceil: Any) -> Any:
    name = f"lp_pool{axes}d"
    if isinstance(p, bool) or not isinstance(p, int | float) or p == 0:
        raise ParameterError(f"{name}: norm_type={safe_repr(p):.60}; it is a number other than 0.")
    x, added = with_samples(name, x, axes)
    if math.isinf(p):
        rules = windows(name, "window", axes, kernel, stride, 0, 1, ceil)
        size = absolute(x)
        return pooled(size, rules, added, False) if p > 0 else -pooled(-size, rules, added, False)
    rules = windows(name, "inside", axes, kernel, stride, 0, 1, ceil)
    total = resample(power(x, p), rules) * float(math.prod([rule[1] for rule in rules]))
    # At 0 the root has no slope; a window of zeros has none there, as PyTorch documents.
    none = equal(total, 0.0)
    y = where(none, 0.0, power(where(none, 1.0, total), 1.0 / p))
    return without_samples(y, added)


@deferred
def lp_pool1d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return the p-norm of each window along one axis; see ``lp_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    norm_type : float
        p.
    kernel_size, stride : int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.

    Returns
    -------
    Var
        Shape (N, C, windows).

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        For a `norm_type` that is no number, or 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.lp_pool1d([[[3.0, 4.0, 0.0, 2.0]]], 2, 2)
    >>> y.value
    array([[[5., 2.]]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@deferred
def lp_pool2d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return the p-norm of each window: the root of the sum of the elements' powers, not of their sizes.

    For an odd p the powers of negative elements are negative, as in PyTorch; take ``abs(x)`` first for a norm.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    norm_type : float
        p; infinity for the largest size.
    kernel_size, stride : int or tuple of int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end; its mean counts as often as that of a whole one.

    Returns
    -------
    Var
        Shape (N, C, windows along H, windows along W). The gradient of a window whose sum is 0 is 0.

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        For a `norm_type` that is no number, or 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.lp_pool2d([[[[3.0, 0.0], [0.0, 4.0]]]], 2, 2)
    >>> y.value
    array([[[[5.]]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@deferred
def lp_pool3d(
    input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> Any:
    """Return the p-norm of each window over three axes; see ``lp_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    norm_type : float
        p.
    kernel_size, stride : int or tuple of int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.

    Returns
    -------
    Var
        Shape (N, C, and the windows along each axis).

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        For a `norm_type` that is no number, or 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.lp_pool3d([[[[[3.0, 0.0], [0.0, 4.0]]]]], 2, (1, 2, 2))
    >>> y.value
    array([[[[[5.]]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
