"""Reads of nodes that depend on collectives: the ranks agree on which of them run.

A collective has to run on all ranks if an operand is stale on one of them, and on none if nowhere. So before
such a read each collective above the targets is settled, in the order in which they were built:

1. Its operands are computed, as far as they are stale on this rank.
2. If they have changed, its start node runs: it gives the data to the other ranks and waits for nobody.
   If not, this rank only says so.
3. At the end, or before another collective needs the result, a rank that had nothing new learns whether
   another one had. If so its start node becomes stale and runs, too; if not, no data has moved and all
   that follows stays clean.

So between two collectives this rank computes while the first one is under way. A read of a node without a
collective above it asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from reactgrad.distributed._start import Start
from reactgrad.reading._joint_run import OneRead
from reactgrad.reading._refresh import refresh
from reactgrad.reading._value import clean_values, value


class Settling:
    """A collective of the present read.

    Attributes
    ----------
    slot : int
        The start node.
    above : set of int
        What it is computed from.
    work : Work or None
        What this rank waits for to learn whether others have something new; ``None`` if its own node ran.
    """

    __slots__ = ("above", "slot", "work")

    def __init__(self, slot: int, above: set[int]) -> None:
        self.slot, self.above = slot, above
        self.work: Any = None


class Rounds:
    """Settles collectives before reads of one graph. ``Core._rounds`` is it, once a collective was built."""

    def __init__(self, graph: Any) -> None:
        self.under_way = False
        # Models whose gradients other ranks have a part in, such as ``DataParallel``.
        self.exchangers: list[Any] = []
        self._host, self._scheduler = graph._host, graph._scheduler
        graph._rounds = self
        # From now on no read takes the path without a lock, and all go through here: also a read of a
        # clean node, since another rank may have something new.
        graph._followed[self] = None
        graph._value = partial(_value, graph)

    @staticmethod
    def of(graph: Any) -> Rounds:
        """Return the rounds of a graph, made at its first collective."""
        return Rounds(graph) if graph._rounds is None else graph._rounds

    def read(self, graph: Any, slots: tuple[int, ...], go_on: Callable[[], Any]) -> Any:
        """Settle the collectives above these nodes, then go on with the read."""
        starts = self._above(slots)
        self.under_way = True
        done = False
        try:
            result = self._read(graph, starts, go_on)
            done = True
            return result
        finally:
            self.under_way = False
            if not done:
                self._abandon(starts)

    def _read(self, graph: Any, starts: list[int], go_on: Callable[[], Any]) -> Any:
        if not starts:
            return go_on()
        if graph._programs.read is not None:
            self._settle(graph, starts)
            return go_on()
        with OneRead(graph) as read:
            self._settle(graph, starts)
            go_on()
            return read.joined()

    def _abandon(self, starts: list[int]) -> None:
        """End what is under way, since an error has come before it was needed: it uses operands' memory."""
        for slot in starts:
            work = self._host.ops[slot].latest
            if work is not None and not work.is_done:
                work.abandon()

    @property
    def token(self) -> tuple[object, ...]:
        """Equal as long as ``exchanged`` gives the same nodes."""
        return tuple([one.token for one in self.exchangers])

    def exchanged(self, adjoints: dict[int, Any]) -> dict[int, Any]:
        """Return what ``backward`` reads in place of these adjoints, by param."""
        for one in self.exchangers:
            adjoints = one.exchanged(adjoints)
        return adjoints

    def _above(self, slots: tuple[int, ...]) -> list[int]:
        """Return the start nodes above these, in the order in which they run."""
        ops, topology = self._host.ops, self._scheduler.topology
        found = [one for one in topology.ancestors(slots) if type(ops[one]) is Start]
        return sorted(found, key=topology.rank.__getitem__)

    def _settle(self, graph: Any, starts: list[int]) -> None:
        scheduler, host = self._scheduler, self._host
        waiting: list[Settling] = []
        for slot in starts:
            one = Settling(slot, scheduler.topology.ancestors((slot,)))
            for other in waiting:
                if other.slot in one.above:
                    self._finish(graph, other)
            operands = scheduler.topology.parents[slot]
            refresh(graph, operands)
            if scheduler.truly_stale((slot,)):
                refresh(graph, (slot,))
            else:
                one.work = host.ops[slot].post(clean_values(graph, operands), False)
            waiting.append(one)
        for one in waiting:
            self._finish(graph, one)

    def _finish(self, graph: Any, one: Settling) -> None:
        """Let the node run if another rank has something new."""
        work, one.work = one.work, None
        if work is None or not work.agree():
            return
        self._host.ops[one.slot].given = work
        self._scheduler.invalidate(one.slot)
        refresh(graph, (one.slot,))


def _value(graph: Any, slot: int) -> Any:
    """Return the value of a node; collectives above it are settled first."""
    rounds = graph._rounds
    if not graph._computing and not rounds.under_way:
        with graph._lock:
            if not graph._computing:
                refresh(graph, (slot,))
    return value(graph, slot)
