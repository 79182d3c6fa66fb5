"""Nodes that died together are taken over by the next ones like them, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

import reactgrad as rg


def model(g: rg.Graph, x: rg.Var, ws: list[rg.Var]) -> rg.Var:
    h = x
    for w in ws:
        h = rg.tanh(h * w + 0.5)
    return h.sum()


def setting(g: rg.Graph, depth: int = 4) -> tuple[rg.Var, list[rg.Var]]:
    rng = np.random.default_rng(0)
    x = g.input(rng.normal(size=(2, 3)))
    return x, [g.param(rng.normal(size=(2, 3))) for _ in range(depth)]


def added(g: rg.Graph) -> Callable[[], int]:
    """Count the rows that are made anew."""
    count = 0
    add = g._scheduler.add

    def counted(*args: object, **kwargs: object) -> int:
        nonlocal count
        count += 1
        return add(*args, **kwargs)  # type: ignore[arg-type]

    g._scheduler.add = counted  # type: ignore[method-assign]
    return lambda: count


def test_a_loop_that_writes_its_model_anew_builds_it_three_times() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    count = added(g)
    lengths, counts = set(), []
    for k in range(8):
        x.set(np.full((2, 3), 0.1 * k))
        loss = model(g, x, ws)
        loss.backward()
        lengths.add(len(g))
        counts.append(count())
    assert len(lengths) == 1
    assert counts[2] == counts[7] < 3 * counts[0]  # the loss before lives while it is built


def test_nodes_are_as_new() -> None:
    g, other = rg.Graph(), rg.Graph()
    other._generations.most = 0
    seen: dict[rg.Graph, list[object]] = {g: [], other: []}
    for graph, notes in seen.items():
        x, ws = setting(graph)
        runs: list[rg.Run] = []
        for k in range(7):
            x.set(np.full((2, 3), 0.1 * k))
            loss = model(graph, x, ws)
            notes.append([(n.name, n.state, n.value_version) for n in graph.nodes])
            graph.zero_grad()
            runs.append(loss.backward())
            notes.append([n.name for n in runs[-1].ran])
            notes.append([[n.name for n in run.ran] for run in runs[:-1]])
            notes.append([[c.name for c in w.children] for w in ws])
            notes.append([w.grad.tobytes() for w in ws])
            notes.append((loss.value, loss.label, len(graph)))
            graph.check_invariants()
    assert seen[g] == seen[other]
    assert g._generations.by_root


def test_a_node_that_somebody_keeps_is_not_taken() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    kept = []
    for k in range(6):
        x.set(np.full((2, 3), 0.1 * k))
        loss = model(g, x, ws)
        loss.backward()
        if k % 2:
            kept.append(loss)
    assert len({id(one) for one in kept}) == len(kept)
    assert len({one.name for one in kept}) == len(kept)
    values = [one.value for one in kept]
    assert values == [values[0]] * 3  # all follow the input


def test_the_first_difference_ends_it() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    for k in range(12):
        x.set(np.full((2, 3), 0.1 * k))
        h = x
        for w in ws[: 2 + k % 3]:
            h = rg.tanh(h * w)
        loss = h.sum() if k % 4 else h.mean()
        loss.backward()
        expected = np.full((2, 3), 0.1 * k)
        for w in ws[: 2 + k % 3]:
            expected = np.tanh(expected * w.value)
        np.testing.assert_array_equal(loss.value, expected.sum() if k % 4 else expected.mean())
        del h, loss
        assert len(g) == 5
        g.check_invariants()


@pytest.mark.parametrize("act", ["fork", "shape", "edit", "name", "hook", "keep", "budget"])
def test_what_is_unusual_sees_the_graph_that_there_is(act: str) -> None:
    g = rg.Graph()
    x, ws = setting(g, 2)
    for k in range(5):
        x.set(np.full((2, 3), 0.1 * k))
        loss = model(g, x, ws)
        loss.backward()
    if act == "fork":
        h = g.fork()
        assert [n.name for n in h.nodes] == [n.name for n in g.nodes]
    elif act == "shape":
        g.set({leaf: np.ones((3, 3)) for leaf in (x, *ws)})
    elif act == "edit":
        loss.replace_parent(0, x)
    elif act == "name":
        loss.name = "loss"
    elif act == "hook":
        ws[0].register_hook(lambda v: v * 2.0)
    elif act == "keep":
        g.keep(loss)
    else:
        g.max_bytes = 10_000
    g.zero_grad()
    new = model(g, x, ws)
    new.backward()
    fresh = rg.Graph()
    y = fresh.input(x.value)
    vs = [fresh.param(w.value) for w in ws]
    other = model(fresh, y, vs)
    other.backward()
    assert new.value == other.value
    for i, (w, v) in enumerate(zip(ws, vs, strict=True)):
        np.testing.assert_allclose(w.grad, v.grad * (2.0 if act == "hook" and not i else 1.0))
    g.check_invariants()


def test_frozen_params_get_no_gradients() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    for k in range(8):
        x.set(np.full((2, 3), 0.1 * k))
        if k == 5:
            ws[0].freeze()
        g.zero_grad()
        loss = model(g, x, ws)
        loss.backward()
        assert (ws[0].grad is None) == (k >= 5)
        assert ws[1].grad is not None


def test_a_generation_keeps_no_leaf() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    for _ in range(5):
        loss = model(g, x, ws)
        loss.backward()
    del loss, ws
    assert len(g) == 1
    del x
    assert len(g) == 0
    g.check_invariants()


def test_a_loop_that_never_repeats_stops_parking() -> None:
    g = rg.Graph()
    x = g.input(np.arange(200.0))
    for i in range(60):
        y = x[i : i + 5].sum()
        assert y.value == np.arange(200.0)[i : i + 5].sum()
    del y
    assert len(g) == 1
    assert len(g._generations.by_root) <= g._generations.most


def test_what_nobody_read_is_built_anew() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    for _ in range(5):
        model(g, x, ws)
    assert not g._generations.by_root


def test_handles_that_die_while_rows_are_taken_wait_for_few_others() -> None:
    """A chain of 300 nodes drops 299 handles; what else has died goes with the first 64 of them."""
    g = rg.Graph()
    x, ws = setting(g, 100)
    others: list[rg.Var] = []

    def chain() -> rg.Var:
        h = x
        for w in ws:
            h = rg.tanh(h * w + 0.5)
            others.clear()
        return h.sum()

    for _ in range(3):
        loss = chain()
        loss.backward()
    count, built = added(g), len(g)
    others.append(rg.exp(x))
    slot = others[0]._slot
    more = chain()
    assert count() == 1  # all of the chain was taken over
    assert not g._scheduler.topology.serial[slot]  # before anything else asked the graph
    assert (len(g), more.is_stale) == (built + 301, True)


def test_another_mode_is_another_node() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    for k in range(9):
        g.zero_grad()
        if k % 3 == 2:
            with rg.no_grad():
                y = (w * 3.0).sum()
            assert not rg.grad(y, w, allow_unused=True)
        else:
            y = (w * 3.0).sum()
            y.backward()
            assert w.grad.tolist() == [3.0, 3.0]


def test_sums_of_gradients_have_one_order() -> None:
    """That of creation, also where some consumers have taken over rows and others are new."""
    found = []
    for most in (0, 8):
        g = rg.Graph()
        g._generations.most = most
        pick = Random(0)
        nodes = [g.param(np.array([0.5, 0.3, 0.1]) * (i + 1)) for i in range(3)]
        for _ in range(40):
            x, y = pick.choice(nodes[-12:]), pick.choice(nodes)
            kinds = (rg.sin(x) * y, x + y, x * y * 0.1, rg.tanh(x) - y[::-1])
            nodes.append(pick.choice(kinds))  # the other three are gone
        gradients = rg.grad(nodes[-1].sum(), nodes[:3], allow_unused=True)
        found.append([one.value.tobytes() for one in gradients if one is not None])
        found[-1].append(str([[p.name for p in n.parents] for n in g.nodes]).encode())
    assert found[0] == found[1]


def test_a_graph_in_which_rows_were_taken_is_saved_and_loaded(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="the format of files")
    g = rg.Graph()
    x, ws = setting(g)
    x.name = "x"
    for k in range(5):
        x.set(np.full((2, 3), 0.1 * k))
        loss = model(g, x, ws)
        loss.backward()
    loss.name = "loss"
    g.save(tmp_path / "graph")
    other = rg.load(tmp_path / "graph")
    assert [n.name for n in other.nodes if n.parents][-1] == "loss"
    assert other["loss"].value == loss.value
    other["x"].set(np.ones((2, 3)))
    x.set(np.ones((2, 3)))
    assert other["loss"].value == loss.value


def test_a_fork_knows_no_node_that_came_later() -> None:
    """Although the row that it has taken was there before, with the same serial."""
    g = rg.Graph()
    x, ws = setting(g)
    for _ in range(4):
        loss = model(g, x, ws)
        loss.backward()
    fork = g.fork()
    assert fork[loss].name == loss.name
    for _ in range(5):
        loss = model(g, x, ws)
        loss.backward()
        with pytest.raises(rg.GraphError, match="made after the fork"):
            fork[loss]


def test_an_error_names_no_node_that_came_later() -> None:
    g = rg.Graph()
    x, ws = setting(g)

    def written() -> tuple[rg.Var, rg.Var]:
        h = x * ws[0]
        loss = rg.tanh(h).sum()
        loss.backward()
        return h, loss

    for _ in range(4):
        h, loss = written()
    try:
        h.replace_parent(0, loss)
    except rg.CycleError as error:
        caught = error.with_traceback(None)  # whose frames hold the nodes
    assert any(one is h for one in caught.path)
    del h, loss
    for _ in range(4):
        held = written()
        assert not caught.path, held


def test_who_holds_a_seed_holds_its_node() -> None:
    g = rg.Graph()
    x, ws = setting(g)
    held: list[rg.Var] = []
    for k in range(8):
        loss = model(g, x, ws)
        loss.backward()
        if k % 2:
            held.append([n for n in g.nodes if n.name.startswith("const")][-1])
        g.check_invariants()
        assert all(one in g and one.name in [n.name for n in g.nodes] for one in held)
    assert len({one.name for one in held}) == len(held) == 4
