"""Running sums and products by the driver have the bits of those by NumPy, and are what NumPy computes in doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend.machine._find import find_driver
from reactgrad.backend.machine._running import Pass
from reactgrad.backend.numpy._sums import ALONE

needs_driver = pytest.mark.skipif(find_driver() is None, reason="there is no compiled driver")

ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]


def read(name: str, values: Any, axis: int | None, jit: bool) -> list[Any]:
    """Return the running value, its gradient and its forward derivative."""
    g = rg.Graph(jit=jit)
    x = g.param(values)
    y = getattr(rg, name)(x, axis=axis)
    weights = np.linspace(0.5, 1.5, y.size, dtype=values.dtype).reshape(y.shape)
    slope = rg.grad((y * weights).sum(), x)
    return [y.value, slope.value, rg.jvp(y, x, np.ones_like(values)).value]


def bits(value: Any) -> bytes:
    return np.where(np.isnan(value), np.array(np.nan, value.dtype), value).tobytes()


@needs_driver
@given(
    st.sampled_from(["cumsum", "cumprod"]),
    st.sampled_from(["f4", "f8"]),
    st.lists(st.sampled_from([1, 2, 3, ALONE + 9, 300]), min_size=1, max_size=3),
    st.integers(0, 2),
    st.integers(0, 9),
)
def test_bits_are_those_of_numpy(
    name: str, dtype: str, shape: list[int], axis: int, seed: int
) -> None:
    while np.prod(shape) > 100_000:
        shape.pop()
    rng = np.random.default_rng(seed)
    values = rng.normal(1.0, 0.3, shape).astype(dtype)
    if seed > 7:
        at = np.arange(0, values.size, max(1, values.size // 5))
        values.flat[at] = rng.choice(ODD, len(at))
    along = axis if axis < len(shape) else None
    with np.errstate(all="ignore"):
        found = [read(name, values, along, jit) for jit in (True, False)]
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        assert bits(one) == bits(other)


@needs_driver
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(20_000,), (3, 9_000), (20_000, 3), (70, 600), (2, 9_000, 2)])
def test_totals_of_floats_are_doubles(name: str, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(1.0, 1e-3, shape).astype("f4")
    for axis in [i for i, length in enumerate(shape) if length > ALONE]:
        expected = getattr(np, name)(values, axis=axis, dtype="f8").astype("f4")
        for jit in (True, False):
            assert read(name, values, axis, jit)[0].tobytes() == expected.tobytes()


@needs_driver
@pytest.mark.trusting
def test_the_driver_takes_what_lies_in_one_piece() -> None:
    def bound(x: Any) -> bool:
        g = rg.Graph(jit=True)
        y = rg.cumsum(g.input(x), axis=0)
        for _ in range(2):
            assert np.array_equal(y.value, np.cumsum(x, axis=0))
            g.nodes[0].touch()
        return type(g._host._steps[y._slot]) is Pass

    assert bound(np.ones(100))
    assert bound(np.ones((100, 4), "f4"))
    assert not bound(np.ones(5, "f4"))  # as exact in floats
    assert not bound(np.ones(100, "i8"))
    assert not bound(np.ones((0, 3)))
