"""A run that stops at any step and goes on from its checkpoint ends with the same bits as one that never stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.change._draws import draw_next
from tests.io.files import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(22, 5))
Y = (X.sum(axis=1) > 0).astype(np.int64)


class Momentum:
    """A step by hand."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.moments = {name: np.zeros_like(one.value) for name, one in params.items()}

    def step(self) -> None:
        for name, one in self.params.items():
            self.moments[name] = 0.9 * self.moments[name] + one.grad
            one.set(one.value - 0.05 * self.moments[name])
            one.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return {"moments": self.moments}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.moments = dict(state["moments"])


class Model:
    def __init__(self) -> None:
        self.params = {"w": rg.param(np.full((5, 4), 0.1)), "v": rg.param(np.linspace(-1, 1, 4))}

    def state_dict(self) -> dict[str, Any]:
        return {name: one.value for name, one in self.params.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            self.params[name].set(value)


class Run:
    """A model with dropout and noise, its optimiser and its loader."""

    def __init__(self) -> None:
        self.graph = rg.Graph(rng=3)
        with self.graph:
            self.model = Model()
            self.x = rg.input(X[:4])
            self.y = rg.input(Y[:4])
            self.noise = rg.random.normal((4,), 0.0, 0.1)
            self.hidden = rg.dropout(rg.tanh(self.x @ self.model.params["w"]), 0.3)
            out = self.hidden @ self.model.params["v"] + self.noise
            self.loss = ((out - self.y) ** 2).mean()
        self.optimizer = Momentum(self.model.params)
        self.loader = rg.data.DataLoader(
            rg.data.ArrayDataset(X, Y), 4, shuffle=True, rng=1, drop_last=True
        )
        self.losses: list[float] = []

    @property
    def parts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "loader": self.loader,
            "generator": self.graph,
        }

    def go(self, steps: int) -> None:
        while steps > 0:
            for x, y in self.loader:
                self.graph.set({self.x: x, self.y: y})
                self.noise.touch()
                self.hidden.touch()
                self.loss.backward()
                self.losses.append(float(self.loss.value))
                self.optimizer.step()
                steps -= 1
                if steps == 0:
                    break


@pytest.mark.parametrize("stop", [0, 1, 5, 7])
def test_a_run_by_hand_goes_on_bit_for_bit(tmp_path: Path, stop: int) -> None:
    whole = Run()
    whole.go(12)
    first = Run()
    first.go(stop)
    rg.save_checkpoint(tmp_path / "run", **first.parts, losses=first.losses)
    second = Run()
    second.go(2)  # used already
    second.losses = rg.load_checkpoint(tmp_path / "run", **second.parts)["losses"]
    size = len(second.graph)
    second.go(12 - stop)
    assert len(second.graph) <= max(size, len(whole.graph))
    assert same(second.losses, whole.losses)
    assert same(second.model.state_dict(), whole.model.state_dict())


def test_draws_that_are_built_later_take_what_was_saved(tmp_path: Path) -> None:
    def draw(graph: rg.Graph) -> Any:
        with graph:
            return rg.random.normal((3,))

    g, h, other = rg.Graph(rng=1), rg.Graph(rng=1), rg.Graph(rng=5)
    x = draw(g)
    x.touch()
    x.touch()
    rg.save_checkpoint(tmp_path / "a", generator=g)
    rg.load_checkpoint(tmp_path / "a", generator=h)
    rg.save_checkpoint(tmp_path / "b", generator=h)  # of draws that are still to come
    rg.load_checkpoint(tmp_path / "b", generator=other)
    assert other.seed == 1
    for graph in (h, other):
        y = draw(graph)
        assert same(y.value, x.value)
        y.touch()
        z = draw(g)  # another draw is another one
        assert not same(y.value, z.value)


def test_draws_that_were_not_touched_since_stay_and_run_nothing(tmp_path: Path) -> None:
    g = rg.Graph(rng=1)
    with g:
        x = rg.random.normal((3,))
    before = x.value
    rg.save_checkpoint(tmp_path / "a", generator=g)
    rg.load_checkpoint(tmp_path / "a", generator=g)
    assert not x.is_stale
    x.touch()
    assert not same(x.value, before)
    rg.load_checkpoint(tmp_path / "a", generator=g)
    assert same(x.value, before)


def test_draws_of_calls_are_counted_whichever_node_draws(tmp_path: Path) -> None:
    def graph() -> tuple[rg.Graph, Any, Any]:
        g = rg.Graph(rng=1)
        with g:
            return g, rg.random.normal((3,)), rg.random.normal((3,))

    def call(graph: rg.Graph, node: Any) -> Any:
        draw_next(graph, [node.parents[-1]._slot])
        return node.value

    g, a, b = graph()
    found = [call(g, one) for one in (a, a, b, a)]
    assert len({one.tobytes() for one in found}) == 4
    h, c, d = graph()
    assert same([call(h, one) for one in (d, c)], found[:2])
    rg.save_checkpoint(tmp_path / "a", generator=h)
    i, e, _ = graph()
    rg.load_checkpoint(tmp_path / "a", generator=i)
    assert same([call(i, one) for one in (e, e)], found[2:])
    fork = h.fork()
    assert same(call(fork, fork[c]), found[2])


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"seed": 1, "draws": {}, "calls": -1},
        {"seed": -1, "draws": {}, "calls": 0},
        {"seed": 1, "draws": {"a": 1}, "calls": 0},
        {"seed": 1, "draws": {1: 1 << 64}, "calls": 0},
        {"seed": 1, "draws": [], "calls": 0},
    ],
)
def test_draws_that_cannot_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Any
) -> None:
    from reactgrad.io import _checkpoint

    g = rg.Graph(rng=4)
    with monkeypatch.context() as patched:
        patched.setattr(_checkpoint, "draws_of", lambda graph: state)
        rg.save_checkpoint(tmp_path / "a", generator=g)
    with pytest.raises(
        rg.LoadError, match="the state of generator= does not fit: draws of a graph"
    ):
        rg.load_checkpoint(tmp_path / "a", generator=g)
    assert g.seed == 4
    rg.save_checkpoint(tmp_path / "a", generator=1)
    with pytest.raises(
        rg.LoadError, match="generator= is a graph, whose draws go on, and the file"
    ):
        rg.load_checkpoint(tmp_path / "a", generator=g)


@pytest.mark.parametrize("stop", [1, 6, 8])
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Lion", "LBFGS"])
def test_models_and_optimisers_go_on_bit_for_bit(tmp_path: Path, optimizer: str, stop: int) -> None:
    nn: Any = pytest.importorskip("reactgrad.nn")
    optim: Any = pytest.importorskip("reactgrad.optim")

    def run() -> dict[str, Any]:
        graph = rg.Graph(rng=3)
        with graph:
            net = nn.Sequential(nn.Linear(5, 8, rng=0), nn.ReLU(), nn.Linear(8, 2, rng=1))
        opt = getattr(optim, optimizer)(net.parameters(), lr=0.01)
        return {
            "generator": graph,
            "model": net,
            "optimizer": opt,
            "scheduler": optim.StepLR(opt, 3, gamma=0.5),
            "loader": rg.data.DataLoader(rg.data.ArrayDataset(X, Y), 4, shuffle=True, rng=1),
        }

    def go(parts: dict[str, Any], steps: int) -> list[float]:
        net, opt, losses = parts["model"], parts["optimizer"], []
        criterion = nn.CrossEntropyLoss()
        while True:
            for x, y in parts["loader"]:

                def closure(x: Any = x, y: Any = y) -> Any:
                    opt.zero_grad()
                    loss = criterion(net(x), y)
                    loss.backward()
                    losses.append(float(loss.value))
                    return loss

                if optimizer == "LBFGS":
                    opt.step(closure)
                else:
                    closure()
                    opt.step()
                parts["scheduler"].step()
                steps -= 1
                if steps == 0:
                    return losses

    whole, first, second = run(), run(), run()
    expected = go(whole, 15)
    begun = go(first, stop)
    rg.save_checkpoint(tmp_path / "run", **first)
    rg.load_checkpoint(tmp_path / "run", **second)
    assert begun + go(second, 15 - stop) == expected
    assert same(second["model"].state_dict(), whole["model"].state_dict())
