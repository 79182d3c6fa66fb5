"""NAdam and ASGD under schedules: what each step leaves for the next one, beside PyTorch and beside their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

START = [1.0, -2.0, 0.5]


def gradient(step: int, w: Any) -> Any:
    return np.sin(step + np.arange(3.0)) + 0.3 * w


def moved(opt: Any, step: int) -> None:
    """Change the rate, and the momentum of those that have one, as a schedule does."""
    group = opt.param_groups[0]
    group["lr"] = 0.1 / (1.0 + step % 4)
    if "betas" in group:
        group["betas"] = (0.95 - 0.02 * (step % 5), 0.99)


def ours(name: str, steps: int, options: dict[str, Any]) -> tuple[Any, Any]:
    g = rg.Graph()
    w, pull = g.param(START, name="w"), g.input(np.zeros(3))
    loss = (w * pull).sum()
    opt = getattr(rg.optim, name)([w], lr=0.1, **options)
    for step in range(steps):
        moved(opt, step)
        pull.set(gradient(step, w.value))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return w.value, opt.state_dict()["state"]["w"]


def nadam_by_hand(steps: int) -> tuple[Any, float]:
    w, m, v, product = np.array(START), np.zeros(3), np.zeros(3), 1.0
    for i in range(steps):
        step, lr, b1, b2 = i + 1, 0.1 / (1.0 + i % 4), 0.95 - 0.02 * (i % 5), 0.99
        g = gradient(i, w)
        now, later = (b1 * (1.0 - 0.5 * 0.96 ** (k * 4e-3)) for k in (step, step + 1))
        product *= now
        m, v = b1 * m + (1.0 - b1) * g, b2 * v + (1.0 - b2) * g * g
        root = np.sqrt(v / (1.0 - b2**step)) + 1e-8
        w = w - lr * (1.0 - now) / (1.0 - product) * g / root
        w = w - lr * later / (1.0 - product * later) * m / root
    return w, product


def asgd_by_hand(steps: int, lambd: float, t0: float) -> tuple[Any, Any]:
    w, mean, eta, share = np.array(START), np.zeros(3), 0.1, 1.0
    for i in range(steps):
        lr, g = 0.1 / (1.0 + i % 4), gradient(i, w)
        w = w * (1.0 - lambd * eta) - eta * g
        mean = w if share == 1.0 else mean + (w - mean) * share
        eta, share = lr / (1.0 + lambd * lr * (i + 1)) ** 0.75, 1.0 / max(1.0, i + 1 - t0)
    return w, mean


def test_nadam_remembers_the_momentum_of_each_step() -> None:
    value, state = ours("NAdam", 25, {})
    expected, product = nadam_by_hand(25)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(state["mu_product"], product, rtol=1e-12)


def test_asgd_takes_the_rate_that_the_step_before_has_left() -> None:
    value, state = ours("ASGD", 25, {"lambd": 0.1, "t0": 3})
    expected, mean = asgd_by_hand(25, 0.1, 3)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(state["ax"], mean, rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), [("NAdam", {}), ("ASGD", {"lambd": 0.1, "t0": 3})])
def test_steps_equal_pytorchs_under_a_schedule(name: str, options: dict[str, Any]) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)  # of the numbers that it keeps for a param
    try:
        w = torch.tensor(START, requires_grad=True)
        opt = getattr(torch.optim, name)([w], lr=0.1, **options)
        for step in range(25):
            moved(opt, step)
            w.grad = torch.tensor(gradient(step, w.detach().numpy()))
            opt.step()
    finally:
        torch.set_default_dtype(torch.float32)
    np.testing.assert_allclose(ours(name, 25, options)[0], w.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", ["NAdam", "ASGD"])
def test_params_that_were_left_out_have_numbers_of_their_own(name: str) -> None:
    g = rg.Graph()
    params = [g.param(START, name=name) for name in "ab"]
    pull = g.input(np.ones(3))
    loss = (params[0] * pull).sum() + (params[1] * pull).sum()
    opt = getattr(rg.optim, name)(params, lr=0.1)
    alone = rg.Graph().param(START, name="b")
    other = getattr(rg.optim, name)([alone], lr=0.1)
    by_itself = (alone * np.ones(3)).sum()
    for step in range(8):
        left_out = step in (0, 3, 4)
        (params[1].freeze if left_out else params[1].unfreeze)()
        for one, cost in ((opt, loss), *([] if left_out else [(other, by_itself)])):
            moved(one, step)
            one.zero_grad()
            cost.backward()
            one.step()
    np.testing.assert_array_equal(params[1].value, alone.value)
    state, its = opt.state_dict(), other.state_dict()["state"]["b"]
    for key, value in state["state"]["b"].items():
        np.testing.assert_array_equal(value, its[key])
    again = getattr(rg.optim, name)(params, lr=0.1)
    again.load_state_dict(state)
    assert str(again.state_dict()) == str(state)


def test_a_state_without_its_numbers_is_refused() -> None:
    g = rg.Graph()
    w = g.param(START, name="w")
    opt = rg.optim.NAdam([w])
    (w * w).sum().backward()
    opt.step()
    state = opt.state_dict()
    for bad, told in (({}, "no 'mu_product'"), ({"mu_product": float("nan")}, "not finite")):
        moments = {key: one for key, one in state["state"]["w"].items() if key != "mu_product"}
        with pytest.raises(rg.LoadError, match=told):
            opt.load_state_dict({**state, "state": {"w": moments | bad}})
