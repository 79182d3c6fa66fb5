"""Values broadcast together, and grids of coordinates: broadcast_arrays, meshgrid, ix_."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._layout import _in_memory, alias, reshape
from reactgrad.ops._lengths import AXIS_NUMBERS
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import broadcast
from reactgrad.scheduler import safe_repr


def _infer_beside(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(broadcast("broadcast_arrays", specs), specs[0].dtype, specs[0].device)


def _first(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, g: None if i else g


def _beside_view(x: Any, *shapes: Any) -> Any:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, *map(tuple, shapes)))


# The first operand, broadcast to the shape that it has beside the others.
BESIDE = Op(
    "broadcast_beside",
    _infer_beside,
    variadic=_first,
    variadic_jvp=_first,
    broadcasts=True,
    view=_beside_view,
)


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Return all values broadcast to their common shape.

    Parameters
    ----------
    *args : Var or array_like
        Shapes that broadcast together.

    Returns
    -------
    tuple of Var
        Views, which cost nothing.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2])
    >>> [one.shape for one in rg.broadcast_arrays(x, [[1], [2], [3]])]
    [(3, 2), (3, 2)]
    """
    nodes = [_array(node(one, *args)) for one in args]
    return tuple([_beside(one, i, nodes) for i, one in enumerate(nodes)])


def _beside(one: Any, place: int, nodes: list[Any]) -> Any:
    others = [other for other in (*nodes[:place], *nodes[place + 1 :]) if other is not one]
    return apply(BESIDE, (one, *others)) if others else alias(one)


def _array(x: Any) -> Any:
    """Return a constant number as an array: a number has no memory that a view could show."""
    return _in_memory(x if x._literal() is None else x._graph.const(np.asarray(x.value)))


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    """Return the coordinates of the points of a grid, an array for each axis.

    Parameters
    ----------
    *xi : Var or array_like
        The coordinates along each axis: rows, or numbers.
    copy : bool
        Changes nothing: the results are views, which nobody can write into.
    sparse : bool
        Whether the results keep length 1 along the other axes.
    indexing : str
        ``"xy"``: the first axis runs along the columns; ``"ij"``: along the rows.

    Returns
    -------
    tuple of Var
        Views.

    Raises
    ------
    DTypeError
        For another `indexing`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1, 2, 3])
    >>> columns, rows = rg.meshgrid(x, [10, 20])
    >>> rows.value
    array([[10, 10, 10],
           [20, 20, 20]])
    """
    if indexing not in ("xy", "ij"):
        raise ParameterError(f"meshgrid(indexing={safe_repr(indexing)}): write 'xy' or 'ij'.")
    places = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        places[:2] = 1, 0
    grid = []
    for place, one in zip(places, xi, strict=True):
        shape = [1] * len(xi)
        shape[place] = -1
        grid.append(reshape(node(one, *xi), tuple(shape)))
    return tuple(grid) if sparse else broadcast_arrays(*grid)


def ix_(*args: Any) -> tuple[Any, ...]:
    """Return rows of integers or booleans as an index of all their combinations: ``x[rg.ix_(rows, columns)]``.

    Parameters
    ----------
    *args : Var or array_like
        Rows of integers; or of booleans, which stand for the numbers of the true ones.

    Returns
    -------
    tuple of Var

    Raises
    ------
    ShapeError
        If one is no row.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> g = rg.Graph()
    >>> x, rows = g.input(np.arange(12).reshape(3, 4)), g.input([0, 2])
    >>> x[rg.ix_(rows, [1, 3])].value
    array([[ 1,  3],
           [ 9, 11]])
    """
    found = []
    for place, one in enumerate(args):
        if not isinstance(one, Handle):
            one = np.asarray(one)
            if not one.size:
                one = one.astype(np.intp)  # an empty row has no dtype of its own
        one = node(one, *args)
        if one.ndim != 1:
            raise ShapeError(f"ix_ takes rows, not a value with {one.ndim} axes.")
        if one.dtype.kind == "b":
            one = apply(AXIS_NUMBERS, (one,), (0,))[one]
        shape = [1] * len(args)
        shape[place] = -1
        found.append(alias(one) if len(args) == 1 else reshape(one, tuple(shape)))
    return tuple(found)
