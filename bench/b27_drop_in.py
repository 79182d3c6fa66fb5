"""B27: neat-python's programs with one import changed: networks made and activated one sample at a
time, as fitness functions do, beside neat-python itself.

``create`` and the four samples of XOR is a genome of such a function; the others are one sample, one
step of a recurrent network, a step of 200 networks that have an observation each, and a whole
generation with evaluation on 50 samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b11_network import INPUTS, USUAL, random_genome, settings
from reactgrad import neat
from reactgrad.demo import neat_config

SAMPLES = 20  # in a step, so that the call of the step is not what is measured
NETWORKS = 200


def with_loops(setting: Setting, genome: Any) -> Any:
    """Return the genome with a connection back for every tenth one."""
    pick = Random(7 if setting.permuted else 3)
    gene_type: Any = load("neat").genes.DefaultConnectionGene
    for source, target in [*genome.connections][::10]:
        if source >= 0 and (target, source) not in genome.connections:
            gene = gene_type((target, source), innovation=len(genome.connections) + 1)
            gene.weight, gene.enabled = pick.gauss(0.0, 0.5), True
            genome.connections[target, source] = gene
    return genome


def one_by_one(net: Any) -> Step:
    """Return a step that activates a network for each sample."""
    activate = net.activate

    def step(samples: Any) -> Any:
        return [activate(one) for one in samples]

    return step


def made_and_activated(create: Callable[..., Any], genome: Any) -> Step:
    """Return a step that makes the network first."""

    def step(samples: Any) -> Any:
        net = create(genome, settings())
        return [net.activate(one) for one in samples]

    return step


def side(name: str, build: Callable[[], Step], needs: str | None = None) -> Side:
    """Return a side that is given and gives lists."""
    return Side(name, build, take=np.ndarray.tolist, show=np.asarray, needs=needs)


def against(
    name: str,
    rows: int,
    unit: str,
    per: float,
    ours: Callable[[], Step],
    theirs: Callable[[], Step],
) -> Contest:
    """Return a contest with neat-python on some rows of inputs."""
    return Contest(
        name,
        lambda rng: rng.normal(size=(rows, INPUTS)),
        side("reactgrad", ours),
        (Peer(side("neat-python", theirs, "neat"), faster(1.0)),),
        unit=unit,
        per=per,
    )


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""

    @cache
    def genome(neurons: int) -> Any:
        return random_genome(setting, neurons, USUAL)

    @cache
    def recurrent(neurons: int) -> Any:
        return with_loops(setting, random_genome(setting, neurons, USUAL))

    def theirs(kind: str) -> Any:
        return getattr(load("neat").nn, kind)

    found: list[Case] = []
    sizes = (4, 10, 60) if setting.small else (4, 10, 60, 1000)
    for neurons in sizes:
        if neurons <= 60:  # neat-python takes 0.5 s for 1,000
            for kind, one in (("FeedForwardNetwork", genome), ("RecurrentNetwork", recurrent)):
                word = "feed-forward" if one is genome else "recurrent"

                def made(kind: str = kind, one: Any = one, neurons: int = neurons) -> Step:
                    return made_and_activated(getattr(neat, kind).create, one(neurons))

                def peer(kind: str = kind, one: Any = one, neurons: int = neurons) -> Step:
                    return made_and_activated(theirs(kind).create, one(neurons))

                name = f"{word}, {neurons} neurons, made and 4 samples"
                found.append(against(name, 4, "network", 1.0, made, peer))
        for kind, one in (("FeedForwardNetwork", genome), ("RecurrentNetwork", recurrent)):
            word = "one sample" if one is genome else "one recurrent step"

            def stepped(kind: str = kind, one: Any = one, neurons: int = neurons) -> Step:
                return one_by_one(getattr(neat, kind).create(one(neurons), settings()))

            def other(kind: str = kind, one: Any = one, neurons: int = neurons) -> Step:
                return one_by_one(theirs(kind).create(one(neurons), settings()))

            name = f"{word}, {neurons:,} neurons"
            found.append(against(name, SAMPLES, "sample", SAMPLES, stepped, other))
    for kind, one in (("FeedForwardNetwork", genome), ("RecurrentNetwork", recurrent)):
        word = "feed-forward" if one is genome else "recurrent"

        def together(one: Any = one) -> Step:
            several = [one(10)] * NETWORKS
            return neat.Networks(several, settings(), recurrent=one is recurrent).activate

        def each(kind: str = kind, one: Any = one) -> Step:
            nets = [theirs(kind).create(one(10), settings()) for _ in range(NETWORKS)]

            def step(rows: Any) -> Any:
                return [net.activate(row) for net, row in zip(nets, rows, strict=True)]

            return step

        found.append(
            Contest(
                f"{NETWORKS} {word} networks, an observation each",
                lambda rng: rng.normal(size=(NETWORKS, INPUTS)),
                Side("reactgrad", together),
                (Peer(side("neat-python", each, "neat"), faster(1.0)),),
                unit="network",
                per=NETWORKS,
            )
        )
    pop_size = setting.size(300, 20)

    def evolving() -> Step:
        config = neat_config(num_inputs=INPUTS, pop_size=pop_size, no_fitness_termination=True)
        population = neat.Population(config, seed=1)

        def step(samples: Any) -> Any:
            def fitness(genomes: Any, config: Any) -> Any:
                outputs = neat.evaluate(genomes, samples, config).outputs
                return [-np.square(one[:, 0] - 0.5).mean() for one in outputs]

            population.run(fitness, 1)

        return step

    def theirs_evolving() -> Step:
        config = neat_config(num_inputs=INPUTS, pop_size=pop_size, no_fitness_termination=True)
        population = load("neat").Population(config, seed=1)
        create = load("neat").nn.FeedForwardNetwork.create

        def step(samples: Any) -> Any:
            def fitness(genomes: Any, config: Any) -> None:
                for _, genome in genomes:
                    net = create(genome, config)
                    errors = [net.activate(one)[0] - 0.5 for one in samples]
                    genome.fitness = -sum(error * error for error in errors) / len(errors)

            population.run(fitness, 1)

        return step

    found.append(
        Contest(
            f"a generation of {pop_size} genomes, 50 samples",
            lambda rng: rng.normal(size=(50, INPUTS)),
            Side("reactgrad", evolving),
            (
                Peer(
                    Side("neat-python", theirs_evolving, take=np.ndarray.tolist, needs="neat"),
                    faster(1.0),
                ),
            ),
            unit="generation",
            alike=False,
        )
    )
    return found


WORKLOAD = Workload("B27", "NEAT drop-in", cases)


def test_b27(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
