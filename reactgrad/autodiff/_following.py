"""Gradients follow what they were built for: edits, shapes, values that rules have read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from reactgrad._errors import Cancelled, GradientError, SeedError
from reactgrad.autodiff._edges import sources
from reactgrad.autodiff._sweep import Redefine, Sweep
from reactgrad.autodiff._tables import TABLES, ZERO, Changes
from reactgrad.change._change import Change
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.flow import Differentiable
from reactgrad.ops import (
    ALIAS,
    known_shape,
)
from reactgrad.scheduler import CollectorPause


class Following(Sweep):
    """How gradients follow changes of the graph and of shapes."""

    __slots__ = ()

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
        with building(self._graph, self.number):
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
        for name in (*TABLES, "refusal"):
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


@contextmanager
def building(graph: Any, number: int) -> Iterator[None]:
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


def update_program(graph: Core, program: Following, slots: set[int]) -> None:
    """Build gradients anew whose operands' shapes show only in values."""
    programs = graph._programs
    # But in the midst of an edit rules may look at values: nothing else changes.
    following, programs.following = programs.following, not programs.changing
    try:
        with Change(graph) as change:
            change.update(program, slots, slots)
            change.follow()
    finally:
        programs.following = following
