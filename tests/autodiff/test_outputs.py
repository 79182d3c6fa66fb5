"""Several outputs a node: split, unbind, functions; each output has a version of its own."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.functions import CALLS, SinCos, ends, polar, polar_vjp, to_polar
from tests.io.files import assert_same_graph, there_and_back


@pytest.fixture(autouse=True)
def _fresh_counts() -> None:
    CALLS.clear()


# --- split, unbind -------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("where", [2, np.int32(2), [1], np.array([1, 3]), [2, 2], [-1], [0, 9], ()])
def test_split_is_numpys(where: Any, axis: int) -> None:
    a = np.arange(16.0).reshape(4, 4)
    x = rg.Graph().input(a)
    expected = np.split(a, where, axis)
    for parts in (rg.split(x, where, axis=axis), np.split(x, where, axis)):
        assert len(parts) == len(expected)
        for part, wanted in zip(parts, expected, strict=True):
            assert part.shape == wanted.shape
            np.testing.assert_array_equal(part.value, wanted)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unbind_gives_each_element_of_an_axis(axis: int) -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = rg.Graph().input(a)
    parts = rg.unbind(x, axis=axis)
    assert len(parts) == a.shape[axis]
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part.value, np.take(a, i, axis))
    if hasattr(np, "unstack"):
        assert [p.shape for p in np.unstack(x, axis=axis)] == [p.shape for p in parts]


def test_parts_are_views_and_have_versions_of_their_own() -> None:
    g = rg.Graph()
    x = g.input(np.arange(60_000.0))
    low, high = rg.split(x * 2.0, 2)
    _ = low.value, high.value
    buffers = g._host.data
    assert np.shares_memory(buffers[low._slot], buffers[low.parents[0]._slot])
    assert np.shares_memory(buffers[high._slot], buffers[low.parents[0]._slot])
    high.cutoff = "equal"
    total = high.sum()
    assert total.value == 2 * np.arange(30_000.0, 60_000.0).sum()
    with x.mutate() as a:
        a[0] = 7.0
    versions = low.value_version, high.value_version
    run = g.forward(low, total)
    assert total not in run.ran  # the upper half is what it was
    assert (low.value_version, high.value_version) == (versions[0] + 1, versions[1])
    g.check_invariants()


def test_split_follows_a_new_length_also_in_its_gradient() -> None:
    x = rg.Graph().input(np.arange(4.0))
    a, b = rg.split(x, 2)
    first, rest = rg.split(x, [1])
    d = rg.grad((a * b).sum() + first.sum() * 10.0 + rest.sum(), x)
    np.testing.assert_array_equal(d.value, [2 + 10, 3 + 1, 0 + 1, 1 + 1])
    x.set(np.arange(6.0))
    assert a.shape == (3,)
    assert rest.shape == (5,)
    np.testing.assert_array_equal(d.value, [3 + 10, 4 + 1, 5 + 1, 0 + 1, 1 + 1, 2 + 1])
    with pytest.raises(rg.ShapeError, match=r"2 equal parts.*length 5.*rg\.split\(x, \[2, 5\]\)"):
        x.set(np.arange(5.0))
    assert x.shape == (6,)


def test_unknown_length() -> None:
    x = rg.Graph().input(shape=(None, 2), dtype="f8")
    a, b = rg.split(x, 2)
    left, right = rg.unbind(x, axis=1)
    assert (a.shape, left.shape) == ((None, 2), (None,))
    loss = (a * b).sum() + (left * right).sum()
    x.set([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(rg.grad(loss, x).value, [[3 + 2, 4 + 1], [1 + 4, 2 + 3]])
    with pytest.raises(rg.ShapeError, match="not known before its input is set"):
        rg.unbind(rg.Graph().input(shape=(None, 2), dtype="f8"))


def test_split_and_unbind_to_second_order() -> None:
    def f(x: Any) -> Any:
        a, b, c = rg.split(x, [1, 3], axis=1)
        rows = rg.unbind(x)
        return rg.sin(a) * b.sum(axis=1, keepdims=True) + c**2 * rows[1].sum() + rows[0][0] * a

    rg.testing.check_grads(f, [np.linspace(0.2, 1.9, 8).reshape(2, 4)])


def test_parts_of_a_functions_result() -> None:
    x = rg.Graph().input([1.0, 2.0, 3.0, 4.0])
    y = rg.lift(lambda a: a * 3.0, vjp=lambda g, ans, a: g * 3.0)(x)
    a, b = rg.split(y, 2)
    np.testing.assert_array_equal(rg.grad((a * b).sum(), x).value, [27.0, 36.0, 9.0, 18.0])


BAD: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no equal parts": (lambda x: rg.split(x, 3), ValueError, r"3 equal parts.*length 4"),
    "no parts": (lambda x: rg.split(x, 0), TypeError, "at least one"),
    "a Var": (lambda x: rg.split(x, x), TypeError, "at which indices to cut"),
    "a Var of one integer": (
        lambda x: rg.split(x, x.graph.input(2)),
        TypeError,
        "shapes would depend on its value",
    ),
    "a word": (lambda x: rg.split(x, "ab"), TypeError, "at which indices to cut"),
    "no axis": (lambda x: rg.split(x, 2, axis=1), IndexError, "axis 1 does not exist"),
    "a number": (lambda x: rg.split(x.sum(), 1), IndexError, "no axes"),
    "unbind no axis": (lambda x: rg.unbind(x, axis=2), IndexError, "axis 2 does not exist"),
    "unbind a word": (lambda x: rg.unbind(x, axis="a"), TypeError, "axis=.a.; it is an integer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_parts_say_why(name: str) -> None:
    act, builtin, words = BAD[name]
    with pytest.raises(builtin, match=words) as caught:
        act(rg.Graph().input(np.arange(4.0)))
    assert isinstance(caught.value, rg.ReactgradError)


def test_unbind_refuses_another_length() -> None:
    x = rg.Graph().input(np.arange(3.0))
    parts = rg.unbind(x)
    with pytest.raises(rg.ShapeError, match="unbind took 3 parts.*Unbind it again"):
        x.set(np.arange(4.0))
    assert [p.item() for p in parts] == [0.0, 1.0, 2.0]


# --- functions with several outputs --------------------------------------------------------------


def test_function_runs_once_for_all_its_outputs(g: rg.Graph) -> None:
    x, y = g.input(3.0), g.input(4.0)
    radius, angle = to_polar(x, y)
    assert CALLS["polar"] == 0
    assert (radius.value, angle.value) == (5.0, np.arctan2(4.0, 3.0))
    assert CALLS["polar"] == 1
    assert [v.name for v in (radius, angle, radius.parents[0])] == [
        "polar[0]_4",
        "polar[1]_5",
        "polar_3",
    ]
    assert radius.parents[0] is angle.parents[0]
    x.set(0.0)
    run = g.forward(radius)
    assert len(run.ran) == 2
    assert angle.is_stale
    assert len(g.forward(angle).ran) == 1
    assert CALLS["polar"] == 2
    g.check_invariants()


def test_consumers_of_an_output_that_stays_do_not_run(g: rg.Graph) -> None:
    x = g.input([3.0, 1.0, 2.0])
    low, high = rg.lift(ends, outputs=2, cutoff="equal")(x)
    below, above = low * 10.0, high * 10.0
    assert (below.value, above.value) == (10.0, 30.0)
    x.set([4.0, 1.0, 2.0])
    run = g.forward(below, above)
    assert [v in run.ran for v in (low.parents[0], low, high, below, above)] == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert low in run.cut_off
    assert high not in run.cut_off
    assert (low.value_version, high.value_version) == (1, 2)
    assert above.value == 40.0
    high.cutoff = None
    x.touch()
    assert g.forward(below, above).ran[-1] is above
    g.check_invariants()


def test_gradient_is_asked_for_once_for_all_outputs() -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    radius, angle = to_polar(x, y)
    loss = radius * 2.0 + angle * 3.0
    dx, dy = rg.grad(loss, [x, y])
    assert CALLS["polar_vjp"] == 1
    np.testing.assert_allclose(
        [dx.value, dy.value], [2 * 3 / 5 - 3 * 4 / 25, 2 * 4 / 5 + 3 * 3 / 25]
    )
    x.set(4.0)
    y.set(3.0)
    np.testing.assert_allclose(
        [dx.value, dy.value], [2 * 4 / 5 - 3 * 3 / 25, 2 * 3 / 5 + 3 * 4 / 25]
    )
    assert CALLS["polar_vjp"] == 1  # it built nodes, which follow
    g.check_invariants()


@pytest.mark.parametrize("used", [0, 1])
def test_unused_output_has_no_gradient(used: int) -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    seen: list[Any] = []

    def rule(up: Any, ans: Any, *args: Any) -> Any:
        seen.append([one is None for one in up])
        return [up[used] * 2.0, None]

    out = rg.lift(lambda a, b: (a, b), outputs=2, vjp=rule)(x, y)
    assert rg.grad(out[used] * 1.0, x).value == 2.0
    assert seen == [[i != used for i in range(2)]]


def test_outputs_that_nobody_holds_any_more() -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    radius = to_polar(x, y)[0]
    d = rg.grad(radius, x)
    assert d.value == 0.6
    del radius
    x.set(4.0)
    np.testing.assert_allclose(d.value, np.sqrt(0.5))
    angle = to_polar(x, y)[1]
    # Its rule uses the radius, whose node went.
    np.testing.assert_allclose(rg.grad(angle, x).value, -4.0 / 32.0)
    gc.collect()
    g.check_invariants()


def test_function_with_several_outputs_to_second_order() -> None:
    def f(x: Any, y: Any) -> Any:
        radius, angle = to_polar(x, y)
        return radius * rg.sin(angle * 2.0) + angle * angle

    rg.testing.check_grads(f, [[1.2, 0.7], [0.4, 1.5]])


@pytest.mark.slow
def test_thousand_gradients_grow_nothing() -> None:
    g = rg.Graph()
    x, y = g.param(3.0), g.param(4.0)
    radius, angle = to_polar(x, y)
    loss = radius * angle
    sizes = set()
    for i in range(1000):
        g.set({x: 1.0 + i * 0.001, y: 2.0})
        loss.backward()
        if i in (5, 500, 999):
            gc.collect()
            sizes.add(len(g))
    assert len(sizes) == 1
    assert CALLS["polar_vjp"] == 1
    assert CALLS["polar"] == 1000
    for _ in range(50):
        rg.grad(sum(to_polar(x, y)), x).value  # built anew, and dropped
    gc.collect()
    assert len(g) in sizes


def test_repeated_backward_creates_no_node_and_runs_nothing() -> None:
    g = rg.Graph()
    x = g.param([0.3, 0.8])
    sine, cosine = SinCos.apply(x)
    loss = (sine * 2.0 + cosine).sum()
    loss.backward()
    size = len(g)
    assert len(loss.backward().ran) == 0
    assert len(g) == size
    np.testing.assert_allclose(x.grad, 2 * (2 * np.cos(x.value) - np.sin(x.value)))


def test_declared_outputs_have_shapes_before_anything_runs() -> None:
    g = rg.Graph()
    x = g.input([3.0, 1.0])
    f = rg.lift(
        lambda a: (a * 2.0, a.astype("f4").sum()),
        outputs=2,
        shape=[(2,), ()],
        dtype=[None, "f4"],
    )
    double, total = f(x)
    assert (double.shape, double.dtype, total.shape, total.dtype) == (
        (2,),
        np.dtype("f8"),
        (),
        np.dtype("f4"),
    )
    assert g.plan(double).nodes
    with pytest.raises(rg.ShapeError):
        double + np.ones(3)
    np.testing.assert_array_equal((double + total).value, [10.0, 6.0])
    x.set([1.0, 1.0])
    np.testing.assert_array_equal((double + total).value, [4.0, 4.0])
    wrong, _ = rg.lift(lambda a: (a[:1], a), outputs=2, shape=[(2,), (2,)])(x)
    with pytest.raises(rg.ShapeError, match=r"\[0\] declared to return float64\[2\]"):
        wrong.value


def test_values_are_safe_to_keep() -> None:
    """A function that goes on using its arrays cannot change what it has returned."""
    mine = np.zeros(3), np.ones(3)
    cache = [mine]
    g = rg.Graph()
    x = g.input(1.0)

    def f(a: Any) -> Any:
        return cache[0]

    first, second = rg.lift(f, outputs=2)(x)
    kept = first.value, second.value
    mine[0][:] = 5.0
    np.testing.assert_array_equal(kept[0], np.zeros(3))
    np.testing.assert_array_equal(first.value, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0] = 1.0
    same, again = rg.lift(lambda a: (a, a), outputs=2)(g.input(np.arange(3.0)))
    np.testing.assert_array_equal(same.value, again.value)
    big = rg.lift(lambda a: (np.full(10_000, a), None), outputs=2)(x)[0]
    assert big.value.base is not None
    node = big.parents[0].value[0]
    assert node is big.value  # the same array, not a copy


def test_outputs_may_be_any_objects() -> None:
    g = rg.Graph()
    x = g.input(2)
    words, count, nothing = rg.lift(lambda n: [["a"] * n, n, None], outputs=3)(x)
    assert (words.value, count.value, nothing.value) == (["a", "a"], 2, None)
    x.set(1)
    assert (words.value, count.value, nothing.value) == (["a"], 1, None)


RETURNS: dict[str, tuple[Any, str]] = {
    "too many": ((1, 2, 3), r"outputs=2 and returned 3 values"),
    "too few": ((1,), r"returned 1 values"),
    "no tuple": (np.zeros(2), r"returned ndarray.*Return a tuple of 2"),
    "none": (None, r"returned NoneType"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_wrong_number_of_outputs(name: str) -> None:
    result, words = RETURNS[name]
    a, b = rg.lift(lambda x: result, outputs=2)(rg.Graph().input(1.0))
    for one in (a, b, a):
        with pytest.raises(rg.ShapeError, match=words):
            one.value


def test_failing_function_fails_its_outputs_once() -> None:
    g = rg.Graph()
    x = g.input(-1.0)

    def f(a: Any) -> Any:
        CALLS["failing"] += 1
        if a < 0:
            raise KeyError("negative")
        return a, -a

    a, b = rg.lift(f, outputs=2)(x)
    for one in (a, b):
        with pytest.raises(KeyError):
            one.value
    assert CALLS["failing"] == 1
    x.set(1.0)
    assert (a.value, b.value) == (1.0, -1.0)


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_number_of_outputs_is_one(count: Any) -> None:
    with pytest.raises(rg.DTypeError, match="at least 1"):
        rg.lift(polar, outputs=count)


def test_declare_one_shape_for_each_output() -> None:
    with pytest.raises(rg.ShapeError, match="one for each output"):
        rg.lift(polar, outputs=2, shape=(3,))


# --- the rest of the engine ----------------------------------------------------------------------


def test_pin_one_output() -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    radius, angle = to_polar(x, y)
    loss = radius * 10.0 + angle
    d = rg.grad(loss, x)
    radius.pin(7.0)
    assert loss.value == 70.0 + np.arctan2(4.0, 3.0)
    np.testing.assert_allclose(d.value, -4.0 / 25.0)
    x.set(0.0)
    assert loss.value == 70.0 + np.arctan2(4.0, 0.0)
    radius.unpin()
    assert loss.value == 40.0 + np.arctan2(4.0, 0.0)
    np.testing.assert_allclose(d.value, -4.0 / 16.0)
    g.check_invariants()


def test_touch_of_an_output_runs_its_function() -> None:
    g = rg.Graph()
    radius, angle = to_polar(g.input(3.0), g.input(4.0))
    assert radius.value == 5.0
    radius.touch()
    assert angle.value == np.arctan2(4.0, 3.0)
    assert CALLS["polar"] == 2


def test_fork_has_outputs_of_its_own() -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    radius, angle = to_polar(x, y)
    dx = rg.grad(radius * angle, x)
    before = dx.value
    h = g.fork()
    h[x].set(0.0)
    assert (h[radius].value, h[angle].value) == (4.0, np.pi / 2)
    assert (radius.value, dx.value) == (5.0, before)
    np.testing.assert_allclose(h[dx].value, -4.0 / 16.0 * 4.0)
    assert CALLS["polar"] == 2
    with g.whatif({y: 0.0}) as w:
        assert (w[radius].value, w[angle].value) == (3.0, 0.0)
    for one in (g, h):
        one.check_invariants()


def test_edit_of_an_operand_of_the_function() -> None:
    g = rg.Graph()
    x, y, z = g.input(3.0), g.input(4.0), g.input(0.0)
    radius, angle = to_polar(x, y)
    d = rg.grad(radius + angle, z, allow_unused=True)
    assert d is None
    radius.parents[0].replace_parent(0, z)
    assert (radius.value, angle.value) == (4.0, np.pi / 2)
    np.testing.assert_allclose(rg.grad(radius + angle, z).value, 0.0 - 4.0 / 16.0)
    with pytest.raises(rg.EditError, match="one output of a function"):
        angle.replace_parent(0, z)
    with pytest.raises(rg.CycleError, match=r"polar\[0\]"):
        radius.parents[0].replace_parent(0, radius)
    g.check_invariants()


def test_edit_that_uses_another_output_or_uses_it_no_more() -> None:
    """The rule must be asked again: it gets a gradient where it had none, and the other way round."""
    g = rg.Graph()
    x, y, k = g.input(3.0), g.input(4.0), g.input(1.0)
    radius, angle = to_polar(x, y)
    loss = radius * 2.0 + k
    d = rg.grad(loss, x)
    by_radius, by_angle = 3.0 / 5.0, -4.0 / 25.0
    for _ in range(2):
        np.testing.assert_allclose(d.value, 2 * by_radius)
        loss.replace_parent(1, angle)
        np.testing.assert_allclose(d.value, 2 * by_radius + by_angle)
        loss.parents[0].replace_parent(0, k)
        np.testing.assert_allclose(d.value, by_angle)
        loss.parents[0].replace_parent(0, radius)
        loss.replace_parent(1, k)
    gc.collect()
    g.check_invariants()


def test_gradient_of_one_output_becomes_another_node() -> None:
    """The rule of the function must be asked again, though its own operands have not changed."""
    g = rg.Graph()
    x, y, k = g.input(3.0), g.input(4.0), g.input(1.0)
    radius, angle = rg.lift(polar, outputs=2, vjp=polar_vjp, shape=[(), ()])(x, y)
    inner = angle + k  # the gradient of the angle is that of this sum, the same node
    loss = radius * 2.0 + inner * 5.0
    other = k * 7.0
    total = loss + other
    d, by_radius = rg.grad(total, (x, radius))
    np.testing.assert_allclose(d.value, 2 * 3.0 / 5.0 - 5 * 4.0 / 25.0)
    assert by_radius.value == 2.0
    gc.collect()
    CALLS.clear()
    other.replace_parent(0, angle)
    assert rg.grad(total, x) is d
    np.testing.assert_allclose(d.value, 2 * 3.0 / 5.0 - 12 * 4.0 / 25.0)
    assert CALLS["polar_vjp"] == 1
    assert not by_radius.is_stale
    k.set(2.0)
    assert not g.forward(d).ran
    g.check_invariants()


def test_edit_elsewhere_asks_no_rule_again() -> None:
    """Between the output and the function, and behind it: its contributions stay (rule D9)."""
    g = rg.Graph()
    x, y, k = g.input(3.0), g.input(4.0), g.input(1.0)
    before = x * k
    radius, angle = to_polar(before, y)
    loss = radius * 2.0 + angle * 5.0
    d, dy = rg.grad(loss, (x, y))
    _ = d.value, dy.value
    gc.collect()
    CALLS.clear()
    before.replace_parent(1, y)
    assert not dy.is_stale or dy.value is not None
    np.testing.assert_allclose(d.value, 4 * (2 * 12 / np.hypot(12, 4) - 5 * 4 / (144 + 16)))
    loss.parents[0].replace_parent(1, k)
    np.testing.assert_allclose(d.value, 4 * (1 * 12 / np.hypot(12, 4) - 5 * 4 / (144 + 16)))
    assert CALLS["polar_vjp"] == 0
    g.check_invariants()


def test_no_grad_and_detach_stop_at_the_function() -> None:
    g = rg.Graph()
    x, y = g.param(3.0), g.param(4.0)
    with rg.no_grad():
        blind = to_polar(x, y)
    assert not blind[0].requires_grad
    radius, angle = to_polar(x.detach(), y)
    (radius + angle).backward()
    assert x.grad is None
    np.testing.assert_allclose(y.grad, 4 / 5 + 3 / 25)
    assert rg.grad(radius.detach() * x, y, allow_unused=True) is None


def test_saved_graph_keeps_versions_and_goes_on_alike() -> None:
    g = rg.Graph()
    x, y = g.input(3.0, name="x"), g.input(4.0, name="y")
    radius, angle = to_polar(x, y)
    radius.name, angle.name = "radius", "angle"
    angle.cutoff = "equal"
    low, high = rg.lift(ends, outputs=2, shape=[(), ()])(g.input([1.0, 2.0], name="v"))
    g.keep(low)
    high.name = "high"
    _ = radius.value, angle.value, low.value, high.value
    x.set(0.0)
    h = there_and_back(g)
    assert_same_graph(g, h)
    assert h["radius"].is_stale
    assert not h["high"].is_stale
    assert h["high"].value == 2.0
    CALLS.clear()
    assert (h["radius"].value, h["angle"].value) == (4.0, np.pi / 2)
    h["v"].set([5.0, 6.0])
    assert h["high"].value == 6.0
    assert CALLS == {"polar": 1, "ends": 1}
    np.testing.assert_allclose(rg.grad(h["radius"] + h["angle"], h["x"]).value, -4.0 / 16.0)


def test_loaded_function_runs_again_only_where_another_output_is_asked_for() -> None:
    g = rg.Graph()
    radius = to_polar(g.input(3.0, name="x"), g.input(4.0, name="y"))[0]
    radius.name = "radius"
    _ = radius.value
    h = there_and_back(g)
    CALLS.clear()
    assert h["radius"].value == 5.0
    assert not CALLS
    np.testing.assert_allclose(rg.grad(h["radius"], h["x"]).value, 0.6)
    assert CALLS["polar"] == 0


def test_released_values_are_computed_again_at_their_versions() -> None:
    g = rg.Graph()
    x, y = g.param(3.0), g.param(4.0)
    radius, angle = to_polar(x, y)
    loss = radius * angle
    loss.backward(retain_graph=False)
    version = radius.value_version
    run = g.forward(radius)
    assert [v.name for v in run.rebuilt] == ["polar_3", "polar[0]_4"]
    assert (radius.value, radius.value_version) == (5.0, version)
    loss.backward()
    g.check_invariants()


def test_tuple_itself_has_no_gradient() -> None:
    g = rg.Graph()
    x, y = g.param(3.0), g.param(4.0)
    radius, _ = to_polar(x, y)
    node = radius.parents[0]
    for act in (lambda: rg.grad(node, x), lambda: rg.grad(radius, node), lambda: node.backward()):
        with pytest.raises(rg.GradientError, match="several outputs at once"):
            act()
    sums = rg.lift(lambda pair: pair[0] + pair[1], vjp=lambda g, ans, pair: g)(node)
    with pytest.raises(rg.GradientError, match="no gradient passes a tuple"):
        rg.grad(sums * 1.0, x)
    assert rg.grad(radius, x).value == 0.6


@pytest.mark.parametrize(
    ("what", "use"),
    [
        ("multiply", lambda node: node * 2.0),
        ("stack", lambda node: rg.stack([node, 1.0])),
        ("alias|detach|scale", lambda node: node.scale_grad(0.5)),
        ("detach", lambda node: node.detach_node()),
        ("snapshot", lambda node: node.snapshot()),
        ("retain_grad", lambda node: node.retain_grad()),
        ("register_hook", lambda node: node.register_hook(lambda gradient: gradient)),
    ],
)
@pytest.mark.parametrize("run", [False, True])
def test_tuple_behind_the_outputs_is_no_array(
    what: str, use: Callable[[Any], Any], run: bool
) -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0], name="x")
    first, second = rg.split(x, 2)
    half = rg.lift(divmod, outputs=2, vjp=lambda g, ans, a, b: (g[0], None))(x, 2.0)
    half[0].name = "quotient"
    node = half[0].parents[0]
    if run:
        node.value
    before = len(g)
    with pytest.raises(rg.DTypeError, match=f"(?s)({what}).*all outputs.*'quotient' and 'half"):
        use(node)
    assert len(g) == before
    half[0].sum().backward()
    assert np.array_equal(np.asarray(x.grad), [1.0, 1.0])
    assert (first + second).value == [3.0]
    both = rg.lift(lambda pair: pair[0].sum() + pair[1].sum())(node)
    assert both.value == 1.0 + 1.0, "a function may have it"


def test_outputs_of_a_function_that_reads_other_nodes() -> None:
    g = rg.Graph()
    x, k = g.input(2.0), g.input(10.0)
    double, scaled = rg.lift(lambda a: (a * 2, a * k.value), outputs=2)(x)
    assert (double.value, scaled.value) == (4.0, 20.0)
    k.set(100.0)
    assert scaled.value == 200.0
    g.check_invariants()


def test_outputs_inside_a_transaction() -> None:
    g = rg.Graph()
    x, y = g.input(3.0), g.input(4.0)
    radius, _ = to_polar(x, y)
    assert radius.value == 5.0
    with pytest.raises(KeyError):
        with g.transaction():
            x.set(0.0)
            assert radius.value == 4.0
            raise KeyError
    assert radius.value == 5.0


def test_observers_hear_of_the_outputs_that_changed() -> None:
    g = rg.Graph()
    x = g.input([3.0, 1.0])
    low, high = rg.lift(ends, outputs=2, cutoff="equal")(x)
    heard: list[str] = []
    watch = [
        low.observe(lambda old, new: heard.append("low")),
        high.observe(lambda old, new: heard.append("high")),
    ]
    g.stabilize()
    heard.clear()
    x.set([9.0, 1.0])
    g.stabilize()
    assert heard == ["high"]
    del watch


def test_why_names_the_function_behind_an_output() -> None:
    g = rg.Graph()
    x = g.input(3.0, name="x")
    radius, _ = to_polar(x, 4.0 + 0.0 * x)
    _ = radius.value
    x.set(1.0)
    text = str(g.why(radius))
    assert text.startswith("radius is stale")
    assert "x -> polar_" in text
    assert "output 'polar[0]'" in repr(radius)
