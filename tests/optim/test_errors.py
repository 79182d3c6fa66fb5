"""Errors say what was written, why it cannot work, and what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import mlp

untyped: Any = rg.optim


def test_params_are_checked() -> None:
    g = rg.Graph()
    w, x = g.param([1.0], name="w"), g.input([1.0], name="x")
    cases: list[tuple[Any, type[Exception], str]] = [
        ([], rg.GradientError, "needs at least one param"),
        (iter([]), rg.GradientError, "needs at least one param"),
        (w, rg.DTypeError, "SGD([w, b]) or SGD(g.params)"),
        (3, rg.DTypeError, "params is an iterable of params"),
        ([1.0], rg.DTypeError, "SGD was given float (1.0) as a param"),
        ([x], rg.GradientError, "'x' is an input, and only params are trained"),
        ([w * 2.0], rg.GradientError, "is computed, and only params are trained"),
        ([w.detach()], rg.GradientError, "'w' is detached"),
        ([w, w], rg.GradientError, "'w' is there twice"),
        ([{"params": [w]}, {"params": [w]}], rg.GradientError, "'w' is there twice"),
        ([w, rg.Graph().param([1.0])], rg.GraphError, "belongs to another graph"),
        ([{"params": []}], rg.GradientError, "a group without params"),
        ([{"params": [w], "rate": 1}], rg.DTypeError, "'rate' is none of them"),
        ([{"lr": 1.0}], rg.DTypeError, "this one has no 'params'"),
        ([w, {"params": [w]}], rg.DTypeError, "all in dicts"),
        ([(1, w)], rg.DTypeError, "1 is no name"),
        ([("a", w), ("a", g.param([2.0]))], rg.GraphError, "two params are called 'a'"),
    ]
    for params, kind, text in cases:
        with pytest.raises(kind) as caught:
            rg.optim.SGD(params)
        assert text in str(caught.value), caught.value


def test_options_are_checked() -> None:
    w = rg.Graph().param([1.0])
    with pytest.raises(rg.DTypeError, match=r"Adam\(lr=-1.0\) must be at least 0"):
        rg.optim.Adam([w], lr=-1.0)
    with pytest.raises(rg.DTypeError, match="each must be at least 0 and below 1"):
        rg.optim.Adam([w], betas=(0.9, 1.0))
    with pytest.raises(rg.DTypeError, match="needs a momentum above 0"):
        rg.optim.SGD([w], nesterov=True)


def test_a_group_that_is_refused_changes_nothing() -> None:
    g = rg.Graph()
    w, v = g.param([1.0]), g.param([1.0])
    opt = rg.optim.SGD([w])
    with pytest.raises(rg.GradientError):
        opt.add_param_group({"params": [v, w]})
    assert opt.params == [w]
    assert len(opt.param_groups) == 1
    opt.add_param_group({"params": [v], "lr": 0.5})
    assert [group["lr"] for group in opt.param_groups] == [0.001, 0.5]


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_is_not_finite_is_refused_by_name(bad: float) -> None:
    g = rg.Graph()
    w, v = g.param([1.0, 2.0], name="w"), g.param([1.0], name="v")
    x = g.input([bad])
    ((w * w).sum() + (v * x).sum()).backward()
    before = w.grad, v.grad
    for clip in (rg.optim.clip_grad_norm_, rg.optim.clip_grad_value_):
        with pytest.raises(rg.GradientError, match="the gradients of 'v' are not finite"):
            clip([w, v], 1.0)
    assert (w.grad, v.grad) == before or (w.grad is before[0] and v.grad is before[1])


def test_states_are_checked() -> None:
    _, params, loss = mlp()
    opt = rg.optim.Adam(params)
    loss.backward()
    opt.step()
    state = opt.state_dict()
    with pytest.raises(rg.LoadError, match="takes what opt.state_dict"):
        opt.load_state_dict({})
    with pytest.raises(rg.LoadError, match="2 groups were saved, and there are 1"):
        opt.load_state_dict({**state, "param_groups": state["param_groups"] * 2})
    broken = {**state, "state": {**state["state"], "b2": {"step": 1}}}
    with pytest.raises(rg.LoadError, match="the state of 'b2' has no 'exp_avg'"):
        opt.load_state_dict(broken)
    other = {**state["state"]["b2"], "exp_avg": np.zeros(7)}
    with pytest.raises(rg.ShapeError, match=r"exp_avg of 'b2' has shape \(7,\)"):
        opt.load_state_dict({**state, "state": {**state["state"], "b2": other}})
    with pytest.raises(rg.LoadError, match="need other moments"):
        rg.optim.Adam(params, amsgrad=True).load_state_dict(
            {**state, "param_groups": [{**state["param_groups"][0], "amsgrad": False}]}
        )


def test_a_param_that_is_gone_or_has_another_shape_is_told() -> None:
    g = rg.Graph()
    w, v = g.param([1.0], name="w"), g.param(shape=(None,), name="v")
    opt = rg.optim.SGD([w, v])
    (w * w).sum().backward()
    with pytest.raises(rg.UnsetError, match="'v' has no value yet"):
        opt.step()
    v.set([1.0, 2.0])
    opt.step()
    v.set([1.0, 2.0, 3.0])
    with pytest.raises(rg.ShapeError, match="'v' was .* and is .* now"):
        opt.step()
