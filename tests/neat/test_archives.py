"""Archives of novelty and of elites: by brute force, and in a search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.demo import neat_config
from tests.neat.mutations import neat_python

assert neat_python is not None


def test_novelty_is_the_mean_distance_to_the_nearest() -> None:
    rng = np.random.default_rng(1)
    archive = neat.NoveltyArchive(neighbours=4, added=2, capacity=5)
    known: list[Any] = []
    for _ in range(4):
        new = rng.normal(size=(9, 3))
        expected = []
        for i, one in enumerate(new):
            others = [*[two for j, two in enumerate(new) if j != i], *known]
            expected.append(np.mean(sorted(np.linalg.norm(one - two) for two in others)[:4]))
        np.testing.assert_allclose(archive.score(new, add=False), expected)
        np.testing.assert_allclose(archive.score(new), expected)
        best = sorted(np.argsort(expected)[-2:])
        known = [*known, *new[best]][-5:]
        np.testing.assert_allclose(archive.behaviours, known)
    assert len(archive) == 5
    assert archive.score([[0.0, 0.0, 0.0]], add=False).shape == (1,)
    assert neat.NoveltyArchive().score([[1.0]]).tolist() == [0.0]


def test_each_cell_has_the_best_of_all_that_came() -> None:
    rng = np.random.default_rng(2)
    elites = neat.MapElites([(-1.0, 1.0), (0.0, 2.0)], cells=(3, 2))
    best: dict[Any, Any] = {}
    for _ in range(5):
        behaviours, fitnesses = rng.uniform(-1.5, 2.5, size=(40, 2)), rng.normal(size=40)
        taken = elites.add(behaviours, fitnesses, list(fitnesses))
        for (x, y), fitness, was_taken in zip(behaviours, fitnesses, taken, strict=True):
            place = min(max(int((x + 1.0) // (2.0 / 3.0)), 0), 2), min(max(int(y // 1.0), 0), 1)
            assert was_taken == (fitness > best.get(place, -np.inf))
            best[place] = max(fitness, best.get(place, -np.inf))
            assert elites.place((x, y)) == place
    assert {place: one.fitness for place, one in elites.elites.items()} == best
    assert elites.coverage == 1.0
    assert elites.qd_score == pytest.approx(sum(best.values()))
    assert elites.best.solution == elites.best.fitness == max(best.values())
    assert set(elites.sample(50, rng=1)) <= set(best.values())
    assert elites.sample(3, rng=1) == elites.sample(3, rng=1)
    assert repr(elites) == "<MapElites: 6 of 6 cells>"


def test_a_population_searches_for_what_is_new() -> None:
    """Outputs at two samples are the behaviour; novelty spreads them further than at the beginning."""
    config = neat_config(pop_size=40, fitness_threshold=1e9)
    archive = neat.NoveltyArchive(neighbours=5)
    elites = neat.MapElites([(0.0, 1.0), (0.0, 1.0)], cells=6)
    covered: list[float] = []

    def novelty(genomes: Any, config: Any) -> Any:
        outputs = neat.evaluate(genomes, [[0.0, 1.0], [1.0, 0.0]], config).outputs
        behaviours = np.array([one[:, 0] for one in outputs])
        elites.add(behaviours, np.zeros(len(genomes)), [key for key, _ in genomes])
        covered.append(elites.coverage)
        return archive.score(behaviours)

    neat.Population(config, seed=1).run(novelty, 8)
    assert len(archive) == 24
    assert covered[-1] > 1.5 * covered[0]


def test_messages() -> None:
    with pytest.raises(rg.DTypeError, match=r"neighbours=0"):
        neat.NoveltyArchive(neighbours=0)
    archive = neat.NoveltyArchive()
    archive.score([[1.0, 2.0]])
    with pytest.raises(rg.ShapeError, match="behaviours of 2 numbers and was given some of 1"):
        archive.score([[1.0]])
    with pytest.raises(rg.ShapeError, match="Give a row of numbers for each"):
        archive.score([1.0])
    with pytest.raises(rg.DTypeError, match="finite numbers"):
        archive.score([[np.nan, 1.0]])
    with pytest.raises(rg.DTypeError, match="arrays of numbers"):
        archive.score([["a", "b"]])
    with pytest.raises(rg.ShapeError, match="the least and the greatest"):
        neat.MapElites([(1.0, 0.0)])
    with pytest.raises(rg.ShapeError, match="one for each of the 1 numbers"):
        neat.MapElites([(0.0, 1.0)], cells=(1, 2))
    elites = neat.MapElites([(0.0, 1.0)])
    with pytest.raises(rg.UnsetError, match="there is none yet"):
        _ = elites.best
    with pytest.raises(rg.UnsetError, match="there is none yet"):
        elites.sample(1)
    with pytest.raises(rg.ShapeError, match="1 fitnesses and 2 solutions"):
        elites.add([[1.0], [2.0]], [1.0], ["a", "b"])
    elites.add([[0.5]], [1.0], ["a"])
    assert repr(elites.best) == "<Elite: fitness 1, 'a'>"
