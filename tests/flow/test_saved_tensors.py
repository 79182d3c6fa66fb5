"""Values that are put away between runs: when, where to, what comes back, and what fails."""

from __future__ import annotations

import gc
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.flow._saved import open_hooks
from tests.explain.models import named, row_of_tanh
from tests.flow.test_checkpoint import grow, lying, steps


class Places:
    """Hooks that count, and keep copies."""

    def __init__(self) -> None:
        self.packed: list[Any] = []
        self.unpacked = 0

    def pack(self, array: Any) -> int:
        self.packed.append(np.array(array))
        return len(self.packed) - 1

    def unpack(self, number: int) -> Any:
        self.unpacked += 1
        return self.packed[number]

    def hooks(self) -> Any:
        return rg.saved_tensors_hooks(self.pack, self.unpack)


def model(x: Any) -> Any:
    return rg.tanh(rg.exp(x))


def expected_gradient(build: Callable[[Any], Any], value: Any) -> Any:
    w = rg.Graph().param(value)
    build(w).sum().backward()
    return np.asarray(w.grad)


# --- when ----------------------------------------------------------------------------------------


def test_packed_after_the_forward_and_unpacked_for_the_gradient(g: rg.Graph) -> None:
    places = Places()
    value = np.linspace(0.1, 0.9, 1000)
    w = g.param(value)
    with places.hooks():
        h = model(w)
    y = named(h.sum(), "y")
    assert not places.packed, "building computes nothing"
    y.value
    assert len(places.packed) == 2
    assert np.array_equal(places.packed[1], np.tanh(np.exp(value)))
    assert places.unpacked == 0
    assert lying(g) == {"y"}
    assert g.stats().bytes == 8000 + 8
    run = y.backward()
    assert places.unpacked == 2
    assert len(places.packed) == 2, "what did not change is not packed again"
    assert not run.rebuilt
    assert not {h.name, "y"} & {node.name for node in run.ran}
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, value))
    assert (h.value_version, h.is_stale) == (1, False)
    g.check_invariants()


def test_a_change_packs_anew(g: rg.Graph) -> None:
    places = Places()
    w = g.param(np.full(10, 0.5))
    with places.hooks():
        h = model(w)
    y = h.sum()
    for step in range(3):
        value = np.full(10, 0.1 * step)
        w.set(value)
        w.zero_grad()
        run = y.backward()
        assert h in run.ran
        assert h.value_version == step + 1
        assert np.array_equal(np.asarray(w.grad), expected_gradient(model, value))
    assert len(places.packed) == 6


def test_a_read_brings_back_and_stays_until_the_next_run(g: rg.Graph) -> None:
    places = Places()
    w = g.param(np.full(10, 0.5))
    with places.hooks():
        h = model(w)
    y = h.sum()
    y.value
    first = h.value
    assert places.unpacked == 1
    assert h.value is first
    assert np.array_equal(first, np.tanh(np.exp(np.full(10, 0.5))))
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0
    y.backward()
    assert h.value is first, "the same object while the version is unchanged"


def test_only_nodes_of_the_block_and_no_leaves(g: rg.Graph) -> None:
    places = Places()
    before = rg.exp(g.param(np.ones(3)))
    with places.hooks():
        leaf = g.param(np.ones(3))
        inside = before * leaf
    after = rg.tanh(inside)
    y = after.sum()
    y.backward()
    assert len(places.packed) == 1
    assert lying(g) >= {before.name, after.name}
    assert inside.name not in lying(g)


def test_the_innermost_block_of_the_thread_counts(g: rg.Graph) -> None:
    outer, inner = Places(), Places()
    x = g.param(np.ones(3))
    built: list[Any] = []
    with outer.hooks():
        with inner.hooks():
            a = rg.exp(x)
        b = rg.sin(x)
        thread = threading.Thread(target=lambda: built.append(rg.cos(x)))
        thread.start()
        thread.join()
    assert not open_hooks

    @outer.hooks()
    def decorated() -> Any:
        return rg.tanh(x)

    (a + b + built[0] + decorated()).sum().value
    assert (len(inner.packed), len(outer.packed)) == (1, 2)


def test_what_stays(g: rg.Graph) -> None:
    places = Places()
    x = g.param(np.full((2, 3), 0.5))
    seen: list[Any] = []
    with places.hooks():
        observed = rg.exp(x)
        cut = rg.floor(x)
        cut.cutoff = "equal"
        words = rg.lift(lambda a: ["word"])(x)
    observed.observe(lambda old, new: seen.append(new))
    y = (observed + cut).sum()
    g.forward(y, words)
    x.set(np.full((2, 3), 0.6))
    g.forward(y, words)
    g.forward(y)
    assert not places.packed
    assert words.value == ["word"]
    assert np.array_equal(seen[-1], np.exp(np.full((2, 3), 0.6)))


def test_a_pinned_value_stays(g: rg.Graph) -> None:
    places = Places()
    x = g.param(np.full(3, 0.5))
    with places.hooks():
        h = named(rg.exp(x), "h")
    y = h * 2.0
    y.value
    assert "h" not in lying(g)
    h.pin(np.full(3, 7.0))
    assert y.value.tolist() == [14.0] * 3
    assert "h" in lying(g)
    h.unpin()
    assert np.array_equal(y.value, np.exp(np.full(3, 0.5)) * 2.0)
    assert len(places.packed) == 2
    g.check_invariants()


def test_views_stay_views(g: rg.Graph) -> None:
    """A copy would have other strides, and kernels might round otherwise."""
    places = Places()
    w = np.random.default_rng(0).normal(size=(50, 40))
    x = g.param(w)
    with places.hooks():
        h = rg.tanh(x).T
        y = h @ rg.tanh(x)
    loss = y.sum()
    loss.value
    assert len(places.packed) == 3
    loss.backward()
    assert np.array_equal(
        np.asarray(x.grad), expected_gradient(lambda x: rg.tanh(x).T @ rg.tanh(x), w)
    )
    assert np.array_equal(h.value, np.tanh(w).T)
    g.check_invariants()


def test_functions_that_read_get_the_value(g: rg.Graph) -> None:
    places = Places()
    x = g.param(np.full(3, 0.5))
    with places.hooks():
        h = rg.exp(x)
        array = rg.lift(lambda a: a * 2.0)(h)
    array.sum().value
    assert len(places.packed) == 2
    with g:
        reader = rg.lift(lambda: float(h.value[0]) + float(array.value[0]))()
    assert reader.value == np.exp(0.5) * 3.0
    assert places.unpacked == 2


def test_second_order(g: rg.Graph) -> None:
    places = Places()
    x = g.param(np.linspace(0.1, 0.9, 5))
    with places.hooks():
        y = model(x).sum()
    first = rg.grad(y, x)
    second = rg.grad((first * first).sum(), x)
    z = rg.Graph().param(np.linspace(0.1, 0.9, 5))
    plain = rg.grad(model(z).sum(), z)
    assert np.array_equal(first.value, plain.value)
    assert np.array_equal(second.value, rg.grad((plain * plain).sum(), z).value)


@pytest.mark.whole
def test_memory_falls(tmp_path: Path) -> None:
    peaks: list[int] = []
    for hooked in (False, True):
        g = rg.Graph()
        w = g.param(np.full(100_000, 0.5))
        if hooked:
            with rg.save_on_disk(tmp_path):
                y = row_of_tanh(w, 50).sum()
        else:
            y = row_of_tanh(w, 50).sum()
        tracemalloc.start()
        try:
            y.value
            peaks.append(tracemalloc.get_traced_memory()[1] // 800_000)
        finally:
            tracemalloc.stop()
    assert peaks[0] >= 50
    assert peaks[1] <= 5


# --- what fails ----------------------------------------------------------------------------------


def test_a_failing_pack_loses_nothing(g: rg.Graph) -> None:
    fails = True

    def pack(array: Any) -> Any:
        if fails:
            raise OSError("disk is full")
        return array.copy()

    w = g.param(np.full(4, 0.5))
    with rg.saved_tensors_hooks(pack, lambda a: a):
        h = named(model(w), "h")
    y = h.sum()
    with pytest.raises(OSError, match="disk is full") as caught:
        y.value
    assert any("node" in note and "op 'exp'" in note for note in caught.value.__notes__)
    assert not y.is_stale, "all has run"
    assert y.value == np.tanh(np.exp(np.full(4, 0.5))).sum()
    with pytest.raises(OSError, match="disk is full"):
        y.backward()
    assert w.grad is None
    fails = False
    y.backward()
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(4, 0.5)))
    assert "h" not in lying(g)
    g.check_invariants()


def test_a_failing_pack_is_no_matter_of_other_reads(g: rg.Graph) -> None:
    fails = True

    def pack(array: Any) -> Any:
        if fails:
            raise OSError("disk is full")
        return array.copy()

    a, b = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    with rg.saved_tensors_hooks(pack, lambda array: array):
        h = named(rg.exp(a), "h")
        q = (h * 2.0).sum()
    r = (b * b).sum()
    with pytest.raises(OSError, match="disk is full"):
        q.backward()
    assert a.grad is None
    for step in range(3):
        r.backward()
        assert np.array_equal(np.asarray(b.grad), [6.0 * (step + 1), 8.0 * (step + 1)])
        b.touch()
    a.touch()
    with pytest.raises(OSError, match="disk is full"):
        q.value
    fails = False
    r.backward()
    q.backward()
    assert np.allclose(np.asarray(a.grad), 2.0 * np.exp([1.0, 2.0]))
    assert "h" not in lying(g)
    g.check_invariants()


def test_a_failing_unpack_loses_nothing(g: rg.Graph) -> None:
    fails = True
    arrays: list[Any] = []

    def unpack(number: int) -> Any:
        if fails:
            raise OSError("gone for now")
        return arrays[number]

    w = g.param(np.full(10, 0.5))
    with rg.saved_tensors_hooks(lambda a: arrays.append(a.copy()) or len(arrays) - 1, unpack):
        h = named(model(w), "h")
    y = h.sum()
    total = y.value
    with pytest.raises(OSError, match="gone for now") as caught:
        h.value
    assert any("node 'h', op 'tanh'" in note for note in caught.value.__notes__)
    gradient = rg.grad(y, w)
    for _ in range(2):
        with pytest.raises(OSError, match="gone for now"):
            y.backward()
        assert w.grad is None
    fails = False
    g.forward(gradient, retry=True)
    y.backward()
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(10, 0.5)))
    assert h.value_version == 1
    assert y.value == total
    g.check_invariants()


@pytest.mark.parametrize(
    ("unpack", "kind", "says"),
    [
        (
            lambda a: a[:3],
            rg.ShapeError,
            r"value of 'h' returned an array of shape \(3,\).*\(10,\)",
        ),
        (lambda a: a.astype(np.float32), rg.DTypeError, "returned an array of float32.*float64"),
        (lambda a: None, rg.DTypeError, r"returned NoneType.*float64\[10\]"),
        (lambda a: a.tolist(), rg.DTypeError, "returned list"),
    ],
)
def test_an_unpack_that_returns_something_else(
    g: rg.Graph, unpack: Any, kind: type[Exception], says: str
) -> None:
    w = g.param(np.full(10, 0.5))
    with rg.saved_tensors_hooks(np.copy, unpack):
        h = named(rg.tanh(w), "h")
    y = h.sum()
    y.value
    with pytest.raises(kind, match=says):
        h.value
    with pytest.raises(kind, match=says):
        y.backward()
    assert w.grad is None


def test_hooks_cannot_change_the_graph(g: rg.Graph) -> None:
    x = g.param(np.ones(3))

    def pack(array: Any) -> Any:
        x.set(np.zeros(3))
        return array

    with rg.saved_tensors_hooks(pack, lambda a: a):
        h = rg.exp(x)
    y = h.sum()
    with pytest.raises(rg.BusyError):
        y.value
    assert y.value == np.e * 3
    g.check_invariants()


def test_bad_arguments() -> None:
    with pytest.raises(rg.DTypeError, match=r"unpack is NoneType; give two functions"):
        rg.saved_tensors_hooks(np.copy, None)  # type: ignore[arg-type]


# --- places --------------------------------------------------------------------------------------


def files(folder: Path) -> int:
    return len(list(folder.iterdir()))


@pytest.mark.slow
def test_files_go_when_values_die(g: rg.Graph, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "values"
    w = g.param(np.full(10, 0.5))
    with rg.save_on_disk(folder):
        h = model(w)
    y = h.sum()
    assert files(folder) == 0
    y.value
    assert files(folder) == 2
    w.set(np.full(10, 0.7))
    y.backward()
    gc.collect()
    assert files(folder) == 2, "those of the former values are gone"
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(10, 0.7)))
    del h, y
    g.check_invariants()
    len(g)
    gc.collect()
    assert files(folder) == 0


def test_a_folder_of_its_own_goes_with_the_last_value(
    g: rg.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    w = g.param(np.full(10, 0.5))
    with rg.save_on_disk():
        y = model(w)
    total = y.sum()
    total.value
    assert len(os.listdir(tmp_path)) == 1
    del y, total
    len(g)
    gc.collect()
    assert not os.listdir(tmp_path)


def test_a_file_that_is_gone(g: rg.Graph, tmp_path: Path) -> None:
    w = g.param(np.full(10, 0.5))
    with rg.save_on_disk(tmp_path):
        h = model(w)
    y = h.sum()
    y.value
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(FileNotFoundError):
        y.backward()
    w.touch()
    y.backward()
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(10, 0.5)))


def test_a_disk_that_is_full_leaves_no_file(
    g: rg.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    w = g.param(np.full(10, 0.5))
    with rg.save_on_disk(tmp_path):
        y = model(w).sum()
    monkeypatch.setattr(np, "save", full)
    with pytest.raises(OSError, match="no space left"):
        y.value
    monkeypatch.undo()
    gc.collect()
    assert files(tmp_path) == 0
    y.backward()
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(10, 0.5)))


@pytest.mark.parametrize("place", ["cpu", "disk"])
def test_arrays_of_another_device_go_to_the_host_and_back(place: str, tmp_path: Path) -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")
    g = rg.Graph()
    value = np.linspace(0.1, 0.9, 6).reshape(2, 3)
    w = g.param(xp.asarray(value))
    with rg.save_on_cpu() if place == "cpu" else rg.save_on_disk(tmp_path):
        h = model(w)
    y = h.sum()
    y.value
    assert h.name not in lying(g)
    if place == "cpu":
        assert isinstance(g._host.away[h._slot].packed, np.ndarray)
    y.backward()
    assert h.device == w.device
    np.testing.assert_allclose(np.asarray(w.grad), expected_gradient(model, value), rtol=1e-15)
    assert hasattr(h.value, "__array_namespace__")


def test_forks_and_files(g: rg.Graph, tmp_path: Path) -> None:
    w = g.param(np.full(10, 0.5), name="w")
    with rg.save_on_disk(tmp_path / "values"):
        h = named(model(w), "h")
    y = named(h.sum(), "y")
    y.value
    fork = g.fork()
    fork["y"].backward()
    g.save(tmp_path / "graph")
    w.set(np.full(10, 0.9))
    y.value
    expected = expected_gradient(model, np.full(10, 0.5))
    assert np.array_equal(fork["h"].value, np.tanh(np.exp(np.full(10, 0.5))))
    assert np.array_equal(np.asarray(fork["w"].grad), expected)
    loaded = rg.load(tmp_path / "graph")
    loaded["y"].backward()
    assert np.array_equal(np.asarray(loaded["w"].grad), expected)
    assert loaded["h"].value_version == 1


def test_with_anomaly_mode_and_profile(g: rg.Graph) -> None:
    places = Places()
    w = g.param(np.full(10, 0.5))
    with places.hooks():
        y = model(w).sum()
    with rg.detect_anomaly(), rg.profile() as prof:
        y.value
        y.backward()
    assert {"tanh", "exp", "sum"} <= {row.op for row in prof.rows}
    assert np.array_equal(np.asarray(w.grad), expected_gradient(model, np.full(10, 0.5)))
    places.packed[0][0] = 7.0  # changed behind its version, where it lies
    with rg.detect_anomaly():
        w.set(np.full(10, 0.6))
        y.value
        places.packed[2][0] = 7.0
        with pytest.raises(rg.MutationError, match="changed behind its version 2"):
            y.backward()


def test_anomaly_mode_allows_what_is_less_precise(g: rg.Graph) -> None:
    value = np.linspace(0.1, 1.0, 4)
    w = g.param(value)
    with rg.saved_tensors_hooks(lambda a: a.astype("f4"), lambda a: a.astype("f8")):
        h = rg.tanh(rg.sin(w))
    y = h.sum()
    with rg.detect_anomaly():
        y.backward()
        w.set(value * 0.5)
        y.backward()
    expected = expected_gradient(lambda w: rg.tanh(rg.sin(w)), value * 0.5)
    expected = expected + expected_gradient(lambda w: rg.tanh(rg.sin(w)), value)
    np.testing.assert_allclose(np.asarray(w.grad), expected, rtol=1e-6)


def test_anomaly_mode_says_that_nan_came_from_unpack(g: rg.Graph) -> None:
    w = g.param(np.linspace(0.1, 1.0, 4), name="w")
    with rg.saved_tensors_hooks(lambda a: a, lambda a: np.where(a > 0.6, np.nan, a)):
        h = rg.sigmoid(w)
    h.name = "h"
    y = h.sum()
    del h
    words = "the value of 'h', op 'sigmoid', came back from unpack of its saved_tensors_hooks with 2 NaN"
    with rg.detect_anomaly():
        y.value
        with pytest.raises(rg.AnomalyError, match=words):
            y.backward()
    w.set(-np.ones(4))
    with rg.saved_tensors_hooks(lambda a: a, lambda a: a):
        root = rg.sqrt(w)
    with (
        rg.detect_anomaly(),
        pytest.raises(rg.AnomalyError, match=r"^node 'root', op 'sqrt', gave 4 NaN"),
    ):
        rg.tanh(root).sum().value


def test_arrays_of_objects_stay_in_memory(g: rg.Graph, tmp_path: Path) -> None:
    x = g.input(1.0)
    with rg.save_on_disk(tmp_path):
        words = rg.lift(lambda x: np.array([x, "a", None], dtype=object))(x)
    length = rg.lift(len)(words)
    assert length.value == 3
    assert words.value.tolist() == [1.0, "a", None]
    assert files(tmp_path) == 0


# --- beside PyTorch, and laws --------------------------------------------------------------------


def test_gradients_see_what_unpack_gives_as_pytorchs_do() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    value = np.linspace(0.1, 0.9, 7)
    t = torch.tensor(value, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda a: a.to(torch.float32), lambda a: a.to(torch.float64)
    ):
        (torch.tanh(torch.exp(t))).sum().backward()
    w = rg.Graph().param(value)
    with rg.saved_tensors_hooks(lambda a: a.astype("f4"), lambda a: a.astype("f8")):
        y = model(w)
    y.sum().backward()
    np.testing.assert_allclose(np.asarray(w.grad), t.grad.numpy(), rtol=1e-12)
    assert not np.allclose(np.asarray(w.grad), expected_gradient(model, value), rtol=1e-12)


@pytest.mark.parametrize("distrust", [False, True], ids=["trusting", "distrusting"])
@given(
    segments=st.lists(st.tuples(steps, st.integers(0, 2)), min_size=1, max_size=4),
    acts=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=8),
)
def test_nothing_but_memory_differs(
    distrust: bool, segments: list[tuple[Any, int]], acts: list[tuple[int, int]]
) -> None:
    """Some parts hooked, some checkpointed, some plain: the same bits, versions and runs."""
    seen: list[list[Any]] = []
    for special in (False, True):
        g = rg.Graph()
        g._scheduler.distrust = distrust or g._scheduler.distrust
        leaves = [g.param(np.linspace(0.1, 0.4, 4).reshape(2, 2) * (i + 1)) for i in range(3)]
        outputs: list[Any] = list(leaves)
        for part, how in segments:

            def build(*xs: Any, part: Any = part) -> Any:
                return grow(list(xs), part)

            if not special or how == 0:
                outputs += build(*outputs[-3:])
            elif how == 1:
                outputs += rg.checkpoint(build, *outputs[-3:])
            else:
                with rg.saved_tensors_hooks(np.copy, np.copy):
                    outputs += build(*outputs[-3:])
        loss = outputs[-2].sum() + outputs[-1].sum()
        found: list[Any] = []
        for act, which in acts:
            run = None
            leaf, target = leaves[which % 3], outputs[which % len(outputs)]
            if act == 0:
                leaf.set(leaf.value * 0.5 + which * 0.01)
            elif act == 1:
                run = g.forward(target)
            elif act == 2 and loss.requires_grad:
                run = loss.backward()
            elif act == 3:
                found.append(target.value)
            elif act == 4:
                leaf.touch()
            if run is not None:
                found.append([node.name for node in run.ran])
            found.append([(one.value_version, one.is_stale) for one in outputs])
            found.append([None if one.grad is None else np.array(one.grad) for one in leaves])
        found.append(loss.value)
        seen.append(found)
        g.check_invariants()
    np.testing.assert_equal(seen[0], seen[1])


def test_a_checkpoint_takes_over_what_hooks_have_put_away_while_it_was_built() -> None:
    """To build the inner gradient shapes are computed, inside of the block and of the checkpoint."""

    class Twice(rg.Function):  # says no shape
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2.0

    def slope(x: Any) -> Any:
        x = x * 1.0
        return rg.grad(rg.sin(x).sum(), x)

    g = rg.Graph()
    a = g.param(np.ones(3))
    doubled = Twice.apply(a)
    with rg.saved_tensors_hooks(lambda value: value, lambda packed: packed):
        y = rg.checkpoint(slope, doubled).sum()
    for value in (1.0, 0.5):
        a.set(np.full(3, value))
        g.zero_grad()
        assert y.value == pytest.approx(3 * np.cos(2 * value), rel=1e-12)
        y.backward()
        np.testing.assert_allclose(a.grad, np.full(3, -2 * np.sin(2 * value)), rtol=1e-12)
    g.check_invariants()


@pytest.mark.parametrize("budget", [0, 100, 200, 10**6])
@pytest.mark.parametrize("retain_graph", [None, True, False])
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_what_lies_away_comes_back_for_gradients_that_a_budget_let_go(
    g: rg.Graph, budget: int, retain_graph: bool | None
) -> None:
    gradients = []
    for limit in (None, budget):
        graph = g if limit is None else rg.Graph(max_bytes=limit)
        x, w = graph.param(np.full(4, 0.5)), graph.param(np.ones(4))
        h = rg.exp(x * w)
        with rg.save_on_cpu():
            y = h * w
        loss = (y * y).sum()
        loss.value
        loss.backward(retain_graph=retain_graph)
        gradients.append([np.asarray(x.grad), np.asarray(w.grad)])
        graph.check_invariants()
    assert np.array_equal(*gradients)
