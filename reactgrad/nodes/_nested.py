"""Tuples, lists and dicts that hold nodes, nested as deep as callers like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def elements(value: Any) -> Iterator[Any]:
    """Yield everything in a nest that is no tuple, list or dict itself, in order."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, tuple | list):
        yield value
        return
    for one in value:
        if isinstance(one, tuple | list | dict):
            yield from elements(one)
        else:
            yield one


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the same nest, with `change` applied to each element."""
    if isinstance(value, tuple):
        parts = [mapped(one, change) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is list:
        return [mapped(one, change) for one in value]
    if type(value) is dict:
        return {key: mapped(one, change) for key, one in value.items()}
    return change(value)
