"""Values computed in part have the bits of a full run, and all else is as if the leaves had been set as a whole.

Two graphs of one random program: in one, leaves are set in part; in the other, as a whole, so that no record of rows
is ever there. After every action both have the same versions and states, and every read the same values and ``ran``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
import reactgrad.backend._device as device
from reactgrad_scheduler import ranges

DTYPES = ["f8", "f4", "f2", "i8"]


def unary(x: Any, k: int) -> Any:
    functions: list[Callable[[Any], Any]] = [
        rg.exp,
        rg.tanh,
        rg.norm_cdf,
        lambda x: x[:, ::2],
        lambda x: x[2:],
        lambda x: x.reshape(x.shape[0], x.shape[1], 1).sum(axis=-1),
        lambda x: x.sum(axis=1, keepdims=True),
        lambda x: x.mean(axis=-1)[:, None],
        lambda x: x.max(axis=1, keepdims=True) * x,
        lambda x: rg.softmax(x, axis=1),
        lambda x: rg.layer_norm(x, x.shape[-1]),
        lambda x: x.sum(axis=0, keepdims=True) + x,
        lambda x: x - x.sum(),
        lambda x: x - x.mean(),
        lambda x: x.astype("f4"),
        lambda x: x.T.sum(axis=0)[:, None] + x,
        lambda x: rg.where(x > 0.5, x, -x),
        lambda x: rg.cumsum(x, axis=0),
        lambda x: x @ rg.ones((x.shape[1], 3)) if x.dtype.kind == "f" else x * 2,
        rg.relu,
        rg.sigmoid,
        lambda x: x[::-1],
        lambda x: rg.clip(x, -0.5, 0.5),
        lambda x: rg.broadcast_to(x.sum(axis=1, keepdims=True), x.shape),
    ]
    return functions[k % len(functions)](x)


def binary(x: Any, y: Any, k: int) -> Any:
    return [rg.add, rg.multiply, rg.subtract, rg.maximum, lambda x, y: x / (1.0 + y * y)][k % 5](
        x, y
    )


def matches(x: Any, y: Any) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1]))


class Twin:
    """One of the two graphs."""

    def __init__(self, numbers: list[int], rows: int, columns: int, dtype: str) -> None:
        self.graph = g = rg.Graph()
        rng = np.random.default_rng(rows * 7 + columns)

        def leaf(*shape: int, kind: str = dtype) -> Any:
            values = rng.normal(size=shape) * 2
            return (g.param if kind[0] == "f" else g.input)(values.astype(kind))

        with g:
            self.leaves = [leaf(rows, columns), leaf(rows, 1), leaf(columns), leaf(rows, columns)]
            nodes = list(self.leaves)
            for number in numbers:
                kind, number = number % 3, number // 3
                x = nodes[number % len(nodes)]
                number //= len(nodes)
                if kind and x.ndim == 2:
                    nodes.append(unary(x, number))
                    continue
                others = [one for one in nodes if matches(x, one)]
                y = others[number % len(others)]
                nodes.append(binary(x, y, number // len(others)))
            last = nodes[-1] if nodes[-1].dtype.kind == "f" else nodes[-1] * 0.1
            params = [one for one in self.leaves if one.dtype.kind == "f"]
            nodes.append(last.sum())
            if params:
                nodes += [
                    one for one in rg.grad(nodes[-1], params, allow_unused=True) if one is not None
                ]
            self.nodes = nodes


def index_of(number: int, shape: tuple[int, ...]) -> Any:
    kind, number = number % 10, number // 10
    length = shape[0]
    rng = np.random.default_rng(number % 1000)
    at = int(rng.integers(-length, length))
    if kind == 0:
        return at
    if kind == 1:
        return slice(at, at + 2)
    if kind == 2:
        return rng.integers(-length, length, 3)
    if kind == 3:
        return rng.random(length) < 0.05
    if kind == 4:
        return [] if number % 2 else slice(3, 3)
    if kind == 5 and len(shape) > 1:
        return at, slice(0, 1)
    if kind == 6:
        return rng.random(shape) < 0.02
    if kind == 7:
        return slice(at, None, -7)
    if kind == 8 and len(shape) > 1:
        return [at, at], 0
    return np.int32(at)


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


class Pair:
    def __init__(self, numbers: list[int], rows: int, columns: int, dtype: str) -> None:
        self.parts, self.whole = (Twin(numbers, rows, columns, dtype) for _ in range(2))
        self.held: list[tuple[Any, Any]] = []

    def read(self, number: int) -> None:
        slots = [number % len(self.parts.nodes)]
        if number % 4 == 0:
            slots = list(range(len(self.parts.nodes)))
        runs = [
            twin.graph.forward(*[twin.nodes[i] for i in slots]) for twin in (self.parts, self.whole)
        ]
        assert [one.label for one in runs[0].ran] == [one.label for one in runs[1].ran]
        for node, rows in runs[0].rows.items():
            assert node in runs[0].ran
            assert ranges.well_formed(rows)
        for i in slots:
            values = self.parts.nodes[i].value, self.whole.nodes[i].value
            assert same(*values), (self.parts.nodes[i], runs[0].rows)
            if number % 5 == 0:
                self.held.append((values[0], np.array(values[1])))

    def set(self, number: int) -> None:
        which, number = number % 4, number // 4
        x, other = self.parts.leaves[which], self.whole.leaves[which]
        index = index_of(number, x.shape)
        part = np.array(x.value[index])
        values = (np.random.default_rng(number % 999).normal(size=part.shape) * 3).astype(x.dtype)
        if number % 7 == 0 and values.size and x.dtype.kind == "f":
            values = values.reshape(-1)[0].astype("f4")
        new = np.array(other.value)
        new[index] = values
        if number % 11 == 0:
            x.set(new)
        elif number % 13 == 0:
            with x.mutate(rows=index) as copy:
                copy[...] = values
        else:
            x.set_at(index, values)
        other.set(new)

    def play(self, number: int) -> None:
        kind, number = number % 12, number // 12
        if kind < 5:
            self.set(number)
        elif kind < 9:
            self.read(number)
        elif kind == 9:
            for twin in (self.parts, self.whole):
                _ = twin.nodes[number % len(twin.nodes)].is_stale
        elif kind == 10:
            for twin in (self.parts, self.whole):
                with twin.graph.fork() as fork:
                    _ = fork[twin.nodes[-1]].value
        else:
            for twin in (self.parts, self.whole):
                try:
                    with twin.graph.transaction():
                        twin.leaves[0].set_at(number % 5, 1)
                        if number % 2:
                            _ = twin.nodes[-1].value
                        if number % 3:
                            raise KeyError
                except KeyError:
                    pass
        self.parts.graph.check_invariants()
        for a, b in zip(self.parts.nodes, self.whole.nodes, strict=True):
            assert (a.value_version, a.state) == (b.value_version, b.state)
        for held, then in self.held:
            assert same(held, then)


CODES = st.integers(0, (1 << 60) - 1)


@pytest.mark.parametrize("limit", [0, None], ids=["views", "copies"])
@pytest.mark.parametrize("dtype", DTYPES)
@given(
    numbers=st.lists(CODES, min_size=1, max_size=12),
    rows=st.integers(20, 60),
    columns=st.integers(1, 9),
    actions=st.lists(CODES, min_size=4, max_size=25),
)
def test_rows_of_random_programs(
    dtype: str, limit: int | None, numbers: list[int], rows: int, columns: int, actions: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if limit is not None:  # all values are handed out as views, so buffers are lent
            patch.setattr(device, "COPY_LIMIT", limit)
        pair = Pair(numbers, rows, columns, dtype)
        pair.read(0)
        for number in actions:
            pair.play(number)
        pair.read(0)


@pytest.mark.trusting
@pytest.mark.parametrize("how", ["touch", "edit"])
def test_what_must_run_again_is_computed_as_a_whole(how: str) -> None:
    g = rg.Graph()
    x = g.input(np.zeros((100, 4)))
    y = rg.tanh(x)
    z = y * 2.0
    g.forward(z)
    for row in range(3):
        x.set_at(row, 1.0)
        assert g.forward(z).rows[y] == ((row, row + 1),)
    if how == "touch":
        y.touch()
    else:
        y.replace_parent(0, x)
    x.set_at(9, 1.0)
    run = g.forward(z)
    assert [node.name for node in run.ran] == [y.name, z.name]
    assert len(run.rows) == 0
    x.set_at(10, 1.0)
    assert g.forward(z).rows[y] == ((10, 11),)
