"""Matrices of powers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._calls import whole
from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _vander as _standard
from reactgrad.backend.numpy import _vander
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._chain import times
from reactgrad.ops._layout import expand_dims
from reactgrad.ops._reduce import sum

add_kernels(_vander.register, _standard.register)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (count, _, _) = specs, attrs
    if len(one.shape) != 1:
        raise ShapeError(f"vander of {one!r}: it takes a vector.")
    columns = one.shape[0] if count is None else count
    return spec((one.shape[0], columns), np.promote_types(one.dtype, int), one.device)


def _slopes(x: Any, count: int | None, increasing: bool, order: int) -> Any:
    return apply(VANDER, (x,), (count, increasing, order + 1))


# Attributes: the number of powers, whether they increase, and how often each is differentiated.
VANDER: Final = Op(
    "vander",
    _infer,
    (lambda g, ans, x, *attrs: sum(times(g, _slopes(x, *attrs)), 1),),
    (lambda t, ans, x, *attrs: times(expand_dims(t, 1), _slopes(x, *attrs)),),
)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Return the powers of each element of a vector, in a row each.

    Parameters
    ----------
    x : Var or array_like
        Shape (n,).
    N : int, optional
        The number of powers, from 0; by default n.
    increasing : bool
        Whether powers grow from left to right, or the other way.

    Returns
    -------
    Var
        Shape (n, N), of the common dtype of `x` and int64, as in NumPy.

    Raises
    ------
    ShapeError
        If `x` is no vector, or `N` is negative.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.vander([2.0, 3.0], 3)
    >>> y.value
    array([[4., 2., 1.],
           [9., 3., 1.]])
    """
    count = None if N is None else whole("vander", "N", N, 0)
    return apply(VANDER, (x,), (count, bool(increasing), 0))
