"""Kernels of NumPy that need whole rows: softmax, cross entropy, layer norm and their gradients.

A *row* is what lies along the axes that a kernel sums over. A *recipe* is given arrays of one shape,
and returns the calls that compute the last of them; what they need in between is scratch memory. Small
arrays are computed by the calls of one recipe, bound once; large ones by blocks of whole rows, each by a
recipe of its own, so that what is written in between is still in the cache when it is read, and gone
afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from reactgrad.backend import _strips
from reactgrad.backend._blocks import blocks
from reactgrad.backend._in_turn import InTurn
from reactgrad.backend._parts import numbers_check
from reactgrad.backend._registry import Binder, register_binder
from reactgrad.backend._threads import for_each, get_num_threads

Call = Callable[[], object]

# NumPy's stubs know these two with keywords only.
_add_reduce: Any = np.add.reduce
_max_reduce: Any = np.maximum.reduce


class _Rows:
    """Scratch memory and sums for rows of an array, in a dtype that is wide enough for sums."""

    __slots__ = ("_axes", "_dtype", "_kept", "_shape", "length")

    def __init__(self, shape: Sequence[int], axes: Sequence[int], dtype: Any) -> None:
        self._shape = shape
        self._axes = axes[0] if len(axes) == 1 else tuple(axes)
        self._kept = [1 if i in axes else n for i, n in enumerate(shape)]
        self.length = math.prod([shape[i] for i in axes])
        self._dtype = np.dtype(np.float32) if dtype.char == "e" else dtype

    def full(self) -> Any:
        """An array with a place for each element."""
        return np.empty(self._shape, self._dtype)

    def over(self, out: Any) -> Any:
        """The same: `out` itself, if it is wide enough."""
        return out if out.dtype == self._dtype else self.full()

    def kept(self) -> Any:
        """An array with a place for each row."""
        return np.empty(self._kept, self._dtype)

    def number(self, value: float) -> Any:
        """An operand that is the same for all rows."""
        return np.full([1] if self._kept else [], value, self._dtype)

    def times(self, a: Any, b: Any, out: Any) -> Call:
        """The product of two arrays, in the dtype of the rows."""
        if a.dtype == self._dtype:
            return partial(np.multiply, a, b, out)
        return partial(np.multiply, a, b, out, dtype=self._dtype)

    def sum(self, x: Any, out: Any) -> Call:
        return partial(_add_reduce, x, self._axes, None, out, True)

    def max(self, x: Any, out: Any) -> Call:
        return partial(_max_reduce, x, self._axes, None, out, True, -np.inf)


# --- softmax -------------------------------------------------------------------------------------


def exponentials(rows: _Rows, x: Any, e: Any, top: Any, total: Any) -> list[Call]:
    """Those of what a row's elements lie below the largest one, and their sum."""
    return [
        rows.max(x, top),
        partial(np.subtract, x, top, e),
        partial(np.exp, e, e),
        rows.sum(e, total),
    ]


def softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    e, top, total = rows.over(out), rows.kept(), rows.kept()
    return [*exponentials(rows, x, e, top, total), partial(np.divide, e, total, out)]


def softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    product, total = rows.full(), rows.kept()
    return [
        rows.times(g, ans, product),
        rows.sum(product, total),
        partial(np.subtract, g, total, product),
        partial(np.multiply, product, ans, out),
    ]


def log_softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    below, e, top, total, log = rows.over(out), rows.full(), rows.kept(), rows.kept(), rows.kept()
    return [
        rows.max(x, top),
        partial(np.subtract, x, top, below),
        partial(np.exp, below, e),
        rows.sum(e, total),
        partial(np.log, total, log),
        partial(np.subtract, below, log, out),
    ]


def log_softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    e, total = rows.full(), rows.kept()
    return [
        partial(np.exp, ans, e),
        rows.sum(g, total),
        partial(np.multiply, e, total, e),
        partial(np.subtract, g, e, out),
    ]


# --- layer norm ----------------------------------------------------------------------------------


def _deviations(rows: _Rows, x: Any, scratch: Any, apart: Any, std: Any, eps: float) -> list[Call]:
    """x - mean, and sqrt(variance + eps)."""
    total, mean, variance = rows.kept(), rows.kept(), rows.kept()
    each, little = rows.number(1.0 / max(rows.length, 1)), rows.number(eps)
    return [
        rows.sum(x, total),
        partial(np.multiply, total, each, mean),
        partial(np.subtract, x, mean, apart),
        partial(np.multiply, apart, apart, scratch),
        rows.sum(scratch, total),
        partial(np.multiply, total, each, variance),
        partial(np.add, variance, little, total),
        partial(np.sqrt, total, std),
    ]


def standardize(rows: _Rows, x: Any, out: Any, eps: float) -> list[Call]:
    scratch, apart, std = rows.full(), rows.full(), rows.kept()
    return [
        *_deviations(rows, x, scratch, apart, std, eps),
        partial(np.divide, apart, std, out),
    ]


def standardize_grad(rows: _Rows, g: Any, ans: Any, x: Any, out: Any, eps: float) -> list[Call]:
    a, b, std = rows.full(), rows.full(), rows.kept()
    total, by_mean, by_std = rows.kept(), rows.kept(), rows.kept()
    each = rows.number(1.0 / max(rows.length, 1))
    return [
        *_deviations(rows, x, a, b, std, eps),
        rows.times(g, ans, a),
        rows.sum(a, total),
        partial(np.multiply, total, each, by_std),
        rows.sum(g, total),
        partial(np.multiply, total, each, by_mean),
        partial(np.multiply, ans, by_std, a),
        partial(np.subtract, g, a, b),
        partial(np.subtract, b, by_mean, a),
        partial(np.divide, a, std, out),
    ]


# --- cross entropy -------------------------------------------------------------------------------


def cross_entropy(rows: _Rows, x: Any, labels: Any, out: Any, axis: int) -> list[Call]:
    e, top, total, log = rows.full(), rows.kept(), rows.kept(), rows.kept()
    key = _key(labels, axis)

    def cost() -> None:
        np.subtract(log, x[key] - top, out)

    return [*exponentials(rows, x, e, top, total), partial(np.log, total, log), cost]


def cross_entropy_grad(rows: _Rows, g: Any, x: Any, labels: Any, out: Any, axis: int) -> list[Call]:
    e, top, total, scale = rows.over(out), rows.kept(), rows.kept(), rows.kept()
    key = _key(labels, axis)

    def less() -> None:
        e[key] -= g
        if e is not out:
            out[...] = e

    return [
        *exponentials(rows, x, e, top, total),
        partial(np.divide, g, total, scale),
        partial(np.multiply, e, scale, e),
        less,
    ]


def _key(labels: Any, axis: int) -> tuple[Any, ...]:
    """The index of each row's element that has its label's number, with an axis of one for the row."""
    grid: list[Any] = list(np.indices(labels.shape, sparse=True))
    grid[axis] = labels
    return tuple(grid)


# --- binding -------------------------------------------------------------------------------------


class RowBlocks:
    """The step of a recipe on large arrays: blocks of whole rows, on several threads."""

    __slots__ = ("_arrays", "_axes", "_blocks", "_recipe", "_threads")

    def __init__(
        self,
        recipe: Callable[..., list[Call]],
        arrays: Sequence[Any],
        axes: Sequence[int],
        shape: Sequence[int],
    ) -> None:
        length = math.prod([shape[axis] for axis in axes])
        settings = _strips.settings
        self._recipe = recipe
        self._arrays = arrays
        self._axes = axes
        # Which rows go together depends on nothing but the shape.
        each = max(1, settings.block // max(1, length))
        self._blocks = [
            tuple([slice(None) if i in axes else one for i, one in enumerate(block)])
            for block in blocks(tuple([1 if i in axes else n for i, n in enumerate(shape)]), each)
        ]
        self._threads = math.prod(shape) * _COST >= settings.effort

    def __call__(self) -> None:
        for_each(self._compute, self._blocks, get_num_threads() if self._threads else 1)

    def _compute(self, block: Any) -> None:
        for call in self._recipe(*[array[block] for array in self._arrays]):
            call()


# Of one element, beside that of an addition.
_COST = 10.0


def _binder(recipe: Callable[..., list[Call]]) -> Binder:
    """A binder of a recipe that takes the axis and what else there is as attributes."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        axis, *rest = attrs
        axes = tuple(range(out.ndim)) if axis is None else normalize_axis_tuple(axis, out.ndim)
        arrays = [*[np.broadcast_to(x, out.shape) for x in inputs], out]
        return _step(recipe, arrays, -1, axes, rest)

    return bind


def _step(
    recipe: Callable[..., list[Call]],
    arrays: Sequence[Any],
    whole: int,
    axes: Sequence[int],
    rest: Sequence[Any],
) -> Call:
    """The step of a recipe whose rows are those of ``arrays[whole]``."""
    dtype = arrays[-1].dtype

    def calls(*parts: Any) -> list[Call]:
        return recipe(_Rows(parts[whole].shape, axes, dtype), *parts, *rest)

    if _strips.is_large(arrays[whole]):
        return RowBlocks(calls, arrays, axes, arrays[whole].shape)
    return InTurn(*calls(*arrays))


def _labels_binder(recipe: Callable[..., list[Call]]) -> Binder:
    """The same of a recipe whose last operands are an array, and a label for each of its rows."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        *_, x, labels = inputs
        (axis,) = normalize_axis_tuple(attrs[0], x.ndim)
        # What has an element for each row has an axis of one for it. Of a single row it may have that.
        arrays = [a if a.ndim == x.ndim else np.expand_dims(a, axis) for a in (*inputs, out)]
        step = _step(recipe, arrays, -3, (axis,), [axis])
        return InTurn(numbers_check(labels, x.shape, axis), step)

    return bind


for _recipe in (
    softmax,
    softmax_grad,
    log_softmax,
    log_softmax_grad,
    standardize,
    standardize_grad,
):
    register_binder(_recipe.__name__, "cpu", _binder(_recipe))
for _recipe in (cross_entropy, cross_entropy_grad):
    register_binder(_recipe.__name__, "cpu", _labels_binder(_recipe))
