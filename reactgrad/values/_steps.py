"""Steps: the calls that compute values, bound to the memory of their operands and results."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError, UnsetError
from reactgrad.backend import (
    Binder,
    Spec,
    device_of,
    find_binder,
    on,
    own_copy,
    read_value,
    storage_shape,
    unrolled,
)
from reactgrad.nodes._cutoff import Cutoff, Tolerance, equal, unchanged
from reactgrad.nodes._op import CONST, Attrs, Leaf, Op, Output
from reactgrad.scheduler import UNCHANGED, Plan, Ranges, Step, safe_repr
from reactgrad.values._columns import MISSING, NEW, UNBOUND, Literal, as_array, shaped, stays
from reactgrad.values._footprint import FEWEST_BYTES
from reactgrad.values._function_steps import direct_step
from reactgrad.values._fused_steps import fuse, replaced
from reactgrad.values._store import Store

if TYPE_CHECKING:
    from reactgrad.backend.machine._registers import Registers

# The positions of operands that are Python numbers, each with the form in which its kernel takes it.
Numbers = tuple[tuple[int, Literal], ...]

# The number of kinds of nodes for which ``Numbers`` are kept.
MAX_KINDS = 4096

# Kinds of nodes that call no Python function of the user's.
_OWN = (Op, Leaf, Output)
# Rough costs: of an element that a kernel reads or writes, and of a multiplication with its addition.
_SECONDS_AN_ELEMENT, _SECONDS_A_PRODUCT = 1e-9, 1e-10
# Arrays of fewer elements are too small to be counted by the footprint, whatever their dtype.
_FEW = FEWEST_BYTES // 32


class Steps(Store):
    """The values of nodes with the calls that compute them: the top storey of the storage."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[tuple[Op, Spec, tuple[Spec, ...]], Numbers] = {}
        self.registers: Registers | None = None  # the register machine, if `jit` is on
        self.origin: weakref.ref[Steps] | None = None  # of a fork

    def share_with(self, twin: Steps) -> None:
        super().share_with(twin)
        twin._numbers, twin.registers = self._numbers, self.registers
        twin.origin = weakref.ref(self)

    def lends(self, slot: int) -> bool:
        """Return whether computing this node calls a Python function."""
        return not isinstance(self.ops[slot], _OWN)

    def fuse(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """Return the steps of a plan, with some of them computed together; see ``Host``."""
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

    def inherited(self, plan: Plan) -> tuple[list[Step], list[int], list[int]] | None:
        """Return the calls of a plan that a fork takes over from its origin; see ``Host``."""
        origin = None if self.origin is None else self.origin()
        if origin is None or self.registers is None:
            return None
        from reactgrad.values import _inherited

        return _inherited.inherited(self, origin, plan)

    def rows_of(self, slot: int, changed: Sequence[Ranges | None]) -> Ranges | None:
        """Return the rows of a node that these rows of its operands reach; see ``Host``."""
        from reactgrad.values._row_steps import rows_of

        return rows_of(self, slot, changed)

    def calls_in_part(
        self,
        slots: Sequence[int],
        steps: Sequence[Step],
        rows: Mapping[int, Ranges],
        read: Mapping[int, Ranges],
        span: Ranges,
    ) -> tuple[list[Step], list[int], Callable[[Ranges], object] | None]:
        """Return the calls that compute only these rows of the nodes in ``rows``; see ``Host``."""
        from reactgrad.values._row_steps import calls_in_part

        return calls_in_part(self, slots, steps, rows, read, span)

    def replaced(self, fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
        """Exchange steps in a result of ``fuse``. Return whether that was possible; see ``Host``."""
        if not places:
            return True
        follow = getattr(fused, "follow", None)
        if follow is None:
            return replaced(fused, steps, places)
        # The calls are not those of the steps, one by one: they were made from these.
        return replaced(fused.steps, steps, places) and follow(places)  # type: ignore[attr-defined]

    def spoiled(self, slots: Sequence[int]) -> None:
        """Release the former values of these nodes: their steps have begun, and may have spoiled them.

        A caller may hold such memory, or it may hold results that were computed ahead of their turn.
        """
        version = self.scheduler.version
        # A node with a cutoff computes into other memory, and needs its old value to compare.
        self.release([slot for slot in slots if slot not in self.cutoffs and version(slot)])

    def give(self, slot: int) -> object:
        """Return the arguments for the function of this node; see ``Host``."""
        return [self.hand_out(parent) for parent in self.scheduler.operands(slot)]

    def costs(self, slots: Sequence[int]) -> list[float | None] | None:
        """Return estimated seconds for each kernel; ``None`` for a Python function."""
        return [None if self.lends(slot) else self._cost(slot) for slot in slots]

    def _cost(self, slot: int) -> float:
        parents, found = self.scheduler.topology.parents[slot], self.specs[slot]
        if slot in self._view_of or not parents:  # a node without parents is pinned
            return 0.0
        if self.ops[slot].name == "matmul" and found is not None:
            first = self.specs[parents[0]]
            inner = first.shape[-1:] if first is not None else ()
            return _elements(found) * (inner[0] or 0 if inner else 0) * _SECONDS_A_PRODUCT
        moved = _elements(found) + sum([_elements(self.specs[parent]) for parent in parents])
        return moved * _SECONDS_AN_ELEMENT

    def bind(self, slot: int) -> Step | None:
        """Return a call that computes the node's value; ``None`` for a view, which needs none."""
        if self.policy is not None:
            self.policy.bind(slot)
        step = self._steps[slot]
        if step is UNBOUND or step is NEW:
            try:
                self._bind((slot,))
            except TypeError as error:
                found = self.specs[slot]
                if found is None or found.known:
                    raise
                raise UnsetError(
                    "its lengths are not known before an input that was declared with None in its shape "
                    "has a value; give it one with .set(value) before reading what depends on it."
                ) from error
            step = self._steps[slot]
        return step

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        """Return ``bind`` of each of these nodes, and whether one of them calls a Python function."""
        if self.policy is not None:  # it may release values between any two nodes
            return [self.bind(slot) for slot in slots], any(map(self.lends, slots))
        self._bind(slots)
        return list(map(self._steps.__getitem__, slots)), self._any_lends(slots)

    def _any_lends(self, slots: Sequence[int]) -> bool:
        kinds = set(map(type, map(self.ops.__getitem__, slots)))
        return not all(issubclass(kind, _OWN) for kind in kinds)

    def _bind(self, slots: Sequence[int]) -> None:
        """Bind those of these nodes that are not bound.

        Parents must come first: a node is bound to the memory that its parents have by then.
        """
        ops, specs, data, attrs = self.ops, self.specs, self.data, self.attrs
        steps, parents, cutoffs = self._steps, self.scheduler.topology.parents, self.cutoffs
        # Local names and one look-up for each op and device: this loop binds whole plans.
        binders: dict[tuple[Op, str], Binder] = {}
        jit = self.registers is not None
        plain = self.policy is None and not self.spares.bytes  # small results get new memory here
        for slot in slots:
            step = steps[slot]  # read now: binding a parent may have moved it and unbound this node
            if step is not NEW and step is not UNBOUND:
                continue
            op, found = ops[slot], specs[slot]
            if type(op) is not Op or found is None or slot in cutoffs:
                steps[slot] = self._bind_apart(slot, op, found)
                continue
            sources = parents[slot]
            if (
                op.view is not None
                and (not op.view_of_all or self._may_show_all(slot, found, sources[0]))
                and device_of(found.device).views
                and self._bind_view(slot)
            ):
                steps[slot] = None
                continue
            out = data[slot]
            if out is MISSING:
                if step is NEW and plain and found.kind == "cpu" and found.size < _FEW:  # type: ignore[operator]
                    out = data[slot] = np.empty(found.storage, found.dtype)
                else:
                    out = self._new_buffer(slot, found, new=step is NEW)
            inputs: list[Any] = []
            # Arrays that lie in their own shape need no reshaping; elementwise kernels take them as they are.
            any_shape = op.elementwise
            as_stored = type(out) is np.ndarray and (any_shape or found.shape)
            for parent in sources:
                one = data[parent]
                if type(one) is not np.ndarray or not (any_shape or specs[parent].shape):  # type: ignore[union-attr]
                    as_stored = False
                inputs.append(one)
            binder = binders.get((op, found.device))
            if binder is None:
                binder = binders[op, found.device] = find_binder(op.name, found.device, jit)
            if found.counts:
                binder = self.compared(slot, op.name, binder)
            if as_stored:
                steps[slot] = binder(inputs, out, attrs[slot])
            else:
                steps[slot] = self._bind_inputs(
                    binder, op, found, sources, inputs, out, attrs[slot]
                )

    def _may_show_all(self, slot: int, found: Spec, parent: int) -> bool:
        """Return whether the node may be a view of all elements of its operand, or is such a view now."""
        operand = self.specs[parent]
        return operand is None or operand.size == found.size or slot in self._view_of

    def _bind_apart(self, slot: int, op: Any, found: Spec | None) -> Step:
        """Return the step of a node with a function, a cutoff, or a spec that is not known."""
        if found is None or isinstance(op, Leaf):
            return self._bind_unknown(slot, op)
        if slot in self.cutoffs:
            return self._bind_guarded(slot, op, found)
        out = self.data[slot]
        if out is MISSING:
            out = self._new_buffer(slot, found, new=self._steps[slot] is NEW)
        return self._bind_declared(slot, op, found, out)

    def _bind_unknown(self, slot: int, op: Any) -> Step:
        """Return the step of a node whose spec is known only once it has run."""
        cutoff = self.cutoffs.get(slot)
        step = self._bind_direct(slot, op, cutoff)
        if step is not None:
            return step
        if isinstance(op, Output):
            step = self._take_output(slot, op.index)
        else:
            compute = self._compute_unknown if isinstance(op, Op) else self._caller(slot)
            step = self._assign(slot, partial(compute, slot))
        return step if cutoff is None else self._guarded(slot, step, cutoff)

    def _take_output(self, slot: int, index: int) -> Step:
        """Return the step of one output of a function that has several."""
        data, (function,) = self.data, self.scheduler.operands(slot)

        def take() -> None:
            data[slot] = data[function][index]

        return take

    def _bind_guarded(self, slot: int, op: Any, found: Spec) -> Step:
        """Return the step of a node with a cutoff.

        It computes into other memory, so that the old value is still there for the comparison.
        """
        scratch = device_of(found.device).empty(found.storage, found.dtype)
        bind = self._bind_kernel if isinstance(op, Op) else self._bind_declared
        step = bind(slot, op, found, scratch)
        return partial(self._keep_or_assign, slot, self.cutoffs[slot], step, scratch)

    def bind_at(self, slot: int, out: Any, operands: Mapping[int, Any]) -> Step:
        """Return the step of an array op with operands or a result outside of the table of values."""
        found, data = self.specs[slot], self.data
        assert found is not None
        if out is None:
            out = data[slot]
            if out is MISSING:
                out = self._new_buffer(slot, found, new=self._steps[slot] is NEW)
        present = [(one, data[one]) for one in operands]
        # Binding reads the table, so the arrays stand there for a moment, and go even after an error.
        try:
            for one, array in operands.items():
                data[one] = array
            return self._bind_kernel(slot, self.ops[slot], found, out)
        finally:
            for one, value in present:
                data[one] = value

    def _other_buffer(self, slot: int, found: Spec) -> None:
        """Give a node another buffer in the middle of its step."""
        self._new_buffer(slot, found, new=False, running=True)

    def _new_buffer(self, slot: int, found: Spec, *, new: bool, running: bool = False) -> Any:
        """Return new memory for the value of a node; ``new``: no step is bound to former memory."""
        if self.policy is not None:
            self.policy.allocate(slot, found.nbytes, running=running)
        buffer = self.data[slot] = self._new_memory(found)
        if not new:
            self.moved(slot)
        if self.policy is not None:
            self.policy.allocated(slot)
        return buffer

    def _bind_view(self, slot: int) -> bool:
        """Make the node's value a view of its parent's value, if the layout allows. Return whether."""
        parents = self.scheduler.topology.parents[slot]
        buffer = self.data[parents[0]]
        # Of several operands, the shapes of the others may decide which part of the first is shown.
        shapes = None if len(parents) == 1 else [self.specs[one] for one in parents]
        if self._view_of.get(slot, MISSING) is buffer and (
            shapes is None or self._part_for.get(slot) == shapes
        ):  # the present view shows this part of this buffer already
            return True
        if self.policy is not None:
            self.policy.stored(slot)
        view = self.view_in(slot, buffer)
        if view is None:
            if self._view_of.pop(slot, None) is not None:
                self.data[slot] = MISSING  # a former view: its memory belongs to the parent
            return False
        if self._steps[slot] is not NEW:
            self.moved(
                slot
            )  # first: if it is cut short, the present view is found to be out of date again
        # In one line: an error in between would leave a view that is none.
        if shapes is None:
            self._view_of[slot], self.data[slot] = buffer, view
        else:
            self._view_of[slot], self.data[slot], self._part_for[slot] = buffer, view, shapes
        return True

    def _bind_direct(self, slot: int, op: Any, cutoff: Cutoff | None) -> Step | None:
        """Return a short step for a Python function all of whose operands are handed out as they lie.

        Return ``None`` if an operand is an array in a buffer, or the function needs more than a call.
        """
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
        """Return the step of a Python function with a declared result, which lies in a buffer."""

        call = self._caller(slot)

        def step() -> None:
            device_of(found.device).assign(shaped(out, found), declared(found, call(slot), op.name))

        return step

    def _bind_kernel(self, slot: int, op: Op, found: Spec, out: Any) -> Step:
        parents = self.scheduler.topology.parents[slot]
        inputs = list(map(self.data.__getitem__, parents))
        binder = find_binder(op.name, found.device, self.registers is not None)
        if found.counts:
            binder = self.compared(slot, op.name, binder)
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
        """Return the step of a kernel; operands may be numbers, or stored in another shape."""
        # The specs of all parents are known: else the spec of this node would not be.
        specs: Any = tuple(map(self.specs.__getitem__, parents))
        if not op.elementwise:
            inputs, out = list(map(shaped, inputs, specs)), shaped(out, found)
        numbers = self._numbers.get((op, found, specs))
        if numbers is None:
            numbers = self._find_numbers(op, found, specs)
        changing: list[tuple[int, int, Literal]] = []
        for i, literal in numbers:
            parent = parents[i]
            if not (self._is_const(parent) or stays(inputs[i], literal.dtype, literal.device)):
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
        """Bind and call a kernel at every run, since some inputs may hold another number each time."""
        for i, parent, literal in changing:
            inputs[i] = self._literal(op, parent, literal)
        return binder(inputs, out, attrs)()

    def _find_numbers(self, op: Op, found: Spec, specs: tuple[Spec, ...]) -> Numbers:
        """Return the operands that are Python numbers, for nodes with these specs; remember them."""
        places = [i for i, one in enumerate(specs) if one.weak is not None]
        dtypes = self._loop(op, specs, found) if places else ()
        numbers = tuple([(i, Literal(dtypes[i], op.elementwise, found.device)) for i in places])
        if len(self._numbers) >= MAX_KINDS:
            self._numbers.clear()
        self._numbers[op, found, specs] = numbers
        return numbers

    def _loop(self, op: Op, specs: tuple[Spec, ...], found: Spec) -> tuple[Any, ...]:
        return op.loop_dtypes(specs) if op.loop_dtypes else (found.dtype,) * len(specs)

    def _literal(self, op: Op, slot: int, key: Literal) -> Any:
        """Return a Python number as an array of the dtype in which the kernel computes."""
        known = self._literals.get(slot)
        if known is None:
            known = self._literals[slot] = {}
        array = known.get(key)
        if array is None:
            number = self.data[slot]
            array = as_array(op, device_of(key.device), number, key.dtype)
            if not hasattr(array, "dtype"):
                return array
            known[key] = array
        return array

    def _is_const(self, slot: int) -> bool:
        return self.ops[slot] is CONST

    # --- values whose spec is known only once they are computed ---------------------------------

    def _assign(self, slot: int, compute: Callable[[], Any]) -> Step:
        """Return a step for a value that is a new object at every run."""
        data = self.data

        def step() -> None:
            data[slot] = compute()

        return step

    def _guarded(self, slot: int, step: Step, cutoff: Cutoff) -> Step:
        """Return such a step for a node with a cutoff: the old value is put back if it is unchanged."""
        data = self.data

        def compare() -> object:
            old = data[slot]
            step()
            if old is not MISSING:
                new, data[slot] = data[slot], old  # the old value stays if the cutoff raises
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
            else:  # a user's cutoff may keep what it is given, so it gets no buffer
                old, new = self.hand_out(slot), _plain(own_copy(found, scratch), found)
            if unchanged(cutoff, old, new):
                return UNCHANGED
        self.overwrite((slot,))
        if self.data[slot] is MISSING:
            self._other_buffer(slot, found)
        device_of(found.device).assign(self.data[slot], scratch)
        return None

    def _compute_unknown(self, slot: int) -> Any:
        """Return the value of an array op whose operands' specs are known only now."""
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
                        f"{type(value).__name__}: {safe_repr(value):.80}. Take the number out, or what "
                        "np.asarray(value) gives, in an rg.lift function first."
                    )
            elif one.weak is None:
                value = shaped(value, one)
            specs.append(one)
            values.append(value)
        result = op.result(tuple(specs), attrs)
        where = (result or specs[0]).device
        dtypes, device = self._loop(op, tuple(specs), result or specs[0]), device_of(where)
        for i, one in enumerate(specs):
            if one.weak is not None and not op.takes_numbers:
                values[i] = as_array(op, device, values[i], dtypes[i])
            if op.elementwise and not one.shape and hasattr(values[i], "dtype"):
                values[i] = device.reshape(values[i], (1,))
        if result is None:  # the kernel finds out how long the result is
            return _kept(find_binder(op.name, where)(values, None, attrs)())
        out = device.empty(storage_shape(result), result.dtype)
        into = out if op.elementwise else shaped(out, result)
        binder = find_binder(op.name, where)
        if result.counts:
            binder = self.compared(slot, op.name, binder)
        binder(values, into, attrs)()
        return _finished(out, result)

    def _caller(self, slot: int) -> Callable[[int], Any]:
        """Return ``_call``, with the device of the function's first array as the current one."""
        for parent in self.scheduler.operands(slot):
            found = self.specs[parent]
            if found is not None and found.kind != "cpu":
                return partial(self._call_on, found.device)
        return self._call

    def _call_on(self, device: str, slot: int) -> Any:
        with on(device):
            return self._call(slot)

    def _call(self, slot: int) -> Any:
        """Return the result of a Python function."""
        hand_out = self.hand_out
        arguments = [hand_out(parent) for parent in self.scheduler.operands(slot)]
        return self.ops[slot].call(arguments)


def _elements(found: Spec | None) -> int:
    """Return the number of elements of a value, as far as its shape is known."""
    return 0 if found is None else math.prod([n or 0 for n in found.shape])


def _plain(buffer: Any, found: Spec) -> Any:
    """Return a buffer in the form that cutoff rules get: read-only, in the value's shape."""
    if found.kind != "cpu":
        return device_of(found.device).hand_out(shaped(buffer, found))[0]
    if found.shape:
        view = buffer.view()
        view.flags.writeable = False
        return view
    return buffer[0]


def _kept(result: Any) -> Any:
    """Return a kernel's own new array, read-only where it can be."""
    if type(result) is not np.ndarray:
        return result
    result.flags.writeable = False
    return result.view() if result.shape else result[()]


def _finished(out: Any, found: Spec) -> Any:
    if found.kind != "cpu":
        return shaped(out, found)
    if found.shape:
        out.flags.writeable = False
        return out.view()
    return out[0]


def declared(found: Spec, value: Any, who: str) -> Any:
    """Return ``value`` as an array. Raise ``ShapeError`` unless it fits the declared spec."""
    seen, array = read_value(value, who)
    fits = seen is not None and seen.shape == found.shape
    if not fits or (seen.weak is None and seen.dtype != found.dtype):  # type: ignore[union-attr]
        raise ShapeError(
            f"{who} declared to return {found!r} but returned {seen or type(value).__name__}. "
            "Return what is declared, or leave shape= and dtype=, or infer, out."
        )
    return array
