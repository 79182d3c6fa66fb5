"""Scaled losses: steps that are made or left out, and the scale that follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Descent:
    """The least that a scaler asks of an optimiser."""

    def __init__(self, *params: Any, lr: float = 0.5) -> None:
        self.params = list(params)
        self.lr = lr

    def step(self) -> str:
        for one in self.params:
            one.set(one.value - np.float32(self.lr) * one.grad)
        return "done"


def model() -> tuple[Any, Any, Any]:
    g = rg.Graph()
    w, x = g.param(np.array([1.0, 2.0], np.float32), name="w"), g.input(np.ones(2, np.float32))
    return w, x, (w * x).sum()


def test_a_step_is_that_of_the_loss_itself() -> None:
    w, _, loss = model()
    opt, scaler = Descent(w), rg.GradScaler()
    scaler.scale(loss).backward()
    np.testing.assert_array_equal(w.grad, [65536.0, 65536.0])
    done = scaler.step(opt)
    assert done
    assert (done.stepped, done.not_finite, done.scale, done.result) == (True, (), 65536.0, "done")
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    assert w.grad.dtype == np.float32
    assert not w.grad.flags.writeable
    np.testing.assert_array_equal(w.value, [0.5, 1.5])
    scaler.update()
    assert scaler.get_scale() == 65536.0


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_gradient_that_is_not_finite_leaves_the_step_out(bad: float) -> None:
    w, x, loss = model()
    other = w.graph.param(np.ones(3, np.float32), name="other")
    total = loss + other.sum()
    opt, scaler = Descent(w, other), rg.GradScaler()
    scaled = scaler.scale(total)
    x.set(np.array([1.0, bad], np.float32))
    scaled.backward()
    versions = [one.value_version for one in opt.params]
    done = scaler.step(opt)
    assert not done
    assert (done.stepped, done.not_finite, done.result) == (False, ("w",), None)
    assert "w are not finite" in str(done)
    assert [one.value_version for one in opt.params] == versions
    scaler.update()
    assert scaler.get_scale() == 32768.0
    x.set(np.ones(2, np.float32))
    w.graph.zero_grad()
    scaled.backward()  # the same node: the scale is an input
    np.testing.assert_array_equal(w.grad, [32768.0, 32768.0])
    assert scaler.step(opt)


def test_an_overflow_of_the_scaled_loss_is_found() -> None:
    w, _, loss = model()
    opt, scaler = Descent(w), rg.GradScaler(init_scale=1e38)
    scaler.scale(loss * 1e3).backward()
    assert not scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 5e37


def test_the_scale_grows_after_an_interval_of_good_steps() -> None:
    w, x, loss = model()
    opt, scaler = Descent(w), rg.GradScaler(4.0, growth_interval=3)
    seen = []
    for step in range(8):
        x.set(np.full(2, np.inf if step == 4 else 1.0, np.float32))
        w.graph.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        seen.append(scaler.get_scale())
    assert seen == [4.0, 4.0, 8.0, 8.0, 4.0, 4.0, 4.0, 8.0]


def test_unscaled_for_clipping_once() -> None:
    w, _, loss = model()
    opt, scaler = Descent(w), rg.GradScaler()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    with pytest.raises(rg.GradientError, match="were unscaled"):
        scaler.unscale_(opt)
    assert scaler.step(opt)
    np.testing.assert_array_equal(w.grad, [1.0, 1.0])
    with pytest.raises(rg.GradientError, match="Call update once"):
        scaler.step(opt)
    scaler.update()


def test_two_optimisers_share_a_scale() -> None:
    g = rg.Graph()
    a, b = g.param(np.float32(1.0)), g.param(np.float32(1.0))
    x = g.input(np.float32(1.0))
    scaler = rg.GradScaler()
    one, two = Descent(a), Descent(b)
    x.set(np.float32(np.inf))
    for loss in scaler.scale([(a * x), (b * 2.0)]):
        loss.backward()
    assert not scaler.step(one)
    assert scaler.step(two)
    scaler.update()
    assert scaler.get_scale() == 32768.0


def test_states_travel() -> None:
    scaler = rg.GradScaler(8.0, growth_interval=5)
    w, _, loss = model()
    scaler.scale(loss).backward()
    scaler.step(Descent(w))
    scaler.update()
    other = rg.GradScaler()
    scaled = other.scale(loss)
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert other.state_dict()["_growth_tracker"] == 1
    assert float(scaled.value) == 8.0 * float(loss.value)
    with pytest.raises(rg.DTypeError, match="missing"):
        other.load_state_dict({})


def test_not_enabled_does_nothing() -> None:
    w, _, loss = model()
    scaler = rg.GradScaler(enabled=False)
    assert scaler.scale(loss) is loss
    loss.backward()
    assert scaler.step(Descent(w)).result == "done"
    scaler.update()
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)


def test_refusals() -> None:
    w, _, _ = model()
    scaler = rg.GradScaler()
    with pytest.raises(rg.GradientError, match="no param of the optimiser has a gradient"):
        scaler.step(Descent(w))
    with pytest.raises(rg.GradientError, match="no step"):
        scaler.update()
    for wrong in ({"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"init_scale": 0.0}):
        with pytest.raises(rg.DTypeError):
            rg.GradScaler(**wrong)  # type: ignore[arg-type]


def test_small_gradients_survive_in_half_floats() -> None:
    g = rg.Graph()
    w = g.param(np.float16(1.0))
    loss = (w.astype("f4") * np.float32(2.0**-26)).sum()
    loss.backward()
    assert float(w.grad) == 0.0  # too small for a half float
    g.zero_grad()
    scaler = rg.GradScaler()
    scaler.scale(loss).backward()
    assert float(w.grad) == 2.0**-10
