"""``reactgrad demo ppo``: an actor learns to balance a pole on a cart."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from .._report import as_table
from ._actor_critic import ACTOR_RATE, CRITIC_RATE, ActorCritic
from ._cart_pole import LONGEST, cart_poles
from ._picture import figure
from ._told import Report

CARTS, STEPS = 8, 128
ENOUGH: Final = 150.0  # the mean return of the last episodes that counts as learned
LAST: Final = 20
PATIENCE: Final = 30  # rounds after which it has to be learned


@dataclass(frozen=True)
class Round:
    """Some steps of all carts, and what was learned from them.

    Attributes
    ----------
    episodes : tuple of int
        The returns of the episodes that ended: one for each step that the pole stood.
    actor_loss, critic_loss : float
    """

    episodes: tuple[int, ...]
    actor_loss: float
    critic_loss: float


@dataclass(frozen=True)
class BalancedPole:
    """The rounds of an actor that learned to balance a pole.

    Attributes
    ----------
    source : str
        Where the equations of the cart come from.
    rounds : tuple of Round
    nodes : tuple of int
        The size of the graph after the first round, and at the end.
    seconds : float
    """

    source: str
    rounds: tuple[Round, ...]
    nodes: tuple[int, int]
    seconds: float

    @property
    def returns(self) -> list[int]:
        """The returns of all episodes, in the order in which they ended."""
        return [one for part in self.rounds for one in part.episodes]

    @property
    def means(self) -> list[float]:
        """For each round the mean return of the last episodes that had ended."""
        found: list[float] = []
        ended: list[int] = []
        for one in self.rounds:
            ended += one.episodes
            found.append(float(np.mean(ended[-LAST:])) if ended else 0.0)
        return found

    @property
    def holds(self) -> bool:
        """True if rounds did not grow the graph, and it was learned, or had too few rounds for that."""
        learned = max(self.means) > ENOUGH or len(self.rounds) < PATIENCE
        return learned and self.nodes[0] == self.nodes[1]

    def as_text(self) -> str:
        """Return the report, at most 100 columns wide."""
        means, ended = self.means, np.cumsum([len(one.episodes) for one in self.rounds])
        last = len(self.rounds) - 1
        rows = [
            (
                f"{i + 1}",
                f"{(i + 1) * CARTS * STEPS:,}",
                f"{ended[i]}",
                f"{means[i]:.1f}",
                f"{self.rounds[i].critic_loss:.2f}",
            )
            for i in sorted({0, last // 4, last // 2, 3 * last // 4, last})
        ]
        header = ("round", "steps", "episodes", f"mean return of {LAST}", "loss of critic")
        verdict = "ok    " if self.holds else "FAILED"
        grown = f"{self.nodes[0]} nodes at first, {self.nodes[1]} at last"
        return "\n".join(
            [
                f"cart-pole: {self.source}; {CARTS} carts, an episode has at most {LONGEST} steps",
                f"Adam for actor and for critic, rates {ACTOR_RATE:g} and {CRITIC_RATE:g}",
                "",
                *as_table(header, rows),
                "",
                f"{verdict}  best mean return {max(means):.1f} (more than {ENOUGH:g} by round {PATIENCE}); {grown}",
                f"all of this took {self.seconds:.1f} s",
            ]
        )

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        return json.dumps(
            {
                "source": self.source,
                "rounds": [asdict(one) for one in self.rounds],
                "means": self.means,
                "nodes": self.nodes,
                "holds": self.holds,
                "seconds": self.seconds,
            },
            indent=2,
        )

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture: the return of each episode, and the losses of the rounds."""
        drawn = figure(10.0, 6.5)
        returns, losses = drawn.subplots(2, 1, height_ratios=(2, 1))
        found = self.returns
        returns.plot(range(1, len(found) + 1), found, ".", markersize=4, label="an episode")
        if len(found) >= LAST:
            means = np.convolve(found, np.full(LAST, 1 / LAST), "valid")
            returns.plot(range(LAST, len(found) + 1), means, label=f"mean of {LAST}")
        returns.axhline(ENOUGH, color="0.6", linestyle="--", label=f"{ENOUGH:g}")
        returns.set(title="steps that the pole stood", xlabel="episode", ylim=(0, LONGEST + 10))
        returns.legend()
        at = range(1, len(self.rounds) + 1)
        losses.plot(at, [one.critic_loss for one in self.rounds], color="C2")
        losses.set(title="loss of the critic", xlabel=f"round of {CARTS * STEPS:,} steps")
        drawn.savefig(path)


def balance_pole(rounds: int, seed: int, on_step: Report = lambda doing: None) -> BalancedPole:
    """Train an actor to balance a pole on a cart.

    Parameters
    ----------
    rounds : int
        Of 1,024 steps.
    seed : int
        Of the first weights, the carts and the draws.
    on_step : callable, optional
        Called ``rounds`` times, with words for what begins.
    """
    began = time.perf_counter()
    carts, source = cart_poles(CARTS, seed)
    agent = ActorCritic(seed)
    lengths = np.zeros(CARTS, int)
    found: list[Round] = []
    size = 0
    for number in range(rounds):
        on_step(f"round {number + 1}")
        seen = agent.play(carts, STEPS, lengths)
        found.append(Round(tuple(seen.episodes), *agent.learn(seen, number)))
        size = size or len(agent.graph)
    return BalancedPole(
        source=source,
        rounds=tuple(found),
        nodes=(size, len(agent.graph)),
        seconds=time.perf_counter() - began,
    )
