"""Edges found while nodes run: each node depends on what its function has read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from reactgrad_scheduler.order import admit, cycle_through, way_back
from reactgrad_scheduler.staleness import FAILED, UNSETTLED

if TYPE_CHECKING:
    pass
from reactgrad_scheduler.standing import Standing


class Reads(Standing):
    """Edges that nodes get by reading others while they run, and the reads that are refused."""

    def depend(self, slot: int) -> None:
        """The node being computed reads `slot` (or a thread for it), and depends on it from now on.

        Raises
        ------
        CycleError
            If `slot` itself is being computed.
        """
        self.attend()
        if slot in self.computing:
            self._refuse(slot, (slot,))
        if self.retried:
            self._doubt_errors((slot,))
        for level in self.lock.levels(len(self.computing)):
            self.reads.setdefault(self.computing[level - 1], {})[slot] = None
        if self.crew is not None:
            self.crew.depend(slot)

    def break_read(self, error: BaseException) -> None:
        """A read of the node being computed was stopped by this: whatever it makes of that is no value of it."""
        self.attend()
        for level in self.lock.levels(len(self.computing)):
            self.broken[self.computing[level - 1]] = error

    def raise_broken(self, slot: int) -> None:
        """Raise what stopped a read of `slot`, which has been computed, if anything did."""
        error = self.broken.pop(slot, None)
        if error is not None:
            raise error

    def adopt_reads(self, slot: int) -> None:
        """Make what a node read in the run that just ended its parents, behind the fixed ones."""
        reads = self.reads.pop(slot, None)
        count = self.dynamic.get(slot)
        if reads is None and count is None:
            return
        former = self.topology.parents[slot]
        if reads is not None and count is not None and former[count:] == tuple(reads):
            return
        fixed = former if count is None else former[:count]
        parents = fixed + tuple([other for other in reads or () if other not in fixed])
        try:
            self._relink_reads(slot, len(fixed), former, parents)
        except BaseException as error:
            if not isinstance(error, Exception):  # an interrupt: the tables must not contradict
                self.versions.record[slot] = None
                self._relink_reads(slot, len(fixed), former, parents)
            raise

    def _relink_reads(
        self, slot: int, fixed: int, former: tuple[int, ...], parents: tuple[int, ...]
    ) -> None:
        """Give a node its reads for parents, behind the fixed ones; doing it again does no more."""
        topology = self.topology
        if parents != former:
            ranks: dict[int, int] = {}
            for parent in parents[fixed:]:
                while path := cycle_through(topology, parent, slot):
                    self._forget_reads(path)
                admit(topology, parent, slot, ranks)
            self.orphans.extend(parent for parent in former if parent not in parents)
            topology.relink(slot, parents)
            if ranks:  # plans in another order
                self.renew()
            self.staleness.relinked(slot, former[fixed:], parents[fixed:])
        if len(parents) > fixed:
            self.dynamic[slot] = fixed
        else:
            self.dynamic.pop(slot, None)

    def _forget_reads(self, path: Sequence[int]) -> None:
        """Break a cycle through what a node had read that an operand's error keeps from running.

        No other edge can be part of it: all parents of a settled node are settled, and the node
        that is being computed is not.
        """
        for before, slot in pairwise(path):
            operands = self.operands(slot)
            if self.staleness.mark[slot] == FAILED and before not in operands:
                self.orphans.extend(self.topology.parents[slot][len(operands) :])
                self.topology.relink(slot, operands)
                del self.dynamic[slot]
                self.versions.record[slot] = None
                self.errors.pop(slot, None)  # but it still raises its operand's
                self.cycles.pop(slot, None)
                self.staleness.renew()
                return
        raise self.cycle_error(path)

    def under_way(self, slots: Iterable[int]) -> int | None:
        """The innermost node being computed that is one of these."""
        if self.computing:
            found = set(slots)
            return next((slot for slot in reversed(self.computing) if slot in found), None)
        return None

    def _refuse(self, slot: int, targets: tuple[int, ...]) -> NoReturn:
        """`slot` is being computed, and what the innermost such node reads now needs `slot`.

        That node gets to see an error, and has to see when it is outdated. It cannot depend on what
        it was refused, which would close the cycle in the tables, too. It depends on what leads
        round the cycle instead: on all that the nodes on it were computed from or have read so far.
        What else makes one of these run again, an edit or a touch, takes the error back by itself.
        """
        self.refuse(self.computing[self.computing.index(slot) :], targets, slot)

    def refuse(self, computing: list[int], targets: tuple[int, ...], slot: int) -> NoReturn:
        """Each of these nodes under way needs the next one, and the last one, which has asked for
        `targets`, the first; `slot` is that of them from which on this thread computes them.
        """
        self.lock.refuse(self.computing.index(slot) + 1)
        slot, reader = computing[0], computing[-1]
        # Against the data: who reads what; each of these needs the next one that is computed.
        asked = [tuple(self.reads.get(other, ())) for other in computing[:-1]] + [targets]
        path: list[int] = []
        for start, goals in zip([slot, *reversed(computing[1:])], reversed(asked), strict=True):
            path += self._way(start, reversed(goals))
        path.append(slot)
        members = set(path)
        reads = self.reads.setdefault(reader, {})
        for target in targets:
            reads.pop(target, None)
        for before, node in pairwise(path):
            if node == reader:
                continue
            sources = self.operands(node)
            if node in computing:
                sources += tuple(self.reads.get(node, ()))
            elif before not in sources:
                sources = self.topology.parents[node]
                sources = sources[: sources.index(before)]
            else:
                continue  # whatever the values, it needs the one before
            reads.update(dict.fromkeys(source for source in sources if source not in members))
        serials = {self.topology.serial[member] for member in members - {reader}}
        self.cycles[reader] = self.cycles.get(reader, frozenset()) | serials
        raise self.cycle_error(path, "read")

    def _way(self, start: int, goals: Iterable[int]) -> list[int]:
        """A path along the data from `start` to the first goal that waits for it.

        Against the data it goes as runs do: to an operand, or, where all of these are settled, to the
        first read that is not. What was read before that one is settled, and so does not need `start`.
        """
        parents, mark = self.topology.parents, self.staleness.mark
        for goal in goals:
            came = {goal: -1}
            stack = [goal]
            while stack:
                slot = stack.pop()
                if slot == start:
                    return way_back(came, slot)
                unsettled = [one for one in parents[slot] if mark[one] in UNSETTLED]
                operands = self.operands(slot)
                for one in [one for one in unsettled if one in operands] or unsettled[:1]:
                    if one not in came:
                        came[one] = slot
                        stack.append(one)
        return [start]
