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
    """Make single changes to a trained classifier, each in a fork; the classifier stays as it is."""
    labels = model.labels.value
    doubted = int(model.influences.value.argmin())
    wrong = labels.copy()
    wrong[doubted] = (labels[doubted] + 1) % 10
    first, last = model.layer(0)[0], model.layer(2)[0]
    start = Classifier(train, test, seed)  # has the first weights again
    middle = {now: then.value for now, then in zip(model.layer(1), start.layer(1))}

    def sets(values: dict[rg.Var, Any]) -> Callable[[rg.Graph], None]:
        return lambda fork: fork.set({fork[var]: value for var, value in values.items()})

    changes: list[tuple[str, Callable[[rg.Graph], None], type[rg.nn.Module]]] = [
        ("a training label", sets({model.labels: wrong}), rg.nn.ReLU),
        ("the same labels again", sets({model.labels: labels.copy()}), rg.nn.ReLU),
        ("a weight of the last layer", sets({last: _nudged(last.value)}), rg.nn.ReLU),
        ("a weight of the first layer", sets({first: _nudged(first.value)}), rg.nn.ReLU),
        ("the middle layer as it was at first", sets(middle), rg.nn.ReLU),
        ("tanh in place of the second ReLU", lambda fork: _edit(fork, model), rg.nn.Tanh),
    ]
    model.graph.forward(*model.outputs)
    before = model.predictions.value
    found: list[Change] = []
    for title, change, second in changes:
        fork = model.graph.fork()
        change(fork)
        outputs = [fork[node] for node in model.outputs]
        run = fork.forward(*outputs)
        fresh = _fresh(model, fork, train, test, seed, second)
        nodes = len(fresh.graph.forward(*fresh.outputs).ran)
        found.append(
            Change(
                title,
                len(run.ran),
                nodes,
                fork[model.loss].item(),
                int((fork[model.predictions].value != before).sum()),
                largest_difference(outputs, fresh.outputs),
            )
        )
    return tuple(found)


def _edit(graph: rg.Graph, model: Classifier) -> None:
    """Put another function in the place of the second ReLU, for the training and the test images."""
    with graph.edit():
        for scores in model.scores:
            hidden = scores.parents[0]
            graph[scores].replace_parent(0, rg.tanh(graph[hidden.parents[0]]))


def _nudged(values: Any) -> Any:
    """Return the values with the largest one doubled."""
    values = values.copy()
    values.flat[np.abs(values).argmax()] *= 2.0
    return values


def _fresh(
    model: Classifier,
    graph: rg.Graph,
    train: Digits,
    test: Digits,
    seed: int,
    second: type[rg.nn.Module],
) -> Classifier:
    """Return a classifier that is built from nothing, with the labels and params of a fork."""
    fresh = Classifier(train, test, seed, second)
    fresh.labels.set(graph[model.labels].value)
    params = zip(fresh.params, model.params, strict=True)
    fresh.graph.set({new: graph[old].value for new, old in params})
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
