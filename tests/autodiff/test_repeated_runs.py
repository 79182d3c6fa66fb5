"""Runs of checkpoints and saved-tensor hooks that repeat: bound once, and nothing differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from tests.explain.models import row_of_tanh
from tests.flow.test_checkpoint import grow, lying, steps, ten


def scripts(g: rg.Graph) -> list[Any]:
    """What the graph has stored to repeat runs."""
    plans = [one.plan for one in g._scheduler.plans._transitions.values()]
    return [plan.script for plan in plans if plan.script is not None]


def build(how: str, fn: Any, *args: Any) -> Any:
    if how == "checkpoint":
        return rg.checkpoint(fn, *args)
    if how == "hooks":
        with rg.saved_tensors_hooks(np.copy, lambda array: array):
            return fn(*args)
    return fn(*args)


def layers(how: str, x: Any, count: int = 3) -> Any:
    for _ in range(count):
        x = build(how, lambda x: (rg.exp(rg.tanh(x) * 0.5).T * 2.0).T * x, x)
    return x.sum()


@pytest.mark.trusting
@pytest.mark.parametrize("how", ["checkpoint", "hooks"])
def test_a_loop_binds_once_and_does_what_it_does_without(how: str) -> None:
    seen: list[list[Any]] = []
    for one in ("plain", how):
        g = rg.Graph()
        x = g.param(np.full((2, 3), 0.5))
        y = layers(one, x)
        found: list[Any] = []
        rebuilt: list[list[str]] = []
        misses = 0
        for step in range(8):
            x.set(np.linspace(0.1, 0.2 + step * 0.1, 6).reshape(2, 3))
            run = y.backward()
            rebuilt.append([node.name for node in run.rebuilt])
            found.append([node.name for node in run.ran])
            found.append((np.array(x.grad), y.value, y.value_version))
            if step == 4:
                misses = g.stats().plan_misses
            g.check_invariants()
        assert g.stats().plan_misses == misses
        assert len(scripts(g)) == (one != "plain")
        assert rebuilt[2:] == [rebuilt[2]] * 6
        assert g.stats().rebuilt == sum(map(len, rebuilt))
        if one == "checkpoint":
            assert len(rebuilt[-1]) >= 9
        seen.append(found)
    np.testing.assert_equal(seen[0], seen[1])


@pytest.mark.trusting
def test_between_runs_scratch_is_all_that_stays() -> None:
    g = rg.Graph()
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(ten, x).sum()
    there: list[set[str]] = []
    for step in range(6):
        x.set(np.full(10, 0.1 * step))
        y.backward()
        there.append(lying(g))
    assert there == [there[0]] * 6
    assert scripts(g)


@pytest.mark.trusting
def test_large_scratch_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactgrad.memory._scratch_run.MAX_SCRATCH", 1000)
    g = rg.Graph()
    x = g.param(np.full(1000, 0.5))
    y = rg.checkpoint(ten, x).sum()
    w = rg.Graph().param(np.full(1000, 0.5))
    z = row_of_tanh(w, 10).sum()
    for step in range(6):
        x.set(np.full(1000, 0.1 * step))
        w.set(np.full(1000, 0.1 * step))
        y.backward()
        z.backward()
        assert np.array_equal(np.asarray(x.grad), np.asarray(w.grad))
    assert [one._acts for one in scripts(g)] == [[]]


def test_a_value_that_is_looked_at_stays_the_value_of_its_version(g: rg.Graph) -> None:
    x = g.param(np.full(100_000, 0.5))
    y = rg.checkpoint(lambda x: rg.tanh(rg.tanh(x)), x)
    loss = y.sum()
    kept: list[tuple[Any, Any]] = []
    for step in range(12):
        x.set(np.full(100_000, 0.1 * step))
        loss.backward()
        if step in (5, 6, 9):
            kept += [(var.value, var.value.copy()) for var in (y, y.parents[0])]
    for value, copy in kept:
        assert np.array_equal(value, copy)
    g.check_invariants()


def test_a_handle_that_appears_keeps_its_value(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(ten, x)
    loss = y.sum()
    inner = None
    for step in range(16):
        x.set(np.full(10, 0.1 * step))
        loss.backward()
        if step == 5:
            inner = y.parents[0]
        if step == 11:
            del inner
            inner = None
        there = y.parents[0].name in lying(g)
        if step > 5 and step != 11:  # what nobody holds any more goes with the next run
            assert there == (inner is not None)
    g.check_invariants()


@pytest.mark.parametrize("how", ["checkpoint", "hooks"])
def test_a_failure_on_the_way(g: rg.Graph, how: str) -> None:
    """A function between segments raises: what ran is there, the rest runs when it works again."""
    fails = False

    def check(a: Any) -> Any:
        if fails:
            raise ZeroDivisionError
        return a.copy()

    def model(x: Any, how: str) -> Any:
        a = build(how, lambda x: row_of_tanh(x, 3), x)
        b = rg.lift(check, vjp=lambda v, ans, a: v, shape=(4,))(a * 1.0)
        return (build(how, lambda x: row_of_tanh(x, 3) * x, b * 1.0) * a).sum()

    x = g.param(np.full(4, 0.5))
    y = model(x, how)
    other = rg.Graph()
    w = other.param(np.full(4, 0.5))
    z = model(w, "plain")
    for step in range(14):
        for leaf in (x, w):
            leaf.set(np.full(4, 0.1 * step))
            leaf.zero_grad()
        fails = step in (5, 9)
        results: list[Any] = []
        for loss, leaf in ((y, x), (z, w)):
            if fails:
                with pytest.raises(ZeroDivisionError):
                    loss.backward()
                assert leaf.grad is None
                loss.graph.check_invariants()
            else:
                ran = [node.name for node in loss.backward().ran]
                results.append((ran, np.array(leaf.grad), loss.value_version))
        if not fails:
            np.testing.assert_equal(results[0], results[1])
    g.check_invariants()


def test_hooks_that_fail_in_a_loop(g: rg.Graph) -> None:
    fails: set[str] = set()

    def pack(array: Any) -> Any:
        if "pack" in fails:
            raise OSError("disk is full")
        return array.copy()

    def unpack(array: Any) -> Any:
        if "unpack" in fails:
            raise OSError("gone for now")
        return array

    x = g.param(np.full(4, 0.5))
    with rg.saved_tensors_hooks(pack, unpack):
        h = rg.exp(rg.tanh(x))
    y = h.sum()
    for step in range(18):
        x.set(np.full(4, 0.1 * step))
        x.zero_grad()
        fails = {5: {"pack"}, 10: {"unpack"}, 15: {"pack"}}.get(step, set())
        if fails:
            with pytest.raises(OSError, match=r"disk is full|gone for now"):
                y.backward()
            assert x.grad is None
            g.check_invariants()
            x.touch()
        fails = set()
        y.backward()
        np.testing.assert_allclose(y.value, np.exp(np.tanh(0.1 * step)) * 4, rtol=1e-15)
        value = np.full(4, 0.1 * step)
        expected = np.exp(np.tanh(value)) * (1 - np.tanh(value) ** 2)
        np.testing.assert_allclose(np.asarray(x.grad), expected, rtol=1e-12)
        g.check_invariants()
    assert not lying(g) & {h.name}


def test_hooks_that_read_the_graph_in_a_loop(g: rg.Graph) -> None:
    read: list[float] = []
    x, other = g.param(np.full(4, 0.5)), g.input(2.0)
    twice = other * 2.0

    def pack(array: Any) -> Any:
        read.append(float(twice.value))
        return array.copy()

    with rg.saved_tensors_hooks(pack, lambda array: array):
        h = rg.exp(rg.tanh(x))
    y = h.sum()
    for step in range(8):
        value = np.full(4, 0.1 * step)
        x.set(value)
        other.set(float(step))
        x.zero_grad()
        y.backward()
        expected = np.exp(np.tanh(value)) * (1 - np.tanh(value) ** 2)
        np.testing.assert_allclose(np.asarray(x.grad), expected, rtol=1e-12)
        g.check_invariants()
    assert read == [2.0 * step for step in range(8) for _ in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    segments=st.lists(st.tuples(steps, st.integers(0, 2)), min_size=1, max_size=4),
    acts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=4),
    last=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=4),
)
def test_nothing_differs_in_loops(
    distrust: bool,
    segments: list[tuple[Any, int]],
    acts: list[tuple[int, int]],
    last: list[tuple[int, int]],
) -> None:
    """The same acts again and again, then others, then the same again."""
    seen: list[list[Any]] = []
    for special in (False, True):
        g = rg.Graph()
        g._scheduler.distrust = distrust or g._scheduler.distrust
        leaves = [g.param(np.linspace(0.1, 0.4, 4).reshape(2, 2) * (i + 1)) for i in range(3)]
        outputs: list[Any] = list(leaves)
        for part, how in segments:
            kind = ("plain", "checkpoint", "hooks")[how if special else 0]
            made = build(kind, lambda *xs: grow(list(xs), part), *outputs[-3:])  # noqa: B023
            outputs += made
        loss = outputs[-2].sum() + outputs[-1].sum()
        found: list[Any] = []
        for act, which in [*acts * 5, *last, *acts * 4]:
            run = None
            leaf, target = leaves[which % 3], outputs[which % len(outputs)]
            if act == 0:
                leaf.set(leaf.value * 0.5 + which * 0.01)
            elif act == 1:
                run = g.forward(target)
            elif act in (2, 5) and loss.requires_grad:
                leaf.touch()
                run = loss.backward()
            elif act == 3:
                found.append(target.value)
            elif act == 4:
                leaf.touch()
            if run is not None:
                found.append([node.name for node in run.ran])
                assert len(set(map(id, run.rebuilt))) == len(run.rebuilt)
            found.append([(one.value_version, one.is_stale) for one in outputs])
            found.append([None if one.grad is None else np.array(one.grad) for one in leaves])
        found.append(loss.value)
        seen.append(found)
        g.check_invariants()
    np.testing.assert_equal(seen[0], seen[1])
