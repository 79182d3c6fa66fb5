"""The nodes that a read has to run: found by walking the marks, or known from former plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from reactgrad_scheduler import executors
from reactgrad_scheduler.errors import Cancelled
from reactgrad_scheduler.exceptions import is_interrupt
from reactgrad_scheduler.host import Course
from reactgrad_scheduler.plan import Group, Key, Plan, Transition
from reactgrad_scheduler.run import Run
from reactgrad_scheduler.runs import Runs
from reactgrad_scheduler.staleness import STALE, UNSETTLED

_STALE_ONLY, _UNSETTLED = frozenset((STALE,)), frozenset(UNSETTLED)


class Finding(Runs):
    """The storey of the scheduler that finds the nodes of a read, and keeps them as a plan."""

    def _make(
        self,
        targets: tuple[int, ...],
        key: Key,
        transition: Transition | None,
        retry: bool,
    ) -> Run:
        """Run a read by its stored transition, or find its nodes first."""
        if retry:
            return self._retry(targets)
        if transition is None:
            return self._resolve(targets, key)
        if not transition.plan.slots:
            self._arrive(transition)
            return transition.plan.finished
        return self._replay(targets, transition)

    def _retry(self, targets: tuple[int, ...]) -> Run:
        """Make a read for which former errors do not count."""
        former, self.retried = self.retried, self.error_count
        try:
            self._doubt_errors(targets)
            run = self._resolve(targets, None)
        finally:
            self.retried = former
        run.retry = True
        return run

    def _resolve(self, targets: tuple[int, ...], key: Key | None) -> Run:
        """Find the plan by walking the marks, run it, and store it if the read repeats."""
        staleness = self.staleness
        group = key[2] if key is not None and isinstance(key[2], Group) else None
        were_clean = group if group and key and group.clean_in == key[0] else None
        repeats = False
        if self.computing:
            self.versions.settle()
        else:
            repeats = key is not None and self.plans.wants(key)
            # Nodes that read others are slow to plan: their plan is stored at once.
            recorded = repeats or (key is not None and self.dynamic and self.plans.has_room)
            staleness.trace = {} if recorded else None
        reached = staleness.flush() if self.dirty is None else self._flush()
        # Of a group that was clean, only nodes that the change has reached need a walk.
        found = self.plans.of_group(were_clean, reached) if were_clean else targets
        known = self._known_plan(key[2], targets, found) if key is not None else None
        slots = self.stale_ancestors(found) if known is None else [*known.slots]
        needed = self.under_way(slots)
        if needed is not None:
            self._refuse(needed, targets)
        surely = known.certain if known is not None else self._surely_run(slots)
        decided = not surely and self._may_run(slots)  # versions decide which of them run
        read_nothing = self.dynamic.keys().isdisjoint(slots)
        # Targets without a value now are rebuilt; values that the host drops during the run are not.
        dropped = [target for target in targets if target in self.dropped] if self.dropped else ()
        executor = self.executor
        with self.host.around(slots, targets) if self.crew is None else nullcontext() as course:
            shared = course is None and executor is not None and executor.pays(self, slots)
            # A single node of which no plan is wanted or possible runs sooner without one.
            alone = len(slots) == 1 and group is None and known is None and self.dirty is None
            alone = alone and (staleness.trace is None or self._reads_anew(slots[0]))
            if known is not None and not surely and course is None and not shared:
                assert key is not None
                return self._run_known(targets, key, repeats, known, reached)
            if slots and surely and course is None and not shared and not alone:
                plan = self._whole_plan(targets, slots) if known is None else known
                if plan is not None:
                    return self._run_whole(targets, key, repeats or bool(plan.readings), plan)
            if slots:
                self.versions.settle()
                run = self._run(targets, slots, executor if shared else None)
            else:
                run = Run()
                if group is not None:
                    group.clean_in = staleness.state
            self._settle(targets, run)
            rebuilt = self._rebuild_targets(dropped, run)
        self._count(run)
        if self.computing:
            return run
        self.totals.resolved += 1
        trace, staleness.trace = staleness.trace, None
        # Rebuilding targets is no part of a plan; a checked run rebuilds for other nodes.
        if key is None or run.failed or rebuilt:
            return run
        # After a cancelled run, or erased marks, the marks are not those that the read would leave.
        if any(self._mark[slot] in UNSETTLED for slot in slots):
            return run
        # A node decides its reads anew at every run, and nodes that it reads may be cut off. A replay
        # would see neither nodes that read for the first time nor nodes that no longer read.
        read_nothing = read_nothing and self.dynamic.keys().isdisjoint(slots)
        if read_nothing and self.cycles.keys().isdisjoint(slots):
            plan = None
            if course is None:
                certain = surely and run.ran == slots and not (run.cut_off or run.rebuilt)
                if known is not None and known.certain == certain:
                    plan = known
                elif repeats or (decided and not alone):
                    plan = Plan.of(slots, self.topology.serial, certain=certain)
                if plan is not None and decided:
                    for slot in slots:
                        self._journaled[slot] = 1
                    self.plans.keep(key[2], plan)
            elif repeats and surely:
                plan = self._plan_with_script(run, slots, course)
            if repeats and plan is not None and trace is not None:
                self._store(key, plan, targets, self._moved(trace))
        return run

    def _reads_anew(self, slot: int) -> bool:
        """Return whether a node that was never computed can have only operands that it will read itself."""
        return not (self.leaf[slot] or self.topology.parents[slot] or self.versions.version[slot])

    def _surely_run(self, slots: Sequence[int]) -> bool:
        """Return whether all of these nodes run, whatever values nodes before them get."""
        return _STALE_ONLY.issuperset(
            map(self._mark.__getitem__, slots)
        ) and self.staleness.cutoffs.isdisjoint(slots)

    def _may_run(self, slots: Sequence[int]) -> bool:
        """Return whether versions, and nothing else, decide which of these nodes run."""
        marks = map(self._mark.__getitem__, slots)
        return _UNSETTLED.issuperset(marks) and self.versions.forced.isdisjoint(slots)

    def _whole_plan(self, targets: Sequence[int], slots: Sequence[int]) -> Plan | None:
        """Return the plan of nodes that all run for certain, before a first run; ``None`` if more decides."""
        if not self.plans.enabled or self.computing or self.cancelled:
            return None
        if self.dynamic.keys().isdisjoint(slots):
            plan = Plan.of(slots, self.topology.serial, certain=True)
        else:
            plan = executors.reading.expect(self, slots)
            if plan is None or not self._surely_run(plan.slots):
                return None
        if any(map(self.leaf.__getitem__, plan.slots)):  # a stale leaf has no value: it will raise
            return None
        return plan if self._runs_undisturbed(targets, plan) else None

    def _runs_undisturbed(self, targets: Sequence[int], plan: Plan) -> bool:
        """Return whether no error, refused read or released value touches the nodes of a plan."""
        apart = plan.members.isdisjoint
        return (
            apart(self.errors)
            and apart(self.raises)
            and apart(self.cycles)
            and (not self.dropped or self._there(targets, plan))
        )

    def _there(self, targets: Sequence[int], plan: Plan) -> bool:
        """Return whether nothing has to be rebuilt for a read."""
        return self.dropped.isdisjoint(targets) and executors.compared.all_there(self, plan)

    def _known_plan(
        self, read: int | Group, targets: Sequence[int], found: Sequence[int]
    ) -> Plan | None:
        """Return the former plan of this read whose nodes are exactly those that it needs now, if any.

        It is right if all its nodes are stale, or may be, and everything else that they and the targets
        need is clean: edges have not changed since, or the plans would be forgotten. ``found`` has all
        targets that may not be clean.
        """
        if self.computing or self.cancelled:
            return None
        marked = self._mark.__getitem__
        for plan in self.plans.latest(read):
            surely = self._surely_run(plan.slots)
            if (
                (surely if plan.certain else not surely and self._may_run(plan.slots))
                and plan.members.isdisjoint(self.dynamic)
                and not any(map(marked, plan.sources(self.topology.parents)))
                and plan.members.issuperset(filter(marked, found))
                and self._runs_undisturbed(targets, plan)
            ):
                return plan
        return None

    def _run_whole(
        self, targets: tuple[int, ...], key: Key | None, repeats: bool, plan: Plan
    ) -> Run:
        """Run a read all of whose nodes run, as a plan, which is stored if the read ``repeats``."""
        for slot in plan.slots:
            self._journaled[slot] = 1
        kept = key is not None and not plan.readings and self.plans.keep(key[2], plan)
        run = self._replay(targets, Transition(plan, 0, ()))
        as_planned = run is plan.finished
        self.totals.resolved += 1
        if as_planned and self._left_clean(targets, key, repeats, plan):
            return run
        self.staleness.trace = None
        if not kept:
            plan.retire()
        if as_planned:
            self.versions.names(len(plan))  # only the journal may keep it
        return run

    def _left_clean(
        self, targets: tuple[int, ...], key: Key | None, repeats: bool, plan: Plan
    ) -> bool:
        """Mark all nodes of a plan clean after its run. Return whether it was stored, as if ``repeats``."""
        self.staleness.clean(plan.slots)
        if key is not None and isinstance(key[2], Group):
            key[2].clean_in = self.staleness.state
        trace, self.staleness.trace = self.staleness.trace, None
        if not repeats or key is None or trace is None:
            return False
        left = self._moved(trace)
        if plan.expected is not None:
            plan.expected.left = frozenset([slot for slot, mark in left if mark])
        self._store(key, plan, targets, left)
        return True

    def _run_known(
        self, targets: tuple[int, ...], key: Key, repeats: bool, plan: Plan, reached: Sequence[int]
    ) -> Run:
        """Run those nodes of a known plan whose parents' versions have changed.

        ``reached`` has the nodes that were settled before; all others may be due already.
        """
        before = plan.members.difference(reached)
        replaced = executors.compared.due(self, before).union(key[1])
        self.plans.keep(key[2], plan)
        try:
            run, straight = executors.compared.run_compared(self, plan, replaced)
        except BaseException:  # an interrupt may come in any line around the steps
            executors.serial.cut_short(self, plan)
            raise
        self.totals.resolved += 1
        if not straight:
            self.staleness.trace = None
            assert run is not None
            self._settle(targets, run)
            self._count(run)
            return run
        if run is None:
            run = plan.finished
            self.versions.journal.append(plan)
            self.versions.names(len(plan))  # only the journal may keep it
        else:
            self.totals.add(run)
        self._left_clean(targets, key, repeats, plan)
        return run

    def _plan_with_script(self, run: Run, slots: list[int], course: Course) -> Plan | None:
        """Return the plan of a run during which the host rebuilt and released values, if it has a script."""
        whole = len(run.ran) == len(slots) and self.dynamic.keys().isdisjoint(slots)
        script = course(run) if whole else None
        if script is None:
            return None
        plan = Plan.of(slots, self.topology.serial, certain=True)
        plan.script = script
        plan.finished.rebuilt = list(run.rebuilt)
        plan.finished.seal(self.topology.serial)
        return plan

    def _moved(self, trace: dict[int, int]) -> list[tuple[int, int]]:
        """Return the marks that differ from the traced ones, and the marks of nodes that were dropped."""
        mark = self._mark
        marks = [(s, mark[s]) for s, old in trace.items() if s >= 0 and mark[s] != old]
        return marks + [(~s, mark[~s]) for s in trace if s < 0]

    def _store(
        self, key: Key, plan: Plan, targets: tuple[int, ...], marks: Sequence[tuple[int, int]]
    ) -> None:
        for slot in (*plan.slots, *targets[:1]):  # members of a group were noted with it
            self._journaled[slot] = 1
        transition = Transition(plan, self.staleness.state, tuple(marks))
        self.plans.put(key, transition)
        if self.plans.origin is not None:
            self.plans.offer(key, transition)

    def _rebuild_targets(self, targets: Iterable[int], run: Run) -> bool:
        """Rebuild those of these nodes that are clean. Return whether there were any."""
        wanted = [t for t in targets if t in self.dropped and not self.staleness.mark[t]]
        if wanted:
            try:
                executors.serial.rebuild(self, wanted, run)
            except Cancelled:
                pass  # the caller sees that a target is still dropped
            except Exception as error:
                if is_interrupt(error):
                    raise
                self.staleness.push(wanted[:1])
                executors.serial.fail(self, wanted[0], error, run, explained=True)
        return bool(wanted)
