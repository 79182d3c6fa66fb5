"""The samples that a network is given, one or a batch, as columns; and its outputs as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad import DTypeError, ShapeError, extend
from reactgrad.neat._errors import SampleError


def columns(values: Any, inputs: Sequence[int]) -> tuple[np.ndarray[Any, Any], bool]:
    """Return a row of all samples for each input, and whether a single sample was given as a list.

    Raises
    ------
    ShapeError
        If there is not one number for each input.
    DTypeError
        If something is no number.
    """
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)  # masked values count as missing
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ShapeError(
            f"the samples that were given make no array: {error}. Give a list of {len(inputs)} numbers, "
            f"or rows of {len(inputs)} numbers each."
        ) from None
    if array.dtype.kind not in "fiub":
        raise DTypeError(
            f"the samples that were given are no real numbers but {array.dtype} ({values!r:.60}). Where "
            "one is missing, write float('nan'); what only looks like numbers becomes some with "
            "np.asarray(samples, dtype=float)."
        )
    array = array.astype(np.float64, copy=False)
    if array.ndim not in (1, 2) or array.shape[-1] != len(inputs):
        got = array.shape[-1] if array.ndim else 1
        raise SampleError(
            f"Expected {len(inputs)} inputs, got {got}: the network has {len(inputs)} inputs and was given "
            f"an array of shape {array.shape}. Give a list of {len(inputs)} numbers, or an array of shape "
            f"(samples, {len(inputs)})."
        )
    alone = array.ndim == 1
    return np.ascontiguousarray(np.atleast_2d(array).T), alone


def total_for(source: Any, part: Any) -> Any:
    """Return a gradient with an element for each sample in the shape of its source, which may be
    the same in all.
    """
    return part if part.shape == source.shape else part.sum().reshape(source.shape)


def _shape(*values: extend.Spec) -> extend.Spec:
    found = extend.broadcast(*values)
    return extend.spec((*found.shape, len(values)), found.dtype)


@extend.primitive("neat_outputs", _shape)
def side_by_side(*values: Any, out: Any) -> None:
    """Join the values of several neurons as one array, a column each."""
    for i, value in enumerate(values):
        out[..., i] = value


def _column(i: int, g: Any, ans: Any, *values: Any) -> Any:
    return total_for(values[i], g[..., i])


def _only_column(i: int, t: Any, ans: Any, *values: Any) -> Any:
    return np.broadcast_to(t, ans.shape[:-1])[..., None] * (np.arange(len(values)) == i)


extend.defvjp(side_by_side, _column)
extend.defjvp(side_by_side, _only_column)


def rows(values: Sequence[Any], samples: int) -> np.ndarray[Any, Any]:
    """Return the outputs of all samples as rows.

    Outputs that no input leads to are the same in each.
    """
    if not values:
        return np.empty((samples, 0))
    return np.stack([np.broadcast_to(one, (samples,)) for one in values], axis=1)
