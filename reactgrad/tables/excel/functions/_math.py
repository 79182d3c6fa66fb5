"""Arithmetic, powers, angles, rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._cells import Live, divided, lifted, live, number, op, smooth
from reactgrad.tables.excel._values import DIV, NUM, Fault, as_number
from reactgrad.tables.excel.functions._register import FUNCTIONS, single, whole

UNARY = {
    "EXP": "exp",
    "SIN": "sin",
    "COS": "cos",
    "TAN": "tan",
    "SINH": "sinh",
    "COSH": "cosh",
    "TANH": "tanh",
    "ASIN": "arcsin",
    "ACOS": "arccos",
    "ATAN": "arctan",
    "ASINH": "arcsinh",
    "ACOSH": "arccosh",
    "ATANH": "arctanh",
    "ABS": "absolute",
    "SIGN": "sign",
    "SQRT": "sqrt",
    "INT": "floor",
    "DEGREES": "degrees",
    "RADIANS": "radians",
}


def _unary(name: str) -> Any:
    def function(x: Any) -> Any:
        return op(getattr(rg, name), getattr(np, name), x)

    return function


for _excel, _numpy in UNARY.items():
    single(_excel)(_unary(_numpy))


def positive(x: Any) -> Any:
    """Return a number that is above zero; else an error."""
    value = number(x)
    if isinstance(value, rg.Var):
        return Live(rg.where(value <= 0.0, np.nan, value), "number")
    if value <= 0.0:
        raise Fault(NUM)
    return value


@single("LN")
def _ln(x: Any) -> Any:
    return op(rg.log, np.log, positive(x))


@single("LOG10")
def _log10(x: Any) -> Any:
    return op(rg.log10, np.log10, positive(x))


@single("LOG")
def _log(x: Any, base: Any = 10.0) -> Any:
    if base == 10.0:
        return _log10(x)
    return divided(_ln(x), _ln(base))


def _inverse(name: str, of: str) -> None:
    """Register one over a function, such as the cotangent."""
    single(name)(lambda x: divided(1.0, FUNCTIONS[of](x)))


for _reciprocal, _of in {
    "COT": "TAN",
    "CSC": "SIN",
    "SEC": "COS",
    "COTH": "TANH",
    "CSCH": "SINH",
    "SECH": "COSH",
}.items():
    _inverse(_reciprocal, _of)


@single("ACOT")
def _acot(x: Any) -> Any:
    return op(lambda v: math.pi / 2.0 - rg.arctan(v), lambda v: math.pi / 2.0 - np.arctan(v), x)


@single("ACOTH")
def _acoth(x: Any) -> Any:
    return FUNCTIONS["ATANH"](divided(1.0, x))


@single("FACTDOUBLE")
def _factdouble(x: Any) -> Any:
    return lifted(lambda a: float(math.prod(range(_factor(a, 300), 1, -2))), x, kind="number")


@whole("PI")
def _pi() -> float:
    return math.pi


@single("POWER")
def power(x: Any, y: Any) -> Any:
    """Return a power; zero to a power below zero is an error."""
    a, b = number(x), number(y)
    if not isinstance(a, rg.Var) and not isinstance(b, rg.Var):
        if a == 0.0 and b < 0.0:
            raise Fault(DIV)
        if a == 0.0 and b == 0.0:
            raise Fault(NUM)
    return op(lambda u, v: u**v, np.power, x, y)


@single("MOD")
def _mod(x: Any, y: Any) -> Any:
    divisor = number(y)
    if not isinstance(divisor, rg.Var) and divisor == 0.0:
        raise Fault(DIV)
    return op(rg.remainder, np.remainder, x, y)


@single("QUOTIENT")
def _quotient(x: Any, y: Any) -> Any:
    return op(rg.trunc, np.trunc, divided(x, y))


@single("ATAN2")
def _atan2(x: Any, y: Any) -> Any:
    if x == 0.0 and y == 0.0:
        raise Fault(DIV)
    return op(rg.arctan2, np.arctan2, y, x)


@single("SQRTPI")
def _sqrtpi(x: Any) -> Any:
    return op(lambda v: rg.sqrt(v * math.pi), lambda v: np.sqrt(v * math.pi), x)


def _steps(x: float, digits: float, rule: Any) -> float:
    """Return a number rounded to so many digits. Decimal digits, not bits, decide about a half, as in Excel."""
    digits = int(digits)
    if abs(digits) > 300:
        return x if digits > 0 else 0.0
    scale = 10.0 ** abs(digits)
    scaled = x * scale if digits >= 0 else x / scale
    nearest = float(f"{scaled:.15g}")
    found = rule(nearest)
    return found / scale if digits >= 0 else found * scale


def _half_up(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


def _up(x: float) -> float:
    return math.copysign(math.ceil(abs(x)), x)


def _stepping(rule: Any, name: str) -> Any:
    def rounded(x: Any, digits: Any = 0.0) -> float:
        return _steps(as_number(x), as_number(digits), rule)

    rounded.__name__ = name

    def function(x: Any, digits: Any = 0.0) -> Any:
        return lifted(rounded, x, 0.0 if digits is None else digits, kind="number")

    return function


single("ROUND")(_stepping(_half_up, "round"))
single("ROUNDUP")(_stepping(_up, "roundup"))
single("ROUNDDOWN", "TRUNC")(_stepping(math.trunc, "rounddown"))


def _multiple(x: float, unit: float, rule: Any) -> float:
    if unit == 0.0:
        return 0.0
    return rule(float(f"{x / unit:.15g}")) * unit


@single("CEILING")
def _ceiling(x: Any, unit: Any = 1.0) -> Any:
    def ceiling(a: Any, b: Any) -> float:
        value, step = as_number(a), as_number(b)
        if value > 0.0 > step:
            raise Fault(NUM)
        return _multiple(value, step, math.ceil)

    return lifted(ceiling, x, unit, kind="number")


@single("FLOOR")
def _floor(x: Any, unit: Any = 1.0) -> Any:
    def floor(a: Any, b: Any) -> float:
        value, step = as_number(a), as_number(b)
        if value > 0.0 > step:
            raise Fault(NUM)
        if step == 0.0 and value:
            raise Fault(DIV)
        return _multiple(value, step, math.floor)

    return lifted(floor, x, unit, kind="number")


@single("CEILING.MATH", "CEILING.PRECISE", "ISO.CEILING")
def _ceiling_math(x: Any, unit: Any = 1.0) -> Any:
    return lifted(
        lambda a, b: _multiple(as_number(a), abs(as_number(b)), math.ceil), x, unit, kind="number"
    )


@single("FLOOR.MATH", "FLOOR.PRECISE")
def _floor_math(x: Any, unit: Any = 1.0) -> Any:
    return lifted(
        lambda a, b: _multiple(as_number(a), abs(as_number(b)), math.floor), x, unit, kind="number"
    )


@single("MROUND")
def _mround(x: Any, unit: Any) -> Any:
    return lifted(
        lambda a, b: _multiple(as_number(a), as_number(b), _half_up), x, unit, kind="number"
    )


@single("EVEN")
def _even(x: Any) -> Any:
    return lifted(lambda a: _up(as_number(a) / 2.0) * 2.0, x, kind="number")


@single("ODD")
def _odd(x: Any) -> Any:
    def odd(a: Any) -> float:
        value = as_number(a)
        found = math.ceil(abs(value))
        return math.copysign(found if found % 2 else found + 1, value)

    return lifted(odd, x, kind="number")


def _factor(value: Any, most: int) -> int:
    """Return a whole number whose factorial is a float."""
    found = int(as_number(value))
    if not -1 <= found <= most:
        raise Fault(NUM)
    return found


@single("FACT")
def _fact(x: Any) -> Any:
    return lifted(lambda a: float(math.factorial(_factor(a, 170))), x, kind="number")


@single("COMBIN")
def _combin(n: Any, k: Any) -> Any:
    return lifted(
        lambda a, b: float(math.comb(_factor(a, 100_000), _factor(b, 100_000))), n, k, kind="number"
    )


@whole("GCD")
def _gcd(*values: Any) -> Any:
    return lifted(
        lambda *v: float(math.gcd(*[int(as_number(one)) for one in v])), *values, kind="number"
    )


@whole("LCM")
def _lcm(*values: Any) -> Any:
    return lifted(
        lambda *v: float(math.lcm(*[int(as_number(one)) for one in v])), *values, kind="number"
    )


@single("GAMMALN")
def _gammaln(x: Any) -> Any:
    return smooth(math.lgamma, x)


@single("NORMSDIST")
def norm_cdf(x: Any) -> Any:
    """Return the distribution function of the normal distribution."""
    return op(rg.norm_cdf, lambda v: 0.5 * math.erfc(-v / math.sqrt(2.0)), x)


def norm_pdf(x: Any) -> Any:
    """Return the density of the normal distribution."""
    return op(rg.norm_pdf, lambda v: math.exp(-v * v / 2.0) / math.sqrt(2.0 * math.pi), x)


def minus(a: Any, b: Any) -> Any:
    """Return a difference."""
    return op(lambda u, v: u - v, lambda u, v: u - v, a, b)


def times(a: Any, b: Any) -> Any:
    """Return a product."""
    return op(lambda u, v: u * v, lambda u, v: u * v, a, b)


def plus(a: Any, b: Any) -> Any:
    """Return a sum."""
    return op(lambda u, v: u + v, lambda u, v: u + v, a, b)


@single("NORM.S.DIST")
def _norm_s_dist(x: Any, cumulative: Any = True) -> Any:
    return norm_cdf(x) if cumulative not in (False, 0.0) else norm_pdf(x)


@single("NORM.DIST", "NORMDIST")
def _norm_dist(x: Any, mean: Any, std: Any, cumulative: Any = True) -> Any:
    z = divided(minus(x, mean), std)
    return norm_cdf(z) if cumulative not in (False, 0.0) else divided(norm_pdf(z), std)


@single("NORMSINV", "NORM.S.INV")
def norm_inv(p: Any) -> Any:
    """Return the quantile of the normal distribution."""
    from statistics import NormalDist

    def theirs(v: float) -> float:
        if not 0.0 < v < 1.0:
            raise Fault(NUM)
        return NormalDist().inv_cdf(v)

    return op(rg.ndtri, theirs, p) if hasattr(rg, "ndtri") else smooth(theirs, p)


@single("NORMINV", "NORM.INV")
def _norm_inv(p: Any, mean: Any, std: Any) -> Any:
    return plus(mean, times(std, norm_inv(p)))


def added(values: list[Any]) -> Any:
    """Return the sum of numbers and nodes."""
    known = math.fsum(one for one in values if not isinstance(one, rg.Var))
    nodes = [one for one in values if isinstance(one, rg.Var)]
    if not nodes:
        return live(known)
    found = (
        nodes[0]
        if len(nodes) == 1
        else nodes[0] + nodes[1]
        if len(nodes) == 2
        else rg.stack(nodes).sum()
    )
    return live(found + known if known else found)
