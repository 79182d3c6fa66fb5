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


def valley(order: int) -> tuple[Any, dict[str, Any], Any]:
    """Return an optimiser of two params in one of two orders, the params by name, and its closure."""
    g = rg.Graph()
    a, b = g.param([-1.5, 0.5], name="a"), g.param(2.0, name="b")
    loss = ((1.0 - a) ** 2).sum() + 10.0 * (b - a[0] ** 2) ** 2
    opt = rg.optim.LBFGS([a, b][::order], max_iter=3)

    def closure() -> Any:
        opt.zero_grad()
        loss.backward()
        return loss

    return opt, {"a": a, "b": b}, closure


def test_the_memory_is_loaded_by_names() -> None:
    opt, params, closure = valley(1)
    opt.step(closure)
    other, twins, again = valley(-1)
    for name, one in params.items():
        twins[name].set(one.value)
    other.load_state_dict(opt.state_dict())
    opt.step(closure)
    other.step(again)
    for name, one in params.items():
        np.testing.assert_allclose(twins[name].value, one.value, rtol=1e-9)


def test_a_memory_of_other_params_is_left_out_or_refused() -> None:
    opt, _, closure = valley(1)
    opt.step(closure)
    w, _ = rosenbrock()
    other = rg.optim.LBFGS([w])
    with pytest.raises(rg.ReactgradError, match="names of the params differ"):
        other.load_state_dict(opt.state_dict())
    other.load_state_dict(opt.state_dict(), strict=False)
    assert other.state_dict()["memory"] == {}
    g = rg.Graph()
    longer = rg.optim.LBFGS([g.param(np.zeros(3), name="a"), g.param(2.0, name="b")])
    with pytest.raises(rg.ShapeError, match="have 4 elements. It was saved for another model"):
        longer.load_state_dict(opt.state_dict())
