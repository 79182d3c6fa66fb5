"""Parts of complex numbers.

Gradients follow JAX: that of a real number by a complex ``z = x + iy`` is ``d/dx - i d/dy``, so that a
step ``dz`` changes the number by the real part of ``gradient * dz``. Then holomorphic functions need no
rule of their own, and no product takes a conjugate; the functions here, ``absolute`` and ``sign`` do.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op


def _part_dtype(dtype: Any) -> Any:
    return np.empty(0, dtype).real.dtype


def _infer_part(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    return spec(one.shape, _part_dtype(one.dtype), one.device)


def _infer_conj(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    dtype = np.dtype(np.int8) if one.dtype.kind == "b" else one.dtype  # as NumPy has it
    return spec(one.shape, dtype, one.device)


def _imag_rule(g: Any, ans: Any, x: Any) -> Any:
    return g * -1j if x.dtype.kind == "c" else None


def _operand_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype,)


# A real gradient becomes a complex one where it meets a complex operand.
REAL: Final = Op(
    "real",
    _infer_part,
    (lambda g, ans, x: g,),
    (LINEAR,),
    elementwise=True,
    loop_dtypes=_operand_loop,
)
IMAG: Final = Op(
    "imag", _infer_part, (_imag_rule,), (LINEAR,), elementwise=True, loop_dtypes=_operand_loop
)
CONJ: Final = Op("conj", _infer_conj, (lambda g, ans, x: conj(g),), (LINEAR,), elementwise=True)


def real(x: Any, /) -> Any:
    """Return the real parts.

    Parameters
    ----------
    x : Var or array_like
        Any shape; complex numbers, or real ones.

    Returns
    -------
    Var
        Of real numbers, in the shape of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.real([1.0 + 2.0j, 3.0])
    >>> y.value
    array([1., 3.])
    """
    return apply(REAL, (x,))


def imag(x: Any, /) -> Any:
    """Return the imaginary parts; 0 for real numbers.

    Parameters
    ----------
    x : Var or array_like
        Any shape; complex numbers, or real ones.

    Returns
    -------
    Var
        Of real numbers, in the shape of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.imag([1.0 + 2.0j, 3.0])
    >>> y.value
    array([2., 0.])
    """
    return apply(IMAG, (x,))


def conj(x: Any, /) -> Any:
    """Return the complex conjugates.

    Parameters
    ----------
    x : Var or array_like
        Any shape; complex numbers, or real ones.

    Returns
    -------
    Var
        In the shape and dtype of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.conj([1.0 + 2.0j, 3.0])
    >>> y.value
    array([1.-2.j, 3.-0.j])
    """
    return apply(CONJ, (x,))
