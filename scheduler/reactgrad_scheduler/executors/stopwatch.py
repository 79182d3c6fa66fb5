"""Steps timed one by one: loops with a clock, in place of the bare loops of ``serial``.

They run the same steps in the same order and leave the same tables. A run chooses between them and the
bare loops once, before its first step.
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

from reactgrad_scheduler.executors import serial
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run


class Timed(NamedTuple):
    """The record of one node that a run computed.

    ``sources`` are its former parents, and ``known`` the versions of these that it had been computed from
    before; ``None`` if it never was, or had to run whatever they were. ``began`` and ``ended`` are seconds
    of ``time.perf_counter``; reads of the node itself lie between them.
    """

    slot: int
    sources: tuple[int, ...]
    known: tuple[int, ...] | None
    began: float
    ended: float


class Stopwatch:
    """The clock of one run, with the times of its nodes.

    Attributes
    ----------
    targets, retry
        The arguments of the read.
    steps : list of Timed
        The records in the order in which the nodes ended.
    """

    __slots__ = ("began", "ended", "retry", "steps", "targets")

    def __init__(self, targets: tuple[int, ...], retry: bool) -> None:
        self.targets = targets
        self.retry = retry
        self.steps: list[Timed] = []
        self.began = self.ended = perf_counter()

    def play(self, scheduler: Reads, frame: serial.Frame) -> None:
        """Call the remaining steps of a certain plan; journal and tables must be settled.

        A view has no step; it gets a record when its turn comes.
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
                if step is None:  # another thread has taken the rest away
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
        """Compute one node, and write the outcome into the tables."""
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
