"""``reactgrad demo neat``: what it counts, what it prints, and what it says without neat-python."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from reactgrad import demo, neat
from reactgrad._cli import main

try:
    import neat as neat_python
except ImportError:
    neat_python = None

needs_neat = pytest.mark.skipif(neat_python is None, reason="neat-python: the extra `neat`")


@pytest.fixture(scope="module")
def evolution() -> demo.Evolution:
    """One seed, which solves XOR in a few generations."""
    return demo.evolve(1)


@needs_neat
@pytest.mark.slow
def test_it_is_the_evolution_that_neat_python_makes_by_itself(evolution: demo.Evolution) -> None:
    """neat-python's own evaluation of the same seed finds the same genome in as many generations."""
    config = demo.neat_config()
    population = neat_python.Population(config, seed=0)
    neurons = 0
    known: list[Any] = []

    def fitness(genomes: Any, config: Any) -> None:
        nonlocal neurons
        for _, genome in genomes:
            net = neat_python.nn.FeedForwardNetwork.create(genome, config)
            neurons += len(net.node_evals)
            errors = [
                (net.activate(x)[0] - y) ** 2
                for x, y in zip(demo.INPUTS.tolist(), demo.WANTED, strict=True)
            ]
            genome.fitness = 4.0 - float(sum(errors))
            known.append(genome.key)

    best = population.run(fitness, 300)
    (winner,) = evolution.winners
    assert winner.solved
    assert winner.evaluations == len(known)
    assert winner.generations == population.generation + 1
    assert winner.fitness == pytest.approx(best.fitness, rel=1e-12)
    assert winner.neurons == neurons
    assert 0 < winner.ran < winner.neurons
    assert evolution.holds
    net = neat.Network.create(best, config)
    outputs = net.activate(demo.INPUTS)[:, 0]
    assert np.array_equal(outputs.round(), demo.WANTED)
    assert winner.hidden == len(net.phenotype.neurons) - 1


@pytest.mark.slow
@needs_neat
def test_the_command_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    evolution: demo.Evolution,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[int] = []

    def evolve(seeds: int, on_step: Any, on_generation: Any) -> demo.Evolution:
        asked.append(seeds)
        return evolution

    monkeypatch.setattr(demo, "evolve", evolve)
    assert main(["demo", "neat"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[-1] == "picture: reactgrad-neat.svg"
    assert "species           " in text
    root = ElementTree.fromstring((tmp_path / "reactgrad-neat.svg").read_text("utf-8"))
    told = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")]
    history = evolution.history
    assert {f"species {key}" for one in history.species for key in one} <= set(told)
    links = sum(len(one.sources) for one in history.network.phenotype.neurons.values())
    assert len([one for one in told if one and " to " in one]) == links
    assert "4,755" in text
    assert "2.35" in text
    assert f"{evolution.winners[0].ran:,} of {evolution.winners[0].neurons:,}" in text
    for arguments in (["demo", "neat", "--json", "--seeds", "7"], ["demo", "--json", "neat"]):
        assert main(arguments) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["winners"][0]["seed"] == 0
        assert found["median_evaluations"] == evolution.winners[0].evaluations
        assert found["paper"] == {"evaluations": 4755, "hidden": 2.35}
        assert found["history"]["best"] == evolution.history.best
        assert found["history"]["network"].startswith("h") or "y0 = " in found["history"]["network"]
    assert asked == [30, 7, 30]
    monkeypatch.setattr(demo, "evolve", lambda *_: replace(evolution, difference=1e-3))
    assert main(["demo", "neat"]) == 1
    assert "FAILED" in capsys.readouterr().out


@pytest.mark.slow
@needs_neat
def test_each_generation_is_told_and_kept(evolution: demo.Evolution) -> None:
    told: list[str] = []
    again = demo.evolve(1, on_generation=told.append)
    (winner,), history = again.winners, again.history
    assert len(told) == winner.generations == len(history.best) == len(history.species)
    assert told[0].startswith("seed 0, generation 1: best ")
    assert f"{len(history.species[-1])} species" in told[-1]
    assert sum(history.ran) == winner.ran
    assert sum(history.neurons) == winner.neurons
    assert history.best == evolution.history.best
    assert all(sum(one.values()) > 100 for one in history.species)


@needs_neat
def test_a_picture_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, evolution: demo.Evolution
) -> None:
    monkeypatch.setattr(demo, "evolve", lambda *_: evolution)
    assert main(["demo", "neat", "--picture", "a.png"]) == 2
    assert "a picture ends in .svg" in capsys.readouterr().err
    assert main(["demo", "neat", "--picture", "/nowhere/at/all.svg"]) == 1
    assert "No such file" in capsys.readouterr().err


@needs_neat
def test_nothing_solved_is_reported_as_that(evolution: demo.Evolution) -> None:
    failed = replace(evolution, winners=(replace(evolution.winners[0], solved=False),))
    assert "solved: 0 of 1" in demo.evolution_as_text(failed)
    assert json.loads(demo.evolution_as_json(failed))["median_evaluations"] is None


def test_without_neat_python_it_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "neat", None)
    assert main(["demo", "neat", "--seeds", "1"]) == 2
    captured = capsys.readouterr()
    assert 'pip install "reactgrad[neat]"' in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("count", ["0", "-1", "many", "1e3", "99999999"])
def test_bad_counts(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "neat", "--seeds", count]) == 2
    assert "whole number from 1 to 10000" in capsys.readouterr().err
