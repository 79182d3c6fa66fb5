"""Quantised numbers: integers with a scale and a zero point. What rounds has no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, converts
from reactgrad.models._tensors import dtype_of
from reactgrad.models._windows import convolution


def _spread(call: Call, i: int, rank: int, shape: tuple[Any, ...]) -> Any:
    """Return a scale or a zero point in a shape that fits the numbers: for all, an axis, or blocks."""
    value, axis, block = call[i], call.attr("axis", 1), call.attr("block_size", 0)
    if block:
        return _cut(rg.repeat(value, block, axis=axis), axis, call.length(0, axis))
    if (call.rank(i) == 1 and call.shape(i) != (1,)) or (call.rank(i) == 1 and rank > 1):
        axis = call.axis(axis, rank)
        return rg.reshape(value, tuple(-1 if a == axis else 1 for a in range(rank)))
    return rg.reshape(value, ()) if call.rank(i) == 1 else value


def _cut(x: Any, axis: int, length: int) -> Any:
    return x[tuple(slice(0, length) if a == axis % x.ndim else slice(None) for a in range(x.ndim))]


def _saturated(x: Any, dtype: np.dtype[Any]) -> Any:
    limits = np.iinfo(dtype)
    return rg.astype(rg.clip(x, float(limits.min), float(limits.max)), dtype)


@converts("QuantizeLinear")
def _quantize(call: Call) -> Any:
    rank, shape = call.rank(0), call.shape_or_none(0)
    scale = _spread(call, 1, rank, shape)
    zero = _spread(call, 2, rank, shape) if call.has(2) else None
    number = call.attr("output_dtype", 0)
    dtype = (
        call.dtype(2) if call.has(2) else dtype_of(number, str(call)) if number else np.dtype("u1")
    )
    if call.attr("precision", 0):
        precise = dtype_of(call.attr("precision"), str(call))
        x, scale = rg.astype(call[0], precise), rg.astype(scale, precise)
    else:
        x = call[0] if call.dtype(0).kind == "f" else rg.astype(call[0], "f4")
    y = rg.round(x / scale)
    return _saturated(y if zero is None else y + rg.astype(zero, "f4"), dtype)


@converts("DequantizeLinear")
def _dequantize(call: Call) -> Any:
    rank, shape = call.rank(0), call.shape_or_none(0)
    scale = _spread(call, 1, rank, shape)
    number = call.attr("output_dtype", 0)
    dtype = dtype_of(number, str(call)) if number else call.dtype(1)
    x = rg.astype(call[0], "f4")
    if call.has(2):
        x = x - rg.astype(_spread(call, 2, rank, shape), "f4")
    return rg.astype(x * rg.astype(scale, "f4"), dtype)


def _whole(call: Call, i: int, zero: int, columns: bool = False) -> Any:
    """Return integers without their zero point, as int32."""
    x = rg.astype(call[i], "i4")
    if not call.has(zero):
        return x
    point = rg.astype(call[zero], "i4")
    if call.rank(zero) == 1 and not columns and call.shape(zero) != (1,):
        point = rg.expand_dims(point, -1)
    return x - point


@converts("MatMulInteger")
def _matmul_integer(call: Call) -> Any:
    return rg.matmul(_whole(call, 0, 2), _whole(call, 1, 3, columns=True))


@converts("ConvInteger")
def _conv_integer(call: Call) -> Any:
    x, w = rg.astype(_whole(call, 0, 2), "f8"), rg.astype(call[1], "f8")
    if call.has(3):
        point = rg.astype(call[3], "f8")
        w = w - (rg.reshape(point, (-1, *[1] * (call.rank(1) - 1))) if call.rank(3) else point)
    # Sums of products of bytes are exact in float64.
    return rg.astype(convolution(call, x, w, None, call.shape(1)), "i4")


@converts("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Any:
    a, b = _whole(call, 0, 2), _whole(call, 3, 5, columns=True)
    a_scale, b_scale, y_scale = call[1], call[4], call[6]
    if call.rank(1) == 1 and call.shape(1) != (1,):
        a_scale = rg.expand_dims(a_scale, -1)
    if call.rank(6) == 1 and call.shape(6) != (1,):
        y_scale = rg.expand_dims(y_scale, -1)
    scale = rg.astype(a_scale, "f8") * rg.astype(b_scale, "f8") / rg.astype(y_scale, "f8")
    y = rg.round(rg.astype(rg.matmul(a, b), "f8") * scale)
    return _saturated(y + rg.astype(call[7], "f8"), call.dtype(7))


@converts("QLinearConv")
def _qlinear_conv(call: Call) -> Any:
    rank = call.rank(0)
    x = rg.astype(call[0], "f8") - rg.astype(call[2], "f8")
    point, w_scale = rg.astype(call[5], "f8"), rg.astype(call[4], "f8")
    w = rg.astype(call[3], "f8") - (
        rg.reshape(point, (-1, *[1] * (rank - 1))) if call.rank(5) else point
    )
    if call.rank(4):
        w_scale = rg.reshape(w_scale, (-1, *[1] * (rank - 2)))
    bias = rg.astype(call[8], "f8") if call.has(8) else None
    y = convolution(call, x, w, bias, call.shape(3))
    y = rg.round(y * (rg.astype(call[1], "f8") * w_scale / rg.astype(call[6], "f8")))
    return _saturated(y + rg.astype(call[7], "f8"), call.dtype(7))


@converts("DynamicQuantizeLinear")
def _dynamic_quantize(call: Call) -> Any:
    x = call[0]
    low, high = rg.minimum(rg.min(x), 0), rg.maximum(rg.max(x), 0)
    scale = (high - low) / np.float32(255)
    scale = rg.where(rg.equal(scale, 0), np.float32(1), scale)
    zero = rg.round(rg.clip(-low / scale, 0.0, 255.0))
    y = rg.clip(rg.round(x / scale) + zero, 0.0, 255.0)
    return rg.astype(y, "u1"), scale, rg.astype(zero, "u1")
