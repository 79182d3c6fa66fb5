"""Modules in another dtype: optimisers go on with the new params, and rows of wider floats are converted."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.random.default_rng(0).normal(size=(5, 3))


def trained(kind: Any, moves: int | None) -> list[float]:
    """Return the losses of four steps, with a move to float32 before one of them."""
    with rg.Graph():
        net = rg.nn.Linear(3, 1, rng=0)
        opt = kind(net.parameters(), lr=0.1)

        def closure() -> Any:
            opt.zero_grad()
            loss = (net(ROWS) ** 2).sum()
            loss.backward()
            return loss

        found = []
        for i in range(4):
            if i == moves:
                net.to("float32")
                assert all(one.dtype == np.float32 for one in opt.params)
            opt.step(closure)
            found.append(closure().item())
        assert opt.params == [net.weight, net.bias]
    return found


@pytest.mark.parametrize("moves", [0, 2])
@pytest.mark.parametrize("kind", [rg.optim.SGD, rg.optim.Adam, rg.optim.LBFGS])
def test_an_optimiser_goes_on_with_the_params_of_a_module_that_moved(kind: Any, moves: int) -> None:
    np.testing.assert_allclose(trained(kind, moves), trained(kind, None), rtol=1e-3, atol=1e-5)


def test_moments_and_steps_move_as_well() -> None:
    with rg.Graph():
        net = rg.nn.Linear(3, 1, rng=0)
        opt = rg.optim.Adam(net.parameters())
        net(ROWS).sum().backward()
        opt.step()
        before = opt.state_dict()["state"]["weight"]
        net.float()
        after = opt.state_dict()["state"]["weight"]
    assert after["step"] == 1
    assert after["exp_avg"].dtype == np.float32
    np.testing.assert_allclose(after["exp_avg"], before["exp_avg"], rtol=1e-6)


def test_an_optimiser_of_other_params_keeps_its_own() -> None:
    with rg.Graph():
        one, other = rg.nn.Linear(3, 1, rng=0), rg.nn.Linear(3, 1, rng=1)
        opt = rg.optim.SGD(other.parameters(), lr=0.1)
        one.float()
    assert opt.params == [other.weight, other.bias]
    assert other.weight.dtype == np.float64


def test_an_optimiser_does_not_live_because_it_follows() -> None:
    with rg.Graph():
        net = rg.nn.Linear(3, 1, rng=0)
        opt = rg.optim.SGD(net.parameters(), lr=0.1)
    held = sys.getrefcount(opt)
    net.float()
    assert sys.getrefcount(opt) == held


NETS = [
    lambda: rg.nn.Linear(3, 2, rng=0, dtype="float32"),
    lambda: rg.nn.Sequential(rg.nn.Linear(3, 2, rng=0), rg.nn.LayerNorm(2)).float(),
    lambda: rg.nn.GRUCell(3, 2, rng=0, dtype="float32"),
]


@pytest.mark.parametrize("make", NETS)
def test_a_module_computes_in_the_dtype_of_its_params(g: rg.Graph, make: Any) -> None:
    """Rows of float64, NumPy's default, made a model of float32 compute in float64 without a word."""
    with g:
        net = make()
        x = g.input(ROWS)
        assert net(ROWS).dtype == net(x).dtype == net(x.detach()).dtype == np.float32
        np.testing.assert_array_equal(net(ROWS).value, net(ROWS.astype("f4")).value)
        assert rg.grad(net(x).sum(), x).dtype == np.float64
        assert {p.grad.dtype for p in net.parameters() if net(x).sum().backward()} == {
            np.dtype("f4")
        }


def test_params_of_several_dtypes_convert_nothing(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Sequential(
            rg.nn.Linear(3, 2, rng=0, dtype="float32"), rg.nn.Linear(2, 2, rng=1)
        )
        assert net(ROWS).dtype == np.float64


def test_narrower_rows_are_not_converted_first(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Linear(3, 2, rng=0)
        assert net(ROWS.astype("f4")).dtype == np.float64
        assert net(np.ones((1, 3), int)).dtype == np.float64
