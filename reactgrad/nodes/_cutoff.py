"""Cutoffs: rules that call a new value unchanged and so stop a change from spreading (rule E9).

The steps of a run ask them (``values/_steps``), and sets of leaves (``change/_set``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign, inf
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError
from reactgrad.backend import cpu, lasts, owner
from reactgrad.nodes._function_names import remember
from reactgrad.scheduler import add_note, is_interrupt, safe_repr

Cutoff = Callable[[Any, Any], Any]

# Types whose values are the same if, and only if, they compare equal.
_EXACT = frozenset((int, bool, str, bytes))

# Elements compared at a time: a difference near the front is found without reading the rest.
_BLOCK = 1 << 15


def equal(old: Any, new: Any) -> bool:
    """Return whether two values are the same.

    Two arrays are the same if they have the same class, dtype and shape, and each pair of elements
    has the same bits or is NaN. Arrays of classes that may hold more than their elements, such as
    masked arrays, are never the same. Other objects are the same if they have the same type, ``==``
    returns exactly ``True``, and all parts of which they are made are the same, in the same order.
    One object that may have changed in place is not the same as itself.

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
    try:
        return _same(old, new)
    except Exception as error:  # objects that cannot be compared, or have no form for `pickle`
        if is_interrupt(error):
            raise
        return False


def _same(old: Any, new: Any) -> bool:
    """Do the work of ``equal`` for all but the most frequent types."""
    kind = type(old)
    if kind in _PYTHON_FLOATS and kind is type(new):
        return _same_bits(np.asarray(old), np.asarray(new))
    if isinstance(old, _ARRAYS) and isinstance(new, _ARRAYS) and _told_by_elements(old, new):
        a, b = np.asarray(old), np.asarray(new)
        return a.dtype == b.dtype and a.shape == b.shape and _same_bits(a, b)
    if (pair := _brought(old, new)) is not None:
        return equal(*pair)
    return kind is type(new) and _same_parts(old, new)


def _brought(old: Any, new: Any) -> tuple[Any, Any] | None:
    """Return two arrays of one device as arrays of the host, which waits for them; else ``None``."""
    if isinstance(old, _ARRAYS):
        return None
    device = owner(old)
    if device is None or device is cpu or owner(new) is not device:
        return None
    return device.to_numpy(old), device.to_numpy(new)


def _same_parts(old: Any, new: Any) -> bool:
    """Return whether two objects of one type are made of the same parts."""
    kind = type(old)
    if kind is float or kind in _EXACT:
        return equal(old, new)
    if old is new:
        return lasts(old)
    if kind in _PYTHON_FLOATS or isinstance(old, np.generic):
        return _same(old, new)
    if isinstance(old, np.ndarray):
        # Arrays of one memory: what was changed in place is not seen in the older one.
        return not np.may_share_memory(old, new) and _same(old, new)
    if kind is dict:
        return len(old) == len(new) and _same_each([*old.items()], [*new.items()])
    if kind in _SEQUENCES:
        return len(old) == len(new) and _same_each([*old], [*new])
    if (old == new) is not True:
        return False
    # The parts in which `pickle` would write them: how to make one, and its contents.
    return _same_each(*([_listed(part) for part in one.__reduce_ex__(4)] for one in (old, new)))


def _same_each(old: Any, new: Any) -> bool:
    return len(old) == len(new) and all(
        type(a) is type(b) and _same_parts(a, b) for a, b in zip(old, new, strict=True)
    )


def _listed(part: Any) -> Any:
    return list(part) if hasattr(type(part), "__next__") else part


_ARRAYS = (np.ndarray, np.generic)
_PYTHON_FLOATS = (float, complex)
_SEQUENCES = frozenset((list, tuple, set, frozenset))
# Classes of arrays that hold nothing but their elements; others may have a mask or a unit.
_PLAIN_CLASSES = frozenset((np.ndarray, np.matrix, np.memmap, np.recarray))


def _told_by_elements(old: Any, new: Any) -> bool:
    """Return whether both values are plain arrays or numbers of one class.

    Such values hold nothing but their elements, so comparing these is enough.
    """
    kind = _class_of(old)
    return kind is _class_of(new) and kind in _PLAIN_CLASSES


def _class_of(value: Any) -> type:
    return type(value) if isinstance(value, np.ndarray) else np.ndarray


def _same_bits(old: Any, new: Any) -> bool:
    for x, y in _blocks(old, new):
        # Bytes first: the test for NaN is slow, and seldom needed.
        if x.tobytes() == y.tobytes():
            continue
        if x.dtype.kind not in "fc":
            return False
        both_nan = np.isnan(x) & np.isnan(y)
        if x[~both_nan].tobytes() != y[~both_nan].tobytes():
            return False
    return True


def _blocks(a: Any, b: Any) -> Iterable[tuple[Any, Any]]:
    """Return an iterator over corresponding pieces of two arrays of one shape, in the order of memory."""
    if a.size <= _BLOCK:
        return ((a, b),)
    flags = ["external_loop", "buffered", "refs_ok"]
    return np.nditer([a, b], flags, order="K", buffersize=_BLOCK)  # type: ignore[return-value]


class Tolerance:
    """A cutoff: unchanged if every element stays within `atol` + `rtol` * abs(old)."""

    __slots__ = ("atol", "rtol")

    def __init__(self, rtol: float, atol: float) -> None:
        self.rtol = rtol
        self.atol = atol

    def __call__(self, old: Any, new: Any) -> bool:
        old, new = _brought(old, new) or (old, new)
        if not _told_by_elements(old, new):
            return False
        if type(old) is type(new) is int:
            return self._close_number(old, new)
        if old is new and not isinstance(old, _ARRAYS) and not lasts(old):
            return False  # a list, say, which may have been changed in place
        a, b = np.asarray(old), np.asarray(new)
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind not in "biufc":
            raise DTypeError(
                f"cutoff={self!r} compares numbers and arrays of numbers, and the value is "
                f"{type(new).__name__} ({safe_repr(new):.60}). Write cutoff='equal', or a function of (old, "
                "new) that returns whether the value counts as unchanged."
            )
        close = self._close if a.dtype.kind in "fc" else self._close_integers
        with np.errstate(all="ignore"):
            return all(close(x, y).all() for x, y in _blocks(a, b))

    def _close_number(self, old: int, new: int) -> bool:
        """Compare two Python integers of any size, without rounding."""
        # Both sides are multiplied by the denominators of `rtol` and `atol`: all is whole numbers.
        if inf in (self.rtol, self.atol):
            return True
        (r, by_r), (a, by_a) = self.rtol.as_integer_ratio(), self.atol.as_integer_ratio()
        return abs(new - old) * by_r * by_a <= a * by_r + r * by_a * abs(old)

    def _close(self, old: Any, new: Any) -> Any:
        return np.isclose(new, old, rtol=self.rtol, atol=self.atol, equal_nan=True)

    def _close_integers(self, old: Any, new: Any) -> Any:
        """Do the work of ``_close`` for integers, whose difference float64 cannot always hold."""
        # Larger minus smaller, modulo 2**64, is exact where a signed difference would overflow.
        gap = np.maximum(old, new).astype(np.uint64) - np.minimum(old, new).astype(np.uint64)
        limit = np.floor(self.atol + self.rtol * np.abs(old.astype(np.float64)))
        return (gap == 0) | (limit >= 2.0**64) | (gap <= limit.astype(np.uint64))

    def __repr__(self) -> str:
        return f"rg.tolerance(rtol={self.rtol}, atol={self.atol})"


def tolerance(rtol: float = 0.0, atol: float = 0.0) -> Tolerance:
    """Return a cutoff that calls small changes unchanged.

    A node that is cut off keeps its old value, so slow drift adds up until it exceeds the tolerance
    and counts as a change.

    Parameters
    ----------
    rtol : float
        Allowed difference relative to the old value.
    atol : float
        Allowed absolute difference, in the units of the value.

    Raises
    ------
    DTypeError
        If either is negative or not a number.

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
            raise ParameterError(
                f"tolerance({name}={safe_repr(number)}): it must be a number of at least 0."
            )
    return Tolerance(rtol, atol)


def read_cutoff(cutoff: Any) -> Cutoff | None:
    """Return the cutoff that the caller wrote as ``None``, ``"equal"`` or a callable.

    Raises
    ------
    DTypeError
        If it is anything else.
    """
    if cutoff is None:
        return None
    if isinstance(cutoff, str) and cutoff == "equal":
        return equal
    if callable(cutoff):
        remember(cutoff)
        return cutoff
    raise ParameterError(
        f"cutoff={safe_repr(cutoff)}: write None, 'equal', rg.tolerance(rtol, atol), or a function of "
        "(old, new) that returns whether the value counts as unchanged."
    )


def unchanged(cutoff: Cutoff, old: Any, new: Any) -> bool:
    """Return whether `cutoff` calls the new value unchanged.

    Raises
    ------
    DTypeError
        If the cutoff returns anything but ``True`` or ``False``.
    Exception
        Whatever the cutoff raises, with a note that names it.
    """
    try:
        outcome = cutoff(old, new)
    except Exception as error:
        if is_interrupt(error):
            raise
        add_note(
            error, f"in {_cutoff_name(cutoff)}, which was asked whether the new value is a change"
        )
        raise
    if outcome is True or outcome is False or isinstance(outcome, np.bool_):
        return bool(outcome)
    raise DTypeError(
        f"{_cutoff_name(cutoff)} returned {safe_repr(outcome):.80}; it must "
        "return True (unchanged) or False. For arrays write np.array_equal(old, new), or use "
        "cutoff='equal'."
    )


def _cutoff_name(cutoff: Cutoff) -> str:
    return f"the cutoff {getattr(cutoff, '__name__', cutoff)!r}"
