"""Kernels of pooling by the largest element: a few calls for each place of the window.

The gradient finds the winner of each window again, by comparing each place with the largest element. To find
it in the forward pass would cost as much, also where no gradient is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._taps import AxisMap, Tap, axis_map, is_all

Call = Callable[[], object]

NAMES = ("max_pool", "max_pool_spread", "max_pool_take", "pixel_numbers")

# So many bytes of images at a time.
MOST_BYTES: Final = 1 << 19


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace that mirrors NumPy."""
    register_binder("max_pool", kind, partial(_bind_max, xp))
    register_binder("max_pool_spread", kind, partial(_bind_spread, xp))
    register_binder("max_pool_take", kind, partial(_bind_take, xp))
    register_binder("pixel_numbers", kind, partial(_bind_numbers, xp))


def _maps(rules: tuple[Any, ...], shape: tuple[int, ...]) -> dict[int, AxisMap]:
    """Return the map of each axis that has one."""
    first = len(shape) - len(rules)
    return {
        first + i: axis_map(rule, shape[first + i])
        for i, rule in enumerate(rules)
        if rule is not None
    }


def _at(axis: int, selection: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, selection)


def _bind_max(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    (x,) = inputs
    maps = _maps(attrs[0], x.shape)
    if not out.size:
        return InTurn()
    calls: list[Call] = []
    for at, (axis, one) in enumerate(maps.items(), 1):
        shape = (*x.shape[:axis], one.length, *x.shape[axis + 1 :])
        target = out if at == len(maps) else xp.empty(shape, out.dtype)
        calls += _along(xp, x, one, axis, target)
        x = target
    return InTurn(*calls)


def _along(xp: Any, x: Any, one: AxisMap, axis: int, out: Any) -> list[Call]:
    """Return the calls for the largest element of each window along one axis."""
    full = [tap for tap in one.taps if is_all(tap.outs, one.length)]
    plain = [tap for tap in full if isinstance(tap.ins, slice)]
    calls: list[Call] = []
    if plain:
        begin = x[_at(axis, plain[0].ins)]
        rest = [tap for tap in one.taps if tap is not plain[0]]
        if len(plain) > 1:
            rest = [tap for tap in rest if tap is not plain[1]]
            calls.append(partial(xp.maximum, begin, x[_at(axis, plain[1].ins)], out=out))
        else:
            calls.append(partial(xp.copyto, out, begin))
    else:
        rest = list(one.taps)
        calls.append(partial(out.fill, _least(out.dtype)))
    for tap in rest:
        if isinstance(tap.outs, slice) and isinstance(tap.ins, slice):
            part = out[_at(axis, tap.outs)]
            calls.append(partial(xp.maximum, part, x[_at(axis, tap.ins)], out=part))
        else:
            calls.append(partial(_maximum_at, xp, x, tap, axis, out))
    return calls


def _maximum_at(xp: Any, x: Any, tap: Tap, axis: int, out: Any) -> None:
    place = _at(axis, tap.outs)
    out[place] = xp.maximum(out[place], x[_at(axis, tap.ins)])


def _least(dtype: Any) -> Any:
    if dtype.kind == "f":
        return -np.inf
    return False if dtype.kind == "b" else np.iinfo(dtype).min


class _Winners:
    """The places of the largest elements: the first one of each window, or the last NaN where there is one.

    They are numbers of elements in the flat array of some images at a time, so that scratch stays in the cache.
    """

    def __init__(self, xp: Any, x: Any, y: Any, rules: tuple[Any, ...]) -> None:
        self.xp, self.x, self.y = xp, x, y
        axes = len(rules)
        self.space, self.pooled = x.shape[-axes:], y.shape[-axes:]
        self.planes = prod(x.shape[:-axes])
        maps = [
            axis_map(rule or ("window", 1, 1, 0, 1, False), n)
            for rule, n in zip(rules, self.space, strict=True)
        ]
        self.apart = all(map(_apart, maps))
        taps = list(product(*[one.taps for one in maps]))
        self.outs = [(..., *[tap.outs for tap in each]) for each in taps]
        self.ins = [(..., *[tap.ins for tap in each]) for each in taps]
        size = prod(self.space) * x.dtype.itemsize
        self.each = max(1, min(self.planes, MOST_BYTES // max(size, 1)))
        shape = (self.each, *self.pooled)
        self.unseen, self.less = xp.empty(shape, bool), xp.empty(shape, bool)
        self.which = xp.empty(shape, np.min_scalar_type(len(taps)))
        self.places = xp.empty(shape, np.intp)
        # A place is the sum of what depends on the window, and what depends on the tap.
        steps = [prod(self.space[axis + 1 :]) for axis in range(axes)]
        pairs = list(zip(rules, steps, strict=True))
        base = sum(
            np.asarray(_starts(rule, n, m) * step).reshape(-1, *[1] * (axes - 1 - axis))
            for axis, ((rule, step), n, m) in enumerate(
                zip(pairs, self.space, self.pooled, strict=True)
            )
        )
        number = np.indices([len(one.taps) for one in maps]).reshape(axes, -1)
        apart = [(rule[4] if rule and rule[0] == "window" else 1) * step for rule, step in pairs]
        planes = np.arange(self.each).reshape(-1, *[1] * axes) * prod(self.space)
        self.base = xp.asarray((planes + base).astype(np.intp))
        self.offsets = xp.asarray((np.asarray(apart) @ number).astype(np.intp))

    def chunks(self, *arrays: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the places of some images, flat, and the parts of other arrays that belong to them."""
        xp = self.xp
        x = _flat(xp, self.x).reshape(self.planes, *self.space)
        y = _flat(xp, self.y).reshape(self.planes, *self.pooled)
        flats = [_flat(xp, one).reshape(self.planes, -1) for one in arrays]
        for first in range(0, self.planes, self.each):
            part = slice(first, min(first + self.each, self.planes))
            places = self._find(x[part], y[part]).reshape(-1)
            yield places, *[one[part].reshape(-1) for one in flats]

    def _find(self, x: Any, y: Any) -> Any:
        xp, count = self.xp, len(x)
        unseen, less, which = self.unseen[:count], self.less[:count], self.which[:count]
        unseen.fill(True)
        which.fill(0)
        # The number of a window's winner is the number of places that come before it.
        for outs, ins in zip(self.outs[:-1], self.ins[:-1], strict=True):
            if _sliced(outs):
                part, known = less[outs], unseen[outs]
                xp.not_equal(x[ins], y[outs], part)
                xp.logical_and(known, part, known)
            else:
                unseen[outs] &= x[ins] != y[outs]
            xp.add(which, unseen.view(which.dtype) if which.dtype.itemsize == 1 else unseen, which)
        if y.dtype.kind == "f":
            nan = xp.isnan(y)
            if xp is not np or nan.any():  # another device would have to be waited for
                self._find_nan(x, nan, which)
        places = self.places[:count]
        xp.take(self.offsets, which, out=places, **({"mode": "clip"} if xp is np else {}))
        xp.add(places, self.base[:count], places)
        return places

    def _find_nan(self, x: Any, nan: Any, which: Any) -> None:
        for i in reversed(range(len(self.outs))):
            outs, ins = self.outs[i], self.ins[i]
            here = self.xp.isnan(x[ins]) & nan[outs]
            which[outs] = self.xp.where(here, which.dtype.type(i), which[outs])
            nan[outs] &= ~here


def _sliced(index: tuple[Any, ...]) -> bool:
    return all(part is ... or isinstance(part, slice) for part in index)


def _flat(xp: Any, x: Any) -> Any:
    return x if x.flags.c_contiguous else xp.ascontiguousarray(x)


def _starts(rule: Any, n: int, length: int) -> Any:
    """Return where the window of each result begins, maybe before the axis."""
    if rule is None:
        return np.arange(length)
    if rule[0] == "window":
        return np.arange(length) * rule[2] - rule[3]
    return np.arange(length) * n // length


def _apart(one: AxisMap) -> bool:
    """Return whether no two windows share an element."""
    taken = [ins for tap in one.taps for ins in _listed(tap.ins)]
    return len(set(taken)) == len(taken)


def _listed(selection: Any) -> list[int]:
    if isinstance(selection, slice):
        return list(range(selection.start, selection.stop, selection.step or 1))
    return selection.tolist()


def _bind_spread(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, x, y = inputs
    if not y.size:
        return partial(out.fill, 0)
    winners = _Winners(xp, x, y, attrs[0])
    # What several windows give to one element is added up in float32 at least.
    dtype = np.dtype(np.float32) if out.dtype.char == "e" else out.dtype
    direct = out.dtype == dtype and out.flags.c_contiguous
    total = out if direct else xp.empty(out.shape, dtype)

    def spread() -> None:
        total.fill(0)
        for places, target, given in winners.chunks(total, g):
            if winners.apart:
                target[places] = given
            else:
                xp.add.at(target, places, given.astype(dtype, copy=False))
        if total is not out:
            xp.copyto(out, total, "same_kind")

    return spread


def _bind_take(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    h, x, y = inputs
    if not y.size:
        return InTurn()
    winners = _Winners(xp, x, y, attrs[0])
    h = xp.broadcast_to(h, x.shape)
    total = out if out.flags.c_contiguous else xp.empty(out.shape, out.dtype)

    def take() -> None:
        for places, source, target in winners.chunks(h, total):
            target[...] = source[places]
        if total is not out:
            xp.copyto(out, total)

    return take


def _bind_numbers(xp: Any, inputs: Sequence[Any], out: Any, attrs: Any) -> Call:
    return partial(xp.copyto, out, xp.arange(out.size).reshape(out.shape))
