"""``Generation``: nodes that died together, and the check that nobody needs one of them any more."""

from __future__ import annotations

from functools import partial
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from reactgrad.core._rows import number_key
from reactgrad.nodes._op import CONST, SEED, Op

if TYPE_CHECKING:
    from reactgrad.core._core import Core

# Arrays of a generation may have so many bytes: with larger ones, building is not what takes time.
MOST_BYTES = 1 << 24

# What ``getrefcount`` gives for an object that only one dict holds, when called as below.
_ALONE = next(map(getrefcount, {0: object()}.values()))


class Generation:
    """Nodes that died together: a result, what only it kept, and their gradients.

    Attributes
    ----------
    root
        The result that kept them all.
    nodes
        The rows of the nodes that code has built, in order.
    gradients
        The rows of nodes that its gradient program has built, in order.
    entry
        What the handle of the root had of gradients: seed, program and adjoints; ``None`` without any.
    at
        The number of nodes that have been taken.
    asleep
        True if the gradients are parked.
    sources
        Other nodes that these are computed from.
    """

    __slots__ = (
        "asleep",
        "at",
        "back",
        "counts",
        "counts_asleep",
        "edges",
        "entry",
        "forward",
        "gradients",
        "key",
        "made",
        "members",
        "moved",
        "nodes",
        "numbers",
        "offsets",
        "root",
        "sources",
        "span",
    )

    def __init__(self, root: int, key: Any, entry: Any) -> None:
        self.root, self.key, self.entry = root, key, entry
        self.nodes: tuple[int, ...] = ()
        self.gradients: tuple[int, ...] = ()
        self.members: frozenset[int] = frozenset()
        self.edges: tuple[tuple[int, int], ...] = ()  # from other nodes, first those to ``nodes``
        self.forward = 0  # the number of these
        self.back: tuple[tuple[int, int], ...] = ()  # from all other nodes to ``gradients``
        self.sources: frozenset[int] = frozenset()  # the other nodes
        # Nodes and sources whose storage has moved since the parked rows were told.
        self.moved: set[int] = set()
        self.numbers: tuple[int, ...] = ()  # constants among these that no handle keeps
        # How many consumers each node has, with the gradients and without.
        self.counts: list[int] = []
        self.counts_asleep: list[int] = []
        # How many numbers were given out while the gradients were built, and which of these to them and
        # to constants.
        self.span = 0
        self.offsets: list[int] = []
        self.made: dict[int, int] = {}
        self.at = 0
        self.asleep = False


def find_generation(
    graph: Core, root: int, key: Any, known: tuple[Any, int] | None, since: int
) -> Generation | None:
    """Return the nodes that only a result keeps; ``None`` if they cannot be parked.

    ``known`` is what ``backward`` has left: the entry, and the next number after it. Nodes with serials
    below ``since`` are not parked.
    """
    inside = _kept_by(graph, root, None if known is None else known[0])
    if not inside:
        return None
    host, scheduler = graph._host, graph._scheduler
    topology, leaf, owners = scheduler.topology, scheduler.leaf, host.owners
    children, parents, number = topology.children, topology.parents, topology.number
    gradients = sorted([s for s in inside if s in owners or leaf[s]], key=number)
    nodes = sorted(inside.difference(gradients), key=number)
    gen = Generation(root, key, None if known is None else known[0])
    gen.members = frozenset(inside)
    if (
        root in owners
        or any(topology.serial[slot] < since for slot in inside)
        or (gradients and known is None)
        or not all(map(partial(_is_of_arrays, host), inside))
        or sum(getattr(host.data[slot], "nbytes", 0) for slot in inside) > MOST_BYTES
        or not _is_plain(graph, gen.members)
        or not _is_alone(graph, gen)
    ):
        return None
    gen.nodes = tuple(nodes)
    gen.gradients = tuple(gradients)
    edges = [(p, s) for s in (*nodes, *gradients) for p in dict.fromkeys(parents[s])]
    apart = frozenset(gradients)
    gen.edges = tuple([edge for edge in edges if edge[0] not in inside])
    gen.forward = sum(slot not in apart for _, slot in gen.edges)
    gen.back = tuple([edge for edge in edges if edge[1] in apart and edge[0] not in apart])
    gen.sources = frozenset([parent for parent, _ in gen.edges])
    gen.numbers = tuple(
        [p for p in gen.sources if leaf[p] and host.numbers.get(key_of(host.data[p])) == p]
    )
    if gradients and known is not None:
        start = number(gradients[0])
        gen.offsets = [number(slot) - start for slot in gradients]
        gen.span = max(known[1] - start, gen.offsets[-1] + 1)
        made = {slot: number(slot) - start for slot in gen.numbers}
        gen.made = {slot: at for slot, at in made.items() if 0 <= at < gen.span}
    gen.counts = [len(children[slot]) for slot in (*nodes, *gradients)]
    gen.counts_asleep = [sum(one not in apart for one in children[slot]) for slot in nodes]
    return gen


def _kept_by(graph: Core, root: int, entry: Any) -> set[int]:
    """Return a result with all nodes that only it and its gradients keep; none if others use these."""
    host, scheduler = graph._host, graph._scheduler
    children, parents = scheduler.topology.children, scheduler.topology.parents
    inside = {root}
    if entry is not None:
        seed, _, adjoints = entry
        inside.update([seed._slot, *[var._slot for var in adjoints.values()]])
    left: dict[int, int] = {}  # consumers that are not inside
    stack = [*inside]
    while stack:
        for parent in set(parents[stack.pop()]):
            count = left[parent] = left.get(parent, len(children[parent])) - 1
            if count or parent in inside or host.holds(parent):
                continue
            if scheduler.leaf[parent]:
                if host.numbers.get(key_of(host.data[parent])) == parent:
                    continue  # a number, which all generations share
                if parent not in host.owners:
                    return set()  # an array, or an input, that goes with them
            inside.add(parent)
            stack.append(parent)
    return set() if any(left.get(slot, len(children[slot])) for slot in inside) else inside


def _is_of_arrays(host: Any, slot: int) -> bool:
    """Return whether a node computes an op on arrays of a known shape, or is a constant."""
    op = host.ops[slot]
    return (isinstance(op, Op) or op is CONST or op is SEED) and host.specs[slot] is not None


def is_same(graph: Core, gen: Generation, known: tuple[Any, int] | None) -> bool:
    """Return whether a generation that was taken is as it was, and nothing else keeps a node of it."""
    host, scheduler = graph._host, graph._scheduler
    if gen.at < len(gen.nodes) or (gen.entry is None) != (known is None and not gen.asleep):
        return False
    if known is not None and known[0] is not gen.entry:
        return False
    children = scheduler.topology.children
    handles = host.handles
    if any(map(handles.__getitem__, gen.nodes)):
        return False
    edges = gen.edges[: gen.forward] if gen.asleep else gen.edges
    for slot in gen.sources:
        # With its last consumer it would go, too, and belongs to them.
        if (
            handles[slot] is None
            and slot not in gen.numbers
            and not host.holds(slot)
            and len(children[slot]) <= sum(parent == slot for parent, _ in edges)
        ):
            return False
    rows = gen.nodes if gen.asleep else (*gen.nodes, *gen.gradients)
    counts = gen.counts_asleep if gen.asleep else gen.counts
    return (
        [*map(len, map(children.__getitem__, rows))] == counts
        and _is_plain(graph, gen.members)
        and _is_alone(graph, gen)
    )


def _is_alone(graph: Core, gen: Generation) -> bool:
    """Return whether nobody else refers to the gradients, nor keeps a node by an anchor."""
    host = graph._host
    anchored = gen.members & host.anchors.keys()
    if gen.entry is None:
        return not anchored
    program, adjoints = gen.entry[1:]  # without a name for the seed, which would be a reference
    own = {gen.root, program.seed._slot}
    return (
        anchored <= own
        and all(len(host.anchors[slot]) == 1 for slot in anchored)
        and not (program._holds or program.broken or program.observed or program.hollow)
        and not (program.seen or program._inner or program._sharers)
        and all(count <= _ALONE for count in map(getrefcount, adjoints.values()))
        # The seed is in the entry, too.
        and all(count <= _ALONE + 1 for count in map(getrefcount, program.seeds.values()))
    )


def _is_plain(graph: Core, members: frozenset[int]) -> bool:
    """Return whether nobody has added anything to the nodes, and none has failed."""
    host, scheduler = graph._host, graph._scheduler
    tables = [
        *host.addable(host),
        host.name_of,
        host.transient,
        host.spared,
        host.pins,
        host.branches,
        host.branch_users,
        host.away,
        host.removed,
        scheduler.edited,
        scheduler.errors,
        scheduler.raises,
        scheduler.cycles,
        scheduler.dynamic,
        scheduler.dropped,
        scheduler.versions.forced,
        scheduler.staleness.cutoffs,
        host.gradients.alone if host.gradients.between else (),
    ]
    return all(not one or members.isdisjoint(one) for one in tables)


def key_of(value: Any) -> Any:
    """Return the key of a number among constants, ``None`` for another value."""
    return number_key(value) if type(value) in (int, float, complex, bool) else None
