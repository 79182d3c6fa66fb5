"""Random programs in loops: with rows taken over and without, all that can be seen is the same."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

UNARY = ("tanh", "sigmoid", "exp", "square")


class Loop:
    """A loop that writes one of its models at each step, and what it holds."""

    def __init__(self, most: int) -> None:
        g = self.g = rg.Graph(rng=1)
        g._generations.most = most
        self.ws = [g.param(np.full((2, 3), 0.1 * i + 0.1)) for i in range(3)]
        self.ss = [g.param(0.2 * i + 0.3) for i in range(2)]
        self.xs = [g.input(np.full((2, 3), 0.3 * i - 0.2)) for i in range(2)]
        self.held: list[rg.Var] = []
        self.runs: list[Any] = []

    def built(self, model: list[tuple[str, int]], k: int, seen: list[object]) -> rg.Var:
        """Write the model of step k."""
        h, former = self.xs[0], [self.xs[0]]
        for kind, n in model:
            if kind == "unary":
                h = getattr(rg, UNARY[n % 4])(h)
            elif kind == "param":
                h = h * self.ws[n % 3] + self.ss[n % 2]
            elif kind == "number":
                h = h * (2.0, 0.5, 3)[n % 3]
            elif kind == "by step":
                h = h + self.xs[1] if (k // (1 + n % 3)) % 2 else rg.tanh(h)
            elif kind == "length":
                for _ in range(k % (2 + n % 2)):
                    h = rg.tanh(h)
            elif kind == "read":
                seen.append(h.value.tobytes())
            elif kind == "by value":
                h = h * 2.0 if h.value.sum() > 0 else h
            elif kind == "detach":
                h = h + h.detach() * 0.5
            elif kind == "no_grad":
                with rg.no_grad():
                    still = h * 3.0
                h = h + still
            elif kind == "join":
                h = h + former[n % len(former)]
            elif kind == "array":
                h = h + np.full((2, 3), 0.1 * n)
            elif kind == "error" and k % 3 == 1:
                with pytest.raises(rg.ReactgradError):
                    h @ np.zeros(7)
            elif kind == "hook" and k % 5 == 2:
                h.register_hook(lambda v: v * 2.0)
            elif kind == "name" and k % 5 == 2:
                h.name = "named"
            elif kind == "second":
                self.held[-1:] = [(h * h).sum()]
            former.append(h)
        return h.sum()

    def step(self, pick: Random, model: list[tuple[str, int]], k: int) -> list[object]:
        """Do something, and return what is seen of it."""
        seen: list[object] = []
        for _ in range(pick.randrange(3)):
            leaf = pick.choice([*self.ws, *self.xs, *self.ss])
            leaf.set(np.full(leaf.shape, pick.random()) if leaf.shape else pick.random())
        try:
            loss = self.built(model, k, seen)
            if pick.random() < 0.3:
                self.g.zero_grad()
            act, rare = pick.random(), pick.random()
            if act < 0.6:
                self.runs.append(loss.backward())
                seen.append([n.name for n in self.runs[-1].ran])
            elif act < 0.75:
                gradients = rg.grad(loss, self.ws, allow_unused=True)
                seen.append([one if one is None else one.value.tobytes() for one in gradients])
                if act < 0.65:
                    self.held += [one for one in gradients if one is not None]
            elif act < 0.85:
                self.held.append(loss)
            else:
                seen.append(float(loss.value))
            self._rarely(rare, loss, seen, k)
            seen.append(loss.name)
        except rg.ReactgradError as error:  # a name that is taken, nothing to train
            seen.append(type(error))
        if pick.random() < 0.2:
            self.held.clear()
        return seen

    def _rarely(self, which: float, loss: rg.Var, seen: list[object], k: int) -> None:
        if which < 0.04:
            (self.ws[0].unfreeze if self.ws[0].frozen else self.ws[0].freeze)()
        elif which < 0.08:
            h = self.g.fork()
            h[self.ss[0]].set(9.0)
            seen.append(float(h[loss].value))
        elif which < 0.12:
            with self.g.whatif({self.ss[0]: 7.0}) as w:
                seen.append(float(w[loss].value))
        elif which < 0.16 and loss.parents[0].parents:
            loss.parents[0].replace_parent(0, self.xs[1])
        elif which < 0.2:
            rows = 2 + k % 2
            self.g.set({leaf: np.full((rows, 3), 0.3) for leaf in (*self.ws, *self.xs)})

    def seen(self, *, whole: bool) -> list[object]:
        """Return all that can be seen of the graph."""
        g = self.g
        found: list[object] = [len(g)]
        if whole:
            found.append([(n.name, n.state, n.value_version) for n in g.nodes])
            found.append([[c.name for c in leaf.children] for leaf in (*self.ws, *self.xs)])
            g.check_invariants()
        leaves = (*self.ws, *self.ss)
        found.append([None if one.grad is None else one.grad.tobytes() for one in leaves])
        found.append([(one.name, one.value_version, one.state) for one in self.held])
        found.append([[n.name for n in run.ran] for run in self.runs[-3:]])
        return found


KINDS = (
    *("unary", "unary", "param", "param", "number", "by step", "length", "read", "by value"),
    *("detach", "no_grad", "join", "array", "error", "hook", "name", "second"),
)


def programs(seeds: range) -> None:
    taken = 0
    for seed in seeds:
        found: list[list[object]] = []
        for most in (8, 0):
            pick = Random(seed)
            models = [
                [(pick.choice(KINDS), pick.randrange(12)) for _ in range(pick.randint(1, 9))]
                for _ in range(pick.choice((1, 1, 2)))
            ]
            loop = Loop(most)
            found.append([])
            for k in range(pick.randint(6, 16)):
                model = models[0] if pick.random() < 0.8 else models[-1]
                found[-1].append(loop.step(pick, model, k))
                found[-1].append(loop.seen(whole=pick.random() < 0.4))
            taken += bool(loop.g._generations.by_root)
        for k, (with_rows, without) in enumerate(zip(*found, strict=True)):
            assert with_rows == without, (seed, k // 2)
    assert taken > len(seeds) // 4  # or nothing was tried


def test_a_few_programs() -> None:
    programs(range(30))


@pytest.mark.slow
def test_many_programs() -> None:
    programs(range(1000, 1500))
