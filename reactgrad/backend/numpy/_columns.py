"""Slices of an array, laid out so that matrix products convolve it.

All axes behind the first two are space. A product for each place of the kernel along the first axis of space
takes a matrix whose rows are the channels and the other places of the kernel, and whose columns are the
places of the result. The rows of space that such a matrix shows lie one after the other in memory, so that
the matrices of all places along that axis are views of one array, shifted against each other: an array is
copied as often as the kernel has places along the other axes only. With a step of more than one there is
an array for each remainder of the row's number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

Pairs = tuple[tuple[int, int], ...]

# So many bytes of slices at a time: more do not stay in the second cache.
MOST_BYTES: Final = 1 << 19


class Window(NamedTuple):
    """A kernel's lengths and steps along each axis of space.

    Attributes
    ----------
    kernel
        Its number of places.
    stride
        The step from one result to the next.
    pads
        The zeros before and behind; a negative number leaves elements out.
    dilation
        The step from one place of the kernel to the next.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: Pairs
    dilation: tuple[int, ...]


def within(start: int, step: int, length: int, count: int) -> tuple[int, int]:
    """Return the first of `count` places ``start + step * i`` inside of an axis, and the end of those."""
    first = max(0, -(start // step))
    end = min(count, (length - 1 - start) // step + 1)
    return first, max(first, end)


def steps(start: int, step: int, length: int, count: int) -> tuple[slice, slice]:
    """Return the results and the elements for the places ``start + step * i`` inside of an axis."""
    first, end = within(start, step, length, count)
    at = start + step * first
    return slice(first, end), slice(at, at + step * (end - first), step) if end > first else slice(
        0, 0
    )


class Columns:
    """The slices of some images at a time, beside so many elements of each image's results.

    Attributes
    ----------
    each
        How many images at a time.
    """

    def __init__(
        self,
        xp: Any,
        x: Any,
        window: Window,
        lengths: tuple[int, ...],
        groups: int,
        dtype: Any,
        beside: int,
    ) -> None:
        self.xp, self.x, self.groups = xp, x, groups
        self.lengths = lengths
        kernel, stride, pads, dilation = window
        images, channels = x.shape[:2]
        inner = lengths[1:]
        places = list(product(*map(range, kernel[1:])))
        rows: dict[int, int] = {}
        self.shifts: list[tuple[int, int]] = []
        for k in range(kernel[0]):
            shift, rest = divmod(k * dilation[0], stride[0])
            self.shifts.append((rest, shift * prod(inner)))
            rows[rest] = max(rows.get(rest, 0), shift + lengths[0])
        size = channels * len(places) * prod(inner) * sum(rows.values()) * dtype.itemsize
        fit = min(MOST_BYTES // max(size, 1), 4 * MOST_BYTES // (beside * dtype.itemsize))
        self.each = max(1, min(images, fit))
        self.rows = channels // groups * len(places)
        # Slices without padding or steps are the array itself.
        self.own = (
            prod(kernel) == 1 == prod(stride)
            and not any(map(any, pads))
            and x.dtype == dtype
            and x.flags.c_contiguous
        )
        self.parts: dict[int, Any] = {}
        self.copies: list[tuple[int, Any, Any]] = []
        if self.own:
            return
        for rest, count in rows.items():
            part = xp.zeros((self.each, channels, len(places), count, *inner), dtype)
            self.parts[rest] = part
            into, of = steps(rest - pads[0][0], stride[0], x.shape[2], count)
            for i, place in enumerate(places):
                sides = [
                    steps(k * dilation[a] - pads[a][0], stride[a], x.shape[2 + a], lengths[a])
                    for a, k in enumerate(place, 1)
                ]
                target = (slice(None), i, into, *[one[0] for one in sides])
                source = (slice(None), of, *[one[1] for one in sides])
                self.copies.append((rest, target, source))

    def fill(self, first: int, count: int) -> list[Callable[[], object]]:
        """Return the calls that fill the slices of `count` images."""
        xp, images = self.xp, self.x[first : first + count]
        return [
            partial(
                xp.copyto,
                self.parts[rest][(slice(count), *target)],
                images[(slice(None), *source)],
                "same_kind",
            )
            for rest, target, source in self.copies
        ]

    def matrices(self, first: int, count: int) -> list[Any]:
        """Return the matrix of each image and group, (count, groups, rows, results), for each place."""
        results = prod(self.lengths)
        if self.own:
            return [self.x[first : first + count].reshape(count, self.groups, self.rows, results)]
        return [
            self.parts[rest][:count].reshape(count, self.groups, self.rows, -1)[
                ..., shift : shift + results
            ]
            for rest, shift in self.shifts
        ]


def with_rows(x: Any, axes: int = 2) -> Any:
    """Return an array with one axis of space with a second one before it, of length 1."""
    return x.reshape(*x.shape[:axes], 1, *x.shape[axes:]) if x.ndim == axes + 1 else x


def window_of(kernel: Sequence[int], stride: Any, pads: Any, dilation: Any) -> Window:
    """Return the window over two axes of space or more."""
    if len(kernel) > 1:
        return Window(tuple(kernel), stride, pads, dilation)
    return Window((1, *kernel), (1, *stride), ((0, 0), *pads), (1, *dilation))
