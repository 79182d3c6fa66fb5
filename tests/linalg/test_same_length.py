"""Results that lie side by side in one array follow operands of other shapes, also where its length stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Shapes = tuple[tuple[int, ...], ...]


def _tape(layer: Any) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        found = (
            layer(*operands)
            if layer is not rg.lstm
            else layer(operands[0], operands[1:3], *operands[3:])
        )
        return found[0], *(found[1] if isinstance(found[1], tuple) else found[1:])

    return call


def _layer(gates: int, states: int, steps: int, rows: int) -> Shapes:
    weights = (gates * 2, 3), (gates * 2, 2), (gates * 2,), (gates * 2,)
    return (steps, rows, 3), *[(rows, 2)] * states, *weights


# In each line with one matrix the packed array has, where that is possible, one length for both shapes.
TURNED: list[tuple[str, Callable[..., Any], Shapes, Shapes]] = [
    ("svd", lambda x: rg.linalg.svd(x, full_matrices=False), ((4, 3),), ((3, 4),)),
    ("full svd", rg.linalg.svd, ((4, 2),), ((2, 4),)),
    ("svd of stacks", lambda x: rg.linalg.svd(x, False), ((2, 5, 2),), ((2, 2, 5),)),
    ("qr", rg.linalg.qr, ((4, 3),), ((3, 4),)),
    ("lu", rg.linalg.lu, ((4, 3),), ((3, 4),)),
    ("eigh", lambda x: rg.linalg.eigh(x + x.mT), ((2, 3, 3),), ((3, 3, 3),)),
    ("slogdet", rg.linalg.slogdet, ((2, 3, 3),), ((3, 2, 2),)),
    ("lstsq", lambda a, b: rg.linalg.lstsq(a, b), ((4, 3), (4, 4)), ((3, 4), (3, 3))),
    ("layer_norm", rg.layer_norm, ((4, 3),), ((2, 7),)),
    ("layer_norm of all", lambda x: rg.layer_norm(x, axis=(0, 1)), ((4, 3),), ((2, 6),)),
    ("rnn", _tape(rg.rnn), _layer(1, 1, 4, 3), _layer(1, 1, 3, 4)),
    ("lstm", _tape(rg.lstm), _layer(4, 2, 4, 3), _layer(4, 2, 3, 4)),
    ("gru", _tape(rg.gru), _layer(3, 1, 4, 3), _layer(3, 1, 3, 4)),
]


def _operands(shapes: Shapes, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


def _build(call: Callable[..., Any], leaves: list[Any]) -> list[Any]:
    found = call(*leaves)
    results = list(found) if isinstance(found, tuple) else [found]
    floats = [one for one in results if one.dtype.kind == "f"]
    total = sum((one * one).sum() * (i + 1.0) for i, one in enumerate(floats))
    slopes = rg.grad(total, leaves, allow_unused=True)
    return results + [one for one in slopes if one is not None]


def _fresh(call: Callable[..., Any], operands: list[np.ndarray]) -> list[np.ndarray]:
    g = rg.Graph()
    return [one.value for one in _build(call, [g.input(one) for one in operands])]


def _agree(nodes: list[Any], wanted: list[np.ndarray]) -> None:
    for one, other in zip(nodes, wanted, strict=True):
        np.testing.assert_allclose(one.value, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "one", "other"), [i[1:] for i in TURNED], ids=[i[0] for i in TURNED]
)
def test_parts_of_a_packed_array_follow_the_shapes(
    call: Callable[..., Any], one: Shapes, other: Shapes
) -> None:
    g = rg.Graph()
    first, second = _operands(one, 1), _operands(other, 2)
    leaves = [g.input(array) for array in first]
    nodes = _build(call, leaves)
    _agree(nodes, _fresh(call, first))
    for operands in (second, first, second, _operands(other, 3), _operands(one, 4)):
        g.set(dict(zip(leaves, operands, strict=True)))
        _agree(nodes, _fresh(call, operands))
        g.check_invariants()


def test_the_part_alone_whose_own_shape_stays() -> None:
    g = rg.Graph()
    x = g.input(_operands(((4, 3),), 1)[0])
    s = rg.linalg.svd(x, full_matrices=False)[1]
    doubled = s * 2.0
    assert doubled.value.shape == s.value.shape
    for shape, seed in (((3, 4), 2), ((4, 3), 3), ((3, 5), 4), ((3, 4), 5)):
        (array,) = _operands((shape,), seed)
        x.set(array)
        wanted = np.linalg.svd(array)[1]
        np.testing.assert_allclose(doubled.value, wanted * 2.0, rtol=1e-12)
        np.testing.assert_allclose(s.value, wanted, rtol=1e-12)


def test_a_fork_and_its_origin_have_other_shapes() -> None:
    first, second = _operands(((4, 3), (3, 4)), 1)
    g = rg.Graph()
    x = g.input(first, name="x")
    s = rg.linalg.svd(x, full_matrices=False)[1]
    s.name = "s"
    kept = s.value
    twin = g.fork()
    twin["x"].set(second)
    np.testing.assert_allclose(twin["s"].value, np.linalg.svd(second)[1], rtol=1e-12)
    assert s.value is kept
    x.set(second)
    np.testing.assert_array_equal(s.value, twin["s"].value)
    twin["x"].set(first)
    np.testing.assert_array_equal(twin["s"].value, kept)


def test_a_refused_set_leaves_the_part_where_it_was() -> None:
    first, second = _operands(((4, 3), (3, 4)), 1)
    g = rg.Graph()
    x = g.input(first)
    s = rg.linalg.svd(x, full_matrices=False)[1]
    y = x @ np.ones(3)
    kept, _ = s.value, y.value
    with pytest.raises(rg.ShapeError):
        x.set(second)
    assert s.value is kept
    x.set(2.0 * first)
    np.testing.assert_allclose(s.value, 2.0 * kept, rtol=1e-12)


def test_under_a_limit_of_memory() -> None:
    first, second = _operands(((60, 30), (30, 60)), 1)
    g = rg.Graph(max_bytes=60_000)
    x = g.input(first)
    s = rg.linalg.svd(x, full_matrices=False)[1]
    for array in (first, second, first, second):
        x.set(array)
        np.testing.assert_allclose(s.value, np.linalg.svd(array)[1], rtol=1e-10)
