"""Edges found while nodes run: a node depends on each node that its function has read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NoReturn

from reactgrad_scheduler.mending import is_stray
from reactgrad_scheduler.order import admit, cycle_through, way_back
from reactgrad_scheduler.staleness import FAILED, UNSETTLED
from reactgrad_scheduler.standing import Standing


class Reads(Standing):
    """The storey of the scheduler that adds edges for reads inside of nodes, and refuses some reads."""

    def depend(self, slot: int) -> None:
        """Note that the node being computed, or a thread for it, reads ``slot`` and so depends on it.

        Raises
        ------
        CycleError
            If ``slot`` itself is being computed.
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
        """Note that a read of the node being computed was stopped: its result must not be stored."""
        self.attend()
        for level in self.lock.levels(len(self.computing)):
            self.broken[self.computing[level - 1]] = error

    def raise_broken(self, slot: int) -> None:
        """Raise the error that stopped a read of ``slot``, which has been computed, if there is one."""
        error = self.broken.pop(slot, None)
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame

    def adopt_reads(self, slot: int) -> None:
        """Make the reads of a node's last run its parents, after the operands."""
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
            if is_stray(error):  # complete the edges first
                self.versions.record[slot] = None
                self._relink_reads(slot, len(fixed), former, parents)
            raise

    def _relink_reads(
        self, slot: int, fixed: int, former: tuple[int, ...], parents: tuple[int, ...]
    ) -> None:
        """Make reads the parents of a node, after the operands. Calling it again changes no more."""
        topology = self.topology
        self.dynamic[slot] = fixed  # first: at no moment do reads count as operands
        if parents != former:
            ranks: dict[int, int] = {}
            for parent in parents[fixed:]:
                while path := cycle_through(topology, parent, slot):
                    self._forget_reads(path)
                admit(topology, parent, slot, ranks)
            self.orphans.extend(parent for parent in former if parent not in parents)
            topology.relink(slot, parents)
            if ranks:  # cached plans have another order
                self.renew()
            self.staleness.relinked(slot, former[fixed:], parents[fixed:])
        if len(parents) == fixed:
            del self.dynamic[slot]

    def _forget_reads(self, path: Sequence[int]) -> None:
        """Break a cycle that goes through former reads of a node which an operand's error keeps from running.

        No other edge can be part of the cycle: all parents of a settled node are settled, and the node
        that is being computed is not.
        """
        for before, slot in pairwise(path):
            operands = self.operands(slot)
            if self.staleness.mark[slot] == FAILED and before not in operands:
                self.versions.record[slot] = None
                self.orphans.extend(self.topology.parents[slot][len(operands) :])
                self.topology.relink(slot, operands)
                del self.dynamic[slot]
                self.errors.pop(slot, None)  # it still raises the error of its operand
                self.cycles.pop(slot, None)
                self.staleness.renew()
                return
        raise self.cycle_error(path)

    def under_way(self, slots: Iterable[int]) -> int | None:
        """Return the innermost node being computed among these, ``None`` if there is none."""
        if self.computing:
            found = set(slots)
            return next((slot for slot in reversed(self.computing) if slot in found), None)
        return None

    def _refuse(self, slot: int, targets: tuple[int, ...]) -> NoReturn:
        """Refuse a read: the innermost node being computed needs ``slot``, which is being computed.

        The reader gets an error, and must be outdated when the error no longer holds. It cannot depend
        on the refused node, since that edge would close the cycle in the tables, too. Instead it depends
        on all that the nodes on the cycle were computed from or have read so far. Other reasons for one
        of these to run again, an edit or a touch, remove the error by themselves.
        """
        self.refuse(self.computing[self.computing.index(slot) :], targets, slot)

    def refuse(self, computing: list[int], targets: tuple[int, ...], slot: int) -> NoReturn:
        """Raise ``CycleError`` for nodes being computed of which each needs the next one.

        The last one has asked for ``targets``, which need the first one. This thread computes the nodes
        from ``slot`` on.
        """
        self.lock.refuse(self.computing.index(slot) + 1)
        slot, reader = computing[0], computing[-1]
        # Against the data: the reads of each node, through which it needs the next one.
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
                continue  # an operand: it needs the one before, whatever the values are
            reads.update(dict.fromkeys(source for source in sources if source not in members))
        serials = {self.topology.serial[member] for member in members - {reader}}
        self.cycles[reader] = self.cycles.get(reader, frozenset()) | serials
        raise self.cycle_error(path, "read")

    def _way(self, start: int, goals: Iterable[int]) -> list[int]:
        """Return a path along the data from ``start`` to the first goal that needs it.

        The search goes against the data in the way that runs do: to operands, or, if all operands are
        settled, to the first read that is not. Reads before that one are settled and do not need
        ``start``.
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
