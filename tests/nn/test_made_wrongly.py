"""What layers and containers are made of is checked where they are made, in the words of their arguments."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

nn = rg.nn


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.Linear("4", 2), r"Linear\(in_features='4'\): it is an integer of at least 0"),
        (lambda: nn.Linear(4, -1), r"Linear\(out_features=-1\)"),
        (lambda: nn.Linear(4.0, 2), r"Linear\(in_features=4.0\)"),
        (lambda: nn.Linear(in_features=4, out_features=True), r"out_features=True"),
        (lambda: nn.Bilinear(2, 2, None), r"Bilinear\(out_features=None\)"),
        (lambda: nn.Embedding(3, "x"), r"Embedding\(embedding_dim='x'\)"),
        (lambda: nn.Conv1d(0, 2, 3), r"Conv1d\(in_channels=0\): it is an integer of at least 1"),
        (lambda: nn.ConvTranspose2d(2, 2.5, 3), r"ConvTranspose2d\(out_channels=2.5\)"),
        (lambda: nn.Conv3d(2, 2, 3, groups=0), r"Conv3d\(groups=0\)"),
        (lambda: nn.LSTM(3, -4), r"LSTM\(hidden_size=-4\)"),
        (lambda: nn.GRU(3, 4, num_layers=0), r"GRU\(num_layers=0\)"),
        (lambda: nn.BatchNorm2d("3"), r"BatchNorm2d\(num_features='3'\)"),
        (lambda: nn.GroupNorm(0, 4), r"GroupNorm\(num_groups=0\)"),
        (lambda: nn.MultiheadAttention(4, 0), r"MultiheadAttention\(num_heads=0\)"),
        (lambda: nn.TransformerEncoderLayer(4, 2.0), r"TransformerEncoderLayer\(nhead=2.0\)"),
        (lambda: nn.Conv2d(1, 1, 3, padding="around"), r"Conv2d\(padding='around'\)"),
        (lambda: nn.Conv2d(1, 1, 3, 2, "same"), r"padding='same', stride=2\)"),
        (lambda: rg.optim.SGD([rg.param(1.0)], lr="0.1"), r"SGD\(lr='0.1'\)"),
        (lambda: rg.optim.Adam([rg.param(1.0)], betas=("a", 0.9)), r"Adam\(betas="),
        (lambda: nn.ModuleDict({"a.b": nn.ReLU()}), r"'a.b' names no part of it"),
        (lambda: nn.ModuleDict({1: nn.ReLU()}), r"ModuleDict: 1 names no part of it"),
        (lambda: nn.Identity().add_module("a.b", nn.ReLU()), r"Write str\(key\), or '_' for '.'"),
        (lambda: nn.Identity().register_buffer("", 1.0), r"Identity: '' names no part of it"),
        (lambda: setattr(nn.Sequential(), "a.b", nn.ReLU()), r"'a.b' names no part of it"),
    ],
)
def test_sizes_and_names_that_cannot_be_are_refused_as_they_are_given(make, said):
    with rg.Graph() as g, pytest.raises(rg.ParameterError, match=said):
        make()
    assert len(g) == len(g.params)  # no layer was made, only the params of the optimisers


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(2, 2, dtype="float99"),
        lambda: nn.Linear(2, 2, dtype="int32"),
        lambda: nn.Linear(2, 2).to("float99"),
        lambda: nn.Linear(2, 2).to(dtype="int8"),
        lambda: nn.Sequential([nn.ReLU(), nn.ReLU()]),
        lambda: rg.optim.SGD([rg.param(1.0)], lr=0.1).step(rg.const(1.0)),
    ],
)
def test_dtypes_lists_and_closures_that_are_none_say_what_to_write(make):
    with rg.Graph(), pytest.raises(rg.DTypeError, match="Write"):
        make()


def test_integers_of_numpy_and_a_users_own_arguments_are_as_they_were():
    class Named(nn.Linear):
        def __init__(self, name: int) -> None:
            super().__init__(2, 3)
            self.called = name

    with rg.Graph():
        assert nn.Linear(np.int64(2), np.int32(3)).weight.shape == (3, 2)
        assert nn.Linear(0, 3)(np.zeros((2, 0))).shape == (2, 3)
        assert Named("any").called == "any"
        assert nn.Flatten(-2).start_dim == -2


@pytest.mark.parametrize(
    "add",
    [
        lambda net, one: net.add_module("last", one),
        lambda net, one: net.register_module("last", one),
        lambda net, one: setattr(net, "last", one),
        lambda net, one: net.append(one),
    ],
)
def test_a_module_that_is_added_to_a_sequential_by_name_is_called(add):
    with rg.Graph():
        net = nn.Sequential(nn.Linear(2, 2, rng=0))
        before = net(np.ones((3, 2))).value
        one = nn.Linear(2, 2, rng=1)
        add(net, one)
    assert len(net) == 2
    assert net[-1] is one
    np.testing.assert_array_equal(net(np.ones((3, 2))).value, one(before).value)


def test_a_sequential_of_ones_own_has_attributes_before_and_after():
    class Net(nn.Sequential):
        def __init__(self):
            self.scale = 2.0
            super().__init__(nn.Identity())
            self.head = nn.Linear(2, 1, rng=0)

        def forward(self, x):
            return super().forward(x) * self.scale

    with rg.Graph():
        net = Net()
    assert list(net.state_dict()) == ["head.weight", "head.bias"]
    np.testing.assert_array_equal(net(np.ones((1, 2))).value, 2 * net.head(np.ones((1, 2))).value)
