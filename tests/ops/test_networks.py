"""Parts of networks: the same as the ops they stand for, as PyTorch, and in their corners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.blocks import _strips

Function = Callable[..., Any]


def softmax_by_hand(x: Any, axis: Any = -1) -> Any:
    e = rg.exp(x - x.max(axis=axis, keepdims=True).detach())
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax_by_hand(x: Any, axis: Any = -1) -> Any:
    below = x - x.max(axis=axis, keepdims=True).detach()
    return below - rg.log(rg.exp(below).sum(axis=axis, keepdims=True))


def labels(axis: int) -> np.ndarray:
    """A class for each row of (4, 5, 3) along an axis."""
    shape = np.delete((4, 5, 3), axis)
    return np.random.default_rng(7).integers(0, (4, 5, 3)[axis], shape)


def cross_entropy(x: Any, axis: int) -> Any:
    return rg.expand_dims(rg.cross_entropy(x, labels(axis), axis), axis)


def cross_entropy_by_hand(x: Any, axis: int) -> Any:
    ones = np.moveaxis(np.eye(x.shape[axis], dtype=x.dtype)[labels(axis)], -1, axis)
    return -(ones * log_softmax_by_hand(x, axis)).sum(axis=axis, keepdims=True)


def layer_norm_by_hand(x: Any, axis: Any = -1, eps: float = 1e-5) -> Any:
    apart = x - x.mean(axis=axis, keepdims=True)
    return apart / rg.sqrt((apart * apart).mean(axis=axis, keepdims=True) + eps)


def tanh_by_hand(x: Any) -> Any:
    e = rg.expm1(2.0 * x)
    return e / (e + 2.0)


FUSED: dict[str, tuple[Function, Function]] = {
    "softmax": (rg.softmax, softmax_by_hand),
    "softmax first axis": (lambda x: rg.softmax(x, 0), lambda x: softmax_by_hand(x, 0)),
    "softmax axes": (lambda x: rg.softmax(x, (0, 2)), lambda x: softmax_by_hand(x, (0, 2))),
    "softmax all": (lambda x: rg.softmax(x, None), lambda x: softmax_by_hand(x, None)),
    "log_softmax": (rg.log_softmax, log_softmax_by_hand),
    "log_softmax axes": (
        lambda x: rg.log_softmax(x, (0, 2)),
        lambda x: log_softmax_by_hand(x, (0, 2)),
    ),
    "cross_entropy": (lambda x: cross_entropy(x, 2), lambda x: cross_entropy_by_hand(x, 2)),
    "cross_entropy first axis": (
        lambda x: cross_entropy(x, 0),
        lambda x: cross_entropy_by_hand(x, 0),
    ),
    "cross_entropy inner axis": (
        lambda x: cross_entropy(x, 1),
        lambda x: cross_entropy_by_hand(x, 1),
    ),
    "layer_norm": (rg.layer_norm, layer_norm_by_hand),
    "layer_norm first axis": (
        lambda x: rg.layer_norm(x, axis=0),
        lambda x: layer_norm_by_hand(x, 0),
    ),
    "layer_norm axes": (
        lambda x: rg.layer_norm(x, axis=(1, 2), eps=0.25),
        lambda x: layer_norm_by_hand(x, (1, 2), 0.25),
    ),
    "tanh": (rg.tanh, tanh_by_hand),
    "sigmoid": (rg.sigmoid, lambda x: 1.0 / (1.0 + rg.exp(-x))),
    "relu": (rg.relu, lambda x: rg.where(x > 0, x, 0.0)),
}


def derivatives(f: Function, given: np.ndarray) -> list[np.ndarray]:
    """Value, gradient, tangent and a product with the second derivative."""
    g = rg.Graph()
    x = g.param(given)
    weights = np.cos(np.arange(given.size)).reshape(given.shape).astype(given.dtype)
    y = (f(x) * weights).sum()
    direction = np.sin(np.arange(given.size)).reshape(given.shape).astype(given.dtype)
    nodes = [f(x), rg.grad(y, x), rg.jvp(f(x), x, direction), rg.hvp(y, x, direction)]
    return [node.value for node in nodes]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUSED)
def test_fused_is_what_it_stands_for(name: str, dtype: str) -> None:
    fused, by_hand = FUSED[name]
    given = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(dtype)
    ulp = np.finfo(dtype).eps
    for got, want in zip(derivatives(fused, given), derivatives(by_hand, given), strict=True):
        assert got.dtype == want.dtype == np.dtype(dtype)
        np.testing.assert_allclose(got, want, rtol=16 * ulp, atol=64 * ulp)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FUSED)
def test_blocks_of_rows_give_the_same_bits_on_any_number_of_threads(name: str, dtype: str) -> None:
    fused, _ = FUSED[name]
    given = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(dtype)
    before, found = rg.get_num_threads(), []
    try:
        for threads in (1, 4):
            rg.set_num_threads(threads)
            with _strips.configured(block=7, threshold=1, effort=0):
                found.append(derivatives(fused, given))
    finally:
        rg.set_num_threads(before)
    for one, other, whole in zip(*found, derivatives(fused, given), strict=True):
        np.testing.assert_array_equal(one, other)
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(one, whole, rtol=16 * eps, atol=16 * eps)


def test_one_node_and_one_for_its_gradient() -> None:
    """Of which a new gradient of the result runs the latter alone."""
    g = rg.Graph()
    x, w = g.input(np.ones((2, 3))), g.input(np.arange(6.0).reshape(2, 3))
    y = rg.softmax(x)
    dx = rg.grad((y * w).sum(), x)
    run = g.forward(y, dx)
    assert [node.name.rpartition("_")[0] for node in run.ran][:1] == ["softmax"]
    assert sum("softmax" in node.name for node in run.ran) == 2
    w.set(np.ones((2, 3)))
    assert y not in g.forward(y, dx).ran
    np.testing.assert_allclose(dx.value, 0.0, atol=1e-16)


# --- corners -------------------------------------------------------------------------------------

inf, nan = np.inf, np.nan


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize(
    ("row", "want"),
    [
        ([1e4, 0.0, -1e4], [1.0, 0.0, 0.0]),
        ([6e4, 6e4, -6e4], [0.5, 0.5, 0.0]),
        ([0.0, -inf, 0.0], [0.5, 0.0, 0.5]),
        ([-inf, -inf, -inf], [nan, nan, nan]),
        ([0.0, inf, 0.0], [nan, nan, nan]),
        ([0.0, nan, 0.0], [nan, nan, nan]),
    ],
)
def test_softmax_of_large_and_infinite_numbers(
    row: list[float], want: list[float], dtype: str
) -> None:
    with rg.Graph():
        # What lies in another row is not touched by it.
        x = np.array([row, [0.0, 0.0, 0.0]], dtype)
        np.testing.assert_array_equal(rg.softmax(x).value[0], want)
        np.testing.assert_allclose(rg.softmax(x).value[1], 1 / 3, rtol=np.finfo(dtype).eps * 2)


def test_rows_without_elements_have_no_results_and_no_gradients() -> None:
    x = rg.Graph().input(np.zeros((5, 0)))
    for f in (rg.softmax, rg.log_softmax):
        assert f(x).value.shape == rg.grad(f(x).sum(), x).value.shape == (5, 0)


def test_log_softmax_keeps_digits_where_softmax_has_none() -> None:
    with rg.Graph():
        x = np.array([[1000.0, 0.0, 1000.0 - 40.0]])
        np.testing.assert_allclose(rg.log_softmax(x).value[0, :2], [-4.2e-18, -1000.0], atol=1e-16)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 3)])
def test_no_rows_and_empty_rows(shape: tuple[int, ...]) -> None:
    g = rg.Graph()
    x = g.param(np.zeros(shape))
    for f in (rg.softmax, rg.layer_norm):
        y = f(x)
        assert y.value.shape == shape
        assert rg.grad(y.sum(), x).value.shape == shape


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8"])
def test_integers_give_floats(dtype: str) -> None:
    """Of the dtype that exp gives, and without what integers overflow to."""
    g = rg.Graph()
    x = (
        g.input(np.array([[0, 1, 1]], dtype))
        if dtype == "?"
        else g.input(np.array([[127, 0, 3]], dtype))
    )
    wide = g.input(x.value.astype("f8"))
    for f in (rg.softmax, rg.log_softmax, rg.layer_norm):
        assert f(x).dtype == np.exp(np.zeros(1, dtype)).dtype
        eps = float(np.finfo(f(x).dtype).eps)
        np.testing.assert_allclose(f(x).value, f(wide).value, rtol=4 * eps, atol=eps)


def test_a_number_is_a_row_of_its_own() -> None:
    g = rg.Graph()
    x = g.param(3.0)
    y = rg.softmax(x, None)
    assert (y.value, rg.grad(y, x).value) == (1.0, 0.0)
    z = rg.layer_norm(x, axis=None)
    assert (z.value, rg.grad(z, x).value) == (0.0, 0.0)
    with pytest.raises(rg.AxisError, match="softmax: axis -1 does not exist"):
        rg.softmax(x)


def test_variance_does_not_vanish_beside_a_large_mean() -> None:
    with rg.Graph():
        y = rg.layer_norm([[1e8, 1e8 + 1.0, 1e8 + 2.0]], eps=0.0)
        np.testing.assert_allclose(y.value, [[-(1.5**0.5), 0.0, 1.5**0.5]])


def test_half_floats_are_summed_in_single() -> None:
    """The square of 300 is no half float."""
    with rg.Graph():
        y = rg.layer_norm(np.array([[-300.0, 300.0]], "f2"))
        assert y.dtype == np.float16
        np.testing.assert_array_equal(y.value, [[-1.0, 1.0]])


def test_relu_stops_infinite_gradients_where_it_is_flat() -> None:
    g = rg.Graph()
    x = g.param([-1.0, 0.0, 1.0, nan])
    for weights in ([inf, nan, 2.0, 3.0],):
        d = rg.grad((rg.relu(x) * np.array(weights)).sum(), x)
        np.testing.assert_array_equal(d.value, [0.0, 0.0, 2.0, 3.0])


# --- cross entropy -------------------------------------------------------------------------------


def test_class_without_a_chance_costs_nothing_elsewhere() -> None:
    g = rg.Graph()
    x = g.param([[0.0, -inf, 0.0], [-inf, 1.0, -inf]])
    loss = rg.cross_entropy(x, [2, 1])
    np.testing.assert_allclose(loss.value, [np.log(2.0), 0.0])
    np.testing.assert_allclose(rg.grad(loss.sum(), x).value, [[0.5, 0.0, -0.5], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8", "i8"])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_classes_are_rows_with_a_one(axis: int, dtype: str) -> None:
    g = rg.Graph()
    x = g.param(np.random.default_rng(1).normal(size=(4, 3, 5)))
    count = x.shape[axis]
    shape = np.delete(x.shape, axis)
    classes = g.input(np.random.default_rng(2).integers(0, count, shape).astype(dtype))
    rows = np.moveaxis(np.eye(count)[classes.value], -1, axis)
    one, other = rg.cross_entropy(x, classes, axis), rg.cross_entropy(x, rows, axis)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-14)
    for a, b in zip(
        *[(rg.grad(y.sum(), x), rg.hvp(y.sum(), x, np.sin(x.value))) for y in (one, other)]
    ):
        np.testing.assert_allclose(a.value, b.value, atol=1e-15)
    # Labels are live.
    classes.set(np.zeros_like(classes.value))
    np.testing.assert_allclose(one.value, -np.take(rg.log_softmax(x, axis).value, 0, axis))


def test_batch_of_unknown_length() -> None:
    g = rg.Graph()
    x, labels = g.input(shape=(None, 3), dtype="f8"), g.input(shape=(None,), dtype="i8")
    loss = rg.cross_entropy(x, labels).mean()
    dx = rg.grad(loss, x)
    for batch in (4, 1, 7):
        g.set({x: np.zeros((batch, 3)), labels: np.zeros(batch, int)})
        assert loss.value == pytest.approx(np.log(3.0))
        np.testing.assert_allclose(dx.value, np.tile([-2 / 3, 1 / 3, 1 / 3], (batch, 1)) / batch)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "i4"])
def test_cross_entropy_in_the_dtype_of_the_scores(dtype: str, large: bool) -> None:
    """Computed no worse than it is rounded in the end."""
    given = (np.random.default_rng(3).normal(size=(6, 9)) * 4.0).astype(dtype)
    classes = np.arange(6)
    with _strips.configured(threshold=1 if large else 1000, block=20):
        g = rg.Graph()
        x, wide = g.input(given), g.input(given.astype("f8"))
        loss, want = rg.cross_entropy(x, classes), rg.cross_entropy(wide, classes)
        assert loss.dtype == np.exp(np.zeros(1, dtype)).dtype
        eps = float(np.finfo(loss.dtype or "").eps)
        np.testing.assert_allclose(loss.value, want.value, rtol=2 * eps, atol=2 * eps)
        if dtype != "i4":
            dx = rg.grad(loss.sum(), x)
            assert dx.dtype == given.dtype
            np.testing.assert_allclose(
                dx.value, rg.grad(want.sum(), wide).value, rtol=2 * eps, atol=eps
            )


def test_one_sample() -> None:
    g = rg.Graph()
    x, label = g.param([1.0, 2.0, 3.0]), g.input(1)
    loss = rg.cross_entropy(x, label)
    dx = rg.grad(loss, x)
    for at in (1, 2, 0):
        label.set(at)
        p = np.exp(x.value) / np.exp(x.value).sum()
        np.testing.assert_allclose(loss.value, -np.log(p[at]))
        np.testing.assert_allclose(dx.value, p - np.eye(3)[at])


@pytest.mark.parametrize("wrong", [-1, 3, 300])
def test_label_without_a_class_is_said(wrong: int) -> None:
    g = rg.Graph()
    labels = g.input([0, wrong, 1])
    loss = rg.cross_entropy(np.zeros((3, 3)), labels)
    with pytest.raises(rg.IndexingError, match=rf"no element {wrong} along axis .*from 0 to 2"):
        loss.value
    labels.set([0, 2, 1])
    np.testing.assert_allclose(loss.value, np.log(3.0))


def test_labels_that_do_not_fit_are_said_when_the_node_is_built() -> None:
    g = rg.Graph()
    x = g.input(np.zeros((4, 3)))
    with pytest.raises(
        rg.ShapeError, match=r"have the shape \(4,\), one for each row, and not \(3,\)"
    ):
        rg.cross_entropy(x, [0, 1, 2])
    with pytest.raises(rg.ShapeError, match="numbers of classes are integers"):
        rg.cross_entropy(x, np.zeros(3))  # which would broadcast
    with pytest.raises(rg.DTypeError, match="axis=.*it is an integer"):
        rg.cross_entropy(x, np.zeros((4, 3)), None)  # type: ignore[arg-type]
    with pytest.raises(rg.AxisError, match="axis 2 does not exist"):
        rg.cross_entropy(x, np.zeros((4, 3)), 2)
    with pytest.raises(rg.DTypeError, match="real numbers only"):
        rg.cross_entropy(np.zeros((2, 2), complex), [0, 0])
    with pytest.raises(rg.DTypeError, match="fixed when the node is built"):
        rg.layer_norm(x, eps=g.input(1e-5))  # type: ignore[arg-type]


# --- linear --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes",
    [
        [(5, 3), (3, 4), (4,)],
        [(3,), (3, 4), (4,)],
        [(5, 3), (3,), (5,)],
        [(3,), (3,), ()],
        [(3,), (3,), (2, 2)],
        [(2, 5, 3), (3, 4), (5, 1)],
        [(2, 1, 5, 3), (6, 3, 4), (4,)],
        [(90, 80), (80, 100), (100,)],  # written over the product
    ],
)
@pytest.mark.parametrize("dtypes", ["ddd", "fff", "ffd", "dff", "iid"])
def test_linear_is_a_product_and_a_sum(shapes: list[tuple[int, ...]], dtypes: str) -> None:
    rng = np.random.default_rng(0)
    values = [
        (rng.normal(size=shape) * 3).astype(d) for shape, d in zip(shapes, dtypes, strict=True)
    ]
    g = rg.Graph()
    x, w, b = map(g.input, values)
    one, other = rg.linear(x, w, b), x @ w + b
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    np.testing.assert_array_equal(one.value, other.value)
    floats = [v for v in (x, w, b) if v.dtype.kind == "f"]
    eps = max(np.finfo(v.dtype).eps for v in floats)
    for a, c in zip(*[rg.grad((y * y).sum(), floats) for y in (one, other)], strict=True):
        scale = np.abs(c.value).max()
        np.testing.assert_allclose(a.value, c.value, rtol=16 * eps, atol=16 * eps * scale)


@pytest.mark.parametrize(
    "shapes",
    [((1, 4), (4, 5), (6, 5)), ((3, 4), (4, 1), (5,)), ((4,), (4, 1), (3,)), ((1, 4), (4,), (3,))],
    ids=str,
)
def test_a_bias_may_widen_the_product(shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    g = rg.Graph()
    leaves = [g.param(rng.normal(size=shape)) for shape in shapes]
    x, w, b = leaves
    one, other = (rg.sin(y).sum() for y in (rg.linear(x, w, b), x @ w + b))
    for leaf in leaves:
        np.testing.assert_allclose(rg.grad(one, leaf).value, rg.grad(other, leaf).value, rtol=1e-12)


def test_gradients_of_half_precision_do_not_overflow_on_the_way() -> None:
    g = rg.Graph()
    x = g.param(np.array([[0, 0, 0, 0, 5.0]], np.float16))
    seed = np.array([[0, 0, 0, 0, 40000.0]], np.float16)
    assert rg.grad(rg.layer_norm(x), x, gradient=seed).value.tolist() == [[0.0] * 5]
    rows = np.random.default_rng(2).normal(size=(4, 8)).astype(np.float16)
    up = (100.0 * np.random.default_rng(3).normal(size=(4, 8))).astype(np.float16)
    leaf = g.param(rows)
    found = rg.grad(rg.softmax(leaf, -1), leaf, gradient=up).value
    e = np.exp(rows.astype(np.float64))
    p = (e / e.sum(-1, keepdims=True)).astype(np.float16).astype(np.float64)
    # The rounded probabilities do not add up to 1 exactly.
    wanted = p * (up - (up * p).sum(-1, keepdims=True) / p.sum(-1, keepdims=True))
    np.testing.assert_allclose(found, wanted, atol=0.016)


def test_linear_says_what_does_not_fit() -> None:
    g = rg.Graph()
    with pytest.raises(rg.ShapeError, match="matmul of"):
        rg.linear(g.input(np.zeros((2, 3))), np.zeros((2, 3)), 0.0)
    with pytest.raises(rg.ShapeError, match="add cannot combine"):
        rg.linear(g.input(np.zeros((2, 3))), np.zeros((3, 4)), np.zeros(3))


# --- PyTorch -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "classes", "probabilities", "norm", "linear"]
)
def test_pytorch_has_the_same_values_and_gradients(name: str, dtype: str) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    f = torch.nn.functional
    rng = np.random.default_rng(3)
    x, w, b = (rng.normal(size=s).astype(dtype) for s in ((6, 5), (5,), (5,)))
    matrix = rng.normal(size=(5, 5)).astype(dtype)
    classes, probabilities = rng.integers(0, 5, 6), rng.random((6, 5)).astype(dtype)
    ours, theirs = {
        "softmax": (lambda x, w, b: rg.softmax(x, 0) * w, lambda x, w, b: f.softmax(x, 0) * w),
        "log_softmax": (
            lambda x, w, b: rg.log_softmax(x) * w,
            lambda x, w, b: f.log_softmax(x, 1) * w,
        ),
        "classes": (
            lambda x, w, b: rg.cross_entropy(x * w, classes),
            lambda x, w, b: f.cross_entropy(x * w, torch.from_numpy(classes), reduction="none"),
        ),
        "probabilities": (
            lambda x, w, b: rg.cross_entropy(x * w, probabilities),
            lambda x, w, b: f.cross_entropy(
                x * w, torch.from_numpy(probabilities), reduction="none"
            ),
        ),
        "norm": (
            lambda x, w, b: rg.layer_norm(x, w, b),
            lambda x, w, b: f.layer_norm(x, (5,), w, b),
        ),
        "linear": (
            lambda x, w, b: rg.linear(x * w, matrix, b),
            lambda x, w, b: f.linear(x * w, torch.from_numpy(matrix.T.copy()), b),
        ),
    }[name]
    g = rg.Graph()
    leaves = [g.param(v) for v in (x, w, b)]
    tensors = [torch.tensor(v, requires_grad=True) for v in (x, w, b)]
    y, z = ours(*leaves), theirs(*tensors)
    tolerance = {"rtol": 64 * np.finfo(dtype).eps, "atol": 64 * np.finfo(dtype).eps}
    np.testing.assert_allclose(y.value, z.detach().numpy(), **tolerance)
    (z * z).sum().backward()
    for mine, other in zip(rg.grad((y * y).sum(), leaves, allow_unused=True), tensors, strict=True):
        if other.grad is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine.value, other.grad.numpy(), **tolerance)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("size", [5, 5_000, 300_000])
def test_the_gradient_of_relu_has_the_same_bits_at_every_size(size: int, dtype: str) -> None:
    rng = np.random.default_rng(2)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0], dtype)
    x, above = (rng.normal(size=size).astype(dtype) for _ in range(2))
    x[: min(size, 49)] = np.repeat(special, 7)[:size]
    above[: min(size, 49)] = np.tile(special, 7)[:size]
    g = rg.Graph()
    leaf = g.param(x)
    found = rg.grad(rg.relu(leaf), leaf, gradient=above).value
    # NaN passes what arrives; where x is not positive the zero has no sign.
    assert found.tobytes() == np.where(x <= 0, np.zeros(1, dtype), above).tobytes()
