"""Gradients past nodes whose shape only their value shows: they follow it, as graphs built anew have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SHAPES = [(5, 2), (7, 2), (3, 2), (5, 2), (2, 2)]

OPS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda d: d[1:],
    "row": lambda d: d[0],
    "last row": lambda d: d[-1],
    "reversed": lambda d: d[::-1],
    "column": lambda d: d[:, 0],
    "new axis": lambda d: d[:, None],
    "slices": lambda d: d[::2] * d[1:2],
    "sum": lambda d: d.sum(axis=1),
    "sum of rows": lambda d: d.sum(axis=0),
    "min": lambda d: d.min(axis=1),
    "mean": lambda d: d.mean(axis=1),
    "mean of rows": lambda d: d.mean(axis=0, keepdims=True),
    "mean of all": lambda d: d.mean() * d,
    "concatenate": lambda d: rg.concatenate([d, d * 2.0]),
    "concatenate columns": lambda d: rg.concatenate([d, d * 2.0], axis=1),
    "stack": lambda d: rg.stack([d, d]),
    "row by row": lambda d: d * d[0],
    "switch": lambda d: rg.switch(d.sum() > -1e9, d, d * 2.0),
    "split": lambda d: rg.split(d, 2, axis=1)[0],
    "transpose": lambda d: d.T,
    "flat": lambda d: d.reshape(-1),
    "softmax": rg.softmax,
    "log_softmax": rg.log_softmax,
    "cross_entropy": lambda d: rg.cross_entropy(d, (d[:, 0] > 0.0).astype(int)),
    "layer_norm": rg.layer_norm,
    "matmul": lambda d: d @ d.T,
}


def shown(x: Any) -> Any:
    """`x` as the result of a function that declares no shape."""
    return rg.lift(lambda v: v * 1.0, vjp=lambda g, ans, v: (g,), jvp=lambda ts, ans, v: ts[0])(x)


class Shown(rg.Function):
    """The same as a class."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t


def derivatives(f: Callable[[Any], Any], x: Any, d: Any) -> list[Any]:
    y = (f(d) ** 2).sum()
    r = rg.grad(y, x)
    moved = (r * x).sum()
    return [
        *(y, r, rg.grad(y, d), rg.hvp(y, x, x * 1.0)),
        *(moved, rg.grad(moved, x), rg.jvp(y, x, x * 1.0)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [shown, Shown.apply], ids=["lift", "Function"])
@pytest.mark.parametrize("name", OPS)
def test_live_derivatives_follow(name: str, kind: Callable[[Any], Any]) -> None:
    f = OPS[name]
    g = rg.Graph()
    x = g.param(np.ones((5, 2)))
    nodes = derivatives(f, x, kind(x))
    fork = g.fork()
    for shape in SHAPES:
        value = np.random.default_rng(shape[0]).normal(size=shape)
        anew = rg.Graph().param(value)
        want = [node.value for node in derivatives(f, anew, anew * 1.0)]
        for graph in (g, fork):
            graph[x].set(value)
            for node, right in zip(nodes, want, strict=True):
                np.testing.assert_allclose(graph[node].value, right, rtol=1e-9, atol=1e-12)
            graph.check_invariants()


@pytest.mark.parametrize(
    "f",
    [rg.floor, rg.sign, lambda d: rg.where(d > 0.0, 1.0, 2.0), lambda d: rg.astype(d > 0, "f8")],
    ids=["floor", "sign", "where", "astype"],
)
def test_zeros_follow(f: Callable[[Any], Any]) -> None:
    g = rg.Graph()
    x = g.input(np.ones((3, 2)))
    d = shown(x)
    r, j = rg.grad(f(d).sum(), d), rg.jacobian(f(d).sum(), d)
    for rows in (3, 4, 2, 3):
        x.set(np.ones((rows, 2)))
        np.testing.assert_array_equal(r.value, np.zeros((rows, 2)))
        np.testing.assert_array_equal(j.value, np.zeros((rows, 2)))
        g.check_invariants()


def test_zeros_of_an_input_of_any_length_follow_when_nothing_leads_to_it_any_more() -> None:
    g = rg.Graph()
    x, z = g.input(shape=(None,)), g.input(np.ones(3))
    y = rg.tanh(x).sum()
    r = rg.grad(y, x)
    y.replace_parent(0, z)
    with pytest.raises(rg.UnsetError):
        r.value
    for length in (4, 2):
        x.set(np.ones(length))
        np.testing.assert_array_equal(r.value, np.zeros(length))


def test_mean_of_what_has_an_infinite_gradient() -> None:
    g = rg.Graph()
    d = shown(g.param(np.ones((2, 2))))
    r = rg.grad(d.mean(axis=1), d, gradient=np.array([np.inf, 2.0]))
    np.testing.assert_array_equal(r.value, [[np.inf, np.inf], [1.0, 1.0]])


def test_what_does_not_need_a_function_does_not_run_it() -> None:
    """To look at shapes runs nothing else than what is read."""
    ran: list[int] = []

    def count(v: Any) -> Any:
        ran.append(len(v))
        return v * 1.0

    g = rg.Graph()
    x = g.param(np.ones(3))
    d = rg.lift(count, vjp=lambda g, ans, v: (g,))(x)
    r, other = rg.grad((d[1:] ** 2).sum(), x), (x * 2.0).sum()
    assert r.value.tolist() == [0.0, 2.0, 2.0]
    ran.clear()
    x.set(np.ones(4))
    assert other.value == 8.0
    assert ran == []
    assert r.value.tolist() == [0.0, 2.0, 2.0, 2.0]
    assert ran == [4]
    x.set(np.full(4, 2.0))
    assert r.value.tolist() == [0.0, 4.0, 4.0, 4.0]
    assert ran == [4, 4]


def test_lengths_that_nobody_reads_are_passed_over() -> None:
    """A rule that asks for a shape sees no value that is stale, be it only by what is set."""

    def build(x: Any) -> tuple[Any, Any]:
        s = x * 2.0
        y = (s @ shown(s[-1])).sum()
        return y, rg.grad(y, x)

    g = rg.Graph()
    x = g.input(np.ones((3, 2)))
    y, r = build(x)
    r.value
    for lengths in ([5, 6], [2, 3, 4], [6], [3, 3, 5]):
        for length in lengths:
            x.set(np.full((length, 2), float(length)))
        anew = build(rg.Graph().input(x.value))
        np.testing.assert_allclose(r.value, anew[1].value)
        np.testing.assert_allclose(y.value, anew[0].value)
        g.check_invariants()


def _steps_on_steps(x: Any, w: Any, t: Any) -> list[Any]:
    """Gradients of losses at weights that a gradient has moved."""

    def loss(x: Any, w: Any) -> Any:
        return (rg.tanh((shown(x) * w)[1:]) * t[1:, None]).mean()

    r, rx = rg.grad(loss(x, w), w), rg.grad(loss(x, w), x)
    after = loss(x - 0.1 * rx, w)
    return [r, rg.grad(loss(x, w - 0.1 * r), w), rg.grad(after, x), rg.grad(after, w)]


def _of_squares(x: Any, w: Any, t: Any) -> list[Any]:
    r = rg.grad(((shown(x) * w)[:, 0] * t).sum(), w)
    return [r, rg.grad((r * r).sum(), w), rg.grad(w.sum() * r.sum(), w)]


def _of_rows(x: Any, w: Any, t: Any) -> list[Any]:
    y = (rg.log_softmax(shown(x) * w)[:, 0] * t).sum()
    r = rg.grad(y, w)
    return [rg.grad((r * r * w).sum(), w), rg.hvp(y, w, r)]


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, -1], ids=["in order", "from behind"])
@pytest.mark.parametrize("build", [_steps_on_steps, _of_squares, _of_rows])
def test_gradients_of_gradients_follow(
    build: Callable[[Any, Any, Any], list[Any]], order: int
) -> None:
    """Each is built anew only when those that it is computed from have been, whichever is read first."""
    g = rg.Graph()
    x, w, t = g.input(np.ones((3, 2))), g.param(np.ones(2)), g.input(np.ones(3))
    nodes = build(x, w, t)
    g.forward(*nodes)

    def check(graph: rg.Graph, length: int) -> None:
        rng = np.random.default_rng(length)
        rows, weights = rng.normal(size=(length, 2)), rng.normal(size=length)
        graph.set({graph[x]: rows, graph[t]: weights})
        anew = rg.Graph()
        wanted = build(anew.input(rows), anew.param(np.ones(2)), anew.input(weights))
        for node, want in list(zip(nodes, wanted, strict=True))[::order]:
            np.testing.assert_allclose(graph[node].value, want.value, rtol=1e-9, atol=1e-12)
        graph.check_invariants()

    for length in (4, 2, 5, 3, 3, 6, 1):
        if length > 1 or build is not _steps_on_steps:  # whose mean is of no elements then
            check(g, length)
        with g.whatif() as trial:
            check(trial, 7)


def test_what_is_run_again_after_an_error_may_have_another_shape() -> None:
    broken = False

    def may_raise(v: Any) -> Any:
        if broken:
            raise OSError("away")
        return v * 1.0

    g = rg.Graph()
    x = g.param(np.ones((3, 2)))
    d = rg.lift(may_raise, vjp=lambda g, ans, v: (g,))(x)
    y = (d[1:] ** 2).sum()
    r = rg.grad(y, x)
    assert r.value.shape == (3, 2)
    broken = True
    x.set(np.ones((5, 2)))
    with pytest.raises(OSError, match="away"):
        r.value
    broken = False
    g.forward(y, r, retry=True)
    np.testing.assert_array_equal(r.value, np.r_[np.zeros((1, 2)), np.full((4, 2), 2.0)])
    assert y.value == 8.0
    g.check_invariants()


ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "last": lambda d: d[-1],
    "of squares": lambda d: (d * d)[0],
    "of a sum": lambda d: (d + d[0])[0],
    "joined": lambda d: rg.concatenate([d, d])[0],
    "stacked": lambda d: rg.stack([d, d])[0, 0],
    "reshaped": lambda d: d.reshape(-1, 1)[0, 0],
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_gradients_that_depend_on_nothing_but_a_shape_follow(name: str) -> None:
    def build(x: Any) -> list[Any]:
        d = shown(x)
        y = ELEMENTS[name](d)
        r = rg.grad(y, d)
        return [
            *(r, r * 2.0, r + d, (r * d).sum(), rg.concatenate([r, d]), rg.lift(np.copy)(r)),
            *(rg.grad(y, x), rg.jvp(y, x, x * 1.0), rg.hvp(y, x, x * 1.0)),
        ]

    g = rg.Graph()
    x = g.param(np.ones(2))
    nodes = build(x)
    g.forward(*nodes)
    for length in (3, 1, 3, 4, 2):
        x.set(np.arange(length) + 1.0)
        for node, want in zip(nodes, build(rg.Graph().param(x.value)), strict=True):
            np.testing.assert_allclose(node.value, want.value)
        g.check_invariants()


def test_edits_run_no_function_to_see_its_shape() -> None:
    def may_raise(v: Any) -> Any:
        if v.sum() > 50.0:
            raise RuntimeError("too large")
        return v * 1.0

    g = rg.Graph()
    x = g.input(np.ones((3, 2)))
    e = x * 1.0
    d = rg.lift(may_raise, vjp=lambda g, ans, v: (g,))(e * 2.0)
    q = d.sum(axis=1)
    y = (q**2).sum()
    r = rg.grad(y, x)
    r.value
    x.set(np.full((3, 2), 100.0))
    g.insert(d, q, lambda p: rg.tanh(p))
    e.pin(np.ones((3, 2)))
    assert y.value == pytest.approx(12.0 * np.tanh(2.0) ** 2)
    e.unpin()
    with pytest.raises(RuntimeError, match="too large"):
        r.value
    x.set(np.ones((3, 2)))
    slope = 8.0 * np.tanh(2.0) / np.cosh(2.0) ** 2
    np.testing.assert_allclose(r.value, np.full((3, 2), slope))
    g.check_invariants()


def _hessian(x: Any, w: Any) -> list[Any]:
    y = ((shown(x) * w)[1:] ** 2).sum()
    return [rg.hessian(y, w), y, rg.grad(y, w), rg.jacobian(rg.grad(y, w), x)]


def _hessian_of_params(x: Any, w: Any) -> list[Any]:
    return [rg.hessian((shown(x * w)[1:] ** 2).sum(), w)]


def _jacobians(x: Any, w: Any) -> list[Any]:
    d = shown(x) * w
    return [rg.jacobian(d[1:].sum(axis=1), w), rg.jacobian(d.mean(axis=0), w)]


@pytest.mark.slow
@pytest.mark.parametrize("build", [_hessian, _hessian_of_params, _jacobians])
def test_hessians_follow_and_rollbacks_come_back(build: Callable[[Any, Any], list[Any]]) -> None:
    g = rg.Graph()
    x, w = g.input(np.arange(6.0).reshape(3, 2)), g.param(np.array([0.5, -0.3]))
    nodes = build(x, w)
    g.forward(*nodes)
    x.set(x.value + 1.0)
    nodes[-1].value
    for length in (5, 2, 3, 5, 4, 4, 1):
        x.set(np.arange(2.0 * length).reshape(length, 2))
        anew = rg.Graph()
        wanted = build(anew.input(x.value), anew.param(w.value))
        for node, want in zip(nodes, wanted, strict=True):
            np.testing.assert_allclose(node.value, want.value)
        g.check_invariants()
        before = [node.value for node in nodes]
        with pytest.raises(KeyError), g.transaction():
            x.set(np.ones((6, 2)))
            g.forward(*nodes)
            raise KeyError
        assert x.shape == (length, 2)
        for node, value in zip(nodes, before, strict=True):
            np.testing.assert_allclose(node.value, value)
        g.check_invariants()


# --- orders of edits and questions -----------------------------------------------------------------


def _same(jvp: bool = True) -> Any:
    """A function of which only values show the shape."""
    return rg.lift(
        lambda v: v * 1.0,
        vjp=lambda g, ans, v: (g,),
        jvp=(lambda ts, ans, v: ts[0]) if jvp else None,
    )


@pytest.mark.parametrize("asked", ["chosen", "between", "leaf"])
def test_a_question_after_an_edit_is_of_the_graph_after_it(asked: str) -> None:
    g = rg.Graph()
    w = g.param(np.array(-1.5))
    d = _same()(w)
    s = rg.switch(w > 0.0, w, d)
    loss = s.sum()
    loss.backward()
    g.zero_grad()
    g.insert(s, loss, lambda v: v * 10.0)
    x = {"chosen": s, "between": d, "leaf": w}[asked]
    assert rg.grad(loss, x).value == 10.0
    loss.backward()
    assert w.grad == 10.0


def test_two_edits_before_the_next_backward() -> None:
    g = rg.Graph()
    w1, w2 = g.param(np.array(-1.5)), g.param(np.array([1.5, -0.75]))
    d = _same()(w1)
    s = rg.switch(w1 > 0.0, w1, d)
    loss = s.sum()
    loss.backward()
    g.zero_grad()
    g.insert(s, loss, rg.tanh)
    d.replace_parent(0, w2)
    loss.backward()
    np.testing.assert_allclose(w2.grad, 1.0 / np.cosh([1.5, -0.75]) ** 2, rtol=1e-15)


def test_the_first_read_after_an_edit_gives_what_the_second_gives() -> None:
    g = rg.Graph()
    a, b = g.input(np.ones(2)), g.input(np.ones((2, 2)))
    d = _same()(b)
    v = rg.grad(rg.jacobian(d, b, "reverse").sum(), b)
    assert v.value.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    d.replace_parent(0, a)
    assert v.value.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("branch", [1.0, np.ones(3)], ids=["number", "array"])
def test_second_derivatives_past_branches_of_other_shapes(branch: Any) -> None:
    g = rg.Graph()
    condition, a = g.input(True), g.input(np.ones((2, 2)))
    y = rg.switch(condition, branch if isinstance(branch, float) else g.input(branch), a)
    first = rg.grad((y * y).sum(), a)
    second = rg.grad((first**2).sum(), a)
    for chosen, value in ((True, 0.0), (False, 8.0), (True, 0.0)):
        condition.set(chosen)
        np.testing.assert_array_equal(second.value, np.full((2, 2), value))


@pytest.mark.parametrize("of", [rg.jvp, lambda y, x, v: rg.grad(y, x, gradient=v)])
def test_a_gradient_that_is_its_seed_follows_that(of: Any) -> None:
    g = rg.Graph()
    a, x, single = g.input(np.ones(2)), g.input(np.ones((2, 2))), g.input(np.ones(2, "f4"))
    s, y = a.sum(), a * 1.0
    number, rows, kind = of(s, s, s * 0.5), of(x, x, x * 0.5), of(y, y, y * 0.5)
    slope = rg.grad((rows * rows).sum(), x)
    assert (number.value, slope.shape, kind.dtype) == (1.0, (2, 2), np.float64)
    s.replace_parent(0, _same()(a))
    y.replace_parent(0, single)
    x.set(np.ones((3, 2)))
    assert number.value == 1.0
    assert rows.shape == rows.value.shape == (3, 2)
    np.testing.assert_array_equal(slope.value, np.full((3, 2), 0.5))
    assert kind.dtype == kind.value.dtype == np.float32
    g.check_invariants()


def test_hooks_elsewhere_take_no_product_away() -> None:
    g = rg.Graph()
    w, z = g.param(np.array([1.0, 2.0])), g.param(1.0)
    (z * 3.0).register_hook(lambda q: q * 2.0)
    other = z * 3.0
    other.register_hook(lambda q: q * 2.0)
    square = rg.lift(
        lambda a: a * a, vjp=lambda g, ans, a: (g * a * 2.0,)
    )  # without a forward rule
    y = square(w).sum()
    assert rg.hvp(y, w, np.ones(2)).value.tolist() == [2.0, 2.0]
    assert rg.hessian(y, w).value.tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_gradient_of_a_number_is_none_of_an_array_that_it_becomes() -> None:
    some = rg.lift(
        lambda a: a.sum() if a.sum() > 0.0 else a * 1.0,
        vjp=lambda g, ans, a: (g * (a * 0.0 + 1.0),),
    )
    g = rg.Graph()
    x = g.param(np.ones(3))
    y = some(x)
    held = [rg.grad(y, x), rg.grad(y, x, gradient=np.array(2.0))]
    for _ in range(2):
        x.set(np.ones(3))
        assert [one.value.tolist() for one in held] == [[1.0] * 3, [2.0] * 3]
        g.zero_grad()
        y.backward()
        assert x.grad.tolist() == [1.0] * 3
        x.set(-np.ones(3))
        assert y.value.tolist() == [-1.0] * 3  # before that nobody knows
        for _ in range(2):
            for one in held:
                with pytest.raises(rg.ShapeError, match="single number"):
                    _ = one.value
        with pytest.raises(rg.ShapeError):
            y.backward()


@pytest.mark.parametrize("forked", [False, True], ids=["", "in a fork"])
@pytest.mark.parametrize("lifted", [False, True], ids=["op", "function"])
def test_a_former_backward_refuses_no_shape(lifted: bool, forked: bool) -> None:
    g = rg.Graph()
    x = g.param(np.ones(3))
    same = rg.lift(lambda a: a * 1.0, vjp=lambda grad, ans, a: (grad,))
    y = same(x) if lifted else x * 1.0
    y.backward(np.ones(3))
    if forked:
        h = g.fork()
        x, y = h[x], h[y]
    for length in (2, 4):
        x.set(np.ones(length))
        x.zero_grad()
        y.backward(np.full(length, 5.0))
        assert x.grad is not None
        np.testing.assert_array_equal(x.grad, np.full(length, 5.0))


@pytest.mark.parametrize("of", ["output", "leaf"])
def test_hooks_of_nodes_of_unknown_shape_follow_it(of: str) -> None:
    g = rg.Graph()
    x = g.param(np.ones(3))
    y = rg.lift(lambda a: a, vjp=lambda grad, ans, a: (grad,))(x)
    y.register_hook(lambda grad: np.clip(grad, -1.0, 1.0))
    gradient = rg.grad(y, y if of == "output" else x, gradient=x * 2.0)
    for length in (3, 2, 4):
        x.set(np.ones(length))
        np.testing.assert_array_equal(gradient.value, np.ones(length))


class Past:
    """A gradient past a function whose shape only its value shows, which is computed ahead of it."""

    def __init__(self) -> None:
        self.g = rg.Graph()
        self.calls = 0
        self.x = self.g.param([3.0, 1.0])
        self.f = rg.lift(self.twice, vjp=lambda grad, ans, v: (grad * 2.0,))(self.x)
        self.y = rg.tanh(self.f)
        self.loss = self.y.sum()
        self.gradient = rg.grad(self.loss, self.x)
        self.gradient.value

    def twice(self, v: np.ndarray) -> np.ndarray:
        self.calls += 1
        return v * 2.0

    def change(self, length: int) -> set[rg.Var]:
        self.calls = 0
        self.x.set(np.linspace(0.0, 1.0, length))
        return {self.f, self.y}


@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("how", ["forward", "value", "backward"])
def test_a_run_tells_of_what_had_to_run_ahead_of_it(how: str, length: int) -> None:
    case = Past()
    ahead = case.change(length)
    version = case.y.value_version
    if how == "forward":
        run = case.g.forward(case.gradient)
        assert list(run.ran) == list(case.g.last_run.ran)
    elif how == "value":
        case.gradient.value
        run = case.g.last_run
    else:
        run = case.loss.backward()
    assert ahead <= set(run.ran)
    assert len(set(run.ran)) == len(run.ran), "told twice"
    assert run.ran[0] is case.f
    assert case.calls == 1
    assert case.y.value_version == version + 1
    why = case.g.why(case.y)
    assert (why.verdict, [cause.kind for cause in why.causes]) == ("ran", ["set"])
    case.g.check_invariants()


def test_a_run_that_fails_tells_of_what_had_to_run_ahead_of_it() -> None:
    case = Past()
    other = rg.lift(lambda v: 1.0 / v.sum() if v.sum() else v / [])(case.x)  # raises for zeros
    ahead = case.change(2)
    case.x.set([1.0, -1.0])
    with pytest.raises(ValueError, match="broadcast"):
        case.g.forward(case.gradient, other)
    run = case.g.last_run
    assert ahead <= set(run.ran)
    assert list(run.failed) == [other]


@pytest.mark.parametrize("erased", [False, True], ids=["marks", "no marks"])
def test_whether_marks_are_erased_decides_on_nothing_that_gradients_follow(erased: bool) -> None:
    """Which values rules may look at, and which shapes are followed ahead, is what versions say."""
    g = rg.Graph()
    a, b, k = g.input([3.0, 4.0]), g.input([0.0, 1.0]), g.param([2.0, 1.0])
    passed = rg.lift(lambda v: v * 1.0, vjp=lambda grad, ans, v: (grad,))(a)
    reads = rg.lift(lambda v: k.value * 1.0)(b)
    part = reads[..., -1:]
    chosen = rg.switch(passed.sum() > 2.0, rg.relu(b - 1.0), b[-1:])
    total = chosen.sum()
    gradient = rg.grad(total, passed)

    def differentiate_again() -> None:
        _ = gradient.value
        _ = rg.grad(gradient.sum(), passed).value

    for act in (
        lambda: gradient.value,
        lambda: chosen.replace_parent(0, part),
        lambda: passed.value,
        passed.touch,
        differentiate_again,
    ):
        act()
        if erased:
            g.forget_marks()
    assert not g.forward(reads).ran, "it was computed for the shape of the choice"
    versions = [node.value_version for node in (reads, chosen, total, gradient)]
    assert versions == [1, 2, 2, 2]
    g.check_invariants()


def test_what_would_be_computed_from_its_own_gradient_is_refused_also_after_other_shapes() -> None:
    g = rg.Graph()
    a, x, z = g.input(1.0), g.param([1.0]), g.param([2.0, 4.0])
    taken = a.detach() * a
    chosen = rg.switch(x.sum() > 2.0, taken, z)
    y = x - chosen
    gradient = rg.grad(y.sum(), taken)
    assert gradient.value == 0.0
    for length in (3, 2):
        z.set(np.ones(length))
    with pytest.raises(rg.CycleError):
        y.replace_parent(1, gradient)
    assert y.value.tolist() == [0.0, 0.0]
    assert gradient.value == 0.0
    g.check_invariants()
