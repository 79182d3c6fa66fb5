"""Ranks under edits, and cycles, beside networkx."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad_scheduler import CycleError, Former, Link, check_invariants
from reactgrad_scheduler.order import admit, any_cycle
from reactgrad_scheduler.topology import RANK_GAP
from tests.laws.random_program import Code
from tests.scheduler.two_engines import Definition, IntegerHost

CODES = st.integers(0, (1 << 32) - 1)


def edges_of(host: IntegerHost) -> nx.DiGraph:
    topology = host.scheduler.topology
    graph = nx.DiGraph()
    for slot in topology.slots():
        graph.add_node(slot)
        graph.add_edges_from((parent, slot) for parent in topology.parents[slot])
    return graph


def tables(host: IntegerHost) -> tuple[object, ...]:
    scheduler = host.scheduler
    scheduler.versions.settle()
    return (
        list(scheduler.topology.parents),
        [set(children) for children in scheduler.topology.children],
        list(scheduler.topology.rank),
        list(scheduler.versions.version),
        list(scheduler.versions.record),
        bytes(scheduler.staleness.mark),
    )


@given(
    size=st.integers(2, 20),
    edits=st.lists(CODES, max_size=40),
    gap=st.sampled_from([1, 2, 5, RANK_GAP]),
)
def test_random_edits_keep_the_ranks_in_order_and_refuse_exactly_the_cycles(
    size: int, edits: list[int], gap: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("order", "tables"):
            patch.setattr(f"reactgrad_scheduler.{module}.RANK_GAP", gap)
        edit_at_random(size, edits)


@pytest.mark.parametrize("seed", range(20))
def test_nodes_of_one_rank_stay_in_order_where_their_gap_is_used_up(seed: int) -> None:
    """Nodes between which there is no path may have one rank, also when they are edited for long."""
    random = Random(seed)
    edit_at_random(random.randrange(5, 20), [random.getrandbits(32) for _ in range(300)])


def edit_at_random(size: int, edits: list[int]) -> None:
    host = IntegerHost()
    nodes = [host.leaf(1)]
    nodes += [host.node(Definition((nodes[0],))) for _ in range(size)]
    for number in edits:
        code = Code(number)
        node = nodes[1 + code.pick(size)]
        parents = tuple(code.among(nodes) for _ in range(1 + code.pick(3)))
        wanted = edges_of(host)
        wanted.remove_edges_from(list(wanted.in_edges(node)))
        wanted.add_edges_from((parent, node) for parent in parents)
        # The engine looks at paths before it removes the old edges; those into the node itself
        # cannot be part of a cycle through it that does not exist yet.
        before = tables(host)
        if nx.is_directed_acyclic_graph(wanted):
            host.scheduler.reparent(node, parents)
            host.definitions[node] = Definition(parents)
            assert set(edges_of(host).edges) == set(wanted.edges)
        else:
            with pytest.raises(CycleError) as caught:
                host.scheduler.reparent(node, parents)
            path = caught.value.path
            assert path[0] == path[-1]
            steps = {(int(str(a)[1:]), int(str(b)[1:])) for a, b in pairwise(path)}
            assert steps <= set(wanted.edges), "the path goes over edges that do not exist"
            assert tables(host) == before
        check_invariants(host.scheduler)
    order = host.scheduler.topology.sort(nodes)
    place = {node: i for i, node in enumerate(order)}
    assert all(place[a] < place[b] for a, b in edges_of(host).edges)
    assert not any_cycle(host.scheduler.topology)


def test_an_edge_that_agrees_with_the_ranks_changes_none() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    a, b = host.node(Definition((x,))), host.node(Definition((x,)))
    before = list(host.scheduler.topology.rank)
    host.scheduler.reparent(b, (x, a))
    assert host.scheduler.topology.rank == before


def test_an_edge_against_the_ranks_moves_only_what_lies_between_its_ends() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    front = [host.node(Definition((x,))) for _ in range(50)]
    a = host.node(Definition((x,)))
    between = [host.node(Definition((x,))) for _ in range(50)]
    b = host.node(Definition((x,)))
    back = [host.node(Definition((b,))) for _ in range(50)]
    before = list(host.scheduler.topology.rank)
    host.scheduler.reparent(a, (b,))
    rank = host.scheduler.topology.rank
    moved = {slot for slot in range(len(rank)) if rank[slot] != before[slot]}
    assert moved == {a}, "the side whose search ends first goes into the gap; nothing else moves"
    assert rank[b] < rank[a]
    assert not moved.intersection(front, between, back)
    check_invariants(host.scheduler)


def test_twenty_insertions_on_one_edge_move_no_other_rank() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    host.node(Definition((y,)))
    topology = host.scheduler.topology
    ends = topology.rank[x], topology.rank[y]
    below = x
    for _ in range(18):
        new = host.node(Definition((below,)))
        host.scheduler.reparent(y, (new,))
        below = new
    assert (topology.rank[x], topology.rank[y]) == ends
    check_invariants(host.scheduler)
    assert len(host.read(y)) == 19


def test_many_insertions_on_one_edge_use_up_its_gap_and_go_on() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    others = [host.node(Definition((y, x))) for _ in range(3)]
    for i in range(70):
        above = host.scheduler.topology.parents[y][0] if i % 2 else x
        below = y if i % 2 else set(host.scheduler.topology.children[x]) - set(others)
        child = below if isinstance(below, int) else next(iter(below))
        new = host.node(Definition((above,)))
        host.scheduler.reparent(child, (new,))
        host.definitions[child] = Definition((new,))
        check_invariants(host.scheduler)
    assert len(host.read(y)) == 71


def test_edits_one_after_the_other_that_found_nodes_of_one_rank(g: rg.Graph) -> None:
    x = g.input(1.0)
    cells = [rg.maximum(x, x) for _ in range(12)]
    edits = [(5, 1, 11), (7, 0, 1), (9, 1, 5), (10, 1, 9), (4, 0, 9), (1, 0, 4), (2, 0, 1)]
    for node, place, source in [*edits, (1, 0, 0), (2, 0, 9), (9, 1, 7)]:
        cells[node].replace_parent(place, cells[source])
        x.set(x.value + 1.0)
        assert [cell.value for cell in cells] == 12 * [x.value]
        g.check_invariants()


def test_nodes_are_relinked_together_or_not_at_all() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    a, b = host.node(Definition((x,))), host.node(Definition((x,)))
    c = host.node(Definition((a, b)))
    host.read(c)
    scheduler = host.scheduler
    before = tables(host)
    with pytest.raises(CycleError):
        scheduler.relink({a: Link((b,)), b: Link((c,)), c: Link((a,))}, Former())
    assert tables(host) == before
    links = {a: Link((b,)), b: Link((c,)), c: Link((x,))}
    state = scheduler.staleness.state
    former = Former()
    scheduler.relink(links, former)
    scheduler.restore(former)
    assert tables(host) == before
    assert scheduler.staleness.state == state  # so that plans still fit
    former = Former()
    scheduler.relink(links, former)
    scheduler.outdate(former)
    check_invariants(scheduler)
    assert all(scheduler.is_stale(slot) for slot in (a, b, c))
    scheduler.restore(former)
    assert not any(scheduler.is_stale(slot) for slot in (a, b, c))
    assert tables(host) == before
    check_invariants(scheduler)


def test_only_an_operand_that_is_new_is_looked_at_however_much_depends_on_the_node() -> None:
    """The search goes both ways: the shorter side decides."""
    looks = []
    for size in (10, 1000):
        host = IntegerHost()
        x = host.leaf(1)
        y = host.node(Definition((x,)))
        below = y
        for _ in range(size):
            below = host.node(Definition((below, x)))
        new = host.node(Definition((x,)))
        rank = Looked(host.scheduler.topology.rank)
        host.scheduler.topology.rank = rank
        assert not admit(host.scheduler.topology, new, y)
        looks.append(rank.looks)
        assert rank[x] < rank[new] < rank[y]
    assert looks[0] == looks[1]


class Looked(list[int]):
    """A table that counts how often it is looked up."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_a_node_cannot_be_its_own_parent(g: rg.Graph) -> None:
    y = g.input(1.0) + 1.0
    y.name = "y"
    with pytest.raises(rg.CycleError, match="y -> y") as caught:
        y.replace_parent(0, y)
    assert caught.value.path == (y, y)
    assert isinstance(caught.value, ValueError)


def test_a_cycle_is_named_in_the_direction_of_the_data_and_nothing_changes(g: rg.Graph) -> None:
    a = g.input(1.0)
    x = a + 1.0
    y = x * 2.0
    z = y + 1.0
    for var, name in ((x, "x"), (y, "y"), (z, "z")):
        var.name = name
    assert float(z.value) == 5.0
    versions = [v.value_version for v in g.nodes]
    with pytest.raises(rg.CycleError, match="z -> x -> y -> z") as caught:
        x.replace_parent(0, z)
    assert [v.name for v in caught.value.path] == ["z", "x", "y", "z"]
    assert x.parents[0] is a
    assert not g.forward(z).ran
    assert [v.value_version for v in g.nodes] == versions
    g.check_invariants()
