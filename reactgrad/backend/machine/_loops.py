"""The addresses of the compiled loops inside NumPy's ufuncs, and of arrays.

A ufunc has a table of C functions ``loop(args, dimensions, steps, data)``, one for each combination of
dtypes. Its struct is part of NumPy's public C interface (``PyUFuncObject`` in ``numpy/ufuncobject.h``).
Before an address is used, the struct is compared with what Python shows of the ufunc.
"""

from __future__ import annotations

from ctypes import POINTER, Structure, c_char, c_char_p, c_int, c_size_t, c_void_p
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.numpy._numpy import UFUNCS

# For these dtypes no loop raises, or calls Python; nor do those of some ufuncs for whole numbers.
PLAIN = frozenset("fd?")
_WHOLE = frozenset("il?")

COMPARISONS = frozenset(
    (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
)
_OF_WHOLE = COMPARISONS | {
    *(np.add, np.subtract, np.multiply, np.negative, np.positive, np.maximum, np.minimum),
}

_ELEMENTWISE = frozenset(getattr(np, name) for name in (*UFUNCS, "maximum", "minimum", "positive"))

# Generalized ufuncs, whose loops take the lengths of their operands, too; for these dtypes they do not raise.
_GENERALIZED = frozenset((np.vecdot, np.matmul))


class Loop(NamedTuple):
    """The address of a loop, and the loop's last argument."""

    function: int
    data: int


class _UFunc(Structure):
    _fields_ = (
        ("head", c_char * object.__basicsize__),
        ("nin", c_int),
        ("nout", c_int),
        ("nargs", c_int),
        ("identity", c_int),
        ("functions", POINTER(c_void_p)),
        ("data", POINTER(c_void_p)),
        ("ntypes", c_int),
        ("reserved", c_int),
        ("name", c_char_p),
        ("types", POINTER(c_char)),
    )


@lru_cache(4096)
def find_loop(ufunc: np.ufunc, dtypes: str) -> Loop | None:
    """Return the loop of an elementwise `ufunc`, of ``np.vecdot`` or ``np.matmul``, for these dtypes.

    ``None`` if it has none without conversions.

    Parameters
    ----------
    ufunc
        A ufunc of NumPy with one result.
    dtypes
        The characters of the dtypes, operands first.

    Examples
    --------
    >>> import numpy as np
    >>> find_loop(np.add, "ddd") is not None, find_loop(np.add, "dfd")
    (True, None)
    """
    signature = f"{dtypes[:-1]}->{dtypes[-1]}"
    plain = ufunc in _ELEMENTWISE and ufunc.signature is None
    known = PLAIN.issuperset(dtypes) or (ufunc in _OF_WHOLE and _WHOLE.issuperset(dtypes))
    fits = (plain or ufunc in _GENERALIZED) and known
    if not fits or signature not in ufunc.types:
        return None
    table = _UFunc.from_address(id(ufunc))
    seen = (table.nin, table.nout, table.nargs, table.ntypes)
    if seen != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        return None
    place = ufunc.types.index(signature)
    if table.types[place * ufunc.nargs : (place + 1) * ufunc.nargs] != _numbers(dtypes):
        return None
    function = table.functions[place]
    data = table.data[place] if table.data else None
    return None if not function else Loop(function, data or 0)


def _numbers(dtypes: str) -> bytes:
    return bytes(np.dtype(one).num for one in dtypes)


_HEAD = object.__basicsize__
_pointer_at = c_size_t.from_address


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of the first element of `array`, ten times as fast as ``array.ctypes.data``.

    It is the first field after the head of an array's public struct.
    """
    return _pointer_at(id(array) + _HEAD).value


def addresses_of(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Return the addresses of the first elements of arrays, as an array of int64."""
    driver = find_driver()
    if driver is None:
        return np.array([*map(address_of, arrays)], np.int64)
    return np.frombuffer(driver.words_at(arrays, _HEAD), np.int64)
