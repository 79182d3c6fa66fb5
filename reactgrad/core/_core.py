"""The data of a graph: its tables, and the ports by which lower floors call higher ones.

Whatever works on a graph is a function of a ``Core``. ``Graph`` is the face that lists these functions
as its methods.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from reactgrad.core._observers import Observers
from reactgrad.core._programs import Programs
from reactgrad.core._read_together import Asked
from reactgrad.core._rows import Rows
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import Column, Scheduler

V = TypeVar("V", bound=Handle)
C = TypeVar("C", bound="Core[Any]")


class Core(Generic[V]):
    """The data of one graph.

    Invariants: ``_host`` and ``_scheduler`` know each other. ``_lock``, ``_mark``, ``_computing``,
    ``_pending``, ``_noted``, ``_handed`` and ``_transient`` are attributes of these two; they are
    aliased here because every read uses them, and one attribute look-up less is measurable.

    """

    _seed: int
    _device: str = "cpu"

    # --- ports: functions of higher floors, set by the face, called from below ---------------------

    _var: type[V]  # the class of handles
    _detached_var: type[Any]  # the class of their detached views
    _apply: Callable[..., Any]  # build: the node of an op on handles of this graph
    _add_computed: Callable[..., Any]
    _call_lifted: Callable[..., Any]
    _outputs: Callable[..., Any]
    _handle: Callable[..., V]  # core/_handles, for ops
    _deliver: Callable[..., Any]  # observing: at the end of a block that held observers back
    _forget_unseen: Callable[..., bool]  # change: release nodes that users cannot reach
    _value: Callable[..., Any]  # reading; traced graphs note what is read
    _value_for_rule: Callable[..., Any]  # autodiff: a rule asks for a value
    _rule_saw: Callable[..., None]  # autodiff: what is built depends on a value that a rule saw

    _dtype_kind: Callable[..., str]  # core/_handles, for ops
    # autodiff, for rules of ops that differentiate what they build: gradient(y, xs, g), tangent(y, x, t)
    _gradient: Callable[..., Any]
    _tangent: Callable[..., Any]

    _traced = False  # True if a transform made this graph to trace the function it differentiates

    def _open(self, seed: int, host: Rows) -> None:
        """Make the tables of an empty graph."""
        self._seed = seed
        self._host = host
        self._programs = Programs()
        # Called before each value is read while nodes are built that must not depend on some nodes;
        # it raises if they would.
        self._may_read: Callable[[int], None] | None = None
        self._asked = Asked(self._var)
        self._observers = Observers()
        self._observed = self._observers.observed  # empty: no code for observers runs
        self._measured = Measured()
        # Tables of the floors above, which create and read them.
        self._subgraphs: Any = None  # instances of subgraphs, see ``subgraphs``
        self._shapes: Any = None  # nodes kept for former shapes, see ``change``
        self._generations: Any  # nodes that died together, see ``build``; made by the face
        self._reuse: Any = None  # nodes that reuse blocks have built; None before the first
        self._events: Any = None  # the log of events, if one is kept, see ``explain``
        # Settles what other ranks have a part in before a read, see ``distributed``; None in one process.
        self._rounds: Any = None
        self._edits: list[Any] = []  # the open blocks of edits of all tasks, see ``change``
        self._removals: list[Any] = []  # nodes that an open transaction has removed
        self._lineage: list[tuple[weakref.ref[Any], int]] = []
        # Forks of this graph that are being computed: one entry for each computation under way. And
        # an entry of its observers while their sets wait: then, too, no read takes the fast path.
        self._followed: dict[object, None] = {}

    @property
    def seed(self) -> int:
        """The seed from which the functions of this graph derive their random numbers."""
        return self._seed

    @property
    def device(self) -> str:
        """The device of its arrays that were given as arrays of the host."""
        return self._device

    def _adopt(self, scheduler: Scheduler) -> None:
        """Set the scheduler, and alias the tables that every read uses."""
        self._scheduler = scheduler
        self._host.scheduler = scheduler
        self._lock = scheduler.lock
        self._mark = scheduler.staleness.mark
        self._computing = scheduler.computing
        self._pending = scheduler.staleness.pending
        self._noted = scheduler.notes.open
        self._handed = self._host.handed
        self._transient = self._host.transient

    def __del__(self) -> None:
        # The scheduler and its host know each other: without this, arrays would wait for the
        # cyclic garbage collector.
        host = getattr(self, "_host", None)
        if host is not None:
            host.close()


class Measured:
    """Number and sum of the times that nodes took while they were recorded, for ``Plan.cost``."""

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: dict[int, tuple[int, int, float]] = {}  # by slot: serial, calls, seconds

    def add(self, calls: Iterable[tuple[int, float]], serial: Column[int]) -> None:
        """Add the seconds of calls of slots whose nodes have these serials."""
        times = self._times
        for slot, seconds in calls:
            stamp, known = serial[slot], times.get(slot)
            if known is not None and known[0] == stamp:
                times[slot] = (stamp, known[1] + 1, known[2] + seconds)
            else:  # the entry, if any, is of a former node with this slot
                times[slot] = (stamp, 1, seconds)

    def mean(self, slot: int, serial: int) -> float | None:
        """Return the mean seconds of a node, ``None`` if it was never recorded."""
        known = self._times.get(slot)
        return None if known is None or known[0] != serial else known[2] / known[1]
