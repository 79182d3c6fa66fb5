"""Snapshots of one graph, one after the other, for a page that shows it live.

Each takes over from the last one what is as it was. What may differ is found by comparing columns as a
whole, so that Python looks at the nodes that a change reached, and at no others. Of very many such nodes
those that are shown can be had before the rest.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from itertools import compress
from operator import ne
from typing import Any

from reactgrad.core._core import Core
from reactgrad.core._handles import slots_in_order, tidy
from reactgrad.explain._snapshot import (
    NodeSnapshot,
    Outcome,
    Snapshot,
    Texts,
    again,
    numbers,
    outcomes_of,
    snapshot,
    weighted,
    weights_of,
)
from reactgrad.scheduler import CollectorPause, Run

MANY = 400  # nodes that differ, of which some are made before the others


class Snapshots:
    """The snapshots of one graph, with values; see ``take``.

    Parameters
    ----------
    graph
        The graph.

    Attributes
    ----------
    left : set of int
        The slots of the nodes that the next snapshot makes anew, whatever happens.
    """

    def __init__(self, graph: Core) -> None:
        self._graph = graph
        self.left: AbstractSet[int] = frozenset()
        self._last: Snapshot | None = None
        self._run: Run | None = None
        self._rows: tuple[Any, ...] = ()  # which nodes there are, and in which order
        self._slots: list[int] = []  # as the nodes of the last snapshot
        self._place: dict[int, int] = {}  # the position of each slot among them
        self._weighted = False  # whether some node is drawn as a neuron
        self._versions: list[int] = []
        self._outcomes: dict[int, Outcome] = {}
        self._sets: list[set[int]] = []  # the slots that are stale, frozen, pinned, ...
        self._names: dict[int, str] = {}

    @property
    def stale(self) -> bool:
        """True if some node was stale at the last snapshot."""
        return bool(self._sets and self._sets[0])

    def take(self, edited: bool = True, first: AbstractSet[int] | None = None) -> Snapshot:
        """Return the present state; no node runs.

        Parameters
        ----------
        edited
            False if edges, ops and pins are as they were at the last snapshot. Its edges are then taken
            over.
        first
            Keys of nodes. If very many nodes differ, only these and the leaves are made anew now, and the
            others by the next call.
        """
        graph = self._graph
        with graph._lock, CollectorPause():
            tidy(graph)
            # Nodes of shapes that were put aside must not be seen.
            graph._shapes.clear(graph)
            scheduler, topology = graph._scheduler, graph._scheduler.topology
            scheduler.versions.settle()
            rows = [*topology.serial], {*graph._host.removed}, {**topology.numbers}
            last, known = self._last, self._rows == rows
            if last is None or not known or edited:
                self._rows = rows
                self._slots = sorted(slots_in_order(graph), key=topology.rank.__getitem__)
                self._place = {slot: place for place, slot in enumerate(self._slots)}
            moved = self._note() | self.left
            self.left = frozenset()
            if last is None or not known or edited or scheduler.computing:
                now = snapshot(graph, None, True)
                self._weighted = weighted(graph)
                if last is not None and not edited:
                    now = Snapshot(now.nodes, last.edges, now.weights)
            else:
                if first is not None and len(moved) > MANY:
                    keys, leaf = numbers(graph), scheduler.leaf
                    shown = {slot for slot in moved if leaf[slot] or keys(slot) in first}
                    moved, self.left = shown, moved - shown
                now = self._changed(last, moved)
            # What is being computed has no mark and no version of its own yet.
            self._last = None if scheduler.computing else now
            return now

    def _changed(self, last: Snapshot, moved: set[int]) -> Snapshot:
        """Return the last snapshot with other nodes in place of those that differ."""
        graph, place, texts = self._graph, self._place, Texts()
        stale, nodes = self._sets[0], [*last.nodes]
        differ: dict[int, NodeSnapshot] = {}
        for slot in moved:
            former = nodes[place[slot]]
            node = again(graph, slot, former, slot in stale, self._outcomes.get(slot), texts)
            if node != former:
                nodes[place[slot]] = differ[node.key] = node
        now = Snapshot(
            tuple(nodes), last.edges, weights_of(graph, self._slots if self._weighted else ())
        )
        now._take_over(last, differ)
        return now

    def _note(self) -> set[int]:
        """Note how the nodes are. Return those that are not as they were noted before."""
        graph, slots = self._graph, self._slots
        scheduler, host = graph._scheduler, graph._host
        run = scheduler.last_run
        versions = [*map(scheduler.versions.version.__getitem__, slots)]
        marks = host.frozen, host.pins, host.kept, scheduler.dropped, host.cutoffs
        sets = [{*scheduler.truly_stale(slots)}, *[{*mark} for mark in marks], {*scheduler.errors}]
        names = {**host.name_of}
        # With the same run nodes had the same parts in it, and the same times.
        outcomes = self._outcomes if run is self._run else outcomes_of(graph, run)
        moved = {*compress(slots, map(ne, versions, self._versions)), *scheduler.errors}
        for now, before in zip(sets, self._sets or sets, strict=True):
            moved |= now ^ before
        if outcomes is not self._outcomes:
            moved |= outcomes.keys() | self._outcomes.keys()
        if names != self._names:
            moved |= {slot for slot, _ in names.items() ^ self._names.items()}
        self._run, self._versions, self._outcomes = run, versions, outcomes
        self._sets, self._names = sets, names
        return moved & self._place.keys()
