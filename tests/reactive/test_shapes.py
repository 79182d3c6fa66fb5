"""Shapes that have tripped reactive engines: what ran, who was told, and what is left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import reactgrad as rg
from tests.reactive.steps import plus, total


def names(nodes: object) -> list[str]:
    return [var.name for var in nodes]  # type: ignore[attr-defined]


def cycle_of(read: Callable[[], object]) -> list[str]:
    """The names of the cycle that a read or an edit is refused for."""
    with pytest.raises(rg.CycleError) as caught:
        read()
    path = names(caught.value.path)
    assert " -> ".join(path) in str(caught.value)
    return path


# --- diamonds ------------------------------------------------------------------------------------


def test_a_jagged_diamond_with_tails_runs_each_node_once_and_in_order(g: rg.Graph) -> None:
    a = g.input(1)
    b, c = plus(a), plus(a)
    d = plus(c)
    e = total(b, d)
    f, h = plus(e), plus(e)
    assert g.forward(f, h).ran == [b, c, d, e, f, h]
    a.set(2)
    run = g.forward(h, f)
    assert (run.ran, run.skipped) == ([b, c, d, e, f, h], [])
    assert (e.value, f.value, h.value) == (7, 8, 8)
    g.check_invariants()


def test_a_node_read_at_two_depths_sees_one_state(g: rg.Graph) -> None:
    seen = []
    a = g.input(1)
    deep = plus(plus(plus(a)))
    node = rg.lift(lambda *values: seen.append(values))(a, deep, plus(a, 10))
    for i in (1, 5, 9):
        a.set(i)
        node.value
    assert seen == [(i, i + 3, i + 10) for i in (1, 5, 9)]


@pytest.mark.parametrize("unmarked", [1, 2, 3])
def test_a_join_runs_if_any_side_changed(g: rg.Graph, unmarked: int) -> None:
    a = g.input(1)
    same = [rg.lift(lambda v: 0, cutoff="equal")(a) for _ in range(unmarked)]
    moving = [plus(a) for _ in range(3 - unmarked)]
    join = total(*same, *moving)
    tail = plus(join)
    g.forward(tail)
    a.set(2)
    run = g.forward(tail)
    assert set(run.ran) == {*same, *moving, *([join, tail] if moving else [])}
    assert set(run.cut_off) == {*same}
    assert run.skipped == ([] if moving else [join, tail])
    assert tail.value == 1 + 3 * len(moving)
    assert not g.forward(tail).ran
    g.check_invariants()


# --- branches ------------------------------------------------------------------------------------


def test_a_branch_of_constants_runs_once_for_ever(g: rg.Graph) -> None:
    x = g.input(1)
    constant = plus(total(g.const(2), g.const(3)))
    y = total(x, constant)
    assert y.value == 7
    for i in range(5):
        x.set(i)
        assert g.forward(y).ran == [y]
    assert constant.value_version == 1


def test_a_function_that_reads_only_constants_runs_once(g: rg.Graph) -> None:
    calls = []
    five = g.const(5)
    with g:
        node = rg.lift(lambda: calls.append(five.value) or five.value)()
    x = g.input(1)
    y = total(node, x)
    for i in range(4):
        x.set(i)
        assert y.value == 5 + i
    assert calls == [5]


def test_a_conditional_read_drops_and_takes_up_its_source(g: rg.Graph) -> None:
    which, a, b = g.input(True), g.input(1), g.input(2)
    left, right = plus(a), plus(b)
    node = rg.lift(lambda w: (left if w else right).value)(which)
    assert g.forward(node).ran == [left, node]
    b.set(20)
    assert not node.is_stale
    assert not g.forward(node).ran
    which.set(False)
    assert g.forward(node).ran == [right, node]
    assert node.parents == [which, right]
    a.set(10)
    assert (node.is_stale, left.is_stale) == (False, True)
    assert not g.forward(node).ran
    which.set(True)
    assert g.forward(node).ran == [left, node]
    assert node.value == 11
    g.check_invariants()


def test_a_guarded_read_is_not_asked_for_when_its_guard_falls(g: rg.Graph) -> None:
    x = g.input(2)
    calls = []

    def invert(v: int) -> float:
        calls.append(v)
        return 1 / v

    inverse = rg.lift(invert)(x)
    positive = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    with g:
        node = rg.lift(lambda: inverse.value if positive.value else None)()
    assert node.value == 0.5
    x.set(0)
    run = g.forward(node)
    assert node.value is None
    assert (run.ran, run.failed) == ([positive, node], [])
    x.set(-1)
    assert g.forward(node).ran == [positive]
    x.set(4)
    assert g.forward(node).ran == [positive, inverse, node]
    assert calls == [2, 4]
    g.check_invariants()


def test_a_read_source_that_is_cut_off_does_not_make_its_reader_run(g: rg.Graph) -> None:
    x = g.input(1)
    sign = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    with g:
        node = rg.lift(lambda: "up" if sign.value else "down")()
    end = rg.lift(str.upper)(node)
    assert end.value == "UP"
    x.set(2)
    run = g.forward(end)
    assert (run.ran, run.cut_off) == ([sign], [sign])
    x.set(-2)
    assert g.forward(end).ran == [sign, node, end]
    assert end.value == "DOWN"


@pytest.mark.slow
@pytest.mark.trusting  # forgetting all marks at each of the reads is quadratic
def test_readers_of_readers_are_verified_without_recursion() -> None:
    g = rg.Graph()
    x = g.input(0)
    node = x
    with g:
        for _ in range(5_000):
            node = rg.lift(lambda source=node: source.value + 1)()
            node.value
    x.set(7)
    assert len(g.forward(node).ran) == 5_000
    assert node.value == 5_007
    assert not g.forward(node).ran


def deeper(frames: int, read: Callable[[], object]) -> object:
    return deeper(frames - 1, read) if frames else read()


@pytest.mark.slow
@pytest.mark.parametrize("frames", range(12))
def test_a_first_read_through_too_many_readers_fails_cleanly(g: rg.Graph, frames: int) -> None:
    x = g.input(0)
    chain = [x]
    with g:
        for _ in range(200):
            chain.append(rg.lift(lambda source=chain[-1]: source.value + 1)())
    # A function that is asked for by a function stands on Python's stack, which may end anywhere.
    with suppress(RecursionError):
        deeper(frames, lambda: chain[-1].value)
    g.check_invariants()
    for var in chain[1:]:
        g.forward(var, retry=True)
    assert chain[-1].value == 200
    g.check_invariants()


# --- values --------------------------------------------------------------------------------------


def test_back_to_the_old_value_inside_a_transaction_is_two_changes(g: rg.Graph) -> None:
    x = g.input(1)
    y = plus(x)
    end = plus(y)
    y.cutoff = "equal"
    g.forward(end)
    with g.transaction():
        x.set(2)
        x.set(1)
    assert x.value_version == 3
    run = g.forward(end)
    assert (run.ran, run.cut_off, run.skipped) == ([y], [y], [end])
    assert (y.parent_versions, y.value_version, end.value_version) == ((3,), 1, 1)


def test_back_to_the_old_value_with_a_read_in_between(g: rg.Graph) -> None:
    x = g.input(1, cutoff="equal")
    y = plus(x)
    versions = [y.value, x.value_version]
    with g.transaction():
        x.set(2)
        assert y.value == 3
        x.set(1)
    assert versions == [2, 1]
    assert (x.value_version, y.value_version) == (3, 2)
    assert g.forward(y).ran == [y]
    assert (y.value, y.value_version) == (2, 3)


def test_a_failed_transaction_restores_values_with_new_versions(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(10)
    y = total(x, z)
    assert y.value == 11
    with pytest.raises(KeyError):
        with g.transaction():
            g.set({x: 2, z: 20})
            assert y.value == 22
            with g.transaction():
                x.set(3)
            raise KeyError
    assert (x.value, z.value) == (1, 10)
    assert x.value_version > 3
    assert z.value_version > 2
    assert y.is_stale
    assert g.forward(y).ran == [y]
    assert (y.value, y.value_version) == (11, 3)
    g.check_invariants()


def test_a_failed_inner_transaction_keeps_what_the_outer_one_did(g: rg.Graph) -> None:
    x, z = g.input(1), g.input(10)
    y = total(x, z)
    with g.transaction():
        x.set(2)
        with pytest.raises(KeyError):
            with g.transaction():
                g.set({x: 5, z: 50})
                y.replace_parent(0, z)
                assert y.value == 100
                raise KeyError
        assert y.value == 12
    assert y.value == 12
    assert y.parents == [x, z]
    g.check_invariants()


def test_none_is_a_value_like_any_other(g: rg.Graph) -> None:
    x = g.input(None)
    calls = []
    y = rg.lift(lambda v: calls.append(v))(x)  # returns None
    z = rg.lift(lambda v: v is None)(y)
    assert (x.value, y.value, z.value) == (None, None, True)
    assert (y.state, y.value_version) == ("clean", 1)
    assert not g.forward(z).ran
    x.set(3)
    assert g.forward(z).ran == [y, z]
    x.set(None)
    assert g.forward(z).ran == [y, z]
    assert calls == [None, 3, None]
    y.cutoff = "equal"
    x.set(4)
    run = g.forward(z)
    assert (run.ran, run.cut_off, run.skipped) == ([y], [y], [z])
    assert y.value_version == 3


def test_none_is_told_to_observers_as_a_value(g: rg.Graph) -> None:
    x = g.input(None)
    y = rg.lift(lambda v: v)(x)
    told = []
    y.observe(lambda old, new: told.append((old, new)))
    for value in (None, 1, None):
        x.set(value)
        g.stabilize()
    assert told == [(None, None), (None, 1), (1, None)]


# --- errors --------------------------------------------------------------------------------------


def test_an_error_passes_a_chain_and_is_gone_after_recovery(g: rg.Graph) -> None:
    calls = []

    def invert(v: int) -> float:
        calls.append(v)
        return 1 / v

    x = g.input(1)
    chain = [rg.lift(invert)(x)]
    for _ in range(5):
        chain.append(plus(chain[-1]))
    aside = plus(x)
    g.forward(chain[-1], aside)
    x.set(0)
    for again in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            g.forward(chain[-1], aside)
        assert len(g.last_run.ran) == (not again)  # the other target, once
        assert g.last_run.failed == [chain[0]]
        assert any(repr(chain[0].name) in note for note in caught.value.__notes__)
    assert calls == [1, 0]
    assert [v.state for v in chain] == ["error"] + ["stale"] * 5
    assert [v.value_version for v in chain] == [1] * 6
    assert aside.value == 1
    g.check_invariants()
    x.set(2)
    assert g.forward(chain[-1], aside).ran == [*chain, aside]
    assert chain[-1].value == 5.5
    assert calls == [1, 0, 2]
    g.check_invariants()


def test_an_error_that_heals_behind_a_cutoff_leaves_what_follows_clean(g: rg.Graph) -> None:
    x = g.input(2)
    y = rg.lift(lambda v: 1 if v else 1 / v, cutoff="equal")(x)
    z = plus(y)
    assert z.value == 2
    x.set(0)
    with pytest.raises(ZeroDivisionError):
        z.value
    x.set(5)
    run = g.forward(z)
    assert (run.ran, run.cut_off, run.skipped) == ([y], [y], [z])
    assert (z.value, z.value_version) == (2, 1)
    g.check_invariants()


def test_retry_runs_a_failed_node_again(g: rg.Graph) -> None:
    broken = [True]

    def fragile(v: int) -> int:
        if broken:
            raise OSError("offline")
        return v

    x = g.input(1)
    y = plus(rg.lift(fragile)(x))
    with pytest.raises(OSError, match="offline"):
        y.value
    broken.clear()
    with pytest.raises(OSError, match="offline") as caught:
        y.value
    assert any("retry=True" in note for note in caught.value.__notes__)
    assert len(g.forward(y, retry=True).ran) == 2
    assert y.value == 2


def test_a_function_may_catch_the_error_of_what_it_reads(g: rg.Graph) -> None:
    x = g.input(0)
    inverse = rg.lift(lambda v: 1 / v)(x)

    def safe() -> float:
        try:
            return inverse.value
        except ZeroDivisionError:
            return -1.0

    with g:
        node = rg.lift(safe)()
    for value, expected in ((0, -1.0), (4, 0.25), (0, -1.0)):
        x.set(value)
        run = g.forward(node)
        assert node.value == expected
        assert run.ran == ([node] if not value else [inverse, node])
        assert run.failed == ([inverse] if not value else [])
        assert not g.forward(node).ran
        g.check_invariants()


def test_a_cutoff_that_raises_is_the_error_of_its_node(g: rg.Graph) -> None:
    def refuse(old: int, new: int) -> bool:
        if new == 3:
            raise LookupError("cannot compare")
        return False

    x = g.input(1)
    y = rg.lift(lambda v: v, cutoff=refuse)(x)
    z = plus(y)
    assert z.value == 2
    x.set(3)
    with pytest.raises(LookupError, match="cannot compare"):
        z.value
    assert g.last_run.failed == [y]
    assert (y.state, y.value_version) == ("error", 1)
    x.set(4)
    assert z.value == 5
    g.check_invariants()


# --- edits ---------------------------------------------------------------------------------------


def test_a_node_is_repointed_to_its_own_ancestor(g: rg.Graph) -> None:
    x = g.input(1)
    first = plus(x)
    second = plus(first)
    third = plus(second)
    end = plus(third)
    assert end.value == 5
    third.replace_parent(0, first)
    assert third.is_stale
    assert not second.is_stale
    assert g.forward(end).ran == [third, end]
    assert end.value == 4
    third.replace_parent(0, x)
    x.set(10)
    assert g.forward(end).ran == [third, end]
    assert (end.value, second.is_stale) == (12, True)
    g.check_invariants()


def test_repointing_to_an_ancestor_frees_what_nobody_else_holds(g: rg.Graph) -> None:
    x = g.input(1)
    end = plus(plus(plus(x)))
    assert end.value == 4
    assert len(g) == 4
    end.replace_parent(0, x)
    assert (len(g), end.value) == (2, 2)


def test_a_node_is_repointed_to_its_descendant_only_after_that_was_cut_loose(g: rg.Graph) -> None:
    x = g.input(1)
    a, b = plus(x), plus(x, 10)
    b.replace_parent(0, a)
    a.name, b.name = "a", "b"
    assert b.value == 12
    assert cycle_of(lambda: a.replace_parent(0, b)) == ["b", "a", "b"]
    assert a.parents == [x]
    assert not b.is_stale
    with g.transaction():  # the edge turns round
        b.replace_parent(0, x)
        a.replace_parent(0, b)
    assert (a.value, b.value) == (12, 11)
    g.check_invariants()
    with pytest.raises(KeyError):
        with g.transaction():
            a.replace_parent(0, x)
            b.replace_parent(0, a)
            raise KeyError
    assert (a.parents, b.parents) == ([b], [x])
    assert (a.value, b.value) == (12, 11)
    g.check_invariants()


def test_a_self_loop_is_refused(g: rg.Graph) -> None:
    x = g.input(1)
    y = total(x, x)
    y.name = "y"
    assert y.value == 2
    assert cycle_of(lambda: y.replace_parent(1, y)) == ["y", "y"]
    assert y.parents == [x, x]
    assert (y.value, y.is_stale) == (2, False)
    g.check_invariants()


def test_of_two_overlapping_cycles_each_is_named_until_it_is_gone(g: rg.Graph) -> None:
    x = g.input(1)
    a = plus(x)
    b, c = plus(a), plus(a)
    d = total(b, c)
    a.name, b.name, c.name, d.name = "abcd"
    assert d.value == 6
    both = cycle_of(lambda: a.replace_parent(0, d))
    assert both in (["d", "a", "b", "d"], ["d", "a", "c", "d"])
    b.replace_parent(0, x)
    assert cycle_of(lambda: a.replace_parent(0, d)) == ["d", "a", "c", "d"]
    c.replace_parent(0, x)
    a.replace_parent(0, d)
    assert (d.value, a.value) == (4, 5)
    g.check_invariants()


# --- cycles of what functions read -----------------------------------------------------------------


def test_a_function_that_reads_itself_is_told_so(g: rg.Graph) -> None:
    x = g.input(1)
    node = rg.lift(lambda v: node.value if v else 0)(x)
    node.name = "node"
    assert cycle_of(lambda: node.value) == ["node", "node"]
    g.check_invariants()
    x.set(0)
    assert node.value == 0
    x.set(1)
    assert cycle_of(lambda: node.value) == ["node", "node"]
    assert node.value_version == 1
    g.check_invariants()


@pytest.mark.parametrize("between", [0, 1, 5])
def test_a_read_that_closes_a_cycle_is_refused_with_its_path(g: rg.Graph, between: int) -> None:
    x = g.input(0)
    a = rg.lift(lambda v: last.value if v else 1)(x)
    last = plus(a)
    a.name, last.name = "a", "last"
    expected = ["a"]
    for i in range(between):
        last.name = f"n{i}"
        expected.append(f"n{i}")
        last = plus(last)
    last.name = "last"
    expected += ["last", "a"]
    assert last.value == 2 + between
    x.set(1)
    for target in (last, a):
        assert cycle_of(lambda target=target: target.value) == expected
    g.check_invariants()
    x.set(0)
    assert last.value == 2 + between
    g.check_invariants()


def test_two_functions_that_read_each_other(g: rg.Graph) -> None:
    x = g.input(0)
    with g:
        a = rg.lift(lambda: b.value if x.value else 5)()
        b = rg.lift(lambda: a.value + 1)()
    a.name, b.name = "a", "b"
    assert (a.value, b.value) == (5, 6)
    x.set(1)
    assert cycle_of(lambda: b.value) in (["b", "a", "b"], ["a", "b", "a"])
    g.check_invariants()
    x.set(0)
    assert (b.value, a.value) == (6, 5)
    g.check_invariants()


def test_both_of_two_functions_that_read_each_other_recover(g: rg.Graph) -> None:
    x = g.input(1)
    with g:
        a = rg.lift(lambda: b.value if x.value else 5)()
        b = rg.lift(lambda: a.value + 1)()
    a.name, b.name = "a", "b"
    # Never computed before: what b read was refused, and still is what its error hangs on.
    assert cycle_of(lambda: a.value) == ["a", "b", "a"]
    x.set(0)
    assert a.value == 5
    assert b.value == 6
    g.check_invariants()


def test_of_two_overlapping_cycles_of_reads_one_is_removed_and_then_the_other(g: rg.Graph) -> None:
    x = g.input(1)
    a = rg.lift(lambda v: b.value + c.value + v)(x)
    b, c = plus(a), plus(a, 10)
    a.name, b.name, c.name = "abc"
    assert cycle_of(lambda: a.value) == ["a", "b", "a"]
    b.replace_parent(0, x)
    assert cycle_of(lambda: a.value) == ["a", "c", "a"]
    c.replace_parent(0, x)
    assert a.value == 2 + 11 + 1
    g.check_invariants()
