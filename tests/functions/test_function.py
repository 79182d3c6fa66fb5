"""``rg.Function``: PyTorch's examples and habits, on gradients that stay alive."""

from __future__ import annotations

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
from tests.autodiff.values_on_ctx import A, Signed, function, slope
from tests.io.files import assert_same_graph, there_and_back

pytestmark = pytest.mark.usefixtures("fresh_counts")

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
    [lambda a: a.value, lambda a: a.item(), lambda a: a.detach().value],
    ids=["value", "item", "detached"],
)
def test_rule_that_reads_values_is_refused(read: Callable[[Any], Any]) -> None:
    """It would go on with what it has read once."""
    g = rg.Graph()
    x = g.input(3.0)
    y = rg.lift(lambda a: a * a, vjp=lambda up, ans, a: up * 2.0 * read(a))(x)
    assert y.value == 9.0
    for _ in range(2):
        with pytest.raises(rg.GradientError, match=r"read the value of 'x'.*rg\.where"):
            rg.grad(y, x)
    assert (x.value, y.value) == (3.0, 9.0)
    g.check_invariants()


@pytest.mark.parametrize("convert", [float, bool, np.asarray])
def test_rule_that_converts_a_value_is_refused(convert: Callable[[Any], Any]) -> None:
    g = rg.Graph()
    x = g.input(3.0)
    y = rg.lift(lambda a: a * a, vjp=lambda up, ans, a: up * 2.0 * convert(a))(x)
    for _ in range(2):
        with pytest.raises(rg.ImplicitValueError):
            rg.grad(y, x)
    with (
        rg.implicit_values("allow"),
        pytest.raises(rg.GradientError, match="read the value of 'x'"),
    ):
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
    expected = total.item(), d.numpy()
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
    x.set(np.ones(3))  # what the rule has read of its ctx is another: the gradient is built anew
    h["x"].set(np.ones(3))
    np.testing.assert_array_equal(h["slope"].value, d.value)


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
