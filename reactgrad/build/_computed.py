"""The node that computes an op: operands are read, the result's spec is looked up, rows are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GraphError
from reactgrad.backend import WEAK_SPECS, Spec, read_value, spec
from reactgrad.build._constants import _constant
from reactgrad.build._reuse import Reuse
from reactgrad.core._core import Core, V
from reactgrad.core._handles import refuse_tuple, tidy
from reactgrad.core._rows import number_key
from reactgrad.flow._autocast import cast_here, open_casts
from reactgrad.flow._mode import PLAIN_MODE, is_grad_enabled, mode_here
from reactgrad.flow._saved import hooks_here, open_hooks
from reactgrad.nodes._handle import Handle, HandleRef, holds_handles, stacked
from reactgrad.nodes._op import Attrs, Op
from reactgrad.nodes._scope import open_scopes
from reactgrad.nodes._site import user_site
from reactgrad.scheduler import is_stray, safe_repr

# So many handles that have died wait for the next read, or the end of a generation that is taken over.
MOST_WAITING = 64

_new = object.__new__


def apply(graph: Core[V], op: Op, operands: Sequence[Any], attrs: Attrs) -> V:
    """Return a node that computes an op.

    In a reuse block it may be one that exists already.

    Raises
    ------
    DTypeError
        If an operand is no Var, number or array.
    GraphError
        If operands belong to different graphs.
    """
    lock = graph._lock
    # This is `with lock:` written out: its two calls would be a tenth of the cost of a node.
    if not lock.acquire(False):
        lock.visit(None)
    elif lock.gates:
        lock.enter_again()
    try:
        host, handle, generations = graph._host, graph._var, graph._generations
        if (
            (dropped := host.dropped)
            # While a generation is taken over, handles die at each line: a few of them can wait.
            and (generations.current is None or len(dropped) > MOST_WAITING)
            and graph._programs.building is None  # while building, nothing is freed
        ):
            tidy(graph)
        specs = host.specs
        if open_casts and (cast := cast_here()) is not None:
            operands = cast.operands(graph, op, operands, attrs)
        count = len(operands)
        if (
            0 < count < 3
            and not attrs
            and ((reuse := graph._reuse) is None or not reuse.blocks)
            and type(x := operands[0]) is handle
            and x._graph is graph
        ):
            # Most ops have one or two Vars, or a Var and a number that is known already. If their
            # result is known too, the lists below, a fifth of the cost of a node, are not needed.
            quick: tuple[int, ...] = ()
            kinds: Any = None
            if count == 1:
                quick = (i := x._slot,)
                kinds = (specs[i], ())
            elif type(y := operands[1]) is handle:
                if y._graph is graph:
                    quick = i, j = x._slot, y._slot
                    kinds = (specs[i], specs[j], ())
            elif (weak := WEAK_SPECS.get(type(y))) is not None:
                known = host.numbers.get(number_key(y))
                if known is not None:
                    quick = (i := x._slot, known)
                    kinds = (specs[i], weak, ())
            if quick:
                if generations.ahead or generations.current is not None:
                    taken = generations.next(graph, op, (), quick, ())
                    if taken is not None:
                        return taken
                result = op.known.get(kinds)
                if result is not None:
                    return add_computed(graph, op, (), result, quick, ())
        slots: list[int] = []
        found: list[Any] = []
        # Most operands are Vars: tuples for others are made when there is one.
        constants: Sequence[tuple[int, Spec, Any]] = ()
        detached: Sequence[int] = ()
        for operand in operands:
            kind = type(operand)
            if kind is handle:
                if operand._graph is not graph:
                    raise _foreign(graph, operand, op.name)
                slot = operand._slot
                slots.append(slot)
                found.append(specs[slot])
            elif kind in WEAK_SPECS:
                known = host.numbers.get(key := number_key(operand))
                if known is None and generations.spare_numbers:
                    known = generations.number_back(graph, key)
                if known is None:
                    known = -1
                    constants = (*constants, (len(slots), WEAK_SPECS[kind], operand))
                slots.append(known)
                found.append(WEAK_SPECS[kind])
            elif isinstance(operand, Handle):
                if operand._graph is not graph:
                    raise _foreign(graph, operand, op.name)
                if kind is graph._detached_var:
                    detached = (*detached, len(slots))
                slots.append(operand._slot)
                found.append(specs[operand._slot])
            elif isinstance(operand, list | tuple) and holds_handles(operand):
                return apply(graph, op, [stacked(one) for one in operands], attrs)
            else:
                one, value = _read_operand(graph, op, len(slots), operand)
                constants = (*constants, (len(slots), one, value))
                slots.append(-1)
                found.append(one)
        try:
            result = op.known.get((*found, attrs))
        except TypeError:  # attributes that hold arrays have no hash
            result = None
        if result is None:
            result = _infer(graph, op, attrs, slots, found)
        reuse = graph._reuse
        if reuse is not None and reuse.blocks:
            return _reused(graph, reuse, op, attrs, slots, result, constants, detached)
        if not constants and (generations.ahead or generations.current is not None):
            taken = generations.next(graph, op, attrs, tuple(slots), detached)
            if taken is not None:
                return taken
        for i, one, value in constants:
            slots[i] = _constant(graph, one, value)
        return add_computed(graph, op, attrs, result, tuple(slots), detached)
    except BaseException as error:
        # First and without a call: the stack may be full.
        usual, lock.acquire = lock.acquire, lock.mending
        if not is_stray(error):
            lock.acquire = usual
        raise
    finally:
        if not lock.gates or lock.leave_gate():
            lock.release()


def _infer(
    graph: Core, op: Op, attrs: Attrs, slots: Sequence[int], specs: Sequence[Spec | None]
) -> Spec | None:
    """Return the spec of the result of an op; ``None`` if only values show it."""
    known = [one for one in specs if one is not None]
    if len(known) == len(specs):
        return op.result(tuple(known), attrs)
    for slot in slots:
        if slot >= 0:
            refuse_tuple(graph, slot, op.name)
    return None


def _read_operand(graph: Core, op: Op, position: int, operand: Any) -> tuple[Spec, Any]:
    """Return spec and value of an operand that is a number or an array, not a node."""
    what = f"operand {position + 1} of {op.name}"
    found, value = read_value(operand, what)
    if found is None and hasattr(type(value), "__array__"):
        # A Series or the like: a node has no labels, so its elements are taken by position.
        found, value = read_value(np.asarray(value), what)
    if found is None and isinstance(value, int | float | complex):
        # A class of numbers, such as an ``IntEnum``: the number is meant.
        kind: Any = next(one for one in (int, float, complex) if isinstance(value, one))
        found, value = read_value(kind(value), what)
    if found is None:
        raise DTypeError(
            f"{what} is {type(value).__name__} ({safe_repr(value):.60}): ops compute with "
            "Vars, numbers and arrays. Use rg.lift for other objects."
        )
    if found.weak is None and found.device == "cpu" != graph.device:
        found = spec(found.shape, found.dtype, graph.device)  # as leaves of this graph
    return found, value


def _reused(
    graph: Core[V],
    reuse: Reuse,
    op: Op,
    attrs: Attrs,
    slots: list[int],
    result: Spec | None,
    constants: Sequence[tuple[int, Spec, Any]],
    detached: Sequence[int],
) -> V:
    """Return the node that computes this already in a reuse block, or a new one."""
    key = None if -1 in slots else reuse.key(graph, op, attrs, slots, detached)
    var: Any = reuse.find(graph, key)
    if var is not None:
        return var
    for i, found, value in constants:
        slots[i] = _constant(graph, found, value)
    var = add_computed(graph, op, attrs, result, tuple(slots), detached)
    reuse.add(graph, reuse.key(graph, op, attrs, slots, detached), var)
    return var


def add_computed(
    graph: Core[V],
    op: Any,
    attrs: Attrs,
    found: Spec | None,
    slots: tuple[int, ...],
    detached: Sequence[int],
) -> V:
    """Return a new node that is computed from these slots; its op may be a function or an output."""
    host = graph._host
    program = graph._programs.building
    if (shared := host.shared) and program is None:
        for one in slots:
            if (known := shared.get(one)) is not None:
                known.build_upon(graph, one, slots)
    slot = graph._scheduler.add(slots)
    try:
        # `host.add_node` and `new_var` written out: their calls would be a tenth of the cost of a node.
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
        if program is not None:
            host.own(slot, program)
        elif open_hooks and (hooks := hooks_here()) is not None:
            host.let_pass([slot], hooks)
        var = _new(graph._var)
        var._graph = graph
        var._slot = slot
        (ref := HandleRef(var, host.on_death)).slot = slot  # by which `on_death` finds the node
        host.handles[slot] = ref
        return var
    except BaseException:
        # Half a row was written: the node goes with the next release.
        graph._scheduler.orphans.append(slot)
        raise


def _foreign(graph: Core, operand: Any, op: str) -> GraphError:
    if graph._traced or operand._graph._traced:
        return GraphError(
            f"{op} was given nodes of two graphs: a function that rg.grad, rg.jacobian and others call with "
            "arrays gets nodes of a graph of its own, and yours are of another one. Pass their values "
            "to the function, rg.grad(fn, argnums=0)(2.0, x.value); or call it with a node of your "
            "graph, rg.grad(fn)(g.input(2.0)), which gives a node."
        )
    return GraphError(
        f"{op} was given {operand.label!r}, which belongs to another graph than the first "
        "operand. Nodes of two graphs cannot be connected: build both in one graph (leaves "
        "made outside of any `with graph:` belong to the default graph), or pass the value: "
        "g.input(v.value)."
    )
