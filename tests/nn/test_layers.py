"""Laws of single layers that need no other library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_two_layers_are_two_calls_of_the_function(name: str) -> None:
    with rg.Graph() as g:
        layer = getattr(nn, name)(3, 4, num_layers=2)
    x = g.input(RNG.normal(size=(5, 2, 3)))
    function = getattr(rg, name.lower())
    y: Any = x
    for i in range(2):
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        y, _ = function(y, None, *[getattr(layer, f"{kind}_l{i}") for kind in kinds])
    assert np.array_equal(layer(x)[0].value, y.value)


def test_dropout_between_recurrent_layers_obeys_the_mode() -> None:
    with rg.Graph():
        layer = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    x = np.ones((5, 2, 3))
    one, other = layer(x)[0], layer(x)[0]
    assert not np.array_equal(one.value, other.value)
    layer.eval()
    assert np.array_equal(one.value, other.value)


def test_recurrent_layers_take_sequences_of_several_lengths_and_do_not_grow() -> None:
    with rg.Graph() as g:
        layer = nn.GRU(3, 4, batch_first=True)
    sizes = []
    for i in range(12):
        output, last = layer(np.ones((2, 3 + i % 3, 3)))
        assert np.array_equal(output.value[:, -1], last.value[0])
        sizes.append(len(g))
    assert len(set(sizes[6:])) == 1


def test_attention_drops_weights_in_train_mode() -> None:
    with rg.Graph():
        layer = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
    x = RNG.normal(size=(2, 5, 8))
    weights = layer(x, x, x)[1]
    assert not np.allclose(weights.value.sum(-1), 1.0)
    layer.eval()
    assert np.allclose(weights.value.sum(-1), 1.0)


def test_an_encoder_copies_its_layer() -> None:
    with rg.Graph():
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        net = nn.TransformerEncoder(layer, 3, nn.LayerNorm(8))
    states = [one.state_dict() for one in net.layers]
    assert all(np.array_equal(states[0][path], states[2][path]) for path in states[0])
    assert len({id(one.linear1.weight) for one in [layer, *net.layers]}) == 4
    assert net(np.ones((2, 5, 8))).shape == (2, 5, 8)


def test_a_row_for_padding_gets_no_gradient() -> None:
    with rg.Graph():
        layer = nn.Embedding(5, 2, padding_idx=-1, rng=0)
    assert layer.weight.value[4].tolist() == [0.0, 0.0]
    layer(np.array([4, 1, 1])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0.0, 4.0, 0.0, 0.0, 0.0]
    table = np.arange(6.0).reshape(3, 2)
    with rg.Graph():
        frozen = nn.Embedding.from_pretrained(table)
    assert frozen.weight.frozen
    assert np.array_equal(frozen(np.array([2])).value, [[4.0, 5.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "the groups divide both numbers of channels"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), "one for each of 2 axes"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), "'zeros', 'reflect', 'replicate'"),
        (lambda: nn.MultiheadAttention(8, 3), "the heads divide the length of queries"),
        (lambda: nn.GroupNorm(2, 3), "the groups divide the channels"),
        (lambda: nn.Dropout(1.5), "it is a probability, from 0 to 1"),
        (lambda: nn.MSELoss(reduction="man"), "it is one of mean, sum, none"),
        (lambda: nn.Embedding(3, 2, padding_idx=7), "there are 3 rows"),
        (lambda: nn.Sequential(np.tanh), "Sequential holds modules, not <ufunc 'tanh'>"),
        (
            lambda: nn.LayerNorm(3)(np.ones((2, 4))),
            "the last axes of the input are those of the layer",
        ),
        (
            lambda: nn.TransformerEncoderLayer(8, 2, activation="elu"),
            "'relu', 'gelu' or a function",
        ),
        (lambda: nn.LSTM(3, 4)(np.ones((5, 2, 3)), (np.ones((2, 4)),) * 2), "a row for each layer"),
    ],
)
def test_bad_arguments_say_what_is_wrong(make: Any, message: str) -> None:
    with rg.Graph(), pytest.raises(rg.ReactgradError) as raised:
        make()
    assert message in str(raised.value)


def test_a_border_takes_away_at_most_what_is_there() -> None:
    with rg.Graph(), pytest.raises(rg.ShapeError, match=r"\(-4, -3\) takes away more than the 6"):
        nn.ZeroPad1d((-4, -3))(np.ones((2, 6)))


def test_attention_with_keys_of_its_own_takes_the_causal_part_as_a_mask() -> None:
    with rg.Graph():
        layer = nn.MultiheadAttention(4, 2, add_zero_attn=True)
    x = np.ones((3, 4))
    with pytest.raises(rg.DTypeError, match="give the causal part as attn_mask"):
        layer(x, x, x, is_causal=True)
    assert layer(x, x, x)[1].shape == (3, 4)
