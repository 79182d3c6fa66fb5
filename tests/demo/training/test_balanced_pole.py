"""``reactgrad demo ppo``: who learns from what, and that a pole is balanced in the end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reactgrad import demo
from reactgrad._cli import main
from reactgrad.demo.training._actor_critic import ActorCritic, Trajectories
from reactgrad.demo.training._balanced_pole import BalancedPole
from reactgrad.demo.training._cart_pole import Equations


def played(agent: ActorCritic, steps: int = 64) -> Trajectories:
    return agent.play(Equations(8, 0), steps, np.zeros(8, int))


def test_to_play_builds_no_gradient_and_grows_no_graph() -> None:
    agent = ActorCritic(0)
    played(agent, 40)
    size = len(agent.graph)
    seen = played(agent, 40)
    assert len(agent.graph) == size
    assert not any(node.requires_grad for node in agent.graph.nodes if node.parents)
    assert len(seen.states) == 320
    assert sum(seen.episodes) <= 320


def test_log_probs_are_a_snapshot() -> None:
    agent = ActorCritic(0)
    seen = played(agent)
    before = seen.log_probs.copy()
    loss = agent.actor_loss(seen.states, seen.pushes[:, None], seen.log_probs, seen.advantages)
    # As long as the actor is the same, all ratios are 1 and the gain is the mean advantage.
    undecided = -loss.item() - seen.advantages.mean()
    assert 0.0 < undecided < 0.01 * np.log(2) + 1e-12
    agent.learn(seen, 0)
    assert (seen.log_probs == before).all()
    assert loss.item() != pytest.approx(-seen.advantages.mean() - undecided, abs=1e-6)


def test_advantages_are_sums_of_surprises() -> None:
    agent = ActorCritic(0)
    carts = Equations(1, 0)
    carts.states = np.array([[0, 0, 0.2, 0.0]])  # falls in a few steps
    seen = agent.play(carts, 12, np.zeros(1, int))
    end = seen.episodes[0]
    values = agent.foretell(seen.states)
    later = np.append(values[1:end], 0.0)
    surprises = 1.0 + 0.99 * later - values[:end]
    wanted = [
        sum((0.99 * 0.95) ** k * surprise for k, surprise in enumerate(surprises[t:]))
        for t in range(end)
    ]
    assert seen.advantages[:end] == pytest.approx(wanted)
    assert seen.returns == pytest.approx(seen.advantages + values)


def test_the_loss_of_the_critic_does_not_reach_the_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = ActorCritic(0)
    seen = played(agent)
    monkeypatch.setattr(agent.of_actor, "step", lambda: None)
    before = agent.actor.state_dict()
    agent.learn(seen, 0)
    assert all((agent.actor.state_dict()[path] == value).all() for path, value in before.items())


def test_losses_equal_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    agent = ActorCritic(0)
    seen = played(agent)
    old = seen.log_probs + np.random.default_rng(0).normal(size=len(seen.log_probs)) / 5
    loss = agent.actor_loss(seen.states, seen.pushes[:, None], old, seen.advantages)
    loss.backward()
    actor = torch.nn.Sequential(torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 2))
    actor = actor.double()
    actor.load_state_dict({k: torch.tensor(v) for k, v in agent.actor.state_dict().items()})
    policy = torch.distributions.Categorical(logits=actor(torch.tensor(seen.states)))
    ratio = (policy.log_prob(torch.tensor(seen.pushes)) - torch.tensor(old)).exp()
    advantages = torch.tensor(seen.advantages)
    gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
    wanted = -(gain + 0.01 * policy.entropy().mean())
    wanted.backward()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-12)
    for own, theirs in zip(agent.actor.parameters(), actor.parameters(), strict=True):
        assert own.grad == pytest.approx(theirs.grad.numpy(), abs=1e-12)


@pytest.fixture(scope="module")
def balanced() -> BalancedPole:
    return demo.balance_pole(2, 0)


@pytest.mark.slow
def test_the_command_line(
    balanced: BalancedPole,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert max(map(len, balanced.as_text().splitlines())) <= 100
    assert balanced.holds  # two rounds are not enough to learn it
    assert balanced.nodes[0] == balanced.nodes[1]
    clumsy = replace(balanced, rounds=balanced.rounds * 15)
    assert not clumsy.holds
    assert "FAILED  best mean return" in clumsy.as_text()
    pytest.importorskip("matplotlib", reason="matplotlib: the extra `demo`")
    monkeypatch.setitem(
        demo.TRAINING, "ppo", demo.TrainingStory(lambda *_: clumsy, length=2, more=0)
    )
    picture = tmp_path / "a.png"
    assert main(["demo", "ppo", "--json", "--picture", str(picture)]) == 1
    captured = capsys.readouterr()
    assert sum(map(len, (one["episodes"] for one in json.loads(captured.out)["rounds"]))) > 20
    assert captured.err.endswith("reactgrad demo ppo: error: a check failed; please report it\n")
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_pole_is_balanced(seed: int) -> None:
    found = demo.balance_pole(30, seed)
    assert found.holds
    assert max(found.means) > 150
