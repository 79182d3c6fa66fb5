"""All scenarios as one more axis: equal to forks, refused where an op does not allow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError

STRIKES = np.array([80.0, 100.0, 120.0])


def _book(g: rg.Graph, x: Any, v: Any) -> Any:
    d = (rg.log(x / STRIKES) + v * v / 2.0) / v
    return (x * rg.norm_cdf(d) - STRIKES * rg.norm_cdf(d - v)).sum()


ALLOWED: dict[str, Callable[[rg.Graph, Any, Any], Any]] = {
    "a book": _book,
    "one number": lambda g, x, v: rg.exp(-x * v) + 1.0,
    "means and extrema": lambda g, x, v: (
        (x * STRIKES).mean() + (v * STRIKES).max() - rg.std(x * STRIKES)
    ),
    "axes": lambda g, x, v: (
        ((x * np.ones((2, 3))).sum(axis=1, keepdims=True) * v).sum(axis=0)[0:1].sum()
        if False
        else ((x * np.ones((2, 3))).sum(axis=1) * v).mean()
    ),
    "stacks": lambda g, x, v: rg.stack([x, v, x * v]).max(),
    "choices": lambda g, x, v: rg.where(x > 100.0, x * v, -x) + rg.maximum(v, 0.2),
    "shapes": lambda g, x, v: (rg.stack([x, v]).reshape(2, 1) * STRIKES).T.sum(),
    "no input": lambda g, x, v: g.input(3.0) * 2.0,
}
SPOTS, VOLS = np.linspace(70.0, 130.0, 9), [0.1, 0.2, 0.35]


@pytest.mark.parametrize("name", ALLOWED)
def test_a_batch_is_what_forks_give(name: str) -> None:
    g = rg.Graph()
    x, v = g.input(100.0, name="x"), g.input(0.2, name="v")
    y = ALLOWED[name](g, x, v)
    outputs = {"y": y, "x": x}
    batched = rg.scenarios(outputs, {x: SPOTS, v: VOLS}, gradients=True, batch=True)
    forked = rg.scenarios(outputs, {x: SPOTS, v: VOLS}, gradients=True, batch=False)
    for label in outputs:
        np.testing.assert_allclose(batched[label], forked[label], rtol=1e-12)
        for leaf in (x, v):
            np.testing.assert_allclose(
                batched.grad(label, leaf), forked.grad(label, leaf), rtol=1e-10, atol=1e-14
            )


def test_blocks_of_a_large_array_and_an_output_that_is_one() -> None:
    g = rg.Graph()
    x, w = g.input(2.0, name="x"), g.input(np.linspace(0.0, 1.0, 2000), name="w")
    y = x * w
    values = np.linspace(0.0, 1.0, 100)  # in blocks of 32
    found = rg.scenarios([y, y.sum()], {x: values}, batch=True)
    np.testing.assert_allclose(found[y], values[:, None] * w.value, rtol=1e-14)
    assert found.complete


def test_inputs_that_are_arrays() -> None:
    g = rg.Graph()
    w, x = g.input([1.0, 2.0], name="w"), g.input(3.0, name="x")
    y = (w * x).sum()
    values = [[float(i), 1.0] for i in range(30)]
    found = rg.scenarios(y, {w: values}, batch=True, gradients=[w, x])
    assert found[y].tolist() == [3.0 * (i + 1.0) for i in range(30)]
    assert found.grad(y, w).shape == (30, 2)
    assert found.grad(y, x).tolist() == [i + 1.0 for i in range(30)]


REFUSED: dict[str, Callable[[rg.Graph, Any], Any]] = {
    "is a Python function": lambda g, x: rg.lift(lambda v: v)(x),
    "no batched form here": lambda g, x: rg.cumsum(rg.stack([x, x])).sum(),
    "is no float": lambda g, x: g["n"] * 2.0,
    "has a cutoff": lambda g, x: _with_cutoff(x * 2.0) + 1.0,
}


def _with_cutoff(node: Any) -> Any:
    node.cutoff = "equal"
    return node


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_batched_is_refused_or_forked(text: str) -> None:
    g = rg.Graph()
    x, n = g.input(100.0, name="x"), g.input(2, name="n")
    y = REFUSED[text](g, x)
    key = n if "float" in text else x
    values = {key: list(range(40))}
    with pytest.raises(ScenarioError, match=text):
        rg.scenarios(y, values, batch=True)
    assert rg.scenarios(y, values).complete


def test_detached_operands_have_no_batch_of_gradients() -> None:
    g = rg.Graph()
    x = g.input(2.0, name="x")
    y = x.detach() * x
    found = rg.scenarios(y, {x: np.arange(40.0)}, gradients=True)
    assert (found.grad(y, x) == np.arange(40.0)).all()
    with pytest.raises(ScenarioError, match="detached"):
        rg.scenarios(y, {x: np.arange(40.0)}, gradients=True, batch=True)
