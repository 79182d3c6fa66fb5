"""One sample is answered by a flat program, with neat-python's bits and without a graph."""

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
from reactgrad.neat import _network, _plain, _program, _recurrent
from tests.neat.mutations import (
    ACTIVATIONS,
    AGGREGATIONS,
    TAME,
    Mutations,
    config,
    connect,
    neat_python,
    new_genome,
)

FEED_FORWARD, RECURRENT = config(), config(feed_forward=False)
SAMPLES = np.random.default_rng(5).normal(size=(6, 3)).tolist()
KINDS = [(neat.FeedForwardNetwork, neat_python.nn.FeedForwardNetwork, FEED_FORWARD)]
KINDS += [(neat.RecurrentNetwork, neat_python.nn.RecurrentNetwork, RECURRENT)]


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(_program, "FLAT", None)
        monkeypatch.setattr(_program, "_read", _plain.read)
    elif not _program.is_compiled():
        pytest.skip("there was no compiler when the package was built")


@pytest.fixture(autouse=True)
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many graphs networks have made."""
    counts = [0]

    def counted() -> rg.Graph:
        counts[0] += 1
        return rg.Graph()

    monkeypatch.setattr(_network, "new_graph", counted)
    monkeypatch.setattr(_recurrent, "new_graph", counted)
    return counts


def grown(seed: int, steps: int, settings: Any, activations: Any = TAME) -> Any:
    draw = random.Random(seed)
    genome = new_genome(settings, draw)
    cycles = settings is RECURRENT
    mutations = Mutations(settings, draw, activations, cycles=cycles)
    for _ in range(steps):
        mutations.step(genome)
    return genome


def outcomes(net: Any, samples: Any = SAMPLES) -> list[Any]:
    """Results by their bits; errors of neat-python's functions as what they are."""
    found: list[Any] = []
    for one in samples:
        try:
            found.append([number.hex() for number in net.activate(one)])
        except OverflowError:
            found.append(None)
    return found


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 40))
def test_outputs_have_neat_pythons_bits(
    ours: Any, theirs: Any, settings: Any, seed: int, steps: int
) -> None:
    genome = grown(seed, steps, settings)
    net, peer = ours.create(genome, settings), theirs.create(genome, settings)
    assert outcomes(net) == outcomes(peer)
    assert sorted(key for key, *_ in net.node_evals) == sorted(key for key, *_ in peer.node_evals)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_has_neat_pythons_bits(name: str) -> None:
    function = FEED_FORWARD.genome_config.activation_defs.get(name)
    evals = [(0, function, sum, 0.0, 1.0, [(-1, 1.0)])]
    net = neat.FeedForwardNetwork([-1], [0], evals)
    edges = [0.0, -0.0, 1.0, -1.0, 3.4, -3.4, 12.0, 24.0, 1e-7, 1e-300, -800.0, math.nan]
    for z in [*edges, *np.random.default_rng(0).normal(size=500, scale=4.0).tolist()]:
        (value,) = net.activate([z])
        assert math.isnan(value) if math.isnan(function(z)) else value == function(z), z
    if name in ("square", "cube"):
        assert net.activate([1e200]) == [math.inf]


@pytest.mark.parametrize("name", AGGREGATIONS)
@given(values=st.lists(st.floats(-1e3, 1e3), max_size=9))
def test_each_aggregation_has_neat_pythons_bits(name: str, values: list[float]) -> None:
    function = FEED_FORWARD.genome_config.aggregation_function_defs.get(name)
    keys = [-1 - i for i in range(len(values))]
    evals = [(0, abs, function, 0.25, -1.5, [(key, 0.5 - key) for key in keys])]
    net = neat.FeedForwardNetwork(keys, [0], evals)
    taken = [value * (0.5 - key) for key, value in zip(keys, values, strict=True)]
    assert net.activate(values) == [abs(0.25 + -1.5 * function(taken))]


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_no_graph_is_made_for_samples_one_at_a_time(
    ours: Any, theirs: Any, settings: Any, graphs: list[int]
) -> None:
    genome = grown(3, 20, settings)
    net, peer = ours.create(genome, settings), theirs.create(genome, settings)
    for one in SAMPLES:
        expected = peer.activate(one)
        assert net.activate(one) == expected
        assert (net.input_nodes, net.output_nodes) == (peer.input_nodes, peer.output_nodes)
    assert net.phenotype.outputs == (0, 1)
    pickle.loads(pickle.dumps(net)).activate(SAMPLES[0])
    assert graphs == [0]
    assert net[0].value.tolist() == pytest.approx([expected[0]], rel=1e-12)
    assert graphs == [1]
    assert net.graph is net.graph
    assert not net[0].is_stale
    assert net.activate(SAMPLES[0]) == pytest.approx(peer.activate(SAMPLES[0]), rel=1e-12)
    assert graphs == [1]


def test_a_graph_of_many_samples_leaves_single_ones_to_the_program(graphs: list[int]) -> None:
    genome = grown(4, 20, FEED_FORWARD)
    net = neat.FeedForwardNetwork.create(genome, FEED_FORWARD)
    peer = neat_python.nn.FeedForwardNetwork.create(genome, FEED_FORWARD)
    together = net.activate(SAMPLES)
    assert net.ran == tuple(net.phenotype.neurons)
    for one, row in zip(SAMPLES, together, strict=True):
        assert net.activate(one) == peer.activate(one) == pytest.approx(row.tolist(), rel=1e-12)
    net.activate(SAMPLES[-1])
    assert net.ran == ()
    assert graphs == [1]
    net.genes(0).set(net.genes(0).value + 1.0)
    assert net.activate(SAMPLES[0]) != peer.activate(SAMPLES[0])


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_samples_of_any_form(ours: Any, theirs: Any, settings: Any) -> None:
    genome = grown(5, 20, settings)
    for form in (tuple, np.array, lambda one: [np.float64(x) for x in one]):
        net, peer = ours.create(genome, settings), theirs.create(genome, settings)
        assert [net.activate(form(one)) for one in SAMPLES] == [peer.activate(x) for x in SAMPLES]
    net, peer = ours.create(genome, settings), theirs.create(genome, settings)
    assert net.activate([1, 0, True]) == peer.activate([1.0, 0.0, 1.0])
    for one in SAMPLES:  # in single precision neat-python computes in that
        single = np.array(one, np.float32)
        assert net.activate(single) == pytest.approx(peer.activate(single), abs=1e-5)
    reversed_ = np.array(SAMPLES[0])[::-1]
    assert reversed_.strides[0] < 0
    net.reset() if settings is RECURRENT else None
    fresh = ours.create(genome, settings)
    assert net.activate(reversed_) == fresh.activate(reversed_.tolist())


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_masked_numbers_count_as_missing(ours: Any, theirs: Any, settings: Any) -> None:
    masked = np.ma.array(SAMPLES[0], mask=[False, True, False])
    missing = [SAMPLES[0][0], math.nan, SAMPLES[0][2]]
    genome = grown(5, 0, settings)
    nets = [ours.create(genome, settings) for _ in range(2)]
    for form in (masked, np.array(SAMPLES[0], np.float16), np.array([1, 2, 3], np.int8)):
        wanted = missing if form is masked else form.astype(float).tolist()
        np.testing.assert_array_equal(nets[0].activate(form), nets[1].activate(wanted))


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_errors_are_also_neat_pythons(ours: Any, theirs: Any, settings: Any) -> None:
    genome = grown(6, 5, settings)
    net = ours.create(genome, settings)
    for wrong in ([], [1.0], [1.0] * 4, np.zeros(2)):
        with pytest.raises(RuntimeError, match=f"Expected 3 inputs, got {len(wrong)}: .* Give a"):
            net.activate(wrong)
    with pytest.raises(rg.ShapeError):
        net.activate([1.0])
    for wrong in (["1", "2", "3"], [None, 1.0, 2.0], [1j, 1.0, 2.0]):
        with pytest.raises(rg.DTypeError, match="no real numbers"):
            net.activate(wrong)
    genome.nodes[0].activation = "swish"
    for kind in (TypeError, LookupError, neat.GenomeError):
        with pytest.raises(kind, match="'swish', which the config does not know"):
            ours.create(genome, settings)


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_networks_made_from_node_evals(ours: Any, theirs: Any, settings: Any) -> None:
    genome = grown(7, 25, settings)
    evals = theirs.create(genome, settings).node_evals
    keys = settings.genome_config.input_keys, settings.genome_config.output_keys
    net, peer = ours(*keys, evals), theirs(*keys, evals)
    assert outcomes(net) == outcomes(peer)
    assert net.node_evals == evals
    values = net.values
    for mine, other in zip(
        values if settings is RECURRENT else [values],
        peer.values if settings is RECURRENT else [peer.values],
        strict=True,
    ):
        assert {key: mine[key] for key in other} == other
    assert (
        net[0].value.tolist() == pytest.approx([net.values[0]], rel=1e-12)
        if (settings is FEED_FORWARD)
        else net[0].value is not None
    )


def test_node_evals_that_are_no_network() -> None:
    def same(z: float) -> float:
        return z

    late = [(0, same, sum, 0.0, 1.0, [(1, 1.0)]), (1, same, sum, 0.0, 1.0, [(-1, 1.0)])]
    with pytest.raises(neat.GenomeError, match="neuron 0 is computed from 1.*behind its sources"):
        neat.FeedForwardNetwork([-1], [0], late)
    assert neat.RecurrentNetwork([-1], [0], late).activate([2.0]) == [0.0]
    with pytest.raises(neat.GenomeError, match="0 is there twice"):
        neat.RecurrentNetwork([-1], [0], [late[0], late[0]])
    net = neat.FeedForwardNetwork([-1], [0], [late[1], late[0]])
    with pytest.raises(rg.DTypeError, match=r"no config.*create\(genome, config\)"):
        net.update(grown(1, 1, FEED_FORWARD))
    assert net.values == {-1: 0.0, 0: 0.0}


def softish(z: float) -> float:
    return z / (1.0 + abs(z))


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_functions_of_users_own(ours: Any, theirs: Any, settings: Any, graphs: list[int]) -> None:
    own = copy.deepcopy(settings)
    calls = []

    def spread(values: list[float]) -> float:
        calls.append(len(values))
        if max(values, default=0.0) > 1e6:
            raise ValueError("too much")
        return max(values) - min(values)

    own.genome_config.add_activation("softish", softish)
    own.genome_config.add_aggregation("spread", spread)
    genome = grown(8, 0, settings)
    genome.nodes[0].activation, genome.nodes[1].aggregation = "softish", "spread"
    if settings is RECURRENT:
        connect(genome, 0, 1, 0.5)
    net, peer = ours.create(genome, own), theirs.create(genome, own)
    for one in SAMPLES:
        assert net.activate(one) == peer.activate(one)
    before = net.values
    with pytest.raises(ValueError, match="too much"):
        net.activate([1e9, 1e9, -1e9])
    assert net.values == before
    assert net.activate(SAMPLES[0]) == peer.activate(SAMPLES[0])
    assert set(calls) <= {3, 4}
    assert graphs == [0]


def test_a_name_that_a_user_has_given_to_another_function() -> None:
    settings = copy.deepcopy(FEED_FORWARD)
    settings.genome_config.add_activation("tanh", neat_python.activations.sigmoid_activation)
    genome = grown(9, 0, FEED_FORWARD)
    genome.nodes[0].activation = "tanh"
    net = neat.FeedForwardNetwork.create(genome, settings)
    peer = neat_python.nn.FeedForwardNetwork.create(genome, settings)
    assert net.activate(SAMPLES[0]) == peer.activate(SAMPLES[0])
    assert net.activate(SAMPLES[:2])[0] == pytest.approx(peer.activate(SAMPLES[0]), rel=1e-12)


def test_a_recurrent_network_goes_on_as_a_copy_and_in_its_graph() -> None:
    genome = grown(10, 25, RECURRENT)
    nets = [neat.RecurrentNetwork.create(genome, RECURRENT) for _ in range(3)]
    peer = neat_python.nn.RecurrentNetwork.create(genome, RECURRENT)
    for net in (*nets, peer):
        for one in SAMPLES[:3]:
            net.activate(one)
    nets[1].graph.check_invariants()
    nets[2] = pickle.loads(pickle.dumps(nets[1]))
    twins = [*nets, copy.copy(nets[0]), pickle.loads(pickle.dumps(nets[0]))]
    for one in SAMPLES[3:]:
        expected = peer.activate(one)
        for net in twins:
            assert net.activate(one) == pytest.approx(expected, rel=1e-12, abs=1e-12)
            assert net.active == peer.active
            for mine, other in zip(net.values, peer.values, strict=True):
                assert mine == pytest.approx({key: other[key] for key in mine}, rel=1e-12)
    nets[1].reset()
    assert nets[1].active == 0
    assert not any(number for bank in nets[1].values for number in bank.values())


@pytest.mark.parametrize(("ours", "theirs", "settings"), KINDS)
def test_export(ours: Any, theirs: Any, settings: Any) -> None:
    from neat.export import exporters

    genome = grown(11, 25, settings)
    export = exporters.export_recurrent if settings is RECURRENT else exporters.export_feedforward
    found = [export(kind.create(genome, settings)) for kind in (ours, theirs)]
    for one in found:
        one["metadata"] = None
        one["nodes"].sort(key=lambda node: node["id"])
        one["connections"].sort(key=lambda link: (link["from"], link["to"]))
    assert found[0] == found[1]
