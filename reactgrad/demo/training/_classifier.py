"""A classifier of digits as a live graph: loss, gradients, predictions and influences follow each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg

from ._digits import DIGITS, Digits

HIDDEN: Final = (64, 32)


class Classifier:
    """A network of three layers, and what follows from it for all images.

    Everything below is a live node. A read runs only what a change has made stale.

    Parameters
    ----------
    train, test : Digits
    seed : int
        Of the first weights.
    second : type
        The layer between the second and the third linear one.

    Attributes
    ----------
    graph : Graph
    net : rg.nn.Sequential
    criterion : rg.nn.CrossEntropyLoss
    labels : Var
        The training labels, an input.
    scores : tuple of Var
        Of the training images, and of the test images: the results of the last layer.
    loss, test_loss : Var
        The mean costs.
    gradients : tuple of Var
        Of the loss, for each param.
    predictions : Var
        The digits that the network takes the test images for.
    influences : Var
        For each training image the gradient of its own cost times the gradient of the test loss. One small
        step down the image's gradient moves the test loss by minus the learning rate times this number
        (TracIn; Pruthi, Liu, Kale and Sundararajan, "Estimating Training Data Influence by Tracing Gradient
        Descent", 2020). One pass of forward mode has them all.
    """

    def __init__(
        self, train: Digits, test: Digits, seed: int, second: type[rg.nn.Module] = rg.nn.ReLU
    ) -> None:
        self.graph = g = rg.Graph()
        sizes = (train.side**2, *HIDDEN, DIGITS)
        rng = np.random.default_rng(seed)
        with g:
            self.net = rg.nn.Sequential(
                rg.nn.Linear(sizes[0], sizes[1], rng=rng),
                rg.nn.ReLU(),
                rg.nn.Linear(sizes[1], sizes[2], rng=rng),
                second(),
                rg.nn.Linear(sizes[2], sizes[3], rng=rng),
            )
        self.criterion = rg.nn.CrossEntropyLoss()
        self.params = list(self.net.parameters())
        images = g.input(train.images, name="images")
        # A label that is set to what it was changes nothing.
        self.labels = g.input(train.labels, name="labels")
        self.labels.cutoff = "equal"
        scores = self.net(images)
        costs = rg.cross_entropy(scores, self.labels)
        self.loss = costs.mean()
        self.gradients = rg.grad(self.loss, self.params)
        test_scores = self.net(g.input(test.images, name="test images"))
        self.test_loss = self.criterion(test_scores, g.input(test.labels, name="test labels"))
        self.predictions = rg.argmax(test_scores, axis=1)
        self.scores = scores, test_scores
        direction = rg.grad(self.test_loss, self.params)
        self.influences = rg.jvp(costs, self.params, direction)

    @property
    def outputs(self) -> list[rg.Var]:
        """All that is compared with another graph."""
        return [self.loss, *self.gradients, self.test_loss, self.predictions, self.influences]

    def layer(self, number: int) -> tuple[rg.Var, rg.Var]:
        """Return weight and bias of a linear layer, counted from 0."""
        layer = self.net[2 * number]
        return layer.weight, layer.bias


def fit(
    net: Any, criterion: Any, optimizer: rg.optim.Optimizer, loader: rg.data.DataLoader
) -> float:
    """Train for one epoch, and return the mean loss of its batches."""
    losses: list[float] = []
    for images, labels in loader:
        loss = criterion(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())  # read before the step: afterwards it is the loss of new weights
        optimizer.step()
    return float(np.mean(losses))


def largest_difference(one: Sequence[rg.Var], other: Sequence[rg.Var]) -> float:
    """Return the largest difference of two lists of nodes, element by element."""
    return max(float(np.abs(a.value - b.value).max()) for a, b in zip(one, other, strict=True))
