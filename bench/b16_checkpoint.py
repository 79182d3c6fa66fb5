"""B16: checkpointed layers, beside the same layers without checkpoints and PyTorch's checkpoint;
peak memory.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load


class Layers:
    """Layers of some ``tanh`` and ``sin`` each.

    One step is a forward and the gradient of the input.
    """

    def __init__(self, setting: Setting, width: int) -> None:
        self.width = width
        self.layers = setting.size(16, 3)
        self.depth = 8
        self.swapped = setting.permuted  # `sin` comes last

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=self.width)

    def _block(self, x: Any, tanh: Any, sin: Any) -> Any:
        first, last = (tanh, sin) if self.swapped else (sin, tanh)
        for _ in range(self.depth // 2):
            x = last(first(x))
        return x

    def ours(self, checkpointed: bool) -> Step:
        g = rg.Graph()
        x = h = g.param(np.zeros(self.width))
        for _ in range(self.layers):
            if checkpointed:
                h = rg.checkpoint(self._block, h, rg.tanh, rg.sin)
            else:
                h = self._block(h, rg.tanh, rg.sin)
        gradient = rg.grad(h.sum(), x)

        def step(values: Any) -> Any:
            x.set(values)
            g.forward(gradient)
            return gradient

        return step

    def with_checkpoints(self) -> Step:
        return self.ours(True)

    def without(self) -> Step:
        return self.ours(False)

    def torch(self) -> Step:
        torch = load("torch")
        checkpoint = load("torch.utils.checkpoint").checkpoint

        def step(values: Any) -> Any:
            x = h = values.clone().requires_grad_()
            for _ in range(self.layers):
                h = checkpoint(self._block, h, torch.tanh, torch.sin, use_reentrant=False)
            h.sum().backward()
            return x.grad

        return step

    def peaks(self) -> tuple[float, float]:
        """Return the peak memory of a first step, in arrays of one layer: with checkpoints, and
        without.
        """
        values = self.draw(np.random.default_rng(1))
        found: list[float] = []
        for checkpointed in (True, False):
            step = self.ours(checkpointed)
            tracemalloc.start()
            try:
                step(values)
                found.append(tracemalloc.get_traced_memory()[1] / values.nbytes)
            finally:
                tracemalloc.stop()
        return found[0], found[1]


def read(gradient: Any) -> Any:
    """Return the gradient's value."""
    return gradient.value


def to_torch(values: Any) -> Any:
    """Return the values as a tensor."""
    return load("torch").from_numpy(values)


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for width in (16, setting.size(100_000, 64)):
        layers = Layers(setting, width)
        peers = (
            Peer(Side("no checkpoints", layers.without, show=read), at_most(2.0)),
            Peer(
                Side("PyTorch", layers.torch, take=to_torch, show=np.asarray, needs="torch"),
                faster(1.0),
            ),
        )
        ours = Side("reactgrad", layers.with_checkpoints, show=read)
        name = f"{layers.layers} layers of {layers.depth} ops, {width} numbers"
        found.append(Contest(name, layers.draw, ours, peers))
    large = Layers(setting, setting.size(100_000, 10_000))
    found.append(Count("peak memory", "arrays", large.peaks, "no checkpoints", at_most(0.5)))
    return found


WORKLOAD = Workload("B16", "checkpoints", cases)


def test_b16(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
