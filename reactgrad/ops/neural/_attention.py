"""Attention: averages of values, weighted by how well their keys fit a query (Vaswani and others, 2017)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _attention
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import swap_last
from reactgrad.ops._matmul import matmul
from reactgrad.ops._shapes import resolve
from reactgrad.ops._softmax import softmax
from reactgrad.ops._where import where

add_kernels(_attention.register, _attention.register_standard)


def _infer_float(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    return spec(one.shape, resolve(np.divide, (one.dtype, one.dtype))[-1], one.device)


# Vectors along the last axis divided by the root of its length, which a new shape may change.
OVER_ROOT_LENGTH: Final = Op(
    "over_root_length",
    _infer_float,
    (lambda g, ans, x: apply(OVER_ROOT_LENGTH, (g,)),),
    (LINEAR,),
)

# Products of queries and keys, with minus infinity where the key comes later than the query.
CAUSAL: Final = Op(
    "causal",
    _infer_float,
    (lambda g, ans, x: ops.tril(g),),
    (lambda t, ans, x: ops.tril(t),),
)


@deferred
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


@deferred
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
    scaled = apply(OVER_ROOT_LENGTH, (q,)) if scale is None else q * scale
    products = matmul(scaled, swap_last(k))
    if is_causal:
        if attn_mask is not None:
            raise ParameterError(
                "rg.scaled_dot_product_attention: give a mask or is_causal=True; a mask can be causal, as "
                "rg.tril(mask)."
            )
        products = apply(CAUSAL, (products,))
    if attn_mask is not None:
        mask: Any = (
            attn_mask if isinstance(attn_mask, Handle) else graph.const(np.asarray(attn_mask))
        )
        products = where(mask, products, -math.inf) if mask.dtype.kind == "b" else products + mask
    return softmax(products, -1)
