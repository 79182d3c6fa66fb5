"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._calls import whole
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _embedding
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._elementwise import equal
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._shapes import common_device
from reactgrad.ops._where import where

add_kernels(_embedding.register, _embedding.register_standard)


def _infer_is_row(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(specs[0].shape, np.dtype(bool), common_device("embedding", specs))


# True for numbers of the row of a table that the attribute counts from the end.
IS_ROW_FROM_END: Final = Op("is_row_from_end", _infer_is_row, (None, None), (None, None))


def _infer_row_numbers(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return specs[0]


# Numbers of rows as they are, of which none is negative.
ROW_NUMBERS: Final = Op("row_numbers", _infer_row_numbers, (None,), (None,))


@deferred_each(without=("input",))
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Any:
    """Return the rows of a table with the given numbers.

    Parameters
    ----------
    input : Var or array_like of int
        Numbers of rows, of any shape.
    weight : Var or array_like, shape (rows, length)
        The table. Its gradient adds up over equal numbers.
    padding_idx : int, optional
        A row that passes no gradient. A negative one is counted from the end of the table.

    Returns
    -------
    Var
        In the shape of `input` with the axis of the rows behind.

    Raises
    ------
    DTypeError
        If the numbers are no integers.
    ShapeError
        If the table does not have two axes.
    IndexingError
        When it is computed, if the table has no such row, or a number is negative.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.embedding([2, 0], [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> y.value
    array([[4., 5.],
           [0., 1.]])
    """
    graph = graph_of((input, weight))
    numbers: Any = input if isinstance(input, Handle) else graph.const(input)
    table: Any = weight if isinstance(weight, Handle) else graph.const(weight)
    if numbers.dtype.kind not in "iu":
        raise DTypeError(
            f"rg.embedding(input, weight): the input is of {numbers.dtype}; rows are numbered by integers. In the "
            "order of PyTorch's function the numbers come first, the table second."
        )
    if table.ndim != 2:
        raise ShapeError(f"rg.embedding: the table has shape {table.shape}, not two axes.")
    rows = ops.take(table, apply(ROW_NUMBERS, (numbers,)), 0)
    if padding_idx is None:
        return rows
    padding = (
        equal(numbers, padding_idx)
        if padding_idx >= 0
        else apply(IS_ROW_FROM_END, (numbers, table), (int(padding_idx),))
    )
    return where(expand_dims(padding, -1), rows.detach(), rows)


def one_hot(input: Any, num_classes: int) -> Any:
    """Return integers as rows of zeros with a one at the place of each.

    Parameters
    ----------
    input : Var or array_like of int
        Numbers from 0 to below `num_classes`; a row of others has no one.
    num_classes : int
        The length of a row. It is given, since the shape of a node does not follow its values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.one_hot([0, 2], 3)
    >>> y.value
    array([[1, 0, 0],
           [0, 0, 1]])
    """
    numbers: Any = input if isinstance(input, Handle) else graph_of((input,)).const(input)
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"rg.one_hot of {numbers.dtype}: classes are numbered by integers.")
    count = whole("one_hot", "num_classes", num_classes, 0)
    hits = equal(expand_dims(numbers, -1), np.arange(count))
    return ops.astype(hits, np.int64)
