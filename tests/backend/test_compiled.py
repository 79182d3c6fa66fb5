"""Ops with compiled loops of their own: the bits of the kernels in whose place they are, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend import find_binder
from reactgrad.backend.blocks import _strips
from reactgrad.backend.machine import _compiled
from reactgrad.backend.machine._find import find_machine
from reactgrad.backend.machine._loop_call import LoopCall
from reactgrad.backend.machine._registers import Program

pytestmark = pytest.mark.skipif(find_machine() is None, reason="needs the driver or numba")

NAMES = ("erf", "erfc", "norm_cdf")
# Zeros, where each formula ends and the next one begins, where results underflow, and beyond.
SPECIAL = [
    *(0.0, -0.0, 1e-320, 1e-300, 0.5, 3.1622776601683795, 3.162277660168379, 3.3, 4.95, 4.9497),
    *(5.93, 6.5, 7.0, 7.000000001, 7.1, 13.5, 26.5, 27.2, 38.4, 39.0, 40.0, 1e10, 1e38, np.inf),
]


def bits(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def bound(name: str, x: Any, out: Any, *, jit: bool) -> Callable[[], object]:
    return find_binder(name, "cpu", jit)((x,), out, ())


def both(name: str, x: Any) -> tuple[Any, Any]:
    """The results with the compiled loop and without."""
    found = []
    for jit in (True, False):
        out = np.full(x.shape, 77.0, x.dtype)
        with np.errstate(all="raise"):
            bound(name, x, out, jit=jit)()
        found.append(out)
    return found[0], found[1]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_the_bits_are_those_of_the_kernel(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    special = np.array(SPECIAL).astype(dtype)
    with_nan = np.concatenate([special, -special, [np.nan, -np.nan]]).astype(dtype)
    for size in (1, 2, 255, 256, 257, 5000):
        for scale in (0.01, 1.0, 4.0, 60.0):
            x = (rng.standard_normal(size) * scale).astype(dtype)
            places = rng.permutation(size)[: with_nan.size]
            x[places] = rng.permutation(with_nan)[: places.size]
            compiled, plain = both(name, x)
            assert bits(compiled) == bits(plain)
    x = with_nan.reshape(10, -1)
    compiled, plain = both(name, x)
    assert bits(compiled) == bits(plain)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(NAMES),
    st.lists(st.floats(width=32), min_size=1, max_size=600),
    st.sampled_from(["f4", "f8"]),
)
def test_any_number_gives_the_bits_of_the_kernel(
    name: str, numbers: list[float], dtype: str
) -> None:
    compiled, plain = both(name, np.array(numbers, dtype))
    assert bits(compiled) == bits(plain)


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_who_lies_in_one_piece_is_computed_by_the_loop_and_others_by_the_kernel(name: str) -> None:
    base = np.linspace(-9.0, 9.0, 24).reshape(4, 6)
    taken = [base, base[1:3], base[2], base[3, 4:5], base[3, 4, ...]]
    left = [base[:, 2:4], base[::2], base.T, np.broadcast_to(base[0, :1], (6,)), base[::-1]]
    for parts, loop in ((taken, True), (left, False)):
        for x in parts:
            out = np.empty(x.shape)
            step = bound(name, x, out, jit=True)
            assert (type(step) is LoopCall) == loop
            step()
            assert bits(out) == bits(both(name, np.ascontiguousarray(x))[1])
    for dtype in ("f2", "g"):  # which it has no loop for
        x = base.astype(dtype)
        step = bound(name, x, np.empty_like(x), jit=True)
        assert type(step) is not LoopCall


def test_where_numpy_has_no_such_loop_the_kernel_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compiled, "_loop", lambda name, dtype: None)
    x = np.linspace(-9.0, 9.0, 50)
    out = np.empty(50)
    step = bound("norm_cdf", x, out, jit=True)
    assert type(step) is not LoopCall
    step()
    monkeypatch.undo()
    assert bits(out) == bits(both("norm_cdf", x)[0])


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("name", NAMES)
def test_large_arrays_are_computed_by_blocks(name: str, threads: int) -> None:
    rng = np.random.default_rng(4)
    number = rg.get_num_threads()
    try:
        rg.set_num_threads(threads)
        with _strips.configured(block=100, threshold=1000, effort=1.0):
            for shape in ((3001,), (30, 101), (5, 7, 90)):
                x = rng.standard_normal(shape) * 5
                for one in (x, np.asfortranarray(x), np.broadcast_to(x[:1], x.shape)):
                    out = np.empty(one.shape)
                    step = bound(name, one, out, jit=True)
                    assert isinstance(step, _strips.Elementwise)
                    step()
                    plain = both(name, np.ascontiguousarray(one))[1]
                    assert bits(out) == bits(plain)
    finally:
        rg.set_num_threads(number)


def traced(name: str, size: int, jit: bool) -> tuple[list[Any], rg.Graph]:
    """Values, gradients and versions of several reads of a graph."""
    rng = np.random.default_rng(5)
    g = rg.Graph(jit=jit)
    x = g.input(rng.standard_normal(size))
    y = getattr(rg, name)(x * 2.0 + 0.5)
    loss = (y * x).sum()
    slope = rg.grad(loss, x)
    found: list[Any] = []
    for _ in range(4):
        x.set(rng.standard_normal(size) * 4)
        g.forward(loss, slope, y)
        found += [loss.value, slope.value, y.value, y.value_version]
    return found, g


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 20, 5000])
def test_values_and_gradients_of_a_graph_do_not_tell(name: str, size: int) -> None:
    compiled, plain = (traced(name, size, jit)[0] for jit in (True, False))
    assert [bits(a) for a in compiled] == [bits(a) for a in plain]


@pytest.mark.trusting
@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_the_loop_is_part_of_a_program(name: str) -> None:
    _, graph = traced(name, 20, jit=True)
    plans = [transition.plan for transition in graph._scheduler.plans._transitions.values()]
    programs = [call for plan in plans for call in plan.fused or () if type(call) is Program]
    assert LoopCall in [type(step) for program in programs for step in program._steps]
