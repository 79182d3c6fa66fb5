"""One built copy of a subgraph: its feeds, its nodes, and whether it may be fed again."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reactgrad.change._draws import draw_next
from reactgrad.core._definition import are_defined, definitions
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._nested import mapped
from reactgrad.nodes._reached import reached
from reactgrad.nodes._references import holders, references
from reactgrad.subgraphs._feeds import _fed, _give
from reactgrad.subgraphs._shared_result import SharedResult

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.core._rows import Rows


class Instance:
    """A function as it was built for one structure of arguments.

    Attributes
    ----------
    feeds : list of int
        The slots of the feeds, in order of the arguments.
    result : object
        The result of the function, with a ``_Place`` for each node of the instance.
    nodes : dict
        From slot to serial and definition as it was built (``None`` for a feed), for each node that
        depends on the feeds or was built for the result.
    """

    __slots__ = (
        "__weakref__",
        "_added",
        "_anchors",
        "_built",
        "_drawing",
        "_ends",
        "_inner",
        "feeds",
        "nodes",
        "result",
    )

    def __init__(self, graph: Core, feeds: list[Handle], result: Any, first: int) -> None:
        host, scheduler = graph._host, graph._scheduler
        self.feeds = [var._slot for var in feeds]
        nodes = _descendants(graph, self.feeds)
        ends: dict[int, Any] = {}

        def place(one: Any) -> Any:
            if isinstance(one, Handle):
                view: Any = one  # maybe a detached one
                base = view.base if hasattr(type(view), "base") else None
                var: Any = one if base is None else base
                if var._slot in nodes or scheduler.topology.serial[var._slot] >= first:
                    ends[var._slot] = var
                    return _Place(var._slot, base is not None)
            return one

        self.result = mapped(result, place)
        nodes.update(dict.fromkeys(_built(graph, ends, first)))
        self.nodes = dict(
            zip(nodes, map(scheduler.topology.serial.__getitem__, nodes), strict=True)
        )
        self._inner = [slot for slot in nodes if slot not in self.feeds]
        self._built = definitions(graph, self._inner)
        self._drawing: list[int] | None = None
        self._added = host.added(self.nodes)
        self._ends = list(ends)
        # Anchors keep the ends without handles; their gradients stay in the host's table.
        self._anchors = [host.anchor(slot) for slot in {*self.feeds, *ends}]
        for slot, var in ends.items():
            host.twin_programs[slot] = var._programs_dict()
        # The finalizer gets a weak reference: it must not keep the graph alive, as those programs
        # do.
        weakref.finalize(self, _forget, weakref.ref(host), self._ends)

    def intact(self, graph: Core) -> bool:
        """Return whether all nodes are in the graph as they were built, with nothing added to them."""
        serial = graph._scheduler.topology.serial
        return (
            [*map(serial.__getitem__, self.nodes)] == [*self.nodes.values()]
            and graph._host.added(self.nodes) == self._added
            and are_defined(graph, self._inner, self._built)
        )

    def free(self, graph: Core, *, whole: bool = False) -> bool:
        """Return whether no caller, node or observer outside can see its nodes, not even through
        gradients.

        Parameters
        ----------
        whole : bool
            Whether instances that it feeds count as its own: a chain of calls of which nothing is seen
            any more is fed again as it is, gradients included.
        """
        host, topology = graph._host, graph._scheduler.topology
        chain = self._chain(graph) if whole else [self]
        seen = {slot for one in chain for slot in one.nodes}
        programs = _programs(graph, seen)
        known = _alone(host, programs).union(*[one._added.get("kept", {}).keys() for one in chain])
        stack = list(seen)
        children, owners = topology.children, host.owners
        while stack:
            slot = stack.pop()
            if _held(host, slot, known):
                return False
            users = host.branch_users.get(slot) if host.branch_users else None
            for child in (*children[slot], *users) if users else children[slot]:
                if child not in seen:
                    owner = owners.get(child)
                    # Nodes of a gradient that is gone belong to whatever uses them.
                    if owner not in programs and (owner is None or graph._programs.lives(owner)):
                        return False
                    seen.add(child)
                    stack.append(child)
        return seen.isdisjoint(graph._observers.observed)

    def _chain(self, graph: Core) -> list[Instance]:
        """Return this instance, those that it feeds, those that these feed, and so on."""
        children, users = graph._scheduler.topology.children, graph._host.branch_users
        fed_by = graph._subgraphs.fed_by
        chain: list[Instance] = [self]
        for one in chain:  # grows
            for slot in one.nodes:
                for child in (*children[slot], *users.get(slot, ())):
                    other = fed_by.get(child)
                    if other is not None and other not in chain:
                        chain.append(other)
        return chain

    def differing(self, graph: Core, arguments: list[Any]) -> dict[int, Any]:
        """Return the arguments that the feeds do not have yet, by feed."""
        return {
            feed: argument
            for feed, argument in zip(self.feeds, arguments, strict=True)
            if not _fed(graph, feed, argument)
        }

    def follows(self, graph: Core, arguments: list[Any]) -> bool:
        """Return whether the feeds follow all nodes among the arguments."""
        return all(
            _fed(graph, feed, argument)
            for feed, argument in zip(self.feeds, arguments, strict=True)
            if isinstance(argument, Handle)
        )

    def used(self, graph: Core) -> bool:
        """Return whether nodes outside are built on its nodes, other than gradients."""
        children, owners = graph._scheduler.topology.children, graph._host.owners
        return any(
            child not in self.nodes and owners.get(child) is None
            for slot in self.nodes
            for child in children[slot]
        )

    def begins(self, graph: Core, arguments: list[Any]) -> bool:
        """Return whether the first feed has the value of the first argument."""
        return bool(self.feeds) and _fed(graph, self.feeds[0], arguments[0])

    def share(self, graph: Core, name: str) -> None:
        """Note that other calls may return its result again, of a function of this name."""
        graph._host.shared.update({slot: SharedResult(name) for slot in self._ends})

    def give_away(self, graph: Core, anew: bool) -> bool:
        """Return whether its result may be returned again, and note if it is `anew` while somebody holds it.

        It may not be fed anew while somebody holds a result that has been built upon, or that nodes are built upon:
        these would have another meaning.
        """
        handles = graph._host.handles
        held = any(
            ref is not None and ref() is not None for ref in map(handles.__getitem__, self._ends)
        )
        known = [graph._host.shared[slot] for slot in self._ends]
        if anew and (self.used(graph) or (held and any(one.built_upon for one in known))):
            return False
        for one in known:
            one.fed_again = held and (anew or one.fed_again)
        return True

    def draws(self, graph: Core) -> list[int]:
        """Return the nodes that draw random numbers."""
        if self._drawing is None:
            ops = graph._host.ops
            self._drawing = [
                slot for slot in self._inner if getattr(ops[slot], "key", None) is not None
            ]
        return self._drawing

    def redraw(self, graph: Core) -> None:
        """Let each node that draws draw the next numbers of the graph's calls."""
        if drawing := self.draws(graph):
            ops, parents = graph._host.ops, graph._scheduler.topology.parents
            # In the order of building, and each once: a draw may consist of several nodes with one key.
            keys = {self._serial(graph, parents[slot][ops[slot].key]) for slot in drawing}
            draw_next(graph, [slot for _, slot in sorted(keys)])

    @staticmethod
    def _serial(graph: Core, slot: int) -> tuple[int, int]:
        return graph._scheduler.topology.serial[slot], slot

    def feed(self, graph: Core, arguments: dict[int, Any]) -> None:
        """Make these feeds follow other arguments."""
        grads = graph._host.gradients.alone  # of computed nodes
        for slot in self.nodes.keys() & grads.keys():  # they belong to the former result
            del grads[slot]
        for slot, argument in arguments.items():
            _give(graph, slot, argument)

    def returned(self, graph: Core) -> Any:
        """Return the result of the function."""
        return mapped(self.result, lambda one: one.var(graph) if type(one) is _Place else one)


@dataclass(frozen=True, slots=True)
class _Place:
    """Stands for a node of the instance in the function's result."""

    slot: int
    detached: bool

    def var(self, graph: Core) -> Any:
        var = handle(graph, self.slot)
        var._programs_dict()  # the handle's table, since the instance may not keep a handle
        return var.detach() if self.detached else var


def _descendants(graph: Core, slots: list[int]) -> dict[int, None]:
    """Return these nodes and all that depend on them, also as branches that a choice may take."""
    children, users = graph._scheduler.topology.children, graph._host.branch_users
    return reached(slots, lambda slot: (*children[slot], *users.get(slot, ())))


def _built(graph: Core, ends: Iterable[int], first: int) -> Iterable[int]:
    """Return these nodes and the computed nodes that lead to them, as far as they were made since
    the serial `first`.
    """
    topology, leaf = graph._scheduler.topology, graph._scheduler.leaf
    branches = graph._host.branches

    def new(slots: Iterable[int]) -> list[int]:
        return [slot for slot in slots if topology.serial[slot] >= first and not leaf[slot]]

    return reached(new(ends), lambda slot: new((*topology.parents[slot], *branches.get(slot, ()))))


def _programs(graph: Core, nodes: Iterable[int]) -> dict[int, dict[int, Handle]]:
    """Return the programs that live with some nodes, and in turn with their gradients: the
    gradients that each gave out, by its number.
    """
    known, givers = graph._host.twin_programs, graph._host.givers
    found: dict[int, dict[int, Handle]] = {}
    stack = [known[slot] for slot in known.keys() & nodes]
    while stack:
        for entry in stack.pop().values():
            if isinstance(entry, tuple) and entry[1].number not in found:
                found[entry[1].number] = entry[2]
                stack += [getattr(var, "_programs", {}) for var in entry[2].values()]
    # Programs that gave out one of the nodes: gradients that the function asked for.
    for slot in givers.keys() & nodes:
        for program in givers[slot]:
            found.setdefault(program.number, {})
    return found


def _alone(host: Rows, programs: dict[int, dict[int, Handle]]) -> set[int]:
    """Return the slots of those gradients that only the program that gave them out holds, and
    switches.
    """
    return {
        adjoints[slot]._slot
        for adjoints in programs.values()
        for slot in adjoints
        if references(adjoints, slot) <= _by_switches(host, adjoints[slot])
    }


def _held(host: Rows, slot: int, known: set[int]) -> bool:
    """Return whether a handle of the node is held by anything but gradients that are `known`, and
    switches, which hold the branches that they choose between.
    """
    ref = host.handles[slot]
    if ref is None or slot in known:
        return False
    var = ref()
    if var is None:
        return False
    return not host.branch_users or holders(var) > _by_switches(host, var)


def _by_switches(host: Rows, var: Handle) -> int:
    """Return how many references to a node are those of switches that choose it."""
    users = host.branch_users.get(var._slot, ())
    return sum(one is var for user in users for one in host.ops[user].branches)


def _forget(of: weakref.ref[Rows], slots: list[int]) -> None:
    """Release the gradients that an instance has kept, at its end."""
    host = of()
    if host is not None:
        for slot in slots:
            host.twin_programs.pop(slot, None)
