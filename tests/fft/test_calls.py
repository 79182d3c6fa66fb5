"""Calls of NumPy's own functions on Vars, frequencies, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.random.default_rng(0).normal(size=(3, 4, 5))
Z = A + 1j * A[::-1]


CALLS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "fft": (lambda x: np.fft.fft(x, 6, axis=1, norm="ortho"), A),
    "ifft": (np.fft.ifft, Z),
    "rfft": (lambda x: np.fft.rfft(x, n=3), A),
    "irfft": (lambda x: np.fft.irfft(x, 7, 0), Z),
    "hfft": (np.fft.hfft, Z),
    "ihfft": (np.fft.ihfft, A),
    "fft2": (np.fft.fft2, A),
    "ifft2": (lambda x: np.fft.ifft2(x, axes=(0, 1)), Z),
    "fftn": (lambda x: np.fft.fftn(x, (2, 6), axes=(0, 1)), A),
    "ifftn": (lambda x: np.fft.ifftn(x, axes=[1, 2]), Z),
    "rfft2": (np.fft.rfft2, A),
    "irfft2": (np.fft.irfft2, Z),
    "rfftn": (np.fft.rfftn, A),
    "irfftn": (np.fft.irfftn, Z),
    "fftshift": (lambda x: np.fft.fftshift(x, axes=1), A),
    "ifftshift": (np.fft.ifftshift, A),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpys_function_builds_the_node(name: str) -> None:
    call, array = CALLS[name]
    node = call(rg.Graph().input(array))
    wanted = call(array)
    assert isinstance(node, rg.Var)
    assert (node.shape, node.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(node.value, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore:`axes` should not be:DeprecationWarning")
def test_lengths_without_axes_are_those_of_the_last_ones() -> None:
    x = rg.Graph().input(A)
    np.testing.assert_allclose(rg.fft.fftn(x, (3, 6)).value, np.fft.fftn(A, (3, 6)), atol=1e-12)


def test_frequencies() -> None:
    g = rg.Graph()
    d = g.input(0.25)
    with g:
        for n in (1, 4, 5):
            np.testing.assert_array_equal(rg.fft.fftfreq(n, 0.5).value, np.fft.fftfreq(n, 0.5))
            np.testing.assert_array_equal(rg.fft.rfftfreq(n).value, np.fft.rfftfreq(n))
    live = rg.fft.rfftfreq(6, d)
    np.testing.assert_allclose(live.value, np.fft.rfftfreq(6, 0.25))
    d.set(0.5)
    np.testing.assert_allclose(live.value, np.fft.rfftfreq(6, 0.5))


def test_refusals() -> None:
    g = rg.Graph()
    x, z = g.input(A), g.input(Z)
    with pytest.raises(rg.DTypeError, match=r"fft\.rfft of complex128: it takes real numbers"):
        rg.fft.rfft(z)
    with pytest.raises(rg.ShapeError, match="0 points"):
        rg.fft.fft(x, 0)
    with pytest.raises(ValueError, match="norm='forwards'"):
        rg.fft.fft(x, norm="forwards")
    with pytest.raises(ValueError, match="axis 3 does not exist"):
        rg.fft.fft(x, axis=3)
    with pytest.raises(rg.ShapeError, match="2 lengths in s, and 1 axes"):
        rg.fft.fftn(x, (2, 3), (0,))
    with pytest.raises(rg.DTypeError, match=r"fft\.fftn\(axes=1\): it is a tuple"):
        rg.fft.fftn(x, axes=1)
    with pytest.raises(rg.DTypeError, match="no length or axis"):
        rg.fft.fft(x, 2.5)
    with pytest.raises(rg.ShapeError, match="no points"):
        rg.fft.fft(g.input(np.zeros((2, 0))))
    with pytest.raises(rg.ShapeError, match="no points"):
        rg.fft.irfft(g.input(np.zeros((2, 1))))


def test_one_kernel_a_transform_along_several_axes() -> None:
    """A change runs one node for the value, and one for the transpose."""
    g = rg.Graph()
    x = g.input(A)
    y = rg.fft.rfftn(x)
    slope = rg.grad((abs(y) ** 2).sum(), x)
    assert len(g.forward(y).ran) == 1
    np.testing.assert_allclose(
        slope.value,
        2.0 * np.fft.irfftn(_twice_inside(np.fft.rfftn(A)), A.shape, (0, 1, 2)) * A.size,
        rtol=1e-9,
    )


def _twice_inside(half: np.ndarray) -> np.ndarray:
    """Return half a spectrum whose inner numbers, which irfftn counts twice, are halved."""
    half = half.copy()
    half[..., 1:] /= 2.0
    return half


def test_jacobian_in_one_pass_is_that_of_both_modes() -> None:
    g = rg.Graph()
    x = g.input(A[0])
    y = rg.real(rg.fft.fftshift(rg.fft.fft(x, 3, axis=0)) * rg.fft.ifft(x, 3, axis=-2))
    w = abs(rg.fft.irfft(rg.fft.rfft(x, 4), 5, axis=-1))
    for node in (y, w):
        found = rg.jacobian(node, x, mode="reverse").value
        np.testing.assert_allclose(rg.jacobian(node, x, mode="forward").value, found, atol=1e-12)
        step = 1e-6 * A[1]
        before = node.value
        x.set(A[0] + step)
        np.testing.assert_allclose(node.value - before, (found * step).sum((-2, -1)), atol=1e-10)
        x.set(A[0])
