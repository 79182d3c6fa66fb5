"""Plans in which versions decide, replayed: what leaves their loop in the middle, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import reactgrad as rg
from tests.plans import keeps_plans


class Rungs:
    """A ladder behind a cutoff, each rung a Python function; read until its plan is replayed."""

    def __init__(self, length: int = 6) -> None:
        g = self.g = rg.Graph()
        self.x = g.input(0.0, name="x")
        self.acts: dict[int, object] = {}
        self.rungs: list[rg.Var] = []
        node = self.x
        for k in range(length):
            node = rg.lift(lambda v, k=k: self.step(k, v), cutoff="equal")(node)
            node.name = f"rung_{k}"
            self.rungs.append(node)
        self.end = node
        for value in (1.0, 2.0, 3.0, 4.0):
            self.x.set(value)
            assert self.end.value == value + length
        assert not keeps_plans(g) or any(
            t.plan.rows for t in g._scheduler.plans._transitions.values()
        )

    def step(self, k: int, v: float) -> float:
        act = self.acts.get(k)
        return v + 1.0 if act is None else act(v)  # type: ignore[operator]

    def names(self, nodes: rg.VarList) -> list[str]:
        return [node.name for node in nodes]

    def settled(self) -> None:
        self.g.check_invariants()
        assert [node.value_version for node in self.rungs] == [
            node.parent_versions[0] for node in self.rungs[1:]
        ] + [self.end.value_version]


def test_what_a_cutoff_holds_is_skipped_and_stays_the_same_object() -> None:
    g = rg.Graph()
    x = g.input(0.0)
    floor = rg.lift(lambda v: int(v), cutoff="equal")(x)
    words = rg.lift(lambda n: ["word"] * n)(floor)
    for value in (1.0, 2.0, 3.0, 4.0):
        x.set(value)
        words.value
    held, version = words.value, words.value_version
    x.set(4.5)
    run = g.forward(words)
    assert (run.ran, run.cut_off, run.skipped) == ([floor], [floor], [words])
    assert words.value is held
    assert words.value_version == version
    x.set(5.5)
    run = g.forward(words)
    assert (run.ran, run.cut_off, run.skipped) == ([floor, words], [], [])
    assert len(words.value) == 5
    assert len(held) == 4
    g.check_invariants()


def test_a_node_that_begins_to_read_takes_the_rest_out_of_the_loop() -> None:
    ladder = Rungs()
    other = ladder.g.input(10.0, name="other")
    double = rg.lift(lambda v: 2 * v)(other)
    ladder.acts[2] = lambda v: v + double.value
    ladder.x.set(5.0)
    run = ladder.g.forward(ladder.end)
    assert ladder.end.value == 5.0 + 5 + 20.0
    assert run.ran == [*ladder.rungs[:2], double, *ladder.rungs[2:]]
    assert double in ladder.rungs[2].parents
    ladder.settled()
    other.set(11.0)
    assert ladder.g.forward(ladder.end).ran == [double, *ladder.rungs[2:]]
    assert ladder.end.value == 5.0 + 5 + 22.0
    ladder.settled()


def test_a_node_that_raises_leaves_what_has_run_and_blocks_what_follows() -> None:
    ladder = Rungs()
    before = [node.value_version for node in ladder.rungs]

    def fails(v: float) -> float:
        raise ZeroDivisionError("at three")

    ladder.acts[3] = fails
    ladder.x.set(5.0)
    with pytest.raises(ZeroDivisionError, match="at three"):
        ladder.end.value
    run = ladder.g.last_run
    assert run.ran == ladder.rungs[:3]
    assert ladder.names(run.failed) == ["rung_3"]
    after = [node.value_version for node in ladder.rungs]
    assert after == [v + 1 for v in before[:3]] + before[3:]
    ladder.g.check_invariants()
    with pytest.raises(ZeroDivisionError, match="at three"):
        ladder.end.value
    assert ladder.g.last_run.ran == [], "it is raised again, and not run"
    del ladder.acts[3]
    ladder.x.set(6.0)
    assert ladder.g.forward(ladder.end).ran == ladder.rungs
    assert ladder.end.value == 12.0
    ladder.settled()


def test_a_node_that_cancels_the_run_is_the_last_one() -> None:
    ladder = Rungs()

    def cancels(v: float) -> float:
        ladder.g.cancel()
        return v + 1.0

    ladder.acts[3] = cancels
    ladder.x.set(5.0)
    with pytest.raises(rg.Cancelled):
        ladder.end.value
    assert ladder.g.last_run.ran == ladder.rungs[:4]
    ladder.g.check_invariants()
    del ladder.acts[3]
    assert ladder.g.forward(ladder.end).ran == ladder.rungs[4:]
    assert ladder.end.value == 11.0
    ladder.settled()


def test_a_read_that_was_cancelled_before_is_no_plan_of_the_same_read() -> None:
    """What it left stale would pass for what was clean before, and not run."""
    g = rg.Graph()
    x = g.input(0.0)
    cancelling: set[str] = set()

    def adding(name: str, number: float) -> Callable[[float], float]:
        def add(v: float) -> float:
            if name in cancelling:
                g.cancel()
            return v + number

        return add

    first = rg.lift(adding("first", 1.0), cutoff="equal")(x)
    left, right = rg.lift(adding("left", 10.0))(first), rg.lift(adding("right", 100.0))(first)
    end = rg.lift(lambda a, b: a + b)(left, right)

    def read(*names: str) -> list[rg.Var]:
        cancelling.clear()
        cancelling.update(names)
        if names:
            with pytest.raises(rg.Cancelled):
                g.forward(end)
        else:
            g.forward(end)
        return list(g.last_run.ran)

    for turn in range(8):
        x.set(float(turn))
        assert read("first") == [first]
        if turn < 6:
            assert read("left") == [left]
            assert read() == [right, end]
        else:
            assert read() == [left, right, end]
        assert end.value == 2.0 * turn + 112.0
        g.check_invariants()


def test_an_interrupt_leaves_what_has_run() -> None:
    ladder = Rungs()

    def interrupted(v: float) -> float:
        raise KeyboardInterrupt

    ladder.acts[3] = interrupted
    ladder.x.set(5.0)
    with pytest.raises(KeyboardInterrupt):
        ladder.end.value
    assert ladder.g.last_run.ran == ladder.rungs[:3]
    ladder.g.check_invariants()
    del ladder.acts[3]
    assert ladder.g.forward(ladder.end).ran == ladder.rungs[3:]
    assert ladder.end.value == 11.0
    ladder.settled()


def test_marks_that_are_erased_in_the_middle_are_found_again() -> None:
    ladder = Rungs()

    def forgets(v: float) -> float:
        ladder.g.forget_marks()
        return v + 1.0

    ladder.acts[3] = forgets
    ladder.x.set(5.0)
    run = ladder.g.forward(ladder.end)
    assert run.ran == ladder.rungs
    assert ladder.end.value == 11.0
    ladder.settled()


def test_a_large_value_that_a_caller_holds_stays_while_the_loop_moves_on() -> None:
    def model(g: rg.Graph) -> tuple[rg.Var, list[rg.Var]]:
        x = g.input(np.zeros(40_000))
        first = rg.floor(x)
        first.cutoff = "equal"
        second = first + 1.0
        third = second * 2.0
        third.cutoff = "equal"
        return x, [first, second, third, third - 0.5]

    g = rg.Graph()
    x, nodes = model(g)
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for k in range(8):
        x.set(np.full(40_000, 0.5 * k))
        g.forward(*nodes)
        fresh_x, fresh = model(rg.Graph())
        fresh_x.set(np.full(40_000, 0.5 * k))
        for node, other in zip(nodes, fresh, strict=True):
            np.testing.assert_array_equal(node.value, other.value)
            if k >= 5:
                held.append((node.value, other.numpy()))
        g.check_invariants()
    for value, expected in held:
        np.testing.assert_array_equal(value, expected)
