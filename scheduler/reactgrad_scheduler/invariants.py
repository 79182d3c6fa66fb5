"""A check of all invariants that hold between two calls, by recomputing everything."""

from __future__ import annotations

from reactgrad_scheduler.errors import InvariantError
from reactgrad_scheduler.hubs import Hubs
from reactgrad_scheduler.order import any_cycle
from reactgrad_scheduler.scheduler import Scheduler
from reactgrad_scheduler.staleness import CLEAN, DROPPED, FAILED, STALE, UNSETTLED
from reactgrad_scheduler.texts import listed


def check_invariants(scheduler: Scheduler) -> None:
    """Raise ``InvariantError`` if the tables of ``scheduler`` contradict each other.

    The cost grows with the graph: this is for tests and bug reports.
    """
    scheduler.attend()
    topology, versions, staleness = scheduler.topology, scheduler.versions, scheduler.staleness
    name = scheduler.host.name

    def require(holds: object, message: str) -> None:
        if not holds:
            raise InvariantError(f"{message}. This is a bug in reactgrad; please report it.")

    size = topology.size
    columns = {
        "parents": topology.parents,
        "children": topology.children,
        "rank": topology.rank,
        "serial": topology.serial,
        "version": versions.version,
        "record": versions.record,
        "mark": staleness.mark,
        "leaf": scheduler.leaf,
    }
    for column, table in columns.items():
        # An interrupt while rows are added may leave columns longer, by rows that no node has.
        require(len(table) >= size, f"column {column!r} has {len(table)} rows, fewer than {size}")
    beyond = range(size, len(topology.serial))
    require(not any(map(topology.serial.__getitem__, beyond)), "a node has a row that is not there")
    free = set(topology.free)
    require(len(free) == len(topology.free), "a slot is free twice")
    for slot in free:
        require(
            not topology.serial[slot]
            and not topology.parents[slot]
            and not topology.children[slot],
            f"free slot {slot} still has a serial or edges",
        )
        require(
            staleness.mark[slot] == STALE, f"free slot {slot} has the mark of a node that was read"
        )
        require(
            not versions.version[slot]
            and versions.record[slot] is None
            and not scheduler.leaf[slot],
            f"free slot {slot} still has what a node left there",
        )
    live = topology.slots()
    require(len(live) == len(topology), "a live node has no serial")
    require(len({topology.serial[s] for s in live}) == len(live), "two nodes share a serial")

    edges = {(parent, slot) for slot in live for parent in topology.parents[slot]}
    reverse = {(slot, child) for slot in live for child in topology.children[slot]}
    require(edges == reverse, "children are not the reverse of parents")
    cycle = any_cycle(topology)
    require(not cycle, "cycle: " + listed(map(name, cycle), " -> "))
    for parent, slot in edges:
        require(
            topology.rank[parent] < topology.rank[slot],
            f"rank of {name(parent)!r} is not below that of its child {name(slot)!r}",
        )

    state = 0
    for slot in live:
        mark = staleness.mark[slot]
        state ^= staleness.key(slot, mark)
        if scheduler.leaf[slot]:
            require(not topology.parents[slot], f"leaf {name(slot)!r} has parents")
        elif mark not in UNSETTLED:
            operands = scheduler.operands(slot)
            failed = [parent for parent in operands if staleness.mark[parent] == FAILED]
            for parent in operands if failed else topology.parents[slot]:
                require(
                    staleness.mark[parent] not in UNSETTLED,
                    f"{name(slot)!r} is settled, its parent {name(parent)!r} is not",
                )
            if mark == CLEAN:
                require(not failed, f"{name(slot)!r} is unmarked below a failed operand")
                known = versions.record[slot]
            elif failed:
                require(
                    scheduler.raises[slot] is scheduler.raises[failed[0]],
                    f"{name(slot)!r} does not raise the error of its operand {name(failed[0])!r}",
                )
                known = None
            else:
                stored = scheduler.errors.get(slot)
                require(
                    stored is not None and scheduler.raises[slot] is stored,
                    f"{name(slot)!r} failed, but does not raise what it raised",
                )
                known = stored.versions if stored is not None else None
            require(
                failed or known == scheduler.seen_parents(slot),
                f"{name(slot)!r} is settled, but its record does not match its parents' versions",
            )
        for child in topology.children[slot] if mark == STALE and not scheduler.leaf[slot] else ():
            require(
                staleness.mark[child] == STALE
                or slot in staleness.cutoffs
                or slot not in scheduler.operands(child),
                f"{name(slot)!r} is stale for sure, its child {name(child)!r} is not",
            )
    hubs = staleness.hubs or Hubs()
    for hub, begin in hubs.since.items():
        left = set(hubs.left[begin:])
        for child in topology.children[hub]:
            require(
                staleness.mark[child] == STALE or child in left,
                f"the next change of {name(hub)!r} would not reach its child {name(child)!r}",
            )
    for slot in staleness.dropped:
        state ^= staleness.key(slot, DROPPED)
        require(topology.serial[slot], f"free slot {slot} is listed as dropped")
        require(not scheduler.leaf[slot], f"leaf {name(slot)!r} is listed as dropped")
    require(
        (state ^ staleness.salt) == staleness.state,
        "the state of the marks is not that of the marks",
    )
    if scheduler.dirty is not None:
        wrong = scheduler.dirty.check(scheduler, live)
        require(not wrong, wrong)
    for slot in scheduler.errors:
        require(staleness.mark[slot] != CLEAN, f"failed node {name(slot)!r} is unmarked")
