"""Diagonals: taken from a matrix, where they are views, put into one, and summed."""

from __future__ import annotations

from typing import Any, Final

from reactgrad._calls import MOST_OF_C, whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, read_dtype, spec
from reactgrad.backend.array_api import _diagonal as _standard
from reactgrad.backend.numpy import _diagonal
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import reshape
from reactgrad.ops._reduce import axis_of, sum
from reactgrad.ops._shapes import AxisError, normal_axis
from reactgrad.ops.products._operands import variables

add_kernels(_diagonal.register, _standard.register)

# Attributes of both ops: the offset, the two axes, and whether these must have one length.


def _both(one: Spec, ndim: int, attrs: Attrs) -> tuple[int, int]:
    _, axis1, axis2, _ = attrs[-4:]
    if ndim < 2:
        raise ShapeError(f"diagonal of {one!r}: it needs two axes, or more.")
    first, second = normal_axis("diagonal", axis1, ndim), normal_axis("diagonal", axis2, ndim)
    if first == second:
        raise AxisError(f"diagonal of {one!r}: axis1 and axis2 are the same axis, {first}.")
    return first, second


def _infer_diagonal(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    first, second = _both(one, len(one.shape), attrs)
    offset, _, _, same = attrs
    m, n = one.shape[first], one.shape[second]
    if same and m != n and m is not None and n is not None:
        raise ShapeError(
            f"einsum of {one!r}: axes {first} and {second} have one label and lengths {m} and {n}. Axes with "
            "one label have one length."
        )
    length = None
    if m is not None and n is not None:
        length = max(0, min(m, n - offset) if offset >= 0 else min(m + offset, n))
    rest = [length for i, length in enumerate(one.shape) if i not in (first, second)]
    return spec((*rest, length), one.dtype, one.device)


def _diagonal_rule(g: Any, ans: Any, x: Any, *attrs: Any) -> Any:
    return apply(PLACE_DIAGONAL, (g,), (x.shape, *attrs))


def _view(x: Any, offset: int, axis1: int, axis2: int, same: bool) -> Any:
    return x.diagonal(offset, axis1, axis2)


DIAGONAL: Final = Op("diagonal", _infer_diagonal, (_diagonal_rule,), (LINEAR,), view=_view)


def _infer_place(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    shape, offset = attrs[:2]
    if shape is None:
        if not one.shape:
            raise ShapeError(f"diag of {one!r}: it needs an axis.")
        n = one.shape[-1]
        size = None if n is None else n + abs(offset)
        shape = (*one.shape[:-1], size, size)
    return spec(shape, one.dtype, one.device)


def _place_rule(g: Any, ans: Any, x: Any, shape: Any, *attrs: Any) -> Any:
    return apply(DIAGONAL, (g,), attrs)


# The operand on a diagonal of zeros. The first attribute is the shape of the result; ``None`` for a square
# matrix in which the diagonal just fits.
PLACE_DIAGONAL: Final = Op("place_diagonal", _infer_place, (_place_rule,), (LINEAR,))


def same_diagonal(x: Any, axis1: int, axis2: int) -> Any:
    """Return the elements at which two axes of one length have the same index, along a new last axis."""
    return apply(DIAGONAL, (x,), (0, axis1, axis2, True))


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return a diagonal of each matrix.

    Parameters
    ----------
    a : Var or array_like
        At least two axes.
    offset : int
        The distance from the main diagonal, positive above it.
    axis1, axis2 : int
        The axes of the matrices.

    Returns
    -------
    Var
        A view: the shape of `a` without the two axes, and a last axis along the diagonal.

    Raises
    ------
    ShapeError
        If `a` has fewer axes.
    AxisError
        If an axis does not exist, or both are one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.diagonal([[1.0, 2.0], [3.0, 4.0]])
    >>> y.value
    array([1., 4.])
    """
    return apply(
        DIAGONAL,
        (a,),
        (
            whole("diagonal", "offset", offset, most=MOST_OF_C),
            axis_of(axis1),
            axis_of(axis2),
            False,
        ),
    )


@deferred
def diag(v: Any, k: int = 0) -> Any:
    """Return a diagonal of a matrix, or the matrix that has the vector `v` as a diagonal.

    Parameters
    ----------
    v : Var or array_like
        Shape (m, n), or (n,).
    k : int
        The distance from the main diagonal, positive above it.

    Returns
    -------
    Var
        A view of a matrix's diagonal; shape (n + abs(k), n + abs(k)) for a vector.

    Raises
    ------
    ShapeError
        If `v` has another number of axes; see ``rg.diagonal``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.diag([1.0, 2.0])
    >>> y.value
    array([[1., 0.],
           [0., 2.]])
    """
    (v,) = variables(v)
    if v.ndim not in (1, 2):
        raise ShapeError(
            f"diag of a value with {v.ndim} axes: it takes a vector or a matrix. Use rg.diagonal for the "
            "diagonals of several matrices."
        )
    if v.ndim == 2:
        return diagonal(v, k)
    return apply(PLACE_DIAGONAL, (v,), (None, whole("diag", "k", k, most=MOST_OF_C), -2, -1, True))


@deferred
def diagflat(v: Any, k: int = 0) -> Any:
    """Return the matrix that has all elements of `v` on a diagonal.

    Parameters
    ----------
    v : Var or array_like
        Any shape, of n elements.
    k : int
        The distance from the main diagonal, positive above it.

    Returns
    -------
    Var
        Shape (n + abs(k), n + abs(k)).

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.diagflat([[1.0], [2.0]])
    >>> y.value
    array([[1., 0.],
           [0., 2.]])
    """
    return diag(reshape(v, -1), k)


@deferred
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum of a diagonal of each matrix.

    Parameters
    ----------
    a : Var or array_like
        At least two axes; booleans and integers sum as integers.
    offset : int
        The distance from the main diagonal, positive above it.
    axis1, axis2 : int
        The axes of the matrices.
    dtype : dtype_like, optional
        The dtype in which to sum.

    Returns
    -------
    Var
        The shape of `a` without the two axes.

    Raises
    ------
    ShapeError
        If `a` has fewer axes.
    AxisError
        If an axis does not exist, or both are one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.trace([[1.0, 2.0], [3.0, 4.0]])
    >>> y.item()
    5.0
    """
    part = diagonal(a, offset, axis1, axis2)
    if dtype is None:
        return sum(part, -1)
    dtype = read_dtype("trace", dtype)
    found = sum(astype(part, dtype), -1)
    return found if found.dtype == dtype else astype(found, dtype)
