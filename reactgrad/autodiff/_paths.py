"""The nodes between the output and what is asked for, over edges that gradients may pass."""

from __future__ import annotations

from collections.abc import Iterable, Set

from reactgrad.autodiff._edges import open_edges, sources, way_to
from reactgrad.autodiff._tables import Tables
from reactgrad.nodes._op import Op
from reactgrad.nodes._reached import reached
from reactgrad.scheduler import add_note

# For nodes with more operands than this an index by operand is made while a program is built.
WIDE = 8
Wide = dict[int, set[int]]


class Paths(Tables):
    """The part of a program that knows which nodes lie between the output and what is asked for."""

    __slots__ = ()

    def _start(self) -> None:
        """Begin again, with the output alone."""
        self._clear()
        self._read(seed._slot for seed in self.seeds.values())
        self._reach([self._output])

    def between(self, root: int) -> set[int]:
        """Return the nodes that gradients of `root` belong to and those that compute them, without
        `root`.
        """
        found = set(self.adjoint)
        found.update(
            [slot for slot, number in self._graph._host.owners.items() if number == self.number]
        )
        found.discard(root)
        return found

    def depends_on(self, slot: int) -> bool:
        """Return whether the output depends on this node over edges that derivatives may pass."""
        return slot in self._edges

    def _open_edges(self, slot: int) -> tuple[tuple[int, int], ...]:
        refusal = getattr(self._graph._host.ops[slot], "refusal", None)
        if refusal is not None:  # derivatives of a gradient that raises raise, too
            raise refusal.with_traceback(None)
        # A tuple, since forks share the table.
        return tuple(open_edges(self._graph, slot))

    def _ways_from(self, slot: int) -> list[tuple[int, int]]:
        """Return the operands to which gradients may pass, each behind its position."""
        return open_edges(self._graph, slot)

    def _consumers(self, slot: int) -> Iterable[int]:
        """Return all nodes that use this one, also as a branch that they may choose.

        Without such branches this is the graph's own collection, not a copy: a node may have many
        children.
        """
        graph = self._graph
        children = graph._scheduler.topology.children[slot]
        users = graph._host.branch_users.get(slot)
        return dict.fromkeys([*children, *users]) if users else children

    def _leads(self, slot: int, child: int, wide: Wide) -> bool:
        """Return whether gradients may pass from `child` to `slot`.

        `wide` is an empty dict at the start of a walk, which keeps what is found here.
        """
        found = self._edges.get(child)
        if not found:
            return False
        if len(found) > WIDE:
            if child not in wide:
                wide[child] = {source for _, source in found}
            return slot in wide[child]
        return slot in [source for _, source in found]

    def _reach(self, slots: Iterable[int]) -> list[int]:
        """Add these nodes and all that they depend on over open edges.

        Return those that are new.
        """
        edges, graph = self._edges, self._graph
        host, scheduler, reads = graph._host, graph._scheduler, self.reads
        ops, specs, serial = host.ops, host.specs, scheduler.topology.serial
        reached: list[int] = []
        stack = list(slots)
        self._params = None
        plain = type(self)._open_edges is Paths._open_edges and not (host.branches or host.closed)
        while stack:
            slot = stack.pop()
            if slot in edges:
                continue
            spec = specs[slot]
            if plain and type(ops[slot]) is Op and spec is not None:
                # `_open_edges` written out for most nodes: its calls would be half of the cost.
                parents = scheduler.operands(slot)
                found: tuple[tuple[int, int], ...] = ()
                if spec.differentiable:
                    found = tuple(
                        [
                            (i, parent)
                            for i, parent in enumerate(parents)
                            if (one := specs[parent]) is None or one.differentiable
                        ]
                    )
            else:
                found, parents = self._open_edges(slot), sources(graph, slot)
            self._put(edges, slot, found)
            reads[slot] = serial[slot]
            for parent in parents:
                reads[parent] = serial[parent]
            reached.append(slot)
            for _, source in found:
                stack.append(source)
        return reached

    def _check_cycle(self, reached: Iterable[int]) -> None:
        """Raise ``CycleError`` if the output now depends on its own derivative, which would never
        end.

        Any node of a program that derives from this output counts: after an edit another one of its
        nodes may be the one that matters.
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
                add_note(
                    error,
                    f"{self._graph._host.label(slot)!r} is part of a derivative of "
                    f"{self._graph._host.label(path[-1])!r}.",
                )
                try:
                    raise error
                finally:
                    del error  # its traceback holds this frame

    def _stands_on(self, number: int) -> Set[int]:
        """Return the number of a program, and the numbers of all programs whose results it derives
        now.
        """
        programs, owners = self._graph._programs, self._graph._host.owners

        def below(number: int) -> set[int]:
            program = programs.of_number(number)
            # From the graph, not from its tables: these may not have followed the present edit yet.
            nodes = () if program is None else program._nodes_now()
            return {owners[slot] for slot in nodes if slot in owners}

        return reached([number], below).keys()

    def _nodes_now(self) -> Set[int]:
        """Return the nodes that the output depends on over open edges, read from the graph and not
        from tables.
        """
        ways = self._ways_from
        return reached([self._output], lambda slot: [source for _, source in ways(slot)]).keys()

    def _is_end(self, slot: int) -> bool:
        """Return whether the derivative of this node was asked for."""
        return self._shown(slot) is not None

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        """Return the nodes that still need adjoints before these can have theirs."""
        return self._needed(wanted)

    def _needed(self, wanted: Iterable[int]) -> set[int]:
        """Return these nodes and the nodes between them and the output that have no adjoint.

        The cost is proportional to their number, and where nothing was built yet to that of all nodes
        that the output depends on.
        """
        if not self.adjoint and not self._graph._host.branch_users:
            return self._all_needed(wanted)
        needed: set[int] = set()
        wide: Wide = {}
        stack = list(wanted)
        while stack:
            slot = stack.pop()
            if slot in needed or self.known(slot) is not None:
                continue
            needed.add(slot)
            stack += [one for one in self._consumers(slot) if self._leads(slot, one, wide)]
        return needed

    def _all_needed(self, wanted: Iterable[int]) -> set[int]:
        """Return the same where nothing has an adjoint yet: one walk from the leaves up."""
        needed, edges = {*wanted}, self._edges
        for slot in sorted(edges, key=self._graph._scheduler.topology.rank.__getitem__):
            for _, source in edges[slot]:
                if source in needed:
                    needed.add(slot)
                    break
        return needed
