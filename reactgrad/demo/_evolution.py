"""XOR evolved with neat-python, every network evaluated by reactgrad; compared with Stanley and
Miikkulainen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import mean, median
from typing import Any, Final

import numpy as np

from reactgrad import neat

from ._history import History, history_as_text
from ._neat_config import import_neat, neat_config
from ._report import as_table

INPUTS: Final = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
WANTED: Final = np.array([0.0, 1.0, 1.0, 0.0])
# Stanley and Miikkulainen (2002), Evolving Neural Networks through Augmenting Topologies, section 4.2:
# means over 100 runs, with settings of their own.
PAPER_EVALUATIONS: Final = 4755
PAPER_HIDDEN: Final = 2.35
GENERATIONS: Final = 300  # a seed that takes longer counts as failed


@dataclass(frozen=True)
class Winner:
    """The result of one seed.

    Attributes
    ----------
    seed : int
    solved : bool
        True if the fitness reached the config's threshold within `GENERATIONS`.
    fitness : float
        Of the best genome: 4 less the sum of the squared errors.
    evaluations, generations : int
        Genomes that were evaluated, in how many generations.
    hidden : int
        Hidden neurons that the best genome expresses.
    ran, neurons : int
        Neurons that were computed, and neurons that would run if each genome were computed by itself.
    """

    seed: int
    solved: bool
    fitness: float
    evaluations: int
    generations: int
    hidden: int
    ran: int
    neurons: int


@dataclass(frozen=True)
class Evolution:
    """The results of several seeds.

    Attributes
    ----------
    winners : tuple of Winner
    difference : float
        The largest, over all winners, between our outputs and neat-python's.
    seconds : float
    history : History
        The generations of the first seed.
    """

    winners: tuple[Winner, ...]
    difference: float
    seconds: float
    history: History

    @property
    def holds(self) -> bool:
        """True if the outputs are neat-python's."""
        return self.difference <= 1e-12


def evolve(
    seeds: int,
    on_step: Callable[[str], None] = lambda doing: None,
    on_generation: Callable[[str], None] = lambda told: None,
) -> Evolution:
    """Evolve XOR once for each seed, with the settings of neat-python's example.

    Parameters
    ----------
    seeds : int
        The number of seeds: 0, 1, 2, ...
    on_step : callable, optional
        Called once for each seed, with words for what begins.
    on_generation : callable, optional
        Called after each generation, with words for what it was like.

    Returns
    -------
    Evolution
        The same for the same number of seeds, except times.

    Raises
    ------
    MissingExtraError
        If neat-python is not installed.
    """
    neat_python = import_neat()
    started = time.perf_counter()
    winners: list[Winner] = []
    histories: list[History] = []
    difference = 0.0
    for seed in range(seeds):
        on_step(f"evolving XOR, seed {seed}")
        config = neat_config()
        histories.append(History(seed))
        winner, genome = _winner(neat_python, config, histories[-1], on_generation)
        theirs = neat_python.nn.FeedForwardNetwork.create(genome, config)
        ours = neat.FeedForwardNetwork.create(genome, config).activate(INPUTS)
        errors = [
            abs(a - b) for x, one in zip(INPUTS, ours) for a, b in zip(one, theirs.activate(x))
        ]
        difference = max(difference, *errors)
        winners.append(winner)
    seconds = time.perf_counter() - started
    return Evolution(tuple(winners), float(difference), seconds, histories[0])


def _winner(
    neat_python: Any, config: Any, history: History, on_generation: Callable[[str], None]
) -> tuple[Winner, Any]:
    """Evolve XOR with one seed. Return the result, and the best genome."""
    seed = history.seed
    population = neat_python.Population(config, seed=seed)
    evaluator = neat.Evaluator(INPUTS, config)
    counts = {"evaluations": 0, "generations": 0, "ran": 0, "neurons": 0}

    def fitness(genomes: list[tuple[int, Any]], config: Any) -> None:
        result = evaluator(genomes)
        for (_, genome), outputs in zip(genomes, result.outputs, strict=True):
            genome.fitness = 4.0 - float(np.square(outputs[:, 0] - WANTED).sum())
        counts["evaluations"] += len(genomes)
        counts["generations"] += 1
        counts["ran"] += result.ran
        counts["neurons"] += result.neurons
        found = [genome.fitness for _, genome in genomes]
        history.best.append(max(found))
        history.mean.append(mean(found))
        history.species.append(
            {key: len(one.members) for key, one in population.species.species.items()}
        )
        history.ran.append(result.ran)
        history.neurons.append(result.neurons)
        on_generation(history.sentence())

    best = population.run(fitness, GENERATIONS)
    history.network = neat.Network.create(best, config)
    expressed = history.network.phenotype.neurons
    return (
        Winner(
            seed=seed,
            solved=best.fitness >= config.fitness_threshold,
            fitness=best.fitness,
            hidden=len(expressed) - 1,
            **counts,
        ),
        best,
    )


def evolution_as_text(found: Evolution) -> str:
    """Return the report, at most 100 columns wide."""
    winners = found.winners
    solved = [one for one in winners if one.solved]
    header = (
        "seed",
        "evaluations",
        "generations",
        "hidden",
        "fitness",
        "neurons run",
        "of",
        "share",
    )
    rows = [
        (
            f"{one.seed}" if one.solved else f"{one.seed} (not solved)",
            f"{one.evaluations:,}",
            f"{one.generations}",
            f"{one.hidden}",
            f"{one.fitness:.4f}",
            f"{one.ran:,}",
            f"{one.neurons:,}",
            f"{100 * one.ran / one.neurons:.0f} %",
        )
        for one in winners
    ]
    lines = [
        "XOR, population 150, the settings of neat-python's example",
        "",
        *as_table(header, rows),
    ]
    lines += ["", f"solved: {len(solved)} of {len(winners)} seeds within {GENERATIONS} generations"]
    if solved:
        evaluations = [one.evaluations for one in solved]
        hidden = [one.hidden for one in solved]
        lines += [
            "",
            *as_table(
                ("where solved", "median", "mean", "paper (mean)"),
                [
                    (
                        "evaluations",
                        f"{median(evaluations):,.0f}",
                        f"{mean(evaluations):,.0f}",
                        f"{PAPER_EVALUATIONS:,}",
                    ),
                    (
                        "hidden neurons",
                        f"{median(hidden):g}",
                        f"{mean(hidden):.2f}",
                        f"{PAPER_HIDDEN}",
                    ),
                ],
            ),
            "paper: Stanley and Miikkulainen (2002), 100 runs, with settings of their own",
        ]
    ran, neurons = sum(one.ran for one in winners), sum(one.neurons for one in winners)
    verdict = "ok    " if found.holds else "FAILED"
    computed = f"neurons computed: {ran:,} of {neurons:,}, {100 * ran / neurons:.0f} %"
    checked = f"largest difference of a winner from neat-python: {found.difference:.1e}"
    lines += ["", *history_as_text(found.history)]
    lines += [
        "",
        f"{computed}; what relatives compute alike runs once",
        f"{verdict}  {checked} (limit 1e-12)",
        f"all of this took {found.seconds:.1f} s",
    ]
    return "\n".join(lines)


def evolution_as_json(found: Evolution) -> str:
    """Return the report as one JSON document."""
    solved = [one for one in found.winners if one.solved]
    return json.dumps(
        {
            "winners": [asdict(one) for one in found.winners],
            "solved": len(solved),
            "median_evaluations": median(one.evaluations for one in solved) if solved else None,
            "median_hidden": median(one.hidden for one in solved) if solved else None,
            "paper": {"evaluations": PAPER_EVALUATIONS, "hidden": PAPER_HIDDEN},
            "history": {
                "seed": found.history.seed,
                "best": found.history.best,
                "mean": found.history.mean,
                "species": [list(one.values()) for one in found.history.species],
                "ran": found.history.ran,
                "neurons": found.history.neurons,
                "network": found.history.network.formula(),
            },
            "ran": sum(one.ran for one in found.winners),
            "neurons": sum(one.neurons for one in found.winners),
            "checks": {"largest_difference": found.difference, "holds": found.holds},
            "seconds": found.seconds,
        },
        indent=2,
    )
