"""B11: a NEAT network of 1,000 neurons and 4,000 connections, beside neat-python and a PyTorch
loop.

New samples at every step, one or a batch of them. neat-python computes one sample at a time, and no
gradients. The PyTorch loop is the usual one: a neuron after the other, its sources stacked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from reactgrad import neat
from reactgrad.demo import neat_config

INPUTS, OUTPUTS = 8, 4
LINKS = 4  # connections to a neuron, on average


@cache
def settings() -> Any:
    """Return the config of all genomes."""
    return neat_config(num_inputs=INPUTS, num_outputs=OUTPUTS)


# NEAT's own activation function; and several of neat-python's.
USUAL, OTHERS = ("sigmoid",), ("tanh", "sin", "gauss", "softplus", "clamped")


def random_genome(setting: Setting, neurons: int, functions: Sequence[str]) -> Any:
    """Return a feed-forward genome of neat-python, all of whose neurons lead to an output."""
    genes: Any = load("neat").genes
    pick = Random(5 if setting.permuted else 1)
    genome = load("neat").DefaultGenome(1)
    inputs, outputs = settings().genome_config.input_keys, list(range(OUTPUTS))
    hidden = list(range(OUTPUTS, neurons))
    order = [*hidden, *outputs]
    place = {key: min(i, len(hidden)) for i, key in enumerate(order)}
    for key in order:
        gene = genome.nodes[key] = genes.DefaultNodeGene(key)
        gene.bias, gene.response = pick.gauss(0.0, 1.0), pick.uniform(0.8, 1.2)
        gene.activation, gene.aggregation = functions[key % len(functions)], "sum"

    def connect(source: int, target: int) -> None:
        number = len(genome.connections) + 1
        if (source, target) not in genome.connections:
            gene = genes.DefaultConnectionGene((source, target), innovation=number)
            gene.weight, gene.enabled = pick.gauss(0.0, 0.5), True
            genome.connections[source, target] = gene

    def earlier(key: int) -> int:
        return pick.choice([*inputs, *order[: place[key]]])

    for key in order:
        connect(earlier(key), key)
    for i, key in enumerate(hidden):
        connect(key, pick.choice(order[i + 1 :]))
    while len(genome.connections) < LINKS * neurons:
        key = pick.choice(order)
        connect(earlier(key), key)
    return genome


class Ours:
    """The genome as a network of ours."""

    def __init__(self, genome: Any, batch: int) -> None:
        self.net = neat.Network.create(genome, settings())
        self.net.activate(np.zeros((batch, INPUTS)))

    def forward(self) -> Step:
        return self.net.activate

    def gradient(self) -> Step:
        net = self.net
        total = net.outputs.sum()
        genes = [net.genes(key) for key in sorted(net.phenotype.neurons)]
        slopes = rg.grad(total, genes)
        inputs = [net[key] for key in net.phenotype.inputs]
        graph = net.graph

        def step(samples: Any) -> Any:
            graph.set(dict(zip(inputs, np.ascontiguousarray(samples.T), strict=True)))
            graph.forward(total, *slopes)
            return total.value, [slope.value for slope in slopes]

        return step


def by_neat_python(genome: Any) -> Step:
    """Return a step of neat-python's network, sample by sample."""
    net = load("neat").nn.FeedForwardNetwork.create(genome, settings())

    def step(samples: Any) -> Any:
        return [net.activate(one) for one in samples]

    return step


class Torch:
    """The network in PyTorch: a neuron after the other."""

    def __init__(self, genome: Any) -> None:
        torch = self.torch = load("torch")
        phenotype = neat.Network.create(genome, settings()).phenotype
        self.inputs, self.outputs = phenotype.inputs, phenotype.outputs
        self.functions = {
            "sigmoid": lambda z: torch.sigmoid(5.0 * z),
            "tanh": lambda z: torch.tanh(2.5 * z),
            "sin": lambda z: torch.sin(5.0 * z),
            "gauss": lambda z: torch.exp(-5.0 * z.clamp(-3.4, 3.4) ** 2),
            "softplus": lambda z: 0.2 * torch.log(1.0 + torch.exp(5.0 * z)),
            "clamped": lambda z: z.clamp(-1.0, 1.0),
        }
        self.neurons = [
            (
                key,
                self.functions[str(one.activation)],
                one.sources,
                *[self.torch.tensor(x, dtype=torch.float64) for x in one.genes[:2]],
                self.torch.tensor(one.genes[2:], dtype=torch.float64),
            )
            for key, one in phenotype.neurons.items()
        ]

    def _run(self, columns: Any) -> list[Any]:
        stack = self.torch.stack
        values: dict[int, Any] = dict(zip(self.inputs, columns, strict=True))
        for key, function, sources, bias, response, weights in self.neurons:
            taken = weights @ stack([values[source] for source in sources])
            values[key] = function(bias + response * taken)
        return [values[key] for key in self.outputs]

    def forward(self) -> Step:
        def step(columns: Any) -> Any:
            with self.torch.no_grad():
                return self.torch.stack(self._run(columns), 1)

        return step

    def gradient(self) -> Step:
        leaves = [leaf.requires_grad_() for neuron in sorted(self.neurons) for leaf in neuron[3:]]

        def step(columns: Any) -> Any:
            total = sum([one.sum() for one in self._run(columns)])
            return total, self.torch.autograd.grad(total, leaves)

        return step


def tensors(samples: Any) -> Any:
    """Return the inputs as tensors."""
    return list(load("torch").tensor(samples.T))


def read_torch(outputs: Any) -> Any:
    """Return a total and its gradients, a neuron's as one array, for comparing."""
    total, slopes = outputs
    parts = [slope.reshape(-1).numpy() for slope in slopes]
    joined = [np.concatenate(parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return total.item(), joined


def in_neat_python(genome: Callable[[], Any]) -> Side:
    """Return neat-python's side of a contest."""
    return Side(
        "neat-python",
        lambda: by_neat_python(genome()),
        take=np.ndarray.tolist,
        show=np.asarray,
        needs="neat",
    )


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    neurons = setting.size(1000, 20)

    @cache
    def genome(functions: Sequence[str] = USUAL) -> Any:
        return random_genome(setting, neurons, functions)

    found: list[Case] = []
    for batch in (1, 150, 1024):
        goal = faster(20.0 if batch == 1 else 100.0)

        def draw(rng: np.random.Generator, batch: int = batch) -> Any:
            return rng.normal(size=(batch, INPUTS))

        def ours(batch: int = batch) -> Ours:
            return Ours(genome(), batch)

        alone = in_neat_python(genome)
        found += [
            Contest(
                f"forward, batch {batch:,}",
                draw,
                Side("reactgrad", lambda ours=ours: ours().forward()),
                (
                    Peer(alone, goal),
                    Peer(
                        Side(
                            "PyTorch per node",
                            lambda: Torch(genome()).forward(),
                            take=tensors,
                            show=lambda outputs: outputs.numpy(),
                            needs="torch",
                        ),
                        goal,
                    ),
                ),
            ),
            Contest(
                f"forward + gradient of all genes, batch {batch:,}",
                draw,
                Side("reactgrad", lambda ours=ours: ours().gradient()),
                (
                    Peer(
                        Side(
                            "PyTorch per node",
                            lambda: Torch(genome()).gradient(),
                            take=tensors,
                            show=read_torch,
                            needs="torch",
                        ),
                        goal,
                    ),
                ),
                rtol=1e-8,
                atol=1e-10,
            ),
        ]

    def others() -> Any:
        return genome(OTHERS)

    found.append(
        Contest(
            "forward, batch 150, of several functions",
            lambda rng: rng.normal(size=(150, INPUTS)),
            Side("reactgrad", lambda: Ours(others(), 150).forward()),
            (Peer(in_neat_python(others)),),
        )
    )
    return found


WORKLOAD = Workload("B11", "NEAT network", cases)


def test_b11(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
