"""Building nodes and reading them for the first time: little work a node, and none that comes twice."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import reactgrad as rg
from reactgrad_scheduler.topology import FEW
from tests.explain.test_free_when_off import python_calls
from tests.scheduler.two_engines import Definition, IntegerHost


def chain(x: rg.Var, w: rg.Var, length: int) -> list[rg.Var]:
    nodes = [x]
    for _ in range(length):
        nodes.append(nodes[-1] + w)
    return nodes


@pytest.mark.slow
@pytest.mark.trusting
@pytest.mark.whole
def test_building_and_reading_a_node_for_the_first_time_makes_few_calls() -> None:
    def calls(length: int) -> tuple[int, int]:
        g = rg.Graph()
        x, w = g.input(np.ones(4)), g.param(np.ones(4))
        nodes: list[rg.Var] = []
        built = python_calls(lambda: nodes.extend(chain(x, w, length)))
        return built, python_calls(lambda: g.forward(nodes[-1]))

    calls(10)  # what comes once for all
    few, many = calls(200), calls(600)
    built, read = ((after - before) / 400 for before, after in zip(few, many, strict=True))
    assert built <= 5.5
    assert read <= 13


@pytest.mark.slow
def test_a_node_that_is_there_already_is_found_with_few_calls() -> None:
    def calls(length: int) -> int:
        g = rg.Graph()
        x, w = g.input(np.ones(4)), g.param(np.ones(4))

        def step() -> rg.Var:
            with g.reuse():
                return chain(x, w, length)[-1]

        kept = step()
        count = python_calls(lambda: step() is kept)
        assert step() is kept
        return count

    calls(10)
    assert (calls(600) - calls(200)) / 400 <= 9


def bytes_a_node(length: int, *, together: bool) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        g = rg.Graph()
        nodes = chain(g.param(1.0), g.param(2.0), length)
        g.forward(*nodes[1:] if together else nodes[-1:])
        assert nodes[-1].value_version == 1  # from now on all versions and records are there
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / length
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.trusting  # records that a plan leaves are shared, those of single nodes are not
@pytest.mark.whole
def test_a_node_that_was_built_and_read_takes_less_than_a_kilobyte() -> None:
    assert bytes_a_node(5000, together=False) <= 1024


@pytest.mark.slow
@pytest.mark.trusting
@pytest.mark.whole
def test_what_is_read_together_knows_of_it_in_few_bytes() -> None:
    """One entry in each of two tables, whose sizes are powers of two."""
    alone, together = (bytes_a_node(5000, together=together) for together in (False, True))
    assert together - alone <= 160


@pytest.mark.trusting
def test_a_node_that_is_only_built_leaves_cached_plans_in_use() -> None:
    """A node that was never read has no mark that a read could change."""
    host = IntegerHost()
    x = host.leaf(1)
    y = host.node(Definition((x,)))
    for value in range(3):
        host.set((x, value))
        host.read(y)
    z = host.node(Definition((x, y)))
    host.set((x, 7))
    host.bound.clear()
    host.read(y)
    assert host.bound == []
    host.scheduler.release([z])
    host.set((x, 8))
    host.read(y)
    assert host.bound == []
    host.read(host.node(Definition((x, y))))
    host.set((x, 9))
    host.read(y)
    assert host.scheduler.stale_among(host.definitions) == set(host.definitions) - {x, y}


def test_consumers_stay_in_order_however_many_there_are() -> None:
    host = IntegerHost()
    x = host.leaf(1)
    others = [host.node(Definition((x, x))) for _ in range(2 * FEW)]
    children = host.scheduler.topology.children
    assert list(children[x]) == others
    gone = others[1::2]
    for other in gone:
        host.held.discard(other)
    host.scheduler.release(gone)
    assert list(children[x]) == others[::2]
    few = [host.node(Definition((others[0],))) for _ in range(3)]
    host.held.discard(few[1])
    host.scheduler.release([few[1]])
    assert list(children[others[0]]) == [few[0], few[2]]


def test_a_first_read_that_fails_runs_what_does_not_depend_on_it(g: rg.Graph) -> None:
    x = g.input(1.0)

    def refuse(value: float) -> float:
        raise ValueError("no")

    a = x + 1.0
    bad = rg.lift(refuse)(a)
    below, beside = bad * 2.0, a * 3.0
    with pytest.raises(ValueError, match="no"):
        g.forward(below, beside)
    assert g.last_run.ran == [a, beside]
    assert list(g.last_run.failed) == [bad]
    assert (a.value_version, beside.value_version, bad.value_version) == (1, 1, 0)
    assert beside.value == 6.0


def test_a_name_that_ends_in_zero_is_free_where_nodes_have_gone(g: rg.Graph) -> None:
    """Free rows have the number 0, and were taken for a node called ``x_0``."""
    x = g.input(1.0)
    (x + 1.0).value
    x.name = "x_0"
    assert g["x_0"] is x


def test_a_read_leaves_the_callers_error_state_alone(g: rg.Graph) -> None:
    x = g.input(0.0)

    def refuse(value: float) -> float:
        raise ValueError("no")

    y, bad = rg.log(x), rg.lift(refuse)(x)
    with np.errstate(all="raise"):
        before = np.geterr()
        assert y.value == -np.inf, "infinities are values like others"
        with pytest.raises(ValueError, match="no"):
            bad.value
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))
