"""Buffers that are counted, and chains of large arrays."""

from __future__ import annotations

import weakref

import numpy as np

import reactgrad as rg

ROW = 1000  # elements
SIZE = 8 * ROW  # bytes


class Buffers:
    """The arrays that the engine has allocated for values and that are still there.

    Counted where they are made and when they die, and not by the engine.
    """

    def __init__(self) -> None:
        self.bytes = self.peak = 0

    def add(self, array: np.ndarray) -> None:
        self.bytes += array.nbytes
        self.peak = max(self.peak, self.bytes)
        weakref.finalize(array, self.remove, array.nbytes)

    def remove(self, size: int) -> None:
        self.bytes -= size


def chain(g: rg.Graph, length: int) -> list[rg.Var]:
    """``x`` and that many nodes, each of one row and computed from the one before."""
    made = [g.input(np.linspace(0.1, 1.0, ROW))]
    for _ in range(length):
        made.append(rg.sin(made[-1]))
    return made


def released(*variables: rg.Var) -> list[bool]:
    """Which of these have no value at present; does not count as using them."""
    return [v._slot in v.graph._scheduler.dropped for v in variables]


def squeeze(g: rg.Graph) -> None:
    """Release all that may be released."""
    g.max_bytes = 0
    g.max_bytes = None
