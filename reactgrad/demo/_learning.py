"""Real data, learned by evolution alone, by gradient alone, and by both."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from reactgrad import neat
from reactgrad._errors import MissingExtraError

from ._neat_config import import_neat, neat_config
from ._report import as_table

DATA: Final = ("breast-cancer", "wine")
WAYS: Final = ("evolution", "gradient", "both")
_POPULATION: Final = 50
_GENERATIONS: Final = 20
_STEPS: Final = 200  # of gradient alone; both takes a tenth, for the best genome of each generation


@dataclass(frozen=True)
class Learned:
    """The result of one way with one seed.

    Attributes
    ----------
    way : str
        One of `WAYS`.
    seed : int
    train, test : float
        The share of samples that are classified correctly.
    hidden, connections : int
        The numbers of those that the best genome expresses.
    evaluations, steps : int
        Genomes evaluated, and gradient steps made.
    ran, neurons : int
        Neurons that were computed, and neurons that would run if each genome were computed by itself.
    seconds : float
    """

    way: str
    seed: int
    train: float
    test: float
    hidden: int
    connections: int
    evaluations: int
    steps: int
    ran: int
    neurons: int
    seconds: float


@dataclass(frozen=True)
class Learning:
    """The results of all seeds and ways.

    Attributes
    ----------
    data : str
        One of `DATA`.
    samples, features, classes : int
        Those of all data, of which a quarter is kept for the test.
    results : tuple of Learned
    """

    data: str
    samples: int
    features: int
    classes: int
    results: tuple[Learned, ...]


def learn(data: str, seeds: int, on_step: Callable[[str], None] = lambda doing: None) -> Learning:
    """Learn one of scikit-learn's data sets in three ways.

    Parameters
    ----------
    data : str
        One of `DATA`.
    seeds : int
        The number of seeds: 0, 1, 2, ...
    on_step : callable, optional
        Called ``3 * seeds`` times, with words for what begins.

    Returns
    -------
    Learning
        The same for the same arguments, except times.

    Raises
    ------
    MissingExtraError
        If neat-python or scikit-learn is not installed.
    """
    import_neat()
    x, labels = _load(data)
    wanted = np.eye(labels.max() + 1)[labels]
    results: list[Learned] = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(x))
        test, train = order[: len(x) // 4], order[len(x) // 4 :]
        # Scaled by the training data alone.
        mean, spread = x[train].mean(axis=0), x[train].std(axis=0) + 1e-12
        scaled = (x - mean) / spread / 5.0  # the activations of neat-python multiply by 5
        for way in WAYS:
            on_step(f"{data}, {way}, seed {seed}")
            results.append(_learned(way, seed, scaled, wanted, train, test))
    return Learning(data, len(x), x.shape[1], wanted.shape[1], tuple(results))


def _load(data: str) -> tuple[Any, Any]:
    """Return the samples and labels of a data set of scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingExtraError(
            'this demo needs scikit-learn, which is not installed: pip install "reactgrad[neat,data]"'
        ) from error
    load = {"breast-cancer": datasets.load_breast_cancer, "wine": datasets.load_wine}[data]
    x, wanted = load(return_X_y=True)
    return x, wanted


def _learned(way: str, seed: int, x: Any, wanted: Any, train: Any, test: Any) -> Learned:
    """Learn in one way with one seed."""
    started = time.perf_counter()
    neat_python = import_neat()
    config = neat_config(
        num_inputs=x.shape[1],
        num_outputs=wanted.shape[1],
        pop_size=_POPULATION,
        no_fitness_termination=True,
        weight_init_stdev=0.3,
    )
    population = neat_python.Population(config, seed=seed)
    evaluator = neat.Evaluator(x[train], config)
    counts = {"evaluations": 0, "steps": 0, "ran": 0, "neurons": 0}

    def trained(genome: Any, steps: int) -> None:
        neat.fit(genome, x[train], wanted[train], config, steps=steps, learning_rate=0.02)
        counts["steps"] += steps

    def fitness(genomes: list[tuple[int, Any]], config: Any) -> None:
        result = evaluator(genomes)
        for (_, genome), outputs in zip(genomes, result.outputs, strict=True):
            genome.fitness = -float(np.square(outputs - wanted[train]).mean())
        counts["evaluations"] += len(genomes)
        counts["ran"] += result.ran
        counts["neurons"] += result.neurons
        if way == "both":
            best = max((genome for _, genome in genomes), key=lambda genome: genome.fitness)
            trained(best, _STEPS // 10)
            outputs = neat.Network.create(best, config).activate(x[train])
            best.fitness = -float(np.square(outputs - wanted[train]).mean())

    if way == "gradient":
        best = next(iter(population.population.values()))
        trained(best, _STEPS)
    else:
        best = population.run(fitness, _GENERATIONS)
    net = neat.Network.create(best, config)
    right = net.activate(x).argmax(axis=1) == wanted.argmax(axis=1)
    neurons = net.phenotype.neurons
    return Learned(
        way=way,
        seed=seed,
        train=float(right[train].mean()),
        test=float(right[test].mean()),
        hidden=len(neurons) - wanted.shape[1],
        connections=sum(len(one.sources) for one in neurons.values()),
        seconds=time.perf_counter() - started,
        **counts,
    )


def learning_as_text(found: Learning) -> str:
    """Return the report, at most 100 columns wide."""
    header = (
        "way",
        "seed",
        "train",
        "test",
        "hidden",
        "links",
        "evaluations",
        "steps",
        "neurons run",
        "s",
    )
    rows = [
        (
            one.way,
            f"{one.seed}",
            f"{100 * one.train:.1f} %",
            f"{100 * one.test:.1f} %",
            f"{one.hidden}",
            f"{one.connections}",
            f"{one.evaluations:,}",
            f"{one.steps:,}",
            f"{one.ran:,} of {one.neurons:,}" if one.neurons else "-",
            f"{one.seconds:.1f}",
        )
        for one in found.results
    ]
    size = f"{found.samples} samples, {found.features} features, {found.classes} classes"
    lines = [f"{found.data}: {size}; a quarter for the test", "", *as_table(header, rows), ""]
    for way in WAYS:
        tests = [one.test for one in found.results if one.way == way]
        lines.append(f"median test, {way:<10}{100 * median(tests):.1f} %")
    settings = (
        f"population {_POPULATION}, {_GENERATIONS} generations; gradient alone {_STEPS} steps"
    )
    lines += [
        "",
        f"evolution: {settings} on one genome;",
        f"both: {_STEPS // 10} steps on the best genome of each generation, which keeps what it learned",
    ]
    return "\n".join(lines)


def learning_as_json(found: Learning) -> str:
    """Return the report as one JSON document."""
    return json.dumps(asdict(found), indent=2)
