"""Gradients of random networks are PyTorch's; training lowers the loss and writes back, or not."""

from __future__ import annotations

import copy
import os
import random
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import Mutations, config, expressed, new_genome

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")

SETTINGS = config()
X = np.random.default_rng(3).normal(size=(6, 3))
SELU, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def clamp(z: Any, limit: float) -> Any:
    return torch.clamp(z, -limit, limit)


ACTIVATIONS = {
    "sigmoid": lambda z: torch.sigmoid(clamp(5.0 * z, 60.0)),
    "tanh": lambda z: torch.tanh(clamp(2.5 * z, 60.0)),
    "sin": lambda z: torch.sin(clamp(5.0 * z, 60.0)),
    "gauss": lambda z: torch.exp(-5.0 * clamp(z, 3.4) ** 2),
    "relu": torch.relu,
    "elu": lambda z: torch.where(z > 0.0, z, torch.exp(z.clamp(max=0.0)) - 1.0),
    "lelu": lambda z: torch.where(z > 0.0, z, 0.005 * z),
    "selu": lambda z: torch.where(z > 0, SELU * z, SELU * ALPHA * (torch.exp(z.clamp(max=0)) - 1)),
    "softplus": lambda z: 0.2 * torch.log(1.0 + torch.exp(clamp(5.0 * z, 60.0))),
    "identity": lambda z: z,
    "clamped": lambda z: clamp(z, 1.0),
    "inv": lambda z: 1.0 / z,
    "log": lambda z: torch.log(z.clamp(min=1e-7)),
    "exp": lambda z: torch.exp(clamp(z, 60.0)),
    "abs": torch.abs,
    "hat": lambda z: (1.0 - z.abs()).clamp(min=0.0),
    "square": lambda z: z**2,
    "cube": lambda z: z**3,
}
AGGREGATIONS = {
    "sum": lambda t: reduce(torch.add, t, torch.zeros(())),
    "product": lambda t: reduce(torch.mul, t, torch.ones(())),
    "max": lambda t: torch.stack(t).amax(0) if t else torch.zeros(()),
    "min": lambda t: torch.stack(t).amin(0) if t else torch.zeros(()),
    "maxabs": lambda t: largest(torch.stack(t)) if t else torch.zeros(()),
    "median": lambda t: torch.stack(t).quantile(0.5, 0) if t else torch.zeros(()),
    "mean": lambda t: torch.stack(t).mean(0) if t else torch.zeros(()),
}


def largest(values: Any) -> Any:
    return torch.gather(values, 0, values.abs().argmax(0, keepdim=True))[0]


def by_torch(neurons: dict[int, Any], keys: list[int]) -> tuple[Any, dict[int, Any]]:
    """The outputs, and the genes of each neuron as a tensor; `keys` in an order of computing."""
    values = {-1 - i: torch.tensor(column) for i, column in enumerate(X.T)}
    genes: dict[int, Any] = {}
    for key in keys:
        activation, aggregation, bias, response, links = neurons[key]
        genes[key] = torch.tensor(
            [bias, response, *[w for _, w in links]], dtype=torch.float64, requires_grad=True
        )
        taken = [values[s] * genes[key][i + 2] for i, (s, _) in enumerate(links)]
        taken = [one.expand(len(X)) for one in taken]
        total = genes[key][0] + genes[key][1] * AGGREGATIONS[aggregation](taken)
        values[key] = ACTIVATIONS[activation](total).expand(len(X))
    return torch.stack([values[0], values[1]], 1), genes


TAME = ("sigmoid", "tanh", "sin", "gauss", "relu", "elu", "lelu", "selu", "softplus", "identity")


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.booleans())
def test_gradients_after_mutations_are_pytorchs(seed: int, all_functions: bool) -> None:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    functions = tuple(ACTIVATIONS) if all_functions else TAME
    mutations = Mutations(SETTINGS, draw, functions)
    for _ in range(8 if all_functions else 20):
        mutations.step(genome)
    net = neat.Network.create(genome, SETTINGS)
    net.activate(X)
    rg.grad(net.outputs.sum(), net.genes(0), allow_unused=True)
    for _ in range(3):
        mutations.step(genome)
    net.update(genome)
    ours = net.activate(X)
    keys = list(net.phenotype.neurons)
    outputs, genes = by_torch(expressed(genome, SETTINGS), keys)
    if not np.all(np.isfinite(ours)) or np.abs(ours).max() > 1e6:
        return  # what overflows has no gradient to compare
    np.testing.assert_allclose(ours, outputs.detach().numpy(), rtol=1e-10, atol=1e-10)
    weights = np.linspace(-1.0, 2.0, 12).reshape(6, 2)
    (outputs * torch.tensor(weights)).sum().backward()
    slopes = rg.grad((net.outputs * weights).sum(), [net.genes(k) for k in keys], allow_unused=True)
    size = max(float(one.grad.abs().max()) for one in genes.values() if one.grad is not None)
    for key, slope in zip(keys, slopes, strict=True):
        expected = genes[key].grad
        if slope is None:
            assert expected is None or not expected.any()
        else:
            np.testing.assert_allclose(slope.value, expected, rtol=1e-10, atol=1e-10 * max(1, size))


def xor() -> tuple[Any, Any, Any, Any]:
    two = config(inputs=2, outputs=1)
    genome = new_genome(two, random.Random(2))
    mutations = Mutations(two, random.Random(2))
    mutations.add_node(genome)
    mutations.add_node(genome)
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return genome, two, x, np.array([0.0, 1.0, 1.0, 0.0])


def numbers(genome: Any) -> Any:
    nodes = [(key, one.bias, one.response) for key, one in genome.nodes.items()]
    return nodes, [(key, one.weight, one.enabled) for key, one in genome.connections.items()]


def test_lamarck_writes_back_and_baldwin_does_not() -> None:
    genome, two, x, y = xor()
    before, twin = numbers(genome), copy.deepcopy(genome)
    baldwin = neat.fit(genome, x, y, two, steps=60, learning_rate=0.05, write_back=False)
    assert numbers(genome) == before
    assert len(baldwin.losses) == 61
    assert baldwin.losses[-1] < baldwin.losses[0]
    lamarck = neat.fit(twin, x, y, two, steps=60, learning_rate=0.05)
    assert lamarck.losses == baldwin.losses
    fresh = neat.Network.create(twin, two)
    np.testing.assert_array_equal(fresh.activate(x), baldwin.network.activate(x))
    assert fresh.phenotype == lamarck.network.phenotype
    lamarck.network.update(twin)
    lamarck.network.activate(x)
    assert lamarck.network.ran == ()


def test_other_losses_and_what_does_not_fit() -> None:
    genome, two, x, y = xor()

    def cross_entropy(p: Any, y: Any) -> Any:
        return -rg.mean(y * rg.log(p + 1e-9) + (1.0 - y) * rg.log(1.0 - p + 1e-9))

    losses, _ = neat.fit(genome, x, y, two, steps=20, loss=cross_entropy)
    assert losses[-1] < losses[0]
    with pytest.raises(rg.ShapeError, match=r"y of shape \(4, 3\)"):
        neat.fit(genome, x, np.zeros((4, 3)), two)
    with pytest.raises(rg.ShapeError, match="4 samples and 3 rows"):
        neat.fit(genome, x, y[:3], two)
    with pytest.raises(rg.DTypeError, match="loss='mae'"):
        neat.fit(genome, x, y, two, loss="mae")


STEPS = int(os.environ.get("REACTGRAD_MUTATIONS", "400"))  # the whole: 10_000, some minutes


@pytest.mark.slow
def test_after_each_mutation_of_a_long_sequence_gradients_are_pytorchs() -> None:
    draw = random.Random(11)
    genome = new_genome(SETTINGS, draw)
    # No kinks, and slopes that are bounded: what rounds differently does not grow.
    mutations = Mutations(SETTINGS, draw, ("sigmoid", "tanh", "elu", "softplus", "identity"))
    net = neat.Network.create(genome, SETTINGS)
    weights = np.linspace(-1.0, 2.0, 12).reshape(6, 2)
    total = (rg.broadcast_to(net.outputs, weights.shape) * weights).sum()
    net.activate(X)
    compared = 0
    for _ in range(STEPS):
        mutations.step(genome)
        net.update(genome)
        net.activate(X)
        keys = list(net.phenotype.neurons)
        outputs, genes = by_torch(expressed(genome, SETTINGS), keys)
        (outputs * torch.tensor(weights)).sum().backward()
        slopes = rg.grad(total, [net.genes(k) for k in keys], allow_unused=True)
        size = max(float(one.grad.abs().max()) for one in genes.values() if one.grad is not None)
        if size > 1e6:
            continue  # products that overflow
        for key, slope in zip(keys, slopes, strict=True):
            expected = genes[key].grad
            if slope is None:
                assert expected is None or not expected.any()
            else:
                slack = 1e-10 * max(1.0, size)
                np.testing.assert_allclose(slope.value, expected, rtol=1e-10, atol=slack)
        compared += 1
    assert compared > STEPS / 2
    net.graph.check_invariants()
