"""Training that diverges ends with numbers that a genome can hold."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import neat
from tests.neat.mutations import config, new_genome

SETTINGS = config()
X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.random.default_rng(2).normal(size=(5, 2))


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_as_many_losses_as_steps_and_one_more(steps: int) -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    assert len(neat.fit(genome, X, Y, SETTINGS, steps=steps).losses) == steps + 1


def test_training_ends_before_the_genes_are_not_finite() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    for gene in genome.nodes.values():
        gene.activation = "identity"
    before = copy.deepcopy(genome)
    with np.errstate(all="ignore"):
        losses, net = neat.fit(genome, X, Y, SETTINGS, steps=9, learning_rate=1e300)
    assert len(losses) == 2
    assert np.isfinite(losses[0])
    assert not np.isfinite(losses[1])
    genes = [one for key in net.phenotype.neurons for one in net.genes(key).value]
    assert np.isfinite(genes).all()
    assert genome.nodes[0].bias == net.genes(0).value[0] != before.nodes[0].bias
    neat.evaluate([genome], X, SETTINGS)


def test_a_loss_that_is_nan_at_once_leaves_the_genome() -> None:
    genome = new_genome(SETTINGS, random.Random(1))
    before = genome.nodes[0].bias
    losses, _ = neat.fit(
        genome, X, Y, SETTINGS, loss=lambda outputs, y: rg.log(outputs - outputs).sum() * np.nan
    )
    assert np.isnan(losses).all()
    assert len(losses) == 1
    assert genome.nodes[0].bias == before
