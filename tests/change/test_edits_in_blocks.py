"""Blocks of edits and transactions around them: all at once, or nothing."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler import Scheduler
from tests.laws.full_state import differences, full_state
from tests.laws.random_program import same_bits
from tests.plans import keeps_plans
from tests.reactive.chains import Abort, called, chain, names


def plus(x: rg.Var, amount: int = 1) -> rg.Var:
    return rg.lift(lambda v: v + amount)(x)


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
