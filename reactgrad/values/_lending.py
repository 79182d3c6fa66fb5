"""Values that callers and forks may see, and the care taken before their memory is written."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend import (
    device_of,
    own_copy,
)
from reactgrad.nodes._op import Op
from reactgrad.scheduler import Ranges
from reactgrad.values._columns import MISSING, Columns, shaped

# From so many nodes on it pays to ask first whether callers saw any of them.
MANY: Final = 16


class Lease(weakref.ref[Any]):
    """A weak reference to a value that a caller may hold, such as a view of a buffer.

    While it lives, the buffer is not written. It is weak so that the caller's last reference frees it.
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Lease | None:
        """Return a lease on ``value``, ``None`` if it cannot be referred to weakly."""
        try:
            return cls(value)
        except TypeError:
            return None


class Found(NamedTuple):
    """A value with its entries in the tables of what callers and forks see; ``None``: no entry."""

    data: Any
    handed: Any
    leases: Any
    view_of: Any
    shared: bool


class Lending(Columns):
    """Values as callers and forks see them; left to them before they are written."""

    def found(self, slot: int) -> Found:
        """Return a value with all that ``give_back`` needs to restore it after it was forgotten."""
        return Found(
            self.data[slot],
            self.handed.get(slot),
            self._leases.get(slot),
            self._view_of.get(slot),
            not self.owns(slot),
        )

    def give_back(self, slot: int, before: Found) -> None:
        """Put a value back as ``found`` saw it. Literals and steps are made anew when needed."""
        self.discard(slot)
        self.data[slot] = before.data
        for table, entry in (
            (self.handed, before.handed),
            (self._leases, before.leases),
            (self._view_of, before.view_of),
        ):
            if entry is not None:
                table[slot] = entry
        if before.shared and self._own is not None:
            self._own.discard(slot)

    def _unseen(self, slot: int, going: Set[int]) -> bool:
        """Return whether no caller, fork or view that stays may see the buffer of a computed node."""
        found = self.specs[slot]
        if found is None or type(self.ops[slot]) is not Op:
            return False
        if slot in self._view_of or (self._own is not None and slot not in self._own):
            return False
        if any(lease() is not None for lease in self._leases.get(slot, ())):
            return False
        # A view may show a view that goes: it then still shows this buffer.
        children = self.scheduler.topology.children
        reached = [slot]
        for one in reached:
            for child in children[one]:
                op = self.ops[child]
                if type(op) is Op and op.view is not None:
                    if child in self._view_of and child not in going:
                        return False
                    reached.append(child)
        return True

    def bring_back(self, slot: int) -> None:
        """Give a clean transient node its value back, if the value was packed."""
        self.transient[slot].bring_back(self, slot)
        if self.data[slot] is not MISSING:
            self.lying.add(slot)

    def hand_out(self, slot: int) -> Any:
        """Return the present value for callers: read-only, the same object until the next change."""
        handed = self.handed.get(slot, MISSING)
        if handed is not MISSING:
            if type(handed) is not Lease:
                return handed
            value = handed()
            if value is not None:
                return value
            del self.handed[slot]
        if self.data[slot] is MISSING and slot in self.transient:
            self.bring_back(slot)
        value = self.data[slot]
        found = self.specs[slot]
        if found is None or found.weak is not None or value is MISSING:
            return value
        if not found.shape:
            if found.kind == "cpu":
                value = value[0]
                self.handed[slot] = value
                return value
            value = shaped(value, found)
        # `shared`: the value is a view of the buffer, which must not be written while the view lives.
        value, shared = device_of(found.device).hand_out(value)
        if shared:
            lease = Lease(value)
            self.handed[slot] = lease
            # On the buffer's owner: the memory that must not be written may be that of an ancestor.
            root = self._root(slot)
            self._leases.setdefault(root, []).append(lease)
            if self._own is not None and root not in self._own:
                self._family.lend(lease)  # type: ignore[union-attr]
        else:
            self.handed[slot] = value
        return value

    def overwrite(self, slots: Collection[int], read: Collection[int] = ()) -> None:
        """Prepare for new values of these nodes: leave buffers to callers and forks that see them.

        Parameters
        ----------
        slots
            A set, or a single slot in a tuple.
        read
            Nodes of which ``reductions`` stay.
        """
        if self.reductions:
            for slot in common(slots, self.reductions):
                if slot not in read:
                    self.reductions[slot].forget()
                    del self.reductions[slot]
        # Walk the smaller of the two: a plan may have many nodes, of which callers saw few.
        handed = self.handed
        if handed and (len(slots) < MANY or not handed.keys().isdisjoint(slots)):
            if len(slots) <= len(handed):
                for slot in slots:
                    handed.pop(slot, None)
            else:
                for slot in [slot for slot in handed if slot in slots]:
                    del handed[slot]
        own, leases = self._own, self._leases
        if own is not None and not own.issuperset(slots) and self.is_alone():
            own.update(slots)
        if own is not None and not own.issuperset(slots):
            specs, view_of = self.specs, self._view_of
            shared = [slot for slot in slots if slot not in own]
            shown = [
                slot
                for slot in shared
                if (found := specs[slot]) is not None and found.weak is None and slot not in view_of
            ]
            self._leave(shown)
            for slot in common(shown, leases):
                del leases[slot]
            own.update(shared)
        if leases:
            for slot in common(slots, leases):
                if any(lease() is not None for lease in leases[slot]):
                    self._leave((slot,))  # a caller still holds a view of this memory
                del leases[slot]

    def overwrite_rows(
        self, slots: Collection[int], rows: Mapping[int, Ranges], read: Mapping[int, Ranges]
    ) -> None:
        """Prepare for new rows of these nodes, and for new values of all others; see ``Host``."""
        data, view_of = self.data, self._view_of
        former: list[tuple[int, Any]] = []
        if self.lent_out(slots):
            former = [(slot, data[slot]) for slot in rows if slot not in view_of]
        self.overwrite(slots, read)
        for slot, values in former:
            if data[slot] is MISSING:  # left to a caller or a fork
                found = self.specs[slot]
                assert found is not None
                buffer = self._new_memory(found)
                np.copyto(buffer, values)
                data[slot] = buffer

    def _leave(self, slots: Sequence[int]) -> None:
        """Leave the buffers of these nodes to callers or forks, so that no step writes them again.

        Steps are unbound first: an interrupt between the two must not leave a step that writes there.
        """
        data = self.data
        if self._nothing_bound() and not self.together:
            self.scheduler.moves.extend(slots)
        else:
            for slot in slots:
                self.moved(slot)
        for slot in slots:
            data[slot] = MISSING

    def lent_out(self, slots: Collection[int]) -> bool:
        """Return whether callers or forks may see the memory in which these values lie."""
        leases, own = self._leases, self._own
        if own is not None and not own.issuperset(slots):
            return True
        return bool(leases and common(slots, leases))

    def own_view(self, slot: int) -> None:
        """Give a view, and views of it, memory of their own: they must outlast the parent's next run.

        A view of the view needs it too: where its cutoff finds no change, it keeps its value.
        """
        below = [slot] if slot in self._view_of else []
        for one in below:
            children = self.scheduler.topology.children[one]
            value = self.data[one]
            below += [child for child in children if self._view_of.get(child, MISSING) is value]
        for one in reversed(below):  # from below: each still shows its parent's memory when copied
            self._own_view(one)

    def _own_view(self, slot: int) -> None:
        found = self.specs[slot]
        if slot not in self._view_of or found is None:
            return
        scheduler = self.scheduler
        value, shown = self.data[slot], self._view_of.pop(slot)
        # The memory may show something else by now: after a later run of the parent, or after a set of
        # the leaf that it belongs to, through any views between. The value is copied only if it still
        # is the value of this version; else it is computed again.
        scheduler.versions.settle()
        same = scheduler.versions.matches(slot)
        lies = shown is self.data[scheduler.topology.parents[slot][0]]
        there = same and lies and not scheduler.is_stale(slot)
        self.data[slot] = own_copy(found, value) if there else MISSING
        self.footprint.add(self.data[slot])
        self.moved(slot)
        if same and not there:
            scheduler.drop((slot,))


def common(slots: Collection[int], table: Collection[int]) -> list[int]:
    """Return the slots that are also keys of ``table``, at the cost of the smaller of the two."""
    if len(slots) <= len(table):
        return [slot for slot in slots if slot in table]
    return [slot for slot in table if slot in slots]
