"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), only
for the nodes that lead to what was asked for, once; later questions extend it. It lives as long as
the output's handle, which keeps the adjoints alive, or one of the nodes that it gave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reactgrad.autodiff._following import Following, building, update_program
from reactgrad.autodiff._tables import ZERO
from reactgrad.core._handles import handle
from reactgrad.core._lifetime import tidy
from reactgrad.nodes._leaf import PARAM, Leaf
from reactgrad.ops import (
    alias,
)
from reactgrad.reading._refresh import follow_rules
from reactgrad.scheduler import CollectorPause


class Program(Following):
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

    __slots__ = ()

    def __init__(self, output: Any, seed: Any) -> None:
        self._open(output, {output._slot: seed})

    def _open(self, output: Any, seeds: dict[int, Any]) -> None:
        self._belong_to(output, seeds)
        with CollectorPause():  # all tuples that it makes stay
            self._start()
        self.number = self._graph._programs.add(self)
        self._watch_seeds()

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
            with building(self._graph, self.number):
                found = self._give_out(wanted)
        return found

    def params(self) -> tuple[int, ...]:
        """The params that the output depends on over open edges, in order of creation."""
        if self._params is None:
            ops, serial = self._graph._host.ops, self._graph._scheduler.topology.serial
            found = [slot for slot in self._edges if ops[slot] is PARAM]
            self._params = tuple(sorted(found, key=serial.__getitem__))
        return self._params

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        """Build the adjoints of more nodes."""
        wanted = [slot for slot in wanted if slot in self._edges]
        graph = self._graph
        self._part_tables()
        tidy(graph)  # now, and not while nodes are built that nobody holds yet
        held: dict[int, Any] = {}
        with building(graph, self.number):
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
