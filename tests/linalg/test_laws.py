"""Every function of ``rg.linalg`` obeys the laws of ops, beside NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, late_axes, of_case, of_law

L, N = rg.linalg, np.linalg
# LAPACK's errors grow with the condition number; these matrices have small ones.
LOOSE = {"f": 2e-4, "F": 2e-4, "d": 1e-10, "D": 1e-10}


def regular(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape) + 3.0 * np.eye(*shape[-2:])


def tilted(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices whose rows are exchanged, with no pivot near another one."""
    size = 4.0 ** -np.arange(shape[-2])[::-1, None]
    return rng.uniform(0.5, 1.0, shape) * size + 10.0 * np.eye(*shape[-2:])[::-1]


def turned(x: Any) -> Any:
    """The conjugate transpose, of a Var or an array."""
    return np.conj(np.swapaxes(x, -1, -2)) if isinstance(x, np.ndarray) else rg.conj(last(x))


def last(x: Any) -> Any:
    return rg.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def hermitian(x: Any) -> Any:
    return x + turned(x)


def definite(x: Any) -> Any:
    return x @ turned(x) + np.eye(x.shape[-1], dtype="f")


def matrix(name: str, call: Any, oracle: Any, shape: tuple[int, ...] = (3, 3), **more: Any) -> Case:
    given = {"draw": regular, "dtypes": "dfDi", "tolerance": LOOSE}
    return Case(name, call, oracle, [shape], **(given | more))


def vector_first(name: str, call: Any, oracle: Any, b: tuple[int, ...], **more: Any) -> Case:
    draws = [regular, lambda rng, shape: rng.standard_normal(shape)]
    given = {"draw": draws, "dtypes": "dfDi", "tolerance": LOOSE}
    return Case(name, call, oracle, [more.pop("a", (3, 3)), b], **(given | more))


ADDED = "the matrix that the case adds has one shape"
EMPTY, NONE = [(0, 0)], [(0, 3, 3)]

CASES = [
    vector_first("solve_vector", L.solve, N.solve, (3,), empty=[(0, 0), (0,)]),
    vector_first("solve_matrix", L.solve, N.solve, (3, 2), empty=[(0, 3, 3), (3, 2)]),
    vector_first("solve_batch", L.solve, N.solve, (2, 3, 1), a=(2, 3, 3)),
    matrix("inv", L.inv, N.inv, empty=EMPTY),
    matrix("inv_batch", L.inv, N.inv, (2, 3, 3), empty=NONE),
    matrix("det", L.det, N.det, empty=EMPTY),
    matrix("det_batch", L.det, N.det, (2, 3, 3), empty=NONE),
    matrix("slogdet", L.slogdet, N.slogdet, (2, 3, 3), empty=EMPTY),
    matrix("slogdet_complex", L.slogdet, N.slogdet, dtypes="DF", empty=NONE),
    matrix("tensorinv", lambda a: L.tensorinv(a, 1), lambda a: N.tensorinv(a, 1), (6, 2, 3),
           draw=lambda rng, shape: regular(rng, (6, 6)).reshape(shape), unknown=False,
           fixed="the elements are drawn for one shape"),
    vector_first("tensorsolve", lambda a, b: L.tensorsolve(a, b, (1,)), lambda a, b: N.tensorsolve(a, b, (1,)),
                 (2, 3), a=(2, 6, 3), unknown=False,
                 draw=[lambda rng, s: np.moveaxis(regular(rng, (6, 6)).reshape(2, 3, 6), 2, 1),
                       lambda rng, s: rng.standard_normal(s)]),
    matrix("cholesky", lambda a: L.cholesky(definite(a)), lambda a: N.cholesky(definite(a)),
           dtypes="dfD", empty=EMPTY, fixed=ADDED),
    matrix("cholesky_upper", lambda a: L.cholesky(definite(a), upper=True),
           lambda a: N.cholesky(definite(a), upper=True), (2, 3, 3), dtypes="dfD", empty=NONE, fixed=ADDED),
    matrix("cholesky_complex", lambda a: L.cholesky(definite(a), upper=True),
           lambda a: N.cholesky(definite(a), upper=True), dtypes="DF", fixed=ADDED),
    vector_first("solve_triangular", L.solve_triangular, scipy.linalg.solve_triangular, (3,)),
    vector_first("solve_triangular_lower", lambda a, b: L.solve_triangular(a, b, "T", True),
                 lambda a, b: scipy.linalg.solve_triangular(a, b, "T", True), (3, 2)),
    vector_first("solve_triangular_unit", lambda a, b: L.solve_triangular(a, b, 2, False, True),
                 lambda a, b: scipy.linalg.solve_triangular(a, b, 2, False, True), (3, 2), dtypes="Df"),
    vector_first("cho_solve", lambda a, b: L.cho_solve((L.cholesky(definite(a)), True), b),
                 lambda a, b: N.solve(definite(a), b), (3,), dtypes="dfD", fixed=ADDED),
    matrix("eigh", lambda a: L.eigh(hermitian(a)), lambda a: N.eigh(hermitian(a)), (2, 3, 3),
           dtypes="dfi", empty=EMPTY),
    matrix("eigvalsh", lambda a: L.eigvalsh(hermitian(a), "U"), lambda a: N.eigvalsh(hermitian(a), "U"),
           (2, 3, 3), empty=NONE),
    matrix("eig", lambda a: L.eig(a)[0], lambda a: N.eig(a + 0j)[0], dtypes="dD"),
    matrix("eigvals", L.eigvals, N.eigvals, (2, 3, 3), dtypes="DF"),
    matrix("svd", L.svd, N.svd, (2, 3, 3), dtypes="df", empty=EMPTY),
    matrix("svd_tall", lambda a: L.svd(a, False), lambda a: N.svd(a, False), (2, 5, 3), dtypes="df"),
    matrix("svd_wide", lambda a: L.svd(a, full_matrices=False), lambda a: N.svd(a, False), (3, 4),
           dtypes="df"),
    matrix("svd_hermitian", lambda a: L.svd(hermitian(a), True, True, True)[1],
           lambda a: N.svd(hermitian(a), True, True, True)[1]),
    matrix("svdvals", L.svdvals, lambda a: N.svd(a, compute_uv=False), (2, 4, 3), empty=[(0, 3)]),
    matrix("qr", L.qr, N.qr, empty=[(3, 0)]),
    matrix("qr_tall", L.qr, N.qr, (2, 4, 3), empty=[(0, 4, 3)]),
    matrix("qr_wide", L.qr, N.qr, (2, 3, 5)),
    matrix("qr_r", lambda a: L.qr(a, "r"), lambda a: N.qr(a, "r"), (4, 3)),
    matrix("qr_raw", lambda a: L.qr(a, "raw"), lambda a: N.qr(a, "raw"), (4, 3), order=0),
    matrix("lu", L.lu, scipy.linalg.lu, draw=tilted),
    matrix("lu_tall", L.lu, scipy.linalg.lu, (2, 5, 3), draw=tilted),
    matrix("lu_wide", L.lu, scipy.linalg.lu, (2, 3, 4), draw=tilted),
    matrix("pinv", L.pinv, N.pinv, (2, 4, 3), empty=[(0, 3)]),
    matrix("pinv_wide", lambda a: L.pinv(a, rtol=None), lambda a: N.pinv(a, rtol=None), (2, 3, 4),
           dtypes="dfD"),
    matrix("pinv_hermitian", lambda a: L.pinv(hermitian(a), 1e-6, True),
           lambda a: N.pinv(hermitian(a), 1e-6, True)),
    vector_first("lstsq", lambda a, b: tuple(L.lstsq(a, b)), N.lstsq, (5,), a=(5, 3)),
    vector_first("lstsq_wide", lambda a, b: tuple(L.lstsq(a, b, -1)), lambda a, b: N.lstsq(a, b, -1),
                 (3, 2), a=(3, 4), unknown=False),
    matrix("expm", L.expm, scipy.linalg.expm, (2, 3, 3), empty=EMPTY),
    matrix("expm_small", lambda a: L.expm(a * 0.01), lambda a: scipy.linalg.expm(a * 0.01)),
    matrix("matrix_power", lambda a: L.matrix_power(a, 5), lambda a: N.matrix_power(a, 5), (2, 3, 3)),
    matrix("matrix_power_0", lambda a: L.matrix_power(a, 0), lambda a: N.matrix_power(a, 0), order=0),
    matrix("matrix_power_negative", lambda a: L.matrix_power(a, -3), lambda a: N.matrix_power(a, -3)),
    Case("multi_dot", lambda *xs: L.multi_dot(xs), lambda *xs: N.multi_dot(xs), [(3,), (3, 4), (4, 2), (2,)],
         dtypes="dfiD", unknown=False),
    Case("multi_dot_unknown", lambda a, b: L.multi_dot([a, b.T, b]), lambda a, b: N.multi_dot([a, b.T, b]),
         [(3, 4), (3, 4)], dtypes="dfD"),
    Case("block_diag", L.block_diag, scipy.linalg.block_diag, [(2, 3), (1, 2), (3,)], dtypes="dfiD",
         empty=[(0, 2), (2, 0), (1,)]),
    matrix("cond", L.cond, N.cond, (2, 4, 3)),
    matrix("cond_1", lambda a: L.cond(a, 1), lambda a: N.cond(a, 1), (2, 3, 3)),
    matrix("cond_-2", lambda a: L.cond(a, -2), lambda a: N.cond(a, -2)),
    matrix("matrix_rank", L.matrix_rank, N.matrix_rank, (2, 4, 3), order=0),
    matrix("matrix_rank_tol", lambda a: L.matrix_rank(a, 2.5), lambda a: N.matrix_rank(a, 2.5), order=0),
    matrix("matrix_rank_rtol", lambda a: L.matrix_rank(hermitian(a), hermitian=True, rtol=0.3),
           lambda a: N.matrix_rank(hermitian(a), hermitian=True, rtol=0.3), order=0),
    *[
        matrix(f"matrix_norm_{ord}", lambda a, ord=ord: L.matrix_norm(a, ord=ord, keepdims=True),
               lambda a, ord=ord: N.matrix_norm(a, ord=ord, keepdims=True), (2, 4, 3))
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    ],
    *[
        matrix(f"vector_norm_{ord}", lambda a, ord=ord: L.vector_norm(a, axis=(0, 2), ord=ord),
               lambda a, ord=ord: N.vector_norm(a, axis=(0, 2), ord=ord), (2, 4, 3))
        for ord in (0, 1, 2, 3.5, np.inf, -np.inf)
    ],
]  # fmt: skip


# Their calls here, or they themselves, read the number of axes when they are built.
NEED_AXES = {
    *("tensorinv", "tensorsolve", "cholesky", "cholesky_upper", "cholesky_complex", "cho_solve"),
    *("eigh", "eigvalsh", "svd_hermitian", "pinv_hermitian", "lstsq", "lstsq_wide"),
    "matrix_rank_rtol",
}
LAWS_OF = [
    pytest.param(case, law, id=f"{of_case(case)}-{of_law(law)}")
    for case in CASES
    for law in LAWS
    if law is not late_axes or case.name not in NEED_AXES
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "law"), LAWS_OF)
def test_laws(case: Case, law: Law) -> None:
    law(case)
