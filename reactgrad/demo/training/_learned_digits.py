"""``reactgrad demo learn``: a classifier of digits, trained, questioned, and shown."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

import reactgrad as rg

from .._report import as_table
from ._classifier import HIDDEN, Classifier, fit
from ._digits import DIGITS, Digits, halves, small_digits
from ._picture import figure, images_side_by_side
from ._questions import STEPS, Change, ask, rates_from
from ._told import Report

_BATCH: Final = 64
_RATE: Final = 0.005


@dataclass(frozen=True)
class Epoch:
    """The results of one epoch.

    Attributes
    ----------
    loss, test_loss : float
        The mean of its batches, and that of the test images after it.
    accuracy : float
        The share of the test images that are classified correctly after it.
    """

    loss: float
    test_loss: float
    accuracy: float


@dataclass(frozen=True)
class LearnedDigits:
    """A trained classifier of digits, and answers to questions about it.

    Attributes
    ----------
    train, test : Digits
    params, nodes : int
        Numbers that are trained, and nodes of the graph.
    epochs : tuple of Epoch
    predictions : ndarray of int
        For the test images.
    changes : tuple of Change
    influences : ndarray
        For the training images; see ``Classifier``.
    rates : dict
        From a learning rate to the losses of the steps with it.
    seconds : float
    """

    train: Digits
    test: Digits
    params: int
    nodes: int
    epochs: tuple[Epoch, ...]
    predictions: Any
    changes: tuple[Change, ...]
    influences: Any
    rates: dict[float, tuple[float, ...]]
    seconds: float

    @property
    def confusion(self) -> Any:
        """Counts of test images: of each digit (row), taken for each (column)."""
        counts = np.zeros((DIGITS, DIGITS), int)
        np.add.at(counts, (self.test.labels, self.predictions), 1)
        return counts

    @property
    def wrong(self) -> Any:
        """The numbers of the test images that were taken for another digit."""
        return np.flatnonzero(self.predictions != self.test.labels)

    @property
    def holds(self) -> bool:
        """True if every change gave what a fresh graph gives."""
        return all(change.difference == 0.0 for change in self.changes)

    def as_text(self) -> str:
        """Return the report, at most 100 columns wide."""
        layers = " - ".join(map(str, (self.train.side**2, *HIDDEN, DIGITS)))
        shown = [i for i in range(len(self.epochs)) if i == 0 or (i + 1) % 5 == 0]
        if self.epochs and len(self.epochs) - 1 not in shown:
            shown.append(len(self.epochs) - 1)
        epochs = [
            (f"{i + 1}", f"{one.loss:.4f}", f"{one.test_loss:.4f}", f"{100 * one.accuracy:.1f} %")
            for i, one in [(i, self.epochs[i]) for i in shown]
        ]
        changes = [
            (
                one.title,
                f"{one.ran}",
                f"{one.nodes}",
                f"{one.loss:.5f}",
                f"{one.moved}",
                f"{one.difference!r}",
            )
            for one in self.changes
        ]
        rates = [
            (
                f"{rate:g}",
                f"{losses[0]:.4f}",
                f"{losses[len(losses) // 2]:.4f}",
                f"{losses[-1]:.4f}",
            )
            for rate, losses in self.rates.items()
        ]
        doubted = np.argsort(self.influences)[:3]
        names = ", ".join(f"image {i}, a {self.train.labels[i]}" for i in doubted)
        return "\n".join(
            [
                f"digits:  {self.train.source}; {len(self.train):,} to train, {len(self.test):,} to test",
                f"network: {layers}, {self.params:,} params; Adam, learning rate {_RATE}, batches of {_BATCH}",
                "",
                *as_table(("epoch", "loss", "test loss", "test right"), epochs),
                "",
                *as_table(
                    ("change", "ran", "of nodes", "loss", "predictions moved", "difference"),
                    changes,
                ),
                "",
                "Each change is made in a fork; loss, gradients, predictions and influences are read there.",
                "ran: nodes that ran for that; difference: the largest from a graph built from nothing.",
                "",
                *as_table(("learning rate", "loss", f"step {STEPS // 2}", f"step {STEPS}"), rates),
                "",
                "Each rate goes on from the end of the first epoch in a fork; the network did not change.",
                "",
                f"training images that harm the test loss the most: {names}",
                f"{'ok    ' if self.holds else 'FAILED'}  differences must be 0.0",
                f"all of this took {self.seconds:.1f} s",
            ]
        )

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        return json.dumps(
            {
                "source": self.train.source,
                "train": len(self.train),
                "test": len(self.test),
                "params": self.params,
                "nodes": self.nodes,
                "epochs": [asdict(one) for one in self.epochs],
                "confusion": self.confusion.tolist(),
                "wrong": [
                    {"image": i, "label": label, "taken_for": taken}
                    for i, label, taken in zip(
                        self.wrong.tolist(),
                        self.test.labels[self.wrong].tolist(),
                        self.predictions[self.wrong].tolist(),
                        strict=True,
                    )
                ],
                "changes": [asdict(one) for one in self.changes],
                "influences": self.influences.tolist(),
                "rates": {f"{rate:g}": list(losses) for rate, losses in self.rates.items()},
                "holds": self.holds,
                "seconds": self.seconds,
            },
            indent=2,
        )

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture: curves, confusion, wrong and harmful digits, learning rates."""
        drawn = figure(12.0, 7.5)
        upper, lower = drawn.subfigures(2, 1, height_ratios=(1.15, 1.0))
        losses, accuracy, confusion = upper.subplots(1, 3)
        at = range(1, len(self.epochs) + 1)
        losses.plot(at, [one.loss for one in self.epochs], label="training")
        losses.plot(at, [one.test_loss for one in self.epochs], label="test")
        losses.set(title="loss", xlabel="epoch", yscale="log")
        losses.legend()
        accuracy.plot(at, [100 * one.accuracy for one in self.epochs])
        accuracy.set(title="test images that are right, %", xlabel="epoch")
        counts = self.confusion
        confusion.imshow(np.sqrt(counts), cmap="Blues")
        for row, column in zip(*np.nonzero(counts), strict=True):
            right = row == column
            confusion.text(
                column,
                row,
                counts[row, column],
                ha="center",
                va="center",
                color="white" if right else "firebrick",
                fontsize=8,
            )
        confusion.set(title="digit (row) taken for (column)", xticks=range(10), yticks=range(10))
        left, middle, right = lower.subfigures(1, 3)
        left.suptitle(f"wrong: {len(self.wrong)} of {len(self.test)} test images")
        images_side_by_side(
            left,
            [self.test.images[i] for i in self.wrong[:15]],
            [f"{self.test.labels[i]} → {self.predictions[i]}" for i in self.wrong[:15]],
        )
        middle.suptitle("training images that harm the test loss most")
        harmful = np.argsort(self.influences)[:15]
        images_side_by_side(
            middle,
            [self.train.images[i] for i in harmful],
            [f"a {self.train.labels[i]}" for i in harmful],
        )
        rates = right.subplots()
        for rate, followed in self.rates.items():
            rates.plot(followed, label=f"learning rate {rate:g}")
        rates.set(title="what if? two forks, one start", xlabel="step", yscale="log")
        rates.legend()
        drawn.savefig(path)


def learn_digits(epochs: int, seed: int, on_step: Report = lambda doing: None) -> LearnedDigits:
    """Train a classifier of digits, and ask it what single changes do.

    Parameters
    ----------
    epochs : int
    seed : int
        Of the first weights, the batches and the test images.
    on_step : callable, optional
        Called ``epochs + 3`` times, with words for what begins.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    began = time.perf_counter()
    train, test = halves(small_digits("learn"), seed)
    model = Classifier(train, test, seed)
    optimizer = rg.optim.Adam(model.net.named_parameters(), lr=_RATE)
    dataset = rg.data.ArrayDataset(train.images, train.labels)
    loader = rg.data.DataLoader(dataset, batch_size=_BATCH, shuffle=True, rng=seed)
    history: list[Epoch] = []
    start, state = model.graph.fork(), optimizer.state_dict()
    for epoch in range(epochs):
        on_step(f"epoch {epoch + 1}")
        loss = fit(model.net, model.criterion, optimizer, loader)
        right = float((model.predictions.value == test.labels).mean())
        history.append(Epoch(loss, model.test_loss.item(), right))
        if epoch == 0:
            start, state = model.graph.fork(), optimizer.state_dict()
    on_step("single changes")
    changes = ask(model, train, test, seed)
    rates = rates_from(start, model, state, on_step)
    return LearnedDigits(
        train=train,
        test=test,
        params=sum(param.value.size for param in model.params),
        nodes=len(model.graph),
        epochs=tuple(history),
        predictions=model.predictions.value,
        changes=changes,
        influences=model.influences.value,
        rates=rates,
        seconds=time.perf_counter() - began,
    )
