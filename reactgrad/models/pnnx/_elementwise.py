"""Activations, comparisons and what else is computed element by element."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models.pnnx._call import Call, converts
from reactgrad.models.pnnx._expression import BINARY, FUNCTIONS, UNARY

# fmt: off
# Operators of one operand without arguments: the last part of the name, and our function.
PLAIN: Final = {
    "F.relu": "relu", "nn.ReLU": "relu", "F.relu6": "relu6", "nn.ReLU6": "relu6", "F.sigmoid": "sigmoid",
    "nn.Sigmoid": "sigmoid", "F.tanh": "tanh", "nn.Tanh": "tanh", "F.silu": "silu", "nn.SiLU": "silu",
    "F.mish": "mish", "nn.Mish": "mish", "F.softsign": "softsign", "nn.Softsign": "softsign",
    "F.tanhshrink": "tanhshrink", "nn.Tanhshrink": "tanhshrink", "F.logsigmoid": "log_sigmoid",
    "nn.LogSigmoid": "log_sigmoid", "F.hardsigmoid": "hardsigmoid", "nn.Hardsigmoid": "hardsigmoid",
    "F.hardswish": "hardswish", "nn.Hardswish": "hardswish", "F.selu": "selu", "nn.SELU": "selu",
    "torch.logical_not": "logical_not", "torch.bitwise_not": "invert", "torch.real": "real", "torch.imag": "imag",
    "torch.lgamma": "gammaln", "torch.t": "transpose",
    **{f"torch.{name}": ours for name, ours in UNARY.items()},
}
TWO: Final = {
    "torch.eq": "equal", "torch.ne": "not_equal", "torch.lt": "less", "torch.le": "less_equal",
    "torch.gt": "greater", "torch.ge": "greater_equal", "torch.logical_and": "logical_and",
    "torch.logical_or": "logical_or", "torch.logical_xor": "logical_xor", "torch.bitwise_and": "bitwise_and",
    "torch.bitwise_or": "bitwise_or", "torch.bitwise_xor": "bitwise_xor",
    "torch.bitwise_left_shift": "left_shift", "torch.bitwise_right_shift": "right_shift",
    **{f"torch.{name}": ours for name, ours in FUNCTIONS.items() if name not in ("max", "min")},
}
# One with a number, and the number PyTorch takes where the file has none.
WITH_NUMBER: Final = {
    "elu": ("elu", "alpha", 1.0), "celu": ("celu", "alpha", 1.0),
    "leaky_relu": ("leaky_relu", "negative_slope", 0.01), "softshrink": ("softshrink", "lambd", 0.5),
    "hardshrink": ("hardshrink", "lambd", 0.5),
}
LAYERS: Final = {
    "elu": "ELU", "celu": "CELU", "leaky_relu": "LeakyReLU", "softshrink": "Softshrink", "hardshrink": "Hardshrink",
}
# fmt: on


@converts(*PLAIN)
def _plain(call: Call) -> Any:
    return getattr(rg, PLAIN[call.op])(call.x())


@converts(*TWO)
def _two(call: Call) -> Any:
    return getattr(rg, TWO[call.op])(call.x(), _other(call))


@converts(
    *[
        f"torch.{name}"
        for name in BINARY
        if name in ("add", "sub", "mul", "div", "floor_divide", "remainder", "pow")
    ]
)
def _binary(call: Call) -> Any:
    other = call("exponent") if "exponent" in call.one.params else _other(call)
    alpha = call("alpha", 1)
    return BINARY[call.op.partition(".")[2]](call.x(), other if alpha == 1 else other * alpha)


def _other(call: Call) -> Any:
    return call("other") if "other" in call.one.params or "other" in call.one.named else call[1]


@converts(*[f"F.{name}" for name in LAYERS], *[f"nn.{name}" for name in LAYERS.values()])
def _with_number(call: Call) -> Any:
    short = call.op.partition(".")[2]
    name, argument, default = next(
        row for key, row in WITH_NUMBER.items() if short in (key, LAYERS[key])
    )
    return getattr(rg, name)(call.x(), call(argument, default))


@converts("F.gelu", "nn.GELU")
def _gelu(call: Call) -> Any:
    return rg.gelu(call.x(), call("approximate", None) or "none")


@converts("F.hardtanh", "nn.Hardtanh")
def _hardtanh(call: Call) -> Any:
    return rg.hardtanh(call.x(), call("min_val", -1.0), call("max_val", 1.0))


@converts("F.softplus", "nn.Softplus")
def _softplus(call: Call) -> Any:
    return rg.softplus(call.x(), call("beta", 1.0), call("threshold", 20.0))


@converts("F.threshold", "nn.Threshold")
def _threshold(call: Call) -> Any:
    return rg.threshold(call.x(), call("threshold"), call("value"))


@converts("F.rrelu", "nn.RReLU")
def _rrelu(call: Call) -> Any:
    return rg.leaky_relu(call.x(), (call("lower", 1 / 8) + call("upper", 1 / 3)) / 2)


@converts("F.prelu", "nn.PReLU")
def _prelu(call: Call) -> Any:
    return rg.prelu(call.x(), call.either("weight", 1))


@converts("torch.clamp")
def _clamp(call: Call) -> Any:
    return rg.clip(call.x(), call("min", None), call("max", None))


@converts("torch.where")
def _where(call: Call) -> Any:
    condition = call.x("condition")
    return rg.where(
        condition,
        call("input") if _has(call, "input") else call[1],
        call("other") if _has(call, "other") else call[2],
    )


def _has(call: Call, name: str) -> bool:
    return name in call.one.params or name in call.one.named


@converts("Tensor.masked_fill")
def _masked_fill(call: Call) -> Any:
    value = call("value") if _has(call, "value") else call[2]
    return rg.where(call.x("mask", 1), value, call.x())


@converts(
    *(
        "torch.clone",
        "torch.positive",
        "Tensor.contiguous",
        "Tensor.detach",
        "nn.Identity",
        "Tensor.clone",
    ),
    *(
        "F.dropout",
        "F.dropout2d",
        "F.dropout3d",
        "F.alpha_dropout",
        "F.feature_alpha_dropout",
        "nn.AlphaDropout",
    ),
    *("nn.Dropout", "nn.Dropout2d", "nn.Dropout3d", "torch.detach"),
)
def _itself(call: Call) -> Any:
    if call("training", False) is True:
        raise call.refuse("dropout in training mode")
    return call.x()


@converts("Tensor.to", "Tensor.type_as")
def _to(call: Call) -> Any:
    kind = call("dtype", None)
    names = {"torch.float": "f4", "torch.double": "f8", "torch.half": "f2", "torch.long": "i8", "torch.int": "i4",
             "torch.bool": "?", "torch.short": "i2", "torch.int8": "i1", "torch.uint8": "u1"}  # fmt: skip
    if call.op == "Tensor.type_as":
        return rg.astype(call[0], np.dtype(call[1].dtype))
    if kind is None:
        return call.x()
    if kind not in names:
        raise call.refuse(f"dtype={kind}")
    return rg.astype(call.x(), names[kind])


@converts("torch.addmm", "torch.baddbmm")
def _addmm(call: Call) -> Any:
    product = operator.matmul(call[1], call[2])
    alpha, beta = call("alpha", 1), call("beta", 1)
    return (call[0] if beta == 1 else call[0] * beta) + (product if alpha == 1 else product * alpha)


@converts("torch.matmul", "torch.bmm", "torch.mm", "torch.mv")
def _matmul(call: Call) -> Any:
    return rg.matmul(call[0], call[1])


@converts("torch.einsum")
def _einsum(call: Call) -> Any:
    operands = call.values
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = list(operands[0])
    return rg.einsum(call("equation"), *operands)


@converts("torch.cross", "aten::linalg_cross")
def _cross(call: Call) -> Any:
    axis = int(call[2]) if len(call) > 2 else call.integer("dim", -1)
    return rg.linalg.cross(call[0], call[1], axis=axis)
