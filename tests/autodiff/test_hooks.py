"""Hooks on gradients and after backward (rule D12): what they see, when, and what they may do."""

from __future__ import annotations

import gc
import random
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.hooked import REPLACING, clip_by_norm, two


@pytest.mark.parametrize("name", REPLACING)
@pytest.mark.parametrize("where", ["leaf", "intermediate", "output"])
def test_a_hook_replaces_the_gradient(name: str, where: str) -> None:
    hook, expected = REPLACING[name]
    g = rg.Graph()
    w = g.param([5.0, 6.0])
    h = w * 1.0
    y = h * 1.0
    {"leaf": w, "intermediate": h, "output": y}[where].register_hook(hook)
    y.backward(gradient=[3.0, -4.0])
    np.testing.assert_allclose(w.grad, expected)
    np.testing.assert_allclose(rg.grad(y, w, gradient=[3.0, -4.0]).value, expected)
    assert w.grad.dtype == np.float64


def test_a_hook_sees_the_sum_of_all_consumers_once() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    seen: list[Any] = []
    h = w * 1.0
    h.register_hook(seen.append)
    (h * 3.0 + h * 4.0 + h**2).backward()
    assert seen == [3.0 + 4.0 + 4.0]
    assert w.grad == 11.0


def test_what_is_before_sees_the_replaced_gradient_and_what_is_behind_does_not() -> None:
    w, v, h, loss = two()
    h.retain_grad()
    h.register_hook(lambda g: g * 10.0)
    double = rg.grad(loss, [h, w, v, loss])
    loss.backward()
    np.testing.assert_array_equal(h.grad, [60.0, 160.0])  # after the hooks, as in PyTorch
    np.testing.assert_array_equal(w.grad, [180.0, 640.0])
    np.testing.assert_array_equal(v.grad, [60.0, 320.0])
    for d, found in zip(double, (h.grad, w.grad, v.grad, 1.0), strict=True):
        np.testing.assert_array_equal(d.value, found)


def test_hooks_follow_each_other_in_order_of_registration() -> None:
    g = rg.Graph()
    w = g.param(1.0)
    y = w * 1.0
    order: list[tuple[str, float]] = []

    def first(g: Any) -> Any:
        order.append(("first", float(g)))
        return g + 1.0

    def second(g: Any) -> Any:
        order.append(("second", float(g)))
        return g * 10.0

    def after(w: Any) -> None:
        order.append(("after", float(w.grad)))

    w.register_post_accumulate_grad_hook(after)
    w.register_hook(first)
    y.register_hook(lambda g: order.append(("consumer", float(g))))
    w.register_hook(second)
    w.register_hook(lambda g: order.append(("third", float(g))))
    y.backward()
    assert order == [
        ("consumer", 1.0),
        ("first", 1.0),
        ("second", 2.0),
        ("third", 20.0),
        ("after", 20.0),
    ]
    order.clear()
    y.backward()
    assert order[-2:] == [("third", 20.0), ("after", 40.0)]  # before adding up, and after


def test_a_hook_gets_a_read_only_array_of_the_nodes_shape_and_dtype() -> None:
    g = rg.Graph()
    w = g.param(np.ones((2, 3), np.float32))
    seen: list[Any] = []
    w.register_hook(seen.append)
    y = (w * 2.0).sum()
    y.backward()
    (first,) = seen
    assert type(first) is np.ndarray
    assert first.dtype == np.float32
    assert first.shape == (2, 3)
    assert not first.flags.writeable
    w.set(np.zeros((2, 3)))
    (w * w).sum().backward()
    np.testing.assert_array_equal(first, np.full((2, 3), 2.0))  # what it kept stays
    scalar = g.param(1.0)
    scalar.register_hook(seen.append)
    (scalar * 3.0).backward()
    assert type(seen[-1]) is np.float64


def test_a_gradient_that_is_zero_everywhere_is_zeros_to_a_hook() -> None:
    g = rg.Graph()
    w = g.param([1.0, -2.0])
    flat = rg.sign(w)
    seen: list[Any] = []
    unneeded: list[Any] = []
    w.register_hook(seen.append)
    flat.register_hook(unneeded.append)
    loss = (flat * 3.0).sum()
    loss.backward()
    np.testing.assert_array_equal(seen, [[0.0, 0.0]])
    assert unneeded == []  # nothing is computed from that gradient, so it is not computed either
    w.register_hook(lambda g: g + 7.0)
    w.zero_grad()
    loss.backward()
    np.testing.assert_array_equal(w.grad, [7.0, 7.0])
    np.testing.assert_array_equal(rg.grad(loss, flat).value, [3.0, 3.0])
    np.testing.assert_array_equal(unneeded, [[3.0, 3.0]])


def test_a_hook_on_what_gradients_do_not_reach_is_not_called() -> None:
    g = rg.Graph()
    w, v, frozen = g.param(2.0), g.param(3.0), g.param(4.0).freeze()
    behind = w * 1.0
    calls: list[Any] = []
    for node in (behind, w, frozen):
        node.register_hook(calls.append)
    loss = behind.detach() * v * frozen
    loss.backward()
    assert calls == []
    assert v.grad == 8.0
    frozen.unfreeze()
    loss.backward()
    assert calls == [6.0]


def test_hooks_on_a_choice_and_on_a_functions_result() -> None:
    g = rg.Graph()
    x, w = g.input(True), g.param([1.0, 2.0])
    h = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: (g * 2.0,))(w)
    y = rg.switch(x, h, w)
    y.register_hook(lambda g: g * 10.0)
    h.register_hook(lambda g: g + 1.0)
    loss = y.sum()
    loss.backward()
    np.testing.assert_array_equal(w.grad, [22.0, 22.0])
    w.zero_grad()
    x.set(False)
    loss.backward()
    np.testing.assert_array_equal(w.grad, [12.0, 12.0])


# --- when it is called ----------------------------------------------------------------------------


def test_every_backward_calls_it_and_a_read_only_where_it_is_stale() -> None:
    w, _, h, loss = two()
    calls: list[Any] = []
    h.register_hook(lambda g: calls.append(g))
    d = rg.grad(loss, w)
    assert calls == []  # nothing was read
    d.value
    d.value
    assert len(calls) == 1
    loss.backward()
    for n in (3, 4):
        run = loss.backward()
        assert len(calls) == n
        # It left the gradient as it was: what is computed from it is not computed again.
        assert len(run.ran) == 1
        assert run.ran == run.cut_off
    d.value
    assert len(calls) == 4
    w.set([5.0, 6.0])
    d.value
    assert len(calls) == 5


def test_what_a_hook_changes_is_computed_again_and_nothing_else() -> None:
    w, _, h, loss = two()
    factors = iter([1.0, 2.0])
    h.register_hook(lambda g: g * next(factors))
    whole = loss.backward()
    part = loss.backward()
    np.testing.assert_array_equal(w.grad, [18.0 + 36.0, 64.0 + 128.0])
    assert len(part.ran) == 3  # the hook, and the gradients of w and v
    assert len(whole.ran) > 3


@pytest.mark.slow
def test_repeating_a_backward_with_hooks_creates_no_node() -> None:
    w, _, h, loss = two()
    h.register_hook(lambda g: g * 2.0)
    w.register_hook(lambda g: None)
    loss.backward()
    count, serial = len(w.graph), w.graph._scheduler.topology.next_serial
    for i in range(1000):
        w.set([float(i), 1.0])
        loss.backward()
    assert (len(w.graph), w.graph._scheduler.topology.next_serial) == (count, serial)
    w.graph.check_invariants()


def test_without_hooks_there_is_no_node_of_theirs() -> None:
    w, _, h, loss = two()
    loss.backward()
    count = len(w.graph)
    with h.register_hook(lambda g: g * 2.0), w.register_hook(lambda g: None):
        assert len(w.graph) > count
        loss.backward()
    before = w.grad
    run = loss.backward()
    np.testing.assert_array_equal(w.grad - before, [18.0, 64.0])
    assert not any("hook" in node.name for node in w.graph.nodes)
    assert not any("hook" in node.name for node in run.ran)


def test_what_a_hook_reads_is_depended_on() -> None:
    g = rg.Graph()
    w, limit = g.param(2.0), g.input(1.0, name="limit")
    w.register_hook(lambda g: min(g, limit.value))
    d = rg.grad(w**3, w)
    assert d.value == 1.0
    limit.set(5.0)
    assert d.is_stale
    assert d.value == 5.0
    limit.set(50.0)
    assert d.value == 12.0


def test_a_hook_may_compute_with_vars() -> None:
    """A factor that follows a schedule: a change runs the gradient, and not the forward nodes."""
    g = rg.Graph()
    w, factor = g.param([1.0, 2.0]), g.input(0.5)
    h = w * 1.0
    h.register_hook(lambda g: g * factor)
    loss = (h**2).sum()
    loss.value
    d = rg.grad(loss, w)
    np.testing.assert_array_equal(d.value, [1.0, 2.0])
    sizes = set()
    for i in range(20):
        factor.set(float(i))
        assert not loss.is_stale
        np.testing.assert_array_equal(d.value, [2.0 * i, 4.0 * i])
        sizes.add(len(g))
    assert len(sizes) == 1
    np.testing.assert_array_equal(rg.grad(d.sum(), w).value, [2.0 * 19 * 19] * 2)
    factor.set(3.0)
    np.testing.assert_array_equal(rg.grad(d.sum(), w).value, [18.0, 18.0])


# --- registering and removing is an edit ----------------------------------------------------------


def test_gradients_that_are_there_follow_registering_and_removing() -> None:
    w, v, h, loss = two()
    d = rg.grad(loss, w)
    before = d.value
    first = h.register_hook(lambda g: g * 2.0)
    assert d.is_stale
    assert rg.grad(loss, w) is d
    np.testing.assert_array_equal(d.value, before * 2)
    second = h.register_hook(lambda g: g + 1.0)
    np.testing.assert_array_equal(d.value, before * 2 + v.value)
    first.remove()
    np.testing.assert_array_equal(d.value, before + v.value)
    first.remove()  # gone already
    np.testing.assert_array_equal(d.value, before + v.value)
    second.remove()
    np.testing.assert_array_equal(d.value, before)
    w.graph.check_invariants()


def test_the_same_function_twice_is_two_hooks() -> None:
    w = rg.Graph().param(1.0)
    double = lambda g: g * 2.0  # noqa: E731
    first, second = w.register_hook(double), w.register_hook(double)
    d = rg.grad(w * 1.0, w)
    assert d.value == 4.0
    second.remove()
    assert d.value == 2.0
    first.remove()
    assert d.value == 1.0


def test_a_with_block_ends_with_the_hook() -> None:
    w = rg.Graph().param(1.0)
    y = w * 3.0
    with pytest.raises(KeyError):
        with w.register_hook(lambda g: g * 2.0) as handle:
            assert isinstance(handle, rg.HookHandle)
            assert rg.grad(y, w).value == 6.0
            raise KeyError
    assert rg.grad(y, w).value == 3.0
    with w.register_post_accumulate_grad_hook(lambda w: w.zero_grad()):
        y.backward()
        assert w.grad is None
    y.backward()
    assert w.grad == 3.0


def test_a_transaction_takes_a_hook_back() -> None:
    w, _, h, loss = two()
    kept = h.register_hook(lambda g: g * 2.0)
    d = rg.grad(loss, w)
    before = d.value
    with pytest.raises(KeyError):
        with w.graph.transaction():
            kept.remove()
            h.register_hook(lambda g: g * 100.0)
            w.register_post_accumulate_grad_hook(lambda w: w.zero_grad())
            assert (d.value > before).all()
            raise KeyError
    np.testing.assert_array_equal(d.value, before)
    loss.backward()
    np.testing.assert_array_equal(w.grad, before)
    kept.remove()
    np.testing.assert_array_equal(d.value, before / 2)


def test_forks_have_the_hooks_of_gradients_and_not_those_after_them() -> None:
    w, _, h, loss = two()
    handle = h.register_hook(lambda g: g * 2.0)
    w.register_post_accumulate_grad_hook(lambda w: w.zero_grad())
    d = rg.grad(loss, w)
    twin = w.graph.fork()
    twin[loss].backward()
    np.testing.assert_array_equal(twin[w].grad, [36.0, 128.0])
    handle.remove()  # of the original alone
    np.testing.assert_array_equal(d.value, [18.0, 64.0])
    np.testing.assert_array_equal(twin[d].value, [36.0, 128.0])
    np.testing.assert_array_equal(rg.grad(twin[h].sum(), twin[w]).value, [6.0, 8.0])


def test_hooks_are_not_saved(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="files need safetensors")
    w, _, h, loss = two()
    loss.name = "loss"
    h.register_hook(lambda g: g * 2.0)
    loss.backward()
    w.graph.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    np.testing.assert_array_equal(rg.grad(loaded["loss"], loaded["w"]).value, [18.0, 64.0])
    d = rg.grad(loss, w)
    with pytest.raises(rg.SaveError, match="hook_lambda on 'h'.*Remove the hook, or let go"):
        w.graph.save(tmp_path / "graph")
    del d


def test_hooks_follow_another_shape_and_another_operand() -> None:
    g = rg.Graph()
    x, w = g.input([1.0, 2.0]), g.param(3.0)
    h = x * w
    shapes: list[Any] = []
    h.register_hook(lambda g: shapes.append(g.shape))
    h.register_hook(lambda g: g * 2.0)
    loss = (h * h).sum()
    d = rg.grad(loss, w)
    assert d.value == 60.0
    x.set([1.0, 2.0, 3.0])
    assert d.value == 168.0
    h.replace_parent(0, g.input([1.0]))
    assert d.value == 12.0
    assert shapes == [(2,), (3,), (1,)]


def test_a_hook_lives_as_long_as_its_node() -> None:
    g = rg.Graph()

    class Logger:
        def __call__(self, g: Any) -> None: ...

    def hooked() -> Any:
        w = g.param(1.0)
        logger = Logger()
        handles = w.register_hook(logger), w.register_post_accumulate_grad_hook(logger)
        (w * 2.0).backward()
        return handles, weakref.ref(logger)

    handles, logger = hooked()
    gc.collect()
    fresh = [g.param(1.0) for _ in range(4)]  # in the slots of what is gone
    assert len(g) == len(fresh)
    for handle in handles:
        handle.remove()  # its node is gone: nothing to do
    del handles, handle
    gc.collect()
    assert logger() is None


def test_pinned_nodes_have_hooks() -> None:
    w, _, h, loss = two()
    h.register_hook(lambda g: g * 2.0)
    h.pin([1.0, 1.0])
    np.testing.assert_array_equal(rg.grad(loss, h).value, [4.0, 4.0])
    h.unpin()
    np.testing.assert_array_equal(rg.grad(loss, w).value, [36.0, 128.0])


@pytest.mark.parametrize("seed", range(30))
def test_after_any_edits_of_hooks_gradients_are_those_of_a_new_graph(seed: int) -> None:
    """First and second order, held and asked for anew, through sets, shapes and backwards."""
    rng = random.Random(seed)
    hooks = [lambda g: g * 2.0, lambda g: None, np.tanh, lambda g: g + 1.0, clip_by_norm]

    def build(value: Any, chosen: list[list[Any]]) -> Any:
        g = rg.Graph()
        w = g.param(value)
        a = rg.sin(w)
        b = a * w
        c = rg.tanh(a) + b[::-1]
        nodes = [w, a, b, c]
        handles = [
            [node.register_hook(h) for h in some] for node, some in zip(nodes, chosen, strict=True)
        ]
        loss = (c * b).sum()
        d = rg.grad(loss, w)
        return w, nodes, handles, loss, d, rg.grad((d * d).sum(), w)

    value, chosen = np.array([0.3, -0.8]), [[], [], [], []]
    w, nodes, handles, loss, d, dd = build(value, chosen)
    for _ in range(12):
        at, action = rng.randrange(4), rng.randrange(4)
        if action == 0:
            chosen[at].append(rng.choice(hooks))
            handles[at].append(nodes[at].register_hook(chosen[at][-1]))
        elif action == 1 and chosen[at]:
            which = rng.randrange(len(chosen[at]))
            del chosen[at][which]
            handles[at].pop(which).remove()
        elif action == 2:
            value = np.array([rng.uniform(-1, 1) for _ in range(rng.randint(1, 3))])
            w.set(value)
        else:
            loss.backward()
        if rng.random() < 0.6:
            _, _, _, _, fresh, second = build(value, chosen)
            assert d.value.tobytes() == fresh.value.tobytes()
            # Adjoints that an edit made are younger, and sums run in order of creation.
            np.testing.assert_allclose(dd.value, second.value, rtol=1e-12)
            w.zero_grad()
            loss.backward()
            assert w.grad.tobytes() == fresh.value.tobytes()
        w.graph.check_invariants()


# --- gradients of gradients -----------------------------------------------------------------------

DIFFERENTIABLE: dict[str, Any] = {
    "times two": lambda g: g * 2,
    "square": lambda g: g * g,
    "clip": lambda g: np.clip(g, -1.5, 1.5),
    "by norm": clip_by_norm,
    "constant": lambda g: np.ones(3),
    "nothing": lambda g: None,
    "itself": lambda g: g,
}


def to_torch(torch: Any) -> dict[str, Any]:
    return {
        "times two": lambda g: g * 2,
        "square": lambda g: g * g,
        "clip": lambda g: torch.clip(g, -1.5, 1.5),
        "by norm": lambda g: g / torch.clamp(torch.sqrt((g * g).sum()), min=1.0),
        "constant": lambda g: torch.ones(3, dtype=torch.float64),
        "nothing": lambda g: None,
        "itself": lambda g: g,
    }


@pytest.mark.parametrize("where", ["leaf", "intermediate"])
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_order_through_hooks_is_pytorchs(name: str, where: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    rng = np.random.default_rng(3)
    g = rg.Graph()
    w = g.param(np.zeros(3))
    h = w * 1.3
    loss = (rg.sin(h) * h * w).sum()
    (w if where == "leaf" else h).register_hook(DIFFERENTIABLE[name])
    d = rg.grad(loss, w)
    slope = (d * [1.0, -2.0, 3.0]).sum()
    dd = rg.grad(slope, w, allow_unused=True)
    for _ in range(3):  # clipped here and not there: the structure follows the values
        value = rng.normal(size=3)
        w.set(value)
        t = torch.tensor(value, requires_grad=True)
        u = t * 1.3
        (t if where == "leaf" else u).register_hook(to_torch(torch)[name])
        (first,) = torch.autograd.grad((torch.sin(u) * u * t).sum(), t, create_graph=True)
        np.testing.assert_allclose(d.value, first.detach().numpy(), rtol=1e-12)
        weights = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
        if first.requires_grad:
            (second,) = torch.autograd.grad((first * weights).sum(), t)
            np.testing.assert_allclose(dd.value, second.numpy(), rtol=1e-10, atol=1e-12)
        else:  # the first gradient is constant; ours is zeros, which the hook replaces again
            np.testing.assert_array_equal(dd.value, np.ones(3))


def test_third_order_through_a_hook() -> None:
    """L = w³ with a hook that squares: d = (3w²)², passing it again at each order."""
    w = rg.Graph().param(2.0)
    h = w * 1.0
    h.register_hook(lambda g: g * g)
    d = rg.grad(h**3, h)
    assert d.value == 144.0
    plain = rg.Graph().param(2.0)
    handle = plain.register_hook(lambda g: -g)
    third = plain**4
    for expected in (-32.0, 48.0, -48.0):
        third = rg.grad(third, plain)
        assert third.value == expected
    handle.remove()
    assert third.value == 48.0


UNTRACEABLE: dict[str, Any] = {
    "if": lambda g: g * 0.1 if np.abs(g).max() > 1 else g,
    "float": lambda g: g * float(g.sum()),
    "value": lambda g: g * 2.0 + getattr(g, "value", g),
    "a function without an op": lambda g: g * np.emath.sqrt(np.abs(g)),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_a_hook_that_looks_at_the_value_has_no_derivative_and_says_so(name: str) -> None:
    w, _, h, loss = two()
    handle = h.register_hook(UNTRACEABLE[name])
    d = rg.grad(loss, w)
    value, count = d.value, len(w.graph)
    with pytest.raises(rg.GradientError, match=r"on 'h'.*no function of Vars.*rg\.where") as caught:
        rg.grad(d.sum(), w)
    assert isinstance(caught.value.__cause__, rg.ReactgradError)
    del caught
    gc.collect()
    assert len(w.graph) == count
    np.testing.assert_array_equal(d.value, value)
    handle.remove()
    rg.grad(d.sum(), w)


def test_a_hook_that_a_live_second_order_gradient_refuses_is_not_registered() -> None:
    w, _, h, loss = two()
    d = rg.grad(loss, w)
    dd = rg.grad(d.sum(), w)
    before = dd.value
    with pytest.raises(rg.GradientError, match="no function of Vars"):
        h.register_hook(UNTRACEABLE["if"])
    np.testing.assert_array_equal(d.value, [18.0, 64.0])
    np.testing.assert_array_equal(dd.value, before)
    w.graph.check_invariants()


# --- errors ---------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "a number": (lambda g: 1.0, ValueError, r"on 'w' returned shape \(\).*\(2,\).*np\.full_like"),
    "another shape": (lambda g: g[:1], ValueError, r"on 'w' returned shape \(1,\).*\(2,\)"),
    "integers": (lambda g: np.array([1, 2]), TypeError, r"on 'w' returned int64.*floats"),
    "complex": (lambda g: g * 1j, TypeError, r"on 'w' returned complex128.*floats"),
    "an object": (lambda g: {"g": g}, TypeError, r"on 'w' returned dict.*None to leave it"),
    "strings": (lambda g: ["a", "b"], TypeError, r"does not hold numbers"),
    "its own": (lambda g: 1 / 0, ZeroDivisionError, r"division"),
    "in place": (lambda g: g.__imul__(2.0), ValueError, r"read-only"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_hook_that_fails_changes_no_grad_and_is_called_again(name: str) -> None:
    hook, builtin, words = WRONG[name]
    w, v, h, loss = two()
    h.retain_grad()
    loss.backward()
    before = w.grad, v.grad, h.grad
    broken = [True]
    after: list[Any] = []
    w.register_hook(lambda g: hook(g) if broken else None)
    v.register_post_accumulate_grad_hook(after.append)
    for _ in range(2):
        with pytest.raises(builtin, match=words) as caught:
            loss.backward()
        assert "hook_lambda" in "".join(caught.value.__notes__)
        assert all(a is b for a, b in zip((w.grad, v.grad, h.grad), before, strict=True))
    broken.clear()
    assert after == []
    loss.backward()
    np.testing.assert_array_equal(w.grad, [36.0, 128.0])
    assert after[0] is v


def test_what_cannot_have_a_hook_says_so() -> None:
    g = rg.Graph()
    w, n = g.param(1.0, name="w"), g.input(3, name="n")
    h = w * 2.0
    h.name = "h"
    for register in (w.register_hook, w.register_post_accumulate_grad_hook):
        with pytest.raises(TypeError, match="a hook is a function of one argument"):
            register(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'n' is of int64.*only floats.*never be called"):
        n.register_hook(print)
    with pytest.raises(rg.GradientError, match="'h' is neither param nor input.*register_hook"):
        h.register_post_accumulate_grad_hook(print)


def test_a_hook_on_a_gradient_cannot_change_the_graph() -> None:
    w, v, h, loss = two()
    attempts = {
        "set": lambda g: v.set([0.0, 0.0]),
        "backward": lambda g: loss.backward(),
        "register": lambda g: w.register_hook(print) and None,
    }
    for name, attempt in attempts.items():
        with h.register_hook(attempt):
            with pytest.raises(rg.BusyError, match="its own graph"):
                loss.backward()
        assert w.grad is None, name
    loss.backward()
    np.testing.assert_array_equal(w.grad, [18.0, 64.0])


def test_an_interrupted_hook_leaves_everything_as_it_was() -> None:
    w, _, h, loss = two()

    def interrupted(g: Any) -> None:
        raise KeyboardInterrupt

    with h.register_hook(interrupted):
        with pytest.raises(KeyboardInterrupt):
            loss.backward()
    assert w.grad is None
    loss.backward()
    np.testing.assert_array_equal(w.grad, [18.0, 64.0])
    w.graph.check_invariants()
