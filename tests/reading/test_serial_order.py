"""Everything at once from many threads, beside a model that replays the order."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

import reactgrad as rg
import reactgrad.graph._graph
from tests.reactive.crowd import THREADS, Rollback, together

pytestmark = pytest.mark.usefixtures("impatience")  # threads change places often

# --- everything at once, beside a model that replays the order ---------------------------------------


@dataclass
class World:
    """One graph, and a log that is written only while the graph's lock is held.

    Sets are logged by the leaves' cutoffs and runs by the nodes' functions, both of which the
    graph calls; transactions and edits are logged inside transactions. So the log is the serial
    order that the graph chose.
    """

    graph: rg.Graph
    log: list[tuple[Any, ...]] = field(default_factory=list)
    leaves: list[rg.Var] = field(default_factory=list)
    nodes: list[rg.Var] = field(default_factory=list)
    counters: list[rg.Var] = field(default_factory=list)
    sums: rg.Var | None = None
    told: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph, log = self.graph, self.log
        for i in range(6):

            def written(old: int, new: int, i: int = i) -> bool:
                log.append(("set", i, old, new))
                return False

            self.leaves.append(graph.input(i, cutoff=written))
        parents = self.leaves
        for n in range(8):
            pair = (parents[n % len(parents)], parents[(n + 1) % len(parents)])

            def combine(a: int, b: int, n: int = n) -> int:
                log.append(("run", n, a, b))
                return mix(n, a, b)

            self.nodes.append(rg.lift(combine)(*pair))
            if n == 3:
                parents = self.nodes[:4]
        self.counters = [graph.input(0) for _ in range(3)]
        self.sums = rg.lift(lambda *values: sum(values))(*self.counters)


def mix(n: int, a: int, b: int) -> int:
    return (a * 31 + b * 17 + n) % 1_000_003


@dataclass
class Seen:
    """What a read returned, and between which entries of the log it happened."""

    node: int
    value: int
    since: int
    until: int


def operate(world: World, thread: int, count: int) -> tuple[list[Seen], int]:
    """`count` operations of all kinds; what reads saw, and how much was counted."""
    pick = Random(thread)
    graph, log, leaves, nodes = world.graph, world.log, world.leaves, world.nodes
    seen: list[Seen] = []
    counted = 0
    observers: list[Any] = []
    for k in range(count):
        what = pick.random()
        stamp = thread * count + k + 100
        if what < 0.25:
            pick.choice(leaves).set(stamp)
        elif what < 0.35:
            a, b = pick.sample(leaves, 2)
            graph.set({a: stamp, b: stamp + 1})
        elif what < 0.65:
            n = pick.randrange(len(nodes))
            with graph.transaction():  # no set is half done, which has its entry before its effect
                since = len(log)
            value = nodes[n].value
            seen.append(Seen(n, value, since, len(log)))
        elif what < 0.72:
            n = pick.randrange(len(nodes))
            a, b = pick.sample(leaves, 2)
            with graph.transaction():
                log.append(("begin", thread))
                a.set(stamp)
                b.set(-stamp)
                since = len(log)
                value = nodes[n].value
                seen.append(Seen(n, value, since, len(log)))
                assert (a.value, b.value) == (stamp, -stamp)
                log.append(("commit", thread))
        elif what < 0.78:
            n, leaf = pick.randrange(len(nodes)), pick.choice(leaves)
            try:
                with graph.transaction():
                    log.append(("begin", thread))
                    leaf.set(stamp)
                    if pick.random() < 0.5:
                        edit(world, pick)
                    if pick.random() < 0.5:
                        nodes[n].value
                    log.append(("rollback", thread))
                    raise Rollback
            except Rollback:
                pass
        elif what < 0.86:
            with graph.transaction():
                edit(world, pick)
        elif what < 0.95:
            counter = pick.choice(world.counters)
            with graph.transaction():
                counter.set(counter.value + 1)
            counted += 1
        elif what < 0.98 or not observers:
            var = pick.choice([*nodes, world.sums])
            observers.append(var.observe(lambda old, new: world.told.append((old, new))))
        else:
            observers.pop(pick.randrange(len(observers))).cancel()
        if len(observers) > 4:
            observers.pop(0).cancel()
    for observer in observers:
        observer.cancel()
    return seen, counted


def edit(world: World, pick: Random) -> None:
    """Give a node another operand: any leaf, or a node made before it. Inside a transaction."""
    n, position = pick.randrange(len(world.nodes)), pick.randrange(2)
    if n and pick.random() < 0.5:
        source = ("node", pick.randrange(n))
        parent = world.nodes[source[1]]
    else:
        source = ("leaf", pick.randrange(len(world.leaves)))
        parent = world.leaves[source[1]]
    world.nodes[n].replace_parent(position, parent)
    world.log.append(("edit", n, position, source))


class Model:
    """Leaves and edges, and the values that follow from them."""

    def __init__(self, leaves: int, nodes: int) -> None:
        self.leaves = list(range(leaves))
        self.edges: list[list[tuple[str, int]]] = []
        for n in range(nodes):
            kind, size = ("leaf", leaves) if n < 4 else ("node", 4)
            self.edges.append([(kind, n % size), (kind, (n + 1) % size)])
        self.kept: tuple[list[int], list[list[tuple[str, int]]]] | None = None

    def values(self) -> tuple[int, ...]:
        found: list[int] = []
        for n, (a, b) in enumerate(self.edges):
            found.append(mix(n, self.of(a, found), self.of(b, found)))
        return tuple(found)

    def of(self, source: tuple[str, int], found: list[int]) -> int:
        return (self.leaves if source[0] == "leaf" else found)[source[1]]

    def play(self, entry: tuple[Any, ...]) -> None:
        if entry[0] == "set":
            _, i, old, new = entry
            assert self.leaves[i] == old, "a set saw another value than the one before it"
            self.leaves[i] = new
        elif entry[0] == "edit":
            _, n, position, source = entry
            self.edges[n][position] = source
        elif entry[0] == "begin":
            assert self.kept is None, "two transactions at once"
            self.kept = (self.leaves.copy(), [edges.copy() for edges in self.edges])
        elif entry[0] == "rollback":
            assert self.kept is not None
            self.leaves, self.edges = self.kept
            self.kept = None
        elif entry[0] == "commit":
            self.kept = None


@pytest.mark.slow
@pytest.mark.trusting  # only for time
def test_100_000_operations_of_8_threads_are_those_of_a_serial_order() -> None:
    world = World(rg.Graph())
    count = 100_000 // THREADS
    results = together(
        *[lambda thread=thread: operate(world, thread, count) for thread in range(THREADS)]
    )
    world.graph.check_invariants()

    # Every function was called with the values of one moment, that of its call.
    model = Model(len(world.leaves), len(world.nodes))
    states = [model.values()]
    hidden = [False]  # whether a state was inside a transaction
    for entry in world.log:
        model.play(entry)
        values = states[-1] if entry[0] in ("run", "begin", "commit") else model.values()
        if entry[0] == "run":
            _, n, a, b = entry
            assert (a, b) == tuple(model.of(source, list(values)) for source in model.edges[n])
        states.append(values)
        hidden.append(model.kept is not None)

    # Every read returned what was so at a moment between its begin and its end. Reads inside of
    # a transaction have the log for themselves.
    several = 0
    for seen, _ in results:
        for read in seen:
            inside = read.since and hidden[read.since] and hidden[read.until]
            moments = range(read.since, read.until + 1)
            possible = {states[m][read.node] for m in moments if inside or not hidden[m]}
            several += len(possible) > 1
            assert read.value in possible
    assert several  # threads did meet

    # And the end is the end of that order.
    assert [leaf.value for leaf in world.leaves] == model.leaves
    assert tuple(node.value for node in world.nodes) == model.values()
    counted = sum(count for _, count in results)
    assert world.sums is not None
    assert world.sums.value == counted == sum(counter.value for counter in world.counters)
    for node, edges in zip(world.nodes, model.edges, strict=True):
        pools = {"leaf": world.leaves, "node": world.nodes}
        assert node.parents == [pools[kind][i] for kind, i in edges]
    assert world.told
    assert not world.graph._observers
    world.graph.check_invariants()
