"""Gradient steps on the weights, biases and responses of genomes, of one or of a population."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from typing import Any, Final, NamedTuple

import numpy as np

import reactgrad as rg
from reactgrad.neat._lesson import Array, Lesson, Loss
from reactgrad.neat._network import Network
from reactgrad.neat._phenotype import Phenotype, check_config
from reactgrad.neat._program import FEED_FORWARD, FLAT, RECURRENT, read
from reactgrad.neat._recurrent import RecurrentNetwork
from reactgrad.neat._slopes import check_slopes, genes_of, is_fast, phenotype_with, tape_of

# Numbers to compute from which threads pay.
_SHARED: Final = 200_000


class Fit(NamedTuple):
    """The result of training.

    Attributes
    ----------
    losses : list of float
        Before each step, and at the end.
    network : Network or RecurrentNetwork
        With the trained genes.
    """

    losses: list[float]
    network: Any


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
    recurrent: bool | None = None,
    window: int | None = None,
) -> Any:
    """Train the genes that genomes express by gradient, with the steps of Adam (Kingma and Ba, 2015).

    A whole population is trained in one call, without any graph: each genome has moments of its own, and
    a loss of your own is built once for all.

    Parameters
    ----------
    genome : neat.DefaultGenome, or several of them
        A dict or a list, also of pairs of an id and a genome.
    X : array_like of shape (samples, inputs)
        With memory of shape (steps, inputs) or (steps, samples, inputs): sequences.
    y : array_like of shape (samples, outputs)
        Or (samples,) for one output. With memory, what is wanted at each step.
    config : neat.Config
    steps : int
        Of the training.
    learning_rate : float
        About the distance by which a step moves each number.
    loss : "mse" or callable
        ``loss(outputs, y)`` builds a scalar from the Var of all outputs and the array.
    write_back : bool
        True if the genome gets the trained numbers, to pass them on to its children (Lamarck); if not, only
        its fitness profits (Baldwin). They may leave the range that the config gives to mutations.
    recurrent : bool, optional
        True for networks with memory; by default if the config has ``feed_forward = False``.
    window : int, optional
        Truncated back-propagation through time: sequences are cut into windows of so many steps. State
        passes from one to the next, and gradients do not. By default they pass the whole sequence.

    Returns
    -------
    Fit, or a list of Fit for several genomes
        Where the loss or a slope is not finite, training ends, with finite genes: those that led there.

    Raises
    ------
    GenomeError
        If a genome is no network.
    ShapeError
        If `X` or `y` do not fit it.
    DTypeError
        If these or the other arguments are no finite numbers; the genomes are as they were.
    GradientError
        If a neuron has an activation or aggregation function of your own, whose slope is not known.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config()
    >>> population = neat_python.Population(config, seed=1).population
    >>> X, y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 1.0]
    >>> losses, net = neat.fit(population[2], X, y, config, steps=300, learning_rate=0.05)
    >>> losses[-1] < losses[0] / 10, net.activate([0.0, 1.0])[0] > 0.9
    (True, True)
    >>> population[2].nodes[0].bias == net.genes(0).value[0]
    np.True_
    >>> all_ = neat.fit(population, X, y, config, steps=20)
    >>> len(all_), all(one.losses[-1] < one.losses[0] for one in all_)
    (150, True)
    """
    genomes, is_one = _listed(genome)
    if recurrent is None:
        settings = getattr(config, "genome_config", None)
        recurrent = not getattr(settings, "feed_forward", True)
    kind = RECURRENT if recurrent else FEED_FORWARD
    programs = [read(kind, one, config) for one in genomes]
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise rg.ParameterError(f"fit(steps={steps!r:.60}): it is a number of steps, 0 or more.")
    if not isinstance(learning_rate, Real) or not 0.0 < learning_rate < np.inf:
        raise rg.ParameterError(
            f"fit(learning_rate={learning_rate!r:.60}): it is a finite number above 0, such as 0.01."
        )
    if window is not None and (type(window) is not int or window < 1 or not recurrent):
        raise rg.ParameterError(
            f"fit(window={window!r:.60}): it is a number of steps in time, 1 or more, for networks with memory: "
            "fit(..., recurrent=True, window=10)."
        )
    check_config(config)
    pins = config.genome_config
    counts = len(pins.input_keys), len(pins.output_keys)
    lesson = Lesson(X, y, counts, loss, recurrent, window)
    for one in programs:
        if one.owns:
            check_slopes(one)
    trained = _train(programs, lesson, int(steps), float(learning_rate))
    found: list[Fit] = []
    for one, program, (losses, genes) in zip(genomes, programs, trained, strict=True):
        phenotype = phenotype_with(program, genes)
        if recurrent:
            network: Any = RecurrentNetwork.of(phenotype)
        else:
            network = Network(phenotype, config)
        if write_back:
            write(phenotype, one)
        found.append(Fit(losses, network))
    return found[0] if is_one else found


def _listed(genome: Any) -> tuple[list[Any], bool]:
    """Return the genomes that were given, and whether it is a single one."""
    if isinstance(genome, Mapping):
        return list(genome.values()), False
    is_one = hasattr(genome, "nodes") or isinstance(genome, tuple)
    if is_one or not isinstance(genome, Iterable):
        return [genome], True
    return [one[1] if type(one) is tuple else one for one in genome], False


def _train(
    programs: list[Any], lesson: Lesson, steps: int, rate: float
) -> list[tuple[list[float], Array]]:
    """Return the losses and the genes of each program."""
    if lesson.loss is None and is_fast(programs):
        return _train_fast(tuple(programs), lesson, steps, rate)
    return [_train_one(one, lesson, steps, rate) for one in programs]


def _train_fast(
    programs: tuple[Any, ...], lesson: Lesson, steps: int, rate: float
) -> list[tuple[list[float], Array]]:
    """Train by one compiled loop, in threads where that pays."""
    x, y = lesson.x, lesson.y
    sizes = [len(genes_of(one)) for one in programs]
    work = sum(sizes) * x.shape[0] * x.shape[2] * (steps + 1)
    threads = min(rg.get_num_threads() if work >= _SHARED else 1, max(len(programs), 1))
    ends = [i * len(programs) // threads for i in range(threads + 1)]
    bounds = np.cumsum([0, *sizes])
    genes = np.empty(bounds[-1])
    losses = np.empty((len(programs), steps + 1))
    counts = np.empty(len(programs), np.int64)
    numbers = x.shape[0], x.shape[2], lesson.window, steps

    def part(i: int) -> None:
        first, last = ends[i], ends[i + 1]
        own = genes[bounds[first] : bounds[last]]
        FLAT.train(
            programs[first:last], x, y, own, losses[first:last], counts[first:last], numbers, rate
        )

    if threads == 1:
        part(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, range(threads)))
    return [
        (losses[i, : counts[i]].tolist(), genes[bounds[i] : bounds[i + 1]])
        for i in range(len(programs))
    ]


def _train_one(program: Any, lesson: Lesson, steps: int, rate: float) -> tuple[list[float], Array]:
    """Train one program with a loss of the user's own, or where no loops are compiled."""
    tape, genes = tape_of(program), genes_of(program)
    first, second = np.zeros_like(genes), np.zeros_like(genes)
    losses: list[float] = []
    for step in range(1, steps + 1):
        number, seed = lesson.judge(tape.forward(genes, lesson.x))
        losses.append(number)
        slope = tape.backward(seed, lesson.window)
        with np.errstate(all="ignore"):
            first += 0.1 * (slope - first)
            second += 0.001 * (np.square(slope) - second)
            corrected = first / (1.0 - 0.9**step), second / (1.0 - 0.999**step)
            moved = genes - rate * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        if not (np.isfinite(number) and np.isfinite(moved).all()):
            break
        genes = moved
    else:
        losses.append(lesson.judge(tape.forward(genes, lesson.x))[0])
    return losses, genes


def write(phenotype: Phenotype, genome: Any) -> None:
    """Write the numbers of a network into its genome."""
    nodes, connections = genome.nodes, genome.connections
    for key, neuron in phenotype.neurons.items():
        bias, response, *weights = neuron.genes
        nodes[key].bias, nodes[key].response = bias, response
        for source, weight in zip(neuron.sources, weights, strict=True):
            connections[source, key].weight = weight
