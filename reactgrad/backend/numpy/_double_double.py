"""Products of numbers in two parts, ``(high, low)``: twice the digits of float64 or float32.

T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971). Each
operation is rounded by IEEE 754; none may leave the dtype.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

# By the size of an element: the factor that splits its digits into halves.
_SPLITTERS: Final = {8: 2.0**27 + 1.0, 4: 2.0**12 + 1.0}

Pair = tuple[Any, Any]


def _halves(x: Any) -> Pair:
    scaled = x * _SPLITTERS[x.dtype.itemsize]
    high = scaled - (scaled - x)
    return high, x - high


def square(x: Any) -> Pair:
    """Return the exact square of `x`."""
    found = x * x
    high, low = _halves(x)
    return found, ((high * high - found) + 2.0 * high * low) + low * low


def in_two_parts(digits: str, dtype: Any) -> Pair:
    """Return a number that is written out as a pair of this dtype."""
    number = Fraction(digits)
    high = dtype.type(float(number))
    return high, dtype.type(float(number - Fraction(float(high))))


def _plain_product(x: Any, y: Any) -> Pair:
    found = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return found, ((a * c - found) + a * d + b * c) + b * d


def product(x: Pair, y: Pair) -> Pair:
    """Return the product of two pairs."""
    high, low = _plain_product(x[0], y[0])
    low = low + (x[0] * y[1] + x[1] * y[0])
    found = high + low
    return found, low - (found - high)


def exact_product(x: Pair, y: Any) -> Pair:
    """Return the product of a pair and a number."""
    return product(x, (y, 0.0))
