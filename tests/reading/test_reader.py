"""A prepared read does what sets, reads and sets one after the other do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg


def model(apart: bool = False, **options: Any) -> tuple[rg.Graph, dict[str, rg.Var]]:
    """Return nodes; `apart`: each leaf has some of its own that no other one reaches."""
    g = rg.Graph(**options)
    n = {"x": g.input([1.0, 2.0], name="x"), "s": g.input(0.5, name="s")}
    n["w"] = g.param([0.25, -0.5], name="w")
    n["b"] = g.param(0.1, name="b")
    n["h"] = rg.tanh(n["x"] * n["w"]) * n["s"]
    if apart:
        n["h"] = n["h"] + rg.exp(n["x"]) - rg.exp(n["w"]) / rg.exp(n["s"])
    n["y"] = (n["h"] + n["b"]).sum()
    n["dw"], n["db"] = rg.grad(n["y"], [n["w"], n["b"]])
    n["w2"], n["b2"] = n["w"] - 0.1 * n["dw"], n["b"] - 0.1 * n["db"]
    return g, n


def seen(g: rg.Graph, n: dict[str, rg.Var]) -> Any:
    """All values and versions, without computing anything."""
    last = g.last_run
    return (
        [(k, v.value_version, v.is_stale) for k, v in n.items()],
        None if last is None else [one.name for one in last.ran],
    )


def by_hand(
    g: rg.Graph, n: dict[str, rg.Var], wanted: list[str], feeds: dict[str, Any], updates: Any
) -> tuple[Any, ...]:
    if feeds:
        g.set({n[k]: v for k, v in feeds.items()})
    g.forward(*[n[k] for k in (*wanted, *updates.values())])
    found = tuple([n[k].value for k in wanted])
    if updates:
        g.set({n[k]: n[new].value for k, new in updates.items()})
    return found


def same(one: Any, other: Any) -> bool:
    return len(one) == len(other) and all(
        type(a) is type(b) and np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


BOTH = {"w": "w2", "b": "b2"}
FEEDS = {"x": np.array([0.5, -1.0]), "s": 2.0}


@pytest.mark.parametrize("options", [{}, {"jit": True}, {"jit": False}, {"max_bytes": 200}])
@pytest.mark.parametrize("updates", [{}, BOTH])
@pytest.mark.parametrize("feeds", [{}, FEEDS, {"s": 3}, {"x": [1, 2]}])
def test_values_versions_and_runs_are_those_of_single_calls(
    feeds: dict[str, Any], updates: dict[str, str], options: Any
) -> None:
    (g, n), (other, m) = model(**options), model(**options)
    wanted = ["y", "dw", "h"]
    read = g.reader(
        *[n[k] for k in wanted],
        feeds=[n[k] for k in feeds],
        updates={n[k]: n[new] for k, new in updates.items()},
    )
    for step in range(25):
        values = [np.asarray(v) * (1.0 + step) if type(v) is not int else v for v in feeds.values()]
        values = [v if np.ndim(v) else float(v) for v in values]
        found = read(*values)
        expected = by_hand(other, m, wanted, dict(zip(feeds, values, strict=True)), updates)
        assert same(found, expected)
        assert seen(g, n) == seen(other, m)
    g.check_invariants()


def test_the_step_of_the_docstring_trains() -> None:
    g, n = model()
    read = g.reader(n["y"], updates={n["w"]: n["w2"], n["b"]: n["b2"]})
    first = read()[0]
    for _ in range(20):
        last = read()[0]
    assert last < first


def test_names_do() -> None:
    g, n = model()
    n["y"].name = "y"
    read = g.reader("y", feeds="s", updates={"w": n["w2"]})
    assert not same(read(1.0), (n["y"].value,))  # the param has moved
    assert "y" in repr(read)
    assert "feeds s" in repr(read)
    assert "updates w" in repr(read)


def test_two_leaves_exchange_their_values() -> None:
    g = rg.Graph()
    a, b = g.input([1.0, 2.0], name="a"), g.input([3.0, 4.0], name="b")
    swap = g.reader(updates={a: b, b: a})
    for first, second in (([3.0, 4.0], [1.0, 2.0]), ([1.0, 2.0], [3.0, 4.0])):
        assert swap() == ()
        assert (a.value.tolist(), b.value.tolist()) == (first, second)


def test_a_leaf_takes_over_a_view_of_another_one() -> None:
    g = rg.Graph()
    a, b = g.input([[1.0, 2.0], [3.0, 4.0]]), g.input([[0.0, 0.0], [0.0, 0.0]])
    step = g.reader(a.sum(), updates={a: b, b: a.T})
    assert step()[0] == 10.0
    assert a.value.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert b.value.tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_values_that_were_returned_stay() -> None:
    g, n = model()
    read = g.reader(n["h"], n["w"], updates={n["w"]: n["w2"]})
    kept = [read() for _ in range(20)]
    copies = [[np.array(one) for one in found] for found in kept]
    read()
    for found, copied in zip(kept, copies, strict=True):
        assert all(map(np.array_equal, found, copied))
    assert not kept[0][0].flags.writeable


def test_another_shape_or_number_of_samples_may_be_fed() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 2), dtype="f8", name="x")
    w = g.param([1.0, -1.0])
    y = (x @ w).sum()
    read = g.reader(y, feeds=[x])
    for rows in (3, 1, 7, 3):
        assert read(np.ones((rows, 2)) * [2.0, 1.0])[0] == rows


def test_observers_and_transactions_see_the_sets() -> None:
    g, n = model()
    read = g.reader(n["y"], feeds=[n["s"]], updates={n["b"]: n["b2"]})
    told: list[float] = []
    handle = n["s"].observe(lambda old, new: told.append(float(new)))
    read(3.0)
    read(4.0)
    assert told == [3.0, 4.0]
    handle.cancel()
    before = n["b"].value, n["s"].value
    with pytest.raises(KeyError), g.transaction():
        read(9.0)
        raise KeyError
    assert (n["b"].value, n["s"].value) == before


def test_a_failed_node_raises_and_nothing_is_updated() -> None:
    g = rg.Graph()
    x, w = g.input(1.0, name="x"), g.param(2.0, name="w")
    bad = rg.lift(lambda v: 1 / 0 if v > 1.0 else v)(x)
    read = g.reader(w * 1.0, feeds=[x], updates={w: w * bad})
    read(0.5)
    assert w.value == 1.0
    with pytest.raises(ZeroDivisionError):
        read(2.0)
    assert (w.value, x.value) == (1.0, 2.0)
    assert read(1.0) == (1.0,)


def test_inside_of_a_fork_and_in_a_subclass() -> None:
    g, n = model()
    h = g.fork()
    read = h.reader(h[n["y"]], feeds=[h[n["s"]]], updates={h[n["w"]]: h[n["w2"]]})
    before = n["y"].value
    read(5.0)
    assert n["y"].value == before
    assert h[n["s"]].value == 5.0


def wrong(make: Callable[[rg.Graph, dict[str, rg.Var]], object], error: type[Exception]) -> str:
    g, n = model()
    with pytest.raises(error) as caught:
        make(g, n)
    return str(caught.value)


def test_errors_say_what_to_write() -> None:
    text = wrong(lambda g, n: g.reader(n["y"], feeds=[n["s"]])(), rg.DTypeError)
    assert "0 values, and it has 1 feeds: pass one for each of s" in text
    text = wrong(lambda g, n: g.reader(n["y"])(1.0), rg.DTypeError)
    assert "1 values, and it has 0 feeds: pass none" in text
    text = wrong(lambda g, n: g.reader(n["y"], feeds=[n["h"]]), rg.SetError)
    assert "is no input and no param" in text
    text = wrong(lambda g, n: g.reader(n["y"], feeds=[n["s"], n["s"]]), rg.SetError)
    assert "named twice" in text
    text = wrong(lambda g, n: g.reader(n["y"], updates=[n["s"]]), rg.DTypeError)  # type: ignore[arg-type]
    assert "updates={w: w - rate * dw}" in text
    text = wrong(lambda g, n: g.reader(3.0), rg.DTypeError)  # type: ignore[arg-type]
    assert "g.reader takes Vars of this graph" in text
    wrong(lambda g, n: g.reader(rg.Graph().input(1.0)), rg.GraphError)


def test_a_removed_node_is_named() -> None:
    g, n = model()
    read = g.reader(n["y"], feeds=[n["s"]])
    top = n["y"] * 2.0
    other = g.reader(top)
    g.remove(top)
    with pytest.raises(rg.ReactgradError):
        other()
    assert read(0.0)[0] == pytest.approx(0.2)


def test_readers_keep_their_nodes_and_no_others() -> None:
    g, n = model()
    size = len(g)
    read = g.reader(n["y"] * 3.0)
    assert len(g) > size
    read()
    del read
    assert len(g) == size


def act(nodes: dict[str, rg.Var], kind: str, number: float) -> Any:
    """Use the graph otherwise than by its reader. Return whatever the caller keeps."""
    g = nodes["x"].graph
    if kind == "set":
        nodes["x"].set([number, 1.0])
    elif kind == "set what is updated":
        nodes["w"].set([number, 1.0])
    elif kind == "set a row":
        nodes["x"].set_at(0, number)
    elif kind == "set what is fed":
        nodes["s"].set(number)
    elif kind == "hold":
        return nodes["w"].value, nodes["dw"].value
    elif kind == "edit":
        nodes["y"].replace_parent(0, nodes["h"] + nodes["b"] * number)
    elif kind == "ask":
        return [one.is_stale for one in nodes.values()]
    elif kind == "touch":
        nodes["x"].touch()
    elif kind == "read":
        return nodes["db"].value
    elif kind == "what if":
        with g.whatif({nodes["s"]: number}) as w:
            return w[nodes["y"]].value
    elif kind == "take back":
        with suppress(ZeroDivisionError), g.transaction():
            nodes["s"].set(number)
            nodes["w"].set([number, number])
            raise ZeroDivisionError
    elif kind == "forget plans":
        g.check_invariants()
        g._scheduler.plans.clear()
    return None


ACTS = (
    *("set", "set what is updated", "set a row", "set what is fed", "hold", "edit", "ask", "touch"),
    *("read", "what if", "take back", "forget plans"),
)


@given(
    st.lists(st.tuples(st.sampled_from(ACTS), st.floats(-2, 2)), max_size=12),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
def test_between_other_uses(
    acts: list[tuple[str, float]], times: int, feeds: bool, updates: bool
) -> None:
    """Whatever comes in between changes nothing about what a call does, however often it was made before."""
    (g, n), (other, m) = model(apart=True), model(apart=True)
    new = {"w": "w2"} if updates else {}
    read = g.reader(
        n["y"],
        n["dw"],
        feeds=[n["s"]] if feeds else [],
        updates={n[k]: n[one] for k, one in new.items()},
    )
    kept: list[Any] = []
    for kind, number in [("hold", 0.0), *acts]:
        here, there = act(n, kind, number), act(m, kind, number)
        kept.append(here)
        assert repr(here) == repr(there)
        for i in range(times):
            fed = [number + i] if feeds else []
            found = read(*fed)
            expected = by_hand(other, m, ["y", "dw"], {"s": number + i} if feeds else {}, new)
            assert same(found, expected)
            assert seen(g, n) == seen(other, m)


def test_as_many_other_leaves_have_changed() -> None:
    """A call does not take these for those that it sets itself."""
    (g, n), (other, m) = model(apart=True), model(apart=True)
    read = g.reader(n["y"], feeds=[n["s"]], updates={n["w"]: n["w2"]})
    for i in range(4):
        assert same(read(0.1 * i), by_hand(other, m, ["y"], {"s": 0.1 * i}, {"w": "w2"}))
    for nodes in (n, m):
        nodes["x"].graph.forward(*nodes.values())
        nodes["x"].set([3.0, 4.0])
    assert same(read(0.5), by_hand(other, m, ["y"], {"s": 0.5}, {"w": "w2"}))
