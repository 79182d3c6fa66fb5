"""An interrupt at any line of the engine while leaves are set and what follows is read.

Each leaf has its former value or the one that it was given; whatever is read later is computed from what
the leaves hold then; what callers were given before stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from threading import Thread
from types import FrameType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.blocks import _strips
from reactgrad_scheduler.lock import GraphLock
from tests.interrupts import interrupted, interrupted_after

SIZE = 24

Leaves = list[Any]


def model(xs: Leaves) -> list[Any]:
    z = rg.exp(xs[0]) * 2.0 + xs[1]
    clipped = rg.clip(xs[0], -1.0, 1.0)
    clipped.cutoff = "equal"
    return [z, z.sum(), rg.lift(lambda a, b: a + b)(z, xs[2]), clipped + xs[3]]


def expected(values: list[Any]) -> list[Any]:
    """What a graph computes that never held anything else."""
    g = rg.Graph()
    out = model([g.input(value) for value in values])
    return [node.value for node in out]


KINDS: dict[str, tuple[int, Callable[[float], Any], dict[str, Any]]] = {
    "arrays": (5, lambda v: np.full(SIZE, v), {}),
    "0-d": (5, np.float64, {}),
    "numbers": (20, float, {}),
    "many 0-d": (20, np.float64, {}),
    "budget": (5, lambda v: np.full(SIZE, v), {"max_bytes": 4000}),
    "forked": (5, lambda v: np.full(SIZE, v), {}),
}
ACTS: dict[str, Callable[[rg.Graph, Leaves, Leaves, Leaves], object]] = {
    "set": lambda g, xs, new, out: xs[0].set(new[0]),
    "adopt": lambda g, xs, new, out: xs[0].set(new[0], copy=False),
    "group": lambda g, xs, new, out: g.set(dict(zip(xs, new, strict=True))),
    "set and read": lambda g, xs, new, out: (xs[0].set(new[0]), g.forward(*out)),
    "set and read of many": lambda g, xs, new, out: (xs[0].set(new[0]), g.forward(*out, *xs)),
}


@pytest.mark.slow
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_an_interrupt_leaves_former_or_new_values_and_what_follows_from_them(
    kind: str, act: Callable[[rg.Graph, Leaves, Leaves, Leaves], object]
) -> None:
    many, make, options = KINDS[kind]
    at, more = 0, True
    while more:
        at += 1 if at < 40 else 11  # there are many in a read
        g = rg.Graph(**options)
        xs = [g.input(make(float(i))) for i in range(many)]
        out = model(xs)
        fork = g.fork() if kind == "forked" else None
        for turn in range(3):
            g.set({x: make(i + 0.1 * turn) for i, x in enumerate(xs)})
            g.forward(*out)
            xs[0].set(make(0.5 + turn))
            g.forward(*out)
        held = [node.value for node in (*xs, *out)]
        copies = [np.array(value) for value in held]
        new = [make(7.0 + 0.5 * i) for i in range(many)]
        more = interrupted(partial(act, g, xs, new, out), at)
        found = [x.value for x in xs]
        for value, before, after in zip(found, copies, new, strict=False):
            assert np.array_equal(value, before) or np.array_equal(value, after)
        for node, value in zip(out, expected(found), strict=True):
            assert np.array_equal(node.value, value)
        g.check_invariants()
        assert all(map(np.array_equal, held, copies))
        xs[0].set(make(0.25))
        g.set({x: make(0.5 + i) for i, x in enumerate(xs)})
        for node, value in zip(out, expected([x.value for x in xs]), strict=True):
            assert np.array_equal(node.value, value)
        if fork is not None:
            for node, value in zip(
                out, expected([make(float(i)) for i in range(many)]), strict=True
            ):
                assert np.array_equal(fork[node].value, value)
    assert at > 20


@pytest.fixture
def usual_blocks() -> Iterator[None]:
    """Not so many that a run takes long: there are many of them."""
    with _strips.configured(block=32768, threshold=65536, effort=1048576):
        yield


@pytest.mark.parametrize("size", [SIZE, 20_000, 70_000], ids=["copied", "lent", "by blocks"])
@pytest.mark.usefixtures("usual_blocks")
def test_what_an_interrupted_run_left_is_no_value_where_versions_still_match(size: int) -> None:
    """A node that has not run fits its parent's version, which a cutoff may keep: its memory may be gone."""
    at, more = 0, True
    while more:
        at += 3
        g = rg.Graph()
        x = g.input(np.zeros(size))
        y = x * 2.0
        z = y + 1.0
        for turn in range(3):
            x.set(np.full(size, float(turn)))
            g.forward(z)
        held = z.value
        x.set(np.full(size, 6.0))
        more = interrupted(partial(g.forward, z), at)
        y.cutoff = "equal"
        x.set(np.full(size, 2.0))
        assert np.array_equal(z.value, np.full(size, 5.0))
        assert np.array_equal(held, np.full(size, 5.0))
        g.check_invariants()
    assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 1, 2, 5], ids=["first", "checked", "known", "replayed"])
def test_an_interrupted_read_behind_cutoffs_loses_no_change(turns: int) -> None:
    """Who was replaced without a version would be compared with itself, and nobody would hear of it."""
    at, more = 0, True
    while more:
        at += 1 if at < 60 else 3
        g = rg.Graph()
        x, beside = g.input(np.array([1.0, 2.0])), g.input(np.ones(2))
        y = x * 1.0 + beside * 0.0
        y.cutoff = "equal"
        z = y + 1.0
        total = rg.lift(np.sum, cutoff="equal")(z)
        end = rg.lift(lambda v: v * 2.0)(total)
        for turn in range(turns):
            (x if turn % 2 else beside).set(np.full(2, 10.0 + turn))
            g.forward(end, z)
        x.set(np.array([5.0, 6.0]))
        more = interrupted(partial(g.forward, end, z), at)
        for _ in range(2):
            assert (z.value.tolist(), end.value) == ([6.0, 7.0], 26.0), at
            g.check_invariants()
            g.forget_marks()
    assert at > 50


@pytest.mark.slow
@pytest.mark.parametrize("flips", [False, True], ids=["reads the same", "reads another"])
def test_an_interrupt_of_a_function_that_reads_leaves_what_follows_from_the_leaves(
    flips: bool,
) -> None:
    """In a replayed plan, in which what it reads is noted without the tables being told."""
    at, more = 0, True
    while more:
        at += 1 if at < 20 else 3
        g = rg.Graph()
        x, y = g.input(0), g.input(5)
        double = rg.lift(lambda v: 2 * v)(x)
        other = rg.lift(lambda v: -v)(y)

        def read(v: int, y: rg.Var = y, double: rg.Var = double, other: rg.Var = other) -> int:
            return y.value + double.value + y.value if v < 50 else other.value

        reader = rg.lift(read)(x)
        after = rg.lift(lambda v: v + 1)(reader)
        for turn in range(4):
            x.set(turn)
            assert after.value == 2 * turn + 11
        new = 70 if flips else 7
        more = interrupted(lambda x=x, after=after, new=new: (x.set(new), after.value), at)
        assert x.value in (3, new)
        assert after.value == (-4 if x.value == 70 else 2 * x.value + 11)
        assert reader.parents == ([x, other] if x.value == 70 else [x, y, double])
        g.check_invariants()
        for value in (8, 9, 80, 10):
            x.set(value)
            assert after.value == (-4 if value == 80 else 2 * value + 11)
        g.check_invariants()
    assert at > 100


def _fork(g: rg.Graph) -> None:
    g.fork()


def _fork_the_fork(g: rg.Graph) -> None:
    g.fork().fork()


@pytest.mark.slow
@pytest.mark.parametrize("fork", [_fork, _fork_the_fork])
@pytest.mark.parametrize("others", [0, 1, 2], ids=["none yet", "one alive", "one dead"])
def test_an_interrupted_fork_costs_its_origin_nothing(
    fork: Callable[[rg.Graph], None], others: int
) -> None:
    """Also where rows move to a ground of their own, or down into one that the others have left."""
    at, more = 0, True
    while more:
        at += 1 if at < 70 else 29
        g = rg.Graph()
        x, w = g.input(np.full(3, 0.0)), g.param(np.full(3, 2.0))
        nodes = [x]
        for i in range(6):
            nodes.append(nodes[-1] * w + float(i))
        loss = rg.tanh(nodes[-1] * 1e-2).sum()
        wanted = [loss, rg.grad(loss, w), nodes[4]]
        g.forward(*wanted)
        twin = g.fork() if others else None
        former = [node.value.copy() for node in wanted]
        if others == 2:
            twin = None
        x.set(np.full(3, 1.0))  # so that most rows lie in an overlay
        g.forward(*wanted)
        more = interrupted(partial(fork, g), at)
        g.check_invariants()
        for value in (1.0, 3.0, 4.0):
            x.set(np.full(3, value))
            if value == 3.0:
                with g.whatif({x: np.full(3, 9.0)}) as trial:
                    assert trial[loss].value == _loss(9.0)
            assert loss.value == _loss(value)
            assert np.array_equal(wanted[1].value, _fresh_gradient(value))
        if twin is not None:
            for node, before in zip(wanted, former, strict=True):
                assert np.array_equal(twin[node].value, before)
            twin.check_invariants()
        g.check_invariants()
    assert at > 100


def _fresh(value: float) -> tuple[Any, Any]:
    g = rg.Graph()
    w = g.param(np.full(3, 2.0))
    y: Any = g.input(np.full(3, value))
    for i in range(6):
        y = y * w + float(i)
    loss = rg.tanh(y * 1e-2).sum()
    return loss.value, rg.grad(loss, w).value


def _loss(value: float) -> Any:
    return _fresh(value)[0]


def _fresh_gradient(value: float) -> Any:
    return _fresh(value)[1]


def test_an_interrupted_read_of_a_fork_leaves_its_origin_and_numpy_alone() -> None:
    """What tells that a fork is computed, and that NumPy does not warn, ends with the read, however it ends."""
    at, more, errors = 0, True, np.geterr()
    while more:
        at += 1
        g = rg.Graph()
        x = g.input(1)
        y = rg.lift(lambda v, x=x: v + x.value)(x * 1)
        fork = g.fork()
        fork[x].set(100)
        more = interrupted_after(lambda fork=fork, y=y: fork[y].value, at)
        assert np.geterr() == errors
        assert (x.value, y.value, fork[y].value) == (1, 2, 200)
        x.set(5)
        assert (x.value, y.value, fork[y].value) == (5, 10, 200)
    assert at > 50


@pytest.mark.slow
def test_an_interrupted_read_under_a_budget_leaves_what_follows_from_the_leaves() -> None:
    at, more = 0, True
    while more:
        at += 1 if at < 300 else 7
        g = rg.Graph(max_bytes=2000)
        x = g.input(np.zeros(50))
        nodes = [x + 1.0]
        for _ in range(7):
            nodes.append(nodes[-1] + 1.0)
        more = interrupted_after(lambda g=g, nodes=nodes: g.forward(*nodes), at)
        for turn in range(2):
            x.set(np.full(50, float(turn)))
            assert [node.value[0] for node in nodes] == [turn + i + 1.0 for i in range(8)]
        g.check_invariants()
    assert at > 300


def test_a_gate_that_an_interrupt_has_left_half_closed_lets_others_in() -> None:
    """Else another thread would wait for ever for the one that was interrupted, which goes on."""
    g = rg.Graph()
    x = g.input(0)
    double = rg.lift(lambda v: 2 * v)(x)
    reader = rg.lift(lambda v: v + double.value)(x)
    lock = g._scheduler.lock

    def signal(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is GraphLock.close.__code__ and len(lock.gates) == 2:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(signal)
    with pytest.raises(KeyboardInterrupt):
        reader.value
    assert sys.getprofile() is None
    for turn in (1, 2):
        x.set(turn)
        assert reader.value == 3 * turn
    found: list[int] = []
    x.set(3)
    thread = Thread(target=lambda: found.append(reader.value), daemon=True)
    thread.start()
    thread.join(30.0)
    assert found == [9]
