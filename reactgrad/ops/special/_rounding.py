"""Numbers rounded to decimals, and numbers in place of NaN and infinities."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import MOST_OF_C, real_number, whole
from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, add_kernels, in_blocks, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _rounding
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._elementwise import isfinite
from reactgrad.ops._where import where

add_kernels(_rounding.register, on_host(("round", "nan_to_num")))


def _infer_round(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    # NumPy rounds booleans as half floats.
    dtype = np.dtype(np.float16) if one.dtype.kind == "b" else one.dtype
    return spec(one.shape, dtype, one.device)


def _infer_alike(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    return spec(one.shape, one.dtype, one.device)


ROUND = Op("round", _infer_round, (None,), (None,), elementwise=True)

_RULES = (lambda g, ans, x, *attrs: where(isfinite(x), g, 0.0),)
NAN_TO_NUM = Op("nan_to_num", _infer_alike, _RULES, _RULES, elementwise=True)
in_blocks(("round", "nan_to_num"), 4.0)


def round(a: Any, decimals: int = 0) -> Any:
    """Return numbers rounded to a number of decimals, halves to the even one.

    Parameters
    ----------
    a : Var or array_like
        Any shape; numbers of any kind.
    decimals : int
        How many digits stay after the point; negative for digits before it.

    Returns
    -------
    Var
        In the shape and dtype of `a`. Has no gradient: it is constant nearly everywhere.

    Raises
    ------
    DTypeError
        If `decimals` is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.round([1.25, -3.14159], 2)
    >>> y.value
    array([ 1.25, -3.14])
    """
    return apply(ROUND, (a,), (whole("round", "decimals", decimals, most=MOST_OF_C),))


around = round


def nan_to_num(
    x: Any,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Any:
    """Return `x` with numbers in place of NaN and infinities.

    Parameters
    ----------
    x : Var or array_like
        Any shape; of complex numbers both parts are treated.
    copy : bool
        ``True``: the operand is never written.
    nan, posinf, neginf : float
        The numbers to take; for infinities by default the largest and smallest of the dtype.

    Returns
    -------
    Var
        In the shape and dtype of `x`. The gradient is 0 where a number was put in.

    Raises
    ------
    DTypeError
        For ``copy=False``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0)
    >>> y.value
    array([1., 0., 9.])
    """
    if not copy:
        raise ParameterError(
            "nan_to_num(copy=False) would change a value behind its version; use the result as a node."
        )
    numbers = {"nan": nan, "posinf": posinf, "neginf": neginf}
    given = [
        None if n is None else real_number("nan_to_num", what, n) for what, n in numbers.items()
    ]
    return apply(NAN_TO_NUM, (x,), tuple(given))
