"""Scenarios on many workers are those of one process: here on threads, in test_dask on processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd
from tests.distributed.market import book, slow


def alone(g: rg.Graph, outputs: list[Any], changes: list[dict[Any, float]]) -> list[list[float]]:
    results = []
    for change in changes:
        with g.whatif(change) as fork:
            results.append([fork[one].item() for one in outputs])
    return results


@pytest.mark.parametrize("chunk", [None, 1, 5])
def test_scenarios_are_those_of_one_process(chunk: int | None) -> None:
    g, spots, total, values = book()
    changes: list[dict[Any, float]] = [
        {spots[i % 4]: 90.0 + i, "rate": 0.01 * i} for i in range(12)
    ]
    expected = alone(g, [total, values[1]], changes)
    with rd.Farm(g, 3, outputs=[total, values[1]]) as farm:
        found = [list(one) for one in farm.map(changes, chunk=chunk)]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal([list(one) for one in farm.map(iter(changes))], expected)


def test_a_grid_of_scenarios() -> None:
    g, spots, total, _ = book()
    with rd.Farm(g, 2, outputs=[total]) as farm:
        found = farm.scenarios({spots[0]: [90.0, 100.0, 110.0], "rate": [0.0, 0.05]})
    assert found.shape == (3, 2)
    changes = [{spots[0]: s, "rate": r} for s in (90.0, 100.0, 110.0) for r in (0.0, 0.05)]
    np.testing.assert_array_equal(found.ravel(), np.ravel(alone(g, [total], changes)))


def test_sensitivities_are_those_of_one_process() -> None:
    g, spots, total, _ = book()
    wanted = {one.label: rg.grad(total, one).value for one in spots}
    other = g.input(1.0, name="other")
    with rd.Farm(g, 2, outputs=[total]) as farm:
        found = farm.sensitivities(total, [*spots, other])
        assert {name: found[name] for name in wanted} == wanted
        assert found["other"] == 0.0
        moved = farm.sensitivities("total", ["spot0"], [{"spot0": 0.0}, {"spot0": 200.0}])
    assert moved[0]["spot0"] == 0.0
    np.testing.assert_allclose(moved[1]["spot0"], 50 * np.exp(-0.02))


def test_copies_follow_the_graph() -> None:
    g, spots, total, _ = book()
    with rd.Farm(g, 2, outputs=[total]) as farm:
        spots[0].set(150.0)
        farm.update()
        assert list(farm.map([{}, {}])) == [total.value] * 2
        double = total * 2.0
        double.name = "double"
        farm.update()
        assert farm.sensitivities("double", ["rate"])["rate"] == rg.grad(double, g["rate"]).value


def test_a_worker_that_dies_is_replaced_and_its_part_computed_again() -> None:
    g, spots, total, _ = book()
    changes: list[dict[Any, float]] = [{spots[0]: 90.0 + i} for i in range(40)]
    expected = [one[0] for one in alone(g, [total], changes)]
    hosts = rd.LocalHosts(3, service=0.01)
    with rd.Farm(g, hosts, outputs=[total]) as farm:
        found = []
        for i, value in enumerate(farm.map(changes, chunk=1)):
            if i in (5, 15):
                hosts.kill(hosts.names()[0], replace=i == 5)
            found.append(value)
        assert found == expected
        assert len(farm.lost) == 2


def test_the_last_worker_is_waited_for_and_then_missed() -> None:
    g, spots, total, _ = book()
    hosts = rd.LocalHosts(1, service=0.01)
    farm = rd.Farm(g, hosts, outputs=[total], patience=0.1)
    with pytest.raises(rd.DistributedError, match="no worker is left to take over"):
        for _ in farm.map([{spots[0]: 1.0}] * 20, chunk=1):
            hosts.alive.clear()


def test_errors_of_the_model_come_in_their_turn() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(int, shape=())(x)
    with rd.Farm(g, 2, outputs=[y]) as farm:
        found = farm.map([{x: 1.0}, {x: 2.0}, {x: float("nan")}], chunk=1)
        assert [next(found), next(found)] == [1, 2]
        with pytest.raises(ValueError, match="cannot convert float NaN"):
            next(found)


raised = threading.Event()


def late(value: float) -> float:
    if value == 1.0:
        raised.wait(10.0)
        time.sleep(0.1)  # by now the caller has heard of the error
    elif value == 3.0:
        raised.set()
        raise ValueError("three")
    return value


def test_an_error_waits_for_the_results_before_it() -> None:
    raised.clear()
    g = rg.Graph()
    x = g.input(0.0, name="x")
    y = rg.lift(late)(x)
    with rd.Farm(g, 2, outputs=[y]) as farm:
        found = farm.map([{x: value} for value in (1.0, 2.0, 3.0, 4.0)], chunk=1)
        assert [next(found), next(found)] == [1.0, 2.0]
        with pytest.raises(ValueError, match="three"):
            next(found)
        assert list(farm.map([{x: 5.0}])) == [5.0]


def test_an_error_of_the_iterable_comes_after_what_it_gave() -> None:
    g = rg.Graph()
    x = g.input(0.0, name="x")

    def changes() -> Iterator[dict[Any, float]]:
        yield {x: 1.0}
        yield {x: 2.0}
        raise LookupError("no more")

    with rd.Farm(g, 2, outputs=[x * 2.0]) as farm:
        found = farm.map(changes(), chunk=1)
        assert [next(found), next(found)] == [2.0, 4.0]
        with pytest.raises(LookupError, match="no more"):
            next(found)


def test_a_sweep_is_cancelled() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(slow)(x)
    with rd.Farm(g, 2, outputs=[y]) as farm:
        endless = farm.map({x: float(i)} for i in count())  # never wholly read
        assert list(islice(endless, 3)) == [0.0, 1.0, 2.0]
        endless.close()  # type: ignore[attr-defined]
        before = farm.calls
        results = farm.map([{x: float(i)} for i in range(200)], chunk=1)
        next(results)
        farm.cancel()
        assert len(list(results)) < 190
        time.sleep(0.2)
        assert farm.calls - before < 190


def test_a_bar_is_drawn() -> None:
    g, spots, total, _ = book()
    with rd.Farm(g, 2, outputs=[total]) as farm:
        assert len(list(farm.map([{spots[0]: 1.0}] * 3, progress=True))) == 3


def test_arguments_are_checked() -> None:
    g, spots, total, _ = book()
    with pytest.raises(rg.DTypeError, match="a farm works on a client of Dask, not str"):
        rd.Farm(g, "tcp://somewhere", outputs=[total])
    with pytest.raises(rg.DTypeError, match="name the nodes that scenarios read"):
        rd.Farm(g, 2, outputs=[])
    with rd.Farm(g, 2, outputs=[total]) as farm:
        with pytest.raises(rg.GraphError, match="sets 'total', which is computed"):
            farm.map([{total: 1.0}])
        with pytest.raises(rg.DTypeError, match="a scenario is a dict of leaves and values"):
            farm.map([1.0])  # type: ignore[list-item]
        with pytest.raises(rg.GraphError, match="no node of the graph that was shipped"):
            farm.map([{rg.Graph().input(1.0): 1.0}])
        with pytest.raises(rg.DTypeError, match="no option 'speed'"):
            farm.scenarios({spots[0]: [1.0]}, speed=3)
    with pytest.raises(rd.DistributedError, match="this farm is closed"):
        list(farm.map([{}]))
    lambdas = rg.lift(lambda v: v)(spots[0])
    with pytest.raises(rg.SaveError, match="it is a lambda"):
        rd.Farm(g, 2, outputs=[lambdas])


# --- parts on different workers -----------------------------------------------------------------------


def test_one_change_goes_to_one_worker() -> None:
    g, spots, total, values = book()
    with rd.partition(g, values, 4) as parts:
        assert parts[total] == total.value
        assert parts.calls == [1, 1, 1, 1]
        parts.set({spots[1]: 130.0})
        with g.whatif({spots[1]: 130.0}) as fork:
            assert parts["total"] == fork[total].value
        assert parts.calls == [1, 2, 1, 1]
        assert len(parts.here.last_run.ran) == 3  # sums here, nothing that is on a worker
        parts[total]
        assert parts.calls == [1, 2, 1, 1]
        parts.set({"rate": 0.0})  # concerns all
        with g.whatif({spots[1]: 130.0, "rate": 0.0}) as fork:
            assert parts.read([total, values[0]]) == [fork[total].value, fork[values[0]].value]
        assert parts.calls == [2, 3, 2, 2]
    assert spots[1].value == 101.0


def test_each_worker_has_its_part_only() -> None:
    g, _, total, values = book(8)
    with rd.partition(g, values, 2) as parts:
        parts[total]
        sizes = [part.place._holder._receiver.graph for part in parts._parts]
        assert all(len(one) < len(g) * 0.6 for one in sizes)


def test_parts_of_dead_workers_are_computed_again() -> None:
    g, spots, total, values = book()
    hosts = rd.LocalHosts(4)
    with rd.partition(g, values, hosts, patience=1.0) as parts:
        parts.set({spots[0]: 120.0})
        parts[total]
        hosts.kill("local-0", replace=False)
        parts.set({spots[0]: 121.0, "rate": 0.0})
        with g.whatif({spots[0]: 121.0, "rate": 0.0}) as fork:
            assert parts[total] == fork[total].value
        assert parts.lost == ["local-0"]


def test_cuts_are_checked() -> None:
    g, spots, total, values = book()
    with pytest.raises(rg.EditError, match="'total' is computed from another node of the cut"):
        rd.partition(g, [values[0], total], 2)
    with pytest.raises(rg.DTypeError, match="name the nodes at which the graph is cut"):
        rd.partition(g, [], 2)
    with rd.partition(g, values, 2) as parts:
        with pytest.raises(rg.GraphError, match="is computed on a worker. Read nodes of the cut"):
            parts[spots[0]]
        with pytest.raises(rg.GraphError, match="'total' is computed, or a constant"):
            parts.set({total: 1.0})


def test_a_scenario_sees_nothing_of_the_one_before() -> None:
    """Scenarios of the same leaves share a fork on their worker: others, errors and updates come in between."""
    g = rg.Graph()
    x, y = g.input(2.0, name="x"), g.input(3.0, name="y")
    z = rg.lift(refuses_13)(x) * y
    with rd.Farm(g, 1, outputs=[z]) as farm:
        assert [farm.run({x: 4.0}), farm.run({x: 5.0}), farm.run({y: 7.0})] == [12.0, 15.0, 14.0]
        assert [farm.run({}), farm.run({x: 1.0, y: 1.0}), farm.run({x: 4.0})] == [6.0, 1.0, 12.0]
        with pytest.raises(ZeroDivisionError):
            farm.run({x: 13.0})
        assert farm.run({x: 6.0}) == 18.0
        with pytest.raises(rg.ReactgradError):
            farm.run({x: "six"})
        assert farm.run({x: 6.0}) == 18.0
        assert farm.sensitivities("y", [y], [{x: 6.0}])[0]["y"] == 1.0
        y.set(10.0)
        farm.update()
        assert [farm.run({x: 6.0}), farm.run({})] == [60.0, 20.0]


def refuses_13(value: float) -> float:
    if value == 13.0:
        raise ZeroDivisionError("thirteen")
    return value
