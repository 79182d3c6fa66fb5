"""``FeedForwardNetwork``: a ``Network`` with the constructor and the attributes of neat-python's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reactgrad.neat._network import Network
from reactgrad.neat._opening import NodeKeys
from reactgrad.neat._program import FEED_FORWARD, evaluations, program_of, program_of_evaluations


class FeedForwardNetwork(NodeKeys, Network):
    """neat-python's ``FeedForwardNetwork``, also by its constructor; else a ``Network``.

    Parameters
    ----------
    inputs, outputs : list of int
        Keys.
    node_evals : list of tuple
        For each neuron its key, activation, aggregation, bias, response, and pairs of a source and
        a weight; each behind its sources.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad.demo import neat_config
    >>> from reactgrad.neat import FeedForwardNetwork
    >>> config = neat_config()
    >>> genome = neat_python.Population(config, seed=1).population[1]
    >>> net = FeedForwardNetwork.create(genome, config)
    >>> theirs = neat_python.nn.FeedForwardNetwork.create(genome, config)
    >>> net.activate([1.0, 0.0]) == theirs.activate([1.0, 0.0])
    True
    """

    def __init__(self, inputs: Any, outputs: Any, node_evals: Any) -> None:
        self._program = program_of_evaluations(FEED_FORWARD, inputs, outputs, node_evals)
        self._config = None

    @property
    def node_evals(self) -> list[tuple[Any, ...]]:
        """The neurons as neat-python has them, sources first; a copy."""
        if self._program is not None:
            return evaluations(self._program)
        return evaluations(
            program_of(FEED_FORWARD, replace(self.phenotype, neurons=self._neurons()))
        )

    @property
    def values(self) -> dict[int, float]:
        """The values of inputs and neurons at the latest activation by one sample; a copy."""
        program = self._program
        if program is None or self._run is not None:
            keys = [*self.phenotype.inputs, *self.phenotype.neurons]
            nodes = {key: self[key] for key in keys}
            return {key: np.ravel(one.value)[0].item() for key, one in nodes.items()}
        keys = program.keys
        if program.given:
            return dict(zip(keys, program.bank(0), strict=True))
        return dict.fromkeys([*keys[: program.inputs], *[keys[slot] for slot in program.out]], 0.0)
