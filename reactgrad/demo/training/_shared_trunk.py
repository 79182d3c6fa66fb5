"""``reactgrad demo multitask``: two tasks share a trunk, and a third one goes on with it, frozen."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

import reactgrad as rg

from .._report import as_table
from ._digits import Digits, halves, small_digits
from ._picture import figure
from ._tasks import FEATURES, OnTop, TwoTasks, ink_centres, trunk_file
from ._told import Report

_KNOWN: Final = 7  # the trunk learns from the digits 0 to 6
_BATCH: Final = 32
# Few images, so that it shows what features are worth.
_NEW, _NEW_BATCH = 60, 15


@dataclass(frozen=True)
class TogetherEpoch:
    """The results of one epoch of both tasks.

    Attributes
    ----------
    digit_loss, centre_loss : float
        The means of its batches.
    """

    digit_loss: float
    centre_loss: float


@dataclass(frozen=True)
class OnTopEpoch:
    """The results of one epoch on top of the frozen trunk.

    Attributes
    ----------
    loss : float
        The mean of its batches.
    accuracy : float
        The share of test images that are classified correctly after it.
    trunk_ran, ran : int
        Nodes of the trunk that ran, and all nodes that ran.
    """

    loss: float
    accuracy: float
    trunk_ran: int
    ran: int


@dataclass(frozen=True)
class SharedTrunk:
    """Two tasks, and what a third one made of their trunk.

    Attributes
    ----------
    source : str
        Where the digits come from.
    batches : int
        Those of an epoch on top of the trunk.
    trunk_nodes : int
        The nodes that compute the features.
    together : tuple of TogetherEpoch
    accuracy : float
        The share of test images of the digits 0 to 6 that are classified correctly.
    miss : float
        The median distance from the true centre of ink, in pixels.
    centres : ndarray, shape (n, 2, 2)
        True and found centres of the test images, row and column from -1 to 1.
    learned, untrained : tuple of OnTopEpoch
        On top of the learned trunk; on top of one with random weights.
    seconds : float
    """

    source: str
    batches: int
    trunk_nodes: int
    together: tuple[TogetherEpoch, ...]
    accuracy: float
    miss: float
    centres: Any
    learned: tuple[OnTopEpoch, ...]
    untrained: tuple[OnTopEpoch, ...]
    seconds: float

    @property
    def holds(self) -> bool:
        """True if the frozen trunk ran in the first epoch only, and each of its nodes once."""
        counts = [one.trunk_ran for one in self.learned]
        return counts == [self.trunk_nodes, *[0] * (len(counts) - 1)]

    def as_text(self) -> str:
        """Return the report, at most 100 columns wide."""
        shown = sorted({0, 1, len(self.together) // 2, len(self.together) - 1})
        shown = [i for i in shown if i < len(self.together)]
        together = [
            (f"{i + 1}", f"{one.digit_loss:.4f}", f"{one.centre_loss:.5f}")
            for i, one in [(i, self.together[i]) for i in shown]
        ]
        rows = [
            (
                f"{i + 1}",
                f"{self.learned[i].loss:.4f}",
                f"{100 * self.learned[i].accuracy:.1f} %",
                f"{100 * self.untrained[i].accuracy:.1f} %",
                f"{self.learned[i].trunk_ran}",
                f"{self.learned[i].ran:,}",
                f"{self.batches * self.trunk_nodes}",
            )
            for i in shown
        ]
        header = (
            "epoch",
            "loss",
            "test right",
            "untrained trunk",
            "trunk ran",
            "all ran",
            "if each batch ran it",
        )
        verdict = "ok    " if self.holds else "FAILED"
        return "\n".join(
            [
                f"digits: {self.source}",
                "",
                "the digits 0 to 6: which one is it, and where is the centre of its ink?",
                *as_table(("epoch", "loss of digits", "loss of centres"), together),
                f"test: {100 * self.accuracy:.1f} % right, centres {self.miss:.2f} pixels off (median)",
                "",
                f"the digits 7 to 9, {_NEW} images: a new layer on the {FEATURES} features of that trunk, frozen",
                *as_table(header, rows),
                "",
                f"{verdict}  the features of all images are computed once, and never again",
                f"all of this took {self.seconds:.1f} s",
            ]
        )

    def as_json(self) -> str:
        """Return the report as one JSON document."""
        return json.dumps(
            {
                "source": self.source,
                "batches": self.batches,
                "trunk_nodes": self.trunk_nodes,
                "together": [asdict(one) for one in self.together],
                "accuracy": self.accuracy,
                "miss": self.miss,
                "learned": [asdict(one) for one in self.learned],
                "untrained": [asdict(one) for one in self.untrained],
                "holds": self.holds,
                "seconds": self.seconds,
            },
            indent=2,
        )

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture: losses, centres, accuracy on the frozen trunk, and what ran."""
        drawn = figure(12.0, 7.5)
        (losses, centres), (accuracy, counts) = drawn.subplots(2, 2)
        at = range(1, len(self.together) + 1)
        losses.plot(at, [one.digit_loss for one in self.together], label="which digit")
        losses.plot(at, [one.centre_loss for one in self.together], label="centre of ink")
        losses.set(title="two losses, one optimiser", xlabel="epoch", yscale="log")
        losses.legend()
        for (row, column), (found_row, found_column) in self.centres:
            centres.plot([column, found_column], [row, found_row], color="0.8", linewidth=0.8)
        centres.plot(*self.centres[:, 0, ::-1].T, "o", markersize=3, label="true")
        centres.plot(*self.centres[:, 1, ::-1].T, ".", markersize=3, label="found")
        centres.set(title="centres of ink, test images")
        centres.invert_yaxis()
        centres.legend()
        for name, epochs in (("learned trunk", self.learned), ("random trunk", self.untrained)):
            accuracy.plot(at, [100 * one.accuracy for one in epochs], label=name)
        accuracy.set(title="new digits on a frozen trunk: test images right, %", xlabel="epoch")
        accuracy.legend()
        each = self.batches * self.trunk_nodes
        counts.plot(at, [each * i for i in at], "--", label="if each batch ran it")
        counts.plot(at, np.cumsum([one.trunk_ran for one in self.learned]), label="here")
        counts.set(title="nodes of the frozen trunk that ran so far", xlabel="epoch")
        counts.legend()
        drawn.savefig(path)


def share_trunk(epochs: int, seed: int, on_step: Report = lambda doing: None) -> SharedTrunk:
    """Train two tasks with a common trunk, and a third one on top of it.

    Parameters
    ----------
    epochs : int
        Of both trainings.
    seed : int
        Of the first weights, the batches and the test images.
    on_step : callable, optional
        Called ``epochs + 2`` times, with words for what begins.

    Raises
    ------
    MissingExtraError
        If scikit-learn or onnx is not installed.
    """
    began = time.perf_counter()
    digits = small_digits("multitask")
    train, test = halves(digits.take(digits.labels < _KNOWN), seed)
    tasks = TwoTasks(digits.side, _KNOWN, seed)
    random = trunk_file(tasks.trunk)
    dataset = rg.data.ArrayDataset(train.images, train.labels, ink_centres(train))
    loader = rg.data.DataLoader(dataset, _BATCH, shuffle=True, rng=seed)
    together: list[TogetherEpoch] = []
    for epoch in range(epochs):
        on_step(f"two tasks, epoch {epoch + 1}")
        losses = np.mean([tasks.step(*batch) for batch in loader], axis=0)
        together.append(TogetherEpoch(*losses.tolist()))
    with rg.no_grad():
        features = tasks.trunk(test.images)
        right = tasks.digit(features).value.argmax(axis=1) == test.labels
        centres = np.stack([ink_centres(test), tasks.centre(features).value], axis=1)
    off = np.hypot(*(centres[:, 0] - centres[:, 1]).T) * (digits.side - 1) / 2
    new = digits.take(digits.labels >= _KNOWN)
    new = Digits(new.images, new.labels - _KNOWN, new.side, new.source)
    order = np.random.default_rng(seed).permutation(len(new))
    new_train, new_test = new.take(order[:_NEW]), new.take(order[_NEW:])
    found: list[tuple[OnTopEpoch, ...]] = []
    batches = _NEW // _NEW_BATCH
    nodes = 0
    for file, name in ((trunk_file(tasks.trunk), "learned"), (random, "random")):
        on_step(f"on top of the {name} trunk")
        on_top = OnTop(file, new_train, new_test, 10 - _KNOWN, _NEW_BATCH, seed)
        nodes = on_top.trunk_nodes
        found.append(
            tuple(OnTopEpoch(*on_top.epoch(), on_top.trunk_ran, on_top.ran) for _ in range(epochs))
        )
    return SharedTrunk(
        source=digits.source,
        batches=batches,
        trunk_nodes=nodes,
        together=tuple(together),
        accuracy=float(right.mean()),
        miss=float(np.median(off)),
        centres=centres,
        learned=found[0],
        untrained=found[1],
        seconds=time.perf_counter() - began,
    )
