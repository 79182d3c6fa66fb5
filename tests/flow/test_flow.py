"""What gradients pass, and what that costs: rules D3 to D7, detach_node, scale_grad, modes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

# --- modes (rule D7) ------------------------------------------------------------------------------

Switch = Callable[[rg.Graph], AbstractContextManager[Any]]
OFF: dict[str, Switch] = {
    "no_grad": lambda g: rg.no_grad(),
    "no_grad of the graph": lambda g: g.no_grad(),
    "set_grad_enabled": lambda g: rg.set_grad_enabled(False),
    "inference": lambda g: rg.inference(),
}
off = pytest.mark.parametrize("switch", OFF.values(), ids=OFF)


@off
def test_what_is_built_inside_passes_no_gradient(switch: Switch) -> None:
    g = rg.Graph()
    w = g.param(2.0)
    outside = w * w
    with switch(g):
        assert not rg.is_grad_enabled(g)
        inside = outside * w
        assert outside.requires_grad
    assert rg.is_grad_enabled()
    assert rg.is_grad_enabled(g)
    assert not inside.requires_grad
    assert rg.grad(inside * w, w).value == 8.0
    w.set(3.0)
    assert inside.value == 27.0  # it goes on following


@off
def test_backward_inside_warns_and_works(switch: Switch) -> None:
    g = rg.Graph()
    w = g.param(2.0)
    y = w * w
    with switch(g):
        with pytest.warns(rg.GradModeWarning, match="inside no_grad") as caught:
            y.backward()
        assert caught[0].filename == __file__
        assert w.grad == 4.0
        d = rg.grad(y, w)  # asks for no .grad: no warning
    assert rg.grad(d, w).value == 2.0


@off
def test_the_mode_before_comes_back_after_an_error(switch: Switch) -> None:
    g = rg.Graph()
    with pytest.raises(KeyError):
        with switch(g):
            raise KeyError
    assert rg.is_grad_enabled(g)


@off
def test_as_a_decorator_again_and_again_and_within_itself(switch: Switch) -> None:
    g = rg.Graph()
    w = g.param(2.0)

    @switch(g)  # type: ignore[operator]
    def build(depth: int) -> Any:
        inner = build(depth - 1) if depth else w
        assert not rg.is_grad_enabled(g)
        return inner * w

    assert rg.is_grad_enabled(g)
    for _ in range(2):
        assert not build(2).requires_grad
        assert rg.is_grad_enabled(g)


@pytest.mark.parametrize("switch", [rg.no_grad, rg.enable_grad, rg.inference])
def test_as_a_decorator_without_brackets(switch: Any) -> None:
    @switch
    def enabled() -> bool:
        """Says so."""
        return rg.is_grad_enabled()

    assert enabled() is (switch is rg.enable_grad)
    assert enabled.__name__ == "enabled"
    with rg.no_grad():
        assert enabled() is (switch is rg.enable_grad)


def test_the_innermost_switch_that_speaks_of_a_graph_counts() -> None:
    g, other = rg.Graph(), rg.Graph()

    def state() -> tuple[bool, bool, bool]:
        return rg.is_grad_enabled(), rg.is_grad_enabled(g), rg.is_grad_enabled(other)

    with g.no_grad():
        assert state() == (True, False, True)
        with other.no_grad():
            assert state() == (True, False, False)
            with rg.enable_grad():
                assert state() == (True, True, True)
            with g.enable_grad():
                assert state() == (True, True, False)
            assert state() == (True, False, False)
        assert state() == (True, False, True)
    with rg.no_grad():
        with g.enable_grad():
            assert state() == (False, True, False)
            with rg.no_grad():
                assert state() == (False, False, False)
            w, v = g.param(2.0), other.param(2.0)
            assert (w * w).requires_grad
            assert not (v * v).requires_grad
    assert state() == (True, True, True)


def test_nothing_inside_inference_enables_gradients() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    with rg.inference():
        with rg.enable_grad():
            assert not (w * w).requires_grad
            with rg.set_grad_enabled(True):
                assert not rg.is_grad_enabled()
        with g.enable_grad():
            assert not (w * w).requires_grad
        rg.set_grad_enabled(True)
        assert not (w * w).requires_grad
    assert (w * w).requires_grad


@off
def test_gradients_that_are_built_anew_inside_stay_differentiable(switch: Switch) -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    d = rg.grad((x**3).sum(), x)
    with switch(g):
        x.set([1.0, 2.0, 3.0])  # another shape: adjoints are built for it
        np.testing.assert_array_equal(d.value, [3.0, 12.0, 27.0])
    np.testing.assert_array_equal(rg.grad(d.sum(), x).value, [6.0, 12.0, 18.0])


def test_set_grad_enabled_by_itself_holds_until_its_block_ends() -> None:
    w = rg.Graph().param(2.0)
    with rg.enable_grad():
        rg.set_grad_enabled(False)
        assert not (w * w).requires_grad
        with rg.no_grad():
            pass
        assert not rg.is_grad_enabled()
        rg.set_grad_enabled(True)
        assert (w * w).requires_grad
        rg.set_grad_enabled(False)
    assert rg.is_grad_enabled()
    switch = rg.set_grad_enabled(False)
    try:
        with rg.enable_grad(), switch:
            assert not rg.is_grad_enabled()
        assert not rg.is_grad_enabled()
    finally:
        rg.set_grad_enabled(True)
    assert rg.is_grad_enabled()


def test_modes_are_of_the_thread() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    found: list[bool] = []
    with rg.no_grad(), g.no_grad():
        thread = threading.Thread(target=lambda: found.append((w * w).requires_grad))
        thread.start()
        thread.join()
        assert not (w * w).requires_grad
    assert found == [True]


def test_modes_are_of_the_task() -> None:
    g = rg.Graph()
    inside, go_on = asyncio.Event(), asyncio.Event()

    async def evaluates() -> bool:
        with g.no_grad():
            inside.set()
            await go_on.wait()
            return rg.is_grad_enabled(g)

    async def trains() -> tuple[bool, bool]:
        task = asyncio.create_task(evaluates())
        await inside.wait()
        mine = rg.is_grad_enabled(g)
        go_on.set()
        return mine, await task

    assert asyncio.run(trains()) == (True, False)


def test_what_runs_later_than_it_is_called_is_not_decorated() -> None:
    def generator() -> Any:
        yield 1

    async def coroutine() -> None: ...

    for function in (generator, coroutine):
        for switch in (rg.no_grad, rg.no_grad(), rg.Graph().no_grad(), rg.set_grad_enabled(False)):
            with pytest.raises(TypeError, match="generator or coroutine.*Decorate the functions"):
                switch(function)
    rg.set_grad_enabled(True)
    with pytest.raises(TypeError, match=r"with graph\.no_grad\(\)"):
        rg.no_grad(rg.Graph())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="True or False"):
        rg.set_grad_enabled(0)  # type: ignore[arg-type]


# --- train and eval -------------------------------------------------------------------------------


def test_a_graph_begins_in_train_mode_and_what_reads_the_mode_follows_it() -> None:
    g = rg.Graph()
    x = g.input(3.0, name="x")
    before = len(g)
    assert g.training
    assert g.training is True
    assert len(g) == before + 1
    assert list(g.inputs) == [x]
    as_operand = rg.lift(lambda x, training: x + 0.5 if training else x)(x, g.mode)
    as_read = rg.lift(lambda x: x + 0.25 if g.training else x)(x)
    chosen = rg.switch(g.mode, x * 2.0, x)
    other = x * 7.0
    assert [v.value for v in (as_operand, as_read, chosen, other)] == [3.5, 3.25, 6.0, 21.0]
    assert g.train() is g
    assert not as_operand.is_stale  # no news
    assert g.eval() is g
    assert [v.is_stale for v in (as_operand, as_read, chosen, other)] == [True, True, True, False]
    assert [v.value for v in (as_operand, as_read, chosen)] == [3.0, 3.0, 3.0]
    assert not g.training
    g.train()
    run = g.forward(as_operand, as_read, chosen, other)
    assert set(map(id, run.ran)) == {id(as_operand), id(as_read), id(chosen)}
    g.train(False)
    assert not g.training
    g.check_invariants()


def test_the_mode_may_be_asked_for_first_by_a_function_that_runs() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = rg.lift(lambda x: (x, g.training))(x)
    assert y.value == (1.0, True)
    g.eval()
    assert y.value == (1.0, False)
    g.check_invariants()


def test_the_mode_is_of_the_graph_and_has_nothing_to_do_with_no_grad() -> None:
    g = rg.Graph()
    w = g.param(2.0)
    with rg.no_grad():
        assert g.training
    g.eval()
    assert rg.is_grad_enabled(g)
    assert (w * w).requires_grad
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(g.training))
    thread.start()
    thread.join()
    assert found == [False]


def test_the_mode_comes_along_to_forks_and_files_and_is_rolled_back(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="files need safetensors")
    g = rg.Graph()
    x = g.input(3.0, name="x")
    y = rg.switch(g.mode, x * 2.0, x)
    y.name = "y"
    with g.whatif() as w:
        assert w.eval()[y].value == 3.0
        assert y.value == 6.0
    g.eval()
    twin = g.fork()
    assert not twin.training
    twin.train()
    assert (twin[y].value, y.value) == (6.0, 3.0)
    with pytest.raises(KeyError):
        with g.transaction():
            g.train()
            assert y.value == 6.0
            raise KeyError
    assert not g.training
    assert y.value == 3.0
    g.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    assert not loaded.training
    assert loaded["y"].value == 3.0
    loaded.train()
    assert loaded["y"].value == 6.0
    loaded.check_invariants()


def test_the_mode_without_readers_stays() -> None:
    g = rg.Graph()
    g.eval()
    for _ in range(3):
        g.forward(g.input(1.0) * 2.0)
    assert not g.training
    assert not g.fork().training


def test_a_file_has_one_mode_at_most_and_it_is_true_or_false() -> None:
    from reactgrad.io._capture import capture
    from reactgrad.io._restore import restore

    g = rg.Graph()
    g.eval()
    other = g.input(True)
    state = capture(g)
    assert not restore(state, rg.Graph).training
    for wrong in (
        replace(state, definition=np.zeros_like(state.definition)),
        replace(state, values=(1.0, True)),
    ):
        with pytest.raises(rg.LoadError, match="mode|holds"):
            restore(wrong, rg.Graph)
    assert other.value is True


def test_the_mode_is_true_or_false() -> None:
    g = rg.Graph()
    for wrong in (1, 0.5, "eval", np.True_):
        with pytest.raises(rg.SetError, match=r"g\.train\(\) or g\.eval\(\)"):
            g.mode.set(wrong)
    assert g.training
    g.mode.set(False)
    assert not g.training

    def switches(x: float) -> float:
        g.train()
        return x

    with pytest.raises(rg.BusyError, match="its own graph"):
        rg.lift(switches)(g.input(1.0)).value


# --- detach (rule D3) -----------------------------------------------------------------------------


def test_detached_edges_keep_their_mark_through_edits() -> None:
    g = rg.Graph()
    w, v, u = g.param(2.0), g.param(3.0), g.param(5.0)
    y = w.detach() * v
    y.replace_parent(1, u)
    assert rg.grad(y, w, allow_unused=True) is None
    assert rg.grad(y, u).value == 2.0
    y.replace_parent(0, v.detach())
    assert rg.grad(y, v, allow_unused=True) is None
    y.replace_parent(0, v)
    assert rg.grad(y, v).value == 5.0
    assert y.parents == [v, u]


def test_detach_node_is_a_node_that_stays_closed() -> None:
    g = rg.Graph()
    w, v = g.param(np.ones(3), name="w"), g.param(np.full(3, 2.0), name="v")
    count = len(g)
    h = w.detach_node()
    assert len(g) == count + 1
    assert h.parents == [w]
    assert h.name.startswith("detach")
    assert not h.requires_grad
    assert g.forward(h).ran == [h]
    assert np.shares_memory(g._host.data[h._slot], g._host.data[w._slot])  # costs no copy
    y = (h * w).sum()
    np.testing.assert_array_equal(rg.grad(y, w).value, np.ones(3))
    w.set(np.full(3, 4.0))
    np.testing.assert_array_equal(h.value, np.full(3, 4.0))
    h.replace_parent(0, v)
    assert rg.grad(y, v, allow_unused=True) is None
    np.testing.assert_array_equal(rg.grad(y, w).value, np.full(3, 2.0))
    assert "detached" in str(g.why(h))
    twin = g.fork()
    assert rg.grad(twin[y], twin[v], allow_unused=True) is None
    with rg.enable_grad():
        assert not w.detach_node().requires_grad


def test_detach_node_and_scale_grad_come_back_from_files(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="files need safetensors")
    g = rg.Graph()
    w = g.param(np.ones(3), name="w")
    y = (w.detach_node() * w.scale_grad(-3.0)).sum()
    y.name = "y"
    g.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    loaded["y"].backward()
    np.testing.assert_array_equal(loaded["w"].grad, np.full(3, -3.0))


def test_snapshots_are_targets_that_do_not_follow() -> None:
    """A target network, and the log-probabilities of before the update."""
    g = rg.Graph()
    x, w = g.input([1.0, 2.0]), g.param([0.5, -0.5], name="w")
    target = w.snapshot()
    log_probability = (x * w).sum()
    old = log_probability.snapshot()
    loss = rg.exp(log_probability - old) + ((x * w - x * target) ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad, [1.0, 2.0])
    w.set([1.0, 0.0])
    np.testing.assert_array_equal(target.value, [0.5, -0.5])
    np.testing.assert_allclose(loss.value, np.exp(1.5) + 0.25 + 1.0)
    assert g["w"].requires_grad
    assert not target.requires_grad


# --- scale_grad -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.5, -1.0, 0.0, 3, np.float32(0.25)])
def test_scale_grad_changes_the_gradient_only(factor: float) -> None:
    g = rg.Graph()
    w = g.param(np.linspace(-1, 1, 5))
    h = w.scale_grad(factor)
    y = (rg.sin(h) * w).sum()
    np.testing.assert_array_equal(h.value, w.value)
    assert np.shares_memory(g._host.data[h._slot], g._host.data[w._slot])
    expected = float(factor) * np.cos(w.value) * w.value + np.sin(w.value)
    np.testing.assert_allclose(rg.grad(y, w).value, expected, rtol=1e-14)
    y.backward()
    np.testing.assert_allclose(w.grad, expected, rtol=1e-14)
    assert h.dtype == w.dtype


def test_scale_grad_to_second_order() -> None:
    """f(w) = h³ with h = w whose gradient counts c times: f' = 3c h², f'' = 6 c² h."""
    w = rg.Graph().param(2.0)
    d = rg.grad(w.scale_grad(0.5) ** 3, w)
    assert d.value == 0.5 * 3 * 4
    dd = rg.grad(d, w)
    assert dd.value == 0.25 * 6 * 2
    assert rg.grad(dd, w).value == 0.125 * 6
    w.set(1.0)
    assert dd.value == 1.5


def test_scale_grad_keeps_float32_and_scales_results_of_functions() -> None:
    g = rg.Graph()
    w = g.param(np.ones(2, np.float32))
    y = w.scale_grad(0.1).sum()
    y.backward()
    assert w.grad.dtype == np.float32
    v = g.param([1.0, 2.0])
    h = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: (g * 2.0,))(v)
    np.testing.assert_array_equal(rg.grad(h.scale_grad(-1.0).sum(), v).value, [-2.0, -2.0])


@pytest.mark.parametrize("factor", [True, "2", None, [1.0, 2.0], np.inf, float("nan"), 1j])
def test_a_factor_that_is_none_says_what_to_write(factor: Any) -> None:
    w = rg.Graph().param([1.0, 2.0], name="w")
    with pytest.raises(TypeError, match=r"one finite number.*w\.register_hook\(lambda g: g \*"):
        w.scale_grad(factor)


def test_a_factor_that_changes_is_a_hooks() -> None:
    g = rg.Graph()
    w, factor = g.param(2.0, name="w"), g.input(1.0, name="factor")
    with pytest.raises(TypeError, match=r"a Var, whose changes.*w\.register_hook"):
        w.scale_grad(factor)  # type: ignore[arg-type]


# --- what blocks, is frozen or pruned costs nothing (rules D2, D4) ----------------------------------


def adjoints_of(output: Any, *leaves: Any) -> int:
    """How many nodes a gradient adds to the graph."""
    before = len(output.graph)
    held = rg.grad(output, list(leaves))
    count = len(output.graph) - before
    del held
    return count


def tower(x: Any, height: int) -> Any:
    for _ in range(height):
        x = rg.tanh(x * 1.5)
    return x


@pytest.mark.parametrize(
    "block",
    [
        lambda h: h.detach(),
        lambda h: h.detach_node(),
        lambda h: h.snapshot(),
        lambda h: rg.no_grad()(lambda: h * 1.0)(),
    ],
    ids=["detach", "detach_node", "snapshot", "no_grad"],
)
def test_what_lies_behind_a_block_gets_no_adjoint(block: Callable[[Any], Any]) -> None:
    def added(height: int) -> tuple[int, int]:
        g = rg.Graph()
        w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])
        loss = (block(tower(w, height)) * v).sum()
        g.forward(loss)
        before = len(g)
        run = loss.backward()
        assert w.grad is None
        assert v.grad is not None
        return len(g) - before, len(run.ran)

    assert added(0) == added(50)


def test_a_frozen_branch_gets_no_adjoint_and_runs_none() -> None:
    def added(height: int, frozen: bool) -> tuple[int, int]:
        g = rg.Graph()
        w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])
        loss = (tower(v, height) * w).sum()
        if frozen:
            v.freeze()
        g.forward(loss)
        before = len(g)
        run = loss.backward()
        return len(g) - before, len(run.ran)

    assert added(0, frozen=True) == added(50, frozen=True)
    assert added(50, frozen=False)[0] > added(50, frozen=True)[0] + 50


def test_freezing_after_a_backward_runs_no_adjoint_that_only_the_frozen_wants() -> None:
    g = rg.Graph()
    w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    loss = (tower(v, 20) * tower(w, 20)).sum()
    every = loss.backward().ran
    v.freeze()
    w.set([2.0, 1.0])
    fewer = loss.backward().ran
    assert len(fewer) < len(every) * 0.75
    count = len(g)
    v.unfreeze()
    loss.backward()
    assert len(g) == count  # nothing had to be built again


def test_freeze_in_the_middle() -> None:
    """encoder, adapter (frozen), head: the encoder trains, with the bits of before."""
    rng = np.random.default_rng(0)
    g = rg.Graph()
    x = g.input(rng.normal(size=(5, 3)))
    encoder, adapter, head = (g.param(rng.normal(size=s)) for s in ((3, 4), (4, 4), (4, 1)))
    loss = (rg.tanh(rg.tanh(x @ encoder) @ adapter) @ head).sum()
    loss.backward()
    free = encoder.grad, adapter.grad, head.grad
    g.zero_grad()
    adapter.freeze()
    loss.backward()
    assert adapter.grad is None
    for found, wanted in ((encoder.grad, free[0]), (head.grad, free[2])):
        assert found.tobytes() == wanted.tobytes()
    fresh = adjoints_of(loss * 1.0, encoder, head)
    assert fresh < adjoints_of(loss * 1.0, encoder, adapter, head)
    adapter.unfreeze()
    g.zero_grad()
    loss.backward()
    assert adapter.grad.tobytes() == free[1].tobytes()


def test_freezing_one_head_lets_its_loss_train_the_trunk() -> None:
    g = rg.Graph()
    trunk, head = g.param([1.0, 2.0]), g.param([3.0, 4.0]).freeze()
    loss = (trunk * head).sum()
    loss.backward()
    np.testing.assert_array_equal(trunk.grad, [3.0, 4.0])
    assert head.grad is None
    np.testing.assert_array_equal(rg.grad(loss, head).value, [1.0, 2.0])


def test_requires_grad_is_not_assigned() -> None:
    w = rg.Graph().param(1.0, name="w")
    with pytest.raises(rg.SetError, match=r"freeze\(\).*unfreeze\(\).*g\.param"):
        w.requires_grad = False
    assert w.requires_grad


def test_backward_for_some_inputs_runs_their_part_only() -> None:
    g = rg.Graph()
    w, v = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    loss = (tower(w, 10) * tower(v, 10)).sum()
    g.forward(loss)
    some = len(loss.backward(inputs=w).ran)
    assert v.grad is None
    rest = len(loss.backward(inputs=[w, v]).ran)
    assert some > 10
    assert rest < some + 5


# --- several losses (rule D5) -----------------------------------------------------------------------


def test_a_second_loss_adds_only_its_own_part() -> None:
    """u → w → two losses: what backward passes on is this loss's gradient, never an added up one."""
    g = rg.Graph()
    u = g.param(2.0, name="u")
    w = u * 3.0
    w.retain_grad()
    first, second = w * 5.0, w**2
    first.backward()
    assert (w.grad, u.grad) == (5.0, 15.0)
    second.backward()
    assert w.grad == 12.0  # replaced
    assert u.grad == 15.0 + 36.0  # added up
    first.backward()
    assert (w.grad, u.grad) == (5.0, 66.0)
    both = rg.grad(first + second, u)
    assert both.value == 51.0


def test_a_node_between_that_is_asked_for_does_not_add_up_either() -> None:
    g = rg.Graph()
    u = g.param(2.0)
    w = u * 3.0
    for loss, expected in ((w * 5.0, (5.0, 15.0)), (w**2, (12.0, 51.0))):
        loss.backward(inputs=[u, w])
        assert (w.grad, u.grad) == expected


def test_two_heads_on_a_shared_trunk() -> None:
    rng = np.random.default_rng(1)
    x, target_1, target_2 = (
        rng.normal(size=(6, 3)),
        rng.normal(size=(6, 1)),
        rng.normal(size=(6, 2)),
    )
    shared, one, two = (rng.normal(size=s) for s in ((3, 4), (4, 1), (4, 2)))
    g = rg.Graph()
    w_shared, w_1, w_2 = g.param(shared), g.param(one), g.param(two)
    features = g.input(x) @ w_shared
    loss_1 = ((features @ w_1 - target_1) ** 2).sum()
    loss_2 = ((features @ w_2 - target_2) ** 2).sum()
    d_1, d_2 = 2 * (x @ shared @ one - target_1), 2 * (x @ shared @ two - target_2)
    loss_1.backward(retain_graph=True)
    np.testing.assert_allclose(w_shared.grad, x.T @ d_1 @ one.T, rtol=1e-12)
    np.testing.assert_allclose(features.grad, d_1 @ one.T, rtol=1e-12)
    assert w_2.grad is None
    loss_2.backward(retain_graph=True)
    np.testing.assert_allclose(
        w_shared.grad, x.T @ d_1 @ one.T + x.T @ d_2 @ two.T, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(features.grad, d_2 @ two.T, rtol=1e-12)  # of this loss alone
    np.testing.assert_allclose(w_1.grad, (x @ shared).T @ d_1, rtol=1e-12)
    np.testing.assert_allclose(w_2.grad, (x @ shared).T @ d_2, rtol=1e-12)
    apart = [w.grad for w in (w_shared, w_1, w_2)]
    g.zero_grad()
    (loss_1 + loss_2).backward()
    assert features.grad is None
    for w, found in zip((w_shared, w_1, w_2), apart, strict=True):
        np.testing.assert_allclose(w.grad, found, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("children", [2, 17, 300])
def test_losses_of_many_children_add_up_to_the_combined_one(children: int) -> None:
    rng = np.random.default_rng(children)
    g = rg.Graph()
    x = g.input(rng.normal(size=(3,)))
    w = g.param(rng.normal(size=(4, 3)))
    h = rg.tanh(w @ x)
    losses = [(rg.sin(h * float(i + 1)) * (1.0 / children)).sum() for i in range(children)]
    for loss in losses:
        loss.backward()
    apart = w.grad
    g.zero_grad()
    rg.stack(losses).sum().backward()
    np.testing.assert_allclose(apart, w.grad, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_deep_diamonds_add_up_to_the_combined_loss() -> None:
    g = rg.Graph()
    w = g.param([0.3, -0.7])
    h = w * 1.0
    losses = []
    for _ in range(60):
        h = rg.tanh(h) * 0.5 + rg.sin(h) * 0.5
        losses.append(h.sum())
    for loss in losses:
        loss.backward()
    apart = w.grad
    g.zero_grad()
    rg.stack(losses).sum().backward()
    np.testing.assert_allclose(apart, w.grad, rtol=1e-12, atol=1e-12)


def test_releasing_between_losses_changes_no_number() -> None:
    def gradients(retain: bool | None) -> Any:
        g = rg.Graph()
        w = g.param([0.3, -0.7])
        h = tower(w, 5)
        for loss in (h.sum(), (h * h).sum(), rg.sin(h).sum()):
            loss.backward(retain_graph=retain)
        return w.grad.tobytes()

    assert gradients(True) == gradients(False) == gradients(None)
