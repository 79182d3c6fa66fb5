"""The mean, sum or largest elements of rows of a table, bag by bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._elementwise import divide, equal, greater, logical_not, maximum
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._where import where
from reactgrad.ops.neural._embedding import check_table, embedding, is_row
from reactgrad.ops.ordering import searchsorted, segment_max, segment_sum
from reactgrad.scheduler import safe_repr


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Return the mean, sum or largest elements of the rows of each bag of numbers; zeros for an empty one.

    Parameters
    ----------
    input : Var or array_like of int, shape (bags, length) or (numbers,)
    weight : Var or array_like, shape (rows, length)
        The table.
    offsets : Var or array_like of int, optional
        Where each bag begins, for numbers along one axis.
    max_norm, norm_type, scale_grad_by_freq, sparse
        See ``rg.embedding``.
    mode : {"mean", "sum", "max"}
    per_sample_weights : Var or array_like, optional
        A factor for each row, of sums.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        A row that belongs to no bag.

    Raises
    ------
    ParameterError
        If options do not go together.
    ShapeError
        If there are offsets for bags that are rows, or none for numbers along one axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.nn.functional.embedding_bag([0, 1, 1], [[1.0], [3.0]], [0, 2])
    >>> y.value
    array([[2.],
           [3.]])
    """
    name = "embedding_bag"
    if mode not in ("mean", "sum", "max"):
        raise ParameterError(f"{name}(mode={safe_repr(mode)}): it is 'mean', 'sum' or 'max'.")
    if per_sample_weights is not None and mode != "sum":
        raise ParameterError(f"{name}: per_sample_weights are for mode='sum'.")
    if scale_grad_by_freq and mode == "max":
        raise ParameterError(
            f"{name}: scale_grad_by_freq is for 'mean' and 'sum'; of a maximum each element has one row."
        )
    check_table(name, max_norm, norm_type, sparse)
    graph = graph_of((input, weight, offsets))
    numbers: Any = input if isinstance(input, Handle) else graph.const(input)
    table: Any = weight if isinstance(weight, Handle) else graph.const(weight)
    rows = embedding(numbers, table, None, max_norm, norm_type, scale_grad_by_freq)
    if per_sample_weights is not None:
        rows = rows * expand_dims(per_sample_weights, -1)
    inside = None if padding_idx is None else logical_not(is_row(numbers, table, padding_idx))
    if numbers.ndim == 2:
        if offsets is not None:
            raise ShapeError(
                f"{name} of numbers of shape {numbers.shape}: each row is a bag; offsets are for one axis."
            )
        return _joined(
            mode, rows, inside, numbers, lambda x: ops.sum(x, 1), lambda x: ops.max(x, 1)
        )
    if numbers.ndim != 1 or offsets is None:
        raise ShapeError(
            f"{name} of numbers along {numbers.ndim} axes: along one give offsets, where each bag begins; along two "
            "each row is a bag."
        )
    starts: Any = offsets if isinstance(offsets, Handle) else graph.const(offsets)
    if include_last_offset:
        starts = starts[:-1]
    bags = searchsorted(starts, np.arange(numbers.shape[0]), "right") - 1
    count = starts.shape[0]
    return _joined(
        mode,
        rows,
        inside,
        numbers,
        lambda x: segment_sum(x, bags, count),
        lambda x: segment_max(x, bags, count),
    )


def _joined(mode: str, rows: Any, inside: Any, numbers: Any, add: Any, top: Any) -> Any:
    """Return the rows of each bag as one; only those that are inside, if not all are."""

    def chosen(other: float) -> Any:
        return rows if inside is None else where(expand_dims(inside, -1), rows, other)

    if mode == "sum":
        return add(chosen(0.0))
    kept = equal(numbers, numbers) if inside is None else inside
    count = add(ops.astype(expand_dims(kept, -1), rows.dtype))
    if mode == "mean":
        return divide(add(chosen(0.0)), maximum(count, 1.0))
    # The maximum of nothing is minus infinity; an empty bag has zeros, as in PyTorch.
    return where(greater(count, 0.0), top(chosen(-np.inf)), 0.0)
