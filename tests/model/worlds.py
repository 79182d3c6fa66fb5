"""A graph, its model and what is held of both; numbers that stand for decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.backend import _device
from reactgrad.values._columns import MISSING
from tests.model import computations, naive
from tests.model.computations import Failure, Loop
from tests.model.naive import Model

COPY_LIMIT = _device.COPY_LIMIT
MOST_NODES, MOST_WORLDS = 16, 3

# Bytes, since integers of a wide range are mostly small: all choices but the first would be 0.
CODES = st.binary(min_size=7, max_size=7).map(lambda some: int.from_bytes(some, "little"))
SHAPES: list[tuple[int, ...]] = [(2,), (), (2, 3), (3,), (1, 3), (3, 1)]
OPS: dict[str, Callable[..., rg.Var]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": rg.maximum,
    "twice": lambda a: a * 2.0,
    "sum": lambda a: a.sum(),
    "sum_rows": lambda a: a.sum(axis=0),
    "max": lambda a: a.max(),
    "transpose": rg.transpose,
    "flip": lambda a: a[::-1],
    "row": lambda a: a[0],
    "flat": lambda a: rg.reshape(a, (-1,)),
}
RULES: dict[str, Any] = {
    "equal": "equal",
    "close": rg.tolerance(atol=2.0),
    "same_first": computations.same_first,
    "picky": computations.picky,
}
KINDS = {Failure: Failure, Loop: rg.CycleError, ValueError: Exception}
COMPUTED = computations.FUNCTIONS | computations.READERS


class Code:
    """A number, used up choice by choice: one draw each, which shrinks towards simple choices."""

    def __init__(self, number: int) -> None:
        self.number = number

    def pick(self, count: int) -> int:
        self.number, chosen = divmod(self.number, count)
        return chosen

    def among(self, options: Sequence[Any]) -> Any:
        return options[self.pick(len(options))]

    def array(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Small integers, rarely a NaN."""
        size = int(np.prod(shape))
        values = np.array([float(self.pick(7)) - 1.0 for _ in range(size)]).reshape(shape)
        if size and self.pick(30) == 29:
            values.flat[0] = np.nan
        return values


class Abort(Exception):
    """What ends a transaction, or a block of edits."""


class Trouble(Exception):
    """What observers raise."""


# Who plays; a function that a file shall name has no other way to know.
playing: Any = None


def compute(value: Any, *, op: str, uid: int) -> Any:
    """The Python function of all nodes that call one."""
    playing.called.append(uid)
    sources = playing.now.sources
    return COMPUTED[op](lambda position: sources[uid][position].value, value)


class World:
    """A graph, its model, and the handles that are held."""

    def __init__(self, graph: rg.Graph, model: Model) -> None:
        self.graph = graph
        self.model = model
        self.vars: dict[int, rg.Var] = {}
        self.uid_of: dict[str, int] = {}  # by name
        # What readers read. In a fork these are Vars of its origin, and mean their twins.
        self.sources: dict[int, tuple[rg.Var, ...]] = {}
        self.observers: dict[int, rg.Observer] = {}
        self.failed: set[int] = set()  # in runs of which observers of errors were not told yet
        self.gradients = False  # whether nodes of gradients may be in the graph, too
        self.handed: dict[int, tuple[int, Any]] = {}  # the value that callers got last, by version

    @property
    def limited(self) -> bool:
        """Whether the graph has a memory budget."""
        return self.graph.max_bytes is not None

    def released_any(self) -> None:
        """With a memory budget any computed value may be gone by now."""
        if self.limited:
            nodes = self.model.nodes.values()
            self.model.released |= {n.uid for n in nodes if n.op != "leaf" and not n.pinned}

    def out_of_memory(self) -> set[int]:
        """Nodes that have a value which is not there now: it was released."""
        data, nodes = self.graph._host.data, self.model.nodes
        gone = {self.uid_of.get(v.name) for v in self.graph.nodes if data[v._slot] is MISSING}
        return {uid for uid in gone & nodes.keys() if nodes[uid].value is not computations.MISSING}

    def note_lost(self) -> None:
        """A cutoff given to a released value has nothing to compare the next one with."""
        self.model.lost |= {u for u in self.out_of_memory() if self.model.nodes[u].cutoff}

    def expect(self, uids: Iterable[int], *, retry: bool = False) -> naive.Outcome:
        """What a read of these nodes will do."""
        if self.model.lost:
            self.model.lost &= self.out_of_memory()
        return self.model.read(uids, retry=retry)

    def held(self, accept: Callable[[naive.Node], object] = lambda node: True) -> list[int]:
        return [uid for uid in self.vars if accept(self.model.nodes[uid])]
