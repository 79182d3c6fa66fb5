"""Polynomials through points by least squares, as NumPy computes them: ``rg.polyfit``.

The columns of powers are scaled to length 1, and singular values that do not count are left out of the fit. All of it
is built of ops, so that the gradient is that of the fit that was made, also where points do not determine it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import DTypeError, ShapeError
from reactgrad.linalg._matrices import nodes
from reactgrad.linalg._pinv import lstsq
from reactgrad.ops._astype import astype
from reactgrad.ops._complex import imag, real
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import equal, sqrt, square
from reactgrad.ops._reduce import sum
from reactgrad.ops._where import where
from reactgrad.ops.products._vander import vander
from reactgrad.scheduler import safe_repr


@deferred
def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """Return the polynomial of a degree that is nearest to points, by least squares.

    Parameters
    ----------
    x : Var or array_like
        Shape (m,), at least one point.
    y : Var or array_like
        Shape (m,), or (m, k) for a series of points in each column.
    deg : int
        The degree.
    rcond : float, optional
        Singular values of the matrix of powers, its columns scaled to length 1, that are up to `rcond` times the
        largest one count as 0; by default m times the precision of the dtype of `x`, and of float64 where m is not
        known yet.
    full, cov
        NumPy's further results, which are not here; the error says how to have them.
    w : Var or array_like, optional
        Shape (m,): what the distance of each point is multiplied by, one over its standard deviation.

    Returns
    -------
    Var
        ``deg + 1`` coefficients, the highest power first, of shape (deg + 1,) or (deg + 1, k); float64 or complex128.
        Where points determine fewer, those that are shortest in the scaled powers. The gradient is that at constant
        rank, as of ``rg.linalg.lstsq``.

    Raises
    ------
    ShapeError
        If `x`, `y` and `w` have different lengths or too many axes, or there is no point.
    DTypeError
        If the degree is negative or no integer, or `full` or `cov` is given.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0], 1)
    >>> y.value.round(10)
    array([2., 1.])
    """
    _refuse_further_results(full, cov)
    deg = whole("polyfit", "deg", deg, 0)
    x, y, *weights = nodes((x, y) if w is None else (x, y, w))
    _check(x, y, *weights)
    if rcond is None and x.shape[0] is not None:
        kind = x.dtype if x.dtype.kind in "fc" else np.float64
        rcond = x.shape[0] * float(np.finfo(kind).eps)
    powers, y = vander(_wide(x), int(deg) + 1), _wide(y)
    if weights:
        column = _wide(weights[0])[:, None]
        powers, y = powers * column, y * (weights[0] if y.ndim == 1 else column)
    lengths = sum(_squares(powers), 0)
    lengths = sqrt(where(equal(lengths, 0.0), 1.0, lengths))
    found = lstsq(powers / lengths, y, rcond).x
    return found / (lengths if y.ndim == 1 else lengths[:, None])


def _refuse_further_results(full: Any, cov: Any) -> None:
    if full:
        raise DTypeError(
            "polyfit(full=True): it returns the coefficients alone. Write "
            "rg.linalg.lstsq(rg.vander(x, deg + 1), y) for residuals, rank and singular values."
        )
    if cov is not False:
        raise DTypeError(
            f"polyfit(cov={safe_repr(cov):.60}): it returns the coefficients alone. For V = "
            "rg.vander(x, deg + 1) their "
            "covariance is rg.linalg.inv(V.T @ V), times ((y - V @ p) ** 2).sum() / (len(x) - deg - 1)."
        )


def _check(x: Any, y: Any, *weights: Any) -> None:
    for one, axes in ((x, (1,)), (y, (1, 2)), *[(one, (1,)) for one in weights]):
        if one.ndim not in axes:
            raise ShapeError(
                f"polyfit of shapes {x.shape} and {y.shape}: x, w and y are series of points, of one axis; y may "
                "have one in each column."
            )
    lengths = {one.shape[0] for one in (x, y, *weights)} - {None}
    if len(lengths) > 1:
        raise ShapeError(
            f"polyfit of shapes {', '.join(str(one.shape) for one in (x, y, *weights))}: there is one y for each "
            "x, and one weight."
        )
    if 0 in lengths:
        raise ShapeError("polyfit of no points: it needs one.")


def _wide(x: Any) -> Any:
    dtype = np.result_type(x.dtype, np.float64)
    return x if x.dtype == dtype else astype(x, dtype)


def _squares(x: Any) -> Any:
    return square(real(x)) + square(imag(x)) if x.dtype.kind == "c" else square(x)
