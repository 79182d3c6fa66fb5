"""Formulas of PNNX: ``add(@0,mul(@1,2))`` of operands, numbers and lengths."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError
from reactgrad.models.pnnx._call import Call, Length, converts, shape_of

MAX_DEPTH: Final = 200
_TOKEN = re.compile(r"\[|\]|\(|\)|,|[^\[\](),]+")

# fmt: off
# Functions of one number or node: by the name of the formula, that of NumPy, which ours is called by, too.
UNARY: Final = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "ceil": "ceil", "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1",
    "floor": "floor", "log": "log", "log10": "log10", "log1p": "log1p", "neg": "negative",
    "reciprocal": "reciprocal", "round": "rint", "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt",
    "square": "square", "tan": "tan", "tanh": "tanh", "trunc": "trunc", "log2": "log2", "exp2": "exp2",
    "logical_not": "logical_not",
}
OURS: Final = {"erf": "erf", "rsqrt": "rsqrt", "sigmoid": "sigmoid", "relu": "relu", "erfc": "erfc"}
BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift, "pow": operator.pow,
}
FUNCTIONS: Final = {
    "atan2": "arctan2", "fmod": "fmod", "max": "maximum", "maximum": "maximum", "min": "minimum",
    "minimum": "minimum", "logaddexp": "logaddexp",
}
ARITY: Final = {**dict.fromkeys((*UNARY, *OURS), 1), **dict.fromkeys((*BINARY, *FUNCTIONS), 2)}
KINDS: Final = {"torch.bool": "?", "torch.float": "f4", "torch.long": "i8"}
# fmt: on


@converts("pnnx.Expression")
def _expression(call: Call) -> Any:
    return evaluated(call, call.one.params.get("expr") or "", call.values)


def evaluated(call: Call, text: str, operands: list[Any]) -> Any:
    """Return the value of a formula: a node, a number, or a list of such."""
    tokens = _TOKEN.findall(text)
    at = 0

    def parse(depth: int) -> Any:
        nonlocal at
        if depth > MAX_DEPTH or at >= len(tokens):
            raise ModelError(
                f"{call}: {text[:40]!r} is no formula, or is nested too deep. The file is damaged."
            )
        token = tokens[at]
        at += 1
        if token == "[":
            return arguments("]", depth)
        if at < len(tokens) and tokens[at] == "(":
            at += 1
            return _applied(call, token, arguments(")", depth))
        count = ARITY.get(token, 0) if at < len(tokens) and tokens[at] == "," else 0
        if count:  # pnnx writes some functions as ``expm1,@0``
            found: list[Any] = []
            for _ in range(count):
                at += at < len(tokens) and tokens[at] == ","
                found.append(parse(depth + 1))
            return _applied(call, token, found)
        return _atom(call, token, operands)

    def arguments(end: str, depth: int) -> list[Any]:
        nonlocal at
        found: list[Any] = []
        while at < len(tokens) and tokens[at] != end:
            found.append(parse(depth + 1))
            if at < len(tokens) and tokens[at] == ",":
                at += 1
        if at >= len(tokens):
            raise ModelError(f"{call}: {text[:40]!r} does not end. The file is damaged.")
        at += 1
        return found

    found = parse(0)
    if at < len(tokens):
        raise ModelError(f"{call}: {text[:40]!r} is no formula. The file is damaged.")
    return found


def _atom(call: Call, token: str, operands: list[Any]) -> Any:
    if token[0] == "@":
        place = token[1:]
        if not place.isdigit() or len(place) > 6 or int(place) >= len(operands):
            raise ModelError(f"{call}: there is no operand {token[:10]!r}. The file is damaged.")
        return operands[int(place)]
    if token in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[token]
    if token in KINDS:
        return np.dtype(KINDS[token])
    for kind in (int, float, complex):
        try:
            return kind(token)
        except ValueError:
            continue
    return token


def _applied(call: Call, name: str, arguments: list[Any]) -> Any:
    if name == "size":
        return _size(call, arguments)
    if any(isinstance(a, Length) for a in arguments):
        raise call.refuse(f"{name} of a length that is not known")
    live = any(isinstance(a, rg.Var | np.ndarray) for a in arguments)
    try:
        if len(arguments) == 1:
            (x,) = arguments
            if name in UNARY:
                return (
                    getattr(rg if live else np, UNARY[name])(x)
                    if live
                    else _number(getattr(np, UNARY[name])(x))
                )
            if name in OURS:
                return getattr(rg, OURS[name])(x) if live else _alone(name, x)
            if name in KINDS:
                return (
                    rg.astype(x, KINDS[name])
                    if live
                    else {"?": bool, "f4": float, "i8": int}[KINDS[name]](x)
                )
            if name == "int":
                return rg.astype(x, "i8") if live else int(x)
        if len(arguments) == 2:
            if name in BINARY:
                return _two(name, *arguments)
            if name in FUNCTIONS:
                return (
                    getattr(rg, FUNCTIONS[name])(*arguments)
                    if live
                    else _number(getattr(np, FUNCTIONS[name])(*arguments))
                )
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise ModelError(
            f"{call}: {name} of {arguments!r:.60}: {error}. The file is damaged."
        ) from error
    raise call.refuse(f"the function {name!r:.20} of {len(arguments)} operands in a formula")


def _two(name: str, a: Any, b: Any) -> Any:
    if (
        not isinstance(a, rg.Var | np.ndarray)
        and not isinstance(b, rg.Var | np.ndarray)
        and name in ("pow", "lshift")
    ):
        if abs(b) > 1024:
            raise OverflowError("the result is too large")
        return a**b if name == "pow" else a << b
    return BINARY[name](a, b)


def _number(value: Any) -> Any:
    return value.item()


def _alone(name: str, x: float) -> float:
    if name == "rsqrt":
        return 1.0 / math.sqrt(x)
    if name == "sigmoid":
        return 1.0 / (1.0 + math.exp(-x))
    return max(x, 0.0) if name == "relu" else getattr(math, name)(x)


def _size(call: Call, arguments: list[Any]) -> Any:
    if not isinstance(arguments[0], rg.Var | np.ndarray):
        raise call.refuse("the size of a number")
    shape = [
        Length(arguments[0], i) if n is None else n for i, n in enumerate(shape_of(arguments[0]))
    ]
    if len(arguments) == 1:
        return shape
    if not isinstance(arguments[1], int) or not -len(shape) <= arguments[1] < len(shape):
        raise ModelError(
            f"{call}: there is no axis {arguments[1]!r:.20} of {len(shape)}. The file is damaged."
        )
    return shape[arguments[1]]
