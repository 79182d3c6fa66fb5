"""Subgraphs beside hooks, checkpoints, forks, files and other features."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.net import ROWS, Net
from tests.autodiff.net import current_graph as current_graph  # a fixture
from tests.autodiff.primitives import roll

# --- beside other features -----------------------------------------------------------------------


def test_what_is_built_in_a_transaction_that_fails_lives_on(g: rg.Graph) -> None:
    net = Net(g)
    scale = rg.subgraph(lambda x, k: net.plain(x) * k)
    with pytest.raises(KeyError), g.transaction():
        y, z = net(ROWS), scale(ROWS, 3.0)
        raise KeyError
    assert y.value == net.plain(g.const(ROWS)).value
    assert z.value == 3.0 * y.value


@pytest.mark.parametrize(
    "mark",
    [
        lambda g, h: h.register_hook(lambda gradient: gradient * 2.0),
        lambda g, h: h.retain_grad(),
        lambda g, h: g.keep(h),
        lambda g, h: setattr(h, "cutoff", "equal"),
    ],
    ids=["hook", "retain_grad", "keep", "cutoff"],
)
def test_what_the_function_does_to_its_nodes_is_part_of_it(
    g: rg.Graph, mark: Callable[[rg.Graph, rg.Var], Any]
) -> None:
    w, built = g.param(2.0), []

    @rg.subgraph
    def f(x: Any) -> Any:
        built.append(None)
        h = w * x
        mark(g, h)
        return h * h

    for k in range(1, 6):
        f(np.float64(k)).backward()
        size = len(g)
    assert len(built) == 1
    f(np.float64(9.0)).backward()
    assert len(g) == size


def _detach(y: rg.Var, x: rg.Var) -> None:
    y.replace_parent(0, y.parents[0].detach())


def _detach_inside(y: rg.Var, x: rg.Var) -> None:
    _detach(y.parents[0], x)


def _shift_further(y: rg.Var, x: rg.Var) -> None:
    y.rewire(y.parents[0], shift=2)


def _keep_an_old_value(y: rg.Var, x: rg.Var) -> None:
    y.graph.forward(y)
    y.cutoff = rg.tolerance(atol=100.0)
    x.set(x.value + 1.0)
    y.graph.forward(y)
    y.cutoff = None


@pytest.mark.parametrize(
    "change", [_detach, _detach_inside, _shift_further, _keep_an_old_value, None]
)
def test_nodes_that_were_changed_in_place_are_not_fed_again(
    g: rg.Graph, change: Callable[[rg.Var, rg.Var], None] | None
) -> None:
    built: list[rg.Var] = []

    @rg.subgraph
    def f(v: rg.Var) -> rg.Var:
        built.clear()
        built.append(v)
        return roll(v * v, shift=1)

    x = g.param([1.0, 2.0, 3.0])
    y = f(x)
    built.clear()
    if change is not None:
        change(y, x)
    del y
    y = f(x)
    assert bool(built) == (change is not None)
    built.clear()
    assert y.value.tolist() == np.roll(x.value**2, 1).tolist()
    (slope,) = rg.grad(y.sum(), [x])
    assert slope.value.tolist() == (2.0 * x.value).tolist()


def test_named_positional_and_default_arguments_are_the_same(g: rg.Graph) -> None:
    w, built = g.param(2.0), []

    @rg.subgraph
    def f(x: Any, k: float = 3.0) -> Any:
        built.append(None)
        return w * x * k

    x = g.input([1.0])
    assert f(x) is not None
    for call in (lambda: f(x, 3.0), lambda: f(x, k=3.0), lambda: f(x=x), lambda: f(k=3.0, x=x)):
        assert call().value == 6.0
    assert len(built) == 1


def test_saved_tensors_hooks_and_checkpoints_are_part_of_the_structure(g: rg.Graph) -> None:
    w, log = g.param([1.0, 2.0]), []

    def pack(array: Any) -> Any:
        log.append(None)
        return array

    f = rg.subgraph(lambda x: rg.tanh(rg.exp(x * w)).sum())
    f(np.ones(2)).backward()
    with rg.saved_tensors_hooks(pack, lambda packed: packed):
        f(np.zeros(2)).backward()
    assert log
    f(np.ones(2) * 2.0).backward()  # what was asked for in the block stays until the next run
    log.clear()
    f(np.ones(2) * 3.0).backward()
    assert not log
    for k in range(3):
        run = rg.checkpoint(f, np.ones(2) * (3.0 + k)).backward()
        assert {node.name.split("_")[0] for node in run.rebuilt} >= {"exp", "tanh"}, k
    assert not f(np.ones(2) * 7.0).backward().rebuilt


def test_without_nodes_the_graph_has_to_be_current(g: rg.Graph) -> None:
    other = rg.Graph()
    w = other.param([1.0])
    f = rg.subgraph(lambda x: x * w)
    with pytest.raises(rg.GraphError) as raised:
        f(np.ones(1))
    assert "inside of `with g:`" in raised.value.__notes__[-1]
    with other:
        assert f(np.ones(1)).value == 1.0


class Unseen:
    """Calls of a function that nobody sees any more, one fed with another."""

    def __init__(self, g: rg.Graph) -> None:
        self.w = g.param(np.eye(3))
        self.x = g.input(np.ones((2, 3)))
        self.u = rg.tanh(self.x)
        self.layer = rg.subgraph(lambda h: rg.sin(h @ self.w))
        for _ in range(2):
            self.call(self.u)

    def call(self, h: Any) -> Any:
        end = self.layer(self.layer(h)).sum()
        end.backward()
        return end.value


@pytest.mark.parametrize("feed", ["nodes", "arrays"])
def test_what_nobody_sees_refuses_no_other_shape(g: rg.Graph, feed: str) -> None:
    case = Unseen(g)
    if feed == "arrays":
        with g:
            case.call(np.ones((2, 3)))
    case.w.set(np.eye(4))
    case.x.set(np.ones((5, 4)))
    with g:
        found = case.call(case.u if feed == "nodes" else np.tanh(np.ones((5, 4))))
    np.testing.assert_allclose(found, np.sin(np.sin(np.tanh(np.ones((5, 4))))).sum())


def test_what_nobody_sees_refuses_no_edit_no_removal_and_no_name(g: rg.Graph) -> None:
    case = Unseen(g)
    case.u.replace_parent(0, g.input(np.ones((2, 7))))
    assert case.u.shape == (2, 7)
    case = Unseen(g)
    g.remove(case.u, case.w)
    assert case.x in g

    @rg.subgraph
    def twice(x: rg.Var) -> rg.Var:
        y = x * 2.0
        y.name = "twice"
        return y

    with g:
        assert twice(np.ones(3)).name == "twice"
        assert twice(np.ones(4)).name == "twice"
        with g.reuse():  # which keeps what keeps the instance
            assert (twice(np.ones(5)) + 1.0).value[0] == 3.0
        case.x.name = "twice"


def test_what_somebody_sees_goes_on_to_refuse_and_is_not_lost(g: rg.Graph) -> None:
    case = Unseen(g)
    held = case.layer(case.layer(case.u))
    before, size = held.value, len(g)
    with pytest.raises(rg.ShapeError):
        case.w.set(np.eye(4))
    with pytest.raises(rg.EditError, match="would lose an operand"):
        g.remove(case.w)
    assert len(g) == size
    np.testing.assert_array_equal(held.value, before)
    case.x.set(np.zeros((2, 3)))
    np.testing.assert_array_equal(held.value, np.zeros((2, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("ask", [lambda y, w: y.backward(), lambda y, w: rg.grad(y, w).value])
def test_a_graph_goes_also_where_results_were_differentiated(ask: Callable[..., Any]) -> None:
    model = rg.subgraph(lambda a, b: rg.tanh(a * b).sum())

    def use() -> weakref.ref[rg.Graph]:
        g = rg.Graph()
        w = g.param(np.ones(4))
        ask(model(g.input(np.arange(4.0)), w), w)
        return weakref.ref(g)

    graphs = [use() for _ in range(3)]
    gc.collect()
    assert [graph() for graph in graphs] == [None] * 3


def test_a_subgraph_with_a_switch_is_used_again_although_the_switch_holds_its_branches(
    g: rg.Graph,
) -> None:
    w, built = g.param(2.0), []

    @rg.subgraph
    def f(x: Any) -> Any:
        built.append(None)
        return rg.switch(g.mode, w * x, x)

    for k in range(1, 6):
        f(np.float64(k)).backward()
        size = len(g)
    assert len(built) == 1
    kept = f(np.float64(9.0))
    other = f(np.float64(8.0))
    assert len(built) == 2
    assert (kept.value, other.value) == (18.0, 16.0)
    branch = kept.parents[-1]
    del kept, other
    f(np.float64(7.0))
    assert branch.value == 18.0  # held by the test, so it was not fed again
    assert len(g) >= size


def test_a_chain_of_calls_of_which_nothing_is_seen_is_fed_as_it_is_with_its_gradient(
    g: rg.Graph,
) -> None:
    w, built = g.param(np.ones((2, 2))), []

    @rg.subgraph
    def model(x: Any) -> Any:
        return rg.tanh(x @ w)

    @rg.subgraph
    def cost(y: Any, target: Any) -> Any:
        return ((y - target) ** 2).mean()

    for k in range(1, 8):
        rows = np.full((3, 2), float(k))
        loss = cost(model(rows), rows)
        w.zero_grad()
        loss.backward()
        by_hand = np.tanh(rows @ np.ones((2, 2)))
        slope = (2.0 / 6.0) * (by_hand - rows) * (1.0 - by_hand**2)
        assert np.allclose(w.grad, rows.T @ slope)
        built.append((len(g), g.input(0.0).name))
    sizes, last = zip(*built, strict=True)
    assert len(set(sizes[2:])) == 1
    made = [int(name.rpartition("_")[2]) for name in last]
    assert set(np.diff(made[2:])) == {1}  # nothing was built but the input of the test itself
