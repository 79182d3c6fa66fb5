"""Elements written or added at numbered places of a new value: scatter, scatter_add, index_add.

Nothing is written in place: the result is another node, and the operands keep their values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _written
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._index import GATHER, Placed
from reactgrad.ops._layout import known_shape, spread
from reactgrad.ops._places import Index, along, given, rows_at
from reactgrad.ops._reduce import sum_to
from reactgrad.ops._shapes import common_device
from reactgrad.ops._where import where
from reactgrad.ops.ordering._take import checked_axis, numbers_of, one_axis, same_axes

add_kernels(_written.register)


def _infer_written(name: str) -> Any:
    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        x, source, numbers = specs
        places: Any = GATHER.infer((x, numbers), attrs)
        if source.shape and not _agree(source.shape, places.shape):
            raise ShapeError(
                f"{name}: the index names places of shape {places.shape}, and the values for them are "
                f"{source!r}. Give them this shape, or one number."
            )
        if source.weak is None and not np.can_cast(source.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                f"{name}: values of {source.dtype} do not fit a value of {x.dtype}; convert one with .astype."
            )
        return spec(x.shape, x.dtype, common_device(name, specs))

    return infer


def _agree(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    return len(one) == len(other) and all(
        m == n or m is None or n is None for m, n in zip(one, other, strict=True)
    )


def _dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype, specs[0].dtype, np.dtype(np.intp))


def _at(g: Any, numbers: Any, index: Index) -> Any:
    return apply(GATHER, (g, numbers), (index,))


def _like(part: Any, source: Any) -> Any:
    return sum_to(part, source) if source.ndim < part.ndim else part


def _added_rule(g: Any, ans: Any, x: Any, source: Any, numbers: Any, index: Index) -> Any:
    return _like(_at(g, numbers, index), source)


def _added_jvp(t: Any, ans: Any, x: Any, source: Any, numbers: Any, index: Index) -> Any:
    return Placed(t if source.ndim else spread(t, numbers), index, numbers)


ADDED = Op(
    "added_at",
    _infer_written("scatter_add"),
    (lambda g, ans, x, source, numbers, index: g, _added_rule, None),
    (lambda t, ans, x, source, numbers, index: t, _added_jvp, None),
    loop_dtypes=_dtypes,
)


def _infer_last(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    places: Any = GATHER.infer(specs, attrs)
    return spec(places.shape, np.dtype(bool), places.device)


# True for the elements whose place no later element is written to.
LAST = Op(
    "last_written",
    _infer_last,
    (None, None),
    (None, None),
    loop_dtypes=lambda s: tuple(one.dtype for one in s),
)


def _kept(g: Any, ans: Any, x: Any, source: Any, numbers: Any, index: Index) -> Any:
    return apply(WRITTEN, (g, 0.0, numbers), (index,))


def _written_rule(g: Any, ans: Any, x: Any, source: Any, numbers: Any, index: Index) -> Any:
    last = apply(LAST, (x, numbers), (index,))
    return _like(where(last, _at(g, numbers, index), 0.0), source)


def _written_jvp(t: Any, ans: Any, x: Any, source: Any, numbers: Any, index: Index) -> Any:
    last = apply(LAST, (x, numbers), (index,))
    return Placed(where(last, t, 0.0), index, numbers)


WRITTEN = Op(
    "written_at",
    _infer_written("scatter"),
    (_kept, _written_rule, None),
    (_kept, _written_jvp, None),
    loop_dtypes=_dtypes,
)


def scatter(x: Any, axis: int, index: Any, source: Any, reduce: str | None = None) -> Any:
    """Return `x` with other elements at numbered places along an axis, as ``torch.scatter`` does.

    Parameters
    ----------
    x : Var or array_like
        At least one axis.
    axis : int
        The axis.
    index : Var or array_like of int
        As many axes as `x`; each number names a place in its own row along the axis. Other axes may be shorter than
        those of `x`, and then stand for their beginning.
    source : Var, array_like or number
        The elements, in the shape of `index` or a larger one, whose beginning counts; or one number for all places.
    reduce : {None, "add"}
        ``"add"`` is ``scatter_add``.

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
    if reduce == "add":
        return scatter_add(x, axis, index, source)
    if reduce is not None:
        raise DTypeError(
            f'scatter: reduce={reduce!r} is neither None nor "add"; products and extrema of what goes to one place '
            "are rg.segment_max and its relatives."
        )
    return _along("scatter", WRITTEN, x, axis, index, source)


def scatter_add(x: Any, axis: int, index: Any, source: Any) -> Any:
    """Return `x` with elements added at numbered places along an axis, as ``torch.scatter_add`` does.

    Parameters
    ----------
    x : Var or array_like
        At least one axis.
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
    return _along("scatter_add", ADDED, x, axis, index, source)


def _along(name: str, op: Op, x: Any, axis: int, index: Any, source: Any) -> Any:
    x, numbers = given(x), numbers_of(name, index)
    axis = checked_axis(name, x, axis)
    same_axes(name, x, numbers)
    return apply(op, (x, _beginning(source, numbers), numbers), (along(axis, short=True),))


def _beginning(source: Any, numbers: Any) -> Any:
    """Return the elements for which there are numbers."""
    if isinstance(source, int | float | complex):
        return source
    source = given(source)
    shape, wanted = (
        known_shape(one) if isinstance(one, Handle) else one.shape for one in (source, numbers)
    )
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
        At least one axis.
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
    x, numbers = given(x), numbers_of("index_add", index)
    one_axis("index_add", numbers)
    rows = given(source) if alpha == 1 and not isinstance(alpha, Handle) else given(source) * alpha
    return apply(ADDED, (x, rows, numbers), (rows_at(checked_axis("index_add", x, axis)),))
