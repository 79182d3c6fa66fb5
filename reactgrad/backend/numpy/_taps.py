"""Maps from the elements of one axis to those of another one: windows, and weighted neighbours.

A map is a list of *taps*. A tap takes, for each of some results, one element, with a weight. Where places have
a fixed distance a tap shows them as a slice, and NumPy moves a whole array in one call.

Kinds of maps, as attributes of ops (``rule``):

- ``("window", kernel, stride, padding, dilation, ceil)``: the elements under a kernel.
- ``("sum" | "padded" | "inside", kernel, stride, padding, dilation, ceil)``: their sum; their mean, where zeros
  of the padding count, or do not.
- ``("adaptive", length)``: the elements of each of so many equal parts, which overlap by one where the length is
  no multiple; ``("parts", length, scale)``: their mean, for so many parts or for a multiple of the length.
- ``("nearest" | "nearest-exact", length, scale, whole)``, ``("linear" | "cubic", length, scale, align,
  antialias)``: neighbours in an axis that is stretched (``_stretch``). With `whole` a length that is the same or
  twice as long in the end is stretched by just that, whatever the scale.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend.numpy._columns import steps
from reactgrad.backend.numpy._stretch import neighbours, stretched_length

Rule = tuple[Any, ...]
Selection = Any  # a slice, or an array of integers

WINDOWS = ("window", "sum", "padded", "inside")


class Tap(NamedTuple):
    """One element for each of some results.

    Attributes
    ----------
    outs, ins
        Which results, and which elements; no result stands twice.
    weights
        One for each, or ``None`` for 1.
    """

    outs: Selection
    ins: Selection
    weights: Any


class AxisMap(NamedTuple):
    """The taps of one axis.

    Attributes
    ----------
    length
        The number of results.
    taps
        In the order of the elements.
    divisors
        A number by which each result is divided in the end, or each element before, if the map is transposed.
    """

    length: int
    taps: tuple[Tap, ...]
    divisors: Any


def window_length(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """Return the number of windows along an axis; less than 1 if none finds place.

    With `ceil` a last window may reach beyond the padding, if it begins before the padding behind.
    """
    room = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil else 0)) // stride + 1
    return count - 1 if ceil and (count - 1) * stride >= n + padding else count


def length_of(rule: Rule | None, n: int | None) -> int | None:
    """Return the number of results for an axis of length `n`; ``None`` for a length that is not known."""
    if rule is None:
        return n
    if rule[0] in WINDOWS:
        return None if n is None else window_length(n, *rule[1:])
    if rule[0] == "adaptive":
        return rule[1]
    return stretched_length(rule[1], rule[2], n)


@lru_cache(1024)
def axis_map(rule: Rule, n: int, *, transposed: bool = False) -> AxisMap:
    """Return the map of `rule` for an axis of length `n`, or its transpose, from results to elements."""
    kind = rule[0]
    length = length_of(rule, n)
    assert length is not None
    if kind in WINDOWS:
        taps = _window_taps(rule, n, length, transposed=transposed)
        return AxisMap(n if transposed else length, taps, _counts(rule, n, length))
    divisors = weights = None
    if kind in ("adaptive", "parts"):
        numbers, outs, ins, divisors = _parts(n, length, mean=kind == "parts")
    else:
        numbers, outs, ins, weights = neighbours(rule, n, length)
    taps = _taps(numbers, outs, ins, weights, transposed=transposed)
    return AxisMap(n if transposed else length, taps, divisors)


def _window_taps(rule: Rule, n: int, length: int, *, transposed: bool) -> tuple[Tap, ...]:
    _, kernel, stride, padding, dilation, _ = rule
    pairs = [steps(k * dilation - padding, stride, n, length) for k in range(kernel)]
    if transposed:
        return tuple([Tap(ins, outs, None) for outs, ins in pairs])
    return tuple([Tap(outs, ins, None) for outs, ins in pairs])


def _counts(rule: Rule, n: int, length: int) -> Any:
    """Return by how much the sum of each window is divided; ``None`` for nothing."""
    kind, kernel, stride, padding = rule[:4]
    if kind in ("window", "sum"):
        return None
    starts = np.arange(length) * stride - padding
    # Zeros count as far as the padding reaches.
    ends = np.minimum(starts + kernel, n + padding if kind == "padded" else n)
    return ends - (starts if kind == "padded" else np.maximum(starts, 0))


def _parts(n: int, length: int, *, mean: bool) -> tuple[Any, Any, Any, Any]:
    starts = np.arange(length) * n // max(length, 1)
    counts = -(-(np.arange(1, length + 1) * n) // max(length, 1)) - starts
    numbers, outs = np.indices((int(counts.max(initial=0)), length))
    ins = starts[outs] + numbers
    inside = numbers < counts[outs]
    return numbers[inside], outs[inside], ins[inside], counts if mean else None


def _taps(numbers: Any, outs: Any, ins: Any, weights: Any, *, transposed: bool) -> tuple[Tap, ...]:
    if transposed:
        outs, ins = ins, outs
        if any(np.unique(outs[one]).size < one.sum() for one in _each(numbers)):
            numbers = _ranks(outs)
    found = []
    for one in _each(numbers):
        order = np.argsort(outs[one], kind="stable")
        own = None if weights is None else weights[one][order]
        found.append(
            Tap(
                _as_slice(outs[one][order]),
                _as_slice(ins[one][order]),
                None if own is None or (own == 1.0).all() else own,
            )
        )
    return tuple(found)


def _each(numbers: Any) -> list[Any]:
    return [numbers == one for one in range(int(numbers.max(initial=-1)) + 1)]


def _ranks(values: Any) -> Any:
    """Return for each value how many equal ones stand before it."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ranks = np.empty(values.size, int)
    ranks[order] = np.arange(values.size) - np.searchsorted(ordered, ordered)
    return ranks


def _as_slice(numbers: Any) -> Selection:
    """Return increasing numbers of equal distance as a slice, others as they are."""
    if numbers.size == 0:
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    step = int(numbers[1]) - first if numbers.size > 1 else 1
    if step > 0 and (np.diff(numbers) == step).all():
        return slice(first, last + 1, step)
    return numbers


def is_all(selection: Selection, length: int) -> bool:
    """Return whether a selection is the whole of an axis, in order."""
    return isinstance(selection, slice) and selection.indices(length) == (0, length, 1)
