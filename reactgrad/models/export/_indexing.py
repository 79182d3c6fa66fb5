"""Parts of arrays by index, and the sums of contributions to parts that are their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad.models.export._layout import reshaped
from reactgrad.models.export._node import Node, writes

Shape = Sequence[Any]
END = np.iinfo("i8").max
START = np.iinfo("i8").min
WHOLE = slice(None)


@writes("getitem", "gather")
def _part(n: Node) -> str:
    index = n.attrs[0]
    numbers = [(n[i], n.spec_of(i)) for i in range(1, len(n))]
    if index.along is not None:
        return _along(n, index.along)
    return part_of(n, n[0], index.parts, n.shape_of(0), numbers)


def part_of(n: Node, name: str, parts: Sequence[Any], shape: Shape, numbers: Sequence[Any]) -> str:
    """Return the part of a value at an index, given the names and specs of operands in it."""
    one = _Place(n, parts, shape, numbers)
    if one.added:
        name = n.emit("Unsqueeze", name, n.ints(one.added))
    name = one.sliced(name)
    if not one.arrays:
        return n.emit("Squeeze", name, n.ints(one.single)) if one.single else name
    if len(one.arrays) == 1:
        (axis,) = one.arrays
        return n.emit("Gather", name, one.index(axis), axis=axis)
    name = one.in_front(name)
    name = n.emit("Gather", reshaped(n, name, [one.points, *one.rest]), one.joined(), axis=0)
    return one.back(name)


class _Place:
    """An index of a value, taken apart: axes that are added, sliced, and chosen by numbers."""

    def __init__(self, n: Node, parts: Sequence[Any], shape: Shape, numbers: Sequence[Any]) -> None:
        self.n = n
        full: list[Any] = []
        for part in parts:
            if isinstance(part, np.ndarray) and part.dtype.kind == "b":
                full += part.nonzero() or (part.nonzero(),)
            else:
                full.append(part)
        used = sum(p is not None and p is not Ellipsis for p in full)
        rest = [WHOLE] * (len(shape) - used)
        at = next((i for i, p in enumerate(full) if p is Ellipsis), len(full))
        full = [*full[:at], *rest, *full[at + 1 :]]
        self.added = [i for i, p in enumerate(full) if p is None]
        self.parts: list[Any] = [WHOLE if p is None else p for p in full]
        lengths = iter(shape)
        self.shape = [1 if p is None else next(lengths) for p in full]
        self.numbers = numbers
        single = [i for i, p in enumerate(self.parts) if isinstance(p, int)]
        arrays = [i for i, p in enumerate(self.parts) if not isinstance(p, int | slice)]
        self.single = [] if arrays else single
        self.arrays = sorted(arrays + single) if arrays else []
        self.others = [i for i in range(len(self.parts)) if i not in self.arrays]
        self.rest = [self._length(i) for i in self.others]
        self.points = math.prod(self.shape[i] for i in self.arrays)
        self.order = [*self.arrays, *self.others]

    def _length(self, axis: int) -> int:
        part = self.parts[axis]
        return len(range(*part.indices(self.shape[axis]))) if isinstance(part, slice) else 1

    def index(self, axis: int) -> str:
        """Return the numbers that choose from an axis."""
        part, n = self.parts[axis], self.n
        if isinstance(part, int):
            return n.const(part, "i8")
        if isinstance(part, np.ndarray):
            return n.const(part.astype("i8"))
        name, spec = self.numbers[part.number - 1]
        if spec.dtype.kind == "b":
            return n.refuse("with a mask that is computed")
        name = n.cast(name, "i8")
        length = n.const(self.shape[axis], "i8")
        if part.mode == "wrap":
            return n.emit("Mod", name, length)
        if part.mode == "clip":
            name = n.emit("Max", name, n.const(0, "i8"))
            return n.emit("Min", name, n.const(self.shape[axis] - 1, "i8"))
        return name

    def joined(self) -> str:
        """Return the numbers that choose from all these axes, taken together as one."""
        n, found = self.n, ""
        for axis in self.arrays:
            numbers, length = self.index(axis), n.const(self.shape[axis], "i8")
            below = n.emit("Less", numbers, n.const(0, "i8"), out=bool)
            numbers = n.emit("Where", below, n.emit("Add", numbers, length), numbers, of=1)
            found = n.emit("Add", n.emit("Mul", found, length), numbers) if found else numbers
        return found

    def chosen(self) -> tuple[int, ...]:
        """Return the shape of the numbers."""
        shapes = [()]
        for axis in self.arrays:
            part = self.parts[axis]
            if isinstance(part, np.ndarray):
                shapes.append(part.shape)
            elif not isinstance(part, int):
                shapes.append(self.numbers[part.number - 1][1].shape)
        return np.broadcast_shapes(*shapes)

    def sliced(self, name: str) -> str:
        """Return a value with its slices taken, and elements at integers with an axis of length 1."""
        rows: list[tuple[int, int, int, int]] = []
        for axis, part in enumerate(self.parts):
            if isinstance(part, int):
                if axis in self.single:
                    rows.append((part, END if part == -1 else part + 1, axis, 1))
            elif isinstance(part, slice) and part != WHOLE:
                step = part.step or 1
                first, last = (0, END) if step > 0 else (END, START)
                rows.append(
                    (
                        first if part.start is None else part.start,
                        last if part.stop is None else part.stop,
                        axis,
                        step,
                    )
                )
        if not rows:
            return name
        return self.n.emit("Slice", name, *map(self.n.ints, zip(*rows, strict=True)))

    def in_front(self, name: str) -> str:
        """Return a value with the axes that numbers choose from in front."""
        ordered = self.order == sorted(self.order)
        return name if ordered else self.n.emit("Transpose", name, perm=self.order)

    def _final(self) -> list[int]:
        """Return the order of axes of the result, by those of numbers first, and then the others."""
        many = len(self.chosen())
        first = self.arrays[0]
        if self.arrays != list(range(first, first + len(self.arrays))):
            return list(range(many + len(self.others)))
        before = sum(i < first for i in self.others)
        ends = range(many, many + len(self.others))
        return [*ends[:before], *range(many), *ends[before:]]

    def back(self, name: str) -> str:
        """Return what was chosen with its axes in NumPy's order."""
        order = self._final()
        return name if order == sorted(order) else self.n.emit("Transpose", name, perm=order)

    # --- the reverse --------------------------------------------------------------------------

    def spread(self, name: str) -> str:
        """Return zeros of the shape of the value, with contributions added at the place."""
        n = self.n
        if self.single:
            name = n.emit("Unsqueeze", name, n.ints(self.single))
        if self.arrays:
            name = self._scattered(name)
        for axis, part in enumerate(self.parts):
            if axis not in self.arrays and part != WHOLE:
                name = self._padded(name, axis, part)
        return n.emit("Squeeze", name, n.ints(self.added)) if self.added else name

    def _scattered(self, name: str) -> str:
        n = self.n
        chosen, final = self.chosen(), self._final()
        if final != sorted(final):
            name = n.emit("Transpose", name, perm=list(np.argsort(final)))
        count, width = math.prod(chosen), math.prod(self.rest)
        dtype = n.draft.dtypes[name]
        numbers = n.emit("Expand", self.joined(), n.ints(chosen)) if chosen else self.joined()
        numbers = n.emit("Expand", reshaped(n, numbers, [count, 1]), n.ints([count, width]))
        zeros = n.emit("Expand", n.const(0, dtype), n.ints([self.points, width]))
        name = reshaped(n, name, [count, width])
        name = n.emit("ScatterElements", zeros, numbers, name, axis=0, reduction="add")
        name = reshaped(n, name, [*(self.shape[i] for i in self.arrays), *self.rest])
        back = np.argsort(self.order).tolist()
        return name if back == sorted(back) else n.emit("Transpose", name, perm=back)

    def _padded(self, name: str, axis: int, part: Any) -> str:
        n, length, ndim = self.n, self.shape[axis], len(self.parts)
        if isinstance(part, int):
            part = slice(part % length, part % length + 1)
        start, stop, step = part.indices(length)
        count = len(range(start, stop, step))
        if not count:
            return padded(n, name, ndim, axis, 0, length)
        if step < 0:
            rows = map(n.ints, ([END], [START], [axis], [-1]))
            name = n.emit("Slice", name, *rows)
            start, step = start + (count - 1) * step, -step
        if step > 1:
            name = n.emit("Unsqueeze", name, n.ints([axis + 1]))
            name = padded(n, name, ndim + 1, axis + 1, 0, step - 1)
            name = _merged(n, name, ndim + 1, axis)
            rows = map(n.ints, ([0], [-(step - 1)], [axis], [1]))
            name = n.emit("Slice", name, *rows)
        return padded(n, name, ndim, axis, start, length - start - (count - 1) * step - 1)


def _merged(n: Node, name: str, ndim: int, axis: int) -> str:
    """Return a value with an axis and the next one taken together."""
    whole = n.emit("Shape", name, out="i8")
    cut = [
        n.emit("Slice", whole, n.ints([a]), n.ints([b])) for a, b in ((0, axis), (axis + 2, ndim))
    ]
    return n.emit("Reshape", name, n.emit("Concat", cut[0], n.ints([-1]), cut[1], axis=0))


def padded(n: Node, name: str, ndim: int, axis: int, before: int, after: int) -> str:
    """Return a value with zeros in front and behind along an axis."""
    pads = [0] * (2 * ndim)
    pads[axis], pads[ndim + axis] = before, after
    return n.emit("Pad", name, n.ints(pads))


def _along(n: Node, slot: Any) -> str:
    """Return elements along an axis by numbers, each from the row in which it stands."""
    shape, wanted = n.shape_of(0), n.shape_of(1)
    axis = slot.axis % len(wanted)
    numbers, x = n.x(1, "i8"), n[0]
    if len(shape) > len(wanted):
        extra = list(range(len(wanted), len(shape)))
        numbers = n.emit("Unsqueeze", numbers, n.ints(extra))
        wanted = (*wanted, *[1] * len(extra))
    if not slot.short:
        rows = [
            m if i == axis else max(m, k)
            for i, (m, k) in enumerate(zip(wanted, shape, strict=True))
        ]
        if tuple(rows) != tuple(wanted):
            numbers = n.emit("Expand", numbers, n.ints(rows))
        rows[axis] = shape[axis]
        x = n.emit("Expand", x, n.ints(rows)) if tuple(rows) != tuple(shape) else x
    return n.emit("GatherElements", x, numbers, axis=axis)


@writes("accumulate")
def _accumulate(n: Node) -> str:
    shape, places = n.attrs
    shape = n.shape_of(0) if shape is None else shape
    start, total = len(places), ""
    for i, place in enumerate(places):
        part = n.x(i, n.dtype)
        if place is None:
            if n.shape_of(i) != tuple(shape):
                part = n.emit("Expand", part, n.ints(shape))
        else:
            numbers = [(n[k], n.spec_of(k)) for k in range(start, start + place.count)]
            start += place.count
            if place.along is not None:
                part = _along_back(n, part, place.along, shape, numbers[0])
            else:
                part = _Place(n, place.parts, shape, numbers).spread(part)
        total = n.emit("Add", total, part) if total else part
    return total


KINDS = {"set": "none", "add": "add", "multiply": "mul", "min": "min", "max": "max"}


@writes("put")
def _put(n: Node) -> str:
    index, kind = n.attrs[:2]
    if kind not in KINDS or index.along is not None:
        n.refuse(f"of the kind {kind}")
    shape, last = n.shape_of(0), len(n) - 1
    count = math.prod(shape)
    numbers = [(n[i], n.spec_of(i)) for i in range(1, last)]
    places = part_of(n, n.const(np.arange(count).reshape(shape)), index.parts, shape, numbers)
    value = n.x(last, n.dtype)
    if n.shape_of(last) != () or index.parts:
        value = n.emit("Expand", value, n.emit("Shape", places, out="i8"))
    flat = n.ints([-1])
    x, places, value = (n.emit("Reshape", one, flat) for one in (n.x(0, n.dtype), places, value))
    found = n.emit("ScatterElements", x, places, value, axis=0, reduction=KINDS[kind])
    return reshaped(n, found, shape)


def _along_back(n: Node, part: str, slot: Any, shape: Shape, numbers: Any) -> str:
    name, spec = numbers
    wanted = spec.shape
    axis = slot.axis % len(wanted)
    if len(wanted) != len(shape) or (
        not slot.short
        and any(m != k for i, (m, k) in enumerate(zip(wanted, shape, strict=True)) if i != axis)
    ):
        n.refuse("along an axis by numbers of another shape")
    zeros = n.emit("Expand", n.const(0, n.dtype), n.ints(shape))
    name = n.cast(name, "i8")
    return n.emit("ScatterElements", zeros, name, part, axis=axis, reduction="add")
