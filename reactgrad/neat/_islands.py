"""Islands: populations that evolve apart, and between which the best genomes migrate."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat import _saving
from reactgrad.neat._genome import Genome
from reactgrad.neat._phenotype import check_config
from reactgrad.neat._population import Population
from reactgrad.neat._rows import from_bytes, to_bytes
from reactgrad.neat._scores import Fitness, farm_of, is_group

# New nodes and links of different islands have different numbers: each island has this many of its own.
_RANGE = 10**9


class Task(NamedTuple):
    """An island on its way to a worker: all that is needed to evolve it."""

    state: bytes
    generations: int
    immigrants: bytes


class Found(NamedTuple):
    """An island on its way back."""

    state: bytes
    emigrants: bytes
    is_solved: bool


class Islands(OwnAttributes):
    """Several populations that evolve apart, and whose best genomes migrate along a ring.

    Every few generations copies of the best genomes of each island take the places of new children of the
    next one. An island has random numbers of its own, so a seed gives the same run in one process, on ranks
    of MPI, and on workers of Dask. What travels are rows of arrays.

    Parameters
    ----------
    config : neat.Config
        Each island has ``pop_size`` genomes.
    count : int
        The number of islands.
    seed : int, optional
    every : int
        The generations between two migrations.
    migrants : int
        The genomes that leave each island then.
    exact : bool
        As for ``Population``.

    Attributes
    ----------
    populations : list of Population
    generation : int
    best_genome : genome or None
        The best one ever seen on any island.

    Raises
    ------
    DTypeError
        If these are no such numbers, or this is no config that ``Population`` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> def fitness(genomes, config):
    ...     outputs = neat.evaluate(genomes, X, config).outputs
    ...     return [1.0 - np.mean((one[:, 0] - y) ** 2) for one in outputs]
    >>> islands = neat.Islands(neat_config(pop_size=20), 3, seed=1, every=2)
    >>> winner = islands.run(fitness, 6)
    >>> islands.generation, [len(one.population) for one in islands.populations]
    (6, [20, 20, 20])
    """

    def __init__(
        self,
        config: Any,
        count: int,
        seed: int | None = None,
        *,
        every: int = 5,
        migrants: int = 2,
        exact: bool = False,
    ) -> None:
        check_config(config)
        for name, value, least in (
            ("count", count, 1),
            ("every", every, 1),
            ("migrants", migrants, 0),
        ):
            if type(value) is not int or value < least:
                raise rg.ParameterError(
                    f"Islands({name}={value!r:.60}): it is a whole number, {least} or more."
                )
        if migrants >= config.pop_size:
            raise rg.ParameterError(
                f"Islands(migrants={migrants}): each island has {config.pop_size} genomes, and at most "
                f"{config.pop_size - 1} of them can be replaced."
            )
        self.every, self.migrants = every, migrants
        with _saving.stream:
            former = random.getstate()
            if seed is None:
                seed = random.getrandbits(64)
                former = random.getstate()
            self.populations = [_founded(config, i, seed, exact) for i in range(count)]
            self._states = [_state(one, i, seed) for i, one in enumerate(self.populations)]
            random.setstate(former)
        self._immigrants = [to_bytes([]) for _ in range(count)]
        self.generation = 0

    def __len__(self) -> int:
        return len(self.populations)

    def __repr__(self) -> str:
        genomes = sum(len(one.population) for one in self.populations)
        return f"<{len(self)} islands: generation {self.generation}, {genomes} genomes>"

    @property
    def best_genome(self) -> Any:
        """The best genome ever seen; of several, that of the first island."""
        found = [one.best_genome for one in self.populations if one.best_genome is not None]
        return max(found, key=lambda one: one.fitness, default=None)

    def run(self, fitness_function: Fitness, n: int, over: Any = None) -> Any:
        """Evolve all islands for `n` generations, or until one has met the fitness threshold.

        Parameters
        ----------
        fitness_function : callable
            As for ``Population.run``.
        n : int
        over : Group, distributed.Client, LocalHosts or int, optional
            Who evolves the islands: ranks, all of which call this, or workers. This process by default.

        Returns
        -------
        genome
            The best one ever seen.

        Raises
        ------
        DTypeError
            If `over` is nothing to work on, or the fitness function does not travel there.

        Examples
        --------
        See ``Islands``.
        """
        journey = Journey(fitness_function, self.populations[0], self.migrants)
        if over is None:
            self._evolve(n, lambda tasks: [journey(one) for one in tasks])
        elif is_group(over):
            self._evolve(n, lambda tasks: _on_ranks(journey, tasks, over))
        else:
            with farm_of(journey, over) as farm:
                self._evolve(n, lambda tasks: list(farm.map(tasks, chunk=1)))
        with _saving.stream:
            former = random.getstate()
            for population, state in zip(self.populations, self._states, strict=True):
                _saving.loads(population.inner, state)
            random.setstate(former)
        return self.best_genome

    def _evolve(self, n: int, travel: Callable[[Sequence[Task]], list[Found]]) -> None:
        end = self.generation + n
        while self.generation < end:
            # Migrations come at fixed generations, however many calls of `run` there are.
            generations = min(end - self.generation, self.every - self.generation % self.every)
            found = travel(
                [
                    Task(state, generations, several)
                    for state, several in zip(self._states, self._immigrants, strict=True)
                ]
            )
            self._states = [one.state for one in found]
            self.generation += generations
            self._immigrants = [to_bytes([]) for _ in found]
            if any(one.is_solved for one in found):
                return
            if self.generation % self.every == 0 and len(self) > 1:
                self._immigrants = [found[i - 1].emigrants for i in range(len(self))]


class Journey:
    """Some generations of one island: a function of its state, wherever it is called."""

    def __init__(self, fitness: Fitness, population: Population, migrants: int) -> None:
        self.fitness, self.migrants, self.exact = fitness, migrants, population.exact
        self.config = _saving.without_counters(population.config)

    def __call__(self, task: Task) -> Found:
        """Take in immigrants, and evolve."""
        with _saving.stream:
            former = random.getstate()
            try:
                return self._evolve(task)
            finally:
                random.setstate(former)

    def _evolve(self, task: Task) -> Found:
        # The species come with the state.
        population = Population(
            _saving.without_counters(self.config), ({0: None}, _Nobody(), 0), exact=self.exact
        )
        inner = population.inner
        _saving.loads(inner, task.state)
        _settle(inner, [genome for _, genome in from_bytes(task.immigrants)])
        latest: list[Any] = []

        def fitness(genomes: Any, config: Any) -> Any:
            latest[:] = [genome for _, genome in genomes]
            return self.fitness(genomes, config)

        before = population.generation
        population.run(fitness, task.generations)
        is_solved = population.generation < before + task.generations
        sign = -1.0 if inner.config.fitness_criterion == "min" else 1.0
        best = sorted(latest, key=lambda one: (-sign * one.fitness, one.key))[: self.migrants]
        emigrants = to_bytes([(one.key, one) for one in best])
        return Found(_saving.dumps(inner), emigrants, is_solved)


class _Nobody:
    """Stands for species until a state is loaded."""

    reporters: Any = None


def _founded(config: Any, i: int, seed: int, exact: bool) -> Population:
    """Return a new island with random numbers of its own."""
    random.seed(f"{seed} {i}")
    return Population(_saving.without_counters(config), exact=exact)


def _state(population: Population, i: int, seed: int) -> bytes:
    """Return the state of a new island, whose further nodes and links have numbers of their own."""
    inner = population.inner
    random.seed(f"{seed} {i} evolves")
    functions, tracker = inner.config.genome_config, inner.reproduction.innovation_tracker
    known = max(key for one in inner.population.values() for key in one.nodes)
    _saving.count_from(
        functions, "node_indexer", max(known + 1, functions.num_outputs) + i * _RANGE
    )
    tracker.global_counter += i * _RANGE
    tracker.reset_generation()
    return _saving.dumps(inner)


def _on_ranks(journey: Journey, tasks: Sequence[Task], group: Any) -> list[Found]:
    """Return what becomes of all islands; each rank evolves some of them."""
    mine = [journey(one) for one in tasks[group.rank :: group.size]]
    every = group.all_gather_object(mine)
    return [every[i % group.size][i // group.size] for i in range(len(tasks))]


def _settle(inner: Any, immigrants: Sequence[Any]) -> None:
    """Let immigrants take the places of children that nobody has evaluated."""
    children = sorted(key for key, one in inner.population.items() if one.fitness is None)
    places = random.sample(children, min(len(children), len(immigrants)))
    for key, one in zip(places, immigrants, strict=False):
        _renumber(one, inner.population.values())
        one.key, one.fitness = next(inner.reproduction.genome_indexer), None
        del inner.population[key]
        inner.population[one.key] = one
    if places:
        inner.species.speciate(inner.config, inner.population, inner.generation)


def _renumber(immigrant: Any, residents: Collection[Any]) -> None:
    """Give links that residents have, too, the numbers that they have here, so that crossover finds them."""
    for pair, gene in immigrant.connections.items():
        known = (_number(one, pair) for one in residents)
        gene.innovation = next((one for one in known if one is not None), gene.innovation)


def _number(genome: Any, pair: tuple[int, int]) -> int | None:
    """Return the number of a link in a genome, if it has it."""
    if type(genome) is Genome:  # its arrays are searched without making genes of them
        place = genome.genes.find(*pair)
        return None if place < 0 else genome.genes.at(place)[2]
    gene = genome.connections.get(pair)
    return None if gene is None else gene.innovation
