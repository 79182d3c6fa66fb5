"""Feed nodes: the places in a subgraph where the arrays and nodes of each call come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactgrad.backend import Spec
from reactgrad.build._leaf import new_leaf
from reactgrad.change._change import Change
from reactgrad.change._stand_in import connect, probe
from reactgrad.core._handles import handle
from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._leaf import FEED
from reactgrad.values._storage import MISSING

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def _feed(graph: Core, found: Spec | None) -> Handle:
    """What the function gets for an argument: a node without a value so far."""
    if found is None or found.weak is None:
        return probe(graph, found, FEED.missing)
    return _unset(graph, found)  # a number remains one only as a leaf


def _unset(graph: Core, found: Spec | None) -> Handle:
    """A leaf without a value, for a feed to follow or to be."""
    slot = graph._scheduler.add((), leaf=True, valued=False)
    graph._host.add_node(slot, FEED, (), found, MISSING, None)
    return handle(graph, slot)


def _give(graph: Core, feed: int, argument: Any, *, lenient: bool = False) -> None:
    """Let a feed have the value of an argument, now and when that changes."""
    leaf = None if isinstance(argument, Handle) else _leaf(graph, feed)
    if leaf is not None:
        leaf.set(argument)
        return
    if not isinstance(argument, Handle):
        argument = new_leaf(graph, FEED, argument, None, None, None, None)
    connect(handle(graph, feed), argument, lenient=lenient)


def _take(graph: Core, feed: Any) -> None:
    """Let a feed have no value."""
    if graph._host.ops[feed._slot] is not FEED:
        # Gradients that cannot be built without a value are built again when there is one.
        connect(feed, _unset(graph, graph._host.specs[feed._slot]), lenient=True)
        return
    feed.touch()
    with Change(graph, None) as change:
        change.put(feed._slot, MISSING)


def _leaf(graph: Core, feed: int) -> Any:
    """The leaf that gives a feed its value, if it has one of its own."""
    ops, slot = graph._host.ops, feed
    if ops[feed] is not FEED:
        operands = graph._scheduler.operands(feed)
        if not operands:  # connected to nothing so far
            return None
        (slot,) = operands
        if ops[slot] is not FEED or len(graph._scheduler.topology.children[slot]) > 1:
            return None
    return handle(graph, slot)


def _fed(graph: Core, feed: int, argument: Any) -> bool:
    """Whether a feed has the value of this argument, now and when that changes."""
    if isinstance(argument, Handle):
        closed = graph._host.closed.get(feed, ())
        detached = getattr(argument, "base", None) is not None
        return graph._scheduler.operands(feed) == (argument._slot,) and (
            closed is None or (0 in closed) is detached
        )
    leaf = _leaf(graph, feed)
    return leaf is not None and equal(leaf.value, argument)
