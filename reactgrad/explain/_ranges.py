"""The range, the NaNs and the infinities of a value, for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import device_of, owner
from reactgrad.core._rows import Rows
from reactgrad.values._columns import MISSING


def array_of(host: Rows, slot: int) -> np.ndarray[Any, Any] | None:
    """Return the present value of a node as an array on the host.

    Return ``None`` where it holds no numbers.
    """
    value = host.data[slot]
    if value is MISSING:
        return None
    found = host.specs[slot]
    if found is not None and found.weak is None:
        if found.kind != "cpu":
            return device_of(found.device).to_numpy(value)
    elif not isinstance(value, int | float | complex | np.ndarray | np.generic):
        device = owner(value)
        if device is None:
            return None
        value = device.to_numpy(value)
    array = np.asarray(value)
    return array if array.dtype.kind in "biufc" else None


def count_text(array: np.ndarray[Any, Any], *, nan: bool = True, inf: bool = True) -> str:
    """Return the numbers of NaNs and infinities, as in ``1 NaN and 2 Inf``.

    Return an empty string if there are none.
    """
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return ""
    parts: list[str] = []
    if nan and (count := int(np.isnan(array).sum())):
        parts.append(f"{count} NaN")
    if inf and (count := int(np.isinf(array).sum())):
        parts.append(f"{count} Inf")
    return " and ".join(parts)


def range_text(host: Rows, slot: int) -> str:
    """Return dtype, shape and range of a value, as in ``float64[3], 0.5 to 2, 1 NaN``."""
    text, array = host.describe_value(slot), array_of(host, slot)
    if array is None:
        return text
    if not array.size:
        return f"{text}, empty"
    finite = array[np.isfinite(array)] if array.dtype.kind in "fc" else array
    if finite.size and array.dtype.kind != "c":
        low, high = finite.min(), finite.max()
        text += f", {low:.6g}" if low == high else f", {low:.6g} to {high:.6g}"
    counted = count_text(array)
    return f"{text}, {counted}" if counted else text
