"""Convolutions over 1, 2 and 3 axes of space, and the ops of their derivatives.

Three ops are bilinear, and the derivative of each is one of the others: ``conv`` gives results of images and
a kernel, ``conv_transpose`` images of results and a kernel, ``conv_weight`` a kernel of images and results.
Their attributes are the step, the padding (before and behind, exactly as much as is used), the dilation
and the number of groups. Where a length that they have to give back is not known when the node is
built, one more operand gives it (``..._like``).
"""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _convolution
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import known_shape, reshape, spread
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device, promote
from reactgrad.ops.neural._space import (
    each,
    operand,
    pairs,
    places,
    too_long,
    whole,
    with_samples,
    without_samples,
)
from reactgrad.scheduler import safe_repr

Shape = tuple[int | None, ...]


def _named(kind: str, x: Spec) -> str:
    return f"{kind}{len(x.shape) - 2}d"


def differ(m: int | None, n: int | None) -> bool:
    """Return whether two lengths are known and not the same."""
    return m is not None and n is not None and m != n


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, w = specs[:2]
    stride, pads, dilation, groups = attrs
    name = _named("conv", x)
    if len(w.shape) != len(x.shape):
        raise ShapeError(
            f"{name} of {x!r} with weight {w!r}: the weight has shape (channels of the result, channels of "
            f"a group of x, {', '.join(['k'] * (len(x.shape) - 2))}), {len(x.shape)} axes as x."
        )
    made, taken = w.shape[:2]
    if made is not None and made % groups:
        raise ShapeError(
            f"{name} with weight {w!r} and groups={groups}: its first length, {made}, is the number of "
            "channels of the result, and must be a multiple of groups."
        )
    if taken is not None and differ(x.shape[1], taken * groups):
        raise ShapeError(
            f"{name} of {x!r} with weight {w!r} and groups={groups}: the weight takes {taken} * {groups} "
            f"channels, but x has {x.shape[1]} (axis 1). The weight's second length must be the number of "
            "channels of x divided by groups."
        )
    if len(specs) == 3:
        _check_bias(name, specs[2], made)
    lengths = tuple(
        [
            None if k is None else places(n, k, s, sum_of(pad), d)
            for n, k, s, pad, d in zip(
                x.shape[2:], w.shape[2:], stride, pads, dilation, strict=True
            )
        ]
    )
    if any(n is not None and n < 1 for n in lengths):
        raise too_long(name, x, w.shape[2:], pads, dilation)
    return spec((x.shape[0], made, *lengths), promote(specs), common_device(name, specs))


def sum_of(pad: tuple[int, int]) -> int:
    """Return the padding on both sides together."""
    return pad[0] + pad[1]


def _check_bias(name: str, bias: Spec, made: int | None) -> None:
    if len(bias.shape) != 1 or differ(bias.shape[0], made):
        raise ShapeError(
            f"{name} with bias {safe_repr(bias)}: the bias has one number for each of the {made} channels of the "
            f"result, shape ({made},)."
        )


def _infer_transpose(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, w = specs[:2]
    stride, pads, dilation, groups = attrs
    name = _named("conv_transpose", g)
    if len(w.shape) != len(g.shape):
        raise ShapeError(
            f"{name} of {g!r} with weight {w!r}: the weight has shape (channels of x, channels of a group of "
            f"the result, {', '.join(['k'] * (len(g.shape) - 2))}), {len(g.shape)} axes as x."
        )
    if differ(g.shape[1], w.shape[0]):
        raise ShapeError(
            f"{name} of {g!r} with weight {w!r}: the weight's first length, {w.shape[0]}, must be the number "
            f"of channels of x, {g.shape[1]} (axis 1)."
        )
    if w.shape[0] is not None and w.shape[0] % groups:
        raise ShapeError(
            f"{name} of {g!r} with groups={groups}: the number of channels, {w.shape[0]}, must be a "
            "multiple of groups."
        )
    if len(specs) == 3:
        lengths = specs[2].shape[2:]
    else:
        lengths = tuple(
            [
                None if n is None or k is None else (n - 1) * s - sum_of(pad) + d * (k - 1) + 1
                for n, k, s, pad, d in zip(
                    g.shape[2:], w.shape[2:], stride, pads, dilation, strict=True
                )
            ]
        )
    if any(n is not None and n < 0 for n in lengths):
        raise ShapeError(
            f"{name} of {g!r} with weight {w!r}: padding {pads} leaves nothing of a result of so few "
            "elements. Use less padding."
        )
    made = None if w.shape[1] is None else w.shape[1] * groups
    return spec((g.shape[0], made, *lengths), promote(specs[:2]), common_device(name, specs))


def _infer_weight(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, g = specs[:2]
    groups = attrs[-1]
    channels = x.shape[1]
    kernel: Shape = attrs[0] if len(specs) == 2 else specs[2].shape[2:]
    taken = None if channels is None else channels // groups
    device = common_device("conv_weight", specs)
    return spec((g.shape[1], taken, *kernel), promote(specs[:2]), device)


# Each of the three takes the attributes of ``conv``.
def _images(g: Any, w: Any, x: Any, attrs: Attrs) -> Any:
    """Return the transposed convolution of `g`, in the shape of `x`."""
    stride, pads, dilation, groups = attrs
    images, kernel = known_shape(x), known_shape(w)
    if images is not None and kernel is not None:
        exact = tuple(
            [
                _exact(*one)
                for one in zip(images[2:], kernel[2:], stride, pads, dilation, strict=True)
            ]
        )
        if None not in exact:
            return apply(TRANSPOSE, (g, w), (stride, exact, dilation, groups))
    return apply(TRANSPOSE_LIKE, (g, w, x), attrs)


def _exact(
    n: int | None, kernel: int | None, stride: int, pad: tuple[int, int], dilation: int
) -> tuple[int, int] | None:
    """Return the padding without what no step of the kernel reaches; ``None`` if the length is not known."""
    if stride == 1:
        return pad
    if n is None or kernel is None:
        return None
    return pad[0], pad[1] - (n + sum_of(pad) - dilation * (kernel - 1) - 1) % stride


def _kernel(x: Any, g: Any, w: Any, attrs: Attrs) -> Any:
    """Return the gradient of the kernel, in the shape of `w`."""
    shape = known_shape(w)
    if shape is None or None in shape[2:]:
        return apply(WEIGHT_LIKE, (x, g, w), attrs)
    return apply(WEIGHT, (x, g), (shape[2:], *attrs))


def _results(x: Any, w: Any, *attrs: Any) -> Any:
    return apply(CONV, (x, w), attrs)


def _of_bias(g: Any, ans: Any, x: Any, w: Any, b: Any, *attrs: Any) -> Any:
    return sum(g, (0, *range(2, g.ndim)))


def along_channels(b: Any, axes: int) -> Any:
    """Return one number for each channel in a shape that broadcasts with images."""
    return reshape(b, (-1, *[1] * axes))


CONV = Op(
    "conv",
    _infer,
    (
        lambda g, ans, x, w, *attrs: _images(g, w, x, attrs),
        lambda g, ans, x, w, *attrs: _kernel(x, g, w, attrs),
    ),
    (LINEAR, LINEAR),
)

CONV_BIAS = Op(
    "conv_bias",
    _infer,
    (
        lambda g, ans, x, w, b, *attrs: _images(g, w, x, attrs),
        lambda g, ans, x, w, b, *attrs: _kernel(x, g, w, attrs),
        _of_bias,
    ),
    (
        lambda t, ans, x, w, b, *attrs: _results(t, w, *attrs),
        lambda t, ans, x, w, b, *attrs: _results(x, t, *attrs),
        lambda t, ans, x, w, b, *attrs: spread(along_channels(t, ans.ndim - 2), ans),
    ),
)

TRANSPOSE = Op(
    "conv_transpose",
    _infer_transpose,
    (
        lambda h, ans, g, w, *attrs: _results(h, w, *attrs),
        lambda h, ans, g, w, *attrs: _kernel(h, g, w, attrs),
    ),
    (LINEAR, LINEAR),
)

TRANSPOSE_LIKE = Op(
    "conv_transpose_like",
    _infer_transpose,
    (
        lambda h, ans, g, w, x, *attrs: _results(h, w, *attrs),
        lambda h, ans, g, w, x, *attrs: _kernel(h, g, w, attrs),
        None,
    ),
    (LINEAR, LINEAR, None),
)

WEIGHT = Op(
    "conv_weight",
    _infer_weight,
    (
        lambda h, ans, x, g, kernel, *attrs: _images(g, h, x, attrs),
        lambda h, ans, x, g, kernel, *attrs: _results(x, h, *attrs),
    ),
    (LINEAR, LINEAR),
)

WEIGHT_LIKE = Op(
    "conv_weight_like",
    _infer_weight,
    (
        lambda h, ans, x, g, w, *attrs: _images(g, h, x, attrs),
        lambda h, ans, x, g, w, *attrs: _results(x, h, *attrs),
        None,
    ),
    (LINEAR, LINEAR, None),
)

add_kernels(_convolution.register, on_host(_convolution.NAMES))


def _padding(
    name: str, padding: Any, kernel: Shape, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """Return the padding before and behind along each axis."""
    if not isinstance(padding, str):
        return pairs(each(name, "padding", padding, len(stride), 0))
    if padding == "valid":
        return pairs((0,) * len(stride))
    if padding != "same":
        raise ParameterError(
            f"{name}: padding={safe_repr(padding)}; it is 'same', 'valid', an integer, or one for each axis."
        )
    if any(s != 1 for s in stride):
        raise ShapeError(
            f"{name}: padding='same' with stride={stride}: a result as long as the image needs a stride of "
            "1. Write the padding as integers."
        )
    if None in kernel:
        raise ShapeError(
            f"{name}: padding='same' needs the lengths of the kernel, which are not known yet. Write the "
            "padding as integers."
        )
    spans = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]  # type: ignore[operator]
    return tuple([(span // 2, span - span // 2) for span in spans])


def _conv(
    axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    name = f"conv{axes}d"
    x, added = with_samples(name, x, axes)
    weight = operand(weight)
    steps = each(name, "stride", stride, axes)
    dilated = each(name, "dilation", dilation, axes)
    groups = whole(name, "groups", groups, 1)
    kernel = tuple(weight.shape[2:]) if weight.ndim == axes + 2 else (1,) * axes
    attrs = (steps, _padding(name, padding, kernel, steps, dilated), dilated, groups)
    operands = (x, weight) if bias is None else (x, weight, bias)
    return without_samples(apply(CONV if bias is None else CONV_BIAS, operands, attrs), added)


@deferred
def conv1d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution over one axis of space; see ``conv2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    weight : Var or array_like
        Shape (channels of the result, C // groups, k).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, dilation : int or tuple of int
        The step of the kernel, and that inside of it.
    padding : int, tuple of int or str
        Zeros at both ends; ``"valid"`` for none, ``"same"`` for a result as long as the input.
    groups : int
        The number of groups of channels that do not meet.

    Returns
    -------
    Var
        Shape (N, channels, places of the kernel).

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
    ...     y = rg.conv1d([[[1.0, 2.0, 4.0]]], [[[-1.0, 1.0]]])
    >>> y.value
    array([[[1., 2.]]])
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


@deferred
def conv2d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution over two axes of space: the sums of products with a kernel at each place.

    The kernel is not mirrored, as in all libraries of neural networks. Arguments are PyTorch's. Half
    floats are added up in float32.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    weight : Var or array_like
        Shape (channels of the result, C // groups, kh, kw).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, dilation : int or tuple of int
        The step of the kernel, and that inside of it; one number for both axes, or one for each.
    padding : int, tuple of int or str
        Zeros at both ends of an axis; ``"valid"`` for none, ``"same"`` for a result as large as the input.
    groups : int
        The number of groups of channels that do not meet; C for a kernel of its own for each channel.

    Returns
    -------
    Var
        Shape (N, channels, places along H, places along W).

    Raises
    ------
    ShapeError
        If the shapes do not fit, or the kernel is larger than the padded input.
    DTypeError
        If an argument that is no array is neither an integer nor a tuple of integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.conv2d([[[[1.0, 2.0], [3.0, 4.0]]]], [[[[1.0, 1.0]]]], [0.5])
    >>> y.value
    array([[[[3.5],
             [7.5]]]])
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


@deferred
def conv3d(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution over three axes of space; see ``conv2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    weight : Var or array_like
        Shape (channels of the result, C // groups, kd, kh, kw).
    bias : Var, array_like or None
        One number for each channel of the result.
    stride, dilation : int or tuple of int
        The step of the kernel, and that inside of it.
    padding : int, tuple of int or str
        Zeros at both ends of an axis, ``"valid"`` or ``"same"``.
    groups : int
        The number of groups of channels that do not meet.

    Returns
    -------
    Var
        Shape (N, channels, and the places of the kernel along each axis).

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
    ...     y = rg.conv3d([[[[[1.0, 2.0]]]]], [[[[[3.0]]]]])
    >>> y.value
    array([[[[[3., 6.]]]]])
    """
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)
