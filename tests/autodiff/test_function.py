"""``rg.Function``: PyTorch's examples and habits, on gradients that stay alive."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.functions import (
    CALLS,
    Exp,
    Linear,
    MulConstant,
    PositivePart,
    SinCos,
)
from tests.io.files import assert_same_graph, there_and_back

A = np.array([0.3, -1.2, 0.7])


@pytest.fixture(autouse=True)
def _fresh_counts() -> None:
    CALLS.clear()


# --- PyTorch's examples --------------------------------------------------------------------------


def test_exp_saves_its_result() -> None:
    g = rg.Graph()
    x = g.input(A)
    y = Exp.apply(x)
    assert not CALLS
    assert y.name == "Exp[0]_3"
    dy = rg.grad(y.sum(), x)
    d2y = rg.grad(dy.sum(), x)
    np.testing.assert_array_equal(dy.value, np.exp(A))
    np.testing.assert_array_equal(d2y.value, np.exp(A))
    x.set(A + 1.0)
    np.testing.assert_array_equal(d2y.value, np.exp(A + 1.0))
    assert CALLS["Exp"] == 2
    backwards = CALLS["Exp.backward"]
    x.set(A)
    np.testing.assert_array_equal(d2y.value, np.exp(A))
    assert CALLS["Exp.backward"] == backwards
    g.check_invariants()


def test_linear_is_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(4, 3)), rng.normal(size=(2, 3)), rng.normal(size=2)
    seed = rng.normal(size=(4, 2))
    theirs = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
    (torch.nn.functional.linear(*theirs) * torch.tensor(seed)).sum().backward()
    g = rg.Graph()
    mine = [g.param(a) for a in (x, w, b)]
    (Linear.apply(*mine) * seed).sum().backward()
    for a, t in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a.grad, t.grad.numpy(), rtol=1e-12)
    without = Linear.apply(mine[0], mine[1])
    np.testing.assert_allclose(without.value, x @ w.T)
    np.testing.assert_allclose(rg.grad((without * seed).sum(), mine[0]).value, seed @ w)
    named = Linear.apply(mine[0], bias=mine[2], weight=mine[1])
    np.testing.assert_allclose(named.value, x @ w.T + b)


def test_gradients_are_built_only_where_needed() -> None:
    g = rg.Graph()
    x, w, b = g.param(np.ones((4, 3))), g.param(np.ones((2, 3))), g.param(np.ones(2))
    asked: list[tuple[bool, ...]] = []

    class Asking(Linear):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            asked.append(ctx.needs_input_grad)
            return Linear.backward(ctx, g)

    loss = Asking.apply(x, w, b).sum()
    d = rg.grad(loss, b)
    np.testing.assert_array_equal(d.value, [4.0, 4.0])
    assert asked == [(False, False, True)]
    w.freeze()
    loss.backward()
    assert asked[-1] == (True, False, False)
    assert w.grad is None
    Asking.apply(x.detach(), w, 1.0).sum()
    loss = Asking.apply(x.detach(), w, b).sum()
    w.unfreeze()
    loss.backward()
    assert asked[-1] == (False, True, True)


def test_argument_that_is_no_tensor_and_a_gradient_of_none() -> None:
    g = rg.Graph()
    x = g.input(A)
    y = MulConstant.apply(x, 5.0)
    np.testing.assert_array_equal(rg.grad(y.sum(), x).value, [5.0, 5.0, 5.0])
    np.testing.assert_array_equal(
        rg.grad(MulConstant.apply(x, constant=2.0).sum(), x).value, [2.0, 2.0, 2.0]
    )
    # The constant cannot change, so nothing has to watch it.
    assert not [v for v in g.nodes if v.name.startswith("as_built")]


def test_several_outputs_and_their_gradients() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

    class Theirs(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.sin(x), torch.cos(x)

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            (x,) = ctx.saved_tensors
            return a * torch.cos(x) - b * torch.sin(x)

    t = torch.tensor(A, requires_grad=True)
    sine, cosine = Theirs.apply(t)
    loss = (sine**2 * cosine).sum()
    (first,) = torch.autograd.grad(loss, t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t)
    x = rg.Graph().input(A)
    a, b = SinCos.apply(x)
    d = rg.grad((a**2 * b).sum(), x)
    np.testing.assert_allclose(d.value, first.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(rg.grad(d.sum(), x).value, second.numpy(), rtol=1e-12)
    assert CALLS["SinCos"] == 1


@pytest.mark.parametrize(
    "f",
    [
        Exp.apply,
        lambda x: MulConstant.apply(x, 3.0) ** 2,
        lambda x: SinCos.apply(x)[0] * SinCos.apply(x * x)[1],
        lambda x: Linear.apply(x, x * x, x[0]),
        lambda x: Exp.apply(Exp.apply(x) * 0.3) * SinCos.apply(x)[1],
    ],
    ids=["Exp", "MulConstant", "SinCos", "Linear", "nested"],
)
def test_functions_to_third_order(f: Callable[[Any], Any]) -> None:
    rg.testing.check_grads(f, [np.linspace(0.2, 1.1, 9).reshape(3, 3)], order=3)


@pytest.mark.skipif(not hasattr(rg, "jvp"), reason="forward mode is not here yet")
def test_forward_rules() -> None:
    x = rg.Graph().input(A)
    t = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(rg.jvp(Exp.apply(x), x, t).value, np.exp(A) * t)
    a, b = SinCos.apply(x)
    moved = rg.jvp(a * b, x, t)
    np.testing.assert_allclose(moved.value, np.cos(2 * A) * t)
    x.set(A + 1.0)
    np.testing.assert_allclose(moved.value, np.cos(2 * (A + 1.0)) * t)


# --- what unused outputs get ---------------------------------------------------------------------


@pytest.mark.parametrize("materialize", [True, False])
def test_unused_outputs_get_zeros_or_none(materialize: bool) -> None:
    seen: list[Any] = []

    class Two(rg.Function, outputs=2):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2.0, np.outer(x, x)

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a, b))
            return a * 2.0

    g = rg.Graph()
    x = g.input(A)
    a, _ = Two.apply(x)
    np.testing.assert_array_equal(rg.grad(a.sum(), x).value, [2.0, 2.0, 2.0])
    ((first, second),) = seen
    np.testing.assert_array_equal(first.value, [1.0, 1.0, 1.0])
    if materialize:
        np.testing.assert_array_equal(second.value, np.zeros((3, 3)))
        x.set([np.inf, np.nan])
        np.testing.assert_array_equal(second.value, np.zeros((2, 2)))
    else:
        assert second is None


# --- what is saved, and what follows -------------------------------------------------------------


def test_saved_tensors_are_the_arguments_and_outputs_themselves() -> None:
    found: list[Any] = []

    class Saving(rg.Function, outputs=2):
        @staticmethod
        def forward(ctx: Any, x: Any, k: float, y: Any) -> Any:
            total, half = x + y, x / 2
            ctx.save_for_backward(y, total, None, half * 2, x)
            return total, half

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            found.append(ctx.saved_tensors)
            return a + b / 2, None, a

    g = rg.Graph()
    x, y = g.input(A), g.input(A)
    total, half = Saving.apply(x, 3.0, y)
    rg.grad((total * half).sum(), x)
    (saved,) = found
    assert saved[0] is y
    assert saved[1] is total
    assert saved[2] is None
    assert saved[4] is x
    other = saved[3]
    np.testing.assert_array_equal(other.value, A)
    x.set(A + 1.0)
    np.testing.assert_array_equal(other.value, A + 1.0)


@pytest.mark.parametrize("value", [A, 2.0, np.float32(2.0)], ids=["array", "float", "scalar"])
def test_two_arguments_with_one_value_are_told_apart(value: Any) -> None:
    """`b` was handed the very object that `a` holds; each must be saved as itself."""
    found: list[Any] = []

    class Right(rg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            found.append(ctx.saved_tensors[0])
            return g * ctx.saved_tensors[0], None

    graph = rg.Graph()
    a = graph.input(value)
    b = rg.lift(lambda v: v)(a)
    d = rg.grad(Right.apply(a, b).sum(), a, allow_unused=True)
    assert found == [b] or found[0] is b
    np.testing.assert_array_equal(np.broadcast_to(value, d.shape), d.value)
    x = graph.input(value)
    d = rg.grad(Right.apply(x, x).sum(), x)
    assert found[-1] is x
    np.testing.assert_array_equal(np.broadcast_to(value, d.shape), d.value)


def test_number_that_becomes_an_integer_is_still_the_argument() -> None:
    """Small integers are one object wherever they come from."""

    class Scaled(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.save_for_backward(x, 1, k)
            return x * k

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, one, k = ctx.saved_tensors
            return g * k * one, g * x

    graph = rg.Graph()
    x, k = graph.input(A), graph.input(2.0)
    y = Scaled.apply(x, k)
    np.testing.assert_array_equal(y.value, A * 2)
    for number in (1, 3, 1, 2.5):
        k.set(number)
        np.testing.assert_array_equal(y.value, A * number)
    np.testing.assert_array_equal(rg.grad(y.sum(), x).value, np.full(3, 2.5))


def test_intermediate_array_follows_but_is_not_differentiated() -> None:
    x = rg.Graph().input(A)
    d = rg.grad(PositivePart.apply(x).sum(), x)
    np.testing.assert_array_equal(d.value, [0.5, 0.0, 0.5])

    class Square(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(2.0 * x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * ctx.saved_tensors[0]

    d = rg.grad(Square.apply(x).sum(), x)
    x.set([1.0, 2.0])
    np.testing.assert_array_equal(d.value, [2.0, 4.0])
    ones = np.ones(2)
    for again in (
        lambda: rg.grad(d.sum(), x),
        lambda: rg.jvp(d, x, ones),
        lambda: rg.jvp(rg.jvp(Square.apply(x), x, ones), x, ones),
        lambda: rg.hvp(Square.apply(x).sum(), x, ones),
        lambda: rg.hessian(Square.apply(x).sum(), x),
        lambda: rg.jacobian(d, x, mode="forward"),
        lambda: rg.jacobian(d, x, mode="reverse"),
    ):
        with pytest.raises(
            rg.GradientError, match="neither an argument nor an output.*one more output"
        ):
            again()


def test_value_on_ctx_that_changes_builds_the_rule_anew() -> None:
    """`ctx.count` is a plain number for the rule; a live gradient follows it all the same."""
    g = rg.Graph()
    x = g.input(A)
    d = rg.grad(PositivePart.apply(x).sum(), x)
    twice = d * 2.0
    np.testing.assert_array_equal(twice.value, [1.0, 0.0, 1.0])
    assert CALLS["PositivePart.backward"] == 1
    x.set([0.1, -5.0, 3.0])  # as many positive ones
    np.testing.assert_array_equal(twice.value, [1.0, 0.0, 1.0])
    assert CALLS["PositivePart.backward"] == 1
    x.set([0.1, 5.0, 3.0])
    np.testing.assert_allclose(twice.value, np.full(3, 2 / 3))
    assert CALLS["PositivePart.backward"] == 2
    gc.collect()
    size = len(g)
    for i in range(20):
        x.set([1.0, -1.0, float(i % 3 - 1)])
        _ = twice.value
    gc.collect()
    assert len(g) <= size
    g.check_invariants()


def test_observer_of_a_gradient_whose_rule_is_built_anew() -> None:
    g = rg.Graph()
    x = g.input(A)
    d = rg.grad(PositivePart.apply(x).sum(), x)
    heard: list[Any] = []
    watch = [d.observe(lambda old, new: heard.append(new)), d.observe(heard.append, "error")]
    g.stabilize()
    x.set([1.0, 1.0, 1.0])
    g.stabilize()
    assert len(heard) == 2
    np.testing.assert_allclose(heard[1], np.full(3, 1 / 3))
    del watch


def test_chain_whose_rules_are_all_built_anew_at_once() -> None:
    x = rg.Graph().input(np.array([1.0, 2.0, -1.0]))
    y = x
    for _ in range(30):
        y = PositivePart.apply(y) * 2.0
    d = rg.grad(y.sum(), x)
    np.testing.assert_array_equal(d.value, [1.0, 1.0, 0.0])
    CALLS.clear()
    x.set(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(d.value, np.full(3, (2 / 3) ** 30))
    assert CALLS["PositivePart.backward"] == 30


class Counted(rg.Function):
    """``k x**2``, where k is the number of positive elements: a plain number for the rules."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.k = float((x > 0).sum())
        ctx.save_for_backward(x)
        return x * x * ctx.k

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2.0 * x * ctx.k

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 2.0 * x * ctx.k


class CountedOfKnownShape(Counted):
    @staticmethod
    def infer(x: Any) -> Any:
        return x


V = np.array([1.0, 10.0, 100.0])


def slope_of(first: Any, x: Any) -> Any:
    return rg.grad((first @ V if first.ndim == 2 else first * V).sum(), x)


# Second derivatives of the sum of y by x: along V each is 2 k V.
SECOND: dict[str, Callable[[Any, Any], Any]] = {
    "hessian": lambda y, x: rg.hessian(y.sum(), x),
    "hvp": lambda y, x: rg.hvp(y.sum(), x, V),
    "grad of grad": lambda y, x: slope_of(rg.grad(y.sum(), x), x),
    "jvp of grad": lambda y, x: rg.jvp(rg.grad(y.sum(), x), x, V),
    "grad of jvp": lambda y, x: slope_of(rg.jvp(y, x, np.ones(3)), x),
    "jvp of jvp": lambda y, x: rg.jvp(rg.jvp(y, x, V), x, np.ones(3)),
    "jacobian of grad, forward": lambda y, x: rg.jacobian(rg.grad(y.sum(), x), x, mode="forward"),
    "jacobian of grad, reverse": lambda y, x: rg.jacobian(rg.grad(y.sum(), x), x, mode="reverse"),
    "grad of jacobian": lambda y, x: slope_of(rg.jacobian(y, x), x),
}


@pytest.mark.parametrize("kind", [Counted, CountedOfKnownShape])
@pytest.mark.parametrize("name", SECOND)
def test_second_derivative_follows_a_value_on_ctx(name: str, kind: type[Counted]) -> None:
    """Nobody reads the first derivative, and the second one alone holds it."""
    g = rg.Graph()
    x = g.param([1.0, -2.0, 3.0])
    y = kind.apply(x)

    def check(var: Any, k: float) -> None:
        value = var.value @ V if var.ndim == 2 else var.value
        np.testing.assert_array_equal(value, 2.0 * k * V)

    second = SECOND[name](y, x)
    check(second, 2.0)
    for value, k in (([1.0, 2.0, 3.0], 3.0), ([-1.0, -2.0, 3.0], 1.0), ([1.0, -1.0, 3.0], 2.0)):
        x.set(value)
        check(second, k)
        check(SECOND[name](y, x), k)
    g.check_invariants()
    held = rg.grad(y.sum(), x)
    x.set([1.0, 2.0, 3.0])
    check(second, 3.0)
    np.testing.assert_array_equal(held.value, [6.0, 12.0, 18.0])
    check(second, 3.0)
    twin = g.fork()
    twin[x].set([-1.0, -2.0, 3.0])
    check(twin[second], 1.0)
    check(second, 3.0)


@pytest.mark.parametrize("kind", [Counted, CountedOfKnownShape])
def test_hessian_of_a_function_of_arrays_follows_a_value_on_ctx(kind: type[Counted]) -> None:
    second = rg.hessian(lambda x: kind.apply(x).sum())
    for value, k in (([1.0, -2.0], 1.0), ([1.0, 2.0], 2.0), ([-1.0, -2.0], 0.0)):
        np.testing.assert_array_equal(second(np.array(value)), np.diag([2.0 * k, 2.0 * k]))


# Derivatives along V, of which each is used and none is held.
USED: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda y, x: rg.grad(y.sum(), x),
    "grad with a gradient": lambda y, x: rg.grad(y, x, gradient=np.ones(3)),
    "vjp": lambda y, x: rg.vjp(y, x, np.ones(3)),
    "jvp": lambda y, x: rg.jvp(y, x, np.ones(3)),
    "jacobian, forward": lambda y, x: rg.jacobian(y, x, mode="forward").sum(1),
    "jacobian, reverse": lambda y, x: rg.jacobian(y, x, mode="reverse").sum(0),
}


@pytest.mark.parametrize("name", USED)
def test_a_derivative_that_is_used_follows_though_nobody_holds_it(name: str) -> None:
    g = rg.Graph()
    x = g.param([1.0, -2.0, 3.0])
    half = x * 0.5
    y = Counted.apply(half)
    twice = USED[name](y, x) * 2.0
    rooted = USED[name](y * 1.0, half) * 0.5  # the derivative for a node in the middle
    del half

    def check(k: float) -> None:
        values = twice.value, rooted.value
        np.testing.assert_array_equal(values, [x.value * k, x.value * 0.5 * k])

    check(2.0)
    x.set([1.0, 2.0, 3.0])
    check(3.0)
    h = g.fork()
    h[x].set([1.0, -2.0, -3.0])
    np.testing.assert_array_equal(h[twice].value, [1.0, -2.0, -3.0])
    check(3.0)
    y.parents[0].parents[0].replace_parent(0, x + 0.0 * x)
    check(3.0)
    x.set([-1.0, -2.0, -3.0])
    check(0.0)
    g.check_invariants()


def test_a_derivative_inside_of_a_subgraph_follows_though_nobody_holds_it() -> None:
    @rg.subgraph
    def slope(x: Any) -> Any:
        return rg.grad(CountedOfKnownShape.apply(x).sum(), x)

    g = rg.Graph()
    x = g.param([1.0, -2.0, 3.0])
    twice = slope(x) * 2.0
    for value, k in (([1.0, -2.0, 3.0], 2.0), ([1.0, 2.0, 3.0], 3.0)):
        x.set(value)
        np.testing.assert_array_equal(twice.value, 4.0 * k * x.value)
    with g:
        for value, k in (([1.0, -2.0], 1.0), ([1.0, 2.0], 2.0)):
            np.testing.assert_array_equal(slope(np.array(value)).value, 2.0 * k * np.array(value))
    g.check_invariants()


class Sine(rg.Function):
    """Its rules cannot know which array was saved before forward has run."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return np.sin(x)

    @staticmethod
    def infer(x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * rg.cos(ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * rg.cos(ctx.saved_tensors[0])


@pytest.mark.parametrize("name", [*SECOND, "third"])
@pytest.mark.parametrize("given", ["a node", "an array", "another subgraph's feed"])
def test_higher_derivatives_inside_of_a_subgraph(name: str, given: str) -> None:
    calls: list[str] = []

    def inside(x: Any) -> Any:
        calls.append(name)
        y = Sine.apply(x)
        if name == "third":
            first = rg.grad(y.sum(), x)
            return rg.grad(rg.grad(first.sum(), x).sum(), x)
        found = SECOND[name](y, x)
        return found @ V if found.ndim == 2 else found

    curve = rg.subgraph(inside)
    outer = rg.subgraph(lambda x: curve(x) * 1.0)
    g = rg.Graph()
    value = np.array([0.5, -1.0, 2.0])
    x = g.param(value)
    for _ in range(3):
        with g:
            argument = value.copy() if given == "an array" else x
            found = outer(argument) if given == "another subgraph's feed" else curve(argument)
        expected = -np.cos(value) if name == "third" else -np.sin(value) * V
        np.testing.assert_allclose(found.value, expected, rtol=1e-12)
        value = value * 0.5
        x.set(value)
        if given != "an array":
            expected = -np.cos(value) if name == "third" else -np.sin(value) * V
            np.testing.assert_allclose(found.value, expected, rtol=1e-12)
    del found
    g.check_invariants()


def test_derivative_of_a_function_of_arrays_that_follows_a_value_on_ctx() -> None:
    second = rg.grad(lambda x: rg.grad(Counted.apply(x).sum(), x).sum())
    for value, k in (([1.0, -2.0], 1.0), ([1.0, 2.0], 2.0)):
        np.testing.assert_array_equal(second(np.array(value)), [2.0 * k, 2.0 * k])


def test_third_derivative_follows_a_value_on_ctx() -> None:
    class Cube(Counted):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.k = float((x > 0).sum())
            ctx.save_for_backward(x)
            return x**3 * ctx.k

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3.0 * x**2 * ctx.k

    x = rg.Graph().param([1.0, -2.0])
    first = rg.grad(Cube.apply(x).sum(), x)
    second = rg.grad(first.sum(), x)
    third = rg.grad(second.sum(), x)
    del first, second
    assert third.value.tolist() == [6.0, 6.0]
    x.set([1.0, 2.0])
    assert third.value.tolist() == [12.0, 12.0]


class SquareIfPositive(rg.Function):
    """Flat at some values, so that its rules say ``None`` or what does not depend on x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.positive = bool((x > 0).all())
        ctx.save_for_backward(x)
        return x * x if ctx.positive else 0.0 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0 * ctx.saved_tensors[0] if ctx.positive else None

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * 2.0 * ctx.saved_tensors[0] if ctx.positive else None


def test_gradient_of_none_for_a_value_on_ctx_is_none_only_as_long_as_that_stays() -> None:
    g = rg.Graph()
    x = g.param([1.0, -2.0])
    y = SquareIfPositive.apply(x)
    d, t = rg.grad(y.sum(), x), rg.jvp(y, x, np.ones(2))
    seconds = [rg.grad(d.sum(), x), rg.grad(t.sum(), x), rg.jvp(d, x, np.ones(2))]
    for value, first, second in (
        ([1.0, -2.0], 0.0, 0.0),
        ([1.0, 2.0], 2.0, 2.0),
        ([-1.0, 0.0], 0, 0),
    ):
        x.set(value)
        for var in seconds:
            assert var.value.tolist() == [second] * 2
        for var in (d, t):
            assert var.value.tolist() == [first * v for v in value]
    g.check_invariants()


class Slope(rg.Function):
    """Its rule multiplies by the gradient of another function, which nobody else holds."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * rg.grad(Counted.apply(x).sum(), x)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * rg.grad(Counted.apply(x).sum(), x)


def test_gradient_inside_a_rule_follows_a_value_on_ctx() -> None:
    g = rg.Graph()
    x = g.param([1.0, -2.0])
    y = Slope.apply(x)
    loss, t = y.sum(), rg.jvp(y, x, np.ones(2))
    d = rg.grad(loss, x)
    second = rg.grad(d.sum(), x)
    sizes = set()
    for _ in range(6):
        for value, k in (([1.0, -2.0], 1.0), ([1.0, 2.0], 2.0)):
            x.set(value)
            x.zero_grad()
            loss.backward()
            for var in (x.grad, d.value, t.value):
                np.testing.assert_array_equal(var, 2.0 * k * x.value)
            np.testing.assert_array_equal(second.value, [2.0 * k, 2.0 * k])
            np.testing.assert_array_equal(g.fork()[d].value, 2.0 * k * x.value)
        gc.collect()
        sizes.add(len(g))
    assert len(sizes) <= 2
    g.check_invariants()


def test_edit_brings_in_a_function_whose_rule_differentiates_another_one() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y = x * 1.0
    loss = y.sum()
    d = rg.grad(loss, x)
    assert d.value.tolist() == [1.0, 1.0]
    loss.replace_parent(0, Slope.apply(x))
    assert d.value.tolist() == [4.0, 8.0]
    x.set([1.0, -2.0])
    assert d.value.tolist() == [2.0, -4.0]
    g.check_invariants()


HOOKS: dict[str, tuple[type[rg.Function], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sine": (Sine, np.sin, np.cos),
    "counted": (
        CountedOfKnownShape,
        lambda q: q * q * (q > 0).sum(),
        lambda q: 2.0 * q * (q > 0).sum(),
    ),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hook_that_builds_a_function_has_a_second_order(name: str) -> None:
    """y = s u(x) with u = x**2, and the hook h at u: the gradient by x is 2 x h(s)."""
    made, h, slope = HOOKS[name]
    g = rg.Graph()
    x, s = g.param([1.0, 2.0]), g.param([0.5, 1.5])
    u = x * x
    u.register_hook(lambda q: made.apply(q) if isinstance(q, rg.Var) else h(q))
    v = u * 1.0
    d = rg.grad((v * s).sum(), x)
    seconds = [rg.grad(d.sum(), s), rg.jvp(d, s, np.ones(2))]

    def check() -> None:
        np.testing.assert_allclose(d.value, 2.0 * x.value * h(s.value))
        for second in (*seconds, rg.grad(d.sum(), s), rg.jvp(d, s, np.ones(2))):
            np.testing.assert_allclose(second.value, 2.0 * x.value * slope(s.value))

    check()
    for value in ([1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]):
        s.set(value)
        check()
    v.replace_parent(0, u + 0.0)  # asks again, in the middle of an edit
    check()
    s.set([0.5, 3.0])
    check()
    g.check_invariants()


def test_gradient_of_a_function_inside_of_a_subgraph() -> None:
    """Its arguments have no values when the rule asks for what was saved."""

    @rg.subgraph
    def slope(x: Any) -> Any:
        return rg.grad(Sine.apply(x).sum(), x)

    g = rg.Graph()
    x = g.param(A)
    d = slope(x)
    np.testing.assert_allclose(d.value, np.cos(A))
    x.set(A + 1.0)
    np.testing.assert_allclose(d.value, np.cos(A + 1.0))
    np.testing.assert_allclose(rg.grad(d.sum(), x).value, -np.sin(A + 1.0))
    other = slope(x * 2.0)
    np.testing.assert_allclose(other.value, np.cos(2.0 * x.value))
    np.testing.assert_allclose(d.value, np.cos(A + 1.0))
    del d, other
    sizes = []
    for i in range(300):
        slope(x * float(i)).value
        sizes.append(len(g))
    assert max(sizes[150:]) <= max(sizes[:150])
    g.check_invariants()

    @rg.subgraph
    def bent(x: Any) -> Any:
        return rg.hessian(Sine.apply(x).sum(), x)

    unset = g.input(shape=(2,))
    with pytest.raises(rg.GradientError, match="once all inputs have values"):
        bent(unset)
    unset.set([0.0, 1.0])
    np.testing.assert_allclose(bent(unset).value, np.diag(-np.sin([0.0, 1.0])))


def test_gradient_of_a_function_of_an_input_that_is_not_set_yet() -> None:
    u = rg.Graph().input(shape=(2,))
    y = Sine.apply(u).sum()
    d = rg.grad(y, u)
    assert rg.grad(y, u) is d
    with pytest.raises(rg.UnsetError):
        d.value
    u.set([0.0, 1.0])
    np.testing.assert_allclose(d.value, np.cos([0.0, 1.0]))


def test_value_on_ctx_that_changes_during_backward() -> None:
    g = rg.Graph()
    w = g.param(A)
    loss = PositivePart.apply(w).sum()
    loss.backward()
    w.zero_grad()
    w.set([1.0, 2.0, 3.0])
    loss.backward()
    np.testing.assert_allclose(w.grad, np.full(3, 1 / 3))
    h = g.fork()
    h[w].set([1.0, -2.0, -3.0])
    h[loss].backward()
    np.testing.assert_allclose(h[w].grad, [1.0, 0.0, 0.0])


def test_any_name_on_ctx_is_the_users() -> None:
    names = [
        "take",
        "saved",
        "finish",
        "materialize",
        "note",
        "op",
        "node",
        "_saved",
        "_op",
        "form",
    ]

    class Naming(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            for i, name in enumerate(names):
                setattr(ctx, name, i + 1)
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert [getattr(ctx, name) for name in names] == list(range(1, len(names) + 1))
            assert not hasattr(ctx, "other")
            return g * 2.0 * ctx.saved_tensors[0]

    x = rg.Graph().input(A)
    np.testing.assert_array_equal(rg.grad(Naming.apply(x).sum(), x).value, 2 * A)


def test_array_on_ctx_would_not_follow() -> None:
    class Keeping(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = x
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0 * ctx.x

    x = rg.Graph().input(A)
    y = Keeping.apply(x)
    np.testing.assert_array_equal(y.value, A * A)
    with pytest.raises(rg.GradientError, match=r"ctx\.x is an array.*ctx\.save_for_backward"):
        rg.grad(y.sum(), x)


def test_what_is_saved_is_the_same_at_every_run() -> None:
    class Fickle(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x if x[0] > 0 else x + 1.0)
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = rg.Graph().input(A)
    y = Fickle.apply(x)
    assert y.value[0] == 0.3
    x.set(-A)
    with pytest.raises(rg.GradientError, match=r"\(saved\).*first run \(argument 0\)"):
        y.value
    x.set(A)
    assert y.value[0] == 0.3


def test_forward_gets_read_only_arrays_and_the_rest_as_it_is() -> None:
    given: list[Any] = []

    class Looking(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, word: str, *rest: Any, scale: float = 1.0) -> Any:
            given.append((word, rest, scale, ctx.needs_input_grad))
            x[0] = 5.0
            return x

    x = rg.Graph().input(A)
    y = Looking.apply(x, "w", [1, 2], x, scale=x.sum())
    with pytest.raises(ValueError, match="read-only"):
        y.value
    word, rest, scale, needs = given[0]
    assert (word, rest[0]) == ("w", [1, 2])
    np.testing.assert_array_equal(rest[1], A)
    assert scale == A.sum()
    assert needs == (True, False, False, True, True)


def test_change_runs_forward_once_and_an_unrelated_one_nothing(g: rg.Graph) -> None:
    x, k = g.input(A), g.input(2.0)
    y = Exp.apply(x)
    loss = (y * k).sum()
    d = rg.grad(loss, x)
    _ = loss.value, d.value
    CALLS.clear()
    k.set(3.0)
    _ = loss.value, d.value
    assert not CALLS
    x.set(A * 2)
    np.testing.assert_array_equal(d.value, 3.0 * np.exp(A * 2))
    _ = loss.value
    assert CALLS == {"Exp": 1}
    g.check_invariants()


@pytest.mark.slow
def test_thousand_steps_grow_nothing() -> None:
    g = rg.Graph()
    w = g.param(A)
    loss = (Exp.apply(w) * SinCos.apply(w)[0]).sum()
    sizes = set()
    for i in range(1000):
        w.set(A + i * 1e-4)
        w.zero_grad()
        loss.backward()
        if i in (3, 400, 999):
            gc.collect()
            sizes.add(len(g))
    assert len(sizes) == 1
    np.testing.assert_allclose(w.grad, np.exp(w.value) * (np.sin(w.value) + np.cos(w.value)))
    assert (CALLS["Exp.backward"], CALLS["SinCos.backward"]) == (1, 1)
    before = len(g)
    for _ in range(20):
        Exp.apply(w).sum().backward()
    gc.collect()
    assert len(g) == before


# --- shapes that are known before forward runs ---------------------------------------------------


class Affine(rg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, *, scale: float = 1.0) -> Any:
        ctx.save_for_backward(x, w)
        ctx.scale = scale
        return scale * (x @ w)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        g = ctx.scale * g
        return g @ w.T, x.T @ g if ctx.needs_input_grad[1] else None, None

    @staticmethod
    def infer(x: Any, w: Any, *, scale: float = 1.0) -> Any:
        return (*x.shape[:-1], w.shape[1]), x.dtype


class Halves(rg.Function, outputs=2):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 0.5, x > 0.0

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        return g * 0.5

    @staticmethod
    def infer(x: Any) -> Any:
        return x, (x.shape, bool)


def test_shapes_are_inferred_without_a_run_and_follow(g: rg.Graph) -> None:
    x, w = g.input(np.ones((2, 3))), g.param(np.ones((3, 4)))
    y = Affine.apply(x, w, scale=2.0)
    half, positive = Halves.apply(y)
    assert (y.shape, y.dtype, half.shape, positive.dtype) == ((2, 4), float, (2, 4), bool)
    assert y.value_version == 0, "nothing ran"
    with pytest.raises(rg.ShapeError):
        y + np.ones(3)
    total = half.sum()
    dw = rg.grad(total, w)
    assert np.array_equal(dw.value, np.full((3, 4), 2.0))
    x.set(np.ones((5, 3)))
    assert (y.shape, half.shape) == ((5, 4), (5, 4))
    assert positive.value.shape == (5, 4)
    assert np.array_equal(dw.value, np.full((3, 4), 5.0))
    wide = half * np.ones((5, 1))
    with pytest.raises(rg.ShapeError) as refused:
        x.set(np.ones((7, 3)))
    assert "Nothing was changed" in refused.value.__notes__[0]
    assert x.shape == (*half.shape[:1], 3) == (5, 3)
    assert np.array_equal(wide.value, np.full((5, 4), 3.0))
    unknown = rg.Graph().input(shape=(None, 3), dtype="f4")
    later = Affine.apply(unknown, unknown.graph.const(np.ones((3, 4), "f4")))
    assert later.shape == (None, 4)
    unknown.set(np.ones((6, 3)))
    assert later.value.shape == later.shape == (6, 4)
    number = Halves.apply(rg.Graph().input(3.0))[0]
    assert (number.shape, number.value) == ((), 1.5)
    g.check_invariants()


def test_edits_and_forks_keep_what_is_inferred(g: rg.Graph) -> None:
    x, w, other = g.input(np.ones((2, 3))), g.param(np.ones((3, 4))), g.input(np.ones((3, 7)))
    y = Affine.apply(x, w)
    y.parents[0].replace_parent(1, other)
    assert y.shape == (2, 7)
    twin = g.fork()[y]
    assert twin.shape == twin.value.shape == (2, 7)
    z = y * np.ones(7)
    with pytest.raises(rg.ShapeError):
        y.parents[0].replace_parent(1, w)
    del z
    assert y.shape == y.value.shape == (2, 7)


def test_loaded_graph_goes_on_to_infer(g: rg.Graph) -> None:
    x, w = g.input(np.ones((2, 3)), name="x"), g.param(np.ones((3, 4)))
    half = Halves.apply(Affine.apply(x, w, scale=2.0))[0]
    half.name = "half"
    half.value
    loaded = there_and_back(g)
    assert not loaded["half"].is_stale
    loaded["x"].set(np.ones((5, 3)))
    assert loaded["half"].shape == loaded["half"].value.shape == (5, 4)


def test_transform_of_a_function_that_asks_for_inferred_shapes_builds_it_once() -> None:
    calls = 0

    def f(x: Any) -> Any:
        nonlocal calls
        calls += 1
        half = Halves.apply(x)[0]
        return (half * half).sum() * half.shape[0]

    slope = rg.grad(f)
    for value in (1.0, 2.0, 3.0):
        assert np.array_equal(slope([value, 0.0]), [value, 0.0])
    assert calls == 1
    counted = calls

    def g(x: Any) -> Any:
        nonlocal counted
        counted += 1
        return (Affine.apply(x, np.eye(2)) * 1.0).sum()

    slope = rg.grad(g)
    for value in (1.0, 2.0):
        assert np.array_equal(slope(np.full((2, 2), value)), np.ones((2, 2)))
    assert counted == 2


def test_transform_follows_what_a_rule_has_read_of_forward() -> None:
    class Signed(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.sign = 1.0 if np.sum(x) > 0 else -1.0
            return ctx.sign * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0 * ctx.sign

        @staticmethod
        def infer(x: Any) -> Any:
            return x

    calls = 0

    def f(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return Signed.apply(x).sum()

    slope = rg.grad(f)
    for value in (1.0, 3.0, -1.0, -2.0, 4.0):
        assert slope(np.array([value]))[0] == (2.0 if value > 0 else -2.0)
    assert calls == 1


LEFT: dict[str, tuple[Any, Any]] = {
    "of NumPy": (lambda n: n, lambda n: n),
    "of Python": (float, lambda n: n),
    "in a tuple": (lambda n: (n, 1), lambda n: n[0]),
    "in a dict": (lambda n: {"n": n}, lambda n: n["n"]),
}


@pytest.mark.parametrize("how", LEFT)
def test_second_order_of_a_number_computed_on_ctx_is_refused(g: rg.Graph, how: str) -> None:
    leave, take = LEFT[how]

    class Norm(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            norm = np.linalg.norm(x)
            ctx.norm = leave(norm)
            return norm.copy()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0] / take(ctx.norm)

    x, w = g.input([3.0, 4.0]), g.param(2.0)
    y = Norm.apply(x)
    dx = rg.grad(y * w * w, x)
    assert np.allclose(dx.value, [2.4, 3.2])
    x.set([6.0, 8.0])
    w.set(1.0)
    assert np.allclose(dx.value, [0.6, 0.8])
    assert np.allclose(rg.jacobian(dx, w).value, [1.2, 1.6])  # does not pass the rule's operands
    ones = np.ones(2)
    for second in (rg.grad(dx.sum(), x), rg.hessian(y, x), rg.jvp(rg.grad(y, x), x, ones)):
        with pytest.raises(
            rg.GradientError, match="ctx.norm, which forward computes of argument 1"
        ):
            second.value
    with pytest.raises(rg.GradientError, match="ctx.norm, which forward computes"):
        rg.hessian(Norm.apply)(np.array([3.0, 4.0]))


def test_second_order_past_what_does_not_follow_from_an_operand(g: rg.Graph) -> None:
    """Constants, signs and counts; and what another operand decides."""
    ran = []

    class Scaled(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ran.append(x)
            ctx.save_for_backward(x, w)
            ctx.sign, ctx.half, ctx.most = float(np.sign(x.sum())), np.sqrt(0.25), np.abs(x).max()
            return (x * x).sum() * ctx.sign * w * w * ctx.half * ctx.most

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            part = g * ctx.sign * ctx.half
            if not ctx.needs_input_grad[1]:
                return part * 2.0 * x * w * w, None
            return part * 2.0 * x * w * w, part * (x * x).sum() * 2.0 * w * ctx.most

    x, w = g.input([1.0, 2.0]), g.param(3.0)
    y = Scaled.apply(x, w)
    second = rg.hessian(y, w)
    assert second.value == 5.0 * 2.0 * 0.5 * 2.0
    x.set([-1.0, -2.0])
    assert second.value == -5.0 * 2.0 * 0.5 * 2.0
    first = rg.grad(y, x)  # which reads the sign and a constant alone
    assert np.array_equal(rg.jacobian(first, x).value, -9.0 * np.eye(2))
    crossed = rg.grad(rg.grad(y, w), x)
    with pytest.raises(rg.GradientError, match="ctx.most, which forward computes of argument 1"):
        crossed.value
    x.set([-1.0, 0.0])  # where np.sign would jump, were it of an element
    assert second.value == -1.0 * 2.0 * 0.5 * 1.0
    x.set([-1.0, -2.0])
    assert second.value == -10.0
    count = len(ran)
    assert second.value == -10.0
    assert len(ran) == count, "nothing has changed"


def test_second_order_at_a_jump_of_what_forward_counts(g: rg.Graph) -> None:
    """At zero a count of positive elements is another one a little above, and not a little below."""

    x = g.input([0.0, 1.0, -1.0, 2.0])
    assert np.array_equal(rg.hessian(Counted.apply(x).sum(), x).value, 4.0 * np.eye(4))


def test_subgraph_asks_for_inferred_shapes_and_says_where_there_are_none(g: rg.Graph) -> None:
    @rg.subgraph
    def known(x: Any) -> Any:
        half = Halves.apply(x)[0]
        return half * half.shape[0]

    @rg.subgraph
    def unknown(x: Any) -> Any:
        return x * Doubling.apply(x).shape[0]

    x = g.input([2.0, 4.0])
    assert np.array_equal(known(x).value, [2.0, 4.0])
    with pytest.raises(
        rg.UnsetError, match=r"the shape of a node that only its value shows.*infer"
    ):
        unknown(x)


class Doubling(rg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (lambda x: None, r"Wrong.infer, of \(float64\[2\]\): TypeError"),
        (lambda x, y: x, r"Wrong.infer, of \(float64\[2\]\): TypeError: .*'y'"),
        (lambda x: ((2,), "no dtype"), "It returns a spec"),
    ],
)
def test_wrong_infer_is_refused_where_it_is_asked(g: rg.Graph, says: Any, words: str) -> None:
    class Wrong(Doubling):
        infer = staticmethod(says)

    x = g.input([1.0, 2.0])
    with pytest.raises(rg.ShapeError, match=words):
        Wrong.apply(x)


def test_infer_gets_specs_of_arrays_and_floats_too(g: rg.Graph) -> None:
    class Product(rg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, times: int = 1) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def infer(a: Any, b: Any, times: int = 1) -> Any:
            assert type(times) is int
            return a if a.shape else b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None, g * ctx.saved_tensors[0]

    x = g.param(np.ones(3))
    for first, wanted in (
        (np.arange(3.0), [0.0, 1.0, 2.0]),
        (2.0, [2.0] * 3),
        (np.float32(2), [2] * 3),
    ):
        y = Product.apply(first, x, times=2)
        assert y.shape == (3,)
        assert rg.grad(y.sum(), x).value.tolist() == wanted
    with g:
        assert Product.apply(np.ones(2), 3.0).shape == (2,)


def test_broken_promise_is_found_when_it_runs(g: rg.Graph) -> None:
    class Wrong(Doubling):
        @staticmethod
        def infer(x: Any) -> Any:
            return (3,), x.dtype

    y = Wrong.apply(g.input([1.0, 2.0]))
    with pytest.raises(rg.ShapeError, match=r"declared to return float64\[3\].*or infer, out"):
        y.value


# --- errors that teach ---------------------------------------------------------------------------


def function(rule: Any, **more: Any) -> type[rg.Function]:
    """A function of two arguments with this rule."""

    class F(rg.Function, **more):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any) -> Any:
            ctx.n = 1
            return x * 2.0

        backward = staticmethod(rule)

    return F


def asked(rule: Any, second: Any = 3.0) -> Any:
    x = rg.Graph().input(A, name="x")
    return rg.grad(function(rule).apply(x, second).sum(), x).value


FORWARD = {"forward": staticmethod(lambda ctx, x: x)}

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too few gradients": (
        lambda: asked(lambda ctx, g: ()),
        RuntimeError,
        r"F\.backward returned 0 gradients for 2 arguments",
    ),
    "too many gradients": (
        lambda: asked(lambda ctx, g: (g, None, g)),
        RuntimeError,
        r"gradient for argument 3, and there is no such argument",
    ),
    "gradient of a number": (
        lambda: asked(lambda ctx, g: (g, g)),
        RuntimeError,
        r"gradient for argument 2, and that argument is no Var.*None",
    ),
    "wrong shape": (
        lambda: asked(lambda ctx, g: np.ones((2, 2))),
        ValueError,
        r"the backward of node 'F_\d+' for operand 1 \('x'\).*shape \(2, 2\).*\(3,\)",
    ),
    "wrong shape, known when it runs": (
        lambda: asked(lambda ctx, g: g.sum()),
        ValueError,
        r"the backward of node 'F_\d+' for operand 1 \('x'\).*shape \(\).*\(3,\)",
    ),
    "integers": (
        lambda: asked(lambda ctx, g: np.ones(3, int)),
        TypeError,
        r"int64; gradients are floats",
    ),
    "integers, known when it runs": (
        lambda: asked(lambda ctx, g: g > 0),
        TypeError,
        r"bool; gradients are floats",
    ),
    "another graph": (
        lambda: asked(lambda ctx, g: rg.Graph().input(A)),
        ValueError,
        r"returned a Var of another graph",
    ),
    "attribute that is not there": (
        lambda: asked(lambda ctx, g: g * ctx.m),
        AttributeError,
        r"no 'm': forward has set n on ctx",
    ),
    "saved_variables": (
        lambda: asked(lambda ctx, g: ctx.saved_variables),
        AttributeError,
        r"ctx\.saved_tensors",
    ),
    "no backward": (
        lambda: (lambda x: rg.grad(type("N", (rg.Function,), FORWARD).apply(x), x))(
            rg.Graph().input(0.5)
        ),
        RuntimeError,
        r"no derivative rule.*def backward\(ctx",
    ),
    "no forward": (
        lambda: type("N", (rg.Function,), {}).apply(rg.Graph().input(0.5)),
        TypeError,
        r"N computes nothing: write def forward\(ctx",
    ),
    "an instance": (lambda: Exp(), TypeError, r"Exp\.apply\(x, \.\.\.\)"),
    "wrong arguments": (
        lambda: Exp.apply(rg.Graph().input(1.0), 2, 3),
        TypeError,
        r"Exp\.apply: too many positional arguments.*forward\(ctx.*x",
    ),
    "wrong keyword": (
        lambda: MulConstant.apply(rg.Graph().input(1.0), konstant=2.0),
        TypeError,
        r"MulConstant\.apply: .*constant",
    ),
    "a list of Vars": (
        lambda: Exp.apply([rg.Graph().input(1.0)]),
        TypeError,
        r"would not run again",
    ),
    "no number of outputs": (
        lambda: type("N", (rg.Function,), {}, outputs=0),
        TypeError,
        r"outputs=0.*at least 1",
    ),
    "setup_context": (
        lambda: type("N", (rg.Function,), {"setup_context": staticmethod(lambda *a: None)}),
        TypeError,
        r"forward takes ctx itself",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_are_explained(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


def test_missing_gradients_behind_the_last_var_may_be_left_out() -> None:
    np.testing.assert_array_equal(asked(lambda ctx, g: g * 2.0), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(asked(lambda ctx, g: (g * 2.0,)), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(asked(lambda ctx, g: [g * 2.0, None, None]), [2.0, 2.0, 2.0])
    k = rg.Graph()
    x, y = k.input(A), k.input(1.0)
    with pytest.raises(rg.GradientError, match="returned 1 gradients for 2"):
        rg.grad(function(lambda ctx, g: g).apply(x, y).sum(), x)


@pytest.mark.parametrize("outputs", [None, 2, 3])
def test_number_of_outputs_is_declared(outputs: int | None) -> None:
    class Two(rg.Function, **({} if outputs is None else {"outputs": outputs})):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, x

    y = Two.apply(rg.Graph().input(A))
    if outputs == 2:
        assert [one.shape for one in y] == [(3,), (3,)]
        return
    with pytest.raises(rg.ShapeError, match=r"outputs=2|outputs=3 and returned 2"):
        (y if outputs is None else y[0]).value


@pytest.mark.parametrize("what", ["mark_dirty", "mark_non_differentiable", "save_for_forward"])
def test_what_pytorch_has_and_we_do_not(what: str) -> None:
    class F(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, what)(x)
            return x

    with pytest.raises(AttributeError, match=f"no '{what}': .*[.]"):
        F.apply(rg.Graph().input(A)).value


def test_only_arrays_and_numbers_are_saved() -> None:
    class F(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward([x])
            return x

    with pytest.raises(rg.DTypeError, match="save_for_backward was given list.*ctx.name = value"):
        F.apply(rg.Graph().input(A)).value


def test_gradient_in_the_operands_dtype() -> None:
    g = rg.Graph()
    w = g.param(A.astype("f4"))
    Exp.apply(w.astype("f8")).sum().backward()
    assert w.grad.dtype == np.float32
    y = rg.lift(lambda a: a * 2, vjp=lambda up, ans, a: np.full(3, 0.5))(w)
    assert rg.grad(y.sum(), w).dtype == np.float32


def test_gradient_on_another_device() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")
    x = rg.Graph().input(xp.asarray(A))
    y = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: np.ones(3))(x)
    with pytest.raises(rg.DeviceError, match=r"gradient on cpu.*operand's device, strict.*Vars"):
        rg.grad(y.sum(), x)
    host = rg.Graph().input(A)
    fine = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: 2.0 * a * 0.0 + 2.0)(host)
    np.testing.assert_array_equal(rg.grad(fine.sum(), host).value, [2.0, 2.0, 2.0])


def test_function_on_another_device() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")

    class Cube(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3.0 * x * x

    x = rg.Graph().input(xp.asarray(A))
    d = rg.grad(Cube.apply(x).sum(), x)
    np.testing.assert_allclose(d.numpy(), 3 * A * A)

    class Product(rg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, g * a

    same = rg.lift(lambda v: v, vjp=lambda g, ans, v: g)(x)  # the very array that x holds
    d = rg.grad(Product.apply(x, same).sum(), x)
    x.set(xp.asarray(A + 1.0))
    np.testing.assert_allclose(d.numpy(), 2 * (A + 1.0))
    x.set(xp.asarray(A))
    parts = rg.split(x, [1])
    np.testing.assert_array_equal(parts[1].numpy(), A[1:])
    np.testing.assert_array_equal(rg.grad(parts[1].sum(), x).numpy(), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(rg.unbind(x)[2].numpy(), A[2])


# --- backward inside of backward -----------------------------------------------------------------


def test_rule_that_asks_for_another_gradient() -> None:
    """The gradient of exp(x**2) with a rule that differentiates a function of its own."""
    g = rg.Graph()
    x = g.input(0.5)

    def rule(up: Any, ans: Any, a: Any) -> Any:
        inner = a * a
        return up * ans * rg.grad(inner, a)

    y = rg.lift(lambda a: np.exp(a * a), vjp=rule)(x)
    d = rg.grad(y, x)
    np.testing.assert_allclose(d.value, 2 * 0.5 * np.exp(0.25))
    np.testing.assert_allclose(rg.grad(d, x).value, (2 + 4 * 0.25) * np.exp(0.25))
    x.set(1.0)
    np.testing.assert_allclose(d.value, 2 * np.e)
    g.check_invariants()


def test_rule_that_calls_backward_of_another_loss() -> None:
    g = rg.Graph()
    w, v = g.param(2.0), g.param(3.0)
    other = v * v

    class Nosy(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 5.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            other.backward()
            return g * 5.0

    loss = Nosy.apply(w) * v
    loss.backward()
    assert w.grad == 15.0
    assert v.grad == 10.0 + 6.0
    g.check_invariants()


def test_rule_that_asks_for_its_own_gradient_is_refused() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    losses: list[Any] = []

    class Circular(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 5.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * rg.grad(losses[0], w)

    losses.append(Circular.apply(w) * 2.0)
    for _ in range(2):
        with pytest.raises(rg.GradientError, match="would never end"):
            rg.grad(losses[0], w)
    assert w.grad is None
    assert rg.grad(w * 3.0, w).value == 3.0
    g.check_invariants()


@pytest.mark.parametrize(
    "read",
    [lambda a: a.value, float, bool, np.asarray, lambda a: a.item(), lambda a: a.detach().value],
    ids=["value", "float", "bool", "asarray", "item", "detached"],
)
def test_rule_that_reads_values_is_refused(read: Callable[[Any], Any]) -> None:
    """It would go on with what it has read once."""
    g = rg.Graph()
    x = g.input(3.0)
    y = rg.lift(lambda a: a * a, vjp=lambda up, ans, a: up * 2.0 * read(a))(x)
    assert y.value == 9.0
    for _ in range(2):
        with pytest.raises(rg.GradientError, match=r"read the value of 'input_1'.*rg\.where"):
            rg.grad(y, x)
    assert (x.value, y.value) == (3.0, 9.0)
    g.check_invariants()


def test_rule_may_read_constants_and_shapes() -> None:
    g = rg.Graph()
    x, c = g.input([3.0, 4.0]), g.const(2.0)
    y = rg.lift(lambda a: a * 2.0, vjp=lambda up, ans, a: up * float(c) * (a.shape == (2,)))(x)
    np.testing.assert_array_equal(rg.grad(y.sum(), x).value, [2.0, 2.0])


def test_running_function_that_calls_backward_is_refused() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    loss = w * w

    def f(a: Any) -> Any:
        loss.backward()
        return a

    y = rg.lift(f)(w)
    with pytest.raises(rg.BusyError, match="tried to change its own graph"):
        y.value
    assert w.grad is None
    loss.backward()
    assert w.grad == 4.0
    g.check_invariants()


def test_running_function_may_use_gradients_of_its_graph_and_backward_of_another() -> None:
    g, h = rg.Graph(), rg.Graph()
    w, v = g.param(2.0), h.param(3.0)
    loss, other = w * w * w, v * v

    def f(a: Any) -> Any:
        v.zero_grad()
        other.backward()
        return a + rg.grad(loss, w).value + v.grad

    y = rg.lift(f)(w)
    assert y.value == 2.0 + 12.0 + 6.0
    w.set(1.0)
    assert y.value == 1.0 + 3.0 + 6.0
    g.check_invariants()
    h.check_invariants()


# --- the rest of the engine ----------------------------------------------------------------------


def test_saved_graph_finds_its_functions_by_name() -> None:
    g = rg.Graph()
    x = g.input(A, name="x")
    y = Exp.apply(x)
    a, b = SinCos.apply(MulConstant.apply(y, constant=0.5))
    total = (a * b).sum()
    total.name = "total"
    d = rg.grad(total, x)
    d.name = "slope"
    _ = total.value, d.value
    expected = float(total), d.numpy()
    h = there_and_back(g)
    assert_same_graph(g, h)
    CALLS.clear()
    assert h["total"].value == expected[0]
    np.testing.assert_array_equal(h["slope"].value, expected[1])
    assert not CALLS
    h["x"].set(A * 2)
    x.set(A * 2)
    np.testing.assert_array_equal(h["slope"].value, d.value)
    np.testing.assert_array_equal(rg.grad(h["total"], h["x"]).value, d.value)


def test_gradient_that_reads_ctx_is_saved_too() -> None:
    g = rg.Graph()
    x = g.input(A, name="x")
    d = rg.grad(PositivePart.apply(x).sum(), x)
    d.name = "slope"
    _ = d.value
    h = there_and_back(g)
    x.set(A * 3)
    h["x"].set(A * 3)
    np.testing.assert_array_equal(h["slope"].value, d.value)
    with pytest.raises(rg.GradientError, match=r"ctx\.count.*save_for_backward"):
        h["x"].set(np.ones(3))
        h["slope"].value  # no program is left in a file that could build it anew


def test_local_class_is_not_saved() -> None:
    F = function(lambda ctx, g: g)
    g = rg.Graph()
    y = F.apply(g.input(A), 1.0)
    y.name = "y"
    with pytest.raises(rg.SaveError, match="defined inside of another function"):
        there_and_back(g)


def test_fork_pin_and_edit() -> None:
    g = rg.Graph()
    x, z = g.input(A), g.input(np.zeros(3))
    y = Exp.apply(x)
    loss = (y * y).sum()
    d = rg.grad(loss, x)
    np.testing.assert_allclose(d.value, 2 * np.exp(2 * A))
    h = g.fork()
    h[x].set(np.zeros(3))
    np.testing.assert_array_equal(h[d].value, [2.0, 2.0, 2.0])
    np.testing.assert_allclose(d.value, 2 * np.exp(2 * A))
    y.pin(np.ones(3))
    assert loss.value == 3.0
    np.testing.assert_array_equal(d.value, np.zeros(3))
    y.unpin()
    np.testing.assert_allclose(d.value, 2 * np.exp(2 * A))
    y.parents[0].replace_parent(0, z)
    np.testing.assert_array_equal(d.value, np.zeros(3))
    np.testing.assert_array_equal(rg.grad(loss, z).value, [2.0, 2.0, 2.0])
    for one in (g, h):
        one.check_invariants()


def test_new_shape_of_an_argument() -> None:
    g = rg.Graph()
    x = g.input(A)
    d = rg.grad(Exp.apply(x * 1.0).sum(), x)
    np.testing.assert_allclose(d.value, np.exp(A))
    x.set(np.zeros((2, 2)))
    np.testing.assert_array_equal(d.value, np.ones((2, 2)))
    g.check_invariants()


def test_no_vars_at_all_inside_a_graph() -> None:
    with rg.Graph() as g:
        y = Exp.apply(A)
    assert y.graph is g
    np.testing.assert_array_equal(y.value, np.exp(A))


class Signed(rg.Function):
    """The absolute value, by a number that the rule reads."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        CALLS["Signed"] += 1
        if np.isnan(x):
            raise ZeroDivisionError("no number")
        ctx.sign = 1.0 if x > 0 else -1.0
        return x * ctx.sign

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        CALLS["Signed.backward"] += 1
        return g * ctx.sign


def new_in_the_way(start: float = -2.0) -> tuple[rg.Graph, rg.Var, rg.Var, rg.Var, rg.Var]:
    """A live gradient into whose way an edit brings functions that have never run."""
    g = rg.Graph()
    x = g.param(start)
    kept = x * 3.0
    loss = kept * x
    d, by_kept = rg.grad(loss, (x, kept))
    np.testing.assert_equal(d.value, 6.0 * start)
    CALLS.clear()
    loss.replace_parent(1, Signed.apply(SinCos.apply(x)[0]))
    assert not CALLS["Signed"] | CALLS["SinCos"]  # an edit computes nothing
    return g, x, loss, d, by_kept


def slope(x: Any) -> Any:
    """The derivative of ``3 x |sin x|``."""
    return 3.0 * abs(np.sin(x)) + 3.0 * x * np.cos(x) * np.sign(np.sin(x))


def test_edit_brings_in_a_function_that_has_never_run() -> None:
    """Its rule cannot know what forward will leave; it is asked when the gradient is read."""
    g, x, loss, d, by_kept = new_in_the_way()
    np.testing.assert_allclose(d.value, slope(-2.0))
    # SinCos leaves nothing but arrays, but of which kind shows when it runs.
    assert CALLS["Signed"] == CALLS["SinCos"] == 1
    assert rg.grad(loss, x) is d
    np.testing.assert_allclose(by_kept.value, np.sin(2.0))
    assert not g.forward(d, by_kept).ran
    x.set(2.0)
    np.testing.assert_allclose(d.value, slope(2.0))
    g.check_invariants()


def test_gradients_asked_for_before_a_new_function_has_run() -> None:
    g, x, loss, d, _ = new_in_the_way()
    second = rg.grad(d, x)  # of a gradient whose rules still wait
    np.testing.assert_allclose(second.value, 3 * (2 * np.cos(2.0) - 2 * np.sin(2.0)) * -1)
    g, x, loss, d, _ = new_in_the_way()
    loss.backward()
    np.testing.assert_allclose(x.grad, slope(-2.0))
    g, x, loss, d, _ = new_in_the_way()
    h = g.fork()
    h[x].set(1.0)
    np.testing.assert_allclose((h[d].value, d.value), (slope(1.0), slope(-2.0)))
    for graph in (g, h):
        graph.check_invariants()


def test_new_function_that_fails_when_its_rule_waits() -> None:
    g, x, loss, d, _ = new_in_the_way(np.nan)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="no number"):
            d.value
        with pytest.raises(ZeroDivisionError, match="no number"):
            rg.grad(loss, x)
    x.set(-1.0)
    np.testing.assert_allclose(d.value, slope(-1.0))
    g.check_invariants()


def test_transaction_that_takes_a_new_function_back() -> None:
    g = rg.Graph()
    x = g.param([0.5, 1.0])
    loss = (x * x).sum()
    d = rg.grad(loss, x)
    for read in (False, True):
        with pytest.raises(KeyError), g.transaction():
            loss.replace_parent(0, Exp.apply(x))
            if read:
                np.testing.assert_allclose(d.value, np.exp(x.value))
            raise KeyError
        assert d.value.tolist() == [1.0, 2.0]
        assert rg.grad(loss, x) is d
    g.check_invariants()


def test_gradient_asked_for_later_with_another_value_on_ctx() -> None:
    """Both gradients come from one rule, asked twice, with what it read at either time."""

    class Scaled(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.scale = float(x[0])
            return x * ctx.scale + y * ctx.scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.scale, g * ctx.scale

    g = rg.Graph()
    x, y = g.input([1.0, 5.0]), g.input([1.0, 1.0])
    z = Scaled.apply(x, y).sum()
    dx = rg.grad(z, x)
    assert dx.value.tolist() == [1.0, 1.0]
    x.set([3.0, 5.0])
    z.value
    dy = rg.grad(z, y)
    assert dy.value.tolist() == [3.0, 3.0]
    assert dx.value.tolist() == [3.0, 3.0]
    g.check_invariants()


SQUARE = rg.lift(
    lambda v: v * v,
    vjp=lambda g, ans, v: (g * v * 2.0,),
    jvp=lambda tangents, ans, v: tangents[0] * v * 2.0,
)


@pytest.mark.parametrize(
    "of",
    [
        lambda q: q.min(),
        lambda q: q.max(),
        lambda q: rg.where(q > 2.0, q, 0.0).sum(),
        lambda q: rg.maximum(q, 1.0).sum(),
        lambda q: (rg.floor(q) * q).sum(),
        lambda q: ((q > 2.0).astype("float64") * q).sum(),
        lambda q: (q.astype("int64") * 2 * q).sum(),
        lambda q: (q.astype("int64").astype("float64") * q).sum(),
        lambda q: (q.astype("int64").sum().astype("float64") * q).sum(),
        lambda q: (q.astype("int64")[0].astype("float64") * q).sum(),
        lambda q: ((q.astype("int64") @ q.astype("int64")).astype("float64") * q).sum(),
        lambda q: (q.astype("float32").astype("float64") * q).sum(),
    ],
)
def test_no_derivative_passes_integers_and_conditions_of_what_a_function_has_returned(
    of: Callable[[Any], Any],
) -> None:
    """Its dtype is unknown, so that theirs was, too."""

    def derivatives(square: Callable[[Any], Any], retain: bool | None) -> list[Any]:
        x = rg.Graph().param([1.0, 2.0, 3.0])
        y = of(square(x))
        slope = rg.jvp(y, x, [1.0, 2.0, 0.5]).value
        y.backward(retain_graph=retain)
        first = x.grad
        x.zero_grad()
        rg.grad(y, x).sum().backward(retain_graph=retain)
        return [slope, first, x.grad]

    built = derivatives(lambda x: x * x, None)
    for retain in (None, True):
        for ours, expected in zip(derivatives(SQUARE, retain), built, strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-12)


def test_conditions_on_what_a_function_has_returned_have_no_gradient() -> None:
    x = rg.Graph().param([1.0, 2.0, 3.0])
    q = SQUARE(x)
    large = q > 2.0
    rg.where(large, q, 0.0).sum().backward(retain_graph=True)
    assert large.grad is None
    np.testing.assert_array_equal(q.grad, [0.0, 1.0, 1.0])
