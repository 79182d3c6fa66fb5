"""Linear interpolation between knots: interp."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import real_number
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._chain import over, times
from reactgrad.ops._clip import clip
from reactgrad.ops._elementwise import absolute, greater, less, logical_or, remainder
from reactgrad.ops._index import Placed, accumulate
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import spread
from reactgrad.ops._operand import known_dtype, nodes_of
from reactgrad.ops._places import rows_at
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device
from reactgrad.ops._where import where
from reactgrad.ops.ordering._search import searchsorted
from reactgrad.ops.ordering._sort import argsort
from reactgrad.ops.ordering._take import take
from reactgrad.scheduler import safe_repr

_FLOAT, _COMPLEX = np.dtype(np.float64), np.dtype(np.complex128)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, knots, values, *ends = specs
    for one in (x, knots):
        if one.dtype.kind == "c":
            raise DTypeError(f"interp at {one!r}: places and knots are real numbers.")
    if len(knots.shape) != 1 or len(values.shape) != 1:
        raise ShapeError(
            f"interp: knots and their values have one axis, not {safe_repr(knots)} and {safe_repr(values)}."
        )
    lengths = (knots.shape[0], values.shape[0])
    if None not in lengths and lengths[0] != lengths[1]:
        raise ShapeError(
            f"interp: {lengths[0]} knots and {lengths[1]} values; there is one for each."
        )
    if lengths[0] == 0:
        raise ShapeError("interp: there are no knots.")
    for end in ends:
        if end.shape:
            raise ShapeError(f"interp: left and right are single numbers, not {safe_repr(end)}.")
    return spec(x.shape, _dtype(specs), common_device("interp", specs))


def _dtype(specs: tuple[Spec, ...]) -> Any:
    return _COMPLEX if any(one.dtype.kind == "c" for one in specs[2:]) else _FLOAT


def _dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (_FLOAT, _FLOAT, *[_dtype(specs)] * (len(specs) - 2))


class _Segments:
    """The segments between knots in which places lie, as nodes that all rules of one node share.

    A place at a knot lies in the segment to its right, the last knot in the last segment.
    """

    def __init__(self, operands: tuple[Any, ...], given_ends: str) -> None:
        self.x, self.knots, self.values, *ends = operands
        self.ends = dict(zip(given_ends, ends, strict=True))
        self.single = self.knots.shape == (1,)
        x, knots = self.x, self.knots
        self.below, self.above = less(x, knots[0]), greater(x, knots[-1])
        if self.single:
            return
        self.number = searchsorted(knots[1:-1], x, side="right")
        self.next = self.number + 1
        first = take(knots, self.number)
        self.length = take(knots, self.next) - first
        self.weight = clip(over(x - first, self.length), 0.0, 1.0)

    def slope(self) -> Any:
        """Return the slope at each place; 0 beyond the ends."""
        if self.single:
            return None
        rise = take(self.values, self.next) - take(self.values, self.number)
        return where(logical_or(self.below, self.above), 0.0, over(rise, self.length))

    def seen(self, g: Any) -> Any:
        """Return `g` where a place has a value between knots, or that of the knot at an end."""
        for end, beyond in (("l", self.below), ("r", self.above)):
            if end in self.ends:
                g = where(beyond, 0.0, g)
        return g

    def to_knots(self, g: Any, like: Any) -> Any:
        """Return what places contribute to values at knots: the transpose of interpolation."""
        found = like._graph._host.specs[like._slot]
        dtype = known_dtype(self.values)
        zero = like._graph.const(
            np.zeros((), _COMPLEX if dtype is not None and dtype.kind == "c" else _FLOAT)
        )
        parts: list[Any] = [spread(zero, like)] if found is None else []
        at = rows_at(0)
        if self.single:
            parts.append(Placed(g, at, spread(g._graph.const(np.zeros((), np.intp)), g)))
        else:
            parts += [
                Placed(times(g, 1.0 - self.weight), at, self.number),
                Placed(times(g, self.weight), at, self.next),
            ]
        return accumulate(parts, None if found is None else found.shape)

    def from_knots(self, values: Any) -> Any:
        """Return what interpolation makes of other values at knots."""
        return interp(self.x, self.knots, values)


def _rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    at = _Segments(operands, *attrs)

    def rule(i: int, g: Any) -> Any:
        if i == 0:
            return None if at.single else times(g, at.slope())
        if i == 1:
            return None if at.single else at.to_knots(-times(g, at.slope()), at.knots)
        if i == 2:
            return at.to_knots(at.seen(g), at.values)
        return sum(where(at.below if attrs[0][i - 3] == "l" else at.above, g, 0.0))

    return rule


def _rule_forward(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    at = _Segments(operands, *attrs)

    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return None if at.single else times(t, at.slope())
        if i == 1:
            return None if at.single else -times(at.from_knots(t), at.slope())
        if i == 2:
            return at.seen(at.from_knots(t))
        return where(at.below if attrs[0][i - 3] == "l" else at.above, t, 0.0)

    return rule


INTERP = Op("interp", _infer, variadic=_rule, variadic_jvp=_rule_forward, loop_dtypes=_dtypes)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Return a piecewise linear function at some places.

    Parameters
    ----------
    x : Var or array_like
        The places, in any shape.
    xp : Var or array_like
        The knots: one axis, in ascending order, unless there is a `period`.
    fp : Var or array_like
        The values at the knots; may be complex.
    left, right : Var or number, optional
        The value below the first and above the last knot; by default those at these knots.
    period : float, optional
        The period of `x`; `left` and `right` then do not count.

    Returns
    -------
    Var
        Of float64 or complex128, in the shape of `x`. It has gradients by all of `x`, `xp`, `fp`, `left` and
        `right`. That by `x` is the slope; at a knot it is that to the right, at the last one that to the left, and 0
        beyond the ends.

    Raises
    ------
    ShapeError
        If there is not one value for each knot.
    DTypeError
        If places or knots are complex.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.param([1.5, 9.0])
    >>> y = rg.interp(x, [1.0, 2.0], [10.0, 30.0])
    >>> y.value
    array([20., 30.])
    >>> rg.grad(y.sum(), x).value
    array([20.,  0.])
    """
    if period is not None:
        return _periodic(x, xp, fp, period)
    ends = [(word, end) for word, end in (("l", left), ("r", right)) if end is not None]
    given_ends = "".join(word for word, _ in ends)
    return apply(INTERP, (x, xp, fp, *[end for _, end in ends]), (given_ends,))


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> Any:
    if isinstance(period, Handle):
        period = absolute(period)
    else:
        period = abs(real_number("interp", "period", period))
        if period == 0.0:
            raise ShapeError("interp: the period cannot be 0.")
    x, knots, values = nodes_of(x, xp, fp)
    knots = remainder(knots, period)
    order = argsort(knots)
    knots, values = take(knots, order), take(values, order)
    return interp(
        remainder(x, period),
        concatenate([knots[-1:] - period, knots, knots[:1] + period]),
        concatenate([values[-1:], values, values[:1]]),
    )
