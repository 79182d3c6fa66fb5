"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), only
for the nodes that lead to what was asked for, once; later questions extend it. It lives as long as
the output's handle, which keeps the adjoints alive, or one of the nodes that it gave out.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from reactgrad._errors import Cancelled, GradientError, OutdatedRuleError, SeedError
from reactgrad.autodiff._custom import MissingRuleError, custom_gradients, no_rule
from reactgrad.autodiff._edges import open_edges, operand_vars, sources, way_to
from reactgrad.autodiff._following import update_program
from reactgrad.backend import WEAK_SPECS
from reactgrad.build._constants import zeros_like
from reactgrad.build._functions import copy_of
from reactgrad.core._handles import handle
from reactgrad.core._lifetime import tidy
from reactgrad.flow import Differentiable, follow_segment
from reactgrad.nodes._leaf import PARAM, Leaf
from reactgrad.nodes._op import Attrs, Op
from reactgrad.nodes._output import Output
from reactgrad.ops import (
    ACCUMULATE,
    ALIAS,
    FAN_IN,
    Placed,
    Share,
    accumulate,
    accumulated,
    alias,
    astype,
    known_shape,
    sum_of_product,
    sum_to,
)
from reactgrad.reading._refresh import follow_rules
from reactgrad.scheduler import CollectorPause

# What stands for "the gradient is zero everywhere".
ZERO: Any = object()

_ABSENT: Any = object()

# What a program knows; ``reads`` only grows.
_TABLES = (
    "adjoint",
    "_serials",
    "_own",
    "_hooks",
    "_holds",
    "_edges",
    "_parts",
    "observed",
    "seen",
    "_inner",
)

# Of these, and of other sets and dicts, what refers to no handle: forks share them until one is written.
_SHARED = tuple({*_TABLES, "reads", "_given"} - {"_holds"})

# Nodes with more operands than this are indexed by them while a program is built.
_WIDE = 8

Redefine = Callable[[int, Op, tuple[int, ...], Attrs], None]
Changes = list[tuple[Any, Any, Any]]  # tables of a program, with what stood in them


class Part(NamedTuple):
    """What a node contributes to the gradient of one of its operands."""

    slot: int
    serial: int
    kind: type[Placed | Share] | None  # ``None``: it belongs everywhere in the operand
    index: Any  # else where, and the nodes that stand in that index
    operands: tuple[int, ...]
    own: bool  # whether its node was made for this and nothing else


class Program:
    """The adjoints of `output` for one seed.

    A change of the graph redoes the rules of the nodes that changed, and the sums that these
    contribute to. A sum that changes keeps its node, which adds up others then or becomes an alias, so
    that all below it stays as it is. Programs that derive otherwise are subclasses: see ``_forward`` and
    ``_jacobian``.

    Attributes
    ----------
    adjoint : dict
        From the slot of a node to the slot of its adjoint, or to ``ZERO``. Adjoints that nobody
        needed any more are gone; their slots may belong to others by now, see ``known``.
    seeds : dict
        From the slot of a node whose derivative is given to the Var that holds it.
    broken : bool
        Whether all that was given out raises, until the next change or question.
    reads : dict
        At least the nodes that the adjoints were built for: slots with their serials.
    seen : dict
        For nodes whose rules depend on what their function has left: all that was, and what of it
        they have read; ``None``: they wait for it.
    """

    __slots__ = (
        "__weakref__",
        "_anchors",
        "_changes",
        "_edges",
        "_given",
        "_graph",
        "_held",
        "_holds",
        "_hooks",
        "_inner",
        "_output",
        "_own",
        "_params",
        "_parts",
        "_room",
        "_serials",
        "_sharers",
        "_updating",
        "adjoint",
        "number",
        "observed",
        "reads",
        "refusal",
        "seeds",
        "seen",
    )

    def __init__(self, output: Any, seed: Any) -> None:
        self._open(output, {output._slot: seed})

    def _open(self, output: Any, seeds: dict[int, Any]) -> None:
        self._graph = output._graph
        self._output: int = output._slot
        self.seeds = seeds
        self._updating = False
        self.refusal: Any = None  # the node that raises why it is broken
        self._changes: Changes | None = None
        self._held: list[Any] = []  # contributions while they are added up
        # What is built may outlive these handles; their nodes must not go before it.
        self._anchors = [self._graph._host.anchor(slot) for slot in {self._output, *seeds}]
        # For which nodes which were given out, each with its serial behind it.
        self._given: dict[int, tuple[int, int, int]] = {}
        self._sharers: weakref.WeakSet[Program] | None = None  # who has the same tables, and itself
        # How many adjoints the output's handle may keep before it looks through them.
        self._room = 8
        with CollectorPause():  # all tuples that it makes stay
            self._start()
        self.number = self._graph._programs.add(self)
        self._watch_seeds()

    def twin(self, graph: Any) -> Program:
        """The same program in a fork of the graph, with the adjoints that are there already."""
        program = type(self).__new__(type(self))
        if self._sharers is None:
            self._sharers = weakref.WeakSet((self,))
        program._sharers = self._sharers
        program._sharers.add(program)
        for name in _SHARED:
            setattr(program, name, getattr(self, name))
        program._graph = graph
        program._output = self._output
        program.seeds = {at: handle(graph, seed._slot) for at, seed in self.seeds.items()}
        program._updating = False
        refusal = self.refusal
        program.refusal = None if refusal is None else handle(graph, refusal._slot)
        program._changes = None
        program._held = []
        program._anchors = [graph._host.anchor(slot) for slot in {self._output, *self.seeds}]
        program._params = self._params
        program._holds = {at: graph._host.anchor(self.adjoint[at]) for at in self._holds}
        program._room = self._room
        # What was given out stays as long as the fork, and the program with the output's node.
        program.number = graph._programs.add(program, self.number)
        return program

    def _part_tables(self) -> None:
        """Let forks keep the tables that are about to be written, and go on with copies."""
        sharers, self._sharers = self._sharers, None
        if sharers is not None:
            if len(sharers) > 1:
                for name in _SHARED:
                    setattr(self, name, getattr(self, name).copy())
            sharers.discard(self)  # last: in another thread one of them may ask who is left

    def _start(self) -> None:
        self.adjoint: dict[int, Any] = {}
        # Serials of the nodes that adjoints are: their slots may be used again.
        self._serials: dict[int, int] = {}
        self._own: dict[int, None] = {}  # whose adjoint is the adjoint of no other node
        self._hooks: dict[int, tuple[Any, ...]] = {}  # those that adjoints pass (rule D12)
        self._holds: dict[int, Any] = {}  # anchors of adjoints that no node may use, as of tuples
        # The nodes between: the positions to which gradients may pass, and who is there.
        self._edges: dict[int, tuple[tuple[int, int], ...]] = {}
        self._params: tuple[int, ...] | None = None  # those among them, once asked for
        self._parts: dict[tuple[int, int], Part | None] = {}  # by node and position
        self.observed: dict[int, tuple[int, ...]] = {}  # shapes that only values show
        self.seen: dict[int, tuple[dict[str, Any], dict[str, Any] | None]] = {}
        # The same for functions that rules differentiate while they build: by the rule's node, the
        # functions' slots and serials, and what of them was read.
        self._inner: dict[int, tuple[tuple[int, int, dict[str, Any] | None], ...]] = {}
        self.reads: dict[int, int] = {}
        self._read(seed._slot for seed in self.seeds.values())
        self._reach([self._output])

    def _read(self, slots: Iterable[int]) -> None:
        host, serial = self._graph._host, self._graph._scheduler.topology.serial
        specs, floats, number = host.specs, host.floats, WEAK_SPECS[float]
        for slot in slots:
            self.reads[slot] = serial[slot]
            if specs[slot] is number:
                floats.add(slot)

    def has_read(self, slot: int) -> bool:
        """Whether adjoints were built for this node, and not for one that had its slot before."""
        return self.reads.get(slot) == self._graph._scheduler.topology.serial[slot]

    def has_read_any(self, slots: Iterable[int]) -> bool:
        """Whether adjoints were built for one of these nodes."""
        reads, serial = self.reads, self._graph._scheduler.topology.serial
        return any(reads.get(slot) == serial[slot] for slot in slots)

    @property
    def seed(self) -> Any:
        """The gradient of the output."""
        return self.seeds[self._output]

    # --- asking ----------------------------------------------------------------------------------

    def adjoints(self, wanted: Sequence[int], held: dict[int, Any] | None = None) -> list[Any]:
        """The adjoints of these nodes as Vars; ``None`` for nodes the output does not depend on.

        `held` is what the output's handle keeps of them; what is found is added to it.
        """
        graph = self._graph
        if graph._programs.waiting:
            follow_rules(graph)
        self.follow_below()
        moved = self._moved(self.observed)
        if moved or self.broken:
            update_program(graph, self, moved)
            if self.broken:  # its tables are of before
                graph._value(self.refusal._slot)
        found = [self.given(slot) for slot in wanted]
        missing = [slot for slot, var in zip(wanted, found, strict=True) if var is None]
        if not missing:
            return found
        # Held here: what is new is not yet held by whoever asked.
        new = self._extend(missing)
        if held is not None:
            held.update(new)
            if len(held) > self._room:
                self._let_go(held)
        return [
            new.get(slot) if var is None else var for slot, var in zip(wanted, found, strict=True)
        ]

    def observe(self, slot: int, shape: tuple[int, ...]) -> None:
        """It goes with this shape of a node, which only its value shows."""
        graph = self._graph
        own = graph._host.owners.get(slot) == self.number  # which follows from those of others
        # What was built for a former shape, and is not built anew just now, still goes with that.
        if not own and slot not in self.observed:
            self._put(self.observed, slot, shape)
            graph._programs.observing = True

    def _moved(self, among: Iterable[int]) -> set[int]:
        """Which of these nodes have another shape than it goes with; computes them."""
        graph, observed = self._graph, self.observed.copy()  # to compute them may build
        return {slot for slot in list(among) if handle(graph, slot).value_shape() != observed[slot]}

    def follow_values(self, among: Collection[int]) -> bool:
        """Follow the shapes that values have, and those that these nodes will have; whether one moved."""
        graph = self._graph
        is_stale, programs = graph._scheduler.is_stale, graph._programs
        if self.number in programs.looking:  # such a value is computed from what it has given out
            return False
        moved: set[int] = set()
        before, programs.looking = programs.looking, (*programs.looking, self.number)
        try:
            for slot in [*self.observed]:
                if slot in among or not is_stale(slot):
                    try:
                        moved |= self._moved([slot])
                    except Cancelled:
                        raise
                    except Exception:  # who needs it will raise that
                        continue
        finally:
            programs.looking = before
        if moved:
            update_program(graph, self, moved)
        return bool(moved)

    def follow_below(self, above: frozenset[int] = frozenset()) -> None:
        """Let gradients that this one is built on follow first: while it builds it stands on them."""
        programs, owners = self._graph._programs, self._graph._host.owners
        if not programs.observing or programs.under_way:
            return
        above |= {self.number}
        below = {owners.get(slot) for slot in self.reads if self.has_read(slot)} - above
        for program in programs.in_order():
            if program.number in below:
                program.follow_below(above)
                program.follow_values(program.observed)

    def given(self, slot: int) -> Any:
        """The Var of what was given out for a node and still lives."""
        at = self._shown(slot)
        return None if at is None else handle(self._graph, at)

    def all_given(self) -> dict[int, Any]:
        """The Vars of all that was given out and still lives, by the nodes they are for."""
        found = {slot: self.given(slot) for slot in self._given}
        return {slot: var for slot, var in found.items() if var is not None}

    def _shown(self, slot: int) -> int | None:
        """The node that was given out for a node, if both still live."""
        serial, removed = self._graph._scheduler.topology.serial, self._graph._host.removed
        since, given, number = self._given.get(slot, (None, 0, 0))
        alive = serial[slot] == since and serial[given] == number and given not in removed
        return given if alive else None

    def _let_go(self, held: dict[int, Any]) -> None:
        """Of the adjoints that the output's handle keeps, let go of those of nodes that are gone."""
        for slot in [slot for slot, var in held.items() if self.given(slot) is not var]:
            del held[slot]
        self._room = 2 * len(held) + 8  # so that all this costs no more than asking

    def adjoint_or_zeros(self, wanted: int) -> Any:
        """The adjoint of a node; where the output does not depend on it, zeros until it does."""
        (found,) = self.adjoints([wanted])
        if found is None:
            self._part_tables()
            with _building(self._graph, self.number):
                found = self._give_out(wanted)
        return found

    # --- while leaves have other shapes ----------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Whether its tables depend on nothing but the definitions and shapes of nodes."""
        return not (self.broken or self.observed or self.seen or self._inner)

    def tables(self) -> dict[str, Any]:
        """What it knows, in tables that nobody writes any more if others take their places."""
        self._part_tables()  # a fork that is left alone with them would
        return {name: getattr(self, name) for name in _TABLES}

    def take_tables(self, tables: dict[str, Any]) -> None:
        """Know what these say, which it has known before."""
        for name, table in tables.items():
            setattr(self, name, table)
        self._params = None

    def part_from(self) -> dict[str, Any]:
        """The tables of now, which it does not write any more: it goes on with copies."""
        tables = self.tables()
        self.take_tables({name: table.copy() for name, table in tables.items()})
        return tables

    def uses(self) -> set[int]:
        """The nodes of adjoints and of what these are the sums of."""
        serial = self._graph._scheduler.topology.serial
        found = {slot for slot in map(self.known, self.adjoint) if slot is not None}
        found.discard(ZERO)
        parts = [part for part in self._parts.values() if part is not None]
        found.update([part.slot for part in parts if serial[part.slot] == part.serial])
        return found

    def shown(self) -> set[int]:
        """The nodes that were given out and still live."""
        return {slot for slot in map(self._shown, self._given) if slot is not None}

    @property
    def unsure(self) -> bool:
        """Whether it does not know between which nodes it stands: while it follows a change."""
        return self.broken or self._updating

    def params(self) -> tuple[int, ...]:
        """The params that the output depends on over open edges, in order of creation."""
        if self._params is None:
            ops, serial = self._graph._host.ops, self._graph._scheduler.topology.serial
            found = [slot for slot in self._edges if ops[slot] is PARAM]
            self._params = tuple(sorted(found, key=serial.__getitem__))
        return self._params

    def between(self, root: int) -> set[int]:
        """The nodes of which `root` has gradients, and those that compute them, but for `root`."""
        found = set(self.adjoint)
        found.update(
            [slot for slot, number in self._graph._host.owners.items() if number == self.number]
        )
        found.discard(root)
        return found

    def depends_on(self, slot: int) -> bool:
        """Whether the output depends on this node over edges that derivatives pass."""
        return slot in self._edges

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        """Build the adjoints of more nodes."""
        wanted = [slot for slot in wanted if slot in self._edges]
        graph = self._graph
        self._part_tables()
        tidy(graph)  # now, and not while nodes are built that nobody holds yet
        held: dict[int, Any] = {}
        with _building(graph, self.number):
            # The first time there is nothing to go back to but the start.
            self._changes = [] if self.adjoint else None
            try:
                self._sweep(self._leading_to(wanted), set(), None)
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
        """The Var of an adjoint for callers: a node of its own that nobody else was given.

        The program lives as long as that node, so no other node of the program may use it.
        """
        graph, adjoint = self._graph, self.known(slot)
        if adjoint is None or adjoint is ZERO:
            var = self._zero(slot)
        else:
            var = handle(graph, adjoint)
            if slot not in self._own or not self._is_last(slot):
                var = alias(var)
        serial = graph._scheduler.topology.serial
        self._given[slot] = (serial[slot], var._slot, serial[var._slot])
        graph._host.givers.setdefault(var._slot, set()).add(self)
        return var

    def stay(self) -> None:
        """Live as long as what was given out."""
        for slot in self._given:
            given = self._shown(slot)
            if given is not None:
                self._graph._host.givers.setdefault(given, set()).add(self)

    def dismiss(self) -> None:
        """Follow nothing any more; what was given out stays what it is."""
        for _, given, _ in self._given.values():
            self._graph._host.givers.get(given, set()).discard(self)

    def _is_last(self, slot: int) -> bool:
        """Whether no adjoint will ever be computed from that of this node."""
        return isinstance(self._graph._host.ops[slot], Leaf)

    def _zero(self, slot: int) -> Any:
        """What callers get of a node whose derivative is zero everywhere."""
        try:
            return zeros_like(self._graph, handle(self._graph, slot))
        except OutdatedRuleError:  # of a former rule, so that no value will show its shape any more
            programs = self._graph._programs
            if programs.reshaping or programs.changing:
                raise
            return self._graph.const(0.0)

    def rest(self) -> None:
        """It does not follow any change, in whatever line that was interrupted."""
        self._changes, self._updating = None, False
        self._held.clear()

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
            Lets a node of the program be this op of these operands, with these attributes.
        changes
            Takes in what ``take_back`` needs.
        """
        broken = self.refusal is not None
        if respecced or broken:
            self._check_seed()
        self._part_tables()
        programs = self._graph._programs
        with _building(self._graph, self.number):
            self._changes, self._updating = changes, True
            before, programs.changing = programs.changing, not programs.following
            try:
                if broken:
                    self._restart(redefine)
                else:
                    self._follow(changed, respecced, redefine)
                if respecced:
                    self._watch_seeds()
            finally:
                programs.changing = before
                self._changes, self._updating = None, False
                self._held.clear()

    def _follow(self, changed: set[int], respecced: set[int], redefine: Redefine) -> None:
        specs = self._graph._host.specs
        if respecced and any(
            seed._slot in respecced and specs[seed._slot] is None for seed in self.seeds.values()
        ):
            self._restart(redefine)  # nothing that was built knows its shape any more
            return
        edges = self._edges
        anew = changed & edges.keys()
        for slot in respecced:
            self._drop(self.observed, slot)
            anew.update(child for child in self._consumers(slot) if child in edges)
        totals = respecced & edges.keys()  # which are added up in their shape
        gone: set[int] = set()
        reached: list[int] = []
        for slot in anew:
            if self._hooks_of(slot) != self._hooks.get(slot, ()):
                totals.add(slot)
            before, after = edges[slot], self._open_edges(slot)
            if after != before:
                self._put(edges, slot, after)
                self._read(sources(self._graph, slot))
                for i, source in set(before).difference(after):
                    self._drop(self._parts, (slot, i))
                    gone.add(source)
                reached += self._reach([source for _, source in after])
        totals |= gone
        left = self._leave(gone, totals) if gone else []
        if reached and not self._graph._host.owners.keys().isdisjoint(reached):
            self._check_cycle([slot for slot in reached if slot in edges])
        known = self.known
        # What newly leads to something that was asked for.
        starts = [slot for slot in reached if self._is_end(slot) and slot in edges]
        wanted = set(starts)
        starts += [
            slot
            for slot in (*anew, *reached)
            if known(slot) is None
            and any(known(s) is not None or s in wanted for _, s in edges.get(slot, ()))
        ]
        needed = self._needed(starts) if starts else set[int]()
        self._check_rules(anew | needed, needed)
        moved = self._sweep(
            needed | {slot for slot in totals if known(slot) is not None},
            {slot for slot in anew if slot in edges},
            redefine,
        )
        zeros = [s for s in respecced if s not in edges or known(s) is ZERO]
        outgrown = self._outgrown() if respecced else ()
        self._show({*moved, *needed, *left, *zeros, *outgrown}, redefine)

    def _restart(self, redefine: Redefine) -> None:
        """Build everything anew that was asked for."""
        for name in (*_TABLES, "refusal"):
            self._note(self, name, getattr(self, name))
        reads = self.reads
        try:
            self._start()
            self._check_cycle(self._edges)
        finally:  # also where it is refused: what comes back was built for these
            self.reads = reads | self.reads
        self.refusal = None
        wanted = [slot for slot in self._given if self._shown(slot) is not None]
        self._sweep(self._leading_to(slot for slot in wanted if slot in self._edges), set(), None)
        self._show(wanted, redefine)

    @property
    def broken(self) -> bool:
        """Whether it could not follow, so that it is to be built anew."""
        return self.refusal is not None

    def break_down(self, refusal: Any, redefine: Redefine) -> None:
        """Let all that was given out raise what the node `refusal` raises, until the next change."""
        self.refusal = refusal
        for slot in self._given:
            given = self._shown(slot)
            if given is not None:
                redefine(given, ALIAS, (refusal._slot,), ())

    def _show(self, slots: Iterable[int], redefine: Redefine) -> None:
        """Let what was given out for these nodes show their adjoints."""
        for slot in slots:
            given = self._shown(slot)
            if given is None:
                continue
            adjoint = self.known(slot) if slot in self._edges else None
            if adjoint is None or adjoint is ZERO:
                adjoint = self._zero(slot)._slot
            if adjoint != given:
                redefine(given, ALIAS, (adjoint,), ())

    def _outgrown(self) -> list[int]:
        """For which nodes something was given out that has a former shape: that of a seed, which is none of
        the program's nodes and does not follow with them."""
        specs = self._graph._host.specs
        both = {slot: (self._shown(slot), self.known(slot)) for slot in self._given}
        return [
            slot
            for slot, (given, adjoint) in both.items()
            if None not in (given, adjoint)
            and adjoint is not ZERO
            and specs[given] is not specs[adjoint]
        ]

    def rerun_hooks(self) -> None:
        """Let the next read call the hooks that it passes, whatever versions say (rule D12)."""
        scheduler, ops = self._graph._scheduler, self._graph._host.ops
        for slot, hooks in self._hooks.items():
            at = self.known(slot)
            if at is not None:
                for _ in hooks:
                    while ops[at] is ALIAS:  # what an adjoint becomes when it changes
                        (at,) = scheduler.operands(at)
                    scheduler.invalidate(at)
                    (at,) = scheduler.operands(at)

    def take_back(self, changes: Changes) -> None:
        """Undo what was noted, latest first."""
        self._params = None
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
        refusal = getattr(self._graph._host.ops[slot], "refusal", None)
        if refusal is not None:  # what is derived from a gradient that raises raises, too
            raise refusal.with_traceback(None)
        return tuple(open_edges(self._graph, slot))

    def _ways_from(self, slot: int) -> list[tuple[int, int]]:
        """The operands of a node to which gradients may pass, each behind its position."""
        return open_edges(self._graph, slot)

    def _consumers(self, slot: int) -> Iterable[int]:
        """All nodes that use this one, also as a branch that they may choose; copies none of many."""
        graph = self._graph
        children = graph._scheduler.topology.children[slot]
        users = graph._host.branch_users.get(slot)
        return dict.fromkeys([*children, *users]) if users else children

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
                self._params = None
                self._read((slot, *sources(graph, slot)))
                reached.append(slot)
                stack += [source for _, source in found]
        return reached

    def _check_cycle(self, reached: Iterable[int]) -> None:
        """Raise ``CycleError`` if the output depends now on what is derived from it: that has no end.

        On any node of such a program: what one node is computed from may be another one after an edit.
        """
        owners, number = self._graph._host.owners, self.number
        known: dict[int, bool] = {}
        for slot in reached:
            owner = owners.get(slot)
            if owner is None:
                continue
            if owner not in known:
                known[owner] = number in self._stands_on(owner)
            if known[owner]:
                path = way_to(self._output, slot, self._edges)
                error = self._graph._scheduler.cycle_error([*path, slot])
                error.add_note(
                    f"{self._graph._host.name(slot)!r} is part of a derivative of "
                    f"{self._graph._host.name(path[-1])!r}."
                )
                raise error

    def _stands_on(self, number: int) -> set[int]:
        """The number of a program, with those of all that it derives derivatives of now."""
        programs, owners = self._graph._programs, self._graph._host.owners
        found, stack = {number}, [number]
        while stack:
            program = programs.of_number(stack.pop())
            if program is None:
                continue
            # Its tables may not have followed yet what is being edited.
            for slot in program._nodes_now():
                owner = owners.get(slot)
                if owner is not None and owner not in found:
                    found.add(owner)
                    stack.append(owner)
        return found

    def _nodes_now(self) -> set[int]:
        """The nodes that the output depends on over edges that gradients may pass, as these are now."""
        found, stack = {self._output}, [self._output]
        while stack:
            for _, source in self._ways_from(stack.pop()):
                if source not in found:
                    found.add(source)
                    stack.append(source)
        return found

    def _leave(self, slots: Iterable[int], totals: set[int]) -> list[int]:
        """Let go of those of these nodes that the output does not depend on any more."""
        edges = self._edges
        left: list[int] = []
        stack = list(slots)
        while stack:
            slot = stack.pop()
            if slot == self._output or slot not in edges or self._leads_on(slot):
                continue
            for i, source in edges[slot]:
                self._drop(self._parts, (slot, i))
                totals.add(source)
                stack.append(source)
            for table in (
                edges,
                self.adjoint,
                self._serials,
                self._own,
                self._holds,
                self._hooks,
                self.observed,
                self.seen,
                self._inner,
            ):
                self._drop(table, slot)
            left.append(slot)
            self._params = None
        return left

    def _leads_on(self, slot: int) -> bool:
        """Whether a consumer of this node takes a gradient from the output to it."""
        edges = self._edges
        for child in self._consumers(slot):
            for _, source in edges.get(child, ()):
                if source == slot:
                    return True
        return False

    def known(self, slot: int) -> Any:
        """The adjoint of a node: a slot, ``ZERO``, or ``None`` where there is none (any more)."""
        adjoint = self.adjoint.get(slot)
        if adjoint is None or adjoint is ZERO:
            return adjoint
        alive = self._graph._scheduler.topology.serial[adjoint] == self._serials[slot]
        return adjoint if alive else None

    def _is_end(self, slot: int) -> bool:
        """Whether this node is one of those up to which derivatives go from the output."""
        return self._shown(slot) is not None

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        """The nodes that still need adjoints for these to have theirs."""
        return self._needed(wanted)

    def _needed(self, wanted: Iterable[int]) -> set[int]:
        """These nodes and those between them and the output that have no adjoint; costs those."""
        edges = self._edges
        needed: set[int] = set()
        wide: dict[int, set[int]] = {}  # the operands of nodes that have many
        stack = list(wanted)
        while stack:
            slot = stack.pop()
            if slot in needed or self.known(slot) is not None:
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

        Raises
        ------
        CycleError
            If adjoints depend on each other, by way of branches that no choice takes now.
        """
        rank = self._graph._scheduler.topology.rank
        queue = [(-rank[slot], slot) for slot in totals | anew]
        heapify(queue)
        rules, moved = set(anew), dict[int, None]()
        # Whom nodes wait for. Mostly consumers have had their turn, but no rank lies between a choice and
        # a branch that it does not take.
        waiting: dict[int, set[int]] = {}
        wide: dict[int, dict[int, list[int]]] = {}
        while queue:
            slot = heappop(queue)[1]
            more: Iterable[int] = ()
            if slot in totals:
                parts, silent = self._gather(slot, wide)
                if silent and waiting.get(slot) == silent:
                    continue  # none of them has had its turn
                if silent:
                    unknown = self._needed(c for c in silent if self.known(c) is None)
                    totals |= unknown
                    rules |= silent
                    waiting[slot] = silent
                    more = (*silent, *unknown)
                else:
                    totals.discard(slot)
                    waiting.pop(slot, None)
                    known = self.known(slot) is not None
                    if self._total(slot, parts, redefine):
                        moved[slot] = None
                        rules.add(slot)
                        if known:
                            anew.add(slot)
            if slot in rules and slot not in totals:
                rules.discard(slot)
                more = [s for s in self._ask(slot, totals, slot in anew) if s not in totals]
                totals.update(more)
                more += [source for _, source in self._edges[slot] if source in waiting]
            for other in more:
                heappush(queue, (-rank[other], other))
        if waiting:
            path = [next(iter(waiting))]
            while path.count(path[-1]) == 1:
                path.append(next(child for child in waiting[path[-1]] if child in waiting))
            raise self._graph._scheduler.cycle_error(path[path.index(path[-1]) :], "gradient")
        return moved

    def _gather(
        self, slot: int, wide: dict[int, dict[int, list[int]]]
    ) -> tuple[list[tuple[int, int, int, Part]], set[int]]:
        """What consumers contribute, by their creation and position; and who has not said it."""
        serial = self._graph._scheduler.topology.serial
        if slot == self._output:
            seed = self.seed._slot
            return [(0, 0, slot, Part(seed, serial[seed], None, None, (), False))], set()
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
        before: Any = self.known(slot)
        own = before is not None and slot in self._own
        hooks = self._hooks_of(slot)
        if hooks:
            self._put(self._hooks, slot, hooks)
        else:
            self._drop(self._hooks, slot)
        if len(found) == 1 and found[0][3].kind is None and not hooks:
            part = found[0][3]
            adjoint, alone = part.slot, part.own
            if adjoint == before:
                return False
        elif not found and not hooks:
            adjoint, alone = ZERO, False
            if before is ZERO:
                return False
        else:
            parts = [self._beside(before, own, *one) for one in found]
            if self._graph._host.specs[slot] is None and any(p.kind is Placed for p in parts):
                zeros = self._background(slot)
                serial = self._graph._scheduler.topology.serial[zeros._slot]
                parts.insert(0, Part(zeros._slot, serial, None, None, (), True))
            # Rules take a tuple apart while they build, so another one is another gradient for them.
            several = bool(parts) and parts[0].kind is Share
            if own and not several and not hooks and self._sums(slot, before, parts, redefine):
                return False
            total = self._sum(slot, parts)
            for through in hooks:
                total = through(total, self._graph._host.specs[slot] is not None)
            return self._enter(slot, total._slot, True, own and not several, several, redefine)
        return self._enter(slot, adjoint, alone, own, False, redefine)

    def _beside(self, before: Any, own: bool, _: int, i: int, child: int, part: Part) -> Part:
        """A contribution as one of several."""
        if part.slot != before or not own:
            return part
        # It was all there was, and stays as the node of the sum.
        copy = copy_of(self._graph, before)
        self._held.append(copy)
        serial = self._graph._scheduler.topology.serial[copy._slot]
        part = Part(copy._slot, serial, None, None, (), True)
        self._put(self._parts, (child, i), part)
        return part

    def _sums(self, slot: int, adjoint: Any, parts: list[Part], redefine: Redefine | None) -> bool:
        """Let the adjoint that a node has add up these; or return that it would be of another kind."""
        graph, specs = self._graph, self._graph._host.specs
        first, shape = graph._scheduler.topology.next_serial, self._sum_shape(slot)
        attrs: Attrs
        if sum([part.kind is None for part in parts]) > FAN_IN:  # they become sums of groups
            operands, attrs = accumulated(self._contributed(parts), shape)
            self._held += operands
            slots = tuple([operand._slot for operand in operands])
        else:
            slots = tuple([part.slot for part in parts])
            slots = sum([part.operands for part in parts if part.operands], slots)
            attrs = (shape, tuple([part.index for part in parts]))
        known = tuple([specs[at] for at in slots])
        if None in known or ACCUMULATE.result(known, attrs) is not specs[adjoint]:
            return False
        assert redefine is not None
        redefine(adjoint, ACCUMULATE, slots, attrs)
        if graph._host.transient:
            follow_segment(graph, slot, slot, adjoint, first)
        return True

    def _background(self, slot: int) -> Any:
        """Zeros that places belong to, of a node whose shape only its value shows, so that they follow it."""
        zeros = zeros_like(self._graph, handle(self._graph, slot))
        self._held.append(zeros)
        return zeros

    def _contributed(self, parts: list[Part]) -> list[Any]:
        """Contributions as rules return them."""
        at = partial(handle, self._graph)
        return [
            at(part.slot)
            if part.kind is None
            else part.kind(at(part.slot), part.index, *map(at, part.operands))
            for part in parts
        ]

    def _hooks_of(self, slot: int) -> tuple[Any, ...]:
        """What the adjoint of a node passes, in order."""
        return self._graph._host.hooks.get(slot, ())

    def _enter(
        self, slot: int, adjoint: Any, alone: bool, own: bool, hold: bool, redefine: Redefine | None
    ) -> bool:
        """Note the adjoint of a node; returns whether it is another node than before.

        Parameters
        ----------
        alone
            Whether it is the adjoint of no other node; a constant stays what it is anyway.
        own
            Whether this was so before, and the node before may stay and be redefined.
        hold
            Whether it must be kept alive.
        """
        graph, before, specs = self._graph, self.known(slot), self._graph._host.specs
        if own and before is not None and adjoint is not ZERO and specs[before] is specs[adjoint]:
            assert redefine is not None
            redefine(before, ALIAS, (adjoint,), ())
            return False
        self._put(self.adjoint, slot, adjoint)
        if adjoint is ZERO:
            self._drop(self._serials, slot)
        else:
            self._put(self._serials, slot, graph._scheduler.topology.serial[adjoint])
        if alone and not graph._scheduler.leaf[adjoint]:
            self._put(self._own, slot, None)
        else:
            self._drop(self._own, slot)
        if hold:
            self._put(self._holds, slot, graph._host.anchor(adjoint))
        else:
            self._drop(self._holds, slot)
        return True

    def _sum(self, slot: int, parts: list[Part]) -> Any:
        if not parts:
            return zeros_like(self._graph, handle(self._graph, slot))
        first = self._graph._scheduler.topology.next_serial
        total = accumulate(self._contributed(parts), self._sum_shape(slot))
        if self._graph._host.transient:
            follow_segment(self._graph, slot, slot, total._slot, first)
        return total

    def _sum_shape(self, slot: int) -> Any:
        """The shape of what a node is given in parts; ``None``: that of the first."""
        found = self._graph._host.specs[slot]
        return None if found is None else found.shape

    def _ask(self, slot: int, totals: set[int], anew: bool) -> list[int]:
        """Ask a node what it contributes; returns the operands to which that is another part now."""
        adjoint = self.known(slot)
        if adjoint is None:
            return []
        serial, parts = self._graph._scheduler.topology.serial, self._parts
        wanted: list[tuple[int, int]] = []
        for i, source in self._edges[slot]:
            if source in totals or self.known(source) is not None:
                part = _ABSENT if anew else parts.get((slot, i), _ABSENT)
                if part is _ABSENT or (part is not None and serial[part.slot] != part.serial):
                    wanted.append((i, source))
            elif anew:
                self._drop(parts, (slot, i))
        if anew:
            self._forget_seen(slot)
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
        ops = graph._host.ops
        # The rule of a function gives all contributions at once, and they may have nodes in common.
        alone = isinstance(ops[slot], Op) or len(self._edges[slot]) == 1
        made: dict[int, Part] = {}
        operands = dict(edges)
        first = graph._scheduler.topology.next_serial
        for i, part in self._contributions(slot, handle(graph, self.adjoint[slot]), edges):
            var, kind, index, inside = part, None, None, ()
            if isinstance(part, Placed | Share):
                var, kind, index = part.gradient, type(part), part.index
                if isinstance(part, Placed):
                    inside = tuple([operand._slot for operand in part.operands])
            self._held.append(var)
            at = var._slot
            # Whoever asks for an output is given the one node that it has.
            own = alone and serial[at] >= first and not isinstance(ops[at], Output)
            made[i] = Part(at, serial[at], kind, index, inside, own)
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
        ans = handle(graph, slot)
        operands = operand_vars(graph, slot)
        custom: dict[int, Any] = {}
        for i, parent in edges:
            if isinstance(op, Op):
                part, since = None, graph._scheduler.topology.next_serial
                if op.vjps is not None:
                    rule = op.vjps[i]
                    part = None if rule is None else rule(g, ans, *operands, *attrs)
                elif op.variadic is not None:
                    part = op.variadic(i, g, ans, operands, attrs)
                if part is not None:
                    yield i, self._fitted(parent, part, op.broadcasts, since)
            elif isinstance(op, Output):
                yield i, Share(g, op.index)
            else:
                custom = custom or custom_gradients(self, slot, g, operands, [i for i, _ in edges])
                if custom[i] is not None:
                    yield i, custom[i]

    def look(self, slot: int, kind: type) -> Any:
        """The value that a rule has to see to be built; in the middle of a change the last one.

        Only where rules are asked anew because functions have run may those run that never have:
        then there is none of this kind.
        """
        last = self._graph._host.data[slot]
        if self._graph._programs.changing or (self._updating and isinstance(last, kind)):
            return last
        return self._graph._value_for_rule(slot)

    def _forget_seen(self, slot: int) -> None:
        """The rule of this node is asked anew."""
        self._drop(self.seen, slot)
        self._drop(self._inner, slot)

    def saw(self, slot: int, left: dict[str, Any], read: dict[str, Any]) -> None:
        """A rule has read this of what its function has left; what was read first counts."""
        before = self.seen.get(slot, ({}, None))[1]
        self._put(self.seen, slot, (left, read | before if before else read))
        self._tell_outer(slot, read)
        self._graph._rule_saw(self)

    def postpone(self, slot: int) -> None:
        """The rule of this node waits until its function has run."""
        self._put(self.seen, slot, ({}, None))
        self._tell_outer(slot, None)
        self._graph._programs.waiting = True

    def _tell_outer(self, slot: int, read: dict[str, Any] | None) -> None:
        """A rule that builds with this program has to be asked anew, which may be gone by then."""
        serial = self._graph._scheduler.topology.serial[slot]
        for program, node in self._graph._programs.asking:
            if program is not self:
                inner = program._inner.get(node, ())
                program._put(program._inner, node, (*inner, (slot, serial, read)))

    def outdated(self) -> dict[int, bool]:
        """Nodes whose rules were built for what is no more so; whether they wait for a run."""
        if self.broken:
            return {self._output: False}
        serial, still_so = self._graph._scheduler.topology.serial, self._still_so
        found = {
            node: False
            for node, inner in self._inner.items()
            if any(serial[at] == since and not still_so(at, read) for at, since, read in inner)
        }
        for slot, (_, read) in self.seen.items():
            if not still_so(slot, read):
                found[slot] = read is None
        return found

    def _still_so(self, slot: int, read: dict[str, Any] | None) -> bool:
        host = self._graph._host
        return read is not None and host.ops[slot].still_so(read, host.data[slot])

    def _check_rules(self, slots: set[int], needed: set[int]) -> None:
        """Refuse what has no gradient before a rule looks at a value: that may run nodes."""
        for slot in slots:
            leading = [
                (i, source)
                for i, source in self._edges.get(slot, ())
                if source in needed or self.known(source) is not None
            ]
            if leading and (slot in needed or self.known(slot) not in (None, ZERO)):
                self._check_rule(slot, leading)

    def _check_rule(self, slot: int, edges: Sequence[tuple[int, int]]) -> None:
        """Raise ``GradientError`` if no gradient passes to these operands."""
        host = self._graph._host
        op = host.ops[slot]
        if not self._has_rule(op):
            raise self._no_rule(slot)
        for at in (slot, *[parent for _, parent in edges]):
            found = host.specs[at]
            if found is not None and found.dtype.kind == "c":
                raise GradientError(
                    f"the gradient would pass {host.name(at)!r}, which is complex ({found!r}); only "
                    "gradients of real numbers are defined here. Compute with real and imaginary "
                    "parts, or detach the complex one."
                )

    def _has_rule(self, op: Any) -> bool:
        return op.has_rules

    def _no_rule(self, slot: int) -> MissingRuleError:
        return no_rule(self._graph, slot)

    def _fitted(self, parent: int, part: Any, broadcasts: bool, since: int | None = None) -> Any:
        """A contribution in the shape and dtype of the operand it belongs to.

        Nodes from the serial `since` on were made for it alone; without it none was.
        """
        graph = self._graph
        specs = graph._host.specs
        found = specs[parent]
        if isinstance(part, Placed):
            if found is not None and _dtype(part.gradient) != found.dtype:
                part.gradient = astype(part.gradient, found.dtype)
            return part
        if found is not None and specs[part._slot] is found:
            return part
        if broadcasts or found is None:
            new = since is not None and graph._scheduler.topology.serial[part._slot] >= since
            part = (sum_of_product if new else sum_to)(part, handle(graph, parent))
        return part if found is None or _dtype(part) == found.dtype else astype(part, found.dtype)

    def _check_seed(self) -> None:
        """Raise if the output's new shape does not go with the gradient it was given."""
        for var, shape, seed in self._misfits():
            raise SeedError(
                f"{var.name!r} would get the shape {shape}, and gradients of it exist that were "
                f"asked for with a gradient= of shape {seed} (1 for a single number). Drop these "
                "gradients first, or reduce to a single number before differentiating.",
                var,
            )

    def _watch_seeds(self) -> None:
        """Go with the shapes of what is given, where only values will show whether the nodes have them."""
        for slot, given in self.seeds.items():
            shape: Any = known_shape(given)
            if self._graph._host.specs[slot] is None and shape is not None and None not in shape:
                self.observe(slot, shape)

    def _misfits(self) -> Iterator[tuple[Any, Any, Any]]:
        """Nodes whose shape is not that of the derivative they were given, with both shapes."""
        for slot, given in self.seeds.items():
            var = handle(self._graph, slot)
            shape, seed = known_shape(var), known_shape(given)
            following = self._graph._programs.following  # else values may be of before the change
            if shape is None and following and not self._graph._scheduler.is_stale(slot):
                shape = var.value_shape()
            if shape is None or seed is None:
                continue
            if len(shape) != len(seed) or any(
                m != n and m is not None and n is not None for m, n in zip(shape, seed, strict=True)
            ):
                yield var, shape, seed


def _dtype(var: Any) -> Any:
    """The dtype of a node, ``None`` where only its value will show it."""
    found = var._graph._host.specs[var._slot]
    return None if found is None else found.dtype


@contextmanager
def _building(graph: Any, number: int) -> Iterator[None]:
    """Build nodes for a program: differentiable ones, whatever the mode of the caller."""
    programs = graph._programs
    if number in programs.under_way:
        raise GradientError(
            "the rule of a gradient asked for that same gradient while it was being built, which "
            "would never end. Ask for gradients of other nodes in a rule, or build it of ops."
        )
    before = programs.building
    try:
        programs.under_way.add(number)
        programs.building = number
        with CollectorPause(), Differentiable():
            yield
    finally:
        programs.building = before
        programs.under_way.discard(number)
