"""Checksums of PyTorch's layers and criteria, for machines without PyTorch.

``python -m tests.nn.numbers_of_torch > tests/nn/numbers_of_torch.json`` makes the table anew; it needs PyTorch.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.nn.cases import LAYERS, LOSSES, operands


def weights(shape: tuple[int, ...], start: int) -> np.ndarray[Any, Any]:
    """Numbers that any machine makes alike: a cosine at each place."""
    count = int(np.prod(shape))
    return (0.9 * np.cos(1.3 * np.arange(count) + start)).reshape(shape)


def table() -> dict[str, list[list[float]]]:
    """Sums of results and of gradients by the input, each times `weights`."""
    import torch

    layers: list[list[float]] = []
    for name, args, options, shape in LAYERS:
        layer = getattr(torch.nn, name)(*args, **options).double()
        with torch.no_grad():
            for i, param in enumerate(layer.parameters()):
                param.copy_(torch.tensor(weights(tuple(param.shape), i)))
        x = torch.tensor(weights(shape, 7), requires_grad=True)
        y = layer(x)
        cost = (y * torch.tensor(weights(tuple(y.shape), 3))).sum()
        cost.backward()
        found = [cost.item(), (x.grad * torch.tensor(weights(shape, 5))).sum().item()]
        y = layer.eval()(x)
        layers.append([*found, (y * torch.tensor(weights(tuple(y.shape), 3))).sum().item()])
    losses: list[list[float]] = []
    for name, options, kind in LOSSES:
        criterion = getattr(torch.nn, name)(
            **{
                key: torch.tensor(one) if isinstance(one, list) else one
                for key, one in options.items()
            }
        ).double()
        first, *others = operands(kind)
        x = torch.tensor(first, requires_grad=True)
        cost = criterion(x, *map(torch.tensor, others)).sum()
        cost.backward()
        slope = (x.grad * torch.tensor(weights(first.shape, 5))).sum().item()
        losses.append([cost.item(), slope])
    return {"layers": layers, "losses": losses}


if __name__ == "__main__":
    print(json.dumps(table(), indent=1))
