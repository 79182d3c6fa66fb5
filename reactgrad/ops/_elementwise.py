"""Elementwise ops: one row each, with the derivative rule of every operand.

A rule is called as ``rule(g, ans, *operands)`` and returns `g` times the derivative of the result
`ans` by that operand. The same rule serves both modes: the Jacobian of an elementwise op is
diagonal, so one product takes the gradient of the result back (`g`) and the tangent of the operand
forward. The caller sums over, or repeats along, the axes that broadcasting has added. At kinks the
rules return what PyTorch returns (rule D11).

The rules of tanh, sigmoid and relu are kernels of their own, in ``_activation_grad``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, GraphError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply, apply_to_constants
from reactgrad.nodes._op import Attrs, Infer, Jvp, Op, Vjp
from reactgrad.ops._activation_grad import relu_grad, sigmoid_grad, tanh_grad
from reactgrad.ops._chain import over, times
from reactgrad.ops._complex import conj, real
from reactgrad.ops._gaussian import erf_slope, norm_pdf
from reactgrad.ops._shapes import broadcast, common_device, promote, ufunc_loop, ufunc_rule
from reactgrad.ops._where import where

LN_2: Final = math.log(2.0)
# An operand times the logarithm of the base could leave its dtype; the gradient times these does not.
ONE_OVER_LN_2: Final = 1.0 / math.log(2.0)
ONE_OVER_LN_10: Final = 1.0 / math.log(10.0)

ELEMENTWISE: Final[dict[str, Op]] = {}
UFUNCS: Final[dict[np.ufunc, Callable[..., Any]]] = {np.conjugate: conj}


def _define(
    name: str,
    ufunc: np.ufunc,
    does: str,
    example: str,
    *rules: Vjp | None,
    mirrors: bool = True,
    jvp: Jvp | None = None,
) -> Callable[..., Any]:
    """Make the op `name`, which promotes dtypes as `ufunc` does, and return its public function.

    ``jvp`` is the rule of forward mode, where that is another one: the Jacobian of a function of complex
    numbers that is not holomorphic has two parts. ``mirrors`` is true if the op computes that very ufunc; NumPy's function then makes the node, too.
    """
    arity, rule = ufunc.nin, ufunc_rule(ufunc, name)
    op = Op(
        name,
        rule if mirrors or ufunc is np.positive else _real(name, rule),
        rules or None,
        (jvp,) if jvp else rules or None,
        elementwise=True,
        broadcasts=True,
        loop_dtypes=ufunc_loop(ufunc),
        any_number=name in COMPARISONS,
    )
    ELEMENTWISE[name] = op
    function = public(op, arity, does, example, __name__)
    if mirrors:
        UFUNCS[ufunc] = function
    return function


def public(op: Op, arity: int, does: str, example: str, module: str) -> Callable[..., Any]:
    """Return the public function of an elementwise op without attributes, a documented one of `module`."""
    # Two functions with fixed arguments, and a short way for a handle: an op is called for every node.
    if arity == 1:

        def unary(x: Any, /) -> Any:
            return x._graph._apply(op, (x,), ()) if isinstance(x, Handle) else apply(op, (x,))

        function: Callable[..., Any] = unary
    else:

        def binary(x: Any, y: Any, /) -> Any:
            operands = (x, y)
            if isinstance(x, Handle):
                try:
                    return x._graph._apply(op, operands, ())
                except GraphError:
                    if (made := apply_to_constants(op, operands, ())) is None:
                        raise
                    return made
            return apply(op, operands)

        function = binary
    function.__name__ = function.__qualname__ = op.name
    function.__module__ = module
    function.__doc__ = _docstring(op.name, arity, does, example, any(op.vjps or ()))
    return function


def _real(name: str, infer: Infer) -> Infer:
    """Return a shape rule that refuses complex numbers and otherwise is `infer`."""

    def rule(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        found = infer(specs, attrs)
        if found.dtype.kind == "c":
            raise DTypeError(f"{name} of {specs[0]!r}: it takes real numbers only.")
        return found

    return rule


def _docstring(name: str, arity: int, does: str, example: str, has_rules: bool) -> str:
    operands = "x" if arity == 1 else "x, y"
    call, result = example.split(" -> ")
    gradient = (
        ""
        if has_rules
        else "\n    Has no gradient: it is constant or undefined nearly everywhere.\n"
    )
    return f"""{does}

    Parameters
    ----------
    {operands} : Var or array_like
        Any shapes that broadcast together; numeric dtypes, promoted as NumPy does.

    Returns
    -------
    Var
        Of the broadcast shape.
{gradient}
    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If the op is not defined for the dtypes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.{name}({call})
    >>> print(y.value)
    {result}
    """


COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _tie(g: Any, a: Any, b: Any, a_loses: Any) -> Any:
    # Where either is NaN, neither loses: a gradient of 0 would hide the NaN.
    return where(equal(a, b), g * 0.5, where(a_loses, 0.0, g))


def _complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def _away(ans: Any, x: Any) -> Any:
    """Return the conjugate of a complex number of length `ans`, divided by that length; 0 at 0."""
    return conj(x) / where(equal(ans, 0), 1.0, ans)


def _absolute_rule(g: Any, ans: Any, x: Any) -> Any:
    if _complex(x):
        return times(g, _away(ans, x))
    return where(isnan(x), 0.0, times(g, sign(x)))


def _absolute_jvp(t: Any, ans: Any, x: Any) -> Any:
    return real(times(t, _away(ans, x))) if _complex(x) else _absolute_rule(t, ans, x)


def _sign_rule(g: Any, ans: Any, x: Any) -> Any:
    return _turned(g, real(times(g, ans)) * conj(ans), x) if _complex(x) else None


def _sign_jvp(t: Any, ans: Any, x: Any) -> Any:
    return _turned(t, real(times(t, conj(ans))) * ans, x) if _complex(x) else None


def _turned(g: Any, along: Any, x: Any) -> Any:
    """Return what changes the direction of a complex number, and not its length, per length."""
    return over(g - along, absolute(x))


def _divisor_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    return over(-times(g, ans), b)


def _dividend_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    return g / b if b._literal() else over(g, b)


def _arctan_rule(g: Any, ans: Any, x: Any) -> Any:
    if _complex(x):
        return over(g, square(x) + 1.0)
    distance = hypot(x, 1.0)
    return g / distance / distance


def raised(x: Any, exponent: Any, modulus: Any = None) -> Any:
    """Return ``x ** exponent``; a cheaper op computes the exponents for which NumPy has one, too."""
    if modulus is not None:
        raise DTypeError(
            "pow(x, exponent, modulus): no op computes the remainder of a power. Write x ** exponent % modulus, "
            "whose power is computed first, or rg.lift(pow)(x, exponent, modulus) for large whole numbers."
        )
    number = type(exponent)
    if number is int or (number is float and _is_float(x)):
        cheaper = {2: square, 0.5: sqrt, -1: _inverse} if _is_float(x) else {2: square}
        if exponent in cheaper:
            return cheaper[exponent](x)
    return power(x, exponent)


def _inverse(x: Any) -> Any:
    # `1 / x` has the bits of `reciprocal`; but if the operand changes to an integer later, `reciprocal`
    # would give an integer, 0.
    return reciprocal(x) if x._graph._dtype_kind(x._slot) == "c" else divide(1, x)


def _is_float(x: Any) -> bool:
    return isinstance(x, Handle) and x._graph._dtype_kind(x._slot) in ("f", "c")


def _power_base(g: Any, ans: Any, a: Any, b: Any) -> Any:
    # At exponent 0 the derivative is 0 for every base, also where a**(b-1) is infinite.
    exponent = b._literal()
    if exponent is not None:
        if exponent == 0:
            return None
        return g * exponent if exponent == 1 else times(g, exponent * raised(a, exponent - 1))
    return times(times(g, b), power(a, b - 1))  # a factor of 0 wins


def _power_exponent(g: Any, ans: Any, a: Any, b: Any) -> Any:
    base = a._literal()
    if type(base) in (int, float) and base > 0:
        return times(g, ans) * math.log(base)
    # At base 0 the power does not change with the exponent, as long as it is finite: gradient 0.
    flat = logical_and(equal(a, 0), greater_equal(b, 0))
    return where(flat, 0.0, times(times(g, ans), log(where(flat, 1.0, a))))


def _infer_unit(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(broadcast("hypot", specs), promote(specs), common_device("hypot", specs))


def _along(h: Any, ans: Any, a: Any, b: Any, r: Any) -> Any:
    across = unit(b, a, r)
    return times(over(times(h, across), r), across)


def _across(h: Any, ans: Any, a: Any, b: Any, r: Any) -> Any:
    return -times(over(times(h, ans), r), unit(b, a, r))


def _angle_along(h: Any, ans: Any, a: Any, b: Any, r: Any) -> Any:
    both = unit(a, b, r) * unit(b, a, r)
    return where(equal(r, 0), 0.0, over(over(times(h, both * -2.0), r), r))


def _angle_across(h: Any, ans: Any, a: Any, b: Any, r: Any) -> Any:
    # Halves, since the sum could leave the dtype. Quotients would be rounded, and differ from each other by that
    # alone where |a| is nearly |b|.
    first, second = a * 0.5, b * 0.5
    both = over(first - second, r) * over(first + second, r)
    return where(equal(r, 0), 0.0, over(over(times(h, both * 4.0), r), r))


# The length follows from the other two operands, and their rules count that.
_UNIT_RULES = (_along, _across, None)
_ANGLE_RULES = (_angle_along, _angle_across, None)
_SQUARE_RULES = (lambda g, ans, x: g * (x * -2.0),)


# fmt: off
# name, the ufunc whose promotion it follows, first line of the docstring, example, rule for each operand
equal         = _define("equal",         np.equal,         "True where x equals y, element by element.", "[1.0, 2.0], 2.0 -> [False  True]", None, None)
not_equal     = _define("not_equal",     np.not_equal,     "True where x differs from y, element by element.", "[1.0, 2.0], 2.0 -> [ True False]", None, None)
less          = _define("less",          np.less,          "True where x is less than y, element by element.", "[1.0, 2.0], 2.0 -> [ True False]", None, None)
less_equal    = _define("less_equal",    np.less_equal,    "True where x is at most y, element by element.", "[1.0, 3.0], 2.0 -> [ True False]", None, None)
greater       = _define("greater",       np.greater,       "True where x is greater than y, element by element.", "[1.0, 3.0], 2.0 -> [False  True]", None, None)
greater_equal = _define("greater_equal", np.greater_equal, "True where x is at least y, element by element.", "[1.0, 2.0], 2.0 -> [False  True]", None, None)
logical_and   = _define("logical_and",   np.logical_and,   "True where x and y hold, element by element.", "[True, False], True -> [ True False]", None, None)
logical_or    = _define("logical_or",    np.logical_or,    "True where x or y holds, element by element.", "[True, False], False -> [ True False]", None, None)
logical_not   = _define("logical_not",   np.logical_not,   "True where x does not hold, element by element.", "[True, False] -> [False  True]", None)
isnan         = _define("isnan",         np.isnan,         "True where x is not a number.", "[1.0, float('nan')] -> [False  True]", None)
isfinite      = _define("isfinite",      np.isfinite,      "True where x is neither infinite nor NaN.", "[1.0, float('inf')] -> [ True False]", None)

add         = _define("add",      np.add,      "Sum, element by element.", "[1.0, 2.0], 3.0 -> [4. 5.]", lambda g, ans, a, b: g, lambda g, ans, a, b: g)
subtract    = _define("subtract", np.subtract, "Difference, element by element.", "[1.0, 2.0], 3.0 -> [-2. -1.]", lambda g, ans, a, b: g, lambda g, ans, a, b: -g)
multiply    = _define("multiply", np.multiply, "Product, element by element.", "[1.0, 2.0], 3.0 -> [3. 6.]", lambda g, ans, a, b: g * b, lambda g, ans, a, b: g * a)
divide      = _define("divide",   np.divide,   "Quotient, element by element.", "[1.0, 2.0], 4.0 -> [0.25 0.5 ]", _dividend_rule, _divisor_rule)
power       = _define("power",    np.power,    "x to the power y; the gradient of x**0 is 0.", "[1.0, 2.0], 3.0 -> [1. 8.]", _power_base, _power_exponent)
maximum     = _define("maximum",  np.maximum,  "The larger of x and y; ties split the gradient evenly.", "[1.0, 5.0], 3.0 -> [3. 5.]", lambda g, ans, a, b: _tie(g, a, b, less(a, b)), lambda g, ans, a, b: _tie(g, a, b, less(b, a)))
minimum     = _define("minimum",  np.minimum,  "The smaller of x and y; ties split the gradient evenly.", "[1.0, 5.0], 3.0 -> [1. 3.]", lambda g, ans, a, b: _tie(g, a, b, greater(a, b)), lambda g, ans, a, b: _tie(g, a, b, greater(b, a)))
hypot       = _define("hypot",    np.hypot,    "Length of the vector (x, y), element by element.", "[3.0], 4.0 -> [5.]", lambda g, ans, a, b: times(g, unit(a, b, ans)), lambda g, ans, a, b: times(g, unit(b, a, ans)))
arctan2     = _define("arctan2",  np.arctan2,  "Angle of the point (y, x) in radians; the first operand is y.", "[0.0], 1.0 -> [0.]", lambda g, ans, a, b: times(g, angle_slope(a, b)), lambda g, ans, a, b: -times(g, angle_slope(b, a)))
logaddexp   = _define("logaddexp", np.logaddexp, "log(exp(x) + exp(y)) without overflow.", "[0.0], 0.0 -> [0.69314718]", lambda g, ans, a, b: times(g, sigmoid(a - b)), lambda g, ans, a, b: times(g, sigmoid(b - a)))

floor_divide = _define("floor_divide", np.floor_divide, "The largest integer not above x / y.", "[7.0, -7.0], 2.0 -> [ 3. -4.]", None, None)
remainder   = _define("remainder", np.remainder, "What is left of x after floor_divide by y, with the sign of y.", "[7.0, -7.0], 4.0 -> [3. 1.]", lambda g, ans, a, b: g, lambda g, ans, a, b: -times(g, floor_divide(a, b)))
negative    = _define("negative",   np.negative,   "-x.", "[1.0, -2.0] -> [-1.  2.]", lambda g, ans, x: -g)
absolute    = _define("absolute",   np.absolute,   "Absolute value; the gradient at 0 is 0.", "[1.0, -2.0] -> [1. 2.]", _absolute_rule, jvp=_absolute_jvp)
sign        = _define("sign",       np.sign,       "-1, 0 or 1 by the sign of x.", "[3.0, 0.0, -2.0] -> [ 1.  0. -1.]", _sign_rule, jvp=_sign_jvp)
floor       = _define("floor",      np.floor,      "The largest integer not above x.", "[1.5, -1.5] -> [ 1. -2.]", None)
ceil        = _define("ceil",       np.ceil,       "The smallest integer not below x.", "[1.5, -1.5] -> [ 2. -1.]", None)
exp         = _define("exp",        np.exp,        "e to the power x.", "[0.0, 1.0] -> [1.         2.71828183]", lambda g, ans, x: times(g, ans))
exp2        = _define("exp2",       np.exp2,       "2 to the power x.", "[0.0, 3.0] -> [1. 8.]", lambda g, ans, x: times(g, ans) * LN_2)
expm1       = _define("expm1",      np.expm1,      "exp(x) - 1 without loss of digits near 0.", "[0.0, 1.0] -> [0.         1.71828183]", lambda g, ans, x: times(g, exp(x)))
log         = _define("log",        np.log,        "Natural logarithm.", "[1.0, 2.0] -> [0.         0.69314718]", lambda g, ans, x: over(g, x))
log2        = _define("log2",       np.log2,       "Logarithm to base 2.", "[1.0, 8.0] -> [0. 3.]", lambda g, ans, x: over(g * ONE_OVER_LN_2, x))
log10       = _define("log10",      np.log10,      "Logarithm to base 10.", "[1.0, 100.0] -> [0. 2.]", lambda g, ans, x: over(g * ONE_OVER_LN_10, x))
log1p       = _define("log1p",      np.log1p,      "log(1 + x) without loss of digits near 0.", "[0.0, 1.0] -> [0.         0.69314718]", lambda g, ans, x: over(g, x + 1.0))
sqrt        = _define("sqrt",       np.sqrt,       "Square root; the gradient at 0 is infinite.", "[4.0, 9.0] -> [2. 3.]", lambda g, ans, x: over(g * 0.5, ans))
square      = _define("square",     np.square,     "x * x.", "[2.0, 3.0] -> [4. 9.]", lambda g, ans, x: times(g, 2.0 * x))
reciprocal  = _define("reciprocal", np.reciprocal, "1 / x.", "[2.0, 4.0] -> [0.5  0.25]", lambda g, ans, x: -times(times(g, ans), ans))
sin         = _define("sin",        np.sin,        "Sine of an angle in radians.", "[0.0, 1.0] -> [0.         0.84147098]", lambda g, ans, x: times(g, cos(x)))
cos         = _define("cos",        np.cos,        "Cosine of an angle in radians.", "[0.0, 1.0] -> [1.         0.54030231]", lambda g, ans, x: -times(g, sin(x)))
tan         = _define("tan",        np.tan,        "Tangent of an angle in radians.", "[0.0, 1.0] -> [0.         1.55740772]", lambda g, ans, x: times(times(g, ans), ans) + g)
arcsin      = _define("arcsin",     np.arcsin,     "Angle in radians whose sine is x.", "[0.0, 1.0] -> [0.         1.57079633]", lambda g, ans, x: over(g, sqrt(one_minus_square(x))))
arccos      = _define("arccos",     np.arccos,     "Angle in radians whose cosine is x.", "[1.0, 0.0] -> [0.         1.57079633]", lambda g, ans, x: -over(g, sqrt(one_minus_square(x))))
arctan      = _define("arctan",     np.arctan,     "Angle in radians whose tangent is x.", "[0.0, 1.0] -> [0.         0.78539816]", _arctan_rule)
sinh        = _define("sinh",       np.sinh,       "Hyperbolic sine.", "[0.0, 1.0] -> [0.         1.17520119]", lambda g, ans, x: times(g, cosh(x)))
cosh        = _define("cosh",       np.cosh,       "Hyperbolic cosine.", "[0.0, 1.0] -> [1.         1.54308063]", lambda g, ans, x: times(g, sinh(x)))
tanh        = _define("tanh",       np.tanh,       "Hyperbolic tangent.", "[0.0, 1.0] -> [0.         0.76159416]", lambda g, ans, x: tanh_grad(g, ans, x))

sigmoid     = _define("sigmoid",  np.exp,      "1 / (1 + exp(-x)).", "[0.0, 1.0] -> [0.5        0.73105858]", lambda g, ans, x: sigmoid_grad(g, ans, x), mirrors=False)
relu        = _define("relu",     np.positive, "x where it is positive, else 0; the gradient at 0 is 0.", "[1.5, -2.0] -> [1.5 0. ]", lambda g, ans, x: relu_grad(g, x), mirrors=False)
erf         = _define("erf",      np.exp,      "Error function.", "[0.0, 1.0] -> [0.         0.84270079]", lambda g, ans, x: g * erf_slope(x), mirrors=False)
erfc        = _define("erfc",     np.exp,      "1 - erf(x), accurate in the upper tail.", "[0.0, 1.0] -> [1.         0.15729921]", lambda g, ans, x: -g * erf_slope(x), mirrors=False)
norm_cdf    = _define("norm_cdf", np.exp,      "Probability that a standard normal variable is below x, accurate in the lower tail.", "[0.0, 1.0] -> [0.5        0.84134475]", lambda g, ans, x: g * norm_pdf(x), mirrors=False)
# fmt: on

_UNIT: Final = Op(
    "unit",
    _infer_unit,
    _UNIT_RULES,
    _UNIT_RULES,
    elementwise=True,
    broadcasts=True,
)

_ANGLE_SLOPE: Final = Op(
    "angle_slope",
    _infer_unit,
    _ANGLE_RULES,
    _ANGLE_RULES,
    elementwise=True,
    broadcasts=True,
)

_ONE_MINUS_SQUARE: Final = Op(
    "one_minus_square",
    ufunc_rule(np.square, "arcsin"),
    _SQUARE_RULES,
    _SQUARE_RULES,
    elementwise=True,
)


def unit(a: Any, b: Any, length: Any) -> Any:
    """Return ``a / length`` for the length of the vector (a, b): the first part of its direction."""
    return apply(_UNIT, (a, b, length))


def angle_slope(a: Any, b: Any) -> Any:
    """Return ``b / (a**2 + b**2)``, and 0 at the origin, where all derivatives of the angle are 0 by choice."""
    return apply(_ANGLE_SLOPE, (a, b, hypot(a, b)))


def one_minus_square(x: Any) -> Any:
    """Return ``1 - x**2``, without loss of digits where that is near 0."""
    return apply(_ONE_MINUS_SQUARE, (x,))
