"""Operands and seeds that were taken for something else, or refused for no reason."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_matrix_never_multiplies_element_by_element() -> None:
    p, m = rg.Graph().param(np.eye(2)), np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for multiply in (lambda: m * p, lambda: p * m):
        with pytest.raises(rg.DTypeError, match=r"given a matrix, whose class.*np\.asarray"):
            multiply()


def test_a_seed_beyond_the_dtype_is_infinite_without_a_warning() -> None:
    x = rg.Graph().param(np.float32(2.0))
    assert rg.grad(x * x, x, gradient=1e300).value == np.inf
    (x * x).backward(gradient=np.float64(1e300))
    assert x.grad == np.inf
    assert rg.jvp(x * x, x, 1e300).value == np.inf


def test_no_bias_is_a_bias_of_nothing() -> None:
    g = rg.Graph()
    x, w = g.input([[1.0, 2.0]]), g.param([[3.0], [4.0]])
    y = rg.linear(x, w, None)
    assert y.value.tolist() == [[11.0]]
    assert rg.grad(y, w).value.tolist() == [[1.0], [2.0]]


def test_a_power_with_a_modulus_says_what_to_write() -> None:
    n = rg.Graph().input(7)
    with pytest.raises(rg.DTypeError, match=r"Write x \*\* exponent % modulus"):
        pow(n, 2, 5)  # type: ignore[misc]
    assert (n**2 % 5).value == pow(7, 2, 5)


def test_a_node_is_no_number_of_bins() -> None:
    n = rg.Graph().input(2, name="n")
    for count in (rg.histogram, np.histogram, rg.histogram_bin_edges):
        with pytest.raises(rg.ParameterError, match=r"bins=n, a node with one number.*n\.value"):
            count([0.0, 1.0], bins=n)
