"""Error function, its complement and the normal distribution function, in NumPy alone.

NumPy has no ``erf``, SciPy is not a dependency of the core, and ``math.erf`` takes one number at a
time: hence these kernels. Each writes ``f(x)`` into an ``out`` of the same shape and dtype (float32
or float64) that does not overlap ``x``; it emits no warning and keeps no state.

Accuracy: in float64 the largest errors seen against 40-digit values are 8e-16 absolute and 3e-15
relative, both far tails included, down to the smallest normal number. A subnormal result is right
except for a few units in its last place. float32 is computed in float64 and rounded once.

Method: in NumPy every elementwise operation costs about the same, one pass over memory. So the
kernels make few passes, over blocks that stay in the cache, and seldom pick elements out (a gather
and a scatter cost as much as ten operations).

* On the side where they are small, ``erfc`` and ``norm_cdf`` are ``exp(-a x^2) R(|x|)`` with ``R``
  rational; on the other side they are the limit there, 2 or 1, minus that. ``erf`` is ``x R(x^2)``.
  The scheme is that of W. J. Cody, "Rational Chebyshev approximations for the error function", Math.
  Comp. 23 (1969), with ranges so wide that nearly all elements of usual data lie in the first.
* Elements outside of the first range are set aside and computed together at the end. In the tail
  ``x R(x)`` is rational in ``x^2``, and the exponential is computed in two parts (Cody 1969 again),
  because a rounding error of ``x^2`` is an absolute error of the exponent, and so a relative error of
  the result.

The result for an element depends on that element alone, never on its place, the block or its
neighbours: its own magnitude decides whether it is set aside, all formulas are elementwise, and all
operations except ``exp`` are rounded correctly by IEEE 754.

The coefficients are minimax: equal ripples of the relative error, weighted where a comment says so.
They were computed with mpmath at 60 digits as the rational function that meets the target at given
nodes, the nodes being moved until the ripples are level (C. Hofreither, "An algorithm for best
rational approximation based on barycentric rational interpolation", Numer. Algorithms 88, 2021),
and then rounded to float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["erf", "erfc", "norm_cdf"]

_Doubles = np.ndarray[Any, np.dtype[np.float64]]
_Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]
_Indices = np.ndarray[Any, np.dtype[np.intp]]
# (x, out, work): fills out, and returns the places that it leaves to the tail kernel, or None.
_BulkKernel = Callable[[_Doubles, _Doubles, _Doubles], _Indices | None]
_TailKernel = Callable[[_Doubles], _Doubles]

# The two rows in use at a time fit a second-level cache; with shorter rows the cost of starting a
# NumPy call would count.
_BLOCK = 16384
# On so few elements the start of a call costs more than its work.
_FEW = 256


def _constant(value: float) -> _Doubles:
    """Return a 0-d array: as an operand it takes NumPy half the time of a Python float."""
    return np.array(value, dtype=np.float64)


class _Ratio(NamedTuple):
    """A rational function, highest power first; the denominator's leading 1 is left out."""

    numerator: tuple[_Doubles, ...]
    denominator: tuple[_Doubles, ...]


def _ratio(numerator: str, denominator: str) -> _Ratio:
    top, bottom = (tuple(_constant(float(c)) for c in t.split()) for t in (numerator, denominator))
    return _Ratio(top, bottom)


class _Upper(NamedTuple):
    """The constants by which ``erfc`` and ``norm_cdf`` differ.

    Each is ``exp(rate x^2) R(|x|)`` on its small side.
    """

    rate: _Doubles
    near: _Ratio
    # |x| R(|x|) tends to the inverse of this.
    far_scale: float
    # The value at 0, and its bits, to be joined with a sign.
    middle: _Doubles
    middle_bits: npt.NDArray[np.int64]
    # step(middle, +-middle) is the limit of the function on the side of x, 0 or 2 middle, and
    # join(limit, +-small) its value.
    step: np.ufunc
    join: np.ufunc


# exp(z^2/2) norm_cdf(-z) for 0 <= z <= 7.01: ripple from 1.5e-16 at 0 to 4.4e-16 for z > 1, where
# norm_cdf(-z) is small; no error at 0, so that norm_cdf(0) is exactly 1/2.
NORM_NEAR = _ratio(
    """
    0.39894216286333134 8.89510789247146 93.43009436420927 594.4032826394871 2469.9337129932624
    6739.508851984676 11340.512602217797 9520.612024540264
    """,
    """
    22.29670936511017 235.19513879629963 1512.23216007628 6423.584355989886 18336.750635483855
    34177.2652329695 37873.723891984795 19041.224049080527
    """,
)
# exp(x^2) erfc(x): twice the same function at z = sqrt(2) x.
ERFC_NEAR = _ratio(
    """
    0.5641894173237794 8.89510789247146 66.0650532918314 297.20164131974354 873.2534387694018
    1684.877212996169 2004.738340789926 1190.076503067533
    """,
    """
    15.766154390215004 117.59756939814982 534.6548075591592 1605.8960889974715 3241.510179819342
    4272.158154121187 3347.5958741011764 1190.076503067533
    """,
)
# sqrt(2 pi) z exp(z^2/2) norm_cdf(-z) as a function of z^2, for z^2 >= 48.95: ripple 2.2e-16.
FAR = _ratio(
    """
    0.9999999999999998 30.40719810018316 258.4811485387254 621.8028009356532 203.0199264169359
    """,
    """
    31.407198100181116 286.8883466420034 829.4695514657858 537.932949253208
    """,
)
# erf(x)/x as a function of x^2, for x^2 <= 10.01: ripple 4.4e-17.
ERF_NEAR = _ratio(
    """
    23.756912053856812 1908.4135919413047 79619.8544228726 1581351.9149829815 31422083.763827022
    279395056.39203256 3159281379.7629747 10644719187.939472 59851233734.15548
    """,
    """
    255.15500541770248 13101.697434320657 377721.3193216821 7305264.806257232 100151950.68649803
    976996940.0526922 6533738863.873468 27114228377.160362 53041774856.775
    """,
)

# The range of the bulk formulas, in x^2 and in the exponent. Within it a rounding error of the
# exponent is an error of the result of at most 1.8e-15.
ERF_REACH = 10.0
EXPONENT_REACH = -24.5
_SIGN_BIT = np.array(np.iinfo(np.int64).min, dtype=np.int64)
_NOWHERE = np.empty(0, dtype=np.intp)

ERFC = _Upper(
    rate=_constant(-1.0),
    near=ERFC_NEAR,
    far_scale=float(np.sqrt(np.pi)),
    middle=_constant(1.0),
    middle_bits=_constant(1.0).view(np.int64),
    step=np.subtract,
    join=np.add,
)
NORM = _Upper(
    rate=_constant(-0.5),
    near=NORM_NEAR,
    far_scale=float(np.sqrt(2.0 * np.pi)),
    middle=_constant(0.5),
    middle_bits=_constant(0.5).view(np.int64),
    step=np.add,
    join=np.subtract,
)


def erf(x: _Floats, out: _Floats) -> None:
    """Write the error function of ``x`` into ``out``."""
    _apply(x, out, _erf_bulk, _erf_tail)


def erfc(x: _Floats, out: _Floats) -> None:
    """Write the complementary error function ``1 - erf(x)`` of ``x`` into ``out``."""
    _apply(x, out, partial(_upper_bulk, ERFC), partial(_upper_tail, ERFC))


def norm_cdf(x: _Floats, out: _Floats) -> None:
    """Write the standard normal distribution function of ``x`` into ``out``."""
    _apply(x, out, partial(_upper_bulk, NORM), partial(_upper_tail, NORM))


def _apply(x: _Floats, out: _Floats, bulk: _BulkKernel, tail: _TailKernel) -> None:
    """Run ``bulk`` over blocks of ``x``, then ``tail`` over the elements it left."""
    if not x.size:
        return
    source = np.ascontiguousarray(x).reshape(-1)
    direct = out.flags.c_contiguous and x.size > 1
    if x.size == 1:
        # NumPy writes over an array of one element three times as slowly as over one of two.
        source = source.repeat(2)
    target = out.reshape(-1) if direct else np.empty(source.size, out.dtype)
    # The bulk formulas overflow harmlessly where the tail kernel will write, and underflow to 0.
    with np.errstate(all="ignore"):
        places = _run_bulk(source, target, bulk)
        for start in range(0, places.size, _BLOCK):
            chosen = places[start : start + _BLOCK]
            target[chosen] = tail(source[chosen].astype(np.float64, copy=False))
        if not direct:
            out[...] = target[: out.size].reshape(out.shape)


def _run_bulk(source: npt.NDArray[Any], target: npt.NDArray[Any], bulk: _BulkKernel) -> _Indices:
    """Fill ``target`` block by block; return the places that ``bulk`` left, of the whole array."""
    convert = source.dtype != np.float64
    work = np.empty((7 if convert else 5, min(source.size, _BLOCK)))
    left = [_NOWHERE]
    for start in range(0, source.size, _BLOCK):
        x, out = source[start : start + _BLOCK], target[start : start + _BLOCK]
        scratch = work[:, : x.size]
        if convert:
            np.copyto(scratch[5], x)
            places = bulk(scratch[5], scratch[6], scratch)
            np.copyto(out, scratch[6], casting="same_kind")
        else:
            places = bulk(x, out, scratch)
        if places is not None:
            left.append(places + start)
    return np.concatenate(left) if len(left) > 1 else _NOWHERE


def _divide(
    ratio: _Ratio, z: _Doubles, value: _Doubles, scratch: _Doubles, spare: _Doubles | None = None
) -> None:
    """Write ``ratio(z)`` into ``value``; products into ``spare``, if it is given."""
    multiply, add = np.multiply, np.add
    lead, constant, *rest = ratio.numerator
    product = value if spare is None else spare
    multiply(z, lead, product)
    add(product, constant, value)
    for constant in rest:
        multiply(value, z, product)
        add(product, constant, value)
    constant, *rest = ratio.denominator
    product = scratch if spare is None else spare
    add(z, constant, scratch)
    for constant in rest:
        multiply(scratch, z, product)
        add(product, constant, scratch)
    np.divide(value, scratch, value)


def _spare(work: _Doubles) -> _Doubles | None:
    """Return memory for products of few elements, which take a third longer over an operand's memory."""
    return work[4] if work.shape[1] <= _FEW else None


def _erf_bulk(x: _Doubles, out: _Doubles, work: _Doubles) -> _Indices | None:
    square, value, scratch = work[0], work[1], work[2]
    np.multiply(x, x, square)
    _divide(ERF_NEAR, square, value, scratch, _spare(work))
    np.multiply(x, value, out)
    # A NaN fails the comparison: its block is searched, and its result stays NaN.
    return None if square.max() < ERF_REACH else np.flatnonzero(square >= ERF_REACH)


def _erf_tail(x: _Doubles) -> _Doubles:
    # erf is 1 in float64 beyond 5.93.  Past 4.95 the ratio is used outside its range; its error
    # there, below 1e-11, is relative to an erfc below 1e-11.
    z = np.minimum(np.abs(x), 6.5)
    small, scratch = np.empty_like(z), np.empty_like(z)
    _divide(ERFC_NEAR, z, small, scratch)
    return np.copysign(1.0 - np.exp(-z * z) * small, x)


def _upper_bulk(kind: _Upper, x: _Doubles, out: _Doubles, work: _Doubles) -> _Indices | None:
    z, exponent, small, scratch = work[0], work[1], work[2], work[3]
    np.absolute(x, z)
    np.multiply(x, kind.rate, exponent)
    np.multiply(exponent, x, exponent)
    left = None if exponent.min() > EXPONENT_REACH else np.flatnonzero(exponent <= EXPONENT_REACH)
    _divide(kind.near, z, small, scratch, _spare(work))
    np.exp(exponent, exponent)
    np.multiply(small, exponent, small)
    _unfold(kind, x, small, scratch, out)
    return left


def _upper_tail(kind: _Upper, x: _Doubles) -> _Doubles:
    # Both functions are 0 or their upper limit well before 40, which keeps infinities out.
    z = np.minimum(np.abs(x), 40.0)
    # 24 bits of z have an exact square.
    high = z.astype(np.float32).astype(np.float64)
    exponential = np.exp(kind.rate * high * high) * np.exp(kind.rate * (z - high) * (z + high))
    square = z * z * (-2.0 * kind.rate)
    small, scratch = np.empty_like(z), np.empty_like(z)
    _divide(FAR, square, small, scratch)
    small *= exponential
    small /= z * kind.far_scale
    out = np.empty_like(z)
    _unfold(kind, x, small, scratch, out)
    return out


def _unfold(kind: _Upper, x: _Doubles, small: _Doubles, scratch: _Doubles, out: _Doubles) -> None:
    """Write the value on the side of ``x`` into ``out``, from that on the small side; spoil ``small``.

    Bitwise operations select exactly by sign at the cost of plain arithmetic, a third of the time of
    ``np.where`` or ``np.copysign``.
    """
    small_bits, scratch_bits = small.view(np.int64), scratch.view(np.int64)
    np.bitwise_and(x.view(np.int64), _SIGN_BIT, scratch_bits)
    np.bitwise_or(small_bits, scratch_bits, small_bits)
    np.bitwise_or(scratch_bits, kind.middle_bits, scratch_bits)
    kind.step(kind.middle, scratch, scratch)
    kind.join(scratch, small, out)
