"""Kernels of NumPy that need whole rows: softmax, layer norm and their gradients.

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

from reactgrad.backend._registry import Binder, register_binder
from reactgrad.backend.blocks import _strips
from reactgrad.backend.blocks._blocks import blocks
from reactgrad.backend.blocks._threads import for_each, get_num_threads
from reactgrad.backend.numpy._in_turn import InTurn

Call = Callable[[], object]

# NumPy's stubs know these two with keywords only.
_add_reduce: Any = np.add.reduce
_max_reduce: Any = np.maximum.reduce


class _Rows:
    """Scratch memory and sums for rows of an array, in a dtype that is wide enough for sums."""

    __slots__ = ("_axes", "_dtype", "_kept", "_shape", "length")

    def __init__(self, like: Any, axes: Sequence[int]) -> None:
        self._shape = like.shape
        self._axes = axes[0] if len(axes) == 1 else tuple(axes)
        self._kept = [1 if i in axes else n for i, n in enumerate(like.shape)]
        self.length = math.prod([like.shape[i] for i in axes])
        self._dtype = np.dtype(np.float32) if like.dtype.char == "e" else like.dtype

    def full(self) -> Any:
        """An array with a place for each element."""
        return np.empty(self._shape, self._dtype)

    def over(self, out: Any) -> Any:
        """The same: `out` itself, if it is wide enough."""
        return out if out.dtype == self._dtype else self.full()

    def kept(self) -> Any:
        """An array with a place for each row."""
        return np.empty(self._kept, self._dtype)

    def each(self, x: Any) -> Any:
        """What ``kept`` has given as an operand beside arrays of all elements."""
        return x.reshape(()) if x.size == 1 else x

    def number(self, value: float) -> Any:
        """An operand that is the same for all rows."""
        return np.full((), value, self._dtype)

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
        partial(np.subtract, x, rows.each(top), e),
        partial(np.exp, e, e),
        rows.sum(e, total),
    ]


def softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    e, top, total = rows.over(out), rows.kept(), rows.kept()
    return [*exponentials(rows, x, e, top, total), partial(np.divide, e, rows.each(total), out)]


def softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    product, total = rows.over(out), rows.kept()
    return [
        rows.times(g, ans, product),
        rows.sum(product, total),
        partial(np.subtract, g, rows.each(total), product),
        partial(np.multiply, product, ans, out),
    ]


def log_softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    below, e, top, total, log = rows.over(out), rows.full(), rows.kept(), rows.kept(), rows.kept()
    return [
        rows.max(x, top),
        partial(np.subtract, x, rows.each(top), below),
        partial(np.exp, below, e),
        rows.sum(e, total),
        partial(np.log, total, log),
        partial(np.subtract, below, rows.each(log), out),
    ]


def log_softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    e, total = rows.over(out), rows.kept()
    return [
        partial(np.exp, ans, e),
        rows.sum(g, total),
        partial(np.multiply, e, rows.each(total), e),
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
        partial(np.subtract, x, rows.each(mean), apart),
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
        partial(np.divide, apart, rows.each(std), out),
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
        partial(np.multiply, ans, rows.each(by_std), a),
        partial(np.subtract, g, a, b),
        partial(np.subtract, b, rows.each(by_mean), a),
        partial(np.divide, a, rows.each(std), out),
    ]


# --- binding -------------------------------------------------------------------------------------


class RowBlocks:
    """The step of a recipe on large arrays: blocks of whole rows, on several threads."""

    __slots__ = ("_arrays", "_axes", "_blocks", "_recipe", "_threads")

    def __init__(
        self, recipe: Callable[..., list[Call]], arrays: Sequence[Any], axes: Sequence[int]
    ) -> None:
        shape = arrays[-1].shape
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

        def calls(*parts: Any) -> list[Call]:
            return recipe(_Rows(parts[-1], axes), *parts, *rest)

        if _strips.is_large(out):
            return RowBlocks(calls, arrays, axes)
        return InTurn(*calls(*arrays))

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
