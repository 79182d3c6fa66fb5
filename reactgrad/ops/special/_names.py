"""Other names of functions: those of the array API standard and NumPy's own second names."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import arccos, arcsin, arctan, arctan2, divide, power, remainder
from reactgrad.ops.special._pairs import together
from reactgrad.ops.special._ufuncs import (
    arccosh,
    arcsinh,
    arctanh,
    deg2rad,
    invert,
    left_shift,
    rad2deg,
    right_shift,
    trunc,
)

acos, asin, atan, atan2 = arccos, arcsin, arctan, arctan2
acosh, asinh, atanh = arccosh, arcsinh, arctanh
bitwise_invert = bitwise_not = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
degrees, radians = rad2deg, deg2rad
mod, true_divide = remainder, divide
pow = power
fix = trunc


@deferred
def float_power(x: Any, y: Any, /) -> Any:
    """Return x to the power y in float64, or complex128, whatever the operands are.

    Parameters
    ----------
    x, y : Var or array_like
        Any shapes that broadcast together.

    Returns
    -------
    Var
        Of the broadcast shape. The gradient of ``x**0`` is 0.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.float_power([1, 2], -2)
    >>> y.value
    array([1.  , 0.25])
    """
    x, y = together(x, y)
    number = y._literal()
    exponent = _wide(y) if number is None or isinstance(number, complex) else float(number)
    return power(_wide(x), exponent)


def _wide(x: Any) -> Any:
    wide = np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return x if x.dtype == wide and x._literal() is None else astype(x, wide)
