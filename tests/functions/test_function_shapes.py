"""Shapes that ``rg.Function`` says before it has run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.values_on_ctx import Counted
from tests.io.files import there_and_back

pytestmark = pytest.mark.usefixtures("fresh_counts")

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
