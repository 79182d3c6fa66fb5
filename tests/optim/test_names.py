"""Optimisers save their state by paths, whatever was built before them, and in what order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Two(rg.nn.Module):
    """Two layers alike, made in one order or the other."""

    def __init__(self, names: str) -> None:
        for name in names:
            setattr(self, name, rg.nn.Linear(2, 2, rng=0))

    def forward(self, x: Any) -> Any:
        return self.a(x) + 2.0 * self.b(x)


def trained(names: str, before: int = 0) -> tuple[Two, Any]:
    with rg.Graph() as g:
        for _ in range(before):
            g.param(1.0)
        net = Two(names)
    opt = rg.optim.Adam(net.parameters(), lr=0.1)
    net(np.ones((3, 2))).sum().backward()
    opt.step()
    return net, opt


def test_moments_follow_paths_and_not_the_order_in_which_layers_were_made() -> None:
    net, opt = trained("ab")
    other, same = trained("ba", before=3)
    assert sorted(opt.param_groups[0]["names"]) == ["a.bias", "a.weight", "b.bias", "b.weight"]
    same.load_state_dict(opt.state_dict())
    for path in ("a.weight", "b.weight"):
        np.testing.assert_array_equal(
            same.state_dict()["state"][path]["exp_avg"], opt.state_dict()["state"][path]["exp_avg"]
        )
    assert (
        same.state_dict()["state"]["a.weight"]["exp_avg"]
        != same.state_dict()["state"]["b.weight"]["exp_avg"]
    ).any()
    assert other.a is not net.a


def test_params_without_a_name_are_called_by_their_places() -> None:
    def names(before: int) -> list[str]:
        g = rg.Graph()
        for _ in range(before):
            g.input(1.0)
        params = [g.param(float(k)) for k in range(3)]
        return rg.optim.SGD(params, lr=0.1).param_groups[0]["names"]

    assert names(0) == names(5)


def test_two_modules_may_have_the_same_paths() -> None:
    with rg.Graph():
        first, second = rg.nn.Linear(2, 2), rg.nn.Linear(2, 2)
    opt = rg.optim.SGD(
        [{"params": first.parameters()}, {"params": second.parameters(), "lr": 0.1}], lr=0.2
    )
    assert [one["names"] for one in opt.param_groups] == [
        ["weight", "bias"],
        ["weight_2", "bias_2"],
    ]


BROKEN: dict[str, Any] = {
    "nothing": None,
    "complex moments": lambda state: {**state, "exp_avg": np.ones((2, 2), complex)},
    "objects": lambda state: {**state, "exp_avg": np.full((2, 2), "x", object)},
    "a negative step": lambda state: {**state, "step": -3},
    "no number of steps": lambda state: {**state, "step": "a"},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_state_that_is_none_changes_nothing(name: str) -> None:
    _, opt = trained("ab")
    before, state = opt.state_dict(), opt.state_dict()
    spoil = BROKEN[name]
    if spoil is None:
        state = None
    else:
        for path in state["state"]:
            state["state"][path]["exp_avg"] = state["state"][path]["exp_avg"] + 1.0
        state["state"]["b.weight"] = spoil(state["state"]["b.weight"])
    with pytest.raises(rg.LoadError, match="load_state_dict"):
        opt.load_state_dict(state)
    for path, one in opt.state_dict()["state"].items():
        assert one["step"] == 1
        np.testing.assert_array_equal(one["exp_avg"], before["state"][path]["exp_avg"])
