"""Bugs that other reactive engines have or had, by their shape; each test names its source.

"Seen" means that the bug was reproduced with the named release; "issue" and "pull" are those of the
project's public tracker. Bugs whose shape other files of these suites already have are listed in
``scheduler/README.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

import reactgrad as rg
from reactgrad_scheduler.staleness import CLEAN, Staleness


def plus(x: rg.Var, amount: int = 1) -> rg.Var:
    return rg.lift(lambda v: v + amount)(x)


def total(*sources: rg.Var) -> rg.Var:
    return rg.lift(lambda *values: sum(values))(*sources)


def cycle_of(read: Callable[[], object]) -> list[str]:
    """The names of the cycle that a read is refused for."""
    with pytest.raises(rg.CycleError) as caught:
        read()
    return [var.name for var in caught.value.path]


# --- effects and diamonds ------------------------------------------------------------------------


def test_each_level_of_a_diamond_that_is_observed_is_told(g: rg.Graph) -> None:
    """reaktiv issue 27: of effects on b, c = f(b) and d = f(b, c), that on c was never called."""
    a = g.input(1)
    b = rg.lift(lambda v: v * 2)(a)
    c = plus(b, 10)
    d = total(b, c)
    log: list[object] = []
    for name, var in (("d", d), ("c", c), ("b", b)):
        var.observe(lambda old, new, name=name: log.append((name, old, new)))
    g.stabilize()
    log.clear()
    a.set(5)
    assert g.stabilize() == 1
    assert log == [("b", 2, 10), ("c", 12, 20), ("d", 14, 30)]
    assert g.last_run.ran == [b, c, d]


def test_a_transaction_tells_once_for_a_node_read_at_three_depths(g: rg.Graph) -> None:
    """reaktiv issue 10: inside ``with batch()`` the effect was not called at every turn."""
    a = g.input(0)
    c1 = plus(a, 10)
    c2 = rg.lift(lambda v: v * 100)(c1)
    c3 = total(a, c1, c2)
    log: list[object] = []
    c3.observe(lambda old, new: log.append(new))
    g.stabilize()
    for value in (10, 100, 1000):
        with g.transaction():
            a.set(-1)
            a.set(value)
        g.stabilize()
        assert g.last_run.ran == [c1, c2, c3]
    assert log == [1010, 2030, 11210, 103010]


def test_observers_that_were_skipped_are_not_owed_to_an_unrelated_set(g: rg.Graph) -> None:
    """alien-signals issue 97: an effect that throws makes the queued ones miss the change.

    As reported, they ran at the next unrelated set; seen in 3.2.1: they are never told of it.
    """
    a, b = g.input(0), g.input(0)
    log: list[object] = []

    def refuse(old: int, new: int) -> None:
        if new == 2:
            raise ValueError(new)
        log.append(("a2", new))

    a.observe(lambda old, new: log.append(("a1", new)))
    a.observe(refuse)
    a.observe(lambda old, new: log.append(("a3", new)))
    b.observe(lambda old, new: log.append(("b", new)))
    a.set(1)
    g.stabilize()
    assert log == [("a1", 1), ("a2", 1), ("a3", 1)]
    log.clear()
    a.set(2)
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    assert [error.args for error in caught.value.exceptions] == [(2,)]
    assert log == [("a1", 2), ("a3", 2)]
    log.clear()
    b.set(3)
    g.stabilize()
    assert log == [("b", 3)]
    a.set(4)
    g.stabilize()
    assert log == [("b", 3), ("a1", 4), ("a2", 4), ("a3", 4)]


def test_all_errors_of_observers_reach_the_caller_of_stabilize_and_none_that_of_set(
    g: rg.Graph,
) -> None:
    """preact signals issue 241: the error of an effect is raised from the setter.

    Seen in 1.14.5: of two effects that throw, the second error is lost. Seen in reaktiv 0.24.2: both
    are printed and lost.
    """
    x = g.input(0)
    told = []

    def refuse(old: int, new: int) -> None:
        raise ValueError(new)

    x.observe(refuse)
    x.observe(lambda old, new: told.append(new))
    x.observe(refuse)
    x.set(1)
    assert told == []
    with pytest.raises(ExceptionGroup) as caught:
        g.stabilize()
    assert [error.args for error in caught.value.exceptions] == [(1,), (1,)]
    assert (told, x.value) == ([1], 1)


def test_an_observer_that_takes_back_what_it_sees_does_so_every_time(g: rg.Graph) -> None:
    """alien-signals issue 99, seen in 3.2.1: the second time the value stays."""
    s = g.input(False)
    c = rg.lift(lambda v: v)(s)
    log: list[object] = []

    def take_back(old: bool, new: bool) -> None:
        log.append(new)
        if new:
            s.set(False)

    c.observe(take_back)
    g.stabilize()
    for _ in range(3):
        s.set(True)
        assert g.stabilize() == 2
        assert (s.value, c.value) == (False, False)
    assert log == [False] + [True, False] * 3


def test_an_observer_that_attaches_others_goes_on_after_these_were_told_alone(g: rg.Graph) -> None:
    """alien-signals issues 82 and 115: nested effects; the outer one fell silent in 3.2.0."""
    a, b = g.input(0), g.input(0)
    log: list[object] = []
    inner: list[rg.Observer] = []

    def outer(old: int, new: int) -> None:
        log.append(("outer", new))
        while inner:
            inner.pop().cancel()
        inner.append(b.observe(lambda old, new: log.append(("inner", new))))

    a.observe(outer)
    a.set(1)
    g.stabilize()
    for value in (1, 2):
        b.set(value)
        g.stabilize()
    a.set(2)
    g.stabilize()
    b.set(3)
    g.stabilize()
    assert log == [("outer", 1), ("inner", 1), ("inner", 2), ("outer", 2), ("inner", 3)]


def test_a_function_that_makes_its_own_observer_go_while_it_runs(g: rg.Graph) -> None:
    """alien-signals issue 109: disposing the last subscriber inside a getter broke the walk."""
    stop = g.input(False)
    inner = rg.lift(lambda v: observer.cancel() if v else 0)(stop)
    outer = rg.lift(lambda v: 1)(inner)
    log: list[object] = []
    observer = outer.observe(lambda old, new: log.append(new))
    g.stabilize()
    stop.set(True)
    g.stabilize()
    assert not observer.active
    assert log == [1]
    assert outer.value == 1
    assert g.last_run.ran == [inner, outer]
    g.check_invariants()


# --- versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [False, True])
def test_a_version_that_was_seen_is_never_given_again(g: rg.Graph, fails: bool) -> None:
    """preact signals pull 947: a batch that ended where it began rolled the version back.

    A computed signal read inside had recorded the version in between; the next set gave that
    version to another value, and the computed one was stale for ever.
    """
    s = g.input("A")
    c = rg.lift(lambda v: v + "!")(s)
    assert c.value == "A!"
    seen = {s.value_version}
    try:
        with g.transaction():
            s.set("B")
            assert c.value == "B!"
            seen.add(s.value_version)
            if fails:
                raise KeyError
            s.set("A")
    except KeyError:
        pass
    assert s.value_version not in seen
    seen.add(s.value_version)
    s.set("C")
    assert s.value_version not in seen
    assert g.forward(c).ran == [c]
    assert c.value == "C!"


def test_a_branch_that_was_not_read_for_a_while_is_fresh_when_it_is_read_again(
    g: rg.Graph,
) -> None:
    """preact signals pull 127: the branch kept the value that it had when it was left."""
    a = g.input(0)
    b = rg.lift(lambda v: ("b", v))(a)
    with g:
        c = rg.lift(lambda: ("a", a.value) if a.value > 0 else b.value)()
    for value, expected, ran in (
        (0, ("b", 0), [b, c]),
        (1, ("a", 1), [c]),
        (2, ("a", 2), [c]),
        (-3, ("b", -3), [b, c]),
    ):
        a.set(value)
        run = g.forward(c)
        assert (c.value, run.ran) == (expected, ran)
    g.check_invariants()


def test_values_equal_throughout_while_a_cycle_comes_and_goes(g: rg.Graph) -> None:
    """salsa issue 1310: queries that return the same value panic when a cycle is broken."""
    linked, unrelated = g.input(False), g.input(False)
    with g:
        a = rg.lift(lambda: b.value if linked.value else 0, cutoff="equal")()
        b = rg.lift(lambda: a.value, cutoff="equal")()
    g.forward(a, b)
    for turn in range(3):
        unrelated.set(turn)
        assert g.forward(a, b).ran == []
        linked.set(True)
        with pytest.raises(rg.CycleError):
            a.value
        linked.set(False)
        assert (a.value, b.value) == (0, 0)
        assert (a.value_version, b.value_version) == (1, 1)
        g.check_invariants()


# --- cycles --------------------------------------------------------------------------------------


def test_two_functions_that_guard_on_each_other_are_a_cycle_and_come_to_an_end(
    g: rg.Graph,
) -> None:
    """alien-signals issue 123, seen in 3.2.1: two reads work, the third runs out of memory."""
    field_a, field_b = g.input(False), g.input(False)
    with g:
        a = rg.lift(lambda: None if b.value is True else field_a.value)()
        b = rg.lift(lambda: None if a.value is True else field_b.value)()
    a.name, b.name = "a", "b"
    for turn in range(3):
        field_a.set(turn > 0)
        for var in (a, b):
            assert sorted(set(cycle_of(lambda var=var: var.value))) == ["a", "b"]
    g.check_invariants()


def test_a_dependency_that_turns_round_is_no_cycle(g: rg.Graph) -> None:
    """tc39/proposal-signals issue 201: either way there is no cycle, but one was reported."""
    turned = g.input(False)
    state = g.input(1)
    with g:
        a = rg.lift(lambda: b.value if turned.value else state.value)()
        b = rg.lift(lambda: state.value if turned.value else a.value)()
        c = rg.lift(lambda: (a.value, b.value))()
    assert c.value == (1, 1)
    for turn, flag in enumerate((True, False, True)):
        turned.set(flag)
        state.set(turn)
        assert c.value == (turn, turn)
        assert g.last_run.ran == ([b, a, c] if flag else [a, b, c])
        g.check_invariants()


# --- edits and pins ------------------------------------------------------------------------------


def test_several_sets_at_once_leave_a_pin_where_it_is(g: rg.Graph) -> None:
    """loman 0.7.0, seen: ``insert`` keeps a pin, ``insert_many`` above it undoes it."""
    a, z = g.input(1), g.input(1)
    b = plus(a)
    d = total(b, z)
    assert d.value == 3
    b.pin(100)
    assert d.value == 101
    a.set(5)
    assert g.forward(d).ran == []
    g.set({a: 6, z: 7})
    assert g.forward(d).ran == [d]
    assert (b.value, d.value) == (100, 107)
    b.unpin()
    assert g.forward(d).ran == [b, d]
    assert d.value == 7 + 7


def test_none_can_be_pinned(g: rg.Graph) -> None:
    """loman 0.7.0, seen: ``pin(name, None)`` pins the value that the node has."""
    a = g.input(1)
    b = plus(a)
    c = rg.lift(lambda v: v is None)(b)
    assert c.value is False
    b.pin(None)
    assert g.forward(c).ran == [c]
    assert (b.value, c.value) == (None, True)


def test_a_leaf_that_becomes_a_node_takes_its_consumers_along(g: rg.Graph) -> None:
    """loman issue 14: after a node was defined anew its consumers looked up to date."""
    a, b = g.input(1), g.input(2)
    c = total(a, b)
    d = plus(c)
    assert d.value == 4
    tenfold = rg.lift(lambda v: v * 10)(b)
    c.replace_parent(0, tenfold)
    assert (c.is_stale, d.is_stale) == (True, True)
    assert g.forward(d).ran == [tenfold, c, d]
    assert d.value == 23


def test_one_read_after_an_edit_brings_all_descendants_up_to_date(g: rg.Graph) -> None:
    """marimo issue 8067: an edit marks no descendants; all stale cells have to be run twice."""
    x, z = g.input(1), g.input(10)
    chain = [plus(x)]
    for _ in range(3):
        chain.append(plus(chain[-1]))
    assert chain[-1].value == 5
    chain[0].replace_parent(0, z)
    assert [var.is_stale for var in chain] == [True] * 4
    assert g.forward(chain[-1]).ran == chain
    assert [var.is_stale for var in chain] == [False] * 4


def test_a_pinned_node_is_not_failed_by_its_ancestors(g: rg.Graph) -> None:
    """marimo issue 8072: a disabled cell took its ancestor's error over and kept it."""
    x = g.input(1)
    inverse = rg.lift(lambda v: 1 / v)(x)
    middle = plus(inverse)
    end = plus(middle)
    assert end.value == 3
    middle.pin(10)
    x.set(0)
    with pytest.raises(ZeroDivisionError):
        inverse.value
    assert (end.value, middle.state, end.state) == (11, "clean", "clean")
    x.set(2)
    assert inverse.value == 0.5
    assert g.forward(end).ran == []
    middle.unpin()
    assert end.value == 2.5
    g.check_invariants()


# --- work ----------------------------------------------------------------------------------------


@pytest.mark.trusting
def test_dropping_reads_all_over_a_rectangle_is_linear_work() -> None:
    """preact signals issue 274: sources dropped at random made a run exponential in the layers."""

    def calls(layers: int) -> int:
        g = rg.Graph()
        inputs = [g.input(i) for i in range(10)]
        row = inputs
        for _ in range(layers):

            def node(*, above: list[rg.Var], at: int) -> rg.Var:
                def pick() -> int:
                    first = above[at].value
                    second = (at + 1 + first % 3) % 10  # another one whenever `first` changes
                    return (first + above[second].value) % 1000

                with g:
                    return rg.lift(pick)()

            row = [node(above=row, at=i) for i in range(10)]
            g.forward(*row)  # else a first read nests as deep as there are layers
        for i, var in enumerate(inputs):
            var.set(i * i + 1)
        counted = 0

        def count(frame: FrameType, event: str, arg: object) -> None:
            nonlocal counted
            counted += event == "call"

        sys.setprofile(count)
        try:
            run = g.forward(*row)
        finally:
            sys.setprofile(None)
        assert len(run.ran) == 10 * layers
        g.check_invariants()
        return counted

    few, many = calls(32), calls(128)
    assert many < 4.5 * few


@pytest.mark.trusting
def test_a_change_marks_each_node_of_stacked_diamonds_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """reaktiv 0.24.2, seen: a set notifies along every path, 81,916 calls for 14 diamonds."""
    marked: list[int] = []
    put, moved_from = Staleness.put, Staleness.moved_from

    def count(self: Staleness, slot: int, mark: int) -> None:
        if mark != CLEAN:
            marked.append(slot)
        put(self, slot, mark)

    def count_all(self: Staleness, former: int, slots: list[int]) -> None:
        if former == CLEAN:
            marked.extend(slots)
        moved_from(self, former, slots)

    g = rg.Graph()
    x = g.input(0)
    end = x
    for _ in range(40):
        end = total(plus(end), plus(end, 2))
    told: list[int] = []
    end.observe(lambda old, new: told.append(new))
    g.stabilize()
    monkeypatch.setattr(Staleness, "put", count)
    monkeypatch.setattr(Staleness, "moved_from", count_all)
    x.set(1)
    g.stabilize()
    assert len(marked) == len(set(marked)) == 3 * 40
    assert len(g.last_run.ran) == 3 * 40
    assert told == [3 * (2**40 - 1), 3 * (2**40 - 1) + 2**40]
