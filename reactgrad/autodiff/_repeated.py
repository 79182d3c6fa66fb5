"""Gradients of values that repeat a small one very often, as a broadcast to 2**31 elements.

Views of such a value (parts, other shapes, other orders of axes) cost nothing. Their gradients are arrays of zeros
with a few parts filled, as large as the value would be. So what is filled in is not placed there and then summed over
the repetitions: it is added up where it comes from, and the sums go to the elements that were repeated.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend import placed
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops import (
    ACCUMULATE,
    ALIAS,
    BROADCAST_TO,
    EXPAND_DIMS,
    GATHER,
    GETITEM,
    RESHAPE,
    SQUEEZE,
    TRANSPOSE,
    Index,
    Placed,
    Slot,
    accumulate,
    reshape_to,
    sum,
)

# Elements of a value whose gradient is looked at so; in smaller ones the zeros cost less than the look.
MANY: Final = 2**20
_SAVED: Final = 8  # so many times larger is the gradient than all that is added up instead

_SAME_ELEMENTS: Final = (RESHAPE, EXPAND_DIMS, SQUEEZE)


class _Step(NamedTuple):
    """A step from a value to a part or another form of it."""

    op: Op
    attrs: Any
    operands: tuple[Any, ...]  # the Vars in an index


class _End(NamedTuple):
    """A gradient that arrives, and the steps from the repeated value to what it is the gradient of."""

    gradient: Any
    steps: tuple[_Step, ...]


def is_many(host: Any, slot: int) -> bool:
    """Return whether a node is a view of very many elements."""
    found = host.specs[slot]
    if found is None or found.size is None or found.size < MANY:
        return False
    op = host.ops[slot]
    return type(op) is Op and op.view is not None


def gathered(graph: Any, slot: int, adjoint: Any, x: Any) -> Any:
    """Return the gradient of `x`, which the view `slot` repeats; ``None`` where nothing is gained.

    Parameters
    ----------
    adjoint : Var
        The gradient of the view.
    """
    host = graph._host
    found, many = host.specs[x._slot], host.specs[slot].size
    if found is None or not found.known or found.size * _SAVED > many:
        return None
    ends = _ends(graph, adjoint._slot, many // _SAVED)
    if ends is None:
        return None
    first = _Step(host.ops[slot], host.attrs[slot], ())
    numbers = np.arange(found.size).reshape(found.shape)
    parts = [_part(end, first, numbers, x) for end in ends]
    if any(part is None for part in parts):
        return None
    total = accumulate(parts, (found.size,))
    return total if found.shape == (found.size,) else reshape_to(total, found.shape)


def _ends(graph: Any, top: int, most: int) -> list[_End] | None:
    """Return all gradients that a sum is made of; ``None`` if none is placed or they have over `most` elements."""
    host, operands_of = graph._host, graph._scheduler.operands
    ends: list[_End] = []
    any_placed = False
    stack: list[tuple[int, tuple[_Step, ...]]] = [(top, ())]
    while stack:
        slot, steps = stack.pop()
        op, size = host.ops[slot], _size(host, slot)
        if size < MANY or not (op is ACCUMULATE or is_many(host, slot)):
            most -= size
            ends.append(_End(handle(graph, slot), steps))
        elif op is ACCUMULATE:
            operands = [handle(graph, one) for one in operands_of(slot)]
            for one, place, inside in placed(operands, host.attrs[slot][1]):
                if place is None:
                    stack.append((one._slot, steps))
                    continue
                any_placed = True
                step = _Step(GATHER if inside else GETITEM, (place,), tuple(inside))
                stack.append((one._slot, (*steps, step)))
        elif op is ALIAS:
            stack.append((operands_of(slot)[0], steps))
        elif op in _SAME_ELEMENTS:
            (one,) = operands_of(slot)
            stack.append((one, (*steps, _Step(RESHAPE, (host.specs[one].shape,), ()))))
        elif op is TRANSPOSE:
            (one,) = operands_of(slot)
            axes = host.attrs[slot][0]
            back = (
                None if axes is None else tuple(np.argsort([a % len(axes) for a in axes]).tolist())
            )
            stack.append((one, (*steps, _Step(TRANSPOSE, (back,), ()))))
        elif op.name == "flip":  # its own inverse
            (one,) = operands_of(slot)
            stack.append((one, (*steps, _Step(op, host.attrs[slot], ()))))
        elif op is BROADCAST_TO:  # it takes no memory
            ends.append(_End(handle(graph, slot), steps))
        else:
            return None
        if most < 0:
            return None
    return ends if any_placed else None


def _size(host: Any, slot: int) -> int:
    """Return the number of elements of a gradient; 0 if only its value shows it, as behind a mask."""
    found = host.specs[slot]
    if found is not None and found.size is not None:
        return found.size
    shape = host.attrs[slot][0] if host.ops[slot] is ACCUMULATE else None
    return 0 if shape is None or None in shape else prod(shape)


def _part(end: _End, first: _Step, numbers: Any, x: Any) -> Any:
    """Return what a gradient contributes to the elements of `x` in a row; ``None`` if that needs an array of all."""
    if numbers.size == 1:
        return reshape_to(sum(end.gradient), (1,))
    if any(step.operands for step in end.steps):
        at = x._graph.const(numbers)
        for step in (first, *end.steps):
            at = apply(step.op, (at, *step.operands), step.attrs)
        return Placed(end.gradient, Index((Slot(1),)), at)
    for step in (first, *end.steps):
        numbers = _viewed(step, numbers)
        if numbers is None:
            return None
    repeated = tuple([i for i, n in enumerate(numbers.strides) if n == 0 and numbers.shape[i] > 1])
    gradient = sum(end.gradient, repeated) if repeated else end.gradient
    numbers = numbers[tuple([0 if i in repeated else slice(None) for i in range(numbers.ndim)])]
    return Placed(reshape_to(gradient, (numbers.size,)), Index((_one_slice(numbers.reshape(-1)),)))


def _viewed(step: _Step, numbers: Any) -> Any:
    """Return the numbers of elements after a step, without a copy of very many; ``None`` if it needs one."""
    if step.op is RESHAPE:
        try:
            return numbers.reshape(step.attrs[0], copy=False)
        except (TypeError, ValueError):  # TypeError: by NumPy 2.0, which has no `copy`
            return None
    if step.op is GETITEM and not step.attrs[0].basic:
        return numbers[step.attrs[0].parts]
    return step.op.view(numbers, *step.attrs)  # type: ignore[misc]


def _one_slice(numbers: Any) -> Any:
    """Return numbers of elements as a slice, if they are evenly spaced and ascend; else as they are."""
    if numbers.size:
        start, last = int(numbers[0]), int(numbers[-1])
        step = max(1, (last - start) // max(1, numbers.size - 1))
        if np.array_equal(numbers, np.arange(start, start + step * numbers.size, step)):
            return slice(start, last + 1, step)
    numbers = numbers.copy()
    numbers.flags.writeable = False
    return numbers
