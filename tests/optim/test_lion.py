"""Lion, which PyTorch does not have, beside its formula (Chen et al., 2023) in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import cnn, mlp

OPTIONS: list[dict[str, Any]] = [
    {"lr": 0.01},
    {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": 0.1},
    {"lr": 0.01, "weight_decay": 0.3, "maximize": True},
]


def lion(w: Any, m: Any, g: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Algorithm 2 of the paper: the params and the mean after a step."""
    lr, decay = options["lr"], options.get("weight_decay", 0.0)
    b1, b2 = options.get("betas", (0.9, 0.99))
    g = -g if options.get("maximize") else g
    update = np.sign(b1 * m + (1.0 - b1) * g)
    return w - lr * (update + decay * w), b2 * m + (1.0 - b2) * g


def slopes(values: list[Any], x: Any, y: Any) -> list[Any]:
    """The gradients of the mean squared error of two layers, by hand."""
    w1, b1, w2, b2 = values
    hidden = np.tanh(x @ w1 + b1)
    back = 2.0 * (hidden @ w2 + b2 - y) / y.size
    inner = (back @ w2.T) * (1.0 - hidden**2)
    return [x.T @ inner, inner.sum(0), hidden.T @ back, back.sum(0)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_25_steps_are_those_of_the_formula(kind: str, options: dict[str, Any]) -> None:
    g, params, loss = mlp() if kind == "mlp" else cnn()
    opt = rg.optim.Lion(params, **options)
    values = [one.value for one in params]
    means = [np.zeros(one.shape) for one in params]
    sizes = []
    for _ in range(25):
        opt.zero_grad()
        loss.backward()
        found = [one.grad for one in params]
        if kind == "mlp":
            found = slopes(values, g["x"].value, g["y"].value)
        opt.step()
        after = [lion(*one, options) for one in zip(values, means, found, strict=True)]
        values, means = [list(one) for one in zip(*after, strict=True)]
        sizes.append(len(g))
        for one, value in zip(params, values, strict=True):
            np.testing.assert_allclose(one.value, value, rtol=1e-8, atol=1e-8)
    for one, mean in zip(params, means, strict=True):
        state = opt.state_dict()["state"][one.name]
        np.testing.assert_allclose(state["exp_avg"], mean, rtol=1e-8, atol=1e-12)
    assert len({*sizes[3:]}) == 1
