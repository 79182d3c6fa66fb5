"""NumPy's functions on Vars: nodes where there is an op, a pointer to rg.lift where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from .test_elementwise import check

A = np.arange(12.0).reshape(3, 4)
LIST = [1, 2, 3, 4]

SUPPORTED = {
    "np.add.reduce": (lambda x: np.add.reduce(x), lambda a: np.add.reduce(a)),
    "np.add.reduce axis": (lambda x: np.add.reduce(x, 1), lambda a: np.add.reduce(a, 1)),
    "np.add.reduce None": (
        lambda x: np.add.reduce(x, axis=None, keepdims=True),
        lambda a: np.add.reduce(a, axis=None, keepdims=True),
    ),
    "np.maximum.reduce": (lambda x: np.maximum.reduce(x, axis=1), lambda a: a.max(axis=1)),
    "np.minimum.reduce": (lambda x: np.minimum.reduce(x), lambda a: a.min(axis=0)),
    "np.sum dtype": (lambda x: np.sum(x, dtype=np.float32), lambda a: np.sum(a, dtype=np.float32)),
    "np.sum int": (lambda x: np.sum(x, axis=0, dtype=int), lambda a: np.sum(a, axis=0, dtype=int)),
    "np.mean int": (lambda x: np.mean(x, dtype=int), lambda a: np.mean(a, dtype=int)),
    "np.mean bool": (lambda x: np.mean(x, dtype=bool), lambda a: np.mean(a, dtype=bool)),
    "np.mean dtype": (lambda x: np.mean(x, dtype="f4"), lambda a: np.mean(a, dtype="f4")),
    "np.transpose of a vector": (
        lambda x: np.transpose(x[0], 0),
        lambda a: np.transpose(a[0], 0),
    ),
    "np.mean": (
        lambda x: np.mean(x, axis=1, keepdims=True),
        lambda a: np.mean(a, axis=1, keepdims=True),
    ),
    "np.amax": (lambda x: np.amax(x, axis=0), lambda a: np.amax(a, axis=0)),
    "np.amin": (lambda x: np.amin(x), lambda a: np.amin(a)),
    "np.clip min=": (lambda x: np.clip(x, min=2), lambda a: np.clip(a, min=2)),
    "np.clip a_max": (lambda x: np.clip(x, None, a_max=5), lambda a: np.clip(a, None, a_max=5)),
    "np.where": (lambda x: np.where(x > 2, x, 0), lambda a: np.where(a > 2, a, 0)),
    "np.where ndarray first": (lambda x: np.where(A > 2, A, x), lambda a: np.where(A > 2, A, a)),
    "np.abs": (lambda x: np.abs(-x), lambda a: np.abs(-a)),
    "np.true_divide": (lambda x: np.true_divide(x, 2), lambda a: np.true_divide(a, 2)),
    "np.float64 first": (lambda x: np.float64(2) * x, lambda a: np.float64(2) * a),
    "ndarray first": (lambda x: A - x, lambda a: A - a),
    "ndarray compared": (lambda x: np.multiply(A, 1) >= x, lambda a: a <= A),
    "list first": (lambda x: LIST + x, lambda a: LIST + a),
    "where=True": (lambda x: np.add(x, 1, where=True), lambda a: np.add(a, 1)),
}


@pytest.mark.parametrize("name", SUPPORTED)
def test_numpy_function_makes_a_node(name: str) -> None:
    ours, numpys = SUPPORTED[name]
    x = rg.Graph().input(A * 0)
    node = ours(x)
    assert isinstance(node, rg.Var)
    assert node.value_version == 0, "building computes nothing"
    x.set(A)
    check(lambda: node, numpys(A), name)


UNSUPPORTED = {
    "np.subtract.accumulate": lambda x: np.subtract.accumulate(x),
    "np.arctan2.reduce": lambda x: np.arctan2.reduce(x),
    "np.is_busday": lambda x: np.is_busday(x),
    "np.busday_count": lambda x: np.busday_count(x, x),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_function_names_itself_and_lift(name: str) -> None:
    x = rg.Graph().input(A)
    with pytest.raises(rg.DTypeError, match=r"rg\.lift") as caught:
        UNSUPPORTED[name](x)
    assert f"rg.lift({name})" in str(caught.value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.add(x, 1, where=A > 2),
        lambda x: np.reshape(x, (4, 3), order="K"),
        lambda x: np.sum(x, out=np.zeros(())),
        lambda x: np.add(A, A, out=x),
        lambda x: np.add(x, x, out=np.zeros((3, 4))),
    ],
)
def test_option_that_no_op_has_is_refused(call: Any) -> None:
    with pytest.raises(rg.DTypeError):
        call(rg.Graph().input(A))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.reshape(x, (4, 3), order="C"),
        lambda x: np.sum(x, where=True, initial=np._NoValue),
        lambda x: np.concatenate([x, x], casting="same_kind"),
        lambda x: np.mean(x, out=None),
    ],
    ids=["order C", "where True", "casting same_kind", "out None"],
)
def test_option_that_says_what_is_the_case_anyway(call: Any) -> None:
    np.testing.assert_array_equal(call(rg.Graph().input(A)).value, call(A))


def test_array_of_the_caller_is_not_written_by_iadd() -> None:
    x = rg.Graph().input(A)
    a = A.copy()
    with pytest.raises(TypeError, match="out="):
        a += x
    np.testing.assert_array_equal(a, A)


def test_shape_functions_compute_nothing() -> None:
    g = rg.Graph()
    y = g.input(A) + 1
    assert (np.shape(y), np.ndim(y), np.size(y)) == ((3, 4), 2, 12)
    assert y.value_version == 0


def test_floor_division_and_remainder() -> None:
    x = rg.Graph().input(A + 1)
    check(lambda: x // 2, (A + 1) // 2, "x // 2")
    check(lambda: x % 2.5, (A + 1) % 2.5, "x % 2.5")
    check(lambda: -7 // x, -7 // (A + 1), "-7 // x")
    check(lambda: A % x, A % (A + 1), "ndarray % x")
    for build in (lambda: x << 1, lambda: x ^ 1):
        with pytest.raises(TypeError):
            build()


def test_sequence_of_vars_as_operand_stays_live_or_is_refused() -> None:
    """A list of Vars must not become a constant of their present values."""
    g = rg.Graph()
    a, b, x = g.input(1.0), g.input(2.0), g.input([10.0, 20.0])
    try:
        y = rg.add(x, [a, b])
    except rg.ReactgradError:
        return
    assert list(y.value) == [11.0, 22.0]
    a.set(5.0)
    assert list(y.value) == [15.0, 22.0]
