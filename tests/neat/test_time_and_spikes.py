"""Networks of continuous time and of spikes have neat-python's values, bit for bit."""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from reactgrad.neat import _plain, _program, _spikes
from tests.neat.mutations import TAME, Mutations, config, connect, neat_python, new_genome

SETTINGS = config(feed_forward=False)
SAMPLES = np.random.default_rng(7).normal(size=(8, 3)).tolist()


@pytest.fixture(params=["compiled", "plain"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(_program, "FLAT", None)
        monkeypatch.setattr(_program, "_read", _plain.read)
        monkeypatch.setattr(_spikes, "spike", lambda *args: False)
    elif not _program.is_compiled():
        pytest.skip("there was no compiler when the package was built")


def grown(seed: int, steps: int) -> Any:
    draw = random.Random(seed)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME, cycles=True)
    for _ in range(steps):
        mutations.step(genome)
    for gene in genome.nodes.values():
        gene.time_constant = draw.uniform(0.01, 2.0)
    return genome


def is_euler() -> bool:
    return neat_python.__version__.startswith("2.0")


@pytest.mark.usefixtures("_way")
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 30))
def test_continuous_time_is_neat_pythons(seed: int, steps: int) -> None:
    genome = grown(seed, steps)
    net = neat.CTRNN.create(genome, SETTINGS)
    peer = neat_python.ctrnn.CTRNN.create(genome, SETTINGS)
    assert net.integrator == ("euler" if is_euler() else "exponential")
    for one in SAMPLES:
        assert net.advance(one, 0.1, 0.03) == peer.advance(one, 0.1, 0.03)
        assert net.time_seconds == peer.time_seconds
        assert net.active == peer.active
    assert net.values == peer.values
    net.set_node_value(0, 0.5)
    peer.set_node_value(0, 0.5)
    twin = pickle.loads(pickle.dumps(net))
    expected = peer.advance(SAMPLES[0], 0.5, 0.1)
    assert net.advance(SAMPLES[0], 0.5, 0.1) == twin.advance(SAMPLES[0], 0.5, 0.1) == expected
    net.reset()
    assert (net.time_seconds, net.active) == (0.0, 0)
    assert not any(number for bank in net.values for number in bank.values())


def by_hand(net: Any, sample: list[float], times: list[float]) -> list[list[float]]:
    """The exponential integrator, as neat-python 2.1 writes it."""
    evals, found = net.node_evals, []
    values = dict.fromkeys(net.values[0], 0.0)
    for dt in times:
        values.update(zip(net.input_nodes, sample, strict=True))
        new = {}
        for key, one in evals.items():
            total = one.aggregation([values[source] * weight for source, weight in one.links])
            z = one.activation(one.bias + one.response * total)
            decay = math.exp(-dt / one.time_constant)
            new[key] = decay * values[key] + (1.0 - decay) * z
        values |= new
        found.append([values[key] for key in net.output_nodes])
    return found


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("seed", range(5))
def test_the_exponential_integrator_is_that_of_neat_python_2_1(seed: int) -> None:
    net = neat.CTRNN.create(grown(seed, 20), SETTINGS, integrator="exponential")
    found = [net.advance(SAMPLES[0], 0.25, 0.25) for _ in range(8)]
    assert found == by_hand(net, SAMPLES[0], [0.25] * 8)


@pytest.mark.usefixtures("_way")
def test_a_network_of_two_neurons_without_inputs() -> None:
    """That of neat-python's own tests, and its numbers for the Euler integrator."""
    sigmoid = neat_python.activations.sigmoid_activation
    evals = {
        1: neat.CTRNNNodeEval(0.01, sigmoid, sum, -2.75 / 5.0, 1.0, [(1, 0.9), (2, 0.2)]),
        2: neat.CTRNNNodeEval(0.01, sigmoid, sum, -1.75 / 5.0, 1.0, [(1, -0.2), (2, 0.9)]),
    }
    net = neat.CTRNN([], [1, 2], evals, integrator="euler")
    found = [net.advance([], 0.002, 0.002) for _ in range(1250)]
    wanted = {0: (0.0, 0.0), 100: (0.3746852284, 0.8115273872), 1249: (0.7531862678, 0.3112381247)}
    for step, values in wanted.items():
        assert found[step] == pytest.approx(values, abs=1e-9)


def test_what_continuous_time_refuses() -> None:
    net = neat.CTRNN.create(grown(1, 5), SETTINGS)
    with pytest.raises(RuntimeError, match="Expected 3 inputs, got 1: .* Give a"):
        net.advance([1.0], 0.1, 0.1)
    with pytest.raises(rg.ShapeError, match="is in one state. Give one sample"):
        net.advance(np.ones((2, 3)), 0.1, 0.1)
    with pytest.raises(rg.DTypeError, match=r"time_step=0.*above 0"):
        net.advance([1.0, 2.0, 3.0], 0.1, 0)
    with pytest.raises(NotImplementedError, match="Give one: net.advance"):
        net.advance([1.0, 2.0, 3.0], 0.1)
    with pytest.raises(rg.UnknownNameError, match=r"set_node_value\(99, .*no such node"):
        net.set_node_value(99, 1.0)
    with pytest.raises(rg.DTypeError, match=r"integrator='rk4'.*'exponential'"):
        neat.CTRNN.create(grown(1, 5), SETTINGS, integrator="rk4")
    genome = grown(1, 5)
    connect(genome, 99, 0, 1.0)
    with pytest.raises(neat.GenomeError, match="begins at node 99"):
        neat.CTRNN.create(genome, SETTINGS)


def spiking(seed: int) -> Any:
    draw = random.Random(seed)
    genome = neat_python.iznn.IZGenome(1)
    for key in (0, 1, 2, 3):
        gene = genome.nodes[key] = neat_python.iznn.IZNodeGene(key)
        gene.bias, gene.a, gene.b = draw.gauss(0.0, 5.0), draw.uniform(0.01, 0.1), 0.2
        gene.c, gene.d = draw.uniform(-65.0, -50.0), draw.uniform(0.05, 8.0)
    for source in (-1, -2, -3, 0, 1, 2, 3):
        for target in (0, 1, 2):
            if draw.random() < 0.6:
                connect(genome, source, target, draw.gauss(0.0, 10.0), draw.random() < 0.9)
    return genome


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("seed", range(20))
def test_spikes_are_neat_pythons(seed: int) -> None:
    genome = spiking(seed)
    net = neat.IZNN.create(genome, SETTINGS)
    peer = neat_python.iznn.IZNN.create(genome, SETTINGS)
    assert (net.inputs, net.outputs) == (peer.inputs, peer.outputs)
    assert net.neurons.keys() == peer.neurons.keys()
    fired = 0.0
    for i, one in enumerate([*SAMPLES, *SAMPLES]):
        sample = [20.0 * number for number in one]
        net.set_inputs(sample)
        peer.set_inputs(sample)
        for _ in range(60):
            outputs = net.advance(0.25)
            assert outputs == peer.advance(0.25)
            fired += sum(outputs)
        for key, neuron in net.neurons.items():
            other = peer.neurons[key]
            assert (neuron.v, neuron.u, neuron.current) == (other.v, other.u, other.current)
        if i == 8:
            net = copy.deepcopy(net)
    assert fired > 0.0
    net.reset()
    assert all(one.v == one.c and one.fired == 0.0 for one in net.neurons.values())
    assert net.get_time_step_msec() == peer.get_time_step_msec()


@pytest.mark.usefixtures("_way")
def test_a_network_whose_neurons_are_changed_and_overflow() -> None:
    params = neat_python.iznn.REGULAR_SPIKING_PARAMS
    pairs = []
    for module in (neat, neat_python.iznn):
        neurons = {
            key: module.IZNeuron(bias=1, inputs=[(-1, 2), (1 - key, 0.5)], **params)
            for key in (0, 1)
        }
        pairs.append(module.IZNN(neurons, [-1], [0, 1]))
    for net in pairs:
        net.set_inputs([np.float64(9.0)])
        net.neurons[1].v = 1e200
        net.neurons[0].inputs.append((1, 3.0))
    for _ in range(400):
        assert pairs[0].advance(0.5) == pairs[1].advance(0.5)
        for key in (0, 1):
            one, other = (net.neurons[key] for net in pairs)
            assert (one.v, one.u, one.current) == (other.v, other.u, other.current)

    class Silent(neat.IZNeuron):
        def advance(self, dt_msec: float) -> None:
            self.fired = 0.5

    net = neat.IZNN({0: Silent(0.0, 0.02, 0.2, -65.0, 8.0, [])}, [], [0])
    assert net.advance(0.5) == [0.5]
    bare = neat.IZNN({0: neat.IZNeuron(0.0, 0.02, 0.2, -65.0, 8.0, [(-1, 1.0)])}, [-1], [0])
    with pytest.raises(KeyError):
        bare.advance(0.5)


def test_a_neuron_that_overflows_comes_to_rest() -> None:
    neuron = neat.IZNeuron(0.0, 0.02, 0.2, -65.0, 8.0, [])
    peer = neat_python.iznn.IZNeuron(0.0, 0.02, 0.2, -65.0, 8.0, [])
    for one in (neuron, peer):
        one.v = 1e200
        one.advance(1.0)
    assert (neuron.v, neuron.u, neuron.fired) == (peer.v, peer.u, peer.fired) == (-65.0, -13.0, 0.0)


def test_what_spikes_refuse() -> None:
    net = neat.IZNN.create(spiking(1), SETTINGS)
    with pytest.raises(RuntimeError, match="Number of inputs 1 does not match .*Give a list of 3"):
        net.set_inputs([1.0])
    for spoil, message in (
        (lambda one: connect(one, 99, 0, 1.0), "begins at node 99"),
        (lambda one: one.nodes.pop(0), "no gene for its output 0"),
        (lambda one: setattr(one.nodes[0], "a", math.nan), "a of node 0 is nan"),
    ):
        genome = spiking(1)
        spoil(genome)
        with pytest.raises(neat.GenomeError, match=message):
            neat.IZNN.create(genome, SETTINGS)
