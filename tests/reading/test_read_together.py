"""Reads of many nodes: whose Vars they are, which plans they have, and which of them are stale is remembered."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.core import _read_together
from reactgrad.core._read_together import FEW
from reactgrad_scheduler import plan_cache as plans
from tests.interrupts import interrupted
from tests.scheduler.test_plan_cache import consistent

SIZES = pytest.mark.parametrize("count", [FEW, FEW + 1], ids=["few", "many"])


def fan(count: int, graph: rg.Graph | None = None) -> tuple[rg.Graph, list[Any], list[Any]]:
    """So many inputs, each with a node that is kept."""
    g = graph or rg.Graph()
    xs = [g.input(float(i)) for i in range(count)]
    return g, xs, [x * 2.0 for x in xs]


@SIZES
def test_each_read_runs_what_is_stale_and_nothing_else(count: int) -> None:
    g, xs, ys = fan(count)
    for turn in range(6):
        run = g.forward(*ys)
        assert list(run.ran) == (ys if turn == 0 else [ys[turn - 1]])
        assert not g.forward(*ys).ran
        xs[turn].set(10.0 + turn)
    assert [y.value for y in ys[:5]] == [2.0 * (10.0 + turn) for turn in range(5)]


@SIZES
def test_the_same_nodes_in_another_order_or_twice_are_another_read_of_them(count: int) -> None:
    g, xs, ys = fan(count)
    for turn in range(4):
        for targets in (ys, ys[::-1], [*ys, ys[0]], ys[1:]):
            xs[1].set(float(turn))
            assert list(g.forward(*targets).ran) == [ys[1]] or turn == 0
            assert ys[1].value == 2.0 * turn


@SIZES
def test_names_are_looked_up_at_every_read(count: int) -> None:
    """A name may move to another node."""
    g, xs, ys = fan(count)
    other = g.keep(xs[0] * 3.0)
    ys[0].name = "first"
    for _ in range(3):
        g.forward("first", *ys[1:])
    ys[0].name, other.name = None, "first"
    xs[0].set(7.0)
    assert list(g.forward("first", *ys[1:]).ran) == [other]


@pytest.mark.parametrize("like", [hash, weakref.ref], ids=["its hash", "a reference"])
def test_what_hashes_like_a_var_is_none(like: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0)
    nodes = [x + float(i) for i in range(FEW + 4)]
    g.forward(*nodes)
    g.forward(*nodes)
    x.set(2.0)
    with pytest.raises(rg.DTypeError):
        g.forward(*map(like, nodes))
    assert nodes[0].is_stale


@pytest.mark.slow
@pytest.mark.trusting
def test_an_interrupt_where_a_group_is_made_leaves_nodes_that_can_go() -> None:
    at, more = 0, True
    while more:
        at += 1
        g = rg.Graph()
        x = g.input(1.0)
        y, z = x + 1.0, x * 2.0
        more = interrupted(partial(g.forward, y, z), at)
        del y
        w = x + 5.0
        g.forward(w, z)
        x.set(3.0)
        assert (w.value, z.value) == (8.0, 6.0)
        del z
        assert (x - 1.0).value == 2.0
        g.check_invariants()
    assert at > 50


@SIZES
@pytest.mark.parametrize("wrong", [[], 3, "nobody"], ids=["list", "number", "name"])
def test_what_is_no_node_of_the_graph_is_refused_among_others(count: int, wrong: object) -> None:
    g, _, ys = fan(count)
    g.forward(*ys)
    with pytest.raises((rg.GraphError, rg.DTypeError)):
        g.forward(*ys[:-1], wrong)  # type: ignore[arg-type]
    _, _, others = fan(1)
    for _ in range(2):
        with pytest.raises(rg.GraphError, match="another graph"):
            g.forward(*ys[:-1], others[0])


@SIZES
def test_a_var_in_the_place_of_one_that_is_gone_is_not_taken_for_it(count: int) -> None:
    """A new Var often lies at the address of the last one that died, so the group has its hash."""
    g, xs, ys = fan(count)
    g.forward(*ys)
    seen: set[int] = set()
    again = 0
    for turn in range(20):
        new = [xs[0] + float(turn + k) for k in range(64)]
        k = next((k for k, one in enumerate(new) if id(one) in seen), 0)
        last = g.keep(new[k]) if turn % 5 == 4 else new[k]
        del new
        again += id(last) in seen
        seen.add(id(last))
        for _ in range(2):
            g.forward(*ys, last)
            assert not last.is_stale
            assert last.value == xs[0].value + turn + k
        del last
    assert again, "no address was used again, so this test shows nothing"
    g.check_invariants()


@pytest.mark.slow
@SIZES
def test_a_view_that_stops_gradients_is_read_as_its_node(count: int) -> None:
    g, xs, ys = fan(count)
    for turn in range(4):
        xs[0].set(float(turn))
        g.forward(ys[0].detach(), *ys[1:])
        gc.collect()
        assert ys[0].value == 2.0 * turn


@SIZES
def test_a_fork_reads_its_own(count: int) -> None:
    g, xs, ys = fan(count)
    for _ in range(3):
        xs[0].set(1.0)
        g.forward(*ys)
    h = g.fork()
    twins = [h[y] for y in ys]
    for turn in range(4):
        h[xs[2]].set(50.0 + turn)
        assert list(h.forward(*twins).ran) == [twins[2]]
        xs[3].set(60.0 + turn)
        assert list(g.forward(*ys).ran) == [ys[3]]
    assert (twins[2].value, ys[2].value, twins[3].value) == (106.0, 4.0, 6.0)
    with pytest.raises(rg.GraphError, match="another graph"):
        h.forward(*ys)


@SIZES
def test_cutoffs_errors_and_released_values_among_many_targets(count: int) -> None:
    g, xs, ys = fan(count)
    sign = rg.lift(lambda v: v > 0.0, cutoff="equal")(xs[0])
    behind = rg.lift(lambda s: not s)(sign)
    inverse = rg.lift(lambda v: 1.0 / v)(xs[1])
    targets = [*ys, sign, behind, inverse]
    xs[0].set(1.0)
    for turn in range(4):
        g.forward(*targets)
        xs[0].set(2.0 + turn)
        run = g.forward(*targets)
        assert set(map(id, run.ran)) == {id(ys[0]), id(sign)}
        assert list(run.cut_off) == [sign]
        xs[1].set(0.0)
        with pytest.raises(ZeroDivisionError):
            g.forward(*targets)
        assert list(g.last_run.failed) == [inverse]
        with pytest.raises(ZeroDivisionError):
            g.forward(*targets)
        xs[1].set(4.0)
        assert list(g.forward(*targets).ran) == [ys[1], inverse]
        xs[0].set(-1.0)
        assert behind in g.forward(*targets).ran
        xs[0].set(1.0)
    g.check_invariants()


@SIZES
def test_what_a_change_reaches_only_behind_a_cutoff_is_found_among_clean_targets(
    count: int,
) -> None:
    g, xs, ys = fan(count)
    sign = rg.lift(lambda v: v > 0.0, cutoff="equal")(xs[0])
    behind = rg.lift(lambda s: not s)(sign)
    targets = [*ys[1:], behind]
    xs[0].set(1.0)
    g.forward(*targets)
    for turn in range(4):
        xs[5].set(float(turn))  # all that runs is certain, and leaves all targets clean
        assert list(g.forward(*targets).ran) == [ys[5]]
        xs[0].set(1.0 if turn % 2 else -1.0)
        assert list(g.forward(*targets).ran) == [sign, behind]
        assert behind.value is (turn % 2 == 0)
        xs[0].set(2.0 if turn % 2 else -2.0)
        run = g.forward(*targets)
        assert list(run.cut_off) == [sign]
        assert behind in run.skipped


@SIZES
def test_a_budget_a_transaction_and_an_observer_among_many_targets(count: int) -> None:
    g, xs, ys = fan(count, rg.Graph(max_bytes=200_000))
    big = g.input(np.ones(5_000))
    large = [rg.tanh(big + float(k)) for k in range(3)]
    ends = [node.max() for node in large]
    told: list[float] = []
    ys[0].observe(lambda old, new: told.append(new))
    targets = [*ys, *ends]
    for turn in range(4):
        with g.transaction():
            xs[0].set(float(turn + 1))
            big.set(np.full(5_000, float(turn)))
            g.forward(*targets)
        want = [float(np.tanh(np.full(5, turn + float(k)))[0]) for k in range(3)]
        assert [end.value for end in ends] == want
        with pytest.raises(RuntimeError), g.transaction():
            xs[0].set(-1.0)
            g.forward(*targets)
            raise RuntimeError
        g.forward(*targets)
        assert ys[0].value == 2.0 * (turn + 1)
    assert told[-1] == 8.0


@pytest.mark.slow
@SIZES
@pytest.mark.trusting
def test_plans_of_a_read_are_kept_by_its_targets_together_and_go_with_the_first_of_them(
    count: int,
) -> None:
    g, xs, ys = fan(count)
    cache = g._scheduler.plans
    for turn in range(3):
        for x in xs[:4]:
            x.set(float(turn))
            g.forward(*ys)
            consistent(cache)
    assert len(cache._groups) == 1
    assert len(cache) == 4
    del ys[5]
    gc.collect()
    g.keep(xs[0] + 1.0)
    g.forward(ys[0])
    consistent(cache)
    assert not cache._groups
    assert len(cache) == 0


@pytest.mark.trusting
def test_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_PLANS", 6)
    g, xs, ys = fan(30)
    for k in range(20):
        for turn in range(4):
            xs[k].set(float(turn))
            g.forward(*ys[: k + 2])
            consistent(g._scheduler.plans)
            assert len(g._scheduler.plans._groups) <= 6
    monkeypatch.setattr(plans, "MAX_PLANNED_NODES", 50)
    for k in range(2, 29):
        xs[0].set(float(k))
        assert ys[0] in g.forward(*ys[:k]).ran
        assert g._scheduler.plans._members <= 50 + 30
        consistent(g._scheduler.plans)


def test_what_is_remembered_of_vars_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_read_together, "MAX_ASKED", 100)
    g, xs, ys = fan(40)
    for k in range(FEW - 1, 40):
        xs[0].set(float(k))
        ran = list(g.forward(*ys[:k]).ran)
        assert ran == [ys[0]] or k < FEW or ran == [ys[k - 1]] or ys[0] in ran
        assert g._asked._size <= 100 + 40
        assert ys[0].value == 2.0 * k


@given(st.data())
def test_reads_of_many_run_what_reads_of_each_would(data: st.DataObject) -> None:
    """Two graphs of the same nodes: one reads all targets at once, one each by itself."""
    graphs = rg.Graph(), rg.Graph()
    built: list[list[Any]] = []
    for g in graphs:
        xs = [g.input(float(i)) for i in range(5)]
        nodes = list(xs)
        for k in range(24):
            node = rg.lift(lambda a, b: a - b)(nodes[k], nodes[(k * 7) % (k + 3)])
            if k % 6 == 5:
                node.cutoff = rg.tolerance(0.0, 2.5)
            nodes.append(node)
        built.append(nodes)
    one, other = built
    chosen = list(range(5, len(one)))
    for _ in range(data.draw(st.integers(1, 6))):
        for i in data.draw(st.lists(st.integers(0, 4), max_size=2)):
            value = float(data.draw(st.integers(-3, 3)))
            one[i].set(value)
            other[i].set(value)
        some = chosen if data.draw(st.booleans()) else chosen[: data.draw(st.integers(1, 24))]
        run = graphs[0].forward(*[one[i] for i in some])
        ran: set[int] = set()
        for i in some:
            found = graphs[1].forward(other[i]).ran
            ran |= {k for k, node in enumerate(other) if node in found}
        assert {k for k, node in enumerate(one) if node in run.ran} == ran
        versions = [[nodes[i].value_version for i in some] for nodes in built]
        assert versions[0] == versions[1]
        assert [one[i].value for i in some] == [other[i].value for i in some]
    graphs[0].check_invariants()


@SIZES
@pytest.mark.trusting
def test_a_read_of_many_is_replayed_from_its_third_sight(count: int) -> None:
    g, xs, ys = fan(count)
    g.forward(*ys)
    resolved = []
    for turn in range(5):
        xs[0].set(float(turn))
        before = g._scheduler.totals.resolved
        g.forward(*ys)
        resolved.append(g._scheduler.totals.resolved - before)
    assert resolved == [1, 1, 0, 0, 0]
