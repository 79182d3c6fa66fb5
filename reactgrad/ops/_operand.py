"""Operands of functions that are built of several ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import Handle, graph_of, stacked
from reactgrad.nodes._nested import elements
from reactgrad.ops._astype import astype
from reactgrad.ops._layout import known_shape, reshape, spread_like
from reactgrad.ops._move import to_device
from reactgrad.scheduler import safe_repr


def node(x: Any, *others: Any) -> Any:
    """Return `x` as one node, in the graph of the first node among it and the `others`."""
    x = stacked(x)
    if isinstance(x, Handle):
        return x
    if not isinstance(x, bool | int | float | complex) and not hasattr(x, "__array_namespace__"):
        x = _array(x)
    return graph_of((x, *others)).const(x)


def _array(x: Any) -> Any:
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ShapeError(
            f"an operand was given as nested lists of different lengths, {safe_repr(x):.60} ({error}). An array needs "
            "rows of one length."
        ) from None


def beside(x: Any, like: Any) -> Any:
    """Return `x` as a node; numbers and lists of them on the device of the node `like`."""
    found = node(x, like)
    return to_device(found, like.device) if isinstance(x, int | float | list | tuple) else found


def known_dtype(x: Any) -> Any:
    """Return the dtype of a node or an array; ``None`` where only a node's value will show it."""
    if not isinstance(x, Handle):
        return x.dtype
    found = x._graph._host.specs[x._slot]
    return None if found is None else found.dtype


def holds(x: Any, dtype: Any) -> bool:
    """Return whether an array, or a node by what is known of it, has this dtype.

    NumPy says that ``None`` equals float64.
    """
    found = known_dtype(x)
    return found is not None and found == dtype


def in_dtype(x: Any, dtype: Any) -> Any:
    """Return `x` in a dtype; itself where it has that, or `dtype` is ``None``."""
    if dtype is None:
        return x
    if not isinstance(dtype, np.dtype):
        dtype = read_dtype("a conversion", dtype)
    return x if isinstance(x, Handle) and x.dtype == dtype else astype(x, dtype)  # type: ignore[attr-defined]


def stretched(x: Any, like: Any) -> Any:
    """Return `x` broadcast to the shape of `like`, also to the one that it has later."""
    return x if None is not known_shape(x) == known_shape(like) else spread_like(x, like)


def nodes_of(*operands: Any) -> list[Any]:
    """Return operands as nodes of one graph."""
    first = next((one for one in elements(operands) if isinstance(one, Handle)), None)
    return [node(one, first) for one in operands]


def given(x: Any) -> Any:
    """Return an operand as a node or an array; a list that holds nodes becomes one node."""
    x = stacked(x)
    return x if isinstance(x, Handle) else _array(x)


def with_axis(x: Any) -> Any:
    """Return a node or an array; one without axes gets an axis of length 1, as in PyTorch."""
    x = given(x)
    return x[None] if _shape(x) == () else x


def flat(x: Any) -> Any:
    """Return a node or an array with all its elements in one row."""
    x = given(x)
    shape = _shape(x)
    if shape is not None and len(shape) == 1:
        return x
    return reshape(x, -1) if isinstance(x, Handle) else x.reshape(-1)


def _shape(x: Any) -> Any:
    return known_shape(x) if isinstance(x, Handle) else x.shape
