"""Adjoints of one output, as nodes of the same graph.

The adjoint of a node is the sum of the contributions of all its consumers between it and the
output. A *program* builds adjoints for one output and one seed (the gradient of the output), once,
and only for nodes that lead to what was asked for; later requests extend it. It lives as long as
the output's handle, which keeps the adjoints alive, or one of the nodes that it gave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from reactgrad.autodiff._following import Following, building, update_program
from reactgrad.autodiff._tables import ZERO
from reactgrad.core._handles import handle, tidy
from reactgrad.nodes._op import PARAM, Leaf
from reactgrad.ops import (
    alias,
)
from reactgrad.reading._refresh import follow_rules
from reactgrad.scheduler import CollectorPause


class Program(Following):
    """The adjoints of `output` for one seed.

    A change of the graph calls the rules of the changed nodes again, and rebuilds the sums that
    these contribute to. A sum that changes keeps its node, which then adds up other nodes or
    becomes an alias, so that everything computed from it stays. Programs that derive in another way
    are subclasses: see ``_forward`` and ``_jacobian``.

    Attributes
    ----------
    adjoint : dict
        From the slot of a node to the slot of its adjoint, or to ``ZERO``. Adjoints that nothing
        needed any more are gone; their slots may belong to others by now, see ``known``.
    seeds : dict
        From the slot of a node whose derivative is given to the Var that holds it.
    broken : bool
        True while everything that was given out raises, until the next change or request.
    reads : dict
        At least the nodes that the adjoints were built for: slots with their serials.
    seen : dict
        For nodes whose rules depend on what their function has left on ``ctx``: all that it left,
        and
        the part that the rule has read; ``None`` where the rule waits for the function to run.
    """

    __slots__ = ()

    def __init__(self, output: Any, seed: Any) -> None:
        self._open(output, {output._slot: seed})

    def _open(self, output: Any, seeds: dict[int, Any]) -> None:
        self._belong_to(output, seeds)
        # All tuples made here stay, so the collector would scan them in vain.
        with CollectorPause():
            self._start()
        self.number = self._graph._programs.add(self)
        self._watch_seeds()

    def come_back(self, graph: Any, record: Any) -> None:
        """Begin as the hollow program of a record; see ``_record``."""
        self._open(
            handle(graph, record.output), {at: handle(graph, seed) for at, seed in record.seeds}
        )
        self.hollow = True
        self.observed |= record.observed
        graph._programs.observing |= bool(self.observed)

    def about(self) -> tuple[int, ...]:
        """Return the nodes that a program of this kind needs besides output and seeds."""
        return ()

    def adjoints(self, wanted: Sequence[int], held: dict[int, Any] | None = None) -> list[Any]:
        """Return the adjoints of these nodes as Vars.

        The entry of a node that the output does not depend on is ``None``.

        `held` holds the adjoints that the output's handle keeps; new ones are added to it.
        """
        graph = self._graph
        if graph._programs.waiting:
            follow_rules(graph)
        self.follow_below()
        moved = self._moved(self.observed)
        if moved or self.broken:
            update_program(graph, self, moved)
            if self.broken:  # its tables are out of date; reading this raises the reason
                graph._value(self.refusal._slot)
        found = [self.given(slot) for slot in wanted]
        missing = [slot for slot, var in zip(wanted, found, strict=True) if var is None]
        if not missing:
            return found
        # This variable keeps new Vars alive until the caller does.
        new = self._extend(missing)
        if held is not None:
            held.update(new)
            if len(held) > self._room:
                self._let_go(held)
        return [
            new.get(slot) if var is None else var for slot, var in zip(wanted, found, strict=True)
        ]

    def _let_go(self, held: dict[int, Any]) -> None:
        """Release adjoints of nodes that are gone from those that the output's handle keeps."""
        for slot in [slot for slot, var in held.items() if self.given(slot) is not var]:
            del held[slot]
        # Doubled, so that the cost stays proportional to the requests.
        self._room = 2 * len(held) + 8

    def adjoints_or_zeros(self, wanted: Sequence[int]) -> list[Any]:
        """Return the adjoints of these nodes as Vars.

        While the output does not depend on a node, its Var holds zeros.
        """
        found = self.adjoints(wanted)
        if any(var is None for var in found):
            self._part_tables()
            with building(self._graph, self.number):
                for i, slot in enumerate(wanted):
                    if found[i] is None:
                        found[i] = self._give_out(slot)
        return found

    def params(self) -> tuple[int, ...]:
        """Return the params that the output depends on over open edges, in order of creation."""
        if self._params is None:
            ops, serial = self._graph._host.ops, self._graph._scheduler.topology.serial
            found = [slot for slot in self._edges if ops[slot] is PARAM]
            self._params = tuple(sorted(found, key=serial.__getitem__))
        return self._params

    def has_params(self, params: tuple[int, ...]) -> bool:
        """Return whether this is what ``params`` has returned, and would return again."""
        return self._params is params

    def _extend(self, wanted: Iterable[int]) -> dict[int, Any]:
        """Build the adjoints of more nodes and return their Vars."""
        wanted = [slot for slot in wanted if slot in self._edges]
        graph = self._graph
        self._part_tables()
        tidy(graph)  # now, not while new nodes are built that nothing holds yet
        held: dict[int, Any] = {}
        with building(graph, self.number):
            # Nothing is noted the first time: there is only the start to go back to.
            changes = self._changes = [] if self.adjoint else None
            try:
                graph._scheduler.wholly(
                    partial(self._build, wanted, held), partial(self._build_back, changes)
                )
            finally:
                self._changes = None
                self._release_held()
        return held

    def _build(self, wanted: Sequence[int], held: dict[int, Any]) -> None:
        """Build the adjoints of these nodes, and enter their Vars into ``held``."""
        self._sweep(self._leading_to(wanted), set(), None)
        for slot in wanted:
            # The Vars keep the nodes alive, which nothing else holds yet.
            held[slot] = self._give_out(slot)

    def _build_back(self, changes: Any) -> None:
        """Return to the state before ``_build``, which has noted ``changes``, if this was not the start."""
        self._changes = None
        if changes is None:
            self._start()
        else:
            self.take_back(changes)

    def _give_out(self, slot: int) -> Any:
        """Return the Var of an adjoint for callers: a node of its own that was given to no other
        request.

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
        """Live as long as the gradients that were given out."""
        for slot in self._given:
            given = self._shown(slot)
            if given is not None:
                self._graph._host.givers.setdefault(given, set()).add(self)

    def dismiss(self) -> None:
        """Stop following changes; gradients that were given out stay as they are."""
        for _, given, _ in self._given.values():
            self._graph._host.givers.get(given, set()).discard(self)

    def _is_last(self, slot: int) -> bool:
        """Return whether no adjoint will ever be computed from that of this node."""
        return isinstance(self._graph._host.ops[slot], Leaf)
