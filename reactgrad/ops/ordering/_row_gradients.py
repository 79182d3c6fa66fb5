"""The gradient of a table from which rows were taken, as rows and not as a table.

An adjoint is a node, and nothing is computed before it is read. That of a table is the sum of contributions, each
of rows and of the numbers at which they were taken, so that these are nodes as well. Reading them and not their sum
costs as much as there are rows, however long the table is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reactgrad.backend import placed
from reactgrad.nodes._handle import Handle
from reactgrad.ops._index import ACCUMULATE
from reactgrad.ops._join import concatenate
from reactgrad.ops._layout import ALIAS, known_shape, reshape, reshape_to
from reactgrad.ops.ordering._segments import segment_sum
from reactgrad.ops.ordering._unique import unique


class RowGradient(NamedTuple):
    """Rows of a gradient, and the numbers of the table's rows that they belong to; a number may repeat."""

    indices: Any
    rows: Any


def row_gradient(gradient: Any, distinct: bool = False) -> RowGradient | None:
    """Return the rows of which a table's gradient is the sum; ``None`` if it is no sum of rows.

    Parameters
    ----------
    gradient : Var
        The gradient of a value from which only rows along the first axis were taken, by ``table[indices]`` or
        ``rg.take(table, indices, axis=0)``.
    distinct : bool
        Whether each index shall stand once, in ascending order, with the sum of its rows, as an optimiser that keeps
        something for each row needs it. Their number then shows only when they have been computed.

    Returns
    -------
    RowGradient or None
        ``indices``, a Var of integers with one axis, and ``rows``, a Var with one row for each of them. The gradient is 0
        in all other rows; rows of a repeated index add up. Reading these does not compute the gradient itself.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> table, words = g.param([[1.0], [2.0], [3.0]]), g.input([2, 0, 2])
    >>> loss = (table[words] ** 2.0).sum()
    >>> found = rg.row_gradient(rg.grad(loss, table))
    >>> found.indices.value
    array([2, 0, 2])
    >>> found.rows.value
    array([[6.],
           [2.],
           [6.]])
    """
    graph, slot = gradient._graph, gradient._slot
    host, operands = graph._host, graph._scheduler.operands
    while host.ops[slot] is ALIAS:
        slot = operands(slot)[0]
    if host.ops[slot] is not ACCUMULATE:
        return None
    shape = known_shape(gradient)
    given = [graph._handle(one) for one in operands(slot)]
    numbers: list[Any] = []
    rows: list[Any] = []
    for one, index, inside in placed(given, host.attrs[slot][1]):
        if shape is None or index is None or index.row is None or index.row % len(shape) != 0:
            return None
        found: Any
        found, mode = index.numbers(inside)
        masked = isinstance(found, Handle) and (
            known_shape(found) is None or found.dtype.kind == "b"  # type: ignore[attr-defined]
        )
        if mode != "raise" or masked:
            return None
        numbers.append(reshape(found, -1) if isinstance(found, Handle) else np.ravel(found))
        rows.append(reshape_to(one, (-1, *shape[1:])))
    indices, values = _joined(graph, numbers), rows[0] if len(rows) == 1 else concatenate(rows, 0)
    if distinct:
        indices, which = unique(indices, return_inverse=True)
        values = segment_sum(values, which)
    return RowGradient(indices, values)


def _joined(graph: Any, numbers: list[Any]) -> Any:
    if len(numbers) > 1:
        return concatenate(
            [one if isinstance(one, Handle) else graph.const(one) for one in numbers]
        )
    (one,) = numbers
    return one if isinstance(one, Handle) else graph.const(one)
