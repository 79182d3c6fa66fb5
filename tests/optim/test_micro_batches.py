"""Four batches of 32 make the step of one batch of 128, with hooks at the last one only."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import reactgrad as rg


def model() -> tuple[rg.Var, rg.Var, rg.Var, rg.Var]:
    g = rg.Graph()
    x, y = g.input(shape=(None, 3)), g.input(shape=(None,))
    w = g.param([0.1, 0.2, 0.3], name="w")
    return x, y, w, ((x @ w - y) ** 2).mean()


def test_four_small_batches_equal_a_large_one() -> None:
    rng = np.random.default_rng(0)
    data, wanted = rng.normal(size=(128, 3)), rng.normal(size=128)
    x, y, w, loss = model()
    opt = rg.optim.Adam([w], lr=0.1)
    called: list[int] = []
    opt.register_step_pre_hook(lambda one: called.append(w.value_version))
    micro = rg.optim.MicroBatches(opt, 4)
    x2, y2, w2, loss2 = model()
    whole = rg.optim.Adam([w2], lr=0.1)
    for _ in range(5):
        made = []
        for i in range(0, 128, 32):
            x.graph.set({x: data[i : i + 32], y: wanted[i : i + 32]})
            made.append(micro.backward(loss))
        assert made == [False, False, False, True]
        x2.graph.set({x2: data, y2: wanted})
        whole.zero_grad()
        loss2.backward()
        whole.step()
        np.testing.assert_allclose(w.value, w2.value, rtol=1e-9)
    assert called == [1, 2, 3, 4, 5]
    assert w.value_version == 6


def test_what_waits_is_flushed() -> None:
    x, y, w, loss = model()
    x.graph.set({x: np.ones((2, 3)), y: np.ones(2)})
    micro = rg.optim.MicroBatches(rg.optim.SGD([w], lr=0.1), 3)
    assert not micro.flush()
    micro.backward(loss)
    assert micro.flush()
    assert w.value_version == 2
    assert micro.pending == 0
    with pytest.raises(rg.DTypeError, match="at least 1"):
        rg.optim.MicroBatches(micro.optimizer, 0)


def test_a_flush_takes_the_mean_of_what_has_been_added() -> None:
    """It divided by the number of batches that never came."""
    x, y, w, loss = model()
    x.graph.set({x: np.ones((2, 3)), y: np.ones(2)})
    micro = rg.optim.MicroBatches(rg.optim.SGD([w], lr=0.1), 4)
    micro.backward(loss)
    micro.backward(loss)
    micro.flush()
    x2, y2, w2, loss2 = model()
    x2.graph.set({x2: np.ones((2, 3)), y2: np.ones(2)})
    opt = rg.optim.SGD([w2], lr=0.1)
    loss2.backward()
    opt.step()
    np.testing.assert_allclose(w.value, w2.value, rtol=1e-12)


def test_batches_of_other_lengths_count_by_their_samples() -> None:
    """The last batch of an epoch is shorter: a sample of it counted more than others."""
    rng = np.random.default_rng(1)
    data, wanted = rng.normal(size=(10, 3)), rng.normal(size=10)
    x, y, w, loss = model()
    micro = rg.optim.MicroBatches(rg.optim.SGD([w], lr=0.1), 3)
    x2, y2, w2, loss2 = model()
    whole = rg.optim.SGD([w2], lr=0.1)
    for bounds in ([0, 4, 8, 10], [0, 1, 7, 10], [0, 2, 4, 6]):
        for start, stop in itertools.pairwise(bounds):
            x.graph.set({x: data[start:stop], y: wanted[start:stop]})
            micro.backward(loss, np.int64(stop - start))
        x2.graph.set({x2: data[: bounds[-1]], y2: wanted[: bounds[-1]]})
        whole.zero_grad()
        loss2.backward()
        whole.step()
        np.testing.assert_allclose(w.value, w2.value, rtol=1e-12)


def test_lengths_are_given_for_all_batches_of_a_step() -> None:
    x, y, w, loss = model()
    x.graph.set({x: np.ones((2, 3)), y: np.ones(2)})
    micro = rg.optim.MicroBatches(rg.optim.SGD([w], lr=0.1), 2)
    micro.backward(loss, 2)
    with pytest.raises(rg.DTypeError, match="some without. Write micro"):
        micro.backward(loss)
    with pytest.raises(rg.DTypeError, match="the number of samples is positive"):
        micro.backward(loss, 0)
    assert (micro.pending, w.value_version) == (1, 1)
