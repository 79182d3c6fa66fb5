"""All or nothing (rule E10), and versions that never go back (rule E7)."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Generator
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.change._rollback import give_back


class Regret(Exception):
    """Raised to take a transaction back."""


def test_reads_inside_see_the_new_values(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)
    y = a + b
    with g.transaction():
        a.set(10.0)
        assert float(y.value) == 12.0
        b.set(20.0)
        assert float(y.value) == 30.0
    assert float(y.value) == 30.0
    assert not y.is_stale


@pytest.mark.parametrize("turns", [0, 5], ids=["cold", "plans hot"])
def test_an_exception_restores_the_leaves_with_new_versions(g: rg.Graph, turns: int) -> None:
    a, b = g.input([1.0, 2.0]), g.input(3.0)
    y = (a * b).sum()
    for i in range(turns):
        b.set(float(i))
        y.value
    b.set(3.0)
    y.value
    before = [v.value_version for v in (a, b, y)]
    with pytest.raises(Regret), g.transaction():
        a.set([5.0, 6.0])
        a.set([7.0, 8.0])
        b.set(9.0)
        assert float(y.value) == 135.0
        raise Regret
    assert a.value.tolist() == [1.0, 2.0]
    assert float(b.value) == 3.0
    after = [v.value_version for v in (a, b, y)]
    assert all(new > old for old, new in zip(before, after, strict=True))
    assert y.is_stale
    assert float(y.value) == 9.0
    g.check_invariants()


def test_what_was_not_changed_stays_clean(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)
    one, two = a + 1.0, b + 1.0
    g.forward(one, two)
    with pytest.raises(Regret), g.transaction():
        a.set(5.0)
        raise Regret
    assert one.is_stale
    assert not two.is_stale
    assert g.forward(one, two).ran == [one]


def test_they_nest_and_the_outer_one_takes_back_the_inner_ones(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(2.0)
    with pytest.raises(Regret), g.transaction():
        a.set(10.0)
        with pytest.raises(KeyError), g.transaction():
            a.set(11.0)
            b.set(12.0)
            raise KeyError
        assert (float(a.value), float(b.value)) == (10.0, 2.0)
        with g.transaction():
            b.set(20.0)
        assert (float(a.value), float(b.value)) == (10.0, 20.0)
        raise Regret
    assert (float(a.value), float(b.value)) == (1.0, 2.0)


def test_values_that_were_handed_out_inside_stay_what_they_are(g: rg.Graph) -> None:
    for size in (3, 50_000):
        a = g.input(np.zeros(size))
        with pytest.raises(Regret), g.transaction():
            a.set(np.ones(size))
            held = a.value
            raise Regret
        assert held[0] == 1.0
        assert a.value[0] == 0.0


def test_an_input_that_had_no_value_has_none_again(g: rg.Graph) -> None:
    x = g.input(shape=(None,))
    y = x.sum()
    with pytest.raises(Regret), g.transaction():
        x.set([1.0, 2.0])
        assert float(y.value) == 3.0
        raise Regret
    assert x.state == "unset"
    with pytest.raises(rg.UnsetError):
        y.value
    g.check_invariants()
    x.set([5.0])
    assert float(y.value) == 5.0
    assert x.value_version > 1


def test_a_new_shape_and_its_gradients_are_taken_back(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0, 3.0])
    y = (x * x).sum()
    gradient = rg.grad(y, x)
    gradient.value
    with pytest.raises(Regret), g.transaction():
        x.set([1.0, 2.0])
        assert gradient.value.tolist() == [2.0, 4.0]
        raise Regret
    assert x.shape == gradient.shape == (3,)
    assert gradient.value.tolist() == [2.0, 4.0, 6.0]
    assert float(y.value) == 14.0


def test_a_python_number_is_that_number_again(g: rg.Graph) -> None:
    x = g.input(2)
    y = rg.lift(lambda v: v * 10)(x)
    with pytest.raises(Regret), g.transaction():
        x.set([1.0, 2.0])
        y.value
        raise Regret
    assert x.value == 2
    assert type(x.value) is int
    assert y.value == 20


def test_replaced_operands_are_taken_back(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(5.0)
    y = a * 2.0
    y.value
    with pytest.raises(Regret), g.transaction():
        y.replace_parent(0, b)
        b.set(6.0)
        assert float(y.value) == 12.0
        raise Regret
    assert y.parents[0] is a
    assert float(b.value) == 5.0
    assert float(y.value) == 2.0
    g.check_invariants()


def test_a_node_that_only_the_old_topology_kept_comes_back(g: rg.Graph) -> None:
    a, c = g.input(1.0), g.input(9.0)
    y = rg.tanh(a * 3.0) + 1.0
    middle = y.parents[0]
    y.value
    with pytest.raises(Regret), g.transaction():
        y.replace_parent(0, c)
        del middle
        assert float(y.value) == 10.0
        raise Regret
    assert float(y.value) == np.tanh(3.0) + 1.0
    g.check_invariants()


def test_mutate_inside_is_taken_back(g: rg.Graph) -> None:
    a = g.input([1.0, 2.0])
    with pytest.raises(Regret), g.transaction():
        with a.mutate() as array:
            array[0] = 7.0
        raise Regret
    assert a.value.tolist() == [1.0, 2.0]


def test_a_transaction_cannot_open_while_a_node_runs(g: rg.Graph) -> None:
    def opens(value: float) -> float:
        with g.transaction():
            return value

    y = rg.lift(opens)(g.input(1.0))
    with pytest.raises(rg.BusyError):
        y.value


def test_other_threads_see_nothing_before_the_end(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(-1.0)
    zero = a + b
    seen: list[float] = []
    started, done = threading.Event(), threading.Event()

    def reader() -> None:
        started.set()
        while not done.is_set():
            seen.append(float(zero.value))

    thread = threading.Thread(target=reader)
    thread.start()
    started.wait()
    for i in range(200):
        try:
            with g.transaction():
                a.set(float(i))
                b.set(-float(i))
                if i % 3 == 0:
                    a.set(99.0)
                    raise Regret
        except Regret:
            pass
    done.set()
    thread.join()
    assert set(seen) == {0.0}


def test_nobody_sees_what_a_failed_transaction_had_set_while_it_is_given_back(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads of clean nodes take no lock: the transaction counts as open until all is given back."""
    x = g.input(1.0)
    y = x * 2.0
    seen: list[float] = []
    reader = threading.Thread(target=lambda: seen.append(y.value), daemon=True)

    def slowly(graph: rg.Graph, noted: Any) -> None:
        reader.start()
        reader.join(0.3)
        give_back(graph, noted)

    monkeypatch.setattr("reactgrad.change._transaction.give_back", slowly)
    with pytest.raises(ZeroDivisionError), g.transaction():
        x.set(3.0)
        assert y.value == 6.0
        raise ZeroDivisionError
    reader.join()
    assert seen == [2.0]


@pytest.mark.parametrize("inner", ["edit", "transaction"])
@pytest.mark.parametrize("outer", ["edit", "transaction"])
def test_of_two_blocks_that_end_out_of_order_neither_is_made(
    g: rg.Graph, outer: str, inner: str
) -> None:
    x, z = g.input(1.0), g.input(5.0)
    y = x * 2.0

    def block(kind: str) -> Generator[None]:
        with getattr(g, kind)():
            yield

    first, second = block(outer), block(inner)
    next(first)
    y.replace_parent(0, z)
    next(second)
    y.replace_parent(0, z)
    with pytest.raises(rg.BlockError, match="out of order") as raised:
        next(first)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert (y.parents[0], y.value) == (x, 2.0)
    y.replace_parent(0, z)  # still inside of the second
    with pytest.raises(rg.BlockError, match="out of order"):
        next(second)
    assert (y.parents[0], y.value) == (x, 2.0)
    y.replace_parent(0, z)
    assert (y.parents[0], y.value) == (z, 10.0)


@pytest.mark.slow
def test_blocks_that_end_in_any_order_leave_the_graph_as_good_as_before(g: rg.Graph) -> None:
    lots = Random(0)
    x, z = g.input(1.0), g.input(5.0)
    y, told, array = x * 2.0, list[float](), g.input(np.zeros(3))
    x.observe(lambda old, new: told.append(new))

    def block() -> Generator[None]:
        with lots.choice((g.edit, g.transaction))():
            yield

    for turn in range(300):
        blocks = list[Generator[None]]()
        for _ in range(lots.randrange(1, 12)):
            if lots.random() < 0.4:
                blocks.append(block())
                next(blocks[-1])
            elif blocks and lots.random() < 0.5:
                ending = blocks.pop(lots.randrange(len(blocks)))
                with pytest.raises((Regret, rg.BlockError, StopIteration)):
                    ending.throw(Regret()) if lots.random() < 0.3 else next(ending)
            else:
                x.set(lots.random())
                array.set(np.full(3, lots.random()))
                y.replace_parent(0, lots.choice((x, z)))
        lots.shuffle(blocks)
        for ending in blocks:
            with pytest.raises((rg.BlockError, StopIteration)):
                next(ending)
        y.replace_parent(0, x)
        told.clear()
        x.set(float(-turn))
        g.stabilize()
        assert (y.parents[0], y.value, told) == (x, -2.0 * turn, [-turn])
        other = threading.Thread(target=x.set, args=(7.0,))
        other.start()
        other.join(10.0)
        assert x.value == 7.0, "the lock is held"
        g.check_invariants()
