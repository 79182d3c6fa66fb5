"""``reactgrad demo neat-data``: what it counts and prints, and what it says without its extras."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from reactgrad import demo
from reactgrad._cli import main


@pytest.fixture(scope="module")
def learning() -> demo.Learning:
    pytest.importorskip("neat", reason="neat-python: the extra `neat`")
    pytest.importorskip("sklearn", reason="scikit-learn: the extra `data`")
    return demo.learn("wine", 1)


def test_each_way_does_what_it_is_called(learning: demo.Learning) -> None:
    assert (learning.samples, learning.features, learning.classes) == (178, 13, 3)
    evolution, gradient, both = learning.results
    assert [one.way for one in learning.results] == list(demo.WAYS)
    assert (evolution.evaluations, evolution.steps) == (1000, 0)
    assert (gradient.evaluations, gradient.steps, gradient.neurons) == (0, 200, 0)
    assert (both.evaluations, both.steps) == (1000, 400)
    for one in (evolution, both):
        assert 0 < one.ran < one.neurons
    # A network that always says the most frequent class is right in 40 % of the samples.
    assert all(one.train > 0.7 and one.test > 0.7 for one in learning.results)
    assert gradient.connections == 39


def test_the_command_line(
    learning: demo.Learning, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def learn(data: str, seeds: int, on_step: Any) -> demo.Learning:
        asked.append((data, seeds))
        return learning

    monkeypatch.setattr(demo, "learn", learn)
    assert main(["demo", "neat-data"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert f"{learning.results[0].ran:,} of {learning.results[0].neurons:,}" in text
    arguments = ["demo", "neat-data", "--data", "breast-cancer", "--seeds", "2", "--json"]
    assert main(arguments) == 0
    assert [one["way"] for one in json.loads(capsys.readouterr().out)["results"]] == list(demo.WAYS)
    assert asked == [("wine", 3), ("breast-cancer", 2)]


@pytest.mark.parametrize("absent", ["neat", "sklearn"])
def test_without_what_it_needs_it_names_the_extra(
    absent: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if absent == "sklearn":
        pytest.importorskip("neat", reason="neat-python: the extra `neat`")
    monkeypatch.setitem(sys.modules, absent, None)
    assert main(["demo", "neat-data", "--seeds", "1"]) == 2
    assert 'pip install "reactgrad[neat' in capsys.readouterr().err
