"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), only
for the nodes that lead to what was asked for, once; later questions extend it. It lives with the
output's handle and keeps the adjoints alive.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from reactgrad._errors import DTypeError, GradientError, GraphError, ShapeError
from reactgrad.flow import enable_grad, follow_segment
from reactgrad.ops import Op, Placed, accumulate, alias, astype, known_shape, sum_to

# What stands for "the gradient is zero everywhere".
ZERO: Any = object()

_ABSENT: Any = object()

# Nodes with more operands than this are indexed by them while a program is built.
_WIDE = 8

Redefine = Callable[[int, int], None]
Changes = list[tuple[Any, Any, Any]]  # tables of a program, with what stood in them


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
        return [program for _, program in sorted(self._live.items())] if self._live else []


class Part(NamedTuple):
    """What a node contributes to the gradient of one of its operands."""

    slot: int
    serial: int
    index: Any  # where it belongs in the operand; ``None``: everywhere
    own: bool  # whether its node was made for this and nothing else


class Program:
    """The adjoints of `output` for one seed.

    A change of the graph redoes the rules of the nodes that changed, and the sums that these
    contribute to. A sum that changes keeps its node, which becomes an alias of the new one, so that
    all below it stays as it is.

    Attributes
    ----------
    adjoint : dict
        From the slot of a node to the slot of its adjoint, or to ``ZERO``. Adjoints that nobody
        needed any more are gone; their slots may belong to others by now, see ``_known``.
    kept : mapping
        From the slot of a node that was asked for to the Var of its adjoint, weakly: the adjoints
        keep their program, and the output's handle keeps both.
    reads : set
        At least the slots of the nodes that the adjoints were built for.
    """

    __slots__ = (
        "__weakref__",
        "_anchor",
        "_asked",
        "_broken",
        "_changes",
        "_edges",
        "_graph",
        "_held",
        "_output",
        "_own",
        "_parts",
        "_seed",
        "_serials",
        "_updating",
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
        self._updating = False
        self._broken = False
        self._changes: Changes | None = None
        self._held: list[Any] = []  # contributions while they are added up
        # Adjoints may outlive the output's handle; its node must not go before them.
        self._anchor = self._graph._host.anchor(output._slot)
        self.kept: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._asked: dict[int, int] = {}  # serials of the nodes in ``kept``
        self._start()
        self.number = self._graph._programs.add(self)

    def twin(self, graph: Any) -> Program:
        """The same program in a fork of the graph, with the adjoints that are there already."""
        program = Program.__new__(Program)
        program._graph = graph
        program._output = self._output
        program._seed = graph._handle(self._seed._slot)
        program._updating = False
        program._broken = self._broken
        program._changes = None
        program._held = []
        program._anchor = graph._host.anchor(self._output)
        program._edges = self._edges.copy()
        program._parts = self._parts.copy()
        program._own = self._own.copy()
        program.adjoint = self.adjoint.copy()
        program._serials = self._serials.copy()
        program.kept = weakref.WeakValueDictionary()
        program._asked = self._asked.copy()
        program.reads = self.reads.copy()
        program.observed = self.observed.copy()
        program.number = graph._programs.add(program)
        return program

    def _start(self) -> None:
        self.adjoint: dict[int, Any] = {self._output: self._seed._slot}
        # Serials of the nodes that adjoints are: their slots may be used again.
        self._serials: dict[int, int] = {
            self._output: self._graph._scheduler.topology.serial[self._seed._slot]
        }
        self._own: dict[int, None] = {}  # whose adjoint is the adjoint of no other node
        # The nodes between: the positions to which gradients may pass, and who is there.
        self._edges: dict[int, tuple[tuple[int, int], ...]] = {}
        self._parts: dict[tuple[int, int], Part | None] = {}  # by node and position
        self.observed: dict[int, tuple[int, ...]] = {}  # shapes that only values show
        self.reads: set[int] = set()
        self._reach([self._output])

    @property
    def seed(self) -> Any:
        """The gradient of the output."""
        return self._seed

    # --- asking ----------------------------------------------------------------------------------

    def adjoints(self, wanted: Sequence[int], held: dict[int, Any] | None = None) -> list[Any]:
        """The adjoints of these nodes as Vars; ``None`` for nodes the output does not depend on.

        `held` is what the output's handle keeps of them; what is found is added to it.
        """
        graph = self._graph
        moved = {
            slot
            for slot, shape in self.observed.items()
            if graph._handle(slot).value_shape() != shape
        }
        if moved or self._broken:
            graph._update_program(self, moved)
        missing = [slot for slot in wanted if self._given(slot) is None]
        # Held here: what is new is not yet held by whoever asked.
        new = self._extend(missing) if missing else {}
        if held is not None:
            held.update(new)
        return [new.get(slot, self._given(slot)) for slot in wanted]

    def _given(self, slot: int) -> Any:
        """The Var that was given out for a node and still lives."""
        serial = self._graph._scheduler.topology.serial
        return self.kept.get(slot) if self._asked.get(slot) == serial[slot] else None

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        """Build the adjoints of more nodes."""
        wanted = [slot for slot in wanted if slot in self._edges]
        graph = self._graph
        graph._tidy()  # now, and not while nodes are built that nobody holds yet
        first = len(self._own) == 0 and len(self.adjoint) == 1
        # The first time there is nothing to go back to but the start.
        self._changes = None if first else []
        held: dict[int, Any] = {}
        try:
            with _building(graph, self.number):
                self._sweep(self._needed(wanted), set(), None)
                for slot in wanted:
                    held[slot] = self._give_out(slot)
        except BaseException:
            if self._changes is None:
                self._start()
            else:
                self.take_back(self._changes)
            raise
        finally:
            self._changes = None
            self._held.clear()
        return held

    def _give_out(self, slot: int) -> Any:
        """The Var of an adjoint for callers: a node of its own that nobody else was given."""
        graph, adjoint = self._graph, self.adjoint[slot]
        if adjoint is ZERO:
            var = graph._zeros_like(graph._handle(slot))
        else:
            var = graph._handle(adjoint)
            if slot not in self._own:
                var = alias(var)
        self.kept[slot] = var
        self._asked[slot] = graph._scheduler.topology.serial[slot]
        var._programs_dict()[self] = self
        return var

    # --- following a change ------------------------------------------------------------------------

    def update(
        self, changed: set[int], respecced: set[int], redefine: Redefine, changes: Changes
    ) -> None:
        """Follow a change of these nodes; Vars that were given out stay what they are.

        Parameters
        ----------
        changed
            Nodes that are computed otherwise or have another shape.
        respecced
            Those of them that have another shape.
        redefine
            Makes the first of two nodes an alias of the second.
        changes
            Takes in what ``take_back`` needs.
        """
        self._check_seed()
        self._changes, self._updating = changes, True
        try:
            with _building(self._graph, self.number):
                if self._broken:
                    self._restart(redefine)
                else:
                    self._follow(changed, respecced, redefine)
        finally:
            self._changes, self._updating = None, False
            self._held.clear()

    def _follow(self, changed: set[int], respecced: set[int], redefine: Redefine) -> None:
        edges = self._edges
        anew = {slot for slot in changed if slot in edges}
        for slot in respecced:
            anew.update(child for child in self._consumers(slot) if child in edges)
        totals: set[int] = set()
        gone: set[int] = set()
        reached: list[int] = []
        for slot in anew:
            before, after = edges[slot], self._open_edges(slot)
            if after != before:
                self._put(edges, slot, after)
                self.reads.update(sources(self._graph, slot))
                for i, source in set(before).difference(after):
                    self._drop(self._parts, (slot, i))
                    gone.add(source)
                reached += self._reach([source for _, source in after])
        totals.update(gone)
        left = self._leave(gone, totals)
        known, given = self._known, self._given
        # What newly leads to something that was asked for.
        starts = [slot for slot in reached if given(slot) is not None and slot in edges]
        wanted = set(starts)
        starts += [
            slot
            for slot in (*anew, *reached)
            if known(slot) is None
            and any(known(s) is not None or s in wanted for _, s in edges.get(slot, ()))
        ]
        needed = self._needed(starts)
        self._check_rules(anew | needed, needed)
        moved = self._sweep(
            needed | {slot for slot in totals if known(slot) is not None},
            {slot for slot in anew if slot in edges},
            redefine,
        )
        zeros = [s for s in respecced if s not in edges or known(s) is ZERO]
        self._show({*moved, *needed, *left, *zeros}, redefine)

    def _restart(self, redefine: Redefine) -> None:
        """Build everything anew that was asked for."""
        for name in ("adjoint", "_serials", "_own", "_edges", "_parts", "observed", "_broken"):
            self._note(self, name, getattr(self, name))
        reads = self.reads
        self._start()
        self.reads |= reads
        self._broken = False
        wanted = [slot for slot in self.kept if self._given(slot) is not None]
        self._sweep(self._needed(slot for slot in wanted if slot in self._edges), set(), None)
        self._show(wanted, redefine)

    def break_down(self, error: Any, redefine: Redefine) -> None:
        """Let all that was given out raise what the node `error` raises, until the next change."""
        self._broken = True
        for var in list(self.kept.values()):
            redefine(var._slot, error._slot)

    def _show(self, slots: Iterable[int], redefine: Redefine) -> None:
        """Let the Vars that were given out for these nodes show their adjoints."""
        graph = self._graph
        for slot in slots:
            var = self._given(slot)
            if var is None:
                continue
            adjoint = self._known(slot) if slot in self._edges else None
            if adjoint is None or adjoint is ZERO:
                adjoint = graph._zeros_like(graph._handle(slot))._slot
            if adjoint != var._slot:
                redefine(var._slot, adjoint)

    def take_back(self, changes: Changes) -> None:
        """Undo what was noted, latest first."""
        while changes:
            table, key, before = changes.pop()
            if table is self:
                setattr(self, key, before)
            elif before is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = before

    def _note(self, table: Any, key: Any, before: Any) -> None:
        if self._changes is not None:
            self._changes.append((table, key, before))

    def _put(self, table: dict[Any, Any], key: Any, entry: Any) -> None:
        if self._changes is not None:
            self._changes.append((table, key, table.get(key, _ABSENT)))
        table[key] = entry

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            self._note(table, key, table.pop(key))

    # --- which nodes -------------------------------------------------------------------------------

    def _open_edges(self, slot: int) -> tuple[tuple[int, int], ...]:
        return tuple(open_edges(self._graph, slot))

    def _consumers(self, slot: int) -> list[int]:
        """All nodes that use this one, also as a branch that they may choose."""
        graph = self._graph
        children = graph._scheduler.topology.children[slot]
        users = graph._host.branch_users.get(slot)
        return list(dict.fromkeys([*children, *users]) if users else children)

    def _positions(self, slot: int, source: int) -> list[int]:
        """Where among the operands of a node between another one is that gradients may pass to."""
        return [i for i, other in self._edges.get(slot, ()) if other == source]

    def _reach(self, slots: Iterable[int]) -> list[int]:
        """Take in these nodes and all that they depend on over edges that gradients may pass."""
        edges, graph = self._edges, self._graph
        reached: list[int] = []
        stack = list(slots)
        while stack:
            slot = stack.pop()
            if slot not in edges:
                found = self._open_edges(slot)
                self._put(edges, slot, found)
                self.reads.add(slot)
                self.reads.update(sources(graph, slot))
                reached.append(slot)
                stack += [source for _, source in found]
        return reached

    def _leave(self, slots: Iterable[int], totals: set[int]) -> list[int]:
        """Let go of those of these nodes that the output does not depend on any more."""
        edges = self._edges
        left: list[int] = []
        stack = list(slots)
        while stack:
            slot = stack.pop()
            if (
                slot == self._output
                or slot not in edges
                or any(self._positions(child, slot) for child in self._consumers(slot))
            ):
                continue
            for i, source in edges[slot]:
                self._drop(self._parts, (slot, i))
                totals.add(source)
                stack.append(source)
            for table in (edges, self.adjoint, self._serials, self._own):
                self._drop(table, slot)
            left.append(slot)
        return left

    def _known(self, slot: int) -> Any:
        """The adjoint of a node: a slot, ``ZERO``, or ``None`` where there is none (any more)."""
        adjoint = self.adjoint.get(slot)
        if adjoint is None or adjoint is ZERO:
            return adjoint
        serial = self._graph._scheduler.topology.serial
        return adjoint if serial[adjoint] == self._serials[slot] else None

    def _needed(self, wanted: Iterable[int]) -> set[int]:
        """These nodes and those between them and the output that have no adjoint; costs those."""
        edges = self._edges
        needed: set[int] = set()
        wide: dict[int, set[int]] = {}  # the operands of nodes that have many
        stack = list(wanted)
        while stack:
            slot = stack.pop()
            if slot in needed or self._known(slot) is not None:
                continue
            needed.add(slot)
            for child in self._consumers(slot):
                found = edges.get(child)
                if not found:
                    continue
                if len(found) > _WIDE:
                    if child not in wide:
                        wide[child] = {source for _, source in found}
                    leads = slot in wide[child]
                else:
                    leads = any(source == slot for _, source in found)
                if leads:
                    stack.append(child)
        return needed

    # --- building ----------------------------------------------------------------------------------

    def _sweep(
        self, totals: set[int], anew: set[int], redefine: Redefine | None
    ) -> dict[int, None]:
        """From the output down: add up contributions, and ask for those that are not there.

        Parameters
        ----------
        totals
            Nodes whose contributions are to be added up (again).
        anew
            Nodes whose rules are to be asked again for all that they contribute.
        redefine
            ``None`` where no adjoint that is there changes.

        Returns
        -------
        dict
            The nodes whose adjoint is another node than before.
        """
        rank = self._graph._scheduler.topology.rank
        queue = [(-rank[slot], slot) for slot in totals | anew]
        heapify(queue)
        rules, moved = set(anew), dict[int, None]()
        wide: dict[int, dict[int, list[int]]] = {}
        while queue:
            slot = heappop(queue)[1]
            more: Iterable[int] = ()
            if slot in totals:
                parts, silent = self._gather(slot, wide)
                if silent:
                    unknown = self._needed(c for c in silent if self._known(c) is None)
                    totals |= unknown
                    rules |= silent
                    more = (slot, *silent, *unknown)
                else:
                    totals.discard(slot)
                    known = self._known(slot) is not None
                    if self._total(slot, parts, redefine):
                        moved[slot] = None
                        rules.add(slot)
                        if known:
                            anew.add(slot)
            if slot in rules and slot not in totals:
                rules.discard(slot)
                more = [s for s in self._ask(slot, totals, slot in anew) if s not in totals]
                totals.update(more)
            for other in more:
                heappush(queue, (-rank[other], other))
        return moved

    def _gather(
        self, slot: int, wide: dict[int, dict[int, list[int]]]
    ) -> tuple[list[tuple[int, int, int, Part]], set[int]]:
        """What consumers contribute, by their creation and position; and who has not said it."""
        serial = self._graph._scheduler.topology.serial
        found: list[tuple[int, int, int, Part]] = []
        silent: set[int] = set()
        for child in self._consumers(slot):
            edges = self._edges.get(child, ())
            if len(edges) <= _WIDE:
                positions = [i for i, source in edges if source == slot]
            else:
                if child not in wide:
                    wide[child] = {}
                    for i, source in edges:
                        wide[child].setdefault(source, []).append(i)
                positions = wide[child].get(slot, [])
            for i in positions:
                part = self._parts.get((child, i), _ABSENT)
                if part is None:
                    continue
                if isinstance(part, Part) and serial[part.slot] == part.serial:
                    found.append((serial[child], i, child, part))
                else:
                    silent.add(child)
        return sorted(found), silent

    def _total(
        self, slot: int, found: list[tuple[int, int, int, Part]], redefine: Redefine | None
    ) -> bool:
        """Add up what a node was given; returns whether its adjoint is another node now."""
        graph, topology = self._graph, self._graph._scheduler.topology
        before: Any = self._known(slot)
        own = before is not None and slot in self._own
        if len(found) == 1 and found[0][3].index is None:
            part = found[0][3]
            adjoint, alone = part.slot, part.own
            if adjoint == before:
                return False
        elif not found:
            adjoint, alone = ZERO, False
            if before is ZERO:
                return False
        else:
            parts: list[Any] = []
            for _, i, child, part in found:
                if part.slot == before and own:
                    # It was all there was, and stays as the node of the sum.
                    copy = graph._copy(before)
                    part = Part(copy._slot, topology.serial[copy._slot], None, True)
                    self._put(self._parts, (child, i), part)
                var = graph._handle(part.slot)
                parts.append(var if part.index is None else Placed(var, part.index))
            adjoint, alone = self._sum(slot, parts)._slot, True
        specs = graph._host.specs
        if own and before is not None and adjoint is not ZERO and specs[before] is specs[adjoint]:
            assert redefine is not None
            redefine(before, adjoint)
            return False
        self._put(self.adjoint, slot, adjoint)
        if adjoint is ZERO:
            self._drop(self._serials, slot)
        else:
            self._put(self._serials, slot, topology.serial[adjoint])
        if alone:
            self._put(self._own, slot, None)
        else:
            self._drop(self._own, slot)
        return True

    def _sum(self, slot: int, parts: list[Any]) -> Any:
        found = self._graph._host.specs[slot]
        shape: Any = None if found is None else found.shape
        if found is None and any(isinstance(part, Placed) for part in parts):
            shape = self._graph._handle(slot).shape
        first = self._graph._scheduler.topology.next_serial
        total = accumulate(parts, shape)
        if self._graph._host.transient:
            follow_segment(self._graph, slot, slot, total._slot, first)
        return total

    def _ask(self, slot: int, totals: set[int], anew: bool) -> list[int]:
        """Ask a node what it contributes; returns the operands to which that is another part now."""
        adjoint = self._known(slot)
        if adjoint is None:
            return []
        serial, parts = self._graph._scheduler.topology.serial, self._parts
        wanted: list[tuple[int, int]] = []
        for i, source in self._edges[slot]:
            if source in totals or self._known(source) is not None:
                part = _ABSENT if anew else parts.get((slot, i), _ABSENT)
                if part is _ABSENT or (part is not None and serial[part.slot] != part.serial):
                    wanted.append((i, source))
        if not wanted:
            return []
        made = {} if adjoint is ZERO else self._made(slot, wanted)
        changed: list[int] = []
        for i, source in wanted:
            part = made.get(i)
            if part != parts.get((slot, i), _ABSENT):
                self._put(parts, (slot, i), part)
                changed.append(source)
        return changed

    def _made(self, slot: int, edges: Sequence[tuple[int, int]]) -> dict[int, Part]:
        """What a node contributes to these operands, by their positions."""
        graph, serial = self._graph, self._graph._scheduler.topology.serial
        # The rule of a function gives all contributions at once, and they may have nodes in common.
        alone = isinstance(graph._host.ops[slot], Op) or len(self._edges[slot]) == 1
        made: dict[int, Part] = {}
        operands = dict(edges)
        first = graph._scheduler.topology.next_serial
        for i, part in self._contributions(slot, graph._handle(self.adjoint[slot]), edges):
            var, index = part, None
            if isinstance(part, Placed):
                var, index = part.gradient, part.index
            self._held.append(var)
            at = var._slot
            made[i] = Part(at, serial[at], index, alone and serial[at] >= first)
            if graph._host.transient:
                follow_segment(graph, slot, operands[i], at, first)
            first = graph._scheduler.topology.next_serial
        return made

    def _contributions(
        self, slot: int, g: Any, edges: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, Any]]:
        """What this node contributes to the gradients of these operands, by their positions."""
        graph = self._graph
        op, attrs = graph._host.ops[slot], graph._host.attrs[slot]
        self._check_rule(slot, edges)
        ans = graph._handle(slot)
        operands = operand_vars(graph, slot)
        lifted: Any = None
        for i, parent in edges:
            if isinstance(op, Op):
                part = None
                if op.vjps is not None:
                    rule = op.vjps[i]
                    part = None if rule is None else rule(g, ans, *operands, *attrs)
                elif op.variadic is not None:
                    part = op.variadic(i, g, ans, operands, attrs)
            else:
                if lifted is None:
                    arguments, places = op.arguments(operands)
                    parts = op.vjp(g, ans, *arguments)
                    lifted = _custom(graph, slot, op, parts, len(arguments))
                    lifted = [lifted[place] for place in places]
                part = lifted[i]
                if part is not None:
                    part = self._checked(slot, i, parent, part)
            if part is not None:
                yield i, self._fitted(parent, part, getattr(op, "broadcasts", False))

    def _checked(self, slot: int, i: int, parent: int, part: Any) -> Any:
        """A gradient from a user's rule, held against the operand it belongs to."""
        graph = self._graph
        var = graph._handle(parent)
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
        if self._updating:  # in the middle of a change
            return False
        try:
            self._graph.forward(*variables)
        except Exception:  # shown to whoever reads them
            return False
        return True

    def _check_rules(self, slots: set[int], needed: set[int]) -> None:
        """Refuse what has no gradient before a rule looks at a value: that may run nodes."""
        for slot in slots:
            leading = [
                (i, source)
                for i, source in self._edges.get(slot, ())
                if source in needed or self._known(source) is not None
            ]
            if leading and (slot in needed or self._known(slot) not in (None, ZERO)):
                self._check_rule(slot, leading)

    def _check_rule(self, slot: int, edges: Sequence[tuple[int, int]]) -> None:
        """Raise ``GradientError`` if no gradient passes to these operands."""
        host = self._graph._host
        op = host.ops[slot]
        if not (op.has_rules if isinstance(op, Op) else op.vjp is not None):
            raise _no_rule(self._graph, slot)
        for at in (slot, *[parent for _, parent in edges]):
            found = host.specs[at]
            if found is not None and found.dtype.kind == "c":
                raise GradientError(
                    f"the gradient would pass {host.name(at)!r}, which is complex ({found!r}); only "
                    "gradients of real numbers are defined here. Compute with real and imaginary "
                    "parts, or detach the complex one."
                )

    def _fitted(self, parent: int, part: Any, broadcasts: bool) -> Any:
        """A contribution in the shape and dtype of the operand it belongs to."""
        graph = self._graph
        var = graph._handle(parent)
        found = graph._host.specs[parent]
        if isinstance(part, Placed):
            if found is None:
                # Where it goes in the sum depends on the operand's shape, which may change.
                self._put(self.observed, parent, var.shape)
            elif _dtype(part.gradient) != found.dtype:
                part.gradient = astype(part.gradient, found.dtype)
            return part
        if broadcasts or found is None:
            part = sum_to(part, var)
        return part if found is None or _dtype(part) == found.dtype else astype(part, found.dtype)

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


def open_edges(graph: Any, slot: int) -> list[tuple[int, int]]:
    """The operands of `slot` to which gradients may pass, each behind its position."""
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
        (i, parent)
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
        for _, parent in open_edges(graph, at):
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
