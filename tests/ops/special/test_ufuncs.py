"""Every ufunc of NumPy on Vars: values, dtypes, derivatives, and the operators on integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law

ELSEWHERE = {
    "matvec",
    "vecmat",
    "vecdot",
    "isnat",
}  # products; and dates, of which arrays hold none
ALL = {name for name, one in vars(np).items() if isinstance(one, np.ufunc)} - ELSEWHERE


def above_one(rng: Any, shape: Any) -> Any:
    return 1.1 + rng.random(shape)


def inside_one(rng: Any, shape: Any) -> Any:
    return rng.random(shape) * 1.8 - 0.9


def apart_from_zero(rng: Any, shape: Any) -> Any:
    return (rng.random(shape) + 0.3) * rng.choice([-1.0, 1.0], shape)


def small_counts(rng: Any, shape: Any) -> Any:
    return rng.integers(0, 3, shape) / 4.0  # integers are drawn four times as large


def whole(rng: Any, shape: Any) -> Any:
    return rng.integers(1, 60, shape) / 4.0


A = (3, 4)
CASES = [
    Case("arcsinh", np.arcsinh, np.arcsinh, [A], empty=[(0, 4)], dtypes="dfei?D"),
    Case("arccosh", np.arccosh, np.arccosh, [A], above_one, empty=[(0, 4)], dtypes="dfeD"),
    Case("arctanh", np.arctanh, np.arctanh, [A], inside_one, empty=[(0, 4)], dtypes="dfeD"),
    Case("complex arcsinh", np.arcsinh, np.arcsinh, [A], dtypes="D"),
    Case("complex arccosh", np.arccosh, np.arccosh, [A], dtypes="D"),
    Case("complex arctanh", np.arctanh, np.arctanh, [A], dtypes="D"),
    Case("cbrt", np.cbrt, np.cbrt, [A], apart_from_zero, empty=[(0, 4)]),
    Case("copysign", np.copysign, np.copysign, [A, (4,)], apart_from_zero, empty=[(0,), ()]),
    Case("deg2rad", np.deg2rad, np.deg2rad, [A]),
    Case("rad2deg", np.rad2deg, np.rad2deg, [A]),
    Case("degrees", np.degrees, np.degrees, [A]),
    Case("radians", np.radians, np.radians, [A]),
    Case("fabs", np.fabs, np.fabs, [A], apart_from_zero),
    Case("fmax", np.fmax, np.fmax, [A, (4,)], dtypes="dfei?"),
    Case("fmin", np.fmin, np.fmin, [A, (3, 1)], dtypes="dfei?"),
    Case("fmod", np.fmod, np.fmod, [A, A], [None, apart_from_zero], dtypes="dfe"),
    Case("heaviside", np.heaviside, np.heaviside, [A, ()], apart_from_zero),
    Case("logaddexp2", np.logaddexp2, np.logaddexp2, [A, (4,)]),
    Case("float_power", np.float_power, np.float_power, [A, (4,)], above_one, dtypes="dfeiD"),
    Case("nextafter", np.nextafter, np.nextafter, [A, (4,)], dtypes="dfe", order=0),
    Case("positive", np.positive, np.positive, [A]),
    Case("modf", np.modf, np.modf, [A], apart_from_zero, empty=[(0, 4)], dtypes="dfei?"),
    Case("frexp", np.frexp, np.frexp, [A], apart_from_zero, empty=[(0, 4)], dtypes="dfei?"),
    Case("divmod", np.divmod, np.divmod, [A, (4,)], [None, apart_from_zero]),
    Case("rint", np.rint, np.rint, [A], order=0, dtypes="dfei?D"),
    Case("trunc", np.trunc, np.trunc, [A], order=0, dtypes="dfei?"),
    Case("fix", np.fix, np.fix, [A], order=0, dtypes="dfei"),
    Case("signbit", np.signbit, np.signbit, [A], order=0),
    Case("spacing", np.spacing, np.spacing, [A], order=0),
    Case("isinf", np.isinf, np.isinf, [A], order=0, dtypes="dfei?D"),
    Case("logical_xor", np.logical_xor, np.logical_xor, [A, A], order=0, dtypes="i?dD"),
    Case("bitwise_and", np.bitwise_and, np.bitwise_and, [A, A], order=0, dtypes="i?"),
    Case("bitwise_or", np.bitwise_or, np.bitwise_or, [A, (4,)], order=0, dtypes="i?"),
    Case("bitwise_xor", np.bitwise_xor, np.bitwise_xor, [A, A], order=0, dtypes="i?"),
    Case("invert", np.invert, np.invert, [A], order=0, dtypes="i?"),
    Case("left_shift", np.left_shift, np.left_shift, [A, A], small_counts, order=0, dtypes="i?"),
    Case("right_shift", np.right_shift, np.right_shift, [A, A], small_counts, order=0, dtypes="i"),
    Case("bitwise_count", np.bitwise_count, np.bitwise_count, [A], order=0, dtypes="i"),
    Case("gcd", np.gcd, np.gcd, [A, (4,)], whole, order=0, dtypes="i"),
    Case("lcm", np.lcm, np.lcm, [A, (4,)], whole, order=0, dtypes="i"),
    Case(
        "ldexp",
        lambda x: np.ldexp(x, np.array([1, -2, 0, 3])),
        lambda x: np.ldexp(x, np.array([1, -2, 0, 3])),
        [A],
    ),
    Case("round", lambda x: np.round(x, 1), lambda x: np.round(x, 1), [A], order=0, dtypes="dfeiD"),
    Case("tens", lambda x: rg.round(x, -1), lambda x: np.round(x, -1), [A], order=0, dtypes="dfi"),
    Case("around", lambda x: np.around(x), np.around, [A], order=0),
    Case("method round", lambda x: x.round(2), lambda x: x.round(2), [A], order=0),
    Case("nan_to_num", np.nan_to_num, np.nan_to_num, [A], dtypes="dfei?D", empty=[(0, 4)]),
    Case("isclose", np.isclose, np.isclose, [A, (4,)], order=0, dtypes="dfei?D"),
    Case("allclose", np.allclose, np.allclose, [A, (4,)], order=0, dtypes="dfei?D"),
    Case("array_equal", np.array_equal, np.array_equal, [A, A], order=0, dtypes="dfei?D"),
    Case("array_equiv", np.array_equiv, np.array_equiv, [A, (4,)], order=0, dtypes="dfei?D"),
    Case("isreal", np.isreal, np.isreal, [A], order=0, dtypes="dfei?D"),
    Case("iscomplex", np.iscomplex, np.iscomplex, [A], order=0, dtypes="dfei?D"),
    Case("isneginf", np.isneginf, np.isneginf, [A], order=0, dtypes="dfei"),
    Case("isposinf", np.isposinf, np.isposinf, [A], order=0, dtypes="dfei"),
    Case("real_if_close", np.real_if_close, np.real_if_close, [A], dtypes="dfei"),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_ufunc_of_numpy_builds_a_node(name: str) -> None:
    ufunc = getattr(np, name)
    integers = not any(one.startswith("d") for one in ufunc.types)
    values = [np.array([[1, 2], [3, 4]], "i8" if integers else "f8")] * ufunc.nin
    if name == "ldexp":
        values[1] = values[1].astype("i8")
    with np.errstate(all="ignore"):
        wanted = ufunc(*values)
    found = ufunc(*map(rg.Graph().input, values))
    pairs = zip(found, wanted, strict=True) if ufunc.nout > 1 else [(found, wanted)]
    for one, other in pairs:
        assert isinstance(one, rg.Var)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.value, other)


SPECIAL: dict[str, tuple[Any, list[float], list[float]]] = {
    "cbrt": (np.cbrt, [0.0], [np.inf]),
    "arccosh": (np.arccosh, [1.0], [np.inf]),
    "arctanh": (np.arctanh, [1 - 2**-53, 1.0], [2.0**52, np.inf]),
    "arcsinh": (np.arcsinh, [1e300, -1e300, 0.0], [1e-300, 1e-300, 1.0]),
    "copysign": (lambda x: np.copysign(x, -1.0), [2.0, -2.0, 0.0], [-1.0, 1.0, 0.0]),
    "fabs": (np.fabs, [0.0, -1.0], [0.0, -1.0]),
    "fmax": (lambda x: np.fmax(x, 1.0), [1.0, 0.5, 2.0, np.nan], [0.5, 0.0, 1.0, 0.0]),
    "fmin": (lambda x: np.fmin(np.nan, x), [1.0, -1.0], [1.0, 1.0]),
    "nan_to_num": (np.nan_to_num, [np.nan, np.inf, -np.inf, 2.0], [0.0, 0.0, 0.0, 1.0]),
    "fmod": (lambda x: np.fmod(7.5, x), [2.0, -2.0], [-3.0, 3.0]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_kinks_and_ends_in_both_modes(name: str) -> None:
    f, x, slopes = SPECIAL[name]
    leaf = rg.Graph().param(x)
    y = f(leaf)
    np.testing.assert_allclose(rg.grad(y.sum(), leaf).value, slopes, rtol=1e-15)
    np.testing.assert_allclose(rg.jvp(y, leaf, np.ones(len(x))).value, slopes, rtol=1e-15)


def test_operands_that_are_no_vars_join_the_graph_of_those_that_are() -> None:
    x = rg.Graph().input([1.0, 2.0])
    assert np.float_power(np.float32(2.0), x).value.tolist() == [2.0, 4.0]
    assert rg.prelu([-1.0, 1.0], x).value.tolist() == [-1.0, 1.0]
    assert np.polyfit(x, [[1.0, 0.0], [2.0, 0.0]], 1).value.round(10).tolist() == [[1, 0], [0, 0]]
    assert rg.array_equal([1.0, 2.0], x).value
    assert np.polyval([1.0, 0.0], x).value.tolist() == [1.0, 2.0]


# --- operators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
def test_operators_on_bits(dtype: str) -> None:
    a, b = np.array([0, 1, 3, 2]).astype(dtype), np.array([1, 1, 0, 3]).astype(dtype)
    g = rg.Graph()
    x, y = g.input(a), g.input(b)
    pairs = [
        (x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x << y, a << b), (x >> y, a >> b),
        (b & x, b & a), (b | x, b | a), (b ^ x, b ^ a), (b << x, b << a), (b >> x, b >> a),
    ]  # fmt: skip
    if dtype != "bool":
        pairs += [
            (x & 1, a & 1),
            (6 | x, 6 | a),
            (3 ^ x, 3 ^ a),
            (x << 2, a << 2),
            (8 >> x, 8 >> a),
        ]
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.value, other)


@pytest.mark.parametrize("call", [
    lambda x: x & 1.0, lambda x: 1.0 | x, lambda x: x ^ 2, lambda x: x << 1, lambda x: 1 >> x, lambda x: ~x,
])  # fmt: skip
def test_operators_refuse_floats_and_say_what_to_write(call: Any) -> None:
    with pytest.raises(rg.DTypeError, match=r"booleans"):
        call(rg.Graph().input([1.0, 2.0]))


def test_caret_of_a_float_names_the_power() -> None:
    with pytest.raises(rg.DTypeError, match=r"x \*\* y"):
        _ = rg.Graph().input(2.0) ^ 3


@pytest.mark.parametrize("sign", ["&", "|", "^", "<<", ">>", "//", "%"])
def test_augmented_operators_on_a_leaf_name_set(sign: str) -> None:
    g = rg.Graph()
    names = {"x": g.input(np.array([1, 2]), name="x")}
    with pytest.raises(rg.SetError, match=r"x\.set"):
        exec(f"x {sign}= 1", names)
    names["x"] = names["x"] + 0
    exec(f"x {sign}= 1", names)
    assert names["x"].value.tolist() == [eval(f"{one} {sign} 1") for one in (1, 2)]


def test_trunc_of_python_builds_a_node() -> None:
    x = rg.Graph().input([1.26, -1.26])
    assert math.trunc(x).value.tolist() == [1.0, -1.0]


def test_detached_vars_have_the_operators() -> None:
    x = rg.Graph().input(np.array([1, 6]))
    assert (x.detach() ^ 3).value.tolist() == [2, 5]
    assert (~x.detach()).value.tolist() == [-2, -7]


# --- whole arrays ---------------------------------------------------------------------------------


def test_array_equal_knows_shapes() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    assert not np.array_equal(x, g.input([[1.0, 2.0]])).value
    assert not rg.array_equal(g.input(1.0), g.input([1.0])).value
    assert not np.array_equal(x, [1.0, 2.0, 3.0]).value
    assert rg.array_equal(x, [1.0, 2.0]).value
    same = rg.array_equal(g.input([np.nan]), [np.nan], equal_nan=True)
    assert same.value
    y = np.array_equal(x, [1.0, 3.0])
    assert not y.value
    x.set([1.0, 3.0])
    assert y.value


def test_isclose_takes_tolerances() -> None:
    x = rg.Graph().input([1.0, np.nan, np.inf])
    assert np.isclose(x, [1.1, np.nan, np.inf], rtol=0.2).value.tolist() == [True, False, True]
    assert np.isclose(x, x, equal_nan=True).value.all()


def test_real_if_close_refuses_complex_numbers() -> None:
    with pytest.raises(rg.DTypeError, match="dtype of the result"):
        np.real_if_close(rg.Graph().input([1.0 + 0j]))


def test_nan_to_num_takes_numbers() -> None:
    a = np.array([np.nan, np.inf, -np.inf, complex(np.nan, np.inf)])
    x = rg.Graph().input(a)
    options = {"nan": 7.0, "posinf": 8.0, "neginf": 9.0}
    np.testing.assert_array_equal(np.nan_to_num(x, **options).value, np.nan_to_num(a, **options))
    with pytest.raises(rg.DTypeError, match="copy=False"):
        np.nan_to_num(x, copy=False)


def test_two_results_are_computed_apart() -> None:
    g = rg.Graph()
    x = g.input([1.5, 2.25])
    fraction, whole = np.modf(x)
    run = g.forward(whole)
    assert whole in run.ran
    assert fraction not in run.ran


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "float16", "float32"])
def test_functions_of_numpy_that_are_no_ufuncs_widen_short_integers(dtype: str) -> None:
    x = np.array([0, 1, 3]).astype(dtype)
    for function in (np.i0, np.sinc):
        assert function(rg.Graph().input(x)).value.dtype == function(x).dtype


def test_functions_of_numpy_that_are_no_ufuncs_build_before_there_is_a_value() -> None:
    x = rg.Graph().input(shape=(None, 4), dtype="float64")
    results = [function(x[x > 0]) for function in (np.i0, np.sinc)]
    x.set([[1.0, -1.0, 0.5, 0.0]])
    for result, function in zip(results, (np.i0, np.sinc), strict=True):
        np.testing.assert_allclose(result.value, function([1.0, 0.5]), atol=1e-15)


def test_whole_numbers_are_close_as_numbers_not_as_objects() -> None:
    g = rg.Graph()
    n, m = g.input(3), g.input(4)
    close = np.isclose(n, 3), np.allclose(n, m), np.isclose(n, m, atol=1), np.isclose(n, [3, 4])
    assert [one.tolist() for one in close] == [True, False, True, [True, False]]
    n.set(4)
    assert [one.tolist() for one in close] == [False, True, True, [False, True]]
