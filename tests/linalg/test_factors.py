"""What a change runs again: one decomposition serves all its results, their gradients and later right sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.numpy import _factor

L = rg.linalg
RNG = np.random.default_rng(3)
A = RNG.standard_normal((4, 4)) + 3.0 * np.eye(4)


def ops_of(graph: rg.Graph, *ops: str) -> list[str]:
    """The names of those of these ops that the last run has run."""
    found = [graph._host.ops[one._slot].name for one in graph.last_run.ran]
    return [name for name in found if name in ops]


@pytest.fixture(params=["scipy", "numpy alone"])
def _lapack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "scipy":
        monkeypatch.setattr(_factor, "_lapack", lambda: None)


@pytest.mark.usefixtures("_lapack")
@pytest.mark.parametrize(
    "b", [RNG.standard_normal(4), RNG.standard_normal((4, 2)) + 1j], ids=["vector", "matrix"]
)
@pytest.mark.parametrize("a", [A, A + 1j, A.astype("f")], ids=["real", "complex", "single"])
def test_systems_and_their_gradients_agree_with_numpy(a: np.ndarray, b: np.ndarray) -> None:
    g = rg.Graph()
    x, y = g.input(a), g.input(b)
    z = L.solve(x, y)
    wanted = np.linalg.solve(a, b)
    assert z.dtype == wanted.dtype
    np.testing.assert_allclose(z.value, wanted, rtol=1e-12)
    if a.dtype.char in "dD":
        rg.testing.check_grads(L.solve, [a, b])


@pytest.mark.usefixtures("_lapack")
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (2, 0, 2), (0, 3, 3)])
def test_triangles_and_a_permutation_make_up_the_matrix(shape: tuple[int, ...]) -> None:
    a = RNG.standard_normal(shape)
    a[..., :1, :] = (
        0.0  # so that rows are exchanged, and the first pivot of a small matrix may be 0
    )
    p, low, up = (one.value for one in L.lu(a))
    np.testing.assert_allclose(p @ low @ up, a, atol=1e-14)
    np.testing.assert_array_equal(np.triu(low, 1), 0 * low)
    np.testing.assert_array_equal(np.tril(up, -1), 0 * up)
    assert np.abs(low).max(initial=0) <= 1


@pytest.mark.usefixtures("_lapack")
def test_a_singular_matrix_raises_and_sizes_of_zero_do_not() -> None:
    g = rg.Graph()
    x = g.input(np.ones((2, 2)))
    z = L.solve(x, np.ones(2))
    with pytest.raises(
        np.linalg.LinAlgError, match=r"solve: Singular matrix\. Use rg.linalg.lstsq"
    ):
        _ = z.value
    x.set(np.eye(2))
    np.testing.assert_array_equal(z.value, [1.0, 1.0])
    assert L.solve(np.zeros((0, 0)), np.zeros(0)).value.shape == (0,)
    assert L.solve(np.eye(2), np.zeros((2, 0))).value.shape == (2, 0)


def test_another_right_side_and_the_gradients_use_the_factors_that_are_there() -> None:
    g = rg.Graph()
    x, b = g.param(A), g.param(np.ones(4))
    loss = (L.solve(x, b) ** 2).sum()
    slopes = rg.grad(loss, (x, b))
    curvature = rg.grad(slopes[0].sum(), b)
    g.forward(loss)
    assert ops_of(g, "lu_factor", "lu_solve") == ["lu_factor", "lu_solve"]
    g.forward(*slopes, curvature)
    assert set(ops_of(g, "lu_factor", "lu_solve", "solve", "inv")) == {"lu_solve"}
    b.set(np.arange(4.0))
    g.forward(loss, *slopes)
    assert ops_of(g, "lu_factor", "lu_solve") == ["lu_solve"] * 2  # one for both slopes
    x.set(2.0 * A)
    g.forward(loss, *slopes)
    assert ops_of(g, "lu_factor") == ["lu_factor"]


@pytest.mark.parametrize(
    ("call", "once"),
    [
        (lambda x: L.eigh(x @ x.T)[:], "eigh"),
        (lambda x: L.eig(x)[:], "eig"),
        (lambda x: L.svd(x)[:], "svd"),
        (lambda x: L.qr(x)[:], "qr"),
        (lambda x: L.slogdet(x)[:], "slogdet"),
        (lambda x: L.lstsq(x, x[0])[:2], "lstsq"),
    ],
)
def test_a_decomposition_runs_once_for_all_results_and_their_gradients(
    call: Callable[[Any], Any], once: str
) -> None:
    every = ["eigh", "eig", "svd", "qr", "slogdet", "lstsq"]
    g = rg.Graph()
    x = g.param(A)
    results = call(x)
    floats = [rg.real(one) for one in results if one.dtype.kind in "fc"]
    slope = rg.grad(sum((one * one).sum() for one in floats[1:]) + floats[0].sum(), x)
    for _ in range(2):
        g.forward(*results)
        assert ops_of(g, *every) == [once]
        g.forward(slope)
        assert ops_of(g, *every) == (["svd"] if once == "lstsq" else [])
        x.set(x.value * 1.5)


def test_each_result_has_a_version_and_a_cutoff_of_its_own() -> None:
    g = rg.Graph()
    x = g.input(np.diag([2.0, 1.0]))
    u, s, vh = L.svd(x)
    s.cutoff = "equal"
    after = s * 1.0
    g.forward(u, after, vh)
    x.set(np.diag([2.0, -1.0]))  # the same values, other vectors
    run = g.forward(u, after, vh)
    assert s in run.cut_off
    assert after not in run.ran
    assert (s.value_version, u.value_version) == (1, 2)


def test_results_are_views_and_what_a_caller_keeps_stays() -> None:
    g = rg.Graph()
    x = g.input(np.diag([3.0, 2.0]))
    u, s, vh = L.svd(x)
    kept = [one.value for one in (u, s, vh)]
    copies = [np.array(one) for one in kept]
    x.set(np.diag([5.0, 7.0]))
    assert s.value.tolist() == [7.0, 5.0]
    for one, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(one, copy)
    fork = g.fork()
    fork[x].set(np.eye(2))
    assert fork[s].value.tolist() == [1.0, 1.0]
    assert s.value.tolist() == [7.0, 5.0]
    g.check_invariants()


@pytest.mark.parametrize("how", ["plain", "checkpoint", "budget", "dropped"])
def test_gradients_are_the_same_however_values_are_kept(how: str) -> None:
    def loss(x: Any) -> Any:
        u, s, vh = L.svd(x, full_matrices=False)
        q, r = L.qr(x)
        w, v = L.eigh(x.T @ x)
        return (u @ (s[:, None] * vh)).sum() + rg.sin(r).sum() + rg.cos(q).sum() + (w * v**3).sum()

    start = RNG.standard_normal((5, 3))
    fresh = rg.Graph()
    leaf = fresh.param(start)
    wanted = rg.grad(loss(leaf), leaf).value
    g = rg.Graph(max_bytes=4000) if how == "budget" else rg.Graph()
    x = g.param(2.0 * start)
    y = rg.checkpoint(loss, x) if how == "checkpoint" else loss(x)
    for value in (2.0 * start, start):
        x.set(value)
        x.zero_grad()
        y.backward(retain_graph=False if how == "dropped" else None)
    np.testing.assert_allclose(x.grad, wanted, rtol=1e-12)
    g.check_invariants()


def test_a_reuse_block_gives_systems_of_one_matrix_the_same_factors() -> None:
    g = rg.Graph()
    x = g.input(A)
    with g.reuse():
        first, second = L.solve(x, np.ones(4)), L.solve(x, np.eye(4))
    g.forward(first, second)
    assert ops_of(g, "lu_factor", "lu_solve") == ["lu_factor", "lu_solve", "lu_solve"]


SHAPED: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: (L.svd(x)[0][:, :2] ** 3).sum() + (L.svd(x)[2][:2] ** 3).sum(),
    "svd_reduced": lambda x: (L.svd(x, False)[0] ** 3).sum() + L.svd(x, False)[1].sum(),
    "qr": lambda x: sum((one**3).sum() for one in L.qr(x)),
    "qr_complete": lambda x: (L.qr(x, "complete")[0][:, :2] ** 3).sum(),
    "qr_r": lambda x: (L.qr(x, "r") ** 3).sum(),
    "lu": lambda x: sum((one**3).sum() for one in L.lu(x)),
    "pinv": lambda x: L.pinv(x).sum(),
    "lstsq": lambda x: L.lstsq(x, x[:, 0] ** 2)[0].sum(),
    "block_diag": lambda x: (L.block_diag(x, x * 2.0) ** 2).sum(),
    "cond": L.cond,
}


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("name", SHAPED)
def test_gradients_follow_a_matrix_that_becomes_tall_or_wide(name: str, known: bool) -> None:
    call = SHAPED[name]
    g = rg.Graph()
    x = g.input(np.eye(3)) if known else g.input(shape=(None, 3), dtype="f8")
    slope = rg.grad(call(x), x)
    for shape in [(5, 3), (3, 3), (2, 3), (4, 3)]:
        a = RNG.standard_normal(shape)
        x.set(a)
        fresh = rg.Graph()
        leaf = fresh.input(a)
        wanted = rg.grad(call(leaf), leaf).value
        np.testing.assert_allclose(slope.value, wanted, rtol=1e-9, atol=1e-11)
    g.check_invariants()
