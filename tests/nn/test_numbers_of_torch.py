"""Layers and criteria beside checksums of PyTorch's, which were written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn
from tests.nn.cases import LAYERS, LOSSES, operands
from tests.nn.numbers_of_torch import weights

NUMBERS = json.loads((Path(__file__).parent / "numbers_of_torch.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("case", "numbers"),
    list(zip(LAYERS, NUMBERS["layers"], strict=True)),
    ids=[name for name, *_ in LAYERS],
)
def test_a_layer_has_the_numbers_of_torch(case: Any, numbers: list[float]) -> None:
    name, args, options, shape = case
    with rg.Graph() as g:
        layer = getattr(nn, name)(*args, **options)
    for i, param in enumerate(layer.parameters()):
        param.set(weights(param.shape, i))
    x = g.input(weights(shape, 7))
    y = layer(x)
    cost = (y * weights(y.value.shape, 3)).sum()
    slope = (rg.grad(cost, x) * weights(shape, 5)).sum()
    found = [cost.item(), slope.item()]
    layer.eval()
    np.testing.assert_allclose([*found, cost.item()], numbers, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("case", "numbers"),
    list(zip(LOSSES, NUMBERS["losses"], strict=True)),
    ids=[name for name, *_ in LOSSES],
)
def test_a_criterion_has_the_numbers_of_torch(case: Any, numbers: list[float]) -> None:
    name, options, kind = case
    first, *others = operands(kind)
    x = rg.Graph().input(first)
    cost = getattr(nn, name)(**options)(x, *others).sum()
    slope = (rg.grad(cost, x) * weights(first.shape, 5)).sum()
    np.testing.assert_allclose([cost.item(), slope.item()], numbers, rtol=1e-9, atol=1e-9)
