"""Steps equal PyTorch's: 25 of each optimiser, on two layers and on a convolution, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import cnn, mlp

torch: Any = pytest.importorskip("torch")

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.001, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.8, "momentum": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
]


def in_torch(kind: str, start: list[Any], x: Any, y: Any) -> tuple[list[Any], Any]:
    """Return tensors like the params, and a function that returns their loss."""
    params = [torch.tensor(one, requires_grad=True) for one in start]
    tx, ty = torch.tensor(x), torch.tensor(y)

    def loss() -> Any:
        if kind == "mlp":
            w1, b1, w2, b2 = params
            out = torch.tanh(tx @ w1 + b1) @ w2 + b2
        else:
            kernel, bias, w, b = params
            hidden = torch.relu(torch.nn.functional.conv2d(tx, kernel, bias))
            out = torch.nn.functional.max_pool2d(hidden, 2).reshape(3, 8) @ w + b
        return ((out - ty) ** 2).mean()

    return params, loss


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=lambda one: str(one))
def test_25_steps_equal_pytorchs(name: str, options: dict[str, Any], kind: str) -> None:
    g, params, loss = mlp() if kind == "mlp" else cnn()
    theirs, their_loss = in_torch(kind, [one.value for one in params], g["x"].value, g["y"].value)
    opt, their_opt = (
        getattr(rg.optim, name)(params, **options),
        getattr(torch.optim, name)(theirs, **options),
    )
    for i in range(25):
        opt.zero_grad()
        loss.backward()
        opt.step()
        their_opt.zero_grad()
        their_loss().backward()
        their_opt.step()
        if i == 3:
            nodes = len(g)
    for one, their in zip(params, theirs, strict=True):
        np.testing.assert_allclose(one.value, their.detach().numpy(), rtol=1e-8, atol=1e-8)
        assert one.value_version == 26
    assert len(g) == nodes
