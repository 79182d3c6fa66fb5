"""Functions that read others, read again and again: what is replayed is what would be found out."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.core._handles import release_values

pytestmark = pytest.mark.trusting


class Layers:
    """Random layers of functions: some get all of their sources, some read all but the first.

    A reader leaves out one source, or reads it from another layer, or raises, by the value of its first.
    """

    def __init__(self, seed: int, *, distrust: bool, cutoffs: float = 0.0) -> None:
        pick = Random(seed)
        self.graph = g = rg.Graph()
        g._scheduler.distrust = distrust
        self.inputs = [g.input(2 * i, name=f"x{i}") for i in range(5)]
        self.nodes: list[rg.Var] = []
        above: list[rg.Var] = list(self.inputs)
        for layer in range(5):
            row = []
            for i in range(5):
                sources = [above[(i + k) % 5] for k in range(3)]
                cutoff = "equal" if pick.random() < cutoffs else None
                if pick.random() < 0.5:
                    var = self.reader(sources, pick.choice(self.nodes or self.inputs), cutoff)
                else:
                    var = rg.lift(lambda *values: sum(values) % 91_000, cutoff=cutoff)(*sources)
                var.name = f"n{layer}_{i}"
                row.append(var)
            above = row
            self.nodes += row
        self.ends = above

    @staticmethod
    def reader(sources: list[rg.Var], far: rg.Var, cutoff: str | None) -> rg.Var:
        first, *rest = sources

        def read(value: int) -> int:
            if value % 13 == 12:
                raise ValueError(value)
            left_out = value % 7
            for i, source in enumerate(rest):
                if i == left_out:
                    continue
                value += source.value
            if left_out == 5:
                value += far.value + far.value
            return value % 91_000

        return rg.lift(read, cutoff=cutoff)(first)

    def turn(self, changes: dict[int, int], wanted: list[int]) -> dict[str, Any]:
        """Set some inputs, read some ends, and say what happened."""
        self.graph.set({self.inputs[i]: value for i, value in changes.items()})
        targets = [self.ends[i] for i in wanted]
        try:
            self.graph.forward(*targets)
        except ValueError:
            pass
        run = self.graph.last_run
        self.graph.check_invariants()
        return {
            "ran": sorted(var.name for var in run.ran),
            "cut off": sorted(var.name for var in run.cut_off),
            "failed": sorted(var.name for var in run.failed),
            "versions": [var.value_version for var in self.nodes],
            "records": [var.parent_versions for var in self.nodes],
            "parents": [[p.name for p in var.parents] for var in self.nodes],
            "stale": [var.is_stale for var in self.nodes],
            "values": [
                None if var.is_stale or var.state == "failed" else var.value for var in targets
            ],
        }


@pytest.mark.slow
@pytest.mark.parametrize("cutoffs", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_replayed_is_what_versions_say(seed: int, cutoffs: float) -> None:
    hot = Layers(seed, distrust=False, cutoffs=cutoffs)
    cold = Layers(seed, distrust=True, cutoffs=cutoffs)
    pick = Random(seed)
    for _ in range(6):
        # The same inputs and ends again and again; mostly the same values modulo all that matters.
        changed = pick.sample(range(5), 2)
        wanted = pick.sample(range(5), 3)
        for _ in range(12):
            odd = pick.random() < 0.15
            values = {i: pick.randrange(1000) if odd else 91 * pick.randrange(10) for i in changed}
            assert hot.turn(values, wanted) == cold.turn(values, wanted)
    stats = hot.graph.stats()
    assert cutoffs or stats.plan_hits, "nothing was replayed, so this shows nothing"


def hot(step: Callable[[int], None], turns: int = 6) -> None:
    for i in range(turns):
        step(i)


def test_a_node_that_is_only_read_is_replayed_inside_of_its_reader() -> None:
    g = rg.Graph()
    x = g.input(0)
    calls: list[str] = []
    double = rg.lift(lambda v: calls.append("double") or 2 * v)(x)
    reader = rg.lift(lambda v: calls.append("reader") or v + double.value)(x)
    hits = 0
    for i in range(8):
        calls.clear()
        hits = g.stats().plan_hits
        x.set(i)
        assert reader.value == 3 * i
        assert calls == ["reader", "double"]
        assert g.last_run.ran == [double, reader]
    assert g.stats().plan_hits == hits + 1
    assert (double.value_version, reader.value_version) == (8, 8)
    assert reader.parent_versions == (9, 8)


def test_what_a_hot_reader_does_not_ask_for_does_not_run() -> None:
    g = rg.Graph()
    x = g.input(0)
    calls: list[int] = []
    costly = rg.lift(lambda v: calls.append(v) or -v)(x)
    reader = rg.lift(lambda v: costly.value if v % 100 else 0)(x)
    hot(lambda i: (x.set(i + 1), reader.value))
    calls.clear()
    x.set(100)
    assert reader.value == 0
    assert not calls
    assert costly.is_stale
    assert reader.parents == [x]
    x.set(7)
    assert reader.value == -7
    assert reader.parents == [x, costly]
    g.check_invariants()


def test_a_hot_reader_that_reads_more_reads_it_fresh() -> None:
    g = rg.Graph()
    x = g.input(0)
    one, two = rg.lift(lambda v: v + 1)(x), rg.lift(lambda v: v + 2)(x)
    more = [False]
    reader = rg.lift(lambda v: one.value + (two.value if more[0] else 0))(x)
    after = rg.lift(lambda r, o: r * o)(reader, one)
    hot(lambda i: (x.set(i), after.value))
    more[0] = True
    x.set(10)
    assert after.value == (11 + 12) * 11
    assert g.last_run.ran == [one, two, reader, after]
    g.check_invariants()


def test_an_error_in_what_a_hot_reader_reads_reaches_it_with_its_note() -> None:
    g = rg.Graph()
    x = g.input(1)
    inverse = rg.lift(lambda v: 1 / v)(x)
    inverse.name = "inverse"
    reader = rg.lift(lambda v: inverse.value + v)(x)
    after = rg.lift(lambda v: -v)(reader)
    hot(lambda i: (x.set(i + 1), after.value))
    x.set(0)
    with pytest.raises(ZeroDivisionError) as caught:
        after.value
    assert "node 'inverse'" in caught.value.__notes__[0]
    assert g.last_run.failed == [inverse, reader]
    x.set(1)
    assert after.value == -2.0
    g.check_invariants()


def test_a_hot_reader_that_reads_itself_through_others_is_a_cycle() -> None:
    g = rg.Graph()
    x = g.input(0)
    late: list[rg.Var] = []
    reader = rg.lift(lambda v: v + (late[0].value if v == 99 else 0))(x)
    late.append(rg.lift(lambda v: v + 1)(reader))
    hot(lambda i: (x.set(i), late[0].value))
    x.set(99)
    with pytest.raises(rg.CycleError):
        late[0].value
    x.set(1)
    assert late[0].value == 2
    g.check_invariants()


def test_reads_that_alternate_are_both_replayed() -> None:
    """A plan knows which reads it was found with, and comes back with them."""
    g = rg.Graph()
    x, switch = g.input(0), g.input(True)
    left, right = rg.lift(lambda v: v + 1)(x), rg.lift(lambda v: v + 2)(x)
    reader = rg.lift(lambda on: (left if on else right).value)(switch)

    def turn(i: int) -> None:
        switch.set(i % 2 == 0)
        assert reader.value == (left if i % 2 == 0 else right).value
        for k in range(4):
            x.set(10 * i + k)
            assert reader.value == 10 * i + k + (1 if i % 2 == 0 else 2)

    hot(turn, 8)
    misses = g.stats().plan_misses
    turn(8)
    after = g.stats().plan_misses - misses
    assert after <= 2, "only where the reader turns to the other one"


@pytest.mark.parametrize("inherit", [True, False])
def test_threads_that_a_hot_reader_waits_for_read_for_it(inherit: bool) -> None:
    g = rg.Graph()
    x = g.input(0)
    sides = [rg.lift(lambda v, k=k: v + k)(x) for k in range(4)]

    with ThreadPoolExecutor(2) as pool:

        def read(value: int) -> int:
            total = sides[0].value
            if value % 5 == 4:
                look = lambda k: sides[k].value  # noqa: E731
                run = contextvars.copy_context().run if inherit else lambda f, *a: f(*a)
                total += pool.submit(run, look, 1).result()
            return total + sides[2].value

        reader = rg.lift(read)(x)
        for i in range(20 if inherit else 6):
            x.set(i)
            assert reader.value == 2 * i + 2 + (i + 1 if i % 5 == 4 else 0)
            g.check_invariants()
    parents = {var.name for var in reader.parents}
    assert {sides[0].name, sides[2].name} <= parents


def test_a_hot_reader_that_is_interrupted_leaves_the_graph_consistent() -> None:
    g = rg.Graph()
    x = g.input(0)
    stop = [False]

    def halfway(v: int) -> int:
        if stop[0]:
            raise KeyboardInterrupt
        return v + 1

    inner = rg.lift(halfway)(x)
    reader = rg.lift(lambda v: v + inner.value)(x)
    after = rg.lift(lambda r: -r)(reader)
    hot(lambda i: (x.set(i), after.value))
    stop[0] = True
    x.set(50)
    with pytest.raises(KeyboardInterrupt):
        after.value
    g.check_invariants()
    stop[0] = False
    assert after.value == -101


def test_watching_a_hot_reader_sees_every_node_and_changes_nothing() -> None:
    g = rg.Graph()
    x = g.input(0)
    inner = rg.lift(lambda v: v + 1)(x)
    reader = rg.lift(lambda v: v + inner.value)(x)
    hot(lambda i: (x.set(i), reader.value))
    with g.record() as log:
        x.set(7)
        assert reader.value == 15
    assert log.runs[-1].ran == [inner, reader]
    x.set(8)
    assert reader.value == 17
    g.check_invariants()


def test_a_hot_reader_in_a_fork_reads_the_twin() -> None:
    g = rg.Graph()
    x = g.input(0)
    inner = rg.lift(lambda v: v + 1)(x)
    reader = rg.lift(lambda v: v + inner.value)(x)
    hot(lambda i: (x.set(i), reader.value))
    h = g.fork()
    for i in range(6):
        h[x].set(100 + i)
        assert h[reader].value == 201 + 2 * i
    assert reader.value == 11
    x.set(1)
    assert reader.value == 3


def test_a_hot_reader_of_a_released_value_has_it_computed_again() -> None:
    g = rg.Graph()
    x, a = g.input(0), g.input(np.full(50_000, 2.0))  # too large to be handed out as a copy
    far = a * 3.0
    reader = rg.lift(lambda v: v + float(far.value[0]))(x)
    hot(lambda i: (x.set(i), reader.value))
    release_values(g, [far._slot])
    x.set(9)
    assert reader.value == 15.0
    assert far in g.last_run.rebuilt
    g.check_invariants()


KINDS: dict[str, Callable[[int], Any]] = {
    "array": lambda v: np.full(3, float(v)),
    "large array": lambda v: np.full(50_000, float(v)),
    "0-d": np.float64,
    "float": float,
    "int": int,
    "big int": lambda v: 10**30 + v,
    "text": str,
    "nothing": lambda v: None,
    "list": lambda v: [v],
}


NUMERIC = [kind for kind, make in KINDS.items() if isinstance(make(0), np.ndarray | float | int)]


@pytest.mark.parametrize(
    ("kind", "by_op"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in NUMERIC)]
)
def test_values_of_every_kind_are_read_as_outside_and_never_change_later(
    kind: str, by_op: bool
) -> None:
    make = KINDS[kind]
    g = rg.Graph()
    x, still = g.input(0), g.input(make(3))
    if by_op:
        moving = g.input(make(0)) + 1.0
        leaf = moving.parents[0]
    else:
        leaf = g.input(make(0))
        moving = rg.lift(lambda v: v)(leaf)
    g.keep(moving)
    seen: list[tuple[Any, Any, str]] = []
    same: list[bool] = []

    def read(v: int) -> int:
        values = still.value, moving.value, still.value, moving.value
        same.append(values[0] is values[2] and values[1] is values[3])
        seen.append((values[0], values[1], repr(values[:2])))
        return v

    reader = rg.lift(read)(x)
    after = rg.lift(lambda r: r + 1)(reader)
    for i in range(8):
        g.set({x: i} if i % 4 == 3 else {x: i, leaf: make(i)})
        assert after.value == i + 1
        assert seen[-1][0] is still.value
        assert seen[-1][1] is moving.value
        assert reader.parents == [x, still, moving]
        g.check_invariants()
    assert all(same)
    assert all(repr((a, b)) == told for a, b, told in seen), "what was read is as it was then"
    for value in seen[-1][:2]:
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


def test_a_reader_is_expected_to_read_what_it_read_the_last_time() -> None:
    """Where it was set from before does not matter: also a first read of its kind is a plan."""
    g = rg.Graph()
    xs = [g.input(i) for i in range(4)]
    total = rg.lift(lambda *values: sum(values))(*xs)
    inner = rg.lift(lambda v: v + 1)(total)
    only_read = rg.lift(lambda v: -v)(total)
    reader = rg.lift(lambda v: v + only_read.value)(inner)
    assert reader.value == 1
    suspended = 0
    former = g._scheduler.suspend

    def suspend() -> None:
        nonlocal suspended
        suspended += bool(g._scheduler.frames)
        former()

    g._scheduler.suspend = suspend  # type: ignore[method-assign]
    for x in xs:
        x.set(10)
        assert reader.value == 1
        assert g.last_run.ran == [total, inner, only_read, reader]
        g.check_invariants()
    assert not suspended
    assert reader.parent_versions == (5, 5)


def test_a_thread_that_nobody_waits_for_is_given_nothing_of_a_run_under_way() -> None:
    """It reads what the function is expected to read, while that runs, and is not taken for it."""
    g = rg.Graph()
    x, far = g.input(0), g.input(5)
    inner, beside = rg.lift(lambda v: v + 1)(x), rg.lift(lambda v: 2 * v)(x)
    begun, asked = Event(), Event()
    wait = [False]

    def read(v: int) -> int:
        if wait[0]:
            begun.set()
            asked.wait(10)
        return v + far.value

    reader = rg.lift(read)(inner)
    g.keep(reader)
    hot(lambda i: (x.set(i), g.forward(reader, beside)))
    got: list[tuple[int, int, int]] = []

    def other() -> None:
        begun.wait(10)
        Timer(0.05, asked.set).start()
        got.append((beside.value, inner.value, far.value))

    wait[0] = True
    thread = Thread(target=other)
    thread.start()
    x.set(20)
    g.forward(reader, beside)
    thread.join(10)
    assert got == [(40, 21, 5)]
    assert reader.parents == [inner, far]
    assert reader.value == 26
    g.check_invariants()


@pytest.mark.parametrize("cutoff", ["equal", None])
def test_who_reads_another_only_sometimes_gets_its_present_value(
    g: rg.Graph, cutoff: str | None
) -> None:
    """A plan of a run in which it read nothing does not do for one in which it reads."""
    x = g.input(0.0)
    halves = rg.floor(x * 0.5)
    halves.cutoff = cutoff
    read = rg.lift(lambda v: float(halves.value) if v % 2 == 0 else -1.0)(x)
    pick = Random(7)
    for value in [2, -2, -3, 4, -4, *[pick.randint(-4, 4) for _ in range(300)]]:
        x.set(float(value))
        assert read.value == (value // 2 if value % 2 == 0 else -1.0)
        assert read.parents == ([x, halves] if value % 2 == 0 else [x])
        g.check_invariants()


def test_who_reads_another_no_more_does_not_run_for_it(g: rg.Graph) -> None:
    x, z = g.input(1.0), g.input(1.0)
    cut = rg.floor(x * 0.5)
    cut.cutoff = "equal"
    first = rg.lift(lambda v: v - 1.0 if v <= 0 else v + z.value - 2.0)(x)
    second = rg.lift(lambda v: v + (cut.value if v > 0 else 0.0))(first)
    for value in [3.0, 4.0, -2.0, 3.0, 1.0] * 4:
        x.set(value)
        inner = value - 1.0
        assert second.value == inner + (value // 2 if inner > 0 else 0.0)
        assert second.parents == ([first, cut] if inner > 0 else [first])
        assert first.parents == ([x, z] if value > 0 else [x])
