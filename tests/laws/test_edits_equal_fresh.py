"""After edits and new shapes: the same values and gradients as in a graph built that way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.laws.random_program import Code, same_bits

CODES = st.integers(0, (1 << 48) - 1)
OPS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: rg.maximum(a, b),
    lambda a, b: a / b,
    lambda a, b: rg.arctan2(a, b),
]
LEAVES = 3

Model = list[tuple[int, list[int]]]


def build(model: Model, values: list[np.ndarray]) -> tuple[rg.Graph, list[rg.Var]]:
    graph = rg.Graph()
    made = [graph.param(value) for value in values]
    for op, parents in model:
        made.append(OPS[op](*[made[p] for p in parents]))
    return graph, made


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(nodes=st.lists(CODES, min_size=3, max_size=15), actions=st.lists(CODES, max_size=20))
def test_operands_replaced_one_by_one(distrust: bool, nodes: list[int], actions: list[int]) -> None:
    model: Model = []
    for i, number in enumerate(nodes):
        code = Code(number)
        model.append((code.pick(len(OPS)), [code.pick(LEAVES + i), code.pick(LEAVES + i)]))
    values = [np.array([1.0, -2.0, 0.5]) + i for i in range(LEAVES)]
    graph, made = build(model, values)
    graph._scheduler.distrust |= distrust
    total = made[-1].sum()
    gradients = [rg.grad(total, leaf, allow_unused=True) for leaf in made[:LEAVES]]
    versions = [0] * len(made)
    for number in actions:
        code = Code(number)
        what = code.pick(3)
        if what == 0:
            leaf = code.pick(LEAVES)
            values[leaf] = code.array((3,))
            made[leaf].set(values[leaf])
        elif what == 1:
            node = code.pick(len(model))
            position, parent = code.pick(2), code.pick(LEAVES + node)
            model[node][1][position] = parent
            made[LEAVES + node].replace_parent(position, made[parent])
        _, twins = build(model, values)
        for var, twin in zip(made, twins, strict=True):
            if code.pick(2):
                assert same_bits(var.value, twin.value)
        twin_total = twins[-1].sum()
        for leaf, gradient in enumerate(gradients):
            if gradient is not None:
                wanted = rg.grad(twin_total, twins[leaf], allow_unused=True)
                expected = np.zeros(3) if wanted is None else wanted.value
                assert same_bits(gradient.value, np.asarray(expected))
        graph.check_invariants()
        now = [var.value_version for var in made]
        assert all(old <= new for old, new in zip(versions, now, strict=True))
        versions = now


def sizes(x: rg.Var, s: rg.Var) -> tuple[rg.Var, ...]:
    """An expression that fits every length of `x` from 1."""
    y = rg.tanh(x * s) + x[::-1]
    table = y[:, None] * x
    return y, table.T.reshape(-1), table.sum(axis=0), table.max(axis=1), (table * table).sum()


@given(steps=st.lists(CODES, min_size=2, max_size=20))
def test_an_input_that_gets_other_lengths(steps: list[int]) -> None:
    graph = rg.Graph()
    x, s = graph.param(np.ones(3)), graph.param(2.0)
    outputs = sizes(x, s)
    gradients = rg.grad(outputs[-1], (x, s))
    for number in steps:
        code = Code(number)
        length = 1 + code.pick(4)
        array, factor = code.array((length,)), float(code.array(()))
        x.set(array)
        s.set(factor)
        twin_graph = rg.Graph()
        u, t = twin_graph.param(array), twin_graph.param(factor)
        twins = sizes(u, t)
        for var, twin in zip(
            (*outputs, *gradients), (*twins, *rg.grad(twins[-1], (u, t))), strict=True
        ):
            assert var.shape == twin.shape
            if code.pick(3):
                assert same_bits(var.value, twin.value)
        graph.check_invariants()


def test_new_lengths_leave_no_nodes_behind() -> None:
    graph = rg.Graph()
    x, s = graph.param(np.ones(3)), graph.param(2.0)
    outputs = sizes(x, s)
    gradients = rg.grad(outputs[-1], (x, s))
    counts = set()
    for _ in range(5):
        x.set(np.ones(2))
        graph.forward(*outputs, *gradients)
        x.set(np.ones(3))
        graph.forward(*outputs, *gradients)
        counts.add(len(graph))
    assert len(counts) == 1, counts


def test_two_params_that_share_an_adjoint_part_when_an_operand_is_replaced() -> None:
    """The adjoints of the operands of a sum are one node, until one of them is no operand."""
    graph = rg.Graph()
    a, b, c = graph.param([1.0, 2.0]), graph.param([3.0, 4.0]), graph.param([5.0, 6.0])
    total = a + b
    y = (total * c).sum()
    da, db = rg.grad(y, (a, b))
    assert da.value.tolist() == db.value.tolist() == [5.0, 6.0]
    total.replace_parent(1, a)
    assert da.value.tolist() == [10.0, 12.0]
    assert db.value.tolist() == [0.0, 0.0]


def test_two_params_that_share_an_adjoint_part_when_one_gets_another_shape() -> None:
    graph = rg.Graph()
    a, b = graph.param([1.0, 2.0]), graph.param([3.0, 4.0])
    y = ((a + b) ** 2).sum()
    da, db = rg.grad(y, (a, b))
    a.set([1.0])
    assert da.shape == (1,)
    assert da.value.tolist() == [18.0]
    assert db.value.tolist() == [8.0, 10.0]


def test_a_gradient_whose_output_was_dropped_follows_a_new_length() -> None:
    graph = rg.Graph()
    x = graph.input([1.0, 2.0, 3.0])
    y = (x * x).sum()
    gradient = rg.grad(y, x)
    assert gradient.value.tolist() == [2.0, 4.0, 6.0]
    del y
    x.set([1.0, 2.0, 3.0, 4.0])
    assert gradient.shape == (4,)
    assert gradient.value.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_a_gradient_follows_a_function_whose_result_gets_another_length() -> None:
    graph = rg.Graph()
    count, x = graph.input(3), graph.input(2.0)
    repeat = rg.lift(lambda n, v: np.full(n, v), vjp=lambda g, ans, n, v: (None, g.sum()))
    rows = repeat(count, x)
    y = (rows * rows).sum()
    gradient = rg.grad(y, x)
    assert float(gradient.value) == 12.0
    count.set(5)
    assert float(y.value) == 20.0
    assert float(gradient.value) == 20.0
