"""Normalised batches, groups, channels and rows, with PyTorch's names and layouts.

All of them standardise rows by the kernel of ``layer_norm``, in another arrangement of axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._calls import real_number, whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _root_mean_square
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import over, times
from reactgrad.ops._deferred import deferred, deferred_each
from reactgrad.ops._elementwise import sqrt
from reactgrad.ops._layer_norm import layer_norm, refuse_lengths
from reactgrad.ops._operand import in_dtype
from reactgrad.ops._reduce import Axis, axis_of, sum
from reactgrad.ops._shapes import normal_axes
from reactgrad.ops._softmax import rowwise
from reactgrad.ops.reductions._deviation import length

add_kernels(_root_mean_square.register)


def _node(one: Any, *others: Any) -> Any:
    return one if isinstance(one, Handle) else graph_of((one, *others)).const(one)


def _by_channel(one: Any, like: Any) -> Any:
    """Return numbers of the channels, axis 1, in a shape that broadcasts with `like`."""
    return _node(one, like).reshape(-1, *(1,) * (like.ndim - 2))


def _scaled(y: Any, weight: Any, bias: Any) -> Any:
    if weight is not None:
        y = y * _by_channel(weight, y)
    return y if bias is None else y + _by_channel(bias, y)


def _channels(name: str, x: Any, least: int) -> None:
    if x.ndim < least:
        raise ShapeError(
            f"rg.{name} of shape {x.shape}: it takes (batch, channels, ...) with {least} axes or more."
        )


@deferred
def batch_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    *,
    eps: float = 1e-5,
) -> Any:
    """Return each channel moved to mean 0 and scaled to variance 1 over the batch, then ``* weight + bias``.

    Parameters
    ----------
    input : Var or array_like, shape (batch, channels, ...)
    running_mean, running_var : Var or array_like, optional, shape (channels,)
        What is used in place of the batch's mean and variance where `training` is false. They are not written:
        ``rg.batch_moments`` gives what a layer would mix into them.
    weight, bias : Var or array_like, optional, shape (channels,)
    training : bool
        Whether the mean and variance of this batch are used.
    eps : float
        Added to the variance.

    Raises
    ------
    ShapeError
        If there are fewer than two axes.
    DTypeError
        If `training` is false and the running moments are missing.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.batch_norm([[1.0, 5.0], [3.0, 5.0]], training=True, eps=0.0)
    ...     z = rg.batch_norm([[1.0], [3.0]], [1.0], [4.0], eps=0.0)
    >>> y.value[:, 0], z.value.ravel()
    (array([-1.,  1.]), array([0., 1.]))
    """
    x = _node(input, running_mean, running_var, weight, bias)
    _channels("batch_norm", x, 2)
    if training:
        axes = (0, *range(2, x.ndim))
        return _scaled(layer_norm(x, axis=axes, eps=eps), weight, bias)
    if running_mean is None or running_var is None:
        raise ParameterError(
            "rg.batch_norm without running_mean= and running_var= has no moments to use: give them, or "
            "training=True for those of this batch."
        )
    deviation = sqrt(_by_channel(running_var, x) + eps)
    return _scaled((x - _by_channel(running_mean, x)) / deviation, weight, bias)


@deferred
def instance_norm(input: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    """Return each channel of each sample moved to mean 0 and scaled to variance 1, then ``* weight + bias``.

    Parameters
    ----------
    input : Var or array_like, shape (batch, channels, ...)
        With at least one axis of space.
    weight, bias : Var or array_like, optional, shape (channels,)
    eps : float
        Added to the variance.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.instance_norm([[[1.0, 3.0], [10.0, 30.0]]], eps=0.0)
    >>> y.value
    array([[[-1.,  1.],
            [-1.,  1.]]])
    """
    x = _node(input, weight, bias)
    _channels("instance_norm", x, 3)
    return _scaled(layer_norm(x, axis=tuple(range(2, x.ndim)), eps=eps), weight, bias)


@deferred
def group_norm(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5
) -> Any:
    """Return groups of channels of each sample moved to mean 0 and scaled to variance 1 (Wu and He, 2018).

    Parameters
    ----------
    input : Var or array_like, shape (batch, channels, ...)
    num_groups : int
        Divides the number of channels.
    weight, bias : Var or array_like, optional, shape (channels,)
    eps : float
        Added to the variance.

    Raises
    ------
    ShapeError
        If the groups do not divide the channels.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.group_norm([[1.0, 3.0, 5.0, 5.0]], 2, eps=1.0)
    >>> y.value.round(4)
    array([[-0.7071,  0.7071,  0.    ,  0.    ]])
    """
    x = _node(input, weight, bias)
    _channels("group_norm", x, 2)
    channels = x.shape[1]
    num_groups = whole("group_norm", "num_groups", num_groups)
    if num_groups < 1 or (channels is not None and channels % num_groups):
        raise ShapeError(
            f"rg.group_norm of {channels} channels in {num_groups} groups: the groups divide the channels."
        )
    grouped = ops.unflatten(x, 1, (num_groups, -1))
    y = layer_norm(grouped, axis=tuple(range(2, grouped.ndim)), eps=eps)
    return _scaled(ops.flatten(y, 1, 2), weight, bias)


@deferred_each(lambda input: (None, None))
def batch_moments(input: Any) -> tuple[Any, Any]:
    """Return mean and variance of each channel over the batch, the variance with n - 1 in place of n.

    A layer of batch normalisation mixes them into its running moments.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     mean, variance = rg.batch_moments([[1.0], [3.0]])
    >>> mean.value, variance.value
    (array([2.]), array([2.]))
    """
    x = _node(input)
    _channels("batch_moments", x, 2)
    axes = (0, *range(2, x.ndim))
    return ops.mean(x, axes), ops.var(x, axes, ddof=1)


# --- root mean square --------------------------------------------------------------------------


def _infer_rms(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    found = rowwise("rms_norm")(specs, attrs)
    axes = normal_axes("rms_norm", attrs[0], len(found.shape))
    return spec(
        tuple(1 if i in axes else n for i, n in enumerate(found.shape)), found.dtype, found.device
    )


def _share(x: Any, root: Any, axis: Axis) -> Any:
    """Return ``x / (n * root)``, the derivative of the root by each element."""
    axes = normal_axes("rms_norm", axis, x.ndim)
    lengths = [x.shape[one] for one in axes]
    if None in lengths:
        return in_dtype(over(x, root * length(x, axes)), x.dtype)
    return over(x, root * float(prod(lengths) or 1))


# sqrt(mean(x**2) + eps) of each row, in which no square leaves the dtype.
ROOT_MEAN_SQUARE = Op(
    "root_mean_square",
    _infer_rms,
    (lambda g, ans, x, axis, eps: times(g, _share(x, ans, axis)),),
    (lambda t, ans, x, axis, eps: sum(times(t, _share(x, ans, axis)), axis, keepdims=True),),
)


@deferred
def rms_norm(
    input: Any,
    weight: Any = None,
    *,
    axis: int | Sequence[int] | None = -1,
    eps: float | None = None,
) -> Any:
    """Return rows divided by the root of the mean of their squares, then ``* weight`` (Zhang and Sennrich, 2019).

    Parameters
    ----------
    input : Var or array_like
        Any shape; real numbers, integers give floats.
    weight : Var or array_like, optional
        Of a shape that broadcasts with `input`.
    axis : int, tuple of int or None
        The axes of a row.
    eps : float, optional
        Added to the mean of squares; by default the distance of 1 to the next number of the dtype, as in PyTorch.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.rms_norm([[3.0, 4.0]], eps=0.0)
    >>> y.value.round(4)
    array([[0.8485, 1.1314]])
    """
    refuse_lengths("rms_norm", weight)
    x = _node(input, weight)
    if eps is None:
        eps = float(np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps)
    root = apply(ROOT_MEAN_SQUARE, (x,), (axis_of(axis), real_number("rms_norm", "eps", eps)))
    y = over(x, root)
    return y if weight is None else y * weight
