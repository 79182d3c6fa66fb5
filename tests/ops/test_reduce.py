"""Reductions, layout ops, joins and products against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from .test_elementwise import DTYPES, check, outcome, sample

AXES = [None, 0, 1, -1, (0, 1), (1, 0), (), (-1,)]


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_reduction_is_the_numpy_call(name: str, dtype: str) -> None:
    a = sample(dtype, 1)
    x = rg.Graph().input(a)
    for axis in AXES:
        for keepdims in (False, True):
            what = f"{name}({dtype}, axis={axis}, keepdims={keepdims})"
            options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
            expected = outcome(lambda o=options: getattr(np, name)(a, **o))
            check(lambda o=options: getattr(rg, name)(x, **o), expected, what)
            check(lambda o=options: getattr(np, name)(x, **o), expected, f"np.{what}")
            check(lambda o=options: getattr(x, name)(**o), expected, f"x.{what}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "bool"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_long_sums_have_numpys_bits(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a = (rng.random((1000, 7)) * 100).astype(dtype)
    x = rg.Graph().input(a)
    # Off the innermost axis NumPy loses digits of short floats: see test_sums_of_short_floats.
    for axis in (None, 1) if dtype in ("float16", "float32") else (None, 0, 1):
        expected = outcome(lambda axis=axis: getattr(np, name)(a, axis=axis))
        check(
            lambda axis=axis: getattr(x, name)(axis=axis), expected, f"{name} {dtype} axis {axis}"
        )


@pytest.mark.parametrize("shape", [(), (1,), (2, 3, 4), (0,), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_any_shape(name: str, shape: tuple[int, ...]) -> None:
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    x = rg.Graph().input(a)
    for axis in [None, *range(len(shape))]:
        with (
            pytest.warns(RuntimeWarning)
            if name == "mean" and not a.size and _warns(a, axis)
            else np.errstate()
        ):
            expected = getattr(np, name)(a, axis=axis)
        check(lambda axis=axis: getattr(x, name)(axis=axis), expected, f"{name} {shape} {axis}")


def _warns(a: np.ndarray, axis: int | None) -> bool:
    return (a.size if axis is None else a.shape[axis]) == 0


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremum_of_nothing_says_so(name: str) -> None:
    x = rg.Graph().input(np.zeros((0, 3)))
    with pytest.raises(rg.ShapeError, match="length 0"):
        getattr(x, name)(axis=0)
    assert getattr(x, name)(axis=1).value.shape == (0,)


@pytest.mark.parametrize(
    ("axis", "error", "words"),
    [
        (2, IndexError, "axis 2 does not exist"),
        (-3, ValueError, "axis -3 does not exist"),
        ((0, 0), ValueError, "twice"),
        ((0, -2), ValueError, "twice"),
        (1.5, TypeError, "integer"),
        ("a", TypeError, "integer"),
    ],
)
def test_bad_axis(axis: Any, error: type[Exception], words: str) -> None:
    x = rg.Graph().input(np.zeros((2, 3)))
    for function in (rg.sum, rg.mean, rg.max, rg.min):
        with pytest.raises(error, match=words) as caught:
            function(x, axis=axis)
        assert isinstance(caught.value, rg.ReactgradError)


def test_reduction_of_a_transposed_view() -> None:
    a = np.random.default_rng(0).normal(size=(5, 7))
    x = rg.Graph().input(a)
    check(lambda: x.T.sum(axis=0), a.T.sum(axis=0), "x.T.sum")
    check(lambda: x[::-1, ::2].max(axis=1), a[::-1, ::2].max(axis=1), "x[...].max")


# --- layout ------------------------------------------------------------------------------------

A = np.arange(24.0).reshape(2, 3, 4)
ONES = np.arange(6.0).reshape(1, 2, 1, 3)

LAYOUT_OPS = {
    "T": (lambda x: x.T, lambda a: a.T),
    "transpose()": (lambda x: x.transpose(), lambda a: a.transpose()),
    "transpose axes": (lambda x: x.transpose(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "transpose tuple": (lambda x: x.transpose((1, 0, 2)), lambda a: a.transpose((1, 0, 2))),
    "transpose negative": (lambda x: x.transpose(-1, 0, -2), lambda a: a.transpose(-1, 0, -2)),
    "np.transpose": (lambda x: np.transpose(x, (2, 1, 0)), lambda a: np.transpose(a, (2, 1, 0))),
    "reshape": (lambda x: x.reshape(6, 4), lambda a: a.reshape(6, 4)),
    "reshape -1": (lambda x: x.reshape((4, -1)), lambda a: a.reshape((4, -1))),
    "reshape of a view": (lambda x: x.T.reshape(-1), lambda a: a.T.reshape(-1)),
    "reshape flat": (lambda x: x.reshape(24), lambda a: a.reshape(24)),
    "reshape many": (lambda x: x.reshape(1, 24, 1, 1), lambda a: a.reshape(1, 24, 1, 1)),
    "np.reshape": (lambda x: np.reshape(x, (3, 8)), lambda a: np.reshape(a, (3, 8))),
    "reshape np ints": (lambda x: x.reshape(np.int64(6), 4), lambda a: a.reshape(6, 4)),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "flatten": (lambda x: x.T.flatten(), lambda a: a.T.flatten()),
    "np.ravel": (lambda x: np.ravel(x), lambda a: np.ravel(a)),
    "expand_dims": (lambda x: rg.expand_dims(x, 1), lambda a: np.expand_dims(a, 1)),
    "expand_dims many": (
        lambda x: np.expand_dims(x, (0, -1)),
        lambda a: np.expand_dims(a, (0, -1)),
    ),
    "broadcast_to": (
        lambda x: rg.broadcast_to(x, (5, 2, 3, 4)),
        lambda a: np.broadcast_to(a, (5, 2, 3, 4)),
    ),
    "broadcast then sum": (
        lambda x: np.broadcast_to(x[:, :1], (2, 3, 4)).sum(axis=1),
        lambda a: np.broadcast_to(a[:, :1], (2, 3, 4)).sum(axis=1),
    ),
    "concatenate": (
        lambda x: rg.concatenate([x, x * 2, A], axis=1),
        lambda a: np.concatenate([a, a * 2, A], axis=1),
    ),
    "np.concatenate": (
        lambda x: np.concatenate((A, x), axis=-1),
        lambda a: np.concatenate((A, a), axis=-1),
    ),
    "concatenate flat": (
        lambda x: rg.concatenate([x, x.T], axis=None),
        lambda a: np.concatenate([a, a.T], axis=None),
    ),
    "concatenate flat, array first": (
        lambda x: np.concatenate([A, x], axis=None),
        lambda a: np.concatenate([A, a], axis=None),
    ),
    "stack": (lambda x: rg.stack([x, x + 1], axis=2), lambda a: np.stack([a, a + 1], axis=2)),
    "np.stack": (lambda x: np.stack([A, x], axis=-1), lambda a: np.stack([A, a], axis=-1)),
    "stack mixed dtypes": (
        lambda x: rg.stack([x[0, 0, 0], 1, np.float32(2)]),
        lambda a: np.stack([a[0, 0, 0], 1, np.float32(2)]),
    ),
}


@pytest.mark.parametrize("name", LAYOUT_OPS)
def test_layout_op_is_numpys(name: str) -> None:
    ours, numpys = LAYOUT_OPS[name]
    x = rg.Graph().input(A * 0)
    node = ours(x)
    _ = node.value
    x.set(A)  # the view, or the copy, follows
    check(lambda: node, numpys(A), name)
    check(lambda: ours(x), numpys(A), f"{name}, built anew")


@pytest.mark.parametrize("axis", [None, 0, 2, (0, 2), -2, (-4, -2)])
def test_squeeze(axis: Any) -> None:
    x = rg.Graph().input(ONES)
    check(lambda: rg.squeeze(x, axis), np.squeeze(ONES, axis), "rg.squeeze")
    check(lambda: np.squeeze(x, axis), np.squeeze(ONES, axis), "np.squeeze")
    check(lambda: x.squeeze(axis), ONES.squeeze(axis), "x.squeeze")


def x3() -> Any:
    return rg.Graph().input(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: x3().reshape(5), ValueError, r"6 elements"),
        (lambda: x3().reshape(-1, -1), ValueError, r"only one"),
        (lambda: x3().reshape(-2, 3), ValueError, r"negative"),
        (lambda: x3().reshape(4, -1), ValueError, r"do not fill"),
        (lambda: x3().reshape(1.5), TypeError, r"integer"),
        (lambda: x3().reshape("ab"), TypeError, r"integer"),
        (lambda: rg.Graph().input(np.zeros((0, 3))).reshape(0, -1), ValueError, r"do not fill"),
        (lambda: x3().transpose(0, 0), ValueError, r"twice"),
        (lambda: x3().transpose(0), ValueError, r"each of its 2 axes"),
        (lambda: x3().transpose(0, 2), IndexError, r"axis 2 does not exist"),
        (lambda: x3().transpose(()), ValueError, r"each of its 2 axes"),
        (lambda: x3().squeeze(0), ValueError, r"length 2.*Index it"),
        (lambda: rg.expand_dims(x3(), 4), IndexError, r"axis 4 does not exist"),
        (lambda: rg.expand_dims(x3(), (0, 0)), ValueError, r"twice"),
        (lambda: rg.broadcast_to(x3(), (3, 3)), ValueError, r"cannot become"),
        (lambda: rg.broadcast_to(x3(), (3,)), ValueError, r"cannot become"),
        (lambda: rg.broadcast_to(x3(), (-1, 3)), ValueError, r"cannot become"),
        (lambda: rg.concatenate([x3(), 1.0]), ValueError, r"lengths must be the same"),
        (lambda: rg.concatenate([1.0, 2.0]), ValueError, r"use stack"),
        (lambda: rg.concatenate([]), ValueError, r"at least one"),
        (lambda: rg.concatenate(x3().sum()), TypeError, r"sequence"),
        (lambda: rg.concatenate(3), TypeError, r"sequence"),
        (lambda: rg.concatenate([x3()], axis=2), IndexError, r"axis 2"),
        (lambda: rg.stack([]), ValueError, r"at least one"),
        (lambda: rg.stack([x3(), 1.0]), ValueError, r"must be the same"),
        (lambda: rg.stack([x3()], axis=4), IndexError, r"axis 4"),
        (lambda: x3() @ 2.0, ValueError, r"use \* for numbers"),
        (lambda: 2.0 @ x3(), ValueError, r"use \* for numbers"),
        (lambda: x3() @ np.zeros((2, 3)), ValueError, r"Transpose"),
        (lambda: x3() @ np.zeros(2), ValueError, r"same length"),
        (lambda: x3() @ ["a", "b", "c"], TypeError, r"strings"),
    ],
)
def test_operand_that_does_not_fit(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        build()
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize("name", ["reshape", "transpose", "broadcast_to", "getitem", "astype"])
def test_every_dtype_passes_layout_ops(name: str) -> None:
    for dtype in DTYPES:
        a = sample(dtype, 2)
        x = rg.Graph().input(a)
        ours, numpys = {
            "reshape": (lambda x: x.reshape(4, 3), lambda a: a.reshape(4, 3)),
            "transpose": (lambda x: x.T, lambda a: a.T),
            "broadcast_to": (
                lambda x: rg.broadcast_to(x, (2, 3, 4)),
                lambda a: np.broadcast_to(a, (2, 3, 4)),
            ),
            "getitem": (lambda x: x[1:, ::-1], lambda a: a[1:, ::-1]),
            "astype": (lambda x: x.astype(x.dtype), lambda a: a),
        }[name]
        check(lambda x=x, ours=ours: ours(x), numpys(a), f"{name} of {dtype}")


# --- products ----------------------------------------------------------------------------------

PRODUCTS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2,), (2, 3)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 1)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((2, 0), (0, 3)),
    ((0, 2), (2, 3)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    g = rg.Graph()
    x, y = g.input(a), g.input(b)
    check(lambda: x @ y, a @ b, "x @ y")
    check(lambda: a @ y, a @ b, "ndarray @ y")
    check(lambda: x @ b, a @ b, "x @ ndarray")
    check(lambda: np.matmul(x, y), a @ b, "np.matmul")


def test_matmul_dtypes() -> None:
    for left in DTYPES:
        for right in DTYPES:
            a = np.nan_to_num(sample(left, 3), nan=1, posinf=2, neginf=-2)
            b = np.nan_to_num(sample(right, 4).T, nan=1, posinf=2, neginf=-2)
            g = rg.Graph()
            x, y = g.input(a), g.input(b)
            node = x @ y
            expected = outcome(lambda a=a, b=b: np.ascontiguousarray(a) @ np.ascontiguousarray(b))
            assert node.dtype == expected.dtype == node.value.dtype, (left, right)
            np.testing.assert_allclose(node.value, expected, rtol=1e-2, err_msg=f"{left} {right}")


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3, 4), (2, 4, 6)), ((2, 3), ()), ((), (3,))],
)
def test_dot_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """`dot` of more than two axes is not matmul: never another product under NumPy's name."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    g = rg.Graph()
    x, y = g.input(np.array(a)), g.input(np.array(b))
    for build in (lambda: np.dot(x, y), lambda: x.dot(y)):
        np.testing.assert_allclose(build().value, np.dot(a, b))
