"""Values near others: to see what follows from a number that no gradient passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import owner

_STEP = float(np.sqrt(np.finfo(float).eps))


def nearby(value: Any, way: int) -> Any:
    """A number or array of floats that is nearby, this way, each element farther than the one before.

    None of them crosses zero, where most that jumps does; zeros themselves leave it, so what jumps there
    differs one way alone.

    Parameters
    ----------
    value
        Others than floats and arrays of floats are given back as they are.
    way
        1 for more, -1 for less.
    """
    device = owner(value)
    if device is None:
        step = way * _STEP
        return value + (abs(value) or 1.0) * step if isinstance(value, float | complex) else value
    if value.dtype.kind not in "fc":
        return value
    step = way * np.sqrt(np.finfo(value.dtype).eps)
    steps = np.linspace(step, 2 * step, value.size).reshape(value.shape)
    return value + (abs(value) + (value == 0)) * device.asarray(steps, abs(value).dtype)
