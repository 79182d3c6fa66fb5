"""Every elementwise op against the NumPy call it stands for: bits, dtypes, shapes, refusals."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import reactgrad as rg
from reactgrad.ops import UFUNCS
from reactgrad.ops._elementwise import ELEMENTWISE

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
UNARY = sorted(u.__name__ for u in UFUNCS if u.nin == 1)
BINARY = sorted(u.__name__ for u in UFUNCS if u.nin == 2 and u is not np.matmul)
LITERALS = (True, 0, 1, 2, 3, -1, 300, 2**40, 2**63, 2**70, 0.0, 1.5, -2.0, float("nan"), 1e300, 2j)


def sample(dtype: str, seed: int = 0, shape: tuple[int, ...] = (3, 4)) -> np.ndarray:
    """Values with everything awkward that the dtype has; integers stay small enough for powers."""
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)
    size = int(np.prod(shape))
    if d.kind == "b":
        return rng.integers(0, 2, size).astype(bool).reshape(shape)
    if d.kind in "iu":
        values = rng.integers(0, 7, size)
        return values.astype(d).reshape(shape)
    special_values = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 0.5, 2.0])
    values = rng.normal(0, 2, size)
    values[: min(size, 9)] = rng.permutation(special_values)[: min(size, 9)]
    if d.kind == "c":
        both = np.empty(size, d)
        both.real, both.imag = values, rng.permutation(values)
        return both.reshape(shape)
    return values.astype(d).reshape(shape)


def same_bits(got: Any, expected: Any) -> bool:
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    if expected.dtype.kind not in "fc":
        return bool((got == expected).all())
    part = f"f{expected.dtype.itemsize // (2 if expected.dtype.kind == 'c' else 1)}"
    a, b = (np.ascontiguousarray(v).ravel().view(part) for v in (got, expected))
    both_nan = np.isnan(a) & np.isnan(b)
    return a[~both_nan].tobytes() == b[~both_nan].tobytes()


def builtin_of(error: BaseException) -> type[BaseException]:
    return next(t for t in (OverflowError, TypeError, ValueError) if isinstance(error, t))


def outcome(function: Callable[[], Any]) -> Any:
    """The result of a NumPy call, or the kind of error it raises."""
    try:
        with np.errstate(all="ignore"):
            return function()
    except (TypeError, ValueError, OverflowError) as error:
        return builtin_of(error)


def check(build: Callable[[], Any], expected: Any, what: str) -> None:
    """A node with the expected value, known in shape and dtype before; or the expected refusal."""
    if isinstance(expected, type):
        with pytest.raises(expected) as caught:
            _ = build().value
        if expected is not ValueError:  # NumPy's own, from inside a kernel, keeps its type
            assert isinstance(caught.value, rg.ReactgradError), what
        return
    node = build()
    before = node.shape, node.dtype
    got = node.value
    assert before == (np.shape(got), np.asarray(got).dtype), f"{what}: {before} before computing"
    assert same_bits(got, expected), f"{what}: {got!r} is not {expected!r}"


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_op_is_the_numpy_call(name: str, dtype: str) -> None:
    a = sample(dtype)
    expected = outcome(lambda: getattr(np, name)(a))
    x = rg.Graph().input(a)
    check(lambda: getattr(rg, name)(x), expected, f"rg.{name}({dtype})")
    check(lambda: getattr(np, name)(x), expected, f"np.{name}({dtype})")


@pytest.mark.parametrize("name", BINARY)
def test_binary_op_is_the_numpy_call_for_every_pair_of_dtypes(name: str) -> None:
    function = getattr(np, name)
    for left in DTYPES:
        for right in DTYPES:
            a, b = sample(left, 1), sample(right, 2)
            if name == "power" and np.dtype(left).kind in "iub":
                b = np.abs(b) if np.dtype(right).kind != "c" else b
            expected = outcome(lambda a=a, b=b: function(a, b))
            g = rg.Graph()
            x, y = g.input(a), g.input(b)
            check(lambda x=x, y=y: getattr(rg, name)(x, y), expected, f"rg.{name}({left}, {right})")


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("literal", LITERALS, ids=str)
def test_python_literal_promotes_as_numpy_says(name: str, literal: Any) -> None:
    function = getattr(np, name)
    for dtype in DTYPES:
        a = sample(dtype, 3)
        x = rg.Graph().input(a)
        right = outcome(lambda a=a: function(a, literal))
        left = outcome(lambda a=a: function(literal, a))
        if right is OverflowError and np.dtype(dtype).kind == "b":
            continue  # NumPy compares booleans with no large integer; what we do is left open
        if right is OverflowError and name.startswith("logical"):
            continue
        check(lambda x=x: getattr(rg, name)(x, literal), right, f"rg.{name}({dtype}, {literal!r})")
        check(lambda x=x: getattr(rg, name)(literal, x), left, f"rg.{name}({literal!r}, {dtype})")


OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("other", [np.arange(1.0, 5.0), np.float32(2.5), np.int16(3), 2, 1.5])
def test_operator_with_either_side_a_plain_value(sign: str, other: Any) -> None:
    op = OPERATORS[sign]
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = rg.Graph().input(a)
    check(lambda: op(x, other), outcome(lambda: op(a, other)), f"x {sign} {other!r}")
    check(lambda: op(other, x), outcome(lambda: op(other, a)), f"{other!r} {sign} x")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 2.0, 0.5, -1.0, 1.5, True, 2j], ids=repr)
def test_power_operator_is_numpys_operator(dtype: str, exponent: Any) -> None:
    a = sample(dtype, 4)
    if (
        a.dtype.kind == "c"
    ):  # at infinity, which formula NumPy takes differs from release to release
        a = np.nan_to_num(a, nan=1.0, posinf=2.0, neginf=-2.0)
    x = rg.Graph().input(a)
    expected = outcome(lambda: a**exponent)
    if isinstance(expected, type):
        check(lambda: x**exponent, expected, f"{dtype} ** {exponent!r}")
        return
    node = x**exponent
    assert node.dtype == expected.dtype, f"{dtype} ** {exponent!r}"
    np.testing.assert_allclose(node.value, expected, rtol=1e-2 if dtype == "float16" else 1e-5)


def test_reversed_power() -> None:
    a = np.arange(1, 5, dtype=np.uint8)
    x = rg.Graph().input(a)
    check(lambda: 2**x, 2**a, "2 ** uint8")
    check(lambda: np.float32(2) ** x, np.float32(2) ** a, "float32 ** uint8")
    check(lambda: a**x, a**a, "ndarray ** Var")


@pytest.mark.parametrize("name", ["sigmoid", "erf", "erfc", "norm_cdf", "norm_pdf"])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith("complex")])
def test_function_without_a_numpy_twin(name: str, dtype: str) -> None:
    a = sample(dtype, 5)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64)
        expected = {
            "sigmoid": special.expit,
            "erf": special.erf,
            "erfc": special.erfc,
            "norm_cdf": special.ndtr,
            "norm_pdf": lambda v: np.exp(-v * v / 2) / np.sqrt(2 * np.pi),
        }[name](wide)
        wanted = np.exp(a[:1]).dtype
    node = getattr(rg, name)(rg.Graph().input(a))
    assert node.shape == a.shape
    if name != "norm_pdf":  # composed: its dtype is what the parts give
        assert node.dtype == wanted
    assert node.dtype == node.value.dtype
    tolerance = {2: 5e-3, 4: 1e-5, 8: 1e-13}[node.dtype.itemsize]
    np.testing.assert_allclose(node.value.astype(float), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["erf", "erfc", "norm_cdf"])
@pytest.mark.parametrize("value", [1j, np.array([1 + 2j]), np.complex64(2)], ids=str)
def test_error_functions_refuse_complex_numbers(name: str, value: Any) -> None:
    x = rg.Graph().input(value)
    with pytest.raises(rg.DTypeError, match="complex"):
        _ = getattr(rg, name)(x).value


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_relu_keeps_dtype(dtype: str) -> None:
    a = sample(dtype, 6)
    node = rg.relu(rg.Graph().input(a))
    check(lambda: node, np.maximum(a, a.dtype.type(0)), f"relu({dtype})")


def test_every_row_of_the_table_is_tested_here() -> None:
    without_twin = {"sigmoid", "relu", "erf", "erfc", "norm_cdf"}
    assert {*UNARY, *BINARY} | without_twin == {*ELEMENTWISE, "conjugate"}


# --- integers that do not fit ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_integer_that_does_not_fit_raises_and_says_how_to_go_on(name: str) -> None:
    x = rg.Graph().input(np.array([1, 2], np.uint8))
    with pytest.raises(OverflowError, match=r"300 does not fit into uint8.*astype") as caught:
        _ = getattr(rg, name)(x, 300).value
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize("number", [300, -1, 2**63, 2**64, 2**70, -(2**70)])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64"])
def test_comparison_with_any_integer_works(dtype: str, number: int) -> None:
    a = np.array([0, 1, 100], dtype)
    x = rg.Graph().input(a)
    for op in (operator.lt, operator.ge, operator.eq, operator.ne):
        check(lambda op=op: op(x, number), op(a, number), f"{op.__name__}({dtype}, {number})")
        check(lambda op=op: op(number, x), op(number, a), f"{op.__name__}({number}, {dtype})")


def test_comparison_with_any_integer_from_a_python_function() -> None:
    g = rg.Graph()
    n = rg.lift(lambda k: k)(g.input(300))
    x = g.input(np.array([1, 2], np.uint8))
    np.testing.assert_array_equal((x < n).value, [True, True])
    with pytest.raises(OverflowError, match="300") as caught:
        _ = (x + n).value
    assert isinstance(caught.value, rg.ReactgradError)


def test_number_input_that_stops_fitting_raises_and_recovers() -> None:
    g = rg.Graph()
    x, n = g.input(np.array([1, 2], np.uint8)), g.input(5)
    y = x + n
    np.testing.assert_array_equal(y.value, np.array([6, 7], np.uint8))
    n.set(300)
    with pytest.raises(OverflowError, match="300"):
        _ = y.value
    n.set(7)
    np.testing.assert_array_equal(y.value, np.array([8, 9], np.uint8))


@pytest.mark.parametrize(
    ("first", "second", "held"),
    [(3, 4.5, 4.5), (4.5, 3, 3.0), (True, 2, 2), (2, 1j, 1j), (1.5, True, 1.0), (1, 2, 2)],
)
def test_number_input_takes_a_wider_kind_and_never_a_narrower(
    first: Any, second: Any, held: Any
) -> None:
    g = rg.Graph()
    a = np.arange(3, dtype=np.int16)
    n = g.input(first)
    y = g.input(a) + n
    check(lambda: y, a + first, f"int16 + {first!r}")
    n.set(second)
    check(lambda: y, a + held, f"int16 + {held!r} after set")


# --- layouts and shapes ------------------------------------------------------------------------

LAYOUTS = {
    "0-d": np.array(1.5),
    "0-d scalar": np.float64(1.5),
    "one element": np.array([1.5]),
    "zero-size": np.zeros((0, 3)),
    "zero-size inside": np.zeros((2, 0, 3)),
    "negative strides": np.arange(12.0).reshape(3, 4)[::-1, ::-1],
    "step 2": np.arange(24.0).reshape(3, 8)[:, ::2],
    "Fortran order": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "byte-swapped": np.arange(12.0).reshape(3, 4).astype(">f8"),
    "byte-swapped 0-d": np.array(1.5, ">f8"),
    "byte-swapped integers": np.arange(4).astype(">i4"),
    "byte-swapped complex": (np.arange(4) * 1j).astype(">c8"),
    "stride 0": np.broadcast_to(np.arange(4.0), (3, 4)),
    "unaligned": np.frombuffer(b"x" + np.arange(4.0).tobytes(), np.uint8)[1:].view(np.float64),
    "read-only": np.frombuffer(np.arange(4.0).tobytes()),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_of_the_input_does_not_matter(name: str) -> None:
    a = LAYOUTS[name]
    native = np.array(a, np.asarray(a).dtype.newbyteorder("="), order="C", subok=False)
    g = rg.Graph()
    for x in (g.input(a), g.const(a)):
        assert x.dtype.isnative
        assert x.shape == native.shape
        check(lambda x=x: x + 1, native + 1, f"{name} + 1")
        check(lambda x=x: rg.sin(x), np.sin(native), f"sin({name})")
        check(lambda x=x: x * native, native * native, f"{name} * itself")
    late = g.input(np.zeros_like(native))
    y = late * 2
    _ = y.value
    late.set(a)
    check(lambda: y, native * 2, f"{name} after set")


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout_of_a_plain_operand_does_not_matter(name: str) -> None:
    a = LAYOUTS[name]
    native = np.array(a, np.asarray(a).dtype.newbyteorder("="), order="C", subok=False)
    x = rg.Graph().input(native)
    check(lambda: rg.add(x, a), native + native, f"x + {name}")
    check(lambda: rg.add(a, x), native + native, f"{name} + x")


SHAPES = [
    ((), ()),
    ((), (3,)),
    ((1,), (3,)),
    ((2, 1), (3,)),
    ((2, 3), (1, 1)),
    ((0,), (1,)),
    ((0, 3), (3,)),
    ((2, 1, 4), (3, 1)),
    ((1, 0), (5, 1)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_broadcasting(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    g = rg.Graph()
    x, y = g.input(np.array(a)), g.input(np.array(b))
    check(lambda: x * y, a * b, f"{left} * {right}")
    check(lambda: y - x, b - a, f"{right} - {left}")
    check(lambda: rg.where(x > 0, y, x), np.where(a > 0, b, a), f"where {left} {right}")


@pytest.mark.parametrize(("left", "right"), [((3,), (4,)), ((2, 3), (2,)), ((0,), (2,))])
def test_shapes_that_do_not_broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    g = rg.Graph()
    x, y = g.input(np.zeros(left)), g.input(np.zeros(right))
    count = len(g)
    with pytest.raises(rg.ShapeError, match=r"add cannot combine.*Reshape") as caught:
        x + y
    assert isinstance(caught.value, ValueError)
    assert len(g) == count


@pytest.mark.parametrize("kind", ["x", "y"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("literal", [0, 1.5, True, 1j, -3, 300], ids=str)
def test_where_promotes_as_numpy_says(kind: str, dtype: str, literal: Any) -> None:
    a, c = sample(dtype, 7), np.arange(12).reshape(3, 4) % 2 == 0

    def wanted(where: Any, *operands: Any) -> Any:
        if a.dtype.kind in "iu" and type(literal) is int:
            info = np.iinfo(a.dtype)
            if not info.min <= literal <= info.max:
                return OverflowError  # np.where wraps here; every other function of NumPy raises
        return outcome(lambda: where(*operands))

    g = rg.Graph()
    x = g.input(a)
    if kind == "x":
        expected = wanted(np.where, c, a, literal)
        check(lambda: rg.where(c, x, literal), expected, f"where(c, {dtype}, {literal!r})")
        check(lambda: np.where(c, x, literal), expected, f"np.where(c, {dtype}, {literal!r})")
    else:
        expected = wanted(np.where, c, literal, a)
        check(lambda: rg.where(g.input(c), literal, x), expected, f"where(c, {literal!r}, {dtype})")


@pytest.mark.parametrize("condition", [[0, 2, -1], [0.0, np.nan, 0.5], [0j, 1j, 1]])
def test_where_takes_numbers_as_conditions(condition: list[Any]) -> None:
    g = rg.Graph()
    expected = np.where(np.array(condition), 1.0, 2.0)
    np.testing.assert_array_equal(rg.where(g.input(condition), 1.0, 2.0).value, expected)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith("complex")])
@pytest.mark.parametrize("bounds", [(1, 3), (None, 2), (2, None), (3, 1), (0.5, 2.5)])
def test_clip_is_numpys(dtype: str, bounds: tuple[Any, Any]) -> None:
    a = sample(dtype, 8)
    x = rg.Graph().input(a)
    low, high = bounds
    expected = outcome(lambda: np.clip(a, low, high))
    check(lambda: rg.clip(x, low, high), expected, f"clip({dtype}, {bounds})")
    check(lambda: np.clip(x, low, high), expected, f"np.clip({dtype}, {bounds})")
    check(lambda: x.clip(low, high), expected, f"{dtype}.clip({bounds})")


def test_clip_with_bounds_that_are_nodes() -> None:
    rng = np.random.default_rng(0)
    a, low, high = rng.normal(size=(3, 4)), rng.normal(size=(3, 1)), rng.normal(size=4)
    g = rg.Graph()
    node = rg.clip(g.input(a), g.input(low), g.input(high))
    check(lambda: node, np.clip(a, low, high), "clip with bounds")


def test_clip_of_complex_numbers_is_refused() -> None:
    with pytest.raises(rg.DTypeError, match="complex"):
        rg.clip(rg.Graph().input([1j]), 0, 1)


@pytest.mark.parametrize("source", DTYPES)
def test_astype(source: str) -> None:
    a = sample(source, 9)
    x = rg.Graph().input(a)
    for target in DTYPES:
        if np.dtype(source).kind == "c" and np.dtype(target).kind != "c":
            with pytest.raises(rg.DTypeError, match="imaginary"):
                x.astype(target)
            continue
        if np.dtype(source).kind in "fc" and np.dtype(target).kind in "iu":
            continue  # NaN and infinity as integers are up to the processor
        with np.errstate(all="ignore"):
            expected = a.astype(target)
        check(lambda target=target: x.astype(target), expected, f"{source} to {target}")


def test_floats_become_integers_towards_zero() -> None:
    x = rg.Graph().input([1.7, -1.7, 0.0])
    np.testing.assert_array_equal(x.astype("int32").value, np.array([1, -1, 0], np.int32))


@pytest.mark.parametrize("bad", [str, "O", "M8[s]", "nonsense"])
def test_astype_to_what_has_no_kernels(bad: Any) -> None:
    with pytest.raises(rg.DTypeError, match="astype"):
        rg.Graph().input([1.0]).astype(bad)


@pytest.mark.parametrize("sign", ["&", "|"])
def test_logical_operators(sign: str) -> None:
    op = {"&": operator.and_, "|": operator.or_}[sign]
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    g = rg.Graph()
    x, y = g.input(a), g.input(b)
    check(lambda: op(x, y), op(a, b), f"x {sign} y")
    check(lambda: op(x, b), op(a, b), f"x {sign} ndarray")
    check(lambda: op(True, y), op(True, b), f"True {sign} y")
    check(lambda: ~x, ~a, "~x")
    with pytest.raises(rg.DTypeError, match="booleans"):
        op(x, g.input([1.0] * 4))
    with pytest.raises(rg.DTypeError, match="booleans"):
        ~g.input(1.0)


def test_value_never_warns_whatever_numpy_is_told() -> None:
    x = rg.Graph().input([0.0, -1.0, np.inf, 1e308])
    with np.errstate(all="raise"):
        assert np.isnan(rg.log(x).value[1])
        assert (1.0 / x).value[0] == np.inf
        assert (x * 1e10).value[3] == np.inf
