"""B18: a model that is written, differentiated and dropped at each step; beside PyTorch, and beside the
same model held.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, faster
from bench._peers import load

SHAPE = (4, 8)


class Chain:
    """``h = tanh(h * w + b)`` again and again; each w and b is a param."""

    def __init__(self, layers: int, *, swapped: bool) -> None:
        self.layers = layers
        self.swapped = swapped  # True if the param comes first
        rng = np.random.default_rng(0)
        # So that the signs of the input pass all layers, and the output depends on it.
        self.ws = [1.05 + 0.01 * rng.normal(size=SHAPE) for _ in range(layers)]
        self.bs = [0.001 * rng.normal(size=SHAPE) for _ in range(layers)]

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=SHAPE)

    def _ours(self) -> tuple[rg.Graph, Any, list[Any], Any]:
        g = rg.Graph()
        x = g.input(np.ones(SHAPE))
        params = [(g.param(w), g.param(b)) for w, b in zip(self.ws, self.bs, strict=True)]

        def model() -> Any:
            h = x
            for w, b in params:
                h = rg.tanh((w * h if self.swapped else h * w) + b)
            return h.sum()

        return g, x, [one for pair in params for one in pair], model

    def written(self) -> Step:
        """Return a step that writes the model anew."""
        g, x, params, model = self._ours()

        def step(batch: np.ndarray) -> Any:
            x.set(batch)
            g.zero_grad()
            loss = model()
            loss.backward()
            return [loss.value, params[-2].grad, params[-1].grad]

        return step

    def held(self) -> Step:
        """Return a step of the model that was built once."""
        g, x, params, model = self._ours()
        loss = model()

        def step(batch: np.ndarray) -> Any:
            x.set(batch)
            g.zero_grad()
            loss.backward()
            return [loss.value, params[-2].grad, params[-1].grad]

        return step

    def torch(self) -> Step:
        """Return PyTorch's step."""
        torch = load("torch")
        torch.set_num_threads(1)
        ws = [torch.tensor(w, requires_grad=True) for w in self.ws]
        bs = [torch.tensor(b, requires_grad=True) for b in self.bs]

        def step(batch: np.ndarray) -> Any:
            for param in (*ws, *bs):
                param.grad = None
            h = torch.from_numpy(batch)
            for w, b in zip(ws, bs, strict=True):
                h = torch.tanh((w * h if self.swapped else h * w) + b)
            loss = h.sum()
            loss.backward()
            return [loss.detach().numpy(), ws[-1].grad.numpy(), bs[-1].grad.numpy()]

        return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for ops in (30, 300, 3000):
        chain = Chain(setting.size(ops, 30) // 3, swapped=setting.permuted)
        found.append(
            Contest(
                f"{ops} ops written anew",
                chain.draw,
                Side("reactgrad", chain.written),
                (
                    Peer(Side("torch", chain.torch, needs="torch"), faster(1 / 0.7)),
                    Peer(Side("held", chain.held), at_most(3.0)),
                ),
            )
        )
    return found


WORKLOAD = Workload("B18", "define by run", cases)


def test_b18(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
