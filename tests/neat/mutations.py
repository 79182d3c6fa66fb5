"""Genomes of neat-python and random mutations of them, small steps each, as a search makes them."""

from __future__ import annotations

import math
import random
from typing import Any

import networkx as nx
import numpy as np
import pytest

from reactgrad.demo import neat_config

neat_python = pytest.importorskip(
    "neat", reason="compares with neat-python, which the extra `neat` installs"
)

ACTIVATIONS = tuple(neat_python.activations.ActivationFunctionSet().functions)
AGGREGATIONS = tuple(neat_python.aggregations.AggregationFunctionSet().functions)
# Those whose slope is bounded: what rounds differently in one neuron does not grow in the next ones.
TAME = ("sigmoid", "tanh", "relu", "elu", "lelu", "selu", "softplus", "identity", "clamped", "hat")


def config(inputs: int = 3, outputs: int = 2, **changes: Any) -> Any:
    """Settings that allow all functions."""
    options = {
        "activation_options": " ".join(ACTIVATIONS),
        "aggregation_options": " ".join(AGGREGATIONS),
    }
    return neat_config(num_inputs=inputs, num_outputs=outputs, **{**options, **changes})


def new_genome(settings: Any, draw: random.Random) -> Any:
    """A genome whose inputs are all connected to all outputs."""
    genome = neat_python.DefaultGenome(1)
    for key in settings.genome_config.output_keys:
        add_gene(genome, key, draw)
        for source in settings.genome_config.input_keys:
            connect(genome, source, key, draw.gauss(0.0, 1.0))
    return genome


def add_gene(genome: Any, key: int, draw: random.Random) -> Any:
    """A new node."""
    gene = genome.nodes[key] = neat_python.genes.DefaultNodeGene(key)
    gene.bias, gene.response = draw.gauss(0.0, 1.0), draw.gauss(1.0, 0.3)
    gene.activation, gene.aggregation = "sigmoid", "sum"
    return gene


def connect(genome: Any, source: int, target: int, weight: float, enabled: bool = True) -> None:
    """A new connection."""
    key = (source, target)
    gene = neat_python.genes.DefaultConnectionGene(key, innovation=len(genome.connections) + 1)
    gene.weight, gene.enabled = weight, enabled
    genome.connections[key] = gene


def is_reachable(genome: Any, start: int, goal: int) -> bool:
    """Whether connections lead from one node to another, enabled or not."""
    graph = nx.DiGraph(list(genome.connections))
    graph.add_nodes_from([start, goal])
    return nx.has_path(graph, start, goal)


class Mutations:
    """Changes a genome in place by one random step of a kind; says no where it cannot."""

    def __init__(
        self,
        settings: Any,
        draw: random.Random,
        activations: tuple[str, ...] = ACTIVATIONS,
        aggregations: tuple[str, ...] = AGGREGATIONS,
        cycles: bool = False,
    ) -> None:
        self.inputs = settings.genome_config.input_keys
        self.outputs = settings.genome_config.output_keys
        self.draw, self.cycles = draw, cycles
        self.activations, self.aggregations = activations, aggregations
        self.next_key = len(self.outputs)

    def step(self, genome: Any) -> str:
        """One mutation; its name."""
        while True:
            kind = self.draw.choice(KINDS)
            if getattr(self, kind)(genome):
                return kind

    def add_node(self, genome: Any) -> bool:
        enabled = [one for one in genome.connections.values() if one.enabled]
        if not enabled or len(genome.nodes) > 25:
            return False
        split = self.draw.choice(enabled)
        split.enabled = False
        key, self.next_key = self.next_key, self.next_key + 1
        add_gene(genome, key, self.draw)
        connect(genome, split.key[0], key, 1.0)
        connect(genome, key, split.key[1], split.weight)
        return True

    def add_connection(self, genome: Any) -> bool:
        source = self.draw.choice([*self.inputs, *genome.nodes])
        target = self.draw.choice(list(genome.nodes))
        if (source, target) in genome.connections:
            return False
        if not self.cycles and is_reachable(genome, target, source):
            return False
        connect(genome, source, target, self.draw.gauss(0.0, 1.0))
        return True

    def toggle(self, genome: Any) -> bool:
        if not genome.connections:
            return False
        gene = self.draw.choice(list(genome.connections.values()))
        gene.enabled = not gene.enabled
        return True

    def delete_connection(self, genome: Any) -> bool:
        if len(genome.connections) < 3:
            return False
        del genome.connections[self.draw.choice(list(genome.connections))]
        return True

    def delete_node(self, genome: Any) -> bool:
        hidden = [key for key in genome.nodes if key not in self.outputs]
        if not hidden:
            return False
        key = self.draw.choice(hidden)
        del genome.nodes[key]
        for link in [link for link in genome.connections if key in link]:
            del genome.connections[link]
        return True

    def weight(self, genome: Any) -> bool:
        if not genome.connections:
            return False
        gene = self.draw.choice(list(genome.connections.values()))
        gene.weight = min(max(gene.weight + self.draw.gauss(0.0, 0.5), -2.0), 2.0)
        return True

    def bias(self, genome: Any) -> bool:
        gene = self.draw.choice(list(genome.nodes.values()))
        gene.bias = min(max(gene.bias + self.draw.gauss(0.0, 0.5), -2.0), 2.0)
        return True

    def response(self, genome: Any) -> bool:
        gene = self.draw.choice(list(genome.nodes.values()))
        gene.response = min(max(gene.response + self.draw.gauss(0.0, 0.2), -2.0), 2.0)
        return True

    def activation(self, genome: Any) -> bool:
        gene = self.draw.choice(list(genome.nodes.values()))
        gene.activation = self.draw.choice(self.activations)
        return True

    def aggregation(self, genome: Any) -> bool:
        gene = self.draw.choice(list(genome.nodes.values()))
        gene.aggregation = self.draw.choice(self.aggregations)
        return True


KINDS = (
    "add_node",
    "add_connection",
    "toggle",
    "delete_connection",
    "delete_node",
    "weight",
    "weight",
    "bias",
    "response",
    "activation",
    "aggregation",
)


def expressed(genome: Any, settings: Any) -> dict[int, tuple[Any, ...]]:
    """What each neuron that leads to an output is computed by, by networkx."""
    pins = set(settings.genome_config.input_keys)
    graph = nx.DiGraph([k for k, one in genome.connections.items() if one.enabled])
    outputs = settings.genome_config.output_keys
    graph.add_nodes_from(outputs)
    needed = set(outputs).union(*(nx.ancestors(graph, key) for key in outputs)) - pins
    return {
        key: (
            genome.nodes[key].activation,
            genome.nodes[key].aggregation,
            genome.nodes[key].bias,
            genome.nodes[key].response,
            tuple(
                [
                    (one.key[0], one.weight)
                    for one in genome.connections.values()
                    if one.enabled and one.key[1] == key
                ]
            ),
        )
        for key in needed
    }


def affected(old: dict[int, Any], new: dict[int, Any]) -> set[int]:
    """The neurons whose value a change from `old` to `new` may move, by networkx."""
    graph = nx.DiGraph([(source, key) for key, one in new.items() for source, _ in one[-1]])
    graph.add_nodes_from(new)
    changed = {key for key, one in new.items() if old.get(key) != one}
    return changed.union(*(nx.descendants(graph, key) for key in changed))


def by_hand(genome: Any, settings: Any, net: Any, samples: int) -> None:
    """Each neuron of `net` against neat-python's functions at the values of its sources."""
    functions = settings.genome_config
    for key, (activation, aggregation, bias, response, links) in expressed(
        genome, settings
    ).items():
        act = functions.activation_defs.get(activation)
        agg = functions.aggregation_function_defs.get(aggregation)
        values = np.broadcast_to(net[key].value, (samples,))
        sources = [np.broadcast_to(net[source].value, (samples,)).tolist() for source, _ in links]
        for i in range(samples):
            taken = [sources[j][i] * weight for j, (_, weight) in enumerate(links)]
            total = bias + response * agg(taken)
            if not math.isfinite(total):
                continue  # overflow, where neat-python raises in some functions and not in others
            try:
                expected = act(total)
            except OverflowError:
                assert math.isinf(values[i])
                continue
            # The clamped functions have slopes up to 50: a last bit of the sum is not theirs.
            slack = 1e-12 * max(1.0, abs(expected)) + 100 * 2e-16 * sum(map(abs, taken))
            assert abs(values[i] - expected) <= slack, (key, activation, aggregation)
