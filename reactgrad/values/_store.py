"""The values of the nodes of one graph: where they lie, and who else sees them.

A value of known spec lies in a *buffer* that belongs to its node and is written in place at every
run; views lie in their parent's. Values whose spec is only known when they are there (results of
Python functions and what is built on them) are new objects at every run.

Callers never see a buffer that may change (rule E8): small values are handed out as copies, large
ones as read-only views, and a buffer that such a view still shows is left to the caller and
replaced before the next write.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend import (
    Spec,
    device_of_kind,
    own_copy,
    read_value,
    spec,
    storage_shape,
    weak_spec,
)
from reactgrad.nodes._cutoff import Cutoff
from reactgrad.nodes._leaf import CONST as CONST
from reactgrad.nodes._leaf import INPUT as INPUT
from reactgrad.nodes._leaf import PARAM as PARAM
from reactgrad.nodes._leaf import Leaf as Leaf
from reactgrad.nodes._op import Attrs, Op
from reactgrad.scheduler import (
    Blank,
    Column,
    InvariantError,
    Overlay,
    Scheduler,
    Step,
    share,
)
from reactgrad.values._footprint import FEWEST_BYTES, Footprint
from reactgrad.values._set_together import MAX_GROUPS, Together
from reactgrad.values._spare_arrays import Spares
from reactgrad.values._transient import Transient


class Lease(weakref.ref[Any]):
    """A value that a caller may hold, such as a view of a buffer; weak, so that the last look at it frees it."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Lease | None:
        """A lease on `value`; ``None`` for objects that cannot be referred to weakly."""
        try:
            return cls(value)
        except TypeError:
            return None


MISSING = object()  # the place of a value that was never computed, or was released
UNBOUND = object()  # the place of the step of a node that has to be bound again
NEW = object()  # that of a node that never was: nobody knows where its value or its operands' lie


class Literal(NamedTuple):
    """How a kernel takes a Python number."""

    dtype: Any
    elementwise: bool
    kind: str


_FLOATS = (float, np.float64)
_FLOAT64 = np.dtype(np.float64)
_FLOAT_SPEC = spec((), _FLOAT64)
# Values that are put in the place of one of their kind as they are, with the spec of such a leaf.
_PLAIN = {int: weak_spec(int), float: weak_spec(float), str: None}


class Found(NamedTuple):
    """A value with all that is known of who sees it; ``None``: no entry."""

    data: Any
    handed: Any
    leases: Any
    view_of: Any
    shared: bool


class Store:
    """Definitions and values of nodes, by slot.

    Attributes
    ----------
    ops, attrs, specs
        What each node computes, and what is known of the result; the op of a leaf is ``None``,
        that of a Python function a ``Lifted``. A spec of ``None``: known when computed.
    data
        Buffers (at least one-dimensional), or any objects where the spec is ``None`` or weak.
    """

    def __init__(self) -> None:
        self.scheduler: Scheduler
        self.ops: Column[Any] = []
        self.attrs: Column[Attrs] = []
        self.specs: Column[Spec | None] = []
        self.data: Column[Any] = []
        self.cutoffs: dict[int, Cutoff] = {}
        # Versions at which nodes lost their cutoff: it may have kept values that no run gives again.
        self.former_cutoffs: dict[int, int] = {}
        self.handed: dict[int, Any] = {}  # what callers were given of the present value, or a lease
        self._leases: dict[int, list[Callable[[], Any]]] = {}
        self._view_of: dict[int, Any] = {}  # the parent's buffer that a view was taken of
        # In a graph that was forked: slots whose memory only this store looks at.
        self._own: set[int] | None = None
        self.footprint = Footprint()
        self.spares = Spares(self.footprint)
        # Bound, until storage they use moves; ``None`` for views, else ``UNBOUND`` or ``NEW``.
        self._steps: Column[Any] = []
        self.patterns: dict[int, Spec] = {}  # what was declared for inputs
        # Python numbers as kernels take them; for a float64 always the same array, see ``_stays``.
        self._literals: dict[int, dict[Literal, Any]] = {}
        # Nodes whose values stay only while a run reads them; those whose values are there; what
        # became of the values of others.
        self.transient: dict[int, Transient] = {}
        self.lying: set[int] = set()
        self.away: dict[int, Any] = {}
        self.refused: set[int] = set()  # nodes whose values could not be put away
        # The first error that let one stay which the run under way has computed or read.
        self.refusal: Exception | None = None
        self.together: dict[
            int, Together
        ] = {}  # leaves that were set together, by the first handle

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

    def extend(self, rows: int) -> None:
        """Add rows, each with what a new node has that is not told otherwise."""
        self.ops.extend([None] * rows)
        self.attrs.extend([()] * rows)
        self.specs.extend([None] * rows)
        self.data.extend([MISSING] * rows)
        self._steps.extend([NEW] * rows)

    def remove(self, slot: int) -> None:
        """Clear the row of a node that is gone."""
        self.ops[slot] = None
        self.attrs[slot] = ()
        self.specs[slot] = None
        self.discard(slot)
        self._steps[slot] = NEW
        self.cutoffs.pop(slot, None)
        self.former_cutoffs.pop(slot, None)
        if self.transient.pop(slot, None) is not None:
            self.lying.discard(slot)
            self.away.pop(slot, None)
            self.refused.discard(slot)

    def discard(self, slot: int) -> None:
        """Forget a value; callers keep what they were given."""
        if self.together:
            self.part(slot)
        self.data[slot] = MISSING
        self.handed.pop(slot, None)
        self._leases.pop(slot, None)
        self._view_of.pop(slot, None)
        self._steps[slot] = UNBOUND
        if self._own is not None:
            self._own.add(slot)
        self._forget_literals(slot)

    def found(self, slot: int) -> Found:
        """A value with all that ``give_back`` needs when it was forgotten."""
        return Found(
            self.data[slot],
            self.handed.get(slot),
            self._leases.get(slot),
            self._view_of.get(slot),
            not self.owns(slot),
        )

    def give_back(self, slot: int, before: Found) -> None:
        """Put a value back where it was; literals and steps are made anew when they are needed."""
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

    def bound(self, slot: int) -> tuple[Step | None, list[Any]]:
        """The step of a node, and where the values lie that it reads."""
        parents = self.scheduler.topology.parents[slot]
        return self._steps[slot], [self.data[parent] for parent in parents]

    def bind_again(self, slot: int, bound: tuple[Step | None, list[Any]]) -> None:
        """Let a node have a step again if what it reads lies where it lay then."""
        step, read = bound
        data, parents = self.data, self.scheduler.topology.parents[slot]
        if step is not NEW and all(data[at] is one for at, one in zip(parents, read, strict=True)):
            self._steps[slot] = step

    # --- values that go and come back --------------------------------------------------------

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

    def _drop(self, slots: Sequence[int]) -> None:
        self.scheduler.drop([slot for slot in slots if not self._lies_away(slot)])

    def _lies_away(self, slot: int) -> bool:
        """Whether the present value comes back from somewhere else, and need not be computed again."""
        away = self.away.get(slot)
        return away is not None and away.version == self.scheduler.version(slot)

    def reclaim(self, slots: Sequence[int]) -> None:
        """Release the values of computed nodes, and use their memory for others where nobody sees it."""
        going = frozenset(slots)
        alone = [self.data[slot] for slot in slots if self._unseen(slot, going)]
        self.release(slots)
        self.spares.keep(alone)

    def _unseen(self, slot: int, going: Set[int]) -> bool:
        """Whether no caller, fork or view that stays may see the buffer of a computed node."""
        found = self.specs[slot]
        if found is None or found.kind != "cpu" or type(self.ops[slot]) is not Op:
            return False
        if slot in self._view_of or (self._own is not None and slot not in self._own):
            return False
        if any(lease() is not None for lease in self._leases.get(slot, ())):
            return False
        # A view of a view stays when that goes.
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

    def bring_back(self, slot: int) -> None:
        """Give a clean transient node its value back, if it lies somewhere else."""
        self.transient[slot].bring_back(self, slot)
        if self.data[slot] is not MISSING:
            self.lying.add(slot)

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

    def close(self) -> None:
        """Let go of everything that refers back here, when the graph goes."""
        self._steps = []
        self.__dict__.pop("scheduler", None)

    # --- what callers see --------------------------------------------------------------------

    def hand_out(self, slot: int) -> Any:
        """The present value for callers: read-only, the same object until the next change."""
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
        value, shared = device_of_kind(found.kind).hand_out(value)
        if shared:
            lease = Lease(value)
            self.handed[slot] = lease
            self._leases.setdefault(self._root(slot), []).append(lease)
        else:
            self.handed[slot] = value
        return value

    def overwrite(self, slots: Collection[int]) -> None:
        """The values of these nodes are about to be replaced.

        Parameters
        ----------
        slots
            A set, or a single slot in a tuple.
        """
        handed = self.handed
        if handed:
            if len(slots) <= len(handed):
                for slot in slots:
                    handed.pop(slot, None)
            else:
                for slot in [slot for slot in handed if slot in slots]:
                    del handed[slot]
        own, leases = self._own, self._leases
        if own is not None and not own.issuperset(slots):
            specs, view_of = self.specs, self._view_of
            shared = [slot for slot in slots if slot not in own]
            shown = [
                slot
                for slot in shared
                if (found := specs[slot]) is not None and found.weak is None and slot not in view_of
            ]
            self._leave(shown)
            for slot in _common(shown, leases):
                del leases[slot]
            own.update(shared)
        if leases:
            for slot in _common(slots, leases):
                if any(lease() is not None for lease in leases[slot]):
                    self._leave((slot,))  # someone still looks at this memory
                del leases[slot]

    def _leave(self, slots: Sequence[int]) -> None:
        """Leave the memory of values to others; in this order, lest an interrupt lets a step write it."""
        data = self.data
        if self._nothing_bound() and not self.together:
            self.scheduler.moves.extend(slots)
        else:
            for slot in slots:
                self.moved(slot)
        for slot in slots:
            data[slot] = MISSING

    def _nothing_bound(self) -> bool:
        """Whether no step was bound since this graph was forked."""
        steps = self._steps
        return isinstance(steps, Overlay) and not steps.written

    def _root(self, slot: int) -> int:
        """The node in whose buffer the value of `slot` lies."""
        parents = self.scheduler.topology.parents
        while slot in self._view_of:
            slot = parents[slot][0]
        return slot

    # --- leaves --------------------------------------------------------------------------------

    def remember(self, handles: Mapping[Any, Any], slots: Sequence[int]) -> None:
        """Expect these leaves, which were just set plainly, to be set together again.

        Leaves whose values are Python numbers have no memory to copy into; they are set one by one.
        """
        if any(isinstance(handle, str) for handle in handles) or len(set(slots)) < len(slots):
            return
        if any(type(self.data[slot]) is not np.ndarray for slot in slots):
            return
        if len(self.together) >= MAX_GROUPS:
            self.together.clear()
        self.together[id(next(iter(handles)))] = Together(self, handles, slots)

    def part(self, slot: int) -> None:
        """This leaf is not any more what it was when it was set together with others."""
        together = self.together
        for first in [first for first, one in together.items() if slot in one.members]:
            del together[first]

    def lent_out(self, slots: Collection[int]) -> bool:
        """Whether callers or forks may see the memory in which these values lie."""
        leases, own = self._leases, self._own
        if own is not None and not own.issuperset(slots):
            return True
        return bool(leases and _common(slots, leases))

    def owns(self, slot: int) -> bool:
        """Whether no fork may look at the memory of a value."""
        return self._own is None or slot in self._own

    @staticmethod
    def _fits(buffer: Any, found: Spec) -> bool:
        """Whether a value of this spec can be copied into `buffer`."""
        if found.kind == "cpu":
            return (
                type(buffer) is np.ndarray
                and buffer.shape == storage_shape(found)
                and buffer.dtype == found.dtype
            )
        seen = None if buffer is MISSING else read_value(buffer, "a buffer")[0]
        return (
            seen is not None
            and seen.kind == found.kind
            and seen.shape == storage_shape(found)
            and seen.dtype == found.dtype
        )

    def own_view(self, slot: int) -> None:
        """Give a view memory of its own: its value must outlast its parent's next run.

        The same to views of it: where its cutoff lets them be, they stay as they are.
        """
        below = [slot] if slot in self._view_of else []
        for one in below:
            children = self.scheduler.topology.children[one]
            value = self.data[one]
            below += [child for child in children if self._view_of.get(child, MISSING) is value]
        for one in reversed(below):
            self._own_view(one)

    def _own_view(self, slot: int) -> None:
        found = self.specs[slot]
        if slot not in self._view_of or found is None:
            return
        scheduler = self.scheduler
        value, shown = self.data[slot], self._view_of.pop(slot)
        # That memory shows something else after a later run of its parent, and as soon as a leaf was set
        # whose memory it is, over whatever views between.
        scheduler.versions.settle()
        same = scheduler.versions.matches(slot)
        lies = shown is self.data[scheduler.topology.parents[slot][0]]
        there = same and lies and not scheduler.is_stale(slot)
        self.data[slot] = own_copy(found, value) if there else MISSING
        self.footprint.add(self.data[slot])
        self.moved(slot)
        if same and not there:
            scheduler.drop((slot,))

    def plain_writes(self, slots: Sequence[int], values: Iterable[Any]) -> bool:
        """Whether all of these are ``plain_write``; that is asked only of those that are not arrays both."""
        data, specs, ops, cutoffs = self.data, self.specs, self.ops, self.cutoffs
        for slot, value in zip(slots, values):
            if type(value) is np.ndarray is type(data[slot]):
                found, op = specs[slot], ops[slot]
                if (
                    found is None
                    or value.dtype is not found.dtype
                    or value.shape != found.shape
                    or (op is not INPUT and op is not PARAM)
                    or slot in cutoffs
                ):
                    return False
            elif not self.plain_write(slot, value):
                return False
        return True

    def plain_write(self, slot: int, value: Any) -> bool:
        """Whether `value` only has to be copied into the buffer of this leaf, or put in its place."""
        buffer = self.data[slot]
        op = self.ops[slot]
        if (op is not INPUT and op is not PARAM) or slot in self.cutoffs:
            return False
        found = self.specs[slot]
        if found is None or type(buffer) is not np.ndarray:
            kind = type(value)
            return (
                kind is type(buffer)
                and kind in _PLAIN
                and found is _PLAIN[kind]
                and slot not in self.patterns
            )
        if type(value) is np.ndarray:
            return value.shape == found.shape and value.dtype is found.dtype  # type: ignore[union-attr]
        return type(value) in _FLOATS and found is _FLOAT_SPEC

    def write_plainly(self, slot: int, value: Any) -> None:
        """Replace the value of a leaf by one that is ``plain_write``."""
        buffer = self.data[slot]
        if type(buffer) is np.ndarray:
            self.overwrite((slot,))
            buffer = self.data[slot]
        if type(buffer) is np.ndarray:
            buffer[...] = value
        elif buffer is MISSING:  # a caller still looks at the former one
            self.write_leaf(slot, self.specs[slot], value, adopt=False)
        else:  # a number has no memory that somebody could look at
            self.handed.pop(slot, None)
            self.data[slot] = value
            if slot in self._literals:
                self._renumber(slot, buffer, value)

    def recover(self, slot: int, former: Any) -> None:
        """A plain write of a leaf was interrupted: it has its new value, or its former one.

        In memory of its own: who holds the other keeps it as it is.
        """
        self.handed.pop(slot, None)
        self._literals.pop(slot, None)
        self._leases.pop(slot, None)
        found, value = self.specs[slot], self.data[slot]
        if value is MISSING:
            value = former
        self.data[slot] = value if found is None or found.weak is not None else value.copy()
        self.moved(slot)

    def write_leaf(self, slot: int, found: Spec | None, value: Any, *, adopt: bool) -> None:
        """Replace the value of a leaf by a copy of `value`, or by `value` itself."""
        self.overwrite((slot,))
        buffer = self.data[slot]
        if found is None or found.weak is not None:
            self.data[slot] = value
            if found is self.specs[slot]:
                self._renumber(slot, buffer, value)
                return
        elif adopt and self.adopt(slot, found, value):
            self._forget_literals(slot)
            return
        elif self._fits(buffer, found):
            device_of_kind(found.kind).assign(buffer, value)
            return
        else:
            self.data[slot] = own_copy(found, value)
        self.footprint.add(self.data[slot])
        self._forget_literals(slot)
        self.specs[slot] = found
        self.moved(slot)

    def adopt(self, slot: int, found: Spec, value: Any) -> bool:
        """Let the array that was given be the memory of a leaf; ``False``: it has to be copied."""
        if found.kind != "cpu" or type(value) is not np.ndarray or value.dtype != found.dtype:
            return False
        flags = value.flags
        if not (flags.c_contiguous and flags.owndata and flags.aligned):
            return False
        value.setflags(write=False)
        buffer = self.data[slot] = value.reshape(found.storage)
        self.handed.pop(slot, None)
        if self._own is not None:
            self._own.add(slot)
        # It stays its giver's: never written, left to them at the next set.
        self._leases[slot] = [_always_held]
        if found is not self.specs[slot]:
            self.specs[slot] = found
        self.footprint.add(buffer)
        self.moved(slot)
        return True

    # --- memory, and numbers as kernels take them ----------------------------------------------------

    def moved(self, slot: int) -> None:
        """The value of `slot` lives elsewhere now, or is computed otherwise: bind anew."""
        if self.together:
            self.part(slot)
        if not self._nothing_bound():
            steps = self._steps
            steps[slot] = UNBOUND
            # Copied: another thread of the run may add a child.
            for child in [*self.scheduler.topology.children[slot]]:
                steps[child] = UNBOUND
        self.scheduler.moved(slot)

    def unbind(self) -> None:
        """All nodes are to be bound anew: their kernels may be others."""
        steps = self._steps
        for slot in [slot for slot, step in enumerate(steps) if step is not NEW]:
            steps[slot] = UNBOUND

    def view_in(self, slot: int, buffer: Any) -> Any:
        """The value of a node as a view of its operand's that lies there, if its layout allows one."""
        op, found = self.ops[slot], self.specs[slot]
        operand = self.specs[self.scheduler.topology.parents[slot][0]]
        assert found is not None
        if operand is None or operand.weak is not None:
            return None
        view = op.view(shaped(buffer, operand), *self.attrs[slot])
        return view if view is None or found.shape else view.reshape(1)

    def _new_memory(self, found: Spec) -> Any:
        """An array for values of this spec, which nobody sees."""
        buffer = self.spares.take(found) if self.spares.bytes else None
        if buffer is None:
            buffer = device_of_kind(found.kind).empty(found.storage, found.dtype)
            if getattr(buffer, "nbytes", 0) >= FEWEST_BYTES:  # not all libraries tell
                self.footprint.add(buffer)
        return buffer

    def _renumber(self, slot: int, old: Any, new: Any) -> None:
        """A leaf holds another Python number (or object): steps look it up, or have its array."""
        known = self._literals.get(slot)
        if not known:
            return
        for key, array in list(known.items()):
            if stays(old, key.dtype, key.kind):
                if type(new) is float:
                    array[...] = new
                    continue
                self.moved(slot)  # for steps that have the array
            del known[key]

    def _forget_literals(self, slot: int) -> None:
        if self._literals.pop(slot, None):
            self.moved(slot)  # steps may have them


def _always_held() -> bool:
    """The lease of an array that was adopted."""
    return True


def _common(slots: Collection[int], table: Collection[int]) -> list[int]:
    """The slots that are also keys of `table`, at the cost of the smaller of the two."""
    if len(slots) <= len(table):
        return [slot for slot in slots if slot in table]
    return [slot for slot in table if slot in slots]


def stays(number: Any, dtype: Any, kind: str) -> bool:
    """Whether a leaf's literal is one array that is written in place: no float is refused by it."""
    return type(number) is float and dtype is _FLOAT64 and kind == "cpu"


def shaped(buffer: Any, found: Spec) -> Any:
    """A buffer in the shape of the value."""
    if found.shape or found.weak is not None:
        return buffer
    return (
        buffer.reshape(())
        if found.kind == "cpu"
        else device_of_kind(found.kind).reshape(buffer, ())
    )


def frozen_copy(array: Any) -> Any:
    """A read-only copy that nobody can make writable."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy.view()
