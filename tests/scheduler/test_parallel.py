"""Independent nodes run in several threads: nothing but the time tells."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.core._handles import release_values
from reactgrad_scheduler.executors import costs, crew, threads
from tests.autodiff.test_repeated_runs import layers
from tests.plans import keeps_plans
from tests.scheduler.crowd import pair, plus, within_time

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


# --- as one after the other -------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """What one node does: `kind` decides, by what it is given, what it reads and raises."""

    kind: str
    parents: tuple[int, ...]
    reads: tuple[int, ...]
    modulus: int
    cutoff: bool
    nap: int
    begins: int  # at which of its calls it begins to fail or read


LATE = 3


def recipes(draw: Callable[..., Any], count: int) -> list[Recipe]:
    """Nodes of earlier ones that read earlier ones; and late ones, which all may read and none is of."""
    found: list[Recipe] = []
    for i in range(count + LATE):
        late = i >= count
        kinds = ["sum", "fail"] if late else ["sum", "fail", "read", "read", "catch", "ufunc"]
        earlier = st.integers(0, 1 if late else i + 1)  # two leaves, then the nodes
        read = earlier | st.integers(count + 2, count + 1 + LATE)
        found.append(
            Recipe(
                draw(st.sampled_from(kinds)),
                tuple(draw(st.lists(earlier, min_size=1, max_size=3))),
                tuple(draw(st.lists(read, min_size=1, max_size=3))),
                draw(st.integers(1, 4)),
                draw(st.integers(0, 3)) == 3,
                draw(st.integers(0, 3)),
                draw(st.sampled_from([0, 6])),
            )
        )
    return found


class Model:
    """A graph made of recipes, and what is seen of it."""

    def __init__(self, made_of: list[Recipe], executor: Any, seed: int) -> None:
        self.graph = rg.Graph(executor=executor)
        self.calls: dict[int, int] = {}
        self.told: list[tuple[int, Any]] = []
        self.random = random.Random(seed)
        self.nodes = [self.graph.input(1), self.graph.input(2)]
        for i, recipe in enumerate(made_of):
            self.nodes.append(self.build(i, recipe))
        self.number = {node: i for i, node in enumerate(self.nodes)}

    def build(self, i: int, recipe: Recipe) -> rg.Var:
        nodes = self.nodes
        operands = [nodes[parent] for parent in recipe.parents]
        if recipe.kind == "ufunc":
            node = rg.sin(operands[0])
            node.cutoff = "equal" if recipe.cutoff else None
            return node

        def function(*values: Any) -> Any:
            self.calls[i] = self.calls.get(i, 0) + 1
            if recipe.nap:
                time.sleep(self.random.random() * recipe.nap * 2e-4)
            total = sum(int(value) for value in values)
            if self.calls[i] <= recipe.begins:
                return total
            if recipe.kind == "fail" and total % (recipe.modulus + 1) == 0:
                raise ValueError(f"node {i} at {total}")
            if recipe.kind in ("read", "catch"):
                for other in recipe.reads[: 1 + total % 3]:
                    try:
                        total += int(nodes[other].value)
                    except ValueError:
                        if recipe.kind == "read":
                            raise
                        total -= 1
            return total // recipe.modulus if recipe.cutoff else total

        return rg.lift(function, cutoff="equal" if recipe.cutoff else None)(*operands)

    def names(self, variables: Any) -> list[int]:
        return [self.number[var] for var in variables]

    def read(self, targets: list[int], retry: bool) -> Any:
        graph = self.graph
        try:
            graph.forward(*[self.nodes[i] for i in targets], retry=retry)
            outcome: Any = [self.nodes[i].value for i in targets]
        except ValueError as error:
            outcome = str(error), type(error)
        return outcome

    def seen(self) -> Any:
        run = self.graph.last_run
        return (
            self.names(run.ran),
            self.names(run.cut_off),
            self.names(run.skipped),
            self.names(run.rebuilt),
            self.names(run.failed),
            [str(error) for error in run.errors],
        )

    def truth(self) -> Any:
        return [
            (var.value_version, var.parent_versions, self.names(var.parents), var.is_stale)
            for var in self.nodes
        ]


@st.composite
def programs(draw: Callable[..., Any]) -> Any:
    made_of = recipes(draw, draw(st.integers(2, 14)))
    last = len(made_of) + 1
    act = st.tuples(
        st.sampled_from(["set", "read", "read", "loop", "loop", "retry", "observe", "release"]),
        st.lists(st.integers(0, last), min_size=1, max_size=4),
        st.integers(0, 6),
    )
    return made_of, draw(st.lists(act, min_size=3, max_size=12)), draw(st.integers(0, 1 << 16))


def play(made_of: list[Recipe], acts: list[Any], seed: int, executor: Any) -> list[Any]:
    model = Model(made_of, executor, seed)
    log: list[Any] = []
    for kind, numbers, value in acts:
        if kind == "set":
            for number in numbers:
                model.nodes[number % 2].set(value + number)
        elif kind == "observe":
            i = numbers[0]
            model.nodes[i].observe(lambda old, new, i=i: model.told.append((i, new)))
        elif kind == "release":
            release_values(model.graph, [model.nodes[i]._slot for i in numbers])
        else:
            for turn in range(8 if kind == "loop" else 1):  # from the third on plans are replayed
                if kind == "loop":
                    model.nodes[turn % 2 and value % 2].set(value + turn)
                log.append(model.read(numbers, kind == "retry"))
                log.append(model.seen())
        model.graph.check_invariants()
        log.append(model.truth())
    return [*log, model.told, model.calls]


def some_long(share: int) -> Callable[..., dict[int, float]]:
    """Costs by which one node of `share` is taken to be long."""
    return lambda scheduler, slots: {slot: float((slot * 7) % share == 0) for slot in slots}


def always_pays(self: rg.Threads, scheduler: Any, slots: Any) -> bool:
    """What stands in for a look at the costs."""
    return self._may(scheduler)


@pytest.mark.slow
@given(programs(), st.integers(2, 4), st.integers(1, 3))
def test_parallel_equals_serial(program: Any, size: int, share: int) -> None:
    expected = play(*program, rg.Serial())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "expected", some_long(share))
        patch.setattr(threads.Threads, "pays", always_pays)
        found = within_time(lambda: play(*program, rg.Threads(size)))
    assert found == expected


# --- at the same time -------------------------------------------------------------------------------


def meeting(g: rg.Graph, count: int, operand: rg.Var) -> list[rg.Var]:
    """Nodes none of which ends before all of them have begun."""
    barrier = threading.Barrier(count)

    def meet(number: int) -> Callable[..., int]:
        def wait(value: int) -> int:
            barrier.wait(20)
            return value + number

        return wait

    return [rg.lift(meet(i))(operand) for i in range(count)]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_independent_nodes_run_at_the_same_time(g: rg.Graph, always: None, count: int) -> None:
    x = g.input(1)
    end = rg.lift(lambda *values: sum(values))(*meeting(g, count, x))
    for value in (1, 2, 3):  # found, stored, replayed
        x.set(value)
        run = g.forward(end, executor=rg.Threads(count))
        assert end.value == sum(value + i for i in range(count))
        assert [var.name for var in run.ran] == sorted(
            (var.name for var in run.ran), key=lambda name: int(name.rpartition("_")[2])
        )
        assert len(run.ran) == count + 1
        g.check_invariants()


def test_what_most_of_the_time_hangs_on_is_begun_first(g: rg.Graph) -> None:
    begun: list[str] = []

    def slow(name: str) -> Callable[..., int]:
        def wait(*values: int) -> int:
            begun.append(name)
            time.sleep(0.01)
            return sum(values)

        return wait

    x = g.input(1)
    beside = [rg.lift(slow(f"beside {i}"))(x) for i in range(4)]
    chain = [x]
    for i in range(4):
        chain.append(rg.lift(slow(f"chain {i}"))(chain[-1]))
    end = rg.lift(lambda *values: sum(values))(*beside, chain[-1])
    for value in (1, 2, 3):  # how long they take is known after the first time
        begun.clear()
        x.set(value)
        g.forward(end, executor=rg.Threads(2))
    assert begun[0] == "chain 0"
    assert end.value == 5 * 3


def test_so_do_those_that_only_a_function_reads(g: rg.Graph) -> None:
    x = g.input(1)
    both = rg.lift(lambda a, b: a + b)(*meeting(g, 2, x))
    with g:
        reader = rg.lift(lambda: both.value)()
    # Something else, since one node alone is no reason for threads.
    other = rg.lift(lambda v: time.sleep(0.001))(x)
    g.forward(reader, other, executor=rg.Threads(3))
    assert reader.value == 3
    assert set(g.last_run.ran) == {reader, other, both, *both.parents}


def test_and_gradients(g: rg.Graph, always: None) -> None:
    """Adjoints are nodes as others are."""
    barrier = threading.Barrier(2)
    meet = rg.lift(lambda v: (barrier.wait(20), v)[1], shape=(3,), dtype="f8")
    slow = rg.lift(lambda v: v * 2.0, vjp=lambda grad, ans, v: meet(grad) * 2.0, shape=(3,))
    g.executor = rg.Threads(2)
    w = [g.param([1.0, 2.0, 3.0]), g.param([4.0, 5.0, 6.0])]
    loss = (slow(w[0]) * slow(w[1])).sum()
    for _ in range(3):
        loss.backward()
        assert w[0].grad.tolist() == [16.0, 20.0, 24.0]
        assert w[1].grad.tolist() == [8.0 * i for i in (0.5, 1.0, 1.5)]
        g.zero_grad()
        g.set({w[0]: w[0].value, w[1]: w[1].value})


def test_large_kernels_run_outside_of_the_thread_that_reads(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = g.input(np.ones(200_000))
    called: list[int] = []
    call = crew.Crew.call

    def noted(self: Any, slot: int, step: Any) -> object:
        called.append(threading.get_ident())
        return call(self, slot, step)

    monkeypatch.setattr(crew.Crew, "call", noted)
    ends = [rg.exp(x * float(i)).sum() for i in range(3)]
    run = g.forward(*ends, executor=rg.Threads(2))
    assert len(called) == len(run.ran) == 9
    assert threading.get_ident() not in called
    fresh = rg.Graph()
    y = fresh.input(np.ones(200_000))
    again = [rg.exp(y * float(i)).sum() for i in range(3)]
    assert [end.value for end in ends] == [end.value for end in again]


def test_cheap_nodes_are_left_to_the_thread_that_reads(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "Crew", None)  # would be called
    x = g.input(np.ones(8))
    y = rg.sin(x) + rg.cos(x)
    g.executor = rg.Threads(4)
    for i in range(4):
        x.set(np.ones(8) * i)
        assert y.value[0] == np.sin(float(i)) + np.cos(float(i))


@pytest.mark.slow
@pytest.mark.trusting
def test_functions_that_turned_out_to_be_cheap_are_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    g = rg.Graph()
    runs: list[int] = []
    go = crew.Crew.go
    monkeypatch.setattr(crew.Crew, "go", lambda self: (runs.append(1), go(self))[1])
    monkeypatch.setattr(costs, "LONG", 0.05)
    monkeypatch.setattr(costs, "UNKNOWN_SECONDS", 1.0)
    naps = [0.0]
    x = g.input(0)
    ends = [rg.lift(lambda v: (time.sleep(naps[0]), v)[1])(x) for _ in range(2)]
    for i in range(6):
        x.set(i)
        g.forward(*ends, executor=rg.Threads(2))
    assert len(runs) == 1
    naps[0] = 0.6  # ten times what was promised, and more
    for i in range(2):
        x.set(10 + i)
        g.forward(*ends, executor=rg.Threads(2))
    assert len(runs) == 2


def test_a_function_that_was_taken_to_be_cheap_does_not_keep_others_waiting(
    g: rg.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = g.input(1)
    nodes = meeting(g, 3, x)
    monkeypatch.setattr(costs, "expected", lambda scheduler, slots: dict.fromkeys(slots, 0.0))
    monkeypatch.setattr(threads.Threads, "pays", always_pays)
    g.forward(*nodes, executor=rg.Threads(3))
    assert [node.value for node in nodes] == [1, 2, 3]


# --- ways to ask for it -----------------------------------------------------------------------------


def test_a_read_may_run_in_another_way_than_its_graph(always: None) -> None:
    g = rg.Graph(executor=rg.Threads(2))
    names: set[int] = set()
    nodes = pair(g, *[lambda v: names.add(threading.get_ident())] * 2)
    g.forward(*nodes, executor=rg.Serial())
    assert names == {threading.get_ident()}
    names.clear()
    nodes[0].parents[0].set(2)
    g.forward(*nodes)
    assert threading.get_ident() not in names
    assert repr(g.executor) == "Threads(2)"
    g.executor = rg.Serial()
    assert repr(g.executor) == "Serial()"


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "4"])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(rg.ExecutorError, match="at least 1"):
        rg.Threads(size)


def test_what_is_no_executor(g: rg.Graph) -> None:
    y = g.input(1) + 1
    for act in (lambda: g.forward(y, executor=4), lambda: rg.Graph(executor="threads")):
        with pytest.raises(TypeError, match=r"rg\.Threads\(n\)"):
            act()


@pytest.mark.parametrize("watch", ["record", "anomaly", "budget"])
def test_where_each_node_is_looked_at_they_run_one_after_the_other(
    always: None, watch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "Crew", None)  # would be called
    g = rg.Graph(executor=rg.Threads(2), max_bytes=10**9 if watch == "budget" else None)
    x = g.input(np.ones(3))
    nodes = [rg.exp(x), rg.sin(x)]
    block = {"record": g.record, "anomaly": rg.detect_anomaly, "budget": rg.no_grad}[watch]
    with block():
        assert g.forward(*nodes).ran == nodes


# --- what plans hold that one thread has found ------------------------------------------------------


def read_some(first: rg.Var, late: rg.Var, value: int) -> Any:
    return value + first.value + (late.value if value > 4 else 0)


def test_what_a_node_is_expected_to_read_is_read_by_several_threads(always: None) -> None:
    """A plan that knows the reads of its nodes is found in one thread, and run by both in turns."""
    seen: list[list[Any]] = []
    for executor in (rg.Serial(), rg.Threads(3)):
        g = rg.Graph()
        x, y = g.input(1), g.input(10)
        hidden = [plus(i)(x) for i in range(3)] + [plus(7)(y)]
        with g:
            readers = [rg.lift(partial(read_some, hidden[i], hidden[3]))(x) for i in range(3)]
        end = rg.lift(lambda *values: sum(values))(*readers)
        found: list[Any] = []
        for turn in range(24):
            g.executor = executor if turn % 8 >= 4 else rg.Serial()
            (y if turn % 5 == 4 else x).set(turn)
            run = g.forward(end)
            found.append(([node.name for node in run.ran], end.value, end.value_version))
            found.append([[parent.name for parent in node.parents] for node in readers])
            g.check_invariants()
        planned = [one.plan.readings for one in g._scheduler.plans._transitions.values()]
        assert not keeps_plans(g) or any(planned)
        seen.append(found)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("how", ["checkpoint", "hooks"])
def test_values_that_go_between_two_nodes_are_left_to_one_thread(
    always: None, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(crew, "Crew", None)  # would be called
    seen: list[list[Any]] = []
    for executor in (rg.Serial(), rg.Threads(2)):
        g = rg.Graph(executor=executor)
        x = g.param(np.full((2, 3), 0.5))
        y = layers(how, x)
        found: list[Any] = []
        for step in range(6):
            x.set(np.linspace(0.1, 0.2 + step * 0.1, 6).reshape(2, 3))
            run = y.backward()
            found.append([node.name for node in (*run.ran, *run.rebuilt)])
            found.append((np.array(x.grad), y.value, y.value_version))
            g.check_invariants()
        seen.append(found)
    np.testing.assert_equal(seen[0], seen[1])


@pytest.mark.slow
def test_steps_that_one_thread_computes_together_are_computed_alone_by_several(
    always: None,
) -> None:
    """The same bits, also where a plan goes from one to the other and back, and where a node raises."""

    def wall(v: Any) -> Any:
        if v[-1] == 4.0:
            raise ValueError("four")
        return v[-1]

    graphs = [rg.Graph(), rg.Graph()]
    inputs = [g.input(np.linspace(0.0, 1.0, 150_000)) for g in graphs]
    parts: list[list[rg.Var]] = []
    for x in inputs:
        sums = [(rg.exp(x * float(i)) - rg.tanh(x) * 0.5).sum() for i in range(3)]
        stop = rg.lift(wall, shape=(), dtype="f8")(x)
        large = rg.sin(x * stop) * x + 1.0
        parts.append([*sums, sums[0] * sums[1] + sums[2] * stop, large])
    for turn in range(16):
        executors = [rg.Serial(), rg.Threads(3) if turn // 2 % 2 else rg.Serial()]
        found: list[Any] = []
        for g, x, nodes, executor in zip(graphs, inputs, parts, executors, strict=True):
            x.set(np.linspace(0.0, 1.0 + turn % 5, 150_000))
            if turn % 5 == 3:
                with pytest.raises(ValueError, match="four"):
                    g.forward(*nodes, executor=executor)
            else:
                g.forward(*nodes, executor=executor)
            run = g.last_run
            found.append(
                (
                    [node.name for node in run.ran],
                    [node.name for node in run.failed],
                    [node.value_version for node in nodes],
                    [np.asarray(node.value).tobytes() for node in nodes if not node.is_stale],
                )
            )
            g.check_invariants()
        assert found[0] == found[1]


def test_what_ran_behind_a_node_without_value_is_told_in_its_place(always: None) -> None:
    """Who reads a node that an operand's error keeps from running has asked for its other operands."""

    def told(executor: rg.Serial | rg.Threads) -> tuple[list[str], list[str]]:
        g = rg.Graph(executor=executor)
        zero, x = g.input(1), g.input(1)
        inverse = rg.lift(lambda v: 1 // v)(zero)
        behind = rg.lift(lambda v: v + 1)(x)
        total = rg.lift(lambda a, b: a + b)(inverse, behind)

        def careful() -> int:
            try:
                return total.value
            except ZeroDivisionError:
                return -1

        with g:
            reader = rg.lift(careful)()
        last = rg.lift(lambda v: v)(x)
        g.forward(reader, last)
        zero.set(0)
        x.set(2)
        with pytest.raises(ZeroDivisionError):
            g.forward(inverse, last, reader)
        run = g.last_run
        return [var.name for var in run.ran], [var.name for var in run.failed]

    assert told(rg.Threads(3)) == told(rg.Serial())


def test_errors_of_a_read_before_are_told_in_the_order_of_one_thread() -> None:
    def told(executor: rg.Serial | rg.Threads) -> list[str]:
        g = rg.Graph(executor=executor)
        x = g.input(1.0)

        def fails(v: float) -> float:
            raise KeyError("first")

        def unless_it_fails(v: float) -> float:
            try:
                return second.value
            except KeyError:
                return 0.0

        first = rg.lift(fails)(x)
        second = rg.lift(lambda v: first.value)(x)
        third = rg.lift(unless_it_fails)(x)
        fourth = rg.lift(lambda v: v)(x)
        for name, node in zip("abcd", (first, second, third, fourth), strict=True):
            node.name = name
        with pytest.raises(KeyError):
            second.value
        return [node.name for node in g.forward(third, fourth).failed]

    assert told(rg.Serial()) == told(rg.Threads(2)) == ["a", "b"]
