"""Elements moved along axes, those that leave at one end entering at the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ImplicitValueError, ParameterError, ShapeError
from reactgrad.backend import Spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import alias
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import axis_of
from reactgrad.ops._shapes import normal_axis
from reactgrad.scheduler import safe_repr


def _infer_roll(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    for axis in attrs[1] or ():
        normal_axis("roll", axis, len(specs[0].shape))
    return specs[0]


def _roll_rule(g: Any, ans: Any, x: Any, shifts: tuple[int, ...], axes: Any) -> Any:
    return apply(ROLL, (g,), (tuple([-shift for shift in shifts]), axes))


ROLL = Op("roll", _infer_roll, (_roll_rule,), (LINEAR,))


@deferred
def roll(a: Any, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Any:
    """Return `a` with its elements moved along axes; those that leave at one end enter at the other.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    shift : int or tuple of int
        The number of places, towards the end where positive.
    axis : int or tuple of int, optional
        The axis of each shift; by default all elements move as one row.

    Returns
    -------
    Var
        Of the shape of `a`.

    Raises
    ------
    ShapeError
        If there are not as many shifts as axes.
    AxisError
        If `a` has no such axis.
    DTypeError
        If a shift is no integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3, 4])
    >>> rg.roll(x, 1).value
    array([4, 1, 2, 3])
    """
    a = node(a)
    shifts = _integers(shift)
    if not a.ndim:
        for one in () if axis is None else _integers(axis):
            normal_axis("roll", one, 0)
        return alias(a)
    if axis is None:
        return apply(ROLL, (a,), ((sum(shifts),), None))
    axes = _integers(axis_of(axis))
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ShapeError(
            f"roll by {safe_repr(shift)} along {safe_repr(axis)}: name one shift for each axis."
        )
    count = max(len(shifts), len(axes)) if shifts and axes else 0
    shifts, axes = (one * count if len(one) == 1 else one for one in (shifts, axes))
    return apply(ROLL, (a,), (shifts, tuple([normal_axis("roll", one, a.ndim) for one in axes])))


def _integers(given: Any) -> tuple[int, ...]:
    try:
        many = [given] if hasattr(given, "__index__") and not np.ndim(given) else given
        return tuple([int(one.__index__()) for one in many])
    except ImplicitValueError:  # a Var: its text says what to write
        raise
    except (AttributeError, TypeError):
        raise ParameterError(f"roll moves by integers, not {safe_repr(given):.60}.") from None
