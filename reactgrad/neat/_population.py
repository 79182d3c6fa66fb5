"""A population that evolves as neat-python's does, with genomes as arrays and compiled operators."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import reactgrad as rg
from reactgrad._habits import AbsentError, mistyped
from reactgrad.neat import _saving
from reactgrad.neat._genome import Genome, forget
from reactgrad.neat._phenotype import check_config
from reactgrad.neat._program import is_compiled
from reactgrad.neat._scores import (
    Fitness,
    Ranks,
    Score,
    Scorer,
    farm_of,
    here,
    is_group,
    on_farm,
    warn_of_nan,
)
from reactgrad.neat._species import SpeciesSet
from reactgrad.neat._training import Training

_OWN = ("training", "exact", "_inner")
_OTHERWISE = "It takes none of your own: keep this in a variable, or write a subclass."


class Population:
    """neat-python's ``Population`` with the same config, reporters and checkpoints, and many times
    faster.

    Genomes are arrays: crossover, mutation, distances and reading for evaluation are loops that
    were compiled with the package. ``genome.nodes`` and ``genome.connections`` are made when
    somebody asks for them. Draws have the distributions of neat-python's, and are not the same
    draws: one seed gives another run than in neat-python, the same each time. Parents, elites,
    stagnation and sizes of species are chosen by neat-python itself.

    Parameters
    ----------
    config : neat.Config
        It is copied; the config that the fitness function gets is ``population.config``.
    initial_state : tuple, optional
        As for neat-python's.
    seed : int, optional
        Sets Python's ``random``, as in neat-python.
    exact : bool
        True for neat-python's own genomes, whose draws depend on the seed as there. So it is, too,
        where there was no compiler when the package was installed.
    training : Training, optional
        Gradient steps for the best genomes of each generation.

    Raises
    ------
    DTypeError
        If this is no config, or if genes, genomes or species of your own stand in it, which arrays
        cannot hold. Write ``exact=True`` for them.

    Examples
    --------
    >>> import numpy as np
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> config = neat_config(pop_size=50)
    >>> def fitness(genomes, config):
    ...     outputs = neat.evaluate(genomes, X, config).outputs
    ...     return [1.0 - np.mean((one[:, 0] - y) ** 2) for one in outputs]
    >>> population = neat.Population(config, seed=1)
    >>> winner = population.run(fitness, 10)
    >>> len(population.population), winner.fitness > 0.7
    (50, True)
    """

    def __init__(
        self,
        config: Any,
        initial_state: Any = None,
        seed: int | None = None,
        exact: bool = False,
        training: Training | None = None,
    ) -> None:
        check_config(config)
        if training is not None and not isinstance(training, Training):
            raise rg.DTypeError(
                f"Population(training={training!r:.60}): it is neat.Training(X, y), with what to learn from."
            )
        self.training = training
        self.exact = exact or not is_compiled()
        if not self.exact:
            config = _for_arrays(config)
        make = import_module("neat.population").Population
        with _saving.stream:  # ranks that are threads found theirs one after the other
            self._inner = make(config, initial_state, seed)

    @classmethod
    def restore_checkpoint(cls, path: str, training: Training | None = None) -> Population:
        """Return the population in a file of neat-python's ``Checkpointer``. It goes on exactly.

        Parameters
        ----------
        path : str
        training : Training, optional
            It is not in the file: give it again.
        """
        self = object.__new__(cls)
        self._inner = import_module("neat.checkpoint").Checkpointer.restore_checkpoint(path)
        self.exact = self._inner.config.genome_type is not Genome
        self.training = training
        return self

    def __getattr__(self, name: str) -> Any:
        """Return what neat-python's population has: ``population``, ``species``, ``generation``, ..."""
        if name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign what neat-python's population has to that, and what stands here only to this one."""
        inner = vars(self).get("_inner")
        if name in _OWN or name[:1] == "_" or inner is None:
            object.__setattr__(self, name, value)
        elif name in vars(inner):
            setattr(inner, name, value)
        else:
            has = [*vars(inner), "training", "exact"]
            if type(self) is Population or any(mistyped(name, one) for one in has):
                raise AbsentError(f"a Population has no attribute {name!r}.", name, has, _OTHERWISE)
            object.__setattr__(self, name, value)

    @property
    def inner(self) -> Any:
        """neat-python's population, which runs the loop and holds what it has come to."""
        return self._inner

    def __repr__(self) -> str:
        genomes, species = len(self.population), len(self.species.species)
        return f"<Population: generation {self.generation}, {genomes} genomes, {species} species>"

    def run(self, fitness_function: Fitness, n: int | None = None, over: Any = None) -> Any:
        """Evolve until the fitness threshold of the config is met, or for `n` generations.

        Parameters
        ----------
        fitness_function : callable
            ``f(genomes, config)`` with a list of pairs of a key and a genome. It sets the
            ``fitness`` of each genome, or returns an array of them in the order of the list.
        n : int, optional
        over : Group, distributed.Client, LocalHosts or int, optional
            Who computes the fitness; this process by default. The ranks of a group all call this: the
            first one evolves, each one computes the fitness of its share, and all end with the same
            population. Workers of Dask (or so many threads) get the function and the config once; one
            that dies is replaced. In both cases genomes travel as rows of arrays, and the run is that of
            one process, if the fitness of a genome depends on nothing but the genome.

        Returns
        -------
        genome
            The best one ever seen.

        Raises
        ------
        ShapeError
            If an array is returned that has not one number for each genome.
        DTypeError
            If `over` is nothing to work on, or the fitness function does not travel there.

        Examples
        --------
        See ``Population``.
        """

        if over is None:
            return self._run(here(fitness_function), n)
        scorer = Scorer(fitness_function, _saving.without_counters(self.config))
        if not is_group(over):
            with farm_of(scorer, over) as farm:
                return self._run(on_farm(farm), n)
        ranks = Ranks(over, scorer)
        if over.rank == 0:
            self._run(ranks.score, n)
            ranks.end()
            over.broadcast_object(_saving.dumps(self._inner))
        else:
            ranks.serve()
            _saving.loads(self._inner, over.broadcast_object(None))
        return self.best_genome

    def _run(self, score: Score, n: int | None) -> Any:
        def evaluate(genomes: list[tuple[int, Any]], config: Any) -> None:
            forget(config.genome_config)  # which the user may have changed
            if not self.exact:
                self._forget_the_dead()
            score(genomes, config)
            if self.training is not None:
                self.training(genomes, config, score)
            warn_of_nan(genomes)

        return self._inner.run(evaluate, n)

    def _forget_the_dead(self) -> None:
        """Drop the parents of genomes that are gone, which neat-python keeps for ever and never reads."""
        ancestors = getattr(self._inner.reproduction, "ancestors", None)
        if isinstance(ancestors, dict) and len(ancestors) > 2 * len(self._inner.population):
            alive = self._inner.population
            kept = {key: pair for key, pair in ancestors.items() if key in alive}
            self._inner.reproduction.ancestors = kept


def _for_arrays(config: Any) -> Any:
    """Return a copy of a config for genomes as arrays."""
    if config.genome_type is Genome:
        return config
    genome = config.genome_config
    types = {
        "genome_type": (config.genome_type, "neat.genome", "DefaultGenome"),
        "node_gene_type": (genome.node_gene_type, "neat.genes", "DefaultNodeGene"),
        "connection_gene_type": (
            genome.connection_gene_type,
            "neat.genes",
            "DefaultConnectionGene",
        ),
    }
    for name, (given, module, wanted) in types.items():
        if (given.__module__, given.__name__) != (module, wanted):
            raise rg.DTypeError(
                f"Population was given a config whose {name} is {given.__name__}. Arrays hold genes of "
                f"neat.{wanted} only. Write neat.Population(config, exact=True) for others."
            )
    found = copy.copy(config)
    found.genome_type = Genome
    target = getattr(config.species_set_config, "target_num_species", "none")
    if config.species_set_type.__name__ == "DefaultSpeciesSet" and target == "none":
        found.species_set_type = SpeciesSet
    return found
