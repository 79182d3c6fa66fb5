"""Gradient steps beside evolution: an operator of ``Population``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._fit import fit
from reactgrad.neat._lesson import Loss

Pairs = list[tuple[int, Any]]


class Training(OwnAttributes):
    """Gradient steps for the best genomes of each generation, for ``Population(config, training=...)``.

    After the fitness function has run, the best genomes are trained, and the fitness function is called
    for these once more. A genome that is less fit after it keeps its numbers and its fitness.

    Parameters
    ----------
    X, y : array_like
        As for ``fit``.
    steps : int
    learning_rate : float
    best : int or None
        The number of genomes to train; ``None`` for all.
    lamarck : bool
        True if genomes keep what they have learned, and so pass it on; if not, only their fitness profits
        (Baldwin).
    loss : "mse" or callable
    window : int, optional
        As for ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> def fitness(genomes, config):
    ...     outputs = neat.evaluate(genomes, X, config).outputs
    ...     return [1.0 - np.mean((one[:, 0] - y) ** 2) for one in outputs]
    >>> training = neat.Training(X, y, steps=20, best=5)
    >>> population = neat.Population(neat_config(pop_size=30), seed=1, training=training)
    >>> winner = population.run(fitness, 3)
    >>> training.trained
    15
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        steps: int = 20,
        learning_rate: float = 0.02,
        best: int | None = 20,
        lamarck: bool = True,
        loss: str | Loss = "mse",
        window: int | None = None,
    ) -> None:
        if best is not None and (type(best) is not int or best < 1):
            raise rg.ParameterError(
                f"Training(best={best!r:.60}): it is a number of genomes, 1 or more, or None for all."
            )
        self.best, self.lamarck = best, lamarck
        self._data = X, y
        self._options = {
            "steps": steps,
            "learning_rate": learning_rate,
            "loss": loss,
            "window": window,
        }
        self.trained = 0

    def __repr__(self) -> str:
        which = "all genomes" if self.best is None else f"the {self.best} best genomes"
        word = "Lamarck" if self.lamarck else "Baldwin"
        return f"<Training: {self._options['steps']} steps for {which}, {word}>"

    def __call__(self, pairs: Pairs, config: Any, evaluate: Callable[[Pairs, Any], None]) -> None:
        """Train the best of these genomes, which have been evaluated, and evaluate them again."""
        sign = -1.0 if config.fitness_criterion == "min" else 1.0
        ranked = sorted(pairs, key=lambda pair: -sign * pair[1].fitness)
        chosen = ranked[: self.best]
        former = [(one.fitness, _numbers(one)) for _, one in chosen]
        fit(chosen, *self._data, config, **self._options)
        self.trained += len(chosen)
        evaluate(chosen, config)
        for (_, one), (fitness, numbers) in zip(chosen, former, strict=True):
            has_gained = sign * one.fitness > sign * fitness
            if not has_gained:
                one.fitness = fitness
            if not (has_gained and self.lamarck):
                _restore(one, numbers)


def _numbers(genome: Any) -> tuple[Any, Any]:
    nodes = [(one.bias, one.response) for one in genome.nodes.values()]
    return nodes, [one.weight for one in genome.connections.values()]


def _restore(genome: Any, numbers: tuple[Any, Any]) -> None:
    for one, (bias, response) in zip(genome.nodes.values(), numbers[0], strict=True):
        one.bias, one.response = bias, response
    for one, weight in zip(genome.connections.values(), numbers[1], strict=True):
        one.weight = weight
