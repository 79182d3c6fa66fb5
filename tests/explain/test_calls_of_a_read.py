"""How many Python functions a read calls, and what it allocates: what every read pays, without a clock.

The counts are bounds: who makes one smaller tightens it here. See ``building/test_cheap_structure.py`` for
those of new nodes.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from types import FrameType

import numpy as np
import pytest

import reactgrad as rg
from tests.explain.test_free_when_off import python_calls

pytestmark = [pytest.mark.trusting, pytest.mark.whole]


def repeated(act: Callable[[], object]) -> Callable[[], object]:
    """`act`, once its plans are found."""
    for _ in range(5):
        act()
    return act


def chain(x: rg.Var, length: int, cutoff: str | None = None) -> rg.Var:
    node = rg.lift(lambda v: v + 1.0, cutoff=cutoff)
    for _ in range(length):
        x = node(x)
    return x


def test_a_clean_read_is_one_call() -> None:
    y = rg.Graph().input(1.0) * 2.0
    y.value
    assert python_calls(repeated(lambda: y.value)) == 2, "the lambda, and the property"


@pytest.mark.parametrize(
    ("value", "calls"), [(1.0, 8), (1, 7), (np.ones(3), 7)], ids=["float", "int", "array"]
)
def test_a_set_takes_a_few_calls(value: object, calls: int) -> None:
    x = rg.Graph().input(value)
    (x * 2.0).value
    assert python_calls(repeated(lambda: x.set(value))) <= calls


@pytest.mark.parametrize(
    ("value", "calls"), [(1.0, 12), (1, 11), (np.ones(3), 11)], ids=["float", "int", "array"]
)
def test_a_read_after_an_unrelated_set_takes_a_few_calls(value: object, calls: int) -> None:
    g = rg.Graph()
    x, other = g.input(value), g.input(value)
    y, z = g.keep(x * 2.0), g.keep(other * 2.0)
    g.forward(y, z)

    def act() -> None:
        other.set(value)
        y.value

    assert python_calls(repeated(act)) <= calls


@pytest.mark.parametrize(("value", "calls"), [(1.0, 18), (np.ones(3), 19)], ids=["float", "array"])
def test_a_set_and_a_read_of_one_node_take_a_few_calls(value: object, calls: int) -> None:
    g = rg.Graph()
    x = g.input(value)
    y = g.keep(x * 2.0)

    def act() -> None:
        x.set(value)
        y.value

    assert python_calls(repeated(act)) <= calls


@pytest.mark.slow
def test_a_number_that_is_set_calls_nothing_for_the_kernels_that_take_it() -> None:
    g = rg.Graph()
    few, many = g.input(1.0), g.input(1.0)

    def of(x: rg.Var, count: int) -> Callable[[], object]:
        ends = [g.keep(x * float(k)) for k in range(count)]

        def act() -> None:
            x.set(2.0)
            g.forward(*ends)

        return repeated(act)

    assert python_calls(of(many, 30)) == python_calls(of(few, 10))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cutoff", "calls"),
    [
        (None, 2),  # the step, the function
        ("equal", 2),  # likewise: the step compares, too
    ],
)
def test_a_step_of_a_plan_takes_as_many_calls_as_it_has_parts(
    cutoff: str | None, calls: int
) -> None:
    def of(length: int) -> Callable[[], object]:
        g = rg.Graph()
        x = g.input(0.0)
        y = g.keep(chain(x, length, cutoff))
        numbers = iter(range(100))

        def act() -> None:
            x.set(float(next(numbers)))
            y.value

        return repeated(act)

    assert python_calls(of(300)) - python_calls(of(100)) == calls * 200


@pytest.mark.slow
def test_a_node_behind_a_cutoff_that_holds_is_only_compared() -> None:
    def of(length: int) -> Callable[[], object]:
        g = rg.Graph()
        x = g.input(0.0)
        sign = rg.lift(lambda v: v > -1.0, cutoff="equal")(x)
        y = g.keep(chain(sign, length))
        numbers = iter(range(100))

        def act() -> None:
            x.set(float(next(numbers)))
            y.value

        return repeated(act)

    assert python_calls(of(300)) == python_calls(of(100))


@pytest.mark.slow
@pytest.mark.parametrize("make", [int, float, np.float64, lambda v: [v]])
@pytest.mark.parametrize("again", [1, 3], ids=["read once", "read again"])
def test_a_settled_value_that_a_function_reads_takes_two_calls(
    make: Callable[[int], object], again: int
) -> None:
    def of(reads: int) -> Callable[[], object]:
        g = rg.Graph()
        x = g.input(0.0)
        identity = rg.lift(lambda v: v)
        others = [g.keep(identity(g.input(make(k)))) for k in range(reads)]

        def function(v: float) -> float:
            for other in again * others:
                other.value
            return v

        y = g.keep(rg.lift(function)(x))
        numbers = iter(range(100))

        def act() -> None:
            x.set(float(next(numbers)))
            y.value

        g.forward(*others)
        for other in others:
            other.value
        return repeated(act)

    # The property, and the note that it was read.
    assert python_calls(of(30)) - python_calls(of(10)) == 2 * again * 20


@pytest.mark.slow
def test_a_first_read_of_functions_that_read_is_a_plan() -> None:
    """What they read the last time tells what they will read: they do not run one by one."""

    def of(length: int) -> Callable[[], object]:
        g = rg.Graph()
        xs = [g.input(0.0) for _ in range(9)]
        far = g.keep(g.input(1.0) * 2.0)
        y = rg.lift(lambda *values: sum(values))(*xs)
        for _ in range(length):
            y = rg.lift(lambda a: a + far.value)(y)
        g.keep(y)
        left = iter(xs)

        def act() -> None:
            next(left).set(1.0)
            y.value

        return repeated(act)

    # Eight as in a plan that is known: the step with a look at its reads, what begins and ends that, the step
    # itself, the function, a look at its result, which is a NumPy scalar, and the read, of two. To find the
    # plan: what is expected of the node; its step, and that with the look, of two.
    assert python_calls(of(60)) - python_calls(of(20)) <= 11 * 40


@pytest.mark.slow
def test_a_node_that_reads_in_a_hot_plan_takes_a_few_calls_and_those_of_its_reads() -> None:
    def of(length: int) -> Callable[[], object]:
        g = rg.Graph()
        x, node = g.input(0.0), rg.lift(lambda v: v + 1.0)
        y = node(x)
        for _ in range(length):
            y = rg.lift(lambda a, b=y: a + b.value)(node(y))
        g.keep(y)
        numbers = iter(range(100))

        def act() -> None:
            x.set(float(next(numbers)))
            y.value

        return repeated(act)

    # Of the function before it: the step and the function; of the reader: the step with a look at its reads,
    # what begins and ends that look, the step itself, the function, and the read: the property and the note.
    assert python_calls(of(30)) - python_calls(of(10)) <= 9 * 20


def test_a_function_that_was_never_run_is_run_sooner_than_planned() -> None:
    """What it will read is not known before, so that a plan of it would have to be left at once."""
    g = rg.Graph()
    x = g.input(1.0)
    with g:
        first, second = (rg.lift(lambda: x.value + 1.0)() for _ in range(2))
    first.value
    assert python_calls(lambda: second.value) <= 78  # 133 with a plan


# --- the first sight of what is stale -------------------------------------------------------------


def web(nodes: int, graph: rg.Graph | None = None) -> tuple[rg.Graph, rg.Var, rg.Var]:
    """So many nodes on small arrays, numbers beside some of them, all behind one input."""
    g = graph or rg.Graph()
    x = g.input(np.ones(4))
    made = [x, x * 2.0]
    while len(made) <= nodes:
        k = len(made)
        made.append(made[-1] * 0.5 if k % 3 == 0 else rg.tanh(made[-1]) + made[k * 7 // 10])
    return g, x, g.keep(rg.concatenate(made[-5:]))


@pytest.mark.slow
def test_the_first_reads_with_plans_call_no_more_than_as_many_without() -> None:
    """A plan that is made for a cone that may never be seen again costs nothing."""

    def three_reads(plans: bool) -> list[int]:
        g, x, y = web(1000)
        if not plans:
            g._scheduler.plans.close()
        y.value
        values = iter(range(10))

        def act() -> None:
            x.set(np.full(4, float(next(values))))
            y.value

        return [python_calls(act) for _ in range(3)]

    planned, unplanned = three_reads(True), three_reads(False)
    assert planned[0] <= unplanned[0], "already the first one"
    assert sum(planned) <= sum(unplanned) / 20


def what_if(g: rg.Graph, x: rg.Var, y: rg.Var) -> Callable[[], object]:
    def act() -> None:
        with g.whatif({x: np.zeros(4)}) as w:
            w[y].value

    y.value
    act()
    return act


@pytest.mark.slow
def test_a_node_of_a_what_if_takes_a_few_calls() -> None:
    """Its buffer, where its memory is from; its kernel, bound, and for what it takes beside arrays."""
    short, long = (python_calls(what_if(*web(nodes))) for nodes in (100, 400))
    assert long - short <= 7 * 500, "there are two nodes, an op and a sum, in two of three of them"


@pytest.mark.slow
def test_a_what_if_calls_as_much_in_a_graph_of_any_size() -> None:
    calls = []
    for size in (0, 20_000):
        g = rg.Graph()
        rest = g.keep(web(size, g)[2]) if size else None
        if rest is not None:
            rest.value
        calls.append(python_calls(what_if(*web(100, g))))
    assert calls[0] == calls[1]


def instructions(act: Callable[[], object]) -> int:
    """How many instructions of Python `act` runs: also those of a loop in one line."""
    count = 0

    def enter(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

        def follow(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
            nonlocal count
            count += event == "opcode"
            return follow

        return follow

    former = sys.gettrace()
    gc.disable()
    sys.settrace(enter)
    try:
        act()
    finally:
        sys.settrace(former)
        gc.enable()
    return count


def test_a_read_of_many_targets_takes_as_many_instructions_as_one_of_few() -> None:
    """At every sight of a change: the first, the second, which stores its plan, and all that replay it."""

    def of(targets: int) -> list[int]:
        g = rg.Graph()
        xs = [g.input(float(i)) for i in range(targets)]
        ys = [x * 2.0 for x in xs]
        for turn in range(
            3
        ):  # who is read is remembered, and not yet what a change of the others runs
            xs[0].set(float(turn))
            g.forward(*ys)

        def act() -> None:
            xs[5].set(1.0)
            g.forward(*ys)

        return [instructions(act) for _ in range(4)]

    assert of(1000) == of(30)


# --- what is allocated ----------------------------------------------------------------------------


def allocated(act: Callable[[], object]) -> tuple[int, int]:
    """Bytes that `act` takes at most while it runs, and those that it leaves taken; by all of Python."""
    repeated(act)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        act()  # what was there before tracing began is not counted when it goes
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        act()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    return peak - before, after - before


def a_set_and_a_read(x: rg.Var, y: rg.Var, values: Iterable[object]) -> Callable[[], object]:
    """One step of a loop, with a value of its own each time."""
    left = iter(values)
    y.graph.keep(y)

    def act() -> None:
        x.set(next(left))
        y.value

    return act


@pytest.mark.slow
def test_a_clean_read_allocates_nothing() -> None:
    y = rg.Graph().input(np.ones(3)) * 2.0
    y.value
    # The least of several: a thread that another test has left may allocate meanwhile.
    assert min(allocated(lambda: y.value) for _ in range(5)) == allocated(lambda: None)


def test_a_set_and_a_read_of_one_node_allocate_less_than_a_kilobyte_and_keep_little() -> None:
    x = rg.Graph().input(0.0)
    peak, kept = allocated(a_set_and_a_read(x, x * 2.0, map(float, range(100))))
    assert peak <= 1024
    assert kept <= 256  # the journal's entries, until it is settled


@pytest.mark.slow
@pytest.mark.parametrize("elements", [3, 30_000])
def test_a_step_of_a_plan_allocates_nothing(elements: int) -> None:
    """Neither for a node of the plan nor for an element of its arrays, but for the copy handed out."""
    arrays = [np.full(elements, float(i)) for i in range(8)]

    def of(length: int) -> tuple[int, int]:
        x = y = rg.Graph().input(arrays[0])
        for _ in range(length):
            y = rg.tanh(y)
        return allocated(a_set_and_a_read(x, y.sum(), arrays))

    short, long = of(10), of(210)
    assert long[0] <= short[0] + 200
    assert long[0] <= 2048
    assert long[1] <= 256


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cutoff", "bytes_a_node"),
    [
        (None, 0),
        ("equal", 128),  # the note of what was replaced
    ],
)
def test_a_step_that_calls_a_function_allocates_little(
    cutoff: str | None, bytes_a_node: int
) -> None:
    def of(length: int) -> tuple[int, int]:
        x = rg.Graph().input(0.0)
        return allocated(a_set_and_a_read(x, chain(x, length, cutoff), map(float, range(100))))

    short, long = of(10), of(210)
    assert long[0] - short[0] <= 200 * bytes_a_node + 200
    assert long[1] <= 600


def _network(g: rg.Graph, x: rg.Var) -> rg.Var:
    weights = [g.param(np.full((8, 8), 0.1)) for _ in range(10)]
    y = x
    for w in weights:
        y = rg.tanh(y @ w)
    gradients = rg.grad(y.sum(), weights)
    return y.sum() + sum([gradient.sum() for gradient in gradients[1:]], gradients[0].sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "model"),
    [
        (1.0, lambda g, x: chain(x, 5)),
        (1.0, lambda g, x: chain(x, 50)),
        (np.ones((4, 8)), lambda g, x: (rg.tanh(x * 0.5) + x).sum()),
        (np.ones((4, 8)), _network),
    ],
    ids=["functions", "many functions", "few ops", "network"],
)
def test_a_plan_is_paid_back_within_three_replays(
    value: object, model: Callable[[rg.Graph, rg.Var], rg.Var]
) -> None:
    """Two reads that find, store and bind it, and three that follow it, beside five without any."""
    counts: list[int] = []
    for plans in (True, False):
        g = rg.Graph()
        x = g.input(value)
        y = model(g, x)
        y.value
        g._scheduler.plans.enabled = plans
        count = 0
        for _ in range(5):
            x.set(value)
            count += python_calls(lambda y=y: y.value)
        counts.append(count)
    assert counts[0] < counts[1]
