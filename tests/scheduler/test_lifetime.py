"""A node lives as long as someone can reach it (rule E13), and nothing else does."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import reactgrad as rg


class Box:
    """A value whose life can be watched."""

    def __init__(self, content: float) -> None:
        self.content = content


@pytest.fixture
def no_cyclic_gc() -> Iterator[None]:
    """What is freed is freed by reference counts alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def growth(act: Callable[[int], object], times: int) -> int:
    """Bytes by which a second `times` repetitions of `act` need more than the first.

    Both peaks are compared, since caches with a bound fill and empty.
    """
    peaks = []
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(times // 2):
            act(i)
        for _ in range(2):
            tracemalloc.reset_peak()
            for i in range(times):
                act(i)
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    return peaks[1] - peaks[0]


def largest_table(g: rg.Graph) -> tuple[int, str]:
    """The number of entries of the largest container inside the engine, and its name."""
    scheduler = g._scheduler
    parts = [scheduler, g._host, scheduler.topology, scheduler.versions, scheduler.staleness]
    found = [(0, "")]
    for part in [*parts, scheduler.plans, scheduler.notes, g, g._programs]:
        slots = [name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in {*slots, *getattr(part, "__dict__", ())}:
            table = getattr(part, name, None)
            if isinstance(table, list | dict | set | deque | bytearray):
                found.append((len(table), f"{type(part).__name__}.{name}"))
    return max(found)


def test_a_name_does_not_keep_a_node_and_is_free_again(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    y.name = "price"
    assert g["price"] is y
    del y
    with pytest.raises(KeyError, match="price"):
        g["price"]
    z = x * 2.0
    z.name = "price"
    assert g["price"] is z


@pytest.mark.slow
def test_keep_keeps(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = g.keep(x + 1.0)
    y.name = "price"
    del y
    gc.collect()
    assert float(g["price"].value) == 2.0


def test_a_consumer_keeps_what_it_needs_and_a_node_has_one_var(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.tanh(rg.sin(x))
    assert len(g) == 3
    middle = y.parents[0]
    assert y.parents[0] is middle
    assert middle.parents[0] is x
    del middle
    assert len(g) == 3
    del y
    assert len(g) == 1
    g.check_invariants()


def test_a_gradient_keeps_what_it_needs_and_its_program_goes_with_the_output(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0])
    y = (x * x).sum()
    gradient = rg.grad(y, x)
    with_gradient = len(g)
    assert rg.grad(y, x) is gradient
    assert len(g) == with_gradient
    del y
    x.set([3.0, 4.0])
    assert gradient.value.tolist() == [6.0, 8.0]
    del gradient
    assert len(g) == 1


# No table has more entries than its bound, however often something is repeated.
BOUND = 4200


@pytest.mark.slow
def test_rebuilding_an_expression_30_000_times_leaves_everything_flat() -> None:
    g = rg.Graph()
    x = g.input(2.0)

    def rebuild(i: int) -> None:
        y = rg.tanh(x * float(i % 50)) + x
        y.value

    for i in range(15_000):
        rebuild(i)
    grown = growth(rebuild, 5_000)
    assert len(g) == 1
    assert len(g._scheduler.topology.parents) < 50, "slots were not used again"
    assert largest_table(g) <= (BOUND, "")
    assert grown < 40_000, f"{grown} bytes more after 5,000 rebuilds"
    g.check_invariants()


@pytest.mark.slow
def test_rebuilding_and_differentiating_in_a_loop_leaves_no_table_growing() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    for i in range(1500):
        w.set([float(i), 1.0])
        loss = (rg.tanh(w) * w).sum()
        loss.backward()
        rg.grad(loss, w).value
        g.zero_grad()
    del loss
    assert len(g) == 1
    assert len(g._scheduler.topology.parents) < 100, "slots were not used again"
    assert largest_table(g) <= (BOUND, "")


@pytest.mark.parametrize("value", [float, lambda i: np.full(3, float(i)), int, str])
def test_setting_and_reading_in_a_loop_leaves_no_table_growing(
    value: Callable[[int], object],
) -> None:
    g = rg.Graph()
    x = g.input() if value is str else g.input(value(1))
    y = rg.lift(lambda v: v)(x)
    for i in range(10_000):
        x.set(value(i))
        y.value
    assert largest_table(g) <= (BOUND, "")


def test_reading_what_is_clean_in_a_loop_leaves_no_table_growing() -> None:
    g = rg.Graph()
    w = g.param(1.0)
    y = w * w
    for _ in range(10_000):
        g.forward(y)
        y.backward()
        y.zero_grad()
    assert largest_table(g) <= (BOUND, "")


def test_held_large_values_in_a_loop_leave_no_table_growing() -> None:
    g = rg.Graph()
    x = g.input(np.zeros(20_000))
    y = x + 1.0
    held = None
    for i in range(3000):
        x.set(np.full(20_000, float(i)))
        held = (x.value, y.value)
    assert held is not None
    assert held[1][0] == 3000.0
    assert largest_table(g) <= (BOUND, "")


@pytest.mark.slow
def test_errors_in_a_loop_leave_memory_flat() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.lift(lambda v: 1 / 0)(x)

    def step(i: int) -> None:
        x.set(float(i))
        try:
            y.value
        except ZeroDivisionError:
            pass

    grown = growth(step, 5000)
    assert grown < 60_000, f"{grown} bytes more after 5,000 errors"
    assert largest_table(g) <= (BOUND, "")


@pytest.mark.usefixtures("no_cyclic_gc")
def test_last_run_plans_and_values_do_not_outlive_the_node(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.lift(Box)(x)
    for i in range(6):
        x.set(float(i))
        value = weakref.ref(y.value)
    run = g.last_run
    assert run.ran == [y]
    node = weakref.ref(y)
    del y
    assert node() is None
    assert len(g) == 1
    assert value() is None
    assert run.ran == [], "a node that is gone is left out"
    assert "ran 1" in repr(run)


@pytest.mark.usefixtures("no_cyclic_gc")
def test_a_stored_error_does_not_keep_its_node(g: rg.Graph) -> None:
    y = rg.lift(lambda v: 1 / 0)(g.input(1.0))
    try:
        y.value
    except ZeroDivisionError:
        pass
    assert g.last_run.failed == [y]
    node = weakref.ref(y)
    del y
    assert len(g) == 0
    assert node() is None
    assert g.last_run.failed == []


@pytest.mark.usefixtures("no_cyclic_gc")
def test_a_graph_goes_with_its_last_handle(g: rg.Graph) -> None:
    local = rg.Graph()
    x = local.input(1.0)
    y = rg.lift(Box)(x)
    value = weakref.ref(y.value)
    for i in range(5):
        x.set(float(i))
        value = weakref.ref(y.value)
    graph = weakref.ref(local)
    del local, x
    assert value() is not None
    del y
    assert graph() is None
    assert value() is None


def test_a_var_that_dies_while_a_function_runs_is_cleared_afterwards(g: rg.Graph) -> None:
    x = g.input(1.0)
    box = [x + 5.0]

    def drops(value: float) -> float:
        box.clear()
        x * 3.0
        return value

    y = rg.lift(drops)(x)
    y.value
    assert len(g) == 2
    g.check_invariants()


def test_derivatives_go_with_the_last_node_that_uses_them(g: rg.Graph, no_cyclic_gc: None) -> None:
    """Also those for nodes in the middle, from which others are computed, and through tuples."""
    x = g.param([1.0, 2.0, 3.0, 4.0])

    def build(which: int) -> None:
        a, b = rg.split(x * 2.0, 2)
        h = a * b
        z = rg.tanh(h) * a
        y = z.sum()
        found = [
            rg.grad(y, h),
            rg.grad(y, [x, a]),
            rg.grad(z, h, gradient=np.ones(2)),
            rg.jvp(z, x, np.ones(4)),
            rg.jvp(y, h, np.ones(2)),
            rg.hessian(y, x),
            rg.hvp(y, x, np.ones(4)),
            rg.jacobian(z, x, mode="reverse"),
            rg.jacobian(z, h, mode="forward"),
        ]
        used = [one[0] * 2.0 if isinstance(one, tuple) else one * 2.0 for one in found]
        second = rg.grad(used[0].sum(), x)
        if which % 2:
            del found, a, b, h, z, y
        g.forward(second, *used)

    for which in range(4):
        build(which)
        g.nodes
        assert (len(g), len(g._programs.in_order())) == (1, 0)
        assert not g._host.givers
        assert not g._host.anchors


def test_a_dropped_node_is_not_listed_under_its_successor_in_the_slot(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    run = g.forward(y)
    slot = y._slot
    del y
    len(g)
    z = x * 2.0
    assert z._slot == slot, "the slot was not used again, so this test shows nothing"
    assert run.ran == []


def test_shared_numbers_do_not_pile_up(g: rg.Graph) -> None:
    x = g.input(1.0)
    ys = [x + 2.0 for _ in range(10)]
    assert len(g) == 12, "equal numbers share one constant"
    ys.clear()
    assert len(g) == 1
    y = x + 2.0
    assert float(y.value) == 3.0
    g.check_invariants()


def test_what_nobody_holds_any_more_refuses_no_shape(g: rg.Graph) -> None:
    x = g.input(np.ones(3))
    y = x + np.ones(3)
    del y
    x.set(np.ones(4))
    assert x.shape == (4,)


def test_what_nobody_holds_any_more_refuses_no_shape_that_an_observer_sets(g: rg.Graph) -> None:
    x, trigger = g.input(np.ones(3)), g.input(1.0)
    dead = [x + np.ones(3)]

    def resize(old: object, new: object) -> None:
        dead.clear()
        x.set(np.ones(4))

    observer = trigger.observe(resize)
    trigger.set(2.0)
    g.stabilize()
    assert x.shape == (4,)
    observer.cancel()


@pytest.mark.parametrize("in_block", [False, True])
def test_what_nobody_holds_any_more_refuses_no_removal(g: rg.Graph, in_block: bool) -> None:
    b = g.input(1.0) * 3
    b.name = "b"
    s = b + 1
    if in_block:
        with g.edit():
            del s
            g.remove(b)
    else:
        del s
        g.remove(b)
    assert "b" not in g


def test_a_leaf_that_only_its_dead_consumers_keep_is_set_by_name(g: rg.Graph) -> None:
    """Freeing what is dead before a new shape must not free the leaf under the set."""
    y = g.input(np.ones(3), name="x") * 2.0
    g.set({"x": np.ones(4)})
    assert y.shape == (4,)
