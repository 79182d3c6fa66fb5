"""Outputs and leaves, as callers name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import reactgrad as rg
from reactgrad.core._handles import handle
from reactgrad.nodes._op import Leaf
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._errors import ScenarioError


def outputs_of(given: Any) -> dict[str, rg.Var]:
    """Return outputs by label: of one Var, of several, or as the caller has named them.

    Raises
    ------
    ScenarioError
        If something else is given, or Vars of several graphs.
    """
    found: dict[str, Any]
    if isinstance(given, rg.Var):
        found = {given.label: given}
    elif isinstance(given, Mapping):
        found = {str(label): var for label, var in given.items()}
    elif isinstance(given, Iterable) and not isinstance(given, str):
        found = {getattr(var, "label", None) or safe_repr(var): var for var in given}
    else:
        found = {safe_repr(given): given}
    wrong = [label for label, var in found.items() if not isinstance(var, rg.Var)]
    if wrong or not found:
        raise ScenarioError(
            f"the outputs {', '.join(wrong) or '[]'} are no nodes: give a Var, a list of Vars, or a dict of "
            "labels and Vars, such as scenarios([price, delta], {spot: [90.0, 110.0]})."
        )
    graph = next(iter(found.values())).graph
    foreign = [label for label, var in found.items() if var.graph is not graph]
    if foreign:
        raise ScenarioError(
            f"the outputs {', '.join(foreign)} belong to another graph than the first one: ask one "
            "question for each graph."
        )
    return found


def input_of(graph: rg.Graph, key: Any) -> rg.Var:
    """Return the leaf of `graph` that a Var or a name stands for, also one of a fork."""
    if not isinstance(key, rg.Var | str):
        raise ScenarioError(
            f"{key!r} is no input: inputs are given as Vars or by their names, such as "
            '{spot: [90.0, 110.0]} or {"spot": [90.0, 110.0]}.'
        )
    var = graph[key] if isinstance(key, str) or key.graph is not graph else key
    kind = graph._host.ops[var._slot]  # type: ignore[attr-defined]
    if not isinstance(kind, Leaf) or kind.name == "const":
        what = "a const" if isinstance(kind, Leaf) else "computed from others"
        whole = var.parents[0] if kind.name == "getitem" else None
        if whole is not None and isinstance(graph._host.ops[whole._slot], Leaf):  # type: ignore[attr-defined]
            raise ScenarioError(
                f"{var.label!r} is a part of {whole.label!r}, and whole inputs take values: write "
                f"{{{whole.label!r}: [one array for each point, ...]}}, or make the numbers inputs of their own, "
                "put together with rg.stack([a, b, ...])."
            )
        raise ScenarioError(
            f"{var.label!r} is {what}, so it cannot take other values. Give an input or a param; to put "
            f"a value in the place of a computed node, pin it in a fork: h = g.fork(); h[y].pin(value)."
        )
    return var


def inputs_behind(outputs: Iterable[rg.Var]) -> list[rg.Var]:
    """Return the inputs and params that the outputs are computed from, in order of creation."""
    outputs = list(outputs)
    graph: Any = outputs[0].graph
    with graph._lock:
        topology, ops = graph._scheduler.topology, graph._host.ops
        branches = graph._host.branches
        pending = [var._slot for var in outputs]
        seen = set(pending)
        found: list[int] = []
        while pending:
            slot = pending.pop()
            kind = ops[slot]
            if isinstance(kind, Leaf):
                if kind.name in ("input", "param"):
                    found.append(slot)
                continue
            # A switch has only the branch that it has chosen for a parent.
            for parent in (*topology.parents[slot], *branches.get(slot, ())):
                if parent not in seen:
                    seen.add(parent)
                    pending.append(parent)
        return [handle(graph, slot) for slot in sorted(found, key=topology.number)]


def is_float(var: rg.Var) -> bool:
    """Return whether a leaf has a gradient: a float, or an array of floats."""
    try:
        return var.dtype.kind == "f"
    except (rg.ReactgradError, TypeError, ValueError):
        return False


def number_of(var: rg.Var, value: Any, what: str) -> float:
    """Return the one number of an output's value.

    Raises
    ------
    ScenarioError
        If it is not one real number.
    """
    if getattr(value, "size", 1) == 1 and getattr(value, "dtype", None) is not None:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        shape = getattr(value, "shape", None)
        raise ScenarioError(
            f"{what} needs one number, and {var.label!r} has "
            + (f"the shape {shape}" if shape is not None else f"a {type(value).__name__}")
            + ". Reduce it, such as y.sum(), or choose an element, such as y[0]."
        )
    return float(value)


def twin(graph: rg.Graph, var: rg.Var) -> rg.Var:
    """Return the node of `graph` for a Var of it, of its origin, of a fork of it, or of another fork of its origin.

    Raises
    ------
    GraphError
        If there is none.
    """
    other: Any = var.graph
    if other is graph:
        return var
    serial = other._scheduler.topology.serial[var._slot]
    mine = [(graph, serial), *((origin(), limit) for origin, limit in graph._lineage)]  # type: ignore[attr-defined]
    for origin, limit in other._lineage:
        if serial <= limit and any(origin() is one and serial <= last for one, last in mine if one):
            topology: Any = graph._scheduler.topology  # type: ignore[attr-defined]
            if len(topology.serial) > var._slot and topology.serial[var._slot] == serial:
                return handle(graph, var._slot)  # type: ignore[arg-type]
    return graph[var]


def text_of(value: Any) -> str:
    """Return a value in few characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{len(value)} values"
    shape = getattr(value, "shape", ())
    return f"array{list(shape)}" if shape else f"{value:.6g}" if _real(value) else str(value)


def _real(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "") == "f"
