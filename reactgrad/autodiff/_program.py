"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), only
for the nodes that lead to what was asked for, once; later questions extend it. It lives with the
output's handle and keeps the adjoints alive.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from reactgrad._errors import DTypeError, GradientError, ShapeError
from reactgrad.flow import enable_grad
from reactgrad.ops import Op, Placed, accumulate, astype, sum_to

# What stands for "the gradient is zero everywhere".
ZERO = object()


class Programs:
    """The live programs of a graph, and which one is building."""

    __slots__ = ("_live", "_next", "building")

    def __init__(self) -> None:
        self._live: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
        self._next = 0
        self.building: int | None = None

    def add(self, program: Program) -> int:
        """Register a program and number it."""
        self._next += 1
        self._live[self._next] = program
        return self._next

    def in_order(self) -> list[Program]:
        """The live programs in order of creation."""
        return [program for _, program in sorted(self._live.items())]


class Program:
    """The adjoints of `output` for one seed.

    Attributes
    ----------
    adjoint : dict
        From the slot of a node to the slot of its adjoint, or to ``ZERO``.
    kept : mapping
        From the slot of a node that was asked for to the Var of its adjoint.
    reads : set
        Slots whose shapes the adjoints were built for.
    """

    __slots__ = (
        "__weakref__",
        "_edges",
        "_graph",
        "_output",
        "_seed",
        "adjoint",
        "kept",
        "number",
        "observed",
        "reads",
    )

    def __init__(self, output: Any, seed: Any, *, shared: bool) -> None:
        self._graph = output._graph
        self._output: int = output._slot
        self._seed = seed
        # the nodes between, with the positions of their parents that gradients may pass to
        self._edges: dict[int, list[int]] = {}
        self.adjoint: dict[int, Any] = {}
        # A program for one call is kept by what it returned, one for many calls keeps that.
        self.kept: MutableMapping[int, Any] = {} if shared else weakref.WeakValueDictionary()
        self.reads: set[int] = set()
        self.observed: dict[int, tuple[int, ...]] = {}
        self.number = self._graph._programs.add(self)
        self._start()

    def twin(self, graph: Any) -> Program:
        """The same program in a fork of the graph, with the adjoints that are there already."""
        program = Program.__new__(Program)
        program._graph = graph
        program._output = self._output
        program._seed = graph._handle(self._seed._slot)
        program._edges = self._edges.copy()
        program.adjoint = self.adjoint.copy()
        program.kept = {slot: graph._handle(var._slot) for slot, var in self.kept.items()}
        program.reads = self.reads.copy()
        program.observed = self.observed.copy()
        program.number = graph._programs.add(program)
        return program

    def _start(self) -> None:
        self.adjoint = {self._output: self._seed._slot}
        self._edges = self._between()
        graph = self._graph
        self.reads = {p for slot in self._edges for p in sources(graph, slot)} | set(self._edges)

    def _between(self) -> dict[int, list[int]]:
        """All nodes that the output depends on over edges that gradients may pass."""
        edges: dict[int, list[int]] = {}
        stack = [self._output]
        while stack:
            slot = stack.pop()
            if slot not in edges:
                edges[slot] = open_edges(self._graph, slot)
                operands = sources(self._graph, slot)
                stack += [operands[i] for i in edges[slot]]
        return edges

    def adjoints(self, wanted: Sequence[int]) -> list[Any]:
        """The adjoints of these nodes as Vars; ``None`` for nodes the output does not depend on."""
        if any(
            self._graph._handle(slot).value_shape() != shape
            for slot, shape in self.observed.items()
        ):
            self.rebuild()
        missing = [slot for slot in wanted if slot not in self.kept]
        # Held here: what is new is not yet held by whoever asked.
        held = self._extend(missing) if missing else {}
        return [held.get(slot, self.kept.get(slot)) for slot in wanted]

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        graph = self._graph
        wanted = set(wanted)
        with _building(graph, self.number):
            leading = self._leading_to(wanted)
            self._sweep(leading)
            held: dict[int, Any] = {}
            for slot in wanted & leading:
                adjoint = self.adjoint[slot]
                var = (
                    graph._zeros_like(graph._handle(slot))
                    if adjoint is ZERO
                    else graph._handle(adjoint)
                )
                held[slot] = self.kept[slot] = var
        return held

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        """Nodes between what is wanted and the output; costs what it finds."""
        graph, edges = self._graph, self._edges
        children, users = graph._scheduler.topology.children, graph._host.branch_users
        stack = [slot for slot in wanted if slot in edges]
        leading = set(stack)
        while stack:
            slot = stack.pop()
            for child in (*children[slot], *users.get(slot, ())):
                if child not in leading and any(
                    sources(graph, child)[i] == slot for i in edges.get(child, ())
                ):
                    leading.add(child)
                    stack.append(child)
        return leading

    def _sweep(self, leading: set[int]) -> None:
        """From the output down, give every node that leads on its adjoint."""
        graph = self._graph
        serial = graph._scheduler.topology.serial
        contributions: dict[int, list[tuple[int, int, Any]]] = {}
        held: list[Any] = []  # nodes built here have no consumer before they are added up
        for slot in reversed(graph._scheduler.topology.sort(leading)):
            adjoint = self.adjoint.get(slot)
            if adjoint is None:
                parts = sorted(contributions.pop(slot, ()), key=lambda part: part[:2])
                if parts:
                    total = accumulate([part for _, _, part in parts], graph._handle(slot).shape)
                    held.append(total)
                    adjoint = total._slot
                else:
                    adjoint = ZERO
                self.adjoint[slot] = adjoint
            if adjoint is ZERO:
                continue
            operands = sources(graph, slot)
            edges = [
                i
                for i in self._edges[slot]
                if operands[i] in leading and operands[i] not in self.adjoint
            ]
            if edges:
                for i, part in self._contributions(slot, graph._handle(adjoint), edges):
                    contributions.setdefault(operands[i], []).append((serial[slot], i, part))

    def _contributions(self, slot: int, g: Any, edges: list[int]) -> Iterator[tuple[int, Any]]:
        """What this node contributes to the gradients of its parents at these positions."""
        graph = self._graph
        op, attrs = graph._host.ops[slot], graph._host.attrs[slot]
        ans = graph._handle(slot)
        operands = operand_vars(graph, slot)
        lifted: Any = None
        for i in edges:
            if isinstance(op, Op):
                if op.vjps is not None:
                    rule = op.vjps[i]
                    part = None if rule is None else rule(g, ans, *operands, *attrs)
                elif op.variadic is not None:
                    part = op.variadic(i, g, ans, operands, attrs)
                else:
                    raise _no_rule(graph, slot)
            else:
                if op.vjp is None:
                    raise _no_rule(graph, slot)
                if lifted is None:
                    lifted = _custom(graph, slot, op, op.vjp(g, ans, *operands), len(operands))
                part = lifted[i]
                if part is not None:
                    part = _checked(graph, slot, i, part)
            if part is not None:
                yield i, self._fitted(slot, i, part, broadcasts=getattr(op, "broadcasts", False))

    def _fitted(self, slot: int, i: int, part: Any, *, broadcasts: bool) -> Any:
        """A contribution in the shape and dtype of the operand it belongs to."""
        graph = self._graph
        parent = sources(graph, slot)[i]
        var = graph._handle(parent)
        if graph._host.specs[parent] is None:
            self.observed[parent] = var.shape
        if isinstance(part, Placed):
            if part.gradient.dtype != var.dtype:
                part.gradient = astype(part.gradient, var.dtype)
            return part
        if broadcasts:
            part = sum_to(part, var.shape)
        return part if part.dtype == var.dtype else astype(part, var.dtype)

    def rebuild(self) -> dict[int, Any]:
        """Build everything anew for changed shapes; Vars given out before stay what they are.

        Returns the slots whose node was redefined, with their new specs.
        """
        graph = self._graph
        before = dict(self.kept)
        self.kept.clear()
        self.observed.clear()
        self._start()
        after = self._extend(before)
        redirected: dict[int, Any] = {}
        for slot, var in before.items():
            new = after.get(slot)
            if new is None:  # the output does not depend on it any more
                with _building(graph, self.number):
                    new = graph._zeros_like(graph._handle(slot))
                self.adjoint[slot] = ZERO
            if new is var:
                continue
            graph._redirect(var._slot, new)
            redirected[var._slot] = graph._host.specs[var._slot]
            self.kept[slot] = var
            if self.adjoint[slot] is not ZERO:
                self.adjoint[slot] = var._slot
        return redirected


def sources(graph: Any, slot: int) -> tuple[int, ...]:
    """The operands of a node for gradients: of a choice both branches, also the one not taken."""
    branches = graph._host.branches
    if branches and slot in branches and slot not in graph._host.pins:
        return branches[slot]
    return graph._scheduler.operands(slot)


def open_edges(graph: Any, slot: int) -> list[int]:
    """Positions of the parents of `slot` to which gradients may pass."""
    host = graph._host
    parents = sources(graph, slot)
    if not parents:
        return []
    closed: Any = host.closed.get(slot, ())
    if closed is None:
        return []
    specs = host.specs
    if specs[slot] is not None and not specs[slot].differentiable:
        return []
    return [
        i
        for i, parent in enumerate(parents)
        if i not in closed and (specs[parent] is None or specs[parent].differentiable)
    ]


def operand_vars(graph: Any, slot: int) -> tuple[Any, ...]:
    """The operands as they were written: detached where the edge is."""
    closed = graph._host.closed.get(slot) or ()
    return tuple(
        graph._handle(parent).detach() if i in closed else graph._handle(parent)
        for i, parent in enumerate(sources(graph, slot))
    )


def wanted_leaves(graph: Any, slot: int) -> list[int]:
    """The trainable leaves that `slot` depends on over open edges, in order of creation."""
    host, topology = graph._host, graph._scheduler.topology
    found = {slot}
    stack = [slot]
    leaves: list[int] = []
    while stack:
        at = stack.pop()
        if host.ops[at].name == "param" and not topology.parents[at] and graph._scheduler.leaf[at]:
            if at not in host.frozen:
                leaves.append(at)
            continue
        for i in open_edges(graph, at):
            parent = sources(graph, at)[i]
            if parent not in found:
                found.add(parent)
                stack.append(parent)
    return sorted(leaves, key=topology.serial.__getitem__)


@contextmanager
def _building(graph: Any, number: int) -> Iterator[None]:
    """Build nodes for a program: differentiable ones, whatever the mode of the caller."""
    programs = graph._programs
    before, programs.building = programs.building, number
    collecting = gc.isenabled()
    # Building 100,000s of nodes, the cyclic collector would take half of the time to find
    # that none of them is garbage.
    gc.disable()
    try:
        with enable_grad():
            yield
    finally:
        programs.building = before
        if collecting:
            gc.enable()


def _no_rule(graph: Any, slot: int) -> GradientError:
    host = graph._host
    return GradientError(
        f"node {host.name(slot)!r} ({host.describe_op(slot)}) has no derivative rule, so no "
        "gradient passes it. Give one, rg.lift(fn, vjp=rule), or detach its operands, "
        "x.detach(), if none shall pass."
    )


def _custom(graph: Any, slot: int, op: Any, parts: Any, count: int) -> tuple[Any, ...]:
    if count == 1 and not isinstance(parts, tuple | list):
        parts = (parts,)
    if not isinstance(parts, tuple | list) or len(parts) != count:
        raise GradientError(
            f"the vjp of function {op.name!r} (node {graph._host.name(slot)!r}) returned "
            f"{len(parts) if isinstance(parts, tuple | list) else type(parts).__name__} "
            f"gradients for {count} operands. Return one for each, None where there is none."
        )
    return tuple(parts)


def _checked(graph: Any, slot: int, i: int, part: Any) -> Any:
    """A gradient from a user's rule, held against the operand it belongs to."""
    var = graph._handle(sources(graph, slot)[i])
    who = f"the vjp of node {graph._host.name(slot)!r} for operand {i + 1} ({var.name!r})"
    if not hasattr(part, "_slot"):
        part = graph.const(part)
    if part.shape != var.shape:
        raise ShapeError(
            f"{who} returned a gradient of shape {part.shape}; it must have the operand's, "
            f"{var.shape}. Sum over broadcast axes, or reshape."
        )
    if part.dtype.kind != "f":
        raise DTypeError(f"{who} returned a gradient of {part.dtype}; gradients are floats.")
    return part
