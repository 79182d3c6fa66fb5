"""Kernels of histograms and of counts of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder

Call = Callable[[], object]

NAMES: Final = ("histogram_edges", "histogram", "of_bin", "bincount")


def register(xp: Any, kind: str) -> None:
    """Register the kernels of NumPy; other libraries lack functions or arguments that these need."""
    if xp is not np:
        return

    def given(out: Any, found: Any) -> Any:
        """Return a result whose length only the values show, or write one that is known."""
        if out is None:
            return found
        out[...] = found
        return None

    def bind_edges(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        sample, *weights = inputs
        bins, span, column = attrs
        if column is not None:
            sample = sample[:, column]

        def find() -> Any:
            values = sample.astype(xp.uint8) if sample.dtype == bool else sample
            return given(out, xp.histogram_bin_edges(values, bins, span, *weights))

        return find

    def bind_histogram(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        bins, span, count = attrs
        sample, *edges = inputs[: count + 1]
        weights = inputs[count + 1] if len(inputs) > count + 1 else None

        def find() -> Any:
            values = sample.astype(xp.uint8) if sample.dtype == bool else sample
            if values.ndim == 2 and count > 0 and bins == "columns":
                return given(out, xp.histogramdd(values, edges, weights=weights)[0])
            if isinstance(bins, int):  # even bins are found without a search
                return given(out, xp.histogram(values, bins, span, weights=weights)[0])
            return given(out, xp.histogram(values, edges[0], weights=weights)[0])

        return find

    def bind_of_bin(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        g, sample, *edges = inputs
        columns = attrs[0] == "columns"

        def find() -> None:
            inside, places = xp.ones(out.shape, bool), []
            for i, one in enumerate(edges):
                values = sample[:, i] if columns else sample
                place = xp.searchsorted(one, values, side="right") - 1
                place[values == one[-1]] = len(one) - 2  # the last bin holds its upper edge
                inside &= (place >= 0) & (place < len(one) - 1)
                places.append(xp.clip(place, 0, len(one) - 2))
            out[...] = xp.where(inside, g[tuple(places)], 0)

        return find

    def bind_bincount(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, *weights = inputs

        def count() -> Any:
            return given(out, xp.bincount(x, *weights, minlength=attrs[0]))

        return count

    binders = (bind_edges, bind_histogram, bind_of_bin, bind_bincount)
    for name, binder in zip(NAMES, binders, strict=True):
        register_binder(name, kind, binder)


def edge_dtype(dtype: Any, span: Any, columns: bool) -> Any:
    """Return the dtype of the edges that NumPy finds for a sample of this dtype."""
    sample = np.zeros(2, np.uint8 if dtype.kind == "b" else dtype)
    if columns:
        return np.histogramdd(sample[:, None], 1, None if span is None else [span])[1][0].dtype
    return np.histogram_bin_edges(sample, 1, span).dtype
