"""Steps run one by one under a watch: the loops that stand in for the bare ones of ``serial``.

They run the same steps in the same order and leave the same tables; they only look at the clock
around each. A run chooses between them and the bare loops once, before its first step.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from reactgrad_scheduler.executors import serial

if TYPE_CHECKING:
    from reactgrad_scheduler.reads import Reads
    from reactgrad_scheduler.run import Run


class Timed(NamedTuple):
    """One node that a run computed.

    ``known`` are the versions of its former parents, ``sources``, that it had been computed from
    before; ``None``: never, or it had to run whatever they are. ``began`` and ``ended`` are seconds of
    ``time.perf_counter``; what the node itself read while it ran lies between them.
    """

    slot: int
    sources: tuple[int, ...]
    known: tuple[int, ...] | None
    began: float
    ended: float


class Stopwatch:
    """The clock of one run, and what it showed.

    Attributes
    ----------
    targets, retry
        What was asked for.
    steps : list of Timed
        In the order in which they ended.
    """

    __slots__ = ("began", "ended", "retry", "steps", "targets")

    def __init__(self, targets: tuple[int, ...], retry: bool) -> None:
        self.targets = targets
        self.retry = retry
        self.steps: list[Timed] = []
        self.began = self.ended = perf_counter()

    def play(self, scheduler: Reads, frame: serial.Frame) -> None:
        """Call what is left of the steps of a certain plan; journal and tables are settled.

        A view, which has no step, counts as computed where its turn comes.
        """
        plan, steps = frame.plan, self.steps
        record, parents = scheduler.versions.record, scheduler.topology.parents
        step_slots = plan.step_slots
        due = 0
        for slot in plan.slots:
            sources, known = parents[slot], record[slot]
            began = perf_counter()
            if due < len(step_slots) and step_slots[due] == slot:
                due += 1
                step = next(frame.steps, None)
                if step is None:  # another thread took the rest away
                    return
                try:
                    step()
                finally:
                    steps.append(Timed(slot, sources, known, began, perf_counter()))
                if frame.position is not None:  # it read other nodes; the rest runs checked
                    return
            else:
                steps.append(Timed(slot, sources, known, began, began))

    def run_node(self, scheduler: Reads, slot: int, run: Run) -> None:
        """Compute one node and write down what came of it."""
        sources, known = scheduler.topology.parents[slot], scheduler.versions.record[slot]
        began = perf_counter()
        try:
            serial.run_node(scheduler, slot, run)
        finally:
            self.steps.append(Timed(slot, sources, known, began, perf_counter()))

    def rebuild_node(self, scheduler: Reads, slot: int, run: Run) -> None:
        """Compute the value of a clean node again."""
        sources, known = scheduler.topology.parents[slot], scheduler.versions.record[slot]
        began = perf_counter()
        try:
            serial.rebuild_node(scheduler, slot, run)
        finally:
            self.steps.append(Timed(slot, sources, known, began, perf_counter()))
