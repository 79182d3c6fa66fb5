"""Functions that read other nodes while they run: each read is a dependency of that run."""

from __future__ import annotations

import pytest

import reactgrad as rg


class Reader:
    """A function that also reads another node, when it is told to."""

    def __init__(self, other: rg.Var, *, looks: bool = True) -> None:
        self.other = other
        self.looks = looks
        self.calls = 0

    def __call__(self, value: float) -> float:
        self.calls += 1
        return float(value) + (float(self.other.value) if self.looks else 0.0)


def test_what_a_function_reads_is_right_at_every_run_and_runs_once(g: rg.Graph) -> None:
    x, a = g.input(1.0), g.input(1.0)
    inner = x * 2.0
    reader = Reader(inner)
    y = rg.lift(reader)(a) + inner
    for i in range(8):
        g.set({x: 10.0 + i, a: float(i)})
        version = inner.value_version
        assert float(y.value) == i + 4.0 * (10.0 + i)
        assert inner.value_version == version + 1
    assert reader.calls == 8
    g.check_invariants()


def test_a_change_of_what_was_read_makes_the_reader_stale(g: rg.Graph) -> None:
    x, a = g.input(1.0), g.input(1.0)
    inner = x * 2.0
    y = rg.lift(Reader(inner))(a)
    y.value
    for i in range(6):
        x.set(float(i))
        assert y.is_stale
        assert y.value == 1.0 + 2.0 * i
    assert inner in y.parents


def test_a_read_inside_the_middle_of_a_hot_plan(g: rg.Graph) -> None:
    """The plan around it is replayed; what it has run so far must be seen, and what follows too."""
    x = g.input(1.0)
    side = rg.tanh(x)
    before = x + 1.0
    reader = Reader(side, looks=False)
    middle = rg.lift(reader)(before)
    after = middle * 2.0 + side
    for i in range(6):
        x.set(float(i))
        after.value
    reader.looks = True
    for i in range(6):
        x.set(10.0 + i)
        value = float(after.value)
        assert value == (11.0 + i + float(side.value)) * 2.0 + float(side.value)
        g.check_invariants()
    reader.looks = False
    for i in range(6):
        x.set(20.0 + i)
        assert float(after.value) == (21.0 + i) * 2.0 + float(side.value)
    g.check_invariants()


def test_a_read_that_happens_only_sometimes_leaves_nothing_clean_that_is_not(g: rg.Graph) -> None:
    """While the function looked, its read made the other node clean.

    What is remembered of that must not make the node clean once the function does not look.
    """
    x, a = g.input(1.0), g.input(1.0)
    aside = g.input(0.0) + 1.0
    z = x * 2.0
    reader = Reader(z)
    y = rg.lift(reader)(a)
    for i in range(5):
        g.set({x: 10.0 + i, a: float(i)})
        aside.value, z.value, y.value
    for i in range(5):
        g.set({x: 20.0 + i, a: i + 0.5})
        y.value, z.value
    reader.looks = False
    g.set({x: 100.0, a: 7.0})
    assert y.value == 7.0
    assert float(z.value) == 200.0
    g.check_invariants()


@pytest.mark.parametrize("turns", [0, 5], ids=["cold", "plans hot"])
def test_a_function_that_reads_what_depends_on_it_is_told_so(g: rg.Graph, turns: int) -> None:
    a = g.input(1.0)
    aside = g.input(1.0) + 1.0
    reader = Reader(aside, looks=False)
    y = rg.lift(reader)(a)
    after = y + 1.0
    for i in range(turns):
        a.set(float(i))
        aside.value, after.value
    reader.other, reader.looks = after, True
    reader.calls = 0
    a.set(50.0)
    aside.value
    with pytest.raises(rg.CycleError):
        y.value
    assert reader.calls == 1
    reader.looks = False
    assert g.forward(after, retry=True).ran == [y, after]
    assert float(after.value) == 51.0
    g.check_invariants()


def test_an_error_of_what_was_read_is_not_asked_for_again(g: rg.Graph) -> None:
    """Nothing has changed, so neither the node that raised nor its reader runs again."""
    calls = []

    def broken(value: float) -> float:
        calls.append(value)
        raise ValueError("no")

    a = g.input(1.0)
    reader = Reader(rg.lift(broken)(a))
    y = rg.lift(reader)(a)
    for _ in range(4):
        with pytest.raises(ValueError, match="no"):
            y.value
    assert (len(calls), reader.calls) == (1, 1)


def test_an_error_handled_inside_a_function_stays_inside(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(1.0)
    calls = []

    def broken(value: float) -> float:
        raise ValueError("no")

    inner = rg.lift(broken)(b)

    def careful(value: float) -> float:
        calls.append(value)
        try:
            return float(inner.value)
        except ValueError:
            return -value

    y = rg.lift(careful)(a) + 1.0
    for i in range(6):
        a.set(float(i))
        assert float(y.value) == 1.0 - i
        assert float(y.value) == 1.0 - i
        assert not g.forward(y).ran
    assert len(calls) == 6
    g.check_invariants()


def test_nodes_built_and_read_inside_a_function_leave_nothing_behind(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)

    def builds(value: float) -> float:
        return float((rg.sin(b) * float(value) + 1.0).value)

    y = rg.lift(builds)(a)
    a.set(7.0)
    y.value
    size = len(g)
    for i in range(8, 18):
        g.set({a: float(i), b: float(i)})
        y.value
    assert len(g) == size
    g.check_invariants()


@pytest.mark.parametrize("turns", [0, 5], ids=["cold", "plans hot"])
def test_changing_the_own_graph_from_inside_a_function_is_refused(g: rg.Graph, turns: int) -> None:
    """Whatever is tried; the graph is as it was, and not left busy."""
    a, b = g.input(1.0), g.input([1.0])
    kept, other = b + 1.0, rg.lift(lambda v: v)(b)
    w = g.param(2.0)
    loss = w * w
    loss.value, kept.value, other.value
    tries = [
        lambda: b.set([2.0]),
        lambda: g.set({b: [3.0]}),
        b.touch,
        other.touch,
        lambda: kept.replace_parent(0, w),
        lambda: g.transaction().__enter__(),
        lambda: loss.backward(),
        lambda: setattr(kept, "cutoff", "equal"),
        lambda: b.mutate().__enter__().__setitem__(0, 9.0) or b.set([9.0]),
    ]
    attempt: list[int] = []

    def meddling(value: float) -> float:
        if attempt:
            tries[attempt[0]]()
        return float(value)

    y = rg.lift(meddling)(a)
    for i in range(turns):
        a.set(float(i))
        y.value
    for number in range(len(tries)):
        attempt[:] = [number]
        a.set(100.0 + number)
        with pytest.raises(rg.BusyError, match="meddling"):
            y.value
        attempt.clear()
        assert b.value.tolist() == [1.0]
        assert (b.value_version, kept.cutoff, w.grad) == (1, None, None)
        assert kept.parents[0] is b
        g.forward(y, retry=True)
        assert y.value == 100.0 + number
        g.check_invariants()


def test_the_version_of_what_was_read_is_recorded_also_when_a_hot_plan_made_it(
    g: rg.Graph,
) -> None:
    """The read inside replays a plan, whose versions are still only in the journal."""
    x = g.input(1.0)
    aside = g.input(0.0) + 1.0
    z = x * 2.0
    y = rg.lift(Reader(z))(x)
    y.value, aside.value
    for i in range(5):
        x.set(float(i))
        aside.value
        z.value
    x.set(50.0)
    aside.value
    assert y.value == 150.0
    assert y.parent_versions == tuple(parent.value_version for parent in y.parents)
    g.check_invariants()
    assert not g.forward(y).ran


def test_a_read_of_last_time_that_now_reads_this_node_is_no_cycle(g: rg.Graph) -> None:
    """Whether a function still reads what it read can only be found out by calling it."""
    x = g.input(0)
    box: list[rg.Var] = []
    first = rg.lift(lambda turn: 1 if turn else box[0].value)(x)
    with g:
        second = rg.lift(lambda: first.value + 1 if x.value else 5)()
    box.append(second)
    assert (first.value, second.value) == (5, 5)
    x.set(1)
    assert (second.value, first.value) == (2, 1)
    x.set(0)
    assert (second.value, first.value) == (5, 5)
    g.check_invariants()
