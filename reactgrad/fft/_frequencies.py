"""The frequencies of a spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import Handle, current_graph


def fftfreq(n: int, d: Any = 1.0, device: str | None = None, *, dtype: Any = None) -> Any:
    """Return the frequencies of the numbers of ``rg.fft.fft``, in cycles per unit of the distance `d`.

    Parameters
    ----------
    n : int
        The number of points.
    d : Var or float
        The distance of two points.
    device : str, optional
        The device, by default that of the graph.
    dtype : dtype_like, optional
        The dtype, by default float64.

    Returns
    -------
    Var
        Shape (n,): 0, 1, ..., then the negative ones, over ``n * d``. A constant, unless `d` is a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fftfreq(4, 0.5)
    >>> y.value
    array([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies(np.fft.fftfreq, n, d, device, dtype)


def rfftfreq(n: int, d: Any = 1.0, device: str | None = None, *, dtype: Any = None) -> Any:
    """Return the frequencies of the numbers of ``rg.fft.rfft``, in cycles per unit of the distance `d`.

    Parameters
    ----------
    n : int
        The number of points.
    d : Var or float
        The distance of two points.
    device : str, optional
        The device, by default that of the graph.
    dtype : dtype_like, optional
        The dtype, by default float64.

    Returns
    -------
    Var
        Shape (n // 2 + 1,): 0, 1, ..., over ``n * d``. A constant, unless `d` is a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.rfftfreq(4, 0.5)
    >>> y.value
    array([0. , 0.5, 1. ])
    """
    return _frequencies(np.fft.rfftfreq, n, d, device, dtype)


def _frequencies(function: Any, n: int, d: Any, device: str | None, dtype: Any) -> Any:
    graph: Any = d._graph if isinstance(d, Handle) else current_graph()
    values = function(n) if isinstance(d, Handle) else function(n, d)
    if dtype is not None:
        values = values.astype(read_dtype("fft.fftfreq", dtype))
    found = graph.const(values, device=device)
    return found / d if isinstance(d, Handle) else found
