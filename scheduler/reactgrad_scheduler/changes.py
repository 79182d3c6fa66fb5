"""Changes of leaves and of edges: what becomes stale, what is refused, what is taken back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from reactgrad_scheduler import order
from reactgrad_scheduler.edit import Former, Link, Noted
from reactgrad_scheduler.errors import CycleError
from reactgrad_scheduler.failure import StoredError
from reactgrad_scheduler.staleness import CLEAN, MAYBE, STALE, UNSETTLED
from reactgrad_scheduler.versions import JOURNAL_LIMIT, Leaves

if TYPE_CHECKING:
    pass
from reactgrad_scheduler.reads import Reads


class Changes(Reads):
    """Changes of leaves and of edges, and how they are taken back."""

    def changed(self, leaf: int) -> None:
        """The value of this leaf was replaced."""
        journal, staleness = self.versions.journal, self.staleness
        staleness.pending[leaf] = None  # first: whatever interrupts this, no version moves unseen
        self._journaled[leaf] = 1
        journal.append(leaf)
        if staleness.mark[leaf]:
            self._valued(leaf)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def changed_together(self, leaves: tuple[int, ...]) -> None:
        """The values of these leaves were replaced."""
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
        """A leaf has a value that had none."""
        self.staleness.put(leaf, CLEAN)
        self.forget_failure(leaf)

    def changed_again(self, leaves: Leaves) -> None:
        """As ``changed``, of leaves with values of which it was told before, all of them alive."""
        journal = self.versions.journal
        self.staleness.pending.update(leaves.slots)
        journal.append(leaves)
        if len(journal) > JOURNAL_LIMIT:
            self.versions.settle()

    def touched(self, leaf: int) -> None:
        """Someone says that the value of this leaf changed."""
        self.changed(leaf)

    def invalidate(self, slot: int) -> None:
        """Make a computed node run again at its next read, whatever its parents' versions say."""
        self.attend()
        self._force((slot,))

    def unset(self, leaf: int) -> None:
        """A leaf lost its value: a change like any other, and reads that need it raise."""
        self.changed(leaf)
        self.attend()
        self.staleness.put(leaf, STALE)
        self.staleness.renew()

    def reparent(self, slot: int, operands: tuple[int, ...]) -> None:
        """Replace the operands of a computed node; it becomes stale.

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
        """What `slot` is computed from."""
        return Link(self.topology.parents[slot], self.dynamic.get(slot))

    def rewired(self, slot: int, operands: tuple[int, ...]) -> Link:
        """What `slot` is computed from if these are its operands; it keeps what it has read."""
        return self.link(slot).rewired(operands) if slot in self.dynamic else Link(operands)

    def relink(
        self, links: Mapping[int, Link], former: Former, *, reads_yield: bool = False
    ) -> None:
        """Let nodes be computed from others, all of them or none.

        Before anything is read follow either ``outdate`` and ``commit``, or ``salted``, or ``restore``, which
        may be called wherever this was interrupted. Nodes that lose their last consumer stay until then, if
        the caller holds them.

        Parameters
        ----------
        links
            Computed nodes with their new parents.
        former
            Takes in how they were; an empty one.
        reads_yield
            Whether reads that stand in the way, which nodes made while they ran, are forgotten.

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
        """The error for a cycle; `reader`: a node on it that depends on the one before by what it read."""
        error = self.cycle_error(path)
        if reader is not None and self._mark[reader] in UNSETTLED:
            name = self.host.name(reader)
            error.add_note(
                f"{name!r} depends on the node before it here because its function read that one when it ran last, "
                f"and it is stale: if it does not read it any more, read {name!r} first, then edit."
            )
        return error

    def outdate(self, former: Former) -> None:
        """Nodes that ``relink`` has changed become stale, and plans are found anew."""
        former.outdated = True
        for slot in former.rows:
            self.versions.record[slot] = None
        self._force(former.rows)
        self.plans.clear()

    def _reader(self, path: Sequence[int], links: Mapping[int, Link]) -> int | None:
        """A node on a path that has the one before only because it read it."""
        for parent, slot in pairwise(path):
            if parent not in (links.get(slot) or self.link(slot)).operands:
                return slot
        return None

    def commit(self, former: Former, kind: str | None = "edit") -> None:
        """What ``relink`` has changed stays; `kind` says to listeners what it was."""
        parents = self.topology.parents
        left = [p for slot, old in former.parents.items() for p in old if p not in parents[slot]]
        if left:
            self.release(left)

    def restore(self, former: Former) -> None:
        """Take ``relink`` back; what was not read since is as it was, and was never stale.

        Before ``outdate`` also marks and plans are.
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
        """The value of a computed node, which has no parents any more, is given from now on.

        It is clean; ``changed`` follows.
        """
        self.versions.record[slot] = ()
        self.versions.forced.discard(slot)
        self.staleness.restore(slot)
        self.staleness.put(slot, CLEAN)

    @contextmanager
    def transaction(self, give_back: Callable[[Noted], None]) -> Generator[None]:
        """Hold the lock for the block; if it raises, give back what was noted in it."""
        with self.lock:
            self.check_idle()
            with self.notes.transaction(give_back):
                yield

    def cutoff_changed(self, slot: int, cuts: bool) -> None:
        """A recomputed `slot` may be called unchanged from now on, or may not any more.

        If it is stale, what is below it is not certain any more to run, or certain again.
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
        """Let versions decide on computed nodes, unless an operand makes sure that they run."""
        mark, cutoffs = self.staleness.mark, self.staleness.cutoffs
        for slot in self.topology.sort(slots):
            operands = self.operands(slot)
            certain = any(mark[one] == STALE and one not in cutoffs for one in operands)
            self.staleness.put(slot, STALE if certain else MAYBE)
