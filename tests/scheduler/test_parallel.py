"""Independent nodes run in several threads: nothing but the time tells."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad_scheduler import lock
from reactgrad_scheduler.executors import threads


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No thread outlives the read that began it."""
    before = threading.active_count()
    yield
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.001)  # those that a test began itself
    assert threading.active_count() == before


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node counts as one that takes long."""
    monkeypatch.setattr(threads, "LONG", 0.0)


def within_time(act: Callable[[], Any]) -> Any:
    """The outcome of something that, if it hangs, shall fail."""
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(act())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60.0)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]
    return outcome[0]


def plus(number: int) -> Callable[[rg.Var], rg.Var]:
    return rg.lift(lambda value: value + number)


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


def recipes(draw: Callable[..., Any], count: int) -> list[Recipe]:
    found: list[Recipe] = []
    for i in range(count):
        earlier = st.integers(0, i + 1)  # two leaves, then the nodes
        found.append(
            Recipe(
                draw(st.sampled_from(["sum", "sum", "fail", "read", "read", "catch", "ufunc"])),
                tuple(draw(st.lists(earlier, min_size=1, max_size=3))),
                tuple(draw(st.lists(earlier, min_size=1, max_size=3))),
                draw(st.integers(1, 4)),
                draw(st.booleans()),
                draw(st.integers(0, 3)),
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
            sorted(self.names(run.skipped)),
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
        st.sampled_from(["set", "read", "read", "read", "retry", "observe", "release"]),
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
            model.graph._release([model.nodes[i]._slot for i in numbers])
        else:
            log.append(model.read(numbers, kind == "retry"))
            log.append(model.seen())
        model.graph.check_invariants()
        log.append(model.truth())
    return [*log, model.told, model.calls]


@given(programs(), st.integers(2, 4))
def test_parallel_equals_serial(program: Any, size: int) -> None:
    before, threads.LONG = threads.LONG, 0.0
    try:
        expected = play(*program, rg.Serial())
        found = within_time(lambda: play(*program, rg.Threads(size)))
        assert found == expected
    finally:
        threads.LONG = before
