"""Projections of long short-term memory: by the formulas step by step, and beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.random.default_rng(0).normal(size=(4, 6, 3))


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def by_steps(weights: dict[str, Any], rows: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
    """Return all states, the last one and the last cell, as PyTorch's formulas have them."""
    found = []
    for x in rows:
        gates = x @ weights["weight_ih_l0"].T + h @ weights["weight_hh_l0"].T
        gates = gates + weights["bias_ih_l0"] + weights["bias_hh_l0"]
        i, f, g, o = np.split(gates, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = (sigmoid(o) * np.tanh(c)) @ weights["weight_hr_l0"].T
        found.append(h)
    return np.stack(found), h, c


@pytest.mark.parametrize("given", [False, True])
def test_states_are_projected_at_each_step(g: rg.Graph, given: bool) -> None:
    rng = np.random.default_rng(1)
    h, c = (rng.normal(size=(1, 6, 2)), rng.normal(size=(1, 6, 5))) if given else (None, None)
    with g:
        layer = rg.nn.LSTM(3, 5, proj_size=2, rng=0)
        output, (last, cell) = layer(ROWS, (h, c) if given else None)
    first = (
        (h[0], c[0]) if h is not None and c is not None else (np.zeros((6, 2)), np.zeros((6, 5)))
    )
    expected = by_steps(layer.state_dict(), ROWS, *first)
    for ours, theirs in zip((output, last[0], cell[0]), expected, strict=True):
        np.testing.assert_allclose(ours.value, theirs, rtol=1e-12, atol=1e-14)


def test_shapes_and_paths_are_pytorchs(g: rg.Graph) -> None:
    with g:
        layer = rg.nn.LSTM(3, 5, 2, bidirectional=True, proj_size=2, rng=0)
    shapes = {path: array.shape for path, array in layer.state_dict().items()}
    assert list(shapes)[:5] == [
        "weight_ih_l0",
        "weight_hh_l0",
        "bias_ih_l0",
        "bias_hh_l0",
        "weight_hr_l0",
    ]
    assert shapes["weight_hh_l1"] == (20, 2)
    assert shapes["weight_ih_l1_reverse"] == (20, 4)
    assert shapes["weight_hr_l1_reverse"] == (2, 5)
    with g:
        output, (h, c) = layer(ROWS)
    assert (output.shape, h.shape, c.shape) == ((4, 6, 4), (4, 6, 2), (4, 6, 5))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_values_and_gradients_are_pytorchs(
    g: rg.Graph, batch_first: bool, bidirectional: bool, given: bool
) -> None:
    torch: Any = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    with g:
        ours = rg.nn.LSTM(
            3, 5, 2, True, batch_first, bidirectional=bidirectional, proj_size=2, rng=0
        )
        theirs = torch.nn.LSTM(
            3, 5, 2, True, batch_first, bidirectional=bidirectional, proj_size=2
        ).double()
        theirs.load_state_dict({k: torch.tensor(v) for k, v in ours.state_dict().items()})
        many, batch = 2 * (1 + bidirectional), 4 if batch_first else 6
        first = (rng.normal(size=(many, batch, 2)), rng.normal(size=(many, batch, 5)))
        x, t = g.input(ROWS), torch.tensor(ROWS, requires_grad=True)
        output, (h, c) = ours(x, first if given else None)
        loss = (output**2).sum() + (h**3).sum() + (c**2).sum()
        out, (th, tc) = theirs(t, tuple(map(torch.tensor, first)) if given else None)
        ((out**2).sum() + (th**3).sum() + (tc**2).sum()).backward()
        loss.backward()
        np.testing.assert_allclose(output.value, out.detach().numpy(), atol=1e-12)
        np.testing.assert_allclose(rg.grad(loss, x).value, t.grad.numpy(), atol=1e-11)
    for path, param in theirs.named_parameters():
        np.testing.assert_allclose(ours.get_parameter(path).grad, param.grad.numpy(), atol=1e-11)


def test_a_projection_is_shorter_than_the_units() -> None:
    with pytest.raises(rg.DTypeError, match="a projection is shorter than the units"):
        rg.nn.LSTM(3, 5, proj_size=5)
    with pytest.raises(rg.DTypeError, match="GRU has no argument 'proj_size'"):
        rg.nn.GRU(3, 5, proj_size=2)  # type: ignore[call-arg]
