"""The columns of definitions and values of nodes, and the memory in which values lie."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from sys import getrefcount
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reactgrad._errors import ReactgradError
from reactgrad.backend import (
    Spec,
    device_of,
    on,
)
from reactgrad.nodes._cutoff import Cutoff
from reactgrad.nodes._op import Attrs, Op
from reactgrad.scheduler import (
    Column,
    Overlay,
    Scheduler,
    Step,
    safe_repr,
)
from reactgrad.values._facts import Facts, column, table
from reactgrad.values._footprint import FEWEST_BYTES, Footprint
from reactgrad.values._set_together import Together
from reactgrad.values._spare_arrays import Spares
from reactgrad.values._transient import Transient

if TYPE_CHECKING:
    from reactgrad.values._policy import Policy

MISSING = object()  # in place of a value that was never computed, or was released

UNBOUND = object()  # in place of a step that must be bound again

# In place of a step that was never bound: no other step refers to memory of its node.
NEW = object()


class Literal(NamedTuple):
    """The form in which a kernel takes a Python number."""

    dtype: Any
    elementwise: bool
    device: str


class Family:
    """Graphs that may share memory: a graph, its forks, and theirs.

    Attributes
    ----------
    lent
        Weak references to what callers were given of memory that several of them have, by identity. A caller may keep
        it longer than the graph lives that gave it.
    """

    __slots__ = ("_room", "lent")

    def __init__(self) -> None:
        self.lent: dict[int, Callable[[], Any]] = {}
        self._room = 64  # so many, before those that are dead are dropped

    def lend(self, lease: Callable[[], Any]) -> None:
        """Note what a caller was given."""
        if len(self.lent) >= self._room:
            self.is_lent()
            self._room = 64 + 2 * len(self.lent)  # so the cost stays proportional to the number
        self.lent[id(lease)] = lease

    def is_lent(self) -> bool:
        """Return whether a caller still has something of it."""
        if self.lent:
            self.lent = {at: one for at, one in self.lent.items() if one() is not None}
        return bool(self.lent)


def _references(holder: SimpleNamespace) -> int:
    return getrefcount(holder.family)


# The reference count of an object that one attribute holds. Measured, since it differs between versions of Python.
ALONE = _references(SimpleNamespace(family=object()))


# With larger values, binding a plan is not what takes time.
MOST_BYTES = 1 << 24


class Lent(NamedTuple):
    """The calls of a plan that a graph had before its first fork.

    Attributes
    ----------
    calls, call_slots, step_slots
        The calls, the first slot of each, and the slots of the steps that they were made from.
    data
        The values of the plan's nodes, and of those that they read, as they lay then.
    """

    calls: Any
    call_slots: list[int]
    step_slots: list[int]
    data: dict[int, Any]

    def is_small(self) -> bool:
        """Return whether the values take so little memory that they may be kept after others took their places."""
        return sum(getattr(one, "nbytes", 0) for one in self.data.values()) <= MOST_BYTES


_FLOAT64 = np.dtype(np.float64)


class Columns(Facts):
    """The columns and tables of values; knows where they lie, not who sees them."""

    policy: Policy | None = None  # decides which values stay, if memory has a limit
    # Calls of plans, which forks take over, by the slots of a plan; and what was made of them for that. See
    # ``_inherited``; ``None`` before there is anything.
    lent_calls: dict[tuple[int, ...], Lent] | None = None
    models: dict[tuple[int, ...], Any] | None = None

    ops: Column[Any] = column(None)
    attrs: Column[Attrs] = column(())
    specs: Column[Spec | None] = column(None)
    data: Column[Any] = column(MISSING)
    cutoffs: dict[int, Cutoff] = table(dict, added=True)
    # The version at which a node lost its cutoff: that value may be an old one that the cutoff
    # kept, which no run would give again.
    former_cutoffs: dict[int, int] = table(dict, added=True)
    # The present value as callers got it, or a lease on that.
    handed: dict[int, Any] = table(dict, forked=False, cleared=False)
    _leases: dict[int, list[Callable[[], Any]]] = table(dict, forked=False, cleared=False)
    _view_of: dict[int, Any] = table(dict, cleared=False)  # for a view: the buffer that it shows
    # For a view by an op of several operands: the specs of these that it was made for.
    _part_for: dict[int, list[Spec | None]] = table(dict, forked=False, cleared=False)
    # Bound steps, valid until memory that they use moves; `None` for views; `UNBOUND` or `NEW`.
    _steps: Column[Any] = column(NEW, forked=False)
    patterns: dict[int, Spec] = table(dict)  # declared shapes of inputs
    # Python numbers as kernels take them; for a float64 always the same array, see ``stays``.
    _literals: dict[int, dict[Literal, Any]] = table(dict, forked=False, cleared=False)
    # Nodes whose values stay only while a run reads them; those of them that have their value
    # now; where values are that were packed; those for whose value `pack` has raised.
    transient: dict[int, Transient] = table(dict)
    lying: set[int] = table(set)
    away: dict[int, Any] = table(dict)
    refused: set[int] = table(set, forked=False)

    def __init__(self) -> None:
        super().__init__()
        self.scheduler: Scheduler
        self.generations: Any = None  # of a floor above; see ``build``
        # In a graph that was forked, or a fork: slots whose memory only this graph sees. Else None.
        self._own: set[int] | None = None
        # The same object in all graphs that may share memory with this one.
        self._family: Family | None = None
        self.footprint = Footprint()
        self.spares = Spares(self.footprint)
        # The first error of `pack` about a value that the run under way has computed or read.
        self.refusal: Exception | None = None
        # Leaves that were being written when an error came, and their new values; see `finish_writes`.
        self.cut_slots: Collection[int] = ()
        self.cut_values: Collection[Any] = ()
        # Steps of large reductions that keep what they found in blocks, by slot; see `overwrite`.
        # ``None`` before the first.
        self.reductions: dict[int, Any] | None = None
        # Groups of leaves that were set together, by the id of the first handle.
        self.together: dict[int, Together] = {}

    def remove(self, slot: int) -> None:
        """Clear the rows of a node that is gone."""
        self.discard(slot)
        self.clear(slot)
        if self.policy is not None:
            self.policy.removed(slot)

    def discard(self, slot: int) -> None:
        """Drop a value; callers keep what they were given."""
        if self.together:
            self.part(slot)
        self.data[slot] = MISSING
        self.handed.pop(slot, None)
        self._leases.pop(slot, None)
        self._view_of.pop(slot, None)
        self._part_for.pop(slot, None)
        self._steps[slot] = UNBOUND
        if self._own is not None:
            self._own.add(slot)
        self._forget_literals(slot)
        if self.policy is not None:
            self.policy.stored(slot)

    def bound(self, slot: int) -> tuple[Step | None, list[Any]]:
        """Return the step of a node, with the memory of the values that it reads."""
        parents = self.scheduler.topology.parents[slot]
        return self._steps[slot], [self.data[parent] for parent in parents]

    def bind_again(self, slot: int, bound: tuple[Step | None, list[Any]]) -> None:
        """Give a node its former step again, if the values that it reads lie where they lay then."""
        step, read = bound
        data, parents = self.data, self.scheduler.topology.parents[slot]
        if step is not NEW and all(data[at] is one for at, one in zip(parents, read, strict=True)):
            self._steps[slot] = step

    def _nothing_bound(self) -> bool:
        """Return whether no step was bound since this graph was forked."""
        steps = self._steps
        return isinstance(steps, Overlay) and not steps.written

    def _root(self, slot: int) -> int:
        """Return the node in whose buffer the value of ``slot`` lies."""
        parents = self.scheduler.topology.parents
        while slot in self._view_of:
            slot = parents[slot][0]
        return slot

    def part(self, slot: int) -> None:
        """Forget the groups of leaves set together that this leaf belongs to, since it has changed."""
        together = self.together
        for first in [first for first, one in together.items() if slot in one.members]:
            del together[first]

    def is_alone(self) -> bool:
        """Return whether nobody is left who may see memory that this graph has shared with others."""
        return getrefcount(self._family) <= ALONE and not self._family.is_lent()  # type: ignore[union-attr]

    def owns(self, slot: int) -> bool:
        """Return whether no fork can see the memory of a value."""
        return self._own is None or slot in self._own

    def moved(self, slot: int) -> None:
        """Note that the node has other memory or another kernel, so that steps must be bound again."""
        if self.together:
            self.part(slot)
        if not self._nothing_bound():  # in a fresh fork there is no step to unbind
            steps = self._steps
            steps[slot] = UNBOUND
            # A copy of the set: another thread of the run may add a child meanwhile.
            for child in [*self.scheduler.topology.children[slot]]:
                steps[child] = UNBOUND
        if self.generations is not None:
            self.generations.moved(slot)
        self.scheduler.moved(slot)
        if self.policy is not None:
            self.policy.moved(slot)

    def unbind_steps(self, slots: Iterable[int]) -> None:
        """Make these nodes be bound again."""
        for slot in slots:
            self._steps[slot] = UNBOUND
            self.scheduler.moved(slot)

    def unbind(self) -> None:
        """Make all nodes be bound again: their kernels may be others now."""
        steps = self._steps
        for slot in [slot for slot, step in enumerate(steps) if step is not NEW]:
            steps[slot] = UNBOUND

    def view_in(self, slot: int, buffer: Any) -> Any:
        """Return the node's value as a view of its operand's, which lies in ``buffer``.

        Return ``None`` if the layout allows no view.
        """
        op, found, parents = self.ops[slot], self.specs[slot], self.scheduler.topology.parents[slot]
        operand = self.specs[parents[0]]
        assert found is not None
        if operand is None or operand.weak is not None:
            return None
        attrs = self.attrs[slot]
        if len(parents) > 1:
            attrs = (*[self.specs[one].shape for one in parents[1:]], *attrs)  # type: ignore[union-attr]
        with on(found.device):  # where the layout allows no view, a library may copy
            view = op.view(shaped(buffer, operand), *attrs)
        return view if view is None or found.shape else view.reshape(1)

    def _new_memory(self, found: Spec) -> Any:
        """Return an array for values of this spec that no caller sees."""
        buffer = self.spares.take(found) if self.spares.bytes else None
        if buffer is None:
            buffer = device_of(found.device).empty(found.storage, found.dtype)
            if getattr(buffer, "nbytes", 0) >= FEWEST_BYTES:  # some libraries have no `nbytes`
                self.footprint.add(buffer)
        return buffer

    def _renumber(self, slot: int, old: Any, new: Any) -> None:
        """Follow a leaf that now holds another Python number or object.

        Steps that look the number up need nothing. Steps that hold its array see the new number there,
        or must be bound again.
        """
        known = self._literals.get(slot)
        if not known:
            return
        for key, array in list(known.items()):
            if stays(old, key.dtype, key.device):
                if type(new) is float:  # in place: bound steps see the new number there
                    if key.device == "cpu":
                        array[...] = new
                    else:
                        device_of(key.device).assign(array, new)
                    continue
                self.moved(slot)  # steps hold this array
            del known[key]

    def _forget_literals(self, slot: int) -> None:
        if self._literals.pop(slot, None):
            self.moved(slot)  # steps may hold one of these arrays


def stays(number: Any, dtype: Any, device: str) -> bool:
    """Return whether a leaf's literal is one array that is written in place.

    On the host only for float64, which takes every float. On a device also for shorter floats, so that a new
    number needs no other step.
    """
    return type(number) is float and (dtype is _FLOAT64 or (device != "cpu" and dtype.kind == "f"))


_MOST = int(np.finfo(np.float64).max)


class NumberError(ReactgradError, OverflowError):
    """A Python number does not fit the dtype of the array beside it."""


def as_array(op: Op, device: Any, number: Any, dtype: Any) -> Any:
    """Return a Python number in the dtype in which a kernel computes."""
    try:
        array = np.array([number] if op.elementwise else number, dtype)
    except OverflowError as error:
        if op.any_number and dtype.kind in "biu":
            return number  # NumPy compares with integers of any size
        raise _overflow(number, dtype) from error
    return device.asarray(array, dtype)


def _overflow(number: Any, dtype: Any) -> NumberError:
    instead = (
        "no float64 is so large, and np.inf stands for infinity"
        if dtype.kind in "fc" and abs(number) > _MOST
        else "Convert the array first, x.astype('int64') or x.astype('float64')"
    )
    return NumberError(
        f"the Python number {safe_repr(number):.60} does not fit into {dtype}, the dtype of the array beside "
        f"it. {instead[0].upper()}{instead[1:]}."
    )


def shaped(buffer: Any, found: Spec) -> Any:
    """Return a buffer in the shape of the value; buffers of scalars have one element."""
    if found.shape or found.weak is not None:
        return buffer
    return (
        buffer.reshape(()) if found.kind == "cpu" else device_of(found.device).reshape(buffer, ())
    )


def frozen_copy(array: Any) -> Any:
    """Return a read-only copy that callers cannot make writable, since they get only a view."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy.view()
