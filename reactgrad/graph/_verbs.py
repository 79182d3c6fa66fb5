"""Functions that a class lists as its methods."""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar

T = TypeVar("T", bound=type)


def lists_verbs(cls: T) -> T:
    """Name the functions that stand in the body of a class as methods of it.

    Error messages of Python (``Graph.input() got an unexpected keyword argument``) and ``help`` use
    these names.
    """
    for name, verb in vars(cls).items():
        if isinstance(verb, FunctionType) and not name.startswith("_"):
            verb.__name__, verb.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return cls
