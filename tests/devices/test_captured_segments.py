"""Runs of kernels that launch as one graph: the same values, fewer launches, and what ends a segment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from .stand_in import Counts

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def chain(device: str, length: int = 8) -> tuple[rg.Graph, Any, Any]:
    g = rg.Graph(device=device)
    x = g.input(X)
    y = x
    for i in range(length):
        y = rg.tanh(y * (1.0 + 0.1 * i))
    return g, x, y


@pytest.mark.trusting
@pytest.mark.parametrize("device", ["fake:0", "fake:1"])
def test_a_run_of_kernels_becomes_one_launch(counts: Counts, device: str) -> None:
    g, x, y = chain(device)
    _, there, wanted = chain("cpu")
    launches = []
    for number in range(6):
        value = X * (1.0 + number)
        x.set(value)
        there.set(value)
        counts.clear()
        g.forward(y)
        launches.append(counts.launches)
        np.testing.assert_array_equal(y.numpy(), wanted.value)
    assert launches[-1] == 1
    assert counts.kernels[-1] != "tanh"
    assert launches[0] == 16
    assert y.value_version == 6
    assert len(g.last_run.ran) == 16


@pytest.mark.trusting
def test_gradients_and_matrix_products_between_segments(counts: Counts) -> None:
    def model(device: str) -> tuple[rg.Graph, Any, Any]:
        g = rg.Graph(device=device)
        x, w = g.input(X), g.param(np.full((4, 4), 0.3))
        h = rg.sigmoid(rg.tanh(x @ w) * 2.0 + x)
        loss = (rg.exp(-(h @ w)) * 0.5).sum()
        return g, x, rg.grad(loss, w)

    g, x, d = model("fake:1")
    _, there, wanted = model("cpu")
    for number in range(6):
        x.set(X + number)
        there.set(X + number)
        counts.clear()
        g.forward(d)
        kernels = [*counts.kernels]
        np.testing.assert_allclose(d.numpy(), wanted.value, rtol=1e-13)
    assert kernels.count("graph") >= 2
    assert {"dot", "matmul"} & set(kernels)  # refuse to be captured
    assert counts.grown == 0
    assert counts.syncs == 1  # the copy that this test has asked for
    g.check_invariants()


@pytest.mark.trusting
def test_a_number_that_changes_needs_no_new_graph(counts: Counts) -> None:
    g = rg.Graph(device="fake:0")
    x, rate = g.input(X), g.input(0.5)
    y = rg.exp(x * rate) + rate
    for number in range(8):
        rate.set(0.1 * number)
        counts.clear()
        g.forward(y)
        np.testing.assert_allclose(y.numpy(), np.exp(X * (0.1 * number)) + 0.1 * number)
    assert counts.kernels.count("graph") == 1


@pytest.mark.trusting
def test_memory_that_moves_is_captured_again(counts: Counts) -> None:
    g, x, y = chain("fake:0", 4)
    for number in range(4):
        x.set(X + number)
        g.forward(y)
    assert counts.kernels.count("graph")
    fork = g.fork()
    x.set(X * 3.0)  # into other memory: the fork has the former
    for number in range(8):
        x.set(X * (4.0 + number))
        g.forward(y)
    _, there, wanted = chain("cpu", 4)
    there.set(X * 11.0)
    np.testing.assert_array_equal(y.numpy(), wanted.value)
    there.set(X + 3.0)
    np.testing.assert_array_equal(fork[y].numpy(), wanted.value)
    x.set(np.ones((5, 4)))
    there.set(np.ones((5, 4)))
    for _ in range(3):
        np.testing.assert_array_equal(y.numpy(), wanted.value)
        x.touch()
    g.check_invariants()


def test_a_kernel_that_raises_is_named(counts: Counts) -> None:
    g = rg.Graph(device="fake:0")
    x = g.input(X)
    fail = [False]

    def kernel(a: Any, out: Any) -> None:
        if fail[0]:
            raise KeyError("broken")
        out.fill(1.0)

    op = rg.extend.primitive("test_between_segments", lambda x: x)(lambda a, out: np.copyto(out, a))
    rg.extend.register_kernel("test_between_segments", "fake", kernel)
    before = rg.tanh(rg.exp(x))
    y = op(before)
    after = rg.exp(rg.tanh(y))
    for number in range(4):
        x.set(X + number)
        g.forward(after)
    fail[0] = True
    x.set(X)
    with pytest.raises(KeyError):
        g.forward(after)
    assert list(g.last_run.failed) == [y]
    assert not before.is_stale
    assert after.is_stale
    fail[0] = False
    x.set(X * 2)
    g.forward(after)
    np.testing.assert_allclose(after.numpy(), np.full(X.shape, np.exp(np.tanh(1.0))))


def test_what_cannot_be_captured_runs_as_before(
    counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    from .stand_in import namespace

    def refuse(self: Any) -> Any:
        self.record = None
        raise RuntimeError("capture was invalidated")

    monkeypatch.setattr(namespace.cuda.Stream, "end_capture", refuse)
    _, x, y = chain("fake:1", 3)
    _, there, wanted = chain("cpu", 3)
    for number in range(4):
        x.set(X + number)
        there.set(X + number)
        np.testing.assert_array_equal(y.numpy(), wanted.value)
    assert "graph" not in counts.kernels


def test_only_what_is_stale_runs() -> None:
    g = rg.Graph(device="fake:0")
    x, z = g.input(X), g.input(X)
    a, b = rg.tanh(x * 2.0), rg.exp(z * 3.0)
    total = rg.tanh(a + b) * 2.0
    for number in range(5):
        x.set(X + number)
        run = g.forward(total)
    assert b not in run.ran
    for number in range(5):
        z.set(X * 0.1 * number)
        run = g.forward(total)
    assert a not in run.ran
    np.testing.assert_allclose(
        total.numpy(), np.tanh(np.tanh((X + 4) * 2.0) + np.exp(X * 0.4 * 3.0)) * 2.0
    )


def test_what_a_caller_holds_outlives_the_next_launch() -> None:
    g, x, y = chain("fake:0", 3)
    held = []
    for number in range(5):
        x.set(X + number)
        held.append((y.value, np.array(y.numpy())))
    for value, copy in held:
        np.testing.assert_array_equal(value.get(), copy)
    g.check_invariants()


@pytest.mark.parametrize("device", ["fake:0", "fake:1"])
def test_other_executors(device: str) -> None:
    g, x, y = chain(device, 6)
    g.executor = rg.Threads(2)
    total = rg.exp(y) + rg.tanh(x * 0.5)
    _, there, wanted = chain("cpu", 6)
    wanted = rg.exp(wanted) + rg.tanh(there * 0.5)
    for number in range(5):
        x.set(X + number)
        there.set(X + number)
        np.testing.assert_array_equal(total.numpy(), wanted.value)


def test_forgotten_marks_give_the_same() -> None:
    """Rule E16, with segments that stay captured."""
    g, x, y = chain("fake:1", 4)
    _, there, wanted = chain("cpu", 4)
    for number in range(6):
        x.set(X * number)
        there.set(X * number)
        if number % 2:
            g.forget_marks()
        np.testing.assert_array_equal(y.numpy(), wanted.value)
        assert y.value_version == number + 1
