"""Scopes: named parts of a model. The nodes built in a scope carry its name.

While no scope is open in any thread, building a node costs one test of an empty list.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Self

from reactgrad._errors import GraphError

# The open scopes of all threads, and the paths of this thread or task by graph, innermost last.
open_scopes: list[Scope] = []
_paths: ContextVar[tuple[Mapping[object, str], ...]] = ContextVar("reactgrad_scopes", default=())
_NONE: Mapping[object, str] = MappingProxyType({})


class Scope(ContextDecorator):
    """The result of ``Graph.scope``; it may be entered again, nested, and in several threads."""

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
        # A new tuple of new dicts: tasks that share this context's values must not see the change.
        _paths.set((*stack, {**outer, self._graph: path}))
        open_scopes.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _paths.set(_paths.get()[:-1])
        open_scopes.remove(self)


def path_here(graph: object) -> str:
    """Return the scope in which this thread builds nodes of `graph`; empty outside of all."""
    stack = _paths.get()
    return stack[-1].get(graph, "") if stack else ""


def made_name(op: Any, serial: int, scope: str) -> str:
    """Return the name of a node that was given none."""
    name = f"{op.name}_{serial}"
    return f"{scope}/{name}" if scope else name


def scopes_in(name: str, is_node: Container[str] = ()) -> tuple[str, ...]:
    """Return the scopes that a given name puts a node in, by its slashes.

    There are none if a part of the name is empty. The slash of a derivative, ``ds/dw``, is none of
    these.

    Parameters
    ----------
    name
        The name.
    is_node
        The names of nodes: in a longer derivative, ``dloss/dweights``, one of the two is a node.

    Examples
    --------
    >>> scopes_in("net/layer1/w"), scopes_in("w"), scopes_in("https://example.org")
    (('net', 'layer1'), (), ())
    >>> scopes_in("ds/dw"), scopes_in("net/d(loss)/d(w)"), scopes_in("decoder/dense")
    ((), ('net',), ('decoder',))
    """
    *scopes, _ = parts = name.split("/")
    if not all(parts):
        return ()
    if len(parts) > 1 and _is_derivative(parts[-2], parts[-1], is_node):
        scopes.pop()
    return tuple(scopes)


# "ds", "d2s", "\u2202s", "d(loss)": the first group is the sign, the second one what is derived.
_DERIVED = re.compile(r"([d\u2202])[\d\u00b2\u00b3]?(\(.*\)|[^\W\d].*)", re.DOTALL)


def _is_derivative(top: str, bottom: str, is_node: Container[str]) -> bool:
    """Return whether the slash between two parts of a name is that of a derivative."""
    of, by = _DERIVED.fullmatch(top), _DERIVED.fullmatch(bottom)
    if of is None or by is None or of[1] != by[1]:
        return False
    if of[1] == "\u2202" or (of[2][0] == by[2][0] == "("):
        return True
    short = len(of[2]) <= 2 and len(by[2]) <= 2  # no longer, or "decoder/dense" would be one
    return short or of[2] in is_node or by[2] in is_node


def scope(graph: object, /, name: str) -> Scope:
    """Return a context manager, and decorator, in which new nodes are a named part of the model.

    Pictures draw a frame around such a part, or fold it: ``g.draw("x.svg", fold=1)``. The names of
    nodes made inside begin with the scope's name: those of leaves made with one, ``name="w"``, and
    those of nodes without a given name. Scopes nest, belong to their thread, and are kept by forks
    and files.

    A name set later, ``y.name = "h"``, is taken as it is. If it has slashes, ``"layer1/h"``, pictures
    draw the node in that scope, unless a part of the name is empty (so ``"https://a.b"`` is in no
    scope) or the slash is that of a derivative, ``"ds/dw"``. A constant without a given name, the 2.0
    of ``2.0 * x``, is drawn in each scope that uses it. Nodes of gradients belong to no scope.

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
        If `name` is no such string.

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
