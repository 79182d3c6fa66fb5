"""Powers that become logarithms, and entropies: exprel, boxcox, boxcox1p, entr, rel_entr.

All have ops of every order, so that derivatives of any order are as accurate as the values, also where the power is 0.
"""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend.numpy import _exprel
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._chain import over, times
from reactgrad.ops._elementwise import log, log1p, power, public
from reactgrad.ops.special._form import smooth, with_kernels


def _transform(name: str, logarithm: Any, base: Any) -> Op:
    """Return the op of ``(b**p - 1) / p``, by its order of derivative by p."""

    def by_number(g: Any, ans: Any, x: Any, p: Any, order: int) -> Any:
        slope = power(base(x), p - 1.0)
        return times(g, slope * logarithm(x) ** order if order else slope)

    def by_power(g: Any, ans: Any, x: Any, p: Any, order: int) -> Any:
        return times(g, apply(op, (x, p), (order + 1,)))

    op = smooth(name, by_number, by_power)
    return op


EXPREL: Final = smooth("exprel", lambda g, ans, x, n: times(g, apply(EXPREL, (x,), (n + 1,))))
BOXCOX: Final = _transform("boxcox", log, lambda x: x)
BOXCOX1P: Final = _transform("boxcox1p", log1p, lambda x: x + 1.0)
ENTR: Final = smooth("entr", lambda g, ans, x: -times(g, log(x) + 1.0))
REL_ENTR: Final = smooth(
    "rel_entr",
    lambda g, ans, x, y: times(g, log(x) - log(y) + 1.0),
    lambda g, ans, x, y: -over(times(g, x), y),
)
with_kernels(_exprel.register, 100.0, EXPREL, BOXCOX, BOXCOX1P, ENTR, REL_ENTR)

# fmt: off
entr     = public(ENTR,     1, "-x log(x), 0 where x is 0, and minus infinity where it is negative.", "[0.0, 0.5] -> [0.         0.34657359]", __name__)
rel_entr = public(REL_ENTR, 2, "x log(x / y), 0 where x is 0, and infinity where it has no logarithm.", "[0.0, 0.5], 0.25 -> [0.         0.34657359]", __name__)
# fmt: on


def exprel(x: Any, /) -> Any:
    """Return (exp(x) - 1) / x, and 1 at 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    Var
        In the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.exprel([0.0, 1.0])
    >>> print(y.value)
    [1.         1.71828183]
    """
    return apply(EXPREL, (x,), (0,))


def boxcox(x: Any, lmbda: Any, /) -> Any:
    """Return Box and Cox's transform, (x**lmbda - 1) / lmbda, and log(x) where `lmbda` is 0.

    Parameters
    ----------
    x, lmbda : Var or array_like
        Any shapes that broadcast together; real numbers, `x` not negative.

    Returns
    -------
    Var
        Of the broadcast shape; NaN where `x` is negative.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.boxcox([1.0, 4.0], 0.5)
    >>> print(y.value)
    [0. 2.]
    """
    return apply(BOXCOX, (x, lmbda), (0,))


def boxcox1p(x: Any, lmbda: Any, /) -> Any:
    """Return Box and Cox's transform of ``1 + x``, accurate for small `x`.

    Parameters
    ----------
    x, lmbda : Var or array_like
        Any shapes that broadcast together; real numbers, `x` from -1.

    Returns
    -------
    Var
        Of the broadcast shape; NaN where `x` is below -1.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.boxcox1p([0.0, 3.0], 0.5)
    >>> print(y.value)
    [0. 2.]
    """
    return apply(BOXCOX1P, (x, lmbda), (0,))
