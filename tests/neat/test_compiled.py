"""The compiled loops of neurons agree with NumPy's kernels, and are what runs where numba is."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.backend.machine import _registers
from reactgrad.backend.machine._loop_call import LoopCall
from reactgrad.backend.machine._registers import Program
from reactgrad.neat._activations import ACTIVATIONS, activation, activation_slope
from reactgrad.neat._weigh import weigh, weigh_genes, weigh_source
from tests.neat.mutations import TAME, Mutations, config, new_genome

_loops = pytest.importorskip("reactgrad.neat._loops", reason="needs numba, the extra `jit`")

SIZES = (1, 2, 7, 600)  # 600: more than a block
EDGES = [0.0, -0.0, 1.0, -1.0, 3.4, -3.4, 12.0, -12.0, 24.0, 1e-7, 1e-300, -800.0, np.nan]
TOLERANCE = {"f8": (1e-12, 1e-15), "f4": (2e-6, 2e-5)}


def twins(build: Any) -> list[Any]:
    """What `build` makes in a graph with the machine, and in one without."""
    return [build(rg.Graph(jit=jit)) for jit in (True, False)]


def assert_close(ours: Any, other: Any, dtype: str) -> None:
    rtol, atol = TOLERANCE[dtype]
    np.testing.assert_allclose(ours, other, rtol=rtol, atol=atol, equal_nan=True)
    assert np.asarray(ours).dtype == np.asarray(other).dtype == np.dtype(dtype)


def steps_of(graph: rg.Graph, op: str) -> list[Any]:
    host = graph._host
    return [host._steps[v._slot] for v in graph.nodes if host.ops[v._slot].name == op]


def test_each_function_has_two_loops() -> None:
    named = {name for name in _loops.LOOPS if not name.startswith("neat_")}
    assert named == {*ACTIVATIONS, *[f"{name} slope" for name in ACTIVATIONS]}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_functions_and_slopes_are_numpys(name: str, dtype: str) -> None:
    draw = np.random.default_rng(0)
    for size in (*SIZES, 13):
        z = np.array(EDGES) if size == 13 else draw.normal(size=size) * 5.0
        if dtype == "f4":
            z = z[np.abs(z) != 1e-7]  # on the edge of log's clamp; 1e-7 is another number there

        def build(graph: rg.Graph, z: Any = z) -> Any:
            x = graph.input(z.astype(dtype))
            y = activation(x, function=name)
            return graph, y, rg.grad(y.sum(), x)

        (graph, *ours), (_, *plain) = twins(build)
        for one, other in zip(ours, plain, strict=True):
            assert_close(one.value, other.value, dtype)
        for op in ("neat_activation", "neat_activation_slope"):
            assert [type(one) for one in steps_of(graph, op)] == [LoopCall]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("count", [0, 1, 3, 9])
@pytest.mark.parametrize("alone", [False, True])
def test_weighing_and_its_gradients_are_numpys(dtype: str, count: int, alone: bool) -> None:
    for size in SIZES:
        draw = np.random.default_rng(size)
        numbers = draw.uniform(0.5, 2.0, size=(count, size)).astype(dtype)
        genes = draw.uniform(0.5, 2.0, size=count + 2).astype(dtype)

        def build(graph: rg.Graph, numbers: Any = numbers, genes: Any = genes) -> Any:
            own = graph.param(genes)
            sources = [
                # A source that no input leads to is one number.
                graph.input(one[0] if alone and i == 1 else one)
                for i, one in enumerate(numbers)
            ]
            y = weigh(own, *sources)
            slopes = rg.grad((y * y).sum(), [own, *sources])
            graph.forward(y, *slopes)
            return graph, y.value, [one.value for one in slopes]

        (graph, value, slopes), (_, plain, plain_slopes) = twins(build)
        assert_close(value, plain, dtype)
        for ours, other in zip(slopes, plain_slopes, strict=True):
            assert_close(ours, other, dtype)
        for op in ("neat_weigh", "neat_weigh_genes", "neat_weigh_source"):
            assert {type(one) for one in steps_of(graph, op)} <= {LoopCall}


def network(seed: int) -> tuple[Any, Any]:
    settings = config()
    draw = random.Random(seed)
    genome = new_genome(settings, draw)
    mutations = Mutations(settings, draw, TAME)
    for _ in range(30):
        mutations.step(genome)
    return genome, settings


@pytest.mark.trusting
@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_a_network_is_one_call_and_agrees_with_numpy_forward_and_backward(seed: int) -> None:
    genome, settings = network(seed)
    found = []
    for jit in (True, False, 2):
        net = neat.Network.create(genome, settings)
        net.graph.jit = jit
        genes = [net.genes(key) for key in net.phenotype.neurons]
        for turn in range(5):  # the plan is found, stored, bound and played
            net.activate(np.random.default_rng(turn).normal(size=(6, 3)))
            if turn == 0:
                loss = (net.outputs * net.outputs).sum()
                slopes = rg.grad(loss, genes, allow_unused=True)
            net.graph.forward(loss, *[one for one in slopes if one is not None])
        found.append([loss.value, *[one.value for one in slopes if one is not None]])
        plans = [one.plan for one in net.graph._scheduler.plans._transitions.values()]
        programs = [call for plan in plans for call in plan.fused or () if type(call) is Program]
        assert bool(programs) == bool(jit)
    for other in found[1:]:
        for ours, plain in zip(found[0], other, strict=True):
            np.testing.assert_allclose(ours, plain, rtol=1e-11, atol=1e-11)


@pytest.mark.trusting
@pytest.mark.whole
def test_threads_that_share_the_samples_compute_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_registers, "SHARED", 1)
    monkeypatch.setattr(_registers, "PART", 8)
    genome, settings = network(2)
    found = []
    for threads in (1, 3):
        net = neat.Network.create(genome, settings)
        net.graph.jit = threads
        genes = [net.genes(key) for key in net.phenotype.neurons]
        for turn in range(5):
            net.activate(np.random.default_rng(turn).normal(size=(100, 3)))
            if turn == 0:
                loss = (net.outputs * net.outputs).sum()
                slopes = [one for one in rg.grad(loss, genes, allow_unused=True) if one is not None]
            net.graph.forward(loss, *slopes)
        plans = [one.plan for one in net.graph._scheduler.plans._transitions.values()]
        codes = [call._code for plan in plans for call in plan.fused or () if type(call) is Program]
        assert (max(map(len, codes)) > 1) is (threads > 1)  # stages
        found.append([net.outputs.value.tolist(), *[one.value.tolist() for one in slopes]])
    assert found[0] == found[1]


def test_the_kernels_change_when_the_machine_is_switched() -> None:
    genome, settings = network(1)
    net = neat.Network.create(genome, settings)
    net.activate(np.ones((3, 3)))
    kinds = []
    for jit in (False, True):
        net.graph.jit = jit
        net.activate(np.full((3, 3), 2.0 + jit))
        kinds.append(LoopCall in map(type, steps_of(net.graph, "neat_activation")))
    assert kinds == [False, True]


def test_functions_of_ones_own_and_other_floats_are_left_to_numpy() -> None:
    graph = rg.Graph(jit=True)
    z = graph.input(np.array([1.0, 2.0]))
    own = activation(z, function=lambda one: one + 1.0)
    half = activation(graph.input(np.array([1.0], "f2")), function="tanh")
    assert own.value.tolist() == [2.0, 3.0]
    assert half.value.dtype == np.float16
    assert LoopCall not in map(type, steps_of(graph, "neat_activation"))


def test_what_is_one_number_in_memory_is_taken_for_each_sample() -> None:
    def build(graph: rg.Graph) -> list[Any]:
        genes, one = graph.input([0.5, 2.0, 3.0, -4.0]), graph.input(0.25)
        same = rg.broadcast_to(one, (5,))
        x = graph.input(np.arange(5.0))
        computed = [activation(same, function=name) for name in ACTIVATIONS]
        computed += [activation_slope(same, same, function=name) for name in ACTIVATIONS]
        computed += [activation_slope(same, x, function=name) for name in ACTIVATIONS]
        computed += [activation_slope(x, same, function=name) for name in ACTIVATIONS]
        computed += [weigh(genes, same, x), weigh(genes, same, same), weigh(genes, x, one)]
        computed += [weigh_source(same, genes, i=i) for i in (0, 1)]
        computed += [weigh_genes(same, genes, x, same), weigh_genes(x, genes, same, x)]
        return [node.value for node in computed]

    for ours, other in zip(*twins(build), strict=True):
        assert_close(ours, other, "f8")


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_hessians_and_jacobians_are_gradients_of_each_element(seed: int, samples: int) -> None:
    settings, draw = config(), random.Random(seed)
    genome = new_genome(settings, draw)
    mutations = Mutations(settings, draw, ("sigmoid", "tanh", "gauss", "sin", "identity", "cube"))
    for _ in range(10):
        mutations.step(genome)
    x = np.random.default_rng(seed).normal(size=(samples, 3)) * 0.3
    for jit in (True, False):
        net = neat.Network.create(genome, settings)
        net.graph.jit = jit
        net.activate(x)
        total = (net.outputs * net.outputs).sum()
        for key in net.phenotype.neurons:
            genes = net.genes(key)
            slope = rg.grad(total, genes)
            rows = [rg.grad(slope[i], genes).value for i in range(genes.shape[0])]
            hessian = rg.hessian(total, genes)
            np.testing.assert_allclose(hessian.value, rows, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(hessian.value, hessian.value.T, rtol=1e-9, atol=1e-12)
            jacobian = rg.jacobian(net.outputs, genes).value
            twice = (2.0 * net.outputs.value[..., None] * jacobian).sum(axis=(0, 1))
            np.testing.assert_allclose(slope.value, twice, rtol=1e-9, atol=1e-12)
            third = rg.grad(hessian.sum(), genes)
            ones = rg.grad((rg.hvp(total, [genes], [np.ones(genes.shape)])[0]).sum(), genes)
            np.testing.assert_allclose(third.value, ones.value, rtol=1e-8, atol=1e-9)
