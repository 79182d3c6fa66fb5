"""Elements and whole values several times: tile, repeat, resize."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply, stacked
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._layout import broadcast_to, reshape, reshape_to, shape_attr
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import sum as total
from reactgrad.ops._shapes import normal_axis

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
        raise ShapeError(f"tile {reps!r} times: a value cannot be there less than 0 times.")
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
        raise DTypeError(f"repeat needs a row of integers that say how often, not {counts!r}.")


# The number of each element as often as it is repeated: its length shows only in the counts.
REPEAT_NUMBERS = Op("repeat_numbers", _infer_numbers, (None,), (None,))


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
        if not counts.ndim:
            counts = broadcast_to(counts, (_length(a, at),))
        numbers = apply(REPEAT_NUMBERS, (counts,))
        return a[(*[slice(None)] * at, numbers)]
    counts = np.asarray(repeats)
    if counts.dtype.kind == "f" and (counts == np.floor(counts)).all():
        counts = counts.astype(np.intp)
    if counts.dtype.kind not in "iub":
        raise DTypeError(f"repeat {repeats!r:.60} times: the numbers must be integers.")
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeat {repeats!r:.60} times: a number cannot be negative.")
    if counts.size == 1:
        return apply(REPEAT, (a,), (int(counts.reshape(())), at))
    if counts.shape != (_length(a, at),):
        raise ShapeError(
            f"repeat: {a.label!r} has {_length(a, at)} elements along axis {axis}, and there are numbers of "
            f"shape {counts.shape}; give one number for all, or one for each."
        )
    return a[(*[slice(None)] * at, np.repeat(np.arange(len(counts)), counts))]


def _length(a: Any, axis: int) -> int:
    length = a.shape[axis]
    if length is None:
        raise a._unknown_length()
    return length


repeat_interleave = repeat  # PyTorch's name


# --- as many elements as fill a shape ----------------------------------------------------------


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
        If a length is negative, or that of `a` is not known.

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
        raise ShapeError(f"resize to {new_shape!r}: lengths cannot be negative.")
    a = node(a)
    size, wanted = a.size, int(np.prod(shape, dtype=object))
    if not size:
        return broadcast_to(a._graph.const(np.zeros((), a.dtype), device=a.device), shape)
    row = reshape(a, -1)
    if wanted > size:
        row = tile(row, -(-wanted // size))
    return reshape(row if row.shape == (wanted,) else row[:wanted], shape)
