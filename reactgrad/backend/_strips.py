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
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from reactgrad.backend._blocks import Block, Shape, blocks, part
from reactgrad.backend._registry import Kernel
from reactgrad.backend._threads import for_each, get_num_threads


@dataclass(frozen=True)
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

    block: int = 32768
    threshold: int = 65536
    effort: float = 262144


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
    given = {"block": block, "threshold": threshold, "effort": effort}
    settings = replace(settings, **{name: n for name, n in given.items() if n is not None})
    try:
        yield
    finally:
        settings = former


# Blocks of a kernel that is alone need not fit a cache; there are still enough for all threads.
LARGER = 8


class Elementwise:
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

    __slots__ = ("arrays", "cost", "kernel", "one_pass", "shape")

    def __init__(
        self, kernel: Kernel, arrays: Sequence[Any], cost: float, *, one_pass: bool = True
    ) -> None:
        self.kernel = kernel
        self.one_pass = one_pass
        self.arrays = tuple(arrays)
        self.shape: Shape = arrays[-1].shape
        self.cost = cost

    def __call__(self) -> None:
        if self.one_pass and _threads((self,)) == 1:
            self.kernel(*self.arrays)
            return
        # Not kept: each would hold the other one, and their arrays, until the collector comes by.
        Strip((self,)).run(settings.block * (LARGER if self.one_pass else 1))


class Reduction:
    """The step of a reduction of a large array.

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
        "_axes",
        "_kept",
        "_last",
        "_results",
        "_ufunc",
        "arrays",
        "cost",
        "shape",
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
        self.shape: Shape = x.shape
        self.cost = 1.0
        self._ufunc = ufunc
        self._kept = kept
        self._axes = tuple(axes)
        self._last = last
        self._results: list[Any] | None = None  # of blocks, where several reduce to one place

    def __call__(self) -> None:
        Strip((self,)).run(settings.block)

    def begin(self, every: Sequence[Block]) -> None:
        """Make ready to reduce these blocks."""
        ends = every[0], every[-1]
        apart = all(ends[0][axis] == ends[1][axis] for axis in self._axes)
        self._results = None if apart else [None] * len(every)

    def reduce(self, x: Any, at: int, block: Block) -> None:
        """Reduce one block."""
        place = self._place(block)
        if self._results is None:
            target = self._kept[place]
        else:
            target = np.empty([one.stop - one.start for one in place], self._kept.dtype)
            self._results[at] = target
        self._ufunc.reduce(x, self._axes, None, target, keepdims=True)

    def finish(self, every: Sequence[Block]) -> None:
        """Join what the blocks gave, in their order."""
        if self._results is not None:
            found: dict[tuple[int, ...], tuple[Block, list[Any]]] = {}
            for block, result in zip(every, self._results, strict=True):
                place = self._place(block)
                start = tuple([one.start for one in place])
                found.setdefault(start, (place, []))[1].append(result)
            for place, results in found.values():
                self._ufunc.reduce(np.stack(results), 0, None, self._kept[place])
            self._results = None
        if self._last is not None:
            self._last()

    def _place(self, block: Block) -> Block:
        """Where in the result a block goes."""
        return tuple([slice(0, 1) if i in self._axes else one for i, one in enumerate(block)])


Blockwise = Elementwise | Reduction


class Strip:
    """Steps of one shape that are computed together.

    In a plan that is done where the first of them stands (``first``), and the others then find their
    work done (``next``). If one of them raises, which shows only in some block, each is computed where
    it stands, and it raises there.

    Parameters
    ----------
    steps
        In an order in which they can be computed; none reads what a reduction among them gives.
    stopped
        Asked before each block. Once it says yes, only the first step is computed to its end.
    """

    __slots__ = ("_arrays", "_cut", "_done", "_kernels", "_reductions", "_steps", "_stopped")

    def __init__(
        self, steps: Sequence[Blockwise], stopped: Callable[[], bool] | None = None
    ) -> None:
        shape = steps[0].shape
        arrays = {id(one): one for step in steps for one in step.arrays}
        place = {key: i for i, key in enumerate(arrays)}
        self._steps = steps
        self._stopped = stopped
        self._done = False
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
        self._reductions = [
            (step, place[id(step.arrays[0])]) for step in steps if type(step) is Reduction
        ]

    def run(self, size: int) -> bool:
        """Compute them, by blocks of this size; whether all of them were."""
        every = blocks(self._steps[0].shape, size)
        kernels, reductions, stopped = self._kernels, self._reductions, self._stopped

        def compute(at: int) -> None:
            nonlocal kernels, reductions
            if stopped is not None and stopped():
                first = type(self._steps[0]) is Elementwise
                kernels, reductions = (kernels[:1], []) if first else ([], reductions[:1])
            block = every[at]
            parts = self._arrays.copy()
            for i, one, full in self._cut:
                parts[i] = one[block] if full else part(one, block)
            for kernel, take in kernels:
                kernel(*take(parts))
            for step, i in reductions:
                step.reduce(parts[i], at, block)

        for step, _ in reductions:
            step.begin(every)
        for_each(compute, range(len(every)), _threads(self._steps))
        for step, _ in reductions:
            step.finish(every)
        return len(kernels) + len(reductions) == len(self._steps)

    def first(self) -> None:
        """Compute all of them, or the first."""
        self._done = False
        try:
            self._done = self.run(settings.block)
            return
        except Exception:  # said again where it belongs
            pass
        self._steps[0]()

    def next(self, i: int) -> None:
        """Compute one of the others, if that is still to be done."""
        if not self._done:
            self._steps[i]()


def _threads(steps: Sequence[Blockwise]) -> int:
    """How many threads these steps are worth."""
    count = get_num_threads()
    if count == 1:
        return 1
    effort = sum([step.cost * step.arrays[-1].size for step in steps])
    return count if effort >= settings.effort else 1
