"""What a graph has: its tables, and the ports by which what lies below its face asks what lies above.

Whatever works on a graph is a function of a ``Core``; ``Graph`` is the face that lists these functions
as its methods.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactgrad.core._measured import Measured
from reactgrad.core._observers import Observers
from reactgrad.core._programs import Programs
from reactgrad.core._read_together import Asked
from reactgrad.nodes._handle import Handle

if TYPE_CHECKING:
    from reactgrad.core._rows import Rows
    from reactgrad.scheduler import Scheduler

V = TypeVar("V", bound=Handle)
C = TypeVar("C", bound="Core[Any]")


class Core(Generic[V]):
    """The data of one graph.

    Invariants: ``_host`` and ``_scheduler`` know each other; ``_lock``, ``_mark``, ``_computing``, ``_pending``,
    ``_noted``, ``_handed`` and ``_transient`` are attributes of these two, kept here because every read
    looks at them.

    Attributes
    ----------
    seed
        What functions may draw random numbers from.
    """

    seed: int

    # --- ports: what lies above, called from below -----------------------------------------------

    _var: type[V]  # the class of handles
    _detached_var: type[Any]  # the class of their detached views
    _apply: Callable[..., Any]  # build: an op on handles of this graph
    _add_computed: Callable[..., Any]
    _call_lifted: Callable[..., Any]
    _outputs: Callable[..., Any]
    _handle: Callable[..., V]  # core/_handles, for ops
    _deliver: Callable[..., Any]  # observing: at the end of a block that held observers back
    _forget_unseen: Callable[..., bool]  # change: where a name is taken by what nobody sees
    _value: Callable[..., Any]  # reading; traced graphs note what is read
    _value_for_rule: Callable[..., Any]  # autodiff: a rule asks for a value
    _rule_saw: Callable[..., None]  # autodiff: what is built depends on a value that a rule saw

    _dtype_kind: Callable[..., str]  # core/_handles, for ops

    _traced = False  # whether a transform has made it for the function that it differentiates

    def _open(self, seed: int, host: Rows) -> None:
        """Make the tables of an empty graph."""
        self.seed = seed
        self._host = host
        self._programs = Programs()
        # Asked before each value that is read, while something is built that may not depend on some.
        self._may_read: Callable[[int], None] | None = None
        self._asked = Asked(self._var)
        self._observers = Observers()
        self._observed = self._observers.observed  # empty: nobody looks at what happens
        self._measured = Measured()
        # What parts above keep here; each says what it is.
        self._subgraphs: Any = None  # what was built for them, see ``subgraphs``
        self._shapes: Any = None  # what followed from former shapes, see ``change``
        self._reuse: Any = None  # what reuse blocks have built, once there was one
        self._events: Any = None  # what has happened, if that is noted, see ``explain``
        self._edits: Any = None  # what the innermost open `with g.edit():` has collected
        self._removals: list[Any] = []  # nodes that an open transaction has removed
        self._lineage: list[tuple[weakref.ref[Any], int]] = []
        # Forks of this graph that are being computed, each as often as it is.
        self._followed: dict[object, Any] = {}

    def _adopt(self, scheduler: Scheduler) -> None:
        """Take this scheduler, and keep at hand what every read looks at."""
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
