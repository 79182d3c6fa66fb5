"""An error at any line of the engine leaves the graph as before the act or as after it, and it goes on.

SQLite tests its undo by failing the k-th allocation, for each k. Here the k-th line raises, for some k quickly
and for many in full; and acts are called with every number of frames that is too small for them.
"""

from __future__ import annotations

import importlib
import warnings
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nodes._op import OPS, PRIMITIVES
from tests.interrupts import lines_of, out_of_stack, struck
from tests.laws.acts import (
    ACTS,
    LEAVES,
    STEPS,
    Nodes,
    Seen,
    follows,
    prepared,
    same,
    seen,
)

importlib.import_module("tests.laws.acts_of_models")  # registers its acts, too
# These are long, and struck at fewer lines each.
OF_MODELS = {name for name, act in ACTS.items() if act.__module__.endswith("acts_of_models")}

# How an act may say that an error has come: of a callback of an observer, of a file that is read.
ALLOWED: dict[str, tuple[type[BaseException], ...]] = {
    "observe": (ExceptionGroup,),
    "save_and_load": (rg.LoadError,),
    "twins": (rg.LoadError,),
}
ERRORS = [MemoryError, RecursionError, KeyboardInterrupt]
# A save that is loaded again says of a MemoryError that the file is too large.
pytestmark = pytest.mark.filterwarnings("ignore::reactgrad.ReactgradWarning")


@cache
def ends(name: str) -> list[tuple[Seen, Seen]]:
    """What is seen before an act and after it, each with what follows from it."""
    found: list[tuple[Seen, Seen]] = []
    for done in (False, True):
        g, n, act = prepared(name)
        if done:
            act()
        found.append((seen(n), follows(g, n)))
    return found


def as_leaves_say(name: str, n: Nodes, now: Seen) -> bool:
    """Whether all values are those of a new graph that was given what the leaves hold now."""
    g, m, _ = prepared(name)
    g.set({m[key]: n[key].value for key in LEAVES if key in n})
    return all(same(now[key][0], m[key].value) for key in now if key in m)


def check(name: str, g: rg.Graph, n: Nodes) -> None:
    """Check that an act was made or not, and that the graph goes on."""
    g.check_invariants()
    nodes = [var for key, var in n.items() if key[0] != "_" and "removed" not in repr(var)]
    g.forward(*nodes, retry=True)
    now = seen(n)
    fits = [end for end in ends(name) if same(now, end[0])]
    if not fits:
        assert name in STEPS
        assert as_leaves_say(name, n, now)
        return
    later = follows(g, n)
    assert any(same(later, end[1]) for end in fits)
    g.check_invariants()


def after_errors(name: str, error: type[BaseException], many: int) -> None:
    _, _, act = prepared(name)
    lines = lines_of(act)
    for i in range(min(many, lines)):
        at = 1 + (i * lines + lines // 2) // min(many, lines)
        # In a context of its own: a mode that an error has left on concerns this act alone.
        copy_context().run(after_one, name, error, at)


def after_one(name: str, error: type[BaseException], at: int) -> None:
    g, n, act = prepared(name)
    state, filters = np.geterr(), list(warnings.filters)
    with suppress(*ALLOWED.get(name, ())):
        struck(act, at, error)
    assert (np.geterr(), list(warnings.filters)) == (state, filters)
    check(name, g, n)


def after_little_stack(name: str, step: int) -> None:
    frames, more = 4, True
    while more:
        g, n, act = prepared(name)
        more = out_of_stack(act, frames)
        check(name, g, n)
        frames += step


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in OF_MODELS)) for name in ACTS]
)
def test_an_act_is_made_or_not_however_little_stack_there_is(name: str) -> None:
    after_little_stack(name, 17 if name in OF_MODELS else 9)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_made_or_not_at_many_lines(name: str, error: type[BaseException]) -> None:
    after_errors(name, error, 6 if name in OF_MODELS else 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTS)
def test_an_act_is_made_or_not_at_every_depth(name: str) -> None:
    after_little_stack(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_a_rollback_is_whole_though_an_error_comes_where_its_blocks_end(
    error: type[BaseException],
) -> None:
    """Of the transactions, where one begins to take back; of the gradients that it builds again."""
    at, came = 0, True
    while came:
        at += 1
        g, n, act = prepared("rollback")
        came = struck(act, at, error, of=("transaction", "building"))
        check("rollback", g, n)
    assert at > 40


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_error_where_a_run_is_suspended_is_that_of_the_node_under_way(
    error: type[BaseException],
) -> None:
    """It was noted as that of another node, or of none: the first of the graph, whatever it is."""
    at, came = 0, True
    while came:
        at += 1
        g, n, act = prepared("switch")
        came = struck(act, at, error, of=("suspend",))
        check("switch", g, n)
    assert at > 20


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_a_cutoff_does_not_compare_with_a_value_written_just_before_an_error(
    error: type[BaseException],
) -> None:
    """The second read computes the same value once more; what consumers saw is still the one before."""

    def model(number: float) -> tuple[rg.Var, rg.Var]:
        g = rg.Graph()
        x = g.input(5.0)
        c = rg.clip(x, -1.0, 3.0)
        c.cutoff = "equal"
        y = c * 2.0
        assert y.value == 6.0
        x.set(number)
        return x, y

    _, first = model(0.5)
    lines = lines_of(lambda: first.value)
    for at in range(1, lines + 1):
        _, y = model(0.5)
        with suppress(error):
            struck(lambda y=y: y.value, at, error)
        assert y.value == 1.0, at
        y.graph.check_invariants()


@pytest.mark.parametrize("error", ERRORS)
def test_a_transaction_is_given_back_wherever_its_end_is_cut_short(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the middle of ``Lock.drop``, whose block has ended then for this task and for others."""
    lock = rg.Graph()._lock
    owner, raising = lock.hold(), True
    lines = lines_of(lambda: lock.drop(owner))
    assert lines > 3
    for at in range(1, lines + 1):
        for others in (False, True):
            g = rg.Graph()
            x, w = g.input(2.0), g.param(3.0)
            y = x * w
            slope = rg.grad(y, w)
            assert g.forward(y, slope) is not None
            drop = type(g._lock).drop

            def cut_short(lock: object, owner: object, drop: Any = drop, at: int = at) -> None:
                nonlocal raising
                raising, now = False, raising
                if now:
                    struck(lambda: drop(lock, owner), at, error)
                    raise error
                drop(lock, owner)

            raising = True
            with monkeypatch.context() as patch:
                patch.setattr(type(g._lock), "drop", cut_short)
                with suppress(error), g.transaction():
                    x.set(5.0)
                    w.set(7.0)
                    assert y.value == 35.0
            assert not raising
            if others:
                copy_context().run(g.check_invariants)
            g.check_invariants()
            assert (x.value, w.value, y.value, slope.value) == (2.0, 3.0, 6.0, 2.0), at
            with g.transaction():
                x.set(4.0)
            assert (y.value, slope.value) == (12.0, 4.0)
            assert not g._lock.owners


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_while_ended_blocks_are_dropped_is_mended_by_the_use_after_it(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def left() -> tuple[rg.Graph, rg.Var, rg.Var]:
        """A graph whose transaction was cut short before its block was dropped."""
        g = rg.Graph()
        x = g.input(2.0)
        y = x * 3.0
        assert y.value == 6.0

        def cut_short(lock: object, owner: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(type(g._lock), "drop", cut_short)
            with suppress(error), g.transaction():
                x.set(5.0)
        assert g._lock.owners
        return g, x, y

    g, _, y = left()
    lines = lines_of(lambda: y.value)
    for at in range(1, lines + 1):
        g, x, y = left()
        with suppress(error):
            struck(lambda y=y: y.value, at, error)
        g.check_invariants()
        assert (x.value, y.value) == (2.0, 6.0), at
        assert not g._lock.owners
        with g.transaction():
            x.set(4.0)
        assert y.value == 12.0


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_no_node_stays_after_an_error_while_those_that_nobody_holds_are_released(
    error: type[BaseException],
) -> None:
    """A gradient holds its output; an error between two lines once left it held for ever."""

    def model() -> tuple[rg.Graph, Any]:
        g = rg.Graph()
        x, w = g.input(2.0), g.keep(g.param(3.0))
        g.keep(x)
        assert rg.grad(rg.tanh(x * w), w).value is not None
        return g, x * 2.0

    def release(g: rg.Graph) -> None:
        len(g)

    g, last = model()
    del last
    lines = lines_of(lambda: release(g))
    left = len(g)
    assert lines > 100
    for at in range(1, lines + 1):
        g, last = model()
        del last
        with suppress(error):
            struck(lambda g=g: release(g), at, error)
        g.check_invariants()
        assert len(g) == left, at


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_a_read_of_a_fork_leaves_reads_of_its_origin_alone(
    error: type[BaseException],
) -> None:
    """Reads of the origin gave the fork's values for ever, where the end of following it was cut short."""

    def model() -> tuple[rg.Var, rg.Var, rg.Graph]:
        g = rg.Graph()
        x = g.input(2.0)
        y = x * 10.0
        assert y.value == 20.0
        h = g.fork()
        h[x].set(3.0)
        return x, y, h

    _, y, h = model()
    lines = lines_of(lambda: h[y].value)
    for at in range(1, lines + 1):
        x, y, h = model()

        def one(x: rg.Var = x, y: rg.Var = y, h: rg.Graph = h, at: int = at) -> None:
            with suppress(error):
                struck(lambda: h[y].value, at, error)
            assert (x.value, y.value) == (2.0, 20.0), at
            assert h[y].value == 30.0
            assert (
                not y.graph._followed
            )  # which would keep reads off the fast path, and once kept the fork

        copy_context().run(one)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_op_whose_definition_was_cut_short_can_be_defined_again(
    error: type[BaseException],
) -> None:
    """Its name was taken by then, and by no op that anybody had."""

    def define() -> Any:
        @rg.extend.primitive("test_cut_short", lambda x: x)
        def twice(x: Any, out: Any) -> None:
            np.multiply(x, 2.0, out)

        return twice

    try:
        lines = lines_of(define)
        for at in range(1, lines + 1):
            _forget("test_cut_short")
            with suppress(error):
                struck(define, at, error)
            assert define()(rg.Graph().input([1.0, 2.0])).value.tolist() == [2.0, 4.0]
    finally:
        _forget("test_cut_short")


def _forget(name: str) -> None:
    for table in (OPS, PRIMITIVES):
        table.pop(name, None)


def test_an_op_that_was_refused_can_be_defined_again() -> None:
    def define(numpy: Any) -> Any:
        rule = rg.extend.primitive("test_refused", lambda x: x, numpy=numpy)
        return rule(lambda x, out: np.negative(x, out))

    try:
        with pytest.raises(rg.DTypeError, match=r"np\.sum builds the op"):
            define(np.sum)
        assert define(None)(rg.Graph().input(1.0)).value == -1.0
    finally:
        _forget("test_refused")
