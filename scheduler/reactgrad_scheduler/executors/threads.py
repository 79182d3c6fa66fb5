"""``Serial`` and ``Threads``: the decision whether one thread runs a plan, or several do."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from reactgrad_scheduler.errors import ExecutorError
from reactgrad_scheduler.exceptions import is_interrupt
from reactgrad_scheduler.executors import costs, serial
from reactgrad_scheduler.plan import Plan, Step
from reactgrad_scheduler.reads import Reads
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.texts import safe_repr

_MOST = 10_000  # threads: more than any machine runs at the same time


class Serial:
    """Nodes run one after the other, in the thread that reads.

    Examples
    --------
    >>> from reactgrad_scheduler import Serial
    >>> Serial()
    Serial()
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "Serial()"


class Threads:
    """Independent nodes run at the same time, in threads that end with the run.

    Results, versions, what ran in which order, and which error is raised are those of ``Serial``, bit
    for bit. Only nodes that take long get threads of their own: kernels on large arrays, and Python
    functions until a run has shown that they are short. It pays where these give up Python's lock, as
    NumPy, waiting, and files do. Functions then run in other threads than the one that reads, with
    its context variables.

    Parameters
    ----------
    size : int
        The largest number of nodes that run at the same time.

    Raises
    ------
    ExecutorError
        If ``size`` is no integer of at least 1.

    Examples
    --------
    >>> from reactgrad_scheduler import Threads
    >>> Threads(4)
    Threads(4)
    """

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ExecutorError(
                f"Threads({safe_repr(size):.60}): write how many nodes may run at the same time, an integer of at "
                f"least 1 and at most {_MOST:,}, such as Threads(os.cpu_count())."
            )
        self.size = size

    def __repr__(self) -> str:
        return f"Threads({self.size})"

    def _may(self, scheduler: Reads) -> bool:
        """Return whether a read that begins now may be shared between threads."""
        return (
            self.size > 1
            and not scheduler.computing  # reads of a function belong to the function's run
            and scheduler.stopwatch is None  # times are of single nodes, one after the other
            and scheduler.lock.is_held_here()  # only then can it be given up
        )

    def pays(self, scheduler: Reads, slots: Sequence[int]) -> bool:
        """Return whether enough of the work of these nodes can be done at the same time."""
        if not self._may(scheduler):
            return False
        seconds = costs.expected(scheduler, slots)
        if sum(one >= costs.LONG for one in seconds.values()) < 2:
            return False
        tails = costs.longest_ways(scheduler, slots, seconds)
        return sum(seconds.values()) - max(tails.values()) >= costs.LONG

    def shares(self, scheduler: Reads, plan: Plan) -> bool:
        """Return whether sharing a plan pays; called before each of its runs.

        Each run in several threads measures the functions anew. If one takes ten times its expected time,
        the decision is made again.
        """
        if plan.script is not None or not self._may(scheduler):
            return False  # a script drops values, which is right only in its order
        turns = plan.rest(0)
        if plan.shared is False:
            if plan.finished.seconds <= plan.promised:
                return False
            for slot in plan.slots:
                scheduler.seconds.pop(slot, None)
        elif plan.tasks is not None and not plan.tasks.drifted:
            return True
        plan.tasks = None
        plan.shared = self.pays(scheduler, turns)
        if not plan.shared:
            seconds = costs.expected(scheduler, turns)
            plan.promised = 10 * max(costs.LONG, sum(seconds.values()))
        return plan.shared

    def run(self, scheduler: Reads, slots: Sequence[int]) -> Run:
        """Do what ``serial.run_checked`` does, with several threads."""
        # Imported late, since few graphs use several threads.
        from reactgrad_scheduler.executors.crew import Crew

        began = perf_counter()
        crew = Crew(scheduler, slots, self.size)
        crew.begin_checked()
        crew.go()
        crew.run.seconds = perf_counter() - began
        return crew.run

    def replay(self, scheduler: Reads, plan: Plan) -> Run | None:
        """Run a plan. Return ``None`` if it went as planned and must still be journaled."""
        if plan.certain and not plan.readings:
            scheduler.host.overwrite(plan.members)
            try:
                steps = serial.bound_steps(scheduler, plan)
            except Exception as error:  # a node cannot be bound: its own run will find and note it
                if is_interrupt(error):
                    raise
                steps = None
            if steps is not None:
                return self._go_straight(scheduler, plan, steps)
        scheduler.versions.settle()
        scheduler.staleness.flush()
        return self.run(scheduler, plan.rest(0))

    def _go_straight(self, scheduler: Reads, plan: Plan, steps: list[Step]) -> Run | None:
        # Imported late, since few graphs use several threads.
        from reactgrad_scheduler.executors.crew import Crew
        from reactgrad_scheduler.executors.straight import Straight, split

        table = plan.tasks
        if table is None or table.step_slots is not plan.step_slots:
            table = plan.tasks = split(scheduler, plan)
        began = perf_counter()
        crew = Crew(scheduler, plan.slots, self.size)
        straight = Straight(scheduler, crew, plan, steps, table)
        crew.begin_straight(straight)
        try:
            crew.go()
        finally:
            if straight.position is not None:
                serial.abandon(scheduler, plan.slots)
        run = plan.finished if straight.position is None else crew.run
        run.seconds = perf_counter() - began
        return None if run is plan.finished else run
