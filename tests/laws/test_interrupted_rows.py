"""An error at any line of a set of rows, or of a read in part, leaves values that a full run gives, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import reactgrad.backend._device as device
from reactgrad.backend.blocks import _strips
from tests.interrupts import struck

ERRORS = [MemoryError, RecursionError, KeyboardInterrupt]
START = np.random.default_rng(3).normal(size=(40, 3))


class Model:
    """Elementwise ops, views, sums of rows and of all rows, and gradients."""

    def __init__(self) -> None:
        g = self.graph = rg.Graph()
        self.x = x = g.param(START)
        h = rg.tanh(x * 2.0) + rg.norm_cdf(x[:, :1])
        rows = (h * x).sum(axis=1)
        y = (rg.exp(-rows) * h.max(axis=1)).sum() + h.sum(axis=0).sum()
        self.nodes = [h, rows, y, rg.grad(y, x)]
        self.read()

    def read(self) -> list[Any]:
        self.graph.forward(*self.nodes)
        return [np.array(one.value) for one in self.nodes]


def as_fresh(model: Model) -> None:
    """Whether all values have the bits of a new model with the same leaf, now and after more sets of rows."""
    fresh = Model()
    for row in (5, 5, 6, None, 7):
        if row is not None:
            model.x.set_at(row, 0.25 + row)
        fresh.x.set(np.array(model.x.value))
        for one, other in zip(model.read(), fresh.read(), strict=True):
            assert one.tobytes() == other.tobytes()
        model.graph.check_invariants()


def strike(at: int, error: type[BaseException], held: bool, row: int) -> bool:
    """Raise in the `at`-th line of a set and a read; return whether there are so many."""
    model = Model()
    for one in (3, 4, 3, 4):  # plans are stored, and calls have been moved
        model.x.set_at(one, 0.5)
        model.read()
    kept = [one.value for one in (*model.nodes, model.x)] if held else []
    then = [np.array(one) for one in kept]

    def act() -> None:
        model.x.set_at(row, 1.5)
        model.graph.forward(*model.nodes)

    came = struck(act, at, error)
    now = np.array(model.x.value)
    expected = np.array(START)
    expected[[3, 4]] = 0.5
    if now[row, 0] == 1.5:
        expected[row] = 1.5
    assert now.tobytes() == expected.tobytes(), "the leaf was set in part"
    as_fresh(model)
    for one, before in zip(kept, then, strict=True):
        assert one.tobytes() == before.tobytes()
    return came


def strike_all(held: bool, row: int, every: int) -> None:
    with pytest.MonkeyPatch.context() as patch, _strips.configured(block=9, threshold=30, effort=0):
        patch.setattr(device, "COPY_LIMIT", 0 if held else 1 << 17)
        at = 1
        while strike(at, ERRORS[at % len(ERRORS)], held, row):
            at += every
        assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("row", [4, 9])
@pytest.mark.parametrize("held", [False, True])
def test_an_error_at_many_lines(held: bool, row: int) -> None:
    strike_all(held, row, 61)


@pytest.mark.trusting
def test_a_kernel_that_raises_leaves_no_rows_behind() -> None:
    """A function in the plan raises once: what finished is kept, the rest is computed as a whole."""
    g = rg.Graph()
    x = g.input(START)
    fail = [False]

    def function(a: np.ndarray) -> np.ndarray:
        if fail[0]:
            raise ValueError("no")
        return a * 2.0

    h = rg.exp(x)
    f = rg.lift(function, shape=(40, 3), dtype="f8")(h)
    y = rg.sin(f) + h
    for row in (1, 2, 3):
        x.set_at(row, 0.1)
        g.forward(y)
    assert list(g.last_run.rows) == [h]
    fail[0] = True
    x.set_at(4, 0.2)
    with pytest.raises(ValueError, match="no"):
        g.forward(y)
    fail[0] = False
    x.set_at(5, 0.3)
    whole = np.exp(x.value)
    assert (y.value == np.sin(whole * 2.0) + whole).all()
    g.check_invariants()
