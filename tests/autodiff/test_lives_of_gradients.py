"""Gradients through breaking, rollback, edits that open paths, subgraphs and budgets: they follow, and go."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Square(rg.Function):
    """Its rule uses what was saved, and there is no forward rule."""

    @staticmethod
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        return a**2

    @staticmethod
    def infer(a: Any) -> Any:
        return a

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0 * ctx.saved_tensors[0]


class SinCos(rg.Function, outputs=2):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return np.sin(x), np.cos(x)

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        (x,) = ctx.saved_tensors
        return a * rg.cos(x) - b * rg.sin(x)


def without_rule(x: rg.Var) -> rg.Var:
    return rg.lift(lambda a: a + 0.0)(x)


class Back(Exception):
    """What a transaction is taken back with."""


def test_a_program_that_broke_hears_of_edits_to_nodes_in_slots_that_it_knew() -> None:
    g = rg.Graph()
    x = g.param(0.7)
    squared = x * x
    y = without_rule(x) * 3.0
    with pytest.raises(Back), g.transaction():
        t = rg.tanh(x)
        y.replace_parent(0, t)
        d = rg.grad(y, x)
        slot = t._slot
        raise Back
    del t
    made = [rg.exp(x) for _ in range(12)]
    (u,) = [one for one in made if one._slot == slot]
    y.replace_parent(0, u)
    np.testing.assert_allclose(d.value, 3.0 * np.exp(0.7))
    u.replace_parent(0, squared)
    np.testing.assert_allclose(d.value, 3.0 * np.exp(0.49) * 1.4)
    assert rg.grad(y, x) is d


def test_what_is_derived_from_a_gradient_that_raises_raises_too() -> None:
    g = rg.Graph()
    x = g.param(0.3)
    y = without_rule(x) * 3.0
    z = rg.sin(y)
    with pytest.raises(Back), g.transaction():
        y.replace_parent(0, x)
        first = rg.grad(z, x)
        tangent = rg.jvp(z, x, 1.0)
        second = [rg.grad(first, x), rg.hvp(z, x, 1.0), rg.grad(tangent, x), rg.jacobian(first, x)]
        raise Back
    for var in (first, tangent, *second):
        with pytest.raises(rg.GradientError, match="rule"):
            var.value
    y.replace_parent(0, x)
    np.testing.assert_allclose([first.value, tangent.value], 3.0 * np.cos(0.9))
    np.testing.assert_allclose([var.value for var in second], -9.0 * np.sin(0.9))
    g.check_invariants()


def test_a_product_asked_for_before_a_hook_says_so() -> None:
    g = rg.Graph()
    x = g.param([0.3, 0.4])
    u = rg.tanh(x)
    y = (u * u).sum()
    product = rg.hvp(y, x, [1.0, 0.0])
    before = product.value
    hook = u.register_hook(lambda q: q * q)
    for _ in range(2):
        with pytest.raises(rg.GradientError, match=r"a hook was registered on 'u'.*rg\.hvp"):
            product.value
    hooked = rg.hvp(y, x, [1.0, 0.0]).value
    np.testing.assert_allclose(hooked, rg.hessian(y, x).value[:, 0])
    hook.remove()
    np.testing.assert_array_equal(product.value, before)


def test_a_shape_that_was_looked_at_of_a_node_that_is_gone() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0, 3.0])
    unknown = rg.lift(lambda a: a * 2.0, vjp=lambda q, ans, a: q * 2.0)(x)
    part = unknown[0:2]
    y = (part * part).sum()
    y.backward()
    part.replace_parent(0, rg.tanh(x))
    del unknown
    g.zero_grad()
    y.backward()
    t = np.tanh(x.value)
    np.testing.assert_allclose(x.grad, np.where([1, 1, 0], 2.0 * t * (1.0 - t**2), 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["edit", "unpin"])
def test_a_gradient_through_which_others_come_later_goes_with_them(how: str) -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    for _ in range(3):
        a, b = SinCos.apply(x)
        h = rg.tanh(a.detach() if how == "edit" else a)
        if how == "unpin":
            h.pin(np.ones(2))
        y = (h * h).sum()
        d = rg.grad(y, h)
        if how == "edit":
            h.replace_parent(0, a)
        else:
            h.unpin()
        e = rg.grad(y, x)
        t = np.tanh(np.sin(x.value))
        np.testing.assert_allclose(d.value, 2.0 * t)
        np.testing.assert_allclose(e.value, 2.0 * t * (1.0 - t**2) * np.cos(x.value))
        assert rg.grad(y, h) is d
        g.check_invariants()
        del a, b, h, y, d, e
        gc.collect()
        assert len(g.nodes) == 1


# --- subgraphs -----------------------------------------------------------------------------------


def test_a_result_of_a_transaction_that_fails_stays_that_of_its_argument() -> None:
    with rg.Graph() as g:
        x, w = g.param([0.5, 0.6]), g.param([1.0, 2.0])
        net = rg.subgraph(lambda x: rg.tanh(x * w))
        former = net(x * 3.0)
        former.value
        del former
        with pytest.raises(Back), g.transaction():
            result = net(x)
            raise Back
        np.testing.assert_allclose(result.value, np.tanh(x.value * w.value))


GRADIENTS: dict[str, Callable[[rg.Var], rg.Var]] = {
    "jacobian": lambda x: rg.jacobian(x * x * x, x),
    "hessian": lambda x: rg.hessian((x * x * x).sum(), x),
    "jacobian, reverse": lambda x: rg.jacobian(x * x * x, x, mode="reverse"),
    "grad of a function": lambda x: rg.grad(Square.apply(x).sum(), x),
    "hessian of a function": lambda x: rg.hessian(Square.apply(x).sum(), x),
    "grad of grad": lambda x: rg.grad(rg.grad((x * x * x).sum(), x).sum(), x),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_in_a_subgraph_are_built_once(name: str) -> None:
    calls: list[str] = []

    def inside(x: rg.Var) -> rg.Var:
        calls.append(name)
        return GRADIENTS[name](x)

    net = rg.subgraph(inside)
    g = rg.Graph()
    x = g.param([0.3, 0.4])
    sizes = []
    for i in range(6):
        x.set([0.3 + i, 0.4])
        result = net(x if i % 2 else x * 1.0)
        fresh = rg.Graph().param(x.value)
        np.testing.assert_allclose(result.value, GRADIENTS[name](fresh).value)
        del result
        sizes.append((len(g.nodes), len(g._programs.in_order())))
    assert len(calls) == 1
    assert sizes[2:4] == sizes[4:]
    g.check_invariants()


# --- budgets -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
@pytest.mark.parametrize("limit", [0, 40, 100, 1000])
def test_a_value_that_hooks_have_put_away_is_not_computed_again_under_a_budget(limit: int) -> None:
    ran: list[float] = []
    g = rg.Graph(max_bytes=limit)
    a = g.param(np.ones(4))

    def counted(x: Any) -> Any:
        ran.append(float(x[0]))
        return np.tanh(x)

    with rg.saved_tensors_hooks(lambda v: v.copy(), lambda v: v):
        u = rg.lift(counted, vjp=lambda g, ans, x: g * (1.0 - ans * ans), shape=(4,), dtype="f8")(a)
        v = rg.sin(u) * u
    y = v.sum()
    for i in range(3):
        a.set(np.full(4, 1.0 + i))
        y.backward()
        g.check_invariants()
        u.value, v.value
        g.check_invariants()
    assert ran == [1.0, 2.0, 3.0]
    values = 1.0 + np.arange(3.0)
    t = np.tanh(values)
    slopes = (np.sin(t) + t * np.cos(t)) * (1.0 - t * t)
    np.testing.assert_allclose(a.grad, np.full(4, slopes.sum()))


# --- removed outputs, forks, rules that change -----------------------------------------------------


@pytest.mark.parametrize("where", ["fork", "fork of the fork"])
def test_a_gradient_in_a_fork_follows_when_its_output_is_removed(where: str) -> None:
    g = rg.Graph()
    x = g.param(0.3)
    u = rg.tanh(x)
    y = u * 2.0
    d = rg.grad(y, x)
    h = g.fork()
    h.remove(h[y])
    k = h if where == "fork" else h.fork()
    k[u].replace_parent(0, rg.exp(k[x]))
    inner = np.exp(0.3)
    np.testing.assert_allclose(k[d].value, 2.0 * (1.0 - np.tanh(inner) ** 2) * inner)
    k[u].register_hook(lambda q: q * 10.0)
    np.testing.assert_allclose(k[d].value, 20.0 * (1.0 - np.tanh(inner) ** 2) * inner)
    np.testing.assert_allclose(d.value, 2.0 * (1.0 - np.tanh(0.3) ** 2))
    for graph in (g, h, k):
        graph.check_invariants()


ACTS: dict[str, Callable[[rg.Graph, rg.Var, rg.Var], object]] = {
    "edit": lambda g, x, u: u.replace_parent(0, x * 1.0),
    "fork": lambda g, x, u: g.fork(),
    "what-if": lambda g, x, u: g.whatif({x: 1.0}).__enter__(),
    "hook": lambda g, x, u: u.register_hook(lambda q: q),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_follows_the_removal_of_an_output_in_one_transaction(act: str) -> None:
    g = rg.Graph()
    x = g.param(0.3)
    u = rg.tanh(x)
    y = u * 2.0
    d = rg.grad(y, x)
    with g.transaction():
        g.remove(y)
        other = ACTS[act](g, x, u)
    np.testing.assert_allclose(d.value, 2.0 * (1.0 - np.tanh(0.3) ** 2))
    if isinstance(other, rg.Graph):
        t = np.tanh(1.0 if act == "what-if" else 0.3)
        np.testing.assert_allclose(other[d].value, 2.0 * (1.0 - t**2))
    g.check_invariants()


class Branch(rg.Function):
    """Its rule is another one for another sign, and its shape shows when it runs."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.positive = bool(x > 0)
        ctx.save_for_backward(x)
        return x * 3.0 if ctx.positive else x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3.0 if ctx.positive else g * 3.0 * x * x


@pytest.mark.parametrize("retain", [None, True])
def test_gradients_of_all_that_is_between_when_a_rule_inside_changes(retain: bool | None) -> None:
    g = rg.Graph()
    x = g.param(0.5)
    d = rg.grad(Branch.apply(x) * x, x)
    y = d * x
    for value, expected in [(-0.5, -2.0), (0.5, 6.0)] * 2:
        x.set(value)
        g.zero_grad()
        y.backward(retain_graph=retain)
        np.testing.assert_allclose([x.grad, rg.grad(y, x).value], expected)
    g.check_invariants()


# --- outputs that get another shape ---------------------------------------------------------------


def reshaped(a: Any, by: str, y: Any) -> None:
    if by == "set":
        a.set([1.0, 2.0])
    else:
        y.replace_parent(0, a.graph.input([1.0, 2.0]))


@pytest.mark.parametrize("by", ["set", "edit"])
@pytest.mark.parametrize("asked", ["grad", "none", "backward", "second"])
def test_gradients_that_are_gone_keep_no_output_from_another_shape(asked: str, by: str) -> None:
    g = rg.Graph()
    a, x = g.param(1.0), g.param([1.0, 2.0])
    y = a * 2.0
    if asked == "grad":
        assert rg.grad(y, a).value == 2.0
    elif asked == "none":
        assert rg.grad(y, x, allow_unused=True) is None
    elif asked == "backward":
        y.backward()
    else:
        assert rg.grad(rg.grad(y * y, a), a).value == 8.0
    reshaped(a, by, y)
    assert y.value.tolist() == [2.0, 4.0]
    g.check_invariants()
    assert rg.grad(y.sum(), y).value.tolist() == [1.0, 1.0]
    with pytest.raises(rg.ReactgradError, match="single number"):
        rg.grad(y, y)


@pytest.mark.parametrize("forked", [False, True])
@pytest.mark.parametrize("by", ["set", "edit"])
@pytest.mark.parametrize("of", ["leaf", "output"])
@pytest.mark.parametrize("use", [lambda d: d, lambda d: d * 2.0])
def test_gradients_that_are_used_keep_their_output_from_another_shape(
    use: Any, of: str, by: str, forked: bool
) -> None:
    g = rg.Graph()
    a = g.param(1.0)
    y = a * 2.0
    used = use(rg.grad(y, a if of == "leaf" else y))
    if forked:
        g, a, y, used = (fork := g.fork()), fork[a], fork[y], fork[used]
    before = used.value
    with pytest.raises(rg.ShapeError, match="Drop these gradients first") as refused:
        reshaped(a, by, y)
    sent = pickle.loads(pickle.dumps(refused.value))
    assert type(sent) is rg.ShapeError
    assert str(sent) == str(refused.value)
    del refused  # whose traceback holds what was under way
    assert y.value == 2.0
    assert used.value == before
    g.check_invariants()
    a.set(3.0)
    assert used.value == before
    if forked:  # there they live until they are removed
        return
    del used
    reshaped(a, by, y)
    assert y.value.tolist() == [2.0, 4.0]
