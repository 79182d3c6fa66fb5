"""Building nodes: leaves, ops, Python functions with one or several outputs, choices, constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad._errors import DTypeError, GraphError
from reactgrad.backend import WEAK_SPECS, Spec, own_copy, read_dtype, read_value, spec
from reactgrad.build._reuse import Reuse, outputs_of
from reactgrad.core._handles import check_name
from reactgrad.core._rows import HandleRef, number_key
from reactgrad.flow import PLAIN_MODE, hooks_here, is_grad_enabled, mode_here, open_hooks
from reactgrad.graph._var import DetachedVar, Var
from reactgrad.nodes._cutoff import read_cutoff
from reactgrad.nodes._scope import open_scopes, path_here
from reactgrad.nodes._site import user_site
from reactgrad.ops import (
    Attrs,
    Handle,
    Op,
    Output,
    alias,
    holds_handles,
    spread_like,
    spread_to,
    stacked,
)
from reactgrad.values._fitting import check_pattern, not_float, read_as, read_pattern
from reactgrad.values._store import CONST, MISSING, PARAM, Leaf

if TYPE_CHECKING:
    from reactgrad.functions._lift import Lifted as _Lifted
    from reactgrad.graph._graph import Graph

_new = object.__new__


def new_leaf(
    graph: Graph, kind: Leaf, value: Any, name: str | None, shape: Any, dtype: Any, cutoff: Any
) -> Var:
    what = f"{kind.name} {name!r}" if name is not None else f"this {kind.name}"
    wanted = None if dtype is None else read_dtype(what, dtype)
    pattern = None if shape is None else read_pattern(what, shape, wanted)
    rule = read_cutoff(cutoff)
    if value is MISSING:
        if pattern is None and kind is PARAM:
            raise DTypeError(f"{what} needs a value, or shape= and dtype=.")
        found: Spec | None = pattern
        if kind is PARAM and pattern is not None and pattern.dtype.kind != "f":
            raise not_float(what, pattern)
    else:
        if isinstance(value, Handle):
            raise DTypeError(
                f"{what} was given a Var. A leaf holds a value of its own: pass v.value, or "
                "v.snapshot() for a constant; to compute from v, just use v."
            )
        found, value = read_as(what, value, wanted)
        if kind is PARAM:
            if found is None or found.dtype.kind != "f":
                raise not_float(what, found or type(value).__name__)
            found = spec(found.shape, found.dtype, found.device)
        if pattern is not None:
            check_pattern(what, pattern, found)
    if open_scopes and isinstance(name, str) and name and (path := path_here(graph)):
        name = f"{path}/{name}"
    with graph._lock:
        graph._scheduler.check_idle()
        check_name(graph, name, None)
        graph._tidy()
        data: Any = MISSING
        if value is not MISSING:
            plain = found is None or found.weak is not None
            data = value if plain else own_copy(found, value)  # type: ignore[arg-type]
        # An orphan until it has its Var.
        valued = value is not MISSING
        graph._scheduler.orphans.append(slot := graph._scheduler.add((), leaf=True, valued=valued))
        graph._host.add_node(slot, kind, (), found, data, user_site())
        if pattern is not None:
            graph._host.patterns[slot] = pattern
        elif wanted is not None and value is MISSING:
            graph._host.dtypes[slot] = wanted
        if rule is not None:
            graph._host.cutoffs[slot] = rule
        var = graph._new_var(slot)
        if name is not None:
            graph._set_name(slot, name)
        return var


def apply(graph: Graph, op: Op, operands: Sequence[Any], attrs: Attrs) -> Var:
    """A new node that computes an op."""
    lock = graph._lock
    # As `with lock:`, whose two calls would be a tenth of the cost of a node.
    if not lock.acquire(False):
        lock.visit(None)
    elif lock.gates:
        lock.enter_again()
    try:
        host = graph._host
        if host.dropped and graph._programs.building is None:  # else it stays as it is
            graph._tidy()
        specs = host.specs
        count = len(operands)
        if (
            0 < count < 3
            and not attrs
            and ((reuse := graph._reuse) is None or not reuse.blocks)
            and type(x := operands[0]) is Var
            and x._graph is graph
        ):
            # What most ops are: of one or two Vars, or a Var and a number that was written before. Where
            # their result is known, the lists below would be a fifth of the cost of a node.
            quick: tuple[int, ...] = ()
            kinds: Any = None
            if count == 1:
                quick = (i := x._slot,)
                kinds = (specs[i], ())
            elif type(y := operands[1]) is Var:
                if y._graph is graph:
                    quick = i, j = x._slot, y._slot
                    kinds = (specs[i], specs[j], ())
            elif (weak := WEAK_SPECS.get(type(y))) is not None:
                known = host.numbers.get(number_key(y))
                if known is not None:
                    quick = (i := x._slot, known)
                    kinds = (specs[i], weak, ())
            if quick:
                result = op.known.get(kinds)
                if result is not None:
                    return graph._add_computed(op, (), result, quick, ())
        slots: list[int] = []
        found: list[Any] = []
        # Most operands are Vars: lists for others are made when there is one.
        constants: Sequence[tuple[int, Spec, Any]] = ()
        detached: Sequence[int] = ()
        for operand in operands:
            kind = type(operand)
            if kind is Var:
                if operand._graph is not graph:
                    raise _foreign(graph, operand, op.name)
                slot = operand._slot
                slots.append(slot)
                found.append(specs[slot])
            elif kind in WEAK_SPECS:
                known = host.numbers.get(number_key(operand), -1)
                if known < 0:
                    constants = (*constants, (len(slots), WEAK_SPECS[kind], operand))
                slots.append(known)
                found.append(WEAK_SPECS[kind])
            elif isinstance(operand, Handle):
                if operand._graph is not graph:
                    raise _foreign(graph, operand, op.name)
                if kind is DetachedVar:
                    detached = (*detached, len(slots))
                slots.append(operand._slot)
                found.append(specs[operand._slot])
            elif isinstance(operand, list | tuple) and holds_handles(operand):
                return graph._apply(op, [stacked(one) for one in operands], attrs)
            else:
                one, value = _read_operand(graph, op, len(slots), operand)
                constants = (*constants, (len(slots), one, value))
                slots.append(-1)
                found.append(one)
        try:
            result = op.known.get((*found, attrs))
        except TypeError:  # attributes that hold arrays are not looked up
            result = None
        if result is None:
            result = _infer(graph, op, attrs, slots, found)
        reuse = graph._reuse
        if reuse is not None and reuse.blocks:
            return _reused(graph, reuse, op, attrs, slots, result, constants, detached)
        for i, one, value in constants:
            slots[i] = _constant(graph, one, value)
        return graph._add_computed(op, attrs, result, tuple(slots), detached)
    finally:
        if not lock.gates or lock.leave_gate():
            lock.release()


def _infer(
    graph: Graph, op: Op, attrs: Attrs, slots: Sequence[int], specs: Sequence[Spec | None]
) -> Spec | None:
    """What is known of the result of an op; ``None``, if that shows only in values."""
    known = [one for one in specs if one is not None]
    if len(known) == len(specs):
        return op.result(tuple(known), attrs)
    for slot in slots:
        if slot >= 0:
            graph._refuse_tuple(slot, op.name)
    return None


def _read_operand(graph: Graph, op: Op, position: int, operand: Any) -> tuple[Spec, Any]:
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
    graph: Graph,
    reuse: Reuse,
    op: Op,
    attrs: Attrs,
    slots: list[int],
    result: Spec | None,
    constants: Sequence[tuple[int, Spec, Any]],
    detached: Sequence[int],
) -> Var:
    """The node that computes an op already, or a new one."""
    key = None if -1 in slots else reuse.key(graph, op, attrs, slots, detached)
    var = reuse.find(graph, key)
    if var is not None:
        return var
    for i, found, value in constants:
        slots[i] = _constant(graph, found, value)
    var = graph._add_computed(op, attrs, result, tuple(slots), detached)
    reuse.add(graph, reuse.key(graph, op, attrs, slots, detached), var)
    return var


def refuse_tuple(graph: Graph, slot: int, what: str) -> None:
    """Raise ``DTypeError`` for the node of a function that has several outputs."""
    op = graph._host.ops[slot]
    if getattr(op, "outputs", None) is not None:
        name = graph._host.name
        children = graph._scheduler.topology.children[slot]
        outputs = [name(child) for child in children if isinstance(graph._host.ops[child], Output)]
        raise DTypeError(
            f"{what}: {name(slot)!r} is the tuple of all outputs of function {op.name!r}, which is "
            "no array and has no gradient. Use the outputs, which are nodes of their own, "
            f"{' and '.join(map(repr, outputs))}."
        )


def call_lifted(
    graph: Graph, op: _Lifted, operands: Sequence[Any], cutoff: Any, *, shared: bool = False
) -> Any:
    """A node that calls a Python function; of several outputs the nodes of these.

    Parameters
    ----------
    shared
        In a reuse block it may be the node that an equal call has built.
    """
    with graph._lock:
        graph._tidy()
        for operand in operands:
            if operand._graph is not graph:
                raise _foreign(graph, operand, op.name)
        detached = [i for i, o in enumerate(operands) if type(o) is DetachedVar]
        slots = tuple([operand._slot for operand in operands])
        several = op.outputs is not None
        reuse, key = graph._reuse, None
        if reuse is not None and shared and slots:  # without operands it asks the world
            key = reuse.key(graph, op, (), slots, detached, cutoff)
            known = reuse.find(graph, key)
            if known is not None:
                return graph._outputs(known) if several else known
        var = graph._add_computed(op, (), op.declared, slots, detached)
        results = graph._outputs(var) if several else (var,)
        if cutoff is not None:
            for result in results:  # no plan and no mark knows these nodes yet
                graph._host.cutoffs[result._slot] = cutoff
                graph._scheduler.staleness.cutoffs.add(result._slot)
        if reuse is not None:
            reuse.add(graph, key, var, results if several else ())
        return results if several else var


def outputs(graph: Graph, node: Var) -> tuple[Var, ...]:
    """The nodes of all outputs of a function that has several."""
    return tuple([graph._output(node, i) for i in range(len(graph._host.ops[node._slot].outputs))])


def output(graph: Graph, node: Var, index: int) -> Var:
    """The node of one output of a function, which is made anew if nobody has held it."""
    host, slot = graph._host, node._slot
    for child in outputs_of(graph, slot):
        if host.ops[child].index == index:
            return graph._handle(child)
    function = host.ops[slot]
    found = function.promised(index, [host.specs[p] for p in graph._scheduler.operands(slot)])
    return graph._add_computed(function.output(index), (), found, (slot,), ())


def call_switch(graph: Graph, op: Any, condition: Any) -> Var:
    """A node that chooses between two others."""
    with graph._lock:
        for branch in op.branches:
            if branch._graph is not graph:
                raise _foreign(graph, branch, op.name)
        operands = (condition, *op.branches)
        slots = tuple([one._slot for one in operands])
        detached = [i for i, one in enumerate(operands) if type(one) is DetachedVar]
        reuse, key = graph._reuse, None
        if reuse is not None:
            key = reuse.key(graph, op, (), slots, detached)
            known = reuse.find(graph, key)
            if known is not None:
                return known
        var = graph._call_lifted(op, [condition], None)
        graph._link_branches(var._slot, slots)
        if reuse is not None:
            reuse.add(graph, key, var)
        return var


def link_branches(graph: Graph, slot: int, operands: tuple[int, ...]) -> None:
    graph._host.branches[slot] = operands
    for operand in operands:
        graph._host.branch_users.setdefault(operand, set()).add(slot)


def add_computed(
    graph: Graph,
    op: Any,
    attrs: Attrs,
    found: Spec | None,
    slots: tuple[int, ...],
    detached: Sequence[int],
) -> Var:
    host = graph._host
    slot = graph._scheduler.add(slots)
    try:
        # As `host.add_node` and `graph._new_var`: their calls would be a tenth of the cost of a node.
        host.ops[slot] = op
        if attrs:
            host.attrs[slot] = attrs
        host.specs[slot] = found
        site = user_site(4)
        host.sites[slot] = host.in_scope(site) if open_scopes else site
        if mode_here() is not PLAIN_MODE and not is_grad_enabled(graph):
            host.closed[slot] = None
        elif detached:
            host.closed[slot] = frozenset(detached)
        program = graph._programs.building
        if program is not None:
            host.own(slot, program)
        elif open_hooks and (hooks := hooks_here()) is not None:
            host.let_pass([slot], hooks)
        var = _new(Var)
        var._graph = graph
        var._slot = slot
        (ref := HandleRef(var, host.on_death)).slot = slot  # which it needs when `var` dies
        host.handles[slot] = ref
        return var
    except BaseException:
        graph._scheduler.orphans.append(slot)
        raise


def copy(graph: Graph, slot: int) -> Var:
    """Another node that computes the same."""
    host = graph._host
    operands = graph._scheduler.operands(slot)
    var = graph._add_computed(host.ops[slot], host.attrs[slot], host.specs[slot], operands, ())
    if slot in host.closed:
        host.closed[var._slot] = host.closed[slot]
    if slot in host.branches:
        graph._link_branches(var._slot, host.branches[slot])
    return var


def _constant(graph: Graph, found: Spec, value: Any) -> int:
    """The slot of a constant; equal Python numbers share one."""
    host = graph._host
    key = None
    if found.weak is not None:
        key = number_key(value)
        slot = host.numbers.get(key)
        if slot is not None:
            return slot
    data = value if key is not None else own_copy(found, value)
    slot = _new_const(graph, found, data)
    if key is not None:
        host.numbers[key] = slot
    return slot


def _new_const(graph: Graph, found: Spec, data: Any) -> int:
    # An orphan until somebody uses it.
    graph._scheduler.orphans.append(slot := graph._scheduler.add((), leaf=True, valued=True))
    graph._host.add_node(slot, CONST, (), found, data, None)
    return slot


def full(graph: Graph, found: Spec, number: float) -> Var:
    """A constant array of one element with the dtype and device of `found`."""
    one = spec((1,) * len(found.shape), found.dtype, found.device)
    with graph._lock:
        return graph._new_var(_new_const(graph, one, own_copy(one, number)))


def zeros_like(graph: Graph, var: Any) -> Var:
    """Zeros for the gradient of `var`, as a node that is never leaf, nor stale again while the shape is known."""
    found = graph._host.specs[var._slot] or spec((None,), var.dtype)
    if found.dtype.kind != "f":  # only now it shows that this is a condition or a count
        found = spec(found.shape, np.dtype(np.float64), found.device)
    if found.known:
        return graph._zeros(found)
    return spread_like(graph._full(spec((), found.dtype, found.device), 0.0), var)


def zeros(graph: Graph, found: Spec) -> Var:
    zero = graph._full(found, 0.0)
    spread = spread_to(zero, found.shape)
    return alias(zero) if spread is zero else spread


def _foreign(graph: Graph, operand: Any, op: str) -> GraphError:
    if graph._traced or operand._graph._traced:
        return GraphError(
            f"{op} was given nodes of two graphs: a function that rg.grad, rg.jacobian and others call with "
            "arrays gets nodes of a graph of its own, and yours are of another one. Pass their values "
            "to the function, rg.grad(fn, argnums=0)(2.0, x.value); or call it with a node of your "
            "graph, rg.grad(fn)(g.input(2.0)), which gives a node."
        )
    return GraphError(
        f"{op} was given {operand.name!r}, which belongs to another graph than the first "
        "operand. Nodes of two graphs cannot be connected: build both in one graph (leaves "
        "made outside of any `with graph:` belong to the default graph), or pass the value: "
        "g.input(v.value)."
    )
