"""Choices: what they give is what the branch taken gives, of whatever type, shape and dtype that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg

NUMBERS: list[tuple[Any, Any]] = [
    (5, 7),
    (2.5, -0.0),
    (1j, 2 + 1j),
    (True, False),
    (2**70, 3),
    (1, 2.5),
    (None, "text"),
]


@pytest.mark.parametrize(("first", "second"), NUMBERS, ids=str)
def test_numbers_and_objects_stay_what_they_are(first: Any, second: Any, g: rg.Graph) -> None:
    condition = g.input(True)
    y = rg.switch(condition, g.input(first), g.input(second))
    seen = rg.lift(lambda v: v)(y)
    for taken, wanted in ((True, first), (False, second)):
        condition.set(taken)
        assert type(y.value) is type(seen.value) is type(wanted)
        assert y.value == seen.value == wanted


def test_a_choice_between_numbers_counts_as_a_number_in_ops(g: rg.Graph) -> None:
    condition, x = g.input(True), g.input(np.float32([1, 2]))
    y = x * rg.switch(condition, 2.0, g.input(3))
    assert y.value.dtype == np.float32  # as `x * 2.0`
    assert y.value.tolist() == [2.0, 4.0]
    condition.set(False)
    assert y.value.tolist() == [3.0, 6.0]


def test_gradients_pass_to_numbers(g: rg.Graph) -> None:
    condition, a, b = g.input(True), g.input(2.0), g.input(3.0)
    y = rg.switch(condition, a, b)
    da, db = rg.grad(y * y, [a, b])
    assert (da.item(), db.item()) == (4.0, 0.0)
    condition.set(False)
    assert (da.item(), db.item()) == (0.0, 6.0)


def test_train_and_eval_choose_between_numbers(g: rg.Graph) -> None:
    y = g.input(np.ones(2)) * rg.switch(g.mode, 1.0, 0.5)
    assert y.value.tolist() == [1.0, 1.0]
    g.eval()
    assert y.value.tolist() == [0.5, 0.5]


def test_a_choice_follows_its_branches_to_other_shapes(g: rg.Graph) -> None:
    x = g.input(np.arange(3.0))
    y = rg.switch(g.input(True), x * 1.0, x + 1.0)
    total = (y * y).sum()
    gradient = rg.grad(total, x)
    assert gradient.value.tolist() == [0.0, 2.0, 4.0]
    x.set(np.ones(4))
    assert y.shape == (4,)
    assert y.value.tolist() == [1.0] * 4
    assert total.item() == 4.0
    assert gradient.value.tolist() == [2.0] * 4
    g.check_invariants()


def test_it_knows_its_shape_as_long_as_both_branches_have_it(g: rg.Graph) -> None:
    condition, x, z = g.input(True), g.input(np.arange(3.0)), g.input(np.arange(3.0))
    y = rg.switch(condition, x * 1.0, z + 1.0)
    y.value
    version = y.value_version
    z.set(np.ones(5))  # of the branch that is not taken
    run = g.forward(y)
    assert not run.ran
    assert y.value.tolist() == [0.0, 1.0, 2.0]
    assert y.value_version == version
    condition.set(False)
    assert y.value.tolist() == [2.0] * 5
    with pytest.raises(rg.ShapeError):
        rg.add(y, x).value  # only running shows it
    z.set(np.zeros(3))
    assert (y.shape, y.dtype) == ((3,), np.float64)
    with pytest.raises(rg.ShapeError):
        y + np.ones(4)
    g.check_invariants()


def test_it_follows_an_edit_of_a_branch_and_its_rollback(g: rg.Graph) -> None:
    branch = g.input(np.arange(3.0)) * 1.0
    y = rg.switch(g.input(False), np.arange(3.0), branch)
    end = y + 1.0
    end.value
    with pytest.raises(ZeroDivisionError), g.transaction():
        branch.replace_parent(0, g.input(np.zeros(2)))
        assert end.value.tolist() == [1.0, 1.0]
        raise ZeroDivisionError
    assert end.value.tolist() == [1.0, 2.0, 3.0]
    branch.replace_parent(0, g.input(np.zeros(2)))
    assert end.value.tolist() == [1.0, 1.0]
    g.check_invariants()


def test_what_does_not_fit_below_refuses_the_shape(g: rg.Graph) -> None:
    x = g.input(np.arange(3.0))
    y = rg.switch(g.input(True), x * 1.0, x + 1.0) + g.input(np.ones(3))
    with pytest.raises(rg.ShapeError):
        x.set(np.ones(2))
    assert y.value.tolist() == [1.0, 2.0, 3.0]


def test_a_branch_cannot_be_removed_and_the_error_says_what_can(g: rg.Graph) -> None:
    x = g.input(1.0)
    branch = x * 2.0
    y = rg.switch(g.input(True), branch, x)
    with pytest.raises(rg.EditError, match="build another one in place of") as caught:
        g.remove(branch)
    assert f"g.remove({y.label}, {branch.label})" in str(caught.value)
    g.remove(y, branch)


values = st.one_of(
    st.integers(-5, 5),
    st.floats(-2, 2),
    st.integers(1, 4).map(lambda n: np.arange(float(n))),
    st.integers(1, 3).map(lambda n: np.arange(n)),
)


@given(
    first=values,
    second=values,
    steps=st.lists(st.tuples(st.sampled_from("fsc"), values), max_size=6),
)
def test_a_choice_is_that_of_a_graph_built_anew(first: Any, second: Any, steps: Any) -> None:
    g = rg.Graph()
    state: dict[str, Any] = {"f": first, "s": second, "c": True}
    leaves = {name: g.input(value) for name, value in state.items()}
    y = rg.switch(leaves["c"], leaves["f"] * 2, leaves["s"] + 1)
    end = y - 1
    for name, value in steps:
        value = bool(np.sum(value) > 1) if name == "c" else value
        try:
            leaves[name].set(value)
        except rg.DTypeError:
            continue  # an array leaf keeps its dtype
        state[name] = value
        wanted = (state["f"] * 2 if state["c"] else state["s"] + 1) - 1
        assert np.array_equal(end.value, wanted)
        assert np.shape(end.value) == np.shape(wanted)
        g.check_invariants()


# --- gradients ---------------------------------------------------------------------------------------


def test_a_set_to_another_shape_passes_under_a_live_gradient(g: rg.Graph) -> None:
    a, b, condition = g.param(np.full(3, 0.5)), g.param(np.full(3, 0.25)), g.input(True)
    y = (rg.switch(condition, rg.tanh(a), 3.0 * b) ** 2).sum()
    da, db = rg.grad(y, [a, b])
    assert (da.shape, db.value.tolist()) == ((3,), [0.0] * 3)
    for length, wanted in ((1, 0.75), (3, 0.75), (4, 0.75)):
        a.set(np.full(length, 0.5))
        condition.set(True)
        slope = 2.0 * np.tanh(0.5) * (1.0 - np.tanh(0.5) ** 2)
        assert np.allclose(da.value, np.full(length, slope), rtol=1e-15)
        assert db.value.tolist() == [0.0] * 3
        condition.set(False)
        assert y.value == 3 * wanted**2
        assert da.value.tolist() == [0.0] * length
        assert db.value.tolist() == [2 * wanted * 3.0] * 3
        g.check_invariants()


def test_branches_of_two_shapes_have_gradients_in_their_own(g: rg.Graph) -> None:
    a, b, condition = g.param(np.ones(3)), g.param(0.5), g.input(True)
    y = (rg.switch(condition, a, b) ** 2).sum()
    y.backward()
    assert (a.grad.tolist(), b.grad) == ([2.0] * 3, 0.0)
    g.zero_grad()
    condition.set(False)
    y.backward()
    assert (a.grad.tolist(), b.grad) == ([0.0] * 3, 1.0)


def test_a_branch_may_be_moved_behind_its_choice(g: rg.Graph) -> None:
    """Nothing orders a choice and a branch that it does not take."""
    a, condition = g.param(np.full(3, 0.5)), g.input(True)
    branch = rg.tanh(a)
    y = (rg.switch(condition, a, branch) ** 2).sum()
    branch.replace_parent(0, rg.exp(rg.sin(a)))
    y.backward()
    assert a.grad.tolist() == [1.0] * 3
    g.zero_grad()
    condition.set(False)
    y.backward()
    x = g.const(np.full(3, 0.5)).value
    inner = np.exp(np.sin(x))
    slope = 2 * np.tanh(inner) * (1 - np.tanh(inner) ** 2) * inner * np.cos(x)
    assert np.allclose(a.grad, slope, rtol=1e-14)


def test_a_pin_of_a_choice_comes_and_goes_under_second_derivatives(g: rg.Graph) -> None:
    a = g.param(np.full((3, 3), 0.5))
    y = rg.switch(g.input(True), a, rg.tanh(a))
    slope = rg.grad((y * y).sum(), a)
    (slope * slope).sum().backward()
    assert np.all(a.grad == 4.0)
    y.pin(np.ones((3, 3)))
    assert np.all(slope.value == 0.0)
    y.unpin()
    assert np.all(slope.value == 1.0)


def test_gradients_that_depend_on_each_other_by_a_branch_are_a_cycle(g: rg.Graph) -> None:
    a = g.param(0.5)
    branch = rg.tanh(a)
    y = rg.switch(g.input(True), a, branch)
    loss = y * y * 1.0
    branch.replace_parent(0, y)  # which is none, as long as the choice does not take it
    assert loss.value == 0.25
    with pytest.raises(rg.CycleError) as caught:
        loss.backward()
    assert {branch, y} == set(caught.value.path)
    branch.replace_parent(0, a)
    loss.backward()
    assert a.grad == 1.0


def test_parts_of_a_choice_between_lengths_are_added_up_in_the_length_taken(g: rg.Graph) -> None:
    a, b, condition = g.param(np.ones(3)), g.param(np.ones(4)), g.input(True)
    y = rg.switch(condition, a, b)
    total = y[0] * 1.0 + y[1:].sum()
    for taken in (True, False, True):
        condition.set(taken)
        g.zero_grad()
        total.backward()
        assert (a.grad.tolist(), b.grad.tolist()) == ([float(taken)] * 3, [float(not taken)] * 4)
    g.check_invariants()


def test_a_branch_that_is_computed_from_its_switch_follows_another_shape() -> None:
    g = rg.Graph()
    above, a, x = g.input(1.0), g.input([1.0, 2.0]), g.input([5.0, 6.0])
    b = rg.relu(x)
    chosen = rg.switch(above > 0.0, a, b)
    b.replace_parent(0, chosen)  # which does not read it as long as `above` is
    for value in ([1.0, 2.0], [1.0, 2.0, 3.0], [4.0], [1.0, 2.0]):
        a.set(value)
        assert chosen.value.tolist() == b.value.tolist() == value
        g.check_invariants()
    above.set(-1.0)
    with pytest.raises(rg.CycleError):
        chosen.value
