"""Proximal policy optimisation: an actor that chooses, and a critic that foretells returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import reactgrad as rg

from ._cart_pole import CartPoles

HIDDEN: Final = 64
ACTOR_RATE: Final = 1e-3
CRITIC_RATE: Final = 2e-3
CLIP: Final = 0.2
_DISCOUNT, _SMOOTHING = 0.99, 0.95
_ENTROPY: Final = 0.01  # how much the actor gains from being undecided
_EPOCHS, _BATCH = 6, 256


@dataclass(frozen=True)
class Trajectories:
    """The steps of some carts, one after the other.

    Attributes
    ----------
    states : ndarray, shape (n, 4)
    pushes : ndarray of int, shape (n,)
    log_probs : ndarray, shape (n,)
        Those of the pushes when they were chosen.
    advantages, returns : ndarray, shape (n,)
        By how much a push was better than foretold, and what it led to.
    episodes : list of int
        The lengths of the episodes that ended.
    """

    states: Any
    pushes: Any
    log_probs: Any
    advantages: Any
    returns: Any
    episodes: list[int]


class ActorLoss(rg.nn.Module):
    """The clipped loss of an actor. One module, so its nodes and gradients are built once."""

    def __init__(self, actor: rg.nn.Module) -> None:
        self.actor = actor

    def forward(self, states: Any, pushes: Any, log_probs: Any, advantages: Any) -> Any:
        """Return the loss; `log_probs` are those of the actor that has chosen the pushes."""
        now = rg.log_softmax(self.actor(states))
        ratio = rg.exp(rg.take_along_axis(now, pushes, axis=1)[:, 0] - log_probs)
        clipped = rg.clip(ratio, 1.0 - CLIP, 1.0 + CLIP)
        gain = rg.minimum(ratio * advantages, clipped * advantages).mean()
        undecided = -(rg.exp(now) * now).sum(axis=1).mean()
        return -(gain + _ENTROPY * undecided)


class CriticLoss(rg.nn.Module):
    """The squared error of a critic."""

    def __init__(self, critic: rg.nn.Module) -> None:
        self.critic, self.criterion = critic, rg.nn.MSELoss()

    def forward(self, states: Any, returns: Any) -> Any:
        """Return the cost."""
        return self.criterion(self.critic(states)[:, 0], returns)


class ActorCritic:
    """An actor and a critic, with an optimiser each.

    The loss of the actor is that of Schulman, Wolski, Dhariwal, Radford and Klimov, "Proximal Policy
    Optimization Algorithms" (2017), with their clipping; advantages are those of Schulman and others,
    "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016).

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._rng = rng = np.random.default_rng(seed)
        with rg.Graph() as self.graph:
            self.actor = rg.nn.Sequential(
                rg.nn.Linear(4, HIDDEN, rng=rng), rg.nn.Tanh(), rg.nn.Linear(HIDDEN, 2, rng=rng)
            )
            self.critic = rg.nn.Sequential(
                rg.nn.Linear(4, HIDDEN, rng=rng), rg.nn.Tanh(), rg.nn.Linear(HIDDEN, 1, rng=rng)
            )
        self.of_actor = rg.optim.Adam(self.actor.parameters(), lr=ACTOR_RATE)
        self.of_critic = rg.optim.Adam(self.critic.parameters(), lr=CRITIC_RATE)
        self.actor_loss, self.critic_loss = ActorLoss(self.actor), CriticLoss(self.critic)

    def choose(self, states: Any) -> tuple[Any, Any]:
        """Draw a push for each state; return the pushes and their log probabilities.

        The arrays are snapshots: they stay as they are when the actor learns.
        """
        with rg.no_grad():
            scores = self.actor(states).value
        log_probs = scores - np.logaddexp(scores[:, :1], scores[:, 1:])
        pushes = (self._rng.random(len(states)) < np.exp(log_probs[:, 1])).astype(int)
        return pushes, log_probs[np.arange(len(states)), pushes]

    def foretell(self, states: Any) -> Any:
        """Return what the critic foretells of each state."""
        with rg.no_grad():
            return self.critic(states).value[:, 0]

    def play(self, carts: CartPoles, steps: int, lengths: Any) -> Trajectories:
        """Push the carts, and keep what came of it.

        Parameters
        ----------
        carts : CartPoles
        steps : int
        lengths : ndarray of int
            The steps of the episodes under way, which are counted on.
        """
        count = len(carts.states)
        states, after = np.empty((2, steps, count, 4))
        pushes, log_probs = np.empty((steps, count), int), np.empty((steps, count))
        fallen, ended = np.empty((2, steps, count), bool)
        episodes: list[int] = []
        for t in range(steps):
            states[t] = carts.states
            pushes[t], log_probs[t] = self.choose(carts.states)
            fallen[t], timed_out = carts.step(pushes[t])
            after[t] = carts.states
            ended[t] = fallen[t] | timed_out
            lengths += 1
            if ended[t].any():
                episodes += lengths[ended[t]].tolist()
                lengths[ended[t]] = 0
                carts.restart(ended[t])
        values = self.foretell(states.reshape(-1, 4)).reshape(steps, count)
        # A pole that stands is worth what follows; one that fell is worth nothing more.
        later = np.where(fallen, 0.0, self.foretell(after.reshape(-1, 4)).reshape(steps, count))
        advantages, advantage = np.empty((steps, count)), np.zeros(count)
        for t in reversed(range(steps)):
            surprise = 1.0 + _DISCOUNT * later[t] - values[t]
            advantage = surprise + _DISCOUNT * _SMOOTHING * np.where(ended[t], 0.0, advantage)
            advantages[t] = advantage
        return Trajectories(
            states=states.reshape(-1, 4),
            pushes=pushes.ravel(),
            log_probs=log_probs.ravel(),
            advantages=advantages.ravel(),
            returns=(advantages + values).ravel(),
            episodes=episodes,
        )

    def learn(self, seen: Trajectories, seed: int) -> tuple[float, float]:
        """Train both with some epochs over trajectories; return their mean losses."""
        spread = (seen.advantages - seen.advantages.mean()) / (seen.advantages.std() + 1e-8)
        dataset = rg.data.ArrayDataset(
            seen.states, seen.pushes[:, None], seen.log_probs, spread, seen.returns
        )
        loader = rg.data.DataLoader(dataset, _BATCH, shuffle=True, rng=seed, drop_last=True)
        losses: list[tuple[float, float]] = []
        for _ in range(_EPOCHS):
            for states, pushes, log_probs, advantages, returns in loader:
                actor_loss = self.actor_loss(states, pushes, log_probs, advantages)
                self.of_actor.zero_grad()
                actor_loss.backward()
                critic_loss = self.critic_loss(states, returns)
                self.of_critic.zero_grad()
                critic_loss.backward()
                losses.append((actor_loss.item(), critic_loss.item()))
                self.of_actor.step()
                self.of_critic.step()
        of_actor, of_critic = np.mean(losses, axis=0)
        return float(of_actor), float(of_critic)
