"""Kernels that sort, search and choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_binder, register_kernel
from reactgrad.backend.numpy._in_turn import InTurn

Call = Callable[[], object]

NAMES = (
    *(
        "flatnonzero",
        "argwhere",
        "sort",
        "argsort",
        "partition",
        "argpartition",
        "topk",
        "searchsorted",
    ),
    *("digitize", "lexsort", "isin", "interp", "choose"),
)

# NumPy's `choose` takes so many arrays.
MOST_CHOICES = 32


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def bind_sort(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        axis, order, descending = attrs
        steps = [partial(xp.copyto, out, inputs[0]), partial(out.sort, axis, order)]
        if descending:
            steps.append(partial(_reverse, xp, out, axis))
        return InTurn(*steps)

    def argsort(x: Any, out: Any, axis: int, order: str | None, descending: bool) -> None:
        if not descending:
            quick = xp is np and order == "stable" and _pays(x, axis)
            out[...] = _stable_order(x, axis) if quick else x.argsort(axis, order)
            return
        # Of equal elements the first stays first: the reversed array is sorted from the other end.
        turned = xp.flip(x, axis).argsort(axis, order)
        xp.subtract(x.shape[axis] - 1, xp.flip(turned, axis), out)

    def bind_partition(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        kth, axis = attrs
        return InTurn(partial(xp.copyto, out, inputs[0]), partial(out.partition, kth, axis))

    def argpartition(x: Any, out: Any, kth: tuple[int, ...], axis: int) -> None:
        out[...] = xp.argpartition(x, kth, axis)

    def topk(x: Any, out: Any, k: int, axis: int, largest: bool, in_order: bool) -> None:
        x, out = xp.moveaxis(x, axis, -1), xp.moveaxis(out, axis, -1)
        length = x.shape[-1]
        if not out.size:
            return
        if k == length:
            found = xp.broadcast_to(xp.arange(length), x.shape).copy()
        elif largest:
            found = xp.argpartition(x, length - k, -1)[..., length - k :]
        else:
            found = xp.argpartition(x, k - 1, -1)[..., :k]
        found.sort(-1)  # of equal elements the first stays first
        if in_order:
            values = xp.take_along_axis(x, found, -1)
            order = xp.empty(found.shape, xp.intp)
            argsort(values, order, -1, "stable", largest)
            found = xp.take_along_axis(found, order, -1)
        out[...] = found

    def searchsorted(*operands: Any) -> None:
        a, v, *sorter, out, side = operands
        if a.ndim == 1:
            out[...] = xp.searchsorted(a, v, side, *sorter)
            return
        for place in np.ndindex(a.shape[:-1]):
            out[place] = xp.searchsorted(a[place], v[place], side, *[one[place] for one in sorter])

    def digitize(x: Any, bins: Any, out: Any, right: bool) -> None:
        out[...] = xp.digitize(x, bins, right)

    def lexsort(*operands: Any) -> None:
        *keys, out, axis = operands
        if xp is np:
            out[...] = np.lexsort(tuple(keys), axis)
            return
        order = keys[0].argsort(
            axis, kind="stable"
        )  # one key after the other, the most important one last
        for key in keys[1:]:
            again = xp.take_along_axis(key, order, axis).argsort(axis, kind="stable")
            order = xp.take_along_axis(order, again, axis)
        xp.copyto(out, order)

    def isin(element: Any, test: Any, out: Any, unique: bool, invert: bool, how: Any) -> None:
        more = {} if how is None else {"kind": how}
        out[...] = xp.isin(element, test, assume_unique=unique, invert=invert, **more)

    def interp(*operands: Any) -> None:
        x, knots, values, *ends, out, given = operands
        xp.copyto(out, xp.interp(x, knots, values))
        for word, end in zip(given, ends, strict=True):
            xp.copyto(out, end, where=x < knots[0] if word == "l" else x > knots[-1])

    def choose(*operands: Any) -> None:
        numbers, *choices, out, mode = operands
        count = len(choices)
        if mode == "clip":
            numbers = numbers.clip(0, count - 1)
        elif mode == "wrap" or xp is not np:  # elsewhere an error would have to wait for the host
            numbers = numbers % count
        elif numbers.size and (numbers.min() < 0 or numbers.max() >= count):
            wrong = numbers[(numbers < 0) | (numbers >= count)].flat[0]
            raise IndexingError(
                f"choose: there is no choice {wrong} among {count}; numbers are from 0 to {count - 1}, "
                'or write mode="wrap" or mode="clip".'
            )
        if count <= MOST_CHOICES and xp is np:
            np.choose(numbers, choices, out, "wrap")  # type: ignore[call-overload]
            return
        for i, choice in enumerate(choices):
            xp.copyto(out, choice, where=numbers == i)

    def own(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        """Return the kernel of a function whose result is as long as it finds elements."""
        return lambda x, out: function(x)

    register_kernel("flatnonzero", kind, own(xp.flatnonzero))
    register_kernel("argwhere", kind, own(xp.argwhere))
    register_binder("sort", kind, bind_sort)
    register_kernel("argsort", kind, argsort)
    register_binder("partition", kind, bind_partition)
    register_kernel("argpartition", kind, argpartition)
    register_kernel("topk", kind, topk)
    register_kernel("searchsorted", kind, searchsorted)
    register_kernel("digitize", kind, digitize)
    register_kernel("lexsort", kind, lexsort)
    register_kernel("isin", kind, isin)
    register_kernel("interp", kind, interp)
    register_kernel("choose", kind, choose)


# Along shorter axes a stable sort takes no longer. One or two bytes are counted, which is faster than any other way.
FEWEST_IN_TWO_SORTS: Final = 4096


def _pays(x: Any, axis: int) -> bool:
    many = x.ndim > 0 and x.shape[axis] >= FEWEST_IN_TWO_SORTS
    return many and x.dtype.kind in "iuf" and x.dtype.itemsize in (4, 8)


def _stable_order(x: Any, axis: int) -> Any:
    return settled(x.argsort(axis), x, axis)


def settled(found: Any, x: Any, axis: int) -> Any:
    """Return ``x.argsort(axis, "stable")`` from the order that NumPy's fastest sort has found, which is not stable.

    It takes a fourth of the time. Of equal elements, and of NaNs, the places are sorted after it: the number of the
    run of equals counts more than the place.
    """
    order = np.moveaxis(found, axis, -1)
    ordered = np.take_along_axis(np.moveaxis(x, axis, -1), order, -1)
    same = ordered[..., 1:] == ordered[..., :-1]
    if x.dtype.kind == "f":
        same |= np.isnan(ordered[..., :-1])
    if same.any():
        first = np.ones(ordered.shape, bool)
        np.logical_not(same, out=first[..., 1:])
        among = ~first
        among[..., :-1] |= same
        runs = (np.cumsum(first).reshape(first.shape)[among] - 1) * ordered.shape[-1]
        places = runs + order[among]
        places.sort()
        order[among] = places - runs
    return found


def _reverse(xp: Any, out: Any, axis: int) -> None:
    out[...] = xp.flip(out, axis).copy()
