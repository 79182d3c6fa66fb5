"""Feed nodes: the places in a subgraph that take the arrays and nodes of each call."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import Spec
from reactgrad.build._leaf import new_leaf
from reactgrad.change._change import Change
from reactgrad.change._stand_in import connect, probe
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import FEED
from reactgrad.values._columns import MISSING


def _feed(graph: Core, found: Spec | None) -> Handle:
    """Return what the function gets for an argument: a node that has no value yet."""
    if found is None or found.weak is None:
        return probe(graph, found, FEED.missing)
    return _unset(graph, found)  # only a leaf can hold a number


def _unset(graph: Core, found: Spec | None) -> Handle:
    """Return a leaf without a value, for a feed to follow or to be."""
    slot = graph._scheduler.add((), leaf=True, valued=False)
    graph._host.add_node(slot, FEED, (), found, MISSING, None)
    return handle(graph, slot)


def _give(graph: Core, feed: int, argument: Any, *, lenient: bool = False) -> None:
    """Give a feed the value of an argument, now and whenever that changes."""
    leaf = None if isinstance(argument, Handle) else _leaf(graph, feed)
    if leaf is not None:
        leaf.set(argument)
        return
    if not isinstance(argument, Handle):
        argument = new_leaf(graph, FEED, argument, None, None, None, None)
    connect(handle(graph, feed), argument, lenient=lenient)


def _take(graph: Core, feed: Any) -> None:
    """Take the value of a feed away."""
    if graph._host.ops[feed._slot] is not FEED:
        # Gradients that cannot be built without a value are built again when there is one.
        connect(feed, _unset(graph, graph._host.specs[feed._slot]), lenient=True)
        return
    feed.touch()
    with Change(graph, None) as change:
        change.put(feed._slot, MISSING)


def _leaf(graph: Core, feed: int) -> Any:
    """Return the leaf that only this feed takes its value from; ``None`` if there is none."""
    ops, slot = graph._host.ops, feed
    if ops[feed] is not FEED:
        operands = graph._scheduler.operands(feed)
        if not operands:  # not connected yet
            return None
        (slot,) = operands
        if ops[slot] is not FEED or len(graph._scheduler.topology.children[slot]) > 1:
            return None
    return handle(graph, slot)


def _fed(graph: Core, feed: int, argument: Any) -> bool:
    """Return whether a feed has the value of this argument, now and whenever that changes."""
    if isinstance(argument, Handle):
        closed = graph._host.closed.get(feed, ())
        detached = hasattr(type(argument), "base")
        return graph._scheduler.operands(feed) == (argument._slot,) and (
            closed is None or (0 in closed) is detached
        )
    leaf = _leaf(graph, feed)
    if leaf is None or graph._scheduler.is_stale(
        leaf._slot
    ):  # one that was disconnected has no value
        return False
    return equal(leaf.value, argument)
