"""The values of the nodes of one graph: where they lie, and who else sees them.

A value of known spec lies in a *buffer* that belongs to its node and is written in place at every
run; views lie in their parent's. Values whose spec is only known when they are there (results of
Python functions and what is built on them) are new objects at every run.

Callers never see a buffer that may change (rule E8): small values are handed out as copies, large
ones as read-only views, and a buffer that such a view still shows is left to the caller and
replaced before the next write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from reactgrad.backend import (
    own_copy,
)
from reactgrad.scheduler import (
    Blank,
    InvariantError,
    share,
)
from reactgrad.values._columns import MISSING, NEW, frozen_copy
from reactgrad.values._leaf_writes import LeafWrites
from reactgrad.values._lending import Lease
from reactgrad.values._transient import Transient


class Store(LeafWrites):
    """Definitions and values of nodes, by slot.

    Attributes
    ----------
    ops, attrs, specs
        What each node computes, and what is known of the result; the op of a leaf is ``None``,
        that of a Python function a ``Lifted``. A spec of ``None``: known when computed.
    data
        Buffers (at least one-dimensional), or any objects where the spec is ``None`` or weak.
    """

    def share_with(self, twin: Store) -> None:
        """Give a fork the same values; whoever writes first moves to memory of its own."""
        if self._own is None:  # steps write into a column that is frozen from now on
            self.scheduler.plans.unbind()
            self._steps = Blank(len(self.data), NEW)
        self.ops, twin.ops = share(self.ops)
        self.attrs, twin.attrs = share(self.attrs)
        self.specs, twin.specs = share(self.specs)
        self.data, twin.data = share(self.data)
        self._own, twin._own = set(), set()
        twin._steps = Blank(len(self.data), NEW)
        twin.cutoffs = self.cutoffs.copy()
        twin.former_cutoffs = self.former_cutoffs.copy()
        twin._view_of = self._view_of.copy()
        twin.transient.update(self.transient)
        twin.lying.update(self.lying)
        twin.away.update(self.away)

    def recomputable(self, slot: int) -> bool:
        """Whether the value of a clean node would come back the same if it was released."""
        scheduler, former = self.scheduler, self.former_cutoffs.get(slot)
        return (
            not scheduler.leaf[slot]
            # Else it is pinned, or asks the world outside.
            and bool(scheduler.topology.parents[slot])
            # A cutoff compares with the old value, however stale it is, and may have kept it.
            and slot not in self.cutoffs
            and (former is None or former != scheduler.version(slot))
        )

    def forget(self, slot: int) -> None:
        """Forget a value that will be there again; callers who hold it are handed it again."""
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
        """Forget the values of computed nodes, which are computed again when they are needed."""
        try:
            for slot in slots:
                self.forget(slot)
            self._drop(slots)
        except BaseException:  # an interrupt: what has begun to go goes
            gone = [slot for slot in slots if self.data[slot] is MISSING]
            for slot in gone:
                self.discard(slot)
                self.moved(slot)
            self._drop(gone)
            self.scheduler.staleness.doubt_all(())
            raise
        if self.policy is not None:
            self.policy.released(slots)

    def _drop(self, slots: Sequence[int]) -> None:
        self.scheduler.drop([slot for slot in slots if not self._lies_away(slot)])

    def _lies_away(self, slot: int) -> bool:
        """Whether the present value comes back from somewhere else, and need not be computed again."""
        away = self.away.get(slot)
        return away is not None and away.version == self.scheduler.version(slot)

    def reclaim(self, slots: Sequence[int]) -> None:
        """Release the values of computed nodes, and use their memory for others where nobody sees it."""
        if self.policy is not None:  # what holds no value must not take room from those that do
            self.release(slots)
            return
        going = frozenset(slots)
        alone = [self.data[slot] for slot in slots if self._unseen(slot, going)]
        self.release(slots)
        self.spares.keep(alone)

    def let_pass(self, slots: Iterable[int], how: Transient) -> None:
        """Keep the values of these nodes only while a run reads them."""
        for slot in slots:
            former = self.transient.get(slot)
            if former is not None and former is not how and slot in self.away:
                former.bring_back(self, slot)  # nobody else knows where it has put the value
                del self.away[slot]
            self.transient[slot] = how
            if self.data[slot] is not MISSING:
                self.lying.add(slot)
        self.scheduler.renew()  # a plan that was found before knows nothing of it

    @contextmanager
    def letting_pass(self, slots: Collection[int], how: Transient) -> Iterator[None]:
        """Keep the values of these nodes, which are not transient else, as ``let_pass`` does for a block.

        What runs in it follows plans of its own.
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
        """Give a clean node its value back, as a copy of `value`, which fits its spec."""
        found = self.specs[slot]
        self.data[slot] = frozen_copy(value) if found is None else own_copy(found, value)
        self.footprint.add(self.data[slot])
        self.moved(slot)

    @contextmanager
    def aside(self, slot: int) -> Iterator[None]:
        """Call code of the user for a node: it must not change the graph, nor depends it on what it reads."""
        scheduler = self.scheduler
        scheduler.computing.append(slot)
        try:
            yield
        finally:
            scheduler.computing.pop()
            scheduler.reads.pop(slot, None)
            scheduler.inner.pop(slot, None)

    def check(self) -> None:
        """Raise ``InvariantError`` if a clean node has neither a value nor is known to be released."""
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

    def close(self) -> None:
        """Let go of everything that refers back here, when the graph goes."""
        self._steps = []
        if self.policy is not None:
            self.policy.close()
        self.__dict__.pop("scheduler", None)
