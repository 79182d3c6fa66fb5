"""Anomaly mode: the first NaN or infinity is named, nothing stays behind; values changed by stealth."""

from __future__ import annotations

import ctypes
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.reading._blocks import open_blocks
from tests.explain.models import named, text_of


def raised(act: Callable[[], object]) -> str:
    with rg.detect_anomaly(), pytest.raises(rg.AnomalyError) as caught:
        act()
    return text_of(caught.value)


def test_forward_names_node_op_ranges_and_line(g: rg.Graph) -> None:
    x = g.input([-1.0, 0.0, 4.0], name="x")
    y = named(rg.log(x), "y")
    z = rg.tanh(y)
    message = raised(lambda: z.value)
    assert message.startswith(
        "node 'y', op 'log', gave 1 NaN and 1 Inf: float64[3], 1.38629, 1 NaN"
    )
    assert "of 'x': float64[3], -1 to 4" in message
    assert "test_anomaly.py:" in message
    assert 'y = named(rg.log(x), "y")' in message
    assert "gradient" not in message


def test_the_error_is_what_a_user_would_catch(g: rg.Graph) -> None:
    y = rg.log(g.input(-1.0))
    for kind in (rg.ReactgradError, FloatingPointError, ArithmeticError):
        with rg.detect_anomaly(), pytest.raises(kind) as caught:
            y.value
        assert caught.value.__notes__ == [
            "found by rg.detect_anomaly(); outside of it the node is computed as it is"
        ]


def test_the_first_of_several_is_named(g: rg.Graph) -> None:
    x = g.input(0.0, name="x")
    first = named(rg.log(x), "first")
    second = named(first - first, "second")
    assert raised(lambda: second.value).startswith("node 'first', op 'log', gave 1 Inf")
    message = raised(lambda: g.forward(second, rg.reciprocal(x)))
    assert message.startswith("node 'first'")
    assert [type(error) for error in g.last_run.errors] == [rg.AnomalyError] * 2


def test_backward_names_the_forward_node_and_its_line(g: rg.Graph) -> None:
    w = g.param([0.0, 1.0], name="w")
    root = named(rg.sqrt(w), "root")
    loss = (root * 2.0).sum()
    message = raised(loss.backward)
    assert "op 'chain_over', gave 1 Inf" in message
    assert "in what 'root', op 'sqrt', passes to the gradient of 'w'" in message
    assert 'root = named(rg.sqrt(w), "root")' in message
    assert w.grad is None
    loss.backward()
    assert np.isinf(np.asarray(w.grad)).tolist() == [True, False]


def test_a_sum_of_finite_contributions_that_overflows_is_the_gradient_of_its_node(
    g: rg.Graph,
) -> None:
    w = g.param(0.0, name="w")
    loss = w * 1e308 + w * 1.7e308
    message = raised(lambda: loss.backward(gradient=1.0))
    assert "gave 1 Inf" in message
    assert "in the gradient of 'w', param" in message


def test_gradients_of_gradients(g: rg.Graph) -> None:
    x = g.input(0.0, name="x")
    first = named(rg.grad(x**1.5, x), "first")
    assert first.value == 0.0
    message = raised(lambda: rg.grad(first, x).value)
    assert "gave 1 Inf" in message
    assert "passes to the gradient of 'x'" in message


def test_what_was_in_a_leaf_is_named_as_such(g: rg.Graph) -> None:
    x = g.input([1.0, np.nan], name="x")
    w = g.param([2.0, 3.0], name="w")
    y = named(x * w, "y")
    x.set([np.nan, np.nan])
    message = raised(lambda: y.sum().value)
    assert message.startswith("input 'x' holds 2 NaN at version 2: float64[2], 2 NaN")
    assert "and node 'y', op 'multiply', computes with it" in message


def test_what_was_computed_before_the_block_is_traced_to_where_it_began(g: rg.Graph) -> None:
    x = g.input(-1.0, name="x")
    bad = named(rg.sqrt(x), "bad")
    middle = named(bad + 1.0, "middle")
    assert np.isnan(middle.value)
    message = raised(lambda: (middle * 2.0).value)
    assert message.startswith("node 'bad', op 'sqrt', gave 1 NaN")
    assert "op 'multiply', computes with it" in message


def test_python_functions_and_objects(g: rg.Graph) -> None:
    x = g.input(2.0, name="x")
    words = rg.lift(lambda v: ["no", "numbers"])(x)
    bad = rg.lift(lambda v: v * float("inf"))(x)
    array = rg.lift(lambda v: np.full(3, np.nan, np.float32))(x)
    with rg.detect_anomaly():
        assert words.value == ["no", "numbers"]
    assert "gave 1 Inf" in raised(lambda: bad.value)
    assert "gave 3 NaN: float32[3], 3 NaN" in raised(lambda: array.value)


def test_what_removes_a_nan_is_no_anomaly(g: rg.Graph) -> None:
    x = g.input([1.0, np.nan])
    y = rg.where(rg.isfinite(x), x, 0.0)
    with rg.detect_anomaly():
        assert y.value.tolist() == [1.0, 0.0]


def test_what_to_look_for_can_be_chosen(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    masked = rg.where(x > 1.5, x, -np.inf)
    with rg.detect_anomaly(check_inf=False):
        assert rg.max(masked).value == 2.0
        with pytest.raises(rg.AnomalyError, match="gave 1 NaN"):
            (masked - masked).value
    with rg.detect_anomaly(check_nan=False, check_inf=False):
        assert np.isnan((masked - masked).value[0])
    with pytest.raises(rg.AnomalyError), rg.detect_anomaly(check_nan=False):
        (masked * 1.0).value


@pytest.mark.parametrize("flag", ["check_nan", "check_inf"])
def test_the_forgotten_parentheses_of_a_decorator(flag: str) -> None:
    with pytest.raises(TypeError, match=rf"{flag}=.*write True or False.*parentheses"):
        rg.detect_anomaly(**{flag: print})  # type: ignore[arg-type]


def test_nothing_stays_behind(g: rg.Graph) -> None:
    x = g.input(-1.0, name="x")
    bad = rg.sqrt(x)
    after = bad * 2.0
    beside = x * 3.0
    with rg.detect_anomaly():
        for _ in range(2):
            with pytest.raises(rg.AnomalyError):
                g.forward(after, beside)
    assert not beside.is_stale, "what does not depend on it has run"
    assert (bad.state, after.state) == ("stale", "stale")
    assert (bad.value_version, after.value_version) == (0, 0)
    assert np.isnan(after.value)
    assert (bad.value_version, after.value_version) == (1, 1)
    assert (bad.state, after.state) == ("clean", "clean")
    x.set(4.0)
    with rg.detect_anomaly():
        assert after.value == 4.0
    g.check_invariants()
    assert not open_blocks


def test_a_stored_error_of_the_users_stays(g: rg.Graph) -> None:
    calls = 0

    def fails(v: float) -> float:
        nonlocal calls
        calls += 1
        raise FloatingPointError("by hand")

    y = rg.lift(fails)(g.input(1.0))
    with rg.detect_anomaly():
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="by hand"):
                y.value
    with pytest.raises(FloatingPointError, match="by hand"):
        y.value
    assert calls == 1


def test_a_function_that_handles_the_error_runs_again_outside(g: rg.Graph) -> None:
    x = g.input(0.0)
    inverse = rg.reciprocal(x)

    def careful() -> float:
        try:
            return float(inverse.value)
        except ArithmeticError:
            return -1.0

    with g:
        y = rg.lift(careful)()
    with rg.detect_anomaly():
        assert y.value == -1.0
    assert y.value == np.inf


def test_a_cutoff_compares_with_what_readers_have_seen(g: rg.Graph) -> None:
    x = g.input([4.0, 9.0])
    y = rg.sqrt(x)
    y.cutoff = "equal"
    first = y.value
    x.set([-1.0, 9.0])
    with rg.detect_anomaly(), pytest.raises(rg.AnomalyError):
        y.value
    assert np.isnan(y.value[0])
    assert y.value_version == 2
    assert first.tolist() == [2.0, 3.0]
    x.set([-1.0, 9.0])
    y.value
    assert y.value_version == 2, "the same NaN again is no change"


def test_the_value_that_is_described_is_the_one_that_was_computed(g: rg.Graph) -> None:
    x = g.input([1.0, 4.0], name="x")
    y = named(rg.sqrt(x), "y")
    y.cutoff = "equal"
    y.value
    x.set([-1.0, 4.0])
    assert raised(lambda: y.value).startswith(
        "node 'y', op 'sqrt', gave 1 NaN: float64[2], 2, 1 NaN\n  of 'x': float64[2], -1 to 4\n"
    )


def test_a_gradient_hook_is_named_with_what_it_gave(g: rg.Graph) -> None:
    w = g.param([1.0, 4.0], name="w")
    factor = 1.0

    def scaled(gradient: Any) -> Any:
        return gradient * factor

    w.register_hook(scaled)
    y = (w * w).sum()
    y.backward()
    factor = np.inf
    message = raised(lambda: y.backward())
    assert "function 'hook_scaled', gave 2 Inf: float64[2], 2 Inf\n" in message


def test_observers_are_not_told_and_stabilize_raises(g: rg.Graph) -> None:
    x = g.input(4.0)
    y = rg.sqrt(x)
    errors: list[object] = []
    values: list[float] = []
    handles = [
        y.observe(errors.append, kind="error"),
        y.observe(lambda old, new: values.append(new)),
    ]
    g.stabilize()
    x.set(-1.0)
    with rg.detect_anomaly(), pytest.raises(rg.AnomalyError):
        g.stabilize()
    assert not errors
    g.stabilize()
    assert not errors
    assert np.isnan(values).tolist() == [False, True]
    for handle in handles:
        handle.cancel()


def test_it_is_of_its_thread_only(g: rg.Graph) -> None:
    y = rg.log(g.input(-1.0))
    seen: list[Any] = []
    with rg.detect_anomaly():
        thread = threading.Thread(target=lambda: seen.append(y.value))
        thread.start()
        thread.join()
    assert np.isnan(seen[0])


def test_decorator_nested_and_entered_again(g: rg.Graph) -> None:
    x = g.input(-1.0)

    @rg.detect_anomaly()
    def read(y: Any) -> Any:
        with rg.detect_anomaly(check_inf=False):
            return y.value

    for _ in range(2):
        with pytest.raises(rg.AnomalyError):
            read(rg.log(x))
    mode = rg.detect_anomaly()
    with mode, mode:
        assert (x * 2.0).value == -2.0
    assert not open_blocks


def test_a_function_cannot_have_its_own_graph_looked_at(g: rg.Graph) -> None:
    """What it computed from an error that only it has seen would be outdated at once."""
    other = rg.Graph()
    here, there = rg.log(g.input(-1.0)), rg.log(other.input(-1.0))

    def look() -> tuple[bool, bool]:
        with rg.detect_anomaly():
            try:
                there.value
            except rg.AnomalyError:
                return np.isnan(here.value), True
        return np.isnan(here.value), False

    with g:
        y = rg.lift(look)()
    assert y.value == (True, True)
    g.check_invariants()


@pytest.mark.trusting
def test_plans_of_before_are_not_replayed_inside() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.sqrt(x) * 2.0
    for value in (1.0, 2.0, 3.0, 4.0):
        x.set(value)
        y.value
    assert len(g._scheduler.plans) > 0
    x.set(-1.0)
    with rg.detect_anomaly():
        with pytest.raises(rg.AnomalyError):
            y.value
        hits = g.stats().plan_hits
        for value in (1.0, 2.0, 3.0):
            x.set(value)
            assert y.value == 2.0 * np.sqrt(value)
        assert g.stats().plan_hits == hits
    for value in (1.0, 2.0, 3.0):
        x.set(value)
        y.value
    assert len(g._scheduler.plans) > 0


def test_a_second_backend() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")
    g = rg.Graph()
    x = g.input(xp.asarray(np.array([-1.0, 4.0])), name="x")
    assert "gave 1 NaN: float64[2], 2, 1 NaN\n  of 'x': float64[2], -1 to 4" in raised(
        lambda: rg.sqrt(x).value
    )


UNARY: list[Callable[[Any], Any]] = [rg.sqrt, rg.log, rg.exp, rg.tanh, rg.reciprocal, rg.sign]
BINARY: list[Callable[[Any, Any], Any]] = [rg.add, rg.multiply, rg.divide, rg.power, rg.maximum]
programs = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=15
)


@given(programs, st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2))
def test_raises_exactly_where_a_value_is_not_finite(
    program: list[tuple[int, int, int]], values: list[float]
) -> None:
    """Values read inside and outside are the same bits; it raises where a needed one is bad."""
    g = rg.Graph()
    nodes: list[Any] = [g.input(np.float64(value)) for value in values]
    for op, a, b in program:
        x, y = nodes[a % len(nodes)], nodes[b % len(nodes)]
        if op % 2:
            nodes.append(UNARY[op // 2 % len(UNARY)](x))
        else:
            nodes.append(BINARY[op // 2 % len(BINARY)](x, y))
    fork = g.fork()
    last = nodes[-1]
    needed = {id(last): last}
    todo = [last]
    while todo:
        for parent in todo.pop().parents:
            if id(parent) not in needed:
                needed[id(parent)] = parent
                todo.append(parent)
    expected = fork[last].value
    bad = any(not np.isfinite(fork[node].value) for node in needed.values())
    try:
        with rg.detect_anomaly():
            inside = last.value
        assert not bad
        np.testing.assert_array_equal(inside, expected)
    except rg.AnomalyError:
        assert bad
    np.testing.assert_array_equal(last.value, expected)
    g.check_invariants()


# --- values changed behind their version ---------------------------------------------------------


def test_adopted_arrays_become_read_only(g: rg.Graph) -> None:
    a = np.ones(3)
    x = g.input(np.zeros(3))
    x.set(a, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 2.0
    assert x.value is x.value
    with pytest.raises(ValueError, match="read-only|WRITEABLE"):
        x.value[0] = 2.0


def adopted(g: rg.Graph, size: int = 3) -> tuple[Any, Any]:
    """A leaf, and a view by which its memory can be written behind its back."""
    a = np.ones(size)
    view = a[:]
    x = g.input(np.zeros(size), name="x")
    x.set(a, copy=False)
    return x, view


def test_an_older_view_is_found_before_a_gradient_uses_it(g: rg.Graph) -> None:
    x, view = adopted(g)
    w = g.param(np.full(3, 2.0), name="w")
    loss = (x * w).sum()
    with rg.detect_anomaly():
        assert loss.value == 6.0
        view[0] = 5.0
        for _ in range(2):
            with pytest.raises(rg.MutationError) as caught:
                loss.backward()
            assert "the value of 'x' was changed behind its version 2" in str(caught.value)
            assert "op 'multiply', was about to use it" in str(caught.value)
            assert "x.touch()" in str(caught.value)
            assert isinstance(caught.value, RuntimeError)
            assert w.grad is None
        x.touch()
        loss.backward()
        assert loss.value == 14.0
    assert np.asarray(w.grad).tolist() == [5.0, 1.0, 1.0]
    g.check_invariants()


def test_outside_nobody_looks(g: rg.Graph) -> None:
    x, view = adopted(g)
    w = g.param(np.full(3, 2.0))
    loss = (x * w).sum()
    assert loss.value == 6.0
    view[0] = 5.0
    loss.backward()
    assert np.asarray(w.grad).tolist() == [5.0, 1.0, 1.0]


def test_an_intermediate_value_is_found_as_well(g: rg.Graph) -> None:
    x = g.input(np.ones(3), name="x")
    kept: list[Any] = []

    def compute(a: Any) -> Any:
        kept.append(a * 2.0)
        return kept[0]

    y = named(rg.lift(compute, vjp=lambda g, ans, a: g * 2.0, shape=(3,))(x), "y")
    w = g.param(np.ones(3))
    loss = (y * w).sum()
    with rg.detect_anomaly():
        assert loss.value == 6.0
        kept[0][:] = 9.0  # a copy was kept: this is no mutation
        address = g._host.data[y._slot].ctypes.data
        ctypes.cast(address, ctypes.POINTER(ctypes.c_double))[0] = 7.0
        with pytest.raises(rg.MutationError, match="value of 'y' was changed behind its version 1"):
            loss.backward()


def test_changes_with_a_version_are_no_mutation(g: rg.Graph) -> None:
    x = g.param(np.ones(3), name="x")
    loss = (x * x).sum()
    with rg.detect_anomaly():
        for step in range(4):
            loss.backward()
            if step % 2:
                x.set(x.value - 0.1 * x.grad)
            else:
                with x.mutate() as a:
                    a[0] += 1.0
        assert loss.value_version == 4


# --- beside PyTorch ------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sqrt at 0, times 0": lambda m, x: (m.sqrt(x) * 0.0).sum(),
    "0/0": lambda m, x: (x / x).sum(),
    "log of 0, times 0": lambda m, x: (m.log(x) * 0.0).sum(),
    "fine": lambda m, x: (m.exp(x) * 2.0).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_pytorch_finds_is_found(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    function = FUNCTIONS[name]
    t = torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True)
    found = False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Anomaly Detection has been enabled")
        mode = torch.autograd.detect_anomaly(check_nan=True)
    with mode:
        try:
            function(torch, t).backward()
        except RuntimeError:
            found = True
    g = rg.Graph()
    x = g.param([0.0, 1.0])
    loss = function(rg, x)
    with rg.detect_anomaly(check_inf=False):
        if found:
            with pytest.raises(rg.AnomalyError):
                loss.backward()
        else:
            loss.backward()
            np.testing.assert_allclose(x.grad, t.grad.numpy(), rtol=1e-12)
    assert found == (name != "fine")


def test_tangent_is_called_a_tangent() -> None:
    g = rg.Graph()
    x = g.param([0.0, 1.0], name="x")
    root = rg.sqrt(x)
    root.name = "root"
    t = rg.jvp(root, x, np.ones(2))
    with rg.detect_anomaly(), pytest.raises(rg.AnomalyError, match="in the tangent of 'root'"):
        t.value


def test_feed_of_a_subgraph_has_the_name_of_what_it_follows() -> None:
    @rg.subgraph
    def root(x: Any) -> Any:
        return rg.sqrt(x).sum()

    weights = rg.Graph().param([0.0, 1.0], name="weights")
    loss = root(weights)
    with rg.detect_anomaly(), pytest.raises(rg.AnomalyError, match="to the gradient of 'weights'"):
        loss.backward()
