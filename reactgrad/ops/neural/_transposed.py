"""Transposed convolutions as layers: what the gradient of a convolution by its images does."""

from __future__ import annotations

from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.nodes._handle import apply
from reactgrad.ops._deferred import deferred
from reactgrad.ops._operand import node
from reactgrad.ops.neural._convolution import TRANSPOSE, along_channels, differ
from reactgrad.ops.neural._space import each, operand, with_samples, without_samples


def _conv_transpose(
    axes: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> Any:
    name = f"conv_transpose{axes}d"
    x, added = with_samples(name, node(x, weight, bias), axes)
    steps = each(name, "stride", stride, axes)
    dilated = each(name, "dilation", dilation, axes)
    pads = each(name, "padding", padding, axes, 0)
    more = each(name, "output_padding", output_padding, axes, 0)
    for extra, step, apart in zip(more, steps, dilated, strict=True):
        if extra >= max(step, apart):
            raise ShapeError(
                f"{name}: output_padding={output_padding} must be smaller than the stride, {steps}, or the "
                f"dilation, {dilated}: it chooses between lengths that give the same number of places."
            )
    exact = tuple([(p, p - extra) for p, extra in zip(pads, more, strict=True)])
    attrs = (steps, exact, dilated, whole(name, "groups", groups, 1))
    y = apply(TRANSPOSE, (x, operand(weight)), attrs)
    if bias is not None:
        bias = node(bias, x)
        made = y.shape[1]
        if bias.ndim != 1 or differ(bias.shape[0], made):
            raise ShapeError(
                f"{name} with a bias of shape {tuple(bias.shape)}: it has one number for each of the {made} "
                f"channels of the result, shape ({made},)."
            )
        y = y + along_channels(bias, axes)
    return without_samples(y, added)


@deferred
def conv_transpose1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transpose of ``conv1d``: what its gradient does; see ``conv_transpose2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    weight : Var or array_like
        Shape (C, channels of the result // groups, k).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, padding, dilation, groups
        Those of the convolution that this transposes.
    output_padding : int or tuple of int
        Elements added behind.

    Returns
    -------
    Var
        Shape (N, channels, (L - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + output_padding).

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DTypeError
        If an argument that is no array is neither an integer nor a tuple of integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.conv_transpose1d([[[1.0, 2.0]]], [[[1.0, 10.0]]], stride=2)
    >>> y.value
    array([[[ 1., 10.,  2., 20.]]])
    """
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@deferred
def conv_transpose2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transpose of ``conv2d``: each element of `input` adds a multiple of the kernel.

    It is the gradient of ``conv2d`` by its input, as a layer. Arguments and their order are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    weight : Var or array_like
        Shape (C, channels of the result // groups, kh, kw).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, padding, dilation, groups
        Those of the convolution that this transposes.
    output_padding : int or tuple of int
        Elements added behind along each axis: several lengths give one length after a step of more than 1.

    Returns
    -------
    Var
        Along each axis (n - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + output_padding elements.

    Raises
    ------
    ShapeError
        If the shapes do not fit, or `output_padding` is not smaller than the stride or the dilation.
    DTypeError
        If an argument that is no array is neither an integer nor a tuple of integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.conv_transpose2d([[[[1.0, 2.0]]]], [[[[1.0], [3.0]]]])
    >>> y.value
    array([[[[1., 2.],
             [3., 6.]]]])
    """
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@deferred
def conv_transpose3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    """Return the transpose of ``conv3d``; see ``conv_transpose2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    weight : Var or array_like
        Shape (C, channels of the result // groups, kd, kh, kw).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, padding, dilation, groups
        Those of the convolution that this transposes.
    output_padding : int or tuple of int
        Elements added behind along each axis.

    Returns
    -------
    Var
        Along each axis (n - 1) * stride - 2 * padding + dilation * (k - 1) + 1 + output_padding elements.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DTypeError
        If an argument that is no array is neither an integer nor a tuple of integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.conv_transpose3d([[[[[1.0, 2.0]]]]], [[[[[3.0]]]]])
    >>> y.value
    array([[[[[3., 6.]]]]])
    """
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
