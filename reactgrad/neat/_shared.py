"""Networks in one graph: where they are built, and genes that several of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._phenotype import Neuron, check_config


class SharedGenes(OwnAttributes):
    """Weights, biases and responses that networks of several genomes in one graph share: a supernet.

    There is one param for each neuron key, with a bias, a response, and a weight for each source that any
    of the networks has connected it from. The genome that first brings a node or a connection gives
    its numbers. So a step of training for one network trains all others that have the same connections.

    Parameters
    ----------
    graph : rg.Graph

    Examples
    --------
    >>> import neat as neat_python
    >>> import reactgrad as rg
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config()
    >>> population = neat_python.Population(config, seed=1).population
    >>> g = rg.Graph()
    >>> genes = neat.SharedGenes(g)
    >>> nets = [neat.Network.create(population[i], config, graph=g, genes=genes) for i in (1, 2)]
    >>> nets[0].activate([1.0, 0.5]) == nets[1].activate([1.0, 0.5])
    True
    >>> [one.name for one in genes.params]
    ['shared genes of 0']
    """

    def __init__(self, graph: rg.Graph) -> None:
        self.graph = graph
        self._params: dict[int, rg.Var] = {}
        self._sources: dict[int, list[int]] = {}

    def __repr__(self) -> str:
        links = sum(map(len, self._sources.values()))
        return f"<SharedGenes: {len(self._params)} neurons, {links} connections>"

    @property
    def params(self) -> list[rg.Var]:
        """The params, one for each neuron: what an optimiser takes."""
        return list(self._params.values())

    def weight(self, source: int, target: int) -> float:
        """Return the present weight of a connection.

        Raises
        ------
        UnknownNameError
            If no network has it.
        """
        try:
            place = self._sources[target].index(source) + 2
        except (KeyError, ValueError):
            raise rg.UnknownNameError(
                f"genes.weight({source}, {target}): no network that shares these genes has this connection."
            ) from None
        return self._params[target].value[place].item()

    def take(self, key: int, neuron: Neuron) -> rg.Var:
        """Return the node with the genes of a neuron, in its order; add those that are new."""
        param, known = self._params.get(key), self._sources.get(key, [])
        added = [source for source in neuron.sources if source not in known]
        if param is None:
            param = self.graph.param(np.array(neuron.genes), name=f"shared genes of {key}")
            self._params[key] = param
        elif added:
            weights = dict(zip(neuron.sources, neuron.genes[2:], strict=True))
            values = param.value
            with self.graph.edit():
                param.set(np.append(values, [weights[source] for source in added]))
                rg.extend.carry(param, [*range(len(values)), *[None] * len(added)])
        known = self._sources[key] = [*known, *added]
        return param[np.array([0, 1, *[known.index(source) + 2 for source in neuron.sources]])]


class Place(NamedTuple):
    """A graph that a network is built in, beside others."""

    graph: Any
    prefix: str
    inputs: list[rg.Var] | None
    genes: SharedGenes | None


def placed(
    graph: Any,
    prefix: str,
    inputs: Sequence[rg.Var] | None,
    genes: SharedGenes | None,
    config: Any,
) -> Place:
    """Return the place of a network, checked.

    Raises
    ------
    GraphError
        If the inputs or the genes belong to another graph.
    ShapeError
        If there is not one Var for each input.
    DTypeError
        If these are no graph and no genes.
    """
    check_config(config)
    if not isinstance(graph, rg.Graph):
        raise rg.DTypeError(f"create(graph={graph!r:.60}): it is a graph, such as rg.Graph().")
    if genes is not None and not isinstance(genes, SharedGenes):
        raise rg.DTypeError(
            f"create(genes={genes!r:.60}): it is what several networks share, neat.SharedGenes(g)."
        )
    if genes is not None and genes.graph is not graph:
        raise rg.GraphError("create(genes=...): these genes are in another graph. Name that one.")
    if inputs is None:
        return Place(graph, prefix, None, genes)
    found, keys = list(inputs), config.genome_config.input_keys
    if len(found) != len(keys):
        raise rg.ShapeError(
            f"create(inputs=...) was given {len(found)} Vars, and the genome has {len(keys)} inputs. Give "
            "one for each."
        )
    if not all(isinstance(one, rg.Var) and one.graph is graph for one in found):
        raise rg.GraphError(
            "create(inputs=...): each is a Var of the graph that the network is built in."
        )
    return Place(graph, prefix, found, genes)


def places(old: Neuron, new: Neuron) -> list[int | None]:
    """Return the former place of each gene of a neuron that has got other connections."""
    former = {source: i + 2 for i, source in enumerate(old.sources)}
    return [0, 1, *map(former.get, new.sources)]
