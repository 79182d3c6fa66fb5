"""Reductions, the softmax family, and running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import CONVERTERS, Call, checked, converts, lifted, with_open


def _sum_of(before: Any = None, after: Any = None) -> Any:
    def reduce(x: Any, axis: Any, keepdims: bool) -> Any:
        x = rg.sum(x if before is None else before(x), axis=axis, keepdims=keepdims)
        return x if after is None else after(x)

    return reduce


def _of_integers_too(function: Any) -> Any:
    """Return a reduction whose result has the dtype of its operand, as ONNX declares it."""

    def reduce(x: Any, axis: Any, keepdims: bool) -> Any:
        return rg.astype(function(x, axis, keepdims), x.dtype)

    return reduce


_REDUCTIONS = {
    "ReduceSum": _of_integers_too(_sum_of()),
    "ReduceSumSquare": _of_integers_too(_sum_of(rg.square)),
    "ReduceL1": _of_integers_too(_sum_of(rg.absolute)),
    "ReduceL2": _of_integers_too(_sum_of(rg.square, rg.sqrt)),
    "ReduceLogSum": _of_integers_too(_sum_of(None, rg.log)),
    "ReduceLogSumExp": _of_integers_too(
        lambda x, axis, keepdims: rg.logsumexp(x, axis=axis, keepdims=keepdims)
    ),
    "ReduceMean": _of_integers_too(
        lambda x, axis, keepdims: rg.mean(x, axis=axis, keepdims=keepdims)
    ),
    "ReduceProd": _of_integers_too(
        lambda x, axis, keepdims: rg.prod(x, axis=axis, keepdims=keepdims)
    ),
}


def _extreme(name: str) -> Any:
    def reduce(x: Any, axis: Any, keepdims: bool) -> Any:
        dtype = np.dtype(x.dtype)
        if dtype.kind == "b":
            return (rg.any if name == "max" else rg.all)(x, axis=axis, keepdims=keepdims)
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        least = -np.inf if dtype.kind == "f" else limits.min
        most = np.inf if dtype.kind == "f" else limits.max
        lengths = x.shape if axis is None else [x.shape[a] for a in axis]
        empty = {"initial": dtype.type(least if name == "max" else most)} if 0 in lengths else {}
        return getattr(rg, name)(x, axis=axis, keepdims=keepdims, **empty)

    return reduce


_REDUCTIONS |= {"ReduceMax": _extreme("max"), "ReduceMin": _extreme("min")}


def _reduction(function: Any) -> Any:
    def convert(call: Call) -> Any:
        axes = call.ints(1, "axes", ())
        if not axes and call.attr("noop_with_empty_axes", 0):
            # No axes are reduced; what is done to each element stays.
            return function(rg.expand_dims(call[0], 0), (0,), False)
        axes = tuple(call.axis(a) for a in axes) or tuple(range(call.rank(0)))
        return function(call[0], axes, bool(call.attr("keepdims", 1)))

    return convert


CONVERTERS.update({name: _reduction(function) for name, function in _REDUCTIONS.items()})


@converts("ArgMax", "ArgMin")
def _arg(call: Call) -> Any:
    pick = rg.argmax if call.op == "ArgMax" else rg.argmin
    x, axis, keep = call[0], call.attr("axis", 0), bool(call.attr("keepdims", 1))
    if call.attr("select_last_index", 0):
        last = call.shape(0)[axis] - 1
        return last - pick(rg.flip(x, axis), axis=axis, keepdims=keep)
    return pick(x, axis=axis, keepdims=keep)


@converts("Softmax", "LogSoftmax", "Hardmax")
def _softmax(call: Call) -> Any:
    function = {"Softmax": rg.softmax, "LogSoftmax": rg.log_softmax, "Hardmax": _hardmax}[call.op]
    x = call[0]
    if call.version >= 13:
        return function(x, call.axis(call.attr("axis", -1)))
    # Before version 13 all axes from `axis` on were one.
    axis = call.attr("axis", 1)
    checked(
        -call.rank(0) <= axis <= call.rank(0), f"{call} goes along axis {axis} of {call.rank(0)}."
    )
    if axis in (-1, call.rank(0) - 1):
        return function(x, -1)
    shape = call.shape_or_none(0)
    if None in shape[:axis]:
        columns = math.prod([call.length(0, a) for a in range(axis, len(shape))])
        return rg.reshape(function(rg.reshape(x, (-1, columns)), -1), with_open(shape))
    flat = rg.reshape(x, (math.prod(shape[:axis]), -1))
    return rg.reshape(function(flat, -1), with_open(shape))


def _hardmax(x: Any, axis: int) -> Any:
    def hardmax(v: Any) -> Any:
        found = np.zeros_like(v)
        np.put_along_axis(found, np.expand_dims(v.argmax(axis), axis), 1, axis)
        return found

    return lifted(hardmax, x)


@converts("CumSum", "CumProd")
def _running(call: Call) -> Any:
    run, first = (rg.cumsum, 0) if call.op == "CumSum" else (rg.cumprod, 1)
    x, axis = call[0], call.axis(call.ints(1)[0])
    back = bool(call.attr("reverse", 0))
    if back:
        x = rg.flip(x, axis)
    if call.attr("exclusive", 0):
        length = call.length(0, axis)
        cut = [slice(None)] * call.rank(0)
        cut[axis] = slice(0, length - 1)
        width = [(0, 0)] * call.rank(0)
        width[axis] = (1, 0)
        x = rg.pad(x[tuple(cut)], width, constant_values=first)
    x = rg.astype(run(x, axis=axis), call.dtype(0))
    return rg.flip(x, axis) if back else x


@converts("LpNormalization")
def _lp_normalization(call: Call) -> Any:
    return _divided(call[0], call.attr("p", 2), call.attr("axis", -1))


def _divided(x: Any, p: int, axis: int) -> Any:
    size = rg.sum(rg.absolute(x), axis=axis, keepdims=True)
    if p == 2:
        size = rg.norm(x, axis=axis, keepdims=True)
    return rg.divide(x, rg.where(rg.equal(size, 0), size + 1, size))
