"""B12: a generation of 150 children, each some mutations away from one parent, on 1,000 fixed
samples.

Each step gets new children. Ours has evaluated the parent, and computes what is new in the
children. The peers are the same engine computing each child from scratch, and neat-python, which
takes equally long for every sample and so is timed on a tenth of them.
"""

from __future__ import annotations

import copy
from functools import cache
from random import Random
from time import process_time
from typing import Any

import numpy as np

from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b11_network import INPUTS, USUAL, random_genome, settings
from reactgrad import neat

TENTH = 10


class Children:
    """Mutations of one parent."""

    def __init__(self, setting: Setting) -> None:
        self.parent = random_genome(setting, setting.size(100, 12), USUAL)
        self.count = setting.size(150, 4)
        self.samples = np.random.default_rng(3).normal(size=(setting.size(1000, 20), INPUTS))
        self.next_key = len(self.parent.nodes)

    def draw(self, rng: np.random.Generator) -> list[Any]:
        """Draw a generation: 1 to 3 mutations a child, of all kinds that neat-python has."""
        pick = Random(int(rng.integers(2**32)))
        kinds = [self.add_node, self.add_connection, self.toggle, self.weigh, self.bias]
        children = []
        for _ in range(self.count):
            child = copy.deepcopy(self.parent)
            for _ in range(pick.randint(1, 3)):
                pick.choice(kinds)(child, pick)
            children.append(child)
        return children

    def add_node(self, child: Any, pick: Random) -> None:
        split = pick.choice([one for one in child.connections.values() if one.enabled])
        key, self.next_key = self.next_key, self.next_key + 1
        split.enabled = False
        gene = child.nodes[key] = load("neat").genes.DefaultNodeGene(key)
        gene.bias, gene.response = 0.0, 1.0
        gene.activation, gene.aggregation = "sigmoid", "sum"
        self._connect(child, split.key[0], key, 1.0)
        self._connect(child, key, split.key[1], split.weight)

    def add_connection(self, child: Any, pick: Random) -> None:
        closes_cycle = load("neat").graphs.creates_cycle
        links = list(child.connections)
        while True:
            link = pick.choice([*range(-INPUTS, 0), *child.nodes]), pick.choice([*child.nodes])
            if link not in child.connections and not closes_cycle(links, link):
                self._connect(child, *link, pick.gauss(0.0, 0.5))
                return

    def _connect(self, child: Any, source: int, target: int, weight: float) -> None:
        number = len(child.connections) + 1
        gene = load("neat").genes.DefaultConnectionGene((source, target), innovation=number)
        gene.weight, gene.enabled = weight, True
        child.connections[source, target] = gene

    def toggle(self, child: Any, pick: Random) -> None:
        pick.choice([*child.connections.values()]).enabled ^= True

    def weigh(self, child: Any, pick: Random) -> None:
        pick.choice([*child.connections.values()]).weight += pick.gauss(0.0, 0.5)

    def bias(self, child: Any, pick: Random) -> None:
        pick.choice([*child.nodes.values()]).bias += pick.gauss(0.0, 0.5)


def together(made: Children) -> Step:
    """Return our step: what children compute alike, or as their parent does, is not computed again."""
    evaluator = neat.Evaluator(made.samples, settings())
    evaluator([made.parent])

    def step(children: list[Any]) -> Any:
        return evaluator([made.parent, *children]).outputs[1:]

    return step


def anew(made: Children) -> Step:
    """Return a step that computes each child as a network of its own."""

    def step(children: list[Any]) -> Any:
        return [neat.Network.create(one, settings()).activate(made.samples) for one in children]

    return step


class ByNeatPython:
    """Each child by neat-python, on a tenth of the samples."""

    def __init__(self, made: Children) -> None:
        self.create = load("neat").nn.FeedForwardNetwork.create
        self.samples = made.samples[: len(made.samples) // TENTH].tolist()
        self.outputs: list[Any] = []

    def step(self, children: list[Any]) -> float:
        began = process_time()
        nets = [self.create(one, settings()) for one in children]
        created = process_time()
        found = [[net.activate(one) for one in self.samples] for net in nets]
        ended = process_time()
        self.outputs = [np.array(one) for one in found]
        return created - began + TENTH * (ended - created)


def first_samples(outputs: Any) -> Any:
    """Return the outputs for the samples that neat-python computes."""
    return [one[: len(one) // TENTH] for one in outputs]


def counted(made: Children) -> tuple[float, float]:
    """Return the number of neurons that run in a generation, and the number of neurons in all."""
    evaluator = neat.Evaluator(made.samples, settings())
    evaluator([made.parent])
    found = evaluator(made.draw(np.random.default_rng(1)))
    return found.ran, found.neurons


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""

    @cache
    def made() -> Children:
        return Children(setting)

    theirs: list[ByNeatPython] = []

    def by_neat_python() -> Step:
        theirs.append(ByNeatPython(made()))
        return theirs[-1].step

    return [
        Count("neurons", "neurons", lambda: counted(made()), "every child anew"),
        Contest(
            "generation",
            lambda rng: made().draw(rng),
            Side("reactgrad", lambda: together(made()), show=first_samples),
            (
                Peer(
                    Side("every child anew", lambda: anew(made()), show=first_samples), faster(5.0)
                ),
                Peer(
                    Side(
                        "neat-python",
                        by_neat_python,
                        show=lambda seconds: theirs[-1].outputs,
                        needs="neat",
                        reports=True,
                    ),
                    faster(500.0),
                ),
            ),
            unit="generation",
        ),
    ]


WORKLOAD = Workload("B12", "NEAT generation", cases)


def test_b12(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
