"""A population of arrays: neat-python's genomes, distances, structures and rates; runs that repeat."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from reactgrad.demo import neat_config
from reactgrad.neat import _evaluate, _program
from tests.neat.mutations import neat_python

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([0.0, 1.0, 1.0, 0.0])

needs_arrays = pytest.mark.skipif(
    not _program.is_compiled(), reason="there was no compiler when the package was built"
)


def settings(**changes: Any) -> Any:
    options = {"pop_size": 60, "num_hidden": 1, "fitness_threshold": 10.0}
    functions = {"activation_options": "sigmoid tanh relu", "activation_mutate_rate": 0.1}
    return neat_config(**{**options, **functions, **changes})


def fitness(genomes: Any, config: Any) -> list[float]:
    outputs = neat.evaluate(genomes, X, config).outputs
    return [1.0 - float(np.mean((one[:, 0] - Y) ** 2)) for one in outputs]


def evolved(seed: int, generations: int, **changes: Any) -> Any:
    population = neat.Population(settings(**changes), seed=seed)
    population.run(fitness, generations)
    return population


def assert_valid(genome: Any, config: Any) -> None:
    """No dangling or doubled links, no cycles in feed-forward ones, innovations unique."""
    plain = genome.plain()
    functions = config.genome_config
    assert set(functions.output_keys) <= plain.nodes.keys()
    innovations = [one.innovation for one in plain.connections.values()]
    assert len(set(innovations)) == len(innovations)
    for source, target in plain.connections:
        assert source in plain.nodes or source in functions.input_keys
        assert target in plain.nodes
    if functions.feed_forward:
        neat.Network.create(plain, config)
        links: list[Any] = []
        for link in plain.connections:
            assert not neat_python.graphs.creates_cycle(links, link)
            links.append(link)


@needs_arrays
@pytest.mark.parametrize("feed_forward", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_genomes_stay_valid_and_compute_what_neat_python_does(
    seed: int, feed_forward: bool
) -> None:
    changes = {"node_delete_prob": 0.2, "conn_delete_prob": 0.3, "conn_add_prob": 0.6}
    config = settings(feed_forward=feed_forward, node_add_prob=0.3, **changes)
    population = neat.Population(config, seed=seed)
    kinds = neat_python.nn.FeedForwardNetwork, neat.FeedForwardNetwork
    if not feed_forward:
        kinds = neat_python.nn.RecurrentNetwork, neat.RecurrentNetwork

    def look(genomes: Any, config: Any) -> list[float]:
        found = []
        for _, genome in genomes:
            assert_valid(genome, config)
            plain = genome.plain()
            peer, net = kinds[0].create(plain, config), kinds[1].create(genome, config)
            for one in X.tolist():
                value = net.activate(one)
                assert value == pytest.approx(peer.activate(one), rel=1e-9, abs=1e-12)
            found.append(-abs(value[0] - 0.5))
        return found

    population.run(look, 6)
    assert population.generation == 6
    assert len(population.population) == 60


@needs_arrays
def test_distances_are_neat_pythons() -> None:
    population = evolved(1, 12)
    genomes = list(population.population.values())[::4]
    config = population.config.genome_config
    for one in genomes:
        for other in genomes:
            expected = one.plain().distance(other.plain(), config)
            assert one.distance(other, config) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@needs_arrays
def test_species_are_those_of_neat_pythons_rule() -> None:
    population = evolved(2, 8)
    genomes, functions = list(population.population.values()), population.config.genome_config
    found = [genomes[0].distance(one, functions) for one in genomes[1:]]
    population.config.species_set_config.compatibility_threshold = 0.5 * float(np.median(found))
    kinds = neat_python.species.DefaultSpeciesSet, type(population.species)
    twin, ours = [
        kind(population.config.species_set_config, population.reporters) for kind in kinds
    ]
    for generation in range(3):
        for one in (twin, ours):
            one.speciate(population.config, population.population, generation)
        assert len(ours.species) > 1
        assert ours.genome_to_species == twin.genome_to_species
        for key, one in ours.species.items():
            assert one.representative.key == twin.species[key].representative.key
        assert ours.get_species(one.representative.key) is one
        population.run(fitness, 1)


@needs_arrays
def test_rates_of_mutations_are_those_of_the_config() -> None:
    changes = {
        "weight_mutate_rate": 0.3,
        "weight_replace_rate": 0.2,
        "weight_mutate_power": 0.5,
        "weight_init_stdev": 2.0,
        "enabled_mutate_rate": 0.1,
        "node_add_prob": 0.0,
        "node_delete_prob": 0.0,
        "conn_add_prob": 0.0,
        "conn_delete_prob": 0.0,
    }
    population = neat.Population(settings(num_hidden=8, **changes), seed=1)
    config = population.config.genome_config
    before, after, switched, functions = [], [], 0, 0
    for genome in population.population.values():
        for _ in range(20):
            twin = copy.deepcopy(genome)
            twin.mutate(config)
            for key, one in genome.connections.items():
                before.append(one.weight)
                after.append(twin.connections[key].weight)
                switched += one.enabled != twin.connections[key].enabled
            functions += sum(
                one.activation != twin.nodes[key].activation for key, one in genome.nodes.items()
            )
    moved = np.subtract(after, before)
    changed = moved[moved != 0.0]
    assert len(changed) / len(moved) == pytest.approx(0.5, abs=0.02)
    # Three in five are steps of 0.5, the others new draws around 0 in place of weights around 0.
    variance = 0.6 * 0.5**2 + 0.4 * 2 * 2.0**2
    assert np.var(changed) == pytest.approx(variance, rel=0.1)
    assert switched / len(moved) == pytest.approx(0.05, abs=0.01)
    nodes = 20 * sum(len(one.nodes) for one in population.population.values())
    assert functions / nodes == pytest.approx(0.1 * 2 / 3, abs=0.02)


@needs_arrays
def test_children_have_the_structure_of_the_fitter_parent_and_genes_of_both() -> None:
    population = evolved(4, 10)
    config = population.config.genome_config
    genomes = list(population.population.values())
    first = max(genomes, key=lambda one: one.size())

    def common(one: Any) -> int:
        links = {key: (gene.innovation, gene.weight) for key, gene in one.connections.items()}
        own = first.connections
        return sum(
            key in own and found[0] == own[key].innovation and found[1] != own[key].weight
            for key, found in links.items()
        )

    second = max(genomes, key=common)
    first.fitness, second.fitness = 2.0, 1.0
    shares = []
    for _ in range(300):
        child = type(first)(99)
        child.configure_crossover(second, first, config)
        assert child.connections.keys() == first.connections.keys()
        assert child.nodes.keys() == first.nodes.keys()
        for key, one in child.connections.items():
            mine, other = first.connections[key], second.connections.get(key)
            if other is None or other.innovation != mine.innovation:
                assert one.weight == mine.weight
            elif mine.weight != other.weight:
                assert one.weight in (mine.weight, other.weight)
                shares.append(one.weight == mine.weight)
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)


def test_a_run_is_repeated_by_its_seed() -> None:
    ends = [
        {key: str(one) for key, one in evolved(seed, 5).population.items()} for seed in (7, 7, 8)
    ]
    assert ends[0] == ends[1] != ends[2]


@needs_arrays
def test_a_checkpoint_goes_on_exactly(tmp_path: Path) -> None:
    population = neat.Population(settings(), seed=5)
    prefix = str(tmp_path / "at-")
    population.add_reporter(neat_python.Checkpointer(3, filename_prefix=prefix))
    population.add_reporter(neat_python.StatisticsReporter())
    population.run(fitness, 6)
    (first, *_) = sorted(tmp_path.iterdir())
    again = neat_python.Checkpointer.restore_checkpoint(str(first))
    again.run(scored, population.generation - again.generation)
    # neat-python gives away a key of a node when it saves, so later keys differ by that.
    assert again.population.keys() == population.population.keys()
    for key, genome in population.population.items():
        nodes, links = again.population[key].genes.rows()
        other_nodes, other_links = genome.genes.rows()
        assert [one[1:] for one in nodes] == [one[1:] for one in other_nodes]
        assert [one[3:] for one in links] == [one[3:] for one in other_links]


def scored(genomes: Any, config: Any) -> None:
    for (_, genome), value in zip(genomes, fitness(genomes, config), strict=True):
        genome.fitness = value


def test_exactly_it_is_neat_pythons_run() -> None:
    population = neat.Population(settings(), seed=6, exact=True)
    population.run(fitness, 4)
    theirs = neat_python.Population(settings(), seed=6)
    theirs.run(scored, 4)
    assert {k: str(one) for k, one in population.population.items()} == {
        k: str(one) for k, one in theirs.population.items()
    }
    assert type(next(iter(population.population.values()))) is neat_python.DefaultGenome


@needs_arrays
def test_threads_that_share_the_genomes_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    population = evolved(3, 6)
    samples = np.random.default_rng(1).normal(size=(700, 2))
    evaluator = neat.Evaluator(samples, population.config)
    alone = evaluator(population.population)
    monkeypatch.setattr(_evaluate, "_SHARED", 1)
    monkeypatch.setattr(rg, "get_num_threads", lambda: 3)
    for one, other in zip(alone.outputs, evaluator(population.population).outputs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert alone.ran == alone.neurons > 60
    assert len(evaluator) == 0
    plain = [one.plain() for one in population.population.values()]
    for one, other in zip(alone.outputs, evaluator(plain).outputs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@needs_arrays
def test_genes_that_are_seen_and_changed_count() -> None:
    population = neat.Population(settings(), seed=9)
    genome = population.population[1]
    config = population.config
    before = neat.Network.create(genome, config).activate([1.0, 0.0])
    copied = pickle.loads(pickle.dumps(genome))
    genome.nodes[0].bias += 1.0
    twin = neat_python.nn.FeedForwardNetwork.create(genome.plain(), config)
    value = neat.Network.create(genome, config).activate([1.0, 0.0])
    assert value == twin.activate([1.0, 0.0]) != before
    assert neat.Network.create(copied, config).activate([1.0, 0.0]) == before
    assert neat.evaluate([genome], [[1.0, 0.0]], config).outputs[0][0].tolist() == value
    losses, _ = neat.fit(genome, X, Y, config, steps=20)
    assert losses[-1] < losses[0]
    assert genome.distance(copied, config.genome_config) > 0.0
    genome.nodes[0].bias = float("nan")
    with pytest.raises(neat.GenomeError, match="the bias of node 0 is nan"):
        neat.Network.create(genome, config)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("returned", [False, True])
def test_fitness_that_is_nan_warns_with_the_keys(exact: bool, returned: bool) -> None:
    if not exact and not _program.is_compiled():
        pytest.skip("there was no compiler when the package was built")
    population = neat.Population(settings(pop_size=20), seed=2, exact=exact)

    def partly_nan(genomes: Any, config: Any) -> Any:
        found = [float("nan") if i < 7 else 1.0 for i in range(len(genomes))]
        if returned:
            return found
        for (_, genome), one in zip(genomes, found, strict=True):
            genome.fitness = one
        return None

    keys = list(population.population)
    with pytest.warns(rg.ReactgradWarning) as caught:
        population.run(partly_nan, 1)
    (one,) = caught
    assert str(one.message).startswith(
        f"the fitness of 7 of 20 genomes is NaN: {', '.join(map(str, keys[:5]))} and 2 more. NaN is neither more "
    )
    assert one.filename == __file__


def test_what_arrays_cannot_hold_is_refused() -> None:
    class Own(neat_python.genes.DefaultNodeGene):
        pass

    config = settings()
    config.genome_config.node_gene_type = Own
    if _program.is_compiled():
        with pytest.raises(rg.DTypeError, match=r"node_gene_type is Own.*exact=True"):
            neat.Population(config)
    neat.Population(config, exact=True)
    with pytest.raises(rg.DTypeError, match="stands where the config"):
        neat.Population(None)
    population = neat.Population(settings(), seed=1)
    with pytest.raises(rg.ShapeError, match=r"shape \(3,\) for 60 genomes. Return one"):
        population.run(lambda genomes, config: [1.0, 2.0, 3.0], 1)
    assert repr(population).startswith("<Population: generation 0, 60 genomes, ")


@pytest.mark.slow
@needs_arrays
def test_xor_is_solved_as_often_and_as_soon_as_by_neat_python() -> None:
    """Generations to a fitness of 0.95 over 30 seeds: equal within three standard errors."""
    generations: dict[bool, list[int]] = {False: [], True: []}
    for exact, found in generations.items():
        for seed in range(30):
            config = settings(pop_size=150, fitness_threshold=0.95)
            population = neat.Population(config, seed=seed, exact=exact)
            population.run(fitness, 60)
            found.append(population.generation)
    ours, theirs = (np.array(generations[exact]) for exact in (False, True))
    error = np.sqrt(ours.var() / len(ours) + theirs.var() / len(theirs))
    assert abs(ours.mean() - theirs.mean()) < 3.0 * error + 1.0
    random.seed()
