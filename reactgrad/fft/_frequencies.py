"""The frequencies of a spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.nodes._handle import Handle, current_graph


def fftfreq(n: int, d: Any = 1.0) -> Any:
    """Return the frequencies of the numbers of ``rg.fft.fft``, in cycles per unit of the distance `d`.

    Parameters
    ----------
    n : int
        The number of points.
    d : Var or float
        The distance of two points.

    Returns
    -------
    Var
        Shape (n,), float64: 0, 1, ..., then the negative ones, over ``n * d``. A constant, unless `d` is a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fftfreq(4, 0.5)
    >>> y.value
    array([ 0. ,  0.5, -1. , -0.5])
    """
    return _frequencies(np.fft.fftfreq, n, d)


def rfftfreq(n: int, d: Any = 1.0) -> Any:
    """Return the frequencies of the numbers of ``rg.fft.rfft``, in cycles per unit of the distance `d`.

    Parameters
    ----------
    n : int
        The number of points.
    d : Var or float
        The distance of two points.

    Returns
    -------
    Var
        Shape (n // 2 + 1,), float64: 0, 1, ..., over ``n * d``. A constant, unless `d` is a Var.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.rfftfreq(4, 0.5)
    >>> y.value
    array([0. , 0.5, 1. ])
    """
    return _frequencies(np.fft.rfftfreq, n, d)


def _frequencies(function: Any, n: int, d: Any) -> Any:
    if isinstance(d, Handle):
        return d._graph.const(function(n)) / d  # type: ignore[attr-defined]
    return current_graph().const(function(n, d))
