"""Layers with weights: linear, convolution, norms, embedding, attention."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.models.pnnx._call import Call, converts, rank
from reactgrad.models.pnnx._layout import padded


@converts("nn.Linear", "F.linear")
def _linear(call: Call) -> Any:
    return linear(call.x(), call.either("weight", 1), call.either("bias", 2))


def linear(x: Any, weight: Any, bias: Any) -> Any:
    """Return ``x @ weight.T + bias``, as PyTorch stores the weights."""
    y = rg.matmul(x, rg.transpose(weight))
    return y if bias is None else y + bias


@converts(
    *[f"{kind}.{name}{n}d" for n in (1, 2, 3) for kind, name in (("nn", "Conv"), ("F", "conv"))]
)
def _conv(call: Call) -> Any:
    n = int(call.op[-2])
    x, weight, bias = call.x(), call.either("weight", 1), call.either("bias", 2)
    padding = call("padding", 0)
    mode = call("padding_mode", "zeros")
    if mode != "zeros":
        x, padding = (
            padded(
                call,
                x,
                [p for one in reversed(call.ints("padding")) for p in (one, one)],
                mode,
                0.0,
            ),
            0,
        )
    function = getattr(rg, f"conv{n}d")
    return function(
        x, weight, bias, call("stride", 1), padding, call("dilation", 1), call.integer("groups", 1)
    )


@converts(
    *[f"{kind}{n}d" for n in (1, 2, 3) for kind in ("nn.ConvTranspose", "F.conv_transpose")],
)
def _conv_transpose(call: Call) -> Any:
    n = int(call.op[-2])
    function = getattr(rg, f"conv_transpose{n}d")
    return function(
        call.x(),
        call.either("weight", 1),
        call.either("bias", 2),
        stride=call("stride", 1),
        padding=call("padding", 0),
        output_padding=call("output_padding", 0),
        groups=call.integer("groups", 1),
        dilation=call("dilation", 1),
    )


@converts("nn.Embedding", "F.embedding")
def _embedding(call: Call) -> Any:
    if call("max_norm", None) is not None:
        raise call.refuse("max_norm, which writes into the weights,")
    return rg.embedding(call.x(), call.either("weight", 1))


@converts(*[f"nn.BatchNorm{n}d" for n in (1, 2, 3)], "F.batch_norm")
def _batch_norm(call: Call) -> Any:
    if call("training", False) is True:
        raise call.refuse("training=True")
    mean, var = call.either("running_mean", 1), call.either("running_var", 2)
    if mean is None or var is None:
        raise call.refuse("a norm without running statistics")
    return rg.batch_norm(
        call.x(), mean, var, call.either("weight", 3), call.either("bias", 4), eps=call("eps", 1e-5)
    )


@converts("nn.LayerNorm", "F.layer_norm", "nn.RMSNorm", "F.rms_norm")
def _layer_norm(call: Call) -> Any:
    axes = tuple(range(-len(call.ints("normalized_shape")), 0))
    if "RMS" in call.op or "rms" in call.op:
        return rg.rms_norm(call.x(), call.either("weight", 1), axis=axes, eps=call("eps", None))
    return rg.layer_norm(
        call.x(), call.either("weight", 1), call.either("bias", 2), axis=axes, eps=call("eps", 1e-5)
    )


@converts("nn.GroupNorm", "F.group_norm")
def _group_norm(call: Call) -> Any:
    return rg.group_norm(
        call.x(),
        call.integer("num_groups"),
        call.either("weight", 1),
        call.either("bias", 2),
        eps=call("eps", 1e-5),
    )


@converts(*[f"nn.InstanceNorm{n}d" for n in (1, 2, 3)], "F.instance_norm")
def _instance_norm(call: Call) -> Any:
    if call("track_running_stats", False) is True or call.weight("running_mean") is not None:
        return rg.batch_norm(
            call.x(), call.weight("running_mean"), call.weight("running_var"), call.weight("weight"),
            call.weight("bias"), eps=call("eps", 1e-5),
        )  # fmt: skip
    weight, bias = (call.either(name, i) for name, i in (("weight", 3), ("bias", 4)))
    return rg.instance_norm(call.x(), weight, bias, eps=call("eps", 1e-5))


@converts("nn.LocalResponseNorm", "F.local_response_norm")
def _local_response_norm(call: Call) -> Any:
    return rg.local_response_norm(
        call.x(),
        call.integer("size"),
        alpha=call("alpha", 1e-4),
        beta=call("beta", 0.75),
        k=call("k", 1.0),
    )


@converts("F.normalize")
def _normalize(call: Call) -> Any:
    return rg.normalize(
        call.x(), p=call("p", 2.0), axis=call.integer("dim", 1), eps=call("eps", 1e-12)
    )


@converts("F.scaled_dot_product_attention")
def _attention(call: Call) -> Any:
    if call("dropout_p", 0.0):
        raise call.refuse("dropout in training mode")
    mask = call("attn_mask", None)
    return rg.scaled_dot_product_attention(
        call.x("query", 0), call.x("key", 1), call.x("value", 2), mask,
        is_causal=bool(call("is_causal", False)), scale=call("scale", None), enable_gqa=bool(call("enable_gqa", False)),
    )  # fmt: skip


@converts("nn.MultiheadAttention")
def _multihead(call: Call) -> Any:
    if call("add_zero_attn", False) or call.weight("bias_k") is not None:
        raise call.refuse("attention with added keys")
    mask = call("attn_mask", None)
    given = [v for v in call.values if v is not mask]
    query, key, value = (given * 3)[:3] if len(given) == 1 else [given[0], given[1], given[-1]]
    heads, first = call.integer("num_heads"), bool(call("batch_first", False))
    if rank(query) == 2:
        batch = [rg.expand_dims(one, 0) for one in (query, key, value)]
    else:
        batch = [one if first else rg.swapaxes(one, 0, 1) for one in (query, key, value)]
    size = call.integer("embed_dim")
    bias, whole = call.weight("in_proj_bias"), call.weight("in_proj_weight")
    rows: list[Any] = []
    for i, name in enumerate("qkv"):
        part = slice(i * size, (i + 1) * size)
        weight = call.weight(f"{name}_proj_weight") if whole is None else whole[part]
        y = linear(batch[i], weight, None if bias is None else bias[part])
        shape = y.shape
        lengths = [-1 if n is None else n for n in shape[:2]]
        y = (
            rg.unflatten(y, 2, (heads, size // heads))
            if lengths.count(-1)
            else y.reshape((*lengths, heads, size // heads))
        )
        rows.append(rg.transpose(y, (0, 2, 1, 3)))
    if mask is not None and rank(mask) == 3:  # (batch * heads, L, S)
        mask = rg.unflatten(mask, 0, (-1, heads))
    y = rg.scaled_dot_product_attention(rows[0], rows[1], rows[2], mask)
    y = rg.flatten(rg.transpose(y, (0, 2, 1, 3)), 2)
    y = linear(y, call.weight("out_proj.weight"), call.weight("out_proj.bias"))
    weights = None
    if len(call.one.outputs) > 1:
        weights = rg.mean(rg.attention_weights(rows[0], rows[1], mask), axis=1)
    if rank(query) == 2:
        y, weights = y[0], None if weights is None else weights[0]
    elif not first:
        y = rg.swapaxes(y, 0, 1)
    return (y, weights) if weights is not None else y
