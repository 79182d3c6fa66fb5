"""Conversion of what callers write to values that nodes can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ImplicitValueError, ShapeError
from reactgrad.backend._device import cpu, device_of, owner
from reactgrad.backend._objects import refuse_one_shot
from reactgrad.backend._spec import WEAK_SPECS, Spec, spec
from reactgrad.scheduler import safe_repr

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
    except (TypeError, ValueError):
        raise DTypeError(
            f"{what}: dtype={safe_repr(dtype)} is no dtype; write for example 'float64'."
        ) from None
    if wanted.kind not in _NUMERIC:
        raise DTypeError(
            f"{what}: dtype={safe_repr(dtype)} is not numeric; values are booleans, integers, floats or complex "
            "numbers."
        )
    return wanted


def read_value(value: Any, what: str) -> tuple[Spec | None, Any]:
    """Return the spec of a value that a caller gave, and the value as an array or as it is.

    Python numbers stay numbers. Lists and tuples of numbers become an array; an array stays one, of the
    library of its device, and may share the caller's memory: copy it before keeping it. Any other object
    stays as it is, with the spec ``None``, for nodes that call Python functions: also one that could be
    converted to an array, such as a DataFrame, whose labels would be lost.

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
        For arrays of objects, strings or dates, for masked arrays and other subclasses of
        ``numpy.ndarray``, arrays of libraries that are no device here, and for objects that can be read
        only once.
    """
    kind = type(value)
    if kind in WEAK_SPECS:
        return WEAK_SPECS[kind], value
    if isinstance(value, np.str_ | np.bytes_):  # elements of arrays of strings
        return None, value.item()
    device = owner(value)
    if device is None:
        if kind is list or kind is tuple:
            value, device = _from_list(value, what), cpu
        elif _is_array_of_another_library(kind):
            raise _foreign(what, kind)
        else:
            refuse_one_shot(what, value)
            return None, value
    elif kind not in _PLAIN_ARRAYS and isinstance(value, np.ndarray):
        raise _subclass(what, value)
    if device is cpu:
        value = np.asarray(value)
        if value.dtype.kind not in _NUMERIC:
            raise _no_numbers(what, value)
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
    device = device_of(found.device)
    storage = device.empty(storage_shape(found), found.dtype)
    device.assign(storage, value)
    return storage


def storage_shape(found: Spec) -> tuple[int, ...]:
    """Return the shape in which values of this spec are stored."""
    return found.storage


# Classes of arrays that are nothing but their elements.
_PLAIN_ARRAYS = frozenset((np.ndarray, np.memmap))


def _is_array_of_another_library(kind: type) -> bool:
    # Only arrays without labels or units take part in the exchange by DLPack.
    return hasattr(kind, "__dlpack__") and hasattr(kind, "__array__")


def _foreign(what: str, kind: type) -> DTypeError:
    """Return the error for an array of a library that is no device here."""
    library = kind.__module__.partition(".")[0]
    return DTypeError(
        f"{what} was given a {kind.__name__} of {library}, which would become an array of NumPy, and no "
        f"result would be a {kind.__name__} again. If that is meant, write np.asarray(array). To compute "
        f"with {library}: reactgrad.backend.array_api.register_array_api(xp, {library!r}), with its "
        "namespace of the array API standard."
    )


def _subclass(what: str, value: Any) -> DTypeError:
    """Return the error for an array of a class that says more than its elements do."""
    if isinstance(value, np.ma.MaskedArray):
        return DTypeError(
            f"{what} was given a masked array, and no op here knows masks. Write "
            "value.filled(...) and pass the mask as an input of its own for rg.where."
        )
    kind = type(value).__name__
    if value.dtype.kind not in _NUMERIC:
        return _no_numbers(what, value)
    return DTypeError(
        f"{what} was given a {kind}, whose class changes what its elements mean or how it is "
        "computed with, and no op here knows that. If its elements are meant, write "
        "np.asarray(value)."
    )


def _no_numbers(what: str, array: Any) -> DTypeError:
    return DTypeError(
        f"{what} was given an array of dtype {array.dtype} ({_kind_name(array.dtype)}), "
        "which has no kernels. Arrays hold booleans, integers, floats or complex numbers; "
        "convert it with .astype(...), or give other Python objects to an rg.lift function."
    )


# Types of elements that need no further check.
_NUMBERS = frozenset((bool, int, float, complex, np.float64, np.float32, np.int64, np.bool_))


def _check_elements(value: Any, what: str) -> None:
    """Raise if what is in nested lists would lose its meaning, or its life, in an array."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if _NUMBERS.issuperset(map(type, inner)):
            continue
        for one in inner:
            kind = type(one)
            if kind is list or kind is tuple:
                stack.append(one)
            elif hasattr(one, "_slot"):
                raise ImplicitValueError(
                    f"{what} was given a list that holds Vars, and would keep their present values "
                    "for ever. rg.stack(list) makes a node that follows them."
                )
            elif isinstance(one, np.ndarray):
                if kind not in _PLAIN_ARRAYS:
                    raise _subclass(f"in a list, {what}", one)
            elif owner(one) not in (None, cpu):
                raise DTypeError(
                    f"{what} was given a list that holds arrays of another device than the host. Stack "
                    "them there before, with the functions of their library."
                )
            elif _is_array_of_another_library(kind) and owner(one) is None:
                raise _foreign(f"in a list, {what}", kind)
            elif (hasattr(kind, "__array__") and owner(one) is None) or isinstance(one, tuple):
                raise DTypeError(
                    f"{what} was given a list that holds a {kind.__name__}, of which an array "
                    "would keep nothing but the elements. If these are meant, write "
                    "np.asarray(one) for each."
                )
            else:
                refuse_one_shot(what, one)


def _from_list(value: list[Any] | tuple[Any, ...], what: str) -> Any:
    _check_elements(value, what)
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
