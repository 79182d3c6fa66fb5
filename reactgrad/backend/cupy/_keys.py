"""Indices whose arrays lie on the current device, so that no call has to copy them from the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad.backend._parts import numbers_in


def device_keys(
    xp: Any, at: Any, indices: Sequence[Any], shape: Sequence[int]
) -> Callable[[], tuple[Any, ...]]:
    """Return a call that gives the index `at` of a value of this shape, with the values of its operands.

    Numbers that are no index of their axis count on from its other end, as everywhere in CuPy: an error would
    have to wait for the host. Masks that are known now become the positions of their true elements.
    """
    if at.along is not None:
        numbers, how = indices[0], at.along
        axis = how.axis % numbers.ndim
        lengths = numbers.shape if how.short else tuple(shape[: numbers.ndim])
        grid = [xp.asarray(one) for one in np.indices(lengths, sparse=True)]

        def along() -> tuple[Any, ...]:
            return (*grid[:axis], numbers_in(numbers, how.mode, shape, axis), *grid[axis + 1 :])

        return along
    parts: list[Any] = []
    for place, part in enumerate(at.parts):
        if hasattr(part, "number"):  # the place of an operand
            axis = at.axis_of(place, shape)
            parts.append(partial(numbers_in, indices[part.number - 1], part.mode, shape, axis))
        elif isinstance(part, np.ndarray):
            found = part.nonzero() if part.dtype.kind == "b" else (part,)
            parts += [xp.asarray(one) for one in found]
        else:
            parts.append(part)
    if not any(isinstance(part, partial) for part in parts):
        fixed = tuple(parts)
        return lambda: fixed
    return lambda: tuple([part() if isinstance(part, partial) else part for part in parts])
