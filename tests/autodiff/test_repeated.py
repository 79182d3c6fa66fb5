"""Gradients through parts and other forms of a value that repeats a small one very often take little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.autodiff import _repeated

COLUMN = np.arange(1.0, 5.0)[:, None]
MANY = 2**31


def _column(x: Any, n: int) -> Any:
    return rg.broadcast_to(x, (4, n // 4))


# Of a number, or of a column of four, `n` elements in all; what is read of them is small.
PROGRAMS: dict[str, tuple[Any, Callable[[Any, int], Any]]] = {
    "slice": (3.0, lambda x, n: rg.broadcast_to(x, (n,))[:3].sum()),
    "element": ([3.0], lambda x, n: rg.broadcast_to(x, (n,))[7]),
    "slice of float32": (np.float32(3), lambda x, n: rg.broadcast_to(x, (n,))[:3].sum()),
    "rows": (np.arange(4.0), lambda x, n: rg.broadcast_to(x, (n // 4, 4))[:3, ::2].prod()),
    "columns": (COLUMN, lambda x, n: (_column(x, n)[1:3, :5] * np.arange(5)).sum()),
    "take": (3.0, lambda x, n: rg.take(rg.broadcast_to(x, (n,)), [5, 6, 6]).sum()),
    "take of columns": (COLUMN, lambda x, n: rg.take(_column(x, n), [1, 1, 7], axis=1).prod()),
    "elements": (COLUMN, lambda x, n: _column(x, n)[[1, 1, 2], [5, 6, 7]].prod()),
    "flip": (COLUMN, lambda x, n: rg.flip(_column(x, n))[:2, :3].prod()),
    "transpose": (COLUMN, lambda x, n: _column(x, n).T[:3, 1:].prod()),
    "axes": (COLUMN, lambda x, n: rg.moveaxis(_column(x, n)[None], 2, 0)[1, 0].prod()),
    "reshape": (3.0, lambda x, n: rg.broadcast_to(x, (n,)).reshape(-1, 2**10)[3, :3].sum()),
    "reshape of columns": (COLUMN, lambda x, n: _column(x, n).reshape(4, -1, 2)[2, :3, 1].sum()),
    "part of a part": (3.0, lambda x, n: rg.broadcast_to(x, (n,))[::2][5:8].sum()),
    "split": (COLUMN, lambda x, n: rg.array_split(_column(x, n), 4)[1][0, :3].sum()),
    "mask": (3.0, lambda x, n: (lambda y: y[y > 0].sum())(rg.broadcast_to(x, (n,))[:9])),
    "input as index": (3.0, lambda x, n: rg.broadcast_to(x, (n,))[x._graph.input(5)]),
    "inputs as index": (
        COLUMN,
        lambda x, n: _column(x, n)[x._graph.input([1, 1, 2]), 0].prod(),
    ),
    "many parts": (
        3.0,
        lambda x, n: (lambda y: rg.stack([y[k] for k in range(40)]).prod())(
            rg.broadcast_to(x, (n,))
        ),
    ),
    "a part and all": (
        COLUMN,
        lambda x, n: (lambda y: y[:, :2].prod() + y[:, 1:].sum() / n)(_column(x, n)),
    ),
    "twice": (
        2.0,
        lambda x, n: rg.broadcast_to(rg.broadcast_to(x, (2**21,))[:8], (n // 8, 8))[0].prod(),
    ),
}

DERIVATIVES: dict[str, Callable[[Any, Any], Any]] = {
    "gradient": lambda y, x: rg.grad(y, x),
    "second": lambda y, x: rg.grad((rg.grad(y * y, x) ** 2).sum(), x),
    "tangent": lambda y, x: rg.jvp(y, x, np.ones(x.shape, x.dtype)),
    "hessian": lambda y, x: rg.hessian(y * y, x),
}


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "a part and all"])
def test_of_very_many_elements(name: str) -> None:
    start, program = PROGRAMS[name]
    g = rg.Graph()
    x, few = g.param(start), g.param(start)
    y, z = program(x, MANY), program(few, 2**14)
    for one, derive in DERIVATIVES.items():
        tracemalloc.start()
        found = derive(y, x).value
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**27, one
        np.testing.assert_allclose(found, derive(z, few).value, rtol=1e-6)
    y.backward()
    np.testing.assert_array_equal(x.grad, rg.grad(y, x).value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_with_zeros_around_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, program = PROGRAMS[name]
    g = rg.Graph()
    x, other = g.param(start), g.param(start)
    y, z = program(x, 2**14), program(other, 2**14)
    expected = [derive(z, other).value for derive in DERIVATIVES.values()]
    monkeypatch.setattr(_repeated, "MANY", 2**10)
    for (one, derive), value in zip(DERIVATIVES.items(), expected, strict=True):
        np.testing.assert_allclose(derive(y, x).value, value, rtol=1e-6, err_msg=one)


def _numbers_of(x: Any, first: float, both: bool, last: bool) -> Any:
    """Return the gradient of the graph below, after its edits, by hand."""
    found = np.zeros(x.shape)
    if last:
        found[1:3] += 3 * first * np.exp(first * x[1:3])
    if both:
        found[0] += 2 * first * np.cos(first * x[0])
    return found


def test_follows_edits_and_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_repeated, "MANY", 2**10)
    g = rg.Graph()
    x = g.param(COLUMN)
    twice = x * 2.0
    many = rg.broadcast_to(x, (4, 2**12))
    form = many.reshape(4, -1, 2)
    aside = g.const(np.zeros((4, 2**11, 2)))
    part, other = form[1:3, :3, 0], aside[0, 5:7, 1]
    total = rg.exp(part).sum() + rg.sin(other).sum()
    gradient = rg.grad(total, x)
    fork = g.fork()

    def check(first: float, *, both: bool, last: bool) -> None:
        np.testing.assert_allclose(
            gradient.value, _numbers_of(x.value, first, both, last), rtol=1e-12
        )

    check(1.0, both=False, last=True)
    other.replace_parent(0, form)
    check(1.0, both=True, last=True)
    many.replace_parent(0, twice)
    check(2.0, both=True, last=True)
    part.replace_parent(0, aside)
    check(2.0, both=True, last=False)
    x.set(COLUMN + 1.0)
    check(2.0, both=True, last=False)
    handle = form.register_hook(lambda gradient: gradient * 0.5)
    np.testing.assert_allclose(
        2 * gradient.value, _numbers_of(x.value, 2.0, True, False), rtol=1e-12
    )
    handle.remove()
    part.replace_parent(0, form)
    many.replace_parent(0, x)
    check(1.0, both=True, last=True)
    np.testing.assert_allclose(fork[gradient].value, _numbers_of(COLUMN, 1.0, False, True))
    fork[other].replace_parent(0, fork[form])
    np.testing.assert_allclose(fork[gradient].value, _numbers_of(COLUMN, 1.0, True, True))
    check(1.0, both=True, last=True)
    g.check_invariants()


def test_follows_the_shape_of_what_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_repeated, "MANY", 2**10)
    g = rg.Graph()
    x = g.input(np.arange(1.0, 5.0)[:, None])
    y = rg.flip(rg.broadcast_to(x, (4, 2**10)))[:2, :3].prod()
    gradient = rg.grad(y, x)
    for value in (np.arange(1.0, 5.0)[:, None], np.full((1, 1), 2.0), np.full((4, 1), 2.0)):
        x.set(value)
        wanted = {(4, 1): [0, 0, 3, 3], (1, 1): [6]}[value.shape]
        np.testing.assert_allclose(
            gradient.value.ravel(), y.value * np.array(wanted) / value.ravel(), rtol=1e-12
        )


def test_a_gradient_of_the_many_is_there_where_it_is_asked_for(g: rg.Graph) -> None:
    x = g.param(2.0)
    many = rg.broadcast_to(x, (2**20,))
    y = many[:3].sum()
    y.backward()
    assert x.grad == 3.0
    assert "accumulate" not in [one.label.split("_")[0] for one in g.last_run.ran]
    np.testing.assert_array_equal(np.flatnonzero(rg.grad(y, many).value), [0, 1, 2])
