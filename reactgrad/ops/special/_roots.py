"""Polynomials by their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.ops._deferred import deferred
from reactgrad.ops._join import concatenate
from reactgrad.ops._lengths import with_length
from reactgrad.ops._operand import in_dtype
from reactgrad.ops._split import unbind
from reactgrad.ops.special._polynomials import polymul

# The dtypes that stay; NumPy makes float64 of others (``np.mintypecode``).
_KEPT = "fFdDgG"


@deferred
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
        If there is another number of axes, or the length is not known; later, if it changes.

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
    zeros = in_dtype(zeros, zeros.dtype if zeros.dtype.char in _KEPT else np.float64)
    # A product of as many factors as there are zeros now.
    zeros = with_length("poly", zeros, 0, zeros.shape[0])
    one = zeros._graph.const(np.ones(1, zeros.dtype), device=zeros.device)
    found = one
    for zero in unbind(zeros) if zeros.shape[0] else ():
        found = polymul(found, concatenate([one, -zero.reshape(1)]))
    return found
