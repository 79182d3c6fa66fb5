"""What is given in the wrong place or form is named, and what to write instead."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import config, neat_python, new_genome

SETTINGS = config()
GENOME = new_genome(SETTINGS, random.Random(0))
X = [[1.0, 2.0, 3.0]]


def net() -> Any:
    return neat.Network.create(GENOME, SETTINGS)


def unrolled() -> Any:
    return neat.RecurrentNetwork.create(GENOME, SETTINGS).unroll(2)


def fit(**changes: Any) -> Any:
    """Train, and see that the genome is as it was if that is refused."""
    genome = copy.deepcopy(GENOME)
    try:
        return neat.fit(genome, config=SETTINGS, **{"X": X, "y": [[1.0, 2.0]], **changes})
    finally:
        assert genome.nodes[0].bias == GENOME.nodes[0].bias


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: neat.Network.create(SETTINGS, GENOME), rg.DTypeError, r"Write \(genome, config\)"),
    (lambda: neat.RecurrentNetwork.create(SETTINGS, GENOME), rg.DTypeError, "a config stands"),
    (lambda: neat.fit(SETTINGS, X, [[1.0, 1.0]], GENOME), rg.DTypeError, "a config stands"),
    (lambda: neat.Network.create((1, GENOME), SETTINGS), rg.DTypeError, "for key, genome in"),
    (lambda: net().update((1, GENOME)), rg.DTypeError, "for key, genome in"),
    (lambda: net().fork(SETTINGS), rg.DTypeError, "a config stands"),
    (lambda: neat.Network.create(None, SETTINGS), rg.DTypeError, "None is no genome"),
    (lambda: neat.Network.create(GENOME, None), rg.DTypeError, "NoneType stands where the config"),
    (lambda: neat.evaluate([1], X, SETTINGS), rg.DTypeError, "1 is no genome"),
    (lambda: neat.evaluate(GENOME, X, SETTINGS), rg.DTypeError, r"Give all of them: \[genome\]"),
    (
        lambda: neat.evaluate(neat_python.Population(SETTINGS, seed=1), X, SETTINGS),
        rg.DTypeError,
        "Give all of them: population.population",
    ),
    (lambda: neat.evaluate([GENOME], X, GENOME), rg.DTypeError, "stands where the config"),
    (lambda: neat.evaluate(X, [GENOME], SETTINGS), rg.DTypeError, "no real numbers but object"),
    (lambda: net()["neuron 0"], rg.DTypeError, r"net\['neuron 0'\].*integers: net\[0\]"),
    (lambda: net()[None], rg.DTypeError, r"net\[None\]"),
    (lambda: net()[99], rg.UnknownNameError, r"net\[99\].*no such node.*-1, -2, -3, 0, 1"),
    (lambda: net().genes(-1), rg.UnknownNameError, r"net.genes\(-1\): the network has no such"),
    (lambda: net().activate([None, 1.0, 2.0]), rg.DTypeError, r"no real numbers but object"),
    (lambda: net().activate(["1", "2", "3"]), rg.DTypeError, r"np.asarray\(samples, dtype=float\)"),
    (lambda: net().activate([1j, 1.0, 2.0]), rg.DTypeError, "complex128"),
    (lambda: net().activate([[1.0, 2.0, 3.0], [1.0]]), rg.ShapeError, "make no array"),
    (lambda: net().activate([1.0, 2.0]), rg.ShapeError, "has 3 inputs"),
    (lambda: net().activate(5.0), rg.ShapeError, "has 3 inputs"),
    (
        lambda: neat.Network.create(GENOME, config(inputs=2)),
        neat.GenomeError,
        "begins at the input -3, and the inputs of the config are -1, -2",
    ),
    (
        lambda: neat.RecurrentNetwork.create(GENOME, config(inputs=2)),
        neat.GenomeError,
        "the input -3.*Give the config that the genome was made with",
    ),
    *[
        (lambda at=at: unrolled()[at], rg.UnknownNameError, r"step from 0 to 1: unrolled\[0, 0\]")
        for at in (0, (0, 2), (0, -1), (99, 0), "a", (None, None))
    ],
    (lambda: fit(y=[[1.0, np.nan]]), rg.DTypeError, "finite numbers, of one sample at least"),
    (lambda: fit(X=[[1.0, 2.0, np.inf]]), rg.DTypeError, "finite numbers"),
    (lambda: fit(X=np.zeros((0, 3)), y=np.zeros((0, 2))), rg.DTypeError, "finite numbers"),
    (lambda: fit(y=[[1.0, 2.0]] * 2), rg.ShapeError, "1 samples and 2 rows of y"),
    (lambda: fit(X=X[0], y=[[1.0, 2.0]] * 3), rg.ShapeError, r"one sample.*\(samples, 3\)"),
    (lambda: fit(y=["a", "b"]), rg.DTypeError, "no array of real numbers"),
    (lambda: fit(y=[[1.0, 2.0], [1.0]]), rg.DTypeError, "no array of real numbers"),
    (lambda: fit(y=[[1j, 2.0]]), rg.DTypeError, "no array of real numbers"),
    (lambda: fit(steps=-1), rg.DTypeError, r"steps=-1.*0 or more"),
    (lambda: fit(steps="3"), rg.DTypeError, r"steps='3'"),
    (lambda: fit(learning_rate=np.inf), rg.DTypeError, "finite number above 0"),
    (lambda: fit(learning_rate="a"), rg.DTypeError, "learning_rate='a'"),
    (lambda: fit(loss="mae"), rg.DTypeError, "loss='mae'"),
    (lambda: neat.RecurrentNetwork.create(GENOME, SETTINGS)["a"], rg.DTypeError, r"net\['a'\]"),
]


@pytest.mark.parametrize(("act", "kind", "message"), CASES)
def test_it_is_said_what_is_wrong(act: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        act()


def test_a_genome_that_is_refused_leaves_the_network_as_it_was() -> None:
    one = net()
    before = one.activate(X), one.phenotype
    for wrong in (SETTINGS, (1, GENOME), None):
        with pytest.raises(rg.DTypeError):
            one.update(wrong)
    assert one.phenotype is before[1]
    np.testing.assert_array_equal(one.activate(X), before[0])
    assert one.ran == ()


def test_a_population_may_be_a_dict() -> None:
    found = neat.evaluate({5: GENOME, 6: GENOME}, X, SETTINGS)
    assert (len(found.outputs), found.ran, found.neurons) == (2, 2, 4)
