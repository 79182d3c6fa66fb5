"""The register machine: the same bits, versions and runs as single NumPy calls, in fewer calls."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend.machine import _registers
from reactgrad.backend.machine._code import EXTENT, OPERANDS, rows
from reactgrad.backend.machine._find import find_machine
from reactgrad.backend.machine._instructions import MOST_ELEMENTS, instructions
from reactgrad.backend.machine._loop_call import Whole, loop_call
from reactgrad.backend.machine._loops import _ELEMENTWISE, find_loop
from reactgrad.backend.machine._registers import Program, Registers
from reactgrad.backend.machine._stages import staged
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.memory import _jit
from reactgrad.values._columns import UNBOUND

needs_machine = pytest.mark.skipif(find_machine() is None, reason="needs the driver or numba")


def calls_of(graph: rg.Graph) -> list[list[Any]]:
    """What the plans of a graph call, one list a plan."""
    plans = [transition.plan for transition in graph._scheduler.plans._transitions.values()]
    return [plan.fused for plan in plans if plan.fused]


def programs_of(graph: rg.Graph) -> list[Program]:
    return [call for calls in calls_of(graph) for call in calls if type(call) is Program]


def bits(value: Any) -> bytes:
    array = np.array(value)
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan  # any NaN is a NaN
    return array.tobytes()


@pytest.fixture
def any_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single steps are programs, too, and threads share any number of elements."""
    for name in ("FEWEST", "SHARED", "PART"):
        monkeypatch.setattr(_registers, name, 1)


# --- one step ------------------------------------------------------------------------------------


def played(step: Any, out: np.ndarray[Any, Any]) -> bytes:
    """What the machine makes of a step; it must leave its code as it is."""
    code = instructions(step)
    assert code is not None, step
    machine = find_machine()
    assert machine is not None
    out.fill(7)
    copy = np.frombuffer(code, np.int64).copy()
    place = copy.ctypes.data, copy.ctypes.data + copy.nbytes
    machine.play(*place)
    assert copy.tobytes() == code
    whole = bits(out)
    if out.size > 1:
        out.fill(7)
        for begin, end in pairwise(sorted({0, 1, out.size // 3, out.size // 2, out.size})):
            machine.play_part(*place, begin, end)
        assert bits(out) == whole
    return whole


SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-310, 709.9, -745.3, 1e300, 0.5]


def sample(size: int, dtype: str, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng([size, seed])
    values = rng.normal(0.0, 3.0, size)
    values[rng.random(size) < 0.2] = rng.choice(SPECIAL)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


@needs_machine
@pytest.mark.parametrize("ufunc", sorted(_ELEMENTWISE, key=lambda u: u.__name__))
def test_each_ufunc_gives_the_bits_of_numpy(ufunc: np.ufunc) -> None:
    seen = 0
    for dtypes in ufunc.types:
        operands, _, result = dtypes.partition("->")
        if find_loop(ufunc, operands + result) is None:
            continue
        for size in (1, 2, 3, 7, 8, 31, 200):
            full = [sample(size, dtype, i) for i, dtype in enumerate(operands)]
            first = [full[0][:1].copy(), *full[1:]]
            spread = [full[0][:1].reshape(()), *full[1:]]
            reverse = [one[::-1] for one in full]
            layouts = [full, reverse] if ufunc.nin == 1 else [full, first, spread, reverse]
            for inputs in layouts:
                out = np.empty(size, result)
                with np.errstate(all="ignore"):
                    step = partial(ufunc, *inputs, out=out)
                    step()
                    expected = bits(out)
                    assert played(step, out) == expected, (dtypes, size)
                seen += 1
    assert seen or ufunc.signature is not None


@needs_machine
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1,), (2,), (9,), (31,), (300,), (8192,), (3, 5), (16, 33), ()])
def test_a_sum_of_all_elements_gives_the_bits_of_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    x = sample(int(np.prod(shape)), dtype, 1).reshape(shape)
    x[~np.isfinite(x)] = 2.0
    for axis in (None, tuple(range(x.ndim))):
        out = np.empty(1, dtype)
        step = partial(np.add.reduce, x, axis, None, out.reshape(()), False)
        step()
        assert played(step, out) == bits(np.array(np.add.reduce(x, axis)))


@needs_machine
@pytest.mark.parametrize("dtype", ["f4", "f8", "?"])
def test_copies_under_a_mask_and_without(dtype: str) -> None:
    x, y = np.arange(9).astype(dtype), np.ones(1, dtype)
    mask = np.arange(9) % 3 == 0
    out = np.empty(9, dtype)
    step = InTurn(
        partial(np.copyto, out, y) if dtype != "?" else partial(np.logical_or, y, y, out),
        partial(np.copyto, out, x, where=mask),
    )
    assert played(step, out) == bits(np.where(mask, x, y))


@pytest.mark.parametrize(
    "step",
    [
        partial(np.add, np.ones(3), np.ones(3, int), np.empty(3)),  # casts
        partial(np.power, np.ones(3, int), np.ones(3, int), np.empty(3, int)),
        partial(np.exp, np.ones((2, 3)).T, np.empty((3, 2))),  # two strides
        partial(np.add, np.ones(0), np.ones(0), np.empty(0)),
        partial(np.exp, np.ones(MOST_ELEMENTS + 1), np.empty(MOST_ELEMENTS + 1)),
        partial(np.add, np.ones(3), 1.0, np.empty(3)),  # no array
        partial(np.add, np.ones(3), np.ones(3), np.empty(3), where=np.ones(3, bool)),
        partial(np.add.reduce, np.ones((3, 2, 2)), 1, None, np.empty((3, 2)), False),
        partial(np.add.reduce, np.ones(3, "f4"), 0, None, np.empty(1), True),
        partial(np.maximum.reduce, np.ones(3), 0, None, np.empty(()), False),
        partial(np.matmul, np.ones((2, 2)), np.ones(2), np.empty(2)),
        partial(np.frompyfunc(abs, 1, 1), np.ones(3), np.empty(3, object)),
        partial(np.copyto, np.empty(3, "f4"), np.ones(3, "f2")),
        partial(np.copyto, np.empty(3, int), np.ones(3), casting="unsafe"),
        partial(np.copyto, np.empty(3), np.ones(3), where=np.ones(3, int)),
        partial(print),
        InTurn(partial(np.add, np.ones(3), np.ones(3), np.empty(3)), print),
        print,
        None,
    ],
)
def test_what_no_loop_does_alone_is_left_to_numpy(step: Any) -> None:
    assert instructions(step) is None


@needs_machine
def test_values_of_foreign_structs_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    # A NumPy in which the struct has another layout: its loops are left alone.
    from reactgrad.backend.machine import _loops

    class Shifted(_loops.Structure):
        _fields_ = (("more", _loops.c_int * 2), *_loops._UFunc._fields_)

    find_loop.cache_clear()
    assert find_loop(np.add, "ddd") is not None
    monkeypatch.setattr(_loops, "_UFunc", Shifted)
    find_loop.cache_clear()
    try:
        assert find_loop(np.add, "ddd") is None
    finally:
        find_loop.cache_clear()


# --- graphs --------------------------------------------------------------------------------------

UNARY = [rg.tanh, rg.sigmoid, rg.relu, rg.exp, rg.square, rg.absolute, rg.sin, lambda a: -a]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - b,
    rg.maximum,
    rg.minimum,
    lambda a, b: a / (b * b + 1.0),
    lambda a, b: rg.where(a > b, a * 0.5, b),
]
SHAPES = [(), (1,), (5,), (2, 3)]


class Net:
    """A graph of small nodes that is built from numbers, and can be built again."""

    def __init__(self, codes: list[int], dtype: str, jit: int) -> None:
        self.graph = rg.Graph(jit=jit)
        shape = SHAPES[codes[0] % len(SHAPES)]
        rng = np.random.default_rng(codes[0])
        self.inputs = [self.graph.input(rng.normal(size=shape).astype(dtype)) for _ in range(2)]
        self.weights = [self.graph.param(np.asarray(rng.normal(), dtype)) for _ in range(4)]
        self.nodes: list[rg.Var] = [*self.inputs, *self.weights]
        with self.graph:
            for code in codes:
                self.nodes.append(self.made(code))
            self.loss = (self.nodes[-1] * self.nodes[-2]).sum()
        self.gradients = rg.grad(self.loss, self.weights, allow_unused=True)

    def made(self, code: int) -> rg.Var:
        code, which = divmod(code, len(UNARY) + len(BINARY))
        code, first = divmod(code, len(self.nodes))
        a, b = self.nodes[-1 - first % 5], self.nodes[code % len(self.nodes)]
        return UNARY[which](a) if which < len(UNARY) else BINARY[which - len(UNARY)](a, b)

    @property
    def targets(self) -> list[rg.Var]:
        return [self.loss, *[g for g in self.gradients if g is not None]]

    def act(self, code: int) -> None:
        """Set a leaf, or turn an edge of a node to an input."""
        kind, code = code % 4, code // 4
        rng = np.random.default_rng(code)
        if kind == 0:
            leaf = self.inputs[code % 2]
        else:
            leaf = self.weights[code % 4]
        if kind == 3:
            node = self.nodes[6 + code % (len(self.nodes) - 6)]
            if node.parents and node.parents[0].shape == self.inputs[0].shape:
                node.replace_parent(0, self.inputs[code % 2])
            return
        leaf.set(rng.normal(size=leaf.shape).astype(leaf.dtype))

    def seen(self, run: rg.Run) -> Any:
        """All that must not depend on who makes the calls."""
        return (
            [bits(target.value) for target in self.targets],
            [target.value_version for target in self.targets],
            [var.name for var in run.ran],
            [var.name for var in run.skipped],
            [node.value_version for node in self.nodes],
            [node.is_stale for node in self.nodes],
        )


CODES = st.lists(st.integers(0, 10**6), min_size=3, max_size=14)
ACTIONS = st.lists(st.lists(st.integers(0, 10**4), min_size=1, max_size=3), max_size=3)


@pytest.mark.slow
@needs_machine
@pytest.mark.usefixtures("any_number_of_steps")
@pytest.mark.parametrize(("dtype", "threads"), [("f4", 1), ("f8", 1), ("f8", 4)])
@settings(max_examples=30)
@given(codes=CODES, rounds=ACTIONS)
def test_graphs_with_and_without_it_cannot_be_told_apart(
    dtype: str, threads: int, codes: list[int], rounds: list[list[int]]
) -> None:
    one, other = Net(codes, dtype, threads), Net(codes, dtype, False)
    for actions in ([0, 5], *rounds):
        for _ in range(4):  # the plan is found, stored, bound and played, then played again
            for code in actions:
                one.act(code)
                other.act(code)
            runs = one.graph.forward(*one.targets), other.graph.forward(*other.targets)
            assert one.seen(runs[0]) == other.seen(runs[1])
            one.graph.check_invariants()
    fresh = Net(codes, dtype, threads)
    for actions in ([0, 5], *rounds):
        for code in actions * 4:
            fresh.act(code)
    assert [bits(v.value) for v in fresh.targets] == [bits(v.value) for v in one.targets]


def chain(graph: rg.Graph, length: int = 10) -> tuple[rg.Var, rg.Var]:
    x = graph.input(np.linspace(0.1, 1.0, 4))
    y = x
    for i in range(length):
        y = rg.tanh(y * (0.5 + i))
    return x, y


def after_first(y: rg.Var) -> rg.Var:
    """The second multiplication of a chain of ten."""
    for _ in range(17):
        y = y.parents[0]
    return y


def read_often(x: rg.Var, y: rg.Var, times: int = 5) -> list[bytes]:
    found: list[bytes] = []
    for i in range(times):
        x.set(np.linspace(0.2 * i, 1.0, 4))
        found.append(bits(y.value))
    return found


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_a_plan_of_small_kernels_is_one_call() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph)
    expected = read_often(*chain(rg.Graph(jit=False)))
    assert read_often(x, y) == expected
    ((call,),) = calls_of(graph)
    assert type(call) is Program
    kinds = [var.name.partition("_")[0] for var in graph.last_run.ran]
    assert kinds == ["multiply", "tanh"] * 10
    assert y.value_version == 5


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_threads_share_elements_and_wait_for_sums_and_for_what_others_have_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_registers, "SHARED", 1)
    monkeypatch.setattr(_registers, "PART", 8)
    parts: list[tuple[int, int, int, int]] = []
    machine = find_machine()
    assert machine is not None

    class Counting:
        play = staticmethod(machine.play)

        @staticmethod
        def play_part(*args: int) -> None:
            parts.append(args)
            machine.play_part(*args)

    found = []
    for jit in (False, 1, 4):
        graph = rg.Graph(jit=jit)
        if jit == 4:
            graph._host.registers = Registers(Counting(), 4, patient=False)
        x = graph.input(np.ones(100))
        w = graph.param(0.3)
        y = rg.tanh(x * w)
        y = rg.sigmoid(y - y.sum() * 0.01) + y[::-1]
        y = rg.where(y > 0.5, rg.tanh(y), y * y)
        loss = (y * x).sum()
        (slope,) = rg.grad(loss, [w])
        for seed in range(5):
            x.set(np.random.default_rng(seed).normal(size=100))
            graph.forward(loss, slope)
            found.append((jit, bits(loss.value), bits(slope.value)))
        assert bool(programs_of(graph)) == bool(jit)
    plain, one, four = ([entry[1:] for entry in found if entry[0] == jit] for jit in (False, 1, 4))
    assert plain == one == four
    assert {(begin, end) for *_, begin, end in parts} == {(0, 32), (32, 64), (64, 96), (96, 100)}


@needs_machine
def test_stages_are_as_few_as_they_can_be() -> None:
    wide, other, out, summed = (np.empty(100) for _ in range(4))
    total = np.empty(1)
    steps = [
        partial(np.tanh, wide, other),
        partial(np.add.reduce, other, None, None, total.reshape(()), False),  # of all elements
        partial(np.tanh, other, out),  # of its own ones: still in the first stage
        partial(np.multiply, out, total, summed),  # after the sum
        partial(np.add, summed[::-1], out, wide),  # after what others have computed
    ]
    codes = [instructions(step) for step in steps]
    found = rows(np.frombuffer(b"".join(codes), np.int64).tolist())  # type: ignore[arg-type]
    # As rows: tanh, the two of the sum, tanh, multiply, add.
    assert staged(found) == [
        ([found[0], found[3]], 100),
        (found[1:3], 0),
        ([found[4]], 100),
        ([found[5]], 100),
    ]


@pytest.mark.parametrize("jit", [-1, 2.5, "yes"])
def test_what_is_no_number_of_threads_is_refused(jit: Any) -> None:
    with pytest.raises(rg.DTypeError, match="how many threads"):
        rg.Graph(jit=False).jit = jit


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_other_steps_lie_between_programs_in_their_order() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph, 3)
    z = y @ y
    for i in range(3):
        z = rg.tanh(z * (0.5 + i))
    read_often(x, z)
    ((first, dot, second),) = calls_of(graph)
    assert [type(one) is Program for one in (first, dot, second)] == [True, False, True]


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_it_can_be_switched() -> None:
    graph = rg.Graph(jit=False)
    x, y = chain(graph)
    read_often(x, y)
    assert not graph.jit
    assert programs_of(graph) == []
    graph.jit = True
    before = read_often(x, y)
    assert len(programs_of(graph)) == 1
    graph.jit = False
    assert read_often(x, y) == before
    assert programs_of(graph) == []


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_forks_have_it_and_leave_the_values_of_each_other_alone() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph)
    read_often(x, y)
    before = bits(y.value)
    twin = graph.fork()
    assert twin.jit
    assert read_often(twin[x], twin[y], 6) == read_often(*chain(rg.Graph(jit=False)), 6)
    assert len(programs_of(twin)) == 1
    assert bits(y.value) == before
    x.touch()
    assert bits(y.value) == before


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_a_value_that_a_caller_still_holds_is_not_written_over() -> None:
    graph = rg.Graph(jit=True)
    x = graph.input(np.ones(8000))
    nodes = [x]
    for _ in range(6):
        nodes.append(nodes[-1] * 2.0)
    both = rg.concatenate([nodes[-1]] * 3)  # large enough to be handed out as a view
    held = []
    for i in range(6):
        x.set(np.full(8000, float(i)))
        held.append((nodes[-1].value, both.value))
    assert len(programs_of(graph)) == 1
    for i, (small, large) in enumerate(held):
        assert (small == 64.0 * i).all()
        assert (large == 64.0 * i).all()


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_an_edit_makes_another_program_of_the_same_steps() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph)
    z = graph.input(np.full(4, 0.3))
    read_often(x, y)
    after_first(y).replace_parent(0, z)
    other = rg.Graph(jit=False)
    _, y2 = chain(other)
    z2 = other.input(np.full(4, 0.3))
    after_first(y2).replace_parent(0, z2)
    for i in range(5):
        z.set(np.full(4, 0.1 * i))
        z2.set(np.full(4, 0.1 * i))
        assert bits(y.value) == bits(y2.value)
        assert y.value_version == i + 2 + 4
    assert len(programs_of(graph)) == 1


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_what_lies_under_a_program_is_kept_by_it() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph)
    read_often(x, y)
    (program,) = programs_of(graph)
    before = bits(y.value)
    for var in list(graph.nodes):
        graph._host._steps[var._slot] = UNBOUND
    graph._scheduler.plans.clear()
    program()
    assert bits(y.value) == before


@needs_machine
@pytest.mark.trusting
@pytest.mark.whole
def test_a_run_that_is_cancelled_leaves_the_nodes_of_a_program_stale_or_all_done() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph, 3)
    stop = [False]

    def count(v: Any) -> Any:
        if stop[0]:
            graph.cancel()
        return v

    middle = rg.lift(count, shape=(4,), dtype="f8")(y)
    z = middle
    for i in range(3):
        z = rg.tanh(z * (0.5 + i))
    read_often(x, z)
    assert len(programs_of(graph)) == 2
    x.set(np.zeros(4))
    stop[0] = True
    with pytest.raises(rg.Cancelled):
        graph.forward(z)
    assert [y.is_stale, middle.is_stale, z.is_stale] == [False, False, True]
    stop[0] = False
    graph.check_invariants()
    assert (z.value == 0.0).all()


@needs_machine
@pytest.mark.trusting
def test_under_a_watch_each_step_is_timed_by_itself() -> None:
    graph = rg.Graph(jit=True)
    x, y = chain(graph)
    expected = read_often(x, y)
    with graph.record() as log:
        assert read_often(x, y) == expected
    assert all(len(run.ran) == 20 for run in log.runs)
    assert read_often(x, y) == expected


@needs_machine
def test_infinities_and_nans_are_values_like_others() -> None:
    graph = rg.Graph(jit=True)
    x = graph.input(1.0)
    y = rg.log(x) / (x - 1.0) + rg.exp(x * 1e3) - rg.sqrt(x)
    plain = rg.Graph(jit=False)
    x2 = plain.input(1.0)
    y2 = rg.log(x2) / (x2 - 1.0) + rg.exp(x2 * 1e3) - rg.sqrt(x2)
    with np.errstate(all="raise"):
        for number in (1.0, 0.0, -1.0, np.inf, np.nan, 2.0) * 2:
            x.set(number)
            x2.set(number)
            assert bits(y.value) == bits(y2.value)


@needs_machine
def test_budgets_and_cutoffs_hold() -> None:
    graph = rg.Graph(jit=True, max_bytes=200)
    x, y = chain(graph)
    assert read_often(x, y) == read_often(*chain(rg.Graph(jit=False)))
    assert graph.stats().evicted > 0
    graph = rg.Graph(jit=True)
    x, y = chain(graph, 3)
    y.parents[0].cutoff = "equal"
    for i in range(6):
        x.set(np.full(4, float(i // 2)))
        y.value
    assert y.value_version == 3


def without_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "find_machine", lambda: None)


def test_without_a_machine_everything_works_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_machine(monkeypatch)
    with pytest.warns(rg.MissingExtraWarning, match=r'pip install "reactgrad\[jit\]"'):
        graph = rg.Graph(jit=True)
    assert not graph.jit
    assert read_often(*chain(graph)) == read_often(*chain(rg.Graph(jit=False)))
    assert programs_of(graph) == []


# --- loops of ops' own ---------------------------------------------------------------------------


def scaled_sums() -> Any:
    """A loop over rows of any number of operands: out[0] = the sum of all, out[1] = its double."""
    from numba import cfunc, types

    numbers = types.CPointer(types.intp)
    form = types.void(types.CPointer(types.CPointer(types.float64)), numbers, numbers, types.intp)

    @cfunc(form)
    def loop(args: Any, sizes: Any, steps: Any, count: int) -> None:
        total = 0.0
        for k in range(count):
            for i in range(sizes[0]):
                total += args[k][i if steps[k] else 0]
        args[count][0] = total
        args[count][1] = 2.0 * total

    return loop


@needs_machine
def test_a_loop_of_an_ops_own_takes_any_number_of_operands() -> None:
    loop = scaled_sums()
    terms = [np.arange(5.0), np.array([10.0]), np.broadcast_to(1.0, 5), np.ones(5)]
    out = np.zeros(2)
    step = loop_call(loop.address, [*terms, Whole(out)], len(terms))
    assert step is not None
    step()
    assert out.tolist() == [70.0, 140.0]
    (row,) = rows(np.frombuffer(step.code, np.int64).tolist())
    assert (row[OPERANDS], row[EXTENT]) == (5, 16)
    assert instructions(step) is step.code


@needs_machine
@pytest.mark.parametrize(
    "operands",
    [
        [np.ones(3), np.ones(3, "f4")],  # other dtypes
        [np.ones(6)[::2], np.ones(3)],  # not in one piece
        [np.ones(2), np.ones(3)],  # other sizes
        [np.ones(3), Whole(np.ones(6)[::2])],
        [3.0, np.ones(3)],  # no array
    ],
)
def test_operands_that_a_loop_does_not_take_are_refused(operands: Any) -> None:
    assert loop_call(1, operands) is None


@needs_machine
def test_who_reads_a_part_of_a_whole_result_waits_for_it() -> None:
    loop = scaled_sums()
    wide, both, out = np.ones(100), np.zeros(2), np.empty(100)
    whole = loop_call(loop.address, [wide, Whole(both)], 1)
    steps: list[Any] = [
        partial(np.tanh, out, wide),
        whole,
        partial(np.multiply, wide, both[1:], out),  # the second number, not the first
    ]
    codes = b"".join(instructions(one) for one in steps)  # type: ignore[misc]
    found = rows(np.frombuffer(codes, np.int64).tolist())
    assert staged(found) == [([found[0]], 100), ([found[1]], 0), ([found[2]], 100)]


@needs_machine
def test_a_kernel_of_kind_jit_is_taken_in_graphs_with_jit_alone() -> None:
    made: list[str] = []

    def bind(inputs: Any, out: Any, attrs: Any) -> Any:
        made.append("jit")
        return None if attrs[0] == "plain" else partial(np.negative, *inputs, out)

    @rg.extend.primitive("negated_by", lambda x, how: x, elementwise=True)
    def negated_by(x: Any, out: Any, how: str) -> None:
        made.append("cpu")
        np.negative(x, out)

    rg.extend.register_binder("negated_by", "jit", bind)
    for jit, how, expected in (
        (True, "loop", ["jit"]),
        (True, "plain", ["jit", "cpu"]),
        (False, "loop", ["cpu"]),
    ):
        y = negated_by(rg.Graph(jit=jit).input([1.0, 2.0]), how=how)
        assert y.value.tolist() == [-1.0, -2.0]
        assert made == expected
        made.clear()


def test_the_switch_in_a_graph_that_was_forked() -> None:
    """Steps are bound anew in both, whose columns are shared."""
    g = rg.Graph()
    x = g.param(0.5)
    y = rg.tanh(x) * 2.0
    expected = y.value
    h = g.fork()
    for graph in (g, h):
        graph.jit = True
        graph[x].set(0.25)
        graph[x].set(0.5)
        np.testing.assert_allclose(graph[y].value, expected, rtol=1e-12)
        graph.jit = False
        graph[x].set(0.25)
        graph[x].set(0.5)
        assert graph[y].value == expected


@pytest.mark.slow
@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")
def test_the_loop_is_compiled_once_for_all_processes(tmp_path: Path) -> None:
    program = """
import sys
sys.modules["reactgrad.backend.machine._driver"] = None  # as if there had been no compiler
import reactgrad as rg
from reactgrad.backend.machine import _machine

g = rg.Graph(jit=True)
x = g.input(1.0)
y = rg.tanh(rg.tanh(x * 0.5) * 0.5)
for i in range(5):
    x.set(float(i))
    y.value
loops = [one for one in vars(_machine).values() if hasattr(one, "stats")]
print(len(loops), sum(sum(one.stats.cache_hits.values()) for one in loops))
"""
    path = os.pathsep.join([*sys.path, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    loops = runs[0][0]
    assert int(loops) > 0
    assert runs == [[loops, "0"], [loops, loops]]


@pytest.mark.trusting
@pytest.mark.whole
@needs_machine
def test_by_default_a_plan_becomes_a_program_once_it_runs_often() -> None:
    graph, eager = rg.Graph(), rg.Graph(jit=True)
    graph._host.registers = eager._host.registers._replace(patient=True)  # type: ignore[union-attr]
    (x, y), (same_x, same_y) = chain(graph), chain(eager)
    seen: list[bool] = []
    for number in range(40):
        x.set(np.full(4, float(number)))
        same_x.set(np.full(4, float(number)))
        assert bits(y.value) == bits(same_y.value)
        assert y.value_version == same_y.value_version
        seen.append(bool(programs_of(graph)))
    assert not any(seen[:10])
    assert seen[-1]
    # Results that are handed out move, and their steps with them: the program stays.
    (program,) = programs_of(graph)
    kept = [y.value]
    for number in range(5):
        x.set(np.full(4, 0.1 * number))
        same_x.set(np.full(4, 0.1 * number))
        kept.append(y.value)
        assert bits(kept[-1]) == bits(same_y.value)
    assert programs_of(graph) == [program]
    assert len({id(one) for one in kept}) == 6
