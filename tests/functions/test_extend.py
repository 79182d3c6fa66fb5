"""Ops of users' own are like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import extend
from reactgrad.ops import UFUNCS
from tests.autodiff.primitives import cube, distance, outer, roll
from tests.io.files import assert_same_graph, there_and_back

A = np.array([0.3, -1.2, 0.7])


def test_shapes_are_known_and_checked_before_anything_runs() -> None:
    g = rg.Graph()
    x, y = g.input(A), g.input(np.ones((2, 2), "f4"))
    z = outer(x, y)
    assert (z.shape, z.dtype, z.is_stale) == ((3, 2, 2), np.dtype("f8"), True)
    assert cube(g.input(shape=(None, 4), dtype="f4")).shape == (None, 4)
    with pytest.raises(rg.ShapeError, match="test_roll of a number"):
        roll(g.input(1.0), shift=1)
    with pytest.raises(rg.ShapeError, match=r"lengths 3 and 2"):
        distance(x, np.ones(2))
    d = distance(x, x)
    with pytest.raises(rg.ShapeError, match="new shape"):
        w = g.input(np.ones(3))
        out = distance(w, x)
        w.set(np.ones(2))
    assert out.shape == d.shape == (3,)


def test_a_kernel_that_returns_its_result_in_place_of_writing_it_is_refused() -> None:
    """What lay in the memory of the result before was taken for it."""

    @extend.primitive("test_returning", lambda x: x, elementwise=True)
    def returning(x: Any, out: Any) -> Any:
        return np.exp(x)

    @extend.primitive("test_written_and_returned", lambda x: x, elementwise=True)
    def written(x: Any, out: Any) -> Any:
        return np.exp(x, out)

    g = rg.Graph()
    x = g.input(A)
    with pytest.raises(rg.DTypeError, match=r"Write it into `out`: out\[...\] = result") as caught:
        returning(x).value
    assert "test_returning" in caught.value.__notes__[0]
    np.testing.assert_array_equal(written(x).value, np.exp(A))


def test_kernel_writes_into_the_nodes_buffer() -> None:
    outs: list[Any] = []

    @extend.primitive("test_buffer", lambda x: x)
    def double(x: Any, out: Any) -> None:
        outs.append(out)
        np.multiply(x, 2.0, out)

    x = rg.Graph().input(A)
    y = double(x)
    for i in range(4):
        x.set(A + i)
        np.testing.assert_array_equal(y.value, (A + i) * 2)
    assert len({out.ctypes.data for out in outs}) == 1


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (cube, [A]),
        (lambda x: roll(x, shift=2) * x, [A]),
        (lambda x: roll(x, shift=-1, axis=1), [np.arange(6.0).reshape(2, 3)]),
        (lambda x, y: rg.sin(outer(x, y)), [A, [0.4, 1.1]]),
        (distance, [np.ones((2, 3)), A + 2.0]),
        (lambda x: distance(cube(x), 2.0), [A]),
    ],
)
def test_rules_to_second_order(f: Callable[..., Any], args: list[Any]) -> None:
    rg.testing.check_grads(f, args, order=2)


@pytest.mark.skipif(not hasattr(rg, "jvp"), reason="forward mode is not here yet")
def test_forward_rules() -> None:
    g = rg.Graph()
    x, t = g.input(A), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(rg.jvp(cube(x), x, t).value, 3 * A * A * t)
    np.testing.assert_allclose(rg.jvp(roll(x, shift=1), x, t).value, np.roll(t, 1))
    y = outer(x, x)
    np.testing.assert_allclose(rg.jvp(y, x, t).value, np.outer(t, A) + np.outer(A, t))
    with pytest.raises(rg.GradientError, match="forward rule"):
        rg.jvp(named("test_no_jvp")(x), x, t)


def test_numpys_function_builds_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UFUNCS, np.cbrt, None)  # gone after the test
    x = rg.Graph().input(A)
    y = np.roll(x, 1)
    assert y.name.startswith("test_roll")
    np.testing.assert_array_equal(y.value, np.roll(A, 1))
    np.testing.assert_array_equal(np.roll(x, shift=2, axis=0).value, np.roll(A, 2))
    np.testing.assert_array_equal(np.roll(shift=2, a=x).value, np.roll(A, 2))
    root = extend.primitive("test_cbrt", lambda x: x, elementwise=True)(np.cbrt)
    extend.defvjp(root, lambda g, ans, x: g / (3.0 * ans * ans))
    z = np.cbrt(x)
    assert z.name.startswith("test_cbrt")
    np.testing.assert_allclose(rg.grad(z.sum(), x).value, 1 / (3 * np.cbrt(A) ** 2))


def test_operands_that_are_numbers_lists_and_results_of_functions() -> None:
    g = rg.Graph()
    with g:
        assert cube(2.0).value == 8.0
        assert cube(2.0).dtype == np.dtype("f8")
        np.testing.assert_array_equal(cube([1.0, 2.0]).value, [1.0, 8.0])
    x = g.input(A)
    y = rg.lift(lambda a: a + 1.0, vjp=lambda up, ans, a: up)(x)
    d = rg.grad(distance(cube(y), x).sum(), x)
    np.testing.assert_allclose(
        d.value,
        (3 * (A + 1) ** 5 + A) / np.hypot((A + 1) ** 3, A),
    )


def test_incremental_and_cut_off() -> None:
    g = rg.Graph()
    x, k = g.input(A), g.input(2.0)
    y = roll(cube(x), shift=1)
    z = y * k
    _ = z.value
    k.set(3.0)
    assert [v.name for v in g.forward(z).ran] == [z.name]
    h = g.fork()
    h[x].set(-A)
    np.testing.assert_array_equal(h[y].value, -y.value)
    y.cutoff = "equal"
    x.set(A.copy())
    run = g.forward(z)
    assert y in run.cut_off
    assert z not in run.ran
    g.check_invariants()


def test_saved_graph_knows_the_op_by_its_name() -> None:
    g = rg.Graph()
    x = g.input(A, name="x")
    y = roll(cube(x), shift=1)
    d = rg.grad(y[0] * 2.0, x)
    y.name, d.name = "y", "d"
    _ = y.value, d.value
    h = there_and_back(g)
    assert_same_graph(g, h)
    h["x"].set(A * 2)
    np.testing.assert_array_equal(h["y"].value, np.roll((A * 2) ** 3, 1))
    np.testing.assert_array_equal(h["d"].value, [0, 0, 6 * 1.4 * 1.4])


def test_kernel_for_another_device() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")
    x = rg.Graph().input(xp.asarray(A))
    y = distance(x, x)
    with pytest.raises(rg.DeviceError, match=r"'test_distance' has no kernel.*register_kernel"):
        y.value

    def kernel(a: Any, b: Any, out: Any) -> None:
        out[...] = xp.sqrt(a * a + b * b)

    extend.register_kernel("test_distance", "strict", kernel)
    np.testing.assert_allclose(distance(x, x).numpy(), np.hypot(A, A))
    np.testing.assert_allclose(
        rg.grad(distance(x, 1.0).sum(), x).numpy(), A / np.hypot(A, 1.0), rtol=1e-14
    )


def test_rule_of_an_elementwise_op_may_broadcast() -> None:
    g = rg.Graph()
    x, y = g.param(np.ones((2, 3))), g.param(A)
    distance(x, y).sum().backward()
    assert y.grad.shape == (3,)
    np.testing.assert_allclose(y.grad, 2 * A / np.hypot(1.0, A))


def test_kernel_defined_again_is_for_new_nodes() -> None:
    """As a notebook does when a cell is run for the second time."""

    def define(factor: float) -> Any:
        @extend.primitive("test_again", lambda x: x)
        def kernel(x: Any, out: Any) -> None:
            np.multiply(x, factor, out)

        return kernel

    x = rg.Graph().input(A)
    define(2.0)
    np.testing.assert_array_equal(define(3.0)(x).value, A * 3)


def named(name: str, rule: Any = lambda x: x, kernel: Any = lambda x, out: None) -> Any:
    return extend.primitive(name, rule)(kernel)


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "name of an op of ours": (lambda: named("tanh"), ValueError, "there is an op 'tanh' already"),
    "name of another one": (lambda: named("test_cube"), ValueError, "op 'test_cube' already"),
    "kernel without out": (
        lambda: named("test_bad", kernel=lambda x, y: None),
        TypeError,
        r"takes \(x, y\)\. Write kernel\(x, y, out",
    ),
    "kernel by name": (
        lambda: named("test_bad", kernel=lambda x, *, out: None),
        TypeError,
        r"kernel\(x, \*rest, out, attribute\) for any number",
    ),
    "no kernel": (lambda: named("test_bad", kernel=3), TypeError, "it is a function"),
    "shape rule without a spec": (
        lambda: named("test_bad_rule", rule=lambda x: (3,))(rg.Graph().input(A)),
        TypeError,
        r"returned \(3,\).*rg\.extend\.spec",
    ),
    "too few operands": (
        lambda: outer(rg.Graph().input(A)),
        TypeError,
        r"test_outer\(x, y\): missing a required argument: 'y'",
    ),
    "too many arguments": (
        lambda: roll(rg.Graph().input(A), 1, 0, 2),
        TypeError,
        r"test_roll\(a, shift, axis=0\): too many",
    ),
    "missing attribute": (lambda: roll(rg.Graph().input(A)), TypeError, "'shift'"),
    "unknown attribute": (
        lambda: roll(rg.Graph().input(A), shift=1, axes=0),
        TypeError,
        "unexpected keyword argument 'axes'",
    ),
    "Var as attribute": (
        lambda: (lambda x: roll(x, shift=x.sum()))(rg.Graph().input(A)),
        TypeError,
        r"shift= was given a Var.*in front of `out`",
    ),
    "too few rules": (
        lambda: extend.defvjp(outer, lambda g, ans, x, y: g),
        RuntimeError,
        r"1 rules for 2 operands",
    ),
    "no rule": (lambda: extend.defjvp(cube, "lin"), TypeError, "'lin' is no rule"),
    "rules of a function": (
        lambda: extend.defvjp(np.tanh, lambda g, ans, x: g),  # type: ignore[arg-type]
        TypeError,
        r"rg\.lift\(fn, vjp=rule\)",
    ),
    "no rules": (
        lambda: (lambda x: rg.grad(named("test_plain")(x).sum(), x))(rg.Graph().input(A)),
        RuntimeError,
        r"'test_plain'.*no derivative rule.*rg\.extend\.defvjp",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_are_explained(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize(
    ("rule", "builtin", "words"),
    [
        (lambda g, ans, x: g.sum(), ValueError, r"the vjp of 'test_wrong'.*\('x'\).*shape \(\)"),
        (lambda g, ans, x: x > 0, TypeError, "bool; gradients are floats"),
        (lambda g, ans, x: rg.Graph().input(A), ValueError, "another graph"),
    ],
)
def test_gradients_of_rules_are_checked(rule: Any, builtin: Any, words: str) -> None:
    wrong = extend.primitive("test_wrong", lambda x: x)(_nothing)
    extend.defvjp(wrong, rule)
    x = rg.Graph().input(A, name="x")
    with pytest.raises(builtin, match=words):
        rg.grad(wrong(x).sum(), x)


@pytest.mark.parametrize("rule", [lambda g, ans, x: g.sum(), lambda g, ans, x: rg.stack([g, g]).T])
def test_gradients_of_elementwise_rules_are_checked(rule: Any) -> None:
    wrong = extend.primitive("test_wrong_too", lambda x: x, elementwise=True)(_nothing)
    extend.defvjp(wrong, rule)
    x = rg.Graph().input(A, name="x")
    with pytest.raises(rg.ShapeError, match=r"the vjp of 'test_wrong_too'.*\('x'\).*\(3,\)"):
        rg.grad(wrong(x).sum(), x)


def _nothing(x: Any, out: Any) -> None:
    out[...] = x


def test_thousand_steps_grow_nothing() -> None:
    g = rg.Graph()
    w = g.param(A)
    loss = roll(cube(w), shift=1).sum()
    sizes = set()
    for i in range(1000):
        w.set(A + i * 1e-3)
        loss.backward()
        if i in (2, 500, 999):
            sizes.add(len(g))
    assert len(sizes) == 1


@extend.primitive("test_mix", lambda w, *xs, power: extend.broadcast(*xs))
def mix(w: Any, *xs: Any, out: Any, power: int = 1) -> None:
    """The sum of w[i] * x**power over any number of operands x."""
    np.copyto(out, sum(w[i] * x**power for i, x in enumerate(xs)))


extend.defvjp(
    mix,
    lambda g, ans, w, *xs, power: rg.stack([(g * x**power).sum() for x in xs]),
    lambda i, g, ans, w, *xs, power: g * w[i] * power * xs[i] ** (power - 1),
)
extend.defjvp(
    mix,
    lambda t, ans, w, *xs, power: mix(t, *xs, power=power),
    lambda i, t, ans, w, *xs, power: t * w[i] * power * xs[i] ** (power - 1),
)


def test_ops_of_any_number_of_operands() -> None:
    args = [np.array([0.5, -1.0, 2.0]), A, A + 1.0, A * 2.0]
    rg.testing.check_grads(lambda *a: mix(*a, power=3), args, order=2)
    g = rg.Graph()
    w, a, b = g.param([2.0, 3.0, 5.0]), g.input(A), g.input(A * A)
    y = mix(w, a, b)
    np.testing.assert_array_equal(y.value, 2.0 * A + 3.0 * (A * A))
    y.rewire(w, a, b, a)
    np.testing.assert_array_equal(y.value, 2.0 * A + 3.0 * (A * A) + 5.0 * A)
    assert repr(mix) == "test_mix(w, *xs, power=1)"


def test_kernels_of_any_number_of_operands_are_written_one_way() -> None:
    with pytest.raises(rg.DTypeError, match=r"kernel\(x, \*rest, out, attribute\)"):

        @extend.primitive("test_many_first", lambda *xs: xs[0])
        def many_first(*xs: Any, w: Any, out: Any) -> None: ...

    with pytest.raises(rg.DTypeError, match="Write kernel"):

        @extend.primitive("test_any_word", lambda *xs: xs[0])
        def any_word(*xs: Any, out: Any, **words: Any) -> None: ...

    with pytest.raises(rg.GradientError, match="3 rules for 2 operands"):
        extend.defvjp(mix, None, None, None)
    with pytest.raises(rg.DTypeError, match="is no rule"):
        extend.defjvp(mix, None, "linear")


def test_ops_of_any_number_of_operands_come_back_from_files() -> None:
    g = rg.Graph()
    y = mix(g.param([2.0, 3.0]), g.input(A, name="a"), g.input(A), power=2)
    y.name = "y"
    h = there_and_back(g)
    assert_same_graph(g, h)


def test_a_spec_takes_dtypes_in_any_form() -> None:
    forms: list[Any] = [np.float64, float, np.dtype("f8"), np.dtype(">f8"), "float64"]
    first, *others = [rg.extend.spec((2,), form) for form in forms]
    assert all(other is first for other in others)
