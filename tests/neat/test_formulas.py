"""The formulas: neat-python's values, edge cases among them; slopes to second order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.neat._activations import ACTIVATIONS as ROWS
from reactgrad.neat._activations import activation
from reactgrad.neat._aggregations import aggregate
from reactgrad.neat._weigh import weigh
from tests.neat.mutations import ACTIVATIONS, AGGREGATIONS, neat_python

FUNCTIONS = neat_python.activations.ActivationFunctionSet()
SUMS = neat_python.aggregations.AggregationFunctionSet()
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    3.4,
    -3.4,
    12.0,
    -12.0,
    24.0,
    60.0,
    -60.0,
    1e-7,
    1e-300,
    700.0,
    -800.0,
]


def test_there_are_no_others() -> None:
    assert set(ROWS) == set(ACTIVATIONS)
    assert len(ACTIVATIONS) == 18
    assert len(AGGREGATIONS) == 7


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_neat_pythons(name: str) -> None:
    grid = [*EDGES, math.nan, *np.linspace(-80.0, 80.0, 4001).tolist()]
    y = activation(rg.Graph().input(np.array(grid)), function=name)
    theirs = np.array([FUNCTIONS.get(name)(z) for z in grid])
    # Near its zero, exp(z) - 1 has the last bit of exp in it, in neat-python as here.
    np.testing.assert_allclose(y.value, theirs, rtol=1e-12, atol=4e-16, equal_nan=True)


@pytest.mark.parametrize("name", ["square", "cube"])
def test_where_neat_python_overflows_the_value_is_infinite(name: str) -> None:
    with pytest.raises(OverflowError):
        FUNCTIONS.get(name)(1e200)
    assert activation(rg.Graph().input([1e200]), function=name).value.tolist() == [math.inf]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_to_second_order_both_ways(name: str) -> None:
    z = np.array([0.31, 0.72, 1.4]) if name == "log" else np.array([0.31, -0.72, 1.4, -2.3])
    rg.testing.check_grads(lambda z: activation(z, function=name), [z], order=2)
    clamped = np.array([-200.0, 200.0]) * (name not in ("exp", "square", "cube"))
    if name not in ("log", "inv"):
        rg.testing.check_grads(lambda z: activation(z, function=name), [clamped + 0.3], order=1)


@pytest.mark.parametrize("name", AGGREGATIONS)
@given(values=st.lists(st.floats(-5.0, 5.0), max_size=7))
def test_aggregations_are_neat_pythons_bit_for_bit(name: str, values: list[float]) -> None:
    g = rg.Graph()
    sources = [g.input([value, -value]) for value in values]
    genes = g.param(np.array([0.5, -1.5, *np.linspace(0.5, 2.0, len(values))]))
    z = weigh(genes, *sources) if name == "sum" else aggregate(name, genes, sources)
    weights = genes.value.tolist()[2:]
    for i, sign in enumerate((1.0, -1.0)):
        total = SUMS.get(name)([sign * value * w for value, w in zip(values, weights)])
        assert np.broadcast_to(z.value, 2)[i] == pytest.approx(
            0.5 + -1.5 * total, rel=1e-14, abs=1e-14
        )


@pytest.mark.parametrize("name", AGGREGATIONS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_gradients_of_aggregations_to_second_order(name: str, count: int) -> None:
    draw = np.random.default_rng(count)
    args = [draw.normal(size=count + 2), *draw.normal(size=(count, 3))]
    if count > 2:
        args[2] = np.array(0.3)  # a source that no input leads to is one number

    def neuron(genes: rg.Var, *sources: rg.Var) -> rg.Var:
        return rg.tanh(weigh(genes, *sources) if name == "sum" else aggregate(name, genes, sources))

    rg.testing.check_grads(neuron, args, order=2)


def test_genes_that_do_not_fit_the_connections_are_refused_when_they_are_set() -> None:
    g = rg.Graph()
    genes = g.param(np.ones(3))
    y = weigh(genes, g.input([1.0]))
    with pytest.raises(rg.ShapeError, match="has 3 genes"):
        genes.set(np.ones(4))
    assert y.value.tolist() == [2.0]
