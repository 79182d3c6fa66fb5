"""Shape rules and algebra that all of linear algebra shares.

Gradients of complex matrices follow ``ops._complex``: the gradient of a real number by ``z`` holds no
conjugate, so that rules of holomorphic functions take transposes where textbooks take adjoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, MatrixShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _solve as kernels
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._complex import conj, real
from reactgrad.ops._layout import swap_last
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import common_device

Length = int | None

_WIDER = np.dtype(np.float64)


def float_dtype(name: str, *dtypes: Any) -> Any:
    """Return the dtype in which NumPy's linear algebra computes; integers and booleans as float64.

    Raises
    ------
    DTypeError
        For half floats and for what holds no numbers.
    """
    wide = []
    for dtype in dtypes:
        if dtype.char not in "fdFD" and dtype.kind not in "iub":
            raise DTypeError(
                f"{name} of {dtype}: LAPACK computes in float32, float64, complex64 and complex128. "
                "Convert first, x.astype('float32')."
            )
        wide.append(dtype if dtype.kind in "fc" else _WIDER)
    return np.result_type(*wide)


def real_dtype(dtype: Any) -> Any:
    """Return the dtype of the real parts of numbers of this dtype."""
    return np.empty(0, dtype).real.dtype


def matrix_shape(name: str, one: Spec) -> tuple[tuple[Length, ...], Length, Length]:
    """Return the shape of a batch of matrices, and the numbers of their rows and columns.

    Raises
    ------
    MatrixShapeError
        If there are less than two axes.
    """
    if len(one.shape) < 2:
        raise MatrixShapeError(
            f"{name} of {one!r}: it takes a matrix, or an array of them in its last two axes. Add an axis "
            "with x[:, None] if this is a column."
        )
    return one.shape[:-2], one.shape[-2], one.shape[-1]


def square_shape(name: str, one: Spec) -> tuple[tuple[Length, ...], Length]:
    """Return the shape of a batch of square matrices, and the number of their rows.

    Raises
    ------
    MatrixShapeError
        If they are no square matrices.
    """
    batch, m, n = matrix_shape(name, one)
    if m != n and m is not None and n is not None:
        raise MatrixShapeError(
            f"{name} of {one!r}: its matrices have {m} rows and {n} columns; they must be square."
        )
    return batch, n if m is None else m


def alike(name: str) -> Any:
    """Return the shape rule of a function of square matrices whose result has the same shape."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,) = specs
        batch, n = square_shape(name, one)
        return spec((*batch, n, n), float_dtype(name, one.dtype), one.device)

    return infer


def first_alike(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    """Return the spec of a result with the shape of the first operand."""
    dtype = np.result_type(*[one.dtype for one in specs])
    return spec(specs[0].shape, dtype, common_device("linalg", specs))


def nodes(operands: Sequence[Any]) -> list[Any]:
    """Return operands as nodes of one graph."""
    return [node(one, *operands) for one in operands]


def is_complex(x: Any) -> bool:
    """Return whether a node holds complex numbers."""
    return x.dtype.kind == "c"


def conjugate(x: Any) -> Any:
    """Return complex conjugates; real numbers as they are, without a node."""
    return conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return swap_last(conjugate(x))


def real_part(x: Any) -> Any:
    """Return real parts; real numbers as they are, without a node."""
    return real(x) if is_complex(x) else x


def column(x: Any) -> Any:
    """Return numbers of rows as a factor of the rows of matrices."""
    return x[..., :, None]


def row(x: Any) -> Any:
    """Return numbers of columns as a factor of the columns of matrices."""
    return x[..., None, :]


def _infer_triangle(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return specs[0]


TRIANGLE = Op(
    "triangle",
    _infer_triangle,
    (lambda g, ans, x, lower, diagonal: triangle(g, lower, diagonal),),
    (LINEAR,),
)

IDENTITY = Op("identity_like", first_alike, (None,), (None,))


def triangle(x: Any, lower: bool, diagonal: float) -> Any:
    """Return the lower or the upper triangle of matrices, with the diagonal times a number."""
    return apply(TRIANGLE, (x,), (lower, float(diagonal)))


def identity_like(x: Any) -> Any:
    """Return identity matrices in the shape and dtype of `x`."""
    return apply(IDENTITY, (x,))


def hermitian_part(x: Any) -> Any:
    """Return ``(x + x^H) / 2``."""
    return (x + adjoint(x)) * 0.5


add_kernels(kernels.register, on_host(kernels.NAMES))
