"""Updates of gradients after edits, new shapes, and new values that rules have read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from reactgrad._errors import Cancelled, GradientError, SeedError
from reactgrad.autodiff._edges import sources
from reactgrad.autodiff._paths import Wide
from reactgrad.autodiff._sweep import Redefine, Sweep
from reactgrad.autodiff._tables import BY_NODE, TABLES, ZERO, Changes
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.flow._mode import Differentiable
from reactgrad.ops import (
    ALIAS,
    known_shape,
)
from reactgrad.scheduler import CollectorPause, block, is_interrupt


class Following(Sweep):
    """The part of a program that updates it after changes of the graph."""

    __slots__ = ()

    def observe(self, slot: int, shape: tuple[int, ...]) -> None:
        """Record a shape that only the value of this node shows, and that the program depends on."""
        graph = self._graph
        # Its own shapes follow from those of others.
        own = graph._host.owners.get(slot) == self.number
        # An entry that is there stays: what was built for that shape and not rebuilt now still
        # depends on it.
        if not own and slot not in self.observed:
            self._put(self.observed, slot, shape)
            graph._programs.observing = True

    def _moved(self, among: Iterable[int]) -> set[int]:
        """Return which of these nodes have another shape than was recorded; computes them."""
        # A copy: computing them may build nodes.
        graph, observed = self._graph, self.observed.copy()
        return {slot for slot in list(among) if handle(graph, slot).value_shape() != observed[slot]}

    def follow_values(self, among: Collection[int]) -> bool:
        """Update the program where nodes have, or `among` will have, other shapes than it was built
        for.

        Return whether any had.
        """
        graph = self._graph
        is_stale, programs = graph._scheduler.is_stale, graph._programs
        if self.number in programs.looking:  # the value is computed from gradients of this program
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
                    except Exception as error:  # raised again where it is needed
                        if is_interrupt(error):
                            raise
        finally:
            programs.looking = before
        if moved:
            update_program(graph, self, moved)
        return bool(moved)

    def follow_below(self, above: frozenset[int] = frozenset()) -> None:
        """Update the gradients that this program is built on, before it builds nodes that rely on
        them.
        """
        programs, owners = self._graph._programs, self._graph._host.owners
        if not programs.observing or programs.under_way:
            return
        above |= {self.number}
        below = {owners.get(slot) for slot in self.reads if self.has_read(slot)} - above
        for program in programs.in_order():
            if program.number in below:
                program.follow_below(above)
                program.follow_values(program.observed)

    def update(
        self, changed: set[int], respecced: set[int], redefine: Redefine, changes: Changes
    ) -> None:
        """Update the program after a change of these nodes. Vars that were given out stay valid.

        Parameters
        ----------
        changed
            Nodes that have another definition or another shape.
        respecced
            Those of them that have another shape.
        redefine
            Gives a node of the program another op, operands and attributes.
        changes
            Receives what ``take_back`` needs.
        """
        broken = self.refusal is not None
        if respecced or broken:
            self._check_seed()
        self._part_tables()
        programs = self._graph._programs
        with building(self._graph, self.number):
            self._changes, self._updating = changes, True
            before, programs.changing = programs.changing, not programs.following
            try:
                if broken or self.hollow:
                    self._restart(redefine)
                else:
                    self._follow(changed, respecced, redefine)
                if respecced:
                    self._watch_seeds()
            finally:
                programs.changing = before
                self._changes, self._updating, self._apart = None, False, None
                self._release_held()

    def _follow(self, changed: set[int], respecced: set[int], redefine: Redefine) -> None:
        """Update the tables by what has changed: edges, contributions, sums, then what was given
        out.
        """
        specs = self._graph._host.specs
        if respecced and any(
            seed._slot in respecced and specs[seed._slot] is None for seed in self.seeds.values()
        ):
            self._restart(redefine)  # the shape is unknown now, so nothing built on it can stay
            return
        # 1. The edges of changed nodes. Contributions over edges that are gone are dropped.
        edges = self._edges
        anew = changed & edges.keys()
        for slot in respecced:
            self._drop(self.observed, slot)
            anew.update(child for child in self._consumers(slot) if child in edges)
        totals = respecced & edges.keys()  # their sums have their shape
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
        # 2. Nodes that the output has left, and those that it newly depends on.
        totals |= gone
        left = self._leave(gone, totals) if gone else []
        if reached and not self._graph._host.owners.keys().isdisjoint(reached):
            self._check_cycle([slot for slot in reached if slot in edges])
        known = self.known
        # Nodes that newly lead to something that was asked for.
        starts = [slot for slot in reached if self._is_end(slot) and slot in edges]
        wanted = set(starts)
        starts += [
            slot
            for slot in (*anew, *reached)
            if known(slot) is None
            and any(known(s) is not None or s in wanted for _, s in edges.get(slot, ()))
        ]
        needed = self._needed(starts) if starts else set[int]()
        # 3. Rules and sums, where anything changed.
        self._check_rules(anew | needed, needed)
        if respecced:
            self._apart = self._graph._programs.seeded_beside(self, self._graph._scheduler.leaf)
        moved = self._sweep(
            needed | {slot for slot in totals if known(slot) is not None},
            {slot for slot in anew if slot in edges},
            redefine,
        )
        zeros = [s for s in respecced if s not in edges or known(s) is ZERO]
        outgrown = self._outgrown() if respecced else ()
        self._show({*moved, *needed, *left, *zeros, *outgrown}, redefine)

    def _restart(self, redefine: Redefine) -> None:
        """Build everything again that was asked for."""
        for name in (*TABLES, "refusal", "hollow"):
            self._note(self, name, getattr(self, name))
        reads = self.reads
        try:
            self._start()
            self._check_cycle(self._edges)
        finally:  # also where it is refused: after the undo the former nodes count again
            self.reads = reads | self.reads
        self.refusal, self.hollow = None, False
        wanted = [slot for slot in self._given if self._shown(slot) is not None]
        self._sweep(self._leading_to(slot for slot in wanted if slot in self._edges), set(), None)
        self._show(wanted, redefine)

    def break_down(self, refusal: Any, redefine: Redefine) -> None:
        """Make everything that was given out raise the error of the node `refusal`, until the next
        change.
        """
        self.refusal = refusal
        for slot in self._given:
            given = self._shown(slot)
            if given is not None:
                redefine(given, ALIAS, (refusal._slot,), ())

    def _show(self, slots: Iterable[int], redefine: Redefine) -> None:
        """Make what was given out for these nodes show their present adjoints."""
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
        """Return the nodes for which something was given out that has a former shape.

        Only a seed can be that: it is not a node of the program and does not follow with them.
        """
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
        """Make the next read call the hooks that it passes, whatever versions say (rule D12 of the
        design).
        """
        scheduler, ops = self._graph._scheduler, self._graph._host.ops
        for slot, hooks in self._hooks.items():
            at = self.known(slot)
            if at is not None:
                for _ in hooks:
                    while ops[at] is ALIAS:  # an adjoint that changed is an alias
                        (at,) = scheduler.operands(at)
                    scheduler.invalidate(at)
                    (at,) = scheduler.operands(at)

    def _leave(self, slots: Iterable[int], totals: set[int]) -> list[int]:
        """Forget those of these nodes that the output no longer depends on. Return them."""
        edges = self._edges
        left: list[int] = []
        wide: Wide = {}
        stack = list(slots)
        while stack:
            slot = stack.pop()
            if slot == self._output or slot not in edges:
                continue
            if any(self._leads(slot, child, wide) for child in self._consumers(slot)):
                continue
            for i, source in edges[slot]:
                self._drop(self._parts, (slot, i))
                totals.add(source)
                stack.append(source)
            for name in BY_NODE:
                self._drop(getattr(self, name), slot)
            left.append(slot)
            self._params = None
        return left

    def _check_seed(self) -> None:
        """Raise if the output's new shape does not fit the gradient that it was given."""
        for var, shape, seed in self._misfits():
            raise SeedError(
                f"{var.label!r} would get the shape {shape}, and gradients of it exist that were "
                f"asked for with a gradient= of shape {seed} (1 for a single number). Drop these "
                "gradients first, or reduce to a single number before differentiating.",
                var,
            )

    def _watch_seeds(self) -> None:
        """Record the shapes of seeds, where only values will show whether the nodes have these
        shapes.
        """
        for slot, given in self.seeds.items():
            shape: Any = known_shape(given)
            if self._graph._host.specs[slot] is None and shape is not None and None not in shape:
                self.observe(slot, shape)

    def _misfits(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield nodes whose shape is not that of their given derivative, with both shapes."""
        for slot, given in self.seeds.items():
            var = handle(self._graph, slot)
            shape, seed = known_shape(var), known_shape(given)
            # Otherwise values may be from before the change.
            following = self._graph._programs.following
            if shape is None and following and not self._graph._scheduler.is_stale(slot):
                shape = var.value_shape()
            if shape is None or seed is None:
                continue
            if len(shape) != len(seed) or any(
                m != n and m is not None and n is not None for m, n in zip(shape, seed, strict=True)
            ):
                yield var, shape, seed


@block
def building(graph: Any, number: int) -> Iterator[None]:
    """Build differentiable nodes for a program, whatever the gradient mode of the caller."""
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


def update_program(graph: Core, program: Following, slots: set[int]) -> None:
    """Build gradients again whose operands show their shapes only in values."""
    programs = graph._programs
    # Rules may read values now, except in the middle of an edit: nothing else changes here.
    following, programs.following = programs.following, not programs.changing
    try:
        with Change(graph) as change:
            change.update(program, slots, slots)
            change.follow()
    finally:
        programs.following = following
