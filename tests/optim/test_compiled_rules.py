"""Rules that the driver applies in one pass give the bits of those by NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend.machine._find import find_driver
from reactgrad.optim import _compiled

needs_driver = pytest.mark.skipif(find_driver() is None, reason="there is no compiled driver")

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *[
        ("SGD", {"weight_decay": decay, "maximize": up, **more})
        for decay, up, more in product(
            (0.0, 0.3),
            (False, True),
            (
                {},
                {"momentum": 0.9},
                {"momentum": 0.9, "dampening": 0.25},
                {"momentum": 0.9, "nesterov": True},
            ),
        )
    ],
    *[
        (kind, {"weight_decay": decay, "maximize": up, "amsgrad": top})
        for kind, decay, up, top in product(
            ("Adam", "AdamW"), (0.0, 0.3), (False, True), (False, True)
        )
    ],
]
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-40, -1e-40, 1e308, 3.4e38])


def states(
    kind: str, options: dict[str, Any], dtype: str, sizes: tuple[int, ...], odd: bool, lr: float
) -> list[Any]:
    """Return params and moments after some steps, the last one with another rate."""
    g = rg.Graph()
    rng = np.random.default_rng(1)
    params = [g.param(rng.normal(size=size).astype(dtype), name=f"w{size}") for size in sizes]
    opt = getattr(rg.optim, kind)(params, lr=lr, **options)
    slopes = [g.input(np.zeros(size, dtype)) for size in sizes]
    loss = sum([(one * slope).sum() for one, slope in zip(params, slopes, strict=True)])
    for i in range(4):
        for slope, size in zip(slopes, sizes, strict=True):
            drawn = rng.normal(size=size) * 10.0 ** rng.integers(-3, 3, size)
            if odd and i == 2:
                drawn[: len(ODD)] = ODD[:size]
            with np.errstate(over="ignore"):
                slope.set(drawn.astype(dtype))
        opt.zero_grad()
        loss.backward()
        if i == 3:
            opt.param_groups[0]["lr"] = lr / 3.0
        opt.step()
    moments = [one for found in opt.state_dict()["state"].values() for one in found.values()]
    return [*[one.value for one in params], *[one for one in moments if np.ndim(one)]]


def bits(values: Any) -> Any:
    """Return the bits of numbers; all NaN alike."""
    return np.where(np.isnan(values), np.array(np.nan, values.dtype), values).tobytes()


def by_numpy(monkeypatch: pytest.MonkeyPatch, *args: Any) -> list[Any]:
    with monkeypatch.context() as patch:
        patch.setattr(_compiled, "find_driver", lambda: None)
        return states(*args)


@needs_driver
@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sizes", [(1,), (3, 16, 5), (70_001,), (20_000, 7)])
def test_bits_are_those_of_numpy(
    kind: str,
    options: dict[str, Any],
    dtype: str,
    sizes: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    args = kind, options, dtype, sizes, max(sizes) > 10, 0.07
    found, expected = states(*args), by_numpy(monkeypatch, *args)
    assert [one.dtype for one in found] == [one.dtype for one in expected]
    assert [*map(bits, found)] == [*map(bits, expected)]


@needs_driver
@given(
    st.sampled_from(OPTIONS),
    st.sampled_from(["f4", "f8"]),
    st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True),
    st.floats(1e-6, 10.0),
)
def test_bits_of_any_rate(
    chosen: tuple[str, dict[str, Any]], dtype: str, sizes: list[int], lr: float
) -> None:
    args = (*chosen, dtype, tuple(sizes), False, lr)
    with pytest.MonkeyPatch.context() as patch:
        found, expected = states(*args), by_numpy(patch, *args)
    assert [*map(bits, found)] == [*map(bits, expected)]


@needs_driver
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_a_large_param(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rg.get_num_threads()
    rg.set_num_threads(threads)
    try:
        args = "AdamW", {}, "f4", (300_001,), False, 0.1
        assert [*map(bits, states(*args))] == [*map(bits, by_numpy(monkeypatch, *args))]
    finally:
        rg.set_num_threads(before)


@needs_driver
def test_the_driver_is_asked_where_numbers_are_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate of NumPy's has a dtype, in which NumPy computes; half precision has no loop."""
    calls: list[str] = []
    driver = find_driver()

    class Listening:
        def __getattr__(self, name: str) -> Any:
            def call(*args: Any) -> Any:
                calls.append(name)
                return getattr(driver, name)(*args)

            return call

    monkeypatch.setattr(_compiled, "find_driver", Listening)
    states("SGD", {}, "f8", (3,), False, 0.1)
    assert calls == ["descend"] * 4
    states("Adam", {}, "f4", (3,), False, 0.1)
    assert calls == ["descend"] * 4 + ["adapt"] * 4
    calls.clear()
    states("SGD", {}, "f4", (3,), False, np.float64(0.1))
    states("SGD", {}, "f2", (3,), False, 0.1)
    assert calls == []
