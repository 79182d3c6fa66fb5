"""A memory budget beside plans, gradients, forks, files, threads, errors and interrupts."""

from __future__ import annotations

import math
from random import Random
from threading import Thread

import numpy as np
import pytest

import reactgrad as rg
from tests.plans import keeps_plans
from tests.reactive.buffers import ROW, SIZE, Buffers, chain, released, squeeze

# --- plans -------------------------------------------------------------------------------------------


@pytest.mark.trusting
def test_a_loop_that_fits_replays_its_plan_whatever_else_is_released() -> None:
    g = rg.Graph(max_bytes=6 * SIZE)
    x, made = g.input(np.zeros(ROW)), chain(g, 3)
    y = (x + 1.0) * 2.0
    for turn in range(10):
        x.set(np.full(ROW, float(turn)))
        assert y.value[0] == 2.0 * (turn + 1.0)
    before = g.stats()
    for turn in range(10):
        x.set(np.full(ROW, float(turn)))
        y.value
    after = g.stats()
    assert after.plan_hits - before.plan_hits == 10
    made[-1].value
    assert g.stats().evicted > 0
    for turn in range(10):
        x.set(np.full(ROW, float(turn)))
        assert y.value[0] == 2.0 * (turn + 1.0)
    assert g.stats().plan_misses - after.plan_misses <= 4, "new plans, found once"


@pytest.mark.trusting
def test_a_loop_that_does_not_fit_finds_its_plan_again() -> None:
    """Every turn releases the same values, and so comes back to the same state."""
    g = rg.Graph(max_bytes=4 * SIZE)
    made = chain(g, 50)
    for turn in range(4):
        made[0].set(np.full(ROW, 1.0 + turn))
        made[-1].value
    before = g.stats()
    for turn in range(10):
        made[0].set(np.full(ROW, 1.0 + turn))
        run = g.forward(made[-1])
        assert (len(run.ran), len(run.rebuilt)) == (50, 0)
    after = g.stats()
    assert after.plan_hits - before.plan_hits == 10
    assert after.peak_bytes == 4 * SIZE


@pytest.mark.trusting
def test_releasing_by_hand_keeps_plans_too() -> None:
    g = rg.Graph()
    w = g.param(np.ones(ROW))
    loss = (rg.sin(w) * w).sum()
    for turn in range(4):
        w.set(np.full(ROW, float(turn)))
        loss.backward(retain_graph=False)
    before = g.stats()
    for turn in range(10):
        w.set(np.full(ROW, float(turn)))
        w.zero_grad()
        loss.backward(retain_graph=False)
        assert w.grad[0] == math.cos(turn) * turn + math.sin(turn)
    after = g.stats()
    assert after.plan_misses == before.plan_misses
    assert after.bytes < 2 * SIZE, "plans hold on to nothing"
    assert after.ran - before.ran == 10 * len(g.last_run.ran)
    g.check_invariants()


def test_moved_storage_costs_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactgrad_scheduler.scheduler.MAX_MOVES", 3)
    g = rg.Graph()
    x = g.input(np.zeros(2**17))
    y = x + 1.0
    held = []
    for turn in range(20):
        x.set(np.full(2**17, float(turn)))
        held.append(y.value)  # each turn in new memory
    assert [a[0] for a in held] == [turn + 1.0 for turn in range(20)]
    if keeps_plans(g):
        assert g.stats().plan_misses <= 3


# --- gradients ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("room", [8, 12, 40])
@pytest.mark.parametrize("retain", [None, False])
def test_backward_within_a_budget(buffers: Buffers, room: int, retain: bool | None) -> None:
    """Adjoints are values like others; the ones they are computed from are rebuilt."""

    def deep(g: rg.Graph) -> tuple[rg.Var, rg.Var]:
        w = g.param(np.linspace(0.1, 1.0, ROW))
        y = w
        for _ in range(60):
            y = rg.tanh(y) * 1.1
        return w, y.sum()

    w, loss = deep(rg.Graph())
    reference = loss.backward()
    v, tight = deep(rg.Graph(max_bytes=room * SIZE))
    buffers.peak = 0
    before = buffers.bytes
    run = tight.backward(retain_graph=retain)
    assert [var.name for var in run.ran] == [var.name for var in reference.ran]
    assert v.grad.tobytes() == w.grad.tobytes()
    assert len(run.rebuilt) > 0
    assert buffers.peak - before <= room * SIZE
    if room > 8:
        assert len(run.rebuilt) < len(run.ran)
    g = v.graph
    v.zero_grad()
    again = tight.backward(retain_graph=retain)
    assert not again.ran
    assert v.grad.tobytes() == w.grad.tobytes()
    if retain is False:
        assert g.stats().bytes <= 3 * SIZE
    g.check_invariants()


@pytest.mark.slow
def test_a_deep_backward_computes_little_twice() -> None:
    """Values that stay are spread over the graph (Kirisame et al., 2021): no quadratic rebuilding."""
    g = rg.Graph(max_bytes=32 * SIZE)
    w = g.param(np.linspace(0.1, 1.0, ROW))
    y = w
    for _ in range(300):
        y = rg.tanh(y)
    run = y.sum().backward()
    assert len(run.rebuilt) < len(run.ran)


def test_retain_graph_true_is_never_released() -> None:
    g = rg.Graph()
    w = g.param(np.ones(ROW))
    h = w * 3.0
    loss = (h * h).sum()
    other = w + 1.0
    other.value
    loss.backward(retain_graph=True)
    inner = [v for v in g.nodes if v.parents and v is not loss and v is not other]
    squeeze(g)
    assert released(other) == [True]
    assert not any(released(*inner))
    loss.backward(retain_graph=False)
    assert released(h) == [True]
    assert h.value[0] == 3.0
    assert w.grad[0] == 2 * 18.0


def test_gradients_that_callers_hold_stay_what_they_were() -> None:
    g = rg.Graph(max_bytes=8 * 8 * 2**17)
    w = g.param(np.ones(2**17))
    y = w
    for _ in range(10):
        y = y * 1.5
    loss = y.sum()
    loss.backward()
    first = w.grad
    kept = first.copy()
    w.set(np.zeros(2**17))
    loss.value
    w.zero_grad()
    loss.backward()
    assert first.tobytes() == kept.tobytes()
    assert w.grad.tobytes() == kept.tobytes()


# --- forks and files ---------------------------------------------------------------------------------


def test_a_fork_has_the_budget_for_itself() -> None:
    g = rg.Graph(max_bytes=4 * SIZE)
    made = chain(g, 8)
    made[-1].value
    figures = g.stats()
    h = g.fork()
    assert h.max_bytes == 4 * SIZE
    h[made[0]].set(np.zeros(ROW))
    assert h[made[8]].value[0] == 0.0
    assert h.stats().bytes <= 4 * SIZE
    assert g.stats() == figures
    h.max_bytes = None
    assert g.max_bytes == 4 * SIZE
    with g.whatif({made[0]: np.ones(ROW)}) as w:
        expected = 1.0
        for _ in range(5):
            expected = math.sin(expected)
        assert w[made[5]].value[0] == expected
        assert w.stats().bytes <= 4 * SIZE
        w.check_invariants()
    g.check_invariants()


def test_a_fork_rebuilds_what_was_released_before_it() -> None:
    g = rg.Graph()
    made = chain(g, 4)
    made[-1].value
    expected = made[2].value.tobytes()
    squeeze(g)
    h = g.fork()
    run = h.forward(h[made[2]])
    assert h[made[2]] in run.rebuilt
    assert h[made[2]].value.tobytes() == expected
    assert released(made[2]) == [True]


def test_a_saved_graph_keeps_budget_and_releases(tmp_path) -> None:
    pytest.importorskip("safetensors")
    g = rg.Graph()
    made = chain(g, 4)
    for i, var in enumerate(made):
        var.name = f"v{i}"
    held = made[0] * 2.0
    held.name = "held"
    g.forward(held, made[-1])
    held.cutoff = rg.tolerance(atol=10.0)
    made[0].set(np.zeros(ROW))
    g.forward(held, made[-1])
    held.cutoff = None
    squeeze(g)
    g.max_bytes = 4 * SIZE
    g.save(tmp_path / "graph")
    h = rg.load(tmp_path / "graph")
    assert h.max_bytes == 4 * SIZE
    run = h.forward(h["v3"])
    assert [v.name for v in run.rebuilt] == ["v1", "v2", "v3"]
    assert not run.ran
    squeeze(h)
    assert released(h["held"], h["v3"]) == [False, True]
    assert h["held"].value[-1] == 2.0, "it could not be computed again"
    assert h["v3"].value_version == made[3].value_version == 2
    h.check_invariants()


# --- threads -----------------------------------------------------------------------------------------


def test_threads_read_whole_values_while_others_are_released() -> None:
    """Also those that are read without the lock."""
    g = rg.Graph(max_bytes=4 * SIZE)
    x = g.input(np.full(ROW, 0.0))
    made = [x]
    for _ in range(8):
        made.append(made[-1] + 1.0)
    wrong: list[object] = []

    def read(seed: int) -> None:
        rng = Random(seed)
        for _ in range(150):
            depth = rng.randrange(9)
            value = made[depth].value
            if np.ptp(value) or value[0] - depth not in range(50):
                wrong.append((depth, value))

    readers = [Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in readers:
        thread.start()
    for turn in range(50):
        x.set(np.full(ROW, float(turn)))
    for thread in readers:
        thread.join()
    assert not wrong
    assert [made[depth].value[0] for depth in range(9)] == [49.0 + depth for depth in range(9)]
    assert g.stats().evicted > 0
    assert x.value_version == 51
    g.check_invariants()


# --- errors and interruptions --------------------------------------------------------------------------


def test_a_rebuild_that_raises_is_that_nodes_error() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    broken: list[int] = []

    def fragile(a: np.ndarray) -> np.ndarray:
        if broken:
            raise ZeroDivisionError("gone")
        return a + 1.0

    y = rg.lift(fragile)(x)
    z = y + 1.0
    z.value
    squeeze(g)
    broken.append(1)
    with pytest.raises(ZeroDivisionError, match="gone"):
        y.value
    g.check_invariants()
    broken.clear()
    with pytest.raises(ZeroDivisionError):
        y.value
    g.forward(y, retry=True)
    assert z.value[0] == 3.0
    g.check_invariants()


def test_an_interrupt_in_the_middle_of_a_rebuild_leaves_a_graph_that_goes_on() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    strike: list[int] = []

    def slow(a: np.ndarray) -> np.ndarray:
        if strike:
            strike.clear()
            raise KeyboardInterrupt
        return a + 1.0

    y = rg.lift(slow)(x + 1.0)
    z = y * 2.0
    end = z + 1.0
    end.value
    squeeze(g)
    strike.append(1)
    with pytest.raises(KeyboardInterrupt):
        z.value
    assert not g._scheduler.awaited
    assert not g._scheduler.locked
    g.check_invariants()
    assert z.value[0] == 6.0


def test_a_cancelled_rebuild_is_taken_up_again() -> None:
    g = rg.Graph()
    x = g.input(np.ones(ROW))
    calls: list[int] = []

    def stop(a: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 2:
            g.cancel()
        return a + 1.0

    y = rg.lift(stop)(x)
    z = y * 2.0
    end = z + 1.0
    end.value
    squeeze(g)
    with pytest.raises(rg.Cancelled, match="computed again"):
        z.value
    g.check_invariants()
    assert z.value[0] == 4.0
    assert z.value_version == 1


def test_a_transaction_that_fails_within_a_budget() -> None:
    g = rg.Graph(max_bytes=3 * SIZE)
    made = chain(g, 6)
    expected = made[-1].value.tobytes()
    with pytest.raises(ValueError, match="no"), g.transaction():
        made[0].set(np.zeros(ROW))
        assert made[-1].value[0] == 0.0
        raise ValueError("no")
    assert made[-1].value.tobytes() == expected
    assert g.stats().peak_bytes <= 3 * SIZE
    g.check_invariants()
