"""Arithmetic, comparisons and logic, element by element."""

from __future__ import annotations

from typing import Final

import numpy as np

from reactgrad.models.export._kernels import DType
from reactgrad.models.export._node import Node, writes

# fmt: off
SAME: Final = {  # ops of two operands in the dtype of the result
    "add": "Add", "subtract": "Sub", "multiply": "Mul",
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
}
LOGIC: Final = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "multiply": "And", "add": "Or"}
TESTS: Final = {
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}
# fmt: on


@writes(*SAME)
def _same(n: Node) -> str:
    if n.dtype.kind == "b":
        return n.emit(LOGIC[n.op], *n.all())
    return n.emit(SAME[n.op], *n.all(n.dtype))


@writes("divide")
def _divide(n: Node) -> str:
    return n.emit("Div", *n.all(n.dtype))


@writes(*TESTS)
def _test(n: Node) -> str:
    a, b = compared(n)
    return n.emit(TESTS[n.op], a, b, out=bool)


@writes("not_equal")
def _not_equal(n: Node) -> str:
    a, b = compared(n)
    return n.emit("Not", n.emit("Equal", a, b, out=bool))


def compared(n: Node) -> list[str]:
    """Return the operands of a comparison in the dtype to which they promote."""
    dtype = n.promoted()
    numbers = [v.number for v in n.values if v.number is not None]
    if dtype.kind in "iu" and any(not _fits(one, dtype) for one in numbers):
        dtype = np.dtype("i8")  # NumPy compares with the number as it is
    if dtype.kind == "b" and n.op != "equal" and n.op != "not_equal":
        dtype = np.dtype("i4")
    if n.op in ("equal", "not_equal") and dtype.kind == "b":
        return n.all(dtype)
    return n.all(dtype)


def _fits(number: complex, dtype: DType) -> bool:
    info = np.iinfo(dtype)
    return isinstance(number, int) and info.min <= number <= info.max


@writes("logical_and", "logical_or", "logical_xor")
def _logical(n: Node) -> str:
    name = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}[n.op]
    return n.emit(name, *(truth(n, i) for i in range(2)))


@writes("logical_not")
def _logical_not(n: Node) -> str:
    return n.emit("Not", truth(n, 0))


def truth(n: Node, i: int) -> str:
    """Return an operand as booleans: true where it is not 0."""
    return n.x(i, bool)


@writes("invert")
def _invert(n: Node) -> str:
    return n.emit("Not" if n.dtype.kind == "b" else "BitwiseNot", n[0])


@writes("negative")
def _negative(n: Node) -> str:
    if n.dtype.kind == "u":
        return n.emit("Sub", n.const(0, n.dtype), n[0])
    return n.emit("Neg", n.x(0, n.dtype))


@writes("positive", "conj", "real")
def _itself(n: Node) -> str:
    return n.x(0, n.dtype)


@writes("absolute", "fabs")
def _absolute(n: Node) -> str:
    if n.dtype.kind in "bu":
        return n.x(0, n.dtype)
    return n.emit("Abs", n.x(0, n.dtype))


@writes("sign")
def _sign(n: Node) -> str:
    sign = n.emit("Sign", n.x(0, n.dtype))
    if n.dtype.kind != "f":
        return sign
    # Sign of NaN differs from runtime to runtime.
    return n.emit("Where", n.emit("IsNaN", n[0], out=bool), n[0], sign, of=1)


@writes("maximum", "minimum", "fmax", "fmin")
def _extremum(n: Node) -> str:
    name = {"max": "Max", "min": "Min"}[n.op[-3:] if n.op[0] == "f" else n.op[:3]]
    if n.dtype.kind == "b":
        return n.emit("Or" if name == "Max" else "And", *n.all())
    a, b = n.all(n.dtype)
    found = n.emit(name, a, b)
    if n.op[0] == "f" and n.dtype.kind == "f":  # NaN loses
        found = n.emit("Where", n.emit("IsNaN", a, out=bool), b, found, of=1)
        found = n.emit("Where", n.emit("IsNaN", b, out=bool), a, found, of=1)
    return found


@writes("power")
def _power(n: Node) -> str:
    return n.emit("Pow", *n.all(n.dtype))


@writes("square")
def _square(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Mul", x, x)


@writes("reciprocal")
def _reciprocal(n: Node) -> str:
    return n.emit("Reciprocal", n.x(0, n.dtype))


@writes("floor_divide")
def _floor_divide(n: Node) -> str:
    a, b = n.all(n.dtype)
    if n.dtype.kind == "u":
        return n.emit("Div", a, b)
    # (a - a mod b) / b is exact in integers, and in floats what NumPy computes.
    quotient = n.emit("Div", n.emit("Sub", a, _mod(n, a, b)), b)
    return n.emit("Round", quotient) if n.dtype.kind == "f" else quotient


@writes("remainder")
def _remainder(n: Node) -> str:
    return _mod(n, *n.all(n.dtype))


@writes("fmod")
def _fmod(n: Node) -> str:
    return n.emit("Mod", *n.all(n.dtype), fmod=1)


def _mod(n: Node, a: str, b: str) -> str:
    if n.dtype.kind != "f":
        return n.emit("Mod", a, b)
    rest = n.emit("Mod", a, b, fmod=1)  # with the sign of a
    zero = n.const(0, n.dtype)
    other = n.emit("Less", n.emit("Mul", n.emit("Sign", rest), n.emit("Sign", b)), zero, out=bool)
    return n.emit("Where", other, n.emit("Add", rest, b), rest, of=1)


@writes("where")
def _where(n: Node) -> str:
    condition = truth(n, 0)
    if n.dtype.kind == "b":
        x, y = n.x(1, bool), n.x(2, bool)
        yes = n.emit("And", condition, x)
        return n.emit("Or", yes, n.emit("And", n.emit("Not", condition), y))
    return n.emit("Where", condition, n.x(1, n.dtype), n.x(2, n.dtype), of=1)


@writes("clip")
def _clip(n: Node) -> str:
    kinds = n.attrs[0]
    x = n.x(0, n.dtype)
    for i, kind in enumerate(kinds, 1):
        x = n.emit("Max" if kind == "l" else "Min", x, n.x(i, n.dtype))
    return x


@writes("astype")
def _astype(n: Node) -> str:
    return n.x(0, n.dtype)


@writes("isnan")
def _isnan(n: Node) -> str:
    if n.dtype_of(0).kind != "f":
        return n.emit("Not", n.emit("Equal", n[0], n[0], out=bool))
    return n.emit("IsNaN", n[0], out=bool)


@writes("isinf")
def _isinf(n: Node) -> str:
    if n.dtype_of(0).kind != "f":
        return n.emit("Not", n.emit("Equal", n[0], n[0], out=bool))
    return n.emit("IsInf", n[0], out=bool)


@writes("isfinite")
def _isfinite(n: Node) -> str:
    if n.dtype_of(0).kind != "f":
        return n.emit("Equal", n[0], n[0], out=bool)
    bad = n.emit("Or", n.emit("IsNaN", n[0], out=bool), n.emit("IsInf", n[0], out=bool))
    return n.emit("Not", bad)
