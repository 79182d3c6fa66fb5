"""Edits: blocks of them, insertions, removals, what they cost, and what they leave as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.core._handles import tidy
from tests.autodiff.primitives import roll
from tests.laws.full_state import differences, full_state
from tests.laws.random_program import same_bits
from tests.reactive.chains import chain, names

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
    with pytest.raises(rg.EditError, match="no operand 'x' at position 1"):
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


def test_an_attribute_may_have_any_name(g: rg.Graph) -> None:
    @rg.extend.primitive("scaled_by_var", lambda x, var: x)
    def scaled(x: Any, out: Any, var: float) -> None:
        np.multiply(x, var, out=out)

    y = scaled(g.input([1.0, 2.0]), var=2.0)
    assert y.value.tolist() == [2.0, 4.0]
    y.rewire(y.parents[0], var=5.0)
    assert y.value.tolist() == [5.0, 10.0]


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
            rg.EditError, match=f"'{part.label}' is part of a gradient, which follows"
        ):
            edit()
    assert d.value == before
    y.replace_parent(0, new)
    assert d.value == pytest.approx(18.0 * (np.exp(2.0) + 1.0) * np.exp(2.0), rel=1e-14)
    penalty = d * 2.0  # built on a gradient, no part of it
    penalty.replace_parent(1, s)
    assert penalty.value == d.value
