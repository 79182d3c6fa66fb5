"""Products in lower precision: which ops, in which blocks, with which bits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.ops.special._precision import round_to

F4 = np.float32


def rounded(x: Any) -> np.ndarray:
    """Return float32 rounded to bfloat16: the oracle, in integers of Python."""
    x = np.asarray(x, F4)
    bits = [int(one) for one in x.view(np.uint32).ravel()]
    up = [(one + 0x7FFF + (one >> 16 & 1)) & 0xFFFF0000 for one in bits]
    return np.array(up, np.uint32).view(F4).reshape(x.shape)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((5, 4)).astype(F4), rng.standard_normal((4, 3)).astype(F4)


def test_operands_are_rounded_by_bits_and_multiplied_in_float32(data: Any) -> None:
    a, b = data
    g = rg.Graph()
    x, w = g.input(a), g.param(b)
    with rg.autocast("bfloat16"):
        y = x @ w
    assert y.dtype == F4
    np.testing.assert_array_equal(y.value, rounded(a) @ rounded(b))
    d = rg.grad(y.sum(), w)
    np.testing.assert_allclose(d.value, rounded(a).sum(axis=0)[:, None] + np.zeros(3), rtol=1e-6)
    assert d.dtype == F4
    with rg.autocast("float16"):
        y = x @ w
    np.testing.assert_array_equal(y.value, a.astype("e").astype(F4) @ b.astype("e").astype(F4))


def test_rounding_keeps_nan_infinity_zero_and_takes_ties_to_even() -> None:
    bits = [0x7F800001, 0xFF800001, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 0x80000000, 0x00000001]
    bits += [0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF]
    x = np.array(bits, np.uint32).view(F4)
    y = round_to(rg.Graph().input(x), "bfloat16").value
    np.testing.assert_array_equal(np.isnan(y), [True] * 3 + [False] * 8)
    found = [int(one) for one in y.view(np.uint32)]
    assert [one & 0xFFFF for one in found] == [0] * 11
    assert found[3:] == [
        *(0x7F800000, 0xFF800000, 0x80000000, 0x00000000),
        *(0x3F800000, 0x3F820000, 0x3F810000, 0x7F800000),
    ]


@pytest.mark.parametrize("size", [1, 7, 70_001])
def test_rounding_is_that_of_ml_dtypes(size: int) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="the oracle of bfloat16")
    rng = np.random.default_rng(size)
    x = rng.integers(0, 2**32, size, dtype=np.uint32).view(F4)
    with np.errstate(all="ignore"):
        wanted = x.astype(ml_dtypes.bfloat16).astype(F4)
    found = round_to(rg.Graph().input(x), "bfloat16").value
    whole = ~np.isnan(x)
    np.testing.assert_array_equal(np.isnan(found), ~whole)
    np.testing.assert_array_equal(found[whole].view("u4"), wanted[whole].view("u4"))


# What ``torch.autocast("cpu", torch.bfloat16)`` of PyTorch 2.13 returns for float32: bfloat16, or not.
TORCH: dict[str, tuple[bool, Callable[..., Any]]] = {
    "matmul": (True, lambda x, v: x @ x),
    "matmul of vectors": (True, lambda x, v: v @ v),
    "mv": (True, lambda x, v: x @ v),
    "linear": (True, lambda x, v: rg.linear(x, x, v)),
    "einsum": (True, lambda x, v: rg.einsum("ij,jk->ik", x, x)),
    "einsum of one": (False, lambda x, v: rg.einsum("ij->i", x)),
    "conv1d": (True, lambda x, v: rg.conv1d(x[None], x[:, :, None])),
    "conv2d": (True, lambda x, v: rg.conv2d(x[None, None], x[None, None, :2, :2])),
    "conv_transpose2d": (
        True,
        lambda x, v: rg.conv_transpose2d(x[None, None], x[None, None, :2, :2]),
    ),
    "attention": (True, lambda x, v: rg.scaled_dot_product_attention(x[None], x[None], x[None])),
    "outer": (False, lambda x, v: rg.outer(v, v)),
    "kron": (False, lambda x, v: rg.kron(x, x)),
    "softmax": (False, lambda x, v: rg.softmax(x)),
    "log_softmax": (False, lambda x, v: rg.log_softmax(x)),
    "layer_norm": (False, lambda x, v: rg.layer_norm(x)),
    "sum": (False, lambda x, v: x.sum()),
    "exp": (False, lambda x, v: rg.exp(x)),
    "add": (False, lambda x, v: x + x),
    "multiply": (False, lambda x, v: x * x),
    "prod": (False, lambda x, v: rg.prod(x)),
    "cumprod": (False, lambda x, v: rg.cumprod(x, 0)),
    "norm": (False, lambda x, v: rg.norm(x)),
    "trace": (False, lambda x, v: rg.trace(x)),
    "inv": (False, lambda x, v: rg.linalg.inv(x)),
    "solve": (False, lambda x, v: rg.linalg.solve(x, v)),
    "det": (False, lambda x, v: rg.linalg.det(x)),
    "fft": (False, lambda x, v: rg.fft.rfft(v)),
    "mse_loss": (False, lambda x, v: rg.mse_loss(x, x * 2.0)),
    "concatenate": (False, lambda x, v: rg.concatenate([x, x])),
}


@pytest.mark.parametrize("name", TORCH)
def test_the_ops_that_are_cast_are_those_of_torch(name: str) -> None:
    lower, call = TORCH[name]
    x = np.random.default_rng(1).standard_normal((4, 4)).astype(F4) + 4 * np.eye(4, dtype=F4)
    g = rg.Graph()
    a, b = g.input(x), g.input(x[0])
    with rg.autocast("bfloat16"):
        y = call(a, b)
    seen, ops = [y], set()
    for one in seen:
        ops.add(one.name.rpartition("_")[0])
        seen += one.parents
    assert ("round_to" in ops) is lower
    assert y.dtype in (F4, np.complex64)  # stored as float32: there is no dtype bfloat16


@pytest.mark.parametrize(("layer", "gates"), [(rg.rnn, 1), (rg.lstm, 4), (rg.gru, 3)])
def test_recurrent_layers_round_their_input_and_weights_by_bits(layer: Any, gates: int) -> None:
    rng = np.random.default_rng(0)
    x, *w = (
        rng.standard_normal(shape).astype(F4)
        for shape in ((5, 2, 3), (gates * 4, 3), (gates * 4, 4))
    )

    def of(arrays: Any, dtype: str | None) -> list[np.ndarray]:
        g = rg.Graph()
        leaves = [g.param(one) for one in arrays]
        with rg.autocast(dtype or "bfloat16", enabled=dtype is not None):
            y, end = layer(leaves[0], None, *leaves[1:])
        total = (y * y).sum() + sum(one.sum() for one in (end if layer is rg.lstm else (end,)))
        return [one.value for one in (y, *rg.grad(total, leaves))]

    short = [rounded(x), *map(rounded, w)]
    for one, other in zip(of([x, *w], "bfloat16"), of(short, None), strict=True):
        np.testing.assert_array_equal(one, other)  # gradients, too: those by the rounded weights
    assert not np.array_equal(of([x, *w], None)[0], of(short, None)[0])


def test_float64_is_meant_and_half_floats_are_not_multiplied_on_the_host() -> None:
    g = rg.Graph()
    x, h = g.input(np.ones((2, 2))), g.input(np.ones((2, 2), np.float16))
    with rg.autocast("bfloat16"):
        assert (x @ x).dtype == np.float64
        assert (h @ h).dtype == F4
        assert rg.prod(h).dtype == F4
        assert (h + h).dtype == np.float16
        assert (x @ np.ones((2, 2), F4)).dtype == np.float64
    assert (h @ h).dtype == np.float16


def test_blocks_nest_and_switch_off(data: Any) -> None:
    a, b = data
    x = rg.Graph().input(a)
    with rg.autocast("bfloat16"):
        with rg.autocast(enabled=False):
            np.testing.assert_array_equal((x @ b).value, a @ b)
            with rg.autocast("float16"):
                half = (x @ b).value
        np.testing.assert_array_equal((x @ b).value, rounded(a) @ rounded(b))
    assert not np.array_equal(half, a @ b)
    np.testing.assert_array_equal((x @ b).value, a @ b)

    @rg.autocast("bfloat16")
    def product(x: Any) -> Any:
        return x @ b

    np.testing.assert_array_equal(product(x).value, rounded(a) @ rounded(b))
    with pytest.raises(RuntimeError):
        with rg.autocast("bfloat16"):
            raise RuntimeError
    np.testing.assert_array_equal((x @ b).value, a @ b)


def test_the_switch_belongs_to_its_thread(data: Any) -> None:
    a, b = data
    x = rg.Graph().input(a)
    found: list[Any] = []
    with rg.autocast("bfloat16"):
        thread = threading.Thread(target=lambda: found.append((x @ b).value))
        thread.start()
        thread.join()
    np.testing.assert_array_equal(found[0], a @ b)


def test_a_param_is_rounded_once_in_a_block(data: Any) -> None:
    a, b = data
    g = rg.Graph()
    x, w = g.input(a), g.param(b)
    with rg.autocast("bfloat16"):
        with rg.no_grad():
            _ = (x @ w).value
        total = sum(((x * float(i)) @ w).sum() for i in range(1, 5))
    assert len([one for one in w.children if one.name.startswith("round_to")]) <= 2
    assert rg.grad(total, w).dtype == F4  # the node that no_grad has made is not used for it


def test_gradients_do_not_depend_on_the_block_that_asks(data: Any) -> None:
    a, b = data
    g = rg.Graph()
    x, w = g.input(a), g.param(b)
    y = ((x @ w) ** 2).sum()
    with rg.autocast("bfloat16"):
        d = rg.grad(y, w)
    np.testing.assert_array_equal(d.value, rg.grad(((x @ w) ** 2).sum(), w).value)
    w.set(b * 2)
    np.testing.assert_allclose(d.value, 2 * a.T @ (a @ (b * 2)), rtol=1e-5)


def test_what_is_reused_was_built_in_the_same_precision(data: Any) -> None:
    a, b = data
    g = rg.Graph()
    x, w = g.input(a), g.param(b)
    with g.reuse():
        with rg.autocast("bfloat16"):
            low = x @ w
        full = x @ w
    assert low is not full
    with g.reuse():
        assert (x @ w) is full

    @rg.subgraph
    def product(x: Any) -> Any:
        return x @ w

    plain = product(x).value
    with rg.autocast("bfloat16"):
        short = product(x).value
    np.testing.assert_array_equal(plain, a @ b)
    np.testing.assert_array_equal(short, rounded(a) @ rounded(b))

    def total(w: Any) -> Any:
        return (w.T @ w).sum()

    slope = rg.grad(total)
    plain = slope(b)
    with rg.autocast("bfloat16"):
        short = slope(b)
    assert not np.array_equal(plain, short)
    np.testing.assert_array_equal(plain, slope(b))


def test_refusals() -> None:
    for dtype in ("float32", np.float64, 3):
        with pytest.raises(rg.DTypeError, match="'bfloat16' or 'float16'"):
            rg.autocast(dtype)
    with pytest.raises(rg.DTypeError, match="True or False"):
        rg.autocast(enabled="yes")  # type: ignore[arg-type]
    with pytest.raises(rg.DTypeError, match="generator"):

        @rg.autocast()
        def later() -> Any:
            yield 1


def test_saved_and_loaded(tmp_path: Any, data: Any) -> None:
    a, b = data
    g = rg.Graph()
    x, w = g.input(a, name="x"), g.param(b)
    with rg.autocast("bfloat16"):
        y = x @ w
    y.name = "y"
    g.keep(y)
    g.save(tmp_path / "g.rg")
    again = rg.load(tmp_path / "g.rg")
    again["x"].set(a * 2)
    np.testing.assert_array_equal(again["y"].value, rounded(a * 2) @ rounded(b))
