"""Strips: runs of steps on large arrays that are computed together, block by block.

A pass of one kernel over a large array reads and writes memory. What one kernel has written of a
block is still in the cache when the next one reads it, and different blocks are computed by different
threads. Steps that can be computed by blocks are ``Elementwise`` and ``Reduction``; each is a step of
its own, too, and gives the same bits alone and in a strip (rule E18): an element depends on the
operands' elements alone, and a reduction always has the same blocks, whose results are joined in
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from reactgrad.backend._registry import Kernel
from reactgrad.backend.blocks._blocks import Block, Shape, blocks, cut, part
from reactgrad.backend.blocks._threads import for_each, get_num_threads


class Settings:
    """When arrays are computed by blocks.

    Attributes
    ----------
    block
        Most elements of a block: what a few steps use of it fits a second-level cache.
    threshold
        So many elements make an array large.
    effort
        Work that is worth waking a second thread, in elements times the cost of their kernels.
    """

    __slots__ = ("block", "effort", "threshold")

    def __init__(
        self, block: int = 32768, threshold: int = 65536, effort: float = 1048576.0
    ) -> None:
        self.block = block
        self.threshold = threshold
        self.effort = effort


settings = Settings()


def is_large(value: Any) -> bool:
    """Whether this is an array that is computed by blocks where its kernel can be."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.size >= settings.threshold


@contextmanager
def configured(
    *, block: int | None = None, threshold: int | None = None, effort: float | None = None
) -> Iterator[None]:
    """Other settings for graphs that live inside. For tests: the bits of sums depend on them."""
    global settings
    former = settings
    settings = Settings(
        former.block if block is None else block,
        former.threshold if threshold is None else threshold,
        former.effort if effort is None else effort,
    )
    try:
        yield
    finally:
        settings = former


# Blocks of a kernel that is alone need not fit a cache.
LARGER = 8


class Blockwise:
    """A step that can be computed by blocks.

    Attributes
    ----------
    arrays
        Those that it uses; of a reduction only its operand.
    shape
        Of all blocks together.
    cost
        Of one element, beside that of an addition.
    """

    __slots__ = ("arrays", "cost", "shape")

    arrays: tuple[Any, ...]
    shape: Shape
    cost: float

    def __call__(self) -> None:
        """Compute all of it."""
        raise NotImplementedError


class Elementwise(Blockwise):
    """The step of an elementwise kernel.

    Attributes
    ----------
    kernel
        Takes the operands and what the result is written into: whole arrays, or parts of them.
    arrays
        These: operands that broadcast to the result, some of which may be numbers, and the result.
    shape
        Of the result.
    cost
        Of one element, beside that of an addition.
    one_pass
        Whether the kernel reads and writes each element once: then small blocks do nothing for it
        alone.
    """

    __slots__ = ("_pass", "kernel", "one_pass")

    def __init__(
        self, kernel: Kernel, arrays: Sequence[Any], cost: float, *, one_pass: bool = True
    ) -> None:
        self.kernel = kernel
        self.one_pass = one_pass
        self.arrays = tuple(arrays)
        self.shape = arrays[-1].shape
        self.cost = cost
        self._pass: _Pass | None = None

    def __call__(self) -> None:
        threads = _threads(_effort((self,)))
        if self.one_pass and threads == 1:
            self.kernel(*self.arrays)
            return
        if self._pass is None:
            self._pass = _Pass((self,))
        size = settings.block
        if self.one_pass:  # some for each thread
            size = max(size, min(size * LARGER, prod(self.shape) // (2 * threads)))
        self._pass.run(size, threads)


class Reduction(Blockwise):
    """The step of a reduction of a large array.

    Each block is reduced by itself, along those axes that it has more than an element of, and then
    what the blocks gave, in their order. Blocks that lie side by side are reduced in one call, of their
    array with one more axis: NumPy goes through each of them as if it was alone.

    Parameters
    ----------
    ufunc
        By which elements are joined.
    x
        The operand.
    kept
        The result, with the reduced axes in it at length 1.
    axes
        Those, not negative.
    last
        Called when the result is there.
    """

    __slots__ = (
        "_across",
        "_axes",
        "_cut",
        "_each",
        "_inside",
        "_kept",
        "_last",
        "_parts",
        "_parts_shape",
        "_side_by_side",
        "_ufunc",
    )

    def __init__(
        self,
        ufunc: np.ufunc,
        x: Any,
        kept: Any,
        axes: Sequence[int],
        last: Callable[[], object] | None = None,
    ) -> None:
        self.arrays = (x,)
        shape = self.shape = x.shape
        self.cost = 0.5  # it writes next to nothing
        self._ufunc = ufunc
        self._kept = kept
        self._last = last
        self._cut, self._each = cut(shape, settings.block)
        self._inside = tuple([axis for axis in axes if axis >= self._cut])
        self._across = tuple([axis for axis in axes if axis <= self._cut])
        self._axes = tuple([axis - self._cut + 2 for axis in self._inside])  # of ``_rows``
        self._parts: Any = None  # what the blocks give
        self._parts_shape = [1 if i in self._inside else n for i, n in enumerate(shape)]
        if self._cut in self._inside:
            self._parts_shape[self._cut] = -(-shape[self._cut] // self._each)
        # Of an operand that is converted on the way NumPy adds up as much as it converts at a time.
        plain = x.dtype == kept.dtype or kept.dtype.kind in "biu"
        self._side_by_side = plain and x.flags.c_contiguous

    def __call__(self) -> None:
        threads = _threads(_effort((self,)))
        if not self._side_by_side:
            _Pass((self,)).run(settings.block, threads)
            return
        self.begin()
        if self._inside:
            for_each(self._reduce_rows, self._rows(threads), threads)
        self.finish()

    def begin(self) -> None:
        """Make ready to reduce blocks."""
        if not self._inside:
            self._parts = self.arrays[0]
        elif not self._across:
            self._parts = self._kept
        else:
            self._parts = np.empty(self._parts_shape, self._kept.dtype)

    def reduce(self, x: Any, block: Block) -> None:
        """Reduce one block."""
        if self._inside:
            at = [slice(0, 1) if i in self._inside else one for i, one in enumerate(block)]
            if self._cut in self._inside:
                number = block[self._cut].start // self._each
                at[self._cut] = slice(number, number + 1)
            self._ufunc.reduce(x, self._inside, None, self._parts[tuple(at)], keepdims=True)

    def finish(self) -> None:
        """Join what the blocks gave, in their order."""
        if self._across or not self._inside:
            self._ufunc.reduce(self._parts, self._across, None, self._kept, keepdims=True)
        self._parts = None
        if self._last is not None:
            self._last()

    def _rows(self, threads: int) -> list[tuple[Any, Any]]:
        """The blocks, side by side along two axes more, each with its place; in some parts for threads."""
        x, parts, cut, each = self.arrays[0], self._parts, self._cut, self._each
        outer, length, inner = prod(x.shape[:cut]), x.shape[cut], x.shape[cut + 1 :]
        rest, kept = length % each, parts.shape[cut + 1 :]
        joined = cut in self._inside
        if not rest:  # which costs as little as it can
            target = parts.reshape(outer, -1, 1 if joined else each, *kept)
            rows = [(x.reshape(outer, -1, each, *inner), target)]
        else:
            x, parts = x.reshape(outer, length, *inner), parts.reshape(outer, -1, *kept)
            rows = []
            for begin, end, size in ((0, length - rest, each), (length - rest, length, rest)):
                source = x[:, begin:end].reshape(outer, -1, size, *inner)
                if joined:
                    target = parts[:, begin // each : -(-end // each), None]
                else:
                    target = parts[:, begin:end].reshape(outer, -1, size, *kept)
                rows.append((source, target))
        return rows if threads == 1 else [part for row in rows for part in _shared(*row)]

    def _reduce_rows(self, row: tuple[Any, Any]) -> None:
        source, target = row
        self._ufunc.reduce(source, self._axes, None, target, keepdims=True)


def _shared(source: Any, target: Any) -> Iterator[tuple[Any, Any]]:
    """These two in parts along the longer one of their first two axes."""
    axis = 0 if source.shape[0] > source.shape[1] else 1
    length = source.shape[axis]
    count = min(length, -(-source.size // (settings.block * LARGER)))
    for i in range(count):
        part = (slice(None),) * axis + (slice(length * i // count, length * (i + 1) // count),)
        yield source[part], target[part]


class _Pass:
    """One pass over arrays of one shape: of each block what several steps compute.

    It knows kernels and arrays, and of the steps only reductions, so that a step may keep it.
    """

    __slots__ = (
        "_arrays",
        "_cut",
        "_kernel_first",
        "_kernels",
        "_reductions",
        "_shape",
    )

    def __init__(self, steps: Sequence[Blockwise]) -> None:
        shape = self._shape = steps[0].shape
        arrays = {id(one): one for step in steps for one in step.arrays}
        place = {key: i for i, key in enumerate(arrays)}
        self._arrays = list(arrays.values())
        # Arrays of which a block has a part; whether they have the shape of all.
        self._cut = [
            (i, one, one.shape == shape)
            for i, one in enumerate(self._arrays)
            if isinstance(one, np.ndarray) and (one.size > 1 or one.shape == shape)
        ]
        self._kernels = [
            (step.kernel, itemgetter(*[place[id(one)] for one in step.arrays]))
            for step in steps
            if type(step) is Elementwise
        ]
        self._kernel_first = type(steps[0]) is Elementwise
        self._reductions = [
            (step, place[id(step.arrays[0])]) for step in steps if type(step) is Reduction
        ]

    def run(self, size: int, threads: int, stopped: Callable[[], bool] | None = None) -> bool:
        """Compute it, by blocks of this size; whether that was done for all steps.

        `stopped` is asked before each block. Once it says yes, only the first step is computed to its
        end.
        """
        kernels, reductions = self._kernels, self._reductions

        def compute(block: Block) -> None:
            nonlocal kernels, reductions
            if stopped is not None and stopped():
                first = self._kernel_first
                kernels, reductions = (kernels[:1], []) if first else ([], reductions[:1])
            parts = self._arrays.copy()
            for i, one, full in self._cut:
                parts[i] = one[block] if full else part(one, block)
            for kernel, take in kernels:
                kernel(*take(parts))
            for step, i in reductions:
                step.reduce(parts[i], block)

        for step, _ in reductions:
            step.begin()
        # Those of a reduction stay the same whatever the threads: its bits depend on them.
        for_each(compute, blocks(self._shape, size, 1 if reductions else threads), threads)
        for step, _ in reductions:
            step.finish()
        return kernels is self._kernels


class Strip:
    """Steps of one shape that are computed together.

    In a plan that is done in the turn of the first of them, and the others then find their work done.
    Where all of it is not worth a second thread, the arrays stay in the cache from one step to the next,
    and each step is computed in its turn: that takes fewer calls. If one of them raises, which shows only
    in some block, each is computed where it stands, and it raises there.

    Parameters
    ----------
    steps
        In an order in which they can be computed; none reads what a reduction among them gives.
    stopped
        Asked before each block. Once it says yes, only the first step is computed to its end.
    """

    __slots__ = ("_done", "_effort", "_pass", "_stopped", "steps")

    def __init__(
        self, steps: Sequence[Blockwise], stopped: Callable[[], bool] | None = None
    ) -> None:
        self.steps = list(steps)
        self._effort = _effort(steps)
        self._stopped = stopped
        self._done = False
        self._pass: _Pass | None = None  # of these steps; others may take their places

    def first(self) -> None:
        """Compute all of them, or the first."""
        self._done = False
        if self._effort < settings.effort:
            self.steps[0]()
            return
        try:
            if self._pass is None:
                self._pass = _Pass(self.steps)
            self._done = self._pass.run(settings.block, _threads(self._effort), self._stopped)
            return
        except Exception:  # said again where it belongs
            pass
        self.steps[0]()

    def next(self, i: int) -> None:
        """Compute one of the others, if that is still to be done."""
        if not self._done:
            self.steps[i]()

    def replace(self, i: int, step: Blockwise) -> None:
        """Let another step of the same kind and shape take a place."""
        self.steps[i] = step
        self._effort = _effort(self.steps)
        self._pass = None


class Turn:
    """The turn of one step of a strip."""

    __slots__ = ("_place", "strip")

    def __init__(self, strip: Strip, place: int) -> None:
        self.strip = strip
        self._place = place

    def __call__(self) -> None:
        if self._place:
            self.strip.next(self._place)
        else:
            self.strip.first()

    def becomes(self, step: Callable[[], object]) -> bool:
        """Let another step take this turn, if it is of the same kind and shape; whether it is."""
        former = self.strip.steps[self._place]
        if not isinstance(step, Elementwise | Reduction) or type(step) is not type(former):
            return False
        if step.shape != former.shape:
            return False
        self.strip.replace(self._place, step)
        return True


def _effort(steps: Sequence[Blockwise]) -> float:
    """How much work these steps are, in elements times the cost of their kernels."""
    return sum([step.cost * step.arrays[-1].size for step in steps])


def _threads(effort: float) -> int:
    """How many threads so much work is worth."""
    return get_num_threads() if effort >= settings.effort else 1
