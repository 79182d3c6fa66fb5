"""The interface of the owner of the values. The scheduler itself never reads a value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from reactgrad_scheduler.plan import Plan, Script, Step
from reactgrad_scheduler.ranges import Ranges
from reactgrad_scheduler.run import Run

# Judges a finished run that the host has observed: returns a script that repeats it, or ``None``.
Course = Callable[[Run], Script | None]


class Host(Protocol):
    """The owner of the values of the nodes."""

    def extend(self, rows: int) -> None:
        """Add free rows to the tables that the host keeps by slot; the scheduler has added as many."""
        ...

    def bind(self, slot: int) -> Step | None:
        """Return a call that computes the value of ``slot`` in place from the values of its parents.

        The step returns ``UNCHANGED`` if a cutoff keeps the old value. ``None`` in place of a step: the
        value is a view of its parent's and follows it, so nothing has to be called. The step of a leaf
        without a value raises. If ``bind`` itself raises while the nodes of a plan are bound together,
        they are run one by one, each bound when its turn comes.
        """
        ...

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        """Return ``bind`` of each of these nodes, parents first, and whether one of them ``lends``."""
        ...

    def fuse(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """Return calls to make instead of all these steps, and the first slot that each call computes.

        Each call is made in its turn. A call that stands for one step may also do work of later ones. It
        returns only when its node is computed, if all calls before it were made, and raises if computing
        its node raises. A call that stands for several steps, which follow each other, raises only if
        none of them would, for example when it is interrupted. Several calls in a row with the same slot
        stand for its step together; code that stops the run between them leaves the rest to be made. If
        a step ``lends``, other threads may come in at any call, and each call must stand for one step.
        ``Calls`` are laid out once they are made often. To fuse nothing, return ``steps, slots``.
        """
        ...

    def replaced(self, fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
        """Replace some of the fused steps in a result of ``fuse``. Return whether that was possible.

        Parameters
        ----------
        fused
            The result of ``fuse``, which is changed.
        steps
            The steps that were fused, some of them new.
        places
            The positions of the new ones.

        Returns
        -------
        bool
            ``False`` if the steps must be fused again.
        """
        ...

    def inherited(self, plan: Plan) -> tuple[list[Step], list[int], list[int]] | None:
        """Return the calls of a certain plan that was never bound, the first slot of each, and those of all steps.

        ``None`` if there are none yet: its steps will be bound. For the calls the same holds as in ``fuse``.
        """
        ...

    def spoiled(self, slots: Sequence[int]) -> None:
        """Drop the values of nodes that were not computed, but that fused steps may have worked on.

        Their memory holds no value then, not even the old one.
        """
        ...

    def lends(self, slot: int) -> bool:
        """Return whether computing this node runs user code, which may wait for other threads."""
        ...

    def give(self, slot: int) -> object:
        """Return the arguments of the user code that computes this node.

        They are kept while the code runs in one of several threads and others change the tables.
        """
        ...

    def costs(self, slots: Sequence[int]) -> Sequence[float | None] | None:
        """Return the estimated seconds of computing each of these nodes, by the memory it moves.

        ``None`` stands for user code. ``None`` instead of a sequence: nodes must run one by one.
        """
        ...

    def around(
        self, slots: Sequence[int], targets: Sequence[int]
    ) -> AbstractContextManager[Course | None]:
        """Return the context in which these nodes are run for these targets.

        It gives ``None`` if the host only binds steps, so that a plan of these nodes repeats the run.
        Otherwise such a plan needs a script. It is not called while several threads compute: ``costs``
        returns ``None`` then, if the host has more to do.
        """
        ...

    def overwrite(self, slots: Collection[int]) -> None:
        """Prepare for new values of these nodes: move or copy values that others still see."""
        ...

    def rows_of(self, slot: int, changed: Sequence[Ranges | None]) -> Ranges | None:
        """Return the rows of a node's value that these rows of its parents reach.

        ``None``, for a parent or for the node: all of it.
        """
        ...

    def overwrite_rows(
        self, slots: Collection[int], rows: Mapping[int, Ranges], read: Mapping[int, Ranges]
    ) -> None:
        """Do what ``overwrite`` does for a run in part.

        The nodes in ``rows`` keep all but these rows of their values; for ``read`` see ``calls_in_part``.
        """
        ...

    def calls_in_part(
        self,
        slots: Sequence[int],
        steps: Sequence[Step],
        rows: Mapping[int, Ranges],
        read: Mapping[int, Ranges],
        span: Ranges,
    ) -> tuple[list[Step], list[int], Callable[[Ranges], object] | None]:
        """Return the calls to make in place of these steps, and the first slot that each of them computes.

        Of the nodes in ``rows`` only these rows are computed. Of those in ``read`` only these rows of the
        operand have changed. If `span` is not empty, all these rows are this range, and there may be a function that
        makes the calls compute another range of the same length. For the calls the same holds as in ``fuse``.
        """
        ...

    def release(self, slots: Sequence[int]) -> None:
        """Drop the values of these computed nodes, and call ``drop`` for them."""
        ...

    def holds(self, slot: int) -> bool:
        """Return whether code outside of the graph can reach this node."""
        ...

    def released(self, slot: int) -> None:
        """Forget all that is kept for the slot of a node that is gone."""
        ...

    def explain(self, slot: int) -> str:
        """Return a description of a node that failed: its name, its operands, the line that built it."""
        ...

    def name(self, slot: int) -> str:
        """Return the name of a node, for messages."""
        ...

    def living(self, slots: Sequence[int]) -> Callable[[], tuple[object, ...]]:
        """Return a function that returns the handles of those nodes that still exist when it is called."""
        ...

    def is_inside(self) -> bool:
        """Return whether the running code was called by this engine, from further up the stack."""
        ...

    def is_building(self) -> bool:
        """Return whether nodes are being built in a way that ``mend`` would stop."""
        ...

    def rest(self) -> None:
        """End what was being built, and forget all that is kept for nodes which may take over parked rows."""
        ...

    def mend(self) -> None:
        """Put right what a stray error may have left in the host's tables; all computed nodes are in doubt."""
        ...
