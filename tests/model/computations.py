"""What the nodes of the naive model compute, and when it counts as unchanged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

MISSING = object()
Shape = tuple[int, ...]


class Failure(ValueError):
    """What functions raise on purpose."""


class Loop(Exception):
    """A node needs itself."""


class Refused(Exception):
    """A change that must not be made: it closes a cycle, or shapes do not fit."""


# --- values --------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value as callers see it: one without axes is a NumPy scalar."""
    return value[()] if isinstance(value, np.ndarray) and not value.ndim else value


def same_bits(a: Any, b: Any) -> bool:
    """The same type, dtype, shape, and bits; any NaN is a NaN."""
    if type(a) is not type(b):
        return False
    if not isinstance(a, np.ndarray | np.generic | float):
        return bool(a == b)
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    nan = np.isnan(x) & np.isnan(y)
    return x[~nan].tobytes() == y[~nan].tobytes()


def first(value: Any) -> int:
    """The first element as an integer, for rules that depend on values."""
    number = float(np.ravel(value)[0])
    return math.floor(number) if math.isfinite(number) else 1


# --- what nodes compute --------------------------------------------------------------------------


def sum_rows(a: Any) -> Any:
    return np.sum(a, axis=0)


ARRAY_OPS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: np.add(a, b),
    "subtract": lambda a, b: np.subtract(a, b),
    "multiply": lambda a, b: np.multiply(a, b),
    "maximum": lambda a, b: np.maximum(a, b),
    "twice": lambda a: np.multiply(a, 2.0),
    "sum": lambda a: np.sum(a),
    "sum_rows": sum_rows,
    "max": lambda a: np.max(a),
    "transpose": lambda a: np.transpose(a),
    "flip": lambda a: np.asarray(a)[::-1],
    "row": lambda a: np.asarray(a)[0],
    "flat": lambda a: np.reshape(a, (-1,)),
}
ARITY = {name: 2 if name in ("add", "subtract", "multiply", "maximum") else 1 for name in ARRAY_OPS}

# Their result depends on the order of their operands' elements unless these are integers.
NEED_INTEGERS = ("sum", "sum_rows", "max", "maximum")

Read = Callable[[int], Any]  # gives the value of the target with this position


def bump(read: Read, value: Any) -> Any:
    return value + 1.0


def fussy(read: Read, value: Any) -> Any:
    if first(value) % 3 == 0:
        raise Failure(f"{first(value)} is a multiple of 3")
    return value


def chooser(read: Read, choice: Any) -> Any:
    return read(first(choice) % 2)


def careful(read: Read, choice: Any) -> Any:
    try:
        return read(first(choice) % 2)
    except Failure:
        return -1.0


def greedy(read: Read, choice: Any) -> Any:
    both = read(0), read(1)
    return both[first(choice) % 2]


def peeking(read: Read, choice: Any) -> Any:
    return read(1) if first(choice) % 2 else 2.0


def switch(read: Read, choice: Any) -> Any:
    return read(0 if choice else 1)


# Python functions; those of the second kind read two other nodes while they run.
FUNCTIONS: dict[str, Callable[..., Any]] = {"bump": bump, "fussy": fussy}
READERS: dict[str, Callable[..., Any]] = {
    "chooser": chooser,
    "careful": careful,
    "greedy": greedy,
    "peeking": peeking,
    "switch": switch,
}


# --- when a value counts as unchanged ----------------------------------------------------------------


def close(old: Any, new: Any) -> bool:
    a, b = np.asarray(old), np.asarray(new)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with np.errstate(all="ignore"):
        return bool(np.all(np.isclose(b, a, rtol=0.0, atol=2.0, equal_nan=True)))


def same_first(old: Any, new: Any) -> bool:
    return first(old) == first(new)


def picky(old: Any, new: Any) -> bool:
    if first(new) == 4:
        raise Failure("no 4 is compared")
    return first(old) == first(new)


CUTOFFS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": same_bits,
    "close": close,
    "same_first": same_first,
    "picky": picky,
}
