"""Handles, and the way from a call of an op to the graph in which its node is built.

Ops know no graph class. They take the graph of a ``Handle`` among the operands, or else the current
graph. The graph's own modules register here how a default graph is made and values are stacked.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from reactgrad._errors import GraphError
from reactgrad.nodes._nested import elements
from reactgrad.nodes._op import CONST, Attrs, Op
from reactgrad.scheduler import block


class Handle:
    """The base of ``Var``, the user's reference to a node: a graph and a slot."""

    __slots__ = ("__weakref__", "_graph", "_slot")

    _graph: Any
    _slot: int

    # Ports: methods of the face that lower floors call.
    detach: Callable[[], Any]  # the same node as an operand that no gradient passes
    _literal: Callable[[], Any]  # the Python number that a constant holds
    _programs_dict: Callable[[], dict[Any, Any]]  # the gradients that live with this handle
    _unknown_length: Callable[[], Exception]  # the error for a length not known yet

    @property
    def name(self) -> str:
        """The node's name: the one that was set, unique in the graph, or one like ``tanh_3``."""
        return self._graph._host.name(self._slot)

    @property
    def label(self) -> str:
        """The word for the node in pictures and messages: its name, or what its line assigns it to.

        A node that nobody has named has the word on the left of the line that built it, ``growth`` of
        ``growth = rg.exp(rate)``, with a number where several have the same. Where the line has none,
        or its source is not known, it is the made name.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> rate = g.input(0.02)
        >>> growth = rg.exp(rate * 2.0)
        >>> rate.label, growth.label, growth.name
        ('rate', 'growth', 'exp_4')
        """
        return self._graph._host.label(self._slot)


# The graphs of the open ``with graph:`` blocks of this thread or task, innermost last.
_current: ContextVar[tuple[Any, ...]] = ContextVar("reactgrad_graphs", default=())
_default_lock = threading.RLock()
_default: list[Any] = []
# Ports, filled when the modules that can do it are imported: this one cannot import them.
_stack: list[Callable[[Any], Any]] = []
_make_graph: list[Callable[[], Any]] = []
_deferred_call: list[Callable[[], Any]] = []


def enter(graph: Any) -> None:
    """Make `graph` the current one of this thread."""
    _current.set((*_current.get(), graph))


def leave() -> None:
    """Make the graph current again that was so before the last ``enter``."""
    _current.set(_current.get()[:-1])


@block
def entered(graph: Any) -> Iterator[None]:
    """Make `graph` the current one of this thread in a block."""
    enter(graph)
    try:
        yield
    finally:
        leave()


def on_default(make: Callable[[], Any]) -> None:
    """Register the call that makes the default graph, current where no ``with graph:`` is open."""
    _make_graph.append(make)


def on_deferred(load: Callable[[], Callable[..., Any]]) -> None:
    """Register what imports the call of functions whose operands' axes show late."""
    _deferred_call.append(load)


def deferred_call() -> Callable[..., Any]:
    """Return the call of a function whose operands' axes show late; see ``ops._deferred``."""
    return _deferred_call[-1]()


def current_graph() -> Any:
    """Return the graph of this thread's innermost open ``with graph:``, or else the default graph."""
    graphs = _current.get()
    if graphs:
        return graphs[-1]
    with _default_lock:  # two threads at once get the same default graph
        if not _default:
            _default.append(_make_graph[-1]())
        return _default[0]


def graph_of(arguments: Any) -> Any:
    """Return the graph of the first node in a nest of arguments, else the current graph."""
    found = next((one for one in elements(arguments) if isinstance(one, Handle)), None)
    return current_graph() if found is None else found._graph


def holds_handles(values: Any) -> bool:
    """Return whether a nest holds nodes."""
    return any(isinstance(one, Handle) for one in elements(values))


def stacked(value: Any) -> Any:
    """Return a list or tuple that holds nodes as one node that stacks them; others as they are."""
    if isinstance(value, list | tuple) and holds_handles(value):
        return _stack[-1]([stacked(one) for one in value])
    return value


def on_stack(stack: Callable[[Any], Any]) -> None:
    """Register the call that stacks several values to one node."""
    _stack.append(stack)


def apply(op: Op, operands: Sequence[Any], attrs: Attrs = ()) -> Any:
    """Return a new node that computes `op`, as a ``Var``."""
    for operand in operands:
        if isinstance(operand, Handle):
            try:
                return operand._graph._apply(op, operands, attrs)
            except GraphError:
                if (made := apply_to_constants(op, operands, attrs)) is None:
                    raise
                return made
        if isinstance(operand, list | tuple) and holds_handles(operand):
            return apply(op, [stacked(one) for one in operands], attrs)
    return current_graph()._apply(op, operands, attrs)


def apply_to_constants(op: Op, operands: Sequence[Any], attrs: Attrs) -> Any:
    """Return a node of operands of which constants are of other graphs; ``None`` if other nodes are, too.

    A constant never changes, nor does what is computed of constants, so its value may enter any graph. It is
    made in the default graph by code that knows no other one, as ``xp.asarray(0.0)`` in a library.
    """
    handles = [one for one in operands if isinstance(one, Handle)]
    moving = [one for one in handles if not _is_constant(one)]
    graph = (moving or handles)[0]._graph
    # If all are of one graph, the error has another reason.
    if any(one._graph is not graph for one in moving) or all(
        one._graph is graph for one in handles
    ):
        return None
    adopted = [
        one.value if isinstance(one, Handle) and one._graph is not graph else one  # type: ignore[attr-defined]
        for one in operands
    ]
    return graph._apply(op, adopted, attrs)


def _is_constant(one: Handle) -> bool:
    """Return whether a node is a constant, or computed by ops of constants only."""
    host = getattr(one._graph, "_host", None)  # the graph of a removed node has none
    if host is None:
        return False
    parents = one._graph._scheduler.topology.parents
    seen, left = {one._slot}, [one._slot]
    while left:
        slot = left.pop()
        op = host.ops[slot]
        if op is CONST:
            continue
        if slot in host.pins or not parents[slot] or not isinstance(op, Op):
            return False  # functions may have read other nodes, too
        left += (fresh := set(parents[slot]) - seen)
        seen |= fresh
    return True


class HandleRef(weakref.ref[Any]):
    """A weak reference to a handle that still knows the node's slot when the handle has died."""

    __slots__ = ("slot",)

    slot: int


class Anchor:
    """An object that keeps a node alive as a handle does, without being one."""

    __slots__ = ("__weakref__",)
