"""The kairo suite (by the shape in milomg's js-reactivity-benchmark): what ran, exactly."""

from __future__ import annotations

import pytest

import reactgrad as rg
from tests.reactive.signals import Signals


@pytest.fixture(params=["arguments", "reads"])
def suite(request: pytest.FixtureRequest, g: rg.Graph) -> Signals:
    """Signals whose functions are given their sources, and signals whose functions read them."""
    return Signals(g, reads=request.param == "reads")


def test_avoidable_propagation_stops_where_nothing_changes(suite: Signals) -> None:
    head = suite.signal(0)
    first = suite.computed(lambda v: v, head, cutoff="equal")
    constant = suite.computed(lambda v: 0, first, cutoff="equal")
    heavy = suite.computed(lambda v: v + 1, constant, cutoff="equal")
    more = suite.computed(lambda v: v + 2, heavy, cutoff="equal")
    end = suite.computed(lambda v: v + 3, more, cutoff="equal")
    suite.effect(end)
    assert suite.settle().ran == [first, constant, heavy, more, end]
    assert (suite.calls, suite.effects) == (5, 1)
    suite.forget()
    for i in [1, *range(1000)]:
        run = suite.write(head, i)
        assert (run.ran, run.cut_off) == ([first, constant], [constant])
        assert end.value == 6
    assert (suite.calls, suite.effects) == (2002, 0)
    assert [v.value_version for v in (first, constant, heavy, more, end)] == [1002, 1, 1, 1, 1]
    suite.graph.check_invariants()


def test_avoidable_propagation_without_a_cutoff_is_not_avoided(suite: Signals) -> None:
    head = suite.signal(0)
    node = suite.computed(lambda v: v, head)
    chain = [node, suite.computed(lambda v: 0, node)]
    for i in (1, 2, 3):
        chain.append(suite.computed(lambda v, i=i: v + i, chain[-1]))
    suite.effect(chain[-1])
    suite.settle()
    suite.forget()
    for i in range(100):
        run = suite.write(head, i)
        assert run.ran == chain
        assert not run.cut_off
    assert (suite.calls, suite.effects) == (500, 100)
    assert chain[-1].value == 6


def test_broad_propagation(suite: Signals) -> None:
    head = suite.signal(0)
    order: list[int] = []
    ends = []
    middle = []
    for i in range(50):
        middle.append(suite.computed(lambda v, i=i: v + i, head))
        ends.append(suite.computed(lambda v: v + 1, middle[-1]))
        suite.effect(ends[-1])
        ends[-1].observe(lambda old, new, i=i: order.append(i))
    assert len(suite.settle().ran) == 100
    suite.forget()
    order.clear()
    total = 0
    for i in [1, *range(50)]:
        run = suite.write(head, i)
        assert len(run.ran) == 100
        assert set(run.ran) == {*middle, *ends}
        assert ends[-1].value == i + 50
        total += sum(end.value for end in ends)
    assert (suite.calls, suite.effects) == (51 * 100, 51 * 50)
    assert order == list(range(50)) * 51
    assert total == 51 * sum(range(1, 51)) + 50 * (1 + sum(range(50)))
    suite.graph.check_invariants()


def test_deep_propagation(suite: Signals) -> None:
    head = suite.signal(0)
    chain = [head]
    for _ in range(50):
        chain.append(suite.computed(lambda v: v + 1, chain[-1]))
    end = chain[-1]
    suite.effect(end)
    suite.settle()
    suite.forget()
    for i in [1, *range(50)]:
        assert suite.write(head, i).ran == chain[1:]
        assert end.value == 50 + i
    assert (suite.calls, suite.effects) == (51 * 50, 51)


def test_diamond(suite: Signals) -> None:
    head = suite.signal(0)
    sides = [suite.computed(lambda v: v + 1, head) for _ in range(5)]
    join = suite.computed(lambda *values: sum(values), *sides)
    suite.effect(join)
    suite.settle()
    suite.forget()
    total = 0
    for i in [1, *range(500)]:
        run = suite.write(head, i)
        assert run.ran[-1] is join
        assert len(run.ran) == 6
        assert set(run.ran) == {*sides, join}
        assert join.value == (i + 1) * 5
        total += join.value
    assert (suite.calls, suite.effects) == (501 * 6, 501)
    assert total == 10 + 5 * sum(range(1, 501))


@pytest.mark.slow
@pytest.mark.parametrize("cutoff", [None, "equal"])
def test_mux_splits_again_only_what_changed(suite: Signals, cutoff: str | None) -> None:
    heads = [suite.signal(0) for _ in range(100)]
    mux = suite.computed(lambda *values: dict(enumerate(values)), *heads, cutoff=cutoff)
    split = [suite.computed(lambda all_, i=i: all_[i], mux, cutoff=cutoff) for i in range(100)]
    ends = [suite.computed(lambda v: v + 1, part, cutoff=cutoff) for part in split]
    for end in ends:
        suite.effect(end)
    suite.settle()
    assert (suite.calls, suite.effects) == (201, 100)
    suite.forget()
    for factor in (1, 2):
        for i in range(10):
            run = suite.write(heads[i], i * factor)
            assert ends[i].value == i * factor + 1
            if cutoff is None:
                assert len(run.ran) == 201
            elif i == 0:  # written to what it was: the mux is the same and stops it
                assert run.ran == run.cut_off == [mux]
            else:
                assert run.ran[0] is mux
                assert set(run.ran) == {mux, *split, ends[i]}
                assert set(run.cut_off) == {*split} - {split[i]}
    changed = 18  # of the 20 writes, two say 0 again
    expected = (20 * 201, 20 * 100) if cutoff is None else (2 + changed * 102, changed)
    assert (suite.calls, suite.effects) == expected
    suite.graph.check_invariants()


def test_repeated_observers_of_one_source_are_one_dependency(suite: Signals) -> None:
    head = suite.signal(0)
    node = suite.computed(lambda *values: sum(values), *[head] * 30)
    suite.effect(node)
    suite.settle()
    suite.forget()
    total = 0
    for i in [1, *range(100)]:
        assert suite.write(head, i).ran == [node]
        assert node.value == i * 30
        total += node.value
    assert (suite.calls, suite.effects) == (101, 101)
    assert total == 30 * (1 + sum(range(100)))
    assert head.children == [node]
    assert len(node.parents) == (1 if suite.reads else 30)


def test_triangle(suite: Signals) -> None:
    head = suite.signal(0)
    rungs = [head]
    for _ in range(9):
        rungs.append(suite.computed(lambda v: v + 1, rungs[-1]))
    unread = suite.computed(lambda v: v + 1, rungs[-1])
    total = suite.computed(lambda *values: sum(values), *rungs)
    suite.effect(total)
    suite.settle()
    suite.forget()
    for i in [1, *range(100)]:
        assert suite.write(head, i).ran == [*rungs[1:], total]
        assert total.value == 45 + 10 * i
    assert (suite.calls, suite.effects) == (101 * 10, 101)
    assert unread.value_version == 0  # the suite's last rung, which nobody asks for


def test_unstable_calls_only_the_branch_that_is_read(g: rg.Graph) -> None:
    suite = Signals(g, reads=False)
    head = suite.signal(0)
    double = suite.computed(lambda v: v * 2, head)
    inverse = suite.computed(lambda v: -v, head)
    current = suite.computed(
        lambda v: sum((double if v % 2 else inverse).value for _ in range(20)), head
    )
    suite.effect(current)
    suite.settle()
    suite.forget()
    writes = [1, *range(100)]
    for i in writes:
        suite.write(head, i)
        taken, other = (double, inverse) if i % 2 else (inverse, double)
        assert current.value == (i * 40 if i % 2 else i * -20)
        assert current.parents == [head, taken]
        assert other.is_stale
        assert taken.children == [current]
        assert not len(other.children)
    assert (suite.calls, suite.effects) == (2 * 101, 101)
    assert double.value_version == sum(i % 2 for i in writes)
    assert inverse.value_version == 1 + sum(i % 2 == 0 for i in writes)
    g.check_invariants()


def test_unstable_with_both_branches_as_arguments_calls_both(g: rg.Graph) -> None:
    suite = Signals(g, reads=False)
    head = suite.signal(0)
    double = suite.computed(lambda v: v * 2, head)
    inverse = suite.computed(lambda v: -v, head)
    current = suite.computed(lambda v, d, i: 20 * (d if v % 2 else i), head, double, inverse)
    suite.effect(current)
    suite.settle()
    suite.forget()
    for i in [1, *range(100)]:
        run = suite.write(head, i)
        assert set(run.ran) == {double, inverse, current}
        assert run.ran[-1] is current
    assert (suite.calls, suite.effects) == (3 * 101, 101)


def test_what_ran_names_the_nodes_that_ran_because_a_function_read_them(suite: Signals) -> None:
    head = suite.signal(1)
    double = suite.computed(lambda v: v * 2, head)
    inverse = suite.computed(lambda v: -v, head)
    current = suite.computed(lambda v: (double if v % 2 else inverse).value, head)
    run = suite.graph.forward(current)
    assert run.ran == [double, current]
    head.set(2)
    assert suite.graph.forward(current).ran == [inverse, current]
    assert suite.graph.last_run.ran == [inverse, current]
