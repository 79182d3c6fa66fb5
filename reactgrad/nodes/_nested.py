"""Tuples, lists and dicts that hold nodes, nested as deep as callers like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reactgrad.nodes._handle import Handle, current_graph


def elements(value: Any) -> Iterator[Any]:
    """Yield everything in a nest that is no tuple, list or dict itself, in order."""
    if isinstance(value, tuple | list):
        for one in value:
            yield from elements(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from elements(one)
    else:
        yield value


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


def graph_of(value: Any) -> Any:
    """Return the graph of the first node in a nest of arguments, else the current graph."""
    found = next((one for one in elements(value) if isinstance(one, Handle)), None)
    return current_graph() if found is None else found._graph
