"""Neurons that grow: random edits against a fresh graph; weights, gradients and moments by gene; the dead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.neurons._weighted import slopes, weighted

X = np.linspace(-1.0, 1.0, 5)


def test_an_op_with_all_derivatives() -> None:
    arguments = [[0.1, 0.2, 0.3], [1.0, -2.0], [[0.5], [0.7]]]
    rg.testing.check_grads(lambda w, a, b: weighted(w, a, b), arguments)
    rg.testing.check_grads(
        lambda g, a, b: slopes(g, a, b), [[[1.0, 2.0], [0.5, 0.3]], [1.0, -2.0], [[0.5], [0.7]]]
    )


def grown() -> tuple[rg.Graph, list[Any], Any]:
    g = rg.Graph()
    inputs = [g.input(X**power, name=f"x{power}") for power in (1, 2, 3)]
    return g, inputs, rg.neuron(inputs[:1], weights=[0.5], bias=0.1, name="out")


def test_a_connection_comes_with_its_weight_and_goes_with_it() -> None:
    g, (a, b, c), out = grown()
    loss = rg.sum(rg.square(out.node))
    slope = rg.grad(loss, out.genes)
    out.connect(b, -0.3)
    nodes = len(g)
    out.connect(c, 0.2)
    np.testing.assert_allclose(out.value, np.tanh(0.1 + 0.5 * X - 0.3 * X**2 + 0.2 * X**3))
    assert slope.shape == (4,)
    assert out.disconnect(a) == []
    assert [one.name for one in out.sources] == ["x2", "x3"]
    assert out.weights.tolist() == [-0.3, 0.2]
    assert out.weight(c) == 0.2
    out.set_weight(c, 0.25)
    y = np.tanh(0.1 - 0.3 * X**2 + 0.25 * X**3)
    np.testing.assert_allclose(out.value, y)
    by_sum = 2.0 * y * (1.0 - y * y)
    np.testing.assert_allclose(
        slope.value, [by_sum.sum(), (by_sum * X**2).sum(), (by_sum * X**3).sum()]
    )
    assert len(g) == nodes
    assert repr(out) == "<Neuron 'out': bias 0.1, {x2: -0.3, x3: 0.25}>"


def test_only_what_the_edit_reaches_runs() -> None:
    _, (a, b, _), out = grown()
    other = rg.neuron([a], weights=[2.0])
    _ = out.value, other.value
    out.connect(b, 0.1)
    assert out.node.is_stale
    assert not other.node.is_stale
    assert other.node.value_version == 1


def test_splitting_keeps_the_weight_behind_the_new_neuron() -> None:
    g, (a, b, _), out = grown()
    out.connect(b, 2.0)
    middle = out.split(a, name="middle", activation=None)
    assert out.sources[0] is middle
    assert out.weights.tolist() == [0.5, 2.0]
    np.testing.assert_allclose(out.value, np.tanh(0.1 + 0.5 * X + 2.0 * X**2))
    assert middle.sources[0] is a
    assert g["genes of middle"] is middle.genes
    bent = out.split(middle)
    np.testing.assert_allclose(out.value, np.tanh(0.1 + 0.5 * np.tanh(X) + 2.0 * X**2))
    assert bent.activation is rg.tanh


def test_several_edits_are_one() -> None:
    _, (a, b, c), out = grown()
    before = out.value
    with out.graph.edit():
        out.connect(b, 1.0)
        out.connect(c, 2.0)
        out.disconnect(a)
        assert out.value is before
        assert out.weights.tolist() == [0.5]
    assert out.weights.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(out.value, np.tanh(0.1 + X**2 + 2.0 * X**3))
    with pytest.raises(ZeroDivisionError), out.graph.transaction():
        out.disconnect(b)
        out.split(c)
        _ = 1 / 0
    assert out.weights.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(out.value, np.tanh(0.1 + X**2 + 2.0 * X**3))


def test_optimisers_keep_the_moments_of_each_weight() -> None:
    _, (a, b, c), out = grown()
    opt = rg.optim.Adam([out.genes], lr=0.01)
    loss = rg.sum(rg.square(out.node - 1.0))

    def step() -> dict[str, Any]:
        opt.zero_grad()
        loss.backward()
        opt.step()
        return opt.state_dict()["state"]["genes of out"]

    out.connect(b, 0.3)
    first = step()
    with out.graph.edit():
        out.disconnect(a)
        out.connect(c, 0.0)
    kept = opt.state_dict()["state"]["genes of out"]
    for name in ("exp_avg", "exp_avg_sq"):
        assert kept[name].tolist() == [first[name][0], first[name][2], 0.0]
    assert kept["step"] == 1
    try:
        with out.graph.transaction():
            out.connect(a, 1.0)
            step()
            _ = 1 / 0
    except ZeroDivisionError:
        pass
    again = opt.state_dict()["state"]["genes of out"]
    assert again["exp_avg"].tolist() == kept["exp_avg"].tolist()
    assert step()["step"] == 2


def test_lbfgs_begins_anew() -> None:
    _, (_, _, c), out = grown()
    loss = rg.sum(rg.square(out.node - X))
    opt = rg.optim.LBFGS([out.genes])

    def closure() -> Any:
        opt.zero_grad()
        loss.backward()
        return loss.value

    opt.step(closure)
    before = loss.item()
    out.connect(c, 0.0)
    opt.step(closure)
    assert loss.item() < before


def test_the_dead_are_told() -> None:
    g, (a, b, _), out = grown()
    hidden = rg.neuron([a], weights=[1.0], name="hidden")
    deeper = rg.neuron([hidden, b], weights=[1.0, 1.0], name="deeper")
    out.connect(deeper, 1.0)
    loss = rg.sum(out.node)
    held = rg.grad(loss, hidden.genes, allow_unused=True)
    assert hidden.leads_to(loss)
    assert rg.dead_neurons(loss) == []
    assert out.disconnect(deeper) == [deeper, hidden]
    assert set(map(id, rg.dead_neurons(loss))) == {id(deeper), id(hidden)}
    assert not hidden.leads_to(out)
    assert held is not None
    assert held.value.tolist() == [0.0, 0.0]
    out.connect(hidden, 2.0)
    assert rg.dead_neurons(out) == [deeper]
    assert "deeper" in g


def test_what_is_used_elsewhere_is_not_dead() -> None:
    _, (a, _, _), out = grown()
    hidden = rg.neuron([a], weights=[1.0])
    user = hidden.node * 2.0
    out.connect(hidden, 1.0)
    assert out.disconnect(hidden) == []
    assert user.shape == (5,)


def test_messages() -> None:
    _, (a, b, _), out = grown()
    inner = rg.neuron([out])
    with pytest.raises(rg.CycleError):
        out.connect(inner, 1.0)
    assert out.weights.tolist() == [0.5]
    with pytest.raises(rg.EditError, match=r"connect\(x1\): 'out' is connected from there already"):
        out.connect(a, 1.0)
    with pytest.raises(rg.EditError, match="not connected from 'x2': its sources are x1"):
        out.disconnect(b)
    with pytest.raises(rg.EditError, match="not connected from 'x2'"):
        out.split(b)
    with pytest.raises(rg.DTypeError, match=r"3\.0 is no source of a neuron"):
        out.connect(3.0)
    with pytest.raises(rg.DTypeError, match="activation='tanh'"):
        rg.neuron([a], activation="tanh")
    with pytest.raises(rg.EditError, match="the same source twice"):
        rg.neuron([a, a])
    with pytest.raises(rg.ShapeError, match="1 sources and weights of shape"):
        rg.neuron([a], weights=[1.0, 2.0])
    with pytest.raises(rg.DTypeError, match="given no output"):
        rg.dead_neurons()


@settings(max_examples=30, deadline=None)
@given(st.randoms(use_true_random=False))
def test_after_any_edits_it_is_as_if_built_anew(draw: Any) -> None:
    """Random connects, disconnects and splits: values and gradients are those of a fresh graph."""
    g = rg.Graph()
    inputs = [g.input(X**power) for power in (1, 2)]
    with g:
        neurons = [rg.neuron(inputs, weights=[0.3, -0.2], bias=0.1)]
    out = neurons[0]
    loss = rg.sum(rg.square(out.node))
    slope = rg.grad(loss, out.genes)
    for _ in range(draw.randrange(1, 12)):
        one = draw.choice(neurons)
        kind = draw.randrange(3)
        if kind == 0:
            source = draw.choice([*inputs, *neurons])
            try:
                one.connect(source, draw.uniform(-1.0, 1.0))
            except (rg.CycleError, rg.EditError):
                continue
        elif kind == 1 and one.inputs:
            one.disconnect(draw.choice(one.sources))
        elif one.inputs:
            neurons.append(one.split(draw.choice(one.sources), bias=draw.uniform(-1.0, 1.0)))
        if draw.random() < 0.5:
            _ = slope.value
    fresh = rg.Graph()
    with fresh:
        twins: dict[int, Any] = {id(var): fresh.input(var.value) for var in inputs}

        def twin(neuron: Any) -> Any:
            found = twins.get(id(neuron))
            if found is None:
                sources = [twin(source) for source in neuron.sources]
                found = twins[id(neuron)] = rg.neuron(
                    sources, weights=neuron.weights, bias=neuron.bias
                )
            return found

        other = twin(out)
    np.testing.assert_allclose(out.value, other.value, rtol=1e-12, atol=1e-12)
    expected = rg.grad(rg.sum(rg.square(other.node)), other.genes)
    np.testing.assert_allclose(slope.value, expected.value, rtol=1e-10, atol=1e-12)
