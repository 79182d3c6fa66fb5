"""``Sequential`` times a number: the same members again, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def twice(module: Any) -> tuple[Any, Any, Any]:
    net = module.Sequential(module.Linear(3, 3), module.Tanh())
    longer = net * 2
    again = 3 * net
    same = net
    same *= 2
    return net, longer, again


def test_members_are_shared() -> None:
    with rg.Graph():
        net, longer, again = twice(rg.nn)
    assert [len(one) for one in (net, longer, again)] == [4, 4, 6]
    assert type(longer) is rg.nn.Sequential
    for one in (net, longer, again):
        assert all(one[i] is one[i % 2] for i in range(len(one)))
        assert len(list(one.parameters())) == 2
    x = np.array([0.5, -1.0, 2.0])
    w, b = net[0].weight.value, net[0].bias.value
    for _ in range(2):
        x = np.tanh(w @ x + b)
    np.testing.assert_allclose(longer([0.5, -1.0, 2.0]).value, x, rtol=1e-12)


def test_keys_and_values_are_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    with rg.Graph():
        ours = twice(rg.nn)
    for one, their in zip(ours, twice(torch.nn), strict=True):
        their = their.double()
        assert list(one.state_dict()) == list(their.state_dict())
        assert one.load_state_dict(their.state_dict()) == ([], [])
        x = np.arange(6.0).reshape(2, 3)
        y, u = one(x), their(torch.tensor(x))
        np.testing.assert_allclose(y.value, u.detach().numpy(), rtol=1e-12)
        one.zero_grad()
        their.zero_grad()
        rg.sum(y * y).backward()
        (u * u).sum().backward()
        np.testing.assert_allclose(one[0].weight.grad, their[0].weight.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("times", [0, -1])
def test_less_than_once_is_refused(times: int) -> None:
    with rg.Graph():
        net = rg.nn.Sequential(rg.nn.Tanh())
    with pytest.raises(ValueError, match="repeated at least once"):
        net * times
    with pytest.raises(ValueError, match="repeated at least once"):
        net *= times
    assert len(net) == 1


def test_a_factor_is_refused() -> None:
    with rg.Graph():
        net: Any = rg.nn.Sequential(rg.nn.Tanh())
    with pytest.raises(TypeError, match="multiply the result of its call"):
        0.5 * net
