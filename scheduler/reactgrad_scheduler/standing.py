"""The standing of nodes by the versions of their parents: clean, stale, or failed with some error."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from operator import attrgetter

from reactgrad_scheduler.exceptions import notes_of, set_notes
from reactgrad_scheduler.failure import StoredError
from reactgrad_scheduler.order import find_path
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import CLEAN, FAILED, MAYBE, STALE, UNSETTLED
from reactgrad_scheduler.tables import Tables


class Standing(Tables):
    """The storey of the scheduler that decides by versions how nodes stand, where marks do not."""

    def _doubt_errors(self, targets: tuple[int, ...]) -> None:
        """Put nodes with errors up to ``retried``, and nodes computed from them, in doubt."""
        self.attend()
        mark, raises, retried = self.staleness.mark, self.raises, self.retried
        failed = [
            slot
            for slot in self.topology.ancestors(targets)
            if mark[slot] == FAILED and raises[slot].number <= retried
        ]
        for slot in failed:
            self.staleness.put(slot, MAYBE)
        self.staleness.doubt_below(failed)

    def seen(self, slot: int) -> int:
        """Return what a node that reads ``slot`` now would see: its version, or minus its error's number."""
        if self.staleness.mark[slot] == FAILED:
            return -self.raises[slot].number
        return self.versions.version[slot]

    def seen_parents(self, slot: int) -> tuple[int, ...]:
        """Return what a node sees of its parents. It sees errors only of nodes that it reads itself."""
        if self.raises and slot in self.dynamic:
            return tuple([self.seen(parent) for parent in self.topology.parents[slot]])
        return self.versions.current(slot)

    def error_of(self, targets: Iterable[int], run: Run) -> Exception | None:
        """Return the error that the read of ``run`` must raise: the first of its targets' errors."""
        mark = self.staleness.mark
        stored = [self.raises[target] for target in targets if mark[target] == FAILED]
        raised, run.raised = run.raised, {}
        if not stored:
            return None
        first = min(stored, key=attrgetter("number"))
        error = raised.get(first.number)
        if error is None:
            error = first.again(self.turn)
        else:  # several nodes may have raised the same object
            set_notes(error, notes_of(first.error))
        if self.computing:  # kept, so that it is known if the node passes it on
            run.raised[first.number] = error
        return error

    def blocked(self, failed: Iterable[int], among: Container[int]) -> dict[int, StoredError]:
        """Return those of the nodes ``among`` that have no value because these failed nodes raised.

        They come in topological order, each with its error: that of its first operand that has one, else
        its own. The error may also be one that another node than the given ones has raised.
        """
        topology, mark, errors = self.topology, self.staleness.mark, self.errors
        self.staleness.flush()
        reached = topology.descendants(failed, mark.__getitem__)
        reached = [slot for slot in reached if slot in among]
        self.truly_stale(reached)  # settles nodes whose versions match, so that their marks go
        found: dict[int, StoredError] = {}
        for slot in topology.sort(topology.ancestors(reached, mark.__getitem__)):
            if mark[slot] == FAILED:
                found[slot] = self.raises[slot]
                continue
            for operand in self.operands(slot):
                if operand in found:
                    found[slot] = found[operand]
                    break
            else:
                if slot in errors and self._stands(slot, found):
                    found[slot] = errors[slot]
        return {slot: error for slot, error in found.items() if slot in among}

    def _stands(self, slot: int, known: Container[int]) -> bool:
        """Return whether a node would raise its stored error again; ``known`` parents have errors."""
        mark, parents = self.staleness.mark, self.topology.parents[slot]
        settled = all(not mark[parent] or parent in known for parent in parents)
        return settled and self.errors[slot].versions == self.seen_parents(slot)

    def stale_ancestors(
        self, targets: Iterable[int], *, read: bool = False, but: Container[int] = ()
    ) -> list[int]:
        """Return the marked nodes that ``targets`` need, in an order that is checked to be topological.

        Nodes of ``but`` are left out, and so are nodes that only they need.

        Former reads of nodes are left out unless ``read`` is given: a node may read others this time,
        and asks for them itself. Former reads of a node that raises its own error again still count.
        """
        mark, parents, rank = self.staleness.mark, self.topology.parents, self.topology.rank
        dynamic = None if read else self.dynamic or None
        errors = self.errors
        found = {  # with their ranks
            target: rank[target] for target in targets if mark[target] and target not in but
        }
        reached = list(found)
        for slot in reached:  # which grows in the loop
            below = found[slot]
            sources = parents[slot]
            if (
                dynamic is not None
                and slot in dynamic
                and not (slot in errors and self.error(slot) is not None)
            ):
                sources = sources[: dynamic[slot]]
            for parent in sources:
                if mark[parent] and parent not in found and parent not in but:
                    above = found[parent] = rank[parent]
                    reached.append(parent)
                    if above >= below:
                        raise self.cycle_error(find_path(self.topology, slot, parent))
        reached.sort(key=found.__getitem__)
        return reached

    def is_stale(self, slot: int) -> bool:
        """Return whether a read of ``slot`` would find it out of date. Runs nothing."""
        self.attend()
        return slot in self.stale_among((slot,))

    def stale_among(self, slots: Collection[int]) -> set[int]:
        """Return those nodes that a read would find out of date; walk only behind cutoffs and errors."""
        staleness = self.staleness
        if staleness.pending:
            staleness.flush()
        mark = staleness.mark
        marked = [slot for slot in slots if mark[slot]]
        if not marked:
            return set()
        # With errors about, even a ``STALE`` node may only have to pass on an operand's error.
        open_to_doubt = UNSETTLED if self.raises else (MAYBE,)
        doubtful = [slot for slot in marked if mark[slot] in open_to_doubt]
        if not doubtful:
            return set(marked)
        self.truly_stale(doubtful)
        return {slot for slot in marked if mark[slot]}

    def unsettled_among(self, slots: Collection[int]) -> set[int]:
        """Return those nodes that have neither a present value nor a present error."""
        mark = self.staleness.mark
        return {slot for slot in self.stale_among(slots) if mark[slot] in UNSETTLED}

    def truly_stale(self, targets: Iterable[int]) -> list[int]:
        """Return the ancestors-or-self of ``targets`` that are stale by versions, in topological order.

        Nodes that were computed from the present versions of their parents are settled.
        """
        self.attend()
        mark = self.staleness.mark
        slots = self.stale_ancestors(targets, read=True)
        for slot in slots:
            if mark[slot] in UNSETTLED:
                standing = self.standing(slot)
                if standing not in UNSETTLED:
                    self.staleness.put(slot, standing)
        return [slot for slot in slots if mark[slot]]

    def standing(self, slot: int) -> int:
        """Return the mark that a node has by the versions of its parents, if nothing runs.

        ``CLEAN`` or ``FAILED``: its outcome is up to date. ``STALE``: it has to run. ``MAYBE``: that
        depends on a parent that is not settled, while all others are as the node saw them.
        """
        mark, errors, dynamic = self.staleness.mark, self.errors, self.dynamic
        parents, version = self.topology.parents[slot], self.versions.version
        reads: tuple[int, ...] = ()
        if slot in dynamic:
            count = dynamic[slot]
            parents, reads = parents[:count], parents[count:]
        now: list[int] = []
        failed: list[int] = []
        for parent in parents:
            if mark[parent]:
                if mark[parent] != FAILED:
                    return MAYBE
                failed.append(parent)
            now.append(version[parent])
        if failed:
            self.raises[slot] = self.raises[failed[0]]
            return FAILED
        stored = errors.get(slot) if errors else None
        known = self.versions.record[slot] if stored is None else stored.versions
        if known is None or (stored is None and slot in self.versions.forced):
            return STALE
        if not reads:
            if known != tuple(now):
                return STALE
        else:
            if known[: len(now)] != tuple(now) or len(known) != len(now) + len(reads):
                return STALE
            doubtful = False
            for parent, old in zip(reads, known[len(now) :], strict=True):
                if mark[parent] in UNSETTLED:
                    doubtful = True
                elif self.seen(parent) != old:
                    return STALE
            if doubtful:
                return MAYBE
        if stored is None:
            if self.raises:
                self.raises.pop(slot, None)
            return CLEAN
        if stored.number <= self.retried:
            return STALE
        self.raises[slot] = stored
        return FAILED

    def doubtful_read(self, slot: int) -> int | None:
        """Return the read that decides whether ``slot`` has to run; ``None`` if an operand decides.

        Reads are checked in the order in which they were made: after an earlier change the node may read
        other nodes, and those that it does not read again must not run.
        """
        mark, parents = self.staleness.mark, self.topology.parents[slot]
        unsettled = next(parent for parent in parents if mark[parent] in UNSETTLED)
        return None if unsettled in self.operands(slot) else unsettled

    def unless_doubted(self, slot: int, mark: int) -> int:
        """Return ``mark`` for a node that has run, but ``MAYBE`` if it erased the marks of its parents."""
        if self.erasures:
            marks = self.staleness.mark
            if any(marks[parent] in UNSETTLED for parent in self.topology.parents[slot]):
                return MAYBE
        return mark

    def error(self, slot: int) -> Exception | None:
        """Return the node's own error, if it raises that again; it must be settled (see ``is_stale``)."""
        stored = self.errors.get(slot)
        failed = self.staleness.mark[slot] == FAILED and self.raises[slot] is stored
        return stored.error if stored is not None and failed else None
