"""Activation functions have loops of their own: near exact numbers, and the same bits wherever an element stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend._registry import find_binder
from reactgrad.backend.blocks import _strips
from reactgrad.backend.machine._activation_loops import _NUMBERS
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.numpy import _activations
from reactgrad.backend.numpy._doubles import short_binder

mpmath = pytest.importorskip("mpmath")
pytestmark = pytest.mark.skipif(find_driver() is None, reason="without the driver there are none")
with rg.Graph():
    rg.silu(0.0)  # the first use of these functions binds them to the loops

ATTRS: dict[str, tuple[Any, ...]] = {"softplus": (1.0, 20.0), "elu": (1.25, 0.5, 2.0)}


def exact_sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def rate(x: Any) -> Any:
    return mpmath.sqrt(8 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)


# The function, and its largest error in ulps of float64 and of float32; None where there is no loop.
EXACT: dict[str, tuple[Callable[[Any], Any], float | None, float | None]] = {
    "sigmoid": (exact_sigmoid, 2.5, 2.5),
    "silu": (lambda x: x * exact_sigmoid(x), 2.5, 2.5),
    "softplus": (lambda x: x if x > 20 else mpmath.log1p(mpmath.exp(x)), 2.0, 2.0),
    "log_sigmoid": (lambda x: -mpmath.log1p(mpmath.exp(-x)), 2.0, 2.0),
    "elu": (lambda x: 0.5 * x if x > 0 else 0.625 * mpmath.expm1(x / 2), 1.5, 1.5),
    "mish": (lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), 4.0, 4.0),
    "gelu": (lambda x: x * mpmath.ncdf(x), 6.0, 6.0),
    "gelu_tanh": (lambda x: x * exact_sigmoid(rate(x)), None, 0.6),
}


def computed(name: str, inputs: list[Any], dtype: Any, attrs: Any = None) -> Any:
    out = np.empty(np.broadcast_shapes(*[one.shape for one in inputs]), dtype)
    with np.errstate(all="ignore"):
        find_binder(name, "cpu")(inputs, out, ATTRS.get(name, ()) if attrs is None else attrs)()
    return out


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", EXACT)
def test_values_are_near_exact_ones(name: str, dtype: str) -> None:
    function, *bounds = EXACT[name]
    bound = bounds[dtype == "f4"]
    if bound is None:
        pytest.skip("the function has no loop of this dtype")
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.standard_normal(300) * 3, rng.uniform(-80, 40, 200), rng.uniform(-0.01, 0.01, 100)]
    ).astype(dtype)
    worst = 0.0
    with mpmath.workdps(40):
        for one, found in zip(x.tolist(), computed(name, [x], dtype).tolist(), strict=True):
            right = function(mpmath.mpf(one))
            near = np.dtype(dtype).type(right)
            if abs(near) < np.finfo(dtype).tiny:
                continue
            worst = max(worst, float(abs(found - right)) / float(np.spacing(abs(near))))
    assert 0.3 < worst < bound  # below 0.3: nothing was compared


def of_numpy(name: str, x: Any) -> Any:
    out = np.empty_like(x)
    if name.startswith("sigmoid"):
        return 1.0 / (1.0 + np.exp(-x))
    bind = short_binder(getattr(_activations, name))
    bind([x], out, ATTRS.get(name, ()))()
    return out


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", sorted({*_NUMBERS} - {"sigmoid_backward"}))
def test_numpy_computes_the_same(name: str, dtype: str) -> None:
    ends = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        3e4,
        -3e4,
        90.0,
        -90.0,
        700.0,
        -700.0,
        1e-30,
        -1e-40,
    ]
    x = np.array([*ends, *np.linspace(-12.0, 12.0, 999)], dtype)
    with np.errstate(all="ignore"):
        other = of_numpy(name, x)
    found = computed(name, [x], dtype)
    eps = np.finfo(dtype).eps
    slope = name.endswith("slope")  # each has a zero, where two roundings differ by all digits
    np.testing.assert_allclose(found, other, 0 if slope else 12 * eps, 4 * eps if slope else 1e-37)
    assert np.array_equal(np.signbit(found[:4]), np.signbit(other[:4]))


def test_the_slope_of_gelu_is_a_half_at_both_zeros() -> None:
    for dtype in ("f8", "f4", "f2"):
        zeros = np.array([0.0, -0.0], dtype)
        assert computed("gelu_slope", [zeros], dtype).tolist() == [0.5, 0.5]
        out = np.empty(2, dtype)
        short_binder(_activations.gelu_slope)([zeros], out, ())()
        assert out.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", [*_NUMBERS])
def test_an_element_has_the_same_bits_wherever_it_stands(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    count = 3 if name == "sigmoid_backward" else 1
    inputs = [rng.standard_normal((40, 33)).astype(dtype) for _ in range(count)]
    whole = computed(name, inputs, dtype)
    for rows in (slice(3, 4), slice(7, None, 3), slice(None, None, -1)):
        assert np.array_equal(computed(name, [one[rows] for one in inputs], dtype), whole[rows])
    columns = computed(name, [one[:, 5:6] for one in inputs], dtype)
    assert np.array_equal(columns, whole[:, 5:6])
    assert np.array_equal(computed(name, [one.T for one in inputs], dtype), whole.T)
    with _strips.configured(block=64, threshold=1):
        assert np.array_equal(computed(name, inputs, dtype), whole)
    out = np.empty((33, 40), dtype).T
    find_binder(name, "cpu")(inputs, out, ATTRS.get(name, ()))()
    assert np.array_equal(out, whole)
    out = np.frombuffer(bytearray(whole.nbytes + 1), dtype, whole.size, 1).reshape(whole.shape)
    find_binder(name, "cpu")(inputs, out, ATTRS.get(name, ()))()  # not aligned
    assert np.array_equal(out, whole)


def test_a_gradient_may_be_one_number_for_all() -> None:
    y, x = np.linspace(0.1, 0.9, 7), np.linspace(-3.0, 3.0, 7)
    for g in (np.array(2.0), np.array([2.0])):
        found = computed("sigmoid_backward", [g, y, x], "f8")
        assert np.array_equal(found, computed("sigmoid_backward", [np.full(7, 2.0), y, x], "f8"))


@pytest.mark.parametrize("attrs", [(2.0, None), (1.0, None), (1.0, 20.0)])
def test_a_softplus_of_any_kind_is_computed(attrs: Any) -> None:
    x = np.linspace(-30.0, 30.0, 41)
    beta, limit = attrs
    right = np.where(beta * x > (limit or np.inf), x, np.logaddexp(0.0, beta * x) / beta)
    np.testing.assert_allclose(computed("softplus", [x], "f8", attrs), right, 1e-14)


def test_whole_numbers_and_half_floats_are_taken() -> None:
    whole = np.arange(-3, 4)
    assert np.array_equal(
        computed("sigmoid", [whole], "f8"), computed("sigmoid", [whole.astype("f8")], "f8")
    )
    half = np.linspace(-4, 4, 9, dtype="f2")
    np.testing.assert_allclose(computed("silu", [half], "f2"), of_numpy("silu", half), 2e-3)


@pytest.mark.parametrize("function", [rg.sigmoid, rg.silu, rg.gelu, rg.softplus, rg.elu, rg.mish])
def test_values_are_the_same_with_and_without_jit_and_in_parts(function: Any) -> None:
    x = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    values = []
    for jit in (None, False):
        g = rg.Graph(jit=jit)
        v = g.param(np.zeros_like(x))
        y = function(v)
        slope = rg.grad(y.sum(), v)
        for _ in range(20):  # from the sixteenth run on as a program
            y.value, slope.value
            v.set(v.value + 1.0)
        v.set(x)
        values.append((y.value, slope.value))
        few = g.param(x[5:6])
        assert np.array_equal(function(few).value, y.value[5:6])
    assert all(np.array_equal(a, b) for a, b in zip(*values, strict=True))
