"""The largest elements of windows put back to their places, among zeros."""

from __future__ import annotations

from math import prod
from typing import Any

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._layout import reshape
from reactgrad.ops._operand import node
from reactgrad.ops.arrangement import repeat
from reactgrad.ops.factories import zeros_like
from reactgrad.ops.ordering import scatter
from reactgrad.scheduler import safe_repr


def max_unpool(
    axes: int,
    input: Any,
    indices: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """Return zeros with the elements of `input` at the places that ``max_pool`` has found them.

    Parameters
    ----------
    axes : int
        The number of axes of space.
    input : Var or array_like
        Shape (N, C, *space), or (C, *space).
    indices : Var or array_like of int
        The places, as ``max_pool`` returns them, in the shape of `input`.
    kernel_size, stride, padding : int or tuple of int
        Those of the pooling.
    output_size : sequence of int, optional
        The lengths of the result, of all axes or of those of space; by default the shortest that pooling may have
        been given.
    """
    name = f"max_unpool{axes}d"
    x = node(input, indices)
    places: Any = indices if isinstance(indices, Handle) else graph_of((x,)).const(indices)
    if places.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: the indices are of {places.dtype}. They are integers, of max_pool{axes}d(..., "
            "return_indices=True)."
        )
    if x.ndim not in (axes + 1, axes + 2) or places.ndim != x.ndim:
        raise ShapeError(
            f"{name} of shape {x.shape} and indices of shape {places.shape}: both have {axes + 2} axes, (batch, "
            f"channels, ...), or {axes + 1} without the batch."
        )
    window, step, edge = [
        _each(name, word, axes, given)
        for word, given in (
            ("kernel_size", kernel_size),
            ("stride", kernel_size if stride is None else stride),
            ("padding", padding),
        )
    ]
    space = x.shape[-axes:]
    if None in space:
        raise ShapeError(
            f"{name} of shape {x.shape}: the lengths of space are known when it is built. Declare them: "
            "g.input(shape=(None, 3, 8, 8))."
        )
    least = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(space, step, edge, window, strict=True)]
    size = least if output_size is None else [int(n) for n in list(output_size)[-axes:]]
    if len(size) != axes or any(
        not n - s < m < n + s for m, n, s in zip(size, least, step, strict=True)
    ):
        raise ShapeError(
            f"{name}(output_size={safe_repr(output_size)}): windows of {tuple(window)} at steps of {tuple(step)} give "
            f"{tuple(space)} of lengths near {tuple(least)}, less than a step away. Give the shape that was pooled."
        )
    front = x.shape[:-axes]
    open_front = tuple([-1 if n is None else n for n in front])
    flat = reshape(x, (*open_front, prod(space)))
    number = reshape(places, (*open_front, prod(space)))
    among = repeat(zeros_like(flat[..., :1]), prod(size), axis=-1)
    return reshape(scatter(among, flat.ndim - 1, number, flat), (*open_front, *size))


def _each(name: str, word: str, axes: int, given: Any) -> list[int]:
    numbers = list(given) if isinstance(given, tuple | list) else [given] * axes
    if len(numbers) != axes or not all(type(n) is int for n in numbers):
        raise ParameterError(
            f"{name}({word}={safe_repr(given):.40}): an integer, or one for each of {axes} axes."
        )
    return numbers
