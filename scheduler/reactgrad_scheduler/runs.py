"""Runs of a plan, complete or not, and the update of the tables after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad_scheduler import executors
from reactgrad_scheduler.changes import Changes
from reactgrad_scheduler.plan import Group, Script, Transition
from reactgrad_scheduler.run import NO_ROWS, Run
from reactgrad_scheduler.staleness import UNSETTLED
from reactgrad_scheduler.versions import JOURNAL_LIMIT

# So many marks are set one by one.
FEW_MARKS = 4


class Runs(Changes):
    """The storey of the scheduler that runs plans and writes the outcome into the tables."""

    def _group(self, targets: tuple[int, ...]) -> Group:
        """Return the group of these nodes, as which plans know them when they are read together."""
        group = self.plans.known(targets)
        if group is None and self.plans.origin is not None:
            group = self.plans.group_from_origin(targets, self.topology.serial, self._journaled)
        if group is None:
            for slot in targets:
                self._journaled[slot] = 1  # first: a group must not outlive its nodes
            group = self.plans.group(targets)
        return group

    def _follows(self, script: Script) -> bool:
        """Return whether a run can follow a script: not inside of a node, nor if steps are watched."""
        return not self.computing and self.stopwatch is None and script.fits()

    def _replay(self, targets: tuple[int, ...], transition: Transition) -> Run:
        plan = transition.plan
        way, by_marks = None, False
        if self.dirty is not None and plan.certain and not self.versions.forced:
            by_marks = bool(self.staleness.pending) and not transition.marks
            way = self.dirty.way(self, plan, by_marks)
        try:
            if way is not None:
                run = executors.serial.run_certain(self, plan, way)
            elif self.executor is not None and self.executor.shares(self, plan):
                run = self.executor.replay(self, plan)
            elif plan.certain:
                run = executors.serial.run_certain(self, plan)
            else:
                replaced = set(self.staleness.pending)
                if transition.marks:  # nodes that were clean have the same mark afterwards
                    moved = [slot for slot, _ in transition.marks if slot in plan.members]
                    replaced |= executors.compared.due(self, moved)
                run, straight = executors.compared.run_compared(self, plan, replaced)
                if straight and run is not None:
                    self.totals.add(run)
                    self._arrive(transition)
                    return run
        except BaseException:  # an interrupt may come in any line around the steps
            executors.serial.cut_short(self, plan)
            raise
        if run is None:  # it ended as planned
            run = plan.finished
            journal = self.versions.journal
            if self.versions.forced:  # after an edit, or another shape
                self.versions.forced -= plan.members
            if self.dirty is not None:
                run.rows = NO_ROWS if way is None else way.rows
                if way is not None and not by_marks:
                    self.dirty.note_run(self, way)  # before the journal has it
            journal.append(plan)
            if len(journal) > JOURNAL_LIMIT:
                self.versions.settle()
            if transition.marks:
                self._arrive(transition)
            else:
                self.staleness.pending.clear()
            if plan.script is not None:
                self.totals.rebuilt += len(run.rebuilt)
                if not plan.script.ended():
                    plan.steps = None
            return run
        self.erase_rows()
        self._settle(targets, run)
        self._count(run)
        return run

    def _run(
        self,
        targets: tuple[int, ...],
        slots: Sequence[int],
        executor: Any,
    ) -> Run:
        """Run those of ``slots``, in topological order, whose parents' versions have changed.

        ``executor``: the threads to use; ``None``: this thread, or the crew that it belongs to.
        """
        if self.crew is not None:
            return self.crew.read(targets, slots, Run())
        if executor is not None:
            return executor.run(self, slots)
        return executors.serial.run_checked(self, slots)

    def _arrive(self, transition: Transition) -> None:
        """Set the marks that a plan leaves when it has run to its end."""
        staleness = self.staleness
        if transition.marks:
            if len(transition.marks) > FEW_MARKS:
                staleness.put_all(transition.marks)
            else:
                for slot, mark in transition.marks:
                    staleness.put(slot, mark)
            plan = transition.plan
            back = plan.members if plan.script is None else plan.script.back
            for slot in self.dropped.intersection(back):
                staleness.restore(slot)
        # Last: readers without the lock must never see a node that is neither pending nor marked.
        staleness.pending.clear()

    def _settle(self, targets: tuple[int, ...], run: Run) -> None:
        """Finish a read whose node erased all marks while it ran: find again what is left to run."""
        mark = self.staleness.mark
        erasures = -1
        while any(mark[target] in UNSETTLED for target in targets):
            if self.cancelled or erasures == self.erasures:
                break
            erasures = self.erasures
            again = self.stale_ancestors(targets)
            if self.crew is not None:
                self.crew.read(targets, again, run)
            else:
                executors.serial.run_checked(self, again, run=run)
            ran = {*run.ran, *run.rebuilt}
            run.skipped = [slot for slot in run.skipped if slot not in ran]

    def _count(self, run: Run) -> None:
        """Complete the record of a run, and add it to the totals."""
        run.seal(self.topology.serial)
        self.totals.add(run)
