"""Attention: averages of values, weighted by how well their keys fit a query (Vaswani and others, 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._elementwise import greater_equal
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._matmul import matmul
from reactgrad.ops._softmax import softmax
from reactgrad.ops._where import where


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Return for each query the average of the values, weighted by the softmax of its products with the keys.

    Parameters
    ----------
    query : Var or array_like, shape (..., L, E)
    key : Var or array_like, shape (..., S, E)
    value : Var or array_like, shape (..., S, V)
    attn_mask : Var or array_like, optional
        Broadcasts to (..., L, S). Booleans: true where a key counts. Floats are added to the products. A query
        for which no key counts gives NaN, as a mean of nothing.
    is_causal : bool
        Whether key j counts for queries from j on only.
    scale : float, optional
        What products are multiplied by; by default 1 / sqrt(E).
    enable_gqa : bool
        Whether heads of keys and values (axis -3) are repeated to the number of those of the queries.

    Returns
    -------
    Var
        Shape (..., L, V). For dropout of weights use ``rg.attention_weights`` and ``rg.dropout``.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    DTypeError
        If a mask and `is_causal` are both given.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.scaled_dot_product_attention(
    ...         [[1.0, 0.0]], [[9.0, 0.0], [0.0, 9.0]], [[1.0], [2.0]]
    ...     )
    >>> y.value.round(3)
    array([[1.002]])
    """
    graph = graph_of((query, key, value, attn_mask))
    q: Any
    k: Any
    v: Any
    q, k, v = (one if isinstance(one, Handle) else graph.const(one) for one in (query, key, value))
    for what, one in (("query", q), ("key", k), ("value", v)):
        if one.ndim < 2:
            raise ShapeError(
                f"rg.scaled_dot_product_attention: the {what} has shape {one.shape}; its last axes are places "
                "and their vectors."
            )
    if enable_gqa:
        k, v = _heads(k, q), _heads(v, q)
    return matmul(attention_weights(q, k, attn_mask, is_causal=is_causal, scale=scale), v)


def _heads(one: Any, query: Any) -> Any:
    have, want = one.shape[-3], query.shape[-3]
    if have == want:
        return one
    if have is None or want is None or want % have:
        raise ShapeError(
            f"enable_gqa: {want} heads of queries are no multiple of {have} heads of keys."
        )
    return ops.repeat(one, want // have, -3)


def attention_weights(
    query: Any,
    key: Any,
    attn_mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Any:
    """Return the weights of ``scaled_dot_product_attention``: shape (..., L, S), rows that add up to 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.attention_weights([[1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]])
    >>> y.value
    array([[0.5, 0.5]])
    """
    graph = graph_of((query, key, attn_mask))
    q: Any
    k: Any
    q, k = (one if isinstance(one, Handle) else graph.const(one) for one in (query, key))
    if scale is None:
        if q.shape[-1] is None:
            raise ShapeError("attention over vectors of a length that is not known: give scale=.")
        scale = 1.0 / math.sqrt(q.shape[-1] or 1)
    order = (*range(k.ndim - 2), k.ndim - 1, k.ndim - 2)
    products = matmul(q * scale, ops.transpose(k, order))
    if is_causal:
        if attn_mask is not None:
            raise DTypeError(
                "rg.scaled_dot_product_attention: give a mask or is_causal=True; a mask can be causal, as "
                "rg.tril(mask)."
            )
        attn_mask = _causal(graph, q, k)
    if attn_mask is not None:
        mask: Any = (
            attn_mask if isinstance(attn_mask, Handle) else graph.const(np.asarray(attn_mask))
        )
        products = where(mask, products, -math.inf) if mask.dtype.kind == "b" else products + mask
    return softmax(products, -1)


def _causal(graph: Any, q: Any, k: Any) -> Any:
    length, width = q.shape[-2], k.shape[-2]
    if length is not None and width is not None:
        return graph.const(np.tri(length, width, dtype=bool))
    rows, columns = (_places(one) for one in (q, k))
    return greater_equal(expand_dims(rows, -1), columns)


def _places(one: Any) -> Any:
    """Return the numbers of places of a length that is not known yet."""
    first = one[(0,) * (one.ndim - 2)][:, 0]
    return ops.cumsum(first.detach() * 0.0 + 1.0)
