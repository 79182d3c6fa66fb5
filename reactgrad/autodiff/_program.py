"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), only
for the nodes that lead to what was asked for, once; later questions extend it. It lives with the
output's handle and keeps the adjoints alive.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from reactgrad._errors import DTypeError, GradientError, GraphError, ShapeError
from reactgrad.flow import Differentiable
from reactgrad.ops import Op, Placed, accumulate, alias, astype, known_shape, sum_to

# What stands for "the gradient is zero everywhere".
ZERO = object()


class Programs:
    """The live programs of a graph, and which one is building."""

    __slots__ = ("_by_output", "_live", "_next", "building")

    def __init__(self) -> None:
        self._live: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
        # Those for ones, and for the gradient of each backward, by output: handles come and go.
        self._by_output: weakref.WeakValueDictionary[tuple[int, Any], Program] = (
            weakref.WeakValueDictionary()
        )
        self._next = 0
        self.building: int | None = None

    def add(self, program: Program) -> int:
        """Register a program and number it."""
        self._next += 1
        self._live[self._next] = program
        return self._next

    def find(self, output: int, key: Any) -> Program | None:
        """The live program of this output and seed."""
        return self._by_output.get((output, key))

    def name(self, output: int, key: Any, program: Program) -> None:
        """Let ``find`` find a program."""
        self._by_output[output, key] = program

    def read(self, slot: int) -> bool:
        """Whether live gradients depend on this node."""
        return any(slot in program.reads for program in self.in_order())

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
        From the slot of a node that was asked for to the Var of its adjoint, weakly: the adjoints
        keep their program, and the output's handle keeps both.
    reads : set
        Slots whose shapes the adjoints were built for.
    """

    __slots__ = (
        "__weakref__",
        "_anchor",
        "_edges",
        "_graph",
        "_output",
        "_rebuilding",
        "_seed",
        "_serials",
        "adjoint",
        "kept",
        "number",
        "observed",
        "reads",
    )

    def __init__(self, output: Any, seed: Any) -> None:
        self._graph = output._graph
        self._output: int = output._slot
        self._seed = seed
        self._rebuilding = False
        # the nodes between, with the positions of their parents that gradients may pass to
        self._edges: dict[int, list[int]] = {}
        self.adjoint: dict[int, Any] = {}
        # Adjoints may outlive the output's handle; its node must not go before them.
        self._anchor = self._graph._host.anchor(output._slot)
        self.kept: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
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
        program._rebuilding = False
        program._anchor = graph._host.anchor(self._output)
        program._edges = self._edges.copy()
        program.adjoint = self.adjoint.copy()
        program._serials = self._serials.copy()
        program.kept = weakref.WeakValueDictionary()
        program.reads = self.reads.copy()
        program.observed = self.observed.copy()
        program.number = graph._programs.add(program)
        return program

    def _start(self) -> None:
        self.adjoint = {}
        self._serials: dict[int, int] = {}  # of the adjoints: their slots may be used again
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

    @property
    def seed(self) -> Any:
        """The gradient of the output."""
        return self._seed

    def adjoints(self, wanted: Sequence[int], held: dict[int, Any] | None = None) -> list[Any]:
        """The adjoints of these nodes as Vars; ``None`` for nodes the output does not depend on.

        `held` is what the output's handle keeps of them; what is found is added to it.
        """
        if any(
            self._graph._handle(slot).value_shape() != shape
            for slot, shape in self.observed.items()
        ):
            self.rebuild()
        missing = [slot for slot in wanted if slot not in self.kept]
        # Held here: what is new is not yet held by whoever asked.
        new = self._extend(missing) if missing else {}
        if held is not None:
            held.update(new)
        return [new.get(slot, self.kept.get(slot)) for slot in wanted]

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        graph = self._graph
        wanted = set(wanted)
        graph._tidy()  # now, and not while nodes are built that nobody holds yet
        before = self._purged()
        with _building(graph, self.number):
            leading = self._leading_to(wanted)
            self.adjoint = before.copy()
            try:
                built = self._sweep(leading)  # held until others hold them
            except BaseException:
                self.adjoint = before
                raise
            serial = graph._scheduler.topology.serial
            self._serials = {a: serial[a] for a in self.adjoint.values() if a is not ZERO}
            held: dict[int, Any] = {}
            for slot in wanted & leading:
                adjoint = self.adjoint[slot]
                var = self._given_out(slot, adjoint)
                held[slot] = self.kept[slot] = var
                var._programs_dict()[self] = self
            del built
        return held

    def _purged(self) -> dict[int, Any]:
        """The adjoints known so far, without those whose node is gone or another one by now."""
        serial = self._graph._scheduler.topology.serial
        return {
            slot: adjoint
            for slot, adjoint in self.adjoint.items()
            if adjoint is ZERO or serial[adjoint] == self._serials.get(adjoint)
        }

    def _given_out(self, slot: int, adjoint: Any) -> Any:
        """The Var of an adjoint for callers: a node of its own that nobody else was given."""
        graph = self._graph
        if adjoint is ZERO:
            return graph._zeros_like(graph._handle(slot))
        taken = any(var._slot == adjoint for var in self.kept.values())
        if taken or graph._host.owners.get(adjoint) != self.number:
            return alias(graph._handle(adjoint))
        return graph._handle(adjoint)

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

    def _sweep(self, leading: set[int]) -> list[Any]:
        """From the output down, give every node that leads on its adjoint; returns what is new."""
        graph = self._graph
        serial = graph._scheduler.topology.serial
        contributions: dict[int, list[tuple[int, int, Any]]] = {}
        held: list[Any] = []  # nodes built here have no consumer before they are added up
        for slot in reversed(graph._scheduler.topology.sort(leading)):
            adjoint = self.adjoint.get(slot)
            if adjoint is None:
                total = self._hooked(slot, self._total(slot, contributions.pop(slot, [])))
                held.append(total)
                adjoint = self.adjoint[slot] = ZERO if total is None else total._slot
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
        return held

    def _total(self, slot: int, contributions: list[tuple[int, int, Any]]) -> Any:
        """The gradient that arrives at a node; ``None`` if it is zero everywhere."""
        if slot == self._output:
            return self._seed
        if not contributions:
            return None
        parts = [part for _, _, part in sorted(contributions, key=lambda part: part[:2])]
        found = self._graph._host.specs[slot]
        shape: Any = None if found is None else found.shape
        if found is None and any(isinstance(part, Placed) for part in parts):
            shape = self._graph._handle(slot).shape
        return accumulate(parts, shape)

    def _hooked(self, slot: int, total: Any) -> Any:
        """What becomes of a gradient where hooks are registered (rule D12)."""
        hooks = self._graph._host.hooks.get(slot, ())
        if hooks and total is None:
            total = self._graph._zeros_like(self._graph._handle(slot))
        for through in hooks:
            total = through(total)
        return total

    def rerun_hooks(self) -> None:
        """Let the next read call the hooks that it passes, whatever versions say (rule D12)."""
        scheduler = self._graph._scheduler
        for slot, hooks in self._graph._host.hooks.items():
            at = self.adjoint.get(slot, ZERO)
            if at is not ZERO and scheduler.topology.serial[at] == self._serials.get(at):
                for _ in hooks:
                    scheduler.invalidate(at)
                    (at,) = scheduler.operands(at)

    def _contributions(self, slot: int, g: Any, edges: list[int]) -> Iterator[tuple[int, Any]]:
        """What this node contributes to the gradients of its parents at these positions."""
        graph = self._graph
        op, attrs = graph._host.ops[slot], graph._host.attrs[slot]
        self._refuse_complex(slot, edges)
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
                    arguments, places = op.arguments(operands)
                    parts = op.vjp(g, ans, *arguments)
                    lifted = _custom(graph, slot, op, parts, len(arguments))
                    lifted = [lifted[place] for place in places]
                part = lifted[i]
                if part is not None:
                    part = self._checked(slot, i, part)
            if part is not None:
                yield i, self._fitted(slot, i, part, broadcasts=getattr(op, "broadcasts", False))

    def _checked(self, slot: int, i: int, part: Any) -> Any:
        """A gradient from a user's rule, held against the operand it belongs to."""
        graph = self._graph
        var = graph._handle(sources(graph, slot)[i])
        who = f"the vjp of node {graph._host.name(slot)!r} for operand {i + 1} ({var.name!r})"
        if not hasattr(part, "_slot"):
            part = graph.const(part)
        if part._graph is not graph:
            raise GraphError(f"{who} returned a Var of another graph.")
        specs = graph._host.specs
        unknown = specs[part._slot] is None or specs[var._slot] is None
        if unknown and not self._may_look(part, var):
            return part  # shown when it runs
        if part.shape != var.shape:
            raise ShapeError(
                f"{who} returned a gradient of shape {part.shape}; it must have the operand's, "
                f"{var.shape}. Sum over broadcast axes, or reshape."
            )
        if part.dtype.kind != "f":
            raise DTypeError(f"{who} returned a gradient of {part.dtype}; gradients are floats.")
        return part

    def _may_look(self, *variables: Any) -> bool:
        """Whether shapes that only values show can be had now."""
        if self._rebuilding:  # in the middle of a set
            return False
        try:
            self._graph.forward(*variables)
        except Exception:  # shown to whoever reads them
            return False
        return True

    def _refuse_complex(self, slot: int, edges: list[int]) -> None:
        host = self._graph._host
        for at in (slot, *[sources(self._graph, slot)[i] for i in edges]):
            found = host.specs[at]
            if found is not None and found.dtype.kind == "c":
                raise GradientError(
                    f"the gradient would pass {host.name(at)!r}, which is complex ({found!r}); only "
                    "gradients of real numbers are defined here. Compute with real and imaginary "
                    "parts, or detach the complex one."
                )

    def _fitted(self, slot: int, i: int, part: Any, *, broadcasts: bool) -> Any:
        """A contribution in the shape and dtype of the operand it belongs to."""
        graph = self._graph
        parent = sources(graph, slot)[i]
        var = graph._handle(parent)
        found = graph._host.specs[parent]
        if isinstance(part, Placed):
            if found is None:
                # Where it goes in the sum depends on the operand's shape, which may change.
                self.observed[parent] = var.shape
            elif _dtype(part.gradient) != found.dtype:
                part.gradient = astype(part.gradient, found.dtype)
            return part
        if broadcasts or found is None:
            part = sum_to(part, var)
        return part if found is None or _dtype(part) == found.dtype else astype(part, found.dtype)

    def rebuild(self) -> dict[int, Any]:
        """Build everything anew for changed shapes; Vars given out before stay what they are.

        Returns the slots whose node was redefined, with their new specs.
        """
        graph = self._graph
        self._check_seed()
        before = dict(self.kept)
        state = self.adjoint, self._serials, self._edges, self.reads, self.observed
        self.kept.clear()
        self.observed = {}
        self._rebuilding = True
        try:
            self._start()
            after = self._extend(before)
        except BaseException:
            self.adjoint, self._serials, self._edges, self.reads, self.observed = state
            self.kept.clear()
            self.kept.update(before)
            raise
        finally:
            self._rebuilding = False
        redirected: dict[int, Any] = {}
        for slot, var in before.items():
            new = after.get(slot)
            if new is None:  # the output does not depend on it any more
                with _building(graph, self.number):
                    new = graph._zeros_like(graph._handle(slot))
            graph._redirect(var._slot, new)
            redirected[var._slot] = graph._host.specs[var._slot]
            self.kept[slot] = var
        return redirected

    def _check_seed(self) -> None:
        """Raise if the output's new shape does not go with the gradient it was given."""
        output = self._graph._handle(self._output)
        shape, seed = known_shape(output), known_shape(self._seed)
        if shape is None or seed is None:
            return
        if len(shape) != len(seed) or any(
            m != n and m is not None and n is not None for m, n in zip(shape, seed, strict=True)
        ):
            raise ShapeError(
                f"{output.name!r} would get the shape {shape}, and gradients of it exist that were "
                f"asked for with a gradient= of shape {seed} (1 for a single number). Drop these "
                "gradients first, or reduce to a single number before differentiating."
            )


def _dtype(var: Any) -> Any:
    """The dtype of a node, ``None`` where only its value will show it."""
    found = var._graph._host.specs[var._slot]
    return None if found is None else found.dtype


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
        with Differentiable():
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
