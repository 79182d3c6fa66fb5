"""Pooling by the largest element of windows, of equal parts and of all of space; means of all of space.

``max_pool`` gives the largest element of windows along the last axes; the first one in C order wins a tie, as in
PyTorch. Of its derivative there are two ops: ``max_pool_spread`` gives each window's gradient to its
winner, ``max_pool_take`` takes each winner's tangent. They are each other's transposes. Windows of many
places are one op for each axis, the last one first, which finds the same winners in fewer passes. Means
are linear maps along each axis (``_resampling``).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _pooling
from reactgrad.backend.numpy._taps import Rule, length_of, window_length
from reactgrad.nodes._handle import apply, current_graph
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import ALIAS
from reactgrad.ops._reduce import max, mean
from reactgrad.ops._shapes import common_device
from reactgrad.ops.neural._space import each, operand, with_samples, without_samples

# Windows of more places than this are pooled axis by axis.
MOST_PLACES: Final = 25

_INDEX: Final = np.dtype(np.int64)


def pooled_shape(name: str, x: Spec, rules: tuple[Rule | None, ...]) -> tuple[int | None, ...]:
    """Return the shape after a map of each of the last axes.

    Raises
    ------
    ShapeError
        If a window finds no place.
    """
    first = len(x.shape) - len(rules)
    lengths = tuple([length_of(rule, n) for rule, n in zip(rules, x.shape[first:], strict=True)])
    if any(
        m is not None and m < 1 and n != 0 for m, n in zip(lengths, x.shape[first:], strict=True)
    ):
        raise ShapeError(
            f"{name} of {x!r}: a window is longer than the image with its padding, so that the result would have "
            f"lengths {tuple(lengths)}. Use a smaller window or dilation, or more padding."
        )
    if 0 in x.shape[first:]:
        raise ShapeError(f"{name} of {x!r}: an image without elements has none to choose.")
    for axis, (rule, n) in enumerate(zip(rules, x.shape[first:], strict=True), first):
        if rule is not None and n is not None and rule[0] == "window" and rule[4] > 1:
            _check_elements(name, x, rule, n, axis)
    return (*x.shape[:first], *lengths)


def _check_elements(name: str, x: Spec, rule: Rule, n: int, axis: int) -> None:
    """Raise ``ShapeError`` if the places of a dilated window pass over all elements."""
    _, kernel, stride, padding, dilation, _ = rule
    for number in range(window_length(n, *rule[1:])):
        first = number * stride - padding
        if not any(0 <= first + k * dilation < n for k in range(kernel)):
            raise ShapeError(
                f"{name} of {x!r}: with dilation {dilation} a window along axis {axis} holds no element, since it "
                f"begins at {first} and the axis has {n}. Use less padding or dilation."
            )


def _infer_max(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (x,) = specs
    if x.dtype.kind == "c":
        raise DTypeError(
            f"max_pool of {x!r}: complex numbers have no order. Pool x.real or abs(x)."
        )
    return spec(pooled_shape("max_pool", x, attrs[0]), x.dtype, x.device)


def _infer_spread(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[1].shape, specs[0].dtype, common_device("max_pool", specs))


def _infer_take(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[2].shape, specs[0].dtype, common_device("max_pool", specs))


MAX_POOL = Op(
    "max_pool",
    _infer_max,
    (lambda g, ans, x, rules: apply(SPREAD, (g, x, ans), (rules,)),),
    (lambda t, ans, x, rules: apply(TAKE, (t, x, ans), (rules,)),),
)

SPREAD = Op(
    "max_pool_spread",
    _infer_spread,
    (lambda h, ans, g, x, y, rules: apply(TAKE, (h, x, y), (rules,)), None, None),
    (LINEAR, None, None),
)

TAKE = Op(
    "max_pool_take",
    _infer_take,
    (lambda h, ans, t, x, y, rules: apply(SPREAD, (h, x, y), (rules,)), None, None),
    (LINEAR, None, None),
)

# The number of each pixel in its image, in the shape of an image.
NUMBERS = Op(
    "pixel_numbers",
    lambda specs, attrs: spec(
        specs[0].shape[len(specs[0].shape) - attrs[0] :], _INDEX, specs[0].device
    ),
)

add_kernels(_pooling.register, on_host(_pooling.NAMES))


def _steps(rules: tuple[Rule | None, ...]) -> list[tuple[Rule | None, ...]]:
    """Return the rules of the ops that pool in turn: one of all axes, or one for each axis.

    Equal parts, which another shape may make longer or uneven, are pooled axis by axis.
    """
    windows = [rule for rule in rules if rule is not None and rule[0] == "window"]
    if len(windows) == len(rules) and math.prod([rule[1] for rule in windows]) <= MOST_PLACES:
        return [tuple(windows)]
    return [
        tuple([rule if i == axis else None for i in range(len(rules))])
        for axis, rule in reversed(list(enumerate(rules)))
        if rule is not None
    ]


def pooled(x: Any, rules: tuple[Rule | None, ...], added: bool, return_indices: Any) -> Any:
    """Return the largest elements of images, and their places if asked for; `added` as ``with_samples`` gives it."""
    if not hasattr(x, "_graph"):
        x = current_graph()._apply(ALIAS, (x,), ())
    numbers = apply(NUMBERS, (x,), (len(rules),)) if return_indices else None
    for one in _steps(rules):
        y = apply(MAX_POOL, (x,), (one,))
        if return_indices:
            numbers = apply(TAKE, (numbers, x, y), (one,))
        x = y
    y = without_samples(x, added)
    return (y, without_samples(numbers, added)) if return_indices else y


def windows(
    name: str,
    kind: str,
    axes: int,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: Any,
) -> tuple[Rule, ...]:
    """Return the rules for the arguments of a pooling function; raise for those that do not fit."""
    lengths = each(name, "kernel_size", kernel, axes)
    # PyTorch's modules write an empty stride for the default.
    unset = stride is None or (isinstance(stride, tuple | list) and not len(stride))
    steps = lengths if unset else each(name, "stride", stride, axes)
    pads = each(name, "padding", padding, axes, 0)
    dilated = each(name, "dilation", dilation, axes)
    for pad, length, apart in zip(pads, lengths, dilated, strict=True):
        if pad > (apart * (length - 1) + 1) // 2:
            raise ShapeError(
                f"{name}: padding={padding} is more than half of the window, {kernel}: some windows would hold "
                "nothing but padding. Use less padding, or a larger kernel_size."
            )
    return tuple(
        [
            (kind, length, step, pad, apart, bool(ceil))
            for length, step, pad, apart in zip(lengths, steps, pads, dilated, strict=True)
        ]
    )


def _max_pool(
    axes: int,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil: Any,
    return_indices: Any,
) -> Any:
    name = f"max_pool{axes}d"
    x, added = with_samples(name, x, axes)
    rules = windows(name, "window", axes, kernel, stride, padding, dilation, ceil)
    return pooled(x, rules, added, return_indices)


@deferred
def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window along one axis; see ``max_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    kernel_size, stride, padding, dilation : int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    return_indices : bool
        Whether to return the places of the largest elements, too.

    Returns
    -------
    Var, or a tuple of two
        Of the dtype of `input`; the places as int64.

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        For complex numbers, or a window that is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.max_pool1d([[[1.0, 3.0, 2.0, 5.0]]], 2)
    >>> y.value
    array([[[3., 5.]]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@deferred
def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window over two axes of space. Arguments are PyTorch's.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image; real numbers.
    kernel_size, stride, padding, dilation : int or tuple of int
        The window; one number for both axes, or one for each. By default the stride is the window's length.
        Padding never wins.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    return_indices : bool
        Whether to return the places of the largest elements, too: the number of the pixel in its image.

    Returns
    -------
    Var, or a tuple of two
        Of the dtype of `input`; the places as int64. The first of equal elements has the whole gradient.

    Raises
    ------
    ShapeError
        If no window finds place, or the padding is more than half of the window.
    DTypeError
        For complex numbers, or a window that is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y, places = rg.max_pool2d([[[[1.0, 3.0], [2.0, 0.0]]]], 2, return_indices=True)
    >>> y.value, places.value
    (array([[[[3.]]]]), array([[[[1]]]]))
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@deferred
def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window over three axes; see ``max_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    kernel_size, stride, padding, dilation : int or tuple of int
        The window; by default the stride is its length.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    return_indices : bool
        Whether to return the places of the largest elements, too.

    Returns
    -------
    Var, or a tuple of two
        Of the dtype of `input`; the places as int64.

    Raises
    ------
    ShapeError
        If no window finds place.
    DTypeError
        For complex numbers, or a window that is not given by integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.max_pool3d([[[[[1.0, 3.0], [2.0, 0.0]]]]], (1, 2, 1))
    >>> y.value
    array([[[[[2., 3.]]]]])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def parts(name: str, kind: str, axes: int, output_size: Any) -> tuple[Rule | None, ...]:
    """Return the rules for an adaptive pooling function; ``None`` where an axis keeps its length."""
    many = output_size if isinstance(output_size, tuple | list) else (output_size,) * axes
    if len(many) == 1:
        many = tuple(many) * axes
    known = each(name, "output_size", [1 if n is None else n for n in many], axes)
    return tuple(
        [None if n is None else (kind, length) for n, length in zip(many, known, strict=True)]
    )


def _adaptive_max(axes: int, x: Any, output_size: Any, return_indices: Any) -> Any:
    name = f"adaptive_max_pool{axes}d"
    x, added = with_samples(name, x, axes)
    rules = parts(name, "adaptive", axes, output_size)
    if not any(rules):  # every element is a part
        rules = (("window", 1, 1, 0, 1, False),) * axes
    return pooled(x, rules, added, return_indices)


@deferred
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each of `output_size` equal parts; see ``adaptive_max_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, L), or (C, L) for one sample.
    output_size : int
        The number of parts.
    return_indices : bool
        Whether to return the places of the largest elements, too.

    Returns
    -------
    Var, or a tuple of two
        Shape (N, C, output_size).

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For complex numbers, or an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_max_pool1d([[[1.0, 3.0, 2.0, 5.0, 4.0]]], 2)
    >>> y.value
    array([[[3., 5.]]])
    """
    return _adaptive_max(1, input, output_size, return_indices)


@deferred
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each part of images that are cut into equal parts.

    Part i of m of an axis of length n goes from ``floor(i * n / m)`` to ``ceil((i + 1) * n / m)``: parts
    overlap by one where m does not divide n. So in PyTorch.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, H, W), or (C, H, W) for one image.
    output_size : int or tuple of int or None
        The number of parts along each axis; ``None`` for as many as there are elements.
    return_indices : bool
        Whether to return the places of the largest elements, too.

    Returns
    -------
    Var, or a tuple of two
        Shape ``(N, C, *output_size)``.

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For complex numbers, or an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_max_pool2d([[[[1.0, 3.0, 2.0], [2.0, 0.0, 5.0]]]], (1, 2))
    >>> y.value
    array([[[[3., 5.]]]])
    """
    return _adaptive_max(2, input, output_size, return_indices)


@deferred
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Return the largest element of each part along three axes; see ``adaptive_max_pool2d``.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, D, H, W), or (C, D, H, W) for one sample.
    output_size : int or tuple of int or None
        The number of parts along each axis.
    return_indices : bool
        Whether to return the places of the largest elements, too.

    Returns
    -------
    Var, or a tuple of two
        Shape ``(N, C, *output_size)``.

    Raises
    ------
    ShapeError
        If there are no elements.
    DTypeError
        For complex numbers, or an `output_size` that is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.adaptive_max_pool3d([[[[[1.0, 3.0], [2.0, 0.0]]]]], 1)
    >>> y.value
    array([[[[[3.]]]]])
    """
    return _adaptive_max(3, input, output_size, return_indices)


@deferred
def global_max_pool(input: Any) -> Any:
    """Return the largest element of each channel, with axes of length 1 in the place of space.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, ...), with at least one axis of space.

    Returns
    -------
    Var
        Shape (N, C, 1, ...). Equal largest elements share the gradient, as for ``max``.

    Raises
    ------
    ShapeError
        If there is no axis of space, or it has no elements.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.global_max_pool([[[1.0, 3.0, 2.0]]])
    >>> y.value
    array([[[3.]]])
    """
    return max(input, _space("global_max_pool", input), keepdims=True)


@deferred
def global_avg_pool(input: Any) -> Any:
    """Return the mean of each channel, with axes of length 1 in the place of space.

    Parameters
    ----------
    input : Var or array_like
        Shape (N, C, ...), with at least one axis of space.

    Returns
    -------
    Var
        Shape (N, C, 1, ...).

    Raises
    ------
    ShapeError
        If there is no axis of space.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.global_avg_pool([[[1.0, 3.0, 2.0]]])
    >>> y.value
    array([[[2.]]])
    """
    return mean(input, _space("global_avg_pool", input), keepdims=True)


def _space(name: str, x: Any) -> tuple[int, ...]:
    x = operand(x)
    if x.ndim < 3:
        raise ShapeError(
            f"{name} of an array of shape {tuple(x.shape)}: images have samples, channels and at least one axis "
            "of space, (N, C, L). Add axes of length 1 with x[None]."
        )
    return tuple(range(2, x.ndim))
