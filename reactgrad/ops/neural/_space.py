"""Axes of space, which are all axes of an image behind those of samples and channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec
from reactgrad.nodes._handle import Handle, stacked
from reactgrad.ops._layout import expand_dims, squeeze
from reactgrad.scheduler import safe_repr


def operand(x: Any) -> Any:
    """Return a Var, or what a caller wrote in its place as something with axes."""
    x = stacked(x)
    return x if isinstance(x, Handle) or hasattr(x, "ndim") else np.asarray(x)


def each(name: str, what: str, value: Any, axes: int, least: int = 1) -> tuple[int, ...]:
    """Return an argument that is an integer for all axes of space, or one for each; raise as ``whole``."""
    if isinstance(value, tuple | list | np.ndarray):
        many = tuple(value)
        if len(many) == 1:
            many *= axes
        if len(many) != axes:
            raise ShapeError(
                f"{name}: {what}={safe_repr(value):.60} has {len(many)} numbers for {axes} "
                f"{'axis' if axes == 1 else 'axes'} of space; write one integer, or one for each axis."
            )
    else:
        many = (value,) * axes
    return tuple([whole(name, what, one, least) for one in many])


def pairs(padding: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return the padding before and behind for a padding that is the same on both sides."""
    return tuple([(one, one) for one in padding])


def with_samples(name: str, x: Any, axes: int) -> tuple[Any, bool]:
    """Return images with an axis of samples, and whether it had to be added.

    Raises
    ------
    ShapeError
        If the number of axes is neither that of several images nor that of one.
    """
    x = operand(x)
    if x.ndim == axes + 2:
        return x, False
    if x.ndim == axes + 1:
        return expand_dims(x, 0), True
    space = ", ".join(("D", "H", "W")[3 - axes :] if axes > 1 else ("L",))
    raise ShapeError(
        f"{name} of an array of shape {tuple(x.shape)}: it takes images of shape (N, C, {space}), or one image "
        f"of shape (C, {space}). Reshape it, or add axes of length 1 with x[:, None]."
    )


def without_samples(y: Any, added: bool) -> Any:
    """Return the result without the axis of samples that ``with_samples`` has added."""
    return squeeze(y, 0) if added else y


def places(one: int | None, kernel: int, stride: int, pads: int, dilation: int) -> int | None:
    """Return how often a kernel finds place along an axis; less than 1 if it is longer than the axis."""
    return None if one is None else (one + pads - dilation * (kernel - 1) - 1) // stride + 1


def too_long(name: str, x: Spec, kernel: Any, pads: Any, dilation: Any) -> ShapeError:
    """Return the error for a kernel that is longer than the padded images."""
    span = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)])
    return ShapeError(
        f"{name} of {x!r}: a kernel of shape {tuple(kernel)}"
        + (f" with dilation {tuple(dilation)}" if span != tuple(kernel) else "")
        + f" spans {span} elements, more than the image of {tuple(x.shape[2:])} with padding "
        f"{tuple(pads)}. Use a smaller kernel or dilation, or more padding."
    )
