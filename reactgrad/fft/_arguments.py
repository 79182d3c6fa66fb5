"""The arguments of transforms as attributes of ops: hashable, and equal where they mean the same."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.scheduler import safe_repr

Lengths = tuple[int | None, ...] | None
Axes = tuple[int, ...] | None

# The norm with which the other direction is scaled in the same way.
OTHER: Final = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def norm_of(name: str, norm: Any) -> str:
    """Return a norm as it is called.

    Raises
    ------
    ShapeError
        If there is no such norm.
    """
    if norm is None:
        return "backward"
    if not isinstance(norm, str) or norm not in OTHER:
        raise ShapeError(
            f"fft.{name}: norm={safe_repr(norm):.40}; it is 'backward' (only inverse transforms are divided by the "
            "length), 'forward' (only the others are), or 'ortho' (all are, by its square root)."
        )
    return norm


def lengths_of(name: str, s: Any) -> Lengths:
    """Return the lengths of transforms, ``None`` for that of the axis, as -1; ``None`` for all of these.

    Raises
    ------
    ShapeError
        If one is not positive.
    DTypeError
        If one is no integer.
    """
    if s is None:
        return None
    found = tuple(
        [None if n is None or _is_default(n) else length_of(name, n) for n in listed(name, "s", s)]
    )
    return None if all(n is None for n in found) else found


def listed(name: str, argument: str, numbers: Any) -> Any:
    """Return the numbers of an argument.

    Raises
    ------
    DTypeError
        If it is one number.
    """
    if not hasattr(numbers, "__iter__"):
        raise ParameterError(
            f"fft.{name}({argument}={safe_repr(numbers):.40}): it is a tuple, with a number for each axis."
        )
    return numbers


def _is_default(n: Any) -> bool:
    return isinstance(n, int | np.integer) and n == -1  # as NumPy reads it where there are several


def length_of(name: str, n: Any) -> int:
    """Return the number of points of a transform.

    Raises
    ------
    ShapeError
        If it is not positive.
    DTypeError
        If it is no integer.
    """
    number = integer(name, n)
    if number < 1:
        raise ShapeError(f"fft.{name}: a transform of {number} points; it needs one, or more.")
    return number


def axes_of(name: str, axes: Any, s: Any) -> Axes:
    """Return axes as a tuple; ``None`` for all, or, with lengths, for so many last ones.

    Raises
    ------
    ShapeError
        If there are not as many axes as lengths.
    DTypeError
        If one is no integer.
    """
    if axes is None:
        return None if s is None else tuple(range(-len(s), 0))
    found = tuple([integer(name, axis) for axis in listed(name, "axes", axes)])
    if s is not None and len(s) != len(found):
        raise ShapeError(
            f"fft.{name}: {len(s)} lengths in s, and {len(found)} axes; each axis has a length."
        )
    return found


def integer(name: str, number: Any) -> int:
    """Return a length or an axis as an integer.

    Raises
    ------
    DTypeError
        If it is none.
    """
    try:
        return int(number.__index__())
    except DTypeError:  # a Var: its text says what to write
        raise
    except (AttributeError, TypeError):
        raise ParameterError(
            f"fft.{name}: {safe_repr(number):.40} is no length or axis; these are integers, fixed when the node is "
            "built."
        ) from None
