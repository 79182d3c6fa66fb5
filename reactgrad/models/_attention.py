"""Attention, with its masks, caches and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, converts


@converts("Attention")
def _attention(call: Call) -> Any:
    flat, dtype = call.rank(0) == 3, call.dtype(0)
    q, k, v = (
        _heads(call, i, call.attr("q_num_heads" if i == 0 else "kv_num_heads")) if flat else call[i]
        for i in range(3)
    )
    past = call.shape(4)[2] if call.has(4) else 0
    if call.has(4):
        k = rg.concatenate([call[4], k], axis=2)
    if call.has(5):
        v = rg.concatenate([call[5], v], axis=2)
    keys, values = k, v
    repeats = q.shape[1] // k.shape[1]
    if repeats > 1:
        k, v = rg.repeat(k, repeats, axis=1), rg.repeat(v, repeats, axis=1)
    root = dtype.type(np.sqrt(call.attr("scale") or 1 / np.sqrt(q.shape[3])))
    scores = rg.matmul(q * root, rg.transpose(k, (0, 1, 3, 2)) * root)
    cap, mode = call.attr("softcap", 0.0), call.attr("qk_matmul_output_mode", 0)
    raw = scores
    if cap:
        scores = rg.tanh(scores / cap) * cap
    shown = {0: raw, 1: scores}.get(mode)
    if (
        call.version < 24 and cap
    ):  # there the bias came in front of the cap in the outputs that are shown
        shown = raw if mode == 0 else scores if mode == 1 else None
    bias = _bias(call, q.shape[2], k.shape[2], past, dtype)
    if bias is not None:
        scores = scores + bias
    if mode == 2:
        shown = scores
    precise = call.dtype_attr("softmax_precision", dtype)
    weights = rg.astype(scores, precise)
    if bias is not None:  # a query that may see no key gets zeros
        none = rg.equal(rg.max(bias, axis=-1, keepdims=True), -np.inf)
        weights = rg.where(
            none, precise.type(0), rg.softmax(rg.where(none, precise.type(0), weights))
        )
    else:
        weights = rg.softmax(weights)
    weights = rg.astype(weights, dtype)
    if mode == 3:
        shown = weights
    y = rg.matmul(weights, v)
    if flat:
        y = rg.transpose(y, (0, 2, 1, 3))
        y = rg.reshape(y, (*y.shape[:2], y.shape[2] * y.shape[3]))
    return y, keys, values, shown


def _heads(call: Call, i: int, count: int) -> Any:
    batch, length, width = call.shape(i)
    return rg.transpose(rg.reshape(call[i], (batch, length, count, width // count)), (0, 2, 1, 3))


def _bias(call: Call, queries: int, keys: int, past: int, dtype: np.dtype[Any]) -> Any:
    """Return what is added to the scores, -inf where a query may not see a key; or ``None``."""
    zero, never = dtype.type(0), dtype.type(-np.inf)
    bias: Any = None
    if call.has(3):
        mask = call[3]
        lack = keys - call.shape(3)[-1]
        boolean = call.dtype(3).kind == "b"
        if lack > 0:
            width = [(0, 0)] * (call.rank(3) - 1) + [(0, lack)]
            mask = rg.pad(mask, width, constant_values=False if boolean else -np.inf)
        bias = rg.where(mask, zero, never) if boolean else mask
    seen = call[6] if call.has(6) else None
    row, column = np.arange(queries)[:, None], np.arange(keys)[None, :]
    position: Any = row + past
    if seen is not None:
        position = row + (rg.reshape(seen, (-1, 1, 1, 1)) - queries)
    left, right = call.attr("left_window_size", -1), call.attr("right_window_size", -1)
    allowed: list[Any] = []
    if call.attr("is_causal", 0):
        allowed.append(rg.less_equal(column, position))
    if left >= 0:
        allowed.append(rg.less_equal(position - column, left))
    if right >= 0:
        allowed.append(rg.less_equal(column - position, right))
    if seen is not None:
        allowed.append(rg.less(column, rg.reshape(seen, (-1, 1, 1, 1))))
    for one in allowed:
        part = rg.where(one, zero, never)
        bias = part if bias is None else bias + part
    return bias
