"""A step that is interrupted at any line has changed nothing, or all: params and moments together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.interrupts import interrupted
from tests.optim.models import mlp


def ready(large: bool) -> tuple[list[rg.Var], rg.Var, Any]:
    if large:
        g = rg.Graph()
        params = [g.param(np.linspace(-1.0, 1.0, 70_000))]
        loss = (params[0] * params[0]).sum()
    else:
        _, params, loss = mlp()
    opt = rg.optim.Adam(params, lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        loss.backward()
        opt.step()
    opt.zero_grad()
    loss.backward()
    return params, loss, opt


def state(params: list[rg.Var], opt: Any) -> list[Any]:
    found: list[Any] = [np.array(one.value) for one in params]
    for one in opt.state_dict()["state"].values():
        found += [one["step"], one["exp_avg"], one["exp_avg_sq"]]
    return found


def same(a: list[Any], b: list[Any]) -> bool:
    return all(map(np.array_equal, a, b))


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_a_step_is_made_or_not(large: bool) -> None:
    params, loss, opt = ready(large)
    before = state(params, opt)
    opt.step()
    after, then = state(params, opt), loss.item()
    assert not same(before, after)
    at, seen = 1, set()
    while True:
        params, loss, opt = ready(large)
        if not interrupted(opt.step, at):
            break
        now = state(params, opt)
        assert same(now, before) or same(now, after), f"line {at} left half of a step"
        seen.add(same(now, after))
        if same(now, after):
            assert loss.item() == pytest.approx(then, rel=1e-12)
        params[0].graph.check_invariants()
        # It goes on from there, whatever has happened.
        opt.zero_grad()
        loss.backward()
        opt.step()
        at += 1
    assert seen == {False, True}
    assert at > 30


def test_a_hook_that_raises_has_changed_nothing() -> None:
    params, _, opt = ready(False)
    before = state(params, opt)
    opt.register_step_pre_hook(lambda one: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        opt.step()
    assert same(state(params, opt), before)


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
def test_a_backward_that_is_interrupted_has_changed_no_gradient_or_all(small: bool) -> None:
    at = 1
    while True:
        params, loss, opt = ready(False)
        if small:
            opt.zero_grad()
        before = [None if one.grad is None else np.array(one.grad) for one in params]
        loss.parents[0].touch()
        if not interrupted(loss.backward, at):
            break
        now = [one.grad for one in params]
        counts = {
            one is old or (one is not None and old is not None and np.array_equal(one, old))
            for one, old in zip(now, before, strict=True)
        }
        assert len(counts) == 1, f"line {at} left some gradients"
        at += 3
    assert at > 30
