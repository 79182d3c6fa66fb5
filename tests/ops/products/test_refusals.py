"""Products of operands that do not fit are refused, as NumPy refuses them, with axes of length 1, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

CALLS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "dot": (np.dot, (2, 3), (2, 3)),
    "dot of many axes": (np.dot, (2, 3, 1), (4, 5, 3)),
    "inner": (np.inner, (2, 1), (4, 3)),
    "inner of vectors": (np.inner, (1,), (3,)),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), (2, 1), (3, 4)),
    "tensordot of pairs": (lambda a, b: np.tensordot(a, b, ((0, 1), (1, 0))), (2, 3), (2, 3)),
    "tensordot of other counts": (lambda a, b: np.tensordot(a, b, ((0, 1), (1,))), (2, 3), (2, 3)),
    "tensordot of too many": (lambda a, b: np.tensordot(a, b, 3), (2, 3), (2, 3)),
    "vdot": (np.vdot, (1,), (3,)),
    "vecdot": (np.vecdot, (2, 1), (2, 3)),
    "vecdot of other batches": (np.vecdot, (2, 3), (4, 3)),
    "matvec": (np.matvec, (2, 1), (3,)),
    "matvec of a vector": (np.matvec, (3,), (3,)),
    "vecmat": (np.vecmat, (3,), (1, 4)),
    "vecmat of a vector": (np.vecmat, (3,), (3,)),
    "cross": (np.cross, (4,), (4,)),
    "cross of other batches": (np.cross, (2, 3), (4, 3)),
    "trace": (lambda a, b: np.trace(a), (3,), ()),
    "trace along one axis": (lambda a, b: np.trace(a, axis1=1, axis2=1), (3, 4), ()),
    "diagonal": (lambda a, b: np.diagonal(a), (3,), ()),
    "diagonal along no axis": (lambda a, b: np.diagonal(a, axis1=2), (3, 4), ()),
    "diag": (lambda a, b: np.diag(a), (2, 3, 4), ()),
    "vander": (lambda a, b: np.vander(a), (2, 3), ()),
    "vander of a negative number": (lambda a, b: np.vander(a, -1), (2,), ()),
    "matrix_transpose": (lambda a, b: np.matrix_transpose(a), (3,), ()),
    "tril_indices_from": (lambda a, b: np.tril_indices_from(a), (3,), ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_value_error_as_in_numpy(name: str) -> None:
    call, first, second = CALLS[name]
    a, b = np.ones(first), np.ones(second)
    with pytest.raises((ValueError, IndexError)):  # NumPy's AxisError is both
        call(a, b)
    g = rg.Graph()
    with pytest.raises(rg.ShapeError):
        call(g.input(a), g.input(b))


def test_lengths_that_do_not_fit_later_are_refused_then() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 3), dtype=float)
    y = rg.vecdot(x, np.ones((4, 3)))
    x.set(np.full((1, 3), 2.0))
    assert y.value.tolist() == [6.0] * 4
    z = g.input(np.ones((4, 3)))
    w = rg.inner(z, z[:2])
    with pytest.raises(rg.ShapeError):
        x.set(np.ones((3, 3)))
    z.set(np.ones((4, 1)))
    assert w.value.tolist() == [[1.0, 1.0]] * 4


def test_axes_and_dtypes_that_are_no_numbers() -> None:
    x = rg.Graph().input(np.ones((3, 3)))
    for call in (
        lambda: rg.tensordot(x, x, "ab"),
        lambda: rg.tensordot(x, x, (0.5, 1)),
        lambda: rg.tril(x, 0.5),
        lambda: rg.diagonal(x, 0.5),
        lambda: rg.vecdot(x, x, axis=None),
    ):
        with pytest.raises(rg.DTypeError):
            call()


def test_a_product_of_booleans_has_no_cross_product() -> None:
    x = rg.Graph().input(np.ones(3, bool))
    with pytest.raises(rg.DTypeError, match="cross"):
        rg.cross(x, x)
