"""Parked rows: of nodes that are gone, kept for nodes like them.

A parked row has the serial 0, as a free one, and stands in no list of consumers but those of other parked
rows: nothing can reach it, so nobody sees it. But it is not free. It keeps its parents, its steps and its
places in plans. ``take`` makes it a node again: stale, at version 0, above all others. The node has the
former serial, by which plans know it, and a number of its own in the order of creation; see
``Topology.number``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reactgrad_scheduler.staleness import CLEAN
from reactgrad_scheduler.topology import RANK_GAP

if TYPE_CHECKING:
    from reactgrad_scheduler.tables import Tables


def park(
    tables: Tables,
    computed: Sequence[int],
    given: Sequence[int],
    members: frozenset[int],
    edges: Iterable[tuple[int, int]],
) -> None:
    """Park computed nodes, and leaves, whose values stay; ``members`` are at least these nodes.

    ``edges`` are those that lead to them from nodes which are not parked, as (parent, node).
    """
    topology, versions = tables.topology, tables.versions
    versions.leave_out(members)
    tables.staleness.as_new(computed)
    tables.staleness.as_new(given)
    version, record, serial = versions.version, versions.record, topology.serial
    for parent, slot in edges:
        topology.detach(parent, slot)
    for slot in computed:
        version[slot] = 0
        record[slot] = None
    if tables.dirty is not None:
        for slot in computed:
            tables.dirty.records.pop(slot, None)
    parked = topology.parked
    for slot in (*computed, *given):
        parked[slot], serial[slot] = serial[slot], 0


def take(tables: Tables, slot: int, number: int) -> None:
    """Make a parked row a node again, with its former serial and the number of a new node."""
    topology = tables.topology
    children = topology.children
    for parent in topology.parents[slot]:  # mostly the first consumer: `attach` written out for it
        if children[parent]:
            topology.attach(parent, slot)
        else:
            children[parent] = (slot,)
    topology.rank[slot] = number * RANK_GAP
    topology.numbers[slot] = number
    if tables.leaf[slot]:
        tables.staleness.put(slot, CLEAN)
    topology.serial[slot] = topology.parked.pop(slot)


def give_up(tables: Tables, slots: Sequence[int]) -> None:
    """Let rows be released, those of them that are parked, by the next ``release``."""
    topology = tables.topology
    for slot in slots:
        if slot in topology.parked:
            if tables.leaf[slot]:
                tables.staleness.put(slot, CLEAN)
            topology.serial[slot] = topology.parked.pop(slot)
    tables.orphans[:0] = slots  # `release` may be under way, at the last of them
