"""A GAN, built once and trained step by step: who gets gradients, what runs, that nothing grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

BATCH, NOISE, HIDDEN, DATA = 16, 3, 8, 2
SHAPES = {
    "g1": (NOISE, HIDDEN),
    "g2": (HIDDEN, DATA),
    "d1": (DATA, HIDDEN),
    "d2": (HIDDEN, 1),
}
RATE = 0.05


def start(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) * 0.7 for name, shape in SHAPES.items()}


def samples(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise, and real data on a ring."""
    rng = np.random.default_rng(1000 + step)
    angle = rng.uniform(0, 2 * np.pi, BATCH)
    return rng.normal(size=(BATCH, NOISE)), np.stack([np.cos(angle), np.sin(angle)], axis=1)


def generated(lib: Any, p: Any, noise: Any) -> Any:
    return lib.tanh(noise @ p["g1"]) @ p["g2"]


def judged(lib: Any, p: Any, data: Any) -> Any:
    """The probability that the data are real."""
    return lib.sigmoid(lib.tanh(data @ p["d1"]) @ p["d2"])


class Gan:
    """One graph: D on real data, D on detached fake data, and G through D."""

    def __init__(self) -> None:
        self.g = g = rg.Graph()
        self.noise, self.real = g.input(samples(0)[0]), g.input(samples(0)[1])
        self.p = {name: g.param(value, name=name) for name, value in start().items()}
        self.fake = generated(rg, self.p, self.noise)
        self.on_real = judged(rg, self.p, self.real)
        self.on_fake = judged(rg, self.p, self.fake.detach())
        self.d_loss = -(rg.log(self.on_real) + rg.log(1.0 - self.on_fake)).mean()
        self.g_loss = -rg.log(judged(rg, self.p, self.fake)).mean()

    def update(self, *names: str) -> None:
        self.g.set({self.p[n]: self.p[n].value - RATE * self.p[n].grad for n in names})

    def step(self, number: int) -> tuple[rg.Run, rg.Run]:
        noise, real = samples(number)
        self.g.set({self.noise: noise, self.real: real})
        self.g.zero_grad()
        d_run = self.d_loss.backward()
        self.update("d1", "d2")
        self.g.zero_grad()
        g_run = self.g_loss.backward(inputs=[self.p["g1"], self.p["g2"]])
        self.update("g1", "g2")
        return d_run, g_run

    def with_grad(self) -> set[str]:
        return {name for name, param in self.p.items() if param.grad is not None}


def test_each_loss_gives_gradients_to_whom_it_trains() -> None:
    gan = Gan()
    assert gan.fake.requires_grad
    gan.d_loss.backward()
    assert gan.with_grad() == {"d1", "d2"}  # the fake was detached
    gan.g.zero_grad()
    gan.g_loss.backward()
    assert gan.with_grad() == {"g1", "g2", "d1", "d2"}  # it goes through D
    gan.g.zero_grad()
    gan.g_loss.backward(inputs=[gan.p["g1"], gan.p["g2"]])
    assert gan.with_grad() == {"g1", "g2"}
    gan.g.zero_grad()
    for name in ("d1", "d2"):
        gan.p[name].freeze()
    gan.g_loss.backward()
    assert gan.with_grad() == {"g1", "g2"}
    with pytest.raises(rg.GradientError, match="nothing trainable"):
        gan.d_loss.backward()


def test_through_the_frozen_discriminator_come_the_same_bits() -> None:
    gan = Gan()
    gan.g_loss.backward()
    free = gan.p["g1"].grad, gan.p["g2"].grad
    gan.g.zero_grad()
    for name in ("d1", "d2"):
        gan.p[name].freeze()
    gan.g_loss.backward()
    for name, before in zip(("g1", "g2"), free, strict=True):
        assert gan.p[name].grad.tobytes() == before.tobytes()


def test_what_runs_in_a_step() -> None:
    gan = Gan()
    for number in range(3):
        d_run, g_run = gan.step(number)
    d_ran, g_ran = {node.name for node in d_run.ran}, {node.name for node in g_run.ran}
    fake, d_forward, g_forward = map(forward, (gan.fake, gan.d_loss, gan.g_loss))
    # D's step computes the fake, and both uses of D; then adjoints.
    assert fake < d_forward < d_ran
    # G's step finds the fake clean: noise and G are as they were, D alone has changed.
    assert g_forward & g_ran == g_forward - fake
    assert not d_forward & g_ran
    assert not d_ran & g_ran
    # Another G alone changes what D makes of the fake data, not what it makes of the real ones.
    gan.d_loss.backward()
    gan.p["g1"].set(gan.p["g1"].value * 2.0)
    changed = {node.name for node in gan.d_loss.backward().ran}
    assert forward(gan.on_fake) <= changed
    assert not forward(gan.on_real) & changed


def forward(target: Any) -> set[str]:
    """Names of the computed nodes that a value depends on."""
    found: dict[str, Any] = {}
    stack = [target]
    while stack:
        node = stack.pop()
        if node.name not in found and len(node.parents):
            found[node.name] = node
            stack += node.parents
    return set(found)


@pytest.mark.slow
def test_a_thousand_steps_build_nothing() -> None:
    gan = Gan()
    gan.step(0)
    gan.step(1)
    size, serial = len(gan.g), gan.g._scheduler.topology.next_serial
    counts = set()
    for number in range(2, 1002):
        d_run, g_run = gan.step(number)
        counts.add((len(d_run.ran), len(g_run.ran)))
    assert (len(gan.g), gan.g._scheduler.topology.next_serial) == (size, serial)
    assert counts == {(38, 21)}
    assert np.isfinite(gan.d_loss.value)
    gan.g.check_invariants()


def test_it_trains_as_pytorch_does() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    gan = Gan()
    p = {name: torch.tensor(v, requires_grad=True) for name, v in start().items()}

    def update(*names: str) -> None:
        with torch.no_grad():
            for name in names:
                p[name] -= RATE * p[name].grad

    for number in range(20):
        gan.step(number)
        noise, real = map(torch.tensor, samples(number))
        for value in p.values():
            value.grad = None
        fake = generated(torch, p, noise)
        on_real, on_fake = judged(torch, p, real), judged(torch, p, fake.detach())
        (-(torch.log(on_real) + torch.log(1.0 - on_fake)).mean()).backward()
        assert p["g1"].grad is None
        update("d1", "d2")
        for value in p.values():
            value.grad = None
        (-torch.log(judged(torch, p, generated(torch, p, noise))).mean()).backward()
        update("g1", "g2")
        for name, param in gan.p.items():
            np.testing.assert_allclose(
                param.value, p[name].detach().numpy(), rtol=1e-10, atol=1e-10
            )
