"""Functions of one or two numbers, element by element.

The standard's ``Erf``, ``Atan`` and others are computed in single precision by the runtimes. In double precision
they are put together of functions that are: each formula names what it rests on.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad.models.export._kernels import KERNELS, code
from reactgrad.models.export._node import Node, writes

# fmt: off
PLAIN: Final = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "sigmoid": "Sigmoid",
    "relu": "Relu", "floor": "Floor", "ceil": "Ceil", "rint": "Round",
}
# fmt: on


@writes(*PLAIN)
def _plain(n: Node) -> str:
    x = n.x(0, n.dtype)
    return (
        x if n.dtype.kind != "f" and n.op in ("floor", "ceil", "rint") else n.emit(PLAIN[n.op], x)
    )


@writes("exp2")
def _exp2(n: Node) -> str:
    return n.emit("Pow", n.const(2, n.dtype), n.x(0, n.dtype))


@writes("log2", "log10")
def _log_to_base(n: Node) -> str:
    base = math.log(2.0 if n.op == "log2" else 10.0)
    return n.emit("Div", n.emit("Log", n.x(0, n.dtype)), n.const(base, n.dtype))


@writes("rsqrt")
def _rsqrt(n: Node) -> str:
    return n.emit("Reciprocal", n.emit("Sqrt", n.x(0, n.dtype)))


@writes("trunc")
def _trunc(n: Node) -> str:
    x = n.x(0, n.dtype)
    if n.dtype.kind != "f":
        return x
    return n.emit("Mul", n.emit("Sign", x), n.emit("Floor", n.emit("Abs", x)))


@writes("round")
def _round(n: Node) -> str:
    x, decimals = n.x(0, n.dtype), n.attrs[0]
    if n.dtype.kind != "f":
        return x if decimals >= 0 else n.refuse("of integers")
    if not decimals:
        return n.emit("Round", x)
    scale = n.const(10.0 ** abs(decimals), n.dtype)
    there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
    return n.emit(back, n.emit("Round", n.emit(there, x, scale)), scale)


@writes("deg2rad", "rad2deg")
def _degrees(n: Node) -> str:
    factor = math.pi / 180.0 if n.op == "deg2rad" else 180.0 / math.pi
    return n.emit("Mul", n.x(0, n.dtype), n.const(factor, n.dtype))


# --- exponentials and logarithms -----------------------------------------------------------------


def exp_minus_1(n: Node, x: str) -> str:
    """Return exp(x) - 1: tanh(x / 2) (exp(x) + 1), which keeps its digits near 0."""
    half = n.emit("Tanh", n.emit("Mul", x, n.const(0.5, n.dtype)))
    return n.emit("Mul", half, n.emit("Add", n.emit("Exp", x), n.const(1, n.dtype)))


@writes("expm1")
def _expm1(n: Node) -> str:
    return exp_minus_1(n, n.x(0, n.dtype))


def log_1_plus(n: Node, x: str) -> str:
    """Return log(1 + x): with u = 1 + x, log(u) less the rounding error of u over u."""
    u = n.emit("Add", x, n.const(1, n.dtype))
    lost = n.emit("Sub", n.emit("Sub", u, n.const(1, n.dtype)), x)
    y = n.emit("Sub", n.emit("Log", u), n.emit("Div", lost, u))
    strange = n.emit(
        "Or", n.emit("IsInf", x, out=bool), n.emit("Equal", u, n.const(0, n.dtype), out=bool)
    )
    return n.emit("Where", strange, n.emit("Log", u), y, of=1)


@writes("log1p")
def _log1p(n: Node) -> str:
    return log_1_plus(n, n.x(0, n.dtype))


@writes("logaddexp")
def _logaddexp(n: Node) -> str:
    a, b = n.all(n.dtype)
    apart = n.emit("Sub", a, b)
    rest = log_1_plus(n, n.emit("Exp", n.emit("Neg", n.emit("Abs", apart))))
    same = n.emit("Equal", a, b, out=bool)  # infinite, perhaps
    rest = n.emit("Where", same, n.const(math.log(2.0), n.dtype), rest, of=1)
    return n.emit("Add", n.emit("Max", a, b), rest)


@writes("xlogy", "xlog1py")
def _xlogy(n: Node) -> str:
    x, y = n.all(n.dtype)
    log = n.emit("Log", y) if n.op == "xlogy" else log_1_plus(n, y)
    zero = n.const(0, n.dtype)
    return n.emit("Where", n.emit("Equal", x, zero, out=bool), zero, n.emit("Mul", x, log), of=1)


@writes("logit")
def _logit(n: Node) -> str:
    x = n.x(0, n.dtype)
    return n.emit("Log", n.emit("Div", x, n.emit("Sub", n.const(1, n.dtype), x)))


# --- hyperbolic and trigonometric ----------------------------------------------------------------


def _known(n: Node, op: str) -> bool:
    return code(n.dtype) in KERNELS[op]


@writes("sinh")
def _sinh(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Sinh"):
        return n.emit("Sinh", x)
    one = n.const(1, n.dtype)
    e = exp_minus_1(n, n.emit("Abs", x))
    rest = n.emit("Add", one, n.emit("Reciprocal", n.emit("Add", e, one)))
    size = n.emit("Mul", n.emit("Mul", e, n.const(0.5, n.dtype)), rest)
    return n.emit("Mul", n.emit("Sign", x), size)


@writes("cosh")
def _cosh(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Cosh"):
        return n.emit("Cosh", x)
    both = n.emit("Add", n.emit("Exp", x), n.emit("Exp", n.emit("Neg", x)))
    return n.emit("Mul", both, n.const(0.5, n.dtype))


@writes("arcsinh")
def _arcsinh(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Asinh"):
        return n.emit("Asinh", x)
    one, size = n.const(1, n.dtype), n.emit("Abs", x)
    square = n.emit("Mul", x, x)
    root = n.emit("Add", n.emit("Sqrt", n.emit("Add", square, one)), one)
    near = log_1_plus(n, n.emit("Add", size, n.emit("Div", square, root)))
    far = n.emit("Add", n.emit("Log", size), n.const(math.log(2.0), n.dtype))
    large = n.emit("Greater", size, n.const(1e9, n.dtype), out=bool)
    return n.emit("Mul", n.emit("Sign", x), n.emit("Where", large, far, near, of=1))


@writes("arccosh")
def _arccosh(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Acosh"):
        return n.emit("Acosh", x)
    one = n.const(1, n.dtype)
    t = n.emit("Sub", x, one)
    root = n.emit("Mul", n.emit("Sqrt", t), n.emit("Sqrt", n.emit("Add", x, one)))
    return log_1_plus(n, n.emit("Add", t, root))


@writes("arctanh")
def _arctanh(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Atanh"):
        return n.emit("Atanh", x)
    one = n.const(1, n.dtype)
    twice = n.emit("Div", n.emit("Add", x, x), n.emit("Sub", one, x))
    return n.emit("Mul", log_1_plus(n, twice), n.const(0.5, n.dtype))


@writes("tan")
def _tan(n: Node) -> str:
    x = n.x(0, n.dtype)
    return (
        n.emit("Tan", x) if _known(n, "Tan") else n.emit("Div", n.emit("Sin", x), n.emit("Cos", x))
    )


def arctan(n: Node, x: str) -> str:
    """Return the arc tangent; in double precision by one step of Newton's method from that of single precision."""
    if _known(n, "Atan"):
        return n.emit("Atan", x)
    x = n.emit("Max", n.emit("Min", x, n.const(1e300, n.dtype)), n.const(-1e300, n.dtype))
    single = n.emit("Atan", n.cast(x, "f4"))
    y = n.cast(single, n.dtype)
    sin, cos = n.emit("Sin", y), n.emit("Cos", y)
    left = n.emit("Sub", n.emit("Mul", x, cos), sin)
    return n.emit("Add", y, n.emit("Div", left, n.emit("Add", cos, n.emit("Mul", x, sin))))


@writes("arctan")
def _arctan(n: Node) -> str:
    return arctan(n, n.x(0, n.dtype))


@writes("arcsin", "arccos")
def _arcsin(n: Node) -> str:
    x, op = n.x(0, n.dtype), "Asin" if n.op == "arcsin" else "Acos"
    if _known(n, op):
        return n.emit(op, x)
    one = n.const(1, n.dtype)
    down, up = n.emit("Sub", one, x), n.emit("Add", one, x)
    if n.op == "arcsin":
        return arctan(n, n.emit("Div", x, n.emit("Sqrt", n.emit("Mul", down, up))))
    half = arctan(n, n.emit("Sqrt", n.emit("Div", down, up)))
    return n.emit("Add", half, half)


@writes("arctan2")
def _arctan2(n: Node) -> str:
    y, x = n.all(n.dtype)
    zero, pi = n.const(0, n.dtype), n.const(math.pi, n.dtype)
    plain = arctan(n, n.emit("Div", y, x))
    turn = n.emit("Where", n.emit("Less", y, zero, out=bool), n.emit("Neg", pi), pi, of=1)
    behind = n.emit("Less", x, zero, out=bool)
    found = n.emit("Where", behind, n.emit("Add", plain, turn), plain, of=1)
    nothing = n.emit("Equal", y, zero, out=bool)
    straight = n.emit("Where", behind, pi, zero, of=1)
    return n.emit("Where", nothing, straight, found, of=1)


@writes("hypot")
def _hypot(n: Node) -> str:
    a, b = (n.emit("Abs", one) for one in n.all(n.dtype))
    large, zero = n.emit("Max", a, b), n.const(0, n.dtype)
    share = n.emit("Div", n.emit("Min", a, b), large)
    share = n.emit("Where", n.emit("Equal", large, zero, out=bool), zero, share, of=1)
    root = n.emit("Sqrt", n.emit("Add", n.emit("Mul", share, share), n.const(1, n.dtype)))
    return n.emit("Mul", large, root)


# --- the error function --------------------------------------------------------------------------

# erfc(x) = exp(-x**2) w(x) for x >= 0; w as a sum of Chebyshev polynomials of t = (x - K) / (x + K).
_K: Final = 3.75


def _scaled_tail(x: Any) -> Any:
    """Return exp(x**2) erfc(x) for x >= 0, by the continued fraction or the series (for the coefficients)."""
    if x < 2.0:
        return math.exp(x * x) * math.erfc(x)
    found = 0.0
    for k in range(200, 0, -1):
        found = k / 2.0 / (x + found)
    return 1.0 / math.sqrt(math.pi) / (x + found)


def _coefficients(count: int) -> list[float]:
    angles = np.pi * (np.arange(256) + 0.5) / 256
    t = np.cos(angles)
    values = np.array([_scaled_tail(_K * (1 + one) / (1 - one)) for one in t])
    # w falls like 1 / x; times (1 + 2 x) it is smooth in t.
    values = values * (1 + 2 * _K * (1 + t) / (1 - t))
    return [
        float(2 / 256 * (values * np.cos(j * angles)).sum()) / (2 if not j else 1)
        for j in range(count)
    ]


def erfc(n: Node, x: str) -> str:
    """Return the complementary error function, accurate in the tail."""
    one, zero, dtype = n.const(1, n.dtype), n.const(0, n.dtype), n.dtype
    size = n.emit("Abs", x)
    t = n.emit(
        "Div", n.emit("Sub", size, n.const(_K, dtype)), n.emit("Add", size, n.const(_K, dtype))
    )
    t = n.emit("Where", n.emit("IsInf", size, out=bool), one, t, of=1)
    later, last = zero, zero
    twice = n.emit("Add", t, t)
    coefficients = _coefficients(30 if dtype == np.dtype("f8") else 15)
    for c in coefficients[:0:-1]:  # Clenshaw, 1955
        step = n.emit("Add", n.emit("Sub", n.emit("Mul", twice, last), later), n.const(c, dtype))
        later, last = last, step
    w = n.emit("Add", n.emit("Sub", n.emit("Mul", t, last), later), n.const(coefficients[0], dtype))
    w = n.emit("Div", w, n.emit("Add", one, n.emit("Add", size, size)))
    bell = n.emit("Exp", n.emit("Neg", n.emit("Mul", size, size)))
    tail = n.emit("Where", n.emit("IsInf", size, out=bool), zero, n.emit("Mul", bell, w), of=1)
    negative = n.emit("Less", x, zero, out=bool)
    return n.emit("Where", negative, n.emit("Sub", n.const(2, dtype), tail), tail, of=1)


@writes("erfc")
def _erfc(n: Node) -> str:
    return erfc(n, n.x(0, n.dtype))


@writes("norm_cdf")
def _norm_cdf(n: Node) -> str:
    x = n.emit("Mul", n.x(0, n.dtype), n.const(-math.sqrt(0.5), n.dtype))
    return n.emit("Mul", erfc(n, x), n.const(0.5, n.dtype))


@writes("erf")
def _erf(n: Node) -> str:
    x = n.x(0, n.dtype)
    if _known(n, "Erf"):
        return n.emit("Erf", x)
    far = n.emit(
        "Mul", n.emit("Sign", x), n.emit("Sub", n.const(1, n.dtype), erfc(n, n.emit("Abs", x)))
    )
    square = n.emit("Mul", x, x)
    series = n.const(0, n.dtype)  # Taylor's, where 1 - erfc would lose digits
    for k in range(17, -1, -1):
        term = n.const(
            (-1) ** k / (math.factorial(k) * (2 * k + 1)) * 2 / math.sqrt(math.pi), n.dtype
        )
        series = n.emit("Add", n.emit("Mul", series, square), term)
    small = n.emit("Less", n.emit("Abs", x), n.const(0.75, n.dtype), out=bool)
    return n.emit("Where", small, n.emit("Mul", x, series), far, of=1)


# --- others --------------------------------------------------------------------------------------


@writes("cbrt")
def _cbrt(n: Node) -> str:
    x = n.x(0, n.dtype)
    root = n.emit("Pow", n.emit("Abs", x), n.const(1.0 / 3.0, n.dtype))
    return n.emit("Mul", n.emit("Sign", x), root)


@writes("heaviside")
def _heaviside(n: Node) -> str:
    x, at_zero = n.all(n.dtype)
    zero = n.const(0, n.dtype)
    step = n.cast(n.emit("Greater", x, zero, out=bool), n.dtype)
    step = n.emit("Where", n.emit("Equal", x, zero, out=bool), at_zero, step, of=1)
    return n.emit("Where", n.emit("IsNaN", x, out=bool), x, step, of=1)


@writes("nan_to_num", "without_nan")
def _nan_to_num(n: Node) -> str:
    x = n.x(0, n.dtype)
    nan, high, low = n.attrs if n.op == "nan_to_num" else (n.attrs[0], np.inf, -np.inf)
    if n.dtype.kind != "f":
        return x
    limits = np.finfo(n.dtype)
    x = n.emit("Where", n.emit("IsNaN", x, out=bool), n.const(nan, n.dtype), x, of=1)
    if n.op == "without_nan":
        return x
    x = n.emit(
        "Where",
        _infinite(n, x, True),
        n.const(limits.max if high is None else high, n.dtype),
        x,
        of=1,
    )
    return n.emit(
        "Where",
        _infinite(n, x, False),
        n.const(limits.min if low is None else low, n.dtype),
        x,
        of=1,
    )


def _infinite(n: Node, x: str, positive: bool) -> str:
    return n.emit(
        "IsInf", x, out=bool, detect_negative=int(not positive), detect_positive=int(positive)
    )


@writes("isclose", "allclose")
def _isclose(n: Node) -> str:
    rtol, atol, equal_nan = n.attrs
    a, b = n.all(n.promoted() if n.promoted().kind == "f" else np.dtype("f8"))
    apart = n.emit("Abs", n.emit("Sub", a, b))
    dtype = n.draft.dtypes[a]
    limit = n.emit(
        "Add", n.emit("Mul", n.emit("Abs", b), n.const(rtol, dtype)), n.const(atol, dtype)
    )
    finite = n.emit("Not", n.emit("IsInf", b, out=bool))
    near = n.emit("And", n.emit("LessOrEqual", apart, limit, out=bool), finite)
    near = n.emit("Or", near, n.emit("Equal", a, b, out=bool))
    if equal_nan:
        near = n.emit(
            "Or", near, n.emit("And", *(n.emit("IsNaN", one, out=bool) for one in (a, b)))
        )
    if n.op == "isclose":
        return near
    return n.cast(n.emit("ReduceMin", n.cast(near, "i4"), keepdims=0), bool)


@writes("binary_cross_entropy")
def _binary_cross_entropy(n: Node) -> str:
    p, target = n.all(n.dtype)
    least, one = n.const(-100, n.dtype), n.const(1, n.dtype)
    yes = n.emit("Max", n.emit("Log", p), least)
    no = n.emit("Max", log_1_plus(n, n.emit("Neg", p)), least)
    both = n.emit("Add", n.emit("Mul", target, yes), n.emit("Mul", n.emit("Sub", one, target), no))
    return n.emit("Neg", both)
