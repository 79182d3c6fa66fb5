"""Values of many nodes, put aside and put back together with all that is known of their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from reactgrad.values._columns import MISSING, UNBOUND
from reactgrad.values._lending import Found, Lending, common


class Aside(NamedTuple):
    """The values of some nodes, in their order, with what the tables have about these.

    Attributes
    ----------
    data
        Where they lie.
    entries
        By table, the entries of those nodes that have one.
    shared
        Those that forks may see.
    """

    data: list[Any]
    entries: tuple[dict[int, Any], ...]
    shared: frozenset[int]


class Slots:
    """Nodes whose rows are read and written together.

    Attributes
    ----------
    slots
        In ascending order.
    members
        The same as a set.
    """

    __slots__ = ("_runs", "members", "slots")

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = sorted(slots)
        self.members = frozenset(slots)
        # Neighbours lie in one slice of a column: where it begins and ends, and where in the order.
        at = [
            0,
            *[i + 1 for i, (a, b) in enumerate(pairwise(self.slots)) if b != a + 1],
            len(slots),
        ]
        self._runs = [
            (self.slots[begin], self.slots[end - 1] + 1, begin, end)
            for begin, end in pairwise(at)
            if begin < end
        ]

    def rows(self, column: Any) -> list[Any]:
        """Return the rows of these nodes."""
        if type(column) is not list:  # a graph that shares its columns with forks
            return list(map(column.__getitem__, self.slots))
        found: list[Any] = []
        for begin, end, _, _ in self._runs:
            found += column[begin:end]
        return found

    def write(self, column: Any, rows: Sequence[Any]) -> None:
        """Write the rows of these nodes."""
        if type(column) is not list:
            for slot, row in zip(self.slots, rows, strict=True):
                column[slot] = row
            return
        for begin, end, first, last in self._runs:
            column[begin:end] = rows[first:last]


def _tables(host: Lending) -> tuple[dict[int, Any], ...]:
    return host.handed, host._leases, host._view_of, host._part_for


def values_of(host: Lending, nodes: Slots) -> Aside:
    """Return the present values of nodes. Nothing changes."""
    members = nodes.members
    entries = [
        {slot: table[slot] for slot in common(members, table)} if table else {}
        for table in _tables(host)
    ]
    shared = frozenset[int]() if host._own is None else members - host._own
    return Aside(nodes.rows(host.data), tuple(entries), shared)


def put_back(host: Lending, nodes: Slots, aside: Aside) -> None:
    """Give nodes the values that ``values_of`` has returned. A second call changes nothing more."""
    members = nodes.members
    if host.together:
        for slot in nodes.slots:
            host.part(slot)
    if host.reductions:
        for slot in common(members, host.reductions):
            host.reductions.pop(slot).forget()
    for table, entries in zip(_tables(host), aside.entries, strict=True):
        if table:
            for slot in common(members, table):
                del table[slot]
        table.update(entries)
    nodes.write(host.data, aside.data)
    if host._own is not None:
        host._own |= members
        host._own -= aside.shared
    if host.generations is not None and host.generations.by_root:
        for slot in nodes.slots:
            host.generations.moved(slot)


def of_each(nodes: Slots, aside: Aside) -> dict[int, Found]:
    """Return the values of nodes one by one, as ``Lending.found`` does."""
    handed, leases, view_of, _ = aside.entries
    return {
        slot: Found(
            value, handed.get(slot), leases.get(slot), view_of.get(slot), slot in aside.shared
        )
        for slot, value in zip(nodes.slots, aside.data, strict=True)
    }


def of_all(nodes: Slots, found: Mapping[int, Found]) -> Aside:
    """Return the values of nodes together; ``MISSING`` for those that are not there."""
    handed: dict[int, Any] = {}
    leases: dict[int, Any] = {}
    view_of: dict[int, Any] = {}
    for slot, one in found.items():
        for table, entry in ((handed, one.handed), (leases, one.leases), (view_of, one.view_of)):
            if entry is not None:
                table[slot] = entry
    return Aside(
        [found[slot].data if slot in found else MISSING for slot in nodes.slots],
        (handed, leases, view_of, {}),
        frozenset([slot for slot, one in found.items() if one.shared]),
    )


def steps_of(host: Lending, nodes: Slots) -> list[Any]:
    """Return the bound steps of nodes."""
    return nodes.rows(host._steps)


def bind_as_before(
    host: Lending, nodes: Slots, steps: Sequence[Any] | None, moved: Sequence[int]
) -> None:
    """Give nodes their former steps, without those that use memory which has ``moved`` since.

    Without ``steps`` they are bound again.
    """
    present = host._steps
    nodes.write(present, [UNBOUND] * len(nodes.slots) if steps is None else steps)
    children = host.scheduler.topology.children
    for slot in dict.fromkeys(moved):
        present[slot] = UNBOUND
        for child in children[slot]:
            present[child] = UNBOUND
