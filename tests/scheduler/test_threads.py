"""Several threads on one graph (rule E14): no mix of old and new, no lost change."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import reactgrad as rg


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Threads change places all the time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def together(*acts: Callable[[], object]) -> None:
    """Run all in threads of their own, and pass on what one of them raises."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(acts))

    def guarded(act: Callable[[], object]) -> None:
        barrier.wait()
        try:
            act()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def test_sums_are_consistent_while_others_set(g: rg.Graph) -> None:
    a, b = g.input(0.0), g.input(0.0)
    difference = rg.tanh(a) - rg.tanh(b)
    doubled = difference * 2.0 + (a - b)
    seen: set[float] = set()

    def setter(factor: float) -> Callable[[], None]:
        def act() -> None:
            for i in range(300):
                g.set({a: i * factor, b: i * factor})

        return act

    def reader(*targets: rg.Var) -> Callable[[], None]:
        def act() -> None:
            for _ in range(300):
                for target in targets:
                    seen.add(float(target.value))

        return act

    together(setter(0.1), setter(0.3), reader(difference, doubled), reader(doubled), reader(a - b))
    assert seen == {0.0}
    assert a.value_version == b.value_version == 601
    g.check_invariants()


def test_no_set_is_lost_and_each_read_gives_a_value_that_was_set(g: rg.Graph) -> None:
    leaves = [g.input(float(i)) for i in range(4)]
    total = rg.stack(leaves).sum()

    def act(index: int) -> Callable[[], None]:
        def go() -> None:
            for i in range(200):
                leaves[index].set(float(i))
                assert float(leaves[index].value) == i, "another thread changed this thread's leaf"
                total.value

        return go

    together(*[act(i) for i in range(4)])
    assert [leaf.value_version for leaf in leaves] == [201] * 4
    assert float(total.value) == 4 * 199.0
    g.check_invariants()


@pytest.mark.slow
def test_threads_build_differentiate_and_drop_on_one_graph(g: rg.Graph) -> None:
    w = g.param([1.0, 2.0])

    def act(factor: float) -> Callable[[], None]:
        def go() -> None:
            for _ in range(60):
                y = (rg.sin(w * factor) * w).sum()
                slope = rg.grad(y, w)
                expected = np.sin(w.value * factor) + factor * w.value * np.cos(w.value * factor)
                assert np.allclose(slope.value, expected)
                y.backward()

        return go

    together(*[act(float(i + 1)) for i in range(4)])
    assert len(g) == 1
    g.check_invariants()


def test_gradient_mode_belongs_to_the_thread(g: rg.Graph) -> None:
    w = g.param(1.0)
    inside, built = threading.Event(), threading.Event()
    found: list[bool] = []

    def without() -> None:
        with rg.no_grad():
            inside.set()
            assert built.wait(30)
            found.append((w * 2.0).requires_grad)

    def within() -> None:
        assert inside.wait(30)
        found.append((w * 2.0).requires_grad)
        built.set()

    together(without, within)
    assert found == [True, False]
    assert rg.is_grad_enabled()


def test_one_no_grad_object_used_by_two_threads(g: rg.Graph) -> None:
    """Each thread finds its own mode again, in whatever order they leave."""
    switch = rg.no_grad()
    both_in, one_out = threading.Barrier(2), threading.Event()
    found: dict[str, bool] = {}

    def first() -> None:
        with switch:
            both_in.wait(30)
        found["first"] = rg.is_grad_enabled()
        one_out.set()

    def second() -> None:
        with rg.no_grad():
            with switch:
                both_in.wait(30)
                assert one_out.wait(30)
            found["second"] = rg.is_grad_enabled()

    together(first, second)
    assert found == {"first": True, "second": False}


def test_a_set_from_another_thread_waits_for_the_run_and_is_not_lost(g: rg.Graph) -> None:
    running, about_to_set = threading.Event(), threading.Event()
    a, b = g.input(1.0), g.input(1.0)

    def slow(value: float) -> float:
        running.set()
        about_to_set.wait(30)
        return float(value)

    y = rg.lift(slow)(a) + b

    def setter() -> None:
        assert running.wait(30)
        about_to_set.set()
        b.set(5.0)

    def reader() -> None:
        assert float(y.value) in (2.0, 6.0)

    together(reader, setter)
    assert float(y.value) == 6.0
    assert b.value_version == 2


def test_a_failure_in_one_thread_is_not_raised_in_another(g: rg.Graph) -> None:
    x = g.input(1.0)
    broken, fine = rg.lift(lambda v: 1 / 0)(x), x * 2.0

    def failing() -> None:
        for i in range(100):
            x.set(float(i))
            with pytest.raises(ZeroDivisionError):
                broken.value

    def reading() -> None:
        for _ in range(200):
            fine.value

    together(failing, reading, reading)
    g.check_invariants()


def test_mutate_from_several_threads_loses_nothing(g: rg.Graph) -> None:
    x = g.input(np.zeros(2))

    def act() -> None:
        for _ in range(100):
            with x.mutate() as array:
                value = array[0]
                array[0] = value + 1.0
                array[1] += 1.0

    together(act, act, act)
    assert x.value.tolist() == [300.0, 300.0]


def test_the_current_graph_belongs_to_the_thread() -> None:
    one, two = rg.Graph(), rg.Graph()
    barrier = threading.Barrier(2)

    def act(graph: rg.Graph) -> Callable[[], None]:
        def go() -> None:
            with graph:
                barrier.wait(30)
                assert rg.input(1.0).graph is graph
                barrier.wait(30)

        return go

    together(act(one), act(two))
