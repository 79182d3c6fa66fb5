"""A population in which each network has observations of its own: neat-python's values for each."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad import neat
from reactgrad.neat import _plain, _program
from tests.neat.mutations import TAME, Mutations, config, neat_python, new_genome

SETTINGS = {False: config(), True: config(feed_forward=False)}
PEERS = {False: neat_python.nn.FeedForwardNetwork, True: neat_python.nn.RecurrentNetwork}


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(_program, "FLAT", None)
        monkeypatch.setattr(_program, "_read", _plain.read)
    elif not _program.is_compiled():
        pytest.skip("there was no compiler when the package was built")


def population(seed: int, recurrent: bool, count: int = 5) -> list[Any]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        genome = new_genome(SETTINGS[recurrent], draw)
        mutations = Mutations(SETTINGS[recurrent], draw, TAME, cycles=recurrent)
        for _ in range(draw.randrange(25)):
            mutations.step(genome)
        found.append(genome)
    return found


@pytest.mark.parametrize("recurrent", [False, True])
@given(seed=st.integers(0, 2**32))
def test_each_network_has_its_own_observations_and_state(recurrent: bool, seed: int) -> None:
    genomes, settings = population(seed, recurrent), SETTINGS[recurrent]
    networks = neat.Networks(genomes, settings)
    peers = [[PEERS[recurrent].create(one, settings) for _ in range(2)] for one in genomes]
    draw = np.random.default_rng(seed)
    for step in range(6):
        X = draw.normal(size=(5, 2, 3))
        found = networks.activate(X)
        for several, rows, outputs in zip(peers, X.tolist(), found.tolist(), strict=True):
            assert outputs == [one.activate(row) for one, row in zip(several, rows, strict=True)]
        if step == 2:
            networks.reset([True, False, False, True, False])
        if step == 3:
            networks.reset(np.eye(5, 2, dtype=bool))
        if recurrent:
            for i, k in {2: [(0, 0), (0, 1), (3, 0), (3, 1)], 3: [(0, 0), (1, 1)]}.get(step, ()):
                peers[i][k].reset()


@pytest.mark.parametrize("recurrent", [False, True])
def test_one_observation_each_and_all_forms_of_a_population(recurrent: bool) -> None:
    genomes, settings = population(3, recurrent), SETTINGS[recurrent]
    X = np.random.default_rng(1).normal(size=(5, 3))
    wanted = [
        PEERS[recurrent].create(one, settings).activate(row)
        for one, row in zip(genomes, X.tolist(), strict=True)
    ]
    forms = [genomes, dict(enumerate(genomes)), list(enumerate(genomes)), iter(genomes)]
    for form in forms:
        networks = neat.Networks(form, settings)
        assert networks.activate(X.tolist()).tolist() == wanted
        assert pickle.loads(pickle.dumps(networks)).activate(X).tolist() == wanted
    networks.reset()
    assert networks.activate(X.T.copy().T).tolist() == wanted
    networks.reset()
    single = networks.activate(X.astype(np.float32))
    np.testing.assert_allclose(single, wanted, atol=1e-5)
    word = "recurrent" if recurrent else "feed-forward"
    assert repr(networks) == f"<Networks: 5 {word} ones, 3 inputs, 2 outputs>"
    assert len(networks) == 5
    empty = neat.Networks([], settings)
    assert empty.activate(np.zeros((0, 3))).shape == (0, 2)


def test_networks_of_a_recurrent_config_may_be_read_without_memory() -> None:
    genomes = population(4, False)
    X = np.ones((5, 3))
    found = neat.Networks(genomes, SETTINGS[True], recurrent=False).activate(X)
    np.testing.assert_array_equal(found, neat.Networks(genomes, SETTINGS[False]).activate(X))


def test_a_step_that_fails_is_made_by_no_network() -> None:
    settings = config(feed_forward=False)

    def shy(z: float) -> float:
        if z > 100.0:
            raise ValueError("too much")
        return z

    settings.genome_config.add_activation("shy", shy)
    genomes = population(5, True)
    genomes[-1].nodes[0].activation = "shy"
    genomes[-1].nodes[0].response = 1.0
    weight = genomes[-1].connections[-1, 0] = genomes[0].connections[-1, 0]
    weight.weight, weight.enabled = 1.0, True
    networks, twin = neat.Networks(genomes, settings), neat.Networks(genomes, settings)
    X = np.random.default_rng(2).normal(size=(5, 3))
    for one in (networks, twin):
        one.activate(X)
    with pytest.raises(ValueError, match="too much"):
        networks.activate(np.array([[0.0] * 3] * 4 + [[1e9, 0.0, 0.0]]))
    np.testing.assert_array_equal(networks.activate(X), twin.activate(X))


def test_it_is_said_what_is_wrong() -> None:
    networks = neat.Networks(population(6, True), SETTINGS[True])
    networks.activate(np.ones((5, 2, 3)))
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            lambda: networks.activate(np.ones((5, 3, 3))),
            rg.ShapeError,
            "middle of 2 sequences each",
        ),
        (lambda: networks.activate(np.ones((4, 3))), rg.ShapeError, r"5 networks of 3 .*\(4, 3\)"),
        (lambda: networks.activate([[1.0], [1.0, 2.0]]), rg.ShapeError, "make no array"),
        (lambda: networks.activate([["a"] * 3] * 5), rg.DTypeError, "no real numbers but <U1"),
        (lambda: networks.reset([True]), rg.ShapeError, "a bool for each of the 5 networks"),
        (lambda: neat.Networks(7, SETTINGS[True]), rg.DTypeError, r"Give all of them: \[genome\]"),
        (lambda: neat.Networks([7], SETTINGS[True]), rg.DTypeError, "7 is no genome"),
        (lambda: neat.Networks([], None), rg.DTypeError, "stands where the config"),
    ]
    for act, kind, message in cases:
        with pytest.raises(kind, match=message):
            act()
