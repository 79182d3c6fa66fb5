"""Shapes that are known late or change: lengths of None, set with another shape, lifted results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.ops import UFUNCS

from .test_elementwise import BINARY, UNARY, outcome, same_bits

BATCHES = (3, 1, 5, 2, 2, 7)


def w4() -> np.ndarray:
    return np.linspace(0.5, 2.0, 4)


# name, function of (x, w), the same in NumPy
MODELS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "matmul": (lambda x, w: (x @ w) ** 2, lambda x, w: (x @ w) ** 2),
    "broadcast": (lambda x, w: x * w, lambda x, w: x * w),
    "column": (lambda x, w: x[:, 1:2] * w, lambda x, w: x[:, 1:2] * w),
    "mean of rows": (lambda x, w: x.mean(axis=0) * w, lambda x, w: x.mean(axis=0) * w),
    "mean of all": (lambda x, w: (x * w).mean() * w, lambda x, w: (x * w).mean() * w),
    "sum keepdims": (
        lambda x, w: x * w - x.sum(axis=0, keepdims=True),
        lambda x, w: x * w - x.sum(axis=0, keepdims=True),
    ),
    "max": (lambda x, w: x.max(axis=0) * w, lambda x, w: x.max(axis=0) * w),
    "transpose": (lambda x, w: rg.tanh(x.T).T * w, lambda x, w: np.tanh(x) * w),
    "reshape": (lambda x, w: x.reshape(-1, 2, 2) * w[:2], lambda x, w: x.reshape(-1, 2, 2) * w[:2]),
    "ravel": (lambda x, w: x.ravel() * w[0], lambda x, w: x.ravel() * w[0]),
    "slices": (lambda x, w: x[::-1] * w + x[-1], lambda x, w: x[::-1] * w + x[-1]),
    "concatenate": (
        lambda x, w: rg.concatenate([x, x * w, np.ones((1, 4))]),
        lambda x, w: np.concatenate([x, x * w, np.ones((1, 4))]),
    ),
    "stack": (lambda x, w: rg.stack([x, x * w], axis=1), lambda x, w: np.stack([x, x * w], axis=1)),
    "where": (lambda x, w: rg.where(x > 0, x * w, w), lambda x, w: np.where(x > 0, x * w, w)),
    "expand": (
        lambda x, w: rg.expand_dims(x, 1) * rg.expand_dims(x, 2) * w,
        lambda x, w: x[:, None, :] * x[:, :, None] * w,
    ),
    "clip": (lambda x, w: rg.clip(x * w, -1.0, 1.0), lambda x, w: np.clip(x * w, -1.0, 1.0)),
    "softmax": (
        lambda x, w: rg.exp(x * w) / rg.exp(x * w).sum(axis=1, keepdims=True),
        lambda x, w: np.exp(x * w) / np.exp(x * w).sum(axis=1, keepdims=True),
    ),
}


def slope(f: Callable[[Any], Any], a: np.ndarray) -> np.ndarray:
    """Central differences of the sum of squares of f."""
    out = np.zeros_like(a)
    for i in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[i] = 1e-6
        out[i] = (np.sum(f(a + step) ** 2) - np.sum(f(a - step) ** 2)) / 2e-6
    return out


@pytest.mark.parametrize("declared", ["unknown", "known", "unset then shape"])
@pytest.mark.parametrize("name", MODELS)
def test_values_and_gradients_right_after_each_change_of_shape(name: str, declared: str) -> None:
    ours, numpys = MODELS[name]
    g = rg.Graph()
    rng = np.random.default_rng(0)
    if declared == "known":
        x = g.input(rng.normal(size=(4, 4)))
    else:
        x = g.input(shape=(None, 4), dtype=float)
    w = g.param(w4())
    if declared == "unset then shape":
        x.set(rng.normal(size=(2, 4)))
    y = ours(x, w)
    loss = (y * y).sum()
    dw, dx = rg.grad(loss, [w, x])
    for n in BATCHES:
        a = rng.normal(size=(n, 4))
        x.set(a)
        expected = numpys(a, w4())
        assert y.shape == expected.shape
        np.testing.assert_allclose(dw.value, slope(lambda v, a=a: numpys(a, v), w4()), atol=1e-5)
        np.testing.assert_allclose(dx.value, slope(lambda v: numpys(v, w4()), a), atol=1e-5)
        np.testing.assert_allclose(y.value, expected, rtol=1e-13)
        assert dx.shape == x.shape == a.shape
        assert rg.grad(loss, w) is dw
        assert rg.grad(loss, x) is dx
        w.zero_grad()
        loss.backward()
        np.testing.assert_array_equal(w.grad, dw.value)
        g.check_invariants()


def test_shape_known_before_any_value() -> None:
    x = rg.Graph().input(shape=(None, 4), dtype="f4")
    for node, shape in (
        (x, (None, 4)),
        (x.T, (4, None)),
        (x[1:], (None, 4)),
        (x[:, 1:], (None, 3)),
        (x[0], (4,)),
        (x[:, None], (None, 1, 4)),
        (x[:, [0, 2]], (None, 2)),
        (x[..., [[0], [2]]], (None, 2, 1)),
        (x[:, [True, False, True, True]], (None, 3)),
        (x[[0, 0, 1], :], (3, 4)),
        (x.sum(axis=0), (4,)),
        (x.sum(axis=1, keepdims=True), (None, 1)),
        (x @ np.ones((4, 2), np.float32), (None, 2)),
        (x + np.ones((1, 4), np.float32), (None, 4)),
        (rg.concatenate([x, x], axis=1), (None, 8)),
        (rg.concatenate([x, x]), (None, 4)),
        (rg.stack([x, x]), (2, None, 4)),
        (x.reshape(-1), (None,)),
        (x > 0, (None, 4)),
    ):
        assert node.shape == shape
        assert node.value_version == 0
        assert node.dtype == (bool if node.dtype == bool else np.float32)


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), np.array([3, 0, 3])),
        (..., np.array([[1], [2]])),
        (slice(None), np.array([True, False, True, False])),
        (np.array([1, 1]), slice(None)),
        (np.array([1, 1]), ...),
        np.array([[True, False, True, False], [False, True, True, False]]),
    ],
    ids=["columns", "last", "mask", "rows", "first", "both"],
)
def test_an_array_as_an_index_of_a_length_that_is_not_known(index: object) -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 4), dtype=float)
    part = x[index]
    gradient = rg.grad((part * part).sum(), x)
    value = np.arange(8.0).reshape(2, 4)
    x.set(value)
    np.testing.assert_array_equal(part.value, value[index])  # type: ignore[call-overload]
    want = np.zeros_like(value)
    np.add.at(want, index, 2.0 * value[index])  # type: ignore[call-overload]
    np.testing.assert_array_equal(gradient.value, want)


@pytest.mark.parametrize("index", [([0], [1]), (0, [1]), (slice(1, None), [1]), (None, [0])])
def test_an_index_whose_shape_depends_on_lengths_says_so(index: object) -> None:
    x = rg.Graph().input(shape=(None, 4))
    with pytest.raises(rg.DTypeError, match="needs known lengths; set the input first"):
        x[index]


def test_an_array_as_an_index_that_does_not_fit_what_is_known_says_so() -> None:
    x = rg.Graph().input(shape=(None, 4))
    for index in (
        (slice(None), [4]),
        (slice(None), [True, False]),
        (slice(None), ..., 0 * [1], [1]),
    ):
        with pytest.raises(rg.ReactgradError):
            x[index]
    with pytest.raises(rg.IndexingError, match="too many indices"):
        x[:, :, [1]]


def test_length_of_what_is_not_known_says_so() -> None:
    x = rg.Graph().input(shape=(None, 4))
    for ask in (lambda: x.size, lambda: len(x), lambda: list(x)):
        with pytest.raises(rg.ReactgradError, match="set"):
            ask()


def test_second_gradient_after_a_change_of_shape() -> None:
    g = rg.Graph()
    x = g.input(np.ones((3, 4)))
    y = (x**3).sum()
    first = rg.grad(y, x)
    total = first.sum()
    second = rg.grad(total, x)
    _ = second.value
    for n in (2, 5, 1):
        a = np.full((n, 4), float(n))
        x.set(a)
        np.testing.assert_allclose(second.value, 6 * a)
        np.testing.assert_allclose(first.value, 3 * a**2)


def test_gradient_of_an_output_that_nobody_holds_follows_a_change_of_shape() -> None:
    """The gradient's Var alone must keep alive what rebuilds it."""
    g = rg.Graph()
    x = g.input(np.ones((3, 4)))
    gradient = rg.grad((x**2).sum(), x)
    _ = gradient.value
    x.set(np.full((2, 4), 3.0))
    np.testing.assert_allclose(gradient.value, np.full((2, 4), 6.0))


def test_gradient_of_an_unheld_output_of_unknown_shape() -> None:
    x = rg.Graph().input(shape=(None, 4))
    gradient = rg.grad((x**2).sum(), x)
    x.set(np.full((2, 4), 3.0))
    np.testing.assert_allclose(gradient.value, np.full((2, 4), 6.0))


def test_second_gradient_through_an_unheld_sum() -> None:
    x = rg.Graph().input(np.ones((3, 4)))
    y = (x**2).sum()
    second = rg.grad(rg.grad(y, x).sum(), x)
    _ = second.value
    x.set(np.ones((2, 4)))
    np.testing.assert_allclose(second.value, np.full((2, 4), 2.0))


@pytest.mark.parametrize(
    ("build", "bad"),
    [
        (lambda x: x * np.ones((3, 1)), (2, 4)),
        (lambda x: x.reshape(2, 6), (2, 4)),
        (lambda x: x @ np.ones((4, 2)), (3, 5)),
        (lambda x: x[2], (2, 4)),
        (lambda x: x[[0, 2]], (2, 4)),
        (lambda x: rg.concatenate([x, np.ones((1, 4))]), (3, 5)),
        (lambda x: rg.stack([x, np.ones((3, 4))]), (2, 4)),
        (lambda x: x.max(axis=0), (0, 4)),
        (lambda x: x.sum(axis=1), (3,)),
        (lambda x: rg.broadcast_to(x, (3, 4)) + 1, (2, 4)),
        (lambda x: x.transpose(1, 0), (3,)),
    ],
)
def test_shape_that_does_not_fit_downstream_changes_nothing(build: Any, bad: tuple) -> None:
    g = rg.Graph()
    a = np.random.default_rng(0).normal(size=(3, 4))
    x = g.input(a, name="quotes")
    y = build(x)
    loss = (y * y).sum()
    gradient = rg.grad(loss, x)
    other = x + 1
    before = y.value, gradient.value, other.value
    versions = [v.value_version for v in (x, y, gradient, other)]
    count = len(g)
    with pytest.raises(rg.ReactgradError) as caught:
        x.set(np.zeros(bad))
    assert isinstance(caught.value, (ValueError, IndexError))
    notes = " ".join(caught.value.__notes__)
    assert "quotes" in notes
    assert "Nothing was changed" in notes
    assert x.shape == (3, 4)
    assert y.value is before[0]
    assert gradient.value is before[1]
    assert other.value is before[2]
    assert versions == [v.value_version for v in (x, y, gradient, other)]
    assert len(g) == count
    g.check_invariants()
    x.set(a * 2)
    np.testing.assert_allclose(other.value, a * 2 + 1)


def test_declared_length_is_enforced() -> None:
    g = rg.Graph()
    x = g.input(shape=(None, 4), dtype="f4", name="x")
    for bad in (np.zeros((2, 3)), np.zeros(4), np.zeros((1, 2, 4)), 3.0):
        with pytest.raises(rg.ShapeError, match=r"declared as float32\[\?, 4\].*Reshape"):
            x.set(bad)
    with pytest.raises(rg.DTypeError, match="complex"):
        x.set(np.zeros((2, 4), complex))
    x.set(np.zeros((2, 4), int))
    assert x.value.dtype == np.float32


def test_several_leaves_change_shape_together() -> None:
    g = rg.Graph()
    a, b = g.input(np.ones(3)), g.input(np.ones(3))
    y = (a * b).sum()
    da = rg.grad(y, a)
    _ = da.value
    with pytest.raises(rg.ShapeError):
        a.set(np.ones(5))
    g.set({a: np.ones(5), b: np.full(5, 2.0)})
    np.testing.assert_array_equal(da.value, np.full(5, 2.0))
    with pytest.raises(rg.ShapeError):
        g.set({a: np.ones(2), b: np.ones(4)})
    assert a.shape == b.shape == (5,)


def test_param_of_another_shape() -> None:
    g = rg.Graph()
    w = g.param(np.ones((2, 3)))
    y = (w**2).sum()
    y.backward()
    w.set(np.full((4,), 2.0))
    y.backward()
    np.testing.assert_array_equal(w.grad, np.full((4,), 4.0))  # nothing to add the old one to


def test_dtype_of_a_number_input_changes_downstream() -> None:
    g = rg.Graph()
    n = g.input(2)
    y = n * g.input(np.array([1, 2], np.int8))
    assert y.dtype == np.int8
    _ = y.value
    n.set(2.5)
    assert y.dtype == (np.int8(1) * np.array([2.5])).dtype == y.value.dtype
    np.testing.assert_array_equal(y.value, [2.5, 5.0])


# --- results of Python functions: the spec is known when the value is there --------------------


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_op_on_a_python_result_is_the_same(name: str, dtype: str) -> None:
    function = getattr(np, name)
    a = np.array([[1, 0, 1], [1, 1, 0]]).astype(dtype)
    g = rg.Graph()
    x = rg.lift(lambda v: v)(g.input(a))
    if name in UNARY:
        expected = outcome(lambda: function(a))
        build: Callable[[], Any] = lambda: function(x)  # noqa: E731
    else:
        expected = outcome(lambda: function(a, a[0]))
        build = lambda: function(x, a[0])  # noqa: E731
    if isinstance(expected, type):
        with pytest.raises(expected):
            _ = build().value
        return
    node = build()
    assert same_bits(node.value, expected)
    assert (node.shape, node.dtype) == (expected.shape, expected.dtype)


def test_layout_and_reductions_on_a_python_result() -> None:
    a = np.arange(12.0).reshape(3, 4)
    g = rg.Graph()
    n = g.input(3)
    x = rg.lift(lambda k: np.arange(k * 4.0).reshape(k, 4))(n)
    pairs = [
        (x.T, lambda a: a.T),
        (x[1:, ::2], lambda a: a[1:, ::2]),
        (x[[0, 0, -1]], lambda a: a[[0, 0, -1]]),
        (x.sum(), lambda a: a.sum()),
        (x.mean(axis=1), lambda a: a.mean(axis=1)),
        (x.max(axis=0), lambda a: a.max(axis=0)),
        (x.reshape(-1), lambda a: a.reshape(-1)),
        (x @ np.ones(4), lambda a: a @ np.ones(4)),
        (rg.concatenate([x, x]), lambda a: np.concatenate([a, a])),
        (rg.stack([x, x]), lambda a: np.stack([a, a])),
        (rg.where(x > 3, x, 0), lambda a: np.where(a > 3, a, 0)),
        (x.astype("f4"), lambda a: a.astype("f4")),
        (x.clip(1, 5), lambda a: a.clip(1, 5)),
        (rg.expand_dims(x, 0), lambda a: a[None]),
        (x * 2 + 1.5, lambda a: a * 2 + 1.5),
        (rg.sigmoid(x), lambda a: 1 / (1 + np.exp(-a))),
    ]
    for k in (3, 2, 5):
        n.set(k)
        a = np.arange(k * 4.0).reshape(k, 4)
        for node, numpys in pairs:
            np.testing.assert_allclose(node.value, numpys(a), rtol=1e-15, err_msg=node.name)
            assert node.shape == numpys(a).shape


@pytest.mark.parametrize(
    "result", ["text", {"a": 1}, None, object()], ids=["str", "dict", "None", "object"]
)
def test_op_on_a_python_object_says_what_to_do(result: Any) -> None:
    g = rg.Graph()
    y = rg.lift(lambda v: result)(g.input(1)) + 1
    with pytest.raises(rg.DTypeError, match=r"numbers and arrays.*rg\.lift"):
        _ = y.value


def test_gradient_through_python_results_whose_shape_changes() -> None:
    """The shapes of the operands are those of the moment at which the gradient is read."""
    g = rg.Graph()
    n, w = g.input(3), g.param(2.0)
    full = rg.lift(lambda n, a: np.full(n, a), vjp=lambda g, ans, n, a: (None, g.sum()))
    y = full(n, w)
    loss = (y * y).sum()
    gradient = rg.grad(loss, w)
    for k in (3, 5, 1):
        n.set(k)
        assert loss.value == 4.0 * k
        assert gradient.value == 4.0 * k
        w.zero_grad()
        loss.backward()
        assert w.grad == 4.0 * k


def test_set_of_another_shape_under_a_python_function_with_a_rule() -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    double = rg.lift(lambda a: a * 2, vjp=lambda g, ans, a: (g * 2,))
    y = double(x + 1)
    loss = (y * y).sum()
    gradient = rg.grad(loss, x)
    _ = gradient.value
    x.set(np.zeros(5))
    np.testing.assert_array_equal(gradient.value, np.full(5, 8.0))


def test_every_mirrored_ufunc_is_covered() -> None:
    others = {"matmul", "clip"}  # of more than elements, and of three operands
    assert {u.__name__ for u in UFUNCS} == {*UNARY, *BINARY} | others


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gradient_of_a_real_operand_is_real_though_its_dtype_shows_late(dtype: str) -> None:
    """NumPy says that ``None`` equals float64, so a dtype that is not known was taken for that one."""
    numbers = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
    g = rg.Graph()
    x = g.input(numbers.astype(dtype))
    late = x[x > 0].sum()
    y = (rg.absolute(rg.fft.fft(x)) * late).sum() + x[x < 1].sum()
    found = rg.grad(y, x)
    assert found.value.dtype == dtype
    whole = rg.Graph()
    like = whole.input(numbers.astype(dtype))
    same = rg.where(like > 0, like, 0).sum()
    z = (rg.absolute(rg.fft.fft(like)) * same).sum() + rg.where(like < 1, like, 0).sum()
    np.testing.assert_allclose(found.value, rg.grad(z, like).value, rtol=1e-5)


def test_a_dtype_that_shows_late_is_converted() -> None:
    g = rg.Graph()
    integers = rg.lift(lambda x: x.astype(np.int64))(g.input([1.5, 2.5]))
    assert rg.astype(integers, "float64", copy=False).value.dtype == np.float64
    common = rg.intersect1d(g.input(np.array([1, 2], "int32")), g.input([2.0, 3.0]))
    assert common.value.dtype == np.float64
    with pytest.raises(rg.DTypeError, match="imaginary part"):
        rg.masked_fill(g.input([1.0, 2.0]), [True, False], 1j).value
