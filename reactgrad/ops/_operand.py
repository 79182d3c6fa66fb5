"""Operands of functions that are built of several ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.nodes._handle import Handle, graph_of, stacked
from reactgrad.ops._astype import astype
from reactgrad.ops._layout import known_shape, spread_like, spread_to


def node(x: Any, *others: Any) -> Any:
    """Return `x` as one node, in the graph of the first node among it and the `others`."""
    x = stacked(x)
    if isinstance(x, Handle):
        return x
    if not isinstance(x, bool | int | float | complex | np.ndarray):
        x = np.asarray(x)
    return graph_of((x, *others)).const(x)


def in_dtype(x: Any, dtype: Any) -> Any:
    """Return `x` in a dtype; itself where it has that, or `dtype` is ``None``."""
    if dtype is None:
        return x
    dtype = np.dtype(dtype)
    return x if isinstance(x, Handle) and x.dtype == dtype else astype(x, dtype)  # type: ignore[attr-defined]


def stretched(x: Any, like: Any) -> Any:
    """Return `x` broadcast to the shape of `like`, some of whose lengths may not be known yet."""
    shape = known_shape(like)
    return spread_like(x, like) if shape is None or None in shape else spread_to(x, shape)
