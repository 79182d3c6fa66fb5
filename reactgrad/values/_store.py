"""The values of one graph: sharing with forks, release, and transient values.

A value of known spec lies in a *buffer* that belongs to its node and is written in place at every
run. A view lies in the buffer of its parent. A value whose spec is known only once it is computed
(a result of a Python function, and what is built on it) is a new object at every run.

Callers never see a buffer that may change (rule E8). Small values are handed out as copies, large
ones as read-only views. While a caller holds such a view, its buffer is not written again: it is left
to the caller, and the node gets another one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad.backend import Binder, own_copy
from reactgrad.scheduler import (
    CLEAN,
    STALE,
    Blank,
    InvariantError,
    block,
)
from reactgrad.values._columns import MISSING, NEW, Family, Lent, frozen_copy
from reactgrad.values._leaf_writes import LeafWrites
from reactgrad.values._lending import Lease
from reactgrad.values._transient import Transient

# The calls of so many plans are kept for forks, when the first fork unbinds them.
MOST_LENT = 8


class Store(LeafWrites):
    """Definitions and values of nodes, by slot.

    Attributes
    ----------
    ops, attrs, specs
        The definition of each node, and the spec of its value. The op of a Python function is a
        ``Lifted``. A spec of ``None`` is known only once the value is computed.
    data
        Buffers (at least one-dimensional); any objects for a spec that is ``None`` or weak.
    """

    def share_with(self, twin: Store) -> None:
        """Share all values with a fork. The graph that writes a value first moves it to other memory."""
        if self._own is None:  # bound steps write into `data` directly, which is frozen from now on
            if self.policy is None:
                self.lent_calls = self._calls_to_lend()
            self.scheduler.plans.unbind()
            self._steps = Blank(len(self.data), NEW)
        self.lend(twin)
        if self._family is None:
            self._family = Family()
        twin._family = self._family
        # From now on others have the memory of which callers were given views, and may outlive this graph.
        for leases in self._leases.values():
            for lease in leases:
                self._family.lend(lease)
        # Neither side owns memory now: the first write of a value moves it, and then it is owned.
        self._own, twin._own = set(), set()

    def _calls_to_lend(self) -> dict[tuple[int, ...], Lent] | None:
        """Return the calls of the last plans, which the first fork unbinds, for forks; see ``_inherited``."""
        data, parents = self.data, self.scheduler.topology.parents
        found: dict[tuple[int, ...], Lent] = {}
        for plan in self.scheduler.plans.bound(MOST_LENT):
            values = {at: data[at] for at in (*plan.slots, *plan.sources(parents))}
            lent = Lent(plan.fused, plan.call_slots, plan.step_slots, values)
            if lent.is_small():
                found[plan.slots] = lent
        return found or None

    def recomputable(self, slot: int) -> bool:
        """Return whether the value of a clean node would come back the same after a release."""
        scheduler, former = self.scheduler, self.former_cutoffs.get(slot)
        return (
            not scheduler.leaf[slot]
            # Without parents it is pinned, or its function reads something outside of the graph.
            and bool(scheduler.topology.parents[slot])
            # A cutoff compares with the old value, however stale it is, and may have kept it.
            and slot not in self.cutoffs
            and (former is None or former != scheduler.version(slot))
        )

    def forget(self, slot: int) -> None:
        """Drop a value that will be there again; callers who hold it will be handed it again."""
        handed = self.handed.get(slot)
        if handed is None and self.specs[slot] is None:
            handed = self.data[slot]
        self.discard(slot)
        if handed is not None and not isinstance(handed, np.generic | Lease):
            handed = Lease.of(handed)
        if handed is not None:
            self.handed[slot] = handed
        self.moved(slot)

    def release(self, slots: Sequence[int]) -> None:
        """Drop the values of computed nodes, which are computed again when needed."""
        try:
            for slot in slots:
                self.forget(slot)
            self._drop(slots)
        except BaseException:  # an interrupt: whatever was dropped in part is dropped as a whole
            gone = [slot for slot in slots if self.data[slot] is MISSING]
            for slot in gone:
                self.discard(slot)
                self.moved(slot)
            self._drop(gone)
            # Marks may be wrong after an interrupt: versions decide.
            self.scheduler.staleness.doubt_all(())
            raise
        if self.policy is not None:
            self.policy.released(slots)

    def _drop(self, slots: Sequence[int]) -> None:
        self.scheduler.drop([slot for slot in slots if not self._lies_away(slot)])

    def _lies_away(self, slot: int) -> bool:
        """Return whether the present value was packed, so that it need not be computed again."""
        away = self.away.get(slot)
        return away is not None and away.version == self.scheduler.version(slot)

    def reclaim(self, slots: Sequence[int]) -> None:
        """Drop the values of computed nodes, and keep their memory for others if no caller sees it."""
        if self.policy is not None:  # spare arrays would take room from values
            self.release(slots)
            return
        going = frozenset(slots)
        # Before the release, which forgets leases and views.
        alone: list[Any] = [
            (self.specs[slot], self.data[slot]) for slot in slots if self._unseen(slot, going)
        ]
        self.release(slots)
        self.spares.keep(alone)

    def let_pass(self, slots: Iterable[int], how: Transient) -> None:
        """Keep the values of these nodes only while a run reads them."""
        for slot in slots:
            former = self.transient.get(slot)
            if former is not None and former is not how and slot in self.away:
                former.bring_back(self, slot)  # only `former` knows how to unpack the value
                del self.away[slot]
            self.transient[slot] = how
            if self.data[slot] is not MISSING:
                self.lying.add(slot)
        self.scheduler.renew()  # plans found before do not drop these values

    @block
    def letting_pass(self, slots: Collection[int], how: Transient) -> Iterator[None]:
        """Do for a block what ``let_pass`` does; these nodes must not be transient before.

        Runs in the block have plans of their own.
        """
        data, lying = self.data, self.lying
        self.transient.update(dict.fromkeys(slots, how))
        lying.update([slot for slot in slots if data[slot] is not MISSING])
        self.spares.begin()
        try:
            with self.scheduler.apart():
                yield
        finally:
            self.spares.end()
            lying.difference_update(slots)
            for slot in slots:
                self.transient.pop(slot, None)

    def restore(self, slot: int, value: Any) -> None:
        """Give a clean node its value back, as a copy of ``value``, which fits its spec."""
        found = self.specs[slot]
        self.data[slot] = frozen_copy(value) if found is None else own_copy(found, value)
        self.footprint.add(self.data[slot])
        self.moved(slot)

    @block
    def aside(self, slot: int) -> Iterator[None]:
        """Return a block for user code that runs for a node.

        The code must not change the graph, and the node does not depend on what it reads.
        """
        scheduler = self.scheduler
        scheduler.computing.append(slot)
        try:
            yield
        finally:
            scheduler.computing.pop()
            scheduler.reads.pop(slot, None)
            scheduler.inner.pop(slot, None)

    def distrust(self) -> None:
        """Bind all steps anew, and see which nodes have a value: a stray error may have come anywhere."""
        scheduler = self.scheduler
        self.together.clear()
        self._literals.clear()
        self.unbind()
        staleness = scheduler.staleness
        for slot in scheduler.topology.slots():
            there = self.data[slot] is not MISSING
            if scheduler.leaf[slot]:
                staleness.put(slot, CLEAN if there else STALE)
            elif slot in scheduler.dropped:
                if there:
                    self.discard(slot)
            elif not there and slot not in self.away and scheduler.versions.version[slot]:
                staleness.drop(slot)
        if self.policy is not None:
            self.policy.recovered()

    def check(self) -> None:
        """Raise ``InvariantError`` if a clean node has no value and is not known to be released."""
        scheduler = self.scheduler
        if not all(together.check(self) for together in self.together.values()):
            raise InvariantError(
                "leaves that were set together lie elsewhere now. This is a bug in reactgrad; please "
                "report it."
            )
        for slot in scheduler.topology.slots():
            missing = (
                self.data[slot] is MISSING and not scheduler.leaf[slot] and slot not in self.away
            )
            clean = not scheduler.staleness.mark[slot]
            if clean and missing != (slot in scheduler.dropped):
                raise InvariantError(
                    f"slot {slot} is clean, and {'has no' if missing else 'was released and has a'} "
                    "value. This is a bug in reactgrad; please report it."
                )
        if self.policy is not None:
            self.policy.check()

    def compared(self, slot: int, op: str, binder: Binder) -> Binder:
        """Return the binder of a node of one whole number, whose steps tell if the number leaves its dtype."""
        from reactgrad.values._whole_numbers import compared  # imported late: few nodes are that

        return compared(op, binder, partial(self.wrapped, slot))

    @abstractmethod
    def wrapped(self, slot: int, dtype: Any) -> None:
        """Tell the user that a whole number has left its dtype; by the rows, which know the node's line."""

    def close(self) -> None:
        """Drop all references back to this object, so that it is freed with the graph."""
        self._steps = []
        if self.policy is not None:
            self.policy.close()
        self.__dict__.pop("scheduler", None)
