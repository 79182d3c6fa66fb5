"""B13: building a graph of 100,000 nodes, beside PyTorch's tape; memory; import."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, within
from bench._peers import load

WINDOW = 64


class Tape:
    """A random sequence of ``a+b``, ``a*0.5`` and ``tanh(a)`` on earlier values, which stay small."""

    def __init__(self, nodes: int, permuted: bool) -> None:
        pick = Random(41 if permuted else 31)
        self.pairs = [
            (pick.randrange(max(0, i - WINDOW), i), pick.randrange(max(0, i - WINDOW), i))
            for i in range(2, nodes + 2)
        ]

    def run(self, first: Any, second: Any, tanh: Callable[[Any], Any]) -> list[Any]:
        """Return all values: a third sums of two, a third halves, a third of one function."""
        values = [first, second]
        for i, (a, b) in enumerate(self.pairs):
            if i % 3 == 0:
                values.append(values[a] + values[b])
            elif i % 3 == 1:
                values.append(values[a] * 0.5)
            else:
                values.append(tanh(values[a]))
        return values


class Built:
    """A graph, and what keeps its nodes alive."""

    def __init__(self, tape: Tape, numbers: tuple[float, float]) -> None:
        self.graph = rg.Graph()
        first, second = (self.graph.param(number) for number in numbers)
        self.first = first
        self.values = tape.run(first, second, rg.tanh)


def build(tape: Tape) -> Step:
    """Return a step that builds the graph."""
    return lambda numbers: Built(tape, numbers)


def build_and_read(tape: Tape) -> Step:
    """Return a step that builds the graph and reads all nodes."""

    def step(numbers: Any) -> Any:
        built = Built(tape, numbers)
        built.graph.forward(*built.values)
        return built

    return step


def in_torch(tape: Tape) -> Step:
    """Return a step that records PyTorch's tape."""
    torch = load("torch")

    def step(numbers: Any) -> Any:
        first, second = (torch.tensor(n, dtype=torch.float64, requires_grad=True) for n in numbers)
        return tape.run(first, second, torch.tanh)

    return step


def last_of(values: Any) -> Any:
    """Return the last values, for comparing."""
    return [value.item() for value in values[-WINDOW:]]


def importing(package: str) -> Step:
    """Return a step that returns the seconds of an import statement, as a fresh interpreter reports
    them.
    """
    code = f"from time import perf_counter as t; b = t(); import {package}; print(repr(t() - b))"

    def step(_: Any) -> float:
        path = [entry for entry in sys.path if entry]
        code_with_path = f"import sys; sys.path[:] = {path!r}; {code}"
        command = [sys.executable, "-I", "-c", code_with_path]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    return step


def bytes_a_node(tape: Tape, *, read: bool) -> tuple[float, None]:
    """Return the memory of a node, by tracemalloc.

    With ``read``, also of values, marks and bound steps.
    """
    nodes = len(tape.pairs)
    gc.collect()
    tracemalloc.start()
    try:
        built = Built(tape, (0.5, 0.25))
        if read:
            built.graph.forward(*built.values)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return taken / nodes, None


def change_and_read(tape: Tape) -> Step:
    """Return a step that sets one leaf and reads all that depends on it."""
    built = Built(tape, (0.5, 0.25))
    graph, first, wanted = built.graph, built.first, built.values[-WINDOW:]
    graph.forward(*wanted)

    def step(numbers: tuple[float, float]) -> Any:
        first.set(numbers[0])
        graph.forward(*wanted)
        return wanted

    return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    nodes = setting.size(100_000, 200)
    tape = Tape(nodes, setting.permuted)

    def numbers(rng: np.random.Generator) -> tuple[float, float]:
        return float(rng.normal()), float(rng.normal())

    def shown(built: Any) -> Any:
        return [value.value for value in built.values[-WINDOW:]]

    torch = Side("PyTorch's tape", lambda: in_torch(tape), show=last_of, needs="torch")
    found: list[Case] = [
        Contest(
            f"build {nodes:,} nodes",
            numbers,
            Side("reactgrad", lambda: build(tape), show=shown),
            (Peer(torch, at_most(1.5)),),
            goal=within(3e-6),
            unit="node",
            per=nodes,
        ),
        Contest(
            f"build {nodes:,} nodes and read them for the first time",
            numbers,
            Side("reactgrad", lambda: build_and_read(tape), show=shown),
            (Peer(torch),),
            goal=within(8e-6),
            unit="node",
            per=nodes,
        ),
        Count(
            "memory, built", "B a node", lambda: bytes_a_node(tape, read=False), goal=within(1024)
        ),
        Count(
            "memory, built and read",
            "B a node",
            lambda: bytes_a_node(tape, read=True),
            goal=within(1024),
        ),
        Contest(
            "import reactgrad",
            lambda rng: None,
            Side("reactgrad", lambda: importing("reactgrad"), reports=True),
            (Peer(Side("import numpy", lambda: importing("numpy"), reports=True), at_most(1.5)),),
            alike=False,
        ),
    ]
    many = setting.size(1_000_000, 400)
    for name, make in (
        ("build", build),
        ("build and read for the first time", build_and_read),
        ("one change reread", change_and_read),
    ):

        def side(called: str, size: int, make: Any = make) -> Side:
            # Apart: the more objects other sides have loaded, the later the collector scans ours.
            return Side(called, lambda: make(Tape(size, setting.permuted)), apart=True)

        found += [
            Contest(
                f"{name}, {many:,} nodes beside {nodes:,}",
                numbers,
                side("reactgrad", many),
                # Ten times the nodes: linear means ten times the time.
                (Peer(side(f"itself at {nodes:,}", nodes), at_most(1.2 * many / nodes)),),
                alike=False,
            )
        ]
    return found


WORKLOAD = Workload("B13", "build", cases)


def test_b13(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
