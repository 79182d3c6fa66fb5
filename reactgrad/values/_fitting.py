"""Values that fit a leaf: declared patterns of shape and dtype, and casts to the leaf's dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import (
    WEAK_DTYPES,
    WEAK_SPECS,
    Spec,
    device_of,
    owner,
    read_value,
    spec,
)
from reactgrad.scheduler import safe_repr
from reactgrad.values._quiet import quietly


def not_float(what: str, found: object) -> DTypeError:
    """Return the error for a param that was given a value of another kind than float."""
    return DTypeError(
        f"{what} was given {found}: params are arrays of floats, since only those have gradients. "
        "Write 3.0 instead of 3, or dtype='float64'; use g.input for integers."
    )


def read_pattern(what: str, shape: Any, dtype: Any, device: str = "cpu") -> Spec:
    """Return the spec that a leaf was declared with; ``None`` for a length that may vary.

    Raises
    ------
    ShapeError
        If ``shape`` holds anything but lengths and ``None``.
    """
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    for n in lengths:
        if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0):
            raise ShapeError(
                f"{what}: shape={safe_repr(shape)} must be made of integers of at least 0, or None for a "
                "length that may vary."
            )
    wanted = np.dtype(np.float64) if dtype is None else dtype
    return spec(tuple(None if n is None else int(n) for n in lengths), wanted, device)


def fits_pattern(pattern: Spec, found: Spec) -> bool:
    """Return whether a shape has the declared lengths."""
    return len(found.shape) == len(pattern.shape) and all(
        n is None or n == m for m, n in zip(found.shape, pattern.shape, strict=True)
    )


def check_pattern(what: str, pattern: Spec, found: Spec | None) -> None:
    """Raise ``ShapeError`` unless the spec of a value fits the pattern of its leaf."""
    if found is None or not fits_pattern(pattern, found):
        raise ShapeError(
            f"{what} is declared as {pattern!r} and was given {found or 'an object'!r}. Reshape "
            "the value, or declare None for a length that may vary."
        )


def _castable(found: Spec, value: Any) -> Any:
    """Return a dtype to check a cast with: a Python number may become any width of its kind."""
    if found.weak is float and math.isfinite(value):
        return np.dtype(np.float16)
    return np.dtype(np.int8) if found.weak is int else found.dtype


# Kinds of Python numbers; each holds those before it. Then their places, by the kind of a dtype.
_KINDS: tuple[Any, ...] = (bool, int, float, complex)
_ORDER = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def read_number(what: str, held: type, value: Any) -> tuple[Spec | None, Any]:
    """Return spec and value of what is set in a leaf that holds Python numbers of the kind `held`.

    Numbers, those of NumPy too, become Python numbers of that kind, or of their own if it is wider.
    Arrays keep their dtype if it is of no narrower kind.

    Raises
    ------
    DTypeError
        If an integer is too large for a float.
    """
    found, new = read_value(value, what)
    if found is None and isinstance(value, _KINDS):  # of a class of the user's, such as an enum
        found, new = read_value(
            next(kind for kind in _KINDS if isinstance(value, kind))(value), what
        )
    elif found is not None and found.weak is None and not found.shape and found.kind == "cpu":
        found, new = read_value(_KINDS[_ORDER[found.dtype.kind]](new), what)
    if found is None:
        return found, new
    if found.weak is None:
        return _no_narrower(held, found, new)
    kind = max(held, found.weak, key=_KINDS.index)
    try:
        # A bool is an int: functions get it as it is.
        return WEAK_SPECS[kind], new if kind is int else kind(new)
    except OverflowError:
        raise DTypeError(
            f"{what} holds a Python {held.__name__}, into which an integer of that size does not "
            "fit. Make an input of its own for such integers, g.input(10**400)."
        ) from None


def _no_narrower(held: type, found: Spec, array: Any) -> tuple[Spec, Any]:
    """Return spec and array, in the dtype of `held` where its own is of a narrower kind."""
    wanted = WEAK_DTYPES[held]
    if _ORDER[found.dtype.kind] >= _ORDER[wanted.kind]:
        return found, array
    array = device_of(found.device).asarray(array, wanted)
    return spec(found.shape, wanted, found.device), array


def read_as(
    what: str, value: Any, dtype: Any, device: str | None = None
) -> tuple[Spec | None, Any]:
    """Return spec and value of a leaf's first value, cast to ``dtype`` and put on ``device`` where given."""
    found, value = read_value(value, what)
    if found is None:
        if dtype is None and device is None:
            return found, value
        meant = f"have dtype='{dtype}'" if dtype is not None else f"live on {device!r}"
        raise DTypeError(
            f"{what} was given {type(value).__name__} ({safe_repr(value):.60}), which is no number or array "
            f"and cannot {meant}."
        )
    if dtype is not None:
        found, value = read_value(cast(what, value, dtype), what)
        assert found is not None
    if device is not None and (
        found.device != device or (found.weak is not None and device != "cpu")
    ):
        value = put_on(device, found, value)
        found = spec(found.shape, found.dtype, device)
    return found, value


def put_on(device: str, found: Spec, value: Any) -> Any:
    """Return a number, or an array of another device, as an array on this one."""
    if device == "cpu":
        return device_of(found.device).to_numpy(value)
    if found.weak is not None:
        value = np.asarray(value, found.dtype)
    elif found.kind not in ("cpu", device.partition(":")[0]):  # by way of the host
        value = device_of(found.device).to_numpy(value)
    return device_of(device).asarray(value, found.dtype)


def _cast_on_device(what: str, array: Any, dtype: Any) -> Any:
    found, _ = read_value(array, what)
    assert found is not None
    if not np.can_cast(found.dtype, dtype, "same_kind"):
        raise DTypeError(
            f"{what} was given {found!r} on {found.device}, which dtype={dtype} cannot hold without loss. "
            "Convert the value yourself with .astype if that is meant."
        )
    return device_of(found.device).asarray(array, dtype)


def cast(what: str, value: Any, dtype: Any) -> Any:
    """Return a numeric value as an array of this dtype. Only precision may be lost.

    Raises
    ------
    DTypeError
        If the numbers do not fit, or their kind would be lost.
    """
    array = value if owner(value) is not None else np.asarray(value)
    if not isinstance(array, np.ndarray | np.generic):
        return _cast_on_device(what, array, dtype)
    whole = array.dtype.kind in "iub" or array.dtype.kind == "O"
    try:
        if dtype.kind in "iu" and whole:
            limits = np.iinfo(dtype)
            if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
                raise DTypeError(
                    f"{what} was given numbers from {array.min()} to {array.max()}, which do not fit "
                    f"{dtype} ({limits.min} to {limits.max}). Choose a wider dtype."
                )
        elif not whole and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise DTypeError(
                f"{what} was given {array.dtype}, which dtype={dtype} cannot hold without loss. "
                "Convert the value yourself with .astype if that is meant."
            )
        return quietly(array.astype, dtype)
    except OverflowError as error:
        raise DTypeError(f"{what}: {error}. Choose a wider dtype.") from None
