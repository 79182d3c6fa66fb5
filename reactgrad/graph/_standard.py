"""The names of the array API standard that are no ops: arrays from objects, dtypes, and what the namespace can do.

``reactgrad`` is itself a namespace of the standard (2024.12), for all of it that does not write into arrays.
``x.__array_namespace__()`` returns it.
"""

from __future__ import annotations

import builtins
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ParameterError
from reactgrad.backend import devices, read_dtype, read_value
from reactgrad.graph._value import Value
from reactgrad.nodes._handle import Handle, current_graph, holds_handles, stacked

e, pi, inf, nan = np.e, np.pi, np.inf, np.nan
newaxis = None

bool = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"i{size}") for size in (1, 2, 4, 8))
uint8, uint16, uint32, uint64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
float16, float32, float64 = (np.dtype(f"f{size}") for size in (2, 4, 8))
complex64, complex128 = np.dtype("c8"), np.dtype("c16")

_DTYPES: Final = {
    "bool": {"bool": bool},
    "signed integer": {"int8": int8, "int16": int16, "int32": int32, "int64": int64},
    "unsigned integer": {"uint8": uint8, "uint16": uint16, "uint32": uint32, "uint64": uint64},
    "real floating": {"float32": float32, "float64": float64},
    "complex floating": {"complex64": complex64, "complex128": complex128},
}
_UNIONS: Final = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


# --- arrays from objects --------------------------------------------------------------------------


def asarray(
    obj: Any,
    /,
    dtype: Any = None,
    *,
    device: str | None = None,
    copy: builtins.bool | None = None,
) -> Any:
    """Return an object as a node: a Var itself, anything else as a constant of the current graph.

    Parameters
    ----------
    obj : Var, array_like, or nested sequence of them
        Sequences that hold Vars become a node that stacks them. Numbers become arrays without axes, which
        promote by their dtype.
    dtype : dtype_like, optional
        As for ``Var.to``; by default that of the object.
    device : str, optional
        By default that of the object, or of the graph.
    copy : bool, optional
        Without a meaning here, since values are never written in place: a Var needs no copy, and what is no
        Var is always copied.

    Raises
    ------
    DTypeError
        If the object is none of these, or `copy` is False for what has to be copied.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0])
    >>> rg.asarray(x) is x, rg.asarray(x, dtype=rg.float32).dtype
    (True, dtype('float32'))
    """
    if isinstance(obj, Handle) or (isinstance(obj, list | tuple) and holds_handles(obj)):
        return ops.to(stacked(obj), dtype=dtype, device=device)
    found, value = read_value(obj, "rg.asarray")
    if found is None:
        raise DTypeError(
            f"rg.asarray was given {type(obj).__name__}, which is no number and no array. Give other objects to "
            "an rg.lift function."
        )
    if copy is False:
        raise ParameterError(
            "rg.asarray(copy=False): a constant keeps a copy of its own, so that nothing changes it later. Leave "
            "copy away; a Var is never copied."
        )
    if dtype is not None:
        value = np.asarray(value).astype(read_dtype("rg.asarray", dtype))
    elif found.weak is not None:
        value = np.asarray(value)
    return current_graph().const(value, device=device)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: builtins.bool | None = None) -> Any:
    """Return an array of any library with DLPack as a constant of the current graph.

    Arrays of a library that is a device here stay on it; others are brought to the host.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.from_dlpack(np.ones(2))
    >>> x.value
    array([1., 1.])
    """
    if isinstance(x, Handle):
        return asarray(x, device=device)
    if not hasattr(type(x), "__dlpack__"):
        raise DTypeError(f"rg.from_dlpack: {type(x).__name__} has no __dlpack__.")
    try:
        return asarray(x, device=device)
    except DTypeError:
        return asarray(np.from_dlpack(x), device=device)


# --- dtypes ---------------------------------------------------------------------------------------


def _dtype(one: Any) -> Any:
    if isinstance(one, Value | np.ndarray | np.generic):
        return one.dtype
    return read_dtype("of an array or a dtype", one)


class FInfo(NamedTuple):
    """Limits of a floating-point dtype, as Python numbers; for complex numbers those of their parts."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IInfo(NamedTuple):
    """Limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FInfo:
    """Return the limits of a floating-point or complex dtype, or that of an array.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.finfo(rg.float32).eps
    1.1920928955078125e-07
    """
    found = np.finfo(_dtype(type))
    limits = (found.eps, found.max, found.min, found.smallest_normal)
    eps, most, least, normal = (float(one) for one in limits)
    return FInfo(int(found.bits), eps, most, least, normal, np.dtype(found.dtype))


def iinfo(type: Any, /) -> IInfo:
    """Return the limits of an integer dtype, or that of an array.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.iinfo(rg.int8).max
    127
    """
    dtype = _dtype(type)
    found = np.iinfo(dtype)
    return IInfo(int(found.bits), int(found.max), int(found.min), dtype)


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Return whether a dtype is of a kind: ``"bool"``, ``"integral"``, ``"real floating"``, a dtype, a tuple of them.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.isdtype(rg.float32, "real floating"), rg.isdtype(rg.int8, (rg.int8, "bool"))
    (True, True)
    """
    return builtins.bool(np.isdtype(_dtype(dtype), kind))


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Return whether a dtype, or that of an array, can be cast to another one without loss.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.can_cast(rg.float32, rg.float64), rg.can_cast(rg.float64, rg.int8)
    (True, False)
    """
    return builtins.bool(np.can_cast(_dtype(from_), _dtype(to)))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype of an op on arrays, numbers and dtypes, by NumPy's promotion.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.result_type(rg.int8, rg.uint8), rg.result_type(rg.float32, 1.0)
    (dtype('int16'), dtype('float32'))
    """
    given: list[Any] = []
    for one in arrays_and_dtypes:
        if not isinstance(one, Value):
            given.append(one)
            continue
        found = one._graph._host.specs[one._slot]
        given.append(one.dtype if found is None or found.weak is None else found.weak(0))
    return np.result_type(*given)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return np.broadcast_shapes(*shapes)


# --- what the namespace can do ----------------------------------------------------------------------


class Info:
    """The answers of ``rg.__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """Return what depends on the library."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device of arrays that are made in the current graph."""
        return current_graph().device

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        """Return the dtypes of arrays that are made without one."""
        return {
            "real floating": float64,
            "complex floating": complex128,
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes of a kind by name; of all kinds by default."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        found: dict[str, Any] = {}
        for one in kinds:
            names = tuple(_DTYPES) if one is None else _UNIONS.get(one, (one,))
            for name in names:
                if name not in _DTYPES:
                    raise ParameterError(
                        f"dtypes(kind={one!r}): write one of {', '.join((*_DTYPES, *_UNIONS))}."
                    )
                found.update(_DTYPES[name])
        return found

    def devices(self) -> list[str]:
        """Return the names of all devices."""
        return list(devices())


def __array_namespace_info__() -> Info:
    """Return what this namespace can do, as the array API standard asks."""
    return Info()
