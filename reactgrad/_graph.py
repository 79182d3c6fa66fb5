"""The graph: owner of nodes, values, versions and the lock."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from reactgrad import _respec
from reactgrad._around import blocks_due, open_blocks, surrounded
from reactgrad._budget import BudgetedHost, set_limit
from reactgrad._change import Change, respec
from reactgrad._cutoff import read_cutoff
from reactgrad._edit import Edits, edit, insert, remove
from reactgrad._errors import (
    Cancelled,
    DeviceError,
    DTypeError,
    GraphError,
    OutdatedRuleError,
    SetError,
    ShapeError,
    UnsetError,
)
from reactgrad._events import Event, EventLog, events_of, switch_events
from reactgrad._fork import WhatIf, computed_fork, following, fork, twin_of
from reactgrad._host import HandleRef, Host, number_key
from reactgrad._jit import set_jit
from reactgrad._observe import announce, collect
from reactgrad._observers import Observers, Sets
from reactgrad._plan import planned
from reactgrad._quiet import Quiet
from reactgrad._record import Measured, Recording
from reactgrad._remove import Removal, settle
from reactgrad._reuse import Reuse, ReuseBlock
from reactgrad._run import Plan, Run, Running, VarList
from reactgrad._scope import Scope, open_scopes, path_here
from reactgrad._site import user_site
from reactgrad._snapshot import Snapshot, snapshot
from reactgrad._sparing import take_refusal
from reactgrad._stabilize import stabilize
from reactgrad._stats import Stats, take_stats
from reactgrad._store import CONST, INPUT, MISSING, PARAM, Leaf, Lease, frozen_copy, unchanged
from reactgrad._tell import held
from reactgrad._together import FEW
from reactgrad._undo import former_leaves, give_back, note_leaf, note_name
from reactgrad._var import DetachedVar, Var
from reactgrad.autodiff import Program, Programs, find_program, wanted_leaves
from reactgrad.backend import WEAK_SPECS, Spec, device_of_kind, own_copy, read_value, spec
from reactgrad.flow import GradMode, hooks_here, is_grad_enabled, mode_of, open_hooks
from reactgrad.ops import (
    MODE,
    Attrs,
    Handle,
    Op,
    Output,
    alias,
    enter,
    holds_handles,
    leave,
    on_default,
    spread_to,
    stacked,
)
from reactgrad.scheduler import (
    Later,
    Scheduler,
    Serial,
    Threads,
    check_invariants,
    note_read,
)
from reactgrad.scheduler import Run as RawRun
from reactgrad_scheduler.staleness import FAILED

if TYPE_CHECKING:
    from reactgrad._lift import Lifted as _Lifted
    from reactgrad._why import Why

_UNSET = object()
_new = object.__new__
_slot_of: Callable[[Any], int] = attrgetter("_slot")
_graph_of: Callable[[Any], Any] = attrgetter("_graph")


class Graph:
    """A dataflow graph whose nodes know the versions they were computed from.

    Building and setting compute nothing; reading recomputes exactly the stale ancestors of what
    is read. ``with graph:`` makes it the current graph for ``rg.input``, ``rg.param``,
    ``rg.const`` and for ops on plain arrays.

    Parameters
    ----------
    rng : int
        Seed of the random nodes of this graph.
    max_bytes : int, optional
        Memory budget of its values; see ``max_bytes``.
    jit : bool or int
        Whether small kernels in a row run as one call, and in how many threads; see ``jit``.
    executor : Serial or Threads, optional
        How its nodes run; see ``executor``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> w = g.param(3.0, name="w")
    >>> y = (x * w).sum()
    >>> y.value
    np.float64(9.0)
    >>> w.set(4.0)
    >>> y.value
    np.float64(12.0)
    """

    def __init__(
        self,
        rng: int = 0,
        max_bytes: int | None = None,
        jit: int = False,
        executor: Serial | Threads | None = None,
    ) -> None:
        if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
            raise DTypeError(f"Graph(rng={rng!r}): the seed is an integer of at least 0.")
        self._open(rng)
        self._adopt(Scheduler(self._host))
        self.max_bytes = max_bytes
        if jit:
            self.jit = jit
        if executor is not None:
            self.executor = executor

    def _open(self, seed: int) -> None:
        self.seed = seed
        self._host = Host(self)
        self._programs = Programs()
        self._rule: tuple[int, int] | None = None  # whose rule is asked, and in which thread
        self._subgraphs: Any = None  # what was built for them, see ``_subgraph.Pool``
        self._reuse: Reuse | None = None  # what reuse blocks have built, once there was one
        self._observers = Observers()
        self._observed = self._observers.observed  # empty: nobody looks at what happens
        self._events: EventLog | None = None
        self._measured = Measured()
        self._edits: Edits | None = None  # what the innermost open `with g.edit():` has collected
        self._removals: list[Removal] = []  # nodes that an open transaction has removed
        self._lineage: list[tuple[weakref.ref[Graph], int]] = []
        self._noted: list[Any]  # by the open transactions, innermost last
        self._followed: list[Graph] = []  # forks of this graph that are being computed

    def _adopt(self, scheduler: Scheduler) -> None:
        """Take this scheduler, and keep at hand what every read looks at."""
        self._scheduler = scheduler
        self._host.scheduler = scheduler
        self._lock = scheduler.lock
        self._mark = scheduler.staleness.mark
        self._computing = scheduler.computing
        self._pending = scheduler.staleness.pending
        self._noted = scheduler.notes.open
        self._handed = self._host.handed
        self._transient = self._host.transient

    def __copy__(self) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __deepcopy__(self, memo: Any) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __reduce__(self) -> Any:
        raise DTypeError("a graph is not pickled; write it with g.save(path).")

    def __del__(self) -> None:
        # The scheduler and its host know each other: without this, arrays would wait for the
        # cyclic garbage collector.
        host = getattr(self, "_host", None)
        if host is not None:
            host.close()

    # --- leaves ------------------------------------------------------------------------------

    def input(
        self,
        value: Any = _UNSET,
        name: str | None = None,
        *,
        shape: Sequence[int | None] | int | None = None,
        dtype: Any = None,
        cutoff: Any = None,
    ) -> Var:
        """A leaf whose value may be set.

        Parameters
        ----------
        value : array_like or object, optional
            Copied. Lists of numbers become arrays; Python numbers and other objects stay what
            they are. Left out: the input is read as an error until it is set.
        name : str, optional
            Unique in the graph.
        shape : sequence of int or None, optional
            What values must have; ``None`` for a length that may differ from set to set.
        dtype : dtype_like, optional
            Converts the value; what later values are cast to.
        cutoff : None, "equal", rg.tolerance(...) or callable
            When a set value counts as unchanged.

        Returns
        -------
        Var

        Raises
        ------
        ShapeError
            For ragged lists, or a value that does not fit `shape`.
        DTypeError
            For arrays of objects or strings, or a value that cannot be cast to `dtype`.
        GraphError
            If the name is taken.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(shape=(None, 2), dtype="f4")
        >>> y = x.sum(axis=1)
        >>> y.shape
        (None,)
        >>> x.set([[1, 2], [3, 4], [5, 6]])
        >>> y.value
        array([ 3.,  7., 11.], dtype=float32)
        """
        return self._new_leaf(INPUT, value, name, shape, dtype, cutoff)

    def param(
        self,
        value: Any = _UNSET,
        name: str | None = None,
        *,
        shape: Sequence[int | None] | int | None = None,
        dtype: Any = None,
        cutoff: Any = None,
    ) -> Var:
        """A trainable leaf: an array of floats that ``backward`` gives a ``.grad``.

        Parameters
        ----------
        value : array_like
            Copied; floats.
        name, shape, dtype, cutoff
            As for ``input``.

        Returns
        -------
        Var

        Raises
        ------
        DTypeError
            If the value is not made of floats.
        ShapeError, GraphError
            As for ``input``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([1.0, 2.0])
        >>> _ = (w * w).sum().backward()
        >>> w.grad
        array([2., 4.])
        """
        return self._new_leaf(PARAM, value, name, shape, dtype, cutoff)

    def const(self, value: Any, name: str | None = None) -> Var:
        """A leaf whose value never changes.

        Parameters
        ----------
        value : array_like or object
            Copied.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Var

        Raises
        ------
        ShapeError, DTypeError, GraphError
            As for ``input``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> (g.const(2.0) * 3.0).value
        np.float64(6.0)
        """
        return self._new_leaf(CONST, value, name, None, None, None)

    def _new_leaf(
        self, kind: Leaf, value: Any, name: str | None, shape: Any, dtype: Any, cutoff: Any
    ) -> Var:
        what = f"{kind.name} {name!r}" if name is not None else f"this {kind.name}"
        pattern = _read_pattern(what, shape, dtype)
        rule = read_cutoff(cutoff)
        if value is _UNSET:
            if pattern is None and kind is PARAM:
                raise DTypeError(f"{what} needs a value, or shape= and dtype=.")
            found: Spec | None = pattern
            if kind is PARAM and pattern is not None and pattern.dtype.kind != "f":
                raise _not_float(what, pattern)
        else:
            if isinstance(value, Handle):
                raise DTypeError(
                    f"{what} was given a Var. A leaf holds a value of its own: pass v.value, or "
                    "v.snapshot() for a constant; to compute from v, just use v."
                )
            found, value = read_value(value, what)
            if dtype is not None:
                if found is None:
                    raise DTypeError(
                        f"{what} was given {type(value).__name__} ({value!r:.60}), which is no number "
                        f"or array and cannot have dtype={dtype!r}."
                    )
                value = _cast(what, value, np.dtype(dtype).newbyteorder("="))
                found, value = read_value(value, what)
            if kind is PARAM:
                if found is None or found.dtype.kind != "f":
                    raise _not_float(what, found or type(value).__name__)
                found = spec(found.shape, found.dtype, found.device)
            if pattern is not None:
                _check_pattern(what, pattern, found)
        if open_scopes and isinstance(name, str) and name and (path := path_here(self)):
            name = f"{path}/{name}"
        with self._lock:
            self._scheduler.check_idle()
            self._check_name(name, None)
            self._tidy()
            slot = self._scheduler.add((), leaf=True, valued=value is not _UNSET)
            data: Any = MISSING
            if value is not _UNSET:
                plain = found is None or found.weak is not None
                data = value if plain else own_copy(found, value)  # type: ignore[arg-type]
            self._host.add_node(slot, kind, (), found, data, user_site())
            if shape is not None and pattern is not None:
                self._host.patterns[slot] = pattern
            elif dtype is not None and value is _UNSET:
                self._host.dtypes[slot] = np.dtype(dtype).newbyteorder("=")
            if rule is not None:
                self._host.cutoffs[slot] = rule
            var = self._new_var(slot)
            if name is not None:
                self._set_name(slot, name)
            return var

    # --- building ----------------------------------------------------------------------------

    def _apply(self, op: Op, operands: Sequence[Any], attrs: Attrs) -> Var:
        """A new node that computes an op."""
        lock = self._lock
        # As `with lock:`, whose two calls would be a tenth of the cost of a node.
        if not lock.acquire(False):
            lock.visit(None)
        elif lock.gates:
            lock.enter_again()
        try:
            host = self._host
            if host.dropped:
                self._tidy()
            specs = host.specs
            slots: list[int] = []
            found: list[Any] = []
            constants: list[tuple[int, Spec, Any]] = []
            detached: list[int] = []
            for operand in operands:
                kind = type(operand)
                if kind is Var:
                    if operand._graph is not self:
                        raise self._foreign(operand, op.name)
                    slot = operand._slot
                    slots.append(slot)
                    found.append(specs[slot])
                elif kind in WEAK_SPECS:
                    known = host.numbers.get(number_key(operand), -1)
                    if known < 0:
                        constants.append((len(slots), WEAK_SPECS[kind], operand))
                    slots.append(known)
                    found.append(WEAK_SPECS[kind])
                elif isinstance(operand, Handle):
                    if operand._graph is not self:
                        raise self._foreign(operand, op.name)
                    if kind is DetachedVar:
                        detached.append(len(slots))
                    slots.append(operand._slot)
                    found.append(specs[operand._slot])
                elif isinstance(operand, list | tuple) and holds_handles(operand):
                    return self._apply(op, [stacked(one) for one in operands], attrs)
                else:
                    one, value = self._read_operand(op, len(slots), operand)
                    constants.append((len(slots), one, value))
                    slots.append(-1)
                    found.append(one)
            try:
                result = op.known.get((tuple(found), attrs))
            except TypeError:  # attributes that hold arrays are not looked up
                result = None
            if result is None:
                result = self._infer(op, attrs, slots, found)
            reuse = self._reuse
            if reuse is not None and reuse.blocks:
                return self._reused(reuse, op, attrs, slots, result, constants, detached)
            for i, one, value in constants:
                slots[i] = self._constant(one, value)
            return self._add_computed(op, attrs, result, slots, detached)
        finally:
            if not lock.gates or lock.leave_gate():
                lock.release()

    def _infer(
        self, op: Op, attrs: Attrs, slots: Sequence[int], specs: Sequence[Spec | None]
    ) -> Spec | None:
        """What is known of the result of an op; ``None``, if that shows only in values."""
        known = [one for one in specs if one is not None]
        if len(known) == len(specs):
            return op.result(tuple(known), attrs)
        for slot in slots:
            if slot >= 0:
                self._refuse_tuple(slot, op.name)
        return None

    def _read_operand(self, op: Op, position: int, operand: Any) -> tuple[Spec, Any]:
        """An operand that is no node: a number or an array, with its spec."""
        what = f"operand {position + 1} of {op.name}"
        found, value = read_value(operand, what)
        if found is None:
            raise DTypeError(
                f"{what} is {type(value).__name__} ({value!r:.60}): ops compute with "
                "Vars, numbers and arrays. Use rg.lift for other objects."
            )
        return found, value

    def _reused(
        self,
        reuse: Reuse,
        op: Op,
        attrs: Attrs,
        slots: list[int],
        result: Spec | None,
        constants: Sequence[tuple[int, Spec, Any]],
        detached: list[int],
    ) -> Var:
        """The node that computes an op already, or a new one."""
        key = None if -1 in slots else reuse.key(self, op, attrs, slots, detached)
        var = None if key is None else reuse.find(self, key)
        if var is not None:
            return var
        for i, found, value in constants:
            slots[i] = self._constant(found, value)
        var = self._add_computed(op, attrs, result, slots, detached)
        key = reuse.key(self, op, attrs, slots, detached)
        if key is not None:
            reuse.add(self, key, var)
        return var

    def reuse(self) -> ReuseBlock:
        """Let the same op on the same operands give the node that is there already, in a block.

        For loops that write their model anew at every step: the second step builds nothing, and so
        does its ``backward``, and the graph does not grow. In the block of one thread, an op with
        the same attributes on the same nodes, detached in the same places and in the same grad
        mode, returns the node that the same call has returned in this block or in one of the last
        four of the graph, which are kept for that. Such nodes are shared: to edit, hook or pin one
        means all who built it; one that was given a hook, a cutoff, a pin, ``retain_grad`` or
        ``keep`` is not given to others any more, and is built anew.

        Leaves are always new, and what is built on them, too: make inputs before the loop and set
        them in it. Python numbers are no leaves in this sense; an array that is written into an
        expression is one, so make it a const before the loop. Nodes of Python functions, of indices
        that hold arrays and of ``detach_node``, and what gradients are built of, are never shared.

        Returns
        -------
        context manager

        See Also
        --------
        subgraph : Does the same for functions whose arguments are other nodes at each call.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x, w = g.input([1.0, 2.0]), g.param(0.5)
        >>> for batch in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        ...     x.set(batch)
        ...     with g.reuse():
        ...         loss = ((x * w) ** 2).sum()
        ...         run = loss.backward()
        ...     print(len(g), loss.value, w.grad)
        12 1.25 5.0
        12 6.25 30.0
        12 15.25 91.0
        """
        return ReuseBlock(self)

    def _refuse_tuple(self, slot: int, what: str) -> None:
        """Raise ``DTypeError`` for the node of a function that has several outputs."""
        op = self._host.ops[slot]
        if getattr(op, "outputs", None) is not None:
            name = self._host.name
            children = self._scheduler.topology.children[slot]
            outputs = [
                name(child) for child in children if isinstance(self._host.ops[child], Output)
            ]
            raise DTypeError(
                f"{what}: {name(slot)!r} is the tuple of all outputs of function {op.name!r}, which is "
                "no array and has no gradient. Use the outputs, which are nodes of their own, "
                f"{' and '.join(map(repr, outputs))}."
            )

    def _call_lifted(self, op: _Lifted, operands: Sequence[Any], cutoff: Any) -> Any:
        """A new node that calls a Python function; of several outputs the nodes of these."""
        with self._lock:
            self._tidy()
            for operand in operands:
                if operand._graph is not self:
                    raise self._foreign(operand, op.name)
            detached = [i for i, o in enumerate(operands) if type(o) is DetachedVar]
            slots = [operand._slot for operand in operands]
            var = self._add_computed(op, (), op.declared, slots, detached)
            several = op.outputs is not None
            results = self._outputs(var) if several else (var,)
            if cutoff is not None:
                for result in results:  # no plan and no mark knows these nodes yet
                    self._host.cutoffs[result._slot] = cutoff
                    self._scheduler.staleness.cutoffs.add(result._slot)
            return results if several else var

    def _outputs(self, node: Var) -> tuple[Var, ...]:
        """The nodes of all outputs of a function that has several."""
        return tuple(
            [self._output(node, i) for i in range(len(self._host.ops[node._slot].outputs))]
        )

    def _output(self, node: Var, index: int) -> Var:
        """The node of one output of a function, which is made anew if nobody has held it."""
        host, slot = self._host, node._slot
        for child in self._scheduler.topology.children[slot]:
            op = host.ops[child]
            if isinstance(op, Output) and op.index == index:
                return self._handle(child)
        function = host.ops[slot]
        found = function.promised(index, [host.specs[p] for p in self._scheduler.operands(slot)])
        return self._add_computed(function.output(index), (), found, [slot], [])

    def _call_switch(self, op: Any, condition: Any) -> Var:
        """A new node that chooses between two others."""
        with self._lock:
            for branch in op.branches:
                if branch._graph is not self:
                    raise self._foreign(branch, op.name)
            var = self._call_lifted(op, [condition], None)
            self._link_branches(var._slot, (condition._slot, *[b._slot for b in op.branches]))
            return var

    def _link_branches(self, slot: int, operands: tuple[int, ...]) -> None:
        self._host.branches[slot] = operands
        for operand in operands:
            self._host.branch_users.setdefault(operand, set()).add(slot)

    def _add_computed(
        self, op: Any, attrs: Attrs, found: Spec | None, slots: list[int], detached: list[int]
    ) -> Var:
        host = self._host
        slot = self._scheduler.add(tuple(slots))
        host.add_node(slot, op, attrs, found, MISSING, user_site(3))
        if not is_grad_enabled(self):
            host.closed[slot] = None
        elif detached:
            host.closed[slot] = frozenset(detached)
        program = self._programs.building
        if program is not None:
            host.own(slot, program)
        elif open_hooks and (hooks := hooks_here()) is not None:
            host.let_pass([slot], hooks)
        return self._new_var(slot)

    def _copy(self, slot: int) -> Var:
        """Another node that computes the same."""
        host = self._host
        operands = list(self._scheduler.operands(slot))
        var = self._add_computed(host.ops[slot], host.attrs[slot], host.specs[slot], operands, [])
        if slot in host.closed:
            host.closed[var._slot] = host.closed[slot]
        if slot in host.branches:
            self._link_branches(var._slot, host.branches[slot])
        return var

    def _constant(self, found: Spec, value: Any) -> int:
        """The slot of a constant; equal Python numbers share one."""
        host = self._host
        key = None
        if found.weak is not None:
            key = number_key(value)
            slot = host.numbers.get(key)
            if slot is not None:
                return slot
        slot = self._scheduler.add((), leaf=True, valued=True)
        data = value if key is not None else own_copy(found, value)
        host.add_node(slot, CONST, (), found, data, None)
        if key is not None:
            host.numbers[key] = slot
        return slot

    def _full(self, found: Spec, number: float) -> Var:
        """A constant array of one element with the dtype and device of `found`."""
        one = spec((1,) * len(found.shape), found.dtype, found.device)
        with self._lock:
            slot = self._scheduler.add((), leaf=True, valued=True)
            self._host.add_node(slot, CONST, (), one, own_copy(one, number), None)
            return self._new_var(slot)

    def _zeros_like(self, var: Any) -> Var:
        """Zeros for the gradient of `var`, as a node that is never leaf nor stale again."""
        found = self._host.specs[var._slot] or spec(var.shape, var.dtype)
        if found.dtype.kind != "f":  # only now it shows that this is a condition or a count
            found = spec(found.shape, np.dtype(np.float64), found.device)
        return self._zeros(found)

    def _zeros(self, found: Spec) -> Var:
        zero = self._full(found, 0.0)
        return spread_to(zero, found.shape) if found.shape else alias(zero)

    def _foreign(self, operand: Any, op: str) -> GraphError:
        return GraphError(
            f"{op} was given {operand.name!r}, which belongs to another graph than the first "
            "operand. Nodes of two graphs cannot be connected: build both in one graph (leaves "
            "made outside of any `with graph:` belong to the default graph), or pass the value: "
            "g.input(v.value)."
        )

    # --- handles, names, lifetime --------------------------------------------------------------

    def _new_var(self, slot: int) -> Var:
        var = _new(Var)
        var._graph = self
        var._slot = slot
        host = self._host
        ref = host.handles[slot] = HandleRef(var, host.on_death)
        ref.slot = slot
        return var

    def _handle(self, slot: int) -> Var:
        """The one Var of a node."""
        ref = self._host.handles[slot]
        var = ref() if ref is not None else None
        return self._new_var(slot) if var is None else var

    def _live(self, slots: Iterable[int], serials: Mapping[int, int]) -> list[Var]:
        with self._lock:
            serial = self._scheduler.topology.serial
            return [self._handle(s) for s in slots if serial[s] == serials[s]]

    def _tidy(self) -> None:
        """Free the nodes whose handles have died and that nothing else keeps."""
        dropped = self._host.dropped
        # With the nodes that gradients gave out these go, and what they held in turn.
        while dropped and not self._computing and self._programs.building is None:
            slots = []
            while dropped:
                ref = dropped.popleft()
                host = self._host
                if host.anchor_refs.pop(id(ref), None) is not None:
                    host.anchors[ref.slot] -= 1
                    if not host.anchors[ref.slot]:
                        del host.anchors[ref.slot]
                        slots.append(ref.slot)
                elif self._host.handles[ref.slot] is ref:
                    self._host.handles[ref.slot] = None
                    if host.together:
                        host.part(ref.slot)
                    slots.append(ref.slot)
            self._scheduler.release(slots)

    def _check_name(self, name: Any, slot: int | None) -> None:
        if name is None:
            return
        if not isinstance(name, str) or not name:
            raise GraphError(f"a name is a non-empty string, not {name!r:.60}.")
        self._tidy()
        taken = self._host.named.get(name)
        if taken is None:
            taken = self._by_given_name(name)
        if taken is not None and taken != slot:
            raise GraphError(
                f"the name {name!r} is taken by another node of this graph; names are unique. "
                f"Choose another one, or g[{name!r}] to get that node."
            )

    def _set_name(self, slot: int, name: str | None) -> None:
        host = self._host
        self._check_name(name, slot)
        note_name(self, slot)
        former = host.name_of.pop(slot, None)
        if former is not None:
            del host.named[former]
        if name is not None:
            host.name_of[slot] = name
            host.named[name] = slot

    def __getitem__(self, name: str | Var) -> Var:
        """The node with this name; in a fork also the twin of a node."""
        if isinstance(name, Handle):
            return twin_of(self, name)
        with self._lock:
            self._tidy()
            slot = self._host.named.get(name)
            if slot is None:
                slot = self._by_given_name(name)
            if slot is None:
                from difflib import get_close_matches  # slow to import, and only for this

                close = get_close_matches(str(name), self._host.named, 3)
                known = ", ".join(close or sorted(self._host.named)[:12]) or "none yet"
                raise UnknownNameError(
                    f"no node of this graph has the name {name!r} ({'close' if close else 'names'}: "
                    f"{known}). A name alone does not keep a node: hold its Var, or g.keep(var)."
                )
            return self._handle(slot)

    def _by_given_name(self, name: Any) -> int | None:
        """The node whose name was made of its op and number, such as ``tanh_3``."""
        number = str(name).rpartition("_")[2]
        if number.isdecimal() and int(number):  # free slots have the number 0
            slot = self._scheduler.topology.find(int(number))
            if slot is not None and self._host.name(slot) == name:
                return slot
        return None

    def __contains__(self, item: object) -> bool:
        """Whether a Var, or a node with this name, belongs to the graph."""
        with self._lock:
            self._tidy()
            if isinstance(item, str):
                return item in self._host.named or self._by_given_name(item) is not None
            return isinstance(item, Handle) and item._graph is self

    def __iter__(self) -> Iterator[Var]:
        """All nodes in order of creation."""
        return iter(self.nodes)

    def keep(self, var: Var) -> Var:
        """Keep a node alive as long as the graph, and return its Var.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = g.keep(g.input(1.0) + 1.0)
        >>> len(g.nodes)
        3
        """
        slot = self._own(var, "keep")
        with self._lock:
            var = self._handle(slot)
            self._host.kept[slot] = var
        return var

    @property
    def nodes(self) -> VarList:
        """All nodes in order of creation."""
        with self._lock:
            self._tidy()
            return VarList([self._handle(slot) for slot in self._slots()])

    def _slots(self) -> list[int]:
        """The slots of all nodes in order of creation."""
        removed = self._host.removed
        return [slot for slot in self._scheduler.topology.slots() if slot not in removed]

    def _leaves(self, kind: Leaf) -> VarList:
        with self._lock:
            self._tidy()
            ops = self._host.ops
            return VarList([self._handle(slot) for slot in self._slots() if ops[slot] is kind])

    @property
    def inputs(self) -> VarList:
        """All inputs in order of creation."""
        return self._leaves(INPUT)

    @property
    def params(self) -> VarList:
        """All params in order of creation."""
        return self._leaves(PARAM)

    def __len__(self) -> int:
        """Number of nodes, constants included."""
        with self._lock:
            self._tidy()
            return len(self._scheduler.topology) - len(self._host.removed)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Graph:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave()

    def __repr__(self) -> str:
        with self._lock:
            return f"<Graph: {len(self)} nodes; inputs {self.inputs!r}, params {self.params!r}>"

    def _own(self, var: Any, what: str) -> int:
        """The slot of a Var of this graph, or of the node of this name."""
        if isinstance(var, str):
            return self[var]._slot
        if not isinstance(var, Handle):
            several = isinstance(var, list | tuple | VarList)
            hint = " Pass them one by one, f(*vars)." if several else ""
            raise DTypeError(
                f"{what} takes Vars of this graph, or names, not {type(var).__name__}.{hint} A value "
                "becomes a node with g.input(value) or g.const(value)."
            )
        if var._graph is not self:
            origin = any(ref() is var._graph for ref, _ in self._lineage)
            hint = " Its twin in this fork is fork[var]." if origin else ""
            raise GraphError(f"{what} was given a Var of another graph: {var.name!r}.{hint}")  # type: ignore[attr-defined]
        return var._slot

    def _own_all(self, variables: Sequence[Any], what: str) -> tuple[int, ...]:
        """The slots of Vars of this graph, each once."""
        try:
            if set(map(_graph_of, variables)) == {self}:
                return tuple(dict.fromkeys(map(_slot_of, variables)))
        except AttributeError:
            pass  # what is no Var is named below
        return tuple(dict.fromkeys(self._own(var, what) for var in variables))

    # --- setting -----------------------------------------------------------------------------

    def set(self, values: Mapping[Any, Any]) -> None:
        """Set several leaves at once: all of them, or none if one value does not fit.

        Parameters
        ----------
        values : mapping from Var or name to array_like
            New values, copied. Shapes are checked together.

        Raises
        ------
        SetError, ShapeError, DTypeError
            As ``Var.set``; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> a, b = g.input(1.0), g.input(2.0)
        >>> g.set({a: 3.0, b: 4.0})
        >>> (a + b).value
        np.float64(7.0)
        """
        with self._lock:
            if not isinstance(values, Mapping):
                raise DTypeError(
                    f"g.set takes a mapping, g.set({{x: 1.0, y: 2.0}}), not {type(values).__name__}."
                )
            if len(values) > FEW and self._host.together and self._write_together(values):
                return
            pairs = [(self._own(var, "set"), value) for var, value in values.items()]
            if not pairs or not self._write_plainly(pairs):
                self._set_many(pairs)
            elif len(pairs) > FEW:
                self._host.remember(values, [slot for slot, _ in pairs])

    def _write_together(self, values: Mapping[Any, Any]) -> bool:
        """Set leaves that were set together before; ``False``: nothing done, look at each."""
        host, scheduler = self._host, self._scheduler
        if scheduler.notes or scheduler.computing or self._observers.calling is not None:
            return False
        self._tidy()  # so that no other handle has the place of one that died
        first, given = next(iter(values)), values.values()
        together = host.together.get(id(first))
        if host.dropped or together is None or not together.takes(host, values, given):
            return False
        try:
            host.overwrite(together.members)
            together.write(host, given)
        finally:
            scheduler.changed_again(together.leaves)
        if self._observed:
            announce(self, together.leaves.slots)
        return True

    def _write_plainly(self, values: Sequence[tuple[int, Any]]) -> bool:
        """Set leaves where nothing but numbers changes; ``False``: nothing done, look closer."""
        host = self._host
        if self._noted or self._computing or self._observers.calling is not None:
            return False
        for slot, value in values:
            if not host.plain_write(slot, value):
                return False
        slots = [slot for slot, _ in values]
        try:
            host.overwrite(set(slots))
            data = host.data
            for slot, value in values:
                buffer = data[slot]
                if type(buffer) is np.ndarray:
                    buffer[...] = value
                else:
                    host.write_plainly(slot, value)
        finally:  # whatever interrupts this, no leaf has another value at its old version
            self._scheduler.changed_together(tuple(slots))
        if self._observed:
            announce(self, slots)
        return True

    def _write_one_plainly(self, slot: int, value: Any) -> bool:
        """As ``_write_plainly``, for the one leaf of ``Var.set``; takes the lock if that is free."""
        lock = self._lock
        if not lock.acquire(False):
            return False
        try:
            host = self._host
            if (
                self._noted
                or self._computing
                or lock.gates  # or an observer is called
                or not host.plain_write(slot, value)
            ):
                return False
            try:
                host.write_plainly(slot, value)
            finally:
                self._scheduler.changed(slot)
            if self._observed:
                announce(self, (slot,))
            return True
        finally:
            lock.release()

    def _set_many(self, values: Sequence[tuple[int, Any]], *, adopt: bool = False) -> None:
        self._scheduler.check_idle()
        if self._observers.calling is not None:
            self._queue_sets(values)
            return
        ready: list[tuple[int, Spec | None, Any]] = []
        for slot, value in values:
            found, new = self._read_set(slot, value)
            if not self._cut_off(slot, found, new):
                ready.append((slot, found, new))
        if not ready:
            return
        specs = self._host.specs
        reshaped = {slot: found for slot, found, _ in ready if found is not specs[slot]}
        former = former_leaves(self, [slot for slot, _, _ in ready])
        if reshaped:
            respec(self, reshaped)
        for slot, before in former.items():
            note_leaf(self, slot, before)
        try:
            for slot, found, new in ready:
                self._host.write_leaf(slot, found, new, adopt=adopt)
        finally:
            self._scheduler.changed_together(tuple([slot for slot, _, _ in ready]))
        if self._observed:
            announce(self, [slot for slot, _, _ in ready])

    def _queue_sets(self, values: Sequence[tuple[int, Any]]) -> None:
        """Check sets that an observer asks for, and keep them until all have been called."""
        observers, specs = self._observers, self._host.specs
        ready = [(slot, *self._read_set(slot, value)) for slot, value in values]
        reshaped = {slot: found for slot, found, _ in ready if found is not specs[slot]}
        sets: Sets = []
        for slot, found, new in ready:
            if found is not None and found.weak is None:
                new = own_copy(found, new)
                if not found.shape:
                    new = device_of_kind(found.kind).reshape(new, ())
            sets.append((self._handle(slot), new))
        if reshaped:
            self._tidy()
            _respec.check(self, reshaped)
        assert observers.calling is not None
        observers.queue.append((observers.calling, sets))

    def _announce(self, slots: Iterable[int] = ()) -> None:
        """Let observers hear of a change that was made; these nodes have new values by it."""
        if self._observed:
            announce(self, slots)

    def _hold(self) -> held:
        """Hold back observers for a block; for what makes several steps."""
        return held(self)

    def _read_set(self, slot: int, value: Any) -> tuple[Spec | None, Any]:
        """A new value for a leaf, checked and in the leaf's dtype."""
        host = self._host
        kind, old = host.ops[slot], host.specs[slot]
        if host.plain_write(slot, value):
            return old, value
        name = host.name(slot)
        if kind is CONST:
            raise SetError(
                f"{name!r} is a constant and cannot be set. Make it an input, g.input(value), if "
                "it changes."
            )
        if not isinstance(kind, Leaf):
            raise SetError(
                f"{name!r} is computed by {host.describe_op(slot)} and cannot be set: its value "
                "follows its parents'. Set one of the inputs it depends on."
            )
        what = f"{kind.name} {name!r}"
        if kind is MODE and type(value) is not bool:
            raise SetError(f"{what} was given {value!r:.60}: write g.train() or g.eval().")
        if isinstance(value, Handle):
            raise DTypeError(
                f"{what} was given a Var. Write {name}.set(v.value) to copy its present value."
            )
        found, new = read_value(value, what)
        pattern = host.patterns.get(slot)
        if old is None:  # an input of any object, or one that was never set
            if host.data[slot] is MISSING:
                wanted = host.dtypes.get(slot)
                return (
                    (found, new) if wanted is None else read_value(_cast(what, new, wanted), what)
                )
            return None, value if found is None or found.weak is not None else frozen_copy(new)
        if found is None:
            raise DTypeError(
                f"{what} holds {old!r} and was given {type(value).__name__} ({value!r:.60}), "
                "which is no number or array. Make another input for such objects."
            )
        if old.weak is not None and pattern is None:
            # A number stays a Python number, also where NumPy's scalar types bring it.
            if found.weak is None and not found.shape and found.kind == "cpu":
                found, new = read_value(np.asarray(new).item(), what)
            # Where gradients exist an integer counts as the float that it stands for.
            integer = found is not None and found.weak in (int, bool)
            if integer and old.weak is float and self._programs.read(slot):
                return old, new
            return found, new
        if found.weak is int and abs(new) > 1 << 1023 and old.dtype.kind in "fc":
            raise DTypeError(
                f"{what} holds {old.dtype}, into which an integer of that size does not fit."
            )
        if not np.can_cast(_castable(found, new), old.dtype, "same_kind"):
            raise DTypeError(
                f"{what} holds {old.dtype} and was given {found!r}: that would lose what the dtype "
                f"cannot hold. Convert it first, value.astype('{old.dtype}'), or make the "
                f"{kind.name} with dtype='{found.dtype}'."
            )
        if old.dtype.kind in "iu" and found.kind == "cpu":
            new = _cast(what, new, old.dtype)
        if found.kind != old.kind and found.kind != "cpu":
            raise DeviceError(
                f"{what} lives on {old.device} and was given a value on {found.device}."
            )
        if old.kind != "cpu":
            new = device_of_kind(old.kind).asarray(new, old.dtype)
        elif found.dtype != old.dtype:
            # Here, where nothing has changed yet; overflow to infinity is no error.
            with np.errstate(all="ignore"):
                new = np.asarray(new).astype(old.dtype)
        found = spec(found.shape, old.dtype, old.device)
        if pattern is not None:
            _check_pattern(what, pattern, found)
        return found, new

    def _cut_off(self, slot: int, found: Spec | None, new: Any) -> bool:
        """Whether the cutoff of a leaf calls a new value unchanged."""
        rule = self._host.cutoffs.get(slot)
        if rule is None or self._host.data[slot] is MISSING:
            return False
        if found is not None and found.weak is None and found.kind == "cpu":
            new = np.asarray(new, found.dtype)[()]
        try:
            return unchanged(rule, self._host.hand_out(slot), new)
        except Exception as error:  # no node runs here that would say so
            error.add_note(self._host.explain(slot))
            raise

    def _set_cutoff(self, slot: int, rule: Any) -> None:
        self._scheduler.attend()
        if rule is None:
            if self._host.cutoffs.pop(slot, None) is not None:
                self._host.former_cutoffs[slot] = self._scheduler.version(slot)
        else:
            self._host.own_view(slot)
            self._host.cutoffs[slot] = rule
        self._host.moved(slot)
        if not self._scheduler.leaf[slot]:
            self._scheduler.cutoff_changed(slot, rule is not None)
        if slot in self._scheduler.errors:  # its cutoff may be what raised
            self._scheduler.invalidate(slot)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the sets and edits of a block all-or-nothing.

        Reads inside see the new values; other threads see nothing before the end. An exception
        inside gives back the values of leaves, the topology, removed nodes, pins, names, cutoffs
        and what is frozen, with new versions, and is passed on. Nodes that were built inside stay,
        without the names they got there. Transactions nest.

        What was given back counts as changed: what depends on it runs again. The block belongs to its
        thread and holds the graph: no ``await`` in it, which would let other tasks of the thread in,
        and threads that need several graphs in transactions enter them in the same order.

        Raises
        ------
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> try:
        ...     with g.transaction():
        ...         x.set(2.0)
        ...         raise ValueError
        ... except ValueError:
        ...     pass
        >>> x.value
        1.0
        """
        observers = self._observers
        with held(self):
            ran, queued = observers.ran, len(observers.queue)
            # Inside a block of edits, those that are collected here go with what is set here.
            collected = edit(self) if self._edits is not None else nullcontext()
            try:
                with self._scheduler.transaction(partial(give_back, self)), collected:
                    yield
            except BaseException:
                observers.ran = ran
                del observers.queue[queued:]
                raise
            finally:
                settle(self)
            observers.ran = True
            observers.join(queued)

    # --- reading -----------------------------------------------------------------------------

    def forward(
        self,
        *targets: Var | str,
        retry: bool = False,
        timeout: float | None = None,
        executor: Serial | Threads | None = None,
    ) -> Run:
        """Make nodes clean, running exactly their stale ancestors.

        Parameters
        ----------
        *targets : Var or str
            Nodes of this graph, or their names; none does nothing.
        retry : bool
            Whether nodes that raised run again although their parents are unchanged; also those
            whose error a function handled that the targets need.
        timeout : float, optional
            Seconds after which no further node is begun; 0 or less: none is begun at all.
        executor : Serial or Threads, optional
            How the nodes run, for this read in place of the graph's own ``executor``. A read inside
            of a function runs as the read does that the function is part of.

        Returns
        -------
        Run

        Raises
        ------
        Cancelled
            After `timeout`, or by ``cancel``; what had not run is stale, the rest is done.
        DTypeError
            If `timeout` is no number, or `executor` none.
        Exception
            The first error of a node, after all that does not depend on it has run.
            ``last_run.failed`` has all.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> a, b = x + 1.0, x + 2.0
        >>> len(g.forward(a, b).ran)
        2
        """
        slots = self._own_all(targets, "forward")
        limit = _read_timeout(timeout)
        if executor is not None:
            with self._lock, self._running_by(executor):
                return self.forward(*targets, retry=retry, timeout=timeout)
        with self._lock:
            self._tidy()
            if limit is None:
                return Run(self, self._refresh(slots, retry=retry))
            if limit <= 0.0:
                left = self._left_to_run(slots, retry)
                if left:
                    self._scheduler.cancel()  # also the run that this is read in
                    self._raise_cancelled(left)
                return Run(self, self._refresh(slots))
            timer = threading.Timer(limit, self._scheduler.cancel)
            timer.daemon = True
            timer.start()
            try:
                return Run(self, self._refresh(slots, retry=retry))
            finally:
                timer.cancel()

    @contextmanager
    def _running_by(self, executor: Serial | Threads) -> Iterator[None]:
        """Let reads of a block run in another way."""
        if self._computing:
            _read_executor(executor)
            yield
            return
        former, self.executor = self.executor, executor
        try:
            yield
        finally:
            self.executor = former

    @property
    def executor(self) -> Serial | Threads:
        """How nodes run: one after the other, or independent ones at the same time.

        May be set; for one read, ``forward(executor=...)``. What comes out is the same: values,
        versions, what ran in which order, what failed, what observers hear. With ``Threads`` Python
        functions run in other threads than the one that reads, with its context variables and grad
        mode, and may still read nodes and wait for each other's values. Which function of a cycle
        that is made by reading is refused its read may differ.

        One after the other they run anyway where each is looked at: while ``record``, ``events`` or
        ``rg.profile`` is on, in anomaly mode, under ``saved_tensors_hooks`` and ``checkpoint``, and
        with ``max_bytes``. Forks inherit it; files do not hold it, since it belongs to the machine.

        Examples
        --------
        >>> import threading
        >>> import reactgrad as rg
        >>> meeting = threading.Barrier(2)  # which nobody passes alone
        >>> meet = rg.lift(lambda v: meeting.wait(10))
        >>> g = rg.Graph(executor=rg.Threads(2))
        >>> x = g.input(1)
        >>> (meet(x) + meet(x)).item()
        1
        """
        return self._scheduler.executor or Serial()

    @executor.setter
    def executor(self, executor: Serial | Threads) -> None:
        with self._lock:
            self._scheduler.check_idle()
            self._scheduler.executor = _read_executor(executor)

    def cancel(self) -> None:
        """Stop the run under way before its next node; called from another thread.

        The read raises ``Cancelled``; what had run is kept, the rest is stale. Does nothing if no
        run is under way.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().cancel()
        """
        self._scheduler.cancel()

    @property
    def running(self) -> Running | None:
        """The run under way, or ``None``; for other threads, which need not wait to ask.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().running is None
        True
        """
        return Running(self._scheduler) if self._computing else None

    def _refresh(self, slots: tuple[int, ...], retry: bool = False) -> RawRun:
        if self._observed and not self._observers.held:
            with held(self):
                return self._refresh(slots, retry=retry)
        if open_blocks and not self._computing and (blocks := blocks_due(self)):
            with surrounded(self, blocks):
                return self._refresh(slots, retry=retry)
        try:
            around = self._as_fork if self._lineage else Quiet
            run = self._scheduler.refresh(slots, retry, around)
        except BaseException as error:
            if not isinstance(error, Exception):  # interrupted in the middle
                if not self._computing and not isinstance(error, Later):
                    self._scheduler.forget()  # versions tell how far it got
                if self._observed:
                    collect(self, self._scheduler.last_run)
            raise
        if self._observed:
            collect(self, run)
        failure = self._scheduler.error_of(slots, run) if run.failed else None
        outdated = run.failed and OutdatedRuleError in map(type, run.failed.values())
        if (
            outdated and self._follow_rules()
        ):  # else who failed may have another error to raise by now
            del failure
            return self._refresh(slots, retry=retry)
        if self._transient and not self._computing:
            failure = take_refusal(self._host, failure)
        try:
            if self._scheduler.cancelled:
                self._check_cancelled(slots)
            if failure is not None:
                raise failure
            return run
        finally:
            del failure  # its traceback holds this frame

    @contextmanager
    def _as_fork(self) -> Iterator[None]:
        """What runs of a fork are inside of."""
        with Quiet(), following(self):
            yield

    def _follow_rules(self) -> bool:
        """Build gradients anew whose rules saw what is no more so; whether there were any."""
        programs = self._programs
        if self._computing or programs.under_way:
            return False
        if programs.waiting and self._subgraphs is not None:
            with self._subgraphs.fed(self):
                return self._follow_outdated()
        return self._follow_outdated()

    def _follow_outdated(self) -> bool:
        programs = self._programs
        outdated = [(program, program.outdated()) for program in programs.in_order()]
        waiting = [slot for _, slots in outdated for slot, waits in slots.items() if waits]
        unset: set[int] = set()
        for slot in dict.fromkeys(waiting):
            try:
                self._refresh((slot,))
            except UnsetError:  # it goes on waiting
                unset.add(slot)
        programs.following = True
        try:
            with Change(self) as change:
                for program, slots in outdated:
                    if slots.keys() - unset:
                        change.update(program, slots.keys() - unset, ())
                change.follow()
        finally:
            programs.following = False
        programs.waiting = bool(unset)
        return any(slots.keys() - unset and not program.broken for program, slots in outdated)

    def _check_cancelled(self, slots: Sequence[int]) -> None:
        """Raise if a cancelled run left one of these nodes stale."""
        stale = self._scheduler.truly_stale(slots)
        if not self._computing:
            self._scheduler.cancelled = False
        if stale:
            self._raise_cancelled(len(stale))

    def _raise_cancelled(self, left: int) -> NoReturn:
        if not self._computing:
            self._scheduler.cancelled = False
        raise Cancelled(
            f"the run was cancelled, or its time was up, with {left} nodes still to run; what "
            "had run is kept. Read again to go on."
        )

    def _left_to_run(self, slots: Sequence[int], retry: bool) -> int:
        """How many nodes a read of these would run at least; runs nothing."""
        scheduler = self._scheduler
        left = {*scheduler.truly_stale(slots), *scheduler.dropped.intersection(slots)}
        if retry:  # also what functions handled
            ancestors = scheduler.topology.ancestors(slots)
            left.update([slot for slot in ancestors if self._mark[slot] == FAILED])
        else:
            left = {slot for slot in left if self._mark[slot] != FAILED}
        return len(left)

    def _value(self, slot: int) -> Any:
        """The clean value of a node, for callers."""
        if self._followed:
            fork = computed_fork(self)
            if fork is not None:
                return twin_of(fork, self._handle(slot)).value
        if self._computing:
            if slot not in self._transient and note_read(self._scheduler, slot):
                value = self._handed.get(slot, MISSING)
                missing = value is MISSING or type(value) is Lease
                return self._hand_out(slot) if missing else value
        else:
            lock = self._lock
            if lock.acquire(False):
                try:
                    stale = self._pending or self._mark[slot]
                    if not (lock.gates or self._computing or (stale and self._observed)):
                        if stale:
                            self._refresh((slot,))
                        value = self._handed.get(slot, MISSING)
                        missing = value is MISSING or type(value) is Lease
                        return self._hand_out(slot) if missing else value
                finally:
                    lock.release()
        while True:
            try:
                return self._value_now(slot)
            except Later as later:  # another thread computes what this one needs
                self._lock.wait_after(later)

    def _value_for_rule(self, slot: int) -> Any:
        """The value of a function's node for a rule that is built anew when it is so no more."""
        return self._value(slot)

    def _rule_saw(self, program: Program) -> None:
        """Hear that a rule has read what only this program will build anew when it is so no more."""

    def _value_now(self, slot: int) -> Any:
        lock = self._lock  # as `with lock`, but it says what it reads
        if not lock.acquire(False):
            lock.visit(slot)
        elif lock.gates:
            lock.enter_again(slot)
        try:
            if self._computing:
                self._scheduler.depend(slot)
            if self._pending or self._mark[slot]:
                if self._observed and not self._observers.held:
                    with held(self):  # who may set what the value comes from
                        return self._value(slot)
                self._refresh((slot,))
            return self._hand_out(slot)
        finally:
            if not lock.gates or lock.leave_gate():
                lock.release()

    def _hand_out(self, slot: int) -> Any:
        """The value of a clean node, handed out without the lock the next time."""
        value = self._host.hand_out(slot)
        if value is MISSING:
            value = self._clean_value(slot)
        self._handed.setdefault(slot, value)
        return value

    def _clean_value(self, slot: int) -> Any:
        """The value of a clean node, computed again if it was released."""
        value = self._host.hand_out(slot)
        if value is MISSING:
            self._refresh((slot,))
            value = self._host.hand_out(slot)
            if value is MISSING:
                raise Cancelled(
                    f"the run was cancelled while the released value of {self._host.name(slot)!r} was "
                    "computed again. Read again to go on."
                )
        return value

    def _clean_values(self, slots: Iterable[int]) -> list[Any]:
        """The values of clean nodes; those that were released are computed again."""
        hand_out, again = self._host.hand_out, self._clean_value
        return [again(slot) if (value := hand_out(slot)) is MISSING else value for slot in slots]

    def stabilize(self) -> int:
        """Bring all observed nodes up to date, and call their observers, until nothing is left to do.

        Each pass reads all nodes that are observed (for removal only does not count) and calls who
        has to hear of something; another one follows if observers have changed anything. What
        observers of errors are told of is not raised; whatever fails or raises, all other nodes are
        brought up to date and all other observers called. Inside a transaction nobody is called
        before its end; inside an observer it does nothing.

        Returns
        -------
        int
            The number of passes; 0 inside an observer.

        Raises
        ------
        ExceptionGroup
            What observers raised in all passes, and behind that what else would be raised.
        StabilizeError
            If observers still change what is observed after 100 passes.
        Exception
            The error of the first observed node that the last pass leaves without a value and that
            has no observer of errors.
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> observer = y.observe(lambda old, new: print(old, "->", new))
        >>> _ = g.stabilize()
        None -> 2.0
        >>> x.set(3.0)
        >>> _ = g.stabilize()
        2.0 -> 6.0
        """
        with self._lock:
            return stabilize(self)

    @property
    def last_run(self) -> Run:
        """What the latest read of this graph did."""
        with self._lock:
            return Run(self, self._scheduler.last_run)

    def plan(self, *targets: Var | str, gradient: bool = False) -> Plan:
        """What a read would run; runs nothing.

        Of a choice whose condition is up to date, the branch that it takes is planned. What else a
        function reads while it runs nobody knows before: the plan takes it to read what it read the
        last time, and is a guess where it does not.

        Parameters
        ----------
        *targets : Var or str
            What would be read; nodes or their names.
        gradient : bool
            Whether to plan ``backward`` of one target instead: its stale adjoints, and the
            values they need.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = x + 1.0
        >>> len(g.plan(y)), y.is_stale
        (1, True)
        """
        with self._lock:
            slots = [self._own(target, "plan") for target in targets]
            if gradient:
                for target in [self._handle(slot) for slot in slots]:
                    leaves = wanted_leaves(self, target._slot)
                    program, held = find_program(target, None)
                    slots += [var._slot for var in program.adjoints(leaves, held)]
            stale = planned(self, slots)
            serial, mean = self._scheduler.topology.serial, self._measured.mean
            times = [mean(slot, serial[slot]) for slot in stale]
            return Plan([self._handle(slot) for slot in stale], times)

    # --- explaining --------------------------------------------------------------------------

    def why(self, var: Var | str) -> Why:
        """Why a node is clean or stale, ran, was cut off, failed, or has no gradient.

        Runs nothing. While ``events`` is on, it also knows the line of every set and edit, and
        all versions exactly.

        Parameters
        ----------
        var : Var or str
            A node of this graph, or its name.

        Returns
        -------
        Why

        Raises
        ------
        DTypeError, GraphError
            If `var` is no node of this graph.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> a = x * 2.0
        >>> b = a + 1.0
        >>> a.name, b.name = "a", "b"
        >>> _ = b.value
        >>> x.set(2.0)
        >>> print(g.why(b))
        b is stale (version 1):
          b depends on a, which is stale
          a depends on x: version 1 -> 2
        because
          x was set: version 1 -> 2
        (g.events = True, before a change, keeps the line that made it)
        """
        from reactgrad._why import explain

        return explain(self, self._handle(self._own(var, "why")))

    def record(self, *, snapshots: bool = False) -> Recording:
        """Record every run of a ``with`` block, node by node.

        Nothing is recorded, and nothing is paid, outside of such blocks.

        Parameters
        ----------
        snapshots : bool
            Whether to keep a snapshot of the whole graph after each run, too: for ``export_html``.

        Returns
        -------
        Recording
            With ``runs``, ``calls``, ``table()``, ``str()`` and ``to_chrome_trace(path)``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0)) + 1.0
        >>> with g.record() as log:
        ...     _ = y.value
        >>> [call.op for call in log.calls], len(log.runs)
        (['tanh', 'add'], 1)
        """
        return Recording(self, snapshots)

    def stats(self) -> Stats:
        """The graph in figures: size, memory, and what all its runs did.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> y = x.sum()
        >>> _ = y.value
        >>> print(g.stats())
        nodes      2 (1 of them leaves), 1 edges
        values     24 B
        runs       1: ran 1, cut off 0, rebuilt 0, failed 0
        plans      0 cached, 0 hits, 1 misses
        observers  0
        """
        return take_stats(self)

    @property
    def max_bytes(self) -> int | None:
        """The memory that values may take, in bytes; ``None``: no limit.

        Above it, values that cost little to compute again for the memory they take, and have not been
        used for long, are released: before a node needs memory, and after a read. They keep their
        versions, and are computed again, at these versions, when something needs them
        (``run.rebuilt``); what is read and what runs stays the same. Never released are leaves, pinned
        and observed values, values with a cutoff, what ``backward(retain_graph=True)`` is to keep, and
        what callers hold without a copy. Where these alone, with what one node is computed from, need
        more, reads go on and ``BudgetWarning`` tells once. May be set at any time; forks and saved
        graphs have the same limit, each for itself.

        A Python function whose value was released is called again for it, and must return the same.
        A cutoff that is set on a stale node whose value was released has nothing to compare with: the
        next value is a change.
        Scratch memory of kernels and cutoffs is not counted.

        Examples
        --------
        >>> import numpy as np
        >>> import reactgrad as rg
        >>> g = rg.Graph(max_bytes=40_000)
        >>> x = g.input(np.ones(1000))
        >>> chain = [x + 1.0]
        >>> for _ in range(99):
        ...     chain.append(chain[-1] + 1.0)
        >>> chain[-1].value[0]
        np.float64(101.0)
        >>> g.stats().peak_bytes, g.stats().evicted
        (40000, 96)
        >>> run = g.forward(chain[50])
        >>> len(run.ran), chain[50] in run.rebuilt, chain[50].value_version
        (0, True, 1)
        """
        host = self._host
        return host.limit if isinstance(host, BudgetedHost) else None

    @max_bytes.setter
    def max_bytes(self, limit: int | None) -> None:
        set_limit(self, limit)

    @property
    def jit(self) -> int:
        """Whether small kernels in a row run as one call, for graphs of scalars and short vectors.

        Off by default. When a read repeats, neighbours in its plan that compute with floats (and
        booleans) of at most 8,192 elements, element by element or as a sum of all elements, become a
        program for one loop that numba has compiled; values and adjoints alike. The loop is the same
        for all graphs, so an edit compiles nothing, and it calls what NumPy itself would call, so
        values have the same bits; versions and what runs are the same, too. Other nodes, nodes behind a
        cutoff, and reads that happen once, run as ever. The first use in a process imports numba.
        Ops that have compiled loops of their own (``rg.extend``), such as the neurons of
        ``reactgrad.neat``, are computed by these, with any number of elements, whether the read repeats
        or not; they say how far results agree with NumPy's.

        ``True`` is 1: the thread that reads. A larger number: so many threads share the elements
        where this pays, from some 500,000 elements in a row of steps on; the bits stay the same.

        May be set at any time. Forks have it, too; files do not hold it, since it belongs to the
        machine.

        Warns
        -----
        MissingExtraWarning
            If numba is not there: then it stays off. ``pip install "reactgrad[jit]"``.

        Examples
        --------
        >>> from importlib.util import find_spec
        >>> import reactgrad as rg
        >>> def last_of_five(jit):
        ...     g = rg.Graph(jit=jit)
        ...     x = g.input(1.0)
        ...     y = x
        ...     for w in (0.1, 0.2, 0.3):
        ...         y = rg.tanh(y * w)
        ...     for number in range(5):
        ...         x.set(float(number))
        ...         value = y.value
        ...     return value, y.value_version
        >>> last_of_five(jit=find_spec("numba") is not None) == last_of_five(jit=False)
        True
        """
        registers = self._host.registers
        return False if registers is None else registers.threads

    @jit.setter
    def jit(self, jit: int) -> None:
        set_jit(self, jit)

    @property
    def events(self) -> tuple[Event, ...] | None:
        """What happened to the graph, in order; ``None`` unless it was switched on.

        ``g.events = True`` begins the log, ``g.events = 500`` also limits it to the latest 500
        events (10,000 by default), ``g.events = False`` ends and drops it. Off, it costs nothing.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = x + 1.0
        >>> y.name = "y"
        >>> g.events = True
        >>> x.set(2.0)
        >>> _ = y.value
        >>> [(event.kind, event.node, event.after) for event in g.events]
        [('set', 'x', 2), ('run', 'y', 0), ('ran', 'y', 1)]
        """
        return events_of(self)

    @events.setter
    def events(self, on: bool | int) -> None:
        switch_events(self, on)

    # --- edits ---------------------------------------------------------------------------------

    def edit(self) -> AbstractContextManager[Any]:
        """Collect the edits of a block and make them together at its end.

        Reads inside see the old graph. What counts is the graph that the edits lead to: an edge may
        be turned round, and shapes may fit each other only in the end. Where that graph would have
        a cycle, or shapes that do not fit, or gradients that exist already would not any more, and
        where an exception ends the block, none of the edits is made.

        Sets, pins and everything else but ``replace_parent``, ``rewire``, ``insert`` and ``remove``
        act at once, and stay if the block fails; put the block into ``g.transaction()`` to have all
        of it undone. Blocks nest: an inner one hands its edits to the outer one, and so does a
        transaction inside a block, unless it fails.

        Raises
        ------
        CycleError
            With the whole cycle in ``.path``.
        EditError
            If a node that is removed is still used.
        ShapeError, DTypeError
            If operands do not fit a node or what depends on it.
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> a = x + 1.0
        >>> b = a * 10.0
        >>> with g.edit():  # x -> a -> b becomes x -> b -> a
        ...     a.replace_parent(0, b)
        ...     b.replace_parent(0, x)
        >>> b.value, a.value
        (np.float64(10.0), np.float64(11.0))
        """
        return edit(self)

    def insert(
        self,
        parent: Var,
        child: Var,
        build: Callable[[Any], Any],
        position: int | None = None,
    ) -> Var:
        """Split the edge from one node to another by a new node.

        Costs the new nodes, however large the graph is; a detached edge stays detached.

        Parameters
        ----------
        parent, child : Var
            The ends of the edge.
        build : callable
            Builds what `child` shall take instead of `parent`, from `parent`.
        position : int, optional
            Which operand of `child`; by default all that are `parent`.

        Returns
        -------
        Var
            What `build` returned.

        Raises
        ------
        EditError
            If there is no such edge.
        CycleError, ShapeError, DTypeError
            As ``Var.replace_parent``; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x, w = g.input(2.0), g.param(0.0)
        >>> y = x * 3.0
        >>> h = g.insert(x, y, lambda v: rg.tanh(v * w))
        >>> y.parents[0] is h, y.value
        (True, np.float64(0.0))
        """
        return insert(self, parent, child, build, position)

    def remove(self, *variables: Var) -> None:
        """Take nodes that nobody uses out of the graph.

        Their Vars are of no use afterwards and say so, their names are free, their observers of
        kind ``"removed"`` are called, the others end. Gradients that were built on a removed node
        go on. Nodes that are simply not held any more go by themselves.

        Raises
        ------
        EditError
            If a node that stays is computed from one of them; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x + 1.0
        >>> y.name = "y"
        >>> g.remove(y)
        >>> "y" in g, y
        (False, <Var 'y', removed>)
        """
        remove(self, variables)

    # --- gradients -----------------------------------------------------------------------------

    def scope(self, name: str) -> Scope:
        """A block, or a decorated function, whose nodes are a named part of the model.

        Pictures draw a frame around them, and fold it: ``g.draw("x.svg", fold=1)``. The names of nodes
        that are made inside begin with the scope's: those of leaves that are given one, ``name="w"``,
        and those that nobody has named. Scopes nest, are of their thread, and come along to forks and
        files. A name set later, ``y.name = "h"``, is taken as it is. Nodes of gradients belong to none.

        Parameters
        ----------
        name : str
            Not empty; ``"block1/attention"`` is a scope in a scope.

        Returns
        -------
        context manager and decorator

        Raises
        ------
        GraphError
            If it is no such name.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> with g.scope("layer1"):
        ...     w = g.param([3.0, 4.0], name="w")
        ...     y = rg.tanh(w * x)
        >>> w.name, y.name, g["layer1/w"] is w
        ('layer1/w', 'layer1/tanh_4', True)
        """
        return Scope(self, name)

    def no_grad(self) -> GradMode:
        """``rg.no_grad`` for this graph only: for a ``with`` block or a decorated function.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g, other = rg.Graph(), rg.Graph()
        >>> w, v = g.param(2.0), other.param(2.0)
        >>> with g.no_grad():
        ...     y, z = w * w, v * v
        >>> y.requires_grad, z.requires_grad
        (False, True)
        """
        return GradMode(False, self)

    def enable_grad(self) -> GradMode:
        """``rg.enable_grad`` for this graph only.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> with rg.no_grad(), g.enable_grad():
        ...     rg.is_grad_enabled(g), rg.is_grad_enabled()
        (True, False)
        """
        return GradMode(True, self)

    @property
    def mode(self) -> Var:
        """Whether the graph is in train mode, as a node: nodes computed from it follow it.

        A graph begins in train mode. The mode belongs to the graph, not to a thread, has nothing to
        do with ``no_grad``, and comes along to forks and files; it is none of ``inputs``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(3.0)
        >>> y = rg.switch(g.mode, x * 2.0, x)
        >>> y.value
        np.float64(6.0)
        >>> _ = g.eval()
        >>> y.value
        3.0
        """
        return mode_of(self)

    @property
    def training(self) -> bool:
        """Whether the graph is in train mode; a function that asks runs again when it changes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> g.training
        True
        """
        return self.mode.value

    def train(self, mode: bool = True) -> Graph:
        """Switch to train mode; what was computed from the mode becomes stale if that is news.

        It stays so until the next switch; to evaluate for a while only, evaluate a fork.

        Parameters
        ----------
        mode : bool
            ``False`` for eval mode.

        Returns
        -------
        Graph
            Itself.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> noisy = rg.lift(lambda x, training: x + 0.5 if training else x)(x, g.mode)
        >>> with g.whatif() as w:
        ...     w.eval()[noisy].value
        1.0
        >>> noisy.value
        1.5
        """
        if self.training is not mode:
            self.mode.set(mode)
        return self

    def eval(self) -> Graph:
        """Switch to eval mode; see ``train``."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Set ``.grad`` of every node to ``None``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(1.0)
        >>> _ = (w * w).backward()
        >>> g.zero_grad()
        >>> w.grad is None
        True
        """
        with self._lock:
            self._host.grads.clear()

    def _live_programs(self) -> list[tuple[int, dict[Any, Any]]]:
        """The gradient programs that live handles keep, by the slot of their output."""
        found: dict[int, dict[Any, Any]] = dict(self._host.twin_programs)
        for program in self._programs.in_order():
            ref = self._host.handles[program._output]
            var = ref() if ref is not None else None
            if var is not None and program._output not in self._host.removed:
                found[var._slot] = {
                    key: entry
                    for key, entry in var._programs_dict().items()
                    if isinstance(entry, tuple)
                }
        return list(found.items())

    # --- forks ---------------------------------------------------------------------------------

    def fork(self) -> Graph:
        """A twin of this graph that shares all values until one side recomputes them.

        Names, versions, staleness, train or eval mode, frozen, pinned and detached marks, gradients
        with their hooks, the seed and the memory budget come along; observers and ``.grad`` do not.
        Copies neither arrays nor tables: both graphs share all rows of these until they write them, so
        that a fork costs the same in a graph of any size, and a what-if what it touches. ``fork[var]``
        is the twin of a node of this graph; the twins are kept as long as the fork.

        Python functions of the fork that read nodes of this graph by ``.value`` read their twins. A
        thread of a pool that such a function waits for does so if it runs in a copy of the function's
        context, as ``asyncio.to_thread`` does: ``contextvars.copy_context().run``; else it reads the
        graph that it names.

        Returns
        -------
        Graph

        Raises
        ------
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> h = g.fork()
        >>> h[x].set(5.0)
        >>> h[y].value, y.value
        (np.float64(10.0), np.float64(2.0))
        """
        return fork(self)

    def whatif(self, changes: Mapping[Any, Any] | None = None) -> WhatIf:
        """A fork for the length of a block, with some leaves set.

        Parameters
        ----------
        changes : mapping from Var or name to array_like, optional
            What to set in the fork.

        Returns
        -------
        context manager
            Gives the fork.

        Raises
        ------
        DTypeError
            If `changes` is no mapping.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> with g.whatif({x: 7.0}) as w:
        ...     w[y].value
        np.float64(14.0)
        >>> x.value
        1.0
        """
        if changes is not None and not isinstance(changes, Mapping):
            raise DTypeError(
                "g.whatif takes a mapping, g.whatif({x: 1.0, y: 2.0}), not "
                f"{type(changes).__name__}."
            )
        return WhatIf(self, dict(changes or {}))

    # --- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, from which ``rg.load`` makes it again.

        Topology, names, values, versions, what is stale, frozen, pinned, detached, kept: all stays
        as it is; ``.grad``, stored errors, hooks and gradients that nobody holds do not. Values of
        computed nodes that have no form in a file are computed again when they are read. The file
        is replaced all at once: whatever happens, the old one or the new one is there.

        Parameters
        ----------
        path : str or path-like
            The file, in the safetensors format.

        Raises
        ------
        SaveError
            If a node calls a function that has no name to be found by (a lambda, a local function,
            a partial, a bound method), or a leaf holds an object that has no form in a file.
        OSError
            If the file cannot be written; the old one is untouched then.
        MissingExtraError
            If the package safetensors is not installed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.lift(lambda a: a + 1.0)(g.input(1.0))
        >>> g.save("graph.safetensors")  # doctest: +SKIP
        Traceback (most recent call last):
        SaveError: node 'lambda_2', function 'lambda', cannot be saved: it is a lambda, which ...
        """
        from reactgrad.io import save

        save(self, path)

    # --- pictures ----------------------------------------------------------------------------

    def snapshot(self, run: Run | None = None, *, values: bool = False) -> Snapshot:
        """The graph as it is now, outside of the engine: nodes, edges, states, versions, times.

        Runs nothing, holds no node and no value, and never changes. All pictures are drawn from it.

        Parameters
        ----------
        run : Run, optional
            The run whose outcome each node shows; by default the last one.
        values : bool
            Whether each clean node has its value as text, too, in a few characters.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> before = g.snapshot()
        >>> y.value
        np.float64(0.7615941559557649)
        >>> before.nodes[1].state, g.snapshot().nodes[1].state, g.snapshot().nodes[1].outcome
        ('stale', 'clean', 'ran')
        """
        return snapshot(self, None if run is None else run._run, values)

    def to_dot(
        self,
        of: Any = None,
        *,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> str:
        """The graph, or a part of it, as text in the DOT language of Graphviz; runs nothing.

        A node's shape and colour say whether it is clean, stale, running, has run, was cut off, has
        failed, or is unset; its label has its version, dtype and shape, its marks, and the time it
        takes if ``record`` has measured it. A dashed edge that ends in a bar is detached; a dotted
        one a function found by reading. Names that hold slashes, ``"layer1/w"``, are in scopes.

        Parameters
        ----------
        of : Var, str, Plan or Run, optional
            What to show with its direct operands: a node, or its name, and all that depends on it;
            what a plan holds; what a run reached. By default everything.
        since : Graph or Snapshot, optional
            What to compare with: a snapshot of before, or the graph that this one was forked from.
            Nodes and edges that were added, removed or changed since are marked.
        layer : str
            ``"values"``, ``"gradients"`` (with the values they are computed from) or ``"all"``.
        fold : int, optional
            Scopes at this depth are one box each.
        limit : int
            The most nodes that are shown. Beyond, the picture shows those that are not clean and
            what is around them, and counts what it leaves out.

        Raises
        ------
        VizError
            If there is no such picture.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> print(g.to_dot(x))  # doctest: +ELLIPSIS
        digraph {
        ...
          "1" -> "2"
        }
        """
        from reactgrad.viz import asked, dot_text

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        return dot_text(shown, title)

    def draw(
        self,
        path: str | os.PathLike[str],
        of: Any = None,
        *,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> None:
        """Write a picture of the graph, or of a part of it; see ``to_dot`` for what it shows.

        Parameters
        ----------
        path : str or path-like
            Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        of, since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        VizError
            If the ending is another one, or more than 3,000 nodes would be laid out.
        MissingExtraError
            If the package pygraphviz is not installed; not for ``.dot``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0))
        >>> g.draw("graph.svg")  # doctest: +SKIP
        """
        from reactgrad.viz import asked, dot_text, draw

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        draw(path, dot_text(shown, title), len(shown.boxes))

    def explore(
        self,
        *targets: Var | str,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> Any:
        """Show the graph in a notebook: change inputs, and see what is stale, what ran, and why.

        What changes elsewhere shows, too. Computing happens in a thread of its own, and may be
        cancelled on the page. While no page is open nothing is watched.

        Parameters
        ----------
        *targets : Var or str
            What a change on the page brings up to date; by default every node that nothing else is
            computed from.
        bounds : dict of Var or str to (float, float), optional
            Where the sliders of inputs begin and end; by default from 0 to twice the value.
        since, layer, fold, limit
            As in ``to_dot``. The page may show the other layers, open folded scopes, and go to what
            is hidden.

        Returns
        -------
        anywidget.AnyWidget
            Displays itself; ``close()`` ends it.

        Raises
        ------
        MissingExtraError
            If anywidget or pygraphviz is not installed.
        VizError
            If there is no such picture, or it would have more than 3,000 boxes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> g.explore(y, bounds={"x": (-3.0, 3.0)})  # doctest: +SKIP
        """
        from reactgrad.viz import explore

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        return explore(self, targets, bounds=bounds or {}, **options)

    def export_html(
        self,
        path: str | os.PathLike[str],
        log: Recording | None = None,
        *,
        targets: Sequence[Var | str] = (),
        title: str = "",
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> None:
        """Write one HTML file with the page of ``explore`` over recorded runs.

        It opens from disk in any browser, and loads nothing from anywhere.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced; it appears whole or not at all.
        log : Recording, optional
            What ``with g.record(snapshots=True) as log`` has seen; by default only the present state
            and the last run.
        targets
            What is read, for the preview of a change; by default what nothing else is computed from.
        title : str
            Stands above the page.
        since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        MissingExtraError
            If pygraphviz is not installed.
        VizError
            If `log` has no snapshots or is of another graph, or there is no such picture.
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> with g.record(snapshots=True) as log:
        ...     for value in (1.0, 2.0):
        ...         x.set(value)
        ...         _ = y.value
        >>> g.export_html("tanh.html", log)  # doctest: +SKIP
        """
        from reactgrad.viz import export_html

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        export_html(self, path, log, targets=targets, title=title, **options)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from reactgrad.viz import html

        return html(self)

    # --- checks ------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        """Check all tables against each other; for tests and bug reports.

        Raises
        ------
        InvariantError
            If they contradict each other.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().check_invariants()
        """
        with self._lock:
            self._tidy()
            check_invariants(self._scheduler)
            self._host.check()

    def forget_marks(self) -> None:
        """Erase all marks and cached plans, so that versions alone decide what runs (rule E16).

        Values, versions and what runs stay the same; the next reads only take longer.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = g.input(1.0) + 1.0
        >>> run = g.forward(y)
        >>> g.forget_marks()
        >>> len(g.forward(y).ran)
        0
        """
        with self._lock:
            self._scheduler.forget()

    def _view(self, run: RawRun) -> Run:
        return Run(self, run)

    def _update_program(self, program: Program, slots: set[int]) -> None:
        """Build gradients anew whose operands' shapes show only in values."""
        with Change(self) as change:
            change.update(program, slots, slots)
            change.follow()

    def _retain_between(self, program: Program, root: int, retain: bool) -> None:
        """Keep the intermediate values between an output and its leaves, or release them (rule D6)."""
        host = self._host
        between = program.between(root)
        if retain:
            host.spared |= between
            return
        host.spared -= between
        self._release(between)

    def _release(self, slots: Iterable[int]) -> None:
        """Let go of those values that come back the same when they are needed (rule E17)."""
        scheduler, host = self._scheduler, self._host
        scheduler.attend()
        mark = scheduler.staleness.mark
        # A transaction that fails gives values back, and what they show must be as it was.
        let_go = host.release if scheduler.notes else host.reclaim
        let_go(
            [
                slot
                for slot in slots
                if not mark[slot] and host.data[slot] is not MISSING and host.recomputable(slot)
            ]
        )

    def _dtype_kind(self, slot: int) -> str:
        found = self._host.specs[slot]
        return "" if found is None else found.dtype.kind


class UnknownNameError(GraphError, KeyError):
    """A name that no node of the graph has."""

    def __str__(self) -> str:
        return str(self.args[0])


on_default(Graph)


def _not_float(what: str, found: object) -> DTypeError:
    return DTypeError(
        f"{what} was given {found}: params are arrays of floats, since only those have gradients. "
        "Write 3.0 instead of 3, or dtype='float64'; use g.input for integers."
    )


def _read_executor(executor: Any) -> Threads | None:
    """Who runs nodes; ``None``: the thread that reads."""
    if isinstance(executor, Serial):
        return None
    if isinstance(executor, Threads):
        return executor
    raise DTypeError(
        f"executor={executor!r:.60}: write rg.Threads(n) for n threads, or rg.Serial()."
    )


def _read_timeout(timeout: Any) -> float | None:
    """A time limit in seconds; ``None`` for none."""
    if timeout is None:
        return None
    number = isinstance(timeout, int | float | np.integer | np.floating)
    if not number or isinstance(timeout, bool) or math.isnan(timeout):
        raise DTypeError(
            f"forward(timeout={timeout!r:.60}): it is a number of seconds, or None for no limit."
        )
    return None if timeout >= threading.TIMEOUT_MAX else float(timeout)


def _read_dtype(what: str, dtype: Any) -> Any:
    try:
        wanted = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise DTypeError(
            f"{what}: dtype={dtype!r} is no dtype; write for example 'float64'."
        ) from None
    if wanted.kind not in "biufc":
        raise DTypeError(f"{what}: dtype={dtype!r} is not numeric.")
    return wanted


def _read_pattern(what: str, shape: Any, dtype: Any) -> Spec | None:
    if shape is None:
        if dtype is not None:
            _read_dtype(what, dtype)
        return None
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    for n in lengths:
        if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0):
            raise ShapeError(
                f"{what}: shape={shape!r} must be made of integers of at least 0, or None for a "
                "length that may vary."
            )
    wanted = _read_dtype(what, np.float64 if dtype is None else dtype)
    if wanted.kind not in "biufc":
        raise DTypeError(f"{what}: dtype={dtype!r} is not numeric.")
    return spec(tuple(None if n is None else int(n) for n in lengths), wanted)


def _check_pattern(what: str, pattern: Spec, found: Spec | None) -> None:
    if (
        found is None
        or len(found.shape) != len(pattern.shape)
        or any(n not in (None, m) for m, n in zip(found.shape, pattern.shape, strict=True))
    ):
        raise ShapeError(
            f"{what} is declared as {pattern!r} and was given {found or 'an object'!r}. Reshape "
            "the value, or declare None for a length that may vary."
        )


def _castable(found: Spec, value: Any) -> Any:
    """What decides whether a value may be cast: Python numbers may take any width of their kind."""
    if found.weak is float and math.isfinite(value):
        return np.dtype(np.float16)
    return np.dtype(np.int8) if found.weak is int else found.dtype


def _cast(what: str, value: Any, dtype: Any) -> Any:
    """A numeric value as an array of this dtype; only precision may be lost."""
    array = np.asarray(value)
    whole = array.dtype.kind in "iub" or array.dtype.kind == "O"
    try:
        if dtype.kind in "iu" and whole:
            limits = np.iinfo(dtype)
            if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
                raise DTypeError(
                    f"{what} was given numbers from {array.min()} to {array.max()}, which do not fit "
                    f"{dtype} ({limits.min} to {limits.max}). Choose a wider dtype."
                )
        elif not whole and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise DTypeError(
                f"{what} was given {array.dtype}, which dtype={dtype} cannot hold without loss. "
                "Convert the value yourself with .astype if that is meant."
            )
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    except OverflowError as error:
        raise DTypeError(f"{what}: {error}. Choose a wider dtype.") from None
