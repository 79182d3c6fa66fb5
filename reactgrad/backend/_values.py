"""Conversion of what callers write to values that nodes can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend._device import cpu, device_of_kind, owner
from reactgrad.backend._spec import WEAK_SPECS, Spec, spec

_NUMERIC = "biufc"


def read_dtype(what: str, dtype: Any) -> Any:
    """Return the dtype that a caller wrote, in the machine's byte order.

    Raises
    ------
    DTypeError
        If it is no dtype, or not one of numbers.
    """
    try:
        wanted = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise DTypeError(
            f"{what}: dtype={dtype!r} is no dtype; write for example 'float64'."
        ) from None
    if wanted.kind not in _NUMERIC:
        raise DTypeError(
            f"{what}: dtype={dtype!r} is not numeric; values are booleans, integers, floats or complex "
            "numbers."
        )
    return wanted


def read_value(value: Any, what: str) -> tuple[Spec | None, Any]:
    """Return the spec of a value that a caller gave, and the value as an array or as it is.

    Python numbers stay numbers. Lists and tuples of numbers, and everything array-like, become an
    array, which may share the caller's memory: copy it before keeping it. Any other object stays as
    it is, with the spec ``None``, for nodes that call Python functions.

    Parameters
    ----------
    value
        The value as the caller wrote it.
    what
        The name of the value in messages, for example ``"input 'x'"``.

    Raises
    ------
    ShapeError
        For ragged lists.
    DTypeError
        For arrays of objects, strings or dates, and for masked arrays.
    """
    kind = type(value)
    if kind in WEAK_SPECS:
        return WEAK_SPECS[kind], value
    if isinstance(value, np.str_ | np.bytes_):  # elements of arrays of strings
        return None, value.item()
    device = owner(value)
    if device is None:
        if isinstance(value, list | tuple):
            value, device = _from_list(value, what), cpu
        elif hasattr(value, "__array__") and not isinstance(value, type):
            value, device = np.asarray(value), cpu
        else:
            return None, value
    if isinstance(value, np.ma.MaskedArray):
        raise DTypeError(
            f"{what} was given a masked array, and no op here knows masks. Write "
            "value.filled(...) and pass the mask as an input of its own for rg.where."
        )
    if device is cpu:
        value = np.asarray(value)
        if value.dtype.kind not in _NUMERIC:
            raise DTypeError(
                f"{what} was given an array of dtype {value.dtype} ({_kind_name(value.dtype)}), "
                "which has no kernels. Arrays hold booleans, integers, floats or complex numbers; "
                "convert it with .astype(...), or give other Python objects to an rg.lift function."
            )
        dtype = value.dtype.newbyteorder("=")
        if dtype != value.dtype or not value.dtype.isnative:
            value = value.astype(dtype)
    else:
        dtype = np.dtype(str(value.dtype).rpartition(".")[2])  # text such as "torch.float32"
    return spec(tuple(value.shape), dtype, device.name_of(value)), value


def own_copy(found: Spec, value: Any) -> Any:
    """Return a new array with the contents of `value`, contiguous and with at least one axis.

    NumPy's ufuncs are twice as fast on arrays of one element as on arrays without an axis, so a
    value of shape ``()`` is stored with shape ``(1,)``.
    """
    device = device_of_kind(found.kind)
    storage = device.empty(storage_shape(found), found.dtype)
    device.assign(storage, value)
    return storage


def storage_shape(found: Spec) -> tuple[int, ...]:
    """Return the shape in which values of this spec are stored."""
    return found.storage


def _holds_vars(value: Any) -> bool:
    return any(
        hasattr(one, "_slot") or (isinstance(one, list | tuple) and _holds_vars(one))
        for one in value
    )


def _from_list(value: list[Any] | tuple[Any, ...], what: str) -> Any:
    if _holds_vars(value):
        raise DTypeError(
            f"{what} was given a list that holds Vars, and would keep their present values for "
            "ever. rg.stack(list) makes a node that follows them."
        )
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ShapeError(
            f"{what} was given nested lists of different lengths ({error}). An array needs rows "
            "of one length: pad them, or make one input a row."
        ) from None
    if array.dtype.kind not in _NUMERIC:
        raise DTypeError(
            f"{what} was given a {type(value).__name__} that does not hold numbers only (NumPy "
            f"makes dtype {array.dtype} of it: {_kind_name(array.dtype)}). Lists become arrays; to "
            "carry other Python objects, return them from a function: rg.lift(lambda: value)()."
        )
    return array


def _kind_name(dtype: np.dtype[Any]) -> str:
    names = {"O": "objects", "U": "strings", "S": "bytes", "M": "dates", "m": "time differences"}
    return names.get(dtype.kind, "records")
