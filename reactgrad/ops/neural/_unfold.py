"""Patches of images as columns, and back: each is the gradient of the other one."""

from __future__ import annotations

import math
from typing import Any

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _pixels
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import expand_dims, known_shape, squeeze
from reactgrad.ops._shapes import common_device
from reactgrad.ops.neural._space import each, operand, pairs, places, too_long, with_samples
from reactgrad.scheduler import safe_repr


def _columns(x: Spec, attrs: Attrs) -> tuple[int | None, ...]:
    """Return the number of patches along each axis."""
    kernel, stride, pads, dilation = attrs
    lengths = tuple(
        [
            places(n, k, s, sum(pad), d)
            for n, k, s, pad, d in zip(x.shape[2:], kernel, stride, pads, dilation, strict=True)
        ]
    )
    if any(n is not None and n < 1 for n in lengths):
        raise too_long("unfold", x, kernel, pads, dilation)
    return lengths


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (x,) = specs
    lengths = _columns(x, attrs)
    rows = None if x.shape[1] is None else x.shape[1] * math.prod(attrs[0])
    count = None if None in lengths else math.prod(lengths)  # type: ignore[arg-type]
    return spec((x.shape[0], rows, count), x.dtype, x.device)


def _infer_fold(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    cols = specs[0]
    size = attrs[0] if len(specs) == 1 else specs[1].shape[2:]
    kernel, window = attrs[-4], attrs[-4:]
    rows, count = cols.shape[1:]
    each_place = math.prod(kernel)
    if rows is not None and rows % each_place:
        raise ShapeError(
            f"fold of {safe_repr(cols)}: its second length, {rows}, is channels times the {each_place} places of a kernel "
            f"{kernel}, so it must be a multiple of {each_place}."
        )
    channels = None if rows is None else rows // each_place
    image = spec((cols.shape[0], channels, *size), cols.dtype, cols.device)
    if None not in size:
        lengths = _columns(image, window)
        if count is not None and count != math.prod(lengths):  # type: ignore[arg-type]
            raise ShapeError(
                f"fold of {safe_repr(cols)} to images of {tuple(size)}: these have {lengths} patches, so the last length "
                f"must be {math.prod(lengths)}."  # type: ignore[arg-type]
            )
    return spec(image.shape, cols.dtype, common_device("fold", specs))


def _fold(g: Any, x: Any, window: Attrs) -> Any:
    shape = known_shape(x)
    if shape is None or None in shape[2:]:
        return apply(FOLD_LIKE, (g, x), window)
    return apply(FOLD, (g,), (shape[2:], *window))


UNFOLD = Op("unfold", _infer, (lambda g, ans, x, *window: _fold(g, x, window),), (LINEAR,))

FOLD = Op(
    "fold",
    _infer_fold,
    (lambda h, ans, cols, size, *window: apply(UNFOLD, (h,), window),),
    (LINEAR,),
)

FOLD_LIKE = Op(
    "fold_like",
    _infer_fold,
    (lambda h, ans, cols, x, *window: apply(UNFOLD, (h,), window), None),
    (LINEAR, None),
)

add_kernels(_pixels.register, on_host(_pixels.NAMES))


def _window(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Attrs:
    return (
        each(name, "kernel_size", kernel, 2),
        each(name, "stride", stride, 2),
        pairs(each(name, "padding", padding, 2, 0)),
        each(name, "dilation", dilation, 2),
    )


@deferred
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Return the patches of images under a kernel as columns. Arguments are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    kernel_size, dilation, padding, stride : int or tuple of int
        The kernel, as for ``conv2d``.

    Returns
    -------
    Var
        Shape (N, C * places of the kernel, number of patches).

    Raises
    ------
    ShapeError
        If the kernel is larger than the padded input.
    DTypeError
        If an argument is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.unfold([[[[1.0, 2.0], [3.0, 4.0]]]], (1, 2))
    >>> y.value
    array([[[1., 3.],
            [2., 4.]]])
    """
    x, added = with_samples("unfold", input, 2)
    y = apply(UNFOLD, (x,), _window("unfold", kernel_size, dilation, padding, stride))
    return squeeze(y, 0) if added else y


@deferred
def fold(
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    """Return images in which each patch is added at its place: the transpose of ``unfold``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C * places of the kernel, number of patches), or without N for one image.
    output_size : int or tuple of int
        H and W.
    kernel_size, dilation, padding, stride : int or tuple of int
        Those of ``unfold``.

    Returns
    -------
    Var
        Shape (N, C, H, W).

    Raises
    ------
    ShapeError
        If the columns are not those of such images.
    DTypeError
        If an argument is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fold([[[1.0, 3.0], [2.0, 4.0]]], (1, 3), (1, 2))
    >>> y.value
    array([[[[1., 5., 4.]]]])
    """
    x = operand(input)
    if x.ndim not in (2, 3):
        raise ShapeError(
            f"fold of an array of shape {tuple(x.shape)}: it takes columns, (N, C * places of the kernel, number of "
            "patches), or those of one image, without N."
        )
    added = x.ndim == 2
    size = each("fold", "output_size", output_size, 2)
    window = _window("fold", kernel_size, dilation, padding, stride)
    y = apply(FOLD, (expand_dims(x, 0) if added else x,), (size, *window))
    return squeeze(y, 0) if added else y
