"""``g.reuse()``: the same op on the same parents is one node, and nobody can tell by its value."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from random import Random
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.build._reuse import ROUNDS


def test_a_loop_neither_grows_nor_builds() -> None:
    g = rg.Graph()
    x = g.input(np.zeros(3))
    w, b = g.param(np.ones(3), name="w"), g.param(1.0)
    sizes: list[int] = []
    built: list[int] = []
    for step in range(6):
        g.zero_grad()
        x.set(np.arange(3.0) + step)
        g.events = True
        with g.reuse():
            loss = (rg.tanh(x * w + b)[1:] ** 2).sum(axis=0)
            loss.name = "loss"
            loss.backward()
        assert g.events is not None
        built.append(sum(event.kind == "new" for event in g.events))
        g.events = False
        sizes.append(len(g))
        h = np.tanh((np.arange(3.0) + step) + 1.0)
        h[0] = 0.0
        assert loss.item() == pytest.approx((h**2).sum())
        expected = 2 * h * (1 - h**2)
        assert b.grad == pytest.approx(expected.sum())
        assert w.grad == pytest.approx(expected * (np.arange(3.0) + step))
        del loss  # its node and gradients stay
    assert built[0] > 0
    assert built[1:] == [0] * 5
    assert len(set(sizes)) == 1
    g.check_invariants()


def test_outside_of_the_block_and_in_other_threads_nodes_are_new() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    with g.reuse():
        y = x + 1.0
        assert (x + 1.0) is y
        others: list[Any] = []
        thread = Thread(target=lambda: others.append(x + 1.0))
        thread.start()
        thread.join()
        with g.reuse():
            assert (x + 1.0) is y
        assert (x + 1.0) is y
    assert others[0] is not y
    assert (x + 1.0) is not y


class Doubled(rg.Function):
    @staticmethod
    def forward(ctx: Any, a: Any, by: float = 2.0) -> Any:
        return a * by

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0


class Tripled(Doubled):
    pass


def test_what_differs_in_anything_is_another_node() -> None:
    g = rg.Graph()
    x = g.input(np.ones((2, 2)))
    w = g.param(np.ones((2, 2)))

    def plain(a: Any = 1.0, b: Any = 2.0, c: Any = None) -> Any:
        return a

    def rule(g: Any, ans: Any, *args: Any) -> Any:
        return (g,)

    lifted = rg.lift(plain)
    builds: list[Callable[[], Any]] = [
        lambda: lifted(x),
        lambda: rg.lift(plain, cutoff="equal")(x),
        lambda: rg.lift(plain, vjp=rule)(x),
        lambda: rg.lift(plain, shape=(2, 2))(x),
        lambda: rg.lift(plain, shape=(2, 2), dtype="float32")(x),
        lambda: rg.lift(np.tanh)(x),
        lambda: lifted(w),
        lambda: lifted(x.detach()),
        lambda: lifted(x, w),
        lambda: lifted(w, x),
        lambda: lifted(a=x),
        lambda: lifted(x, 1),
        lambda: lifted(x, 1.0),
        lambda: lifted(x, True),
        lambda: lifted(x, 0.0),
        lambda: lifted(x, -0.0),
        lambda: lifted(x, "1"),
        lambda: lifted(x, None),
        lambda: lifted(x, np.float64(1.0)),
        lambda: lifted(x, np.tanh),
        lambda: lifted(x, plain),
        lambda: lifted(x, (1, (2.0, "axis"))),
        lambda: lifted(x, (1, (2, "axis"))),
        lambda: lifted(x, c=1.0),
        lambda: Doubled.apply(x),
        lambda: Doubled.apply(x, 3.0),
        lambda: Tripled.apply(x),
        lambda: rg.switch(x[0, 0] > 0.0, x, w),
        lambda: rg.switch(x[0, 0] > 0.0, w, x),
        lambda: x + 1.0,
        lambda: x + 1,
        lambda: x + 2.0,
        lambda: x - 1.0,
        lambda: x + w,
        lambda: w + x,
        lambda: x + w.detach(),
        lambda: x.detach() + w,
        lambda: x.sum(axis=0),
        lambda: x.sum(axis=1),
        lambda: x.sum(axis=0, keepdims=True),
        lambda: x[0],
        lambda: x[0:1],
        lambda: x[..., None],
    ]
    with g.reuse():
        first = [build() for build in builds]
        with rg.no_grad():
            closed = [build() for build in builds]
            assert all(a is b for a, b in zip(closed, [f() for f in builds], strict=True))
        again = [build() for build in builds]
        assert all(a is b for a, b in zip(first, again, strict=True))
        assert len({id(one) for one in first}) == len(builds)
        # Where no gradient passes anyway, three of them are the same sum, and two the same call.
        assert len({id(one) for one in closed}) == len(builds) - 3
        assert {id(one) for one in first}.isdisjoint(map(id, closed))
        assert not any(one.requires_grad for one in closed)
        for new in (
            lambda: g.input(1.0),
            lambda: g.const(1.0),
            lambda: lifted(),
            lambda: lifted(x, [1.0]),
            lambda: lifted(x, np.ones(1)),
            lambda: x.detach_node(),
            lambda: x + np.ones((2, 2)),
            lambda: x.snapshot(),
            lambda: x[[0, 1]],
        ):
            assert new() is not new()
    g.check_invariants()


@pytest.mark.slow
def test_a_function_runs_once_for_all_steps_in_which_nothing_changes() -> None:
    g = rg.Graph()
    x, w = g.input(2.0), g.param(3.0)
    runs: list[float] = []

    def slow(a: float) -> float:
        runs.append(float(a))
        return a * 2.0

    def rule(g: Any, ans: Any, a: Any) -> Any:
        return (g * 2.0,)

    both = rg.lift(divmod, outputs=2, cutoff="equal")
    sizes: list[int] = []
    for value in (2.0, 2.0, 5.0, 5.0, 5.0):
        if x.value != value:
            x.set(value)
        g.zero_grad()
        with g.reuse():
            doubled = rg.lift(slow, vjp=rule)(x)
            quotient, rest = both(doubled, 3.0)
            product = doubled * w + Doubled.apply(w) + rg.switch(x > 3.0, w, x) + quotient + rest
            product.backward()
        assert (quotient.value, rest.value) == divmod(value * 2.0, 3.0)
        assert w.grad == value * 2.0 + 2.0 + (value > 3.0)
        gc.collect()  # rules of functions leave cycles
        sizes.append(len(g))
    assert runs == [2.0, 5.0]
    assert sizes[1:] == sizes[1:2] * 4
    assert sizes[1] <= sizes[0], "the graph does not grow"
    g.check_invariants()


def test_an_output_to_which_something_was_added_is_not_given_again() -> None:
    g = rg.Graph()
    x = g.input(7)
    both = rg.lift(divmod, outputs=2, cutoff="equal")
    with g.reuse():
        first = both(x, 2)
        assert both(x, 2) == first
        assert rg.lift(divmod, outputs=2)(x, 2)[0] is not first[0], "another cutoff"
        first[1].cutoff = None
        second = both(x, 2)
        assert second[0] is not first[0]
        second[1].pin(5)
        assert both(x, 2)[1] is not second[1]
    assert (second[1].value, both(x, 2)[1].value) == (5, 1)


ADDED: dict[str, Callable[[Any], Any]] = {
    "hook": lambda y: y.register_hook(lambda g: g * 10.0),
    "cutoff": lambda y: setattr(y, "cutoff", "equal"),
    "pin": lambda y: y.pin(7.0),
    "retain_grad": lambda y: y.retain_grad(),
    "keep": lambda y: y.graph.keep(y),
    "edit": lambda y: y.replace_parent(0, y.graph.input(50.0)),
    "remove": lambda y: y.graph.remove(y),
}


@pytest.mark.parametrize("added", ADDED)
def test_a_node_to_which_something_was_added_is_not_given_again(added: str) -> None:
    g = rg.Graph()
    x = g.param(2.0)
    with g.reuse():
        y = x * 3.0
        assert (x * 3.0) is y
        ADDED[added](y)
        z = x * 3.0
        assert z is not y
        assert (x * 3.0) is z
        assert z.item() == 6.0
        z.backward()
        assert x.grad == 3.0
    g.check_invariants()


def test_nodes_go_when_the_last_rounds_did_not_use_them() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    with g.reuse():
        x + 1.0
    size = len(g)
    for _ in range(3 * ROUNDS):  # two loops that alternate
        with g.reuse():
            x + 1.0
        with g.reuse():
            x * 5.0
    assert len(g) == size + 2
    for _ in range(ROUNDS):
        with g.reuse():
            pass
    assert list(g) == [x]


def test_rolled_back_edits_give_the_node_again() -> None:
    g = rg.Graph()
    x, other = g.input(1.0), g.input(9.0)
    with g.reuse():
        y = x + 1.0
        with pytest.raises(ZeroDivisionError), g.transaction():
            y.replace_parent(0, other)
            assert (x + 1.0).item() == 2.0
            raise ZeroDivisionError
        assert y.item() == 2.0
        assert (x + 1.0).item() == 2.0


def test_an_op_that_cannot_be_built_says_so_every_time() -> None:
    g = rg.Graph()
    x, y = g.input(np.ones(2)), g.input(np.ones(3))
    with g.reuse():
        for _ in range(2):
            with pytest.raises(rg.ShapeError):
                x + y


def test_a_fork_reuses_by_itself() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    with g.reuse():
        y = x + 1.0
        h = g.fork()
        assert (h[x] + 1.0) is not h[y]
        with h.reuse():
            z = h[x] + 1.0
            assert z.graph is h
            assert (h[x] + 1.0) is z
        h[x].set(5.0)
        assert (z.item(), y.item()) == (6.0, 2.0)


@pytest.mark.parametrize("seed", range(8))
def test_a_random_loop_gives_what_it_gives_without(seed: int) -> None:
    """The same program in a graph with the block and in one without, edits and all."""
    outcomes: list[list[Any]] = []
    for block in (True, False):
        pick = Random(seed)
        g = rg.Graph()
        params = [g.param(0.1 * i - 0.3) for i in range(5)]
        seen: list[Any] = []
        for step in range(12):
            g.zero_grad()
            g.set({p: pick.random() for p in params[: 1 + step % 5]})
            model = Random(seed * 100 + pick.randrange(3))  # one of three models

            def build(model: Random = model, params: list[Any] = params) -> list[Any]:
                nodes = list(params)
                for _ in range(15):
                    a, b = model.choice(nodes), model.choice(nodes)
                    a = a.detach() if model.random() < 0.1 else a
                    nodes.append(
                        model.choice(
                            [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: rg.tanh(a)]
                        )(a, b)
                    )
                return nodes

            if block:
                with g.reuse():
                    nodes = build()
                    loss = nodes[-1] + nodes[-2] * 0.5
            else:
                nodes = build()
                loss = nodes[-1] + nodes[-2] * 0.5
            if loss.requires_grad:
                loss.backward()
            seen.append((loss.item(), [p.grad for p in params]))
            if pick.random() < 0.3:  # of a node that the next steps would use
                nodes[6].replace_parent(0, params[pick.randrange(5)])
            g.check_invariants()
        outcomes.append(seen)
    with_block, without = outcomes
    for (a, gradients), (b, others) in zip(with_block, without, strict=True):
        assert a == pytest.approx(b)
        assert [g is None for g in gradients] == [g is None for g in others]
        for one, other in zip(gradients, others, strict=True):
            assert one is None or one == pytest.approx(other)


# --- what only reuse keeps is nobody's -----------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """Functions that say they are equal."""

    factor: object

    def __call__(self, number: Any) -> Any:
        return number * self.factor


def test_functions_and_arguments_that_are_equal_are_not_the_same() -> None:
    g = rg.Graph()
    x = g.input(3)
    stop, day = rg.lift(lambda _, numbers: numbers.stop), rg.lift(lambda a, date: str(date + a))
    days = [np.datetime64("2020-01-02", unit) for unit in "WD"]
    with g.reuse():
        scaled = [rg.lift(Scale(k))(x).value for k in (1, 1.0, True, 0.0, -0.0)]
        assert list(map(repr, scaled)) == ["3", "3.0", "3", "0.0", "-0.0"]
        assert [stop(x, range(0, end, 2)).value for end in (3, 4)] == [3, 4]
        assert [day(x, date).value for date in days] == [str(date + 3) for date in days]
        scale = rg.lift(Scale(2))
        assert scale(x) is scale(x)
        assert stop(x, range(3)) is stop(x, range(3))
        assert day(x, days[0]) is day(x, np.datetime64(days[0]))
        method = Scale(2).__call__
        again = method.__self__.__call__  # another object for the same
        assert rg.lift(method)(x) is rg.lift(again)(x)
        assert rg.lift(method)(x) is not rg.lift(Scale(2).__call__)(x)


def test_a_name_goes_on_to_who_takes_the_place() -> None:
    g = rg.Graph()
    x, w = g.input([1.0, 2.0]), g.param([3.0, 4.0])
    for step in range(4):
        with g.reuse():
            loss = (x * w if step % 2 else x + w).sum()
            loss.name = "loss"
            loss.backward()
        assert g["loss"] is loss
    with g.reuse():
        other = (x + w).sum()
        with pytest.raises(rg.GraphError, match="is taken"):
            other.name = "loss"  # which somebody holds
    assert g["loss"] is loss
    g.check_invariants()


def test_an_inserted_node_is_one_of_its_own() -> None:
    g = rg.Graph()
    x = g.input(0.5)
    with g.reuse():
        y = rg.tanh(x)
        h = g.insert(x, y, rg.tanh)
        assert y.parents == (h,)
        assert h.parents == (x,)
        assert (x + 1.0) is (x + 1.0)  # the block goes on
    assert y.value == np.tanh(np.tanh(0.5))


def test_an_open_block_keeps_what_it_has_built() -> None:
    g = rg.Graph()
    x = g.input(0.5)
    with g.reuse():
        y = x + 1.0
        for _ in range(2 * ROUNDS):
            with g.reuse():
                pass
        assert (x + 1.0) is y


@pytest.mark.slow
def test_subgraphs_in_a_block_are_built_once() -> None:
    sizes: list[int] = []
    for blocks in (False, True):
        g = rg.Graph()
        w = g.param([1.0, 2.0])
        model = rg.subgraph(lambda a, w=w: rg.tanh(a * w).sum())
        with g, g.reuse() if blocks else nullcontext():
            for step in range(12):
                loss = model(np.array([step, 1.0]))
                loss.backward()
        gc.collect()
        sizes.append(len(g))
    assert sizes[0] == sizes[1]


def test_what_nobody_holds_refuses_no_shape_and_no_edit() -> None:
    losses: list[list[float]] = []
    for blocks in (False, True):
        g = rg.Graph()
        x, t = g.input(np.ones((3, 3))), g.input(np.ones(3))
        w = g.param(np.ones(3))
        losses.append([])
        for length in (3, 2, 2, 5, 3):
            x.set(np.ones((length, 3)))
            t.set(np.ones(length))
            with g.reuse() if blocks else nullcontext():
                loss = ((x @ w - t) ** 2).sum()
                loss.backward()
            losses[-1].append(loss.item())
            del loss
        with g.reuse() if blocks else nullcontext():
            y = x + 1.0
            rg.tanh(y)
            g.remove(y)
            z = x @ w - t
            with pytest.raises(rg.ShapeError):
                t.set(np.ones(7))  # which somebody holds
            assert z.shape == (3,)
        g.check_invariants()
    assert losses[0] == losses[1] == [12.0, 8.0, 8.0, 20.0, 12.0]


@pytest.mark.parametrize("held", [False, True], ids=["gradient gone", "gradient held"])
def test_a_number_that_has_or_had_a_gradient_is_a_float(held: bool) -> None:
    g = rg.Graph()
    k = g.input(0.5)
    y = k * k
    gradients = [rg.grad(y, k)]
    if not held:
        del y, gradients
        gc.collect()
    for graph in (g, g.fork()):
        graph[k].set(3)
        square = graph[k] * graph[k]
        assert square.value == 9.0
        assert square.dtype == np.float64
        assert rg.grad(square, graph[k]).value == 6.0


def test_a_node_that_had_a_cutoff_is_not_given_again() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    with g.reuse():
        y = x * 3.0
        assert y.value == 3.0
        y.cutoff = rg.tolerance(0.5, 0.5)
        x.set(1.01)
        assert y.value == 3.0
        y.cutoff = None
        assert (x * 3.0).value == 1.01 * 3.0


def test_outputs_that_were_removed_come_back_with_their_cutoff() -> None:
    g = rg.Graph()
    x = g.input(7)
    divided = rg.lift(divmod, outputs=2, cutoff="equal")
    with g.reuse():
        g.remove(divided(x, 2)[0])
        quotient, rest = divided(x, 2)
    assert quotient.cutoff is not None
    assert rest.cutoff is not None


def test_an_output_that_an_open_transaction_has_removed_is_made_again() -> None:
    divided = rg.lift(divmod, outputs=2)
    g = rg.Graph()
    x = g.input(7.0)
    with g.reuse():
        quotient, rest = divided(x, 2)
    with pytest.raises(KeyError), g.transaction():
        g.remove(rest)
        with g.reuse():
            again = divided(x, 2)
        assert [one.value for one in again] == [3.0, 1.0]
        raise KeyError
    assert [one.value for one in (quotient, rest, *again)] == [3.0, 1.0, 3.0, 1.0]


def test_outputs_of_a_function_that_was_given_a_cutoff_are_not_given_again() -> None:
    divided = rg.lift(divmod, outputs=2)
    g = rg.Graph()
    x = g.input(7.0)
    with g.reuse():
        quotient, _ = divided(x, 2)
    g.forward(quotient)
    quotient.parents[0].cutoff = lambda old, new: True
    x.set(9.0)
    with g.reuse():
        assert [one.value for one in divided(x, 2)] == [4.0, 1.0]
    assert quotient.value == 3.0


def test_a_node_with_other_attributes_is_not_given_for_its_former_ones() -> None:
    copysign = rg.extend.primitive("reuse_sign", lambda x, k: x, elementwise=True)(_copysign)
    g = rg.Graph()
    x = g.input([1.0, 2.0])
    with g.reuse():
        y = copysign(x, k=0.0)
        assert copysign(x, k=0.0) is y
        y.rewire(x, k=-0.0)
        assert copysign(x, k=0.0).value.tolist() == [1.0, 2.0]
        assert y.value.tolist() == [-1.0, -2.0]


def _copysign(x: Any, out: Any, k: float = 0.0) -> None:
    np.copysign(x, k, out)


def test_one_block_in_two_threads_and_in_a_task_that_outlives_it() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    block, entered, left = g.reuse(), Event(), Event()
    same: list[bool] = []

    def other() -> None:
        with block:
            entered.set()
            assert left.wait(60)
            same.append((x + 1.0) is (x + 1.0))

    thread = Thread(target=other)
    with block:
        thread.start()
        assert entered.wait(60)
        task = copy_context()  # as a task has it
    left.set()
    thread.join()
    assert same == [True]
    assert g._reuse is not None
    assert g._reuse.blocks == []
    double = rg.lift(lambda a: a * 2)
    assert task.run(lambda: double(x) is double(x)) is False


def test_blocks_of_two_graphs_may_end_in_any_order() -> None:
    g, h = rg.Graph(), rg.Graph()
    x, y = g.input(1.0), h.input(1.0)
    first, second = g.reuse(), h.reuse()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (x + 1.0) is not (x + 1.0)
    assert (y + 1.0) is (y + 1.0)
    second.__exit__(None, None, None)
    assert (y + 1.0) is not (y + 1.0)


def test_a_block_that_is_left_in_another_thread_says_so_and_stays_open() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    block = g.reuse()
    block.__enter__()
    errors: list[Exception] = []

    def leave() -> None:
        try:
            block.__exit__(None, None, None)
        except Exception as error:
            errors.append(error)

    thread = Thread(target=leave)
    thread.start()
    thread.join()
    (error,) = errors
    assert isinstance(error, rg.BlockError)
    assert "another thread" in str(error)
    y = x + 1.0
    assert x + 1.0 is y
    block.__exit__(None, None, None)
    assert x + 1.0 is not y
