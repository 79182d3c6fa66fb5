"""Recurrent layers: plain ones, long short-term memory, gated units."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nn._depth import number_of_layers
from reactgrad.nn._module import Module
from reactgrad.nn._packed import (
    PackedSequence,
    backwards,
    checked_lengths,
    cut,
    last_of,
    within,
)
from reactgrad.nn._values import Values
from reactgrad.ops import neural
from reactgrad.ops._operand import node
from reactgrad.ops.arrangement import repeat
from reactgrad.ops.factories import zeros_like
from reactgrad.random._dropout import dropout as drop
from reactgrad.scheduler import safe_repr

# A gate of this much is 0 or 1 to the last bit, in half floats, too.
_SHUT = 1e4


class _Recurrent(Module):
    """Layers of steps, one upon the other; see ``LSTM``."""

    _settings = ("input_size", "hidden_size", "num_layers")
    _gates: ClassVar[int]
    proj_size = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if number_of_layers(self, num_layers) < 1 or hidden_size < 1:
            raise ParameterError(
                f"{type(self).__name__}({input_size}, {hidden_size}, {num_layers}): sizes are at least 1."
            )
        if not 0.0 <= dropout <= 1.0:
            raise ParameterError(
                f"{type(self).__name__}(dropout={safe_repr(dropout):.40}): it is a probability, from 0 to 1."
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional = dropout, bidirectional
        make, bound = Values(rng, dtype), hidden_size**-0.5
        rows, state = self._gates * hidden_size, self.proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * (1 + bidirectional)
            for end in self._ends:
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, state)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if self.proj_size:
                    shapes["weight_hr"] = (state, hidden_size)
                for kind, shape in shapes.items():
                    setattr(self, f"{kind}_l{layer}{end}", make.uniform(shape, bound))

    @property
    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def extra_repr(self) -> str:
        """Return the settings that are not the usual ones."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        usual = {"proj_size": 0, "bias": True, "batch_first": False, "dropout": 0.0}
        usual["bidirectional"] = False
        for name, one in usual.items():
            if getattr(self, name) != one:
                text += f", {name}={getattr(self, name)}"
        return text

    def _layer(self, x: Any, state: Any, weights: tuple[Any, ...], **options: Any) -> Any:
        """Return states at all steps, and a tuple of what is left at the end."""
        raise NotImplementedError

    def _packed_layer(
        self, x: PackedSequence, state: Any, weights: tuple[Any, ...], reverse: bool
    ) -> Any:
        """Return what ``_layer`` does, of sequences that end at steps of their own."""
        data, lengths = x
        data = backwards(data, lengths) if reverse else data
        found, left = self._ended(data, lengths, state, weights)
        last = (last_of(found, lengths), *left[1:])
        found = cut(backwards(found, lengths) if reverse else found, lengths)
        return PackedSequence(found, lengths), last

    def _ended(self, data: Any, lengths: Any, state: Any, weights: tuple[Any, ...]) -> Any:
        """Return what ``_layer`` does of steps in order; what it leaves beside the states is that at the ends."""
        return self._layer(data, state, weights, batch_first=False, reverse=False)

    def _run(self, input: Any, states: tuple[Any, ...] | None) -> tuple[Any, tuple[Any, ...]]:
        """Return states of the last layer, and the last states of all layers, stacked."""
        packed = isinstance(input, PackedSequence)
        if packed:
            data = node(input.data, input.lengths, next(self.parameters()))
            lengths = checked_lengths(input.lengths, data.shape[1], data.shape[0])
            input = PackedSequence(data, lengths)
            return self._through(input, data, states, packed)
        return self._through(input, input, states, packed)

    def _through(
        self, input: Any, data: Any, states: tuple[Any, ...] | None, packed: bool
    ) -> tuple[Any, tuple[Any, ...]]:
        for one in states or ():
            if one.ndim != data.ndim or one.shape[0] not in (None, self._count):
                raise ShapeError(
                    f"{type(self).__name__}: a first state has shape {one.shape}; it is "
                    f"({self._count}, {'batch, ' if data.ndim == 3 else ''}{self.proj_size or self.hidden_size}), a "
                    "row for each layer and direction."
                )
        mode = self._mode(data._graph) if self.dropout and self.num_layers > 1 else None
        last: list[tuple[Any, ...]] = []
        for layer in range(self.num_layers):
            sides = []
            for end in self._ends:
                kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                if self.proj_size:
                    kinds = (*kinds, "weight_hr")
                weights = tuple(getattr(self, f"{kind}_l{layer}{end}", None) for kind in kinds)
                state = None if states is None else tuple(one[len(last)] for one in states)
                if packed:
                    found, left = self._packed_layer(input, state, weights, bool(end))
                else:
                    found, left = self._layer(
                        input, state, weights, batch_first=self.batch_first, reverse=bool(end)
                    )
                sides.append(found)
                last.append(left)
            data = [one.data for one in sides] if packed else sides
            data = data[0] if len(data) == 1 else ops.concatenate(data, -1)
            if mode is not None and layer + 1 < self.num_layers:
                data = drop(data, self.dropout, mode)
            input = PackedSequence(data, input.lengths) if packed else data
        return input, tuple(ops.stack(list(kind)) for kind in zip(*last, strict=True))

    @property
    def _count(self) -> int:
        return self.num_layers * len(self._ends)


class RNN(_Recurrent):
    """Layers of ``tanh(W_ih x + b_ih + W_hh h + b_hh)``; see ``LSTM`` and ``rg.rnn``.

    Parameters
    ----------
    nonlinearity : {"tanh", "relu"}
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ParameterError(
                f"RNN(nonlinearity={safe_repr(nonlinearity):.40}): it is 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        more = (bias, batch_first, dropout, bidirectional)
        super().__init__(input_size, hidden_size, num_layers, *more, rng=rng, dtype=dtype)

    def _layer(self, x: Any, state: Any, weights: tuple[Any, ...], **options: Any) -> Any:
        first = None if state is None else state[0]
        found, last = neural.rnn(x, first, *weights, nonlinearity=self.nonlinearity, **options)
        return found, (last,)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the states of the last layer at all steps, and the last states of all layers."""
        output, (last,) = self._run(input, None if hx is None else (hx,))
        return output, last


class GRU(_Recurrent):
    """Layers of gated recurrent units; see ``LSTM`` and ``rg.gru``."""

    _gates = 3

    def _layer(self, x: Any, state: Any, weights: tuple[Any, ...], **options: Any) -> Any:
        found, last = neural.gru(x, None if state is None else state[0], *weights, **options)
        return found, (last,)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the states of the last layer at all steps, and the last states of all layers."""
        output, (last,) = self._run(input, None if hx is None else (hx,))
        return output, last


class LSTM(_Recurrent):
    """Layers of long short-term memory; see ``rg.lstm``.

    Parameters
    ----------
    input_size, hidden_size : int
        The numbers of features and of units.
    num_layers : int
        Each layer takes the states of the one before.
    bias : bool
    batch_first : bool
        Whether input and output are (batch, steps, features), not (steps, batch, features). A sequence
        alone is (steps, features).
    dropout : float
        Between layers, in train mode.
    bidirectional : bool
        Whether each layer also goes from the last step to the first; both are joined.
    proj_size : int
        The length of states that are ``weight_hr @ h`` of what the units give (Sak and others, 2014); 0 for none.
    rng, dtype
        See ``rg.nn``.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0 : Var, shapes (4 * hidden_size, input_size), (4 * hidden_size, hidden_size)
        And so for each layer, with ``_reverse`` behind for the way back. Even up to ``1 / sqrt(hidden_size)``.
    bias_ih_l0, bias_hh_l0 : Var, shape (4 * hidden_size,)

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     layer = rg.nn.LSTM(3, 4, num_layers=2)
    >>> output, (h, c) = layer(np.zeros((5, 2, 3)))
    >>> output.shape, h.shape, c.shape
    ((5, 2, 4), (2, 2, 4), (2, 2, 4))
    """

    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ParameterError(
                f"LSTM(hidden_size={hidden_size}, proj_size={proj_size}): a projection is shorter than the units. "
                "Write proj_size=0 for none."
            )
        self.proj_size = proj_size
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            rng=rng,
            dtype=dtype,
        )

    def _layer(self, x: Any, state: Any, weights: tuple[Any, ...], **options: Any) -> Any:
        if not self.proj_size:
            return neural.lstm(x, state, *weights, **options)
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
        if state is not None:
            # The first state enters as features of the first step; those between are projected by the product below.
            first, cell = state
            time = 1 if options["batch_first"] and x.ndim == 3 else 0
            x = ops.concatenate([x, _at_one_end(first, x, time, options["reverse"])], -1)
            w_ih = ops.concatenate([w_ih, w_hh], 1)
            state = (zeros_like(cell), cell)
        found, (last, cell) = neural.lstm(x, state, w_ih, w_hh @ w_hr, b_ih, b_hh, **options)
        turned = ops.transpose(w_hr)
        return ops.matmul(found, turned), (ops.matmul(last, turned), cell)

    def _ended(self, data: Any, lengths: Any, state: Any, weights: tuple[Any, ...]) -> Any:
        # A feature that is 1 behind the end closes the input gate there and opens the forget gate: the cell stays.
        w_ih, *others = weights
        behind = ops.astype(ops.logical_not(within(data.shape[0], lengths, data.ndim)), data.dtype)
        shut = np.zeros((w_ih.shape[0], 1), w_ih.dtype)
        shut[: self.hidden_size], shut[self.hidden_size : 2 * self.hidden_size] = -_SHUT, _SHUT
        data, w_ih = ops.concatenate([data, behind], -1), ops.concatenate([w_ih, shut], 1)
        return super()._ended(data, lengths, state, (w_ih, *others))

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Return the states of the last layer at all steps; the last states and cells of all layers."""
        output, last = self._run(input, None if hx is None else tuple(hx))
        return output, (last[0], last[1])


def _at_one_end(state: Any, like: Any, time: int, reverse: bool) -> Any:
    """Return a state at the first step, the last one if `reverse`, and zeros at the others."""
    rest = like[(slice(None),) * time + (slice(1, None),)]
    zeros = repeat(zeros_like(rest[..., :1]), state.shape[-1], axis=-1)
    parts = [ops.expand_dims(state, time), ops.astype(zeros, state.dtype)]
    return ops.concatenate(parts[::-1] if reverse else parts, time)


# --- one step ------------------------------------------------------------------------------------


class _Cell(Module):
    """One step; see ``LSTMCell``."""

    _settings = ("input_size", "hidden_size")
    _gates: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        make, bound, rows = Values(rng, dtype), hidden_size**-0.5, self._gates * hidden_size
        self.weight_ih = make.uniform((rows, input_size), bound)
        self.weight_hh = make.uniform((rows, hidden_size), bound)
        self.bias_ih = make.uniform((rows,), bound) if bias else None
        self.bias_hh = make.uniform((rows,), bound) if bias else None

    def _operands(self, input: Any, hx: Any) -> tuple[Any, ...]:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (ops.expand_dims(input, 0), hx, *weights)


class RNNCell(_Cell):
    """One step of ``RNN``."""

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        *,
        rng: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, rng=rng, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next state."""
        return neural.rnn(*self._operands(input, hx), nonlinearity=self.nonlinearity)[1]


class GRUCell(_Cell):
    """One step of ``GRU``."""

    _gates = 3

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Return the next state."""
        return neural.gru(*self._operands(input, hx))[1]


class LSTMCell(_Cell):
    """One step of ``LSTM``.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    rng, dtype
        See ``rg.nn``.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> with rg.Graph():
    ...     cell = rg.nn.LSTMCell(3, 4)
    >>> h, c = cell(np.zeros((2, 3)))
    >>> h, c = cell(np.zeros((2, 3)), (h, c))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    _gates = 4

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the next state and cell."""
        return neural.lstm(*self._operands(input, hx))[1]
