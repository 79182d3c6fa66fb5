"""A leaf that adopts another array at every turn: what reads it is bound anew, and no more than that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

SIZE = 300_000  # elements, so that steps are computed together


def model(first: np.ndarray[Any, Any], *, together: bool) -> tuple[rg.Graph, rg.Var, rg.Var]:
    """A graph, a leaf, and the last of several nodes that are computed together, with its reader or without."""
    g = rg.Graph()
    x = g.input(first)
    start = x * 2.0 if together else (x * x).reshape((2, -1)).sum(axis=0)
    return g, x, g.keep(rg.sqrt(rg.absolute(start) + 1.0) * 3.0)


def by_hand(v: np.ndarray[Any, Any], *, together: bool) -> np.ndarray[Any, Any]:
    start = v * 2.0 if together else (v * v).reshape((2, -1)).sum(axis=0)
    return np.sqrt(np.absolute(start) + 1.0) * 3.0


@pytest.mark.trusting
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
def test_values_are_those_of_copies(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=SIZE) for _ in range(8)]
    kept = [array.copy() for array in arrays]
    g, x, y = model(np.zeros(SIZE), together=together)
    fused: list[int] = []
    fuse = g._host.fuse
    monkeypatch.setattr(g._host, "fuse", lambda *given: (fused.append(1), fuse(*given))[1])
    for array in arrays:
        x.set(array, copy=False)
        np.testing.assert_allclose(y.value, by_hand(array, together=together), rtol=1e-12)
    assert len(fused) == 1, "only its readers are bound anew"
    g.set({x: np.ones(SIZE)})  # into memory of its own: what was adopted is left to its giver
    np.testing.assert_allclose(y.value, by_hand(np.ones(SIZE), together=together))
    assert all(map(np.array_equal, arrays, kept))
    g.check_invariants()


@pytest.mark.parametrize("several", [False, True])
def test_what_was_adopted_is_never_written_and_what_is_set_never_adopted(several: bool) -> None:
    g = rg.Graph()
    x, other = g.input(np.zeros(4)), g.input(np.zeros(4))
    y = x * 2.0
    for turn in range(3):
        adopted, copied = np.full(4, 1.0 + turn), np.full(4, 5.0 + turn)
        x.set(adopted, copy=False)
        assert y.value.tolist() == [2.0 + 2.0 * turn] * 4
        if several:
            g.set({x: copied, other: copied})
        else:
            x.set(copied)
        copied[:] = -1.0
        assert y.value.tolist() == [10.0 + 2.0 * turn] * 4
        assert adopted.tolist() == [1.0 + turn] * 4
    assert x.value_version == 7


def nothing(y: rg.Var) -> list[rg.Var]:
    return []


def a_view(y: rg.Var) -> list[rg.Var]:
    return [y.reshape((2, -1))]


def a_function(y: rg.Var) -> list[rg.Var]:
    return [rg.lift(lambda v: v.sum())(y)]


def a_cutoff(y: rg.Var) -> list[rg.Var]:
    y.cutoff = "equal"
    return []


@pytest.mark.parametrize("size", [20_000, SIZE], ids=["small steps", "by blocks"])
@pytest.mark.parametrize("beside", [nothing, a_view, a_function, a_cutoff])
@pytest.mark.parametrize("executor", [rg.Serial(), rg.Threads(2)], ids=["serial", "threads"])
def test_results_that_callers_hold_stay(size: int, beside: Any, executor: Any) -> None:
    g = rg.Graph(executor=executor)
    x = g.input(np.zeros(size))
    y = rg.exp(x) * 2.0
    z = y * y + y
    total = z.sum()
    targets = [z, total, *beside(y)]
    for turn in range(3):
        x.set(np.full(size, -1.0 * turn))
        g.forward(*targets)
    held: list[tuple[Any, Any]] = []
    for turn in range(6):
        v = np.exp(np.full(size, 0.1 * turn)) * 2.0
        x.set(np.full(size, 0.1 * turn))
        g.forward(*targets)
        for node, expected in ((y, v), (z, v * v + v)):
            np.testing.assert_array_equal(node.value, expected)
            held.append((node.value, expected))
        np.testing.assert_allclose(total.value, (v * v + v).sum(), rtol=1e-12)
        assert y.value_version == turn + 4
    for value, expected in held:
        np.testing.assert_array_equal(value, expected)
    g.check_invariants()
