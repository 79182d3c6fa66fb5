"""The definition of a node: op, attributes, operands, detached edges and branches."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import is_
from typing import Any, NamedTuple

from reactgrad.core._core import Core
from reactgrad.core._rows import Pin
from reactgrad.nodes._op import Attrs
from reactgrad.scheduler import Link


def link_branches(graph: Core, slot: int, operands: tuple[int, ...]) -> None:
    """Enter the nodes that a node chooses between, and the way back from each of them."""
    graph._host.branches[slot] = operands
    for operand in operands:
        graph._host.branch_users.setdefault(operand, set()).add(slot)


NOTHING_CLOSED: frozenset[int] = frozenset()


class Definition(NamedTuple):
    """The op of a node with all that decides what it is computed from.

    Attributes
    ----------
    closed
        Positions of detached operands; ``None``: all of them.
    branches
        For a node that chooses: the selecting node and the nodes chosen between. Else ``None``.
    pin
        For a pinned node: what it was computed from. Else ``None``.
    """

    link: Link
    op: Any
    attrs: Attrs
    closed: frozenset[int] | None
    branches: tuple[int, ...] | None
    pin: Pin | None

    @classmethod
    def of(cls, graph: Core, slot: int) -> Definition:
        """Return the present definition of a node."""
        host, scheduler = graph._host, graph._scheduler
        return cls(
            scheduler.link(slot),
            host.ops[slot],
            host.attrs[slot],
            host.closed.get(slot, NOTHING_CLOSED),
            host.branches.get(slot),
            host.pins.get(slot),
        )


def definitions(graph: Core, slots: Collection[int]) -> list[list[Any]]:
    """Return ops, attributes, operands and detached edges of nodes, each as a list."""
    return [[*column] for column in _definitions(graph, slots)]


def are_defined(graph: Core, slots: Collection[int], former: list[list[Any]]) -> bool:
    """Return whether ``definitions`` would return what it has returned before."""
    ops, attrs, operands, closed = _definitions(graph, slots)
    return (
        all(map(is_, ops, former[0]))
        and all(map(is_, attrs, former[1]))
        and [*operands] == former[2]
        and [*closed] == former[3]
    )


def _definitions(graph: Core, slots: Collection[int]) -> tuple[Iterable[Any], ...]:
    host, scheduler = graph._host, graph._scheduler
    # If no function has read other nodes while it ran, operands are all parents.
    operands = scheduler.operands if scheduler.dynamic else scheduler.topology.parents.__getitem__
    return (
        map(host.ops.__getitem__, slots),
        map(host.attrs.__getitem__, slots),
        map(operands, slots),
        map(host.closed.get, slots),
    )


def is_defined(
    graph: Core,
    slot: int,
    op: Any,
    attrs: Attrs,
    operands: tuple[int, ...],
    closed: frozenset[int] | None,
) -> bool:
    """Return whether a node computes this op of these operands, or chooses between them.

    Attributes, which may hold arrays, are compared by identity.
    """
    host, scheduler = graph._host, graph._scheduler
    return (
        host.ops[slot] is op
        and host.attrs[slot] is attrs
        and host.closed.get(slot, NOTHING_CLOSED) == closed
        # What a function has read while it ran stands behind its operands, and does not count.
        and (
            host.branches.get(slot)
            or scheduler.topology.parents[slot][: scheduler.dynamic.get(slot)]
        )
        == operands
    )


def write_definition(graph: Core, slot: int, definition: Definition) -> None:
    """Write a definition into the tables of the host. The link, which the scheduler keeps, stays."""
    host = graph._host
    host.ops[slot], host.attrs[slot] = definition.op, definition.attrs
    if definition.closed is None or definition.closed:
        host.closed[slot] = definition.closed
    else:
        host.closed.pop(slot, None)
    if definition.branches != host.branches.get(slot):
        for operand in host.branches.pop(slot, ()):
            host.branch_users[operand].discard(slot)
        if definition.branches is not None:
            link_branches(graph, slot, definition.branches)
    if definition.pin is None:
        host.pins.pop(slot, None)
    else:
        host.pins[slot] = definition.pin
