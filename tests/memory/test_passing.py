"""``backward(retain_graph=False)`` lets values go in the course of the run: how much is there at most.

What is computed, what runs and which versions nodes have is as if everything was kept.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.autodiff._grad import retain_between
from reactgrad.backend import device_of_kind
from reactgrad.backend.blocks import _strips
from reactgrad.values._columns import MISSING
from tests.interrupts import interrupted

SIDE = (
    256  # large enough for kernels that need no memory of their own, and for callers to get no copy
)
LARGE = SIDE * SIDE * 8  # bytes of a value
LAYERS = 16


def chain(g: rg.Graph) -> tuple[Any, list[Any], Any]:
    x = g.param(np.linspace(-1.0, 1.0, SIDE * SIDE).reshape(SIDE, SIDE))
    y = x
    for _ in range(LAYERS):
        y = rg.tanh(y)
    return x, [x], y.sum()


def layers(g: rg.Graph) -> tuple[Any, list[Any], Any]:
    rng = np.random.default_rng(0)
    x = g.input(rng.normal(size=(SIDE, SIDE)))
    params = [g.param(rng.normal(size=(SIDE, SIDE)) / SIDE**0.5) for _ in range(LAYERS)]
    y = x
    for w in params:
        y = rg.tanh(rg.linear(y, w, 0.5))
    return x, params, (y * y).sum()


def uneven(g: rg.Graph) -> tuple[Any, list[Any], Any]:
    """Layers of several widths."""
    rng = np.random.default_rng(0)
    widths = [SIDE * (1 + i % 3) for i in range(LAYERS // 2)]
    x = g.input(rng.normal(size=(SIDE, SIDE)))
    params = [
        g.param(rng.normal(size=(m, n)) / m**0.5)
        for m, n in zip([SIDE, *widths], widths, strict=False)
    ]
    y = x
    for w in params:
        y = rg.tanh(y @ w)
    return x, params, (y * y).sum()


def bound(g: rg.Graph, ran: list[Any], kept: set[int]) -> int:
    """Bytes of large values that must be there at once when nodes run in this order.

    A value is there from when it is computed until its last reader has run; views take no memory and
    keep that of what they show.
    """
    host, parents = g._host, g._scheduler.topology.parents
    order = [node._slot for node in ran]

    def root(slot: int) -> int:
        while host.ops[slot].name in ("transpose", "reshape", "broadcast_to"):
            slot = parents[slot][0]
        return slot

    last: dict[int, int] = {}
    for at, slot in enumerate(order):
        last[root(slot)] = at
        for parent in parents[slot]:
            last[root(parent)] = at
    there, most = 0, 0
    for at, slot in enumerate(order):
        if root(slot) == slot:
            there += host.specs[slot].nbytes
        most = max(most, there)
        for one, end in last.items():
            if end == at and one not in kept and not g._scheduler.leaf[one] and one in order:
                there -= host.specs[one].nbytes
    return most


def peaks(build: Callable[..., Any], retain: bool | None, turns: int) -> tuple[list[int], int, int]:
    """Bytes that each of several steps takes at most; what it must; what stays between two of them."""
    g = rg.Graph()
    x, params, loss = build(g)
    rng = np.random.default_rng(1)
    found: list[int] = []
    least = 0
    for _ in range(turns):
        x.set(rng.normal(size=x.shape))
        tracemalloc.start()
        try:
            run = loss.backward(retain_graph=retain)
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        kept = {rg.grad(loss, w)._slot for w in params}
        least = max(least, bound(g, list(run.ran), kept))
        g.zero_grad()
    return found, least, g.stats().spare_bytes


@pytest.mark.slow
@pytest.mark.fused
@pytest.mark.whole
@pytest.mark.parametrize("build", [chain, layers, uneven])
def test_most_memory_is_what_must_be_there(build: Callable[..., Any]) -> None:
    """Up to two values more, and what a kernel uses; without letting go some twice as much."""
    (kept,), least, _ = peaks(build, None, 1)
    found, _, _ = peaks(build, False, 1)
    assert least * 1.6 < kept
    assert found[0] <= least + 3 * LARGE + (1 << 19)


@pytest.mark.slow
@pytest.mark.fused
@pytest.mark.whole
@pytest.mark.parametrize("build", [chain, layers, uneven])
def test_no_step_of_a_loop_takes_more(build: Callable[..., Any]) -> None:
    """But for what it keeps between steps."""
    found, least, spare = peaks(build, False, 6)
    assert max(found[1:]) <= least + spare + 3 * LARGE + (1 << 19)


# --- the same values, versions and runs -----------------------------------------------------------

SMALL = 144  # of 162 KiB: callers get no copies

OPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: rg.tanh(a),
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a @ b,
    lambda a, b: a.T,
    lambda a, b: a[::-1] * 0.5,
    lambda a, b: rg.relu(a - b),
    lambda a, b: rg.softmax(a),
    lambda a, b: a.reshape(-1).reshape(SMALL, SMALL) - b,
    lambda a, b: a.sum(axis=0) * b,
    lambda a, b: rg.checkpoint(lambda x: rg.tanh(rg.sin(x) * 0.5), a),
]
programs = st.lists(
    st.tuples(st.integers(0, len(OPS) - 1), st.integers(0, 30), st.integers(0, 30)),
    min_size=1,
    max_size=14,
)
steps = st.lists(
    st.tuples(
        st.integers(0, 2),  # which leaf is set; 2: none
        st.booleans(),  # whether the loss is read before
        st.sampled_from([False, False, None]),  # retain_graph
        st.integers(0, 30),  # a node whose value is read after
        st.sampled_from([1, 1, 5]),  # how often in a row
    ),
    min_size=1,
    max_size=5,
)


def built(program: list[tuple[int, int, int]]) -> tuple[rg.Graph, list[Any], Any]:
    g = rg.Graph()
    start = np.linspace(0.1, 1.0, SMALL * SMALL).reshape(SMALL, SMALL)
    nodes = [g.param(start), g.param(start[::-1] * 0.5)]
    for op, i, j in program:
        nodes.append(OPS[op](nodes[i % len(nodes)], nodes[j % len(nodes)]))
    return g, nodes, (nodes[-1] * nodes[0] * nodes[1]).sum()


def names(nodes: Any) -> list[str]:
    return [node.name for node in nodes]


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(programs, steps)
def test_letting_go_changes_nothing_else(
    program: list[tuple[int, int, int]], script: list[tuple[int, bool, bool | None, int, int]]
) -> None:
    """Against a graph whose values go after each run; held values stay what they are."""
    mine, other = built(program), built(program)
    held: list[tuple[Any, Any, Any]] = []
    turns = [step for *step, times in script for _ in range(times)]
    for turn, (leaf, reads, retain, looked) in enumerate(turns):
        runs = []
        for g, nodes, loss in (mine, other):
            if leaf < 2:
                nodes[leaf].set(np.full((SMALL, SMALL), 0.1 * turn + 0.3))
            if reads:
                _ = loss.value
            at_the_end = g is other[0] and retain is False
            run = loss.backward(retain_graph=None if at_the_end else retain)
            if at_the_end:
                retain_between(g, loss._programs_dict()[None][1], loss._slot, False)
            runs.append(run)
            g.check_invariants()
        first, second = runs
        assert names(first.ran) == names(second.ran)
        assert sorted(names(first.rebuilt)) == sorted(names(second.rebuilt))
        for one, twin in zip(mine[1], other[1], strict=True):
            assert one.value_version == twin.value_version
        for one, twin in zip(mine[1][:2], other[1][:2], strict=True):
            assert one.grad.tobytes() == twin.grad.tobytes()
        assert mine[2].value == other[2].value
        if turns[turn + 1 : turn + 2] == [turns[turn]]:
            continue
        at = looked % len(mine[1])
        value, same = mine[1][at].value, other[1][at].value
        assert value.tobytes() == same.tobytes()
        # Both are held: what is held needs no rebuilding.
        held = [*held[-3:], (value, same, value.copy())]
        for value, same, copy in held:
            np.testing.assert_array_equal(value, copy)
            np.testing.assert_array_equal(same, copy)


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [0, 5])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_failure_in_the_middle_commits_what_has_run(turns: int, where: str) -> None:
    """What was released on the way is clean, without a value, and comes back at its version."""
    bad = False

    def passed(value: Any) -> Any:
        if bad:
            raise ZeroDivisionError
        return value

    def model(g: rg.Graph) -> tuple[Any, Any, Any, Any]:
        x = g.param(np.full((SMALL, SMALL), 0.5))
        first = rg.tanh(x)
        second = rg.tanh(rg.sin(first))
        y = rg.tanh(rg.tanh(rg.tanh(second)))
        if where == "forward":
            gate = rg.lift(passed, vjp=lambda up, ans, a: up, shape=(), dtype="f8")
            y = y * gate(y.sum())
        return x, first, second, y.sum()

    g, other = rg.Graph(), rg.Graph()
    x, first, second, loss = model(g)
    if where == "backward":
        second.register_hook(lambda up: passed(up))
    for turn in range(turns):
        x.set(np.full((SMALL, SMALL), 0.1 * turn))
        loss.backward(retain_graph=False)
        g.zero_grad()
    x.set(np.full((SMALL, SMALL), 0.7))
    bad = True
    with pytest.raises(ZeroDivisionError):
        loss.backward(retain_graph=False)
    g.check_invariants()
    assert x.grad is None, "a backward that fails changes no .grad"
    assert first in g.last_run.ran
    assert not first.is_stale
    version = first.value_version
    assert g._host.data[first._slot] is MISSING
    np.testing.assert_array_equal(first.value, np.tanh(np.full((SMALL, SMALL), 0.7)))
    assert first in g.last_run.rebuilt
    assert first.value_version == version
    bad = False
    x.touch()
    loss.backward(retain_graph=False)
    v, _, _, same = model(other)
    v.set(np.full((SMALL, SMALL), 0.7))
    same.backward()
    np.testing.assert_array_equal(x.grad, v.grad)
    g.check_invariants()


# --- writing over an operand that goes ------------------------------------------------------------


def products(g: rg.Graph) -> tuple[Any, list[Any], Any]:
    """A chain of products, whose gradients need none of its values but the last."""
    x = g.param(np.full((SMALL, SMALL), 0.5))
    ys = [x]
    for _ in range(8):
        ys.append(ys[-1] * 0.5)
    return x, ys, (ys[-1] * ys[-1]).sum()


def passes(g: rg.Graph, x: Any, loss: Any, turns: int) -> None:
    for turn in range(turns):
        x.set(np.full((SMALL, SMALL), 0.1 * turn))
        g.zero_grad()
        loss.backward(retain_graph=False)


@pytest.mark.whole
@pytest.mark.trusting  # what is bound in scratch belongs to a plan
def test_a_result_lies_where_its_operand_lay_that_goes() -> None:
    """Two arrays are enough for a chain forth and back; the gradient is the caller's."""
    x, _, loss = products(g := rg.Graph())
    passes(g, x, loss, 5)
    assert g.stats().plan_hits
    assert g.stats().spare_bytes <= 2 * SMALL * SMALL * 8


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("threshold", [1000, 1_000_000])
def test_an_interrupt_where_a_result_lies_on_its_operand_leaves_no_wrong_value(
    threshold: int,
) -> None:
    at, more = 0, True
    with _strips.configured(threshold=threshold):
        while more:
            at += 31
            x, ys, loss = products(g := rg.Graph())
            passes(g, x, loss, 4)
            x.set(np.full((SMALL, SMALL), 0.7))
            more = interrupted(lambda loss=loss: loss.backward(retain_graph=False), at)
            g.check_invariants()
            for i, y in enumerate(ys):
                assert (y.value == 0.7 * 0.5**i).all()
            passes(g, x, loss, 2)
            g.zero_grad()
            loss.backward(retain_graph=False)
            np.testing.assert_allclose(x.grad, 0.2 * 0.25**8, rtol=1e-15)
            g.check_invariants()
    assert at > 500


@pytest.mark.slow
def test_an_interrupt_while_values_are_let_go_leaves_them_there_or_gone() -> None:
    at, more = 0, True
    while more:
        at += 1
        x, ys, loss = products(g := rg.Graph())
        loss.backward()
        program = loss._programs_dict()[None][1]
        release = partial(retain_between, g, program, loss._slot, False)
        more = interrupted(release, at)
        g.check_invariants()
        for i, y in enumerate(ys):
            assert (y.value == 0.5 * 0.5**i).all()
        x.set(np.full((SMALL, SMALL), 0.7))
        assert loss.value == pytest.approx(SMALL * SMALL * (0.7 * 0.5**8) ** 2)
        g.check_invariants()
    assert at > 50


@pytest.mark.trusting
def test_values_lie_where_others_lay_that_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the first steps: memory that the system gives anew costs a page fault a page."""
    device = type(device_of_kind("cpu"))
    given: list[int] = []
    empty = device.empty

    def counted(self: Any, *args: Any) -> Any:
        array = empty(self, *args)
        given.append(array.nbytes)
        return array

    monkeypatch.setattr(device, "empty", counted)
    g = rg.Graph()
    rng = np.random.default_rng(0)
    y = x = g.input(np.zeros((200, 200)))
    ws = [g.param(rng.normal(size=(200, 200)) / 14.0) for _ in range(4)]
    for w in ws:
        y = rg.tanh(y @ w)
    loss = (y * y).sum()
    for _ in range(5):
        given.clear()
        g.zero_grad()
        x.set(rng.normal(size=(200, 200)))
        loss.backward(retain_graph=False)
        # A layer's product and its tanh, which the gradient of tanh needs both, and what comes back.
        assert sum(one == 8 * 200 * 200 for one in given) <= 3 * len(ws)
