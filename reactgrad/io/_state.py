"""Everything that a graph is, as one immutable snapshot.

Nodes are numbered in order of creation. ``State`` holds one column for each property that every
node has, and pairs of a node and an entry for properties that only some have. Of a gradient program
that gave out nodes that are there, it has a record by which these follow edits and new shapes; nodes
that only programs keep alive are left out and built again when a gradient is asked for. Not part of
it are observers, hooks, ``.grad`` and stored errors: a node that raised, or caught an
error of another one, runs again. Nor are marks: versions are the truth (rule E16 of the design),
and ``restore`` derives the marks from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from reactgrad.autodiff._custom import CHECKED as CHECKED  # with it OPS has all ops
from reactgrad.autodiff._record import Record
from reactgrad.backend import Spec
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import CONST, FEED, INPUT, KEY, MODE, PARAM, SEED, Leaf, Op, Output
from reactgrad.nodes._scope import made_name


class Absent(Enum):
    """The reason why a snapshot has no value of a node."""

    # Not set, or not needed: a stale node runs before it is read, a clean one whose value was
    # released is computed again at its version (rule E17).
    MISSING = "missing"
    VIEW = "view"  # a view of the first parent's value


@dataclass(frozen=True, slots=True)
class Computation:
    """An op with its attributes."""

    op: Op
    attrs: tuple[Any, ...]


class Choice(Enum):
    """A node that passes on the value of one of two others; ``State.choices`` says which."""

    SWITCH = "switch"

    @property
    def name(self) -> str:
        """A name, as ops have one."""
        return self.value


LEAVES = {leaf.name: leaf for leaf in (INPUT, PARAM, CONST, SEED, MODE, FEED, KEY)}
Definition = Leaf | Computation | Lifted | Choice | Output
Column = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A graph at one moment.

    Attributes
    ----------
    seed, next_serial, max_bytes, device
        The graph's seed of random nodes, the serial of its next node, its memory budget, and the device of
        its arrays.
    definitions, specs
        The definitions and specs of nodes, each listed once.
    definition, spec
        For each node the positions of its definition and spec in these lists.
    serial, rank, version
        The node's serial, its topological rank, its value version.
    parents, parent_count
        The parents of all nodes one after the other, and the number of parents of each node.
    records, record_count
        Likewise the versions of the parents that values were computed from; -1: no record.
    values
        For each node its value (arrays, NumPy scalars, any objects) or an ``Absent``.
    names, scopes, kept, forced, frozen, retained, numbers, closed, cutoffs, former_cutoffs, patterns,
    dtypes, pins, choices, dynamic
        Entries for some nodes: names; the scope that they were built in; being kept alive; having to
        run whatever the versions say; frozen; ``retain_grad``; shared constants; detached edges
        (``None``: all); cutoffs; a value that a cutoff may have kept and that has been released
        (``Host.former_cutoffs``); declared shapes; declared dtypes;
        parents of pinned nodes; the condition and the branches of choices; how many
        parents of a function are arguments, where it has read the others.
    gradients
        Records of gradient programs, in order of creation.
    """

    seed: int
    next_serial: int
    definitions: tuple[Definition, ...]
    specs: tuple[Spec | None, ...]
    definition: Column
    spec: Column
    serial: Column
    rank: Column
    version: Column
    parents: Column
    parent_count: Column
    records: Column
    record_count: Column
    values: tuple[Any, ...]
    max_bytes: int | None = None
    device: str = "cpu"
    names: tuple[tuple[int, str], ...] = ()
    scopes: tuple[tuple[int, str], ...] = ()
    kept: tuple[int, ...] = ()
    forced: tuple[int, ...] = ()
    frozen: tuple[int, ...] = ()
    retained: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    closed: tuple[tuple[int, tuple[int, ...] | None], ...] = ()
    cutoffs: tuple[tuple[int, Callable[[Any, Any], Any]], ...] = ()
    former_cutoffs: tuple[int, ...] = ()
    patterns: tuple[tuple[int, Spec], ...] = ()
    dtypes: tuple[tuple[int, np.dtype[Any]], ...] = ()
    pins: tuple[tuple[int, tuple[int, ...], int | None], ...] = ()
    choices: tuple[tuple[int, tuple[int, ...]], ...] = ()
    dynamic: tuple[tuple[int, int], ...] = ()
    gradients: tuple[Record, ...] = ()

    def __len__(self) -> int:
        return len(self.serial)

    def label(self, node: int) -> str:
        """Return the name of a node, for messages."""
        for other, name in self.names:
            if other == node:
                return name
        definition = self.definitions[self.definition[node]]
        op = definition.op if isinstance(definition, Computation) else definition
        return made_name(op, int(self.serial[node]), dict(self.scopes).get(node, ""))


# --- from a graph to its state -----------------------------------------------------------------


def column(numbers: Any) -> Column:
    """Return a read-only column of integers."""
    made = np.array(numbers, np.int64)
    made.flags.writeable = False
    return made


# --- from a state to a graph -------------------------------------------------------------------
