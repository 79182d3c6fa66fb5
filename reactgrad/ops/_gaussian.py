"""The bell curve, of which the derivatives of the error function and the normal distribution are made."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import times
from reactgrad.ops._shapes import operand_types, resolve

TWO_OVER_SQRT_PI: Final = 2.0 / math.sqrt(math.pi)
ONE_OVER_SQRT_2PI: Final = 1.0 / math.sqrt(2.0 * math.pi)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    dtype = resolve(np.exp, operand_types(specs), "norm_pdf")[-1]
    if dtype.kind == "c":
        raise DTypeError(f"norm_pdf of {one!r}: it takes real numbers only.")
    return spec(one.shape, dtype, one.device)


# The attributes: the scale and the rate of ``scale * exp(rate * x**2)``. The slope of the exponent may be
# infinite where the curve is 0. Elementwise: one rule for both modes, see ``_elementwise``.
_RULES = (lambda g, ans, x, scale, rate: g * times(ans, x * (2.0 * rate)),)

GAUSSIAN: Final = Op(
    "gaussian",
    _infer,
    _RULES,
    _RULES,
    elementwise=True,
    broadcasts=True,
)


def erf_slope(x: Any) -> Any:
    """Return the derivative of the error function."""
    return apply(GAUSSIAN, (x,), (TWO_OVER_SQRT_PI, -1.0))


def norm_pdf(x: Any, /) -> Any:
    """Return the density of the standard normal distribution, accurate in the tails.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a float dtype.

    Returns
    -------
    Var
        exp(-x**2 / 2) / sqrt(2 pi), element by element.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.norm_pdf([0.0, 1.0])
    >>> y.value
    array([0.39894228, 0.24197072])
    """
    return apply(GAUSSIAN, (x,), (ONE_OVER_SQRT_2PI, -0.5))
