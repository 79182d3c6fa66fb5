"""Genomes that are no networks say what is wrong; where neat-python has an answer, it is ours."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from reactgrad import neat
from tests.neat.mutations import add_gene, config, connect, neat_python, new_genome

SETTINGS = config()


def genome() -> Any:
    return new_genome(SETTINGS, random.Random(0))


def cycle(one: Any) -> None:
    for key in (2, 3, 4):
        add_gene(one, key, random.Random(key))
    for source, target in ((-1, 2), (2, 3), (3, 4), (4, 2), (4, 0)):
        connect(one, source, target, 1.0)


def own_cycle(one: Any) -> None:
    connect(one, 0, 0, 1.0)


def missing_source(one: Any) -> None:
    connect(one, 7, 1, 1.0)


def missing_output(one: Any) -> None:
    del one.nodes[1]


def unknown_activation(one: Any) -> None:
    one.nodes[0].activation = "swish"


def unknown_aggregation(one: Any) -> None:
    one.nodes[0].aggregation = "mode"


def nan_weight(one: Any) -> None:
    one.connections[-2, 1].weight = math.nan


def no_number(one: Any) -> None:
    one.nodes[1].response = None


def no_real_number(one: Any) -> None:
    one.connections[-2, 1].weight = 1j


def huge_number(one: Any) -> None:
    one.nodes[1].bias = 10**400


def infinite_bias(one: Any) -> None:
    one.nodes[1].bias = -math.inf


BAD: list[tuple[Callable[[Any], None], str]] = [
    (cycle, r"2 -> 3 -> 4 -> 2|3 -> 4 -> 2 -> 3|4 -> 2 -> 3 -> 4"),
    (own_cycle, r"genome 1: .* 0 -> 0 form a cycle.*RecurrentNetwork"),
    (missing_source, r"genome 1: the connection 7 -> 1 begins at node 7, which has no gene"),
    (missing_output, r"genome 1 has no gene for its output 1"),
    (unknown_activation, r"activation of node 0 is 'swish'.*sigmoid.*add_activation\('swish'"),
    (unknown_aggregation, r"aggregation of node 0 is 'mode'.*add_aggregation"),
    (nan_weight, r"the weight of -2 -> 1 of node 1 is nan"),
    (no_number, r"genome 1: the response of node 1 is None"),
    (no_real_number, r"genome 1: the weight of -2 -> 1 of node 1 is 1j"),
    (huge_number, r"the bias of node 1 is 10000000"),
    (infinite_bias, r"the bias of node 1 is -inf"),
]


@pytest.mark.parametrize(("spoil", "message"), BAD)
def test_what_is_wrong_is_named(spoil: Callable[[Any], None], message: str) -> None:
    one = genome()
    spoil(one)
    for build in (neat.Network.create, neat.FeedForwardNetwork.create):
        with pytest.raises(neat.GenomeError, match=message):
            build(one, SETTINGS)
    with pytest.raises(neat.GenomeError, match=message):
        neat.evaluate([one], [[1.0, 2.0, 3.0]], SETTINGS)
    with pytest.raises(neat.GenomeError, match=message):
        neat.fit(one, [[1.0, 2.0, 3.0]], [[1.0, 2.0]], SETTINGS)


@pytest.mark.parametrize(("spoil", "message"), BAD[2:])
def test_so_it_is_in_recurrent_networks(spoil: Callable[[Any], None], message: str) -> None:
    one = genome()
    spoil(one)
    with pytest.raises(neat.GenomeError, match=message):
        neat.RecurrentNetwork.create(one, SETTINGS)


@pytest.mark.parametrize("spoil", [cycle, own_cycle])
def test_cycles_are_welcome_in_recurrent_networks(spoil: Callable[[Any], None]) -> None:
    one = genome()
    spoil(one)
    net = neat.RecurrentNetwork.create(one, SETTINGS)
    peer = neat_python.nn.RecurrentNetwork.create(one, SETTINGS)
    for _ in range(4):
        assert net.activate([1.0, 2.0, 3.0]) == pytest.approx(peer.activate([1.0, 2.0, 3.0]))


def test_what_leads_to_no_output_may_be_wrong() -> None:
    one = genome()
    add_gene(one, 5, random.Random(5)).activation = "swish"
    connect(one, 9, 5, math.nan)
    connect(one, 5, 5, 1.0)
    net = neat.Network.create(one, SETTINGS)
    peer = neat_python.nn.FeedForwardNetwork.create(one, SETTINGS)
    assert net.activate([1.0, 2.0, 3.0]) == pytest.approx(peer.activate([1.0, 2.0, 3.0]))


def test_an_output_that_nothing_leads_to_is_constant() -> None:
    one = genome()
    for key in list(one.connections):
        if key[1] == 1:
            one.connections[key].enabled = False
    net = neat.Network.create(one, SETTINGS)
    peer = neat_python.nn.FeedForwardNetwork.create(one, SETTINGS)
    ours = net.activate([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert ours[0].tolist() == pytest.approx(peer.activate([1.0, 2.0, 3.0]))
    assert ours[0, 1] == ours[1, 1]


def test_a_connection_to_an_input_is_named_in_recurrent_networks() -> None:
    one = genome()
    connect(one, 1, -1, 1.0)
    with pytest.raises(
        neat.GenomeError, match=r"genome 1: the connection 1 -> -1 ends at an input"
    ):
        neat.RecurrentNetwork.create(one, SETTINGS)
