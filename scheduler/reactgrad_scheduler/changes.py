"""Changes of leaves and edges: nodes become stale, cycles are refused, edits are taken back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from itertools import pairwise

from reactgrad_scheduler import order
from reactgrad_scheduler.block import block
from reactgrad_scheduler.edit import Former, Link, Noted
from reactgrad_scheduler.errors import CycleError
from reactgrad_scheduler.failure import FLEETING, StoredError
from reactgrad_scheduler.ranges import Ranges, joined
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.staleness import CLEAN, MAYBE, STALE, UNSETTLED
from reactgrad_scheduler.versions import JOURNAL_LIMIT, Leaves


class Changes(Reads):
    """The storey of the scheduler that changes leaves and edges, and takes such changes back."""

    def changed(self, leaf: int) -> None:
        """Note that the value of this leaf was replaced."""
        journal, staleness = self.versions.journal, self.staleness
        staleness.pending[leaf] = None  # first: after an interrupt, no version moves unseen
        self._journaled[leaf] = 1
        journal.append(leaf)
        if staleness.mark[leaf]:
            self._valued(leaf)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def changed_in(self, leaf: int, rows: Ranges) -> None:
        """Note that these rows of the value of this leaf were replaced; it has a value."""
        pending = self.staleness.pending
        before = pending.get(leaf, (0, ()))
        self.changed(leaf)  # as a whole: also after an interrupt between these lines
        if self.dirty is None:
            from reactgrad_scheduler.dirty import Dirty  # imported late: few programs set rows

            self.dirty = Dirty()
        if before is not None and (both := joined(before[1], rows)) is not None:
            pending[leaf] = before[0] + 1, both

    def changed_together(self, leaves: tuple[int, ...]) -> None:
        """Note that the values of these leaves were replaced."""
        journal, staleness = self.versions.journal, self.staleness
        for leaf in leaves:
            staleness.pending[leaf] = None
            self._journaled[leaf] = 1
            if staleness.mark[leaf]:
                self._valued(leaf)
        journal.append(leaves)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def _valued(self, leaf: int) -> None:
        """Note that a leaf without a value has one now."""
        self.staleness.put(leaf, CLEAN)
        self.forget_failure(leaf)

    def leaves(self, slots: Iterable[int]) -> Leaves:
        """Return leaves that are replaced together again and again, for ``changed_again``."""
        leaves = Leaves(dict.fromkeys(slots))
        for leaf in leaves.slots:  # the journal must not outlive them
            self._journaled[leaf] = 1
        return leaves

    def changed_again(self, leaves: Leaves) -> None:
        """Do what ``changed`` does for leaves that all live and had values before."""
        journal, pending = self.versions.journal, self.staleness.pending
        if not (pending and journal and journal[-1] is leaves):  # else they all wait already
            pending.update(leaves.slots)
        journal.append(leaves)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def touched(self, leaf: int) -> None:
        """Note that the user declares the value of this leaf changed."""
        self.changed(leaf)

    def invalidate(self, slot: int) -> None:
        """Make a computed node run at its next read, whatever the versions of its parents are."""
        self.attend()
        self._force((slot,))

    def _forget_fleeting(self) -> None:
        """Let those nodes run again whose errors tell nothing about their parents."""
        self.attend()
        fleeting = [s for s, one in self.errors.items() if issubclass(type(one.error), FLEETING)]
        if fleeting:
            self._force(fleeting)
        self.fleeting = False  # last: an interrupt leaves it to the next read

    def unset(self, leaf: int) -> None:
        """Note that a leaf lost its value: a change like any other; reads that need it will raise."""
        self.changed(leaf)
        self.attend()
        self.staleness.put(leaf, STALE)
        self.staleness.renew()

    def reparent(self, slot: int, operands: tuple[int, ...]) -> None:
        """Replace the operands of a computed node, which becomes stale.

        Raises
        ------
        CycleError
            If the graph would get a cycle; nothing has changed then.
        """
        former = Former()
        self.relink({slot: self.rewired(slot, operands)}, former)
        self.outdate(former)
        self.commit(former)

    def link(self, slot: int) -> Link:
        """Return the present parents of ``slot``."""
        return Link(self.topology.parents[slot], self.dynamic.get(slot))

    def rewired(self, slot: int, operands: tuple[int, ...]) -> Link:
        """Return the parents that ``slot`` would have with these operands; it keeps its reads."""
        return self.link(slot).rewired(operands) if slot in self.dynamic else Link(operands)

    def relink(
        self, links: Mapping[int, Link], former: Former, *, reads_yield: bool = False
    ) -> None:
        """Give nodes other parents, all of them or none.

        Before the next read the caller must call ``outdate`` and ``commit``, or ``salted``, or
        ``restore``, which works wherever this was interrupted. Nodes that lose their last consumer stay
        until then if the caller holds them.

        Parameters
        ----------
        links
            Computed nodes with their new parents.
        former
            An empty one; the former state is noted in it.
        reads_yield
            True to drop reads that nodes made while they ran, if these would close a cycle.

        Raises
        ------
        CycleError
            If the graph would get a cycle; nothing has changed then.
        """
        self.attend()
        topology = self.topology
        while path := order.relink(topology, {slot: links[slot].parents for slot in links}, former):
            reader = self._reader(path, links)
            if reader is None or not reads_yield:
                raise self._refused_edge(path, reader)
            links = {**links, reader: Link((links.get(reader) or self.link(reader)).operands)}
        versions, dynamic = self.versions, self.dynamic
        for slot, link in links.items():
            former.rows[slot] = (
                dynamic.get(slot),
                versions.version[slot],
                versions.record[slot],
                slot in versions.forced,
                self.errors.get(slot),
                slot in self.dropped,
            )
            if link.fixed is not None:
                dynamic[slot] = link.fixed
            elif dynamic:
                dynamic.pop(slot, None)

    def _refused_edge(self, path: Sequence[int], reader: int | None) -> CycleError:
        """Return the error for a cycle; ``reader``: a node that depends on the one before by a read."""
        error = self.cycle_error(path)
        if reader is not None and self._mark[reader] in UNSETTLED:
            name = self.host.name(reader)
            error.add_note(
                f"{name!r} depends on the node before it here because its function read that one when it ran last, "
                f"and it is stale: if it does not read it any more, read {name!r} first, then edit."
            )
        return error

    def outdate(self, former: Former) -> None:
        """Make nodes that ``relink`` has changed stale, and forget all plans."""
        former.outdated = True
        record, serial = self.versions.record, self.topology.serial
        for slot, row in former.rows.items():
            seen = record[slot]
            if seen is not None:  # else it was edited before, and has not run since
                self.edited[slot] = serial[slot], row[1], former.parents[slot], seen
            record[slot] = None
        self._force(former.rows)
        self.plans.clear()

    def redefined(self, slots: Collection[int], *, reached: bool) -> None:
        """Make computed nodes run at their next read, since they compute something else now.

        Unlike after ``invalidate``, plans are found again: the caller moves to another state by ``salted``.

        Parameters
        ----------
        reached
            True if the leaves whose change is not marked yet reach all that these nodes reach.
        """
        self.versions.forced.update(slots)
        for slot in slots:
            self.staleness.put(slot, STALE)
        if not reached:
            self.staleness.push(slots)

    def _reader(self, path: Sequence[int], links: Mapping[int, Link]) -> int | None:
        """Return a node on a path that depends on the one before only by a read, ``None`` if none does."""
        for parent, slot in pairwise(path):
            if parent not in (links.get(slot) or self.link(slot)).operands:
                return slot
        return None

    def commit(self, former: Former, kind: str | None = "edit") -> None:
        """Keep the changes of ``relink``; ``kind`` is their kind for listeners."""
        left: list[int] = []
        for slot, old in former.parents.items():
            now = frozenset(self.topology.parents[slot])
            left += [parent for parent in old if parent not in now]
        if left:
            self.release(left)

    def restore(self, former: Former) -> None:
        """Undo ``relink``. Nodes that were not read since are as they were, as if never stale.

        Before ``outdate``, marks and plans are as they were, too.
        """
        self.attend()
        versions, leaf = self.versions, self.leaf
        reached = self.topology.descendants(former.rows) if former.outdated else ()
        order.restore(self.topology, former)
        for slot, (fixed, *_) in former.rows.items():
            if fixed is None:
                self.dynamic.pop(slot, None)
            else:
                self.dynamic[slot] = fixed
        if not former.outdated:
            return
        self._doubt([slot for slot in reached if not leaf[slot]])
        for slot, (_, version, record, forced, error, dropped) in former.rows.items():
            versions.forced.discard(slot)
            self.forget_failure(slot)
            if versions.version[slot] != version:  # it ran meanwhile
                self._force((slot,))
                continue
            versions.record[slot] = record
            if forced:
                versions.forced.add(slot)
            if dropped:
                self.staleness.drop(slot)
            if isinstance(error, StoredError):
                self.errors[slot] = error
        self.staleness.renew()
        self.plans.clear()

    def given(self, slot: int) -> None:
        """Note that a computed node, which has no parents any more, has a given value from now on.

        It becomes clean; the caller calls ``changed`` next.
        """
        self.versions.record[slot] = ()
        self.versions.forced.discard(slot)
        self.staleness.restore(slot)
        self.staleness.put(slot, CLEAN)

    @block
    def transaction(self, give_back: Callable[[Noted], None]) -> Generator[None]:
        """Hold the lock for the block. If it raises, give back all that was noted in it."""
        with self.lock:
            self.check_idle()
            with self.notes.transaction(give_back):
                yield

    def cutoff_changed(self, slot: int, cuts: bool) -> None:
        """Note that ``slot`` has a cutoff from now on (``cuts``), or has none any more.

        If it is stale, nodes below it run no longer for certain, or do so again.
        """
        self.attend()
        self.plans.clear()
        staleness = self.staleness
        mark, cutoffs = staleness.mark, staleness.cutoffs
        if cuts:
            cutoffs.add(slot)
        else:
            cutoffs.discard(slot)
        if mark[slot] == STALE and not cuts:
            staleness.push((slot,))
        elif mark[slot] == STALE:
            children = self.topology.children[slot]
            self._doubt(self.topology.descendants(children, lambda child: mark[child] == STALE))
        staleness.renew()

    def _doubt(self, slots: Iterable[int]) -> None:
        """Mark computed nodes ``MAYBE``, or ``STALE`` if an operand makes them run for certain."""
        mark, cutoffs = self.staleness.mark, self.staleness.cutoffs
        for slot in self.topology.sort(slots):
            operands = self.operands(slot)
            certain = any(mark[one] == STALE and one not in cutoffs for one in operands)
            self.staleness.put(slot, STALE if certain else MAYBE)
