"""``reactgrad demo multitask``: its steps equal PyTorch's, and a frozen trunk runs once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import demo
from reactgrad._cli import main
from reactgrad.demo.training._digits import halves
from reactgrad.demo.training._shared_trunk import SharedTrunk
from reactgrad.demo.training._tasks import OnTop, TwoTasks, ink_centres, trunk_file
from tests.demo.training.images import made_up

# The loss of both tasks at the steps 1, 5, 10 and 20, computed with torch 2.13.
OF_TORCH = (2.471375593718335, 2.4272754410656763, 2.4092994150885056, 2.3120369096466162)


def batches() -> list[tuple[Any, Any, Any]]:
    digits = made_up()
    centres = ink_centres(digits)
    order = np.random.default_rng(1).permutation(400).reshape(20, 20) % 40
    return [(digits.images[i], digits.labels[i], centres[i]) for i in order]


def test_losses_of_20_steps_are_those_computed_with_pytorch() -> None:
    tasks = TwoTasks(4, 10, 0)
    sums = [sum(tasks.step(*batch)) for batch in batches()]
    assert [sums[i] for i in (0, 4, 9, 19)] == pytest.approx(OF_TORCH, rel=1e-10)


def test_params_after_20_steps_equal_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    tasks = TwoTasks(4, 10, 0)
    nn = torch.nn
    trunk = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
    modules = nn.ModuleList([trunk, nn.Linear(16, 10), nn.Linear(16, 2)]).double()
    own = (tasks.trunk, tasks.digit, tasks.centre)
    for module, one in zip(modules, own, strict=True):
        state = {path: torch.tensor(value) for path, value in one.state_dict().items()}
        module.load_state_dict(state)
    trunk, digit, centre = modules
    optimizer = torch.optim.Adam(
        [*trunk.parameters(), *digit.parameters(), *centre.parameters()], lr=3e-3
    )
    for images, labels, centres in batches():
        features = trunk(torch.tensor(images))
        first = nn.functional.cross_entropy(digit(features), torch.tensor(labels))
        second = nn.functional.mse_loss(centre(features), torch.tensor(centres))
        optimizer.zero_grad()
        (first + second).backward()
        optimizer.step()
        found = tasks.step(images, labels, centres)
        assert found == pytest.approx((first.item(), second.item()), rel=1e-10)
    for module, one in zip(modules, own, strict=True):
        for path, value in module.state_dict().items():
            assert one.state_dict()[path] == pytest.approx(value.numpy(), abs=1e-8)


def test_steps_do_not_grow_the_graph() -> None:
    tasks = TwoTasks(4, 10, 0)
    sizes = []
    for batch in batches():
        tasks.step(*batch)
        sizes.append(len(tasks.graph))
    assert set(sizes[4:]) == {sizes[-1]}


def test_a_frozen_trunk_runs_once() -> None:
    pytest.importorskip("onnx", reason="onnx: the extra `demo`")
    tasks = TwoTasks(4, 10, 0)
    on_top = OnTop(trunk_file(tasks.trunk), *halves(made_up(), 0), 10, 6, 0)
    frozen = {param: param.value for param in on_top.graph.params if param.frozen}
    assert len(frozen) == 4
    losses, counts = [], []
    for _ in range(4):
        losses.append(on_top.epoch()[0])
        counts.append(on_top.trunk_ran)
    assert counts == [on_top.trunk_nodes, 0, 0, 0]
    assert losses[-1] < losses[0]
    assert all((param.value == value).all() for param, value in frozen.items())
    train, test = halves(made_up(), 0)
    wanted = tasks.trunk(np.concatenate([train.images, test.images])).value
    assert on_top.features.value == pytest.approx(wanted, abs=1e-12)


def test_centres_of_ink() -> None:
    digits = made_up(2)
    images = np.zeros((2, 16))
    images[0, 0] = images[1, [3, 15]] = 1.0  # the first corner; both corners at the right
    assert ink_centres(type(digits)(images, digits.labels, 4, "")).tolist() == [[-1, -1], [0, 1]]


@pytest.fixture(scope="module")
def shared() -> SharedTrunk:
    pytest.importorskip("sklearn", reason="scikit-learn: the extra `demo`")
    pytest.importorskip("onnx", reason="onnx: the extra `demo`")
    return demo.share_trunk(3, 0)


def test_the_command_line(
    shared: SharedTrunk,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib: the extra `demo`")
    assert shared.holds
    story = demo.TrainingStory(lambda *_: shared, length=3, more=2)
    monkeypatch.setitem(demo.TRAINING, "multitask", story)
    picture = str(tmp_path / "a.png")
    assert main(["demo", "multitask", "--picture", picture]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 100
    assert out.splitlines()[-1] == f"picture: {picture}"
    assert main(["demo", "multitask", "--json", "--picture", picture]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["trunk_ran"] for one in found["learned"]] == [shared.trunk_nodes, 0, 0]


def test_without_onnx_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(rg.MissingExtraError, match=r'multitask needs onnx.*"reactgrad\[demo\]"'):
        trunk_file(TwoTasks(4, 10, 0).trunk)
