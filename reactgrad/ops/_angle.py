"""The angle of a complex number."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.ops._astype import astype
from reactgrad.ops._complex import imag, real
from reactgrad.ops._elementwise import arctan2
from reactgrad.ops._operand import holds, node


def angle(x: Any, /) -> Any:
    """Return the angles of complex numbers with the positive real axis, in radians.

    Parameters
    ----------
    x : Var or array_like
        Any shape; complex numbers, or real ones.

    Returns
    -------
    Var
        From -pi to pi, in the shape of `x`. The gradient at 0 is 0.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.angle([1.0j, -1.0])
    >>> y.value
    array([1.57079633, 3.14159265])
    """
    x = node(x)
    if holds(x, np.bool_):  # as in NumPy, of which only the shortest integers give half floats
        x = astype(x, np.float64)
    return arctan2(imag(x), real(x))
