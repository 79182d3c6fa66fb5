"""Strips: runs of steps on large arrays that are computed together, block by block.

A pass of one kernel over a large array reads and writes memory. In a strip, the part of an array that
one kernel has written is still in the cache when the next kernel reads it, and different threads
compute different blocks. ``Elementwise`` and ``Reduction`` steps can be computed by blocks. Such a step
gives the same bits alone and in a strip (rule E18): an element depends only on elements of the
operands, and a reduction always has the same blocks, whose results are joined in their order.
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
from reactgrad.backend.numpy._sums import sum_into


class Settings:
    """The sizes from which on arrays are computed by blocks, and on several threads.

    Attributes
    ----------
    block
        The largest number of elements of a block. The blocks that a few steps use fit a second-level
        cache together.
    threshold
        The number of elements from which on an array is large.
    effort
        The work from which on it pays to wake a second thread: elements times the cost of their
        kernels.
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
    """Return whether `value` is an array large enough to be computed by blocks."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.size >= settings.threshold


@contextmanager
def configured(
    *, block: int | None = None, threshold: int | None = None, effort: float | None = None
) -> Iterator[None]:
    """Use other settings inside a block, for tests.

    A graph has to live inside the block as a whole, since the bits of sums depend on the settings.
    """
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


# The blocks of a single kernel need not fit a cache: they may be so many times larger.
LARGER = 8


class Blockwise:
    """A step that can be computed by blocks.

    Attributes
    ----------
    arrays
        The arrays that it uses; for a reduction only its operand.
    shape
        The shape of all blocks together.
    cost
        The cost of one element, in additions.
    """

    __slots__ = ("arrays", "cost", "shape")

    arrays: tuple[Any, ...]
    shape: Shape
    cost: float

    def __call__(self) -> None:
        """Compute the whole step."""
        raise NotImplementedError


class Elementwise(Blockwise):
    """The step of an elementwise kernel.

    Attributes
    ----------
    kernel
        The call that computes the result from the operands: ``kernel(*operands, result)``, for whole
        arrays or for parts of them.
    arrays
        The operands, which broadcast to the result and some of which may be numbers; then the result.
    shape
        The shape of the result.
    cost
        The cost of one element, in additions.
    one_pass
        True if the kernel reads and writes each element once. Then small blocks are of no use to the
        step alone.
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
        if self.one_pass:  # larger blocks, but at least two for each thread
            size = max(size, min(size * LARGER, prod(self.shape) // (2 * threads)))
        self._pass.run(size, threads)


class Reduction(Blockwise):
    """The step of a reduction of a large array.

    Each block is reduced by itself, along the reduced axes of which it has more than one element; then
    the results of the blocks are reduced, in their order. Blocks that lie side by side are reduced in
    one call, on their array with one more axis: NumPy computes each of them as if it were alone.

    Parameters
    ----------
    ufunc
        The ufunc that joins elements, such as ``np.add``.
    x
        The operand.
    kept
        The result, in which the reduced axes have length 1.
    axes
        The reduced axes, not negative.
    last
        A call to make when the result is complete.
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
        "_whole",
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
        self.cost = 0.5  # it writes few elements
        self._ufunc = ufunc
        self._kept = kept
        self._last = last
        self._cut, self._each = cut(shape, settings.block)
        # Axes to reduce within a block, and to reduce over the results of blocks; the cut axis is both.
        self._inside = tuple([axis for axis in axes if axis >= self._cut])
        self._across = tuple([axis for axis in axes if axis <= self._cut])
        self._axes = tuple([axis - self._cut + 2 for axis in self._inside])  # in ``_rows``
        self._parts: Any = None  # the results of the blocks
        self._whole = False  # True if these are the results for the present elements of the operand
        self._parts_shape = [1 if i in self._inside else n for i, n in enumerate(shape)]
        if self._cut in self._inside:
            self._parts_shape[self._cut] = -(-shape[self._cut] // self._each)
        # NumPy converts an operand of another dtype in pieces, and adds up each piece by itself: then
        # the bits would depend on the blocks of the call.
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
        """Prepare the array into which the blocks are reduced."""
        self._whole = False
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
            self._join(x, self._inside, self._parts[tuple(at)])

    def finish(self) -> None:
        """Join the results of the blocks, in their order."""
        if self._across or not self._inside:
            self._join(self._parts, self._across, self._kept)
        if self._last is not None:
            self._last()
        self._whole = True

    def forget(self) -> None:
        """Note that the operand has other elements now: the next call reduces all blocks."""
        self._whole = False

    def update(self, rows: Sequence[tuple[int, int]]) -> None:
        """Reduce the blocks that these rows of the operand belong to, and join the results of all blocks.

        The other blocks are as the last call found them.
        """
        if not (self._whole and self._cut == 0 and self._inside[:1] == (0,)):
            self()
            return
        self._whole = False
        x, parts, each = self.arrays[0], self._parts, self._each
        numbers = {n for begin, end in rows for n in range(begin // each, -(-end // each))}
        for n in sorted(numbers):
            self._join(x[n * each : (n + 1) * each], self._inside, parts[n : n + 1])
        self._join(parts, self._across, self._kept)
        if self._last is not None:
            self._last()
        self._whole = True

    def _rows(self, threads: int) -> list[tuple[Any, Any]]:
        """Return pairs of an operand part and its target, each with two more axes of blocks.

        There is one pair for all full blocks and one for the shorter last ones; for several threads
        each is cut into more pairs.
        """
        x, parts, cut, each = self.arrays[0], self._parts, self._cut, self._each
        outer, length, inner = prod(x.shape[:cut]), x.shape[cut], x.shape[cut + 1 :]
        rest, kept = length % each, parts.shape[cut + 1 :]
        joined = cut in self._inside
        if not rest:  # the usual case, kept short
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
        self._join(source, self._axes, target)

    def _join(self, x: Any, axes: tuple[int, ...], out: Any) -> None:
        if self._ufunc is np.add:
            sum_into(x, axes, out)
        else:
            self._ufunc.reduce(x, axes, None, out, keepdims=True)


def _shared(source: Any, target: Any) -> Iterator[tuple[Any, Any]]:
    """Yield these two in parts along the longer one of their first two axes."""
    axis = 0 if source.shape[0] > source.shape[1] else 1
    length = source.shape[axis]
    count = min(length, -(-source.size // (settings.block * LARGER)))
    for i in range(count):
        part = (slice(None),) * axis + (slice(length * i // count, length * (i + 1) // count),)
        yield source[part], target[part]


class _Pass:
    """One pass over arrays of one shape that computes several steps, block by block.

    An ``Elementwise`` step keeps its pass. So a pass refers to kernels and arrays, and not to these
    steps: there would be cycles of references, which keep large arrays alive.
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
        # The arrays that are cut, with their places, and whether they have the full shape.
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
        """Compute the steps by blocks of this size. Return whether all of them were computed.

        `stopped` is called before each block. Once it returns true, only the first step is completed.
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
        # The bits of a reduction depend on its blocks, so these must not depend on the threads.
        for_each(compute, blocks(self._shape, size, 1 if reductions else threads), threads)
        for step, _ in reductions:
            step.finish()
        return kernels is self._kernels


class Strip:
    """Steps of one shape that are computed together.

    A plan calls the ``Turn`` of each step. The first turn computes all steps, and the others find their
    work done. If the whole work is not worth a second thread, the arrays are small enough to stay in
    the cache from one step to the next, and each turn computes its own step, which takes fewer calls.
    If a step raises in some block, each step is computed again in its own turn, so that the right one
    raises.

    Parameters
    ----------
    steps
        The steps in an order in which they can be computed; none reads the result of a reduction among
        them.
    stopped
        Called before each block. Once it returns true, only the first step is completed.
    """

    __slots__ = ("_done", "_effort", "_pass", "_stopped", "steps")

    def __init__(
        self, steps: Sequence[Blockwise], stopped: Callable[[], bool] | None = None
    ) -> None:
        self.steps = list(steps)
        self._effort = _effort(steps)
        self._stopped = stopped
        self._done = False
        self._pass: _Pass | None = None  # for these steps; void when one is replaced

    def first(self) -> None:
        """Compute all steps together, or only the first one."""
        self._done = False
        if self._effort < settings.effort:
            self.steps[0]()
            return
        try:
            if self._pass is None:
                self._pass = _Pass(self.steps)
            self._done = self._pass.run(settings.block, _threads(self._effort), self._stopped)
            return
        except Exception:  # raised again in the turn of the step that it belongs to
            pass
        self.steps[0]()

    def next(self, i: int) -> None:
        """Compute step `i` unless the first turn has done so."""
        if not self._done:
            self.steps[i]()

    def replace(self, i: int, step: Blockwise) -> None:
        """Replace step `i` by another one of the same kind and shape."""
        self.steps[i] = step
        self._effort = _effort(self.steps)
        self._pass = None


class Turn:
    """One step of a strip, as a plan calls it."""

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
        """Let `step` take this turn if it has the same kind and shape. Return whether it has."""
        former = self.strip.steps[self._place]
        if not isinstance(step, Elementwise | Reduction) or type(step) is not type(former):
            return False
        if step.shape != former.shape:
            return False
        self.strip.replace(self._place, step)
        return True


def _effort(steps: Sequence[Blockwise]) -> float:
    """Return the work of these steps: elements times the cost of their kernels."""
    return sum([step.cost * step.arrays[-1].size for step in steps])


def _threads(effort: float) -> int:
    """Return the number of threads for so much work: all of them, or one if it is too little."""
    return get_num_threads() if effort >= settings.effort else 1
