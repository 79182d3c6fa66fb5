"""An input without a value: a plan holds what a read runs, and names the input that the rest waits for."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import reactgrad as rg


def model() -> tuple[rg.Graph, list[rg.Var]]:
    g = rg.Graph()
    price, units = g.input(shape=(), dtype=float, name="price"), g.input(2.0, name="units")
    tax, double = price * 0.2, units * 2.0
    result = tax * double
    for name, var in {"tax": tax, "double": double, "result": result}.items():
        var.name = name
    return g, [price, units, tax, double, result]


def test_a_plan_says_which_input_has_no_value() -> None:
    g, (price, _, tax, double, result) = model()
    plan = g.plan(result)
    assert plan.nodes == [double]
    assert plan.unset == [price]
    assert repr(plan) == "<Plan: 1 to run: [double]; [price] without a value>"
    assert "without a value: [price]" in plan._repr_html_()
    with pytest.raises(rg.UnsetError):
        g.forward(result)
    assert g.last_run is not None
    assert g.last_run.ran == [double]
    # The failure is known now, and nothing is left to run.
    assert len(g.plan(result)) == 0
    assert g.plan(result).unset == [price]
    assert "nothing to run; without a value: [price]" in g.plan(result)._repr_html_()
    price.set(3.0)
    assert g.plan(result).nodes == [tax, result]
    assert not g.plan(result).unset
    assert g.forward(result).ran == [tax, result]


def test_a_gradient_waits_for_the_input_too() -> None:
    g = rg.Graph()
    w, x = g.param(2.0, name="w"), g.input(shape=(), dtype=float, name="x")
    loss = (w * x) ** 2
    plan = g.plan(loss, gradient=True)
    assert not plan.nodes
    assert plan.unset == [x]


def test_nothing_behind_a_failed_node_is_planned() -> None:
    g = rg.Graph()
    x, b = g.input(0.0, name="x"), g.input(1.0, name="b")
    y = rg.lift(lambda v: 1.0 / v)(x) + b * 2.0
    with pytest.raises(ZeroDivisionError):
        _ = y.value
    b.set(2.0)
    plan = g.plan(y)
    assert plan.nodes == [y.parents[1]]
    with pytest.raises(ZeroDivisionError):
        _ = y.value
    assert g.last_run is not None
    assert g.last_run.ran == plan.nodes


def test_only_the_branch_that_is_taken_is_asked_for_its_inputs() -> None:
    g = rg.Graph()
    which, here = g.input(True, name="which"), g.input(1.0, name="here")
    there = g.input(shape=(), dtype=float, name="there")
    y = rg.switch(which, here * 2.0, there * 2.0)
    assert not g.plan(y).unset
    assert y.value == 2.0
    which.set(False)
    assert g.plan(y).unset == [there]
    assert not g.plan(y).nodes


@pytest.mark.parametrize("seed", range(30))
def test_what_is_planned_runs_in_random_graphs(seed: int) -> None:
    random = Random(seed)
    g = rg.Graph()
    leaves = [
        g.input(shape=(), dtype=float) if random.random() < 0.3 else g.input(float(i))
        for i in range(6)
    ]
    nodes = list(leaves)
    for _ in range(25):
        nodes.append(
            random.choice([np.add, np.multiply])(random.choice(nodes), random.choice(nodes))
        )
    targets = random.sample(nodes[6:], 3)
    for _ in range(4):
        plan = g.plan(*targets)
        try:
            run = g.forward(*targets)
        except rg.UnsetError:
            run = g.last_run
            assert plan.unset
            assert run is not None
        else:
            assert not plan.unset
        assert run is not None
        assert set(plan.nodes) == set(run.ran)
        if plan.unset:
            random.choice(plan.unset).set(1.0)
        else:
            random.choice(leaves).set(random.random())
