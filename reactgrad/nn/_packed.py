"""Sequences of several lengths in one array, and the layers' way through them.

A packed batch is padded here: what is packed is that steps behind the end of a sequence count for nothing. So another
batch with other lengths is fed to the nodes that are there. Where PyTorch leaves steps out, these are computed and set
to zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.nodes._handle import Handle
from reactgrad.ops import ordering
from reactgrad.ops._operand import node


class PackedSequence(NamedTuple):
    """A batch of sequences of several lengths, as recurrent layers take it.

    ``pack_padded_sequence`` makes one. PyTorch's holds the steps in another order.

    Attributes
    ----------
    data : Var or numpy.ndarray, shape (steps, batch, ...)
        Zeros behind the end of each sequence.
    lengths : Var or numpy.ndarray of int, shape (batch,)
    """

    data: Any
    lengths: Any


def within(steps: int | None, lengths: Any, ndim: int) -> Any:
    """Return which steps lie in their sequence, shape (steps, batch, 1, ...) of this many axes."""
    if steps is None:
        raise ShapeError(
            "a packed sequence of an unknown number of steps: declare it, g.input(shape=(20, None, 3)), or give an "
            "array."
        )
    if isinstance(lengths, Handle):
        mask = ops.less(np.arange(steps)[:, None], lengths)
        return mask.reshape((*mask.shape, *[1] * (ndim - 2)))
    mask = np.arange(steps)[:, None] < np.asarray(lengths)
    return mask.reshape((*mask.shape, *[1] * (ndim - 2)))


def cut(data: Any, lengths: Any, value: float = 0.0) -> Any:
    """Return sequences with a value behind the end of each one: an array of an array and lengths that are one."""
    mask = within(data.shape[0], lengths, data.ndim)
    if isinstance(data, Handle) or isinstance(lengths, Handle):
        return ops.where(mask, node(data, lengths), value)
    return np.where(mask, data, np.asarray(value, data.dtype))


def checked_lengths(lengths: Any, batch: int | None, steps: int | None) -> Any:
    """Return lengths as a node or an array of integers.

    Raises
    ------
    DTypeError
        If they are no integers.
    ShapeError
        If they are not one for each sequence, from 1 to the number of steps.
    """
    found: Any = lengths if isinstance(lengths, Handle) else np.asarray(lengths)
    if found.dtype.kind not in "iu":
        raise DTypeError(
            f"lengths of {found.dtype}: they are integers, the number of steps of each sequence."
        )
    if found.ndim != 1 or (None not in (batch, found.shape[0]) and found.shape[0] != batch):
        raise ShapeError(
            f"lengths of shape {found.shape} for {batch} sequences: give one for each."
        )
    if isinstance(found, np.ndarray):
        if found.size and (found.min() < 1 or (steps is not None and found.max() > steps)):
            raise ShapeError(
                f"lengths from {found.min()} to {found.max()}, of sequences in {steps} steps: each has at least one "
                "step, and none is longer than the array."
            )
        found = found.astype(np.int64)
    return found


def backwards(data: Any, lengths: Any) -> Any:
    """Return each sequence from its end to its beginning, with what is behind the end where it was."""
    steps = np.arange(data.shape[0])[:, None]
    ends = node(lengths, data)
    order = ops.where(ops.less(steps, ends), ends - 1 - steps, steps)
    return ordering.take_along_axis(data, ops.expand_dims(order, -1), 0)


def last_of(data: Any, lengths: Any) -> Any:
    """Return the last step of each sequence."""
    ends = ops.expand_dims(ops.expand_dims(node(lengths, data), 0), -1)
    return ordering.take_along_axis(data, ends - 1, 0)[0]
