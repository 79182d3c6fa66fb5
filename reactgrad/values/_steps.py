"""How the values of nodes are computed: the steps that are bound to where these and their operands' lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import DTypeError, ReactgradError, ShapeError
from reactgrad.backend import (
    Binder,
    Spec,
    Unrolled,
    device_of_kind,
    find_binder,
    own_copy,
    read_value,
    storage_shape,
    unrolled,
)
from reactgrad.nodes._cutoff import Cutoff, Tolerance, equal, unchanged
from reactgrad.nodes._leaf import CONST, Leaf
from reactgrad.nodes._op import Attrs, Op
from reactgrad.nodes._output import Output
from reactgrad.scheduler import UNCHANGED, Step
from reactgrad.values._columns import MISSING, NEW, UNBOUND, Literal, shaped, stays
from reactgrad.values._function_steps import direct_step
from reactgrad.values._fused_steps import fuse, replaced
from reactgrad.values._store import Store

if TYPE_CHECKING:
    from reactgrad.backend.machine._registers import Registers

# Which operands of a node are Python numbers, and how its kernel takes them.
Numbers = tuple[tuple[int, Literal], ...]

# Of so many kinds of nodes that is kept.
MAX_KINDS = 4096

# What nodes compute that call no Python function of the user's.
_OWN = (Op, Leaf, Output)
# Rough: of a kernel that moves an element, and of one that multiplies two and adds.
_SECONDS_AN_ELEMENT, _SECONDS_A_PRODUCT = 1e-9, 1e-10


class Steps(Store):
    """The values of nodes, and the calls that compute them."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[tuple[Op, Spec, tuple[Spec, ...]], Numbers] = {}
        self.registers: Registers | None = None  # how small kernels in a row run as one, if they do

    def share_with(self, twin: Steps) -> None:
        super().share_with(twin)
        twin._numbers, twin.registers = self._numbers, self.registers

    def lends(self, slot: int) -> bool:
        """Whether computing this node calls a Python function."""
        return not isinstance(self.ops[slot], _OWN)

    def fuse(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """Steps on large arrays together, and small kernels in a row as one call; see ``Host``."""
        scheduler = self.scheduler
        parents = scheduler.topology.parents
        steps = fuse(
            slots,
            steps,
            lambda slot: [(one, self._root(one)) for one in parents[slot]],
            lambda: scheduler.cancelled,
        )
        if self.registers is not None:
            return self.registers.fused(slots, steps)
        return (steps, slots) if self._any_lends(slots) else unrolled(slots, steps)

    def replaced(self, fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
        """Call these steps in what ``fuse`` has given, if nothing else changes; see ``Host``."""
        if not places:
            return True
        if self.registers is not None:
            return False
        if type(fused) is Unrolled:
            return replaced(fused.steps, steps, places) and fused.follow(places)
        return replaced(fused, steps, places)

    def spoiled(self, slots: Sequence[int]) -> None:
        """Release what these nodes had, which may be left to callers, or be what was computed ahead."""
        version = self.scheduler.version
        # With a cutoff nothing is done ahead, and the old value is wanted.
        self.release([slot for slot in slots if slot not in self.cutoffs and version(slot)])

    def give(self, slot: int) -> object:
        """What the function of this node is called with; see ``Host``."""
        return [self.hand_out(parent) for parent in self.scheduler.operands(slot)]

    def costs(self, slots: Sequence[int]) -> list[float | None] | None:
        """Seconds that kernels may take; ``None`` for Python functions."""
        return [None if self.lends(slot) else self._cost(slot) for slot in slots]

    def _cost(self, slot: int) -> float:
        parents, found = self.scheduler.topology.parents[slot], self.specs[slot]
        if slot in self._view_of or not parents:  # without any it is pinned
            return 0.0
        if self.ops[slot].name == "matmul" and found is not None:
            first = self.specs[parents[0]]
            inner = first.shape[-1:] if first is not None else ()
            return _elements(found) * (inner[0] or 0 if inner else 0) * _SECONDS_A_PRODUCT
        moved = _elements(found) + sum([_elements(self.specs[parent]) for parent in parents])
        return moved * _SECONDS_AN_ELEMENT

    def bind(self, slot: int) -> Step | None:
        """A call that computes the value of `slot`; ``None`` where a view does it."""
        if self.policy is not None:
            self.policy.bind(slot)
        step = self._steps[slot]
        if step is UNBOUND or step is NEW:
            self._bind((slot,))
            step = self._steps[slot]
        return step

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        """As ``bind``, of each of these nodes, and whether one of them calls a Python function."""
        if self.policy is not None:  # what goes is decided between any two of them
            return [self.bind(slot) for slot in slots], any(map(self.lends, slots))
        self._bind(slots)
        return list(map(self._steps.__getitem__, slots)), self._any_lends(slots)

    def _any_lends(self, slots: Sequence[int]) -> bool:
        kinds = set(map(type, map(self.ops.__getitem__, slots)))
        return not all(issubclass(kind, _OWN) for kind in kinds)

    def _bind(self, slots: Sequence[int]) -> None:
        """Bind those of these nodes that are not, parents first, each to where its parents' values lie then."""
        ops, specs, data, attrs = self.ops, self.specs, self.data, self.attrs
        steps, parents, cutoffs = self._steps, self.scheduler.topology.parents, self.cutoffs
        binders: dict[tuple[Op, str], Binder] = {}
        for slot in slots:
            step = steps[slot]  # now: the storage of a parent may have moved
            if step is not NEW and step is not UNBOUND:
                continue
            op, found = ops[slot], specs[slot]
            if type(op) is not Op or found is None or slot in cutoffs:
                steps[slot] = self._bind_apart(slot, op, found)
                continue
            if op.view is not None and device_of_kind(found.kind).views and self._bind_view(slot):
                steps[slot] = None
                continue
            out = data[slot]
            if out is MISSING:
                out = self._new_buffer(slot, found, new=step is NEW)
            sources = parents[slot]
            inputs: list[Any] = []
            as_stored = op.elementwise and type(out) is np.ndarray  # as most kernels take all
            for parent in sources:
                one = data[parent]
                if type(one) is not np.ndarray:
                    as_stored = False
                inputs.append(one)
            binder = binders.get((op, found.kind))
            if binder is None:
                binder = binders[op, found.kind] = self._find_binder(op, found)
            if as_stored:
                steps[slot] = binder(inputs, out, attrs[slot])
            else:
                steps[slot] = self._bind_inputs(
                    binder, op, found, sources, inputs, out, attrs[slot]
                )

    def _bind_apart(self, slot: int, op: Any, found: Spec | None) -> Step:
        """The step of a node that calls a function, has a cutoff, or of which not all is known."""
        if found is None or isinstance(op, Leaf):
            return self._bind_unknown(slot, op)
        if slot in self.cutoffs:
            return self._bind_guarded(slot, op, found)
        out = self.data[slot]
        if out is MISSING:
            out = self._new_buffer(slot, found, new=self._steps[slot] is NEW)
        return self._bind_declared(slot, op, found, out)

    def _bind_unknown(self, slot: int, op: Any) -> Step:
        """The step of a node of which nothing is known before it has run."""
        cutoff = self.cutoffs.get(slot)
        step = self._bind_direct(slot, op, cutoff)
        if step is not None:
            return step
        if isinstance(op, Output):
            step = self._take_output(slot, op.index)
        else:
            compute = self._compute_unknown if isinstance(op, Op) else self._call
            step = self._assign(slot, partial(compute, slot))
        return step if cutoff is None else self._guarded(slot, step, cutoff)

    def _take_output(self, slot: int, index: int) -> Step:
        """The step of one output of a function that has several."""
        data, (function,) = self.data, self.scheduler.operands(slot)

        def take() -> None:
            data[slot] = data[function][index]

        return take

    def _bind_guarded(self, slot: int, op: Any, found: Spec) -> Step:
        """The step of a node with a cutoff: the old value stays in its buffer until both were seen."""
        scratch = device_of_kind(found.kind).empty(found.storage, found.dtype)
        bind = self._bind_kernel if isinstance(op, Op) else self._bind_declared
        step = bind(slot, op, found, scratch)
        return partial(self._keep_or_assign, slot, self.cutoffs[slot], step, scratch)

    def bind_at(self, slot: int, out: Any, operands: Mapping[int, Any]) -> Step:
        """As ``bind``, of an array op whose operands or result lie elsewhere than in the table."""
        found, data = self.specs[slot], self.data
        assert found is not None
        if out is None:
            out = data[slot]
            if out is MISSING:
                out = self._new_buffer(slot, found, new=self._steps[slot] is NEW)
        present = [(one, data[one]) for one in operands]
        try:
            for one, array in operands.items():
                data[one] = array
            return self._bind_kernel(slot, self.ops[slot], found, out)
        finally:
            for one, value in present:
                data[one] = value

    def _other_buffer(self, slot: int, found: Spec) -> None:
        """Give a node another buffer while it runs."""
        self._new_buffer(slot, found, new=False, running=True)

    def _new_buffer(self, slot: int, found: Spec, *, new: bool, running: bool = False) -> Any:
        """Memory for the value of a node; `new`: no step knows where that lay before."""
        if self.policy is not None:
            self.policy.allocate(slot, found.nbytes, running=running)
        buffer = self.data[slot] = self._new_memory(found)
        if not new:
            self.moved(slot)
        if self.policy is not None:
            self.policy.allocated(slot)
        return buffer

    def _bind_view(self, slot: int) -> bool:
        """Let the value of `slot` be a view of its parent's, if its layout allows one."""
        buffer = self.data[self.scheduler.topology.parents[slot][0]]
        if self._view_of.get(slot, MISSING) is buffer:
            return True
        if self.policy is not None:
            self.policy.stored(slot)
        view = self.view_in(slot, buffer)
        if view is None:
            if self._view_of.pop(slot, None) is not None:
                self.data[slot] = MISSING  # what it has shown is not its memory
            return False
        self._view_of[slot] = buffer
        self.data[slot] = view
        if self._steps[slot] is not NEW:
            self.moved(slot)
        return True

    def _bind_direct(self, slot: int, op: Any, cutoff: Cutoff | None) -> Step | None:
        """The step of a Python function all of whose operands are what callers see anyway."""
        if isinstance(op, _OWN) or op.layout is not None or op.outputs is not None:
            return None
        if cutoff is not None and cutoff is not equal:
            return None
        parents, specs, data = self.scheduler.operands(slot), self.specs, self.data
        for parent in parents:
            found = specs[parent]
            if found is not None and found.weak is None:
                return None
        handed = None if cutoff is None else self.handed
        return direct_step(op, data, slot, parents, MISSING, handed)

    def _bind_declared(self, slot: int, op: Any, found: Spec, out: Any) -> Step:
        """A Python function that declared its result, which then lies in a buffer."""

        def step() -> None:
            device_of_kind(found.kind).assign(
                shaped(out, found), declared(found, self._call(slot), op.name)
            )

        return step

    def _find_binder(self, op: Op, found: Spec) -> Binder:
        return find_binder(op.name, found.kind, self.registers is not None)

    def _bind_kernel(self, slot: int, op: Op, found: Spec, out: Any) -> Step:
        parents = self.scheduler.topology.parents[slot]
        inputs = list(map(self.data.__getitem__, parents))
        binder = self._find_binder(op, found)
        return self._bind_inputs(binder, op, found, parents, inputs, out, self.attrs[slot])

    def _bind_inputs(
        self,
        binder: Binder,
        op: Op,
        found: Spec,
        parents: Sequence[int],
        inputs: list[Any],
        out: Any,
        attrs: Attrs,
    ) -> Step:
        """The step of a kernel of which some operands may be numbers, or not stored in their shape."""
        # Known, else this node's would not be, either.
        specs: Any = tuple(map(self.specs.__getitem__, parents))
        if not op.elementwise:
            inputs, out = list(map(shaped, inputs, specs)), shaped(out, found)
        numbers = self._numbers.get((op, found, specs))
        if numbers is None:
            numbers = self._find_numbers(op, found, specs)
        changing: list[tuple[int, int, Literal]] = []
        for i, literal in numbers:
            parent = parents[i]
            if not (self._is_const(parent) or stays(inputs[i], literal.dtype, literal.kind)):
                changing.append((i, parent, literal))
            inputs[i] = self._literal(op, parent, literal)
        if not changing:
            return binder(inputs, out, attrs)
        return partial(self._run_kernel, op, changing, binder, inputs, out, attrs)

    def _run_kernel(
        self,
        op: Op,
        changing: list[tuple[int, int, Literal]],
        binder: Binder,
        inputs: list[Any],
        out: Any,
        attrs: Attrs,
    ) -> object:
        """Bind and call a kernel some of whose inputs may hold another Python number at every run."""
        for i, parent, literal in changing:
            inputs[i] = self._literal(op, parent, literal)
        return binder(inputs, out, attrs)()

    def _find_numbers(self, op: Op, found: Spec, specs: tuple[Spec, ...]) -> Numbers:
        """Which operands of a node with these specs are Python numbers, kept for others like it."""
        places = [i for i, one in enumerate(specs) if one.weak is not None]
        dtypes = self._loop(op, specs, found) if places else ()
        numbers = tuple([(i, Literal(dtypes[i], op.elementwise, found.kind)) for i in places])
        if len(self._numbers) >= MAX_KINDS:
            self._numbers.clear()
        self._numbers[op, found, specs] = numbers
        return numbers

    def _loop(self, op: Op, specs: tuple[Spec, ...], found: Spec) -> tuple[Any, ...]:
        return op.loop_dtypes(specs) if op.loop_dtypes else (found.dtype,) * len(specs)

    def _literal(self, op: Op, slot: int, key: Literal) -> Any:
        """A Python number as an array of the dtype in which the kernel computes."""
        known = self._literals.get(slot)
        if known is None:
            known = self._literals[slot] = {}
        array = known.get(key)
        if array is None:
            number = self.data[slot]
            array = _as_array(op, device_of_kind(key.kind), number, key.dtype)
            if not hasattr(array, "dtype"):
                return array
            known[key] = array
        return array

    def _is_const(self, slot: int) -> bool:
        return self.ops[slot] is CONST

    # --- values whose spec is known only when they are there ------------------------------------

    def _assign(self, slot: int, compute: Callable[[], Any]) -> Step:
        """A step for a value that is a new object at every run."""
        data = self.data

        def step() -> None:
            data[slot] = compute()

        return step

    def _guarded(self, slot: int, step: Step, cutoff: Cutoff) -> Step:
        """Such a step, less what a cutoff calls unchanged: then the old value comes back."""
        data = self.data

        def compare() -> object:
            old = data[slot]
            step()
            if old is not MISSING:
                new, data[slot] = data[slot], old  # which stays if the cutoff raises
                if unchanged(cutoff, old, new):
                    return UNCHANGED
                data[slot] = new
            self.handed.pop(slot, None)
            return None

        return compare

    def _keep_or_assign(self, slot: int, cutoff: Cutoff, step: Step, scratch: Any) -> object:
        step()
        found = self.specs[slot]
        assert found is not None
        buffer = self.data[slot]
        if buffer is not MISSING:
            if cutoff is equal or type(cutoff) is Tolerance:
                old, new = _plain(buffer, found), _plain(scratch, found)
            else:  # a function of the user's may keep what it is given
                old, new = self.hand_out(slot), _plain(own_copy(found, scratch), found)
            if unchanged(cutoff, old, new):
                return UNCHANGED
        self.overwrite((slot,))
        if self.data[slot] is MISSING:
            self._other_buffer(slot, found)
        device_of_kind(found.kind).assign(self.data[slot], scratch)
        return None

    def _compute_unknown(self, slot: int) -> Any:
        """The value of an array op on operands whose specs show only now."""
        op: Op = self.ops[slot]
        attrs = self.attrs[slot]
        specs: list[Spec] = []
        values: list[Any] = []
        for parent in self.scheduler.topology.parents[slot]:
            value, one = self.data[parent], self.specs[parent]
            if one is None:
                one, value = read_value(value, "this op")
                if one is None:
                    raise DTypeError(
                        f"{op.name} computes with numbers and arrays; an operand is "
                        f"{type(value).__name__}: {value!r:.80}. Take the number out in an "
                        "rg.lift function first."
                    )
            elif one.weak is None:
                value = shaped(value, one)
            specs.append(one)
            values.append(value)
        result = op.result(tuple(specs), attrs)
        dtypes = self._loop(op, tuple(specs), result)
        device = device_of_kind(result.kind)
        for i, one in enumerate(specs):
            if one.weak is not None:
                values[i] = _as_array(op, device, values[i], dtypes[i])
            if op.elementwise and not one.shape and hasattr(values[i], "dtype"):
                values[i] = device.reshape(values[i], (1,))
        out = device.empty(storage_shape(result), result.dtype)
        into = out if op.elementwise else shaped(out, result)
        find_binder(op.name, result.kind)(values, into, attrs)()
        return _finished(out, result)

    def _call(self, slot: int) -> Any:
        """The result of a Python function."""
        hand_out = self.hand_out
        arguments = [hand_out(parent) for parent in self.scheduler.operands(slot)]
        return self.ops[slot].call(arguments)


def _elements(found: Spec | None) -> int:
    """Of a value, as far as its shape is known."""
    return 0 if found is None else math.prod([n or 0 for n in found.shape])


def _plain(buffer: Any, found: Spec) -> Any:
    """A buffer as cutoff rules see it."""
    if found.kind != "cpu":
        return device_of_kind(found.kind).hand_out(shaped(buffer, found))[0]
    if found.shape:
        view = buffer.view()
        view.flags.writeable = False
        return view
    return buffer[0]


def _finished(out: Any, found: Spec) -> Any:
    if found.kind != "cpu":
        return shaped(out, found)
    if found.shape:
        out.flags.writeable = False
        return out.view()
    return out[0]


class NumberError(ReactgradError, OverflowError):
    """A Python number that does not fit the dtype of the array beside it."""


def _as_array(op: Op, device: Any, number: Any, dtype: Any) -> Any:
    """A Python number in the dtype in which a kernel computes."""
    try:
        array = np.array([number] if op.elementwise else number, dtype)
    except OverflowError as error:
        if op.any_number:
            return number  # NumPy compares with integers of any size
        raise _overflow(number, dtype) from error
    return device.asarray(array, dtype)


def _overflow(number: Any, dtype: Any) -> NumberError:
    return NumberError(
        f"the Python number {number!r:.60} does not fit into {dtype}, the dtype of the array beside "
        "it. Convert the array first, x.astype('int64') or x.astype('float64')."
    )


def declared(found: Spec, value: Any, who: str) -> Any:
    """`value` checked against the spec that its function declared."""
    seen, array = read_value(value, who)
    fits = seen is not None and seen.shape == found.shape
    if not fits or (seen.weak is None and seen.dtype != found.dtype):  # type: ignore[union-attr]
        raise ShapeError(
            f"{who} declared to return {found!r} but returned {seen or type(value).__name__}. "
            "Return what is declared, or leave shape= and dtype=, or infer, out."
        )
    return array
