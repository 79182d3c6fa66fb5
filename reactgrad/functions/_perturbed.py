"""Values near others, to find out what depends on a number that no gradient passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import holder

_STEP = float(np.sqrt(np.finfo(float).eps))


def nearby(value: Any, way: int) -> Any:
    """Return a number or array of floats near `value`, each element moved farther than the one
    before.

    No element crosses zero, where most jumps are. Zeros themselves move away from it, so a function
    that jumps there differs in one direction only.

    Parameters
    ----------
    value
        Anything but floats and arrays of floats is returned as it is.
    way
        1 for more, -1 for less.
    """
    device = holder(value)
    if device is None:
        step = way * _STEP
        return value + (abs(value) or 1.0) * step if isinstance(value, float | complex) else value
    if value.dtype.kind not in "fc":
        return value
    step = way * np.sqrt(np.finfo(value.dtype).eps)
    # A different step for each element, so that effects of two elements do not cancel.
    steps = np.linspace(step, 2 * step, value.size).reshape(value.shape)
    return value + (abs(value) + (value == 0)) * device.asarray(steps, abs(value).dtype)
