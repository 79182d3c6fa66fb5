"""B17: training steps that release their values, beside keeping them and PyTorch; memory and page
faults.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load


class Network:
    """Layers of ``tanh(x @ w)``; one step is a forward and the gradients of all params."""

    def __init__(self, setting: Setting) -> None:
        self.batch, self.width = setting.size(1024, 64), setting.size(256, 32)
        self.layers = 10 if setting.permuted else 16

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=(self.batch, self.width))

    def params(self) -> list[np.ndarray]:
        rng = np.random.default_rng(2)
        scale = self.width**0.5
        return [rng.normal(size=(self.width, self.width)) / scale for _ in range(self.layers)]

    def ours(self, retain: bool | None) -> Step:
        g = rg.Graph()
        y = x = g.input(np.zeros((self.batch, self.width)))
        params = [g.param(w) for w in self.params()]
        for w in params:
            y = rg.tanh(y @ w)
        loss = (y * y).sum()

        def step(values: Any) -> Any:
            g.zero_grad()
            x.set(values)
            loss.backward(retain_graph=retain)
            return [w.grad for w in params]

        return step

    def released(self) -> Step:
        return self.ours(False)

    def kept(self) -> Step:
        return self.ours(None)

    def torch(self) -> Step:
        torch = load("torch")
        params = [torch.from_numpy(w).requires_grad_() for w in self.params()]

        def step(values: Any) -> Any:
            y = values
            for w in params:
                w.grad = None
                y = torch.tanh(y @ w)
            (y * y).sum().backward()
            return [w.grad for w in params]

        return step

    def peaks(self) -> tuple[float, float]:
        """Return the peak memory of some steps, in arrays of one layer: values released, and kept."""
        values = [self.draw(np.random.default_rng(i)) for i in range(5)]
        found: list[float] = []
        for build in (self.released, self.kept):
            step = build()
            tracemalloc.start()
            try:
                for one in values:
                    step(one)
                found.append(tracemalloc.get_traced_memory()[1] / values[0].nbytes)
            finally:
                tracemalloc.stop()
        return found[0], found[1]

    def faults(self) -> tuple[float, None]:
        """Return the number of pages that the system clears in a step of a loop."""
        from resource import RUSAGE_SELF, getrusage

        step = self.released()
        values = [self.draw(np.random.default_rng(i)) for i in range(9)]
        for one in values[:6]:
            step(one)
        before = getrusage(RUSAGE_SELF).ru_minflt
        for one in values[6:]:
            step(one)
        return (getrusage(RUSAGE_SELF).ru_minflt - before) / 3, None


def to_torch(values: Any) -> Any:
    """Return the values as a tensor."""
    return load("torch").from_numpy(values)


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    network = Network(setting)
    peers = (
        Peer(Side("values kept", network.kept), at_most(1.2)),
        Peer(Side("PyTorch", network.torch, take=to_torch, needs="torch"), faster(1.0)),
    )
    name = f"{network.layers} layers, {network.batch} x {network.width}"
    found: list[Case] = [
        Contest(name, network.draw, Side("reactgrad", network.released), peers, keep=False),
        Count("peak memory", "arrays", network.peaks, "values kept", at_most(0.6)),
    ]
    if not setting.small:  # small arrays lie in pages that the process keeps anyway
        found.append(Count("page faults of a step", "pages", network.faults))
    return found


WORKLOAD = Workload("B17", "values let go", cases)


def test_b17(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
