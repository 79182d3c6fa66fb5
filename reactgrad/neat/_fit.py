"""Gradient steps on the weights, biases and responses of a genome."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad.neat._network import Network
from reactgrad.neat._samples import columns

Loss = Callable[[rg.Var, Any], rg.Var]


class Fit(NamedTuple):
    """The result of training.

    Attributes
    ----------
    losses : list of float
        Before each step, and at the end.
    network : Network
        With the trained genes.
    """

    losses: list[float]
    network: Network


def mse(outputs: rg.Var, y: Any) -> rg.Var:
    """Return the mean of the squared differences."""
    return rg.mean(rg.square(outputs - y))


def fit(
    genome: Any,
    X: Any,
    y: Any,
    config: Any,
    *,
    steps: int = 100,
    learning_rate: float = 0.01,
    loss: str | Loss = "mse",
    write_back: bool = True,
) -> Fit:
    """Train the genes that a genome expresses by gradient, with the steps of Adam (Kingma and Ba,
    2015).

    Parameters
    ----------
    genome : neat.DefaultGenome
    X : array_like of shape (samples, inputs)
    y : array_like of shape (samples, outputs)
        Or (samples,) for one output.
    config : neat.Config
    steps : int
    learning_rate : float
        About the distance by which a step moves each number.
    loss : "mse" or callable
        ``loss(outputs, y)`` builds a scalar from the Var of all outputs and the array.
    write_back : bool
        True if the genome gets the trained numbers, to pass them on to its children (Lamarck); if not, only
        its fitness profits (Baldwin). They may leave the range that the config gives to mutations.

    Returns
    -------
    Fit
        Where the loss or a slope is not finite, training ends, with finite genes: those that led there.

    Raises
    ------
    GenomeError
        If the genome is no feed-forward network.
    ShapeError
        If `X` or `y` do not fit it.
    DTypeError
        If these or the other arguments are no finite numbers; the genome is as it was.
    GradientError
        If a neuron has an activation or aggregation function of your own, whose slope is not known.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config()
    >>> genome = neat_python.Population(config, seed=1).population[2]
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 1.0]
    >>> losses, net = neat.fit(genome, X, y, config, steps=300, learning_rate=0.05)
    >>> losses[-1] < losses[0] / 10, net.activate([0.0, 1.0])[0] > 0.9
    (True, True)
    >>> genome.nodes[0].bias == net.genes(0).value[0]
    np.True_
    """
    net = Network.create(genome, config)
    graph = net.graph
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise rg.DTypeError(f"fit(steps={steps!r:.60}): it is a number of steps, 0 or more.")
    if not isinstance(learning_rate, Real) or not 0.0 < learning_rate < np.inf:
        raise rg.DTypeError(
            f"fit(learning_rate={learning_rate!r:.60}): it is a finite number above 0, such as 0.01."
        )
    wanted = _wanted(y, len(net.phenotype.outputs))
    given, alone = columns(X, net.phenotype.inputs)
    samples = given.T
    if alone and len(wanted) != 1:
        raise rg.ShapeError(
            f"fit was given X of shape {np.shape(X)}, which is one sample, and {len(wanted)} rows of y. "
            f"Give X of shape (samples, {len(net.phenotype.inputs)})."
        )
    if not samples.size or not (np.isfinite(samples).all() and np.isfinite(wanted).all()):
        raise rg.DTypeError(
            "fit learns from finite numbers, of one sample at least, and X or y holds NaN, an infinity, or "
            "nothing. Leave such samples out: keep = np.isfinite(y)."
        )
    if len(samples) != len(wanted):
        raise rg.ShapeError(
            f"fit was given {len(samples)} samples and {len(wanted)} rows of y. Give one for each sample."
        )
    net.activate(samples)
    # Where no input leads to any output, outputs are the same in all samples.
    outputs = rg.broadcast_to(net.outputs, wanted.shape)
    build = mse if loss == "mse" else loss
    if not callable(build):
        raise rg.DTypeError(f"fit(loss={loss!r}): it is 'mse' or a function of outputs and y.")
    total = build(outputs, wanted)
    genes = [net.genes(key) for key in net.phenotype.neurons]
    gradients = rg.grad(total, genes, allow_unused=True)
    moving = [(one, slope) for one, slope in zip(genes, gradients) if slope is not None]
    first = [np.zeros(one.shape) for one, _ in moving]
    second = [np.zeros(one.shape) for one, _ in moving]
    losses: list[float] = []
    for step in range(1, steps + 1):
        graph.forward(total, *[slope for _, slope in moving])
        losses.append(total.item())
        for i, (_, slope) in enumerate(moving):
            first[i] += 0.1 * (slope.value - first[i])
            second[i] += 0.001 * (np.square(slope.value) - second[i])
        moved = {
            one: one.value
            - learning_rate
            * (first[i] / (1.0 - 0.9**step))
            / (np.sqrt(second[i] / (1.0 - 0.999**step)) + 1e-8)
            for i, (one, _) in enumerate(moving)
        }
        if not np.isfinite([losses[-1], *map(np.sum, moved.values())]).all():
            break
        graph.set(moved)
    else:
        losses.append(total.item())
    net.adopt()
    if write_back:
        _write(net, genome)
    return Fit(losses, net)


def _wanted(y: Any, outputs: int) -> np.ndarray[Any, Any]:
    """Return `y` as an array of shape (samples, outputs)."""
    try:
        array = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise rg.DTypeError(f"fit was given y that is no array of real numbers: {error}.") from None
    if array.ndim == 1 and outputs == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != outputs:
        raise rg.ShapeError(
            f"fit was given y of shape {array.shape}, and the genome has {outputs} outputs. Give an array "
            f"of shape (samples, {outputs})."
        )
    return array


def _write(net: Network, genome: Any) -> None:
    """Write the numbers of its network into the genome."""
    for key, neuron in net.phenotype.neurons.items():
        bias, response, *weights = neuron.genes
        genome.nodes[key].bias, genome.nodes[key].response = bias, response
        for source, weight in zip(neuron.sources, weights, strict=True):
            genome.connections[source, key].weight = weight
