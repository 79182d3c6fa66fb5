"""Hooks of modules are called at each call, though nodes are built once, and may change what is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

ROWS = [np.full((2, 3), float(i)) for i in range(6)]


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.Tanh(), nn.Linear(4, 2, rng=1))


def test_an_inner_result_is_found_at_each_call(g: rg.Graph) -> None:
    with g:
        net, found, sizes = network(), {}, []
        net[1].register_forward_hook(lambda module, args, out: found.update({"hidden": out}))
        for rows in ROWS:
            y = net(rows)
            assert np.array_equal(net[2](found["hidden"].value).value, y.value)
            sizes.append(len(g))
    assert len(set(sizes[3:])) == 1


def test_a_hook_that_reads_values_is_called_once_for_each_call(g: rg.Graph) -> None:
    seen: list[float] = []

    def after(module: Any, args: Any, out: Any) -> None:
        seen.append(float(out.value.sum()))

    def before(module: Any, args: Any) -> None:
        seen.append(float(args[0].value[0, 0]))

    with g:
        net = network()
        expected = [float(net[0](rows).value.sum()) for rows in ROWS]
        net[0].register_forward_hook(after)
        net[0].register_forward_pre_hook(before)
        for rows in ROWS:
            net(rows)
    assert seen[::2] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert seen[1::2] == expected


def test_a_hook_that_counts_is_called_once_for_each_call(g: rg.Graph) -> None:
    with g:
        net, calls = network(), []
        net.register_forward_hook(lambda module, args, out: calls.append(out.shape))
        for rows in ROWS:
            net(rows)
    assert calls == [(2, 2)] * 6


def test_what_a_hook_returns_takes_the_place(g: rg.Graph) -> None:
    with g:
        net = network()
        plain = net(ROWS[1]).value
        first = net.register_forward_hook(lambda module, args, out: out * 2.0)
        second = net.register_forward_pre_hook(lambda module, args: (args[0] * 0.0,))
        zero = net(np.zeros((2, 3)))
        for rows in ROWS[1:]:
            assert np.array_equal(net(rows).value, zero.value)
        second.remove()
        assert np.array_equal(net(ROWS[1]).value, 2.0 * plain)
        first.remove()
        assert np.array_equal(net(ROWS[1]).value, plain)


def test_order_and_arguments_by_name(g: rg.Graph) -> None:
    class Net(nn.Module):
        def forward(self, x: Any, factor: Any = 1.0) -> Any:
            return x * factor

    seen: list[Any] = []
    with g:
        net: Any = Net()
        net.register_forward_hook(lambda module, args, out: seen.append("late"))
        net.register_forward_hook(lambda module, args, out: seen.append("early"), prepend=True)
        net.register_forward_pre_hook(
            lambda module, args, named: (args, {"factor": named.get("factor", 1.0) * 10.0}),
            with_kwargs=True,
        )
        assert net(np.ones(2), factor=np.full(2, 3.0)).tolist() == [30.0, 30.0]
    assert seen == ["early", "late"]


def test_gradients_pass_what_a_hook_builds(g: rg.Graph) -> None:
    with g:
        net = nn.Linear(2, 1, bias=False, rng=0)
        net.register_forward_hook(lambda module, args, out: out * 3.0)
        net(np.ones((1, 2))).sum().backward()
    assert net.weight.grad.tolist() == [[3.0, 3.0]]


def test_misuse_is_told(g: rg.Graph) -> None:
    with g:
        net = network()
        with pytest.raises(
            rg.DTypeError, match=r"a hook is a function. Write hook\(module, args, output\)"
        ):
            net.register_forward_hook(3)
        with (
            net.register_forward_hook(lambda module, args, out: out.value * 2.0),
            pytest.raises(rg.DTypeError, match="a hook that changes them reads no values"),
        ):
            net(ROWS[0])


def test_a_mask_of_what_comes_before() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype="float32")
    assert mask.dtype == np.float32
    assert np.array_equal(mask, [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]])
    with rg.Graph():
        layer = nn.MultiheadAttention(4, 2, rng=0)
        x = np.random.default_rng(0).normal(size=(3, 1, 4))
        cut = layer(x, x, x, attn_mask=nn.Transformer.generate_square_subsequent_mask(3))[0].value
        assert np.allclose(cut[0], layer(x[:1], x[:1], x[:1])[0].value[0])
