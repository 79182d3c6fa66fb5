"""Kernels of means over windows and of interpolation: linear maps along each axis of space in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._taps import AxisMap, Selection, axis_map, is_all

Call = Callable[[], object]

NAMES = ("resample", "resample_back", "resample_back_like")

# Sums of more float32 numbers than this are added up in float64.
ALONE: Final = 64


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace that mirrors NumPy."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        x, rules = inputs[0], attrs[0]
        first = x.ndim - len(rules)
        maps = {
            first + i: axis_map(rule, x.shape[first + i]) for i, rule in enumerate(rules) if rule
        }
        return InTurn(*_resample(xp, x, maps, out, transposed=False))

    def bind_back(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        g, rules = inputs[0], attrs[0]
        first = g.ndim - len(rules)
        maps = {
            first + i: axis_map(rule, out.shape[first + i], transposed=True)
            for i, rule in enumerate(rules)
            if rule
        }
        return InTurn(*_resample(xp, g, maps, out, transposed=True))

    register_binder("resample", kind, bind)
    register_binder("resample_back", kind, bind_back)
    register_binder("resample_back_like", kind, bind_back)


def _resample(
    xp: Any, x: Any, maps: dict[int, AxisMap], out: Any, *, transposed: bool
) -> list[Call]:
    """Return the calls that apply the map of each axis, those first that make the array smaller."""
    if not out.size:
        return []
    if not x.size:
        return [partial(out.fill, 0)]
    dtype = _wide(out.dtype, maps)
    divisor = _divisor(xp, maps, x.ndim, dtype)
    calls: list[Call] = []
    if divisor is not None and transposed:
        scaled = xp.empty(x.shape, dtype)
        calls.append(partial(xp.divide, x, divisor, scaled))
        x = scaled
    elif x.dtype != dtype:
        wide = xp.empty(x.shape, dtype)
        calls.append(partial(xp.copyto, wide, x, "same_kind"))
        x = wide
    order = sorted(maps, key=lambda axis: (maps[axis].length / x.shape[axis], axis))
    divided = divisor is not None and not transposed
    for at, axis in enumerate(order, 1):
        shape = (*x.shape[:axis], maps[axis].length, *x.shape[axis + 1 :])
        last = at == len(order) and out.dtype == dtype
        target = out if last else xp.empty(shape, dtype)
        calls += _along(xp, x, maps[axis], axis, target)
        x = target
    if divided:
        calls.append(partial(xp.divide, x, divisor, out, casting="same_kind"))
    elif x is not out:
        calls.append(partial(xp.copyto, out, x, "same_kind"))
    return calls


def _wide(dtype: Any, maps: dict[int, AxisMap]) -> Any:
    """Return the dtype in which taps are added up."""
    if dtype.char not in "ef":
        return dtype
    most = max((len(one.taps) for one in maps.values()), default=0)
    return np.dtype(np.float64 if most > ALONE else np.float32)


def _divisor(xp: Any, maps: dict[int, AxisMap], ndim: int, dtype: Any) -> Any:
    """Return the product of all axes' divisors: a number, or an array that broadcasts; ``None`` for 1."""
    found = None
    for axis, one in maps.items():
        if one.divisors is not None:
            own = one.divisors.astype(float)
            own = (
                own[0]
                if own.size and (own == own[0]).all()
                else own.reshape(-1, *[1] * (ndim - 1 - axis))
            )
            found = own if found is None else found * own
    return (
        None
        if found is None
        else xp.asarray(found, dtype.char.lower() if dtype.kind == "c" else dtype)
    )


def _along(xp: Any, x: Any, one: AxisMap, axis: int, out: Any) -> list[Call]:
    """Return the calls that apply a map along one axis."""
    before = (slice(None),) * axis
    at = next((i for i, tap in enumerate(one.taps) if is_all(tap.outs, one.length)), None)
    calls: list[Call] = []
    scratch: dict[int, Any] = {}  # by the number of results
    rest = list(one.taps)
    if at is None:
        calls.append(partial(out.fill, 0))
    else:
        first = rest.pop(at)
        calls.append(_taken(xp, x, first.ins, axis, out))
        if first.weights is not None:
            calls.append(partial(xp.multiply, out, _column(xp, first.weights, axis, out), out))
    for tap in rest:
        count = _count(tap.outs)
        if not count:
            continue
        shape = (*out.shape[:axis], count, *out.shape[axis + 1 :])
        if isinstance(tap.ins, slice) and tap.weights is None:
            source = x[(*before, tap.ins)]
        else:
            if count not in scratch:
                scratch[count] = xp.empty(shape, out.dtype)
            source = scratch[count]
            if isinstance(tap.ins, slice):
                calls.append(
                    partial(
                        xp.multiply,
                        x[(*before, tap.ins)],
                        _column(xp, tap.weights, axis, out),
                        source,
                    )
                )
            else:
                calls.append(_taken(xp, x, tap.ins, axis, source))
                if tap.weights is not None:
                    calls.append(
                        partial(xp.multiply, source, _column(xp, tap.weights, axis, out), source)
                    )
        if isinstance(tap.outs, slice):
            part = out[(*before, tap.outs)]
            calls.append(partial(xp.add, part, source, part))
        else:
            calls.append(partial(_add_at, out, (*before, tap.outs), source))
    return calls


def _taken(xp: Any, x: Any, ins: Selection, axis: int, out: Any) -> Call:
    if isinstance(ins, slice):
        return partial(xp.copyto, out, x[(*[slice(None)] * axis, ins)])
    if xp is np:  # with another mode NumPy would copy once more
        return partial(np.take, x, ins, axis, out, "clip")
    return partial(xp.take, x, xp.asarray(ins), axis, out)


def _count(selection: Selection) -> int:
    if isinstance(selection, slice):
        return len(range(selection.start, selection.stop, selection.step or 1))
    return len(selection)


def _column(xp: Any, weights: Any, axis: int, out: Any) -> Any:
    """Return the weights of a tap in a shape that broadcasts with the array."""
    kind = out.dtype.char.lower() if out.dtype.kind == "c" else out.dtype
    return xp.asarray(weights.reshape(-1, *[1] * (out.ndim - 1 - axis)), kind)


def _add_at(out: Any, place: tuple[Any, ...], source: Any) -> None:
    out[place] += source
