"""Scopes: names for the parts of a model, which the nodes built in them carry.

While no block is open in any thread, a new node looks at one empty list and no further.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Self

from reactgrad._errors import GraphError

# The open blocks of all threads, and the paths of this thread or task by graph, innermost last.
open_scopes: list[Scope] = []
_paths: ContextVar[tuple[Mapping[object, str], ...]] = ContextVar("reactgrad_scopes", default=())
_NONE: Mapping[object, str] = MappingProxyType({})


class Scope(ContextDecorator):
    """What ``Graph.scope`` returns; may be entered again, nested, and in several threads."""

    __slots__ = ("_graph", "_name")

    def __init__(self, graph: object, name: str) -> None:
        if not isinstance(name, str) or not all(name.split("/")):
            raise GraphError(
                f"g.scope({name!r:.60}): a scope is named by a non-empty string; with slashes, "
                "'block1/attention', it is one inside of another."
            )
        self._graph, self._name = graph, name

    def __enter__(self) -> Self:
        stack = _paths.get()
        outer = stack[-1] if stack else _NONE
        path = outer.get(self._graph)
        path = self._name if path is None else f"{path}/{self._name}"
        _paths.set((*stack, {**outer, self._graph: path}))
        open_scopes.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _paths.set(_paths.get()[:-1])
        open_scopes.remove(self)


def path_here(graph: object) -> str:
    """The scope in which this thread builds nodes of a graph; empty outside of all."""
    stack = _paths.get()
    return stack[-1].get(graph, "") if stack else ""


def made_name(op: Any, serial: int, scope: str) -> str:
    """The name of a node that was given none."""
    name = f"{op.name}_{serial}"
    return f"{scope}/{name}" if scope else name


def scopes_in(name: str) -> tuple[str, ...]:
    """The scopes that a given name puts a node in, by its slashes; none if a part of it is empty.

    Examples
    --------
    >>> scopes_in("net/layer1/w"), scopes_in("w"), scopes_in("https://example.org")
    (('net', 'layer1'), (), ())
    """
    *scopes, _ = parts = name.split("/")
    return tuple(scopes) if all(parts) else ()


def scope(graph: object, name: str) -> Scope:
    """A block, or a decorated function, whose nodes are a named part of the model.

    Pictures draw a frame around them, and fold it: ``g.draw("x.svg", fold=1)``. The names of nodes
    that are made inside begin with the scope's: those of leaves that are given one, ``name="w"``,
    and those that nobody has named. Scopes nest, are of their thread, and come along to forks and
    files. A name set later, ``y.name = "h"``, is taken as it is; with slashes, ``"layer1/h"``, it puts
    the node into that scope, in pictures, if all of its parts are non-empty (so ``"https://a.b"`` is in
    none). A constant that nobody has named, the 2.0 of ``2.0 * x``, is drawn in each scope that uses it.
    Nodes of gradients belong to none.

    Parameters
    ----------
    name : str
        Not empty; ``"block1/attention"`` is a scope in a scope.

    Returns
    -------
    context manager and decorator

    Raises
    ------
    GraphError
        If it is no such name.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> with g.scope("layer1"):
    ...     w = g.param([3.0, 4.0], name="w")
    ...     y = rg.tanh(w * x)
    >>> w.name, y.name, g["layer1/w"] is w
    ('layer1/w', 'layer1/tanh_4', True)
    """
    return Scope(graph, name)
