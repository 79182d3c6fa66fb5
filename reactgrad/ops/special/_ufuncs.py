"""The ufuncs of NumPy that the base of ``ops`` does not have, one row each.

Rules have the form of those in ``ops._elementwise``: each serves both modes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.backend import add_kernels, in_blocks
from reactgrad.backend.array_api._ufuncs import standard
from reactgrad.backend.numpy import _ufuncs
from reactgrad.nodes._op import Op, Vjp
from reactgrad.ops._chain import over, times
from reactgrad.ops._elementwise import (
    equal,
    hypot,
    isnan,
    less,
    one_minus_square,
    public,
    sign,
    sqrt,
    square,
)
from reactgrad.ops._shapes import ufunc_loop, ufunc_rule
from reactgrad.ops._where import where
from reactgrad.ops.special._shares import share_by_twos

add_kernels(_ufuncs.register, standard((*_ufuncs.UFUNCS, *_ufuncs.PARTS)))


def _define(
    ufunc: np.ufunc, does: str, example: str, *rules: Vjp | None, cost: float = 1.0
) -> Callable[..., Any]:
    """Make the op of a ufunc, whose elements cost as much as `cost` sums, and return its function."""
    name = ufunc.__name__
    op = Op(
        name,
        ufunc_rule(ufunc),
        rules,
        rules,
        elementwise=True,
        broadcasts=True,
        loop_dtypes=ufunc_loop(ufunc),
    )
    in_blocks((name,), cost)
    return public(op, ufunc.nin, does, example, __name__)


def _complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def _arcsinh_rule(g: Any, ans: Any, x: Any) -> Any:
    return over(g, sqrt(square(x) + 1.0)) if _complex(x) else g / hypot(x, 1.0)


def _arccosh_rule(g: Any, ans: Any, x: Any) -> Any:
    # Two roots: their product would leave the dtype, and has another branch for complex numbers.
    return over(over(g, sqrt(x - 1.0)), sqrt(x + 1.0))


def _cbrt_rule(g: Any, ans: Any, x: Any) -> Any:
    return over(over(g / 3.0, ans), ans)


def _copysign_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    return times(g, sign(a) * copysign(1.0, b))


def _chosen(g: Any, a: Any, b: Any, a_loses: Any) -> Any:
    """Return the gradient of `a`, of two numbers of which the result is one: a number before a NaN."""
    won = where(equal(a, b), g * 0.5, where(a_loses, 0.0, g))
    return where(isnan(b), g, where(isnan(a), 0.0, won))


def _fmod_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    return -times(g, rint((a - ans) / b))  # the quotient is an integer nearly; rounded it is one


def _heaviside_rule(g: Any, ans: Any, x: Any, half: Any) -> Any:
    return where(equal(x, 0.0), g, 0.0)


# fmt: off
# the ufunc, first line of the docstring, example, rule for each operand
arcsinh  = _define(np.arcsinh,  "Inverse of sinh.", "[0.0, 1.0] -> [0.         0.88137359]", _arcsinh_rule, cost=8.0)
arccosh  = _define(np.arccosh,  "Inverse of cosh; the gradient at 1 is infinite.", "[1.0, 2.0] -> [0.         1.3169579]", _arccosh_rule, cost=8.0)
arctanh  = _define(np.arctanh,  "Inverse of tanh.", "[0.0, 0.5] -> [0.         0.54930614]", lambda g, ans, x: over(g, one_minus_square(x)), cost=8.0)
cbrt     = _define(np.cbrt,     "Cube root; the gradient at 0 is infinite.", "[8.0, -27.0] -> [ 2. -3.]", _cbrt_rule, cost=8.0)
copysign = _define(np.copysign, "x with the sign of y; the gradient at 0 is 0.", "[1.0, 2.0], -0.0 -> [-1. -2.]", _copysign_rule, None)
deg2rad  = _define(np.deg2rad,  "Angle in radians, of one in degrees.", "[0.0, 180.0] -> [0.         3.14159265]", lambda g, ans, x: deg2rad(g))
rad2deg  = _define(np.rad2deg,  "Angle in degrees, of one in radians.", "[0.0, 1.0] -> [ 0.         57.29577951]", lambda g, ans, x: rad2deg(g))
fabs     = _define(np.fabs,     "Absolute value of real numbers, as floats; the gradient at 0 is 0.", "[1, -2] -> [1. 2.]", lambda g, ans, x: where(isnan(x), 0.0, times(g, sign(x))))
fmax     = _define(np.fmax,     "The larger of x and y, and the number where one is NaN; ties split the gradient evenly.", "[1.0, float('nan')], 3.0 -> [3. 3.]", lambda g, ans, a, b: _chosen(g, a, b, less(a, b)), lambda g, ans, a, b: _chosen(g, b, a, less(b, a)))
fmin     = _define(np.fmin,     "The smaller of x and y, and the number where one is NaN; ties split the gradient evenly.", "[1.0, float('nan')], 3.0 -> [1. 3.]", lambda g, ans, a, b: _chosen(g, a, b, less(b, a)), lambda g, ans, a, b: _chosen(g, b, a, less(a, b)))
fmod     = _define(np.fmod,     "What is left of x after division by y, with the sign of x.", "[7.0, -7.0], 4.0 -> [ 3. -3.]", lambda g, ans, a, b: g, _fmod_rule, cost=25.0)
heaviside = _define(np.heaviside, "0 where x is negative, 1 where it is positive, y where it is 0.", "[-1.0, 0.0, 2.0], 0.5 -> [0.  0.5 1. ]", None, _heaviside_rule)
logaddexp2 = _define(np.logaddexp2, "log2(2**x + 2**y) without overflow.", "[0.0], 0.0 -> [1.]", lambda g, ans, a, b: times(g, share_by_twos(a, b)), lambda g, ans, a, b: times(g, share_by_twos(b, a)), cost=25.0)
ldexp    = _define(np.ldexp,    "x times 2 to the power y, for integers y.", "[1.0, 3.0], [2, -1] -> [4.  1.5]", lambda g, ans, a, b: ldexp(g, b), None, cost=8.0)
nextafter = _define(np.nextafter, "The number next to x in the direction of y.", "[1.0], 2.0 -> [1.]", lambda g, ans, a, b: g, None, cost=4.0)
positive = _define(np.positive, "x as a node of its own.", "[1.0, -2.0] -> [ 1. -2.]", lambda g, ans, x: g)
rint     = _define(np.rint,     "The nearest integer, of two the even one.", "[0.5, 1.5, -1.7] -> [ 0.  2. -2.]", None)
trunc    = _define(np.trunc,    "The integer next to x towards 0.", "[1.5, -1.5] -> [ 1. -1.]", None)
signbit  = _define(np.signbit,  "True where the sign is negative, also that of -0.0.", "[1.0, -0.0] -> [False  True]", None)
spacing  = _define(np.spacing,  "Distance to the next number of the dtype.", "[1.0] -> [2.22044605e-16]", None, cost=8.0)
isinf    = _define(np.isinf,    "True where x is plus or minus infinity.", "[1.0, -float('inf')] -> [False  True]", None)
logical_xor = _define(np.logical_xor, "True where one of x and y holds, and not both.", "[True, False], True -> [False  True]", None, None)
bitwise_and = _define(np.bitwise_and, "Bits that are set in x and in y, of integers or booleans.", "[6, 5], 3 -> [2 1]", None, None)
bitwise_or = _define(np.bitwise_or, "Bits that are set in x or in y, of integers or booleans.", "[6, 5], 3 -> [7 7]", None, None)
bitwise_xor = _define(np.bitwise_xor, "Bits that are set in one of x and y, of integers or booleans.", "[6, 5], 3 -> [5 6]", None, None)
invert   = _define(np.invert,   "All bits the other way round: -x - 1 for signed integers, logical_not for booleans.", "[0, 5] -> [-1 -6]", None)
left_shift = _define(np.left_shift, "Bits of the integer x moved y places up: x * 2**y.", "[1, 3], 2 -> [ 4 12]", None, None)
right_shift = _define(np.right_shift, "Bits of the integer x moved y places down: the largest integer not above x / 2**y.", "[8, -3], 1 -> [ 4 -2]", None, None)
bitwise_count = _define(np.bitwise_count, "The number of bits that are set in the absolute value of an integer.", "[7, 8] -> [3 1]", None)
gcd      = _define(np.gcd,      "Greatest common divisor of integers.", "[12, 9], 8 -> [4 1]", None, None, cost=25.0)
lcm      = _define(np.lcm,      "Lowest common multiple of integers.", "[12, 9], 8 -> [24 72]", None, None, cost=25.0)
# fmt: on
