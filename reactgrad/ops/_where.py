"""Elements chosen from two values by a condition."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._families import for_numpy
from reactgrad.ops._shapes import broadcast, common_device, promote

ABSENT: Final = object()


def _infer_where(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(broadcast("where", specs), promote(specs[1:]), common_device("where", specs))


def _where_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    dtype = promote(specs[1:])
    return (np.dtype(bool), dtype, dtype)


# Elementwise: one rule an operand for both modes, see ``_elementwise``.
_RULES = (None, lambda g, ans, c, x, y: where(c, g, 0.0), lambda g, ans, c, x, y: where(c, 0.0, g))

WHERE = Op(
    "where",
    _infer_where,
    _RULES,
    _RULES,
    elementwise=True,
    broadcasts=True,
    loop_dtypes=_where_loop,
)


def where(condition: Any, x: Any = ABSENT, y: Any = ABSENT, /) -> Any:
    """Return elements of `x` where `condition` holds, and elements of `y` elsewhere.

    Without `x` and `y`, return the indices of the elements that are not zero, as ``nonzero`` does.

    Parameters
    ----------
    condition : Var or array_like
        Booleans, or numbers of which those other than 0 count as true.
    x, y : Var or array_like
        Any shapes that broadcast together with `condition`.

    Returns
    -------
    Var
        Of the broadcast shape and the common dtype of `x` and `y`. An infinite or NaN element
        that is not chosen affects neither the value nor the gradient.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.
    DTypeError
        If only one of `x` and `y` is given.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     y = rg.where([True, False], 1.0, [5.0, 6.0])
    >>> y.value
    array([1., 6.])
    """
    if y is ABSENT:
        if x is not ABSENT:
            raise ParameterError("where: either both x and y are given, or neither.")
        nonzero = for_numpy(np.nonzero)  # of a family that is imported late
        assert nonzero is not None
        return nonzero(condition)
    return apply(WHERE, (condition, x, y))
