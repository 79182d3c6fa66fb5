"""The weights of losses are part of a state dict, under PyTorch's keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

SCORES = np.array([[1.0, -2.0, 0.5], [0.3, 0.2, -1.0]])
CLASSES = np.array([2, 0])

KEYS: dict[str, tuple[str, ...]] = {
    "CrossEntropyLoss": ("weight",),
    "NLLLoss": ("weight",),
    "MultiMarginLoss": ("weight",),
    "MultiLabelSoftMarginLoss": ("weight",),
    "BCELoss": ("weight",),
    "BCEWithLogitsLoss": ("weight", "pos_weight"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_and_values_are_those_of_the_weights(name: str) -> None:
    assert list(getattr(nn, name)().state_dict()) == []
    weights = {key: [1, 2, 4] for key in KEYS[name]}  # integers become floats
    loss = getattr(nn, name)(**weights)
    state = loss.state_dict()
    assert {key: array.tolist() for key, array in state.items()} == weights
    assert not np.shares_memory(state["weight"], loss.weight)
    other = getattr(nn, name)(**{key: np.ones(3, "f4") for key in weights})
    assert other.load_state_dict(state) == ([], [])
    assert {key: array.tolist() for key, array in other.state_dict().items()} == weights
    assert other.weight.dtype == np.float32


class Net(nn.Module):
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3, rng=0)
        self.criterion = nn.CrossEntropyLoss(weight=weight)

    def forward(self, x: Any, y: Any) -> Any:
        return self.criterion(self.layer(x), y)


def test_a_loaded_weight_counts_from_the_next_call_on(tmp_path: Path) -> None:
    with rg.Graph():
        net, other = Net([1.0, 1.0, 1.0]), Net([1.0, 5.0, 2.0])
    assert list(other.state_dict()) == ["layer.weight", "layer.bias", "criterion.weight"]
    first = net(SCORES, CLASSES)
    wanted = other(SCORES, CLASSES).value
    assert first.value != wanted
    rg.save_checkpoint(tmp_path / "net.safetensors", model=other)
    rg.load_checkpoint(tmp_path / "net.safetensors", model=net)
    assert net(SCORES, CLASSES).value == wanted


@pytest.mark.parametrize(
    ("weight", "text"),
    [
        ([1.0, 2.0], r"wrong shape: criterion.weight is \(2,\), not \(3,\)"),
        (None, "missing: criterion.weight"),
        (["a", "b", "c"], "wrong dtype: criterion.weight"),
    ],
)
def test_a_state_that_does_not_fit_loads_nothing(weight: Any, text: str) -> None:
    with rg.Graph():
        net = Net([1.0, 2.0, 3.0])
    before = net.state_dict()
    state = {path: array + 1.0 for path, array in before.items()}
    state["criterion.weight"] = weight
    if weight is None:
        del state["criterion.weight"]
    with pytest.raises(rg.LoadError, match=text):
        net.load_state_dict(state)
    for path, array in net.state_dict().items():
        np.testing.assert_array_equal(array, before[path])


def test_a_var_as_weight_stays_live() -> None:
    g = rg.Graph()
    weight = g.input([1.0, 1.0, 1.0])
    loss = nn.CrossEntropyLoss(weight=weight)(g.input(SCORES), CLASSES)
    before = loss.value
    weight.set([1.0, 1.0, 7.0])
    assert loss.value != before
