"""Edits: blocks of them, insertions, removals, what they cost, and what they leave as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.core._lifetime import tidy
from reactgrad_scheduler import Scheduler
from tests.autodiff.primitives import roll
from tests.laws.full_state import differences, full_state
from tests.laws.random_program import same_bits
from tests.plans import keeps_plans


class Abort(Exception):
    """What ends a block."""


def names(nodes: Any) -> list[str]:
    return [var.name for var in nodes]


def called(**nodes: Any) -> tuple[Any, ...]:
    """Give nodes names."""
    for name, var in nodes.items():
        var.name = name
    return tuple(nodes.values())


def plus(x: rg.Var, amount: int = 1) -> rg.Var:
    return rg.lift(lambda v: v + amount)(x)


def chain(g: rg.Graph) -> tuple[rg.Var, ...]:
    """x -> a -> b -> c, clean."""
    x = g.input(1.0)
    a = x + 1.0
    b = a * 10.0
    c = b - 3.0
    c.value
    return called(x=x, a=a, b=b, c=c)


# --- blocks --------------------------------------------------------------------------------------


def test_reads_inside_see_the_old_graph(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    z = g.input(5.0)
    with g.edit():
        a.replace_parent(0, z)
        assert a.parents[0] is x
        assert (a.value, c.value) == (2.0, 17.0)
        assert not g.forward(a, c).ran
        assert not c.is_stale
    assert a.parents[0] is z
    assert g.forward(c).ran == [a, b, c]
    assert c.value == 57.0
    g.check_invariants()


def test_later_edits_of_a_block_start_from_earlier_ones(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)
    y = a - a
    with g.edit():
        y.replace_parent(0, b)
        with g.edit():
            y.replace_parent(1, b)
            y.replace_parent(0, a)
    assert y.parents == [a, b]
    assert y.value == -1.0


def test_an_edge_turns_round(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    with pytest.raises(rg.CycleError):
        a.replace_parent(0, b)
    with g.edit():
        a.replace_parent(0, b)  # a cycle, until the next line
        b.replace_parent(0, x)
        c.replace_parent(0, a)
    assert g.forward(c).ran == [b, a, c]
    assert (b.value, a.value, c.value) == (10.0, 11.0, 8.0)
    g.check_invariants()


def test_a_whole_chain_turns_round(g: rg.Graph) -> None:
    x = g.input(1)
    nodes = [x]
    for i in range(20):
        nodes.append(plus(nodes[-1], 10**i))
    with g.edit():
        for before, after in pairwise(nodes[1:]):
            before.replace_parent(0, after)
        nodes[-1].replace_parent(0, x)
    assert g.forward(nodes[1]).ran == nodes[:0:-1]
    assert nodes[1].value == 1 + int("1" * 20)
    g.check_invariants()


def test_a_self_loop_is_refused_at_the_end_of_the_block(g: rg.Graph) -> None:
    x, a, b, _c = chain(g)
    before = full_state(g)
    with pytest.raises(rg.CycleError, match="b -> b") as caught:
        with g.edit():
            a.replace_parent(0, g.input(3.0))
            b.replace_parent(0, b)
    assert caught.value.path == (b, b)
    del caught
    assert not differences(before, full_state(g))
    with g.edit():
        b.replace_parent(0, b)
        b.replace_parent(0, x)
    assert b.value == 10.0


def test_of_two_overlapping_cycles_both_must_go(g: rg.Graph) -> None:
    x = g.input(1)
    a = plus(x)
    b, c = plus(a), plus(a)
    d = rg.lift(lambda *values: sum(values))(b, c)
    called(a=a, b=b, c=c, d=d)
    assert d.value == 6
    before = full_state(g)
    for cut, path in ((b, "d -> a -> c -> d"), (c, "d -> a -> b -> d")):
        with pytest.raises(rg.CycleError, match=path) as caught:
            with g.edit():
                a.replace_parent(0, d)
                cut.replace_parent(0, x)
        assert [one.name for one in caught.value.path] == path.split(" -> ")
        assert not differences(before, full_state(g))
    with g.edit():
        a.replace_parent(0, d)
        for cut in (b, c):
            cut.replace_parent(0, x)
    assert (d.value, a.value) == (4, 5)
    g.check_invariants()


def test_a_node_is_repointed_to_its_own_ancestor_and_back(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    c.replace_parent(0, x)
    assert g.forward(c).ran == [c]
    assert c.value == -2.0
    x.set(2.0)
    assert g.forward(c).ran == [c]
    with g.edit():
        c.replace_parent(0, b)
    assert g.forward(c).ran == [a, b, c]
    assert c.value == 27.0


def test_an_exception_inside_makes_none_of_the_edits_and_keeps_what_was_set(g: rg.Graph) -> None:
    x, a, _, c = chain(g)
    with pytest.raises(Abort):
        with g.edit():
            a.replace_parent(0, g.input(5.0))
            x.set(2.0)
            raise Abort
    assert a.parents[0] is x
    assert c.value == 27.0


def test_an_inner_block_that_fails_takes_only_its_own_edits_with_it(g: rg.Graph) -> None:
    a, b, c = g.input(1.0), g.input(2.0), g.input(4.0)
    y = a - b
    with g.edit():
        y.replace_parent(0, c)
        with pytest.raises(Abort):
            with g.edit():
                y.replace_parent(1, c)
                raise Abort
        assert y.parents == [a, b]
    assert y.parents == [c, b]


def test_shapes_need_to_fit_in_the_end_only(g: rg.Graph) -> None:
    a, b = g.input([1.0, 2.0, 3.0]), g.input([4.0, 5.0, 6.0])
    c, d = g.input([1.0, 2.0]), g.input([3.0, 4.0])
    y = a + b
    tail = (y * 2.0).sum()
    tail.name = "tail"
    tail.value
    before = full_state(g)
    with pytest.raises(rg.ShapeError) as caught:
        y.replace_parent(0, c)
    assert "Nothing was changed" in "".join(caught.value.__notes__)
    del caught
    assert not differences(before, full_state(g))
    with g.edit():
        y.replace_parent(0, c)
        y.replace_parent(1, d)
    assert y.shape == (2,)
    assert tail.value == 20.0


def test_a_block_that_does_not_fit_further_down_names_the_node_and_the_reason(g: rg.Graph) -> None:
    a, b = g.input([1.0, 2.0]), g.input([1.0, 2.0, 3.0])
    y = a * 2.0
    end = y + g.input([5.0, 6.0])
    called(y=y, end=end)
    end.value
    before = full_state(g)
    with pytest.raises(rg.ShapeError) as caught:
        with g.edit():
            y.replace_parent(0, b)
    notes = "".join(caught.value.__notes__)
    assert "new shape or dtype of y; node 'end' does not fit" in notes
    assert "with g.edit()" in notes
    del caught
    assert not differences(before, full_state(g))


def bound_plans(graph: rg.Graph) -> dict[Any, Any]:
    """The cached plans by their keys, each with the steps that are bound in it."""
    found = graph._scheduler.plans._transitions
    return {key: (id(one.plan), id(one.plan.steps)) for key, one in found.items() if one.plan.steps}


def test_edits_take_names(g: rg.Graph) -> None:
    x, w = g.input(1.0, name="x"), g.input(5.0, name="w")
    y = x + 1.0
    y.name = "y"
    y.replace_parent(0, "w")
    assert y.value == 6.0
    g.insert("w", "y", lambda v: v * 2.0)
    assert y.value == 11.0
    y.rewire("x", "w")
    assert y.value == 6.0
    assert y.parents == [x, w]


def test_a_refused_removal_names_all_that_would_have_to_go(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y, other = x + 1.0, x * 2.0
    z = rg.switch(x > 0.0, y, other)
    for name, var in (("y", y), ("other", other), ("z", z)):
        var.name = name
    with pytest.raises(rg.EditError) as caught:
        g.remove(y)
    assert "g.remove(z, y)" in str(caught.value)
    with pytest.raises(rg.EditError, match=r"g\.remove\(.*\)") as caught:
        g.remove(x)
    words = str(caught.value)
    names = words[words.index("g.remove(") + 9 : words.rindex(")")].split(", ")
    g.remove(*names)
    assert len(g.inputs) == 0


@pytest.mark.parametrize("refused", ["cycle", "shape", "gradient", "in use", "block"])
def test_a_refused_edit_in_a_transaction_leaves_all_as_it_was(g: rg.Graph, refused: str) -> None:
    w, v = g.param([1.0, 2.0], name="w"), g.param([3.0, 4.0], name="v")
    wide = g.param(np.ones((3, 5)))
    opaque = rg.lift(lambda a: a * 2.0, shape=(2,))(w)  # without a rule
    first = rg.tanh(w) * v
    second = rg.exp(first) + first
    y = second.sum()
    gradients = rg.grad(y, [w, v])
    for i in range(4):
        w.set([1.0, float(i)])
        g.forward(y, opaque, *gradients)
    before, nodes, plans = full_state(g), len(g), bound_plans(g)
    state = g._scheduler.staleness.state
    assert bool(plans) is keeps_plans(g)

    def ask() -> None:
        if refused == "cycle":
            first.replace_parent(0, second)
        elif refused == "shape":
            first.replace_parent(1, wide)
        elif refused == "gradient":
            first.replace_parent(0, opaque)
        elif refused == "in use":
            g.remove(first)
        else:
            with g.edit():  # one that would be fine, and one that is not
                second.replace_parent(1, w)
                first.replace_parent(1, wide)

    with g.transaction():
        with pytest.raises(rg.ReactgradError):
            ask()
        assert not differences(before, full_state(g))
        again = rg.grad(y, [w, v])
        assert all(one is other for one, other in zip(again, gradients, strict=True))
        assert g.forward(y, *gradients).ran == ()
    assert not differences(before, full_state(g))
    assert len(g) == nodes
    # A rule of a gradient may have looked at values of the graph as it would be.
    if refused != "gradient" and keeps_plans(g):
        assert g._scheduler.staleness.state == state
        assert bound_plans(g) == plans
    w.set([1.0, 5.0])
    run = g.forward(y, *gradients)
    assert all(gradient in run.ran for gradient in gradients)
    hidden = np.tanh([1.0, 5.0]) * [3.0, 4.0]
    np.testing.assert_allclose(y.value, (np.exp(hidden) + hidden).sum(), rtol=1e-12)
    np.testing.assert_allclose(
        gradients[1].value, (np.exp(hidden) + 1.0) * np.tanh([1.0, 5.0]), rtol=1e-12
    )
    g.check_invariants()


def test_edits_that_a_gradient_refuses_change_nothing_and_the_gradient_goes_on(g: rg.Graph) -> None:
    w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    hidden = rg.lift(lambda a: a * 2.0, shape=(2,))(w)  # without a rule
    hidden.name = "hidden"
    y = (w * v).sum()
    product = y.parents[0]
    gradient = rg.grad(y, w)
    g.forward(y, gradient, hidden)
    before = full_state(g)
    with pytest.raises(rg.GradientError, match="'hidden'.*no derivative rule"):
        with g.edit():
            product.rewire(hidden, w)
    assert not differences(before, full_state(g))
    v.set([5.0, 6.0])
    assert gradient.value.tolist() == [5.0, 6.0]


def test_a_rule_that_raises_when_it_is_asked_takes_all_back(g: rg.Graph) -> None:
    w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])

    def rule(grad: Any, ans: Any, a: Any) -> Any:
        raise Abort

    picky = rg.lift(lambda a: a * 2.0, vjp=rule, shape=(2,))(w)
    first = rg.tanh(w) * v
    y, z = first.sum(), rg.tanh(first).sum()
    gradients = rg.grad(y, w), rg.grad(z, w)
    g.forward(y, z, picky, *gradients)
    before = full_state(g)
    with pytest.raises(Abort):
        first.replace_parent(1, picky)
    assert not differences(before, full_state(g))
    v.set([5.0, 6.0])
    slope = 1.0 - np.tanh([1.0, 2.0]) ** 2
    np.testing.assert_allclose(gradients[0].value, [5.0, 6.0] * slope)


def test_a_gradient_that_would_have_to_be_computed_from_itself_is_a_cycle(g: rg.Graph) -> None:
    a, b = g.param(2.0), g.param(3.0)
    y = a * b
    slope = rg.grad(y, a)  # is b
    g.forward(y, slope)
    before = full_state(g)
    with pytest.raises(rg.CycleError):
        y.replace_parent(1, slope * 1.0)
    gc.collect()
    assert not differences(before, full_state(g))


def test_an_empty_block_costs_nothing(g: rg.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(g)
    before = full_state(g)
    calls: list[str] = []
    for name in ("relink", "commit", "attend", "check_idle"):
        inner = getattr(Scheduler, name)

        def counted(self: Any, *args: Any, name: str = name, inner: Any = inner) -> Any:
            calls.append(name)
            return inner(self, *args)

        monkeypatch.setattr(Scheduler, name, counted)
    with g.edit():
        with g.edit():
            pass
    assert calls == ["check_idle", "check_idle"]
    monkeypatch.undo()
    assert not differences(before, full_state(g))


def test_no_block_opens_while_a_node_runs(g: rg.Graph) -> None:
    def opens(value: float) -> float:
        with g.edit():
            return value

    y = rg.lift(opens)(g.input(1.0))
    with pytest.raises(rg.BusyError):
        y.value


def test_a_pinned_node_takes_no_operands_until_it_is_unpinned(g: rg.Graph) -> None:
    x = g.input([1.0])
    y = x * 2.0
    y.name = "y"
    with pytest.raises(rg.EditError, match=r"'y' is pinned.*y\.unpin\(\)"):
        with g.edit():
            y.replace_parent(0, g.input([4.0]))
            y.pin([7.0])
    assert y.value.tolist() == [7.0]
    with pytest.raises(rg.EditError, match="pinned"):
        y.replace_parent(0, x)
    y.unpin()
    y.replace_parent(0, g.input([4.0]))
    assert y.value.tolist() == [8.0]


def test_events_tell_of_edits_that_were_made_and_of_no_others(g: rg.Graph) -> None:
    x, a, b, _ = chain(g)
    g.events = True
    with pytest.raises(rg.CycleError):
        with g.edit():
            a.replace_parent(0, b)
    with g.edit():
        a.replace_parent(0, x)
        b.replace_parent(0, x)
    assert [(event.kind, event.node) for event in g.events] == [("edit", "a"), ("edit", "b")]


# --- transactions --------------------------------------------------------------------------------


def test_a_block_inside_a_transaction_is_taken_back_with_it(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    z = g.input(5.0)
    gradient = rg.grad(c, x)
    bits = gradient.value
    consumers = [names(var.children) for var in (x, a, b)]
    with pytest.raises(Abort):
        with g.transaction():
            with g.edit():
                a.replace_parent(0, z)
                c.replace_parent(0, x)
            assert (c.value, b.value) == (-2.0, 60.0)
            assert gradient.value == 1.0
            raise Abort
    assert [var.parents[0] for var in (a, b, c)] == [x, a, b]
    assert [names(var.children) for var in (x, a, b)] == consumers
    assert c.value == 17.0
    assert same_bits(gradient.value, bits)
    g.check_invariants()


def test_a_transaction_inside_a_block_hands_it_its_edits_unless_it_fails(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    z = g.input(5.0)
    with g.edit():
        with g.transaction():
            x.set(2.0)
            a.replace_parent(0, z)
        assert c.value == 27.0  # what was set is there, what was edited is not yet
        with pytest.raises(Abort):
            with g.transaction():
                x.set(3.0)
                b.replace_parent(0, z)
                raise Abort
        assert x.value == 2.0
    assert (a.parents[0], b.parents[0]) == (z, a)
    assert c.value == 57.0


def test_states_in_between_need_not_fit_when_a_transaction_is_taken_back(g: rg.Graph) -> None:
    a, b = g.input([1.0, 2.0, 3.0]), g.input([4.0, 5.0, 6.0])
    c = g.input([1.0, 2.0])
    y = a + b
    end = y * a
    gradient = rg.grad(y.sum(), a)
    g.forward(y, end, gradient)
    with pytest.raises(Abort):
        with g.transaction():
            with g.edit():
                y.rewire(c, c)
                end.replace_parent(1, c)
            g.set({a: [1.0, 2.0], b: [3.0, 4.0]})
            y.replace_parent(1, b)
            y.replace_parent(0, a)
            assert y.value.tolist() == [4.0, 6.0]
            raise Abort
    assert y.parents == [a, b]
    assert end.value.tolist() == [5.0, 14.0, 27.0]
    assert gradient.value.tolist() == [1.0, 1.0, 1.0]
    g.check_invariants()


def test_a_gradient_that_a_rollback_leaves_without_a_rule_says_so_and_comes_back(
    g: rg.Graph,
) -> None:
    w = g.param([1.0, 2.0])
    hidden = rg.lift(lambda a: a * 3.0, shape=(2,))(w)
    y = hidden * 2.0
    total = y.sum()
    with pytest.raises(Abort):
        with g.transaction():
            y.replace_parent(0, w)
            gradient = rg.grad(total, w)
            assert gradient.value.tolist() == [2.0, 2.0]
            raise Abort
    assert y.parents[0] is hidden
    assert total.value == 18.0
    with pytest.raises(rg.GradientError, match="no derivative rule"):
        gradient.value
    with pytest.raises(rg.GradientError, match="no derivative rule"):
        rg.grad(total, w)
    g.check_invariants()
    y.replace_parent(0, w)
    assert gradient.value.tolist() == [2.0, 2.0]
    assert rg.grad(total, w) is gradient
    g.check_invariants()


def test_names_cutoffs_frozen_params_and_pins_are_given_back(g: rg.Graph) -> None:
    w = g.param([3.0])
    a, b = w * 2.0, w * 3.0
    called(w=w, a=a, b=b)
    b.cutoff = "equal"
    (a + b).sum().backward()
    grad = w.grad
    with pytest.raises(Abort):
        with g.transaction():
            a.name, b.name = "c", "a"
            a.name = "b"  # exchanged
            new = g.input(1.0, name="c")
            a.cutoff, b.cutoff = rg.tolerance(atol=1.0), None
            w.freeze()
            assert w.grad is None
            a.pin([5.0])
            a.pin([6.0])
            assert a.value.tolist() == [6.0]
            raise Abort
    assert (g["a"], g["b"], g["w"]) == (a, b, w)
    assert "c" not in g
    assert new.name != "c"
    assert (a.cutoff, b.cutoff is not None) == (None, True)
    assert not w.frozen
    assert w.grad is grad
    assert not a.pinned
    assert a.value.tolist() == [6.0]
    w.set([3.0])
    assert g.forward(a, b).cut_off == [b]
    g.check_invariants()


def test_what_an_outer_transaction_found_is_given_back_whatever_inner_ones_did(g: rg.Graph) -> None:
    a, b, c = g.input(1.0), g.input(2.0), g.input(3.0)
    y = a * 10.0
    y.name = "y"
    with pytest.raises(Abort):
        with g.transaction():
            with g.transaction():
                y.replace_parent(0, b)
                y.name = "z"
            with pytest.raises(Abort):
                with g.transaction():
                    y.replace_parent(0, c)
                    y.name = "q"
                    raise Abort
            assert (y.value, y.name) == (20.0, "z")
            raise Abort
    assert (y.value, y.name) == (10.0, "y")


def test_a_node_that_was_pinned_and_edited_in_a_transaction_is_pinned_again(g: rg.Graph) -> None:
    x, z = g.input([1.0]), g.input([1.0, 2.0])
    y = x * 2.0
    end = y.sum()
    y.pin([7.0])
    end.value
    with pytest.raises(Abort):
        with g.transaction():
            y.unpin()
            y.replace_parent(0, z)
            assert end.value == 6.0
            raise Abort
    assert y.pinned
    assert y.shape == (1,)
    assert end.value == 7.0
    y.unpin()
    assert y.parents[0] is x
    assert end.value == 2.0
    g.check_invariants()


# --- pins and cutoffs ------------------------------------------------------------------------------


def test_a_node_that_does_not_fit_any_more_stays_pinned(g: rg.Graph) -> None:
    a, b = g.input([1.0, 2.0]), g.input([1.0, 2.0])
    y = a + b
    y.pin([5.0, 6.0])
    a.set([1.0, 2.0, 3.0])
    before = full_state(g)
    with pytest.raises(rg.ShapeError):
        y.unpin()
    assert not differences(before, full_state(g))
    assert y.value.tolist() == [5.0, 6.0]
    b.set([1.0, 2.0, 3.0])
    y.unpin()
    assert y.value.tolist() == [2.0, 4.0, 6.0]
    g.check_invariants()


def test_unpinning_passes_a_new_shape_on(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0])
    y = x * 3.0
    end = y.sum()
    gradient = rg.grad(end, y)
    y.pin([5.0, 6.0])
    x.set([1.0, 2.0, 3.0])
    assert gradient.shape == (2,)
    y.unpin()
    assert (y.shape, gradient.shape) == ((3,), (3,))
    assert end.value == 18.0
    assert rg.grad(end, x).value.tolist() == [3.0, 3.0, 3.0]
    number = x.sum()
    number.pin(4.0)
    number.unpin()
    assert number.value == 6.0


def test_a_cutoff_sees_the_value_before_the_edit_as_the_old_one(g: rg.Graph) -> None:
    a, b, c = g.input([1.0, 2.0]), g.input([1.0, 2.0]), g.input([1.0, 2.0, 3.0])
    seen: list[Any] = []

    def watch(old: Any, new: Any) -> bool:
        seen.append((old.tolist(), new.tolist()))
        return bool(np.array_equal(old, new))

    y = a * 2.0
    y.cutoff = watch
    end = y + 1.0
    g.forward(end)
    y.replace_parent(0, b)
    run = g.forward(end)
    assert (run.ran, run.cut_off, run.skipped) == ([y], [y], [end])
    assert seen.pop() == ([2.0, 4.0], [2.0, 4.0])
    y.replace_parent(0, c)  # no value of the new shape was there before
    assert g.forward(end).ran == [y, end]
    assert not seen
    c.set([1.0, 2.0, 3.0])
    assert g.forward(end).ran == [y]
    assert seen == [([2.0, 4.0, 6.0], [2.0, 4.0, 6.0])]


def test_a_view_of_a_former_operand_is_never_written_to(g: rg.Graph) -> None:
    a = g.input(np.arange(6.0))
    b = g.input(np.arange(6.0).reshape(2, 3))
    y = rg.reshape(a, (6,))
    y.value
    flipped = rg.transpose(b)  # has no flat view
    y.replace_parent(0, flipped)
    assert y.value.tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    assert a.value.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_choice_takes_its_condition_from_elsewhere_and_its_gradient_follows(g: rg.Graph) -> None:
    one, other = g.input(True), g.input(False)
    a, b = g.param(2.0), g.param(3.0)
    y = rg.switch(one, a, b)
    gradients = rg.grad(y * 10.0, (a, b))
    assert [float(gradient.value) for gradient in gradients] == [10.0, 0.0]
    y.replace_parent(0, other)
    assert y.value == 3.0
    assert [float(gradient.value) for gradient in gradients] == [0.0, 10.0]
    with pytest.raises(rg.EditError):
        y.replace_parent(1, a)
    g.check_invariants()


# --- insert, rewire ----------------------------------------------------------------------------------


def test_an_edge_is_split(g: rg.Graph) -> None:
    x, w = g.input(2.0), g.param(0.5)
    y, other = x * x, x + 1.0
    g.forward(y, other)
    new = g.insert(x, y, lambda v: rg.tanh(v * w))
    assert y.parents == [new, new]
    assert other.parents[0] is x
    assert not other.is_stale
    run = g.forward(y, other)
    assert run.ran == [new.parents[0], new, y]
    assert y.value == np.tanh(1.0) ** 2
    second = g.insert(x, y.parents[0].parents[0], lambda v: v + 1.0)
    assert y.value == np.tanh(1.5) ** 2
    assert second.parents[0] is x
    g.check_invariants()


def test_one_of_several_edges_between_two_nodes_is_split(g: rg.Graph) -> None:
    x = g.input(2.0)
    y = x - x
    new = g.insert(x, y, lambda v: v * 10.0, position=1)
    assert y.parents == [x, new]
    assert y.value == -18.0
    with pytest.raises(rg.EditError, match="no operand 'input_1' at position 1"):
        g.insert(x, y, lambda v: v, position=1)


def test_a_detached_edge_stays_detached_when_it_is_split(g: rg.Graph) -> None:
    w = g.param(3.0)
    y = w.detach() * w
    g.insert(w, y, lambda v: v * 2.0, position=0)
    assert y.value == 18.0
    assert rg.grad(y, w).value == 6.0


def test_what_insert_refuses(g: rg.Graph) -> None:
    x, a, b, _ = chain(g)
    before = full_state(g)
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: g.insert(x, b, rg.tanh), rg.EditError, "'b' has no operand 'x'; its operands are"),
        (lambda: g.insert(a, x, rg.tanh), rg.EditError, "'x' is a leaf"),
        (lambda: g.insert(a, b, a), rg.DTypeError, "it takes a function"),
        (lambda: g.insert(a, b, lambda v: 3.0), rg.DTypeError, "the function returned 3.0"),
        (lambda: g.insert(a, b, lambda v: b * 1.0), rg.CycleError, "b -> multiply_"),
        (
            lambda: g.insert(a, b, rg.tanh, position=7),
            rg.EditError,
            "no operand|none at position 7",
        ),
        (lambda: g.insert(a, b, rg.tanh, position=True), rg.DTypeError, "an integer, not True"),
        (lambda: g.insert(a, 3, rg.tanh), rg.DTypeError, "takes Vars"),  # type: ignore[arg-type]
    ]
    for refused, kind, message in cases:
        with pytest.raises(kind, match=message):
            refused()
    gc.collect()
    assert not differences(before, full_state(g))


def test_nodes_that_take_any_number_of_operands_get_more_and_fewer(g: rg.Graph) -> None:
    a, b, c = (g.param([i]) for i in (1.0, 2.0, 4.0))
    joined = rg.concatenate([a, b])
    total = rg.lift(lambda *values: sum(values))(a, b)
    y = (joined * joined).sum()
    gradients = [rg.grad(y, one, allow_unused=True) for one in (a, b)]
    g.forward(y, total)
    joined.rewire(a, b, c)
    total.rewire(a, b, c)
    assert (joined.value.tolist(), total.value.tolist()) == ([1.0, 2.0, 4.0], [7.0])
    assert [one.value.tolist() for one in gradients] == [[2.0], [4.0]]
    assert rg.grad(y, c).value.tolist() == [8.0]
    joined.rewire(b)
    total.rewire(b)
    assert (joined.value.tolist(), total.value.tolist()) == ([2.0], [2.0])
    assert [one.value.tolist() for one in gradients] == [[0.0], [4.0]]
    product = a * b
    product.name = "product"
    with pytest.raises(rg.EditError, match="'product' has 2 operands and was given 3"):
        product.rewire(a, b, c)
    with pytest.raises(rg.EditError, match="was given 0"):
        joined.rewire()
    g.check_invariants()


# --- remove ----------------------------------------------------------------------------------------


def test_a_node_with_consumers_is_not_removed(g: rg.Graph) -> None:
    _x, a, b, c = chain(g)
    before = full_state(g)
    with pytest.raises(rg.EditError) as caught:
        g.remove(a)
    assert str(caught.value) == (
        "'a' cannot be removed: 'b' would lose an operand. Let these take it from elsewhere first, "
        "b.replace_parent(...), or remove all that depends on it, too: g.remove(c, b, a). Nothing was "
        "changed."
    )
    del caught
    with pytest.raises(rg.EditError, match="'b' cannot be removed: 'c'"):
        g.remove(a, b)
    b.pin(1.0)
    with pytest.raises(rg.EditError, match="'a' cannot be removed: 'b'"):
        g.remove(a)  # it will be needed again
    b.unpin()
    c.value
    after = full_state(g)
    assert after["nodes"].keys() == before["nodes"].keys()
    g.remove(a, b, c)
    assert names(g.nodes) == ["x", *[n for n in names(g.nodes) if n.startswith("const")]]
    g.check_invariants()


USES: dict[str, Callable[[rg.Graph, rg.Var, rg.Var], object]] = {
    "value": lambda g, gone, x: gone.value,
    "float": lambda g, gone, x: float(gone),
    "array": lambda g, gone, x: np.asarray(gone),
    "NumPy": lambda g, gone, x: np.tanh(gone),
    "op": lambda g, gone, x: gone + 1.0,
    "second operand": lambda g, gone, x: x * gone,
    "comparison": lambda g, gone, x: gone == x,
    "index": lambda g, gone, x: gone[0],
    "method": lambda g, gone, x: gone.sum(),
    "set": lambda g, gone, x: gone.set(1.0),
    "pin": lambda g, gone, x: gone.pin(1.0),
    "touch": lambda g, gone, x: gone.touch(),
    "name": lambda g, gone, x: gone.name,
    "new name": lambda g, gone, x: setattr(gone, "name", "again"),
    "shape": lambda g, gone, x: gone.shape,
    "version": lambda g, gone, x: gone.value_version,
    "stale": lambda g, gone, x: gone.is_stale,
    "parents": lambda g, gone, x: gone.parents,
    "observe": lambda g, gone, x: gone.observe(print),
    "edit": lambda g, gone, x: gone.replace_parent(0, x),
    "operand": lambda g, gone, x: (x + 1.0).replace_parent(0, gone),
    "forward": lambda g, gone, x: g.forward(gone),
    "why": lambda g, gone, x: g.why(gone),
    "keep": lambda g, gone, x: g.keep(gone),
    "grad": lambda g, gone, x: rg.grad(gone, x),
    "wanted": lambda g, gone, x: rg.grad(x * 1.0, gone),
    "backward": lambda g, gone, x: gone.backward(),
    "lift": lambda g, gone, x: rg.lift(lambda v: v)(gone),
    "detach": lambda g, gone, x: gone.detach() + 1.0,
    "twin": lambda g, gone, x: g.fork()[gone],
    "remove": lambda g, gone, x: g.remove(gone),
}


@pytest.mark.parametrize("use", USES)
def test_a_removed_node_says_so_however_it_is_used(use: str) -> None:
    g = rg.Graph()
    x = g.param(2.0)
    gone = x * 3.0
    gone.name = "gone"
    view = gone.detach()
    g.remove(gone)
    with pytest.raises(rg.EditError, match=r"'gone' was removed from its graph by g\.remove"):
        USES[use](g, gone, x)
    with pytest.raises(rg.EditError, match="'gone' was removed"):
        view.value
    assert repr(gone) == "<Var 'gone', removed>"
    assert gone not in g
    assert "gone" not in g
    assert {gone: 1}[gone] == 1
    assert len(g.inputs) + len(g.params) == 1
    g.check_invariants()


def test_a_name_is_free_again_and_observers_are_told_once(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    y.name = "y"
    told: list[Any] = []
    stays = y.observe(lambda old, new: told.append(new))
    removed = y.observe(told.append, kind="removed")
    y.value
    told.clear()
    g.remove(y)
    assert len(told) == 1
    assert told[0] is y
    assert not stays.active
    assert not removed.active
    other = x + 2.0
    other.name = "y"
    assert g["y"] is other
    assert other.value == 3.0
    assert len(told) == 1


def test_an_observer_of_a_removal_that_raises_does_not_bring_the_node_back(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = g.keep(x + 1.0)
    size = len(g)
    told: list[object] = []

    def fail(var: object) -> None:
        raise Abort

    y.observe(fail, kind="removed")
    y.observe(told.append, kind="removed")
    with pytest.raises(ExceptionGroup) as caught:
        g.remove(y)
    assert caught.group_contains(Abort)
    assert len(told) == 1
    assert len(g) < size
    with pytest.raises(rg.EditError):
        y.value


def test_a_node_is_taken_out_of_the_middle_in_one_block(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    with g.edit():
        g.remove(b)
        assert b.value == 20.0
        c.replace_parent(0, a)
    assert c.value == -1.0
    with pytest.raises(rg.EditError):
        b.value
    assert names(x.children) == ["a"]
    assert names(a.children) == ["c"]
    before = full_state(g)
    with pytest.raises(rg.EditError, match="'x' cannot be removed: 'a'"):
        with g.edit():
            c.replace_parent(0, g.input(1.0))
            g.remove(x)
    gc.collect()
    assert not differences(before, full_state(g))


def test_gradients_of_a_removed_node_go_on(g: rg.Graph) -> None:
    w = g.param(0.5)
    y = rg.tanh(w)
    y.name = "y"
    gradient = rg.grad(y, w)
    (rg.tanh(w) * 2.0).backward()
    size = len(g)
    g.remove(y)
    assert gradient.value == 1.0 - np.tanh(0.5) ** 2
    w.set(0.25)
    assert gradient.value == 1.0 - np.tanh(0.25) ** 2
    assert "y" not in g
    assert len(g) == size - 1
    assert len(list(g.nodes)) == len(g)
    del gradient
    assert len(g) == 1
    g.check_invariants()


def test_gradients_that_only_a_removed_node_kept_go_with_it(g: rg.Graph) -> None:
    w = g.param([1.0, 2.0])
    y = (w * w).sum()
    y.backward()
    assert len(g) > 3
    g.remove(y)
    assert len(g) == 1
    assert w.grad.tolist() == [2.0, 4.0]


def test_a_removal_is_taken_back_with_its_transaction(g: rg.Graph) -> None:
    x, _a, b, c = chain(g)
    g.keep(c)
    told: list[object] = []
    c.observe(told.append, kind="removed")
    gradient = rg.grad(c, x)
    gradient.value
    size = len(g)
    version = c.value_version
    with pytest.raises(Abort):
        with g.transaction():
            with g.edit():
                g.remove(c)
            with pytest.raises(rg.EditError):
                c.value
            assert "c" not in g
            assert len(g) < size
            assert names(b.children) == [n for n in names(b.children) if n != "c"]
            g.remove(b)  # nobody who stays uses it
            other = g.input(1.0, name="c")
            raise Abort
    assert g["c"] is c
    assert g["b"] is b
    assert other.name != "c"
    assert (c.value, c.value_version) == (17.0, version)
    assert not told
    x.set(2.0)
    assert c.value == 27.0
    assert rg.grad(c, x) is gradient
    del c
    assert g["c"].value == 27.0, "it is kept, as it was"
    g.check_invariants()
    with g.transaction():
        g.remove(g["c"])
        assert not told
    assert len(told) == 1


def test_a_removed_node_of_a_fork_is_gone_there_only(g: rg.Graph) -> None:
    x, _a, b, c = chain(g)
    h = g.fork()
    twin = h[c]
    h.remove(twin)
    assert c.value == 17.0
    with pytest.raises(rg.EditError):
        twin.value
    with pytest.raises(rg.GraphError, match="removed here"):
        h[c]
    assert "c" not in h
    assert len(h) == len(g) - 1
    h[x].set(2.0)
    assert h[b].value == 30.0
    h.check_invariants()
    g.check_invariants()


# --- adjoints that an edit does not reach (rule D9) ------------------------------------------------


def network(g: rg.Graph) -> tuple[list[rg.Var], list[list[rg.Var]], rg.Var]:
    """Two layers and an output, each node a sum of weighted tanhs; weights, layers, output."""
    rng = np.random.default_rng(0)
    inputs = [g.input(rng.normal(size=4)) for _ in range(3)]
    weights: list[rg.Var] = []
    layers = [inputs]
    for size in (4, 4, 1):
        layer = []
        for _ in range(size):
            total: Any = 0.1
            for source in layers[-1]:
                weights.append(g.param(rng.normal()))
                total = source * weights[-1] + total
            layer.append(rg.tanh(total))
        layers.append(layer)
    return weights, layers, (layers[-1][0] ** 2).sum()


def adjoints(g: rg.Graph) -> dict[int, rg.Var]:
    """All nodes that gradients have built, by the number of their creation."""
    host, serial = g._host, g._scheduler.topology.serial
    tidy(g)
    return {serial[slot]: g._handle(slot) for slot in host.owners}


def test_adjoints_of_another_branch_keep_node_and_value(g: rg.Graph) -> None:
    """The gradient of a sum: an edit of one term leaves those of the other terms alone."""
    ws = [g.param([0.1 * i, 0.2]) for i in range(1, 6)]
    terms = [rg.tanh(rg.sin(w) * w) for w in ws]
    total: Any = terms[0]
    for term in terms[1:]:
        total = total + term
    y = total.sum()
    gradients = rg.grad(y, ws)
    g.forward(y, *gradients)
    values = [gradient.value for gradient in gradients]
    before = adjoints(g)
    clean = {number for number, var in before.items() if not var.is_stale}
    assert clean == before.keys()
    product = terms[2].parents[0]
    product.replace_parent(1, ws[0])
    now = adjoints(g)
    stale = {number for number in clean if number in now and now[number].is_stale}
    assert len(before.keys() - now.keys()) <= 3
    # Only ws[2] and ws[0] have another gradient; that of the others did not even turn stale.
    for i, gradient in enumerate(gradients):
        assert gradient.is_stale == (i in (0, 2)), i
        if i not in (0, 2):
            assert gradient.value is values[i]
    run = g.forward(*gradients)
    kept = [var for number, var in now.items() if number in clean - stale]
    assert len(kept) > len(before) / 2
    assert not set(map(id, kept)) & set(map(id, run.ran))
    twin = rg.Graph()
    vs = [twin.param([0.1 * i, 0.2]) for i in range(1, 6)]
    others = [rg.tanh(rg.sin(v) * (vs[0] if i == 2 else v)) for i, v in enumerate(vs)]
    expected: Any = others[0]
    for term in others[1:]:
        expected = expected + term
    for gradient, wanted in zip(gradients, rg.grad(expected.sum(), vs), strict=True):
        assert same_bits(gradient.value, wanted.value)
    g.check_invariants()


def test_splitting_one_edge_of_a_network_leaves_almost_all_adjoints_where_they_are(
    g: rg.Graph,
) -> None:
    weights, layers, y = network(g)
    gradients = rg.grad(y, weights)
    g.forward(y, *gradients)
    before = adjoints(g)
    slots = {number: var._slot for number, var in before.items()}
    child = layers[2][1].parents[0]  # the sum before the tanh
    product = child.parents[0]
    extra = g.param(0.7)
    new = g.insert(product, child, lambda v: rg.tanh(v * extra))
    after = adjoints(g)
    gone = before.keys() - after.keys()
    fresh = after.keys() - before.keys()
    assert len(gone) <= 2, gone
    assert len(fresh) <= 12, "what the new nodes need, and no more"
    assert all(after[number]._slot == slots[number] for number in before.keys() & after.keys())
    run = g.forward(y, *gradients)
    assert new in run.ran
    assert {id(rg.grad(y, w)) for w in weights} == {id(gradient) for gradient in gradients}
    assert np.isfinite(float(np.sum(rg.grad(y, extra).value)))
    fresh_gradients = _numeric(g, y, weights[5])
    np.testing.assert_allclose(gradients[5].value, fresh_gradients, rtol=1e-5)
    g.check_invariants()


def _numeric(g: rg.Graph, y: rg.Var, w: rg.Var) -> float:
    """The gradient of a scalar by a central difference."""
    value, step = float(w.value), 1e-6
    ends = []
    for at in (value + step, value - step):
        w.set(at)
        ends.append(float(y.value))
    w.set(value)
    return (ends[0] - ends[1]) / (2 * step)


def test_an_edit_and_its_undo_bring_back_the_bits_of_all_adjoints(g: rg.Graph) -> None:
    weights, layers, y = network(g)
    gradients = rg.grad(y, weights)
    g.forward(y, *gradients)
    bits = [gradient.value for gradient in gradients]
    sizes = []
    for _ in range(3):
        for node in (layers[1][0], layers[2][3], layers[3][0]):
            total = node.parents[0]
            first, second = total.parents
            consumers = names(first.children)
            with g.edit():
                total.rewire(layers[0][0] * 1.0, second)
            g.forward(y, *gradients)
            total.rewire(first, second)
            assert [n for n in names(first.children) if n in consumers] == consumers
            for gradient, was in zip(gradients, bits, strict=True):
                assert same_bits(gradient.value, was)
        sizes.append(len(g))
    assert sizes[0] == sizes[1] == sizes[2], "edits leave nothing behind that grows"
    g.check_invariants()


def test_a_gradient_of_a_gradient_follows_an_edit(g: rg.Graph) -> None:
    a, b = g.param(0.5), g.param(0.25)
    inner = rg.sin(a)
    y = inner * inner * a
    slope = rg.grad(y, a)
    bend = rg.grad(slope, a)
    g.forward(y, slope, bend)
    inner.replace_parent(0, b)  # y = sin(b)**2 * a
    assert slope.value == np.sin(0.25) * np.sin(0.25)
    assert bend.value == 0.0
    inner.replace_parent(0, a)
    twin = rg.Graph()
    v = twin.param(0.5)
    s = rg.sin(v)
    wanted = rg.grad(s * s * v, v)
    assert same_bits(slope.value, wanted.value)
    np.testing.assert_allclose(bend.value, rg.grad(wanted, v).value, rtol=1e-14)
    g.check_invariants()


def test_a_gradient_appears_and_vanishes_with_the_path(g: rg.Graph) -> None:
    a, b = g.param(2.0), g.param(5.0)
    y = rg.square(a) * 3.0
    square = y.parents[0]
    da, db = rg.grad(y, a), rg.grad(y, b, allow_unused=True)
    assert db is None
    square.replace_parent(0, b)
    db = rg.grad(y, b)
    assert (da.value, db.value) == (0.0, 30.0)
    square.replace_parent(0, a)
    assert (da.value, db.value) == (12.0, 0.0)
    b.set([1.0, 2.0])
    assert db.value.tolist() == [0.0, 0.0]
    assert rg.grad(y, a) is da


def test_who_got_a_gradient_of_a_node_that_is_gone_is_not_taken_for_its_successor(
    g: rg.Graph,
) -> None:
    a = g.param(2.0)
    y = a * 3.0
    da = rg.grad(y, a)
    assert da.value == 3.0
    y.replace_parent(0, g.param(1.0))
    del a
    assert "param_1" not in g
    others = [g.param(float(i)) for i in range(6)]  # one of them in the slot of the first
    for other in others:
        y.replace_parent(0, other)
        assert rg.grad(y, other) is not da
        assert rg.grad(y, other).value == 3.0
    assert da.value == 0.0
    g.check_invariants()


# --- costs -----------------------------------------------------------------------------------------


class Counted(list[Any]):
    """A table that counts how often it is looked up."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        Counted.looks += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        Counted.looks += len(self)
        return super().__iter__()


def looks(g: rg.Graph, task: Callable[[], object]) -> int:
    """How many entries of the tables of the topology a task looks at."""
    topology = g._scheduler.topology
    for name in ("parents", "children", "rank", "serial"):
        setattr(topology, name, Counted(getattr(topology, name)))
    Counted.looks = 0
    task()
    return Counted.looks


def crowd(size: int, *, gradients: bool) -> tuple[rg.Graph, rg.Var, rg.Var, rg.Var]:
    """Many terms that make one sum; the graph, the middle of one of them, its operand, the sum."""
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    ws = [g.param([0.1 * (i % 7), 0.3]) for i in range(size)]
    middle = [w * x for w in ws]
    y = rg.concatenate([rg.tanh(one) for one in middle]).sum()
    held = [g, *middle, y]
    g.keep(y)
    if gradients:
        held += rg.grad(y, ws[:5])
    g.forward(*held[1:])
    g._scheduler.versions.settle()  # what the read left to be written down is no cost of an edit
    return g, ws[size // 2], middle[size // 2], y


@pytest.mark.parametrize("gradients", [False, True])
def test_what_an_edit_costs_does_not_depend_on_the_size_of_the_graph(gradients: bool) -> None:
    found = []
    for size in (50, 2000):
        g, w, product, _y = crowd(size, gradients=gradients)
        scale, late = g.param(2.0), g.param([1.0, 1.0])

        def split(g: Any = g, w: Any = w, product: Any = product, scale: Any = scale) -> None:
            g.insert(w, product, lambda v: v * scale)

        counts = [looks(g, split)]
        counts.append(looks(g, lambda p=product, late=late: p.replace_parent(1, late)))  # type: ignore[misc]
        # An operand that was only just made, for a node that much depends on.
        counts.append(
            looks(g, lambda p=product, g=g: p.replace_parent(1, g.param([2.0, 3.0]) * 1.0))
        )  # type: ignore[misc]
        found.append(counts)
        g.check_invariants()
    assert found[0] == found[1]
    assert max(found[0]) < 400


def test_a_new_operand_moves_no_rank_but_its_own(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    end = y
    for _ in range(200):
        end = end + x
    g.forward(end)
    rank, slots = g._scheduler.topology.rank, g._scheduler.topology.slots()
    before = [rank[slot] for slot in slots]
    g.insert(x, y, lambda v: rg.tanh(v) * g.param(2.0))
    assert [rank[slot] for slot in slots] == before
    g.check_invariants()


def test_an_edit_of_one_gradient_asks_no_rule_of_another_part(g: rg.Graph) -> None:
    asked: list[str] = []

    def term(name: str) -> Callable[[rg.Var], rg.Var]:
        def rule(grad: Any, ans: Any, a: Any) -> Any:
            asked.append(name)
            return grad * 2.0

        return rg.lift(lambda a: a * 2.0, vjp=rule, shape=(2,))

    ws = [g.param([1.0, 2.0]) for _ in range(4)]
    doubled = [term(name)(w) for name, w in zip("abcd", ws, strict=True)]
    total = (doubled[0] * doubled[1] + doubled[2] * doubled[3]).sum()
    gradients = rg.grad(total, ws)
    assert sorted(asked) == ["a", "b", "c", "d"]
    asked.clear()
    doubled[1].replace_parent(0, ws[0])
    assert asked == ["b"]
    assert [one.value.tolist() for one in gradients] == [
        [8.0, 16.0],
        [0.0, 0.0],
        [4.0, 8.0],
        [4.0, 8.0],
    ]
    g.check_invariants()


@pytest.mark.parametrize(
    "value",
    [
        (1, 2.5),
        [1.0, 2.0],
        "word",
        {"a": 1},
        None,
        np.array(["a", "b"]),
        np.array([None, 1], dtype=object),
        np.ma.array([1.0, 2.0], mask=[False, True]),
        np.array([1.0, 2.0]),
        np.array(3.0),
        np.float64(3.0),
    ],
    ids=repr,
)
def test_a_pin_of_a_function_is_what_the_function_returns(g: rg.Graph, value: Any) -> None:
    y = rg.lift(lambda _: value)(g.input(1.0))
    z = rg.lift(lambda v: (type(v), repr(v)))(y)
    returned, computed = y.value, z.value
    y.pin(returned)
    assert type(y.value) is type(returned)
    assert z.value == computed == (type(value), repr(value))
    y.unpin()
    assert z.value == computed
    g.check_invariants()


def test_a_pinned_array_is_a_copy_that_nobody_can_change(g: rg.Graph) -> None:
    y = rg.lift(lambda v: v)(g.input(1.0))
    array = np.ones(2)
    y.pin(array)
    array[:] = 5.0
    assert y.value.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match=r"read-only|WRITEABLE"):
        y.value.flags.writeable = True


def test_a_function_of_several_outputs_is_pinned_to_as_many(g: rg.Graph) -> None:
    first, second = rg.lift(lambda v: (v, "a"), outputs=2)(g.input(1.0))
    both = first.parents[0]
    assert (first.value, second.value) == (1.0, "a")
    both.pin(("b", (1, 2)))
    assert (first.value, second.value) == ("b", (1, 2))
    with pytest.raises(rg.ShapeError, match="outputs=2"):
        both.pin((1, 2, 3))


# --- attributes ----------------------------------------------------------------------------------


def test_rewiring_changes_attributes_of_an_op_and_what_follows_from_them() -> None:
    g = rg.Graph()
    x, z = g.param([1.0, 2.0, 3.0, 4.0]), g.input([5.0, 6.0, 7.0, 8.0])
    y = roll(x, shift=1)
    total = (y * np.array([1.0, 10.0, 100.0, 1000.0])).sum()
    (slope,) = rg.grad(total, [x])
    assert slope.value.tolist() == [10.0, 100.0, 1000.0, 1.0]
    fork = g.fork()
    y.rewire(x, shift=2)
    assert y.value.tolist() == [3.0, 4.0, 1.0, 2.0]
    assert slope.value.tolist() == [100.0, 1000.0, 1.0, 10.0]
    assert fork[y].value.tolist() == [4.0, 1.0, 2.0, 3.0]
    assert fork[slope].value.tolist() == [10.0, 100.0, 1000.0, 1.0]
    with g.edit():  # one edit keeps what another one has asked for
        y.rewire(x, shift=3)
        with g.edit():
            y.replace_parent(0, z)
    assert y.value.tolist() == [6.0, 7.0, 8.0, 5.0]
    with g.edit():
        y.replace_parent(0, x)
        with g.edit():
            y.rewire(x, shift=-1)
    assert y.value.tolist() == [2.0, 3.0, 4.0, 1.0]
    with pytest.raises(ZeroDivisionError), g.transaction():
        y.rewire(z, shift=2)
        assert y.value.tolist() == [7.0, 8.0, 5.0, 6.0]
        raise ZeroDivisionError
    assert y.value.tolist() == [2.0, 3.0, 4.0, 1.0]
    assert y.parents == [x]
    with pytest.raises(ZeroDivisionError), g.edit():
        y.rewire(z, shift=2)
        raise ZeroDivisionError
    assert y.value.tolist() == [2.0, 3.0, 4.0, 1.0]
    g.check_invariants()


def test_attributes_that_an_op_has_not_are_named() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    y = roll(x, shift=1)
    before = full_state(g)
    for node, word, message in (
        (y, "by", r"rewire\(by=\.\.\.\).*has the attributes shift, axis"),
        (rg.exp(x), "shift", r"rewire\(shift=\.\.\.\).*has none that can be changed"),
        (rg.lift(lambda v: v)(x), "shift", "has none that can be changed"),
    ):
        with pytest.raises(rg.EditError, match=message):
            node.rewire(x, **{word: 1})
    del node
    with pytest.raises(rg.DTypeError, match="shift= was given a Var"):
        y.rewire(x, shift=x)
    assert not differences(before, full_state(g))


def test_nodes_of_a_gradient_cannot_be_edited_and_those_of_its_model_can() -> None:
    """Who gives all children of a node another parent got a wrong gradient without a word."""
    g = rg.Graph()
    x, s = g.input(2.0, name="x"), g.input(1.0, name="s")
    v = rg.exp(x)
    y = v * 3.0
    z = y**2
    d = rg.grad(z, x)
    before = d.value
    new = v + s
    part = next(one for one in v.children if one is not new and one is not y)
    for edit in (
        lambda: part.replace_parent(part.parents.index(v), new),
        lambda: part.rewire(*[new if one is v else one for one in part.parents]),
        lambda: g.insert(v, part, lambda q: q + 1.0),
    ):
        with pytest.raises(
            rg.EditError, match=f"'{part.name}' is part of a gradient, which follows"
        ):
            edit()
    assert d.value == before
    y.replace_parent(0, new)
    assert d.value == pytest.approx(18.0 * (np.exp(2.0) + 1.0) * np.exp(2.0), rel=1e-14)
    penalty = d * 2.0  # built on a gradient, no part of it
    penalty.replace_parent(1, s)
    assert penalty.value == d.value
