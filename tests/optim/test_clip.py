"""Clipping by norm and by value, of gradients alone and side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import mlp


def norm(params: list[rg.Var], order: float) -> float:
    return float(np.linalg.norm(np.concatenate([np.ravel(one.grad) for one in params]), order))


@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, np.inf])
def test_the_norm_of_all_is_clipped(order: float, gathered: bool) -> None:
    _, params, loss = mlp()
    opt = rg.optim.SGD(params, lr=0.0)
    for _ in range(3 if gathered else 1):
        opt.zero_grad()
        loss.backward()
        if gathered:
            opt.step()
    before, grads = norm(params, order), [one.grad for one in params]
    copies = [np.array(one) for one in grads]
    assert rg.optim.clip_grad_norm_(params, 2.0 * before, order) == pytest.approx(before)
    assert norm(params, order) == before
    assert rg.optim.clip_grad_norm_(params, 0.5 * before, order) == pytest.approx(before)
    assert norm(params, order) == pytest.approx(0.5 * before, rel=1e-4)
    for old, copy in zip(grads, copies, strict=True):
        assert np.array_equal(old, copy)
    part = params[:2]
    rg.optim.clip_grad_norm_(part, 0.0, order)
    assert norm(part, order) == 0.0
    assert norm(params[2:], order) > 0.0
    rg.optim.clip_grad_value_(dict(zip("abcd", params, strict=True)).items(), 1e-3)
    assert norm(params, np.inf) == pytest.approx(1e-3)
    opt.zero_grad()
    assert rg.optim.clip_grad_norm_(params, 1.0) == 0.0


def test_clipped_training_equals_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    from tests.optim.test_torch import in_torch

    g, params, loss = mlp()
    theirs, their_loss = in_torch("mlp", [one.value for one in params], g["x"].value, g["y"].value)
    opt, their = rg.optim.Adam(params, lr=0.05), torch.optim.Adam(theirs, lr=0.05)
    for i in range(10):
        opt.zero_grad()
        loss.backward()
        their.zero_grad()
        their_loss().backward()
        if i % 2:
            rg.optim.clip_grad_value_(params, 0.05)
            torch.nn.utils.clip_grad_value_(theirs, 0.05)
        else:
            ours = rg.optim.clip_grad_norm_(params, 0.1)
            assert ours == pytest.approx(float(torch.nn.utils.clip_grad_norm_(theirs, 0.1)))
        opt.step()
        their.step()
        for one, two in zip(params, theirs, strict=True):
            np.testing.assert_allclose(one.value, two.detach().numpy(), rtol=1e-8, atol=1e-8)
