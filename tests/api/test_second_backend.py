"""The engine on array-api-strict: another array library, through the registry alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
KIND = "strict"
register_array_api(xp, KIND)


def strict(a: Any) -> Any:
    return xp.asarray(np.asarray(a))


def is_strict(value: Any) -> bool:
    return hasattr(value, "__array_namespace__") and value.__array_namespace__() is xp


@pytest.mark.slow
def test_every_op_that_loads_with_the_package_has_a_kernel() -> None:
    # In a new interpreter: families of ops, which tests import, say themselves where they run.
    program = """
import array_api_strict
import reactgrad
from reactgrad.backend import _registry
from reactgrad.backend.array_api._array_api import register_array_api

register_array_api(array_api_strict, "strict")
here, there = ({op for op, kind in _registry._binders if kind == one} for one in ("cpu", "strict"))
assert here == there, here ^ there
"""
    subprocess.run([sys.executable, "-c", program], check=True)


X = np.array([[0.3, -1.2, 0.7], [1.9, -0.4, 1.1]])
W = np.array([[0.5, 1.5], [-0.7, 0.2], [0.9, -1.3]])
V = np.array([0.6, 1.2, -0.8])
Model = Callable[[Any, Any, Any], Any]

MODELS: dict[str, Model] = {
    "arithmetic": lambda x, w, v: x + v * x - v / (x * x + 2.0),
    "numbers": lambda x, w, v: 2.0 * x - 1 + x / 3,
    "power": lambda x, w, v: (x * x + 1.0) ** v + x**3 + x**-1 + x**2,
    "power of a number": lambda x, w, v: 2.0**x,
    "unary": lambda x, w, v: rg.exp(x) + rg.sin(x) * rg.cos(v) - rg.tan(x * 0.5),
    "logs": lambda x, w, v: rg.log(x * x + 1.0) + rg.log1p(x * x) + rg.log2(x * x + 2.0) * v,
    "logs of ten": lambda x, w, v: rg.log10(x * x + 1.0) * rg.expm1(v) + rg.exp2(x),
    "inverse": lambda x, w, v: rg.arcsin(x * 0.4) + rg.arccos(x * 0.3) * rg.arctan(v),
    "hyperbolic": lambda x, w, v: rg.tanh(x) + rg.sinh(x) * rg.cosh(v),
    "two operands": lambda x, w, v: rg.hypot(x, v) + rg.arctan2(x, v) * rg.logaddexp(x, v),
    "roots": lambda x, w, v: rg.sqrt(x * x + 1.0) + rg.square(v) + rg.reciprocal(x + 5.0),
    "sigmoid": lambda x, w, v: rg.sigmoid(x) * rg.relu(v) + abs(x) - rg.sign(x) * x,
    "normal": lambda x, w, v: rg.erf(x) + rg.erfc(v) * rg.norm_cdf(x) + rg.norm_pdf(v),
    "extremes": lambda x, w, v: rg.maximum(x, v) + rg.minimum(x, 0.5),
    "clip": lambda x, w, v: x.clip(-1.0, 1.0) + rg.clip(x, max=v) * rg.clip(x, min=0.0),
    "where": lambda x, w, v: rg.where(x > 0, x * x, v) + rg.where(x <= v, 1.0, x),
    "logic": lambda x, w, v: rg.where((x > 0) & ~(x > 1.0) | (v < 0), x, v * 2.0),
    "questions": lambda x, w, v: rg.where(rg.isfinite(x), x, 0.0) + rg.isnan(x).astype(float),
    "rounding": lambda x, w, v: rg.floor(x) * x + rg.ceil(x) * v + x // v * x - x % v,
    "matmul": lambda x, w, v: x @ w,
    "matmul vector": lambda x, w, v: x @ v + v @ w,
    "inner": lambda x, w, v: v @ v,
    "batched": lambda x, w, v: rg.stack([x, x * 2.0]) @ w,
    "transpose": lambda x, w, v: x.T @ x + w @ w.T,
    "reshape": lambda x, w, v: x.reshape(3, 2) * w + x.T.reshape(-1)[:2],
    "broadcast": lambda x, w, v: rg.broadcast_to(v, (2, 3)) * x + rg.expand_dims(v, 0),
    "squeeze": lambda x, w, v: rg.squeeze(x[:1], 0) * v,
    "join": lambda x, w, v: rg.concatenate([x, x * 2.0], axis=1) @ rg.concatenate([w, w]),
    "stack": lambda x, w, v: rg.stack([x, x * x], axis=1) * v,
    "slices": lambda x, w, v: x[::-1, 1:] * x[0, :2] + x[..., None][1, :2, 0],
    "parts": lambda x, w, v: rg.split(x, 3, axis=1)[1] * rg.split(v, [1])[1] + rg.unbind(x)[1][0],
    "arrays as index": lambda x, w, v: x[[0, 0, 1]] * x[:, [2, 2, 0]][0],
    "mask": lambda x, w, v: x[:, np.array([True, False, True])] ** 2,
    "sums": lambda x, w, v: x.sum(axis=0) * v + x.sum() - x.sum(axis=1, keepdims=True),
    "means": lambda x, w, v: x - x.mean(axis=0) * x.mean(),
    "max and min": lambda x, w, v: x.max(axis=0) * x.min(axis=1, keepdims=True) + x.max(),
    "softmax": lambda x, w, v: (
        rg.exp(x - x.max(axis=1, keepdims=True))
        / rg.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    ),
    "rows": lambda x, w, v: rg.softmax(x, 0) * rg.layer_norm(x, v) + rg.log_softmax(x),
    "classes": lambda x, w, v: (
        rg.cross_entropy(x, (x[:, 0] > 1.0).astype(int)) + rg.cross_entropy(x, rg.softmax(x * 2.0))
    ),
    "linear": lambda x, w, v: rg.linear(x, w, v[:2]) + rg.linear(x, v, 1.0)[:, None],
    "many consumers": lambda x, w, v: sum((x * float(i) for i in range(40)), x),
    "many slices": lambda x, w, v: sum(x[i % 2] * float(i) for i in range(40)),
    "numbers only": lambda x, w, v: (x[0, 0] * v[1]) ** 2 + x[1, 2],
    "dtypes": lambda x, w, v: x.astype("f4").astype("f8") * x.astype(int) + (x > 0) * v,
    "detached": lambda x, w, v: x.detach() * x + v.detach(),
    "gates": lambda x, w, v: x.scale_grad(-0.5) * v.detach_node() + (v * 2.0)[0].scale_grad(3.0),
}


def build(make: Callable[[Any], Any], model: Model) -> tuple[Any, list[Any], Any, Any, Any]:
    g = rg.Graph()
    leaves = [g.param(make(a)) for a in (X, W, V)]
    y = model(*leaves)
    total = (y * y).sum()
    gradients = rg.grad(total, leaves, allow_unused=True)
    return g, leaves, y, total, gradients


def same(ours: Any, numpys: Any, rtol: float = 1e-12) -> None:
    assert ours.shape == numpys.shape
    assert ours.dtype == numpys.dtype
    assert ours.device != numpys.device
    value = ours.value
    assert is_strict(value), type(value)
    assert tuple(value.shape) == numpys.shape
    np.testing.assert_allclose(ours.numpy(), numpys.value, rtol=rtol, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_values_gradients_and_sets_agree_with_numpy(name: str) -> None:
    here = build(strict, MODELS[name])
    there = build(np.array, MODELS[name])
    rng = np.random.default_rng(0)
    for _ in range(3):
        same(here[2], there[2])
        same(here[3], there[3])
        for a, b in zip(here[4], there[4], strict=True):
            assert (a is None) is (b is None)
            if a is not None:
                same(a, b)
        for i, start in enumerate((X, W, V)):
            new = start + rng.normal(0, 0.05, start.shape)
            here[1][i].set(strict(new))
            there[1][i].set(new)
    here[0].check_invariants()


@pytest.mark.parametrize("name", MODELS)
def test_same_nodes_run(name: str) -> None:
    here, there = build(strict, MODELS[name]), build(np.array, MODELS[name])
    for g, leaves, _, total, gradients in (here, there):
        wanted = [v for v in gradients if v is not None]
        g.forward(total, *wanted)
        leaves[0].set(strict(X * 1.01) if g is here[0] else X * 1.01)
        g.forward(total, *wanted)
    ops = [
        sorted(v.name.rpartition("_")[0] for v in g.last_run.ran if not _is_layout(v))
        for g in (here[0], there[0])
    ]
    assert ops[0] == ops[1]


def _is_layout(v: Any) -> bool:
    """Layout ops are views on one device and copies on the other."""
    names = ("getitem", "transpose", "reshape", "broadcast", "expand", "squeeze", "alias")
    names += ("detach", "scale_grad")
    return v.name.startswith(names)


@pytest.mark.parametrize("name", ["matmul", "softmax", "slices", "many consumers", "numbers only"])
def test_backward(name: str) -> None:
    here, there = build(strict, MODELS[name]), build(np.array, MODELS[name])
    for retain in (None, True, False, None):
        for side in (here, there):
            side[3].backward(retain_graph=retain)
        for a, b in zip(here[1], there[1], strict=True):
            assert (a.grad is None) is (b.grad is None)
            if a.grad is not None:
                assert is_strict(a.grad)
                np.testing.assert_allclose(np.from_dlpack(a.grad), b.grad, rtol=1e-12)
    here[0].zero_grad()
    assert all(x.grad is None for x in here[1])


def test_hooks_get_and_return_arrays_of_their_device() -> None:
    g = rg.Graph()
    x = g.param(strict(V), name="x")
    seen: list[Any] = []
    x.register_hook(seen.append)
    with x.register_hook(lambda gradient: gradient * 2.0):
        (x * x).sum().backward()
    assert is_strict(seen[0])
    np.testing.assert_allclose(np.from_dlpack(x.grad), 4 * V)
    x.register_hook(lambda gradient: np.ones(3))
    with pytest.raises(rg.DeviceError, match="on 'x' returned an array on cpu.*lives on strict"):
        (x * x).sum().backward()


def test_second_derivatives() -> None:
    results = []
    for make in (strict, np.array):
        g = rg.Graph()
        x = g.param(make(V))
        d = rg.grad((rg.tanh(x) * x**3).sum(), x)
        results.append(rg.grad(d.sum(), x).numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_tangents_and_jacobians_agree_with_numpy(name: str) -> None:
    sides = []
    for make in (strict, np.array):
        g = rg.Graph()
        leaves = [g.param(make(a)) for a in (X, W, V)]
        y = MODELS[name](*leaves)
        found = [rg.jvp(y, leaves, [make(a) for a in (X, W, V)], allow_unused=True)]
        found += [
            rg.jacobian(y, leaves[0], mode, allow_unused=True) for mode in ("forward", "reverse")
        ]
        sides.append(found)
    for ours, numpys in zip(*sides, strict=True):
        assert (ours is None) is (numpys is None)
        if ours is not None:
            same(ours, numpys)


def test_functions_of_arrays_of_another_library() -> None:
    def f(x: Any, w: Any) -> Any:
        return (rg.tanh(x @ w) ** 2).sum()

    here, there = (strict(X), strict(W)), (X, W)
    pairs = [
        (rg.grad(f)(*here), rg.grad(f)(*there)),
        (rg.hessian(f)(*here), rg.hessian(f)(*there)),
        (rg.jvp(f, here, here)[1], rg.jvp(f, there, there)[1]),
        (rg.hvp(f, here, there)[0], rg.hvp(f, there, there)[0]),
        (rg.vjp(f, *here)[1](2.0)[0], rg.vjp(f, *there)[1](2.0)[0]),
    ]
    for ours, numpys in pairs:
        assert is_strict(ours)
        np.testing.assert_allclose(np.from_dlpack(ours), numpys, rtol=1e-12, atol=1e-13)


def test_memory_is_counted() -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(strict(V)))
    y.value
    assert g.stats().bytes == 2 * V.nbytes


def test_vector_gradient_given_as_array_of_either_library() -> None:
    for seed in (strict([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]):
        g = rg.Graph()
        x = g.param(strict(V))
        d = rg.grad(x * x, x, gradient=seed)
        np.testing.assert_allclose(d.numpy(), 2 * V * [1, 2, 3])
        (x * x).backward(gradient=seed)
        np.testing.assert_allclose(np.from_dlpack(x.grad), 2 * V * [1, 2, 3])


@pytest.mark.parametrize("rule", ["equal", "tolerance", "function"])
@pytest.mark.parametrize("where", ["leaf", "op"])
def test_cutoff(rule: str, where: str) -> None:
    cutoff = {
        "equal": "equal",
        "tolerance": rg.tolerance(atol=1e-9),
        "function": lambda old, new: bool(xp.all(old == new)),
    }[rule]
    g = rg.Graph()
    x = g.input(strict(V), cutoff=cutoff if where == "leaf" else None)
    y = x * 2.0
    if where == "op":
        y.cutoff = cutoff
    z = y + 1.0
    _ = z.value
    x.set(strict(V))
    run = g.forward(z)
    assert z not in run.ran
    assert (y in run.cut_off) is (where == "op")
    x.set(strict(V + 1))
    np.testing.assert_allclose(z.numpy(), V * 2 + 3)


def test_shape_changes() -> None:
    g = rg.Graph()
    x = g.input(strict(X))
    w = g.param(strict(V))
    total = ((x * w) ** 2).mean()
    d = rg.grad(total, w)
    for n in (2, 5, 1):
        a = np.random.default_rng(n).normal(size=(n, 3))
        x.set(strict(a))
        np.testing.assert_allclose(d.numpy(), 2 * (a * a * V).sum(axis=0) / (3 * n), rtol=1e-12)
        assert rg.grad(total, w) is d


def test_index_that_is_a_node() -> None:
    g = rg.Graph()
    x, i = g.param(strict(V)), g.input(strict(np.array([0, 2, 0])))
    y = (x[i] * strict([1.0, 10.0, 100.0])).sum()
    d = rg.grad(y, x)
    np.testing.assert_allclose(d.numpy(), [101.0, 0.0, 10.0])
    i.set(strict(np.array([1, 1, 1])))
    np.testing.assert_allclose(d.numpy(), [0.0, 111.0, 0.0])
    np.testing.assert_allclose(y.numpy(), V[1] * 111)


def test_values_of_several_dtypes() -> None:
    g = rg.Graph()
    for dtype in ("bool", "int8", "int64", "uint8", "float32", "float64", "complex64"):
        a = np.array([[1, 0, 1]]).astype(dtype)
        x = g.input(strict(a))
        for ours, numpys in (
            (x + x, a + a),
            (x * True, a * True),
            (x.sum(axis=1), a.sum(axis=1)),
            (x == x, a == a),
            (x @ x.T, a @ a.T),
            (rg.where(x, 2.0, x), np.where(a, 2.0, a)),
            (rg.logical_not(x), np.logical_not(a)),
            (x[0, ::2], a[0, ::2]),
            (rg.isfinite(x), np.isfinite(a)),
        ):
            assert ours.dtype == numpys.dtype
            np.testing.assert_array_equal(ours.numpy(), numpys)


def test_dtype_that_the_standard_lacks_says_so() -> None:
    x = rg.Graph().input(strict(np.array([1], np.int8)))
    with pytest.raises(rg.DTypeError, match=r"no dtype float16.*astype"):
        _ = rg.exp(x).value


def test_two_devices_do_not_mix_in_silence() -> None:
    g = rg.Graph()
    x, y = g.input(strict(V)), g.input(V)
    with pytest.raises(rg.DeviceError, match=r"add has operands on .*strict.*cpu"):
        x + y
    with pytest.raises(rg.DeviceError):
        x @ np.ones(3)
    for value in (V + 1, list(V + 1)):
        try:
            x.set(value)
        except rg.DeviceError:
            continue
        assert is_strict(x.value)  # never moved to another device by a set
        np.testing.assert_allclose(x.numpy(), V + 1)


def test_numbers_go_anywhere() -> None:
    g = rg.Graph()
    x, n = g.input(strict(V)), g.input(2.0)
    y = n * x + 1
    np.testing.assert_allclose(y.numpy(), V * 2 + 1)
    n.set(3)
    np.testing.assert_allclose(y.numpy(), V * 3 + 1)
    assert is_strict(y.value)
    with pytest.raises(rg.DeviceError, match="on cpu and on strict"):
        _ = (n * 2.0 + 1) * x  # what is computed of numbers alone is an array on the host


def test_what_callers_hold_never_changes() -> None:
    g = rg.Graph()
    x = g.input(strict(np.zeros(40_000)))
    y = x + 1.0
    held = x.value, y.value
    assert x.value is held[0]
    x.set(strict(np.ones(40_000)))
    _ = y.value
    assert not bool(xp.any(held[0] != 0))
    assert not bool(xp.any(held[1] != 1))
    a = strict(np.full(40_000, 5.0))
    x.set(a)
    a[...] = strict(7.0)
    assert float(x.value[0]) == 5.0


def test_python_function_between_arrays() -> None:
    g = rg.Graph()
    x = g.param(strict(V))
    square = rg.lift(lambda a: a * a, vjp=lambda g, ans, a: (g * 2.0 * a,))
    y = (square(x) + 1.0).sum()
    np.testing.assert_allclose(y.numpy(), (V * V + 1).sum())
    np.testing.assert_allclose(rg.grad(y, x).numpy(), 2 * V)


def test_reading_as_numpy_and_python() -> None:
    g = rg.Graph()
    x = g.input(strict(V))
    y = x.sum()
    assert isinstance((y * x).numpy(), np.ndarray)
    assert float(y.value) == pytest.approx(V.sum())
    assert y.item() == pytest.approx(V.sum())
    assert "strict" in x.device
    assert repr(x)
    copy = x.numpy()
    copy[0] = 99.0
    assert x.numpy()[0] == V[0]


def test_transaction_rolls_back() -> None:
    g = rg.Graph()
    x = g.input(strict(V))
    y = x * 2.0
    _ = y.value
    with pytest.raises(KeyError):
        with g.transaction():
            x.set(strict(V + 1))
            raise KeyError
    np.testing.assert_allclose(y.numpy(), V * 2)
    x.set(strict(V + 3))
    np.testing.assert_allclose(y.numpy(), V * 2 + 6)


def test_mutate_and_touch() -> None:
    g = rg.Graph()
    x = g.input(strict(V))
    y = x * 2.0
    with x.mutate() as a:
        a[0] = 5.0
    np.testing.assert_allclose(y.numpy(), [10.0, 2.4, -1.6])
    assert is_strict(x.value)
    x.touch()
    assert y.is_stale
