"""Kernels of places that follow from the lengths of an operand, whose elements they do not read."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend._registry import register_kernel

Places = tuple[Any, ...]  # integers; or a name and what belongs to it: ("slice", start, stop, step)


def _numbers(length: int, which: Places) -> np.ndarray[Any, Any]:
    """Return the places along an axis as integers from its front."""
    if which and which[0] == "slice":
        return np.arange(*slice(*which[1:]).indices(length))
    numbers = np.array(which, np.intp)
    return np.where(numbers < 0, numbers + length, numbers)


def inserted(length: int, which: Places) -> np.ndarray[Any, Any]:
    """Return the number of each element when values are put in before the places `which`.

    The values count on behind the `length` elements of the axis, in the order in which they were given.
    """
    places = _numbers(length, which)
    count = len(places)
    order = np.argsort(places, kind="stable")
    target = np.empty(count, np.intp)
    target[order] = places[order] + np.arange(count)
    numbers = np.full(length + count, -1, np.intp)
    numbers[target] = length + np.arange(count)
    numbers[numbers < 0] = np.arange(length)
    return numbers


def kept(length: int, which: Places) -> np.ndarray[Any, Any]:
    """Return the numbers of the elements of an axis that are not among the places `which`."""
    stays = np.ones(length, bool)
    stays[_numbers(length, which)] = False
    return np.flatnonzero(stays)


def triangle(m: int, n: int, k: int, upper: bool) -> np.ndarray[Any, Any]:
    """Return rows and columns of the elements of a matrix in one of its triangles, one below the other."""
    return np.stack((np.triu_indices if upper else np.tril_indices)(m, k, n))


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace that has the functions of the array API standard."""

    def insert_places(x: Any, out: Any, axis: int, which: Places) -> None:
        out[...] = xp.asarray(inserted(x.shape[axis], which))

    def delete_places(x: Any, out: Any, axis: int, which: Places) -> None:
        out[...] = xp.asarray(kept(x.shape[axis], which))

    def axis_numbers(x: Any, out: Any, axis: int) -> None:
        out[...] = xp.arange(x.shape[axis])

    def diagonal_places(x: Any, out: Any) -> None:
        out[...] = xp.arange(x.shape[0])

    def triangle_places(x: Any, out: Any, k: int, upper: bool) -> None:
        m, n = x.shape
        out[...] = xp.asarray(triangle(m, n, k, upper))

    def spread_along(x: Any, like: Any, out: Any, *attrs: Any) -> None:
        out[...] = xp.broadcast_to(x, tuple(out.shape))

    def with_lengths(x: Any, out: Any, *attrs: Any) -> None:
        out[...] = x

    register_kernel("insert_places", kind, insert_places)
    register_kernel("delete_places", kind, delete_places)
    register_kernel("axis_numbers", kind, axis_numbers)
    register_kernel("diagonal_places", kind, diagonal_places)
    register_kernel("triangle_places", kind, triangle_places)
    register_kernel("spread_along", kind, spread_along)
    register_kernel("with_lengths", kind, with_lengths)


def register_standard(device: Any) -> None:
    """Register them for a device of the array API standard."""
    register(device.xp, device.kind)
