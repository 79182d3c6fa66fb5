"""Row rules: which rows of a node's value hang on which rows of its operands.

A *row* is what one index along axis 0 selects. A rule exists where row i of the result is computed from row i of
the operands that have all rows, and from the whole of the others, by a kernel that gives the same bits for some
rows as for all of them. An op without a rule here is computed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from reactgrad.backend import Spec
from reactgrad.nodes._op import Attrs, Op
from reactgrad.scheduler import Ranges, joined

# What an operand is: `CUT`, its rows are those of the result; `WHOLE`, each of its elements may reach each row;
# `UNREAD`, its elements are not read.
CUT, WHOLE, UNREAD = "cut", "whole", "unread"

Rule = tuple[str, ...]

# Longer rows are summed by blocks of columns, if the array is large.
LONGEST: Final = 4096


@lru_cache(4096)
def rule_of(op: Op, found: Spec, specs: tuple[Spec, ...], attrs: Attrs) -> Rule | None:
    """Return what each operand of a node is, ``None`` if the node is computed as a whole.

    Parameters
    ----------
    found, specs
        The specs of the result, which has at least one axis, and of the operands.
    """
    if op.elementwise:
        return _elementwise(found, specs)
    rule = _RULES.get(op.name)
    return None if rule is None else rule(found, specs, attrs)


def _elementwise(found: Spec, specs: Sequence[Spec]) -> Rule:
    axes, rows = len(found.shape), found.shape[0]
    return tuple(
        [CUT if len(one.shape) == axes and one.shape[0] == rows else WHOLE for one in specs]
    )


def _alike(found: Spec, specs: Sequence[Spec], attrs: Attrs) -> Rule | None:
    return _elementwise(found, specs)


def _dense(found: Spec, specs: Sequence[Spec], attrs: Attrs) -> Rule | None:
    """Return the rule of ``accumulate``: contributions to the whole are added element by element."""
    return _elementwise(found, specs) if all(place is None for place in attrs[1]) else None


def _reduced(found: Spec, specs: Sequence[Spec], attrs: Attrs) -> Rule | None:
    """Return the rule of a reduction of the last axes, of which the first one stays."""
    x = specs[0]
    return (CUT,) if _rows_alone(x, _axes(attrs[0], len(x.shape))) else None


def _summed_back(found: Spec, specs: Sequence[Spec], attrs: Attrs) -> Rule | None:
    """Return the rule of ``sum_to`` and ``sum_like``, which sum the axes that broadcasting stretched."""
    x = specs[0]
    if len(x.shape) != len(found.shape) or x.shape[0] != found.shape[0]:
        return None
    axes = [i for i, n in enumerate(found.shape) if n != x.shape[i]]
    return (CUT, *[UNREAD] * (len(specs) - 1)) if _rows_alone(x, axes) else None


def _by_rows(found: Spec, specs: Sequence[Spec], attrs: Attrs) -> Rule | None:
    """Return the rule of kernels such as ``softmax``, whose first attribute is the axis of their sums."""
    alone = _rows_alone(found, _axes(attrs[0], len(found.shape)))
    return _elementwise(found, specs) if alone else None


def _axes(axis: Any, ndim: int) -> list[int]:
    if axis is None:
        return list(range(ndim))
    return [one % ndim for one in (axis if type(axis) is tuple else (axis,))]


def _rows_alone(x: Spec, axes: Sequence[int]) -> bool:
    """Return whether sums over these axes are sums of elements that lie side by side within a row."""
    ndim, axes = len(x.shape), sorted(axes)
    if 0 in axes or axes != list(range(ndim - len(axes), ndim)):
        return False
    length = 1
    for i in axes:
        length *= x.shape[i] or 0
    return length <= LONGEST


_RULES: Final[dict[str, Callable[[Spec, Sequence[Spec], Attrs], Rule | None]]] = {
    "astype": _alike,
    "accumulate": _dense,
    **dict.fromkeys(("sum", "mean", "max", "min", "prod"), _reduced),
    **dict.fromkeys(("sum_to", "sum_like"), _summed_back),
    **dict.fromkeys(("softmax", "softmax_grad", "log_softmax", "log_softmax_grad"), _by_rows),
    **dict.fromkeys(("standardize", "standardize_grad", "standardize_back", "over_std"), _by_rows),
}


def plain(array: Any, *, rows_only: bool) -> bool:
    """Return whether the bits of a kernel's results do not hang on where in an array its operands lie.

    With ``rows_only`` the elements of a row must lie side by side, too.
    """
    if type(array) is not np.ndarray or array.dtype.kind not in "biuf" or array.dtype.char == "g":
        return False
    if rows_only or array.dtype.char == "e":
        return bool(array.flags.c_contiguous)
    return min(array.strides, default=0) >= 0


def rows_of_view(view: Any, base: Any, rows: Ranges) -> Ranges | None:
    """Return the rows of a view that lie in these rows of the array which it shows; ``None``: maybe all.

    This is read off the memory, so it holds for whatever op has made the view.
    """
    if not view.ndim or not base.ndim or not view.size:
        return None
    step = base.strides[0]
    if view.strides[0] != step or step <= 0 or min(view.strides) < 0:
        return None
    start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    within = sum([(n - 1) * one for n, one in zip(view.shape[1:], view.strides[1:])])
    shift, offset = divmod(start, step)
    inside = sum([(n - 1) * one for n, one in zip(base.shape[1:], base.strides[1:])])
    if min(base.strides) < 0 or max(within + offset, inside) + view.itemsize > step:
        return None  # rows of one of the two overlap
    found = [
        (max(begin - shift, 0), min(end - shift, len(view)))
        for begin, end in rows
        if end - shift > 0 and begin - shift < len(view)
    ]
    return tuple(found)


def reached(rule: Rule, changed: Sequence[Ranges | None]) -> Ranges | None:
    """Return the rows of a node that these rows of its operands reach; ``None``: all of them."""
    found: Ranges | None = ()
    for kind, rows in zip(rule, changed, strict=True):
        if rows == () or kind is UNREAD:
            continue
        if rows is None or kind is WHOLE or found is None:
            return None
        found = joined(found, rows)
    return found
