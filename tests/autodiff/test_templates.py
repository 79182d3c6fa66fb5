"""Gradients built from templates are what the rules would have built: nodes, names, places, bits."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.autodiff import _templates
from reactgrad.nodes._op import OPS
from tests.autodiff.test_rules import CASES, Case


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Begin and end without templates."""
    forget()
    yield
    forget()


def forget() -> None:
    for op in OPS.values():
        op.templates.clear()


def seen(g: rg.Graph) -> list[Any]:
    """Return what can be seen of all nodes, in order of creation."""
    return [
        (
            node.name,
            node.label,
            g._host.ops[node._slot].name,
            [parent.name for parent in node.parents],
            node.value_version,
            repr(g._host.attrs[node._slot]),
            g._host.specs[node._slot],
            (g._host.sites[node._slot] or [None])[0],
            g._host.owners.get(node._slot),
            None if g._scheduler.is_stale(node._slot) else np.asarray(node.value).tobytes(),
        )
        for node in g.nodes
    ]


def second_order(case: Case) -> rg.Graph:
    """Return a graph of a case with first and second gradients, each read."""
    function, arrays = case
    g = rg.Graph(rng=0)
    with g:
        leaves = [g.param(array) for array in arrays]
        y = function(*leaves)
        y = y if y.shape == () else (y * y).sum()
        first = rg.grad(y, leaves)
        g.forward(y, *first)
        second = rg.grad(sum((one * one).sum() for one in first), leaves, allow_unused=True)
        for one in second:
            if one is not None:
                one.value
    g._held = leaves, y, first, second  # type: ignore[attr-defined]
    return g


@pytest.mark.parametrize("name", CASES)
def test_a_second_graph_has_the_nodes_of_the_first(name: str) -> None:
    cold = seen(second_order(CASES[name]))
    warm = seen(second_order(CASES[name]))
    assert cold == warm


def model(random: Random, rows: int) -> rg.Graph:
    """Return a graph of a random model with the gradients of some of its params."""
    g = rg.Graph()
    x = g.input(np.linspace(-1.0, 1.0, 3 * rows).reshape(rows, 3))
    params = [g.param(np.full((3,), 0.1 * i + 0.2)) for i in range(3)]
    square = g.param(np.eye(3) * 0.5)
    nodes: list[Any] = [x]
    for _ in range(random.randrange(3, 14)):
        a, b = random.choice(nodes), random.choice([*nodes, *params, 2.0, 3])
        kind = random.randrange(8)
        if kind == 0:
            nodes.append(rg.tanh(a))
        elif kind == 1:
            nodes.append(a + b)
        elif kind == 2:
            nodes.append(a * b)
        elif kind == 3:
            nodes.append(a @ square)
        elif kind == 4:
            nodes.append(a / (1.0 + rg.exp(-a)))
        elif kind == 5:
            nodes.append(a - a.mean(axis=0))
        elif kind == 6:
            nodes.append(a**2)
        else:
            nodes.append(rg.softmax(a) * a.detach())
    y = sum(node.sum() for node in random.sample(nodes, min(3, len(nodes))))
    y = y + (nodes[-1] * params[0]).sum()
    leaves = [*params, square]
    wanted = random.sample(leaves, random.randrange(1, 5))
    gradients = rg.grad(y, wanted, allow_unused=True)
    later = rg.grad(y, leaves, allow_unused=True)
    with g.edit():  # gradients follow an edit, too
        y.replace_parent(0, y.parents[0] * 1.5)
    for one in (*gradients, *later):
        if one is not None:
            one.value
    g._held = y, gradients, later  # type: ignore[attr-defined]
    g.check_invariants()
    return g


@pytest.mark.parametrize("rows", [1, 4])
def test_random_models(rows: int) -> None:
    for seed in range(60):
        forget()
        cold = seen(model(Random(seed), rows))
        # With all that is remembered of this model, and of others.
        assert seen(model(Random(seed), rows)) == cold
        model(Random(seed + 1000), rows)
        assert seen(model(Random(seed), rows)) == cold


def chain(layers: int) -> tuple[rg.Graph, Any, list[Any]]:
    g = rg.Graph()
    h = g.input([0.1, 0.2])
    params = [g.param([0.5, 0.6]) for _ in range(layers)]
    for param in params:
        h = rg.tanh(h * param)
    return g, h.sum(), params


def test_the_rules_of_reactgrad_are_asked_once_for_each_kind_of_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    whole = _templates.record
    monkeypatch.setattr(
        "reactgrad.autodiff._sweep.record", lambda *a: asked.append("") or whole(*a)
    )
    _, y, params = chain(40)
    rg.grad(y, params)
    # sum; tanh and multiply, each by the gradient of the sum and by that of a product.
    assert len(asked) <= 5


def test_rules_of_users_are_asked_every_time() -> None:
    asked: list[int] = []

    def rule(g: Any, ans: Any, x: Any) -> Any:
        asked.append(1)
        return g * 2.0

    @rg.extend.primitive("double_in_test_templates", lambda x: x)
    def double(x: Any, out: Any) -> None:
        np.multiply(x, 2.0, out)

    rg.extend.defvjp(double, rule)
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y = double(double(double(x))).sum()
    assert rg.grad(y, x).value.tolist() == [8.0, 8.0]
    assert len(asked) == 3


def test_a_rule_that_looks_at_a_number_is_asked_for_each_number() -> None:
    g = rg.Graph()
    x = g.param([1.5, 2.0])
    for n in (2, 3, 0, 1, 2.0, -1, 0.5):
        expected = n * np.array([1.5, 2.0]) ** (n - 1)
        np.testing.assert_allclose(rg.grad((x**n).sum(), x).value, expected)
        if n:
            np.testing.assert_allclose(rg.grad((x / n).sum(), x).value, 1 / n)


@pytest.mark.parametrize("at", range(1, 20))
def test_an_error_while_it_is_built_leaves_nothing_behind(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, other_y, other_params = chain(6)
    rg.grad(other_y, other_params)  # templates are there now
    g, y, params = chain(6)
    add, calls = g._scheduler.add, [0]

    def failing(parents: tuple[int, ...], **options: Any) -> int:
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt
        return add(parents, **options)

    monkeypatch.setattr(g._scheduler, "add", failing)
    with pytest.raises(KeyboardInterrupt):
        rg.grad(y, params)
    monkeypatch.undo()
    g.check_invariants()
    fresh, fresh_y, fresh_params = chain(6)
    gradients, others = rg.grad(y, params), rg.grad(fresh_y, fresh_params)
    for one, other in zip(gradients, others, strict=True):
        assert one.value.tobytes() == other.value.tobytes()
    assert len(g) == len(fresh)


def test_shapes_that_change_for_ever_fill_no_memory() -> None:
    for n in range(1, _templates.MOST + 20):
        g = rg.Graph()
        x = g.param(np.ones(n))
        rg.grad(rg.tanh(x).sum(), x)
    assert len(OPS["tanh"].templates) <= _templates.MOST


def test_equal_numbers_that_are_different_attributes_have_templates_of_their_own() -> None:
    def slopes(slope: float) -> bytes:
        g = rg.Graph()
        x = g.param([-1.0, 2.0])
        return rg.grad(rg.leaky_relu(x, slope).sum(), x).value.tobytes()

    cold = []
    for slope in (0.0, -0.0):
        forget()
        cold.append(slopes(slope))
    assert cold[0] != cold[1]
    assert [slopes(0.0), slopes(-0.0)] == cold
