"""Kernels on NumPy arrays that need whole rows: softmax, layer norm and their gradients.

A *row* consists of the elements along the axes that a kernel sums over. A *recipe* takes arrays of one
shape, allocates scratch memory, and returns the calls that compute the last of the arrays. For small
arrays a recipe is used once, and its calls are repeated. Large arrays are computed in blocks of whole
rows, each by a fresh recipe: intermediate results are still in the cache when they are read, and their
memory is released after the block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from reactgrad.backend._registry import Binder, register_binder
from reactgrad.backend.blocks import _strips
from reactgrad.backend.blocks._blocks import blocks
from reactgrad.backend.blocks._threads import for_each, get_num_threads
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import sum_step

Call = Callable[[], object]

# `Any`, because NumPy's stubs take the arguments of these two by keyword only.
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
        """Return a new array with a place for each element."""
        return np.empty(self._shape, self._dtype)

    def over(self, out: Any) -> Any:
        """Return an array with a place for each element: `out` itself, if its dtype is wide enough."""
        return out if out.dtype == self._dtype else self.full()

    def kept(self) -> Any:
        """Return a new array with a place for each row."""
        return np.empty(self._kept, self._dtype)

    def each(self, x: Any) -> Any:
        """Return an array of ``kept`` as an operand beside arrays of all elements.

        A single number loses its axes, because NumPy broadcasts it faster then.
        """
        return x.reshape(()) if x.size == 1 else x

    def number(self, value: float) -> Any:
        """Return a number as an operand that is the same for all rows."""
        return np.full((), value, self._dtype)

    def times(self, a: Any, b: Any, out: Any) -> Call:
        """Return the call for the product of two arrays, in the dtype of the rows."""
        if a.dtype == self._dtype:
            return partial(np.multiply, a, b, out)
        return partial(np.multiply, a, b, out, dtype=self._dtype)

    def sum(self, x: Any, out: Any) -> Call:
        careful = sum_step(x, self._axes, out)
        return careful or partial(_add_reduce, x, self._axes, None, out, True)

    def sum_from(self, start: float, x: Any, out: Any) -> Call:
        return partial(_add_reduce, x, self._axes, None, out, True, start)

    def exp(self, x: Any, out: Any) -> Call:
        """Return the call for exponentials, in the dtype of the rows."""
        if x.dtype == self._dtype:
            return partial(np.exp, x, out)
        return partial(np.exp, x, out, dtype=self._dtype)

    def mean(self, x: Any) -> Any:
        """Return the mean of each row."""
        found = self.kept()
        self.sum(x, found)()
        return found * self.number(1.0 / max(self.length, 1))

    def largest(self, x: Any) -> Any:
        """Return the largest element of each row, in the dtype of the rows."""
        return _max_reduce(x, self._axes, None, None, True, -np.inf).astype(self._dtype)

    def max(self, x: Any, out: Any) -> Call:
        return partial(_max_reduce, x, self._axes, None, out, True, -np.inf)


# --- softmax -------------------------------------------------------------------------------------


def exponentials(rows: _Rows, x: Any, e: Any, top: Any, total: Any) -> list[Call]:
    """Return the calls that write exp(x - max(x)) of each row into `e`, and its sum into `total`."""
    return [
        rows.max(x, top),
        partial(np.subtract, x, rows.each(top), e),
        partial(np.exp, e, e),
        rows.sum(e, total),
    ]


def softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    """Return the calls that compute ``softmax`` of each row."""
    e, top, total = rows.over(out), rows.kept(), rows.kept()
    return [*exponentials(rows, x, e, top, total), partial(np.divide, e, rows.each(total), out)]


def softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    """Return the calls that compute ``ans * (g - sum(g * ans))`` of each row.

    Where one of `ans` is nearly 1, the difference is small and has lost its digits. Its own mean, which
    would be 0 in exact numbers, has them; see ``ops._softmax``.
    """
    product, apart, total = rows.full(), rows.over(out), rows.kept()
    return [
        rows.times(g, ans, product),
        rows.sum(product, total),
        partial(np.subtract, g, rows.each(total), apart),
        rows.times(apart, ans, product),
        rows.sum(product, total),
        partial(np.subtract, apart, rows.each(total), product),
        partial(np.multiply, product, ans, out),
    ]


def log_softmax(rows: _Rows, x: Any, out: Any) -> list[Call]:
    """Return the calls that compute ``log(softmax)`` of each row.

    The largest exponentials are 1 each. They are counted, and only the others are added up, since the
    logarithm of 1 and little more needs all digits of that little.
    """
    below, e, largest = rows.over(out), rows.full(), rows.full()
    top, total, more, log = rows.kept(), rows.kept(), rows.kept(), rows.kept()
    rest = rows.full()
    return [
        rows.max(x, top),
        partial(np.subtract, x, rows.each(top), below),
        partial(np.exp, below, e),
        partial(np.equal, below, rows.number(0.0), largest),
        partial(np.subtract, e, largest, rest),
        rows.sum(rest, total),
        rows.sum_from(-1.0, largest, more),
        partial(np.add, total, more, log),
        partial(np.log1p, log, total),
        partial(np.subtract, below, rows.each(total), out),
    ]


def log_softmax_grad(rows: _Rows, g: Any, ans: Any, out: Any) -> list[Call]:
    """Return the calls that compute ``g - exp(ans) * sum(g)`` of each row.

    The results of a row add up to 0. Where one has lost its digits, they are in the sum of the others.
    """
    e, apart, product, total = rows.full(), rows.full(), rows.full(), rows.kept()
    return [
        rows.exp(ans, e),
        rows.sum(g, total),
        partial(np.multiply, e, rows.each(total), product),
        partial(np.subtract, g, product, apart),
        rows.sum(apart, total),
        partial(np.multiply, e, rows.each(total), product),
        partial(np.subtract, apart, product, out),
    ]


# --- layer norm ----------------------------------------------------------------------------------


def _deviations(rows: _Rows, x: Any, scratch: Any, apart: Any, std: Any, eps: float) -> list[Call]:
    """Return the calls that write x - mean into `apart` and sqrt(variance + eps) into `std`.

    In rows whose squares leave the dtype the quotient of the two is right, but not each by itself.
    """
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
        partial(_scale, rows, x, variance, apart, std, eps, *_bounds(variance.dtype, eps)),
    ]


@cache
def _bounds(dtype: Any, eps: float) -> tuple[float, float]:
    """Return the least and the largest variance that has lost nothing."""
    limits = np.finfo(dtype)
    # Where eps is larger than what underflows, that cannot be seen.
    least = limits.tiny / limits.eps if eps < limits.tiny / limits.eps**2 else 0.0
    return float(least), float(limits.max)


def _fine(variance: Any, least: float, most: float) -> bool:
    if variance.size == 1:
        return least <= variance.item() <= most
    return least <= variance.min(initial=np.inf) and variance.max(initial=0.0) <= most


def _scale(
    rows: _Rows, x: Any, variance: Any, apart: Any, std: Any, eps: float, *bounds: float
) -> None:
    if not _fine(variance, *bounds):
        bad, own, deviation, _ = _scaled(rows, x, variance, eps, *bounds)
        np.copyto(apart, own, where=bad)
        np.copyto(std, deviation, where=bad)


def _std(rows: _Rows, x: Any, a: Any, b: Any, std: Any, eps: float) -> list[Call]:
    """Return the calls that write sqrt(variance + eps) into `std`; `a` and `b` are scratch memory."""
    *calls, scale = _deviations(rows, x, a, b, std, eps)
    return [*calls, partial(_scale_back, *scale.args)]  # type: ignore[attr-defined]


def _scale_back(
    rows: _Rows, x: Any, variance: Any, apart: Any, std: Any, eps: float, *bounds: float
) -> None:
    if not _fine(variance, *bounds):
        bad, _, deviation, scale = _scaled(rows, x, variance, eps, *bounds)
        np.copyto(std, deviation / scale, where=bad)


def _scaled(
    rows: _Rows, x: Any, variance: Any, eps: float, least: float, most: float
) -> tuple[Any, Any, Any, Any]:
    """Compute rows again whose squares have left the dtype, with smaller or larger numbers.

    Returns
    -------
    tuple
        Whether each row needs this; deviations from the mean and sqrt(variance + eps), all times a
        factor; the factor: a power of 2, which changes no digit.
    """
    bad = ~((variance >= least) & (variance <= most))
    tiny = float(np.finfo(variance.dtype).tiny)
    size = np.maximum(rows.largest(np.abs(x)), max(math.sqrt(eps), tiny))
    scale = np.ldexp(np.ones_like(variance), -np.frexp(np.where(np.isfinite(size), size, 1.0))[1])
    own = x * scale
    own -= rows.mean(own)
    return bad, own, np.sqrt(rows.mean(own * own) + scale * eps * scale), scale


def standardize(rows: _Rows, x: Any, out: Any, eps: float) -> list[Call]:
    """Return the calls that compute ``(x - mean) / sqrt(variance + eps)`` of each row."""
    scratch, apart, std = rows.full(), rows.full(), rows.kept()
    return [
        *_deviations(rows, x, scratch, apart, std, eps),
        partial(np.divide, apart, rows.each(std), out),
    ]


def standardize_kept(rows: _Rows, x: Any, std: Any, out: Any, eps: float) -> list[Call]:
    """Return the calls of ``standardize`` that also write sqrt(variance + eps) of each row into `std`."""
    scratch, apart, own = rows.full(), rows.full(), rows.kept()
    *calls, scale = _deviations(rows, x, scratch, apart, own, eps)
    arguments = scale.args  # type: ignore[attr-defined]
    return [
        *calls,
        partial(np.copyto, std, own, "same_kind"),
        partial(_keep_std, *arguments[:3], std, *arguments[5:]),
        scale,
        partial(np.divide, apart, rows.each(own), out),
    ]


def _keep_std(rows: _Rows, x: Any, variance: Any, std: Any, eps: float, *bounds: float) -> None:
    if not _fine(variance, *bounds):
        bad, _, deviation, scale = _scaled(rows, x, variance, eps, *bounds)
        np.copyto(std, deviation / scale, "same_kind", where=bad)


def standardize_back(rows: _Rows, g: Any, ans: Any, std: Any, out: Any) -> list[Call]:
    """Return the calls that compute ``(g - ans * mean(g * ans) - mean(g)) / std`` of each row."""
    return [*_without_mean(rows, g, ans, a := rows.full()), partial(np.divide, a, std, out)]


def _without_mean(rows: _Rows, g: Any, ans: Any, a: Any) -> list[Call]:
    """Return the calls that write ``g - ans * mean(g * ans) - mean(g)`` into `a`."""
    b, total, by_mean, by_std = rows.full(), rows.kept(), rows.kept(), rows.kept()
    each = rows.number(1.0 / max(rows.length, 1))
    return [
        rows.times(g, ans, a),
        rows.sum(a, total),
        partial(np.multiply, total, each, by_std),
        rows.sum(g, total),
        partial(np.multiply, total, each, by_mean),
        partial(np.multiply, ans, rows.each(by_std), a),
        partial(np.subtract, g, a, b),
        partial(np.subtract, b, rows.each(by_mean), a),
    ]


def standardize_grad(rows: _Rows, g: Any, ans: Any, x: Any, out: Any, eps: float) -> list[Call]:
    """Return the calls of ``standardize_back`` that find std in `x` once more."""
    a, b, std = rows.full(), rows.full(), rows.kept()
    return [
        *_std(rows, x, a, b, std, eps),
        *_without_mean(rows, g, ans, a),
        partial(np.divide, a, rows.each(std), out),
    ]


def over_std(rows: _Rows, h: Any, ans: Any, x: Any, out: Any, eps: float) -> list[Call]:
    """Return the calls that compute ``h / std`` of each row."""
    std = rows.kept()
    return [
        *_std(rows, x, rows.full(), rows.full(), std, eps),
        partial(np.divide, h, rows.each(std), out),
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
        # The blocks depend on nothing but the shape, and so the bits of sums, too.
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


# The cost of one element, in additions.
_COST = 10.0


def _binder(recipe: Callable[..., list[Call]]) -> Binder:
    """Return a binder for a recipe. The first attribute is the axis; the recipe gets the others."""

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
    standardize_back,
    over_std,
):
    register_binder(_recipe.__name__, "cpu", _binder(_recipe))


def _bind_kept(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    """Return the step that writes standardised rows, and behind them the deviation of each."""
    (x,), (axis, eps) = inputs, attrs
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    y, std = out[: x.size].reshape(x.shape), out[x.size :].reshape(kept)

    def calls(*parts: Any) -> list[Call]:
        return standardize_kept(_Rows(parts[-1], axes), parts[0], parts[1], parts[2], eps)

    arrays = (x, std, y)
    if _strips.is_large(y):
        return RowBlocks(calls, arrays, axes)
    return InTurn(*calls(*arrays))


register_binder("standardize_kept", "cpu", _bind_kept)
