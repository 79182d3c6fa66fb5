"""Encoders and decoders of attention (Vaswani and others, 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError
from reactgrad.nn import init
from reactgrad.nn._attention import MultiheadAttention
from reactgrad.nn._containers import ModuleList
from reactgrad.nn._depth import number_of_layers
from reactgrad.nn._dropout import Dropout
from reactgrad.nn._linear import Linear
from reactgrad.nn._module import Module
from reactgrad.nn._normalization import LayerNorm
from reactgrad.nn._parameter import real
from reactgrad.ops.special import gelu
from reactgrad.scheduler import safe_repr

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": ops.relu, "gelu": gelu}


def _activation(call: str, given: Any) -> Callable[[Any], Any]:
    if callable(given):
        return given
    if given not in _ACTIVATIONS:
        raise ParameterError(
            f"{call}(activation={safe_repr(given):.40}): it is 'relu', 'gelu' or a function of nodes."
        )
    return _ACTIVATIONS[given]


class _Layer(Module):
    """Attention, then two linear layers, each added to what it takes."""

    _settings = ("d_model", "nhead")

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        rng = init.generator(rng, None)
        self.d_model, self.nhead, self.norm_first = d_model, nhead, norm_first
        self.self_attn = self._attention(d_model, nhead, dropout, bias, batch_first, rng, dtype)
        self._open(d_model, nhead, dropout, bias, batch_first, rng, dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, rng=rng, dtype=dtype)
        for i in range(1, self._parts + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for i in range(1, self._parts + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(type(self).__name__, activation)

    _parts = 2

    def _open(self, *settings: Any) -> None:
        """Make what a layer has between attention to itself and the linear layers."""

    @staticmethod
    def _attention(
        d_model: int,
        nhead: int,
        dropout: float,
        bias: bool,
        batch_first: bool,
        rng: Any,
        dtype: Any,
    ) -> MultiheadAttention:
        return MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, rng=rng, dtype=dtype
        )

    def _part(self, i: int, x: Any, function: Callable[[Any], Any]) -> Any:
        """Return `x` with a function of it added, normalised before or behind."""
        norm, dropped = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + dropped(function(norm(x)))
        return norm(x + dropped(function(x)))

    def _linears(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and two linear layers.

    Parameters
    ----------
    d_model, nhead, dim_feedforward : int
        The length of vectors, the number of heads, and the width between both linear layers.
    dropout : float
    activation : {"relu", "gelu"} or callable
    layer_norm_eps : float
    batch_first : bool
        Whether arrays are (batch, length, features), not (length, batch, features).
    norm_first : bool
        Whether each part is normalised before it, not behind.
    bias : bool
    rng, dtype
        See ``rg.nn``.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(np.ones((3, 5, 8))).shape
    (3, 5, 8)
    """

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """Return the sequence, each vector with what it attends to."""

        def attend(x: Any) -> Any:
            return self.self_attn(
                x,
                x,
                x,
                key_padding_mask=src_key_padding_mask,
                need_weights=False,
                attn_mask=src_mask,
                is_causal=is_causal,
            )[0]

        return self._part(2, self._part(1, src, attend), self._linears)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself and to another one, and two linear layers.

    Parameters as for ``TransformerEncoderLayer``.
    """

    _parts = 3

    def _open(self, *settings: Any) -> None:
        self.multihead_attn = self._attention(*settings)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Return the sequence `tgt`, each vector with what it attends to there and in `memory`."""

        def to_itself(x: Any) -> Any:
            return self.self_attn(
                x,
                x,
                x,
                key_padding_mask=tgt_key_padding_mask,
                need_weights=False,
                attn_mask=tgt_mask,
                is_causal=tgt_is_causal,
            )[0]

        def to_memory(x: Any) -> Any:
            return self.multihead_attn(
                x,
                memory,
                memory,
                key_padding_mask=memory_key_padding_mask,
                need_weights=False,
                attn_mask=memory_mask,
                is_causal=memory_is_causal,
            )[0]

        return self._part(3, self._part(2, self._part(1, tgt, to_itself), to_memory), self._linears)


class TransformerEncoder(Module):
    """Several layers, one upon the other.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
        Copied for each layer, first values included, as PyTorch does.
    num_layers : int
    norm : Module, optional
        Called with the result of the last layer.
    """

    _settings = ("num_layers",)

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList(
            [copy.deepcopy(encoder_layer) for _ in range(number_of_layers(self, num_layers))]
        )
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """Return the sequence after all layers."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several layers, one upon the other.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
        Copied for each layer, first values included, as PyTorch does.
    num_layers : int
    norm : Module, optional
        Called with the result of the last layer.
    """

    _settings = ("num_layers",)

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList(
            [copy.deepcopy(decoder_layer) for _ in range(number_of_layers(self, num_layers))]
        )
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Return the sequence `tgt` after all layers."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, tgt_is_causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder.

    Parameters
    ----------
    d_model, nhead, num_encoder_layers, num_decoder_layers, dim_feedforward : int
    dropout, activation, layer_norm_eps, batch_first, norm_first, bias, rng, dtype
        As for ``TransformerEncoderLayer``. Weights are drawn by ``init.xavier_uniform_``.
    """

    _settings = ("d_model", "nhead")

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        *,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        rng = init.generator(rng, None)
        self.d_model, self.nhead = d_model, nhead
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        more = (batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        encoder = TransformerEncoderLayer(*settings, *more, rng=rng, dtype=dtype)
        decoder = TransformerDecoderLayer(*settings, *more, rng=rng, dtype=dtype)
        self.encoder = TransformerEncoder(encoder, num_encoder_layers, norm())
        self.decoder = TransformerDecoder(decoder, num_decoder_layers, norm())
        for param in self.parameters():
            if len(param.shape) > 1:
                init.xavier_uniform_(param, rng=rng)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return a mask by which each place attends to itself and to those before: 0, and minus infinity above.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.nn.Transformer.generate_square_subsequent_mask(3)
        array([[  0., -inf, -inf],
               [  0.,   0., -inf],
               [  0.,   0.,   0.]])
        """
        return np.triu(np.full((sz, sz), -np.inf, real(dtype)), 1)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Return the sequence `tgt` after the decoder."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
