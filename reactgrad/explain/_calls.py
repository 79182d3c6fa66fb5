"""Recorded runs node by node: when each node ran, for how long, and with which outcome."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

Outcome = Literal["ran", "cut_off", "rebuilt", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One call of one node, as a recording saw it.

    Attributes
    ----------
    run : int
        Position of the run in ``log.runs``.
    node, op : str
        Names of the node and of what it computes.
    outcome : str
        ``"ran"``, ``"cut_off"``, ``"rebuilt"``, ``"failed"`` or ``"interrupted"``.
    began : float
        Seconds since the recording began.
    seconds : float
        Duration, with the nodes that a Python function read while it ran. A view takes none.
    version : int
        Value version afterwards.
    shape : str
        The result's dtype and shape, such as ``float64[2, 3]``.
    operands : tuple of str
        dtypes and shapes of the operands.
    self_seconds : float
        `seconds` without those of the nodes that were called inside.
    bytes : int
        Memory of the array that was computed; a view, and an object that is no array, has none.
    """

    run: int
    node: str
    op: str
    outcome: Outcome
    began: float
    seconds: float
    version: int
    shape: str
    operands: tuple[str, ...]
    self_seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Span:
    """A run as a whole, for the trace."""

    title: str
    began: float
    seconds: float
    thread: int
    graph: int


class Seen:
    """The runs seen since a moment; several threads may add to it."""

    __slots__ = ("calls", "lock", "spans", "threads", "zero")

    def __init__(self) -> None:
        self.zero = perf_counter()
        self.lock = threading.Lock()
        self.calls: list[NodeRun] = []
        self.spans: list[Span] = []
        self.threads: dict[int, str] = {}
