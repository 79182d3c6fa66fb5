"""Rows joined by the number of their segment: segment_sum, segment_mean, segment_max, segment_min."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _segments as _kernels
from reactgrad.nodes._handle import Handle, apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred_each
from reactgrad.ops._elementwise import equal, maximum
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._operand import given, holds, known_dtype
from reactgrad.ops._places import Index, rows_at
from reactgrad.ops._shapes import common_device
from reactgrad.ops.ordering._take import numbers_of, take
from reactgrad.scheduler import safe_repr

add_kernels(_kernels.register, on_host(_kernels.NAMES))


def _segments(
    name: str, specs: tuple[Spec, ...], count: int | None
) -> tuple[int | None, ...] | None:
    """Return the shape of the result; ``None`` if only the numbers show how many segments there are."""
    data, numbers = specs
    if numbers.dtype.kind not in "iu":
        raise DTypeError(f"{name}: the numbers of segments are integers, not {safe_repr(numbers)}.")
    if (
        len(numbers.shape) != 1
        or not data.shape
        or (None not in (numbers.shape[0], data.shape[0]) and numbers.shape[0] != data.shape[0])
    ):
        raise ShapeError(
            f"{name} of {safe_repr(data)}: there is one number of a segment for each row, and not {safe_repr(numbers)}."
        )
    return None if count is None else (count, *data.shape[1:])


def _infer_sum(specs: tuple[Spec, ...], attrs: Attrs) -> Spec | None:
    shape = _segments("segment_sum", specs, attrs[0])
    if shape is None:
        return None
    dtype = np.add.reduce(np.zeros(0, specs[0].dtype)).dtype
    return spec(shape, dtype, common_device("segment_sum", specs))


def _infer_extremum(name: str) -> Any:
    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec | None:
        if specs[0].dtype.kind == "c":
            raise DTypeError(f"{name} of {specs[0]!r}: complex numbers have no largest one.")
        shape = _segments(name, specs, attrs[0])
        return None if shape is None else spec(shape, specs[0].dtype, common_device(name, specs))

    return infer


def _dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype, np.dtype(np.intp))


SEGMENT_SUM = Op(
    "segment_sum",
    _infer_sum,
    (lambda g, ans, data, numbers, count, index: take(g, numbers, axis=0), None),
    (LINEAR, None),
    loop_dtypes=_dtypes,
)


def _chosen(dtype: Any, ans: Any, data: Any, numbers: Any, count: int | None) -> Any:
    """Return the derivative of each segment's extremum by each row; ties share it."""
    # Half floats count up to 2048.
    wide = np.dtype(np.float32 if dtype == np.float16 else dtype or np.float64)
    chosen = astype(equal(data, take(ans, numbers, axis=0)), wide)
    ties = _sum(chosen, numbers, count)
    return chosen / take(maximum(ties, 1.0), numbers, axis=0)


def _in(dtype: Any, x: Any) -> Any:
    return x if dtype is None or holds(x, dtype) else astype(x, dtype)


def _extremum_rule(
    g: Any, ans: Any, data: Any, numbers: Any, count: int | None, index: Index
) -> Any:
    dtype = known_dtype(g)
    return _in(dtype, take(g, numbers, axis=0) * _chosen(dtype, ans, data, numbers, count))


def _extremum_jvp(
    t: Any, ans: Any, data: Any, numbers: Any, count: int | None, index: Index
) -> Any:
    dtype = known_dtype(t)
    return _in(dtype, _sum(t * _chosen(dtype, ans, data, numbers, count), numbers, count))


_EXTREMUM = ((_extremum_rule, None), (_extremum_jvp, None))
SEGMENT_MAX = Op("segment_max", _infer_extremum("segment_max"), *_EXTREMUM, loop_dtypes=_dtypes)
SEGMENT_MIN = Op("segment_min", _infer_extremum("segment_min"), *_EXTREMUM, loop_dtypes=_dtypes)


def _sum(data: Any, numbers: Any, count: int | None) -> Any:
    return apply(SEGMENT_SUM, (data, numbers), (count, rows_at(0)))


def _operands(
    name: str, data: Any, segment_ids: Any, num_segments: int | None
) -> tuple[Any, Any, int | None]:
    numbers = numbers_of(name, segment_ids)
    if num_segments is None and not isinstance(numbers, Handle):
        num_segments = int(numbers.max()) + 1 if numbers.size else 0
    return (
        given(data),
        numbers,
        None if num_segments is None else whole(name, "num_segments", num_segments, 0),
    )


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """Return the sum of the rows of each segment.

    Parameters
    ----------
    data : Var or array_like
        At least one axis, the first one of which holds the rows.
    segment_ids : Var or array_like of int
        The number of each row's segment, from 0, in any order.
    num_segments : int, optional
        The number of segments; by default one more than the largest number. Where that is a Var, it shows only when
        it has been computed.

    Returns
    -------
    Var
        One row for each segment; zeros for one without rows. Short floats add up in float64.

    Raises
    ------
    IndexingError
        If a number is negative or not less than `num_segments`, when it is computed.
    ShapeError
        If there is not one number for each row.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.segment_sum([1.0, 2.0, 4.0], [0, 2, 0], 3)
    >>> y.value
    array([5., 0., 2.])
    """
    return _sum(*_operands("segment_sum", data, segment_ids, num_segments))


@deferred_each(without=("segment_ids",))
def segment_mean(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """Return the mean of the rows of each segment.

    Parameters
    ----------
    data : Var or array_like
        At least one axis, the first one of which holds the rows.
    segment_ids : Var or array_like of int
        The number of each row's segment, from 0, in any order.
    num_segments : int, optional
        The number of segments; by default one more than the largest number. Where that is a Var, it shows only when
        it has been computed.

    Returns
    -------
    Var
        One row for each segment; zeros for one without rows.

    Raises
    ------
    IndexingError
        If a number is negative or not less than `num_segments`, when it is computed.
    ShapeError
        If there is not one number for each row.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.segment_mean([1.0, 2.0, 4.0], [0, 2, 0], 3)
    >>> y.value
    array([2.5, 0. , 2. ])
    """
    data, numbers, count = _operands("segment_mean", data, segment_ids, num_segments)
    dtype = data.dtype
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    wide = {"e": np.dtype(np.float32)}.get(dtype.char, dtype)  # half floats end at 65504
    total = _sum(astype(data, wide) if data.dtype != wide else data, numbers, count)
    ones: Any = np.ones(numbers.shape, total.dtype)
    if isinstance(numbers, Handle):
        ones = astype(equal(numbers, numbers), total.dtype)
    elif isinstance(data, Handle):
        ones = data._graph.const(ones)
    mean = total / _beside(maximum(_sum(ones, numbers, count), 1.0), data)
    return _in(dtype, mean)


def _beside(rows: Any, data: Any) -> Any:
    """Return one number for each row in a shape that broadcasts with the rows of `data`."""
    return expand_dims(rows, tuple(range(1, data.ndim))) if data.ndim > 1 else rows


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """Return the largest elements of the rows of each segment.

    Parameters
    ----------
    data : Var or array_like
        At least one axis, the first one of which holds the rows.
    segment_ids : Var or array_like of int
        The number of each row's segment, from 0, in any order.
    num_segments : int, optional
        The number of segments; by default one more than the largest number. Where that is a Var, it shows only when
        it has been computed.

    Returns
    -------
    Var
        One row for each segment; for one without rows minus infinity, or the least integer. Ties share the gradient.

    Raises
    ------
    IndexingError
        If a number is negative or not less than `num_segments`, when it is computed.
    ShapeError
        If there is not one number for each row.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.segment_max([1.0, 2.0, 4.0], [0, 1, 0])
    >>> y.value
    array([4., 2.])
    """
    data, numbers, count = _operands("segment_max", data, segment_ids, num_segments)
    return apply(SEGMENT_MAX, (data, numbers), (count, rows_at(0)))


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """Return the smallest elements of the rows of each segment.

    Parameters
    ----------
    data : Var or array_like
        At least one axis, the first one of which holds the rows.
    segment_ids : Var or array_like of int
        The number of each row's segment, from 0, in any order.
    num_segments : int, optional
        The number of segments; by default one more than the largest number. Where that is a Var, it shows only when
        it has been computed.

    Returns
    -------
    Var
        One row for each segment; for one without rows infinity, or the largest integer. Ties share the gradient.

    Raises
    ------
    IndexingError
        If a number is negative or not less than `num_segments`, when it is computed.
    ShapeError
        If there is not one number for each row.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.segment_min([1.0, 2.0, 4.0], [0, 1, 0])
    >>> y.value
    array([1., 2.])
    """
    data, numbers, count = _operands("segment_min", data, segment_ids, num_segments)
    return apply(SEGMENT_MIN, (data, numbers), (count, rows_at(0)))
