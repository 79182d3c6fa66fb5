"""Every derivative rule, in both modes, against finite differences, to second order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reactgrad as rg
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import OPS
from reactgrad.ops._pick import pick
from tests.test_import_walls import run_python

Case = tuple[Callable[..., Any], list[np.ndarray]]


def away(*shape: int, low: float = 0.3, high: float = 1.7, seed: int = 0) -> np.ndarray:
    """Distinct values away from kinks."""
    n = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(np.linspace(low, high, n)).reshape(shape)


X = away(2, 3)
SIGNED = away(2, 3, low=-1.35, high=1.4)
UNIT = away(2, 3, low=-0.8, high=0.83)
B = away(3, low=0.41, high=1.91, seed=1)
C = away(2, 1, low=-1.27, high=0.93, seed=2)

# Its shape shows only when it has run.
_unknown = rg.lift(lambda v: v * 1.0, vjp=lambda g, ans, v: (g,), jvp=lambda ts, ans, v: ts[0])


def _later(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: f(*[_unknown(x) for x in xs])


CASES: dict[str, Case] = {
    "add": (rg.add, [SIGNED, B]),
    "add to itself": (lambda x: x + x, [SIGNED]),
    "subtract": (rg.subtract, [SIGNED, C]),
    "multiply": (rg.multiply, [SIGNED, C]),
    "multiply three": (lambda a, b, c: a * b * c, [SIGNED, B, C]),
    "divide": (rg.divide, [SIGNED, B]),
    "remainder": (rg.remainder, [SIGNED, B]),
    "power": (rg.power, [X, C]),
    "power of itself": (lambda x: x**x, [X]),
    "power 0": (lambda x: x**0 + x, [SIGNED]),
    "power 1": (lambda x: x**1 * x, [SIGNED]),
    "power 2": (lambda x: x**2, [SIGNED]),
    "power 3": (lambda x: x**3, [SIGNED]),
    "power -1": (lambda x: x**-1, [X]),
    "power -2": (lambda x: x**-2.0, [X]),
    "power 0.5": (lambda x: x**0.5, [X]),
    "power 2.5": (lambda x: x**2.5, [X]),
    "power of a number": (lambda x: 2.0**x, [SIGNED]),
    "power by an array": (lambda x: x ** np.array([0.0, 1.0, 3.0]), [X]),
    "maximum": (rg.maximum, [SIGNED, C]),
    "minimum": (rg.minimum, [SIGNED, B]),
    "hypot": (rg.hypot, [SIGNED, B]),
    "arctan2": (rg.arctan2, [SIGNED, C]),
    "logaddexp": (rg.logaddexp, [SIGNED, C]),
    "negative": (rg.negative, [SIGNED]),
    "absolute": (rg.absolute, [SIGNED]),
    "exp": (rg.exp, [SIGNED]),
    "exp2": (rg.exp2, [SIGNED]),
    "expm1": (rg.expm1, [SIGNED]),
    "log": (rg.log, [X]),
    "log2": (rg.log2, [X]),
    "log10": (rg.log10, [X]),
    "log1p": (rg.log1p, [UNIT]),
    "sqrt": (rg.sqrt, [X]),
    "square": (rg.square, [SIGNED]),
    "reciprocal": (rg.reciprocal, [X]),
    "sin": (rg.sin, [SIGNED]),
    "cos": (rg.cos, [SIGNED]),
    "tan": (rg.tan, [UNIT]),
    "arcsin": (rg.arcsin, [UNIT]),
    "arccos": (rg.arccos, [UNIT]),
    "arctan": (rg.arctan, [SIGNED]),
    "sinh": (rg.sinh, [SIGNED]),
    "cosh": (rg.cosh, [SIGNED]),
    "tanh": (rg.tanh, [SIGNED]),
    "sigmoid": (rg.sigmoid, [SIGNED]),
    "relu": (rg.relu, [SIGNED]),
    "erf": (rg.erf, [SIGNED]),
    "erfc": (rg.erfc, [SIGNED]),
    "norm_cdf": (rg.norm_cdf, [SIGNED]),
    "norm_pdf": (rg.norm_pdf, [SIGNED]),
    "complex parts": (
        lambda x: rg.real(rg.conj(x * (1.0 + 2.0j))) * x + rg.imag(x * x * 1j),
        [SIGNED],
    ),
    "where": (lambda a, b: rg.where(np.array([True, False, True]), a * b, b), [SIGNED, C]),
    "where by value": (lambda a, b: rg.where(a > 0.1, a * a, b * a), [SIGNED, C]),
    "clip": (lambda x: rg.clip(x * x, 0.2, 1.2), [SIGNED]),
    "clip by nodes": (lambda x, a, b: rg.clip(x, a - 0.5, b), [SIGNED, UNIT[:1], B]),
    "clip low": (lambda x, a: rg.clip(x, a), [SIGNED, C]),
    "clip high": (lambda x, b: rg.clip(x, max=b), [SIGNED, C]),
    "clip crossed": (lambda x, a, b: rg.clip(x, a, b), [SIGNED, X + 2.0, UNIT]),
    "astype": (lambda x: x.astype("f8") * x.astype(np.float64), [SIGNED]),
    "matmul": (rg.matmul, [SIGNED, away(3, 4)]),
    "matmul vector": (rg.matmul, [SIGNED, B]),
    "vector matmul": (rg.matmul, [away(2), SIGNED]),
    "inner product": (rg.matmul, [B, away(3)]),
    "matmul batched": (rg.matmul, [away(2, 2, 3), away(2, 3, 2, seed=3)]),
    "matmul broadcast": (rg.matmul, [away(4, 1, 2, 3), away(2, 3, 1, seed=3)]),
    "matmul batch one": (rg.matmul, [away(1, 2, 3), away(3, 3, 2, seed=3)]),
    "batched matmul vector": (rg.matmul, [away(2, 2, 3), B]),
    "vector batched matmul": (rg.matmul, [B, away(2, 3, 2)]),
    "matmul with itself": (lambda x: x @ x.T @ x, [SIGNED]),
    "transpose": (lambda x: x.T * np.arange(6.0).reshape(3, 2) * x.T, [SIGNED]),
    "transpose axes": (lambda x: x.transpose(2, 0, 1) ** 2 * away(4, 2, 3), [away(2, 3, 4)]),
    "transpose negative": (lambda x: x.transpose(-1, 0, -2) ** 2 * away(4, 2, 3), [away(2, 3, 4)]),
    "reshape": (lambda x: x.reshape(3, 2) @ x, [SIGNED]),
    "reshape of a view": (lambda x: x.T.reshape(-1) ** 2 * np.arange(6.0), [SIGNED]),
    "broadcast_to": (lambda x: rg.broadcast_to(x, (4, 2, 3)) ** 2 * away(4, 2, 3), [C]),
    "expand_dims": (lambda x: rg.expand_dims(x, (0, 2)) * away(5, 2, 4, 3) * x[0], [SIGNED]),
    "squeeze": (lambda x: rg.squeeze(x, 1) ** 2, [C]),
    "squeeze all": (lambda x: rg.squeeze(x) ** 2, [away(1, 3, 1)]),
    "concatenate": (lambda a, b: rg.concatenate([a, b, a * b], axis=1) ** 2, [SIGNED, C * X]),
    "concatenate flat": (lambda a, b: rg.concatenate([a, b], axis=None) ** 3, [SIGNED, B]),
    "stack": (lambda a, b: rg.stack([a, b, a], axis=1) ** 2, [SIGNED, X]),
    "index": (lambda x: x[1] * x[0, 1] * x[..., ::-1], [SIGNED]),
    "index new axis": (lambda x: x[:, None] * x[None, :], [B]),
    "index array": (lambda x: x[[0, 0, 1]] ** 2 * x[:, [2]][0], [SIGNED]),
    "index pairs": (lambda x: x[[0, 1, 0], [1, 1, 1]] ** 3, [SIGNED]),
    "index mask": (lambda x: x[np.array([True, False]), 1:] ** 3, [SIGNED]),
    "gather": (lambda x: x[(x[:, 0] > 0.0).astype(int)] ** 2 * x, [SIGNED]),
    "gather twice": (
        lambda x: x[:, (x[0] > 0.0).astype(int)] * x[(x[:, 0] > 0.5).astype(int), 1][:, None] ** 2,
        [SIGNED],
    ),
    "split": (lambda x: rg.split(x, 3, axis=1)[1] ** 2 * rg.split(x, [1], axis=1)[1], [SIGNED]),
    "unbind": (lambda x: rg.unbind(x)[0] ** 2 * rg.unbind(x)[1], [SIGNED]),
    "detach_node": (lambda x: x**2 + 0.0 * x.detach_node(), [SIGNED]),
    "alias": (lambda x: rg.clip(x) ** 2, [SIGNED]),
    "unknown shapes": (_later(lambda x, b: (x * b + b) ** 2), [SIGNED, B]),
    "unknown sum": (_later(lambda x: x.sum(axis=1) ** 2 * x.mean()), [SIGNED]),
    "unknown max": (_later(lambda x: x.max(axis=1) ** 2), [SIGNED]),
    "unknown reshape": (_later(lambda x: x.reshape(-1) ** 2 * np.arange(6.0)), [SIGNED]),
    "unknown index": (_later(lambda x: x[0] ** 2 * x[:, 1].sum()), [SIGNED]),
    "unknown gather": (_later(lambda x: x[(x[:, 0] > 0.0).astype(int)] ** 2), [SIGNED]),
    "sum": (lambda x: x.sum() ** 2, [SIGNED]),
    "sum axis": (lambda x: x.sum(axis=1) ** 2 * x[:, 0], [SIGNED]),
    "sum keepdims": (lambda x: x / x.sum(axis=0, keepdims=True), [X]),
    "sum axes": (lambda x: x.sum(axis=(0, -1)) ** 2, [away(2, 3, 4)]),
    "sum no axis": (lambda x: x.sum(axis=()) ** 2, [SIGNED]),
    "mean": (lambda x: x.mean() ** 2 + x, [SIGNED]),
    "mean axis": (lambda x: (x - x.mean(axis=1, keepdims=True)) ** 2, [SIGNED]),
    "max": (lambda x: x.max() ** 2 * x, [SIGNED]),
    "max axis": (lambda x: x.max(axis=1) ** 2, [SIGNED]),
    "max axes keepdims": (lambda x: x.max(axis=(0, 1), keepdims=True) * x, [SIGNED]),
    "min axis": (lambda x: x.min(axis=0) ** 3, [SIGNED]),
    "softmax by hand": (lambda x: rg.exp(x) / rg.exp(x).sum(axis=1, keepdims=True), [SIGNED]),
    "softmax": (lambda x: rg.softmax(x) * X, [SIGNED]),
    "softmax first axis": (lambda x: rg.softmax(x, 0) ** 2, [SIGNED]),
    "softmax axes": (lambda x: rg.softmax(x, (0, -1)) * away(2, 3, 4), [away(2, 3, 4, seed=4)]),
    "softmax all": (lambda x: rg.softmax(x, None) ** 2, [SIGNED]),
    "log_softmax": (lambda x: rg.log_softmax(x) * X, [SIGNED]),
    "log_softmax first axis": (lambda x: rg.log_softmax(x, 0) ** 2, [SIGNED]),
    "cross_entropy": (lambda x: rg.cross_entropy(x, [2, 0]) ** 2, [SIGNED]),
    "pick": (lambda x: pick(x, np.array([2, 0]), -1) ** 2, [SIGNED]),
    "cross_entropy inner axis": (
        lambda x: rg.cross_entropy(x, [[0, 1, 1, 2], [2, 0, 0, 1]], 1) ** 2,
        [away(2, 3, 4)],
    ),
    "cross_entropy of probabilities": (lambda x, p: rg.cross_entropy(x, p) ** 2, [SIGNED, X]),
    "layer_norm": (lambda x, w, b: rg.layer_norm(x, w, b) ** 2, [SIGNED, B, away(3)]),
    "layer_norm axes": (lambda x: rg.layer_norm(x, axis=(0, 2)) ** 3, [away(2, 3, 4)]),
    "standard deviation": (lambda h, x: _over_std(h, x), [SIGNED, X]),
    "layer_norm eps": (lambda x: rg.layer_norm(x, axis=None, eps=0.5) * X, [SIGNED]),
    "linear": (lambda x, w, b: rg.linear(x, w, b) ** 2, [SIGNED, away(3, 4), away(4)]),
    "linear vector": (lambda x, w, b: rg.linear(x, w, b) ** 2, [B, away(3, 4), away(4)]),
    "linear to a vector": (lambda x, w, b: rg.linear(x, w, b) ** 2, [SIGNED, B, C[0]]),
    "linear batched": (
        lambda x, w, b: rg.linear(x, w, b) ** 2,
        [away(4, 2, 3), away(3, 2), away(5, 1, 1, 2)],
    ),
    "unknown softmax": (_later(lambda x: rg.softmax(x) * X), [SIGNED]),
    "unknown cross_entropy": (_later(lambda x: rg.cross_entropy(x, [2, 0]) ** 2), [SIGNED]),
    "unknown layer_norm": (_later(lambda x: rg.layer_norm(x) ** 3), [SIGNED]),
    "unknown linear": (_later(lambda x, w: rg.linear(x, w, 1.0) ** 2), [SIGNED, away(3, 4)]),
    "logsumexp": (
        lambda x: rg.log(rg.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)) + x.max(axis=1),
        [SIGNED],
    ),
    "0-d": (lambda x: rg.sin(x) * x * np.array([1.0, 2.0]), [np.array(0.7)]),
    "shared many times": (lambda x: sum((x * float(i) for i in range(40)), x) ** 2, [SIGNED]),
    "shared by slices": (lambda x: sum(x[i % 2, i % 3] * x[i % 2] for i in range(40)), [SIGNED]),
    "tanh in files of 0.1": (lambda g, y: apply(OPS["tanh_grad"], (g, y)), [SIGNED, UNIT]),
    "sigmoid in files of 0.1": (lambda g, y: apply(OPS["sigmoid_grad"], (g, y)), [SIGNED, UNIT]),
    "array_split": (lambda x: rg.array_split(x, 2, 1)[0] ** 2 * 3.0, [SIGNED]),
    "deep and shared": (lambda x: _diamonds(x), [UNIT]),
    "sliced and whole": (lambda x: x[0] * x.sum() + x[:, 1].sum() * x, [SIGNED]),
}


def _diamonds(x: Any) -> Any:
    for _ in range(8):
        x = rg.tanh(x) * 0.5 + x * 0.5
    return x


def _over_std(h: Any, x: Any) -> Any:
    y = apply(OPS["standardize"], (x,), (-1, 1e-5))
    return apply(OPS["over_std"], (h, y, x), (-1, 1e-5))


@pytest.mark.parametrize("name", CASES)
def test_rule_to_second_order(name: str) -> None:
    f, args = CASES[name]
    rg.testing.check_grads(f, args, order=2, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "name",
    [
        *("matmul", "power", "softmax by hand", "index", "norm_cdf", "concatenate"),
        *("softmax", "cross_entropy", "layer_norm", "linear", "tanh", "sigmoid"),
    ],
)
def test_rule_to_third_order(name: str) -> None:
    f, args = CASES[name]
    rg.testing.check_grads(f, args, order=3, rtol=1e-5, atol=1e-5)


# Its gradient is not its derivative: see test_flow.
NO_DERIVATIVE = {"scale_grad"}


def test_every_op_with_a_rule_has_a_case(tmp_path: Path) -> None:
    """In itself or in its gradient, whose rules the second order asks."""
    met: set[str] = set()
    for f, args in CASES.values():
        g = rg.Graph()
        leaves = [g.param(a) for a in args]
        y = f(*leaves)
        held = [y, rg.grad(y.sum(), leaves, allow_unused=True)]
        met |= {g._host.ops[node._slot].name for node in g.nodes}
        del held
    # Ops of families have their cases in the tables of ``tests.ops``; see ``ops/test_families.py``.
    program = "import reactgrad.autodiff._custom; from reactgrad.nodes._op import OPS; print(*OPS)"
    base = set(run_python("-c", program, cwd=tmp_path).split())
    own = {name: op for name, op in OPS.items() if name in base}
    with_rules = {n for n, op in own.items() if op.variadic or (op.vjps and any(op.vjps))}
    assert with_rules >= NO_DERIVATIVE
    # A move to another device needs one: see ``devices``.
    assert sorted(with_rules - met - NO_DERIVATIVE - {"to_device"}) == []


FLAT = {
    "sign": rg.sign,
    "floor": rg.floor,
    "ceil": rg.ceil,
    "comparison": lambda x: (x > 0.5).astype(float),
    "logical": lambda x: rg.logical_and(x > 0.5, x < 1.0).astype(float),
    "integers": lambda x: x.astype(int).astype(float),
    "isnan": lambda x: rg.isnan(x).astype(float),
    "isfinite": lambda x: rg.isfinite(x).astype(float),
}


@pytest.mark.parametrize("name", FLAT)
def test_flat_function_contributes_nothing(name: str) -> None:
    g = rg.Graph()
    x = g.param(X)
    np.testing.assert_array_equal(rg.grad((FLAT[name](x) * x).sum(), x).value, FLAT[name](x).value)
    alone = rg.grad(FLAT[name](x).sum(), x, allow_unused=True)
    assert alone is None or not alone.value.any()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_broadcast_gradients_have_the_operands_shapes(data: st.DataObject) -> None:
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3))
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in shapes.input_shapes]
    g = rg.Graph()
    leaves = [g.param(np.array(v)) for v in values]
    a, b, c = leaves
    y = a * b - rg.where(np.array(True), b, c) * c
    assert y.shape == shapes.result_shape
    one, two, three = rg.grad(y.sum(), leaves)
    ones = np.ones(shapes.result_shape)

    def back(v: np.ndarray, to: np.ndarray) -> np.ndarray:
        lead = v.ndim - to.ndim
        axes = (*range(lead), *(lead + i for i, n in enumerate(to.shape) if n == 1))
        return v.sum(axis=axes).reshape(to.shape)

    np.testing.assert_allclose(one.value, back(ones * values[1], values[0]), atol=1e-12)
    expected = back(ones * (values[0] - values[2]), values[1])
    np.testing.assert_allclose(two.value, expected, atol=1e-12)
    np.testing.assert_allclose(three.value, back(-ones * values[1], values[2]), atol=1e-12)


def test_checker_finds_a_wrong_rule() -> None:
    def sine(slope: Any) -> Any:
        return rg.lift(
            np.sin,
            vjp=lambda g, ans, x: (g * slope(x),),
            jvp=lambda tangents, ans, x: tangents[0] * slope(x),
            shape=(3,),
        )

    rg.testing.check_grads(sine(rg.cos), [B])
    for mode in ("forward", "reverse"):
        with pytest.raises(rg.GradientError, match=f"order 1 .{mode} mode"):
            rg.testing.check_grads(sine(rg.sin), [B], modes=[mode])
        stops = sine(lambda x: rg.cos(x.detach()))
        rg.testing.check_grads(stops, [B], order=1)
        with pytest.raises(rg.GradientError, match=f"order 2 .{mode} over {mode} mode"):
            rg.testing.check_grads(stops, [B], order=2, modes=[mode])


def test_checker_says_which_modes_there_are() -> None:
    with pytest.raises(rg.GradientError, match="'forward' and 'reverse', in a sequence"):
        rg.testing.check_grads(rg.sin, [B], modes=["backward"])
    with pytest.raises(rg.GradientError, match="in a sequence"):
        rg.testing.check_grads(rg.sin, [B], modes="forward")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_gradient_has_the_dtype_of_its_operand(name: str, dtype: str) -> None:
    """Whatever is mixed in on the way: other float widths, integers, constants."""
    f, args = CASES[name]
    g = rg.Graph()
    leaves = [g.param(a.astype(dtype)) for a in args]
    y = f(*leaves)
    wide = (y * g.param(np.float64(1.5))).sum()
    for x, gradient in zip(leaves, rg.grad(wide, leaves, allow_unused=True), strict=True):
        if gradient is not None:
            assert gradient.dtype == x.dtype == gradient.value.dtype
            assert gradient.shape == x.shape
    if any(x.requires_grad for x in leaves) and y.requires_grad:
        wide.backward()
        for x in leaves:
            if x.grad is not None:
                assert x.grad.dtype == x.dtype
                assert np.shape(x.grad) == x.shape


@pytest.mark.parametrize(("returned", "kind"), [((1.0, 2.0), "tuple"), (3.0, "float")])
def test_check_grads_wants_one_var(returned: Any, kind: str) -> None:
    with pytest.raises(
        rg.DTypeError, match=f"check_grads.*returned {kind}; it must return one Var"
    ):
        rg.testing.check_grads(lambda x: returned, [B])


def test_rule_that_returns_no_gradient_is_named() -> None:
    x = rg.Graph().param([1.0, 2.0], name="x")
    wrong: Any = rg.lift(
        np.sin, vjp=lambda g, ans, x: ("abc",), jvp=lambda ts, ans, x: {"t": ts}, shape=(2,)
    )
    y = wrong(x)
    y.name = "y"
    with pytest.raises(rg.DTypeError, match=r"vjp of node 'y' for operand 1 \('x'\) returned str"):
        rg.grad(y.sum(), x)
    with pytest.raises(rg.DTypeError, match=r"jvp of node 'y' returned dict .*A tangent is a Var"):
        rg.jvp(y, x, np.ones(2))


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 0.1), (6.0, 0.2), (5.0, 0.05), (1.0, -np.inf), (-1.0, np.inf), (7.0, -2.0)]
)
def test_remainder_goes_as_often_into_its_gradient_as_into_its_value(a: float, b: float) -> None:
    g = rg.Graph()
    divisor = g.input(b)
    y = a % divisor
    wanted = -np.floor_divide(a, b)
    assert rg.grad(y, divisor).value == wanted
    assert rg.jvp(y, divisor, 1.0).value == wanted
