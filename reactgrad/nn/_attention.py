"""Attention of several heads (Vaswani and others, 2017)."""

from __future__ import annotations

import math
from typing import Any

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nn import init
from reactgrad.nn._linear import Linear
from reactgrad.nn._module import Module
from reactgrad.nn._values import Values
from reactgrad.ops import neural
from reactgrad.ops.arrangement import flatten, pad, unflatten
from reactgrad.random._dropout import dropout as drop


class MultiheadAttention(Module):
    """For each query the average of the values, by several heads that weigh keys each in its way.

    Parameters
    ----------
    embed_dim : int
        The length of queries and of the result.
    num_heads : int
        Divides it.
    dropout : float
        Of weights, in train mode.
    bias : bool
    add_bias_kv, add_zero_attn : bool
        Whether a key and a value that are learned, and then ones of zeros, come after those that are given. The
        weights count them, too.
    kdim, vdim : int, optional
        The lengths of keys and values; by default `embed_dim`.
    batch_first : bool
        Whether arrays are (batch, length, features), not (length, batch, features).
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    in_proj_weight : Var, shape (3 * embed_dim, embed_dim)
        For queries, keys and values; with `kdim` or `vdim` these are ``q_proj_weight``, ``k_proj_weight`` and
        ``v_proj_weight`` instead. By ``init.xavier_uniform_``.
    in_proj_bias : Var or None, shape (3 * embed_dim,)
    bias_k, bias_v : Var or None, shape (1, 1, embed_dim)
    out_proj : Linear

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = np.ones((3, 5, 8))
    >>> y, weights = layer(x, x, x)
    >>> y.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    _settings = ("embed_dim", "num_heads")

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ShapeError(
                f"MultiheadAttention({embed_dim}, {num_heads}): the heads divide the length of queries."
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.dropout, self.batch_first = dropout, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        make = Values(rng, dtype)
        self._one = self.kdim == self.vdim == embed_dim
        if self._one:
            self.in_proj_weight = _xavier(make, (3 * embed_dim, embed_dim))
        else:
            self.q_proj_weight = _xavier(make, (embed_dim, embed_dim))
            self.k_proj_weight = _xavier(make, (embed_dim, self.kdim))
            self.v_proj_weight = _xavier(make, (embed_dim, self.vdim))
        self.in_proj_bias = make.full((3 * embed_dim,), 0.0) if bias else None
        deviation = math.sqrt(2.0 / (2 * embed_dim))  # of init.xavier_normal_
        learned = (1, 1, embed_dim)
        self.bias_k = make.normal(learned, deviation) if add_bias_kv else None
        self.bias_v = make.normal(learned, deviation) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self.out_proj = Linear(embed_dim, embed_dim, bias, rng=make.rng, dtype=make.dtype)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Return the averages, and the weights of the keys.

        Parameters
        ----------
        query, key, value : Var or array_like
            Shapes (L, batch, embed_dim), (S, batch, kdim) and (S, batch, vdim), or without the batch.
        key_padding_mask : Var or array_like, optional, shape (batch, S)
            Booleans: true where a key does not count. Floats are added to the products.
        need_weights : bool
            ``False`` for ``None`` in place of the weights.
        attn_mask : Var or array_like, optional, shape (L, S) or (batch * num_heads, L, S)
            As `key_padding_mask`, for each pair of query and key.
        average_attn_weights : bool
            Whether weights are averaged over heads, shape (batch, L, S), or not, (batch, num_heads, L, S).
        is_causal : bool
            Whether key j counts for queries from j on only, if there is no `attn_mask`.
        """
        if query.ndim not in (2, 3):
            raise ShapeError(
                f"MultiheadAttention of queries of shape {query.shape}: they have 3 axes, or 2 without a batch."
            )
        alone = query.ndim == 2
        turn = not self.batch_first and not alone
        q, k, v = self._projected(query, key, value)
        if turn:
            q, k, v = (ops.transpose(one, (1, 0, 2)) for one in (q, k, v))
        k, v = self._longer(k, self.bias_k), self._longer(v, self.bias_v)
        q, k, v = (self._heads(one) for one in (q, k, v))
        mask = self._mask(key_padding_mask, attn_mask, alone, q.dtype)
        causal = is_causal and attn_mask is None
        if causal and self._more:
            raise ParameterError(
                "MultiheadAttention: is_causal=True with keys of its own, add_bias_kv or add_zero_attn: give the "
                "causal part as attn_mask."
            )
        if causal and mask is not None:
            raise ParameterError(
                "MultiheadAttention: is_causal=True with a key_padding_mask: give the causal part as attn_mask, too."
            )
        weights = neural.attention_weights(q, k, mask, is_causal=causal)
        if self.dropout:
            weights = drop(weights, self.dropout, self._mode(weights.graph))
        found = ops.matmul(weights, v)
        axes = (1, 0, 2) if alone else (2, 0, 1, 3) if turn else (0, 2, 1, 3)
        result = self.out_proj(flatten(ops.transpose(found, axes), -2, -1))
        if not need_weights:
            return result, None
        return result, ops.mean(weights, -3) if average_attn_weights else weights

    def _projected(self, query: Any, key: Any, value: Any) -> list[Any]:
        """Return what queries, keys and values are for all heads."""
        size, bias = self.embed_dim, self.in_proj_bias
        if self._one and query is key and key is value:
            rows = ops.linear(query, ops.transpose(self.in_proj_weight), bias)
            return [rows[..., i * size : (i + 1) * size] for i in range(3)]
        if self._one:
            weights = [self.in_proj_weight[i * size : (i + 1) * size] for i in range(3)]
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        biases = [None if bias is None else bias[i * size : (i + 1) * size] for i in range(3)]
        return [
            ops.linear(x, ops.transpose(weight), b)
            for x, weight, b in zip((query, key, value), weights, biases, strict=True)
        ]

    @property
    def _more(self) -> int:
        """The number of keys beside those that are given."""
        return (self.bias_k is not None) + self.add_zero_attn

    def _longer(self, x: Any, learned: Any) -> Any:
        """Return keys or values with those of the layer behind them, (..., length, features)."""
        if learned is not None:
            row = ops.zeros_like(x[..., :1, :]) + learned[0]
            x = ops.concatenate([x, row], -2)
        if self.add_zero_attn:
            x = pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 1), (0, 0)])
        return x

    def _heads(self, x: Any) -> Any:
        """Return (..., heads, length, features) of (..., length, heads * features)."""
        parts = unflatten(x, -1, (self.num_heads, self.embed_dim // self.num_heads))
        axes = (1, 0, 2) if parts.ndim == 3 else (0, 2, 1, 3)
        return ops.transpose(parts, axes)

    def _mask(self, padding: Any, pairs: Any, alone: bool, dtype: Any) -> Any:
        """Return both masks as one for ``attention_weights``, where true is what counts."""
        masks = []
        if padding is not None:
            padding = padding if alone else ops.expand_dims(padding, (1, 2))
            masks.append(padding)
        if pairs is not None:
            if pairs.ndim == 3 and not alone:
                pairs = unflatten(pairs, 0, (-1, self.num_heads))
            masks.append(pairs)
        if self._more:
            masks = [pad(one, [(0, 0)] * (one.ndim - 1) + [(0, self._more)]) for one in masks]
        if all(one.dtype.kind == "b" for one in masks):
            counts = [ops.logical_not(one) for one in masks]
            return ops.logical_and(*counts) if len(counts) == 2 else counts[0] if counts else None
        added = [ops.where(one, -math.inf, 0.0) if one.dtype.kind == "b" else one for one in masks]
        found = added[0] if len(added) == 1 else added[0] + added[1]
        return ops.astype(found, dtype)


def _xavier(make: Values, shape: tuple[int, int]) -> Any:
    return make.uniform(shape, math.sqrt(6.0 / sum(init.fans(shape))))
