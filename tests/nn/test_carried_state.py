"""Truncated backpropagation through time: a loop that hands its detached state on does not grow the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.random.default_rng(0).normal(size=(40, 2, 3))


def sizes(g: rg.Graph, net: Any, first: Any, steps: int = 12, chunk: int = 1) -> list[int]:
    """Train with steps of some calls each, and return the number of nodes after each step."""
    opt = rg.optim.SGD(net.parameters(), lr=0.01)
    state, found = first, []
    for step in range(steps):
        loss: Any = 0.0
        for t in range(chunk):
            state = net(ROWS[(step * chunk + t) % len(ROWS)], state)
            out = state[0] if isinstance(state, tuple) else state
            loss = loss + (out * out).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        state = (
            tuple([one.detach() for one in state]) if isinstance(state, tuple) else state.detach()
        )
        found.append(len(g))
    return found


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_a_loop_with_detached_state_keeps_its_size(g: rg.Graph, kind: str, chunk: int) -> None:
    zeros = np.zeros((2, 4))
    with g:
        net = getattr(rg.nn, kind)(3, 4, rng=0)
        found = sizes(g, net, (zeros, zeros) if kind == "LSTMCell" else zeros, chunk=chunk)
    assert len(set(found[3:])) == 1


def test_a_step_runs_as_many_nodes_as_the_one_before(g: rg.Graph) -> None:
    with g:
        net = rg.nn.GRUCell(3, 4, rng=0)
        opt = rg.optim.SGD(net.parameters(), lr=0.01)
        h: Any = np.zeros((2, 4))
        ran = []
        for t in range(8):
            h = net(ROWS[t], h if t == 0 else h.detach())
            loss = (h * h).sum()
            opt.zero_grad()
            ran.append(len(loss.backward().ran))
            opt.step()
    assert len(set(ran[2:])) == 1


def test_state_that_is_masked_on_its_way_is_carried_as_well(g: rg.Graph) -> None:
    with g:
        net = rg.nn.GRUCell(3, 4, rng=0)
        h: Any = np.zeros((2, 4))
        found = []
        for t in range(8):
            h = net(ROWS[t], h if t == 0 else (h * np.array([[1.0], [0.0]])).detach())
            _ = h.value
            found.append(len(g))
    assert len(set(found[3:])) == 1


def test_what_is_computed_from_an_input_is_followed(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Linear(2, 2, rng=0)
        x = g.input([1.0, 2.0])
        y = net(x)
        z = net(y.detach())
        before = z.value
        x.set([3.0, -1.0])
        assert not np.array_equal(z.value, before)
        assert np.allclose(z.value, net(net([3.0, -1.0]).value).value)


def test_the_state_of_another_module_is_followed(g: rg.Graph) -> None:
    with g:
        first, second = rg.nn.Linear(2, 2, rng=0), rg.nn.Linear(2, 2, rng=1)
        z = second(first([1.0, 2.0]).detach())
        before = z.value
        first.weight.set(np.zeros((2, 2)))
        assert not np.array_equal(z.value, before)


def test_a_call_that_was_disconnected_is_found_again(g: rg.Graph) -> None:
    """Calls of a chain that nothing saw any more were given no values, and the search read these."""
    zeros = np.zeros((2, 4))
    with g:
        net = rg.nn.LSTMCell(3, 4, rng=0)
        found = sizes(g, net, (zeros, zeros), steps=24, chunk=6)
    assert max(found[12:]) <= max(found[:12])
