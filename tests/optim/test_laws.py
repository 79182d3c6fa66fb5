"""What a step changes and what it leaves: values, versions, moments, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.optim.models import cnn, mlp

KINDS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01, "momentum": 0.5},
    "Adam": {"lr": 0.01},
    "AdamW": {"lr": 0.01},
    "Adamax": {"lr": 0.01},
    "NAdam": {"lr": 0.01},
    "RAdam": {"lr": 0.01},
    "RMSprop": {"lr": 0.001, "momentum": 0.5, "centered": True},
    "Adagrad": {"lr": 0.02},
    "Adadelta": {"lr": 0.5},
    "Lion": {"lr": 0.001},
    "Rprop": {"lr": 0.001},
    "ASGD": {"lr": 0.01},
}


def make(name: str, params: Any) -> rg.optim.Optimizer:
    return getattr(rg.optim, name)(params, **KINDS[name])


def train(opt: rg.optim.Optimizer, loss: rg.Var, steps: int = 1) -> None:
    for _ in range(steps):
        opt.zero_grad()
        loss.backward()
        opt.step()


def moments(opt: rg.optim.Optimizer) -> dict[str, Any]:
    return opt.state_dict()["state"]


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("model", [mlp, cnn])
@pytest.mark.parametrize("name", KINDS)
def test_a_step_is_one_new_version_and_no_node(name: str, model: Any) -> None:
    g, params, loss = model()
    opt = make(name, params)
    train(opt, loss, 3)
    nodes, before = len(g), loss.value
    train(opt, loss, 5)
    assert len(g) == nodes
    assert [one.value_version for one in params] == [9] * len(params)
    assert loss.value < before
    g.check_invariants()


@pytest.mark.parametrize("name", KINDS)
def test_frozen_params_keep_their_moments_and_go_on_with_them(name: str) -> None:
    _, params, loss = mlp()
    w1, b1 = params[:2]
    opt = make(name, params)
    train(opt, loss, 2)
    values, versions, state = w1.value.copy(), w1.value_version, moments(opt)
    w1.freeze()
    train(opt, loss, 10)
    assert np.array_equal(w1.value, values)
    assert w1.value_version == versions
    assert same(moments(opt)["w1"], state["w1"])
    assert b1.value_version == 13  # what is before and after still learns
    assert moments(opt)["b1"]["step"] == 12
    w1.unfreeze()
    train(opt, loss)
    assert moments(opt)["w1"]["step"] == 3
    assert not np.array_equal(w1.value, values)


def test_a_param_without_gradient_is_left_out() -> None:
    g, params, loss = mlp()
    alone = g.param([1.0, 2.0], name="alone")
    opt = make("Adam", [params[0], alone, *params[1:]])
    train(opt, loss, 3)
    assert alone.value_version == 1
    assert "alone" not in moments(opt)
    train(opt, loss + (alone * alone).sum(), 1)
    assert moments(opt)["alone"]["step"] == 1
    assert moments(opt)["w1"]["step"] == 4
    assert alone.value_version == 2


def test_zero_grad_reaches_its_own_params_only() -> None:
    g, params, loss = mlp()
    opt = make("SGD", params[:2])
    loss.backward()
    kept = params[2].grad
    opt.zero_grad()
    assert [one.grad is None for one in params] == [True, True, False, False]
    assert params[2].grad is kept
    g.zero_grad()
    assert params[2].grad is None
    loss.backward()
    opt.zero_grad(set_to_none=False)
    zeros, kept = params[0].grad, params[2].grad
    assert zeros is not None
    assert kept is not None
    assert not zeros.any()
    assert kept.any()


def test_two_optimisers_on_one_graph_move_their_own_params() -> None:
    _, params, loss = mlp()
    first, second = make("SGD", params[:2]), make("Adam", params[2:])
    first.zero_grad()
    loss.backward()
    first.step()
    assert [one.value_version for one in params] == [2, 2, 1, 1]
    second.step()
    assert [one.value_version for one in params] == [2, 2, 2, 2]


def test_one_params_groups_have_options_of_their_own() -> None:
    _, params, loss = mlp()
    opt = rg.optim.SGD([{"params": params[:2], "lr": 0.0}, {"params": params[2:]}], lr=0.1)
    before = [one.value.copy() for one in params]
    train(opt, loss)
    moved = [not np.array_equal(one.value, old) for one, old in zip(params, before, strict=True)]
    assert moved == [False, False, True, True]
    opt.param_groups[0]["lr"] = 0.1
    train(opt, loss)
    assert not np.array_equal(params[0].value, before[0])


def test_detach_freeze_and_the_list_are_three_switches() -> None:
    """Whether a param gets ``.grad``, is moved, and passes the gradient on, for each combination."""
    for detached in (False, True):
        for frozen in (False, True):
            for listed in (False, True):
                g = rg.Graph()
                w, v, other = g.param([1.0]), g.param([2.0]), g.param([3.0])
                inner = w * v
                loss = ((inner.detach() if detached else inner) * other).sum()
                if frozen:
                    v.freeze()
                opt = make("SGD", [v, other] if listed else [other])
                train(opt, loss)
                assert (v.grad is not None) == (not detached and not frozen)
                assert (v.value_version == 2) == (not detached and not frozen and listed)
                assert (w.grad is not None) == (not detached)


def test_dtypes_may_be_mixed() -> None:
    g = rg.Graph()
    w, v = g.param(np.ones(3, "f4")), g.param(np.ones(2))
    loss = (w * w).sum() + (v * v).sum()
    opt = make("Adam", [w, v])
    train(opt, loss, 2)
    assert (w.dtype, v.dtype) == (np.float32, np.float64)
    assert w.value_version == v.value_version == 3


def test_values_that_callers_hold_do_not_change() -> None:
    g = rg.Graph()
    w = g.param(np.ones(100_000))
    loss = (w * w).sum()
    opt = make("SGD", [w])
    train(opt, loss)
    held, grad = w.value, w.grad
    copies = held.copy(), grad.copy()
    train(opt, loss, 3)
    assert np.array_equal(held, copies[0])
    assert np.array_equal(grad, copies[1])
    assert not np.array_equal(w.value, held)
    assert loss.value == pytest.approx((w.value**2).sum())


def test_forks_are_not_moved() -> None:
    g, params, loss = mlp()
    opt = make("Adam", params)
    train(opt, loss, 2)
    fork = g.fork()
    before = fork[loss].value
    train(opt, loss, 2)
    assert fork[loss].value == before
    assert loss.value < before


def test_sets_between_steps_count() -> None:
    g, params, loss = mlp()
    opt = rg.optim.SGD(params, lr=0.1)
    train(opt, loss, 2)
    g.set({one: np.zeros(one.shape) for one in params})
    params[1].set(np.ones(5))
    train(opt, loss)
    loss.backward()
    _, fresh, other = mlp()
    for one, value in zip(fresh, (0.0, 1.0, 0.0, 0.0), strict=True):
        one.set(np.full(one.shape, value))
    train(rg.optim.SGD(fresh, lr=0.1), other)
    for one, two in zip(params, fresh, strict=True):
        assert np.array_equal(one.value, two.value)


def test_steps_in_turn_with_reads_of_parts_and_sets() -> None:
    """Whatever lies between two steps, each value is that of the params at present."""
    g = rg.Graph()
    params = [g.param(np.full(2, float(k + 1))) for k in range(4)]
    squares = [one * one for one in params]
    loss = rg.sum(rg.concatenate(squares))
    opt = rg.optim.SGD(params, lr=0.125)
    loss.backward()
    acts = [
        opt.step,
        lambda: squares[0].value,
        lambda: params[1].set([5.0, 6.0]),
        lambda: loss.value,
    ]
    for number in np.random.default_rng(3).integers(0, 4, 60):
        acts[number]()
        if number == 0:
            opt.step()
        if number == 1:
            np.testing.assert_array_equal(squares[0].value, params[0].value ** 2)
        if number == 3:
            assert loss.value == sum(float((one.value**2).sum()) for one in params)
    g.check_invariants()


@pytest.mark.parametrize("name", KINDS)
def test_steps_in_a_transaction_that_fails_give_values_and_moments_back(name: str) -> None:
    g, params, loss = mlp()
    opt = make(name, params)
    train(opt, loss, 2)
    before, state = [one.value.copy() for one in params], moments(opt)
    with pytest.raises(ZeroDivisionError), g.transaction():
        train(opt, loss, 3)
        raise ZeroDivisionError
    for one, old in zip(params, before, strict=True):
        assert np.array_equal(one.value, old)
    assert all(same(state[key], one) for key, one in moments(opt).items())
    _, fresh, other = mlp()
    again = make(name, fresh)
    train(again, other, 4)
    with g.transaction():
        train(opt, loss)
    train(opt, loss)
    for one, two in zip(params, fresh, strict=True):
        assert np.array_equal(one.value, two.value)


def test_hooks_are_called_around_steps() -> None:
    _, params, loss = mlp()
    opt = make("SGD", params)
    seen: list[Any] = []
    first = opt.register_step_pre_hook(
        lambda one: seen.append(("before", one, params[0].value_version))
    )
    opt.register_step_post_hook(lambda one: seen.append(("after", one, params[0].value_version)))
    train(opt, loss)
    first.remove()
    train(opt, loss)
    assert seen == [("before", opt, 1), ("after", opt, 2), ("after", opt, 3)]


def test_clipping_as_a_hook() -> None:
    g = rg.Graph()
    w = g.param([3.0, 4.0])
    loss = (w * w).sum()
    opt = rg.optim.SGD([w], lr=1.0)
    opt.register_step_pre_hook(lambda one: rg.optim.clip_grad_norm_(one.params, 1.0))
    train(opt, loss)
    np.testing.assert_allclose(w.value, [2.4, 3.2], rtol=1e-6)


def test_state_goes_by_name() -> None:
    _, params, loss = mlp()
    opt = make("Adam", params)
    train(opt, loss, 3)
    state = opt.state_dict()
    _, again, other = mlp()
    for one, two in zip(again, params, strict=True):
        one.set(two.value)
    second = make("Adam", again[::-1])
    second.load_state_dict(state)
    train(opt, loss, 3)
    train(second, other, 3)
    for one, two in zip(params, again, strict=True):
        assert np.array_equal(one.value, two.value)


def test_parts_of_a_state_are_loaded_by_request() -> None:
    g, params, loss = mlp()
    opt = make("Adam", params)
    train(opt, loss, 3)
    state = opt.state_dict()
    new = g.param([0.0], name="new")
    other = make("Adam", [*params[:2], new])
    with pytest.raises(rg.LoadError, match="only here: 'new'; only there: 'b2', 'w2'"):
        other.load_state_dict(state)
    assert not moments(other)
    other.load_state_dict(state, strict=False)
    assert moments(other).keys() == {"w1", "b1"}
    assert same(moments(other)["w1"], state["state"]["w1"])


@pytest.mark.parametrize("name", KINDS)
def test_large_params_take_the_same_steps(name: str) -> None:
    rng = np.random.default_rng(0)
    start, scale = rng.normal(size=70_000), rng.normal(size=70_000)
    large, pieces = rg.Graph(), rg.Graph()
    w, x = large.param(start), large.input(scale)
    parts = [pieces.param(one) for one in np.split(start, 7)]
    scales = [pieces.input(one) for one in np.split(scale, 7)]
    one = (w * w * x).sum()
    many = (parts[0] * parts[0] * scales[0]).sum()
    for part, factor in zip(parts[1:], scales[1:], strict=True):
        many = many + (part * part * factor).sum()
    opts = make(name, [w]), make(name, parts)
    held = []
    for _ in range(4):
        train(opts[0], one)
        train(opts[1], many)
        held.append((w.value, w.value.copy()))
        assert np.array_equal(w.value, np.concatenate([part.value for part in parts]))
    assert all(np.array_equal(value, copy) for value, copy in held)
    held.clear()
    train(opts[0], one, 3)
    train(opts[1], many, 3)
    assert np.array_equal(w.value, np.concatenate([part.value for part in parts]))
    assert one.value == pytest.approx(many.value)
    large.check_invariants()


def test_optimisers_that_share_params_see_the_same_gradients() -> None:
    _, params, loss = mlp()
    _, fresh, other = mlp()
    one, two = make("SGD", params), make("Adam", params[1:])
    ones, twos = make("SGD", fresh), make("Adam", fresh[1:])
    for i in range(6):
        (one if i % 2 else two).zero_grad()
        loss.backward()
        (two if i % 2 else one).step()
        for param in fresh if i % 2 else fresh[1:]:
            param.zero_grad()
        other.backward(np.array(1.0))  # with a gradient it goes another way
        (twos if i % 2 else ones).step()
        for a, b in zip(params, fresh, strict=True):
            assert np.array_equal(a.value, b.value)
            assert np.array_equal(a.grad, b.grad)


def test_a_backward_without_zero_grad_adds() -> None:
    _, params, loss = mlp()
    opt = rg.optim.SGD(params, lr=0.0)
    train(opt, loss, 3)
    first = [one.grad for one in params]
    copies = [np.array(one) for one in first]
    addresses = set()
    for i in range(2, 6):
        loss.backward()
        for one, copy in zip(params, copies, strict=True):
            np.testing.assert_allclose(one.grad, i * copy)
    for old, copy in zip(first, copies, strict=True):
        assert np.array_equal(old, copy)
    for _ in range(20):
        train(opt, loss)
        (block,) = params[0]._graph._host.gradients.blocks.values()
        addresses.add(block.ctypes.data)
    assert len(addresses) == 1
    assert params[0].grad is params[0].grad


def test_hooks_and_freezing_are_seen_by_the_next_backward() -> None:
    _, params, loss = mlp()
    opt = make("SGD", params)
    train(opt, loss, 3)
    seen: list[Any] = []
    handle = params[0].register_hook(lambda grad: seen.append(1))
    train(opt, loss, 2)
    assert len(seen) == 2
    handle.remove()
    train(opt, loss)
    assert len(seen) == 2
    after = params[1].register_post_accumulate_grad_hook(lambda var: seen.append(var.grad))
    train(opt, loss, 2)
    assert len(seen) == 4
    after.remove()
    hidden = loss.parents[0]
    hidden.retain_grad()
    train(opt, loss)
    assert hidden.grad is not None
    params[2].freeze()
    train(opt, loss)
    assert params[2].grad is None
    params[2].unfreeze()
    params[3].zero_grad()
    train(opt, loss)
    assert params[2].grad is not None


def test_an_edit_between_steps_counts() -> None:
    _, params, loss = mlp()
    opt = make("SGD", params)
    train(opt, loss, 3)
    inner = loss.parents[0]
    loss.rewire(inner * 2.0)
    train(opt, loss)
    opt.zero_grad()
    loss.backward()
    for one, gradient in zip(params, rg.grad(loss, params), strict=True):
        assert np.array_equal(one.grad, gradient.value)
    assert [one.value_version for one in params] == [5] * 4
