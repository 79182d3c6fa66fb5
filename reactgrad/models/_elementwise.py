"""Ops that work element by element."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import CONVERTERS, Call, converts, lifted

# Ops that are one function of all their operands, without attributes.
_SAME = {
    "Abs": rg.absolute, "Neg": rg.negative, "Ceil": rg.ceil, "Floor": rg.floor, "Round": rg.round, "Sqrt": rg.sqrt,
    "Exp": rg.exp, "Log": rg.log, "Reciprocal": rg.reciprocal, "Sign": rg.sign, "Erf": rg.erf, "IsNaN": rg.isnan,
    "Sin": rg.sin, "Cos": rg.cos, "Tan": rg.tan, "Sinh": rg.sinh, "Cosh": rg.cosh, "Tanh": rg.tanh,
    "Asin": rg.arcsin, "Acos": rg.arccos, "Atan": rg.arctan, "Asinh": rg.arcsinh, "Acosh": rg.arccosh,
    "Atanh": rg.arctanh, "Relu": rg.relu, "Sigmoid": rg.sigmoid, "Mish": rg.mish, "Softsign": rg.softsign,
    "Add": rg.add, "Sub": rg.subtract, "Mul": rg.multiply, "And": rg.logical_and, "Or": rg.logical_or,
    "Xor": rg.logical_xor, "Not": rg.logical_not, "Equal": rg.equal, "Less": rg.less, "Greater": rg.greater,
    "LessOrEqual": rg.less_equal, "GreaterOrEqual": rg.greater_equal, "BitwiseAnd": rg.bitwise_and,
    "BitwiseOr": rg.bitwise_or, "BitwiseXor": rg.bitwise_xor, "BitwiseNot": rg.bitwise_not, "Where": rg.where,
    "Softplus": rg.softplus,
}  # fmt: skip


def _same(function: Any) -> Any:
    return lambda call: function(*call.all())


CONVERTERS.update({name: _same(function) for name, function in _SAME.items()})
# Ops of any number of operands.
for _name, _function in {"Sum": rg.add, "Max": rg.maximum, "Min": rg.minimum}.items():
    CONVERTERS[_name] = functools.partial(
        lambda function, call: functools.reduce(function, call.all()), _function
    )


@converts("Identity")
def _identity(call: Call) -> Any:
    return call[0]


@converts("Mean")
def _mean(call: Call) -> Any:
    return functools.reduce(rg.add, call.all()) / len(call)


@converts("Div")
def _div(call: Call) -> Any:
    a, b = call.all()
    kind = call.dtype(0).kind
    if kind == "i":  # toward zero, as in C
        return lifted(_toward_zero, a, b, dtype=call.dtype(0))
    return rg.floor_divide(a, b) if kind == "u" else rg.divide(a, b)


def _toward_zero(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return (quotient + ((quotient < 0) & (quotient * b != a))).astype(quotient.dtype)


@converts("Mod")
def _mod(call: Call) -> Any:
    return rg.fmod(*call.all()) if call.attr("fmod", 0) else rg.remainder(*call.all())


@converts("Pow")
def _pow(call: Call) -> Any:
    return _as(rg.power(call[0], call[1]), call.dtype(0))


@converts("BitShift")
def _bit_shift(call: Call) -> Any:
    shift = rg.left_shift if call.attr("direction") == "LEFT" else rg.right_shift
    return shift(*call.all())


@converts("IsInf")
def _is_inf(call: Call) -> Any:
    x = call[0]
    below, above = call.attr("detect_negative", 1), call.attr("detect_positive", 1)
    if below and above:
        return rg.isinf(x)
    if not below and not above:
        return lifted(lambda v: np.zeros(np.shape(v), bool), x)
    return rg.equal(x, np.inf if above else -np.inf)


@converts("Clip")
def _clip(call: Call) -> Any:
    x = call[0]
    low = call[1] if call.has(1) else call.attr("min")
    high = call[2] if call.has(2) else call.attr("max")
    if low is not None:
        x = rg.maximum(x, low)
    return x if high is None else rg.minimum(x, high)


def _as(x: Any, dtype: Any) -> Any:
    return rg.astype(x, dtype)


@converts("Cast")
def _cast(call: Call) -> Any:
    return _as(call[0], call.dtype_attr("to"))


@converts("CastLike")
def _cast_like(call: Call) -> Any:
    return _as(call[0], call.dtype(1))


@converts("BitCast")
def _bit_cast(call: Call) -> Any:
    dtype = call.dtype_attr("to")
    return lifted(lambda x: np.ascontiguousarray(x).reshape(np.shape(x)).view(dtype), call[0])


@converts("Elu")
def _elu(call: Call) -> Any:
    return rg.elu(call[0], call.attr("alpha", 1.0))


@converts("Celu")
def _celu(call: Call) -> Any:
    return rg.celu(call[0], call.attr("alpha", 1.0))


@converts("Selu")
def _selu(call: Call) -> Any:
    x = call[0]
    alpha, gamma = (
        call.attr("alpha", 1.67326319217681884765625),
        call.attr("gamma", 1.05070102214813232421875),
    )
    return gamma * rg.where(rg.greater(x, 0), x, alpha * rg.expm1(rg.minimum(x, 0)))


@converts("LeakyRelu")
def _leaky_relu(call: Call) -> Any:
    return rg.leaky_relu(call[0], call.attr("alpha", 0.01))


@converts("PRelu")
def _prelu(call: Call) -> Any:
    x, slope = call.all()
    return rg.where(rg.less(x, 0), x * slope, x)


@converts("ThresholdedRelu")
def _thresholded_relu(call: Call) -> Any:
    x = call[0]
    return rg.where(rg.greater(x, call.attr("alpha", 1.0)), x, rg.multiply(x, 0))


@converts("HardSigmoid")
def _hard_sigmoid(call: Call) -> Any:
    return rg.clip(call[0] * call.attr("alpha", 0.2) + call.attr("beta", 0.5), 0.0, 1.0)


@converts("HardSwish")
def _hard_swish(call: Call) -> Any:
    return rg.hardswish(call[0])


@converts("Swish")
def _swish(call: Call) -> Any:
    x = call[0]
    return x * rg.sigmoid(x * call.attr("alpha", 1.0))


@converts("Gelu")
def _gelu(call: Call) -> Any:
    return rg.gelu(call[0], call.attr("approximate", "none"))


@converts("Shrink")
def _shrink(call: Call) -> Any:
    x = call[0]
    bias, lambd = call.attr("bias", 0.0), call.attr("lambd", 0.5)
    moved = rg.where(rg.less(x, -lambd), x + bias, rg.where(rg.greater(x, lambd), x - bias, x * 0))
    return _as(moved, call.dtype(0))


@converts("Dropout")
def _dropout(call: Call) -> Any:
    training = bool(call.number(2, False)) and call.version >= 12
    ratio = call.number(1, call.attr("ratio", 0.5))
    if training and ratio:
        raise call.refuse("dropout in training mode, whose numbers no seed of ONNX fixes,")
    x = call[0]
    return (x, rg.full_like(x, True, dtype=bool)) if len(call.node.output) > 1 else x
