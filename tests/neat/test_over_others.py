"""Evolution over other processes: what travels are rows, and a seed gives the run of one process.

Here on threads; ``tests/distributed`` has the same on processes of MPI and of Dask.
"""

from __future__ import annotations

import pickle
import random
import sys
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.demo import neat_config
from reactgrad.neat import _program
from reactgrad.neat._genome import packed, unpacked
from reactgrad.neat._rows import from_bytes, to_bytes
from tests.neat.evolving import fitness, islands_told, population_told, settings, told

needs_arrays = pytest.mark.skipif(
    not _program.is_compiled(), reason="there was no compiler when the package was built"
)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("over", [3, rg.distributed.LocalHosts(2)])
def test_workers_give_the_run_of_one_process(exact: bool, over: Any) -> None:
    assert population_told(over, exact=exact) == population_told(None, exact=exact)


def test_ranks_give_the_run_of_one_process() -> None:
    expected = population_told(None)
    assert rg.distributed.run(population_told, "local:3") == [expected] * 3


def test_ranks_that_are_threads_found_their_populations_one_after_the_other() -> None:
    """Python's random numbers are one stream: threads that take turns at every line would share it."""
    expected, former = population_told(None), sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(4):
            assert rg.distributed.run(population_told, "local:3") == [expected] * 3
    finally:
        sys.setswitchinterval(former)


def test_a_run_goes_on_over_others_and_here_again() -> None:
    found = []
    for ways in ((None, None), (2, None)):
        population = neat.Population(settings(), seed=3)
        for over in ways:
            population.run(fitness, 2, over=over)
        found.append(told(population))
    assert found[0] == found[1]


def test_a_worker_that_dies_loses_nothing() -> None:
    hosts = rg.distributed.LocalHosts(3)
    asked = []

    def watched(genomes: Any, config: Any) -> Any:
        asked.append(len(genomes))
        if len(asked) == 4:
            hosts.kill(hosts.names()[0])
        return fitness(genomes, config)

    assert population_told(hosts, watched) == population_told(None)
    assert sum(asked) > 4 * 24  # some genomes were computed again


def test_trained_genomes_are_scored_by_workers_too() -> None:
    x, y = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 0.0])
    found = []
    for over in (None, 2):
        training = neat.Training(x, y, steps=3, best=4)
        population = neat.Population(settings(), seed=2, training=training)
        found.append(population.run(fitness, 3, over=over).fitness)
    assert found[0] == found[1]


def test_errors_of_the_fitness_function_arrive() -> None:
    def fails(genomes: Any, config: Any) -> Any:
        raise ZeroDivisionError("no fitness")

    def too_many(genomes: Any, config: Any) -> Any:
        return [1.0] * (len(genomes) + 1)

    with pytest.raises(ZeroDivisionError, match="no fitness"):
        neat.Population(settings(), seed=1).run(fails, 1, over=2)
    with pytest.raises(rg.ShapeError, match="one number for each"):
        neat.Population(settings(), seed=1).run(too_many, 1, over=2)
    with pytest.raises(RuntimeError, match="Fitness not assigned to genome"):
        neat.Population(settings(), seed=1).run(lambda genomes, config: None, 1, over=2)
    with pytest.raises(rg.DTypeError, match="a farm works on a client of Dask, not str"):
        neat.Population(settings(), seed=1).run(fitness, 1, over="workers")


def test_an_error_on_one_rank_ends_all() -> None:
    def body(group: rg.distributed.Group) -> None:
        def fails(genomes: Any, config: Any) -> Any:
            if group.rank == 1:
                raise ZeroDivisionError("the second rank cannot go on")
            return fitness(genomes, config)

        neat.Population(settings(), seed=1).run(fails, 2, over=group)

    with pytest.raises(ZeroDivisionError, match="the second rank"):
        rg.distributed.run(body, "local:2")


@needs_arrays
@pytest.mark.parametrize("size", [2, 4, 16])
def test_traffic_is_that_of_the_model(size: int) -> None:
    """Rows of 40 bytes a link and 48 a node, and little more; see docs/distributed.md."""

    def body(group: rg.distributed.Group) -> tuple[int, int]:
        population = neat.Population(neat_config(num_inputs=30, pop_size=256), seed=1)
        genomes = population.population.values()
        sizes = [one.genes.size() for one in genomes]
        model = sum(16 + 48 * nodes + 40 * links for nodes, links, _ in sizes)
        population.run(lambda genomes, config: [5.0] * len(genomes), 1, over=group)
        return model, group.traffic.bytes

    model, counted = rg.distributed.run(body, f"local:{size}")[0]
    assert model < counted
    # Fitness comes back, and the population at the end, which all ranks get.
    assert counted < 1.05 * model + 4096 * size + 2 * model


@needs_arrays
def test_rows_come_back_bit_for_bit_also_where_functions_have_other_places() -> None:
    population = neat.Population(settings(), seed=4)
    population.run(fitness, 4)
    pairs = sorted(population.population.items())
    back = from_bytes(to_bytes(pairs))
    assert [key for key, _ in back] == [key for key, _ in pairs]
    assert [one.genes.rows() for _, one in back] == [one.genes.rows() for _, one in pairs]
    assert all(one.fitness is None for _, one in back)
    rows, names = packed([pairs[0][1].genes])
    turned = [names[0], *reversed(names[1:])]
    (other,) = unpacked(rows, turned)
    expected = [turned[row[4]] for row in pairs[0][1].genes.rows()[0]]
    assert [names[row[4]] for row in other.rows()[0]] == expected


@needs_arrays
def test_bytes_that_are_no_genomes_are_refused() -> None:
    genome = next(iter(neat.Population(settings(), seed=4).population.values()))
    rows, names = packed([genome.genes])
    for length in range(0, len(rows), 4):
        with pytest.raises(ValueError, match="these bytes are no genomes"):
            unpacked(rows[:length] if length != 8 else rows[:4], names)
    for at in range(24):
        broken = bytearray(rows)
        broken[at] ^= 0x80
        with pytest.raises(ValueError, match="these bytes are no genomes"):
            unpacked(bytes(broken), names)
    with pytest.raises(ValueError, match="these bytes are no genomes"):
        unpacked(rows, names[:1])


# --- islands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
def test_islands_are_the_same_wherever_they_are(exact: bool) -> None:
    expected = islands_told(None, exact=exact)
    assert islands_told(2, exact=exact) == expected
    assert rg.distributed.run(islands_told, "local:2", exact) == [expected] * 2


def test_a_run_of_islands_may_be_cut_anywhere() -> None:
    whole, parts = [neat.Islands(settings(), 2, seed=7, every=2) for _ in range(2)]
    whole.run(fitness, 5)
    for n in (1, 3, 1):
        parts.run(fitness, n)
    found = [[told(one) for one in islands.populations] for islands in (whole, parts)]
    assert found[0] == found[1]
    assert parts.generation == 5


def test_the_best_genomes_migrate_and_stay_valid() -> None:
    """An island that cannot rise by itself has the other one's champion after one migration."""
    config = settings(pop_size=20)
    islands = neat.Islands(config, 2, seed=1, every=3, migrants=3)
    islands.run(fitness, 3)
    ranks = [one.best_genome.fitness for one in islands.populations]
    better = int(np.argmax(ranks))
    islands.run(fitness, 1)  # the first generation after a migration
    assert islands.populations[1 - better].best_genome.fitness == max(ranks)
    alone = neat.Islands(config, 2, seed=1, every=3, migrants=0)
    alone.run(fitness, 4)
    assert [one.best_genome.fitness for one in alone.populations][1 - better] < max(ranks)


def test_numbers_of_links_mean_the_same_link_on_all_islands() -> None:
    config = settings(pop_size=20, node_add_prob=0.6, conn_add_prob=0.6)
    islands = neat.Islands(config, 3, seed=2, every=2, migrants=4)
    islands.run(fitness, 9)
    meaning: dict[int, tuple[int, int]] = {}
    for population in islands.populations:
        assert len(population.population) == 20
        for genome in population.population.values():
            neat.Network.create(genome, population.config)  # raises if it is no network
            for pair, gene in genome.connections.items():
                assert meaning.setdefault(gene.innovation, pair) == pair
    for i, population in enumerate(islands.populations):
        ranges = {key // 10**9 for one in population.population.values() for key in one.nodes}
        assert len(ranges - {i}) > 0  # neurons have come from elsewhere


def test_islands_end_where_one_is_solved_and_leave_pythons_random_numbers_alone() -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    islands = neat.Islands(settings(fitness_threshold=0.5), 2, seed=1)
    winner = islands.run(fitness, 50)
    assert random.random() == expected
    assert winner.fitness >= 0.5
    assert islands.generation < 50


def test_what_is_wrong_with_islands_is_told() -> None:
    config = neat_config(pop_size=10)
    with pytest.raises(rg.DTypeError, match="count=0.*a whole number, 1 or more"):
        neat.Islands(config, 0)
    with pytest.raises(rg.DTypeError, match="at most 9 of them can be replaced"):
        neat.Islands(config, 2, migrants=10)
    with pytest.raises(rg.DTypeError, match="config"):
        neat.Islands({}, 2)


def test_populations_pickle_as_rows() -> None:
    genome = next(iter(neat.Population(settings(), seed=4).population.values()))
    assert str(pickle.loads(pickle.dumps(genome))) == str(genome)
