"""What the scheduler asks of whoever owns the values; it never looks at a value itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from reactgrad_scheduler.plan import Script, Step
from reactgrad_scheduler.run import Run

# How a run went that the host has looked at: what repeats it, if anything can.
Course = Callable[[Run], Script | None]


class Host(Protocol):
    """The owner of the values of the nodes."""

    def extend(self, rows: int) -> None:
        """Add free rows to the tables that are kept by slot: the scheduler has added so many to its own."""
        ...

    def bind(self, slot: int) -> Step | None:
        """A call that computes the value of `slot` in place from those of its parents.

        The step returns ``UNCHANGED`` when a cutoff keeps the old value. ``None``: the value
        follows its parent's by itself (a view), nothing has to be called.
        For a leaf without a value the step raises. Where it raises itself while the nodes of a plan are
        bound together, they are run one by one, each bound when its turn comes.
        """
        ...

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        """``bind`` of each of these nodes, parents first, and whether one of them ``lends``."""
        ...

    def fuse(self, slots: list[int], steps: list[Step]) -> tuple[list[Step], list[int]]:
        """What may be called instead of all these steps, and the first slot that each call computes.

        Each is called in its turn. One that stands for one step may do work of later ones, too; it
        returns only when its node is computed, if all before it have been called, and raises what
        computing its node raises. One that stands for several steps, which follow each other, raises
        only where none of them would, such as when it is interrupted. Several in a row that have one
        slot stand for its step together: who stops the run between them leaves it those that are left.
        Where a step ``lends``, other threads may come in at any call, and each stands for itself.
        ``Calls`` are laid out once they are made often. To fuse nothing, return ``steps, slots``.
        """
        ...

    def replaced(self, fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
        """Some of the steps that were fused are others now: call these in what ``fuse`` has given.

        Parameters
        ----------
        fused
            What ``fuse`` has given; it is changed.
        steps
            What it was given.
        places
            Which of them are others.

        Returns
        -------
        bool
            ``False``: they have to be fused again.
        """
        ...

    def spoiled(self, slots: Sequence[int]) -> None:
        """These nodes were not computed, but fused steps may have been at work on them.

        What they hold is no value then, not even the old one.
        """
        ...

    def lends(self, slot: int) -> bool:
        """Whether computing this node runs code of the user, which may wait for other threads."""
        ...

    def give(self, slot: int) -> object:
        """Take out of the tables what code of the user is given that computes this node.

        It is kept while that runs in one of several threads, and others work on the tables.
        """
        ...

    def costs(self, slots: Sequence[int]) -> Sequence[float | None] | None:
        """Seconds that computing each of these nodes may take, judged by what it moves.

        ``None`` for code of the user; ``None`` instead of all: they must run one after the other.
        """
        ...

    def around(
        self, slots: Sequence[int], targets: Sequence[int]
    ) -> AbstractContextManager[Course | None]:
        """What the run of these nodes, for these targets, is inside of.

        Gives ``None`` where the host has no more to do than to bind steps, so that a plan of these
        nodes repeats the run; else such a plan needs a script.
        Not asked while several threads compute: the host does not say what nodes cost where it has
        more to do.
        """
        ...

    def overwrite(self, slots: Collection[int]) -> None:
        """The values of these nodes are about to be replaced: rescue what others still see."""
        ...

    def release(self, slots: Sequence[int]) -> None:
        """Forget what is stored for these computed nodes, and ``drop`` them."""
        ...

    def holds(self, slot: int) -> bool:
        """Whether someone outside the graph can reach this node."""
        ...

    def released(self, slot: int) -> None:
        """The node is gone; forget all that is kept for its slot."""
        ...

    def explain(self, slot: int) -> str:
        """Which node failed, on what, built where."""
        ...

    def name(self, slot: int) -> str:
        """The name of a node, for messages."""
        ...

    def living(self, slots: Sequence[int]) -> Callable[[], tuple[object, ...]]:
        """A call that gives what callers know these nodes as, less those that are gone by then."""
        ...
