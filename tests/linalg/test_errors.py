"""Errors of linear algebra: NumPy's class, which matrix, which node; and nothing else is lost."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

L = rg.linalg
SINGULAR = np.stack([np.eye(2), np.ones((2, 2)), 2.0 * np.eye(2)])


def test_a_singular_matrix_of_a_batch_is_named_and_other_targets_are_computed() -> None:
    g = rg.Graph()
    x = g.input(SINGULAR, name="x")
    bad, good, after = L.inv(x), L.det(x), L.inv(x) + 1.0
    with pytest.raises(np.linalg.LinAlgError) as caught:
        g.forward(bad, good, after)
    assert isinstance(caught.value, rg.ReactgradError)
    text = str(caught.value) + "".join(caught.value.__notes__)
    assert "inv: Singular matrix (the matrix at [1] of the batch)" in text
    assert "rg.linalg.pinv" in text
    assert "'x'" in text or "(x: " in text
    assert [one.is_stale for one in (bad, good, after)] == [True, False, True]
    np.testing.assert_allclose(good.value, [1.0, 0.0, 4.0])
    x.set(np.stack([np.eye(2)] * 3))  # and it works again
    np.testing.assert_array_equal(bad.value, x.value)


@pytest.mark.parametrize(
    ("call", "operands", "text"),
    [
        (L.solve, (SINGULAR, np.ones((3, 2, 1))), r"solve: Singular matrix \(the matrix at \[1\]"),
        (L.cholesky, (-np.eye(2),), r"cholesky: Matrix is not positive definite\. Its eigenvalues"),
        (L.cholesky, (np.stack([np.eye(2), -np.eye(2)]),), r"at \[1\] of the batch"),
        (
            L.solve_triangular,
            (np.ones((2, 2)) - np.eye(2), np.ones(2)),
            "solve_triangular: Singular",
        ),
        (L.eigvals, (np.full((2, 2), np.nan),), "eigvals: Array must not contain infs or NaNs"),
        (L.svdvals, (np.full((2, 2), np.nan),), "svd: SVD did not converge"),
        (L.tensorinv, (np.zeros((2, 2)), 1), "inv: Singular matrix"),
    ],
)
def test_a_failing_kernel_raises_when_read(call: Any, operands: Any, text: str) -> None:
    g = rg.Graph()
    y = call(*[g.input(one) if isinstance(one, np.ndarray) else one for one in operands])
    with pytest.raises(L.LinAlgError, match=text):
        _ = y.value
    with pytest.raises(L.LinAlgError, match=text):  # kept, and raised again
        _ = y.value


@pytest.mark.parametrize(
    ("call", "shapes", "text"),
    [
        (L.inv, [(2, 3)], "2 rows and 3 columns; they must be square"),
        (L.det, [(3,)], "it takes a matrix"),
        (L.eigh, [(2, 3)], "must be square"),
        (L.eig, [(2, 3)], "must be square"),
        (L.svd, [(2,)], "it takes a matrix"),
        (L.qr, [()], "it takes a matrix"),
        (L.expm, [(2, 3)], "must be square"),
        (L.solve, [(2, 2), (3,)], "the matrix has 2 rows and the right side 3"),
        (L.solve, [(2, 2), (2, 3, 1)], r"Several vectors are columns of a matrix: b\[..., None\]"),
        (L.solve, [(2, 2), ()], "needs at least one axis"),
        (L.lstsq, [(2, 2, 2), (2,)], "it takes one matrix"),
        (L.lstsq, [(2, 2), (3,)], "2 rows and the right side 3"),
        (L.cond, [(0, 2)], "not defined without elements"),
        (lambda a: L.matrix_power(a, 2), [(2, 3)], "must be square"),
        (lambda a, b: L.tensorsolve(a, b), [(2, 2, 3), (2,)], "as many elements"),
        (lambda a, b: L.multi_dot([a, b]), [(2, 2, 2), (2,)], "array 0 has 3 axes"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_when_built(call: Any, shapes: Any, text: str) -> None:
    g = rg.Graph()
    with pytest.raises(rg.ShapeError, match=text) as caught:
        call(*[g.input(np.zeros(shape)) for shape in shapes])
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: L.inv(a.astype("float16")), re.escape("Convert first, x.astype('float32')")),
        (lambda a: L.eigh(a, "X"), "UPLO='X': the triangle that is read is 'L' or 'U'"),
        (lambda a: L.qr(a, "full"), "mode='full'; it is 'reduced', 'complete', 'r' or 'raw'"),
        (lambda a: L.pinv(a, 1e-3, rtol=1e-3), "one number by two names"),
        (lambda a: L.matrix_rank(a, 1.0, rtol=1.0), "give tol or rtol, not both"),
        (lambda a: L.matrix_power(a, 0.5), "n=0.5; it is an integer"),
        (lambda a: L.solve_triangular(a, a, "H"), "trans='H'"),
    ],
)
def test_arguments_that_have_no_meaning_are_refused(call: Any, text: str) -> None:
    with pytest.raises(rg.DTypeError, match=text):
        call(rg.Graph().input(np.eye(2)))


def test_lengths_that_are_not_known_are_asked_for() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 2, 3), dtype="f8")
    with pytest.raises(rg.ShapeError, match="not known"):
        L.tensorinv(x, 1)
    with pytest.raises(rg.ShapeError, match="not known"):
        L.tensorsolve(x, np.ones(3))


def test_what_has_no_gradient_says_so() -> None:
    g = rg.Graph()
    x = g.param(np.eye(3, 2))
    with pytest.raises(rg.GradientError, match="mode 'raw' has no gradient"):
        rg.grad(L.qr(x, "raw")[0].sum(), x)
