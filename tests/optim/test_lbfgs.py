"""L-BFGS: its iterates equal PyTorch's, and an error changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import mlp


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_steps_equal_pytorchs(search: str | None) -> None:
    torch: Any = pytest.importorskip("torch")
    from tests.optim.test_torch import in_torch

    g, params, loss = mlp()
    theirs, their_loss = in_torch("mlp", [one.value for one in params], g["x"].value, g["y"].value)
    options: dict[str, Any] = {
        "lr": 0.3,
        "max_iter": 6,
        "history_size": 4,
        "line_search_fn": search,
    }
    opt, their = rg.optim.LBFGS(params, **options), torch.optim.LBFGS(theirs, **options)

    def closure() -> Any:
        opt.zero_grad()
        loss.backward()
        return loss

    def their_closure() -> Any:
        their.zero_grad()
        found = their_loss()
        found.backward()
        return found

    for _ in range(5):
        opt.step(closure)
        their.step(their_closure)
        for one, two in zip(params, theirs, strict=True):
            np.testing.assert_allclose(one.value, two.detach().numpy(), rtol=1e-8, atol=1e-8)


def rosenbrock() -> tuple[rg.Var, rg.Var]:
    w = rg.Graph().param([-1.5, 2.0], name="w")
    return w, (1.0 - w[0]) ** 2 + 100.0 * (w[1] - w[0] ** 2) ** 2


def test_it_finds_the_valley() -> None:
    w, loss = rosenbrock()
    opt = rg.optim.LBFGS([w], line_search_fn="strong_wolfe")

    def closure() -> rg.Var:
        opt.zero_grad()
        loss.backward()
        return loss

    nodes = 0
    for i in range(5):
        opt.step(closure)
        nodes = len(w.graph) if i == 0 else nodes
    np.testing.assert_allclose(w.value, [1.0, 1.0], atol=1e-5)
    assert len(w.graph) == nodes


def test_an_error_in_the_closure_changes_nothing() -> None:
    w, loss = rosenbrock()
    opt = rg.optim.LBFGS([w])
    calls = 0

    def closure() -> rg.Var:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise ZeroDivisionError
        opt.zero_grad()
        loss.backward()
        return loss

    with pytest.raises(ZeroDivisionError):
        opt.step(closure)
    assert np.array_equal(w.value, [-1.5, 2.0])
    assert opt.state_dict()["memory"] == {}


def test_misuse_is_told() -> None:
    w, _ = rosenbrock()
    opt = rg.optim.LBFGS([w])
    with pytest.raises(rg.DTypeError, match="needs a function: def closure"):
        opt.step()
    with pytest.raises(rg.GradientError, match="LBFGS takes one group"):
        opt.add_param_group({"params": [w.graph.param(1.0)]})
    with pytest.raises(rg.DTypeError, match="None or 'strong_wolfe'"):
        rg.optim.LBFGS([w], line_search_fn="wolfe")
