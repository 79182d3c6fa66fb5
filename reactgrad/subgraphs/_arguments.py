"""The arguments of a subgraph: their structure, and the arrays and nodes among them that are fed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dis import get_instructions
from enum import Enum
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from reactgrad._errors import GraphError
from reactgrad.backend import Spec, owner, read_value, refuse_one_shot
from reactgrad.core._core import Core
from reactgrad.nodes._handle import Handle

_NUMBERS = (int, float, complex, np.number, np.bool_)
_PLAIN = (bool, int, str, bytes, type(None), Enum, np.dtype)


class Same:
    """An object as a part of a structure: equal only to itself, and not kept alive by it."""

    __slots__ = ("_hash", "_of")

    def __init__(self, of: Any) -> None:
        self._hash = id(of)
        try:
            self._of: Callable[[], Any] = weakref.ref(of)
        except TypeError:
            self._of = lambda: of  # no weak references to objects of this type

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return NotImplemented
        mine = self._of()
        return mine is not None and mine is other._of()


# Objects that are what their value is.
_VALUES = frozenset((bool, int, float, complex, str, bytes, type(None)))


@lru_cache(1024)
def _assigned(code: CodeType) -> frozenset[str]:
    """Return the globals and closed-over variables that code assigns."""
    stores = ("STORE_GLOBAL", "STORE_DEREF")
    return frozenset([one.argval for one in get_instructions(code) if one.opname in stores])


def surroundings(function: Any) -> tuple[Any, ...]:
    """Return what a function's names mean now, beside its arguments: globals and closed-over variables.

    What was built holds for these alone. What such an object holds inside is not looked at, nor are
    variables that the function itself assigns, such as a count of its calls.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    known, assigned = getattr(function, "__globals__", {}), _assigned(code)
    meant = [known[name] for name in code.co_names if name in known and name not in assigned]
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        if name not in assigned:
            try:
                meant.append(cell.cell_contents)
            except ValueError:  # not assigned yet
                meant.append(None)
    return tuple([(type(one), one) if type(one) in _VALUES else Same(one) for one in meant])


def as_array(value: Any) -> Any:
    """Return a list of numbers as an array, as wherever values enter; other arguments as they are."""
    return read_value(value, "an argument of a subgraph")[1] if _is_of_numbers(value) else value


def _is_of_numbers(value: Any) -> bool:
    return (
        type(value) is list
        and bool(value)
        and all(isinstance(one, _NUMBERS) or _is_of_numbers(one) for one in value)
    )


def _feeds(one: Any) -> bool:
    """Return whether an argument is fed: a node, or a value that nodes can have.

    Others belong to the structure.

    Inputs that hold a number belong to the structure, too: a feed that followed one would hold an
    array.
    """
    if isinstance(one, Handle):
        found = one._graph._host.specs[one._slot]
        return found is None or found.weak is None
    return isinstance(one, float | complex | np.ndarray | np.generic) or (
        not isinstance(one, _PLAIN) and owner(one) is not None
    )


def _structure(value: Any, arguments: list[Any]) -> Any:
    """Return the nesting of a value as a key, without the elements that are fed.

    These are added to `arguments`.
    """
    if isinstance(value, tuple) or type(value) is list:
        return (type(value), *[_structure(one, arguments) for one in value])
    if type(value) is dict:
        return (dict, *[(key, _structure(one, arguments)) for key, one in value.items()])
    if _feeds(value):
        arguments.append(value)
        return Handle
    if isinstance(value, slice):
        return (slice, *_structure((value.start, value.stop, value.step), arguments))
    if isinstance(value, Handle):
        view: Any = value  # maybe a detached one
        base = view.base if hasattr(type(view), "base") else None
        return (type(value), Same(value if base is None else base))
    if isinstance(value, _PLAIN):
        return (type(value), value)
    refuse_one_shot("an argument of a subgraph", value)
    return Same(value)


def _read(graph: Core, arguments: list[Any]) -> tuple[tuple[Spec | None, ...], list[Any]]:
    """Return the spec of each argument, and the arguments in the form that a leaf takes."""
    specs: list[Spec | None] = []
    taken: list[Any] = []
    for one in arguments:
        if isinstance(one, Handle):
            if one._graph is not graph:
                raise GraphError(
                    f"the arguments of a subgraph are nodes of several graphs: {one.label!r} is of another "  # type: ignore[attr-defined]
                    "one than those before. Pass its value, or build all of them in one graph."
                )
            found, value = graph._host.specs[one._slot], one
        else:
            found, value = read_value(one, "an argument of a subgraph")
        specs.append(found)
        taken.append(value)
    return tuple(specs), taken
