"""Transforms along several axes."""

from __future__ import annotations

from typing import Any

from reactgrad.fft._arguments import axes_of, lengths_of, norm_of
from reactgrad.fft._transforms import FFT, IFFT, IRFFT, RFFT
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op


def _transform(name: str, op: Op, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    lengths, along, norm = lengths_of(name, s), axes_of(name, axes, s), norm_of(name, norm)
    if along is not None and len(set(along)) < len(along):
        return _again(op, a, lengths, along, norm)
    return apply(op, (a,), (lengths, along, norm))


def _again(op: Op, a: Any, lengths: Any, axes: tuple[int, ...], norm: str) -> Any:
    """Return the transform along axes of which one stands twice: one after the other, in NumPy's order."""
    given = list(zip(axes, lengths or (None,) * len(axes), strict=True))
    (last, length), *others = given[::-1]
    if op is IRFFT:
        for axis, n in given[:-1]:
            a = apply(IFFT, (a,), (None if n is None else (n,), (axis,), norm))
    a = apply(op, (a,), (None if length is None else (length,), (last,), norm))
    if op is not IRFFT:
        for axis, n in others:
            a = apply(
                IFFT if op is IFFT else FFT, (a,), (None if n is None else (n,), (axis,), norm)
            )
    return a


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Return the discrete Fourier transform along two axes.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int
        The axes of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fft2([[1.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("fft2", FFT, a, s, axes, norm)


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the discrete Fourier transform along several axes.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int, optional
        The axes of the points; by default all, or, with `s`, so many last ones.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.fftn([[1.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("fftn", FFT, a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.fft2``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int
        The axes of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.ifft2([[4.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("ifft2", IFFT, a, s, axes, norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.fftn``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int, optional
        The axes of the points; by default all, or, with `s`, so many last ones.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers, complex64 for float32 and shorter ones.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.ifftn([[4.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("ifftn", IFFT, a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Return the Fourier transform of real numbers along two axes, half of it along the last one.

    Parameters
    ----------
    a : Var or array_like
        Real numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int
        The axes of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers; length ``n // 2 + 1`` along the last of the axes.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.rfft2([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("rfft2", RFFT, a, s, axes, norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the Fourier transform of real numbers along several axes, half of it along the last one.

    Parameters
    ----------
    a : Var or array_like
        Real numbers.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros.
    axes : sequence of int, optional
        The axes of the points; by default all, or, with `s`, so many last ones.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of complex numbers; length ``n // 2 + 1`` along the last of the axes.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.rfftn([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> y.value
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transform("rfftn", RFFT, a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.rfft2``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers, half of a spectrum.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros. Of the last one the number of real points.
    axes : sequence of int
        The axes of the points.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of real numbers; by default length ``2 * (m - 1)`` along the last of the axes.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.irfft2([[4.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1., 1.],
           [1., 1.]])
    """
    return _transform("irfft2", IRFFT, a, s, axes, norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """Return the inverse of ``rg.fft.rfftn``.

    Parameters
    ----------
    a : Var or array_like
        Real or complex numbers, half of a spectrum.
    s : sequence of int, optional
        The number of points for each of the axes, -1 for all; longer axes are cut, shorter ones filled up with
        zeros. Of the last one the number of real points.
    axes : sequence of int, optional
        The axes of the points; by default all, or, with `s`, so many last ones.
    norm : {"backward", "ortho", "forward"}, optional
        Whether inverse transforms are divided by the number of points (the default), all by its square root, or
        the others by it.

    Returns
    -------
    Var
        Of real numbers; by default length ``2 * (m - 1)`` along the last of the axes.

    Raises
    ------
    ShapeError
        If there are no points, there are not as many axes as lengths, or `norm` is another word.
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.fft.irfftn([[4.0, 0.0], [0.0, 0.0]])
    >>> y.value
    array([[1., 1.],
           [1., 1.]])
    """
    return _transform("irfftn", IRFFT, a, s, axes, norm)
