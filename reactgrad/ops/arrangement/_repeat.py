"""Elements and whole values several times: tile, repeat, resize."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply, stacked
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._layout import (
    _in_memory,
    reshape,
    reshape_to,
    shape_attr,
    share_memory,
    spread_like,
)
from reactgrad.ops._lengths import AXIS_NUMBERS, with_length
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum as total
from reactgrad.ops._shapes import normal_axis
from reactgrad.scheduler import safe_repr

# --- the whole several times -------------------------------------------------------------------


def _infer_tile(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (reps,) = specs, attrs
    count = max(len(one.shape), len(reps))
    shape = (1,) * (count - len(one.shape)) + one.shape
    often = (1,) * (count - len(reps)) + reps
    lengths = [
        0 if rep == 0 else None if n is None else n * rep
        for n, rep in zip(shape, often, strict=True)
    ]
    return spec(tuple(lengths), one.dtype, one.device)


def _tile_rule(g: Any, ans: Any, x: Any, reps: tuple[int, ...]) -> Any:
    shape = x.shape
    new = max(len(reps) - len(shape), 0)
    often = (1,) * (len(shape) - len(reps)) + reps
    lengths: list[int | None] = [*often[:new]]
    for rep, n in zip(often[new:], shape, strict=True):
        lengths += [rep, n]
    copies = (*range(new), *range(new, len(lengths), 2))
    return total(reshape_to(g, tuple(lengths)), copies)


TILE = Op("tile", _infer_tile, (_tile_rule,), (LINEAR,))


def tile(A: Any, reps: int | tuple[int, ...]) -> Any:
    """Return `A` put together several times along each axis.

    Parameters
    ----------
    A : Var or array_like
        Any shape.
    reps : int or tuple of int
        How often along each axis, the last one last. More numbers than axes make new axes in front.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If a number is negative.
    DTypeError
        If one is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> rg.tile(x, (2, 2)).value
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    often = shape_attr("tile", tuple(reps) if np.iterable(reps) else reps)
    if any(rep < 0 for rep in often):
        raise ShapeError(
            f"tile {safe_repr(reps)} times: a value cannot be there less than 0 times."
        )
    return apply(TILE, (node(A),), (often,))


# --- each element several times ----------------------------------------------------------------


def _infer_repeat(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (repeats, axis) = specs, attrs
    at = normal_axis("repeat", axis, len(one.shape))
    n = one.shape[at]
    length = 0 if repeats == 0 else None if n is None else n * repeats
    return spec((*one.shape[:at], length, *one.shape[at + 1 :]), one.dtype, one.device)


def _repeat_rule(g: Any, ans: Any, x: Any, repeats: int, axis: int) -> Any:
    shape = x.shape
    at = axis % len(shape)
    lengths = (*shape[: at + 1], repeats, *shape[at + 1 :])
    return total(reshape_to(g, lengths), at + 1)


REPEAT = Op("repeat", _infer_repeat, (_repeat_rule,), (LINEAR,))


def _infer_numbers(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    (counts,) = specs
    if counts.dtype.kind not in "iub" or len(counts.shape) != 1:
        raise DTypeError(
            f"repeat needs a row of integers that say how often, not {safe_repr(counts)}."
        )


# The number of each element as often as it is repeated: its length shows only in the counts.
REPEAT_NUMBERS = Op("repeat_numbers", _infer_numbers, (None,), (None,))


def _serves(count: int | None, length: int | None) -> bool:
    return None in (count, length) or count in (1, length)


@deferred_each(without=("repeats",))
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Return `a` with each element along an axis several times.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    repeats : int, sequence of int, or Var of integers
        How often: one number for all elements, or one for each. The length of the result then shows
        only when a Var of them has been computed.
    axis : int, optional
        By default the elements of `a` are taken as one row.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If a number is negative, or there are not as many as elements.
    DTypeError
        If one is no integer.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3])
    >>> rg.repeat(x, 2).value
    array([1, 1, 2, 2, 3, 3])
    >>> rg.repeat(x, [2, 0, 1]).value
    array([1, 1, 3])
    """
    a = node(a, repeats)
    if axis is None or (not a.ndim and axis in (0, -1)):
        a, axis = reshape(a, -1), 0
    at = normal_axis("repeat", axis, a.ndim)
    repeats = stacked(repeats)
    if isinstance(repeats, Handle):
        counts: Any = repeats
        if counts.ndim > 1 or (counts.ndim and not _serves(counts.shape[0], a.shape[at])):
            raise ShapeError(
                f"repeat: {a.label!r} has {a.shape[at]} elements along axis {axis}, and there are numbers of "
                f"shape {counts.shape}; give one number for all, or one for each."
            )
        # One number serves all elements, and other counts than there are elements are refused.
        counts = spread_like(counts, apply(AXIS_NUMBERS, (a,), (at,)))
        numbers = apply(REPEAT_NUMBERS, (counts,))
        return a[(*[slice(None)] * at, numbers)]
    counts = np.asarray(repeats)
    if counts.dtype.kind == "f" and (counts == np.floor(counts)).all():
        counts = counts.astype(np.intp)
    if counts.dtype.kind not in "iub":
        raise DTypeError(f"repeat {safe_repr(repeats):.60} times: the numbers must be integers.")
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeat {safe_repr(repeats):.60} times: a number cannot be negative.")
    if counts.size == 1:
        return apply(REPEAT, (a,), (int(counts.reshape(())), at))
    there = a.shape[at]
    if counts.ndim != 1 or there not in (None, len(counts)):
        raise ShapeError(
            f"repeat: {a.label!r} has {there} elements along axis {axis}, and there are numbers of "
            f"shape {counts.shape}; give one number for all, or one for each."
        )
    a = with_length("repeat by numbers for each element", a, at, len(counts))
    return a[(*[slice(None)] * at, np.repeat(np.arange(len(counts)), counts))]


repeat_interleave = repeat  # PyTorch's name


# --- as many elements as fill a shape ----------------------------------------------------------


def _infer_resize(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(attrs[0], specs[0].dtype, specs[0].device)


def _infer_resize_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, x = specs
    return spec(x.shape, g.dtype, g.device)


def _first_elements(x: Any, shape: tuple[int, ...]) -> Any:
    wanted = prod(shape)
    if prod(x.shape) < wanted:
        return None
    return share_memory(x, x.reshape(-1)[:wanted].reshape(shape))


RESIZE = Op(
    "resize",
    _infer_resize,
    (lambda g, ans, x, shape: apply(RESIZE_BACK, (g, x)),),
    (LINEAR,),
    view=_first_elements,
)

# For each element of the second operand the sum over its copies.
RESIZE_BACK = Op(
    "resize_back",
    _infer_resize_back,
    (lambda h, ans, g, x: apply(RESIZE, (h,), (g.shape,)), None),
    (LINEAR, None),
)


def resize(a: Any, new_shape: int | tuple[int, ...]) -> Any:
    """Return the elements of `a`, in C order and again from the first one, as many as fill a shape.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    new_shape : int or tuple of int
        The shape of the result.

    Returns
    -------
    Var
        A view where `a` has enough elements. Zeros if `a` has none.

    Raises
    ------
    ShapeError
        If a length is negative.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3])
    >>> rg.resize(x, (2, 4)).value
    array([[1, 2, 3, 1],
           [2, 3, 1, 2]])
    """
    shape = shape_attr("resize", tuple(new_shape) if np.iterable(new_shape) else new_shape)
    if any(n < 0 for n in shape):
        raise ShapeError(f"resize to {safe_repr(new_shape)}: lengths cannot be negative.")
    return apply(RESIZE, (_in_memory(node(a)),), (shape,))
