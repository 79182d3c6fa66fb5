"""The columns in which definitions and values of nodes stand, and the memory that these lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reactgrad.backend import (
    Spec,
    device_of_kind,
)
from reactgrad.nodes._cutoff import Cutoff
from reactgrad.nodes._op import Attrs
from reactgrad.scheduler import (
    Column,
    Overlay,
    Scheduler,
    Step,
)
from reactgrad.values._footprint import FEWEST_BYTES, Footprint
from reactgrad.values._set_together import Together
from reactgrad.values._spare_arrays import Spares
from reactgrad.values._transient import Transient

if TYPE_CHECKING:
    from reactgrad.values._policy import Policy

MISSING = object()  # the place of a value that was never computed, or was released

UNBOUND = object()  # the place of the step of a node that has to be bound again

NEW = object()  # that of a node that never was: nobody knows where its value or its operands' lie


class Literal(NamedTuple):
    """How a kernel takes a Python number."""

    dtype: Any
    elementwise: bool
    kind: str


_FLOAT64 = np.dtype(np.float64)


class Columns:
    """The columns and tables of values; knows where they lie, not who sees them."""

    policy: Policy | None = None  # which values stay, where memory has a limit

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
        if self.policy is not None:
            self.policy.removed(slot)

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
        if self.policy is not None:
            self.policy.stored(slot)

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

    def part(self, slot: int) -> None:
        """This leaf is not any more what it was when it was set together with others."""
        together = self.together
        for first in [first for first, one in together.items() if slot in one.members]:
            del together[first]

    def owns(self, slot: int) -> bool:
        """Whether no fork may look at the memory of a value."""
        return self._own is None or slot in self._own

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
        if self.policy is not None:
            self.policy.moved(slot)

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
