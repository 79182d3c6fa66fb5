"""Evolutions that tests run in one process and over others, and what they have come to."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import neat
from reactgrad.demo import neat_config

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([0.0, 1.0, 1.0, 0.0])


def settings(**changes: Any) -> Any:
    options = {"pop_size": 24, "num_hidden": 1, "fitness_threshold": 10.0}
    return neat_config(**{**options, **changes})


def fitness(genomes: Any, config: Any) -> list[float]:
    outputs = neat.evaluate(genomes, X, config).outputs
    return [1.0 - float(np.mean((one[:, 0] - Y) ** 2)) for one in outputs]


def told(population: Any) -> list[tuple[int, str]]:
    """Every gene of every genome, and the best one."""
    everyone = [(key, str(one)) for key, one in sorted(population.population.items())]
    return [*everyone, (population.generation, str(population.best_genome))]


def population_told(over: Any, fitness: Any = fitness, exact: bool = False) -> Any:
    population = neat.Population(settings(), seed=1, exact=exact)
    population.run(fitness, 4, over=over)
    return told(population)


def islands_told(over: Any, exact: bool = False) -> Any:
    islands = neat.Islands(settings(), 3, seed=1, every=2, exact=exact)
    islands.run(fitness, 5, over=over)
    return [told(one) for one in islands.populations]
