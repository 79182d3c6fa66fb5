"""B9: incremental backward: the params of the last layers or of one of two branches change; beside
all gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import exactly, faster
from bench._measure import DifferentOutputs

CHANGED = 5


class Chain:
    """Layers ``tanh(h @ w)``, one param each, and a gradient for each param."""

    def __init__(self, setting: Setting) -> None:
        self.width = 32
        self.swapped = setting.permuted  # True if the params come first
        self.layers = setting.size(200, 12)

    def built(self) -> tuple[rg.Graph, list[Any], list[Any]]:
        """Return a graph, its params, and their gradients."""
        g = rg.Graph()
        h = g.input(np.random.default_rng(2).normal(size=(self.width, self.width)))
        params = [g.param(matrix) for matrix in self.draw_all(np.random.default_rng(3))]
        for w in params:
            h = rg.tanh(w @ h if self.swapped else h @ w)
        return g, params, list(rg.grad(h.sum(), params))

    def draw_all(self, rng: np.random.Generator) -> list[np.ndarray]:
        return [self._matrix(rng) for _ in range(self.layers)]

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw new params for the last layers."""
        return [self._matrix(rng) for _ in range(CHANGED)]

    def _matrix(self, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(size=(self.width, self.width)) / self.width**0.5

    def changing(self, *, all_gradients: bool) -> Step:
        """Return a step that sets the last layers' params and reads their gradients, or those of
        all params.
        """
        g, params, gradients = self.built()
        changed, last = params[-CHANGED:], gradients[-CHANGED:]
        wanted = gradients if all_gradients else last

        def step(matrices: Any) -> Any:
            g.set(dict(zip(changed, matrices, strict=True)))
            g.forward(*wanted)
            return [one.value for one in last]

        return step

    def counted(self) -> tuple[float, float]:
        """Return the nodes that the last layers make run for their own gradients, and for those of
        all params.
        """
        g, params, gradients = self.built()
        g.forward(*gradients)
        rng = np.random.default_rng(4)
        found: list[int] = []
        for wanted in (gradients[-CHANGED:], gradients):
            g.set(dict(zip(params[-CHANGED:], self.draw(rng), strict=True)))
            found.append(len(g.forward(*wanted).ran))
        return found[0], found[1]


def branches(setting: Setting) -> tuple[float, float]:
    """Return the nodes that run when all params of one of two branches change, and half of those
    for both.

    The branches are added, so that neither one's gradients depend on the other's values.
    """
    chain = Chain(setting)
    g = rg.Graph()
    x = g.input(np.random.default_rng(2).normal(size=(chain.width, chain.width)))
    ends, params = [], []
    of_branch: dict[Any, int] = {}  # forward nodes, kept alive so that none is taken for another
    for branch in range(2):
        h, own = x, []
        for _ in range(chain.layers // 4):
            own.append(g.param(np.eye(chain.width) * 0.5))
            products = h @ own[-1]
            h = rg.tanh(products)
            of_branch |= {products: branch, h: branch}
        ends.append(h)
        params.append(own)
    gradients = rg.grad((ends[0] + ends[1]).sum(), [*params[0], *params[1]])
    g.forward(*gradients)
    g.set({w: np.eye(chain.width) * 0.25 for w in params[0]})
    ran = g.forward(*gradients).ran
    if any(of_branch.get(var) == 1 for var in ran):
        raise DifferentOutputs("a node of the unchanged branch ran")
    g.set({w: np.eye(chain.width) * 0.25 for w in params[1]})
    both = g.forward(*gradients).ran
    if set(map(id, ran)) & set(map(id, both)):
        raise DifferentOutputs("a node ran for both branches; they share none but the join")
    # By symmetry each branch is half of what all params make run.
    g.set({w: np.eye(chain.width) * 0.5 for own in params for w in own})
    return len(ran), len(g.forward(*gradients).ran) / 2


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    chain = Chain(setting)
    return [
        Count(
            f"last {CHANGED} of {chain.layers} layers change",
            "nodes",
            chain.counted,
            "full backward",
            faster(15.0),
        ),
        Contest(
            f"last {CHANGED} of {chain.layers} layers change",
            chain.draw,
            Side("reactgrad", lambda: chain.changing(all_gradients=False)),
            (
                Peer(
                    Side("full backward", lambda: chain.changing(all_gradients=True)), faster(10.0)
                ),
            ),
        ),
        Count(
            "one of two branches changes",
            "nodes",
            lambda: branches(setting),
            "that branch",
            exactly(),
        ),
    ]


WORKLOAD = Workload("B9", "incremental backward", cases)


def test_b09(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
