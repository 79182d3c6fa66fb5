"""Values are safe to keep (rule E8); what callers write and read as Python sees it."""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SMALL, LARGE = 4, 40_000  # 32 bytes; 320 KB, handed out as a view
SIZES = [SMALL, LARGE]


@pytest.mark.parametrize("size", [0, 1, SMALL, LARGE])
def test_value_is_read_only_and_the_same_object_until_a_change(size: int) -> None:
    g = rg.Graph()
    x = g.input(np.zeros(size))
    y = x + 1
    for node in (x, y, y[::-1], y.reshape(-1, 1), rg.lift(lambda a: a * 2)(y)):
        value = node.value
        assert value is node.value
        assert not value.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            value[...] = 7.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            value.flags.writeable = True
        part = value[: size // 2]
        with pytest.raises(ValueError, match="WRITEABLE"):
            part.flags.writeable = True
    before = y.value
    x.set(np.ones(size))
    assert y.value is not before or size == 0
    assert (before == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "hold",
    [
        lambda v: v,
        lambda v: v[1:],
        lambda v: v.reshape(2, -1)[1],
        lambda v: np.asarray(v),
        lambda v: np.frombuffer(v),
        lambda v: np.asarray(memoryview(v)),
        lambda v: v[::-1].T,
        lambda v: np.lib.stride_tricks.sliding_window_view(v, 2),
        lambda v: v.view(np.int64),
    ],
    ids=[
        "value",
        "slice",
        "reshaped",
        "asarray",
        "frombuffer",
        "memoryview",
        "view",
        "window",
        "bits",
    ],
)
@pytest.mark.parametrize("which", ["leaf", "op", "view", "function", "two views"])
def test_what_a_caller_holds_never_changes(size: int, hold: Any, which: str) -> None:
    g = rg.Graph()
    x = g.input(np.arange(float(size)))
    op = x * 2.0
    node = {
        "leaf": x,
        "op": op,
        "view": op[::-1],
        "function": rg.lift(lambda a: a[::-1])(op),
        "two views": op[::-1][::-1].reshape(-1),
    }[which]
    try:
        held = hold(node.value)
    except (ValueError, BufferError):
        return  # such a view of a reversed array does not exist
    kept = np.array(held)
    gc.collect()
    for i in range(3):
        x.set(np.full(size, float(i)))
        _ = op.value, node.value
        np.testing.assert_array_equal(np.asarray(held), kept)
    last = np.array(node.value)
    np.testing.assert_array_equal(last, np.full(size, 2.0 if which == "leaf" else 4.0))


@pytest.mark.parametrize("size", SIZES)
def test_set_copies_what_it_is_given(size: int) -> None:
    a = np.arange(float(size))
    g = rg.Graph()
    x, c, p = g.input(a), g.const(a), g.param(a)
    y = x + c
    a[:] = -1
    np.testing.assert_array_equal(x.value, np.arange(size))
    np.testing.assert_array_equal(c.value, np.arange(size))
    np.testing.assert_array_equal(p.value, np.arange(size))
    x.set(a)
    a[:] = 5
    np.testing.assert_array_equal(x.value, np.full(size, -1.0))
    np.testing.assert_array_equal(y.value, np.arange(size) - 1.0)


def test_input_of_any_object_that_is_set_to_an_array_copies_it_too() -> None:
    x = rg.Graph().input(None)
    a = np.arange(3.0)
    x.set(a)
    a[0] = 9.0
    np.testing.assert_array_equal(x.value, [0.0, 1.0, 2.0])
    assert not x.value.flags.writeable


def test_list_of_numbers_becomes_an_array_also_where_an_object_was() -> None:
    g = rg.Graph()
    for first in (None, "text", {}):
        x = g.input(first)
        x.set([1, 2])
        assert isinstance(x.value, np.ndarray)


@pytest.mark.parametrize("size", SIZES)
def test_adopt_takes_the_array_itself(size: int) -> None:
    a = np.arange(float(size))
    x = rg.Graph().input(np.zeros(size))
    y = x * 2
    _ = y.value
    x.set(a, copy=False)
    assert not a.flags.writeable
    np.testing.assert_array_equal(y.value, np.arange(size) * 2.0)
    x.set(np.ones(size))
    with x.mutate() as m:
        m[0] = 3.0
    np.testing.assert_array_equal(a, np.arange(size))  # never written again
    assert y.value[0] == 6.0


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3]),
        np.array([1, 2, 3], np.float32),
        np.array([1, 2, 3], ">f8"),
        np.arange(6.0)[1::2] // 2 + 1,
        np.array([[1.0, 2.0, 3.0]])[0],
        range(1, 4),
    ],
    ids=["list", "tuple", "int64", "float32", "swapped", "strided", "view", "range"],
)
def test_adopting_what_cannot_be_adopted_copies_into_the_leafs_dtype(value: Any) -> None:
    g = rg.Graph()
    x = g.input(np.zeros(3))
    y = x * 0.5
    if isinstance(value, range):
        value = list(value)
    x.set(value, copy=False)
    assert x.dtype == x.value.dtype == np.float64
    np.testing.assert_array_equal(x.value, np.array(value, float))
    np.testing.assert_array_equal(y.value, np.array(value) * 0.5)
    if isinstance(value, np.ndarray) and value.base is not None:
        base = value.base
        base.flat[:] = 100.0
        assert (x.value < 10).all()


@pytest.mark.parametrize("value", [4.0, np.float64(4.0), np.array(4.0), np.float32(4.0), 4])
def test_adopting_a_number(value: Any) -> None:
    x = rg.Graph().input(np.float64(3.0))
    x.set(value, copy=False)
    assert x.value == 4.0
    assert x.value.dtype == np.float64


def test_value_of_one_leaf_may_be_set_on_another_or_itself() -> None:
    g = rg.Graph()
    x, z = g.input(np.arange(float(LARGE))), g.input(np.zeros(LARGE))
    y = x + z
    z.set(x.value)
    x.set(x.value[::-1])
    assert (y.value == LARGE - 1).all()
    x.set(y.value, copy=False)
    assert (y.value == LARGE - 1 + np.arange(LARGE)).all()


@pytest.mark.parametrize("size", SIZES)
def test_copies_are_writable_and_independent(size: int) -> None:
    g = rg.Graph()
    x = g.input(np.zeros(size))
    y = x + 1
    with rg.implicit_values("allow"):
        for copy in (y.numpy(), np.asarray(y), np.array(y), np.from_dlpack(y)):
            copy[...] = 9.0
            assert (y.value == 1.0).all()
        assert np.asarray(y, np.float32).dtype == np.float32
        assert np.asarray(y, copy=True)[0] == 1.0


def test_mutate() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    y = x * 2
    old = x.value, y.value
    with x.mutate() as a:
        a[0] = 5.0
        assert x.value is old[0]
    np.testing.assert_array_equal(y.value, [10.0, 4.0])
    assert x.value_version == 2
    np.testing.assert_array_equal(old, [[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(KeyError):
        with x.mutate() as a:
            a[0] = 100.0
            raise KeyError
    assert x.value_version == 2
    np.testing.assert_array_equal(x.value, [5.0, 2.0])
    a[0] = 7.0  # what was lent is no door into the graph
    np.testing.assert_array_equal(x.value, [5.0, 2.0])


def test_touch() -> None:
    g = rg.Graph()
    calls: list[int] = []
    x = g.input([1.0])
    y = rg.lift(lambda a: calls.append(1) or a.sum())(x)
    assert y.value == 1.0
    x.touch()
    assert y.is_stale
    assert x.value_version == 2
    assert y.value == 1.0
    assert len(calls) == 2
    y.touch()
    assert y.value == 1.0
    assert len(calls) == 3


# --- reading as Python --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_single_element_as_a_python_number(dtype: str, shape: tuple[int, ...]) -> None:
    a = np.ones(shape, dtype)
    x = rg.Graph().const(a)
    assert (float(x), int(x), bool(x), complex(x)) == (1.0, 1, True, 1 + 0j)
    assert type(x.item()) is type(a.item())
    assert x.item() == a.item()
    assert math.sqrt(x) == 1.0
    assert f"{x:.2f}" == "1.00" if shape == () else True


def test_number_of_shape_nothing_is_a_numpy_scalar() -> None:
    g = rg.Graph()
    for value in (np.float32(2.0), np.array(2.0, np.float32)):
        x = g.input(value)
        for node in (x, x + 1, x.sum(), rg.reshape([1.0], ()), x[...], x.T):
            assert isinstance(node.value, np.generic)
            assert node.shape == ()
    assert [10, 20, 30][g.const(1)] == 20
    assert [10, 20, 30][g.const(np.int8(1))] == 20


def test_python_numbers_stay_python_numbers() -> None:
    g = rg.Graph()
    seen: list[Any] = []
    for value in (3, 3.5, True, 2j, 2**100, -(2**63), float("inf")):
        x = g.input(value)
        assert x.value is value
        y = rg.lift(lambda v: seen.append(v) or v)(x)
        assert y.value is value
        assert type(seen[-1]) is type(value)
    factorial = rg.lift(math.factorial)(g.input(25))
    assert factorial.value == math.factorial(25)
    n = g.input(200)
    doubled = rg.lift(lambda v: v * 2)(rg.lift(lambda v: v + 2**62)(n))
    assert doubled.value == 2**63 + 400
    n.set(2**64)
    assert doubled.value == 2 * (2**64 + 2**62)


def test_python_integer_that_no_array_holds_is_an_error_only_for_array_ops() -> None:
    g = rg.Graph()
    n = g.input(2**70)
    assert rg.lift(lambda v: v + 1)(n).value == 2**70 + 1
    with pytest.raises(OverflowError, match=str(2**70)) as caught:
        _ = (n + 1).value
    assert isinstance(caught.value, rg.ReactgradError)


@pytest.mark.parametrize("value", [{"a": [1]}, None, "text", object(), {1, 2}, range(3)])
def test_input_of_any_object(value: Any) -> None:
    g = rg.Graph()
    x = g.input(value)
    assert x.value == value
    assert type(x.value) is type(value)
    y = rg.lift(lambda v: (v, 1))(x)
    assert y.value[0] is x.value
    x.set("other")
    assert y.value == ("other", 1)


@pytest.mark.parametrize(
    "result", [[1, 2], (1, 2), {"a": 1}, None, "text", 3, 2.5, True, [[1], [2, 3]], np.float32(1)]
)
def test_result_of_a_function_is_never_converted(result: Any) -> None:
    g = rg.Graph()
    y = rg.lift(lambda v: result)(g.input(1))
    assert y.value is result


def test_array_that_a_function_changes_later_does_not_change_the_value() -> None:
    g = rg.Graph()
    for size in SIZES:
        state = np.zeros(size)

        def step(v: float, state: np.ndarray = state) -> np.ndarray:
            state[:] = v
            return state

        x = g.input(1.0)
        y = rg.lift(step)(x)
        part = rg.lift(lambda v, f=step: f(v)[: SMALL // 2])(x)
        first = y.value, part.value
        state[:] = -5.0
        assert (y.value == 1.0).all()
        assert (part.value == 1.0).all()
        x.set(2.0)
        assert (y.value == 2.0).all()
        assert (part.value == 2.0).all()
        assert all((v == 1.0).all() for v in first)
        assert state.flags.writeable  # the function's own array is still its own


def test_function_gets_read_only_arrays() -> None:
    g = rg.Graph()
    for size in SIZES:

        def wrong(a: np.ndarray) -> np.ndarray:
            a[0] = 1.0
            return a

        y = rg.lift(wrong)(g.input(np.zeros(size)))
        with pytest.raises(ValueError, match="read-only") as caught:
            _ = y.value
        assert any("wrong" in note for note in caught.value.__notes__)


def test_function_that_returns_its_argument_or_a_view_of_it() -> None:
    g = rg.Graph()
    for size in SIZES:
        x = g.input(np.zeros(size))
        op = x + 1
        same, part = rg.lift(lambda a: a)(op), rg.lift(lambda a: a[::2])(op)
        held = same.value, part.value
        total = same.sum() + part.sum()
        _ = total.value
        x.set(np.ones(size))
        _ = op.value
        assert all((v == 1.0).all() for v in held)
        assert (same.value == 2.0).all()
        assert total.value == size * 3.0


def test_function_with_a_declared_result() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    calls: list[int] = []
    double = rg.lift(lambda a: calls.append(1) or a * 2, shape=(2,))
    y = double(x)
    assert (y.shape, y.dtype, calls) == ((2,), np.float64, [])
    z = y @ np.ones(2)
    assert z.shape == ()
    assert z.value == 6.0
    with pytest.raises(rg.ShapeError, match="lengths 2 and 3"):
        y + np.ones(3)
    wrong = rg.lift(lambda a: a[:1], shape=(2,))(x)
    with pytest.raises(rg.ShapeError, match=r"declared to return float64\[2\] but returned.*\[1\]"):
        _ = wrong.value
    narrow = rg.lift(lambda a: a, shape=(2,), dtype="f4")(x)
    with pytest.raises(rg.ShapeError, match="float32"):
        _ = narrow.value
    number = rg.lift(lambda a: 300, shape=(), dtype="u1")(x)
    with pytest.raises(OverflowError, match="300"):
        _ = number.value


def test_function_of_keywords_and_plain_values() -> None:
    g = rg.Graph()
    a, b = g.input(1), g.input(2)
    f = rg.lift(lambda *args, **kwargs: (args, kwargs))
    y = f(a, "k", 3, flag=b, other=None)
    assert y.value == ((1, "k", 3), {"flag": 2, "other": None})
    b.set(5)
    assert y.value == ((1, "k", 3), {"flag": 5, "other": None})
    with g:
        assert f(1, x=2).value == ((1,), {"x": 2})
        assert f(1).graph is g


# --- cutoffs where bits matter ------------------------------------------------------------------

NAN = float("nan")


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ([1.0, NAN], [1.0, NAN], True),
        ([1.0, NAN], [NAN, 1.0], False),
        ([0.0], [-0.0], False),
        (NAN, NAN, True),
        (0.0, -0.0, False),
        (1, True, False),
        (1, 1.0, False),
        (2**70, 2**70, True),
        ([1 + 1j], [1 + 1j], True),
        ([1], [1], True),
        (np.zeros((0, 3)), np.zeros((0, 3)), True),
        (np.zeros((0, 3)), np.zeros((0, 2)), False),
        (np.float32(1), 1.0, True),
        ({"a": 1}, {"a": 1}, True),
        ("a", "a", True),
        (None, None, True),
        (np.zeros(LARGE), np.zeros(LARGE), True),
        (np.zeros(LARGE), np.r_[np.zeros(LARGE - 1), -0.0], False),
    ],
)
def test_equal_cutoff(old: Any, new: Any, same: bool) -> None:
    g = rg.Graph()
    x = g.input(old, cutoff="equal")
    y = rg.lift(lambda v: v, cutoff="equal")(g.input(old))
    assert y.value is not rg
    x.set(new)
    assert (x.value_version == 1) is same
    if np.shape(old) == np.shape(new):
        y.parents[0].set(new)
        run = g.forward(y)
        assert (y in run.cut_off) is same


def test_tolerance_keeps_the_old_value() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0, NAN], cutoff=rg.tolerance(atol=0.1))
    x.set([1.05, 2.0, NAN])
    assert x.value[0] == 1.0
    x.set([1.05, 2.0, 3.0])
    assert x.value_version == 2


@pytest.mark.parametrize("outcome", [1, "yes", None, np.array([True, True])], ids=repr)
def test_cutoff_must_say_true_or_false(outcome: Any) -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    y = x * 2
    y.cutoff = lambda old, new: outcome
    _ = y.value
    x.set([1.0, 3.0])
    with pytest.raises(rg.DTypeError, match=r"cutoff.*True.*False.*array_equal"):
        _ = y.value
    leaf = g.input([1.0, 2.0], cutoff=lambda old, new: outcome)
    with pytest.raises(rg.DTypeError, match=r"cutoff.*True.*False"):
        leaf.set([1.0, 3.0])


# --- shapes and dtypes of leaves ------------------------------------------------------------------


def test_declared_dtype_without_a_value() -> None:
    g = rg.Graph()
    x = g.input(dtype="f4")
    x.set([1, 2])
    assert x.dtype == x.value.dtype == np.float32


def test_leaf_keeps_its_dtype_under_set() -> None:
    g = rg.Graph()
    for dtype, values in {
        "f4": [[1, 2], [1.5, 2.5], np.array([1, 2]), np.float64([1, 2]), np.float16([1, 2]), [True, False]],
        "i2": [[1, 2], np.array([1, 2], np.int64), np.array([1, 2], np.uint8), [True, False]],
        "c8": [[1, 2], [1.5, 2.5], [1j, 2]],
    }.items():  # fmt: skip
        x = g.input(np.zeros(2, dtype))
        for value in values:
            x.set(value)
            assert x.dtype == x.value.dtype == np.dtype(dtype)
            np.testing.assert_array_equal(x.value, np.asarray(value).astype(dtype))


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3)),
        np.array(2.0),
        np.arange(6.0)[::-2],
        np.arange(6.0).reshape(2, 3).T,
        np.arange(3).astype(">i2"),
        np.asfortranarray(np.ones((2, 3))),
        np.longdouble(1.5),
    ],
    ids=["zero-size", "0-d", "reversed", "transposed", "swapped", "Fortran", "long double"],
)
def test_unusual_arrays_as_leaves(value: Any) -> None:
    g = rg.Graph()
    for x in (g.input(value), g.const(value), g.input(np.array(value), shape=np.shape(value))):
        np.testing.assert_array_equal(x.value, value)
        assert x.shape == np.shape(value)
        assert x.dtype.isnative
        np.testing.assert_array_equal((x + 1).value, np.asarray(value) + 1)


def test_shape_in_numpy_integers() -> None:
    x = rg.Graph().input(shape=(np.int64(2), None))
    assert x.shape == (2, None)
    assert all(n is None or type(n) is int for n in x.shape)


@pytest.mark.parametrize("asked", [False, True], ids=["", "gradient asked for"])
@pytest.mark.parametrize("number", [2, True, np.int64(2)])
def test_the_inverse_of_a_number_is_that_of_whole_numbers_too(number: Any, asked: bool) -> None:
    g = rg.Graph()
    x = g.input(2.5)
    inverse = x**-1
    if asked:
        rg.grad(inverse, x)
    assert inverse.value == 0.4
    x.set(number)
    assert inverse.value == 1.0 / number


def test_a_string_out_of_an_array_is_a_string() -> None:
    g = rg.Graph()
    region = g.input("eu")
    region.set(np.array(["eu", "us"])[1])
    assert (region.value, type(region.value)) == ("us", str)
    assert type(g.input(np.bytes_(b"eu")).value) is bytes
