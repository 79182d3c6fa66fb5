"""Polynomials by their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._astype import astype
from reactgrad.ops._join import concatenate
from reactgrad.ops._split import unbind
from reactgrad.ops.special._polynomials import polymul


def poly(seq_of_zeros: Any) -> Any:
    """Return the coefficients of the polynomial that has these zeros, the highest power first.

    Parameters
    ----------
    seq_of_zeros : Var or array_like, shape (n,)
        With a known length. Of a matrix NumPy's function takes the eigenvalues: write
        ``rg.poly(rg.linalg.eigvals(m))``.

    Returns
    -------
    Var
        Shape (n + 1,), of floats or complex numbers as the zeros are.

    Raises
    ------
    ShapeError
        If there is another number of axes, or the length is not known.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     p = rg.poly([1.0, -2.0])
    >>> p.value
    array([ 1.,  1., -2.])
    """
    zeros: Any = (
        seq_of_zeros
        if isinstance(seq_of_zeros, Handle)
        else graph_of((seq_of_zeros,)).const(seq_of_zeros)
    )
    if zeros.ndim != 1 or zeros.shape[0] is None:
        raise ShapeError(
            f"rg.poly of zeros of shape {zeros.shape}: they lie along one axis of a known length. Of a matrix write "
            "rg.poly(rg.linalg.eigvals(m))."
        )
    if zeros.dtype.kind not in "fc":
        zeros = astype(zeros, np.float64)
    one = zeros._graph.const(np.ones(1, zeros.dtype))
    found = one
    for zero in unbind(zeros) if zeros.shape[0] else ():
        found = polymul(found, concatenate([one, -zero.reshape(1)]))
    return found
