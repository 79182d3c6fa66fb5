"""A whole population on shared data: what several genomes compute alike is computed once.

A neuron is told by what it computes: its functions, its genes, and which neurons it computes from, told
the same way. Neurons of two genomes that agree in this have the same values, so they are one node, whoever
their common ancestor was: children share with both parents, copies are free, and generations share with
the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad.neat._compiled import new_graph
from reactgrad.neat._neuron import activated, taken_in, whole
from reactgrad.neat._phenotype import Neuron, check_config, feed_forward
from reactgrad.neat._samples import columns, rows


class Evaluation(NamedTuple):
    """What a population computed.

    Attributes
    ----------
    outputs : list of array, shape (samples, outputs)
        One for each genome.
    ran : int
        How many neurons were computed.
    neurons : int
        How many there are in all genomes together: what computing each by itself would run.
    """

    outputs: list[np.ndarray[Any, Any]]
    ran: int
    neurons: int


class Evaluator:
    """Evaluates populations on the same samples, and keeps what the latest one has computed.

    Parameters
    ----------
    X : array_like of shape (samples, inputs)
    config : neat.Config

    Attributes
    ----------
    graph : rg.Graph
        The neurons of the latest population.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(pop_size=3, num_hidden=2)
    >>> population = neat_python.Population(config, seed=1).population
    >>> evaluator = neat.Evaluator([[0.0, 1.0], [1.0, 1.0]], config)
    >>> result = evaluator(population.values())
    >>> result.ran, result.neurons, result.outputs[0].shape
    (9, 9, (2, 1))
    >>> population[1].nodes[0].bias += 1.0
    >>> evaluator(population.values()).ran
    1
    """

    def __init__(self, X: Any, config: Any) -> None:
        check_config(config)
        self.graph = new_graph()
        self._config = config
        self._keys = tuple(config.genome_config.input_keys)
        given, _ = columns(X, self._keys)
        self._samples = given.shape[1]
        self._inputs = [self.graph.input(column) for column in given]
        # What tells a neuron: its number and its node. Inputs have the numbers -1, -2, ...
        self._known: dict[tuple[Any, ...], tuple[int, rg.Var]] = {}
        self._next = 0

    def __call__(self, genomes: Iterable[Any]) -> Evaluation:
        """The outputs of each genome.

        Parameters
        ----------
        genomes : iterable of neat.DefaultGenome, or of pairs of an id and a genome
            As neat-python gives them to a fitness function; or the dict of a population.

        Returns
        -------
        Evaluation

        Raises
        ------
        GenomeError
            If one is no feed-forward network.
        DTypeError
            If one is no genome.
        """
        if isinstance(genomes, Mapping):
            genomes = genomes.values()
        elif not isinstance(genomes, Iterable):
            raise rg.DTypeError(
                f"evaluate takes several genomes, not {genomes!r:.60}. Give a list: [genome]."
            )
        alive: dict[tuple[Any, ...], tuple[int, rg.Var]] = {}
        outputs: list[list[rg.Var]] = []
        total = 0
        for one in genomes:
            phenotype = feed_forward(one[1] if isinstance(one, tuple) else one, self._config)
            total += len(phenotype.neurons)
            nodes: dict[int, tuple[int, rg.Var]] = {
                key: (-1 - i, var)
                for i, (key, var) in enumerate(zip(self._keys, self._inputs, strict=True))
            }
            for key, neuron in phenotype.neurons.items():
                nodes[key] = self._node(neuron, nodes, alive)
            outputs.append([nodes[key][1] for key in phenotype.outputs])
        run = self.graph.forward(*dict.fromkeys([var for several in outputs for var in several]))
        activations = {var for _, var in alive.values()}
        self._known = alive
        return Evaluation(
            [rows([var.value for var in several], self._samples) for several in outputs],
            sum(var in activations for var in run.ran),
            total,
        )

    def _node(
        self,
        neuron: Neuron,
        nodes: dict[int, tuple[int, rg.Var]],
        alive: dict[tuple[Any, ...], tuple[int, rg.Var]],
    ) -> tuple[int, rg.Var]:
        sources = [nodes[source] for source in neuron.sources]
        told = (*neuron[:3], tuple([number for number, _ in sources]))
        found = alive.get(told) or self._known.get(told)
        if found is None:
            operands = [var for _, var in sources]
            with self.graph:  # where a neuron without sources goes
                if neuron.aggregation == "sum":
                    var = whole(*operands, genes=neuron.genes, function=neuron.activation)
                else:
                    potential = taken_in(neuron, np.array(neuron.genes), operands)
                    var = activated(neuron, potential)
            found = self._next, var
            self._next += 1
        alive[told] = found
        return found


def evaluate(genomes: Iterable[Any], X: Any, config: Any) -> Evaluation:
    """Evaluate a population on shared data; what relatives compute alike is computed once.

    Parameters
    ----------
    genomes : iterable of neat.DefaultGenome, or of pairs of an id and a genome; or a dict of them
    X : array_like of shape (samples, inputs)
    config : neat.Config

    Returns
    -------
    Evaluation
        With ``outputs``, one array a genome; ``ran`` and ``neurons``, how many neurons were computed
        and how many there are.

    See Also
    --------
    Evaluator : Also shares with the population before.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(pop_size=3)
    >>> population = neat_python.Population(config, seed=1).population
    >>> result = neat.evaluate([population[1], population[1]], [[0.0, 1.0]], config)
    >>> result.ran, result.neurons
    (1, 2)
    """
    return Evaluator(X, config)(genomes)
