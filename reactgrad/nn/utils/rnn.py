"""Sequences of several lengths for recurrent layers, with the names of ``torch.nn.utils.rnn``.

Sequences need no order, and another batch with other lengths is fed to the nodes that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.nn._packed import PackedSequence as PackedSequence
from reactgrad.nn._packed import checked_lengths, cut
from reactgrad.nodes._handle import Handle
from reactgrad.ops.arrangement import pad as pad_array
from reactgrad.ops.arrangement import swapaxes
from reactgrad.scheduler import safe_repr


def _turned(x: Any) -> Any:
    return swapaxes(x, 0, 1) if isinstance(x, Handle) else np.swapaxes(x, 0, 1)


def _rows(x: Any) -> Any:
    return x if isinstance(x, Handle) else np.asarray(x)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Return a padded batch as one of which steps behind the end of each sequence count for nothing.

    Parameters
    ----------
    input : Var or array_like, shape (steps, batch, ...)
        With `batch_first`, shape (batch, steps, ...). Whatever stands behind the ends is not read.
    lengths : Var or array_like of int, shape (batch,)
        The number of steps of each sequence, at least 1. With an array, steps behind the longest are left out.
    batch_first : bool
    enforce_sorted : bool
        Makes no difference: sequences may have any order.

    Returns
    -------
    PackedSequence
        Of arrays, if both are arrays.

    Raises
    ------
    DTypeError
        If lengths are no integers.
    ShapeError
        If they are not one for each sequence, from 1 to the number of steps.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> rnn = rg.nn.utils.rnn
    >>> with rg.Graph():
    ...     layer = rg.nn.LSTM(3, 4, rng=0)
    >>> packed = rnn.pack_padded_sequence(np.ones((5, 2, 3)), [5, 2])
    >>> output, (h, c) = layer(packed)
    >>> padded, lengths = rnn.pad_packed_sequence(output)
    >>> padded.shape, padded.value[2:, 1].any(), bool((padded.value[1, 1] == h.value[0, 1]).all())
    ((5, 2, 4), np.False_, True)
    """
    x = _rows(input)
    if x.ndim < 2:
        raise ShapeError(f"pack_padded_sequence of shape {x.shape}: it is (steps, batch, ...).")
    x = _turned(x) if batch_first else x
    found = checked_lengths(lengths, x.shape[1], x.shape[0])
    if isinstance(found, np.ndarray) and found.size:
        x = x[: int(found.max())]
    return PackedSequence(cut(x, found), found)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """Return the sequences of a packed batch as one padded array, and their lengths.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool
        Whether the array is (batch, steps, ...), not (steps, batch, ...).
    padding_value : float
        Behind the end of each sequence.
    total_length : int, optional
        The number of steps of the array, at least that of the longest sequence.

    Raises
    ------
    ShapeError
        If `total_length` is too short.
    """
    data, lengths = sequence
    steps = data.shape[0]
    if total_length is not None and total_length != steps:
        if total_length < steps:
            raise ShapeError(
                f"pad_packed_sequence(total_length={total_length}): the longest sequence has {steps} steps."
            )
        width = [(0, total_length - steps)] + [(0, 0)] * (data.ndim - 1)
        data = pad_array(data, width) if isinstance(data, Handle) else np.pad(data, width)
    if padding_value or total_length is not None:
        data = cut(data, lengths, padding_value)
    return (_turned(data) if batch_first else data), lengths


def pad_sequence(
    sequences: Sequence[Any],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Return sequences of several lengths as one padded array, of shape (steps, batch, ...).

    Parameters
    ----------
    sequences : sequence of Var or array_like, shapes (length, ...)
    batch_first : bool
        Whether it is (batch, steps, ...).
    padding_value : float
    padding_side : {"right", "left"}
        Where the padding stands.

    Raises
    ------
    ShapeError
        If there are none, or they differ in more than their length.
    DTypeError
        If there is no such side.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> rg.nn.utils.rnn.pad_sequence([[1.0, 2.0], [3.0]], batch_first=True)
    array([[1., 2.],
           [3., 0.]])
    """
    if padding_side not in ("right", "left"):
        raise ParameterError(
            f"pad_sequence(padding_side={safe_repr(padding_side):.40}): it is 'right' or 'left'."
        )
    found = [_rows(one) for one in sequences]
    shapes = {one.shape[1:] for one in found}
    if not found or len(shapes) != 1 or any(one.ndim < 1 or one.shape[0] is None for one in found):
        raise ShapeError(
            f"pad_sequence of shapes {[one.shape for one in found]!r:.80}: give at least one sequence; all are of "
            "shape (length, ...), alike but for a known length."
        )
    longest = max(one.shape[0] for one in found)
    axis = 0 if batch_first else 1
    padded: list[Any] = []
    for one in found:
        missing = longest - one.shape[0]
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        width = [ends] + [(0, 0)] * (one.ndim - 1)
        pad: Any = pad_array if isinstance(one, Handle) else np.pad
        padded.append(pad(one, width, constant_values=padding_value))
    if any(isinstance(one, Handle) for one in padded):
        return ops.stack(padded, axis)
    return np.stack(padded, axis)


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Return sequences of several lengths as a packed batch; see ``pad_sequence`` and ``pack_padded_sequence``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.nn.utils.rnn.pack_sequence([[1.0, 2.0], [3.0]]).lengths
    array([2, 1])
    """
    padded = pad_sequence(sequences)
    lengths = [_rows(one).shape[0] for one in sequences]
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Return the sequences of a padded array, each with its own length.

    Parameters
    ----------
    padded_sequences : Var or array_like, shape (steps, batch, ...)
    lengths : array_like of int, shape (batch,)
        Numbers, as lengths of nodes depend on them.
    batch_first : bool

    Raises
    ------
    DTypeError
        If lengths are no integers, or a Var.
    ShapeError
        If they are not one for each sequence, from 1 to the number of steps.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> rg.nn.utils.rnn.unpad_sequence(np.array([[1.0, 2.0], [3.0, 0.0]]), [2, 1], batch_first=True)
    [array([1., 2.]), array([3.])]
    """
    if isinstance(lengths, Handle):
        raise DTypeError(
            "unpad_sequence with lengths that are a Var: the shapes of its results would change. Write lengths.value."
        )
    x = _rows(padded_sequences)
    x = x if batch_first else _turned(x)
    found = checked_lengths(lengths, x.shape[0], x.shape[1])
    return [x[i, : int(n)] for i, n in enumerate(found)]
