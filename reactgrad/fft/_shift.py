"""Spectra with the frequency 0 in the middle, and back."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _shift as _standard
from reactgrad.backend.numpy import _shift
from reactgrad.fft._arguments import integer
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._shapes import normal_axes

add_kernels(_shift.register, _standard.register)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    normal_axes("fft.ifftshift" if attrs[1] else "fft.fftshift", attrs[0], len(one.shape))
    return spec(one.shape, one.dtype, one.device)


# Attributes: the axes, and whether to shift back. A shift is a permutation: its transpose is its inverse.
SHIFT: Final = Op(
    "fftshift",
    _infer,
    (lambda g, ans, x, axes, back: apply(SHIFT, (g,), (axes, not back)),),
    (LINEAR,),
)


def fftshift(x: Any, axes: Any = None) -> Any:
    """Return a spectrum with its frequency 0 in the middle.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axes : int or sequence of int, optional
        The axes to shift; by default all.

    Returns
    -------
    Var
        In the shape and dtype of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fftshift([0, 1, 2, -2, -1])
    >>> y.value
    array([-2, -1,  0,  1,  2])
    """
    return apply(SHIFT, (x,), (_axes("fftshift", axes), False))


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Return the inverse of ``rg.fft.fftshift``.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    axes : int or sequence of int, optional
        The axes to shift; by default all.

    Returns
    -------
    Var
        In the shape and dtype of `x`.

    Raises
    ------
    AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.ifftshift([-2, -1, 0, 1, 2])
    >>> y.value
    array([ 0,  1,  2, -2, -1])
    """
    return apply(SHIFT, (x,), (_axes("ifftshift", axes), True))


def _axes(name: str, axes: Any) -> tuple[int, ...] | None:
    if axes is None:
        return None
    many = axes if isinstance(axes, list | tuple) or getattr(axes, "ndim", 0) else (axes,)
    return tuple([integer(name, axis) for axis in many])
