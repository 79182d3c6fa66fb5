"""Sums of gradients by a thread are those of ``backward``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd


def model() -> tuple[Any, Any, Any, Any]:
    g = rg.Graph()
    w, b = g.param(np.arange(6.0).reshape(3, 2), name="w"), g.param(np.zeros(2), name="b")
    x = g.input(np.ones((4, 3)))
    return w, b, x, (rg.tanh(x @ w + b) ** 2).mean()


def test_sums_are_those_of_backward() -> None:
    w, b, x, loss = model()
    batches = np.random.default_rng(0).normal(size=(50, 4, 3))
    for batch in batches:
        x.set(batch)
        loss.backward()
    expected = w.grad, b.grad
    w.graph.zero_grad()
    with rd.Accumulator([w, b]) as sums:
        every = []
        for batch in batches:
            x.set(batch)
            every.append(sums.backward(loss))
    np.testing.assert_array_equal(w.grad, expected[0])
    np.testing.assert_array_equal(b.grad, expected[1])
    np.testing.assert_array_equal(every[-1][w].result(), expected[0])
    assert 1 <= sums.largest <= 32
    with rd.Accumulator([w, b]) as sums:  # adds to what is there
        sums.backward(loss)
    assert not np.array_equal(w.grad, expected[0])


def test_an_error_is_in_its_future() -> None:
    w, b, _, loss = model()
    sums = rd.Accumulator([w, b])
    good = sums.backward(loss)
    bad = sums.add(w, np.ones(7))
    after = sums.add(b, np.ones(2))
    with pytest.raises(
        rg.ShapeError, match=r"of shape \(7,\) was given for 'w', which has shape \(3, 2\)"
    ):
        bad.result()
    assert good[w].result().shape == (3, 2)
    assert after.result().shape == (2,)
    with pytest.raises(rg.ShapeError):
        sums.finish()
    assert w.grad is None
    sums.backward(loss)
    sums.finish()
    assert w.grad is not None
    sums.close()
    with pytest.raises(rd.DistributedError, match="this accumulator is closed"):
        sums.add(w, 1.0)


def test_many_wait_at_a_time() -> None:
    w, _, _, _ = model()
    sums = rd.Accumulator([w])
    futures = [sums.add(w, np.ones((3, 2))) for _ in range(500)]
    sums.finish()
    assert w.grad[0, 0] == 500.0
    assert all(one.done() for one in futures)
    assert sums.largest <= 32
    sums.close()


def test_frozen_and_unused_params_have_no_future() -> None:
    w, b, _, loss = model()
    other = w.graph.param(1.0)
    b.freeze()
    with rd.Accumulator([w, b, other]) as sums:
        assert list(sums.backward(loss)) == [w]
    with pytest.raises(rg.DTypeError, match="Accumulator takes params, not float"):
        rd.Accumulator([1.0])
    with pytest.raises(rg.DTypeError, match="name the params"):
        rd.Accumulator([])
