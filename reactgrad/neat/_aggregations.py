"""The aggregation functions of neat-python other than the sum, on arrays or Vars of weighted
sources.

Nearly all neurons of all networks add up; that is one op, see ``_weigh``. Ties share a gradient
evenly, as in reductions. A NaN among the sources makes the result NaN, where Python's ``max``,
``min`` and ``sorted``, and so neat-python, give one of the others, depending on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad import extend
from reactgrad.neat._samples import total_for


def _mean(values: Sequence[Any]) -> Any:
    return reduce(np.add, values) / len(values)


def _larger(a: Any, b: Any) -> Any:
    return np.where(np.abs(b) > np.abs(a), b, a)


def _middle(values: Sequence[Any]) -> Any:
    if len(values) < 3:
        return _mean(values)
    return median(*values) if isinstance(values[0], rg.Var) else _median(values)


def _sorted(values: Sequence[Any]) -> Any:
    return np.sort(np.stack(np.broadcast_arrays(*values)), axis=0)


def _median(values: Sequence[Any]) -> Any:
    low, high = (len(values) - 1) // 2, len(values) // 2
    ordered = _sorted(values)
    return ordered[low] if low == high else (ordered[low] + ordered[high]) / 2.0


@extend.primitive("neat_median", extend.broadcast)
def median(*values: Any, out: Any) -> None:
    """Compute the middle one of several values, or the mean of the middle two, sample by sample."""
    np.copyto(out, _median(values))


@extend.primitive("neat_median_share", lambda *specs, i: extend.broadcast(*specs))
def median_share(*values: Any, out: Any, i: int) -> None:
    """Compute the part that value `i` has in the median, which is constant almost everywhere."""
    ordered = _sorted(values)
    low, high = ordered[(len(values) - 1) // 2], ordered[len(values) // 2]
    share = np.zeros_like(low)
    for middle in (low, high):
        share += (values[i] == middle) * 0.5 / (ordered == middle).sum(axis=0)
    np.copyto(out, share)


def _share(i: int, g: Any, ans: Any, *values: Any) -> Any:
    return total_for(values[i], g * median_share(*values, i=i))


extend.defvjp(median, _share)
extend.defjvp(median, lambda i, t, ans, *values: t * median_share(*values, i=i))
extend.defvjp(median_share, None)
extend.defjvp(median_share, None)

# name: (of several values, of none)
AGGREGATIONS: Final[dict[str, tuple[Callable[[Sequence[Any]], Any], float]]] = {
    "product": (lambda values: reduce(np.multiply, values), 1.0),
    "max": (lambda values: reduce(np.maximum, values), 0.0),
    "min": (lambda values: reduce(np.minimum, values), 0.0),
    "maxabs": (lambda values: reduce(_larger, values), 0.0),
    "median": (_middle, 0.0),
    "mean": (_mean, 0.0),
}


def _broadcast_or_number(*values: extend.Spec, function: Any) -> extend.Spec:
    return extend.broadcast(*values)


@extend.primitive("neat_aggregate", _broadcast_or_number)
def aggregate_by(*values: Any, out: Any, function: Any) -> None:
    """Apply a function of a list of floats, sample by sample."""
    out.flat = _by_sample(function, values)


def _by_sample(function: Any, values: Sequence[Any]) -> list[float]:
    columns = [one.ravel().tolist() for one in np.broadcast_arrays(*values)]
    return [function(list(row)) for row in zip(*columns)]


def aggregate(function: Any, genes: Any, sources: Sequence[Any]) -> Any:
    """Return bias + response * `function` of the weighted sources, as a Var or as an array."""
    weighted = [source * genes[i + 2] for i, source in enumerate(sources)]
    if isinstance(function, str):
        several, none = AGGREGATIONS[function]
        total = several(weighted) if weighted else none
    elif not weighted:
        total = float(function([]))
    elif isinstance(weighted[0], rg.Var):
        total = aggregate_by(*weighted, function=function)
    else:
        total = np.array(_by_sample(function, weighted))
    return genes[0] + genes[1] * total
