"""Transforms along any number of axes, one op each, and their transposes.

With gradients as JAX has them (see ``ops._complex``) the gradient of a linear function is its transpose. A
complex transform is symmetric, so it is its own. Transforms between real numbers and half of a spectrum have
transposes that are ops of their own, since the numbers of that half count once or twice. These two are
transposes of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _fft as _standard
from reactgrad.backend.numpy import _fft
from reactgrad.fft._arguments import Axes, Lengths
from reactgrad.fft._fit import fitted
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Infer, Op
from reactgrad.ops._shapes import normal_axes

add_kernels(_fft.register, _standard.register)

# From the length of an axis and that of the transform, to the length of the result.
_Ending = Callable[[int | None, int | None], int | None]
# From the name, the dtype of the operand and the number of axes, to the dtype of the result.
_Kind = Callable[[str, Any, int], Any]


def _half(n: int | None) -> int | None:
    return None if n is None else n // 2 + 1


def _whole(m: int | None) -> int | None:
    return None if m is None else 2 * (m - 1)


def _shape_rule(name: str, last: _Ending, dtype_of: _Kind) -> Infer:
    """Return the shape rule of a transform; `last` gives the length of the last axis."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,), (lengths, axes, _) = specs, attrs
        ndim = len(one.shape)
        along = normal_axes(f"fft.{name}", axes, ndim)
        if not along:
            raise ShapeError(f"fft.{name} of {one!r}: it needs an axis.")
        given = lengths or (None,) * len(along)
        shape = list(one.shape)
        for axis, n in zip(along, given, strict=True):
            ends = axis == along[-1]
            found = last(shape[axis], n) if ends else shape[axis] if n is None else n
            if (found is not None and found < 1) or (shape[axis] == 0 and n is None):
                raise ShapeError(
                    f"fft.{name} of {one!r}: a transform along axis {axis} has no points; it needs one, or more."
                )
            shape[axis] = found
        return spec(tuple(shape), dtype_of(name, one.dtype, len(along)), one.device)

    return infer


def _complex(name: str, dtype: Any, axes: int) -> Any:
    return np.dtype(np.complex64 if dtype.char in "efF" else np.complex128)


def _complex_of_real(name: str, dtype: Any, axes: int) -> Any:
    if dtype.kind == "c":
        raise DTypeError(
            f"fft.{name} of {dtype}: it takes real numbers; for complex ones use rg.fft.fft or rg.fft.fftn."
        )
    return _complex(name, dtype, axes)


def _real(name: str, dtype: Any, axes: int) -> Any:
    if (
        dtype.char == "e" and axes == 1
    ):  # along several axes NumPy has made complex numbers of it before
        return dtype
    return np.dtype(np.float32 if dtype.char in "efF" else np.float64)


def _of_axis(m: int | None, n: int | None) -> int | None:
    return m if n is None else n


def _cut(x: Any, like: Any, lengths: Lengths) -> Any:
    """Return a gradient in the lengths of the operand that a transform has cut or filled up."""
    return x if lengths is None else fitted(x, like.shape)


def _fft_rule(g: Any, ans: Any, x: Any, lengths: Lengths, axes: Axes, norm: str) -> Any:
    return _cut(apply(FFT, (g,), (None, axes, norm)), x, lengths)


def _ifft_rule(g: Any, ans: Any, x: Any, lengths: Lengths, axes: Axes, norm: str) -> Any:
    return _cut(apply(IFFT, (g,), (None, axes, norm)), x, lengths)


def _rfft_rule(g: Any, ans: Any, x: Any, lengths: Lengths, axes: Axes, norm: str) -> Any:
    """Transpose rfft. The length of the last axis cannot be seen from the gradient's."""
    along = normal_axes("fft.rfft", axes, x.ndim)
    n = lengths[-1] if lengths and lengths[-1] is not None else x.shape[along[-1]]
    whole = (*(None,) * (len(along) - 1), n)
    return _cut(apply(RFFT_TRANSPOSED, (g,), (whole, axes, norm)), x, lengths)


def _irfft_rule(g: Any, ans: Any, x: Any, lengths: Lengths, axes: Axes, norm: str) -> Any:
    return _cut(apply(IRFFT_TRANSPOSED, (g,), (None, axes, norm)), x, lengths)


def _rfft_back(g: Any, ans: Any, x: Any, _: Lengths, axes: Axes, norm: str) -> Any:
    return apply(RFFT, (g,), (None, axes, norm))


def _irfft_back(g: Any, ans: Any, x: Any, _: Lengths, axes: Axes, norm: str) -> Any:
    along = normal_axes("fft.irfft", axes, x.ndim)
    return apply(IRFFT, (g,), ((*(None,) * (len(along) - 1), x.shape[along[-1]]), axes, norm))


def _op(name: str, last: _Ending, dtype_of: _Kind, rule: Any) -> Op:
    return Op(name, _shape_rule(name, last, dtype_of), (rule,), (LINEAR,))


# Attributes of all: lengths (of the last axis always that of the real numbers), axes, and norm.
# fmt: off
FFT: Final              = _op("fft",              _of_axis,                            _complex,         _fft_rule)
IFFT: Final             = _op("ifft",             _of_axis,                            _complex,         _ifft_rule)
RFFT: Final             = _op("rfft",             lambda m, n: _half(_of_axis(m, n)),  _complex_of_real, _rfft_rule)
IRFFT: Final            = _op("irfft",            lambda m, n: _of_axis(_whole(m), n), _real,            _irfft_rule)
RFFT_TRANSPOSED: Final  = _op("rfft_transposed",  lambda m, n: n,                      _real,            _rfft_back)
IRFFT_TRANSPOSED: Final = _op("irfft_transposed", lambda m, n: _half(m),               _complex,         _irfft_back)
# fmt: on
