"""Farms and partitions on real worker processes of Dask."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd
from tests.distributed.market import FATAL, book, fatal

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if find_spec("distributed") is None:
        why = 'no Dask here: pip install "reactgrad[farm]"'
        if os.environ.get("REACTGRAD_TEST_MPI") == "required":
            pytest.fail(why)
        pytest.skip(why)
    import dask
    import distributed

    os.environ[FATAL] = str(tmp_path_factory.mktemp("fatal") / "dead")
    settings = {
        "distributed.worker.daemon": False,
        "temporary-directory": str(tmp_path_factory.mktemp("dask")),
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made
    del os.environ[FATAL]


def test_twelve_scenarios_through_two_processes_equal_one(client: Any) -> None:
    g, spots, total, _ = book()
    changes: list[dict[Any, float]] = [{spots[i % 4]: 90.0 + i} for i in range(12)]
    expected = []
    for change in changes:
        with g.whatif(change) as fork:
            expected.append(fork[total].value)
    with rd.Farm(g, client, outputs=[total]) as farm:
        assert len(farm) == 2
        assert list(farm.map(changes)) == expected
        slopes = farm.sensitivities(total, spots)
        assert [slopes[one.label] for one in spots] == [rg.grad(total, one).value for one in spots]
        spots[0].set(77.0)
        farm.update()
        assert next(iter(farm.map([{}]))) == total.value


def test_a_worker_killed_in_the_middle_loses_nothing(client: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(fatal)(x) * 2.0
    flag = Path(os.environ[FATAL])
    flag.unlink(missing_ok=True)
    before = time.monotonic()
    with rd.Farm(g, client, outputs=[y], patience=60.0) as farm:
        found = list(farm.map([{x: float(i)} for i in range(24)], chunk=1))
        assert found == [2.0 * i for i in range(24)]
        assert len(farm.lost) == 1
    assert flag.exists()  # it did die
    assert time.monotonic() - before < 120.0


def test_parts_lie_on_processes(client: Any) -> None:
    client.wait_for_workers(2, timeout=60)
    g, spots, total, values = book()
    with rd.partition(g, values, client) as parts:
        assert parts[total] == total.value
        parts.set({spots[3]: 120.0})
        with g.whatif({spots[3]: 120.0}) as fork:
            assert parts[total] == fork[total].value
        assert sorted(parts.calls) == [1, 2]


def test_errors_of_the_model_arrive(client: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(np.linalg.inv)(x)
    with rd.Farm(g, client, outputs=[y]) as farm:
        with pytest.raises(np.linalg.LinAlgError):
            list(farm.map([{x: np.zeros((2, 2))}]))


def test_an_evolution_over_processes_is_that_of_one(client: Any) -> None:
    pytest.importorskip("neat")
    from tests.neat.evolving import islands_told, population_told

    client.wait_for_workers(2, timeout=60)
    assert population_told(client) == population_told(None)
    assert islands_told(client) == islands_told(None)


def test_a_function_with_its_data_is_shipped_once(client: Any) -> None:
    client.wait_for_workers(2, timeout=60)
    table = np.arange(10.0)
    with rd.FunctionFarm(lambda i: (os.getpid(), table[i]), client) as farm:
        found = list(farm.map(range(10), chunk=1))
    assert [value for _, value in found] == list(table)
    assert os.getpid() not in {pid for pid, _ in found}


def test_what_does_not_travel_is_told(client: Any) -> None:
    pytest.importorskip("neat")
    import threading

    from reactgrad import neat
    from tests.neat.evolving import settings

    lock = threading.Lock()
    with pytest.raises(
        rg.DTypeError, match="do not travel to workers: cannot pickle '_thread.lock'"
    ):
        neat.Population(settings(), seed=1).run(lambda genomes, config: lock, 1, over=client)


def test_a_worker_killed_while_it_scores_loses_nothing(client: Any) -> None:
    pytest.importorskip("neat")
    from tests.neat.evolving import fitness, population_told

    client.wait_for_workers(2, timeout=60)
    flag = Path(os.environ[FATAL])
    flag.unlink(missing_ok=True)

    def deadly(genomes: Any, config: Any) -> Any:
        fatal(13.0 if any(key > 40 for key, _ in genomes) else 0.0)
        return fitness(genomes, config)

    assert population_told(client, deadly) == population_told(None)
    assert flag.exists()  # it did die
