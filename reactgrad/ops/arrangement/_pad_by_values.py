"""Borders computed from the values: constants that are nodes, ramps, and statistics; axis by axis, of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.ops._astype import astype
from reactgrad.ops._elementwise import floor
from reactgrad.ops._index import getitem
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import reshape
from reactgrad.ops._lengths import spread_along, with_least
from reactgrad.ops._operand import in_dtype, node
from reactgrad.ops._reduce import max as largest
from reactgrad.ops._reduce import mean
from reactgrad.ops._reduce import min as smallest
from reactgrad.ops.arrangement._repeat import repeat
from reactgrad.scheduler import safe_repr

Pairs = Sequence[tuple[Any, Any]]

# Half floats are rounded once.
_RAMPS = {"e": np.dtype(np.float32)}


def _framed(x: Any, widths: Pairs, border: Callable[[Any, int, int, int], Any]) -> Any:
    """Return `x` with borders along one axis after the other; each follows from all before it.

    ``border(x, axis, side, width)`` returns one of them.
    """
    for axis, width in enumerate(widths):
        sides = [border(x, axis, side, width[side]) if width[side] else None for side in (0, 1)]
        parts = [one for one in (sides[0], x, sides[1]) if one is not None]
        if len(parts) > 1:
            x = concatenate(parts, axis)
    return x


def _edge(x: Any, axis: int, side: int, count: int = 1) -> Any:
    part = slice(None, count) if side == 0 else slice(-count, None)
    return getitem(x, (*[slice(None)] * axis, part))


def constant_by_nodes(x: Any, widths: Pairs, constants: Pairs) -> Any:
    """Return `x` with a border of constants, some of which are nodes."""

    def border(x: Any, axis: int, side: int, width: int) -> Any:
        number = node(constants[axis][side], x)
        one = in_dtype(number, x.dtype)
        return spread_along("pad", reshape(one, ()), x, axis, width)

    return _framed(x, widths, border)


def linear_ramp(x: Any, widths: Pairs, ends: Pairs) -> Any:
    """Return `x` with a border that leads to its end values in equal steps."""

    def border(x: Any, axis: int, side: int, width: int) -> Any:
        end = ends[axis][side]
        wide = _RAMPS.get(x.dtype.char, x.dtype if x.dtype.kind in "fc" else np.dtype(np.float64))
        edge = in_dtype(_edge(x, axis, side), wide)
        numbers = np.arange(width, dtype=wide)
        numbers = (numbers if side == 0 else numbers[::-1]).reshape(-1, *[1] * (x.ndim - axis - 1))
        steps = x._graph.const(numbers, device=x.device)
        ramp = (edge - end) / width * steps + end
        return in_dtype(floor(ramp) if x.dtype.kind in "iu" else ramp, x.dtype)

    return _framed(x, widths, border)


def statistic(x: Any, widths: Pairs, mode: str, lengths: Pairs) -> Any:
    """Return `x` with a border of statistics of the elements along each axis."""
    reduced: Any = {"maximum": largest, "minimum": smallest, "mean": mean}.get(mode) or _median()

    def border(x: Any, axis: int, side: int, width: int) -> Any:
        given, there = lengths[axis][side], x.shape[axis]
        if given is not None and given < 0:
            raise ShapeError(f"pad(stat_length={given}): a length cannot be negative.")
        if there == 0 or (given == 0 and mode in ("maximum", "minimum")):
            raise ShapeError(
                f"pad(mode={safe_repr(mode)}): a statistic of no elements along axis {axis}."
            )
        if mode in ("mean", "median"):  # the others refuse an axis without elements themselves
            x = with_least(f"pad(mode={mode!r})", x, axis, 1)
        # A slice of more elements than there are has all. The last 0 are no slice from the end.
        part = x if given is None else _edge(x, axis, side if given else 0, given)
        number = reduced(part, axis, keepdims=True)
        if number.dtype != x.dtype:
            number = astype(_rounded(number) if x.dtype.kind in "iu" else number, x.dtype)
        return repeat(number, width, axis)

    return _framed(x, widths, border)


# Of families that few borders need.
def _median() -> Any:
    from reactgrad.ops.reductions._quantile import median

    return median


def _rounded(x: Any) -> Any:
    from reactgrad.ops.special._ufuncs import rint

    return rint(x)
