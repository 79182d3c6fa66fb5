"""Runs of a graph with transient nodes: their values are dropped once no later node reads them.

The reads that are still to come are counted before the run, from the nodes that it will run. A value
that was just computed stays for nodes of its own order only. Gradients that read it (or gradients of
gradients, which read what gradients compute) have it computed again or brought back, so that the
memory of both orders is never needed at once. A value that was brought back stays for all nodes of
the run that read it. If a node turns out to read other nodes than expected, a value may be brought
back twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from reactgrad.core._rows import Rows
from reactgrad.memory._host_in_front import Through, in_front
from reactgrad.memory._scratch_run import AGAIN, BACK, GONE, RAN, Event, Repeat
from reactgrad.scheduler import UNCHANGED, Course, Run, Script, Step, block, is_interrupt, released
from reactgrad.values._columns import MISSING


def meets_transient(host: Rows, slots: Sequence[int], targets: Sequence[int]) -> bool:
    """Return whether a run of these nodes for these targets computes or reads transient values."""
    transient, scheduler = host.transient, host.scheduler
    if not transient:
        return False
    if host.refused:
        return True
    parents, dropped = scheduler.topology.parents, scheduler.dropped
    known, mark = {*slots, *targets}, scheduler.staleness.mark
    stack = list(known)
    for slot in stack:
        if slot in transient:
            return True
        runs = mark[slot] or slot in dropped
        for parent in parents[slot] if runs else ():
            if parent in transient:
                return True
            if parent in dropped and parent not in known:  # a budget released it: it runs again
                known.add(parent)
                stack.append(parent)
    return False


@block
def sparing(host: Rows, slots: Sequence[int], targets: Sequence[int]) -> Iterator[Course]:
    """Drop transient values during a run and at its end.

    An error of ``pack`` keeps the value in place, and everything else runs. If this run has computed
    or read such a value, the first error becomes ``host.refusal``, which the read raises. Other
    values that must stay are tried again by the next such run.
    """
    front = _Sparing(host, slots, targets)
    with in_front(host.scheduler, front):
        try:
            yield front.script
        finally:
            front.end()


def take_refusal(host: Rows, failure: Exception | None) -> Exception | None:
    """Return the error that the read just ended must raise: its own failure, or the refusal."""
    refusal, host.refusal = host.refusal, None
    return refusal if failure is None else failure


class _Sparing(Through):
    """A host that counts, for one run, the reads of each transient value that are still to come."""

    def __init__(self, host: Rows, ahead: Sequence[int], targets: Sequence[int]) -> None:
        super().__init__(host.scheduler.host)
        self._host, self._scheduler = host, host.scheduler
        self._targets = frozenset(targets)
        self._soon: Counter[int] = Counter()  # reads to come, by nodes of the same order
        self._later: Counter[int] = Counter()  # reads by nodes of higher order, or when rebuilt
        self._loose: set[int] = set()  # values whose reads may all have been made
        self._back: set[int] = set()  # values computed again, or brought back
        self._stuck: set[int] = set()  # values that could not be released
        self._lay, self._dropped = host.lying.copy(), host.scheduler.dropped.copy()
        self._events: list[Event] = []
        self._met = set(targets)  # nodes that this run has computed, read or was asked for
        self._ahead = set(ahead)
        self._in_turn = iter(ahead)
        for slot in ahead:
            for operand in self._read(slot):
                self._count(slot, operand)[operand] += 1
        # A value of `_later` is computed again when it is read, from its own operands, which count
        # as read once more. The same holds for values that were released before the run.
        transient, dropped = self._host.transient, self._scheduler.dropped
        stack = [slot for slot in self._later if transient[slot].recomputed]
        if dropped:
            read = {one for slot in ahead for one in self._scheduler.operands(slot)}
            wanted = dropped.intersection((*read, *targets))
            stack += released(self._scheduler, wanted - self._ahead) - self._later.keys()
        self._again = set(stack)
        while stack:
            for operand in self._read(stack.pop()):
                self._count_again(operand)[operand] += 1
                how = transient[operand]
                if how.recomputed and not how.lasting and operand not in self._again:
                    self._again.add(operand)
                    stack.append(operand)
        self._loose.update([slot for slot in self._lay if transient[slot].lasting])

    def _read(self, slot: int) -> list[int]:
        """Return the transient operands of a node."""
        transient = self._host.transient
        return [one for one in dict.fromkeys(self._scheduler.operands(slot)) if one in transient]

    def _count(self, slot: int, operand: int) -> Counter[int]:
        """Return the counter for the reads of an operand by a node."""
        owners = self._host.owners  # later programs differentiate what earlier ones compute
        soon = owners.get(slot, 0) <= owners.get(operand, 0)
        return self._soon if soon else self._count_again(operand)

    def _count_again(self, operand: int) -> Counter[int]:
        """Return the counter for reads of an operand by nodes that are computed again."""
        return self._soon if self._host.transient[operand].lasting else self._later

    def script(self, run: Run) -> Script | None:
        """Return a script that repeats this run, if values would be dropped in the same way again."""
        host = self._host
        dropped = self._scheduler.dropped
        if self._stuck or not dropped <= self._dropped:
            return None
        if [slot for what, slot in self._events if what == RAN] != run.ran:
            return None  # a user's function has read other nodes on the way
        stayed = [
            slot
            for slot in host.lying & self._met
            if host.transient[slot].recomputed
            and not host.transient[slot].lasting
            and slot not in self._targets
        ]
        repeat = Repeat(host, run.ran, self._events, stayed, self._dropped - dropped)
        return repeat if repeat.possible() and repeat.fits() and repeat.apart(self._lay) else None

    # --- as the scheduler's host ---------------------------------------------------------------

    def around(
        self, slots: Sequence[int], targets: Sequence[int]
    ) -> AbstractContextManager[Course | None]:
        return nullcontext(self.script)  # a read inside of this run

    def bind(self, slot: int) -> Step:
        for operand in self._read(slot):
            if self._host.data[operand] is MISSING:
                self._host.bring_back(operand)
                self._back.add(operand)
                self._events.append((BACK, operand))
        return super().bind(slot)

    def run(self, slot: int, step: Step | None) -> object:
        again = not self._scheduler.staleness.mark[slot]
        outcome = None if step is None else step()
        self._events.append((AGAIN if again else RAN, slot))
        read = self._read(slot)
        self._met.update(read, (slot,))
        if again:
            self._back.add(slot)
            if slot in self._again:
                self._again.remove(slot)
                for operand in read:
                    self._count_again(operand)[operand] -= 1
        elif slot in self._ahead:
            self._pass_over(slot)
            self._strike(slot, read)
        self._loose.update(read)
        if slot in self._host.transient:
            if not again and outcome is not UNCHANGED:
                self._host.away.pop(slot, None)
            self._host.lying.add(slot)
            self._loose.add(slot)
        # Not during a rebuild nor inside of a node: a node around it still waits for its operands.
        if not again and len(self._scheduler.computing) == 1:
            loose, self._loose = self._loose, {slot} & self._loose
            # Views go before the values whose memory they show, hence from high ranks to low.
            rank = self._scheduler.topology.rank
            for one in sorted(loose - {slot}, key=rank.__getitem__, reverse=True):
                if not self._awaited(one):
                    self._let_go(one)
        return outcome

    def _pass_over(self, slot: int) -> None:
        """Note that nodes planned before this one did not run, since they turned out to be clean.

        They read nothing, unless they have no value: then they are computed again when read.
        """
        mark, dropped = self._scheduler.staleness.mark, self._scheduler.dropped
        for passed in self._in_turn:
            if passed == slot:
                return
            if passed in self._ahead and not mark[passed]:
                read = self._read(passed)
                self._strike(passed, read)
                if passed in dropped and passed not in self._again:
                    self._again.add(passed)
                    for operand in read:
                        self._count_again(operand)[operand] += 1

    def _strike(self, slot: int, read: Sequence[int]) -> None:
        """Note that a node has made its reads."""
        self._ahead.remove(slot)
        for operand in read:
            self._count(slot, operand)[operand] -= 1

    def _awaited(self, slot: int) -> bool:
        return (
            self._soon[slot] > 0
            or (slot in self._back and self._later[slot] > 0)
            or self._is_shown(slot)
        )

    def _is_shown(self, slot: int) -> bool:
        """Return whether a lasting value that is still there lies in the memory of this one."""
        host = self._host
        transient, lying, view_of = host.transient, host.lying, host._view_of
        if not transient[slot].lasting or not view_of:
            return False
        children = self._scheduler.topology.children[slot]
        return any(one in view_of and one in lying and transient[one].lasting for one in children)

    def end(self) -> None:
        """Drop what the run can drop now that it is over; its targets stay until the next run."""
        for slot in list(self._host.lying):
            self._let_go(slot)

    def _let_go(self, slot: int) -> None:
        host, scheduler = self._host, self._scheduler
        if host.data[slot] is MISSING:
            host.lying.discard(slot)
            return
        if (
            slot in self._targets
            or slot in self._stuck
            or self._host.is_observed(slot)
            or scheduler.staleness.mark[slot]
        ):
            return
        shown = scheduler.topology.parents[slot][:1] if slot in host._view_of else ()
        try:
            if host.transient[slot].let_go(host, slot):
                self._loose.update([one for one in shown if one in host.transient])
                host.lying.discard(slot)
                self._behind.let_go(slot)  # type: ignore[attr-defined]
                self._events.append((GONE, slot))
            host.refused.discard(slot)
        except Exception as error:
            if is_interrupt(error):
                raise
            self._stuck.add(slot)
            host.refuse(slot, error, met=slot in self._met)
