"""Calls that a fork takes over from its origin, for other memory, in place of binding them anew.

A fork computes what its origin has computed before, with arrays of its own. Where the origin has compiled a plan
of the same nodes, the fork makes its arrays, and the compiled calls are moved to these; see
``backend/machine/_relocation``. So the first read of a what-if takes little more than a later one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress, count, repeat
from operator import is_, is_not
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad.backend.machine._loops import address_of
from reactgrad.backend.machine._registers import Fused
from reactgrad.backend.machine._relocation import Layout, ScratchError
from reactgrad.nodes._op import CONST, Op
from reactgrad.scheduler import Overlay, Plan, Step
from reactgrad.values._columns import MISSING, MOST_BYTES, UNBOUND, Lent

if TYPE_CHECKING:
    from reactgrad.backend import Spec

# So many of the last plans of the origin are compared with that of a fork.
MOST_LIKE = 32
# So many runs earlier a plan of the origin is compiled for each fork that asks for it.
HASTE = 8
# A plan that the origin does not run itself is compiled for the fork of this number that asks for it.
ASKED = 3
# Arrays of fewer bytes are made as parts of one: larger ones should go one by one.
SMALL = 1024
# In a large array they begin at multiples of so many bytes.
_LINE = 64


# Calls, the first slot of each, and the slots of the steps that they do.
Taken = tuple[list[Step], list[int], list[int]]


class Model:
    """A compiled plan of an origin, as its forks take it over.

    Attributes
    ----------
    lent, calls
        Those of the origin; other objects if it has bound the plan anew.
    layout
        ``None`` if the calls cannot be moved.
    groups
        The nodes of the plan whose values are arrays, by spec.
    views
        Those whose values are views of others, in order.
    sources
        The nodes that these read, whose values are arrays.
    rigid
        Such with gaps, with their values, which must be those of the fork, too.
    """

    __slots__ = (
        "call_slots",
        "calls",
        "groups",
        "layout",
        "lent",
        "rigid",
        "slots",
        "sources",
        "step_slots",
        "unbound",
        "views",
    )

    def __init__(self, origin: Any, plan: Plan, lent: Lent) -> None:
        self.lent, self.calls = lent, lent.calls
        self.call_slots, self.step_slots = lent.call_slots, lent.step_slots
        self.views: list[int] = []
        self.groups: dict[Spec, list[int]] = {}
        self.sources: list[int] = []
        self.slots: list[int] = []
        self.unbound: dict[int, Any] = {}
        self.rigid: dict[int, Any] = {}
        self.layout: Layout | None = None
        slots = plan.slots
        if {*map(type, map(origin.ops.__getitem__, slots))} != {Op}:
            return
        specs, view_of = [*map(origin.specs.__getitem__, slots)], origin._view_of
        if any(found is None or found.kind != "cpu" for found in {*specs}):
            return
        for slot, found in zip(slots, specs, strict=True):
            if slot in view_of:
                self.views.append(slot)
            else:
                self.groups.setdefault(found, []).append(slot)
        if sum(found.nbytes * len(group) for found, group in self.groups.items()) > MOST_BYTES:
            return
        arrays: list[Any] = []
        for found, group in self.groups.items():
            shape = found.storage
            there = [*map(origin.data.__getitem__, group)]
            if not all(_lies(array) and array.shape == shape for array in there):
                return
            self.slots += group
            arrays += there
        read = self._read(origin, plan)
        if read is None or sum([array.nbytes for array in read[0]]) > MOST_BYTES:
            return
        self.unbound = dict.fromkeys([*self.slots, *self.views], UNBOUND)
        with suppress(ScratchError):
            self.layout = Layout(lent.calls, arrays + read[0], read[1])

    def _read(self, origin: Any, plan: Plan) -> tuple[list[Any], list[Any]] | None:
        """Note which nodes the plan reads. Return their arrays, first those without gaps, then others.

        ``None`` if the place of a value is not known.
        """
        plain: list[Any] = []
        fixed: list[Any] = []
        for slot in plan.sources(origin.scheduler.topology.parents):
            found, value = origin.specs[slot], origin.data[slot]
            if found is None:
                return None
            if found.weak is not None:
                if origin.ops[slot] is not CONST:
                    return None
                fixed += origin._literals.get(slot, {}).values()  # these never change
            elif type(value) is not np.ndarray:
                return None
            elif value.flags.c_contiguous:
                self.sources.append(slot)
                plain.append(value)
            else:
                self.rigid[slot] = value
        return plain, [*fixed, *self.rigid.values()]

    def holds(self, origin: Any, lent: Lent) -> bool:
        """Return whether the origin still has these calls, for these arrays."""
        if lent is self.lent:
            return True  # whoever lends it has compared the arrays
        if lent.calls is not self.calls:
            return False
        slots = (*self.slots, *self.sources)
        layout = self.layout
        return layout is None or (
            all(map(is_, map(origin.data.__getitem__, slots), layout.arrays))
            and self.has_rigid(origin.data)
        )

    def has_rigid(self, data: Any) -> bool:
        """Return whether these values have those of ``rigid``."""
        return all(data[slot] is array for slot, array in self.rigid.items())


def inherited(store: Any, origin: Any, plan: Plan) -> Taken | None:
    """Return the calls of a plan, taken over from the origin of a fork.

    ``None`` if the origin has none, or is at work in another thread.
    """
    if store.policy is not None or store.transient or origin.policy is not None:
        return None
    lock = origin.scheduler.lock.raw
    if not lock.acquire(False):
        return None
    try:
        if max(plan.slots) >= len(origin.data) or not _as_there(store, origin, plan):
            return None  # it has nodes that only the fork has, or defines otherwise
        model = _model(origin, plan)
        if model is None or model.layout is None:
            return None
        return _taken_over(store, model, model.layout)
    finally:
        lock.release()


def _model(origin: Any, plan: Plan) -> Model | None:
    """Return the compiled plan of an origin for the nodes of a fork's plan."""
    models = origin.models
    if models is None:
        models = origin.models = {}
    model = models.get(plan.slots)  # before there is one, the number of forks that have asked
    lent = _known_calls(origin, plan) or _lent_calls(origin, plan)
    if lent is None:
        asked = model if type(model) is int else 0
        models[plan.slots] = asked + 1
        lent = _compiled(origin, plan) if asked + 1 == ASKED else None
    if lent is None or type(lent.calls) is not Fused:
        return None
    if type(model) is not Model or not model.holds(origin, lent):
        if len(models) >= MOST_LIKE:
            models.clear()
        model = models[plan.slots] = Model(origin, plan, lent)
    return model


def _known_calls(origin: Any, plan: Plan) -> Lent | None:
    """Return the calls by which an origin itself makes the read of these nodes."""
    scheduler = origin.scheduler
    for known in scheduler.plans.bound(MOST_LIKE):
        if known.slots == plan.slots and known.moves_seen == len(scheduler.moves):
            _hasten(known)
            return Lent(known.fused, known.call_slots, known.step_slots, {})
    return None


def _lent_calls(origin: Any, plan: Plan) -> Lent | None:
    """Return calls that were kept for forks, as long as the values lie where they lay then."""
    calls = origin.lent_calls or {}
    lent = calls.get(plan.slots)
    if lent is not None and not all(map(is_, origin.data.rows_of(lent.data), lent.data.values())):
        del calls[plan.slots]
        return None
    return lent


def _compiled(origin: Any, plan: Plan) -> Lent | None:
    """Return the calls of a plan in the memory of the origin, which has never run it, for its forks."""
    scheduler, data = origin.scheduler, origin.data
    if scheduler.computing or scheduler.frames or origin.policy is not None or origin.transient:
        return None
    if any(data[slot] is MISSING or type(origin.ops[slot]) is not Op for slot in plan.slots):
        return None
    steps, lends = origin.bind_all(plan.slots)
    if lends or origin.registers is None:
        return None
    bound = [(slot, step) for slot, step in zip(plan.slots, steps, strict=True) if step is not None]
    step_slots = [slot for slot, _ in bound]
    calls, call_slots = origin.registers.programs(step_slots, [step for _, step in bound])
    read = plan.sources(scheduler.topology.parents)
    lent = Lent(calls, call_slots, step_slots, {at: data[at] for at in (*plan.slots, *read)})
    if not lent.is_small():
        return None
    origin.lent_calls = (origin.lent_calls or {}) | {plan.slots: lent}
    return lent


def _hasten(plan: Plan) -> None:
    """Compile a plan some runs earlier, since a fork has asked for it."""
    calls: Any = plan.fused
    if getattr(calls, "patience", 0):
        calls.patience = max(calls.patience - HASTE, 1)
        if calls.patience == 1:
            plan.fused, plan.call_slots = calls.compiled(plan.step_slots)


def _as_there(store: Any, origin: Any, plan: Plan) -> bool:
    """Return whether the nodes of a plan are defined as in the origin."""
    slots = plan.slots
    for cutoffs in (store.cutoffs, origin.cutoffs):
        if cutoffs and not cutoffs.keys().isdisjoint(slots):
            return False
    mine, its = store.scheduler.topology, origin.scheduler.topology
    return (
        _are_same(mine.parents, its.parents, slots)
        and _are_same(mine.serial, its.serial, slots)
        and _are_same(store.ops, origin.ops, slots)
        and _are_same(store.attrs, origin.attrs, slots)
        and _are_same(store.specs, origin.specs, slots)
    )


def _are_same(here: Any, there: Any, slots: Sequence[int]) -> bool:
    """Return whether two columns have the same objects in these rows."""
    overlays = isinstance(here, Overlay) and isinstance(there, Overlay)
    if overlays and here.ground is there.ground and len(here) == len(there):
        written = [*here.keys(), *there.keys()]
        if len(written) < len(slots) and _are_same_objects(here, there, written):
            return True  # the other rows are the ground's
    return _are_same_objects(here, there, slots)


def _are_same_objects(here: Any, there: Any, slots: Sequence[int]) -> bool:
    return all(map(is_, map(here.__getitem__, slots), map(there.__getitem__, slots)))


def _taken_over(store: Any, model: Model, layout: Layout) -> Taken | None:
    data: Any = store.data
    if not all(map(is_, map(data.__getitem__, model.slots), repeat(MISSING))):
        return None  # computed before, as a part of other reads: each step is bound to that memory
    if not model.has_rigid(data):
        return None
    views, view_of = model.views, store._view_of
    former = [(slot, data[slot], view_of.get(slot)) for slot in views]
    arrays: list[Any] = []
    addresses = layout.addresses()
    for found, slots in model.groups.items():
        _make(store, found, len(slots), arrays, addresses)
    sources, theirs = [*map(data.__getitem__, model.sources)], layout.arrays[len(model.slots) :]
    for at in compress(count(), map(is_not, sources, theirs)):  # most are shared with the origin
        mine, its = sources[at], theirs[at]
        if not (_lies(mine) and mine.dtype is its.dtype and mine.shape == its.shape):
            return None
        addresses[len(model.slots) + at] = address_of(mine)
    try:
        data.update(zip(model.slots, arrays))  # type: ignore[attr-defined]
        store._steps.update(model.unbound)  # type: ignore[attr-defined]
        for slot in views:
            if not store._bind_view(slot):
                return _given_back(store, model, former)
            store._steps[slot] = None
        steps = model.step_slots
        calls = layout.moved(addresses, (arrays, sources), lambda at: store.bind(steps[at]))
    except BaseException:
        _given_back(store, model, former)
        raise
    if calls is None:
        return _given_back(store, model, former)
    return calls, model.call_slots, model.step_slots


def _given_back(store: Any, model: Model, former: Sequence[tuple[int, Any, Any]]) -> None:
    """Take the arrays back from the nodes."""
    for slot in model.slots:
        store.data[slot] = MISSING
    store._steps.update(model.unbound)  # views had steps already
    for slot, value, shown in former:
        store.data[slot] = value
        if shown is None:
            store._view_of.pop(slot, None)
        else:
            store._view_of[slot] = shown


def _lies(array: Any) -> bool:
    """Return whether a value is an array without gaps, in the usual order."""
    return type(array) is np.ndarray and array.flags.c_contiguous


def _make(store: Any, found: Spec, length: int, arrays: list[Any], addresses: Any) -> None:
    """Add new arrays for values of a spec, and write their addresses to the same places."""
    size, item = found.nbytes, found.dtype.itemsize
    begin = len(arrays)
    if not 0 < size < SMALL or length == 1 or _LINE % item or store.spares.bytes:
        arrays += [store._new_memory(found) for _ in range(length)]
        addresses[begin : begin + length] = [*map(address_of, arrays[begin:])]
        return
    width = -(-size // _LINE) * _LINE
    all_of_them = np.empty((length, width // item), found.dtype)
    arrays.extend(all_of_them[:, : math.prod(found.storage)].reshape(length, *found.storage))
    first = address_of(all_of_them)
    addresses[begin : begin + length] = np.arange(first, first + length * width, width)
