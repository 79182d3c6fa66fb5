"""Transforms along one axis."""

from __future__ import annotations

from typing import Any

from reactgrad.fft._arguments import OTHER, integer, length_of, norm_of
from reactgrad.fft._transforms import FFT, IFFT, IRFFT, RFFT
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops import conj


def _transform(name: str, op: Op, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    lengths = None if n is None else (length_of(name, n),)
    return apply(op, (a,), (lengths, (integer(name, axis),), norm_of(name, norm)))


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the discrete Fourier transform along an axis.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    n : int, optional
        The number of points; a longer axis is cut, a shorter one filled up with zeros.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fft([1.0, 0.0, 0.0, 0.0])
    >>> y.value
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform("fft", FFT, a, n, axis, norm)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.fft``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    n : int, optional
        The number of points; a longer axis is cut, a shorter one filled up with zeros.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.ifft([4.0, 0.0, 0.0, 0.0])
    >>> y.value
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform("ifft", IFFT, a, n, axis, norm)


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the Fourier transform of real numbers, without the half that follows from the other one.

    Parameters
    ----------
    a : Var or array_like
        Real numbers.
    n : int, optional
        The number of points; a longer axis is cut, a shorter one filled up with zeros.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of complex numbers; length ``n // 2 + 1`` along the axis.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.rfft([1.0, 0.0, 0.0, 0.0])
    >>> y.value
    array([1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transform("rfft", RFFT, a, n, axis, norm)


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.rfft``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers, half of a spectrum.
    n : int, optional
        The number of real points; ``n // 2 + 1`` numbers of the axis count.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of real numbers; length n along the axis, by default ``2 * (m - 1)`` for m numbers.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.irfft([4.0, 0.0, 0.0])
    >>> y.value
    array([1., 1., 1., 1.])
    """
    return _transform("irfft", IRFFT, a, n, axis, norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the Fourier transform of numbers with Hermitian symmetry, which is real.

    Parameters
    ----------
    a : Var or array_like
        Half of the numbers; the others are their conjugates.
    n : int, optional
        The number of real points; ``n // 2 + 1`` numbers of the axis count.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of real numbers; length n along the axis, by default ``2 * (m - 1)`` for m numbers.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.hfft([1.0, 0.0, 0.0])
    >>> y.value
    array([1., 1., 1., 1.])
    """
    return irfft(conj(a), n, axis, OTHER[norm_of("hfft", norm)])


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.hfft``.

    Parameters
    ----------
    a : Var or array_like
        Real numbers.
    n : int, optional
        The number of points; a longer axis is cut, a shorter one filled up with zeros.
    axis : int
        The axis of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by n (the default), all by its square root, or the others by n.

    Returns
    -------
    Var
        Of complex numbers; length ``n // 2 + 1`` along the axis.

    Raises
    ------
    ShapeError
        If there are no points, or `norm` is another word.
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.ihfft([4.0, 0.0, 0.0, 0.0])
    >>> y.value
    array([1.-0.j, 1.-0.j, 1.-0.j])
    """
    return conj(rfft(a, n, axis, OTHER[norm_of("ihfft", norm)]))
