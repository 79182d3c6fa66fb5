"""HyperNEAT: a genome paints the weights between neurons at places (Stanley, D'Ambrosio and Gauci, 2009)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._activations import ACTIVATIONS
from reactgrad.neat._evaluate import evaluate
from reactgrad.neat._network import Network
from reactgrad.neat._phenotype import Neuron, Phenotype, check_config
from reactgrad.neat._query import pairs_with

Array = np.ndarray[Any, Any]


class Substrate(OwnAttributes):
    """Neurons at places in layers, between which a genome, the CPPN, paints weights.

    The weight of a connection is what the CPPN answers for the places of its two ends. All connections of all
    genomes are asked for in one batch. A weight below the threshold in size is 0; what is above it is scaled
    up to the largest weight.

    Parameters
    ----------
    inputs, outputs : array_like of shape (neurons, coordinates)
    hidden : sequence of array_like, optional
        Layers between them, first ones first.
    activation : str
        neat-python's name of the function of all neurons.
    threshold : float
        Of the CPPN's answers.
    max_weight : float

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(num_inputs=5, pop_size=4)  # two places of two coordinates, and a bias
    >>> cppns = neat_python.Population(config, seed=1).population
    >>> line = [[-1.0, -1.0], [0.0, -1.0], [1.0, -1.0]]
    >>> substrate = neat.Substrate(line, [[0.0, 1.0]], [[[-0.5, 0.0], [0.5, 0.0]]])
    >>> substrate.evaluate(cppns, [[1.0, 0.5, 0.0], [0.0, 0.0, 1.0]], config).shape
    (4, 2, 1)
    >>> net = substrate.network(cppns[1], config)
    >>> net
    <Network: 3 inputs, 3 neurons, 1 outputs>
    """

    def __init__(
        self,
        inputs: Any,
        outputs: Any,
        hidden: Sequence[Any] = (),
        *,
        activation: str = "tanh",
        threshold: float = 0.2,
        max_weight: float = 5.0,
    ) -> None:
        self.layers = [places(one) for one in (inputs, *hidden, outputs)]
        if len({one.shape[1] for one in self.layers}) > 1:
            raise rg.ShapeError(
                "Substrate was given layers with different numbers of coordinates: "
                f"{', '.join(str(one.shape) for one in self.layers)}. Give all places the same number."
            )
        if activation not in ACTIVATIONS:
            raise rg.ParameterError(
                f"Substrate(activation={activation!r:.60}): neat-python has {', '.join(ACTIVATIONS)}."
            )
        if not 0.0 <= threshold < 1.0 or not max_weight > 0.0:
            raise rg.ParameterError(
                f"Substrate(threshold={threshold!r}, max_weight={max_weight!r}): a threshold is from 0 to below "
                "1, and the largest weight is above 0."
            )
        self.activation, self.threshold, self.max_weight = activation, threshold, max_weight

    def __repr__(self) -> str:
        return f"<Substrate: layers of {', '.join(str(len(one)) for one in self.layers)}>"

    def weights(self, genomes: Any, config: Any) -> tuple[list[Array], list[Array]]:
        """Return the weights and the biases that CPPNs paint, by one query.

        Parameters
        ----------
        genomes : a genome, or several
            CPPNs with an output for weights, and perhaps a second one for biases: that of a neuron is
            the answer for its place and the origin.
        config : neat.Config

        Returns
        -------
        list of array of shape (genomes, sources, targets)
            For each pair of layers.
        list of array of shape (genomes, targets)

        Raises
        ------
        ShapeError
            If the CPPN has not two places as its inputs.
        """
        several = _several(genomes)
        check_config(config)
        pins = config.genome_config
        has_biases = len(pins.output_keys) > 1
        asked, shapes = [], []
        for first, second in zip(self.layers, self.layers[1:], strict=False):
            asked.append(all_pairs(first, second))
            shapes.append((len(first), len(second)))
        if has_biases:
            origin = np.zeros((1, self.layers[0].shape[1]))
            asked += [all_pairs(origin, layer) for layer in self.layers[1:]]
        points = pairs_with(np.concatenate(asked), len(pins.input_keys))
        answers = np.array(evaluate(several, points, config).outputs)
        weights: list[Array] = []
        biases: list[Array] = []
        at = 0
        for count, targets in shapes:
            part = answers[:, at : at + count * targets, 0].reshape(-1, count, targets)
            weights.append(expressed(part, self.threshold, self.max_weight))
            at += count * targets
        for _, targets in shapes:
            if has_biases:
                part = answers[:, at : at + targets, 1]
                biases.append(expressed(part, self.threshold, self.max_weight))
                at += targets
            else:
                biases.append(np.zeros((len(several), targets)))
        return weights, biases

    def evaluate(self, genomes: Any, X: Any, config: Any) -> Array:
        """Return the outputs of the networks of many genomes for the same samples, layer by layer.

        Parameters
        ----------
        genomes : several genomes
        X : array_like of shape (samples, inputs)
        config : neat.Config

        Returns
        -------
        array of shape (genomes, samples, outputs)
        """
        given = np.asarray(X, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != len(self.layers[0]):
            raise rg.ShapeError(
                f"the substrate has {len(self.layers[0])} inputs and was given an array of shape {given.shape}. "
                f"Give one of shape (samples, {len(self.layers[0])})."
            )
        function: Callable[[Any], Any] = ACTIVATIONS[self.activation][0]
        values: Array = given[None]
        for weights, biases in zip(*self.weights(genomes, config), strict=True):
            values = function(values @ weights + biases[:, None])
        return values

    def network(self, genome: Any, config: Any) -> Network:
        """Return the network that a genome paints.

        It can be trained, drawn and differentiated as any other. Its inputs have the keys -1, -2, ..., its
        outputs 0, 1, ..., hidden neurons the next ones. Connections of weight 0 are left out.

        Parameters
        ----------
        genome : neat.DefaultGenome
        config : neat.Config
        """
        (weights, biases) = self.weights([genome], config)
        keys = _keys([len(one) for one in self.layers])
        neurons: dict[int, Neuron] = {}
        for layer, (own, bias) in enumerate(zip(weights, biases, strict=True), 1):
            for k, key in enumerate(keys[layer]):
                column = own[0, :, k]
                linked = np.flatnonzero(column).tolist()
                genes = (float(bias[0, k]), 1.0, *column[linked].tolist())
                sources = tuple([keys[layer - 1][i] for i in linked])
                neurons[key] = Neuron(self.activation, "sum", genes, sources)
        return Network(Phenotype(tuple(keys[0]), tuple(keys[-1]), neurons), None)


def places(values: Any) -> Array:
    """Return places as an array of shape (neurons, coordinates).

    Raises
    ------
    ShapeError, DTypeError
        If they are no such array of finite numbers.
    """
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise rg.ParameterError(f"places of neurons are arrays of numbers: {error}.") from None
    if found.ndim != 2 or not found.size:
        raise rg.ShapeError(
            f"places of neurons are an array of shape (neurons, coordinates), not {found.shape}. Write "
            "[[-1.0, 0.0], [1.0, 0.0]] for two in a plane."
        )
    if not np.isfinite(found).all():
        raise rg.ParameterError(
            "places of neurons are finite numbers, and some are NaN or infinite."
        )
    return found


def all_pairs(first: Array, second: Array) -> Array:
    """Return the coordinates of each pair of places, those of `second` changing fastest."""
    left = np.repeat(first, len(second), axis=0)
    return np.concatenate([left, np.tile(second, (len(first), 1))], axis=1)


def expressed(answers: Array, threshold: float, max_weight: float) -> Array:
    """Return weights for what a CPPN has answered: 0 below the threshold, and scaled above it."""
    size = np.abs(answers)
    scaled = np.copysign((size - threshold) / (1.0 - threshold), answers)
    return np.where(size > threshold, scaled * max_weight, 0.0)


def _several(genomes: Any) -> list[Any]:
    if isinstance(genomes, Mapping):
        return list(genomes.values())
    if hasattr(genomes, "nodes") or not isinstance(genomes, Iterable):
        return [genomes]
    return [one[1] if type(one) is tuple else one for one in genomes]


def _keys(counts: Sequence[int]) -> list[list[int]]:
    """Return the keys of the neurons of each layer."""
    inputs, *hidden, outputs = counts
    found, following = [], outputs
    for count in hidden:
        found.append(list(range(following, following + count)))
        following += count
    return [[-1 - i for i in range(inputs)], *found, list(range(outputs))]
