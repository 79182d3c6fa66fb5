"""Matrices with ones on a diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import current_graph


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, device: str | None = None
) -> Any:
    """Return a constant matrix with ones on a diagonal, in the current graph.

    Parameters
    ----------
    N, M : int
        The numbers of rows and columns; by default as many columns as rows.
    k : int
        The diagonal: 0 for the main one, positive above it.
    dtype : dtype_like
        Its dtype.
    device : str, optional
        Its device; by default that of the graph.

    Returns
    -------
    Var

    Raises
    ------
    DTypeError
        If `dtype` has no kernels.
    DeviceError
        If there is no such device.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.eye(2, 3, 1)
    >>> x.value
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    return current_graph().const(np.eye(N, M, k, read_dtype("eye", dtype)), device=device)


def identity(n: int, dtype: Any = float, *, device: str | None = None) -> Any:
    """Return a constant square matrix with ones on its diagonal, see `eye`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.identity(2, int)
    >>> x.value
    array([[1, 0],
           [0, 1]])
    """
    return eye(n, dtype=dtype, device=device)
