"""Which nodes lie between the output and what is wanted, over edges that gradients pass."""

from __future__ import annotations

from collections.abc import Iterable

from reactgrad.autodiff._edges import open_edges, sources, way_to
from reactgrad.autodiff._tables import Tables

# Nodes with more operands than this are indexed by them while a program is built.
WIDE = 8


class Between(Tables):
    """The nodes between what is wanted and the output."""

    __slots__ = ()

    def _start(self) -> None:
        """Begin anew, with the output alone."""
        self._clear()
        self._read(seed._slot for seed in self.seeds.values())
        self._reach([self._output])

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

    def _leads_on(self, slot: int) -> bool:
        """Whether a consumer of this node takes a gradient from the output to it."""
        edges = self._edges
        for child in self._consumers(slot):
            for _, source in edges.get(child, ()):
                if source == slot:
                    return True
        return False

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
                if len(found) > WIDE:
                    if child not in wide:
                        wide[child] = {source for _, source in found}
                    leads = slot in wide[child]
                else:
                    leads = any(source == slot for _, source in found)
                if leads:
                    stack.append(child)
        return needed
