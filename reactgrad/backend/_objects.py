"""Objects that are no arrays: which may be values, how they are copied, which last unchanged."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import (
    Callable,
    Collection,
    ItemsView,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from enum import Enum
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    ModuleType,
    NoneType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ImplicitValueError

# Types besides iterators whose values only one reader could use.
AWAITED = frozenset((CoroutineType, AsyncGeneratorType))

# Types whose values never change.
_LASTING = frozenset(
    (
        *(NoneType, bool, int, float, complex, str, bytes, range, EllipsisType, object),
        *(FunctionType, BuiltinFunctionType, ModuleType),
    )
)
_LASTING_BASES = (
    Enum,
    type,
    np.dtype,
    np.number,
    np.bool_,
    np.ufunc,
    np.datetime64,
    np.timedelta64,
)

# The same for the types of these modules, none of which is imported for that.
_LASTING_MODULES = frozenset(
    ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "re", "uuid", "zoneinfo")
)

_CONTAINERS = (list, tuple, set, frozenset, deque)


def is_one_shot(value: Any) -> bool:
    """Return whether only the first reader of a value gets what is in it."""
    kind = type(value)
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__") or kind in AWAITED:
        return True
    # What is to be closed, and has no length: wrapped files, responses, archives.
    return hasattr(kind, "__enter__") and hasattr(kind, "__iter__") and not hasattr(kind, "__len__")


def refuse_one_shot(what: str, value: Any) -> None:
    """Raise for a value that cannot be kept: see ``Raises``.

    Raises
    ------
    DTypeError
        If it, or one in a container, gives what is in it only once.
    ImplicitValueError
        If a container holds a node, whose value would be looked at once.
    """
    for part in parts_of(value):
        if is_node(part):
            raise ImplicitValueError(
                f"{what} was given a {type(value).__name__} that holds the Var {part.label!r}, whose value it would "
                "not follow. Put its .value there for the present value, or let a function put all together "
                "where it is used: rg.lift(lambda *values: ...)(*vars)."
            )
        if is_one_shot(part):
            kind = type(part)
            within = "" if part is value else f"{type(value).__name__} that holds a "
            if kind is CoroutineType and part is value:
                part.close()  # else Python warns that it was never awaited
            raise DTypeError(
                f"{what} was given a {within}{kind.__name__}, which gives what is in it to its "
                f"first reader alone, and a value may have many. {_instead(part)}"
            )


def is_node(value: Any) -> bool:
    """Return whether a value is the handle of a node."""
    return hasattr(type(value), "_slot")


def node_in(value: Any) -> Any:
    """Return a node that a container of Python holds, however deep; ``None`` if there is none."""
    return next(filter(is_node, parts_of(value)), None)


def _instead(value: Any) -> str:
    if type(value) in AWAITED or hasattr(type(value), "__anext__"):
        return "Write def instead of async def, or pass what awaiting it gives."
    if hasattr(value, "read") and hasattr(value, "close"):
        return "Pass what file.read() returns, or the path to a function that opens it."
    return "Pass list(...) of it."


# Types that hold nothing, and whose values anybody may read.
_PLAIN = frozenset(
    (*(NoneType, bool, int, float, complex, str, bytes), np.float64, np.float32, np.int64, np.bool_)
)


def parts_of(value: Any) -> Iterator[Any]:
    """Return an iterator over a value and all that is in containers of Python, but for plain numbers and texts."""
    stack, seen = [value], set[int]()
    while stack:
        one = stack.pop()
        yield one
        if type(one) in _PLAIN or id(one) in seen:
            continue
        seen.add(id(one))
        for inside in _contents(one):
            if not _PLAIN.issuperset(map(type, inside)):
                stack.extend(inside)


def _contents(one: Any) -> tuple[Collection[Any], ...]:
    """Return what is in a container; nothing for what is none."""
    if isinstance(one, Mapping):
        return one.keys(), one.values()
    if isinstance(one, (*_CONTAINERS, KeysView, ValuesView, ItemsView)):
        return (one,)
    if isinstance(one, np.ndarray):
        return (one.ravel().tolist(),) if one.dtype.kind == "O" else ()
    if type(one) is SimpleNamespace:
        return (vars(one).values(),)
    if isinstance(fields := getattr(type(one), "__dataclass_fields__", None), dict):
        return ([getattr(one, name, None) for name in fields],)
    return ()


def lasts(value: Any) -> bool:
    """Return whether neither the value nor anything in it can change."""
    stack = [value]
    while stack:
        one = stack.pop()
        kind = type(one)
        if kind in _LASTING:
            continue
        if isinstance(one, tuple | frozenset) and not hasattr(one, "__dict__"):
            stack.extend(one)
        elif getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
            stack.extend([getattr(one, name, None) for name in kind.__dataclass_fields__])
        elif not isinstance(one, _LASTING_BASES) and (
            kind.__module__.partition(".")[0] not in _LASTING_MODULES
        ):
            return False
    return True


def _without_warnings(copy: Any, value: Any, copied: dict[int, Any]) -> Any:
    """Copy a value some of whose parts may warn that they will have no copy in later versions of Python."""
    before = warnings.filters
    try:
        try:
            warnings.filters = [("ignore", None, Warning, None, 0)]
            return copy(value, copied)
        finally:
            warnings.filters = before
    except BaseException:
        warnings.filters = before  # again: the error may have come at the line above
        raise


def _own_memory(value: memoryview) -> memoryview:
    """Return a view of a copy, which is read-only; the view itself if its elements are of no plain format."""
    try:
        return memoryview(value.tobytes()).cast(value.format, value.shape)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return value


# Views show what their owner changes, and have no copy of their own.
_VIEWS: dict[type, Callable[[Any], Any]] = {
    MappingProxyType: lambda value: MappingProxyType(own_object(dict(value))),
    type({}.keys()): lambda value: dict.fromkeys(own_object(list(value))).keys(),
    type({}.values()): lambda value: dict(enumerate(own_object(list(value)))).values(),
    type({}.items()): lambda value: own_object(dict(value)).items(),
    memoryview: _own_memory,
}


def own_object(value: Any) -> Any:
    """Return a copy of an object, with read-only arrays in it; the object itself if it has no copy.

    Functions and other callables are not copied, since they may stand for much more than themselves.
    """
    if callable(value) or lasts(value):
        return value
    if (view := _VIEWS.get(type(value))) is not None:
        return view(value)
    import copy  # imported late: few graphs hold such objects

    copied: dict[int, Any] = {}
    try:
        result = _without_warnings(copy.deepcopy, value, copied)
    except Exception:  # locks, connections and the like, or whatever a class of the user's raises
        return value
    for part in copied.values():
        if type(part) is np.ndarray and part is not value:
            part.flags.writeable = False
    return result
