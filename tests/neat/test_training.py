"""Gradients beside evolution: who is trained, what is kept, by Lamarck and by Baldwin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.demo import neat_config
from tests.neat.mutations import neat_python
from tests.neat.test_slopes import numbers

assert neat_python is not None
X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([0.0, 1.0, 1.0, 0.0])


def fitness(genomes: Any, config: Any) -> list[float]:
    outputs = neat.evaluate(genomes, X, config).outputs
    return [1.0 - float(np.mean((one[:, 0] - Y) ** 2)) for one in outputs]


def settings(**changes: Any) -> Any:
    return neat_config(**{"pop_size": 20, "num_hidden": 2, "fitness_threshold": 10.0, **changes})


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("lamarck", [True, False])
def test_the_best_are_trained_and_evaluated_again(lamarck: bool, exact: bool) -> None:
    seen: list[tuple[int, list[Any], list[float]]] = []

    def scored(genomes: Any, config: Any) -> list[float]:
        values = fitness(genomes, config)
        seen.append((len(genomes), [numbers(one) for _, one in genomes], values))
        return values

    training = neat.Training(X, Y, steps=10, best=4, lamarck=lamarck)
    population = neat.Population(settings(), seed=3, exact=exact, training=training)
    kept: list[Any] = []

    class Watch(neat_python.reporting.BaseReporter):
        def post_evaluate(self, config: Any, population: Any, species: Any, best: Any) -> None:
            kept.append({one.fitness: numbers(one) for one in population.values()})

    population.add_reporter(Watch())
    population.run(scored, 1)
    (count, before, values), (again, after, trained) = seen
    assert (count, again) == (20, 4)
    best = sorted(values, reverse=True)[:4]
    assert all(b > a for a, b in zip(best, trained, strict=True))
    genes = kept[0][max(trained)]
    assert (
        genes
        == (after if lamarck else before)[
            trained.index(max(trained))
            if lamarck
            else values.index(best[trained.index(max(trained))])
        ]
    )
    assert training.trained == 4
    assert repr(training).endswith("Lamarck>" if lamarck else "Baldwin>")


def test_a_genome_that_is_less_fit_after_training_stays_as_it_was() -> None:
    def worse(genomes: Any, config: Any) -> list[float]:
        return [-one for one in fitness(genomes, config)]  # training helps nobody

    training = neat.Training(X, Y, steps=10, best=None)
    population = neat.Population(settings(), seed=3, training=training)
    before = {key: numbers(one) for key, one in population.population.items()}
    seen: list[Any] = []

    class Watch(neat_python.reporting.BaseReporter):
        def post_evaluate(self, config: Any, population: Any, species: Any, best: Any) -> None:
            seen.append({key: numbers(one) for key, one in population.items()})

    population.add_reporter(Watch())
    population.run(worse, 1)
    assert seen == [before]
    assert training.trained == 20


def test_evolution_with_gradients_needs_fewer_generations() -> None:
    generations = []
    for training in (None, neat.Training(X, Y, steps=20, learning_rate=0.05, best=10)):
        found = []
        for seed in range(3):
            config = settings(pop_size=50, fitness_threshold=0.98)
            population = neat.Population(config, seed=seed, training=training)
            population.run(fitness, 40)
            found.append(population.generation)
        generations.append(np.mean(found))
    assert generations[1] < generations[0]


def test_messages() -> None:
    with pytest.raises(rg.DTypeError, match=r"best=0.*1 or more, or None for all"):
        neat.Training(X, Y, best=0)
    with pytest.raises(rg.DTypeError, match=r"it is neat\.Training\(X, y\)"):
        made: Any = neat.Population
        made(settings(), training=(X, Y))
