"""Certain plans in several threads, as bare loops over bound steps.

The plan is split into *tasks*: each long node is one, and so are all other nodes that wait for the same
long ones. A thread runs the steps of a task one after the other, without comparing versions. When all
tasks are done, the plan is one entry of the journal, as in ``serial``. When a step raises, or reads other
nodes itself, the whole plan is *suspended*: what has happened is written into the tables, in the order of
the plan, and the crew goes on checked. A node whose step is under way in another thread is concluded when
that step ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Protocol

from reactgrad_scheduler.executors import costs, serial
from reactgrad_scheduler.gates import Lane
from reactgrad_scheduler.plan import Plan, Step
from reactgrad_scheduler.reads import Reads

# The position of a task that was suspended before its first step was called.
NOT_BEGUN = -1

_NOTHING = Plan((), True, frozenset())


@dataclass(eq=False, slots=True)
class Task:
    """Nodes of a plan that one thread runs one after the other."""

    slots: list[int] = field(default_factory=list[int])
    step_slots: list[int] = field(default_factory=list[int])
    steps_at: list[int] = field(default_factory=list[int])  # positions of its steps in the plan
    followers: dict[int, None] = field(
        default_factory=dict[int, None]
    )  # tasks that wait for this one
    waits_for: int = 0  # the number of tasks to be done before
    long: bool = False
    lends: bool = False
    seconds: float = 0.0  # expected
    urgency: float = 0.0  # minus the seconds of the longest way to the end
    plan: Plan = _NOTHING  # a plan of its nodes and steps; set when all of them are known


@dataclass(eq=False, slots=True)
class Tasks:
    """All tasks of a plan, valid while it has these steps."""

    step_slots: list[int]
    tasks: list[Task]
    drifted: bool = False  # True if a task took much longer, or shorter, than expected


def split(scheduler: Reads, plan: Plan) -> Tasks:
    """Split a bound plan into tasks.

    All nodes that wait for the same long nodes are one task. That has no cycle: if a way leads from one
    task to another, the second one waits for more long nodes.
    """
    seconds = costs.expected(scheduler, plan.slots)
    tails = costs.longest_ways(scheduler, plan.slots, seconds)
    at = {slot: i for i, slot in enumerate(plan.step_slots)}
    tasks: list[Task] = []
    task_of: dict[int, int] = {}
    behind: dict[int, int] = {}  # long nodes that readers of a node wait for, as bits
    short: dict[int, int] = {}  # the task of all that waits for the same long nodes
    count = 0
    for slot in plan.slots:
        operands = [operand for operand in scheduler.operands(slot) if operand in task_of]
        waits = 0
        for operand in operands:
            waits |= behind[operand]
        if seconds[slot] >= costs.LONG and slot in at:
            number = len(tasks)
            behind[slot] = waits | 1 << count
            count += 1
        else:
            number = short.setdefault(waits, len(tasks))
            behind[slot] = waits
        if number == len(tasks):
            tasks.append(Task(long=behind[slot] != waits))
        task = tasks[number]
        task_of[slot] = number
        task.slots.append(slot)
        if slot in at:
            task.step_slots.append(slot)
            task.steps_at.append(at[slot])
            task.lends = task.lends or scheduler.host.lends(slot)
        task.seconds += seconds[slot]
        task.urgency = min(task.urgency, -tails[slot])
        for operand in operands:
            before = task_of[operand]
            if before != number and number not in tasks[before].followers:
                tasks[before].followers[number] = None
                task.waits_for += 1
    for task in tasks:
        slots = tuple(task.slots)
        plan = task.plan = Plan(slots, True, frozenset(slots))
        plan.step_slots = task.step_slots
    return Tasks(plan.step_slots, tasks)


class TaskFrame(serial.Frame):
    """A task while it runs; ``position`` is as in the base class, among the task's nodes."""

    def interrupt(self) -> int | None:
        """Take away all steps that were not called. Return the index of the node under way, if any."""
        self._taken += len(list(self.steps))
        self.position = self._index() if self.begun else NOT_BEGUN
        return None if self.position == NOT_BEGUN else self.position


class Checked(Protocol):
    """The part of a crew that goes on where a plan is suspended."""

    inside: Lane | None

    def take_over(self, done: Sequence[int], left: Sequence[int], under_way: Sequence[int]) -> None:
        """Run the nodes ``left`` checked, after ``done`` have run; some of them are under way."""
        ...


class Straight(serial.Frame):
    """A certain plan that several threads run.

    ``position`` is ``None`` while the tables do not show the run.

    Attributes
    ----------
    undone : int
        The number of tasks that are not done.
    ready
        Tasks that may be taken, most urgent first.
    running
        The frame of the task that each lane runs.
    """

    def __init__(
        self,
        scheduler: Reads,
        crew: Checked,
        plan: Plan,
        steps: Sequence[Step],
        table: Tasks,
    ) -> None:
        super().__init__(scheduler, plan, iter(()), 1, ())
        self._crew = crew
        self._steps = steps
        self.table = table
        self.tasks = table.tasks
        self._waits = [task.waits_for for task in table.tasks]
        self._done: list[int] = []
        self.undone = len(table.tasks)
        self.ready = [(task.urgency, i) for i, task in enumerate(self.tasks) if not task.waits_for]
        heapify(self.ready)
        self.running: dict[Lane, TaskFrame] = {}

    def take(self) -> int | None:
        """Return the number of the most urgent task that may run, ``None`` if there is none."""
        return heappop(self.ready)[1] if self.ready else None

    def start(self, lane: Lane, task: Task) -> TaskFrame:
        """Begin to run a task in a lane."""
        steps = self._steps
        frame = self.running[lane] = TaskFrame(
            self.scheduler,
            task.plan,
            iter([steps[at] for at in task.steps_at]),
            1,
            task.step_slots,
        )
        return frame

    def end(self, number: int, seconds: float) -> None:
        """Note that a task is done after so many seconds, and free the tasks that waited for it."""
        self._note_time(self.tasks[number], seconds)
        self._done.append(number)
        self.undone -= 1
        for follower in self.tasks[number].followers:
            self._waits[follower] -= 1
            if not self._waits[follower]:
                heappush(self.ready, (self.tasks[follower].urgency, follower))

    def _note_time(self, task: Task, took: float) -> None:
        known = self.scheduler.seconds
        if task.long:
            known[task.slots[0]] = took
            self.table.drifted = self.table.drifted or took < costs.LONG / 2
        elif took > 10 * max(task.seconds, costs.LONG):
            for slot in task.slots:
                known.pop(slot, None)
            self.table.drifted = True

    def stop(self) -> None:
        """Let no further step be called; may be called from any thread."""
        for frame in list(self.running.values()):
            frame.stop()

    def under_way(self) -> int:
        """Return the slot of the node under way in the lane that is in place."""
        lane = self._crew.inside
        assert lane is not None
        return self.running[lane].under_way()

    def at_work(self) -> list[int]:
        """Return the slots of the nodes under way in all lanes; may be called from any thread."""
        return [slot for frame in list(self.running.values()) for slot in frame.at_work()]

    def suspend(self) -> None:
        """Write the progress into the tables; the crew goes on checked."""
        scheduler = self.scheduler
        self.position = 0
        scheduler.versions.settle()
        scheduler.staleness.flush()
        finished = {slot for number in self._done for slot in self.tasks[number].slots}
        under_way: list[int] = []
        for lane, frame in self.running.items():
            index = frame.interrupt()
            if index is not None:
                slots = frame.plan.slots
                finished.update(slots[:index])
                under_way.append(slots[index])
                computing = scheduler.computing if lane is self._crew.inside else lane.computing
                computing[-1] = slots[index]
        done = [slot for slot in self.plan.slots if slot in finished]
        for slot in done:
            serial.commit(scheduler, slot)
        left = [slot for slot in self.plan.slots if slot not in finished]
        self._crew.take_over(done, left, under_way)
