"""Nodes that are removed: what may go, and what that shows."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.laws.full_state import differences, full_state
from tests.reactive.chains import Abort, chain, names

# --- remove ----------------------------------------------------------------------------------------


def test_a_node_with_consumers_is_not_removed(g: rg.Graph) -> None:
    _x, a, b, c = chain(g)
    before = full_state(g)
    with pytest.raises(rg.EditError) as caught:
        g.remove(a)
    assert str(caught.value) == (
        "'a' cannot be removed: 'b' would lose an operand. Let these take it from elsewhere first, "
        "b.replace_parent(...), or remove all that depends on it, too: g.remove(c, b, a). Nothing was "
        "changed."
    )
    del caught
    with pytest.raises(rg.EditError, match="'b' cannot be removed: 'c'"):
        g.remove(a, b)
    b.pin(1.0)
    with pytest.raises(rg.EditError, match="'a' cannot be removed: 'b'"):
        g.remove(a)  # it will be needed again
    b.unpin()
    c.value
    after = full_state(g)
    assert after["nodes"].keys() == before["nodes"].keys()
    g.remove(a, b, c)
    assert names(g.nodes) == ["x", *[n for n in names(g.nodes) if n.startswith("const")]]
    g.check_invariants()


USES: dict[str, Callable[[rg.Graph, rg.Var, rg.Var], object]] = {
    "value": lambda g, gone, x: gone.value,
    "float": lambda g, gone, x: float(gone),
    "array": lambda g, gone, x: np.asarray(gone),
    "NumPy": lambda g, gone, x: np.tanh(gone),
    "op": lambda g, gone, x: gone + 1.0,
    "second operand": lambda g, gone, x: x * gone,
    "comparison": lambda g, gone, x: gone == x,
    "index": lambda g, gone, x: gone[0],
    "method": lambda g, gone, x: gone.sum(),
    "set": lambda g, gone, x: gone.set(1.0),
    "pin": lambda g, gone, x: gone.pin(1.0),
    "touch": lambda g, gone, x: gone.touch(),
    "name": lambda g, gone, x: gone.name,
    "new name": lambda g, gone, x: setattr(gone, "name", "again"),
    "shape": lambda g, gone, x: gone.shape,
    "version": lambda g, gone, x: gone.value_version,
    "stale": lambda g, gone, x: gone.is_stale,
    "parents": lambda g, gone, x: gone.parents,
    "observe": lambda g, gone, x: gone.observe(print),
    "edit": lambda g, gone, x: gone.replace_parent(0, x),
    "operand": lambda g, gone, x: (x + 1.0).replace_parent(0, gone),
    "forward": lambda g, gone, x: g.forward(gone),
    "why": lambda g, gone, x: g.why(gone),
    "keep": lambda g, gone, x: g.keep(gone),
    "grad": lambda g, gone, x: rg.grad(gone, x),
    "wanted": lambda g, gone, x: rg.grad(x * 1.0, gone),
    "backward": lambda g, gone, x: gone.backward(),
    "lift": lambda g, gone, x: rg.lift(lambda v: v)(gone),
    "detach": lambda g, gone, x: gone.detach() + 1.0,
    "twin": lambda g, gone, x: g.fork()[gone],
    "remove": lambda g, gone, x: g.remove(gone),
}


@pytest.mark.parametrize("use", USES)
def test_a_removed_node_says_so_however_it_is_used(use: str) -> None:
    g = rg.Graph()
    x = g.param(2.0)
    gone = x * 3.0
    gone.name = "gone"
    view = gone.detach()
    g.remove(gone)
    with pytest.raises(rg.EditError, match=r"'gone' was removed from its graph by g\.remove"):
        USES[use](g, gone, x)
    with pytest.raises(rg.EditError, match="'gone' was removed"):
        view.value
    assert repr(gone) == "<Var 'gone', removed>"
    assert gone not in g
    assert "gone" not in g
    assert {gone: 1}[gone] == 1
    assert len(g.inputs) + len(g.params) == 1
    g.check_invariants()


def test_a_name_is_free_again_and_observers_are_told_once(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    y.name = "y"
    told: list[Any] = []
    stays = y.observe(lambda old, new: told.append(new))
    removed = y.observe(told.append, kind="removed")
    y.value
    told.clear()
    g.remove(y)
    assert len(told) == 1
    assert told[0] is y
    assert not stays.active
    assert not removed.active
    other = x + 2.0
    other.name = "y"
    assert g["y"] is other
    assert other.value == 3.0
    assert len(told) == 1


def test_an_observer_of_a_removal_that_raises_does_not_bring_the_node_back(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = g.keep(x + 1.0)
    size = len(g)
    told: list[object] = []

    def fail(var: object) -> None:
        raise Abort

    y.observe(fail, kind="removed")
    y.observe(told.append, kind="removed")
    with pytest.raises(ExceptionGroup) as caught:
        g.remove(y)
    assert caught.group_contains(Abort)
    assert len(told) == 1
    assert len(g) < size
    with pytest.raises(rg.EditError):
        y.value


def test_a_node_is_taken_out_of_the_middle_in_one_block(g: rg.Graph) -> None:
    x, a, b, c = chain(g)
    with g.edit():
        g.remove(b)
        assert b.value == 20.0
        c.replace_parent(0, a)
    assert c.value == -1.0
    with pytest.raises(rg.EditError):
        b.value
    assert names(x.children) == ["a"]
    assert names(a.children) == ["c"]
    before = full_state(g)
    with pytest.raises(rg.EditError, match="'x' cannot be removed: 'a'"):
        with g.edit():
            c.replace_parent(0, g.input(1.0))
            g.remove(x)
    gc.collect()
    assert not differences(before, full_state(g))


def test_gradients_of_a_removed_node_go_on(g: rg.Graph) -> None:
    w = g.param(0.5)
    y = rg.tanh(w)
    y.name = "y"
    gradient = rg.grad(y, w)
    (rg.tanh(w) * 2.0).backward()
    size = len(g)
    g.remove(y)
    assert gradient.value == pytest.approx(1.0 - np.tanh(0.5) ** 2, rel=1e-15)
    w.set(0.25)
    assert gradient.value == pytest.approx(1.0 - np.tanh(0.25) ** 2, rel=1e-15)
    assert "y" not in g
    assert len(g) == size - 1
    assert len(list(g.nodes)) == len(g)
    del gradient
    assert len(g) == 1
    g.check_invariants()


def test_gradients_that_only_a_removed_node_kept_go_with_it(g: rg.Graph) -> None:
    w = g.param([1.0, 2.0])
    y = (w * w).sum()
    y.backward()
    assert len(g) > 3
    g.remove(y)
    assert len(g) == 1
    assert w.grad.tolist() == [2.0, 4.0]


def test_a_removal_is_taken_back_with_its_transaction(g: rg.Graph) -> None:
    x, _a, b, c = chain(g)
    g.keep(c)
    told: list[object] = []
    c.observe(told.append, kind="removed")
    gradient = rg.grad(c, x)
    gradient.value
    size = len(g)
    version = c.value_version
    with pytest.raises(Abort):
        with g.transaction():
            with g.edit():
                g.remove(c)
            with pytest.raises(rg.EditError):
                c.value
            assert "c" not in g
            assert len(g) < size
            assert names(b.children) == [n for n in names(b.children) if n != "c"]
            g.remove(b)  # nobody who stays uses it
            other = g.input(1.0, name="c")
            raise Abort
    assert g["c"] is c
    assert g["b"] is b
    assert other.name != "c"
    assert (c.value, c.value_version) == (17.0, version)
    assert not told
    x.set(2.0)
    assert c.value == 27.0
    assert rg.grad(c, x) is gradient
    del c
    assert g["c"].value == 27.0, "it is kept, as it was"
    g.check_invariants()
    with g.transaction():
        g.remove(g["c"])
        assert not told
    assert len(told) == 1


def test_a_removed_node_of_a_fork_is_gone_there_only(g: rg.Graph) -> None:
    x, _a, b, c = chain(g)
    h = g.fork()
    twin = h[c]
    h.remove(twin)
    assert c.value == 17.0
    with pytest.raises(rg.EditError):
        twin.value
    with pytest.raises(rg.GraphError, match="removed here"):
        h[c]
    assert "c" not in h
    assert len(h) == len(g) - 1
    h[x].set(2.0)
    assert h[b].value == 30.0
    h.check_invariants()
    g.check_invariants()


def test_the_name_of_a_removed_node_finds_nothing_although_a_gradient_needs_its_row(
    g: rg.Graph,
) -> None:
    w = g.param([1.0, 2.0])
    total = (w * w).sum()
    slope = rg.grad(total, w)
    slope.value
    name = total.name
    g.remove(total)
    assert g._host.removed
    assert name not in g
    with pytest.raises(rg.GraphError):
        g[name]
    w.set([3.0, 4.0])
    assert slope.value.tolist() == [6.0, 8.0]
