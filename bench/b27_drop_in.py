"""B27: neat-python's programs with one import changed: networks made and activated one sample at a
time, as fitness functions do, beside neat-python itself.

``create`` and the four samples of XOR is a genome of such a function; the others are one sample, one
step of a recurrent network, a step of 200 networks that have an observation each, a whole
generation with evaluation on 50 samples, gradient steps on a population, and HyperNEAT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b11_network import INPUTS, OUTPUTS, USUAL, random_genome, settings
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
    few, many = setting.size(300, 20), setting.size(1000, 20)
    found += [generation(few, INPUTS, 50, 1.0), generation(many, 30, setting.size(455, 10), 60.0)]
    found += [training(setting), painting(setting)]
    return found


def generation(pop_size: int, inputs: int, samples: int, goal: float) -> Contest:
    """Return a contest of whole generations: evaluation, reproduction and species."""

    def config() -> Any:
        changes = {"conn_delete_prob": 0.1, "node_delete_prob": 0.05}  # so that genomes grow
        return neat_config(
            num_inputs=inputs, pop_size=pop_size, no_fitness_termination=True, **changes
        )

    def evolving() -> Step:
        population = neat.Population(config(), seed=1)

        def step(samples: Any) -> Any:
            def fitness(genomes: Any, config: Any) -> Any:
                outputs = np.stack(neat.evaluate(genomes, samples, config).outputs)
                return -np.square(outputs[:, :, 0] - 0.5).mean(axis=1)

            population.run(fitness, 1)

        return step

    def theirs_evolving() -> Step:
        population = load("neat").Population(config(), seed=1)
        create = load("neat").nn.FeedForwardNetwork.create

        def step(samples: Any) -> Any:
            def fitness(genomes: Any, config: Any) -> None:
                for _, genome in genomes:
                    net = create(genome, config)
                    errors = [net.activate(one)[0] - 0.5 for one in samples]
                    genome.fitness = -sum(error * error for error in errors) / len(errors)

            population.run(fitness, 1)

        return step

    return Contest(
        f"a generation of {pop_size:,} genomes, {samples} samples of {inputs} inputs",
        lambda rng: rng.normal(size=(samples, inputs)),
        Side("reactgrad", evolving),
        (
            Peer(
                Side("neat-python", theirs_evolving, take=np.ndarray.tolist, needs="neat"),
                faster(goal),
            ),
        ),
        unit="generation",
        alike=False,
    )


def training(setting: Setting) -> Contest:
    """Return a contest of gradient steps on a population: by ``fit``, and each genome in a graph of its own."""
    count, steps = setting.size(20, 2), setting.size(20, 2)

    def genomes() -> list[Any]:
        return [random_genome(setting, 20, USUAL) for _ in range(count)]

    def wanted(samples: Any) -> Any:
        return np.tanh(samples[:, :OUTPUTS])

    def together() -> Step:
        known = genomes()

        def step(samples: Any) -> Any:
            y = wanted(samples)
            return neat.fit(known, samples, y, settings(), steps=steps, write_back=False)

        return step

    def in_graphs() -> Step:
        known = genomes()

        def step(samples: Any) -> Any:
            y = wanted(samples)
            for genome in known:
                net = neat.Network.create(genome, settings())
                net.activate(samples)
                loss = rg.mean(rg.square(net.outputs - y))
                opt = rg.optim.Adam([net.genes(key) for key in net.phenotype.neurons], lr=0.01)
                for _ in range(steps):
                    opt.zero_grad()
                    loss.backward()
                    opt.step()

        return step

    return Contest(
        f"{steps} gradient steps on {count} genomes, 200 samples",
        lambda rng: rng.normal(size=(200, INPUTS)),
        Side("reactgrad", together),
        (Peer(Side("the same in graphs", in_graphs), faster(2.0)),),
        unit="genome",
        per=count,
        alike=False,
    )


def painting(setting: Setting) -> Contest:
    """Return a contest of HyperNEAT: the weights of 20 networks, by one query and connection by connection."""
    count, wide = setting.size(20, 2), setting.size(20, 3)
    lines = [[(x, y) for x in np.linspace(-1.0, 1.0, wide)] for y in (-1.0, 0.0, 1.0)]

    def cppns() -> tuple[Any, Any]:
        config = neat_config(num_inputs=5, num_hidden=4, pop_size=count)
        return config, load("neat").Population(config, seed=1).population

    def batched() -> Step:
        config, known = cppns()
        substrate = neat.Substrate(lines[0], lines[2], [lines[1]])

        def step(samples: Any) -> Any:
            return substrate.weights(known, config)

        return step

    def one_by_one_painted() -> Step:
        config, known = cppns()
        create = load("neat").nn.FeedForwardNetwork.create

        def step(samples: Any) -> Any:
            for genome in known.values():
                net = create(genome, config)
                for first, second in ((lines[0], lines[1]), (lines[1], lines[2])):
                    for source in first:
                        for target in second:
                            net.activate([*source, *target, 1.0])

        return step

    return Contest(
        f"HyperNEAT, {count} CPPNs, {2 * wide * wide:,} connections each",
        lambda rng: rng.normal(size=(1, 1)),
        Side("reactgrad", batched),
        (Peer(Side("neat-python", one_by_one_painted, needs="neat"), faster(10.0)),),
        unit="network",
        per=count,
        alike=False,
    )


WORKLOAD = Workload("B27", "NEAT drop-in", cases)


def test_b27(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
