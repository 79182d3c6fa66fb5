"""What a plan will cost, from what recordings have measured."""

from __future__ import annotations

import pytest

import reactgrad as rg
from tests.explain.models import chain_of_three, named


def test_without_a_recording_nothing_is_known(g: rg.Graph) -> None:
    _, _, y = chain_of_three(g)
    plan = g.plan(y)
    assert (len(plan), plan.cost, plan.unknown) == (2, None, 2)
    y.value
    empty = g.plan(y)
    assert (len(empty), empty.cost, empty.unknown) == (0, 0.0, 0)


def test_the_cost_is_the_sum_of_the_means(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    with g.record() as log:
        for turn in range(5):
            x.set(float(turn))
            y.value
    x.set(9.0)
    means = [sum(c.seconds for c in log.calls if c.node == name) / 5 for name in ("a", "y")]
    assert g.plan(y).cost == pytest.approx(sum(means))
    assert g.plan(a).cost == pytest.approx(means[0])
    assert g.plan(y).unknown == 0
    assert "about" in repr(g.plan(y))


def test_what_was_never_measured_is_counted(g: rg.Graph) -> None:
    x, a, y = chain_of_three(g)
    with g.record() as log:
        a.value
    x.set(2.0)
    plan = g.plan(y)
    assert (len(plan), plan.unknown) == (2, 1)
    assert plan.cost == pytest.approx(log.calls[0].seconds)
    assert "1 never measured" in repr(plan)


def test_a_new_node_in_a_used_place_is_not_known(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    with g.record():
        y.value
    del y
    len(g)
    fresh = [x * 2.0 for _ in range(3)]
    for node in fresh:
        assert g.plan(node).cost is None


def test_failed_and_rebuilt_calls_do_not_count(g: rg.Graph) -> None:
    x = g.input(0)
    bad = named(rg.lift(lambda v: 1 / v)(x), "bad")
    with g.record(), pytest.raises(ZeroDivisionError):
        bad.value
    x.set(1)
    assert g.plan(bad).cost is None


def test_a_plan_contains_nodes_not_values(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = (x * 2.0).sum()
    plan = g.plan(y)
    assert y in plan
    assert x not in plan


def test_planning_runs_nothing(g: rg.Graph) -> None:
    calls: list[float] = []
    x = g.input(1.0)
    y = rg.lift(lambda v: calls.append(v) or v)(x)
    with g.record():
        y.value
    x.set(2.0)
    assert g.plan(y).cost is not None
    assert calls == [1.0]


@pytest.mark.parametrize("nested", [False, True])
def test_of_a_choice_the_branch_of_its_present_condition_is_planned(
    g: rg.Graph, nested: bool
) -> None:
    condition, x = g.input(True), g.input(2.0)
    a, b = rg.sqrt(x), rg.exp(rg.sin(x))
    y = rg.switch(condition, a, b)
    if nested:
        y = rg.switch(g.const(False), x, y)
    z = y + 1.0
    assert g.plan(z).nodes == g.forward(z).ran
    for value in (False, True):
        condition.set(value)
        x.set(x.value + 1.0)
        plan = g.plan(z).nodes
        assert (b in plan, a in plan) == (not value, value)
        run = g.forward(z)
        assert sorted(map(id, plan)) == sorted(map(id, run.ran))
        seen = {id(node) for node in plan}
        for i, node in enumerate(plan):  # parents first
            assert not {id(p) for p in node.parents} & seen - {id(p) for p in plan[:i]}
    assert g.plan(z).nodes == []


def test_a_choice_whose_condition_is_stale_is_planned_as_the_last_time(g: rg.Graph) -> None:
    x = g.input(2.0)
    positive, a, b = x > 0.0, rg.sqrt(x), -x
    y = rg.switch(positive, a, b)
    y.value
    x.set(-1.0)
    assert g.plan(y).nodes == [positive, a, y]
    assert g.forward(y).ran == [positive, b, y]


def test_what_raises_again_without_running_is_not_planned(g: rg.Graph) -> None:
    x = g.input(0.0)
    inverse = rg.lift(lambda v: 1.0 / v)(x)
    behind, beside = inverse + 1.0, x + 1.0
    assert g.plan(behind, beside).nodes == [inverse, behind, beside]
    with pytest.raises(ZeroDivisionError):
        behind.value
    assert g.plan(behind, beside).nodes == [beside]
    with pytest.raises(ZeroDivisionError):
        g.forward(behind, beside)
    assert g.last_run.ran == [beside]
    x.set(2.0)
    assert g.plan(behind, beside).nodes == [inverse, behind, beside]


def test_nor_in_front_of_a_choice(g: rg.Graph) -> None:
    x = g.input(0.0)
    inverse = rg.lift(lambda v: 1.0 / v)(x)
    y = rg.switch(g.input(True), inverse, x) + 1.0
    with pytest.raises(ZeroDivisionError):
        y.value
    assert g.plan(y).nodes == []
    x.set(1.0)
    assert len(g.plan(y)) == 3
    assert y.value == 2.0
