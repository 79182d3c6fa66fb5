"""Members of a population share what they have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd


def model(heads: int = 5) -> tuple[rg.Graph, Any, Any, Any, Any, rd.Population]:
    g = rg.Graph()
    x = g.input(np.ones((4, 3)), name="x")
    trunk = g.param(np.full((3, 3), 0.1), name="trunk")
    w = g.param(np.ones(3), name="w")
    hidden = rg.tanh(rg.tanh(x @ trunk) @ trunk)
    loss = ((hidden @ w) ** 2).sum()
    loss.name = "loss"
    return g, x, w, hidden, loss, rd.Population(g, heads, outputs=[loss], own=[w])


def alone(w: np.ndarray, x: np.ndarray) -> float:
    trunk = np.full((3, 3), 0.1)
    return float(((np.tanh(np.tanh(x @ trunk) @ trunk) @ w) ** 2).sum())


def test_the_trunk_runs_once_for_all_members() -> None:
    g, x, w, _, loss, population = model()
    for i, member in enumerate(population):
        member.set({w: np.full(3, float(i))})
    found = population.read(loss)
    np.testing.assert_allclose(found, [alone(np.full(3, float(i)), x.value) for i in range(5)])
    batch = np.random.default_rng(0).normal(size=(4, 3))
    x.set(batch)  # one set reaches all
    found = population.read("loss")
    np.testing.assert_allclose(found, [alone(np.full(3, float(i)), batch) for i in range(5)])
    assert len(g.last_run.ran) == 4 + 5 * 3  # the trunk, and three nodes a head
    population[2].set({w: np.zeros(3)})
    assert population.read(loss)[2] == 0.0
    assert len(g.last_run.ran) == 3


def test_members_share_until_they_own() -> None:
    g, _, w, hidden, loss, _ = model(1)
    nodes = len(g)
    population = rd.Population(g, 100, outputs=[loss])
    assert len(g) == nodes
    assert population[7][loss] is loss
    population[7].own(w)
    assert len(g) == nodes + 4
    assert population[7][hidden] is hidden
    assert population[8][w] is w
    assert len(population[7]) == 4


def test_edits_of_one_member_are_its_own() -> None:
    g, x, w, hidden, loss, population = model(3)
    before = population.read(loss)
    mine = population[1].own(hidden)
    mine.replace_parent(
        0, population[1].own("x") @ g["trunk"]
    )  # one layer less, and an input of its own
    after = population.read(loss)
    assert after[0] == before[0]
    assert after[2] == before[2]
    expected = ((np.tanh(x.value @ np.full((3, 3), 0.1)) @ np.ones(3)) ** 2).sum()
    np.testing.assert_allclose(after[1], expected)
    population[1].set({w: np.zeros(3)})
    assert population.read(loss)[1] == 0.0
    assert loss.value == before[0]


def test_gradients_of_all_members_are_one_plan() -> None:
    g, x, w, _, loss, population = model(4)
    for i, member in enumerate(population):
        member.set({w: np.arange(3.0) + i})
    every = population.backward(loss)
    for i, (member, grads) in enumerate(zip(population, every, strict=True)):
        assert list(grads) == member.params
        with g.whatif({w: np.arange(3.0) + i}) as fork:
            expected = rg.grad(fork[loss], fork[w]).value
        np.testing.assert_allclose(grads[member[w]], expected)
    nodes = len(g)
    x.set(np.full((4, 3), 0.5))
    population.backward(loss)
    assert len(g) == nodes
    population[0].copy(population[3])
    assert population[0][w].value.tolist() == [3.0, 4.0, 5.0]


def test_an_evolution_strategy_climbs() -> None:
    g = rg.Graph()
    w = g.param(np.zeros(3), name="w")
    target = np.array([1.0, -2.0, 0.5])
    loss = ((w - target) ** 2).sum()
    population = rd.Population(g, 40, outputs=[loss], own=[w])
    rng, mean = np.random.default_rng(0), np.zeros(3)
    for _ in range(60):
        noise = rng.normal(size=(40, 3))
        g.set({member[w]: mean + 0.1 * one for member, one in zip(population, noise, strict=True)})
        losses = np.array(population.read(loss))
        score = (losses - losses.mean()) / losses.std()
        mean = mean - 0.15 * score @ noise / len(noise)
    np.testing.assert_allclose(mean, target, atol=0.25)


def test_population_based_training_copies_the_best() -> None:
    g = rg.Graph()
    w = g.param(1.0, name="w")
    loss = (w - 3.0) ** 2
    population = rd.Population(g, 4, outputs=[loss], own=[w])
    rates = np.array([1e-4, 1e-3, 1e-2, 0.3])
    for _ in range(10):
        slopes = population.backward(loss)
        for member, rate, one in zip(population, rates, slopes, strict=True):
            member.set({w: member[w].value - rate * one[member[w]]})
        losses = population.read(loss)
        best, worst = int(np.argmin(losses)), int(np.argmax(losses))
        population[worst].copy(population[best])
        rates[worst] = rates[best] * 0.9
    assert min(population.read(loss)) < 1e-3


def test_arguments_are_checked() -> None:
    g, _, w, _, loss, population = model(2)
    assert rd.Population is rg.Population
    assert loss.label in [one.label for one in rg.Population(g, 2).outputs]
    with pytest.raises(rg.DTypeError, match="at least one member"):
        rd.Population(g, 0, outputs=[loss])
    with pytest.raises(rg.DTypeError, match="name the nodes that are read"):
        rd.Population(g, 1, outputs=[])
    with pytest.raises(rg.GraphError, match="Name nodes of the model, not those of a member"):
        population[0].own(population[1][w])
    with pytest.raises(rg.GraphError, match="no node of the model's graph"):
        population.set({rg.Graph().input(1.0): 2.0})
