"""Runs of a plan, to their end or not, and how the tables are brought up to date behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reactgrad_scheduler import executors
from reactgrad_scheduler.plan import Group, Script, Transition
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.staleness import UNSETTLED
from reactgrad_scheduler.versions import JOURNAL_LIMIT

if TYPE_CHECKING:
    pass
from reactgrad_scheduler.changes import Changes


class Runs(Changes):
    """How a plan is run, and what a run leaves in the tables."""

    def _group(self, targets: tuple[int, ...]) -> Group:
        """What plans know these nodes as that are read together."""
        group = self.plans.known(targets)
        if group is None:
            for slot in targets:
                self._journaled[slot] = 1  # first: a group must not outlive its nodes
            group = self.plans.group(targets)
        return group

    def _follows(self, script: Script) -> bool:
        """Whether a run can follow a script: not inside of a node, nor where each step is watched."""
        return not self.computing and self.stopwatch is None and script.fits()

    def _replay(self, targets: tuple[int, ...], transition: Transition) -> Run:
        plan = transition.plan
        try:
            if self.executor is not None and self.executor.shares(self, plan):
                run = self.executor.replay(self, plan)
            elif plan.certain:
                run = executors.serial.run_certain(self, plan)
            else:
                replaced = set(self.staleness.pending)
                if transition.marks:  # those that were clean have the same mark afterwards
                    moved = [slot for slot, _ in transition.marks if slot in plan.members]
                    replaced |= executors.compared.due(self, moved)
                run, straight = executors.compared.run_compared(self, plan, replaced)
                if straight and run is not None:
                    self.totals.add(run)
                    self._arrive(transition)
                    return run
        except BaseException:  # in whatever line around its steps
            executors.serial.cut_short(self, plan)
            raise
        if run is None:  # it ended as planned
            run = plan.finished
            journal = self.versions.journal
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
        self._settle(targets, run)
        self._count(run)
        return run

    def _run(
        self,
        targets: tuple[int, ...],
        slots: Sequence[int],
        executor: Any,
    ) -> Run:
        """Run those of `slots`, in topological order, whose parents' versions moved.

        `executor`: with whom, ``None``: in this thread, or its crew.
        """
        if self.crew is not None:
            return self.crew.read(targets, slots, Run())
        if executor is not None:
            return executor.run(self, slots)
        return executors.serial.run_checked(self, slots)

    def _arrive(self, transition: Transition) -> None:
        """Mark what a plan leaves behind that went straight to its end."""
        staleness = self.staleness
        if transition.marks:
            for slot, mark in transition.marks:
                staleness.put(slot, mark)
            plan = transition.plan
            back = plan.members if plan.script is None else plan.script.back
            for slot in self.dropped.intersection(back):
                staleness.restore(slot)
        # Last: who reads without the lock must never see a node that is neither pending nor marked.
        staleness.pending.clear()

    def _settle(self, targets: tuple[int, ...], run: Run) -> None:
        """Go on where a node erased all marks while it ran: what was done has to be found again."""
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
