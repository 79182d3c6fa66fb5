"""Nodes that call Python functions, their outputs, choices between nodes, and copies of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.build._computed import _foreign, add_computed
from reactgrad.build._reuse import outputs_of
from reactgrad.core._core import Core, V
from reactgrad.core._definition import link_branches
from reactgrad.core._handles import handle, tidy
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import Lifted as _Lifted


def call_lifted(
    graph: Core, op: _Lifted, operands: Sequence[Any], cutoff: Any, *, shared: bool = False
) -> Any:
    """Return a node that calls a Python function, or the nodes of its outputs if it has several.

    Parameters
    ----------
    shared
        True if a reuse block may return the node that an equal call has built.
    """
    with graph._lock:
        tidy(graph)
        for operand in operands:
            if operand._graph is not graph:
                raise _foreign(graph, operand, op.name)
        detached = [i for i, o in enumerate(operands) if type(o) is graph._detached_var]
        slots = tuple([operand._slot for operand in operands])
        several = op.outputs is not None
        reuse, key = graph._reuse, None
        if reuse is not None and shared and slots:  # without operands, its result may differ
            key = reuse.key(graph, op, (), slots, detached, cutoff)
            known = reuse.find(graph, key)
            if known is not None:
                return outputs(graph, known) if several else known
        var = add_computed(graph, op, (), op.declared, slots, detached)
        results = outputs(graph, var) if several else (var,)
        if cutoff is not None:
            for result in results:  # set directly: no plan or mark of these nodes exists yet
                graph._host.cutoffs[result._slot] = cutoff
                graph._scheduler.staleness.cutoffs.add(result._slot)
        if reuse is not None:
            reuse.add(graph, key, var, results if several else ())
        return results if several else var


def outputs(graph: Core[V], node: Handle) -> tuple[V, ...]:
    """Return the nodes of all outputs of a function that has several."""
    ops, slot = graph._host.ops, node._slot
    there = {ops[child].index: child for child in reversed(outputs_of(graph, slot))}
    return tuple(
        [
            handle(graph, there[i]) if i in there else _new_output(graph, slot, i)
            for i in range(len(ops[slot].outputs))
        ]
    )


def output_of(graph: Core[V], node: Handle, index: int) -> V:
    """Return the node of one output of a function; make it again if no handle kept it."""
    host, slot = graph._host, node._slot
    for child in outputs_of(graph, slot):
        if host.ops[child].index == index:
            return handle(graph, child)
    return _new_output(graph, slot, index)


def _new_output(graph: Core[V], slot: int, index: int) -> V:
    host = graph._host
    function = host.ops[slot]
    found = function.promised(index, [host.specs[p] for p in graph._scheduler.operands(slot)])
    return add_computed(graph, function.output(index), (), found, (slot,), ())


def call_switch(graph: Core[V], op: Any, condition: Any) -> V:
    """Return a node that chooses between the branches of a switch."""
    with graph._lock:
        for branch in op.branches:
            if branch._graph is not graph:
                raise _foreign(graph, branch, op.name)
        operands = (condition, *op.branches)
        slots = tuple([one._slot for one in operands])
        detached = [i for i, one in enumerate(operands) if type(one) is graph._detached_var]
        reuse, key = graph._reuse, None
        if reuse is not None:
            key = reuse.key(graph, op, (), slots, detached)
            known = reuse.find(graph, key)
            if known is not None:
                return known
        var = call_lifted(graph, op, [condition], None)
        link_branches(graph, var._slot, slots)
        if reuse is not None:
            reuse.add(graph, key, var)
        return var


def copy_of(graph: Core[V], slot: int) -> V:
    """Return a new node with the same definition."""
    host = graph._host
    operands = graph._scheduler.operands(slot)
    var = add_computed(graph, host.ops[slot], host.attrs[slot], host.specs[slot], operands, ())
    if slot in host.closed:
        host.closed[var._slot] = host.closed[slot]
    if slot in host.branches:
        link_branches(graph, var._slot, host.branches[slot])
    return var
