"""Kernels of quantiles, and of the linear maps that their derivatives are.

A quantile is a weighted sum of at most two elements of its sorted row. Which ones, and with which weights, NumPy itself
says: the quantile of 0, 1, 2, ... is the place in the sorted row, between two of them where it has a fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder

Call = Callable[[], object]

# A longer row is not sorted as a whole where so few quantiles are asked for.
FEW, FEW_PLACES = 512, 16

# The methods whose quantiles are no steps, by alpha and beta of Hyndman and Fan, "Sample quantiles in statistical
# packages" (1996), as NumPy has them: the place of q among n elements is n q + alpha + q (1 - alpha - beta) - 1.
SLANTS: Final = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": (3.0 / 8.0, 3.0 / 8.0),
}

NAMES: Final = ("quantile", "quantile_along", "quantile_back")


def quantile_of(xp: Any, name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    """Return NumPy's quantile under one of its names."""
    if name.endswith("median"):
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)
    return getattr(xp, name)(x, q, axis=axis, method=method, keepdims=keepdims)


def register(xp: Any, kind: str) -> None:
    """Register the kernels of NumPy; other libraries lack functions or arguments that these need."""
    if xp is not np:
        return

    def bind_quantile(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, q, *weights = inputs
        name, axis, method, keepdims, weak = attrs
        axis = axis if x.ndim else None

        def run() -> None:
            if not x.size:
                out.fill(np.nan)
                return
            fractions = q.item() if weak else q  # a Python number does not widen the result
            if weights:
                whole = in_full(weights[0], x, axis)
                out[...] = getattr(xp, name)(
                    x, fractions, axis=axis, method=method, keepdims=keepdims, weights=whole
                )
            else:
                absent = xp.isnan(x) if name.startswith("nan") else None
                # Of rows that are all NaN NumPy warns, so they have zeros meanwhile.
                if absent is not None and (empty := absent.all(axis, keepdims=True)).any():
                    whole = xp.where(empty, x.dtype.type(0), x)
                    out[...] = quantile_of(xp, name, whole, fractions, axis, method, keepdims)
                    xp.copyto(out, np.nan, where=absent.all(axis, keepdims=keepdims))
                else:
                    out[...] = quantile_of(xp, name, x, fractions, axis, method, keepdims)

        return run

    def rows(x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
        """Return a view or copy whose last axis is the row, and the order of the axes in it."""
        axes = tuple(range(x.ndim)) if axis is None or not x.ndim else axis
        axes = tuple(i % x.ndim for i in (axes if isinstance(axes, tuple) else (axes,)))
        kept = tuple(i for i in range(x.ndim) if i not in axes)
        turned = x.transpose((*kept, *sorted(axes)))
        return turned.reshape(*turned.shape[: len(kept)], -1), (*kept, *sorted(axes))

    def places(
        x: Any, q: Any, name: str, method: str, weights: Any, order_in_q: int
    ) -> tuple[Any, ...]:
        """Return for each row and each q the two elements, by their places in the row, and the weights of both.

        Shapes (q.size, rows). For `order_in_q` 1 the weights are those of the derivative by q.
        """
        flat = x.reshape(-1, x.shape[-1])
        fractions = q.reshape(-1).astype(np.float64)
        if name.endswith("percentile"):
            fractions = fractions / 100.0
        length = flat.shape[-1]
        plain = weights is None and not name.startswith("nan")
        if plain:
            row = xp.quantile(_numbers(xp, length), fractions, method=method)
            at = xp.repeat(row[:, None], len(flat), 1)
            at[:, xp.isnan(flat).any(-1)] = length - 1  # NaN are sorted to the end
        if plain and length > FEW and len(fractions) <= FEW_PLACES:
            # So much is in its sorted place as is asked for.
            near = [int(p) + i for p in row for i in (-1, 0, 1)]
            wanted = {length - 1, *[min(max(p, 0), length - 1) for p in near]}
            order = xp.argpartition(flat, sorted(wanted), -1)
        else:
            order = xp.argsort(flat, -1, kind="stable")
        if weights is not None:
            at = xp.empty((len(fractions), len(flat)))
            sorted_weights = xp.take_along_axis(weights.reshape(flat.shape), order, -1)
            for i, row in enumerate(sorted_weights):
                at[:, i] = xp.quantile(
                    xp.arange(length, dtype=np.float64), fractions, method=method, weights=row
                )
        elif not plain:
            at = xp.empty((len(fractions), len(flat)))
            counts = counts_of(flat)
            for count in xp.unique(counts):
                row = xp.quantile(_numbers(xp, count), fractions, method=method)
                at[:, counts == count] = row[:, None]
        rows_of = xp.arange(len(flat))
        if order_in_q:
            counts = counts_of(flat) if name.startswith("nan") else length
            low, high, weight = slopes(at, fractions[:, None], counts, method)
            if name.endswith("percentile"):
                weight = weight / 100.0
            return order[rows_of, low], order[rows_of, high], -weight, weight
        low = xp.floor(at)
        share = at - low
        high = xp.minimum(low + 1, length - 1).astype(np.intp)
        return order[rows_of, low.astype(np.intp)], order[rows_of, high], 1 - share, share

    def counts_of(flat: Any) -> Any:
        """Return how many elements of each row are numbers."""
        return flat.shape[-1] - xp.isnan(flat).sum(-1)

    def slopes(at: Any, q: Any, counts: Any, method: str) -> tuple[Any, Any, Any]:
        """Return the two places around each one, and by what their distance is multiplied in the derivative by q.

        Where q meets an element, they are those on both sides of it: the mean of both slopes.
        """
        alpha, beta = SLANTS[method]
        low = xp.maximum(xp.ceil(at) - 1, 0)
        high = xp.maximum(xp.minimum(xp.floor(at) + 1, counts - 1), low)
        # NumPy's place before it is limited to the row (Hyndman and Fan, 1996).
        place = counts * q + alpha + q * (1.0 - alpha - beta) - 1.0
        if method == "linear":
            inside = xp.ones(place.shape, bool)
        else:
            inside = (place >= 0) & (place <= counts - 1)
        inside = inside & (high > low)
        slope = counts + 1.0 - alpha - beta
        weight = xp.where(inside, slope / xp.maximum(high - low, 1), 0.0)
        return low.astype(np.intp), high.astype(np.intp), weight

    def bind_along(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        t, x, q, *weights = inputs
        name, axis, method, *_, degree = attrs

        def run() -> None:
            if not x.size:
                out.fill(0)
                return
            row, _ = rows(x, axis)
            whole = weight_rows(weights, x, axis)
            low, high, first, second = places(row, q, name, method, whole, degree)
            flat = rows(t, axis)[0].reshape(-1, row.shape[-1])
            own = xp.arange(len(flat))
            # A weight of 0 hides an infinite or NaN element.
            found = xp.where(first == 0, 0, flat[own, low] * first)
            found = found + xp.where(second == 0, 0, flat[own, high] * second)
            out[...] = found.reshape(out.shape)

        return run

    def in_full(weights: Any, x: Any, axis: Any) -> Any:
        """Return weights of the elements of an axis as weights of all elements."""
        if weights.shape == x.shape:
            return weights
        at = axis if isinstance(axis, int) else axis[0]
        return xp.moveaxis(xp.broadcast_to(weights, xp.moveaxis(x, at, -1).shape), -1, at)

    def weight_rows(weights: Sequence[Any], x: Any, axis: Any) -> Any:
        return rows(in_full(weights[0], x, axis), axis)[0] if weights else None

    def bind_back(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        g, x, q, *weights = inputs
        name, axis, method, *_, degree = attrs

        def run() -> None:
            if not x.size:
                return
            row, order = rows(x, axis)
            whole = weight_rows(weights, x, axis)
            low, high, first, second = places(row, q, name, method, whole, degree)
            count = low.shape[1]
            given = g.reshape(low.shape).astype(np.result_type(g.dtype, np.float64))
            total = xp.zeros((count, row.shape[-1]), given.dtype)
            own = xp.broadcast_to(xp.arange(count), low.shape)
            xp.add.at(total, (own, low), xp.where(first == 0, 0, given * first))
            xp.add.at(total, (own, high), xp.where(second == 0, 0, given * second))
            shape = tuple(x.shape[i] for i in order)
            xp.copyto(out.transpose(order), total.reshape(shape), "same_kind")

        return run

    for name, binder in zip(NAMES, (bind_quantile, bind_along, bind_back), strict=True):
        register_binder(name, kind, binder)


def _numbers(xp: Any, count: Any) -> Any:
    return xp.arange(int(count) or 1, dtype=np.float64)
