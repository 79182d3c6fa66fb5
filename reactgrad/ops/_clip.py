"""Values limited to an interval."""

from __future__ import annotations

from typing import Any

from numpy._core import umath

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._elementwise import (
    UFUNCS,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
)
from reactgrad.ops._layout import alias
from reactgrad.ops._shapes import broadcast, common_device, promote
from reactgrad.ops._where import where


def _infer_clip(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    dtype = promote(specs)
    if dtype.kind == "c":
        raise DTypeError("clip is not defined for complex numbers: they have no order.")
    return spec(broadcast("clip", specs), dtype, common_device("clip", specs))


def _inside(x: Any, bounds: tuple[Any, ...], attrs: Attrs) -> Any:
    """Return for each element whether `x` is within the bounds; a bound is within (rule D11)."""
    kinds, inside = attrs[0], None
    for kind, bound in zip(kinds, bounds, strict=True):
        test = greater_equal(x, bound) if kind == "l" else less_equal(x, bound)
        inside = test if inside is None else logical_and(inside, test)
    return inside


def _clip_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, g: where(_passes(i, operands, attrs), g, 0.0)


def _passes(i: int, operands: tuple[Any, ...], attrs: Attrs) -> Any:
    """Return for each element whether the result is that of operand `i`."""
    x, *bounds = operands
    if i == 0:
        return _inside(x, tuple(bounds), attrs)
    bound, kind = bounds[i - 1], attrs[0][i - 1]
    if kind == "h":
        taken = greater(x, bound)
        if "l" in attrs[0]:  # where the bounds cross, the result is the upper one
            taken = logical_or(taken, less(bound, bounds[0]))
        return taken
    taken = less(x, bound)
    if "h" in attrs[0]:
        taken = logical_and(taken, less(bound, bounds[-1]))
    return taken


# Elementwise: one rule for both modes, see ``_elementwise``.
CLIP = Op(
    "clip",
    _infer_clip,
    variadic=_clip_rule,
    variadic_jvp=_clip_rule,
    elementwise=True,
    broadcasts=True,
)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Return `x` limited to the interval from `min` to `max`; the gradient at a bound is 1.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a real dtype.
    min, max : Var, array_like or None
        Bounds that broadcast with `x`; ``None`` for no bound.

    Returns
    -------
    Var
        Of the broadcast shape.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.clip([-2.0, 0.5, 2.0], -1.0, 1.0)
    >>> y.value
    array([-1. ,  0.5,  1. ])
    """
    bounds = [(kind, b) for kind, b in (("l", min), ("h", max)) if b is not None]
    kinds = "".join(kind for kind, _ in bounds)
    return apply(CLIP, (x, *[b for _, b in bounds]), (kinds,)) if bounds else alias(x)


# What methods of arrays and of numbers call, `array.clip(var)`.
UFUNCS[umath.clip] = clip  # type: ignore[attr-defined] - missing in NumPy's stubs
