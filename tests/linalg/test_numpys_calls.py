"""``np.linalg`` on Vars: every function, in every form of its arguments, gives what it gives on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

N = np.linalg
RNG = np.random.default_rng(11)
A = RNG.standard_normal((3, 3)) + 3.0 * np.eye(3)
S = A + A.T
P = A @ A.T
B = RNG.standard_normal((2, 3, 3)) + 3.0 * np.eye(3)
T = RNG.standard_normal((4, 3))
V = RNG.standard_normal(3)
INTEGERS = np.array([[2, 1], [1, 3]])

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "solve": (N.solve, (A, V)),
    "solve_integers": (N.solve, (INTEGERS, np.array([1, 2]))),
    "solve_booleans": (N.solve, (np.eye(2, dtype=bool), np.array([True, False]))),
    "solve_single_and_integer": (N.solve, (INTEGERS.astype("i1"), V[:2].astype("f"))),
    "tensorsolve": (N.tensorsolve, (RNG.standard_normal((2, 3, 6)), T[:2])),
    "tensorinv": (lambda a: N.tensorinv(a, ind=1), (RNG.standard_normal((6, 2, 3)),)),
    "inv": (N.inv, (B,)),
    "inv_booleans": (N.inv, (np.eye(2, dtype=bool),)),
    "cholesky": (lambda a: N.cholesky(a, upper=True), (P,)),
    "eigvals": (N.eigvals, (A + 1j,)),
    "eigvalsh": (lambda a: N.eigvalsh(a, UPLO="u"), (S,)),
    "eigh": (lambda a: N.eigh(a, "U"), (S,)),
    "eig": (N.eig, (np.array([[0.0, -1.0], [1.0, 0.0]]),)),
    "pinv": (N.pinv, (T,)),
    "pinv_rcond": (lambda a: N.pinv(a, 0.5), (B,)),
    "pinv_rcond_of_each": (lambda a: N.pinv(a, np.array([0.5, 0.1])), (B,)),
    "pinv_rtol": (lambda a: N.pinv(a, rtol=None), (T,)),
    "pinv_hermitian": (lambda a: N.pinv(a, hermitian=True), (S,)),
    "slogdet": (N.slogdet, (-B,)),
    "slogdet_singular": (N.slogdet, (np.zeros((2, 2)),)),
    "det": (N.det, (B,)),
    "svd": (N.svd, (T,)),
    "svd_reduced": (lambda a: N.svd(a, full_matrices=False), (T,)),
    "svd_values": (lambda a: N.svd(a, compute_uv=False), (B,)),
    "svd_hermitian": (lambda a: N.svd(a, hermitian=True), (S,)),
    "svdvals": (N.svdvals, (T,)),
    "lstsq": (N.lstsq, (T, RNG.standard_normal(4))),
    "lstsq_matrix": (lambda a, b: N.lstsq(a, b, rcond=-1), (T, RNG.standard_normal((4, 2)))),
    "lstsq_wide": (lambda a, b: N.lstsq(a, b, None), (T.T, V)),
    "lstsq_deficient": (lambda a, b: N.lstsq(a, b, 0.1)[0], (np.ones((3, 2)), V)),
    "qr": (N.qr, (T,)),
    "qr_complete": (lambda a: N.qr(a, mode="complete"), (T,)),
    "qr_r": (lambda a: N.qr(a, "r"), (T,)),
    "qr_raw": (lambda a: N.qr(a, "raw"), (T,)),
    "cond": (N.cond, (B,)),
    "cond_fro": (lambda a: N.cond(a, "fro"), (B,)),
    "cond_singular": (N.cond, (np.zeros((2, 2)),)),
    "cond_of_inverse": (lambda a: N.cond(a, np.inf), (np.zeros((2, 2)),)),
    "matrix_rank": (N.matrix_rank, (B,)),
    "matrix_rank_vector": (N.matrix_rank, (V,)),
    "matrix_rank_tol": (lambda a: N.matrix_rank(a, 1.0, hermitian=True), (S,)),
    "matrix_rank_tol_of_each": (lambda a: N.matrix_rank(a, tol=np.array([1.0, 4.0])), (B,)),
    "matrix_power": (lambda a: N.matrix_power(a, 6), (INTEGERS,)),
    "matrix_power_0": (lambda a: N.matrix_power(a, 0), (INTEGERS,)),
    "matrix_power_negative": (lambda a: N.matrix_power(a, n=-2), (B,)),
    "multi_dot": (lambda *xs: N.multi_dot(xs), (V, A, T.T)),
    "norm": (N.norm, (T,)),
    "norm_nuc": (lambda a: N.norm(a, "nuc", axis=(0, 1), keepdims=True), (T,)),
    "matrix_norm": (lambda a: N.matrix_norm(a, ord=2), (B,)),
    "vector_norm": (lambda a: N.vector_norm(a, axis=(0, 1)), (B,)),
    "vector_norm_of_integers": (N.vector_norm, (INTEGERS,)),
    "cross": (N.cross, (A, V)),
    "diagonal": (lambda a: N.diagonal(a, offset=1), (B,)),
    "trace": (lambda a: N.trace(a, offset=-1), (B,)),
    "outer": (N.outer, (V, T[:, 0])),
    "matmul": (N.matmul, (T, A)),
    "matrix_transpose": (N.matrix_transpose, (B,)),
    "tensordot": (lambda a, b: N.tensordot(a, b, axes=1), (T, A)),
    "vecdot": (N.vecdot, (B + 1j, V)),
}  # fmt: skip


def results(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", CALLS)
def test_numpys_function_builds_nodes_with_its_values(name: str) -> None:
    call, operands = CALLS[name]
    g = rg.Graph()
    found, wanted = call(*[g.input(one) for one in operands]), call(*operands)
    if hasattr(wanted, "_fields"):
        assert type(found).__name__ == type(wanted).__name__
        assert found._fields == wanted._fields
    for one, other in zip(results(found), results(wanted), strict=True):
        assert isinstance(one, rg.Var)
        assert one.shape == np.shape(other)
        assert one.dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one.value, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(set(N.__all__) - {"LinAlgError"}))
def test_no_function_of_numpy_is_missing(name: str) -> None:
    assert callable(getattr(rg.linalg, name))
    assert name in {call.removesuffix("_") for call in CALLS}


def test_the_first_operand_may_be_an_array_a_list_or_detached() -> None:
    g = rg.Graph()
    x = g.input(V)
    np.testing.assert_allclose(np.linalg.solve(A, x).value, N.solve(A, V))
    np.testing.assert_allclose(rg.linalg.solve(A.tolist(), x).value, N.solve(A, V))
    y = rg.linalg.inv(g.input(A).detach())
    np.testing.assert_array_equal(y.value, N.inv(A))
    rows = [[x[0], 0.0], [1.0, x[1]]]  # a list that holds Vars
    np.testing.assert_allclose(rg.linalg.det(rows).value, V[0] * V[1])


def test_eigenvalues_are_complex_whatever_the_values_are() -> None:
    g = rg.Graph()
    x = g.input(np.diag([1.0, 2.0]).astype("f"))
    w, v = rg.linalg.eig(x)
    assert w.dtype == v.dtype == rg.linalg.eigvals(x).dtype == np.complex64
    np.testing.assert_array_equal(w.value, [1.0, 2.0])


def test_residuals_are_there_at_any_rank() -> None:
    g = rg.Graph()
    found = rg.linalg.lstsq(g.input(np.ones((3, 2))), g.input([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found.residuals.value, [2.0])
    assert found.rank.value == 1
