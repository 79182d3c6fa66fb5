"""What values take: figures against tracemalloc, steady loops, and memory that is used again."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend._device import CPU

SIDE = 256
LARGE = SIDE * SIDE * 8  # bytes of one activation
LAYERS = 6


class Traced:
    """Bytes that a block has taken: at its end, and at most."""

    kept = most = 0


@contextmanager
def traced() -> Iterator[Traced]:
    found = Traced()
    np.random.default_rng(0)  # NumPy imports a few MB when that is asked for first
    gc.collect()
    tracemalloc.start()
    try:
        yield found
        gc.collect()
        found.kept, found.most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


def layer(x: Any, w: Any) -> Any:
    return rg.tanh(rg.linear(x, w, 0.5)) * 0.5 + x


def network(g: rg.Graph, build: Callable[..., Any] = layer) -> tuple[Any, list[Any], Any]:
    rng = np.random.default_rng(0)
    x = g.input(rng.normal(size=(SIDE, SIDE)))
    params = [g.param(rng.normal(size=(SIDE, SIDE)) / SIDE) for _ in range(LAYERS)]
    y = x
    for w in params:
        y = build(y, w)
    return x, params, rg.cross_entropy(y, np.arange(SIDE)).mean()


@pytest.mark.slow
def test_bytes_are_what_is_there() -> None:
    with traced() as memory:
        g = rg.Graph()
        _, _, loss = network(g)
        loss.backward()
        held = g.stats().bytes
    gradients = LAYERS * LARGE  # .grad is the caller's
    assert held > 20 * LARGE
    assert memory.kept - gradients == pytest.approx(held, rel=0.1)


def most(build: Callable[..., Any], *, retain: bool | None = None) -> tuple[int, int]:
    """Most bytes of a forward and a backward: as counted, and as traced."""
    g = rg.Graph()
    g.max_bytes = 1 << 40  # never reached: it only counts
    _, _, loss = network(g, build)
    with traced() as memory:
        before = g.stats().bytes
        loss.value
        loss.backward(retain_graph=retain)
    return g.stats().peak_bytes - before, memory.most


@pytest.mark.slow
@pytest.mark.fused
@pytest.mark.whole
@pytest.mark.parametrize("retain", [None, False])
def test_peak_needs_no_budget(retain: bool | None) -> None:
    with traced() as memory:
        g = rg.Graph()
        _, _, loss = network(g)
        loss.backward(retain_graph=retain)
    stats = g.stats()
    assert stats.peak_bytes == pytest.approx(memory.most, rel=0.1)
    if retain is False:
        assert stats.bytes < stats.peak_bytes
        assert "peak" in str(stats)


@pytest.mark.slow
def test_peak_counts_what_callers_hold_and_stays_when_all_is_gone() -> None:
    g = rg.Graph()
    x = g.input(np.zeros((SIDE, SIDE)))
    y = x + 1.0
    held = []
    for turn in range(4):
        x.set(np.full((SIDE, SIDE), float(turn)))
        held.append(y.value)  # each turn in new memory
    assert g.stats().peak_bytes == 5 * LARGE
    assert g.stats().bytes == 2 * LARGE
    held.clear()
    for turn in range(4):
        x.set(np.full((SIDE, SIDE), float(turn)))
        held = [y.value]
    assert g.stats().peak_bytes == 5 * LARGE, "what is gone makes room"
    del held, y
    gc.collect()
    assert g.stats().bytes == LARGE
    assert g.stats().peak_bytes == 5 * LARGE
    z = x * 2.0
    assert z.value[0, 0] == 6.0
    assert g.stats().peak_bytes == 5 * LARGE
    assert rg.Graph().stats().peak_bytes == 0


@pytest.mark.slow
def test_peak_is_counted_and_falls_with_checkpoints() -> None:
    plain, traced_plain = most(layer)
    less, traced_less = most(lambda x, w: rg.checkpoint(layer, x, w))
    assert plain > 20 * LARGE
    assert less < plain * 0.8
    assert traced_less < traced_plain * 0.8
    assert plain == pytest.approx(traced_plain, rel=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("retain", [None, False])
def test_steady_step_takes_no_new_large_array(
    retain: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what its caller gets: .grad of each param."""
    g = rg.Graph()
    x, _, loss = network(g)
    batches = [np.random.default_rng(i).normal(size=(SIDE, SIDE)) for i in range(6)]

    def step(batch: Any) -> None:
        x.set(batch)
        loss.backward(retain_graph=retain)
        g.zero_grad()

    for batch in batches[:4]:
        step(batch)
    before = g.stats()
    assert bool(before.spare_bytes) == (retain is False)
    taken: list[int] = []
    empty = CPU.empty

    def counted(self: CPU, shape: tuple[int, ...], dtype: Any) -> Any:
        array = empty(self, shape, dtype)
        taken.append(array.nbytes)
        return array

    monkeypatch.setattr(CPU, "empty", counted)
    for batch in batches[4:]:
        step(batch)
    assert sum(size >= LARGE for size in taken) <= 2 * LAYERS
    after = g.stats()
    assert (after.bytes, after.spare_bytes) == (before.bytes, before.spare_bytes)


@pytest.mark.slow
def test_released_values_leave_at_most_their_share() -> None:
    g = rg.Graph()
    x = g.param(np.ones((1 << 20,)))
    y = x
    for _ in range(8):
        y = rg.tanh(y)
    loss = y.sum()
    for turn in range(3):
        loss.backward(retain_graph=False)
        # What is let go once goes to the system, what is let go again waits for the next step.
        assert bool(g.stats().spare_bytes) == bool(turn)
        assert g.stats().spare_bytes <= 32 << 20
        x.touch()
    assert "spare" in str(g.stats())
    g.max_bytes = 1 << 40
    assert g.stats().spare_bytes == 0
    loss.backward(retain_graph=False)
    assert g.stats().spare_bytes == 0


# --- nobody sees that memory is used again (rule E8) ---------------------------------------------


def released(g: rg.Graph) -> tuple[Any, Any, Any]:
    x = g.param(np.full((200, 200), 0.5))
    hidden = rg.tanh(x)
    loss = (hidden * hidden).sum()
    loss.backward(retain_graph=False)  # from the second time on memory is used again
    x.touch()
    return x, hidden, loss


def again(x: Any, loss: Any) -> None:
    """Other values in whatever memory there is."""
    for turn in range(3):
        x.set(np.full((200, 200), 2.0 + turn))
        loss.backward(retain_graph=False)
        loss.value


def test_value_that_a_caller_holds_stays() -> None:
    g = rg.Graph()
    x, hidden, loss = released(g)
    held = hidden.value[3:]
    loss.backward(retain_graph=False)
    again(x, loss)
    np.testing.assert_array_equal(held, np.tanh(0.5))


def test_view_that_is_not_released_stays() -> None:
    """Nor a view of a view that is."""
    g = rg.Graph()
    x, hidden, loss = released(g)
    turned = hidden.T
    part = turned[5:]
    part.value
    held = part.value
    loss.backward(retain_graph=False)
    other = rg.sin(g.input(np.full((200, 200), 9.0)))
    other.value
    np.testing.assert_array_equal(part.value, np.tanh(0.5))
    again(x, loss)
    np.testing.assert_array_equal(held, np.tanh(0.5))


def test_fork_keeps_its_values() -> None:
    g = rg.Graph()
    x, hidden, loss = released(g)
    hidden.value
    twin = g.fork()
    loss.backward(retain_graph=False)
    again(x, loss)
    np.testing.assert_array_equal(twin[hidden].value, np.tanh(0.5))


def test_failed_transaction_gives_back_what_was() -> None:
    g = rg.Graph()
    x, hidden, loss = released(g)
    turned = hidden.T
    turned.value
    with pytest.raises(ZeroDivisionError):
        with g.transaction():
            loss.backward(retain_graph=False)
            again(x, loss)
            raise ZeroDivisionError
    np.testing.assert_array_equal(turned.value, np.tanh(0.5))
    np.testing.assert_array_equal(hidden.value, np.tanh(0.5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_loops_that_let_go_compute_what_others_do(seed: int) -> None:
    """Two graphs, one of which keeps everything; values are held for a while."""
    code = random.Random(seed)
    graphs = [rg.Graph(), rg.Graph()]
    made = []
    for g in graphs:
        pick = random.Random(seed)
        nodes = [g.param(np.linspace(0.1, 1.0, 10_000).reshape(100, 100)) for _ in range(2)]
        for _ in range(12):
            a, b = pick.choice(nodes), pick.choice(nodes)
            nodes.append(
                pick.choice(
                    [
                        lambda a, b: rg.tanh(a) * b,
                        lambda a, b: a + b,
                        lambda a, b: a.T,
                        lambda a, b: rg.softmax(a),
                        lambda a, b: a[::-1] * 0.5,
                        lambda a, b: rg.relu(a - b),
                        lambda a, b: a.reshape(-1)[::2].sum() * b,
                    ]
                )(a, b)
            )
        made.append((nodes, sum(nodes[2:], nodes[0]).sum()))
    held: list[tuple[Any, Any]] = []
    for _ in range(12):
        at, fill = code.randrange(2), code.random()
        letting = code.random() < 0.7
        for retain, (nodes, loss) in zip((False if letting else None, None), made, strict=True):
            nodes[at].set(np.full((100, 100), fill))
            loss.backward(retain_graph=retain)
        one = code.randrange(len(made[0][0]))
        for node, twin in [(made[0][0][one], made[1][0][one])]:
            value = node.value
            np.testing.assert_array_equal(value, twin.value)
            held = [*held[-3:], (value, value.copy())]
        for value, copy in held:
            np.testing.assert_array_equal(value, copy)
        for node, twin in zip(made[0][0][:2], made[1][0][:2], strict=True):
            np.testing.assert_array_equal(node.grad, twin.grad)
        graphs[0].check_invariants()


@pytest.mark.slow
def test_loops_that_only_pin_hook_or_fail_leave_nothing_behind() -> None:
    g = rg.Graph()
    x = g.param(2.0)
    y = x * 3.0
    z = y * y
    gradient = rg.grad(z, x)

    def pins() -> None:
        y.pin(1.0)
        y.unpin()

    def hooks() -> None:
        y.register_hook(lambda gradient: gradient * 2.0).remove()

    def fails() -> None:
        with pytest.raises(ZeroDivisionError), g.transaction():
            y.pin(1.0)
            raise ZeroDivisionError

    for act in (pins, hooks, fails):
        left = []
        for _ in range(3):
            for _ in range(50):
                act()
                _ = z.value, gradient.value
            left.append(len(g._host.dropped))
        assert max(left) < 25, f"{act.__name__}: handles that died pile up"
        assert left[1] == left[2]
