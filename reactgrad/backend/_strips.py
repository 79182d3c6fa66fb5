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
from typing import Any

import numpy as np

from reactgrad.backend._blocks import Block, Shape, blocks, part
from reactgrad.backend._registry import Binder
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


class Elementwise:
    """The step of an elementwise kernel.

    Attributes
    ----------
    shape
        Of the result; the operands broadcast to it.
    arrays
        The operands, some of which may be numbers, and the result.
    cost
        Of one element, beside that of an addition.
    """

    __slots__ = ("_attrs", "_bind", "_whole", "arrays", "cost", "shape")

    def __init__(
        self, bind: Binder, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...], cost: float
    ) -> None:
        self.arrays = (*inputs, out)
        self.shape: Shape = out.shape
        self.cost = cost
        self._bind = bind
        self._attrs = attrs
        self._whole: Callable[[], object] | None = None

    def __call__(self) -> None:
        if _threads((self,)) > 1:
            run((self,))
            return
        if self._whole is None:
            self._whole = self._bind(self.arrays[:-1], self.arrays[-1], self._attrs)
        self._whole()

    def begin(self, every: Sequence[Block]) -> None:
        """Make ready to compute these blocks."""

    def compute(self, parts: Sequence[Any], at: int, block: Block) -> None:
        """Compute one block from the parts of the arrays that belong to it."""
        self._bind(parts[:-1], parts[-1], self._attrs)()

    def finish(self, every: Sequence[Block]) -> None:
        """All blocks are computed."""


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

    __slots__ = ("_axes", "_kept", "_last", "_results", "_ufunc", "arrays", "cost", "shape")

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
        run((self,))

    def begin(self, every: Sequence[Block]) -> None:
        """Make ready to compute these blocks."""
        ends = every[0], every[-1]
        apart = all(ends[0][axis] == ends[1][axis] for axis in self._axes)
        self._results = None if apart else [None] * len(every)

    def compute(self, parts: Sequence[Any], at: int, block: Block) -> None:
        """Reduce one block."""
        place = self._place(block)
        if self._results is None:
            target = self._kept[place]
        else:
            target = np.empty([one.stop - one.start for one in place], self._kept.dtype)
            self._results[at] = target
        self._ufunc.reduce(parts[0], self._axes, None, target, keepdims=True)

    def finish(self, every: Sequence[Block]) -> None:
        """Join what the blocks gave, in their order."""
        if self._results is not None:
            found: dict[tuple[int, ...], tuple[Block, list[Any]]] = {}
            for block, result in zip(every, self._results, strict=True):
                place = self._place(block)
                start = tuple([one.start for one in place])
                found.setdefault(start, (place, []))[1].append(result)
            for place, results in found.values():
                together = np.stack(results)
                self._ufunc.reduce(together, 0, None, self._kept[place])
            self._results = None
        if self._last is not None:
            self._last()

    def _place(self, block: Block) -> Block:
        """Where in the result a block goes."""
        return tuple([slice(0, 1) if i in self._axes else one for i, one in enumerate(block)])


Blockwise = Elementwise | Reduction


def run(steps: Sequence[Blockwise], stopped: Callable[[], bool] | None = None) -> bool:
    """Compute steps of one shape together; whether all of them were.

    Parameters
    ----------
    steps
        In an order in which they can be computed.
    stopped
        Asked before each block. Once it says yes, only the first step is computed to its end.
    """
    shape = steps[0].shape
    every = blocks(shape, settings.block)
    arrays = {id(one): one for step in steps for one in step.arrays}
    operands = [[id(one) for one in step.arrays] for step in steps]
    cut = [
        (key, one, one.shape == shape)
        for key, one in arrays.items()
        if isinstance(one, np.ndarray) and (one.size > 1 or one.shape == shape)
    ]
    together = True

    def compute(at: int) -> None:
        nonlocal together
        if stopped is not None and stopped():
            together = False
        block = every[at]
        parts = arrays.copy()
        for key, one, full in cut:
            parts[key] = one[block] if full else part(one, block)
        for step, keys in zip(steps if together else steps[:1], operands, strict=False):
            step.compute([parts[key] for key in keys], at, block)

    for step in steps:
        step.begin(every)
    for_each(compute, range(len(every)), _threads(steps))
    for step in steps if together else steps[:1]:
        step.finish(every)
    return together


def _threads(steps: Sequence[Blockwise]) -> int:
    """How many threads these steps are worth."""
    count = get_num_threads()
    if count == 1:
        return 1
    effort = sum([step.cost * step.arrays[-1].size for step in steps])
    return count if effort >= settings.effort else 1


class Strip:
    """Steps of a plan that are computed together where the first of them stands.

    The others then find their work done. If one of them raises, which can be seen only in some
    block, each is computed where it stands, and it raises there.
    """

    __slots__ = ("_done", "_steps", "_stopped")

    def __init__(self, steps: Sequence[Blockwise], stopped: Callable[[], bool]) -> None:
        self._steps = steps
        self._stopped = stopped
        self._done = False

    def first(self) -> None:
        """Compute all of them, or the first."""
        self._done = False
        try:
            self._done = run(self._steps, self._stopped)
            return
        except Exception:  # said again where it belongs
            pass
        self._steps[0]()

    def next(self, i: int) -> None:
        """Compute one of the others, if that is still to be done."""
        if not self._done:
            self._steps[i]()
