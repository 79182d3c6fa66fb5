"""When is a new value "unchanged"? Rules that stop a change from spreading (rule E9)."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad._names import remember
from reactgrad.backend import owner

Cutoff = Callable[[Any, Any], Any]

# Types whose values are the same if, and only if, they compare equal.
_EXACT = frozenset((int, bool, str, bytes))

# Elements compared at a time: a difference near the front is found without reading the rest.
_BLOCK = 1 << 15


def equal(old: Any, new: Any) -> bool:
    """Whether two values are the same.

    Arrays: same dtype and shape, and each element has the same bits or both are NaN. Other
    objects: the same type and ``==`` returning exactly ``True``.

    Parameters
    ----------
    old, new
        Any two values.

    Examples
    --------
    >>> import numpy as np
    >>> equal(np.array([0.0, np.nan]), np.array([0.0, np.nan]))
    True
    >>> equal(0.0, -0.0)
    False
    """
    if type(old) is type(new):
        if type(old) is float:
            # Numbers that compare equal have the same bits, but for the sign of zero.
            same = old == new and (old != 0.0 or copysign(1.0, old) == copysign(1.0, new))
            return same or (old != old and new != new)
        if type(old) in _EXACT:
            return old == new
    if isinstance(old, float) and isinstance(new, float) and type(old) is type(new):
        return _same_bits(np.float64(old), np.float64(new))
    if isinstance(old, np.ndarray | np.generic) and isinstance(new, np.ndarray | np.generic):
        a, b = np.asarray(old), np.asarray(new)
        return a.dtype == b.dtype and a.shape == b.shape and _same_bits(a, b)
    device = owner(old)
    if device is not None and owner(new) is device:
        return equal(device.to_numpy(old), device.to_numpy(new))
    if old is None or new is None:
        return old is new
    try:
        return type(old) is type(new) and (old == new) is True
    except Exception:  # objects that cannot say, such as lists of arrays
        return False


def _same_bits(old: Any, new: Any) -> bool:
    a, b = np.ravel(old), np.ravel(new)
    for start in range(0, a.size, _BLOCK):
        x, y = a[start : start + _BLOCK], b[start : start + _BLOCK]
        if x.tobytes() == y.tobytes():
            continue
        if x.dtype.kind not in "fc":
            return False
        both_nan = np.isnan(x) & np.isnan(y)
        if x[~both_nan].tobytes() != y[~both_nan].tobytes():
            return False
    return True


class Tolerance:
    """Unchanged where every element stays within `atol` + `rtol` * abs(old)."""

    __slots__ = ("atol", "rtol")

    def __init__(self, rtol: float, atol: float) -> None:
        self.rtol = rtol
        self.atol = atol

    def __call__(self, old: Any, new: Any) -> bool:
        a, b = np.asarray(old), np.asarray(new)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        a, b = a.ravel(), b.ravel()
        with np.errstate(all="ignore"):
            for start in range(0, a.size, _BLOCK):
                x, y = a[start : start + _BLOCK], b[start : start + _BLOCK]
                if not np.isclose(y, x, rtol=self.rtol, atol=self.atol, equal_nan=True).all():
                    return False
        return True

    def __repr__(self) -> str:
        return f"rg.tolerance(rtol={self.rtol}, atol={self.atol})"


def tolerance(rtol: float = 0.0, atol: float = 0.0) -> Tolerance:
    """A cutoff that calls small changes unchanged.

    The old value is kept, so slow drift adds up until it exceeds the tolerance and is then seen.

    Parameters
    ----------
    rtol : float
        Allowed difference relative to the old value.
    atol : float
        Allowed absolute difference, in the units of the value.

    Raises
    ------
    DTypeError
        If either is negative or no number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, cutoff=rg.tolerance(atol=0.1))
    >>> x.set(1.05)
    >>> x.value
    1.0
    """
    for name, number in (("rtol", rtol), ("atol", atol)):
        if not isinstance(number, int | float) or not number >= 0:
            raise DTypeError(f"tolerance({name}={number!r}): it must be a number of at least 0.")
    return Tolerance(rtol, atol)


def read_cutoff(cutoff: Any) -> Cutoff | None:
    """The rule that a caller named."""
    if cutoff is None:
        return None
    if isinstance(cutoff, str) and cutoff == "equal":
        return equal
    if callable(cutoff):
        remember(cutoff)
        return cutoff
    raise DTypeError(
        f"cutoff={cutoff!r}: write None, 'equal', rg.tolerance(rtol, atol), or a function of "
        "(old, new) that returns whether the value counts as unchanged."
    )
