"""Elements written or added at numbered places of a new value: scatter, scatter_add, index_add.

They are the op of ``x.at[index].set`` and ``.add``, with other indices.
"""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.nodes._handle import Handle
from reactgrad.ops._layout import known_shape
from reactgrad.ops._operand import nodes_of, with_axis
from reactgrad.ops._places import along, rows_at
from reactgrad.ops.arrangement._put import put_at
from reactgrad.ops.ordering._take import checked_axis, numbers_of, one_axis, same_axes
from reactgrad.scheduler import safe_repr


def scatter(x: Any, axis: int, index: Any, source: Any, reduce: str | None = None) -> Any:
    """Return `x` with other elements at numbered places along an axis, as ``torch.scatter`` does.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is a row of one element.
    axis : int
        The axis.
    index : Var or array_like of int
        As many axes as `x`; each number names a place in its own row along the axis. Other axes may be shorter than
        those of `x`, and then stand for their beginning.
    source : Var, array_like or number
        The elements, in the shape of `index` or a larger one, whose beginning counts; or one number for all places.
    reduce : {None, "add", "multiply"}
        Whether elements replace those of `x`, are added to them, which is ``scatter_add``, or multiplied with them.
        In a product a repeated place has no gradient.

    Returns
    -------
    Var
        In shape and dtype of `x`. Of several elements for one place the last one counts, and it alone gets the
        gradient.

    Raises
    ------
    IndexingError
        If there is no such place.
    ShapeError
        If the shapes do not fit.
    DTypeError
        If the dtype of the elements does not fit that of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.scatter([[1, 2], [3, 4]], 1, [[0], [1]], [[7], [8]])
    >>> y.value
    array([[7, 2],
           [3, 8]])
    """
    how = {None: "set", "add": "add", "multiply": "multiply"}.get(reduce)
    if how is None:
        raise ParameterError(
            f'scatter: reduce={safe_repr(reduce)} is none of None, "add" and "multiply".'
        )
    return _along("scatter", how, x, axis, index, source)


def scatter_add(x: Any, axis: int, index: Any, source: Any) -> Any:
    """Return `x` with elements added at numbered places along an axis, as ``torch.scatter_add`` does.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is a row of one element.
    axis : int
        The axis.
    index : Var or array_like of int
        As many axes as `x`; each number names a place in its own row along the axis. Other axes may be shorter than
        those of `x`, and then stand for their beginning.
    source : Var, array_like or number
        The elements, in the shape of `index` or a larger one, whose beginning counts; or one number for all places.

    Returns
    -------
    Var
        In shape and dtype of `x`. Elements for one place add up; short floats do so in float64.

    Raises
    ------
    IndexingError
        If there is no such place.
    ShapeError
        If the shapes do not fit.
    DTypeError
        If the dtype of the elements does not fit that of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.scatter_add([0.0, 0.0, 0.0], 0, [2, 2, 0], [1.0, 5.0, 7.0])
    >>> y.value
    array([7., 0., 6.])
    """
    return _along("scatter_add", "add", x, axis, index, source)


def _along(name: str, how: str, x: Any, axis: int, index: Any, source: Any) -> Any:
    whole, numbers, source = nodes_of(x, numbers_of(name, index), source)
    x, numbers = with_axis(whole), with_axis(numbers)
    axis = checked_axis(name, x, axis)
    same_axes(name, x, numbers)
    source = _beginning(source, numbers)
    result = put_at(x, along(axis, short=True), (numbers,), source, how, distinct=False)
    return result[0] if x is not whole else result


def _beginning(source: Any, numbers: Any) -> Any:
    """Return the elements for which there are numbers."""
    shape, wanted = known_shape(source), known_shape(numbers)
    if shape is None or wanted is None or shape == wanted or len(shape) != len(wanted):
        return source
    if all(m is None or n is None or m >= n for m, n in zip(shape, wanted, strict=True)):
        return source[
            tuple(
                [slice(None) if m == n else slice(0, n) for m, n in zip(shape, wanted, strict=True)]
            )
        ]
    return source


def index_add(x: Any, axis: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """Return `x` with rows added at numbered places along an axis.

    Parameters
    ----------
    x : Var or array_like
        Any shape; a single number is a row of one element.
    axis : int
        The axis.
    index : Var or array_like of int
        One axis: the place of each row.
    source : Var or array_like
        The rows: the shape of `x` with the length of `index` along the axis.
    alpha : number
        A factor of the rows.

    Returns
    -------
    Var
        In shape and dtype of `x`. Rows for one place add up; short floats do so in float64.

    Raises
    ------
    IndexingError
        If there is no such place.
    ShapeError
        If the shapes do not fit.
    DTypeError
        If the dtype of the rows does not fit that of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.index_add([[1.0], [2.0]], 0, [1, 1], [[10.0], [20.0]])
    >>> y.value
    array([[ 1.],
           [32.]])
    """
    whole, numbers, rows = nodes_of(x, numbers_of("index_add", index), source)
    x, numbers = with_axis(whole), with_axis(numbers)
    one_axis("index_add", numbers)
    if isinstance(alpha, Handle) or alpha != 1:
        rows = rows * alpha
    at = rows_at(checked_axis("index_add", x, axis))
    result = put_at(x, at, (numbers,), rows, "add", distinct=False)
    return result[0] if x is not whole else result
