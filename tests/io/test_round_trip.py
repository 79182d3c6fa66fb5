"""What is saved comes back: every kind of value, node, mark and flag; and what ran says the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.io import _format
from tests.io import functions
from tests.io.files import assert_same_graph, same, there_and_back

pytest.importorskip("safetensors")

DTYPES = [
    *("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"),
]
SHAPES = [(), (1,), (3,), (2, 3), (0,), (2, 0), (0, 0, 1), (600,)]


def names(vars: Any) -> list[str]:
    return [var.name for var in vars]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_bit_for_bit(dtype: str, shape: tuple[int, ...]) -> None:
    """Every bit pattern is as good as another; named values lie in tensors of their own."""
    size = int(np.prod(shape, dtype=int))
    raw = np.random.default_rng(1).integers(0, 256, size * np.dtype(dtype).itemsize, np.uint8)
    array = (raw % 2 if dtype == "?" else raw).view(dtype).reshape(shape)
    g = rg.Graph()
    made = [g.input(array), g.input(array, name="named"), g.const(array)]
    held = there_and_back(g).nodes
    assert len(held) == len(made)
    for before, after in zip(made, held, strict=True):
        assert same(before.value, after.value)
        assert not isinstance(after.value, np.ndarray) or not after.value.flags.writeable


PLAIN = [
    *(0, -1, True, False, 1 << 62, -(1 << 63), 1 << 64, -(10**40), 0.1, -0.0, 5e-324, 1e308),
    *(float("inf"), float("-inf"), float("nan"), 1j, complex(-0.0, float("nan")), None, "", "ä\n"),
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_python_values_stay_what_they_are(value: Any) -> None:
    g = rg.Graph()
    x = g.input(value)
    (y,) = there_and_back(g).nodes
    assert same(y.value, value)
    assert y.value_version == x.value_version == 1


def test_bits_of_nan_survive() -> None:
    """A NaN has 51 bits and a sign that JSON could not write."""
    array = np.array([0xFFF8000000000123], np.uint64).view(np.float64)
    g = rg.Graph()
    x = g.input(float(array[0]))
    (y,) = there_and_back(g).nodes
    assert np.array(y.value).tobytes() == np.array(x.value).tobytes() == array.tobytes()


KINDS = [
    *("none", "text", "int", "nan", "minus zero", "complex", "bytes", "scalar", "bool", "nested"),
    *("fortran", "axes", "empty", "number"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_functions_come_back_without_a_call(kind: str) -> None:
    g = rg.Graph()
    x = g.input(kind)
    y = rg.lift(functions.thing)(x)
    before = y.value
    functions.CALLS.clear()
    h = there_and_back(g)
    held = h.nodes
    after = held[1].value
    assert same(before, after)
    if isinstance(before, np.ndarray):
        assert after.strides == before.strides, "another layout may add up to other bits"
        assert not after.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            after.flags.writeable = True
    assert not functions.CALLS
    assert held[1].value_version == 1


@pytest.mark.parametrize("kind", ["object", "set", "strings", "lists"])
def test_results_without_a_form_in_a_file_are_computed_again_at_their_version(kind: str) -> None:
    g = rg.Graph()
    y = rg.lift(functions.thing)(g.input(kind))
    z = rg.lift(functions.itself)(y)
    z.value
    functions.CALLS.clear()
    held = there_and_back(g).nodes
    assert [v.is_stale for v in held] == [False, False, False]
    run = held[2].graph.forward(held[2])
    assert (names(run.ran), names(run.rebuilt)) == ([], names(held[1:]))
    assert [kind] == functions.CALLS
    assert (held[1].value_version, held[2].value_version) == (1, 1)


def test_a_view_that_does_not_fill_its_memory_is_computed_again() -> None:
    g = rg.Graph()
    y = rg.lift(functions.view)(g.input(np.arange(60_000.0).reshape(200, 300)))
    before = y.value
    functions.CALLS.clear()
    held = there_and_back(g).nodes
    assert not held[1].is_stale
    assert held[1].value.strides == before.strides
    assert same(before, held[1].value)
    assert functions.CALLS == ["view"]


def test_views_share_memory_again() -> None:
    g = rg.Graph()
    x = g.input(np.arange(60_000.0).reshape(200, 300), name="x")
    y = x.T[5:, ::2]
    y.name = "y"
    z = y.reshape(-1)
    z.name = "z"
    z.value
    h = there_and_back(g)
    assert h.forward(h["z"]).rebuilt == []
    buffers = {v.name: h._host.data[v._slot] for v in h.nodes}
    assert np.shares_memory(buffers["x"], buffers["y"])
    assert same(h["z"].value, z.value)
    h["x"].set(np.ones((200, 300)))
    assert h["y"].value.sum() == 295 * 100


def a_bit_of_everything() -> rg.Graph:
    """A graph with all that a graph may have; it keeps all nodes that have a name."""
    g = rg.Graph(rng=11)

    def named(name: str, var: Any) -> Any:
        var.name = name
        return g.keep(var)

    x = named("x", g.input([1.0, 2.0, 3.0]))
    w = named("w", g.param(np.arange(6.0).reshape(3, 2)))
    n = named("n", g.input(2, cutoff=functions.close))
    named("unset", g.input(shape=(None, 2), dtype="f4"))
    named("pattern", g.input(np.zeros((5, 2), np.float32), shape=(None, 2), dtype="f4"))
    named("dtype only", g.input(dtype="i2"))
    named("text", g.input("text"))
    y = named("y", rg.tanh(x @ w) + n)
    y.cutoff = "equal"
    z = named("z", (y.detach() * y)[[0, 1, 1], ...].sum())
    z.cutoff = rg.tolerance(1e-9, 0.5)
    named("gathered", x[g.input(np.array([[0, 1], [2, 2]])), None])
    named("sliced", x[1:, None][::-1])
    with rg.no_grad():
        named("no_grad", w * 2.0)
    named("clipped", rg.clip(x, None, 2.0))
    named("joined", rg.concatenate([x, x.astype("f2")]))
    frozen = named("frozen", g.param(1.5).freeze())
    pinned = named("pinned", frozen * x)
    pinned.pin([9.0, 8.0, 7.0])
    named("above", pinned + 1.0)
    named("switch", rg.switch(n > 1, x, x * 2.0))
    affine = rg.lift(functions.affine)
    named("affine", affine(x, 1.0, None, "a", scale=n, axis=(0, 1), k=slice(2)))
    double = rg.lift(functions.double, vjp=functions.double_vjp, shape=(3,))
    named("declared", double(x))
    named("decorated", functions.decorated(n))
    named("twice", functions.twice_decorated(n))
    named("static", rg.lift(functions.Holder.static)(g.input(True)))
    y.retain_grad()
    g.keep(x * 5.0)
    return g


def states() -> dict[str, Callable[[rg.Graph], object]]:
    """What may have happened to a graph before it is saved."""
    return {
        "fresh": lambda g: None,
        "read": lambda g: [v.value for v in g.nodes if v.state != "unset"],
        "half stale": lambda g: ([v.value for v in g.nodes if v.state != "unset"], g["n"].set(7)),
        "cut off": lambda g: (g["z"].value, g["x"].touch(), g["y"].value),
        "doubtful": lambda g: (g["z"].value, g["x"].touch()),
        "touched": lambda g: (g["affine"].value, g["affine"].touch()),
        "gradients": lambda g: g["z"].backward(),
        "released": lambda g: g["z"].backward(retain_graph=False),
        "forgotten": lambda g: (g["above"].value, g.forget_marks()),
        "unpinned": lambda g: (g["above"].value, g["pinned"].unpin()),
        "edited": lambda g: (g["above"].value, g["above"].replace_parent(0, g["sliced"][0])),
        "switched": lambda g: (g["switch"].value, g["n"].set(0), g["switch"].value),
    }


@pytest.mark.parametrize("what", states())
def test_everything_comes_back_in_every_state(what: str) -> None:
    g = a_bit_of_everything()
    states()[what](g)
    h = there_and_back(g)
    held = h.nodes
    assert_same_graph(g, h)
    assert len(held) >= 35
    again = there_and_back(h)
    held = again.nodes
    assert_same_graph(h, again)


@pytest.mark.parametrize("what", states())
def test_both_run_the_same_nodes_to_the_same_bits(what: str) -> None:
    """Stale nodes run, clean ones do not; before and after further changes."""
    g = a_bit_of_everything()
    states()[what](g)
    h = there_and_back(g)
    for _ in range(3):
        for name in sorted(g._host.named):
            assert g[name].state == h[name].state
            if g[name].state == "unset":
                continue
            first, second = g.forward(g[name]), h.forward(h[name])
            assert names(first.ran) == names(second.ran)
            assert names(first.cut_off) == names(second.cut_off)
            assert names(first.skipped) == names(second.skipped)
            assert names(first.rebuilt) == names(second.rebuilt)
            assert same(g[name].value, h[name].value)
            assert g[name].value_version == h[name].value_version
        for graph in (g, h):
            graph["x"].set(graph["x"].value * 1.5 + 0.25)
            graph["n"].set(graph["n"].value + 1)


def test_clean_reads_after_loading_run_nothing() -> None:
    g = rg.Graph()
    y = rg.tanh(g.input([1.0, 2.0]) * 3.0).sum()
    y.name = "y"
    y.value
    h = there_and_back(g)
    assert h.plan(h["y"]).nodes == []
    run = h.forward(h["y"])
    assert (names(run.ran), names(run.rebuilt)) == ([], [])


def test_gradients_after_loading_add_up_in_the_same_order() -> None:
    """Three consumers whose contributions give other bits in another order; rewired before."""
    g = rg.Graph()
    w = g.param([0.1, 0.7], name="w")
    scales = g.input([1e16, 1.0, -1e16], name="scales")
    parts = [w * scales[i] for i in range(3)]
    y = (parts[2] + parts[0] + parts[1]).sum()
    y.name = "y"
    late = w * 3.0
    y.parents[0].replace_parent(1, late)
    h = there_and_back(g)
    assert same(rg.grad(h["y"], h["w"]).value, rg.grad(y, w).value)
    assert same(rg.grad(h["y"], h["w"]).value, np.array([3.0, 3.0]))
    serials = h._scheduler.topology.next_serial
    assert serials == g._scheduler.topology.next_serial


def test_backward_after_loading_starts_without_grad() -> None:
    g = rg.Graph()
    w = g.param(2.0, name="w")
    loss = w * w
    loss.name = "loss"
    loss.backward()
    h = there_and_back(g)
    assert h["w"].grad is None
    h["loss"].backward()
    assert h["w"].grad == 4.0


def test_gradients_that_nobody_holds_are_left_out_and_others_are_nodes() -> None:
    g = rg.Graph()
    w = g.param(2.0, name="w")
    loss = w * w * w
    loss.name = "loss"
    loss.backward()
    without = len(there_and_back(g))
    assert without == 3
    held = rg.grad(loss, w)
    held.value
    h = there_and_back(g)
    (its,) = (v for v in h.nodes if v.name == held.name)
    assert not its.is_stale
    assert its.value == held.value
    del h, held, its
    assert len(there_and_back(g)) == without
    named = rg.grad(loss, w)
    named.name = "dw"
    del named
    h = there_and_back(g)
    h["w"].set(5.0)
    assert h["dw"].value == 75.0
    g.keep(g["dw"] + 1.0)
    g["dw"].name = None
    assert len(there_and_back(g)) > without + 2


def test_what_a_pinned_gradient_was_computed_from_is_left_out_with_it() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0], name="w")
    loss = g.keep((rg.tanh(w) * w).sum())
    without = len(there_and_back(g))
    rg.grad(loss, w).pin([0.0, 0.0])
    assert len(there_and_back(g)) == without


def test_saving_again_and_again_does_not_grow() -> None:
    """Each turn builds gradients anew; those of earlier turns must not come along."""
    g = rg.Graph()
    w = g.param([1.0, 2.0], name="w")
    loss = (rg.tanh(w) * w).sum()
    g.keep(loss).name = "loss"
    del w, loss
    sizes = []
    for _ in range(4):
        g["loss"].backward()
        g = there_and_back(g)
        sizes.append(len(g))
    assert sizes == [4, 4, 4, 4]


def test_named_and_kept_nodes_live_and_others_go_when_let_go() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    named = x + 1.0
    named.name = "named"
    kept = g.keep(x + 2.0).name
    loose = x + 3.0
    h = there_and_back(g)
    assert len(h) == len(g)
    found = h.nodes
    assert loose.name in names(found)
    del found
    assert loose.name not in names(h.nodes)
    assert {"x", "named", kept} < set(names(h.nodes))


def test_new_nodes_get_numbers_that_were_never_used() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    for _ in range(5):
        x + 1.0
    h = there_and_back(g)
    assert (h["x"] * 2.0).name == (x * 2.0).name


def test_versions_go_on_growing() -> None:
    """A value that comes back later is a change for who knew the version of before."""
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x + 1.0
    y.name = "y"
    for i in range(5):
        x.set(float(i))
        y.value
    h = there_and_back(g)
    h["x"].set(4.0)
    assert (h["x"].value_version, h["y"].value_version) == (7, 5)
    assert names(h.forward(h["y"]).ran) == ["y"]


def test_a_node_that_raised_runs_again() -> None:
    g = rg.Graph()
    y = rg.lift(functions.fails)(g.input(1.0))
    y.name = "y"
    with pytest.raises(ArithmeticError):
        y.value
    h = there_and_back(g)
    functions.CALLS.clear()
    for _ in range(2):
        with pytest.raises(ArithmeticError) as caught:
            h["y"].value
        assert any("test_round_trip" in n or "files.py" in n for n in caught.value.__notes__)
    assert functions.CALLS == ["fails"]


def test_saved_values_do_not_change_with_the_graph() -> None:
    """A large value is not copied for the file, and still is that of the moment."""
    from reactgrad.io._capture import capture

    g = rg.Graph()
    x = g.input(np.zeros(100_000))
    state = capture(g)
    x.set(np.ones(100_000))
    assert not state.values[0].any()
    with pytest.raises(ValueError, match="read-only"):
        state.values[0][0] = 1.0


def test_loaded_values_do_not_follow_each_other(tmp_path: Path) -> None:
    g = rg.Graph()
    g.keep(g.input(np.zeros(100_000), name="x"))
    g.save(tmp_path / "g")
    first, second = rg.load(tmp_path / "g"), rg.load(tmp_path / "g")
    before = first["x"].value
    first["x"].set(np.ones(100_000))
    assert not before.any()
    assert not second["x"].value.any()
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1.0


def test_forks_are_saved_like_any_graph() -> None:
    g = a_bit_of_everything()
    g["z"].value
    h = g.fork()
    h["n"].set(9)
    loaded = there_and_back(h)
    assert_same_graph(h, loaded)
    assert loaded["n"].value == 9
    assert g["n"].value == 2


def test_an_empty_graph_comes_back() -> None:
    h = there_and_back(rg.Graph(rng=3))
    assert (len(h), h.seed) == (0, 3)
    assert (h.input(1.0) + 1.0).value == 2.0


def test_names_of_every_kind_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are tensor names where they can be; they cannot collide with ours."""
    odd = [
        "values/x",
        "graph/serial",
        "__metadata__",
        "../../x",
        "a b\n",
        "\ud800",
        "数",
        "nodes/1",
    ]
    for most in (10_000, 3):
        monkeypatch.setattr(_format, "MOST_NAMED", most)
        g = rg.Graph()
        for i, name in enumerate(odd):
            g.keep(g.input([float(i)], name=name))
        h = there_and_back(g)
        assert [h[name].value[0] for name in odd] == [*range(len(odd))]


def test_a_manifest_that_is_too_large_for_metadata_is_a_tensor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_format, "MOST_MANIFEST", 100)
    g = a_bit_of_everything()
    assert_same_graph(g, there_and_back(g))


def test_values_can_be_read_by_others(tmp_path: Path) -> None:
    """It is a safetensors file: any program finds the named values."""
    from safetensors.numpy import load_file

    g = rg.Graph()
    g.keep(g.param(np.arange(6.0, dtype="f4").reshape(2, 3), name="layer/weight"))
    g.save(tmp_path / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    assert same(found["values/layer/weight"], np.arange(6.0, dtype="f4").reshape(2, 3))


@pytest.mark.slow
def test_a_long_chain_needs_no_recursion() -> None:
    g = rg.Graph()
    y = g.input(1.0, name="x")
    for _ in range(30_000):
        y = y + 1.0
    y.name = "y"
    y.value
    h = there_and_back(g)
    assert not h["y"].is_stale
    h["x"].set(2.0)
    assert h["y"].value == 30_002.0
    assert len(h.last_run.ran) == 30_000


def test_a_branch_not_taken_stays_uncomputed() -> None:
    g = rg.Graph()
    c, x = g.input(True, name="c"), g.input(3.0, name="x")
    y = rg.switch(c, x * 2.0, rg.lift(functions.fails, vjp=functions.same_vjp, shape=())(x))
    y.name = "y"
    y.value
    h = there_and_back(g)
    functions.CALLS.clear()
    h["x"].set(4.0)
    assert h["y"].value == 8.0
    assert functions.CALLS == []
    assert rg.grad(h["y"], h["x"]).value == 2.0
    h["c"].set(False)
    with pytest.raises(ArithmeticError):
        h["y"].value


def test_what_nodes_read_while_they_run_comes_back() -> None:
    """What was read last time is a parent: its change is a reason to run, another one's is none."""
    g = rg.Graph()
    which, a, b = (g.input(v, name=n) for v, n in ((True, "which"), (1.0, "a"), (2.0, "b")))
    functions.READERS.update(a=a, b=b)
    y = rg.lift(functions.reads)(which)
    y.name = "y"
    y.value
    h = there_and_back(g)
    assert_same_graph(g, h)
    functions.READERS.update(a=h["a"], b=h["b"])
    h["b"].set(5.0)
    assert names(h.forward(h["y"]).ran) == []
    h["a"].set(6.0)
    assert h["y"].value == 6.0
    h["which"].set(False)
    assert h["y"].value == 5.0
    assert names(h["y"].parents) == ["which", "b"]


def test_saving_changes_nothing(tmp_path: Path) -> None:
    g = a_bit_of_everything()
    g["z"].value
    g["x"].touch()
    before = {v.name: (v.value_version, v.parent_versions, v.is_stale) for v in g.nodes}
    g.save(tmp_path / "g")
    assert {v.name: (v.value_version, v.parent_versions, v.is_stale) for v in g.nodes} == before
    g.check_invariants()


def test_saving_inside_of_a_node_or_a_transaction_is_refused(tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(lambda a: g.save(tmp_path / "g"))(x)
    with pytest.raises(rg.BusyError, match="Save it after the read"):
        y.value
    with pytest.raises(rg.SaveError, match="Save the graph after it"), g.transaction():
        x.set(2.0)
        g.save(tmp_path / "g")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("what", ["input", "param", "node", "pinned node"])
def test_what_had_a_cutoff_once_comes_back(what: str) -> None:
    g = rg.Graph()
    x, w = g.input(1.0, name="x"), g.param([1.0], name="w")
    y = g.keep(x * w)
    y.name = "y"
    y.value
    had = {"input": x, "param": w}.get(what, y)
    had.cutoff = "equal"
    if what == "pinned node":
        y.pin([5.0])
    had.cutoff = None
    h = there_and_back(g)
    assert_same_graph(g, h)
    assert h["y"].value == g["y"].value


def test_a_model_with_a_choice_comes_back_after_batches_of_several_lengths(tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(shape=(None,), dtype="f8", name="x")
    w = g.param(1.0, name="w")
    h = x * w
    loss = g.keep((rg.switch(g.mode, h * 0.9, h) ** 2).sum())
    loss.name = "loss"
    for length in (4, 7, 4, 3):
        x.set(np.ones(length))
        if length != 3:
            loss.backward()
        g.save(tmp_path / "model")
        other = rg.load(tmp_path / "model")
        other["x"].set(np.ones(5))
        assert other["loss"].value == pytest.approx(5 * 0.81)


def test_nodes_of_a_choice_go_with_it() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    rg.switch(x > 0.0, x * 2.0, x * 3.0)  # nobody has it
    assert g.nodes == [x]


@pytest.mark.parametrize(
    ("first", "number", "held"),
    [(0.5, 8, 8.0), (0.5, True, 1.0), (2, 10**30, 10**30), (2, True, True), (2, 0.5, 0.5)],
)
def test_an_input_of_numbers_comes_back_with_the_kind_that_it_holds(
    first: float, number: float, held: float
) -> None:
    g = rg.Graph()
    rate = g.input(first, name="rate")
    rg.lift(lambda x: x)(rate)
    rate.set(number)
    loaded = there_and_back(g)
    for graph in (g, loaded, g.fork()):
        assert type(graph["rate"].value) is type(held)
        assert graph["rate"].value == held
        graph["rate"].set(3)
        assert type(graph["rate"].value) is type(held * 3)
    assert_same_graph(g, there_and_back(g))
