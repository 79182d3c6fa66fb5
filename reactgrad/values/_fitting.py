"""What fits a leaf: patterns of shape and dtype, and values in the leaf's dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import DeviceError, DTypeError, SetError, ShapeError
from reactgrad.backend import Spec, device_of_kind, read_value, spec
from reactgrad.ops import MODE, Handle
from reactgrad.values._store import CONST, MISSING, Leaf, frozen_copy

if TYPE_CHECKING:
    from reactgrad.graph._graph import Graph


def read_set(graph: Graph, slot: int, value: Any) -> tuple[Spec | None, Any]:
    """A new value for a leaf, checked and in the leaf's dtype."""
    host = graph._host
    kind, old = host.ops[slot], host.specs[slot]
    if host.plain_write(slot, value):
        return old, value
    name = host.name(slot)
    if kind is CONST:
        raise SetError(
            f"{name!r} is a constant and cannot be set. Make it an input, g.input(value), if "
            "it changes."
        )
    if not isinstance(kind, Leaf):
        raise SetError(
            f"{name!r} is computed by {host.describe_op(slot)} and cannot be set: its value "
            "follows its parents'. Set one of the inputs it depends on."
        )
    what = f"{kind.name} {name!r}"
    if kind is MODE and type(value) is not bool:
        raise SetError(f"{what} was given {value!r:.60}: write g.train() or g.eval().")
    if isinstance(value, Handle):
        raise DTypeError(
            f"{what} was given a Var. Write {name}.set(v.value) to copy its present value."
        )
    if host.data[slot] is MISSING and old is None:
        return read_as(what, value, host.dtypes.get(slot))
    found, new = read_value(value, what)
    pattern = host.patterns.get(slot)
    if old is None:  # an input of any object
        return None, new if found is None or found.weak is not None else frozen_copy(new)
    if found is None:
        raise DTypeError(
            f"{what} holds {old!r} and was given {type(value).__name__} ({value!r:.60}), "
            "which is no number or array. Make another input for such objects."
        )
    if old.weak is not None and pattern is None:
        # A number stays a Python number, also where NumPy's scalar types bring it.
        if found.weak is None and not found.shape and found.kind == "cpu":
            found, new = read_value(np.asarray(new).item(), what)
        # Where gradients were asked for an integer counts as the float that it stands for.
        integer = found is not None and found.weak in (int, bool)
        if integer and slot in host.floats:
            return old, new
        return found, new
    if found.weak is int and abs(new) > 1 << 1023 and old.dtype.kind in "fc":
        raise DTypeError(
            f"{what} holds {old.dtype}, into which an integer of that size does not fit."
        )
    if not np.can_cast(_castable(found, new), old.dtype, "same_kind"):
        raise DTypeError(
            f"{what} holds {old.dtype} and was given {found!r}: that would lose what the dtype "
            f"cannot hold. Convert it first, value.astype('{old.dtype}'), or make the "
            f"{kind.name} with dtype='{found.dtype}'."
        )
    if old.dtype.kind in "iu" and found.kind == "cpu":
        new = cast(what, new, old.dtype)
    if found.kind != old.kind and found.kind != "cpu":
        raise DeviceError(f"{what} lives on {old.device} and was given a value on {found.device}.")
    if old.kind != "cpu":
        new = device_of_kind(old.kind).asarray(new, old.dtype)
    elif found.dtype != old.dtype:
        # Here, where nothing has changed yet; overflow to infinity is no error.
        with np.errstate(all="ignore"):
            new = np.asarray(new).astype(old.dtype)
    found = spec(found.shape, old.dtype, old.device)
    if pattern is not None:
        check_pattern(what, pattern, found)
    return found, new


def not_float(what: str, found: object) -> DTypeError:
    return DTypeError(
        f"{what} was given {found}: params are arrays of floats, since only those have gradients. "
        "Write 3.0 instead of 3, or dtype='float64'; use g.input for integers."
    )


def read_pattern(what: str, shape: Any, dtype: Any) -> Spec:
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    for n in lengths:
        if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0):
            raise ShapeError(
                f"{what}: shape={shape!r} must be made of integers of at least 0, or None for a "
                "length that may vary."
            )
    wanted = np.dtype(np.float64) if dtype is None else dtype
    return spec(tuple(None if n is None else int(n) for n in lengths), wanted)


def check_pattern(what: str, pattern: Spec, found: Spec | None) -> None:
    if (
        found is None
        or len(found.shape) != len(pattern.shape)
        or any(n not in (None, m) for m, n in zip(found.shape, pattern.shape, strict=True))
    ):
        raise ShapeError(
            f"{what} is declared as {pattern!r} and was given {found or 'an object'!r}. Reshape "
            "the value, or declare None for a length that may vary."
        )


def _castable(found: Spec, value: Any) -> Any:
    """What decides whether a value may be cast: Python numbers may take any width of their kind."""
    if found.weak is float and math.isfinite(value):
        return np.dtype(np.float16)
    return np.dtype(np.int8) if found.weak is int else found.dtype


def read_as(what: str, value: Any, dtype: Any) -> tuple[Spec | None, Any]:
    """The first value of a leaf, in the dtype that was asked for; ``None``: in its own."""
    found, value = read_value(value, what)
    if dtype is None:
        return found, value
    if found is None:
        raise DTypeError(
            f"{what} was given {type(value).__name__} ({value!r:.60}), which is no number or array "
            f"and cannot have dtype='{dtype}'."
        )
    return read_value(cast(what, value, dtype), what)


def cast(what: str, value: Any, dtype: Any) -> Any:
    """A numeric value as an array of this dtype; only precision may be lost."""
    array = np.asarray(value)
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
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    except OverflowError as error:
        raise DTypeError(f"{what}: {error}. Choose a wider dtype.") from None
