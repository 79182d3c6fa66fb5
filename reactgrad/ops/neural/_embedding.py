"""Rows of a table by their numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad import ops
from reactgrad._calls import whole
from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _embedding
from reactgrad.nodes._handle import Handle, apply, graph_of
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._elementwise import absolute, divide, equal, greater
from reactgrad.ops._layout import expand_dims, reshape
from reactgrad.ops._reduce import max as largest
from reactgrad.ops._reduce import sum
from reactgrad.ops._shapes import common_device
from reactgrad.ops._where import where
from reactgrad.scheduler import safe_repr

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
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """Return the rows of a table with the given numbers.

    Parameters
    ----------
    input : Var or array_like of int
        Numbers of rows, of any shape.
    weight : Var or array_like, shape (rows, length)
        The table. Its gradient adds up over equal numbers.
    padding_idx : int, optional
        A row that passes no gradient. A negative one is counted from the end of the table.
    max_norm : float, optional
        Rows whose norm is larger are given out at this norm. The table stays as it is, since a node changes no leaf;
        its gradient is that of PyTorch's function, which writes such rows into the table first.
    norm_type : float
        The power of that norm.
    scale_grad_by_freq : bool
        Whether the gradient of a row is divided by how often its number is there.
    sparse : bool
        ``True`` is refused: gradients are whole arrays.

    Returns
    -------
    Var
        In the shape of `input` with the axis of the rows behind.

    Raises
    ------
    DTypeError
        If the numbers are no integers.
    ParameterError
        If `sparse` is true, or a norm makes no sense.
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
    check_table("rg.embedding", max_norm, norm_type, sparse)
    rows = ops.take(table, apply(ROW_NUMBERS, (numbers,)), 0)
    if max_norm is not None:
        rows = bounded(rows, max_norm, norm_type)
    if scale_grad_by_freq:
        rows = by_frequency(rows, numbers, table)
    if padding_idx is None:
        return rows
    return where(expand_dims(is_row(numbers, table, padding_idx), -1), rows.detach(), rows)


def check_table(name: str, max_norm: float | None, norm_type: float, sparse: bool) -> None:
    """Raise ``ParameterError`` for options of a table that make no sense."""
    if sparse:
        raise ParameterError(
            f"{name}(sparse=True): gradients of tables are whole arrays, with zeros for rows that are not used. Leave "
            "sparse out; steps of SGD without momentum and decay are the same."
        )
    if max_norm is not None and not max_norm > 0.0:
        raise ParameterError(f"{name}(max_norm={safe_repr(max_norm)}) must be above 0, or None.")
    if not norm_type > 0.0:
        raise ParameterError(f"{name}(norm_type={safe_repr(norm_type)}) must be above 0.")


def is_row(numbers: Any, table: Any, row: int) -> Any:
    """Return where numbers are that of a row, which may be counted from the end."""
    if row >= 0:
        return equal(numbers, row)
    return apply(IS_ROW_FROM_END, (numbers, table), (int(row),))


def bounded(rows: Any, max_norm: float, norm_type: float) -> Any:
    """Return rows at most so long, as if they had stood in the table: the gradient passes as it is."""
    given = rows.detach()
    sizes = absolute(given)
    if norm_type == np.inf:
        norms = largest(sizes, -1, keepdims=True)
    else:
        norms = sum(sizes**norm_type, -1, keepdims=True) ** (1.0 / norm_type)
    # PyTorch adds the same small number.
    short = where(greater(norms, max_norm), given * divide(max_norm, norms + 1e-7), given)
    return short + _zeros(rows)


def by_frequency(rows: Any, numbers: Any, table: Any) -> Any:
    """Return rows whose gradients are divided by how often their number is there."""
    from reactgrad.ops.ordering import segment_sum

    flat = reshape(numbers, (-1,))
    ones = ops.astype(equal(flat, flat), table.dtype)
    counts = ops.take(segment_sum(ones, flat, table.shape[0]), numbers, 0)
    return rows.detach() + divide(_zeros(rows), expand_dims(counts, -1))


def _zeros(rows: Any) -> Any:
    """Return zeros whose gradient is that of the rows; numbers that are not finite have none."""
    finite = where(ops.isfinite(rows), rows, 0.0)
    return finite - finite.detach()


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
