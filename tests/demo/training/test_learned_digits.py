"""``reactgrad demo learn``: what changes run, what influences say, and what is printed and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import demo
from reactgrad._cli import main
from reactgrad.demo.training._classifier import Classifier, fit
from reactgrad.demo.training._digits import Digits, halves, small_digits
from reactgrad.demo.training._learned_digits import LearnedDigits
from reactgrad.demo.training._questions import ask, rates_from
from tests.demo.training.images import made_up


def made_up_halves() -> tuple[Digits, Digits]:
    return halves(made_up(), 0)


@pytest.fixture(scope="module")
def model() -> Classifier:
    train, test = made_up_halves()
    return Classifier(train, test, 0)


def test_training_does_not_grow_the_graph(model: Classifier) -> None:
    train, _ = made_up_halves()
    optimizer = rg.optim.Adam(model.net.named_parameters(), lr=0.01)
    loader = rg.data.DataLoader(rg.data.ArrayDataset(train.images, train.labels), batch_size=10)
    losses = [fit(model.net, model.criterion, optimizer, loader) for _ in range(2)]
    size = len(model.graph)
    losses += [fit(model.net, model.criterion, optimizer, loader) for _ in range(20)]
    assert len(model.graph) == size
    assert losses[-1] < 0.5 * losses[0]


def test_each_change_runs_only_what_follows_and_gives_what_a_fresh_graph_gives() -> None:
    train, test = made_up_halves()
    model = Classifier(train, test, 0)
    before = [node.value for node in model.outputs]
    changes = ask(model, train, test, 0)
    assert all(change.difference == 0.0 for change in changes)
    label, same, last, first, middle, edit = changes
    assert 0 < edit.ran < edit.nodes
    assert middle.loss != edit.loss != first.loss
    assert same.ran == 0
    assert 0 < label.ran < last.ran < first.ran < first.nodes
    assert label.ran < 0.3 * label.nodes  # no layer runs forward for a label
    assert label.moved == 0
    assert all((node.value == old).all() for node, old in zip(model.outputs, before, strict=True))


def test_a_step_on_one_image_moves_the_test_loss_by_its_influence(model: Classifier) -> None:
    train, _ = made_up_halves()
    rate = 1e-6
    influences = model.influences.value
    for image in (0, 7):
        with model.graph.whatif() as fork:
            scores = model.net(train.images[image : image + 1])
            cost = model.criterion(scores, train.labels[image : image + 1])
            slopes = [slope.value for slope in rg.grad(cost, model.params)]
            before = fork[model.test_loss].item()
            steps = zip(model.params, slopes, strict=True)
            fork.set({fork[param]: param.value - rate * slope for param, slope in steps})
            moved = fork[model.test_loss].item() - before
        assert moved == pytest.approx(-rate * influences[image], rel=1e-3)


def test_two_rates_go_on_from_one_start_and_leave_the_model_alone(model: Classifier) -> None:
    optimizer = rg.optim.Adam(model.net.named_parameters(), lr=0.01)
    optimizer.zero_grad()
    model.loss.backward()
    optimizer.step()
    start, state = model.graph.fork(), optimizer.state_dict()
    before = model.loss.item()
    rates = rates_from(start, model, state)
    slow, fast = rates.values()
    assert slow[0] == fast[0] == before == model.loss.item()
    assert fast[-1] < slow[-1] < slow[0]
    assert rates_from(start, model, state) == rates


@pytest.fixture(scope="module")
def learned() -> LearnedDigits:
    pytest.importorskip("sklearn", reason="scikit-learn: the extra `demo`")
    return demo.learn_digits(2, 0)


def test_real_digits(learned: LearnedDigits) -> None:
    assert (len(learned.train), len(learned.test), learned.params) == (1348, 449, 6570)
    assert learned.holds
    assert learned.epochs[1].accuracy > 0.75
    assert learned.confusion.sum() == 449
    assert len(learned.wrong) == 449 - np.trace(learned.confusion)


def test_the_command_line(
    learned: LearnedDigits,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib: the extra `demo`")
    monkeypatch.chdir(tmp_path)
    asked: list[tuple[int, int]] = []

    def tell(length: int, seed: int, on_step: object) -> LearnedDigits:
        asked.append((length, seed))
        return learned

    monkeypatch.setitem(demo.TRAINING, "learn", demo.TrainingStory(tell, length=20, more=3))
    assert main(["demo", "learn"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert out.endswith("picture: reactgrad-learn.png\n")
    assert (tmp_path / "reactgrad-learn.png").stat().st_size > 10_000
    arguments = ["--epochs", "7", "--seed", "3", "--picture", "a.svg", "--json"]
    assert main(["demo", "learn", *arguments]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert [change["ran"] for change in found["changes"]] == [one.ran for one in learned.changes]
    assert captured.err == "picture: a.svg\n"
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    assert main(["demo", "--seed", "5", "learn"]) == 0
    assert asked == [(20, 0), (7, 3), (20, 5)]


def test_without_scikit_learn_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(rg.MissingExtraError, match=r'demo learn needs .* install "reactgrad\[demo'):
        small_digits("learn")
