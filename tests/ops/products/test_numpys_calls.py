"""NumPy's own functions called on Vars build these nodes, with NumPy's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

A = np.arange(12.0).reshape(3, 4) / 5.0 - 1.0
B = np.arange(12.0).reshape(4, 3) / 7.0 - 0.5
Z = A + 1j * B.T
V = np.array([1.0, -2.0, 3.0])

CALLS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), [A, B]),
    "einsum by lists": (lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]), [A, B]),
    "einsum with a path": (lambda a, b: np.einsum("ij,jk", a, b, optimize=True), [A, B]),
    "dot": (np.dot, [A, B]),
    "dot of a list": (lambda a: np.dot([1.0, 2.0, 3.0], a), [A]),
    "dot of numbers": (lambda a: np.dot(a, 2.0), [A]),
    "x.dot": (lambda a, b: a.dot(b), [A, B]),
    "tensordot": (lambda a, b: np.tensordot(a, b, axes=([0], [1])), [A, B]),
    "inner": (lambda a, b: np.inner(a, b), [A, A]),
    "outer": (np.outer, [A, V]),
    "vdot": (np.vdot, [Z, Z]),
    "vecdot": (np.vecdot, [Z, Z]),
    "vecdot along an axis": (lambda a, b: np.vecdot(a, b, axis=0), [Z, Z]),
    "matvec": (np.matvec, [B, V]),
    "vecmat": (np.vecmat, [V, Z]),
    "kron": (np.kron, [A, B]),
    "cross": (lambda a, b: np.cross(a, b, axisb=0), [B, A]),
    "trace": (lambda a: np.trace(a, offset=1), [A]),
    "x.trace": (lambda a: a.trace(1, dtype="complex128"), [A]),
    "diag": (np.diag, [V]),
    "diagflat": (lambda v: np.diagflat(v, k=-1), [V]),
    "diagonal": (lambda a: np.diagonal(a, axis1=1, axis2=0), [A]),
    "x.diagonal": (lambda a: a.diagonal(1), [A]),
    "tril": (lambda a: np.tril(a, k=1), [A]),
    "triu": (np.triu, [A]),
    "vander": (lambda v: np.vander(v, 3, increasing=True), [V]),
    "matrix_transpose": (np.matrix_transpose, [A]),
    "tril_indices_from": (lambda a: a[np.tril_indices_from(a)], [A]),
    "triu_indices_from": (lambda a: a[np.triu_indices_from(a, k=1)], [A]),
    "diag_indices_from": (lambda a: a[np.diag_indices_from(a)], [A[:, :3]]),
    "linalg.cross": (lambda a, b: np.linalg.cross(a, b, axis=0), [A, A + 1.0]),
    "linalg.diagonal": (lambda a: np.linalg.diagonal(a, offset=1), [A]),
    "linalg.matmul": (np.linalg.matmul, [A, B]),
    "linalg.matrix_transpose": (np.linalg.matrix_transpose, [A]),
    "linalg.outer": (np.linalg.outer, [V, V]),
    "linalg.tensordot": (lambda a, b: np.linalg.tensordot(a, b, axes=1), [A, B]),
    "linalg.trace": (lambda a: np.linalg.trace(a, offset=-1), [A]),
    "linalg.vecdot": (lambda a, b: np.linalg.vecdot(a, b, axis=0), [Z, Z]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_node_has_the_value(name: str) -> None:
    call, arrays = CALLS[name]
    g = rg.Graph()
    node = call(*map(g.input, arrays))
    wanted = np.asarray(call(*arrays))
    assert isinstance(node, rg.Var)
    assert (node.shape, node.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(node.value, wanted, rtol=1e-13)


def test_einsum_path_is_numpys() -> None:
    g = rg.Graph()
    a, b = g.input(A), g.input(B)
    assert np.einsum_path("ij,jk,kl->il", a, b, a) == np.einsum_path("ij,jk,kl->il", A, B, A)
    with pytest.raises(rg.ShapeError, match="set the input first"):
        rg.einsum_path("ij,j", g.input(shape=(None, 3), dtype=float), V)


def test_tri_is_a_constant() -> None:
    with rg.Graph():
        node = rg.tri(3, 4, -1, dtype="float32")
    np.testing.assert_array_equal(node.value, np.tri(3, 4, -1, np.float32))
    assert node.dtype == np.float32


def test_refusals_of_linalg() -> None:
    g = rg.Graph()
    with pytest.raises(rg.ShapeError, match="have three"):
        rg.linalg.cross(g.input(A), g.input(A))
    with pytest.raises(rg.ShapeError, match="two vectors"):
        rg.linalg.outer(g.input(A), g.input(V))
