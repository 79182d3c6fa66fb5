"""Derivatives where matrices are singular, degenerate, ill-conditioned or empty."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest

import reactgrad as rg

L = rg.linalg
RNG = np.random.default_rng(5)
TURN = np.linalg.qr(RNG.standard_normal((4, 4)))[0]


def slope(call: Any, *arrays: Any) -> Any:
    """The gradients of a function by its operands, as arrays."""
    g = rg.Graph()
    leaves = [g.input(np.asarray(one)) for one in arrays]
    found = [one.value for one in rg.grad(call(*leaves), leaves)]
    return found[0] if len(found) == 1 else found


def tangent(call: Any, x: Any, t: Any) -> Any:
    g = rg.Graph()
    leaf = g.input(np.asarray(x))
    return rg.jvp(call(leaf), [leaf], [t]).value


def minors(a: np.ndarray) -> np.ndarray:
    """Cofactors by the definition."""
    n = len(a)
    out = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        rest = np.delete(np.delete(a, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * float(mpmath.det(mpmath.matrix(rest.tolist())))
    return out


# --- determinants ------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [4, 3, 2, 1, 0])
def test_the_gradient_of_a_determinant_holds_cofactors_at_any_rank(rank: int) -> None:
    a = np.round(RNG.standard_normal((4, rank)) * 4) @ np.round(RNG.standard_normal((rank, 4)) * 4)
    size = max(np.abs(a).max(), 1.0) ** 3
    np.testing.assert_allclose(slope(L.det, a), minors(a), atol=1e-13 * size)
    rg.testing.check_grads(lambda x: L.det(x) / size, [a], rtol=1e-5)


@pytest.mark.parametrize("smallest", [1e-3, 1e-6, 1e-10, 1e-15, 1e-200])
def test_cofactors_keep_their_digits_near_a_singular_matrix(smallest: float) -> None:
    with mpmath.workdps(400):
        turn = mpmath.matrix(TURN.tolist())
        exact = turn * mpmath.diag([3, 2, 1, mpmath.mpf(smallest)]) * turn
        a = np.array(exact.tolist(), dtype=float)
        precise = mpmath.matrix(a.tolist())
        wanted = mpmath.det(precise) * (precise**-1).T
        wanted = np.array(wanted.tolist(), dtype=float)
    np.testing.assert_allclose(slope(L.det, a), wanted, atol=1e-14 * np.abs(wanted).max())


def test_a_determinant_below_the_dtype_has_no_nan() -> None:
    a = np.eye(400) * 0.1  # its determinant is below the smallest number
    np.testing.assert_array_equal(slope(L.det, a), np.zeros((400, 400)))


def test_a_determinant_of_what_is_no_number_stays_so() -> None:
    both = np.stack([np.full((2, 2), np.nan), np.ones((2, 2))])
    found = slope(lambda x: L.det(x)[1] * 2.0, both)
    np.testing.assert_allclose(found, [np.zeros((2, 2)), [[2.0, -2.0], [-2.0, 2.0]]])
    assert np.isnan(slope(L.det, both[0])).all()


def test_a_logarithm_of_a_determinant() -> None:
    np.testing.assert_allclose(
        slope(lambda x: L.slogdet(x).logabsdet, [[0.0, 1.0], [1.0, 2.0]]), [[-2, 1], [1, 0]]
    )
    both = np.stack([np.ones((2, 2)), 2.0 * np.eye(2)])  # the first is singular

    def of_regular(x: Any) -> Any:
        sign, log = L.slogdet(x)
        return rg.where(sign == 0, 0.0, log).sum()

    np.testing.assert_array_equal(slope(of_regular, both), [np.zeros((2, 2)), 0.5 * np.eye(2)])
    assert tangent(of_regular, both, np.ones((2, 2, 2))) == 1.0
    alone = slope(lambda x: L.slogdet(x).logabsdet, np.ones((2, 2)))
    assert np.isnan(alone).all()


# --- eigenvalues -------------------------------------------------------------------------------

# Equal eigenvalues up to rounding: 1, 1, 2, 2.
PAIRS = TURN @ np.diag([1.0, 1.0, 2.0, 2.0]) @ TURN.T


def of_read(wanted: np.ndarray, lower: bool = True) -> np.ndarray:
    """The gradient of Hermitian matrices as one of the triangle that is read."""
    mirrored = wanted.conj().T
    return (
        np.tril(wanted) + np.tril(mirrored, -1) if lower else np.triu(wanted) + np.triu(mirrored, 1)
    )


@pytest.mark.parametrize("a", [np.eye(4), PAIRS, np.zeros((4, 4))], ids=["eye", "pairs", "zero"])
def test_functions_of_equal_eigenvalues_have_their_gradient(a: np.ndarray) -> None:
    for values in (L.eigvalsh, lambda x: L.eigh(x).eigenvalues):

        def total(x: Any, power: int, values: Any = values) -> Any:
            return (values(x) ** power).sum()

        np.testing.assert_allclose(slope(lambda x: total(x, 1), a), np.eye(4), atol=1e-14)
        np.testing.assert_allclose(
            slope(lambda x: total(x, 3), a), of_read(3.0 * a @ a), atol=1e-13
        )
        moved = tangent(lambda x: total(x, 2), a, np.ones((4, 4)))
        np.testing.assert_allclose(moved, 2.0 * a.sum(), atol=1e-13)


def test_vectors_of_equal_eigenvalues_have_none_and_others_do() -> None:
    a = TURN @ np.diag([1.0, 2.0, 2.0, 3.0]) @ TURN.T
    weights = RNG.standard_normal((4, 4))

    def of(*columns: int) -> Any:
        def call(x: Any) -> Any:
            v = L.eigh(x).eigenvectors
            return sum((weights @ v[:, i]) @ v[:, i] for i in columns)

        return call

    assert np.isnan(slope(of(1), a)[np.tril_indices(4)]).all()
    assert np.isnan(tangent(of(1), a, weights))
    found = slope(of(0, 3), a)
    wanted = np.zeros((4, 4))  # of a simple eigenvalue: sum over the others
    w, v = np.linalg.eigh(a)
    inner = v.T @ (weights + weights.T) @ v
    for i in (0, 3):
        for j in range(4):
            if j != i:
                wanted += inner[i, j] / (w[i] - w[j]) * (np.outer(v[:, i], v[:, j]))
    np.testing.assert_allclose(found, of_read((wanted + wanted.T) / 2), atol=1e-12)
    t = weights @ weights.T
    np.testing.assert_allclose(tangent(of(0, 3), a, t), (found * t).sum(), rtol=1e-10)


def test_a_gradient_by_eigenvalues_is_that_of_the_triangle_that_is_read() -> None:
    a = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    a = a + a.conj().T
    for triangle in "LU":
        found = slope(lambda x, of=triangle: (L.eigvalsh(x, of) ** 3).sum(), a)
        np.testing.assert_allclose(
            found, of_read((3.0 * a @ a).conj(), triangle == "L"), atol=1e-12
        )
    found = slope(lambda x: rg.real(L.cholesky(x)).sum(), a @ a + np.eye(3))
    np.testing.assert_allclose(found, found.conj().T, atol=1e-14)


def test_eigenvalues_in_conjugate_pairs_have_real_gradients() -> None:
    a = np.array([[0.0, -2.0], [1.0, 0.0]])
    found = slope(lambda x: rg.real(L.eigvals(x) ** 2).sum(), a)  # the trace of the square
    np.testing.assert_allclose(found, 2.0 * a.T, atol=1e-14)


def test_vectors_of_equal_eigenvalues_of_any_matrix_have_none() -> None:
    a = (
        (TURN + 0.1 * np.eye(4))
        @ np.diag([1.0, 2.0, 2.0, 3.0])
        @ np.linalg.inv(TURN + 0.1 * np.eye(4))
    )
    values = slope(lambda x: rg.real(L.eig(x).eigenvalues ** 2).sum(), a)
    np.testing.assert_allclose(values, 2.0 * a.T, atol=1e-12)
    assert np.isnan(slope(lambda x: rg.real(L.eig(np.eye(3) * x).eigenvectors).sum(), 2.0))


# --- singular values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "a", [np.eye(3), np.ones((3, 3)), np.ones((4, 2)), np.zeros((2, 3))], ids=str
)
def test_functions_of_equal_singular_values_and_of_zero_have_their_gradient(a: np.ndarray) -> None:
    for full in (True, False):
        squares = slope(lambda x, full=full: (L.svd(x, full).S ** 2).sum(), a)
        np.testing.assert_allclose(squares, 2.0 * a, atol=1e-14)
    np.testing.assert_allclose(
        slope(lambda x: (L.svdvals(x) ** 4).sum(), a), 4.0 * a @ a.T @ a, atol=1e-12
    )


@pytest.mark.parametrize(
    ("order", "a", "wanted"),
    [
        # From PyTorch 2.13.
        ("nuc", [[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]),
        ("nuc", [[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]]),
        (2, [[3.0, 0.0], [0.0, 3.0]], [[0.5, 0.0], [0.0, 0.5]]),
        (-2, [[3.0, 0.0], [0.0, 3.0]], [[0.5, 0.0], [0.0, 0.5]]),
        ("fro", [[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_norms_of_matrices_at_kinks_and_ties(order: Any, a: Any, wanted: Any) -> None:
    np.testing.assert_allclose(slope(lambda x: L.matrix_norm(x, ord=order), a), wanted, atol=1e-15)


def test_singular_vectors_beyond_the_rank_of_the_shape_move_with_the_others() -> None:
    # The projection to what no column reaches is that of ``pinv``.
    a = RNG.standard_normal((4, 2))
    weights = RNG.standard_normal((4, 4))

    def by_vectors(x: Any) -> Any:
        beyond = L.svd(x).U[:, 2:]
        return (weights * (beyond @ beyond.T)).sum()

    def by_columns(x: Any) -> Any:
        beyond = L.qr(x, "complete").Q[:, 2:]
        return (weights * (beyond @ beyond.T)).sum()

    wanted = slope(lambda x: (weights * (np.eye(4) - x @ L.pinv(x))).sum(), a)
    np.testing.assert_allclose(slope(by_vectors, a), wanted, atol=1e-12)
    np.testing.assert_allclose(slope(by_columns, a), wanted, atol=1e-12)


# --- pseudo-inverses and least squares ---------------------------------------------------------


def test_a_pseudo_inverse_at_constant_rank() -> None:
    found = slope(lambda x: L.pinv(x)[0, 1], [[1.0, 2.0], [2.0, 4.0]])
    # From PyTorch 2.13.
    np.testing.assert_allclose(found, [[0.0064, -0.0192], [0.0208, -0.0224]], atol=1e-16)


@pytest.mark.parametrize("smallest", [1e-2, 1e-5, 1e-8])
def test_the_gradient_of_a_pseudo_inverse_of_full_rank_is_that_of_the_inverse(
    smallest: float,
) -> None:
    a = TURN @ np.diag([3.0, 2.0, 1.0, smallest]) @ TURN
    weights = RNG.standard_normal((4, 4))
    exact = np.array((mpmath.matrix(a.tolist()) ** -1).tolist(), dtype=float)
    wanted = -exact.T @ weights @ exact.T
    found = slope(lambda x: (weights * L.pinv(x)).sum(), a)
    # The error is that of the inverse: no projection adds its own, times the condition number again.
    np.testing.assert_allclose(found, wanted, atol=1e-14 / smallest * np.abs(wanted).max())


def test_least_squares_of_any_rank_are_those_of_the_pseudo_inverse() -> None:
    b = RNG.standard_normal((4, 2))
    for a in (
        RNG.standard_normal((4, 3)),
        RNG.standard_normal((4, 2)) @ RNG.standard_normal((2, 3)),
    ):
        given = slope(lambda x, y: (L.lstsq(x, y, 1e-9).x ** 2).sum(), a, b)
        wanted = slope(lambda x, y: ((L.pinv(x, 1e-9) @ y) ** 2).sum(), a, b)
        for one, other in zip(given, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


# --- condition numbers, exponentials, triangles ------------------------------------------------


def test_ill_conditioned_systems_have_gradients_as_exact_as_their_solutions() -> None:
    n = 8
    a = 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1.0)  # Hilbert
    b, weights = np.ones(n), RNG.standard_normal(n)
    with mpmath.workdps(60):
        exact = mpmath.matrix(a.tolist())
        x = mpmath.lu_solve(exact, mpmath.matrix(b.tolist()))
        back = mpmath.lu_solve(exact.T, mpmath.matrix(weights.tolist()))
        wanted = np.array((-back * x.T).tolist(), dtype=float)
    found, _ = slope(lambda a, b: (weights * L.solve(a, b)).sum(), a, b)
    assert np.abs(found - wanted).max() < 1e-15 * np.linalg.cond(a) * np.abs(wanted).max()


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.1, 0.8, 2.0, 5.0, 40.0])
def test_exponentials_of_all_sizes_beside_many_digits(size: float) -> None:
    a = RNG.standard_normal((3, 3))
    a *= size / np.abs(a).sum(0).max()
    t = RNG.standard_normal((3, 3))
    with mpmath.workdps(60):
        block = mpmath.matrix(np.block([[a, t], [np.zeros((3, 3)), a]]).tolist())
        exact = np.array(mpmath.expm(block).tolist(), dtype=float)
    wanted, moved = exact[:3, :3], exact[:3, 3:]
    g = rg.Graph()
    x = g.param(a)
    y = L.expm(x)
    scale = 1e-15 * max(size, 4.0)
    np.testing.assert_allclose(y.value, wanted, atol=scale * np.abs(wanted).max())
    found = rg.jvp(y, [x], [t]).value
    np.testing.assert_allclose(found, moved, atol=2.0 * scale * np.abs(moved).max())
    single = L.expm(a.astype("f")).value
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, atol=1e9 * scale * np.abs(wanted).max())


def test_a_batch_of_matrices_of_all_sizes_has_the_exponential_of_each() -> None:
    a = RNG.standard_normal((6, 3, 3)) * np.array([0.0, 1e-3, 0.1, 1.0, 5.0, 50.0])[:, None, None]
    np.testing.assert_array_equal(L.expm(a).value, [L.expm(one).value for one in a])
    a[2, 0, 0] = np.nan  # which stays where it is
    assert np.isnan(L.expm(a).value).all((1, 2)).tolist() == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_triangular_systems_in_blocks(n: int, lower: bool) -> None:
    a = RNG.standard_normal((2, n, n)) / n + 2.0 * np.eye(n)
    b = RNG.standard_normal((n, 3))
    kept = (np.tril if lower else np.triu)(a)
    for trans in (0, 1):
        used = kept.swapaxes(-1, -2) if trans else kept
        found = L.solve_triangular(a, b, trans, lower).value
        np.testing.assert_allclose(used @ found, np.broadcast_to(b, found.shape), atol=1e-12)


def test_graded_triangles_are_solved_to_full_relative_accuracy() -> None:
    a = np.tril(RNG.uniform(1.0, 2.0, (6, 6))) * 10.0 ** -np.arange(0.0, 60.0, 10.0)[:, None]
    b = np.ones(6)
    with mpmath.workdps(80):
        x = mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist()))
        wanted = np.array(x.tolist(), dtype=float)[:, 0]
    np.testing.assert_allclose(L.solve_triangular(a, b, lower=True).value, wanted, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f", "F"])
def test_gradients_in_single_precision_stay_single(dtype: str) -> None:
    a = (RNG.standard_normal((3, 3)) + 3.0 * np.eye(3)).astype(dtype)
    calls = [
        L.inv,
        L.det,
        L.expm,
        L.pinv,
        L.svdvals,
        lambda x: L.qr(x).R,
        lambda x: L.slogdet(x)[1],
    ]
    for call in calls:

        def number(x: Any, call: Any = call) -> Any:
            return rg.real(call(x)).sum()

        found, wanted = slope(number, a), slope(number, a.astype({"f": "d", "F": "D"}[dtype]))
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_singular_vectors_of_a_square_singular_matrix() -> None:
    # A single 0 among distinct values: its vectors move smoothly, but for a sign.
    a = TURN @ np.diag([3.0, 2.0, 1.0, 0.0]) @ TURN
    weights = RNG.standard_normal((4, 4))

    def both(x: Any) -> Any:
        u, s, vh = L.svd(x)
        planes = [(weights @ one) @ one for one in (u[:, 3], vh[3], u[:, 0])]
        return rg.stack([*planes, (s**2).sum()])

    rg.testing.check_grads(both, [a], order=1, rtol=1e-6)
    assert np.isfinite(slope(lambda x: both(x).sum(), a)).all()
