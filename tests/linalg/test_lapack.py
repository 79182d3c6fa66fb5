"""Loops of LAPACK that write into the result: NumPy's bits, and its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.numpy import _lapack

SHAPES = [(1, 1), (3, 3), (2, 3, 3), (2, 1, 4, 4)]
DTYPES = ["f4", "f8", "c8", "c16", "i8"]


def hermitian(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(7)
    a = rng.normal(size=shape) * 3
    if dtype[0] == "c":
        a = a + 1j * rng.normal(size=shape)
    a = (a @ a.swapaxes(-1, -2).conj() + 5 * np.eye(shape[-1])).astype(dtype)
    return np.tril(a) + np.tril(a, -1).swapaxes(-1, -2).conj()


def calls(np_or_rg: Any, a: Any) -> list[Any]:
    """Results of all functions that use a loop; systems of one matrix keep its factors, see ``_factor``."""
    linalg = np_or_rg.linalg
    right, vector = np.arange(1.0, 1 + a.shape[-1]), np.eye(a.shape[-1])[:, :1]
    return [
        *([linalg.solve(a, right), linalg.solve(a, vector)] if a.ndim > 2 else []),
        linalg.inv(a),
        linalg.det(a),
        *linalg.slogdet(a),
        linalg.cholesky(a),
        *linalg.eigh(a),
        *linalg.eigh(a, "U"),
        linalg.eigvalsh(a),
        *linalg.svd(a),
        *linalg.svd(a[..., :1]),
        *linalg.svd(a[..., :1, :], False),
        *linalg.svd(a, hermitian=True),
        linalg.svdvals(a),
    ]


@pytest.mark.parametrize("layout", ["rows", "columns", "backwards"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_results_have_numpys_bits(shape: tuple[int, ...], dtype: str, layout: str) -> None:
    a = hermitian(shape, dtype)
    wanted = calls(np, a)
    g = rg.Graph()
    x = g.input(a)
    order: Any = {"rows": lambda v: v, "columns": np.asfortranarray}.get(layout)
    given = order(a) if order else a[..., ::-1, ::-1].copy()[..., ::-1, ::-1]
    found = calls(rg, x)
    for _ in range(2):
        x.set(given)
        for one, right in zip(found, wanted, strict=True):
            assert one.value.dtype == np.asarray(right).dtype
            np.testing.assert_array_equal(one.value, right)
        x.touch()


@pytest.mark.parametrize("name", _lapack.CHOICES)
def test_a_release_of_numpy_that_has_no_such_loop_computes_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = hermitian((2, 3, 3), "f8")
    attrs: tuple[Any, ...] = {
        "inv": (True,),
        "cholesky": (False,),
        "eigh": ("L",),
        "eigvalsh": ("U",),
        "svd": (True, False),
        "svdvals": (False,),
    }.get(name, ())
    lengths = {"det": (2,), "slogdet": (2, 2), "eigvalsh": (2, 3), "svdvals": (2, 3)}
    lengths |= {"eigh": (2, 12), "svd": (2, 21), "solve": (2, 3, 1)}
    inputs = (a, np.ones((3, 1))) if name == "solve" else (a,)
    bind = _lapack.find_binder(name, "cpu")
    straight, plain = (np.empty(lengths.get(name, (2, 3, 3))) for _ in range(2))
    bind(inputs, straight, attrs)()
    monkeypatch.setattr(_lapack, "_loops", None)
    bind(inputs, plain, attrs)()
    np.testing.assert_array_equal(straight, plain)


REFUSED: dict[str, tuple[Any, str]] = {
    "solve": (lambda x: rg.linalg.solve(x, np.ones(2)), "solve: Singular matrix"),
    "solve_many": (lambda x: rg.linalg.solve(x, np.eye(2)), "solve: Singular matrix"),
    "inv": (rg.linalg.inv, "inv: Singular matrix"),
    "cholesky": (rg.linalg.cholesky, "cholesky: Matrix is not positive definite"),
}


@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_matrix_is_named_and_the_node_goes_on(name: str, batch: tuple[int, ...]) -> None:
    call, words = REFUSED[name]
    good = np.broadcast_to([[2.0, 1.0], [1.0, 3.0]], (*batch, 2, 2)).copy()
    bad = good.copy()
    bad[(2,) if batch else ()] = 0.0
    g = rg.Graph()
    x = g.input(good)
    y = call(x)
    y.cutoff = "equal"
    z = y * 2.0
    first = z.value.copy()
    place = r" \(the matrix at \[2\] of the batch\)" if batch else ""
    x.set(bad)
    with pytest.raises(rg.linalg.LinAlgError, match=words + place):
        _ = z.value
    x.set(good)  # the same result as before the failure: consumers need not run
    run = g.forward(z)
    np.testing.assert_array_equal(z.value, first)
    assert z not in run.ran
    x.set(good * 2)
    np.testing.assert_array_equal(z.value, call(g.const(good * 2)).value * 2.0)


@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "eigvalsh", "svdvals"])
def test_operands_that_are_nan_are_refused_only_where_numpy_refuses_them(name: str) -> None:
    a = np.full((2, 2), np.nan)
    g = rg.Graph()
    found = getattr(rg.linalg, name)(g.input(a))
    try:
        with np.errstate(invalid="ignore"):
            wanted = getattr(np.linalg, name)(a)
    except np.linalg.LinAlgError:
        with pytest.raises(rg.linalg.LinAlgError, match=name.removesuffix("vals")):
            _ = found.value
    else:
        np.testing.assert_array_equal(found.value, wanted)


def test_a_matrix_that_is_singular_gives_nan_where_that_is_asked_for() -> None:
    g = rg.Graph()
    x = g.input(np.array([np.eye(2), np.zeros((2, 2))]))
    y = rg.linalg.det(x)
    slope = rg.grad(y.sum(), x)
    np.testing.assert_array_equal(slope.value, [np.eye(2), np.zeros((2, 2))])
