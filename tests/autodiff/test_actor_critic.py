"""An actor–critic on a shared trunk: the advantage is detached, the old policy does not follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

STEPS, STATE, HIDDEN, ACTIONS = 12, 4, 6, 3
SHAPES = {"trunk": (STATE, HIDDEN), "actor": (HIDDEN, ACTIONS), "critic": (HIDDEN, 1)}
RATE, CLIP = 0.03, 0.2
ROWS = np.arange(STEPS)


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {name: rng.normal(size=shape) * 0.5 for name, shape in SHAPES.items()}


def rollout(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, actions taken, and discounted returns."""
    rng = np.random.default_rng(100 + number)
    return (
        rng.normal(size=(STEPS, STATE)),
        rng.integers(0, ACTIONS, STEPS),
        rng.normal(size=(STEPS, 1)),
    )


def heads(lib: Any, p: Any, states: Any) -> tuple[Any, Any]:
    """Logarithms of the probabilities of all actions, and the value of each state."""
    features = lib.tanh(states @ p["trunk"])
    logits = features @ p["actor"]
    log_all = logits - lib.log(lib.exp(logits).sum(1).reshape(STEPS, 1))
    return log_all, features @ p["critic"]


class ActorCritic:
    """One graph for all steps; rollouts are set into it."""

    def __init__(self, detached: bool = True) -> None:
        self.g = g = rg.Graph()
        states, actions, returns = rollout(0)
        self.states, self.actions = g.input(states), g.input(actions)
        self.returns = g.input(returns)
        self.p = {name: g.param(value, name=name) for name, value in start().items()}
        log_all, self.value = heads(rg, self.p, self.states)
        self.log_taken = log_all[ROWS, self.actions]
        # The policy of the rollout: set before an update, so that it does not follow the actor.
        self.old = g.input(np.zeros(STEPS))
        advantage = (self.returns - (self.value.detach() if detached else self.value)).reshape(-1)
        ratio = rg.exp(self.log_taken - self.old)
        clipped = ratio.clip(1.0 - CLIP, 1.0 + CLIP)
        self.actor_loss = -rg.minimum(ratio * advantage, clipped * advantage).mean()
        self.critic_loss = ((self.value - self.returns) ** 2).mean()

    def take(self, number: int) -> None:
        states, actions, returns = rollout(number)
        self.g.set({self.states: states, self.actions: actions, self.returns: returns})
        self.old.set(self.log_taken.value)

    def update(self) -> None:
        self.g.set({p: p.value - RATE * p.grad for p in self.p.values()})
        self.g.zero_grad()

    def step(self, number: int) -> list[rg.Run]:
        self.take(number)
        runs = []
        for _ in range(2):  # two updates a rollout: the second ratio is not 1
            runs += [self.actor_loss.backward(), self.critic_loss.backward()]
            self.update()
        return runs

    def with_grad(self) -> set[str]:
        return {name for name, param in self.p.items() if param.grad is not None}


def test_the_actor_does_not_train_the_critic() -> None:
    model = ActorCritic()
    model.take(0)
    model.actor_loss.backward()
    assert model.with_grad() == {"trunk", "actor"}
    model.g.zero_grad()
    model.critic_loss.backward()
    assert model.with_grad() == {"trunk", "critic"}
    attached = ActorCritic(detached=False)
    attached.take(0)
    attached.actor_loss.backward()
    assert attached.with_grad() == {"trunk", "actor", "critic"}


def test_two_backwards_are_the_combined_one() -> None:
    model = ActorCritic()
    model.take(0)
    model.actor_loss.backward()
    model.critic_loss.backward()
    apart = {name: p.grad for name, p in model.p.items()}
    model.g.zero_grad()
    (model.actor_loss + model.critic_loss).backward()
    for name, p in model.p.items():
        np.testing.assert_allclose(p.grad, apart[name], rtol=1e-12, atol=1e-14)


def test_the_second_loss_runs_no_forward_node_of_the_first() -> None:
    model = ActorCritic()
    model.step(0)
    first, second, *_ = model.step(1)
    assert model.value in first.ran
    assert model.value not in second.ran
    assert model.critic_loss in second.ran
    assert model.log_taken not in second.ran
    assert not {node.name for node in first.ran} & {node.name for node in second.ran}


def test_a_step_of_the_critic_alone_leaves_the_policy_clean() -> None:
    model = ActorCritic()
    model.step(0)
    model.g.forward(model.actor_loss, model.critic_loss)
    model.p["critic"].set(model.p["critic"].value * 0.5)
    assert not model.log_taken.is_stale
    assert model.actor_loss.is_stale  # the advantage follows the critic, though detached
    run = model.actor_loss.backward()
    assert model.log_taken not in run.ran
    assert model.value in run.ran
    assert model.with_grad() == {"trunk", "actor"}


@pytest.mark.slow
def test_a_thousand_steps_build_nothing() -> None:
    model = ActorCritic()
    model.step(0)
    model.step(1)
    size, serial = len(model.g), model.g._scheduler.topology.next_serial
    counts = {tuple(len(run.ran) for run in model.step(number)) for number in range(2, 1002)}
    assert (len(model.g), model.g._scheduler.topology.next_serial) == (size, serial)
    assert counts == {(43, 12, 51, 11)}
    assert all(np.isfinite(p.value).all() for p in model.p.values())
    model.g.check_invariants()


def test_it_trains_as_pytorch_does() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    model = ActorCritic()
    p = {name: torch.tensor(v, requires_grad=True) for name, v in start().items()}
    for number in range(20):
        model.step(number)
        states, actions, returns = map(torch.tensor, rollout(number))
        old = heads(torch, p, states)[0][ROWS, actions].detach()
        for _ in range(2):
            log_all, value = heads(torch, p, states)
            advantage = (returns - value.detach()).reshape(-1)
            ratio = torch.exp(log_all[ROWS, actions] - old)
            clipped = ratio.clip(1.0 - CLIP, 1.0 + CLIP)
            actor_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            critic_loss = ((value - returns) ** 2).mean()
            actor_loss.backward(retain_graph=True)
            critic_loss.backward()
            with torch.no_grad():
                for param in p.values():
                    param -= RATE * param.grad
                    param.grad = None
        for name, param in model.p.items():
            np.testing.assert_allclose(
                param.value, p[name].detach().numpy(), rtol=1e-10, atol=1e-10
            )
