"""Slices of an array, laid out so that matrix products convolve it.

All axes behind the first two are space. A product for each place of the kernel along the first axis of space
takes a matrix whose rows are the channels and the other places of the kernel, and whose columns are the
places of the result. The rows of space that such a matrix shows lie one after the other in memory, so that
the matrices of all places along that axis are views of one array, shifted against each other: an array is
copied as often as the kernel has places along the other axes only. With a step of more than one there is
an array for each remainder of the row's number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


class Block(NamedTuple):
    """Some images, and for one large image some lines of its result.

    Attributes
    ----------
    first, count
        The images.
    line, lines
        The places along the first axis of space.
    results
        How many results a channel of an image has there.
    """

    first: int
    count: int
    line: int
    lines: int
    results: int

    def of(self, x: Any) -> Any:
        """Return the part of results (N, C, ...)."""
        return x[self.first : self.first + self.count, :, self.line : self.line + self.lines]


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
    rows
        The number of rows of a matrix.
    lines
        How many places along the first axis of space at a time: not all, if one image is large.
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
        shifts = [divmod(k * dilation[0], stride[0]) for k in range(kernel[0])]
        self.shifts = [(rest, shift * prod(inner)) for shift, rest in shifts]
        longest: dict[int, int] = {}
        for shift, rest in shifts:
            longest[rest] = max(longest.get(rest, 0), shift)
        line = channels * len(places) * prod(inner) * dtype.itemsize
        size = line * (sum(longest.values()) + lengths[0] * len(longest))
        fit = min(MOST_BYTES // max(size, 1), 4 * MOST_BYTES // (beside * dtype.itemsize))
        self.each = max(1, min(images, fit))
        self.rows = channels // groups * len(places)
        self.lines = lengths[0]
        if size > 2 * MOST_BYTES:
            self.lines = -(-lengths[0] // min(lengths[0], -(-size // (2 * MOST_BYTES))))
        # Slices without padding or steps are the array itself.
        self.own = (
            prod(kernel) == 1 == prod(stride)
            and not any(map(any, pads))
            and x.dtype == dtype
            and x.flags.c_contiguous
        )
        self.window = window
        self.parts: dict[int, Any] = {}
        self.sides: list[tuple[int, Any, Any]] = []  # of the other axes of space
        if self.own:
            self.lines = lengths[0]
            return
        for rest, shift in longest.items():
            shape = (self.each, channels, len(places), shift + self.lines, *inner)
            self.parts[rest] = xp.zeros(shape, dtype)
        for i, place in enumerate(places):
            sides = [
                steps(k * dilation[a] - pads[a][0], stride[a], x.shape[2 + a], lengths[a])
                for a, k in enumerate(place, 1)
            ]
            self.sides.append((i, [one[0] for one in sides], [one[1] for one in sides]))

    def blocks(self) -> Iterator[Block]:
        """Yield what is computed at a time."""
        for first in range(0, self.x.shape[0], self.each):
            count = min(self.each, self.x.shape[0] - first)
            for line in range(0, self.lengths[0], self.lines):
                lines = min(self.lines, self.lengths[0] - line)
                yield Block(first, count, line, lines, lines * prod(self.lengths[1:]))

    def fill(self, block: Block) -> list[Callable[[], object]]:
        """Return the calls that fill the slices of some images."""
        xp, stride, before = self.xp, self.window.stride[0], self.window.pads[0][0]
        images = self.x[block.first : block.first + block.count]
        calls: list[Callable[[], object]] = []
        for rest, whole in self.parts.items():
            part, rows = whole[: block.count], whole.shape[3]
            start = rest + stride * block.line - before
            into, of = steps(start, stride, images.shape[2], rows)
            if self.lines < self.lengths[0]:  # rows of padding hold what was there before
                outside = part[:, :, :, : into.start], part[:, :, :, into.stop :]
                calls += [partial(empty.fill, 0) for empty in outside if empty.size]
            for i, targets, sources in self.sides:
                target = part[(slice(None), slice(None), i, into, *targets)]
                source = images[(slice(None), slice(None), of, *sources)]
                calls.append(partial(xp.copyto, target, source, "same_kind"))
        return calls

    def matrices(self, block: Block) -> list[Any]:
        """Return the matrix of each image and group, (count, groups, rows, results), for each place."""
        first, count, _, _, results = block
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
