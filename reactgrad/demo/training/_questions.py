"""Questions to a trained classifier: what one changed label, weight or layer does, and what it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import reactgrad as rg

from ._classifier import Classifier, largest_difference
from ._digits import Digits

RATES: Final = (0.003, 0.03)
STEPS: Final = 40


@dataclass(frozen=True)
class Change:
    """One change, and what followed from it.

    Attributes
    ----------
    title : str
    ran, nodes : int
        Nodes that ran, and nodes that would run if all were computed anew.
    loss : float
        The loss after the change.
    moved : int
        Test images that the network takes for another digit than before.
    difference : float
        The largest from a fresh graph: over losses, gradients, predictions and influences.
    """

    title: str
    ran: int
    nodes: int
    loss: float
    moved: int
    difference: float


def ask(model: Classifier, train: Digits, test: Digits, seed: int) -> tuple[Change, ...]:
    """Make single changes to a trained classifier, and take each of them back.

    Returns
    -------
    tuple of Change
    """
    graph = model.graph
    fresh = _fresh(model, train, test, seed)
    nodes = len(fresh.graph.forward(*fresh.outputs).ran)
    graph.forward(*model.outputs)
    before = model.predictions.value
    labels = model.labels.value
    doubted = int(model.influences.value.argmin())
    wrong = labels.copy()
    wrong[doubted] = (labels[doubted] + 1) % 10
    first, last = model.layer(0)[0], model.layer(2)[0]
    start = Classifier(train, test, seed)  # has the first weights again
    middle = {now: then.value for now, then in zip(model.layer(1), start.layer(1))}
    changes: list[tuple[str, dict[rg.Var, Any]]] = [
        ("a training label", {model.labels: wrong}),
        ("the same labels again", {model.labels: labels.copy()}),
        ("a weight of the last layer", {last: _nudged(last.value)}),
        ("a weight of the first layer", {first: _nudged(first.value)}),
        ("the middle layer as it was at first", middle),
    ]
    found: list[Change] = []
    for title, sets in changes:
        back = {var: var.value for var in sets}
        graph.set(sets)
        run = graph.forward(*model.outputs)
        fresh = _fresh(model, train, test, seed)
        found.append(
            Change(
                title,
                len(run.ran),
                nodes,
                model.loss.item(),
                int((model.predictions.value != before).sum()),
                largest_difference(model.outputs, fresh.outputs),
            )
        )
        graph.set(back)
        graph.forward(*model.outputs)
    return tuple(found)


def _nudged(values: Any) -> Any:
    """Return the values with the largest one doubled."""
    values = values.copy()
    values.flat[np.abs(values).argmax()] *= 2.0
    return values


def _fresh(model: Classifier, train: Digits, test: Digits, seed: int) -> Classifier:
    """Return a classifier that is built and computed from nothing, with the same inputs and params."""
    fresh = Classifier(train, test, seed)
    fresh.net.load_state_dict(model.net.state_dict())
    fresh.labels.set(model.labels.value)
    return fresh


def rates_from(
    start: rg.Graph,
    model: Classifier,
    state: Any,
    on_step: Callable[[str], None] = lambda doing: None,
) -> dict[float, tuple[float, ...]]:
    """Go on from one state with different learning rates, each in a fork.

    Parameters
    ----------
    start : Graph
        The fork of the model's graph to begin with; it does not change.
    model : Classifier
    state : dict
        The state of the optimiser at that time.

    Returns
    -------
    dict
        For each of `RATES` the losses of ``STEPS`` steps with all images.
    """
    found: dict[float, tuple[float, ...]] = {}
    for rate in RATES:
        on_step(f"what if the learning rate were {rate:g}")
        fork = start.fork()
        named = [(path, fork[param]) for path, param in model.net.named_parameters()]
        optimizer = rg.optim.Adam(named)
        optimizer.load_state_dict(state)
        optimizer.param_groups[0]["lr"] = rate
        loss = fork[model.loss]
        losses: list[float] = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
        found[rate] = tuple(losses)
    return found
