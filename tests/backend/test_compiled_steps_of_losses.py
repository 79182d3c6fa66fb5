"""Steps of a loss over classes, compiled: the same bits as NumPy's, and errors at their own node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._instructions import instructions
from reactgrad.backend.machine._picking import Checked

pytestmark = pytest.mark.skipif(find_driver() is None, reason="the driver was not compiled")
RNG = np.random.default_rng(0)
SHAPES = [
    ((7, 5), 1),
    ((7, 5), 0),
    ((2, 4, 3), 1),
    ((2, 4, 3), -1),
    ((6,), 0),
    ((1, 1), 1),
    ((0, 3), 1),
]


def same_bits(one: Any, other: Any) -> bool:
    return (
        one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def graphs(build: Any) -> tuple[Any, Any]:
    """Return what `build` gives in a graph with the machine, and in one without."""
    found = []
    for jit in (True, False):
        g = rg.Graph(jit=jit)
        found.append([one.value for one in build(g)])
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_elements_by_their_numbers_and_back(dtype: str, shape: Any, axis: int) -> None:
    x = RNG.normal(size=shape) * 100.0
    x.reshape(-1)[:1] = -0.0
    x = x.astype(dtype)
    rows = np.delete(np.array(shape), axis)
    numbers = RNG.integers(0, shape[axis], tuple(rows))

    def build(g: Any) -> list[Any]:
        node, labels = g.input(x), g.input(numbers)
        chosen = rg.take_along_axis(node, rg.expand_dims(labels, axis), axis)
        if dtype == "i8" or not x.size:
            return [chosen]
        costs = rg.cross_entropy(node, labels, axis, reduction="none")
        return [chosen, costs, rg.grad(costs.sum(), node)]

    for one, other in zip(*graphs(build), strict=True):
        assert same_bits(one, other)


@pytest.mark.parametrize("wrong", [-1, 5, 2**40, -(2**40)])
def test_a_number_that_no_row_has_is_an_error_of_its_own_node(wrong: int) -> None:
    g = rg.Graph(jit=True)
    scores, labels = g.input(RNG.normal(size=(7, 5))), g.input(RNG.integers(0, 5, 7))
    before = rg.exp(scores)
    costs = rg.cross_entropy(before, labels, reduction="none")
    after = costs * 2.0
    g.forward(after)
    kept, steps = after.value, costs.value_version
    numbers = RNG.integers(0, 5, 7)
    numbers[3] = wrong
    scores.set(RNG.normal(size=(7, 5)))
    labels.set(numbers)
    with pytest.raises(rg.IndexingError, match=f"there is no element {wrong} along axis"):
        g.forward(after)
    assert not before.is_stale
    assert costs.is_stale
    assert costs.value_version == steps
    labels.set(np.zeros(7, int))
    assert not np.array_equal(after.value, kept)
    expected = np.log1p(np.exp(before.value[:, 1:] - before.value[:, :1]).sum(1))
    np.testing.assert_allclose(costs.value, expected, rtol=1e-12)


KINDS = {"?": [True, False, True], "i4": [-5, 2**31 - 1, 0], "i8": [2**63 - 1, -(2**62) - 1, 3]}


@pytest.mark.parametrize("kind", ["?", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("to", ["f4", "f8"])
def test_conversions_have_the_bits_of_numpy(kind: str, to: str) -> None:
    x: Any = np.array(KINDS.get(kind, [0.1, np.nan, -0.0, np.inf, 1e-40, 1e30]), kind)
    g = rg.Graph(jit=True)
    y = g.input(x).astype(to)
    assert same_bits(y.value, x.astype(to))
    out = np.empty(x.shape, to)
    from functools import partial

    assert instructions(partial(np.copyto, out, x, casting="unsafe"))
    # What loops of NumPy do with other strides, or refuse, is left to it.
    assert instructions(partial(np.copyto, np.empty(3, "i4"), np.ones(3), casting="unsafe")) is None


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_gradient_of_relu(dtype: str, size: int) -> None:
    x = RNG.normal(size=size).astype(dtype)
    x[: len(x) // 3] = [np.nan, -0.0, np.inf][0]
    x[-1:] = 0.0
    g = RNG.normal(size=size).astype(dtype)

    def build(graph: Any) -> list[Any]:
        node = graph.input(x)
        relu = rg.relu(node)
        return [rg.grad((relu * g).sum(), node), rg.grad(relu.sum(), node)]

    for one, other in zip(*graphs(build), strict=True):
        assert same_bits(one, other)


def test_a_training_step_with_labels_is_few_calls() -> None:
    """Not one for each op: only the checks of the labels stand between the programs."""
    with rg.Graph(jit=True) as g:
        net = rg.nn.Sequential(rg.nn.Linear(4, 8, rng=0), rg.nn.ReLU(), rg.nn.Linear(8, 3, rng=0))
        loss = rg.nn.CrossEntropyLoss()(net(g.input(RNG.normal(size=(5, 4)))), np.zeros(5, int))
    gradients = rg.grad(loss, list(net.parameters()))
    run = g.forward(loss, *gradients)
    steps = [g._host.steps[one._slot] for one in run.ran] if hasattr(g._host, "steps") else []
    alone = [one for one in steps if one is not None and instructions(one) is None]
    assert all(isinstance(one, Checked) for one in alone)
