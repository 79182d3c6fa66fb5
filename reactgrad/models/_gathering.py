"""Ops that pick elements by number, or write them to numbered places."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, converts, lifted
from reactgrad.models._layout import affordable
from reactgrad.models._open_lengths import Length

_WRITES = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def _from_start(index: Any, length: Any) -> Any:
    """Return indices that count from the start; negative ones count from the end."""
    return rg.where(rg.less(index, 0), index + length, index)


@converts("Gather")
def _gather(call: Call) -> Any:
    return rg.take(call[0], call[1], axis=call.attr("axis", 0))


@converts("GatherElements")
def _gather_elements(call: Call) -> Any:
    axis = call.axis(call.attr("axis", 0))
    return rg.gather(call[0], axis, _from_start(call[1], call.length(0, axis)))


@converts("GatherND")
def _gather_nd(call: Call) -> Any:
    batch = call.attr("batch_dims", 0)
    index, depth = call[1], call.shape(1)[-1]
    lead = np.indices(call.shape(1)[:batch])
    rest = call.rank(1) - 1 - batch
    places = [part.reshape(part.shape + (1,) * rest) for part in lead]
    return rg.asarray(call[0])[(*places, *(index[..., i] for i in range(depth)))]


@converts("Scatter", "ScatterElements")
def _scatter_elements(call: Call) -> Any:
    axis = call.axis(call.attr("axis", 0))
    index = _from_start(call[1], call.length(0, axis))
    shape = call.told(1) if None in call.shape_or_none(1) else call.shape(1)
    places: list[Any] = [_along(call, n, a, len(shape)) for a, n in enumerate(shape)]
    places[axis] = index
    return getattr(rg.asarray(call[0]).at[tuple(places)], _WRITES[call.attr("reduction", "none")])(
        call[2]
    )


def _along(call: Call, length: Length, axis: int, rank: int) -> Any:
    """Return the places along one of several axes."""
    return rg.reshape(call.count(length, 1), tuple(-1 if a == axis else 1 for a in range(rank)))


@converts("ScatterND")
def _scatter_nd(call: Call) -> Any:
    index, depth = call[1], call.shape(1)[-1]
    place = rg.asarray(call[0]).at[tuple(index[..., i] for i in range(depth))]
    return getattr(place, _WRITES[call.attr("reduction", "none")])(call[2])


@converts("TensorScatter")
def _tensor_scatter(call: Call) -> Any:
    cache, update = call.shape(0), call.shape(1)
    axis = call.axis(call.attr("axis", -2))
    first = call[2] if call.has(2) else np.zeros(cache[0], "i8")
    steps = np.arange(update[axis]).reshape([-1 if i == axis else 1 for i in range(len(cache))])
    at = rg.reshape(first, (-1, *[1] * (len(cache) - 1))) + steps
    if call.attr("mode", "linear") == "circular":
        at = at % cache[axis]
    places: list[Any] = list(np.indices(update, sparse=True))
    places[axis] = at
    return rg.asarray(call[0]).at[tuple(places)].set(call[1])


@converts("OneHot")
def _one_hot(call: Call) -> Any:
    depth, axis = int(call.number(1)), call.attr("axis", -1)
    shape = [n or 1 for n in call.shape_or_none(0)]
    axis = call.axis(axis, len(shape) + 1)
    affordable(call, [*shape, depth])
    index = rg.astype(_from_start(call[0], depth), "i8")
    wanted = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(len(shape) + 1)])
    values = call[2]
    return rg.where(rg.equal(rg.expand_dims(index, axis), wanted), values[1], values[0])


@converts("TopK")
def _top_k(call: Call) -> Any:
    axis, k = call.axis(call.attr("axis", -1)), call.ints(1)[0] if call.has(1) else call.attr("k")
    largest, length = bool(call.attr("largest", 1)), call.shape_or_none(0)[axis]
    _enough(call, k, length)

    def places(x: Any) -> Any:
        _enough(call, k, x.shape[axis])
        order = np.argsort(np.flip(x, axis), axis=axis, kind="stable") if largest else None
        if order is None:
            order = np.argsort(x, axis=axis, kind="stable")
        else:  # descending, and of equal elements the first one first
            order = x.shape[axis] - 1 - np.flip(order, axis)
        return np.take(order, range(k), axis).astype("i8")

    if length is None:
        index = lifted(places, call[0])
    else:  # an op, whose dtype and lengths are known before it has a value
        order = rg.argsort(rg.flip(call[0], axis) if largest else call[0], axis=axis, kind="stable")
        order = length - 1 - rg.flip(order, axis) if largest else order
        index = rg.take(order, range(k), axis=axis)
    return rg.take_along_axis(call[0], index, axis), index


def _enough(call: Call, k: int, length: int | None) -> None:
    """Refuse to pick more elements than there are."""
    checked(
        k >= 0 and (length is None or k <= length),
        f"{call} picks {k} elements of an axis of {'any' if length is None else length} length.",
    )


@converts("Compress")
def _compress(call: Call) -> Any:
    axis = call.attr("axis")
    kept = np.flatnonzero(call.static(1))
    x = rg.reshape(call[0], (-1,)) if axis is None else call[0]
    return rg.take(x, kept, axis=0 if axis is None else axis)


@converts("NonZero")
def _non_zero(call: Call) -> Any:
    return lifted(lambda x: np.array(np.nonzero(x), "i8"), call[0])


@converts("Unique")
def _unique(call: Call) -> Any:
    axis, in_order = call.attr("axis"), bool(call.attr("sorted", 1))

    def unique(x: Any) -> Any:
        y, first, back, counts = np.unique(x, True, True, True, axis)
        back = back.reshape(-1)
        if not in_order:  # in the order in which they first appear
            order = np.argsort(first)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            y = np.take(y, order, 0 if axis is None else axis)
            first, counts, back = first[order], counts[order], place[back]
        return y, first.astype("i8"), back.astype("i8"), counts.astype("i8")

    return tuple(lifted(unique, call[0], outputs=4))
