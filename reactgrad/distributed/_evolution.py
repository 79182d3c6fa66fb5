"""The fitness of a population, computed by all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group


def spread_fitness(
    fitness: Callable[[Any, Any], Any], group: Group | None = None
) -> Callable[[Any, Any], list[float]]:
    """Return a fitness function of which each rank computes a part, for ``neat.Population.run``.

    All ranks run the same evolution, from the same seed, and each computes the fitness of its share of the
    genomes. Only the numbers travel. The run is that of one process, if the fitness of a genome does not depend
    on the others, and draws nothing from Python's ``random``. Threads share that ``random``: use processes.

    Parameters
    ----------
    fitness : callable
        ``fitness(genomes, config)``, with pairs of a key and a genome. It returns a number for each, or sets
        ``genome.fitness``.
    group : Group, optional

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     genomes = [(i, None) for i in range(5)]
    ...     fitness = lambda genomes, config: [float(key) for key, _ in genomes]
    ...     return rg.distributed.spread_fitness(fitness, group)(genomes, None)
    >>> rg.distributed.run(work, "local:2")
    [[0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
    """
    found = present_group() if group is None else group

    def evaluate(genomes: Sequence[tuple[Any, Any]], config: Any) -> list[float]:
        share = list(genomes)[found.rank :: found.size]
        values = fitness(share, config) if share else []
        if values is None:
            values = [genome.fitness for _, genome in share]
        mine = np.array([np.nan if one is None else one for one in values], np.float64)
        if mine.shape != (len(share),):
            raise DistributedError(
                f"spread_fitness: the fitness function returned {mine.size} numbers for {len(share)} genomes. "
                "Return one for each, in order, or set genome.fitness."
            )
        length = -(-len(genomes) // found.size)
        padded = np.zeros(length)
        padded[: len(mine)] = mine
        every = found.move("all_gather", padded).reshape(found.size, length)
        results = [float(one) for one in every.T.reshape(-1)[: len(genomes)]]
        for (_, genome), one in zip(genomes, results, strict=True):
            if genome is not None:
                genome.fitness = one
        return results

    return evaluate
