"""Populations: each genome's outputs are those of its own network; what is alike runs once."""

from __future__ import annotations

import copy
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from reactgrad.neat import _compiled
from tests.interrupts import interrupted
from tests.neat.mutations import TAME, Mutations, config, expressed, neat_python, new_genome

SETTINGS = config()
X = np.random.default_rng(1).normal(size=(5, 3))


def computations(genomes: list[Any]) -> set[Any]:
    """All neurons of all genomes, each spelled out down to the inputs."""
    found: set[Any] = set()
    for genome in genomes:
        neurons = expressed(genome, SETTINGS)
        spelled: dict[int, Any] = {key: key for key in SETTINGS.genome_config.input_keys}

        def spell(key: int, neurons: Any = neurons, spelled: Any = spelled) -> Any:
            if key not in spelled:
                *own, links = neurons[key]
                spelled[key] = (*own, tuple([(spell(source), weight) for source, weight in links]))
            return spelled[key]

        found |= {spell(key) for key in neurons}
    return found


def next_generation(genomes: list[Any], mutations: Mutations) -> list[Any]:
    children = copy.deepcopy(genomes)
    for one in children[1:]:
        for _ in range(mutations.draw.randint(0, 2)):
            mutations.step(one)
    return children


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_a_population_runs_what_is_new_in_it_and_each_computation_once(seed: int) -> None:
    draw = random.Random(seed)
    ancestor = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    for _ in range(6):
        mutations.step(ancestor)
    genomes = [ancestor] * 3
    evaluator = neat.Evaluator(X, SETTINGS)
    known: set[Any] = set()
    for _ in range(4):
        genomes = next_generation(genomes, mutations)
        result = evaluator(genomes)
        present = computations(genomes)
        assert result.ran == len(present - known)
        assert result.neurons == sum(len(expressed(one, SETTINGS)) for one in genomes)
        for genome, outputs in zip(genomes, result.outputs, strict=True):
            fresh = neat.Network.create(genome, SETTINGS)
            np.testing.assert_array_equal(outputs, fresh.activate(X))
        known = present


@pytest.mark.parametrize("has_numba", [True, False])
@pytest.mark.parametrize("samples", [0, 1, 5])
def test_outputs_are_neat_pythons_with_and_without_compiled_loops(
    has_numba: bool, samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiled, "_HAS_NUMBA", has_numba and _compiled._HAS_NUMBA)
    draw = random.Random(samples)
    genomes = [new_genome(SETTINGS, draw) for _ in range(8)]
    mutations = Mutations(SETTINGS, draw, TAME)
    evaluator = neat.Evaluator(X[:samples], SETTINGS)
    for _ in range(12):
        for one in genomes:
            mutations.step(one)
        for genome, outputs in zip(genomes, evaluator(genomes).outputs, strict=True):
            assert outputs.shape == (samples, 2)
            peer = neat_python.nn.FeedForwardNetwork.create(genome, SETTINGS)
            for ours, x in zip(outputs.tolist(), X, strict=False):
                assert ours == pytest.approx(peer.activate(x), rel=1e-12, abs=1e-12)


def test_functions_of_ones_own_run_and_an_error_in_one_forgets_nothing() -> None:
    settings = config()
    broken = False
    calls = 0

    def half(z: float) -> float:
        nonlocal calls
        calls += 1
        if broken:
            raise ZeroDivisionError("not today")
        return z / 2.0

    settings.genome_config.add_activation("half", half)
    settings.genome_config.add_aggregation("spread", lambda values: max(values) - min(values))
    genome = new_genome(settings, random.Random(2))
    genome.nodes[0].activation, genome.nodes[1].aggregation = "half", "spread"
    evaluator = neat.Evaluator(X, settings)
    first = evaluator([genome])
    assert (first.ran, calls) == (2, len(X))
    peer = neat_python.nn.FeedForwardNetwork.create(genome, settings)
    for ours, x in zip(first.outputs[0].tolist(), X, strict=True):
        assert ours == pytest.approx(peer.activate(x), rel=1e-12, abs=1e-12)
    child = copy.deepcopy(genome)
    child.nodes[0].bias += 1.0
    child.nodes[1].bias += 1.0
    broken = True
    with pytest.raises(ZeroDivisionError) as raised:
        evaluator([child])
    assert raised.value.__notes__ == [
        f"raised by neuron 0 of genome {child.key}: activation 'half', aggregation 'sum'"
    ]
    again = evaluator([genome])
    assert again.ran == 0
    assert again.outputs[0].tolist() == first.outputs[0].tolist()
    broken = False
    moved = evaluator([child])
    assert moved.ran == 2
    np.testing.assert_allclose(moved.outputs[0][:, 0], first.outputs[0][:, 0] + 0.5, rtol=1e-12)


def test_what_no_genome_has_any_more_goes() -> None:
    draw = random.Random(0)
    genome = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    evaluator = neat.Evaluator(X, SETTINGS)
    for _ in range(50):
        mutations.step(genome)
        evaluator([genome])
    once = neat.Evaluator(X, SETTINGS)
    once([genome])
    assert len(evaluator) == len(once)


def test_pairs_as_neat_python_gives_them() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    result = neat.evaluate([(1, genome), (2, genome)], X, SETTINGS)
    assert (result.ran, result.neurons) == (2, 4)
    np.testing.assert_array_equal(result.outputs[0], result.outputs[1])


def test_an_evaluator_is_not_called_by_what_it_computes() -> None:
    settings = config()
    nested = True

    def nosy(z: float) -> float:
        if nested:
            evaluator([genome])
        return z

    settings.genome_config.add_activation("nosy", nosy)
    genome = new_genome(settings, random.Random(2))
    genome.nodes[0].activation = "nosy"
    evaluator = neat.Evaluator(X, settings)
    with pytest.raises(rg.BusyError, match=r"Make another one for that: neat\.Evaluator"):
        evaluator([genome])
    nested = False
    outputs = evaluator([genome]).outputs[0]
    np.testing.assert_array_equal(outputs, neat.Network.create(genome, settings).activate(X))


def test_threads_take_turns() -> None:
    draw = random.Random(3)
    ancestor = new_genome(SETTINGS, draw)
    mutations = Mutations(SETTINGS, draw, TAME)
    populations = [[ancestor]]
    for _ in range(24):
        populations.append(next_generation([*populations[-1][-3:], ancestor], mutations))
    evaluator = neat.Evaluator(X, SETTINGS)
    with ThreadPoolExecutor(4) as pool:
        for genomes, result in zip(populations, pool.map(evaluator, populations), strict=True):
            for outputs, fresh in zip(
                result.outputs, neat.evaluate(genomes, X, SETTINGS).outputs, strict=True
            ):
                np.testing.assert_array_equal(outputs, fresh)


@pytest.mark.slow
@pytest.mark.parametrize("has_numba", [True, False])
def test_an_interrupt_at_any_line_leaves_an_evaluator_of_the_population_before_or_after(
    has_numba: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiled, "_HAS_NUMBA", has_numba and _compiled._HAS_NUMBA)
    draw = random.Random(4)
    mutations = Mutations(SETTINGS, draw, TAME)
    before = [new_genome(SETTINGS, draw) for _ in range(2)]
    after = next_generation(before, mutations)
    evaluator = neat.Evaluator(X, SETTINGS)
    expected = [neat.evaluate(one, X, SETTINGS).outputs for one in (before, after)]
    new = len(computations(after) - computations(before))
    assert new
    for at in count(1):
        evaluator(before)
        stopped = interrupted(lambda: evaluator(after), at)
        again = evaluator(after)
        assert again.ran in ((new, 0) if stopped else (0,))
        for result, outputs in zip((again, evaluator(before)), expected[::-1], strict=True):
            for ours, theirs in zip(result.outputs, outputs, strict=True):
                np.testing.assert_array_equal(ours, theirs)
        if not stopped:
            break
    assert at > 100


def test_a_pickled_evaluator_is_one_for_the_same_samples() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    evaluator = neat.Evaluator(X, SETTINGS)
    first = evaluator([genome])
    again = pickle.loads(pickle.dumps(evaluator))([genome])
    assert again.ran == first.ran
    np.testing.assert_array_equal(again.outputs[0], first.outputs[0])


def test_a_masked_sample_is_missing() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    missing = np.ma.masked_equal(X, X[2, 1])
    wanted = np.where(missing.mask, np.nan, X)
    ours, theirs, whole = (
        neat.evaluate([genome], x, SETTINGS).outputs[0] for x in (missing, wanted, X)
    )
    np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(ours, whole)


@pytest.mark.parametrize("samples", [1, 5, 3000])
def test_neurons_of_more_sources_than_an_op_has_operands(samples: int) -> None:
    """The driver refused rows of more than 32 operands, and so all genomes of 31 inputs."""
    settings = config(inputs=40)
    genome = new_genome(settings, random.Random(1))
    X = np.random.default_rng(0).normal(size=(samples, 40))
    (found,) = neat.evaluate([genome], X, settings).outputs
    peer = neat_python.nn.FeedForwardNetwork.create(genome, settings)
    for row, one in zip(found[:5].tolist(), X[:5].tolist(), strict=True):
        assert row == pytest.approx(peer.activate(one), rel=1e-12)
